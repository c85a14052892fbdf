"""Pages → files: only what has changed, each at once or not at all, and never over the work of a person.

Notes that a person wrote on a page move into the page that takes its place, byte for byte (`notes.py`). A page that somebody has edited
elsewhere (`seals.py`) is left as it is, as Git leaves a file with changes that are not committed.
"""

from __future__ import annotations

import contextlib
import enum
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

from msgspec import Struct, field

from rankbook import front_matter
from rankbook.errors import PageError
from rankbook.pages import seals
from rankbook.pages.conflicts import Conflict, conflict_of, may_be_in_conflict, notes_of_sides
from rankbook.pages.inventory import FILE as INVENTORY
from rankbook.pages.notes import Note, may_hold_notes, notes_of, placed, taken_off
from rankbook.pages.render import Page

_HEAD = 16384
"""Bytes of a page in which its front matter ends."""


_GENERATED = b"<!-- rankbook: generated -->"
"""What pictures say at their head."""
_CRLF = b"---\r\n"
_PAGES = (".md", ".svg")
"""Ends of the names of what may be pages, beside the one inventory."""
_ENDING = (".tmp",)
"""End of the names of pages that are being written."""
_BEING_WRITTEN = re.compile(r"\.rankbook-(\d+)\.tmp")
"""Their names, with the process that writes them."""
_INVENTORY = re.compile(rb"# Sphinx inventory version 2\n(?:#[^\n]*\n){3}\x78\x01.*\x03\x00.{4}", re.DOTALL)
"""How ours is compressed: fast, as the first bytes behind the lines tell, and with an end of its own, as its parts are put together."""
_ROOT = "index.md"
"""Name of a book's root page."""


class Fate(enum.StrEnum):
    """What becomes of a page."""

    WRITTEN = "written"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    """Its source is gone."""
    KEPT = "kept"
    """A person made what stands in its place."""
    EDITED = "edited"
    """It was generated, and somebody has edited it since, so it is left as it is."""
    MERGED = "merged"
    """Written in the place of one that Git could not merge, with the notes of both sides."""
    TIDIED = "tidied"
    """Written, and it says the same as before: notes have gone to their places, or blanks and line ends are as they were."""

    @property
    def is_written(self) -> bool:
        """Whether the page has been put in its place."""
        return self in {Fate.WRITTEN, Fate.MERGED, Fate.TIDIED}


Seen = tuple[int, int]
"""Time of change of a file, in nanoseconds, and its size in bytes."""


class Placed(NamedTuple):
    """A page that this run makes, as it was left."""

    path: str
    fate: Fate
    seen: Seen | None
    """Of the file that was written, or read and found the same: what stands there later may be another; None for what was left."""


class Found(Struct):
    """What people and Git have left on pages."""

    notes: list[Note] = field(default_factory=list)
    conflicts: dict[str, Conflict] = field(default_factory=dict)
    """Pages that Git could not merge."""


