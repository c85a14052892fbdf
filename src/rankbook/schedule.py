"""Runs tasks ahead on several threads, each on GPUs of its own; who starts next is decided by `Board`, without threads, clocks or locks.

Which GPUs other processes hold, only the leases know: a task that finds too few looks again after `RETRY` seconds, and one that has
waited for `PATIENCE` seconds, or that is waited for, claims its GPUs at the turnstile of the leases, where nobody overtakes it.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rankbook.errors import EngineError, RankbookError
from rankbook.gpus import Inventory
from rankbook.leases import Lease, Leases

RETRY = 0.05
"""Seconds after which GPUs that other processes held are asked for again."""
PATIENCE = 0.5
"""Seconds after which a task that finds too few GPUs because of other processes claims them."""
OVERTAKEN = 24
"""How often a task that is waited for may be overtaken by others that need GPUs, for each GPU of the machine.

Less often, and GPUs stand idle until enough of them are free: reports in order wait for one task after the other.
"""

Grant = tuple[str, ...] | None
"""GPUs as `CUDA_VISIBLE_DEVICES` names them; empty for none of those that are there, None where there are none to name."""


class Task(Struct, frozen=True, eq=False):
    """One piece of work, on GPUs that nobody else uses meanwhile."""

    order: int
    """Its place among tasks that need as many GPUs: lower first."""
    gpus: int
    """GPUs that it needs."""
    shared: bool
    """Whether it may share its GPUs with other tasks that say so."""
    run: Callable[[Grant], None]
    """Does the work, in a thread of its own."""
    stop: Callable[[], None] | None = None
    """Asks the work, from another thread, to end soon; it may come before `run` has got anywhere."""
    name: str = ""
    """For messages: a node id."""


class Ticket:
    """What `Scheduler.submit` gives: the right to wait for a task."""

    def __init__(self, scheduler: Scheduler, task: Task) -> None:
        self.task = task
        self._scheduler = scheduler
        self._future: Future[None] = Future()

    @property
    def is_done(self) -> bool:
        """Whether the task has ended or was cancelled."""
        return self._future.done()

    @property
    def is_running(self) -> bool:
        """Whether the task has started and not ended."""
        return self._future.running()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the task has ended; one that has not started goes next.

        Raises:
            BaseException: whatever the task raised.
            CancelledError: it was cancelled, or the scheduler was stopped before it started.
            TimeoutError: it has not ended within `timeout` seconds.
        """
        self._scheduler.hurry(self)
        self._future.result(timeout)

    def _settle(self, error: BaseException | None) -> None:
        if error is None:
            self._future.set_result(None)
        else:
            self._future.set_exception(error)


class Board:
    """Decides which waiting task starts now, from free slots and GPUs alone.

    A task that is waited for goes first, then the largest need, then the order. Tasks that need fewer GPUs fill what is left over, unless
    they have often overtaken one that is waited for: then GPUs are kept free until it can start. Tasks without GPUs fill free slots
    at any time.

    Args:
        slots: tasks that may run at the same time.
        gpus: ids of the GPUs.
    """

    def __init__(self, slots: int, gpus: Sequence[str]) -> None:
        self._slots = slots
        self._holders: dict[str, list[Task]] = {gpu: [] for gpu in gpus}
        self._running: dict[Task, tuple[str, ...]] = {}
        self._waiting: set[Task] = set()
        self._hurried: dict[Task, int] = {}
        """How often each has been overtaken since it is waited for."""
        self._queues: dict[tuple[int, bool], list[tuple[int, int, Task]]] = {}
        self._sequence = count()

    @property
    def has_slot(self) -> bool:
        """Whether one more task may run."""
        return len(self._running) < self._slots

    def add(self, task: Task) -> None:
        """Let a task wait for its turn."""
        self._waiting.add(task)
        heapq.heappush(self._queues.setdefault((task.gpus, task.shared), []), (task.order, next(self._sequence), task))

    def hurry(self, task: Task) -> None:
        """Let a waiting task go before all that were not hurried before it."""
        if task in self._waiting:
            self._hurried.setdefault(task, 0)

    def is_urgent(self, task: Task) -> bool:
        """Tell whether GPUs are kept free for a task until it can start."""
        return self._hurried.get(task, 0) >= OVERTAKEN * max(len(self._holders), 1)

    def remove(self, task: Task) -> bool:
        """Take away a waiting task; False when it does not wait."""
        found = task in self._waiting
        self._waiting.discard(task)
        self._hurried.pop(task, None)
        return found

    def offer(self, at_most: int | None = None) -> tuple[Task, tuple[str, ...]] | None:
        """Give the task that starts now, with the GPUs that it may choose from, best first; None when none can.

        Args:
            at_most: GPUs that are to be had, where others hold some too; None when all that are free here are.
        """
        if not self.has_slot:
            return None
        limit = len(self._holders)
        for task in self._in_turn():
            if task.gpus > limit:
                continue
            usable = self._usable(task)
            if len(usable) >= task.gpus and (at_most is None or task.gpus <= at_most):
                return task, usable
            if self.is_urgent(task):
                limit = 0
        return None

    def start(self, task: Task, gpus: Sequence[str]) -> None:
        """Note that a waiting task runs now, on these GPUs."""
        self.remove(task)
        self._running[task] = tuple(gpus)
        for gpu in gpus:
            self._holders[gpu].append(task)
        if task.gpus:
            self._hurried = {waiting: overtaken + 1 for waiting, overtaken in self._hurried.items()}

    def end(self, task: Task) -> None:
        """Note that a running task has ended."""
        for gpu in self._running.pop(task):
            self._holders[gpu].remove(task)

    def _in_turn(self) -> Iterator[Task]:
        yield from tuple(self._hurried)
        heads = [queue[0][2] for queue in self._live_queues()]
        yield from sorted(heads, key=lambda task: (-task.gpus, task.order))

    def _live_queues(self) -> Iterator[list[tuple[int, int, Task]]]:
        for key, queue in list(self._queues.items()):
            while queue and queue[0][2] not in self._waiting:
                heapq.heappop(queue)
            if queue:
                yield queue
            else:
                del self._queues[key]

    def _usable(self, task: Task) -> tuple[str, ...]:
        """Give the GPUs that a task may have: for one that shares, those that others leave it, unless nobody wants one alone."""
        if not task.shared:
            return tuple(gpu for gpu, holders in self._holders.items() if not holders)
        open_to_it = {gpu: holders for gpu, holders in self._holders.items() if all(holder.shared for holder in holders)}
        spread = sorted(open_to_it, key=lambda gpu: len(open_to_it[gpu]))
        in_use = tuple(gpu for gpu in spread if open_to_it[gpu])
        wanted_alone = any(gpus and not shared for gpus, shared in self._queues)
        return in_use if wanted_alone and len(in_use) >= task.gpus else tuple(spread)


