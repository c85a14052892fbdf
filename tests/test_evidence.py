"""What ranks leave behind, and what becomes of a test whose ranks do not bear out how its harness says that it ended."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbook import engines, last_calls, rank_notes
from rankbook.engines.execution import SupervisedExecution
from rankbook.harness import preloaded, world_size
from rankbook.listing import Event, Outcome, Program, Receipt
from rankbook.rank_notes import Note, Pen, Reader
from whole import in_whole

CASES = Path(__file__).parent / "cases" / "evidence"
PIPE_TAKES_AT_ONCE = 4096
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the engines' own tests run on Linux")


@pytest.fixture(scope="module")
def made() -> Iterator[dict[str, object]]:
    """Engines, each made when it is first asked for."""
    found: dict[str, object] = {}
    yield found
    for engine in found.values():
        engine.close()


@pytest.fixture
def events(made, tmp_path):
    """Run a test module by an engine, and give its reports by test: the first that is not passed, else that of the call."""
    pytest.importorskip("torch")
    pytest.importorskip("expecttest")

    def run(engine: str, source: str, *select: str) -> dict[str, Event]:
        if engine not in made:
            made[engine] = engines.create(engine, preload=preloaded())
        (tmp_path / "test_listing.py").write_text(source, encoding="utf-8")
        arguments = {"select": list(select), "options": ["-p", "no:warnings"]}
        entry = "rankbook.harness.test_module:run"
        execution: SupervisedExecution = made[engine].start(
            Program("listing", entry, str(tmp_path), "test_listing.py", arguments, timeout=200)
        )
        found: dict[str, Event] = {}
        for event in execution.events():
            if event["type"] != "report":
                continue
            known = found.get(event["id"])
            if known is None or (known["outcome"] == "passed" and (event["outcome"] != "passed" or event["when"] == "call")):
                found[event["id"]] = event
        assert execution.ended.exit_code == 0, execution.ended.output
        return found

    return run


def read(name: str) -> tuple[str, list[list[str]]]:
    """Give the listing of a case page, and outcome, test and part of the reason of each line of what is expected."""
    page, _, lines = (CASES / f"{name}.md").read_text(encoding="utf-8").partition("\n=== outcomes\n")
    listing = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert listing is not None
    return listing[1], [[*line.split(None, 2), ""][:3] for line in lines.splitlines() if line.strip()]


def judge(found: dict[str, Event], expected: list[list[str]]) -> None:
    """Compare reports with what is expected of each test."""
    assert sorted(found) == sorted(name.removeprefix("::") for _, name, _ in expected)
    for outcome, name, reason in expected:
        event = found[name.removeprefix("::")]
        assert Outcome(event["outcome"]) is Outcome(outcome.replace("_", " ")), (name, event)
        assert reason in event.get("reason", ""), (name, event["reason"])


@pytest.mark.parametrize(("engine", "ways"), [("local", "1234567"), *((engine, "456") for engine in in_whole("fresh"))])
def test_dead_ranks(events, engine, ways):
    """None of the seven ways in which a rank may die beside a test is green, and each but an error of the test names rank and death.

    `test_faults` has ranks that die in the other ways by new interpreters, which take ten seconds each.
    """
    source, expected = read("dead_ranks")
    chosen = [line for line in expected if re.search(f"test_[{ways}]_", line[1])]
    found = events(engine, source, *(name.removeprefix("::") for _, name, _ in chosen))
    judge(found, chosen)
    assert len(found) == len(ways)
    assert all(Outcome(event["outcome"]).is_failure for event in found.values())
    for event in found.values():
        if event["outcome"] == "crashed":
            assert re.search(r"rank \d (died by SIG\w+|left with exit status \d+,) \d+\.\d s after its start", event["reason"])


def test_judged_by_their_ranks(events):
    """Tests that no rank entered, that ran on one rank, that were given up, and skips whose reason the harness loses."""
    judge(events("local", read("judged")[0]), read("judged")[1])


SPAWNING = """
import torch
import torch.multiprocessing as mp
from torch.multiprocessing import start_processes


def run(rank):
    pass


