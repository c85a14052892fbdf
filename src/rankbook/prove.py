"""The proof, told once: listings → harness → program → engine → outcome.

`jobs.plan` says what each listing of a page is, `Prover` gives it to the scheduler, `Running` has the outcome of each of its tests.
"""

from __future__ import annotations

import os
import posixpath
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct, field

from rankbook import engines, gpus, listings
from rankbook.config import Settings
from rankbook.errors import PageError
from rankbook.harness import preloaded, shell
from rankbook.harness.import_path import ImportPath, conftest_files
from rankbook.harness.mirror import Mirror, Placed, is_inside, surroundings
from rankbook.harness.unimported import taken
from rankbook.harness.without_torch import may_import_harnesses, may_import_torch
from rankbook.jobs import Case, Collected, Job
from rankbook.leases import Leases
from rankbook.listed import MOST_FILES, Listed, data_below, is_data
from rankbook.listing import About, Ended, Engine, Event, Execution, Outcome, Program
from rankbook.planning import Claim
from rankbook.pytest_settings import PytestSettings
from rankbook.reports import abnormal, broken_pytest, on_page, report_of
from rankbook.running import Running, Start
from rankbook.schedule import Scheduler, Task, Ticket

if TYPE_CHECKING:
    from rankbook.engines.cluster import Cluster

DONE = (0, 1, 5)
"""Exit statuses of a pytest that has done what it was asked: all passed, some failed, there are no tests."""
FIRST = -1
"""Order of what is wanted before all listings: what a module holds."""
ANY_NUMBER = 1024
"""GPUs that may be wanted of a machine whose number of GPUs is not known; the scheduler lets one listing at a time have them all."""
MOST_DATA = 32 * 2**20
"""Bytes that stand beside a listing because it lists the folder that they are in; of a larger folder nothing does."""
FEW_DATA = 4 * 2**20
"""Bytes below a folder that stand beside a listing which has the folder on a path, and lists none; of more stands what it names."""
FEW_FILES = 200
"""Files that do so."""
END_LIMIT = 5.0
"""Seconds that whatever runs has to end when the session does."""


class Wish(Struct, frozen=True):
    """When and how a job is to run."""

    order: int = 0
    """Place of its first report among those of all jobs."""
    claim: Claim = Claim()
    """GPUs that it wants."""
    fresh: str = ""
    """Why it must be run by new interpreters; empty when it need not."""


