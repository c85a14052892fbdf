"""Which files of the tree the includes and imports of languages other than Python name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from posixpath import normpath

from rankbook.analyse.reads import Reads

_C_FAMILY = ("c", "cpp", "cuda", "metal", "objective-c", "objective-c++")
_SCRIPTS = (".js", ".mjs", ".ts", ".tsx", "/index.js", "/index.ts")
_VARIABLE = re.compile(r"^.*[})]/")
"""A folder that only a run can tell: `${CMAKE_CURRENT_LIST_DIR}/`, `$(dirname "$0")/`."""
_MOST_SAME = 64
"""Files of one name among which the nearest is looked for."""


def _as_written(written: str) -> tuple[str, ...]:
    return (written,)


def _java(written: str) -> tuple[str, ...]:
    return (written.replace(".", "/") + ".java",)


def _script(written: str) -> tuple[str, ...]:
    return (written, *(written + end for end in _SCRIPTS)) if written.startswith(".") else ()


def _label(written: str) -> tuple[str, ...]:
    folder, _, name = written.rpartition(":")
    return (
        (f"{folder[2:]}/{name}".lstrip("/") if folder.startswith("//") else f"./{name}",) if not folder or folder.startswith("//") else ()
    )


def _cmake(written: str) -> tuple[str, ...]:
    name = _VARIABLE.sub("", written)
    return (name, f"{name}/CMakeLists.txt", f"{name}.cmake")


def _shell(written: str) -> tuple[str, ...]:
    return (_VARIABLE.sub("", written),)


_SPELLINGS: Mapping[str, Callable[[str], tuple[str, ...]]] = {
    **dict.fromkeys((*_C_FAMILY, "rst"), _as_written),
    "java": _java,
    "javascript": _script,
    "typescript": _script,
    "starlark": _label,
    "cmake": _cmake,
    "bash": _shell,
}
"""Paths that an import may mean, by language; what has no row names no file."""


class Includes:
    """Looks included files up by their paths.

    Args:
        paths: files of the tree.
        reads: notes what is looked for.
    """

    def __init__(self, paths: frozenset[str], reads: Reads) -> None:
        self._paths = paths
        self._reads = reads
        self._by_name: dict[str, list[str]] = {}

    def target(self, path: str, language: str, written: str, *, is_system: bool = False) -> str | None:
        """Find the file that an include names: below the folder of the file, below the root, then the nearest whose path ends so.

        Args:
            path: file that includes.
            language: its language.
            written: what it includes, as written.
            is_system: whether it is not looked for below the folder of the file: `#include <x>`.
        """
        spell = _SPELLINGS.get(language)
        folder = path.rpartition("/")[0]
        for spelling in spell(written) if spell else ():
            self._reads.ask(spelling.rpartition("/")[2].rpartition(".")[0])
            for place in _places("" if is_system else folder, spelling):
                if place in self._paths:
                    return place
            found = None if "/" not in spelling or spelling.startswith(".") else self._nearest(folder, spelling)
            if found is not None:
                return found
        return None

    def _nearest(self, folder: str, spelling: str) -> str | None:
        end = "/" + spelling
        same = [path for path in self._named(spelling.rpartition("/")[2]) if path.endswith(end)][:_MOST_SAME]
        return min(same, key=lambda path: (-_common(folder, path), len(path), path)) if same else None

    def _named(self, name: str) -> Iterable[str]:
        if not self._by_name:
            for path in sorted(self._paths):
                self._by_name.setdefault(path.rpartition("/")[2], []).append(path)
        return self._by_name.get(name, ())


def _places(folder: str, spelling: str) -> Iterator[str]:
    near = normpath(f"{folder}/{spelling}" if folder else spelling)
    yield near
    if not spelling.startswith("."):
        yield normpath(spelling)


def _common(folder: str, path: str) -> int:
    """Count the folders that two paths share from the root."""
    count = 0
    for mine, other in zip(folder.split("/"), path.split("/"), strict=False):
        if mine != other:
            break
        count += 1
    return count
