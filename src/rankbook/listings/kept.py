"""What the listings of a page are, kept in the user's cache: a page that has not changed is not rendered again.

A value counts for the same text, page, rendering, code of rankbook and Python, and for nothing else. It is lost without harm: a cache that
cannot be read, written or believed is as good as none.
"""

from __future__ import annotations

import functools
import os
import pickle
import sqlite3
import sys
import threading
import time
import zlib
from contextlib import suppress
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rankbook.freshness import cache_base
from rankbook.listing import Listing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rankbook.listings.fingerprint import Fingerprint

_Found = TypeVar("_Found")
_NAME = "listings.sqlite"
_SCHEMA = "CREATE TABLE IF NOT EXISTS pages (key BLOB PRIMARY KEY, day INTEGER NOT NULL, value BLOB NOT NULL)"
_DAY = 24 * 3600
_UNUSED = 30
"""Days after which what nobody has asked for is deleted."""
MOST = 256 * 1024 * 1024
"""Bytes that the values may take; the longest unused go first."""
_PATIENCE = 2.0
"""Seconds to wait for another process that writes."""
_PACKAGE = Path(__file__).resolve().parents[1]


def key_of(text: str, page: str, fingerprint: Fingerprint) -> bytes | None:
    """Give the key of a page's listings; None when they may depend on more than is known.

    Args:
        text: the page's text.
        page: its path as the user names it.
        fingerprint: of its site's rendering.
    """
    code = _code()
    if not code or not fingerprint.covers(text):
        return None
    parts = (code, fingerprint.text, page, text)
    return sha256("".join(f"{len(part)}:{part}" for part in parts).encode(errors="surrogatepass")).digest()


@functools.cache
def _code() -> str:
    """Tell which code makes listings: this Python, and the files of this package by their times and sizes; empty where they are none."""
    try:
        return "\n".join([sys.version, *_dated(_PACKAGE), *_dated(_PACKAGE / "listings")])
    except OSError:
        return ""


def _dated(folder: Path) -> Iterator[str]:
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name.endswith(".py"):
            seen = entry.stat()
            yield f"{entry.name}:{seen.st_mtime_ns}:{seen.st_size}"


class Kept:
    """The cache; several threads and processes may use it at once.

    Args:
        path: its file, made when something is kept.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._is_off = False

    def get(self, key: bytes) -> tuple[Listing, ...] | None:
        """Give the listings that are kept under a key; None when there are none, or they are damaged."""
        data = self._with_file(lambda connection: _read(connection, key)) if self._path.is_file() else None
        if data is None:
            return None
        try:
            found = pickle.loads(zlib.decompress(data))  # noqa: S301 - it lies in the user's own cache
        except Exception:  # noqa: BLE001 - whatever is wrong with it, the page is rendered
            return None
        return found if isinstance(found, tuple) and all(isinstance(listing, Listing) for listing in found) else None

    def put(self, key: bytes, listings: tuple[Listing, ...]) -> None:
        """Keep listings."""
        data = zlib.compress(pickle.dumps(listings, pickle.HIGHEST_PROTOCOL), 1)  # its checksum tells damage
        self._with_file(lambda connection: _write(connection, key, data))

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._let_go()

    def _with_file(self, work: Callable[[sqlite3.Connection], _Found]) -> _Found | None:
        """Do something with the file; None when that fails."""
        with self._lock:
            if self._is_off:
                return None
            try:
                self._connection = self._connection or _opened(self._path)
                return work(self._connection)
            except (sqlite3.OperationalError, OSError):  # another process writes for long, or nothing can be written here
                return None
            except sqlite3.Error:
                self._discard()
                return None

    def _discard(self) -> None:
        """Take a damaged file away, and do without one from now on."""
        self._is_off = True
        self._let_go()
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _opened(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")  # a cache: after a crash of the machine it is made anew
        connection.execute(_SCHEMA)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _read(connection: sqlite3.Connection, key: bytes) -> bytes | None:
    row = connection.execute("SELECT value, day FROM pages WHERE key = ?", (key,)).fetchone()
    if row is not None and row[1] != _today():
        with suppress(sqlite3.OperationalError):
            connection.execute("UPDATE pages SET day = ? WHERE key = ?", (_today(), key))
    return None if row is None else row[0]


def _write(connection: sqlite3.Connection, key: bytes, data: bytes) -> None:
    connection.execute("INSERT OR REPLACE INTO pages VALUES (?, ?, ?)", (key, _today(), data))
    pages, free, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size"))
    if (pages - free) * size > MOST:
        _prune(connection)


def _prune(connection: sqlite3.Connection) -> None:
    """Delete what has not been asked for, the longest first, until a quarter is free."""
    rows = connection.execute("SELECT rowid, day, length(value) FROM pages ORDER BY day DESC, rowid DESC").fetchall()
    sizes = accumulate(length for _, _, length in rows)
    gone = [(row,) for (row, day, _), size in zip(rows, sizes, strict=True) if size > MOST * 3 // 4 or day < _today() - _UNUSED]
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("DELETE FROM pages WHERE rowid = ?", gone)
    connection.execute("COMMIT")


def _today() -> int:
    return int(time.time()) // _DAY


def of_user() -> Kept:
    """Give the cache of the user who runs this."""
    return _at(cache_base() / _NAME)


@functools.cache
def _at(path: Path) -> Kept:
    return Kept(path)
