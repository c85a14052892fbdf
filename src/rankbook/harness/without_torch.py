"""Which listings can do without torch, or its test harnesses: they are forked from a process that has not spent seconds on those."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

from rankbook.harness.import_path import ImportPath
from rankbook.harness.mirror import file_of
from rankbook.listing import Listing

_NONE: Mapping[str, bytes] = MappingProxyType({})
_NOWHERE = ImportPath()
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


def may_import_torch(listing: Listing, others: Mapping[str, bytes] = _NONE, known: ImportPath = _NOWHERE) -> bool:
    """Say whether a listing may import torch, itself or through what it imports; where that is not plain to see, it may.

    Args:
        listing: what will run.
        others: what the files of its tree hold that stand beside it, by path.
        known: where its project has the modules that it imports.
    """
    if not _OPTIONS.isdisjoint(listing.options) or any(b"torch" in data for data in (listing.data(), *others.values())):
        return True
    files = {file_of(listing): listing.data()} | {path: data for path, data in others.items() if path.endswith(".py")}
    beside = {_module(path) for path in others}
    return any(top not in _FREE and (top not in beside or known.is_installed(top)) for top in known.outside(files))


def _module(path: str) -> str:
    """Name the module that a file is, without the packages above it."""
    file = PurePosixPath(path)
    return file.parent.name if file.name == "__init__.py" else file.stem
