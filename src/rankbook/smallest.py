"""The smallest machine that would run tests, from what they need."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from rankbook.requirements import LOST, Requirement, gpus_of

_AT_LEAST = re.compile(r"(.*?) ?>= (\d+(?:\.\d+)*)")
_SET = re.compile(r"(\w+) == (\S+)(?: or .*)?")
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?)", re.IGNORECASE)
_EVERYWHERE = frozenset({"cpu", "meta", "gloo", "fake", "threaded"})
"""Devices and backends that every machine has."""


def smallest_machine(requirements: Iterable[Requirement]) -> str:
    """Describe the smallest machine that would run tests.

    Args:
        requirements: of all of them; of one that can be met in several ways, the first way count.

    Returns:
        `4 GPUs with compute capability 9.0, package cupy`; `CPU` when they need no more than that; empty when no machine runs all of them,
        because one asks for fewer GPUs than another.
    """
    wanted = list(_plain(requirements))
    count = _fewest_gpus(wanted)
    if count is None:
        return ""
    parts = [_gpus(wanted, count) or "CPU"]
    for kind in ("backend", "device", "library", "package", "platform"):
        parts += [f"{kind} {name}" for name in _names([need.value for need in wanted if need.kind == kind])]
    parts += sorted({f"{match[1]}={match[2]}" for need in wanted if need.kind == "environment" and (match := _SET.fullmatch(need.value))})
    return ", ".join(parts)


def machine_for(requirements: Collection[Requirement]) -> str:
    """Describe the smallest machine that would run a test; empty for one that is disabled, which none would.

    Args:
        requirements: of the test.
    """
    return "" if any(need.kind == "disabled" for need in requirements) else smallest_machine(requirements)


def owed_to(requirements: Iterable[Requirement]) -> list[Requirement]:
    """Give those of some needs for which a test may owe a run: not what just describes it, nor what nearly every machine has.

    A module that leaves early where `torch.distributed` is not built in, or under a debugging build, does so almost nowhere.

    Args:
        requirements: of a test.
    """
    return [need for need in requirements if need.otherwise in LOST or (need.otherwise == "absent" and not _is_usual(need))]


def _is_usual(need: Requirement) -> bool:
    return need.value.startswith("not ") or (need.kind, need.value) == ("library", "torch.distributed")


def _plain(requirements: Iterable[Requirement]) -> Iterator[Requirement]:
    for need in requirements:
        if need.kind != "one of":
            yield need
        elif need.either:
            yield from _plain(need.either[0])


def _fewest_gpus(wanted: list[Requirement]) -> int | None:
    """Give the fewest GPUs that are enough; None when that is too many for some need."""
    ranges = [found for found in map(gpus_of, wanted) if found is not None]
    least = max((low for low, _ in ranges), default=0)
    return None if any(high is not None and high < least for _, high in ranges) else least


def _gpus(wanted: list[Requirement], count: int) -> str:
    """Describe its GPUs, or its memory where it has none; empty when it needs neither."""
    peers = {need.value for need in wanted if need.kind == "peer access"}
    limits = (_AT_LEAST.fullmatch(need.value) for need in wanted if need.kind == "capability")
    capability = max((match[2] for match in limits if match), key=_numbers, default="")
    memory = max((need.value for need in wanted if need.kind == "memory"), key=_bytes, default="")
    if not count:
        return f"CPU with memory {memory}" if memory else ""
    features = [f"compute capability {capability}"] if capability else []
    features += [f"peer access {value}".strip() for value in sorted(peers) if value or len(peers) == 1]
    features += [f"memory {memory}"] if memory else []
    return f"{count} GPU{'s' if count > 1 else ''}{' with ' if features else ''}{' and '.join(features)}"


def _names(values: list[str]) -> list[str]:
    """Give the first choice of each need, with the highest version of those that name one; nothing of what must not be there."""
    highest: dict[str, str] = {}
    for value in values:
        choices = value.split(" or ")
        name = choices[0]
        if name.startswith("not ") or name == "cuda" or not _EVERYWHERE.isdisjoint(choices) or re.search(r" (?:<=?|==|!=) ", name):
            continue
        match = _AT_LEAST.fullmatch(name)
        key, version = (match[1], match[2]) if match else (name, "")
        highest[key] = max(highest.get(key, ""), version, key=_numbers)
    return sorted(f"{name} >= {version}" if version else name for name, version in highest.items())


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split(".") if number)


def _bytes(value: str) -> float:
    match = _SIZE.match(value)
    return float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " ") if match else 0.0
