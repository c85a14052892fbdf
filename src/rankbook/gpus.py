"""The GPUs that listings may use: asked of `nvidia-smi`, inside the caller's `CUDA_VISIBLE_DEVICES`, or declared by a setting.

Neither imports torch nor touches CUDA: a process that has initialised CUDA can no longer be forked.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from rankbook.errors import ConfigError

SECONDS = 20
"""How long `nvidia-smi` may take; without its persistence daemon a driver wakes up slowly."""
COLUMNS = "index,uuid,name,memory.total,compute_cap"

Ask = Callable[..., str]
"""Gives what `nvidia-smi` says when it is called with these arguments; raises `OSError` or `SubprocessError` when it says nothing."""


class Gpu(Struct, frozen=True):
    """One GPU, or one part of a GPU that is partitioned (MIG)."""

    id: str
    """As `CUDA_VISIBLE_DEVICES` takes it: an index or a UUID."""
    uuid: str
    """The same for every process of the machine; of a declared one its place: `declared-0`."""
    name: str = ""
    """`NVIDIA H200`; empty when it is not known."""
    memory: int | None = None
    """Bytes; None when that is not known."""
    capability: str = ""
    """Compute capability: `9.0`; empty when it is not known."""


class Inventory(Struct, frozen=True):
    """All GPUs that listings may use, in the order in which CUDA counts them."""

    gpus: tuple[Gpu, ...] = ()
    peers: frozenset[frozenset[str]] | None = None
    """Pairs of ids of GPUs that can read each other's memory; None when that is not known."""
    declared: bool = False
    """Whether the setting `gpus` says so, and not the machine."""
    is_known: bool = True
    """Whether the number of GPUs is known."""
    problem: str = ""
    """Why GPUs may be missing here, as a clause; empty when there is no reason to think so."""

    @property
    def has_peer_access(self) -> bool | None:
        """Whether each GPU can read the memory of all others; None when that is not known."""
        if len(self.gpus) < 2:
            return False
        if self.peers is None:
            return None
        return len(self.peers) == len(self.gpus) * (len(self.gpus) - 1) // 2

    def choose(self, free: Sequence[str], count: int) -> tuple[str, ...]:
        """Choose GPUs that can read each other's memory, and that leave such GPUs together.

        Args:
            free: ids to choose from, best first where they are equal.
            count: GPUs that are wanted; not more than there are to choose from.
        """
        if not self.peers or count >= len(free):
            return tuple(free[:count])
        grown = [_grown(first, free, count, self.peers) for first in free] if count else [()]
        return min(grown, key=lambda group: (-_links(group, group, self.peers), _links(group, set(free) - set(group), self.peers)))


def _grown(first: str, free: Sequence[str], count: int, peers: Collection[frozenset[str]]) -> tuple[str, ...]:
    """Grow a group from one GPU by the GPU with the most peers in it, and of those the one with the fewest outside."""
    group, rest = [first], [gpu for gpu in free if gpu != first]
    while len(group) < count:
        best = min(rest, key=lambda gpu: (-_links((gpu,), group, peers), _links((gpu,), rest, peers)))
        group.append(best)
        rest.remove(best)
    return tuple(gpu for gpu in free if gpu in group)


def _links(some: Collection[str], others: Collection[str], peers: Collection[frozenset[str]]) -> int:
    return sum(frozenset((one, other)) in peers for one in some for other in others)


def inventory(text: str = "", environment: Mapping[str, str] = os.environ, ask: Ask | None = None) -> Inventory:
    """Tell which GPUs listings may use; what the machine says is remembered.

    Args:
        text: of the setting `gpus`; empty for the GPUs that are there.
        environment: `CUDA_VISIBLE_DEVICES` and `CUDA_DEVICE_ORDER` are looked up here.
        ask: calls `nvidia-smi`; None for the real one.

    Raises:
        ConfigError: the declared text cannot be understood.
    """
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    found = _found(visible, environment.get("CUDA_DEVICE_ORDER", ""), ask or _nvidia_smi)
    return _declared(text, found) if text.strip() else found


@cache
def _found(visible: str | None, order: str, ask: Ask) -> Inventory:
    """Read what `nvidia-smi` says, and keep what is visible of it."""
    try:
        there = [_gpu(line) for line in ask(f"--query-gpu={COLUMNS}", "--format=csv,noheader").splitlines() if line.count(",") >= 4]
    except FileNotFoundError:
        return _unasked()
    except (OSError, subprocess.SubprocessError) as error:
        return Inventory(problem=_why(error))
    counted = _as_cuda_counts(there, visible, order)
    entries = counted if visible is None else _visible(visible, [*counted, *_partitions(visible, counted, ask)])
    return Inventory(tuple(entries), _peers(entries, there, ask) if len(entries) > 1 else None)


