"""One contract for both engines: each test runs its program on `fresh`, the reference, and on `local`."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from executions import told
from rankbook import engines
from rankbook.engines import huge_pages, processes
from rankbook.engines.capped import Capped
from rankbook.engines.local import Zygote, differing_at_import
from rankbook.engines.zygote import MANY
from rankbook.errors import EngineError
from rankbook.listing import Ended, Event, Program
from whole import in_whole

PROGRAMS = Path(__file__).parent / "engine_programs"
MARK = "RANKBOOK_TEST_RUN"
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
pytestmark = linux


@pytest.fixture(scope="module", autouse=True)
def surroundings():
    """Make the programs importable and mark every process that descends from here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(PROGRAMS), *filter(None, [os.environ.get("PYTHONPATH")])]))
        patch.setenv(MARK, uuid.uuid4().hex)
        yield


@pytest.fixture(scope="module", params=engines.NAMES)
def shared(request, surroundings):
    engine = engines.create(request.param)
    yield engine
    engine.close()
    assert not wait_until(lambda: not marked_processes(os.environ[MARK])), marked_processes(os.environ[MARK])


@pytest.fixture
def engine(shared):
    """An engine that must have left no process but its zygote when the test ends."""
    yield shared
    assert not wait_until(lambda: not others()), f"left: {others()}"


@pytest.fixture
def local():
    engine = engines.create("local")
    yield engine
    engine.close()


@pytest.fixture
def torchless(tmp_path, monkeypatch):
    """Where torch cannot be imported, a zygote is ready quickly."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "torch.py").write_text("raise ImportError('not here')")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'modules'}{os.pathsep}{os.environ['PYTHONPATH']}")
    return tmp_path / "modules"


def marked_processes(value: str) -> dict[int, tuple[int, list[str]]]:
    """Map the processes that were started with the mark to their parent and command line, but for this one and zombies."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            if (
                not entry.name.isdigit()
                or int(entry.name) == os.getpid()
                or f"{MARK}={value}".encode() not in (entry / "environ").read_bytes()
            ):
                continue
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                found[int(entry.name)] = (int(parent), (entry / "cmdline").read_text().split("\0"))
        except OSError:
            continue
    return found


def others() -> dict[int, tuple[int, list[str]]]:
    """Give the marked processes that are not this process's own zygotes."""
    found = marked_processes(os.environ[MARK])
    return {pid: who for pid, who in found.items() if who[0] != os.getpid() or "zygote" not in who[1]}


