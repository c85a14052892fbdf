"""What tests are found to need."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbook.analyse import analyse
from rankbook.config import load
from rankbook.errors import ConfigError
from rankbook.model import Project
from rankbook.requirements import HARNESSES, KINDS, OUTCOMES, Requirement, Rule, gpu_range, opposite
from rankbook.sources import Taught
from rankbook.sources.parse import parse_bytes
from rankbook.verdict import Machine, is_met
from rankbook.vocabulary import BUILT_IN, Vocabulary, find, looks_like_requirement
from rankbook.words import NAMES

SHARED = Path(os.environ.get("RANKBOOK_SHARED", Path(__file__).parents[2] / "shared"))
SEEDS = SHARED / "seeds"
needs_seeds = pytest.mark.skipif(not SEEDS.is_dir(), reason=f"no seed pages at {SEEDS}")

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
on_gpu = pytest.mark.gpu
skip_all = functools.partial(unittest.skipIf, True)
try:
    import cupy
    HAS_CUPY_TOO = True
except ImportError:
    HAS_CUPY_TOO = False

def two_at_least():
    return torch.cuda.device_count() >= 2

def at_least(count):
    return torch.cuda.device_count() >= count

def needs(count):
    '''Need GPUs.'''
    return unittest.skipIf(torch.cuda.device_count() < count, "too few")

def needs_or_skips(test):
    return unittest.skipUnless(two_at_least(), "two")(test)

def wraps_two(test):
    @functools.wraps(test)
    def wrapper(self):
        if not at_least(2):
            self.skipTest("two")
        return test(self)
    return wrapper

def wraps(count):
    def decorator(test):
        def wrapper(*args):
            if torch.cuda.device_count() < count:
                raise unittest.SkipTest("too few")
        return wrapper
    return decorator

def wraps_luck(test):
    def wrapper(self):
        if self.luck < 3:
            self.skipTest("no luck")
    return wrapper
"""


def project(text: str, vocabulary: Vocabulary = BUILT_IN, **others: str) -> Project:
    files = {"test_it": HEAD + text} | others
    taught = Taught(vocabulary.called)
    return analyse((parse_bytes(f"{name}.py", source.encode(), taught) for name, source in files.items()), vocabulary=vocabulary)


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
        ("nccl_skip_if_lt_x_gpu('nccl', 2)", ["2 GPUs"]),
        ("skip_if_lt_x_gpu(2, allow_cpu=True)", ["2 GPUs or none"]),
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
        ("pytest.mark.slow", ["slow"]),
        ("pytest.mark.nightly", ["mark nightly"]),
        ("pytest.mark.timeout(5)", []),
        ("pytest.mark.parametrize('x', [1])", []),
        ("pytest.mark.skipif('not torch.cuda.is_available()', reason='')", ["1 GPU"]),
        ("pytest.mark.skipif(condition=torch.cuda.device_count() < 4, reason='')", ["4 GPUs"]),
        ("skipIf(not TEST_CUDA, '')", ["1 GPU"]),
        ("skipUnless(TEST_CUDA and dist.is_nccl_available(), '')", ["1 GPU", "backend nccl"]),
        ("skipIf(not TEST_CUDA or torch.cuda.device_count() <= 2, '')", ["3 GPUs"]),
        ("skipIf(4 > torch.cuda.device_count(), '')", ["4 GPUs"]),
        ("skipIf(torch.cuda.device_count() > 1, '')", ["at most 1 GPU"]),
        ("skipIf(torch.cuda.device_count() < LIMIT * 2, '')", ["8 GPUs"]),
        ("skipIf(max(LIMIT, 6) > torch.cuda.device_count(), '')", ["6 GPUs"]),
        ("skipUnless(torch.cuda.device_count() >= 2 + LIMIT // 2 - 1, '')", ["3 GPUs"]),
        ("skipIf(torch.cuda.device_count() < LIMIT // 0, '')", ["torch.cuda.device_count() >= LIMIT // 0"]),
        ("skipIf(torch.cuda.device_count() < LIMIT * maybe, '')", ["torch.cuda.device_count() >= LIMIT * maybe"]),
        ("skipIf(typing.TYPE_CHECKING, '')", []),
        ("skipIf(int(os.getenv('WORLD_SIZE', '1')) < 2, '')", ["environment WORLD_SIZE >= 2"]),
        ("skipIf(LIMIT > int(os.environ.get('WORLD_SIZE', 1)), '')", ["environment WORLD_SIZE >= 4"]),
        ("skipUnless(int(os.environ['WORLD_SIZE']) > 2 * LIMIT, '')", ["environment WORLD_SIZE > 8"]),
        ("skipIf(int(os.environ.get('LEVEL', '0')) >= 3, '')", ["environment LEVEL < 3 or unset"]),
        ("skipIf(not TEST_MULTIGPU, '')", ["2 GPUs"]),
        ("skipIf(not HAS_BOTH, '')", ["1 GPU"]),
        ("skip_but_pass_in_sandcastle_if(SM100OrLater, '')", ["capability < 10.0"]),
        ("skipUnless(SM80OrLater, '')", ["capability >= 8.0"]),
        ("skipIf(torch.cuda.get_device_capability() < (7, 5), '')", ["capability >= 7.5"]),
        ("skipIf(IS_WINDOWS, '')", ["platform not Windows"]),
        ("skipIf(sys.platform == 'darwin', '')", ["platform not macOS"]),
        ("skipIf('linux' != sys.platform, '')", ["platform Linux"]),
        ("skipIf(sys.version_info < (3, 12), '')", ["library Python >= 3.12"]),
        ("skipIf(torch.version.hip is not None, '')", ["platform not ROCm"]),
        ("skipUnless(os.environ.get('SLOW'), '')", ["environment SLOW set"]),
        ("skipIf(TEST_CUDA and IS_WINDOWS, '')", ["no GPU at all or platform not Windows"]),
        ("skipIf(TEST_CUDA, '')", ["no GPU at all"]),
        ("skipIf(BACKEND == 'mpi', '')", ["BACKEND != 'mpi'"]),
        ("skipIf(x := weird(), '')", ["not (x := weird())"]),
        ("skipIf(True, 'broken')", ["disabled: broken"]),
        ("skipIf(False, '')", []),
        ("unittest.skip('broken')", ["disabled: broken"]),
        ("skip_on_full_moon(3)", ["skip_on_full_moon(3)"]),
        ("requires_luck", ["requires_luck"]),
        ("unittest.expectedFailure", []),
        ("functools.wraps(f)", []),
        ("needs_two", ["2 GPUs"]),
        ("skipIf(2 <= torch.cuda.device_count() < 5, '')", ["at most 1 GPU or 5 GPUs"]),
        ("skipUnless(2 <= torch.cuda.device_count() < 5, '')", ["2 GPUs", "at most 4 GPUs"]),
        ("skipIf(torch.cuda.device_count() != 2, '')", ["exactly 2 GPUs"]),
        ("skipUnless(torch.cuda.device_count(), '')", ["1 GPU"]),
        ("on_gpu", ["1 GPU"]),
        ("skipUnless(is_torch_npu_available(), '')", ["device npu"]),
        ("skipIf(torch.npu.is_available(), '')", ["device not npu"]),
        ("skipUnless(is_torchvision_available(), '')", ["package torchvision"]),
        ("skipUnless(tensorflow.test.is_gpu_available(cuda_only=True), '')", ["1 GPU"]),
        ("skipUnless(torch.cuda.device_count() >= int(os.environ['WORLD_SIZE']), '')", ["WORLD_SIZE GPUs"]),
        ("skipUnless(dist.is_nccl_available() or dist.is_gloo_available(), '')", ["backend nccl or gloo"]),
        ("skipUnless(dist.is_nccl_available() or weird(), '')", ["dist.is_nccl_available() or weird()"]),
        ("skipIf(not dist.is_nccl_available() and IS_WINDOWS, '')", ["backend nccl or platform not Windows"]),
        ("skipUnless(torch.cuda.is_available() or torch.cuda.device_count() > 1, '')", ["1 GPU"]),
        ("skipIf(not (SM80OrLater and TEST_CUDA), '')", ["1 GPU", "capability >= 8.0"]),
        ("skipIf(sys.platform in ('win32', 'darwin'), '')", ["platform not Windows", "platform not macOS"]),
        ("skipUnless(sys.platform in ('linux', 'darwin'), '')", ["platform Linux or macOS"]),
        ("skipUnless(sys.platform.startswith('linux'), '')", ["platform Linux"]),
        ("skipIf('win' in sys.platform, '')", ["platform not Windows"]),
        ("skipIf(torch.__version__ < '2.4', '')", ["library torch >= 2.4"]),
        ("skipIf(version.parse(torch.__version__) < version.parse('2.4'), '')", ["library torch >= 2.4"]),
        ("skipIf(numpy.__version__ < '1.24', '')", ["package numpy >= 1.24"]),
        ("skipIf(sys.version_info[:2] >= (3, 14), '')", ["library Python < 3.14"]),
        ("skipIf(torch.version.cuda is None, '')", ["library CUDA"]),
        ("skipUnless('fbgemm' in torch.backends.quantized.supported_engines, '')", ["library FBGEMM"]),
        ("skipIf(importlib.util.find_spec('cupy') is None, '')", ["package cupy"]),
        ("skipUnless(HAS_CUPY_TOO, '')", ["package cupy"]),
        ("skipIf(os.environ.get('MODE', 'a') == 'a', '')", ["environment MODE != a", "environment MODE != unset"]),
        ("skipUnless(os.environ['MODE'] in ('a', 'b'), '')", ["environment MODE == a or b"]),
        ("skipIf(os.getenv('MODE') is None, '')", ["environment MODE set"]),
        ("skipIf('MODE' not in os.environ, '')", ["environment MODE set"]),
        ("skipUnless('RANK' in os.environ and 'MODE' not in os.environ, '')", ["environment MODE not set", "environment RANK set"]),
        ("skipIf(LIMIT > 3, 'too many')", ["disabled: too many"]),
        ("skipIf(LIMIT < 3, 'too few')", []),
        ("skipIf(two_at_least(), '')", ["at most 1 GPU"]),
        ("skipIf(at_least(LIMIT), '')", ["at most 3 GPUs"]),
        ("needs(3)", ["3 GPUs"]),
        ("needs_or_skips", ["2 GPUs"]),
        ("wraps_two", ["2 GPUs"]),
        ("wraps(5)", ["5 GPUs"]),
        ("wraps_luck", ["wraps_luck"]),
        ("skip_all(reason='later')", ["disabled: later"]),
        ("largeTensorTest('12GB')", ["memory 12GB"]),
        ("slowTest", ["slow, runs with PYTORCH_TEST_WITH_SLOW=1"]),
        ("pytest.mark.skip(reason='later')", ["disabled: later"]),
        ("pytest.mark.skip", ["disabled"]),
        ("onlyCUDA", ["device cuda"]),
        ("skipCUDAIf(IS_WINDOWS, '')", ["platform not Windows"]),
        # DeepSpeed
        ("pytest.mark.world_size(2)", ["world size 2"]),
        ("pytest.mark.sequential", ["mark sequential"]),
        ("pytest.mark.skipif(not get_accelerator().is_available(), reason='')", ["1 GPU"]),
        ("pytest.mark.skipif(get_accelerator().device_count() < 4, reason='')", ["4 GPUs"]),
        ("pytest.mark.skipif(get_accelerator().device_name() == 'cpu', reason='')", ["1 GPU"]),
        (
            "pytest.mark.skipif(not deepspeed.ops.__compatible_ops__[FusedAdamBuilder.NAME], reason='')",
            ["library DeepSpeed FusedAdamBuilder"],
        ),
        ("pytest.mark.skipif(not required_torch_version(max_version=2.0), reason='')", ["library torch <= 2.0"]),
        # accelerate and transformers
        ("require_multi_device", ["2 GPUs"]),
        ("require_single_device", ["exactly 1 GPU"]),
        ("require_non_multi_gpu", ["at most 1 GPU"]),
        ("require_cpu", ["no GPU at all"]),
        ("require_deepspeed", ["package deepspeed"]),
        ("require_bnb", ["package bitsandbytes"]),
        ("require_tensorboard", ["package tensorboard or tensorboardX"]),
        ("require_torch_min_version(version='2.5')", ["library torch >= 2.5"]),
        ("require_torch_multi_accelerator", ["2 GPUs"]),
        ("require_torch_up_to_2_accelerators", ["at most 2 GPUs"]),
        ("slow", ["slow, runs with RUN_SLOW=1"]),
        # Lightning
        (
            "RunIf(min_cuda_gpus=2, standalone=True, skip_windows=True, min_torch='2.1', mps=False)",
            ["2 GPUs", "library torch >= 2.1", "platform not Windows", "environment PL_RUN_STANDALONE_TESTS == 1"],
        ),
        ("pytest.mark.skipif(not is_torch_version('>=', '2.5.0'), reason='')", ["library torch >= 2.5.0"]),
        ("pytest.mark.skipif(is_torch_version('<', version='2.5'), reason='')", ["library torch >= 2.5"]),
        ("pytest.mark.skipif(not RequirementCache('numpy>=2.0'), reason='')", ["package numpy >= 2.0"]),
        # Megatron
        ("pytest.mark.skipif(not is_te_min_version('1.9.0'), reason='')", ["package transformer_engine >= 1.9.0"]),
        ("pytest.mark.internal", ["mark internal"]),
    ],
)
def test_decorators(decorator: str, expected: list[str]) -> None:
    """A decorator says what its row says; one that no row tells is kept as it is, and nothing is guessed."""
    assert needs(f"@{decorator}\ndef test_x(): ...\n") == expected


