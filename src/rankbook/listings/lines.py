"""The lines of a page as Python-Markdown counts them, and the part of a page that MkDocs hands to it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rankbook.front_matter import load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_ENDS = "\r\n"
_YAML_ENDS = ("---", "...")
_KEY = re.compile(r" {0,3}[A-Za-z0-9_-]+:")
_MORE = re.compile(r" {4}|\t")
_DROPPED = "\x01\x02\x03\x04"
"""Python-Markdown removes the middle two before it looks at a line, and pymdownx the others where a site preserves tabs."""
_PREFIX = " \t>"


def split(text: str) -> list[str]:
    """Give the lines of a text with their ends; only LF, CR LF and a lone CR end a line."""
    return _LINE.findall(text)


def end_of(line: str) -> str:
    """Give the end of a line: LF, CR LF, CR or nothing."""
    return line[len(line.rstrip(_ENDS)) :]


def without_prefix(line: str, width: int, tab: int) -> str:
    """Take the indentation and the quote marks of a fence off one line of its text, as superfences does.

    Args:
        line: the line as it stands on the page.
        width: columns that the prefix of the opening fence takes.
        tab: columns between tab stops.

    Returns:
        The rest of the line; a tab that reaches beyond the prefix leaves its other columns as spaces.
    """
    column = index = 0
    while index < len(line) and column < width:
        character = line[index]
        if character in _DROPPED:
            index += 1
            continue
        if character not in _PREFIX:
            break
        column += tab - column % tab if character == "\t" else 1
        index += 1
    return " " * (column - width) + line[index:]


def front_matter(lines: Sequence[str]) -> tuple[Mapping[str, Any], int]:
    """Find what MkDocs takes off the top of a page: YAML between `---` lines, or `Key: value` lines.

    Args:
        lines: the page's lines.

    Returns:
        The YAML mapping, empty when there is none, and the number of lines that are not Markdown.
    """
    if lines and _bare(lines[0]) == "---":
        return _yaml(lines)
    count = 0
    for line in lines:
        if not line.strip():
            return {}, count
        if not (_KEY.match(line) or (count and _MORE.match(line))):
            break
        count += 1
    return {}, count


def _yaml(lines: Sequence[str]) -> tuple[Mapping[str, Any], int]:
    end = next((place for place in range(2, len(lines)) if _bare(lines[place]) in _YAML_ENDS and end_of(lines[place])), None)
    if end is None:
        return {}, 0
    text = "".join(f"{line.rstrip(_ENDS)}\n" for line in lines[1:end])
    try:
        values = load(text)
    except Exception:  # noqa: BLE001 - MkDocs, too, leaves any front matter that it cannot read on the page
        return {}, 0
    return (values, end + 1) if isinstance(values, dict) else ({}, 0)


def _bare(line: str) -> str:
    return line.rstrip(_ENDS).rstrip(" \t")
