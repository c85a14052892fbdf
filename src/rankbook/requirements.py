"""What a test needs: tables from decorators, base classes, calls, flags and marks to requirements, shared by both wings.

To teach rankbook a name, add a row to `NAMES`; to teach it a test base class, add one to `HARNESSES`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Requirement:
    """One thing that a test needs, with the line that says so."""

    kind: str
    """A word of `KINDS`."""
    value: str
    """`2`, `nccl`, `>= 8.0`; for `condition` the condition verbatim."""
    evidence: str
    """The decorator, base class, call or mark as written."""
    path: str = ""
    """Source in which it stands."""
    line: int = 0
    otherwise: str = "skipped"
    """What becomes of the test where this is not met: `skipped`; `absent`, when it is not even collected; empty when it runs all the same."""

    @property
    def text(self) -> str:
        """The requirement as a reader says it: `2 GPUs`, `backend nccl`."""
        if self.kind == "gpus":
            return f"{self.value} GPU" if self.value == "1" else f"{self.value} GPUs"
        if self.kind == "condition":
            return self.value
        return f"{self.kind} {self.value}".strip()


KINDS = (
    "gpus",
    "world size",
    "backend",
    "device",
    "peer access",
    "capability",
    "library",
    "package",
    "platform",
    "environment",
    "mark",
    "condition",
)
"""Kinds of requirement, in the order in which a page shows them."""


@dataclass(frozen=True, slots=True)
class Harness:
    """A base class, or a runner, that starts the ranks of a test."""

    name: str
    """Name of the class; `pytest` for plain functions and classes."""
    runs: str
    """How it runs ranks, as a clause."""
    world_size: str = ""
    """World size when the test names none; empty when the harness has none."""
    gpus_for_nccl: bool = False
    """Whether it skips when NCCL is its backend and there are fewer GPUs than ranks."""


_EACH_TEST = "starts one process per rank for each test"
_EACH_CLASS = "starts one process per rank for each class and sends it test after test"
_THREADS = "runs each rank as a thread of one process"
_DEVICES = "number of devices"
_PLAIN = "runs in one process; ranks only where the test starts them"

HARNESSES: dict[str, Harness] = {
    harness.name: harness
    for harness in (
        Harness("MultiProcessTestCase", _EACH_TEST, "4"),
        Harness("DistributedTestBase", f"{_EACH_TEST}, with a backend chosen by device", "4"),
        Harness("MultiProcContinuousTest", _EACH_CLASS, _DEVICES),
        Harness("MultiProcContinousTest", _EACH_CLASS, _DEVICES),
        Harness("MultiThreadedTestCase", _THREADS, "4"),
        Harness("DTensorTestBase", f"{_EACH_TEST} and joins them in `with_comms`", "4"),
        Harness("DTensorContinuousTestBase", _EACH_CLASS, "4"),
        Harness("DTensorOpTestBase", _THREADS, "4"),
        Harness("LocalDTensorTestBase", "simulates all ranks in one process", "4"),
        Harness("LocalDTensorContinuousTestBase", "simulates all ranks in one process", "4"),
        Harness("FSDPTest", f"{_EACH_TEST}, one per device", _DEVICES),
        Harness("FSDPTestContinuous", f"{_EACH_CLASS}, one per device", _DEVICES),
        Harness("FSDPTestMultiThread", f"{_THREADS}, one per device", _DEVICES),
        Harness("ShardedTensorTestBase", f"{_EACH_TEST} and joins them with RPC in `with_comms`", "4", gpus_for_nccl=True),
        Harness("SpawnHelper", f"{_EACH_TEST}, each with an RPC agent", "4"),
        Harness("RpcAgentTestFixture", "joins the ranks with RPC in `dist_init`", "4"),
        Harness("TestDistBackend", f"{_EACH_TEST}, by the variables BACKEND and WORLD_SIZE", "WORLD_SIZE"),
        Harness("DynamoDistributedSingleProcTestCase", "runs in one process, which is a group of one rank", "1"),
        Harness("DynamoDistributedMultiProcTestCase", f"{_EACH_TEST}, one per device", _DEVICES),
        Harness("IsolatedAsyncioTestCase", _PLAIN),
        Harness("TestCase", _PLAIN),
        Harness("pytest", "calls it in one process; ranks only where the test starts them"),
    )
}
"""What runs ranks, by the last part of a base class's name; the nearest base class that has a row counts."""

