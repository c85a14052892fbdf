"""The reference engine: the main process of a program and each of its ranks are new interpreters."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from rankbook.engines import execution, main_process, roles
from rankbook.engines.execution import SupervisedExecution
from rankbook.engines.job import Job
from rankbook.engines.roles import received
from rankbook.engines.supervisor import Birth, Nursery, supervise
from rankbook.errors import EngineError
from rankbook.listing import Program

JOB = "job.json"
"""The job, in its own folder."""


def create(preload: Sequence[str] = ()) -> FreshEngine:
    """Make the engine.

    Args:
        preload: of no use here, where each program imports what it needs.
    """
    del preload
    return FreshEngine()


class FreshEngine:
    """Runs each program in new interpreters."""

    name = "fresh"

    def __init__(self) -> None:
        self._executions: list[SupervisedExecution] = []
        self._supervisors: list[subprocess.Popen[bytes]] = []

    def start(self, program: Program, note: str = "") -> SupervisedExecution:
        """Start a program.

        Args:
            program: what runs.
            note: why another engine leaves it to this one.

        Raises:
            EngineError: no process could be started.
        """
        self._supervisors = [supervisor for supervisor in self._supervisors if supervisor.poll() is None]
        under_way = execution.start(program, self._launch, self.name, note)
        self._executions = [*execution.still_running(self._executions), under_way]
        return under_way

    def _launch(self, job: Job, control: socket.socket, events: int) -> None:
        Path(job.folder, JOB).write_text(json.dumps(job.message()), encoding="utf-8")
        command = roles.command("supervisor", job.folder, control.fileno(), events)
        descriptors = (control.fileno(), events)
        try:
            supervisor = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=descriptors, start_new_session=True
            )
        except OSError as error:
            raise EngineError(f"no interpreter can be started: {error}") from error
        self._supervisors.append(supervisor)

    def close(self) -> None:
        """End everything that the engine has started."""
        execution.stop_all(self._executions)
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
    os.set_inheritable(birth.events, True)  # noqa: FBT003  its only form
    os.execve(sys.executable, roles.command("program", birth.job.folder, birth.events), birth.job.environment)  # noqa: S606


def program_main(folder: str, events: str) -> NoReturn:
    """Be the main process of a program, in a new interpreter."""
    main_process.run(_job(folder), received(events), None)
