"""The tree-sitter grammars: one wheel per language, loaded when a file of that language is met first."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from time import thread_time

from tree_sitter import Language, Node, Parser

GRAMMARS: dict[str, tuple[str, str]] = {
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "cuda": ("tree_sitter_cuda", "language"),
    "java": ("tree_sitter_java", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "rust": ("tree_sitter_rust", "language"),
    "go": ("tree_sitter_go", "language"),
    "bash": ("tree_sitter_bash", "language"),
    "yaml": ("tree_sitter_yaml", "language"),
    "toml": ("tree_sitter_toml", "language"),
    "json": ("tree_sitter_json", "language"),
    "rst": ("tree_sitter_rst", "language"),
    "python": ("tree_sitter_python", "language"),
}
"""By grammar: the module that holds it, and its function that gives it."""

_MOST_BYTES = {"json": 2_000_000, "yaml": 2_000_000, "toml": 2_000_000}
_MOST_BYTES_OF_CODE = 5_000_000
"""Size up to which a file is parsed: larger ones are data, or were generated."""
_NOT_LINE_END = re.compile(rb"[^\n]")
_PIECE = 65_536
"""Bytes that a parser is given at a time."""
_MOST_SECONDS = 2.0
"""Processor time that a file may take: several times what the slowest real one takes; memory goes with it."""


class NoGrammarError(Exception):
    """A file has no syntax tree; the message is a clause that says why."""


def parse(grammar: str, data: bytes) -> Node:
    """Parse a text; what does not fit the grammar becomes an ERROR node.

    Args:
        grammar: a key of `GRAMMARS`.
        data: the text as UTF-8.

    Raises:
        NoGrammarError: the text is too large or takes too long, or the grammar's package cannot be loaded.
    """
    most = _MOST_BYTES.get(grammar, _MOST_BYTES_OF_CODE)
    if len(data) > most:
        raise NoGrammarError(f"it is larger than {most // 1_000_000} MB")
    parser = _parser(grammar)
    if len(data) <= _PIECE:
        return parser.parse(data).root_node
    pieces = _Pieces(data)
    root = parser.parse(pieces.at).root_node
    if pieces.is_late:
        raise NoGrammarError("its text takes too long to parse")
    return root


class _Pieces:
    """Hands a text to a parser piece by piece, until the time is over.

    Args:
        data: the text.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._end = thread_time() + _MOST_SECONDS
        self.is_late = False
        """Whether the parser did not get all of it."""

    def at(self, offset: int, _point: object) -> bytes:
        """Give the piece that starts at an offset; nothing, as at the end of the text, when the time is over."""
        self.is_late = self.is_late or thread_time() > self._end
        return b"" if self.is_late else self._data[offset : offset + _PIECE]


def bytes_of(text: str) -> bytes:
    """Give a text as a parser takes it: UTF-8, with the line ends that every grammar counts."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.encode(errors="replace")


def blanked(data: bytes, spans: Iterable[tuple[int, int]]) -> bytes:
    """Write spaces in some places, and leave the lines as they are."""
    written = bytearray(data)
    for start, end in spans:
        written[start:end] = _NOT_LINE_END.sub(b" ", written[start:end])
    return bytes(written)


@cache
def _parser(grammar: str) -> Parser:
    module, function = GRAMMARS[grammar]
    try:
        return Parser(Language(getattr(import_module(module), function)()))
    except ImportError:
        raise NoGrammarError(f"the package {module.replace('_', '-')} is not installed") from None
    except (AttributeError, ValueError) as error:
        raise NoGrammarError(f"the package {module.replace('_', '-')} does not fit tree-sitter: {error}") from None
