"""Definitions whose name is given again later in the same body, with nothing in between by which they could have been kept."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from rankbook.model import Overwritten

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_REACH_ALL = frozenset({"globals", "locals", "vars", "dir", "eval", "exec", "setattr", "getattr"})
"""Functions that reach what stands in a body without its name."""


def overwritten(tree: ast.Module) -> tuple[Overwritten, ...]:
    """Find them in the body of a module and of its classes; what stands under a condition, or in a `try` or a loop, counts for nothing.

    Args:
        tree: the module.
    """
    return tuple(sorted(_in_body(tree.body, ""), key=lambda each: each.line))


def _in_body(body: Sequence[ast.stmt], around: str) -> Iterator[Overwritten]:
    last: dict[str, int] = {}
    for place, node in enumerate(body):
        if not isinstance(node, _Definition):
            continue
        before = last.get(node.name)
        last[node.name] = place
        if before is not None and not _is_kept(node.name, body[before + 1 : place], node):
            yield Overwritten(around + node.name, body[before].lineno, node.lineno)
        if isinstance(node, ast.ClassDef):
            yield from _in_body(node.body, f"{around}{node.name}.")


def _is_kept(name: str, between: Sequence[ast.stmt], later: _Definition) -> bool:
    """Tell whether something may have hold of a definition when its name is given to a later one."""
    heads: list[ast.AST] = [*later.decorator_list]
    if isinstance(later, ast.ClassDef):
        heads += [*later.bases, *later.keywords, *later.body]
    else:
        heads.append(later.args)
    return any(_reaches(node, name) for top in (*between, *heads) for node in ast.walk(top))


def _reaches(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Name(id=word):
            return word == name or word in _REACH_ALL
        case ast.Attribute(attr=word) | ast.Constant(value=word):
            return word == name
        case ast.alias():
            return name in (node.asname, node.name) or node.name == "*"
    return False
