"""Hidden lines: an HTML comment above a listing whose lines run first.

    <!-- rankbook: hidden
    import torch
    -->

A comment is the one thing that every Markdown leaves out of sight; whether the site's own does is read off the rendered page.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WORD = "hidden"
MARKERS = frozenset({"last-run -->", "proof -->"})
"""What the comments of generated pages hold that mark a place for the site."""
_OPENING = re.compile(r"(?P<prefix>[ \t>]*)<!--[ \t]*rankbook:[ \t]*(?P<word>.*?)[ \t\r]*")
_END = re.compile(r"--!?>")
_PREFIX = " \t>\r"


class Comment(Struct, frozen=True):
    """A comment that is meant for rankbook; lines are counted from 0 in the lines that superfences saw."""

    start: int
    """Its opening line."""
    end: int
    """The line after the one that closes it, or after the last line when nothing does."""
    word: str
    """What follows `rankbook:` on its line."""
    closing: str
    """The line that closes it, without indentation and quote marks; empty when there is none."""


def comments(lines: Sequence[str], outside: Callable[[int], bool]) -> list[Comment]:
    """Find the comments that are meant for rankbook.

    Args:
        lines: what superfences saw.
        outside: tells whether a line lies in no fence.
    """
    found: list[Comment] = []
    for number, line in enumerate(lines):
        if "rankbook:" not in line or (found and number < found[-1].end) or not outside(number):
            continue
        match = _OPENING.fullmatch(line)
        if match is not None and match["word"] not in MARKERS:
            found.append(_comment(lines, number, match))
    return found


def _comment(lines: Sequence[str], start: int, match: re.Match[str]) -> Comment:
    if _END.search(match["word"]):
        return Comment(start, start + 1, match["word"], match["word"])
    end = next((number for number in range(start + 1, len(lines)) if _END.search(lines[number])), None)
    if end is None:
        return Comment(start, len(lines), match["word"], "")
    return Comment(start, end + 1, match["word"], lines[end].lstrip(_PREFIX).rstrip())


def is_blank(lines: Sequence[str], start: int, end: int) -> bool:
    """Tell whether lines hold nothing but indentation and quote marks."""
    return not any(lines[number].strip(_PREFIX) for number in range(start, end))


def problem_of(comment: Comment, number: Callable[[int], int], *, shown: bool) -> str | None:
    """Say what is wrong with a comment.

    Args:
        comment: the comment.
        number: gives the page's number of a line that superfences saw.
        shown: whether the site shows it as text.
    """
    where = f"the comment at line {number(comment.start)}"
    if _END.search(comment.word):
        return f"{where} ends on its first line; write its lines below that, and '-->' on a line of its own"
    if comment.word != WORD:
        return f"{where} begins with 'rankbook: {comment.word}'; write '<!-- rankbook: {WORD}'"
    if not comment.closing:
        return f"nothing closes {where}; end it with '-->' on a line of its own"
    if shown:
        return f"the site shows the hidden lines of {where}: in lists, quotes and admonitions a blank line ends a comment; take it out"
    if comment.closing != "-->":
        return f"line {number(comment.end - 1)} closes {where} within its text; only a line of its own may hold '-->'"
    return None if comment.end - comment.start > 2 else f"{where} holds no lines"
