"""What an expression comes to, as far as the sources say: literals, constants across files, attributes of a class."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from rankbook import words
from rankbook.analyse.draft import Ancestor
from rankbook.analyse.names import Names
from rankbook.model import Constant, Function

_DEPTH = 6
"""Constants that are followed from one to the next."""

_CASTS = frozenset({"int", "str", "float", "bool"})
_ENVIRONMENT = frozenset({"os.environ", "os.environ.get", "os.getenv", "environ", "environ.get", "getenv"})

Value = str | int | float | bool | tuple["Value", ...]


class Values:
    """Reads expressions as they stand in one file.

    Args:
        names: the names of the tree.
        path: file in which the expressions stand.
        lineage: classes in which `self` looks attributes up.
        bound: parameters of the function in which the expressions stand: what they are, and what reads that.
    """

    def __init__(
        self,
        names: Names,
        path: str,
        lineage: tuple[Ancestor, ...] = (),
        bound: Mapping[str, tuple[str, Values]] | None = None,
    ) -> None:
        self.names = names
        self.path = path
        self.lineage = lineage
        self.vocabulary = names.vocabulary
        self.bound = bound or {}

    def of(self, text: str) -> Value | None:
        """Give the value of an expression; None when it cannot be read."""
        node = parsed(text)
        try:
            return None if node is None else self.of_node(node, _DEPTH)
        except RecursionError:
            return None

    def variable(self, text: str) -> tuple[str, str | None] | None:
        """Give the environment variable that an expression is read from, with its default; None when it is read from none."""
        node = parsed(text)
        return None if node is None else self.variable_of(node)

    def variable_of(self, node: ast.expr, depth: int = _DEPTH) -> tuple[str, str | None] | None:
        """Give the environment variable that a node is read from, with its default; None when it is read from none.

        Args:
            node: the node of an expression.
            depth: constants still to follow.
        """
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CASTS and len(node.args) == 1:
            node = node.args[0]
        if isinstance(node, ast.Subscript):
            return self._looked_up(ast.unparse(node.value), node.slice)
        if isinstance(node, ast.Call) and node.args:
            named = [keyword.value if keyword.arg == "default" else None for keyword in node.keywords]
            return self._looked_up(ast.unparse(node.func), *node.args, *named)
        if isinstance(node, ast.Name) and node.id in self.bound:
            text, outside = self.bound[node.id]
            inner = parsed(text) if depth else None
            return None if inner is None else outside.variable_of(inner, depth - 1)
        place = self.names.settled(self.path, dotted(node)) if isinstance(node, (ast.Name, ast.Attribute)) and depth else None
        inner = parsed(place.definition.value) if place is not None and isinstance(place.definition, Constant) else None
        return self.in_file(place.path).variable_of(inner, depth - 1) if place is not None and inner is not None else None

    def _looked_up(self, base: str, key: ast.expr, *more: ast.expr | None) -> tuple[str, str | None] | None:
        """Read a variable that is looked up, and what stands for it where it is not set; None where one of them cannot be read."""
        if self.names.full(self.path, base) not in _ENVIRONMENT or not isinstance(key, ast.Constant):
            return None
        if not self.names.is_kept(self.path, f"environ[{key.value!r}]"):
            return None
        default = more[0] if more else ast.Constant(None)
        if isinstance(default, ast.Constant) and default.value is None:
            return str(key.value), None
        known = None if default is None or len(more) > 1 else self.of_node(default, _DEPTH, exact=True)
        return None if known is None else (str(key.value), str(known))

    def of_node(self, node: ast.expr, depth: int, *, exact: bool = False) -> Value | None:
        """Give the value of a node of an expression.

        Args:
            node: the node.
            depth: constants still to follow.
            exact: whether it must be what Python makes of it, and stay that: no kind of device, nothing that may be changed where it is.
        """
        if depth == 0:
            return None
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            known = words.CONSTANTS.get(_ending(node)) if isinstance(node, ast.Subscript) else None
            return self._named(dotted(node), depth, exact=exact) if known is None else self._text(known, depth - 1, exact=exact)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("torch.device") and node.args and not exact:
            return _device(self.of_node(node.args[0], depth))
        if isinstance(node, ast.JoinedStr) and not exact:
            return self._joined(node, depth)
        if isinstance(node, ast.Tuple if exact else (ast.Tuple, ast.List, ast.Set)):
            values = [self.of_node(entry, depth, exact=exact) for entry in node.elts]
            return None if None in values else tuple(value for value in values if value is not None)
        how, operands = _calculation(node)
        return _calculated(how, [self.of_node(each, depth, exact=exact) for each in operands]) if operands else _literal(node)

    def entries(self, node: ast.expr, depth: int = _DEPTH) -> tuple[Value, ...] | None:
        """Give the entries of a collection, each as it is; None when one of them cannot be read, or when they may change.

        Args:
            node: a display, or the name of a constant that is set to one.
            depth: constants still to follow.
        """
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            values = [self.of_node(entry, depth, exact=True) for entry in node.elts]
            return None if None in values else tuple(value for value in values if value is not None)
        if isinstance(node, (ast.Name, ast.Attribute)) and dotted(node).partition(".")[0] not in (*self.bound, "self", "cls"):
            place = self.names.settled(self.path, dotted(node)) if depth else None
            inner = parsed(place.definition.value) if place is not None and isinstance(place.definition, Constant) else None
            return None if place is None or inner is None else self.in_file(place.path).entries(inner, depth - 1)
        held = self.of_node(node, depth, exact=True)
        return held if isinstance(held, tuple) else None

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

    def with_bound(self, bound: Mapping[str, tuple[str, Values]]) -> Values:
        """Read on inside a function whose parameters are known."""
        return Values(self.names, self.path, self.lineage, bound)

    def _named(self, name: str, depth: int, *, exact: bool) -> Value | None:
        root, _, rest = name.partition(".")
        if name in self.bound:
            text, outside = self.bound[name]
            return outside._text(text, depth - 1, exact=exact)
        if root in self.bound:
            return None
        if root in ("self", "cls") and rest and "." not in rest:
            return self._member(rest, depth, exact=exact)
        place = self.names.settled(self.path, name) if exact else self.names.constant(self.path, name)
        if place is not None and isinstance(place.definition, Constant):
            return self.in_file(place.path)._text(place.definition.value, depth - 1, exact=exact)
        known = words.NUMBERS.get(name.rpartition(".")[2])
        return None if known is None else int(known)

    def settled(self, name: str) -> tuple[str, Constant | Function] | None:
        """Find an attribute, property or method of the class that is set in one place alone, with its file."""
        found = self.attribute(name)
        paths = {ancestor.path for ancestor in self.lineage if ancestor.facts is not None}
        if found is None or (isinstance(found[1], Constant) and found[1].guard is not None):
            return None
        times = max(sum(each.name == name for each in _members(ancestor)) for ancestor in self.lineage)
        return found if times == 1 and all(self.names.is_settled(path, name) for path in paths) else None

    def _member(self, name: str, depth: int, *, exact: bool) -> Value | None:
        found = self.settled(name) if exact else self.attribute(name)
        if found is None:
            return None
        path, member = found
        text = member.value if isinstance(member, Constant) else None if exact else member.returns
        return self.in_file(path)._text(text or "", depth - 1, exact=exact)

    def _text(self, text: str, depth: int, *, exact: bool = False) -> Value | None:
        node = parsed(text)
        return None if node is None else self.of_node(node, depth, exact=exact)

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


def dotted(node: ast.expr) -> str:
    """Give the dotted name of `a.b`, `a.b()`, and of `a().b()` without the first call's arguments; empty when there is none."""
    parts: list[str] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        else:
            return ""
    return ".".join([node.id, *reversed(parts)])


