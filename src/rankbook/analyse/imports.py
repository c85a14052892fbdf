"""Pass: which imports name files of the tree."""

from __future__ import annotations

from collections.abc import Iterator

from rankbook.analyse.draft import Draft
from rankbook.model import Import, Module


def run(draft: Draft) -> None:
    """Link each import to its file: the same folder first, as pytest has it, then the root and the folders between."""
    for path, module in draft.modules.items():
        if module.imports:
            found = dict(_targets(draft, path, module))
            if found:
                draft.imports[path] = found


def _targets(draft: Draft, path: str, module: Module) -> Iterator[tuple[str, str]]:
    for entry in module.imports:
        for name in imported_modules(entry):
            target = draft.names.target(path, name)
            if target is not None and target != path:
                yield name, target
                break


def imported_modules(entry: Import) -> tuple[str, ...]:
    """Give the modules that an import may name, the most exact one first: `from a import b` names `a.b` or `a`."""
    origin = "." * entry.level + entry.module
    if entry.name in (None, "*"):
        return (origin,)
    inner = f"{origin}{entry.name}" if origin.endswith(".") else f"{origin}.{entry.name}"
    return inner, origin