def wait_until(condition, limit: float = 5.0) -> bool:
    """Wait for a condition; says whether time ran out."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return True
        time.sleep(0.02)
    return False


def program(
    entry: str, path: str = "some/listing.py", timeout: float = 300, root: Path = PROGRAMS, environment=None, **arguments
) -> Program:
    module = "plain_programs:" if ":" not in entry else ""
    return Program("page.md::listing", module + entry, str(root), path, arguments, environment or {}, timeout)


def run(engine, *args, **kwargs) -> tuple[list[Event], Ended]:
    execution = engine.start(program(*args, **kwargs))
    events = list(told(execution))
    return events, execution.ended


def script(engine, path: str, **kwargs) -> tuple[dict[str, Event], list[Event], Ended]:
    """Run a file of ranks: its events by type, its ranks, its end."""
    events, ended = run(engine, "run_file", path, **kwargs)
    return {event["type"]: event for event in events}, [event for event in events if event["type"] == "rank"], ended


# One process


def test_exit_status(engine):
    """The status that the entry returns is the exit code, and the engine names itself."""
    events, ended = run(engine, "give_status", status=4)
    assert (events, ended.exit_code, ended.hung, ended.output, ended.left) == ([], 4, False, "", ())
    assert (ended.engine, ended.note) == (engine.name, "")
    assert 0 < ended.duration < 20


def test_first_event(engine):
    """Before all that a program says stands which engine really runs it, why, and how its ports are kept apart."""
    first, second = engine.start(program("say", count=1)).events()
    assert first == {"type": "began", "engine": engine.name, "note": "", "isolation": ""}
    assert second["type"] == "number"


@pytest.mark.parametrize(("code", "status"), [(None, 0), (5, 5), ("a message", 1)])
def test_system_exit(engine, code, status):
    """SystemExit means what it means to an interpreter."""
    _, ended = run(engine, "leave", code=code)
    assert ended.exit_code == status
    assert ended.output == ("a message\n" if status == 1 else "")


def test_exception(engine):
    """An entry that raises ends with 1 and its traceback."""
    _, ended = run(engine, "fail")
    assert ended.exit_code == 1
    assert "ValueError: the entry is broken" in ended.output


def test_unknown_entry(engine):
    """An entry that cannot be imported ends with 1 and says so."""
    _, ended = run(engine, "no_such_module:run")
    assert ended.exit_code == 1
    assert "No module named 'no_such_module'" in ended.output


def test_os_exit(engine):
    """os._exit gives its code."""
    _, ended = run(engine, "leave_at_once")
    assert (ended.exit_code, ended.output) == (3, "last words\n")


def test_crash(engine):
    """A signal gives its negative number, and the output shows where it struck."""
    _, ended = run(engine, "crash")
    assert ended.exit_code == -signal.SIGSEGV
    assert "in crash" in ended.output


def test_end_in_order(engine):
    """The main process waits for its threads, runs its exit functions and flushes, in this order."""
    _, ended = run(engine, "end_in_order")
    assert ended.exit_code == 0
    assert ended.output.splitlines() == ["not flushed, a late thread", "an exit function"]


def test_events(engine):
    """Events come in order and whole, big ones and many."""
    events, _ = run(engine, "say", count=3, size=1_500_000)
    assert [(event["number"], len(event["text"])) for event in events] == [(0, 1_500_000), (1, 1_500_000), (2, 1_500_000)]
    events, _ = run(engine, "say", count=20_000)
    assert [event["number"] for event in events] == list(range(20_000))


def test_events_from_threads(engine):
    """Events of several threads do not mingle."""
    events, _ = run(engine, "say_from_threads")
    assert len(events) == 200
    assert all(event["text"] == str(event["name"]) * 20_000 for event in events)


def test_events_of_a_fork(engine):
    """A fork of the main process reports nothing in its name."""
    events, _ = run(engine, "say_in_fork")
    assert events == [{"type": "who", "child": False}]


def test_events_come_at_once(engine):
    """An event is there while its program still runs, and two programs run at the same time."""
    first, second = (engine.start(program("hang_asleep")) for _ in range(2))
    assert next(told(first)) == next(told(second)) == {"type": "ready"}
    with pytest.raises(EngineError, match="has not ended"):
        first.ended  # noqa: B018
    for execution in (first, second):
        execution.stop()
        assert execution.ended.exit_code == -signal.SIGKILL
        assert not execution.ended.hung
        assert list(told(execution)) == []


def test_surroundings(engine, tmp_path):
    """A main process finds what a new interpreter finds."""
    execution = engine.start(program("look_around", root=tmp_path, environment={"OWN": "value"}))
    (around,) = told(execution)
    assert around["cwd"] == str(tmp_path)
    assert around["argv"] == [str(tmp_path / "some/listing.py")]
    assert around["environment"]["OWN"] == "value"
    assert around["environment"][MARK] == os.environ[MARK]
    assert "OPENBLAS_NUM_THREADS" not in set(around["environment"]) - set(os.environ)
    assert around["main"] == ["__builtins__", "__doc__", "__loader__", "__name__", "__package__", "__spec__"]
    assert (around["main_is_main"], around["stdin"]) == (True, "")
    assert (around["sigint"], around["sigchld"], around["sigterm"], around["mask"], around["wakeup"]) == (True, True, True, 0, -1)
    assert (around["process"], around["parent_process"], around["threads"], around["session"]) == ("MainProcess", True, 1, True)
    assert around["streams"][:2] == ["<stdout>", "<stderr>"]
    assert around["streams"][3:] == ["backslashreplace", True]
    assert len(around["descriptors"]) <= 8, around["descriptors"]
    assert str(tmp_path) not in around["sys_path"]
    assert "" not in around["sys_path"]


def test_temporary_folder(engine, tmp_path):
    """A program has a TMPDIR of its own, which goes with it, unless it is given one."""
    (event,), _ = run(engine, "use_temporary_folder")
    assert "rankbook-" in event["path"]
    assert not Path(event["path"]).parent.exists()
    (event,), _ = run(engine, "use_temporary_folder", environment={"TMPDIR": str(tmp_path)})
    assert Path(event["path"]).parent == tmp_path
    assert Path(event["path"]).exists()


def test_flood(engine):
    """Of 200 MB of output the head and the tail are kept."""
    _, ended = run(engine, "flood", megabytes=200)
    assert ended.exit_code == 0
    assert ended.output.startswith("the beginning\ny")
    assert ended.output.endswith("y\nthe end\n")
    assert "bytes left out" in ended.output
    assert len(ended.output) < 140_000


@given(st.lists(st.binary(max_size=40)), st.integers(1, 30))
def test_capped(parts, kept):
    """Capped output is the whole as long as it is short, and always its own head and tail."""
    output = Capped(kept)
    for part in parts:
        output.add(part)
    whole = b"".join(parts)
    if len(whole) <= 2 * kept:
        assert output.text() == whole.decode(errors="replace")
    else:
        head, gap, tail = output.text().partition(f"\n[... {len(whole) - 2 * kept:,} bytes left out ...]\n")
        assert gap
        assert head == whole[:kept].decode(errors="replace")
        assert tail == whole[-kept:].decode(errors="replace")


def test_root_is_missing(engine, tmp_path):
    """A program whose root is no folder is refused."""
    with pytest.raises(EngineError, match="its root must be a folder"):
        engine.start(program("give_status", root=tmp_path / "none"))


# Hung, left, stopped


@pytest.mark.parametrize(
    ("entry", "trace"), [("hang_asleep", "in hang_asleep"), ("hang_in_c", "in hang_in_c"), ("hang_stopped", "cannot answer")]
)
def test_hang(engine, entry, trace):
    """A program that is silent for its timeout ends soon after, with its stacks, whatever it does: sleep, hold the GIL, be stopped."""
    started = time.monotonic()
    events, ended = run(engine, entry, timeout=1.0)
    assert events == [{"type": "ready"}]
    assert (ended.hung, ended.exit_code) == (True, -signal.SIGKILL)
    assert "--- stacks of the main process" in ended.output
    assert trace in ended.output
    assert ended.left == ()
    assert time.monotonic() - started < 15


def test_hang_leaves_no_semaphore(engine):
    """A program that is ended by force leaves none of its named semaphores: the helper that removes them outlives it for a moment."""
    events, ended = run(engine, "hang_with_semaphore", timeout=1)
    assert ended.hung
    assert not Path("/dev/shm", "sem." + events[0]["name"].removeprefix("/")).exists()


def test_events_are_signs_of_life(engine):
    """Each event gives a program its whole timeout again."""
    execution = engine.start(program("say_slowly", timeout=1.5))
    assert len(list(told(execution))) == 6
    assert execution.ended.exit_code == 0


def test_left_behind(engine):
    """A process that outlives the main process is named and killed, in a session of its own too."""
    _, ended = run(engine, "leave_child")
    assert ended.exit_code == 0
    assert len(ended.left) == 1
    assert ended.left[0].endswith("left-behind")
    _, ended = run(engine, "leave_orphan")
    assert ended.left == ("sleep 1001",)


def test_quick_child_is_not_left(engine):
    """A child that ends by itself in a moment is not held against the program."""
    _, ended = run(engine, "leave_quick_child")
    assert ended.left == ()


@pytest.mark.parametrize("name", engines.NAMES)
def test_stop_and_close_are_quick(name, torchless, monkeypatch):
    """Closing the engine ends a program and its family in less than two seconds; the engine can be used again."""
    monkeypatch.setenv(MARK, uuid.uuid4().hex)
    engine = engines.create(name)
    execution = engine.start(program("hang_with_family"))
    next(told(execution))
    started = time.monotonic()
    engine.close()
    assert time.monotonic() - started < 2
    assert execution.ended.exit_code == -signal.SIGKILL
    assert not wait_until(lambda: not marked_processes(os.environ[MARK]), 2)
    _, ended = run(engine, "give_status", status=2)
    assert ended.exit_code == 2
    engine.close()


@pytest.mark.parametrize("name", engines.NAMES)
def test_caller_is_killed(name, torchless, tmp_path):
    """When the caller dies by SIGKILL nothing lives on, a child in its own session included, and no folder stays."""
    mark = uuid.uuid4().hex
    (tmp_path / "tmp").mkdir()
    environment = {**os.environ, MARK: mark, "TMPDIR": str(tmp_path / "tmp")}
    command = [sys.executable, str(PROGRAMS / "caller.py"), name, str(tmp_path)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as caller:
        try:
            assert caller.stdout.readline().startswith("[")
            assert not wait_until(lambda: len(marked_processes(mark)) >= 4)
        finally:
            caller.kill()
    assert not wait_until(lambda: not marked_processes(mark), 3), marked_processes(mark)
    assert not wait_until(lambda: not list((tmp_path / "tmp").iterdir()), 3)


# Ranks


def test_ranks(engine):
    """Ranks behave as the spawn start method promises, each with its record and its own output."""
    said, ranks, ended = script(engine, "ranks_basic.py")
    assert ended.exit_code == 0, ended.output
    main, here = said["here"]["pid"], said["here"]["cwd"]
    assert said["basic"] == {
        "type": "basic",
        "alive": [True, True],
        "said": [[rank, "yes", here, main, f"process {rank}", "__mp_main__"] for rank in range(2)],
        "piped": [{"rank": rank, "main": "__mp_main__", "stdin": ""} for rank in range(2)],
        "codes": [0, 1],
        "total": 3,
    }
    assert said["ended"] == {"type": "ended", "before": None, "codes": [-15, -9], "alive": False}
    assert said["nested"] == {"type": "nested", "crashed": -11, "code": 7, "said": [[2, "spawn"], [1, "spawn"], [0, "spawn"]]}
    assert said["pool"]["squares"] == [0, 1, 4, 9, 16]
    assert said["late"] == {"type": "late", "forked": 5, "threaded": 0}
    codes = [(rank["name"], rank["code"]) for rank in ranks]
    assert codes[:6] == [("process 0", 0), ("process 1", 1), ("terminated", -15), ("killed", -9), ("crashed", -11), ("nested", 7)]
    assert codes[8:] == [("daemon", None), ("forked", 5), ("threaded", 0)]
    assert [rank["output"] for rank in ranks[:4]] == [*(f"rank {n} speaks\nrank {n} complains\n" for n in range(2)), "", ""]
    assert "in signal_self" in ranks[4]["output"]
    assert ranks[5]["output"] == "depth 2\ndepth 1\ndepth 0\n"
    assert ranks[9]["output"] is None
    assert (ended.output, ended.left) == ("", ())


def test_odd_ranks(engine):
    """Hundreds of descriptors, large arguments, a default socket timeout and starts from threads do no harm, and no descriptor leaks."""
    said, ranks, ended = script(engine, "ranks_odd.py")
    assert ended.exit_code == 0, ended.output
    assert said["odd"] == {"type": "odd", "counted": [260, 3_000_000], "passed": [0, 1, 2, 3, 4, 5], "codes": [0] * 6}
    assert said["descriptors"]["grown"] <= 2  # the last one's, until somebody looks at it
    assert len(ranks) == 15


def test_rank_that_cannot_begin(engine):
    """A rank that dies before it has read its arguments is told by its exit code, and its output says why."""
    # With more than a pipe holds, multiprocessing itself waits for ever for such a rank.
    said, ranks, ended = script(engine, "ranks_refused.py", environment={"SIZE": "5_000_000" if engine.name == "local" else "10_000"})
    assert ended.exit_code == 0, ended.output
    assert said["refused"]["code"] == 1
    assert "this file does not run in a rank" in ranks[0]["output"]


def test_assertions_in_ranks(engine):
    """A failing assertion in a rank shows both values, in the main file and in a module that it imports."""
    _, ranks, _ = script(engine, "ranks_assert.py")
    assert [rank["code"] for rank in ranks] == [1, 1]
    assert "assert 41 == 42" in ranks[0]["output"]
    assert "assert [1, 2] == [1, 3]" in ranks[1]["output"]


@pytest.mark.parametrize(("end", "code"), [("exit", 3), ("crash", -signal.SIGSEGV)])
def test_ranks_die_with_the_main_process(engine, end, code):
    """When the main process dies its ranks die, by name, and what both wrote is kept, also what they did not flush."""
    said, _, ended = script(engine, "ranks_left.py", environment={"BAD_END": end})
    assert "ready" in said
    assert ended.exit_code == code
    assert ended.left == ("rank 'process 7'",)
    assert ended.output.startswith("the main process speaks\n")
    assert "--- output of rank 0000-process-7\nthe rank speaks" in ended.output


def test_hung_ranks(engine):
    """A hung program shows the stacks of the main process and of each rank, one after the other."""
    _, _, ended = script(engine, "ranks_left.py", environment={"BAD_END": "none"}, timeout=4.0)
    assert ended.hung
    main, _, rank = ended.output.partition("--- stacks of rank 'process 7'")
    assert "in main" in main
    assert "in live" in rank
    assert "the rank speaks" in rank
    assert ended.left == ()


def test_stopped_rank(engine):
    """A rank that is stopped by a signal is named as such and goes like all others."""
    _, _, ended = script(engine, "ranks_left.py", environment={"BAD_END": "stopped"}, timeout=4.0)
    assert "which is stopped by a signal" in ended.output


# torch


@needs_torch
@pytest.mark.parametrize("shared", ["local"], indirect=True)  # new interpreters do the same in the tests of the evidence
def test_multi_process_test_case(engine):
    """Ranks of MultiProcessTestCase pass, fail with both values, are skipped and die, and each exit code is on record."""
    said, ranks, ended = script(engine, "torch_multi_process.py")
    assert ended.exit_code == 0, ended.output
    result = said["unittest"]
    assert result["run"] == 3
    assert result["failed"] == ["__main__.TwoRanks.test_broken"]
    assert result["skipped"] == ["__main__.TwoRanks.test_left_out"]
    assert "assert 40 == 2" in result["texts"] or "assert 41 == 2" in result["texts"]
    assert 10 in {rank["code"] for rank in ranks[:2]}
    assert [rank["code"] for rank in ranks[2:]] == [72, 72, 0, -9]
    assert [rank["output"] for rank in ranks[4:]] == ["rank 0 has 3\n", "rank 1 has 3\n"]


@needs_torch
@pytest.mark.parametrize("shared", ["local", *in_whole("fresh")], indirect=True)
def test_multi_proc_continuous_test(engine):
    """MultiProcContinuousTest runs both its tests on two ranks that it started once."""
    said, ranks, ended = script(engine, "torch_continuous.py")
    assert ended.exit_code == 0, ended.output
    assert (said["unittest"]["run"], said["unittest"]["good"], said["unittest"]["skipped"]) == (2, True, 0)
    assert [(rank["name"], rank["code"]) for rank in ranks] == [("process 0", 0), ("process 1", 0)]


@needs_torch
def test_torch_multiprocessing(engine):
    """torch.multiprocessing.spawn shares tensors and names the rank that raised; DataLoader workers load, spawned and forked."""
    events, ended = run(engine, "run_file", "torch_spawn.py")
    assert ended.exit_code == 0, ended.output
    said = {event.get("method", event["type"]): event for event in events}
    assert said["spawned"]["shared"] == [1, 1]
    assert said["spawned"]["values"] == [[0, 0], [1, 1]]
    assert said["raised"]["rank"] == 1
    assert "ValueError: rank 1 is broken" in said["raised"]["text"]
    assert said["spawn"]["batches"] == said["fork"]["batches"] == [[0, 1, 4, 9], [16, 25, 36, 49]]


@needs_torch
@pytest.mark.parametrize("shared", ["local", *in_whole("fresh")], indirect=True)  # a new interpreter has no other's numbers to repeat
def test_random_numbers(engine):
    """No two programs draw the same random numbers, and torch uses as many threads as in a new interpreter."""
    import torch

    drawn = [run(engine, "draw", torch=True)[0][0] for _ in range(2)]
    for name in ("random", "numpy", "torch"):
        assert drawn[0][name] != drawn[1][name]
    assert drawn[0]["threads"] == torch.get_num_threads()
    assert drawn[0]["fork"] is False


# The engines themselves


def test_unknown_engine():
    """An unknown engine is refused with the names of those that there are."""
    with pytest.raises(EngineError, match="there is no engine 'loacl'; known are local, fresh"):
        engines.create("loacl")


def test_variable_that_torch_reads_at_import(local, torchless):
    """A program that sets a variable which is read at import runs in a new interpreter, with the reason; others do not."""
    _, ended = run(local, "give_status", environment={"TORCH_LOGS": "+dynamo"})
    assert (ended.engine, ended.exit_code) == ("fresh", 0)
    assert "TORCH_LOGS is set for it" in ended.note
    _, ended = run(local, "give_status", environment={"NCCL_DEBUG": "WARN", "MASTER_PORT": "0"})
    assert (ended.engine, ended.note) == ("local", "")
    same = {"PYTHONPATH": os.environ["PYTHONPATH"]}
    _, ended = run(local, "give_status", environment=same)
    assert (ended.engine, ended.note) == ("local", "")


def test_differing_at_import():
    """Only variables that are read at import count, and only when their value differs, or they are set or gone."""
    assert differing_at_import({"A": "1", "OMP_NUM_THREADS": "2"}, {"A": "2", "OMP_NUM_THREADS": "2"}) == ""
    assert differing_at_import({}, {"OMP_NUM_THREADS": "2"}) == "OMP_NUM_THREADS"
    assert differing_at_import({"PYTHONHASHSEED": "1"}, {}) == "PYTHONHASHSEED"


def test_program_that_gains_nothing(local, torchless):
    """A program that does not gain from the zygote runs without one, and that is no fall-back."""
    execution = local.start(Program("n", "plain_programs:give_status", str(PROGRAMS), "x.py", preload=False))
    assert list(told(execution)) == []
    assert (execution.ended.engine, execution.ended.note) == ("fresh", "")
    assert not marked_zygotes()


def marked_zygotes() -> list[int]:
    return [pid for pid, (parent, line) in marked_processes(os.environ[MARK]).items() if parent == os.getpid() and "zygote" in line]


STARTS_A_THREAD = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
ENDS_BADLY = "the process that listings are forked from has 2 threads"


def test_zygote_with_threads(local, torchless):
    """A zygote in which torch itself has started a thread is not forked; programs run in new interpreters, with the reason."""
    (torchless / "torch.py").write_text(STARTS_A_THREAD)
    _, ended = run(local, "give_status", status=6)
    assert (ended.engine, ended.exit_code) == ("fresh", 6)
    assert ENDS_BADLY in ended.note


def test_what_forbids_forks_is_left_to_programs(torchless, monkeypatch):
    """Modules whose import starts a thread that stays, by themselves or by what they import, are not imported for all; others are."""
    before = marked_zygotes()
    (torchless / "expecttest.py").write_text(STARTS_A_THREAD)
    for name, text in {
        "brings": "import expecttest",
        "brings_that": "from brings import expecttest",
        "harmless": STARTS_A_THREAD.replace("60", "0.1"),
    }.items():
        (torchless / f"{name}.py").write_text(text)
    started = []
    monkeypatch.setattr(Zygote, "_first_word", lambda self, ask=Zygote._first_word: started.append(ask(self)) or started[-1])
    local = engines.create("local", preload=("brings", "harmless", "brings_that"))
    try:
        execution = local.start(program("look_around", root=torchless))
        (around,) = told(execution)
    finally:
        local.close()
    assert (execution.ended.engine, execution.ended.note, around["threads"]) == ("local", "", 1)
    assert {"unittest.mock", "expecttest", "brings", "brings_that", "harmless"} & set(around["modules"]) == {"unittest.mock", "harmless"}
    assert [word["spoilers"] for word in started] == [["expecttest", "brings", "brings_that"], []]
    assert marked_zygotes() == before


def test_without_torch_nothing_hinders(local, torchless):
    """What an import of torch hinders does not hinder programs that do without it, before and after."""
    (torchless / "torch.py").write_text(STARTS_A_THREAD)
    for torch, engine in ((False, "local"), (True, "fresh"), (False, "local"), (True, "fresh")):
        execution = local.start(Program("n", "plain_programs:give_status", str(PROGRAMS), "x.py", torch=torch))
        assert list(told(execution)) == []
        assert (execution.ended.engine, bool(execution.ended.note)) == (engine, engine == "fresh")


DRIVER = """
int cuInit(unsigned flags);
static int is_initialised = 0;
int cuInit(unsigned flags) { is_initialised = 1; return 0; }
int cuDeviceGetCount(int *count) { if (!is_initialised) return 3; *count = 1; return 0; }
"""
ASKS_DRIVER = """
import ctypes, sys
from rankbook.engines import cuda_driver, zygote
found = [cuda_driver.library(), cuda_driver.is_initialised(), zygote.hindrance()]
driver = ctypes.CDLL(sys.argv[1])
found += [cuda_driver.library(), cuda_driver.is_initialised(), zygote.hindrance()]
driver.cuInit(0)
print([*found, cuda_driver.is_initialised(), zygote.hindrance()])
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler, for a library that stands in for CUDA's driver")
def test_cuda_that_torch_knows_nothing_of(tmp_path):
    """Numba and CuPy initialise CUDA's driver without torch: no fork could use a GPU any more, and the driver itself says so."""
    (tmp_path / "driver.c").write_text(DRIVER)
    library = tmp_path / "a folder" / "libcuda.so.1"
    library.parent.mkdir()
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "driver.c")], check=True)
    done = subprocess.run([sys.executable, "-c", ASKS_DRIVER, str(library)], capture_output=True, text=True, check=True)
    touched = "the process that listings are forked from has initialised CUDA"
    assert done.stdout.strip() == str([None, False, "", str(library), False, "", True, touched])


