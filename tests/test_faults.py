"""Faults: each costs one item, is told by rank and signal with who waits for whom, and leaves nothing; on both engines and from pages."""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib.util
import os
import pickle
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters import need_ray, pretend_allocation
from executions import told
from proving import prove, read_case
from rankbook import engines
from rankbook.engines import flight, isolation, job, leftovers, travel, vain
from rankbook.engines.isolation import Isolation, ports_of, wants_namespace
from rankbook.engines.job import environment_of, prepare
from rankbook.engines.roll import Roll
from rankbook.errors import EngineError
from rankbook.leases import Leases
from rankbook.ledger import Ledger
from rankbook.listing import Ended, Event, Outcome, Program
from rankbook.rank_notes import rank_name
from whole import WHOLE, in_whole, only_in_whole

PROGRAMS = Path(__file__).parent / "engine_programs"
CASES = Path(__file__).parent / "cases" / "faults"
ENGINES = ("local", "fresh")
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what is left is found in /proc and /dev/shm")


@pytest.fixture(scope="module", params=ENGINES)
def engine(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(PROGRAMS), *filter(None, [os.environ.get("PYTHONPATH")])]))
        made = engines.create(request.param)
        yield made
        made.close()


def program(entry: str, path: str = "none.py", timeout: float = 300, gpus=None, environment=None, fresh="", **arguments) -> Program:
    module = "fault_programs:" if ":" not in entry else ""
    options = {"torch": path == "torch_faults.py", "harnesses": False, "gpus": gpus, "fresh": fresh}
    return Program("page.md::x", module + entry, str(PROGRAMS), path, arguments, environment or {}, timeout, **options)


def run(engine, *args, **kwargs) -> tuple[list[Event], Ended]:
    execution = engine.start(program(*args, **kwargs))
    return list(told(execution)), execution.ended


# Ranks that die, and those that wait for them: in forks here, in both engines on the pages below


in_forks = pytest.mark.parametrize("engine", ["local"], indirect=True)


def start_faulty(engine, fault: str, timeout: float = 300, **environment: str):
    variables = {"FAULT": fault, **environment}
    return engine.start(program("plain_programs:run_file", "torch_faults.py", timeout, environment=variables))


def end_of(execution) -> Ended:
    list(told(execution))
    return execution.ended


