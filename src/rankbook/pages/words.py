"""The index of words from A to Z: what a tree defines, and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rankbook.kinds import KINDS
from rankbook.model import Module
from rankbook.pages.entries import alphabetical
from rankbook.pages.indexes import Section
from rankbook.pages.places import Places
from rankbook.pages.text import code, markdown

MOST = 20
"""Places of a word that the index lists."""
_USES = frozenset({"import", "base class", "decorator", "mark", "call", "key", "section", "directive"})
"""Kinds of keyword that are no definition, or too many to be looked up by."""
DEFINED = tuple(kind for kind in KINDS if kind not in _USES)
"""Kinds of keyword that the index lists."""


class WordRow(NamedTuple):
    """A word that a file defines: one row of the index of words."""

    word: str
    kind: str
    """A word of `kinds.KINDS`."""
    path: str
    line: int
    """The first that defines it so; 0 in a large tree, where each edit would move many of them."""


EXACT = 2000
"""Files of a tree up to which the index leads to lines; beyond it leads to files, whose keyword pages lead to lines."""


def word_rows(module: Module, *, exact: bool = True) -> tuple[WordRow, ...]:
    """Give the words that a file defines.

    Args:
        module: its facts.
        exact: whether to say on which lines.
    """
    path = module.source.path
    first: dict[tuple[str, str], int] = {}
    for keyword in module.keywords:
        if keyword.kind not in _USES:
            key = keyword.name, keyword.kind
            first[key] = min(keyword.line, first.get(key, keyword.line))
    return tuple(WordRow(word, kind, path, first[word, kind] if exact else 0) for word, kind in sorted(first))


def word_sections(rows: Iterable[WordRow], places: Places) -> Iterator[Section]:
    """Write the rows of one page of the index, under their first letters.

    Args:
        rows: in any order.
        places: the links of the page.
    """
    words: dict[str, list[WordRow]] = {}
    for row in rows:
        words.setdefault(row.word, []).append(row)
    by_letter: dict[str, list[str]] = {}
    for word in sorted(words, key=alphabetical):
        by_letter.setdefault(letter_of(word), []).append(_entry(word, words[word], places))
    for letter in sorted(by_letter, key=lambda letter: (letter == OTHER, letter)):
        yield Section(letter, markdown("".join(by_letter[letter])))


OTHER = "Other"
"""Heading of the words that no letter from A to Z begins."""


def letter_of(word: str) -> str:
    """Give the letter under which a word is looked up."""
    first = alphabetical(word)[0][:1].upper()
    return first if first.isascii() and first.isalpha() else OTHER


_ORDER = {kind: index for index, kind in enumerate(KINDS)}


def _entry(word: str, rows: list[WordRow], places: Places) -> str:
    rows.sort(key=lambda row: (_ORDER.get(row.kind, len(_ORDER)), row.path, row.line))
    by_kind: dict[str, list[str]] = {}
    near = places.among({row.path for row in rows[:MOST]})
    for row in rows[:MOST]:
        by_kind.setdefault(row.kind, []).append(near.line(row.path, row.line) if row.line else near.file(row.path))
    shown = "; ".join(f"{kind} {', '.join(links)}" for kind, links in by_kind.items())
    more = f" and {len(rows) - MOST:,} more" if len(rows) > MOST else ""
    return f"- {code(word)}: {shown}{more}\n"
