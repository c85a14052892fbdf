"""The processes that engines start as new interpreters: the role is the first argument, file descriptors and paths follow."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping

from rankbook.errors import EngineError

ROLES = {
    "zygote": "rankbook.engines.zygote:main",
    "supervisor": "rankbook.engines.fresh:supervisor_main",
    "program": "rankbook.engines.fresh:program_main",
}
PASSING = (errno.EAGAIN, errno.ENOMEM, errno.EFAULT)
"""What a system says that has no room for a process at the moment; `EFAULT` when it could not fetch the arguments from memory."""
PAUSES = (0.05, 0.5)
"""Seconds before it is asked again."""


def command(role: str, *arguments: object) -> list[str]:
    """Give the command line of a role."""
    # -P: whatever lies in the caller's current folder must not stand in for a module of ours.
    return [sys.executable, "-P", "-m", "rankbook.engines", role, *map(str, arguments)]


def start(command: list[str], descriptors: Collection[int], environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a role in a session of its own, without anything to read or to write; a system that is short of something is asked again.

    Args:
        command: what `command` gave.
        descriptors: what it inherits.
        environment: instead of this process's.

    Raises:
        EngineError: it could not be started.
    """
    pauses = iter(PAUSES)
    while True:
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=environment,
                pass_fds=tuple(descriptors),
                start_new_session=True,
            )
        except OSError as error:
            pause = next(pauses, None) if error.errno in PASSING else None
            if pause is None:
                raise EngineError(f"no interpreter can be started: {error}") from error
            time.sleep(pause)


def received(argument: str) -> int:
    """Take a descriptor that the command line names, -1 for none; what this process starts must not inherit it."""
    if int(argument) >= 0:
        os.set_inheritable(int(argument), False)  # noqa: FBT003  its only form
    return int(argument)


def main() -> None:
    """Play the role that the command line names; whoever started it may have blocked, or ignored, what tells of the end of children."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    module, _, function = ROLES[sys.argv[1]].partition(":")
    getattr(importlib.import_module(module), function)(*sys.argv[2:])
