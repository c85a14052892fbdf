"""The scheduler: who starts when, on which GPUs, beside other processes, and how it ends."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbook import schedule
from rankbook.errors import EngineError
from rankbook.gpus import Gpu, Inventory, inventory
from rankbook.leases import Leases
from rankbook.schedule import OVERTAKEN, Board, Scheduler, Task

SECONDS = 60


@pytest.fixture
def scheduler(tmp_path, request):
    """A scheduler with four jobs on four declared GPUs, or what the test asks for."""
    jobs, gpus = getattr(request, "param", (4, "4"))
    found = Scheduler(jobs, inventory(gpus) if isinstance(gpus, str) else gpus, Leases(tmp_path / "leases"))
    yield found
    assert found.stop()


def task(order=0, gpus=0, *, shared=False, run=lambda _grant: None, **values):
    return Task(order, gpus, shared, run, **values)


class Gate:
    """A task that runs until it is opened, and tells its grant."""

    def __init__(self, order=0, gpus=0, *, shared=False):
        self.started = threading.Event()
        self.opened = threading.Event()
        self.grant = "not started"
        self.task = task(order, gpus, shared=shared, run=self.run, stop=self.opened.set)

    def run(self, grant):
        self.grant = grant
        self.started.set()
        assert self.opened.wait(SECONDS)

    @property
    def runs(self):
        return self.started.wait(SECONDS)


def eventually(condition):
    end = time.monotonic() + SECONDS
    while not (answer := bool(condition())) and time.monotonic() < end:
        time.sleep(0.005)
    return answer


# --- the decision ---


def on_board(board, *tasks):
    """Add tasks, start what can start, and give the orders of what has started with its GPUs."""
    for each in tasks:
        board.add(each)
    started = []
    while offer := board.offer():
        chosen, usable = offer
        board.start(chosen, usable[: chosen.gpus])
        started.append((chosen.order, "".join(usable[: chosen.gpus])))
    return started


def test_the_largest_need_goes_first():
    """By need, then by order; what is left over is filled."""
    board = Board(8, "0123")
    assert on_board(board, task(0, 1), task(1, 2), task(2, 3), task(3), task(4, 1)) == [(2, "012"), (0, "3"), (3, "")]


def test_slots_are_for_those_that_run():
    """A task that waits for GPUs takes no slot from those that need none."""
    board = Board(2, "01")
    big = task(0, 2)
    assert on_board(board, big, task(1, 2), task(2), task(3)) == [(0, "01"), (2, "")]
    board.end(big)
    assert on_board(board) == [(1, "01")]


def test_one_that_is_waited_for_goes_next():
    """Whatever the others need."""
    board = Board(1, "01")
    first, small, big = task(0, 1), task(1), task(2, 2)
    assert on_board(board, first) == [(0, "0")]
    board.add(small)
    board.add(big)
    board.hurry(small)
    board.end(first)
    assert on_board(board) == [(1, "")]


def test_one_that_is_waited_for_is_not_overtaken_for_ever():
    """After some others GPUs are kept free until it can start, but tasks without GPUs go on."""
    board = Board(8, "01")
    wanted = task(0, 2)
    running = task(1, 1)
    on_board(board, running)
    board.add(wanted)
    board.hurry(wanted)
    overtaking = 0
    for order in range(2, 1000):
        small = task(order, 1)
        if not on_board(board, small):
            break
        overtaking += 1
        board.end(small)
    assert overtaking == OVERTAKEN * 2
    assert on_board(board, task(2000)) == [(2000, "")]
    board.end(running)
    assert on_board(board) == [(0, "01")]


def test_who_shares():
    """Those that share spread over all GPUs, unless one is wanted alone; then they move together."""
    board = Board(8, "012")
    sharing = [task(order, 1, shared=True) for order in range(4)]
    assert on_board(board, *sharing) == [(0, "0"), (1, "1"), (2, "2"), (3, "0")]
    for each in sharing[1:3]:
        board.end(each)
    assert on_board(board, task(4, 3), task(5, 1, shared=True), task(6, 2)) == [(6, "12"), (5, "0")]


def test_what_others_hold():
    """Where fewer GPUs are to be had than are free here, only smaller needs are offered, and none once one is urgent."""
    board = Board(8, "0123")
    big, small = task(0, 3), task(1, 1)
    board.add(big)
    board.add(small)
    assert board.offer() == (big, ("0", "1", "2", "3"))
    assert board.offer(at_most=2) == (small, ("0", "1", "2", "3"))
    assert board.offer(at_most=0) is None


def test_taken_back():
    """A task that was taken back is never offered."""
    board = Board(8, "01")
    big = task(0, 2)
    board.add(big)
    board.hurry(big)
    assert board.remove(big)
    assert not board.remove(big)
    assert board.offer() is None


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.booleans()), max_size=40), st.integers(1, 6), st.randoms())
def test_any_tasks_all_run_and_none_collide(wishes, slots, chance):
    """Whatever is asked for, hurried and shared: all run, within the slots, and a GPU is alone unless all on it share."""
    board = Board(slots, "0123")
    tasks = [task(order, gpus, shared=shared) for order, (gpus, shared, _) in enumerate(wishes)]
    running = {}
    done = 0
    for each, (_, _, hurried) in zip(tasks, wishes, strict=True):
        board.add(each)
        if hurried:
            board.hurry(each)
    while done < len(tasks):
        while offer := board.offer():
            chosen, usable = offer
            assert len(usable) >= chosen.gpus
            taken = chance.sample(usable, chosen.gpus)
            board.start(chosen, taken)
            running[chosen] = taken
            assert len(running) <= slots
            for gpu in taken:
                holders = [other for other, held in running.items() if gpu in held]
                assert len(holders) == 1 or all(holder.shared for holder in holders)
        assert running, "nothing runs, and nothing may start"
        ended = chance.choice(sorted(running, key=lambda each: each.order))
        board.end(ended)
        del running[ended]
        done += 1


def test_near_the_shortest_time_there_is():
    """1,500 tasks on 8 GPUs by a virtual clock: within 5 % of the lower bound, also when each is waited for in turn."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
    try:
        import schedule as benchmark
    finally:
        sys.path.pop(0)
    work = benchmark.corpus(1500)
    bound = benchmark.lower_bound(work)
    assert bound <= benchmark.by_board(work, in_order=False) <= 1.05 * bound
    assert bound <= benchmark.by_board(work, in_order=True) <= 1.05 * bound
    assert benchmark.by_fifo(work) > 1.15 * bound
    assert benchmark.by_waves(work) > 1.5 * bound


