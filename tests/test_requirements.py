"""What tests are found to need."""

import pytest

from rankbook.analyse import analyse
from rankbook.model import Project
from rankbook.requirements import HARNESSES, KINDS, NAMES, Requirement, Rule, find, looks_like_requirement
from rankbook.sources.parse import parse_bytes

HEAD = """\
import os, sys, unittest
import pytest
import torch
import torch.distributed as dist
from unittest import skipIf, skipUnless
from torch.testing._internal.common_cuda import SM80OrLater, SM100OrLater, TEST_CUDA, TEST_MULTIGPU
from torch.testing._internal.common_distributed import (
    MultiProcessTestCase, MultiProcContinuousTest, nccl_skip_if_lt_x_gpu, require_n_gpus_for_nccl_backend, requires_gloo, requires_nccl,
    requires_nccl_version, skip_if_lt_x_gpu, skip_if_rocm_multiprocess, skip_if_win32)
from torch.testing._internal.common_utils import IS_WINDOWS, TestCase, requires_cuda_p2p_access, skip_but_pass_in_sandcastle_if, skipIfRocm
from torch.testing._internal.distributed._shard.sharded_tensor import ShardedTensorTestBase, TEST_GPU_NUM, with_comms
LIMIT = 4
HAS_BOTH = TEST_CUDA and LIMIT
maybe = 1
maybe = 2
needs_two = unittest.skipIf(torch.cuda.device_count() < 2, "two")
"""


def project(text: str, **others: str) -> Project:
    files = {"test_it": HEAD + text} | others
    return analyse(parse_bytes(f"{name}.py", source.encode()) for name, source in files.items())


def needs(text: str, **others: str) -> list[str]:
    """Say what the last test of a file needs, leaving out what every test has."""
    return [need.text for need in project(text, **others).tests["test_it.py"][-1].requirements]


