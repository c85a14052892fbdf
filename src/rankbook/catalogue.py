"""The rows of an index over all files, kept in drawers by the beginnings of their names, so that an edit opens few of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rankbook.store import Store

Row = tuple[Any, ...]
"""A row of an index; its name comes first."""


class Catalogue:
    """The rows of one index.

    Args:
        store: where the drawers are kept.
        table: of the store; a key is a drawer, or a file after a `/`.
        drawer: names the drawer that a name's rows are in.
    """

    def __init__(self, store: Store, table: str, drawer: Callable[[str], str]) -> None:
        self._store = store
        self._table = table
        self._drawer = drawer
        self._open: dict[str, dict[str, tuple[Row, ...]]] = {}
        self._touched: set[str] = set()
        self.counts: dict[str, int] = store.get(table, "//counts") or {}
        """Number of rows by name."""
        self.changed: set[str] = set()
        """Names whose rows are not those of the last run."""

    def put(self, path: str, rows: Sequence[Row]) -> None:
        """Set the rows of a file."""
        before = self._store.get(self._table, f"/{path}") or ()
        if before == rows:
            return
        old, new = self._sorted(before), self._sorted(rows)
        for key in old.keys() | new.keys():
            if old.get(key) != new.get(key):
                self._put(key, path, old.get(key, ()), new.get(key, ()))
        self._store.put(self._table, f"/{path}", _packed(rows) if rows else None)

    def rows(self, names: Sequence[str]) -> Iterator[Row]:
        """Give the rows of some names, by file."""
        wanted = frozenset(names)
        for key in sorted({self._drawer(name) for name in wanted}):
            drawer = self._opened(key)
            for path in sorted(drawer):
                yield from (row for row in drawer[path] if row[0] in wanted)

    def keep(self) -> None:
        """Leave the rows for the next run."""
        for key in self._touched:
            self._store.put(self._table, key, _packed(self._open[key]) if self._open[key] else None)
        if self.changed:
            self._store.put(self._table, "//counts", _packed(self.counts))

    def _sorted(self, rows: Iterable[Row]) -> dict[str, tuple[Row, ...]]:
        """Put rows into drawers."""
        found: dict[str, list[Row]] = {}
        for row in rows:
            found.setdefault(self._drawer(row[0]), []).append(row)
        return {key: tuple(same) for key, same in found.items()}

    def _put(self, key: str, path: str, before: tuple[Row, ...], after: tuple[Row, ...]) -> None:
        drawer = self._opened(key)
        self._touched.add(key)
        self.changed |= {row[0] for row in set(before) ^ set(after)}
        for row in before:
            self.counts[row[0]] -= 1
            if not self.counts[row[0]]:
                del self.counts[row[0]]
        for row in after:
            self.counts[row[0]] = self.counts.get(row[0], 0) + 1
        if after:
            drawer[path] = after
        else:
            drawer.pop(path, None)

    def _opened(self, key: str) -> dict[str, tuple[Row, ...]]:
        if key not in self._open:
            self._open[key] = self._store.get(self._table, key) or {}
        return self._open[key]


def _packed(value: object) -> bytes:
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
