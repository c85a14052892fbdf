"""What evaluation may do with plain values: functions, methods and operators of Python itself, none of which can grow without bound."""

from __future__ import annotations

import ast
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Self

from msgspec import Struct

from rankbook.analyse.things import SAFE_NAME, Case, Fails, Thing, Unknown, Value, known, scalar_of, text_of

MOST = 2000
"""Entries of a collection, and variants of a test, that are listed."""
_LONGEST = 10_000
"""Characters of a string."""
_DIGITS = 128
"""Bits of a whole number."""
_FIELD = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_PLAIN_FIELD = re.compile(r"\w*(?:![rs])?(?::[<>^+\- 0#,_]*\d{0,2}(?:\.\d{1,2})?[bcdeEfFgGnosxX%]?)?")
_PLAIN_PATTERN = re.compile(r"[\w\s'\"/:;,<>=!@%&~`-]+|(?:\\[wWdDsS]|\\[^\w\s]|\[\^?(?:\\[wWdDsS\W]|[^\\\[\]&~|-]|\w-\w)+-?\])\+?")
_PLAIN_PERCENT = re.compile(r"%[+\- 0#]*\d{0,2}(?:\.\d{1,2})?[diouxXeEfFgGcrs%]")


def bounded(value: Value) -> Value:
    """Give a value back unless it is too large to list.

    Raises:
        Unknown: it is.
    """
    if isinstance(value, str | bytes):
        large = len(value) > _LONGEST
    elif isinstance(value, int):
        large = value.bit_length() > _DIGITS
    elif isinstance(value, (list, tuple, dict, set, frozenset, range)):
        large = len(value) > MOST
    else:
        large = False
    if large:
        raise Unknown(f"it holds more than {MOST:,} values")
    return value


def entries(value: Value) -> list[Value]:
    """Give what iteration gives.

    Raises:
        Unknown: it cannot be iterated over, or has no order.
    """
    if isinstance(value, (list, tuple, range, dict, str)):
        return list(bounded(value))
    if isinstance(value, (set, frozenset)):
        return _ordered(value)
    known(value)
    raise Unknown("it is no list that can be read")


class SetOrder(Struct):
    """In which of two orders sets are gone through: Python promises none, and of texts it takes another in each run."""

    is_turned: bool = False
    """Whether each entry stands elsewhere than in the other order."""
    is_asked: bool = False
    """Whether a set was gone through that has more than one entry."""


_SET_ORDER: ContextVar[SetOrder | None] = ContextVar("order of sets", default=None)


def set_order() -> SetOrder:
    """Give the order in which sets are gone through."""
    return _SET_ORDER.get() or SetOrder()


@contextmanager
def sets_in(order: SetOrder) -> Iterator[SetOrder]:
    """Go through sets in an order, and note whether it was asked for."""
    token = _SET_ORDER.set(order)
    try:
        yield order
    finally:
        _SET_ORDER.reset(token)


def _ordered(values: Iterable[Value]) -> list[Value]:
    """Order a set by the text of its entries, or otherwise; see `SetOrder`."""
    found = sorted(values, key=lambda value: (type(value).__name__, value.name if isinstance(value, Thing) else repr(value)))
    order = set_order()
    order.is_asked = order.is_asked or len(found) > 1
    return [*found[1:], *found[:1]] if order.is_turned else found


def _product(*lists: Value, repeat: int = 1) -> Value:
    parts = [entries(each) for each in lists] * min(repeat, 20)
    if math.prod(map(len, parts)) > MOST:
        raise Unknown(f"it has more than {MOST:,} variants")
    return list(itertools.product(*parts))


def _chosen(choose: Callable[..., Iterable[Value]], count: Callable[[int, int], int]) -> Callable[..., Value]:
    def of(values: Value, size: int | None = None) -> Value:
        listed = entries(values)
        number = len(listed) if size is None else size
        if number > 20 or count(len(listed), number) > MOST:
            raise Unknown(f"it has more than {MOST:,} variants")
        return list(choose(listed, number))

    return of


def _range(*numbers: int) -> Value:
    return bounded(range(*numbers))


def _zip(*lists: Value, strict: bool = False) -> Value:
    return list(zip(*map(entries, lists), strict=strict))


