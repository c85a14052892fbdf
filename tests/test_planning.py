"""What a page says that its tests need, and what is planned from it before any rank is started."""

import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rankbook import front_matter, listings, model, needs
from rankbook.cli import main
from rankbook.errors import ConfigError
from rankbook.listings.site import Site
from rankbook.pages.stamped_needs import stamped_needs
from rankbook.planning import Claim, claim_of_source, gpus_wanted, needs_of, plan_of, with_tree
from rankbook.required import Required, need_of_reason
from rankbook.requirements import KINDS, LOST, OUTCOMES, Requirement, of_text
from rankbook.smallest import smallest_machine
from rankbook.verdict import DECIDED, Machine, is_met

SITE = Site()

LAPTOP = Machine(
    gpus=0,
    capabilities=(),
    memory=16 * 1024**3,
    peer_access=False,
    multicast=False,
    platform=frozenset({"Linux", "x86"}),
    python="3.11.7",
    torch="2.13.0+cpu",
    cuda="",
    hip="",
    libraries={"NCCL": False, "LAPACK": True},
    backends={"gloo": True, "nccl": False, "ucc": False},
    devices={"xpu": False, "mps": False, "hpu": False},
    packages={"numpy": "2.1.0", "cupy": ""}.get,
    environment={"BACKEND": "gloo", "WORLD_SIZE": "3"},
)
"""A machine without GPUs."""

NODE = replace(
    LAPTOP,
    gpus=4,
    capabilities=("8.0",) * 4,
    gpu_memory=80 * 1024**3,
    peer_access=True,
    cuda="12.8",
    libraries={"NCCL": "2.21.5"},
    backends={"gloo": True, "nccl": True},
)
"""Four A100 in one node."""


def need(kind, value="", otherwise="skipped", evidence="", either=()):
    """Make a requirement as a page carries it."""
    return Requirement(kind, value, evidence, otherwise=otherwise, either=either)


ONE_OF = need("one of", "1 GPU or package cupy", either=((need("gpus", "1"),), (need("package", "cupy"),)))

# On the page

TEXTS = st.text(max_size=12)
PLAIN = st.builds(need, st.sampled_from([kind for kind in KINDS if kind != "one of"]), TEXTS, st.sampled_from(OUTCOMES), TEXTS)
REQUIREMENTS = PLAIN | st.builds(
    lambda value, either: need("one of", value, either=tuple(map(tuple, either))),
    TEXTS,
    st.lists(st.lists(PLAIN, min_size=1, max_size=2), min_size=1, max_size=2),
)
WORDS = st.from_regex(r"test_(shard_|gather_along_dim_)?[a-c]{0,3}", fullmatch=True)
IDS = st.builds(
    lambda holders, name, parameters: "::".join((*holders, name)) + parameters,
    st.lists(st.sampled_from(["TestA", "TestB", "Inner"]), max_size=2),
    WORDS,
    st.just("") | st.just("*") | TEXTS.map(lambda text: f"[{text}]"),
)
NEEDS = st.dictionaries(IDS, st.lists(REQUIREMENTS, max_size=3).map(tuple), max_size=12)


@given(NEEDS)
def test_a_page_gives_back_the_needs_of_its_tests(found):
    """What tests need is read from the front matter as it was written, whatever they are called and whatever they need.

    A forge shows the values of a front matter above the page: what tests need, which may be long, is none of them.
    """
    page = front_matter.write(front_matter.Stamp("file", "x", "x.py", needs=needs.write(found))) + "\n# x\n"
    assert yaml.safe_load(page.split("---\n")[1]) == {"title": "x", "rankbook": {"page": "file", "source": "x.py"}}
    values, offset = front_matter.split(page)
    assert page[offset:] == "\n# x\n"
    assert needs.read(front_matter.read(values).needs) == found


@given(NEEDS)
def test_line_ends_of_a_page_do_not_matter(found):
    """A page that was checked out with CR LF says the same."""
    page = front_matter.write(front_matter.Stamp("file", "x", "x.py", needs=needs.write(found))).replace("\n", "\r\n")
    (listing,) = listings.collect_text(page + "\r\n## Original Source\r\n\r\n```python\r\nx = 1\r\n```\r\n", "p.md", SITE)
    assert listing.about.needs == found


