"""What plain pytest leaves out of its run although it is there: files and tests that options, conftest files or plugins name."""

from __future__ import annotations

import inspect
import os
import shlex
from collections.abc import Generator, Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

SAID = "plain pytest leaves it out"
HOOK = "pytest_collection_modifyitems"
IGNORES = "pytest_ignore_collect"


class LeftOut:
    """Plugin of the inner pytest that notes what is left out, and by whom.

    Args:
        root: of the tree.
        path: the listing's file.
        chosen: options by which the project leaves tests or files out.
        file: file of settings that has them.
    """

    def __init__(self, root: Path, path: Path, chosen: tuple[str, ...], file: str) -> None:
        self._root = root
        self._path = path
        self._options = f"{shlex.join(chosen)} in addopts of {file}" if chosen else "an option"
        self._whose: dict[str, str] = {}
        """By node id who has said that a test is left out."""
        self._items: list[pytest.Item] = []

    def items(self) -> Iterator[tuple[pytest.Item, str]]:
        """Yield each test that is left out, with the reason."""
        for item in self._items:
            yield item, f"{SAID}: {self._whose.get(item.nodeid, f'a hook {HOOK}')}"

    def file(self, session: pytest.Session) -> str:
        """Say why the listing's file, or a folder around it, is left out; empty when it is not."""
        conftests = _conftests(session.config.pluginmanager, self._path)
        hooks = session.gethookproxy(self._path.parent)
        above = [folder for folder in self._path.parents if folder.is_relative_to(self._root) and folder != self._root]
        for place in (*reversed(above), self._path):
            whose = _list_that_names(place, conftests)
            if not whose and hooks.pytest_ignore_collect(collection_path=place, config=session.config):
                hooked = ((IGNORES, file) for file, found in conftests if hasattr(found, IGNORES) and not _is_option(place, session.config))
                whose = next(hooked, ("", Path()))
            if whose:
                return f"{SAID}: {f'{whose[0]} of {self._named(whose[1])}' if whose[0] else self._options}"
        return ""

    def pytest_deselected(self, items: Iterable[pytest.Item]) -> None:
        """Note whose hook leaves tests out."""
        callers = (frame.filename for frame in inspect.stack(context=0) if frame.function == HOOK)
        file = next(callers, "")
        whose = f"{HOOK} of {self._named(Path(file))}" if file and not Path(file).is_relative_to(_PYTEST) else self._options
        self._whose |= {item.nodeid: whose for item in items}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, Any, Any]:
        """Note which tests are left out, said or unsaid."""
        before = list(items)
        result = yield
        there = {item.nodeid for item in items}
        self._items = [item for item in before if item.nodeid not in there]
        return result

    def _named(self, file: Path) -> str:
        return file.relative_to(self._root).as_posix() if file.is_relative_to(self._root) else file.name


_PYTEST = Path(inspect.getfile(pytest.Session)).parent
"""Where pytest's own hooks are."""


def _conftests(plugins: pytest.PytestPluginManager, path: Path) -> list[tuple[Path, object]]:
    """Give the conftest files above a file, the nearest first, each with its module."""
    files = ((getattr(plugin, "__file__", None), plugin) for plugin in plugins.get_plugins())
    found = [(Path(file), plugin) for file, plugin in files if isinstance(file, str) and Path(file).name == "conftest.py"]
    return sorted((each for each in found if each[0].parent in path.parents), key=lambda each: -len(each[0].parts))


def _list_that_names(place: Path, conftests: list[tuple[Path, object]]) -> tuple[str, Path] | None:
    """Give the list of a conftest file that names a file or a folder: as for pytest, the nearest file that has such a list counts."""
    above = [(file, found) for file, found in conftests if file.parent in place.parents]
    for name, is_named in (("collect_ignore", _is_same), ("collect_ignore_glob", _is_like)):
        file, entries = next(((file, listed) for file, found in above if (listed := getattr(found, name, None)) is not None), (place, ()))
        if any(is_named(place, file.parent / str(entry)) for entry in entries):
            return name, file
    return None


def _is_option(place: Path, config: pytest.Config) -> bool:
    told = {name: config.getoption(name) or () for name in ("ignore", "ignore_glob")}
    here = config.invocation_params.dir
    return any(_is_same(place, here / each) for each in told["ignore"]) or any(_is_like(place, here / each) for each in told["ignore_glob"])


def _is_same(place: Path, named: Path) -> bool:
    return str(place) == os.path.normpath(named)


def _is_like(place: Path, named: Path) -> bool:
    return fnmatch(str(place), os.path.normpath(named))
