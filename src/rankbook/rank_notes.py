"""What the ranks of a program note of themselves: the process groups that they make, the tests that they enter, and how they end.

A rank is another process, which may be killed at any moment, and the harnesses of torch tell nothing of all this. So each note is a line
that is written at once into a pipe, which the program's main process reads: no full disk and no read-only folder is in its way, and a
process that cannot write goes on without. The pipe travels with what `multiprocessing` sends to each process that an engine starts.
Torch has no door through which groups, calls and tests could be seen. So private names of torch are wrapped here and nowhere else: the
function that makes every group, the one that starts processes, the decorator of all collectives, and the methods of its harnesses that
stand between a test and its body. Written against torch 2.6 to 2.13.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import importlib.machinery
import json
import os
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import context, reduction, spawn
from types import ModuleType, TracebackType
from typing import Any, ClassVar

from msgspec import Struct

from rankbook import last_calls
from rankbook.last_calls import System

KINDS = BEGAN, GROUP, BODY, SKIP, DONE, END, NOBODY = ("began", "group", "body", "skip", "done", "end", "nobody")
"""Kinds of notes: a rank begins, has made a process group, enters a test's body, is told to skip it, has left it, ends in order; and a
process starts no ranks where it might have started some."""
ROOM = 1 << 20
"""Bytes that the pipe is to hold until somebody reads."""
LONGEST = 300
"""Characters of a note's text: the whole note, escapes included, must be less than what a pipe takes at once."""
STARTERS = "rankbook.engines."
"""Modules whose ways to start a process make rankbook importable in it."""
HARNESSES = (
    ("MultiProcessTestCase", "join_or_run"),
    ("MultiThreadedTestCase", "join_or_run"),
    ("MultiProcContinuousTest", "_worker_run_main_wait"),
)
"""Test harnesses of torch, and the method of each that puts itself before a test's body."""
UNDECORATED = (
    "isend", "irecv", "batch_isend_irecv", "monitored_barrier", "new_group", "new_subgroups", "new_subgroups_by_enumeration", "split_group",
    "shrink_group",
)  # fmt: skip
"""Functions of torch.distributed that may wait for other ranks, and have not the decorator that the collectives have."""
_PASSING_ON = (
    "lambda plain, name: lambda *args, __tracebackhide__=True, **kwargs: "
    "(torch.compiler.is_dynamo_compiling() or note(name), plain(*args, **kwargs))[1]"
)
NO_LINE = 0
"""The line of frames that note a call: no line of torch's file is theirs."""
ACCELERATORS = ("cuda", "xpu")
"""Devices whose module in torch says whether it was used."""


class Note(Struct, frozen=True):
    """One thing that a process says of itself."""

    pid: int
    at: float
    """On the machine's monotonic clock."""
    what: str
    """One of the kinds above."""
    rank: int | None = None
    """Of the test's instance that entered or left the body."""
    text: str = ""
    """Backend of a group, name of a test, reason of a skip, kind of device at an end."""
    size: int = 0
    """World size of a group."""

    def line(self) -> bytes:
        """Write it as a line."""
        return json.dumps([self.pid, self.at, self.what, self.rank, self.text, self.size]).encode() + b"\n"

    @classmethod
    def of(cls, line: bytes) -> Note | None:
        """Read it from a line; None when something else has written that."""
        try:
            pid, at, what, rank, text, size = json.loads(line)
        except (ValueError, TypeError):
            return None
        return cls(pid, at, what, rank, text, size) if what in KINDS else None


def rank_name(process: str) -> str:
    """Turn the name of a rank's process into the name of the rank: `process 1` → `rank 1`."""
    head, _, number = process.rpartition(" ")
    return f"rank {number}" if head in ("process", "rank") and number.isdigit() else process


# The pipe


class Pen:
    """The end of the pipe that notes are written to.

    Args:
        descriptor: of the pipe.
    """

    held: ClassVar[Pen | None] = None
    """The one that this process writes with."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._pipe = _identity(descriptor)
        self._groups: set[tuple[str, int]] = set()

    @property
    def is_whole(self) -> bool:
        """Whether the descriptor is still that of the pipe: the program may have closed it, and opened something else in its place."""
        try:
            return _identity(self.descriptor) == self._pipe
        except OSError:
            return False

    def write(self, what: str, rank: int | None = None, text: str = "", size: int = 0) -> None:
        """Write a note, unless that is impossible; the same group is noted once."""
        if what == GROUP:
            if (text, size) in self._groups:
                return
            self._groups.add((text, size))
        note = Note(System.getpid(), System.monotonic(), what, rank, text[:LONGEST], size)
        with contextlib.suppress(OSError):
            if self.is_whole:
                System.write(self.descriptor, note.line())

    def forget_groups(self) -> None:
        """Note again what groups are made: another test begins."""
        self._groups.clear()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Travel to a process that an engine starts; for any other, be nothing."""
        popen = context.get_spawning_popen()
        if popen is None or not type(popen).__module__.startswith(STARTERS) or not self.is_whole:
            return bool, ()
        return begin, (reduction.DupFd(self.descriptor),)