def test_nobody():
    mp.spawn(run, nprocs=torch.cuda.device_count() * 0)


def test_nobody_by_position():
    start_processes(run, (), 0)


def test_one():
    mp.spawn(run)


def test_nobody_and_two():
    mp.spawn(run, nprocs=0)
    mp.spawn(run, nprocs=2)


def test_fails():
    mp.spawn(run, nprocs=0)
    assert False
"""


@pytest.mark.parametrize("engine", ["local", *in_whole("fresh")])
def test_ranks_of_which_there_are_none(events, engine):
    """A test that starts its ranks itself, and starts none here, has not passed; what it did besides may have failed."""
    found = events(engine, SPAWNING)
    assert {name: event["outcome"] for name, event in found.items()} == {
        "test_nobody": "vacuous", "test_nobody_by_position": "vacuous", "test_one": "passed", "test_nobody_and_two": "passed",
        "test_fails": "failed",
    }  # fmt: skip
    assert "0 of them here" in found["test_nobody"]["reason"]


MARKED = """
import unittest

import pytest


def nothing(function):
    return None


class TestA(unittest.TestCase):
    @pytest.mark.slow
    @nothing
    def test_vacuous(self):
        assert False

    @pytest.mark.slow(reason="x")
    @pytest.mark.skip(reason="x")
    @nothing
    def test_vacuous_too(self):
        assert False

    @pytest.mark.slow
    def test_passed(self):
        pass
"""


@pytest.mark.parametrize("engine", ["local", *in_whole("fresh")])
def test_a_mark_is_no_test(events, engine):
    """What unittest calls as a test, and is a mark that was put on nothing, has tested nothing."""
    found = events(engine, MARKED)
    assert {name: event["outcome"] for name, event in found.items()} == {
        "TestA::test_vacuous": "vacuous", "TestA::test_vacuous_too": "vacuous", "TestA::test_passed": "passed",
    }  # fmt: skip
    assert "put on nothing" in found["TestA::test_vacuous"]["reason"]


LOOPING = """
import multiprocessing
import threading
import unittest
from unittest import mock

import pytest
import torch
import torch.multiprocessing as mp
from torch.multiprocessing import start_processes

NONE = [n for n in (1, 2) if n <= torch.cuda.device_count() * 0]
FORK = multiprocessing.get_context("fork")


def run(rank):
    pass


def launch(func, sizes=NONE):
    for n in sizes:
        mp.spawn(func, nprocs=n)


def start_or_run(func, sizes=NONE):
    if not sizes:
        func(0)
    for n in sizes:
        mp.spawn(func, nprocs=n)


def start_or_leave(func, sizes=NONE):
    if not sizes:
        return
    for n in sizes:
        mp.spawn(func, nprocs=n)


def test_vacuous_loop():
    "Its ranks are as many as there are."
    for n in NONE:
        start_processes(run, (), n)


def test_vacuous_helper():
    name = "x"
    launch(run)


def test_vacuous_within():
    def inner(rank):
        assert False
    with torch.no_grad():
        for n in NONE:
            launch(inner, [n])


class TestA(unittest.TestCase):
    def start(self):
        for n in NONE:
            mp.spawn(run, nprocs=n)

    def test_vacuous_method(self):
        self.start()

    def test_passed_asserts(self):
        self.start()
        self.assertTrue(True)


@pytest.mark.parametrize("size", [1])
def test_vacuous_case(size):
    launch(run, NONE)


def test_passed_rounds():
    launch(run, [1])


def test_passed_more():
    run(0)
    launch(run)


def test_passed_choice():
    start_or_run(run)


def test_passed_left():
    start_or_leave(run)


def test_passed_feigned():
    with mock.patch("torch.multiprocessing.spawn"):
        for n in [1]:
            mp.spawn(run, nprocs=n)


def test_passed_raises():
    with pytest.raises(ValueError):
        for n in [1]:
            start_processes(run, (), n, start_method="none such")


def test_passed_other():
    rng = torch.Generator()
    for n in NONE:
        rng.spawn(n)


def test_vacuous_condition():
    for n in [1]:
        if n > 1:
            mp.spawn(run, nprocs=n)


