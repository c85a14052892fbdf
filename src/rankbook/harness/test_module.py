"""Test modules: run by pytest itself in the listing's own process, one report for each test of the listing."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import io
import os
import re
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest._io import TerminalWriter
from msgspec import Struct

from rankbook.harness import deaths, evidence, lacking, leaving, script
from rankbook.harness.unused import Unused
from rankbook.listing import Outcome, Program, RankRecord, Runtime
from rankbook.pytest_settings import known

QUIET = ("-q", "-p", "no:rankbook", "-o", "norecursedirs=")
"""Options of every run."""
UNWARNED = ("-W", "ignore::pytest.PytestAssertRewriteWarning", "-W", "ignore::pytest.PytestConfigWarning")
"""Options behind those of the project, since the last that fits a warning counts: what the process has imported already, rankbook among it,
pytest cannot rewrite, and need not; and a setting of a plugin that is left out is unknown."""
AGAIN = "rerun"
"""Outcome of an attempt that plugins for tests that fail now and then make again."""
SETTINGS = ".rankbook-pytest.toml"
"""File of the tree that tells pytest the project's settings."""
GONE = "pytest has collected it once, and not again: give its parameters `ids` that are the same each time that its module is imported"
"""Why a test fails that is not there any more when it is to run."""
LEFT_OUT = "PYTEST_"
"""Variables of the surrounding pytest that the inner one must not see."""


def run(program: Program, runtime: Runtime) -> int:
    """Collect or run the listing's tests.

    `arguments` has `collect`, `select` (ids within the file), `options` and `settings` of pytest, `own` options of the project, options by
    which it has `chosen` tests with the `file` that says so, `package`, whose installed modules stand beside the listing's,
    `conftests` of the page where no source has its own, and `examples` where only those of docstrings are tests.
    """
    for name in [name for name in os.environ if name.startswith(LEFT_OUT)]:
        del os.environ[name]
    path = str(Path(program.root) / program.path)
    sys.argv = [path]
    # `pytest FILE` has the file's folder on the path, not the current one.
    sys.path[:] = [entry for entry in sys.path if entry not in ("", program.root) or entry in program.imports_first]
    ids = list(program.arguments.get("select") or ())
    collect = bool(program.arguments.get("collect"))
    chosen = tuple(program.arguments.get("chosen") or ())
    left_out = leaving.LeftOut(Path(program.root), Path(path), chosen, program.arguments.get("file") or "")
    reporter = Collector(runtime, path, left_out) if collect else Reporter(runtime, path, left_out, frozenset(ids))
    # Also where they are none: pytest would look for some in the folders around the tree, which are nobody's.
    settings = Path(program.root) / SETTINGS
    settings.write_text(program.arguments.get("settings") or "", encoding="utf-8")
    options = [*(program.arguments.get("options") or ()), *chosen, *(["--collect-only"] if collect else []), "-c", str(settings)]
    if package := program.arguments.get("package"):
        options += ["--import-mode=importlib"]  # with its package there already, the module is imported from its file under its full name
        _import_outwards(package)
    is_argument = "[" not in path  # pytest takes what stands in brackets for a parameter
    only = Only(Path(path), tuple(ids), is_argument)
    given = Given(tuple(map(tuple, program.arguments.get("own") or ())))
    words = [*QUIET, "--rootdir", program.root, *options, *UNWARNED, path if is_argument else program.root]
    more: list[object] = [Examples()] if program.arguments.get("examples") else []
    if conftests := program.arguments.get("conftests"):
        more.append(Conftests(tuple(map(Path, conftests))))
    status = int(pytest.main(words, plugins=[reporter, left_out, given, Unused(), only, *more]))
    runtime.emit({"type": "finished", "status": status, "running": [] if collect else deaths.running(runtime.ranks)})
    return 0


def _import_outwards(package: str) -> None:
    """Import a package, or the outer ones of it that there are; what cannot be imported pytest will meet again and report."""
    with contextlib.suppress(Exception, SystemExit):
        for end, letter in enumerate(f"{package}."):
            if letter == ".":
                importlib.import_module(package[:end])


