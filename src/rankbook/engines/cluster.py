"""Several machines as one engine: which node runs a program, what becomes of it when a node is lost, and what no node can run.

How messages reach the agent of a node is a `Link`; engines of this kind differ in nothing else.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from rankbook.engines import travel
from rankbook.engines.travel import Facts
from rankbook.engines.wire import Message
from rankbook.errors import EngineError
from rankbook.listing import Ended, Event, Program

MOST_LOSSES = 2
"""Nodes that a program may be lost with; a third might be lost because of it."""
STOP_LIMIT = 5.0
"""Seconds that a node has to end a program that is stopped."""
SILENCE = 60.0
"""Seconds without a word after which a node counts as lost; an agent says something far more often."""


class Link(Protocol):
    """What carries messages to the agent of one node and back."""

    name: str
    facts: Facts

    def say(self, message: Message) -> None:
        """Send a message, without waiting for what comes of it.

        Raises:
            OSError: the node has gone.
        """

    def messages(self) -> Iterator[Message]:
        """Yield what the agent says; ends or raises OSError when the node has gone."""

    def close(self) -> None:
        """End the agent and all that it runs."""


class ClusterExecution:
    """A program under way on some node.

    Args:
        program: what runs.
        stop: asks for its end.
    """

    def __init__(self, program: Program, stop: Callable[[], None]) -> None:
        self._program = program
        self._ask = stop
        self._waiting: deque[Event] = deque()
        self._end: Ended | EngineError | None = None
        self._is_stopped = False
        self._news = threading.Condition()

    def events(self) -> Iterator[Event]:
        """Yield the program's events as they come; ends when all its processes have ended.

        A program that is run again, because its node was lost, says so by the event `again`; what it said before is void.

        Raises:
            EngineError: no node could start it, or none is left.
        """
        while (event := self._next()) is not None:
            yield event
        if isinstance(self._end, EngineError):
            raise self._end

    def _next(self) -> Event | None:
        with self._news:
            while not self._waiting and self._end is None:
                self._news.wait()
            return self._waiting.popleft() if self._waiting and not self._is_stopped else None

    @property
    def ended(self) -> Ended:
        """How it ended; only after `events` is exhausted or `stop` was called.

        Raises:
            EngineError: it has not ended, or could not be run.
        """
        if isinstance(self._end, EngineError):
            raise self._end
        if self._end is None:
            raise EngineError(f"{self._program.name} has not ended", right="exhaust its events or stop it first")
        return self._end

    def stop(self) -> None:
        """End all its processes now."""
        self._is_stopped = True
        self._ask()
        self.wait(STOP_LIMIT)
        self.finish(Ended(None, note="its node did not answer"))

    def wait(self, limit: float) -> None:
        """Wait until it is over, at most that many seconds."""
        with self._news:
            self._news.wait_for(lambda: self._end is not None, limit)

    def take(self, event: Event) -> None:
        """Hand on an event that has come from its node."""
        with self._news:
            self._waiting.append(event)
            self._news.notify_all()

    def finish(self, end: Ended | EngineError) -> None:
        """Let it be over, if it is not."""
        with self._news:
            self._end = end if self._end is None else self._end
            self._news.notify_all()


class Task(Struct, eq=False):
    """A program on its way through the cluster."""

    number: int
    program: Program
    message: Message
    execution: ClusterExecution
    grant: tuple[str, ...] = ()
    losses: list[str] = field(default_factory=list)
    """Each node that it was lost with, and why."""

    @property
    def gpus(self) -> int:
        """GPUs that it needs."""
        return len(self.program.gpus or ())


class Member(Struct, eq=False):
    """A node as the cluster keeps account of it."""

    link: Link
    free: list[str]
    """GPUs that no program has, in the node's order."""
    running: dict[int, Task] = field(default_factory=dict)

    @property
    def load(self) -> float:
        """Programs per core."""
        return len(self.running) / self.link.facts.slots

    @property
    def gpus(self) -> tuple[str, ...]:
        """All that it may grant."""
        return self.link.facts.gpus


