"""Ranks: how a program's `multiprocessing` starts them, keeps evidence of them, and how they and the main process end.

Spawn is meant to give each rank a new interpreter. A rank here is a new interpreter with our own first lines, or, where the supervisor
is a fork of a process that has imported torch, a fork of the supervisor that then does what a spawned interpreter does.
`multiprocessing` has no public door for either, nor `threading`, `atexit` and `weakref` for ending a forked process as an interpreter
ends; so the private names of all four are here and nowhere else. Written against Python 3.11 to 3.14.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import io
import itertools
import os
import re
import signal
import socket
import struct
import sys
import tempfile
import threading
import traceback
import weakref
from collections.abc import Callable
from multiprocessing import connection, context, popen_fork, popen_spawn_posix, process, reduction, resource_tracker, spawn, util
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from msgspec import Struct
from msgspec.structs import asdict, replace

import rankbook
from rankbook import last_calls, rank_notes, rewriting
from rankbook.engines import wire
from rankbook.engines.job import own_environment
from rankbook.listing import RankRecord

NUMBER, END = struct.Struct("!q"), struct.Struct("!qd")
"""Process ids, and exit statuses with the moment of the end, as the supervisor sends them."""
NAME = 200
"""Characters of a process's name that are told."""
_SPAWN = "torch.multiprocessing.spawn"
"""Its function `_wrap` is what each of its processes runs; the second argument is the rank."""
LOST = 255
"""Exit status of a rank whose supervisor is gone; multiprocessing's own choice for a lost fork server."""


class Setting(Struct, frozen=True):
    """What a process needs to start ranks."""

    root: str
    """Folder of the program: assertions of modules below it are rewritten in ranks."""
    stacks: int
    """Descriptor to which a process writes its stacks when asked."""
    notes: int
    """Socket on which the supervisor is told of ranks."""
    calls: int
    """Descriptor of the file that keeps the last call of each process."""
    forks: bool
    """Whether the supervisor forks ranks; if not, they are new interpreters."""
    outputs: Path | None = None
    """Folder for a file per rank; None in a rank, whose own ranks write where it writes."""

    @property
    def descriptors(self) -> list[int]:
        """Descriptors that a new interpreter is to inherit."""
        return [descriptor for descriptor in (self.stacks, self.notes, self.calls) if descriptor >= 0]


def install(setting: Setting) -> None:
    """Start all ranks of this process, by the spawn context or by the default one when it is spawn, as the setting says."""
    kind = ForkedRank if setting.forks else NewRank
    numbers = itertools.count()

    def start(process_object: process.BaseProcess) -> Any:
        return kind(process_object, setting, _output_file(setting, next(numbers), name_of(process_object)))

    context.SpawnProcess._Popen = staticmethod(start)  # type: ignore[assignment, method-assign]
    spawn.get_command_line = _command_line


def name_of(started: process.BaseProcess) -> str:
    """Name a process by its rank, where it is one of those that `torch.multiprocessing.spawn` starts without a name: `rank 1`."""
    target: Any = getattr(started, "_target", None)
    arguments: tuple[Any, ...] = getattr(started, "_args", ())
    is_rank = getattr(target, "__module__", "") == _SPAWN and len(arguments) > 1 and isinstance(arguments[1], int)
    return f"rank {arguments[1]}" if is_rank else started.name


def _output_file(setting: Setting, number: int, name: str) -> str | None:
    if setting.outputs is None:
        return None
    safe = re.sub(r"[^\w.-]+", "-", name)[:80]
    path = setting.outputs / f"{number:04}-{safe}.txt"
    path.touch()
    return str(path)


