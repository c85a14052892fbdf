"""The listings of a page that a person made, found in its HTML by what they hold: each has its outcome before it, and an anchor.

How an engine marks a listing up differs with its extensions and their settings; what the listing holds is the same. Where a text stands as
often in the HTML as on the page, each is found; where it does not, which is which is not known, and none of them gets another's outcome.
"""

from __future__ import annotations

import html
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import quote

from rankbook.markers import ENGLISH
from rankbook.patterns import compiled

BLOCK = "<pre"
"""What every listing is in HTML."""
_PIECE = compiled(
    r"""
    <!--.*?-->
  | <(?P<raw>script|style|template|textarea)\b.*?</(?P=raw)\s*>
  | <(?P<close>/?)(?P<tag>div|pre|details|table|tbody|td|tr)(?P<attributes>(?:\s(?:"[^"]*"|'[^']*'|[^>"'])*+)?)>
    """,
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
_CLASS = re.compile(r"""\sclass=(?:"([^"]*)"|'([^']*)'|([^\s>]+))""", re.IGNORECASE)
_NUMBER = re.compile(r'<span (?:class="linenos?(?: special)?"[^>]*|style="[^"]*padding-right: 5px;[^"]*")>[^<]*</span>')
"""The number of a line, with classes or, where the site wants none, with Pygments' own style."""
_TAG = re.compile(r"<[^>]*>")
_AROUND = re.compile(r"highlight(?:table)?|codehilite(?:table)?|code|language-.*")
"""Classes of the elements that engines put around a listing."""
_CODE = re.compile(r"<code(?P<attributes>[^>]*)>", re.IGNORECASE)
_PART = re.compile(r'<span (?:class="(?!(?:w|twemoji)")|style=")')
"""What an engine tells apart in code; blanks and icons are in what is none, too."""
_NO_LISTING = frozenset({"doc-signature", "mkdocstrings-source", "jp-OutputArea", "jp-OutputArea-output"})
"""Classes of what plugins put around signatures, sources and outputs of notebooks, which are marked up as listings are."""
_MOST_TAG = 300
"""Characters of an element's beginning."""
_SHOWN = re.compile(r'<section class="rankbook-listing"[^>]*>.*?</section>\n', re.DOTALL)


class Fence(NamedTuple):
    """A fence of a page."""

    name: str
    """Of the listing that it is; empty when it is none that is run."""
    key: str
    """What it holds, as far as an engine leaves that as it is."""


class Unseen(NamedTuple):
    """A listing that stands in the HTML of a page alone."""

    word: str
    """Of its fence; empty where no element says it."""
    first: str
    """Its first line."""
    key: str


class _Block(NamedTuple):
    """A block of preformatted text."""

    start: int
    """Where it begins, with all that is around it."""
    inner: int
    """Where it begins by itself."""
    key: str
    is_moved: bool
    """Whether it stands in a footnote, which engines put at the end of the page."""
    language: str
    """The word of its fence; empty when its element does not say it."""
    is_highlighted: bool
    """Whether it has a language, or parts that an engine has told apart, and is no signature, source or output."""
    first: str
    """The first line of its text that is not blank."""


def key_of(text: str) -> str:
    """Give a text that is the same for the same listing, whatever an engine does to its blanks; empty for one that holds nothing."""
    plain = "".join(text.split())
    return blake2b(plain.encode(errors="replace"), digest_size=16).hexdigest() if plain else ""


def anchor_of(name: str) -> str:
    """Name the anchor of a listing; no heading's own holds a colon."""
    return f"rb-listing:{name}"


def link_to(name: str) -> str:
    """Write the end of an address that leads to a listing."""
    return f"#{quote(anchor_of(name), safe=':')}"


def shown_at(name: str, outcome: str, *, is_anchor: bool = True) -> str:
    """Write how a listing ended, as it stands before it.

    Args:
        name: of the listing.
        outcome: HTML, without a section in it.
        is_anchor: whether links lead to it by its name.
    """
    anchor = f' id="{html.escape(anchor_of(name))}"' if is_anchor else ""
    return f'<section class="rankbook-listing"{anchor} {ENGLISH} data-search-exclude>{outcome}</section>\n'


def without_outcomes(page: str) -> str:
    """Give the HTML of a page as it was before outcomes were put into it."""
    return _SHOWN.sub("", page)


def with_outcomes(page: str, fences: Sequence[Fence], outcomes: Mapping[str, str]) -> tuple[str, frozenset[str]]:
    """Put outcomes before the listings of a page.

    Args:
        page: HTML.
        fences: of the page, in its order.
        outcomes: HTML, by the names of listings.

    Returns:
        The page, and the names of the listings that have an anchor there.
    """
    places = [(start, name) for start, name in _found(page, fences) if name in outcomes]
    if not places:
        return page, frozenset()
    anchored = frozenset(name for _, name in places if not _has_anchor(page, name))
    pieces = [page[start:end] for start, end in pairwise([0, *(start for start, _ in places), len(page)])]
    parts = [shown_at(name, outcomes[name], is_anchor=name in anchored) for _, name in places]
    return pieces[0] + "".join(f"{part}{piece}" for part, piece in zip(parts, pieces[1:], strict=True)), anchored


def beside(page: str, keys: Collection[str]) -> Iterator[Unseen]:
    """Yield the highlighted listings in the HTML of a page that hold none of some texts.

    Args:
        page: HTML.
        keys: of the texts, as `key_of` gives them.
    """
    for block in _blocks(without_outcomes(page)):
        if block.is_highlighted and block.key and block.key not in keys:
            yield Unseen(block.language, block.first, block.key)


def _has_anchor(page: str, name: str) -> bool:
    return re.search(rf"""\sid=["']?{re.escape(html.escape(anchor_of(name)))}["'\s>]""", page) is not None


def _found(page: str, fences: Sequence[Fence]) -> list[tuple[int, str]]:
    """Give where listings begin, in the order of the HTML, with their names."""
    blocks = list(_blocks(page))
    shared = Counter(block.start for block in blocks)
    by_key: dict[str, list[_Block]] = defaultdict(list)
    for block in blocks:
        by_key[block.key].append(block)
    names: dict[str, list[str]] = defaultdict(list)
    for fence in fences:
        names[fence.key].append(fence.name)
    pairs = [
        (block.start if shared[block.start] == 1 else block.inner, name)
        for key, named in names.items()
        if key and len(named) == len(by_key[key]) and (len(named) == 1 or not any(block.is_moved for block in by_key[key]))
        for block, name in zip(by_key[key], named, strict=True)
    ]
    return sorted((start, name) for start, name in pairs if name)


def _blocks(page: str) -> Iterator[_Block]:
    """Yield the blocks of preformatted text, but for line numbers that stand beside one."""
    opened: list[tuple[str, Collection[str], int, int]] = []
    for piece in _PIECE.finditer(page):
        if piece["tag"] is None:
            continue
        tag = piece["tag"].lower()
        if not piece["close"]:
            opened.append((tag, _classes(piece["attributes"]), piece.start(), piece.end()))
            continue
        place = next((number for number in range(len(opened) - 1, -1, -1) if opened[number][0] == tag), None)
        if place is None:
            continue
        if tag == "pre" and not any({"linenos", "linenodiv"}.intersection(classes) for _, classes, *_ in opened[:place]):
            _, _, start, end = opened[place]
            text = html.unescape(_TAG.sub("", _NUMBER.sub("", page[end : piece.start()])))
            is_moved = any("footnote" in classes for _, classes, *_ in opened[:place])
            first = next((line for line in map(str.strip, text.splitlines()) if line), "")
            language = _language(opened[: place + 1], page[end : end + _MOST_TAG])
            is_other = any(_NO_LISTING.intersection(classes) for _, classes, *_ in opened[: place + 1])
            is_highlighted = not is_other and (bool(language) or _PART.search(_NUMBER.sub("", page[end : piece.start()])) is not None)
            yield _Block(_outermost(opened[: place + 1]), start, key_of(text), is_moved, language, is_highlighted, first)
        del opened[place:]


def _classes(attributes: str) -> Collection[str]:
    match = _CLASS.search(attributes)
    return (match[1] or match[2] or match[3] or "").split() if match else ()


def _language(opened: Sequence[tuple[str, Collection[str], int, int]], inner: str) -> str:
    """Give the word of a listing's fence, by the class of an element around it, or of the one that begins within it."""
    code = _CODE.match(inner)
    classes = [*(_classes(code["attributes"]) if code else ()), *(each for _, found, *_ in opened[::-1] for each in found)]
    return next((each.removeprefix("language-") for each in classes if each.startswith("language-")), "")


def _outermost(opened: Sequence[tuple[str, Collection[str], int, int]]) -> int:
    """Give where the outermost of the elements begins that an engine has put around the last one; in a grid where what is in that begins.

    What stands in a grid by itself is a cell of it.
    """
    found = inside = opened[-1][2]
    for tag, classes, start, end in reversed(opened[:-1]):
        is_around = any(map(_AROUND.fullmatch, classes))
        if tag == "pre" or (classes and not is_around):
            return inside if "grid" in classes and "cards" not in classes else found
        found, inside = (start, end) if is_around else (found, inside)
    return found
