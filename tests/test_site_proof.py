"""Proof on the page: badges, histories, roll-ups and rank diagrams, from a real ledger; never greener than what was run."""

from __future__ import annotations

import hashlib
import html
import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ledgers import CPU, TWO_GPUS, rankbook, run, runs
from rankbook.config import Settings
from rankbook.debt import current_runs, owed
from rankbook.front_matter import Stamp
from rankbook.ledger import Ledger
from rankbook.listing import Outcome, RankEnd, Receipt
from rankbook.site import expected
from rankbook.site.addresses import Addresses
from rankbook.site.charts import share
from rankbook.site.outcomes import Group, in_a_line, shown
from rankbook.site.proof import Proof
from rankbook.site.rank_diagram import diagram, lanes
from rankbook.site.standing import Standing
from rankbook.standing import MOST, standing
from rankbook.terminal import STEERING
from tiny_site import build, generate, write_project

NOW, BEFORE = "aa" * 32, "bb" * 32
PAGE = "s/a.py_docs.md"
DECLARED = f"{CPU}; declared: 2 × NVIDIA H200"


def a_run(name="TestA::test_a", outcome=Outcome.PASSED, day=20, **values):
    """Make a run of a test of `a.py` as its page shows it now."""
    values = {"listing": NOW, "when": f"2026-11-{day:02d}T10:00:00+00:00", "case": {"id": name, "line": 7}, "torch": "2.13.0", **values}
    return run(f"docs/{PAGE}::{name}", outcome, **values)


def stamps_of(*tests, needs=(), sha256=NOW, owners=()):
    """Give the stamps of a small book whose `a.py` has these tests."""
    line = json.dumps({"needs": [list(need) for need in needs], "tests": {"": list(tests)}})
    return {
        "s/index.md": Stamp("index", "Suite", ""),
        "s/sub/index.md": Stamp("index", "sub", "sub"),
        "s/sub/b.py_docs.md": Stamp("file", "b", "sub/b.py", sha256=NOW, needs='{"needs": [["gpus", "4"]], "tests": {"": ["test_b"]}}\n'),
        PAGE: Stamp("file", "a", "a.py", sha256=sha256, needs=f"{line}\n" if tests else "", owners=owners),
        "s/a.py_kw.md": Stamp("keywords", "a", "a.py"),
    }


@pytest.fixture
def proof_of(tmp_path):
    """A function that records runs and gives what pages show of them."""

    def made(*recorded, stamps=None, **values):
        Ledger(tmp_path / Settings().ledger).record(recorded)
        return Proof.of(standing(Settings(root=tmp_path)), stamps_of() if stamps is None else stamps, **values)

    return made


