"""Rows of what each source holds, for the search of the book, put into shards in the site; an edit writes those that show it."""

from __future__ import annotations

import marshal
import os
import re
import sqlite3
import zlib
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from operator import methodcaller
from pathlib import Path
from secrets import token_hex
from typing import Any, Self
from urllib.parse import quote, unquote

from rankbook import freshness, pages
from rankbook.anchors import slug
from rankbook.config import Settings
from rankbook.counts import KEY, counted
from rankbook.freshness import Manifest
from rankbook.garbage import uncollected
from rankbook.model import Project
from rankbook.pages import FileRow
from rankbook.pages.marks_index import DECORATOR, MARK, first_cell, heading_of, marked
from rankbook.pages.shards import split
from rankbook.requirements import gpu_range, of_text
from rankbook.shelf import Place, Way, Written, kept_in, seen, token_of
from rankbook.site.search_rows import FOLDER, LONGEST, keyed, postings, row
from rankbook.site.search_shards import INDEX, index, shards
from rankbook.sought import Rows, one_line, rows_of
from rankbook.store import Store, StoreError

_GRAM = 4
"""Characters of a key that say in which drawer its rows are; a drawer is cut into shards."""
_DRAWER = 64_000
"""Bytes of a drawer's rows, with the path of each, that it has room for."""
_APIS, _SUITE, _FOLDERS = "//", "/", "///"
"""In the place of a source: rows that lead to the index of APIs, to the other pages about the whole suite, and to folders."""
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS sources (path BLOB PRIMARY KEY, rows BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS drawers (first BLOB PRIMARY KEY, postings BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS shards (file TEXT PRIMARY KEY, first BLOB NOT NULL, text BLOB NOT NULL)",
    "CREATE INDEX IF NOT EXISTS by_drawer ON shards (first)",
    "CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value BLOB NOT NULL)",
)
_NAMED = {MARK: "r", DECORATOR: "j"}
"""Kinds of row that have a name of their own, where others are requirements."""
_PAGE = re.compile(r"[?#]")
"""What ends the part of an address that names a page."""
_Places = Mapping[str, Rows]
"""Rows by what they lead to: a source, or `/` and the address of a page."""


def write(settings: Settings, manifest: Manifest | None, place: Place, way: Way, survey: Callable[[], Project] | None = None) -> Written:
    """Bring the shards of a site up to date.

    Args:
        settings: of the book.
        manifest: what the last run of `rankbook gen` has left; None when there is none that counts.
        place: folder of the shards.
        way: from a result to its page.
        survey: gives what is known of the sources when no run has kept it; without it no shard is written then.

    Returns:
        What became of them.
    """
    if manifest is not None:
        for file in (kept_in(settings), None):
            try:
                return _from_store(settings, manifest, place, way, file)
            except StoreError:
                break
            except (sqlite3.Error, EOFError, ValueError, TypeError, KeyError) as error:  # without what was kept, all is made anew
                if file is None:
                    raise
                if not isinstance(error, sqlite3.OperationalError):  # it is no use to anyone; else another process may be writing it
                    _discard(file)
    return Written() if survey is None else _from_sources(settings, survey(), place, way)


def _from_store(settings: Settings, manifest: Manifest, place: Place, way: Way, file: Path | None) -> Written:
    with _Kept(file, manifest.world) as kept:
        token = token_of(manifest, way)
        if kept.about("token", "") != token:
            with uncollected(), closing(Store(freshness.cache_folder(settings), manifest.world)) as store:
                news = _News(store, manifest, kept, way)
                kept.take(news.rows())
            kept.tell({"seen": news.seen, "pages": news.pages, "token": token})
        return _put(kept, place, way)


def _from_sources(settings: Settings, project: Project, place: Place, way: Way) -> Written:
    """Make all rows anew. The pages may be older than the sources: what has none is not found."""
    out = settings.below_root(settings.out)
    there = frozenset(way.below(path.relative_to(out).as_posix()) for path in out.rglob("*.md"))
    with _Kept(None, "") as kept, uncollected():
        surveys = project.surveys
        modules = {path: module for path, module in project.modules.items() if way.below(pages.page_of_file("file", path)) in there}
        rows = ((path, {path: rows_of(module, surveys[path])}) for path, module in modules.items())
        used = Counter(use.name for path in modules for use in surveys[path].uses if use.tests)
        counts = dict(sorted(used.items(), key=lambda each: (pages.parts(each[0]), each[0])))
        suite = {path: pages.file_row(module, surveys[path], 0) for path, module in modules.items()}
        others = ((_APIS, _api_rows(counts, way)), (_SUITE, _suite_rows(suite, way)), (_FOLDERS, _folder_rows(suite, way)))
        kept.take((*rows, *((key, _on(there, found)) for key, found in others)))
        return _put(kept, place, way)


def _on(there: Collection[str], found: _Places) -> _Places:
    """Leave out what leads to no page.

    Args:
        there: addresses of pages, below the folder of all pages.
        found: rows by address.
    """
    return {
        place: rows for place, rows in found.items() if unquote(_PAGE.split(place[1:], maxsplit=1)[0], errors="surrogateescape") in there
    }


# What is found


def _source_page(way: Way) -> str:
    """Give the address of the page of a source, below the folder of all pages, with `{}` for the path."""
    return way.below(pages.page_of_file("file", "{}"))


def _suite_page(way: Way, kind: str, key: str = "") -> str:
    """Give the address of a page about the whole suite, below the folder of all pages."""
    return way.below(pages.page_of_suite(kind, key))


def _api_rows(apis: Mapping[str, int], way: Way) -> dict[str, Rows]:
    """Give the rows that lead to the index of APIs, by the page's address.

    Args:
        apis: number of files by the name that their tests use, in the order of the index.
        way: to the pages.
    """
    found: dict[str, list[str]] = {}
    for shard in pages.api_shards([*apis], [*apis.values()])[0]:
        page = _suite_page(way, "suite-apis", shard.key)
        for name in shard.names:
            space = name.rpartition(".")[0]
            anchor = f"#{slug(space)}" if space else ""
            found.setdefault(f"/{page}{anchor}", []).append(row("a", apis[name], one_line(name)))
    return {page: tuple(sorted(rows)) for page, rows in found.items()}


def _suite_rows(suite: Mapping[str, FileRow], way: Way) -> dict[str, Rows]:
    """Give the rows that lead to the other pages about the whole suite, by the page's address.

    Args:
        suite: what folders tell of each file.
        way: to the pages.
    """
    found: dict[str, list[str]] = {}
    owners = Counter(owner for each in suite.values() for owner in each.owners)
    spots = pages.spots_of_owners(suite)
    for owner, files in owners.items():
        found.setdefault(f"/{way.below(spots[owner].page)}#{spots[owner].anchor.site}", []).append(row("w", files, one_line(owner)))
    tested = {path: each for path, each in suite.items() if each.tests}
    marks = marked(tested)
    for shard in pages.mark_shards(marks):
        page = _suite_page(way, "suite-marks", shard.key)
        for name in shard.names:
            kind, _, value = name.partition("\n")
            place = _row_of(page, heading_of(kind), first_cell(kind, value))
            letter, said = _NAMED.get(kind, "s"), value if kind in _NAMED else f"{kind} {value}"
            found.setdefault(place, []).append(row(letter, len(marks[name]), one_line(said)))
    for need, files in Counter(need for each in tested.values() for need in each.needs).items():
        asked = of_text(need)
        if asked.kind == "gpus" and (gpus := gpu_range(asked.value)) is not None:
            place = _row_of(_suite_page(way, "suite-hardware"), "Hardware", str(gpus[0] or "none"))
            found.setdefault(place, []).append(row("s", files, one_line(need)))
    return {page: tuple(sorted(rows)) for page, rows in found.items()}


def _folder_rows(paths: Iterable[str], way: Way) -> dict[str, Rows]:
    """Give the rows that lead to folders, by the page's address.

    Args:
        paths: all sources.
        way: to the pages.
    """
    found: dict[str, Rows] = {}
    for folder, files in Counter(above for path in paths for above in _folders(path)).items():
        address = quote(way.below(pages.page_of_folder("index", folder)).encode(errors="surrogateescape"))
        found[f"/{address}"] = (row(FOLDER, files, one_line(folder)[-LONGEST:]),)
    return found


def _folders(path: str) -> Iterator[str]:
    """Give the folders in which a source is, the innermost first, without the root."""
    while path := path.rpartition("/")[0]:
        yield path


def _row_of(page: str, heading: str, first: str) -> str:
    """Give the address of a row of a page about the whole suite: it is found by its first cell, below a heading."""
    return f"/{page}?row={quote(first, safe='')}#{slug(heading)}"


_OVERVIEWS: Mapping[str, tuple[tuple[str, str], Callable[[Any, Way], _Places]]] = {
    _APIS: (("apis", KEY), _api_rows),
    _SUITE: (("indexes", "suite rows"), _suite_rows),
}
"""Where the store has what rows are made from, and what makes them."""


# What has changed


_Seen = dict[str, int]
"""By source: a sum over its rows."""


class _News:
    """What may have other rows than at the last run.

    Args:
        store: what the last run of `rankbook gen` has left.
        manifest: the same.
        kept: what the last run of this has left.
        way: from a result to its page.

    Raises:
        StoreError: the store is not that of the manifest.
    """

    def __init__(self, store: Store, manifest: Manifest, kept: _Kept, way: Way) -> None:
        if store.generation != manifest.generation:
            raise StoreError("another run came between")
        self._store = store
        self._manifest = manifest
        self._kept = kept
        self._way = way
        self.seen: _Seen = {}
        """What to compare with at the next run, once all rows are given."""
        self.pages: dict[str, str] = {}
        """The same, of the pages about the whole suite."""

    def rows(self) -> Iterator[tuple[str, _Places]]:
        """Give the rows of all that may have other ones, one source after the other."""
        known: _Seen = self._kept.about("seen", {})
        yield from self._sources(known)
        yield from ((path, {}) for path in known.keys() - self.seen.keys())
        yield from self._overviews(self._kept.about("pages", {}))

    def _sources(self, known: _Seen) -> Iterator[tuple[str, _Places]]:
        sums = self._store.sums("sought")
        for path in self._manifest.sources.paths:
            self.seen[path] = sums.get(path, 0)
            if known.get(path) != self.seen[path]:
                rows = self._store.get("sought", path)
                yield path, {path: rows} if rows else {}

    def _overviews(self, known: Mapping[str, str]) -> Iterator[tuple[str, _Places]]:
        for place, (key, rows) in _OVERVIEWS.items():
            self.pages[place] = f"{self._way} {zlib.crc32(self._store.data(*key) or b'')}"
            if known.get(place) != self.pages[place]:
                table, name = key
                yield place, rows(counted(self._store, table) if name == KEY else self._store.get(*key) or {}, self._way)
        paths = self._manifest.sources.paths
        self.pages[_FOLDERS] = f"{self._way} {zlib.crc32(_key(' '.join(paths)))}"
        if known.get(_FOLDERS) != self.pages[_FOLDERS]:
            yield _FOLDERS, _folder_rows(paths, self._way)


# What is kept


class _Kept:
    """Rows and shards of one book, from one run to the next.

    Args:
        file: where they lie; None to keep nothing.
        world: what they depend on besides the sources.
    """

    def __init__(self, file: Path | None, world: str) -> None:
        self._connection = sqlite3.connect(file or ":memory:", timeout=10, isolation_level=None)
        try:
            self._open(world)
        except BaseException:
            self._connection.close()
            raise

    def _open(self, world: str) -> None:
        self._connection.execute("PRAGMA synchronous = OFF")  # a cache: after a crash of the machine it is made anew
        self._connection.execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA:
            self._connection.execute(statement)
        if self.about("world", "") != world:
            for table in ("sources", "drawers", "shards", "about"):
                self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - names of ours
            self.tell({"world": world})
        self.files: dict[str, tuple[str, int]] = self.about("files", {})
        """Start and size of each shard by the name of its file."""
        self.changed: set[str] = set()
        """Files whose shards are not those of the last run."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._connection.execute("ROLLBACK" if kind else "COMMIT")
        self._connection.close()

    def about(self, key: str, default: Any) -> Any:
        """Give what was told under a key."""
        found = self._connection.execute("SELECT value FROM about WHERE key = ?", (key,)).fetchone()
        return marshal.loads(found[0]) if found else default  # noqa: S302 - it lies in the user's own cache

    def tell(self, values: Mapping[str, Any]) -> None:
        """Keep values under their keys."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO about VALUES (?, ?)", ((key, marshal.dumps(value)) for key, value in values.items())
        )

    def text(self, file: str) -> bytes:
        """Give a shard."""
        return bytes(self._connection.execute("SELECT text FROM shards WHERE file = ?", (file,)).fetchone()[0])

    def take(self, changed: Iterable[tuple[str, _Places]]) -> None:
        """Take up the rows of sources in the place of those that they had."""
        removed, added = self._exchanged(changed)
        if not (removed or added.sizes):
            return
        grams = Counter(self.about("grams", {}))
        for posting in removed:
            grams[posting[:_GRAM]] -= len(posting)
        grams.update(added.sizes)
        grams = +grams
        old = self.about("firsts", [])
        new = [drawer.first for drawer in split(grams, str, most=_DRAWER, limit=_DRAWER)]
        self._refill(old, new, removed, added)
        self.tell({"grams": dict(grams), "firsts": new, "files": self.files})

    def _exchanged(self, changed: Iterable[tuple[str, _Places]]) -> tuple[set[str], _Added]:
        """Put the rows of sources in the place of the old ones; give the postings that go, and those that come."""
        removed: set[str] = set()
        added = _Added()
        for path, after in changed:
            found = self._connection.execute("SELECT rows FROM sources WHERE path = ?", (_key(path),)).fetchone()
            before = marshal.loads(found[0]) if found else {}  # noqa: S302 - as above
            if before == after:
                continue
            for place in before.keys() | after.keys():
                one, other = before.get(place, ()), after.get(place, ())
                removed.update(postings(place, set(one).difference(other)))
                added.put(place, set(other).difference(one) if one else other)
            if after:
                self._connection.execute("INSERT OR REPLACE INTO sources VALUES (?, ?)", (_key(path), marshal.dumps(dict(after))))
            else:
                self._connection.execute("DELETE FROM sources WHERE path = ?", (_key(path),))
        return removed, added

    def _refill(self, old: Sequence[str], new: Sequence[str], removed: set[str], added: _Added) -> None:
        """Put postings into their drawers, and cut anew the drawers that are not as they were."""
        ends = dict(_spans(old))
        touched = {max(0, bisect_right(new, posting) - 1) for posting in removed}
        left: dict[str, tuple[str | None, list[str]]] = {}
        for place, (first, end) in enumerate(_spans(new)):
            if place in touched or added.has(first if place else "", end) or ends.get(first, "") != end:
                left[first] = end, self._left(old, first if place else "", end, removed)
        self._empty([*(set(old) - set(new)), *left])
        for first, (end, held) in left.items():
            filled = sorted(held + added.between("" if first == new[0] else first, end))
            self._connection.execute("INSERT INTO drawers VALUES (?, ?)", (_key(first), marshal.dumps(filled)))
            for shard in shards(filled, first):
                self.files[shard.file] = shard.start, len(shard.text)
                self.changed.add(shard.file)
                self._connection.execute("INSERT INTO shards VALUES (?, ?, ?)", (shard.file, _key(first), shard.text))

    def _left(self, old: Sequence[str], first: str, end: str | None, removed: Collection[str]) -> list[str]:
        """Give the postings from one beginning to another that stay."""
        low = max(0, bisect_right(old, first) - 1)
        high = len(old) if end is None else bisect_left(old, end)
        kept: list[str] = []
        for key in old[low:high]:
            (data,) = self._connection.execute("SELECT postings FROM drawers WHERE first = ?", (_key(key),)).fetchone()
            held = marshal.loads(data)  # noqa: S302 - as above
            inside = held[bisect_left(held, first) : len(held) if end is None else bisect_left(held, end)]
            kept += [posting for posting in inside if posting not in removed] if removed else inside
        return kept

    def _empty(self, drawers: Sequence[str]) -> None:
        for first in drawers:
            for (file,) in self._connection.execute("SELECT file FROM shards WHERE first = ?", (_key(first),)).fetchall():
                del self.files[file]
        keys = [(_key(first),) for first in drawers]
        self._connection.executemany("DELETE FROM shards WHERE first = ?", keys)
        self._connection.executemany("DELETE FROM drawers WHERE first = ?", keys)


