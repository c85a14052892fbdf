"""Pages, listings and their tests as pytest's collectors and items."""

from __future__ import annotations

import datetime as dt
import os
import platform
import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from rankbook import listings, machine, proofs, updating
from rankbook.collecting import USUAL, Rules
from rankbook.config import Settings
from rankbook.errors import PageError, RankbookError
from rankbook.harness import test_listing
from rankbook.harness.import_path import ImportPath, conftest_files, import_path
from rankbook.harness.imported import Imported
from rankbook.harness.mirror import is_inside, modules_of
from rankbook.jobs import Case, Collected, Job, as_program, plan
from rankbook.listing import SAME_RUN, About, Listing, Outcome, Receipt, Run
from rankbook.outlook import Outlook
from rankbook.planning import Claim
from rankbook.proofs import Proofs
from rankbook.prove import Collecting, PageSources, Prover, Wish
from rankbook.pytest_private import crash, mark
from rankbook.pytest_settings import CALLED, NAMED, PytestSettings, pytest_settings_of
from rankbook.reports import PASSED, Report
from rankbook.running import PHASES, Running
from rankbook.tally import Register
from rankbook.terminal import harmless, uncoloured, unsteered, word

ACTED_ON = frozenset({"parametrize", "skip", "skipif", "xfail", "usefixtures", "filterwarnings", "flaky", "timeout", "forked"})
"""Marks that the listing's own pytest acts on; the outer one must not act on them again."""
_MOST_REASONS = 3
"""Reasons that are told of one listing whose tests are all skipped."""


class Session(Struct):
    """What the plugin keeps for one pytest session."""

    settings: Settings
    prover: Prover
    outlook: Outlook
    proofs: Proofs | None = None
    """What the ledger proves, for a session that runs only what is stale."""
    register: Register = field(default_factory=dict)
    items: list[ListingItem] = field(default_factory=list)
    """Items that are selected, in order."""
    pages: list[PageFile] = field(default_factory=list)
    """Pages that are to be collected, in order."""
    made: dict[tuple[pytest.Collector, Path], PageFile] = field(default_factory=dict)
    """Node of each page, by its folder's node and its path."""
    running: dict[tuple[int, Claim], Running] = field(default_factory=dict)
    """What was submitted: by identity of the job, or of the item when it runs alone, and by the claim on GPUs."""
    complaints: list[str] = field(default_factory=list)
    """What could not be written or read."""
    failures: list[str] = field(default_factory=list)
    """What makes the session red although no item is: a promised GPU that is not there, say."""
    updates: bool = False
    """Whether expected outputs that differ are written anew."""
    is_over: bool = False
    """Whether nothing is waited for any more."""

    called_with: tuple[tuple[str, ...], tuple[tuple[str, ...], ...]] = ((), ())
    """The words of the command line, and those options of it that are the project's own."""

    drawn: tuple[tuple[str, ...], ...] = ()
    """Options of what a plugin has drawn for this run."""

    rules: Rules = USUAL
    """What pytest takes for tests in the project."""

    imported: Imported = field(default_factory=Imported)
    """What the project's own modules import."""

    named: frozenset[str] = frozenset()
    """Files and folders that the command line names."""

    def is_asked_for(self, path: Path, config: pytest.Config) -> bool:
        """Say whether the command line names a page, or a folder around it: pytest makes nodes for its neighbours too, at each argument."""
        if not self.named:
            self.named = frozenset(str(config.invocation_params.dir / argument.partition("::")[0]) for argument in config.args)
        where = str(path)
        return where in self.named or any(str(folder) in self.named for folder in path.parents)

    def submit_all(self) -> None:
        """Let all listings run ahead of their reports."""
        for item in self.items:
            if item.starts_process:
                item.submitted(item.job, item.test)

    def unreported(self) -> list[Run]:
        """Give the outcomes of items that have ended ahead of their reports, to which pytest will not come any more."""
        return [run for item in self.items if (run := item.unreported()) is not None] if self.running else []

    def end(self) -> None:
        """End what is under way."""
        self.is_over = True
        self.prover.end()
        self.running.clear()


STASH: pytest.StashKey[Session] = pytest.StashKey()


AHEAD = 16
"""Pages that are read, and whose test modules are collected, ahead of the one that pytest asks for."""