class Seen(HTMLParser):
    """The elements of some HTML, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.open = [], "", []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("line", "path", "circle", "wbr"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


# How a test is shown

STATES = {
    "passed": ([a_run()], "passed", "passed"),
    "passed elsewhere, skipped here since": ([a_run(machine=TWO_GPUS), a_run(outcome=Outcome.SKIPPED, day=21)], "passed", "passed"),
    "failed": ([a_run(day=19), a_run(outcome=Outcome.FAILED)], "failed", "failed"),
    "failed on GPUs, passed on a CPU since": ([a_run(outcome=Outcome.HUNG, machine=TWO_GPUS), a_run(day=21)], "hung", "failed"),
    "mended": ([a_run(outcome=Outcome.CRASHED, day=19), a_run()], "passed", "passed"),
    "failed as it was called once, passed since": (
        [a_run(outcome=Outcome.FAILED, day=19, modules={"command line: -W error": NOW}), a_run()],
        "passed",
        "passed",
    ),
    "passed as it was called once, failed since": (
        [a_run(day=19, modules={"command line: -W ignore": NOW}), a_run(outcome=Outcome.FAILED)],
        "failed",
        "failed",
    ),
    "passed before it changed": ([a_run(listing=BEFORE)], "older version", "older"),
    "failed before it changed": ([a_run(outcome=Outcome.FAILED, listing=BEFORE)], "older version", "older"),
    "passed before it changed, skipped since": ([a_run(listing=BEFORE, day=19), a_run(outcome=Outcome.SKIPPED)], "skipped", "skipped"),
    "skipped": ([a_run(outcome=Outcome.SKIPPED, reason="needs 4 GPUs")], "skipped", "skipped"),
    "vacuous": ([a_run(outcome=Outcome.VACUOUS)], "vacuous", "unproved"),
    "degenerate": ([a_run(outcome=Outcome.DEGENERATE)], "degenerate", "unproved"),
    "not run": ([a_run(outcome=Outcome.NOT_RUN)], "not run", "unproved"),
    "passed on GPUs that were only declared": ([a_run(machine=DECLARED)], "no proof", "unproved"),
    "failed because its need was promised": ([a_run(outcome=Outcome.FAILED, reason="`gpu=2` promises it")], "no proof", "unproved"),
    "failed as expected": ([a_run(outcome=Outcome.SKIPPED, reason="expected to fail: slow")], "failed as expected", "expected"),
}


@pytest.mark.parametrize(("recorded", "word", "css"), STATES.values(), ids=STATES.keys())
def test_a_test_is_shown_by_its_best_evidence(proof_of, recorded, word, css):
    """Its badge says how it ended for the text that stands on the page; only a real pass of that text is green."""
    page = proof_of(*recorded).page(PAGE, tests=[("TestA", "test_a")])
    assert f'<span class="rankbook-outcome rankbook-{css}">{word}</span>' in page.last_run
    badges = set(re.findall(r"rankbook-outcome rankbook-([\w-]+)", page.badge + page.last_run + "".join(page.tests.values())))
    assert badges == {css}


def test_what_stands_beside_it(proof_of):
    """Beside the outcome stand hardware, torch and date as text, the reason, and what there was before."""
    page = proof_of(a_run(day=19), a_run(machine=TWO_GPUS), a_run("TestA::test_s", Outcome.SKIPPED, reason="needs 4 GPUs")).page(PAGE)
    assert '<time datetime="2026-11-20T10:00:00+00:00">2026-11-20 10:00 UTC</time>' in page.badge
    assert "on 2 × NVIDIA H200, torch 2.13.0, " in page.badge
    said = Seen(page.last_run).text
    assert "1 passed, 1 skipped. torch: 2.13.0." in said
    assert "needs 4 GPUs" in said
    assert "CPU, x86_64: passed, torch 2.13.0, 2026-11-19 10:00 UTC (1 run: 1 passed)" in said


RAISED = 'RuntimeError: Process 0 exited with error code 10 and exception:\nTraceback (most recent call last):\n  File "a.py", line 7\n'


def test_a_long_reason_opens_from_its_line_that_says_most(proof_of):
    """What a rank has raised is named in one line, also beside the test and among what fails; the traceback is kept as it was written."""
    reason = f"{RAISED}{'    fn()' * 50}\nAssertionError: Tensor-likes are not close!\n\nMismatched elements: 9 / 9\n"
    proof = proof_of(a_run(outcome=Outcome.FAILED, reason=reason))
    page = proof.page(PAGE, tests=[("TestA", "test_a")])
    said = "RuntimeError: Process 0 exited with error code 10 and exception: AssertionError: Tensor-likes are not close!"
    assert f'<details class="rb-why"><summary>{said}</summary><pre>RuntimeError' in page.last_run
    assert "\nMismatched elements: 9 / 9</pre>" in page.last_run
    row, below = page.last_run.partition('<tr class="rb-more"><td colspan="')[::2]
    assert "Mismatched" not in row  # as wide as the table, not as a column
    assert int(below.partition('"')[0]) == row.count('<th scope="col">') > 1
    assert said in page.tests["TestA", "test_a"]
    assert said in Seen(proof.page("s/index.md").rollup).text


def test_a_short_reason_is_shown_whole(proof_of):
    """Nothing needs to be opened for a sentence or a few lines."""
    page = proof_of(a_run(outcome=Outcome.FAILED, reason=f"assert 1 == 2\n{'x' * 100}")).page(PAGE)
    assert f'<span class="rb-why">assert 1 == 2\n{"x" * 100}</span>' in page.last_run
    assert "<details" not in page.last_run


def test_variants_stand_in_the_order_of_their_numbers(proof_of):
    """The ninth variant of a test stands before its tenth."""
    page = proof_of(*(a_run(f"test_a[{number}]") for number in (10, 1, 9, 2))).page(PAGE)
    assert re.findall(r"test_a\[(\d+)\]</code>", page.last_run) == ["1", "2", "9", "10"]


def test_the_title_tells_of_the_run_that_its_badge_is_about(proof_of):
    """Where something failed, hardware and date beside the title are those of the newest failure, and the badge leads to its row."""
    recorded = [
        a_run("test_a", day=21),
        a_run("test_b", Outcome.FAILED, day=18, machine=TWO_GPUS),
        a_run("test_c", Outcome.HUNG, day=19, machine=TWO_GPUS),
    ]
    page = proof_of(*recorded).page(PAGE)
    assert "2 failed" in page.badge
    assert "on 2 × NVIDIA H200, torch 2.13.0, " in page.badge
    assert "2026-11-19 10:00 UTC" in page.badge
    place = re.search(r'href="#(rb-run-\d+)"', page.badge)[1]
    assert "test_c" in page.last_run.partition(f'id="{place}"')[2].partition("</tr>")[0]


def test_an_older_version_says_what_became_of_it(proof_of):
    """A test whose listing has changed says how the older one ended, and no line of the new one is taken for its place."""
    page = proof_of(a_run(listing=BEFORE)).page(PAGE, tests=[("TestA", "test_a")])
    assert "an older version of this listing passed" in page.last_run
    assert "#L" not in page.last_run
    assert "older version" in page.tests["TestA", "test_a"]


def test_a_module_that_can_be_collected_again(proof_of):
    """What was said of a whole module is shown and counted until its tests have been run on that hardware."""
    whole = a_run("a.py", Outcome.FAILED, day=18, reason="RuntimeError: not here")
    assert "1 failed" in proof_of(whole, a_run(day=17)).front()
    elsewhere = proof_of(a_run(day=19, machine=TWO_GPUS))
    assert "RuntimeError: not here" in elsewhere.page(PAGE).last_run
    after = proof_of(a_run(day=20))
    assert "RuntimeError: not here" not in after.page(PAGE).last_run
    assert "failed" not in after.front()
    assert "A machine has run 1 of 2 tests" in after.front()
    assert "RuntimeError: not here" in proof_of(replace(whole, when="2026-11-21T10:00:00+00:00")).page(PAGE).last_run


BASE = "sub/b.py"
"""Another file, whose page shows it as `NOW`."""


@pytest.mark.parametrize(
    ("recorded", "css", "note"),
    [
        ([a_run(modules={BASE: NOW})], "passed", ""),
        ([a_run(modules={BASE: BEFORE})], "older", f"it passed, but {BASE} has changed since"),
        ([a_run(outcome=Outcome.FAILED, modules={BASE: BEFORE})], "older", ""),
        ([a_run(modules={BASE: BEFORE}, day=18), a_run(modules={BASE: NOW}, day=19)], "passed", ""),
        ([a_run(modules={BASE: NOW}, day=18), a_run(modules={BASE: BEFORE}, day=19)], "passed", ""),
        ([a_run(modules={BASE: BEFORE}, day=18), a_run(outcome=Outcome.SKIPPED, modules={BASE: NOW})], "skipped", ""),
        ([a_run(machine=TWO_GPUS, modules={BASE: NOW}), a_run(modules={}, day=19)], "passed", ""),
        ([a_run(modules={"elsewhere/x.py": NOW})], "passed", ""),
    ],
)
def test_a_run_proves_a_test_beside_the_same_files(proof_of, recorded, css, note):
    """What was run beside another file than there is now is an older version; what was run as it is now stands, whichever was last."""
    page = proof_of(*recorded).page(PAGE)
    assert f"rankbook-outcome rankbook-{css}" in page.last_run
    assert note in page.last_run


def test_who_ends_again_as_before_is_flakier_than_who_changed_once(proof_of):
    """A test that failed once and for all stands below one that comes and goes, however few runs it has."""
    fails, passes = Outcome.FAILED, Outcome.PASSED
    often = [a_run("test_comes_and_goes", end, day=1 + at) for at, end in enumerate([passes] * 6 + [fails] + [passes] * 6)]
    once = [a_run("test_broke", end, day=1 + at) for at, end in enumerate([passes, fails])]
    front = proof_of(*often, *once).front()
    flakiest = front[front.index("Flakiest") :]
    assert flakiest.index("test_comes_and_goes") < flakiest.index("test_broke")


def test_how_flaky_a_test_is_is_counted_within_its_versions_and_hardware(proof_of):
    """Of each version and hardware the runs are counted, and only there does it come back; an expected failure is an end of its own."""
    passes, fails = Outcome.PASSED, Outcome.FAILED
    edited = [a_run("test_edited", end, day=1 + at, listing=[BEFORE, NOW][at // 2]) for at, end in enumerate([passes, fails] * 2)]
    ends = enumerate([passes, fails, passes])
    both = [a_run("test_both", end, day=1 + at, machine=machine) for at, end in ends for machine in (CPU, TWO_GPUS)]
    known = [
        a_run("test_known", end, day=1 + at, reason=reason)
        for at, (end, reason) in enumerate([(Outcome.SKIPPED, "expected to fail: known"), (passes, "")])
    ]
    front = Seen(proof_of(*edited, *both, *known).front()).text
    flakiest = front[front.index("Flakiest") :]
    assert "2 changes in 4 runs" in flakiest
    assert "4 changes in 6 runs" in flakiest
    assert "1 change in 2 runs" in flakiest
    assert flakiest.index("test_both") < flakiest.index("test_edited")


def test_an_outcome_that_changes_with_a_file_beside_it_is_not_flaky(proof_of):
    """Who ends otherwise because a file beside it has changed is no flaky test, and is one where nothing has."""
    ends = [Outcome.PASSED, Outcome.FAILED, Outcome.PASSED, Outcome.FAILED]
    digests = [BEFORE, NOW, BEFORE, NOW]
    runs_of_a = [a_run("TestA::a", end, day=10 + at, modules={BASE: digests[at]}) for at, end in enumerate(ends)]
    assert "Flakiest" not in proof_of(*runs_of_a).front()
    assert "Flakiest" in proof_of(*(a_run("TestA::b", end, day=10 + at, modules={BASE: NOW}) for at, end in enumerate(ends))).front()


def test_tests_that_never_ran_are_named(proof_of):
    """The page of a source says which of its tests no machine has run, with what they need."""
    page = proof_of(a_run(), stamps=stamps_of("TestA::test_a", "TestA::test_new<x>", needs=[("gpus", "2")])).page(
        PAGE, tests=[("TestA", "test_a"), ("TestA", "test_new<x>")]
    )
    assert "1 passed, 1 never run" in page.last_run
    assert "<code>TestA::test_new&lt;x&gt;</code> needs 2 GPUs" in page.last_run
    assert "never run" in page.tests["TestA", "test_new<x>"]
    assert "passed" in page.tests["TestA", "test_a"]


def test_a_test_that_is_gone_is_shown_no_more(proof_of):
    """Once the present text was run, a test that only an older version had is left out; one that is still there says that it is older."""
    recorded = [a_run("test_a"), a_run("test_gone", listing=BEFORE, day=19), a_run("test_kept", listing=BEFORE, day=19)]
    said = proof_of(*recorded, stamps=stamps_of("test_a", "test_kept")).page(PAGE).last_run
    assert "test_gone" not in said
    assert "1 passed, 1 older version" in said


def test_variants_of_a_test_share_a_badge(proof_of):
    """Tests that are made of one function have one badge: green when all passed, else what failed, else how many."""
    row = ("", "test_a")
    names = [f"test_a[{number}]" for number in range(3)]
    passed = [a_run(name) for name in names]
    assert "passed</span>" in proof_of(*passed).page(PAGE, tests=[row]).tests[row]
    skipped = a_run(names[0], Outcome.SKIPPED, listing="cc", day=21)
    proof = proof_of(skipped, *(replace(one, listing="cc") for one in passed[1:]), stamps=stamps_of(sha256="cc"))
    shown = proof.page(PAGE, tests=[row]).tests[row]
    assert "2 of 3 proved" in shown
    assert "rankbook-passed" not in shown


def test_a_variant_that_was_never_run_counts(proof_of):
    """A test of which one variant passed and another was never run is not called passed."""
    stamps = stamps_of("test_a[0]", "test_a[1]", "test_ab", "TestA::test_a[0]", "TestA::test_b")
    rows = [("", "test_a"), ("", "test_ab"), ("TestA", "test_a"), ("TestA", "test_b")]
    page = proof_of(a_run("test_a[0]"), a_run("TestA::test_a[0]"), a_run("TestA::test_b", Outcome.FAILED), stamps=stamps).page(
        PAGE, tests=rows
    )
    words = [re.sub("<[^>]*>", "", page.tests[row]) for row in rows]
    assert words == ["1 of 2 proved", "never run", "passed", "failed"]
    assert 'title="1 passed, 1 never run; on CPU, 2 cores, x86_64, torch 2.13.0, 2026-11-20"' in page.tests["", "test_a"]


def test_the_badge_of_variants_says_where_and_when_they_ran(proof_of):
    """What several runs have alike is said once; of several kinds of hardware two are named, of several days the first and the last."""
    row = ("", "test_a")

    def said(*recorded):
        return html.unescape(re.search(r'title="([^"]*)"', proof_of(*recorded).page(PAGE, tests=[row]).tests[row])[1])

    variants = [a_run("test_a[0]"), a_run("test_a[1]", Outcome.SKIPPED, day=18, needs=("2 GPUs",))]
    assert said(*variants) == f"1 passed, 1 skipped; on {CPU}, torch 2.13.0, 2026-11-18 to 2026-11-20"
    variants.append(a_run("test_a[2]", machine=TWO_GPUS, torch="2.12.1", day=19))
    assert said(*variants) == f"2 passed, 1 skipped; on {TWO_GPUS} and on {CPU}, 2026-11-18 to 2026-11-20"
    variants.append(a_run("test_a[3]", machine="8 × NVIDIA H200", day=19))
    assert said(*variants) == "3 passed, 1 skipped; on 3 kinds of hardware, 2026-11-18 to 2026-11-20"


def test_the_badge_of_variants_leads_to_the_one_that_failed(proof_of):
    """Who follows `1 failed` comes to the failure, wherever it stands among the variants."""
    ends = [a_run(f"test_a[{number}]", Outcome.FAILED if number == 1 else Outcome.PASSED) for number in range(3)]
    page = proof_of(*ends).page(PAGE, tests=[("", "test_a")])
    place = re.search(r'href="#(rb-run-\d+)"', page.tests["", "test_a"])[1]
    assert "1 failed" in page.tests["", "test_a"]
    assert "test_a[1]" in page.last_run.partition(f'id="{place}"')[2].partition("</tr>")[0]


def test_a_run_stands_for_the_family_whose_name_is_longest(proof_of):
    """A run of `test_a_long_x` says nothing of the tests that are made of `test_a`."""
    stamps = stamps_of("test_a*", "test_a_long*", "test_b*")
    said = proof_of(a_run("test_a_long_x"), a_run("test_b[1]"), stamps=stamps).page(PAGE).last_run
    assert "2 passed, 1 never run" in said
    assert "<code>test_a*</code>" in said


def test_what_is_a_test_by_itself_has_no_others(proof_of):
    """A variant belongs to the function that it is made of, not to a test whose name it happens to begin with."""
    rows = [("TestP", "test_s"), ("TestP", "test_s_x"), ("TestP", "test_s_x_y")]
    names = ["test_s_x_1", "test_s_x_2", "test_s_x", "test_s_x_y_x_1"]
    recorded = [a_run(f"TestP::{name}", Outcome.FAILED if name == "test_s_x_2" else Outcome.PASSED) for name in names]
    shown = proof_of(*recorded).page(PAGE, tests=rows).tests
    assert ["failed" in shown[row] for row in rows] == [True, False, False]
    assert all("never run" not in shown[row] for row in rows)


def test_a_module_is_no_test(proof_of):
    """A module that cannot be collected, or holds no test, is another listing: it adds nothing to the number of tests."""
    broken = proof_of(a_run("a.py", Outcome.FAILED, case={}), stamps=stamps_of("test_a", "test_b"))
    assert "2 tests: 2 never run. 1 other listing: 1 failed" in broken.page(PAGE).last_run
    assert "1 failed" in broken.page(PAGE).badge
    assert "A machine has run 0 of 3 tests" in broken.front()


def test_a_title_says_no_more_of_a_place_than_is_true(proof_of):
    """Failures on several machines are not all said to be those of one; what was never run was run nowhere."""
    never = proof_of(a_run("a.py", case={}), stamps=stamps_of("TestA::test_x")).page(PAGE).badge
    assert "never run" in never
    assert "on CPU" not in never
    several = proof_of(a_run("test_a", Outcome.FAILED, machine=TWO_GPUS), a_run("test_b", Outcome.FAILED, day=21))
    assert "2 failed</span></a> <small>the last one on CPU" in several.page(PAGE).badge


def test_what_fails_as_expected_is_not_called_skipped(proof_of):
    """Badge, tooltip and history say the same of it."""
    expected_to_fail = {"outcome": Outcome.SKIPPED, "reason": "expected to fail: slow"}
    page = proof_of(a_run(**expected_to_fail, day=19), a_run(**expected_to_fail)).page(PAGE, tests=[("TestA", "test_a")])
    assert "last 2 runs: 2 failed as expected" in page.last_run
    assert "skipped" not in page.last_run + page.tests["TestA", "test_a"]


def test_a_long_list_of_failures_says_that_it_goes_on(proof_of):
    """Ten are shown, and how many there are besides."""
    front = proof_of(*(a_run(f"test_{number}", Outcome.FAILED) for number in range(13))).front()
    assert "<p>and 3 others.</p>" in front


def test_tests_of_one_name_are_told_apart_by_their_files(proof_of):
    """What fails is listed with its file, as it is called from the folder that the page is about."""
    below = run("docs/s/sub/b.py_docs.md::test_a", Outcome.FAILED, listing=NOW, source="sub/b.py", when="2026-11-20T10:00:00+00:00")
    proof = proof_of(a_run("test_a", Outcome.FAILED), below)
    front = Seen(proof.front()).text
    assert "test_a a.pyfailed" in front
    assert "test_a sub/b.pyfailed" in front
    assert "test_a b.pyfailed" in Seen(proof.page("s/sub/index.md").rollup).text


def test_a_time_that_is_not_known_is_not_told(proof_of):
    """A run that is dated ahead has none: neither 1970 nor an empty month."""
    page = proof_of(a_run(when="2031-01-01T00:00:00+00:00"), a_run(day=19, machine=TWO_GPUS))
    said = page.page(PAGE).last_run + page.front()
    assert "1970" not in said
    assert "at a time that is not known" in said
    assert '<th scope="row"></th>' not in said


def test_a_badge_belongs_to_a_class_and_a_name(proof_of):
    """A test of another class with the same name says nothing; a test made of a function belongs to the longest name that fits."""
    ends = {"B::test_a": Outcome.FAILED, "A::test_a_b_cuda": Outcome.HUNG, "C::test_x": Outcome.CRASHED}
    names = ("A::test_a[1]", "A::test_a[x::y]", "B::test_a", "A::test_a_b_cuda", "test_made_cuda", "C::test_x", "B::D::test_in")
    rows = [("A", "test_a"), ("B", "test_a"), ("A", "test_a_b"), ("", "test_made"), ("A", "test_x"), ("B::D", "test_in"), ("", "test_in")]
    shown = proof_of(*(a_run(name, ends.get(name, Outcome.PASSED)) for name in names)).page(PAGE, tests=rows).tests
    words = {row: re.search(r"[a-z -]+(?=</span>)", badge)[0] for row, badge in shown.items()}
    assert words == dict(zip(rows, ("passed", "failed", "hung", "passed", "never run", "passed", "never run"), strict=True))
    assert "passed</span>" in proof_of().page(PAGE, tests=[(None, "test_made")]).tests[None, "test_made"]


def test_the_command_of_a_page_is_green_only_for_its_own_text(proof_of):
    """A listing beside the source counts as passed when the page still shows the text that was run."""
    text = hashlib.sha256(b"pytest a.py\n").hexdigest()
    proof = proof_of(run(f"docs/{PAGE}::how-to-run-it", source="", kind="shell", listing=text, when="2026-11-20T10:00:00+00:00"))
    assert "rankbook-passed" in proof.page(PAGE, [text]).last_run
    assert "rankbook-passed" not in proof.page(PAGE, [NOW]).last_run
    assert "rankbook-passed" not in proof.page(PAGE).last_run


HAND_MADE = "# Guide\n\n```python\nprint(1)\n```\n\n<!-- rankbook:last-run -->\n"


def test_a_listing_of_a_page_made_by_hand_is_green_for_its_own_text_only(tmp_path):
    """Pages of people are read: a listing that was edited since it ran says so, one that is gone is not shown."""
    page = tmp_path / "docs/guide.md"
    page.parent.mkdir()
    page.write_text(HAND_MADE)
    from rankbook import jobs, listings

    (job,) = jobs.plan(listings.collect(page, "docs/guide.md"))
    when = "2026-11-20T10:00:00+00:00"
    recorded = [
        run(job.name, source="", kind="script", listing=job.fingerprint, when=when),
        run("docs/guide.md::gone", source="", when=when),
    ]
    Ledger(tmp_path / Settings().ledger).record(recorded)

    def proof():
        return Proof.of(standing(Settings(root=tmp_path), ["docs/guide.md"]), {})

    first = proof().page("guide.md").last_run
    assert "1 passed" in first
    assert "gone" not in first
    before = proof().digest("guide.md")
    page.write_text(HAND_MADE.replace("print(1)", "print(2)"))
    assert "rankbook-passed" not in proof().page("guide.md").last_run
    assert "1 older version" in proof().page("guide.md").last_run
    assert proof().digest("guide.md") != before
    page.write_text(HAND_MADE.replace("```python", "```python {.no-run}"))
    assert "older version" not in proof().page("guide.md").last_run


def test_a_listing_with_tests_that_was_edited_has_as_many_as_it_says(tmp_path):
    """Of its tests that were run before it was edited only so many are shown as there are; none is counted twice."""
    page = tmp_path / "docs/guide.md"
    page.parent.mkdir()
    page.write_text(TESTS_BY_HAND)
    from rankbook import jobs, listings

    def ran(*names, of, day):
        (job,) = jobs.plan(listings.collect(page, "docs/guide.md"))
        return [
            run(
                f"{job.name}::{name}", source="", listing=job.fingerprint, when=f"2026-11-{day}T10:00:00+00:00", case={"id": name, "of": of}
            )
            for name in names
        ]

    ledger = Ledger(tmp_path / Settings().ledger)
    ledger.record(ran("test_a", "test_b", "test_c", of=3, day=20))
    page.write_text(TESTS_BY_HAND.replace("assert 1", "assert 2"))
    ledger.record(ran("test_a", of=2, day=21))

    def badge():
        proof = Proof.of(standing(Settings(root=tmp_path), ["docs/guide.md"]), {})
        return Seen(proof.listings("guide.md", is_tabled=False)["tests"]).text, proof.page("guide.md").last_run

    shown_now, table = badge()
    assert "1 of 2 proved" in shown_now
    assert "1 passed, 1 older version" in table
    ledger.record(ran("test_b", of=2, day=22))
    assert badge()[0].startswith("passed")


TESTS_BY_HAND = """\
# Guide

