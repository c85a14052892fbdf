"""What each page of the site loads: one style sheet and one script, put together from the files here in the order of their names."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent
_SEARCH = "search.js"


def style() -> str:
    """Give the style sheet."""
    return _together("*.css")


def script(*, finds: bool = True) -> str:
    """Give the script.

    Args:
        finds: whether there is anything for the search of the book to find: without it there is no button, and no key.
    """
    return _together("*.js", "" if finds else _SEARCH)


def _together(pattern: str, without: str = "") -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(_FOLDER.glob(pattern)) if path.name != without)
