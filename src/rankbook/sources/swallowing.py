"""Which of the exceptions by which a test is skipped something around it catches, so that it is not."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from rankbook.sources.text import dotted


def swallowed_by_handlers(handlers: Iterable[ast.ExceptHandler]) -> frozenset[str]:
    """Give the exceptions by which a test is skipped that some `except` catches and does not raise again."""
    found: set[str] = set()
    for handler in handlers:
        if not any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(handler)):
            found.update(*(_SWALLOWED_BY.get(name, ()) for name in map(dotted, _parts(handler.type))) if handler.type else _BOTH)
    return frozenset(found)


def swallowed_by_contexts(items: Iterable[ast.withitem]) -> frozenset[str]:
    """Give those that a context keeps from the test: `pytest.raises(SkipTest)`, and a subtest, which is skipped alone."""
    found: set[str] = set()
    for item in items:
        call = item.context_expr
        name = dotted(call.func) if isinstance(call, ast.Call) else ""
        if name.rpartition(".")[2] == "subTest" or name == "subtests.test":
            return _BOTH
        if isinstance(call, ast.Call) and name.rpartition(".")[2] in _CATCHING:
            found.update(*(_SWALLOWED_BY.get(dotted(part), ()) for argument in call.args for part in _parts(argument)))
    return frozenset(found)


def kind_of_skip(name: str) -> str:
    """Say whose exception something raises that skips a test."""
    return _PYTEST if name.startswith("pytest.") else _UNITTEST


_UNITTEST, _PYTEST = "unittest", "pytest"
"""What `SkipTest` is raised by, and what is skipped by pytest's own exception, which is no `Exception`."""
_BOTH = frozenset({_UNITTEST, _PYTEST})
_SWALLOWED_BY = {
    "BaseException": _BOTH,
    "Exception": frozenset({_UNITTEST}),
    "SkipTest": frozenset({_UNITTEST}),
    "unittest.SkipTest": frozenset({_UNITTEST}),
    "unittest.case.SkipTest": frozenset({_UNITTEST}),
    "pytest.skip.Exception": frozenset({_PYTEST}),
    "Skipped": frozenset({_PYTEST}),
    "OutcomeException": frozenset({_PYTEST}),
}
_CATCHING = frozenset({"raises", "assertRaises", "assertRaisesRegex", "suppress"})
"""Last parts of the names of contexts that catch what they are given."""


def _parts(node: ast.expr | None) -> Iterable[ast.expr]:
    if node is None:
        return ()
    return node.elts if isinstance(node, ast.Tuple) else (node,)