BROKEN = [
    "{",
    "1",
    "[]",
    "{}",
    '{"needs": [], "tests": []}',
    '{"needs": [["gpus", 2]], "tests": {"": ["test_a"]}}',
    '{"needs": [["gpu", "2"]], "tests": {"": ["test_a"]}}',
    '{"needs": [["gpus", "2", "lost"]], "tests": {"": ["test_a"]}}',
    '{"needs": [["gpus"]], "tests": {"": ["test_a"]}}',
    '{"needs": [["gpus", "2", "skipped", "", [], 1]], "tests": {"": ["test_a"]}}',
    '{"needs": ["gpus"], "tests": {"": ["test_a"]}}',
    '{"needs": [["gpus", "2"]], "tests": {"": "test_a"}}',
    '{"needs": [["gpus", "2"]], "tests": {"": [1]}}',
    '{"needs": [["gpus", "2"]], "tests": {"": [[]]}}',
    '{"needs": [["gpus", "2"]], "tests": {"": ["test_a", "test_a"]}}',
    '{"needs": [["gpus", "2"]], "tests": ' + "[" * 100_000,
]


@pytest.mark.parametrize("line", BROKEN, ids=range(len(BROKEN)))
def test_broken_needs_are_no_needs(line):
    """One line that is not as it must be voids all: nothing is planned from half of what a page says."""
    good = needs.write({"TestA::test_b": (need("gpus", "2"),)})
    assert needs.read(good)
    assert needs.read(good + line) == {} == needs.read(line)


@pytest.mark.parametrize("value", ["7", "[a, b]", "{a: b}", "true", "2026-13-45"])
def test_needs_of_another_shape_leave_the_page_as_it_is(value):
    """Front matter that a person has edited is still that of a generated page, or of none; it never ends in an error."""
    stamp = front_matter.read(front_matter.split(f"---\nrankbook:\n  page: file\n  needs: {value}\n---\n")[0])
    assert stamp is None or stamp.needs == ""


def test_names_that_begin_alike_are_written_once():
    """The variants of a test share what they have in common."""
    found = {f"TestA::test_shard_along_dim_{dim}_{kind}": (need("gpus", "2"),) for dim in range(3) for kind in ("even", "odd")}
    assert needs.write(found) == (
        '{"needs": [["gpus", "2"]], "tests": {"TestA": [["test_shard_along_dim_", '
        '"0_even", "0_odd", "1_even", "1_odd", "2_even", "2_odd"]]}}\n'
    )


def test_one_of_several_tests_is_found_by_its_family():
    """An entry for several tests stands for those that begin so, but for none that has its own, or that could be of two families."""
    wanted, other = (need("gpus", "2"),), (need("gpus", "4"),)
    found = {"A::test_b*": wanted, "A::test_b_own": other, "A::test_c*": wanted, "A::test_c_d*": other}
    assert needs.of_test(found, "A::test_b") == needs.of_test(found, "A::test_b[x]") == needs.of_test(found, "A::test_b_cpu") == wanted
    assert needs.of_test(found, "A::test_b_own") == other
    assert needs.of_test(found, "A::test_c_d_e") == needs.of_test(found, "A::test_bc") == needs.of_test(found, "B::test_b") == ()


def case(name, *requirements, family=""):
    """Make a test of a class."""
    return model.Test(f"A::{name}", name, 1, "x.py", requirements=requirements, family=family)


def test_what_the_front_matter_says():
    """It has what a machine can be asked for, and what tells how many GPUs a test gains from; neither places nor conditions."""
    placed = Requirement("gpus", "2", "skip_if_lt_x_gpu(2)", "x.py", 7)
    found = stamped_needs([
        case("test_a", placed, replace(placed, line=9), need("world size", "4", ""), need("condition", "LUCKY"), need("mark", "slow", "")),
        case("test_b", need("condition", "LUCKY"), need("package", "cupy", ""), need("platform", "not Windows", "absent")),
        case("test_c", need("gpus", "4", evidence="DTensorTestBase"), need("backend", "nccl", "absent")),
        case("test_c", need("gpus", "4", evidence="DTensorTestBase"), need("backend", "nccl", "absent")),
        case("test_d", need("disabled", "flaky")),
        case("test_d"),
    ])  # fmt: skip
    assert found == {
        "A::test_a": (need("gpus", "2"), need("world size", "4", "")),
        "A::test_b": (need("platform", "not Windows", "absent"),),
        "A::test_c": (need("gpus", "4", evidence="DTensorTestBase"), need("backend", "nccl", "absent")),
        "A::test_d": (),
    }


