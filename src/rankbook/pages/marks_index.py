"""Which files have tests with a mark or a decorator, and tests that need something: the index of marks and requirements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rankbook.pages.folders import FileRow
from rankbook.pages.indexes import Section
from rankbook.pages.places import Places
from rankbook.pages.text import code, in_a_line, markdown
from rankbook.report import plural
from rankbook.requirements import KINDS

MOST = 8
"""Files of a mark that the index lists."""
MARK, DECORATOR = "mark", "decorator"
_FIRST = (MARK, DECORATOR)
_HEADINGS = {MARK: "Marks", DECORATOR: "Decorators", "one of": "One of several", "condition": "Conditions, as they are written"}
_HEAD = "| {} | Tests | Files | Where |\n|---|--:|--:|---|\n"

Marked = Mapping[str, Mapping[str, int]]
"""Number of tests by kind and value, with a line end between them, and by file."""


def marked(rows: Mapping[str, FileRow]) -> dict[str, dict[str, int]]:
    """Gather which files have tests with which marks, decorators and requirements.

    Args:
        rows: the files with tests, by path.
    """
    found: dict[str, dict[str, int]] = {}
    for path, row in rows.items():
        for kind, names in ((MARK, row.marks), (DECORATOR, row.decorators)):
            for name, tests in names.items():
                found.setdefault(f"{kind}\n{name}", {})[path] = tests
        for kind, values in row.asks.items():
            for value, counts in values.items():
                found.setdefault(f"{kind}\n{value}", {}).setdefault(path, sum(counts.values()))
    return found


def mark_sections(found: Marked, names: Iterable[str], places: Places) -> Iterator[Section]:
    """Write the rows of one page of the index, under their kinds.

    Args:
        found: all marks, decorators and requirements.
        names: those of the page.
        places: its links.
    """
    by_kind: dict[str, list[tuple[str, Mapping[str, int]]]] = {}
    for name in names:
        kind, _, value = name.partition("\n")
        by_kind.setdefault(kind, []).append((value, found[name]))
    for kind in sorted(by_kind, key=_order):
        heading = heading_of(kind)
        values = sorted(by_kind[kind], key=lambda entry: (-sum(entry[1].values()), entry[0]))
        rows = "".join(_row(kind, value, files, places) for value, files in values)
        yield Section(heading, markdown(_HEAD.format(_singular(kind)) + rows))


def first_cell(kind: str, value: str) -> str:
    """Give the text of the first cell of a row."""
    return in_a_line(value) if value else kind


def heading_of(kind: str) -> str:
    """Give the heading of a kind of requirement."""
    return _HEADINGS.get(kind) or kind.capitalize()


def _order(kind: str) -> tuple[int, int, str]:
    return _FIRST.index(kind) if kind in _FIRST else len(_FIRST), KINDS.index(kind) if kind in KINDS else len(KINDS), kind


def _singular(kind: str) -> str:
    return "Requirement" if kind == "one of" else kind.capitalize()


def _row(kind: str, value: str, files: Mapping[str, int], places: Places) -> str:
    most = sorted(files, key=lambda path: (-files[path], path))
    near = places.among(most[:MOST])
    where = ", ".join(f"{near.file(path)} ({files[path]:,})" for path in most[:MOST])
    more = f" and {plural(len(most) - MOST, 'more file')}" if len(most) > MOST else ""
    label = code(value) if value else kind
    return f"| {label} | {sum(files.values()):,} | {len(files):,} | {where}{more} |\n"
