"""The book while somebody works on it: what is right on disk, on the site, and what is wrong with it."""

from __future__ import annotations

import logging
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path, PurePath

import click
from msgspec import Struct
from msgspec.structs import replace

from rankbook import freshness
from rankbook.config import Settings, load
from rankbook.document import document, survey_tree
from rankbook.errors import RankbookError, bad_yaml
from rankbook.front_matter import OVERVIEWS
from rankbook.pages import INVENTORY, owner
from rankbook.pages.names import FILE_PAGES, FOLDER_PAGES, PICTURE
from rankbook.publish import Docs, Ledgered, finish, stamper
from rankbook.searching import FOLDER as SEARCH
from rankbook.site import checkout
from rankbook.site.addresses import Addresses
from rankbook.site.navigation import listed
from rankbook.site.shell import Shell
from rankbook.terminal import harmless

_LAST = ".rankbook-last"
"""Folder of the site that holds what the engine has built, while it builds anew."""
_OURS = re.compile(
    "|".join(
        [
            *(rf".*{re.escape(end)}" for end in FILE_PAGES.values()),
            *map(re.escape, (*FOLDER_PAGES.values(), PICTURE, INVENTORY)),
            r"suite-.*\.md",
            r"\.rankbook-\d+\.tmp",
        ]
    )
)
"""Names of what `rankbook gen` writes."""


class Opened(Struct, frozen=True):
    """What a build of the engine has left."""

    settings: Settings
    docs: Docs
    shell: Shell
    ledgered: Ledgered
    directories: bool
    """Whether each page of the site is the index of a folder of its own."""
    forge: Callable[[], checkout.Published | None]
    """Finds where the sources are looked after, as they are now."""
    exclude: Callable[[str], bool]
    """Tells which files below the folder of all pages belong to no site."""
    generates: bool
    """Whether the pages are generated from their sources first."""

    @property
    def outline(self) -> dict[str, str]:
        """Titles of the pages that the navigation lists: they are in the shell, which only the engine can build."""
        return {path: stamp.title for path, stamp in listed(self.docs.overviews, 0, OVERVIEWS).items()}


class _Table(Struct, dict=True):
    """What requests are answered from."""

    opened: Opened
    put: Callable[[str], None]
    """Brings one page of the site up to date."""

    @cached_property
    def by_file(self) -> Mapping[str, str]:
        """Paths of pages by the file that each is on the site."""
        docs, addresses = self.opened.docs, Addresses(self.opened.directories)
        return {**{path: path for path in docs.copied}, **{addresses.file(path): path for path in docs.stamps}}

    @cached_property
    def out(self) -> str:
        """Folder of the generated pages."""
        return os.fspath(self.opened.settings.below_root(self.opened.settings.out))

    @cached_property
    def start(self) -> str:
        """What the paths of all pages start with."""
        return os.path.join(self.opened.docs.site.folder, "")  # noqa: PTH118 - a text that is taken from paths


