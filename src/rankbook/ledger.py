"""The ledger: every outcome that was ever recorded, in one SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, fields
from pathlib import Path

from rankbook.errors import LedgerError
from rankbook.listing import Outcome, Run

FORMAT = 1
"""Version of the tables, kept as SQLite's `user_version`."""
_COLUMNS = ("page", "node_id", "listing", "source", "line", "kind", "outcome", "reason", "duration", "ranks", "at", "machine", "engine",
            "torch", "commit_id")  # fmt: skip
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS runs (
  id INTEGER PRIMARY KEY,
  {", ".join(f"{name} NOT NULL" for name in _COLUMNS)}
);
CREATE INDEX IF NOT EXISTS runs_by_source ON runs (source, node_id, id);
CREATE INDEX IF NOT EXISTS runs_by_page ON runs (page, node_id, id);
PRAGMA user_version = {FORMAT};
COMMIT;
"""
assert len(_COLUMNS) == len(fields(Run))


class Ledger:
    """A ledger file; made on the first record.

    Args:
        path: the SQLite file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def record(self, runs: Iterable[Run]) -> None:
        """Add outcomes, all or none.

        Raises:
            LedgerError: the file is no ledger, is of a newer format, or cannot be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        marks = ", ".join("?" * len(_COLUMNS))
        with self._open() as connection, connection:
            connection.executemany(f"INSERT INTO runs ({', '.join(_COLUMNS)}) VALUES ({marks})", (astuple(run) for run in runs))  # noqa: S608

    def last(self, source: str) -> list[Run]:
        """Give the last outcome of each test and listing of the pages about a source, in the order of their node ids' first record."""
        return self._last("source", source)

    def last_by_page(self, page: str) -> list[Run]:
        """Give the last outcome of each test and listing of a page."""
        return self._last("page", page)

    def _last(self, column: str, value: str) -> list[Run]:
        if not self.path.is_file():
            return []
        query = (
            f"SELECT {', '.join(_COLUMNS)} FROM runs WHERE id IN "  # noqa: S608
            f"(SELECT max(id) FROM runs WHERE {column} = ? GROUP BY node_id) ORDER BY line, node_id"
        )
        with self._open() as connection:
            return [_run(row) for row in connection.execute(query, (value,))]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            # A transaction that takes its lock at once waits its turn; one that asks for it half-way is refused.
            connection = sqlite3.connect(self.path, timeout=30, isolation_level="IMMEDIATE")
            try:
                self._prepare(connection)
                yield connection
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise LedgerError(f"not a ledger that can be used ({error})", where=self.path, right="move it away and run again") from error

    def _prepare(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > FORMAT:
            raise LedgerError(
                f"format {version} is newer than this rankbook's {FORMAT}", where=self.path, right="use the rankbook that wrote it"
            )
        if version < FORMAT:
            connection.executescript(_SCHEMA)


def _run(row: tuple[object, ...]) -> Run:
    values = dict(zip((entry.name for entry in fields(Run)), row, strict=True))
    values["outcome"] = Outcome(str(values["outcome"]))
    return Run(**values)  # type: ignore[arg-type]
