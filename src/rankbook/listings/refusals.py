"""Why the site does not render what looks like a fence, and what would be right."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rankbook.listings.superfences import Record, Refused

_UNQUOTED = re.compile(r"\.?[\w#.+-]+((?:[ \t]+[\w-]+(?:=(?:\"[^\"]*\"|'[^']*'|[^\s\"']+))?)+)")


def why(refused: Refused, record: Record, number: Callable[[int], int]) -> str:
    """Explain why a line is not taken as an opening fence.

    Args:
        refused: the line.
        record: what superfences did with the text.
        number: gives the page's number of a line that superfences saw.

    Returns:
        A sentence.
    """
    return f"the site does not render this fence: {_cause(refused, record, number)}"


def _cause(refused: Refused, record: Record, number: Callable[[int], int]) -> str:
    abandoned = next((entry for entry in record.abandoned if entry.start <= refused.start <= entry.at), None)
    if refused.in_item:
        return "it stands on the line of a list marker; write it on a line of its own, indented by four spaces"
    if refused.start == record.unclosed:
        return _unclosed(refused, number)
    if abandoned is not None and abandoned.start == refused.start:
        return f"line {number(abandoned.at)} does not have its indentation or quote marks; give every line of it the same ones"
    if abandoned is not None:
        return f"it lies in the fence of line {number(abandoned.start)}, which line {number(abandoned.at)} breaks off; mend that one"
    if record.unclosed is not None and refused.start > record.unclosed:
        return f"line {number(record.unclosed)} opens a fence that nothing closes, so no fence below it is rendered; close that one"
    return _header(refused)


def _unclosed(refused: Refused, number: Callable[[int], int]) -> str:
    if not refused.closing:
        return f"nothing closes it; end it with a line {refused.fence}"
    if refused.closing == refused.fence:
        return "its closing line is not indented or quoted as it is; give both lines the same indentation and quote marks"
    return (
        f"line {number(refused.end - 1)} would close it with {refused.closing}; close it with {refused.fence}, neither shorter nor longer"
    )


def _header(refused: Refused) -> str:
    options = _UNQUOTED.fullmatch(refused.header)
    if options:
        language = refused.header[: options.start(1)]
        return f"its options stand without braces; write {refused.fence}{language} {{{options[1].strip()}}}"
    return f"it does not understand '{refused.header}'; write {refused.fence}language {{options}}"
