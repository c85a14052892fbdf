"""What the seed layouts' sections on patterns, performance and safety may say: names that stand in the source, with their lines."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rankbook.model import Module


@dataclass(frozen=True, slots=True)
class Sign:
    """Keywords that are evidence for something."""

    title: str
    what: str
    """What the names are, in a few words."""
    kinds: tuple[str, ...]
    """Kinds of keyword to look at."""
    pattern: re.Pattern[str]
    """Names that count, from their first character on."""


@dataclass(frozen=True, slots=True)
class Note:
    """A sign that was found."""

    title: str
    what: str
    names: tuple[tuple[str, int], ...]
    """Names with the first line on which each stands."""


def _sign(title: str, what: str, kinds: str, pattern: str) -> Sign:
    return Sign(title, what, tuple(kinds.split(", ")), re.compile(rf"(?:{pattern})\Z"))


TOPICS: dict[str, tuple[Sign, ...]] = {
    "patterns": (
        _sign("Object-Oriented Design", "classes", "class", r".+"),
        _sign("Test Cases", "tests", "test", r".+"),
        _sign(
            "Context Managers", "protocol methods and decorators", "method, decorator", r"(?:.*\.)?(?:__a?enter__|(?:async)?contextmanager)"
        ),
        _sign("Data Classes", "decorators", "decorator", r"(?:.*\.)?dataclass"),
        _sign("Properties", "decorators", "decorator", r"(?:.*\.)?(?:cached_)?property"),
        _sign("Neural Network", "modules used", "call, base class", r"(?:torch\.)?nn\..+"),
    ),
    "performance": (
        _sign("GPU", "calls", "call", r"torch\.(?:cuda|accelerator|xpu|get_device_module)\b.*"),
        _sign(
            "Parallel computing", "calls", "call", r"(?:torch\.distributed|torch\.multiprocessing|multiprocessing|threading|concurrent)\..+"
        ),
        _sign("Caching", "decorators", "decorator", r"(?:functools\.)?(?:lru_cache|cache|cached_property)"),
        _sign(
            "Time measured",
            "calls",
            "call",
            r"time\.(?:perf_counter|monotonic|process_time)(?:_ns)?|timeit\..+|torch\.utils\.benchmark\..+",
        ),
    ),
    "safety": (
        _sign("Runs text as code", "calls", "call", r"(?:builtins\.)?(?:eval|exec|compile)"),
        _sign("Unpickles data", "calls", "call", r"(?:pickle|cloudpickle|dill|marshal)\.loads?|(?:pickle\.)?Unpickler|torch\.load"),
        _sign("Starts processes", "calls", "call", r"subprocess\..+|os\.(?:system|popen|exec\w+|spawn\w+|fork)"),
        _sign("Calls native code by address", "calls", "call", r"ctypes\..+"),
        _sign("Opens connections", "calls", "call", r"(?:socket|urllib|requests|http)\..+"),
    ),
}
"""By topic: the signs that are looked for."""


def notes(topic: str, module: Module) -> tuple[Note, ...]:
    """Find the evidence for a topic in the keywords of a file."""
    found = ((sign, _names(sign, module)) for sign in TOPICS[topic])
    return tuple(Note(sign.title, sign.what, names) for sign, names in found if names)


def _names(sign: Sign, module: Module) -> tuple[tuple[str, int], ...]:
    names: dict[str, int] = {}
    for keyword in module.keywords:
        if keyword.kind in sign.kinds and sign.pattern.match(keyword.name):
            names.setdefault(keyword.name, keyword.line)
    return tuple(names.items())