def _enumerate(values: Value, start: int = 0) -> Value:
    return list(enumerate(entries(values), start))


def _sum(values: Value, start: Value = 0) -> Value:
    total = start
    for value in entries(values):
        total = binary(ast.Add, total, value)
    return total


def _sorted(values: Value, *, reverse: bool = False) -> Value:
    return sorted(entries(values), reverse=reverse)


def _dict(*pairs: Value, **named: Value) -> Value:
    start = pairs[0] if pairs else {}
    return bounded({**dict(start if isinstance(start, dict) else entries(start)), **named})


def _chain(*lists: Value) -> Value:
    return bounded([entry for each in lists for entry in entries(each)])


def _flattened(lists: Value) -> Value:
    return _chain(*entries(lists))


def _escape(value: Value) -> Value:
    if isinstance(known(value), Thing):
        raise Unknown("it is an object")
    return re.escape(value)


def _substituted(pattern: Value, by: Value, text: Value, *more: Value, **named: Value) -> str:
    """Do what `re.sub` does with a pattern whose matches take no time: a text, or one class of characters."""
    if isinstance(pattern, Thing):
        pattern = pattern.scalar if pattern.kind == "pattern" and not pattern.fields else None
    if (
        more
        or named
        or not all(isinstance(each, str) for each in (pattern, by, text))
        or "\\" in by
        or not _PLAIN_PATTERN.fullmatch(pattern)
    ):
        raise Unknown("its pattern is not plain")
    try:
        return re.sub(pattern, by, text)
    except re.error as error:
        raise Fails("its pattern is none") from error


FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "range": _range,
    "list": lambda values=(): entries(values),
    "tuple": lambda values=(): tuple(entries(values)),
    "iter": entries,
    "set": lambda values=(): distinct(entries(values)),
    "frozenset": lambda values=(): distinct(entries(values)),
    "dict": _dict,
    "zip": _zip,
    "enumerate": _enumerate,
    "sorted": _sorted,
    "reversed": lambda values: entries(values)[::-1],
    "sum": _sum,
    "len": lambda values: len(entries(values)),
    "min": lambda *values: min(entries(values[0]) if len(values) == 1 else values),
    "max": lambda *values: max(entries(values[0]) if len(values) == 1 else values),
    "abs": abs,
    "round": round,
    "bool": bool,
    "int": int,
    "float": float,
    "any": lambda values: any(entries(values)),
    "all": lambda values: all(entries(values)),
    "re.escape": _escape,
    "re.sub": _substituted,
    **dict.fromkeys(
        ("parameterized.parameterized.to_safe_name", "parameterized.to_safe_name"), lambda value: SAFE_NAME.sub("_", text_of(value))
    ),
    "itertools.product": _product,
    "itertools.chain": _chain,
    "itertools.chain.from_iterable": _flattened,
    "itertools.permutations": _chosen(itertools.permutations, math.perm),
    "itertools.combinations": _chosen(itertools.combinations, math.comb),
    "itertools.combinations_with_replacement": _chosen(
        itertools.combinations_with_replacement, lambda size, number: math.comb(size + number - 1, number) if size else 0
    ),
}
"""Functions that are called on plain values, by their full dotted name."""


def _format(template: str, *values: Value, **named: Value) -> str:
    if not all(match[1] is None or _PLAIN_FIELD.fullmatch(match[1]) for match in _FIELD.finditer(template)):
        raise Unknown("its format is not plain")
    return template.format(*map(_formattable, values), **{name: _formattable(value) for name, value in named.items()})


def _formattable(value: Value) -> Value:
    return value if isinstance(value, (int, float, str)) else _Formatted(text_of(value), value)


class _Formatted(str):
    """The text of a value in a format, where it may also be asked for as `repr` writes it."""

    __slots__ = ("value",)
    value: Value

    def __new__(cls, text: str, value: Value) -> Self:
        made = super().__new__(cls, text)
        made.value = value
        return made

    def __repr__(self) -> str:
        if isinstance(self.value, Thing) and self.value.kind != "dtype":
            raise Unknown("it writes an object")
        return str(self)


def _join(separator: str, parts: Value) -> str:
    listed = entries(parts)
    if not all(isinstance(part, str) for part in listed):
        raise Unknown("it joins what is no text")
    if sum(len(part) + len(separator) for part in listed) > _LONGEST:
        raise Unknown("its text is too long")
    return separator.join(listed)


