"""The pages about the whole suite: each a pure function of small rows, so that an edit makes anew only those whose rows have changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from rankbook.front_matter import Stamp
from rankbook.kinds import KINDS
from rankbook.model import PublicName
from rankbook.pages import packs
from rankbook.pages.apis import MOST as MOST_FILES
from rankbook.pages.apis import PAGE as API_ROWS
from rankbook.pages.apis import ApiRow, api_sections
from rankbook.pages.contents import TOPICS, page_of_suite
from rankbook.pages.findings_index import FindingCount, FindingsView, findings_view
from rankbook.pages.folders import FileRow
from rankbook.pages.hardware_views import HardwareView, file_matrix, hardware_view
from rankbook.pages.indexes import IndexView, Part, Section, parts_of
from rankbook.pages.marks_index import MOST as MOST_MARKED
from rankbook.pages.marks_index import Marked, heading_of, mark_sections, marked
from rankbook.pages.names import Links
from rankbook.pages.owners import NOBODY, Owned, OwnersView, Spot, owner_sections, owners_view, spots_of
from rankbook.pages.places import Places
from rankbook.pages.render import Book, Page, finished_page, page_title
from rankbook.pages.shards import LIMIT, UNCUT, Cut, Range, Shard, cut, folders, keys, letters, parts, split
from rankbook.pages.untested import untested_sections
from rankbook.pages.words import DEFINED, WordRow, letter_of, word_sections
from rankbook.pages.words import MOST as MOST_PLACES

_NOTHING: frozenset[str] = frozenset()
_SHORT = 40
"""Pages up to which a table of contents of an alphabet has no headings."""


def suite_kinds(rows: Iterable[FileRow], *, untested: bool, findings: bool) -> tuple[str, ...]:
    """Name the kinds of page about the whole suite that have something to say.

    Args:
        rows: one per file of the tree.
        untested: whether there are public names that no test mentions.
        findings: whether there are findings.
    """
    there = {"suite-untested": untested, "suite-findings": findings}
    for row in rows:
        there["suite-hardware"] = there.get("suite-hardware", False) or row.tests > 0
        there["suite-owners"] = there.get("suite-owners", False) or bool(row.owners)
        there["suite-marks"] = there.get("suite-marks", False) or bool(row.marks or row.decorators or row.asks)
        there["suite-words"] = there.get("suite-words", False) or any(kind in row.keywords for kind in DEFINED)
        there["suite-apis"] = there.get("suite-apis", False) or row.apis > 0
    return tuple(kind for kind in TOPICS if there.get(kind))


def suite_pages(book: Book, rows: Mapping[str, FileRow]) -> Iterator[Page]:
    """Make the pages on hardware, owners and marks.

    Args:
        book: what all pages have in common.
        rows: one per file of the tree, by path.

    Raises:
        TemplateError: a template is broken.
    """
    tested = {path: row for path, row in sorted(rows.items()) if row.tests}
    if tested:
        yield from _hardware_pages(book, tested)
        yield from _marks_pages(book, tested)
    if any(row.owners for row in rows.values()):
        yield from _owners_pages(book, rows)


def word_shards(words: Sequence[str], rows: Sequence[int], before: Cut = UNCUT) -> tuple[list[Shard], list[Range]]:
    """Part the index of words into pages; give too from what to go on when words have changed.

    Args:
        words: in their order.
        rows: their numbers of rows, at the same places.
        before: how it was parted before.
    """
    return cut(words, rows, letters, most=MOST_PLACES, before=before)


def word_contents(book: Book, shards: Sequence[Shard]) -> Iterator[Page]:
    """Make the table of contents of the index of words, itself of several pages in a large tree; none when the index is one page.

    Raises:
        TemplateError: a template is broken.
    """
    yield from _contents(book, "suite-words", shards, letter_of)


def word_page(book: Book, shard: Shard, rows: Iterable[WordRow], unlisted: frozenset[str] = _NOTHING) -> Page:
    """Make a page of the index of words.

    Args:
        book: what all pages have in common.
        shard: which page.
        rows: those of its names, in any order.
        unlisted: files whose pages have no listing.

    Raises:
        TemplateError: a template is broken.
    """
    links = _links("suite-words", shard.key, unlisted)
    return _filled(book, "suite-words", links, _rows("suite-words", shard, word_sections(rows, Places(links))))


def api_shards(names: Sequence[str], rows: Sequence[int], before: Cut = UNCUT) -> tuple[list[Shard], list[Range]]:
    """Part the index of APIs into pages; give too from what to go on when names have changed.

    Args:
        names: dotted names, in their order.
        rows: their numbers of rows, at the same places.
        before: how it was parted before.
    """
    return cut(names, rows, parts, most=MOST_FILES, limit=API_ROWS, before=before)


def api_contents(book: Book, shards: Sequence[Shard]) -> Iterator[Page]:
    """Make the table of contents of the index of APIs, itself of several pages in a large tree; none when the index is one page.

    Raises:
        TemplateError: a template is broken.
    """
    yield from _contents(book, "suite-apis", shards, lambda name: name.partition(".")[0])


def api_page(book: Book, shard: Shard, rows: Iterable[ApiRow], unlisted: frozenset[str] = _NOTHING) -> Page:
    """Make a page of the index of APIs.

    Args:
        book: what all pages have in common.
        shard: which page.
        rows: those of its names, in any order.
        unlisted: files whose pages have no listing.

    Raises:
        TemplateError: a template is broken.
    """
    links = _links("suite-apis", shard.key, unlisted)
    return _filled(book, "suite-apis", links, _rows("suite-apis", shard, api_sections(rows, Places(links))))


def untested_pages(book: Book, names: Collection[PublicName], offered: int, unlisted: frozenset[str] = _NOTHING) -> Iterator[Page]:
    """Make the pages on the public names that no test mentions; none when there is no such name.

    Args:
        book: what all pages have in common.
        names: the names, in any order.
        offered: number of all public names.
        unlisted: files whose pages have no listing.

    Raises:
        TemplateError: a template is broken.
    """
    by_name: dict[str, list[PublicName]] = {}
    for public in names:
        by_name.setdefault(public.name, []).append(public)
    shards = split({name: len(found) for name, found in by_name.items()}, parts)
    yield from _contents(book, "suite-untested", shards, lambda name: name.rpartition(".")[0] or name, offered)
    for shard in shards:
        rows = [public for name in shard.names for public in by_name[name]]
        links = _links("suite-untested", shard.key, unlisted)
        view = _rows("suite-untested", shard, untested_sections(rows, Places(links)), 0 if shard.key else offered)
        yield _filled(book, "suite-untested", links, view)


def finding_pages(book: Book, counts: Iterable[FindingCount], unlisted: frozenset[str] = _NOTHING) -> Iterator[Page]:
    """Make the page on what a linter says; none when it says nothing.

    Args:
        book: what all pages have in common.
        counts: those of all files, in any order.
        unlisted: files whose pages have no listing.

    Raises:
        TemplateError: a template is broken.
    """
    rows = list(counts)
    if rows:
        links = _links("suite-findings", "", unlisted)
        yield _filled(book, "suite-findings", links, findings_view(rows, Places(links), links))


def _hardware_pages(book: Book, rows: Mapping[str, FileRow]) -> Iterator[Page]:
    shards = split(dict.fromkeys(rows, 1), folders)
    links = _links("suite-hardware")
    only = next((shard for shard in shards if len(shards) == 1), None)
    files = file_matrix([rows[path] for path in only.names], Places(links)) if only else None
    yield _filled(book, "suite-hardware", links, hardware_view(rows.values(), links, parts_of("suite-hardware", shards), files))
    for shard in shards if only is None else ():
        links = _links("suite-hardware", shard.key)
        files = file_matrix([rows[path] for path in shard.names], Places(links))
        yield _filled(book, "suite-hardware", links, HardwareView(files=files, part=_named("suite-hardware", shard)))


def spots_of_owners(rows: Mapping[str, FileRow]) -> dict[str, Spot]:
    """Tell where the files of each owner are listed, the first place where there are several.

    Args:
        rows: one per file of the tree, by path.
    """
    return _spots(_owner_shards(_owned(rows)))


def mark_shards(found: Marked) -> list[Shard]:
    """Part the index of marks and requirements into pages.

    Args:
        found: all of them.
    """
    return split({name: len(files) for name, files in found.items()}, _kind_and_letters, most=MOST_MARKED)


def _owned(rows: Mapping[str, FileRow]) -> Owned:
    listed = ((path, row) for path, row in sorted(rows.items()) if row.owners or row.tests)
    return {(owner, path): row for path, row in listed for owner in row.owners or (NOBODY,)}


def _owner_shards(owned: Owned) -> list[Shard]:
    return split({f"{owner}\n{path}": 1 for owner, path in owned}, _owner_and_folders)


def _spots(shards: Sequence[Shard]) -> dict[str, Spot]:
    return spots_of({page_of_suite("suite-owners", shard.key): shard.names for shard in shards})


def _owners_pages(book: Book, rows: Mapping[str, FileRow]) -> Iterator[Page]:
    owned = _owned(rows)
    shards = _owner_shards(owned)
    links = _links("suite-owners")
    only = len(shards) == 1
    sections = tuple(owner_sections(owned, shards[0].names, Places(links))) if only else ()
    listed = () if only else (("", tuple(parts_of("suite-owners", shards))),)
    yield _filled(book, "suite-owners", links, owners_view(owned, sections, listed, _spots(shards)))
    for shard in () if only else shards:
        links = _links("suite-owners", shard.key)
        sections = tuple(owner_sections(owned, shard.names, Places(links)))
        yield _filled(book, "suite-owners", links, OwnersView(sections=sections, part=_named("suite-owners", shard)))


def _marks_pages(book: Book, rows: Mapping[str, FileRow]) -> Iterator[Page]:
    found = marked(rows)
    shards = mark_shards(found)
    yield from _contents(book, "suite-marks", shards, lambda name: heading_of(name.partition("\n")[0]))
    for shard in shards:
        links = _links("suite-marks", shard.key)
        yield _filled(book, "suite-marks", links, _rows("suite-marks", shard, mark_sections(found, shard.names, Places(links))))


def _owner_and_folders(name: str) -> tuple[str, ...]:
    owner, _, path = name.partition("\n")
    return (owner.casefold(), *path.split("/"))


def _kind_and_letters(name: str) -> tuple[str, ...]:
    kind, _, value = name.partition("\n")
    return (kind, *value.casefold())


def _contents(book: Book, kind: str, shards: Sequence[Shard], heading: Callable[[str], str], of: int = 0) -> Iterator[Page]:
    if len(shards) < 2:
        return
    groups = list(_by_heading(parts_of(kind, shards), heading if len(shards) > _SHORT else _none))
    names = sum(len(shard.names) for shard in shards)
    if len(shards) <= LIMIT:
        # Dotted names say where they belong: headings would only stretch the list.
        shown = groups if kind == "suite-words" else [("", tuple(parts_of(kind, shards)))]
        yield _filled(book, kind, _links(kind), IndexView(TOPICS[kind].title, names, parts=tuple(shown), of=of))
        return
    chapter_keys = keys([(name.casefold(), 0) for name, _ in groups])
    chapters = [Part(page_of_suite(kind, f"~{key}"), *_span(*group)) for key, group in zip(chapter_keys, groups, strict=True)]
    yield _filled(book, kind, _links(kind), IndexView(TOPICS[kind].title, names, parts=(("", tuple(chapters)),), of=of))
    for chapter, (_, same) in zip(chapters, groups, strict=True):
        view = IndexView(TOPICS[kind].title, chapter.names, parts=(("", same),), part=chapter)
        yield _filled(book, kind, Links(chapter.page, "", _NOTHING), view)


def _span(heading: str, same: Sequence[Part]) -> tuple[str, str, int, str]:
    return same[0].first, same[-1].last, sum(part.names for part in same), heading


def _none(_name: str) -> str:
    return ""


def _by_heading(found: Sequence[Part], heading: Callable[[str], str]) -> Iterator[tuple[str, tuple[Part, ...]]]:
    by_heading: dict[str, list[Part]] = {}
    for part in found:
        by_heading.setdefault(heading(part.first), []).append(part)
    for name, same in by_heading.items():
        yield name, tuple(same)


def _rows(kind: str, shard: Shard, sections: Iterable[Section], of: int = 0) -> IndexView:
    return IndexView(TOPICS[kind].title, len(shard.names), tuple(sections), part=_named(kind, shard), of=of)


def _links(kind: str, key: str = "", unlisted: frozenset[str] = _NOTHING) -> Links:
    return Links(page_of_suite(kind, key), "", unlisted)


def _named(kind: str, shard: Shard) -> Part | None:
    return parts_of(kind, [shard])[0] if shard.key else None


def _filled(book: Book, kind: str, links: Links, view: IndexView | HardwareView | OwnersView | FindingsView) -> Page:
    body = packs.fill(book.folders, kind, book=book, view=view, links=links, kinds=KINDS)
    part = None if isinstance(view, FindingsView) else view.part
    title = f"{TOPICS[kind].title}: {part.label}" if part else TOPICS[kind].title
    return finished_page(links.page, Stamp(kind, page_title(title), ""), body)
