"""The ledger proves a listing only where nothing that matters has changed since all of its tests ran."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ledgers import CPU, TWO_GPUS, cases, run
from rankbook.ledger import Ledger
from rankbook.listing import Outcome, Receipt
from rankbook.proofs import Proofs, proved, sentence

MODULES = {"test/common.py": "aa"}
HERE = {"machine": CPU, "torch": "2.13.0", "modules": MODULES, "receipt": Receipt(versions={"python": "3.11.7"})}
NAMES = ("T::test_b", "T::test_a", "test_c[x::y]")


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite")


def proofs(ledger, machine="CPU, 64 cores, x86_64", python="3.11.2", torch="2.13.0") -> Proofs:
    return Proofs(ledger, machine, python, torch)


def test_a_module_whose_tests_all_ran(ledger):
    """Its tests are given in the order of their collection, those that passed as proved; more cores make no difference."""
    first, second, third = cases(NAMES, **HERE)
    ledger.record([third, first, replace(second, outcome=Outcome.SKIPPED)])
    found = proofs(ledger).of("docs/p.md", (), "00", MODULES)
    assert [(one.case["id"], one.outcome) for one in found] == [
        ("T::test_b", Outcome.PASSED),
        ("T::test_a", Outcome.SKIPPED),
        ("test_c[x::y]", Outcome.PASSED),
    ]
    assert [one.case["id"] for one in proved(found)] == ["T::test_b", "test_c[x::y]"]


@pytest.mark.parametrize(
    "other",
    [
        {"machine": TWO_GPUS},
        {"machine": "CPU, 2 cores, aarch64"},
        {"torch": "2.14.0"},
        {"receipt": Receipt(versions={"python": "3.12.0"})},
        {"modules": {"test/common.py": "bb"}},
        {"modules": {**MODULES, "test/more.py": "aa"}},
        {"modules": {}},
        {"listing": "ff"},
    ],
)
def test_what_has_changed_is_not_proved(ledger, other):
    """Another machine, Python, torch, listing or file beside it proves nothing here."""
    ledger.record([*cases(NAMES, **{**HERE, **other}), run("docs/p.md::whole", **{**HERE, **other})])
    assert proofs(ledger).of("docs/p.md", (), "00", MODULES) == []
    assert proofs(ledger).of("docs/p.md", ("whole",), "00", MODULES) == []


def test_only_the_last_run_counts(ledger):
    """What has failed since it passed is not proved, and what has passed since it failed is, although other tests ran before."""
    before = cases(NAMES, **HERE, when="2026-11-19T00:00:00+00:00")
    ledger.record([replace(before[0], outcome=Outcome.FAILED), *before[1:]])
    now = {"when": "2026-11-20T00:00:00+00:00"}
    ledger.record([replace(before[0], **now), replace(before[1], outcome=Outcome.CRASHED, **now)])
    found = proofs(ledger).of("docs/p.md", (), "00", MODULES)
    assert [one.outcome for one in found] == [Outcome.PASSED, Outcome.CRASHED, Outcome.PASSED]


def test_a_selection_does_not_stand_for_the_module(ledger):
    """Tests that were deselected do not vanish: until all have run, nothing is known of the module."""
    made = cases(NAMES, **HERE)
    ledger.record(made[:2])
    assert proofs(ledger).of("docs/p.md", (), "00", MODULES) == []
    ledger.record(made[2:])
    assert len(proofs(ledger).of("docs/p.md", (), "00", MODULES)) == 3


def test_another_number_of_tests(ledger):
    """A module that gave another number of tests the last time is collected again."""
    ledger.record(cases(NAMES, **HERE, when="2026-11-19T00:00:00+00:00"))
    ledger.record(cases((*NAMES, "test_d"), **HERE, when="2026-11-20T00:00:00+00:00")[2:])
    assert proofs(ledger).of("docs/p.md", (), "00", MODULES) == []


def test_modules_of_one_page_are_kept_apart(ledger):
    """Two listings with the same text, and a test that has the name of another listing, are not taken for each other."""
    ledger.record(
        [*cases(["test_a"], "docs/p.md::first", **HERE), run("docs/p.md::second", **HERE), run("docs/p.md::second::test_a", **HERE)]
    )
    found = proofs(ledger)
    assert [one.node_id for one in found.of("docs/p.md", ("first",), "00", MODULES)] == ["docs/p.md::first::test_a"]
    assert [one.node_id for one in found.of("docs/p.md", ("second",), "00", MODULES)] == ["docs/p.md::second"]
    assert found.of("docs/p.md", ("third",), "00", MODULES) == []
    assert found.of("docs/q.md", ("first",), "00", MODULES) == []


def test_what_is_said_of_a_proof():
    """Where, when and at which commit it was proved."""
    one = run(when="2026-11-20T14:05:00+00:00", commit="1a2b3c")
    assert sentence(one) == "passed on CPU, 2 cores, x86_64, 2026-11-20 14:05 UTC, commit 1a2b3c"
    assert sentence(run(machine=TWO_GPUS)) == "passed on 2 × NVIDIA H200"