def line_of(text: str) -> int:
    lines = (PROGRAMS / "torch_faults.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@needs_torch
@in_forks
def test_waiting_in_vain(engine):
    """When a rank dies and the other waits for it, the program ends within moments and says who waits for what."""
    for fault, code, patience in [("kill", -signal.SIGKILL, vain.PATIENCE), ("leave", 0, vain.LENIENCE)]:
        ended = end_of(start_faulty(engine, fault))
        assert (ended.death.name, ended.death.exit_code) == ("rank 1", code)
        assert not ended.hung
        assert ended.exit_code == -signal.SIGKILL
        assert f"rank 0 waits in init_process_group (torch_faults.py:{line_of('dist.init_process_group')})" in ended.waiting
        assert any(sentence.startswith("the main process waits for a process (torch_faults.py:") for sentence in ended.waiting)
        assert "--- stacks of rank 'process 0'" in ended.output
        assert "rankbook/engines/" not in ended.output
        assert [(rank.name, rank.exit_code) for rank in ended.ranks] == [("rank 0", None), ("rank 1", code)]
        # Torch alone would wait for minutes. On a busy machine the survivor takes its time until it waits.
        assert patience < ended.duration - ended.death.started - ended.death.duration < 60


@needs_torch
@in_forks
def test_pardoned_death(engine):
    """A test that ends its rank on purpose, and goes on for seconds, is left alone."""
    ended = end_of(start_faulty(engine, "kill", PARDON="yes"))
    assert (ended.exit_code, ended.death) == (0, None), ended.output
    assert [(rank.name, rank.exit_code) for rank in ended.ranks] == [("rank 0", -9), ("rank 1", -9)]


@needs_torch
@only_in_whole
@in_forks
def test_deadline(engine):
    """At the deadline each process has its sentence: who is in which collective, who sleeps, is stopped, or is in native code."""
    said = {
        "sleep": f"rank 1 is in sleep (torch_faults.py:{line_of('time.sleep(1000)')})",
        "stop": "rank 1 is stopped by a signal",
        "hold": f"rank 1 is in native code called from torch_faults.py:{line_of('pthread_mutex_lock')}",
    }
    for fault, execution in [(fault, start_faulty(engine, fault, timeout=10.0)) for fault in said]:
        ended = end_of(execution)
        assert ended.hung
        assert said[fault] in ended.waiting
        assert any(sentence.startswith("rank 0 waits in init_process_group") for sentence in ended.waiting), ended.waiting


def test_ends_of_ranks(engine):
    """How each rank ended is on record, in order, also when nobody has looked at it."""
    _, ended = run(engine, "end_ranks")
    assert [(rank.name, rank.exit_code) for rank in ended.ranks] == [
        ("rank 0", 0), ("rank 1", 3), ("rank 2", -signal.SIGSEGV), ("rank 3", None), ("forked", 5),
    ]  # fmt: skip
    assert all(rank.started >= 0 and 0 < rank.duration < 60 for rank in ended.ranks)


def test_roll():
    """A death is news when it is neither agreed nor pardoned nor older than the test; signals come before exit statuses."""
    roll = Roll()
    for number in range(6):
        roll.enter(number, f"process {number}", own=number != 5)
    for number, code in enumerate([0, 72, 3, -9, 1, -9]):
        if number == 0:
            roll.order(0)
        roll.leave(number, code)
    assert roll.death().name == "rank 3"
    roll.pardon(3)
    assert roll.death().name == "rank 2"
    roll.forget()
    assert roll.death() is None
    assert roll.is_empty()
    assert [rank["exit_code"] for rank in roll.ends()] == [0, 72, 3, -9, 1]
    roll.enter(7, "left early", own=True)
    roll.leave(7, 0)
    assert roll.death().name == "left early"
    roll.forget()
    roll.order(8)  # heard before its parent has told of its start
    roll.enter(8, "short", own=True)
    roll.leave(8, 0)
    assert roll.death() is None


def test_names_of_ranks():
    """The harnesses' names of processes are names of ranks; others stay."""
    assert [rank_name(name) for name in ("process 1", "rank 2", "Process-1", "process x")] == ["rank 1", "rank 2", "Process-1", "process x"]


# Ports


@pytest.mark.parametrize("network", ["own", "host"])
def test_many_on_one_port(engine, network):
    """Programs that all use port 6789 pass when they run at once: in networks of their own, or one after the other."""
    if network == "own" and not isolation.allowed():
        pytest.skip("this machine allows no network namespace")
    count = 6 if engine.name == "local" else 3
    executions = [engine.start(program("use_port", network=network, ports=[6789], port=6789, timeout=60)) for _ in range(count)]
    names = [event["name"] for execution in executions for event in told(execution) if event["type"] == "network"]
    ends = [execution.ended for execution in executions]
    assert [ended.exit_code for ended in ends] == [0] * count, [ended.output for ended in ends]
    here = Path("/proc/self/ns/net").readlink().name
    assert [name == here for name in names] == [network == "host"] * count
    assert {ended.isolation for ended in ends} == {isolation.NAMESPACE if network == "own" else isolation.LEASE}


def test_network_of_its_own(engine):
    """In its own network a program reaches itself by this machine's name and by IPv6; the switch keeps it on the machine's network."""
    if not isolation.allowed():
        pytest.skip("this machine allows no network namespace")
    execution = engine.start(program("look_at_network", network="own"))
    began, event = execution.events()
    ended = execution.ended
    assert began["isolation"] == ended.isolation == isolation.NAMESPACE
    assert event["name"] != Path("/proc/self/ns/net").readlink().name
    (event,), ended = run(engine, "give_environment", "torch_faults.py", environment={isolation.SWITCH: "host"})
    assert ended.isolation == ""


NAMES = """
import socket

host, port = socket.getnameinfo(("192.0.2.7", 80), 0)
emit({"type": "names", "host": host, "own": socket.gethostbyname(socket.gethostname())})
"""


def test_names_in_a_network_of_its_own(engine, tmp_path):
    """Where no name server can be reached none is asked: an address without a name is no error, and this machine's name is known."""
    if not isolation.allowed():
        pytest.skip("this machine allows no network namespace")
    (tmp_path / "names.py").write_text(NAMES)
    before = Path("/etc/nsswitch.conf").read_bytes()
    execution = engine.start(Program("page.md::x", "contract_programs:run_file", str(tmp_path), "names.py", {"network": "own"}))
    events = list(told(execution))
    assert [event["host"] for event in events] == ["192.0.2.7"], execution.ended.output
    assert Path("/etc/nsswitch.conf").read_bytes() == before
    assert "nsswitch" not in Path("/proc/mounts").read_text()


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("hosts:          files mdns4_minimal [NOTFOUND=return] dns", "hosts: files"),
        ("hosts: files myhostname resolve [!UNAVAIL=return] dns  # of this site", "hosts: files myhostname"),
        (" hosts: dns", "hosts: files"),
        ("hosts:", "hosts: files"),
    ],
)
def test_local_names(line, left):
    """Of the services that know hosts only those stay that need no network; all other lines stay as they are."""
    assert isolation.local_names(f"passwd: files\n{line}\nnetworks: dns\n") == f"passwd: files\n{left}\nnetworks: dns\n"
    assert isolation.local_names("passwd: files") == "passwd: files\nhosts: files\n"


