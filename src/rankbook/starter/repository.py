"""What Git says of a repository."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from rankbook import remotes
from rankbook.remotes import Remote


def git(root: Path, *arguments: str) -> str:
    """Ask Git; give what it prints, and nothing where it cannot say, or is not there."""
    return (remotes.git(root, *arguments) or "").strip()


def refusal(root: Path) -> str:
    """Say why Git does not read a repository that is there; empty when it does, or when there is none."""
    if not any((folder / ".git").exists() for folder in (root, *root.parents)):
        return ""
    done = remotes.asked(root, "rev-parse", "--git-dir")
    if done is None:
        return "Git is not installed"
    return "" if done.returncode == 0 else next(iter(done.stderr.splitlines()), "it gives no reason").removeprefix("fatal: ")


def remote(root: Path) -> Remote | None:
    """Find where the repository is published: at `origin`, else at its first remote; None where no browser can open that."""
    found = Remote.of(remotes.resolved(remotes.address(root, remotes.chosen(root))))
    return found if found and "/" in found.path else None


def remote_name(root: Path) -> str:
    """Name the remote at which the repository is published, whatever its address is; empty without any."""
    return remotes.chosen(root)


def host(root: Path) -> str:
    """Name the host of the repository's remote; also one whose name only a person's settings of ssh know. Empty without any."""
    found = remote(root)
    return found.host if found else remotes.alias(remotes.address(root, remotes.chosen(root)))


def default_branch(root: Path) -> str:
    """Find the branch that others start from; empty when nothing tells."""
    head = git(root, "symbolic-ref", "--short", "refs/remotes/origin/HEAD").removeprefix("origin/")
    if head:
        return head
    there = git(root, "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes/origin").splitlines()
    known = {name.removeprefix("origin/") for name in there}
    return next((name for name in ("main", "master") if name in known), "")


def checked_out(root: Path) -> str:
    """Name the branch that is checked out; empty for none."""
    return git(root, "symbolic-ref", "--short", "HEAD")


def top(root: Path) -> Path:
    """Find the top of the repository; the project's own folder where there is none."""
    found = git(root, "rev-parse", "--show-toplevel")
    return Path(found).resolve() if found else root


def is_ignored(root: Path, path: str) -> bool:
    """Say whether Git leaves a path out."""
    return bool(git(root, "check-ignore", "--no-index", path))


class Ignored(Struct, frozen=True):
    """A path that Git leaves out, and says so."""

    path: str
    pattern: str
    """What says so: `docs/`."""
    place: str
    """Where it stands: `.gitignore:3`."""


def ignored(root: Path, paths: Sequence[str]) -> list[Ignored]:
    """Name the paths that Git refuses to add, as seen from a folder."""
    asked = ((path, _SAYS.match(git(root, "check-ignore", "--verbose", "--", path))) for path in paths)
    return [Ignored(path, said[2], said[1]) for path, said in asked if said and not said[2].startswith("!")]


_SAYS = re.compile(r"(.*?:\d+):(.*)\t")
"""What Git says of a path that it leaves out: file and line, pattern, path."""


def has_submodules(top: Path, folders: Sequence[str]) -> bool:
    """Say whether one of some folders below the top lies in a submodule, or holds one."""
    names = [f"{path}/" for path in remotes.submodules(top)]
    return any(not folder or f"{folder}/".startswith(name) or name.startswith(f"{folder}/") for name in names for folder in folders)


def changed(root: Path, paths: Sequence[str]) -> list[str]:
    """Name those of some paths, as seen from a folder, that the next commit would not hold as they are unless Git is told to."""
    return [path for path in paths if git(root, "status", "--porcelain", "--", path)]


def is_there(root: Path) -> bool:
    """Say whether a folder lies in the working tree of a repository."""
    return git(root, "rev-parse", "--is-inside-work-tree") == "true"


def tracked(root: Path, patterns: Sequence[str]) -> list[str]:
    """List the files of some names that Git keeps, or would keep; without Git, those that are there."""
    if is_there(root):
        said = git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *(f":(glob)**/{name}" for name in patterns))
        return sorted(name for name in said.split("\0") if name)
    return sorted(path.relative_to(root).as_posix() for name in patterns for path in root.rglob(name) if path.is_file())
