"""The default engine: the main process of a program and its ranks are forks of a process that has imported torch."""

from __future__ import annotations

import fnmatch
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence

from rankbook.engines import execution, roles, wire
from rankbook.engines.execution import SupervisedExecution, SupervisorLostError
from rankbook.engines.fresh import FreshEngine, end
from rankbook.engines.job import Job, environment_of
from rankbook.engines.zygote import ENVIRONMENT
from rankbook.errors import EngineError
from rankbook.listing import Program

READ_AT_IMPORT = (
    "PYTHON*",
    "LANG",
    "LC_*",
    "LD_*",
    "OMP_*",
    "GOMP_*",
    "KMP_*",
    "MKL_*",
    "OPENBLAS_*",
    "ATEN_CPU_CAPABILITY",
    "CUDA_VISIBLE_DEVICES",
    "CI",
    "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT",
    "PYTORCH_*",
    "TORCH_COMPILE_*",
    "TORCH_CPP_LOG_LEVEL",
    "TORCH_DEVICE_BACKEND_AUTOLOAD",
    "TORCH_DISTRIBUTED_DEBUG",
    "TORCH_LOGS*",
    "TORCH_SHOW_CPP_STACKTRACES",
    "TORCH_TEST_*",
    "TORCHDYNAMO_*",
    "TORCHINDUCTOR_*",
)
"""Variables that Python, torch and its harnesses read when they are imported: a fork no longer sees them change."""


IMPORT_LIMIT = 300.0
"""Seconds that importing torch may take."""
MOST_LOSSES = 2
"""Zygotes that may be lost before the engine gives up."""


def create(preload: Sequence[str] = ()) -> LocalEngine:
    """Make the engine.

    Args:
        preload: modules that its programs import, besides torch and its harnesses.
    """
    return LocalEngine(preload)


class LocalEngine:
    """Runs each program in forks of a zygote, or in new interpreters where a fork would not be the same."""

    name = "local"

    def __init__(self, preload: Sequence[str] = ()) -> None:
        self._preload = tuple(preload)
        self._fresh = FreshEngine()
        self._zygote: Zygote | None = None
        self._losses = 0
        self._hindrance = "" if sys.platform == "linux" else f"{sys.platform} has no safe fork"
        self._executions: list[SupervisedExecution] = []

    def start(self, program: Program) -> SupervisedExecution:
        """Start a program.

        Raises:
            EngineError: no process could be started.
        """
        if not program.preload:
            return self._fresh.start(program)
        if note := self._reason_against(program):
            return self._fresh.start(program, f"run by new interpreters: {note}")
        under_way = self._start_forked(program)
        self._executions = [*execution.still_running(self._executions), under_way]
        return under_way

    def _reason_against(self, program: Program) -> str:
        if not self._hindrance and self._zygote is None:
            self._zygote = self._new_zygote()
        if self._zygote is None:
            return self._hindrance
        differing = differing_at_import(self._zygote.environment, environment_of(program))
        return f"{differing} is set for it, which is read when torch is imported" if differing else ""

    def _new_zygote(self) -> Zygote | None:
        if self._losses >= MOST_LOSSES:
            raise EngineError(
                f"the process that has imported torch was lost {self._losses} times", right="run with the engine 'fresh', which needs none"
            )
        zygote = Zygote(self._preload)
        self._hindrance = zygote.hindrance
        if not self._hindrance:
            return zygote
        zygote.close()
        return None

    def _start_forked(self, program: Program) -> SupervisedExecution:
        assert self._zygote is not None
        try:
            return execution.start(program, self._zygote.launch, self.name)
        except SupervisorLostError:
            self._zygote.close()
            self._zygote = None
            self._losses += 1
            return self.start(program)

    def close(self) -> None:
        """End everything that the engine has started."""
        execution.stop_all(self._executions)
        self._fresh.close()
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None


def differing_at_import(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Name the first variable that is read at import and has another value than then; empty when there is none."""
    names = sorted(name for name in {**before, **after} if before.get(name) != after.get(name))
    return next((name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in READ_AT_IMPORT)), "")


class Zygote:
    """The engine's side of a zygote.

    Args:
        preload: modules that it imports besides its own.

    Raises:
        EngineError: it could not be started.
    """

    def __init__(self, preload: Sequence[str] = ()) -> None:
        self.environment = dict(os.environ)
        """The caller's environment when the zygote was started."""
        self._control, theirs = socket.socketpair()
        with theirs:
            command = roles.command("zygote", theirs.fileno(), *preload)
            environment = {**self.environment, **ENVIRONMENT}
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    env=environment,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            except OSError as error:
                self._control.close()
                raise EngineError(f"no interpreter can be started: {error}") from error
        self.hindrance = self._first_word()
        """Why it must not be forked."""

    def _first_word(self) -> str:
        self._control.settimeout(IMPORT_LIMIT)
        try:
            received = wire.receive(self._control)
        except TimeoutError:
            received = None
        self._control.settimeout(None)
        if received is None:
            self.close()
            raise EngineError(
                f"the process that imports torch ended with status {self._process.returncode}",
                right="`python -c 'import torch'` must work in this environment",
            )
        return str(received[0]["hindrance"])

    def launch(self, job: Job, control: socket.socket, events: int) -> None:
        """Have a supervisor forked."""
        try:
            wire.send(self._control, job.message(), (control.fileno(), events))
        except OSError as error:
            raise SupervisorLostError(f"the process that has imported torch was lost: {error}") from error

    def close(self) -> None:
        """End it; supervisors that it has forked live on."""
        self._control.close()
        end(self._process)
