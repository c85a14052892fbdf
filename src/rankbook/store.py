"""What a run keeps for the next one: facts and surveys of each file, and the rows that indexes are made of, in SQLite.

It lies in the user's cache beside the manifest (`freshness.py`), and may be deleted at any time.
"""

from __future__ import annotations

import os
import pickle
import shutil
import sqlite3
import tempfile
import time
import weakref
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

_Value = TypeVar("_Value")
_NAME = "store.sqlite"
_TABLES = ("facts", "packages", "surveys", "findings", "rows", "keywords", "sought", "totals", "words", "apis", "entries", "indexes")
"""Tables of one value per key."""
_SCHEMA = "".join(f"CREATE TABLE IF NOT EXISTS {table} (key TEXT PRIMARY KEY, value BLOB NOT NULL);\n" for table in _TABLES)
"""With row ids: SQLite would keep the first part of each of these long values in the tree of the keys, and so write more pages."""
_UNUSED = 30 * 24 * 3600
"""Seconds after which what a project's runs have kept is deleted."""
_MOST = 400
"""Values that are kept unpacked: of the files that are asked for again, most are so soon."""
_AT_ONCE = 500
"""Values that are read at once."""
_SMALL = 256
"""Bytes up to which a value is not worth a place in a file."""


class StoreError(Exception):
    """What was kept cannot be read; it is no loss but of time."""


class _Aside:
    """Room for values in a file without a name: of thousands that a run sets, its processes hold only where they lie.

    Args:
        folder: that the file is made in; it is gone when nobody has it open.

    Raises:
        OSError: no file can be made there.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - it is closed with this object
        weakref.finalize(self, file.close)
        self._number = file.fileno()
        self._owner = os.getpid()
        self._end = 0

    def put(self, data: bytes) -> bytes | int:
        """Put a value aside, and give its place; itself where that is not worth it, or cannot be."""
        if len(data) <= _SMALL or os.getpid() != self._owner:
            return data
        try:
            written = os.pwrite(self._number, data, self._end)
        except OSError:
            return data
        if written < len(data):
            return data
        place = self._end << 32 | len(data)
        self._end += len(data)
        return place

    def get(self, place: int) -> bytes:
        """Give the value at a place."""
        return os.pread(self._number, place & 0xFFFFFFFF, place >> 32)


class Store:
    """The kept values of one project.

    Args:
        folder: where they lie, made on the first `commit`; None to keep nothing.
        world: what they depend on.
    """

    def __init__(self, folder: Path | None, world: str) -> None:
        self._path = None if folder is None else folder / _NAME
        self.world = world
        """What the values depend on, as it was when the run began."""
        self._changed: dict[str, dict[str, bytes | int | None]] = {table: {} for table in _TABLES}
        """What was set, or where it lies in `_aside`."""
        self._aside = _aside(folder)
        self._connections: dict[int, sqlite3.Connection] = {}
        self._prepared: dict[str, dict[str, bytes]] = {}
        """By table what was read at once."""
        weakref.finalize(self, _let_go, self._connections)
        self.generation = ""
        """Token of the run that left these values; empty when there are none."""
        self._open()

    def get(self, table: str, key: str) -> Any:
        """Give a value; None when there is none."""
        data = self.data(table, key)
        return None if data is None else _opened(data)

    def data(self, table: str, key: str) -> bytes | None:
        """Give a value as it is kept; None when there is none."""
        changed = self._changed[table]
        return self._set(changed[key]) if key in changed else self._read(table, key)

    def prepare(self, table: str, keys: Sequence[str]) -> None:
        """Read at once what is asked for soon, in the place of what was so read before: one by one it takes several times as long."""
        self._prepared[table] = {}
        if not self.generation:
            return
        try:
            for start in range(0, len(keys), _AT_ONCE):
                some = keys[start : start + _AT_ONCE]
                wanted = f"SELECT key, value FROM {table} WHERE key IN ({','.join('?' * len(some))})"  # noqa: S608 - a name of ours
                rows = self._connection().execute(wanted, [*map(_written, some)])
                self._prepared[table].update((_key_of(key), value) for key, value in rows)
        except sqlite3.Error as error:
            raise StoreError(str(error)) from error

    def beginning(self, table: str, start: str) -> dict[str, Any]:
        """Give all values whose keys begin so, by the rest of the keys."""
        changed = {key: self._set(value) for key, value in self._changed[table].items() if key.startswith(start)}
        found = {**self._read_beginning(table, start), **changed}
        return {key.removeprefix(start): _opened(data) for key, data in found.items() if data is not None}

    def put(self, table: str, key: str, data: bytes | None) -> None:
        """Set a value, pickled; None deletes it."""
        self._changed[table][key] = data if data is None or self._aside is None else self._aside.put(data)

    def sums(self, table: str) -> dict[str, int]:
        """Give a checksum of each value that the last run has left, by key."""
        if not self.generation:
            return {}
        try:
            rows = self._connection().execute(f"SELECT key, value FROM {table}")  # noqa: S608 - as above
            return {_key_of(key): zlib.crc32(data) for key, data in rows}
        except sqlite3.Error as error:
            raise StoreError(str(error)) from error

    def clear(self) -> None:
        """Forget all values."""
        self._discard()
        self.generation = ""
        self._prepared.clear()
        for changed in self._changed.values():
            changed.clear()

    def commit(self, generation: str) -> bool:
        """Keep all that was set, at once or not at all.

        Args:
            generation: token of this run.

        Returns:
            Whether it is kept; not when another run came between, or where nothing can be written.
        """
        if self._path is None:
            return False
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=10, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = OFF")  # a cache: after a crash of the machine it is made anew
                connection.executescript(_SCHEMA + "CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT);")
                connection.execute("BEGIN IMMEDIATE")
                if _about(connection).get("generation", "") != self.generation and self.generation:
                    connection.execute("ROLLBACK")
                    return False
                self._write(connection, generation)
                connection.execute("COMMIT")
        except (sqlite3.Error, OSError):
            return False
        return True

    def close(self) -> None:
        """Let go of the file, as also happens when nobody has the store any more."""
        _let_go(self._connections)

    def _set(self, value: bytes | int | None) -> bytes | None:
        """Give a value that was set, wherever it lies."""
        if not isinstance(value, int):
            return value
        assert self._aside is not None
        return self._aside.get(value)

    def _open(self) -> None:
        if self._path is None:
            return
        try:
            is_there = self._path.is_file()
        except OSError:  # its folder cannot be looked into, and so holds nothing for anybody
            self._path = None
            return
        if not is_there:
            _prune(self._path.parent)
            return
        try:
            about = _about(self._connection())
        except sqlite3.Error:
            self._discard()
            return
        if about.get("world") == self.world:
            self.generation = about.get("generation", "")
        else:
            self._discard()

    def _discard(self) -> None:
        self.close()
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def _connection(self) -> sqlite3.Connection:
        """Give the connection of this process: one that was opened before a fork is not to be used."""
        process = os.getpid()
        if process not in self._connections:
            assert self._path is not None
            self._connections[process] = sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True, check_same_thread=False)
        return self._connections[process]

    def _read(self, table: str, key: str) -> bytes | None:
        if not self.generation:
            return None
        if (prepared := self._prepared.get(table, {}).get(key)) is not None:
            return prepared
        try:
            row = self._connection().execute(f"SELECT value FROM {table} WHERE key = ?", (_written(key),)).fetchone()  # noqa: S608 - a name of ours
        except sqlite3.Error as error:
            raise StoreError(str(error)) from error
        return None if row is None else row[0]

    def _read_beginning(self, table: str, start: str) -> dict[str, bytes]:
        if not self.generation:
            return {}
        wanted = f"SELECT key, value FROM {table} WHERE key >= ? AND (substr(key, 1, ?) = ? OR typeof(key) = 'blob')"  # noqa: S608 - a name of ours
        try:
            rows = self._connection().execute(wanted, (_written(start), len(start), _written(start)))
            return {name: value for key, value in rows if (name := _key_of(key)).startswith(start)}
        except sqlite3.Error as error:
            raise StoreError(str(error)) from error

    def _write(self, connection: sqlite3.Connection, generation: str) -> None:
        for table in _TABLES:
            changed = self._changed[table]
            gone = [(_written(key),) for key, data in changed.items() if data is None]
            connection.executemany(f"DELETE FROM {table} WHERE key = ?", gone)  # noqa: S608 - as above
            kept = ((_written(key), self._set(changed[key])) for key in sorted(changed) if changed[key] is not None)
            connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", kept)  # noqa: S608 - as above
        about = {"generation": generation, "world": self.world}
        connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", about.items())


def _written(key: str) -> str | bytes:
    """Give a key as SQLite takes it: one with a lone surrogate, which a string of a source may hold, is no text to it."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return key.encode("utf-8", "surrogatepass")
    return key


