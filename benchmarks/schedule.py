"""How near to the shortest possible time 1,500 listings come on 8 GPUs, beside other ways to schedule them.

    python benchmarks/schedule.py [--listings 1500] [--scale 0.04]

The needs are those of the files of PyTorch 2.6.0's test/distributed, the durations lognormal with a fixed seed. First a virtual clock
drives the decisions alone, then real threads with leases sleep for durations scaled down, then two processes share the GPUs.
"""

from __future__ import annotations

import argparse
import heapq
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path

from rankbook.gpus import inventory
from rankbook.leases import Leases
from rankbook.schedule import Board, Grant, Scheduler, Task

FILES = {0: 68, 1: 17, 2: 60, 4: 64, 8: 5}
"""Files of the corpus by the GPUs that they need."""
GPUS = 8
SLOTS = 16
ALLOWED = 1.05
"""Of the lower bound."""


@dataclass(frozen=True)
class Work:
    """One listing."""

    order: int
    gpus: int
    seconds: float


def corpus(listings: int, seed: int = 4) -> list[Work]:
    """Give listings with the corpus' needs, in the order of a book."""
    chance = random.Random(seed)
    needs = chance.choices(list(FILES), weights=list(FILES.values()), k=listings)
    return [Work(order, gpus, chance.lognormvariate(0.0, 1.0)) for order, gpus in enumerate(needs)]


def lower_bound(work: Sequence[Work]) -> float:
    """Give the time that no schedule beats: GPUs never idle, slots never idle, or the longest listing alone."""
    gpu_seconds = sum(item.gpus * item.seconds for item in work)
    return max(gpu_seconds / GPUS, sum(item.seconds for item in work) / SLOTS, *(item.seconds for item in work))


def by_board(work: Sequence[Work], *, in_order: bool) -> float:
    """Drive the board by a virtual clock.

    Args:
        work: the listings.
        in_order: whether one waits for each in the order of the book, as reports do.
    """
    board = Board(SLOTS, tuple(map(str, range(GPUS))))
    seconds = {}
    waited_for = []
    for item in work:
        task = Task(item.order, item.gpus, shared=False, run=lambda _grant: None)
        seconds[task] = item.seconds
        waited_for.append(task)
        board.add(task)
    running: list[tuple[float, int, Task]] = []
    done: set[Task] = set()
    now, ties, asked = 0.0, count(), 0
    while len(done) < len(work):
        while in_order and asked < len(work) and waited_for[asked] in done:
            asked += 1
        if in_order and asked < len(work):
            board.hurry(waited_for[asked])
        while offer := board.offer():
            task, usable = offer
            board.start(task, usable[: task.gpus])
            heapq.heappush(running, (now + seconds[task], next(ties), task))
        now, _, task = heapq.heappop(running)
        board.end(task)
        done.add(task)
    return now


def by_fifo(work: Sequence[Work]) -> float:
    """Start in the order of the book; who does not fit holds up all behind it."""
    ends: list[tuple[float, int]] = []
    now, free = 0.0, GPUS
    for item in work:
        while free < item.gpus or len(ends) >= SLOTS:
            now, gpus = heapq.heappop(ends)
            free += gpus
        heapq.heappush(ends, (now + item.seconds, item.gpus))
        free -= item.gpus
    return max(end for end, _ in ends)