def test_vacuous_continue():
    for n in (2, 4):
        if torch.cuda.device_count() * 0 < n:
            print("too few GPUs for", n)
            continue
        mp.spawn(run, nprocs=n)


def test_vacuous_break():
    for n in (2, 4):
        if torch.cuda.device_count() * 0 < n:
            break
        mp.spawn(run, nprocs=n)


def test_vacuous_while():
    n = 1
    while n <= torch.cuda.device_count() * 0:
        mp.spawn(run, nprocs=n)
        n *= 2


def test_passed_continue():
    for n in (1, 2):
        if n > 1:
            continue
        mp.spawn(run, nprocs=n)


def test_passed_other_side():
    for n in (2, 4):
        if torch.cuda.device_count() * 0 < n:
            run(0)
        else:
            mp.spawn(run, nprocs=n)


def test_passed_returns():
    for n in (2, 4):
        if torch.cuda.device_count() * 0 < n:
            return
        mp.spawn(run, nprocs=n)


def test_vacuous_processes():
    for n in [4, 8]:
        if n > torch.cuda.device_count() * 0:
            continue
        ps = []
        for r in range(n):
            p = multiprocessing.Process(target=run, args=(r,))
            p.start()
            ps.append(p)
        for p in ps:
            p.join()
            assert p.exitcode == 0


def test_vacuous_comprehension():
    for n in NONE:
        ps = [mp.Process(target=run, args=(r,)) for r in range(n)]
        for p in ps:
            p.start()
        for p in ps:
            p.join()
        assert all(p.exitcode == 0 for p in ps)


def test_vacuous_context():
    ctx = mp.get_context("spawn")
    world_size = torch.cuda.device_count() * 0
    processes = []
    for rank in range(world_size):
        process = ctx.Process(target=run, args=(rank,), daemon=True)
        process.start()
        processes.append(process)
    for process in processes:
        process.join()
        assert process.exitcode == 0, "a rank"


class Worker(mp.Process):
    pass


class TestQ(unittest.TestCase):
    SIZES = NONE

    def test_vacuous_worker(self):
        for n in self.SIZES:
            workers = [Worker(target=run, args=(0,)), FORK.Process(target=run, args=(1,))]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
                self.assertEqual(worker.exitcode, 0)


def test_passed_process():
    for n in [1]:
        p = FORK.Process(target=run, args=(0,))
        p.start()
        p.join()
        assert p.exitcode == 0


def test_passed_one_of_two():
    for n in [1, 4]:
        if n > 1:
            continue
        p = FORK.Process(target=run, args=(0,))
        p.start()
        p.join()
        assert p.exitcode == 0


def test_passed_unstarted():
    for n in [1, 2]:
        p = mp.Process(target=run, args=(n,))
        assert p.exitcode is None
        assert not p.is_alive()


def test_passed_looks():
    ps = [mp.Process(target=run, args=(r,)) for r in range(0)]
    for p in ps:
        p.start()
    assert not ps


def test_passed_before():
    for n in [1, 2]:
        run(n)
        if n > 0:
            continue
        p = mp.Process(target=run, args=(n,))
        p.start()


class Mine(mp.Process):
    pass


def test_vacuous_other_name():
    for n in range(0):
        w: mp.Process = Mine(target=run, args=(n,))
        w.start()
        w.join(timeout=5)
        assert not w.is_alive(), [w.name]
        assert w.exitcode == 0


def test_vacuous_at_once():
    for n in range(0):
        mp.get_context("spawn").Process(target=run, args=(n,)).start()


def test_vacuous_appended():
    ps = []
    for n in range(0):
        ps.append(mp.Process(target=run, args=(n,)))
    for p in ps:
        p.start()
    for p in ps:
        p.join()
    assert not any(p.exitcode for p in ps)


class Result:
    exitcode = 0


def launch_other():
    return Result()


def test_passed_exit_code():
    result = launch_other()
    assert result.exitcode == 0
    for n in range(0):
        p = mp.Process(target=run, args=(n,))
        p.start()
        p.join()