MARKING = """
import functools, pytest, torch, unittest
from packaging import version

def needs(n):
    mark = pytest.mark.skipif(torch.cuda.device_count() < n, reason="few")

    def wrapper(f):
        return mark(f)

    return wrapper

def marks_of(*, gpus: int):
    chosen = pytest.mark.distributed(gpus=gpus)
    skip = pytest.mark.skipif(torch.cuda.device_count() < gpus, reason=f"Need {gpus} GPUs")
    return [chosen, skip]

def in_a_process(f):
    @functools.wraps(f)
    def wrapper(*args):
        return f(*args)
    return wrapper

def gpu_test(*, gpus: int):
    marks = marks_of(gpus=gpus)

    def wrapper(f):
        func = in_a_process(f)
        for mark in reversed(marks):
            func = mark(func)
        return func

    return wrapper

def both(f):
    for mark in [*marks_of(gpus=3), pytest.mark.slow]:
        f = mark(f)
    return f

def large(min_gb):
    try:
        memory = measured()
    except Exception:
        memory = 0
    return pytest.mark.skipif(memory < min_gb, reason="small")

def is_fp16_available():
    return True

def require_fp16(test):
    return unittest.skipUnless(is_fp16_available(), "needs FP16")(test)

def require_fsdp2(test):
    return unittest.skipUnless(version.parse(torch.__version__) >= version.parse("2.5.0"), "needs FSDP2")(test)

def first(test):
    if plugin_is_there():
        import pytest_order
        return pytest.mark.order(1)(test)
    return test

def require_wandb(test):
    return unittest.skipUnless(torch.cuda.device_count() > 1, "")(test)

def require_bnb(test):
    return unittest.skipUnless(somehow(), "")(test)
"""


@pytest.mark.parametrize(
    ("decorator", "expected"),
    [
        ("needs(4)", ["4 GPUs"]),
        ("gpu_test(gpus=4)", ["4 GPUs", "mark distributed"]),
        ("both", ["3 GPUs", "slow", "mark distributed"]),
        ("large(8)", ["large(8)"]),
        ("in_a_process", []),
        ("first", []),
        ("pytest.mark.parametrize('a', [pytest.param(2, marks=needs(2))])", ["2 GPUs"]),
        ("pytest.mark.parametrize('a', [pytest.param(2, marks=marks_of(gpus=2))])", ["2 GPUs", "mark distributed"]),
        ("pytest.mark.parametrize('a', [pytest.param(2, marks=[*marks_of(gpus=2)])])", ["2 GPUs", "mark distributed"]),
        (
            "pytest.mark.parametrize('a', [pytest.param(2, marks=[pytest.mark.internal] + marks_of(gpus=2))])",
            ["2 GPUs", "mark distributed", "mark internal"],
        ),
        # Rows speak of these, too: of others that are called so.
        ("require_fp16", []),
        ("require_fsdp2", ["library torch >= 2.5.0"]),
        ("require_wandb", ["2 GPUs"]),
        ("require_bnb", ["package bitsandbytes"]),
    ],
)
def test_a_decorator_of_the_tree_is_what_it_is_made_of(decorator: str, expected: list[str]) -> None:
    """Marks are read wherever a decorator puts them on a test; a row counts for one that is called so where its definition is not read."""
    assert needs(f"{MARKING}@{decorator}\ndef test_x(a=1): ...\n") == expected


def test_a_package_that_is_not_there_is_not_too_new() -> None:
    """A test for which a package must not be new enough runs where there is none: the functions that ask give no."""
    (need,) = (
        project("@pytest.mark.skipif(is_te_min_version('1.7.0'), reason='')\ndef test_x(): ...\n").tests["test_it.py"][-1].requirements
    )
    assert need.text == "package not transformer_engine >= 1.7.0"
    versions = {"": True, "1.6": True, "1.7": False, "2.0": False}
    assert {version: is_met(need, Machine(packages=lambda _, version=version: version)) for version in versions} == versions


WRAPPING = """
def only(n):
    def decorator(test):
        @functools.wraps(test)
        def wrapper(*args):
            if torch.cuda.device_count() >= n:
                return test(*args)
            raise unittest.SkipTest("too few")
        return wrapper
    return decorator

def serial(condition=True):
    def decorator(test):
        if has_pytest and condition:
            return pytest.mark.serial(test)
        return test
    return decorator

def fails():
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if torch.cuda.is_available():\n        return run()\n    pytest.skip('')", ["1 GPU"]),
        ("if torch.cuda.device_count() > 1:\n        run()\n        return\n    raise unittest.SkipTest('')", ["2 GPUs"]),
        ("if torch.cuda.is_available():\n        return\n    pytest.importorskip('triton')", ["1 GPU or package triton"]),
        ("if torch.cuda.is_available():\n        return\n    if IS_WINDOWS:\n        pytest.skip('')", ["1 GPU or platform not Windows"]),
        (
            "if torch.cuda.is_available():\n        return\n    elif odd():\n        return\n    pytest.skip('')",
            ["torch.cuda.is_available() or odd()"],
        ),
        ("for each in many:\n        if torch.cuda.is_available():\n            continue\n        pytest.skip('')", ["1 GPU"]),
        ("for each in many:\n        if each:\n            continue\n        if odd():\n            pytest.skip('')", ["not odd()"]),
        ("for each in many:\n        if each:\n            break\n    pytest.skip('no')", ["disabled: no"]),
        ("for each in many:\n        if each:\n            return\n    pytest.skip('')", ["returned()"]),
        ("try:\n        return run()\n    except ValueError:\n        pass\n    pytest.skip('')", ["returned()"]),
        (
            "if IS_WINDOWS:\n        pytest.skip('')\n        return\n    if odd():\n        pytest.skip('')",
            ["platform not Windows", "not odd()"],
        ),
        ("if odd():\n        return\n    fails()", []),
        ("if odd():\n        run()\n    fails()", ["1 GPU"]),
    ],
)
def test_what_skips_behind_a_return_skips_only_where_that_is_not_come_to(body: str, expected: list[str]) -> None:
    """A test that ends well before the statement that skips it is not disabled."""
    assert needs(f"{WRAPPING}def test_x():\n    {body}\n") == expected


@pytest.mark.parametrize(("decorator", "expected"), [("only(4)", ["4 GPUs"]), ("serial()", [])])
def test_a_decorator_that_runs_the_test_or_skips_it(decorator: str, expected: list[str]) -> None:
    """What a decorator puts around a test may run it first of all, and skip where it does not."""
    assert needs(f"{WRAPPING}@{decorator}\ndef test_x(): ...\n") == expected


WRAPS = """
def tries(test):
    def wrapper():
        try:
            test()
        except OSError:
            pytest.skip("no network")
    return wrapper
"""


@pytest.mark.parametrize(
    ("tried", "caught", "body", "expected"),
    [
        ("load()", " OSError", "pytest.skip('no network')", "not raised(OSError)"),
        ("load()", " (A, B) as e", "if e.args:\n            pytest.skip('')", "not raised((A, B)) or not e.args"),
        ("load()", "", "pytest.skip('')", "not raised(Exception)"),
        ("load()", " OSError", "pytest.importorskip('cupy')", "package cupy"),
        ("import cupy", " ImportError", "pytest.skip('')", "package cupy"),
    ],
)
def test_what_skips_after_an_exception_is_no_test_that_is_disabled(tried: str, caught: str, body: str, expected: str) -> None:
    """A test that is skipped where something fails is skipped only there; so is a module, and what a decorator wraps."""
    assert needs(f"def test_x():\n    try:\n        {tried}\n    except{caught}:\n        {body}\n") == [expected]
    module = "try:\n    load()\nexcept RuntimeError:\n    pytest.skip('no', allow_module_level=True)\ndef test_x(): ...\n"
    assert needs(module) == ["not raised(RuntimeError)"]
    assert needs(f"{WRAPS}@tries\ndef test_x(): ...\n") == ["tries"]
    assert needs("def test_x():\n    pytest.skip('later')\n") == ["disabled: later"]


OWN = "class TestIt(TestCase):\n    @pytest.fixture(autouse=True)\n    def own(self, gpu): ...\n"
FIXTURES = """
import os, pytest, torch
@pytest.fixture
def gpu():
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    return torch.device("cuda")
@pytest.fixture
def ranks(gpu):
    if "RANK" not in os.environ:
        pytest.skip("no ranks")
    yield
@pytest.fixture
def odd(request):
    if request.param > 3:
        pytest.skip("odd")
@pytest.fixture(autouse=True)
def around(request):
    if request.node.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("no GPU")
    pytest.importorskip("yaml")
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def test_x(gpu): ...", ["1 GPU", "package yaml"]),
        ("def test_x(ranks): ...", ["1 GPU", "package yaml", "environment RANK set"]),
        ("@pytest.mark.usefixtures('gpu')\nclass TestIt:\n    def test_x(self): ...", ["1 GPU", "package yaml"]),
        ("def test_x(odd): ...", ["package yaml", "request.param <= 3"]),
        ("@pytest.mark.parametrize('gpu', [1])\ndef test_x(gpu): ...", ["package yaml"]),
        ("@pytest.fixture\ndef gpu(): ...\ndef test_x(gpu): ...", ["package yaml"]),
        (
            "class TestIt(TestCase):\n    @pytest.fixture(autouse=True)\n    def own(self, gpu): ...\n    def test_x(self): ...",
            ["1 GPU", "package yaml"],
        ),
        ("def test_x(): ...", ["package yaml"]),
        # Pytest fills what has no default, and what a keyword can give.
        ("def test_x(gpu=None): ...", ["package yaml"]),
        ("def test_x(odd=1, *, gpu=None, **ranks): ...", ["package yaml"]),
        ("def test_x(odd, gpu=1, /): ...", ["package yaml"]),
        ("def test_x(odd=1, *, gpu): ...", ["1 GPU", "package yaml"]),
        ("def test_x(ranks=1, odd=2, /, gpu=3): ...", ["package yaml"]),
        ("@pytest.fixture\ndef device(gpu=0): ...\ndef test_x(device): ...", ["package yaml"]),
    ],
)
def test_fixtures_that_skip(text: str, expected: list[str]) -> None:
    """A test needs what its fixtures skip for, near and far; of those that all tests get, what can be read in full."""
    assert needs(text + "\n", conftest=FIXTURES) == expected


OPTIONAL = """\
try:
    import transformers
    from flash_attn.ops import fast
except ImportError:
    transformers = None
    fast = None
try:
    import tokenizers
except ImportError:
    tokenizers = None
"""


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("transformers is None", ["package transformers"]),
        ("optional.transformers is None", ["package transformers"]),
        ("fast is None", ["package flash_attn"]),
        ("transformers is not None", ["transformers is None"]),
        ("fast is not None", ["fast is None"]),
        ("tokenizers is not None", ["package not tokenizers"]),
        ("not transformers", ["transformers"]),
    ],
)
def test_names_that_stay_empty_where_an_import_fails(condition: str, expected: list[str]) -> None:
    """A name that is imported, or else None, stands for its package; it is None where nothing but that package may be missing."""
    text = f"import optional\n{OPTIONAL}@skipIf({condition}, '')\ndef test_x(): ...\n"
    assert needs(text, optional=OPTIONAL) == expected


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


SPAWNS = """\
import torch.multiprocessing as mp
from torch.multiprocessing import start_processes
from gevent import spawn

def run(rank, size): ...

def helped(function, nprocs, **kwargs):
    mp.spawn(function, nprocs=nprocs)

"""