class Scheduler:
    """Runs tasks ahead, each on a thread and on GPUs of its own.

    Args:
        jobs: tasks that may run at the same time.
        inventory: the GPUs that there are; where their number is not known, one task that needs any runs at a time.
        leases: keep other processes off the GPUs that a task has been granted.
    """

    def __init__(self, jobs: int, inventory: Inventory, leases: Leases) -> None:
        self.inventory = inventory
        self.leases = leases
        self._keys = {gpu.id: gpu.uuid for gpu in inventory.gpus} if inventory.is_known else {"all": "all"}
        self._ids = {key: gpu for gpu, key in self._keys.items()}
        self._board = Board(max(jobs, 1), tuple(self._keys))
        self._changed = threading.Condition()
        """Guards all that follows."""
        self._tickets: dict[Task, Ticket] = {}
        self._running: dict[Task, threading.Thread] = {}
        self._refused: dict[Task, float] = {}
        """When a task has first found too few GPUs because of other processes."""
        self._claiming: Task | None = None
        self._claimed: Lease | None = None
        self._stopped = False
        self._helpers: list[threading.Thread] = []

    def submit(self, task: Task) -> Ticket:
        """Let a task run as soon as it is its turn.

        Raises:
            EngineError: it needs more GPUs than there are, or the scheduler was stopped.
        """
        task = self._checked(task)
        ticket = Ticket(self, task)
        with self._changed:
            if self._stopped:
                raise EngineError("nothing can be started any more", where=task.name or None)
            self._tickets[task] = ticket
            self._board.add(task)
            if not self._helpers:
                self._help(self._dispatch)
            self._changed.notify_all()
        return ticket

    def hurry(self, ticket: Ticket) -> None:
        """Let a task go next, because someone waits for it now."""
        with self._changed:
            self._board.hurry(ticket.task)
            self._changed.notify_all()

    def cancel(self, ticket: Ticket) -> bool:
        """Take a task back; False when it has started already."""
        with self._changed:
            if not self._board.remove(ticket.task):
                return False
            del self._tickets[ticket.task]
            self._refused.pop(ticket.task, None)
            self._changed.notify_all()
        ticket._future.cancel()
        ticket._future.set_running_or_notify_cancel()
        return True

    def stop(self, seconds: float = 5.0) -> bool:
        """Start nothing more, ask what runs to end, and wait for it.

        Args:
            seconds: how long to wait.

        Returns:
            Whether everything has ended.
        """
        with self._changed:
            self._stopped = True
            waiting = [ticket for task, ticket in self._tickets.items() if task not in self._running]
            running = dict(self._running)
            self._changed.notify_all()
        for ticket in waiting:
            self.cancel(ticket)
        for task in running:
            if task.stop is not None:
                with suppress(Exception):
                    task.stop()
        end = time.monotonic() + seconds
        threads = [*running.values(), *self._helpers]
        for thread in threads:
            thread.join(max(end - time.monotonic(), 0.0))
        return not any(thread.is_alive() for thread in threads)

    def _checked(self, task: Task) -> Task:
        there = len(self._keys)
        if not self.inventory.is_known:
            return replace(task, gpus=min(task.gpus, 1))
        if task.gpus > there:
            few = f"this machine has {there or 'none'}" + (f" ({self.inventory.problem})" if self.inventory.problem else "")
            raise EngineError(f"needs {task.gpus} GPU{'s' if task.gpus > 1 else ''}, and {few}", where=task.name or None)
        return task

    def _help(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, name="rankbook-scheduler", daemon=True)
        self._helpers = [helper for helper in self._helpers if helper.is_alive()] + [thread]
        thread.start()

    def _dispatch(self) -> None:
        """Start what can start whenever something has changed; the scheduler's own thread."""
        with self._changed:
            while not self._stopped:
                self._changed.wait(RETRY if self._start_all() else None)
            if self._claimed is not None:
                self._claimed.release()

    def _start_all(self) -> bool:
        """Start all that can start; True when other processes are in the way of something."""
        self._start_claimed()
        at_most: int | None = None
        while not self._stopped and (offer := self._board.offer(at_most)):
            task, usable = offer
            try:
                lease = self._lease(task, usable)
            except RankbookError as error:
                self._fail(task, error)
                continue
            if lease is not None:
                self._start(task, lease)
                continue
            at_most = task.gpus - 1
            self._refuse(task)
        return at_most is not None

    def _lease(self, task: Task, usable: Sequence[str]) -> Lease | None:
        keys = [self._keys[gpu] for gpu in usable]
        return self.leases.take(keys, task.gpus, shared=task.shared, choose=self._choose)

    def _choose(self, keys: Sequence[str], wanted: int) -> Sequence[str]:
        return [self._keys[gpu] for gpu in self.inventory.choose([self._ids[key] for key in keys], wanted)]

    def _refuse(self, task: Task) -> None:
        """Let a task that other processes are in the way of claim its GPUs, if it has waited for long or is waited for."""
        since = self._refused.setdefault(task, time.monotonic())
        if self._claiming is None and (self._board.is_urgent(task) or time.monotonic() - since >= PATIENCE):
            self._claiming = task
            self._help(self._claim, task)

    def _claim(self, task: Task) -> None:
        """Wait at the turnstile for a task's GPUs; a thread of its own, so that others can start meanwhile."""

        def is_wanted() -> bool:
            return not self._stopped and task in self._tickets and task not in self._running

        lease = None
        try:
            lease = self.leases.take(tuple(self._ids), task.gpus, shared=task.shared, wait=is_wanted, choose=self._choose)
        except RankbookError as error:
            with self._changed:
                self._fail(task, error)
        with self._changed:
            if lease is None or not is_wanted():
                self._claiming = None
                if lease is not None:
                    lease.release()
            else:
                self._claimed = lease
            self._changed.notify_all()

    def _start_claimed(self) -> None:
        """Start the task whose GPUs have been claimed as soon as there is a slot for it."""
        task, lease = self._claiming, self._claimed
        if task is None or lease is None:
            return
        if task not in self._tickets:
            lease.release()
        elif self._board.has_slot:
            self._start(task, lease)
        else:
            self._board.hurry(task)
            return
        self._claiming = self._claimed = None

    def _start(self, task: Task, lease: Lease) -> None:
        self._refused.pop(task, None)
        granted = {self._ids[key] for key in lease.ids}
        gpus = tuple(gpu for gpu in self._keys if gpu in granted)
        self._board.start(task, gpus)
        thread = threading.Thread(target=self._run, args=(task, gpus, lease), name=f"rankbook {task.name}", daemon=True)
        self._running[task] = thread
        self._tickets[task]._future.set_running_or_notify_cancel()
        try:
            thread.start()
        except RuntimeError as error:
            self._end(task, lease, EngineError(f"no thread could be started: {error}", where=task.name or None))

    def _run(self, task: Task, gpus: tuple[str, ...], lease: Lease) -> None:
        error: BaseException | None = None
        try:
            task.run(gpus if self.inventory.is_known and (gpus or self.inventory.gpus or self.inventory.declared) else None)
        except BaseException as raised:  # noqa: BLE001 — whatever it is, who waits for the task gets it
            error = raised
        with self._changed:
            self._end(task, lease, error)
            if self._start_all():
                self._changed.notify_all()

    def _end(self, task: Task, lease: Lease, error: BaseException | None) -> None:
        lease.release()
        self._board.end(task)
        del self._running[task]
        self._tickets.pop(task)._settle(error)

    def _fail(self, task: Task, error: BaseException) -> None:
        if self._board.remove(task):
            self._tickets.pop(task)._settle(error)
