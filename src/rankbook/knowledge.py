"""What is known of the whole tree at once, small enough to be read at each run: which answers hang on which files."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

from msgspec import Struct, field

from rankbook.analyse import Links, Mentions, called, told_anew
from rankbook.analyse.relations import RARE
from rankbook.groups import Groups
from rankbook.model import PACKAGES, Survey
from rankbook.sheaf import Sheaf
from rankbook.store import Store

_KEY = "knowledge"
"""Of all but the large tables; those are in drawers whose keys begin so."""


class Brief(Struct, frozen=True):
    """One file in a few words."""

    sha256: str
    title: str
    """What it would be called by itself."""
    is_python: bool
    is_surveyed: bool
    """Whether it may say something of other files."""
    is_listed: bool
    """Whether its page has a listing."""
    error: str = ""
    """Why it could not be parsed, after its line; empty when it could."""


class Knowledge(Struct):
    """The references between files, and what each answer was read from."""

    briefs: dict[str, Brief] = field(default_factory=dict)
    """By source path."""
    links: Links = field(default_factory=Links)
    mentions: Mentions = field(default_factory=Mentions)
    _foreign: dict[str, set[str]] = field(default_factory=dict)
    """Who has read a file of a package."""
    _readers: Groups = field(default_factory=Groups)
    """Who has read a file of the tree."""
    _askers: Groups = field(default_factory=Groups)

    @classmethod
    def kept(cls, store: Store) -> Knowledge:
        """Give what the last run has left; nothing when there was none.

        Args:
            store: where it is kept.
        """
        known = store.get("indexes", _KEY)
        if known is None:
            return cls()
        assert isinstance(known, cls)
        for name, sheaf in known._sheaves().items():
            sheaf.open(partial(_drawer, store, name))
        return known

    def keep(self, store: Store) -> None:
        """Leave it for the next run.

        Args:
            store: where it is kept.
        """
        for name, sheaf in self._sheaves().items():
            for number, values in sheaf.changed():
                store.put("indexes", _place(name, number), _packed(values) if values else None)
        store.put("indexes", _KEY, _packed(self))

    def foreign(self) -> list[str]:
        """Name the files of packages that answers were read from."""
        return sorted(path for path, readers in self._foreign.items() if readers and path not in self.briefs)

    def referring(self, path: str) -> set[str]:
        """Name the files that import a file, derive from its classes, or have an answer that was read from it."""
        return self.links.related(path).union(self._readers_of(path))

    def to_survey(self, changed: Iterable[str], appeared: Iterable[str]) -> set[str]:
        """Name the files whose survey may have become another.

        Args:
            changed: files that are new, gone or have other facts, and those of packages.
            appeared: those of them that are new or gone.
        """
        found: set[str] = set()
        for path in changed:
            found.update(self._readers_of(path))
        for path in appeared:
            folder, _, name = path.rpartition("/")
            if name in ("__init__.py", "conftest.py"):  # they say where imports and fixtures are looked for
                return set(self.briefs)
            found.update(self._askers.get(name.rpartition(".")[0]), self._askers.get(folder.rpartition("/")[2]))
        return found

    def add(self, survey: Survey) -> None:
        """Take up the gist of what a file says of which nothing was known."""
        self._take(survey.path, None, survey)

    def exchange(self, before: Mapping[str, Survey], after: Mapping[str, Survey]) -> set[str]:
        """Take up new surveys in the place of old ones.

        Args:
            before: the gists of what files have said, by path; a new file has no entry.
            after: the gists of what they say; a file that is gone has no entry.

        Returns:
            The other files on whose pages this may show.
        """
        changed = {path: (before.get(path), after.get(path)) for path in {**before, **after} if before.get(path) != after.get(path)}
        touched = {target for pair in changed.values() for target in told_anew(*pair)}
        users = {target: self.links.users(target) for target in touched}
        counts = {name: len(self.mentions.callers(name)) for name in _names(changed.values())}
        importing = self.mentions.importing
        for path, pair in changed.items():
            self._take(path, *pair)
        if self.mentions.importing != importing:
            return {path for path, brief in self.briefs.items() if brief.is_surveyed}
        found = set(touched)
        for target in touched:
            # What is related to a file hangs on how many use it: those that do may come in another order.
            if self.links.users(target) != users[target]:
                found |= self.links.related(target)
        for name, count in counts.items():
            callers = self.mentions.callers(name)
            if min(len(callers), count) <= RARE:
                found.update(callers)
        return found

    def _take(self, path: str, before: Survey | None, after: Survey | None) -> None:
        """Take up what a file says in the place of what it has said: tables are opened only where the two differ."""
        self.links.exchange(path, before, after)
        self.mentions.exchange(path, before, after)
        self._askers.exchange(path, *(frozenset() if survey is None else survey.asked for survey in (before, after)))
        own, foreign = zip(*(_read_by(survey) for survey in (before, after)), strict=True)
        self._readers.exchange(path, *own)
        for read in foreign[0] - foreign[1]:
            self._foreign.get(read, set()).discard(path)
        for read in foreign[1] - foreign[0]:
            self._foreign.setdefault(read, set()).add(path)

    def _readers_of(self, path: str) -> Collection[str]:
        return self._foreign.get(path, ()) if path.startswith(PACKAGES) else self._readers.get(path)

    def _sheaves(self) -> dict[str, Sheaf[Any]]:
        return {**self.links.sheaves(), **self.mentions.sheaves(), "readers": self._readers.held, "askers": self._askers.held}


def _place(name: str, number: int) -> str:
    return f"{_KEY} {name} {number}"


def _drawer(store: Store, name: str, number: int) -> Any:
    return store.get("indexes", _place(name, number))


def _packed(value: object) -> bytes:
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def _read_by(survey: Survey | None) -> tuple[AbstractSet[str], AbstractSet[str]]:
    """Name the files of the tree, and those of packages, that what a file says was read from."""
    reads = frozenset[str]() if survey is None else survey.reads
    foreign = {path for path in reads if path.startswith(PACKAGES)}
    return reads - foreign, foreign


def _names(changed: Iterable[tuple[Survey | None, Survey | None]]) -> set[str]:
    """Name the APIs by which files may be related in another way than before."""
    found: set[str] = set()
    for old, new in changed:
        before, after = called(old), called(new)
        same = bool(old and old.tests) == bool(new and new.tests)
        found |= before ^ after if same else before | after
    return found