class _Added:
    """Postings that come, packed by how they begin: of hundreds of thousands only those of one drawer at a time are texts."""

    def __init__(self) -> None:
        self.sizes: Counter[str] = Counter()
        """Characters of the postings by how they begin, which is how drawers are cut."""
        self._packed: defaultdict[str, bytearray] = defaultdict(bytearray)
        self._places: list[str] = []
        self._order: list[str] = []

    def put(self, place: str, rows: Iterable[str]) -> None:
        """Take up the rows of a place."""
        number, size = f"\t{len(self._places)}\t", len(place) + 2
        self._places.append(place)
        sizes, packed = self.sizes, self._packed
        for key, each in keyed(place, rows):
            gram = key[:_GRAM] if len(key) >= _GRAM else f"{key}\t{place}"[:_GRAM]
            sizes[gram] += len(key) + size + len(each)
            packed[gram] += f"{key}{number}{each}\n".encode("utf-8", "surrogatepass")

    def has(self, first: str, end: str | None) -> bool:
        """Tell whether there are some from one beginning to another."""
        return bool(self._grams(first, end))

    def between(self, first: str, end: str | None) -> list[str]:
        """Give those from one beginning to another, in any order."""
        places = self._places
        text = b"".join(map(self._packed.__getitem__, self._grams(first, end))).decode("utf-8", "surrogatepass")
        parts = map(methodcaller("split", "\t"), text.split("\n")[:-1])
        return [f"{key}\t{places[int(number)]}\t{each}" for key, number, each in parts]

    def _grams(self, first: str, end: str | None) -> Sequence[str]:
        if len(self._order) != len(self._packed):
            self._order = sorted(self._packed)
        return self._order[bisect_left(self._order, first) : None if end is None else bisect_left(self._order, end)]


