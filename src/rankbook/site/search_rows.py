"""What a search finds: one line of text for each test, API, keyword, file, folder, owner and requirement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from rankbook.site.search_words import keys, keys_of_values, nested, tells

LONGEST = 300
"""Characters of a name; a source may hold far longer ones."""
_ROOM = 60
"""Characters of the parameters in a row: a test with more of them has several."""
_VALUES = 16
"""Parameters by which a test is found."""


class Kind(NamedTuple):
    """A kind of result."""

    word: str
    """What a result of it is called."""
    group: str
    """Under which the search offers it."""


KINDS: Mapping[str, Kind] = {
    "t": Kind("test", "Test"),
    "a": Kind("API", "API"),
    "c": Kind("class", "Keyword"),
    "y": Kind("type", "Keyword"),
    "n": Kind("namespace", "Keyword"),
    "x": Kind("fixture", "Keyword"),
    "f": Kind("function", "Keyword"),
    "m": Kind("method", "Keyword"),
    "g": Kind("kernel", "Keyword"),
    "q": Kind("macro", "Keyword"),
    "b": Kind("target", "Keyword"),
    "p": Kind("file", "File"),
    "d": Kind("folder", "File"),
    "w": Kind("owner", "Owner"),
    "s": Kind("requirement", "Requirement"),
    "r": Kind("mark", "Keyword"),
    "j": Kind("decorator", "Keyword"),
    "o": Kind("option", "Keyword"),
    "k": Kind("constant", "Keyword"),
    "v": Kind("variable", "Keyword"),
    "e": Kind("environment variable", "Keyword"),
}
"""By the letter that begins a row, in the order in which equal results come."""
LETTERS: Mapping[str, str] = {kind.word: letter for letter, kind in KINDS.items()}
"""By word."""
_DOTTED = frozenset("acynfmxgqktovj")
"""Kinds whose names have what they stand in before them."""


def row(letter: str, number: int, name: str) -> str:
    """Write a row.

    Args:
        letter: a key of `KINDS`.
        number: line of its place, or, where it has many, how many files they are in; 0 for none.
        name: with what it stands in before it; on one line.
    """
    return f"{letter}{number or ''} {name[:LONGEST]}"


FILE = "p"
"""The row of a file, whose name is its place's."""
FOLDER = "d"
"""The kind of a folder, whose name is its path."""


def cases(test: str, values: Iterable[str]) -> Iterator[str]:
    """Write the rows by which a test is found by its parameters: `t21 test_sum[gloo|nccl|2]`; none when these tell nothing.

    Args:
        test: its row.
        values: what stands in the brackets of its ids, each once; each on one line.
    """
    known = [*values]
    telling = [each[:_ROOM] for each in known if tells(each)][:_VALUES]
    others = [each for each in known if not tells(each)]  # they are asked for beside one that tells something: `gloo-2`
    while telling:
        held = telling.pop(0)
        for waiting in (telling, others):
            while waiting and len(held) + len(waiting[0]) < _ROOM:
                held += f"|{waiting.pop(0)}"
        yield f"{test}[{held}]"


def postings(place: str, rows: Iterable[str]) -> Iterator[str]:
    """Give each row once for each key that it is found by, with key, place and row between tabs.

    Args:
        place: path of a source, or `/` and the address of a page.
        rows: those of the place.
    """
    return (f"{key}\t{place}\t{each}" for key, each in keyed(place, rows))


def keyed(place: str, rows: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Give each row once for each key that it is found by, after the key; neither holds a tab or the end of a line.

    Args:
        place: path of a source, or `/` and the address of a page.
        rows: those of the place.
    """
    folder, _, file = place.rpartition("/")
    stem = file.partition(".")[0]
    module = "" if place.startswith("/") else nested(folder.rpartition("/")[2] if stem == "__init__" else stem)
    around: dict[str, str] = {"": module}
    for each in rows:
        _head, _, name = each.partition(" ")
        if each == FILE:
            name, outer = file, nested(folder.rpartition("/")[2])
        elif each[0] == FOLDER:
            before, _, name = name.rpartition("/")
            outer = nested(before.replace("/", "."))
        elif each[0] == "t" and "[" in name:
            name, _, values = name.partition("[")
            telling = filter(tells, values.removesuffix("]").split("|"))
            yield from dict.fromkeys((key, each) for key in keys_of_values(telling, nested(name.replace("::", "."))))
            continue
        elif each[0] in _DOTTED:
            before, _, name = name.replace("::", ".").rpartition(".")
            if before not in around:
                around[before] = nested(before)
            outer = around[before]
        else:
            outer = ""
        for key in keys(name, outer):
            yield key, each
