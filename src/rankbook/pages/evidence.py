"""What the seed layouts' section on patterns may say: names that stand in the source, with their lines."""

from __future__ import annotations

import re

from msgspec import Struct

from rankbook.model import Module


class Sign(Struct, frozen=True):
    """Keywords that are evidence for something."""

    title: str
    what: str
    """What the names are, in a few words."""
    kinds: tuple[str, ...]
    """Kinds of keyword to look at."""
    pattern: re.Pattern[str]
    """Names that count, from their first character on."""


class Note(Struct, frozen=True):
    """A sign that was found."""

    title: str
    what: str
    names: tuple[tuple[str, int], ...]
    """Names with the first line on which each stands."""


def _sign(title: str, what: str, kinds: str, pattern: str) -> Sign:
    return Sign(title, what, tuple(kinds.split(", ")), re.compile(rf"(?:{pattern})\Z"))


PATTERNS: tuple[Sign, ...] = (
    _sign("Object-Oriented Design", "classes", "class", r".+"),
    _sign("Test Cases", "tests", "test", r".+"),
    _sign("Context Managers", "protocol methods and decorators", "method, decorator", r"(?:.*\.)?(?:__a?enter__|(?:async)?contextmanager)"),
    _sign("Data Classes", "decorators", "decorator", r"(?:.*\.)?dataclass"),
    _sign("Properties", "decorators", "decorator", r"(?:.*\.)?(?:cached_)?property"),
    _sign("Neural Network", "modules used", "call, base class", r"(?:torch\.)?nn\..+"),
)
"""The signs that are looked for."""


def notes(module: Module) -> tuple[Note, ...]:
    """Find the evidence for patterns in the keywords of a file."""
    found = ((sign, _names(sign, module)) for sign in PATTERNS)
    return tuple(Note(sign.title, sign.what, names) for sign, names in found if names)


def _names(sign: Sign, module: Module) -> tuple[tuple[str, int], ...]:
    names: dict[str, int] = {}
    for keyword in module.keywords:
        if keyword.kind in sign.kinds and sign.pattern.match(keyword.name):
            names.setdefault(keyword.name, keyword.line)
    return tuple(names.items())