def by_waves(work: Sequence[Work]) -> float:
    """Run those of one need together, as many as fit, and wait for all of them before the next."""
    now = 0.0
    for gpus in sorted(FILES):
        same = [item.seconds for item in work if item.gpus == gpus]
        width = min(SLOTS, GPUS // gpus) if gpus else SLOTS
        now += sum(max(same[at : at + width]) for at in range(0, len(same), width))
    return now


def serial(work: Sequence[Work]) -> float:
    """Run one after the other."""
    return sum(item.seconds for item in work)


class Watched:
    """Counts who is on each GPU, as the tasks themselves see it."""

    def __init__(self) -> None:
        self.intervals: dict[str, list[tuple[float, float]]] = defaultdict(list)

    def task(self, item: Work, scale: float) -> Callable[[Grant], None]:
        """Give the work of one task: sleep, and note when it had which GPUs."""

        def run(grant: Grant) -> None:
            start = time.monotonic()
            time.sleep(item.seconds * scale)
            for gpu in grant or ():
                self.intervals[gpu].append((start, time.monotonic()))

        return run


def by_threads(work: Sequence[Work], folder: Path, scale: float) -> tuple[float, dict[str, list[tuple[float, float]]]]:
    """Sleep on real threads, with real leases; gives the wall seconds, and when each GPU was held."""
    watched = Watched()
    scheduler = Scheduler(SLOTS, inventory(str(GPUS)), Leases(folder))
    start = time.monotonic()
    tickets = [scheduler.submit(Task(item.order, item.gpus, shared=False, run=watched.task(item, scale))) for item in work]
    for ticket in tickets:
        ticket.wait()
    wall = time.monotonic() - start
    assert scheduler.stop()
    return wall, dict(watched.intervals)


def shared_by_two(listings: int, folder: Path, scale: float) -> Iterator[str]:
    """Let two processes with the same GPUs run at once."""
    shares = [corpus(listings, seed) for seed in (5, 6)]
    start = time.monotonic()
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        done = [future.result() for future in [pool.submit(by_threads, work, folder, scale) for work in shares]]
    wall = time.monotonic() - start
    held = Counter[str]()
    for gpu in map(str, range(GPUS)):
        intervals = sorted(interval for _, by_gpu in done for interval in by_gpu.get(gpu, ()))
        held[gpu] = len(intervals)
        assert all(first[1] <= second[0] for first, second in pairwise(intervals)), f"GPU {gpu} was shared"
    assert sum(held.values()) == sum(item.gpus for work in shares for item in work), "a listing has not had its GPUs"
    bound = lower_bound([item for work in shares for item in work]) * scale
    yield f"two processes, {listings} listings each: bound {bound:.1f} s, first done after {min(w for w, _ in done):.1f} s, "
    yield f"second after {max(w for w, _ in done):.1f} s ({wall:.1f} s with their start); {sum(held.values())} grants of a GPU, none shared"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--listings", type=int, default=1500)
    parser.add_argument("--scale", type=float, default=0.04, help="seconds of sleep for one second of the virtual clock")
    chosen = parser.parse_args()
    work = corpus(chosen.listings)
    bound = lower_bound(work)
    started = time.process_time()
    ahead = by_board(work, in_order=False)
    deciding = (time.process_time() - started) / len(work) * 1000
    rows = {
        "lower bound": bound,
        "rankbook": ahead,
        "rankbook, waited for in order": by_board(work, in_order=True),
        "FIFO": by_fifo(work),
        "waves by need": by_waves(work),
        "serial": serial(work),
    }
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        wall, _ = by_threads(work, Path(folder), chosen.scale)
        overhead = (time.process_time() - started) / len(work) * 1000
        rows[f"rankbook, {SLOTS} threads and leases"] = wall / chosen.scale
        print(f"{len(work)} listings on {GPUS} GPUs and {SLOTS} slots; needs by listings: {dict(Counter(item.gpus for item in work))}")
        print("| way | virtual s | × lower bound |\n|---|--:|--:|")
        for name, seconds in rows.items():
            print(f"| {name} | {seconds:.1f} | {seconds / bound:.3f} |")
        print(f"deciding: {deciding:.3f} ms a listing; all of it, threads, locks and sleeps: {overhead:.3f} ms of CPU a listing")
        print("".join(shared_by_two(chosen.listings // 5, Path(folder) / "two", chosen.scale)))
    if not ahead <= ALLOWED * bound >= rows["rankbook, waited for in order"]:
        sys.exit(f"rankbook takes more than {ALLOWED} of the lower bound")


if __name__ == "__main__":
    main()