@pytest.mark.parametrize(
    ("body", "size"),
    [
        ("mp.spawn(run, args=(2,), nprocs=4, join=True)", "4"),
        ("mp.spawn(run, (3,), 2)", "2"),
        ("context = mp.spawn(run, nprocs=LIMIT, join=False)", "4"),
        ("start_processes(run, nprocs=int('2'))", ""),
        ("size = 2\n    ranks = size\n    mp.spawn(run, args=(size,), nprocs=ranks)", "2"),
        ("size = torch.cuda.device_count()\n    mp.spawn(run, args=(size,), nprocs=size)", "torch.cuda.device_count()"),
        ("mp.spawn(run, nprocs=2)\n    with x:\n        mp.spawn(run, nprocs=4)", "2, 4"),
        ("size = 1\n    size += 1\n    mp.spawn(run, nprocs=size)", ""),
        ("for size in (1, 2):\n        mp.spawn(run, nprocs=size)", "1, 2"),
        ("for size in x:\n        mp.spawn(run, nprocs=size)", ""),
        ("for size in (1, 2):\n        size += 1\n        mp.spawn(run, nprocs=size)", ""),
        ("for rank in range(3):\n        p = mp.Process(target=run, args=(rank, 3))\n        p.start()", "3"),
        ("world = 2\n    all = []\n    for i in range(world):\n        all.append(get_context('spawn').Process(target=run))", "2"),
        ("for i in range(3):\n        p = mp.Process(target=read)\n        p.start()", ""),
        ("for rank in range(1, 3):\n        p = mp.Process(target=run, args=(rank,))", ""),
        ("for rank in range(3):\n        run(rank, 3)", ""),
        ("if x:\n        size = 1\n    else:\n        size = 2\n    mp.spawn(run, nprocs=size)", ""),
        ("idist.spawn('gloo', run, nproc_per_node=3)", "3"),
        ("spawn(run, 4)\n    gevent.spawn(run, 1, 2)", ""),
        ("mp.spawn(run, (1, 2))", ""),
        ("helped.spawn(run, nprocs=2)\n    pool.spawn(3)", "2"),
    ],
)
def test_processes_that_a_test_starts(body: str, size: str) -> None:
    """A test that starts its ranks itself has as many as its call says, where that can be read; without a GPU it may start none."""
    expected = [*(["1 GPU"] if "cuda" in size else []), *([f"world size {size}"] if size else [])]
    assert needs(f"{SPAWNS}def test_x():\n    {body}\n") == expected


def test_processes_of_a_case_and_of_a_helper() -> None:
    """The number may be a parameter of the test; a function of the tree says which of its arguments it is; a mark counts before it."""
    case = "@pytest.mark.parametrize('ranks', [1, 2])\ndef test_x(ranks):\n    mp.spawn(run, nprocs=ranks)\n"
    tests = project(SPAWNS + case).tests["test_it.py"]
    assert [[need.text for need in test.requirements] for test in tests] == [["world size 1"], ["world size 2"]]
    own = SPAWNS.replace("def helped", "def spawn").replace("from gevent import spawn\n", "") + "def test_x():\n    spawn(run, 4)\n"
    assert needs(own) == ["world size 4"]
    assert needs(f"{SPAWNS}@pytest.mark.world_size(2)\ndef test_x():\n    mp.spawn(run, nprocs=4)\n") == ["world size 2"]


LAUNCHERS = """\
import torch.multiprocessing as mp
from functools import partial, wraps
from multiprocessing import get_context
import torch

WORLD = 4

def body(rank): ...

def launch(function, world_size=2, *args):
    mp.spawn(function, args=(world_size, *args), nprocs=world_size)

def on(tp, dp=1):
    def given(function):
        def wrapper(**kwargs):
            ranks = tp * dp
            mp.spawn(function, args=(ranks,), nprocs=ranks, join=True)
        return wrapper
    return given

def anyhow(function):
    def wrapper(size):
        mp.spawn(function, nprocs=size)
    return wrapper

def on_all(function, size=torch.cuda.device_count()):
    launch(function, size)

def with_ranks(size):
    def decorator(function):
        @wraps(function)
        def wrapper(*args):
            launch(function, size, *args)
        return wrapper
    return decorator

def each(function, sizes):
    for size in sizes:
        mp.spawn(function, nprocs=size)

def processes(function, world):
    for rank in range(world):
        mp.Process(target=function, args=(rank, world)).start()

def other(function, world_size): ...

class Base:
    ranks = 3

    def multiply(self, function, *, world=2):
        launch(function, world)

    def of_class(self, function):
        launch(function, self.ranks)

"""


@pytest.mark.parametrize(
    ("body", "size"),
    [
        ("launch(body)", "2"),
        ("launch(body, 4)", "4"),
        ("result = launch(body, WORLD)", "4"),
        ("launch(function=body, world_size=3)", "3"),
        ("launch(partial(body, size=2), 3)", "3"),
        ("launch(partial(body, size=2), x)", ""),
        ("size = 3\n    launch(body, size)", "3"),
        ("for size in (2, 4):\n        launch(body, size)", "2, 4"),
        ("if x:\n        launch(body, 4)", "4"),
        ("launch(body, 2)\n    launch(body, 4)", "2, 4"),
        ("on(2)(body)()", "2"),
        ("on(tp=2, dp=2)(body)(x=1)", "4"),
        ("on(x)(body)()", ""),
        ("anyhow(body)(2)", ""),
        ("on_all(body)", "torch.cuda.device_count()"),
        ("on_all(body, 2)", "2"),
        ("each(body, [1, 2])", "1, 2"),
        ("processes(body, 3)", "3"),
        ("other(body, 3)", ""),
        ("launch(x, 3)", ""),
        ("torch.launch(body, 3)", ""),
        ("def inner(rank): ...\n    launch(inner, 3)", "3"),
    ],
)
def test_ranks_that_a_function_of_the_suite_starts(body: str, size: str) -> None:
    """A test that hands a function to a launcher has as many ranks as that starts; of one that starts none nothing is said."""
    expected = [*(["1 GPU"] if "cuda" in size else []), *([f"world size {size}"] if size else [])]
    assert needs(f"{LAUNCHERS}def test_x():\n    {body}\n") == expected


def test_ranks_that_a_launcher_of_another_file_starts() -> None:
    """The launcher may be imported, a method of a class above, or a decorator, and its number of ranks a parameter of the test."""
    bodies = {
        "from tools import launch, body\ndef run(rank): ...\ndef test_x():\n    launch(run, 3)\n": ["world size 3"],
        "import tools\ndef run(rank): ...\ndef test_x():\n    tools.on(3)(run)()\n": ["world size 3"],
        "from tools import with_ranks\n@with_ranks(4)\ndef test_x(): ...\n": ["world size 4"],
        "from tools import with_ranks\n@with_ranks(x)\ndef test_x(): ...\n": [],
        "from tools import Base\nclass TestIt(Base):\n    def run(self): ...\n    def test_x(self):\n        self.multiply(self.run)\n": [
            "world size 2"
        ],
        "from tools import Base\nclass TestIt(Base):\n    ranks = 5\n    def test_x(self):\n"
        "        def run(): ...\n        self.of_class(run)\n": ["world size 5"],
    }
    for text, expected in bodies.items():
        tests = project(text, tools=LAUNCHERS).tests["test_it.py"]
        assert [[need.text for need in test.requirements] for test in tests] == [expected], text
    case = f"{LAUNCHERS}@pytest.mark.parametrize('tp', [1, 2])\ndef test_x(tp):\n    on(tp, dp=2)(body)()\n"
    assert [[need.text for need in test.requirements] for test in project(case).tests["test_it.py"]] == [["world size 2"], ["world size 4"]]
    assert needs(f"{LAUNCHERS}@pytest.mark.world_size(2)\ndef test_x():\n    launch(body, 4)\n") == ["world size 2"]


GPU_CALLS = """\
import torch.multiprocessing as mp
import torch.nn as nn
from torch.distributed import init_process_group as join
from unittest import mock

DEVICE = torch.device("cuda", 0)
THIRD = torch.device("cuda", index=2)
EITHER = "cuda"
EITHER = "cpu"
PAIRED, SIZES = torch.device("cuda:0"), [4, 8]
NO_SIZES = []

class Empty(nn.Module):
    def forward(self, x):
        return x

class Full(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(2, 2)

class Sized(nn.Module):
    def __init__(self, size, inner=None, full=False, **more):
        super().__init__()
        self.size, self.scale = size, size**-0.5
        self.inner = inner
        self.act = nn.Sequential(nn.ReLU(), *[nn.Dropout(0.1) for _ in range(size)])
        self.plain = [nn.Linear(2, 2)]
        self.layer = nn.Linear(2, 2) if full else nn.Identity()
        if full:
            self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("none", None)

class Held(Empty):
    def __init__(self):
        super().__init__()
        layers = []
        for size in range(2):
            layers.append(nn.Linear(2, size))
        self.layers = nn.ModuleList(layers)

class Buffered(nn.Module):
    def __init__(self):
        self.register_buffer("mask", torch.ones(2))

class Other(framework.Module):
    def __init__(self):
        self.layer = build()

class OtherEmpty(framework.Module):
    def forward(self, x):
        return x

class Batch:
    def __init__(self):
        self.moved = False
    def to(self, device):
        return self

class Maker:
    @staticmethod
    def make():
        return Full().cuda()

def make():
    return made_by_others()

def made_by_others():
    return torch.ones(2).cuda()

def generated():
    yield torch.ones(2).cuda()

def again(count):
    torch.ones(2).cuda()
    again(count - 1)

def run(rank, size):
    dist.init_process_group("nccl", rank=rank, world_size=size)
    torch.ones(2, device=f"cuda:{rank}")

def on_cpu(rank):
    dist.init_process_group("gloo", rank=rank)

def on(device="cuda"):
    torch.ones(2, device=device)

def there(size, /, *, device):
    on(device)

"""


@pytest.mark.parametrize(
    "body",
    [
        "x = torch.ones(2).cuda()",
        "assert Full().eval().cuda() is not None",
        "with_settings = config.patch('triton.multi_kernel', 1)\n    torch.ones(2).cuda()",
        "monkeypatch.setenv('A', '1')\n    monkeypatch.chdir(x)\n    torch.ones(2).cuda()",
        "torch.ones(2, device='cuda')",
        "nn.Linear(2, 2, device='cuda:0')",
        "device = torch.device('cuda')\n    x = torch.ones(2)\n    x.to(device)",
        "x = torch.ones(2)\n    return x.to(device=DEVICE)",
        "rank = 0\n    with torch.no_grad():\n        torch.ones(2, device=f'cuda:{rank}')",
        "torch.cuda.synchronize()",
        "Model.from_pretrained('tiny', device_map='cuda:0')",
        "for size in [1, 2]:\n        torch.ones(size).cuda()",
        "for size in range(3):\n        torch.ones(size).cuda()",
        "sizes = [[4], [8]]\n    for size in sizes:\n        torch.ones(size, device='cuda')",
        "few, sizes = 1, (4, 8)\n    for size in sizes:\n        torch.ones(size, device='cuda')",
        "for size in SIZES:\n        torch.ones(size, device='cuda')",
        "device, size = torch.device('cuda:0'), 2\n    torch.ones(size, device=device)",
        "torch.ones(2, device=PAIRED)",
        "try:\n        torch.ones(2).cuda()\n    finally:\n        pass",
        "make()",
        "Maker.make()",
        "again(3)",
        "def inner():\n        return torch.ones(2).cuda()\n    inner()",
        "if x:\n        y = 1\n    torch.cuda.set_device(0)",
        "assert x\n    y = [each for each in torch.ones(2).cuda()]",
        "if x:\n        torch.ones(2).cuda()\n    elif y:\n        make()\n    else:\n        return torch.ones(2, device=DEVICE)",
        "on()",
        "there(2, device='cuda:0')",
        "there(2, device=DEVICE)",
        "def inner(size, device):\n        there(size, device=device)\n    inner(2, 'cuda')",
        "Sized(2, nn.Linear(2, 2)).cuda()",
        "layer = nn.PReLU()\n    Sized(2, inner=nn.Sequential(nn.ReLU(), layer)).eval().to('cuda')",
        "Held().half().cuda()",
        "Buffered().cuda()",
        "nn.CrossEntropyLoss(torch.ones(2)).cuda()",
        "nn.Sequential(OrderedDict([('one', nn.ReLU()), ('two', nn.Linear(2, 2))])).cuda()",
        "nn.ReLU()(x).cuda()",
        "Sized(2).forward(x).cuda()",
        "Unseen().cuda()",
        "Other().cuda()",
        "class Inner(nn.Module):\n        def __init__(self):\n            self.layer = Held()\n    Inner().cuda()",
        "f = [torch.ones(2).cuda() for _ in range(2)]",
        "torch.ones(1).cuda(**x)",
        "for pytest in [torch.ones(1)]:\n        pytest.cuda()",
        "from helpers import model\n    model.cuda()",
        "f = {n: torch.ones(n, device='cuda') for n in (1, 2)}",
        "device = 'cuda'\n    f = sum([torch.ones(n, device=device) for n in (1, 2)])",
    ],
)
def test_calls_that_fail_without_a_gpu(body: str) -> None:
    """A test that comes to one whatever happens needs a GPU, by its own statements or by those of a function of its file."""
    assert needs(f"{GPU_CALLS}def test_x():\n    {body}\n") == ["1 GPU"]


