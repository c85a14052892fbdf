"""The caller's side of a program under way: its events as they come, its deadline, and its end."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from rankbook.engines import leftovers, processes, wire
from rankbook.engines.job import Job, prepare
from rankbook.errors import EngineError
from rankbook.listing import Ended, Event, Program, RankEnd

START_LIMIT = 60.0
"""Seconds that a supervisor has to report itself."""
END_LIMIT = 8.0
"""Seconds that a supervisor has to end a program, stacks written."""
STOP_LIMIT = 4.0
"""The same when somebody waits: Ctrl-C. It takes a tenth of a second; a supervisor that is killed leaves what its program has started."""

Launch = Callable[[Job, socket.socket, int], None]
"""Starts a supervisor for a job, with its control socket and the descriptor for events."""


class SupervisorLostError(EngineError):
    """A supervisor ended before it could report itself."""


class SupervisedExecution:
    """A program that a supervisor looks after.

    Args:
        job: the program.
        control: socket to its supervisor.
        events: descriptor from which its events come.
        supervisor: process id of the supervisor.
        lost: how it ended if the supervisor never says; tells the engine, and why it is that one.
    """

    def __init__(self, job: Job, control: socket.socket, events: int, supervisor: int, lost: Ended) -> None:
        self._job = job
        self._control = control
        self._source = events
        self._supervisor = supervisor
        self._lost = lost
        self._ended: Ended | None = None
        self._partial = bytearray()
        self._reading = threading.RLock()
        self._sending = threading.Lock()
        self._heard = time.monotonic()
        self._limit = job.program.timeout
        self._overdue = False
        self._selector = selectors.PollSelector()
        self._selector.register(events, selectors.EVENT_READ)
        self._selector.register(control, selectors.EVENT_READ)

    def events(self) -> Iterator[Event]:
        """Yield the program's events as they come; ends when all its processes have ended."""
        while self._ended is None:
            yield from self._step()

    def _step(self) -> list[Event]:
        """Wait for what comes next: events, the end, or the deadline. One thread does so at a time; others may stop the program."""
        with self._reading:
            if self._ended is not None:
                return []
            ready = {key.fd for key, _ in self._selector.select(max(0.0, self._heard + self._limit - time.monotonic()))}
            if self._source in ready:
                return self._read_events()
            if self._control.fileno() not in ready:
                self._miss_deadline()
                return []
            last = self._last_events()
            self._finish()
            return last

    @property
    def ended(self) -> Ended:
        """How it ended; only after `events` is exhausted or `stop` was called.

        Raises:
            EngineError: it has not ended.
        """
        if self._ended is None:
            raise EngineError(f"{self._job.program.name} has not ended", right="exhaust its events or stop it first")
        return self._ended

    @property
    def is_over(self) -> bool:
        """Whether it is known how it ended."""
        return self._ended is not None

    def ask_to_stop(self) -> None:
        """Have all its processes ended, without waiting for it."""
        if self._ended is None:
            self._send("stop")

    def stop(self) -> None:
        """End all its processes now, also while another thread waits for its events."""
        self.ask_to_stop()
        if not self._reading.acquire(timeout=STOP_LIMIT):
            processes.send_signal(self._supervisor, signal.SIGKILL)  # which wakes the thread that waits
            self._reading.acquire()
        try:
            if self._ended is None:
                self._finish(STOP_LIMIT)
        finally:
            self._reading.release()

    def _send(self, order: str) -> None:
        with self._sending, contextlib.suppress(OSError):
            wire.send(self._control, {"do": order})

    def _read_events(self) -> list[Event]:
        data = os.read(self._source, 1 << 20)
        if not data:
            self._selector.unregister(self._source)
            return []
        self._heard = time.monotonic()
        lines = data.split(b"\n")
        lines[0] = bytes(self._partial + lines[0]) if len(lines) > 1 else lines[0]
        if len(lines) > 1:
            self._partial.clear()
        self._partial += lines.pop()
        events = []
        for line in lines:
            with contextlib.suppress(ValueError):  # something else has written into the descriptor
                event = json.loads(line)
                events.append(event | {"engine": self._lost.engine, "note": self._lost.note} if event["type"] == "began" else event)
        return events

    def _last_events(self) -> list[Event]:
        os.set_blocking(self._source, False)
        events = []
        with contextlib.suppress(BlockingIOError):
            while self._source in self._selector.get_map():
                events += self._read_events()
        return events

    def _miss_deadline(self) -> None:
        if self._overdue:  # the supervisor does not answer either
            self._lose()
            return
        self._overdue = True
        self._heard, self._limit = time.monotonic(), END_LIMIT
        self._send("end-hung")

    def _finish(self, limit: float = END_LIMIT) -> None:
        self._control.settimeout(limit)
        try:
            received = wire.receive(self._control)
        except TimeoutError:
            received = None
        if received is None:
            self._lose()
        else:
            self._close(replace(self._lost, **_as_ended(received[0])))

    def _lose(self) -> None:
        processes.send_signal(self._supervisor, signal.SIGKILL)
        self._close(replace(self._lost, hung=self._overdue))

    def _close(self, ended: Ended) -> None:
        self._ended = ended
        self._selector.close()
        self._control.close()
        os.close(self._source)
        leftovers.remove_folder(self._job.folder)


