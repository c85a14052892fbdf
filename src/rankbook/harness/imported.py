"""Which files of a project Python files import, directly or in turn, and the hashes of these."""

from __future__ import annotations

import ast
import doctest
import functools
import os
from collections.abc import Iterator, Mapping
from hashlib import sha256

from msgspec import Struct, field

from rankbook.syntax import called_imports, plugins_of, syntax_tree

Folders = tuple[str, ...]


class Imports(Struct, frozen=True):
    """What a file imports."""

    names: tuple[str, ...] = ()
    """Dotted names: modules, and what is taken from them, which may be modules too."""
    relative: tuple[tuple[int, str], ...] = ()
    """The same of relative imports, with their dots."""


class _File(Struct):
    seen: tuple[int, int]
    sha256: str
    imports: Imports
    direct: dict[Folders, tuple[str, ...]] = field(default_factory=dict)
    """Files that it imports itself, by the folders in which imports are looked up."""


class Imported:
    """Follows imports through folders, and remembers what it has found for a session; a file that changes is read again."""

    def __init__(self) -> None:
        self._entries: dict[str, frozenset[str]] = {}
        self._places: dict[tuple[str, str], tuple[str, ...]] = {}
        self._files: dict[str, _File] = {}

    def digest(self, file: str) -> str:
        """Give the SHA-256 of a file; empty where there is none."""
        found = self._file(file)
        return found.sha256 if found is not None else ""

    def hashes(self, folders: Folders, files: Mapping[str, bytes]) -> dict[str, str]:
        """Give the SHA-256 of each file below folders that Python files import, directly or in turn, by its path.

        Args:
            folders: in which imports are looked up.
            files: what the files hold, by the path of each.
        """
        found: dict[str, str] = {}
        waiting = [place for path, data in files.items() for place in self._places_of(path, imports_of(data), folders)]
        while waiting:
            place = waiting.pop()
            file = None if place in found else self._file(place)
            if file is not None:
                found[place] = file.sha256
                waiting += self._direct(place, file, folders)
        return found

    def _direct(self, place: str, file: _File, folders: Folders) -> tuple[str, ...]:
        if folders not in file.direct:
            file.direct[folders] = tuple(dict.fromkeys(self._places_of(place, file.imports, folders)))
        return file.direct[folders]

    def _places_of(self, path: str, imports: Imports, folders: Folders) -> Iterator[str]:
        for name in imports.names:
            yield from self._found(folders, name)
        for level, name in imports.relative:
            folder = path
            for _ in range(level):
                folder = os.path.dirname(folder)  # noqa: PTH120 - this runs for each import
            yield from self._below(folder, name)

    def _found(self, folders: Folders, name: str) -> Iterator[str]:
        for folder in folders:
            yield from self._below(folder, name)

    def _below(self, folder: str, name: str) -> tuple[str, ...]:
        """Give the files that the import of a dotted name reads below a folder."""
        known = self._places.get((folder, name))
        if known is None:
            found, place = [], folder
            for part in name.split("."):
                entries = self._names(place)
                if f"{part}.py" in entries:
                    found.append(f"{place}/{part}.py")
                if part not in entries:
                    break
                place = f"{place}/{part}"
                if "__init__.py" in self._names(place):
                    found.append(f"{place}/__init__.py")
            known = self._places[folder, name] = tuple(found)
        return known

    def _names(self, folder: str) -> frozenset[str]:
        if folder not in self._entries:
            try:
                self._entries[folder] = frozenset(os.listdir(folder))  # noqa: PTH208 - names are what is needed
            except (OSError, ValueError):
                self._entries[folder] = frozenset()
        return self._entries[folder]

    def _file(self, place: str) -> _File | None:
        try:
            found = os.stat(place)  # noqa: PTH116 - this runs for each file that a listing imports
            seen = found.st_mtime_ns, found.st_size
            known = self._files.get(place)
            if known is None or known.seen != seen:
                with open(place, "rb") as file:  # noqa: PTH123 - as above
                    data = file.read()
                known = self._files[place] = _File(seen, sha256(data).hexdigest(), imports_of(data))
        except (OSError, ValueError):
            return None
        return known


@functools.lru_cache(maxsize=512)
def imports_of(data: bytes) -> Imports:
    """Read what a Python file imports, or a session with its prompts; nothing of what does not parse."""
    tree = _tree(data)
    names: dict[str, None] = {}
    relative: dict[tuple[int, str], None] = {}
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Import):
            names |= dict.fromkeys(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            told = [name for name in (base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names)) if name]
            if node.level:
                relative |= {(node.level, name): None for name in told}
            else:
                names |= dict.fromkeys(told)
        else:
            called = tuple(called_imports(node))
            relative |= {found: None for found in called if found[0]}
            names |= dict.fromkeys((*plugins_of(node), *(name for level, name in called if not level)))
    return Imports(tuple(names), tuple(relative))


def _tree(data: bytes) -> ast.AST | None:
    try:
        if data.lstrip().startswith(b">>>"):
            examples = doctest.DocTestParser().get_examples(data.decode())
            return syntax_tree("".join(example.source for example in examples))
        return syntax_tree(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