def test_gpus_of_a_product_of_parameters() -> None:
    """How many ranks a case has may be the product of its parameters, wherever that is worked out."""
    cases = "@pytest.mark.parametrize(('tp', 'pp'), [(2, 2), (4, 2)])\ndef test_x(tp, pp):\n    "
    skips = "pytest.skip('few')\n"
    for body in (
        "if tp * pp > torch.cuda.device_count():\n        ",
        "world = tp * pp\n    if torch.cuda.device_count() < world:\n        ",
    ):
        tests = project(f"{cases}{body}{skips}").tests["test_it.py"]
        assert [[need.text for need in test.requirements] for test in tests] == [["4 GPUs"], ["8 GPUs"]]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("torch.cuda.set_device(0)", ["1 GPU"]),
        ("if torch.cuda.device_count() < 2:\n        raise unittest.SkipTest('few')", ["2 GPUs"]),
        ("if not dist.is_nccl_available():\n        pytest.skip('none')", ["backend nccl"]),
        ("helped()", ["4 GPUs"]),
        ("pass", []),
    ],
)
@pytest.mark.parametrize("head", ["def setUpModule():", "def setup_module(module):"])
def test_what_runs_before_all_tests_of_a_module(head: str, body: str, expected: list[str]) -> None:
    """Each test of the module needs what that skips for or fails without; a test that is inherited elsewhere does not."""
    helper = "def helped():\n    if torch.cuda.device_count() < 4:\n        pytest.skip('few')\n\n\n"
    text = f"{helper}{head}\n    {body}\n\n\nclass TestA(unittest.TestCase):\n    def test_a(self): ...\n"
    assert needs(text) == expected
    found = project(text, test_other="from test_it import TestA\n\n\nclass TestB(TestA): ...\n")
    assert [need.text for need in found.tests["test_other.py"][-1].requirements] == []


def test_what_a_condition_takes_away_may_be_there() -> None:
    """A class that is deleted under a condition is collected where that is not met; one that is deleted anyway is nowhere."""
    text = "class A(unittest.TestCase):\n    def test_a(self): ...\n\n\nclass B(A): ...\n\n\nif os.environ.get('X'):\n    del B\ndel A\n"
    (test,) = project(text).tests["test_it.py"]
    assert test.id == "B::test_a"
    assert [(need.otherwise, need.text) for need in test.requirements] == [("absent", "environment X not set")]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("if not HAS:\n    del {}\n", ["HAS"]),
        ("if A:\n    pass\nelif HAS:\n    del {}\n", ["A or not HAS"]),
        ("if A:\n    pass\nelse:\n    del {}\n", ["A"]),
        ("if A:\n    if HAS:\n        del {}\n", ["not A or not HAS"]),
        ("for n in (1,):\n    if HAS:\n        del {}\n", ["not HAS"]),
        ("try:\n    import not_there\nexcept ImportError:\n    del {}\n", ["package not_there"]),
        ("if torch.cuda.device_count() < 2:\n    del {}\n", ["2 GPUs"]),
        ("if __name__ == '__main__':\n    del {}\n", []),
        ("def off():\n    del {}\n", []),
    ],
)
def test_what_may_be_taken_away_is_there_otherwise(condition: str, expected: list[str]) -> None:
    """A class, a function, or what is imported, that a condition deletes has it as a requirement, but not a class that derives from it."""
    text = "import torch\nfrom shared import Test_, work\nHAS = work()\nA = work()\n"
    text += "class TestA(unittest.TestCase):\n    def test_a(self): ...\nclass TestB(TestA): ...\n"
    text += "@pytest.mark.parametrize('n', [1])\ndef test_f(n): ...\n" + condition.format("TestA, test_f, Test_")
    found = project(f"{text}def test_later(): ...\n", shared="class Test_:\n    def test_s(self): ...\n").tests["test_it.py"]
    needed = {test.id: [need.text for need in test.requirements if need.otherwise == "absent"] for test in found}
    taken = ["Test_::test_s", "TestA::test_a", "test_f[1]"]
    assert needed == {**dict.fromkeys(taken, expected), "TestB::test_a": [], "test_later": []}


def test_what_is_made_of_what_is_taken_away_is_there() -> None:
    """A `del` takes the name that it says, and none of those that decorators have made."""
    text = "from parameterized import parameterized, parameterized_class\n"
    text += "@parameterized_class([{'n': 1}])\nclass TestA(unittest.TestCase):\n    def test_a(self): ...\ndel TestA\n"
    text += "@parameterized.expand([1])\ndef test_f(n): ...\ndel test_f\n"
    assert [test.id for test in project(text).tests["test_it.py"]] == ["TestA_0::test_a", "test_f_0"]


def test_what_is_defined_again_is_there() -> None:
    """A condition that deletes a name says nothing of what has it further down."""
    text = "def test_a(): ...\nif os.environ.get('X'):\n    del test_a\ndef test_a(): ...\n"
    (test,) = project(text).tests["test_it.py"]
    assert test.requirements == ()


def test_what_only_a_type_checker_sees_is_in_no_run() -> None:
    """`if TYPE_CHECKING` asks nothing of a machine: what stands there never runs, what stands in its else always does."""
    head = "from typing import TYPE_CHECKING\n\n\n"
    assert needs(f"{head}if TYPE_CHECKING:\n    def test_x(): ...\n") == ["disabled"]
    assert needs(f"{head}if TYPE_CHECKING:\n    import torch\nelse:\n    def test_x(): ...\n") == []


@pytest.mark.parametrize(
    ("body", "gpus"),
    [
        ("torch.ones(2, device='cuda:1')", 2),
        ("torch.ones(2).cuda(1)", 2),
        ("torch.ones(2).cuda(device='cuda:3')", 4),
        ("torch.ones(2).to('cuda:1')", 2),
        ("torch.ones(2).to(torch.device('cuda', 1))", 2),
        ("torch.cuda.set_device(1)", 2),
        ("torch.cuda.set_device('cuda:2')", 3),
        ("torch.cuda.synchronize(device=1)", 2),
        ("torch.ones(2, device=THIRD)", 3),
        ("device = 'cuda:1'\n    x = torch.ones(2).cuda()\n    x.to(device)\n    torch.cuda.synchronize()", 2),
        ("device = 'cuda:1'\n    device = 'cuda'\n    torch.ones(2, device=device)", 1),
        ("make()\n    there(2, device='cuda:1')", 2),
        ("def inner(size, device):\n        there(size, device=device)\n    inner(2, 'cuda:1')", 2),
        ("if x:\n        torch.ones(2).cuda(1)\n    else:\n        torch.ones(2).cuda(2)", 2),
        ("if x:\n        torch.ones(2).cuda(1)\n    else:\n        make()", 1),
        ("if x:\n        torch.ones(2).cuda(1)\n    make()", 1),
        ("rank = 1\n    torch.ones(2, device=f'cuda:{rank}')", 1),
        ("torch.ones(2).cuda(x % 2)", 1),
        ("torch.ones(2).cuda(-1)", 1),
        ("torch.ones(2).cuda(True)", 1),
        ("torch.cuda.Event(1)", 1),
        ("mp.spawn(on_second, nprocs=2)", 2),
        ("mp.spawn(on_second, nprocs=4)", 4),
    ],
)
def test_gpus_of_an_index(body: str, gpus: int) -> None:
    """A GPU that is named by its index, as a number, needs those before it; of one that only a run names, one is needed."""
    second = "def on_second(rank):\n    run(rank, 2)\n    torch.ones(2).cuda(1)\n\n"
    found = [need for need in needs(f"{GPU_CALLS}{second}def test_x():\n    {body}\n") if "GPU" in need]
    assert found == [f"{gpus} GPU{'s' if gpus > 1 else ''}"]


@pytest.mark.parametrize(
    ("body", "gpus"),
    [
        ("torch.cuda.set_device(rank)", 3),
        ("torch.ones(2).cuda(rank)", 3),
        ("torch.ones(2).to(f'cuda:{rank}')", 3),
        ("torch.ones(2, device=torch.device('cuda', rank))", 3),
        ("torch.ones(2, device=torch.device(f'cuda:{rank}'))", 3),
        ("torch.ones(2).to(rank)", 3),
        ("device = torch.device(rank)\n    torch.ones(2, device=device)", 3),
        ("mine = rank\n    torch.ones(2).cuda(mine)", 3),
        ("torch.cuda.set_device(dist.get_rank())", 3),
        ("local_rank = int(os.environ['LOCAL_RANK'])\n    torch.cuda.set_device(local_rank)", 3),
        ("torch.cuda.set_device(int(os.environ.get('LOCAL_RANK', 0)))", 3),
        ("use(rank)", 3),
        ("torch.cuda.set_device(rank % torch.cuda.device_count())", 1),
        ("rank = 0\n    torch.cuda.set_device(rank)", 1),
        ("rank = rank % 2\n    torch.ones(2).cuda(rank)", 1),
        ("if x:\n        torch.cuda.set_device(rank)\n    else:\n        torch.cuda.set_device(0)", 1),
        ("for rank in range(2):\n        torch.cuda.set_device(rank)", 1),
        ("torch.cuda.set_device(tensor_rank)", 1),
        ("torch.ones(2).cuda(f'cuda:{rank}{x}')", 1),
    ],
)
@pytest.mark.parametrize("started", ["mp.spawn(each, nprocs=3)", "mp.spawn(each, args=(1,), nprocs=3, join=True)"])
def test_ranks_that_take_a_gpu_of_their_own_need_as_many_as_they_are(body: str, gpus: int, started: str) -> None:
    """So does what gets the number of its process as its first argument, whatever it calls it; of one rank alone it is one."""
    taken = "def use(index):\n    torch.ones(2).to(index).cuda()\n\n"
    bodies = {"rank": body}
    if ".cuda(" in body:
        bodies["number"] = re.sub(r"\brank\b", "number", body)
    for name, each in bodies.items():
        text = f"{GPU_CALLS}{taken}def each({name}):\n    {each}\n\ndef test_x():\n    {started}\n"
        assert [need for need in needs(text) if "GPU" in need] == [f"{gpus} GPU{'s' if gpus > 1 else ''}"]
    alone = f"{GPU_CALLS}{taken}def test_x(rank=0):\n    {body}\n"
    assert [need for need in needs(alone) if "GPU" in need] == ["1 GPU"]


def test_ranks_of_a_class_that_take_a_gpu_of_their_own() -> None:
    """What says how many ranks run a test is its class, and what says their number an attribute."""
    text = """\
import torch
from torch.testing._internal.common_distributed import MultiProcessTestCase


class TestA(MultiProcessTestCase):
    world_size = 3

    def test_a(self):
        torch.cuda.set_device(self.rank)

    def test_b(self):
        torch.ones(2).cuda(self.rank % 2)
"""
    tests = project(text).tests["test_it.py"]
    assert [[need.text for need in test.requirements if "GPU" in need.text] for test in tests] == [["3 GPUs"], ["1 GPU"]]


@pytest.mark.parametrize(
    "body",
    [
        "x = torch.ones(2)\n    if torch.cuda.is_available():\n        x.cuda()",
        "device = 'cuda' if torch.cuda.is_available() else 'cpu'\n    torch.ones(2, device=device)",
        "torch.cuda.is_available() and torch.ones(2).cuda()",
        "with pytest.raises(AssertionError):\n        torch.ones(2).cuda()",
        "with FakeTensorMode():\n        torch.ones(2, device='cuda')",
        "try:\n        torch.ones(2).cuda()\n    except AssertionError:\n        pass",
        "for device in range(torch.cuda.device_count()):\n        torch.ones(2, device=f'cuda:{device}')",
        "for device in ['cpu', 'cuda']:\n        pass\n    torch.ones(2, device=EITHER)",
        "x = sorted([])\n    if not torch.cuda.is_available():\n        return\n    torch.ones(2).cuda()",
        "mock.patch.object(torch.Tensor, 'cuda')\n    torch.ones(2).cuda()",
        "Empty().cuda()",
        "pytest.cuda()",
        "Sized.cuda()",
        "other.cuda(min_sm=(10, 0))",
        "torch.get_device_module(device='cuda')",
        "model = Empty()\n    model.eval().to('cuda')",
        "Sized(2).cuda().to(torch.bfloat16)",
        "size = x\n    Sized(size, nn.ReLU(), full=False).to('cuda')",
        "nn.ReLU().cuda()",
        "nn.MSELoss().cuda()",
        "nn.CrossEntropyLoss(weight=None, reduction='sum').cuda()",
        "nn.Sequential(nn.Identity(), nn.modules.activation.GELU()).eval().to('cuda')",
        "nn.Sequential(OrderedDict([('one', nn.ReLU())])).cuda()",
        "nn.LayerNorm(2, elementwise_affine=False).cuda()",
        "Batch().to('cuda')",
        "OtherEmpty().to('cuda')",
        "class Inner(Sized):\n        pass\n    model = Inner(2)\n    def inner():\n        model.cuda()\n    inner()",
        "generated()",
        "monkeypatch.setattr(torch.cuda, 'x', 1)\n    torch.ones(2).cuda()",
        "feign(monkeypatch)\n    torch.ones(2).cuda()",
        "f = lambda: torch.ones(2).cuda()",
        "f = [torch.ones(2).cuda() for _ in x]",
        "f = [torch.ones(2).cuda() for _ in range(2) if x]",
        "f = (torch.ones(2).cuda() for _ in range(2))",
        "device = 'cuda'\n    f = [torch.ones(2, device=device) for device in ('cpu', 'cpu')]",
        "f = [other.cuda() for other in (x, x)]",
        "def inner():\n        return torch.ones(2).cuda()",
        "torch.device('cuda')\n    torch.autocast(device_type='cuda')\n    torch.manual_seed(2)",
        "on_cpu(0)",
        "'x.cuda()'",
        "device = 'cuda'\n    device = 'cpu'\n    torch.ones(2, device=device)",
        "device = 'cuda'\n    for device in x:\n        pass\n    torch.ones(2, device=device)",
        "if x:\n        torch.ones(2).cuda()\n    elif y:\n        make()",
        "if x:\n        torch.ones(2).cuda()\n    else:\n        return",
        "Model.from_pretrained('tiny', device_map='auto')",
        "sizes = []\n    for size in sizes:\n        torch.ones(size, device='cuda')",
        "sizes = [4]\n    sizes.clear()\n    for size in sizes:\n        torch.ones(size, device='cuda')",
        "sizes = [4]\n    sizes = x\n    for size in sizes:\n        torch.ones(size, device='cuda')",
        "SIZES = x\n    for size in SIZES:\n        torch.ones(size, device='cuda')",
        "for size in NO_SIZES:\n        torch.ones(size, device='cuda')",
        "def inner(SIZES):\n        for size in SIZES:\n            torch.ones(size, device='cuda')\n    x = inner",
        "device, size = torch.device('cuda:0'), 2\n    size, device = 2, 'cpu'\n    torch.ones(size, device=device)",
        "device, size = x\n    torch.ones(size, device=device)",
        "on('cpu')",
        "on(device='cpu')",
        "on(*x)",
        "on(**x)",
        "there(2, device='cpu')",
        "there('cuda', device=x)",
        "def inner(size, device):\n        torch.ones(size, device=device)\n    inner('cuda', 'cpu')",
    ],
)
def test_calls_that_may_do_without_a_gpu(body: str) -> None:
    """What stands under a condition, is caught, feigned, put off or moves nothing says nothing."""
    assert needs(f"{GPU_CALLS}def test_x():\n    {body}\n") == []


