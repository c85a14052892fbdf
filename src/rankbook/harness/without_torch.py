"""Which listings can do without torch, or its test harnesses: they are forked from a process that has not spent seconds on those."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from rankbook.listing import Listing

_IMPORTED = re.compile(rb"^[ \t]*(?:(?:>>>|\.\.\.)[ \t]+)?(?:from|import)[ \t]+(\w+(?:[\w.]|[ \t]*,[ \t]*\w)*)", re.MULTILINE)
_FREE = frozenset(name.encode() for name in (*sys.stdlib_module_names, "pytest", "_pytest"))
"""Modules that import no torch."""
_OPTIONS = frozenset({"ranks", "init", "backend", "fixtures"})
"""Options for which it is imported: for a process group, or perhaps by the project's own fixtures."""
_HARNESSES = re.compile(
    rb"\btorch\.testing\b|\btesting\._internal\b|\bcommon_(?:utils|distributed|cuda|dtensor|fsdp|device_type)\b|\bexpecttest\b"
)


def may_import_harnesses(listing: Listing, others: Iterable[bytes] = ()) -> bool:
    """Say whether a listing names torch's test harnesses, itself or in what stands beside it; others import them where they use them.

    Args:
        listing: what will run.
        others: what the files of its tree hold that stand beside it.
    """
    return any(map(_HARNESSES.search, (listing.data(), *others)))


def may_import_torch(listing: Listing, others: Iterable[bytes] = ()) -> bool:
    """Say whether a listing may import torch, itself or through what it imports; where that is not plain to see, it may.

    Args:
        listing: what will run.
        others: what the files of its tree hold that stand beside it.
    """
    return not _OPTIONS.isdisjoint(listing.options) or any(map(_may_import, (listing.data(), *others)))


def _may_import(data: bytes) -> bool:
    if b"torch" in data:
        return True
    names = (name for match in _IMPORTED.finditer(data) for name in match[1].split(b","))
    return any(name.strip().partition(b".")[0] not in _FREE for name in names)