def _replace(text: str, old: str, new: str) -> str:
    if (text.count(old) + 1) * len(new) > _LONGEST:
        raise Unknown("its text is too long")
    return text.replace(old, new)


METHODS: Mapping[tuple[type, str], Callable[..., Value]] = {
    **{
        (str, method.__name__): method
        for method in (
            str.upper, str.lower, str.title, str.capitalize, str.strip, str.lstrip, str.rstrip, str.split, str.rsplit, str.partition,
            str.rpartition, str.startswith, str.endswith, str.removeprefix, str.removesuffix, str.isdigit, str.swapcase,
        )
    },
    (str, "format"): _format,
    (str, "join"): _join,
    (str, "replace"): _replace,
    (dict, "keys"): list,
    (dict, "values"): lambda each: list(each.values()),
    (dict, "items"): lambda each: list(each.items()),
    (dict, "get"): dict.get,
    (dict, "copy"): dict,
    (list, "copy"): list,
    (list, "index"): list.index,
    (list, "count"): list.count,
    (tuple, "index"): tuple.index,
    (frozenset, "union"): lambda each, *others: each.union(*map(entries, others)),
    (frozenset, "difference"): lambda each, *others: each.difference(*map(entries, others)),
    (frozenset, "intersection"): lambda each, *others: each.intersection(*map(entries, others)),
}  # fmt: skip
"""Methods that are called on plain values."""


def method(value: Value, name: str) -> Callable[..., Value]:
    """Find a method of a plain value.

    Raises:
        Unknown: no row names it.
    """
    found = METHODS.get((type(value), name))
    if found is None:
        raise Unknown(f"`.{name}` is known when it runs")
    return found


def same(left: Value, right: Value) -> bool:
    """Tell whether two values are equal.

    Raises:
        Unknown: only a run can tell, as of two objects.
    """
    if left is None or right is None:
        return known(left) is known(right)
    left, right = scalar_of(left), scalar_of(right)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return type(left) is type(right) and len(left) == len(right) and _all(zip(left, right, strict=True), equal=True)
    if isinstance(left, dict) and isinstance(right, dict):
        return len(left) == len(right) and all(holds(right, key) and same(value, entry(right, key)) for key, value in left.items())
    if isinstance(left, frozenset) and isinstance(right, frozenset):
        return len(left) == len(right) and all(holds(right, each) for each in left)
    if _is_object(left) or _is_object(right):
        raise Unknown("it compares objects")
    return bool(left == right)


def _all(pairs: Iterable[tuple[Value, Value]], *, equal: bool) -> bool:
    """Tell whether the values of each pair are equal, or differ; one that is otherwise is enough, whatever is not known of the others."""
    open_one: Unknown | None = None
    for left, right in pairs:
        try:
            if same(left, right) is not equal:
                return False
        except Unknown as error:
            open_one = error
    if open_one is not None:
        raise open_one
    return True


def holds(collection: Value, value: Value) -> bool:
    """Tell whether a collection, or a text, holds a value; see `same`."""
    collection = scalar_of(collection)
    if isinstance(collection, (str, bytes, range)):
        return known(scalar_of(value)) in collection
    listed = collection if isinstance(collection, (list, tuple, dict, frozenset)) else entries(collection)
    if isinstance(value, _SCALARS) and _SCALAR_TYPES.issuperset(map(type, listed)):
        return value in listed
    return not _all(((each, value) for each in listed), equal=False)


def entry(table: dict[Value, Value], key: Value) -> Value:
    """Give what a dictionary has for a key that is equal to one of its own.

    Raises:
        KeyError: it has none.
    """
    if isinstance(key, _SCALARS) and key in table:
        return table[key]
    return next(value for each, value in table.items() if same(each, key)) if holds(table, key) else table[key]


def distinct(values: Iterable[Value]) -> frozenset[Value]:
    """Give the set of some values.

    Raises:
        Unknown: two of them are objects that may be one.
    """
    listed = list(values)
    found = frozenset(listed)
    if len(found) < len(listed) and sum(map(_is_object, listed)) > sum(map(_is_object, found)):
        raise Unknown("it compares objects")
    return found


