"""Which imports name files of the tree."""

from __future__ import annotations

from collections.abc import Iterator

from rankbook.analyse.draft import Draft
from rankbook.model import PACKAGES, Import


def targets(draft: Draft, path: str) -> Iterator[tuple[str, str, int]]:
    """Link each import of a file to the file of the tree that it names: pytest's order of folders, the nearest first.

    Args:
        draft: the tree.
        path: the file that imports.

    Returns:
        Modules as written, with the file and the line of each.
    """
    module = draft.modules[path]
    if module.source.language != "python":
        for entry in module.imports:
            found = draft.includes.target(path, module.source.language, entry.module, is_system=entry.is_system)
            if found is not None and found != path:
                yield entry.module, found, entry.line
        return
    for entry in module.imports:
        for name in imported_modules(entry):
            target = draft.names.target(path, name)
            if target is not None and target != path:
                if not target.startswith(PACKAGES):
                    yield name, target, entry.line
                break


def imported_modules(entry: Import) -> tuple[str, ...]:
    """Give the modules that an import may name, the most exact one first: `from a import b` names `a.b` or `a`."""
    origin = "." * entry.level + entry.module
    if entry.name in (None, "*"):
        return (origin,)
    inner = f"{origin}{entry.name}" if origin.endswith(".") else f"{origin}.{entry.name}"
    return inner, origin
