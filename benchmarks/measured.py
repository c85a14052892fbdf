"""Wall and CPU seconds of a command with all its descendants, also of those that nobody waits for, and what memory they took."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ACCOUNTS = (("/sys/fs/cgroup/cpuacct", "cpuacct.usage"), ("/sys/fs/cgroup", "cpu.stat"))
"""Folders below which a control group can be made, and the file in which it counts CPU time."""


@dataclass(frozen=True)
class Measured:
    """What a command took, and what it said."""

    wall: float
    cpu: float
    status: int
    output: str
    peak: float = 0
    """MB of the largest process, among those that were waited for."""

    @property
    def last(self) -> str:
        """Its last line."""
        return next(iter(self.output.strip().splitlines()[-1:]), "")


def run(command: Sequence[str], cwd: Path, variables: Mapping[str, str] | None = None, limit: float | None = None) -> Measured:
    """Run a command, and measure it.

    Without a control group of its own, CPU seconds are those of the whole machine meanwhile. Python keeps the bytecode of what it has
    imported, as it does for its users, whatever the environment says.
    """
    group = _group()
    start, before = time.perf_counter(), _used(group)
    entered = ["sh", "-c", 'echo $$ > "$0"; exec "$@"', str(group / "cgroup.procs"), *command] if group else list(command)
    with tempfile.TemporaryFile("w+") as said:
        done = subprocess.Popen(
            entered, cwd=cwd, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **(variables or {})}, stdout=said, stderr=subprocess.STDOUT
        )
        killer = threading.Timer(limit, done.kill) if limit else None
        if killer:
            killer.start()
        _, ended, usage = os.wait4(done.pid, 0)
        if killer:
            killer.cancel()
        status = done.returncode = os.waitstatus_to_exitcode(ended)
        wall, cpu = time.perf_counter() - start, _used(group) - before
        said.seek(0)
        output = said.read()
    if group:
        with suppress(OSError):
            group.rmdir()
    return Measured(wall, cpu, status, output, usage.ru_maxrss / 1024)


def _group() -> Path | None:
    for folder, account in ACCOUNTS:
        group = Path(folder, f"rankbook-benchmark-{os.getpid()}-{time.monotonic_ns()}")
        with suppress(OSError):
            group.mkdir()
            if (group / account).is_file() and os.access(group / "cgroup.procs", os.W_OK):
                return group
            group.rmdir()
    return None


def _used(group: Path | None) -> float:
    if group is None:
        ticks = Path("/proc/stat").read_text(encoding="ascii").split()
        return sum(map(int, (ticks[1], ticks[2], ticks[3]))) / os.sysconf("SC_CLK_TCK")
    if (group / "cpuacct.usage").is_file():
        return int((group / "cpuacct.usage").read_text()) / 1e9
    return int((group / "cpu.stat").read_text().split()[1]) / 1e6


def chromium() -> str:
    """Give the path of Chromium: without its windows where that is there, as the tests use it.

    Raises:
        SystemExit: there is none.
    """
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise SystemExit(f"no Chromium on the PATH; install one of {', '.join(names)}")
    return found
