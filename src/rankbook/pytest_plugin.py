"""The pytest door: `pytest --doctest-glob='*.md' docs/` gives an item for each listing of a page and for each test that a listing holds."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from rankbook import config as configuration
from rankbook.engines import NAMES
from rankbook.errors import RankbookError
from rankbook.ledger import Ledger
from rankbook.listing import Outcome, Run
from rankbook.prove import Prover, Report
from rankbook.pytest_items import STASH, ListingItem, PageFile, Session, sections_of
from rankbook.pytest_private import is_text_doctest, wanted_by_glob
from rankbook.tally import Tally, count

SUFFIXES = (".md", ".markdown")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("rankbook", "rankbook: listings of Markdown pages")
    group.addoption("--engine", choices=NAMES, help="where listings run: local (forked from a process that has imported torch) or fresh")
    group.addoption("--listing-timeout", type=float, metavar="SECONDS", help="seconds without a sign of life after which a listing hangs")
    group.addoption("--source-path", action="append", metavar="DIR", help="source tree that has files without a page (repeatable)")
    group.addoption("--listings-report", metavar="FILE", help="write the count of listings by outcome as JSON")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Keep the items of one page together under xdist unless the user says otherwise: a page's tests share one process."""
    option = config.option
    if getattr(option, "numprocesses", None) and getattr(option, "dist", None) == "no" and option.doctestglob:
        option.dist = "loadfile"


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings."""
    option = config.option
    overrides = {
        "engine": option.engine,
        "listing_timeout": option.listing_timeout,
        "source_path": tuple(str(config.invocation_params.dir / entry) for entry in option.source_path) if option.source_path else None,
    }
    try:
        settings = configuration.load(config.rootpath, overrides)
    except RankbookError as error:
        raise pytest.UsageError(str(error)) from error
    if settings.engine not in NAMES:
        raise pytest.UsageError(f"unknown engine '{settings.engine}'; known are {', '.join(NAMES)}")
    config.stash[STASH] = Session(settings, Prover(settings, ["--noconftest"] if option.noconftest else []))


def pytest_unconfigure(config: pytest.Config) -> None:
    """End all processes and remove the mirror tree."""
    state = config.stash.get(STASH, None)
    if state is not None:
        state.prover.close()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Take a Markdown page over from pytest's own text doctests; all other files stay as they are."""
    collectors = yield
    if file_path.suffix.lower() not in SUFFIXES:
        return collectors
    if not (parent.session.isinitpath(file_path) or wanted_by_glob(parent.config, file_path)):
        return collectors
    return [*(entry for entry in collectors if not is_text_doctest(entry)), PageFile.from_parent(parent, path=file_path)]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Remember which items are selected: those of one listing run together."""
    session.config.stash[STASH].items = [item for item in session.items if isinstance(item, ListingItem)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give a report what the listing's process said, and the last one the outcome for the ledger."""
    report = yield
    if not isinstance(item, ListingItem):
        return report
    said = item.phases.get(call.when)
    report.sections += list(sections_of(item, call.when))
    if said is not None and said.wasxfail is not None:
        report.wasxfail = said.wasxfail
        report.outcome = "skipped" if said.outcome is Outcome.SKIPPED else "passed"
    elif said is not None and report.skipped and said.outcome in (Outcome.SKIPPED, Outcome.VACUOUS):
        report.longrepr = (str(item.path), item.line, f"Skipped: {said.reason}")
    else:
        item.overruled |= _overruled(said, report, call)
    if report.failed and call.excinfo is not None and call.when != "call":
        # pytest asks an item for its own words about a failing call only.
        report.longrepr = item.repr_failure(call.excinfo)
    if call.when == "teardown":
        # An attribute of the report travels from the workers of xdist to the process that writes the ledger.
        run = item.run_record()
        report.rankbook = {"line": item.job.listing.line, "run": {**asdict(run), "outcome": str(run.outcome)}}  # type: ignore[attr-defined]
    return report


def _overruled(said: Report | None, report: pytest.TestReport, call: pytest.CallInfo[None]) -> dict[str, Report]:
    """Give the outcome of a phase where pytest, by a mark or a hook of the user, has another one than the listing's process."""
    if hasattr(report, "wasxfail"):
        outcome = Outcome.SKIPPED if report.skipped else Outcome.PASSED
        return {call.when: Report(outcome, f"expected to fail: {report.wasxfail}")}
    if report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        return {call.when: Report(Outcome.SKIPPED, reason.removeprefix("Skipped: "))}
    if report.failed and call.excinfo is not None and (said is None or not said.outcome.is_failure):
        return {call.when: Report(Outcome.FAILED, call.excinfo.exconly(tryshort=True))}
    return {}


class Recorder:
    """Plugin of the process that owns the session: keeps what all reports say.

    Args:
        state: the session.
    """

    def __init__(self, state: Session) -> None:
        self.state = state

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep an outcome."""
        facts = getattr(report, "rankbook", None)
        if facts is not None:
            self.state.facts.append(facts)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take the register of listings from a worker of xdist; all workers have the same."""
        del error
        for page, rows in getattr(node, "workeroutput", {}).get("rankbook_register", {}).items():
            self.state.register[page] = [tuple(row) for row in rows]


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Record outcomes in the process that owns the session, never in a worker."""
    if not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(Recorder(session.config.stash[STASH]), "rankbook-recorder")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End what still runs; write the ledger and the report."""
    config = session.config
    state = config.stash[STASH]
    state.end()
    if hasattr(config, "workerinput"):
        config.workeroutput["rankbook_register"] = state.register  # type: ignore[attr-defined]
        return
    state.complaints += filter(None, (_record(state), _write_count(state, config.getoption("--listings-report"))))


def _record(state: Session) -> str:
    """Write the ledger; give a sentence when that fails, for the outcomes themselves stand all the same."""
    if not state.facts:
        return ""
    try:
        Ledger(state.settings.below_root(state.settings.ledger)).record(_run(facts["run"]) for facts in state.facts)
    except (OSError, RankbookError) as error:
        return f"the ledger was not written: {error}"
    return ""


def _write_count(state: Session, target: str | None) -> str:
    if not target:
        return ""
    try:
        Path(target).write_text(json.dumps(_tally(state).as_json(), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        return f"the count of listings was not written: {error}"
    return ""


def _run(values: dict[str, Any]) -> Run:
    return Run(**{**values, "outcome": Outcome(values["outcome"])})


def _tally(state: Session) -> Tally:
    outcomes: dict[tuple[str, int], list[tuple[Outcome, str]]] = {}
    for facts in state.facts:
        run = _run(facts["run"])
        outcomes.setdefault((run.page, facts["line"]), []).append((run.outcome, run.reason))
    return count(state.register, outcomes)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Count every listing: the sum is the number of listings that the site shows."""
    state = config.stash[STASH]
    for complaint in state.complaints:
        terminalreporter.line(complaint, red=True)
    if not state.register:
        return
    tally = _tally(state)
    terminalreporter.section("listings", "=")
    terminalreporter.line(tally.sentence())
    for reason, number in tally.reasons.items():
        terminalreporter.line(f"{number:6d} skipped: {reason}")
