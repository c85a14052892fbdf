"""Folders that a listing goes through, as they stand among the files beside it: a file that is new there is one beside it, too."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

LISTED = " [listed]"
"""What stands behind a folder and a pattern, where the files of the folder are meant that fit it."""
MOST_FILES = 2_000
"""Files that stand beside a listing because it goes through their folder; of a larger folder none does."""
_DEEP = "**"


class Listed(NamedTuple):
    """A folder, and which of its files are meant."""

    folder: str
    """Below the root; empty for the root itself."""
    pattern: str
    """Of names of files in the folder; `**` for all that lie anywhere below it."""

    @classmethod
    def of(cls, folder: str, *, deep: bool, pattern: str = "*") -> Listed:
        """Name the files of a folder, or all below it."""
        return cls(folder, _DEEP if deep else pattern)

    @classmethod
    def read(cls, name: str) -> Listed:
        """Read what stands among the files beside a listing."""
        folder, _, pattern = name.removesuffix(LISTED).rpartition("/")
        return cls(folder, pattern)

    @property
    def name(self) -> str:
        """What stands among the files beside a listing."""
        return f"{self.folder}/{self.pattern}{LISTED}"

    def files(self, root: Path) -> Iterator[str]:
        """Yield the files that are there, below the root."""
        is_deep = self.pattern == _DEEP
        for path, _ in data_below(root / self.folder, deep=is_deep):
            if is_deep or fnmatchcase(path, self.pattern):
                yield posixpath.join(self.folder, path)

    def folders(self, root: Path) -> Iterator[str]:
        """Yield the folders that hold them, each with a slash at its end."""
        for place, below, _ in _walk(root / self.folder, deep=self.pattern == _DEEP):
            del below
            yield f"{os.path.relpath(place, root)}/"

    def holds(self, path: str) -> bool:
        """Tell whether a file that is there is meant."""
        folder, name = posixpath.split(path)
        if self.pattern != _DEEP:
            return folder == self.folder and fnmatchcase(name, self.pattern)
        start = f"{self.folder}/" if self.folder else ""
        return path.startswith(start) and all(map(_is_gone_into, folder.removeprefix(start.rstrip("/")).split("/")))


def is_data(path: str) -> bool:
    """Tell whether a file is no Python, which only an import brings beside a listing."""
    return not path.endswith((".py", ".pyc"))


def data_below(folder: Path, suffix: str = "", *, deep: bool) -> Iterator[tuple[str, int]]:
    """Yield the files of a folder that are no Python and whose names end so, without that end, by their paths from there, with their bytes.

    Args:
        folder: where they lie.
        suffix: end of their names.
        deep: whether what is in folders below it counts.
    """
    for place, _, names in _walk(folder, deep=deep):
        for name in names:
            file = Path(place, name)
            if name.endswith(suffix) and is_data(name.removesuffix(suffix)) and file.is_file():
                yield file.relative_to(folder).as_posix().removesuffix(suffix), file.stat().st_size


def _walk(folder: Path, *, deep: bool) -> Iterator[tuple[str, list[str], list[str]]]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if deep and _is_gone_into(name)]
        yield place, folders, names


def _is_gone_into(name: str) -> bool:
    return name != "__pycache__" and not name.startswith(".")
