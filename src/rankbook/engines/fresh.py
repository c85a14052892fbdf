"""The reference engine: the main process of a program and each of its ranks are new interpreters."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from rankbook import rank_notes
from rankbook.engines import execution, main_process, roles
from rankbook.engines.execution import Executions, SupervisedExecution
from rankbook.engines.job import Birth, Job
from rankbook.engines.roles import received
from rankbook.engines.supervisor import Nursery, supervise
from rankbook.listing import Program

JOB = "job.json"
"""The job, in its own folder."""


def create(preload: Sequence[str] = (), scratch: Sequence[str] = ()) -> FreshEngine:
    """Make the engine.

    Args:
        preload: of no use here, where each program imports what it needs.
        scratch: folders that go when this process is killed.
    """
    del preload
    return FreshEngine(scratch)


class FreshEngine:
    """Runs each program in new interpreters; its programs may be started and followed by several threads.

    Args:
        scratch: folders that go when this process is killed.
    """

    name = "fresh"

    def __init__(self, scratch: Sequence[str] = ()) -> None:
        self._scratch = tuple(scratch)
        self._executions = Executions()
        self._supervisors: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    def start(self, program: Program, note: str = "") -> SupervisedExecution:
        """Start a program.

        Args:
            program: what runs.
            note: why another engine leaves it to this one.

        Raises:
            EngineError: no process could be started.
        """
        return self._executions.add(execution.start(program, self._launch, self.name, note, self._scratch))

    def _launch(self, job: Job, control: socket.socket, events: int) -> None:
        Path(job.folder, JOB).write_text(json.dumps(job.message()), encoding="utf-8")
        command = roles.command("supervisor", job.folder, control.fileno(), events)
        supervisor = roles.start(command, (control.fileno(), events))
        with self._lock:
            self._supervisors = [other for other in self._supervisors if other.poll() is None]
            self._supervisors.append(supervisor)

    def close(self) -> None:
        """End everything that the engine has started."""
        self._executions.stop()
        with self._lock:
            for supervisor in self._supervisors:
                end(supervisor)


def end(child: subprocess.Popen[bytes]) -> None:
    """Wait a moment for a process that has been told to end, then kill it."""
    try:
        child.wait(0.5)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def supervisor_main(folder: str, control: str, events: str) -> NoReturn:
    """Be the supervisor of a program whose processes are new interpreters."""
    supervise(_job(folder), socket.socket(fileno=received(control)), received(events), Nursery(main=_become_program))


def _job(folder: str) -> Job:
    return Job.of(json.loads(Path(folder, JOB).read_text(encoding="utf-8")))


def _become_program(birth: Birth) -> NoReturn:
    # The interpreter ignores these two itself; whatever else it starts must find them as they were.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    descriptors = (birth.events, birth.stacks, birth.notes, birth.calls)
    for descriptor in descriptors:
        if descriptor >= 0:
            os.set_inheritable(descriptor, True)  # noqa: FBT003  its only form
    os.execve(sys.executable, roles.command("program", birth.job.folder, *descriptors), birth.job.environment)  # noqa: S606


def program_main(folder: str, *descriptors: str) -> NoReturn:
    """Be the main process of a program, in a new interpreter."""
    rank_notes.observe_calls()
    main_process.run(Birth(_job(folder), *map(received, descriptors)), forks=False)
