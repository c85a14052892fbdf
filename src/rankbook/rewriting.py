"""Assertions that show both values in scripts and in ranks too.

`pytest` rewrites the asserts of the test modules that it imports itself, but a script is not imported, and a rank imports a test module
again, with nothing to tell why `assert a == b` failed. This file uses a private name of pytest: its rewriter has no public door.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any


def compiled(source: bytes, path: str) -> CodeType:
    """Compile a module with rewritten assertions, or plainly where there is no pytest."""
    tree = ast.parse(source, path)
    try:
        from _pytest.assertion.rewrite import rewrite_asserts
    except ImportError:
        pass
    else:
        rewrite_asserts(tree, source, path)
    return compile(tree, path, "exec", dont_inherit=True)


def is_below(path: str, root: str) -> bool:
    """Whether a file lies in a folder or below it."""
    return os.path.realpath(path).startswith(os.path.realpath(root) + os.sep)


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a module with rewritten assertions; it neither reads nor leaves a cached file, which would be the plain module's."""

    def get_code(self, fullname: str) -> CodeType | None:
        """Compile the module's source."""
        path = self.get_filename(fullname)
        return compiled(self.get_data(path), path)


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules below a folder.

    Args:
        root: the folder.
    """

    def __init__(self, root: str) -> None:
        self.root = root

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a module as Python does, and take it over if it is a source file below the folder."""
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not importlib.machinery.SourceFileLoader or not is_below(str(spec.origin), self.root):
            return None
        spec.loader = Loader(fullname, str(spec.origin))
        return spec


def install(root: str) -> None:
    """Rewrite the assertions of every module below `root` that this process imports from now on, its re-executed main file included."""
    sys.meta_path.insert(0, Finder(root))
    _rewrite_main(root)


def _rewrite_main(root: str) -> None:
    # multiprocessing runs the main file of its parent again by runpy.run_path, which asks no finder; hence this private name of runpy,
    # whose first argument went and whose result shrank to the code alone in Python 3.12.
    import runpy

    plain: Any = runpy._get_code_from_file  # type: ignore[attr-defined]

    def get_code(*arguments: str) -> Any:
        path = os.fspath(arguments[-1])
        result = plain(*arguments)
        if not is_below(path, root):
            return result
        code = compiled(Path(path).read_bytes(), path)
        return (code, *result[1:]) if isinstance(result, tuple) else code

    runpy._get_code_from_file = get_code  # type: ignore[attr-defined]