def _identity(descriptor: int) -> tuple[int, int]:
    found = System.fstat(descriptor)
    return found.st_dev, found.st_ino


class Reader:
    """The end of the pipe that notes are read from.

    Args:
        descriptor: of the pipe.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._partial = b""
        self.may_miss = False
        """Whether the pipe has ever been so full that notes may have been lost."""

    def read(self) -> list[Note]:
        """Give the notes that have come since the last call."""
        data = self._partial
        before = len(data)
        with contextlib.suppress(OSError):
            while more := os.read(self._descriptor, ROOM):
                data += more
        self.may_miss |= len(data) - before > _capacity(self._descriptor) // 2
        *lines, self._partial = data.split(b"\n")
        return [note for line in lines if (note := Note.of(line)) is not None]


def _capacity(descriptor: int) -> int:
    with contextlib.suppress(OSError, AttributeError):
        return fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ)
    return 1 << 14  # the least that a pipe holds on any system


def open_pipe() -> Reader:
    """Open the pipe in a program's main process, have it travel to all ranks, and note what the main process does too."""
    source, descriptor = os.pipe()
    for end in (source, descriptor):
        os.set_blocking(end, False)
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, ROOM)
    Pen.held = Pen(descriptor)
    plain = spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        return {**plain(name), "rankbook": Pen.held}

    spawn.get_preparation_data = get_preparation_data
    _observe()
    return Reader(source)


def begin(descriptor: Any) -> bool:
    """Take the pipe, in a rank, and note what it does from now on."""
    with contextlib.suppress(Exception):  # a rank must run without it too
        number = int(descriptor.detach())
        os.set_inheritable(number, False)  # noqa: FBT003  its only form
        Pen.held = Pen(number)
        note(BEGAN)
        atexit.register(_end)
        _observe()
    return Pen.held is not None


def _end() -> None:
    note(END, text=device())


def note(what: str, rank: int | None = None, text: str = "", size: int = 0) -> None:
    """Write a note, where there is a pipe."""
    if Pen.held is not None:
        Pen.held.write(what, rank, text, size)


def forget_groups() -> None:
    """Note again what groups this process makes: another test begins."""
    if Pen.held is not None:
        Pen.held.forget_groups()


def device() -> str:
    """Name the kind of device that this process has used; empty without torch."""
    torch = sys.modules.get("torch")
    if torch is None:
        return ""
    with contextlib.suppress(Exception):  # torch may be half imported
        return next((name for name in ACCELERATORS if hasattr(torch, name) and getattr(torch, name).is_initialized()), "cpu")
    return ""


# What is observed


def _observe() -> None:
    """Wrap what torch has, now where it is imported, else when it is."""
    missing = [name for name in OBSERVED if name not in sys.modules]
    for name in OBSERVED.keys() - set(missing):
        OBSERVED[name](sys.modules[name])
    if missing:
        sys.meta_path.insert(0, Finder(OBSERVED))


def observe_calls() -> None:
    """Note the calls of torch.distributed, where torch is not imported yet: others import its functions from one another."""
    if not CALLS.keys() & sys.modules.keys() and not any(
        isinstance(finder, Finder) and finder.observed is CALLS for finder in sys.meta_path
    ):
        sys.meta_path.insert(0, Finder(CALLS))


