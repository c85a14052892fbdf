"""The rows of an index over all files, kept in drawers by the beginnings of their names, so that an edit opens few of them.

What a file has in a drawer is packed, in the process that makes the file's pages; only what is shown or has changed is unpacked.
"""

from __future__ import annotations

import marshal
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from rankbook.counts import Counts, kept
from rankbook.packed import rows_of
from rankbook.pages.shards import Tokens
from rankbook.store import Store, StoreError

Row = tuple[Any, ...]
"""A row of an index, a named tuple; its name comes first."""
Filed = Mapping[str, bytes]
"""The rows of a file by drawer, packed without the path."""
_FORMAT = 2
"""Of `marshal`: the last that writes what is equal in the same bytes."""


class Catalogue:
    """The rows of one index.

    Args:
        store: where the drawers are kept.
        table: of the store; a key is a drawer, or a file after a `/`.
        kind: class of the rows, with a `path`.
        drawer: names the drawer that a name's rows are in.
        tokens: how a name is looked up.
    """

    def __init__(self, store: Store, table: str, kind: type[Row], drawer: Callable[[str], str], tokens: Callable[[str], Tokens]) -> None:
        self._store = store
        self._table = table
        self._kind = kind
        self._drawer = drawer
        self._tokens = tokens
        self._open: dict[str, dict[str, bytes]] = {}
        self._touched: set[str] = set()
        self._read: tuple[str | None, list[Row]] = None, []
        """The drawer that was read last, and its rows by file."""
        self.changed: set[str] = set()
        """Names whose rows are not those of the last run."""

    @cached_property
    def counts(self) -> Counts:
        """Number of rows by name, read when it is first asked for: most edits change no row."""
        return kept(self._store, self._table, self._tokens)

    def filed(self, rows: Sequence[Row]) -> Filed:
        """Put the rows of a file into drawers."""
        found: dict[str, list[Row]] = {}
        for row in rows:
            found.setdefault(self._drawer(row[0]), []).append(row)
        return {key: self._packed(same) for key, same in found.items()}

    def put(self, path: str, filed: Filed) -> None:
        """Set the rows of a file."""
        before: Filed = self._store.get(self._table, f"/{path}") or {}
        if before == filed:
            return
        for key in before.keys() | filed.keys():
            old, new = before.get(key), filed.get(key)
            if old != new:
                self._put(key, path, old, new)
        self._store.put(self._table, f"/{path}", _pickled(filed) if filed else None)

    def rows(self, names: Sequence[str]) -> Iterator[Row]:
        """Give the rows of some names, by file."""
        wanted = frozenset(names)
        for key in sorted({self._drawer(name) for name in wanted}):
            if self._read[0] != key:
                drawer = self._opened(key)
                self._read = key, [row for path in sorted(drawer) for row in self._unpacked(drawer[path], path)]
            yield from (row for row in self._read[1] if row[0] in wanted)

    def keep(self) -> None:
        """Leave the rows for the next run."""
        for key in self._touched:
            self._store.put(self._table, key, _pickled(self._open[key]) if self._open[key] else None)
        if self.changed:
            self.counts.keep(self._store, self._table)

    def _put(self, key: str, path: str, before: bytes | None, after: bytes | None) -> None:
        drawer, counts = self._opened(key), self.counts
        self._touched.add(key)
        self._read = None, []
        old, new = self._unpacked(before, path), self._unpacked(after, path)
        self.changed.update(row[0] for row in set(old) ^ set(new))
        for row in old:
            counts.add(row[0], -1)
        for row in new:
            counts.add(row[0], 1)
        if after is None:
            drawer.pop(path, None)
        else:
            drawer[path] = after

    def _opened(self, key: str) -> dict[str, bytes]:
        if key not in self._open:
            self._open[key] = self._store.get(self._table, key) or {}
        return self._open[key]

    def _packed(self, rows: Sequence[Row]) -> bytes:
        columns = list(zip(*rows, strict=True))
        del columns[self._place]
        return marshal.dumps((len(rows), *columns), _FORMAT)

    def _unpacked(self, data: bytes | None, path: str) -> Sequence[Row]:
        if data is None:
            return ()
        try:
            count, *columns = marshal.loads(data)  # noqa: S302 - it lies in the user's own cache
        except (ValueError, EOFError, TypeError) as error:
            raise StoreError(str(error)) from error
        columns.insert(self._place, (path,) * count)
        return rows_of(self._kind, columns)

    @property
    def _place(self) -> int:
        """Where a row has the path of its file."""
        return self._kind._fields.index("path")  # type: ignore[attr-defined, no-any-return] # it is a named tuple


def _pickled(value: object) -> bytes:
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