# --- threads ---


def test_grants(scheduler):
    """A grant names as many GPUs as were asked for; none of those that are there is an empty one."""
    grants = []
    for gpus in (0, 1, 4):
        scheduler.submit(task(gpus=gpus, run=grants.append)).wait(SECONDS)
    assert grants == [(), ("0",), ("0", "1", "2", "3")]


@pytest.mark.parametrize("scheduler", [(2, Inventory()), (2, Inventory(is_known=False))], indirect=True, ids=["no GPUs", "unknown GPUs"])
def test_no_grant_where_there_is_nothing_to_name(scheduler):
    """Without GPUs, or with an unknown number of them, the variable stays as the caller has it."""
    grants = []
    scheduler.submit(task(run=grants.append)).wait(SECONDS)
    assert grants == [None]


@pytest.mark.parametrize("scheduler", [(4, "0")], indirect=True)
def test_gpus_that_are_declared_away(scheduler):
    """A declaration of none hides those that are there."""
    grants = []
    scheduler.submit(task(run=grants.append)).wait(SECONDS)
    assert grants == [()]


@pytest.mark.parametrize("scheduler", [(4, Inventory(is_known=False))], indirect=True)
def test_unknown_gpus_are_for_one_at_a_time(scheduler):
    """Where nobody knows how many there are, two tasks that need some do not run together."""
    first, second, other = Gate(0, 2), Gate(1, 8), Gate(2)
    tickets = [scheduler.submit(gate.task) for gate in (first, second, other)]
    assert first.runs
    assert other.runs
    assert not second.started.is_set()
    first.opened.set()
    assert second.runs
    assert second.grant is None
    second.opened.set()
    other.opened.set()
    for ticket in tickets:
        ticket.wait(SECONDS)


@pytest.mark.parametrize(
    ("there", "needs", "said"),
    [
        (inventory("2"), 4, "a.md::b: needs 4 GPUs, and this machine has 2"),
        (Inventory(), 1, "a.md::b: needs 1 GPU, and this machine has none"),
        (Inventory(problem="nvidia-smi says: no"), 2, r"a.md::b: needs 2 GPUs, and this machine has none \(nvidia-smi says: no\)"),
    ],
)
def test_what_can_never_run_is_refused_at_once(tmp_path, there, needs, said):
    """More GPUs than there are would be waited for for ever."""
    scheduler = Scheduler(1, there, Leases(tmp_path))
    with pytest.raises(EngineError, match=f"^{said}$"):
        scheduler.submit(task(gpus=needs, name="a.md::b"))
    assert scheduler.stop()


