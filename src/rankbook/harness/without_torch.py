"""Which listings can do without torch, or its test harnesses: they are forked from a process that has not spent seconds on those."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from rankbook.harness.import_path import ImportPath
from rankbook.listing import Listing

_IMPORTED = re.compile(rb"^[ \t]*(?:(?:>>>|\.\.\.)[ \t]+)?(?:from|import)[ \t]+(\w+(?:[\w.]|[ \t]*,[ \t]*\w)*)", re.MULTILINE)
_FREE = frozenset((*sys.stdlib_module_names, "pytest", "_pytest"))
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


def may_import_torch(listing: Listing, others: Iterable[bytes] = (), known: ImportPath | None = None, imported: Iterable[str] = ()) -> bool:
    """Say whether a listing may import torch, itself or through what it imports; where that is not plain to see, it may.

    Args:
        listing: what will run.
        others: what the files of its tree hold that stand beside it.
        known: where imports are looked up; None leaves all but the modules of Python and pytest not plain to see.
        imported: files of the project that they import in turn, as `known` names them.
    """
    read = (listing.data(), *others)
    if not _OPTIONS.isdisjoint(listing.options) or any(b"torch" in data for data in read):
        return True
    names = (name for data in read for match in _IMPORTED.finditer(data) for name in match[1].decode().split(","))
    tops = {name.strip().partition(".")[0] for name in names} - _FREE
    return bool(tops if known is None else known.outside(tops, imported) - _FREE)
