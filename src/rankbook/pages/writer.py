"""Pages → files: only what has changed, each at once or not at all, and never over the work of a person."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

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

    def put(self, page: Page) -> Fate:
        """Write a page if it has changed.

        Raises:
            PageError: it cannot be written.
        """
        target = self.out / page.path
        try:
            if self._is_foreign(target):
                return Fate.KEPT
            old = _read(target)
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
        removed = tuple(path for path in paths if not self._is_foreign(self.out / path) and is_generated(_read(self.out / path) or b""))
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

    def _is_foreign(self, target: Path) -> bool:
        """Whether a link or something other than a file stands at a page's place, or a link on the way to it."""
        on_the_way = target.parents[: len(target.relative_to(self.out).parts) - 1]
        return any(folder.is_symlink() for folder in (target, *on_the_way)) or (target.exists() and not target.is_file())

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
    values, _ = front_matter.split(data[:_HEAD].decode(errors="replace"))
    return front_matter.read(values) is not None


def _read(target: Path) -> bytes | None:
    try:
        return target.read_bytes()
    except FileNotFoundError:
        return None


def _replace(target: Path, data: bytes) -> None:
    """Write beside the page and move it into place, so that no reader sees half a page."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".rankbook-{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
