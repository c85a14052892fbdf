"""Pages → files: only what has changed, each at once or not at all, and never over the work of a person.

Notes that a person wrote on a page move into the page that takes its place, byte for byte (`notes.py`). A page that somebody has edited
elsewhere (`seals.py`) is left as it is, as Git leaves a file with changes that are not committed.
"""

from __future__ import annotations

import contextlib
import enum
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct, field

from rankbook import front_matter
from rankbook.errors import PageError
from rankbook.pages import seals
from rankbook.pages.notes import MARK, Note, notes_of, placed
from rankbook.pages.render import Page

_HEAD = 16384
"""Bytes of a page in which its front matter ends."""


_GENERATED = b"<!-- rankbook: generated -->"
"""What pictures say at their head."""
_INVENTORY = b"# Sphinx inventory version 2"
"""What only tools write."""


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
    _real: set[str] = field(default_factory=set)
    """Folders below `out` to which no link leads, as far as they were looked at."""

    def put(self, page: Page) -> Fate:
        """Write a page if it has changed, with its notes.

        Raises:
            PageError: it cannot be written, or a note was written on it meanwhile.
        """
        target = self._place(page.path)
        try:
            mode = _mode(target)
            if self._is_foreign(page.path, mode):
                return Fate.KEPT
            old = _read(target) if mode else None
            data = self._finished(page)
            if old == data:
                return Fate.UNCHANGED
            if old is not None and not is_generated(old):
                return Fate.KEPT
            fate = Fate.EDITED if old is not None and self._is_at_risk(page.path, old, data) else Fate.WRITTEN
            if fate is Fate.WRITTEN or self.staged is not None:
                self._write(page.path, data)
        except OSError as error:
            raise PageError(f"cannot write the page: {error.strerror}", where=self.out / page.path) from error
        return fate

    def _place(self, path: str) -> str:
        return os.path.join(self.out, path)  # noqa: PTH118 - a path for each of thousands of pages takes its time

    def _finished(self, page: Page) -> bytes:
        """Give a page as it is to stand on disk."""
        if not page.path.endswith(".md"):
            return page.data
        notes = self.notes.get(page.path)
        return (placed(page.data, notes) if notes else page.data) + seals.seal_of(page.data)

    def _is_at_risk(self, path: str, old: bytes, data: bytes) -> bool:
        """Whether what somebody has edited on a page would be lost."""
        if not path.endswith(".md"):
            return False
        if MARK in old and not self.known.issuperset(notes_of(old, path, self.out / path)):
            raise PageError("somebody has written a note on the page meanwhile, so it is left as it is", where=path, right="run again")
        return not self.force and seals.is_lost(old, data)

    def _write(self, path: str, data: bytes) -> None:
        if self.staged is not None:
            _replace(os.fspath(self.staged / path), data)
        elif not self.dry:
            _replace(self._place(path), data)

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

    def find_notes(self, paths: Iterable[str] | None) -> list[Note]:
        """Read the notes on generated pages.

        Args:
            paths: the pages; None for all that are there.

        Raises:
            PageError: a marker of a note is not as it must be, or a page cannot be read.
        """
        found: list[Note] = []
        for path in self._pages() if paths is None else paths:
            if path.endswith(".md"):
                data = self._noted(path)
                found += notes_of(data, path, self.out / path) if data else ()
        return found

    def _noted(self, path: str) -> bytes | None:
        """Give a generated page that may hold notes."""
        try:
            data = self.read(path)
        except OSError as error:
            raise PageError(f"cannot read the page: {error.strerror}", where=self.out / path) from error
        return data if data is not None and MARK in data and is_generated(data) else None

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
        return self.remove(path for path in sorted(self._pages()) if path not in keep)

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
        return fates

    def _fate_of_obsolete(self, path: str, data: bytes) -> Fate:
        if not path.endswith(".md"):
            return Fate.REMOVED
        is_noted = MARK in data and not self.known.issuperset(notes_of(data, path, self.out / path))
        is_edited = not self.force and (seen := seals.look(data)) is not None and bool(seen.edited)
        return Fate.EDITED if is_noted or is_edited else Fate.REMOVED

    def _unlink(self, path: str) -> None:
        try:
            (self.out / path).unlink()
            self._prune((self.out / path).parent)
        except OSError as error:
            raise PageError(f"cannot remove the page: {error.strerror}", where=self.out / path) from error

    def _pages(self, folder: str = "") -> Iterator[str]:
        """List all files below a folder that may be pages, without following links."""
        try:
            with os.scandir(self._place(folder)) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            return
        for entry in found:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from self._pages(path)
            elif path.endswith((".md", ".svg", ".inv")) and entry.is_file(follow_symlinks=False):
                yield path

    def _generated(self, path: str) -> bytes | None:
        """Give a page that rankbook made; None for anything else."""
        data = self.read(path)
        return data if data is not None and is_generated(data) else None

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


def is_generated(data: bytes) -> bool:
    """Whether a page says of itself that rankbook made it."""
    if data.startswith((b"<?xml", b"<svg")):
        return _GENERATED in data[:_HEAD]
    if data.startswith(_INVENTORY):
        return True
    return front_matter.is_generated(data[:_HEAD], is_cut=len(data) > _HEAD)


def _mode(target: str) -> int:
    """Tell what stands at a place, as `os.stat` does; zero when nothing does."""
    try:
        return os.lstat(target).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _read(target: str) -> bytes | None:
    try:
        return Path(target).read_bytes()
    except FileNotFoundError:
        return None


def _replace(target: str, data: bytes) -> None:
    """Write beside the page and move it into place, so that no reader sees half a page."""
    folder = os.path.dirname(target)  # noqa: PTH120 - as above
    temporary = f"{folder}/.rankbook-{os.getpid()}.tmp"
    try:
        with _opened(temporary, folder) as file:
            file.write(data)
        os.replace(temporary, target)  # noqa: PTH105 - as above
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _opened(target: str, folder: str) -> BinaryIO:
    """Open a file for writing, in a folder that may have to be made."""
    with contextlib.suppress(FileNotFoundError):
        return open(target, "wb", opener=_no_link)
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - as above
    return open(target, "wb", opener=_no_link)


def _no_link(path: str, flags: int) -> int:
    """Open a file, never what a link leads to that stands in its place."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
