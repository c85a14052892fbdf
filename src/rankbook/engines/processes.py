"""What the system knows of processes: their parents, their command lines, what they catch, and when they are to die."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SET_PARENT_DEATH_SIGNAL = 1
SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def die_with(parent: int) -> None:
    """Have this process killed as soon as its parent ends."""
    _prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the kernel knew
        os._exit(1)


def leave_group() -> None:
    """Put this process into a new process group that it does not lead: whoever leads one may begin no session (`os.setsid`)."""
    leader = os.fork()
    if not leader:
        signal.pause()
        os._exit(0)
    try:
        os.setpgid(leader, leader)
        os.setpgid(0, leader)
    finally:
        os.kill(leader, signal.SIGKILL)
        os.waitpid(leader, 0)


def adopt_orphans() -> None:
    """Make this process the parent of all its descendants whose own parent ends."""
    _prctl(SET_CHILD_SUBREAPER, 1)


_BEGAN = 19
"""Where the time stands at which a process began, in clock ticks, of what `/proc/PID/stat` tells after its name."""


def descendants(root: int) -> list[int]:
    """List the living processes below one, parents before children, those of one parent as they began; zombies are not alive."""
    children: dict[int, list[int]] = {}
    dead = set()
    for pid, parent, state in _all():
        children.setdefault(parent, []).append(pid)
        if state in "ZX":
            dead.add(pid)
    found = [root]
    for pid in found:
        found.extend(children.get(pid, ()))
    return [pid for pid in found[1:] if pid not in dead]


def _all() -> Iterator[tuple[int, int, str]]:
    return _all_of_proc() if sys.platform == "linux" else all_of_ps()


def _all_of_proc() -> Iterator[tuple[int, int, str]]:
    """Yield them as they began: after the last number that it gives, the system begins anew with low ones."""
    found = [(int(entry), fields) for entry in _listdir("/proc") if entry.isdigit() and (fields := _stat(int(entry)))]
    for pid, fields in sorted(found, key=lambda each: (int(each[1][_BEGAN]), each[0])):
        yield pid, int(fields[1]), fields[0]


def all_of_ps() -> Iterator[tuple[int, int, str]]:
    """Yield process, parent and state letter of all processes, where there is no /proc."""
    listing = subprocess.run(["ps", "-axo", "pid=,ppid=,stat="], capture_output=True, text=True, check=False).stdout
    for line in listing.splitlines():
        pid, parent, letters = line.split()[:3]
        yield int(pid), int(parent), letters[0]


def _listdir(path: str) -> list[str]:
    try:
        return os.listdir(path)  # noqa: PTH208  names are wanted, of folders that come and go
    except OSError:
        return []


def _read(path: str) -> str:
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


def _stat(pid: int) -> list[str]:
    return _read(f"/proc/{pid}/stat").rpartition(")")[2].split()


def state(pid: int) -> str:
    """Give the state letter of a process: `R`, `S`, `D`, `T`, `Z`; empty when there is none."""
    return next(iter(_stat(pid)), "")


def is_alive(pid: int) -> bool:
    """Whether there is such a process, and not only its exit status."""
    if sys.platform == "linux":
        return state(pid) not in ("", "Z", "X")
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def processor_time(pid: int) -> int:
    """Give the processor time that a process has used, in clock ticks; 0 where that cannot be told."""
    fields = _stat(pid)
    return int(fields[11]) + int(fields[12]) if len(fields) > 12 else 0


def is_at_work(pid: int) -> bool:
    """Whether any thread of a process runs, wants to run, or waits for a disk."""
    tasks = _listdir(f"/proc/{pid}/task")
    return any(_read(f"/proc/{pid}/task/{task}/stat").rpartition(")")[2].lstrip()[:1] in ("R", "D") for task in tasks)


CLOCK_NANOSLEEP = {"x86_64": "230", "aarch64": "115", "ppc64le": "248", "riscv64": "115", "s390x": "262"}
"""Number of the system call, by machine."""


def is_in_sleep(pid: int) -> bool:
    """Whether the main thread is in `time.sleep`: until a time of the monotonic clock, as no `sleep` function of C waits."""
    call = _read(f"/proc/{pid}/syscall").split()
    return call[:3] == [CLOCK_NANOSLEEP.get(platform.machine(), ""), "0x1", "0x1"]


def zombie_status(pid: int) -> int | None:
    """Give the exit status, negative for a signal, of a process that has ended and that its parent has not asked for yet."""
    fields = _stat(pid)
    if len(fields) < 50 or fields[0] != "Z":
        return None
    return os.waitstatus_to_exitcode(int(fields[49]))


def mapped_files(pid: int, folder: str) -> set[str]:
    """List the files below a folder that a process has mapped into its memory."""
    lines = (line.split(maxsplit=5) for line in _read(f"/proc/{pid}/maps").splitlines())
    return {parts[5].removesuffix(" (deleted)") for parts in lines if len(parts) == 6 and parts[5].startswith(f"{folder}/")}


def arguments(pid: int) -> list[str]:
    """Give the command line of a process."""
    return _read(f"/proc/{pid}/cmdline").rstrip("\0").split("\0")


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal."""
    for line in _read(f"/proc/{pid}/status").splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def holds_pipe(pid: int, inode: int) -> bool:
    """Whether a process has an end of a pipe open.

    Args:
        pid: of the process.
        inode: of the pipe.
    """
    for name in _listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            if str(Path(f"/proc/{pid}/fd/{name}").readlink()) == f"pipe:[{inode}]":
                return True
    return False


def threads() -> int:
    """Count the threads of this process, those that Python does not know included."""
    return len(_listdir("/proc/self/task"))


def send_signal(pid: int, number: int) -> None:
    """Send a signal to a process that may have ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
