"""The GPUs that there are: what `nvidia-smi` says, what the caller shows of it, what the setting declares."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbook import machine
from rankbook.errors import ConfigError
from rankbook.gpus import Gpu, Inventory, inventory

UUIDS = (
    "GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f",
    "GPU-5c89c010-0000-4ee2-8a5b-2f6e1d0a9c77",
    "GPU-a1b2c3d4-89ab-4cde-8f01-23456789abcd",
    "GPU-ffff0000-1111-2222-3333-444455556666",
)
MIG = """\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f)
  MIG 3g.20gb     Device  0: (UUID: MIG-0a1b2c3d-0000-5000-8000-000000000001)
  MIG 1g.5gb      Device  1: (UUID: MIG-0a1b2c3d-0000-5000-8000-000000000002)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-5c89c010-0000-4ee2-8a5b-2f6e1d0a9c77)
  MIG 7g.40gb     Device  0: (UUID: MIG-ffffffff-0000-5000-8000-000000000003)
"""


def nvidia_smi(count=4, names=(), topology=None, listed=""):
    """Give an `nvidia-smi` of a machine; each call gives another, so that nothing is remembered from one test to the next."""

    def ask(*arguments):
        if arguments[0] == "-L":
            return listed
        if arguments[0] == "topo":
            assert arguments == ("topo", "-p2p", "r")
            if topology is None:
                raise subprocess.CalledProcessError(1, "nvidia-smi")
            return table(topology)
        assert arguments == ("--query-gpu=index,uuid,name,memory.total,compute_cap", "--format=csv,noheader")
        rows = [(names[index] if names else "NVIDIA H200", "143771 MiB", "9.0") for index in range(count)]
        return "".join(f"{index}, {UUIDS[index]}, {name}, {size}, {cc}\n" for index, (name, size, cc) in enumerate(rows))

    return ask


def table(topology):
    """Write a matrix as `nvidia-smi topo -p2p r` does."""
    head = "\t".join(["", *(f"GPU{index}" for index in range(len(topology)))])
    rows = [f" GPU{index}\t" + "\t".join(row) for index, row in enumerate(topology)]
    return "\n".join([f" \x1b[4m{head}\x1b[0m\t", *rows, "", "Legend:", "", "  X    = Self", "  OK   = Status Ok", "  U    = Unknown"])


def ids(found):
    return [gpu.id for gpu in found.gpus]


def test_what_nvidia_smi_says():
    """Name, memory, capability; ids are indices, and what is the same for all processes is the UUID."""
    found = inventory(environment={}, ask=nvidia_smi(2))
    assert found.gpus[1] == Gpu("1", UUIDS[1], "NVIDIA H200", 143771 * 1024**2, "9.0")
    assert found.is_known
    assert not found.declared
    assert not found.problem


def test_what_the_driver_does_not_know():
    """A GPU that shares the machine's memory has no size of its own."""
    found = inventory(environment={}, ask=lambda *_: f"0, {UUIDS[0]}, NVIDIA GB10, [N/A], [N/A]\n")
    assert found.gpus == (Gpu("0", UUIDS[0], "NVIDIA GB10", None, ""),)


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, ["0", "1", "2", "3"]),
        ("2,0", ["2", "0"]),
        (" 3 , 1", ["3", "1"]),
        ("", []),
        ("-1", []),
        ("1,-1,2", ["1"]),
        ("0,7,1", ["0"]),
        ("0,x,1", ["0"]),
        ("1,1", []),
        ("1gpu,2", ["1", "2"]),
        (f"{UUIDS[2]},{UUIDS[0]}", [UUIDS[2], UUIDS[0]]),
        ("GPU-a1,GPU-ff", [UUIDS[2], UUIDS[3]]),
        ("GPU-5c89", []),
        ("GPU-a1,GPU-5c89,GPU-ff", [UUIDS[2]]),
        ("GPU-a1,0", [UUIDS[2]]),
        ("GPU-a1,GPU-a1b2", []),
        ("0,GPU-a1", ["0"]),
        (UUIDS[2].upper(), [UUIDS[2]]),
        (UUIDS[2].lower(), []),
        ("GPU-", []),
        ("GPU-a1,GPU-", [UUIDS[2]]),
    ],
)
def test_what_the_caller_shows(visible, expected):
    """The caller's list is kept in its order and its form, and ends where CUDA ends it."""
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert ids(inventory(environment=environment, ask=nvidia_smi())) == expected


