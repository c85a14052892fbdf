"""The default engine: the main process of a program and its ranks are forks of a process that has imported what they import."""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import json
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from rankbook.engines import execution, leftovers, roles, wire
from rankbook.engines.execution import Executions, SupervisedExecution, SupervisorLostError
from rankbook.engines.fresh import FreshEngine, end
from rankbook.engines.job import VISIBLE, Job, callers_environment, environment_of
from rankbook.engines.zygote import ENVIRONMENT, HARNESSES, TORCH
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
NOTE = "run by new interpreters"
_IMPORTED: dict[str, tuple[str, ...]] = {"": (), "torch": TORCH, "harnesses": (*TORCH, *HARNESSES)}
"""What zygotes import besides, by their kind: nothing, torch, or torch with its test harnesses."""
_Key = tuple[str, int | None]
MOST_LOSSES = 2
"""Zygotes that may be lost before the engine gives up."""


def create(preload: Sequence[str] = (), scratch: Sequence[str] = ()) -> LocalEngine:
    """Make the engine.

    Args:
        preload: modules that its programs import, besides torch and its harnesses.
        scratch: folders that go when this process is killed.
    """
    return LocalEngine(preload, scratch)


class LocalEngine:
    """Runs each program in forks of a zygote, or in new interpreters where a fork would not be the same.

    What torch and its harnesses find at import depends on the number of GPUs, so there is one zygote for each number that is granted, and
    one without torch for programs that do not import it. Programs that use torch and none of its harnesses are forked from one that has
    not spent seconds on importing those, unless there is one already that has.
    Programs may be started and followed by several threads.

    Args:
        preload: modules that its programs import, besides torch and its harnesses.
        scratch: folders that go when this process is killed.
    """

    name = "local"

    def __init__(self, preload: Sequence[str] = (), scratch: Sequence[str] = ()) -> None:
        self._preload = tuple(preload)
        self._scratch = tuple(scratch)
        self._fresh = FreshEngine(scratch)
        self._zygotes: dict[_Key, Zygote] = {}
        """By their kind, and for how many GPUs."""
        self._warmed: set[str] = set()
        self._losses = 0
        self._spoilers: set[str] = set()
        """Modules that programs import for themselves, because a process that has imported them must not be forked."""
        self._hindrances = dict.fromkeys(_IMPORTED, "" if sys.platform == "linux" else f"{sys.platform} has no safe fork")
        """Why nothing is forked, by the kind of zygote."""
        self._executions = Executions()
        self._lock = threading.Lock()
        self._starting: dict[_Key, threading.Lock] = {}
        """Held while the zygote of a key is started: those of others do not wait."""

    def warm(self, *, torch: bool = True, harnesses: bool = True) -> None:
        """Have imported what programs import, with torch and its harnesses or without, while the caller does something else."""
        kind = _kind(torch=torch, harnesses=harnesses)
        if kind in self._warmed or (kind == "torch" and "harnesses" in self._warmed):
            return
        self._warmed.add(kind)
        threading.Thread(target=self._warm, args=[kind], name="rankbook zygote", daemon=True).start()

    def _warm(self, kind: str) -> None:
        with contextlib.suppress(EngineError):  # whoever starts a program will be told
            self._zygote((kind, None if has_gpus() and kind else 0), {})

    def start(self, program: Program) -> SupervisedExecution:
        """Start a program.

        Raises:
            EngineError: no process could be started.
        """
        if not program.preload:
            return self._fresh.start(program)
        if program.fresh:
            return self._fresh.start(program, f"{NOTE}: {program.fresh}")
        key = self._key(program)
        while True:
            zygote = self._zygote(key, environment_of(program))
            if note := self._reason_against(program, key, zygote):
                return self._fresh.start(program, f"{NOTE}: {note}")
            assert zygote is not None
            try:
                return self._executions.add(execution.start(program, zygote.launch, self.name, scratch=self._scratch))
            except SupervisorLostError:
                self._lose(key, zygote)

    def _key(self, program: Program) -> _Key:
        """Tell from which zygote a program is forked: torch's with the harnesses, where that is there, does for those without them."""
        kind, gpus = _kind(torch=program.torch, harnesses=program.harnesses), gpu_count(program) if program.torch else 0
        if kind != "torch":
            return kind, gpus
        with self._lock:
            is_there = (kind, gpus) in self._starting or kind in self._warmed
            has_more = ("harnesses", gpus) in self._starting or "harnesses" in self._warmed
        return "harnesses" if has_more and not is_there else kind, gpus

    def _reason_against(self, program: Program, key: _Key, zygote: Zygote | None) -> str:
        if zygote is None:
            return self._hindrances[key[0]]
        if differing := differing_at_import(zygote.environment, environment_of(program)):
            return f"{differing} is set for it, which is read when torch is imported"
        hidden = next(filter(zygote.hidden.__contains__, program.taken), "")
        return f"it uses {hidden} and does not import it" if hidden else ""

    def _zygote(self, key: _Key, environment: Mapping[str, str]) -> Zygote | None:
        """Give the zygote for a program, None when there must be none; other threads that want it wait while it is started."""
        with self._lock:
            starting = self._starting.setdefault(key, threading.Lock())
        with starting:
            if not self._hindrances[key[0]] and key not in self._zygotes:
                self._start_zygote(key, environment)
            return self._zygotes.get(key)

    def _start_zygote(self, key: _Key, environment: Mapping[str, str]) -> None:
        if self._losses >= MOST_LOSSES:
            raise EngineError(
                f"the process that listings are forked from was lost {self._losses} times",
                right="run with the engine 'fresh', which needs none",
            )
        gpus = {VISIBLE: environment[VISIBLE]} if VISIBLE in environment else {}
        while True:
            names = [name for name in (*_IMPORTED[key[0]], *self._preload) if name not in self._spoilers]
            zygote = Zygote(names, self._scratch, gpus)
            if not zygote.hindrance:
                self._zygotes[key] = zygote
                return
            zygote.close()
            if not zygote.spoilers or not zygote.spoilers <= set(names) - set(TORCH):
                self._hindrances[key[0]] = zygote.hindrance
                return
            self._spoilers |= zygote.spoilers

    def _lose(self, key: _Key, zygote: Zygote) -> None:
        with self._starting[key]:
            if self._zygotes.get(key) is zygote:  # no other thread has noticed
                del self._zygotes[key]
                zygote.close()
                self._losses += 1

    def close(self) -> None:
        """End everything that the engine has started."""
        self._executions.stop()
        self._fresh.close()
        with self._lock:
            starting = list(self._starting.items())
        for key, lock in starting:
            with lock:  # it may be under way
                zygote = self._zygotes.pop(key, None)
            if zygote is not None:
                zygote.close()


