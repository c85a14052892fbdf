"""Numbers of tests by what they need: a table with a column for each class of hardware."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup
from msgspec import Struct

from rankbook.pages.hardware import by_gpus, columns


class MatrixRow(Struct, frozen=True):
    """One line of a matrix."""

    label: Markup
    cells: tuple[int, ...]
    """Number of tests by column."""
    tests: int
    """Number of all of its tests."""
    files: int = 0
    """Number of files; 0 where that is not told."""


class Matrix(Struct, frozen=True):
    """A table of numbers of tests."""

    columns: tuple[str, ...]
    """Headings."""
    rows: tuple[MatrixRow, ...]


class Counted(Struct, frozen=True):
    """What a line of a matrix is made from."""

    label: Markup
    hardware: Mapping[str, int]
    """Number of tests by class of hardware."""
    files: int = 0


def matrix(counted: Sequence[Counted]) -> Matrix:
    """Lay numbers of tests out by class of hardware."""
    chosen = columns(by_gpus(each.hardware for each in counted))
    rows = (
        MatrixRow(
            label=each.label,
            cells=tuple(sum(each.hardware.get(key, 0) for key in keys) for _, keys in chosen),
            tests=sum(each.hardware.values()),
            files=each.files,
        )
        for each in counted
    )
    return Matrix(tuple(heading for heading, _ in chosen), tuple(rows))


def added(hardware: Iterable[Mapping[str, int]]) -> Counter[str]:
    """Add up numbers of tests by class of hardware."""
    total: Counter[str] = Counter()
    for counts in hardware:
        total.update(counts)
    return total
