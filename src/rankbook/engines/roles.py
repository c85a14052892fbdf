"""The processes that engines start as new interpreters: the role is the first argument, file descriptors and paths follow."""

from __future__ import annotations

import importlib
import os
import sys

ROLES = {
    "zygote": "rankbook.engines.zygote:main",
    "supervisor": "rankbook.engines.fresh:supervisor_main",
    "program": "rankbook.engines.fresh:program_main",
}


def command(role: str, *arguments: object) -> list[str]:
    """Give the command line of a role."""
    # -P: whatever lies in the caller's current folder must not stand in for a module of ours.
    return [sys.executable, "-P", "-m", "rankbook.engines", role, *map(str, arguments)]


def received(argument: str) -> int:
    """Take a descriptor that the command line names; what this process starts must not inherit it."""
    os.set_inheritable(int(argument), False)  # noqa: FBT003  its only form
    return int(argument)


def main() -> None:
    """Play the role that the command line names."""
    module, _, function = ROLES[sys.argv[1]].partition(":")
    getattr(importlib.import_module(module), function)(*sys.argv[2:])
