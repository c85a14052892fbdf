"""Which machine runs how much of the suite, and what the smallest one that could run all of it must have."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from rankbook.pages.hardware import OTHER, UNKNOWN, is_elsewhere, order, read
from rankbook.requirements import Requirement

_KINDS = ("capability", "peer access", "device", "memory", "backend", "library", "package")
"""Kinds of requirement that say what a machine must have."""
_AT_LEAST = re.compile(r"(.*?)\s*>= ?(\d+(?:\.\d+)*)")
_OTHERWISE = re.compile(r"(.*?)\s*(?:<=?|==|!=) ?\d.*")
"""A requirement that the newest machine does not meet."""
_SIZE = re.compile(r"\D*?(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?(?:ytes)?\b.*", re.IGNORECASE)
_UNITS = {unit: 1024**power for power, unit in enumerate(("", "K", "M", "G", "T"))}
_SHOWN = 12
"""Values of a kind that are told."""


class Machine(Struct, frozen=True):
    """How far a machine goes."""

    gpus: int
    asking: int
    """Tests that need just so many GPUs."""
    enough: int
    """Tests for which it has GPUs enough, and not too many."""
    share: str
    """Percent of all tests."""


class Part(Struct, frozen=True):
    """What the smallest machine for the whole suite must have."""

    kind: str
    values: tuple[tuple[str, int], ...]
    """Each with the number of tests that need it, most tests first."""
    more: int
    """Number of values that are not told."""


def machines(hardware: Mapping[str, int]) -> tuple[Machine, ...]:
    """Tell for each number of GPUs that some test asks for how many tests have enough of them.

    Args:
        hardware: number of tests by class of hardware.
    """
    total = sum(hardware.values())
    steps = sorted({0, 1, *(read(key).least for key in hardware)} if total else ())
    return tuple(_machine(gpus, hardware, total) for gpus in steps)


def parts_of_smallest(hardware: Mapping[str, int], asks: Mapping[str, Counter[str]]) -> tuple[Part, ...]:
    """Tell what a machine needs to run all tests that do not ask for less.

    Args:
        hardware: number of tests by class of hardware.
        asks: number of tests by kind of requirement and by value.
    """
    numbered = [key for key in hardware if not read(key).word]
    most = max(numbered, key=order, default="0")
    gpus = [Part("gpus", ((read(most).text, hardware[most]),), 0)] if read(most).least else []
    parts = (Part(kind, _strictest(kind, asks[kind]), 0) for kind in _KINDS if asks.get(kind))
    return (*gpus, *(Part(part.kind, part.values[:_SHOWN], len(part.values[_SHOWN:])) for part in parts if part.values))


def asks_for_less(asks: Mapping[str, Counter[str]]) -> tuple[tuple[str, str, int], ...]:
    """Give the requirements that rule the newest or largest machine out, those of most tests: kind, value and number of tests."""
    found = [(kind, value, asks[kind][value]) for kind in _KINDS if kind in asks for value in sorted(asks[kind]) if _asks_for_less(value)]
    return tuple(sorted(found, key=lambda entry: -entry[2])[:_SHOWN])


def unnumbered(hardware: Mapping[str, int]) -> tuple[int, int]:
    """Count the tests that run on GPUs of which no number can be read, and those that run on other accelerators."""
    return hardware.get(UNKNOWN, 0), hardware.get(OTHER, 0)


def _machine(gpus: int, hardware: Mapping[str, int], total: int) -> Machine:
    asking = sum(count for key, count in hardware.items() if not read(key).word and read(key).least == gpus)
    enough = sum(count for key, count in hardware.items() if read(key).is_met(gpus))
    return Machine(gpus, asking, enough, f"{100 * enough // total} %")


def _strictest(kind: str, values: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Of several lower limits for one thing keep the highest; leave out upper limits, and what every machine meets."""
    highest: dict[str, tuple[tuple[float, ...], str]] = {}
    others = []
    for value in sorted(values):
        if limit := _limit(kind, value):
            highest[limit[0]] = max(highest.get(limit[0], ((), "")), (limit[1], value))
        elif not _is_met_anyway(value) and not is_elsewhere(Requirement(kind, value, "")):
            others.append(value)
    return tuple(_most_first({value: values[value] for value in [*others, *(value for _, value in highest.values())]}))


def _limit(kind: str, value: str) -> tuple[str, tuple[float, ...]] | None:
    """Read a lower limit: of what, and how much."""
    if kind == "memory" and (size := _SIZE.fullmatch(value)):
        return "", (float(size[1]) * _UNITS[size[2].upper()],)
    match = None if " or " in value else _AT_LEAST.fullmatch(value)
    return (match[1], tuple(map(int, match[2].split(".")))) if match else None


def _is_met_anyway(value: str) -> bool:
    """Whether a machine that has more than others meets a requirement, or none like it does."""
    choices = value.split(" or ")
    return "cpu" in choices or value.startswith("not ") or any(_AT_LEAST.fullmatch(choice) for choice in choices) or _asks_for_less(value)


def _asks_for_less(value: str) -> bool:
    return all(_OTHERWISE.fullmatch(choice) for choice in value.split(" or "))


def _most_first(values: Mapping[str, int]) -> Iterable[tuple[str, int]]:
    return sorted(values.items(), key=lambda entry: (-entry[1], entry[0]))
