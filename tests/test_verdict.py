"""What becomes of a test on a machine, told from its requirements."""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbook import machine
from rankbook.requirements import KINDS, OUTCOMES, Requirement, opposite
from rankbook.verdict import Machine, compared, is_met, verdict
from rankbook.words import NAMES

NODE = Machine(
    gpus=4,
    capabilities=("9.0",) * 4,
    gpu_memory=80 * 1024**3,
    memory=512 * 1024**3,
    peer_access=True,
    multicast=True,
    platform=frozenset({"Linux", "x86", "POSIX", "CPython"}),
    python="3.12.4",
    torch="2.8.0+cu128",
    cuda="12.8",
    hip="",
    libraries={"NCCL": "2.27.3", "cuDNN": True, "FBGEMM": True, "MIOpen": False},
    backends={"nccl": True, "gloo": True, "mpi": False},
    devices={"xpu": False, "hpu": False},
    packages={"triton": "3.4.0", "cupy": "", "scipy": "1.14.0"}.get,
    environment={"WORLD_SIZE": "3", "BACKEND": "gloo", "CI": "1"},
)
"""Four H100 in one node."""

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
    libraries={"NCCL": False},
    backends={"gloo": True, "nccl": False},
)
"""A machine without GPUs, of which less is known."""


def need(kind: str, value: str = "", otherwise: str = "skipped") -> Requirement:
    return Requirement(kind, value, "as written", "test_it.py", 1, otherwise)


@pytest.mark.parametrize(
    ("kind", "value", "node", "laptop"),
    [
        ("gpus", "4", True, False),
        ("gpus", "5", False, False),
        ("gpus", "== 4", True, False),
        ("gpus", "<= 3", False, True),
        ("gpus", "2 to 8", True, False),
        ("gpus", "8 or none", False, True),
        ("gpus", "WORLD_SIZE", True, False),
        ("gpus", "RANKS", None, False),
        ("world size", ">= 3", True, None),
        ("world size", "even", False, None),
        ("world size", "3", True, None),
        ("backend", "nccl", True, False),
        ("backend", "nccl or gloo", True, True),
        ("backend", "ucc or mpi", None, None),
        ("backend", "not nccl", False, True),
        ("device", "cuda", True, False),
        ("device", "cpu or cuda", True, True),
        ("device", "xpu", False, None),
        ("device", "GPU with float8", None, False),
        ("peer access", "", True, False),
        ("peer access", "by NVLink multicast", True, False),
        ("capability", ">= 8.0", True, False),
        ("capability", "< 10.0", True, True),
        ("capability", "9.x", True, False),
        ("memory", "40GB", True, False),
        ("memory", "1000 bytes", True, True),
        ("memory", "a lot", None, None),
        ("library", "NCCL >= 2.27", True, False),
        ("library", "NCCL < 2.27", False, False),
        ("library", "torch >= 2.8", True, True),
        ("library", "torch < 2.8", False, False),
        ("library", "Python >= 3.12", True, False),
        ("library", "CUDA", True, False),
        ("library", "CUDA >= 12.9 or ROCm", False, False),
        ("library", "MIOpen", False, None),
        ("library", "not MIOpen", True, None),
        ("package", "triton", True, None),
        ("package", "triton >= 3.5", False, None),
        ("package", "cupy", False, None),
        ("package", "not cupy", True, None),
        ("package", "unheard", None, None),
        ("platform", "Linux", True, True),
        ("platform", "not Windows", True, True),
        ("platform", "not ROCm", True, True),
        ("platform", "not ROCm gfx942", True, True),
        ("platform", "not debug ASAN", True, True),
        ("platform", "CI", True, False),
        ("platform", "not XPU", True, None),
        ("environment", "BACKEND == nccl or gloo", True, False),
        ("environment", "BACKEND != gloo", False, True),
        ("environment", "MODE == a or unset", True, True),
        ("environment", "MODE == a or CI set", True, False),
        ("environment", "CI not set or BACKEND == gloo", True, True),
        ("capability", "== 8.0 or >= 9.0", True, False),
        ("world size", "2 or 3", True, None),
        ("memory", "900GB or 40GB", True, False),
        ("environment", "MODE set", False, False),
        ("environment", "BACKEND starts with gl", True, False),
        ("environment", "a strange allocator", None, None),
        ("environment", "WORLD_SIZE >= 2", True, False),
        ("environment", "WORLD_SIZE < 2 or unset", False, True),
        ("environment", "BACKEND > 2", None, False),
        ("environment", "CI set or WORLD_SIZE > 8", True, False),
        ("slow", "RUN_SLOW == 1", False, False),
        ("disabled", "broken", False, False),
        ("condition", "weird()", None, None),
    ],
)
def test_is_met(kind: str, value: str, node: bool | None, laptop: bool | None) -> None:
    """A requirement is met, not met, or cannot be told."""
    assert is_met(need(kind, value), NODE) is node
    assert is_met(need(kind, value), LAPTOP) is laptop