class PageFile(pytest.File):
    """A Markdown page."""

    @classmethod
    def of(cls, parent: pytest.Collector, path: Path) -> PageFile:
        """Give the node of a page, and remember it as one that is to be collected.

        There is one for each page: pytest asks for those of a whole folder again at each file of it that the command line names.
        """
        made = parent.config.stash[STASH].made
        if (parent, path) not in made:
            made[parent, path] = cls._made(parent, path)
        return made[parent, path]

    @classmethod
    def _made(cls, parent: pytest.Collector, path: Path) -> PageFile:
        page: PageFile = cls.from_parent(parent, path=path)
        where = page.nodeid
        if harmless(where) != where:  # pytest shows a node's id and name as they are; it is selected by its path
            page = cls.from_parent(parent, path=path, name=harmless(page.name), nodeid=harmless(where))
        page.where = where
        page.session_state = page.config.stash[STASH]
        if page.session_state.is_asked_for(path, page.config):
            page.session_state.pages.append(page)
        page.jobs = []
        page.programs = []
        page.rows = []
        page.size = 0
        page.problem = None
        page.is_read = False
        page.collecting = {}
        page.collected = {}
        page.earlier = {}
        page._modules = {}
        page._sources = {}
        return page

    session_state: Session
    where: str
    """Its path as a node id has it: the node's own id where nothing in it steers a terminal."""
    jobs: list[Job]
    """What becomes of each listing, in page order."""
    programs: list[Job]
    """Jobs in the place of those that looked like test modules and hold no test."""
    size: int
    """Items that the page gives, selected or not."""
    rows: list[tuple[int, bool, bool]]
    """Of each listing the line, whether it is code, and whether it lies inside another one."""
    problem: RankbookError | None
    """Why the page's site cannot be read."""
    is_read: bool
    collecting: dict[int, Collecting]
    """By identity of the job: what pytest is collecting."""
    collected: dict[int, Collected]
    """By identity of the job: what it has collected."""
    earlier: dict[int, dict[str, Run]]
    """By identity of the job: the last run of each of its tests, or of the listing (`""`), where the ledger has them all."""
    _modules: dict[int, Mapping[str, str]]
    _sources: dict[tuple[int, bool], PageSources]

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Give the page's listings: the tests of its own source directly below it, everything else below its listing's name."""
        self.read()
        waiting = self.session_state.pages
        if self in waiting:
            del waiting[: waiting.index(self) + 1]
        for page in waiting[:AHEAD]:
            page.read()
        if self.problem is not None:
            raise self.CollectError(harmless(str(self.problem))) from self.problem
        self.session_state.register[self.where] = self.rows
        try:
            nodes: list[pytest.Item | pytest.Collector] = []
            for job in self.jobs:
                self._add(job, nodes)
            self.size = sum(1 for _ in _items_below(nodes))
        except RankbookError as error:
            raise self.CollectError(harmless(str(error))) from error
        return nodes

    def read(self) -> None:
        """Read the page, and have its test modules collected."""
        if self.is_read:
            return
        self.is_read = True
        try:
            self._read()
        except RankbookError as error:
            self.problem = error

    def _read(self) -> None:
        state = self.session_state
        try:
            found = listings.collect(self.path, self.where)
        except PageError as error:
            found = (_unreadable(self.where, str(error)),)
        self._complain_of_site()
        self.jobs = list(plan(found, state.rules))
        self.rows = [(job.listing.line, job.is_code, _is_inside(job, found)) for job in self.jobs if not job.listing.output_of]
        for job in self.jobs:
            if not job.is_code or job.listing.problem is not None:
                continue
            if state.proofs is not None:
                self.earlier[id(job)] = self._runs_of(job, state.proofs)
            if not self.earlier.get(id(job)) and not runs_nothing(self.config):
                state.prover.warm(job, self.sources(job))
            if not needs_no_collection(job) and not _is_settled(self.earlier.get(id(job), {})):
                self.collecting[id(job)] = state.prover.submit_collection(job, self.sources(job))

    def _runs_of(self, job: Job, known: Proofs) -> dict[str, Run]:
        """Give what is proved of a job; nothing of one that is run beside extension modules, of which no hash says what was built."""
        if self._is_beside_compiled(job):
            return {}
        whole = known.of(self.where, job.names or (job.listing.name,), job.fingerprint, self.modules(job))
        tests = known.of(self.where, job.names, job.fingerprint, self.modules(job)) if job.kind.has_tests else []
        tests = [run for run in tests if "id" in run.case]
        if not needs_no_collection(job) and any("id" not in run.case and run.outcome is not Outcome.PASSED for run in whole):
            return {}  # a module that could not be collected, or that skipped itself, is collected again
        runs = tests or whole
        return {run.case.get("id", ""): run for run in runs}

    def modules(self, job: Job) -> Mapping[str, str]:
        """Give the SHA-256 of each file that a job's listing is run beside, by path."""
        if id(job) not in self._modules:
            collecting = self.collecting.get(id(job))
            found = collecting.modules if collecting is not None else modules_of(job.placed, self.sources(job), job.beside)
            runs = next((other for other in self.jobs if job.same_as is not None and other.listing.line == job.same_as.line), None)
            more = self.modules(runs) if runs is not None else {}
            self._modules[id(job)] = {**found, **more, **self._conftest_files(job), **self._pytest_settings(job)}
        return self._modules[id(job)]

    def without_data(self, job: Job) -> Report | None:
        """Give the outcome of a job that goes through more data than is put beside a listing: without it, it might pass for nothing."""
        if job.listing.about is None:
            return None
        self.modules(job)  # looks for the data
        told = ", and ".join(f"{folder}, which holds {held}" for folder, held in self.sources(job).too_large.items())
        what = f"it lists {told}: that is not put beside a listing; run its source by pytest itself"
        return Report(Outcome.SKIPPED, what) if told else None

    def _pytest_settings(self, job: Job) -> Mapping[str, str]:
        """Give what pytest is told of how a job's tests run."""
        if not job.kind.has_tests or job.listing.about is None:
            return {}
        told = self.sources(job).pytest_settings
        # No file can be compared with what a command line said, but a run proves something for the same one only.
        more = {f"{CALLED}{told.called}": sha256(told.called.encode()).hexdigest()} if told.called else {}
        return {f"{told.file}{NAMED}": told.digest, **more}

    def _is_beside_compiled(self, job: Job) -> bool:
        source = [job.listing.about.source] if job.listing.about is not None else []
        folders = {posixpath.dirname(path) for path in (*source, *self.modules(job)) if path.endswith(".py")}
        return any(self.sources(job).compiled_in(folder) for folder in sorted(folders))

    def _conftest_files(self, job: Job) -> Mapping[str, str]:
        """Give the conftest files that may define the fixtures of a job's listing."""
        top = self.session_state.settings.root
        files: Sequence[Path] = self.sources(job).conftests
        if "fixtures" in job.placed.options:
            files = [file for file in conftest_files(self.path, top) if file.is_file()]
        return {file.relative_to(top).as_posix(): sha256(file.read_bytes()).hexdigest() for file in files}

    def _add(self, job: Job, nodes: list[pytest.Item | pytest.Collector]) -> None:
        if not job.is_code:
            return
        if needs_no_collection(job):
            self._add_whole(job, nodes)
            return
        found = self._found(job)
        if not found.cases and found.outcome is Outcome.PASSED and job.listing.about is None and not self._lone_tests(job):
            program = as_program(job)
            self.earlier[id(program)] = self.earlier.get(id(job), {})
            self.programs.append(program)
            self._add(program, nodes)
            return
        found = self.collected[id(job)] = found if found.cases else self._with_listed_tests(job, found)
        if not found.cases:
            self._add_whole(job, nodes)
        for case in found.cases:
            classes, name = split_id(harmless(case.id))
            holder, inside = self._holder((*job.names, *classes), nodes)
            inside.append(ListingItem.make(holder, name, job, self, case))

    def _add_whole(self, job: Job, nodes: list[pytest.Item | pytest.Collector]) -> None:
        holder, inside = self._holder(job.names[:-1], nodes)
        inside.append(ListingItem.make(holder, job.names[-1] if job.names else job.listing.name, job, self))

    def _with_listed_tests(self, job: Job, found: Collected) -> Collected:
        """Give a module that is skipped as a whole the tests that its page lists: each of them is skipped with it."""
        report = self.of_module(job, found)
        listed = self.session_state.outlook.listed(job) if report.outcome is Outcome.SKIPPED else ()
        return replace(found, cases=tuple(Case(test, left_out=report.reason) for test in listed))

    def of_module(self, job: Job, found: Collected) -> Report:
        """Give the outcome of a test module of which no test is collected: what kept it from that, or that it imports."""
        outlook, sources = self.session_state.outlook, self.sources(job)
        if found.outcome is Outcome.PASSED and job.listing.about is None:
            reason = f"the listing was imported, and pytest collects no test from it, though it has {', '.join(self._lone_tests(job))}"
            return Report(Outcome.VACUOUS, reason)
        if found.outcome is Outcome.PASSED:
            imports = Report(Outcome.PASSED, sections=(("rankbook", "the module imports; pytest collects no test from it"),))
            return outlook.uncollected(job, sources) or imports
        return outlook.unmet_by_all(job, found.lacking, sources) or Report(found.outcome, found.reason, found.text, found.line)

    def _lone_tests(self, job: Job) -> tuple[str, ...]:
        """Name what looks like a test in a listing on a page made by people, and is of no other use in it."""
        return test_listing.lone(job.listing, self.session_state.rules)

    def _found(self, job: Job) -> Collected:
        if id(job) in self.collecting:
            return self.collecting[id(job)].found()
        return Collected(tuple(_case_of(run) for run in self.earlier[id(job)].values() if "id" in run.case))

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
        """Say where a job finds the other files of its tree; conftest files without a page are for tests alone."""
        about = job.listing.about or (job.beside.about if job.beside else None)
        key = id(about), job.kind.has_tests
        if key not in self._sources:
            settings = self.session_state.settings
            trees = tuple(settings.below_root(entry) for entry in settings.source_path)
            told = pytest_settings_of(settings.root, about.source) if about is not None and is_inside(about.source) else PytestSettings()
            told = told.called_with(*self.session_state.called_with, self.session_state.drawn)
            project = settings.root if job.kind.has_tests and self._reads_conftests(told) else None
            self._sources[key] = PageSources(self.path, about, trees, self._import_path(about, trees, told), project, told)
        return self._sources[key]

    def _reads_conftests(self, told: PytestSettings) -> bool:
        return not self.config.option.noconftest and "--noconftest" not in told.options

    def _import_path(self, about: About | None, trees: tuple[Path, ...], told: PytestSettings) -> ImportPath:
        """Give the folders that pytest would put on `sys.path` for the source of a page, or for a page of its own."""
        root, option = self.session_state.settings.root, self.config.option
        own = [root / about.source] if about is not None and is_inside(about.source) else []
        conftests = conftest_files(own[0] if own else self.path, root) if self._reads_conftests(told) else []
        mode = told.import_mode or option.importmode
        found = import_path(root, [*own, *conftests], self._pythonpath(told), trees, mode)
        return replace(found, imported=self.session_state.imported)

    def _pythonpath(self, told: PytestSettings) -> list[Path]:
        """Give the folders of the setting `pythonpath`: of the file nearest to the source of a page, then of the one that pytest reads."""
        root, settled = self.session_state.settings.root, list(self.config.getini("pythonpath"))
        return settled if root / told.file == self.config.inipath else [*(root / folder for folder in told.pythonpath), *settled]