```python {name=tests}
def test_a():
    assert 1


def test_b():
    assert 1
```

<!-- rankbook:last-run -->
"""


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(runs, max_size=12))
def test_what_counts_as_run_is_what_owes_no_run(tmp_path_factory, recorded):
    """The site and `rankbook ledger debt` agree on which tests a machine has really run as they are now."""
    root = tmp_path_factory.mktemp("l")
    ledger = Ledger(root / Settings().ledger)
    ledger.record(recorded)
    items = standing(Settings(root=root)).items
    owing = {node for debt in owed(ledger, current_runs(ledger)) for node in debt.node_ids}
    for node, found in items.items():
        newest = max((one for one in recorded if one.node_id == node), key=lambda one: one.when)
        if sum(one.when == newest.when for one in recorded if one.node_id == node) > 1 or found.newest.outcome is Outcome.NOT_CODE:
            continue
        assert found.newest.when == newest.when

        def changed(other, now=newest.modules):
            return next((path for path, digest in other.modules.items() if now.get(path, digest) != digest), "")

        assert shown(found, (found.newest.listing,), changed).group.ran is (node not in owing)


def test_a_case_that_is_found_no_more(proof_of):
    """What the last whole run of the present text did not find is shown no more, unless the page names it, or other hardware finds it."""

    def ran(*names, day, listing=NOW, **values):
        facts = {"of": len(names), "page": len(names), "line": 7}
        return [a_run(name, day=day, listing=listing, case={"id": name, "of": at, **facts}, **values) for at, name in enumerate(names)]

    def said(proof):
        return Seen(proof.page(PAGE).last_run).text

    stamps = stamps_of("test_x", "test_named[2]", needs=())
    old = ran("test_x[1]", "test_x[2]", "test_named[2]", day=18)
    gpus = ran("test_x[1]", "test_x[3]", "test_named[2]", day=18, machine=TWO_GPUS)
    first = proof_of(*old, *gpus, stamps=stamps)
    assert "4 tests: 4 passed." in said(first)
    second = proof_of(*ran("test_x[1]", day=19), stamps=stamps)
    assert "test_x[2]" not in said(second)
    assert "3 tests: 3 passed." in said(second)
    assert second.digest(PAGE) != first.digest(PAGE)
    assert "test_x[2]" in said(proof_of(stamps=stamps_of("test_x", "test_named[2]", sha256=BEFORE)))
    assert "2 tests: 2 passed." in said(proof_of(*ran("test_x[1]", day=20, machine=TWO_GPUS), stamps=stamps))


# What is kept of a ledger


def test_a_history_is_bounded_on_each_hardware(proof_of, tmp_path):
    """Of each class of hardware the last runs are shown, whatever the number of its cores."""
    machines = [CPU, CPU.replace("2 cores", "8 cores"), TWO_GPUS]
    known = [a_run(day=1 + day, machine=machine, duration=day) for day in range(28) for machine in machines]
    page = proof_of(*known).page(PAGE).last_run
    assert page.count(f"last {MOST} runs: {MOST} passed") == 4
    (found,) = standing(Settings(root=tmp_path)).items.values()
    assert {hardware: len(list(found.strip(hardware))) for hardware in found.beats} == {"CPU, x86_64": MOST, TWO_GPUS: MOST}


def test_a_proof_stays_however_often_it_was_skipped_since(proof_of, tmp_path):
    """What was really run of a version counts though its history has been skips for long; so does an earlier version come back."""
    skips = [a_run(outcome=Outcome.SKIPPED, when=f"2026-11-21T10:{minute:02d}:00+00:00") for minute in range(MOST + 5)]
    proof = proof_of(a_run(outcome=Outcome.FAILED), *skips)
    assert "1 failed" in proof.page(PAGE).last_run
    assert "Failing" in proof.front()
    assert "A machine has run 1 of 2 tests" in proof.front()
    others = [a_run(listing=BEFORE, when=f"2026-11-22T10:{minute:02d}:00+00:00") for minute in range(MOST + 5)]
    assert "1 failed" in proof_of(*others).page(PAGE).last_run
    versions = [a_run(listing=f"{number:064x}", when=f"2026-11-23T10:{number:02d}:00+00:00") for number in range(MOST + 5)]
    proof_of(*versions)
    (found,) = standing(Settings(root=tmp_path)).items.values()
    assert len(found.real) == MOST


def test_a_run_of_a_time_that_is_not_known_was_a_run(proof_of):
    """Folders and the front page count it like any other, and say that they do not know when it was."""
    proof = proof_of(a_run(outcome=Outcome.FAILED, when="2999-01-01T10:00:00+00:00", duration=3.0), stamps=stamps_of("TestA::test_a"))
    folder = Seen(proof.page("s/index.md").rollup).text
    assert "A machine has run 1 of 2 tests" in folder
    assert "When the last run was is not known." in folder
    assert "Failing" in folder
    assert "Slowest" in folder


def test_a_test_that_the_page_has_no_more_is_not_counted(proof_of):
    """Where the source was edited and not run yet, what its page does not name is gone."""
    ran = [a_run(f"test_{name}", listing=BEFORE) for name in ("one", "two")]
    proof = proof_of(*ran, a_run("a.test_one", listing=BEFORE), stamps=stamps_of("test_one", "test_three"))
    page = Seen(proof.page(PAGE).last_run).text
    assert "test_two" not in page
    assert "1 older version, 1 never run" in page
    assert "A machine has run 0 of 3 tests" in proof.front()


def test_one_run_is_no_history(proof_of):
    """Of a test that was run once its row says all; a second run gives it a history."""
    assert "rb-strip" not in proof_of(a_run(day=1)).page(PAGE).last_run
    assert "last 2 runs: 2 passed" in proof_of(a_run(day=2)).page(PAGE).last_run


def test_the_words_of_a_history_are_those_of_its_signs(proof_of):
    """What left no evidence is called by the word of its badge, however it ended: its sign says that nothing ran."""
    skipped, promised = a_run(outcome=Outcome.SKIPPED, day=18), a_run(outcome=Outcome.FAILED, day=19, reason="`gpu=2` promises it")
    page = proof_of(skipped, promised, a_run(day=20, machine=DECLARED)).page(PAGE).last_run
    assert 'aria-label="last 2 runs: 1 skipped, 1 no proof"><b class="rb-none">––</b>' in page
    assert "(1 run: 1 no proof)" in page
    assert "so since 2026-11-19, skipped on 2026-11-18" in page


def test_the_command_of_a_page_whose_tests_never_ran_is_of_this_version(proof_of):
    """What is skipped, or fails because its need was promised, is no older version of what stands there."""
    reason = "needs 2 GPUs, and this machine has none; --require gpu=2 promises it"
    text = hashlib.sha256(b"pytest a.py\n").hexdigest()
    command = run(
        f"docs/{PAGE}::how-to-run-it", Outcome.FAILED, source="", kind="shell", listing=text,
        when="2026-11-20T10:00:00+00:00", reason=f"the same run as docs/{PAGE}: {reason}",
    )  # fmt: skip
    proof = proof_of(a_run(outcome=Outcome.FAILED, reason=reason), command)
    assert "older version" not in proof.page(PAGE, [text]).last_run
    assert "older version" in proof_of(stamps=stamps_of(sha256=BEFORE)).page(PAGE, [text]).last_run


@pytest.mark.parametrize("name", ["", "::usage"])
def test_a_failure_is_told_once(proof_of, name):
    """The command of a page, which was the same run, does not repeat what the row of the failed test says; without that row it does."""
    reason = "RuntimeError: Process 1 exited with error code 10: of two ranks"
    command = run(
        f"docs/{PAGE}::how-to-run-it", Outcome.FAILED, source="", kind="shell", reason=f"the same run as docs/{PAGE}{name}: {reason}"
    )
    assert reason in Seen(proof_of(command).page(PAGE).last_run).text
    other = a_run("TestA::test_other", Outcome.FAILED, reason="assert 1 == 2")
    assert reason in Seen(proof_of(other).page(PAGE).last_run).text
    both = Seen(proof_of(a_run(outcome=Outcome.FAILED, reason=reason)).page(PAGE).last_run).text
    assert both.count(reason) == 1
    assert f"the same run as {name.removeprefix('::') or 'the tests of this page'}" in both


@settings(max_examples=20, deadline=None)
@given(st.lists(runs, max_size=8), st.lists(runs, max_size=4))
def test_what_is_added_is_found_without_reading_all(tmp_path_factory, first, second):
    """Looking only at what is new gives the same as looking at everything."""
    root = tmp_path_factory.mktemp("l")
    ledger, own = Ledger(root / Settings().ledger), Settings(root=root)
    ledger.record(first)
    before = standing(own)
    ledger.record(second)
    assert standing(own, before=before) == standing(own)


@settings(max_examples=25, deadline=None)
@given(st.lists(runs, max_size=8), runs)
def test_a_digest_tells_whether_a_page_shows_something_else(tmp_path_factory, first, more):
    """Of each page: with the same digest it shows the same, and with another one something else."""
    root = tmp_path_factory.mktemp("l")
    stamps = {**stamps_of("a", "b", sha256="00"), "p.md": Stamp("file", "p", "b.py", sha256="ff"), "index.md": Stamp("index", "", "")}
    ledger, own = Ledger(root / Settings().ledger), Settings(root=root)
    ledger.record(first)
    before = Proof.of(standing(own), stamps)
    ledger.record([replace(more, source="b.py")])
    after = Proof.of(standing(own), stamps)
    for path in (*stamps, "q.md"):
        assert before.digest(path) != after.digest(path) or before.page(path) == after.page(path), path
    assert before.digest("s/sub/b.py_docs.md") == after.digest("s/sub/b.py_docs.md") or not first


def test_a_ledger_that_cannot_be_read_is_told(tmp_path):
    """An outcome that this rankbook does not know ends in the ledger's own sentence."""
    ledger = Ledger(tmp_path / Settings().ledger)
    ledger.record([a_run()])
    import sqlite3

    from rankbook.errors import LedgerError

    with sqlite3.connect(ledger.path) as connection:
        connection.execute("UPDATE texts SET text = 'dreamt' WHERE text = 'passed'")
    connection.close()
    with pytest.raises(LedgerError, match="cannot read"):
        standing(Settings(root=tmp_path))