def _key(text: str) -> bytes:
    """Give a text as a key: a path may hold bytes that are no text."""
    return text.encode("utf-8", "surrogatepass")


def _spans(firsts: Sequence[str]) -> list[tuple[str, str | None]]:
    """Give where each drawer begins and where it ends."""
    return list(zip(firsts, [*firsts[1:], None], strict=True)) if firsts else []


def _discard(file: Path) -> None:
    with suppress(OSError):
        file.unlink(missing_ok=True)


# What is written


def _put(kept: _Kept, place: Place, way: Way) -> Written:
    """Write the shards that are not there as they should be, and remove what else is there."""
    folder = place.lies
    folder.mkdir(parents=True, exist_ok=True)
    known = kept.about("site", {}).get(os.fspath(place.path), {})
    there = seen(folder)
    texts = (
        (file, kept.text(file))
        for file in sorted(kept.files)
        if file in kept.changed or there.get(file) is None or there[file] != known.get(file)
    )
    written = sum(_replaced(folder / file, text) for file, text in texts)
    starts = sorted(start for start, _ in kept.files.values())
    top = index(starts, _source_page(way), way.base)
    written += _replaced(folder / INDEX, top)
    gone = there.keys() - kept.files.keys() - {INDEX}
    for file in gone:
        (folder / file).unlink(missing_ok=True)
    kept.tell({"site": {os.fspath(place.path): seen(folder)}})
    return Written(len(kept.files) + 1, written, len(gone), sum(size for _, size in kept.files.values()) + len(top))


def _replaced(file: Path, text: bytes) -> bool:
    """Write a file that holds something else, or a link in its place; tell whether it did."""
    with suppress(OSError):
        if not file.is_symlink() and file.read_bytes() == text:
            return False
    part = file.with_name(f".rankbook-{token_hex(8)}.tmp")
    try:
        with part.open("xb") as stream:
            stream.write(text)
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return True
