"""What the templates of the pages on hardware see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from rankbook.pages.folders import FileRow
from rankbook.pages.folding import folded
from rankbook.pages.hardware import by_gpus
from rankbook.pages.indexes import Part
from rankbook.pages.machines import Machine, asks_for_less, machines, parts_of_smallest, unnumbered
from rankbook.pages.machines import Part as MachinePart
from rankbook.pages.matrix import Counted, Matrix, added, matrix
from rankbook.pages.names import Links
from rankbook.pages.places import Places
from rankbook.pages.text import code, markdown
from rankbook.requirements import KINDS

_VALUES = 30
"""Values of a kind of requirement that a table lists."""
_TOGETHER = 20
"""Values of all kinds up to which they share one table."""
_KINDS = ("backend", "device", "capability", "peer access", "world size")
"""Kinds of requirement that have a table."""


class HardwareView(Struct, frozen=True):
    """A page on hardware as its template sees it."""

    tests: int = 0
    """Number of tests of the suite; 0 on a further page, which lists files only."""
    test_files: int = 0
    machines: tuple[Machine, ...] = ()
    unnumbered: int = 0
    """Tests that need GPUs without a number that can be read."""
    others: int = 0
    """Tests that need another kind of accelerator."""
    smallest: tuple[MachinePart, ...] = ()
    less: tuple[tuple[str, str, int], ...] = ()
    """Requirements that rule this machine out: kind, value and number of tests."""
    folders: Matrix | None = None
    kinds: tuple[tuple[str, Matrix, int], ...] = ()
    """Kind of requirement (empty when one table holds all), its table, and the number of values that it leaves out."""
    files: Matrix | None = None
    parts: tuple[Part, ...] = ()
    """Pages that list the files, when they are too many for this one."""
    part: Part | None = None
    """Which of these pages it is; None for the first page."""


def hardware_view(rows: Collection[FileRow], links: Links, parts: Sequence[Part], files: Matrix | None) -> HardwareView:
    """Sum up what the tests of a suite need of a machine.

    Args:
        rows: the files with tests.
        links: of the page.
        parts: pages that list the files.
        files: the table of the files, when it stands on this page.
    """
    hardware = by_gpus(row.hardware for row in rows)
    asks = _asks(rows)
    sums = {kind: Counter({value: counts.total() for value, counts in values.items()}) for kind, values in asks.items()}
    return HardwareView(
        tests=sum(row.tests for row in rows),
        test_files=len(rows),
        machines=machines(hardware),
        unnumbered=unnumbered(hardware)[0],
        others=unnumbered(hardware)[1],
        smallest=parts_of_smallest(hardware, sums),
        less=asks_for_less(sums),
        folders=_folder_matrix(rows, links),
        kinds=tuple(_value_matrices({kind: asks[kind] for kind in _KINDS if kind in asks})),
        files=files,
        parts=() if files else tuple(parts),
    )


def file_matrix(rows: Sequence[FileRow], places: Places) -> Matrix:
    """Make the table of the files of a page."""
    return matrix([Counted(markdown(places.path(row.path)), row.hardware) for row in rows])


def _asks(rows: Iterable[FileRow]) -> dict[str, dict[str, Counter[str]]]:
    found: dict[str, dict[str, Counter[str]]] = {}
    for row in rows:
        for kind, values in row.asks.items():
            for value, counts in values.items():
                found.setdefault(kind, {}).setdefault(value, Counter()).update(counts)
    return {kind: found[kind] for kind in (*KINDS, *sorted(found)) if kind in found}


def _folder_matrix(rows: Collection[FileRow], links: Links) -> Matrix | None:
    """Sum up folders; None when there is but one."""
    folders = folded({row.path for row in rows})
    found: dict[str, list[FileRow]] = {}
    for row in rows:
        found.setdefault(folders[row.path], []).append(row)
    if len(found) < 2:
        return None
    return matrix([_of_folder(folder, found[folder], links) for folder in sorted(found)])


def _of_folder(folder: str, rows: list[FileRow], links: Links) -> Counted:
    label = code(f"{folder}/") if folder else "Files at the root"
    return Counted(markdown(f"[{label}]({links.index(folder)})"), added(row.hardware for row in rows), len(rows))


def _value_matrices(asks: Mapping[str, Mapping[str, Counter[str]]]) -> Iterator[tuple[str, Matrix, int]]:
    """Make a table of each kind of requirement, or one of all when they are few."""
    if 0 < sum(map(len, asks.values())) <= _TOGETHER:
        rows = [row for kind, values in asks.items() for row in _value_rows(values, f"{kind} ")]
        yield "", matrix(rows), 0
        return
    for kind, values in asks.items():
        yield kind, matrix(_value_rows(values, "" if len(values) > 1 else f"{kind} ")[:_VALUES]), max(0, len(values) - _VALUES)


def _value_rows(values: Mapping[str, Counter[str]], prefix: str) -> list[Counted]:
    most = sorted(values, key=lambda value: (-values[value].total(), value))
    return [Counted(markdown(f"{prefix}{code(value)}" if value else prefix.strip() or "yes"), values[value]) for value in most]
