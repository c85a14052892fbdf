"""Facts that travel between processes and into the store many at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

_GETTERS: dict[type, Callable[[Any], Any]] = {}
Row = tuple[Any, ...]
"""A named tuple, or a column of several."""


class Packed:
    """Base of dataclasses that are pickled as their class and their values, many times as fast as they would be by themselves."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        kind = type(self)
        names: tuple[str, ...] = kind.__match_args__  # type: ignore[attr-defined] # a dataclass has them
        if kind not in _GETTERS:
            _GETTERS[kind] = attrgetter(*names)
        values = _GETTERS[kind](self)
        return kind, values if len(names) > 1 else (values,)


def columns_of(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Give what many named tuples of one kind hold as columns, which pickle writes without asking each row what it is."""
    return tuple(zip(*rows, strict=True))


def rows_of(kind: type[Row], columns: Sequence[Row]) -> tuple[Any, ...]:
    """Make the named tuples again.

    Args:
        kind: their class.
        columns: what `columns_of` gave.
    """
    return tuple(map(partial(tuple.__new__, kind), zip(*columns, strict=True)))