class Given(Struct, frozen=True):
    """Plugin of the inner pytest that gives it the options of the project's own, now that their conftest files and plugins are loaded.

    What nobody here knows, because a conftest file of another folder defines it, is left out, and so is a path behind an option that takes
    no value.

    Args:
        options: each with the words behind it.
    """

    options: tuple[tuple[str, ...], ...]

    @pytest.hookimpl(wrapper=True)
    def pytest_load_initial_conftests(self, parser: pytest.Parser, args: list[str]) -> Generator[None, None, None]:
        """Put the options before all others."""
        yield
        args[:0] = [word for option in self.options for word in known(parser, option)]


class Only(Struct, frozen=True):
    """Plugin of the inner pytest that chooses among the tests of the file: pytest itself would run none where one that is named is gone.

    Args:
        path: the file.
        ids: tests to run, in order; empty for all in their own.
        is_argument: whether pytest is given the file; where it takes it as no argument, the file is found from the root.
    """

    path: Path
    ids: tuple[str, ...]
    is_argument: bool

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out everything but the file and the folders on the way."""
        return None if self.is_argument or collection_path in (self.path, *self.path.parents) else True

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the tests that are not to run, and put the others in the order of the run that pytest was called for."""
        if self.ids:
            places = {test: place for place, test in enumerate(self.ids)}
            chosen = [item for item in items if inner_id(item.nodeid) in places]
            items[:] = sorted(chosen, key=lambda item: places[inner_id(item.nodeid)])


class Conftests(Struct, frozen=True):
    """Plugin of the inner pytest that reads the conftest files of a page that people wrote: its module lies in no folder of theirs.

    Args:
        paths: of the files, the nearest last: what it defines stands in the place of what those above it do.
    """

    paths: tuple[Path, ...]

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> None:
        """Make each a plugin, as pytest does with those in the folders of a test."""
        for number, path in enumerate(self.paths):
            name = f"conftest_of_the_page_{number}"
            spec = importlib.util.spec_from_file_location(name, path)
            assert spec is not None
            assert spec.loader is not None
            sys.modules[name] = module = importlib.util.module_from_spec(spec)
            try:
                spec.loader.exec_module(module)
            except Exception as error:
                raise pytest.UsageError(f"{path}: it cannot be imported: {type(error).__name__}: {error}") from error
            early_config.pluginmanager.register(module, name)


class Examples:
    """Plugin of the inner pytest that leaves a module only its examples: pytest takes a file that is named for a test module, too."""

    @pytest.hookimpl(wrapper=True)
    def pytest_pycollect_makemodule(self) -> Generator[None, object, None]:
        """Make no module of functions and classes."""
        yield


