"""Skip debt: what no machine has really run, by what it needs."""

from __future__ import annotations

import functools
import json
import sqlite3
import subprocess
import sys
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledgers import CPU, TWO_GPUS, Strict, cases, rankbook, run
from rankbook import debt, jobs, listings
from rankbook.ledger import Ledger
from rankbook.listing import Outcome
from rankbook.requirements import KINDS, Requirement, gpu_range
from rankbook.site import expected

FOUR = ("4 GPUs", "backend nccl")
DAY = date(2026, 11, 21)
EARLY, LATE = "2026-11-01T10:00:00+00:00", "2026-11-20T10:00:00+00:00"


@pytest.fixture(autouse=True)
def _strict(monkeypatch):
    """Have statements checked as the newest Python checks them."""
    monkeypatch.setattr(sqlite3, "connect", functools.partial(sqlite3.connect, factory=Strict))


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / ".rankbook" / "ledger.sqlite")


def skipped(node, needs=FOUR, **values):
    return run(node, Outcome.SKIPPED, needs=needs, **{"when": LATE, "reason": "too few GPUs", **values})


def said(ledger, days=0) -> list[str]:
    return [one.sentence() for one in debt.owed(ledger, debt.current_runs(ledger), days, DAY)]


def test_what_never_ran(ledger):
    """Tests are grouped by what they need, with the smallest machine that would run them."""
    two = ("2 GPUs", "world size 2", "capability >= 9.0")
    ledger.record([skipped("docs/p.md::a"), skipped("docs/p.md::b"), skipped("docs/p.md::c", two), run("docs/p.md::d", when=LATE)])
    smallest = "smallest machine: 2 GPUs with compute capability 9.0"
    assert said(ledger) == [
        f"1 test needs {', '.join(two)}; last run: never; {smallest}",
        "2 tests need 4 GPUs, backend nccl; last run: never",
    ]


@pytest.mark.parametrize("outcome", list(Outcome))
def test_which_ends_leave_evidence(ledger, outcome):
    """Who passed, failed, crashed or hung has run; who was skipped, vacuous, degenerate or not run has not."""
    ledger.record([run(outcome=outcome, needs=("2 GPUs",), when=LATE)])
    ran = outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.CRASHED, Outcome.HUNG, Outcome.NOT_CODE)
    assert bool(said(ledger)) is not ran


def test_a_run_on_another_machine_pays(ledger):
    """What a CPU skips and a machine with GPUs runs is no debt, whichever of them was the last."""
    ledger.record([skipped("docs/p.md::a", when=LATE), run("docs/p.md::a", machine=TWO_GPUS, when=EARLY)])
    assert said(ledger) == []


def test_a_test_that_is_expected_to_fail(ledger):
    """Who fails as expected has run; who is not even started has not."""
    ledger.record(
        [skipped("docs/p.md::a", reason="expected to fail: known"), skipped("docs/p.md::b", reason="expected to fail: [NOTRUN] known")]
    )
    assert said(ledger) == ["1 test needs 4 GPUs, backend nccl; last run: never"]
    ledger.record([skipped("docs/p.md::a", when="2026-11-20T11:00:00+00:00")])
    assert len(said(ledger)) == 1


def test_a_broken_promise(ledger):
    """Who fails because what it needs was promised and is not there has not run."""
    reason = "needs 4 GPUs, and this machine has none; --require gpu=4 promises it"
    ledger.record([run("docs/p.md::a", Outcome.FAILED, needs=FOUR, reason=reason, when=EARLY)])
    assert said(ledger) == ["1 test needs 4 GPUs, backend nccl; last run: never"]
    ledger.record([skipped("docs/p.md::a")])
    assert said(ledger) == ["1 test needs 4 GPUs, backend nccl; last run: never"]


def test_a_listing_that_has_changed(ledger):
    """A run of an older listing does not count, and is named."""
    ledger.record([run("docs/p.md::a", machine=TWO_GPUS, when=EARLY, listing="old"), skipped("docs/p.md::a", listing="new")])
    assert said(ledger) == ["1 test needs 4 GPUs, backend nccl; last run: 2026-11-01, before the listing changed"]