def test_passed_more_than_a_look():
    ps = [mp.Process(target=run, args=(r,)) for r in range(0)]
    for p in ps:
        p.start()
    assert 1 + 1 == 2 and all(p.exitcode == 0 for p in ps)


def test_passed_message():
    ps = [mp.Process(target=run, args=(r,)) for r in range(0)]
    for p in ps:
        p.start()
    assert 1 + 1 == 2, [p.exitcode for p in ps]


def check(n):
    assert n == 3


def test_passed_handed():
    ps = []
    for n in range(0):
        p = mp.Process(target=run, args=(n,))
        p.start()
        ps.append(p)
    ps.append(check(3))


class Here(mp.Process):
    def start(self):
        self.run()


def test_passed_here():
    for n in (1, 2):
        p = Here(target=run, args=(n,))
        p.start()


class Threads:
    Process = threading.Thread


def get_context(kind):
    return Threads


def test_passed_own_context():
    context = get_context("threads")
    for n in (1, 2):
        p = context.Process(target=run, args=(n,))
        p.start()


def test_passed_thread():
    p = mp.Process(target=run, args=(1,))
    for n in (1, 2):
        p = threading.Thread(target=run, args=(n,))
        p.start()


def test_passed_no_process():
    class Timer:
        def start(self):
            pass

    for n in NONE:
        p = Timer()
        p.start()
"""


@pytest.mark.parametrize("engine", ["local", *in_whole("fresh")])
def test_a_loop_without_a_round_has_started_no_rank(events, engine):
    """All that the test does is to start ranks, and none was: it is as good as not run. One that may have done more is left alone."""
    found = events(engine, LOOPING)
    assert len(found) == 40
    for name, event in found.items():
        assert event["outcome"] == name.partition("test_")[2].partition("_")[0], (name, event)
    assert "in a loop that started none here" in found["test_vacuous_helper"]["reason"]


LATE = """
import multiprocessing
import os
import time
import unittest

import pytest
import torch.multiprocessing as mp

context = multiprocessing.get_context("fork")


def body(path, status):
    while not os.path.exists(path):
        time.sleep(0.01)
    os._exit(status)


def work(rank, path):
    while not os.path.exists(path):
        time.sleep(0.01)
    print(f"rank {rank} looks")
    assert rank == 0


def started(path, status=3, **options):
    process = context.Process(target=body, args=(path, status), **options)
    process.start()
    return process


def ended(process, path):
    open(path, "w").close()
    process.join()


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "go")


@pytest.fixture
def rank(path):
    process = started(path)
    yield process
    ended(process, path)


@pytest.fixture(params=[0, 3])
def looked_at(path, request):
    process = started(path, request.param)
    yield
    ended(process, path)
    assert process.exitcode == request.param


@pytest.fixture
def killed(path):
    process = started(path)
    yield
    process.kill()
    process.join()


@pytest.fixture
def daemon(path):
    process = started(path, daemon=True)
    yield
    ended(process, path)


@pytest.fixture
def spawned(path):
    running = mp.spawn(work, (path,), nprocs=2, join=False)
    yield
    open(path, "w").close()
    for process in running.processes:
        process.join()


def test_joined(rank):
    pass


def test_joined_of_torch(spawned):
    pass


def test_looked_at(looked_at):
    pass


def test_killed(killed):
    pass


def test_daemon(daemon):
    pass


def test_fails(rank):
    assert False


def test_skipped(rank):
    pytest.skip("no network")


@pytest.mark.xfail
def test_expected(rank):
    assert False


@pytest.mark.xfail
def test_unexpected(rank):
    pass


@pytest.mark.xfail
def test_expected_of_the_call(path):
    ended(started(path), path)


class TestModule:
    @pytest.fixture(scope="class", params=["well", "badly"])
    def kept(self, tmp_path_factory, request):
        path = str(tmp_path_factory.mktemp("kept") / "go")
        process = started(path, 3 if request.param == "badly" else 0)
        yield
        ended(process, path)

    def test_fails(self, kept):
        assert False

    def test_first(self, kept):
        pass

    def test_last(self, kept):
        pass