class Finder:
    """Finds the modules of torch that are observed, and wraps their parts once they are imported.

    Args:
        observed: modules, and what wraps their parts.
    """

    def __init__(self, observed: Mapping[str, Callable[[ModuleType], None]]) -> None:
        self.observed = observed

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find such a module as Python does."""
        if fullname not in self.observed:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return None
        plain = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            plain(module)
            for finder in [each for each in sys.meta_path if isinstance(each, Finder) and fullname in each.observed]:
                finder.observed[fullname](module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _observe_groups(module: ModuleType) -> None:
    make: Any = getattr(module, "_new_process_group_helper", None)
    if make is None:
        return

    @functools.wraps(make)
    def making(*args: Any, **kwargs: Any) -> Any:
        made = make(*args, **kwargs)
        with contextlib.suppress(Exception):  # another torch may give something else
            _note_group(module, made[0])
        return made

    module._new_process_group_helper = making  # type: ignore[attr-defined]


def _note_group(module: Any, group: Any) -> None:
    if group is module.GroupMember.NON_GROUP_MEMBER:
        return
    by_device = str(module.get_backend_config(group)).split(",")
    backends = dict.fromkeys(entry.rpartition(":")[2] for entry in by_device)
    note(GROUP, text=",".join(backends), size=int(group.size()))


def _observe_collectives(module: ModuleType) -> None:
    decorate: Any = getattr(module, "_exception_logger", None)
    if decorate is None:
        return
    code = decorate(lambda: None).__code__

    def deciding(function: Any) -> Any:
        return _noting_call(decorate(function), getattr(function, "__name__", ""), code.co_filename, code.co_name)

    module._exception_logger = functools.wraps(decorate)(deciding)  # type: ignore[attr-defined]


def _observe_other_calls(module: ModuleType) -> None:
    for name in UNDECORATED:
        plain = getattr(module, name, None)
        if isinstance(plain, types.FunctionType):
            setattr(module, name, _noting_call(plain, name, str(module.__file__), name))
    work = getattr(module, "Work", None)
    if work is not None and "wait" in vars(work):
        work.wait = _noting_call(work.wait, "Work.wait", str(module.__file__), "wait")


def _noting_call(plain: Any, called: str, file: str, name: str) -> Any:
    """Give a function that notes a call and passes it on: to those who look at stacks or compile calls a part of that file of torch."""
    note_call = types.FunctionType(last_calls.note.__code__.replace(co_filename=file), vars(last_calls))
    known = {"__name__": __name__, "torch": sys.modules["torch"], "note": note_call}
    calling = eval(compile(_PASSING_ON, file, "eval"), known)(plain, called)  # noqa: S307  our own text
    calling.__code__ = calling.__code__.replace(co_firstlineno=NO_LINE, co_name=name, co_qualname=name)
    return functools.wraps(plain)(calling)


def without_notes(trace: TracebackType | None) -> TracebackType | None:
    """Leave out of a traceback the calls that note a call: plain Python would not show them."""
    kept = []
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__") != __name__:
            kept.append(trace)
        trace = trace.tb_next
    for entry, following in zip(kept, [*kept[1:], None], strict=False):
        entry.tb_next = following
    return kept[0] if kept else None


def _observe_starts(module: ModuleType) -> None:
    start: Any = getattr(module, "start_processes", None)
    if start is None:
        return

    @functools.wraps(start)
    def starting(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if kwargs.get("nprocs", args[2] if len(args) > 2 else 1) == 0:
            note(NOBODY)
        return start(*args, **kwargs)

    for holder in (module, sys.modules.get("torch.multiprocessing")):
        if getattr(holder, "start_processes", None) is start:
            holder.start_processes = starting  # type: ignore[union-attr]


def _observe_bodies(module: ModuleType) -> None:
    for harness, method in HARNESSES:
        cls = getattr(module, harness, None)
        if cls is not None and method in vars(cls):
            setattr(cls, method, _noting_body(vars(cls)[method]))


def _noting_body(join_or_run: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Note the test that a rank enters; in the main process, which waits, nothing changes."""

    @functools.wraps(join_or_run)
    def noting(instance: Any, body: Any) -> Any:
        harness = join_or_run(instance, body)

        @functools.wraps(body)
        def test(instance: Any) -> Any:
            __tracebackhide__ = True
            rank = getattr(instance, "rank", None)
            with _Noted(rank, body) if isinstance(rank, int) and rank >= 0 else contextlib.nullcontext():
                return harness()

        return types.MethodType(test, instance)

    return noting


class _Noted:
    """Notes that a rank enters a test's body, and how it leaves it.

    Args:
        rank: the rank.
        body: the test.
    """

    def __init__(self, rank: int, body: Any) -> None:
        self.rank = rank
        self.body = body

    def __enter__(self) -> None:
        note(BODY, self.rank, getattr(self.body, "__name__", ""))
        last_calls.note_entry()

    def __exit__(self, kind: object, raised: object, trace: object) -> None:
        if any(base.__name__ == "SkipTest" for base in type(raised).__mro__):  # to import unittest would cost more than all the rest
            note(SKIP, self.rank, str(raised))
        note(DONE, self.rank, device())


OBSERVED: Mapping[str, Callable[[ModuleType], None]] = {
    "torch.distributed.distributed_c10d": _observe_groups,
    "torch.multiprocessing.spawn": _observe_starts,
    "torch.testing._internal.common_distributed": _observe_bodies,
}
"""Modules of torch, and what wraps their parts."""
CALLS: Mapping[str, Callable[[ModuleType], None]] = {
    "torch.distributed.c10d_logger": _observe_collectives,
    "torch.distributed.distributed_c10d": _observe_other_calls,
}
"""Modules of torch, and what notes the calls of their functions: by the decorator that all collectives have, and of the others by name."""