def test_of_a_family_that_could_be_mistaken_nothing_is_said():
    """A test that needs nothing is not taken for one of several that need a GPU, because its name begins like theirs."""
    several = case("test_a", need("gpus", "2"), family="one test for each case of `cases()`")
    assert stamped_needs([several, case("test_b")]) == {"A::test_a*": (need("gpus", "2"),), "A::test_b": ()}
    assert stamped_needs([several, case("test_a_b", need("gpus", "2"))]).keys() == {"A::test_a*", "A::test_a_b"}
    assert stamped_needs([several, case("test_a_b")]) == {"A::test_a*": (), "A::test_a_b": ()}


SUITE = """\
import pytest
import torch
from torch.testing._internal.common_distributed import MultiProcessTestCase, requires_nccl, skip_if_lt_x_gpu

cupy = pytest.importorskip("cupy")


class TestRing(MultiProcessTestCase):
    world_size = 2

    @requires_nccl()
    @skip_if_lt_x_gpu(2)
    def test_ring(self):
        pass

    def test_plain(self):
        pass


@pytest.mark.parametrize("way", ["a::b", "c"])
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_ways(way):
    pass


def test_disabled():
    pytest.skip("not today")
"""


def generated(tmp_path, source=SUITE, options=()):
    """Make the page of a test file and give its listing."""
    (tmp_path / "test_it.py").write_text(source)
    assert main(["gen", "test_it.py", "--root", str(tmp_path), "--out", "out", *options]) == 0
    return tmp_path / "out/test_it.py_docs.md"


@pytest.mark.parametrize("pack", ["rankbook", "repository", "repo-book"])
def test_a_generated_page_says_what_its_tests_need(tmp_path, capsys, pack):
    """Each test of the page's own listing has its needs, by the node id that pytest gives it."""
    (listing,) = (each for each in listings.collect(generated(tmp_path, options=["--pack", pack]), "p.md") if each.about)
    ring = needs_of(listing, "TestRing::test_ring")
    assert {need("gpus", "2"), need("backend", "nccl"), need("world size", "2", "")} <= set(ring)
    assert need("world size", "2", "") in needs_of(listing, "TestRing::test_plain")
    assert need("gpus", "2") not in needs_of(listing, "TestRing::test_plain")
    assert need("gpus", "1") in needs_of(listing, "test_ways[a::b]") == needs_of(listing, "test_ways[c]")
    assert plan_of([need for need in ring if need.otherwise != "absent"], LAPTOP).word == "skipped"
    assert needs_of(listing, "TestRing::test_new") == ()


def test_an_edited_listing_has_no_needs(tmp_path, capsys):
    """What was said of a source is not said of what a person has made of it."""
    page = generated(tmp_path)
    text = page.read_text()
    edits = [
        text.replace("world_size = 2\n", "world_size = 4\n"),
        text.replace('  sha256: "', '  sha256: "0'),
        text.replace("  encoding: ", "  e: "),
    ]
    for edited in edits:
        assert edited != text
        page.write_text(edited)
        (listing,) = (each for each in listings.collect(page, "p.md") if each.about)
        assert listing.about.needs and needs_of(listing, "TestRing::test_ring") == ()


def test_a_page_with_long_needs_is_still_a_generated_one(tmp_path, capsys):
    """It is written anew and removed as others are, and is no source, however long its front matter is."""
    cases = "\n".join(f"    @skip_if_lt_x_gpu({1 + number % 8})\n    def test_{number * 7919:x}(self): pass" for number in range(1500))
    head = "from torch.testing._internal.common_distributed import *\nclass TestMany(MultiProcessTestCase):\n"
    page = generated(tmp_path, head + cases)
    data = page.read_bytes()
    assert data.index(b"\n---\n") > 20_000
    assert generated(tmp_path, f"{head}{cases}\n# more").read_bytes() != data
    assert generated(tmp_path, head + cases).read_bytes() == data
    assert front_matter.is_generated(data[:2048], is_cut=True) and front_matter.is_generated(
        data.replace(b"\n", b"\r\n")[:2048], is_cut=True
    )
    (tmp_path / "test_it.py").unlink()
    (tmp_path / "other.py").write_text("x = 1\n")
    assert main(["gen", "other.py", "--root", str(tmp_path), "--out", "out"]) == 0
    assert not page.exists()


