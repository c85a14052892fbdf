"""What a search looks a name up by: its words run together, from each of them to the end.

`all_reduce`, `AllReduce` and `allreduce` are one and the same key, and so is an accented letter that is one character or two. The
browser (`assets/search.js`) reads names in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from unicodedata import normalize

_CAMEL = re.compile(r"([a-z0-9])(?=[A-Z])|([A-Z])(?=[A-Z][a-z])")
_BETWEEN = re.compile(r"[\x00-/:-`{-\x7f]+")
"""All of ASCII that is neither a digit nor a small letter; named this way it compiles in no time, which a range to U+FFFF does not."""
_NOT_BASIC = re.compile("[\U00010000-\U0010ffff\ud800-\udfff]")
"""Characters that Python and browsers put in another order."""
_SILENT = frozenset(("true", "false", "none"))
_LONGEST = 40
"""Characters of a key."""
_MOST = 10
"""Words of a name from which it is looked up."""
WHOLE, PART = "-", "."
"""What stands in a key behind a whole name, and behind a part of one; names come before parts."""
LAST = "~"
"""What stands there behind what no name may be missed for: it comes behind all names that begin with the same words."""


def words(name: str) -> list[str]:
    """Take a name apart: `NCCLAllReduce` and `nccl_all_reduce` are nccl, all, reduce."""
    if not name.isascii():
        name = normalize("NFC", name)
    if not name.islower():
        name = _CAMEL.sub(r"\1\2 ", name).lower()
    if not name.isascii():
        name = _NOT_BASIC.sub("\ufffd", name.replace("ß", "ss"))  # as its capitals are written
    return [word for word in _BETWEEN.split(name) if word]


def keys(name: str, around: str) -> Iterator[str]:
    """Give the keys by which a name is found.

    Args:
        name: without what it stands in.
        around: what it stands in, the nearest first, each with a dot before it: `.ring` for a method of `Ring`.
    """
    steps = words(name)
    separator = WHOLE
    for start in range(min(len(steps), _MOST)):
        if start and len(steps[start]) == 1:
            continue
        yield f"{''.join(steps[start:])[:_LONGEST]}{separator}{around[1:]}"[:_LONGEST]
        separator = PART


def keys_of_values(values: Iterable[str], around: str) -> Iterator[str]:
    """Give the keys by which a test is found by its parameters: from the beginning of each, and once from each other word that tells.

    Args:
        values: the parameters.
        around: the test and what it stands in, as `keys` takes it.
    """
    seen = set[str]()
    for value in values:
        steps = words(value)
        for start in range(min(len(steps), _MOST)):
            if start and (steps[start] in seen or not _is_telling(steps[start])):
                continue
            seen.add(steps[start])
            yield f"{''.join(steps[start:])[:_LONGEST]}{LAST}{around[1:]}"[:_LONGEST]


def tells(value: str) -> bool:
    """Whether somebody may look for a parameter: it holds a word, and more than yes, no or nothing, or it is a number of three digits."""
    steps = words(value)
    return any(map(_is_telling, steps)) or (len(steps) == 1 and steps[0].isdigit() and len(steps[0]) > 2)


def _is_telling(word: str) -> bool:
    return (len(word) > 2 or not word.isascii()) and not word.isdigit() and word not in _SILENT


def nested(outer: str) -> str:
    """Write what a name stands in as `keys` takes it: `Outer.Inner` is `.inner.outer`."""
    return "".join([f".{''.join(words(step))}" for step in reversed(outer.split("."))]) if outer else ""
