"""Pages, listings and their tests as pytest's collectors and items."""

from __future__ import annotations

import datetime as dt
import os
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from rankbook import listings, machine
from rankbook.config import Settings
from rankbook.errors import PageError, RankbookError
from rankbook.listing import Listing, Outcome, Run
from rankbook.prove import PHASES, Case, Collected, Job, PageSources, Prover, Report, Running, as_program, plan
from rankbook.pytest_private import crash, mark
from rankbook.tally import Register

ACTED_ON = frozenset({"parametrize", "skip", "skipif", "xfail", "usefixtures", "filterwarnings"})
"""Marks that the listing's own pytest acts on; the outer one must not act on them again."""


@dataclass
class Session:
    """What the plugin keeps for one pytest session."""

    settings: Settings
    prover: Prover
    register: Register = field(default_factory=dict)
    items: list[ListingItem] = field(default_factory=list)
    """Items that are selected, in order."""
    running: dict[int, Running] = field(default_factory=dict)
    """By identity of the job, or of the item when it runs alone: what is under way."""
    facts: list[dict[str, Any]] = field(default_factory=list)
    """What each finished item has to say, as plain data, from this process and from the workers of xdist."""
    complaints: list[str] = field(default_factory=list)
    """What could not be written."""

    def end(self) -> None:
        """End what is under way."""
        for running in self.running.values():
            running.stop()
        self.running.clear()


STASH: pytest.StashKey[Session] = pytest.StashKey()


class PageFile(pytest.File):
    """A Markdown page."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Give the page's listings: the tests of its own source directly below it, everything else below its listing's name."""
        self.session_state = self.config.stash[STASH]
        try:
            return self._nodes()
        except RankbookError as error:
            raise self.CollectError(str(error)) from error

    def _nodes(self) -> list[pytest.Item | pytest.Collector]:
        rows = self.session_state.register.setdefault(self.nodeid, [])
        rows.clear()
        try:
            found = listings.collect(self.path, self.nodeid)
        except PageError as error:
            found = (_unreadable(self.nodeid, str(error)),)
        self._complain_of_site()
        self.jobs = list(plan(found))
        self.collected: dict[int, Collected] = {}
        nodes: list[pytest.Item | pytest.Collector] = []
        for job in self.jobs:
            rows.append((job.listing.line, not is_declared(job), _is_inside(job, found)))
            self._add(job, nodes)
        return nodes

    def _add(self, job: Job, nodes: list[pytest.Item | pytest.Collector]) -> None:
        if is_declared(job):
            return
        if needs_no_collection(job):
            holder, inside = self._holder(job.names[:-1], nodes)
            inside.append(ListingItem.make(holder, job.names[-1] if job.names else job.listing.name, job, self))
            return
        found = self.session_state.prover.collect(job, self.sources(job))
        if not found.cases and found.outcome is Outcome.PASSED and job.listing.about is None:
            self._add(as_program(job), nodes)
            return
        self.collected[id(job)] = found
        if not found.cases:
            holder, inside = self._holder(job.names[:-1], nodes)
            inside.append(ListingItem.make(holder, job.names[-1] if job.names else job.listing.name, job, self))
        for case in found.cases:
            classes, name = split_id(case.id)
            holder, inside = self._holder((*job.names, *classes), nodes)
            inside.append(ListingItem.make(holder, name, job, self, case))

    def _complain_of_site(self) -> None:
        """Say which extensions of the site cannot be had here: a listing that only they show is missed."""
        site = listings.site_of(self.path)
        known = self.session_state.complaints
        known += [said for said in (f"{site.config}: {what}" for what in site.left_out) if said not in known]

    def _holder(
        self, names: tuple[str, ...], nodes: list[pytest.Item | pytest.Collector]
    ) -> tuple[pytest.Collector, list[pytest.Item | pytest.Collector]]:
        """Find or make the node that a chain of names leads to, and give it with the list of its children."""
        holder: pytest.Collector = self
        for name in names:
            found = next((entry for entry in nodes if isinstance(entry, ListingNode) and entry.name == name), None)
            if found is None:
                found = ListingNode.from_parent(holder, name=name)
                nodes.append(found)
            holder, nodes = found, found.children
        return holder, nodes

    def sources(self, job: Job) -> PageSources:
        """Say where a job finds the other files of its tree."""
        settings = self.session_state.settings
        about = job.listing.about or (job.beside.about if job.beside else None)
        return PageSources(self.path, about, tuple(settings.below_root(entry) for entry in settings.source_path))


def is_declared(job: Job) -> bool:
    """Say whether a listing is declared not to be code, and nothing is wrong with it."""
    return job.kind.name == "not code" and job.listing.problem is None


