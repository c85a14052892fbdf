"""How every test and listing stands, as the site is told it: plain data."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from rankbook.listing import Gone
from rankbook.site.fences import Fence
from rankbook.site.history import Recorded


class Standing(Struct, frozen=True):
    """What is known of all tests and listings."""

    items: Mapping[str, Recorded] = field(default_factory=dict)
    """By node id."""
    listings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of pages made by people: the hash of each listing as it is now, by the part of its node id behind the page."""
    fences: Mapping[str, tuple[Fence, ...]] = field(default_factory=dict)
    """Of the same pages: all fences in their order."""
    inside: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The same of pages about Markdown sources: of the listings inside those."""
    files: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of files beside which runs were and that have no page, by path, as they are now; empty for one that is gone."""
    gone: Mapping[str, Gone] = field(default_factory=dict)
    """What no hardware finds any more, by page, of all pages that anything was run of."""
    machines: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """The smallest machine for what tests need; empty where that cannot be told."""
    extent: tuple[int, int, str] = (0, 0, "")
    """How far the ledger went that this is gathered from: number of the newest run, number of runs, key of the newest."""
    ahead: str = ""
    """The earliest time of a run that was dated ahead; empty where none was. When it is not ahead any more, all is to be gathered anew."""