def test_a_file_beside_it_that_has_changed(ledger):
    """A run beside another file than the last one was beside is none; what only one of them was beside tells nothing."""
    ran = run(machine=TWO_GPUS, when=EARLY, needs=FOUR, modules={"conftest.py": "aa", "only/here.py": "00"})
    ledger.record([ran, skipped(ran.node_id, modules={"conftest.py": "aa", "only/there.py": "00"})])
    assert said(ledger) == []
    ledger.record([skipped(ran.node_id, when=f"{DAY}T10:00:00+00:00", modules={"conftest.py": "bb"})])
    assert said(ledger) == ["1 test needs 4 GPUs, backend nccl; last run: 2026-11-01, before a file beside the listing changed"]


def test_an_old_run(ledger):
    """With a limit in days an old run counts no more."""
    ledger.record([run("docs/p.md::a", needs=("2 GPUs",), when=EARLY), run("docs/p.md::b", needs=("2 GPUs",), when=LATE)])
    assert said(ledger) == said(ledger, 21) == []
    assert said(ledger, 20) == ["1 test needs 2 GPUs; last run: 2026-11-01, 20 days ago"]
    assert said(ledger, 1) == ["2 tests need 2 GPUs; last run: 2026-11-20, 1 day ago"]


def test_needs_that_are_not_known(ledger):
    """Without needs the reason of the skip stands for them; what nothing runs anywhere is no debt."""
    ledger.record([skipped("docs/p.md::a", (), reason="no network"), skipped("docs/p.md::b", (), kind="unrunnable")])
    assert said(ledger) == ["1 test, whose need is not known (skipped: no network); last run: never"]
    ledger.record([skipped("docs/p.md::a", (), reason="no\nnetwork", when=f"{DAY}T10:00:00+00:00")])
    assert said(ledger) == ["1 test, whose need is not known (skipped: no\\nnetwork); last run: never"]


def test_runs_of_this_session_count(ledger):
    """What has just run here is no debt even where the ledger could not be written."""
    now = [run("docs/p.md::a", when=LATE), skipped("docs/p.md::b")]
    assert debt.sentences(ledger, now) == ["1 test needs 4 GPUs, backend nccl; last run: never"]


def test_tests_that_are_gone(ledger):
    """What the last session that ran a whole page did not find is no debt; what a selection left out still is."""
    ledger.record([*cases(["a", "b", "gone"], outcome=Outcome.SKIPPED, needs=FOUR, when=EARLY)])
    ledger.record([*cases(["a", "b"], outcome=Outcome.SKIPPED, needs=FOUR, when="2026-11-02T00:00:00+00:00")])
    ledger.record([*cases(["a", "b"], outcome=Outcome.SKIPPED, needs=FOUR, when=LATE)][:1])
    assert sorted(one.node_id for one in debt.current_runs(ledger)) == ["docs/p.md::a", "docs/p.md::b"]
    ledger.record([skipped("docs/q.md::x")])
    assert len(debt.current_runs(ledger)) == 3


def test_tests_that_only_some_hardware_finds(ledger):
    """What a machine with GPUs finds is there, though one without has run all of the page since, until one like it finds it no more."""
    found = {"outcome": Outcome.SKIPPED, "needs": FOUR}
    ledger.record(cases(["a", "of 2 GPUs"], machine=TWO_GPUS, when=EARLY, **found))
    ledger.record(cases(["a"], machine=CPU, when=LATE, **found))
    assert sorted(one.node_id for one in debt.current_runs(ledger)) == ["docs/p.md::a", "docs/p.md::of 2 GPUs"]
    ledger.record(cases(["a"], machine=TWO_GPUS, when=LATE, **found))
    assert [one.node_id for one in debt.current_runs(ledger)] == ["docs/p.md::a"]


def test_a_module_that_skips_itself_tells_of_no_test_that_is_gone(ledger):
    """Its page names its tests then, which have no line; what pytest has collected and deselects has one."""

    def left_out(name, when=LATE, **facts):
        (one,) = cases([name], outcome=Outcome.SKIPPED, needs=FOUR, when=when)
        return replace(one, case={**one.case, "left_out": "it is", **facts})

    ledger.record(cases(["a[1]", "a[2]"], outcome=Outcome.SKIPPED, needs=FOUR, when=EARLY))
    ledger.record([left_out("a", line=None)])
    assert sorted(one.node_id for one in debt.current_runs(ledger)) == ["docs/p.md::a", "docs/p.md::a[1]", "docs/p.md::a[2]"]
    ledger.record([left_out("a[1]", f"{DAY}T10:00:00+00:00", line=3)])
    assert [one.node_id for one in debt.current_runs(ledger)] == ["docs/p.md::a[1]"]