class Prover:
    """Runs the listings of one session.

    Args:
        settings: engine, timeout, GPUs and source trees.
        options: options of the surrounding pytest that the pytest of a test module gets too.
        jobs: listings that run at the same time.
    """

    def __init__(self, settings: Settings, options: Sequence[str] = (), jobs: int = 1) -> None:
        self.settings = settings
        self.options = tuple(options)
        self.jobs = jobs
        self.temporary = tempfile.TemporaryDirectory(prefix="rankbook-", ignore_cleanup_errors=True)
        self.mirror = Mirror(Path(self.temporary.name) / "tree")
        self.inventory = gpus.inventory(settings.gpus)
        self._making = threading.Lock()
        self._engine: Engine | None = None
        self._scheduler: Scheduler | None = None
        self._tickets: dict[int, Ticket] = {}
        self._under_way: list[Running | Collecting] = []

    def engine(self) -> Engine:
        """Give the engine, made when it is first needed."""
        with self._making:
            if self._engine is None:
                settings = self.settings
                options = {"gpus": settings.gpus, "address": settings.ray_address, "scratch": (self.temporary.name,)}
                self._engine = engines.create(settings.engine, preload=preloaded(), **options)
            return self._engine

    def warm(self, job: Job, sources: PageSources) -> None:
        """Let the engine get ready for a listing that it will run."""
        if job.kind.preload and hasattr(engine := self.engine(), "warm"):
            known = sources.import_path
            torch = may_import_torch(job.placed, known=known)
            if torch and b"torch" not in job.placed.data():  # what it imports may stand on a page
                torch = may_import_torch(job.placed, surroundings(job.placed, sources, job.beside), known)
            engine.warm(torch=torch, harnesses=may_import_harnesses(job.placed))

    @property
    def is_cluster(self) -> bool:
        """Whether listings run on several machines, which grant their own GPUs."""
        return self.settings.engine in engines.CLUSTERS

    @property
    def most_gpus(self) -> int:
        """GPUs that one listing can be granted; where their number is not known, as many as anybody wants."""
        if self.is_cluster:
            return max(cast("Cluster", self.engine()).gpus, default=0)
        return len(self.inventory.gpus) if self.inventory.is_known else ANY_NUMBER

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler, made when it is first needed."""
        if self._scheduler is None:
            if self.is_cluster:
                slots = self.settings.listing_jobs or cast("Cluster", self.engine()).slots
                self._scheduler = Scheduler(slots, gpus.Inventory(()), Leases())
            else:
                self._scheduler = Scheduler(max(self.jobs, len(self.inventory.gpus)), self.inventory, Leases())
        return self._scheduler

    def end(self) -> None:
        """End whatever still runs, all at the same time."""
        under_way = [work for work in self._under_way if not work.is_over]
        for work in under_way:
            work.give_up()
        threads = [threading.Thread(target=work.stop, daemon=True) for work in under_way if work.has_process]
        for thread in threads:
            thread.start()
        end = time.monotonic() + END_LIMIT
        for thread in threads:
            thread.join(max(end - time.monotonic(), 0.0))
        if self._scheduler is not None:
            self._scheduler.stop()
        self._under_way.clear()
        self._tickets.clear()

    def close(self) -> None:
        """End whatever still runs, and remove the mirror tree."""
        self.end()
        if self._engine is not None:
            self._engine.close()
        self.temporary.cleanup()

    def start(self, job: Job, sources: PageSources, granted: tuple[str, ...] | None = None, fresh: str = "", **arguments: Any) -> Start:
        """Write a job's listing into the mirror tree and say how it runs.

        Args:
            job: what runs.
            sources: where the other files of its tree are.
            granted: GPUs that it may use; None leaves the caller's.
            fresh: why it must be run by new interpreters.
            arguments: what its entry wants besides what the listing says.
        """
        placed = self.mirror.place(job.placed, sources, job.beside)
        options = job.placed.options
        given = {**job.kind.arguments(job.placed), **arguments}
        if given.get("fixtures"):
            given |= {"page": str(sources.page), "top": str(self.settings.root)}
        if job.kind.has_tests:
            told = sources.pytest_settings
            given |= {
                "options": [*self.options, *told.in_tree],
                "own": told.own,
                "chosen": told.chosen,
                "file": told.file,
                "settings": told.toml,
                "package": placed.package,
                "conftests": [str(file) for file in sources.conftests],
            }
        source = next((found.about.source for found in (job.placed, job.beside) if found is not None and found.about is not None), "")
        if job.kind.name == "shell" and source:
            given["folder"] = shell.starts_in(job.placed.text, source, {placed.path, *placed.others})
        program = Program(
            name=job.name,
            entry=job.kind.entry,
            root=str(placed.root),
            path=placed.path,
            arguments=given,
            environment=listings.environment(options),
            timeout=float(options.get("timeout", self.settings.listing_timeout)),
            preload=job.kind.preload,
            torch=may_import_torch(job.placed, placed.others, sources.import_path),
            harnesses=may_import_harnesses(job.placed, placed.others.values()),
            gpus=granted,
            fresh=fresh or _why_fresh(job, placed.others.values()),
            taken=taken(job.placed.data()) if job.kind.preload else (),
            imports_first=self._looked_up(sources.import_path.first, placed),
            imports_last=self._looked_up(sources.import_path.last, placed),
        )
        return Start(program, placed.modules)

    def _looked_up(self, folders: Iterable[Path], placed: Placed) -> tuple[str, ...]:
        """Name folders in which imports are looked up, each behind its like in the tree where that goes first."""
        root = self.settings.root
        of_tree = [placed.root / each.relative_to(root) if placed.pages_first and each.is_relative_to(root) else each for each in folders]
        return tuple(dict.fromkeys(str(each) for pair in zip(of_tree, folders, strict=True) for each in pair))

    def submit_collection(self, job: Job, sources: PageSources) -> Collecting:
        """Have pytest collect a test module's tests soon, in a process of their own."""
        collecting = Collecting(self, job, sources)
        self._under_way.append(collecting)
        collecting.ticket = self.scheduler.submit(Task(FIRST, 0, shared=True, run=collecting.run, stop=collecting.stop, name=job.name))
        return collecting

    def submit(self, job: Job, sources: PageSources, ids: Sequence[str], wish: Wish) -> Running:
        """Have a job, or the named tests of it, run when it is its turn.

        Args:
            job: what runs.
            sources: where the other files of its tree are.
            ids: tests to run; empty for a listing without tests.
            wish: when and how.
        """

        def begin(waiting: list[str], granted: tuple[str, ...] | None) -> Start:
            if self.is_cluster:
                granted = ("",) * wish.claim.gpus if self.most_gpus else None  # only the number counts: a node grants its own
            return self.start(job, sources, granted, wish.fresh, **({"select": waiting} if job.kind.has_tests or job.whole else {}))

        running = Running(job, tuple(ids), self.engine, begin, {gpu.id: gpu.name for gpu in self.inventory.gpus})
        self._under_way.append(running)
        task = Task(
            wish.order,
            0 if self.is_cluster else wish.claim.gpus,
            shared=wish.claim.shared,
            run=running.run,
            stop=running.stop,
            name=job.name,
        )
        self._tickets[id(running)] = self.scheduler.submit(task)
        return running

    def hurry(self, running: Running) -> None:
        """Let a job go next, because somebody waits for it."""
        if not running.is_over and id(running) in self._tickets:
            self.scheduler.hurry(self._tickets[id(running)])


