"""In what a machine falls short of what a test needs, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from rankbook.requirements import Requirement
from rankbook.verdict import Machine, is_met


def reason(need: Requirement, machine: Machine, granted: int | None = None) -> str:
    """Say why a machine cannot run a test: `needs 2 GPUs, and this machine has none`.

    Args:
        need: what the test needs and the machine does not meet.
        machine: all of it.
        granted: number of GPUs that the test would see; None for all of them.
    """
    if need.kind in ("disabled", "slow"):
        return f"is {need.text}"
    if need.kind == "environment":
        return f"runs only with {need.value}, {lack(need, machine)}"
    if need.value.startswith("not ") and " or " not in need.value:
        other, verb = replace(need, value=need.value.removeprefix("not ")).text, "this is" if need.kind == "platform" else "is there"
        return f"does not run {'on' if need.kind == 'platform' else 'with'} {other}, which {verb}"
    if need.kind == "gpus" and granted is not None and is_met(need, machine):
        return f"needs {need.text}, and {granted or 'none'} {'are' if granted > 1 else 'is'} granted to it"
    return f"needs {wanted(need)}, {lack(need, machine)}"


def wanted(need: Requirement) -> str:
    """Say what a need asks for, as a noun: `2 GPUs`, `compute capability >= 9.0`."""
    if need.kind == "capability":
        return f"compute capability {need.value}"
    if need.kind == "peer access" and not need.value:
        return "peer access between GPUs"
    return need.text


def lack(need: Requirement, machine: Machine) -> str:
    """Say in what a machine falls short of a need, as a clause: `which this torch is built without`."""
    return _LACKS.get(need.kind, _lack_of_anything)(need, machine)


def _lack_of_anything(_need: Requirement, _machine: Machine) -> str:
    return "which is not so here"


def _lack_of_gpus(_need: Requirement, machine: Machine) -> str:
    return f"and this machine has {machine.gpus or 'none'}"


def _lack_of_device(need: Requirement, machine: Machine) -> str:
    if machine.gpus == 0 and ("cuda" in need.value or "GPU" in need.value):
        return "and this machine has no GPU"
    return "which this machine does not have"


def _lack_of_backend(need: Requirement, _machine: Machine) -> str:
    return "and this torch is built with neither" if " or " in need.value else "which this torch is built without"


def _lack_of_capability(_need: Requirement, machine: Machine) -> str:
    if not machine.capabilities:
        return "and this machine has no GPU"
    return f"and this machine's GPU has {machine.capabilities[0]}"


def _lack_of_peer_access(need: Requirement, machine: Machine) -> str:
    if machine.gpus is not None and machine.gpus < (1 if need.value else 2):
        return f"and this machine has {'only one' if machine.gpus else 'no'} GPU"
    return "which the GPUs of this machine do not have"


def _lack_of_memory(_need: Requirement, machine: Machine) -> str:
    there, whose = (machine.gpu_memory, "a GPU of this machine") if machine.gpus else (machine.memory, "this machine")
    return f"and {whose} has {(there or 0) / 1024**3:.0f} GiB"


def _lack_of_library(need: Requirement, machine: Machine) -> str:
    name, _, wanted = need.value.partition(" ")
    built = {"torch": machine.torch, "Python": machine.python, "CUDA": machine.cuda, "ROCm": machine.hip}
    version = built.get(name, machine.libraries.get(name))
    if not wanted or not version or version is True:
        return "which is not installed" if name == "torch" else "which this torch does not have"
    return f"and this is {version}"


def _lack_of_package(need: Requirement, machine: Machine) -> str:
    if " or " in need.value:
        return "and none of them is installed"
    version = machine.packages(need.value.partition(" ")[0])
    return f"and {version} is installed" if version else "which is not installed"


def _lack_of_platform(_need: Requirement, _machine: Machine) -> str:
    return "which this is not"


def _lack_in_environment(need: Requirement, machine: Machine) -> str:
    name = need.value.partition(" ")[0]
    return f"and {name} is {machine.environment.get(name, 'not set')}"


def _lack_of_ranks(_need: Requirement, machine: Machine) -> str:
    return f"and WORLD_SIZE is {machine.environment.get('WORLD_SIZE', 'not set')}"


def _lack_of_all(_need: Requirement, _machine: Machine) -> str:
    return "and this machine has none of that"


_LACKS: Mapping[str, Callable[[Requirement, Machine], str]] = {
    "gpus": _lack_of_gpus,
    "world size": _lack_of_ranks,
    "backend": _lack_of_backend,
    "device": _lack_of_device,
    "peer access": _lack_of_peer_access,
    "capability": _lack_of_capability,
    "memory": _lack_of_memory,
    "library": _lack_of_library,
    "package": _lack_of_package,
    "platform": _lack_of_platform,
    "environment": _lack_in_environment,
    "one of": _lack_of_all,
}
