"""What is known of the whole tree at once, small enough to be read at each run: which answers hang on which files."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any

from msgspec import Struct, field

from rankbook.analyse import Links, Mentions, called, targets
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
        self.links.add(survey)
        self.mentions.add(survey)
        for path in survey.reads:
            if path.startswith(PACKAGES):
                self._foreign.setdefault(path, set()).add(survey.path)
            else:
                self._readers.add(path, survey.path)
        for name in survey.asked:
            self._askers.add(name, survey.path)

    def exchange(self, before: Mapping[str, Survey], after: Mapping[str, Survey]) -> set[str]:
        """Take up new surveys in the place of old ones.

        Args:
            before: the gists of what files have said, by path; a new file has no entry.
            after: the gists of what they say; a file that is gone has no entry.

        Returns:
            The other files on whose pages this may show.
        """
        same = {path for path, survey in after.items() if before.get(path) == survey}
        before = {path: survey for path, survey in before.items() if path not in same}
        after = {path: survey for path, survey in after.items() if path not in same}
        surveys = (*before.values(), *after.values())
        touched = {target for survey in surveys for target in targets(survey)}
        users = {target: self.links.users(target) for target in touched}
        counts = {name: len(self.mentions.callers(name)) for survey in surveys for name in called(survey)}
        importing = self.mentions.importing
        for survey in before.values():
            self._remove(survey)
        for survey in after.values():
            self.add(survey)
        if self.mentions.importing != importing:
            return {path for path, brief in self.briefs.items() if brief.is_surveyed}
        found = set(touched)
        for target in touched:
            # What is related to a file hangs on how many use it: those that do may come in another order.
            if self.links.users(target) != users[target]:
                found |= self.links.related(target)
        for name in _names(before, after):
            callers = self.mentions.callers(name)
            if min(len(callers), counts[name]) <= RARE:
                found.update(callers)
        return found

    def _remove(self, survey: Survey) -> None:
        self.links.remove(survey)
        self.mentions.remove(survey)
        for path in survey.reads:
            if path.startswith(PACKAGES):
                self._foreign.get(path, set()).discard(survey.path)
            else:
                self._readers.discard(path, survey.path)
        for name in survey.asked:
            self._askers.discard(name, survey.path)

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


def _names(before: Mapping[str, Survey], after: Mapping[str, Survey]) -> set[str]:
    """Name the APIs by which files may be related in another way than before."""
    found: set[str] = set()
    for path in before.keys() | after.keys():
        old, new = before.get(path), after.get(path)
        names = [set() if each is None else called(each) for each in (old, new)]
        same = bool(old and old.tests) == bool(new and new.tests)
        found |= names[0] ^ names[1] if same else names[0] | names[1]
    return found
