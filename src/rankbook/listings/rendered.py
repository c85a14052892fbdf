"""What stands in the HTML of a page: which fences are shown, which refused lines show as text, and the heading above each."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from msgspec import Struct, field

from rankbook.patterns import compiled

if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE = compiled(
    r"""
    <!--(?:>|->|.*?(?:--!?>|\Z))
  | <(?P<raw>script|style|textarea|title|xmp|iframe|noembed|noframes|noscript|template)(?=[\s/>]).*?(?:</(?P=raw)(?=[\s/>])[^>]*>|\Z)
  | <(?P<close>/?)(?P<tag>[a-z][^\s/>]*)(?P<attributes>(?:=\s*"[^"]*(?:"|\Z)|=\s*'[^']*(?:'|\Z)|[^>])*+)(?:>|\Z)
  | <[!?/][^>]*(?:>|\Z)
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""Markup as a browser takes it apart: comments, elements whose content is not shown as HTML, tags."""
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_ID = re.compile(r"""\sid=(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)


class Heading(Struct, frozen=True):
    """A heading of the page."""

    text: str = ""
    anchor: str = ""
    """Its `id`, which the toc extension gives it."""


class Shown(Struct):
    """What a page shows, by number, with the heading above it."""

    fences: dict[int, Heading] = field(default_factory=dict)
    refused: dict[int, Heading] = field(default_factory=dict)
    """Refused lines that show as text, outside preformatted text."""
    comments: dict[int, Heading] = field(default_factory=dict)
    """Comments for rankbook that are comments of the page."""
    broken: dict[int, Heading] = field(default_factory=dict)
    """Those that show as text, outside preformatted text."""


def shown(text: str, word: str) -> Shown:
    """Read the HTML of a page.

    Args:
        text: the HTML.
        word: the word that marks places in it.

    Returns:
        What it shows of them.
    """
    reader = _Reader(word)
    for before, piece in _pieces(text):
        reader.text(before)
        if piece is not None and piece[0].startswith("<!--"):
            reader.comment(piece[0])
        elif piece is not None and piece["tag"]:
            reader.tag(piece["tag"].lower(), piece["attributes"], closing=bool(piece["close"]))
    return reader.shown


def _pieces(text: str) -> Iterator[tuple[str, re.Match[str] | None]]:
    start = 0
    for piece in _PIECE.finditer(text):
        yield text[start : piece.start()], piece
        start = piece.end()
    yield text[start:], None


class _Reader:
    """Goes through the pieces of a page in order."""

    def __init__(self, word: str) -> None:
        self.shown = Shown()
        self._fence = re.compile(rf'\sdata-{word}="(\d+)"')
        self._refused = re.compile(rf"{word}(\d+)z")
        self._comment = re.compile(rf"{word}(\d+)c")
        self._for_rankbook = re.compile(rf"<!--[ \t]*rankbook:{word}(\d+)c")
        self._heading = Heading()
        self._open: list[str] | None = None
        self._anchor = ""
        self._in_permalink = False
        self._preformatted = 0

    def text(self, text: str) -> None:
        if self._open is not None and not self._in_permalink:
            self._open.append(text)
        if not self._preformatted:
            for number in self._refused.findall(text):
                self.shown.refused.setdefault(int(number), self._heading)
            for number in self._comment.findall(text):
                self.shown.broken.setdefault(int(number), self._heading)

    def comment(self, text: str) -> None:
        match = self._for_rankbook.match(text)
        if match:
            self.shown.comments.setdefault(int(match[1]), self._heading)

    def tag(self, name: str, attributes: str, *, closing: bool) -> None:
        if name in _HEADINGS:
            self._end_heading() if closing else self._begin_heading(attributes)
        elif name == "pre":
            self._preformatted = max(0, self._preformatted + (-1 if closing else 1))
        elif name == "a":
            self._in_permalink = not closing and "headerlink" in attributes
        elif name == "div" and (match := self._fence.match(attributes)):
            self.shown.fences.setdefault(int(match[1]), self._heading)

    def _begin_heading(self, attributes: str) -> None:
        match = _ID.search(attributes)
        self._open, self._anchor = [], html.unescape(match[1] or match[2] or "") if match else ""

    def _end_heading(self) -> None:
        if self._open is not None:
            text = self._refused.sub("", html.unescape("".join(self._open)))
            self._heading = Heading(" ".join(text.split()), self._refused.sub("", self._anchor))
        self._open = None
