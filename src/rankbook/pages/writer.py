"""Pages → files: only what has changed, each at once or not at all, and never over the work of a person."""

from __future__ import annotations

import contextlib
import enum
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from rankbook import front_matter
from rankbook.errors import PageError
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


@dataclass(frozen=True, slots=True)
class Writer:
    """The folder of all pages."""

    out: Path
    dry: bool = False
    """Whether to tell the fate of pages without changing anything."""
    _real: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    """Folders below `out` to which no link leads, as far as they were looked at."""

    def put(self, page: Page) -> Fate:
        """Write a page if it has changed.

        Raises:
            PageError: it cannot be written.
        """
        target = self.out / page.path
        try:
            mode = _mode(target)
            if self._is_foreign(page.path, mode):
                return Fate.KEPT
            old = _read(target) if mode else None
            if old == page.data:
                return Fate.UNCHANGED
            if old is not None and not is_generated(old):
                return Fate.KEPT
            if not self.dry:
                _replace(target, page.data)
        except OSError as error:
            raise PageError(f"cannot write the page: {error.strerror}", where=target) from error
        return Fate.WRITTEN

    def sweep(self, made: Iterable[str]) -> tuple[str, ...]:
        """Remove generated pages that this run does not make, and folders that are empty then.

        Args:
            made: pages of this run.

        Returns:
            The removed pages.

        Raises:
            PageError: a page cannot be removed.
        """
        keep = frozenset(made)
        return self.remove(path for path in sorted(self._pages()) if path not in keep)

    def remove(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Remove those of some pages that are there and were generated, and folders that are empty then.

        Returns:
            The removed pages.

        Raises:
            PageError: a page cannot be removed.
        """
        removed = tuple(path for path in paths if self._is_generated(path))
        self._real.clear()
        for path in () if self.dry else removed:
            try:
                (self.out / path).unlink()
                self._prune((self.out / path).parent)
            except OSError as error:
                raise PageError(f"cannot remove the page: {error.strerror}", where=self.out / path) from error
        return removed

    def _pages(self) -> Iterator[str]:
        """List all files below the folder that may be pages, without following links."""
        for folder, _, names in os.walk(self.out):
            for name in names:
                path = Path(folder, name)
                if name.endswith((".md", ".svg", ".inv")) and not path.is_symlink() and path.is_file():
                    yield path.relative_to(self.out).as_posix()

    def _is_generated(self, path: str) -> bool:
        target = self.out / path
        mode = _mode(target)
        return mode != 0 and not self._is_foreign(path, mode) and is_generated(_read(target) or b"")

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


def _mode(target: Path) -> int:
    """Tell what stands at a place, as `os.stat` does; zero when nothing does."""
    try:
        return target.lstat().st_mode
    except FileNotFoundError:
        return 0


def _read(target: Path) -> bytes | None:
    try:
        return target.read_bytes()
    except FileNotFoundError:
        return None


def _replace(target: Path, data: bytes) -> None:
    """Write beside the page and move it into place, so that no reader sees half a page."""
    temporary = target.with_name(f".rankbook-{os.getpid()}.tmp")
    try:
        with _opened(temporary) as file:
            file.write(data)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _opened(target: Path) -> BinaryIO:
    """Open a file for writing, in a folder that may have to be made."""
    with contextlib.suppress(FileNotFoundError):
        return target.open("wb")
    target.parent.mkdir(parents=True, exist_ok=True)
    return target.open("wb")
