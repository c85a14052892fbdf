"""Listings in a known language that rankbook has no way to run: skipped, and counted as such."""

from __future__ import annotations

from rankbook.languages import by_fence
from rankbook.listing import Listing


def accepts(listing: Listing) -> bool:
    """Take whatever no other kind takes."""
    return bool(listing.page)


def reason(listing: Listing) -> str:
    """Say what is missing."""
    language = by_fence(listing.language)
    name = language.type if language else listing.language
    mend = "; write {.no-run} when it is not meant to run" if listing.about is None else ""
    return f"rankbook runs no {name}{mend}"