class Collector:
    """Plugin of the inner pytest that reports what it collects.

    Args:
        runtime: where events go.
        path: the listing's file.
        left_out: knows what plain pytest leaves out.
    """

    def __init__(self, runtime: Runtime, path: str, left_out: leaving.LeftOut) -> None:
        self.runtime = runtime
        self.path = path
        self.left_out = left_out

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool | None:
        """Report a file that plain pytest leaves out, and do not import it: pytest itself takes any file that is named."""
        why = self.left_out.file(session)
        if why:
            self.runtime.emit({"type": "collect-error", "outcome": "skipped", "reason": why, "text": ""})
        return True if why else None

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Let a module that leaves while it is imported cost itself, with what it wrote: pytest itself would break down."""
        try:
            report = yield
        except SystemExit as error:
            report = pytest.CollectReport(collector.nodeid, "failed", f"it left with {error.code}", [])
            report.rankbook_left = error  # type: ignore[attr-defined]
            return report
        call = getattr(report, "call", None)
        if report.failed and call is not None and call.excinfo is not None:
            raised = call.excinfo.value
            cause = raised.__cause__ if isinstance(raised, pytest.Collector.CollectError) else raised
            report.rankbook_lacking = cause is not None and lacking.may_be_lacking(cause)  # type: ignore[attr-defined]
        return report

    def pytest_collectreport(self, report: Any) -> None:
        """Report a module that cannot be collected, or that skips itself."""
        if hasattr(report, "rankbook_left"):
            self.leave(report.rankbook_left, "".join(text for _, text in report.sections))
        elif report.failed:
            may_lack = {"lacking": True} if getattr(report, "rankbook_lacking", False) else {}
            self.runtime.emit({"type": "collect-error", "outcome": "failed", **_crash(report, self.path), **may_lack})
        elif report.skipped:
            self.runtime.emit({"type": "collect-error", "outcome": "skipped", "reason": _skip_reason(report), "text": ""})

    def leave(self, error: SystemExit, said: str) -> None:
        """Report that the module left."""
        self.runtime.emit({"type": "left", "code": script.exit_status(error), "said": said})

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Report what pytest itself cannot stand: an error in a plugin."""
        self._broken_off(excinfo)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Report a listing that ends the whole session: by `KeyboardInterrupt` or by `pytest.exit`."""
        self._broken_off(excinfo)

    def _broken_off(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        raised = script.failure_of(excinfo.value, Path(self.path))
        self.runtime.emit({"type": "broken-off", **raised, "reason": f"it ended the whole pytest session: {raised['reason']}"})

    def pytest_collection_finish(self, session: Any) -> None:
        """Report the tests, in the order in which they run."""
        items = {item.nodeid: item for item in session.items}  # a hook may let one come several times
        for item, why in (*((item, "") for item in items.values()), *self.left_out.items()):
            event = {"type": "item", "id": inner_id(item.nodeid), "line": _item_line(item, self.path), "marks": list(_marks(item))}
            self.runtime.emit(event | ({"left_out": why} if why else {}))


def inner_id(nodeid: str) -> str:
    """Give the part of a node id behind the file."""
    return nodeid.partition("::")[2]


def _item_line(item: Any, path: str) -> int | None:
    """Give the line of a test in the listing: that of its class when another file defines the test itself; None when one defines both."""
    file, line, _ = item.location
    listing = Path(path).resolve()
    if isinstance(line, int) and (Path(item.config.invocation_params.dir) / file).resolve() == listing:
        return line + 1
    try:
        return inspect.findsource(item.cls)[1] + 1 if Path(inspect.getsourcefile(item.cls) or "").resolve() == listing else None
    except (AttributeError, OSError, TypeError):  # an item that a hook has made need not be of Python
        return None


def _marks(item: Any) -> Iterator[dict[str, Any]]:
    for mark in item.iter_markers():
        arguments = [entry for entry in mark.args if isinstance(entry, str | int | float | bool)]
        yield {"name": mark.name, "args": arguments if len(arguments) == len(mark.args) else []}


class Reporter(Collector):
    """Plugin of the inner pytest that reports each phase of each test, judged by the evidence of its ranks.

    Args:
        runtime: where events go.
        path: the listing's file.
        left_out: knows what plain pytest leaves out.
        ids: tests that are to run.
    """

    def __init__(self, runtime: Runtime, path: str, left_out: leaving.LeftOut, ids: frozenset[str]) -> None:
        super().__init__(runtime, path, left_out)
        self.ids = ids
        self.before = 0
        self.before_call = 0
        self.class_before: dict[type | None, int] = {}
        self.watch: evidence.Watch | None = None
        self.first_failed: dict[type | None, str] = {}
        """By class the first of its tests that failed."""
        self.parts: list[dict[str, Any]] = []
        """What the subtests of the test under way have reported."""
        self.held: list[dict[str, Any]] = []
        """Phases of an attempt of which it is not known yet whether it counts."""
        self.times: Counter[str] = Counter()
        """How often each test is to run: more than once where a hook lets it come again."""
        self.ends: dict[str, list[list[dict[str, Any]]]] = {}
        """Phases of each run so far of a test that comes several times."""
        self.is_over = False
        self.is_again = False
        """Whether another attempt follows the one that is reported."""
        self.blamed: set[int] = set()
        """Ranks, by process id, for whose death a test has answered."""
        self.settled: set[int | None] = set()
        """Ranks of whose end no later test is to be told."""
        self.so_far = "passed"
        """Outcome of the test under way, before its teardown."""
        self.expected: str | None = None
        """Why its call was expected to fail."""
        deaths.watch_looks(runtime)

    def pytest_collection(self, session: pytest.Session) -> None:
        """Stay silent: the file is known."""

    def pytest_collection_finish(self, session: Any) -> None:
        """Stay silent, the tests are known, but for those that are left out now."""
        self.times.update(item.nodeid for item in session.items)
        for item, why in self.left_out.items():
            if (test := inner_id(item.nodeid)) in self.ids:
                for when in ("setup", "teardown"):
                    skipped = {"outcome": "skipped", "reason": why} if when == "setup" else {"outcome": "passed"}
                    self.runtime.emit({"type": "report", "id": test, "when": when, **skipped})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Report tests that pytest has not collected again: their ids are others each time."""
        there = {inner_id(item.nodeid) for item in (*session.items, *(item for item, _ in self.left_out.items()))}
        for test in sorted(self.ids - there):
            for when in ("setup", "teardown"):
                failed = {"outcome": "failed", "reason": GONE, "text": GONE} if when == "setup" else {"outcome": "passed"}
                self.runtime.emit({"type": "report", "id": test, "when": when, **failed})

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Report that a test starts."""
        self.before = self.before_call = len(self.runtime.ranks)
        self.watch = None
        self.is_again = False
        self.so_far, self.expected = "passed", None
        self.parts.clear()
        self.held.clear()
        self.runtime.emit({"type": "start", "id": inner_id(nodeid), "before": self.before})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: Any) -> None:
        """Watch the hand-over to the ranks."""
        self.before_call = len(self.runtime.ranks)
        self.watch = evidence.Watch(getattr(item, "instance", None), getattr(item, "obj", None), self.runtime, self.before)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any) -> Generator[None, Any, Any]:
        """Turn an end that its ranks do not bear out into what it is."""
        report = yield
        cls = getattr(item, "cls", None)
        self.class_before.setdefault(cls, self.before)
        if report.when == "call" and self.watch is not None:
            ended = self._ended(self.before)
            self._judge(report, self.watch, cls)
            self.blamed |= {record.pid for record in self.watch.records() if report.failed and record.pid is not None}
            report.rankbook_evidence = self.watch.evidence()
            self.settled |= {record.pid for record in ended}
        elif report.when == "teardown":
            if report.passed and self._is_last_of(cls, item):
                _overrule(report, evidence.class_verdict(cls, self.runtime.ranks, self.class_before[cls], self.blamed), self.path)
            self._judge_end(report)
        if report.when != "teardown":
            self.so_far, self.expected = report.outcome, getattr(report, "wasxfail", None)
        if report.failed:
            self.first_failed.setdefault(cls, inner_id(item.nodeid))
        return report

    def _judge(self, report: Any, watch: evidence.Watch, cls: type | None) -> None:
        expected = hasattr(report, "wasxfail")
        if report.skipped and expected:
            return
        if report.skipped and (reason := watch.skip_reason()):
            report.longrepr = (self.path, 0, f"Skipped: {reason}")
        verdict = watch.gave_up(_skip_reason(report), self.first_failed.get(cls, "")) if report.skipped else None
        _overrule(report, verdict or watch.verdict(report.outcome), self.path)
        if expected and not report.passed:  # a test that was to fail did so: it has not passed unexpectedly
            report.outcome = "skipped"

    def _judge_end(self, report: Any) -> None:
        """Judge ranks that have died since the call: those that fixtures wait for, also for whole classes and modules.

        A test that failed, or that judges its ranks itself, answers for its own; no later one is told of them.
        """
        own = {record.pid for record in self.runtime.ranks[self.before :]}
        has_failed = report.failed or self.so_far == "failed"
        if self.watch is not None and self.watch.expects_deaths():
            self.settled |= own
        elif has_failed:  # what its fixtures have started may serve others, too
            self.settled |= {record.pid for record in self.runtime.ranks[self.before_call :]}
        ended = self._ended(0)
        found = None if has_failed else deaths.late_death(ended, self.so_far)
        if found is not None:
            _overrule(report, found[1], self.path)
            report.sections += script.sections([found[0]])
            if found[0].pid in own and self.expected is not None:
                report.outcome, report.wasxfail = "skipped", self.expected
        self.settled |= {record.pid for record in ended}

    def _ended(self, before: int) -> list[RankRecord]:
        """Give the ranks from a number on that have ended, and of whose end a test is still to be told."""
        return [record for record in self.runtime.ranks[before:] if record.pid not in self.settled and record.exit_code() is not None]

    def _is_last_of(self, cls: type | None, item: Any) -> bool:
        following = getattr(item, "_rankbook_next", None)
        return following is None or getattr(following, "cls", None) is not cls

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> None:
        """Remember which test comes next: the last of a class answers for the ranks that the class shared."""
        item._rankbook_next = nextitem

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Begin an attempt."""
        self.is_over = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self) -> None:
        """End an attempt: reports that come now are not pytest's own, but those of a plugin that may make another attempt."""
        self.is_over = True

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Report one phase of one test; an attempt that a plugin makes again says nothing of how the test ends."""
        self.is_again |= report.outcome == AGAIN
        if not self.is_again:
            self._report(report)
        if report.when == "teardown" or not (self.is_over or self.times[report.nodeid] > 1):
            for event in self._counting(report.nodeid) if not self.is_again else ():
                self.runtime.emit(event)
            self.held.clear()
        if report.when == "teardown" and self.is_again:
            self.is_again = False
            self.parts.clear()
            self.before = len(self.runtime.ranks)

    def _counting(self, nodeid: str) -> list[dict[str, Any]]:
        """Give the phases that are held; of a test that comes several times nothing until it has come the last time, then its worst run."""
        if self.times[nodeid] <= 1:
            return self.held
        ends = self.ends.setdefault(nodeid, [])
        ends.append(list(self.held))
        return max(ends, key=_badness) if len(ends) == self.times[nodeid] else []

    def _report(self, report: Any) -> None:
        event: dict[str, Any] = {
            "type": "report", "id": inner_id(report.nodeid), "when": report.when, "outcome": report.outcome, "duration": report.duration,
            "sections": [(title, script.both_ends_of(text)) for title, text in report.sections],
            **getattr(report, "rankbook_evidence", {}),
        }  # fmt: skip
        if hasattr(report, "wasxfail"):
            event["wasxfail"] = report.wasxfail
        if report.when == "call":
            event["sections"] += list(script.sections(self.runtime.ranks[self.before :]))
        if report.failed:
            event |= _crash(report, self.path)
        elif report.skipped:
            event["reason"] = _skip_reason(report)
        verdict: deaths.Verdict | None = getattr(report, "rankbook_verdict", None)
        if verdict is not None and "wasxfail" not in event:
            event |= {"outcome": str(verdict.outcome), "reason": verdict.reason}
        if hasattr(report, "context"):  # a subtest: its test is reported behind it, as passed where nothing else of it failed
            own = "" if "wasxfail" in event else _name_of(report.context)
            self.parts.append(event | {"reason": own + (event.get("reason") or "")})
            return
        self.held.append(_whole(event, self.parts) if report.when == "call" else event)


def _whole(event: dict[str, Any], parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Let a test end no better than its subtests: one that failed is its failure; one that passed says how many were skipped.

    One all of whose subtests were skipped is skipped.
    """
    failed = next((part for part in parts if Outcome(part["outcome"]).is_failure), None)
    if failed is not None:
        own = {name: value for name, value in event.items() if name != "wasxfail"}
        return own | {name: failed[name] for name in _END if name in failed}
    if event["outcome"] != "passed":
        return event
    expected = next((part for part in parts if "wasxfail" in part), None)
    if expected is not None:
        return event | {name: expected[name] for name in ("outcome", "reason", "wasxfail")}
    skipped = [part["reason"] for part in parts if part["outcome"] == "skipped"]
    if not skipped:
        return event
    said = {"reason": f"{len(skipped)} of {len(parts)} subtests skipped: {skipped[0]}"}
    return event | said | ({"outcome": str(Outcome.SKIPPED)} if len(skipped) == len(parts) else {})


