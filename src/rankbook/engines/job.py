"""A program on its way to its supervisor, and what the supervisor says of its end."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from rankbook import leases
from rankbook.engines.flight import PIPE, TRACE
from rankbook.errors import EngineError
from rankbook.listing import Program

TEMPORARY, OUTPUTS, FINISHED, TRACES, LEASES = "tmp", "ranks", "finished", "traces", "leases"
"""In a job's folder: the program's TMPDIR, one file per rank, a mark that the main process came to its end, NCCL's flight records, and
the leases of GPUs between the pytest runs that the program itself starts: those of its caller are held for the program."""

KNOWS_NEW_NAME = (2, 11)
"""Version of torch that has another name for the size of the flight recorder, and warns in each rank of the old one."""


class Job(Struct, frozen=True):
    """A program with all that its processes need to know."""

    program: Program
    environment: dict[str, str]
    """The whole environment of its main process."""
    folder: str
    """Private folder; it goes when the program has ended."""
    caller: int
    """Process that asked for it; the program ends with that process."""
    scratch: tuple[str, ...] = ()
    """Folders that go too when that process is killed."""

    def message(self) -> dict[str, Any]:
        """Give it as plain data."""
        program = asdict(self.program)
        program.update(arguments=dict(self.program.arguments), environment=dict(self.program.environment))
        return {**asdict(self), "program": program}

    @classmethod
    def of(cls, message: dict[str, Any]) -> Job:
        """Make a job from plain data."""
        return cls(**{**message, "program": program_of(message["program"]), "scratch": tuple(message["scratch"])})

    @property
    def outputs(self) -> Path:
        """Folder with a file per rank."""
        return Path(self.folder, OUTPUTS)

    @property
    def traces(self) -> Path:
        """Folder with what NCCL's flight recorders write, a file per rank."""
        return Path(self.folder, TRACES)

    @property
    def finished(self) -> Path:
        """File that the main process makes when its entry has returned."""
        return Path(self.folder, FINISHED)


def program_of(message: Mapping[str, Any]) -> Program:
    """Make a program from plain data."""
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in message.items()}
    return Program(**values)


class Birth(Struct, frozen=True):
    """What a new process of a program gets from the supervisor."""

    job: Job
    events: int
    """Descriptor for the main process's events."""
    stacks: int
    """Descriptor to which processes write their stacks."""
    notes: int
    """Socket on which the supervisor is told of ranks, and asked for them."""
    calls: int = -1
    """Descriptor of the file that keeps the last call of each process."""
    output: int = -1
    """Descriptor that takes output; the main process's streams in the end."""


VISIBLE = "CUDA_VISIBLE_DEVICES"


OF_PYTEST = frozenset(
    {"PYTEST_CURRENT_TEST", "PYTEST_VERSION", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID"}
)
"""Variables that the surrounding pytest sets: a program would take itself for one of its tests."""


def own_environment() -> dict[str, str]:
    """Give the environment of this process, whose pytest may set and take away variables in another thread meanwhile."""
    while True:
        with contextlib.suppress(KeyError, RuntimeError):  # a variable has gone, or come, while they were counted
            return dict(os.environ)


def callers_environment() -> dict[str, str]:
    """Give the environment of this process as programs get it: their assertions hold, whatever the caller's own are compiled to."""
    return {name: value for name, value in own_environment().items() if name != "PYTHONOPTIMIZE"}


def environment_of(program: Program) -> dict[str, str]:
    """Give the environment that a program asks for: the caller's, its own on top, and the GPUs that it was granted."""
    granted = {} if program.gpus is None else {VISIBLE: ",".join(program.gpus)}
    callers = {name: value for name, value in callers_environment().items() if name not in OF_PYTEST}
    return {**callers, **program.environment, **granted}


def prepare(program: Program, scratch: Sequence[str] = ()) -> Job:
    """Make a program's private folder and its job.

    Args:
        program: what runs.
        scratch: folders that go when this process is killed.

    Raises:
        EngineError: there is no room for the folder.
    """
    try:
        folder = tempfile.mkdtemp(prefix="rankbook-")
        for name in (TEMPORARY, OUTPUTS, TRACES):
            Path(folder, name).mkdir()
    except OSError as error:
        raise EngineError(f"{program.name} has no folder to run with: {error}", right="TMPDIR must name a folder with room") from error
    environment = environment_of(program)
    if program.gpus:
        environment = {**_recorders(Path(folder, TRACES), program.timeout), **environment}
    own = {"TMPDIR": str(Path(folder, TEMPORARY)), leases.VARIABLE: str(Path(folder, LEASES))}
    environment |= {name: value for name, value in own.items() if name not in program.environment}
    return Job(program, environment, folder, os.getpid(), tuple(scratch))


def _recorders(traces: Path, timeout: float) -> dict[str, str]:
    """Have a collective that hangs on GPUs named: torch's flight recorder writes what each rank has under way, before the deadline."""
    record, pipe = str(traces / TRACE), str(traces / PIPE)
    old = {} if _torch() >= KNOWS_NEW_NAME else {"TORCH_NCCL_TRACE_BUFFER_SIZE": "2000"}
    return old | {
        "TORCH_FR_BUFFER_SIZE": "2000",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_FR_DUMP_TEMP_FILE": record,
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": record,
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": pipe,
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": str(max(1, int(timeout * 0.8))),
        "NCCL_DEBUG": "WARN",
    }


@functools.cache
def _torch() -> tuple[int, ...]:
    """Give the version of the installed torch, as far as it is in numbers: `(2, 13)`."""
    import importlib.metadata  # half of what a process of an engine would import, and only GPUs need it

    try:
        return tuple(int(part) for part in importlib.metadata.version("torch").split(".")[:2])
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return ()
