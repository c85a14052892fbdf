"""One contract for all engines: what the story of a proof relies on, wherever its programs run."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
import uuid
from pathlib import Path

import pytest

from clusters import MARK, PROGRAMS, comes_true, marked_processes, need_ray, pretend_allocation
from executions import told
from rankbook import engines
from rankbook.errors import EngineError
from rankbook.listing import Ended, Event, Program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
OWN_PROCESSES = ("ray::", "/ray/", "rankbook.engines zygote", "rankbook.engines.agent")
"""Processes that belong to an engine and not to a program of it, by a part of their command lines."""

RANKS = """
import multiprocessing
import os
import signal
import sys

import sibling


def live(rank, port, doomed):
    if doomed:
        print(f"rank {rank} speaks", flush=True)
        os.kill(os.getpid(), signal.SIGKILL) if rank else None
        return
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{port}", rank=rank, world_size=2)
    total = torch.tensor([sibling.NUMBER + rank])
    dist.all_reduce(total)
    dist.destroy_process_group()
    sys.exit(total.item())


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    place = os.path.join(os.environ["TMPDIR"], "rendezvous")
    ranks = [context.Process(target=live, args=(rank, place, "DOOMED" in os.environ), name=f"process {rank}") for rank in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    emit({"type": "codes", "codes": [rank.exitcode for rank in ranks]})
"""


@pytest.fixture(scope="module", autouse=True)
def surroundings(tmp_path_factory):
    """Make the programs importable and mark every process that descends from here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(PROGRAMS), *filter(None, [os.environ.get("PYTHONPATH")])]))
        patch.setenv(MARK, uuid.uuid4().hex)
        pretend_allocation(patch, tmp_path_factory.mktemp("slurm"), 2)
        yield


def made(name):
    """Make an engine, or skip where it cannot be had."""
    if name == "ray":
        need_ray()
    return engines.create(name)


@pytest.fixture(scope="module", params=[*engines.NAMES, *engines.CLUSTERS])
def shared(request, surroundings):
    engine = made(request.param)
    yield engine
    engine.close()
    assert comes_true(lambda: not marked_processes(os.environ[MARK]), 10), marked_processes(os.environ[MARK])


@pytest.fixture
def engine(shared):
    """An engine that must have left no process of a program when the test ends."""
    yield shared
    assert comes_true(lambda: not processes_of_programs()), processes_of_programs()


def processes_of_programs() -> dict[int, str]:
    found = marked_processes(os.environ[MARK])
    return {pid: line for pid, line in found.items() if not any(part in line for part in OWN_PROCESSES) or is_fork(pid)}


def is_fork(pid: int) -> bool:
    """Whether it is a fork of a zygote: it has the zygote's command line, and leads or is in a session that is not the zygote's."""
    try:
        line, leader = Path(f"/proc/{pid}/cmdline").read_text(), os.getsid(pid)
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        return "zygote" in line and (leader != pid or "zygote" in Path(f"/proc/{parent}/cmdline").read_text())
    except OSError:
        return False


@pytest.fixture
def tree(tmp_path):
    """A mirror tree with the file of the listing and two files beside it."""
    (tmp_path / "tree" / "some" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "some" / "listing.py").write_text(RANKS)
    (tmp_path / "tree" / "some" / "sibling.py").write_text("NUMBER = 20\n")
    (tmp_path / "tree" / "some" / "deep" / "data.bin").write_bytes(bytes(range(256)))
    return tmp_path / "tree"


def program(entry: str, tree: Path, timeout: float = 300, environment=None, gpus=None, torch=False, **arguments) -> Program:
    entry, options = f"contract_programs:{entry}", {"gpus": gpus, "torch": torch, "harnesses": False}
    return Program("page.md::listing", entry, str(tree), "some/listing.py", arguments, environment or {}, timeout, **options)


def run(engine, *args, **kwargs) -> tuple[list[Event], Ended]:
    execution = engine.start(program(*args, **kwargs))
    events = list(told(execution))
    return events, execution.ended


