"""How a page is told from other files: by its name."""

from __future__ import annotations

from collections.abc import Collection

SUFFIXES = (".md", ".markdown")
"""Of a page, in lower case."""


def is_page_name(name: str) -> bool:
    """Tell whether a file of this name, or path, is a page."""
    return name.lower().endswith(SUFFIXES)


def holder(name: str, listings: Collection[str]) -> str:
    """Name the one of the listings of a page that a node id is of, or of a test of; empty where none is.

    Args:
        name: the node id, behind the page.
        listings: their names.
    """
    while name and name not in listings:
        name = name.rpartition("::")[0]
    return name