class Live:
    """A book that is served.

    Args:
        log: takes what is said to who runs the server.
    """

    def __init__(self, log: logging.Logger) -> None:
        self.log = log
        self.lock = threading.RLock()
        """Held while the book is brought up to date; who would show a page waits for it."""
        self.mistakes: dict[str, str] = {}
        """What is wrong now, by what has found it."""
        self.last: Opened | None = None
        """What the last build of the engine has left that made a shell."""
        self._table: _Table | None = None
        self._searching = threading.Lock()
        self._reload: Callable[[], None] = lambda: None
        self._engine: Callable[[], None] = lambda: None
        self._seen: tuple[bytes, ...] = ()
        self._begun: tuple[bytes, ...] = ()
        """The settings and the ledger as they were seen when the last build of the engine began."""
        self._at = 0
        """When that was, or the last look began, in nanoseconds."""
        self._others = freshness.Stats()
        """Files without a page of which pages tell, and those in which Git keeps what is checked out, as they were seen."""
        self._published: checkout.Published | None = None
        """Where the sources are looked after."""
        self._is_refused = False
        """Whether the pages could not be generated since the last look began."""
        self._generation = ""
        """Of the pages, when they were last found to be up to date."""
        self._warned: tuple[str, ...] = ()
        self._tried = b""
        """The settings with which the engine could not build, as they were seen."""

    @staticmethod
    def look_at_settings(root: Path) -> bytes:
        """Tell the settings of the project at `root` from what they become."""
        return freshness.look(os.fspath(root), [os.fspath(root / "pyproject.toml")]).seen

    def begin(self, seen: bytes, settings: Settings) -> None:
        """Take notice of what a build of the engine begins with.

        Args:
            seen: the file of the settings, as `look_at_settings` saw it before they were read.
            settings: these.
        """
        self._begun, self._at = (seen, self._state(settings)[1]), time.time_ns()

    def open(self, opened: Opened, seen: tuple[bytes, ...] | None = None) -> None:
        """Serve the pages that a build of the engine has made a shell for.

        Args:
            opened: what it has left.
            seen: the settings and the ledger as they were before it was found; by default as they were when the engine began.
        """
        with self.lock:
            seen = seen or self._begun or self._state(opened.settings)
            old = self._table
            ledgered: Ledgered | None = opened.ledgered
            self._published = opened.forge()
            self._take_notice(opened)
            try:
                _ = opened.ledgered.proof  # now, before a browser asks
            except RankbookError as error:
                self._tell("ledger", error)
                ledgered = None
            else:
                self.mistakes.pop("ledger", None)
            put = stamper(opened.docs, opened.shell, directories=opened.directories, ledgered=ledgered, forge=self._published)
            opened.docs.site.remember(opened.docs, directories=opened.directories)
            self.last, self._table, self._seen, self._tried = opened, _Table(opened, put), seen, b""
            self._drop(old, self._table)
            self._try_again(old, self._table)

    def close(self) -> None:
        """Leave all pages to the engine: its build has made no shell."""
        with self.lock:
            self._forget(self._table.by_file if self._table is not None else ())
            self._table = None

    def connect(self, engine: Callable[[], None], reload: Callable[[], None]) -> None:
        """Name who builds what people wrote, and who tells the browsers."""
        self._engine = engine
        self._reload = reload

    # Building

    def get_ready(self) -> None:
        """Load what the first change will need, while nobody waits."""
        import rankbook.generating
        import rankbook.sharding  # noqa: F401

    def refused(self, error: Exception) -> None:
        """Take notice that the pages cannot be generated."""
        self._is_refused = True
        self._tell("gen", error)

    def build(self) -> None:
        """Let the engine build; what it has built before stays when it cannot."""
        kept = _kept(self.last.docs.site.path if self.last else None)
        with self.lock, self._searching, kept as restore, _heard(self.log) as said:
            try:
                self._engine()
            except Exception as error:  # noqa: BLE001 - a mistake on any page can be of any kind, and the server lives on
                restore()
                self._tell("build", error, said)
            else:
                self.mistakes.pop("build", None)

    def look(self) -> None:
        """Bring the book up to date with what has changed."""
        with self.lock:
            self._is_refused = False
            try:
                shows = self._looked()
            except Exception as error:  # noqa: BLE001 - as above
                shows = self._tell("gen", error)
            else:
                if not self._is_refused:
                    shows |= self.mistakes.pop("gen", None) is not None
        if shows:
            self.log.info("Reloading browsers")
            self._reload()
            self._write_search()

    def _looked(self) -> bool:
        """Do so; tell whether a page may show it."""
        opened = self.last
        if opened is None:
            return False
        self._at = time.time_ns()
        state = self._state(opened.settings)
        if state[0] != self._seen[0] or self._tried or "gen" in self.mistakes:
            if self._tried or load(opened.settings.root) != opened.settings:
                return self._built_anew(state[0])
            self._seen = (state[0], *self._seen[1:])
        is_new = self._generated(opened) if opened.generates else True
        if self._table is None:
            if is_new:
                self.build()
            return is_new
        return self._opened_anew(opened, state) if is_new or state != self._seen or self._have_others_changed(opened) else False

    def _built_anew(self, seen: bytes) -> bool:
        """Let the engine build with other settings; it is not asked again with those with which it could not."""
        if seen == self._tried:
            return False
        self._tried = seen
        self.build()
        return True

    def _generated(self, opened: Opened) -> bool:
        """Bring the pages up to date; tell whether one may have changed, by this, before, or by another process that has done it first."""
        changes = freshness.compare(opened.settings)
        if changes is not None and changes.report is not None:
            before, self._generation = self._generation, changes.manifest.generation
            return before != self._generation
        report = document(opened.settings, changes=changes)
        self._warn(report.warnings)
        return bool(report.changes or (changes and changes.pages))

    def _opened_anew(self, opened: Opened, state: tuple[bytes, ...]) -> bool:
        site = opened.docs.site
        docs = Docs(site, (path for path in _walked(site.folder) if not opened.exclude(path)))
        fresh = replace(opened, docs=docs, ledgered=Ledgered(docs, opened.ledgered, directories=opened.directories))
        if fresh.outline != opened.outline or docs.shell != opened.docs.shell:
            self.build()
            return True
        is_told = fresh.ledgered.state == opened.ledgered.state and fresh.forge() == self._published
        if docs.seen == opened.docs.seen and state == self._seen and is_told:
            self._take_notice(fresh)
            return False
        with suppress(RankbookError):
            finish(docs, directories=opened.directories, ledgered=fresh.ledgered)
        self.open(fresh, state)
        return True

    def _state(self, settings: Settings) -> tuple[bytes, ...]:
        """Tell the settings and the ledger from what they become."""
        ledger = freshness.look(os.fspath(settings.root), [os.fspath(settings.below_root(settings.ledger))])
        return self.look_at_settings(settings.root), ledger.seen

    def _take_notice(self, opened: Opened) -> None:
        """See the files without a page of which pages tell, and those of Git; what changes meanwhile is looked at again."""
        root = opened.settings.root
        _ = opened.ledgered.state  # what it is told by, as it is now
        paths = (*(path for path, *_ in opened.ledgered.beside), *checkout.hangs_on(root))
        self._others = freshness.look(os.fspath(root), paths, self._at)

    def _have_others_changed(self, opened: Opened) -> bool:
        return freshness.look(os.fspath(opened.settings.root), self._others.paths).seen != self._others.seen

    def _write_search(self) -> None:
        with self._searching:
            if self._table is not None:
                opened = self._table.opened
                try:
                    opened.docs.site.write_search(Addresses(opened.directories), partial(survey_tree, opened.settings))
                except (RankbookError, OSError) as error:
                    if str(error) not in self.mistakes.values():
                        self.log.warning("%s", harmless(str(error)))

    def _drop(self, old: _Table | None, new: _Table) -> None:
        """Take away what was made of pages that are gone."""
        if old is not None:
            for file in old.by_file.keys() - new.by_file.keys():
                with suppress(OSError):
                    (new.opened.docs.site.path / file).unlink()

    def _try_again(self, old: _Table | None, new: _Table) -> None:
        """Find out what is wrong still with pages with which something was; of those that are gone, nothing is."""
        wrong = self.mistakes.keys() & old.by_file.keys() if old is not None else set()
        self._forget(wrong - new.by_file.keys())
        for file in wrong & new.by_file.keys():
            self._bring(file, new.by_file[file], new)

    def _forget(self, files: Iterable[str]) -> None:
        """Call nothing wrong with some files of the site."""
        for file in files:
            self.mistakes.pop(file, None)

    def _tell(self, who: str, error: Exception, said: Sequence[str] = ()) -> bool:
        """Say what is wrong, once, beside what the engine has said of it already; tell whether it is new."""
        what = _said(error)
        shown = "\n".join((*said, *(() if any(what in each for each in said) else (what,))))
        if self.mistakes.get(who) == shown:
            return False
        says_it_all = isinstance(error, (RankbookError, SystemExit, click.ClickException))  # the last is the engine's own refusal
        self.log.error("%s", harmless(what), exc_info=None if says_it_all else error)
        self.mistakes[who] = shown  # at once on the pages, which others ask for: the log has it by then
        return True

    def _warn(self, warnings: tuple[str, ...]) -> None:
        for warning in warnings:
            if warning not in self._warned:
                self.log.warning("%s", harmless(warning))
        self._warned = warnings

    # Showing

    def ask(self, file: str) -> None:
        """Bring a file of the site up to date before it is shown.

        Args:
            file: below the folder of the site.
        """
        with self.lock:
            if self._table is None:
                return
            for name in (file, f"{file}/index.html".lstrip("/")):
                path = self._table.by_file.get(name)
                if path is not None:
                    self._bring(name, path, self._table)

    def _bring(self, name: str, path: str, table: _Table) -> None:
        try:
            table.put(path)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a page, the last good one is shown
            if (table.opened.docs.site.folder / path).exists():  # the next look takes away what is gone
                self._tell(name, error)
        else:
            self.mistakes.pop(name, None)

    def is_hidden(self, folder: str, name: str) -> bool:
        """Tell whether a file is no concern of the engine, because it is generated.

        Args:
            folder: that holds it.
            name: of the file.
        """
        table = self._table
        if table is None or not _OURS.fullmatch(name):
            return False
        docs, settings, out = table.opened.docs, table.opened.settings, table.out
        if folder != out and not folder.startswith(out + os.sep):
            return False
        path = os.path.join(folder, name)  # noqa: PTH118 - this runs for each page
        below = path.removeprefix(table.start).replace(os.sep, "/")
        if below in docs.seen:
            return below in docs.stamps or below in docs.copied
        _, source = owner(os.path.relpath(path, out).replace(os.sep, "/"))
        return (settings.root / source).exists()


