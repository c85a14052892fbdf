"""Public names that no test mentions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rankbook.model import PublicName
from rankbook.pages.indexes import Section
from rankbook.pages.places import Places
from rankbook.pages.text import code, markdown


def untested_sections(names: Iterable[PublicName], places: Places) -> Iterator[Section]:
    """Write the names of one page, under their modules and classes.

    Args:
        names: in any order.
        places: the links of the page.
    """
    spaces: dict[str, list[PublicName]] = {}
    for public in sorted(names, key=lambda public: (public.name.casefold(), public.name, public.path, public.line)):
        spaces.setdefault(public.name.rpartition(".")[0], []).append(public)
    for space in sorted(spaces, key=lambda space: (space.casefold().split("."), space)):
        rows = (_row(public, places) for public in spaces[space])
        yield Section(code(space) if space else "Modules as a whole", markdown("".join(rows)))


def _row(public: PublicName, places: Places) -> str:
    return f"- {code(public.name.rpartition('.')[2])}: {public.kind}, {places.line(public.path, public.line)}\n"