def _is_one(left: Value, right: Value) -> bool:
    """Tell whether two values are the same object, as far as `==` tells it."""
    if left is None or right is None or isinstance(left, bool) or isinstance(right, bool):
        return known(left) is known(right)
    if _is_object(left) or _is_object(right):
        raise Unknown("it compares objects")
    return bool(left == right)


def _is_object(value: Value) -> bool:
    """Tell whether it is not known of a value what it equals: of a class, a function or a member of an enumeration its name tells it."""
    if isinstance(value, Thing):
        return value.kind not in _TOLD or (value.kind == "function" and value.body is not None)
    return isinstance(value, Case)


_TOLD = frozenset({"builtin", "class", "device", "dtype", "function", "member", "text"})
"""Kinds of things that are equal where they are called the same; methods are not. Texts of objects are equal where those are made alike."""
_SCALARS = (str, int, float, complex, bytes, type(None))
_SCALAR_TYPES = frozenset({str, int, float, complex, bytes, bool, type(None)})
_COMPARISONS = frozenset({ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot})
"""Operators that themselves say what they cannot compare."""
_OPERATORS: Mapping[type[ast.AST], Callable[[Value, Value], Value]] = {
    ast.Sub: operator.sub,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
    ast.RShift: operator.rshift,
    ast.Eq: same,
    ast.NotEq: lambda left, right: not same(left, right),
    ast.Lt: lambda left, right: scalar_of(left) < scalar_of(right),
    ast.LtE: lambda left, right: scalar_of(left) <= scalar_of(right),
    ast.Gt: lambda left, right: scalar_of(left) > scalar_of(right),
    ast.GtE: lambda left, right: scalar_of(left) >= scalar_of(right),
    ast.In: lambda left, right: holds(right, left),
    ast.NotIn: lambda left, right: not holds(right, left),
    ast.Is: _is_one,
    ast.IsNot: lambda left, right: not _is_one(left, right),
}


def binary(kind: type[ast.AST], left: Value, right: Value) -> Value:
    """Apply an operator or a comparison.

    Args:
        kind: class of its node.
        left: a plain value.
        right: a plain value.

    Raises:
        Unknown: it is not defined for them, or the result would be too large.
    """
    if kind not in _COMPARISONS and (_is_object(left) or _is_object(right)):
        raise Unknown("it compares or joins objects")
    return bounded((_GROWING.get(kind) or _OPERATORS[kind])(left, right))


def _added(left: Value, right: Value) -> Value:
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)) and type(left) is not type(right):
        right = type(left)(right)  # PyTorch's tuples of data types add lists
    return bounded(left + right)


def _times(left: Value, right: Value) -> Value:
    sizes = [len(side) if isinstance(side, (str, list, tuple)) else None for side in (left, right)]
    numbers = [side for side in (left, right) if isinstance(side, int)]
    if any(size is not None for size in sizes) and numbers and max(map(abs, numbers)) * max(size or 0 for size in sizes) > MOST:
        raise Unknown(f"it holds more than {MOST:,} values")
    return bounded(left * right)


def _modulo(left: Value, right: Value) -> Value:
    if not isinstance(left, str):
        return left % right
    if _PLAIN_PERCENT.sub("", left).count("%"):
        raise Unknown("its format is not plain")
    parts = right if isinstance(right, tuple) else (right,)
    return bounded(left % tuple(map(_formattable, parts)))


def _power(left: Value, right: Value) -> Value:
    if not (isinstance(left, (int, float)) and isinstance(right, (int, float)) and abs(left) <= 2**32 and abs(right) <= 64):
        raise Unknown("its number is too large")
    return left**right


_GROWING: Mapping[type[ast.AST], Callable[[Value, Value], Value]] = {
    ast.Add: _added,
    ast.Mult: _times,
    ast.Mod: _modulo,
    ast.Pow: _power,
    ast.LShift: lambda left, right: _power(2, right) * left,
}
"""Operators whose results may be larger than what they are given."""


def index(value: Value, key: Value) -> Value:
    """Give `value[key]`."""
    if isinstance(value, dict):
        return entry(value, known(key))
    if isinstance(value, (str, list, tuple, range)):
        return value[known(scalar_of(key))]
    raise Unknown("it takes an entry of an object")