def test_the_verdict_says_what_decides() -> None:
    """Absent comes before skipped, skipped before unknown, and what only describes decides nothing."""
    unknown, skips, absent = need("condition", "weird()"), need("gpus", "8"), need("platform", "Windows", "absent")
    assert verdict((), NODE).word == "runs"
    assert verdict((need("gpus", "9", ""),), NODE).word == "runs"
    assert verdict((unknown,), NODE).requirement == unknown
    assert verdict((unknown, skips), NODE).requirement == skips
    assert verdict((unknown, skips, absent), NODE).requirement == absent
    assert [verdict(needs, NODE).word for needs in ((unknown,), (unknown, skips), (skips, absent))] == ["unknown", "skipped", "absent"]


def test_one_of_several() -> None:
    """Of alternatives one must be met as a whole."""
    either = ((need("gpus", "0"), need("platform", "Windows")), (need("gpus", "2"), need("package", "triton")))
    assert is_met(Requirement("one of", "as it reads", "as written", either=either), NODE) is True
    assert is_met(Requirement("one of", "as it reads", "as written", either=either), LAPTOP) is False
    assert is_met(Requirement("one of", "as it reads", "as written", either=((need("condition", "x"),), *either)), LAPTOP) is None


@pytest.mark.parametrize(
    ("version", "wanted", "holds"),
    [
        ("2.13.0+cpu", ">= 2.6", True),
        ("2.6", "== 2.6.0", True),
        ("2.10", "> 2.9", True),
        ("v1.2", "!= 1.2", False),
        ("unknown", ">= 1", None),
        ("1.0", "about 1", None),
    ],
)
def test_versions(version: str, wanted: str, holds: bool | None) -> None:
    """Versions are compared number by number."""
    assert compared(version, wanted) is holds


@given(st.sampled_from(KINDS), st.text(max_size=30), st.sampled_from(OUTCOMES))
def test_any_requirement_has_a_verdict(kind: str, value: str, otherwise: str) -> None:
    """Whatever a requirement says, something is said of it, and its opposite never comes out the same."""
    for there in (NODE, LAPTOP, Machine()):
        assert verdict((need(kind, value, otherwise),), there).word in ("runs", "skipped", "absent", "unknown")
        other = opposite(kind, value)
        met = is_met(need(kind, value), there)
        if other is not None and met is not None and kind not in ("library", "package", "capability"):
            assert is_met(need(kind, other), there) is not met


def test_a_machine_of_which_nothing_is_known_decides_little() -> None:
    """Where nothing is known, no row of the table makes a test run or skip that asks for hardware."""
    for name, rule in NAMES.items():
        for kind, value in rule.needs:
            if kind in ("gpus", "backend", "peer access") and "{" not in value:
                assert is_met(need(kind, value), Machine()) is None, name


def test_the_facts_of_this_machine() -> None:
    """They are found without importing torch, and torch says the same of itself."""
    script = (
        "import json, sys\nfrom rankbook import machine\nfacts = machine.facts()\nassert 'torch' not in sys.modules\n"
        "print(json.dumps([facts.gpus, facts.torch, facts.cuda, facts.hip, facts.backends, facts.libraries['torch.distributed']]))"
    )
    pytest.importorskip("torch")
    import torch
    import torch.distributed as dist

    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    gpus, version, cuda, hip, backends, distributed = json.loads(said)
    assert gpus in (None, torch.cuda.device_count())
    assert version == torch.__version__
    assert (cuda, hip) == (torch.version.cuda or "", torch.version.hip or "")
    assert distributed == dist.is_available()
    for backend, there in backends.items():
        asked = getattr(dist, f"is_{backend}_available", None)
        assert asked is None or asked() == there, backend


def test_packages_are_looked_up_without_importing_them(tmp_path, monkeypatch) -> None:
    """A package counts as there when Python would find it; its version is that of its distribution, or not known."""
    (tmp_path / "loud.py").write_text("raise SystemExit")
    monkeypatch.syspath_prepend(tmp_path)
    assert is_met(need("package", "loud"), machine.facts()) is True
    assert is_met(need("package", "loud >= 2"), machine.facts()) is None
    assert is_met(need("package", "never_heard_of"), machine.facts()) is False
    assert is_met(need("package", "pytest >= 8"), machine.facts()) is True
    assert is_met(need("package", "yaml >= 5"), machine.facts()) is True


def test_devices_of_other_packages(monkeypatch):
    """Where a package is installed that brings a kind of device to torch, whether there is one is not known."""
    monkeypatch.setattr(machine, "_package", lambda name: "2.9" if name == "torch_npu" else "")
    found = machine._devices({"__version__": "2.9.0"})
    assert "npu" not in found
    assert (found["mlu"], found["musa"]) == (False, False)
