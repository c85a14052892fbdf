"""What each page of the site loads: one style sheet and one script, put together from the files here in the order of their names."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent


def style() -> str:
    """Give the style sheet."""
    return _together("*.css")


def script() -> str:
    """Give the script."""
    return _together("*.js")


def _together(pattern: str) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(_FOLDER.glob(pattern)))
