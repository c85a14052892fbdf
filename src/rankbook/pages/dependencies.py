"""What a file imports: one row per module, with the files of the tree that it leads to."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from rankbook.model import Import, Module


class Dependency(Struct, frozen=True):
    """One imported module."""

    module: str
    """As written, with leading dots."""
    names: tuple[str, ...]
    """Names taken from it, with their aliases."""
    line: int
    paths: tuple[str, ...]
    """Files of the tree that it leads to: the module's own, and those of the submodules among the names."""


def dependencies(module: Module, paths: Mapping[str, str]) -> tuple[Dependency, ...]:
    """Group the imports of a file by module, in the order of the source.

    Args:
        module: the file.
        paths: module as written -> file of the tree.
    """
    found: dict[str, list[Import]] = {}
    for entry in module.imports:
        found.setdefault("." * entry.level + entry.module, []).append(entry)
    return tuple(_dependency(written, entries, paths) for written, entries in found.items())


def _dependency(written: str, entries: list[Import], paths: Mapping[str, str]) -> Dependency:
    names = dict.fromkeys(entry.name + (f" as {entry.alias}" if entry.alias else "") for entry in entries if entry.name)
    stem = written if written.endswith(".") else f"{written}."
    dotted = (written, *(stem + entry.name for entry in entries if entry.name))
    return Dependency(written, tuple(names), entries[0].line, tuple(dict.fromkeys(paths[name] for name in dotted if name in paths)))
