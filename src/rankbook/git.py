"""Git, asked about a folder: the one place where it is started."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_SETTINGS = ("core.fsmonitor=false", "safe.bareRepository=explicit", "core.hooksPath=/dev/null", "log.showSignature=false")
_HARMLESS = ("--no-optional-locks", *(word for setting in _SETTINGS for word in ("-c", setting)))
"""Options that take no lock for which somebody else's Git would have to wait, and that let no repository have a program run: one may lie
within the tree, or be a folder of it."""


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
    command = ["git", "-C", os.fspath(folder), *_HARMLESS, *words]
    try:
        return subprocess.run(command, capture_output=True, check=False, env=environment, input=given, timeout=seconds)
    except (OSError, subprocess.SubprocessError):
        return None


def deciding(folder: Path) -> list[str]:
    """Name the files that decide what Git ignores in a folder, besides each `.gitignore` below: absolute, or from there.

    Those that are not there are among them, and what would make the folder one of a repository.

    Args:
        folder: where to ask.
    """
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "git")
    own = (Path.home() / ".gitconfig", settings / "config", settings / "ignore")
    above = (os.path.relpath(each / name, folder) for each in (folder, *folder.parents) for name in (".git/HEAD", ".gitignore"))
    answers = (
        asked(folder, "rev-parse", "--git-path", "index", "--git-path", "info/exclude", "--git-path", "config"),
        asked(folder, "config", "--path", "core.excludesFile"),
    )
    told = (line for answer in answers if answer and not answer.returncode for line in os.fsdecode(answer.stdout).splitlines())
    return [*told, *map(os.fspath, own), *above]
