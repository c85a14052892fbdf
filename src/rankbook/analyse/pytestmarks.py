"""What `pytestmark` holds: marks of a module or of a class, in a list or not, by names of their own or not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rankbook.analyse.draft import Draft
from rankbook.analyse.rules import expression
from rankbook.analyse.values import dotted, parsed
from rankbook.model import Class, Constant, Expression

NAME = "pytestmark"
_NAMES = 4
"""Names of lists that are followed from one to the next."""

_FOLLOWED = (ast.List, ast.Tuple, ast.BinOp, ast.Name, ast.Attribute)

Mark = tuple[str, Expression]
"""The file in which a mark is written, and the mark."""


def of_module(draft: Draft, path: str) -> tuple[Mark, ...]:
    """Give the marks of all tests of a module."""

    def found() -> tuple[Mark, ...]:
        return tuple(mark for each in draft.modules[path].marks for mark in _listed(draft, path, parsed(each.text), each.line))

    return draft.remember(("pytestmark", path), found) if draft.modules[path].marks else ()


def of_class(draft: Draft, path: str, facts: Class) -> tuple[Mark, ...]:
    """Give the marks that a class sets whatever happens: the last that it sets count."""
    set_at = [attribute for attribute in facts.attributes if attribute.name == NAME]
    return _of(draft, path, set_at[-1]) if set_at and all(attribute.guard is None for attribute in set_at) else ()


def that_a_class_may_set(draft: Draft, path: str, facts: Class) -> tuple[Mark, ...]:
    """Give all marks that a class may set."""
    return tuple(mark for attribute in facts.attributes if attribute.name == NAME for mark in _of(draft, path, attribute))


def _of(draft: Draft, path: str, attribute: Constant) -> tuple[Mark, ...]:
    return tuple(_listed(draft, path, parsed(attribute.value), attribute.line))


def _listed(draft: Draft, path: str, node: ast.expr | None, line: int, names: int = _NAMES) -> Iterator[Mark]:
    if isinstance(node, (ast.List, ast.Tuple)):
        for entry in node.elts:
            yield from _listed(draft, path, entry, line, names)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _listed(draft, path, node.left, line, names)
        yield from _listed(draft, path, node.right, line, names)
    elif isinstance(node, ast.Starred):
        yield from _listed(draft, path, node.value, line, names)
    elif node is not None:
        place = draft.names.settled(path, dotted(node)) if names and isinstance(node, (ast.Name, ast.Attribute)) else None
        value = parsed(place.definition.value) if place is not None and isinstance(place.definition, Constant) else None
        if place is not None and isinstance(value, _FOLLOWED):
            yield from _listed(draft, place.path, value, place.definition.line, names - 1)
        else:
            yield path, expression(node, line)