ENTRIES = st.one_of(
    st.integers(-1, 5).map(str),
    st.sampled_from([" 2", "3 ", "+1", "2x", "x", "", "-0", "007"]),
    st.sampled_from(UUIDS).flatmap(lambda uuid: st.integers(5, len(uuid)).map(lambda end: uuid[:end])),
    st.sampled_from(["GPU-none", "MIG-0a", " GPU-a1"]),
)


@settings(deadline=None)
@given(st.lists(ENTRIES, max_size=5).map(",".join), st.integers(1, 4))
def test_the_same_gpus_as_torch(visible, count):
    """Whatever the caller's list says, it leaves as many GPUs as torch counts."""
    pytest.importorskip("torch")
    import torch.cuda as cuda

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", visible)
        patch.setattr(cuda, "_raw_device_count_nvml", lambda: count)
        patch.setattr(cuda, "_raw_device_uuid_nvml", lambda: list(UUIDS[:count]))
        counted = cuda._device_count_nvml()
    found = ids(inventory(environment={"CUDA_VISIBLE_DEVICES": visible}, ask=nvidia_smi(count)))
    # Torch leaves lists of parts of GPUs to the driver.
    assert len(found) == max(counted, 0)


@settings(deadline=None)
@given(st.permutations(range(4)), st.integers(0, 4))
def test_any_visible_list_is_kept(order, count):
    """A list of indices that are there gives exactly these; its grants shown again give the same."""
    text = ",".join(map(str, order[:count]))
    ask = nvidia_smi()
    found = inventory(environment={"CUDA_VISIBLE_DEVICES": text}, ask=ask)
    assert ",".join(ids(found)) == text
    assert [gpu.uuid for gpu in found.gpus] == [UUIDS[index] for index in order[:count]]


def test_parts_of_gpus():
    """A partitioned GPU's parts are named by their UUIDs; no part reads the memory of another."""
    environment = {"CUDA_VISIBLE_DEVICES": "MIG-0a1b2c3d-0000-5000-8000-000000000002,MIG-ffff"}
    found = inventory(environment=environment, ask=nvidia_smi(2, ["NVIDIA A100-SXM4-40GB"] * 2, listed=MIG))
    assert ids(found) == ["MIG-0a1b2c3d-0000-5000-8000-000000000002", "MIG-ffffffff-0000-5000-8000-000000000003"]
    assert [(gpu.name, gpu.memory) for gpu in found.gpus] == [
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 5 * 10**9),
        ("NVIDIA A100-SXM4-40GB MIG 7g.40gb", 40 * 10**9),
    ]
    assert found.has_peer_access is False


