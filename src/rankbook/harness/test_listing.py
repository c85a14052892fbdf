"""Which listings are test modules; told without pytest, which only a run of their tests needs."""

from __future__ import annotations

import ast
import pkgutil
import re
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

    A class with a constructor or a decorator is none, and neither is a function that wants what no fixture is known to give.

    Args:
        listing: the listing; one that does not parse has none.
        rules: what pytest takes for tests in its project.
    """
    if runs_itself(listing.text):
        return ()
    return tuple(name for name, is_lone in _tests(listing, rules) if is_lone)


def runs_itself(text: str) -> bool:
    """Tell whether a listing may run its tests, or those of another, by itself."""
    return any(word in text for word in _RUNNERS)


def _tests(listing: Listing, rules: Rules) -> list[tuple[str, bool]]:
    """Name the functions and classes of a listing that pytest may take for tests; say of each whether it is of no other use there."""
    try:
        return list(_Reading(syntax_tree(listing.data()), rules).tests())
    except (SyntaxError, ValueError, RecursionError):
        return []


_RUNNERS = ("globals()", "unittest.main", "pytest.main", "TestLoader", "TestRunner", "run_tests")
"""What a listing that runs its tests itself has in it."""
_FIXTURES = frozenset({
    "cache", "capfd", "capfdbinary", "caplog", "capsys", "capsysbinary", "doctest_namespace", "monkeypatch", "pytestconfig", "pytester",
    "record_property", "record_testsuite_property", "recwarn", "request", "subtests", "testdir", "tmp_path", "tmp_path_factory", "tmpdir",
    "tmpdir_factory",
})  # fmt: skip
"""What pytest itself gives to tests."""
_ASSERTS = re.compile(r"\bassert|\braises\(|\bfail\(")
"""What a test does at some point."""
_OF_TESTS = re.compile(r"\bmark\b|parametri|\bgiven\b|\bpatch\b")
"""What decorators of tests are called."""


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
        self._functions = {node.name: node for node in self._statements if isinstance(node, _FUNCTIONS)}
        fixtures = (name for name, node in self._functions.items() if _is_fixture(node))
        self._fixtures = _FIXTURES.union(fixtures)
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
        self._named = {node.id for node in names}
        self._called = set(self._calls_of(tree))

    def _calls_of(self, tree: ast.Module) -> Iterator[str]:
        """Yield the functions that the listing calls with arguments when it is run, by its functions too that it calls."""
        waiting: list[ast.AST] = [tree]
        gone_through: set[str] = set()
        while waiting:
            within = waiting.pop()
            own = {each.arg for each in ast.walk(within.args) if isinstance(each, ast.arg)} if isinstance(within, _FUNCTIONS) else set()
            for node in _own_nodes(within):
                name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
                if not name or name in own or not isinstance(node, ast.Call):
                    continue
                if node.args or node.keywords:
                    yield name
                if name in self._functions and name not in gone_through:
                    gone_through.add(name)
                    waiting += [self._functions[name]] if not name.startswith("test") else []

    def tests(self) -> Iterator[tuple[str, bool]]:
        """Yield the name of each, and whether it is of no other use."""
        for node in self._statements:
            if isinstance(node, _FUNCTIONS) and self._is_test(node):
                yield node.name, node.name not in self._named and self._is_given(node)
            elif isinstance(node, ast.ClassDef) and self._holds_tests(node):
                yield node.name, node.name not in self._named and self._is_plain(node)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and not _required(node.value.args):
                names = [each.id for each in node.targets if isinstance(each, ast.Name) and each.id.startswith("test_")]
                yield from ((name, True) for name in names if name not in self._named)

    def _is_test(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        if _is_fixture(node):
            return False
        if node.name.startswith("test_"):
            is_step = node.name in self._called and bool(_required(node.args)) and not self._is_given(node)
            return not is_step or any(_OF_TESTS.search(ast.unparse(each)) for each in node.decorator_list)
        is_one = self._rules.is_test_function(node.name) and node.name not in self._named
        return is_one and self._is_given(node) and _ASSERTS.search(ast.unparse(node)) is not None

    def _is_given(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """Tell whether all that a function wants is a fixture that is known."""
        return self._fixtures.issuperset(_required(node.args))

    def _holds_tests(self, node: ast.ClassDef, within: frozenset[str] = frozenset()) -> bool:
        """Tell whether a class is one of tests: a test case, or one called like one that has, or inherits, methods called like tests."""
        if _is_case(node, self._classes):
            return True
        return (node.name.startswith("Test") or self._rules.is_test_class(node.name)) and self._has_tests(node, within)

    def _has_tests(self, node: ast.ClassDef, within: frozenset[str] = frozenset()) -> bool:
        for part in _statements(node):
            if isinstance(part, _FUNCTIONS) and part.name.startswith("test"):
                return True
            if isinstance(part, ast.ClassDef) and self._holds_tests(part, within):
                return True
        bases = {ast.unparse(base) for base in node.bases} & self._classes.keys() - within - {node.name}
        return any(self._has_tests(self._classes[base], within | {node.name, base}) for base in bases)

    def _is_plain(self, node: ast.ClassDef) -> bool:
        """Tell whether nothing about a class with tests says that it is made for anything else."""
        if any(isinstance(part, _FUNCTIONS) and part.name in ("__init__", "__new__") for part in _statements(node)):
            return False
        is_of_tests = all(ast.unparse(base).endswith("TestCase") or ast.unparse(base) in self._classes for base in node.bases)
        return not node.decorator_list and is_of_tests and self._has_tests(node)


def _is_fixture(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("fixture" in ast.unparse(each) for each in node.decorator_list)


def _required(arguments: ast.arguments) -> list[str]:
    """Name the parameters that have no default."""
    placed = [*arguments.posonlyargs, *arguments.args]
    named = [each for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is None]
    return [each.arg for each in (*placed[: len(placed) - len(arguments.defaults)], *named)]


def _own_nodes(within: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a module or of a function, but none of the functions and classes in it."""
    waiting = list(ast.iter_child_nodes(within))
    while waiting:
        node = waiting.pop()
        if not isinstance(node, _SCOPES):
            yield node
            waiting += ast.iter_child_nodes(node)


def _is_case(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> bool:
    """Say whether a class descends from a test case: from another of the listing that does, or from one that is imported, by its name."""
    others = {name: other for name, other in classes.items() if name != node.name}
    bases = [ast.unparse(base) for base in node.bases]
    return any(_is_case(others[base], others) if base in others else "Test" in base.rpartition(".")[2] for base in bases)
