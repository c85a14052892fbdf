"""The supervisor: a process per program that starts all its processes, keeps its output, and lets none of them outlive it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import selectors
import signal
import socket
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from msgspec import Struct

from rankbook import last_calls
from rankbook.engines import flight, leftovers, processes, stacks, vain, wire
from rankbook.engines.capped import Capped
from rankbook.engines.isolation import Isolation
from rankbook.engines.job import Birth, Job
from rankbook.engines.leftovers import SharedMemory
from rankbook.engines.roll import Roll
from rankbook.engines.spawning import END, NUMBER
from rankbook.engines.stacks import Sight
from rankbook.engines.vain import Vigil
from rankbook.listing import Event

HANDLED = (signal.SIGCHLD, signal.SIGTERM)
"""Signals that wake the supervisor."""
MOMENT = 0.25
"""Seconds that processes have to end by themselves once the main process has ended."""
HELPERS_MOMENT = 2.0
"""The same for the helpers of multiprocessing, which clean up and then end."""
HELPERS_LIMIT = 1.0
"""The same when all else was killed."""
KILL_LIMIT = 5.0
"""Seconds after which a process that does not even die by SIGKILL is given up."""
HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", "torch_shm_manager")
TICK = 0.1
"""Seconds after which the size of what ranks write is looked at."""
SIGHT_SPAN = 0.2
"""Seconds over which the processor time of hung processes is measured."""
SIGHT_PATIENCE, SHOW_PATIENCE = 0.5, 4.0
"""Seconds that a process has to begin with its stacks: where it is one of all that are looked at, and where they are asked for."""
QUIET, QUIET_AT_WORK = 0.05, 0.15
"""Seconds without a word after which they are all there, and the same of a process that is at work."""
WAIT_SIGN = 0.3
"""Seconds after which a program that waits for a port gives a sign of life."""
LAST_MOMENT = 1.0
"""Seconds that the caller has to be gone when it has closed its socket."""
RANK_KEPT = 8 * 1024
"""Bytes kept at each end of a rank's output when the main process could not report it."""