# What is untrusted

HOSTILE = (
    st.text(alphabet="<>&\"'`|{}\\\n\x00\x07\x1b\x9b\u202e\u2066\ud800aé", max_size=20)
    | st.just("<script>alert(1)</script>")
    | st.just('"><img src=x onerror=y>')
)
ELEMENTS = frozenset(
    (
        *("p", "span", "div", "a", "b", "i", "small", "strong", "code", "time", "ul", "li", "details", "summary", "figure", "figcaption"),
        *("table", "caption", "thead", "tbody", "tr", "th", "td", "svg", "g", "line", "path", "circle", "text", "title"),
    )
)


@settings(max_examples=40, deadline=None)
@given(HOSTILE, HOSTILE, HOSTILE, HOSTILE, st.sampled_from(list(Outcome)), st.integers(0, 3))
def test_text_of_a_ledger_stays_text(tmp_path_factory, name, reason, machine, owner, outcome, ranks):
    """Whatever is called whatever: what pages show is well-formed, and holds no element or attribute of anybody else."""
    root = tmp_path_factory.mktemp("l")
    ends = tuple(RankEnd(f"{name} {rank}", -rank or None, 0.1, 1.0) for rank in range(ranks))
    one = a_run(f"test_{name}", outcome, reason=f"rank 1 {reason}", machine=machine, torch=machine, ranks=ranks, receipt=Receipt(ends))
    Ledger(root / Settings().ledger).record([replace(one, needs=(reason,), engine=owner, commit=owner)])
    proof = Proof.of(standing(Settings(root=root)), stamps_of("test_x", owners=(owner,)))
    for path in (PAGE, "s/index.md", "s/sub/index.md"):
        page = proof.page(path, tests=[("", f"test_{name}")])
        for part in (page.badge, *page.tests.values(), page.last_run, page.rollup, *page.rows.values()):
            seen = Seen(part)
            assert not seen.open
            assert {tag for tag, _ in seen.tags} <= ELEMENTS
            assert not any(key.startswith("on") or key == "src" for _, values in seen.tags for key in values)
            assert all(re.match(r"#|[\w./%-]+\.html", values.get("href") or "#") for _, values in seen.tags)
            assert STEERING.search(part) is None, part


def test_what_steers_a_terminal_is_written_out(proof_of):
    """Colours of a reason are gone from a page; other characters that no reader sees are named, also where a long one is cut."""
    reason = f"ValueError: \x1b[1;31mred\x1b[0m\x00\x07\u202eback\u2066 {'long ' * 80}"
    ends = tuple(RankEnd(f"rank {rank}", 1, 0.1, 1.0, doing="waits in \x1b[1mfoo\x1b[m\u2067") for rank in range(2))
    proof = proof_of(a_run("test_\x1b[31m\u202e", Outcome.FAILED, reason=reason, ranks=2, receipt=Receipt(ends)))
    for said in (proof.page(PAGE).last_run, proof.page("s/index.md").rollup):
        assert r"ValueError: red\u0000\u0007\u202eback\u2066 long" in said
        assert r"test_\u001b[31m\u202e</code>" in said
        assert STEERING.search(said) is None
    assert r"waits in foo\u2067" in proof.page(PAGE).last_run


# What adds up


def test_a_folder_adds_up_what_lies_below(proof_of):
    """Coverage, debt with the smallest machine, what fails, is slow or flaky, owners, hardware and months of all tests below it."""
    recorded = [
        *(a_run("test_flaky", Outcome.FAILED if day % 2 else Outcome.PASSED, day, duration=1) for day in range(1, 5)),
        a_run("test_slow", duration=75, machine=TWO_GPUS, when="2026-10-03T00:00:00+00:00"),
        a_run("test_bad", Outcome.FAILED, reason="assert 1 == 2"),
        a_run("test_gpus", Outcome.SKIPPED, needs=("2 GPUs",)),
    ]
    tests = ("test_flaky", "test_slow", "test_bad", "test_gpus", "test_new")
    proof = proof_of(*recorded, stamps=stamps_of(*tests, owners=("oncall: distributed",)))
    said = Seen(proof.page("s/index.md").rollup).text
    assert "Proof coverage: 50 %. A machine has run 3 of 6 tests as they are now." in said
    assert "2 passed 33 %" in said
    assert "test_bad a.pyfailedCPU, 2 cores, x86_64" in said
    assert "2 GPUs1 test: 1 skipped; smallest machine: 2 GPUs" in said
    assert "4 GPUs1 test: 1 never run; smallest machine: 4 GPUs" in said
    assert "test_flaky a.py99 %" not in said
    assert "test_flaky a.py100 %: 3 changes in 4 runs" in said
    assert said.index("test_slow a.py1\xa0min 15\xa0s") < said.index("test_flaky a.py1\xa0s")
    assert "oncall: distributed60 %2 passed, 1 failed, 1 skipped, 1 never run" in said
    assert "2 × NVIDIA H20017 %1 passed" in said
    assert "2026-112 tests2026-101 test" in said
    assert 'href="a.py_docs.html#L7"' in proof.page("s/index.md").rollup
    assert 'href="s/a.py_docs.html#L7"' in proof.front()


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        (("test_a", "test_b"), "1 of 5 tests as they are now; 3 of these are cases that 1 row of a page stands for. Last run"),
        (("test_a", "test_c*", "test_b"), "1 of 7 tests as they are now; 5 of these are cases that 2 rows of pages stand for. Last run"),
        (("test_a[1]", "test_a[2]", "test_a[3]", "test_b"), "1 of 5 tests as they are now. Last run"),
    ],
)
def test_cases_that_one_row_stands_for_are_told(proof_of, tests, said):
    """Where runs tell more tests than a page lists, its folder says why it counts more of them."""
    names = [*(f"test_a[{number}]" for number in (1, 2, 3)), *(("test_c_x", "test_c_y") if "test_c*" in tests else ())]
    recorded = [a_run(name, Outcome.PASSED if name == "test_a[2]" else Outcome.SKIPPED, needs=("4 GPUs",)) for name in names]
    proof = proof_of(*recorded, stamps=stamps_of(*tests))
    assert f"A machine has run {said}" in Seen(proof.page("s/index.md").rollup).text
    assert f"A machine has run {said}" in Seen(proof.front()).text


