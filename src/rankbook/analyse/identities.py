"""Tells classes, members of enumerations and data types apart where a condition compares them with a parameter of a test."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NamedTuple

from rankbook.analyse.things import DTYPES
from rankbook.analyse.values import Values, dotted, parsed
from rankbook.model import Class

_DEPTH = 4
"""Names that are followed from one to the next."""
_ENUMS = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})
_VALUES = frozenset({"str", "int"})
"""What the members of an enumeration may be besides."""
_TELLING = frozenset({"__eq__", "__ne__", "__new__", "__init__", "_generate_next_value_", "_missing_"})
"""Methods by which members may be one that are set to two values, or two that are one."""


class _Identity(NamedTuple):
    """What a name stands for, and nothing else."""

    kind: str
    name: str
    path: str = ""
    value: str = ""
    """Of a member, as written."""


def same(left: ast.expr, right: ast.expr, values: Values) -> bool | None:
    """Tell whether two names stand for the same class, member or data type; None when that is not known."""
    one, other = identity(left, values), identity(right, values)
    if one is None or other is None:
        return None
    if one == other:
        return True
    differ = one.kind == other.kind and (one.kind != "member" or (one.path == other.path and _differ(one, other)))
    return False if differ else None


def among(left: ast.expr, entries: Iterable[ast.expr], values: Values) -> bool | None:
    """Tell whether a name stands for one of several things; None when that is not known."""
    answers = {same(left, entry, values) for entry in entries}
    return True if True in answers else None if None in answers else False


def identity(node: ast.expr, values: Values, depth: int = _DEPTH) -> _Identity | None:
    """Tell what a name stands for; None when that is not known.

    Args:
        node: the name.
        values: reads it in its file.
        depth: names still to follow.
    """
    if not isinstance(node, (ast.Name, ast.Attribute)) or not depth:
        return None
    name = dotted(node)
    if name in values.bound:
        text, outside = values.bound[name]
        inner = parsed(text)
        return None if inner is None else identity(inner, outside, depth - 1)
    if not name or name.partition(".")[0] in values.bound:
        return None
    full = values.names.full(values.path, name)
    if full.startswith("torch.") and full.removeprefix("torch.") in DTYPES:
        return _Identity("dtype", DTYPES[full.removeprefix("torch.")])
    place = values.names.only(values.path, name)
    if place is not None and isinstance(place.definition, Class) and not place.definition.decorators:
        return _Identity("class", place.definition.qualname, place.path)
    return _member(name, values)


def _member(name: str, values: Values) -> _Identity | None:
    holder, _, last = name.rpartition(".")
    place = values.names.only(values.path, holder) if holder else None
    if place is None or not isinstance(place.definition, Class) or not _is_enumeration(place.definition):
        return None
    set_to = [each for each in place.definition.attributes if each.name == last]
    if len(set_to) != 1 or set_to[0].guard is not None or not values.names.is_settled(place.path, last):
        return None
    return _Identity("member", f"{place.definition.qualname}.{last}", place.path, set_to[0].value)


def _is_enumeration(definition: Class) -> bool:
    """Tell whether a class is an enumeration whose members are told apart by what they are set to."""
    bases = {base.name.rpartition(".")[2] for base in definition.bases}
    is_plain = all(each.name.rpartition(".")[2] == "unique" for each in definition.decorators)
    return is_plain and bool(bases & _ENUMS) and bases <= _ENUMS | _VALUES and not any(each.name in _TELLING for each in definition.methods)


def _differ(one: _Identity, other: _Identity) -> bool:
    """Tell whether two members of one enumeration are two: what they are set to is not the same, and neither is set to the other."""
    if one.name.rpartition(".")[0] != other.name.rpartition(".")[0]:
        return False
    nodes = [parsed(each.value) for each in (one, other)]
    if all(isinstance(node, ast.Call) and dotted(node).rpartition(".")[2] == "auto" for node in nodes):
        return True
    set_to = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return len(set_to) == 2 and set_to[0] != set_to[1]
