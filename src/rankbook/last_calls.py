"""The last call of torch.distributed in each process of a program, kept where it can be read when the process is dead.

A rank that is killed, that crashes or that waits for ever can tell nobody where it has come to. So each process writes its last call into
a file without a name that all processes of the program share: at the place that its process id gives it, over the call before.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from typing import ClassVar

from msgspec import Struct

SIZE = 256
"""Bytes that a process has in the file; of what is never written nothing is kept."""
_NOBODY = b"\0" * SIZE
_COLLECTIVES = os.path.join("torch", "distributed", "distributed_c10d.py")  # noqa: PTH118  compared with the end of a frame's file


class LastCall(Struct, frozen=True):
    """What a process has come to."""

    name: str = ""
    """Function of torch.distributed that it has called last; empty for none."""
    place: str = ""
    """The program's line that has called it, by a path below the program's folder: `train.py:12`; empty for none."""
    at: float = 0.0
    """When it was called, on the machine's monotonic clock."""
    entered: float = 0.0
    """When a test's body was entered, on the same clock; 0 for never."""

    def __str__(self) -> str:
        """Say it: `all_reduce (train.py:12)`."""
        return f"{self.name} ({self.place})" if self.place else self.name


class System:
    """The system's functions, as they were when this was imported: what a test puts in their places is for the test alone."""

    # In a class: those who freeze the time replace its functions in every module that has them.
    monotonic = time.monotonic
    getpid = os.getpid
    fstat = os.fstat
    write = os.write
    pwrite = os.pwrite


class Held:
    """The file, as this process has it: what is written, and by whom."""

    descriptor: ClassVar[int] = -1
    """Of the file; -1 for none."""
    identity: ClassVar[tuple[int, int]] = (0, 0)
    """Of the file: the program may have closed the descriptor, and opened something else in its place."""
    root: ClassVar[str] = ""
    """Folder of the program, with a slash behind it."""
    entered: ClassVar[float] = 0.0


def create() -> int:
    """Make the file of a program; gives its descriptor, -1 when that is impossible."""
    with contextlib.suppress(OSError):
        if hasattr(os, "memfd_create"):
            return os.memfd_create("rankbook-last-calls")
        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())
    return -1


def hold(descriptor: int, root: str) -> None:
    """Write what this process calls from now on; what an earlier one with its number has written is gone.

    Args:
        descriptor: of the file.
        root: folder of the program.
    """
    Held.descriptor, Held.root, Held.entered = -1, f"{root.rstrip('/')}/", 0.0
    with contextlib.suppress(OSError):
        found = System.fstat(descriptor)
        Held.descriptor, Held.identity = descriptor, (found.st_dev, found.st_ino)
        System.pwrite(descriptor, _NOBODY, System.getpid() * SIZE)


def note_entry() -> None:
    """Note that this process enters a test's body: what it has called before is of no interest any more."""
    Held.entered = System.monotonic()
    note("")


def note(name: str) -> None:
    """Note a call, where there is a file, with the line of the program that has called it.

    Args:
        name: function of torch.distributed.
    """
    # One function, and nothing in it but what is written in C: it is called whenever a rank communicates.
    if Held.descriptor < 0:
        return
    place, frame = "", sys._getframe(1).f_back if name else None
    if frame is not None and frame.f_code.co_filename.endswith(_COLLECTIVES):
        return  # a part of the call before
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(Held.root):
            place = f"{file[len(Held.root) :]}:{frame.f_lineno}"
            break
        frame = frame.f_back
    moments = f"{System.monotonic()!r}\n{Held.entered!r}\n{name}\n"
    said = f"{moments}{place}\n".encode(errors="replace")
    if len(said) > SIZE:
        said = f"{moments}\n".encode(errors="replace")
    try:
        found = System.fstat(Held.descriptor)
        if (found.st_dev, found.st_ino) == Held.identity:
            System.pwrite(Held.descriptor, said.ljust(SIZE, b"\0"), System.getpid() * SIZE)
    except OSError:
        pass


def last_call(pid: int, descriptor: int | None = None) -> LastCall:
    """Give what a process, dead or alive, has come to.

    Args:
        pid: its process id.
        descriptor: of the file; the one that this process has, when not given.
    """
    with contextlib.suppress(OSError, ValueError):
        data = os.pread(Held.descriptor if descriptor is None else descriptor, SIZE, pid * SIZE)
        at, entered, name, place, *_ = data.decode(errors="replace").split("\n")
        return LastCall(name, place, float(at), float(entered))
    return LastCall()
