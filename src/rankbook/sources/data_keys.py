"""The keys of YAML, TOML and JSON files, to a bounded depth and number."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace
from tree_sitter import Node

from rankbook.model import Heading, Keyword, Module, Source
from rankbook.sources import outline, prose
from rankbook.sources.outline import Grammar, Handler, Place, Scope, Walk, inside
from rankbook.terminal import one_line

_DEEPEST = 3
"""Levels of keys that are listed."""
_MOST_KEYS = 400
"""Different keys of a file that are listed."""
_MOST_CELLS = 2000
_MOST_MISSES = 100
"""Strings of a notebook that are looked for and not found."""
_PARTS = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""A line of a cell's text."""
_BARE = re.compile(r"[\w-]+", re.ASCII)
"""A part of a dotted key that needs no quotes."""
_BREAK = re.compile(r"[ \t]*(?:\r?\n[ \t]*)+")
"""Where a scalar goes on in a further line."""
_ESCAPE = re.compile(r"(\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|\r?\n[ \t]*|[^\r\n]))")
_ESCAPED = {
    **dict(zip("0abtnvfre", "\0\a\b\t\n\v\f\r\x1b", strict=True)),
    **dict(zip('"/\\ \tN_LP', '"/\\ \t\x85\xa0\u2028\u2029', strict=True)),
}
"""What stands for what behind a backslash in YAML; JSON and TOML know some of these, with the same meaning."""


def _pair(walk: Walk, at: Place) -> None:
    key, value = at.node.child_by_field_name("key"), at.node.child_by_field_name("value")
    # YAML's null may be written as nothing.
    _define(walk, "key", _decoded(walk, key) if key is not None else "null", at, (value,) if value is not None else ())


def _headed(kind: str) -> Handler:
    """Handle what begins with its key, in a grammar that does not name it."""

    def handle(walk: Walk, at: Place) -> None:
        inner = at.node.named_children
        if inner:
            _define(walk, kind, _decoded(walk, inner[0]), at, tuple(inner[1:]))

    return handle


def _decoded(walk: Walk, node: Node) -> str:
    """Give the text that a key stands for; one that is no scalar as it is written, on one line."""
    if node.type == "dotted_key":
        return ".".join(reversed([_part(walk, part) for part in _parts(node)]))
    if node.type == "flow_node" and node.named_children:
        node = node.named_children[-1]  # before it may stand an anchor and a tag
    text = walk.written(node)
    decode = _SCALARS.get(node.type)
    if decode is None or len(text) < 2 or text[-1] != text[0]:
        return " ".join(text.split())
    return decode(text[1:-1]) if node.type != "quoted_key" or text[0] == '"' else text[1:-1]


def _parts(node: Node) -> Iterator[Node]:
    """Yield the parts of a dotted key, the last first."""
    while node.type == "dotted_key" and node.named_children:
        node, *_, last = node.named_children
        yield last
    yield node


def _part(walk: Walk, node: Node) -> str:
    """Give a part of a dotted key, within quotes where it needs them."""
    part = _decoded(walk, node)
    return part if _BARE.fullmatch(part) else json.dumps(part, ensure_ascii=False)


def _double_quoted(text: str) -> str:
    if "\\" not in text:
        return _folded(text)
    pieces = _ESCAPE.split(text)
    pieces[::2] = map(_folded, pieces[::2])
    pieces[1::2] = map(_meant, pieces[1::2])
    # JSON writes a character beyond U+FFFF as two.
    return "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _meant(escape: str) -> str:
    """Give what an escape means; one that means nothing as it is written."""
    digits = escape[2:]
    if digits and escape[1] in "xuU":
        code = int(digits, base=16)
        return chr(code) if code <= sys.maxunicode else escape
    return "" if escape[1] in "\r\n" else _ESCAPED.get(escape[1], escape)


def _single_quoted(text: str) -> str:
    return _folded(text.replace("''", "'"))


def _folded(text: str) -> str:
    """Join the lines of a scalar: a line end is a space, and of several all but one stay."""
    return _BREAK.sub(lambda match: "\n" * (match[0].count("\n") - 1) or " ", text) if "\n" in text else text


