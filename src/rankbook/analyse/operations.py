"""What evaluation may do with plain values: functions, methods and operators of Python itself, none of which can grow without bound."""

from __future__ import annotations

import ast
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping

from rankbook.analyse.things import SAFE_NAME, Case, Thing, Unknown, Value, known, text_of

MOST = 2000
"""Entries of a collection, and variants of a test, that are listed."""
_LONGEST = 10_000
"""Characters of a string."""
_DIGITS = 128
"""Bits of a whole number."""
_FIELD = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_PLAIN_FIELD = re.compile(r"\w*(?:![rs])?(?::[<>^+\- 0#,_]*\d{0,2}(?:\.\d{1,2})?[bcdeEfFgGnosxX%]?)?")
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


def _ordered(values: Iterable[Value]) -> list[Value]:
    """Order a set by the text of its entries; Python promises no order."""
    return sorted(values, key=lambda value: (type(value).__name__, value.name if isinstance(value, Thing) else repr(value)))


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


FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "range": _range,
    "list": lambda values=(): entries(values),
    "tuple": lambda values=(): tuple(entries(values)),
    "iter": entries,
    "set": lambda values=(): frozenset(entries(values)),
    "frozenset": lambda values=(): frozenset(entries(values)),
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
    return value if isinstance(value, (int, float, str)) else text_of(value)


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


_OPERATORS: Mapping[type[ast.AST], Callable[[Value, Value], Value]] = {
    ast.Sub: operator.sub,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
    ast.RShift: operator.rshift,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
    ast.Is: lambda left, right: left is right if _is_single(left) or _is_single(right) else left == right,
    ast.IsNot: lambda left, right: left is not right if _is_single(left) or _is_single(right) else left != right,
}


_SAME: Mapping[type[ast.AST], bool] = {ast.Is: True, ast.Eq: True, ast.IsNot: False, ast.NotEq: False}
"""What compares with `None`, and whether it is true of the same."""


def _is_single(value: Value) -> bool:
    return value is None or isinstance(value, bool)


def binary(kind: type[ast.AST], left: Value, right: Value) -> Value:
    """Apply an operator or a comparison.

    Args:
        kind: class of its node.
        left: a plain value.
        right: a plain value.

    Raises:
        Unknown: it is not defined for them, or the result would be too large.
    """
    if (left is None or right is None) and kind in _SAME:
        return (known(left) is known(right)) == _SAME[kind]
    if _is_object(left) or _is_object(right):
        raise Unknown("it compares or joins objects")
    return bounded((_GROWING.get(kind) or _OPERATORS[kind])(left, right))


def _is_object(value: Value) -> bool:
    return isinstance(value, Case) or (isinstance(value, Thing) and value.kind in ("object", "lambda", "pattern", "text", "unknown"))


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
    if isinstance(value, (str, list, tuple, range, dict)):
        return value[key]
    raise Unknown("it takes an entry of an object")