MACHINES = {
    (): "",
    ("backend gloo",): "CPU",
    ("1 GPU",): "1 GPU",
    ("2 GPUs", "4 GPUs", "package cupy"): "4 GPUs, package cupy",
    ("2 GPUs", "capability >= 9.0"): "2 GPUs with compute capability 9.0",
    ("at most 2 GPUs",): "CPU",
    ("no GPU",): "CPU",
    ("no GPU at all",): "CPU",
    ("2 GPUs or none",): "2 GPUs",
    ("2 GPUs", "exactly 4 GPUs"): "4 GPUs",
    ("2 to 4 GPUs",): "2 GPUs",
    ("4 GPUs", "at most 2 GPUs"): "",
    ("number of devices GPUs",): "1 GPU",
    ("device GPU with float8",): "1 GPU, device GPU with float8",
    ("disabled: it hangs", "x == 2"): "",
}


@pytest.mark.parametrize("needs", MACHINES, ids=", ".join)
def test_the_smallest_machine(needs):
    """It has the most GPUs that any need asks for; where no machine meets all of them, none is named."""
    assert debt.smallest_machine(needs) == MACHINES[needs]


_numbers = st.integers(0, 64)
_gpus = (
    _numbers.map(str)
    | st.tuples(st.sampled_from(["== ", "<= ", ">= "]), _numbers).map(lambda pair: f"{pair[0]}{pair[1]}")
    | st.tuples(_numbers, _numbers).map(lambda pair: f"{min(pair)} to {max(pair)}")
)


@given(_gpus)
def test_gpus_are_read_as_they_are_written(value):
    """From the text of a requirement for GPUs comes back what it asks for."""
    read = debt.requirement_of(Requirement("gpus", value, "").text)
    assert (read.kind, gpu_range(read.value)) == ("gpus", gpu_range(value))
    either = debt.requirement_of(Requirement("gpus", f"{value} or none", "").text)
    assert gpu_range(either.value.removesuffix(" or none")) == gpu_range(value)
    assert either.value.endswith(" or none")


@given(
    st.sampled_from([kind for kind in KINDS if kind not in ("gpus", "one of", "slow")]),
    st.from_regex(r"[a-z]\w*( >= \d\.\d)?", fullmatch=True),
)
def test_needs_are_read_as_they_are_written(kind, value):
    """From the text of any other requirement come back its kind and its value."""
    read = debt.requirement_of(Requirement(kind, value, "").text)
    assert (read.kind, read.value) == (kind, value)


def test_the_command(ledger, tmp_path):
    """It says the debt and its sum, fails on request, and leaves out pages that are gone, and folders that are called like one."""
    (tmp_path / "pyproject.toml").write_text("[tool.rankbook]\ndebt-days = 0\n")
    (tmp_path / "docs/suite/tests/README.md").mkdir(parents=True)
    (tmp_path / "docs" / "p.md").touch()
    ledger.record(
        [skipped("docs/p.md::a"), run("docs/p.md::d", when="2026-01-01T00:00:00+00:00", needs=("2 GPUs",)), skipped("docs/gone.md::x")]
    )
    first = "1 test needs 4 GPUs, backend nccl; last run: never\n"
    assert rankbook("ledger", "debt", cwd=tmp_path) == f"{first}skip debt: 1 of 2 tests and listings\n"
    assert rankbook("ledger", "debt", "--fail-on-debt", cwd=tmp_path, status=debt.STATUS).startswith(first)
    old = rankbook("ledger", "debt", "--days", "3", cwd=tmp_path)
    assert old.splitlines()[0].startswith("1 test needs 2 GPUs; last run: 2026-01-01, ")
    found = json.loads(rankbook("ledger", "debt", "--json", cwd=tmp_path))
    assert [(one["node_ids"], one["machine"], one["last"]) for one in found] == [(["docs/p.md::a"], "4 GPUs, backend nccl", "")]
    ledger.record([run("docs/p.md::a", machine=TWO_GPUS, when=LATE)])
    assert rankbook("ledger", "debt", "--fail-on-debt", cwd=tmp_path) == "no skip debt: all of 2 tests and listings have run\n"