def _badness(phases: list[dict[str, Any]]) -> int:
    """Rank how a run of a test ended: as passed, as skipped, as failed."""
    outcomes = [Outcome(event["outcome"]) for event in phases]
    return 2 if any(outcome.is_failure for outcome in outcomes) else int(any(outcome.is_skip for outcome in outcomes))


_END = ("outcome", "reason", "text", "line", "missing")
"""What an event says of a failure."""


def _name_of(context: Any) -> str:
    """Name a subtest by what it was given: `subtest ring (size=2): `."""
    said = ", ".join(f"{name}={value}" for name, value in context.kwargs.items())
    return f"{' '.join(filter(None, ('subtest', context.msg, f'({said})' if said else '')))}: "


def _overrule(report: Any, verdict: deaths.Verdict | None, path: str) -> None:
    """Give a phase the outcome that the evidence says; what pytest says of a failure stays its text."""
    if verdict is None:
        return
    if not (report.failed and verdict.outcome.is_failure):
        report.longrepr = verdict.reason if verdict.outcome.is_failure else (path, 0, verdict.reason)
    report.outcome = verdict.phase
    report.rankbook_verdict = verdict


def _skip_reason(report: Any) -> str:
    if hasattr(report, "wasxfail"):
        return f"expected to fail: {report.wasxfail}" if report.wasxfail else "expected to fail"
    longrepr = report.longrepr
    text = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr or "")
    return text.removeprefix("Skipped: ")