def test_pass(engine, tree):
    """A program that returns 0 has passed: its events are there, and the engine names itself."""
    events, ended = run(engine, "give_status", tree, status=0)
    assert events == [{"type": "report", "status": 0}]
    assert (ended.exit_code, ended.hung, ended.output, ended.left, ended.death) == (0, False, "", (), None)
    assert (ended.engine, ended.note) == (engine.name, "")
    assert 0 < ended.duration < 30


def test_exit_status(engine, tree):
    """Any other status is on record."""
    _, ended = run(engine, "give_status", tree, status=4)
    assert ended.exit_code == 4


def test_exception(engine, tree):
    """An entry that raises ends with 1 and its traceback, with paths as the caller knows them."""
    _, ended = run(engine, "fail", tree)
    assert ended.exit_code == 1
    assert f"ValueError: the entry is broken in {tree}\n" in ended.output


def test_events_in_order(engine, tree):
    """Events come in order and whole, big ones and many."""
    events, _ = run(engine, "say", tree, count=3, size=1_500_000)
    assert [(event["number"], len(event["text"])) for event in events] == [(0, 1_500_000), (1, 1_500_000), (2, 1_500_000)]
    events, _ = run(engine, "say", tree, count=3_000)
    assert [event["number"] for event in events] == list(range(3_000))


def test_events_as_they_come(engine, tree, tmp_path):
    """An event is there while its program still runs, and several programs run at the same time."""
    executions = [engine.start(program("say_and_wait", tree, until=str(tmp_path / f"go {number}"))) for number in range(3)]
    streams = [told(execution) for execution in executions]
    pids = {next(stream)["pid"] for stream in streams}
    assert len(pids) == 3
    with pytest.raises(EngineError, match="has not ended"):
        executions[0].ended  # noqa: B018
    for number in (2, 0, 1):
        (tmp_path / f"go {number}").touch()
        assert [event["type"] for event in streams[number]] == ["seen"]
        assert executions[number].ended.exit_code == 0


