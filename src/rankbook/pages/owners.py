"""What the templates of the pages on owners see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from markupsafe import Markup
from msgspec import Struct

from rankbook.anchors import Anchor, in_order, of_owners
from rankbook.pages.contents import page_of_suite
from rankbook.pages.folders import FileRow
from rankbook.pages.hardware import by_gpus, read
from rankbook.pages.indexes import Part, Section
from rankbook.pages.matrix import Counted, Matrix, added, matrix
from rankbook.pages.places import Places
from rankbook.pages.text import code, markdown, url
from rankbook.report import plural

_FIRST = page_of_suite("suite-owners")
NOBODY = ""
"""Owner of a file with tests that names none."""
_NOT_NAMED = "No owner"

Owned = Mapping[tuple[str, str], FileRow]
"""Rows of files by owner and path; a file with several owners is there for each."""


class Spot(NamedTuple):
    """Where the files of an owner are listed."""

    page: str
    anchor: Anchor


class OwnersView(Struct, frozen=True):
    """A page on owners as its template sees it."""

    owners: Matrix | None = None
    """All owners; None on a further page."""
    sections: tuple[Section, ...] = ()
    """The files of each."""
    parts: tuple[tuple[str, tuple[Part, ...]], ...] = ()
    """Pages that list the files, when they are too many for this one."""
    part: Part | None = None
    """Which of these pages it is; None for the first page."""
    named_by: Markup = Markup()
    """What names them, as a clause."""


def owner_of(name: str) -> str:
    """Give the owner of a name of the index: an owner and a path, with a line end between them."""
    return name.partition("\n")[0]


def spots_of(pages: Mapping[str, Iterable[str]]) -> dict[str, Spot]:
    """Tell where the files of each owner are listed, the first place where there are several.

    Args:
        pages: names of the index, as `owner_of` takes them, by page.
    """
    found: dict[str, Spot] = {}
    for page, names in pages.items():
        for owner, anchor in of_owners({owner_of(name) for name in names}).items():
            found.setdefault(owner, Spot(page, anchor))
    return found


def owners_view(
    owned: Owned, sections: tuple[Section, ...], parts: tuple[tuple[str, tuple[Part, ...]], ...], places: Mapping[str, Spot]
) -> OwnersView:
    """Sum up who owns how much.

    Args:
        owned: the files.
        sections: the files of each owner, when they stand on this page.
        parts: pages that list them.
        places: by owner, where its files are listed, the first place where there are several.
    """
    by_owner: dict[str, list[FileRow]] = {}
    for owner, path in sorted(owned, key=lambda key: (not key[0], key)):
        by_owner.setdefault(owner, []).append(owned[owner, path])
    counted = [Counted(_linked(owner, places[owner]), added(row.hardware for row in rows), len(rows)) for owner, rows in by_owner.items()]
    named_by = sorted({row.codeowners for (owner, _), row in owned.items() if owner})
    return OwnersView(matrix(counted), sections, parts, named_by=markdown(", or else those whom ".join(map(_naming, named_by))))


def owner_sections(owned: Owned, names: Iterable[str], places: Places) -> Iterator[Section]:
    """Write the files of a page, under their owners.

    Args:
        owned: the files.
        names: owner and path of each, with a line end between them.
        places: the links of the page.
    """
    by_owner: dict[str, list[FileRow]] = {}
    for name in names:
        owner, _, path = name.partition("\n")
        by_owner.setdefault(owner, []).append(owned[owner, path])
    for owner in in_order(by_owner):
        lines = (f"- {places.path(row.path)}: {_told(row)}\n" for row in by_owner[owner])
        yield Section(_label(owner), markdown("".join(lines)))


def _naming(codeowners: str) -> str:
    return f"{code(codeowners)} names" if codeowners else "a file names in its line `# Owner(s):`"


def _linked(owner: str, place: Spot) -> Markup:
    """Write an owner as a link to a heading, or to the page where its anchor on the site is not the one on a forge."""
    page = "" if place.page == _FIRST else url(place.page)
    end = f"#{place.anchor.everywhere}" if place.anchor.everywhere else ""
    return markdown(f"[{_label(owner)}]({page}{end})") if page or end else _label(owner)


def _label(owner: str) -> Markup:
    return code(owner) if owner else markdown(_NOT_NAMED)


def _told(row: FileRow) -> str:
    """Say how many tests a file has, and what they need: of each class how many, unless there is but one."""
    classes = by_gpus([row.hardware])
    if not classes:
        return "no test"
    if len(classes) == 1:
        return f"{plural(row.tests, 'test')}, {read(next(iter(classes))).text}"
    return f"{plural(row.tests, 'test')}: " + ", ".join(f"{count:,} with {read(key).text}" for key, count in classes.items())