@pytest.mark.parametrize(
    "head", [b"", b"---", b"---\n", b"---\ntitle: x\n", b"# Page\n---\nrankbook:\n  page: file\n", b"---\n: [\nrankbook:\n"]
)
def test_a_persons_page_is_not_taken_for_a_generated_one(head):
    """Neither when all of it is known nor when only its top is."""
    assert not front_matter.is_generated(head, is_cut=True) and not front_matter.is_generated(head, is_cut=False)


def test_front_matter_without_an_end_is_none():
    """A whole file that begins like a stamp is YAML, not a page."""
    data = front_matter.write(front_matter.Stamp("file", "x", "x.py")).removesuffix("---\n").encode()
    assert front_matter.is_generated(data, is_cut=True) and not front_matter.is_generated(data, is_cut=False)


# Planning

REASONS = [
    (need("gpus", "2"), LAPTOP, "needs 2 GPUs, and this machine has none"),
    (need("gpus", "8"), NODE, "needs 8 GPUs, and this machine has 4"),
    (need("gpus", "<= 0"), NODE, "needs no GPU at all, and this machine has 4"),
    (need("gpus", "WORLD_SIZE"), LAPTOP, "needs WORLD_SIZE GPUs, and this machine has none"),
    (need("backend", "nccl"), LAPTOP, "needs backend nccl, which this torch is built without"),
    (need("backend", "nccl or ucc"), LAPTOP, "needs backend nccl or ucc, and this torch is built with neither"),
    (need("backend", "not nccl"), NODE, "does not run with backend nccl, which is there"),
    (need("package", "cupy"), LAPTOP, "needs package cupy, which is not installed"),
    (need("package", "numpy >= 3.0"), LAPTOP, "needs package numpy >= 3.0, and 2.1.0 is installed"),
    (need("capability", ">= 9.0"), NODE, "needs compute capability >= 9.0, and this machine's GPU has 8.0"),
    (need("capability", ">= 9.0"), LAPTOP, "needs compute capability >= 9.0, and this machine has no GPU"),
    (need("library", "torch >= 3.0"), NODE, "needs library torch >= 3.0, and this is 2.13.0+cpu"),
    (need("library", "NCCL >= 2.27"), NODE, "needs library NCCL >= 2.27, and this is 2.21.5"),
    (need("library", "NCCL >= 2.7"), LAPTOP, "needs library NCCL >= 2.7, which this torch does not have"),
    (need("device", "cuda"), LAPTOP, "needs device cuda, and this machine has no GPU"),
    (need("device", "xpu"), NODE, "needs device xpu, which this machine does not have"),
    (need("peer access"), LAPTOP, "needs peer access between GPUs, and this machine has no GPU"),
    (need("peer access", "by NVLink multicast"), NODE, "needs peer access by NVLink multicast, which the GPUs of this machine do not have"),
    (need("memory", "100 GB"), NODE, "needs memory 100 GB, and a GPU of this machine has 80 GiB"),
    (need("memory", "100 GB"), LAPTOP, "needs memory 100 GB, and this machine has 16 GiB"),
    (need("platform", "not Linux"), LAPTOP, "does not run on platform Linux, which this is"),
    (need("platform", "Windows"), LAPTOP, "needs platform Windows, which this is not"),
    (need("environment", "BACKEND == mpi", "absent"), LAPTOP, "runs only with BACKEND == mpi, and BACKEND is gloo"),
    (need("environment", "TOKEN set", "absent"), LAPTOP, "runs only with TOKEN set, and TOKEN is not set"),
    (need("world size", ">= 8"), LAPTOP, "needs world size >= 8, and WORLD_SIZE is 3"),
    (need("slow", "RUN_SLOW == 1", "absent"), LAPTOP, "is slow, runs with RUN_SLOW=1"),
    (need("disabled", "flaky"), LAPTOP, "is disabled: flaky"),
    (need("disabled"), LAPTOP, "is disabled"),
    (ONE_OF, LAPTOP, "needs 1 GPU or package cupy, and this machine has none of that"),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "machine", "reason"), REASONS, ids=[row[2] for row in REASONS])
def test_a_test_that_cannot_run_says_why(wanted, machine, reason):
    """It is skipped before it starts, in one clause."""
    machine = replace(machine, multicast=False)
    planned = plan_of([need("world size", "4", ""), wanted, need("backend", "gloo")], machine)
    assert (planned.word, planned.need, planned.reason) == (wanted.otherwise, wanted, reason)


