"""What a run ran on: hardware, torch, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from collections import Counter
from functools import cache
from importlib import metadata
from pathlib import Path

SECONDS = 20
"""How long a query may take."""


@cache
def hardware() -> str:
    """Name the visible GPUs as `nvidia-smi` does, without touching CUDA in this process; else the CPU's cores."""
    listed = _said("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").splitlines()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        listed = listed[: len([entry for entry in visible.split(",") if entry.strip()])]
    gpus = ", ".join(f"{count} × {name}" for name, count in Counter(listed).items())
    return gpus or f"CPU, {os.cpu_count()} cores, {platform.machine()}"


@cache
def torch_version() -> str:
    """Give the version of the installed torch without importing it; empty when there is none."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return ""


@cache
def commit(root: Path) -> str:
    """Give the commit that is checked out, with `+` when files differ from it; empty outside Git."""
    return _said("git", "-C", str(root), "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*").strip()


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