def test_wait_for_a_port_can_be_stopped(engine):
    """A program that waits for a port is ended at once when it is to stop, and holds nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:  # one that no other test waits for meanwhile
        port = server.getsockname()[1]
    first = engine.start(program("plain_programs:hang_asleep", network="host", ports=[port]))
    assert next(told(first)) == {"type": "ready"}
    second = engine.start(program("plain_programs:hang_asleep", network="host", ports=[port]))
    assert next(told(second)) == {"type": "alive"}
    second.stop()
    assert second.ended.exit_code is None
    first.stop()
    _, ended = run(engine, "use_port", network="host", ports=[port], port=port)
    assert (ended.exit_code, ended.isolation) == (0, isolation.LEASE)


def test_user_namespace(tmp_path):
    """Without rights of its own a process gets its network by a user namespace, where that is allowed, and stays the same user."""
    kind = isolation.CLONE_NEWUSER | isolation.CLONE_NEWNET
    if not isolation._works(kind):
        pytest.skip("this machine allows no user namespace")
    pid = os.fork()
    if pid == 0:
        user = os.getuid()
        isolation._unshare(kind)
        isolation._look_up_names_in_files(tmp_path / "names")
        kept = os.getuid() == user and os.access(__file__, os.R_OK)
        os._exit(0 if kept and b"dns" not in Path("/etc/nsswitch.conf").read_bytes() else 1)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ('os.environ["MASTER_PORT"] = "6789"', {6789}),
        ("env = {'MASTER_PORT': '12355'}", {12355}),
        ("PORT = 29501", {29501}),
        ('os.environ.setdefault("MASTER_PORT", "29555")', {29555}),
        ("torchrun --master-port 29444 --nproc-per-node=2 a.py", {29444, 29500}),
        ("torchrun --master_port=29444 a.py", {29444, 29500}),
        ('init_method="tcp://localhost:23456"', {23456}),
        ('dist.TCPStore("127.0.0.1", 1234, 2, True)', {1234}),
        ("class T(DynamoDistributedMultiProcTestCase):", {6789}),
        ("port = find_free_port()", set()),
        ("support = 12", set()),
        ("import numpy", set()),
    ],
)
def test_ports_of(text, ports):
    """The ports that a text names, in the ways in which people write them."""
    assert ports_of(text) == ports


def test_who_gets_a_network():
    """Programs of ranks and of ports get one, unless they reach out or are told to stay."""
    assert wants_namespace("import torch.distributed as dist")
    assert wants_namespace("PORT = 6789")
    assert not wants_namespace("import torch.distributed\nMNIST(root, download=True)")
    assert not wants_namespace("print('hello')")
    assert Isolation("MASTER_PORT=6789", {"network": "host"}, {}).ports == {6789}
    assert Isolation("", {"ports": [1, 2]}, {}).ports == {1, 2}


# GPUs


def test_environment_of_a_grant():
    """A grant sets which GPUs are visible, over all else; none leaves the variable alone."""
    assert environment_of(program("x", gpus=("3", "5"), environment={"CUDA_VISIBLE_DEVICES": "9"}))["CUDA_VISIBLE_DEVICES"] == "3,5"
    assert environment_of(program("x", gpus=()))["CUDA_VISIBLE_DEVICES"] == ""
    assert environment_of(program("x")).get("CUDA_VISIBLE_DEVICES") == os.environ.get("CUDA_VISIBLE_DEVICES")


@pytest.mark.parametrize(
    ("environment", "count"), [(lambda: environment_of(program("x")), 2000), (travel.environment, 200)], ids=["here", "that-travels"]
)
def test_environment_while_pytest_changes_it(monkeypatch, environment, count):
    """A variable that comes and goes in another thread, as the name of the test that runs, costs no program its start."""
    monkeypatch.setenv("A_VARIABLE", "x")
    ended = threading.Event()

    def change() -> None:
        while not ended.is_set():
            monkeypatch.setenv("A_TEST_THAT_RUNS", "x")
            monkeypatch.delenv("A_TEST_THAT_RUNS")

    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    changing = threading.Thread(target=change)
    changing.start()
    try:
        assert all("A_VARIABLE" in environment() for _ in range(count))
    finally:
        ended.set()
        changing.join()
        sys.setswitchinterval(switching)


def test_own_leases(engine, tmp_path, monkeypatch):
    """What a program starts is not held up by the lease that its caller holds for it."""
    monkeypatch.setenv("RANKBOOK_LEASES", str(tmp_path / "leases"))
    with Leases().take(["0"], 1):
        (event,), ended = run(engine, "take_lease", gpus=("0",))
    assert event["taken"], ended.output
    (event,), _ = run(engine, "give_environment", environment={"RANKBOOK_LEASES": "own"})
    assert event["RANKBOOK_LEASES"] == "own"


def test_recorders_of_a_grant(engine):
    """With GPUs come the variables that have a hung collective named; the program's own values win."""
    (event,), ended = run(engine, "give_environment", gpus=("0",), environment={"NCCL_DEBUG": "INFO"}, timeout=100)
    assert (event["CUDA_VISIBLE_DEVICES"], event["NCCL_DEBUG"], event["TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"]) == ("0", "INFO", "80")
    assert event["TORCH_FR_DUMP_TEMP_FILE"].endswith("/traces/trace_rank_")
    assert (ended.engine, ended.note) == (engine.name, "")
    (event,), _ = run(engine, "give_environment", gpus=())
    assert event["CUDA_VISIBLE_DEVICES"] == ""
    assert "TORCH_FR_DUMP_TEMP_FILE" not in event


