"""Questions to Git about the folder of a project, where it has one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from rankbook.git import asked

_WAYS = ((), *(("-s", "recursive", f"-Xdiff-algorithm={way}") for way in ("myers", "patience", "minimal")))
"""How Git may have compared lines: as this one does by itself, and as others do or a setting says."""
_COMMIT = "commit refs/heads/{0}\ncommitter rankbook <rankbook> 0 +0000\ndata 0\n"


class Stages(Struct, frozen=True):
    """A file in conflict as Git keeps it until the conflict is resolved."""

    base: bytes | None
    """What both sides were made from; None when both have added the file."""
    ours: bytes
    theirs: bytes


def ask(folder: Path, *words: str, given: bytes = b"") -> bytes:
    """Ask Git; nothing where it has no answer.

    Args:
        folder: where to ask.
        words: of the command.
        given: what the command reads.
    """
    return _said(folder, words, given, {})


def is_unmerged(file: Path) -> bool:
    """Tell whether a file is in a conflict that is not resolved.

    Args:
        file: where it stands.
    """
    return bool(ask(file.parent, "ls-files", "--unmerged", "--", f":(literal){file.name}"))


def _ask_alone(folder: Path, *words: str, given: bytes = b"") -> bytes:
    """Ask Git in a repository of our own, in which no setting of the user counts."""
    own = os.fspath(folder)
    settings = ("-c", "user.name=rankbook", "-c", "user.email=rankbook", "-c", "merge.renames=false")
    alone = {"HOME": own, "XDG_CONFIG_HOME": own, "GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1"}
    return _said(folder, (*settings, *words), given, alone)


def _said(folder: Path, words: Sequence[str], given: bytes, more: Mapping[str, str]) -> bytes:
    done = asked(folder, *words, given=given, more=more)
    return done.stdout if done is not None else b""


def merges(files: Mapping[str, Stages]) -> Iterator[dict[str, bytes]]:
    """Yield what Git makes of files, with the marks of conflicts: once for each way in which it may have compared their lines.

    Args:
        files: by any name.
    """
    with tempfile.TemporaryDirectory(prefix="rankbook-") as name:
        folder = Path(name)
        _ask_alone(folder, "init", "-q", "--template=")
        _ask_alone(folder, "fast-import", "--quiet", given=_history(list(files.values())))
        for way in _WAYS:
            _ask_alone(folder, "reset", "-q", "--hard", "refs/heads/ours")
            _ask_alone(folder, "merge", "-q", "--no-commit", "--no-ff", *way, "refs/heads/theirs")
            yield {path: place.read_bytes() for number, path in enumerate(files) if (place := folder / str(number)).is_file()}


def _history(files: Sequence[Stages]) -> bytes:
    """Give two commits and the one before them as `git fast-import` reads them; each file is called by its number."""
    made = []
    for branch, contents in (
        ("base", [each.base for each in files]),
        ("ours", [each.ours for each in files]),
        ("theirs", [each.theirs for each in files]),
    ):
        made.append(_COMMIT.format(branch).encode() + (b"" if branch == "base" else b"from refs/heads/base\n"))
        for number, data in enumerate(contents):
            if data is not None:
                made.append(b"M 100644 inline %d\ndata %d\n%s\n" % (number, len(data), data))
    return b"".join(made)
