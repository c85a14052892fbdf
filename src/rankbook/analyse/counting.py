"""Finds what a side of a comparison counts: GPUs, a version, through the constants and functions that stand between."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from rankbook import vocabulary, words
from rankbook.analyse.folding import returned
from rankbook.analyse.names import Place
from rankbook.analyse.rules import expression
from rankbook.analyse.values import Value, Values, dotted, parsed
from rankbook.bindings import Bindings, bindings_of, changed_by
from rankbook.model import Constant, Function

DEPTH = 4
"""Constants and functions that a side is followed through."""
GPUS = ("gpus", "")
"""Their number."""
_SOME = ("gpus", "some")
"""A number that is at most that, and never less than 0."""

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
    name = dotted(node)
    return _named(node, name, values, depth) if name and depth else None


def _named(node: ast.expr, name: str, values: Values, depth: int) -> tuple[str, str] | None:
    if isinstance(node, ast.Name) and name in values.bound:
        text, outside = values.bound[name]
        value = parsed(text)
        return None if value is None else counted(value, outside, depth - 1)
    if name.partition(".")[0] in values.bound:
        return None
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
    if value is not None or not depth or name.partition(".")[0] in values.bound:
        return value
    place = values.names.settled(values.path, name)
    inner = parsed(place.definition.value) if place is not None and isinstance(place.definition, Constant) else None
    return None if place is None or inner is None else compared_with(inner, values.in_file(place.path), depth - 1)


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _defined(node: ast.expr, name: str, values: Values, depth: int) -> tuple[str, str] | None:
    """Find what a name of the project's own counts."""
    place = values.names.settled(values.path, name)
    if place is not None and isinstance(place.definition, Constant):
        value = parsed(place.definition.value)
        return None if value is None or isinstance(node, ast.Call) else counted(value, values.in_file(place.path), depth)
    place = values.names.only(values.path, name) if isinstance(node, ast.Call) else None
    if place is None or not isinstance(place.definition, Function) or place.definition.is_async:
        return None
    return _returned(place, values.in_file(place.path), depth)


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


def _returned(place: Place, values: Values, depth: int) -> tuple[str, str] | None:
    """Find what a function counts: what its only statement does, or GPUs, when it returns their number or less in each place."""
    function = place.definition
    assert isinstance(function, Function)

    def answer() -> tuple[str, str] | None:
        text = returned(place, values.names)
        value = parsed(text) if text else None
        bound = {name.lstrip("*"): ("", values) for name in function.parameters}
        found = counted(value, values.with_bound(bound), depth) if value is not None else None
        return found or (_SOME if _Counter(values, depth).returns_gpus(function) else None)

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
        self._bound: Bindings = {}
        self._asked: set[str] = set()
        """Names that are being looked up."""

    def returns_gpus(self, function: Function) -> bool:
        """Tell whether all that a function returns is 0 or at most the number of GPUs, and not everything 0."""
        text = f"def f():\n  return ({function.returns})" if function.returns else function.text
        try:
            definition = ast.parse(text).body[0] if text else None
        except (SyntaxError, ValueError, RecursionError):
            return False
        nodes = list(ast.walk(definition)) if isinstance(definition, ast.FunctionDef) else []
        if not isinstance(definition, ast.FunctionDef) or any(isinstance(each, ast.Call) and changed_by(each) for each in nodes):
            return False
        self._bound = bindings_of(definition) | {name.lstrip("*"): [None] for name in function.parameters}
        return self._are_numbers([each.value for each in nodes if isinstance(each, ast.Return)])

    def _are_numbers(self, values: Iterable[object]) -> bool:
        """Tell whether values are 0 or numbers of GPUs, and not all of them 0."""
        others = [value for value in values if not (isinstance(value, ast.expr) and _is_zero(value))]
        return bool(others) and all(isinstance(value, ast.expr) and self._is_number(value) for value in others)

    def _is_number(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name) if name in self._bound:
                return self._all_set(name, self._are_numbers)
            case ast.Call(func=ast.Name(id="len"), args=[entries]):
                return self._is_list(entries)
            case ast.Call(func=ast.Name(id="min"), args=[_, _, *_] as arguments):
                return any(map(self._is_number, arguments))
            case ast.Call(func=ast.Name(id="max"), args=[_, _, *_] as arguments):
                return self._are_numbers(arguments)
            case ast.IfExp(body=body, orelse=other):
                return self._are_numbers((body, other))
        return self._is_count(node)

    def _is_count(self, node: ast.expr) -> bool:
        return dotted(node).partition(".")[0] not in self._bound and counted(node, self._values, self._depth) in (GPUS, _SOME)

    def _all_set(self, name: str, is_one: Callable[[Iterable[object]], bool]) -> bool:
        """Tell whether all that sets a name sets it to what is asked for; what it was before is that."""
        if name in self._asked:
            return True
        self._asked.add(name)
        found = is_one(self._bound[name])
        self._asked.remove(name)
        return found

    def _are_lists(self, values: Iterable[object]) -> bool:
        return all(isinstance(value, ast.expr) and self._is_list(value) for value in values)

    def _is_list(self, node: ast.expr) -> bool:
        """Tell whether an expression has an entry for each GPU, or for some of them."""
        match node:
            case ast.Name(id=name) if name in self._bound:
                return self._all_set(name, self._are_lists)
            case ast.ListComp(generators=[each]):
                return self._is_list(each.iter)
            case ast.Call(func=ast.Name(id="range" | "list" | "sorted" | "tuple" | "set"), args=[inner]):
                return self._is_number(inner) or self._is_list(inner)
        return False