def _items_below(nodes: Iterable[pytest.Item | pytest.Collector]) -> Iterator[pytest.Item]:
    for node in nodes:
        if isinstance(node, ListingNode):
            yield from _items_below(node.children)
        elif isinstance(node, pytest.Item):
            yield node


def _is_settled(earlier: Mapping[str, Run]) -> bool:
    """Say whether the ledger tells which tests there are: what was left out of a run may be left out no more, as variables say, say."""
    return bool(earlier) and not any(run.case.get("left_out") for run in earlier.values())


def _case_of(run: Run) -> Case:
    marks = tuple((name, tuple(arguments)) for name, arguments in run.case.get("marks", ()))
    return Case(run.case["id"], run.case.get("line"), marks, run.case.get("left_out", ""))


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
    order: int
    """Place among all items that are selected."""
    is_reported: bool
    """Whether the last of its reports was made."""
    repeated: Running | None
    """Its run, where a plugin lets it run again."""
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
        # As a text pytest takes it apart, with the parameters of a test for themselves, and finds it among those that failed last.
        item: ListingItem = cls.from_parent(parent, name=name, nodeid=f"{parent.nodeid}::{name}")
        item.job, item.page, item.case, item.phases, item.overruled, item.order = job, page, case, {}, {}, 0
        item.is_reported = False
        item.repeated = None
        for marked, arguments in case.marks if case else ():
            if marked not in ACTED_ON:
                item.own_markers.append(mark(marked, arguments))
                item.keywords[marked] = True
        return item

    @property
    def state(self) -> Session:
        """What the plugin keeps for the session."""
        return self.page.session_state

    @property
    def is_uncollected(self) -> bool:
        """Whether it stands for a test module of the book that cannot be collected, whatever its tests are called."""
        found = self.page.collected.get(id(self.job))
        return self.case is None and self.job.listing.about is not None and found is not None and found.outcome.is_failure

    @property
    def line(self) -> int:
        """Line on the page: the test's, or the fence's."""
        if self.case is not None and self.case.line:
            return self.job.placed.page_line(self.case.line)
        return self.job.listing.line

    def reportinfo(self) -> tuple[Path, int, str]:
        """Say where the item stands, and what it is called.

        In a name that ends the node id pytest takes each dot before its parameters for the `::` of a class.
        """
        name, bracket, parameters = self.nodeid.partition("::")[2].partition("[")
        called = f"{self.path.name}: {name}" if "." in name else name.replace("::", ".")
        return Path(harmless(os.fspath(self.path))), self.line - 1, f"{called}{bracket}{parameters}"

    def setup(self) -> None:
        """Wait for the test's set-up; where a plugin lets the item run again, it is really run."""
        if self.is_reported:
            self.phases, self.overruled, self.is_reported = {}, {}, False
            self.repeated = self._submitted_alone() if self.starts_process else None
            if self.job.same_as is not None:
                self._repeat_failed()
        if self.case is not None and self.known is None and not runs_nothing(self.config):
            self._settle("setup", self._report("setup"))

    def _repeat_failed(self) -> None:
        """Run those tests again that failed in the run which is this listing's, and were not reported yet."""
        for item in self.state.items:
            if item.job is not self._shown or item.is_reported or not item.starts_process:
                continue
            if self._end_of(item).outcome.is_failure:
                item.repeated = item._submitted_alone()

    @property
    def _shown(self) -> Job:
        """The page's own source, whose run is this listing's."""
        return next(job for job in self.page.jobs if _shows(job, self.job.same_as))

    def runtest(self) -> None:
        """Wait for the test, or settle what needs no process."""
        report = self.known
        if report is None:
            report = self._same_run() if self.job.same_as is not None else self._report("call")
        self._settle("call", report)

    def teardown(self) -> None:
        """Wait for the test's tear-down, and after the last one for the end of its process."""
        if self.case is not None and "setup" in self.phases and not self.state.is_over:
            self._settle("teardown", self._report("teardown"))

    def _settle(self, phase: str, report: Report) -> None:
        report = self.judged(report)
        self.phases[phase] = report
        if report.wasxfail is not None:
            return
        if report.outcome.is_failure:
            raise Failed(report)
        if report.outcome.is_skip:
            pytest.skip(report.reason)

    def judged(self, report: Report) -> Report:
        """Give a report as the options take it: what was promised must not be missing, and outputs that can be written anew agree."""
        report = self.state.outlook.judge(report)
        if not (report.outputs and self.state.updates):
            return report
        why = updating.refusal(self.path, updating.blocks_of(self.job.listing.outputs, report.outputs))
        if why:
            return replace(report, reason=f"{report.reason}, which was not updated: {why}", outputs={})
        return replace(report, outcome=Outcome.PASSED, reason="", text="")

    @property
    def waits_for_update(self) -> bool:
        """Whether its page may be written anew at the end of the session, and with it what its outcome is recorded for."""
        listings = (self.job.listing, *(self.job.whole.children if self.job.whole else ()))
        return self.state.updates and any(listing.outputs for listing in listings)

    @property
    def test(self) -> str:
        """What its process calls it: its test, its part of a session; empty for a whole listing."""
        return self.case.id if self.case else self.job.listing.name if self.job.whole else ""

    @cached_property
    def known(self) -> Report | None:
        """Give the outcome of an item that starts nothing of its own."""
        return (
            self._said_by_page() or self._proved() or self._said_by_kind() or _left_out(self.case) or self.planned or self._without_data()
        )

    def _said_by_page(self) -> Report | None:
        listing = self.job.listing
        if listing.problem is not None:
            return Report(Outcome.FAILED, listing.problem, line=listing.line)
        return Report(Outcome.SKIPPED, listing.options["skip"]) if "skip" in listing.options else None

    def _proved(self) -> Report | None:
        earlier = self.page.earlier.get(id(self.job), {}).get(self.case.id if self.case else "")
        if earlier is None or earlier.outcome is not Outcome.PASSED:
            return None
        return Report(Outcome.PROVED, f"proved earlier: {proofs.sentence(earlier)}", receipt=earlier.receipt)

    def _without_data(self) -> Report | None:
        return self.page.without_data(self.job) if self.job.same_as is None else None

    def _said_by_kind(self) -> Report | None:
        found = self.page.collected.get(id(self.job)) if self.case is None else None
        if found is not None:
            return self.page.of_module(self.job, found)
        if self.job.same_as is not None:
            return None
        if not self.job.kind.entry:
            return Report(Outcome.SKIPPED, self.job.kind.reason(self.job.listing))
        return None

    @cached_property
    def planned(self) -> Report | None:
        """Give the outcome of an item that cannot run here by what its page says that it needs."""
        return self.state.outlook.unmet(self.job, self.test, self.page.sources(self.job)) if self.job.same_as is None else None

    @property
    def is_chosen(self) -> bool:
        """Whether it is a test, and plain pytest would run it."""
        return self.case is not None and not self.case.left_out

    @property
    def starts_process(self) -> bool:
        """Whether a process of the item's own listing is started for it."""
        return self.known is None and self.job.same_as is None and self.get_closest_marker("skip") is None

    def _report(self, phase: str) -> Report:
        running = self.repeated or self.submitted(self.job, self.test)
        self.state.prover.hurry(running)
        report = running.report(self.test, phase)
        if report.receipt.note and phase == "call":
            report = replace(report, sections=(*report.sections, ("rankbook", report.receipt.note)))
        return report

    def submitted(self, job: Job, test: str) -> Running:
        """Give the run of a test of a listing: its selected tests share one process, unless xdist may spread them over workers.

        Args:
            job: the item's own listing, or another one of its page.
            test: a test of that listing.
        """
        state, key = self.state, self._key(job, test)
        if key not in state.running:
            wanted = key[1]
            tests = [test] if self._is_alone else self._batch(job, wanted)
            state.running[key] = state.prover.submit(job, self.page.sources(job), tests, Wish(self.order, wanted))
        return state.running[key]

    @property
    def _is_alone(self) -> bool:
        """Whether the item has a process of its own."""
        return bool(self.test) and is_spread(self.config)

    def _key(self, job: Job, test: str) -> tuple[int, Claim]:
        """Name the run of a test of a listing among those of the session."""
        return id(self) if self._is_alone else id(job.whole or job), self.state.outlook.claim(job, test)

    def unreported(self) -> Run | None:
        """Give the item's outcome where its process has ended and pytest did not come to the last of its reports; None elsewhere."""
        if self.is_reported or not self.starts_process:
            return None
        running = self.repeated or self.state.running.get(self._key(self.job, self.test))
        ended = running.ended(self.test) if running is not None else {}
        judge = self.state.outlook.judge  # its output is not written any more
        self.phases = {phase: judge(report) for phase, report in ended.items()} or self.phases
        return self.run_record() if ended else None

    def submit_again(self, why: str) -> Running:
        """Have the item run alone by new interpreters.

        Args:
            why: the reason, as a clause.
        """
        return self._submitted_alone(why)

    def _submitted_alone(self, why: str = "") -> Running:
        wanted = self.state.outlook.claim(self.job, self.test)
        tests = self._batch(self.job, wanted) if self.job.whole is not None else [self.test] if self.test else []
        return self.state.prover.submit(self.job, self.page.sources(self.job), tests, Wish(self.order, wanted, why))

    def _batch(self, job: Job, wanted: Claim) -> list[str]:
        """Give the tests of a listing that are selected and want as many GPUs; all of them when none is selected."""
        outlook = self.state.outlook
        own = [item for item in self.state.items if item.job is job or (job.whole is not None and item.job.whole is job.whole)]
        selected = [item.test for item in own if item.test and self._runs_with(item)]
        found = self.page.collected.get(id(job))
        cases = found.cases if found else ()
        tests = selected or [case.id for case in cases if not _left_out(case) and not outlook.unmet(job, case.id, self.page.sources(job))]
        return [test for test in tests if outlook.claim(job, test) == wanted]

    def _runs_with(self, other: ListingItem) -> bool:
        """Say whether another item's test is to run in the same process: not where a conftest file of the user skips it."""
        return other is self or other.starts_process

    def _same_run(self) -> Report:
        """Give the outcome of the run of the page's own source: that run is this listing's."""
        job = self._shown
        name = "::".join((self.page.where, *job.names))
        found = self.page.collected.get(id(job))
        if found is not None and not found.cases:
            return self.page.of_module(job, found)
        reports = list(self._ends_of(job))
        failed = next((report for report in reports if report.outcome.is_failure), None)
        if failed is not None:
            return replace(failed, reason=f"{SAME_RUN} {name}: {failed.reason}", duration=0.0, ranks=0, receipt=Receipt())
        if reports and all(report.outcome.is_skip for report in reports):
            return self._all_skipped(job, [case.id for case in found.cases] if found is not None else [""], reports)
        if not reports:
            return Report(Outcome.SKIPPED, f"none of the tests of {name} is run")
        selected = sum(item.job is job and _left_out(item.case) is None for item in self.state.items)
        whole = sum(_left_out(case) is None for case in found.cases) if found is not None else 0
        if 0 < selected < whole:
            return Report(Outcome.SKIPPED, f"of the {whole} tests of {name} only {selected} {'is' if selected == 1 else 'are'} run")
        return Report(Outcome.PASSED, f"{SAME_RUN} {' '.join(job.names) or 'the tests of this page'}")

    def _all_skipped(self, job: Job, tests: Sequence[str], reports: Sequence[Report]) -> Report:
        """Say why all tests of a listing are skipped: what each of them says, or all that they say; needed is what each of them needs."""
        report = replace(reports[0], text="", sections=(), wasxfail=None)
        reasons = Counter(each.reason for each in reports)
        needs = [self.state.outlook.needs_of(job, test) for test in tests or [""]]
        if len(reasons) == 1 or all(each.outcome is Outcome.PROVED for each in reports):
            return replace(report, needs=report.needs or needs[0])
        outcome = report.outcome if len({each.outcome for each in reports}) == 1 else Outcome.SKIPPED
        shown = [f"{reason} ({count:,})" for reason, count in reasons.most_common(_MOST_REASONS)]
        more = [f"{len(reasons) - len(shown):,} other reasons"] if len(reasons) > len(shown) else []
        common = tuple(need for need in needs[0] if all(need in others for others in needs))
        return replace(
            report, outcome=outcome, reason=f"its {len(reports):,} tests are skipped: {'; '.join([*shown, *more])}", needs=common
        )

    def _ends_of(self, job: Job) -> Iterator[Report]:
        """Yield how the tests of another listing of the page end: those that are selected, or all when none is."""
        items = [item for item in self.state.items if item.job is job]
        for item in items:
            if item.known is not None:
                yield item.known
            elif item.starts_process:
                yield self._end_of(item)
        if items:
            return
        found, outlook = self.page.collected.get(id(job)), self.state.outlook
        for case in found.cases if found is not None else (None,):
            test = case.id if case is not None else ""
            planned = _left_out(case) or outlook.unmet(job, test, self.page.sources(job)) or self.page.without_data(job)
            yield planned or self._how_ended(self.submitted(job, test), test)

    def _end_of(self, item: ListingItem) -> Report:
        """Give how a test of the page's own source ended: what was reported of it last, or will be."""
        return self._how_ended(item.repeated or self.submitted(item.job, item.test), item.test)

    def _how_ended(self, running: Running, test: str) -> Report:
        self.state.prover.hurry(running)
        reports = [running.report(test, phase) for phase in PHASES]
        failed = [report for report in reports if report.outcome.is_failure]
        return next(iter(failed or [report for report in reports if report.outcome.is_skip]), reports[1])

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show a failure: the page and line first, then what happened, then the command that runs it again."""
        if isinstance(excinfo.value, Failed):
            report = excinfo.value.report
        elif isinstance(excinfo.value, RankbookError | OSError):
            report = Report(Outcome.FAILED, f"it cannot be started: {excinfo.value}")
        else:
            return super().repr_failure(excinfo, style)
        again = f"run it again: pytest --doctest-glob='*.md' {self._argument()}"
        page, reason, text = map(unsteered, (self.job.listing.page, report.reason, report.text))
        return crash(page, report.line or self.line, reason, text, again)

    def _argument(self) -> str:
        """Name the item as an argument of a pytest that is started where this one was: a node id starts at the root of the project."""
        _, separator, names = self.nodeid.partition("::")
        return word(os.path.relpath(self.path, self.config.invocation_params.dir), separator + names)

    @property
    def identity(self) -> str:
        """Its node id as the ledger has it, whatever in it would steer a terminal."""
        names = self.job.names or (() if self.case else (self.job.listing.name,))
        return "::".join((self.page.where, *names, *([self.case.id] if self.case else ())))

    def outputs(self) -> list[tuple[int, str, str]]:
        """Give the expected outputs that are to be written anew: line of the fence, what stands in it, what is to stand there."""
        printed = next((report.outputs for report in self.phases.values() if report.outputs), {}) if self.state.updates else {}
        return [(block.line, block.old, block.new) for block in updating.blocks_of(self.job.listing.outputs, printed)] if printed else []

    def run_record(self) -> Run:
        """Give the item's outcome as the ledger keeps it."""
        listing = self.job.listing
        phases = list((self.phases | self.overruled).values())
        worst = worst_of(self)
        return Run(
            page=listing.page,
            node_id=self.identity,
            listing=self.job.fingerprint,
            source=listing.about.source if listing.about else "",
            line=self.line,
            kind=self.job.kind.name,
            outcome=worst.outcome,
            reason=uncoloured(worst.reason),
            duration=sum(entry.duration for entry in phases),
            ranks=max((entry.ranks for entry in phases), default=0),
            when=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            machine=machine.hardware(self.state.settings.gpus),
            engine=worst.receipt.engine or self.state.settings.engine,
            torch=machine.torch_version(),
            commit=machine.commit(self.config.rootpath),
            receipt=self._receipt(phases),
            modules=self.page.modules(self.job),
            needs=self.state.outlook.needs_of(self.job, self.test) or worst.needs,
            case=self._case_facts(),
        )

    def _receipt(self, phases: list[Report]) -> Receipt:
        found = next((entry.receipt for entry in reversed(phases) if entry.receipt.ranks or entry.receipt.versions), Receipt())
        here = {"python": platform.python_version(), "torch": machine.torch_version()}
        return replace(found, versions={name: version for name, version in here.items() if version} | dict(found.versions))

    def _case_facts(self) -> dict[str, Any]:
        """Give what pytest needs to know of a test when it is not collected again."""
        if self.case is None:
            return {"page": self.page.size}
        found = self.page.collected.get(id(self.job))
        cases = found.cases if found else ()
        place = next((at for at, case in enumerate(cases) if case is self.case), -1)
        facts = {name: value for name, value in asdict(self.case).items() if name != "left_out" or value}
        return {**facts, "of": len(cases), "place": place, "page": self.page.size}