@pytest.mark.parametrize(
    ("version", "names"),
    [
        ("2.6.0+cu124", {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}),
        ("2.11.0+cu130", {"TORCH_FR_BUFFER_SIZE"}),
        ("2.13.0", {"TORCH_FR_BUFFER_SIZE"}),
        ("a build", {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}),
    ],
)
def test_names_of_the_recorder(version, names, monkeypatch, tmp_path):
    """Torch 2.11 warns on each rank of the old name of the recorder's size: it is given the new one alone."""
    monkeypatch.setattr("importlib.metadata.version", lambda name: version)
    job._torch.cache_clear()
    try:
        made = job.prepare(program("x", gpus=("0",)))
    finally:
        job._torch.cache_clear()
    shutil.rmtree(made.folder)
    assert {name for name in made.environment if name.endswith("_BUFFER_SIZE")} == names


def test_fresh_on_request(engine):
    """A program that must be run by new interpreters is, with the reason."""
    _, ended = run(engine, "leave_shell", fresh="it asks for it")
    assert (ended.engine, ended.exit_code) == ("fresh", 0)
    assert ended.note == ("run by new interpreters: it asks for it" if engine.name == "local" else "")


class Evil:
    def __reduce__(self):
        return (os.abort, ())


def test_flight_records(tmp_path):
    """A record tells what a rank had under way; one that is cut off, or would run code, tells nothing."""
    entries = [
        {"profiling_name": "nccl:broadcast", "collective_seq_id": 1, "state": "completed"},
        {"profiling_name": "nccl:all_reduce", "collective_seq_id": 2, "state": "started"},
    ]
    for rank, record in enumerate([{"entries": entries}, {"entries": entries[:1]}, {"entries": []}, Evil(), 7]):
        (tmp_path / f"trace_rank_{rank}").write_bytes(pickle.dumps(record))
    (tmp_path / "trace_rank_10").write_bytes(pickle.dumps({"entries": entries})[:-9])
    assert list(flight.sentences(tmp_path)) == [
        "rank 0 has all_reduce, its collective 2, started",
        "rank 1 has completed broadcast, its collective 1, and begun no other",
        "rank 2 has recorded no collective",
    ]


def test_flight_records_on_demand(tmp_path):
    """A rank that listens on its pipe is asked for its record, and waited for."""
    os.mkfifo(tmp_path / "dump_rank_0.pipe")
    reader = os.open(tmp_path / "dump_rank_0.pipe", os.O_RDONLY | os.O_NONBLOCK)

    def asked():
        with contextlib.suppress(BlockingIOError):  # it is open, and nothing is written yet
            return os.read(reader, 10)

    def write():
        while not asked():
            time.sleep(0.01)
        (tmp_path / "trace_rank_0").write_bytes(pickle.dumps({"entries": []}))

    thread = threading.Thread(target=write)
    thread.start()
    flight.ask(tmp_path)
    thread.join()
    os.close(reader)
    assert list(flight.sentences(tmp_path)) == ["rank 0 has recorded no collective"]


# Floods and leftovers


def test_flood_of_a_rank(engine):
    """Of 200 MB that a rank writes the head and the tail are kept, and the disk holds little more."""
    (event,), ended = run(engine, "flood")
    assert ended.exit_code == 0, ended.output
    assert (event["head"], event["tail"]) == ("the beginning\n", "the end\n")
    assert event["size"] == 200 * (1 << 20) + 22
    assert event["disk"] < 3 * leftovers.OUTPUT_QUOTA


def test_shared_memory(engine):
    """Shared memory that a killed program leaves is removed, what others have made is not."""
    stranger = Path("/dev/shm", f"torch_{os.getpid()}_rankbook_0")
    execution = engine.start(program("share"))
    events = told(execution)
    names = next(events)["names"]
    stranger.write_bytes(b"x")
    try:
        assert list(events) == []
        assert execution.ended.exit_code == -signal.SIGKILL
        assert stranger.exists()
        assert [name for name in names if Path("/dev/shm", name).exists()] == []
    finally:
        stranger.unlink()


@pytest.fixture
def small_disk(request, tmp_path, monkeypatch):
    """A temporary folder with room for 2 MB, or as many as a test says."""
    place = tmp_path / "small"
    place.mkdir()
    size, nodes = getattr(request, "param", (2, 60))
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}m,nr_inodes={nodes}", "none", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no small disk can be mounted here")
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_full_disk(engine, small_disk):
    """A full disk costs the program that fills it; the next one has room again, and is refused when there is none."""
    _, ended = run(engine, "fill_disk")
    assert ended.exit_code == 1
    assert "No space left on device" in ended.output
    assert [entry.name for entry in small_disk.iterdir()] == []
    assert run(engine, "leave_shell")[1].exit_code == 0
    with pytest.raises(OSError, match="No space left"), (small_disk / "full").open("wb", buffering=0) as stream:
        while stream.write(bytes(4096)):
            pass
    with pytest.raises(OSError, match="No space left"):
        for number in range(100):
            (small_disk / f"entry{number}").touch()
    with pytest.raises(EngineError, match=r"page.md::x has no folder to run with: .*TMPDIR must name a folder with room"):
        prepare(program("x"))


def test_unreadable_folder_goes(tmp_path):
    """A folder that the program has made unreadable goes too."""
    (tmp_path / "job" / "locked" / "deep").mkdir(parents=True)
    (tmp_path / "job" / "locked").chmod(0)
    leftovers.remove_folder(str(tmp_path / "job"))
    assert not (tmp_path / "job").exists()