def test_peers_are_granted_together(tmp_path):
    """Several GPUs are peers where there are such, in the machine's order."""
    gpus = tuple(Gpu(str(index), f"GPU-{index}") for index in range(4))
    there = Inventory(gpus, frozenset({frozenset("03"), frozenset("12")}))
    scheduler = Scheduler(4, there, Leases(tmp_path))
    first, second = Gate(0, 2), Gate(1, 2)
    for gate in (first, second):
        scheduler.submit(gate.task)
        assert gate.runs
    assert {first.grant, second.grant} == {("0", "3"), ("1", "2")}
    assert scheduler.stop()


def test_the_error_of_a_task_is_raised_where_it_is_waited_for(scheduler):
    """Every kind of error, and the next task runs all the same."""

    def fail(_grant):
        raise SystemExit(3)

    failing = scheduler.submit(task(gpus=4, run=fail))
    with pytest.raises(SystemExit):
        failing.wait(SECONDS)
    scheduler.submit(task(gpus=4)).wait(SECONDS)


def test_a_task_that_is_waited_for_overtakes(scheduler):
    """The one that someone waits for starts before larger ones that were there before it."""
    held = [Gate(order) for order in range(4)]
    for gate in held:
        scheduler.submit(gate.task)
        assert gate.runs
    ran = []
    big = scheduler.submit(task(4, 4, run=lambda _: ran.append("big")))
    small = scheduler.submit(task(5, run=lambda _: ran.append("small")))
    scheduler.hurry(small)
    held[0].opened.set()
    small.wait(SECONDS)
    big.wait(SECONDS)
    assert ran == ["small", "big"]


def test_taken_back_before_it_starts(scheduler):
    """A task that has not started never does; one that has is not taken back."""
    holder = Gate(0, 4)
    running = scheduler.submit(holder.task)
    assert holder.runs
    waiting = scheduler.submit(task(1, 1, run=lambda _: pytest.fail("it ran")))
    assert scheduler.cancel(waiting)
    assert not scheduler.cancel(waiting)
    assert not scheduler.cancel(running)
    with pytest.raises(CancelledError):
        waiting.wait(SECONDS)
    assert waiting.is_done
    assert running.is_running
    holder.opened.set()
    running.wait(SECONDS)


def test_the_end(tmp_path):
    """What runs is told, what waits never starts, no thread and no lease is left."""
    leases = Leases(tmp_path)
    scheduler = Scheduler(2, inventory("2"), leases)
    gate = Gate(0, 2)
    running, waiting = scheduler.submit(gate.task), scheduler.submit(task(1, 2, run=lambda _: pytest.fail("it ran")))
    assert gate.runs
    assert scheduler.stop(SECONDS)
    running.wait(0)
    with pytest.raises(CancelledError):
        waiting.wait(SECONDS)
    with pytest.raises(EngineError, match="nothing can be started any more"):
        scheduler.submit(task())
    assert leases.take(("declared-0", "declared-1"), 2)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rankbook")]


def test_the_end_has_a_bound(tmp_path):
    """A task that does not listen is left behind, and said to be."""
    scheduler = Scheduler(2, inventory("2"), Leases(tmp_path))
    gate = Gate()
    scheduler.submit(task(run=gate.run))
    assert gate.runs
    assert not scheduler.stop(0.1)
    gate.opened.set()
    assert scheduler.stop(SECONDS)


def test_many_tasks(scheduler):
    """Two hundred tasks on four threads and four GPUs: each has its GPUs alone, all run."""
    holders = dict.fromkeys("0123", 0)
    guard = threading.Lock()
    met, done = [], []
    chance = random.Random(0)

    def work(grant):
        with guard:
            for gpu in grant:
                holders[gpu] += 1
                met.extend([gpu] * (holders[gpu] - 1))
        time.sleep(0.0005)
        with guard:
            for gpu in grant:
                holders[gpu] -= 1
            done.append(len(grant))

    needs = [chance.choice((0, 0, 1, 2, 4)) for _ in range(200)]
    tickets = [scheduler.submit(task(order, gpus, run=work)) for order, gpus in enumerate(needs)]
    for ticket in tickets:
        ticket.wait(SECONDS)
    assert not met
    assert sorted(done) == sorted(needs)


# --- beside other processes ---


