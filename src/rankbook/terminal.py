"""Texts of others on a terminal and in its commands: names and outputs that may hold anything."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\U000e0000-\U000e007f]"
)
"""Characters that move the cursor, colour, rename the window or turn the direction of what follows, and what nothing can encode."""

_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""Sequences that colour a terminal, or move its cursor."""


def is_watched(stream: TextIO | None) -> bool:
    """Tell whether a person is at the other end of a stream; one that the caller has closed is None."""
    return stream is not None and stream.isatty()


def harmless(text: str) -> str:
    r"""Give a text in which nothing steers the terminal: ESC is written `\u001b`, as in JSON, so that JSON stays what it is.

    Args:
        text: one or several lines.
    """
    return STEERING.sub(_written, text) if not (text.isascii() and text.isprintable()) else text


def uncoloured(text: str) -> str:
    """Give a text without what colours a terminal, or moves its cursor.

    Args:
        text: what a program has said.
    """
    return _COLOURS.sub("", text) if "\x1b" in text else text


def unsteered(text: str) -> str:
    """Give a harmless text of what was printed for a terminal: what only coloured it is gone, not written out.

    Args:
        text: what a program has said.
    """
    return harmless(uncoloured(text))


def _written(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))


def one_line(text: str) -> str:
    """Give a harmless text that stays on its line and within its column: what ends a line, and a tab, are written out.

    Args:
        text: a cell of a table, an id, a sentence.
    """
    return harmless(text).replace("\n", "\\n").replace("\t", "\\t")


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Write the rows of a table as lines with columns that are as wide as what is shown.

    Args:
        rows: cells, as many in each row.
    """
    shown = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


@contextmanager
def heard(stream: TextIO) -> Iterator[None]:
    """Write to a stream whose reader may have seen enough, as `head` has: what is still to come, at exit too, goes nowhere then.

    Args:
        stream: what is written to.
    """
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def word(path: str, rest: str = "") -> str:
    """Write a path as one word of a command, which no shell takes apart and no program takes for an option.

    Args:
        path: of a file or folder.
        rest: what follows it without a space, such as `::TestRing`.
    """
    text = f"./{path}{rest}" if path.startswith("-") else f"{path}{rest}"
    return shlex.quote(text) if text.isprintable() else f"$'{''.join(map(_spelled, text))}'"


def _spelled(character: str) -> str:
    """Spell a character within `$'…'`, as Bash reads it."""
    if character in "\\'":
        return f"\\{character}"
    return character if character.isprintable() else "".join(f"\\x{byte:02x}" for byte in character.encode(errors="surrogateescape"))