def test_every_kind_that_can_be_told_has_a_reason():
    """The rows above leave out no kind of need for which a test may be skipped."""
    assert {wanted.kind for wanted, _, _ in REASONS} == DECIDED


def test_what_runs_and_what_is_not_known():
    """A test without unmet needs runs; one of which something cannot be told, or that pytest should not have collected, is tried."""
    assert plan_of([], LAPTOP) == plan_of([need("gpus", "4"), need("backend", "nccl")], NODE)
    assert plan_of([], LAPTOP).word == "runs"
    assert plan_of([need("gpus", "2", "")], LAPTOP).word == "runs"
    assert plan_of([need("backend", "ucc")], NODE).word == "unknown"
    assert plan_of([need("gpus", "2")], replace(NODE, gpus=None)).word == "unknown"
    assert plan_of([need("backend", "ucc")], NODE).reason == "needs backend ucc, of which it cannot be told whether it is there"
    assert plan_of([need("gpus", "2", "absent"), need("package", "cupy")], LAPTOP).word == "absent"


def test_what_is_granted_counts():
    """A test sees the GPUs that it is granted, and no others."""
    assert plan_of([need("gpus", "2")], NODE, 2).word == "runs"
    assert plan_of([need("gpus", "<= 0")], NODE, 0).word == "runs"
    assert plan_of([need("gpus", "2")], NODE, 1).reason == "needs 2 GPUs, and 1 is granted to it"
    assert plan_of([need("gpus", "2")], NODE, 0).reason == "needs 2 GPUs, and none is granted to it"
    assert plan_of([need("gpus", "8")], NODE, 0).reason == "needs 8 GPUs, and this machine has 4"


@pytest.mark.parametrize(
    ("wanted", "machine"),
    [
        (need("gpus", "4", evidence="DTensorTestBase"), LAPTOP),
        (need("environment", "TOKEN set"), LAPTOP),
        (need("slow", "RUN_SLOW == 1"), LAPTOP),
        (need("gpus", "2"), replace(LAPTOP, devices={"mps": False})),
        (need("gpus", "2"), replace(LAPTOP, devices={"xpu": False})),
        (need("device", "GPU with bfloat16"), replace(LAPTOP, devices={"mps": False})),
        (need("gpus", "2"), replace(LAPTOP, packages={"habana_frameworks": "1"}.get)),
        (need("one of", "x", either=((need("gpus", "4", evidence="DTensorTestBase"),), (need("package", "cupy"),))), LAPTOP),
    ],
    ids=[
        "harness asks some tests",
        "a conftest file may set it",
        "a fixture may set it",
        "may have XPU",
        "may have MPS",
        "may have XPU with bfloat16",
        "another maker's package",
        "one way is doubtful",
    ],
)
def test_what_is_not_sure_is_not_acted_on(wanted, machine):
    """A test that may run is never planned away; what is sure decides all the same."""
    planned = plan_of([wanted], machine)
    assert (planned.word, planned.need) == ("unknown", wanted) and "known only when it runs" in planned.reason
    assert plan_of([wanted, need("backend", "nccl")], machine) == plan_of([need("backend", "nccl")], machine)


def test_a_package_of_the_tree_itself_may_be_there():
    """What is not installed may lie beside the test, at or above its folder."""
    tree = {"test/helpers.py": b"", "mypkg/__init__.py": b""}
    machine = with_tree(replace(LAPTOP, packages=lambda name: "1.0" if name == "numpy" else ""), "test/unit/test_it.py", tree.get)
    words = {name: plan_of([need("package", name)], machine).word for name in ("helpers", "mypkg", "mypkg.part", "unit", "numpy", "cupy")}
    assert words == {
        "helpers": "unknown",
        "mypkg": "unknown",
        "mypkg.part": "unknown",
        "unit": "skipped",
        "numpy": "runs",
        "cupy": "skipped",
    }


@given(st.lists(PLAIN, max_size=4), st.sampled_from([LAPTOP, NODE]), st.none() | st.integers(0, 4))
def test_only_what_is_unmet_is_planned_away(wanted, machine, granted):
    """Whatever tests need, the need for which one is skipped is one that is not met, and has a reason."""
    planned = plan_of(wanted, machine, granted)
    if planned.word == "skipped":
        here = machine if granted is None else replace(machine, gpus=granted, capabilities=machine.capabilities[:granted])
        assert planned.need in wanted and planned.need.otherwise in LOST and is_met(planned.need, here) is False and planned.reason


