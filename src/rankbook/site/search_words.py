"""What a search looks a name up by: its words run together, from each of them to the end.

`all_reduce`, `AllReduce` and `allreduce` are one and the same key. The browser (`assets/search.js`) reads names in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_CAMEL = re.compile(r"([a-z0-9])(?=[A-Z])|([A-Z])(?=[A-Z][a-z])")
_BETWEEN = re.compile(r"[\x00-/:-`{-\x7f]+")
"""All of ASCII that is neither a digit nor a small letter; named this way it compiles in no time, which a range to U+FFFF does not."""
_NOT_BASIC = re.compile("[\U00010000-\U0010ffff\ud800-\udfff]")
"""Characters that Python and browsers put in another order."""
_LONGEST = 40
"""Characters of a key."""
_MOST = 10
"""Words of a name from which it is looked up."""
WHOLE, PART = "-", "."
"""What stands in a key behind a whole name, and behind a part of one; names come before parts."""


def words(name: str) -> list[str]:
    """Take a name apart: `NCCLAllReduce` and `nccl_all_reduce` are nccl, all, reduce."""
    if not name.islower():
        name = _CAMEL.sub(r"\1\2 ", name).lower()
    if not name.isascii():
        name = _NOT_BASIC.sub("\ufffd", name)
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


def nested(outer: str) -> str:
    """Write what a name stands in as `keys` takes it: `Outer.Inner` is `.inner.outer`."""
    return "".join([f".{''.join(words(step))}" for step in reversed(outer.split("."))]) if outer else ""
