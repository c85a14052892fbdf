"""The file of a ledger: its tables, what becomes of older ones, and what is said when SQLite refuses.

Changes are kept by SQLite's rollback journal, not by a write-ahead log: the log needs memory that all processes share, which network file
systems do not give, and leaves what was committed in a second file, which is lost when the ledger alone is copied to or from a CI runner.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from urllib.parse import quote

from rankbook.errors import LedgerError
from rankbook.ledger import rows
from rankbook.ledger.values import Values

FORMAT = 2
"""Version of the tables, kept as SQLite's `user_version`."""
APPLICATION = 0x524E4B42
"""SQLite's `application_id` of a ledger since format 2."""
PATIENCE = 30.0
"""Seconds that one waits for another process to finish writing."""
_FIRST = (
    *("page", "node_id", "listing", "source", "line", "kind", "outcome", "reason", "duration", "ranks", "at"),
    *("machine", "engine", "torch", "commit_id"),
)
"""Columns of the only table of format 1."""
_SCHEMA = (
    "CREATE TABLE texts (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, text TEXT NOT NULL)",
    rows.TABLE,
    "CREATE INDEX runs_by_node ON runs (node)",
    # The last run of each test under each setting; a run that comes late, from another machine, takes no newer one's place.
    """CREATE TABLE latest (node INTEGER NOT NULL, setting INTEGER NOT NULL, page INTEGER NOT NULL, source INTEGER NOT NULL,
    at TEXT NOT NULL, key BLOB NOT NULL, run INTEGER NOT NULL, PRIMARY KEY (node, setting)) WITHOUT ROWID""",
    "CREATE INDEX latest_by_page ON latest (page)",
    "CREATE INDEX latest_by_source ON latest (source)",
    """CREATE TRIGGER runs_latest AFTER INSERT ON runs BEGIN
    INSERT INTO latest VALUES (new.node, new.setting, new.page, new.source, new.at, new.key, new.id)
    ON CONFLICT (node, setting) DO UPDATE
    SET page = excluded.page, source = excluded.source, at = excluded.at, key = excluded.key, run = excluded.run
    WHERE (excluded.at, excluded.key) > (latest.at, latest.key);
    END""",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {FORMAT}",
)


def is_there(path: Path) -> bool:
    """Tell whether there is a ledger to read.

    Raises:
        LedgerError: what is there is no file.
    """
    if path.is_file():
        return True
    if path.exists():
        raise LedgerError(
            "it is a folder, and no ledger" if path.is_dir() else "it is no file, and no ledger", where=path, right="name a file"
        )
    return False


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a ledger for one change, all or nothing; it is made, or brought to the present format, where need be.

    Args:
        path: the file.

    Raises:
        LedgerError: it is no ledger, is of a newer format, or cannot be written.
    """
    _make_folder(path)
    with _told(path), closing(_connect(path, "rwc")) as connection:
        _migrate(connection, path)
        with _transaction(connection):
            yield connection


@contextmanager
def reading(path: Path, *, touch: bool = True) -> Iterator[sqlite3.Connection]:
    """Open a ledger to read it; an older format is brought to the present one.

    Args:
        path: the file.
        touch: whether that may happen in the file itself; a copy in memory is read where it may not, or cannot.

    Raises:
        LedgerError: it is no ledger, is of a newer format, or cannot be read.
    """
    with sound(path), _told(path), closing(_connect(path, "rw")) as connection:
        if _format(connection, path) == FORMAT or (touch and _could_migrate(connection, path)):
            yield connection
            return
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
            connection.backup(copy)
            _migrate(copy, path)
            yield copy


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}", uri=True, timeout=PATIENCE, isolation_level=None)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    # One that takes its lock at once waits its turn; one that asks for it half-way is refused.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        # SQLite has rolled back by itself where the disk is full, say.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _format(connection: sqlite3.Connection, path: Path) -> int:
    """Give the format, 0 for a new file."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if not _is_ledger(connection, version, application):
        raise LedgerError("not a ledger, but a database of another program", where=path, right="name another file for the ledger")
    if version > FORMAT:
        raise LedgerError(f"format {version} is newer than this rankbook's {FORMAT}", where=path, right="use the rankbook that wrote it")
    return version


def _is_ledger(connection: sqlite3.Connection, version: int, application: int) -> bool:
    if version > 1:
        return application == APPLICATION
    if version == 1:
        return {name for _, name, *_ in connection.execute("PRAGMA table_info (runs)")} == {"id", *_FIRST}
    return not connection.execute("SELECT name FROM sqlite_master LIMIT 1").fetchall()


def _could_migrate(connection: sqlite3.Connection, path: Path) -> bool:
    try:
        _migrate(connection, path)
    except sqlite3.OperationalError as error:
        if _primary(error) in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            return False
        raise
    return True


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    if _format(connection, path) == FORMAT:
        return
    with _transaction(connection):
        version = _format(connection, path)
        if version == FORMAT:
            return
        if version == 1:
            for statement in (
                "DROP INDEX IF EXISTS runs_by_source",
                "DROP INDEX IF EXISTS runs_by_page",
                "ALTER TABLE runs RENAME TO first",
            ):
                connection.execute(statement)
        for statement in _SCHEMA:
            connection.execute(statement)
        if version == 1:
            rows.add(connection, _first_format(connection))
            connection.execute("DROP TABLE first")


def _first_format(connection: sqlite3.Connection) -> Iterator[Values]:
    """Yield the runs of a ledger of format 1, with ids that all copies of it share and that keep their order."""
    names = ("when" if name == "at" else "commit" if name == "commit_id" else name for name in _FIRST)
    fields = ("number", *names)
    for row in connection.execute(f"SELECT id, {', '.join(_FIRST)} FROM first ORDER BY id"):  # noqa: S608 - names of columns
        values = dict(zip(fields, row, strict=True))
        number = values.pop("number")
        content = blake2b(json.dumps([number, values], sort_keys=True).encode(), digest_size=8).hexdigest()
        yield {**values, "id": f"{number:016x}{content}", "session": ""}


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = f"its folder cannot be made ({error.strerror})"
        raise LedgerError(what, where=path, right="name a place where files can be written") from error


@contextmanager
def sound(path: Path) -> Iterator[None]:
    """Turn what cannot be read of a file whose tables are whole, but not what stands in them, into one sentence."""
    try:
        yield
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        what = f"it is damaged: it holds a run that cannot be read ({type(error).__name__}: {error})"
        raise LedgerError(what, where=path, right="move it away and run again") from error


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn what SQLite refuses into one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        what, right = _SAID.get(_primary(error), ("not a ledger that can be used", "move it away and run again"))
        raise LedgerError(f"{what} ({error})", where=path, right=right) from error


def _primary(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


_SAID = {
    sqlite3.SQLITE_FULL: ("the disk is full; what was recorded before stands", "make room and run again"),
    sqlite3.SQLITE_IOERR: ("the file system refuses it; what was recorded before stands", "see that there is room and run again"),
    sqlite3.SQLITE_BUSY: (f"another process has been writing to it for {PATIENCE:g} s", "end that process and run again"),
    sqlite3.SQLITE_READONLY: ("it cannot be written", "make the file and its folder writable"),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", "make it a file, in a folder that can be written"),
}
"""What an error of SQLite means here, and what would be right."""
