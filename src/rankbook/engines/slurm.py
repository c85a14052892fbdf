"""The engine `slurm`: inside an allocation, one agent per node, started by `srun`, calls back over TCP."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence

from rankbook.engines.calling import CALL_LIMIT, SECRET, Line
from rankbook.engines.cluster import SILENCE, Cluster
from rankbook.engines.fresh import end
from rankbook.engines.job import own_environment
from rankbook.engines.travel import Facts
from rankbook.engines.wire import Message
from rankbook.errors import EngineError

START_LIMIT = 120.0
"""Seconds that the agents have to call."""
CLOSE_LIMIT = 6.0
"""Seconds that `srun` has to end after the agents were told to."""
HOST = "RANKBOOK_CALLER_HOST"
"""Variable that names this machine as the nodes know it; without it, its host name."""
# One task per node that may use all that the allocation has there, beside the step that pytest may be; the end of one agent ends no other.
OPTIONS = ("--ntasks-per-node=1", "--overlap", "--mem=0", "--cpu-bind=none", "--kill-on-bad-exit=0", "--wait=0", "--input=none")


class LineLink:
    """The caller's side of an agent that has called.

    Args:
        line: to the agent.
        number: counts the agents, for names that differ.
    """

    def __init__(self, line: Line, number: int) -> None:
        self._line = line
        first = line.hear(CALL_LIMIT)
        if first is None:
            raise OSError("an agent has called and said nothing")
        self.facts = Facts.of(first["facts"])
        self.name = f"{self.facts.host} ({number})"

    def say(self, message: Message) -> None:
        """Send a message.

        Raises:
            OSError: the node has gone.
        """
        self._line.say(message)

    def messages(self) -> Iterator[Message]:
        """Yield what the agent says.

        Raises:
            OSError: the node has gone.
        """
        while True:
            try:
                message = self._line.hear(SILENCE)
            except EOFError as error:
                raise OSError("its agent has gone") from error
            if message is None:
                raise OSError(f"nothing was heard of it for {SILENCE:g} s")
            yield message

    def close(self) -> None:
        """Have the agent end."""
        with contextlib.suppress(OSError):
            self._line.say({"do": "close"})


def create(preload: Sequence[str] = (), gpus: str = "") -> Cluster:
    """Make the engine.

    Args:
        preload: modules that its programs import, besides torch and its harnesses.
        gpus: GPUs that each node is said to have; empty for those that it has.

    Raises:
        EngineError: this is not inside an allocation, or its agents do not call.
    """
    if "SLURM_JOB_ID" not in os.environ:
        raise EngineError("the engine 'slurm' works inside an allocation only", right="start pytest by salloc or sbatch")
    if shutil.which("srun") is None:
        raise EngineError("the engine 'slurm' needs srun, which is not on the PATH")
    count = int(os.environ.get("SLURM_JOB_NUM_NODES") or os.environ.get("SLURM_NNODES") or 1)
    step = Step(count, gpus)
    try:
        links = step.links()
    except BaseException:
        step.close()
        raise
    return Cluster("slurm", links, preload, step.close)


class Step:
    """A job step with an agent on each node.

    Args:
        count: nodes.
        gpus: what each node is said to have.
    """

    def __init__(self, count: int, gpus: str) -> None:
        self._count = count
        self._secret = secrets.token_hex(32)
        self._links: list[LineLink] = []
        self._lines: list[Line] = []
        self._news = threading.Condition()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by `close`
        self._server = socket.create_server(("", 0), backlog=count)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        host = os.environ.get(HOST) or socket.gethostname()
        agent = [sys.executable, "-P", "-m", "rankbook.engines.agent", host, str(self._server.getsockname()[1]), gpus]
        self._process = subprocess.Popen(
            ["srun", f"--nodes={count}", f"--ntasks={count}", *OPTIONS, *agent],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            env={**own_environment(), SECRET: self._secret},
            start_new_session=True,  # Ctrl-C is ours: srun would end the step before its programs are told
        )

    def _listen(self) -> None:
        with contextlib.suppress(OSError):  # the server was closed
            while True:
                channel, _ = self._server.accept()
                threading.Thread(target=self._welcome, args=(channel,), daemon=True).start()

    def _welcome(self, channel: socket.socket) -> None:
        """Take an agent that knows the secret; whoever else calls may wait in vain."""
        line = Line(channel)
        try:
            line.prove_as_caller(self._secret.encode())
            link = LineLink(line, len(self._links))
        except (OSError, EOFError, ValueError, multiprocessing.AuthenticationError):
            line.close()
            return
        with self._news:
            self._lines.append(line)
            self._links.append(link)
            self._news.notify_all()

    def links(self) -> list[LineLink]:
        """Wait until all agents have called.

        Raises:
            EngineError: they do not.
        """
        limit = time.monotonic() + START_LIMIT
        with self._news:
            while len(self._links) < self._count:
                self._news.wait(0.1)
                if (status := self._process.poll()) is not None:
                    raise EngineError(f"srun ended with status {status} before all agents had called: {self._complaint()}")
                if time.monotonic() > limit:
                    called = f"{len(self._links)} of {self._count} agents have called within {START_LIMIT:g} s"
                    raise EngineError(f"{called}: {self._complaint()}", right=f"the nodes must reach this machine by the name in {HOST}")
            return list(self._links)

    def _complaint(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def close(self) -> None:
        """End the step."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._server.close()
        self._listener.join(1)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSE_LIMIT if self._links else 0.1)
        if self._process.poll() is None:
            self._process.terminate()  # srun ends its tasks
        end(self._process)
        for line in self._lines:
            line.close()
        self._errors.close()
