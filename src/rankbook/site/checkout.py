"""What Git says of the folder that holds the sources: where it is published, on which branch, at which commit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from rankbook.remotes import address, chosen, git, resolved, submodules
from rankbook.site.forge import Forge


class Checkout(Struct, frozen=True):
    """A folder inside a working tree of Git."""

    remote: str
    """Address of `origin`, else of the first remote; empty without any. It may hold a password: nobody is shown it."""
    branch: str
    """The remote's default branch, else the one that is checked out; empty when neither is known."""
    commit: str
    """Full name of the commit that is checked out; empty before the first one."""
    root: str
    """The folder as seen from the top of the working tree; empty for the top itself."""
    submodules: tuple[str, ...] = ()
    """Folders below the folder that other repositories fill, as seen from the folder."""


def checkout(folder: Path) -> Checkout | None:
    """Ask Git about a folder.

    Args:
        folder: the root of the sources.

    Returns:
        What Git says; None outside a working tree, and where there is no Git.
    """
    place = git(folder, "rev-parse", "--show-toplevel", "--show-prefix")
    if place is None:
        return None
    top, _, prefix = place.partition("\n")
    root = prefix.strip("\n").rstrip("/")
    remote = chosen(folder)
    return Checkout(
        remote=resolved(address(folder, remote)),
        branch=_branch(folder, remote),
        commit=(git(folder, "rev-parse", "--verify", "--quiet", "HEAD") or "").strip(),
        root=root,
        submodules=_below(root, submodules(Path(top))),
    )


def hangs_on(folder: Path) -> tuple[str, ...]:
    """Name the files that change whenever Git says something else of a folder: those of what is checked out, staged and published.

    Args:
        folder: the root of the sources.

    Returns:
        Absolute paths, also of what is not there yet.
    """
    branch = (git(folder, "symbolic-ref", "--quiet", "HEAD") or "").strip()
    names = ("HEAD", "index", "config", "packed-refs", "reftable/tables.list", *([branch] if branch else []))
    said = git(folder, "rev-parse", "--path-format=absolute", *(word for name in names for word in ("--git-path", name)))
    return tuple(said.splitlines()) if said is not None else (f"{folder}/.git",)


class Published(Struct, frozen=True):
    """Where readers find the sources."""

    forge: Forge
    facts: str
    """What the site's script has to know of it, as JSON: with each commit another one."""


def published(  # noqa: PLR0913 - one argument for each thing that may tell
    folder: Path, *, url: str = "", branch: str = "", kind: str = "", edit_uri: str = "", sources: Sequence[str] = ()
) -> Published | None:
    """Find the forge that holds the sources.

    Args:
        folder: the root of the sources.
        url: address of the repository, where the project tells it: it wins over what Git says.
        branch: branch that readers look at; it wins, too.
        kind: kind of the forge, where its host does not tell it: a key of `forge.KINDS`.
        edit_uri: MkDocs' setting of this name.
        sources: files and folders that the book is about, as seen from there.

    Returns:
        The forge; None where nothing tells, and where no browser can open what does.
    """
    found = checkout(folder) or Checkout("", "", "", "")
    forge = Forge.of(
        url or found.remote,
        branch or found.branch,
        found.root,
        kind=kind,
        edit_uri=edit_uri,
        foreign=found.submodules,
    )
    changed = _changed(folder, found, sources) if forge and found.commit and sources else {}
    return Published(forge, forge.facts(found.commit, changed)) if forge else None


def _changed(folder: Path, found: Checkout, sources: Sequence[str]) -> dict[str, bool]:
    """Name the files that are not as the commit has them, as seen from the folder, each with whether it has them at all."""
    words = (
        "--literal-pathspecs",
        "status",
        "--porcelain",
        "-z",
        "--no-renames",
        "--untracked-files=all",
        "--ignore-submodules",
        "--",
        *sources,
    )
    said = git(folder, *words) or ""
    entries = {entry[3:]: entry[0] not in "?A" for entry in said.split("\0") if entry}
    return {path: has for name, has in entries.items() for path in _below(found.root, (name,))}


def _branch(folder: Path, remote: str) -> str:
    default = (git(folder, "symbolic-ref", "--quiet", "--short", f"refs/remotes/{remote}/HEAD") or "").strip() if remote else ""
    return default.removeprefix(f"{remote}/") or (git(folder, "symbolic-ref", "--quiet", "--short", "HEAD") or "").strip()


def _below(root: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Give the paths that lie below a folder, as seen from it."""
    start = f"{root}/" if root else ""
    return tuple(path.removeprefix(start) for path in paths if path.startswith(start))