def test_a_share_is_not_rounded_to_nothing_or_to_all(proof_of):
    """What is less than half a percent is told to be less than one, and what lacks as little to be more than 99."""
    last = run("docs/s/f003/t0199.py_docs.md::test_008", listing=NOW, source="f003/t0199.py", when="2026-11-20T10:00:00+00:00")
    said = Seen(proof_of(last, stamps=of_many_files(400, 9)).page("s/index.md").rollup).text
    assert "Proof coverage: < 1 %. A machine has run 1 of 3,602 tests as they are now." in said
    assert "1 passed < 1 %" in said
    assert "3,601 never run > 99 %" in said


def test_skip_debt_leads_to_its_tests(proof_of):
    """What opens below a need names its tests: one that was skipped leads to its line, one that was never run to its page."""
    proof = proof_of(a_run("test_gpus", Outcome.SKIPPED, needs=("2 GPUs",)), stamps=stamps_of("test_gpus", "test_new"))
    said = proof.page("s/index.md").rollup
    assert '<summary aria-label="1 test by name: 2 GPUs">1 test by name</summary>' in said
    assert '<a href="a.py_docs.html#L7"><code>test_gpus</code></a> <small>a.py</small>' in said
    assert '<summary aria-label="1 test by name: 4 GPUs">' in said
    assert '<a href="sub/b.py_docs.html"><code>test_b</code></a> <small>sub/b.py</small>' in said
    assert '<a href="s/sub/b.py_docs.html"><code>test_b</code></a>' in proof.front()
    folders = proof_of(addresses=Addresses(directories=True)).page("s/index.md").rollup
    assert '<a href="sub/b.py_docs/index.html"><code>test_b</code></a>' in folders


def of_many_files(files, tests):
    """Give the stamps of a book with so many files of so many tests, which need a GPU."""
    needs = json.dumps({"needs": [["gpus", "1"]], "tests": {"": [f"test_{number:03}" for number in range(tests)]}}) + "\n"
    sources = [f"f{place // 50:03}/t{place:04}.py" for place in range(files)]
    stamps = {f"s/{path}_docs.md": Stamp("file", path, path, sha256=NOW, needs=needs) for path in reversed(sources)}
    folders = {f"s/{folder}/index.md": Stamp("index", folder, folder) for folder in {path[:4] for path in sources}}
    return {**stamps_of("test_a"), **folders, **stamps}


def test_skip_debt_of_a_large_book_names_a_few(proof_of):
    """Of thousands of tests the first ones are named, in the order of their pages, and the rest is found by what tests need."""
    stamps = {**of_many_files(400, 9), "s/suite-hardware.md": Stamp("suite-hardware", "Hardware", "")}
    last = run("docs/s/f003/t0199.py_docs.md::test_008", listing=NOW, source="f003/t0199.py", when="2026-11-20T10:00:00+00:00")
    proof = proof_of(last, stamps=stamps)
    shown = {
        "s/index.md": ("3,599", "3,579", "", "f000/t0000", "f000/t0002"),
        "s/f003/index.md": ("449", "429", "../", "t0150", "t0152"),
    }
    for page, (whole, others, up, first, third) in shown.items():
        debt = re.search(r'<details class="rb-named">.*?</details>', proof.page(page).rollup)[0]
        assert f'aria-label="20 of {whole} tests by name: 1 GPU"' in debt
        named = re.findall(r'<a href="([^"]*)_docs.html"><code>(.*?)</code>', debt)
        assert (len(named), named[0], named[-1]) == (20, (f"{first}.py", "test_000"), (f"{third}.py", "test_001"))
        assert f'and {others} others, in <a href="{up}suite-hardware.html#by-file">files by what their tests need</a>' in debt
    assert len(proof.front()) < 20_000
    del stamps["s/suite-hardware.md"]
    assert "<li>and 3,579 others</li>" in proof_of(stamps=stamps).page("s/index.md").rollup


def test_names_in_debt_are_told_by_the_digest(proof_of):
    """A test of another page that is called otherwise changes what a folder and the front page show, though their numbers stay."""
    stamps = stamps_of("test_a")
    proof, path = proof_of(a_run("test_a"), stamps=stamps), "s/sub/b.py_docs.md"
    other = proof_of(stamps={**stamps, path: replace(stamps[path], needs=stamps[path].needs.replace("test_b", "test_c"))})
    for page in ("s/index.md", "guide.md"):
        assert other.digest(page) != proof.digest(page)
    assert "test_c" in other.page("s/index.md").rollup


OWNERS = ("oncall: ring", "@acme/ring", "acmering", "Owners")


def test_owners_and_hardware_lead_on(proof_of):
    """A row of an owner leads to the owner's files, one of hardware to what it is enough for: nowhere where the book does not say that."""
    stamps = stamps_of("test_a", owners=OWNERS)
    plain = proof_of(a_run("test_a"), a_run("test_a", machine=TWO_GPUS), stamps=stamps)
    assert '<th scope="row">oncall: ring</th>' in plain.page("s/index.md").rollup
    assert f'<th scope="row">{TWO_GPUS}</th>' in plain.page("s/index.md").rollup
    overviews = {f"s/{kind}.md": Stamp(kind, kind, "") for kind in ("suite-owners", "suite-hardware")}
    linked = proof_of(stamps={**stamps, **overviews})
    said = linked.page("s/index.md").rollup
    assert '<th scope="row"><a href="suite-owners.html#oncall-ring">oncall: ring</a></th>' in said
    assert '<a href="suite-owners.html#acmering">@acme/ring</a>' in said
    assert '<a href="suite-owners.html#acmering_1">acmering</a>' in said
    assert '<a href="suite-owners.html#owners_1">Owners</a>' in said
    assert '<th scope="row"><a href="suite-hardware.html?row=2#hardware">2 × NVIDIA H200</a></th>' in said
    assert '<a href="suite-hardware.html?row=none#hardware">CPU, x86_64</a>' in said
    assert '<a href="s/suite-owners.html#oncall-ring">' in linked.front()
    folders = proof_of(stamps={**stamps, **overviews}, addresses=Addresses(directories=True)).page("s/index.md").rollup
    assert '<a href="suite-owners/index.html#oncall-ring">' in folders
    assert '<a href="suite-hardware/index.html?row=2#hardware">' in folders
    many = proof_of(stamps={**stamps, **overviews, "s/suite-owners-a.md": Stamp("suite-owners", "Owners: a", "")})
    assert '<a href="suite-owners.html?row=%40acme%2Fring#owners">@acme/ring</a>' in many.page("s/index.md").rollup
    digests = [proof.digest("s/index.md") for proof in (plain, linked, many)]
    assert len(set(digests)) == 3


def test_nothing_is_counted_where_nothing_is(proof_of):
    """A listing that takes no time is none of the slowest, and a month in which no test was run as it is now is none of the months."""
    said = Seen(proof_of(a_run("a.py", case={}, kind="script", duration=0.001)).page("s/index.md").rollup).text
    assert "1 passed" in said
    assert "Slowest" not in said
    assert "Freshness" not in said


def test_rows_of_folders_say_how_much_is_proved(proof_of):
    """Beside each file and each subfolder stands how it is: what fails first; nothing beside what has no tests."""
    stamps = {**stamps_of("test_a", "test_b"), "s/c.py_docs.md": Stamp("file", "c", "c.py", sha256=NOW)}
    rows = proof_of(a_run("test_a"), stamps=stamps).page("s/index.md").rows
    assert {path: Seen(row).text for path, row in rows.items()} == {PAGE: "1 of 2 proved", "s/sub/index.md": "never run"}


def test_debt_says_what_hardware_is_owed(proof_of):
    """Tests that run on any machine are told apart by their ranks; where pages do not say what a skipped test needs, nothing is made up."""
    groups = [
        ([["gpus", "2"], ["backend", "nccl"], ["world size", "2", ""]], "test_gpus"),
        ([["world size", "2", ""], ["backend", "gloo", ""]], "test_ranks"),
        ([], "test_free"),
        ([["device", "cpu", ""]], "test_skips"),
    ]
    needs = "".join(json.dumps({"needs": need, "tests": {"": [test]}}) + "\n" for need, test in groups)
    stamps = stamps_of()
    stamps[PAGE] = replace(stamps[PAGE], needs=needs)
    skipped = [a_run("test_skips", Outcome.SKIPPED, reason="no time"), a_run("test_gpus", Outcome.SKIPPED, needs=("2 GPUs",))]
    said = Seen(proof_of(*skipped, stamps=stamps).page("s/index.md").rollup).text
    assert "2 GPUs, backend nccl1 test: 1 skipped; smallest machine: 2 GPUs, backend nccl" in said
    assert "world size 21 test: 1 never run; smallest machine: CPU" in said
    assert "no GPU1 test: 1 never run; smallest machine: CPU" in said
    assert "what their pages do not say1 test: 1 skipped" in said


def test_tests_and_other_listings_are_counted_apart(proof_of):
    """What a page says of its runs says what is counted; a page of which nothing was run says what the command runs."""
    command = run(f"docs/{PAGE}::how-to-run-it", source="", kind="shell", when="2026-11-20T10:00:00+00:00")
    proof = proof_of(a_run("test_a"), command, stamps=stamps_of("test_a", "test_b"))
    assert "2 tests: 1 passed, 1 never run. 1 other listing: 1 older version." in Seen(proof.page(PAGE).last_run).text
    assert "docs/ runs what this machine can." in Seen(proof.page("s/sub/b.py_docs.md").last_run).text


def test_a_suite_without_any_run_says_so_once(proof_of):
    """It has one line with the command that runs it, no chart and no badge."""
    proof = proof_of(stamps=stamps_of("test_a"))
    assert (
        Seen(proof.front()).text == "No machine has run anything of it yet: pytest --doctest-glob='*.md' docs/ runs what this machine can."
    )
    assert "docs/s/sub/" in proof.page("s/sub/index.md").rollup
    page = proof.page(PAGE)
    assert (page.badge, page.tests) == ("", {})
    assert proof.page("s/a.py_kw.md") is None
    assert {proof.digest(path) for path in stamps_of()} == {""}


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_a_share_is_never_rounded_to_all_or_nothing(part, whole):
    """100 % is all of it and 0 % is none of it."""
    part = min(part, whole)
    assert (share(part, whole) == "100 %") is (part == whole)
    assert (share(part, whole) == "0 %") is (part == 0)


