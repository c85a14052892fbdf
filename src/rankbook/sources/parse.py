"""One file → one `Module`; a file that cannot be read or parsed costs itself only."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from rankbook import languages
from rankbook.codeowners import name_of, owners_of
from rankbook.embedding import Embedded, NotEmbedded, embed
from rankbook.model import Module, Source
from rankbook.sources import c_family, cmake, data_keys, objective_c, outline, programs, prose, python
from rankbook.sources.gpu_calls import NOTHING_TAUGHT, Taught
from rankbook.sources.salvage import salvage

_TOO_DEEP = "it is nested too deeply to be parsed"
Reader = Callable[[bytes, Source, str], Module]
"""Makes the facts of a file from its bytes, its source and its text."""


def _python(data: bytes, source: Source, text: str, taught: Taught = NOTHING_TAUGHT) -> Module:
    try:
        module = python.read(data, source, text, taught)
    except (RecursionError, MemoryError):
        module = Module(source, error=_TOO_DEEP)
    return module if module.error is None else salvage(module, text, python.read)


def _outlined(grammar: outline.Grammar) -> Reader:
    return lambda _data, source, text: outline.read(grammar, source, text)


PARSERS: dict[str, Reader] = {
    "python": _python,
    "markdown": prose.read_markdown,
    "rst": prose.read_rst,
    "cmake": cmake.read,
    "json": lambda _data, source, text: data_keys.read_json(source, text),
    "yaml": _outlined(data_keys.YAML),
    "toml": _outlined(data_keys.TOML),
    "c": _outlined(c_family.C),
    "cpp": _outlined(c_family.CPP),
    "cuda": _outlined(c_family.CUDA),
    "metal": _outlined(c_family.METAL),
    "objective-c": objective_c.read(c_family.C),
    "objective-c++": objective_c.read(c_family.CPP),
    "java": _outlined(programs.JAVA),
    "javascript": _outlined(programs.JAVASCRIPT),
    "typescript": programs.read_typescript,
    "rust": _outlined(programs.RUST),
    "go": _outlined(programs.GO),
    "bash": _outlined(programs.BASH),
    "starlark": _outlined(programs.STARLARK),
}
"""How the facts of a file are read, by language; other languages have no row."""


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
    reader = None if languages.is_template(path) else PARSERS.get(source.language)
    if reader is None:
        return Module(source)
    try:
        return reader(data, source, text) if reader is not _python else _python(data, source, text, taught)
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