def needs_no_collection(job: Job) -> bool:
    """Say whether a listing is one item, without asking pytest what it holds."""
    return not job.kind.has_tests or job.listing.problem is not None or "skip" in job.listing.options


def _is_inside(job: Job, found: Iterable[Listing]) -> bool:
    return all(job.listing.line != listing.line for listing in found)


def _unreadable(page: str, problem: str) -> Listing:
    return Listing(page=page, name="page", language="text", options={}, text="", line=1, first_line=1, problem=problem)


def split_id(test: str) -> tuple[tuple[str, ...], str]:
    """Split `A::B::test[x::y]` into the classes and the test; a parameter may hold `::`."""
    head, bracket, parameters = test.partition("[")
    *classes, name = head.split("::")
    return tuple(classes), name + bracket + parameters


class ListingNode(pytest.Collector):
    """A listing or a test class between a page and its tests."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.children: list[pytest.Item | pytest.Collector] = []

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Give what lies below."""
        return self.children


class Failed(Exception):  # noqa: N818 - a way for a test to end, like pytest's own Skipped
    """A listing or a test that did not hold, with what a reader needs to know."""

    def __init__(self, report: Report) -> None:
        super().__init__(report.reason)
        self.report = report


class ListingItem(pytest.Item):
    """One test of a listing, or a whole listing."""

    job: Job
    page: PageFile
    case: Case | None
    phases: dict[str, Report]
    """What the item's process said, by phase."""
    overruled: dict[str, Report]
    """What pytest made of a phase against that, or without it: a mark of a conftest file, an error of a plugin."""

    @classmethod
    def make(cls, parent: pytest.Collector, name: str, job: Job, page: PageFile, case: Case | None = None) -> ListingItem:
        """Make an item.

        Args:
            parent: its node.
            name: last part of its node id.
            job: what runs.
            page: the page.
            case: the test; None for the whole listing.
        """
        item: ListingItem = cls.from_parent(parent, name=name)
        item.job, item.page, item.case, item.phases, item.overruled = job, page, case, {}, {}
        for word, arguments in case.marks if case else ():
            if word not in ACTED_ON:
                item.own_markers.append(mark(word, arguments))
                item.keywords[word] = True
        return item

    @property
    def state(self) -> Session:
        """What the plugin keeps for the session."""
        return self.page.session_state

    @property
    def line(self) -> int:
        """Line on the page: the test's, or the fence's."""
        if self.case is not None and self.case.line:
            return self.job.listing.first_line + self.case.line - 1
        return self.job.listing.line

    def reportinfo(self) -> tuple[Path, int, str]:
        """Say where the item stands."""
        return self.path, self.line - 1, self.nodeid.partition("::")[2].replace("::", ".")

    def setup(self) -> None:
        """Wait for the test's set-up."""
        if self.case is not None:
            self._settle("setup", self._report("setup"))

    def runtest(self) -> None:
        """Wait for the test, or settle what needs no process."""
        self._settle("call", self._known() or self._report("call"))

    def teardown(self) -> None:
        """Wait for the test's tear-down, and after the last one for the end of its process."""
        if self.case is not None and "setup" in self.phases:
            self._settle("teardown", self._report("teardown"))

    def _settle(self, phase: str, report: Report) -> None:
        self.phases[phase] = report
        if report.wasxfail is not None:
            return
        if report.outcome.is_failure:
            raise Failed(report)
        if report.outcome in (Outcome.SKIPPED, Outcome.VACUOUS):
            pytest.skip(report.reason)

    def _known(self) -> Report | None:
        """Give the outcome of a listing that starts nothing of its own."""
        listing, kind = self.job.listing, self.job.kind
        if listing.problem is not None:
            return Report(Outcome.FAILED, listing.problem, line=listing.line)
        if "skip" in listing.options:
            return Report(Outcome.SKIPPED, listing.options["skip"])
        found = self.page.collected.get(id(self.job)) if self.case is None else None
        if found is not None:
            return _of_module(found)
        if self.job.same_as is not None:
            return self._same_run()
        return None if kind.entry else Report(Outcome.SKIPPED, kind.reason(listing))

    def _report(self, phase: str) -> Report:
        running = self._running(self.job)
        report = running.report(self.case.id if self.case else "", phase)
        if running.note and phase == "call":
            report = replace(report, sections=(*report.sections, ("rankbook", running.note)))
        return report

    def _running(self, job: Job) -> Running:
        """Give the run of a listing: all its selected tests share one process, unless xdist may spread them over workers."""
        alone = [self.case.id] if self.case is not None and is_spread(self.config) else None
        key = id(self) if alone else id(job)
        if key not in self.state.running:
            self.state.running[key] = self.state.prover.run(job, self.page.sources(job), alone or self._batch(job))
        return self.state.running[key]

    def _batch(self, job: Job) -> list[str]:
        """Give the tests of a listing that are selected; all of them when none is."""
        selected = [item.case.id for item in self.state.items if item.job is job and item.case is not None and self._runs_with(item)]
        found = self.page.collected.get(id(job))
        return selected or [case.id for case in (found.cases if found else ())]

    def _runs_with(self, other: ListingItem) -> bool:
        """Say whether another item's test is to run in the same process: not where a conftest file of the user skips it."""
        return other is self or other.get_closest_marker("skip") is None

    def _same_run(self) -> Report:
        """Give the outcome of the run of the page's own source: that run is this listing's."""
        job = next(job for job in self.page.jobs if _shows(job, self.job.same_as))
        name = "::".join((self.page.nodeid, *job.names))
        found = self.page.collected.get(id(job))
        if found is not None and not found.cases:
            return _of_module(found)
        running, tests = self._running(job), self._batch(job) or [""]
        reports = [running.report(test, phase) for test in tests for phase in PHASES]
        failed = next((report for report in reports if report.outcome.is_failure), None)
        if failed is not None:
            return replace(failed, reason=f"the same run as {name}: {failed.reason}")
        skipped = [report for report in reports if report.outcome in (Outcome.SKIPPED, Outcome.VACUOUS)]
        if len(skipped) == len(tests):
            return Report(Outcome.SKIPPED, skipped[0].reason)
        return Report(Outcome.PASSED, ranks=max(report.ranks for report in reports), sections=(("rankbook", f"the same run as {name}"),))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show a failure: the page and line first, then what happened, then the command that runs it again."""
        if isinstance(excinfo.value, Failed):
            report = excinfo.value.report
        elif isinstance(excinfo.value, RankbookError | OSError):
            report = Report(Outcome.FAILED, f"it cannot be started: {excinfo.value}")
        else:
            return super().repr_failure(excinfo, style)
        again = f"run it again: pytest --doctest-glob='*.md' {shlex.quote(self._argument())}"
        return crash(self.job.listing.page, report.line or self.line, report.reason, report.text, again)

    def _argument(self) -> str:
        """Name the item as an argument of a pytest that is started where this one was: a node id starts at the root of the project."""
        _, separator, names = self.nodeid.partition("::")
        return os.path.relpath(self.path, self.config.invocation_params.dir) + separator + names

    def run_record(self) -> Run:
        """Give the item's outcome as the ledger keeps it."""
        listing = self.job.listing
        phases = list((self.phases | self.overruled).values())
        worst = _worst(phases)
        return Run(
            page=listing.page,
            node_id=self.nodeid,
            listing=sha256(listing.data()).hexdigest(),
            source=listing.about.source if listing.about else "",
            line=self.line,
            kind=self.job.kind.name,
            outcome=worst.outcome,
            reason=worst.reason,
            duration=sum(entry.duration for entry in phases),
            ranks=max((entry.ranks for entry in phases), default=0),
            when=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            machine=machine.hardware(),
            engine=self.state.settings.engine,
            torch=machine.torch_version(),
            commit=machine.commit(self.config.rootpath),
        )


