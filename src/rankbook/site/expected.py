"""Which tests a page has, and what they need, as its front matter says it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from rankbook import needs
from rankbook.requirements import Requirement
from rankbook.smallest import machine_for, owed_to

Words = tuple[str, ...]
"""What tests need, as their page says it."""


class Want(NamedTuple):
    """What tests need, with the machine that has it."""

    words: Words
    machine: str
    """The smallest one; empty where that cannot be told, and where nobody says what they need."""


@lru_cache(maxsize=32_768)
def counted(text: str, named: int = 0) -> tuple[tuple[Want, int, tuple[str, ...]], ...]:
    """Count the tests of a page by what they need, without more reading than that.

    Args:
        text: the needs of a stamp.
        named: how many of those that need the same are named, at most.
    """
    return tuple((_want(group), number, names) for group, number, names in _groups(text, named))


def _groups(text: str, named: int) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    try:
        for line in text.splitlines():
            found = json.loads(line)
            number = sum(_leaves(names) for names in found["tests"].values())
            yield json.dumps(found["needs"]), number, tuple(islice(needs.names_of(found["tests"]), named))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return


def _leaves(entries: list[Any]) -> int:
    return sum(1 if isinstance(entry, str) else _leaves(entry[1:]) for entry in entries)


@lru_cache(maxsize=4096)
def _want(group: str) -> Want:
    """Read what one group of tests needs."""
    return want_of(needs.read(f'{{"needs": {group}, "tests": {{"": ["test"]}}}}').get("test", ()))


@lru_cache(maxsize=4096)
def want_of(requirements: tuple[Requirement, ...]) -> Want:
    """Give needs as words, as the ledger has them, with the machine that has them; of one that runs everywhere, how many ranks it has."""
    wanted = owed_to(requirements)
    told = wanted or [need for need in requirements if need.kind == "world size"]
    return Want(tuple(dict.fromkeys(need.text for need in told)), machine_for(wanted))


def want_of_test(expected: needs.Needs, name: str, lacked: Words, *, is_skipped: bool) -> Want | None:
    """Give what a page says that one of its tests needs; None when others know more of it.

    Args:
        expected: all tests of the page.
        name: of the test, as pytest has collected it.
        lacked: what its last run says that it needs.
        is_skipped: whether that run found that it cannot run there.
    """
    found = needs.of_test(expected, name)
    if owed_to(found):
        return want_of(found)
    return None if lacked or is_skipped or not (found or name in expected) else want_of(found)


def tests(text: str) -> needs.Needs:
    """Give the tests of a page with all that they need, by node id within their file.

    Args:
        text: the needs of a stamp.
    """
    return needs.read(text)


def missing(expected: needs.Needs, seen: set[str]) -> dict[str, Want]:
    """Give the tests of a page that are not among those that were seen, with what they need.

    Args:
        expected: all tests of the page; one that ends in `*` stands for several.
        seen: node ids within the file, as pytest has collected them.
    """
    plain = {name.partition("[")[0] for name in seen}
    seen_families = _families(expected, seen - expected.keys())
    return {
        name: want_of(wanted) for name, wanted in expected.items() if name not in seen and name not in plain and name not in seen_families
    }


def stand_ins(expected: needs.Needs, seen: set[str]) -> set[str]:
    """Give the names that stand for several tests of which some were seen by names of their own.

    Args:
        expected: all tests of the page.
        seen: node ids within the file: those that pytest has collected, and those by which the page calls tests of a skipped module.
    """
    plain = {name.partition("[")[0] for name in seen if "[" in name}
    common = {name.removesuffix(needs.ANY) for name in expected if name.endswith(needs.ANY)}
    families = _families(expected, seen - expected.keys() - common)
    return seen & (plain | {family.removesuffix(needs.ANY) for family in families} - expected.keys())


def stood_for(expected: needs.Needs, seen: Collection[str]) -> dict[str, int]:
    """Count the tests that were seen by names of their own, by what stands for them on the page, where one stands for more than one.

    Args:
        expected: all tests of the page.
        seen: node ids within the file, as pytest has collected them.
    """
    unlisted = [name for name in seen if name not in expected]
    found = Counter(
        bare if (bare := name.partition("[")[0]) in expected else family
        for name, family in zip(unlisted, _owners(expected, unlisted), strict=True)
    )
    return {name: number for name, number in found.items() if name and number > 1}


def _families(expected: needs.Needs, seen: set[str]) -> set[str]:
    return set(_owners(expected, seen))


def _owners(expected: needs.Needs, seen: Iterable[str]) -> Iterator[str]:
    """Give the family of each test, empty for one that has none; of those whose names begin a test's name it belongs to the longest."""
    families = sorted((family for family in expected if family.endswith(needs.ANY)), key=len, reverse=True)
    for name in seen:
        yield next((family for family in families if needs.is_of_family(name, family.removesuffix(needs.ANY))), "")


def is_expected(expected: needs.Needs, name: str) -> bool:
    """Tell whether a page has a test, as far as it says."""
    bare = name.partition("[")[0]
    families = (family.removesuffix(needs.ANY) for family in expected if family.endswith(needs.ANY))
    return name in expected or bare in expected or any(needs.is_of_family(name, family) for family in families)
