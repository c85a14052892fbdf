"""The names of a page's listings: unique on the page, and the same after lines are inserted above them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rankbook.listings.options import is_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rankbook.listing import Listing


def named(listings: Iterable[Listing]) -> tuple[Listing, ...]:
    """Give every listing of a page its name.

    Args:
        listings: the listings with their children; `name` holds the name that each would have if it were alone.

    Returns:
        The same listings with unique names: one that its fence names keeps that name, the others are counted: `usage`, `usage-2`.
    """
    listings = tuple(listings)
    every = list(_by_level(listings))
    names, problems = _chosen(every)
    counts: Counter[str] = Counter()
    used = set(names.values())
    for listing in every:
        if id(listing) not in names:
            names[id(listing)] = _free(listing.name, counts, used)
    return tuple(_renamed(listing, names, problems) for listing in listings)


def _by_level(listings: tuple[Listing, ...]) -> Iterator[Listing]:
    while listings:
        yield from listings
        listings = tuple(child for listing in listings for child in listing.children)


def _chosen(every: list[Listing]) -> tuple[dict[int, str], dict[int, str]]:
    names: dict[int, str] = {}
    problems: dict[int, str] = {}
    lines: dict[str, int] = {}
    for listing in every:
        name = listing.options.get("name", "")
        if not is_name(name):
            continue
        if name in lines:
            problems[id(listing)] = f"the name '{name}' is that of the listing at line {lines[name]} too; give each its own"
        else:
            lines[name] = listing.line
            names[id(listing)] = name
    return names, problems


def _free(base: str, counts: Counter[str], used: set[str]) -> str:
    while True:
        counts[base] += 1
        name = base if counts[base] == 1 else f"{base}-{counts[base]}"
        if name not in used:
            used.add(name)
            return name


def _renamed(listing: Listing, names: Mapping[int, str], problems: Mapping[int, str]) -> Listing:
    return replace(
        listing,
        name=names[id(listing)],
        problem=listing.problem or problems.get(id(listing)),
        children=tuple(_renamed(child, names, problems) for child in listing.children),
    )
