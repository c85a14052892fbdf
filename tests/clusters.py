"""Engines of several nodes on this machine, and what tests ask about processes."""

from __future__ import annotations

import importlib.util
import os
import time
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "engine_programs"
MARK = "RANKBOOK_TEST_RUN"


def need_ray():
    """Skip without Ray, or fail where Ray is required."""
    if importlib.util.find_spec("ray") is not None:
        return
    if os.environ.get("RANKBOOK_REQUIRE_RAY"):
        pytest.fail("ray is not installed, and RANKBOOK_REQUIRE_RAY is set")
    pytest.skip("ray is not installed: pip install 'rankbook[ray]'")


def pretend_allocation(patch: pytest.MonkeyPatch, folder: Path, nodes: int) -> None:
    """Make this process believe that it is inside a Slurm allocation."""
    folder.mkdir(exist_ok=True)
    (folder / "srun").symlink_to(Path(__file__).parent / "fake_srun")
    patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    patch.setenv("SLURM_JOB_ID", "1")
    patch.setenv("SLURM_NNODES", str(nodes))
    patch.delenv("SLURM_JOB_NUM_NODES", raising=False)
    patch.setenv("RANKBOOK_CALLER_HOST", "127.0.0.1")


def marked_processes(value: str) -> dict[int, str]:
    """Map the living processes that were started with the mark, but for this one, to their command lines."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            if f"{MARK}={value}".encode() not in (entry / "environ").read_bytes():
                continue
            if (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
    return found


def comes_true(condition, limit: float = 20.0) -> bool:
    """Wait for a condition; says whether it came true in time."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
