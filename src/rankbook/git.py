"""Git, asked about a folder: the one place where it is started."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path


def asked(
    folder: Path, *words: str, given: bytes = b"", more: Mapping[str, str] | None = None, seconds: float | None = None
) -> subprocess.CompletedProcess[bytes] | None:
    """Ask Git about a folder: how it ended; None when it is not there, or does not answer in time.

    Args:
        folder: where to ask.
        words: of the command.
        given: what the command reads.
        more: further variables of its environment.
        seconds: time that it may take; None for as long as it wants.
    """
    # A hook of Git's own names its repository by the environment, whichever folder is asked about.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | dict(more or {})
    command = ["git", "-C", os.fspath(folder), *words]
    try:
        return subprocess.run(command, capture_output=True, check=False, env=environment, input=given, timeout=seconds)
    except (OSError, subprocess.SubprocessError):
        return None