@contextmanager
def _heard(log: logging.Logger) -> Iterator[list[str]]:
    """Hear what an engine says of mistakes while it builds: an error of its settings says itself no more than that there is one."""
    said: list[str] = []
    hearer = logging.Handler(logging.ERROR)
    hearer.emit = lambda record: None if record.name == log.name else said.append(record.getMessage())  # type: ignore[method-assign]
    engine = logging.getLogger(log.name.partition(".")[0])
    engine.addHandler(hearer)
    try:
        yield said
    finally:
        engine.removeHandler(hearer)


def _said(error: Exception) -> str:
    """Give the words of an error; of one that only says that a build has ended, or that YAML is broken, those of what is behind it."""
    cause = error.__context__ if isinstance(error, SystemExit) and error.__context__ is not None else error
    mark = getattr(cause.__context__, "problem_mark", None)
    if isinstance(cause.__context__, Exception) and mark is not None:
        return str(bad_yaml(cause.__context__, PurePath(mark.name)))
    return str(cause) or type(cause).__name__


def _walked(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder, followlinks=True):
        folders.sort()
        below = os.path.relpath(place, folder).replace(os.sep, "/")
        yield from names if below == "." else (f"{below}/{name}" for name in names)


@contextmanager
def _kept(site: Path | None) -> Iterator[Callable[[], None]]:
    """Keep what the folder of a site holds while an engine builds it anew; what is yielded puts it back."""
    if site is None:
        yield lambda: None
        return
    last = site / _LAST
    files = [path for path in _walked(site) if not path.startswith((".", f"{SEARCH}/"))]
    for path in files:
        (last / path).parent.mkdir(parents=True, exist_ok=True)
        _linked(site / path, last / path)

    def restore() -> None:
        for path in files:
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):
                (last / path).replace(site / path)

    try:
        yield restore
    finally:
        shutil.rmtree(last, ignore_errors=True)


def _linked(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:
        with suppress(OSError):
            shutil.copy2(source, target)