KILLED = """
import importlib, sys
from rankbook.listing import Program
if __name__ == "__main__":
    engine = importlib.import_module(f"rankbook.engines.{sys.argv[1]}").create(scratch=[sys.argv[2]])
    execution = engine.start(Program("program", "plain_programs:hang_with_family", sys.argv[3], "x.py"))
    print(next(event["pids"] for event in execution.events() if "pids" in event)[1], flush=True)
    if sys.argv[4] == "idle":
        execution.stop()
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(("name", "when"), [("local", "running"), ("local", "idle"), ("fresh", "running")])
def test_scratch_of_a_killed_caller(name, when, tmp_path):
    """When the caller is killed its own folders go, too; with a zygote also while nothing runs."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (tmp_path / "torch.py").write_text("raise ImportError('not here')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(PROGRAMS)]), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", KILLED, name, str(scratch), str(PROGRAMS), when]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as caller:
        child = int(caller.stdout.readline())
        assert caller.stdout.readline() == "ready\n"
        caller.kill()

    def left() -> list[str]:
        folders = [entry.name for entry in tmp_path.iterdir() if entry.name.startswith("rankbook-") and "ports" not in entry.name]
        return folders + [str(path) for path in (scratch, Path(f"/proc/{child}")) if path.exists()]

    end = time.monotonic() + 15
    while left() and time.monotonic() < end:
        time.sleep(0.05)
    assert left() == []


WARMING = """
import sys, time
from rankbook.engines import local
if __name__ == "__main__":
    local.create(scratch=[sys.argv[1]]).warm()
    time.sleep(100)
"""
IMPORTING = """
import os, time
from pathlib import Path
Path(os.environ["TMPDIR"], "cache").touch()
time.sleep(1)
raise ImportError("not here")
"""


def test_caller_is_killed_while_torch_is_imported(tmp_path):
    """When the caller is killed before the process that imports torch has said its first word its folders go, too."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (tmp_path / "torch.py").write_text(IMPORTING)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path)}
    end = time.monotonic() + 30
    with subprocess.Popen([sys.executable, "-c", WARMING, str(scratch)], env=environment) as caller:
        while not list(scratch.glob("*/cache")) and time.monotonic() < end:
            time.sleep(0.02)
        caller.kill()
    assert scratch.exists()
    while scratch.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not scratch.exists()


@pytest.mark.parametrize("name", ENGINES)
def test_system_is_short_of_something(name, monkeypatch):
    """A process that the system has no room for at the moment is started when it has; what can never be started is an error."""
    monkeypatch.setenv("PYTHONPATH", str(PROGRAMS))
    start, refusals = subprocess.Popen, [errno.EAGAIN, errno.EFAULT]

    def refuse(*arguments, **options):
        if refusals:
            raise OSError(refusals.pop(), "not now")
        return start(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", refuse)
    engine = engines.create(name)
    refusals += [errno.EACCES]
    with pytest.raises(EngineError, match=r"no interpreter can be started: .*not now"):
        engine.start(program("plain_programs:give_status", status=3))
    assert len(refusals) == 2
    assert end_of(engine.start(program("plain_programs:give_status", status=3))).exit_code == 3
    assert refusals == []
    engine.close()


# Threads


def test_many_threads(engine):
    """Programs are started and followed by several threads at once, and stopped by another."""
    results = []

    def follow(number):
        results.append((number, run(engine, "plain_programs:say", count=number)))

    threads = [threading.Thread(target=follow, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted((number, len(events), ended.exit_code) for number, (events, ended) in results) == [(n, n, 0) for n in range(8)]


def test_stop_while_another_thread_waits(engine):
    """A thread that waits for events returns when another one stops the program."""
    execution = engine.start(program("plain_programs:hang_asleep"))
    stream = told(execution)
    assert next(stream) == {"type": "ready"}
    rest = []
    thread = threading.Thread(target=lambda: rest.append(list(stream)))
    thread.start()
    time.sleep(0.2)
    execution.stop()
    thread.join(10)
    assert not thread.is_alive()
    assert rest == [[]]
    assert execution.ended.exit_code == -signal.SIGKILL


# From pages


RUNS = {
    "local": ("--engine=local",),
    **dict.fromkeys(in_whole("fresh"), ("--engine=fresh",)),
    **dict.fromkeys(in_whole("xdist"), ("--engine=local", "-n", "2")),
    **dict.fromkeys(in_whole("ray"), ("--engine=ray",)),
    "slurm": ("--engine=slurm",),
}
PAGES = tuple(sorted(path.name for path in CASES.glob("*.md")))
CHOSEN = {
    "slurm": (
        "dead_ranks.md::harness::TestRanks::test_killed_while_the_other_waits",
        *(f"dead_ranks.md::{name}" for name in ("leaves-before-its-end", "leaves-by-an-exit", "started-on-ranks")),
        *(f"hangs.md::{name}" for name in ("in-a-collective", "holding-the-interpreter", "stopped", "still-fine")),
        *(f"hangs.md::in-a-{name}" for name in ("shell", "shell-at-work", "console")),
        *(f"left.md::a-rank-{name}" for name in ("leaves-a-process", "writes-200-mb", "of-a-script-speaks")),
        *(f"left.md::{name}" for name in ("still-fine", "a-rank-ends-well-when-the-script-has-ended")),
        "one_port.md",
    )
}
"""Pages, listings and tests by run, where those are not all: on a node new interpreters import torch, and the same supervisor as with
`local` sees to all that happens to them."""


def chosen(run: str) -> tuple[str, ...]:
    """Give the pages, listings and tests of a run."""
    return PAGES if WHOLE else CHOSEN.get(run, PAGES)


def runs(run: str, node: str) -> bool:
    """Whether a page, or a listing or test of it, is part of a run."""
    return any(node == each or node.startswith(f"{each}::") or each.startswith(f"{node}::") for each in chosen(run))


PATIENCE = {"local": 10, "xdist": 8, "fresh": 30}
"""Seconds that six listings at once have until their ranks hang: new interpreters, and those of a cluster, come there late."""


@contextlib.contextmanager
def cluster_of(run: str, folder: Path) -> Iterator[None]:
    """Have what a run needs of a cluster, or skip it: two nodes of an allocation, on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        if run == "ray":
            need_ray()
        if run == "slurm":
            pretend_allocation(patch, folder, 2)
        yield


