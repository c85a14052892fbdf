"""The ledger: every outcome that was ever recorded, in one SQLite file, by whatever machine.

Each run has an id that no other run has, so ledgers can be put together in any order, and again, with the same result. What is newer is
told by the time of a run, never by when it came into the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rankbook.errors import LedgerError
from rankbook.ledger import rows
from rankbook.ledger.collected import gone
from rankbook.ledger.session import Session
from rankbook.ledger.tables import FORMAT, is_there, reading, writing
from rankbook.ledger.values import Values, checked, hardware_class, is_ahead, moment, run_of, setting, values_of
from rankbook.listing import Gone, Outcome, Run

__all__ = [
    "FORMAT",
    "Gone",
    "Ledger",
    "Session",
    "Values",
    "checked",
    "hardware_class",
    "is_ahead",
    "moment",
    "run_of",
    "setting",
    "values_of",
]

_ORDER = f"ORDER BY {rows.ORDER}"
_LATEST = f"""CASE WHEN latest.at > {rows.AHEAD} THEN coalesce((SELECT known.id FROM runs AS known WHERE known.node = latest.node
AND known.setting = latest.setting AND known.at <= {rows.AHEAD} ORDER BY known.at DESC, known.key DESC LIMIT 1), latest.run)
ELSE latest.run END"""  # noqa: S608 - no text of others
"""The number of the last run of a test under a setting; one that is dated ahead is the last only where there is no other."""


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
        self.session().write(runs)

    def session(self) -> Session:
        """Begin to record the runs of one session as they come."""
        return Session(self.path)

    def add(self, runs: Iterable[Values]) -> int:
        """Add runs of another ledger, all or none; those that are there already are passed over.

        Args:
            runs: as `exported` gives them.

        Returns:
            How many were new.

        Raises:
            LedgerError: the file is no ledger, is of a newer format, or cannot be written.
        """
        with writing(self.path) as connection:
            return rows.add(connection, runs)

    def exported(self, since: str = "", *, touch: bool = False) -> Iterator[Values]:
        """Yield all runs, oldest first.

        Args:
            since: time of the oldest one, as `moment` gives it.
            touch: whether a file of an older format may be brought to the present one; it is read as it is otherwise.
        """
        yield from self._read(f"FROM runs WHERE runs.at >= ? {_ORDER}", since, touch=touch)

    def last(self, source: str) -> list[Run]:
        """Give the last outcome of each test and listing of the pages about a source, in the order of their lines."""
        return _by_line({run.node_id: run for run in self.latest(source=source)})

    def last_by_page(self, page: str) -> list[Run]:
        """Give the last outcome of each test and listing of a page."""
        return _by_line({run.node_id: run for run in self.latest(page=page)})

    def last_by_machine(self, *, page: str | None = None, source: str | None = None) -> list[Run]:
        """Give the last outcome of each test and listing on each class of hardware: of a page, of a source, or of everything."""
        runs = self.latest(page=page, source=source)
        return _by_line({(run.node_id, hardware_class(run.machine)): run for run in runs})

    def latest(self, *, page: str | None = None, source: str | None = None, under: str | None = None) -> list[Run]:
        """Give the last run of each test and listing under each setting (hardware class, versions), oldest first.

        Args:
            page: only of this page.
            source: only of pages about this source.
            under: only under this setting.
        """
        given = {"page": page, "source": source, "setting": under}
        wanted = {column: value for column, value in given.items() if value is not None}
        where = " AND ".join(f"latest.{column} = {rows.NUMBER}" for column in wanted) or "1"
        query = f"FROM latest JOIN runs ON runs.id = {_LATEST} WHERE {where} {_ORDER}"
        return self._runs(query, *map(rows.digest, wanted.values()))

    def history(self, node_id: str) -> list[Run]:
        """Give all runs of a test or listing, oldest first."""
        query = f"FROM runs WHERE runs.node = {rows.NUMBER} {_ORDER}"
        return self._runs(query, rows.digest(node_id))

    def gone(self) -> dict[str, Gone]:
        """Give what no hardware finds on its page any more, by page, as far as runs of whole pages tell it.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        return gone(self.path)

    def times(self, outcomes: Iterable[Outcome], beginning: str, without: str, ending: str) -> list[_Last]:
        """Give the node id, the source, the listing, the files beside it and the time of last runs, one for each that a test had.

        Runs on GPUs that were only declared are left out. A time that is not known is empty.

        Args:
            outcomes: ways to end; only runs that ended so are asked for,
            beginning: and those whose reason begins so,
            without: unless it holds this.
            ending: runs whose reason ends so are left out, however they ended.
        """
        ends = [rows.digest(outcome) for outcome in outcomes]
        reasons = "SELECT id FROM texts WHERE substr(text, 1, ?) = ? AND instr(text, ?) = 0"
        pretended = "SELECT id FROM texts WHERE text LIKE 'CPU%; declared: %' AND text NOT LIKE '%; declared: no GPUs'"
        unreal = "SELECT id FROM texts WHERE substr(text, -?) = ?"
        query = (
            "SELECT node.text, source.text, listing.text, found.modules, found.at "  # noqa: S608 - question marks
            "FROM (SELECT node, source, listing, modules, "
            f"max(CASE WHEN at <= {rows.AHEAD} THEN at ELSE '' END) AS at FROM runs WHERE (outcome IN "
            f"({', '.join([rows.NUMBER] * len(ends))}) OR reason IN ({reasons})) "
            f"AND machine NOT IN ({pretended}) AND reason NOT IN ({unreal}) GROUP BY node, source, listing, modules) AS found "
            "JOIN texts AS node ON node.id = found.node JOIN texts AS source ON source.id = found.source "
            "JOIN texts AS listing ON listing.id = found.listing"
        )
        if not is_there(self.path):
            return []
        with reading(self.path) as connection:
            found = connection.execute(query, (*ends, len(beginning), beginning, without, len(ending), ending)).fetchall()
            texts = rows.Texts(connection)
            lists = {modules for *_, modules, _ in found}
            texts.load(lists)
            texts.load_modules(lists)
            return [(node, source, listing, texts.modules(modules), at) for node, source, listing, modules, at in found]

    def _runs(self, query: str, *arguments: object) -> list[Run]:
        try:
            return [run_of(values) for values in self._read(query, *arguments)]
        except ValueError as error:
            what = f"it holds a run that this rankbook cannot read ({error})"
            raise LedgerError(what, where=self.path, right="use the rankbook that wrote it") from error

    def _read(self, query: str, *arguments: object, touch: bool = True) -> Iterator[Values]:
        if is_there(self.path):
            with reading(self.path, touch=touch) as connection:
                yield from rows.read(connection, query, arguments)


_Last = tuple[str, str, str, Mapping[str, str], str]
"""Of the last run of a test: its node id, its source, its listing, the SHA-256 of each file beside it, and its time."""


def _by_line(runs: Mapping[object, Run]) -> list[Run]:
    return sorted(runs.values(), key=lambda run: (run.line, run.node_id))
