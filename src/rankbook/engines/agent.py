"""The agent: what runs programs on one node of a cluster, whatever carries its messages.

It hears `open` (preload, environment), `run` (number, program, files) and `stop` (number), and says what comes of each run:
`event`s, then `ended` or `error`. As a process of its own, `python -m rankbook.engines.agent HOST PORT`, it calls back over TCP.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rankbook.engines import calling, travel
from rankbook.engines.execution import SupervisedExecution, SupervisorLostError
from rankbook.engines.job import own_environment
from rankbook.engines.local import LocalEngine
from rankbook.engines.wire import Message
from rankbook.errors import EngineError
from rankbook.gpus import inventory
from rankbook.leases import Leases

BEAT = 10.0
"""Seconds after which an agent that has nothing to say says that."""
CLOSE_LIMIT = 3.0
"""Seconds that its programs have to end."""
DOUBT = 2.0
"""Seconds after which it says that a supervisor was lost: where a node goes its processes die one by one, and the agent may be the last."""

OF_THE_TASK = (
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_TASK_PID",
    "SLURM_STEP*",
    "SLURM_SRUN_*",
    "SLURM_MPI_TYPE",
    "PMI_*",
    "PMIX_*",
    "SRUN_*",
)
"""Variables by which `srun` tells a task that it is one of several; a listing is no such task."""


class Agent:
    """Runs programs for a caller on another machine.

    Args:
        say: takes what it has to say; several threads call it.
        alien: variables of this process that its programs must not see unless the caller has them.
        gpus: GPUs that other sessions on the node may take too, by their names in `CUDA_VISIBLE_DEVICES`; a program leases its own.
    """

    def __init__(self, say: Callable[[Message], None], alien: Iterable[str] = (), gpus: Mapping[str, str] | None = None) -> None:
        self._say = say
        self._alien = tuple(alien)
        self._gpus = gpus or {}
        self._engine = LocalEngine()
        self._running: dict[int, SupervisedExecution] = {}
        self._stopped: set[int] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="rankbook-")))

    def hear(self, message: Message) -> None:
        """Do what a message asks for; returns at once."""
        does: dict[str, Callable[..., None]] = {"open": self._open, "run": self._run, "stop": self._stop}
        does[message["do"]](**{key: value for key, value in message.items() if key != "do"})

    def _open(self, preload: list[str], environment: dict[str, str]) -> None:
        for name in [name for name in own_environment() if travel.matches(name, self._alien)]:
            del os.environ[name]
        os.environ.update(environment)
        self._engine = LocalEngine(preload, [str(self._folder)])

    def _run(self, number: int, **message: Message) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=self._tell_all, args=(number, message), name=f"program {number}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _stop(self, number: int) -> None:
        with self._lock:
            self._stopped.add(number)
            execution = self._running.get(number)
        if execution is not None:
            execution.ask_to_stop()

    def _tell_all(self, number: int, message: Message) -> None:
        root = self._folder / str(number)
        try:
            last = self._tell_events(number, message, root)
        except SupervisorLostError as error:
            time.sleep(DOUBT)
            last = {"error": str(error)}
        except EngineError as error:
            last = {"error": str(error)}
        except OSError as error:
            last = {"error": f"the files of {message['program']['name']} cannot be written: {error}"}
        with self._lock:
            self._running.pop(number, None)
            self._stopped.discard(number)
        shutil.rmtree(root, ignore_errors=True)
        self._say({"run": number, **last})

    def _tell_events(self, number: int, message: Message, root: Path) -> Message:
        """Run a program to its end; its paths are told as the caller knows them."""
        root.mkdir()
        original = message["program"]["root"]
        program = travel.arrived(message, root)
        with self._leased(number, program.gpus or ()):
            execution = self._engine.start(program)
            with self._lock:
                self._running[number] = execution
                stopped = number in self._stopped
            if stopped:
                execution.ask_to_stop()
            for event in execution.events():
                self._say({"run": number, "event": travel.renamed(event, str(root), original)})
        ended = execution.ended
        if ended.exit_code is None and not ended.hung and number not in self._stopped:
            time.sleep(DOUBT)
        return {"ended": travel.renamed(travel.end_as_json(ended), str(root), original)}

    @contextlib.contextmanager
    def _leased(self, number: int, gpus: Sequence[str]) -> Iterator[None]:
        """Hold GPUs against other sessions on this node: those of the workers of pytest-xdist, say."""
        names = [self._gpus[gpu] for gpu in gpus if gpu in self._gpus]
        with contextlib.ExitStack() as held:
            if names and (lease := Leases().take(names, len(names), wait=lambda: number not in self._stopped)):
                held.enter_context(lease)
            yield

    def close(self) -> None:
        """End all its programs and remove its files."""
        with self._lock:
            running = list(self._running.values())
        for execution in running:
            execution.ask_to_stop()
        end = time.monotonic() + CLOSE_LIMIT
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        self._engine.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def main(host: str, port: str, declared: str = "") -> None:
    """Be an agent that calls its caller back, until the caller has gone.

    Args:
        host: of the caller.
        port: where it listens.
        declared: GPUs that the node is said to have; empty for those that it has.
    """
    there = inventory(declared)
    with calling.call(host, int(port)) as connection:
        connection.say({"facts": travel.Facts.here(gpu.id for gpu in there.gpus).as_json()})
        agent = Agent(_deaf(connection.say), OF_THE_TASK, {} if there.declared else {gpu.id: gpu.uuid for gpu in there.gpus})
        with contextlib.suppress(EOFError, OSError):
            _serve(agent, connection)
        agent.close()


def _deaf(say: Callable[[Message], None]) -> Callable[[Message], None]:
    """Say things to a caller that may have gone: the thread that hears notices it."""

    def said(message: Message) -> None:
        with contextlib.suppress(OSError):
            say(message)

    return said


def _serve(agent: Agent, connection: calling.Line) -> None:
    said = time.monotonic()
    while True:
        message = connection.hear(BEAT)
        if message is not None and message["do"] == "close":
            return
        if message is not None:
            agent.hear(message)
        if time.monotonic() - said >= BEAT:
            said = time.monotonic()
            connection.say({})


if __name__ == "__main__":
    main(*sys.argv[1:])
