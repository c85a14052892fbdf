"""The supervisor: a process per program that starts all its processes, keeps its output, and lets none of them outlive it."""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import shutil
import signal
import socket
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from rankbook.engines import processes, wire
from rankbook.engines.capped import Capped
from rankbook.engines.job import Job
from rankbook.engines.spawning import NUMBER

MOMENT = 0.25
"""Seconds that processes have to end by themselves once the main process has ended."""
HELPERS_MOMENT = 2.0
"""The same for the helpers of multiprocessing, which clean up and then end."""
HELPERS_LIMIT = 1.0
"""The same when all else was killed."""
KILL_LIMIT = 5.0
"""Seconds after which a process that does not even die by SIGKILL is given up."""
HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
RANK_KEPT = 8 * 1024
"""Bytes kept at each end of a rank's output when the main process could not report it."""


@dataclass(frozen=True, slots=True)
class Birth:
    """What a new process of a program gets from the supervisor."""

    job: Job
    events: int
    """Descriptor for the main process's events."""
    output: int
    """Descriptor that takes output and stacks."""
    requests: int | None
    """Socket on which ranks are asked for."""


@dataclass(frozen=True, slots=True)
class Nursery:
    """What a fork of the supervisor becomes."""

    main: Callable[[Birth], NoReturn]
    rank: Callable[[Birth, socket.socket], NoReturn] | None = None
    """None when ranks are not asked for but started by their parents."""


def supervise(job: Job, control: socket.socket, events: int, nursery: Nursery) -> NoReturn:
    """Be the supervisor of a program; ends with this process."""
    status = 1
    try:
        Supervisor(job, control, events, nursery).run()
        status = 0
    except BaseException:  # noqa: BLE001  a fork must never return into its parent's code
        traceback.print_exc()
    finally:
        os._exit(status)