@pytest.mark.parametrize(
    ("backend", "told"), [("nccl", 1), ("NCCL", 1), ("ccl", 1), ("gloo", 1), ("cpu:gloo,cuda:nccl", 1), ("triton", 0), ("auto", 0)]
)
def test_the_backend_of_a_class_that_starts_no_ranks(backend: str, told: int) -> None:
    """It may be that of a kernel or of a server: only those of torch.distributed are a need."""
    found = needs(f"import unittest\nclass TestIt(unittest.TestCase):\n    backend = {backend!r}\n    def test_x(self): ...\n")
    assert found == [f"backend {backend}"] * told


def test_a_world_size_of_a_test_itself() -> None:
    """What a test sets hides what its module calls by the same name."""
    text = "import torch.multiprocessing as mp\nWORLD_SIZE = 4\ndef body(rank): ...\n"
    text += "def launch(callable, world_size):\n    mp.spawn(callable, nprocs=world_size)\n"
    text += "def test_x():\n    WORLD_SIZE = 2\n    launch(callable=body, world_size=WORLD_SIZE)\n"
    assert needs(text) == ["world size 2"]


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("IS_90 = torch.cuda.get_device_capability()[0] >= 9\ndef test_x(): ...\n", ["1"]),
        ("from unittest.mock import patch\nx = torch.ones(1).cuda()\ndef test_x(): ...\n", ["1"]),
        ("def start():\n    torch.cuda.set_device(1)\nstart()\ndef test_x(): ...\n", ["2"]),
        ("@pytest.mark.parametrize('x', [torch.ones(1).cuda()], ids=['a'])\ndef test_y(x): ...\ndef test_x(): ...\n", ["1"]),
        ("class TestA:\n    x = torch.ones(1, device='cuda')\n    def test_x(self): ...\n", ["1"]),
        (
            "class A:\n    @unittest.skipIf(torch.cuda.get_device_capability() < (8, 0), 'x')\n    def y(self): ...\ndef test_x(): ...\n",
            ["1"],
        ),
        ("HAS = torch.cuda.is_available() and torch.cuda.get_device_capability()[0] >= 9\ndef test_x(): ...\n", []),
        ("if torch.cuda.is_available():\n    torch.cuda.set_device(0)\ndef test_x(): ...\n", []),
        ("try:\n    torch.cuda.set_device(0)\nexcept RuntimeError:\n    pass\ndef test_x(): ...\n", []),
        ("device = torch.device('cuda')\ndef start():\n    torch.ones(1, device=device)\ndef test_x(): ...\n", []),
        ("@largeTensorTest('40GB', device='cuda')\ndef test_y(): ...\ndef test_x(): ...\n", []),
        ("def start():\n    torch.cuda.set_device(1)\ndef test_x(): ...\nif __name__ == '__main__':\n    start()\n", []),
    ],
)
def test_what_an_import_comes_to_is_a_need_of_all_tests(text: str, gpus: list[str]) -> None:
    """Where an import of the module fails without a GPU, none of its tests is run."""
    head = "import unittest, pytest, torch\nfrom torch.testing._internal.common_device_type import largeTensorTest\n"
    project = analyse([parse_bytes("test_it.py", (head + text).encode())])
    (test,) = (test for test in project.tests["test_it.py"] if test.name == "test_x")
    assert [need.value for need in test.requirements if need.kind == "gpus"] == gpus
    assert {need.otherwise for need in test.requirements} <= {"fails"}


DEVICES = """\
@pytest.mark.parametrize("size", [2])
@pytest.mark.parametrize(("device", "dtype"), [
    ("cpu", 1), ("cuda", 1), (torch.device("cuda", 1), 1), ("cuda:2", 1), (None, 1), pytest.param("cuda", 2, marks=[{mark}]),
])
{feigned}def test_x(device, dtype, size):
    {before}there(size, device=device)
"""


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("torch.cuda.is_available() and torch.cuda.get_device_capability() < (8, 9)", ["1 GPU", "capability >= 8.9"]),
        ("torch.cuda.is_available() and torch.version.hip", ["1 GPU", "platform not ROCm"]),
        ("torch.cuda.is_available() and not (SM80OrLater or TEST_MULTIGPU)", ["1 GPU", "capability >= 8.0 or 2 GPUs"]),
        ("not TEST_CUDA and sys.platform == 'win32'", ["1 GPU"]),
    ],
)
def test_alternatives_that_the_other_needs_answer(condition: str, expected: list[str]) -> None:
    """Where there must be a GPU, that there may be none is no alternative."""
    marks = f"@pytest.mark.skipif({condition}, reason='x')\n@pytest.mark.skipif(not torch.cuda.is_available(), reason='x')\n"
    assert needs(f"{marks}def test_x(): ...\n") == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a and not b", "not a or b"),
        ("a == 1 and (b or c in d)", "a != 1 or (not b and c not in d)"),
        ("not (a < b < c) and f()", "a < b < c or not f()"),
        ("a and (b if c else d)", "not a or not (b if c else d)"),
        ("a and not (b or c)", "not a or b or c"),
    ],
)
def test_conditions_that_must_not_hold(condition: str, expected: str) -> None:
    """Of what cannot be read a page says what must hold, in the words of the source."""
    assert needs(f"@pytest.mark.skipif({condition}, reason='x')\ndef test_x(): ...\n") == [expected]


def test_a_parameter_that_names_a_gpu() -> None:
    """Of a parametrised test those cases need GPUs whose parameter says so, as many as it says, and that something else does not save."""
    text = GPU_CALLS + DEVICES.format(mark="pytest.mark.skipif(torch.cuda.device_count() < 2, reason='two')", feigned="", before="")
    found = [[need.text for need in test.requirements] for test in project(text).tests["test_it.py"]]
    assert found == [[], ["1 GPU"], ["2 GPUs"], ["3 GPUs"], [], ["2 GPUs"]]
    text = GPU_CALLS + DEVICES.format(mark="", feigned="@mock.patch('torch.ones')\n", before="")
    assert not any(test.requirements for test in project(text).tests["test_it.py"])


ATTRIBUTE = """\
import helpers
class Base(unittest.TestCase):
    device = {device}
    def make(self):
        return torch.ones(2, device=self.device)
class TestIt({base}):
    {body}
    def test_x(self):
        {call}
"""


@pytest.mark.parametrize(
    ("device", "call", "base", "body", "expected"),
    [
        ("'cuda'", "x = torch.ones(2, device=self.device)", "Base", "", 1),
        ("torch.device('cuda', 1)", "x = torch.ones(2).to(self.device)", "Base", "", 2),
        ("'cuda:2'", "x = torch.ones(2).to(self.device)", "Base", "", 3),
        ("'cuda'", "x = self.make()", "Base", "", 1),
        ("'cuda'", "torch.ones(2, device=self.device)", "helpers.Far", "", 1),
        ("'cuda'", "pass", "Base", "def setUp(self):\n        self.make()", 1),
        ("'cuda'", "torch.ones(2, device=self.device)", "Base", "device = 'cpu'", 0),
        ("'cpu'", "torch.ones(2, device=self.device)", "Base", "", 0),
        ("WHERE", "torch.ones(2, device=self.device)", "Base", "", 0),
        ("'cuda'", "torch.ones(2, device=self.device)", "Base", "def setUp(self):\n        self.device = 'cpu'", 0),
        ("'cuda'", "torch.ones(2, device=self.device)", "helpers.Set", "", 0),
        ("'cuda'", "if x:\n            torch.ones(2, device=self.device)", "Base", "", 0),
        ("'cuda'", "torch.ones(2, device=self.devices)", "Base", "", 0),
    ],
)
def test_an_attribute_that_names_a_gpu(device: str, call: str, base: str, body: str, expected: int) -> None:
    """A test whose class says `device = "cuda"` needs a GPU where it puts something there, unless that may be set otherwise."""
    far = "class Far:\n    device = 'cuda'\nclass Set:\n    device = 'cuda'\n    def set(self): self.device = 'cpu'\n"
    helpers = far if base == "helpers.Set" else far.partition("class Set")[0]
    text = ATTRIBUTE.format(device=device, call=call, base=base, body=body)
    counted = [need for need in needs(text, helpers=helpers) if need.endswith((" GPU", " GPUs"))]
    assert counted == ([f"{expected} GPU{'' if expected == 1 else 's'}"] if expected else [])


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("torch.cuda.synchronize()", [1, 1, 2, 3, 1, 1]),
        ("torch.ones(2).cuda(1)", [2, 2, 2, 3, 2, 2]),
        ("if size:\n        return torch.ones(2, device=device)\n    else:\n        return torch.ones(2).cuda(3)", [0, 1, 1, 1, 0, 1]),
    ],
)
def test_a_parameter_that_names_a_gpu_beside_others(before: str, expected: list[int]) -> None:
    """What a test is sure to need each case needs, and one whose parameter names a later GPU needs more."""
    tests = project(GPU_CALLS + DEVICES.format(mark="", feigned="", before=f"{before}\n    ")).tests["test_it.py"]
    assert [sum(int(need.value) for need in test.requirements) for test in tests] == expected


COUNTING = """
import helpers
from helpers import gpus, gpus_at_most, memory, some_gpus, spare, twice

"""
HELPERS = """\
import torch

def gpus():
    '''Count them.'''
    return torch.cuda.device_count() if torch.cuda.is_available() else 0

def some_gpus():
    if not torch.cuda.is_available():
        return 0
    known = {"a", "b"}
    found = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
    found = [each for each in found if each.name not in known]
    return len(found)

def gpus_at_most(most=8):
    count: int = gpus()
    return min(count, most)

def twice():
    count = torch.cuda.device_count()
    return count * 2

def spare():
    if not torch.cuda.is_available():
        return 0
    found = torch.cuda.list_gpu_processes()
    return len(found)

def memory():
    sizes = [torch.cuda.get_device_properties(number).total_memory for number in range(torch.cuda.device_count())]
    return sum(sizes)
"""


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("gpus() < 2", ["2 GPUs"]),
        ("helpers.gpus() == 0", ["1 GPU"]),
        ("some_gpus() < 4", ["4 GPUs"]),
        ("gpus_at_most() < 2", ["2 GPUs"]),
        ("gpus_at_most(4) < 2", ["2 GPUs"]),
        ("twice() < 2", ["twice() >= 2"]),
        ("spare() < 2", ["spare() >= 2"]),
        ("memory() < 2", ["memory() >= 2"]),
    ],
)
def test_functions_that_count_gpus(condition: str, expected: list[str]) -> None:
    """A project's own function counts GPUs where all that it returns is their number or 0."""
    assert needs(f"{COUNTING}@pytest.mark.skipif({condition}, reason='x')\ndef test_x(): ...\n", helpers=HELPERS) == expected


