"""What the front matter of a file's page says of the needs of its tests: what decides whether and on how many GPUs they run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from rankbook.model import Test
from rankbook.needs import ANY, Needs, is_of_family
from rankbook.requirements import HARNESSES, Requirement
from rankbook.verdict import DECIDED

_DESCRIBED = frozenset({"gpus", "world size", "backend", "device"})
"""Kinds of requirement that tell how many GPUs a test gains from, even where it runs without."""


def stamped_needs(tests: Sequence[Test]) -> Needs:
    """Gather what tests need, as far as a machine can be asked for it.

    Args:
        tests: of one file; of several that cannot be told apart nothing is said where they need different things.
    """
    found: dict[str, tuple[Requirement, ...]] = {}
    differing: set[str] = set()
    for test in tests:
        name, wanted = test.id + (ANY if test.family else ""), _telling(test.requirements)
        if found.setdefault(name, wanted) != wanted:
            differing.add(name)
    differing.update(name for name in found if name.endswith(ANY) and _covers_others(name, found))
    return {name: () if name in differing else wanted for name, wanted in found.items()}


def _covers_others(family: str, found: Needs) -> bool:
    """Tell whether other tests, which need other things, could be taken for ones of a family."""
    common = family.removesuffix(ANY)
    others = (name for name in found if name != family and found[name] != found[family])
    return any(is_of_family(name.removesuffix(ANY), common) for name in others)


def _telling(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """Keep what decides whether it is collected, and whether it runs then; of what decides nothing, what tells of GPUs."""
    kept = (need for need in requirements if need.kind in (DECIDED if need.otherwise else _DESCRIBED))
    return tuple(dict.fromkeys(map(_bare, kept)))


def _bare(need: Requirement) -> Requirement:
    """Leave out where it stands; what a harness asks for keeps the name of the harness, because some ask only some of their tests."""
    evidence = need.evidence if need.kind == "gpus" and need.evidence in HARNESSES else ""
    either = tuple(tuple(map(_bare, alternative)) for alternative in need.either)
    return replace(need, evidence=evidence, path="", line=0, either=either)
