"""The keys of YAML, TOML and JSON files, to a bounded depth and number."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace
from tree_sitter import Node

from rankbook.model import Heading, Keyword, Module, Source
from rankbook.sources import outline, prose
from rankbook.sources.outline import Grammar, Handler, Place, Scope, Walk, inside

_DEEPEST = 3
"""Levels of keys that are listed."""
_MOST_KEYS = 400
"""Different keys of a file that are listed."""
_MOST_CELLS = 2000


def _pair(walk: Walk, at: Place) -> None:
    inner = at.node.named_children
    key = at.node.child_by_field_name("key") or (inner[0] if inner else None)
    value = at.node.child_by_field_name("value") or (inner[-1] if len(inner) > 1 else None)
    _define(walk, "key", walk.text(key).strip("\"'"), at, (value,) if value is not None else ())


def _table(walk: Walk, at: Place) -> None:
    inner = at.node.named_children
    _define(walk, "table", walk.text(inner[0]) if inner else "", at, tuple(inner[1:]))


def _define(walk: Walk, kind: str, name: str, at: Place, body: tuple[Node, ...]) -> None:
    """Note a key once, however many entries of a list have it."""
    qualname = f"{at.scope.qualname}.{name}" if at.scope.qualname else name
    inner = body if at.scope.depth + 1 < _DEEPEST else ()
    if qualname in walk.seen:
        walk.push(inner, Scope(qualname, kind, at.scope.depth + 1))
    elif len(walk.seen) < _MOST_KEYS:
        walk.seen.add(qualname)
        # A comment in a list is about one entry, and the key stands for all.
        walk.define(kind, name, replace(at, comment="") if at.scope.kind == "list" else at, body=inner)


def _list(walk: Walk, at: Place) -> None:
    walk.push(outline.children(at.node), replace(at.scope, kind="list"))


_KEYS: Mapping[str, Handler] = {
    "pair": _pair,
    "block_mapping_pair": _pair,
    "flow_pair": _pair,
    "table": _table,
    "table_array_element": _table,
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
TOML = Grammar("toml", _KEYS)
JSON = Grammar("json", _KEYS)


def read_json(source: Source, text: str) -> Module:
    """Read the keys of a JSON file; of a notebook, its headings and what it is about."""
    module = outline.read(JSON, source, text)
    return _notebook(module, text) if source.name.endswith(".ipynb") else module


def _notebook(module: Module, text: str) -> Module:
    try:
        cells = json.loads(text)["cells"][:_MOST_CELLS]
        written = [(_lines(cell["source"]), cell["cell_type"]) for cell in cells]
    except (ValueError, LookupError, TypeError, RecursionError):
        return module
    found: list[Heading] = []
    about = None
    numbers = _Numbers(text)
    for lines, kind in written:
        if kind == "markdown":
            inner = prose.read_markdown(b"", module.source, "".join(lines))
            about = about or (inner.docstring if inner.docstring and "<" not in inner.docstring else None)
            found += [replace(each, line=numbers.of(lines[each.line - 1])) for each in inner.headings if each.line <= len(lines)]
    keywords = tuple(Keyword("section", each.text, each.line) for each in found)
    return replace(module, docstring=about, headings=tuple(found), keywords=outline.keywords_of(keywords), definitions=())


def _lines(written: Any) -> list[str]:
    lines = written if isinstance(written, list) else str(written).splitlines(keepends=True)
    return [str(line) for line in lines]


class _Numbers:
    """Finds the line of a notebook's file that holds a line of a cell, from top to bottom."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1

    def of(self, line: str) -> int:
        """Give the number of the next line that holds a text."""
        position = self._text.find(json.dumps(line)[1:-1], self._at)
        if position >= 0:
            self._line += self._text.count("\n", self._at, position)
            self._at = position
        return self._line
