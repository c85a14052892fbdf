"""Which files of a project Python files import, directly or in turn, and the hashes of these."""

from __future__ import annotations

import ast
import doctest
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain

from msgspec import Struct, field

from rankbook.syntax import called_imports, plugins_of, syntax_tree

Folders = tuple[str, ...]
Elsewhere = Callable[[str], str]
"""Gives the file, or the folder, of a top-level module that lies elsewhere; empty for one that is of no interest."""


def nowhere(_name: str) -> str:
    """Tell of no module."""
    return ""


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
    direct: dict[tuple[Folders, bool], tuple[str, ...]] = field(default_factory=dict)
    """Files that it imports itself, by the folders in which imports are looked up, and whether they are elsewhere, too."""


class Imported:
    """Follows imports through folders, and remembers what it has found for a session; a file that changes is read again."""

    def __init__(self) -> None:
        self._entries: dict[str, frozenset[str]] = {}
        self._places: dict[tuple[str, str, bool], tuple[str, ...]] = {}
        self._files: dict[str, _File] = {}

    def digest(self, file: str) -> str:
        """Give the SHA-256 of a file; empty where there is none."""
        found = self._file(file)
        return found.sha256 if found is not None else ""

    def hashes(self, folders: Folders, files: Mapping[str, bytes], elsewhere: Elsewhere) -> dict[str, str]:
        """Give the SHA-256 of each file below folders that Python files import, directly or in turn, by its path.

        Args:
            folders: in which imports are looked up.
            files: what the files hold, by the path of each.
            elsewhere: tells of modules outside of the folders; for the same folders it says the same.
        """
        return {place: file.sha256 for place, file in self._reached(folders, files, elsewhere)}

    def outside(self, folders: Folders, files: Mapping[str, bytes], elsewhere: Elsewhere) -> Iterator[str]:
        """Yield the top-level modules outside of folders that Python files import, directly or in turn, as they are met.

        Args:
            folders: in which imports are looked up.
            files: what the files hold, by the path of each.
            elsewhere: tells of modules outside of the folders that are followed, too.
        """
        met: set[str] = set()
        for imports in chain(map(imports_of, files.values()), (file.imports for _, file in self._reached(folders, files, elsewhere))):
            tops = {name.partition(".")[0] for name in imports.names} - met
            met |= tops
            yield from (top for top in sorted(tops) if not self._has(folders, top) and not elsewhere(top))

    def absent(self, folders: Folders, files: Iterable[bytes], found: Iterable[str]) -> Iterator[str]:
        """Yield the files that are not there, and that imports would find, too, of top-level modules that lie in folders.

        Args:
            folders: in which imports are looked up.
            files: what Python files hold.
            found: other Python files.
        """
        imports = [imports_of(data) for data in files]
        imports += [file.imports for file in map(self._file, found) if file is not None]
        tops = {name.partition(".")[0] for each in imports for name in each.names}
        for top in sorted(tops):
            if self._has(folders, top):
                for folder in folders:
                    if f"{top}.py" not in self._names(folder):
                        yield f"{folder}/{top}.py"
                    if top not in self._names(folder) or "__init__.py" not in self._names(f"{folder}/{top}"):
                        yield f"{folder}/{top}/__init__.py"

    def _has(self, folders: Folders, top: str) -> bool:
        return any(not self._names(folder).isdisjoint((top, f"{top}.py")) for folder in folders)

    def _reached(self, folders: Folders, files: Mapping[str, bytes], elsewhere: Elsewhere) -> Iterator[tuple[str, _File]]:
        """Yield each file below folders that Python files import, directly or in turn."""
        waiting = [place for path, data in files.items() for place in self._places_of(path, imports_of(data), folders, elsewhere)]
        met: set[str] = set()
        while waiting:
            place = waiting.pop()
            file = None if place in met else self._file(place)
            if file is not None:
                met.add(place)
                yield place, file
                waiting += self._direct(place, file, folders, elsewhere)

    def _direct(self, place: str, file: _File, folders: Folders, elsewhere: Elsewhere) -> tuple[str, ...]:
        key = folders, elsewhere is not nowhere
        if key not in file.direct:
            file.direct[key] = tuple(dict.fromkeys(self._places_of(place, file.imports, folders, elsewhere)))
        return file.direct[key]

    def _places_of(self, path: str, imports: Imports, folders: Folders, elsewhere: Elsewhere) -> Iterator[str]:
        for name in imports.names:
            for folder in folders:
                yield from self._below(folder, name)
            if place := elsewhere(name.partition(".")[0]):
                yield from self._below(place, name, is_top=True)
        for level, name in imports.relative:
            folder = path
            for _ in range(level):
                folder = os.path.dirname(folder)  # noqa: PTH120 - this runs for each import
            yield from self._below(folder, name)

    def _below(self, folder: str, name: str, *, is_top: bool = False) -> tuple[str, ...]:
        """Give the files that the import of a dotted name reads below a folder, or from the place of its top-level module."""
        known = self._places.get((folder, name, is_top))
        if known is None:
            top, *parts = name.split(".")
            found = self._placed(folder, parts) if is_top else self._placed_below(folder, [top, *parts])
            known = self._places[folder, name, is_top] = tuple(found)
        return known

    def _placed(self, place: str, parts: Sequence[str]) -> Iterator[str]:
        """Yield the files that the import of parts reads of the module at a place, which is a file or a folder, and below it."""
        if place.endswith(".py"):
            yield place
            return
        if "__init__.py" in self._names(place):
            yield f"{place}/__init__.py"
        yield from self._placed_below(place, parts)

    def _placed_below(self, place: str, parts: Sequence[str]) -> Iterator[str]:
        if not parts:
            return
        entries = self._names(place)
        if f"{parts[0]}.py" in entries:
            yield f"{place}/{parts[0]}.py"
        if parts[0] in entries:
            yield from self._placed(f"{place}/{parts[0]}", parts[1:])

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
