"""What the book offers to links, kept folder by folder as compressed lines: an edit writes those of one folder anew."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Mapping

from rankbook import pages
from rankbook.model import Folder
from rankbook.pages import Entries, Lines
from rankbook.store import Store

_MODULES = "modules"
_OFFERS = "offers "
"""How the key of what a folder offers begins."""


class Offers:
    """The entries of the inventory.

    Args:
        store: where they are kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._modules: dict[str, str] = store.get("indexes", _MODULES) or {}
        """Dotted name under which a file is imported, by path."""
        self._touched: set[str] = set()
        """Folders with other entries than before."""
        self._moved: set[str] = set()
        """Dotted names that stand for another number of files than before."""

    @property
    def is_changed(self) -> bool:
        """Whether a file offers something else than before."""
        return bool(self._touched)

    def put(self, path: str, entries: Entries | None) -> None:
        """Set what a file offers; None of one that is gone."""
        data = None if entries is None else pickle.dumps(entries, pickle.HIGHEST_PROTOCOL)
        if data == self._store.data("entries", path):
            return
        self._store.put("entries", path, data)
        self._touched.add(_folder(path))
        old, new = self._modules.pop(path, ""), entries.module if entries else ""
        if new:
            self._modules[path] = new
        if old != new:
            self._moved |= {old, new}

    def inventory(self, folders: Mapping[str, Folder], title: str) -> bytes:
        """Write the inventory.

        Args:
            folders: all that hold the sources.
            title: of the book.
        """
        taken = Counter(self._modules.values())
        self._touched |= {_folder(path) for path, module in self._modules.items() if module in self._moved}
        for gone in self._touched - folders.keys():
            self._store.put("indexes", _place(gone), None)
        kept = self._store.beginning("indexes", _OFFERS)  # at once, for there are hundreds
        found = (self._lines(folder, taken, kept) for _, folder in sorted(folders.items()) if folder.files)
        made = pages.inventory(found, title)
        self._store.put("indexes", _MODULES, pickle.dumps(self._modules, pickle.HIGHEST_PROTOCOL))
        self._touched.clear()
        self._moved.clear()
        return made

    def _lines(self, folder: Folder, taken: Mapping[str, int], kept: Mapping[str, Lines]) -> Lines:
        if folder.path not in self._touched and folder.path in kept:
            return kept[folder.path]
        self._store.prepare("entries", folder.files)
        entries = (self._store.get("entries", path) for path in sorted(folder.files))
        lines = pages.lines_of([each for each in entries if each is not None], taken)
        self._store.put("indexes", _place(folder.path), pickle.dumps(lines, pickle.HIGHEST_PROTOCOL))
        return lines


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _place(folder: str) -> str:
    return f"{_OFFERS}{folder}"