def _of_module(found: Collected) -> Report:
    """Give the outcome of a test module that holds no test: what kept it from being collected, or that it imports."""
    if found.outcome is Outcome.PASSED:
        return Report(Outcome.PASSED, sections=(("rankbook", "the module imports; pytest collects no test from it"),))
    return Report(found.outcome, found.reason, found.text, found.line)


def _shows(job: Job, listing: Listing | None) -> bool:
    return listing is not None and job.listing.line == listing.line and job.listing.about is not None


def _worst(reports: list[Report]) -> Report:
    for is_it in (lambda report: report.outcome.is_failure, lambda report: report.outcome in (Outcome.SKIPPED, Outcome.VACUOUS)):
        found = next((report for report in reports if is_it(report)), None)
        if found is not None:
            return found
    return reports[-1] if reports else Report(Outcome.FAILED, "it did not run")


def is_spread(config: pytest.Config) -> bool:
    """Say whether xdist may give the tests of one listing to several workers."""
    return hasattr(config, "workerinput") and config.getoption("dist", "no") not in ("loadfile", "each")


def sections_of(item: ListingItem, phase: str) -> Iterator[tuple[str, str]]:
    """Yield the output that belongs to a phase."""
    report = item.phases.get(phase)
    yield from report.sections if report is not None else ()
