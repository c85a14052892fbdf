"""Which listings are test modules; told without pytest, which only a run of their tests needs."""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Iterator, Mapping
from importlib import metadata

from rankbook.collecting import MAINS, Rules
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
        return rules.is_test_file(listing.about.source) or (script.is_module(listing.about.source) and runs_its_tests(listing))
    try:
        statements = list(_statements(syntax_tree(listing.data())))
    except (SyntaxError, ValueError, RecursionError):
        return False
    classes = {node.name: node for node in statements if isinstance(node, ast.ClassDef)}
    return any(_is_test(node, classes) for node in statements)


def holds_examples(listing: Listing, rules: Rules) -> bool:
    """Say whether of a listing, which is no test module, pytest collects the examples of docstrings."""
    language = by_fence(listing.language)
    if listing.about is None or language is None or language.name != "python":
        return False
    return rules.holds_doctests(listing.about.source, listing.text) and not script.accepts(listing)


def runs_its_tests(listing: Listing) -> bool:
    """Say whether a listing is a script that has the tests in it run, as unittest does."""
    if not any(name.rpartition(".")[2] in listing.text for name in MAINS):
        return False
    try:
        tree = syntax_tree(listing.data())
    except (SyntaxError, ValueError, RecursionError):
        return False
    if not any(isinstance(node, ast.If) and ast.unparse(node.test) in _GUARDS for node in _statements(tree)):
        return False
    stands_for = dict(_imports(tree))
    called = (ast.unparse(node.func).partition(".") for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(stands_for.get(head, head) + dot + rest in MAINS for head, dot, rest in called)


_GUARDS = ("__name__ == '__main__'", "'__main__' == __name__")


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names that imports bind, each with what it stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((each.asname, each.name) for each in node.names if each.asname)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((each.asname or each.name, f"{node.module}.{each.name}") for each in node.names)


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
