"""The anchors of headings: those that the site gives them, and what forges, on which pages are read too, give the same headings."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

_NOT_A_WORD = re.compile(r"[^\w\s-]")
_SPACES = re.compile(r"[-\s]+")
_COUNTED = re.compile(r"^(.*)_([0-9]+)$")
_NOT_ON_FORGES = re.compile(r"[^\w -]")
_OWNERS, _NOBODY = "Owners", "No owner"
"""Title of a page on owners, and its heading for files that name none."""
_LONGEST = 240
"""Characters of a name that a heading shows."""


class Anchor(NamedTuple):
    """Where a heading of a page is."""

    site: str
    """On the site."""
    everywhere: str
    """On the site and on forges alike; empty where these differ, or may."""


@lru_cache(maxsize=4096)
def slug(text: str) -> str:
    """Make the anchor of a heading from its text, as Python-Markdown does."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    return _SPACES.sub("-", _NOT_A_WORD.sub("", plain).strip().lower())


def unique(anchor: str, taken: set[str]) -> str:
    """Give an anchor that is not taken yet, by a number at its end, and take it."""
    while anchor in taken or not anchor:
        match = _COUNTED.match(anchor)
        anchor = f"{match[1]}_{int(match[2]) + 1}" if match else f"{anchor}_1"
    taken.add(anchor)
    return anchor


def of_owners(owners: Iterable[str]) -> dict[str, Anchor]:
    """Give the anchors of a page that has a heading for each owner, below its title.

    Args:
        owners: in any order; the empty one stands for nobody.
    """
    names = in_order(owners)
    headings = [_OWNERS, *(shown(name) or _NOBODY for name in names)]
    taken, slugs = set[str](), Counter(map(slug, headings))
    here = [unique(slug(heading), taken) for heading in headings]
    pairs = zip(headings, here, _on_forges(headings), strict=True)
    found = [Anchor(site, site if site == forge and slugs[slug(heading)] == 1 else "") for heading, site, forge in pairs]
    return dict(zip(names, found[1:], strict=True))


def in_order(owners: Iterable[str]) -> list[str]:
    """Sort owners as such a page does: nobody comes last."""
    return sorted(owners, key=lambda owner: (not owner, owner.casefold(), owner))


def shown(name: str) -> str:
    """Write a name as such a page does."""
    line = " ".join(name.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST].rstrip()} …"


def _on_forges(headings: Iterable[str]) -> Iterator[str]:
    """Yield the anchors that GitHub gives to the headings of a page."""
    taken = Counter[str]()
    for heading in headings:
        first = anchor = _NOT_ON_FORGES.sub("", heading.lower()).replace(" ", "-")
        while anchor in taken:
            taken[first] += 1
            anchor = f"{first}-{taken[first]}"
        taken[anchor] = 0
        yield anchor
