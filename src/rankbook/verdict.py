"""What becomes of a test on a machine, told from its requirements alone."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, field

from rankbook.requirements import LOST, Requirement, gpu_range

UNVERSIONED = "0"
"""Stands for the version of a package that is there, and of which no version is known."""


class Machine(Struct, frozen=True):
    """What is known of a machine; what is not known is None, and leaves verdicts open that ask for it."""

    gpus: int | None = None
    """GPUs that CUDA or ROCm can use."""
    capabilities: tuple[str, ...] | None = None
    """Compute capability of each GPU: `9.0`."""
    gpu_memory: int | None = None
    """Bytes of the smallest GPU."""
    memory: int | None = None
    """Bytes of the machine."""
    peer_access: bool | None = None
    """Whether GPUs can read each other's memory."""
    multicast: bool | None = None
    """Whether NVLink can multicast."""
    platform: frozenset[str] = frozenset()
    """Names of the system and the processor: `Linux`, `x86`."""
    python: str = ""
    torch: str | None = None
    """Version of torch; empty when it is not installed."""
    cuda: str | None = None
    """Version of CUDA that torch is built for; empty when it is built without."""
    hip: str | None = None
    """Version of ROCm that torch is built for; empty when it is built without."""
    libraries: Mapping[str, str | bool] = field(default_factory=dict)
    """Libraries of which it is known whether torch has them, or in which version."""
    backends: Mapping[str, bool] = field(default_factory=dict)
    """Backends of `torch.distributed` of which it is known whether they are there."""
    devices: Mapping[str, bool] = field(default_factory=dict)
    """Devices other than CUDA's of which it is known whether they are there."""
    packages: Callable[[str], str | None] = field(default=lambda _name: None)
    """Gives the version of an importable package: empty when it is not installed, `0` when it has none, None when nothing is known."""
    environment: Mapping[str, str] = field(default_factory=dict)


class Verdict(Struct, frozen=True):
    """What becomes of a test."""

    word: str
    """`runs`, `skipped`, `absent`, or `unknown`."""
    requirement: Requirement | None = None
    """What decides it; of `unknown`, the first that cannot be told."""


def verdict(requirements: Iterable[Requirement], machine: Machine) -> Verdict:
    """Tell what becomes of a test.

    Args:
        requirements: all that it needs.
        machine: where it would run.
    """
    counting = [need for need in requirements if need.otherwise]
    answers = [(need, is_met(need, machine)) for need in counting]
    for word, ends in (("absent", ("absent",)), ("skipped", LOST)):
        for need, met in answers:
            if met is False and need.otherwise in ends:
                return Verdict(word, need)
    return next((Verdict("unknown", need) for need, met in answers if met is None), Verdict("runs"))


def is_met(requirement: Requirement, machine: Machine) -> bool | None:
    """Tell whether a machine meets a requirement; None when that cannot be told.

    Args:
        requirement: what a test needs.
        machine: the machine.
    """
    if requirement.kind == "one of":
        return _any(_all(is_met(need, machine) for need in needs) for needs in requirement.either)
    check = _CHECKS.get(requirement.kind)
    if check is None:
        return None
    if requirement.kind in _WITH_CHOICES:
        return _any(_signed(check, value, machine) for value in requirement.value.split(" or "))
    if requirement.kind in ("environment", "slow"):
        return _any(check(value, machine) for value in _VARIABLES.split(requirement.value))
    return check(requirement.value, machine)


def _any(answers: Iterable[bool | None]) -> bool | None:
    found = list(answers)
    return True if True in found else None if None in found else False


def _all(answers: Iterable[bool | None]) -> bool | None:
    found = list(answers)
    return False if False in found else None if None in found else True


_Check = Callable[[str, Machine], bool | None]
_WITH_CHOICES = frozenset({"world size", "backend", "device", "capability", "memory", "library", "package", "platform"})
_VARIABLES = re.compile(r" or (?=\w+ (?:(?:not )?set\b|[=!]= |[<>]=? |starts with |does not start with ))")
"""Stands between what is said of two variables; `MODE == fast or slow` is about one."""


def _signed(check: _Check, value: str, machine: Machine) -> bool | None:
    if not value.startswith("not "):
        return check(value, machine)
    met = check(value.removeprefix("not "), machine)
    return None if met is None else not met