def _why_fresh(job: Job, others: Iterable[bytes]) -> str:
    """Say why a listing is run by new interpreters; empty when it need not be."""
    if job.placed.options.get("engine") == "fresh":
        return "the listing asks for them"
    looks = not job.kind.has_tests and job.kind.preload and any(b"sys.modules" in data for data in (job.placed.data(), *others))
    return "it looks at which modules are imported" if looks else ""


class Collecting:
    """What a test module holds, as soon as its pytest has said so."""

    def __init__(self, prover: Prover, job: Job, sources: PageSources) -> None:
        self._prover = prover
        self._job = job
        self._sources = sources
        self._found: Collected | None = None
        self._execution: Execution | None = None
        self._given_up = False
        self.ticket: Ticket | None = None
        self.modules: Mapping[str, str] = {}
        """SHA-256 of each file beside the module, by path."""

    def run(self, _granted: tuple[str, ...] | None) -> None:
        """Collect, in the thread that calls."""
        # A module decides by the GPUs that it sees which tests it has: so it sees all.
        if self._given_up:
            return
        start = self._prover.start(self._job, self._sources, collect=True)
        self.modules = start.modules
        try:
            execution = self._execution = self._prover.engine().start(start.program)
            if self._given_up:
                execution.stop()
            events = _of_the_last_start(list(execution.events()))
        finally:
            shutil.rmtree(start.program.root, ignore_errors=True)
        cases = tuple(_case(event) for event in events if event["type"] == "item")
        self._found = _why_not(self._job, start.program, events, execution.ended) or Collected(cases)

    @property
    def is_over(self) -> bool:
        """Whether it has come to its end."""
        return self.ticket is not None and self.ticket.is_done

    @property
    def has_process(self) -> bool:
        """Whether a process was started for it."""
        return self._execution is not None

    def give_up(self) -> None:
        """Start no process for it any more."""
        self._given_up = True

    def stop(self) -> None:
        """End it now."""
        self.give_up()
        if self._execution is not None:
            self._execution.stop()

    def found(self) -> Collected:
        """Wait for it."""
        assert self.ticket is not None
        self.ticket.wait()
        assert self._found is not None
        return self._found


def _of_the_last_start(events: list[Event]) -> list[Event]:
    """Leave out what a node had said before it was lost."""
    begun = max((at for at, event in enumerate(events) if event["type"] == "again"), default=-1)
    return events[begun + 1 :]


def _case(event: Event) -> Case:
    marks = tuple((mark["name"], tuple(mark["args"])) for mark in event["marks"])
    return Case(event["id"], event["line"], marks, event.get("left_out", ""))


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
        report = broken_pytest(job, program, ended, event["status"], "while it was being collected")
    else:
        return None
    lacking = on_page(job, program, event["reason"]) if event is not None and event.get("lacking") else ""
    return Collected((), report.outcome, report.reason, report.text, report.line, lacking)


