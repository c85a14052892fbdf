"""Runs as rows: each text that repeats is kept once, so that a run takes a few hundred bytes."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any

from rankbook.ledger.values import Values, compact, setting_of

_TEXTS = {"session": "session", "page": "page", "node": "node_id", "listing": "listing", "source": "source", "kind": "kind",
          "outcome": "outcome", "reason": "reason", "machine": "machine", "engine": "engine", "torch": "torch",
          "commit_id": "commit"}  # fmt: skip
"""Columns that hold a text, with the field that it is."""
_OBJECTS = {"needs": "needs", "test_case": "case"}
"""Columns that hold JSON, with the field that it is."""
_NUMBERS = {"line": "line", "duration": "duration", "ranks": "ranks", "at": "when"}
_SHARED = frozenset({"versions", "gpus", "backend", "device", "engine", "note", "isolation"})
"""Parts of a receipt that many runs have in common."""
_REFERENCES = (*_TEXTS, *_OBJECTS, "circumstances", "modules", "setting")
"""Columns that hold the number of a text."""
COLUMNS = ("key", *_NUMBERS, "receipt", *_REFERENCES)
TABLE = f"""CREATE TABLE runs (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, line INTEGER NOT NULL, duration REAL NOT NULL,
ranks INTEGER NOT NULL, at TEXT NOT NULL, receipt TEXT NOT NULL, {", ".join(f"{name} INTEGER NOT NULL" for name in _REFERENCES)})"""
_INSERT = f"INSERT INTO runs ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) ON CONFLICT (key) DO NOTHING"  # noqa: S608
NUMBER = "(SELECT id FROM texts WHERE digest = ?)"
"""The number of a text in a query, by its `digest`."""
AHEAD = "strftime('%Y-%m-%dT%H:%M:%S', 'now', '+1 day')"
"""The time in a query behind which no clock that goes right can be: a run that says a later one was recorded at an unknown time."""
ORDER = f"(runs.at > {AHEAD}) DESC, runs.at, runs.key"
"""Oldest first; a run that is dated ahead, whose time is not known, hides none that is not."""
_TIME = re.compile(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d")
_AT_ONCE = 500
"""Rows that are read together."""
_MOST_VARIABLES = 900
"""Fewer than any SQLite takes in one statement."""


def add(connection: sqlite3.Connection, runs: Iterable[Values]) -> int:
    """Add the runs that are not there yet.

    Args:
        connection: of a ledger, within a transaction.
        runs: each with its `id`.

    Returns:
        How many were added.
    """
    texts = Texts(connection)
    return sum(connection.execute(_INSERT, _row(values, texts)).rowcount for values in runs)


def _row(values: Values, texts: Texts) -> tuple[object, ...]:
    receipt = values.get("receipt", {})
    modules = (texts.number(_json([path, content])) for path, content in sorted(values.get("modules", {}).items()))
    found: dict[str, object] = {
        "key": bytes.fromhex(values["id"]),
        "line": values.get("line", 0),
        "duration": float(values.get("duration", 0.0)),
        "ranks": values.get("ranks", 0),
        "at": _written(values.get("when", "")).decode(),
        "receipt": _json({key: value for key, value in receipt.items() if key not in _SHARED}),
        "circumstances": texts.number(_json({key: value for key, value in receipt.items() if key in _SHARED})),
        "modules": texts.number(_json(list(modules))),
        "setting": texts.number(setting_of(values)),
        **{column: texts.number(values.get(name, "")) for column, name in _TEXTS.items()},
        **{column: texts.number(_json(values.get(name))) for column, name in _OBJECTS.items()},
    }
    return tuple(found[column] for column in COLUMNS)


def _json(value: object) -> str:
    return json.dumps(value or None, sort_keys=True, separators=(",", ":"), allow_nan=False)


def read(connection: sqlite3.Connection, query: str, arguments: Sequence[object] = ()) -> Iterator[Values]:
    """Yield the runs that a query gives.

    Args:
        connection: of a ledger.
        query: what follows `SELECT columns of runs`: `FROM runs WHERE …`.
        arguments: for its question marks.
    """
    texts = Texts(connection)
    columns = ", ".join(f"runs.{column}" for column in COLUMNS)
    cursor = connection.execute(f"SELECT {columns} {query}", arguments)
    while chunk := list(islice(cursor, _AT_ONCE)):
        first = COLUMNS.index(_REFERENCES[0])
        texts.load({number for row in chunk for number in row[first:]})
        texts.load_modules({row[COLUMNS.index("modules")] for row in chunk})
        for row in chunk:
            yield _values(dict(zip(COLUMNS, row, strict=True)), texts)


def _values(row: dict[str, Any], texts: Texts) -> Values:
    receipt = {**(texts.value(row["circumstances"]) or {}), **(json.loads(row["receipt"]) or {})}
    if row["at"] and not _TIME.match(row["at"]):
        raise ValueError(f"its time is {row['at']!r}")
    for column in ("line", "duration", "ranks"):
        if not isinstance(row[column], int | float):
            raise TypeError(f"its {column} is {row[column]!r}")
    found = {
        "id": row["key"].hex(),
        **{name: texts.text(row[column]) for column, name in _TEXTS.items()},
        **{name: row[column] for column, name in _NUMBERS.items()},
        **{name: texts.value(row[column]) for column, name in _OBJECTS.items()},
        "receipt": receipt,
        "modules": texts.modules(row["modules"]),
    }
    return compact(found)


def digest(text: str) -> bytes:
    """Give what a text is found by."""
    return blake2b(_written(text), digest_size=16).digest()


def _written(text: str) -> bytes:
    return text.encode(errors="backslashreplace")


class Texts:
    """The texts of a ledger, each kept once, under a number.

    Args:
        connection: of the ledger.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._numbers: dict[str, int] = {}
        self._texts: dict[int, str] = {}
        self._values: dict[int, Any] = {}
        self._modules: dict[int, dict[str, str]] = {}

    def number(self, text: str) -> int:
        """Give the number of a text, which is added when it is new; lone surrogates, which no file takes, are written out."""
        known = self._numbers.get(text)
        if known is None:
            key = digest(text)
            row = self._connection.execute("SELECT id FROM texts WHERE digest = ?", (key,)).fetchone()
            if row is None:
                added = self._connection.execute("INSERT INTO texts (digest, text) VALUES (?, ?)", (key, _written(text).decode()))
                row = (added.lastrowid,)
            known = self._numbers[text] = int(row[0])
        return known

    def load(self, numbers: set[int]) -> None:
        """Read texts that will be asked for."""
        missing = sorted(numbers - self._texts.keys())
        for start in range(0, len(missing), _MOST_VARIABLES):
            some = missing[start : start + _MOST_VARIABLES]
            query = f"SELECT id, text FROM texts WHERE id IN ({', '.join('?' * len(some))})"  # noqa: S608
            self._texts.update(self._connection.execute(query, some))

    def text(self, number: int) -> str:
        """Give a text that was loaded."""
        return self._texts[number]

    def value(self, number: int) -> Any:
        """Give what a text that was loaded says in JSON."""
        if number not in self._values:
            self._values[number] = json.loads(self._texts[number])
        return self._values[number]

    def load_modules(self, numbers: set[int]) -> None:
        """Read lists of files that will be asked for, whose own texts were loaded."""
        missing = numbers - self._modules.keys()
        self.load({number for listed in missing for number in self.value(listed) or ()})
        for listed in missing:
            self._modules[listed] = dict(self.value(number) for number in self.value(listed) or ())

    def modules(self, number: int) -> dict[str, str]:
        """Give the files of a list that was loaded, each with its hash."""
        return self._modules[number]