def _gpus(value: str, machine: Machine) -> bool | None:
    if machine.gpus is None:
        return None
    if value.endswith(" or none"):
        return machine.gpus == 0 or _gpus(value.removesuffix(" or none"), machine)
    found = gpu_range(value) or gpu_range(machine.environment.get(value, ""))
    if found is None:
        return False if machine.gpus == 0 else None
    low, high = found
    return low <= machine.gpus and (high is None or machine.gpus <= high)


def _world_size(value: str, machine: Machine) -> bool | None:
    size = machine.environment.get("WORLD_SIZE", "")
    if not size.isdecimal():
        return None
    if value == "even":
        return int(size) % 2 == 0
    return compared(size, value if _SIGN.match(value) else f"== {value}")


def _backend(value: str, machine: Machine) -> bool | None:
    return machine.backends.get(value)


def _device(value: str, machine: Machine) -> bool | None:
    if value in ("cpu", "meta"):
        return True
    if value == "cuda" or "GPU" in value:
        return None if machine.gpus is None else False if machine.gpus == 0 else True if value == "cuda" else None
    return machine.devices.get(value.partition(":")[0])


def _peer_access(value: str, machine: Machine) -> bool | None:
    if machine.gpus is not None and machine.gpus < (1 if value else 2):
        return False
    return machine.multicast if value else machine.peer_access


def _capability(value: str, machine: Machine) -> bool | None:
    """A machine without GPUs meets no capability, and exceeds none."""
    if machine.gpus == 0:
        return value.startswith(("<", "!="))
    if not machine.capabilities:
        return None
    if value.endswith(".x"):
        return machine.capabilities[0].partition(".")[0] == value.removesuffix(".x")
    return compared(machine.capabilities[0], value)


def _memory(value: str, machine: Machine) -> bool | None:
    match = _BYTES.fullmatch(value)
    there = machine.gpu_memory if machine.gpus else machine.memory
    return None if match is None or there is None else there >= float(match[1]) * _UNITS[match[2].upper()]