def test_models_that_differ():
    """CUDA counts the fastest first, `nvidia-smi` by the bus: only UUIDs mean the same to both, unless CUDA is told to count by the bus."""
    names = ["NVIDIA T4", "NVIDIA H200"]
    assert ids(inventory(environment={}, ask=nvidia_smi(2, names))) == list(UUIDS[:2])
    assert ids(inventory(environment={"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, ask=nvidia_smi(2, names))) == ["0", "1"]


def test_models_that_differ_behind_indices(monkeypatch):
    """What an index stands for is asked of CUDA's driver; where that is silent, the bus decides."""
    names = ["NVIDIA T4", "NVIDIA H200"]
    environment = {"CUDA_VISIBLE_DEVICES": "0"}
    monkeypatch.setattr("rankbook.gpus._asked_of_driver", lambda: (UUIDS[1], UUIDS[0]))
    assert inventory(environment=environment, ask=nvidia_smi(2, names)).gpus[0].name == "NVIDIA H200"
    monkeypatch.setattr("rankbook.gpus._asked_of_driver", lambda: ())
    assert inventory(environment=environment, ask=nvidia_smi(2, names)).gpus[0].name == "NVIDIA T4"


PAIRS = [["X", "OK", "NS", "NS"], ["OK", "X", "NS", "NS"], ["NS", "NS", "X", "OK"], ["NS", "NS", "OK", "X"]]


def test_who_reads_whose_memory():
    """Peer access is that of the visible GPUs."""
    found = inventory(environment={}, ask=nvidia_smi(topology=PAIRS))
    assert found.peers == frozenset({frozenset("01"), frozenset("23")})
    assert found.has_peer_access is False
    assert inventory(environment={"CUDA_VISIBLE_DEVICES": "3,2"}, ask=nvidia_smi(topology=PAIRS)).has_peer_access is True
    assert inventory(environment={}, ask=nvidia_smi(topology=[["X", "U"], ["U", "X"]], count=2)).has_peer_access is None
    assert inventory(environment={}, ask=nvidia_smi(topology=[["X", "OK"], ["CNS", "X"]], count=2)).has_peer_access is False
    assert inventory(environment={}, ask=nvidia_smi(topology=None)).has_peer_access is None
    assert inventory(environment={}, ask=nvidia_smi(1)).has_peer_access is False


def test_gpus_that_read_each_others_memory_are_chosen():
    """Several GPUs are peers where there are such; one GPU leaves peers together."""
    found = inventory(environment={}, ask=nvidia_smi(topology=PAIRS))
    assert found.choose(("0", "1", "2", "3"), 2) == ("0", "1")
    assert found.choose(("0", "2", "3"), 2) == ("2", "3")
    assert found.choose(("1", "2", "3"), 1) == ("1",)
    assert found.choose(("3", "0", "1"), 1) == ("3",)
    assert found.choose(("0", "2"), 2) == ("0", "2")
    assert inventory("4", {}, ask=nvidia_smi(0)).choose(("2", "1", "3"), 2) == ("2", "1")


@settings(deadline=None)
@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5))), st.permutations(range(6)), st.integers(0, 6), st.integers(0, 6))
def test_a_choice_is_one_of_the_free(links, order, free, count):
    """Whoever reads whose memory: as many as wanted are chosen, each once, from those that are free."""
    gpus = tuple(Gpu(str(index), str(index)) for index in range(6))
    peers = frozenset(frozenset(map(str, pair)) for pair in links if pair[0] != pair[1])
    open_to_all = tuple(map(str, order[:free]))
    chosen = Inventory(gpus, peers).choose(open_to_all, min(count, free))
    assert len(set(chosen)) == len(chosen) == min(count, free)
    assert set(chosen) <= set(open_to_all)


def refuse(*_):
    raise subprocess.CalledProcessError(9, "nvidia-smi", output="NVIDIA-SMI has failed because it\ncouldn't communicate with the driver.")


def test_a_machine_that_lost_its_gpus():
    """What `nvidia-smi` complains about is kept: a refusal can say it."""
    found = inventory(environment={}, ask=refuse)
    assert not found.gpus
    assert found.problem == "nvidia-smi says: NVIDIA-SMI has failed because it couldn't communicate with the driver."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", []),
        ("2", [Gpu("0", "declared-0"), Gpu("1", "declared-1")]),
        ("2 x H200", [Gpu(str(i), f"declared-{i}", "H200", None, "9.0") for i in range(2)]),
        ("1 x NVIDIA A100-SXM4-80GB 80 GiB", [Gpu("0", "declared-0", "NVIDIA A100-SXM4-80GB", 80 * 1024**3, "8.0")]),
        ("1xH200 141 GiB", [Gpu("0", "declared-0", "H200", 141 * 1024**3, "9.0")]),
        ("1 × NVIDIA RTX 4090 24GB cc 8.9", [Gpu("0", "declared-0", "NVIDIA RTX 4090", 24 * 10**9, "8.9")]),
        (
            " 1 x H200 141 GiB, 1 x T4 15 GiB cc 7.5 ",
            [Gpu("0", "declared-0", "H200", 141 * 1024**3, "9.0"), Gpu("1", "declared-1", "T4", 15 * 1024**3, "7.5")],
        ),
    ],
)
def test_declared_gpus(text, expected):
    """The setting says how many there are of which kind."""
    found = inventory(text, {}, ask=nvidia_smi(0))
    assert list(found.gpus) == expected
    assert found.declared
    assert found.has_peer_access is (None if len(expected) > 1 else False)


@pytest.mark.parametrize(
    "text",
    [
        "many",
        "-1",
        "2 H200",
        "2 x",
        "2 x H200, 90 GiB",
        "x H200",
        "8,",
        "1.5",
        "9999999",
        "1 x T4 cc 7",
        "1 x T4 GiB",
        "1 x T4 15 TB cc 8.0",
    ],
)
def test_a_declaration_that_says_nothing(text):
    """A wrong setting is one sentence with the part that is wrong and what would be right."""
    with pytest.raises(ConfigError, match=r"setting 'gpus': '.*' does not say how many .*; write '8', '8 x H200' or"):
        inventory(text, {}, ask=nvidia_smi(0))