MADE = """\
import pytest, sys, torch, unittest
from packaging import version

def gpu_test(gpu_count: int = 1):
    '''Skip where there are too few.'''
    message = f"needs {gpu_count}"
    there: int = torch.cuda.device_count()
    return pytest.mark.skipif(there < gpu_count, reason=message)

def two_or_skip(*, count=2):
    if torch.cuda.device_count() < count:
        return unittest.skip("too few")
    return lambda test: test

def where_nccl(test):
    if torch.distributed.is_nccl_available():
        return test
    else:
        return unittest.skip("no NCCL")(test)

def no_windows(test):
    test = unittest.skipIf(sys.platform == "win32", "x")(test)
    return test

def may_fail(test):
    if sys.version_info >= (3, 12):
        return unittest.skip("new")(test)
    return test if torch.cuda.is_available() else unittest.expectedFailure(test)

def either(is_big):
    if is_big:
        return pytest.mark.skipif(torch.cuda.device_count() < 8, reason="x")
    return pytest.mark.skipif(torch.cuda.device_count() < 2, reason="x")

def gpu_tests(count):
    for each in range(count):
        pass
    return pytest.mark.skipif(count > each, reason="x")

def cases(count):
    values = ["skip", count]
    return pytest.mark.parametrize("x", values)

def new():
    return pytest.mark.skipif(version.parse(torch.__version__).base_version < "2.4.0", reason="x")
"""


@pytest.mark.parametrize(
    ("decorator", "expected"),
    [
        ("gpu_test()", ["1 GPU"]),
        ("gpu_test(gpu_count=4)", ["4 GPUs"]),
        ("two_or_skip()", ["2 GPUs"]),
        ("two_or_skip(count=3)", ["3 GPUs"]),
        ("where_nccl", ["backend nccl"]),
        ("no_windows", ["platform not Windows"]),
        ("may_fail", ["library Python < 3.12"]),
        ("either(True)", ["either(True)"]),
        ("gpu_tests(2)", ["gpu_tests(2)"]),
        ("cases(2)", []),
        ("new()", ["library torch >= 2.4.0"]),
    ],
)
def test_decorators_that_are_made_in_several_statements(decorator: str, expected: list[str]) -> None:
    """A project's own function may set names, and decide, before it returns a skip; what cannot be read stays as it is written."""
    assert needs(f"from made import *\n\n@{decorator}\ndef test_x(x=1): ...\n", made=MADE) == expected


def test_decorators_know_the_names_of_their_class() -> None:
    """They stand in the body of the class: a name that is set there once is that one, and not that of the module."""
    text = "there = False\nclass TestIt:\n    there: bool = torch.cuda.is_available()\n    twice = True\n    twice = False\n"
    mark = "    @pytest.mark.skipif(not {}, reason='x')\n    def test_x(self): ...\n"
    assert needs(text + mark.format("there")) == ["1 GPU"]
    assert needs(text + mark.format("twice")) == ["twice"]


@pytest.mark.parametrize("decorated", ["{0}def test_x(): {1}", "{0}class TestIt:\n    def test_x(self): {1}"])
def test_decorators_that_may_feign_a_gpu(decorated: str) -> None:
    """What `mock.patch` puts in the place of a GPU may do, for a test and for all of a class."""
    call = "torch.ones(2).cuda()\n"
    assert needs(GPU_CALLS + decorated.format("", call)) == ["1 GPU"]
    assert needs(GPU_CALLS + decorated.format("@mock.patch('torch.Tensor.cuda')\n", call)) == []


def test_ranks_that_join_a_group_of_nccl() -> None:
    """They need a GPU each, and NCCL; a decorator that says more counts instead, and so does a test that is disabled."""
    spawns = "def test_x():\n    mp.spawn(run, args=(4,), nprocs=4)\n"
    assert needs(GPU_CALLS + spawns) == ["4 GPUs", "world size 4", "backend nccl"]
    assert needs(f"{GPU_CALLS}@skip_if_lt_x_gpu(2)\n{spawns}") == ["2 GPUs", "world size 4"]
    assert needs(f"{GPU_CALLS}@unittest.skip('why')\n{spawns}") == ["world size 4", "disabled: why"]
    tests = project(GPU_CALLS + spawns).tests["test_it.py"]
    assert {(need.kind, need.otherwise) for need in tests[0].requirements if need.otherwise} == {("gpus", "fails"), ("backend", "fails")}


def test_gpus_of_set_up_and_of_fixtures() -> None:
    """`setUp` of a base class in another file counts, and so does a fixture, by what it is before the test."""
    base = "import torch, unittest\nclass Base(unittest.TestCase):\n    def setUp(self):\n        self.x = torch.ones(2).cuda()\n"
    assert needs("import base\nclass TestIt(base.Base):\n    def test_x(self): ...\n", base=base) == ["1 GPU"]
    fixture = "@pytest.fixture\ndef model():\n    yield Full().cuda()\n\n"
    assert needs(f"{GPU_CALLS}{fixture}def test_x(model): ...\n") == ["1 GPU"]
    assert needs(f"{GPU_CALLS}{fixture}def test_x(): ...\n") == []


@pytest.mark.parametrize(
    ("set_up", "expected"),
    [
        ("", ["1 GPU"]),
        ("    def setUp(self):\n        pass\n", []),
        ("    def setUp(self):\n        super().setUp()\n", ["1 GPU"]),
        ("    def setUp(self):\n        base.Base.setUp(self)\n", ["1 GPU"]),
        ("    def setUp(self):\n        self.setUpClass()\n", []),
        ("    @classmethod\n    def setUpClass(cls):\n        pass\n", ["1 GPU"]),
    ],
)
@pytest.mark.parametrize("need", ["self.x = torch.ones(2).cuda()", "if not torch.cuda.is_available():\n            self.skipTest('no')"])
def test_a_set_up_that_a_class_replaces_does_not_count(set_up: str, expected: list[str], need: str) -> None:
    """What a base class does before each test counts unless a class has another method in its place that does not call it."""
    base = f"import torch, unittest\nclass Base(unittest.TestCase):\n    def setUp(self):\n        {need}\n"
    assert needs(f"import base\nclass TestIt(base.Base):\n{set_up}    def test_x(self): ...\n", base=base) == expected
    again = "class TestMore(TestIt):\n    def setUp(self):\n        super().setUp()\n"
    assert needs(f"import base\nclass TestIt(base.Base):\n{set_up}    def test_x(self): ...\n{again}", base=base) == expected


def test_a_method_that_a_class_may_replace_is_not_followed() -> None:
    """`self.make()` is whichever method the class of the test has."""
    own = "class TestOne(unittest.TestCase):\n    def make(self):\n        return torch.ones(2).cuda()\n"
    own += "    def test_x(self):\n        self.make()\n"
    assert needs(own) == ["1 GPU"]
    other = "class TestTwo(TestOne):\n    def make(self):\n        return torch.ones(2)\n"
    assert {tuple(need.text for need in test.requirements) for test in project(own + other).tests["test_it.py"]} == {()}


@pytest.mark.parametrize(
    ("helper", "expected"),
    [
        ("BOUND = 3\ndef need(count=BOUND):\n    if torch.cuda.device_count() < count:\n        pytest.skip('few')\n", ["3 GPUs"]),
        ("LIMIT = True\ndef need(flag=LIMIT):\n    if flag:\n        pytest.skip('no')\n", ["need()"]),
        ("def need(flag=elsewhere.LIMIT):\n    if flag:\n        pytest.skip('no')\n", ["need()"]),
    ],
)
def test_defaults_of_a_helper_are_read_where_it_stands(helper: str, expected: list[str]) -> None:
    """The name of a constant as a default means that of the helper's own file, whichever file calls it."""
    assert needs(f"{helper}def test_x():\n    need()\n") == expected
    both = f"import pytest, torch\n{helper}"
    assert needs("LIMIT = 7\nfrom helpers import need\ndef test_x():\n    need()\n", helpers=both) == expected


def test_requirements_are_inherited() -> None:
    """Decorators, guards and `setUp` of base classes count in subclasses of other files.

    Of several numbers of GPUs without which a test is skipped the greatest counts; the guard, without which there is no test, stays.
    """
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
    assert found == ["1 GPU", "4 GPUs", "world size 2", "backend nccl", "library torch.distributed"]


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
        "slow",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if IS_WINDOWS:\n    pytestmark = pytest.mark.skip(reason='no')\n", ["platform not Windows"]),
        ("if TEST_CUDA:\n    pytestmark = pytest.mark.skip('no')\nelse:\n    pytestmark = pytest.mark.gpu(2)\n", ["no GPU at all"]),
        ("try:\n    import foo\nexcept ImportError:\n    pytestmark = pytest.mark.skip('no')\n", ["package foo"]),
        ("pytestmark = pytest.mark.skip('no')\n", ["disabled: no"]),
        ("if IS_WINDOWS:\n    pytestmark = pytest.mark.skip('no')\npytestmark = [pytest.mark.gpu(2)]\n", ["2 GPUs"]),
        ("pytestmark = pytest.mark.skip('no')\npytestmark = []\n", []),
        ("pytestmark = pytest.mark.skip('no')\ndel pytestmark\n", []),
        ("class TestIt:\n    if IS_WINDOWS:\n        pytestmark = pytest.mark.skip('no')\n", []),
        ("class TestIt:\n    pytestmark = pytest.mark.skip('no')\n    pytestmark = pytest.mark.gpu(2)\n", ["2 GPUs"]),
    ],
)
def test_marks_that_are_set_under_a_condition(text: str, expected: list[str]) -> None:
    """A mark of all tests that some condition sets skips under that condition; what is set last counts, what is deleted does not."""
    test = "    def test_x(self): ...\n" if text.startswith("class") else "def test_x(): ...\n"
    assert needs(text + test) == expected


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ("gpu world_size(2)", ["2 GPUs", "world size 2"]),
        ("world_size(4) cuda", ["4 GPUs", "world size 4"]),
        ("gpus() nprocs(3)", ["3 GPUs", "world size 3"]),
        ("gpu world_size(1)", ["1 GPU", "world size 1"]),
        ("gpu(1) world_size(2)", ["1 GPU", "world size 2"]),
        ("gpu(4) world_size(2)", ["4 GPUs", "world size 2"]),
        ("gpu gloo world_size(2)", ["1 GPU", "world size 2", "backend gloo"]),
        ("gpu nccl world_size(2)", ["2 GPUs", "world size 2", "backend nccl"]),
        ("skipif('not torch.cuda.is_available()') world_size(2)", ["1 GPU", "world size 2"]),
        ("world_size(2)", ["world size 2"]),
    ],
)
def test_marks_of_ranks_on_gpus_ask_for_one_each(marks: str, expected: list[str]) -> None:
    """A mark that says `gpu` and no number asks for one GPU for each rank that another mark starts; Gloo's ranks may share one."""
    text = "".join(f"@pytest.mark.{mark}\n" for mark in marks.replace("not ", "not~").split())
    assert needs(text.replace("~", " ") + "def test_x(): ...\n") == expected


def test_marks_of_ranks_on_gpus_count_from_anywhere() -> None:
    """The mark of a case and that of its class speak of the same test; a row of the project's own means what it says."""
    text = "@pytest.mark.gpu\nclass TestIt:\n    @pytest.mark.parametrize('n', [pytest.param(2, marks=pytest.mark.world_size(2))])\n"
    text += "    def test_x(self, n): ...\n"
    assert needs(text) == ["2 GPUs", "world size 2"]
    own = project(text, Vocabulary({"mark.gpu": Rule((("gpus", "1"), ("slow", "")))})).tests["test_it.py"][-1]
    assert [need.text for need in own.requirements] == ["1 GPU", "world size 2", "slow"]


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if not TEST_CUDA:\n    sys.exit(0)\ndef test_x(): ...\n", {"1 GPU": "absent"}),
        ("np = pytest.importorskip('numpy')\ndef test_x(): ...\n", {"package numpy": "absent"}),
        ("if TEST_CUDA:\n    def test_x(): ...\n", {"1 GPU": "absent"}),
        ("if not IS_WINDOWS:\n    class TestIt(TestCase):\n        def test_x(self): ...\n", {"platform not Windows": "absent"}),
        ("pytestmark = pytest.mark.skipif(not TEST_CUDA, reason='')\ndef test_x(): ...\n", {"1 GPU": "skipped"}),
        ("def test_x():\n    if not TEST_CUDA:\n        pytest.skip('no')\n", {"1 GPU": "skipped"}),
        ("def test_x():\n    pytest.importorskip('numpy')\n", {"package numpy": "skipped"}),
        ("def test_x():\n    pytest.importorskip('numpy', minversion='2.1')\n", {"package numpy >= 2.1": "skipped"}),
        ("@pytest.mark.nightly\ndef test_x(): ...\n", {"mark nightly": ""}),
        ("if TEST_CUDA:\n    @skipIf(not TEST_CUDA, '')\n    def test_x(): ...\n", {"1 GPU": "absent"}),
        (
            "class TestIt(MultiProcessTestCase):\n    world_size = 2\n    backend = 'nccl'\n    def test_x(self): ...\n",
            {"world size 2": "", "backend nccl": ""},
        ),
        (
            "class TestIt(MultiProcContinuousTest):\n    device_type = 'cuda'\n    backend_str = 'nccl'\n    def test_x(self): ...\n",
            {"1 GPU": "skipped", "world size number of devices": "", "backend nccl": "skipped", "device cuda": ""},
        ),
        ("class TestIt(FSDPTest):\n    def test_x(self): ...\n", {"1 GPU": "skipped", "world size number of devices": ""}),
        ("class TestIt(FSDPTest):\n    world_size = 4\n    def test_x(self): ...\n", {"4 GPUs": "skipped", "world size 4": ""}),
        ("class TestIt(DTensorTestBase):\n    def test_x(self): ...\n", {"world size 4": ""}),
        (
            "class TestIt(MultiProcessTestCase):\n    world_size = min(2, torch.cuda.device_count())\n    def test_x(self): ...\n",
            {"1 GPU": "skipped", "world size min(2, torch.cuda.device_count())": ""},
        ),
        (
            "class TestIt(DTensorTestBase):\n    backend = 'cpu:gloo,cuda:nccl'\n    def test_x(self): ...\n",
            {"4 GPUs": "skipped", "world size 4": "", "backend cpu:gloo,cuda:nccl": ""},
        ),
        (
            "class TestIt(DistributedTest):\n    world_size = [2, 4]\n    def test_x(self): ...\n",
            {"4 GPUs": "skipped", "world size 2, 4": ""},
        ),
        (
            "class TestIt(DistributedTest):\n    world_size = 2\n    requires_cuda_env = False\n    def test_x(self): ...\n",
            {"world size 2": ""},
        ),
    ],
)
def test_what_becomes_of_the_test(text: str, expected: dict[str, str]) -> None:
    """A guard around a definition makes its tests absent, a skip skips them, and what only describes stops nothing."""
    test = project(text.replace("MultiProcContinuousTest", "common_distributed.MultiProcContinuousTest")).tests["test_it.py"][-1]
    assert {need.text: need.otherwise for need in test.requirements} == expected