_BYTES = re.compile(r"(\d+(?:\.\d+)?) ?(bytes|[KMGT]?B)", re.IGNORECASE)
_UNITS = {"BYTES": 1, "B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}


def _library(value: str, machine: Machine) -> bool | None:
    name, _, wanted = value.partition(" ")
    known: str | bool | None
    if name in ("torch", "Python", "CUDA", "ROCm"):
        known = {"torch": machine.torch, "Python": machine.python, "CUDA": machine.cuda, "ROCm": machine.hip}[name]
    else:
        known = machine.libraries.get(value if not _SIGN.match(wanted) else name)
    if not _SIGN.match(wanted):
        return None if known is None else bool(known)
    return None if known is None or known is True else bool(known) and compared(str(known), wanted)


def _package(value: str, machine: Machine) -> bool | None:
    name, _, wanted = value.partition(" ")
    version = machine.packages(name)
    if version is None or not wanted:
        return None if version is None else bool(version)
    return None if version == UNVERSIONED else bool(version) and compared(version, wanted)


def _platform(value: str, machine: Machine) -> bool | None:
    if value in _RUNS:
        return machine.environment.get(_RUNS[value], "0") not in ("", "0")
    if value in _FIXED:
        return _FIXED[value]
    if value.startswith("ROCm"):
        return None if machine.hip is None else False if not machine.hip else True if value == "ROCm" else None
    if value in _SYSTEMS:
        return value in machine.platform
    first = value.partition(" on ")[0].lower()
    return machine.devices.get(first) or (None if first not in machine.devices else False)


_SYSTEMS = frozenset({
    "Windows", "Linux", "macOS", "POSIX", "ARM64", "x86", "PowerPC", "s390x", "CPython", "PyPy", "CI on Windows", "Jetson", "WebAssembly",
})  # fmt: skip
_RUNS = {
    "CI": "CI",
    "Sandcastle": "SANDCASTLE",
    "fbcode": "PYTORCH_TEST_FBCODE",
    "remote GPU": "PYTORCH_TEST_REMOTE_GPU",
    "ASAN": "PYTORCH_TEST_WITH_ASAN",
    "debug ASAN": "PYTORCH_TEST_WITH_DEV_DBG_ASAN",
    "TSAN": "PYTORCH_TEST_WITH_TSAN",
    "UBSAN": "PYTORCH_TEST_WITH_UBSAN",
    "TorchDynamo run": "PYTORCH_TEST_WITH_DYNAMO",
    "TorchInductor run": "PYTORCH_TEST_WITH_INDUCTOR",
    "AOT eager run": "PYTORCH_TEST_WITH_AOT_EAGER",
    "cross-reference run": "PYTORCH_TEST_WITH_CROSSREF",
    "translation validation run": "PYTORCH_TEST_WITH_TV",
    "run without compiled autograd": "PYTORCH_TEST_WITHOUT_COMPILED_AUTOGRAD",
    "slow gradcheck run": "PYTORCH_TEST_WITH_SLOW_GRADCHECK",
    "run of slow tests only": "PYTORCH_TEST_SKIP_FAST",
    "run without CUDA graphs": "PYTORCH_TEST_SKIP_CUDAGRAPH",
    "memory leak check": "PYTORCH_TEST_CUDA_MEM_LEAK_CHECK",
    "ROCm and TorchInductor run": "PYTORCH_TEST_WITH_INDUCTOR",
}
"""Variables that choose a kind of run."""
_FIXED = {
    "pytest run": True,
    "without multiprocessing spawn": False,
    "legacy JIT executor": False,
    "inlined modules": True,
    "free-threaded Python": False,
}
"""What is the same wherever pytest runs."""


def _environment(value: str, machine: Machine) -> bool | None:
    if value.endswith((" not set", " set")):
        name, _, rest = value.partition(" ")
        return (name in machine.environment) == (rest == "set")
    match = _STARTS.fullmatch(value)
    if match is not None:
        return machine.environment.get(match[1], "").startswith(match[3]) == (match[2] == "starts")
    match = _ORDERED.fullmatch(value)
    if match is not None:
        there = machine.environment.get(match[1])
        return bool(match[3]) if there is None else compared(there, match[2]) if there.isdecimal() else None
    match = _ASSIGNED.fullmatch(value)
    if match is None:
        return None
    holds = machine.environment.get(match[1], "unset") in match[3].split(" or ")
    return holds if match[2] == "==" else not holds


_STARTS = re.compile(r"(\w+) (starts|does not start) with (.*)")
_ORDERED = re.compile(r"(\w+) ((?:<=?|>=?) \d+)( or unset)?")
_ASSIGNED = re.compile(r"(\w+) (==|!=) (.*)")


def _slow(value: str, machine: Machine) -> bool | None:
    return _environment(value, machine) if value else None


def _disabled(_value: str, _machine: Machine) -> bool:
    return False


_CHECKS: Mapping[str, _Check] = {
    "gpus": _gpus,
    "world size": _world_size,
    "backend": _backend,
    "device": _device,
    "peer access": _peer_access,
    "capability": _capability,
    "memory": _memory,
    "library": _library,
    "package": _package,
    "platform": _platform,
    "environment": _environment,
    "slow": _slow,
    "disabled": _disabled,
}

DECIDED = frozenset({*_CHECKS, "one of"})
"""Kinds of requirement of which it can be told whether a machine meets them."""

_SIGN = re.compile(r"(<=|>=|==|!=|<|>) ")


def compared(version: str, wanted: str) -> bool | None:
    """Compare a version, or a number, by its numbers.

    Args:
        version: what is there: `2.13.0+cpu`.
        wanted: an operator and a version: `>= 2.6`.

    Returns:
        None when one of them has no numbers.
    """
    match = _SIGN.match(wanted)
    there, asked = _numbers(version), _numbers(wanted[match.end() :]) if match else ()
    if match is None or not there or not asked:
        return None
    width = max(len(there), len(asked))
    left, right = (numbers + (0,) * (width - len(numbers)) for numbers in (there, asked))
    return _COMPARE[match[1]](left, right)


_COMPARE: Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _numbers(version: str) -> tuple[int, ...]:
    match = re.match(r"[vV]?(\d{1,9}(?:\.\d{1,9})*)", version)
    return tuple(map(int, match[1].split("."))) if match else ()
