"""A source whose fence is too short: where its listing truly ends, by the size that the page states."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rankbook.listings.about import has_size
from rankbook.listings.lines import without_prefix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankbook.listing import About

_OPENING = re.compile(r"(?P<prefix>[ \t>]*)(?P<run>`{3,}|~{3,})")


def true_end(lines: Sequence[str], opening: int, about: About, tab: int) -> int | None:
    """Find the closing line up to which the listing has as many bytes as the page says that its source has.

    Args:
        lines: the page's lines.
        opening: index of the opening line.
        about: the source.
        tab: columns between tab stops.

    Returns:
        Its index; None when there is no such line.
    """
    match = _OPENING.match(lines[opening])
    if match is None:
        return None
    width = len(match["prefix"].expandtabs(tab))
    closing = re.compile(rf"{match['run']}[ \t]*[\r\n]*\Z")
    text: list[str] = []
    for index in range(opening + 1, len(lines)):
        line = without_prefix(lines[index], width, tab)
        if closing.match(line) and has_size("".join(text), about):
            return index
        text.append(line)
    return None


def with_longer_fence(lines: Sequence[str], opening: int, closing: int) -> list[str]:
    """Give the lines with a fence around a listing that is longer than any run in them."""
    match = _OPENING.match(lines[opening])
    if match is None:
        return list(lines)
    run = match["run"]
    longest = max(map(len, re.findall(re.escape(run[0]) + "+", "".join(lines))))
    longer = list(lines)
    for index in (opening, closing):
        longer[index] = lines[index].replace(run, run[0] * (longest + 1), 1)
    return longer