def _key_of(key: str | bytes) -> str:
    return key if isinstance(key, str) else key.decode("utf-8", "surrogatepass")


def _let_go(connections: dict[int, sqlite3.Connection]) -> None:
    connection = connections.pop(os.getpid(), None)
    if connection is not None:
        connection.close()


class Kept(Mapping[str, _Value], Generic[_Value]):
    """A table of the store as a mapping that unpacks a value when it is asked for.

    Args:
        store: where the values lie.
        table: which of them.
        keys: all keys, in order.
        missing: gives a value that is not kept; None when all are.
        most: values that are kept unpacked.
    """

    def __init__(
        self, store: Store, table: str, keys: Iterable[str], missing: Callable[[str], _Value] | None = None, most: int = _MOST
    ) -> None:
        self._store = store
        self._table = table
        self._keys = dict.fromkeys(keys)
        self._missing = missing
        self._unpacked: OrderedDict[str, _Value] = OrderedDict()
        self.most = most
        """Values that are kept unpacked; it may be lowered."""

    def __getitem__(self, key: str) -> _Value:
        value = self._unpacked.get(key)
        if value is None:
            if key not in self._keys:
                raise KeyError(key)
            value = self._store.get(self._table, key)
            if value is None:
                if self._missing is None:
                    raise KeyError(key)
                value = self._missing(key)
            self._unpacked[key] = value
            while len(self._unpacked) > self.most:
                self._unpacked.popitem(last=False)
        return value

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def _aside(folder: Path | None) -> _Aside | None:
    """Make room for values; None where all stay in memory."""
    if folder is None or not hasattr(os, "pread"):
        return None
    try:
        return _Aside(folder)
    except OSError:
        return None


def _opened(data: bytes) -> Any:
    try:
        return pickle.loads(data)  # noqa: S301 - it lies in the user's own cache
    except Exception as error:
        raise StoreError(str(error)) from error


def _about(connection: sqlite3.Connection) -> dict[str, str]:
    found = connection.execute("SELECT name FROM sqlite_master WHERE name = 'about'").fetchone()
    return dict(connection.execute("SELECT key, value FROM about")) if found else {}


def _prune(folder: Path) -> None:
    """Delete what other projects' runs have kept and not looked at for long."""
    try:
        for other in folder.parent.iterdir():
            store = other / _NAME
            if store.is_file() and time.time() - store.stat().st_mtime > _UNUSED:
                shutil.rmtree(other, ignore_errors=True)
    except OSError:
        return