def test_expected_tests_are_counted_as_they_are_read():
    """The quick count of a page's tests is that of the tests themselves, however they are folded."""
    from rankbook import needs
    from rankbook.requirements import Requirement

    two, none = (Requirement("gpus", "2", ""),), ()
    found = {f"A::test_shard_along_dim_{kind}": two for kind in ("a", "b", "ab")} | {"B::test_x": two, "test_family*": two}
    text = needs.write(found)
    assert [(want.words, number, names) for want, number, names in expected.counted(text, 2)] == [
        (("2 GPUs",), len(found), tuple(needs.read(text))[:2])
    ]
    assert expected.counted("{") == ()
    assert expected.missing({"test_family*": two, "test_p": none, "test_q": none}, {"test_family_cpu", "test_p[1]"}).keys() == {"test_q"}


# Ranks

ENDS = (
    RankEnd("rank 0", None, 0.25, 4.1, called="all_reduce (a.py:40)", called_at=2.1),
    RankEnd("rank 1", -9, 0.31, 2.2, 0.9, called="broadcast (a<b>.py:38)", called_at=1.75),
    RankEnd("rank 2", 0, 0.3, 3.9),
    RankEnd("rank 3", 3, 0.33, 1.2),
)
HEARD = "rank 1 died by SIGKILL 2.2 s after its start; rank 0 waits in all_reduce (a.py:40); rank 2 waits in barrier (a.py:41)"


@pytest.mark.parametrize("between", ["", "s/way/index.md"])
def test_a_row_through_folders_that_hold_nothing_else_has_a_badge(proof_of, between):
    """A table of folders that names `way/inner/` in one row shows how it stands, whether or not `way` has a page of its own."""
    stamps = {
        "s/index.md": Stamp("index", "Suite", ""),
        "s/way/inner/index.md": Stamp("index", "inner", "way/inner"),
        "s/way/inner/a.py_docs.md": Stamp("file", "a", "a.py", sha256=NOW),
    }
    stamps |= {between: Stamp("index", "way", "way")} if between else {}
    rows = proof_of(a_run(), stamps=stamps).page("s/index.md").rows
    assert ">passed<" in rows["s/way/inner/index.md"]


def test_a_failed_run_of_several_ranks_has_a_lane_for_each(proof_of):
    """Each lane has the rank's start and end, how it ended, and what was last heard of it; a table says the same."""
    crashed = a_run(outcome=Outcome.CRASHED, ranks=4, reason=HEARD, receipt=Receipt(ENDS))
    found = lanes(crashed)
    assert [(lane.name, lane.mark, lane.end) for lane in found] == [
        ("rank 0", "alive", "still alive when the run ended"),
        ("rank 1", "died", "died by SIGKILL"),
        ("rank 2", "done", "ended in order"),
        ("rank 3", "died", "left with exit status 3"),
    ]
    assert [lane.said for lane in found][0::2] == ["waits in all_reduce (a.py:40)", "waits in barrier (a.py:41)"]
    drawn = proof_of(crashed).page(PAGE).last_run
    assert diagram(crashed) in drawn
    seen = Seen(drawn)
    labels = [values["aria-label"] for tag, values in seen.tags if tag == "svg"]
    said = "rank 0 still alive when the run ended; rank 1 died by SIGKILL; rank 2 ended in order; rank 3 left with exit status 3"
    assert labels == [said, said]  # one for a desk, one for a phone
    assert "rank 10.310 s0.900 s2.510 sdied by SIGKILLbroadcast (a<b>.py:38) after 1.750 s" in seen.text


def test_the_ranks_of_a_failed_run_stay_when_its_test_is_edited(proof_of):
    """They are of use just then; what stands above them says that they are of an older version, and those of a test as it is come first."""
    values = {"ranks": 4, "reason": HEARD, "receipt": Receipt(ENDS)}
    hung = a_run("test_hung", Outcome.HUNG, listing=BEFORE, day=21, **values)
    crashed = a_run("test_crashed", Outcome.CRASHED, **values)
    passed = a_run("test_passed", listing=BEFORE, day=21, **values)
    failed = a_run("test_passed", Outcome.FAILED, listing=BEFORE, day=19, **values)
    stamps = stamps_of("test_hung", "test_crashed", "test_passed")
    drawn = proof_of(hung, crashed, passed, failed, stamps=stamps).page(PAGE).last_run
    said = re.findall(r"<p>Ranks of <code>(.*?)</code>, (.*?):</p>", drawn)
    assert said == [("test_crashed", "which crashed"), ("test_hung", "which hung in an older version")]
    assert diagram(hung) in drawn


SAID = """\
RuntimeError: Process 1 exited with error code 10 and exception:
Traceback (most recent call last):
  File "/elsewhere/site-packages/torch/a.py", line 163, in run
  File "docs/s/a.py_docs.md", line 163, in test_a
  File "/home/another/docs/s/a.py_docs.md", line 164, in helper
docs/s/a.py_docs.md:165: AssertionError
rank 0 waits in all_reduce (docs/s/a.py_docs.md:166)
so do docs/s/a.py_docs.md:3 and my_docs/s/a.py_docs.md:163 and docs/s/a.py_docs.md:1630x
"""
IN_SOURCE = """\
RuntimeError: Process 1 exited with error code 10 and exception:
Traceback (most recent call last):
  File "/elsewhere/site-packages/torch/a.py", line 163, in run
  File "a.py", line 12, in test_a
  File "a.py", line 13, in helper
a.py:14: AssertionError
rank 0 waits in all_reduce (a.py:15)
so do docs/s/a.py_docs.md:3 and my_docs/s/a.py_docs.md:163 and docs/s/a.py_docs.md:1630x
"""


def test_a_failure_is_told_in_lines_of_the_source(proof_of):
    """Where a run names lines of its page it is shown with those of the source, each of which leads there; other files stay as they are."""
    heard = {"doing": "is in sleep (docs/s/a.py_docs.md:170)", "called": "barrier (docs/s/a.py_docs.md:169)"}
    failed = a_run(
        outcome=Outcome.HUNG, line=158, ranks=2, reason=SAID, receipt=Receipt((ENDS[2], RankEnd("rank 1", None, 0.1, 1.0, **heard)))
    )
    assert failed.case["line"] == 7
    proof = proof_of(failed, stamps=stamps_of("TestA::test_a"))
    drawn = proof.page(PAGE).last_run
    assert IN_SOURCE.strip() in Seen(drawn).text
    assert "_docs.md:1" not in Seen(drawn).text.replace("docs/s/a.py_docs.md:1630x", "").replace("my_docs/s/a.py_docs.md:163", "")
    links = re.findall(r'<a href="#L(\d+)">([^<]*)</a>', drawn)
    assert links == [
        ("12", "a.py&quot;, line 12"),
        ("13", "a.py&quot;, line 13"),
        ("14", "a.py:14"),
        ("15", "a.py:15"),
        ("18", "a.py:18"),
        ("19", "a.py:19"),
    ]
    titles = re.findall(r"<title>(rank 1 .*?)</title>", drawn)
    ended = "rank 1 still alive when the run ended 1.1 s after the start of the run"
    assert titles == [f"{ended}. is in sleep (a.py:19). It called last barrier (a.py:18)"] * 2
    assert "a.py_docs.md:16" not in proof.front()


def test_a_failure_of_another_version_leads_to_no_line(proof_of):
    """The page lists another text now: the line is that of the one that was run."""
    failed = a_run(outcome=Outcome.FAILED, listing=BEFORE, line=158, reason="it fails (docs/s/a.py_docs.md:163), as said")
    drawn = proof_of(failed, stamps=stamps_of("TestA::test_a")).page(PAGE).last_run
    assert "it fails (a.py:12), as said" in drawn
    assert "#L12" not in drawn


def test_rows_stand_in_the_order_of_the_source(proof_of):
    """Whatever lines the tests had on the page when each was run: that grows, and what is run later stands further down on it."""
    first = a_run("TestA::test_first", line=300, case={"id": "TestA::test_first", "line": 5}, day=20)
    second = a_run("TestA::test_second", line=165, case={"id": "TestA::test_second", "line": 15}, day=18)
    command = run(f"docs/{PAGE}::how-to-run-it", source="", kind="shell", line=70)
    text = Seen(proof_of(second, first, command, stamps=stamps_of("TestA::test_first", "TestA::test_second")).page(PAGE).last_run).text
    assert text.index("how-to-run-it") < text.index("TestA::test_first") < text.index("TestA::test_second")


def test_a_script_is_told_in_its_own_lines(proof_of):
    """A source that is run as a whole begins behind the line of its fence."""
    failed = a_run("a.py", Outcome.FAILED, kind="script", line=151, case={}, reason="fails (docs/s/a.py_docs.md:152)")
    assert 'fails (<a href="#L1">a.py:1</a>)' in proof_of(failed).page(PAGE).last_run


def test_a_page_made_by_a_person_keeps_its_lines(proof_of):
    """They are those that its reader can find."""
    failed = run("docs/guide.md::first", Outcome.FAILED, source="", line=3, reason="fails (docs/guide.md:4)")
    assert "fails (docs/guide.md:4)" in proof_of(failed).page("guide.md").last_run


def test_an_owner_without_tests_has_no_row(tmp_path, proof_of):
    """A bar of nothing says nothing, and nothing is read aloud for it."""
    told = {**stamps_of("test_a", owners=("ring",)), "s/c.py_docs.md": Stamp("file", "c", "c.py", sha256=NOW, owners=("nobody",))}
    rollup = proof_of(a_run("test_a"), stamps=told).page("s/index.md").rollup
    assert "ring" in rollup
    assert "nobody" not in rollup
    assert 'aria-label=""' not in rollup


def test_a_lane_says_what_its_rank_has_called_last():
    """It has a mark at the moment, and the function's name beside the rank's end, unless the rank is said to wait in it."""
    drawn = diagram(a_run(outcome=Outcome.CRASHED, ranks=4, reason=HEARD, receipt=Receipt(ENDS)))
    svg, phone = re.findall("<svg.*?</svg>", drawn, re.DOTALL)
    assert svg.count("l4 5l-4 5l-4 -5z") == phone.count("l4 5l-4 5l-4 -5z") == 2
    assert re.findall(r">(?:rank \d: )?([^<>]*)</text>(?=<text[^>]*>after)", svg) == ["died by SIGKILL"]
    assert ">after broadcast</text>" in svg
    assert ">rank 1: died by SIGKILL after broadcast</text>" in phone
    assert "after all_reduce" not in drawn
    assert "It called last broadcast (a&lt;b&gt;.py:38)</title>" in drawn


def test_what_was_heard_is_said_of_the_ranks_that_were_last():
    """Where a run started its ranks twice, those that had ended before did not do what was heard at its end."""
    before = tuple(replace(end, exit_code=0) for end in ENDS)
    found = lanes(a_run(outcome=Outcome.HUNG, reason=HEARD, receipt=Receipt((*before, *ENDS))))
    assert [lane.said for lane in found[:4]] == ["", "", "", ""]
    assert found[4].said == "waits in all_reduce (a.py:40)"


