"""Reads comparisons: with a count, a version, a platform, an environment variable."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from typing import Any

from rankbook import vocabulary, words
from rankbook.analyse.counting import DEPTH, GPUS, compared_with, counted, plain
from rankbook.analyse.identities import among, same
from rankbook.analyse.rules import Evidence, Unread, made
from rankbook.analyse.values import Value, Values, dotted, shown
from rankbook.requirements import Requirement, joined

OPERATORS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", ">="),
    ast.LtE: ("<=", ">"),
    ast.Gt: (">", "<="),
    ast.GtE: (">=", "<"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
"""Each operator, and what it is turned into by `not`."""
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_TRUTH: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "in": lambda a, b: a in b, "not in": lambda a, b: a not in b,
}  # fmt: skip
_EQUALS = {"==": "==", "is": "==", "in": "==", "!=": "!=", "is not": "!=", "not in": "!="}


class Truth(Exception):  # noqa: N818 - no failure: the caller takes the answer
    """The condition is the same on every machine.

    Args:
        holds: whether it is met.
    """

    def __init__(self, *, holds: bool) -> None:
        super().__init__()
        self.holds = holds


class Bare(Exception):  # noqa: N818 - no failure: the caller reads the name instead
    """The comparison asks only whether a name is true or set.

    Args:
        node: the name.
        wanted: whether it must be.
    """

    def __init__(self, node: ast.expr, *, wanted: bool) -> None:
        super().__init__()
        self.node = node
        self.wanted = wanted


def of_comparison(node: ast.Compare, values: Values, evidence: Evidence, *, wanted: bool) -> list[Requirement]:
    """Read a comparison of two sides.

    Args:
        node: the comparison.
        values: reads its sides.
        evidence: where it stands.
        wanted: whether the test needs it to be true.

    Raises:
        Unread: the tables do not tell it.
        Truth: it is the same on every machine.
        Bare: it asks whether a name is true or set.
    """
    left, right = plain(node.left), plain(node.comparators[0])
    sign = OPERATORS[type(node.ops[0])][0 if wanted else 1]
    if sign in ("in", "not in"):
        return _of_membership(node, sign, right, values, evidence)
    if isinstance(left, (ast.Constant, ast.Tuple)) and sign in _MIRRORED:
        left, right, sign = right, left, _MIRRORED[sign]
    if isinstance(right, ast.Constant) and (right.value is None or right.value is True or right.value is False) and sign in _EQUALS:
        return _of_singleton(left, sign, right.value, values, evidence)
    found = _of_count(left, sign, right, values, evidence) or _of_text(left, sign, right, values, evidence)
    found = found or _of_order(left, sign, right, values, evidence)
    if found is None and sign in _MIRRORED:  # a name for a number may stand on either side
        turned = _MIRRORED[sign]
        found = _of_count(right, turned, left, values, evidence) or _of_order(right, turned, left, values, evidence)
    if found is None:
        left, right = node.left, node.comparators[0]
        sign = OPERATORS[type(node.ops[0])][0 if wanted else 1]
        _fold(values.of_node(left, DEPTH, exact=True), sign, values.of_node(right, DEPTH, exact=True))
        _tell(same(left, right, values) if sign in _EQUALS else None, sign)
        raise Unread
    return found


def _tell(answer: bool | None, sign: str) -> None:  # noqa: FBT001 - what is known of two things
    if answer is not None:
        raise Truth(holds=answer == (_EQUALS[sign] == "=="))


def _fold(left: Value | None, sign: str, right: Value | None) -> None:
    if left is None or right is None:
        return
    if sign in ("is", "is not"):
        _tell(_is(left, right), sign)
    if sign not in _TRUTH:
        return
    try:
        holds = bool(_TRUTH[sign](left, right))
    except TypeError:
        return
    raise Truth(holds=holds)


def _is(left: Value, right: Value) -> bool | None:
    """Tell whether two values are one thing; None when only a run can tell, as of two numbers that are equal."""
    if left != right or type(left) is not type(right):
        return False
    return True if isinstance(left, bool) else None


def _of_singleton(left: ast.expr, sign: str, value: object, values: Values, evidence: Evidence) -> list[Requirement]:
    """Read `x is None`, `x == True`: they ask whether x is set, or true."""
    equal = _EQUALS[sign] == "=="
    variable = values.variable_of(left)
    if variable is not None and value is None:
        if variable[1] is not None:
            raise Unread
        return [made("environment", f"{variable[0]} {'not set' if equal else 'set'}", evidence)]
    optional = values.names.optional(values.path, dotted(left)) if value is None and dotted(left) not in values.bound else None
    if optional is not None:
        if equal and not optional.is_whole:
            raise Unread
        return [made("package", f"not {optional.package}" if equal else optional.package, evidence)]
    known = values.of_node(left, DEPTH, exact=True)
    if known is not None:
        raise Truth(holds=(known is value if sign.startswith("is") else known == value) == equal)
    raise Bare(left, wanted=(value is True) == equal)


def _of_membership(node: ast.Compare, sign: str, right: ast.expr, values: Values, evidence: Evidence) -> list[Requirement]:
    left = plain(node.left)
    found, held = values.of_node(left, DEPTH), values.of_node(right, DEPTH)
    holder = _row(words.HOLDERS, right, values)
    if holder and isinstance(found, str):
        name = words.SPELLINGS.get(found, found)
        return [made(words.HOLDERS[holder], name if sign == "in" else f"not {name}", evidence)]
    if isinstance(found, str) and values.names.full(values.path, dotted(right)) == "os.environ":
        return [made("environment", f"{found} {'set' if sign == 'in' else 'not set'}", evidence)]
    if isinstance(found, str) and _is_system(right, values):
        return [_of_system(found, "==" if sign == "in" else "!=", evidence)]
    if isinstance(held, (tuple, str)):
        entries = held if isinstance(held, tuple) else (held,)
        is_open = isinstance(held, str) and not _is_system(left, values)
        known = None if is_open else _of_text_value(left, sign, entries, values, evidence)
        if known is not None:
            return known
    left, right = node.left, node.comparators[0]
    holds = values.entries(right)
    _fold(values.of_node(left, DEPTH, exact=True), sign, values.of_node(right, DEPTH, exact=True) if holds is None else holds)
    if isinstance(right, (ast.Tuple, ast.List, ast.Set)):
        _tell(among(left, right.elts, values), sign)
    raise Unread


def _of_text(left: ast.expr, sign: str, right: ast.expr, values: Values, evidence: Evidence) -> list[Requirement] | None:
    if sign not in _EQUALS:
        return None
    value = values.of_node(right, DEPTH)
    return None if value is None else _of_text_value(left, sign, (value,), values, evidence)


def _of_text_value(left: ast.expr, sign: str, entries: tuple[Value, ...], values: Values, evidence: Evidence) -> list[Requirement] | None:
    """Read what compares a platform or an environment variable with words."""
    texts = [text for text in map(shown, entries) if text is not None]
    if len(texts) < len(entries):
        return None
    equals = _EQUALS[sign]
    if _is_system(left, values):
        named = [_of_system(text, equals, evidence) for text in texts]
        return [made("platform", joined(need.value for need in named), evidence)] if equals == "==" else named
    if _row(dict.fromkeys(words.DEVICE_NAMES), left, values):
        return _of_device(equals, texts, evidence)
    variable = values.variable_of(left)
    return None if variable is None else _of_variable(*variable, equals, texts, evidence)


def _of_device(equals: str, texts: list[str], evidence: Evidence) -> list[Requirement]:
    """Read a comparison of the device that tests run on; `cpu` is what it is without a GPU."""
    if texts == ["cpu"]:
        return [made("gpus", "== 0" if equals == "==" else "1", evidence)]
    if equals == "==":
        return [made("device", joined(texts), evidence)]
    return [made("device", f"not {text}", evidence) for text in texts]


def _of_variable(name: str, default: str | None, equals: str, texts: list[str], evidence: Evidence) -> list[Requirement]:
    """Read a comparison with an environment variable; its default counts where it is not set."""
    allowed = [*texts, "unset"] if default in texts else texts
    if not texts:
        raise Truth(holds=equals == "!=")
    if equals == "==":
        return [made("environment", f"{name} == {joined(allowed)}", evidence)]
    return [made("environment", f"{name} != {text}", evidence) for text in allowed]


def _of_order(left: ast.expr, sign: str, right: ast.expr, values: Values, evidence: Evidence) -> list[Requirement] | None:
    """Read what asks whether the number in an environment variable is large enough, or small; its default counts where it is not set."""
    if sign not in ("<", "<=", ">", ">="):
        return None
    variable, value = values.variable_of(left), values.of_node(right, DEPTH, exact=True)
    if variable is None or not isinstance(value, int) or isinstance(value, bool) or value < 0:
        return None
    name, default = variable
    is_number = default is not None and default.isdecimal()
    unset = " or unset" if is_number and _TRUTH[sign](int(str(default)), value) else ""
    return [made("environment", f"{name} {sign} {value}{unset}", evidence)]


def _is_system(node: ast.expr, values: Values) -> bool:
    name = dotted(node)
    return bool(name) and values.names.full(values.path, name) in words.SYSTEM_NAMES


def _of_system(text: str, equals: str, evidence: Evidence) -> Requirement:
    system = words.SYSTEMS.get(text, text)
    return made("platform", system if equals == "==" else f"not {system}", evidence)


def _row(table: Any, node: ast.expr, values: Values) -> str | None:
    name = dotted(node)
    return vocabulary.find(table, values.names.full(values.path, name)) if name else None


def _of_count(left: ast.expr, sign: str, right: ast.expr, values: Values, evidence: Evidence) -> list[Requirement] | None:
    """Read what compares a number of GPUs, or a version."""
    row = counted(left, values)
    if row is None:
        return None
    value = compared_with(right, values)
    if row[0] == "gpus":
        return _of_gpus(sign, value, values.variable_of(right), evidence, is_exact=row == GPUS)
    text = None if value is None else shown(value)
    if text is None or sign not in _MIRRORED:
        raise Unread
    return [made(row[0], f"{row[1]} {sign} {text}".strip(), evidence)]


def _of_gpus(
    sign: str, value: Value | None, variable: tuple[str, str | None] | None, evidence: Evidence, *, is_exact: bool
) -> list[Requirement]:
    """Read what compares a number of GPUs; of a number that is at most theirs, only what says that there are enough of them."""
    if variable is not None and sign in (">=", "=="):
        return [made("gpus", variable[0], evidence)]
    if not isinstance(value, int):
        raise Unread
    if sign in ("<", ">"):
        sign, value = ("<=", value - 1) if sign == "<" else (">=", value + 1)
    if sign == ">=":
        return [made("gpus", str(value), evidence)] if value > 0 else []
    if sign == "!=" and value == 0:
        return [made("gpus", "1", evidence)]
    if sign == "!=" or value < 0 or not is_exact:
        raise Unread
    return [made("gpus", f"== {value}" if sign == "==" else f"<= {value}", evidence)]


def sides(node: ast.Compare) -> Iterable[ast.Compare]:
    """Take `a <= b < c` apart into its comparisons of two."""
    lefts = [node.left, *node.comparators[:-1]]
    for left, sign, right in zip(lefts, node.ops, node.comparators, strict=True):
        yield ast.Compare(left, [sign], [right])
