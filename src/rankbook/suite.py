"""The pages about the whole suite: made anew where the rows that they show have changed."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from rankbook import pages
from rankbook.catalogue import Catalogue, Filed, Row
from rankbook.model import PublicName
from rankbook.pages import Book, Cut, FileRow, FindingCount, Page, Placed, Range, Shard
from rankbook.printing import Made, Press
from rankbook.store import Store

_Value = TypeVar("_Value")
_CONTENTS = "//contents"
"""In the place of a shard's key: the table of contents of an index."""
_Job = tuple[str, str]
"""Kind of index, and key of a shard or `_CONTENTS`."""


class _Index(Struct, frozen=True):
    """One of the long indexes."""

    row: type[Row]
    drawer: Callable[[str], str]
    """Names the drawer that a name's rows are in."""
    tokens: Callable[[str], Sequence[str]]
    """How a name is looked up."""
    cut: Callable[[Sequence[str], Sequence[int], Cut], tuple[list[Shard], list[Range]]]
    page: Callable[..., Page]
    contents: Callable[[Book, Sequence[Shard]], Iterator[Page]]


_COMMON = "test_"
"""What most names of tests begin with."""


def _drawer_of_word(name: str) -> str:
    found = pages.letters(name)
    return "".join(found[: len(_COMMON) + 3 if found[: len(_COMMON)] == _COMMON else 2])


_INDEXES: Mapping[str, _Index] = {
    "words": _Index(pages.WordRow, _drawer_of_word, pages.letters, pages.word_shards, pages.word_page, pages.word_contents),
    "apis": _Index(
        pages.ApiRow, lambda name: ".".join(pages.parts(name)[:3]), pages.parts, pages.api_shards, pages.api_page, pages.api_contents
    ),
}


