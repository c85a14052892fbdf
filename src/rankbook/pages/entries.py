"""The keywords of a file, grouped as a keyword index shows them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from rankbook.kinds import KINDS
from rankbook.model import Keyword


class Entry(NamedTuple):
    """One keyword of a file with all its lines."""

    kind: str
    name: str
    lines: tuple[int, ...]
    scopes: tuple[str, ...]
    """In the order of the lines."""


def entries_by_kind(keywords: Iterable[Keyword]) -> dict[str, tuple[Entry, ...]]:
    """Group keywords by kind, in the order of `kinds.KINDS`, and by name in the alphabet's."""
    found: dict[str, dict[str, list[Keyword]]] = {kind: {} for kind in KINDS}
    for keyword in keywords:
        found.setdefault(keyword.kind, {}).setdefault(keyword.name, []).append(keyword)
    return {
        kind: tuple(_entry(kind, name, names[name]) for name in sorted(names, key=alphabetical)) for kind, names in found.items() if names
    }


@lru_cache(maxsize=1 << 14)
def alphabetical(name: str) -> tuple[str, str]:
    """Sort names as a reader looks them up: without regard to case and leading underscores."""
    return name.lstrip("_.").casefold(), name


def _entry(kind: str, name: str, uses: list[Keyword]) -> Entry:
    if len(uses) == 1:
        return Entry(kind, name, (uses[0].line,), (uses[0].scope,) if uses[0].scope else ())
    lines = tuple(sorted({use.line for use in uses}))
    return Entry(kind, name, lines, tuple(dict.fromkeys(use.scope for use in sorted(uses, key=_line) if use.scope)))


def _line(use: Keyword) -> int:
    return use.line