@pytest.fixture(scope="module", params=RUNS)
def proved(request, tmp_path_factory):
    """All pages of faults, six listings at a time; gives what pytest reported, and its folder."""
    pytest.importorskip("torch")
    before = set(os.listdir("/dev/shm"))  # noqa: PTH208
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "docs").mkdir()
    (folder / "tmp").mkdir()
    for path in CASES.glob("*.md"):
        page, _ = read_case(path)
        patience = PATIENCE.get(request.param, 20)
        late = 0.6 * patience if request.param in ("local", "fresh") else 0  # a cluster is told of a death by the same harness
        page = page.replace("timeout=5}", f"timeout={patience}}}").replace("late = 3\n", f"late = {late}\n")
        (folder / "docs" / path.name).write_text(page)
    with cluster_of(request.param, folder / "bin"):
        pages = [f"docs/{each}" for each in chosen(request.param)]
        result = prove(folder, *RUNS[request.param], "--listing-jobs=6", *pages, env={"TMPDIR": str(folder / "tmp")})
    return result, folder, set(os.listdir("/dev/shm")) - before  # noqa: PTH208


def judge(proved, name: str) -> None:
    """Compare how all on a page ended with what is expected of the run."""
    result, folder, _ = proved
    prefix = f"docs/{name}::"
    lines = [line for line in read_case(CASES / name)[1] if runs(run_in(folder), f"{name}::{line.name}")]
    ends = {node.removeprefix(prefix): report for node, report in result.ends().items() if node.startswith(prefix)}
    assert lines
    assert {line.name: line.outcome for line in lines} == {node: report["outcome"] for node, report in ends.items()}, result.output[-3000:]
    for line in lines:
        assert re.search(line.reason, ends[line.name]["text"].partition("\n\n")[0]), everything(ends[line.name])


@pytest.mark.parametrize("name", [name for name in PAGES if all(runs(run, name) for run in RUNS)])
def test_pages(proved, name):
    """From a page each fault costs its own test or listing, and says what happened, to which rank; all others pass."""
    judge(proved, name)


def test_stacks_on_pages(proved):
    """With the death of a rank, and with a deadline, come the stacks of all that live."""
    ends = proved[0].ends()
    for name, rank in [
        ("dead_ranks.md::harness::TestRanks::test_killed_while_the_other_waits", "process 0"),
        ("dead_ranks.md::started-on-ranks", "rank 0"),
        ("hangs.md::in-a-collective", "rank 0"),
        ("hangs.md::in-a-collective", "rank 1"),
        ("hangs.md::holding-the-interpreter", "rank 1"),
    ]:
        text = everything(ends[f"docs/{name}"])
        assert f"--- stacks of rank '{rank}'" in text, name
        assert "leaked semaphore" not in text, name  # said of what was killed


def test_how_far_a_console_came(proved):
    """Of a console listing that hangs the report shows what was typed and printed."""
    assert "$ echo begun\nbegun\n$ sleep 1000\n" in everything(proved[0].ends()["docs/hangs.md::in-a-console"])


@pytest.mark.parametrize("proved", [run for run in RUNS if runs(run, "sleeping_rank.md")], indirect=True)
def test_a_rank_that_waits_for_nobody_is_ended_with_its_stacks(proved):
    """Where one has died and the other does something else, that one is given half the listing's timeout, and then tells what it does."""
    judge(proved, "sleeping_rank.md")
    text = everything(proved[0].ends()["docs/sleeping_rank.md::sleeps-on"])
    assert re.search(
        r'rank 0 still ran, and was ended:\n(?:.*\n)?.*most recent call first\):\n  File "docs/sleeping_rank.md", line 24', text
    ), text


LATE = """# Late

```python {ranks=16 timeout=200}
import os
import signal

import torch.distributed as dist

if os.environ["RANK"] == "0":
    os.kill(os.getpid(), signal.SIGSEGV)
dist.init_process_group("gloo")
```
"""