class Supervisor:
    """One program's processes, from the first to the last.

    Args:
        job: the program.
        control: socket to the caller.
        events: descriptor that the main process gets.
        nursery: how its processes begin.
    """

    def __init__(self, job: Job, control: socket.socket, events: int, nursery: Nursery) -> None:
        self.pid = os.getpid()
        self.job = job
        self.control = control
        self.nursery = nursery
        self.output = Capped()
        self.exit_code: int | None = None
        self.hung = False
        self.stopped = False
        self.childless = False
        self.names: dict[int, str] = {}
        self.channels: dict[int, socket.socket] = {}
        self.output_end, output = os.pipe()
        os.set_blocking(self.output_end, False)
        self.requests: socket.socket | None = None
        theirs: int | None = None
        if nursery.rank is not None:
            self.requests, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            theirs = other.detach()
        self.birth = Birth(job, events, output, theirs)
        self.selector = selectors.PollSelector()
        self._watch()

    def _watch(self) -> None:
        self.woken, self.wake = os.pipe()
        for end in (self.woken, self.wake):
            os.set_blocking(end, False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(self.wake, warn_on_full_buffer=False)
        self.selector.register(self.woken, selectors.EVENT_READ, self._signalled)
        self.selector.register(self.output_end, selectors.EVENT_READ, self._drain)
        self.selector.register(self.control, selectors.EVENT_READ, self._told)
        if self.requests is not None:
            self.selector.register(self.requests, selectors.EVENT_READ, self._asked)
        # The socket says that the caller has gone, unless a fork of the caller holds it open; a descriptor of the process always does.
        with contextlib.suppress(AttributeError, OSError):
            self.selector.register(os.pidfd_open(self.job.caller), selectors.EVENT_READ, self._stop)

    def run(self) -> None:
        """Tell the whole life of the program."""
        processes.adopt_orphans()
        wire.send(self.control, {"supervisor": self.pid})
        started = time.monotonic()
        self.main = self._fork(self._be_main, "the main process")
        os.close(self.birth.events)
        while self.exit_code is None and not self.stopped:
            self._turn(None)
        duration = time.monotonic() - started
        left = () if self.stopped else self._left()
        self._kill_all()
        self._drain()
        self._add_outputs()
        shutil.rmtree(self.job.folder, ignore_errors=True)
        ended = {"exit_code": self.exit_code, "hung": self.hung, "duration": duration, "left": left, "output": self.output.text()}
        with contextlib.suppress(OSError):
            wire.send(self.control, ended)

    # Beginnings

    def _fork(self, life: Callable[[], NoReturn], name: str) -> int:
        pid = os.fork()
        if pid:
            self.names[pid] = name
            return pid
        try:
            processes.die_with(self.pid)
            self._forget()
            life()
        except BaseException:  # noqa: BLE001  a fork must never return into its parent's code
            traceback.print_exc()
        finally:
            os._exit(1)

    def _forget(self) -> None:
        """Let go, in a new process, of all that is the supervisor's own."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.close(self.wake)
        self.control.close()
        for descriptor in [key.fd for key in self.selector.get_map().values() if isinstance(key.fileobj, int)]:
            os.close(descriptor)
        for own in (self.requests, *self.channels.values()):
            if own is not None:
                own.close()

    def _be_main(self) -> NoReturn:
        os.dup2(self.birth.output, 1)
        os.dup2(self.birth.output, 2)
        os.close(self.birth.output)
        self.nursery.main(self.birth)

    def _asked(self) -> None:
        """Fork a rank; its channel then carries its process id and, one day, its exit status."""
        assert self.requests is not None
        assert self.nursery.rank is not None
        rank = self.nursery.rank
        name, descriptors, _, _ = socket.recv_fds(self.requests, 1000, 1, wire.CLOSE_ON_EXEC)
        if not descriptors:
            return
        channel = socket.socket(fileno=descriptors[0])
        try:
            pid = self._fork(lambda: rank(self.birth, channel), f"rank '{name.decode(errors='replace')}'")
        except OSError as error:
            _say(channel, -(error.errno or 1))
            channel.close()
            return
        self.channels[pid] = channel
        _say(channel, pid)

    # Events

    def _turn(self, timeout: float | None) -> None:
        for key, _ in self.selector.select(timeout):
            key.data()
        self._reap()

    def _signalled(self) -> None:
        with contextlib.suppress(BlockingIOError):
            if signal.SIGTERM in os.read(self.woken, 4096):
                self._stop()

    def _told(self) -> None:
        received = wire.receive(self.control)
        if received is not None and received[0]["do"] == "end-hung":
            self.hung = True
            self._dump_stacks()
        self._stop()

    def _stop(self) -> None:
        self.stopped = True
        self._kill_all()

    def _drain(self) -> bool:
        """Take what was written; says whether there was anything."""
        taken = False
        with contextlib.suppress(BlockingIOError):
            for _ in range(256):  # at most 16 MB: a flood must not keep other events away
                self.output.add(os.read(self.output_end, 65536))
                taken = True
        return taken

    def _reap(self) -> None:
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    self.childless = False
                    return
                self._bury(pid, os.waitstatus_to_exitcode(status))
        except ChildProcessError:
            self.childless = True

    def _bury(self, pid: int, code: int) -> None:
        if pid == self.main:
            self.exit_code = code
        elif pid in self.channels:
            channel = self.channels.pop(pid)
            _say(channel, code)
            channel.close()

    # Ends

    def _left(self) -> list[str]:
        """Name what is alive a moment after the main process has ended."""
        self._wait_for_ends(MOMENT)
        left = [self._description(pid) for pid in processes.descendants(self.pid) if not _is_helper(pid)]
        if not left:
            self._wait_for_ends(HELPERS_MOMENT)
        return left

    def _wait_for_ends(self, limit: float) -> None:
        end = time.monotonic() + limit
        self._reap()
        while not self.childless and (rest := end - time.monotonic()) > 0 and not self.stopped:
            self._turn(rest)

    def _kill_all(self) -> None:
        """End all processes; the helpers of multiprocessing may first remove what the others have left, such as semaphores."""
        self._kill(self._workers, KILL_LIMIT)
        end = time.monotonic() + HELPERS_LIMIT
        while processes.descendants(self.pid) and not self._workers() and time.monotonic() < end:
            time.sleep(0.002)
            self._reap()
        self._kill(lambda: processes.descendants(self.pid), KILL_LIMIT)

    def _workers(self) -> list[int]:
        return [pid for pid in processes.descendants(self.pid) if not _is_helper(pid)]

    def _kill(self, due: Callable[[], list[int]], limit: float) -> None:
        end = time.monotonic() + limit
        self._reap()
        while (pids := due()) and time.monotonic() < end:
            for pid in pids:
                processes.send_signal(pid, signal.SIGKILL)
            self._drain()
            time.sleep(0.002)
            self._reap()
        self._reap()

    def _description(self, pid: int) -> str:
        if pid in self.names:
            return self.names[pid]
        arguments = processes.arguments(pid)
        if "--multiprocessing-fork" in arguments[:-1]:
            return f"rank '{arguments[-1]}'"
        if arguments == processes.arguments(self.pid):
            return "a fork of the main process or of a rank"
        return " ".join(arguments)[:200] or f"process {pid}"

    def _dump_stacks(self) -> None:
        """Have each process write its stacks, one after the other, so that they do not mingle."""
        for pid in processes.descendants(self.pid):
            if processes.catches(pid, signal.SIGUSR2):
                stopped = processes.state(pid) == "T"
                state = ", which is stopped by a signal and cannot answer" if stopped else ""
                self.output.add(f"\n--- stacks of {self._description(pid)} (process {pid}){state}\n".encode())
                processes.send_signal(pid, signal.SIGUSR2)
                self._drain_until_quiet(0 if stopped else 0.5)

    def _drain_until_quiet(self, patience: float) -> None:
        end = time.monotonic() + 2 * patience
        while time.monotonic() < end and select.select([self.output_end], [], [], patience)[0]:
            self._drain()
            patience = 0.05

    def _add_outputs(self) -> None:
        """Keep what the ranks wrote when the main process has not come to its end and so reported nothing of it."""
        if self.job.finished.exists():
            return
        for path in sorted(self.job.outputs.iterdir()):
            text = _both_ends(path)
            if text.strip():
                self.output.add(f"\n--- output of rank {path.stem}\n{text}".encode(errors="replace"))


def _say(channel: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # whoever asked may have died
        channel.sendall(NUMBER.pack(number))


def _is_helper(pid: int) -> bool:
    line = " ".join(processes.arguments(pid))
    return any(helper in line for helper in HELPERS)


def _both_ends(path: Path) -> str:
    kept = Capped(RANK_KEPT)
    with contextlib.suppress(OSError), path.open("rb") as stream:
        while data := stream.read(1 << 20):
            kept.add(data)
    return kept.text()