@pytest.mark.parametrize(
    ("device", "decorator", "expected"),
    [
        ("cpu", "onlyCUDA", ["disabled: on cpu"]),
        ("cpu", "onlyNativeDeviceTypes", []),
        ("cpu", "skipCUDAIf(True, 'broken')", []),
        ("cuda", "skipCUDAIf(True, 'broken')", ["1 GPU", "disabled: broken"]),
        ("cpu", "skipCPUIf(IS_WINDOWS, '')", ["platform not Windows"]),
        ("cpu", "skipMeta", []),
        ("cuda", "deviceCountAtLeast(2)", ["1 GPU", "2 GPUs"]),
    ],
)
def test_tests_made_for_a_device(device: str, decorator: str, expected: list[str]) -> None:
    """What a decorator says of other devices does not count for a test that is made for one."""
    text = (
        "from torch.testing._internal.common_device_type import instantiate_device_type_tests\n"
        f"class TestIt(TestCase):\n    @{decorator}\n    def test_x(self, device): ...\n"
        "instantiate_device_type_tests(TestIt, globals(), only_for=('cpu', 'cuda'))\n"
    )
    (test,) = (test for test in project(text).tests["test_it.py"] if ("device", device) in test.case)
    assert [need.text for need in test.requirements] == expected


ROWS = """\
[tool.rankbook.requirements]
needs_two_gpus = { gpus = 2 }
"mark.h100" = { capability = ">= 9.0", gpus = "1" }
requires_ranks = { "world size" = "{0|n}", otherwise = "runs" }
HAS_FAST_NET = { platform = "InfiniBand" }
only_when = "condition"
requires_transport = { backend = ["nccl", "ucc"] }
for_nccl = { gpus = "{1|count}", when = "{0|backend} == nccl" }
requires_luck = {}
"""


@pytest.mark.parametrize(
    ("decorator", "expected"),
    [
        ("needs_two_gpus", ["2 GPUs"]),
        ("pytest.mark.h100", ["1 GPU", "capability >= 9.0"]),
        ("requires_ranks(n=LIMIT)", ["world size 4"]),
        ("skipIf(not HAS_FAST_NET, '')", ["platform InfiniBand"]),
        ("skipIf(HAS_FAST_NET, '')", ["platform not InfiniBand"]),
        ("only_when(TEST_CUDA)", ["1 GPU"]),
        ("requires_transport", ["backend nccl or ucc"]),
        ("for_nccl('nccl', 3)", ["3 GPUs"]),
        ("for_nccl('gloo', 3)", []),
        ("requires_luck", []),
    ],
)
def test_rows_of_the_project(tmp_path: Path, decorator: str, expected: list[str]) -> None:
    """A project teaches rankbook its own names in `pyproject.toml`."""
    (tmp_path / "pyproject.toml").write_text(ROWS)
    vocabulary = Vocabulary(load(tmp_path).requirements)
    test = project(f"@{decorator}\ndef test_x(): ...\n", vocabulary).tests["test_it.py"][-1]
    assert [need.text for need in test.requirements] == expected


CALLED = """\
[tool.rankbook.requirements]
"Utils.boot" = { gpus = "{0|count=1}", backend = "nccl" }
start_engine = { package = "engine" }
nothing = {}
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Utils.boot()", ["1 GPU", "backend nccl"]),
        ("helpers.Utils.boot(LIMIT, why=3)", ["4 GPUs", "backend nccl"]),
        ("with torch.no_grad():\n        x = [Utils.boot(count=2)]", ["2 GPUs", "backend nccl"]),
        ("Utils.boot(3)\n    start_engine()\n    torch.ones(2).cuda()", ["3 GPUs", "backend nccl", "package engine"]),
        ("Utils.boot(maybe())", ["Utils.boot(maybe())"]),
        ("own()", ["2 GPUs", "backend nccl"]),
        ("if maybe():\n        Utils.boot()", []),
        ("with pytest.raises(RuntimeError):\n        Utils.boot()", []),
        ("boot()\n    Other.boot()\n    Utils.boot\n    nothing()", []),
    ],
)
def test_calls_of_the_project(tmp_path: Path, body: str, expected: list[str]) -> None:
    """A row says what a call needs, wherever a test comes to it whatever happens; it is what fails without."""
    (tmp_path / "pyproject.toml").write_text(CALLED)
    vocabulary = Vocabulary(load(tmp_path).requirements)
    own = "from helpers import Utils, start_engine\ndef own():\n    Utils.boot(2)\n"

    def found(text: str) -> list[Requirement]:
        return list(project(own + text, vocabulary).tests["test_it.py"][-1].requirements)

    test = f"def test_x():\n    {body}\n"
    assert [need.text for need in found(test)] == expected
    assert {need.otherwise for need in found(test)} <= {"fails"}
    deeper = body.replace("\n", "\n    ")
    set_up = f"class TestX:\n    def setup_method(self):\n        {deeper}\n"
    assert [need.text for need in found(f"{set_up}    def test_x(self): ...\n")] == expected
    fixture = f"@pytest.fixture(autouse=True)\ndef before():\n    {body}\n"
    assert [need.text for need in found(f"{fixture}def test_x(): ...\n")] == expected
    marked = [need.text for need in found(f"@skip_if_lt_x_gpu(8)\n{test}")]
    assert marked == ["8 GPUs", *(text for text in expected if text.startswith(("package", "Utils")))]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("x = { gpu = 2 }", "the row 'x' of [tool.rankbook.requirements] has the unknown kind 'gpu'"),
        ("x = { gpus = 1.5 }", "gives 'gpus' a value that is no string, whole number or list of them"),
        ("x = { gpus = 'two' }", "gives 'gpus' the value 'two', which says nothing of that kind"),
        ("x = 3", "is not a table"),
        ("x = 'maybe'", "is neither a table nor 'condition' or 'not condition'"),
        ("x = { gpus = 2, when = 'nccl' }", "has a 'when' that is not of the form 'PLACE == VALUE'"),
        ("x = { gpus = 2, otherwise = 'fails' }", "has the 'otherwise' 'fails'; known are skipped, absent, runs"),
    ],
)
def test_wrong_rows_of_the_project(tmp_path: Path, row: str, message: str) -> None:
    """A wrong row is one sentence with the file and what would be right."""
    (tmp_path / "pyproject.toml").write_text(f"[tool.rankbook.requirements]\n{row}\n")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert message in str(caught.value)
    assert re.search("; (write|known are) ", str(caught.value))


def test_long_and_deep_conditions_stay_bounded() -> None:
    """A condition that no reader would write costs its own reading only, and is shown cut short."""
    flags = "".join(f"F{level} = {' and '.join([f'F{level + 1}'] * 60)}\n" for level in range(6)) + "F6 = TEST_CUDA\n"
    texts = {
        "many": " or ".join(f"weird({number})" for number in range(3000)),
        "deep": "not " * 150 + "TEST_CUDA",
        "sum": "+".join(["1"] * 900) + " > LIMIT",
        "flags": "F0",
        "itself": "ITSELF",
    }
    for name, text in texts.items():
        found = project(f"{flags}ITSELF = not ITSELF\n@skipIf({text}, '')\ndef test_x(): ...\n").tests["test_it.py"][-1].requirements
        assert all(len(need.value) <= 240 and len(need.evidence) <= 240 for need in found), name


_ATOMS = st.sampled_from(
    ("TEST_CUDA", "IS_WINDOWS", "SM80OrLater", "dist.is_nccl_available()", "torch.cuda.device_count() < 4", "weird()", "True", "LIMIT == 4")
)
_CONDITIONS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        inner.map(lambda text: f"not ({text})"),
        st.tuples(inner, st.sampled_from(("and", "or")), inner).map(lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"),
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(_CONDITIONS)
def test_every_condition_is_read_or_shown(condition: str) -> None:
    """Whatever a condition is made of, the same comes out each time, of known kinds, and an unreadable part is never lost."""
    text = f"@skipIf({condition}, 'why')\ndef test_x(): ...\n"
    found, again = (project(text).tests["test_it.py"][-1].requirements for _ in range(2))
    assert found == again
    assert {need.kind for need in found} <= set(KINDS)
    assert {need.otherwise for need in found} <= set(OUTCOMES)
    twice = project(f"@skipIf(not (not ({condition})), 'why')\ndef test_x(): ...\n").tests["test_it.py"][-1].requirements
    assert [need.text for need in twice] == [need.text for need in found]


@given(st.integers(0, 99), st.sampled_from(("", "== ", "<= ")))
def test_opposites_of_numbers_of_gpus(number: int, sign: str) -> None:
    """What meets a number of GPUs does not meet its opposite, and the other way round."""
    value = f"{sign}{number}"
    other = opposite("gpus", value)
    if other is not None:
        low, high = gpu_range(value) or (0, 0)
        first, last = gpu_range(other) or (0, 0)
        met = set(range(low, 200 if high is None else high + 1))
        assert met ^ set(range(first, 200 if last is None else last + 1)) == set(range(200))


def seed(name: str, path: str) -> Project:
    """Analyse the listing of a seed page as the file that it shows."""
    lines = next(SEEDS.glob(f"*{name}*")).read_text(encoding="utf-8").splitlines()
    start = next(index for index, line in enumerate(lines) if line in ("```python", "```py"))
    end = lines.index("```", start)
    return analyse([parse_bytes(path, ("\n".join(lines[start + 1 : end]) + "\n").encode())])


Row = tuple[str, str, int, str]
"""Kind, value, line, and what becomes of the test otherwise."""

GLOO, P2P, CUPY, PYPG = "test_c10d_spawn_gloo.py", "test_p2p_ipc.py", "test_cupy_as_tensor.py", "test_c10d_pypg.py"
GLOO_FUNCTIONS = {"broadcast": 129, "reduce": 137, "allreduce": 145, "all_gather": 153, "all_to_all": 161, "all_to_all_single": 169}
GLOO_FUNCTIONS |= {"gather": 178, "scatter": 209}

BY_HAND: dict[str, dict[str, list[Row]]] = {
    P2P: {
        "P2PIpcTest::test_p2p_ipc": [
            ("gpus", "2", 18, "skipped"),
            ("world size", "number of devices", 19, ""),
            ("backend", "gloo", 21, "skipped"),
            ("device", "cuda", 30, ""),
            ("peer access", "", 18, "skipped"),
            ("capability", ">= 8.0", 18, "skipped"),
        ],
    },
    CUPY: {
        "CupyAsTensorTest::test_cupy_as_tensor": [
            ("gpus", "2", 49, "skipped"),
            ("world size", "number of devices", 50, ""),
            ("backend", "gloo", 52, "skipped"),
            ("device", "cuda", 64, ""),
            ("peer access", "", 49, "skipped"),
            ("capability", "< 10.0", 67, "skipped"),
            ("capability", ">= 8.0", 49, "skipped"),
        ],
    },
    GLOO: {
        "DistributedDataParallelSingleProcessTest::test_cpu": [("backend", "gloo", 72, "skipped")],
        "DistributedDataParallelSingleProcessTest::test_cuda": [("gpus", "1", 77, "skipped"), ("backend", "gloo", 76, "skipped")],
        "DistributedDataParallelSingleProcessTest::test_rnn": [("gpus", "1", 82, "skipped"), ("backend", "gloo", 81, "skipped")],
        **{
            f"TestDistributedNNFunctionsGloo::test_{name}": [
                ("gpus", "2", line + 1, "skipped"),
                ("backend", "gloo", line, "skipped"),
                ("library", "torch.distributed.nn", line + 2, "skipped"),
                ("platform", "not debug ASAN", 127, "absent"),
            ]
            for name, line in GLOO_FUNCTIONS.items()
        },
    },
    PYPG: {
        **{
            f"TestDDPWithWork{name}::test_ddp_{test}": [("world size", "1", 125, "")]
            for name in ("Subclass", "Wrapper")
            for test in ("invoke_work_object", "with_pypg", "with_pypg_with_grad_views", "no_init_sync")
        },
        "TestPyProcessGroup::test_attr_overrides": [],
        "TestPyProcessGroup::test_abort_shutdown": [],
        "TestPyProcessGroup::test_block_current_stream": [("gpus", "1", 216, "skipped")],
        "TestPyProcessGroup::test_block_current_stream_use_after_free": [("gpus", "1", 243, "skipped")],
    },
}


@needs_seeds
@pytest.mark.parametrize("name", BY_HAND)
def test_the_seeds_by_hand(name: str) -> None:
    """The requirements of every test of the seed sources are those of a table that was written by reading them."""
    tests = seed(name, f"test/distributed/{name}").tests[f"test/distributed/{name}"]
    found = {test.id: [(need.kind, need.value, need.line, need.otherwise) for need in test.requirements] for test in tests}
    assert found == BY_HAND[name]


@needs_seeds
def test_the_seed_without_tests() -> None:
    """The fifth seed is a harness: it holds no tests, and ends early nowhere."""
    path = "torch/testing/_internal/distributed/_shard/sharded_tensor/__init__.py"
    result = seed("__init__", path)
    assert path not in result.tests
    assert path not in result.requirements


INHERITED = {
    "test_ddp_checkpointing_once": 543,
    "test_ddp_checkpointing_unused_params": 568,
    "test_ddp_checkpointing_twice": 601,
    "test_ddp_checkpointing_twice_static_graph": 634,
    "test_ddp_checkpointing_dynamic_module": 651,
    "test_ddp_checkpointing_dynamic_weight_sharing": 670,
    "test_ddp_checkpointing_weight_sharing": 690,
    "test_ddp_checkpointing_twice_weight_sharing": 713,
    "test_sync_batch_norm_only_empty_input": 891,
    "test_sync_batch_norm_empty_input": 938,
    "test_dataclass_output": 1036,
    "test_dataclass_output_unused_param": 1040,
}
"""Functions of PyTorch 2.6's `CommonDistributedDataParallelTest` that need two GPUs, with the line that says so, by hand."""


