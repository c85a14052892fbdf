"""The private names of pytest that the plugin cannot do without, each with the reason; three more are in rooms below.

- `_pytest.doctest.DoctestTextfile`: the collector that pytest's own plugin makes for a file that matches `--doctest-glob`. It has to be
  told from others to take `*.md` over: dropping the glob or the plugin would change what happens to `*.txt` files.
- `_pytest.pathlib.fnmatch_ex`: how pytest matches `--doctest-glob`; the public `fnmatch` differs for patterns with a slash.
- `_pytest.main.pytest_ignore_collect`: what pytest leaves out; without `norecursedirs` it tells what is left out for another reason.
- `Config._inicfg`: which settings somebody has given a value; `getini` does not tell, and pytest 9 deprecates `inicfg`.
- `_pytest._code.code.ExceptionChainRepr` and its parts: what a failure must be for the short summary and JUnit to show its place and
  message, and to come back whole from a worker of xdist.
- `_pytest.config.builtin_plugins` (in `pytest_settings`): pytest's own plugins, which the command line turns off in this process alone.
- `_pytest.assertion.rewrite.rewrite_asserts` (in `rewriting`): assertions that show both values.
- `_pytest._io.TerminalWriter` (in the harness of test modules): what writes a failure; as a text by itself it loses its first indentation.
- `pytest.Mark(_ispytest=True)`: a mark by name without the check for registered names; the listing's own pytest has made that check.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from _pytest._code.code import ExceptionChainRepr, ReprEntryNative, ReprFileLocation, ReprTraceback
from _pytest.doctest import DoctestTextfile
from _pytest.main import pytest_ignore_collect
from _pytest.pathlib import fnmatch_ex

GIVEN: pytest.StashKey[list[Any]] = pytest.StashKey()
"""The words of the command line, and those options of it that conftest files have defined."""


def is_text_doctest(collector: object) -> bool:
    """Say whether pytest's own doctest plugin made a collector for a text file."""
    return isinstance(collector, DoctestTextfile)


def wanted_by_glob(config: pytest.Config, path: Path) -> bool:
    """Say whether `--doctest-glob` names a file."""
    return any(fnmatch_ex(glob, path) for glob in config.getoption("doctestglob"))


class _Everywhere:
    """The configuration of a run that looks into folders of every name."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def __getattr__(self, name: str) -> Any:
        return getattr(self._config, name)

    def getini(self, name: str) -> Any:
        return [] if name == "norecursedirs" else self._config.getini(name)


def is_set(config: pytest.Config, name: str) -> bool:
    """Say whether somebody has given a setting a value, in a file or by `-o`."""
    return name in getattr(config, "_inicfg" if hasattr(config, "_inicfg") else "inicfg")


def is_ignored_by_name(config: pytest.Config, folder: Path) -> bool:
    """Say whether pytest leaves out a folder for its name alone (`norecursedirs`: `build`, `dist`, …), and not because somebody said so."""
    by_name = any(fnmatch_ex(glob, folder) for glob in config.getini("norecursedirs"))
    everywhere: Any = _Everywhere(config)
    return by_name and not pytest_ignore_collect(folder, everywhere)


def mark(name: str, arguments: tuple[Any, ...]) -> pytest.Mark:
    """Make a mark."""
    return pytest.Mark(name, arguments, {}, _ispytest=True)


def crash(page: str, line: int, reason: str, text: str, again: str) -> ExceptionChainRepr:
    """Make a failure as pytest shows it: `page.md:line` first, then what happened, then the command that runs it again.

    Args:
        page: path of the page.
        line: line on it.
        reason: what the short summary and JUnit say.
        text: what a reader needs to understand it.
        again: the last line.
    """
    place = ReprFileLocation(path=page, lineno=line, message=reason)
    body = f"{text.rstrip()}\n\n" if text.strip() and text.strip() != reason.strip() else ""
    entry = ReprEntryNative([f"{page}:{line}: {reason}\n\n{body}{again}\n"])
    return ExceptionChainRepr([(ReprTraceback([entry], None, style="native"), place, None)])