class Writer(Struct, frozen=True):
    """The folder of all pages."""

    out: Path
    dry: bool = False
    """Whether to tell the fate of pages without changing anything there."""
    staged: Path | None = None
    """Folder that takes the pages that would be written, when nothing is to be changed in `out`."""
    force: bool = False
    """Whether pages are written and removed whatever somebody has edited on them."""
    notes: Mapping[str, tuple[Note, ...]] = field(default_factory=dict)
    """By page, the notes that belong on it."""
    known: frozenset[Note] = frozenset()
    """All notes that were found before any page was written."""
    leaving: frozenset[Note] = frozenset()
    """Those of them that do not stay on their page."""
    untouched: frozenset[str] = frozenset()
    """Pages that Git could not merge, and that nobody has edited besides."""
    _real: set[str] = field(default_factory=set)
    """Folders below `out` to which no link leads, as far as they were looked at."""
    _others: dict[str, bool] = field(default_factory=dict)
    """Whether a folder below `out` holds another book, or lies in one, as far as that was looked at."""

    def put(self, page: Page) -> Placed:
        """Write a page if it has changed, with its notes.

        Raises:
            PageError: it cannot be written, or a note was written on it meanwhile.
        """
        target = self._place(page.path)
        try:
            there = _stat(target)
            if self._is_foreign(page.path, there.st_mode if there else 0):
                return Placed(page.path, Fate.KEPT, None)
            old = _read(target) if there else None
            data = self._finished(page)
            if old == data:
                return Placed(page.path, Fate.UNCHANGED, (there.st_mtime_ns, there.st_size) if there else None)
            fate = Fate.WRITTEN if old is None else self._fate(page.path, old, data)
            if fate.is_written or (fate is Fate.EDITED and self.staged is not None):
                return Placed(page.path, fate, self._write(page.path, data))
            if fate is Fate.EDITED and old is not None:
                self._pass_notes_on(page.path, old)
        except OSError as error:
            if self._is_blocked(page.path):
                return Placed(page.path, Fate.KEPT, None)
            raise PageError(f"cannot write the page: {error.strerror}", where=self.out / page.path) from error
        return Placed(page.path, fate, None)

    def _place(self, path: str) -> str:
        return os.path.join(self.out, path)  # noqa: PTH118 - a path for each of thousands of pages takes its time

    def _finished(self, page: Page) -> bytes:
        """Give a page as it is to stand on disk."""
        if not page.path.endswith(".md"):
            return page.data
        notes = self.notes.get(page.path)
        return (placed(page.data, notes) if notes else page.data) + seals.seal_of(page.data)

    def _fate(self, path: str, old: bytes, data: bytes) -> Fate:
        """Tell what becomes of a page that is there and is to change."""
        conflict = self.conflict_on(path, old)
        if not is_ours(old, conflict):
            return Fate.KEPT
        if not path.endswith(".md"):
            return Fate.WRITTEN
        notes = self._notes_on(path, old, conflict)
        if not self.known.issuperset(notes):
            what = "somebody has written a note on the page meanwhile, so it is left as it is"
            raise PageError(what, where=self.out / path, right="run again")
        if conflict is not None:
            return Fate.MERGED if self.force or path in self.untouched else Fate.EDITED
        if not self.force and seals.is_lost(old, data):
            return Fate.EDITED
        has_same_notes = Counter(map(_said, notes)) == Counter(map(_said, self.notes.get(path, ())))
        return Fate.TIDIED if has_same_notes and seals.says_the_same(old, data) else Fate.WRITTEN

    def _pass_notes_on(self, path: str, data: bytes) -> None:
        """Take the notes that go off a page that is left as it is, and put those on it that come; all else stays, byte for byte."""
        if not path.endswith(".md") or self.conflict_on(path, data) is not None:
            return
        notes = self._notes_on(path, data, None)
        going = [note for note in notes if note in self.leaving]
        there = Counter(_said(note) for note in notes if note not in self.leaving)
        coming = []
        for note in self.notes.get(path, ()):
            coming += [] if there[_said(note)] > 0 else [note]
            there[_said(note)] -= 1
        if going or coming:
            self._write(path, placed(taken_off(data, going), coming))

    def takes_notes(self, path: str) -> bool:
        """Tell whether notes are put on a page, and taken off it, even where it is left as it is."""
        data = self.read(path)
        return data is not None and self.conflict_on(path, data) is None

    def conflict_on(self, path: str, data: bytes) -> Conflict | None:
        """Give what Git left on a page; None for a page without a conflict.

        Args:
            path: of the page.
            data: the page as it stands on disk.
        """
        return conflict_of(data, self.out / path)

    def _notes_on(self, path: str, data: bytes, conflict: Conflict | None) -> tuple[Note, ...]:
        """Read the notes of a page; those of both sides of one that Git could not merge.

        A page whose line ends were all changed, as Git may do, has notes whose line ends were.
        """
        if not may_hold_notes(data):
            return ()
        if conflict is not None:
            return notes_of_sides(conflict, path, self.out / path)
        return notes_of(data.replace(b"\r\n", b"\n") if data.startswith(_CRLF) else data, path, self.out / path)

    def _write(self, path: str, data: bytes) -> Seen | None:
        """Write a file where files go; give what it is like, or None where nothing stands in the folder of all pages."""
        if self.staged is not None:
            _replace(os.fspath(self.staged / path), data)
            return None
        return None if self.dry else _replace(self._place(path), data)

    def put_by_hand(self, path: str, data: bytes | None) -> None:
        """Write a file that is no page of a source, or remove it.

        Args:
            path: below the folder of all pages.
            data: what it is to hold; None to remove it.

        Raises:
            PageError: it cannot be written.
        """
        try:
            old = self.read(path)
            if old == data:
                return
            if data is not None:
                self._write(path, data)
            elif not self.dry:
                self._unlink(path)
        except OSError as error:
            raise PageError(f"cannot write the page: {error.strerror}", where=self.out / path) from error

    def find(self, paths: Iterable[str] | None) -> Found:
        """Read the notes on generated pages, and find those that Git could not merge.

        Args:
            paths: the pages; None for all that are there.

        Raises:
            PageError: a marker of a note is not as it must be, or a page cannot be read.
        """
        found = Found()
        for path in self.pages() if paths is None else paths:
            if not path.endswith(".md") or self._is_of_another(path.rpartition("/")[0]):
                continue
            try:
                data = self.read(path)
            except OSError as error:
                raise PageError(f"cannot read the page: {error.strerror}", where=self.out / path) from error
            if data is None or not (may_hold_notes(data) or may_be_in_conflict(data)):
                continue
            conflict = self.conflict_on(path, data)
            if is_ours(data, conflict):
                found.notes += self._notes_on(path, data, conflict)
                if conflict is not None:
                    found.conflicts[path] = conflict
        return found

    def pages(self) -> Iterator[str]:
        """List all files in the folder of all pages that may be pages."""
        return self._files(_PAGES)

    def pages_on_top(self) -> list[str]:
        """List the files right in the folder of all pages that may be pages."""
        try:
            return sorted(name for name in os.listdir(self.out) if name.endswith(".md"))  # noqa: PTH208 - as above
        except OSError:
            return []

    def read(self, path: str) -> bytes | None:
        """Give a page as it stands on disk; None when there is none, or something other than a file below no link."""
        mode = _mode(self._place(path))
        return _read(self._place(path)) if mode and not self._is_foreign(path, mode) else None

    def sweep(self, made: Iterable[str]) -> dict[str, Fate]:
        """Remove generated pages that this run does not make, and folders that are empty then.

        Args:
            made: pages of this run.

        Returns:
            What became of pages that this run does not make: removed, or left because somebody has edited them.

        Raises:
            PageError: a page cannot be removed.
        """
        keep = frozenset(made)
        fates = self.remove(path for path in sorted(self.pages()) if path not in keep)
        for path in list(self._files(_ENDING)):
            if not self.dry and is_left_behind(path):
                self._unlink(path)
        return fates

    def remove(self, paths: Iterable[str]) -> dict[str, Fate]:
        """Remove those of some pages that are there and were generated, and folders that are empty then.

        Returns:
            What became of them: removed, or left because somebody has edited them.

        Raises:
            PageError: a page cannot be removed.
        """
        fates = {path: self._fate_of_obsolete(path, data) for path in paths if (data := self._generated(path)) is not None}
        self._real.clear()
        for path, fate in fates.items():
            if fate is Fate.REMOVED and not self.dry:
                self._unlink(path)
            elif not self.dry and (data := self.read(path)) is not None:
                self._leave(path, data)
        return fates

    def _leave(self, path: str, data: bytes) -> None:
        try:
            self._pass_notes_on(path, data)
        except OSError as error:
            raise PageError(f"cannot write the page: {error.strerror}", where=self.out / path) from error

    def _fate_of_obsolete(self, path: str, data: bytes) -> Fate:
        if not path.endswith(".md"):
            return Fate.REMOVED
        conflict = self.conflict_on(path, data)
        is_noted = not self.known.issuperset(self._notes_on(path, data, conflict))
        is_edited = path not in self.untouched if conflict is not None else seals.is_edited(data)
        return Fate.EDITED if is_noted or (is_edited and not self.force) else Fate.REMOVED

    def _unlink(self, path: str) -> None:
        try:
            (self.out / path).unlink(missing_ok=True)
            self._prune((self.out / path).parent)
        except OSError as error:
            raise PageError(f"cannot remove the page: {error.strerror}", where=self.out / path) from error

    def _files(self, ends: tuple[str, ...], folder: str = "") -> Iterator[str]:
        """List all files below a folder whose names end so, without following links."""
        try:
            with os.scandir(self._place(folder)) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            return
        for entry in found:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                if not self._is_of_another(path):
                    yield from self._files(ends, path)
            elif (path.endswith(ends) or (path == INVENTORY and ends is _PAGES)) and entry.is_file(follow_symlinks=False):
                yield path

    def _generated(self, path: str) -> bytes | None:
        """Give a page that rankbook made; None for anything else, and for what belongs to another book."""
        is_other = not path.endswith(_PAGES) and path != INVENTORY
        data = None if is_other or self._is_of_another(path.rpartition("/")[0]) else self.read(path)
        return data if data is not None and is_ours(data, self.conflict_on(path, data)) else None

    def _is_of_another(self, folder: str) -> bool:
        """Whether a folder below that of all pages holds another book, or lies within one: none of its pages are ours to remove."""
        if not folder:
            return False
        known = self._others.get(folder)
        if known is None:
            known = self._others[folder] = self._is_of_another(folder.rpartition("/")[0]) or self._is_root(folder)
        return known

    def _is_root(self, folder: str) -> bool:
        """Whether the root page of a book stands in a folder: the one that is about no folder of the sources, but about all of them."""
        try:
            with open(self._place(f"{folder}/{_ROOT}"), "rb") as file:  # noqa: PTH123 - this runs for each folder
                head = file.read(_HEAD)
        except OSError:
            return False
        stamp = front_matter.read(front_matter.split(head.decode("utf-8", errors="replace"))[0]) if head.startswith(b"---") else None
        return stamp is not None and (stamp.page, stamp.source) == ("index", "")

    def is_empty(self, path: str) -> bool:
        """Whether nothing stands in the place of a page, and no link on the way to it."""
        return not (_mode(self._place(path)) or self._is_linked(path.rpartition("/")[0]))

    def is_free(self, path: str) -> bool:
        """Whether a page can be written where none is."""
        return self.is_empty(path) and not self._is_blocked(path)

    def _is_blocked(self, path: str) -> bool:
        """Whether a file stands on the way to a page."""
        folder = path.rpartition("/")[0]
        while folder and not (mode := _mode(self._place(folder))):
            folder = folder.rpartition("/")[0]
        return bool(folder) and not stat.S_ISDIR(mode)

    def what_stands(self, path: str) -> str:
        """Say, as a clause, what stands in the place of a page that cannot be written."""
        mode = _mode(self._place(path))
        if self._is_linked(path.rpartition("/")[0]):
            return "a link leads to its folder"
        if self._is_blocked(path):
            return "a file stands where its folder is to be"
        if stat.S_ISLNK(mode):
            return "it is a link"
        return "a person made it" if stat.S_ISREG(mode) else "it is a folder" if stat.S_ISDIR(mode) else "it is no file"

    def _is_foreign(self, path: str, mode: int) -> bool:
        """Whether a link or something other than a file stands at a page's place, or a link on the way to it."""
        return (mode != 0 and not stat.S_ISREG(mode)) or self._is_linked(path.rpartition("/")[0])

    def _is_linked(self, folder: str) -> bool:
        """Whether a link stands on the way to a folder, or in its place."""
        if not folder or folder in self._real:
            return False
        if self._is_linked(folder.rpartition("/")[0]) or (self.out / folder).is_symlink():
            return True
        self._real.add(folder)
        return False

    def _prune(self, folder: Path) -> None:
        while folder != self.out and not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent


def is_ours(data: bytes, conflict: Conflict | None) -> bool:
    """Whether rankbook made a page, or both sides of one that Git could not merge.

    Args:
        data: the page.
        conflict: what Git left on it; None for a page without a conflict.
    """
    return is_generated(data) if conflict is None else all(is_generated(side.data) for side in conflict.sides)


def _said(note: Note) -> tuple[str, bytes]:
    return note.name, note.text


def is_generated(data: bytes) -> bool:
    """Whether a page says of itself that rankbook made it."""
    if data.startswith((b"<?xml", b"<svg")):
        return _GENERATED in data[:_HEAD]
    if _INVENTORY.fullmatch(data):
        return True
    return front_matter.is_generated(data[:_HEAD], is_cut=len(data) > _HEAD)


def is_left_behind(path: str) -> bool:
    """Whether a file is one that a process was writing when it was killed."""
    found = _BEING_WRITTEN.fullmatch(path.rpartition("/")[2])
    try:
        if found is not None:
            os.kill(int(found[1]), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:  # it is another user's
        return False
    return False


def _stat(target: str) -> os.stat_result | None:
    """Look at what stands at a place, not at what a link leads to; None when nothing does."""
    try:
        return os.lstat(target)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _mode(target: str) -> int:
    """Tell what stands at a place, as `os.stat` does; zero when nothing does."""
    there = _stat(target)
    return there.st_mode if there is not None else 0


def _read(target: str) -> bytes | None:
    try:
        return Path(target).read_bytes()
    except FileNotFoundError:
        return None


def _replace(target: str, data: bytes) -> Seen:
    """Write beside the page and move it into place, so that no reader sees half a page; give what the file is like."""
    folder = os.path.dirname(target)  # noqa: PTH120 - as above
    temporary = f"{folder}/.rankbook-{os.getpid()}.tmp"
    try:
        with _opened(temporary, folder) as file:
            file.write(data)
            file.flush()
            made = os.fstat(file.fileno())
        os.replace(temporary, target)  # noqa: PTH105 - as above
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return made.st_mtime_ns, made.st_size


def _opened(target: str, folder: str) -> BinaryIO:
    """Open a file for writing, in a folder that may have to be made."""
    with contextlib.suppress(FileNotFoundError):
        return open(target, "wb", opener=_no_link)
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - as above
    return open(target, "wb", opener=_no_link)


def _no_link(path: str, flags: int) -> int:
    """Open a file, never what a link leads to that stands in its place."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