def _gpu(line: str) -> Gpu:
    index, uuid, name, memory, capability = (part.strip() for part in line.split(","))
    return Gpu(index, uuid, name, _bytes(memory), capability if re.fullmatch(r"\d+\.\d+", capability) else "")


def _bytes(text: str) -> int | None:
    number = text.split()
    return int(number[0]) * 1024**2 if number and number[0].isdecimal() else None


def _as_cuda_counts(there: Sequence[Gpu], visible: str | None, order: str) -> list[Gpu]:
    """Give the GPUs the indices that CUDA gives them, which is not the order of `nvidia-smi` where their models differ.

    Then CUDA puts the fastest first, unless `CUDA_DEVICE_ORDER` says otherwise. UUIDs mean the same to both.
    """
    if order == "PCI_BUS_ID" or len({gpu.name for gpu in there}) <= 1:
        return list(there)
    if visible is None:
        return [replace(gpu, id=gpu.uuid) for gpu in there]
    uuids = _asked_of_driver()
    by_uuid = {gpu.uuid: gpu for gpu in there}
    if sorted(uuids) != sorted(by_uuid):
        return list(there)
    return [replace(by_uuid[uuid], id=str(index)) for index, uuid in enumerate(uuids)]


_UUIDS_OF_DRIVER = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
count, device, uuid = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(16)
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
for index in range(count.value):
    assert cuda.cuDeviceGet(ctypes.byref(device), index) == 0 and cuda.cuDeviceGetUuid(uuid, device) == 0
    digits = uuid.raw.hex()
    print("GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])))
"""


@cache
def _asked_of_driver() -> tuple[str, ...]:
    """Let a process of its own ask CUDA's driver for the UUIDs of all GPUs, in its order; empty when it cannot say."""
    environment = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"}
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _UUIDS_OF_DRIVER], capture_output=True, text=True, timeout=SECONDS, check=True, env=environment
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(done.stdout.split())


def _visible(text: str, there: Sequence[Gpu]) -> list[Gpu]:
    """Keep the GPUs that `CUDA_VISIBLE_DEVICES` names, in its order, as CUDA does.

    The first entry that names no GPU ends the list; one that comes twice, or a GPU that is named twice, leaves none.
    """
    kind = next((prefix for prefix in ("GPU-", "MIG-") if text.startswith(prefix)), "")
    entries = _entries(text, kind)
    kept: list[Gpu] = []
    for entry in entries if len(set(entries)) == len(entries) else ():
        found = [gpu for gpu in there if (_begins(gpu.uuid, entry, kind) if kind else gpu.id == entry)]
        if len(found) != 1:
            break
        if found[0].uuid in {gpu.uuid for gpu in kept}:
            return []
        kept.append(replace(found[0], id=found[0].uuid) if kind else found[0])
    return kept


def _begins(uuid: str, entry: str, kind: str) -> bool:
    """Tell whether a UUID begins so, behind its kind; CUDA's driver takes capitals for the same digits, and the kind alone for none."""
    return len(entry) > len(kind) and uuid.lower().startswith(entry.lower())


def _entries(text: str, kind: str) -> list[str]:
    """Split into beginnings of UUIDs of one kind, or into the numbers that the entries begin with, up to the first that is none."""
    if kind:
        return list(takewhile(lambda entry: entry.startswith(kind), text.split(",")))
    numbers = (re.match(r"[+-]?[0-9]+", entry.strip()) for entry in text.split(","))
    return [str(int(number[0])) for number in takewhile(lambda number: number is not None and int(number[0]) >= 0, numbers) if number]


_PARTITION = re.compile(r"\s+MIG (?P<profile>\S+)\s.*\(UUID:\s*(?P<uuid>MIG-[^)\s]+)\)")
_WHOLE = re.compile(r"GPU \d+:.*\(UUID:\s*(?P<uuid>[^)\s]+)\)")


def _partitions(visible: str, there: Sequence[Gpu], ask: Ask) -> list[Gpu]:
    """Read the parts of partitioned GPUs, if the caller names one."""
    if not visible.lstrip().startswith("MIG-"):
        return []
    whole, found = {gpu.uuid: gpu for gpu in there}, []
    holder: Gpu | None = None
    for line in _said(ask, "-L").splitlines():
        if heading := _WHOLE.match(line):
            holder = whole.get(heading["uuid"])
        elif holder and (part := _PARTITION.match(line)):
            size = re.search(r"(\d+)gb", part["profile"])
            name = f"{holder.name} MIG {part['profile']}"
            found.append(Gpu(part["uuid"], part["uuid"], name, int(size[1]) * 10**9 if size else None, holder.capability))
    return found


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def _peers(entries: Sequence[Gpu], there: Sequence[Gpu], ask: Ask) -> frozenset[frozenset[str]] | None:
    """Read which of the visible GPUs can read each other's memory; parts of partitioned GPUs cannot."""
    if any(gpu.uuid.startswith("MIG-") for gpu in entries):
        return frozenset()
    rows = [_COLOUR.sub("", line).split() for line in _said(ask, "topo", "-p2p", "r").splitlines()]
    names = next((row for row in rows if row and all(re.fullmatch(r"GPU\d+", name) for name in row)), [])
    status = {(row[0], name): word for row in rows if row[:1] and row[0] in names for name, word in zip(names, row[1:], strict=False)}
    own = {gpu.uuid: f"GPU{gpu.id}" for gpu in there}
    pairs = [(one, other) for one in entries for other in entries if one is not other]
    words = {(one.id, other.id): status.get((own[one.uuid], own[other.uuid]), "U") for one, other in pairs}
    if "U" in words.values():
        return None
    return frozenset(frozenset(pair) for pair, word in words.items() if word == words[pair[::-1]] == "OK")