Needs = tuple[tuple[str, str], ...]
"""Kinds and values; in a value `{0|n=2}` is the first argument, or the keyword `n`, or else 2."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a name says when it decorates or marks a test, or stands in a condition."""

    needs: Needs = ()
    """What the test needs when it is so decorated, or when the condition must be true."""
    unless: Needs = ()
    """What the test needs when the condition must be false; empty when that cannot be said."""
    when: tuple[str, str] | None = None
    """A value with its place as in `needs`, and what it must be for the rule to ask anything."""


def _needs(*pairs: tuple[str, str], unless: Needs = ()) -> Rule:
    return Rule(pairs, unless)


def _gpus(value: str) -> Rule:
    return Rule((("gpus", value),))


def _platform(name: str) -> Rule:
    """Name a platform, or a kind of build, that a condition asks for or rules out."""
    return Rule((("platform", name),), (("platform", f"not {name}"),))


def _not_on(name: str) -> Rule:
    return Rule((("platform", f"not {name}"),))


def _capabilities() -> Iterable[tuple[str, Rule]]:
    for version in ("5.3", "6.0", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "11.0", "12.0"):
        digits = version.replace(".", "")
        yield f"SM{digits}OrLater", Rule((("capability", f">= {version}"),), (("capability", f"< {version}"),))
        yield f"IS_SM{digits}", Rule((("capability", f"== {version}"),), (("capability", f"!= {version}"),))


_NCCL = ("backend", "nccl")
_P2P: Needs = (("gpus", "2"), ("peer access", ""), ("capability", ">= 8.0"))