class TestClass(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path = f"{__file__}.go"
        cls.process = started(cls.path)

    @classmethod
    def tearDownClass(cls):
        ended(cls.process, cls.path)

    def test_first(self):
        pass

    def test_last(self):
        pass


left = []


def test_leaves_one_behind_and_fails(tmp_path):
    left.append((started(str(tmp_path / "go")), str(tmp_path / "go")))
    assert False


def test_after():
    ended(*left.pop())
"""
LATE_ENDS = {
    "test_joined": "crashed", "test_joined_of_torch": "crashed", "test_looked_at[0]": "passed", "test_looked_at[3]": "passed",
    "test_killed": "passed", "test_daemon": "passed", "test_fails": "failed", "test_skipped": "skipped", "test_expected": "skipped",
    "test_unexpected": "skipped", "test_expected_of_the_call": "skipped", "TestModule::test_fails[well]": "failed",
    "TestModule::test_first[well]": "passed", "TestModule::test_last[well]": "passed", "TestModule::test_fails[badly]": "failed",
    "TestModule::test_first[badly]": "passed", "TestModule::test_last[badly]": "crashed", "TestClass::test_first": "passed",
    "TestClass::test_last": "crashed", "test_leaves_one_behind_and_fails": "failed", "test_after": "passed",
}  # fmt: skip


@pytest.mark.parametrize("engine", ["local", *in_whole("fresh")])
def test_ranks_that_die_after_the_call(events, engine):
    """A rank that a fixture waits for may die there: who sees it die and says nothing has not passed; ranks that live on are no matter."""
    found = events(engine, LATE)
    assert {name: event["outcome"] for name, event in found.items()} == LATE_ENDS
    for name in ("test_joined", "TestModule::test_last[badly]", "TestClass::test_last"):
        assert re.search(r"left with exit status 3, \d\.\d s after its start, but the test ended as passed", found[name]["reason"])
    assert [found[name]["when"] for name in ("test_unexpected", "test_expected_of_the_call")] == ["teardown", "call"]
    assert [text for _, text in found["test_joined_of_torch"]["sections"]] == ["rank 1 looks\n"]


RECEIPTS = """
import multiprocessing
import os
import time

import torch
import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiProcContinuousTest, MultiProcessTestCase, MultiThreadedTestCase


class TestProcesses(MultiProcessTestCase):
    world_size = 2

    def setUp(self):
        super().setUp()
        self._spawn_processes()

    def test_groups(self):
        store = dist.FileStore(self.file_name, self.world_size)
        dist.init_process_group("gloo", store=store, rank=self.rank, world_size=self.world_size)
        alone = dist.new_group([0])
        if self.rank == 0:
            dist.all_reduce(torch.ones(1), group=alone)
            store.set("done", "")
        else:  # not before: the other may still connect to it
            store.wait(["done"])
            os._exit(5)


class TestThreads(MultiThreadedTestCase):
    world_size = 2

    def setUp(self):
        super().setUp()
        self._spawn_threads()

    def test_threads(self):
        dist.all_reduce(torch.ones(1))


class TestContinuous(MultiProcContinuousTest):
    world_size = 2

    @classmethod
    def backend_str(cls):
        return "gloo"

    @classmethod
    def device_type(cls):
        return "cpu"

    def test_a(self):
        dist.all_reduce(torch.ones(1))

    def test_b(self):
        dist.all_reduce(torch.ones(1))


def test_own_group(tmp_path):
    torch.manual_seed(1729)
    dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    dist.destroy_process_group()


def test_no_group():
    assert True


def test_ranks_of_a_rank():
    process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(0.3,), name="process 7")
    process.start()
    process.join()