def test_a_page_that_is_elsewhere_now(ledger, tmp_path):
    """What ran on the page that a source had before the setting `out` changed counts for the page that it has, as it does on the site."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_a.py").write_text("import pytest\n\n\ndef test_ran(): ...\n\n\ndef test_left(): pytest.skip('no')\n")
    settings = tmp_path / "pyproject.toml"
    settings.write_text('[tool.rankbook]\nsources = ["tests"]\nout = "docs/old"\n')
    rankbook("gen", cwd=tmp_path)
    proved = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--doctest-glob=*.md", "docs"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert proved.returncode == 0, proved.stdout
    before = rankbook("ledger", "debt", cwd=tmp_path)
    assert before == "1 test needs disabled: no; last run: never\nskip debt: 1 of 2 tests and listings\n"
    settings.write_text('[tool.rankbook]\nsources = ["tests"]\nout = "docs/new"\n')
    (tmp_path / "docs/old").rename(tmp_path / "docs/new")
    rankbook("gen", cwd=tmp_path)
    assert rankbook("ledger", "debt", cwd=tmp_path) == before


def test_a_page_made_by_hand_that_was_edited(ledger, tmp_path):
    """A listing that was edited since it ran owes a run; one that the page has no more owes none."""
    (tmp_path / "pyproject.toml").touch()
    page = tmp_path / "docs/guide.md"
    page.parent.mkdir()
    page.write_text("```python {name=one}\nassert 1\n```\n\n```python {name=two}\nassert 2\n```\n")
    made = {job.name: job.fingerprint for job in jobs.plan(listings.collect(page, "docs/guide.md"))}
    ledger.record([run(name, source="", kind="script", listing=text, when=LATE) for name, text in made.items()])
    assert rankbook("ledger", "debt", cwd=tmp_path) == "no skip debt: all of 2 tests and listings have run\n"
    page.write_text("```python {name=one}\nassert 0\n```\n")
    owed = rankbook("ledger", "debt", "--fail-on-debt", cwd=tmp_path, status=debt.STATUS)
    assert "last run: 2026-11-20, before the listing changed" in owed
    assert owed.endswith("skip debt: 1 of 1 tests and listings\n")
    page.unlink()  # without any page the ledger alone is asked
    assert rankbook("ledger", "debt", cwd=tmp_path) == "no skip debt: all of 2 tests and listings have run\n"


def test_what_was_expected_to_fail_in_an_older_version_needs_what_its_page_says(ledger):
    """It did run, so that its need is no secret."""
    page = debt.Page("a.py", "new", expected.tests('{"needs": [], "tests": {"": ["a"]}}'))
    ledger.record([skipped("docs/a.md::a", (), reason="expected to fail: known", source="a.py", listing="old", case={"id": "a"})])
    (one,) = debt.owed(ledger, debt.current_runs(ledger), today=DAY, pages={"docs/a.md": page})
    assert one.sentence() == "1 test needs no GPU; last run: 2026-11-20, before the listing changed; smallest machine: CPU"


def test_a_ledger_that_is_not_there(tmp_path):
    """Without a ledger nothing is known, and whoever would fail on debt fails."""
    (tmp_path / "pyproject.toml").touch()
    assert debt.current_runs(Ledger(tmp_path / "none")) == []
    assert rankbook("ledger", "debt", cwd=tmp_path) == "nothing was recorded yet\n"
    assert rankbook("ledger", "debt", "--fail-on-debt", cwd=tmp_path, status=debt.STATUS) == "nothing was recorded yet\n"


@pytest.mark.parametrize("is_there", [False, True])
def test_a_ledger_without_runs(ledger, tmp_path, is_there):
    """What the pages list owes a run, whether the ledger is not there or has none."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_a.py").write_text("def test_a(): ...\n\n\ndef test_b(): ...\n")
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["tests"]\nout = "docs"\n')
    rankbook("gen", cwd=tmp_path)
    if is_there:
        ledger.record([])
    assert ledger.path.exists() is is_there
    owed = "2 tests need no GPU; last run: never; smallest machine: CPU\nskip debt: 2 of 2 tests and listings\n"
    said = f"rankbook: {ledger.path}: nothing was recorded yet\n"
    told = rankbook("ledger", "debt", "--fail-on-debt", cwd=tmp_path, status=debt.STATUS)
    assert told in (owed + said, said + owed)
