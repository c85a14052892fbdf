"""The comparison of what rankbook reads with what happens, test by test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from rankbook.machine import facts
from rankbook.model import Test
from rankbook.verdict import Machine, Verdict, verdict
from truth_collected import variables_for

KINDS = {
    "plain": "defined in the class or file that runs it",
    "inherited": "taken from a base class, mostly of another file",
    "parametrised": "made by torch's `parametrize` or a generator like it",
    "per device": "made by `instantiate_device_type_tests`",
    "pytest-parametrised": "made by `pytest.mark.parametrize` or a fixture's `params`",
    "conditional": "of these, defined only where a condition holds",
}
"""Kinds of test, and what they are; a conditional one is counted under its other kind too."""

RAN = ("passed", "degenerate", "failed", "xfailed", "error", "crashed", "hung")
"""Outcomes of a test that was not skipped."""
SKIPPED = ("skipped", "vacuous", "not run")
"""Outcomes of a test whose body nobody ran."""


@dataclass(frozen=True)
class Truth:
    """What pytest collects, and how the tests end."""

    collected: Mapping[str, Mapping[str, Any]]
    """By file: `ids`, `items`, and the `error` that keeps it from being collected."""
    outcomes: Mapping[str, Mapping[str, Mapping[str, Any]]]
    """By file and node id: `outcome`, `reason`."""


@dataclass(frozen=True, slots=True)
class Row:
    """One test as both sides see it."""

    path: str
    id: str
    kind: str
    """A word of `KINDS`."""
    test: Test | None
    """What rankbook reads; None for a miss."""
    said: Verdict | None
    """What rankbook says of it on this machine."""
    is_collected: bool
    is_covered: bool = False
    """Whether rankbook has an entry that stands for several tests, this one among them."""
    outcome: str = ""
    """How it really ended; empty when it was not run."""
    reason: str = ""

    @property
    def word(self) -> str:
        """What rankbook says: `runs`, `skipped`, `absent`, `unknown`; `missed` when it does not know the test."""
        return self.said.word if self.said else "missed"

    @property
    def is_conditional(self) -> bool:
        """Whether rankbook says that it is defined only where a condition holds."""
        return self.test is not None and any(need.otherwise == "absent" for need in self.test.requirements)

    @property
    def is_expected(self) -> bool:
        """Whether rankbook says that pytest collects it here."""
        return self.test is not None and not self.test.family and self.word != "absent"

    @property
    def really(self) -> str:
        """What happened: `runs`, `skipped`, `absent`; empty when it was not run."""
        if not self.is_collected:
            return "absent"
        return "runs" if self.outcome in RAN else "skipped" if self.outcome in SKIPPED else ""


@dataclass
class Comparison:
    """All tests of the files that can be collected."""

    rows: list[Row] = field(default_factory=list)
    families: list[Row] = field(default_factory=list)
    """Entries that stand for several tests."""
    not_collected: dict[str, str] = field(default_factory=dict)
    """Why a file cannot be collected, by file; its tests are left out."""
    files: int = 0
    """Files that were compared."""

    def tests(self, kind: str = "") -> dict[str, int]:
        """Count, for one kind or all: `expected`, `collected`, `both`, `covered`."""
        rows = [row for row in self.rows if kind in ("", row.kind) or (kind == "conditional" and row.is_conditional)]
        return {
            "expected": sum(row.is_expected for row in rows),
            "collected": sum(row.is_collected for row in rows),
            "both": sum(row.is_expected and row.is_collected for row in rows),
            "covered": sum(row.is_covered for row in rows),
        }

    @property
    def judged(self) -> list[Row]:
        """Tests of which it is known what happens: those that were run, and those that pytest does not collect."""
        return [row for row in self.rows if row.really]

    def verdicts(self) -> Counter[tuple[str, str]]:
        """Count what is said and what happened."""
        return Counter((row.word, row.really) for row in self.judged)

    def figures(self) -> dict[str, Any]:
        """Give all counts as plain data."""
        return {
            "files": self.files,
            "not_collected": self.not_collected,
            "tests": {kind or "all": self.tests(kind) for kind in ("", *KINDS)},
            "families": len(self.families),
            "verdicts": [{"said": said, "really": really, "tests": count} for (said, really), count in sorted(self.verdicts().items())],
        }


def compare(truth: Truth, inventory: Mapping[str, tuple[Test, ...]], machine: Machine | None = None) -> Comparison:
    """Compare file by file.

    Args:
        truth: what pytest collects and how the tests end.
        inventory: the tests that rankbook reads, by file.
        machine: the machine that the outcomes are from; this one when it is not given.
    """
    machine = machine or facts()
    found = Comparison()
    for path, collected in sorted(truth.collected.items()):
        if collected["error"].startswith("failed") or "ended with" in collected["error"]:
            found.not_collected[path] = collected["error"]
            continue
        found.files += 1
        tests = inventory.get(path, ())
        found.families += [Row(path, test.id, kind_of(test), test, None, is_collected=False) for test in tests if test.family]
        here = replace(machine, environment={**machine.environment, **variables_for(path)})
        found.rows += rows(path, collected, truth.outcomes.get(path, {}), tests, here)
    return found


def rows(path: str, collected: Mapping[str, Any], ended: Mapping[str, Any], tests: tuple[Test, ...], machine: Machine) -> Iterator[Row]:
    """Give the tests of one file, those that only one side knows too."""
    families = [test for test in tests if test.family]
    single = {test.id: test for test in tests if not test.family}
    for name in dict.fromkeys([*single, *collected["ids"]]):
        test = single.get(name)
        end = ended.get(name, {"outcome": "", "reason": ""})
        is_collected = name in collected["items"]
        yield Row(
            path,
            name,
            kind_of(test) if test else kind_of_item(name, collected["items"][name]),
            test,
            verdict(test.requirements, machine) if test else None,
            is_collected,
            test is None and any(stands_for(family, name, collected["items"][name]) for family in families),
            end["outcome"],
            end["reason"],
        )


def kind_of(test: Test) -> str:
    """Name the kind of a test by what rankbook says of it."""
    if test.id.endswith("]"):
        return "pytest-parametrised"
    if any(made.startswith("instantiate_device_type_tests") for made in test.parameters):
        return "per device"
    if test.case or (test.family and test.parameters):
        return "parametrised"
    return "inherited" if test.inherited_from else "plain"


def kind_of_item(name: str, item: Mapping[str, Any]) -> str:
    """Name the kind of a test by what pytest says of it."""
    if item["parametrised"]:
        return "pytest-parametrised"
    if item["function"] != name.rpartition("::")[2]:
        return "per device" if name.partition("::")[0].endswith(("CPU", "CUDA", "META", "XPU", "HPU")) else "parametrised"
    return "inherited" if item["elsewhere"] else "plain"


def stands_for(family: Test, name: str, item: Mapping[str, Any]) -> bool:
    """Tell whether an entry that stands for several tests covers one of them: the same class and the same function."""
    holder = name.rpartition("::")[0]
    return (family.class_name or "").replace(".", "::") in ("", holder) and (not family.function or family.function == item["function"])