"""


def receipts(found: dict[str, Event]) -> dict[str, Receipt]:
    """Give the receipt of each report, as it travels."""
    return {name: Receipt.of(json.loads(json.dumps(event["receipt"]))) for name, event in found.items()}


def test_receipts(events):
    """Each test's receipt holds the ranks of that test alone, its groups, device and seed."""
    found = receipts(events("local", RECEIPTS))
    processes = found["TestProcesses::test_groups"]
    assert [(rank.name, rank.exit_code) for rank in processes.ranks] == [("rank 0", 0), ("rank 1", 5)]
    assert (processes.world_size, processes.backend, processes.device) == (2, "gloo", "cpu")
    assert all(rank.started > 0 and rank.duration > 0 for rank in processes.ranks)

    threads = found["TestThreads::test_threads"]
    assert [(rank.name, rank.exit_code) for rank in threads.ranks] == [("rank 0", 0), ("rank 1", 0)]
    assert (threads.world_size, threads.backend) == (2, "threaded")

    first, second = found["TestContinuous::test_a"], found["TestContinuous::test_b"]
    assert [(rank.name, rank.exit_code) for rank in second.ranks] == [("rank 0", None), ("rank 1", None)]
    assert (first.world_size, first.backend) == (second.world_size, second.backend) == (2, "gloo")

    own = found["test_own_group"]
    assert (own.ranks, own.world_size, own.backend, own.seed) == ((), 1, "gloo", 1729)
    none = found["test_no_group"]
    assert (none.ranks, none.world_size, none.backend) == ((), None, "")

    (rank,) = found["test_ranks_of_a_rank"].ranks
    assert (rank.name, rank.exit_code) == ("rank 7", 0)
    assert rank.duration >= 0.3
    assert none.versions["python"] == ".".join(map(str, sys.version_info[:3]))
    assert none.versions["torch"].startswith("2")


NEW_INTERPRETERS = """
import multiprocessing
import os

import torch
import torch.distributed as dist


def work(rank, place):
    store = dist.FileStore(place, 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    dist.new_group([0])
    if rank == 0:
        store.set("done", "")
    else:  # not before: the other may still connect to it
        store.wait(["done"])
        os._exit(5)


def test_groups(tmp_path):
    start = multiprocessing.get_context("spawn").Process
    ranks = [start(target=work, args=(rank, str(tmp_path / "store")), name=f"process {rank}") for rank in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [0, 5]


def test_own_group(tmp_path):
    torch.manual_seed(1729)
    dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    dist.destroy_process_group()
"""


def test_receipt_of_new_interpreters(events):
    """Ranks that are new interpreters note the same, though torch is imported after the notes begin."""
    found = receipts(events("fresh", NEW_INTERPRETERS))
    processes = found["test_groups"]
    assert [(rank.name, rank.exit_code) for rank in processes.ranks] == [("rank 0", 0), ("rank 1", 5)]
    assert (processes.world_size, processes.backend) == (2, "gloo")
    assert (found["test_own_group"].world_size, found["test_own_group"].backend, found["test_own_group"].seed) == (1, "gloo", 1729)


CLOSES = """
import multiprocessing
import os


def body():
    keep = os.dup(1)
    os.closerange(keep + 1, 200)
    with open("other", "w") as stream:  # takes the number of a descriptor that was closed
        others = [os.dup(stream.fileno()) for _ in range(20)]
        assert others


def test_rank_closes_all():
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=body)
    process.start()
    process.join()
    assert process.exitcode == 0
    assert open("other").read() == ""
"""


def test_rank_without_a_pipe(events):
    """A rank that closes every descriptor runs on, and its notes go into no other file."""
    found = events("local", CLOSES)["test_rank_closes_all"]
    assert found["outcome"] == "passed", found
    assert len(found["receipt"]["ranks"]) == 1


PARDONS = """
import multiprocessing, os, signal, time
from rankbook.harness import deaths
from rankbook.listing import RankRecord

class Runtime:
    ranks = []
    pardoned = []
    def emit(self, event):
        pass
    def pardon(self, pid):
        self.pardoned.append(pid)

def started():
    process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(100,))
    process.start()
    return process

def main():
    runtime = Runtime()
    deaths.watch_looks(runtime)
    terminated, killed, signalled, looked_at = [started() for _ in range(4)]
    assert looked_at.exitcode is None and runtime.pardoned == []
    terminated.terminate()
    killed.kill()
    os.kill(signalled.pid, 0)
    os.kill(signalled.pid, signal.SIGKILL)
    signal.pidfd_send_signal(os.pidfd_open(looked_at.pid), signal.SIGKILL)
    looked_at.join()
    assert len(runtime.pardoned) == 3, runtime.pardoned
    assert looked_at.exitcode == -9 == looked_at.exitcode
    assert runtime.pardoned == [process.pid for process in (terminated, killed, signalled, looked_at)], runtime.pardoned
    print("all pardoned")

if __name__ == "__main__":
    main()
"""


