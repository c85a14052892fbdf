"""What a run ran on: hardware, torch, commit; found without importing torch and without touching CUDA."""

from __future__ import annotations

import ast
import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from rankbook.gpus import Gpu, inventory
from rankbook.verdict import UNVERSIONED, Machine
from rankbook.words import SYSTEMS

SECONDS = 20
"""How long a query may take."""


@cache
def hardware(declared: str = "") -> str:
    """Name the visible GPUs as `nvidia-smi` does, without touching CUDA in this process; else the CPU's cores.

    Args:
        declared: text of the setting `gpus`; GPUs that are only declared are named as such.
    """
    there = f"CPU, {os.cpu_count()} cores, {platform.machine()}"
    real = _named(inventory().gpus) or there
    return f"{real}; declared: {_named(inventory(declared).gpus) or 'no GPUs'}" if declared.strip() else real


@cache
def facts(declared: str = "") -> Machine:
    """Give what decides which tests run here.

    Args:
        declared: text of the setting `gpus`; empty for the GPUs that are there.

    Raises:
        ConfigError: the declared text cannot be understood.
    """
    build = _torch_build()
    cuda, hip = build.get("cuda"), build.get("hip")
    found = inventory(declared)
    gpus = found.gpus if cuda or found.declared else ()
    sizes = [gpu.memory for gpu in gpus]
    return Machine(
        gpus=len(gpus) if found.declared or not (hip or (cuda and not found.is_known)) else None,
        capabilities=None if any(not gpu.capability for gpu in gpus) else tuple(gpu.capability for gpu in gpus),
        gpu_memory=None if None in sizes else min((size for size in sizes if size is not None), default=None),
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else None,
        peer_access=found.has_peer_access if gpus else False,
        multicast=None if gpus else False,
        platform=_platform(),
        python=platform.python_version(),
        torch=torch_version(),
        cuda=cuda,
        hip=hip,
        libraries=_libraries(build, has_gpus=bool(gpus)),
        backends=_backends(build),
        devices=_devices(build),
        packages=_package,
        environment=dict(os.environ),
    )


def _named(gpus: Sequence[Gpu]) -> str:
    return ", ".join(f"{count} × {name or 'GPU'}" for name, count in Counter(gpu.name for gpu in gpus).items())


def _platform() -> frozenset[str]:
    names = {SYSTEMS.get(name, name) for name in (sys.platform, os.name, platform.machine(), platform.python_implementation())}
    return frozenset({*names, "CI on Windows"} if "Windows" in names and os.environ.get("CI") else names)


@cache
def _torch_build() -> Mapping[str, str | None]:
    """Read what torch says of its own build, from the text of its `version.py`; None when it does not say."""
    folder = _folder("torch")
    try:
        tree = ast.parse((folder / "version.py").read_text(encoding="utf-8")) if folder else None
    except (OSError, ValueError, SyntaxError):
        tree = None
    found: dict[str, str | None] = {}
    for node in tree.body if tree else ():
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.AnnAssign) else None
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
            found[target.id] = "" if value.value is None else str(value.value)
    return found


def _folder(package: str) -> Path | None:
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None


def _is_wheel(build: Mapping[str, str | None]) -> bool:
    """Tell whether torch is one of the wheels that its project publishes."""
    version = build.get("__version__") or ""
    return bool(version) and "git" not in version and "a0" not in version


def _backends(build: Mapping[str, str | None]) -> dict[str, bool]:
    if not build:
        return {}
    accelerated = bool(build.get("cuda") or build.get("hip"))
    found = {"gloo": True, "fake": True, "threaded": True, "nccl": accelerated and sys.platform == "linux", "xccl": bool(build.get("xpu"))}
    wheels = {"mpi": False, "ucc": False, "hccl": False} if _is_wheel(build) else {}
    return found | wheels


def _devices(build: Mapping[str, str | None]) -> dict[str, bool]:
    none = dict.fromkeys(("hpu", "mtia", "tpu", "xla", "lazy", "privateuse1"), False)
    none |= {name: False for name in ("npu", "mlu", "musa", "sdaa") if _package(f"torch_{name}") == ""}
    mac = {} if sys.platform == "darwin" else {"mps": False}
    return {**none, **mac, **({} if build.get("xpu") else {"xpu": False}), **({} if _package("torch_xla") == "" else {"xla": True})}


_IN_EVERY_WHEEL = ("LAPACK", "MKL", "FFT", "oneDNN", "QNNPACK", "XNNPACK", "FBGEMM", "OpenMP", "Kineto", "TorchDynamo", "TorchInductor")
_WITH_CUDA = ("cuDNN", "cuSPARSE", "cuSPARSELt", "cuSOLVER", "cuDSS", "MAGMA", "NCCL", "CUTLASS")
_WITH_ROCM = ("MIOpen", "hipSPARSE", "hipBLASLt")
_ON_GPUS = ("flash attention", "memory-efficient attention", "fused attention", "cuDNN attention", "symmetric memory")


def _libraries(build: Mapping[str, str | None], *, has_gpus: bool) -> dict[str, str | bool]:
    """Tell which libraries torch has, as far as the kind of its build says it."""
    if not build:
        return {}
    found: dict[str, str | bool] = {"torch.distributed": True, "torch.distributed.nn": True}
    found["torch.distributed.rpc"] = sys.platform != "win32"
    if _is_wheel(build) and "x86" in _platform() and sys.platform == "linux":
        found |= dict.fromkeys(_IN_EVERY_WHEEL, True)
    if not build.get("cuda"):
        found |= dict.fromkeys(_WITH_CUDA, False)
    if not build.get("hip"):
        found |= dict.fromkeys(_WITH_ROCM, False)
    if not has_gpus:
        found |= dict.fromkeys(_ON_GPUS, False)
    nccl = _nccl() if build.get("cuda") else ""
    return found | ({"NCCL": nccl} if nccl else {})


def _nccl() -> str:
    return next((version for name in ("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11") if (version := _version(name))), "")


@cache
def _package(name: str) -> str | None:
    """Give the version of an importable package without importing it; `0` when it has none, empty when it is not installed."""
    try:
        there = find_spec(name.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return None
    if not there:
        return ""
    return _version(name) or next((version for dist in _distributions().get(name, ()) if (version := _version(dist))), UNVERSIONED)


@cache
def _distributions() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except (metadata.PackageNotFoundError, ValueError):
        return ""


@cache
def torch_version() -> str:
    """Give the version of the installed torch as it says it itself, with what it was built for, without importing it; empty for none."""
    return _torch_build().get("__version__") or _version("torch")


@cache
def commit(root: Path) -> str:
    """Give the commit that is checked out, with `+` when files differ from it; empty outside Git."""
    return _said("git", "--no-optional-locks", "-C", str(root), "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*").strip()


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
