"""How a page is told from other files: by its name."""

from __future__ import annotations

SUFFIXES = (".md", ".markdown")
"""Of a page, in lower case."""


def is_page_name(name: str) -> bool:
    """Tell whether a file of this name, or path, is a page."""
    return name.lower().endswith(SUFFIXES)
