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

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)


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
    return bool(_tests(listing, rules))


def lone(listing: Listing, rules: Rules) -> tuple[str, ...]:
    """Name what is a test in a listing of Python to whoever reads it, and that the listing itself does not use.

    Args:
        listing: the listing; one that does not parse has none.
        rules: what pytest takes for tests in its project.
    """
    return tuple(name for name, is_used in _tests(listing, rules) if not is_used)


def _tests(listing: Listing, rules: Rules) -> list[tuple[str, bool]]:
    """Name the functions and classes of a listing that are tests to whoever reads it; say of each whether the listing uses it.

    A function that the listing itself calls with arguments is none, whatever its name. Of those that pytest takes for tests though no
    underscore follows, none are those that it names elsewhere, or that want arguments and assert nothing: `def test(model, data)`.
    """
    try:
        return list(_Reading(syntax_tree(listing.data()), rules).tests())
    except (SyntaxError, ValueError, RecursionError):
        return []


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


class _Reading:
    """Tells what of a listing is a test.

    Args:
        tree: the listing.
        rules: what pytest takes for tests.
    """

    def __init__(self, tree: ast.Module, rules: Rules) -> None:
        self._rules = rules
        self._statements = list(_statements(tree))
        self._classes = {node.name: node for node in self._statements if isinstance(node, ast.ClassDef)}
        nodes = list(ast.walk(tree))
        self._named = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and (node.args or node.keywords)]
        self._called = {ast.unparse(call.func) for call in calls}

    def tests(self) -> Iterator[tuple[str, bool]]:
        """Yield the name of each, and whether the listing uses it."""
        for node in self._statements:
            if (isinstance(node, _FUNCTIONS) and self._is_test(node)) or (isinstance(node, ast.ClassDef) and self._holds_tests(node)):
                yield node.name, node.name in self._named
            elif isinstance(node, ast.Assign) and self._makes_test(node.value):
                names = [each.id for each in node.targets if isinstance(each, ast.Name) and each.id.startswith("test_")]
                yield from ((name, name in self._named) for name in names if name not in self._called)

    def _is_test(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        if node.name in self._called:
            return False
        if node.name.startswith("test_"):
            return True
        wants = node.args.posonlyargs or node.args.args or node.args.kwonlyargs
        asserts = not wants or any(isinstance(each, ast.Assert) for each in ast.walk(node))
        return self._rules.is_test_function(node.name) and node.name not in self._named and asserts

    def _holds_tests(self, node: ast.ClassDef, within: frozenset[str] = frozenset()) -> bool:
        """Tell whether a class is one of tests: a test case, or one called like one that has, or inherits, methods called like tests."""
        if _is_case(node, self._classes):
            return True
        return (node.name.startswith("Test") or self._rules.is_test_class(node.name)) and self._has_tests(node, within)

    def _has_tests(self, node: ast.ClassDef, within: frozenset[str]) -> bool:
        for part in _statements(node):
            if isinstance(part, _FUNCTIONS) and part.name.startswith("test"):
                return True
            if isinstance(part, ast.ClassDef) and self._holds_tests(part, within):
                return True
        bases = {ast.unparse(base) for base in node.bases} & self._classes.keys() - within - {node.name}
        return any(self._has_tests(self._classes[base], within | {node.name, base}) for base in bases)

    @staticmethod
    def _makes_test(value: ast.expr) -> bool:
        """Tell whether a value is a function that no statement defines: `lambda: ...`, `partial(check, 2)`."""
        is_partial = isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] == "partial"
        return is_partial or isinstance(value, ast.Lambda)


def _is_case(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> bool:
    """Say whether a class descends from a test case: from another of the listing that does, or from one that is imported, by its name."""
    others = {name: other for name, other in classes.items() if name != node.name}
    bases = [ast.unparse(base) for base in node.bases]
    return any(_is_case(others[base], others) if base in others else "Test" in base.rpartition(".")[2] for base in bases)
