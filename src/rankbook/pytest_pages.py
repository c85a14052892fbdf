"""A run of pytest over pages: an item for each listing and for each test that a listing holds, what they say, and what is recorded."""

from __future__ import annotations

import os
import platform
import signal
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from rankbook import config as configuration
from rankbook import listings, machine
from rankbook.canary import Canary, differences
from rankbook.collecting import rules_of
from rankbook.errors import RankbookError
from rankbook.harness.unused import Unused
from rankbook.ledger import Ledger
from rankbook.ledger.values import values_of
from rankbook.listing import Outcome
from rankbook.outlook import Outlook
from rankbook.page_names import SUFFIXES
from rankbook.proofs import Proofs
from rankbook.prove import Prover
from rankbook.pytest_items import STASH, ListingItem, PageFile, Session, runs_nothing, sections_of
from rankbook.pytest_private import GIVEN, is_ignored_by_name, is_set, is_text_doctest, wanted_by_glob
from rankbook.pytest_settings import called_by
from rankbook.recording import Recorder
from rankbook.reports import Report
from rankbook.required import Required
from rankbook.stamps import stamp_of
from rankbook.terminal import harmless

LETTERS: Mapping[str, str] = {Outcome.VACUOUS: "v", Outcome.DEGENERATE: "d", Outcome.NOT_RUN: "n", Outcome.PROVED: "e"}
"""Letters of the progress line for what is neither passed nor plainly skipped."""
CANARY: pytest.StashKey[Canary] = pytest.StashKey()
RECORDER: pytest.StashKey[Recorder] = pytest.StashKey()
_FEW = 20
"""Pages of a folder of which each may say that it is generated."""
NOTES: pytest.StashKey[list[str]] = pytest.StashKey()
"""What was done besides, for the summary."""


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings."""
    option = config.option
    overrides = {
        "engine": option.engine,
        "ray_address": option.ray_address,
        "listing_jobs": option.listing_jobs,
        "listing_timeout": option.listing_timeout,
        "source_path": tuple(str(config.invocation_params.dir / entry) for entry in option.source_path) if option.source_path else None,
        "gpus": option.gpus,
        "plan": False if option.no_plan else None,
        "canary": option.canary,
    }
    if option.listings_report and not hasattr(config, "workerinput"):
        _check_target(Path(option.listings_report))
    try:
        settings = configuration.load(config.rootpath, overrides)
        config.stash[STASH] = _session(config, settings)
    except RankbookError as error:
        raise pytest.UsageError(harmless(str(error))) from error


def _check_target(path: Path) -> None:
    """Refuse a file that cannot be written, before anything runs."""
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        why = "it is a folder" if path.is_dir() else "it may not be written" if folder.is_dir() else f"there is no folder {folder}"
        raise pytest.UsageError(harmless(f"--listings-report {path}: {why}; name a file that can be written"))


def _session(config: pytest.Config, settings: configuration.Settings) -> Session:
    option = config.option
    options = [*(["--noconftest"] if option.noconftest else []), *(["--import-mode=importlib"] if option.importmode == "importlib" else [])]
    prover = Prover(settings, options, _jobs(config, settings))
    outlook = Outlook(settings, prover, [Required.parse(text) for text in option.require or ()])
    config.stash[CANARY] = Canary.of(settings.canary)
    proved = _proofs(settings) if option.stale else None
    words, own = getattr(config, "workerinput", {}).get("rankbook_given") or config.stash.get(GIVEN, ([], []))
    called_with = tuple(words), tuple(map(tuple, own))
    rules = rules_of(settings.root)
    return Session(
        settings, prover, outlook, proved, updates=option.update_output, rules=rules, called_with=called_with, drawn=_drawn(config)
    )


def _drawn(config: pytest.Config) -> tuple[tuple[str, ...], ...]:
    """Give the options by which a listing's own pytest draws what this run has drawn: the seed of pytest-randomly."""
    seed = getattr(config, "workerinput", {}).get("randomly_seed", getattr(config.option, "randomly_seed", None))
    return (("--randomly-seed", str(seed)),) if isinstance(seed, int) else ()


def _proofs(settings: configuration.Settings) -> Proofs:
    here = machine.hardware(settings.gpus), platform.python_version(), machine.torch_version()
    return Proofs(Ledger(settings.below_root(settings.ledger)), *here)


