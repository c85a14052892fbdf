"""The proof, told once: listings → harness → program → engine → outcome.

`plan` says what each listing of a page is, `Prover` runs it, `Running` gives the outcome of each of its tests as it comes.
"""

from __future__ import annotations

import re
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from rankbook import engines, listings
from rankbook.config import Settings
from rankbook.errors import PageError
from rankbook.harness import KINDS, Kind, kind_of, preloaded, shell
from rankbook.harness.mirror import Mirror, is_inside
from rankbook.languages import by_fence
from rankbook.listing import About, Ended, Engine, Event, Listing, Outcome, Program

PHASES = ("setup", "call", "teardown")
DONE = (0, 1, 5)
"""Exit statuses of a pytest that has done what it was asked: all passed, some failed, there are no tests."""
NOT_ON_RANKS = (
    "option 'ranks' has no meaning on a listing that is a {kind}: only a program is started on ranks; take the option away, "
    "and let tests start their ranks by their own harness"
)


@dataclass(frozen=True, slots=True)
class Job:
    """One listing of a page, and what becomes of it."""

    listing: Listing
    kind: Kind
    names: tuple[str, ...]
    """Part of the node id behind the page; empty for the tests of the source that the page is about."""
    beside: Listing | None = None
    """The listing of the source that the page is about, for another listing of that page."""
    same_as: Listing | None = None
    """The listing whose run this one is, for a shell listing that runs its page's own source."""