def _nvidia_smi(*arguments: str) -> str:
    return subprocess.run(("nvidia-smi", *arguments), capture_output=True, text=True, timeout=SECONDS, check=True).stdout


def _said(ask: Ask, *arguments: str) -> str:
    try:
        return ask(*arguments)
    except (OSError, subprocess.SubprocessError):
        return ""


def _why(error: Exception) -> str:
    said = str(getattr(error, "stdout", None) or getattr(error, "stderr", None) or error)
    return "nvidia-smi says: " + " ".join(said.split())


def _unasked() -> Inventory:
    """Tell what is known without `nvidia-smi`: whether there is a driver of GPUs that it would have counted, or of those of AMD."""
    if next(Path("/dev").glob("nvidia[0-9]*"), None):
        return Inventory(is_known=False, problem="there are GPUs, but no nvidia-smi that counts them")
    if Path("/dev/kfd").exists():
        return Inventory(is_known=False, problem="GPUs of AMD are not counted")
    return Inventory()


CAPABILITIES = {
    "B200": "10.0",
    "GB200": "10.0",
    "H200": "9.0",
    "H100": "9.0",
    "GH200": "9.0",
    "L40S": "8.9",
    "L40": "8.9",
    "L4": "8.9",
    "A10": "8.6",
    "A10G": "8.6",
    "A100": "8.0",
    "T4": "7.5",
    "V100": "7.0",
}
"""Compute capability of GPUs that are declared by their model."""

_PART = re.compile(
    r"(?P<count>\d+)"
    r"(?:\s*[x×*]\s*(?P<name>[A-Za-z][\w -]*?)"
    r"(?:\s+(?P<memory>\d+(?:\.\d+)?)\s?(?P<unit>[MG]i?B))?"
    r"(?:\s+cc\s?(?P<capability>\d+\.\d+))?)?",
    re.ASCII,
)
_NO_NAME = re.compile(r"\bcc\b|[KMGT]iB\b|\s[KMGT]B\b")
_UNITS = {"MiB": 1024**2, "GiB": 1024**3, "MB": 10**6, "GB": 10**9}
MOST = 4096
"""GPUs that a part of the setting may declare."""
FORM = "write '8', '8 x H200' or '2 x H200 141 GiB, 1 x T4 15 GiB cc 7.5'"


def declared(text: str) -> list[Gpu]:
    """Read the setting `gpus`: what the GPUs are, without their ids.

    Raises:
        ConfigError: the text cannot be understood.
    """
    found: list[Gpu] = []
    for part in text.split(","):
        said = _PART.fullmatch(part.strip())
        if said is None or int(said["count"]) > MOST or _NO_NAME.search(said["name"] or ""):
            raise ConfigError(f"setting 'gpus': '{part.strip()}' does not say how many GPUs of which kind there are", right=FORM)
        name = said["name"] or ""
        memory = round(float(said["memory"]) * _UNITS[said["unit"]]) if said["memory"] else None
        capability = said["capability"] or next((CAPABILITIES[word] for word in re.split(r"[ -]", name) if word in CAPABILITIES), "")
        found += [Gpu("", "", name, memory, capability)] * int(said["count"])
    return found


def _declared(text: str, found: Inventory) -> Inventory:
    """Take the GPUs that the setting declares, but none that the caller does not show."""
    return Inventory(tuple(_placed(index, gpu, found) for index, gpu in enumerate(declared(text))), declared=True)


def _placed(index: int, gpu: Gpu, found: Inventory) -> Gpu:
    """Let a declared GPU stand for the visible one at its place; on a machine with GPUs the id of any other means nothing to CUDA."""
    if index < len(found.gpus):
        return replace(gpu, id=found.gpus[index].id, uuid=found.gpus[index].uuid)
    name = f"declared-{index}"
    return replace(gpu, id=name if found.gpus else str(index), uuid=name)