def _jobs(config: pytest.Config, settings: configuration.Settings) -> int:
    """Give the number of listings that run at the same time; a worker of xdist runs one, for the user has asked for workers instead."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return settings.listing_jobs or (1 if hasattr(config, "workerinput") else cores)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End all processes and remove the mirror tree."""
    state = config.stash.get(STASH, None)
    if state is not None:
        state.prover.close()


@pytest.hookimpl(wrapper=True)
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> Generator[None, bool | None, bool | None]:
    """Look into folders of pages that are called `build` or `dist`: no name takes what the site shows out of the book."""
    is_ignored = yield
    by_name = is_ignored and collection_path.is_dir() and is_ignored_by_name(config, collection_path)
    if by_name and (_holds_pages(collection_path) or (not is_set(config, "norecursedirs") and _is_on_site(collection_path))):
        return None
    return is_ignored


def _is_on_site(folder: Path) -> bool:
    """Tell whether a site publishes the pages in a folder, and nothing in it is pytest's own matter: `docs/build`, `docs/dist`."""
    try:
        site = listings.site_of(folder / "index.md")
    except RankbookError:
        return False
    if folder.name not in ("build", "dist") or site.docs is None or site.config is None or site.docs == site.config.parent:
        return False
    is_shown = site.docs in folder.parents and folder.name not in site.excluded
    return is_shown and any(folder.rglob("*.md")) and not any(folder.rglob("*.py"))


def _holds_pages(folder: Path) -> bool:
    """Tell whether a folder, or one in it, holds generated pages, by the first of its pages."""
    first = islice((path for suffix in SUFFIXES for path in folder.rglob(f"*{suffix}") if path.is_file()), _FEW)
    try:
        return any(stamp_of(path) is not None for path in first)
    except RankbookError:
        return False


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Take a Markdown page over from pytest's own text doctests; all other files stay as they are."""
    collectors = yield
    if file_path.suffix.lower() not in SUFFIXES:
        return collectors
    if not (parent.session.isinitpath(file_path) or wanted_by_glob(parent.config, file_path)):
        return collectors
    return [*(entry for entry in collectors if not is_text_doctest(entry)), PageFile.of(parent, file_path)]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    """Show the project's own `-m` and `-k` only the tests that they keep: others are skipped and say why, and a listing is no test.

    A module that cannot be collected is an error whatever `-m` and `-k` ask for, as with pytest's own collection.
    """
    own = [item for item in items if isinstance(item, ListingItem)]
    kept = {item for item in own if not item.is_chosen} if _is_chosen_for(config) else set()
    if config.option.markexpr or config.option.keyword:
        left_out = tuple(config.option.deselect or ())
        kept |= {item for item in own if item.is_uncollected and not item.nodeid.startswith(left_out)}
    before = list(items)
    items[:] = [item for item in items if item not in kept]
    yield
    if kept:
        places = {item: place for place, item in enumerate(before)}
        is_in_order = all(item in places for item in items) and items == sorted(items, key=places.__getitem__)
        items[:] = sorted([*items, *kept], key=places.__getitem__) if is_in_order else [*items, *kept]


