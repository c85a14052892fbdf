"""One file → one `Module`; a file that cannot be read or parsed costs itself only."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec.structs import replace

from rankbook import languages
from rankbook.codeowners import name_of, owners_of
from rankbook.embedding import Embedded, NotEmbedded, embed
from rankbook.model import Module, Source
from rankbook.sources import python
from rankbook.sources.gpu_calls import NOTHING_TAUGHT, Taught

_TOO_DEEP = "it is nested too deeply to be parsed"


def parse(root: Path, path: str, taught: Taught = NOTHING_TAUGHT) -> Module:
    """Read the facts of one file.

    Args:
        root: folder that paths start from.
        path: the file below it.
        taught: names of the project's own whose calls need something.

    Returns:
        Its facts; of a file that cannot be read or parsed, what is known, with the error. A file that names no owner itself has those
        that the repository's `CODEOWNERS` gives it.
    """
    try:
        data = (root / path).read_bytes()
    except OSError as error:
        return _unreadable(path, f"it cannot be read: {error.strerror}")
    except (ValueError, MemoryError) as error:
        return _unreadable(path, f"it cannot be read: {error or 'it does not fit into memory'}")
    module = parse_bytes(path, data, taught)
    owners = () if module.owners else owners_of(root, path)
    return replace(module, owners=owners, codeowners=name_of(root)) if owners else module


def parse_bytes(path: str, data: bytes, taught: Taught = NOTHING_TAUGHT) -> Module:
    """Read the facts of a file from its bytes."""
    embedded = embed(data)
    source = _source(path, data, embedded)
    text = embedded.text if isinstance(embedded, Embedded) else ""
    if languages.is_template(path) or source.language not in languages.STRUCTURED:
        return Module(source)
    if source.language == "python":
        return _python(data, source, text, taught)
    from rankbook.sources.other_languages import READERS  # their grammars are of no use in a tree of Python

    try:
        return READERS[source.language](data, source, text)
    except (RecursionError, MemoryError):
        return Module(source, error=_TOO_DEEP)


def _python(data: bytes, source: Source, text: str, taught: Taught) -> Module:
    try:
        module = python.read(data, source, text, taught)
    except (RecursionError, MemoryError):
        module = Module(source, error=_TOO_DEEP)
    if module.error is None:
        return module
    from rankbook.sources.salvage import salvage

    try:
        return salvage(module, text, python.read)
    except (RecursionError, MemoryError):
        return Module(source, error=_TOO_DEEP)


def _source(path: str, data: bytes, embedded: Embedded | NotEmbedded) -> Source:
    first_line = data[:256].split(b"\n", 1)[0].decode(errors="replace") if data.startswith(b"#!") else ""
    kind = languages.type_of(path, first_line, is_empty=not data)
    language = languages.by_path(path, first_line).name
    if isinstance(embedded, Embedded):
        if path.endswith(".h"):
            language, kind = languages.header(embedded.text) or (language, kind)
        embedding = embedded.embedding
        return Source(path, len(data), embedding.sha256, language, kind, _lines(embedded.text), embedding)
    if language == "text":
        kind = "Binary file" if kind == languages.by_path("").type else kind
        language = "binary"
    return Source(path, len(data), embedded.sha256, language, kind, not_embedded=embedded.reason)


def _unreadable(path: str, error: str) -> Module:
    source = Source(path, 0, "", languages.by_path(path).name, languages.type_of(path), not_embedded=error)
    return Module(source, error=error)


def _lines(text: str) -> int:
    return len(re.findall(r"\r\n|\r|\n", text)) if "\r" in text else text.count("\n")
