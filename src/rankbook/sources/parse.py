"""One file → one `Module`; a file that cannot be read or parsed costs itself only."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rankbook import languages
from rankbook.embedding import Embedded, NotEmbedded, embed
from rankbook.model import Module, Source
from rankbook.sources import prose, python

PARSERS: dict[str, Callable[[bytes, Source, str], Module]] = {
    "python": python.read,
    "markdown": prose.read_markdown,
    "rst": prose.read_rst,
}
"""How the facts of a file are read from its bytes, its source and its text, by language; other languages have no row."""


def parse(root: Path, path: str) -> Module:
    """Read the facts of one file.

    Args:
        root: folder that paths start from.
        path: the file below it.

    Returns:
        Its facts; of a file that cannot be read or parsed, what is known, with the error.
    """
    try:
        data = (root / path).read_bytes()
    except OSError as error:
        return _unreadable(path, f"it cannot be read: {error.strerror}")
    except (ValueError, MemoryError) as error:
        return _unreadable(path, f"it cannot be read: {error or 'it does not fit into memory'}")
    return parse_bytes(path, data)


def parse_bytes(path: str, data: bytes) -> Module:
    """Read the facts of a file from its bytes."""
    embedded = embed(data)
    source = _source(path, data, embedded)
    text = embedded.text if isinstance(embedded, Embedded) else ""
    reader = None if languages.is_template(path) else PARSERS.get(source.language)
    if reader is None:
        return Module(source)
    try:
        return reader(data, source, text)
    except (RecursionError, MemoryError):
        return Module(source, error="it is nested too deeply to be parsed")


def _source(path: str, data: bytes, embedded: Embedded | NotEmbedded) -> Source:
    first_line = data[:256].split(b"\n", 1)[0].decode(errors="replace") if data.startswith(b"#!") else ""
    kind = languages.type_of(path, first_line)
    language = languages.by_path(path, first_line).name
    source = Source(path, len(data), hashlib.sha256(data).hexdigest(), language, kind)
    if isinstance(embedded, Embedded):
        return replace(source, lines=_lines(embedded.text), embedding=embedded.embedding)
    if language == "text":
        kind = "Binary file" if kind == languages.by_path("").type else kind
        language = "binary"
    return replace(source, language=language, type=kind, not_embedded=embedded.reason)


def _unreadable(path: str, error: str) -> Module:
    source = Source(path, 0, "", languages.by_path(path).name, languages.type_of(path), not_embedded=error)
    return Module(source, error=error)


def _lines(text: str) -> int:
    return len(re.findall(r"\r\n|\r|\n", text)) if "\r" in text else text.count("\n")
