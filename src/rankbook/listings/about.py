"""Which source file a page is about: by rankbook's front matter, or by the title and metadata lines that other generators write."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rankbook import front_matter, needs
from rankbook.embedding import restore
from rankbook.listing import About

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SOURCE_HEADING = "original source"
"""Text of the heading under which a page shows its source, without regard to case."""
_TITLE = re.compile(r"# Documentation: \S")
_PATH = re.compile(r"[-*+ ]*\*\*Path\*\*: *`+ *([^`]*[^` ]) *`+ *")
_SIZE = re.compile(r"[-*+ ]*\*\*Size\*\*: *([0-9][0-9,]*) bytes\b")
_MARKDOWN = (".md", ".markdown")
_HEAD = 40
"""Lines at the top of a page among which its metadata stands."""


def about_of(values: Mapping[str, Any], body: Sequence[str]) -> About | None:
    """Tell which source file a page is about.

    Args:
        values: its front matter.
        body: its lines below the front matter.

    Returns:
        The file; None for a page that is not about one.
    """
    stamp = front_matter.read(values)
    if stamp is not None:
        return About(stamp.source, stamp.size, stamp.embedding, needs.read(stamp.needs)) if stamp.page == "file" else None
    head = [line.rstrip() for line in body[:_HEAD]]
    title = next((place for place, line in enumerate(head) if line), None)
    if title is None or not _TITLE.match(head[title]):
        return None
    path = next(filter(None, map(_PATH.fullmatch, head)), None)
    size = next(filter(None, map(_SIZE.match, head)), None)
    return About(path[1], int(size[1].replace(",", "")) if size else None) if path else None


def is_markdown(about: About) -> bool:
    """Tell whether the file is a Markdown page, whose own listings are listings too."""
    return about.source.lower().endswith(_MARKDOWN)


def has_size(text: str, about: About) -> bool:
    """Tell whether a listing's text gives back as many bytes as the page says that the file has."""
    if about.size is None:
        return True
    if about.embedding is not None:
        try:
            return len(restore(text, about.embedding)) == about.size
        except (UnicodeError, LookupError):
            return False
    size = len(text.encode(errors="surrogatepass"))
    return size == about.size or (size == about.size + 1 and text.endswith("\n"))