NAMES: Mapping[str, Rule] = {
    # GPUs
    "skip_if_lt_x_gpu": _gpus("{0|x}"),
    "skip_if_lt_x_gpu_and_backend": _gpus("{0|x}"),
    "at_least_x_gpu": _gpus("{0|x}"),
    "requires_world_size": _gpus("{0|n}"),
    "deviceCountAtLeast": _gpus("{0|num_required_devices}"),
    "nccl_skip_if_lt_x_gpu": Rule((("gpus", "{1|x}"), _NCCL), when=("{0|backend}", "nccl")),
    "require_n_gpus_for_nccl_backend": Rule((("gpus", "{0|n}"), _NCCL), when=("{1|backend}", "nccl")),
    "skip_if_no_gpu": _gpus("1"),
    "skip_unless_torch_gpu": _gpus("4"),
    "requires_cuda": _gpus("1"),
    "requires_gpu": _gpus("1"),
    "requires_cuda_and_triton": _needs(("gpus", "1"), ("package", "triton")),
    "requires_gpu_and_triton": _needs(("gpus", "1"), ("package", "triton")),
    "require_cuda": _gpus("1"),
    "require_torch_gpu": _gpus("1"),
    "require_multi_gpu": _gpus("2"),
    "require_torch_multi_gpu": _gpus("2"),
    "onlyCUDA": _gpus("1"),
    "onlyAccelerator": _gpus("1"),
    "onlyGPU": _gpus("1"),
    "TEST_CUDA": _gpus("1"),
    "TEST_GPU": _gpus("1"),
    "TEST_ACCELERATOR": _gpus("1"),
    "HAS_ACCELERATOR": _gpus("1"),
    "HAS_GPU": _gpus("1"),
    "HAS_CUDA": _gpus("1"),
    "HAS_MULTIGPU": _gpus("2"),
    "TEST_MULTIGPU": _gpus("2"),
    "TEST_MULTIACCELERATOR": _gpus("2"),
    "HAS_GPU_AND_TRITON": _needs(("gpus", "1"), ("package", "triton")),
    "HAS_CUDA_AND_TRITON": _needs(("gpus", "1"), ("package", "triton")),
    "HAS_TRITON": _needs(("package", "triton")),
    "torch.cuda.is_available": _gpus("1"),
    "torch.accelerator.is_available": _gpus("1"),
    "mark.gpu": _gpus("{0|n=1}"),
    "mark.gpus": _gpus("{0|n=1}"),
    "mark.cuda": _gpus("1"),
    "mark.multi_gpu": _gpus("{0|n=2}"),
    "mark.multigpu": _gpus("{0|n=2}"),
    # World size
    "require_world_size": _needs(("world size", ">= {0|world_size}")),
    "require_exact_world_size": _needs(("world size", "{0|world_size}")),
    "skip_if_small_worldsize": _needs(("world size", ">= 8")),
    "skip_if_odd_worldsize": _needs(("world size", "even")),
    "mark.world_size": _needs(("world size", "{0|n}")),
    # Backends and what they are built with
    "requires_nccl": _needs(_NCCL),
    "requires_gloo": _needs(("backend", "gloo")),
    "requires_ucc": _needs(("backend", "ucc")),
    "requires_mpi": _needs(("backend", "mpi")),
    "requires_xccl": _needs(("backend", "xccl")),
    "requires_accelerator_dist_backend": _needs(("backend", "{0|backends=nccl or xccl}")),
    "require_backend_is_available": _needs(("backend", "{0|backends}")),
    "is_nccl_available": _needs(_NCCL),
    "is_gloo_available": _needs(("backend", "gloo")),
    "is_ucc_available": _needs(("backend", "ucc")),
    "is_mpi_available": _needs(("backend", "mpi")),
    "is_xccl_available": _needs(("backend", "xccl")),
    "NO_NCCL": Rule(unless=(_NCCL,)),
    "NO_UCC": Rule(unless=(("backend", "ucc"),)),
    "NO_GLOO": Rule(unless=(("backend", "gloo"),)),
    "mark.nccl": _needs(_NCCL),
    "mark.gloo": _needs(("backend", "gloo")),
    "sharded_tensor.with_comms": _needs(("backend", "{2|backend=nccl}")),
    "common_dtensor.with_comms": _needs(("backend", "{2|backend=}")),
    "requires_nccl_version": _needs(("library", "NCCL >= {0|version}")),
    "requires_nccl_version_or": _needs(("library", "NCCL >= {0|version}")),
    "requires_nccl_shrink": _needs(("library", "NCCL >= 2.27")),
    "torch.distributed.is_available": _needs(("library", "torch.distributed")),
    "rpc.is_available": _needs(("library", "torch.distributed.rpc")),
    # Peer access, multicast, capability
    "requires_cuda_p2p_access": Rule(_P2P),
    "requires_multicast_support": _needs(("gpus", "1"), ("peer access", "by NVLink multicast")),
    "has_multicast_support": _needs(("peer access", "by NVLink multicast")),
    "requires_triton_ptxas_compat": _needs(("package", "triton")),
    "IS_BIG_GPU": _needs(("device", "big GPU")),
    "IS_H100": _needs(("capability", "== 9.0"), unless=(("capability", "!= 9.0"),)),
    "IS_A100": _needs(("capability", "== 8.0"), unless=(("capability", "!= 8.0"),)),
    "PLATFORM_SUPPORTS_FLASH_ATTENTION": _needs(("library", "flash attention")),
    "PLATFORM_SUPPORTS_MEM_EFF_ATTENTION": _needs(("library", "memory-efficient attention")),
    "PLATFORM_SUPPORTS_FUSED_ATTENTION": _needs(("library", "fused attention")),
    "PLATFORM_SUPPORTS_CUDNN_ATTENTION": _needs(("library", "cuDNN attention")),
    "PLATFORM_SUPPORTS_BF16": _needs(("device", "with bfloat16")),
    "PLATFORM_SUPPORTS_FP8": _needs(("device", "with float8")),
    "PLATFORM_SUPPORTS_SYMM_MEM": _needs(("library", "symmetric memory")),
    **dict(_capabilities()),
    # Other devices
    "onlyCPU": _needs(("device", "cpu")),
    "onlyXPU": _needs(("device", "xpu")),
    "onlyMPS": _needs(("device", "mps")),
    "onlyHPU": _needs(("device", "hpu")),
    "TEST_XPU": _needs(("device", "xpu"), unless=(("platform", "not XPU"),)),
    "HAS_XPU": _needs(("device", "xpu"), unless=(("platform", "not XPU"),)),
    "TEST_HPU": _needs(("device", "hpu"), unless=(("platform", "not HPU"),)),
    "TEST_MPS": _needs(("device", "mps"), unless=(("platform", "not MPS"),)),
    "skipIfXpu": _not_on("XPU"),
    "skipXPU": _not_on("XPU"),
    "skipIfHpu": _not_on("HPU"),
    "skipHPU": _not_on("HPU"),
    "skipIfMPS": _not_on("MPS"),
    "skipIfNoXPU": _needs(("device", "xpu")),
    # Platforms and builds
    "IS_WINDOWS": _platform("Windows"),
    "IS_LINUX": _platform("Linux"),
    "IS_MACOS": _platform("macOS"),
    "IS_ARM64": _platform("ARM64"),
    "IS_PPC": _platform("PowerPC"),
    "IS_X86": _platform("x86"),
    "IS_S390X": _platform("s390x"),
    "IS_JETSON": _platform("Jetson"),
    "IS_FBCODE": _platform("fbcode"),
    "IS_SANDCASTLE": _platform("Sandcastle"),
    "IS_CI": _platform("CI"),
    "TEST_WITH_ROCM": _platform("ROCm"),
    "torch.version.hip": _platform("ROCm"),
    "TEST_WITH_ASAN": _platform("ASAN"),
    "TEST_WITH_DEV_DBG_ASAN": _platform("debug ASAN"),
    "TEST_WITH_TSAN": _platform("TSAN"),
    "TEST_WITH_UBSAN": _platform("UBSAN"),
    "TEST_WITH_TORCHDYNAMO": _platform("TorchDynamo run"),
    "TEST_WITH_TORCHINDUCTOR": _platform("TorchInductor run"),
    "TEST_WITH_CROSSREF": _platform("cross-reference run"),
    "TEST_WITH_SLOW": _needs(("environment", "PYTORCH_TEST_WITH_SLOW=1")),
    "skip_if_win32": _not_on("Windows"),
    "skipIfWindows": _not_on("Windows"),
    "skip_if_rocm": _not_on("ROCm"),
    "skip_if_rocm_multiprocess": _not_on("ROCm"),
    "skip_if_rocm_arch_multiprocess": _not_on("ROCm {0|arch}"),
    "skip_if_rocm_ver_lessthan_multiprocess": _needs(("library", "ROCm >= {0|version}, or CUDA")),
    "skipIfRocm": _not_on("ROCm"),
    "skipIfRocmArch": _not_on("ROCm {0|arch}"),
    "skipCUDAIfRocm": _not_on("ROCm"),
    "skipIfRocmVersionLessThan": _needs(("library", "ROCm >= {0|version}, or CUDA")),
    "runOnRocm": _needs(("platform", "ROCm")),
    "runOnRocmArch": _needs(("platform", "ROCm {0|arch}")),
    "skipIfTorchDynamo": _not_on("TorchDynamo run"),
    "skipIfTorchInductor": _not_on("TorchInductor run"),
    "skipIfCrossRef": _not_on("cross-reference run"),
    "skip_if_pytest": _not_on("pytest run"),
    "slowTest": _needs(("environment", "PYTORCH_TEST_WITH_SLOW=1")),
    "mark.slow": _needs(("mark", "slow")),
    # Packages
    "importorskip": _needs(("package", "{0|modname}")),
    "not_importable": Rule(unless=(("package", "{0}"),)),
    "import_transformers_or_skip": _needs(("package", "transformers")),
    "skipIfNoTorchVision": _needs(("package", "torchvision")),
    "skipIfNoSciPy": _needs(("package", "scipy")),
    "skipIfNoDill": _needs(("package", "dill")),
    "HAS_TORCHVISION": _needs(("package", "torchvision")),
    "TEST_NUMPY": _needs(("package", "numpy")),
    "TEST_NUMBA": _needs(("package", "numba")),
    "TEST_SCIPY": _needs(("package", "scipy")),
    "TEST_TRANSFORMERS": _needs(("package", "transformers")),
    "requires_package": _needs(("package", "{0}")),
    # Memory
    "largeTensorTest": _needs(("device", "with {0|size} of memory")),
    "requires_gpu_with_enough_memory": _needs(("gpus", "1"), ("device", "with {0|disable} bytes of memory")),
}
"""What a name means, by the end of its dotted name: `skip_if_lt_x_gpu`, `torch.cuda.is_available`, `mark.gpu`."""