class Cluster:
    """An engine whose programs run on nodes.

    A program goes to the node with the least to do; one that needs GPUs waits until a node has that many free, the largest need first,
    and meanwhile no smaller need takes the GPUs of the node that it waits for.

    Args:
        name: of the engine.
        links: its nodes; those whose versions differ from the caller's are left out.
        preload: modules that programs import, besides torch and its harnesses.
        farewell: called when all links are closed.

    Raises:
        EngineError: no node is left.
    """

    def __init__(self, name: str, links: Sequence[Link], preload: Sequence[str], farewell: Callable[[], None]) -> None:
        self.name = name
        own = Facts.here()
        self.left_out = tuple(f"node {link.name}: {why}" for link in links if (why := own.difference(link.facts)))
        """Nodes that are not used, and why."""
        self._members = [Member(link, list(link.facts.gpus)) for link in links if not own.difference(link.facts)]
        self._waiting: list[Task] = []
        self._numbers = itertools.count()
        self._lock = threading.RLock()
        self._is_closed = False
        self._losses: list[str] = []
        self._farewell = farewell
        for link in links:
            if own.difference(link.facts):
                link.close()
        if not self._members:
            farewell()
            raise EngineError(
                f"no node of the cluster can be used: {'; '.join(self.left_out) or 'it has none'}",
                right="all nodes need the caller's versions of Python, torch and rankbook",
            )
        opening = {"do": "open", "preload": list(preload), "environment": travel.environment()}
        for member in self._members:  # before anything can be started: what a node hears first is what its programs find
            with contextlib.suppress(OSError):  # its reader learns it too
                member.link.say(opening)
        self._readers = [threading.Thread(target=self._read, args=[member], daemon=True) for member in self._members]
        for reader in self._readers:
            reader.start()

    @property
    def slots(self) -> int:
        """Programs that it runs well at the same time."""
        return sum(member.link.facts.slots for member in self._members)

    @property
    def gpus(self) -> tuple[int, ...]:
        """GPUs of each node, the largest first."""
        return tuple(sorted((len(member.gpus) for member in self._members), reverse=True))

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes that can be used now."""
        return tuple(member.link.name for member in self._members)

    def start(self, program: Program) -> ClusterExecution:
        """Start a program, or have it wait for GPUs.

        Args:
            program: what runs; of its `gpus` only their number counts, and the node's own take their places.

        Raises:
            EngineError: no node can run it.
        """
        number = next(self._numbers)
        execution = ClusterExecution(program, lambda: self._stop(number))
        task = Task(number, program, travel.departing(program), execution)
        with self._lock:
            if reason := self._reason_against(task):
                raise EngineError(f"{program.name} cannot run: {reason}")
            self._waiting.append(task)
            self._place()
        return execution

    def _reason_against(self, task: Task) -> str:
        if self._is_closed:
            return f"the engine '{self.name}' is closed"
        if not self._members:
            return f"no node of the cluster is left: {'; '.join(self._losses)}"
        largest = self.gpus[0]
        return (
            f"it needs {_gpus(task.gpus)}, and no node of the cluster has that many; the largest has {largest}"
            if task.gpus > largest
            else ""
        )

    # Placing; each of these is called with the lock held

    def _place(self) -> None:
        """Start what can start."""
        kept: set[int] = set()
        for task in sorted(self._waiting, key=lambda task: (-task.gpus, task.number)):
            fitting = [member for member in self._members if len(member.gpus) >= task.gpus and (not task.gpus or id(member) not in kept)]
            ready = [member for member in fitting if len(member.free) >= task.gpus]
            if ready:
                self._give(task, min(ready, key=lambda member: (len(member.free) - task.gpus if task.gpus else 0, member.load)))
            elif fitting:
                kept.add(id(max(fitting, key=lambda member: len(member.free))))

    def _give(self, task: Task, member: Member) -> None:
        self._waiting.remove(task)
        for loss in task.losses:
            task.execution.take({"type": "again", "reason": loss})
        task.grant = tuple(member.free[: task.gpus])
        del member.free[: task.gpus]
        member.running[task.number] = task
        plain = task.message["program"]
        grant = None if task.program.gpus is None else list(task.grant)
        message = {**task.message, "program": {**plain, "gpus": grant}, "do": "run", "number": task.number}
        with contextlib.suppress(OSError):  # its reader learns it too
            member.link.say(message)

    def _take_back(self, member: Member, number: int) -> Task | None:
        task = member.running.pop(number, None)
        if task is not None:
            member.free = [gpu for gpu in member.gpus if gpu in member.free or gpu in task.grant]
        return task

    def _stop(self, number: int) -> None:
        with self._lock:
            waiting = next((task for task in self._waiting if task.number == number), None)
            if waiting is not None:
                self._waiting.remove(waiting)
                waiting.execution.finish(Ended(None, engine=self.name, note="it was stopped before it began"))
            for member in self._members:
                if number in member.running:
                    with contextlib.suppress(OSError):
                        member.link.say({"do": "stop", "number": number})

    # Hearing

    def _read(self, member: Member) -> None:
        why = "its agent has gone"
        try:
            for message in member.link.messages():
                self._hear(member, message)
        except OSError as error:
            why = str(error) or why
        self._lose(member, why)

    def _hear(self, member: Member, message: Message) -> None:
        number = message.get("run")
        task = None if number is None else member.running.get(number)
        if task is None:
            return
        if "event" in message:
            event = message["event"]
            task.execution.take(event | self._place_of(task, member, event) if event["type"] == "began" else event)
            return
        with self._lock:
            self._take_back(member, task.number)
            self._place()
        task.execution.finish(
            EngineError(f"{message['error']} (node {member.link.name})") if "error" in message else self._end_of(task, member, message)
        )

    def _place_of(self, task: Task, member: Member, known: Mapping[str, Any]) -> dict[str, str]:
        """Say where and how a task runs, from what its node has said of it."""
        lost = [f"it was run again, because {loss}" for loss in task.losses[-1:]]
        engine = self.name if known["engine"] == "local" else known["engine"]
        return {"engine": engine, "note": "; ".join(filter(None, [*lost, known["note"]])), "node": member.link.name}

    def _end_of(self, task: Task, member: Member, message: Message) -> Ended:
        ended = travel.end_of(message["ended"])
        place = self._place_of(task, member, {"engine": ended.engine, "note": ended.note})
        return replace(ended, engine=place["engine"], note=place["note"])

    def _lose(self, member: Member, why: str) -> None:
        with self._lock:
            if self._is_closed or member not in self._members:
                return
            self._members.remove(member)
            loss = f"node {member.link.name} was lost: {why}"
            self._losses.append(loss)
            tasks = [task for number in list(member.running) if (task := self._take_back(member, number))]
            for task in tasks:
                self._lose_with(task, loss)
            self._refuse_impossible()
            self._place()
        member.link.close()

    def _lose_with(self, task: Task, loss: str) -> None:
        task.losses.append(loss)
        if len(task.losses) >= MOST_LOSSES:
            task.execution.finish(Ended(None, engine=self.name, note=f"it was not run a third time: {'; '.join(task.losses)}"))
        else:
            self._waiting.append(task)

    def _refuse_impossible(self) -> None:
        """Give up what no node that is left can run."""
        for task in list(self._waiting):
            if reason := self._reason_against(task):
                self._waiting.remove(task)
                task.execution.finish(EngineError(f"{task.program.name} cannot run: {'; '.join([reason, *task.losses])}"))

    def close(self) -> None:
        """End everything that the engine has started."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            tasks = [*self._waiting, *(task for member in self._members for task in member.running.values())]
            members, self._members = self._members, []
            self._waiting.clear()
            for member in members:
                for number in member.running:
                    with contextlib.suppress(OSError):
                        member.link.say({"do": "stop", "number": number})
        self._wait_for([task for member in members for task in member.running.values()])
        for member in members:
            member.link.close()
        for reader in self._readers:
            reader.join(STOP_LIMIT)
        for task in tasks:
            task.execution.finish(Ended(None, engine=self.name, note="the engine was closed"))
        self._farewell()

    def _wait_for(self, tasks: Sequence[Task]) -> None:
        end = time.monotonic() + STOP_LIMIT
        for task in tasks:
            task.execution.wait(max(0.0, end - time.monotonic()))


def _gpus(count: int) -> str:
    return f"{count} GPU{'' if count == 1 else 's'}"
