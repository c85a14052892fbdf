"""What the tests of a file need: one row per thing, with all places that say so."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from rankbook.model import Test
from rankbook.requirements import FAILS, KINDS, Requirement


class Need(Struct, frozen=True):
    """One thing that the file needs, with all places that say so."""

    requirement: Requirement
    """The first of those that say the same."""
    evidence: tuple[str, ...]
    """What says so: decorators, marks, base classes, conditions."""
    calls: tuple[str, ...]
    """Calls that fail without it."""
    places: tuple[tuple[str, int], ...]
    """Paths and lines of the evidence."""
    tests: tuple[str, ...]
    """Node ids of the tests that need it."""
    every: bool
    """Whether it holds for all tests, or for the file as a whole."""


_AT_A_GLANCE = KINDS[: KINDS.index("platform") + 1]
"""Kinds of requirement that a reader asks for first: what a machine must have."""


_NOWHERE = "disabled"


class Glance(Struct, frozen=True):
    """What the tests of a file need, in one line."""

    common: tuple[Requirement, ...]
    """What all of them need of a machine."""
    special: tuple[Requirement, ...]
    """What some of them need of it beyond that."""
    others: int
    """Number of other conditions under which tests are left out."""
    disabled: int
    """Number of tests that run nowhere."""


def glance(needs: Sequence[Need]) -> Glance:
    """Sum up what a file needs.

    Args:
        needs: what it needs, in the order of a page.
    """
    told = [need for need in needs if need.requirement.kind in _AT_A_GLANCE]
    return Glance(
        common=tuple(need.requirement for need in told if need.every),
        special=tuple(need.requirement for need in told if not need.every),
        others=sum(need not in told and need.requirement.kind != _NOWHERE and bool(need.requirement.otherwise) for need in needs),
        disabled=len({test for need in needs if need.requirement.kind == _NOWHERE for test in need.tests}),
    )


def requirement_order(requirement: Requirement) -> tuple[int, Requirement]:
    """Sort requirements by kind, in the order of the table of kinds."""
    kind = requirement.kind
    return KINDS.index(kind) if kind in KINDS else len(KINDS), requirement


def needs_of(tests: tuple[Test, ...], requirements: tuple[Requirement, ...]) -> tuple[Need, ...]:
    """Gather what a file needs: what holds for all of its tests first.

    Args:
        tests: its tests, with their requirements.
        requirements: those of the file as a whole.
    """
    said: dict[tuple[str, str], list[Requirement]] = {}
    who: dict[tuple[str, str], list[str]] = {}
    for requirement in sorted({*requirements, *(need for test in tests for need in test.requirements)}, key=requirement_order):
        said.setdefault((requirement.kind, requirement.value), []).append(requirement)
    for test in tests:
        for key in dict.fromkeys((need.kind, need.value) for need in test.requirements):
            who.setdefault(key, []).append(test.id)
    needs = (_need(entries, tuple(who.get(key, ())), len(tests)) for key, entries in said.items())
    return tuple(sorted(needs, key=lambda need: not need.every))


def _need(entries: list[Requirement], tests: tuple[str, ...], all_tests: int) -> Need:
    return Need(
        requirement=entries[0],
        evidence=tuple(dict.fromkeys(entry.evidence for entry in entries if entry.otherwise != FAILS)),
        calls=tuple(dict.fromkeys(entry.evidence for entry in entries if entry.otherwise == FAILS)),
        places=tuple(dict.fromkeys((entry.path, entry.line) for entry in entries if entry.line)),
        tests=tests,
        every=len(tests) in (0, all_tests),
    )
