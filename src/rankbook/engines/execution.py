"""The caller's side of a program under way: its events as they come, its deadline, and its end."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from rankbook.engines import processes, wire
from rankbook.engines.job import Job, prepare
from rankbook.errors import EngineError
from rankbook.listing import Ended, Event, Program

START_LIMIT = 60.0
"""Seconds that a supervisor has to report itself."""
END_LIMIT = 8.0
"""Seconds that a supervisor has to end a program, stacks written."""
STOP_LIMIT = 1.5
"""The same when somebody waits: Ctrl-C."""

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
        self._heard = time.monotonic()
        self._limit = job.program.timeout
        self._overdue = False
        self._selector = selectors.PollSelector()
        self._selector.register(events, selectors.EVENT_READ)
        self._selector.register(control, selectors.EVENT_READ)

    def events(self) -> Iterator[Event]:
        """Yield the program's events as they come; ends when all its processes have ended."""
        while self._ended is None:
            ready = {key.fd for key, _ in self._selector.select(max(0.0, self._heard + self._limit - time.monotonic()))}
            if self._source in ready:
                yield from self._read_events()
            elif self._control.fileno() in ready:
                yield from self._last_events()
                self._finish()
            elif self._ended is None:
                self._miss_deadline()

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
            with contextlib.suppress(OSError):
                wire.send(self._control, {"do": "stop"})

    def stop(self) -> None:
        """End all its processes now."""
        self.ask_to_stop()
        if self._ended is None:
            self._finish(STOP_LIMIT)

    def _read_events(self) -> Iterator[Event]:
        data = os.read(self._source, 1 << 20)
        if not data:
            self._selector.unregister(self._source)
            return
        self._heard = time.monotonic()
        lines = data.split(b"\n")
        lines[0] = bytes(self._partial + lines[0]) if len(lines) > 1 else lines[0]
        if len(lines) > 1:
            self._partial.clear()
        self._partial += lines.pop()
        for line in lines:
            with contextlib.suppress(ValueError):  # something else has written into the descriptor
                yield json.loads(line)

    def _last_events(self) -> Iterator[Event]:
        os.set_blocking(self._source, False)
        with contextlib.suppress(BlockingIOError):
            while self._source in self._selector.get_map():
                yield from self._read_events()

    def _miss_deadline(self) -> None:
        if self._overdue:  # the supervisor does not answer either
            self._lose()
            return
        self._overdue = True
        self._heard, self._limit = time.monotonic(), END_LIMIT
        with contextlib.suppress(OSError):
            wire.send(self._control, {"do": "end-hung"})

    def _finish(self, limit: float = END_LIMIT) -> None:
        self._control.settimeout(limit)
        try:
            received = wire.receive(self._control)
        except TimeoutError:
            received = None
        if received is None:
            self._lose()
        else:
            self._close(replace(self._lost, **{**received[0], "left": tuple(received[0]["left"])}))

    def _lose(self) -> None:
        processes.send_signal(self._supervisor, signal.SIGKILL)
        self._close(replace(self._lost, hung=self._overdue))

    def _close(self, ended: Ended) -> None:
        self._ended = ended
        self._selector.close()
        self._control.close()
        os.close(self._source)
        shutil.rmtree(self._job.folder, ignore_errors=True)


def start(program: Program, launch: Launch, engine: str, note: str = "") -> SupervisedExecution:
    """Start a program under a supervisor.

    Args:
        program: what runs.
        launch: how its supervisor starts.
        engine: name of the engine, for the record.
        note: why it is not the engine that was asked for.

    Raises:
        EngineError: no supervisor could be started.
    """
    if not Path(program.root).is_dir():
        raise EngineError(f"{program.name} cannot run in {program.root}", right="its root must be a folder")
    job = prepare(program)
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


def still_running(executions: Iterable[SupervisedExecution]) -> list[SupervisedExecution]:
    """Leave out what has ended."""
    return [execution for execution in executions if not execution.is_over]


def stop_all(executions: Iterable[SupervisedExecution]) -> None:
    """End all programs, at the same time."""
    running = still_running(executions)
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