def size(value):
    """Make the world size of a harness."""
    return need("world size", value, "")


@pytest.mark.parametrize(
    ("wanted", "one", "eight"),
    [
        ([], None, None),
        ([need("package", "numpy")], None, None),
        ([need("gpus", "1")], 1, 1),
        ([need("gpus", "2"), size("number of devices")], 0, 2),
        ([need("gpus", "2"), size("4")], 0, 4),
        ([need("gpus", "1"), size("4")], 1, 4),
        ([need("gpus", "16")], 0, 0),
        ([need("gpus", "16"), size("4")], 0, 0),
        ([need("gpus", "== 1"), size("4")], 1, 1),
        ([need("gpus", "<= 0"), size("4")], 0, 0),
        ([need("gpus", "8 or none"), size("2")], 0, 8),
        ([need("gpus", "2 to 3"), size("4")], 0, 3),
        ([need("gpus", "SOME")], 1, 1),
        ([need("device", "cuda", "")], 1, 1),
        ([need("device", "cpu or cuda", "")], None, None),
        ([need("peer access")], 0, 2),
        ([need("capability", ">= 9.0")], 1, 1),
        ([need("capability", "< 9.0")], None, None),
        ([need("backend", "nccl"), size("4")], 1, 4),
        ([need("backend", "cpu:gloo,cuda:nccl", ""), size("2")], 1, 2),
        ([size("4")], 1, 4),
        ([size("2, 3")], 1, 3),
        ([size("number of devices")], 1, 2),
        ([size("min(4, torch.cuda.device_count())")], 1, 2),
        ([size("as TestX.world_size decides")], 1, 2),
        ([size("WORLD_SIZE")], 1, 3),
        ([size("WORLD_SIZE"), need("world size", ">= 8")], 1, 3),
        ([need("world size", ">= 4")], 1, 4),
        ([need("backend", "gloo", ""), size("4")], 0, 0),
        ([need("device", "cpu", ""), size("4")], 0, 0),
        ([need("backend", "fake", ""), size("128")], 0, 0),
        ([need("backend", "gloo", ""), need("gpus", "2"), size("2")], 0, 2),
        ([need("gpus", "1", "fails")], None, None),
        ([need("gpus", "1", "fails"), size("4")], 1, 4),
        ([need("gpus", "4", "fails"), need("backend", "nccl", "fails"), size("4")], 1, 4),
        ([need("gpus", "1", "fails"), need("backend", "gloo", ""), size("2")], 1, 2),
    ],
)
def test_gpus_that_a_test_is_granted(wanted, one, eight):
    """On a machine with one GPU, with eight, and with none; None of one that names neither GPUs nor ranks."""
    environment = {"WORLD_SIZE": "3"}
    assert [gpus_wanted(wanted, count, environment) for count in (0, 1, 8)] == [None if one is None else 0, one, eight]


@pytest.mark.parametrize(
    ("wanted", "text", "claim"),
    [
        ([], "model.to('cuda')", Claim(4)),
        ([], "def test_plain(): ...", Claim(4, shared=True)),
        ([need("package", "numpy")], "HAS_GPU = find()", Claim(4)),
        ([need("gpus", "2")], "model.cuda()", Claim(2)),
        ([need("gpus", "2")], "", Claim(2)),
        ([need("device", "cpu", "")], "model.cuda()", Claim(0)),
        ([need("gpus", "1", "fails")], "model.cuda()", Claim(4)),
    ],
)
def test_what_a_test_of_a_source_claims(wanted, text, claim):
    """One that says nothing sees all GPUs, as it would without rankbook: for itself where its source speaks of GPUs."""
    assert claim_of_source(wanted, text, 4) == claim


@given(
    st.lists(PLAIN | st.builds(need, st.just("gpus"), st.sampled_from(["1", "== 2", "<= 3", "2 to 4", "8 or none", "X"])), max_size=4),
    st.integers(0, 8),
)
def test_no_more_gpus_than_there_are(wanted, inventory):
    """Whatever a test says, it is granted what there is at most."""
    assert 0 <= (gpus_wanted(wanted, inventory, {}) or 0) <= inventory
    assert 0 <= claim_of_source(wanted, "cuda", inventory).gpus <= inventory