def _kind(*, torch: bool, harnesses: bool) -> str:
    return "" if not torch else "harnesses" if harnesses else "torch"


def gpu_count(program: Program) -> int | None:
    """Give the number of GPUs that a program sees, as far as it is known; None for all that there are."""
    if not has_gpus():
        return 0
    visible = environment_of(program).get(VISIBLE)
    return None if visible is None else len([name for name in visible.split(",") if name.strip()])


@functools.cache
def has_gpus() -> bool:
    """Whether this machine may have GPUs: it has a device file of NVIDIA's or AMD's driver, or is one where that says nothing."""
    return (
        sys.platform != "linux" or any(Path("/dev").glob("nvidia[0-9]*")) or any(Path(path).exists() for path in ("/dev/kfd", "/dev/dxg"))
    )


def differing_at_import(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Name the first variable that is read at import and has another value than then; empty when there is none.

    Which GPUs are visible is read late; a zygote is chosen by their number.
    """
    names = sorted(name for name in {**before, **after} if before.get(name) != after.get(name))
    return next((name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in READ_AT_IMPORT)), "")


class Zygote:
    """The engine's side of a zygote.

    Args:
        preload: modules that it imports besides its own.
        scratch: folders that go when this process is killed.
        gpus: variable that says which GPUs it sees.

    Raises:
        EngineError: it could not be started.
    """

    def __init__(self, preload: Sequence[str], scratch: Sequence[str], gpus: Mapping[str, str]) -> None:
        self.environment = callers_environment()
        """The caller's environment when the zygote was started."""
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair()
        with theirs:
            # What it imports may leave files: torch's caches. They go with the caller's, whoever comes to remove those.
            self._temporary = tempfile.mkdtemp(prefix="rankbook-", dir=next(iter(scratch), None))
            command = roles.command("zygote", theirs.fileno(), json.dumps([*scratch, self._temporary]), *preload)
            # Without a driver to ask, counting devices would initialise CUDA, which no fork survives; hidden ones are not counted.
            hidden = {} if has_gpus() else {VISIBLE: ""}
            environment = {**self.environment, "TMPDIR": self._temporary, **ENVIRONMENT, **hidden, **gpus}
            try:
                self._process = roles.start(command, (theirs.fileno(),), environment)
            except EngineError:
                self._control.close()
                leftovers.remove_folder(self._temporary)
                raise
        said = self._first_word()
        self.hindrance = str(said["hindrance"])
        """Why it must not be forked."""
        self.spoilers = frozenset[str](said["spoilers"])
        """Modules whose import forbids it."""
        self.hidden = frozenset[str](said["hidden"])
        """Modules that are there in a fork, and that importing the packages above them may not bring."""

    def _first_word(self) -> wire.Message:
        self._control.settimeout(IMPORT_LIMIT)
        try:
            received = wire.receive(self._control)
        except TimeoutError:
            received = None
        self._control.settimeout(None)
        if received is None:
            self.close()
            raise EngineError(
                f"the process that listings are forked from ended with status {self._process.returncode}",
                right="`python -c 'import torch'` must work in this environment",
            )
        return received[0]

    def launch(self, job: Job, control: socket.socket, events: int) -> None:
        """Have a supervisor forked."""
        try:
            with self._lock:
                wire.send(self._control, job.message(), (control.fileno(), events))
        except OSError as error:
            raise SupervisorLostError(f"the process that listings are forked from was lost: {error}") from error

    def close(self) -> None:
        """End it; supervisors that it has forked live on."""
        with self._lock, contextlib.suppress(OSError):
            wire.send(self._control, {"do": "end"})
        self._control.close()
        end(self._process)
        leftovers.remove_folder(self._temporary)