def _left_out(case: Case | None) -> Report | None:
    """Give the outcome of a test that plain pytest leaves out."""
    return Report(Outcome.SKIPPED, case.left_out) if case is not None and case.left_out else None


def _shows(job: Job, listing: Listing | None) -> bool:
    return listing is not None and job.listing.line == listing.line and job.listing.about is not None


def worst_of(item: ListingItem) -> Report:
    """Give the report of the phase that decides how an item ended."""
    return worst(list((item.phases | item.overruled).values()))


def worst(reports: list[Report]) -> Report:
    """Give the report that decides among those of the phases: the first failure, else the first skip, else one that says something."""
    failed = next((report for report in reports if report.outcome.is_failure), None)
    skipped = next((report for report in reports if report.outcome.is_skip), None)
    if failed or skipped:
        return failed or skipped or PASSED
    if not reports:
        return Report(Outcome.FAILED, "it did not run")
    return next((report for report in reports if report.reason), reports[-1])


def runs_nothing(config: pytest.Config) -> bool:
    """Say whether pytest is only to show which tests there are, or what it would set up for them."""
    return bool(config.option.collectonly or getattr(config.option, "setuponly", False))


def is_spread(config: pytest.Config) -> bool:
    """Say whether xdist may give the tests of one listing to several workers."""
    return getattr(config, "workerinput", {}).get("rankbook_dist", "no") not in ("no", "loadfile", "each")


def sections_of(item: ListingItem, phase: str) -> Iterator[tuple[str, str]]:
    """Yield the output that belongs to a phase; nothing in it steers the terminal."""
    report = item.phases.get(phase)
    for title, content in report.sections if report is not None else ():
        yield title, harmless(content)
