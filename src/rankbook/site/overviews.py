"""Where the pages about the whole suite tell more of what the proof sums up: which files an owner has, what tests need of a machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import basename
from typing import NamedTuple
from urllib.parse import quote

from rankbook import anchors
from rankbook.front_matter import Stamp

_OWNERS, _HARDWARE = "suite-owners", "suite-hardware"
"""Kinds of these pages."""
_COUNTED = re.compile(r"(\d+) × ")
"""The number of GPUs of one name, as a machine is called."""


class Spot(NamedTuple):
    """A place on a page."""

    page: str
    end: str
    """Of the address."""


class Overviews:
    """The places of a book at which more is told.

    Args:
        stamps: what each generated page says of itself, by its path.
    """

    def __init__(self, stamps: Mapping[str, Stamp]) -> None:
        pages: dict[str, list[str]] = {_OWNERS: [], _HARDWARE: []}
        owners: set[str] = set()
        for path, stamp in stamps.items():
            if stamp.page in pages:
                pages[stamp.page].append(path)
            owners.update(stamp.owners)
        self._first = {kind: next((path for path in paths if basename(path) == f"{kind}.md"), "") for kind, paths in pages.items()}
        self._anchors = anchors.of_owners(owners) if len(pages[_OWNERS]) == 1 else {}
        """Of the owners; of an index of several pages the first one has a row for each, which leads on."""

    def owner(self, name: str) -> Spot | None:
        """Tell where the files of an owner are listed."""
        page = self._first[_OWNERS]
        if not page:
            return None
        return Spot(page, f"#{self._anchors[name].site}" if name in self._anchors else _row(anchors.shown(name), "owners"))

    def hardware(self, name: str) -> Spot | None:
        """Tell where it is said how many tests a machine with so many GPUs is enough for."""
        page, real = self._first[_HARDWARE], name.partition("; declared: ")[0]
        gpus = sum(map(int, _COUNTED.findall(real)))
        row = str(gpus) if gpus else "none" if real.startswith("CPU") else ""
        return Spot(page, _row(row, "hardware") if row else "") if page else None

    @property
    def files(self) -> Spot | None:
        """Where all files with tests are listed, with what these need of a machine."""
        page = self._first[_HARDWARE]
        return Spot(page, "#by-file") if page else None


def _row(first: str, heading: str) -> str:
    """Give the end of the address of a row of a table, which is found by its first cell, below a heading."""
    return f"?row={quote(first, safe='', errors='replace')}#{heading}"
