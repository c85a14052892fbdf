"""Options that conftest files of the sources define, read without running them.

pytest loads at its start the conftest files of the folders that its arguments name: `pytest docs/` knows none of the options of
`tests/conftest.py`, and refuses them, whether they stand on the command line or in `addopts`. The listings' own pytest does know them.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankbook.config import Settings, load
from rankbook.errors import RankbookError

if TYPE_CHECKING:
    import pytest

_CONFTEST = "conftest.py"
_KEYWORDS = frozenset({"action", "const", "default", "dest", "nargs", "choices"})
"""What says how many words an option takes, and where its value goes."""
_TYPES = {"int": int, "float": float, "str": str}


def define(parser: pytest.Parser, words: Iterable[str], root: Path) -> None:
    """Have pytest accept what it does not know of its command line, where a conftest file of the sources defines it.

    Args:
        parser: of the command line.
        words: those that it does not know.
        root: of the project.
    """
    wanted = {word.partition("=")[0] for word in words if word.startswith("-")}
    try:
        settings = load(root)
    except RankbookError:  # said when a page is met
        return
    for path in _conftest_files(settings) if wanted else ():
        for names, keywords in _options(path):
            if wanted & set(names):
                with contextlib.suppress(ValueError, TypeError):  # another file defines it, too; or it means nothing
                    parser.addoption(*names, **keywords)


def _conftest_files(settings: Settings) -> Iterator[Path]:
    for source in settings.sources:
        folder = settings.below_root(source)
        yield from sorted(folder.rglob(_CONFTEST)) if folder.is_dir() else [folder.parent / _CONFTEST]


def _options(path: Path) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Yield the options that a file adds, with what their definition says as a literal."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("addoption", "add_argument"):
            names = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            if names and all(name.startswith("-") for name in names):
                yield names, dict(_said(node.keywords))


def _said(keywords: Iterable[ast.keyword]) -> Iterator[tuple[str, Any]]:
    for each in keywords:
        if each.arg == "type" and isinstance(each.value, ast.Name) and each.value.id in _TYPES:
            yield "type", _TYPES[each.value.id]
        elif each.arg in _KEYWORDS:
            with contextlib.suppress(ValueError):
                yield each.arg, ast.literal_eval(each.value)
