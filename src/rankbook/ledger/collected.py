"""Which tests and listings are found no more: what the last whole run of a page left out, on each class of hardware that ran it."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from rankbook.ledger.rows import AHEAD, Texts
from rankbook.ledger.tables import is_there, reading, sound
from rankbook.ledger.values import hardware_class
from rankbook.listing import Gone

_PAGES = """SELECT page, min(number) < (SELECT count(DISTINCT node) FROM latest WHERE latest.page = found.page)
FROM (SELECT page, count(DISTINCT node) AS number FROM runs WHERE {} GROUP BY page, session, machine) AS found GROUP BY page"""
"""Pages, and whether any session has run less of one than there ever was: of others nothing is gone, and no more need be read."""
_RUNS = f"""SELECT session, machine, node, listing, test_case, max(CASE WHEN at <= {AHEAD} THEN at ELSE '' END) AS last
FROM runs WHERE page = :page AND node IN (SELECT node FROM latest WHERE page = :page) GROUP BY session, machine, node ORDER BY last"""  # noqa: S608
_AFTER = "node IN (SELECT node FROM latest WHERE page IN (SELECT DISTINCT page FROM runs WHERE id > ?))"


def gone(path: Path, after: int = 0) -> dict[str, Gone]:
    """Give what no hardware finds any more, by page.

    A session has run all of a page when it has as many runs of it as each of them says, under `page` of its case, that there are. On the
    hardware of the last such session what that did not run is gone, unless it was run since; where there was none, nothing is. Machines
    may find other tests than one another, as those with GPUs do: what one of them still finds is there. Nobody knows the tests of a module
    that skips itself, so a session in which the page has named them has not run all of it.

    Args:
        path: the ledger's file.
        after: only of pages that have a run with a higher number than this.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    if not is_there(path):
        return {}
    with sound(path), reading(path) as connection:
        query, arguments = (_PAGES.format(_AFTER), (after,)) if after else (_PAGES.format("1"), ())
        pages = connection.execute(query, arguments).fetchall()
        texts = Texts(connection)
        texts.load({page for page, _ in pages})
        return {texts.text(page): _gone(connection, texts, page) if is_varied else Gone() for page, is_varied in pages}


def _gone(connection: sqlite3.Connection, texts: Texts, page: int) -> Gone:
    nodes, listings = _left(_sittings(connection, texts, page).values())
    texts.load(nodes | listings)
    return Gone(frozenset(map(texts.text, nodes)), frozenset(map(texts.text, listings)))


class _Sitting(NamedTuple):
    """What one session ran of one page on one class of hardware, in the numbers of the ledger's texts."""

    listings: dict[int, int]
    """Of each node, the listing that was run."""
    sizes: set[int]
    """Tests and listings that the page had, as each run says it; 0 where one does not."""
    times: list[str]

    @property
    def at(self) -> str:
        """The time of its last run."""
        return max(self.times)

    @property
    def is_whole(self) -> bool:
        """Whether it ran all of the page."""
        return self.sizes == {len(self.listings)}


def _sittings(connection: sqlite3.Connection, texts: Texts, page: int) -> Mapping[str, Mapping[int, _Sitting]]:
    """Give what was run of a page, by class of hardware and session."""
    rows = connection.execute(_RUNS, {"page": page}).fetchall()
    texts.load({number for session, machine, _, _, case, _ in rows for number in (session, machine, case)})
    found: dict[str, dict[int, _Sitting]] = defaultdict(dict)
    for session, machine, node, listing, case, at in rows:
        sittings = found[hardware_class(texts.text(machine))]
        sitting = sittings.setdefault(session, _Sitting({}, set() if texts.text(session) else {0}, []))
        sitting.listings[node] = listing
        facts = texts.value(case) or {}
        is_collected = not facts.get("left_out") or facts.get("line") is not None  # one that pytest deselects is
        sitting.sizes.add(facts.get("page", 0) if is_collected else 0)
        sitting.times.append(at)
    return found


def _left(places: Iterable[Mapping[int, _Sitting]]) -> tuple[set[int], set[int]]:
    """Give the nodes that are found on none of these, and the listings in which they were looked for."""
    every: set[int] = set()
    held: set[int] = set()
    listings: set[int] = set()
    for sittings in places:
        every.update(*(sitting.listings for sitting in sittings.values()))
        whole = max((sitting for sitting in sittings.values() if sitting.is_whole), key=lambda sitting: sitting.at, default=None)
        since = [sitting for sitting in sittings.values() if whole is None or sitting.at >= whole.at]
        held.update(*(sitting.listings for sitting in since))
        listings.update(whole.listings.values() if whole is not None else ())
    return every - held, listings if every - held else set()