def new_zygotes(before: list[int]) -> list[int]:
    return [pid for pid in marked_zygotes() if pid not in before]


def test_lost_zygote(local, torchless):
    """A zygote that dies is started again once; its running programs live on; the second time is an error."""
    before = marked_zygotes()
    running = local.start(program("say_slowly"))
    for _ in range(2):
        (zygote,) = new_zygotes(before)
        os.kill(zygote, signal.SIGKILL)
        if _ == 0:
            _, ended = run(local, "give_status", status=3)
            assert (ended.engine, ended.exit_code) == ("local", 3)
    for _ in range(2):
        with pytest.raises(EngineError, match="was lost 2 times; run with the engine 'fresh'"):
            local.start(program("give_status"))
    assert len(list(told(running))) == 6
    assert running.ended.exit_code == 0


def test_lost_supervisor(engine):
    """When a supervisor is killed its main process dies with it, and the end is unknown."""
    execution = engine.start(program("hang_asleep"))
    next(told(execution))
    session = {os.getsid(pid) for pid, (_, line) in others().items()}
    (supervisor,) = session
    os.kill(supervisor, signal.SIGKILL)
    assert list(told(execution)) == []
    assert execution.ended.exit_code is None


def test_ps_tells_what_proc_tells():
    """Where there is no /proc, ps gives the same parents."""
    with subprocess.Popen(["sleep", "100"]) as child:
        parents = {pid: parent for pid, parent, _ in processes.all_of_ps()}
        assert parents[child.pid] == os.getpid()
        assert child.pid in processes.descendants(os.getpid())
        child.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_processes_come_as_they_began(monkeypatch):
    """A process that the system gives a low number, because it has given its last one, comes behind those that began before it."""
    began = {1: 0, 302: 70, 5000: 50, 32762: 40, 32766: 60}
    above = {302: 32762, 5000: 1, 32762: 1, 32766: 32762}
    told = {pid: ["S", str(above.get(pid, 0)), *["0"] * 17, str(began[pid])] for pid in began}
    monkeypatch.setattr(processes, "_listdir", lambda _: [*map(str, sorted(told)), "self"])
    monkeypatch.setattr(processes, "_stat", told.__getitem__)
    assert processes.descendants(1) == [32762, 5000, 32766, 302]


