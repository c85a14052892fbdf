"""How the facts of files are read that are not Python."""

from __future__ import annotations

from collections.abc import Callable

from rankbook.model import Module, Source
from rankbook.sources import c_family, cmake, data_keys, objective_c, outline, programs, prose

Reader = Callable[[bytes, Source, str], Module]
"""Makes the facts of a file from its bytes, its source and its text."""


def _outlined(grammar: outline.Grammar) -> Reader:
    return lambda _data, source, text: outline.read(grammar, source, text)


READERS: dict[str, Reader] = {
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
"""By language."""
