"""Finds what a side of a comparison counts: GPUs, a version, through the constants and functions that stand between."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from rankbook import vocabulary, words
from rankbook.analyse.rules import expression
from rankbook.analyse.values import Value, Values, dotted, parsed
from rankbook.model import Constant, Function

DEPTH = 4
"""Constants and functions that a side is followed through."""
_GPUS = ("gpus", "")
_KEEPING = frozenset({"int", "max", "min", "sum"})
"""Functions whose value is a number of GPUs when an argument is one."""

_OF_A_VERSION = frozenset({"base_version", "public", "release"})
"""What `packaging` tells of a version that is as good as the version itself where it is compared."""


def counted(node: ast.expr, values: Values, depth: int = DEPTH) -> tuple[str, str] | None:
    """Find the kind, and the name, of what an expression counts; None when the tables do not tell it.

    Args:
        node: the expression.
        values: reads it in its file.
        depth: constants and functions still to follow.
    """
    node = plain(node)
    if isinstance(node, ast.IfExp) and depth:
        sides = {counted(side, values, depth - 1) for side in (node.body, node.orelse) if not _is_zero(side)}
        return sides.pop() if len(sides) == 1 else None
    name = dotted(node)
    return _named(node, name, values, depth) if name and depth else None


def _named(node: ast.expr, name: str, values: Values, depth: int) -> tuple[str, str] | None:
    if isinstance(node, ast.Name) and name in values.bound:
        text, outside = values.bound[name]
        value = parsed(text)
        return None if value is None else counted(value, outside, depth - 1)
    full = values.names.full(values.path, name)
    key = vocabulary.find(words.COUNTS, full)
    if key is not None:
        return words.COUNTS[key]
    if full.endswith(".__version__"):
        return "package", full.partition(".")[0]
    if full in ("importlib.metadata.version", "metadata.version") and isinstance(node, ast.Call):
        package = values.of(expression(node).arguments[0]) if node.args else None
        return ("package", package) if isinstance(package, str) else None
    return _defined(node, name, values, depth - 1)


def compared_with(node: ast.expr, values: Values, depth: int = DEPTH) -> Value | None:
    """Give the value with which a count or a version is compared, through what does not change the comparison: `LEAST = Version("2.4")`.

    Args:
        node: the other side.
        values: reads it in its file.
        depth: constants still to follow.
    """
    node = plain(node)
    value, name = values.of_node(node, DEPTH), dotted(node)
    if value is not None or not depth or name in values.bound:
        return value
    place = values.names.constant(values.path, name)
    inner = parsed(place.definition.value) if place is not None and isinstance(place.definition, Constant) else None
    return None if place is None or inner is None else compared_with(inner, values.in_file(place.path), depth - 1)


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _defined(node: ast.expr, name: str, values: Values, depth: int) -> tuple[str, str] | None:
    """Find what a name of the project's own counts."""
    place = values.names.constant(values.path, name)
    if place is not None and isinstance(place.definition, Constant):
        value = parsed(place.definition.value)
        return None if value is None else counted(value, values.in_file(place.path), depth)
    place = values.names.find(values.path, name) if isinstance(node, ast.Call) else None
    if place is None or not isinstance(place.definition, Function):
        return None
    return _returned(place.definition, values.in_file(place.path), depth)


def plain(node: ast.expr) -> ast.expr:
    """Leave out what does not change a comparison: `version.parse(x)`, `Version(x).release`, `x[:2]`, `x[0]`, `x.lower()`."""
    while True:
        if isinstance(node, ast.Call) and _is_cast(node):
            node = node.args[0]
        elif isinstance(node, ast.Attribute) and node.attr in _OF_A_VERSION and isinstance(node.value, ast.Call) and _is_cast(node.value):
            node = node.value.args[0]
        elif isinstance(node, ast.Subscript) and _is_head(node.slice) and dotted(node.value):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("lower", "strip") and not node.args:
            node = node.func.value
        else:
            return node


def _is_cast(node: ast.Call) -> bool:
    return dotted(node).rpartition(".")[2] in words.VERSIONS and len(node.args) == 1 and not node.keywords


def _is_head(index: ast.expr) -> bool:
    """Tell whether an index takes the first entry, or the first few: it is compared with as few."""
    if isinstance(index, ast.Slice):
        return index.lower is None and index.step is None
    return isinstance(index, ast.Constant) and index.value == 0


def _returned(function: Function, values: Values, depth: int) -> tuple[str, str] | None:
    """Find what a function counts: what its only statement does, or GPUs, when it returns their number or 0 in each place."""

    def answer() -> tuple[str, str] | None:
        value = parsed(function.returns) if function.returns else None
        found = counted(value, values, depth) if value is not None else None
        return found or (_GPUS if _Counter(values, depth).returns_gpus(function) else None)

    return values.names.remember(("counted", values.path, function.qualname, function.line, depth), answer)


class _Counter:
    """Follows a number of GPUs through the names of a function.

    Args:
        values: reads its names in its file.
        depth: functions still to follow.
    """

    def __init__(self, values: Values, depth: int) -> None:
        self._values = values
        self._depth = depth
        self._numbers: set[str] = set()
        self._lists: set[str] = set()
        """Names of what has an entry for each GPU."""

    def returns_gpus(self, function: Function) -> bool:
        """Tell whether all that a function returns is 0 or a number of GPUs, and not everything 0."""
        text = f"def f():\n  return ({function.returns})" if function.returns else function.text
        try:
            statements = list(_in_order(ast.parse(text).body[0])) if text else []
        except (SyntaxError, ValueError, RecursionError):
            return False
        returned: list[ast.expr | None] = []
        for node in statements:
            if isinstance(node, ast.Assign):
                self._set(node.targets, node.value)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                self._set([node.target], node.value)
            elif isinstance(node, ast.Return):
                returned.append(node.value)
        others = [value for value in returned if value is None or not _is_zero(value)]
        return bool(others) and all(value is not None and self._is_number(value) for value in others)

    def _set(self, targets: Iterable[ast.expr], value: ast.expr) -> None:
        names = {target.id for target in targets if isinstance(target, ast.Name)}
        for known, is_one in ((self._numbers, self._is_number(value)), (self._lists, self._is_list(value))):
            (known.update if is_one else known.difference_update)(names)

    def _is_number(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self._numbers
            case ast.Call(func=ast.Name(id="len"), args=[entries]):
                return self._is_list(entries)
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in _KEEPING:
                return any(map(self._is_number, arguments))
            case ast.IfExp(body=body, orelse=other):
                sides = [side for side in (body, other) if not _is_zero(side)]
                return bool(sides) and all(map(self._is_number, sides))
        return counted(node, self._values, self._depth) == _GPUS

    def _is_list(self, node: ast.expr) -> bool:
        """Tell whether an expression has an entry for each GPU, or for some of them."""
        match node:
            case ast.Name(id=name):
                return name in self._lists
            case ast.ListComp(generators=[each]):
                return self._is_list(each.iter)
            case ast.Call(func=ast.Name(id="range" | "list" | "sorted" | "tuple" | "set"), args=[inner]):
                return self._is_number(inner) or self._is_list(inner)
        return False


def _in_order(node: ast.stmt) -> Iterator[ast.stmt]:
    """Yield the statements of a function, also those under conditions."""
    for inner in (*getattr(node, "body", ()), *getattr(node, "orelse", ())):
        yield inner
        if isinstance(inner, ast.If):
            yield from _in_order(inner)