def _is_chosen_for(config: pytest.Config) -> bool:
    """Tell whether tests are chosen by the project's settings, and not for this run: on its command line, or in `PYTEST_ADDOPTS`."""
    words = called_by(config.invocation_params.args)
    return bool(config.option.markexpr or config.option.keyword) and not any(word.startswith(("-m", "-k")) for word in words)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Remember which items are selected: those of one listing run together."""
    items = [item for item in session.items if isinstance(item, ListingItem)]
    for order, item in enumerate(items):
        item.order = order
    session.config.stash[STASH].items = items
    if items and len(items) == len(session.items):  # none runs in this process; one of xdist that deals them out has none
        session.config.pluginmanager.register(Unused(), "rankbook-unused")


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item) -> bool | None:
    """Let pytest-timeout do as a project says in a listing's own pytest alone: an item here waits for its turn and for others, too."""
    is_told = any(word.partition("=")[0] == "--timeout" for word in called_by(item.config.invocation_params.args))
    return True if isinstance(item, ListingItem) and not is_told else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Keep pytest-forked from an item: it runs in processes of its own already, and a fork of this one would wait for them in vain."""
    option = item.config.option
    if not (isinstance(item, ListingItem) and getattr(option, "forked", False)):
        return (yield)
    option.forked = False
    try:
        return (yield)
    finally:
        option.forked = True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give a report what the listing's process said, and the last one the outcome for the ledger."""
    report = yield
    if not isinstance(item, ListingItem):
        return report
    said = item.phases.get(call.when)
    report.duration = said.duration if said is not None else report.duration  # not how long pytest has waited
    report.sections += list(sections_of(item, call.when))
    if said is not None and said.wasxfail is not None:
        report.wasxfail = harmless(said.wasxfail)
        report.outcome = "skipped" if said.outcome is Outcome.SKIPPED else "passed"
    elif said is not None and report.skipped and said.outcome.is_skip:
        report.rankbook_outcome = str(said.outcome)  # type: ignore[attr-defined]
        report.longrepr = (harmless(str(item.path)), item.line, f"Skipped: {harmless(said.reason)}")
    else:
        item.overruled |= _overruled(said, report, call)
    if report.failed and call.excinfo is not None and call.when != "call":
        # pytest asks an item for its own words about a failing call only.
        report.longrepr = item.repr_failure(call.excinfo)
    if call.when == "teardown" and not runs_nothing(item.config):
        # An attribute of the report travels from the workers of xdist to the process that writes the ledger.
        item.is_reported = True
        facts = {"line": item.job.listing.line, "run": values_of(item.run_record()), "outputs": item.outputs()}
        report.rankbook = {**facts, "waits": item.waits_for_update}  # type: ignore[attr-defined]
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


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Record outcomes in the process that owns the session, never in a worker."""
    config = session.config
    if not hasattr(config, "workerinput"):
        state = config.stash[STASH]
        state.failures += state.outlook.lacking()
        config.stash[RECORDER] = Recorder(state)
        config.pluginmanager.register(config.stash[RECORDER], "rankbook-recorder")


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Let the listings run ahead of their reports; then run the canary's share again."""
    state = session.config.stash[STASH]
    if not hasattr(session.config, "workerinput") and not runs_nothing(session.config) and not _is_controller(session.config):
        state.submit_all()
    with _ended_in_order(session.config):
        result = yield
    canary = session.config.stash[CANARY]
    if canary.share and not session.shouldstop:
        state.failures += differences(canary.chosen(state.items))
    return result


@contextmanager
def _ended_in_order(config: pytest.Config) -> Iterator[None]:
    """End the session as Ctrl-C does where the process is told to end, by a time limit or because its terminal is gone, say.

    So what has ended is recorded, and nothing is left behind.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or hasattr(config, "workerinput") or not (config.stash[STASH].items or _is_controller(config)):
        yield
        return
    ours = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, lambda number, _: pytest.exit(f"ended by {signal.Signals(number).name}", 128 + number))
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _is_controller(config: pytest.Config) -> bool:
    return bool(getattr(config.option, "numprocesses", None) or getattr(config.option, "tx", None))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End what still runs; write what was recorded."""
    config = session.config
    state = config.stash[STASH]
    if RECORDER in config.stash:
        config.stash[RECORDER].catch_up(state.unreported())
    state.end()
    if hasattr(config, "workerinput"):
        config.workeroutput["rankbook_register"] = state.register  # type: ignore[attr-defined]
        config.workeroutput["rankbook_said"] = [state.complaints, state.failures]  # type: ignore[attr-defined]
        return
    recorder = config.stash[RECORDER]
    if config.option.update_output:
        config.stash[NOTES] = list(recorder.update_outputs(config.rootpath))
    recorder.close()
    if config.option.listings_report:
        recorder.write_tally(config.option.listings_report)
    if config.option.fail_on_debt:
        state.failures += recorder.debts()
    if state.failures and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Give the ways to end that are neither passed nor plainly skipped a word of their own."""
    word = getattr(report, "rankbook_outcome", "")
    if not report.skipped or word not in LETTERS:
        return None
    return word, LETTERS[word], (word.upper(), {"yellow": True})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Count every listing: the sum is the number of listings that the site shows."""
    state = config.stash[STASH]
    for complaint in (*state.complaints, *state.failures):
        terminalreporter.line(harmless(complaint), red=True)
    for note in config.stash.get(NOTES, ()):
        terminalreporter.line(harmless(note))
    if not state.register:
        return
    tally = config.stash[RECORDER].tally()
    terminalreporter.section("listings", "=")
    terminalreporter.line(tally.sentence())
    for reason, number in tally.reasons.items():
        terminalreporter.line(f"{number:6d} skipped: {harmless(reason)}")