@pytest.mark.parametrize(
    ("decorator", "expected"),
    [
        ("skip_if_lt_x_gpu(2)", ["2 GPUs"]),
        ("skip_if_lt_x_gpu(x=8)", ["8 GPUs"]),
        ("skip_if_lt_x_gpu(LIMIT)", ["4 GPUs"]),
        ("skip_if_lt_x_gpu(TEST_GPU_NUM)", ["4 GPUs"]),
        ("skip_if_lt_x_gpu(maybe)", ["skip_if_lt_x_gpu(maybe)"]),
        ("nccl_skip_if_lt_x_gpu('nccl', 2)", ["2 GPUs", "backend nccl"]),
        ("nccl_skip_if_lt_x_gpu('gloo', 2)", []),
        ("require_n_gpus_for_nccl_backend(2, BACKEND)", ["require_n_gpus_for_nccl_backend(2, BACKEND)"]),
        ("requires_nccl()", ["backend nccl"]),
        ("requires_gloo()", ["backend gloo"]),
        ("requires_nccl_version((2, 10), 'why')", ["library NCCL >= 2.10"]),
        ("requires_cuda_p2p_access()", ["2 GPUs", "peer access", "capability >= 8.0"]),
        ("skip_if_win32()", ["platform not Windows"]),
        ("skip_if_rocm_multiprocess", ["platform not ROCm"]),
        ("skipIfRocm(msg='x')", ["platform not ROCm"]),
        ("pytest.mark.gpu(2)", ["2 GPUs"]),
        ("pytest.mark.gpu", ["1 GPU"]),
        ("pytest.mark.gpu(n=3)", ["3 GPUs"]),
        ("pytest.mark.gpu('all')", ["pytest.mark.gpu('all')"]),
        ("pytest.mark.slow", ["mark slow"]),
        ("pytest.mark.parametrize('x', [1])", []),
        ("pytest.mark.skipif('not torch.cuda.is_available()', reason='')", ["1 GPU"]),
        ("pytest.mark.skipif(condition=torch.cuda.device_count() < 4, reason='')", ["4 GPUs"]),
        ("skipIf(not TEST_CUDA, '')", ["1 GPU"]),
        ("skipUnless(TEST_CUDA and dist.is_nccl_available(), '')", ["1 GPU", "backend nccl"]),
        ("skipIf(not TEST_CUDA or torch.cuda.device_count() <= 2, '')", ["3 GPUs"]),
        ("skipIf(4 > torch.cuda.device_count(), '')", ["4 GPUs"]),
        ("skipIf(torch.cuda.device_count() > 1, '')", ["torch.cuda.device_count() <= 1"]),
        ("skipIf(not TEST_MULTIGPU, '')", ["2 GPUs"]),
        ("skipIf(not HAS_BOTH, '')", ["HAS_BOTH"]),
        ("skip_but_pass_in_sandcastle_if(SM100OrLater, '')", ["capability < 10.0"]),
        ("skipUnless(SM80OrLater, '')", ["capability >= 8.0"]),
        ("skipIf(torch.cuda.get_device_capability() < (7, 5), '')", ["capability >= 7.5"]),
        ("skipIf(IS_WINDOWS, '')", ["platform not Windows"]),
        ("skipIf(sys.platform == 'darwin', '')", ["platform not macOS"]),
        ("skipIf('linux' != sys.platform, '')", ["platform Linux"]),
        ("skipIf(sys.version_info < (3, 12), '')", ["library Python >= 3.12"]),
        ("skipIf(torch.version.hip is not None, '')", ["platform not ROCm"]),
        ("skipUnless(os.environ.get('SLOW'), '')", ["environment SLOW set"]),
        ("skipIf(TEST_CUDA and IS_WINDOWS, '')", ["not (TEST_CUDA and IS_WINDOWS)"]),
        ("skipIf(TEST_CUDA, '')", ["not TEST_CUDA"]),
        ("skipIf(BACKEND == 'mpi', '')", ["BACKEND != 'mpi'"]),
        ("skipIf(x := weird(), '')", ["not (x := weird())"]),
        ("skipIf(True, 'broken')", ["skipIf(True, 'broken')"]),
        ("skipIf(False, '')", []),
        ("unittest.skip('broken')", ["unittest.skip('broken')"]),
        ("skip_on_full_moon(3)", ["skip_on_full_moon(3)"]),
        ("requires_luck", ["requires_luck"]),
        ("unittest.expectedFailure", []),
        ("functools.wraps(f)", []),
        ("needs_two", ["2 GPUs"]),
    ],
)
def test_decorators(decorator: str, expected: list[str]) -> None:
    """A decorator says what its row says; one that no row tells is kept as it is, and nothing is guessed."""
    assert needs(f"@{decorator}\ndef test_x(): ...\n") == expected


def test_the_seed_with_peer_access() -> None:
    """A test of shared memory between GPUs needs what its class, its harness and its own decorator say together."""
    found = needs(
        'device_type = "cuda"\n'
        "@requires_cuda_p2p_access()\n"
        "class PeerTest(MultiProcContinuousTest):\n"
        "    @classmethod\n    def backend_str(cls):\n        return 'gloo'\n"
        "    @property\n    def device(self):\n        return torch.device(device_type, self.rank)\n"
        "    @skip_but_pass_in_sandcastle_if(SM100OrLater, 'why')\n    def test_it(self): ...\n"
    )
    assert found == [
        "2 GPUs",
        "world size number of devices",
        "backend gloo",
        "device cuda",
        "peer access",
        "capability < 10.0",
        "capability >= 8.0",
    ]


@pytest.mark.parametrize(
    ("body", "size"),
    [
        ("pass", "4"),
        ("world_size = 2", "2"),
        ("world_size = LIMIT", "4"),
        ("@property\n    def world_size(self): return 3", "3"),
        ("@property\n    def world_size(self): return torch.cuda.device_count()", "torch.cuda.device_count()"),
        ("size = 6\n    @property\n    def world_size(self): return self.size", "6"),
        ("@property\n    def world_size(self):\n        x = 1\n        return x", "as TestIt.world_size decides"),
        ("@property\n    def world_size(self): return maybe", "maybe"),
    ],
)
def test_world_size(body: str, size: str) -> None:
    """The world size is the class's own where it can be read, its text where not, and else its harness's."""
    assert f"world size {size}" in needs(f"class TestIt(MultiProcessTestCase):\n    {body}\n    def test_x(self): ...\n")


