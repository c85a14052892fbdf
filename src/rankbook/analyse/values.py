"""What an expression comes to, as far as the sources say: literals, constants across files, attributes of a class."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from rankbook import requirements
from rankbook.analyse.draft import Ancestor
from rankbook.analyse.names import Names
from rankbook.model import Constant, Function

_DEPTH = 6
"""Constants that are followed from one to the next."""

Value = str | int | float | bool | tuple["Value", ...]


class Values:
    """Reads expressions as they stand in one file.

    Args:
        names: the names of the tree.
        path: file in which the expressions stand.
        lineage: classes in which `self` looks attributes up.
    """

    def __init__(self, names: Names, path: str, lineage: tuple[Ancestor, ...] = ()) -> None:
        self.names = names
        self.path = path
        self.lineage = lineage

    def of(self, text: str) -> Value | None:
        """Give the value of an expression; None when it cannot be read."""
        node = parsed(text)
        return None if node is None else self.of_node(node, _DEPTH)

    def of_node(self, node: ast.expr, depth: int) -> Value | None:
        """Give the value of a node of an expression.

        Args:
            node: the node.
            depth: constants still to follow.
        """
        if depth == 0:
            return None
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._named(ast.unparse(node), depth)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("torch.device") and node.args:
            return _device(self.of_node(node.args[0], depth))
        if isinstance(node, ast.JoinedStr):
            return self._joined(node, depth)
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            values = [self.of_node(entry, depth) for entry in node.elts]
            return None if None in values else tuple(value for value in values if value is not None)
        return _literal(node)

    def attribute(self, name: str) -> tuple[str, Constant | Function] | None:
        """Find an attribute, property or method of the class, with its file."""
        for ancestor in self.lineage:
            for each in _members(ancestor):
                if each.name == name:
                    return ancestor.path, each
        return None

    def in_file(self, path: str) -> Values:
        """Read on in another file, with the same class."""
        return Values(self.names, path, self.lineage)

    def _named(self, name: str, depth: int) -> Value | None:
        root, _, rest = name.partition(".")
        if root in ("self", "cls") and rest and "." not in rest:
            return self._member(rest, depth)
        place = self.names.constant(self.path, name)
        if place is not None and isinstance(place.definition, Constant):
            return self.in_file(place.path)._text(place.definition.value, depth - 1)
        known = requirements.NUMBERS.get(name.rpartition(".")[2])
        return None if known is None else int(known)

    def _member(self, name: str, depth: int) -> Value | None:
        found = self.attribute(name)
        if found is None:
            return None
        path, member = found
        text = member.value if isinstance(member, Constant) else member.returns
        return self.in_file(path)._text(text or "", depth - 1)

    def _text(self, text: str, depth: int) -> Value | None:
        node = parsed(text)
        return None if node is None else self.of_node(node, depth)

    def _joined(self, node: ast.JoinedStr, depth: int) -> Value | None:
        """Read `f"{device_type}:{self.rank}"`: its first part says which kind of device."""
        first = node.values[0] if node.values else None
        inner = first.value if isinstance(first, ast.FormattedValue) else first
        value = self.of_node(inner, depth) if isinstance(inner, ast.expr) else None
        is_first_of_more = len(node.values) > 1 and isinstance(value, str)
        return _device(value) if is_first_of_more and (":" in str(value) or _is_colon(node.values[1])) else None


def _members(ancestor: Ancestor) -> Iterator[Constant | Function]:
    if ancestor.facts is not None:
        yield from ancestor.facts.methods
        yield from ancestor.facts.attributes


def _is_colon(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and str(node.value).startswith(":")


def _device(value: Value | None) -> Value | None:
    return value.partition(":")[0] if isinstance(value, str) else None


def _literal(node: ast.expr) -> Value | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, (str, int, float)) else None


@lru_cache(maxsize=65536)
def parsed(text: str) -> ast.expr | None:
    """Parse an expression; None when it does not parse (it may have been cut short)."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def shown(value: Value) -> str | None:
    """Write a value as a requirement has it: versions with dots, choices with `or`."""
    if not isinstance(value, tuple):
        return str(value)
    if value and all(isinstance(entry, int) for entry in value):
        return ".".join(map(str, value))
    return " or ".join(map(str, value)) if all(isinstance(entry, str) for entry in value) else None
