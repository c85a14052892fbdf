"""The listing on a page: a fence that holds a text exactly, whatever the text holds."""

from __future__ import annotations

import re
from pathlib import Path

from rankbook.errors import TemplateError

SOURCE_OPTIONS = '{#source linenums="1"}'
"""Options of the fence of a page's source; with them the site gives each line its anchor."""
_TICKS = re.compile("`+")


def line_anchor(line: int) -> str:
    """Name the anchor that the site gives to a line of the listing."""
    return f"__codelineno-source-{line}"


def fence(text: str, info: str) -> str:
    """Wrap a text into a fence that no run of backticks in it can end.

    Args:
        text: the listing's text; ends with a line end.
        info: language and options.
    """
    ticks = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0)) if "```" in text else "```"
    return f"{ticks}{info}\n{text}{ticks}\n"


def source_fence(text: str, language: str) -> str:
    """Wrap the text of a whole source file into the fence of its page."""
    return fence(text, f"{language} {SOURCE_OPTIONS}")


def find(page: str, listing: str, start: int = 0) -> int:
    """Tell where a listing begins on a page; -1 where it does not stand. Its first line is looked for, which is found far sooner.

    Args:
        page: what a template made.
        listing: the listing in its fence.
        start: where to begin.
    """
    opening = listing[: listing.find("\n") + 1]
    place = page.find(opening, start)
    while place >= 0 and not page.startswith(listing, place):
        place = page.find(opening, place + 1)
    return place


def check(page: str, listing: str, name: str, template: Path) -> int:
    """Make sure that a page holds a listing as a block of its own, once, and tell where it begins.

    Args:
        page: what a template made.
        listing: the listing in its fence.
        name: of the page.
        template: file of the template.

    Raises:
        TemplateError: the template has changed, repeated or left out the listing.
    """
    place = find(page, listing)
    if place < 0 or (place and page[place - 1] != "\n") or find(page, listing, place + len(listing)) >= 0:
        raise TemplateError(
            f"the template does not show the source's listing once, as it is, on the page {name}",
            where=template,
            right="it must print {{ listing }} once, at the start of a line",
        )
    return place