def test_requirements_are_inherited() -> None:
    """Decorators, guards and `setUp` of base classes count in subclasses of other files; the greatest number of GPUs does."""
    found = needs(
        "import base\nclass TestIt(base.Base):\n    world_size = 2\n    @skip_if_lt_x_gpu(4)\n    def test_x(self): ...\n",
        base=(
            "import sys, torch, torch.distributed as dist\n"
            "from torch.testing._internal.common_distributed import MultiProcessTestCase, requires_nccl, skip_if_lt_x_gpu\n"
            "if not dist.is_available():\n    sys.exit(0)\n"
            "if torch.cuda.is_available():\n"
            "    @requires_nccl()\n    class Base(MultiProcessTestCase):\n"
            "        def setUp(self):\n            if torch.cuda.device_count() < 2:\n                self.skipTest('two')\n"
        ),
    )
    assert found == ["4 GPUs", "world size 2", "backend nccl", "library torch.distributed"]


def test_evidence_leads_to_the_line() -> None:
    """Each requirement shows the words it comes from, with their file and line."""
    text = "class TestIt(TestCase):\n    @skipIf(not TEST_MULTIGPU, 'two')\n    def test_x(self): ...\n"
    (need,) = project(text).tests["test_it.py"][-1].requirements
    line = HEAD.count("\n") + 2
    assert need == Requirement("gpus", "2", "skipIf(not TEST_MULTIGPU, 'two')", "test_it.py", line)


def test_modules_say_what_they_need() -> None:
    """Marks, early exits and imports that may fail count for every test of the file, and for the file."""
    text = (
        "pytestmark = [pytest.mark.gpu(2)]\nnp = pytest.importorskip('numpy')\n"
        "try:\n    import triton.language\nexcept ImportError:\n    raise unittest.SkipTest\n"
        "if not dist.is_nccl_available():\n    pytest.skip('no', allow_module_level=True)\n"
        "def test_x(): ...\n"
    )
    assert needs(text) == ["2 GPUs", "backend nccl", "package numpy", "package triton"]
    assert [need.text for need in project(text).requirements["test_it.py"]] == needs(text)


def test_a_script_without_tests_has_requirements() -> None:
    """A file that ends early without a GPU says so, though it holds no test."""
    result = project("if not torch.cuda.is_available():\n    sys.exit('no GPU')\nprint(1)\n")
    assert [need.text for need in result.requirements["test_it.py"]] == ["1 GPU"]


def test_class_marks_count() -> None:
    """`pytestmark` of a class says what its tests need."""
    assert needs("class TestIt:\n    pytestmark = [pytest.mark.gpu(2), pytest.mark.slow]\n    def test_x(self): ...\n") == [
        "2 GPUs",
        "mark slow",
    ]


@pytest.mark.parametrize(
    ("comms", "expected"),
    [
        ("with_comms(init_rpc=False)", ["4 GPUs", "world size 4", "backend nccl"]),
        ("with_comms(init_rpc=False, backend='gloo')", ["world size 4", "backend gloo"]),
    ],
)
def test_sharded_tensors_need_a_gpu_per_rank_with_nccl(comms: str, expected: list[str]) -> None:
    """The harness of sharded tensors skips without a GPU per rank, but only when its backend is NCCL."""
    assert needs(f"class TestIt(ShardedTensorTestBase):\n    @{comms}\n    def test_x(self): ...\n") == expected


def test_rows_are_well_formed() -> None:
    """Each row speaks of known kinds, and each harness says how it runs ranks."""
    for rule in NAMES.values():
        assert isinstance(rule, Rule)
        assert {kind for kind, _ in (*rule.needs, *rule.unless)} <= set(KINDS)
    assert all(harness.name == name and harness.runs for name, harness in HARNESSES.items())


def test_find_takes_the_longest_end() -> None:
    """A row may name any end of a dotted name; the longest one that has a row counts."""
    assert find({"b.c": 1, "c": 2}, "a.b.c") == "b.c"
    assert find({"c": 2}, "a.b.c") == "c"
    assert find({"c": 2}, "a.b.d") is None
    assert looks_like_requirement("common.skip_on_moon")
    assert not looks_like_requirement("functools.wraps")