class Nursery(Struct, frozen=True):
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
        self.main = 0
        self.exit_code: int | None = None
        self.hung = False
        self.stopped = False
        self.childless = False
        self.names: dict[int, str] = {}
        self.channels: dict[int, socket.socket] = {}
        self.calls = last_calls.create()
        self.roll = Roll(self.calls)
        self.vigil = Vigil(processes.processor_time, processes.is_at_work, os.sysconf("SC_CLK_TCK"))
        self.death: dict[str, Any] | None = None
        self.waiting: list[str] = []
        self.isolation = Isolation(_text(job), job.program.arguments, job.environment)
        self.apart = ""
        self.shared_memory = SharedMemory()
        self.mapped: set[str] = set()
        self.seen: set[int] = set()
        self.trimmed: dict[str, int] = {}
        self.abandoned = False
        self.output_end, output = os.pipe()
        self.stacks_end, stacks = os.pipe()
        for end in (self.output_end, self.stacks_end):
            os.set_blocking(end, False)
        self.notes, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.birth = Birth(job, events, stacks, other.detach(), self.calls, output)
        self.selector = selectors.PollSelector()
        self._watch()

    def _watch(self) -> None:
        self.woken, self.wake = os.pipe()
        for end in (self.woken, self.wake):
            os.set_blocking(end, False)
        for number in HANDLED:
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(self.wake, warn_on_full_buffer=False)
        self.selector.register(self.woken, selectors.EVENT_READ, self._signalled)
        self.selector.register(self.output_end, selectors.EVENT_READ, self._drain)
        self.selector.register(self.stacks_end, selectors.EVENT_READ, self._take_stacks)
        self.selector.register(self.control, selectors.EVENT_READ, self._told)
        self.selector.register(self.notes, selectors.EVENT_READ, self._hear)
        # The socket says that the caller has gone, unless a fork of the caller holds it open; a descriptor of the process always does.
        with contextlib.suppress(AttributeError, OSError):
            self.selector.register(os.pidfd_open(self.job.caller), selectors.EVENT_READ, self._abandon)

    def run(self) -> None:
        """Tell the whole life of the program."""
        processes.adopt_orphans()
        wire.send(self.control, {"supervisor": self.pid})
        self.apart = self.isolation.enter(self._wait_for_port, self.job.folder)
        self._emit({"type": "began", "isolation": self.apart})
        started = time.monotonic()
        if not self.stopped:
            self._live()
        duration = time.monotonic() - started
        left = () if self.stopped else self._left()
        self._kill_all()
        self._add_outputs()
        self._remove_leftovers()
        ended = {
            "exit_code": self.exit_code, "hung": self.hung, "duration": duration, "left": left, "output": self.output.text(),
            "ranks": self.roll.ends(), "death": self.death, "waiting": self.waiting, "isolation": self.apart,
        }  # fmt: skip
        with contextlib.suppress(OSError):
            wire.send(self.control, ended)

    def _live(self) -> None:
        """Start the main process, and look after it and its ranks until it ends or is to be ended."""
        self.roll = Roll(self.calls)
        self.main = self._fork(self._be_main, "the main process")
        os.close(self.birth.events)
        while self.exit_code is None and not self.stopped:
            self._turn(self._patience())
            self._trim_outputs()
            self._watch_deaths()

    def _patience(self) -> float | None:
        """Give the time until something is to be looked at that does not tell of itself."""
        ticks = [] if self.roll.is_empty() else [TICK]
        if self.vigil.due is not None:
            ticks.append(max(0.0, self.vigil.due - time.monotonic()))
        return min(ticks, default=None)

    def _wait_for_port(self) -> bool:
        """Let a moment pass while another program has the port; says whether this one is still wanted."""
        end = time.monotonic() + WAIT_SIGN
        while not self.stopped and (rest := end - time.monotonic()) > 0:
            self._turn(rest)
        self._emit({"type": "alive"})
        return not self.stopped

    def _emit(self, event: Event) -> None:
        with contextlib.suppress(OSError):
            os.write(self.birth.events, json.dumps(event).encode() + b"\n")

    # Beginnings

    def _fork(self, life: Callable[[], NoReturn], name: str) -> int:
        # Until a fork has let go of this process's handlers, a signal to it would be told to this process, as one of its own.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
        pid = os.fork()
        if pid:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            self.names[pid] = name
            self.seen.add(pid)
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
        for number in HANDLED:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.close(self.wake)
        self.control.close()
        for descriptor in [key.fd for key in self.selector.get_map().values() if isinstance(key.fileobj, int)]:
            os.close(descriptor)
        self.isolation.forget()
        for own in (self.notes, *self.channels.values()):
            own.close()

    def _be_main(self) -> NoReturn:
        processes.leave_group()  # a program may signal its process group, as what MPI starts does: its supervisor is none of that
        os.dup2(self.birth.output, 1)
        os.dup2(self.birth.output, 2)
        os.close(self.birth.output)
        self.nursery.main(self.birth)

    # Notes

    def _hear(self) -> None:
        """Take the notes that processes of the program have sent."""
        while (heard := wire.hear(self.notes)) is not None:
            note, descriptors = heard
            with contextlib.suppress(KeyError, IndexError, TypeError):  # something else has written into the socket
                self._heed(note, descriptors)

    def _heed(self, note: wire.Message, descriptors: list[int]) -> None:
        match note["do"]:
            case "fork":
                self._fork_rank(note["name"], socket.socket(fileno=descriptors[0]), own=note["own"])
            case "started":
                self._note_start(note["pid"], note["name"], known=note["known"])
            case "ended":
                self.roll.leave(note["pid"], note["code"])
            case "orderly":
                self.roll.order(note["pid"])
            case "pardon":
                self.roll.pardon(note["pid"])
            case "forget":
                self.roll.forget()
            case "show":
                self._show(note["pid"], descriptors[0])

    def _fork_rank(self, name: str, channel: socket.socket, *, own: bool) -> None:
        """Fork a rank; its channel then carries its process id and, one day, its exit status."""
        assert self.nursery.rank is not None
        rank = self.nursery.rank

        def be_rank() -> NoReturn:
            with contextlib.suppress(OSError):  # the main process may have ended
                os.setpgid(0, os.getpgid(self.main))
            rank(self.birth, channel)

        try:
            pid = self._fork(be_rank, f"rank '{name}'")
        except OSError as error:
            _say(channel, -(error.errno or 1))
            channel.close()
            return
        self.channels[pid] = channel
        self.roll.enter(pid, name, own=own)
        _say(channel, pid)

    def _note_start(self, pid: int, name: str, *, known: bool) -> None:
        """Watch a rank that its parent has started: the system tells of its end, and its status while it is a zombie."""
        self.roll.enter(pid, name, own=True, orderly=not known)
        self.seen.add(pid)
        with contextlib.suppress(AttributeError, OSError):
            descriptor = os.pidfd_open(pid)
            self.selector.register(descriptor, selectors.EVENT_READ, lambda: self._note_end(pid, descriptor))

    def _note_end(self, pid: int, descriptor: int) -> None:
        self.selector.unregister(descriptor)
        os.close(descriptor)
        self._hear()
        self.roll.leave(pid, processes.zombie_status(pid))

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
        if received is None:
            self.abandoned = True
        elif received[0]["do"] == "end-hung":
            self.hung = True
            self._tell_of(self._sights())
        self._stop()

    def _abandon(self) -> None:
        self.abandoned = True
        self._stop()

    def _stop(self) -> None:
        self.stopped = True
        self._kill_all()

    def _take_stacks(self) -> None:
        """Take stacks that somebody else has asked for."""
        self.output.add(self._read_stacks().encode(errors="replace"))

    def _read_stacks(self) -> str:
        with contextlib.suppress(BlockingIOError):
            return os.read(self.stacks_end, 1 << 20).decode(errors="replace")
        return ""

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
        self.seen.add(pid)
        self._hear()
        self.roll.leave(pid, code)
        if pid == self.main:
            self.exit_code = code
        elif pid in self.channels:
            channel = self.channels.pop(pid)
            with contextlib.suppress(OSError):  # whoever asked may have died
                channel.sendall(END.pack(code, time.monotonic()))
            channel.close()

    # Deaths and stacks

    def _watch_deaths(self) -> None:
        """End the program when a rank has died and the others wait for it in vain."""
        death = None if self.stopped else self.roll.death()
        if death is None:
            self.vigil.end()
            return
        self.vigil.begin(vain.PATIENCE if death.code else vain.LENIENCE)
        workers = self._workers()
        if not self.vigil.look(workers):
            return
        sights = self._sights(measured=True)
        self.vigil.put_off(time.monotonic())
        if self.exit_code is None and vain.is_in_vain([sight for _, sight in sights], self.job.program.root):
            self.death = self.roll.end_of(death)
            self._tell_of(sights)
            self._stop()

    def _show(self, pid: int, done: int) -> None:
        """Add the stacks of a process to the output, behind all that was written before; who asked waits for the end of a pipe."""
        self._drain()
        if pid in self._workers():
            dump = self._sight(pid, busy=False, patience=SHOW_PATIENCE).dump
            self.output.add(stacks.without_engine(dump).encode(errors="replace"))
        os.close(done)

    def _sights(self, *, measured: bool = False) -> list[tuple[int, Sight]]:
        """See what each process does; they write their stacks one after the other, so that they do not mingle.

        Args:
            measured: whether it is known that they use no processor time.
        """
        pids = self._workers()
        before = {pid: processes.processor_time(pid) for pid in pids}
        if not measured:
            time.sleep(SIGHT_SPAN)
        limit = SIGHT_SPAN * os.sysconf("SC_CLK_TCK") / 4
        return [(pid, self._sight(pid, busy=processes.processor_time(pid) - before[pid] > limit)) for pid in pids]

    def _sight(self, pid: int, *, busy: bool, patience: float = SIGHT_PATIENCE) -> Sight:
        stopped = processes.state(pid) in ("T", "t")
        asleep = processes.is_in_sleep(pid)
        dump = ""
        # Bash, which catches every signal once it has a trap for its end, would die of it.
        if processes.catches(pid, signal.SIGUSR2) and processes.holds_pipe(pid, os.fstat(self.stacks_end).st_ino):
            processes.send_signal(pid, signal.SIGUSR2)
            dump = self._read_until_quiet(pid, 0 if stopped else patience)
        return Sight(self.roll.name(pid) or self._description(pid), dump, stopped, busy, asleep)

    def _read_until_quiet(self, pid: int, patience: float) -> str:
        """Read what a process writes at once, line by line; one that is still at work may only wait for a processor in between."""
        end = time.monotonic() + 2 * patience
        parts: list[str] = []
        while time.monotonic() < end:
            if select.select([self.stacks_end], [], [], patience)[0]:
                parts.append(self._read_stacks())
                patience = QUIET
            elif not parts or patience > QUIET or not processes.is_at_work(pid):
                break
            else:
                patience = QUIET_AT_WORK
        return "".join(parts)

    def _tell_of(self, sights: list[tuple[int, Sight]]) -> None:
        """Keep what the processes do, for the record, and their stacks, for the reader."""
        flight.ask(self.job.traces)
        seen = [sight for _, sight in sights if sight.dump or sight.stopped]
        self.waiting = [*stacks.sentences(seen, self.job.program.root), *flight.sentences(self.job.traces)]
        self._drain()
        for pid, sight in sights:
            if sight.dump or sight.stopped:
                state = ", which is stopped by a signal and cannot answer" if sight.stopped else ""
                text = f"\n--- stacks of {self._description(pid)} (process {pid}){state}\n{stacks.without_engine(sight.dump)}"
                self.output.add(text.encode(errors="replace"))

    # Ends

    def _left(self) -> list[str]:
        """Name what is alive a moment after the main process has ended."""
        self._wait_for_ends(MOMENT)
        left = [self._description(pid) for pid in self._descendants() if not _is_helper(pid)]
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
        self._note_mapped()
        if self.roll.close():  # what the helpers say afterwards, of semaphores that were left, is no news to a reader
            self._drain()
        self._kill(self._workers, KILL_LIMIT)
        end = time.monotonic() + HELPERS_LIMIT
        while self._descendants() and not self._workers() and time.monotonic() < end:
            time.sleep(0.002)
            self._reap()
        self._kill(self._descendants, KILL_LIMIT)

    def _descendants(self) -> list[int]:
        """List what is alive below this process, which adopts orphans: without a child there is nothing, and no need to look."""
        self._reap()
        return [] if self.childless else processes.descendants(self.pid)

    def _workers(self) -> list[int]:
        return [pid for pid in self._descendants() if not _is_helper(pid)]

    def _kill(self, due: Callable[[], list[int]], limit: float) -> None:
        end = time.monotonic() + limit
        self._reap()
        while (pids := due()) and time.monotonic() < end:
            for pid in pids:
                processes.send_signal(pid, signal.SIGKILL)
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

    # Leftovers

    def _note_mapped(self) -> None:
        """Note, before processes are killed, which new entries of the shared memory are theirs."""
        pids = self._descendants()
        self.seen.update(pids)
        if pids and self.shared_memory.appeared():
            self.mapped.update(*(processes.mapped_files(pid, leftovers.SHARED_MEMORY) for pid in pids))

    def _remove_leftovers(self) -> None:
        leftovers.remove_shared_memory(self.shared_memory.own(self.mapped, self.seen))
        leftovers.remove_folder(self.job.folder)
        if self.abandoned and self._caller_is_gone():
            for folder in self.job.scratch:
                leftovers.remove_folder(folder)

    def _caller_is_gone(self) -> bool:
        end = time.monotonic() + LAST_MOMENT
        while (alive := processes.is_alive(self.job.caller)) and time.monotonic() < end:
            time.sleep(0.02)
        return not alive

    def _trim_outputs(self) -> None:
        """Give back the disk that a flood of a rank's output takes."""
        if self.roll.is_empty():
            return
        with contextlib.suppress(OSError):
            for path in os.scandir(self.job.outputs):
                self.trimmed[path.name] = leftovers.trim(path.path, self.trimmed.get(path.name, 0))

    def _add_outputs(self) -> None:
        """Keep what the ranks wrote when the main process has not come to its end and so reported nothing of it."""
        if self.job.finished.exists():
            return
        for path in sorted(self.job.outputs.iterdir()):
            text = _both_ends(path)
            if text.strip():
                self.output.add(f"\n--- output of rank {path.stem}\n{text}".encode(errors="replace"))


def _text(job: Job) -> str:
    try:
        return Path(job.program.root, job.program.path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


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
