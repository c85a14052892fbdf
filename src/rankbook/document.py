"""The documents wing, told once: sources in, pages out."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from rankbook import pages
from rankbook.analyse import analyse
from rankbook.config import Settings
from rankbook.model import Project
from rankbook.pages import Book, Fate, FileTask, FolderView, Page, Writer
from rankbook.sources import discover, parse

Progress = Callable[[str, int, int], None]
"""Told of each step: its name, how much is done, how much there is."""
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_SMALL_TREE = 200
"""Files up to which starting processes costs more time than it saves."""
_CHUNK = 25
"""Files that travel to a process at a time."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a run has done, or would do."""

    sources: int
    pages: int
    """Pages of the book."""
    written: tuple[str, ...]
    """Pages that are new or have changed."""
    unchanged: int
    removed: tuple[str, ...]
    """Pages whose source is gone."""
    kept: tuple[str, ...]
    """Pages not written because a person made what stands in their place."""
    warnings: tuple[str, ...]
    """What a user should know, a sentence each."""
    seconds: Mapping[str, float]
    """Time of each step."""

    @property
    def changes(self) -> tuple[str, ...]:
        """Pages written and removed."""
        return tuple(sorted((*self.written, *self.removed)))


def document(settings: Settings, *, check: bool = False, progress: Progress | None = None) -> Report:
    """Turn the sources into pages, and write what has changed.

    Args:
        settings: what to document, where to and how.
        check: tell what would change, and write nothing.
        progress: told of each step.

    Raises:
        RankbookError: a setting, a source, a template or the folder of the pages is not as it must be.
    """
    clock = _Clock(progress or _silent)
    book = Book(settings.title or settings.root.name, pages.pack_folders(settings))
    pages.check_pack(book.folders)
    writer = Writer(settings.below_root(settings.out), dry=check)
    with clock.step("discover"):
        found = discover(settings)
    with _workers(settings.jobs, len(found.paths)) as workers:
        with clock.step("parse", len(found.paths)) as count:
            modules = list(count(_each(workers, partial(parse, settings.root), found.paths)))
        with clock.step("analyse"):
            project = analyse(modules)
            made = pages.all_pages(project)
        with clock.step("render", len(project.modules) + len(project.folders)) as count:
            make = partial(_make, settings.root, book, writer)
            results = list(count(_each(workers, make, _tasks(project, book))))
    with clock.step("sweep"):
        removed = writer.sweep(made)
    return _report(project, results, removed, found.warnings, clock.seconds)


@dataclass(frozen=True, slots=True)
class _Made:
    """What became of the pages of one file or folder."""

    fates: tuple[tuple[str, Fate], ...]
    warning: str = ""


def _tasks(project: Project, book: Book) -> Iterator[FileTask | FolderView]:
    yield from pages.file_tasks(project)
    yield from pages.folder_views(project, book.title, pages.unlisted_sources(project))


def _make(root: Path, book: Book, writer: Writer, task: FileTask | FolderView) -> _Made:
    """Render and write the pages of one file or folder; this runs in any process."""
    if isinstance(task, FolderView):
        return _put(writer, pages.folder_pages(book, task))
    source = task.module.source
    if not source.sha256:  # it could not be read when its facts were taken, and its page says so
        return _put(writer, pages.file_pages(book, task, None))
    try:
        data = (root / source.path).read_bytes()
    except OSError:
        data = b""
    if pages.is_unchanged(task, data):
        return _put(writer, pages.file_pages(book, task, data))
    return _Made((), f"{source.path} has changed while it was being documented, so its pages are not written; run again")


def _put(writer: Writer, made: Iterable[Page]) -> _Made:
    return _Made(tuple((page.path, writer.put(page)) for page in made))


def _report(
    project: Project, results: Iterable[_Made], removed: tuple[str, ...], warnings: tuple[str, ...], seconds: Mapping[str, float]
) -> Report:
    by_fate: dict[Fate, list[str]] = {fate: [] for fate in Fate}
    changed = []
    for made in results:
        changed += [made.warning] if made.warning else []
        for path, fate in made.fates:
            by_fate[fate].append(path)
    kept = tuple(sorted(by_fate[Fate.KEPT]))
    return Report(
        sources=len(project.modules),
        pages=sum(map(len, by_fate.values())),
        written=tuple(sorted(by_fate[Fate.WRITTEN])),
        unchanged=len(by_fate[Fate.UNCHANGED]),
        removed=removed,
        kept=kept,
        warnings=(*warnings, *changed, *(f"{path} is kept: a person made it, and a page is to stand in its place" for path in kept)),
        seconds=seconds,
    )


def _workers(jobs: int, files: int) -> AbstractContextManager[Executor | None]:
    jobs = jobs or len(os.sched_getaffinity(0))
    if jobs <= 1 or files <= _SMALL_TREE:
        return nullcontext()
    # New processes rather than forks: a caller may have threads.
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))


def _each(workers: Executor | None, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
    """Apply a function to all items in order, here or in the workers, with few chunks under way at a time."""
    if workers is None:
        yield from map(function, items)
        return
    pending: deque[Future[list[_Result]]] = deque()
    rest = iter(items)
    while chunk := list(islice(rest, _CHUNK)):
        pending.append(workers.submit(_apply, function, chunk))
        if len(pending) > 32:
            yield from pending.popleft().result()
    while pending:
        yield from pending.popleft().result()


def _apply(function: Callable[[_Item], _Result], items: list[_Item]) -> list[_Result]:
    return [function(item) for item in items]


def _silent(_step: str, _done: int, _total: int) -> None:
    """Show nothing."""


@dataclass(slots=True)
class _Clock:
    """Takes the time of each step, and tells how far it is."""

    progress: Progress
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str, total: int = 1) -> Iterator[Callable[[Iterable[_Item]], Iterator[_Item]]]:
        """Time a step; what it gives counts the items that pass."""

        def count(items: Iterable[_Item]) -> Iterator[_Item]:
            for done, item in enumerate(items, 1):
                self.progress(name, done, total)
                yield item

        start = time.perf_counter()
        self.progress(name, 0, total)
        yield count
        self.seconds[name] = time.perf_counter() - start
        self.progress(name, total, total)
