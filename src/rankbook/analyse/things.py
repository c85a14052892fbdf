"""The values that expressions come to: Python's own where they are plain data, and a `Thing` for all else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from rankbook.model import Class, Function

Value = Any
"""A number, string, tuple, list, dictionary, range ... of such values, or a `Thing`."""

DTYPES: Mapping[str, str] = {
    "float": "float32", "double": "float64", "half": "float16", "int": "int32", "long": "int64", "short": "int16",
    "cfloat": "complex64", "cdouble": "complex128", "chalf": "complex32",
    **{
        name: name
        for name in (
            "float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
            "complex32", "complex64", "complex128", "quint8", "qint8", "qint32", "quint4x2", "quint2x4", "bits1x8", "bits2x4", "bits4x2",
            "bits8", "bits16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2",
            *(f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)),
        )
    },
}  # fmt: skip
"""Names of PyTorch's data types below `torch`, and what each calls itself."""


class Generated(list[Value]):
    """What a generator expression yields; unlike other lists pytest has a name for it."""


class Unknown(Exception):  # noqa: N818 - no failure: the caller says that only a run can tell
    """An expression that the sources do not tell; its text is a clause that says why."""

    of = ""
    """The decorator or call in which it stands, as written."""


class Fails(Unknown):
    """An expression that would raise when it runs, so that a run does not come to it."""


class Choice(Struct, frozen=True, eq=False):
    """A condition that the machine, or a run, decides."""

    path: str
    text: str
    """As written."""
    line: int = 0
    """Where it stands first; it is the same condition further down."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Choice) and (self.path, self.text) == (other.path, other.text)

    def __ne__(self, other: object) -> bool:  # a struct has one of its own
        return not self == other

    def __hash__(self) -> int:
        return hash((self.path, self.text))

    def __lt__(self, other: Choice) -> bool:
        return (self.path, self.text) < (other.path, other.text)


class Undecided(Exception):  # noqa: N818 - no failure: the caller tries both outcomes
    """A condition of which nothing is assumed."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice
        super().__init__(choice)


class Thing(Struct, frozen=True, eq=False):
    """A value that is known by its name."""

    kind: str
    """`class`, `function`, `lambda`, `closure` (a function within another), `test` (a decorated function), `mark` (of pytest), `dtype`,
    `device`, `member` (of an enumeration), `pattern` (of `re`), `text` (of an object), `object`, or `unknown`."""
    name: str
    """Its `__name__`, `Class.MEMBER` of a member, what an object is of, why it is unknown."""
    scalar: Value = None
    """Value of a member that is also a string or a number; device of a device; text of a pattern; whether something unknown would raise."""
    path: str = ""
    """Source in which its class or function stands."""
    definition: Class | Function | None = None
    fields: tuple[tuple[str, Value], ...] = ()
    """Attributes of an object that its call names."""
    body: Any = None
    """Of a lambda, a closure or a mark, its node and the names around it; of a partial, function and arguments; of a test, its marks."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing) and self._told() == other._told()

    def __ne__(self, other: object) -> bool:  # a struct has one of its own
        return not self == other

    def __hash__(self) -> int:
        return hash(self._told())

    def _told(self) -> tuple[Value, ...]:
        """What makes it the same as another: not where it is defined, nor its body."""
        return self.kind, self.name, self.scalar, self.path, self.fields


class Case(Struct, frozen=True):
    """A set of parameters with what is said of it: `subtest(...)`, `pytest.param(...)`."""

    values: Value
    name: str | None
    marks: tuple[str, ...] = ()
    """Marks and decorators as written."""


def text_of(value: Value) -> str:
    """Write a value as `str` does.

    Raises:
        Unknown: it is an object, whose text only a run can tell.
    """
    if isinstance(value, Thing):
        return _thing_text(value)
    if isinstance(value, (list, tuple, dict, set, frozenset)) and (why := _hides(value)):
        raise Unknown(why)
    return str(value)


def _thing_text(thing: Thing) -> str:
    if thing.kind == "dtype":
        return f"torch.{thing.name}"
    if thing.kind == "device":
        return str(thing.scalar)
    if thing.kind == "member":
        return member_text(thing)
    known(thing)
    raise Unknown(f"the text of {thing.name} is known when it runs")


def member_text(member: Thing) -> str:
    """Write a member of an enumeration as `str` does.

    Raises:
        Unknown: its class has a `__str__` of its own.
    """
    text = dict(member.fields).get("__str__", member.name)
    if not isinstance(text, str):
        raise Unknown(f"the text of {member.name} is known when it runs")
    return text


def _hides(value: Value, depth: int = 8) -> str:
    """Say what in a value keeps its text from being known; empty where nothing does."""
    if depth == 0 or isinstance(value, (Thing, Case)):
        return "it holds objects"
    if isinstance(value, (set, frozenset)):
        return "the text of a set is known when it runs"
    if isinstance(value, dict):
        return next((why for pair in value.items() for each in pair if (why := _hides(each, depth - 1))), "")
    if isinstance(value, (list, tuple, range)):
        return next((why for each in value if (why := _hides(each, depth - 1))), "")
    return ""


def scalar_of(value: Value) -> Value:
    """Give a member that is also a string or a number as `isinstance` sees it; any other value as it is."""
    return value.scalar if isinstance(value, Thing) and value.kind == "member" and value.scalar is not None else value


def known(value: Value) -> Value:
    """Give a value back unless it is unknown.

    Raises:
        Unknown: it is.
    """
    if isinstance(value, Thing) and value.kind == "unknown":
        raise Fails(value.name) if value.scalar else Unknown(value.name)
    return value


def told(value: Value, depth: int = 8) -> None:
    """Make sure that a value and what it holds are known.

    Raises:
        Unknown: something is not.
    """
    known(value)
    if isinstance(value, Thing) and value.kind == "object":
        raise Unknown(f"what `{value.name}` is is known when it runs")
    if depth and isinstance(value, (list, tuple, set, frozenset, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            told(each, depth - 1)


def unknown(error: Unknown) -> Thing:
    """Give what stands for a value that the sources do not tell."""
    return Thing("unknown", str(error), isinstance(error, Fails) or None)


SAFE_NAME = re.compile(r"[^a-zA-Z0-9_]+")
"""What may not stand in the name of a function."""
