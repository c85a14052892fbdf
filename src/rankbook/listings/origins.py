"""Which line of a page each line that superfences saw comes from: other preprocessors may have put lines in or taken them out."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankbook.listings.superfences import Record

_CHANGED = " \t\r\x01\x02\x03\x04"


def origins(written: Sequence[str], record: Record) -> Sequence[int | None]:
    """Map the lines that superfences saw to the lines of the page.

    Args:
        written: the page's lines.
        record: what superfences saw and did.

    Returns:
        For each line seen the index of its line on the page; None for one that does not stand there.
    """
    padded = set(record.padded)
    places = [place for index in range(len(written)) for place in ((index, None) if index in padded else (index,))]
    before = _plain(["" if place is None else written[place] for place in places])
    after = _plain(record.lines)
    if before == after[: len(before)] and not any(after[len(before) :]):
        return [*places, *range(len(written), len(written) + len(after) - len(before))]
    found: list[int | None] = [None] * len(after)
    for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
        found[block.b : block.b + block.size] = places[block.a : block.a + block.size]
    return found


def _plain(lines: Sequence[str]) -> list[str]:
    """Give the lines without what whitespace normalization changes."""
    text = "\n".join(lines)
    for character in _CHANGED:
        text = text.replace(character, "")
    return text.split("\n")
