"""What a program may leave behind besides processes: shared memory, files, and too much output."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import stat
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

SHARED_MEMORY = "/dev/shm"  # noqa: S108  the system's place for it
OUTPUT_QUOTA = 8 * 1024 * 1024
"""Bytes that a rank's output may take on the disk before its middle is let go."""
KEPT = 1024 * 1024
"""Bytes kept at each end of such an output."""
_KEEP_SIZE, _PUNCH_HOLE = 0x01, 0x02
_BLOCK = 4096


class SharedMemory:
    """The entries of the system's shared memory that one program makes."""

    def __init__(self) -> None:
        self._before = set(_names())

    def appeared(self) -> bool:
        """Whether there are new entries, whoever made them."""
        return any(name not in self._before for name in _names())

    def own(self, mapped: Iterable[str], pids: Collection[int]) -> list[str]:
        """Name what has appeared since and is the program's: its processes have mapped it, or it bears the id of one of them.

        Args:
            mapped: files that processes of the program have, or had, in memory.
            pids: ids of all processes of the program.
        """
        own = {Path(path).name for path in mapped}
        return [name for name in _names() if name not in self._before and (name in own or _bears(name, pids))]


def _names() -> list[str]:
    try:
        return os.listdir(SHARED_MEMORY)  # noqa: PTH208  names are wanted
    except OSError:
        return []


def _bears(name: str, pids: Collection[int]) -> bool:
    # `torch_4711_1234567_0`: the first number is the process.
    match = re.match(r"(?:torch|psm|loky|sem\.loky)[_-](\d+)[_-]", name)
    return match is not None and int(match[1]) in pids


def remove_shared_memory(names: Iterable[str]) -> None:
    """Remove entries of the shared memory."""
    for name in names:
        with contextlib.suppress(OSError):
            Path(SHARED_MEMORY, name).unlink()


def remove_folder(folder: str) -> None:
    """Remove a folder with all that is in it, folders that the program has made unreadable included."""
    shutil.rmtree(folder, ignore_errors=True)
    if not Path(folder).exists():
        return
    for path, folders, _ in os.walk(folder):
        for name in folders:
            with contextlib.suppress(OSError):
                Path(path, name).chmod(stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)


def trim(path: str | os.PathLike[str], done: int) -> int:
    """Give back the disk that the middle of a long output takes; its length stays, its head and tail too.

    Args:
        path: file of the output, which may be written at the same time.
        done: how far it was trimmed before.

    Returns:
        How far it is trimmed now.
    """
    with contextlib.suppress(OSError):
        end = (os.stat(path).st_size - KEPT) // _BLOCK * _BLOCK  # noqa: PTH116  a hundred times a second
        start = max(done, KEPT)
        if end - start > OUTPUT_QUOTA - 2 * KEPT:
            _punch(path, start, end - start)
            return end
    return done


def _punch(path: str | os.PathLike[str], start: int, length: int) -> None:
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        if libc.fallocate(descriptor, _PUNCH_HOLE | _KEEP_SIZE, start, length) != 0:
            raise OSError(ctypes.get_errno(), "this file system cannot let go of a part of a file")
    finally:
        os.close(descriptor)
