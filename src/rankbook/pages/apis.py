"""The index of APIs: which tests exercise a name, where, and on what hardware."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from rankbook.model import Survey, Use
from rankbook.pages.hardware import hardware_of, order, told
from rankbook.pages.indexes import Section
from rankbook.pages.places import Places
from rankbook.pages.text import code, markdown, text
from rankbook.report import plural
from rankbook.requirements import Requirement

MOST = 50
"""Files of a name that the index lists."""
PAGE = 250
"""Files that a page of it lists: each takes several links."""
_LINES = 3
"""Lines of a file that it lists."""
_KINDS = ("backend", "capability", "peer access")
"""Kinds of requirement that it tells beside the number of GPUs."""
_NEEDS = 6
"""Requirements of a name that it tells."""


class ApiRow(NamedTuple):
    """A name that tests of a file exercise: one row of the index of APIs."""

    name: str
    """Full dotted name: `torch.distributed.all_reduce`."""
    path: str
    """The file of the tests."""
    lines: tuple[int, ...]
    """First lines that use it."""
    more: int
    """Number of lines beyond these."""
    via: str
    """The file of the lines, when only helpers in other files use it; empty when they are lines of `path`."""
    tests: int
    """Number of tests that reach it."""
    hardware: tuple[str, ...]
    """Classes of hardware that these tests need, as `hardware.read` reads them."""
    needs: tuple[str, ...]
    """What else they need, as texts."""
    home: str = ""
    """The file of the book that defines it; empty where none does."""
    line: int = 0
    """Where it does."""


def api_rows(survey: Survey) -> tuple[ApiRow, ...]:
    """Give the names that the tests of a file exercise."""
    hardware = {test.id: hardware_of(test).key for test in survey.tests}
    needs = {test.id: [_text(need) for need in test.requirements if need.kind in _KINDS] for test in survey.tests}
    return tuple(_row(survey.path, use, hardware, needs) for use in survey.uses if use.tests)


def api_sections(rows: Iterable[ApiRow], places: Places) -> Iterator[Section]:
    """Write the rows of one page of the index, under their namespaces.

    Args:
        rows: in any order.
        places: the links of the page.
    """
    names: dict[str, list[ApiRow]] = {}
    for row in rows:
        names.setdefault(row.name, []).append(row)
    spaces: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: (name.casefold().split("."), name)):
        spaces.setdefault(name.rpartition(".")[0], []).append(_entry(name, names[name], places))
    for space in sorted(spaces, key=lambda space: (space.casefold().split("."), space)):
        yield Section(code(space) if space else "Modules as a whole", markdown(_HEAD + "".join(spaces[space])))


_HEAD = "| Name | Tests | Needs | Where |\n|---|--:|---|---|\n"


def _row(path: str, use: Use, hardware: Mapping[str, str], needs: Mapping[str, list[str]]) -> ApiRow:
    via = "" if use.lines or not use.places else use.places[0][0]
    lines = tuple(line for place, line in use.places if place == via) if via else use.lines
    return ApiRow(
        name=use.name,
        path=path,
        lines=lines[:_LINES],
        more=len(lines[_LINES:]),
        via=via,
        tests=len(use.tests),
        hardware=tuple(sorted({hardware[test] for test in use.tests if test in hardware}, key=order)),
        needs=tuple(sorted({need for test in use.tests for need in needs.get(test, ())})),
        home=use.home[0] if use.home else "",
        line=use.home[1] if use.home else 0,
    )


def _text(need: Requirement) -> str:
    return need.value if need.kind == "backend" else need.text


def _entry(name: str, rows: list[ApiRow], places: Places) -> str:
    rows.sort(key=lambda row: (-row.tests, row.path))
    shown = rows[:MOST]
    near = places.among({path for row in shown for path in (row.path, row.via) if path})
    where = [_place(row, near) for row in shown if not row.via]
    through: dict[tuple[str, int], list[str]] = {}
    for row in shown:
        if row.via:
            through.setdefault((row.via, row.lines[0]), []).append(near.file(row.path))
    where += [f"{near.line(via, line)} for {', '.join(files)}" for (via, line), files in through.items()]
    where += [plural(len(rows) - MOST, "more file")] if len(rows) > MOST else []
    label = code(name.rpartition(".")[2])
    home = next((row for row in rows if row.home), None)
    shown_name = places.labelled(label, home.home, home.line) if home else label
    return f"| {shown_name} | {sum(row.tests for row in rows):,} | {_told(rows)} | {'; '.join(where)} |\n"


def _told(rows: list[ApiRow]) -> str:
    others = sorted({need for row in rows for need in row.needs})
    shown = [*told({key for row in rows for key in row.hardware}), *(str(text(need)) for need in others)]
    return ", ".join(shown[:_NEEDS]) + (f" and {len(shown) - _NEEDS} more" if len(shown) > _NEEDS else "")


def _place(row: ApiRow, places: Places) -> str:
    first, *others = row.lines
    links = [places.line(row.path, first), *(places.number(row.path, line) for line in others)]
    return ", ".join(links) + (f" and {plural(row.more, 'more line')}" if row.more else "")