def test_gpus_that_others_hold(tmp_path, scheduler, monkeypatch):
    """What needs fewer goes on meanwhile; what needs more claims its GPUs, and starts when the other has ended."""
    other = Leases(tmp_path / "leases").take(("declared-0", "declared-1"), 2)
    ran = []
    with monkeypatch.context() as patch:
        patch.setattr(schedule, "PATIENCE", SECONDS)  # so that the others begin before it claims anything, however late that is
        big = scheduler.submit(task(0, 3, run=ran.append))
        scheduler.submit(task(1, 2, run=ran.append)).wait(SECONDS)
        scheduler.submit(task(2, run=ran.append)).wait(SECONDS)
    assert ran == [("2", "3"), ()]
    assert eventually(lambda: scheduler._claiming is big.task)
    other.release()
    big.wait(SECONDS)
    assert len(ran[2]) == 3


def test_a_claim_is_given_up(tmp_path, scheduler):
    """A task that is taken back while it claims GPUs holds up nobody."""
    leases = Leases(tmp_path / "leases")
    other = leases.take(("declared-0",), 1)
    big = scheduler.submit(task(0, 4, run=lambda _: pytest.fail("it ran")))
    assert eventually(lambda: scheduler._claiming is big.task)
    assert scheduler.cancel(big)
    assert eventually(lambda: scheduler._claiming is None)
    scheduler.submit(task(1, 3)).wait(SECONDS)
    other.release()


@pytest.mark.parametrize("scheduler", [(1, "2")], indirect=True)
def test_a_claim_waits_for_a_slot(tmp_path, scheduler):
    """GPUs that were claimed while all slots are taken are used as soon as one is free."""
    leases = Leases(tmp_path / "leases")
    other = leases.take(("declared-0",), 1)
    grants = []
    big = scheduler.submit(task(0, 2, run=grants.append))
    assert eventually(lambda: scheduler._claiming is big.task)
    gate = Gate(1)
    busy = scheduler.submit(gate.task)
    assert gate.runs
    other.release()
    assert eventually(lambda: scheduler._claimed)
    assert leases.take(("declared-0",), 1) is None
    gate.opened.set()
    big.wait(SECONDS)
    busy.wait(SECONDS)
    assert grants == [("0", "1")]


@pytest.mark.parametrize("scheduler", [(1, "2")], indirect=True)
def test_a_claim_that_nobody_wants_any_more(tmp_path, scheduler):
    """GPUs that were claimed for a task that was then taken back are free again."""
    leases = Leases(tmp_path / "leases")
    other = leases.take(("declared-0",), 1)
    big = scheduler.submit(task(0, 2, run=lambda _: pytest.fail("it ran")))
    assert eventually(lambda: scheduler._claiming is big.task)
    gate = Gate(1)
    busy = scheduler.submit(gate.task)
    assert gate.runs
    other.release()
    assert eventually(lambda: scheduler._claimed)
    assert scheduler.cancel(big)
    assert eventually(lambda: (lease := leases.take(("declared-0", "declared-1"), 2)) and not lease.release())
    gate.opened.set()
    busy.wait(SECONDS)


def test_a_folder_that_is_lost(tmp_path, scheduler):
    """Locks that can no longer be made fail the tasks that need them, and not the whole run."""
    (tmp_path / "leases").rmdir()
    failing = scheduler.submit(task(0, 1))
    with pytest.raises(EngineError, match="GPUs cannot be leased: No such file or directory"):
        failing.wait(SECONDS)
    scheduler.submit(task(1)).wait(SECONDS)


OTHER_RUN = """
import sys, time
from pathlib import Path
from rankbook.gpus import inventory
from rankbook.leases import Leases
from rankbook.schedule import Scheduler, Task
folder, count = Path(sys.argv[1]), int(sys.argv[2])
met = []
def work(grant):
    assert len(grant) == count
    for gpu in grant:
        try:
            (folder / gpu).mkdir()
        except FileExistsError:
            met.append(gpu)
    time.sleep(0.005)
    for gpu in grant:
        (folder / gpu).rmdir()
scheduler = Scheduler(8, inventory("4"), Leases(folder / "leases"))
for ticket in [scheduler.submit(Task(order, count, False, work)) for order in range(int(sys.argv[3]))]:
    ticket.wait(60)
print(len(met), scheduler.stop())
"""


def test_two_runs_on_one_machine(tmp_path):
    """One run wants all GPUs for each task, the other one for each: no GPU is shared, and none of the two waits for ever."""
    arguments = (("4", "6"), ("1", "120"))
    runs = [
        subprocess.Popen([sys.executable, "-c", OTHER_RUN, str(tmp_path), *each], stdout=subprocess.PIPE, text=True) for each in arguments
    ]
    assert [run.communicate(timeout=SECONDS)[0] for run in runs] == ["0 True\n"] * 2