def _open_output(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


# Evidence


class ExitStatus:
    """The exit status of a started process, also when its `Process` object was closed or forgotten.

    Args:
        popen: multiprocessing's handle of it.
    """

    def __init__(self, popen: Any) -> None:
        self._popen = popen
        self._owner = os.getpid()
        self._status: int | None = None
        self.ended: float | None = None
        """When it ended, on the machine's monotonic clock, where the supervisor has seen that."""

    def __call__(self) -> int | None:
        """Look, and let go of the handle once the process has ended: it holds descriptors."""
        popen = self._popen
        if popen is not None and os.getpid() == self._owner:
            self._status = popen.poll()
            if self._status is not None:
                self.ended = getattr(popen, "ended", None)
                self._popen = None
        return self._status


def record_starts(records: list[RankRecord], notes: int) -> None:
    """Append a record for every process that this process starts through multiprocessing, by whichever method, and tell the supervisor."""
    plain = process.BaseProcess.start
    owner = os.getpid()
    running: list[ExitStatus] = []

    def start(self: process.BaseProcess) -> None:
        running[:] = [status for status in running if status() is None]
        name = name_of(self)  # not later: what it runs is forgotten then
        plain(self)
        if os.getpid() == owner:
            popen: Any = self._popen  # type: ignore[attr-defined]
            if not isinstance(popen, ForkedRank) and popen.pid is not None:
                _tell_of(popen, name, notes)
            status = ExitStatus(popen)
            running.append(status)
            records.append(RankRecord(name, self.pid, getattr(popen, "output", None), status, lambda: status.ended))

    process.BaseProcess.start = start  # type: ignore[method-assign]


def _tell_of(popen: Any, name: str, notes: int) -> None:
    """Tell the supervisor of a process that it has not started itself: now of its start, later of its exit status."""
    owner, pid, known, poll = os.getpid(), popen.pid, weakref.ref(popen), type(popen).poll  # no circle: the handle holds descriptors
    told = False

    def telling(*args: Any, **kwargs: Any) -> int | None:
        nonlocal told
        status: int | None = poll(known(), *args, **kwargs)
        if status is not None and not told and os.getpid() == owner:
            told = True
            _note(notes, {"do": "ended", "pid": pid, "code": status})
        return status

    _note(notes, {"do": "started", "pid": pid, "name": name[:NAME], "known": isinstance(popen, NewRank)})
    popen.poll = telling


def _note(notes: int, message: wire.Message) -> None:
    with contextlib.suppress(OSError):  # the program may have closed every descriptor
        wire.tell(notes, message)


# Ranks that are new interpreters

_launching = threading.local()
_plain_command_line = spawn.get_command_line


class NewRank(popen_spawn_posix.Popen):
    """A rank in a new interpreter, whose first lines are ours."""

    def __init__(self, process_object: process.BaseProcess, setting: Setting, output: str | None) -> None:
        self.output = output
        self._setting = setting
        super().__init__(process_object)

    def _launch(self, process_object: process.BaseProcess) -> None:
        setting = self._setting
        self._fds += setting.descriptors  # type: ignore[attr-defined]
        _launching.options = {"setting": asdict(replace(setting, forks=False, outputs=None)), "output": self.output}
        _launching.name = name_of(process_object)
        try:
            super()._launch(process_object)  # type: ignore[misc]
        finally:
            del _launching.options, _launching.name


def _command_line(**handles: Any) -> list[str]:
    command = _plain_command_line(**handles)
    if not hasattr(_launching, "options"):
        return command
    # The rank's sys.path is its parent's in the end; until then it may lack rankbook when the program changed its environment.
    package = str(Path(rankbook.__file__).parents[1])
    first = f"import sys; sys.path.append({package!r}); from rankbook.engines.spawning import new_rank"
    command[command.index("-c") + 1] = f"{first}; new_rank({handles!r}, **{_launching.options!r})"
    return [*command, _launching.name]  # for those who read the list of processes, our supervisor among them


def new_rank(handles: dict[str, int], *, setting: dict[str, Any], output: str | None) -> None:
    """Begin a rank in a new interpreter."""
    own = Setting(**setting)
    for descriptor in own.descriptors:
        os.set_inheritable(descriptor, False)  # noqa: FBT003  its only form
    atexit.register(_tell_own_end, own.notes, os.getpid())
    if output is not None:
        descriptor = _open_output(output)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.close(descriptor)
    rank_notes.observe_calls()
    _begin_rank(own)
    spawn.spawn_main(**handles)


def _tell_own_end(notes: int, pid: int) -> None:
    """Tell the supervisor that this process comes to its end by itself, which one that leaves by `os._exit` does not."""
    if os.getpid() == pid:
        _note(notes, {"do": "orderly", "pid": pid})


def _begin_rank(setting: Setting) -> None:
    write_lines()
    listen(setting.stacks)
    last_calls.hold(setting.calls, setting.root)
    rewriting.install(setting.root)
    install(setting)


def write_lines() -> None:
    """Write each line out when it ends, as to a terminal: what a process said is kept if it is killed, and stands before its next error."""
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def listen(stacks: int) -> None:
    """Write all stacks when asked by SIGUSR2, at C level: it works while a thread holds the GIL; and at a crash."""
    faulthandler.register(signal.SIGUSR2, file=stacks, all_threads=True, chain=False)
    faulthandler.enable(file=2)


# Ranks that the supervisor forks


class Received:
    """A descriptor in a letter to a rank: its number among those that came with the letter."""

    descriptors: ClassVar[list[int]] = []

    def __init__(self, number: int) -> None:
        self.number = number

    def detach(self) -> int:
        """Give the descriptor, in the rank."""
        return self.descriptors[self.number]


class ForkedRank(popen_fork.Popen):
    """A rank that the supervisor forks on request.

    The rank's channel is a socket of its own: descriptors and the pickled process go to the rank, its process id and its exit
    status come back from the supervisor, which closes it then, so that it serves as the sentinel too. To the system the rank is the
    supervisor's child: `os.getppid()` in it and `os.waitpid()` for it do not tell of the process that asked.
    """

    method = "spawn"
    DupFd = Received

    def __init__(self, process_object: process.BaseProcess, setting: Setting, output: str | None) -> None:
        self.output = output
        self.ended: float | None = None
        self._notes = setting.notes
        self._own = setting.outputs is not None
        self._descriptors: list[int] = []
        self._reading = threading.Lock()
        super().__init__(process_object)

    def duplicate_for_child(self, fd: int) -> int:
        """Send a descriptor along; it is named by its number."""
        self._descriptors.append(fd)
        return len(self._descriptors) - 1

    def _launch(self, process_object: process.BaseProcess) -> None:
        tracker = int(resource_tracker.getfd() or 0)
        letter = self._letter(process_object)
        parent_alive, parent = os.pipe()
        channel = self._request(name_of(process_object))
        self.sentinel = channel.fileno()
        self.finalizer = util.Finalize(self, _close, (channel, parent))
        # A rank that dies before it has read everything is told by its exit status, not by an error here: a large letter ends as a
        # small one does.
        with contextlib.ExitStack() as stack, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            stack.callback(os.close, parent_alive)
            output, errors = self._streams(stack)
            _send_letter(channel, letter, [tracker, parent_alive, output, errors, *self._descriptors])

    def _letter(self, process_object: process.BaseProcess) -> bytes:
        letter = io.BytesIO()
        preparation = spawn.get_preparation_data(process_object.name)
        context.set_spawning_popen(self)  # type: ignore[arg-type]
        try:
            reduction.dump(preparation, letter)
            reduction.dump(process_object, letter)
        finally:
            context.set_spawning_popen(None)
        return letter.getvalue()

    def _request(self, name: str) -> socket.socket:
        channel, rank = socket.socketpair()
        with rank:
            for own in (channel, rank):
                own.settimeout(None)  # the program may have set a default timeout
            wire.tell(self._notes, {"do": "fork", "name": name[:NAME], "own": self._own}, [rank.fileno()])
        answer = channel.recv(NUMBER.size, socket.MSG_WAITALL)
        if len(answer) < NUMBER.size:
            raise ProcessLookupError("the supervisor, which starts this program's ranks, has ended")
        self.pid = NUMBER.unpack(answer)[0]
        if self.pid < 0:
            raise OSError(-self.pid, os.strerror(-self.pid))
        return channel

    def _streams(self, stack: contextlib.ExitStack) -> tuple[int, int]:
        if self.output is not None:
            descriptor = _open_output(self.output)
            stack.callback(os.close, descriptor)
            return descriptor, descriptor
        return _own_stream(1, stack), _own_stream(2, stack)

    def poll(self, flag: int = os.WNOHANG) -> int | None:
        """Look for the exit status; without the flag, wait for it."""
        if self.returncode is None and connection.wait([self.sentinel], 0 if flag == os.WNOHANG else None):
            with self._reading:
                if self.returncode is None:
                    self.returncode = self._read_status()
        return self.returncode

    def _read_status(self) -> int:
        try:
            status, self.ended = END.unpack(os.read(self.sentinel, END.size))
            return int(status)
        except (OSError, struct.error):
            return LOST


def _close(channel: socket.socket, parent: int) -> None:
    channel.close()
    os.close(parent)


def _own_stream(descriptor: int, stack: contextlib.ExitStack) -> int:
    try:
        copy = os.dup(descriptor)
    except OSError:  # this process has closed it
        copy = os.open(os.devnull, os.O_WRONLY)
    stack.callback(os.close, copy)
    return copy


def _send_letter(channel: socket.socket, letter: bytes, descriptors: list[int]) -> None:
    batches = [descriptors[start : start + wire.MOST_DESCRIPTORS] for start in range(0, len(descriptors), wire.MOST_DESCRIPTORS)]
    for number, batch in enumerate(batches, 1):
        wire.send(channel, {"environment": own_environment() if number == 1 else {}, "more": number < len(batches)}, batch)
    channel.sendall(letter)


def forked_rank(channel: socket.socket, setting: Setting) -> NoReturn:
    """Be a rank, in a fork of the supervisor: what a spawned interpreter does, then the end of one."""
    environment, (tracker, parent_alive, output, errors, *rest) = _read_letter(channel)
    for source, target in ((output, 1), (errors, 2)):
        os.dup2(source, target)
        os.close(source)
    Received.descriptors = rest
    renew(environment)
    _begin_rank(setting)
    resource_tracker._resource_tracker._fd = tracker  # type: ignore[attr-defined]
    finish(exit_status(lambda: spawn._main(channel.detach(), parent_alive)), setting.notes)


def _read_letter(channel: socket.socket) -> tuple[dict[str, str], list[int]]:
    environment: dict[str, str] = {}
    descriptors: list[int] = []
    more = True
    while more:
        received = wire.receive(channel)
        if received is None:  # the process that asked for this rank has died since
            os._exit(1)
        environment.update(received[0]["environment"])
        descriptors += received[1]
        more = received[0]["more"]
    return environment, descriptors


# A forked process that is to be a new interpreter


def renew(environment: dict[str, str]) -> None:
    """Take the environment, and forget what this process has inherited from the one that it was forked from."""
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin, sys.stdout, sys.stderr = (_stream(number, name) for number, name in enumerate(("<stdin>", "<stdout>", "<stderr>")))
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
    tempfile.tempdir = None
    process.current_process().authkey = os.urandom(32)
    threading.main_thread()._set_native_id()  # type: ignore[attr-defined]
    _reseed()


def _stream(descriptor: int, name: str) -> io.TextIOWrapper:
    encoding, unbuffered = (old.encoding, old.write_through) if isinstance(old := sys.__stdout__, io.TextIOWrapper) else ("utf-8", False)
    raw = io.FileIO(descriptor, "rb" if descriptor == 0 else "wb", closefd=False)
    raw.name = name
    buffer: Any = io.BufferedReader(raw) if descriptor == 0 else raw if unbuffered else io.BufferedWriter(raw)
    errors = "backslashreplace" if descriptor == 2 else "strict"
    return io.TextIOWrapper(buffer, encoding, errors, write_through=unbuffered)


def _reseed() -> None:
    # Python's own generators are seeded anew in a fork; those of numpy and torch would be the same stream in every process.
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()


def enter(folder: str) -> None:
    """Make a folder the current one, as if this process had been started there."""
    os.chdir(folder)
    process.ORIGINAL_DIR = str(Path.cwd())  # type: ignore[attr-defined]


def disown_finalizers() -> None:
    """Leave the finalizers of what this process has imported out of the exit of its forks.

    A temporary folder that an import made is not theirs to remove; and torch would take apart 174 tables of operators, which takes
    longer than everything else that a fork does.
    """
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        finalizer.atexit = False


def clear_main() -> None:
    """Empty the module `__main__` in place: libraries that were imported before the program hold that very object."""
    module = sys.modules["__main__"]
    builtins = module.__dict__["__builtins__"]
    module.__dict__.clear()
    bare: dict[str, Any] = dict.fromkeys(("__doc__", "__package__", "__loader__", "__spec__"))
    module.__dict__.update(bare, __name__="__main__", __builtins__=builtins)


def exit_status(run: Callable[[], Any]) -> int:
    """Call a function and give the exit status that an interpreter would give, its error message written."""
    try:
        return int(run() or 0)
    except SystemExit as leaving:
        if leaving.code is None or isinstance(leaving.code, int):
            return leaving.code or 0
        sys.stderr.write(f"{leaving.code}\n")
    except BaseException:  # noqa: BLE001  the interpreter's own last handler takes all as well
        traceback.print_exc()
    return 1


def finish(status: int, notes: int | None = None) -> NoReturn:
    """End this process in the order in which an interpreter ends, without taking its modules apart.

    Args:
        status: exit status.
        notes: socket on which the supervisor is told that this process came to its own end.
    """
    for step in (threading._shutdown, atexit._run_exitfuncs, util._flush_std_streams):  # type: ignore[attr-defined]
        exit_status(step)
    if notes is not None:
        _tell_own_end(notes, os.getpid())
    os._exit(status & 0xFF)
