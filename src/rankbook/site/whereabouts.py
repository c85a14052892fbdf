"""Where in its source a run failed: what it said of lines of its page, said of those of the source that the page lists."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

from msgspec.structs import replace

from rankbook.listing import RankEnd, Run

_PLACE = r"(?P<before>File {quote}|[(\s]|^){path}(?P<between>{quote}, line |:)(?P<line>\d+)\b"
"""A place as Python's tracebacks have it, and as reasons and ranks do: `File "docs/a.md", line 3`, `docs/a.md:3`."""
_ROOT = r"/[^\s:]+/"
"""What stands before the path where it is an absolute one, on whatever machine it ran."""


def in_source(run: Run) -> Run:
    """Give a run that names lines of its source where it named those of the page on which that is listed.

    Args:
        run: as the ledger has it; one of a page made by a person is given back as it is, for its lines are those of that page.
    """
    page = run.page
    said = any(page in text for text in (run.reason, *_told(run.receipt.ranks)))
    if not run.source or not said:
        return run
    in_listing = run.case.get("line")
    fence = run.line - (in_listing if isinstance(in_listing, int) else 0)
    pattern = re.compile(_PLACE.format(path=f"(?:{_ROOT})?{re.escape(page)}", quote='"'), re.MULTILINE)

    def place(found: re.Match[str]) -> str:
        line = int(found["line"]) - fence
        return f"{found['before']}{run.source}{found['between']}{line}" if line > 0 else found[0]

    def moved(text: str) -> str:
        return pattern.sub(place, text)

    ranks = tuple(replace(rank, doing=moved(rank.doing), called=moved(rank.called)) for rank in run.receipt.ranks)
    return replace(run, reason=moved(run.reason), receipt=replace(run.receipt, ranks=ranks))


def _told(ranks: tuple[RankEnd, ...]) -> list[str]:
    return [text for rank in ranks for text in (rank.doing, rank.called)]


def linker(source: str) -> Callable[[str], str]:
    """Make what turns a text into HTML in which each place of a source leads to its line on the same page.

    Args:
        source: path of the source that the page lists as the run had it; empty where it has none, or another version.
    """
    if not source:
        return html.escape
    pattern = re.compile(_PLACE.format(path=re.escape(html.escape(source)), quote="&quot;"), re.MULTILINE)

    def link(found: re.Match[str]) -> str:
        before, line = found["before"], found["line"]
        return f'{before}<a href="#L{line}">{found[0].removeprefix(before)}</a>'

    return lambda text: pattern.sub(link, html.escape(text))
