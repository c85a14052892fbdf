"""What the tests of a file need, as the front matter of its page carries it: a line of JSON for each group of tests with the same needs.

The documents wing writes it, the proof wing reads it back before it starts a rank.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from os.path import commonprefix
from typing import Any

from rankbook.requirements import KINDS, OUTCOMES, Requirement

Needs = Mapping[str, tuple[Requirement, ...]]
"""What tests need, by node id within their file; an id that ends in `*` stands for several tests, whose ids begin so."""
ANY = "*"
_SHARED = 8
"""Characters that names must share at their start to be written as one list."""
_AFTER_FAMILY = ("", "[", "_")
"""How the id of one of several tests goes on after what they have in common."""
_DEFAULTS: list[Any] = ["skipped", "", []]
"""Of what follows kind and value."""


def write(needs: Needs) -> str:
    """Give a line for each group of tests that need the same, in the order of their first tests.

    Args:
        needs: of all tests, also of those that need nothing.
    """
    groups: dict[tuple[Requirement, ...], list[str]] = {}
    for test, wanted in needs.items():
        groups.setdefault(wanted, []).append(test)
    return "".join(f"{_line(wanted, tests)}\n" for wanted, tests in groups.items())


def _line(wanted: Iterable[Requirement], tests: Iterable[str]) -> str:
    names: dict[str, list[str]] = {}
    for test in tests:
        holder, name = _split(test)
        names.setdefault(holder, []).append(name)
    return json.dumps({"needs": [_packed(need) for need in wanted], "tests": {holder: _folded(sorted(names[holder])) for holder in names}})


def _folded(names: list[str]) -> list[Any]:
    """Write neighbours that begin alike as a list of what they share and how each goes on: `["test_shard_", "even", "odd"]`."""
    folded: list[Any] = []
    while names:
        shared, count = names[0], 1
        for name in names[1:]:
            common = commonprefix([shared, name])  # noqa: RUF071 - characters are what is meant
            if len(common) < _SHARED:
                break
            shared, count = common, count + 1
        folded.append(names[0] if count == 1 else [shared, *_folded([name.removeprefix(shared) for name in names[:count]])])
        names = names[count:]
    return folded


def _split(test: str) -> tuple[str, str]:
    """Split a node id into its classes and its test; a parameter may hold `::`."""
    head, bracket, parameters = test.partition("[")
    holder, _, name = head.rpartition("::")
    return holder, name + bracket + parameters


def _packed(need: Requirement) -> list[Any]:
    either = [[_packed(each) for each in alternative] for alternative in need.either]
    rest = [need.otherwise, need.evidence, either]
    while rest and rest[-1] == _DEFAULTS[len(rest) - 1]:
        rest.pop()
    return [need.kind, need.value, *rest]


def read(text: str) -> Needs:
    """Read back what `write` gave; empty for a text that is not wholly so, and for one that says two things of a test."""
    found: dict[str, tuple[Requirement, ...]] = {}
    try:
        for line in text.splitlines():
            group = json.loads(line)
            wanted = tuple(map(_unpacked, _list(group["needs"])))
            tests = list(names_of(group["tests"]))
            if len(set(tests)) < len(tests) or not found.keys().isdisjoint(tests):
                return {}
            found |= dict.fromkeys(tests, wanted)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return {}
    return found


def names_of(tests: Any) -> Iterator[str]:
    """Yield the node ids within their file of one group of tests.

    Args:
        tests: as a line has them.

    Raises:
        TypeError: they are not so.
        AttributeError: they are not so.
    """
    for holder, names in tests.items():
        for name in _unfolded(names):
            yield f"{holder}::{name}" if holder else name


def _unfolded(entries: Any) -> Iterator[str]:
    for entry in _list(entries):
        if isinstance(entry, str):
            yield entry
            continue
        shared, *rest = _list(entry)
        yield from (_text(shared) + name for name in _unfolded(rest))


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(value)
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _unpacked(entry: Any) -> Requirement:
    kind, value, *rest = _list(entry)
    otherwise, evidence, either = [*rest, *_DEFAULTS[len(rest) :]]
    if kind not in KINDS or otherwise not in OUTCOMES:
        raise ValueError(entry)
    alternatives = tuple(tuple(map(_unpacked, _list(alternative))) for alternative in _list(either))
    return Requirement(kind, _text(value), _text(evidence), otherwise=otherwise, either=alternatives)


def of_test(needs: Needs, test: str) -> tuple[Requirement, ...]:
    """Give what a test needs; empty when nothing is said of it, or when more than one entry that says something may stand for it.

    Args:
        needs: of the tests of its file.
        test: its node id within the file, as pytest has collected it.
    """
    if test in needs:
        return needs[test]
    families = [
        wanted for family, wanted in needs.items() if wanted and family.endswith(ANY) and is_of_family(test, family.removesuffix(ANY))
    ]
    return families[0] if len(families) == 1 else ()


def is_of_family(test: str, common: str) -> bool:
    """Tell whether a node id is one of those that begin alike: `A::test_b[x]` and `A::test_b_x` for `A::test_b`."""
    return test.startswith(common) and test[len(common) : len(common) + 1] in _AFTER_FAMILY
