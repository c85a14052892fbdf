"""Installed packages as sources: the files that imports of the tree lead to, read when they are asked for."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rankbook.dotted import is_private
from rankbook.model import PACKAGES, Module
from rankbook.sources.parse import parse_bytes

INSTALLED = "installed"
"""Word of the setting `package-path` for the packages of the interpreter that runs rankbook."""


class Packages(Mapping[str, Module]):
    """The facts of files of packages, by `site-packages/` and their path below the first folder that holds them.

    Args:
        folders: folders that imports are looked for in, the first one first.
    """

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self._starts = [f"{folder}/" for folder in folders]
        self._files: dict[str, Path | None] = {}
        self._modules: dict[str, Module] = {}
        self._below: dict[str, list[str]] = {}
        self.listed: list[str] = []
        """Folders of which it was asked what is in them, whether or not they are there."""

    def __contains__(self, path: object) -> bool:
        return bool(self._starts) and isinstance(path, str) and self._file(path) is not None

    def __getitem__(self, path: str) -> Module:
        known = self._modules.get(path)
        if known is not None:
            return known
        file = self._file(path)
        if file is None:
            raise KeyError(path)
        try:
            data = file.read_bytes()
        except OSError:
            data = b""
        module = self._modules[path] = parse_bytes(path, data)
        return module

    def __iter__(self) -> Iterator[str]:
        """Give the files that have been read."""
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)

    def file(self, path: str) -> Path | None:
        """Give where a file of a package lies on this machine; None when no folder holds it."""
        return self._file(path)

    def _file(self, path: str) -> Path | None:
        if path not in self._files:
            self._files[path] = self._find(path) if path.startswith(PACKAGES) else None
        return self._files[path]

    def below(self, package: str) -> list[str]:
        """Give the modules of a package and of those in it, by their paths; private ones, and what no import finds, are left out.

        Args:
            package: folder of the package, below the folder that holds it.
        """
        if package not in self._below:
            start = next((start for start in self._starts if Path(start, package).is_dir()), "")
            self.listed += [f"{place}{package}" for place in self._starts] if not start else []
            self._below[package] = sorted(self._walk(start, package)) if start else []
        return self._below[package]

    def _walk(self, start: str, package: str) -> Iterator[str]:
        for folder, folders, files in os.walk(f"{start}{package}"):
            self.listed.append(folder)
            folders[:] = sorted(name for name in folders if name.isidentifier() and not is_private(name) and name != "__pycache__")
            modules = (name for name in files if name.endswith(".py") and name[:-3].isidentifier() and not is_private(name))
            yield from (f"{PACKAGES}{folder.removeprefix(start)}/{name}" for name in modules)

    def is_own(self, path: str) -> bool:
        """Tell whether a file of a package is the project's own, and not one that is installed."""
        file = self._file(path)
        return file is not None and not any(file.is_relative_to(folder) for folder in _installed())

    def places(self, path: str) -> list[str]:
        """Give where a file of a package may lie, the first folder first, whether or not it is there."""
        below = path.removeprefix(PACKAGES)
        return [f"{folder}{below}" for folder in self._starts]

    def _find(self, path: str) -> Path | None:
        return next((file for place in self.places(path) if (file := Path(place)).is_file()), None)


def package_folders(root: Path, names: tuple[str, ...]) -> tuple[Path, ...]:
    """Give the folders that the setting `package-path` names.

    Args:
        root: folder that relative names start from.
        names: folders, or the word `installed`.
    """
    folders: list[Path] = []
    for name in names:
        folders += _installed() if name == INSTALLED else [(root / name).resolve()]
    return tuple(dict.fromkeys(folders))


def told_from(root: Path, names: tuple[str, ...]) -> Callable[[str], str]:
    """Give what tells a reader where a file lies: by its path from the root, and one of a package elsewhere by its whole path.

    Args:
        root: folder that relative names start from.
        names: folders in which packages lie, or the word `installed`.
    """
    packages, top = Packages(package_folders(root, names)), root.resolve()

    def told(path: str) -> str:
        file = packages.file(path)
        if file is None:
            return path.removeprefix(PACKAGES)
        return file.relative_to(top).as_posix() if file.is_relative_to(top) else str(file)

    return told


def folders_within(root: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Give those of some folders that lie below the root, by their paths from there.

    Args:
        root: of the project, without links.
        names: folders, below the root or absolute, or the word `installed`.
    """
    folders = (Path(os.path.realpath(root / name)) for name in names if name != INSTALLED)
    return tuple(dict.fromkeys(folder.relative_to(root).as_posix() for folder in folders if root in folder.parents))


def _installed() -> list[Path]:
    paths = sysconfig.get_paths()
    return [Path(paths[key]).resolve() for key in ("purelib", "platlib")]
