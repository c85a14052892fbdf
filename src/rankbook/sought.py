"""What a search finds in a source: rows that are made with its pages, when all that is known of it is at hand."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from rankbook import pages
from rankbook.model import Module, Survey, Test
from rankbook.site.search_rows import FILE, LETTERS, cases, row

Rows = tuple[str, ...]
_CASES = 100
"""Rows of a source that find its tests by their parameters."""
_OF_TESTS = ("mark", "decorator")
"""Kinds that are counted by the tests that have them: the page on marks shows them."""
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U(000[0-9a-f]{5}|0010[0-9a-f]{4}))")
"""What pytest writes in an id for a character that is not of ASCII."""


def rows_of(module: Module, survey: Survey) -> Rows:
    """Give the rows of a source.

    Args:
        module: its facts.
        survey: what it says with the files that it names.
    """
    path = module.source.path
    lines = {each.qualname: each.line for each in module.classes}
    tested: set[int] = set()
    rows, parts, last = [FILE], defaultdict[str, dict[str, None]](dict), dict[str, Test]()
    is_listed = pages.has_listing(module.source)
    for test in survey.tests:
        line = test.line if test.path == path else lines.get(test.class_name or "", 0)
        if test.path == path:
            tested.add(line)
        name, _, parameters = test.name.partition("[")
        found = row("t", line if is_listed else 0, one_line(f"{test.class_name}::{name}" if test.class_name else name))
        rows.append(found)
        if parameters:
            parts[found].update(dict.fromkeys(parameters.removesuffix("]").split("-")))
            last[found] = test
    rows += [each for found, test in last.items() for each in cases(found, _values(parts[found], test))][:_CASES]
    for kind, name, line, scope in module.keywords:
        letter = LETTERS.get(kind)
        if letter is None or kind in _OF_TESTS or (name[:2] == "__" == name[-2:]) or (line in tested and letter in "tfm"):
            continue
        rows.append(row(letter, line if is_listed else 0, one_line(f"{scope}.{name}" if scope and letter != "e" else name)))
    return tuple(dict.fromkeys(rows))


def _values(parts: Iterable[str], test: Test) -> Iterator[str]:
    """Give what stands in the brackets of a test's ids, without what pytest numbers for want of a name: `shape0`.

    Args:
        parts: what stands between the hyphens, each once.
        test: one of its cases.
    """
    numbered = {name for name, _ in test.case}
    for part in parts:
        if part and (part[-1] not in "0123456789" or part.rstrip("0123456789") not in numbered):
            yield one_line(_ESCAPE.sub(_unescaped, part)).replace("|", " ")


def _unescaped(found: re.Match[str]) -> str:
    letter = chr(int(found[found.lastindex or 0], 16))
    return letter if letter.isprintable() else found[0]


def one_line(name: str) -> str:
    """Give a name without tabs, ends of lines and what is not seen."""
    return name if name.isprintable() and "\t" not in name else " ".join(name.split())
