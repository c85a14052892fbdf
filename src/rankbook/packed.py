"""Rows that travel between processes and into the store many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

Row = tuple[Any, ...]
"""A named tuple, or a column of several."""


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