class Suite:
    """What is known of the suite as a whole, and which of its pages are to be made.

    Args:
        store: what the last run kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._indexes = {name: Catalogue(store, name, index.row, index.drawer, index.tokens) for name, index in _INDEXES.items()}
        self._sizes: dict[str, Sequence[_Size]] = store.get("indexes", "shards") or {}
        """Of the pages of each index."""
        self._ranges: dict[str, Sequence[Range]] = store.get("indexes", "ranges") or {}
        """From which to cut each index again when its names have changed."""
        self._shards: dict[str, list[Shard]] = {}
        """Pages of the indexes some of whose pages are to be made."""
        self._rows: dict[str, FileRow] = store.get("indexes", "suite rows") or {}
        """Of files with tests or owners."""
        self._findings: dict[str, tuple[FindingCount, ...]] = store.get("indexes", "finding counts") or {}
        self._made: dict[str, tuple[str, ...]] = store.get("indexes", "suite pages") or {}
        """Pages by what made them: a kind, or a kind and a key."""
        self._are_rows_changed = False
        self._are_findings_changed = False

    def filed(self, name: str, rows: Sequence[Row]) -> Filed:
        """Pack the rows of a file as the index of a name keeps them."""
        return self._indexes[name].filed(rows)

    def take(self, made: Made) -> None:
        """Take up what is new of a file."""
        row = made.row
        if row is not None:
            self._set(made.path, row if row.tests or row.owners else None, made.findings or None, made.words, made.apis)

    def drop(self, path: str) -> None:
        """Forget a file that is gone."""
        self._set(path, None, None, {}, {})

    def mentioned(self) -> Collection[str]:
        """Name the APIs that tests use."""
        return self._indexes["apis"].counts.there

    def links(self, untested: Sequence[PublicName]) -> tuple[pages.SuiteLink, ...]:
        """Link to the pages that have something to say.

        Args:
            untested: public names that no test mentions.
        """
        rows = self._rows.values()
        there = {
            "suite-hardware": any(row.tests for row in rows),
            "suite-owners": any(row.owners for row in rows),
            "suite-marks": any(row.marks or row.decorators or row.asks for row in rows),
            "suite-words": self._has("words"),
            "suite-apis": self._has("apis"),
            "suite-untested": bool(untested),
            "suite-findings": bool(self._findings),
        }
        return tuple(pages.suite_links([kind for kind, is_there in there.items() if is_there]))

    def _has(self, name: str) -> bool:
        index = self._indexes[name]
        return bool(index.counts if index.changed else self._sizes.get(name))

    def print(
        self, press: Press, untested: Sequence[PublicName], offered: int, spread: Callable[..., Iterator[Made]], *, anew: bool
    ) -> Iterator[Made]:
        """Make and write the pages that show something new.

        Args:
            press: what pages are made from.
            untested: public names that no test mentions.
            offered: number of all public names.
            spread: applies a function to jobs, in several processes when they are many.
            anew: whether to make all of them.

        Returns:
            What became of them, with the pages that were made in their place before.
        """
        book, unlisted = press.book, press.unlisted
        if anew or self._are_rows_changed:
            yield self._told("suite-rows", press.put(pages.suite_pages(book, self._rows)))
        if anew or self._are_findings_changed:
            counts = (count for path in sorted(self._findings) for count in self._findings[path])
            yield self._told("suite-findings", press.put(pages.finding_pages(book, counts, unlisted)))
        yield self._told("suite-untested", press.put(pages.untested_pages(book, untested, offered, unlisted)))

        def make(jobs: Sequence[_Job]) -> list[Made]:
            return [Made(f"{name}/{key}", press.put(self._pages(press, name, key))) for name, key in jobs]

        jobs, left = self._jobs(anew=anew)
        for made in spread(make, jobs):
            yield self._told(made.path, made.placed)
        for group in left:
            yield self._told(group, ())

    def keep(self) -> None:
        """Leave for the next run what is known."""
        for index in self._indexes.values():
            index.keep()
        kept = {
            "suite rows": (self._are_rows_changed, self._rows),
            "finding counts": (self._are_findings_changed, self._findings),
            "shards": (
                any(index.changed for index in self._indexes.values()),
                {**self._sizes, **{name: _sizes(shards) for name, shards in self._shards.items()}},
            ),
            "ranges": (any(index.changed for index in self._indexes.values()), self._ranges),
            "suite pages": (True, self._made),
        }
        for key, (is_changed, value) in kept.items():
            if is_changed:
                self._store.put("indexes", key, pickle.dumps(value, pickle.HIGHEST_PROTOCOL))

    def _set(
        self,
        path: str,
        row: FileRow | None,
        findings: tuple[FindingCount, ...] | None,
        words: Filed,
        apis: Filed,
    ) -> None:
        self._are_rows_changed |= _set(self._rows, path, row)
        self._are_findings_changed |= _set(self._findings, path, findings)
        self._indexes["words"].put(path, words)
        self._indexes["apis"].put(path, apis)

    def _jobs(self, *, anew: bool) -> tuple[list[_Job], list[str]]:
        """Name the pages of the long indexes that are to be made, and what made pages before and does so no more."""
        jobs: list[_Job] = []
        left: list[str] = []
        for name, index in self._indexes.items():
            if not (anew or index.changed):
                continue
            counts = index.counts
            shards = before = _shards(counts.names, self._sizes.get(name, ()))
            old = {shard.key: shard for shard in before}
            if index.changed:
                cut = Cut(self._ranges.get(name, ()), counts.settle())
                shards, self._ranges[name] = _INDEXES[name].cut(counts.names, counts.numbers, cut)
            jobs += [
                (name, shard.key) for shard in shards if anew or old.get(shard.key) != shard or not index.changed.isdisjoint(shard.names)
            ]
            if anew or [*old.values()] != shards:
                jobs.append((name, _CONTENTS))
            left += [f"{name}/{key}" for key in old.keys() - {shard.key for shard in shards}]
            self._shards[name] = shards
        return jobs, sorted(left)

    def _pages(self, press: Press, name: str, key: str) -> Iterable[Page]:
        index, shards = _INDEXES[name], self._shards[name]
        if key == _CONTENTS:
            return index.contents(press.book, shards)
        shard = next(each for each in shards if each.key == key)
        return [index.page(press.book, shard, self._indexes[name].rows(shard.names), press.unlisted)]

    def _told(self, group: str, placed: tuple[Placed, ...]) -> Made:
        before, now = self._made.get(group, ()), tuple([page.path for page in placed])
        _set(self._made, group, now or None)
        return Made(group, placed, left=tuple(sorted(set(before) - set(now))))


_Size = tuple[str, int, int]
"""Key of a shard, and numbers of its names and of their rows."""


def _sizes(shards: Iterable[Shard]) -> list[_Size]:
    return [(shard.key, len(shard.names), shard.rows) for shard in shards]


def _shards(names: Sequence[str], sizes: Iterable[_Size]) -> list[Shard]:
    """Give the shards again that have these sizes."""
    found = []
    start = 0
    for key, number, rows in sizes:
        found.append(Shard(key, tuple(names[start : start + number]), rows))
        start += number
    return found


def _set(table: dict[str, _Value], key: str, value: _Value | None) -> bool:
    """Set or delete an entry; tell whether that changed it."""
    if table.get(key) == value:
        return False
    if value is None:
        del table[key]
    else:
        table[key] = value
    return True
