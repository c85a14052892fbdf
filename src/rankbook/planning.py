"""Whether a test can run here, and on how many GPUs, as its page says what it needs: no rank is started only to say that it cannot."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from rankbook import needs as stated
from rankbook.lacks import reason
from rankbook.listing import Listing
from rankbook.requirements import FAILS, HARNESSES, LOST, Requirement, gpu_range, gpus_of
from rankbook.verdict import Machine, is_met, verdict


class Planned(Struct, frozen=True):
    """What becomes of a test, said before it is started."""

    word: str
    """`runs`, `skipped`, `absent` or `unknown`; only `skipped` is sure enough to be acted on."""
    need: Requirement | None = None
    """What decides it."""
    reason: str = ""
    """`needs 2 GPUs, and this machine has none`; empty for a test that runs."""


def needs_of(listing: Listing, test: str) -> tuple[Requirement, ...]:
    """Give what a page says that a test needs; empty when its listing is not the source any more of which that was said.

    Args:
        listing: of the test.
        test: its node id within the file.
    """
    return stated.of_test(needs_of_all(listing), test)


def needs_of_all(listing: Listing) -> stated.Needs:
    """Give what a page says that its tests need; empty when its listing is not the source any more of which that was said."""
    about = listing.about
    if about is None or not about.needs or about.embedding is None:
        return {}
    try:
        is_edited = sha256(listing.data()).hexdigest() != about.embedding.sha256
    except (UnicodeError, LookupError):
        is_edited = True
    return {} if is_edited else about.needs


def plan_of(requirements: Iterable[Requirement], machine: Machine, granted: int | None = None) -> Planned:
    """Tell what becomes of a test, without starting it.

    Args:
        requirements: all that it needs.
        machine: where it would run.
        granted: number of GPUs that it would see; None for all of the machine.
    """
    wanted = tuple(requirements)
    here = machine if granted is None else _granted(machine, granted)
    said = verdict(wanted, here)
    if said.requirement is None:
        return Planned(said.word)
    if said.word == "unknown":
        return Planned(said.word, said.requirement, f"needs {said.requirement.text}, of which it cannot be told whether it is there")
    if said.word != "skipped":
        return Planned(said.word, said.requirement, reason(said.requirement, machine, granted))
    sure = next((need for need in wanted if need.otherwise in LOST and _is_surely_unmet(need, here)), None)
    if sure is None:
        return Planned("unknown", said.requirement, f"whether it really needs {said.requirement.text} is known only when it runs")
    return Planned("skipped", sure, reason(sure, machine, granted))


def _granted(machine: Machine, granted: int) -> Machine:
    capabilities = None if machine.capabilities is None else machine.capabilities[:granted]
    return replace(machine, gpus=None if machine.gpus is None else granted, capabilities=capabilities)


def with_tree(machine: Machine, source: str, data: Callable[[str], bytes | None]) -> Machine:
    """Leave open which packages are there of those that the tree of a test has itself: they are not installed, but it may import them.

    Args:
        machine: what is known without the tree.
        source: path of the test's file below the root of its tree.
        data: gives the bytes of a file of the tree by its path, None when it has no such file.
    """

    def packages(name: str) -> str | None:
        known, top = machine.packages(name), name.partition(".")[0]
        if known != "":
            return known
        files = (folder / file for folder in PurePosixPath(source).parents for file in (f"{top}.py", f"{top}/__init__.py"))
        return None if any(data(str(file)) is not None for file in files) else ""

    return replace(machine, packages=packages)


# What is sure


def _is_surely_unmet(need: Requirement, machine: Machine) -> bool:
    if need.kind == "one of":
        return all(any(_is_surely_unmet(each, machine) for each in alternative) for alternative in need.either)
    return is_met(need, machine) is False and not _is_doubtful(need, machine)


def _is_doubtful(need: Requirement, machine: Machine) -> bool:
    """Tell whether a test may run where its need is not met.

    Some harnesses want GPUs only for tests that join a process group, which the page does not say of each test. Accelerators that are not
    CUDA's count as GPUs for many tests. And a conftest file or a fixture may set the variables that a test asks for.
    """
    if need.kind in _OF_VARIABLES:
        return True
    if need.kind != "gpus" and not (need.kind == "device" and "GPU" in need.value):
        return False
    harness = HARNESSES.get(need.evidence)
    if harness is not None and harness.gpus == "with nccl":
        return True
    return any(machine.devices.get(name) is not False for name in _OTHER_DEVICES) or any(map(machine.packages, _OTHER_PACKAGES))


_OF_VARIABLES = frozenset({"environment", "slow"})
_OTHER_DEVICES = ("xpu", "mps")
_OTHER_PACKAGES = ("habana_frameworks", "torch_npu", "torch_mlu", "torch_musa")
"""Packages that give torch accelerators of other makers."""


# How many GPUs a test is granted


class Claim(Struct, frozen=True):
    """What an item claims of the GPUs that there are."""

    gpus: int = 0
    """How many; it sees no others."""
    shared: bool = False
    """Whether others that say so may use the same ones meanwhile."""


def claim_of_source(requirements: Iterable[Requirement], text: str, inventory: int) -> Claim:
    """Tell what a test, or a program, of a source claims.

    Of one that names neither GPUs nor ranks nobody knows what it would do with a GPU. It sees all of them, as it would without rankbook:
    for itself where its source has a word of GPUs, with others of its kind where it has none.

    Args:
        requirements: all that it needs, and its world size.
        text: its source.
        inventory: number of GPUs that can be granted at all.
    """
    wanted = gpus_wanted(requirements, inventory)
    return Claim(inventory, shared=not _has_gpu_words(text)) if wanted is None else Claim(wanted)


@lru_cache(maxsize=64)
def _has_gpu_words(text: str) -> bool:
    return _GPU_WORDS.search(text) is not None


_GPU_WORDS = re.compile("cuda|gpu|nccl|accelerator|triton|device_count", re.IGNORECASE)


def gpus_wanted(requirements: Iterable[Requirement], inventory: int, environment: Mapping[str, str] = os.environ) -> int | None:
    """Tell how many GPUs to grant a test; None for one that names neither GPUs nor ranks, nor says that it runs on the CPU.

    A test that says how many GPUs it needs gets them, and one for each of its ranks where there are enough. One that needs more than there
    are gets none: it is skipped. One that says only how many ranks it starts gets a GPU for each, unless it runs on the CPU; where its
    ranks follow the number of devices, or are known only when it runs, it gets two, so that something passes between them. That it comes
    to a call that fails without a GPU does not say how many it would use.

    Args:
        requirements: all that it needs, and its world size.
        inventory: number of GPUs that can be granted at all.
        environment: variables that it would see.
    """
    wanted = tuple(requirements)
    ranges, floor = _ranges(wanted, inventory, environment)
    least = max((low for low, _ in ranges), default=0)
    most = min((high for _, high in ranges if high is not None), default=inventory)
    if least > inventory or (not (least or floor) and _is_on_cpu(wanted)):
        return 0
    sizes = [need for need in wanted if need.kind == "world size"]
    if not (ranges or sizes):
        return None
    own = [need for need in sizes if not need.otherwise] or sizes
    ranks = max((_ranks(need.value, environment) for need in own), default=0)
    return max(least, floor, min(ranks, most, inventory))


_SOME_RANKS = 2
"""Ranks of a test whose world size follows the number of devices, or is known only when it runs."""
_CPU_DEVICES = frozenset({"cpu", "meta"})
_CPU_BACKENDS = frozenset({"gloo", "fake", "threaded"})


def _ranges(wanted: Sequence[Requirement], inventory: int, environment: Mapping[str, str]) -> tuple[list[tuple[int, int | None]], int]:
    """Give what a test asks for, and as many as its calls are sure to use, as far as there are."""
    found = [(need, each) for need in wanted if (each := _range_of(need, inventory, environment)) is not None]
    used = max((low for need, (low, _) in found if need.otherwise == FAILS), default=0)
    return [each for need, each in found if need.otherwise != FAILS], min(used, inventory)


def _range_of(need: Requirement, inventory: int, environment: Mapping[str, str]) -> tuple[int, int | None] | None:
    """Give the fewest and the most GPUs that a need asks for; None when it asks for none."""
    return _range_of_gpus(need.value, inventory, environment) if need.kind == "gpus" else gpus_of(need)


def _range_of_gpus(value: str, inventory: int, environment: Mapping[str, str]) -> tuple[int, int | None]:
    found = gpu_range(value.removesuffix(" or none")) or gpu_range(environment.get(value, ""))
    if found is None:
        return 1, None
    return (0, 0) if value.endswith(" or none") and found[0] > inventory else found


def _is_on_cpu(wanted: Sequence[Requirement]) -> bool:
    on = {"device": _CPU_DEVICES, "backend": _CPU_BACKENDS}
    return any(on[need.kind].issuperset(need.value.split(" or ")) for need in wanted if need.kind in on)


def _ranks(value: str, environment: Mapping[str, str]) -> int:
    """Read a world size: `4`, `2, 4`, `>= 8`; of one that is known only when the test runs, take two."""
    size = environment.get("WORLD_SIZE", "") if "WORLD_SIZE" in value else value.removeprefix(">= ")
    numbers = [number for number in size.split(", ") if number.isdecimal()]
    return max(map(int, numbers), default=_SOME_RANKS)