# What was promised


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("gpu=2", "2 GPUs"),
        ("backend=nccl", "backend nccl"),
        ("package=cupy", "package cupy"),
        ("package=triton>=3.0", "package triton >= 3.0"),
        ("capability=9.0", "capability >= 9.0"),
        ("library=NCCL >= 2.20", "library NCCL >= 2.20"),
        ("library=flash attention", "library flash attention"),
        ("device=xpu", "device xpu"),
    ],
)
def test_what_can_be_required(text, value):
    """It is a need as tests have them."""
    assert Required.parse(text).need.text == value


@pytest.mark.parametrize(
    "text", ["", "gpu", "gpu=", "gpu=0", "gpu=two", "gpus=2", "backend=a b", "capability=9", "memory=1GB", "device=", "package=>=1"]
)
def test_what_cannot_be_required(text):
    """A wrong one is one sentence that lists what can be."""
    with pytest.raises(ConfigError, match=re.escape(f"'{text}' cannot be required; what can be is gpu=N, backend=NAME, ")):
        Required.parse(text)


def test_a_machine_that_lacks_what_was_promised():
    """It is said in one sentence; what cannot be told is not held against it."""
    assert Required.parse("gpu=2").missing(LAPTOP) == "--require gpu=2 promises 2 GPUs, and this machine has none"
    assert Required.parse("gpu=8").missing(NODE) == "--require gpu=8 promises 8 GPUs, and this machine has 4"
    assert (
        Required.parse("backend=nccl").missing(LAPTOP) == "--require backend=nccl promises backend nccl, which this torch is built without"
    )
    assert Required.parse("package=cupy").missing(LAPTOP) == "--require package=cupy promises package cupy, which is not installed"
    assert Required.parse("gpu=2").missing(NODE) == Required.parse("gpu=2").missing(replace(NODE, gpus=None)) == ""


@pytest.mark.parametrize(
    ("promised", "covered", "others"),
    [
        ("gpu=2", ["1 GPU", "2 GPUs", "exactly 2 GPUs", "1 to 4 GPUs"], ["4 GPUs", "no GPU at all", "at most 1 GPU"]),
        ("gpu=2", ["device cuda", "1 GPU or package cupy"], ["device xpu", "backend nccl", "4 GPUs or package cupy"]),
        ("backend=nccl", ["backend nccl", "backend nccl or ucc"], ["backend ucc", "backend not nccl", "1 GPU"]),
        ("package=cupy", ["package cupy"], ["package cupy >= 1.0", "package scipy"]),
        ("package=cupy>=13.0", ["package cupy", "package cupy >= 12.1"], ["package cupy >= 14.0"]),
        ("capability=9.0", ["capability >= 8.0", "capability >= 9.0"], ["capability >= 10.0", "capability < 9.0"]),
        ("library=NCCL>=2.20", ["library NCCL", "library NCCL >= 2.4.0"], ["library NCCL >= 2.27"]),
        ("device=xpu", ["device xpu", "device cuda or xpu"], ["device cuda"]),
    ],
)  # fmt: skip
def test_what_a_promise_covers(promised, covered, others):
    """A need that a machine with what was promised would meet."""
    required = Required.parse(promised)
    assert [text for text in covered + others if required.covers(of_text(text))] == covered


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("Need at least 2 CUDA devices", "2 GPUs"),
        ("Need at least 1 CUDA device", "1 GPU"),
        ("Requires at least 2 GPUs", "2 GPUs"),
        ("2 CUDA GPUs are needed", "2 GPUs"),
        ("At least 1 CUDA GPUS needed", "1 GPU"),
        ("multi-GPU not supported", "2 GPUs"),
        ("CUDA is not available.", "1 GPU"),
        ("CUDA not available", "1 GPU"),
        ("CUDA unavailable", "1 GPU"),
        ("accelerator is not available.", "1 GPU"),
        ("no cuda", "1 GPU"),
        ("Test Requires CUDA", "1 GPU"),
        ("CUDA GPU is needed", "1 GPU"),
        ("Only runs on cuda", "1 GPU"),
        ("c10d was not compiled with the NCCL backend", "backend nccl"),
        ("c10d not compiled with NCCL support", "backend nccl"),
        ("c10d was not compiled with the Gloo backend", "backend gloo"),
        ("cuda p2p access is not available", "peer access"),
        ("Test skipped because no GPU peer access", "peer access"),
        ("multicast support is not available", "peer access by NVLink multicast"),
        ("Requires NCCL version greater than or equal to: (2, 10), found: (2, 4, 8), reason: x", "library NCCL >= 2.10"),
        ("could not import 'cupy': No module named 'cupy'", "package cupy"),
        ("Unable to import transformers", "package transformers"),
        ("torch_xla is not installed.", "package torch_xla"),
        ("Test requires an exact world size of 4", "world size 4"),
        ("Test is flaky, see issue 15963", None),
        ("no supported device (cuda, xla) found", None),
        ("rankbook runs no CUDA source; write {.no-run} when it is not meant to run", None),
        ("", None),
    ],
)
def test_reasons_of_harnesses(reason, text):
    """What a harness says when it skips names the need, where it names one."""
    found = need_of_reason(reason)
    assert (found.text if found else None) == text