@dataclass(frozen=True, slots=True)
class Case:
    """One test that a listing holds, as pytest itself collected it."""

    id: str
    """`TestClass::test_name[parameter]`."""
    line: int | None = None
    """Line in the listing."""
    marks: tuple[tuple[str, tuple[Any, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Collected:
    """What a test module holds, or why that cannot be told."""

    cases: tuple[Case, ...] = ()
    outcome: Outcome = Outcome.PASSED
    """SKIPPED for a module that skips itself, a failure for one that cannot be collected."""
    reason: str = ""
    text: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """How one phase of one test, or of one whole listing, ended."""

    outcome: Outcome
    reason: str = ""
    text: str = ""
    """What a reader needs to understand it; paths and lines are those of the page."""
    line: int | None = None
    """Line on the page."""
    duration: float = 0.0
    """Seconds."""
    ranks: int = 0
    wasxfail: str | None = None
    sections: tuple[tuple[str, str], ...] = ()


PASSED = Report(Outcome.PASSED)


def plan(found: Sequence[Listing], parents: tuple[str, ...] = (), holder: Listing | None = None) -> Iterator[Job]:
    """Say what each listing of a page is, inner listings included, in page order.

    Args:
        found: the page's listings.
        parents: names of the listings that hold them.
        holder: the listing of the Markdown source that holds them.
    """
    about = next((listing for listing in found if listing.about is not None), None)
    own = _own_runs(found, about)
    ranks = max((run.ranks for run in own.values()), default=0)
    for listing in found:
        current = replace(listing, options={**listing.options, "ranks": str(ranks)}) if listing is about and ranks else listing
        kind = kind_of(current)
        if "ranks" in current.options and kind.entry and not kind.on_ranks:
            current = replace(current, problem=current.problem or NOT_ON_RANKS.format(kind=kind.name))
        primary = listing is about and kind.has_tests and not parents
        names = parents if primary else (*parents, listing.name)
        beside = about or holder if listing is not about else None
        yield Job(current, kind, names, beside=beside, same_as=about if id(listing) in own else None)
        yield from plan(listing.children, (*parents, listing.name), listing)


def _own_runs(found: Sequence[Listing], about: Listing | None) -> dict[int, shell.OwnRun]:
    language = by_fence(about.language) if about is not None else None
    if about is None or about.about is None or language is None or language.name != "python":
        return {}
    runs = {id(listing): shell.own_run(listing, about.about.source) for listing in found if shell.accepts(listing)}
    # Tests are run by pytest: a page that starts them by torchrun shows another run.
    return {key: run for key, run in runs.items() if run is not None and not (run.ranks and kind_of(about).has_tests)}


def as_program(job: Job) -> Job:
    """Take a listing that looks like a test module, but of which pytest collects no test, for the program that it is."""
    return replace(job, kind=next(kind for kind in KINDS if not kind.has_tests and kind.accepts(job.listing)))


class Prover:
    """Runs the listings of one session.

    Args:
        settings: engine, timeout and source trees.
        options: options of the surrounding pytest that the pytest of a test module gets too.
    """

    def __init__(self, settings: Settings, options: Sequence[str] = ()) -> None:
        self.settings = settings
        self.options = tuple(options)
        self.temporary = tempfile.TemporaryDirectory(prefix="rankbook-", ignore_cleanup_errors=True)
        self.mirror = Mirror(Path(self.temporary.name) / "tree")
        self._engine: Engine | None = None

    @property
    def engine(self) -> Engine:
        """The engine, made when it is first needed."""
        if self._engine is None:
            self._engine = engines.create(self.settings.engine, preload=preloaded())
        return self._engine

    def close(self) -> None:
        """End whatever still runs and remove the mirror tree."""
        if self._engine is not None:
            self._engine.close()
        self.temporary.cleanup()

    def program(self, job: Job, sources: PageSources, **arguments: Any) -> Program:
        """Write a job's listing into the mirror tree and say how it runs."""
        root, path = self.mirror.place(job.listing, sources, job.beside)
        if job.kind.has_tests:
            arguments["options"] = list(self.options)
        return Program(
            name="::".join((job.listing.page, *job.names)),
            entry=job.kind.entry,
            root=str(root),
            path=path,
            arguments={**job.kind.arguments(job.listing), **arguments},
            timeout=float(job.listing.options.get("timeout", self.settings.listing_timeout)),
            preload=job.kind.preload,
        )

    def collect(self, job: Job, sources: PageSources) -> Collected:
        """Let pytest collect a test module's tests, in a process of their own."""
        program = self.program(job, sources, collect=True)
        execution = self.engine.start(program)
        events = list(execution.events())
        cases = tuple(_case(event) for event in events if event["type"] == "item")
        return _why_not(job, program, events, execution.ended) or Collected(cases)

    def run(self, job: Job, sources: PageSources, ids: Sequence[str] = ()) -> Running:
        """Start a job, or the named tests of it."""
        return Running(self, job, sources, tuple(ids))


def _case(event: Event) -> Case:
    return Case(event["id"], event["line"], tuple((mark["name"], tuple(mark["args"])) for mark in event["marks"]))


def _why_not(job: Job, program: Program, events: Sequence[Event], ended: Ended) -> Collected | None:
    """Say why a module's tests cannot be told; None when they can."""
    event = next((event for event in events if event["type"] in ("collect-error", "broken-off", "left", "finished")), None)
    if event is None:
        report = abnormal(job, program, ended, "while it was being collected")
    elif event["type"] == "left":
        return _left_on_import(event["code"], on_page(job, program, event["said"]))
    elif event["type"] != "finished":
        report = report_of(job, event, program)
    elif event["status"] not in DONE:
        report = _broken_pytest(job, program, ended, event["status"], "while it was being collected")
    else:
        return None
    return Collected((), report.outcome, report.reason, report.text, report.line)


def _left_on_import(code: int, said: str) -> Collected:
    last = said.strip().splitlines()[-1:]
    what = ": ".join((f"the module left with exit status {code} while it was imported", *last))
    return Collected((), Outcome.FAILED if code else Outcome.SKIPPED, what, said)


def _broken_pytest(job: Job, program: Program, ended: Ended, status: int, when: str) -> Report:
    """Report a pytest that refuses to run the module: a conftest file that cannot be imported, say."""
    output = on_page(job, program, ended.output)
    last = [line.removeprefix("E").strip() for line in output.strip().splitlines()[-1:]]
    return Report(Outcome.FAILED, ": ".join((f"its pytest ended with status {status} {when}", *last)), output)


class Running:
    """A job under way; gives each test's reports as soon as they are there, whatever becomes of the process.

    A test that takes its process with it costs itself: the tests behind it are run in a new process.

    Args:
        prover: whose engine runs it.
        job: what runs.
        sources: where the other files of its tree are.
        ids: tests to run, in order; empty for a listing without tests.
    """

    def __init__(self, prover: Prover, job: Job, sources: PageSources, ids: tuple[str, ...]) -> None:
        self.prover = prover
        self.job = job
        self.sources = sources
        self.waiting = list(ids) or [""]
        self.reports: dict[tuple[str, str], Report] = {}
        self.note = ""
        """Why another engine than the one asked for ran it."""
        self._last: str | None = None
        self._start()

    def report(self, test: str, phase: str) -> Report:
        """Wait for one phase of one test (`""` for the whole listing); a phase that was never reached counts as passed."""
        key = (test, phase)
        while key not in self.reports and test in self.waiting and self._pump():
            pass
        if not self.waiting and (phase == "teardown" or not self.job.kind.has_tests):
            self.drain()
        return self.reports.get(key, PASSED)

    def drain(self) -> None:
        """Wait until the process has ended; what is wrong with its end is the last test's."""
        while self._pump():
            pass

    def stop(self) -> None:
        """End it now."""
        self.execution.stop()

    def _start(self) -> None:
        arguments = {"select": list(self.waiting)} if self.job.kind.has_tests else {}
        self.program = self.prover.program(self.job, self.sources, **arguments)
        self.execution = self.prover.engine.start(self.program)
        self._events = self.execution.events()
        self._current: str | None = None
        self._charged = False
        """Whether a test has brought its process to its end."""
        self._status: int | None = None
        """Exit status of the listing's own pytest, once it has one."""
        self._over = False

    def _pump(self) -> bool:
        """Take one event; False when there will be none."""
        if self._over:
            return False
        event = next(self._events, None)
        if event is None:
            self._over = True
            self._settle(self.execution.ended)
        elif event["type"] == "start":
            self._current = event["id"]
        elif event["type"] == "report":
            self._take(event)
        elif event["type"] == "collect-error":
            self._fail_rest(report_of(self.job, event, self.program))
        elif event["type"] == "broken-off":
            self._break_off(report_of(self.job, event, self.program))
        elif event["type"] == "finished":
            self._status = event["status"]
        elif event["type"] == "left" and self.waiting:
            self._fail_rest(Report(Outcome.FAILED, f"the module left with exit status {event['code']} while its tests ran"))
        return True

    def _take(self, event: Mapping[str, Any]) -> None:
        test, phase = event["id"], event["when"]
        self.reports[test, phase] = report_of(self.job, event, self.program)
        finished = phase == "teardown" or not self.job.kind.has_tests
        if finished and test in self.waiting:
            self.waiting.remove(test)
            self._last = test
            self._current = None

    def _break_off(self, report: Report) -> None:
        """Charge the test that is under way, if there is one, with the end of the whole pytest session."""
        if self._current in self.waiting:
            self._charge(self._current, report)
        else:
            self._fail_rest(report)

    def _charge(self, test: str, report: Report) -> None:
        """Let a test end in the phase that it has reached; the tests behind it are run in a new process."""
        self.waiting.remove(test)
        phase = next(phase for phase in PHASES if (test, phase) not in self.reports)
        self.reports[test, phase] = report
        self._last = test
        self._charged = True

    def _fail_rest(self, report: Report) -> None:
        for test in self.waiting:
            self.reports.setdefault((test, "call"), report)
        self.waiting.clear()

    def _settle(self, ended: Ended) -> None:
        """Make sense of the end of the process."""
        self.note = ended.note
        if not self.waiting:
            self._judge_end(ended)
            return
        if self._current in self.waiting:
            self._charge(self._current, abnormal(self.job, self.program, ended))
        if not self._charged:
            self._fail_rest(self._never_started(ended))
        elif self.waiting:
            self._start()

    def _never_started(self, ended: Ended) -> Report:
        when = "before its tests started" if self.job.kind.has_tests else ""
        if self._status is not None:
            return _broken_pytest(self.job, self.program, ended, self._status, when)
        return abnormal(self.job, self.program, ended, when)

    def _judge_end(self, ended: Ended) -> None:
        if self._last is None:
            return
        key = (self._last, "teardown" if self.job.kind.has_tests else "call")
        known = self.reports.get(key, PASSED)
        if not self.job.kind.has_tests and ended.output.strip():
            output = ("Captured output", on_page(self.job, self.program, ended.output))
            known = self.reports[key] = replace(known, sections=(output, *known.sections))
        if known.outcome.is_failure:
            return
        if ended.left:
            reason = f"it left {_count(len(ended.left), 'process', 'processes')} behind: {'; '.join(ended.left)}"
            self.reports[key] = replace(known, outcome=Outcome.FAILED, reason=reason, text=reason)
        elif ended.exit_code != 0:
            report = abnormal(self.job, self.program, ended, "after its last test" if self.job.kind.has_tests else "at its end")
            self.reports[key] = replace(report, sections=known.sections, ranks=known.ranks)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def abnormal(job: Job, program: Program, ended: Ended, when: str = "") -> Report:
    """Report a process that ended without saying how its listing did."""
    output = on_page(job, program, ended.output)
    if ended.hung:
        return Report(Outcome.HUNG, f"nothing was heard of it for {program.timeout:g} s {when}".strip(), output)
    code = ended.exit_code
    how = "was lost" if code is None else f"died by {_signal(-code)}" if code < 0 else f"left with exit status {code}"
    return Report(Outcome.CRASHED, f"its process {how} {when}".strip(), output)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def report_of(job: Job, event: Mapping[str, Any], program: Program) -> Report:
    """Turn an event of a program into a report in terms of the page."""
    outcome = Outcome(event["outcome"])
    if event.get("vacuous") and outcome is Outcome.SKIPPED:
        outcome = Outcome.VACUOUS
    line = event.get("line")
    reason = on_page(job, program, event.get("reason") or "")
    text = on_page(job, program, event.get("text") or "")
    if event.get("missing"):
        reason += f"; {where_to_get(event['missing'], job)}"
    return Report(
        outcome,
        reason,
        text,
        job.listing.first_line + line - 1 if line else None,
        event.get("duration") or 0.0,
        event.get("ranks") or 0,
        on_page(job, program, event["wasxfail"]) if "wasxfail" in event else None,
        tuple((title, on_page(job, program, content)) for title, content in event.get("sections") or ()),
    )


def on_page(job: Job, program: Program, text: str) -> str:
    """Put the page's path and lines in the place of those of the mirror tree; lone surrogates, which no file takes, are written out."""
    text = text.encode(errors="backslashreplace").decode()
    shift = job.listing.first_line - 1
    inside = rf"(?<![\w/.])(?:{re.escape(program.root)}/)?{re.escape(program.path)}(\", line |:)(\d+)"
    text = re.sub(inside, lambda match: f"{job.listing.page}{match[1]}{int(match[2]) + shift}", text)
    text = text.replace(f"{program.root}/{program.path}", job.listing.page)
    return text.replace(f"{program.root}/", "")


def where_to_get(module: str, job: Job) -> str:
    """Say where a module that a listing imports, and that nothing has, would come from."""
    top = module.partition(".")[0]
    about = job.listing.about
    if about is None:
        return f"install the package that has '{top}'"
    sibling = PurePosixPath(about.source).parent / f"{top}.py"
    return (
        f"no page shows {sibling}, and no tree named by --source-path holds it: generate that page, name its tree, "
        f"or install the package that has '{top}'"
    )


@dataclass(slots=True)
class PageSources:
    """The sources of the tree that a page belongs to: on the pages beside it, then in the trees that the user names."""

    page: Path
    about: About | None
    trees: tuple[Path, ...] = ()
    _known: dict[str, bytes | None] = field(default_factory=dict)

    def data(self, path: str) -> bytes | None:
        """Give a file's bytes, None when neither a page nor a tree has it."""
        if path not in self._known:
            self._known[path] = self._from_page(path) or self._from_tree(path)
        return self._known[path]

    def names(self, folder: str) -> list[str]:
        """Give the names of the files of a folder of the tree."""
        names = {name.removesuffix("_docs.md") for place in self._folders(folder) for name in _pages_in(place)}
        for tree in self.trees:
            place = tree / folder
            names |= {entry.name for entry in place.iterdir() if entry.is_file()} if place.is_dir() else set()
        return sorted(names)

    def _folders(self, folder: str) -> Iterator[Path]:
        """Yield where the pages of a folder of the sources may lie: below the book's top, or beside this page."""
        if self.about is None:
            return
        own = PurePosixPath(self.about.source).parent
        depth = len(own.parts)
        here = self.page.parent
        if here.parts[len(here.parts) - depth :] == own.parts:
            yield here.parents[depth - 1] / folder if depth else here / folder
        if PurePosixPath(folder or ".") == own:
            yield here

    def _from_page(self, path: str) -> bytes | None:
        folder, _, name = path.rpartition("/")
        for place in self._folders(folder):
            for page in (place / f"{name}_docs.md", place / f"{name}_docs.md_docs.md"):
                if page != self.page and page.is_file():
                    found = _source_on(page, path)
                    if found is not None:
                        return found
        return None

    def _from_tree(self, path: str) -> bytes | None:
        if not is_inside(path):
            return None
        for tree in self.trees:
            target = tree / path
            if target.is_file():
                return target.read_bytes()
        return None


def _pages_in(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir() if entry.name.endswith("_docs.md")] if folder.is_dir() else []


def _source_on(page: Path, path: str) -> bytes | None:
    """Give the source `path` as a page shows it, on the page itself or on a page that it shows."""
    try:
        waiting = list(listings.collect(page, str(page)))
    except PageError:
        return None
    while waiting:
        listing = waiting.pop()
        if listing.about is not None and listing.about.source == path:
            return listing.data()
        waiting += listing.children
    return None