WRONG_CALLS = ("dist.all_reduce('no tensor')", "dist.isend('no tensor', 0)", "dist.new_group([5])")
WRONG = """import torch
import torch.distributed as dist

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
{}
"""
PLAIN = """
import sys
import traceback

import torch.distributed as dist

for text in sys.argv[1:]:
    try:
        exec(compile(text, "plain.py", "exec"), {})
    except Exception:
        traceback.print_exc()
    dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def ends(tmp_path_factory) -> dict[str, dict]:
    """How listings end of which ranks are late, or make calls that are wrong."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("ends")
    (folder / "docs").mkdir()
    (folder / "docs/late.md").write_text(LATE)
    (folder / "docs/wrong.md").write_text("# Wrong\n\n" + "\n".join(f"```python\n{WRONG.format(call)}```\n" for call in WRONG_CALLS))
    return prove(folder, "--engine=local", "docs").ends()


def test_a_rank_that_begins_when_another_has_died(ends):
    """What ranks share is there until the last has ended: one that is slow to begin waits for the dead one as the others do."""
    report = ends["docs/late.md::late"]
    assert re.search(r"rank 0 died by SIGSEGV .*rank 15 waits in init_process_group", everything(report), re.DOTALL), everything(report)
    assert "FileNotFoundError" not in everything(report)


def test_traceback_is_that_of_plain_python(ends):
    """That calls are noted is not to be seen in what a listing tells of a call that fails."""
    lines = WRONG.count("\n") + 3
    texts = ["\n" * (3 + number * lines) + WRONG.format(call) for number, call in enumerate(WRONG_CALLS)]
    done = subprocess.run([sys.executable, "-c", PLAIN, *texts], capture_output=True, text=True, check=True).stderr
    plain = done.split("Traceback (most recent call last)")[1:]
    told = [everything(report) for name, report in ends.items() if "wrong.md" in name]
    called = re.compile(r'(?:wrong\.md|plain\.py|\w+/distributed/\w+\.py)", line \d+, in .*')
    for said, shown in zip(plain, told, strict=True):
        expected = [line.removeprefix("plain.py") for line in called.findall(said)]
        assert [line.removeprefix("wrong.md") for line in called.findall(shown.partition("Traceback")[2])][: len(expected)] == expected
        assert len(expected) > 1
        assert shown.count(expected[-1]) == 1
    assert len(plain) == len(WRONG_CALLS)


def test_flood_on_a_page(proved):
    """Of 200 MB that a rank writes the reader sees the beginning and the end."""
    text = everything(proved[0].ends()["docs/left.md::a-rank-writes-200-mb"])
    assert re.search(r"the beginning\ny+\n\[\.\.\. [\d,]+ bytes left out \.\.\.\]\ny+the end\n", text), text[:300]
    assert len(text) < 300_000


def test_ranks_of_a_script_are_heard(proved):
    """What the ranks wrote that a script has started itself is shown as theirs."""
    assert ["Captured output of rank 1", "the rank speaks\n"] in proved[0].ends()["docs/left.md::a-rank-of-a-script-speaks"]["sections"]


def everything(report) -> str:
    return report["text"] + "".join(content for _, content in report["sections"])


def test_engine_of_pages(proved):
    """It is the engine that was asked for that has run them."""
    _, folder, _ = proved
    found = Ledger(folder / ".rankbook" / "ledger.sqlite").last_by_page("docs/dead_ranks.md")
    asked = run_in(folder)
    assert {run.engine for run in found} == {"local" if asked == "xdist" else asked}


def run_in(folder: Path) -> str:
    """Name the run that a folder was made for."""
    return folder.name.rstrip("0123456789")


def test_ranks_and_time_are_those_of_the_test(proved):
    """Of a test that took its process along the ledger has its own ranks, not those of the tests before it, and how long it took."""
    _, folder, _ = proved
    found = Ledger(folder / ".rankbook" / "ledger.sqlite").last_by_page("docs/dead_ranks.md")
    (run,) = (run for run in found if run.node_id.endswith("::test_killed_while_the_other_waits"))
    assert (run.outcome, run.ranks, len(run.receipt.ranks)) == (Outcome.CRASHED, 2, 2)
    assert run.duration > 1  # two seconds are waited for the other rank


