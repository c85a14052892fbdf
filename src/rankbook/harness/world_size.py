"""Whether a test class means to run on one rank: its own source says so with the number 1, not with a number of devices."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

from rankbook.syntax import syntax_tree

HARNESS = "torch.testing."
"""Modules of torch's harnesses: what they say of the world size holds for all tests, and is no intent of this one."""


def effective(instance: Any) -> int | None:
    """Give the world size that a test's harness names; None when it names none."""
    try:
        return int(instance.world_size)
    except Exception:  # noqa: BLE001 - a property of the test may do anything
        return None


def is_one_on_purpose(instance: Any) -> bool:
    """Say whether a test, or the nearest of its classes that speaks of the world size, states 1."""
    test = getattr(instance, getattr(instance, "_testMethodName", ""), None)
    if getattr(test, "_required_world_size", None) == 1:
        return True
    for cls in type(instance).__mro__:
        if cls.__module__.startswith(HARNESS):
            return False
        if stated := list(_stated(cls)):
            return all(_is_one(value, cls) for value in stated)
    return False


def _stated(cls: type) -> Iterator[ast.expr | None]:
    """Yield what the body of a class says that its world size is."""
    try:
        tree = syntax_tree(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name == "world_size":
            yield from (part.value for part in ast.walk(node) if isinstance(part, ast.Return))
        elif isinstance(node, ast.FunctionDef):
            yield from (value for part in ast.walk(node) for value in _assigned(part, "self.world_size"))
        else:
            yield from _assigned(node, "world_size")


def _assigned(node: ast.AST, name: str) -> Iterator[ast.expr | None]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    if isinstance(node, ast.Assign | ast.AnnAssign) and any(ast.unparse(target) == name for target in targets):
        yield node.value


def _is_one(value: ast.expr | None, cls: type) -> bool:
    """Say whether an expression is the number 1, or a name that its module gives that number."""
    if isinstance(value, ast.Name):
        value = _constant(value.id, cls)
    return isinstance(value, ast.Constant) and value.value == 1


def _constant(name: str, cls: type) -> ast.expr | None:
    try:
        tree = syntax_tree(inspect.getsource(sys.modules[cls.__module__]))
    except (OSError, TypeError, SyntaxError, KeyError):
        return None
    values = [value for node in tree.body for value in _assigned(node, name)]
    return values[0] if len(values) == 1 else None
