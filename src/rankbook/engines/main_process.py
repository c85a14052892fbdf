"""A program's main process: it calls the program's entry, reports events, and ends as an interpreter does."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from rankbook import last_calls
from rankbook.engines import spawning, wire
from rankbook.engines.job import Birth
from rankbook.listing import Event, Program, RankRecord, Runtime

SHOW_LIMIT = 10.0
"""Seconds that the supervisor has to show the stacks of a process."""


class MainRuntime:
    """The `Runtime` of a program.

    Args:
        events: descriptor that takes events, one JSON object a line.
        notes: socket on which the supervisor is told of ranks.
    """

    def __init__(self, events: int, notes: int) -> None:
        self.ranks: list[RankRecord] = []
        self._events = events
        self._notes = notes
        self._lock = threading.Lock()
        self._owner = os.getpid()

    def pardon(self, pid: int | None) -> None:
        """Say that the death of a rank is expected: of the one with this process id, or of any rank so far when it is None."""
        self._tell({"do": "pardon", "pid": pid})

    def show(self, pid: int) -> None:
        """Have a process of the program write its stacks, and wait until they are among the output."""
        shown, done = os.pipe()
        try:
            self._tell({"do": "show", "pid": pid}, done)
        finally:
            os.close(done)
        select.select([shown], [], [], SHOW_LIMIT)
        os.close(shown)

    def _tell(self, message: wire.Message, *descriptors: int) -> None:
        if os.getpid() == self._owner:
            with contextlib.suppress(OSError):
                wire.tell(self._notes, message, descriptors)

    def emit(self, event: Event) -> None:
        """Report an event at once; in a fork of the main process nothing is reported."""
        if os.getpid() != self._owner:
            return
        if event.get("type") == "start":  # what died before this test is no news to it
            self._tell({"do": "forget"})
        rest = memoryview(json.dumps(event).encode() + b"\n")
        with self._lock:
            while rest:
                rest = rest[os.write(self._events, rest) :]


def run(birth: Birth, *, forks: bool) -> NoReturn:
    """Run a program in this process, which has its streams and environment, and end.

    Args:
        birth: what it got from the supervisor.
        forks: whether the supervisor forks its ranks.
    """
    job = birth.job
    program = job.program
    # Not before: where the caller's PYTHONPATH is relative, it is so to the caller's folder.
    spawning.enter(program.root)
    spawning.write_lines()
    spawning.listen(birth.stacks)
    last_calls.hold(birth.calls, program.root)
    spawning.clear_main()
    sys.argv = [str(Path(program.root) / program.path)]
    runtime = MainRuntime(birth.events, birth.notes)
    spawning.install(spawning.Setting(program.root, birth.stacks, birth.notes, birth.calls, forks, job.outputs))
    spawning.record_starts(runtime.ranks, birth.notes)
    status = spawning.exit_status(lambda: _run(program, runtime))
    with contextlib.suppress(OSError):  # the disk may be full
        job.finished.touch()
    spawning.finish(status)


def _run(program: Program, runtime: Runtime) -> int:
    entry = _entry(program.entry)
    sys.path[:] = [*program.imports_first, *sys.path, *program.imports_last]  # not before: none of ours is to come from there
    return entry(program, runtime)


def _entry(name: str) -> Callable[[Any, Runtime], int]:
    module, _, function = name.partition(":")
    entry: Callable[[Any, Runtime], int] = getattr(importlib.import_module(module), function)
    return entry
