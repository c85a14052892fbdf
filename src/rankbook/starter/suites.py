"""Where the tests of a project lie."""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from rankbook.starter import repository
from rankbook.starter.declared import Declared, ini, table, toml

_PATTERNS = ("test_*.py", "*_test.py")
"""Names of test modules, as pytest has them."""
_FOLDERS = ("tests", "test")


class Sources(Struct, frozen=True):
    """What the book of a project is made from."""

    sources: tuple[str, ...]
    """Files and folders, below the root; empty when no tests were found."""
    include: tuple[str, ...] = ()
    """Patterns of the files to take; empty for all."""
    found: str = ""
    """What says so."""
    left_out: tuple[str, ...] = ()
    """Test modules that lie elsewhere, where nothing but the name of a folder tells where the tests are."""


def find_tests(declared: Declared) -> Sources:
    """Find the tests: where pytest is told that they are, in folders of the usual names, or wherever test modules are."""
    root = declared.root
    modules = [path for path in repository.tracked(root, _PATTERNS) if "/." not in f"/{path}"]
    for path, words in _configured(declared):
        folders = tuple(dict.fromkeys(folder for word in words for folder in _expanded(root, word) if _holds(folder, modules)))
        if folders:
            return Sources(folders, _among(folders, modules), f"testpaths in {path}")
    usual = tuple(folder for folder in _FOLDERS if _holds(folder, modules))
    if usual:
        found = "the folder's name" if len(usual) == 1 else "the folders' names"
        return Sources(
            usual, found=found, left_out=tuple(path for path in modules if not path.startswith(tuple(f"{each}/" for each in usual)))
        )
    return _scattered(modules)


def folders_of_modules(root: Path, tests: Sources, projects: Iterable[str] = ()) -> tuple[str, ...]:
    """Name the folders from which tests may import modules of the project: its root, the folders around the tests, and `src` in each.

    Args:
        root: folder of the project.
        tests: where its tests lie.
        projects: folders of it that are projects of their own.
    """
    inside = [PurePosixPath(source) for source in tests.sources if tests.include]
    around = [*inside, *(folder for source in tests.sources for folder in PurePosixPath(source).parents)]
    named = dict.fromkeys(
        str(folder) for each in (PurePosixPath(), *around, *map(PurePosixPath, projects)) for folder in (each, each / "src")
    )
    return tuple(name for name in named if (root / name).is_dir())


def projects_of(declared: Declared, modules: Iterable[str]) -> tuple[str, ...]:
    """Name the folders of the projects that test modules belong to, where the root is none that pip installs; the nearest for each module.

    What lies in a folder of tests is data of tests, whatever it looks like.
    """
    if declared.is_package:
        return ()
    above = {parents: None for path in modules if len(parents := tuple(map(str, PurePosixPath(path).parents))) > 1}
    packages = {name for parents in above for name in parents[:-1] if not _of_tests(name) and Declared(declared.root / name).is_package}
    return tuple(sorted({near for parents in above if (near := next((name for name in parents if name in packages), ""))}))


def folders_of_tests(modules: Iterable[str]) -> tuple[str, ...]:
    """Name the folders in which test modules lie, the outermost whose name says that it is one of tests."""
    return tuple(sorted({_outermost(path.rpartition("/")[0]) for path in modules}))


def _outermost(folder: str) -> str:
    parts = folder.split("/")
    return "/".join(parts[: parts.index(named) + 1]) if (named := _of_tests(folder)) else folder or "."


def _among(folders: Iterable[str], modules: Iterable[str]) -> tuple[str, ...]:
    """Name the folders of tests where one that pytest is told of is a package with its tests in folders below; empty for no such one."""
    if all(_of_tests(folder) for folder in folders):
        return ()
    inside = [_of_tests(path.rpartition("/")[0]) for path in modules if any(path.startswith(f"{folder}/") for folder in folders)]
    return tuple(sorted(set(inside))) if all(inside) else ()


def _of_tests(folder: str) -> str:
    """Give the first part of a path that names a folder of tests; empty when none does."""
    return next((part for part in folder.split("/") if fnmatch.fnmatch(part, "test*")), "")


def _holds(folder: str, modules: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for path in modules)


def _expanded(root: Path, word: str) -> Iterator[str]:
    """Give what a word of `testpaths` stands for, below the root."""
    try:
        found = sorted(root.glob(word.rstrip("/"))) if PurePosixPath(word).name else []
    except (ValueError, NotImplementedError):
        return
    for path in found:
        resolved = path.resolve()
        if resolved.is_relative_to(root) and resolved != root:
            yield resolved.relative_to(root).as_posix()


def _configured(declared: Declared) -> Iterator[tuple[str, list[str]]]:
    """Yield the files in which pytest's `testpaths` stand, in its order, with the words."""
    root = declared.root
    for name in ("pytest.toml", ".pytest.toml"):
        yield name, _words_of(table(toml(root / name), "pytest").get("testpaths"))
    for name in ("pytest.ini", ".pytest.ini"):
        yield name, _words_of(ini(root / name).get("pytest", "testpaths", fallback=""))
    for names in (("tool", "pytest"), ("tool", "pytest", "ini_options")):
        yield "pyproject.toml", _words_of(table(declared.pyproject, *names).get("testpaths"))
    yield "tox.ini", _words_of(ini(root / "tox.ini").get("pytest", "testpaths", fallback=""))
    yield "setup.cfg", _words_of(declared.setup_cfg.get("tool:pytest", "testpaths", fallback=""))


def _words_of(value: Any) -> list[str]:
    if isinstance(value, list):
        return [word for word in value if isinstance(word, str)]
    try:
        return shlex.split(value) if isinstance(value, str) else []
    except ValueError:
        return []


def _scattered(modules: list[str]) -> Sources:
    """Take the folders that hold test modules somewhere below; of them only the folders of tests, where all modules are in such."""
    found = "the names of test modules"
    inside = [_of_tests(path.rpartition("/")[0]) for path in modules]
    folders = tuple(dict.fromkeys(path.partition("/")[0] for path in modules))
    return Sources(folders, tuple(sorted(set(inside))) if all(inside) else (), found if modules else "")
