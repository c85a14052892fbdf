"""What the templates of an index see: sections of rows on one page, or a table of contents of many pages."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup
from msgspec import Struct

from rankbook.pages.contents import page_of_suite
from rankbook.pages.shards import Shard
from rankbook.pages.text import url

_LONGEST = 60
"""Characters of a name in a table of contents."""


class Section(Struct, frozen=True):
    """Rows of an index under one heading."""

    heading: str
    """Text, or Markdown where it is marked as such."""
    body: Markup
    """The rows as Markdown."""


class Part(Struct, frozen=True):
    """A page of an index, as the table of contents names it."""

    page: str
    first: str
    last: str
    names: int
    """Number of its names."""
    heading: str = ""
    """What stands for its names in a table of contents of such tables; empty for a page of rows."""

    @property
    def address(self) -> Markup:
        """Where it lies, as seen from the other pages about the suite and from the root's index."""
        return url(self.page)

    @property
    def label(self) -> str:
        """What a title calls it."""
        return self.heading or self.ends[0]

    @property
    def ends(self) -> tuple[str, ...]:
        """Its first and its last name as a reader sees them; one when both are the same."""
        return tuple(dict.fromkeys(_shown(name) for name in (self.first, self.last)))


class IndexView(Struct, frozen=True):
    """One page of an index as its template sees it."""

    title: str
    names: int
    """Number of names of the page and, on the first page, of all."""
    sections: tuple[Section, ...] = ()
    """Its rows; empty on a table of contents."""
    parts: tuple[tuple[str, tuple[Part, ...]], ...] = ()
    """By heading: the pages of a table of contents; empty on a page of rows."""
    part: Part | None = None
    """Which part of the index it is; None when it is the first page."""
    of: int = 0
    """Number of names of which those of the index are some; 0 where that is not told."""


def parts_of(kind: str, shards: Iterable[Shard]) -> list[Part]:
    """Give the pages of an index for its table of contents."""
    return [Part(page_of_suite(kind, shard.key), shard.first, shard.last, len(shard.names)) for shard in shards]


def _shown(name: str) -> str:
    """Show a name of an index; the halves of one that has two stand on lines of their own."""
    shown = ": ".join(filter(None, name.split("\n", 1)))
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]} …"
