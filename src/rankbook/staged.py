"""What the next commit holds, as hooks look at it: the files of Git's index."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from rankbook import git
from rankbook.errors import SourceError


def files(folder: Path, *names: str) -> list[str]:
    """Name the files of the index in a folder and below.

    Args:
        folder: where to ask.
        names: files and folders below it, as they are called; none for all.

    Raises:
        SourceError: Git has no say there.
    """
    return _asked(folder, "-c", *names)


def untracked(folder: Path) -> frozenset[str]:
    """Name the files in a folder and below that are not in the index, ignored ones among them; none where there is no folder.

    Raises:
        SourceError: Git has no say there.
    """
    return frozenset(_asked(folder, "-o")) if folder.is_dir() else frozenset()


def changed(folder: Path) -> frozenset[str]:
    """Name the files in a folder and below that differ from what is in the index, or are gone; none where there is no folder.

    Raises:
        SourceError: Git has no say there.
    """
    return frozenset(_asked(folder, "-m")) if folder.is_dir() else frozenset()


def contents(folder: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Give what the index holds of files; one whose name goes over several lines is left out.

    Args:
        folder: where to ask.
        names: files below it.
    """
    asked_for = [name for name in names if "\n" not in name]
    given = b"".join(b":./%b\n" % os.fsencode(name) for name in asked_for)
    told = git.asked(folder, "cat-file", "--batch", given=given, more=_index_of_commit(folder)) if asked_for else None
    found: dict[str, bytes] = {}
    rest = told.stdout if told is not None and told.returncode == 0 else b""
    for name in asked_for if rest else ():
        head, _, rest = rest.partition(b"\n")
        if (size := head.rpartition(b" ")[2]).isdigit():
            found[name], rest = rest[: int(size)], rest[int(size) + 1 :]
    return found


def _asked(folder: Path, *words: str) -> list[str]:
    kind, *names = words
    listed = git.asked(folder, "--literal-pathspecs", "ls-files", kind, "-z", "--", *(names or ["."]), more=_index_of_commit(folder))
    if listed is None or listed.returncode != 0:
        why = "git is not installed" if listed is None else os.fsdecode(listed.stderr).strip().partition("\n")[0]
        raise SourceError(f"Git cannot say what is staged ({why})", where=folder, right="leave out --staged")
    return [os.fsdecode(name).rstrip("/") for name in listed.stdout.split(b"\0") if name]


def _index_of_commit(folder: Path) -> Mapping[str, str]:
    """Give the variable that names the index of the commit under way, as `git commit FILE` makes one; empty for another repository."""
    name = os.environ.get("GIT_INDEX_FILE")
    own = git.asked(folder, "rev-parse", "--absolute-git-dir") if name else None
    if not name or own is None or own.returncode != 0:
        return {}
    index = os.path.realpath(name)
    is_of_folder = os.path.dirname(index) == os.path.realpath(os.fsdecode(own.stdout).rstrip("\n"))  # noqa: PTH120 - as `realpath` gives it
    return {"GIT_INDEX_FILE": index} if is_of_folder else {}