def _left_on_import(code: int, said: str) -> Collected:
    last = said.strip().splitlines()[-1:]
    what = ": ".join((f"the module left with exit status {code} while it was imported", *last))
    return Collected((), Outcome.FAILED if code else Outcome.SKIPPED, what, said)


_COMPILED = tuple(EXTENSION_SUFFIXES)


class PageSources(Struct):
    """The sources of the tree that a page belongs to: on the pages beside it, then in the trees that the user names."""

    page: Path
    about: About | None
    trees: tuple[Path, ...] = ()
    import_path: ImportPath = field(default_factory=ImportPath)
    project: Path | None = None
    """Root of the project whose `conftest.py` files count where no page shows them; None for none."""
    pytest_settings: PytestSettings = field(default_factory=PytestSettings)
    """What the project tells pytest of its tests."""
    _known: dict[str, bytes | None] = field(default_factory=dict)
    _places: dict[str, str] = field(default_factory=dict)
    """Where files of the trees that the user names lie, from the root of the project."""
    _entries: dict[str, frozenset[str]] = field(default_factory=dict)
    _compiled: dict[str, list[Path]] = field(default_factory=dict)
    _listed: set[str] = field(default_factory=set)
    """Files of the project that were found by listing a folder; they need no page."""
    _gone_through: dict[str, None] = field(default_factory=dict)
    too_large: dict[str, str] = field(default_factory=dict)
    """Folders that hold more than what stands beside a listing that lists them, each with what they hold, in words."""

    @property
    def conftests(self) -> tuple[Path, ...]:
        """The conftest files of a page that people wrote, from the root of the project down; none of one whose source has its own."""
        if self.project is None or self.about is not None:
            return ()
        return tuple(file for file in conftest_files(self.page, self.project) if file.is_file())[::-1]

    def data(self, path: str) -> bytes | None:
        """Give a file's bytes, None when no page and no tree has it, and it is no conftest file of the project."""
        if path not in self._known:
            found = (look(path) for look in (self._from_page, self._from_tree, self._from_project))
            self._known[path] = next((data for data in found if data is not None), None)  # a file may be empty
        return self._known[path]

    def digest(self, path: str) -> str | None:
        """Give the SHA-256 of a file as a page shows it, None where none does."""
        for page in self._pages_of(path):
            try:
                seen = page.stat()
            except OSError:
                continue
            found = _digest_on(page, path, seen.st_mtime_ns, seen.st_size)
            if found:
                return found
        return None

    def compiled_in(self, folder: str) -> list[Path]:
        """Give the extension modules in a folder of the trees that the user names, and of the project."""
        if folder not in self._compiled:
            places = [place for root in (*self.trees, self.import_path.root) if (place := root / folder).is_dir()]
            entries = (entry for place in places for entry in sorted(place.iterdir()))
            self._compiled[folder] = [entry.resolve() for entry in entries if entry.name.endswith(_COMPILED) and entry.is_file()]
        return self._compiled[folder]

    def place(self, path: str) -> str:
        """Give where a file lies that was had: a page stands for its own path, and so does the project; other trees have their own."""
        return self._places.get(path, path)

    def names(self, folder: str) -> list[str]:
        """Give the names of the files of a folder of the tree."""
        names = {name.removesuffix("_docs.md") for place in self._folders(folder) for name in _pages_in(place)}
        for tree in self.trees:
            place = tree / folder
            names |= {entry.name for entry in place.iterdir() if entry.is_file()} if place.is_dir() else set()
        return sorted(names)

    def data_in(self, folder: str, *, deep: bool, patterns: Sequence[str] = (), few: bool = False) -> list[str]:
        """Give the paths of the files of a folder of the tree, or of all below it, that are no Python; the project's need no page.

        Of many, or of much, nothing is given, and that is remembered.

        Args:
            folder: below the root.
            deep: whether what is in folders below it counts.
            patterns: of names of files; none for all.
            few: whether of more than a few nothing is given, which is not remembered.
        """
        if folder and not is_inside(folder):
            return []
        most_files, most_data = (FEW_FILES, FEW_DATA) if few else (MOST_FILES, MOST_DATA)
        found: dict[str, bool] = {}
        size = 0
        for is_file, path, data in self._data_below(folder, deep=deep):
            if found.get(path):
                continue
            if patterns and not any(fnmatchcase(posixpath.basename(path), pattern) for pattern in patterns):
                continue
            size += data
            found[path] = is_file
            if len(found) > most_files or size > most_data:
                held = f"more than {MOST_FILES:,} files" if len(found) > MOST_FILES else f"more than {MOST_DATA >> 20} MiB"
                self.too_large |= {} if few else {folder or "its folder": held}
                return []
        self._list(path for path, is_file in found.items() if is_file)
        if (
            not few
            and not any((tree / folder).is_dir() for tree in self.trees)
            and any((root / folder).is_dir() for root in self._projects())
        ):
            self._gone_through |= {Listed.of(folder, deep=deep, pattern=pattern).name: None for pattern in patterns or ("*",)}
        return sorted(found)

    def gone_through(self) -> Iterable[str]:
        """Give the folders of the project that `data_in` was asked for, as they stand among the files beside a listing."""
        return self._gone_through

    def _list(self, paths: Iterable[str]) -> None:
        """Let files of the project be had without a page."""
        for path in paths:
            if path not in self._listed:
                self._listed.add(path)
                self._known.pop(path, None)

    def is_data(self, path: str) -> bool:
        """Say whether a path is that of a file of the tree that is no Python; one of the project needs no page."""
        folder, _, name = path.rpartition("/")
        if name not in self._names_in(folder) or not is_inside(path) or not is_data(path):
            return False
        files = [file for root in self._projects() if (file := root / path).is_file()]
        if any(file.stat().st_size > MOST_DATA for file in files):
            self.too_large[path] = f"more than {MOST_DATA >> 20} MiB"
            return False
        self._list([path] if files else ())
        return bool(files) or name in self.names(folder)

    def _names_in(self, folder: str) -> frozenset[str]:
        """Give the names of what may lie in a folder: a file may name many that are not there."""
        if folder not in self._entries:
            places = [place for root in self._projects() if (place := root / folder).is_dir()]
            self._entries[folder] = frozenset({*self.names(folder), *(entry.name for place in places for entry in place.iterdir())})
        return self._entries[folder]

    def _data_below(self, folder: str, *, deep: bool) -> Iterator[tuple[bool, str, int]]:
        """Yield the files of a folder of the tree: whether each lies there itself, or as a page, its path and its bytes."""
        places = [(False, place, "_docs.md") for place in self._folders(folder)]
        places += [(True, tree / folder, "") for tree in (*self.trees, *self._projects())]
        for is_file, place, suffix in places:
            for path, size in data_below(place, suffix, deep=deep):
                yield is_file, f"{folder}/{path}".lstrip("/"), size

    def _projects(self) -> Iterator[Path]:
        if self.project is not None and self.about is not None:
            yield self.project

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

    def _pages_of(self, path: str) -> Iterator[Path]:
        """Yield the pages on which a file of the tree may be shown."""
        folder, _, name = path.rpartition("/")
        for place in self._folders(folder):
            for page in (place / f"{name}_docs.md", place / f"{name}_docs.md_docs.md"):
                if page != self.page:
                    yield page

    def _from_page(self, path: str) -> bytes | None:
        return next((found for page in self._pages_of(path) if page.is_file() and (found := _source_on(page, path)) is not None), None)

    def _from_tree(self, path: str) -> bytes | None:
        if not is_inside(path):
            return None
        for tree in self.trees:
            target = tree / path
            if target.is_file():
                self._places[path] = Path(os.path.relpath(target, self.import_path.root)).as_posix()
                return target.read_bytes()
        return None

    def _from_project(self, path: str) -> bytes | None:
        if not (path in self._listed or (PurePosixPath(path).name == "conftest.py" and is_inside(path))):
            return None
        return next((target.read_bytes() for root in self._projects() if (target := root / path).is_file()), None)


def _pages_in(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir() if entry.name.endswith("_docs.md")] if folder.is_dir() else []


@lru_cache(maxsize=16384)
def _digest_on(page: Path, path: str, _changed: int, _size: int) -> str:
    """Give the SHA-256 of a source as a page shows it, which holds until the page changes; empty where it does not."""
    found = _source_on(page, path)
    return sha256(found).hexdigest() if found is not None else ""


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
    about = listings.about(page)
    return b"" if about is not None and (about.source, about.size) == (path, 0) else None