def _ending(node: ast.Subscript) -> str:
    """Give the last two names of `a.b.c["d"]` with its index; empty when that is no name."""
    parts = ast.unparse(node).rsplit(".", 2) if isinstance(node.slice, ast.Constant) else []
    return ".".join(parts[-2:])


def _is_colon(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and str(node.value).startswith(":")


def _device(value: Value | None) -> Value | None:
    return value.partition(":")[0] if isinstance(value, str) else None


def _calculation(node: ast.expr) -> tuple[type[ast.operator] | str, list[ast.expr]]:
    """Take `a * b` and `max(a, b)` apart into how it is calculated and from what; from nothing where it is neither."""
    if isinstance(node, ast.BinOp):
        return type(node.op), [node.left, node.right]
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1 and not node.keywords
    return (node.func.id, node.args) if is_call else ("", [])  # type: ignore[attr-defined] # mypy does not see that it is a call


def _calculated(how: type[ast.operator] | str, values: list[Value | None]) -> int | None:
    """Calculate with whole numbers, as with the sizes of groups of ranks; None for what cannot be read, and for what is large."""
    numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    calculate = _OPERATIONS.get(how)
    if calculate is None or len(numbers) < len(values) or any(abs(number) > _LARGEST for number in numbers):
        return None
    return None if how is ast.FloorDiv and not numbers[1] else calculate(*numbers)


_LARGEST = 1 << 31
"""Of numbers that are calculated with."""
_OPERATIONS: dict[type[ast.operator] | str, Callable[..., int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    "max": max,
    "min": min,
}


def _literal(node: ast.expr) -> Value | None:
    """Give a text or a number as written; the functions that `ast.literal_eval` makes at each call would stay until they are collected."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)) and isinstance(node.operand, ast.Constant):
        number = node.operand.value
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            return None
        return -number if isinstance(node.op, ast.USub) else number
    value = node.value if isinstance(node, ast.Constant) else None
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