@pytest.mark.parametrize(("wanted", "machine", "reason"), REASONS, ids=[row[2] for row in REASONS])
def test_reasons_of_plans_are_read_back(wanted, machine, reason):
    """The need is found again in what is said for want of it; what a test is only not made for is none."""
    found = need_of_reason(reason)
    assert found is None or (found.kind, found.value) == (wanted.kind, wanted.value)
    assert (found is None) == (not reason.startswith("needs "))


# Needs as words


@given(st.builds(need, st.sampled_from(KINDS), TEXTS.filter(lambda text: text == text.strip())))
def test_the_words_of_a_need_are_read_back(wanted):
    """Whatever is read from what a requirement says, says the same."""
    assert of_text(wanted.text).text == wanted.text


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("gpus", "2"), ("gpus", "1"), ("gpus", "== 1"), ("gpus", "<= 2"), ("gpus", "<= 0"), ("gpus", "2 to 4"), ("gpus", "8 or none"),
        ("gpus", "WORLD_SIZE"), ("backend", "nccl or gloo"), ("package", "triton >= 3.0"), ("capability", ">= 9.0"), ("peer access", ""),
        ("world size", ">= 8"), ("slow", "RUN_SLOW == 1"), ("slow", ""), ("disabled", ""), ("disabled", "flaky: see 3"),
        ("platform", "not CI"), ("condition", "torch.cuda.nccl.version()[-1] != 'x'"),
    ],
)  # fmt: skip
def test_words_of_needs(kind, value):
    """A requirement's own words give back its kind and value."""
    found = of_text(need(kind, value).text)
    assert (found.kind, found.value) == (kind, value)


def test_words_of_a_choice():
    """Alternatives are read with what each needs."""
    found = of_text("1 GPU and package triton or device xpu")
    assert (found.kind, [[each.text for each in way] for way in found.either]) == ("one of", [["1 GPU", "package triton"], ["device xpu"]])


@pytest.mark.parametrize(
    ("texts", "machine"),
    [
        ([], "CPU"),
        (["backend gloo", "device cpu", "disabled: flaky", "platform not Windows", "library torch >= 2.6"], "CPU, library torch >= 2.6"),
        (["4 GPUs", "2 GPUs", "capability >= 8.0", "capability >= 9.0", "package x"], "4 GPUs with compute capability 9.0, package x"),
        (["capability >= 10.0", "capability >= 9.0", "peer access"], "2 GPUs with compute capability 10.0 and peer access"),
        (["peer access by NVLink multicast", "peer access"], "2 GPUs with peer access by NVLink multicast"),
        (["1 GPU", "memory 9 GB", "memory 40 GB"], "1 GPU with memory 40 GB"),
        (["memory 40 GB"], "CPU with memory 40 GB"),
        (["backend nccl", "backend nccl or gloo"], "1 GPU, backend nccl"),
        (["package triton >= 2.10", "package triton >= 2.9", "package triton"], "CPU, package triton >= 2.10"),
        (["1 GPU or package torch_xla"], "1 GPU"),
        (["exactly 1 GPU", "2 GPUs"], ""),
        (["no GPU", "peer access"], ""),
        (["device big GPU", "device GPU with float8"], "1 GPU, device GPU with float8, device big GPU"),
        (["backend cpu:gloo,cuda:nccl"], "1 GPU, backend cpu:gloo,cuda:nccl"),
        (["capability == 9.0", "capability < 9.0"], "1 GPU"),
        (["no GPU at all", "device GPU with float8"], ""),
        (["environment BACKEND == mpi", "device xpu"], "CPU, device xpu, BACKEND=mpi"),
    ],
)  # fmt: skip
def test_the_smallest_machine(texts, machine):
    """It has the most of each thing that some test needs, and nothing else."""
    assert smallest_machine(map(of_text, texts)) == machine
