"""Links of generated pages that lead nowhere; what each page offers and links to is kept, a page at a time, from one run to the next."""

from __future__ import annotations

import marshal
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple, Protocol

Target = tuple[str, int, tuple[str, ...]]
"""Path, last line, other anchors."""
Problem = tuple[str, str]
"""A sentence, and the path of the page or file that is not there; empty where it is, but not the place on it."""


class Facts(NamedTuple):
    """What others may link to on a page, and what it links to."""

    lines: int
    anchors: tuple[str, ...]
    targets: tuple[Target, ...]


class _Known(Protocol):
    def get(self, path: str, /) -> Facts | None: ...


def found_dead(
    file: Path, fresh: Mapping[str, Facts], there: Collection[str], files: Collection[str], *, anew: bool
) -> tuple[tuple[Problem, ...], bool]:
    """Say which links lead nowhere, and keep what was found for the next run.

    Args:
        file: in which it is kept; one that cannot be read is made anew.
        fresh: of the pages that this run has made.
        there: all generated pages.
        files: all files below the folder of all pages.
        anew: whether to follow all links, those too of pages that are as they were, and those that were there before.

    Returns:
        What is wrong with each, and whether the next run will find what it needs.
    """
    for place in (file, None):
        try:
            with closing(_opened(place)) as connection:
                return tuple(sorted(_dead(_KeptFacts(connection, fresh), fresh, there, files, anew=anew))), place is not None
        except (sqlite3.Error, OSError, EOFError, ValueError, TypeError) as error:  # without what was kept, only what is fresh is known
            if place is None:
                raise
            if not isinstance(error, sqlite3.OperationalError):  # it is no use to anyone; else another process may be writing it
                with suppress(OSError):
                    place.unlink(missing_ok=True)
    return (), False


def _dead(facts: _KeptFacts, fresh: Mapping[str, Facts], there: Collection[str], files: Collection[str], *, anew: bool) -> list[Problem]:
    anew = anew or any(has_lost(facts.before(path), found) for path, found in fresh.items())
    if anew:
        facts.load(there)
        found = list(dead(facts, files, {path: page.targets for path in facts.all() if (page := facts.get(path))}))
    else:  # no link that was there before has become dead
        found = list(dead(facts, files, {path: _new_targets(facts.before(path), page) for path, page in fresh.items()}))
    facts.keep()
    return found


def _new_targets(old: Facts | None, new: Facts) -> list[Target]:
    known = set(old.targets if old else ())
    return [target for target in new.targets if target not in known]


class _KeptFacts:
    """The facts of all generated pages, as the last run and this one know them.

    Args:
        connection: to what is kept.
        fresh: those that this run has found.
    """

    def __init__(self, connection: sqlite3.Connection, fresh: Mapping[str, Facts]) -> None:
        self._fresh = fresh
        self._known: dict[str, Facts | None] = {}
        self._connection = connection

    def get(self, path: str, /) -> Facts | None:
        """Give the facts of a page; None of one that has none."""
        return self._fresh.get(path) or self.before(path)

    def before(self, path: str) -> Facts | None:
        """Give what the last run knew of a page."""
        if path not in self._known:
            found = self._connection.execute("SELECT facts FROM pages WHERE path = ?", (_key(path),)).fetchone()
            self._known[path] = Facts(*marshal.loads(found[0])) if found else None  # noqa: S302 - it lies in the user's own cache
        return self._known[path]

    def load(self, there: Collection[str]) -> None:
        """Read all at once what the last run knew, and forget the pages that are gone.

        Args:
            there: pages that are generated now.
        """
        for key, facts in self._connection.execute("SELECT path, facts FROM pages"):
            path = key.decode("utf-8", "surrogatepass")
            self._known[path] = Facts(*marshal.loads(facts)) if path in there else None  # noqa: S302 - as above
        gone = [(_key(path),) for path, facts in self._known.items() if facts is None]
        self._connection.executemany("DELETE FROM pages WHERE path = ?", gone)

    def all(self) -> list[str]:
        """Name all pages of which something is known, after `load`."""
        return sorted(self._fresh.keys() | {path for path, facts in self._known.items() if facts is not None})

    def keep(self) -> None:
        """Leave all for the next run."""
        rows = ((_key(path), marshal.dumps(tuple(facts))) for path, facts in self._fresh.items())
        self._connection.executemany("INSERT OR REPLACE INTO pages VALUES (?, ?)", rows)
        self._connection.commit()


def has_lost(old: Facts | None, new: Facts) -> bool:
    """Tell whether a link to a page that led somewhere may lead nowhere now.

    Args:
        old: of the page as it was; None for a page that is new.
        new: of the page as it is.
    """
    return old is None or new.lines < old.lines or not set(new.anchors).issuperset(old.anchors)


def dead(facts: _Known, files: Collection[str], links: Mapping[str, Iterable[Target]]) -> Iterator[Problem]:
    """Say which links lead nowhere.

    Args:
        facts: of all generated pages.
        files: all files below the folder of all pages.
        links: those that are followed, by the page that they are on.
    """
    for path, targets in links.items():
        for target, line, others in targets:
            to = target or path
            there = facts.get(to)
            if there is None:
                if to not in files:
                    yield f"{path} links to {to}, which is not there", to
            elif line > there.lines:
                yield f"{path} links to line {line} of {to}, whose listing has {there.lines} lines", ""
            elif others and not set(others).issubset(there.anchors):
                yield f"{path} links to {to}#{min(set(others).difference(there.anchors))}, which is not there", ""


def _opened(file: Path | None) -> sqlite3.Connection:
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(file or ":memory:", timeout=10)
    try:
        connection.execute("PRAGMA synchronous = OFF")  # a cache: after a crash of the machine it is made anew
        connection.execute("CREATE TABLE IF NOT EXISTS pages (path BLOB PRIMARY KEY, facts BLOB NOT NULL) WITHOUT ROWID")
    except BaseException:
        connection.close()
        raise
    return connection


def _key(path: str) -> bytes:
    """Give a path as a key: it may hold bytes that are no text."""
    return path.encode("utf-8", "surrogatepass")
