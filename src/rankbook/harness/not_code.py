"""Listings that are no code: `text`, prose, `{.no-run}`, templates, data of no strict format, and what the site shows as something else."""

from __future__ import annotations

from rankbook.languages import by_fence, is_loose, is_template
from rankbook.listing import Listing

LANGUAGES = frozenset({"text", "markdown", "rst", "output", "svg", "html", "css", "diff", "csv", "json5"})
"""Languages of prose, mark-up and output, by canonical name: a reader does not expect them to run."""


def accepts(listing: Listing) -> bool:
    """Say whether a listing is declared not to be code."""
    if "no-run" in listing.options or listing.custom:
        return True
    if listing.about is not None and (is_template(listing.about.source) or is_loose(listing.about.source)):
        return True
    language = by_fence(listing.language)
    return language is not None and language.name in LANGUAGES