def test_ranks_of_other_starts_are_told_apart(tmp_path):
    """Of a listing that fails on the second of its numbers of ranks those ranks have lanes; where both starts matter, lanes say which."""
    write_project(tmp_path, theme=False)
    script = 'import os\nimport sys\n\nsys.exit(int(os.environ["RANK"] == "1" and os.environ["WORLD_SIZE"] == "3"))\n'
    (tmp_path / "docs/index.md").write_text(f'# Mine\n\n```python {{ranks="2,3"}}\n{script}```\n\n<!-- rankbook:last-run -->\n')
    generate(tmp_path)
    words = [sys.executable, "-m", "pytest", "--doctest-glob=*.md", "docs/index.md"]
    assert "1 failed" in subprocess.run(words, cwd=tmp_path, check=False, capture_output=True, text=True).stdout
    page = (build(tmp_path) / "index.html").read_text()
    lanes_of = re.findall(r'<g class="rb-lane[^"]*"><title>(rank \d) ', page)
    assert lanes_of == [f"rank {rank}" for rank in range(3)] * 2  # one for a desk, one for a phone
    assert "It had started 2 ranks before, which ended in order." in page
    both = (*ENDS[:2], *(replace(end, started=9.0) for end in ENDS[:3]))
    drawn = diagram(a_run(outcome=Outcome.CRASHED, receipt=Receipt(both)))
    assert re.findall("<title>(rank .*?) (?:died|still|ended)", drawn)[:5] == [
        *(f"rank {rank} of 2" for rank in range(2)),
        *(f"rank {rank} of 3" for rank in range(3)),
    ]
    assert "of 2" not in diagram(a_run(outcome=Outcome.CRASHED, receipt=Receipt((*ENDS[:2], *ENDS[:3]))))  # all at once


def test_lanes_fill_the_drawing():
    """The axis goes from the first start to the last end: what went before the ranks takes no room."""
    ends = (RankEnd("rank 0", 1, 60.0, 0.5), RankEnd("rank 1", 1, 60.1, 0.9))
    drawn = diagram(a_run(outcome=Outcome.CRASHED, receipt=Receipt(ends)))
    assert re.findall(r"([\d.]+) s</text>", drawn)[:3] == ["60", "60.5", "61"]
    first, second = re.findall(r'<line x1="([\d.]+)" x2="([\d.]+)"', drawn)[:2]
    assert (float(first[0]), float(second[1])) == (84.0, 524.0)


BOTH_RAISED = """\
RuntimeError: Process 0 exited with error code 10 and exception:
Traceback (most recent call last):
  File "a.py", line 3, in test_it
    dist.barrier()
RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:1

Process 1 exited with error code 10 and exception:
Traceback (most recent call last):
  File "a.py", line 2, in test_it
    assert got == 1
AssertionError: Tensor-likes are not close!
"""


def test_the_line_that_says_most_is_of_the_rank_that_was_wrong():
    """What a rank says whose connection another has closed is not why the test failed, unless nobody says more."""
    assert in_a_line(BOTH_RAISED) == "Process 1 exited with error code 10 and exception: AssertionError: Tensor-likes are not close!"
    alone = BOTH_RAISED.partition("\n\n")[0]
    assert in_a_line(alone, 400).startswith("RuntimeError: Process 0 exited with error code 10 and exception: RuntimeError: [gloo")
    assert in_a_line(BOTH_RAISED.replace("Connection closed by peer [127.0.0.1]:1", "no")).endswith(
        "RuntimeError: [gloo/transport/tcp/pair.cc:553] no"
    )
    assert in_a_line("AssertionError: of two lines:\nthis and\nthat") == "AssertionError: of two lines:"


def test_many_ranks_show_those_that_did_not_end_in_order():
    """Of hundreds of ranks the diagram has those that died; the table has all."""
    ends = tuple(RankEnd(f"rank {number}", -11 if number == 200 else 0, 0.1, 1.0) for number in range(256))
    drawn = diagram(a_run(outcome=Outcome.CRASHED, receipt=Receipt(ends)))
    assert "<title>rank 200 died by SIGSEGV" in drawn
    assert "224 more ranks are in the table only" in drawn
    assert drawn.count("<tr>") == 257


def test_a_run_that_passed_or_had_one_rank_has_no_diagram(proof_of):
    """There is nothing to compare."""
    alone = a_run(outcome=Outcome.CRASHED, receipt=Receipt(ENDS[:1]))
    assert diagram(alone) == ""
    assert "<svg" not in proof_of(a_run(receipt=Receipt(ENDS), ranks=4)).page(PAGE).last_run


def test_the_colour_of_a_group_is_its_own():
    """No two groups look alike, and only what passed has the green of what passed."""
    assert len({group.css for group in Group}) == len(Group) == len({group.word for group in Group})
    assert [group.word for group in Group if group.ran] == ["passed", "failed as expected", "failed"]


def test_nothing_is_shown_of_an_empty_book():
    """Without pages and runs there is nothing, and it is no error."""
    assert "No machine has run anything of it yet" in Proof.of(Standing(), {}).front()


# On the site


FAMILY = {
    "suite/common_family.py": 'class Family:\n    def test_inherited(self):\n        """It is."""\n',
    "suite/test_family.py": (
        "import unittest\n\nfrom common_family import Family\n\n\nclass TestFamily(Family, unittest.TestCase):\n    def test_own(self):\n"
        "        pass\n\n\nclass TestOther(Family, unittest.TestCase):\n    def setUp(self):\n        raise ValueError\n"
    ),
}


def proved(root, files, name, *words):
    """Add files to a small project, execute the page of one in its suite, and build the site; give that page of it."""
    write_project(root)
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        with (root / path).open("a") as file:
            file.write(text)
    subprocess.run(["git", "init", "--quiet", root], check=True)
    generate(root)
    return proved_again(root, name, *words)


def proved_again(root, name, *words):
    """Execute the page of a file of that project, pytest being called with some words more, and build the site; give that page of it."""
    page = f"docs/book/suite/{name}_docs.md"
    subprocess.run([sys.executable, "-m", "pytest", "--doctest-glob=*.md", page, *words], cwd=root, check=False, capture_output=True)
    return shown_now(root, name)


def shown_now(root, name):
    """Build the site of that project; give the page of a file."""
    return (build(root) / f"book/suite/{name}_docs.html").read_text()


def badge_of(test, page):
    """Give the class of the badge in the table of tests of a page."""
    found = re.search(rf"<code>{test}</code></a> <a class=rankbook-run [^>]*><span class=\"rankbook-outcome rankbook-(\w+)", page)
    return found and found[1]


def test_the_page_of_a_book_that_was_proved(tmp_path):
    """Each test of the table has its own badge, inherited ones too; tests and other listings are counted apart; a second look is no run."""
    text = proved(tmp_path, FAMILY, "test_family.py")
    rows = re.findall(r"<code>(test_\w+)</code></a> <a class=rankbook-run [^>]*><span class=\"rankbook-outcome rankbook-(\w+)", text)
    assert rows == [("test_own", "passed"), ("test_inherited", "passed"), ("test_inherited", "failed")]
    said = text.partition('<div class="rankbook-runs">')[2]
    assert said.startswith("<p>3 tests: 2 passed, 1 failed. 1 other listing: 1 failed. Hardware: ")
    assert "<th scope=col>Ranks" not in said


IMPORTED = {
    "suite/common_case.py": (
        "import unittest\n\n\nclass Base:\n    def test_of_base(self):\n        pass\n\n\n"
        "class CommonCase(Base, unittest.TestCase):\n    def test_common(self):\n        pass\n"
    ),
    "suite/test_here.py": (
        "from common_case import CommonCase\n\n\nclass TestHere(CommonCase):\n    pass\n\n\ndef test_one():\n    pass\n\n\n"
        "def test_two():\n    assert test_one\n\n\n# more\n"
    ),
}


def test_a_test_that_another_file_defines_leads_to_no_line_of_this_one(tmp_path):
    """Its row leads to its class, where that is in the file, and nowhere, where the file only imports it; rows are in their order."""
    shown = proved(tmp_path, IMPORTED, "test_here.py").partition('<div class="rankbook-runs">')[2]
    rows = re.findall(r"<tr id=[^>]*><td>(?:<a href=([^>]*)>)?<code>(.*?)</code>", shown)
    assert [(link.strip('"'), name.replace("<wbr>", "")) for link, name in rows if "how-to" not in name] == [
        ("", "CommonCase::test_common"),
        ("", "CommonCase::test_of_base"),
        ("#L4", "TestHere::test_common"),
        ("#L4", "TestHere::test_of_base"),
        ("#L8", "test_one"),
        ("#L12", "test_two"),
    ]


RANKS = """\
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, port):
    dist.init_process_group("gloo", f"tcp://localhost:{port}", rank=rank, world_size=2)
    dist.barrier()
    assert rank == 0, "rank one is wrong"
    dist.barrier()


def test_ranks():
    mp.spawn(work, (free_port(),), nprocs=2)


def free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]
"""


def test_a_failed_rank_leads_to_its_line(tmp_path):
    """What real ranks say of their page leads to the lines of the source, which are on the page."""
    shown = proved(tmp_path, {"suite/test_ranks.py": RANKS}, "test_ranks.py")
    links = set(re.findall(r'<a href="?#L(\d+)"?>(suite/test_ranks\.py[^<]*)</a>', shown))
    assert {("8", "suite/test_ranks.py&quot;, line 8"), ("7", "suite/test_ranks.py:7")} <= links
    assert all(re.search(rf'id="?L{line}[">\s]', shown) for line, _ in links)
    assert not re.search(r"test_ranks\.py_docs\.md(?::|&quot;, line )\d", shown)


BADGES = re.compile(r'<a href="?([^">]*)"?[^>]*><code>[^<]*</code></a> <[^>]*><span class="rankbook-outcome rankbook-')


@pytest.mark.parametrize("directories", [False, True])
def test_rows_have_badges_in_both_ways_of_addressing(tmp_path, directories):
    """The tables of a folder have the badges of its files and subfolders, whether or not each page is the index of a folder."""
    write_project(tmp_path, theme=False)
    settings = (tmp_path / "mkdocs.yml").read_text()
    (tmp_path / "mkdocs.yml").write_text(settings.replace("use_directory_urls: false", f"use_directory_urls: {str(directories).lower()}"))
    Ledger(tmp_path / Settings().ledger).record([run("docs/book/suite/test_ring.py_docs.md::TestRing::test_token_comes_back")])
    site = build(tmp_path)
    found = {page: BADGES.findall((site / page).read_text()) for page in ("book/index.html", "book/suite/index.html")}
    assert found == {
        "book/index.html": ["suite/" if directories else "suite/index.html"],
        "book/suite/index.html": ["test_ring.py_docs/" if directories else "test_ring.py_docs.html"],
    }


