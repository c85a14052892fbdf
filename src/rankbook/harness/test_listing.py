"""Which listings are test modules; told without pytest, which only a run of their tests needs."""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Iterator, Mapping
from importlib import metadata

from rankbook.collecting import Rules
from rankbook.harness import script
from rankbook.languages import by_fence
from rankbook.listing import Listing
from rankbook.syntax import syntax_tree

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def preloaded() -> Iterator[str]:
    """Name the modules that pytest imports whenever it starts: its own, and the plugins that are installed."""
    import _pytest

    yield from (f"_pytest.{module.name}" for module in pkgutil.iter_modules(_pytest.__path__) if not module.name.startswith("__"))
    yield from (entry.module for entry in metadata.entry_points(group="pytest11") if not entry.module.startswith("rankbook."))


def accepts(listing: Listing, rules: Rules) -> bool:
    """Say whether a listing is a test module: by its file name as pytest does, else by what it defines."""
    language = by_fence(listing.language)
    if language is None or language.name != "python":
        return False
    if listing.about is not None:
        source = listing.about.source
        return rules.is_test_file(source) or (rules.holds_doctests(source, listing.text) and not script.accepts(listing))
    try:
        statements = list(_statements(syntax_tree(listing.data())))
    except (SyntaxError, ValueError, RecursionError):
        return False
    classes = {node.name: node for node in statements if isinstance(node, ast.ClassDef)}
    return any(_is_test(node, classes) for node in statements)


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a module, also those below `if`, `try`, `with` and the like, but none of a function or a class."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case) and not isinstance(child, _SCOPES):
            yield from _statements(child)


def _is_test(node: ast.stmt, classes: Mapping[str, ast.ClassDef]) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name.startswith("test_")
    if isinstance(node, ast.ClassDef):
        methods = [part.name for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
        return _is_case(node, classes) or (node.name.startswith("Test") and any(name.startswith("test") for name in methods))
    return False


def _is_case(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> bool:
    """Say whether a class descends from a test case: from another of the listing that does, or from one that is imported, by its name."""
    others = {name: other for name, other in classes.items() if name != node.name}
    bases = [ast.unparse(base) for base in node.bases]
    return any(_is_case(others[base], others) if base in others else "Test" in base.rpartition(".")[2] for base in bases)