def test_last_calls(proved):
    """Of each rank of a test that failed the ledger knows what it has called last, where and when; of one that passed it does not."""
    _, folder, _ = proved
    found = Ledger(folder / ".rankbook" / "ledger.sqlite").last_by_page("docs/dead_ranks.md")
    ran = {run.node_id.rpartition("::")[2]: run for run in found}
    called = {
        "test_killed_while_the_other_waits": ["init_process_group (docs/dead_ranks.md:23)", ""],
        "test_dies_after_the_last_collective": ["barrier (docs/dead_ranks.md:41)"] * 2,
        "test_one_raises_between_two_collectives": ["all_gather_object (docs/dead_ranks.md:51)", "barrier (docs/dead_ranks.md:47)"],
        "test_still_fine": ["", ""],
        "started-on-ranks": ["init_process_group (docs/dead_ranks.md:78)", ""],
        "started-by-torch": ["", ""],
        "waits-for-its-message": ["Work.wait (docs/dead_ranks.md:116)", "barrier (docs/dead_ranks.md:111)"],
    }
    called = {name: calls for name, calls in called.items() if name in ran}
    assert {name: [rank.called for rank in ran[name].receipt.ranks] for name in called} == called
    ranks = [rank for name in called for rank in ran[name].receipt.ranks if rank.called]
    assert all(rank.started <= rank.called_at <= rank.started + rank.duration for rank in ranks)
    (killed, waiting) = sorted(ran["test_killed_while_the_other_waits"].receipt.ranks, key=lambda rank: rank.called)
    assert killed.entered is not None
    assert waiting.started < waiting.entered <= waiting.called_at
    if chosen(run_in(folder)) == PAGES:
        assert len(called) == 7
        assert [rank.name for rank in ran["started-by-torch"].receipt.ranks] == ["rank 0", "rank 1"]
        last = [rank.started + rank.duration for rank in ran["test_killed_between_two_collectives"].receipt.ranks]
        assert last[1] < last[0] - 0.5  # half of the second that the other still lived


def test_nothing_is_left(proved):
    """After all faults no file, shared memory, process or port is left."""
    _, folder, shared = proved
    assert [entry.name for entry in (folder / "tmp").iterdir() if not entry.name.startswith("pytest-of")] == []
    assert [name for name in shared if name.startswith("torch_")] == []
    assert processes_of(folder) == []
    end = time.monotonic() + 30
    while not is_free(6789) and time.monotonic() < end:  # another worker may be running these pages
        time.sleep(0.1)
    assert is_free(6789)


def is_free(port: int) -> bool:
    """Say whether a server can take a port."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def processes_of(folder: Path) -> list[str]:
    """Give the command lines of processes that have a pytest run in this folder among their ancestors."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            alive = (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
            if alive and f"={folder}".encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_text().replace("\0", " "))
    return found


FULL = """# A full disk

```python {name="before"}
assert 1 + 1 == 2
```

```python {name="fills"}
import os
from pathlib import Path

with Path(os.environ["TMPDIR"], "big").open("wb") as stream:
    while True:
        stream.write(bytes(1 << 20))
```

```python {name="after"}
import tempfile

with tempfile.TemporaryFile() as stream:
    stream.write(bytes(1 << 20))
```
"""


@pytest.mark.parametrize("small_disk", [(24, 3000)], indirect=True)
@pytest.mark.parametrize("name", ["local", *in_whole("fresh")])
def test_full_disk_on_a_page(name, small_disk, tmp_path):
    """A full disk costs the listing that fills it."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(FULL)
    result = prove(tmp_path, f"--engine={name}", "--listing-jobs=1", "docs", env={"TMPDIR": str(small_disk)})
    assert list(result.outcomes().values()) == ["passed", "failed", "passed"], result.output
    assert "No space left on device" in result.ends()["docs/page.md::fills"]["text"]


CANCELLED = """# Ctrl-C

```python {name="done"}
assert 1 + 1 == 2
```

```python {name="waits"}
import multiprocessing
import subprocess
import time
from pathlib import Path


def live(number):
    subprocess.Popen(["sleep", "4002"], start_new_session=True, stdout=subprocess.DEVNULL)
    Path(PLACE, str(number)).touch()
    time.sleep(1000)


if __name__ == "__main__":
    ranks = [multiprocessing.get_context("spawn").Process(target=live, args=(number,)) for number in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
```
"""


def recorded(root):
    """Node ids of what is on record of the page."""
    file = root / ".rankbook" / "ledger.sqlite"
    return [run.node_id for run in Ledger(file).last_by_page("docs/page.md")] if file.exists() else []


@pytest.mark.parametrize("run", RUNS)
def test_interrupted(run, tmp_path):
    """Ctrl-C at a terminal, where all of pytest's processes get it: all is gone in 5 seconds, and what has ended is on record."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "tmp").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "docs" / "page.md").write_text(CANCELLED.replace("PLACE", repr(str(tmp_path))))
    command = [sys.executable, "-m", "pytest", "--doctest-glob=*.md", "-p", "no:cacheprovider", *RUNS[run], "docs"]
    with cluster_of(run, tmp_path / "bin"):
        environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    # A shell in the background starts its commands with SIGINT ignored; a terminal does not.
    heeding = functools.partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        preexec_fn=heeding,  # noqa: PLW1509  this process has no other thread
    ) as pytest_run:  # fmt: skip
        end = time.monotonic() + 120
        while not (all((tmp_path / str(number)).exists() for number in range(2)) and recorded(tmp_path)) and time.monotonic() < end:
            time.sleep(0.05)
        began = time.monotonic()
        os.killpg(pytest_run.pid, signal.SIGINT)
        output, _ = pytest_run.communicate(timeout=60)
        assert time.monotonic() - began < 20  # 5 on a quiet machine
    assert pytest_run.returncode == 2, output
    assert processes_of(tmp_path / "tmp") == []
    assert [entry.name for entry in (tmp_path / "tmp").iterdir() if not entry.name.startswith("pytest-of")] == []
    assert recorded(tmp_path) == ["docs/page.md::done"]