def _as_ended(message: wire.Message) -> dict[str, Any]:
    """Turn what a supervisor says into values of `Ended`."""
    death = message["death"]
    return {
        **message,
        "left": tuple(message["left"]),
        "ranks": tuple(RankEnd(**rank) for rank in message["ranks"]),
        "death": RankEnd(**death) if death else None,
        "waiting": tuple(message["waiting"]),
    }


def start(program: Program, launch: Launch, engine: str, note: str = "", scratch: Sequence[str] = ()) -> SupervisedExecution:
    """Start a program under a supervisor.

    Args:
        program: what runs.
        launch: how its supervisor starts.
        engine: name of the engine, for the record.
        note: why it is not the engine that was asked for.
        scratch: folders that go when this process is killed.

    Raises:
        EngineError: no supervisor could be started.
    """
    if not Path(program.root).is_dir():
        raise EngineError(f"{program.name} cannot run in {program.root}", right="its root must be a folder")
    job = prepare(program, scratch)
    mine, theirs = socket.socketpair()
    source, events = os.pipe()
    try:
        with theirs:
            launch(job, theirs, events)
        supervisor = _first_word(mine)
    except BaseException:
        mine.close()
        os.close(source)
        shutil.rmtree(job.folder, ignore_errors=True)
        raise
    finally:
        os.close(events)
    return SupervisedExecution(job, mine, source, supervisor, Ended(None, engine=engine, note=note))


class Executions:
    """The programs of an engine that are under way; several threads may add to them."""

    def __init__(self) -> None:
        self._running: list[SupervisedExecution] = []
        self._lock = threading.Lock()

    def add(self, execution: SupervisedExecution) -> SupervisedExecution:
        """Remember one that was started, and forget those that have ended."""
        with self._lock:
            self._running = [other for other in self._running if not other.is_over]
            self._running.append(execution)
        return execution

    def stop(self) -> None:
        """End all, at the same time."""
        with self._lock:
            running, self._running = self._running, []
        for execution in running:
            execution.ask_to_stop()
        for execution in running:
            execution.stop()


def _first_word(control: socket.socket) -> int:
    control.settimeout(START_LIMIT)
    try:
        received = wire.receive(control)
    except TimeoutError:
        received = None
    control.settimeout(None)
    if received is None:
        raise SupervisorLostError("a supervisor ended before it had begun")
    if "error" in received[0]:
        raise EngineError(f"no process can be started: {received[0]['error']}")
    return int(received[0]["supervisor"])