LIBRARY = {
    "pyproject.toml": '\n[tool.pytest.ini_options]\npythonpath = ["lib"]\n',
    ".gitignore": "made.py\n",
    "lib/number.py": "from made import ONE\n\nTWO = ONE + 1\n",
    "lib/made.py": "ONE = 1\n",
    "suite/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef three():\n    return 3\n",
    "suite/test_number.py": "from number import TWO\n\n\ndef test_number(three):\n    assert TWO < three\n",
}


WARNS = {"suite/test_warns.py": 'import warnings\n\n\ndef test_warns():\n    warnings.warn("x")\n'}


def test_the_last_run_of_a_class_of_hardware_stands(tmp_path):
    """A failure that came of an option of pytest is over with a run without it, and so is what had passed by one."""
    found = [badge_of("test_warns", proved(tmp_path, WARNS, "test_warns.py", "-W", "error"))]
    for words in ((), ("-W", "error")):
        page = proved_again(tmp_path, "test_warns.py", *words)
        found.append(badge_of("test_warns", page))
        assert f"1 test: 1 {found[-1]}" in page
    assert found == ["failed", "passed", "failed"]


def test_what_has_changed_beside_a_test_takes_its_proof(tmp_path):
    """The badge tells of a conftest file and of an imported module without a page that have changed, and comes back with them."""

    def badge():
        return badge_of("test_number", shown_now(tmp_path, "test_number.py"))

    assert badge_of("test_number", proved(tmp_path, LIBRARY, "test_number.py")) == "passed"
    for path, found in (("suite/conftest.py", "older"), ("lib/number.py", "older"), ("lib/made.py", "passed")):
        before = (tmp_path / path).read_text()
        (tmp_path / path).write_text(f"{before}\nMORE = 1\n")
        assert badge() == found, path
        (tmp_path / path).write_text(before)
        assert badge() == "passed", path
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = lib\nxfail_strict = true\n")  # pytest reads it before the other file
    assert badge() == "older"
    (tmp_path / "pytest.ini").unlink()
    assert badge() == "passed"
    (tmp_path / "lib/number.py").rename(tmp_path / "number.py")
    assert badge() == "older"
    (tmp_path / "number.py").rename(tmp_path / "lib/number.py")
    assert badge() == "passed"
    (tmp_path / "lib").rename(tmp_path / "lib2")
    assert badge() == "older"
    assert "before a file beside the listing changed" in rankbook("ledger", "debt", cwd=tmp_path)


GOES_THROUGH = "import pathlib\n\n\ndef test_new():\n    assert len(list((pathlib.Path(__file__).parent / 'cases').glob('*.txt'))) == 1\n"
IMPORTS = "import number\n\n\ndef test_new():\n    assert number.ONE == 1\n"
NEW = {
    "in a folder that it goes through": (GOES_THROUGH, "suite/cases/a.txt", "suite/cases/b.txt"),
    "below a folder that it goes through": (GOES_THROUGH.replace(".glob", ".rglob"), "suite/cases/a.txt", "suite/cases/in/b.txt"),
    "in the place of a module": (IMPORTS, "lib/number.py", "suite/number.py"),
}


@pytest.mark.parametrize(("test", "there", "new"), NEW.values(), ids=NEW.keys())
def test_a_new_file_that_a_test_would_see_takes_its_proof(tmp_path, test, there, new):
    """The badge and the debt say what `--stale` says of a file that was not there; other files, and what Git ignores, take nothing."""
    files = {
        "pyproject.toml": '\n[tool.pytest.ini_options]\npythonpath = ["lib", "."]\n',
        ".gitignore": "*.log\n",
        there: "ONE = 1\n",
        "suite/test_new.py": test,
    }

    assert badge_of("test_new", proved(tmp_path, files, "test_new.py")) == "passed"
    for other in ("suite/cases/more.log", "suite/cases/.hidden/c.txt", "lib/other.py", "suite/elsewhere/d.txt"):
        (tmp_path / other).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / other).write_text("")
    assert badge_of("test_new", shown_now(tmp_path, "test_new.py")) == "passed"
    (tmp_path / new).parent.mkdir(exist_ok=True)
    (tmp_path / new).write_text("ONE = 2\n")
    page = shown_now(tmp_path, "test_new.py")
    assert badge_of("test_new", page) == "older"
    assert f"it passed, but {new} has changed since" in page
    assert "before a file beside the listing changed" in rankbook("ledger", "debt", cwd=tmp_path)
    words = ("-m", "pytest", "--doctest-glob=*.md", "docs/book/suite/test_new.py_docs.md", "-k", "test_new", "--stale")
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert "2 failed" in done.stdout, done.stdout
    assert badge_of("test_new", shown_now(tmp_path, "test_new.py")) == "failed"


@pytest.mark.parametrize(("tree", "gone"), [("more", "older"), ("../more", "passed")])
def test_files_of_a_tree_that_only_a_run_was_told_of(tmp_path, tree, gone):
    """What `--source-path` has had is found where it lay; another machine need not have a tree outside of the project."""
    root = tmp_path / "project"
    files = {
        f"{tree}/suite/data.txt": "1\n",
        f"{tree}/more_code/__init__.py": "ONE = 1\n",
        "suite/test_more.py": 'import more_code\n\n\ndef test_more():\n    open("suite/data.txt")\n    assert more_code.ONE == 1\n',
    }
    page = proved(root, files, "test_more.py", f"--source-path={tree}")
    assert badge_of("test_more", page) == "passed"
    for path in (f"{tree}/suite/data.txt", f"{tree}/more_code/__init__.py"):
        before = (root / path).read_text()
        (root / path).write_text("TWO = 2\n")
        assert badge_of("test_more", shown_now(root, "test_more.py")) == "older", path
        (root / path).write_text(before)
        assert badge_of("test_more", shown_now(root, "test_more.py")) == "passed", path
    shutil.rmtree(root / tree)
    assert badge_of("test_more", shown_now(root, "test_more.py")) == gone


SHOTS = {"light": {"color_scheme": "light"}, "dark": {"color_scheme": "dark"}, "phone": {"viewport": {"width": 390, "height": 844}}}
READABLE = """items => {
  const channels = text => text.match(/[\\d.]+/g).map(Number);
  const linear = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const luminance = rgb => rgb.map(linear).reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
  const over = (rgba, ground) => ground.map((value, at) => rgba[at] * (rgba[3] ?? 1) + value * (1 - (rgba[3] ?? 1)));
  const ground = element => {
    const colour = channels(getComputedStyle(element).backgroundColor);
    return over(colour, element.parentElement ? ground(element.parentElement) : [255, 255, 255]);
  };
  return items.map(item => {
    const below = ground(item);
    const [light, dark] = [below, over(channels(getComputedStyle(item).color), below)].map(luminance).sort((a, b) => b - a);
    return [item.className, (light + 0.05) / (dark + 0.05)];
  });
}"""


@pytest.fixture(scope="module")
def shown_pages(tmp_path_factory):
    """A site of two pages with the real style sheet and script, around what the room gives: a file's and a folder's."""
    from rankbook.site.assets import script, style

    root = tmp_path_factory.mktemp("shown")
    crashed = a_run("test_crashed", Outcome.CRASHED, ranks=4, reason=HEARD, receipt=Receipt(ENDS))
    recorded = [one for states, _, _ in STATES.values() for one in states]
    named = [replace(one, node_id=f"{one.node_id}_{place}") for place, one in enumerate(recorded)]
    Ledger(root / Settings().ledger).record(
        [*named, crashed, *(replace(crashed, outcome=Outcome.PASSED, when=f"2026-11-0{d}") for d in (1, 2))]
    )
    proof = Proof.of(standing(Settings(root=root)), stamps_of("test_new", owners=("oncall: distributed",)))
    rows = [("TestA", "test_a"), ("", "test_crashed"), ("", "test_new")]
    page, folder = proof.page(PAGE, tests=rows), proof.page("s/index.md")
    bodies = {"file": f"<h1>a {page.badge}</h1>{page.last_run}{''.join(page.tests.values())}", "folder": f"<h1>s</h1>{folder.rollup}"}
    (root / "rankbook.js").write_text(script())
    (root / "rankbook.css").write_text(style())
    for name, body in bodies.items():
        head = f"<meta charset=utf-8><meta name=viewport content='width=device-width'><title>{name}</title>"
        head += "<link rel=stylesheet href=rankbook.css>"
        (root / f"{name}.html").write_text(
            f"<!doctype html><html lang=en><head>{head}</head><body data-md-color-scheme=default style='--md-default-bg-color:#fff'>"
            f"<script>if (matchMedia('(prefers-color-scheme: dark)').matches) {{ document.body.dataset.mdColorScheme = 'slate';"
            "document.body.style = 'background:#1e2129;color:#e2e4e9;--md-default-bg-color:#1e2129' }</script>"
            f"<main class=md-typeset>{body}</main><script src=rankbook.js></script></body></html>"
        )
    return root


@pytest.mark.browser
@pytest.mark.parametrize("options", SHOTS.values(), ids=SHOTS.keys())
@pytest.mark.parametrize("name", ["file", "folder"])
def test_proof_reads_well_everywhere(chromium, shown_pages, name, options):
    """In light, in dark and on a phone nothing is wider than the screen, and every badge, sign and small text has enough contrast."""
    context = chromium.new_context(**options)
    page = context.new_page()
    page.goto(f"file://{shown_pages}/{name}.html")
    widths = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert widths[0] <= widths[1]
    ratios = page.locator(".rankbook-outcome, .rb-strip b, small, time, figcaption").evaluate_all(READABLE)
    assert len(ratios) > 10
    assert min(ratio for _, ratio in ratios) >= 4.5, ratios
    context.close()


@pytest.mark.browser
def test_proof_reads_without_a_script_and_is_short_with_one(chromium, shown_pages):
    """Without script the date stands there and each history opens by the keyboard; with it the time is told from today."""
    still = chromium.new_context(java_script_enabled=False)
    page = still.new_page()
    page.goto(f"file://{shown_pages}/file.html")
    assert page.locator("time").first.inner_text() == "2026-11-20 10:00 UTC"
    summary = page.locator(".rankbook-runs td summary").first
    assert not page.locator(".rankbook-runs td details ul").first.is_visible()
    summary.focus()
    page.keyboard.press("Enter")
    assert page.locator(".rankbook-runs td details ul").first.is_visible()
    still.close()
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"file://{shown_pages}/file.html")
    first = page.locator("time").first
    assert first.get_attribute("title") == "2026-11-20 10:00 UTC"
    assert re.fullmatch(r"\d+ \w+ ago|in \d+ \w+", first.inner_text())
    context.close()
    context = chromium.new_context()
    page = context.new_page()
    page.clock.set_fixed_time("2026-11-22T08:00:00Z")  # not two days behind it, and the day before yesterday
    page.goto(f"file://{shown_pages}/file.html")
    assert page.locator("time").first.inner_text() == "1 day ago"
    context.close()