@pytest.mark.skipif("RANKBOOK_PYTORCH" not in os.environ, reason="RANKBOOK_PYTORCH names no PyTorch 2.6 source tree")
def test_inherited_tests_of_the_seed() -> None:
    """In the tree of its siblings, each test that the seed inherits needs what the decorator in the other file says."""
    folder = Path(os.environ["RANKBOOK_PYTORCH"]) / "test/distributed"
    names = (PYPG, "test_c10d_common.py")
    result = analyse(parse_bytes(f"test/distributed/{name}", (folder / name).read_bytes()) for name in names)
    tests = [test for test in result.tests[f"test/distributed/{PYPG}"] if test.class_name == "TestDDPWithWorkSubclass"]
    found = {test.function: need.line for test in tests for need in test.requirements if need.kind == "gpus" and need.value == "2"}
    assert found == INHERITED
    assert all(need.path == "test/distributed/test_c10d_common.py" for test in tests for need in test.requirements if need.kind == "gpus")
    assert {need.value for test in tests for need in test.requirements if need.kind == "world size"} == {"1"}


ASKING = """
def requires_gpus(count=4):
    if torch.cuda.device_count() < count:
        pytest.skip("too few")

def asks(count):
    requires_gpus(count)

def lucky(mesh):
    if dist.get_world_size() < mesh[0]:
        pytest.skip("unlucky")

def when(wanted):
    if wanted and torch.cuda.device_count() < 2:
        pytest.skip("too few")

def never():
    if os.environ.get("NOW"):
        return
    pytest.skip("later")

class Base:
    def need(self, count):
        if torch.cuda.device_count() < count:
            self.skipTest("too few")

class TestIt(Base):
    {set_up}

    @pytest.mark.parametrize("count", [8])
    def test_x(self, count):
        {body}
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("requires_gpus(2)", ["2 GPUs"]),
        ("requires_gpus(count=2)", ["2 GPUs"]),
        ("requires_gpus()", ["4 GPUs"]),
        ("requires_gpus(count)", ["8 GPUs"]),
        ("asks(3)", ["3 GPUs"]),
        ("mesh = asks(3)", ["3 GPUs"]),
        ("self.need(5)", ["5 GPUs"]),
        ("lucky(mesh)", ["lucky(mesh)"]),
        ("never()", ["environment NOW set"]),
        ("when(True)", ["2 GPUs"]),
        ("when(False)", []),
        ("other.skip_unless_many(6)", ["6 GPUs"]),
        ("if count > 3:\n            requires_gpus(2)", []),
        ("try:\n            pass\n        except ValueError:\n            requires_gpus(2)", []),
        ("print(count)", []),
    ],
)
def test_what_a_test_calls_may_skip_it(body: str, expected: list[str]) -> None:
    """A function that a test calls under no condition, or a method, skips it as a decorator would; what cannot be read is shown."""
    other = "import pytest, torch\n\ndef skip_unless_many(n):\n    if torch.cuda.device_count() < n:\n        pytest.skip('few')\n"
    assert needs("import other\n" + ASKING.format(body=body, set_up="pass"), other=other) == expected
    if "count" not in body:
        set_up = f"def setUp(self):\n        {body}"
        assert needs("import other\n" + ASKING.format(body="pass", set_up=set_up), other=other) == expected


DEEPSPEED = """
class DistributedExec:
    world_size = 2

class DistributedTest(DistributedExec):
    pass

class DistributedFixture(DistributedExec):
    pass
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("    def test_x(self): ...\n", ["2 GPUs", "world size 2"]),
        ("    world_size = 2\n    @pytest.mark.world_size(1)\n    def test_x(self): ...\n", ["1 GPU", "world size 1"]),
        ("    def test_x(self, four): ...\n", ["4 GPUs", "world size 2"]),
        ("    def test_x(self, eight): ...\n", ["8 GPUs", "world size 2"]),
        ("    def test_x(self, made): ...\n", ["4 GPUs", "world size 2"]),
        ("    @pytest.mark.world_size(8)\n    def test_x(self, four): ...\n", ["8 GPUs", "world size 8"]),
    ],
)
def test_marks_and_fixtures_of_ranks(text: str, expected: list[str]) -> None:
    """A mark counts more than the class, and a fixture that starts ranks of its own, or calls one, skips for want of as many GPUs."""
    head = "import pytest\nfrom unit.common import DistributedFixture, DistributedTest\n"
    made = "@pytest.fixture\ndef made(request):\n    four()(request)\n\n"
    fixtures = f"{made}class four(DistributedFixture):\n    world_size = 4\n\nclass eight(four):\n    world_size = [2, 8]\n\n"
    found = project(f"{head}{fixtures}class TestIt(DistributedTest):\n{text}", **{"unit/common": DEEPSPEED}).tests["test_it.py"][-1]
    assert [need.text for need in found.requirements if need.kind != "mark"] == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if torch.cuda.device_count() < 2:\n        return\n    assert True", ["2 GPUs"]),
        (
            "need = 4\n    n = torch.cuda.device_count()\n    if n < need:\n        print('few')\n        return None\n    assert n",
            ["4 GPUs"],
        ),
        ("if not torch.cuda.is_available():\n        return\n    torch.ones(2).cuda()", ["1 GPU"]),
        ("if torch.cuda.is_available():\n        return\n    assert True", []),
        ("import sys\n    if sys.platform == 'win32':\n        return\n    assert True", []),
        ("assert 1\n    if torch.cuda.device_count() < 2:\n        return\n    assert True", []),
        ("x = run()\n    if torch.cuda.device_count() < 2:\n        return\n    assert x", []),
        ("if torch.cuda.device_count() < 2:\n        assert 1\n        return\n    assert True", []),
        ("if torch.cuda.device_count() < 2:\n        return 1\n    assert True", []),
        ("if torch.cuda.device_count() < 2:\n        return\n    else:\n        assert True", []),
        ("if True:\n        return\n    assert True", []),
        ("if unknown():\n        return\n    assert True", []),
    ],
)
def test_a_test_that_returns_before_it_tests_anything(body: str, expected: list[str]) -> None:
    """What the machine must have for it to go on is a need: plain pytest says that it has passed, and it has proved nothing."""
    assert needs(f"import torch\n\ndef test_x():\n    {body}\n") == expected


def test_a_test_that_returns_at_once_by_what_is_feigned() -> None:
    """What a mock answers says nothing of the machine."""
    head = "import torch\nfrom unittest import mock\n\n"
    text = head + "{mark}def test_x():\n    if torch.cuda.device_count() < 2:\n        return\n    assert True\n"
    assert needs(text.format(mark="")) == ["2 GPUs"]
    assert needs(text.format(mark="@mock.patch('torch.cuda.device_count', lambda: 2)\n")) == []


def test_a_test_that_returns_at_once_in_some_cases() -> None:
    """Each case needs what it asks for; one that leaves because of its parameter needs nothing."""
    text = (
        "import pytest, torch\n\n@pytest.mark.parametrize('n', [1, 2])\ndef test_x(n):\n    if {condition}:\n        return\n    assert n\n"
    )
    asked = project(text.format(condition="n > torch.cuda.device_count()")).tests["test_it.py"]
    assert [[need.text for need in each.requirements if need.kind != "mark"] for each in asked] == [["1 GPU"], ["2 GPUs"]]
    told = project(text.format(condition="n == 1")).tests["test_it.py"]
    assert [[need.text for need in each.requirements if need.kind != "mark"] for each in told] == [[], []]


@pytest.mark.parametrize("name", ["DistributedTest", "FSDPTest", "DistributedTestBase", "TestDistBackend"])
def test_a_class_of_the_name_of_a_harness_is_none(name: str) -> None:
    """A class that a project calls `DistributedTest`, or as one of torch's harnesses, has the world size of nobody."""
    own = f"class {name}(unittest.TestCase):\n    pass\n\nclass TestIt({name}):\n    def test_x(self): ...\n"
    test = project(own).tests["test_it.py"][-1]
    assert (test.harness, test.requirements) == ("TestCase", ())


@pytest.mark.parametrize(
    ("base", "body", "expected"),
    [
        ("MultiProcessTestCase", "@property\n    def world_size(self): return 2", ("MultiProcessTestCase", ["world size 2"])),
        ("MultiProcessTestCase", "world_size = 3\n    def _run(self): ...", ("MultiProcessTestCase", ["world size 3"])),
        ("unittest.TestCase", "def _spawn_processes(self): ...", ("DistributedTestBase", ["world size 4"])),
    ],
)
def test_a_class_of_the_name_of_a_harness_is_read_for_itself(base: str, body: str, expected: tuple[str, list[str]]) -> None:
    """One on top of torch's says what it changes; one that starts the ranks itself is a copy of torch's."""
    own = f"class DistributedTestBase({base}):\n    {body}\n\nclass TestIt(DistributedTestBase):\n    def test_x(self): ...\n"
    test = project(f"from torch.testing._internal.common_distributed import MultiProcessTestCase\n{own}").tests["test_it.py"][-1]
    assert (test.harness, [need.text for need in test.requirements]) == expected


@pytest.mark.parametrize(
    ("body", "expected"), [("from own.part import fast", ["import own.part"]), ("import nothing.part", ["package nothing"])]
)
def test_the_tree_itself_is_no_package_that_may_be_missing(body: str, expected: list[str]) -> None:
    """What fails to be imported of the tree's own package is a part of it."""
    text = f"try:\n    {body}\nexcept ImportError:\n    pytest.skip('', allow_module_level=True)\n\ndef test_x(): ...\n"
    assert needs(text, **{"own/__init__": ""}) == expected


def test_what_is_no_range_is_shown_as_it_is_written() -> None:
    """`not (>= 2.9, < 2.10)` is below or above, which no value says."""
    text = "from lightning_utilities.core.imports import RequirementCache\nOLD = RequirementCache('torch>=2.9.0,<2.10.0')\n"
    assert needs(f"{text}@pytest.mark.skipif(OLD, reason='')\ndef test_x(): ...\n") == ["not OLD"]
    assert needs(f"{text}@pytest.mark.skipif(not OLD, reason='')\ndef test_x(): ...\n") == ["package torch >= 2.9.0,<2.10.0"]
    assert opposite("package", "torch >= 2.9.0,<2.10.0") is None