def test_ranks_that_are_terminated_at_once(engine):
    """A signal to a rank that has only just been forked ends that rank, and not the program."""
    events, ended = run(engine, "terminate_ranks", count=40)
    assert [event["code"] for event in events if event["type"] == "terminated"] == [-15] * 40
    assert ended.exit_code == 0


def test_two_engines_at_once(torchless):
    """Engines side by side, as in the workers of pytest-xdist, do not meet."""
    pair = [engines.create("local") for _ in range(2)]
    try:
        executions = [engine.start(program("say", count=5)) for engine in pair for _ in range(2)]
        assert [len(list(told(execution))) for execution in executions] == [5] * 4
    finally:
        for engine in pair:
            engine.close()


SPOILT = """
import os, sys, types
from rankbook.engines import zygote
parent = os.getpid()
sys.modules["torch.cuda"] = types.SimpleNamespace(is_initialized=lambda: False, _is_in_bad_fork=lambda: {answer})
print(zygote.hindrance())
"""


@pytest.mark.parametrize(
    ("answer", "said"), [("os.getpid() != parent", "the process that listings are forked from has initialised CUDA"), ("False", "")]
)
def test_a_fork_that_finds_cuda_spoilt(answer, said):
    """What only a fork can tell, that CUDA was touched before it, is found out before any listing is forked."""
    found = subprocess.run([sys.executable, "-c", SPOILT.format(answer=answer)], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == said


# Huge pages

GATHERED = """
import hashlib, json, os, re
from pathlib import Path
from rankbook.engines import huge_pages

def huge():
    return int(re.search(r"AnonHugePages: +(\\d+)", Path("/proc/self/smaps_rollup").read_text())[1]) >> 10

data = bytearray(os.urandom(32 << 20))
before, digest = huge(), hashlib.sha256(data).digest()
steps = sum(1 for _ in huge_pages.gather())
after, same = huge(), hashlib.sha256(data).digest() == digest
pid = os.fork()
if pid == 0:
    data[1 << 20] ^= 255
    os._exit(0 if hashlib.sha256(data).digest() != digest else 1)
same_in_fork = os.waitpid(pid, 0)[1] == 0 and hashlib.sha256(data).digest() == digest
print(json.dumps([before, steps, after, same, same_in_fork]))
"""


def has_huge_pages() -> bool:
    """Whether this system gathers memory when asked."""
    version = tuple(int(part) for part in platform.release().split(".")[:2])
    return version >= (6, 1) and huge_pages.SYSTEM.is_dir() and "[never]" not in (huge_pages.SYSTEM / "enabled").read_text()


def test_memory_is_gathered():
    """Memory lies in huge pages afterwards, with the contents that it had, for the process and for its forks."""
    found = subprocess.run([sys.executable, "-c", GATHERED], capture_output=True, text=True, check=True)
    before, steps, after, same, same_in_fork = json.loads(found.stdout)
    assert same
    assert same_in_fork
    if has_huge_pages():
        assert steps >= 15
        assert after - before >= 24  # MB of 32


def test_no_huge_pages(tmp_path, monkeypatch):
    """Where the system has none, or its owner wants none, nothing is asked for."""
    monkeypatch.setattr(huge_pages, "SYSTEM", tmp_path)
    assert list(huge_pages.gather()) == []
    (tmp_path / "enabled").write_text("always madvise [never]\n")
    (tmp_path / "hpage_pmd_size").write_text("2097152\n")
    assert list(huge_pages.gather()) == []


def test_own_memory():
    """Memory of a process is what is private, can be written, and is of no file and no stack."""
    maps = """\
5581a000-5581b000 r--p 00000000 08:01 1 /usr/bin/python
5581b000-5581c000 rw-p 00000000 08:01 1 /usr/bin/python
5681b000-5781c000 rw-p 00000000 00:00 0 [heap]
7f001000-7f002000 rw-p 00000000 00:00 0
7f002000-7f003000 ---p 00000000 00:00 0
7f003000-7f004000 rw-s 00000000 00:05 9 /dev/zero (deleted)
7f004000-7f005000 rw-p 00000000 00:00 0 [anon: of somebody]
7ffe0000-7fff0000 rw-p 00000000 00:00 0 [stack]
"""
    assert list(huge_pages.own_memory(maps)) == [(0x5681B000, 0x5781C000), (0x7F001000, 0x7F002000)]


@needs_torch
@pytest.mark.skipif(not has_huge_pages(), reason="this system has no huge pages to gather in")
def test_zygote_of_many_programs(local):
    """A zygote that has forked many programs gathers its memory, and forks on."""
    before = marked_zygotes()
    for status in (*range(MANY), 7):
        execution = local.start(replace(program("give_status", status=status), harnesses=False))
        assert list(told(execution)) == []
        assert execution.ended.exit_code == status
    (pid,) = new_zygotes(before)
    assert not wait_until(lambda: huge(pid) > 64, 60), huge(pid)
    execution = local.start(replace(program("run_file", "torch_spawn.py"), harnesses=False))
    assert list(told(execution))
    assert execution.ended.exit_code == 0, execution.ended.output
    assert new_zygotes(before) == [pid]


def huge(pid: int) -> int:
    """Give the megabytes of a process that lie in huge pages."""
    found = re.search(r"AnonHugePages: +(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text())
    return int(found[1]) >> 10 if found else 0
