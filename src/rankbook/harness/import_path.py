"""Where imports of listings are looked up besides the tree and what is installed: in the folders that pytest would put on `sys.path`.

They are the folders themselves, not copies, so that data files and compiled modules are where their package expects them. What is imported
from them is part of what a run proves; so its hashes are taken. Where a page shows another text than the file that would be imported, the
tree that is made of the pages goes before the folders: what runs is what the book shows.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder
from pathlib import Path

from msgspec import Struct, field

from rankbook.harness.imported import Imported, nowhere

_PACKAGES = {"site-packages", "dist-packages"}
"""Folders of what is installed for good, which an environment inside a project has, too."""


class ImportPath(Struct, frozen=True, dict=True):
    """Folders of the project in which imports are looked up."""

    root: Path = Path()
    """Root of the project: files are named from there."""
    first: tuple[Path, ...] = ()
    """Folders before all others, as pytest puts them there."""
    last: tuple[Path, ...] = ()
    """Folders behind all others: trees that the user names."""
    watched: tuple[Path, ...] = ()
    """Folders of the project that `PYTHONPATH` names: they are searched anyway, and what comes from there is part of a proof, too."""
    imported: Imported = field(default_factory=Imported)
    """Remembers what was read."""

    @property
    def folders(self) -> tuple[Path, ...]:
        """All of them."""
        return tuple(dict.fromkeys((*self.first, *self.last)))

    @cached_property
    def _not_installed(self) -> frozenset[str]:
        """Folders whose modules this process may know, and that are not where packages are installed."""
        standard = sysconfig.get_path("stdlib")
        behind = sys.path[sys.path.index(standard) :] if standard in sys.path else []  # what `.pth` files name stands there
        kept = {*behind, *os.environ.get("PYTHONPATH", "").split(os.pathsep)}
        return frozenset(map(str, (*self.first, Path.cwd()))) - {os.path.realpath(entry) for entry in kept if entry}

    @cached_property
    def _known(self) -> dict[str, str | None]:
        return {}

    def is_installed(self, name: str) -> bool:
        """Say whether a top-level module can be imported here without any tree of the book, and lies in no folder of the project."""
        return self._place(name) is not None

    def _place(self, name: str) -> str | None:
        """Give the file, or the folder, of a top-level module that is installed; empty for one without, None for what is not."""
        if name not in self._known:
            self._known[name] = self._found(name)
        return self._known[name]

    def _found(self, name: str) -> str | None:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            return None
        if spec is None:
            return None
        places = [*(spec.submodule_search_locations or ()), *([spec.origin] if spec.has_location and spec.origin else [])]
        if not places:
            return ""
        place = os.path.realpath(places[0])
        is_found = str(Path(place).parent) not in self._not_installed and self._own(name) in (None, place)
        return place if is_found or _has_finder(name) else None

    def _own(self, name: str) -> str | None:
        """Give the place of a top-level module of the folders that pytest puts before what is installed, None where none has it."""
        for folder in self.first:
            if (folder / name / "__init__.py").is_file():
                return os.path.realpath(folder / name)
            if (folder / f"{name}.py").is_file():
                return os.path.realpath(folder / f"{name}.py")
        return None

    @property
    def has_editable(self) -> bool:
        """Whether such packages were met."""
        return any(map(self._editable, self._known))

    def _editable(self, name: str) -> str:
        """Give the place of a top-level module that is installed and yet lies in the project, as `pip install --editable` leaves it."""
        place = self._place(name) or ""
        if not place.startswith(f"{self.root}/") or not _PACKAGES.isdisjoint(place.split("/")):
            return ""
        return place

    def hashes(self, files: Mapping[str, bytes], *, installed: bool = True) -> dict[str, str]:
        """Give the SHA-256 of each file of these folders, and of packages that lie in the project, that Python files import in turn.

        Args:
            files: what the files hold, by their paths below the root.
            installed: whether those packages are of interest.
        """
        elsewhere = self._editable if installed else nowhere
        start = f"{self.root}/"
        found = self.imported.hashes(self._all, {f"{start}{path}": data for path, data in files.items()}, elsewhere)
        return {
            place[len(start) :] if place.startswith(start) else Path(os.path.relpath(place, self.root)).as_posix(): digest
            for place, digest in sorted(found.items())
        }

    def absent(self, files: Mapping[str, bytes], found: Iterable[str]) -> Iterator[str]:
        """Yield the files below the root that are not there, and that would be found by imports which find others in these folders.

        Args:
            files: Python files, by their paths below the root.
            found: what they import in turn, as `hashes` names it.
        """
        start = f"{self.root}/"
        places = self.imported.absent(self._all, files.values(), (f"{start}{path}" for path in found))
        return (place.removeprefix(start) for place in places if place.startswith(start))

    def outside(self, files: Mapping[str, bytes]) -> Iterator[str]:
        """Yield the top-level modules that Python files import, directly or in turn, and that are not of the project.

        Args:
            files: what the files hold, by their paths below the root.
        """
        return self.imported.outside(self._all, {f"{self.root}/{path}": data for path, data in files.items()}, self._editable)

    def digest(self, path: str) -> str:
        """Give the SHA-256 of a file below the root; empty where there is none."""
        return self.imported.digest(f"{self.root}/{path}")

    @property
    def below(self) -> tuple[str, ...]:
        """Those of the folders that lie below the root, or are it, as paths from there."""
        return tuple(folder.relative_to(self.root).as_posix() for folder in self.folders if folder.is_relative_to(self.root))

    @cached_property
    def _all(self) -> tuple[str, ...]:
        return tuple(map(str, dict.fromkeys((*self.folders, *self.watched))))


def import_path(root: Path, files: Iterable[Path], pythonpath: Iterable[Path], trees: Iterable[Path], mode: str) -> ImportPath:
    """Give the folders that pytest would put on `sys.path`, and the trees that the user names.

    Args:
        root: of the project.
        files: those that pytest would import, in the order in which their folders are searched; what is not there adds none.
        pythonpath: setting of pytest.
        trees: source trees.
        mode: pytest's `--import-mode`; with `importlib` the import of a file adds no folder.
    """
    added = [] if mode == "importlib" else [_start_of(file) for file in files if file.is_file()]
    settled = [Path(os.path.realpath(folder)) for folder in pythonpath]
    first, last = (settled, added[::-1]) if mode == "append" else ([*added, *settled], [])
    told = [Path(os.path.realpath(entry)) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    watched = tuple(folder for folder in told if folder.is_relative_to(root))
    return ImportPath(root, tuple(dict.fromkeys(first)), tuple(dict.fromkeys((*last, *trees))), watched)


def conftest_files(file: Path, root: Path) -> Iterator[Path]:
    """Yield where the conftest files of a file may lie, the nearest first.

    Args:
        file: of the project.
        root: of the project.
    """
    return (folder / "conftest.py" for folder in file.parents if folder == root or root in folder.parents)


def _start_of(file: Path) -> Path:
    """Give the folder from which a file is imported: the first one upwards that is no package."""
    folder = file.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        folder = folder.parent
    return folder


def _has_finder(name: str) -> bool:
    """Say whether a finder of its own finds a top-level module, as an installation for editing may add one."""
    for finder in sys.meta_path:
        if finder in (BuiltinImporter, FrozenImporter, PathFinder):
            continue
        with suppress(ImportError, ValueError, AttributeError):
            spec = finder.find_spec(name, None)
            itself: object = finder
            if spec is not None and spec.loader is not itself:  # pytest's own finds the tests and loads them
                return True
    return False