def test_pardons(tmp_path):
    """The engine is told of each child that a test ends itself, or of whose death it takes note, once."""
    (tmp_path / "pardons.py").write_text(PARDONS)
    done = subprocess.run([sys.executable, "pardons.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "all pardoned\n", done.stderr


# World sizes

STATED = {
    "world_size = 1": True,
    "world_size: int = 1": True,
    "world_size = ONE": True,
    "world_size = TWO": False,
    "world_size = devices()": False,
    "world_size = devices() or 1": False,
    "@property\ndef world_size(self):\n    return 1": True,
    "@property\ndef world_size(self):\n    return min(1, devices())": False,
    "@property\ndef world_size(self):\n    if devices():\n        return devices()\n    return 1": False,
    "def setUp(self):\n    self.world_size = 1": True,
    "def setUp(self):\n    self.world_size = devices()": False,
    "def test_it(self):\n    pass\ntest_it._required_world_size = 1\nworld_size = devices()": True,
    "pass": True,
}
"""Bodies of a class whose base states 1, and whether 1 is on purpose."""


@pytest.mark.parametrize("body", STATED)
def test_one_on_purpose(body, tmp_path, monkeypatch):
    """Only the number itself is an intent: a number of devices that happens to be 1 is none."""
    name = f"stated_{uuid.uuid4().hex}"
    source = "ONE = 1\nTWO = 1\nTWO = devices = lambda: 1\n\nclass Base:\n    world_size = 1\n\nclass Case(Base):\n"
    (tmp_path / f"{name}.py").write_text(source + textwrap.indent(body, "    ") + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    case = __import__(name).Case()
    case._testMethodName = "test_it"
    assert world_size.is_one_on_purpose(case) is STATED[body]


# Notes


@given(
    st.builds(
        Note,
        pid=st.integers(1, 2**22),
        at=st.floats(0, 1e9, allow_nan=False),
        what=st.sampled_from([rank_notes.BEGAN, rank_notes.GROUP, rank_notes.SKIP]),
        rank=st.none() | st.integers(0, 10**6),
        text=st.text(max_size=rank_notes.LONGEST),
        size=st.integers(0, 10**6),
    )
)
def test_notes_round_trip(note):
    """A note is one line, which a pipe takes whole, and is read as it was written."""
    line = note.line()
    assert line.count(b"\n") == 1
    assert len(line) <= PIPE_TAKES_AT_ONCE
    assert Note.of(line) == note


@given(st.binary(max_size=80) | st.sampled_from([b"{}", b"[]", b"1", b'{"pid": 1}', b'[1, 2, "other", 4, "", 6]', b"null"]))
def test_what_is_no_note(line):
    """Whatever else comes through the pipe is passed over."""
    assert Note.of(line) is None


@pytest.fixture
def pipe() -> Iterator[tuple[Reader, Pen]]:
    """A pipe for notes, as a program's main process has it."""
    source, descriptor = os.pipe()
    for end in (source, descriptor):
        os.set_blocking(end, False)
    yield Reader(source), Pen(descriptor)
    for end in (source, descriptor):
        try:
            os.close(end)
        except OSError:
            continue


def test_notes_travel(pipe):
    """Notes come in order, each group once until another test begins."""
    reader, pen = pipe
    pen.write(rank_notes.BEGAN)
    for _ in range(2):
        pen.write(rank_notes.GROUP, text="gloo", size=2)
    pen.forget_groups()
    pen.write(rank_notes.GROUP, text="gloo", size=2)
    assert [(note.what, note.text, note.size) for note in reader.read()] == [("began", "", 0), ("group", "gloo", 2), ("group", "gloo", 2)]
    assert reader.read() == []
    assert not reader.may_miss


def test_full_pipe(pipe):
    """A pipe that nobody reads holds up no rank, and the reader knows that notes may be missing."""
    reader, pen = pipe
    for number in range(2000):
        pen.write(rank_notes.SKIP, text=f"{number} " + "x" * 200)
    assert 0 < len(reader.read()) < 2000
    assert reader.may_miss


def test_descriptor_of_something_else(pipe, tmp_path):
    """A pen whose descriptor now belongs to another file writes nothing, and does not travel."""
    _, pen = pipe
    with (tmp_path / "other").open("wb") as stream:
        os.dup2(stream.fileno(), pen.descriptor)
        pen.write(rank_notes.BEGAN)
        assert not pen.is_whole
        assert pen.__reduce__() == (bool, ())
    assert (tmp_path / "other").read_bytes() == b""


def test_reader_ended(pipe):
    """A rank whose program no longer reads goes on."""
    reader, pen = pipe
    os.close(reader._descriptor)
    pen.write(rank_notes.BEGAN)
    assert not select.select([], [], [], 0)[0]


@pytest.fixture
def calls(monkeypatch, tmp_path) -> Iterator[int]:
    """The file of last calls, as this process would have it in a program."""
    descriptor = last_calls.create()
    for name in ("descriptor", "identity", "root", "entered"):
        monkeypatch.setattr(last_calls.Held, name, getattr(last_calls.Held, name))
    last_calls.hold(descriptor, str(tmp_path))
    yield descriptor
    os.close(descriptor)


def call_from(path, name: str) -> None:
    """Have a line of a file call a function of torch.distributed, whose own wrapper notes it."""
    note = "wrapper = lambda name: note(name)\n"
    exec(compile(f"{note}\n\nwrapper({name!r})\n", str(path), "exec"), {"note": last_calls.note})


def test_last_calls_are_kept(calls, tmp_path):
    """Only the last one counts, with the line of the program; a test's begin and a new process with the same number know of none."""
    own = os.getpid()
    assert last_calls.last_call(own) == last_calls.LastCall()
    for name in ("barrier", "all_reduce"):
        call_from(tmp_path / "some" / "train.py", name)
    seen = last_calls.last_call(own)
    assert str(seen) == "all_reduce (some/train.py:4)"
    assert 0 < seen.at <= time.monotonic()
    assert seen.entered == 0
    last_calls.note_entry()
    entered = last_calls.last_call(own)
    assert (str(entered), entered.entered >= seen.at) == ("", True)
    call_from("<elsewhere>", "send")
    assert str(last_calls.last_call(own)) == "send"
    assert last_calls.last_call(own).entered == entered.entered
    assert last_calls.last_call(own + 1) == last_calls.LastCall()
    last_calls.hold(calls, str(tmp_path))
    assert last_calls.last_call(own) == last_calls.LastCall()


@given(name=st.text(max_size=400))
def test_last_calls_come_from_any_file(name):
    """Whatever a file is called, and however long its path is, the function is known, and no other process's place is written to."""
    descriptor = last_calls.create()
    before = {key: vars(last_calls.Held)[key] for key in ("descriptor", "identity", "root", "entered")}
    try:
        last_calls.hold(descriptor, "/root")
        call_from(f"/root/{name}".replace("\0", ""), "all_gather")
        assert last_calls.last_call(os.getpid(), descriptor).name == "all_gather"
        assert os.fstat(descriptor).st_size == (os.getpid() + 1) * last_calls.SIZE
    finally:
        os.close(descriptor)
        for key, value in before.items():
            setattr(last_calls.Held, key, value)


def test_last_calls_of_a_program_that_has_closed_them(calls, tmp_path):
    """Where the descriptor belongs to another file now, nothing is written into that; where there is none, nothing is known."""
    with (tmp_path / "other").open("w+b") as stream:
        os.dup2(stream.fileno(), calls)
        call_from(tmp_path / "train.py", "barrier")
    assert (tmp_path / "other").read_bytes() == b""
    last_calls.hold(-1, str(tmp_path))
    call_from(tmp_path / "train.py", "barrier")
    assert last_calls.last_call(os.getpid()) == last_calls.LastCall()
