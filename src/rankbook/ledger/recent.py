"""The runs of each test or listing, without what only another run would want to know: quick enough for every build of a site."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from hashlib import blake2b
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from rankbook.errors import LedgerError
from rankbook.ledger.rows import AHEAD, ORDER, Texts
from rankbook.ledger.tables import is_there, reading
from rankbook.ledger.values import hardware_class
from rankbook.listing import Outcome, Receipt, Run

_AT_ONCE = 2000
"""Rows that are read together."""
_LINE = re.compile(r'"line":(\d+)')
_OF = re.compile(r'"of":(\d+)')


class Brief(NamedTuple):
    """A run as its row has it, with texts in the place of their numbers."""

    node: str
    page: str
    listing: str
    source: str
    kind: str
    outcome: str
    reason: str
    machine: str
    engine: str
    torch: str
    commit_id: str
    needs: str
    """JSON."""
    test_case: str
    """JSON."""
    line: int
    duration: float
    ranks: int
    at: str
    modules: Mapping[str, str]
    """SHA-256 of each file beside it; runs that were beside the same ones share it."""
    receipt: str | None
    """JSON of the receipt of a failed run with several ranks."""
    beside: str
    """Digest of these files; empty where there are none."""

    @property
    def version(self) -> str:
        """What it ran: the same for the same listing beside the same files."""
        return f"{self.listing} {self.beside}" if self.beside else self.listing

    def run(self) -> Run:
        """Make the run; of its receipt it has the ranks only, of its case the line, and on a page of a person how many tests there were.

        Raises:
            ValueError: this rankbook cannot read it.
        """
        return Run(
            page=self.page,
            node_id=self.node,
            listing=self.listing,
            source=self.source,
            line=self.line,
            kind=self.kind,
            outcome=Outcome(self.outcome),
            reason=self.reason,
            duration=self.duration,
            ranks=self.ranks,
            when=self.at,
            machine=self.machine,
            engine=self.engine,
            torch=self.torch,
            commit=self.commit_id,
            receipt=Receipt(Receipt.of(json.loads(self.receipt) or {}).ranks) if self.receipt else _NOTHING,
            needs=_needs(self.needs),
            modules=self.modules,
            case=_case(self.test_case) if self.source else {**_case(self.test_case), **_number_of_tests(self.test_case)},
        )


_NOTHING = Receipt()
_TEXTS = Brief._fields[: Brief._fields.index("line")]
_COLUMNS = Brief._fields[:-2]
_FAILURES = ", ".join(f"'{outcome}'" for outcome in Outcome if outcome.is_failure)
_READ = {"at": f"CASE WHEN runs.at <= {AHEAD} THEN runs.at ELSE '' END"}
"""How columns are read that are not taken as they are: the time of a run that is dated ahead is not known."""
_QUERY = f"""SELECT {", ".join(_READ.get(column, f"runs.{column}") for column in _COLUMNS)},
CASE WHEN ranks > 1 AND outcome IN (SELECT id FROM texts WHERE text IN ({_FAILURES})) THEN receipt END
FROM runs WHERE {{}} ORDER BY runs.node, {ORDER}"""  # noqa: S608 - names of columns and of outcomes
_AFTER = "runs.node IN (SELECT node FROM runs WHERE id > ?)"


@lru_cache(maxsize=4096)
def _needs(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text) or ())


def _case(text: str) -> dict[str, int]:
    found = _LINE.search(text)
    return _at_line(int(found[1])) if found else _at_line(0)


def _number_of_tests(text: str) -> dict[str, int]:
    found = _OF.search(text)
    return {"of": int(found[1])} if found else {}


@lru_cache(maxsize=65536)
def _at_line(line: int) -> dict[str, int]:
    """Give the case of all tests that stand on a line: it is shared, because there are many."""
    return {"line": line} if line else {}


class Extent(NamedTuple):
    """How far a ledger goes; it changes when anything is recorded, or when another ledger stands in its place."""

    number: int = 0
    """Of the newest run."""
    runs: int = 0
    """How many there are."""
    key: str = ""
    """What no other run than the newest has in any ledger."""


def extent(path: Path) -> Extent:
    """Tell how far a ledger goes.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    if not is_there(path):
        return Extent()
    with reading(path) as connection:
        found = connection.execute("SELECT id, hex(key) FROM runs ORDER BY id DESC LIMIT 1").fetchone() or (0, "")
        (count,) = connection.execute("SELECT count(*) FROM runs").fetchone()
        return Extent(int(found[0]), int(count), found[1])