PARTS = st.tuples(
    st.integers(0, 9),
    st.sampled_from(["H200", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "RTX 4090", "T4"]),
    st.none() | st.tuples(st.integers(1, 999), st.sampled_from(["MiB", "GiB", "MB", "GB"])),
    st.none() | st.tuples(st.integers(1, 12), st.integers(0, 9)).map(lambda pair: f"{pair[0]}.{pair[1]}"),
)
UNITS = {"MiB": 1024**2, "GiB": 1024**3, "MB": 10**6, "GB": 10**9}


@settings(deadline=None)
@given(st.lists(PARTS, min_size=1, max_size=4))
def test_any_declaration_is_read_as_it_was_written(parts):
    """Count, name, memory and capability come back, whatever is left out."""
    texts = []
    for count, name, size, capability in parts:
        memory = f" {size[0]} {size[1]}" if size else ""
        texts.append(f"{count} x {name}{memory}{f' cc {capability}' if capability else ''}")
    found = inventory(", ".join(texts), {}, ask=nvidia_smi(0))
    expected = [part for part in parts for _ in range(part[0])]
    assert ids(found) == [str(index) for index in range(len(expected))]
    for gpu, (_, name, size, capability) in zip(found.gpus, expected, strict=True):
        assert gpu.name == name
        assert gpu.memory == (size[0] * UNITS[size[1]] if size else None)
        assert capability is None or gpu.capability == capability


@settings(deadline=None)
@given(st.text(max_size=20))
def test_any_text_is_read_or_refused(text):
    """No text breaks the reader."""
    with suppress(ConfigError):
        assert inventory(text, {}, ask=nvidia_smi(0)).declared is bool(text.strip())


def test_declared_gpus_stay_inside_what_the_caller_shows():
    """On a machine with GPUs a declared one is a visible one, or none that CUDA knows."""
    found = inventory("3 x T4", {"CUDA_VISIBLE_DEVICES": "2,1"}, ask=nvidia_smi())
    assert [(gpu.id, gpu.uuid, gpu.name) for gpu in found.gpus] == [
        ("2", UUIDS[2], "T4"),
        ("1", UUIDS[1], "T4"),
        ("declared-2", "declared-2", "T4"),
    ]


def test_the_machine_of_a_declaration():
    """What is declared decides what runs, and never passes for real hardware."""
    facts = machine.facts("2 x H200 141 GiB, 1 x T4 15 GiB")
    assert (facts.gpus, facts.capabilities, facts.gpu_memory, facts.peer_access) == (3, ("9.0", "9.0", "7.5"), 15 * 1024**3, None)
    assert machine.facts("4").capabilities is None
    assert machine.facts("0").gpus == 0
    assert machine.hardware("2 x H200, 1 x T4") == f"{machine.hardware()}; declared: 2 × H200, 1 × T4"
    assert machine.hardware("8").endswith("; declared: 8 × GPU")


def test_the_door_of_the_machine(tmp_path):
    """A real process with an `nvidia-smi` on its path, restricted by its caller, and without torch."""
    program = tmp_path / "nvidia-smi"
    program.write_text(
        "#!/bin/sh\ncase $1 in topo) printf '\\tGPU0\\tGPU1\\nGPU0\\tX\\tOK\\nGPU1\\tOK\\tX\\n';;\n"
        f"*) printf '0, {UUIDS[0]}, NVIDIA H200, 143771 MiB, 9.0\\n1, {UUIDS[1]}, NVIDIA H200, 143771 MiB, 9.0\\n';;\nesac\n"
    )
    program.chmod(0o755)
    script = (
        "import sys\nfrom rankbook import gpus, machine\nfound = gpus.inventory()\nassert 'torch' not in sys.modules\n"
        "print(machine.hardware(), [gpu.id for gpu in found.gpus], found.has_peer_access)\n"
    )
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for visible, expected in (("1,0", "2 × NVIDIA H200 ['1', '0'] True"), ("1", "1 × NVIDIA H200 ['1'] False"), ("", None)):
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment | {"CUDA_VISIBLE_DEVICES": visible}, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == expected or (expected is None and done.stdout.startswith("CPU, "))