_FAILED_EXAMPLE = re.compile(r":\d+: (?:DocTestFailure|UnexpectedException)$")
"""End of what pytest says of an example of a docstring that failed."""
_RAISED = re.compile(r"^UNEXPECTED EXCEPTION: (.+)$", re.MULTILINE)


def _of_example(text: str) -> str:
    raised = _RAISED.search(text)
    return f"an example raised {raised[1]}" if raised else "an example gave another output than the one shown"


def _text_of(report: Any) -> str:
    """Give what pytest says of a failure, its first line indented as the others are."""
    longrepr = report.longrepr
    if not hasattr(longrepr, "toterminal"):
        return str(longrepr)
    file = io.StringIO()
    longrepr.toterminal(TerminalWriter(file))
    return file.getvalue().strip("\n")


def _crash(report: Any, path: str) -> dict[str, Any]:
    """Give a failure's reason, its text and the listing's own line."""
    longrepr = report.longrepr
    text = _text_of(report)
    crash = getattr(longrepr, "reprcrash", None)
    written = text.strip().splitlines() or [""]
    told = getattr(longrepr, "errorstring", None)  # of a fixture that there is not: behind it comes where the test stands
    last = (written[-1] if told is None else str(told).splitlines()[0]).removeprefix("E ").strip()
    reason = crash.message if crash is not None else _of_example(text) if _FAILED_EXAMPLE.search(last) else last
    # pytest shortens paths below the working directory, which is the tree's root; a rank's traceback has the whole path.
    own = rf"(?<![\w/.])(?:{re.escape(path)}|{re.escape(os.path.relpath(path))})"
    lines = re.findall(own + r'(?:", line |:)(\d+)', text)
    missing = re.search(r"ModuleNotFoundError: No module named '([^']+)'", text)
    if missing:
        reason = missing[0]
    return {"reason": reason, "text": text, "line": int(lines[-1]) if lines else None, "missing": missing[1] if missing else None}
