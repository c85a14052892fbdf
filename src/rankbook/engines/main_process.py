"""A program's main process: it calls the program's entry, reports events, and ends as an interpreter does."""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from rankbook.engines import spawning
from rankbook.engines.job import Job
from rankbook.listing import Event, RankRecord, Runtime


class MainRuntime:
    """The `Runtime` of a program.

    Args:
        events: descriptor that takes events, one JSON object a line.
    """

    def __init__(self, events: int) -> None:
        self.ranks: list[RankRecord] = []
        self._events = events
        self._lock = threading.Lock()
        self._owner = os.getpid()

    def emit(self, event: Event) -> None:
        """Report an event at once; in a fork of the main process nothing is reported."""
        if os.getpid() != self._owner:
            return
        rest = memoryview(json.dumps(event).encode() + b"\n")
        with self._lock:
            while rest:
                rest = rest[os.write(self._events, rest) :]


def run(job: Job, events: int, requests: int | None) -> NoReturn:
    """Run a program in this process, which has its streams and environment, and end."""
    program = job.program
    # Not before: where the caller's PYTHONPATH is relative, it is so to the caller's folder.
    spawning.enter(program.root)
    stacks = os.dup(2)
    spawning.listen(stacks)
    spawning.clear_main()
    sys.argv = [str(Path(program.root) / program.path)]
    runtime = MainRuntime(events)
    spawning.install(spawning.Setting(program.root, stacks, requests, job.outputs))
    spawning.record_starts(runtime.ranks)
    status = spawning.exit_status(lambda: _entry(program.entry)(program, runtime))
    job.finished.touch()
    spawning.finish(status)


def _entry(name: str) -> Callable[[Any, Runtime], int]:
    module, _, function = name.partition(":")
    entry: Callable[[Any, Runtime], int] = getattr(importlib.import_module(module), function)
    return entry