CONDITIONS: Mapping[str, bool] = {
    "skipIf": False,
    "skip_if": False,
    "mark.skipif": False,
    "skip_but_pass_in_sandcastle_if": False,
    "skipCUDAIf": False,
    "skipCPUIf": False,
    "skipGPUIf": False,
    "skipUnless": True,
    "skip_unless": True,
    "run_if": True,
}
"""Decorators whose first argument is a condition: whether the test needs it to be true."""

COUNTS: Mapping[str, tuple[str, str]] = {
    "torch.cuda.device_count": ("gpus", ""),
    "torch.accelerator.device_count": ("gpus", ""),
    "device_module.device_count": ("gpus", ""),
    "torch.cuda.get_device_capability": ("capability", ""),
    "torch.cuda.nccl.version": ("library", "NCCL"),
    "sys.version_info": ("library", "Python"),
}
"""Kind and name of what a condition compares with a number or a version."""

NUMBERS: Mapping[str, str] = {"TEST_GPU_NUM": "4"}
"""Constants of harnesses, for trees that do not hold them."""

ATTRIBUTES: Mapping[str, str] = {
    "world_size": "world size",
    "backend_str": "backend",
    "backend": "backend",
    "device_type": "device",
    "device": "device",
}
"""What an attribute, a property or a method of a test class says, by its name."""

PASSED_OVER = frozenset(
    {"parametrize", "usefixtures", "filterwarnings", "xfail", "expectedFailure", "skipOps", "timeout", "asyncio", "flaky"}
)
"""Marks and decorators that are no requirement, whatever they look like."""


def find(table: Mapping[str, object], name: str) -> str | None:
    """Find the row for a dotted name: the longest end of it that has one.

    Args:
        table: one of the tables of this module.
        name: `torch.testing._internal.common_distributed.requires_nccl`, say.

    Returns:
        The row's key, or None.
    """
    while name:
        if name in table:
            return name
        name = name.partition(".")[2]
    return None


def looks_like_requirement(name: str) -> bool:
    """Tell whether a decorator or a mark that no row names seems to say what a test needs."""
    last = name.rpartition(".")[2]
    return last not in PASSED_OVER and _LOOKS.search(last) is not None


_LOOKS = re.compile(r"(?i)skip|^require|^needs?_|^only[A-Z_]|_only$|^unless|^run_?(on|if)")
