"""Tells what the imports of a `try` say: what must be there for its statements to come to their end."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

from rankbook import words

NARROW = frozenset({"ImportError", "ModuleNotFoundError"})
"""What an import that fails raises."""
IMPORT_ERRORS = NARROW | {"Exception", "BaseException"}
"""What it may be caught by."""
_EASY = (
    ast.Constant, ast.Name, ast.expr_context, ast.Compare, ast.cmpop, ast.BoolOp, ast.boolop, ast.UnaryOp, ast.unaryop, ast.Tuple,
    ast.keyword,
)  # fmt: skip
"""Parts of an expression that import nothing."""


def caught(handler: ast.ExceptHandler) -> frozenset[str]:
    """Name the exceptions that a handler catches, as written."""
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return frozenset("BaseException" if each is None else ast.unparse(each) for each in types)


def imported(body: Iterable[ast.stmt]) -> tuple[str, ...]:
    """Name the modules that statements import, with their leading dots."""
    return tuple(name for statement in body for name, _ in _imports(statement))


def tried(body: list[ast.stmt], errors: frozenset[str]) -> tuple[str, ...]:
    """Write what must be there for statements to come to their end without such errors.

    Args:
        body: the statements.
        errors: names of the exceptions.

    Returns:
        For each import `a` where that it fails means that the module is missing, and nothing else that is done fails so, but for what
        an `if` raises; `from a import b` where more may be the matter.
    """
    is_wide = not errors <= NARROW
    is_alone = all(_is_easy(statement, is_wide=is_wide) for statement in body)
    imports = (found for statement in body for found in _imports(statement))
    return tuple(f"from {module} import {names or '...'}" if names or not is_alone else module for module, names in imports)


def may_raise(statement: ast.stmt, errors: frozenset[str]) -> bool:
    """Tell whether a statement may raise such errors, by a `raise` or an `assert` of its own."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    return any(_is_among(_raised(node), errors) for node in ast.walk(statement) if isinstance(node, (ast.Raise, ast.Assert)))


def _raised(node: ast.Raise | ast.Assert) -> str:
    """Name what a statement raises; empty where it does not say so."""
    if isinstance(node, ast.Assert):
        return "AssertionError"
    error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return "" if error is None else ast.unparse(error)


def _is_among(name: str, errors: frozenset[str]) -> bool:
    """Tell whether an exception may be one of some others, or of a kind of them; of one that is not Python's own, it may."""
    kinds = [kind for error in errors if isinstance(kind := getattr(builtins, error, None), type)]
    raised = getattr(builtins, name, None)
    return not isinstance(raised, type) or issubclass(raised, tuple(kinds))


def _imports(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield the modules that a statement imports, each with the names that it takes from it."""
    if isinstance(statement, ast.Import):
        yield from ((alias.name, "") for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom) and statement.module:
        yield "." * statement.level + statement.module, ", ".join(alias.name for alias in statement.names)


def _is_easy(statement: ast.stmt, *, is_wide: bool) -> bool:
    """Tell whether a statement is an import itself, or cannot fail: under `except ImportError`, not as an import does."""
    value: ast.expr | None = None
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Pass():
            return True
        case ast.Assign(targets=[ast.Name()]) | ast.Return():
            value = statement.value
        case ast.If(test=test, body=[ast.Raise()], orelse=[]):
            value = test
        case _:
            return False
    if value is None or isinstance(value, (ast.Constant, ast.Name)):
        return True
    return not is_wide and all(map(_imports_nothing, ast.walk(value)))


def _imports_nothing(node: ast.AST) -> bool:
    """Tell whether a part of an expression imports nothing: it asks for a version, or torch."""
    if not isinstance(node, (ast.Call, ast.Attribute)):
        return isinstance(node, _EASY)
    name = ast.unparse(node.func if isinstance(node, ast.Call) else node)
    return name.startswith("torch.") or name.rpartition(".")[2] in words.VERSIONS | {"__version__", "version"}