def first_ahead(path: Path) -> str:
    """Give the earliest time of a run that is dated ahead, whose time will be known one day; empty where there is none.

    Args:
        path: the ledger's file.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    if not is_there(path):
        return ""
    with reading(path) as connection:
        (found,) = connection.execute(f"SELECT coalesce(min(at), '') FROM runs WHERE at > {AHEAD}").fetchone()  # noqa: S608 - as above
        return str(found)


def has_only_grown(path: Path, before: Extent) -> bool:
    """Tell whether runs were only added to a ledger: each takes the next number, and those that were there still are.

    Args:
        path: the ledger's file.
        before: how far it went.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    now = extent(path)
    if now == before or not before.runs:
        return True
    if now.number - before.number != now.runs - before.runs or now.number <= before.number:
        return False
    with reading(path) as connection:
        found = connection.execute("SELECT hex(key) FROM runs WHERE id = ?", (before.number,)).fetchone()
    return found is not None and found[0] == before.key


def recorded(path: Path, after: int = 0) -> Iterator[list[tuple[str, Brief]]]:
    """Yield the runs of each test or listing, oldest first, each with its class of hardware.

    Args:
        path: the ledger's file.
        after: only of tests that have a run with a higher number than this.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    if not is_there(path):
        return
    hardware = lru_cache(maxsize=None)(hardware_class)
    with reading(path) as connection:
        query, arguments = (_QUERY.format(_AFTER), (after,)) if after else (_QUERY.format("1"), ())
        for _, rows in groupby(_rows(connection, query, arguments), key=itemgetter(0)):
            yield [(hardware(row.machine), row) for row in rows]


def _rows(connection: sqlite3.Connection, query: str, arguments: tuple[int, ...]) -> Iterator[Brief]:
    texts = Texts(connection)
    text, modules, beside = texts.text, texts.modules, lru_cache(maxsize=None)(partial(_beside, texts))
    cursor = connection.execute(query, arguments)
    width = len(_TEXTS)
    while chunk := list(islice(cursor, _AT_ONCE)):
        lists = {row[-2] for row in chunk}
        texts.load({*lists, *chain.from_iterable(row[:width] for row in chunk)})
        texts.load_modules(lists)
        for row in chunk:
            yield Brief._make((*map(text, row[:width]), *row[width:-2], modules(row[-2]), row[-1], beside(row[-2])))


def _beside(texts: Texts, number: int) -> str:
    """Give the digest of a list of files that was loaded."""
    found = texts.modules(number)
    return blake2b(repr(sorted(found.items())).encode(errors="backslashreplace"), digest_size=8).hexdigest() if found else ""


def beside(path: Path) -> frozenset[str]:
    """Give the paths of all files beside which runs were.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    if not is_there(path):
        return frozenset()
    with reading(path) as connection:
        texts = Texts(connection)
        lists = {number for (number,) in connection.execute("SELECT DISTINCT modules FROM runs")}
        texts.load(lists)
        texts.load_modules(lists)
        return frozenset(chain.from_iterable(map(texts.modules, lists)))


def unreadable(path: Path, error: Exception) -> LedgerError:
    """Say that a ledger holds a run of which this rankbook can make nothing.

    Args:
        path: the ledger's file.
        error: what came of it.
    """
    return LedgerError(f"it holds a run that this rankbook cannot read ({error})", where=path, right="use the rankbook that wrote it")
