"""A program on its way to its supervisor, and what the supervisor says of its end."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rankbook.listing import Program

TEMPORARY, OUTPUTS, FINISHED = "tmp", "ranks", "finished"
"""In a job's folder: the program's TMPDIR, one file per rank, and a mark that the main process came to its end."""


@dataclass(frozen=True, slots=True)
class Job:
    """A program with all that its processes need to know."""

    program: Program
    environment: dict[str, str]
    """The whole environment of its main process."""
    folder: str
    """Private folder; it goes when the program has ended."""
    caller: int
    """Process that asked for it; the program ends with that process."""

    def message(self) -> dict[str, Any]:
        """Give it as plain data."""
        program = {entry.name: getattr(self.program, entry.name) for entry in fields(Program)}
        program.update(arguments=dict(self.program.arguments), environment=dict(self.program.environment))
        return {"program": program, "environment": self.environment, "folder": self.folder, "caller": self.caller}

    @classmethod
    def of(cls, message: dict[str, Any]) -> Job:
        """Make a job from plain data."""
        return cls(**{**message, "program": Program(**message["program"])})

    @property
    def outputs(self) -> Path:
        """Folder with a file per rank."""
        return Path(self.folder, OUTPUTS)

    @property
    def finished(self) -> Path:
        """File that the main process makes when its entry has returned."""
        return Path(self.folder, FINISHED)


def environment_of(program: Program) -> dict[str, str]:
    """Give the environment that a program asks for: the caller's, and its own on top."""
    return {**os.environ, **program.environment}


def prepare(program: Program) -> Job:
    """Make a program's private folder and its job."""
    folder = tempfile.mkdtemp(prefix="rankbook-")
    for name in (TEMPORARY, OUTPUTS):
        Path(folder, name).mkdir()
    environment = environment_of(program)
    if "TMPDIR" not in program.environment:
        environment["TMPDIR"] = str(Path(folder, TEMPORARY))
    return Job(program, environment, folder, os.getpid())
