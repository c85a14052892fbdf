"""What pytest takes for tests, and where it has them import from: patterns and folders of the project's configuration."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct

from rankbook.pytest_settings import DOCTESTS, given_always, settings_in
from rankbook.syntax import syntax_tree


class Rules(Struct, frozen=True):
    """Patterns by which pytest collects, and what else it is told of where tests and modules are."""

    files: tuple[str, ...] = ("test_*.py", "*_test.py")
    classes: tuple[str, ...] = ("Test",)
    """Beginnings of names, or patterns."""
    functions: tuple[str, ...] = ("test",)
    """Beginnings of names, or patterns."""
    doctests: bool = False
    """Whether pytest is always told to collect the examples of docstrings, too: `--doctest-modules`."""
    pythonpath: tuple[str, ...] = ()
    """Folders that pytest puts on the path, below the root or absolute."""
    skips_empty_sets: bool = True
    """Whether pytest skips a test whose set of parameters is empty."""
    goes_deep: bool = True
    """Whether pytest takes what a fixture asks for before the next fixture, as it does from 9.1 on: the ids of cases have that order."""

    def holds_doctests(self, path: str, text: str) -> bool:
        """Tell whether pytest collects examples of the docstrings of a file of Python."""
        if not (self.doctests and _PROMPT in text and path.rpartition("/")[2] not in _NEVER_IMPORTED):
            return False
        try:
            nodes = ast.walk(syntax_tree(text))
        except (SyntaxError, ValueError, RecursionError):
            return False
        return any(_PROMPT in (ast.get_docstring(node, clean=False) or "") for node in nodes if isinstance(node, _DOCUMENTED))

    def is_test_file(self, path: str) -> bool:
        """Tell whether pytest collects plain functions and classes of a file, as it comes."""
        name = path.rpartition("/")[2]
        return any(fnmatchcase(f"/{path}" if "/" in pattern else name, _anchored(pattern)) for pattern in self.files)

    def is_test_class(self, name: str) -> bool:
        """Tell whether pytest takes a plain class for one that holds tests."""
        return _matches(name, self.classes)

    def is_test_function(self, name: str) -> bool:
        """Tell whether pytest takes a function for a test."""
        return _matches(name, self.functions)


MAINS = ("unittest.main", "torch.testing._internal.common_utils.run_tests")
"""What the main guard of a file calls to have its tests run, or those of them that the command line names."""
ABSL = tuple(f"parameterized.{name}" for name in ("parameters", "named_parameters", "product"))
"""How the full names of the decorators of `absl.testing.parameterized` end."""
GENERATING_HOOK = "pytest_generate_tests"
"""Function of a file, of a conftest file or of a class that parametrises tests."""
SET_UPS = frozenset({"setUp", "setUpClass", "asyncSetUp", "setup_method", "setup_class"})
"""Methods that run before each test of a class, or before all, and may skip them."""
_PROMPT = ">>> "
"""What an example begins with."""
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_NEVER_IMPORTED = ("setup.py", "__main__.py")
"""Files whose examples pytest leaves out."""
USUAL = Rules()
"""The rules of a project that has none of its own."""


def rules_of(root: Path) -> Rules:
    """Read the patterns of the project at `root`, from the file that pytest would read; one that cannot be read has none.

    Args:
        root: folder with `pytest.ini`, `pyproject.toml`, `tox.ini` or `setup.cfg`; it may lack them all.
    """
    return _rules(settings_in(root))


def _rules(table: Mapping[str, Any]) -> Rules:
    return Rules(
        files=_words(table.get("python_files")) or USUAL.files,
        classes=_words(table.get("python_classes")) or USUAL.classes,
        functions=_words(table.get("python_functions")) or USUAL.functions,
        doctests=DOCTESTS in given_always(table),
        pythonpath=_words(table.get("pythonpath")),
        skips_empty_sets=table.get("empty_parameter_set_mark") in (None, "", "skip"),
        goes_deep=_version() >= (9, 1),
    )


@cache
def _version() -> tuple[int, ...]:
    """Give the version of the installed pytest, without importing it; the newest that is known where none is found."""
    found = find_spec("pytest")
    try:
        text = Path(found.origin or "").parent.with_name("_pytest").joinpath("_version.py").read_text() if found is not None else ""
    except OSError:
        text = ""
    said = re.search(r"version = '(\d+)\.(\d+)", text)
    return (int(said[1]), int(said[2])) if said else (9, 2)


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.split())
    return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list) else ()


def _anchored(pattern: str) -> str:
    return f"*/{pattern}" if "/" in pattern else pattern


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(name.startswith(pattern) or fnmatchcase(name, pattern) for pattern in patterns)
