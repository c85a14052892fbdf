"""The tests of a file as a reader wants them: one row for each function, with the variants that are made of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from rankbook.model import Test
from rankbook.pages.needs import Need, requirement_order
from rankbook.pages.running import Selection
from rankbook.requirements import Requirement

_SHOWN = 6
"""Variants that are named in a row."""
_TOLD = 60
"""Characters by which an expression is found in the phrase of a family, which ends a long one with an ellipsis."""


class TestRow(Struct, frozen=True):
    """A test function as one class runs it."""

    __test__ = False

    tests: tuple[Test, ...]
    """Its variants; one test for a plain function."""
    needs: tuple[Requirement, ...]
    """What all of them need beyond what every test of the file needs."""
    some_need: tuple[Requirement, ...]
    """What only some of them need."""
    made_by: tuple[str, ...] = ()
    """Decorators and calls that make its variants, as written."""
    family: str = ""
    """What it stands for where only a run can tell the names of its tests, as a phrase."""
    alike: tuple[str, ...] = ()
    """Other functions of its class whose names hold its name, so that pytest's `-k` would run them too."""

    @property
    def first(self) -> Test:
        """The first of its tests."""
        return self.tests[0]

    @property
    def is_many(self) -> bool:
        """Whether it is made into several tests."""
        return len(self.tests) > 1

    @property
    def name(self) -> str:
        """What the row is called: the test, or the function of several."""
        return self.first.function if self.is_many else self.first.name

    @property
    def selection(self) -> Selection:
        """What pytest is told to run these tests and no others."""
        first = self.first
        if not (self.is_many or first.family):
            return Selection(first.id)
        class_name, function = class_of(first), first.function or first.name
        whole = f"{class_name}::{function}".removeprefix("::")
        if all(test.id.startswith(f"{whole}[") for test in self.tests):
            return Selection(whole)
        others = f" and not {_either(self.alike)}" if self.alike else ""
        return Selection(class_name, function + others)

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the first variants, without what all of them begin with."""
        return tuple(_distinct(test.name, self.name) for test in self.tests[:_SHOWN])

    @property
    def idle(self) -> tuple[Test, ...]:
        """Those of its tests that test nothing."""
        return tuple(test for test in self.tests if test.idle)

    @property
    def more(self) -> int:
        """Number of variants that are not named."""
        return max(0, len(self.tests) - _SHOWN)


class TestTable(Struct, frozen=True):
    """The rows of one class; what all of several have in common stands above them and not in each."""

    __test__ = False

    rows: tuple[TestRow, ...]
    needs: tuple[Requirement, ...] = ()
    """What each of them needs beyond what every test of the file needs."""
    made_by: tuple[str, ...] = ()
    """What makes the variants of each of them."""
    family: str = ""
    """What each of them stands for."""


def table_of(rows: tuple[TestRow, ...]) -> TestTable:
    """Say once what the rows of a class have in common."""
    if len(rows) < 2:
        return TestTable(rows)
    common = set.intersection(*({(need.kind, need.value) for need in row.needs} for row in rows))
    made_by = set.intersection(*(set(row.made_by) for row in rows))
    family = rows[0].family if len({row.family for row in rows}) == 1 else ""
    if not (common or made_by or family):
        return TestTable(rows)
    own = (
        replace(
            row,
            needs=tuple(need for need in row.needs if (need.kind, need.value) not in common),
            made_by=tuple(each for each in row.made_by if each not in made_by),
            family="" if family else row.family,
        )
        for row in rows
    )
    first = rows[0]
    needs = tuple(need for need in first.needs if (need.kind, need.value) in common)
    return TestTable(tuple(own), needs, tuple(each for each in first.made_by if each in made_by), family)


def class_of(test: Test) -> str:
    """Give the class of a test as its node id has it; empty for a function."""
    return test.id[: len(test.id) - len(test.name)].removesuffix("::")


def rows_by_class(tests: Iterable[Test], needs: Iterable[Need]) -> Mapping[str, tuple[TestRow, ...]]:
    """Gather the tests of a file in rows, by class.

    Args:
        tests: its tests.
        needs: what the file needs.
    """
    common = {(need.requirement.kind, need.requirement.value) for need in needs if need.every}
    found: dict[str, dict[tuple[str, str, int], list[Test]]] = {}
    for test in tests:
        found.setdefault(class_of(test), {}).setdefault((test.function or test.name, test.path, test.line), []).append(test)
    return {name: tuple(_rows(rows.values(), common)) for name, rows in found.items()}


def _rows(groups: Collection[list[Test]], common: set[tuple[str, str]]) -> Iterator[TestRow]:
    functions = sorted({tests[0].function or tests[0].name for tests in groups})
    for tests in groups:
        row = _row(tests, common)
        several = row.is_many or row.first.family
        own = tests[0].function or tests[0].name
        yield replace(row, alike=tuple(each for each in functions if own in each and each != own)) if several else row


def _row(tests: list[Test], common: set[tuple[str, str]]) -> TestRow:
    said: dict[tuple[str, str], Requirement] = {}
    counts: dict[tuple[str, str], int] = {}
    for test in tests:
        for key, need in {(need.kind, need.value): need for need in test.requirements}.items():
            if key not in common:
                said.setdefault(key, need)
                counts[key] = counts.get(key, 0) + 1
    every = [need for key, need in said.items() if counts[key] == len(tests)]
    some = [need for key, need in said.items() if counts[key] < len(tests)]
    family = tests[0].family
    made_by = tuple(each for each in tests[0].parameters if f"`{each[:_TOLD]}" not in family)
    return TestRow(tuple(tests), tuple(sorted(every, key=requirement_order)), tuple(sorted(some, key=requirement_order)), made_by, family)


def _either(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"({' or '.join(names)})"


def _distinct(name: str, function: str) -> str:
    """Give what tells a variant from the others: `x_1` of `test_a_x_1`, `gloo-2` of `test_a[gloo-2]`."""
    rest = name.removeprefix(function)
    if rest.startswith("[") and rest.endswith("]"):
        return rest[1:-1] or name
    return rest.lstrip("_") or name