_SCALARS: Mapping[str, Callable[[str], str]] = {
    "string": _double_quoted,
    "double_quote_scalar": _double_quoted,
    "single_quote_scalar": _single_quoted,
    "quoted_key": _double_quoted,
}
"""What is made of the text between the quotes, by type of node."""


def _define(walk: Walk, kind: str, key: str, at: Place, body: tuple[Node, ...]) -> None:
    """Note a key once, however many entries of a list have it."""
    name = one_line(key) or '""'
    scope = at.scope
    inner = body if scope.depth + 1 < _DEEPEST else ()
    known = f"{scope.qualname}\0{key}"
    if known not in walk.seen and len(walk.definitions) < _MOST_KEYS:
        # A comment in a list is about one entry, and the key stands for all.
        walk.define(kind, name, replace(at, comment="") if scope.kind == "list" else at, body=inner)
    else:
        walk.left_out += known not in walk.seen
        walk.push(inner, Scope(f"{scope.qualname}.{name}" if scope.qualname else name, kind, scope.depth + 1))
    walk.seen.add(known)


def _list(walk: Walk, at: Place) -> None:
    walk.enter(at.node, replace(at.scope, kind="list"))


_KEYS: Mapping[str, Handler] = {
    "pair": _pair,
    "block_mapping_pair": _pair,
    "flow_pair": _pair,
    **dict.fromkeys(
        (
            "document", "stream", "object", "inline_table", "block_node", "flow_node", "block_mapping", "flow_mapping",
            "block_sequence_item", "ERROR",
        ),
        inside,
    ),
    **dict.fromkeys(("array", "block_sequence", "flow_sequence"), _list),
}  # fmt: skip

YAML = Grammar("yaml", _KEYS)
TOML = Grammar("toml", {**_KEYS, "pair": _headed("key"), "table": _headed("table"), "table_array_element": _headed("table")})
JSON = Grammar("json", _KEYS)


def read_json(source: Source, text: str) -> Module:
    """Read the keys of a JSON file; of a notebook, its headings and what it is about."""
    module = outline.read(JSON, source, text)
    return _notebook(module, text) if source.name.endswith(".ipynb") else module


def _notebook(module: Module, text: str) -> Module:
    try:
        cells = json.loads(text)["cells"][:_MOST_CELLS]
        written = [(_pieces(cell["source"]), cell["cell_type"]) for cell in cells]
    except (ValueError, LookupError, TypeError, RecursionError):
        return module
    found: list[Heading] = []
    about = None
    numbers = _Numbers(text)
    for pieces, kind in written:
        lines = numbers.of_cell(pieces)
        if kind == "markdown":
            inner = prose.read_markdown(b"", module.source, "".join(pieces))
            about = about or (inner.docstring if inner.docstring and "<" not in inner.docstring else None)
            found += [replace(each, line=lines[each.line - 1]) for each in inner.headings if each.line <= len(lines)]
    keywords = tuple(Keyword("section", each.text, each.line) for each in found)
    return replace(
        module, docstring=about, headings=tuple(found), keywords=outline.keywords_of(keywords), definitions=(), left_out=0, is_cut=False
    )


def _pieces(written: Any) -> list[str]:
    """Give the strings of which the text of a cell is made."""
    pieces = written if isinstance(written, list) else [] if written is None else [written]
    return [str(piece) for piece in pieces]


class _Numbers:
    """Finds the lines of a notebook's file that hold the text of its cells, from top to bottom."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._misses = 0

    def of_cell(self, pieces: list[str]) -> list[int]:
        """Give for each line of the next cell the number of the line of the file that holds it."""
        found: list[int] = []
        is_new = True
        for piece in pieces:
            number = self._of(piece)
            for part in _PARTS.findall(piece):
                found += [number] if is_new else []
                is_new = part.endswith(("\n", "\r"))
        return found

    def _of(self, piece: str) -> int:
        """Give the number of the line that holds the next string of a text, and go on behind it."""
        if self._misses < _MOST_MISSES:
            position, written = -1, ""
            for written in dict.fromkeys((json.dumps(piece, ensure_ascii=False), json.dumps(piece))):
                position = self._text.find(written, self._at)
                if position >= 0:
                    break
            self._misses += position < 0
            if position >= 0:
                self._line += self._text.count("\n", self._at, position)
                self._at = position + len(written)
        return self._line