def test_threads(engine, tree):
    """Each thread may start and follow a program of its own."""
    found = {}

    def follow(number):
        found[number] = run(engine, "give_status", tree, status=number)

    threads = [threading.Thread(target=follow, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number: (events[0]["status"], ended.exit_code) for number, (events, ended) in found.items()} == {n: (n, n) for n in range(4)}


def test_crash(engine, tree):
    """A signal gives its negative number, and the output shows where it struck."""
    _, ended = run(engine, "crash", tree)
    assert ended.exit_code == -signal.SIGSEGV
    assert "in crash" in ended.output


def test_hang(engine, tree):
    """A program that is silent for its timeout ends, with its stacks."""
    events, ended = run(engine, "hang", tree, timeout=1.0)
    assert [event["type"] for event in events] == ["ready"]
    assert (ended.hung, ended.exit_code) == (True, -signal.SIGKILL)
    assert "--- stacks of the main process" in ended.output
    assert "in hang" in ended.output


def test_stop(engine, tree):
    """A program that is stopped ends at once, has no further events, and is not called hung."""
    execution = engine.start(program("hang", tree))
    pid = next(told(execution))["pid"]
    execution.stop()
    assert (execution.ended.exit_code, execution.ended.hung) == (-signal.SIGKILL, False)
    assert list(told(execution)) == []
    assert comes_true(lambda: not Path(f"/proc/{pid}").exists())


def test_output_is_capped(engine, tree):
    """Of much output the head and the tail are kept."""
    _, ended = run(engine, "flood", tree, megabytes=30)
    assert ended.exit_code == 0
    assert ended.output.startswith("the beginning\ny")
    assert ended.output.endswith("y\nthe end\n")
    assert "bytes left out" in ended.output
    assert len(ended.output) < 140_000


def test_surroundings(engine, tree):
    """A program finds the caller's environment and its own on top, and its tree, wherever that is; paths are told as the caller's."""
    execution = engine.start(program("look_around", tree, environment={"OWN": "value", "PLACE": f"{tree}/some"}, path=f"{tree}/some"))
    (around,) = told(execution)
    assert (around["cwd"], around["file"]) == (str(tree), str(tree / "some" / "listing.py"))
    assert around["files"] == {
        "some/listing.py": RANKS.encode().hex(),
        "some/sibling.py": b"NUMBER = 20\n".hex(),
        "some/deep/data.bin": bytes(range(256)).hex(),
    }
    assert around["arguments"] == {"path": f"{tree}/some"}
    environment = around["environment"]
    assert (environment["OWN"], environment["PLACE"], environment[MARK]) == ("value", f"{tree}/some", os.environ[MARK])
    # Besides what a zygote or a node adds on purpose, nothing of the engine's own processes reaches a program.
    assert {name for name in environment if name not in os.environ} <= {
        "OWN",
        "PLACE",
        "TMPDIR",
        "RANKBOOK_LEASES",
        "CUDA_VISIBLE_DEVICES",
        "PYTORCH_NVML_BASED_CUDA_CHECK",
        *(name for name in environment if name.startswith(("SPT_", "GLOO_", "TP_", "NCCL_"))),
    }
    assert execution.ended.output == f"in {tree}\n"


def test_changed_environment(engine, tree, monkeypatch):
    """A variable that the caller sets after the engine has begun reaches the next program."""
    monkeypatch.setenv("RANKBOOK_TEST_LATE", "late")
    (around,), _ = run(engine, "look_around", tree)
    assert around["environment"]["RANKBOOK_TEST_LATE"] == "late"


def test_hidden_gpus(engine, tree):
    """A program that is granted no GPU sees none."""
    (around,), _ = run(engine, "look_around", tree, gpus=())
    assert around["environment"]["CUDA_VISIBLE_DEVICES"] in ("", "-1")


@needs_torch
def test_two_ranks(engine, tree):
    """Two ranks of a listing meet on gloo, and import the file beside it."""
    events, ended = run(engine, "run_file", tree, torch=True)
    assert ended.exit_code == 0, ended.output
    assert events == [{"type": "codes", "codes": [41, 41]}]


def test_death_of_a_rank(engine, tree):
    """A rank that dies by a signal is known by it, to its parent and at the end of the program."""
    events, ended = run(engine, "run_file", tree, environment={"DOOMED": "yes"})
    assert events == [{"type": "codes", "codes": [0, -signal.SIGKILL]}]
    assert [(rank.name, rank.exit_code) for rank in ended.ranks] == [("rank 0", 0), ("rank 1", -signal.SIGKILL)]


def test_stacks(engine, tree):
    """The stacks of a process are among the output when the program goes on, however often the engine looks at it meanwhile."""
    _, ended = run(engine, "show_again_and_again", tree, seconds=3)
    assert ended.exit_code == 0, ended.output
    shown = ended.output.split("number ")[1:]
    assert len(shown) > 10
    assert [part for part in shown if part.count("in wait_here\n") != 1] == []


def test_root_is_missing(engine, tree):
    """A program whose root is no folder is refused."""
    with pytest.raises(EngineError, match="its root must be a folder"):
        engine.start(program("give_status", tree / "none", status=0))


@pytest.mark.parametrize("name", [*engines.NAMES, *engines.CLUSTERS])
def test_close(name, tree, monkeypatch, surroundings):
    """Closing an engine ends its programs and leaves nothing behind: no process, and no file of theirs."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    monkeypatch.setenv("TMPDIR", str(tree.parent / "tmp"))
    (tree.parent / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    engine = made(name)
    executions = [engine.start(program("hang", tree)) for _ in range(2)]
    for execution in executions:
        next(told(execution))
    engine.close()
    assert [(execution.ended.exit_code, execution.ended.hung) for execution in executions] == [(-signal.SIGKILL, False)] * 2
    assert comes_true(lambda: not marked_processes(mark), 10), marked_processes(mark)
    assert [path.name for path in (tree.parent / "tmp").iterdir() if path.name.startswith("rankbook-")] == []
