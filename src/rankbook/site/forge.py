"""The forge that holds the sources: where a reader looks at a file there, edits it, and finds it as it was at a commit.

The commit stands once in the site (`facts`), because each new one would change every page: a script makes the permalinks of it.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from urllib.parse import quote, unquote

from msgspec import Struct
from msgspec.structs import replace

from rankbook.remotes import Remote

FACTS = "assets/rankbook.json"
"""Where the built site holds what the script has to know of the forge."""


class Kind(Struct, frozen=True):
    """How a kind of forge writes its addresses; in braces stands what differs."""

    name: str
    """What its readers call it."""
    view: str
    """A file of a branch."""
    commit: str
    """A file at a commit."""
    line: str
    """What an address ends with that leads to a line."""
    lines: str
    """What it ends with that leads to several."""
    edit: str = ""
    """Where a file of a branch is edited; empty when the forge has no such address."""
    plain: str = ""
    """What an address needs for the lines of a document that the forge would show rendered."""
    knows_head: bool = False
    """Whether `HEAD` stands for the default branch in an address."""


KINDS: Mapping[str, Kind] = {
    "github": Kind(
        "GitHub",
        view="{base}/blob/{branch}/{path}",
        commit="{base}/blob/{commit}/{path}",
        line="#L{first}",
        lines="#L{first}-L{last}",
        edit="{base}/edit/{branch}/{path}",
        plain="?plain=1",
        knows_head=True,
    ),
    "gitlab": Kind(
        "GitLab",
        view="{base}/-/blob/{branch}/{path}",
        commit="{base}/-/blob/{commit}/{path}",
        line="#L{first}",
        lines="#L{first}-{last}",
        edit="{base}/-/edit/{branch}/{path}",
        plain="?plain=1",
        knows_head=True,
    ),
    "bitbucket": Kind(
        "Bitbucket",
        view="{base}/src/{branch}/{path}",
        commit="{base}/src/{commit}/{path}",
        line="#lines-{first}",
        lines="#lines-{first}:{last}",
        edit="{base}/src/{branch}/{path}?mode=edit&at={branch}",
        knows_head=True,
    ),
    "bitbucket-server": Kind(
        "Bitbucket",
        view="{base}/browse/{path}?at=refs/heads/{branch}",
        commit="{base}/browse/{path}?at={commit}",
        line="#{first}",
        lines="#{first}-{last}",
    ),
    "gitea": Kind(
        "Gitea",
        view="{base}/src/branch/{branch}/{path}",
        commit="{base}/src/commit/{commit}/{path}",
        line="#L{first}",
        lines="#L{first}-L{last}",
        edit="{base}/_edit/{branch}/{path}",
        plain="?display=source",
    ),
    "azure": Kind(
        "Azure DevOps",
        view="{base}?path=/{path}&version=GB{branch}",
        commit="{base}?path=/{path}&version=GC{commit}",
        line="&line={first}&lineEnd={after}&lineStartColumn=1&lineEndColumn=1&lineStyle=plain",
        lines="&line={first}&lineEnd={after}&lineStartColumn=1&lineEndColumn=1&lineStyle=plain",
    ),
}
"""By the word of the setting `repo-forge`."""
KINDS = {**KINDS, "forgejo": replace(KINDS["gitea"], name="Forgejo"), "codeberg": replace(KINDS["gitea"], name="Codeberg")}
_HOSTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"bitbucket\.org"), "bitbucket"),
    (re.compile(r"dev\.azure\.com|.*\.visualstudio\.com"), "azure"),
    (re.compile(r"gitea\.com|(?:.*\.)?gitea\..*"), "gitea"),
    (re.compile(r"codeberg\.org"), "codeberg"),
    (re.compile(r"(?:.*[.-])?forgejo[.-].*"), "forgejo"),
    (re.compile(r"(?:.*[.-])?github[.-].*"), "github"),
    (re.compile(r"(?:.*[.-])?gitlab[.-].*"), "gitlab"),
    (re.compile(r"(?:.*[.-])?bitbucket[.-].*"), "bitbucket-server"),
)
"""Which kind a host tells by its name; of several the first."""
_EDIT_URIS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"/?-/(?:edit|blob|raw)/"), "gitlab"),
    (re.compile(r"/?_edit/|/?src/branch/"), "gitea"),
    (re.compile(r"/?src/|.*\?mode=edit"), "bitbucket"),
    (re.compile(r"/?(?:edit|blob|tree|raw)/"), "github"),
)
"""Which kind MkDocs' setting `edit_uri` tells."""
_MOST_CHANGED = 200
"""Sources that differ from the commit; where more do, no page has a permalink."""
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_RENDERED = frozenset({".md", ".markdown", ".mdx", ".rst", ".adoc", ".org", ".ipynb", ".csv", ".tsv", ".svg"})
"""Ends of the names of documents that a forge shows rendered."""


class Forge(Struct, frozen=True):
    """A repository on a forge."""

    kind: Kind
    base: str
    """Address of the repository, without any name or password."""
    branch: str
    """Branch that readers look at and edit; `HEAD` when it is not known."""
    root: str = ""
    """Folder of the repository that the paths of sources start from; empty for its top."""
    foreign: tuple[str, ...] = ()
    """Folders below it that other repositories fill."""

    @classmethod
    def of(  # noqa: PLR0913 - one argument for each thing that may tell
        cls, remote: str, branch: str = "", root: str = "", *, kind: str = "", edit_uri: str = "", foreign: tuple[str, ...] = ()
    ) -> Forge | None:
        """Tell the forge from where a repository is published.

        Args:
            remote: address of the remote, or of the repository's page, with or without a name and a password in it.
            branch: branch that readers look at; empty when it is not known.
            root: folder of the repository that the paths of sources start from.
            kind: a key of `KINDS`, where the host does not tell it.
            edit_uri: MkDocs' setting of this name, which may tell kind and branch.
            foreign: folders, as seen from there, that other repositories fill.

        Returns:
            The forge; None for a remote that no browser can open, and for a forge of no known kind.
        """
        place = Remote.of(remote)
        if place is None:
            return None
        # MkDocs makes up an `edit_uri` where the project sets none, so what the host tells comes first.
        word = (
            kind.lower()
            or _told(place.host.partition(":")[0], _HOSTS, re.Pattern.fullmatch)
            or _told(edit_uri, _EDIT_URIS, re.Pattern.match)
        )
        known = KINDS.get(word)
        address = _BASES.get(word, _plain_base)(place.path) if known else None
        if known is None or address is None:
            return None
        branch = branch or _branch_of(edit_uri) or "HEAD"
        if branch == "HEAD" and not known.knows_head:
            return None
        return cls(known, f"{place.scheme}://{place.host}/{address}", branch, root.strip("/"), foreign)

    def view(self, source: str) -> str:
        """Give the address of a source as it is on the branch."""
        return self._filled(self.kind.view, source)

    def edit(self, source: str) -> str:
        """Give the address at which a source is edited; empty when there is none."""
        return "" if self.branch == "HEAD" else self._filled(self.kind.edit, source)

    def permalink(self, source: str, commit: str = "{commit}") -> str:
        """Give the address of a source as it was at a commit; without one it holds `{commit}` in its place."""
        return self._filled(self.kind.commit, source, commit)

    def lines(self, first: int, last: int) -> str:
        """Give what an address ends with that leads to some lines."""
        form = self.kind.line if first == last else self.kind.lines
        return form.format(first=first, last=last, after=last + 1)

    def actions(self, source: str, lines: tuple[int, int] | None = None) -> str:
        """Write the links of a page that lead to its source on the forge, as HTML; empty for a source that it does not hold.

        Args:
            source: path of the source, below the root of the sources.
            lines: the first and the last line that they lead to; None for the whole file.
        """
        if not source or source.startswith("../") or any(source.startswith(f"{folder}/") for folder in self.foreign):
            return ""
        end = self.lines(*lines) if lines else ""
        plain = self._plain(source)
        edit, view = self.edit(source), self.view(source)
        name = html.escape(self.kind.name)
        links = [f'<a class="rankbook-edit" href="{html.escape(edit)}">Edit this file</a>'] if edit else []
        links.append(f'<a class="rankbook-view" href="{html.escape(view + (plain if lines else "") + end)}">View on {name}</a>')
        links.append(
            f'<a class="rankbook-permalink" href="{html.escape(view)}" data-commit="{html.escape(self.permalink(source) + plain)}" hidden>'
            "Permalink</a>"
        )
        return f'<nav class="rankbook-forge" aria-label="This file on {name}">{" ".join(links)}</nav>'

    def facts(self, commit: str, changed: Mapping[str, bool] = MappingProxyType({})) -> str:
        """Give what the script has to know to make permalinks, as JSON; it stands in the site as `FACTS`.

        Args:
            commit: full name of the commit from which the site is built; empty when there is none.
            changed: sources that are not as they are there, each with whether it is there at all.
        """
        if not _COMMIT.fullmatch(commit) or len(changed) > _MOST_CHANGED:
            return "{}\n"
        known: dict[str, object] = {"commit": commit, "line": self.kind.line, "lines": self.kind.lines}
        if changed:
            known["changed"] = sorted(self.permalink(source) + self._plain(source) for source in changed)
        if absent := [source for source, has in changed.items() if not has]:
            known["absent"] = sorted(self.permalink(source) + self._plain(source) for source in absent)
        return json.dumps(known, indent=2) + "\n"

    def _plain(self, source: str) -> str:
        return self.kind.plain if PurePosixPath(source).suffix.lower() in _RENDERED else ""

    def _filled(self, form: str, source: str, commit: str = "") -> str:
        path = f"{self.root}/{source}" if self.root else source
        return form.format(base=self.base, branch=_quoted(self.branch), path=_quoted(path), commit=commit)


def _quoted(path: str) -> str:
    return quote(path.encode(errors="surrogateescape"), safe="/")


def _told(word: str, table: tuple[tuple[re.Pattern[str], str], ...], match: Callable[[re.Pattern[str], str], object]) -> str:
    return next((kind for pattern, kind in table if word and match(pattern, word)), "")


def _branch_of(edit_uri: str) -> str:
    """Read the branch from MkDocs' `edit_uri`: `main` of `edit/main/docs/`."""
    found = re.match(r"/?(?:-/)?(?:src/branch|_?edit|blob|tree|raw|src)/([^/?#]+)", edit_uri)
    return unquote(found[1]) if found else ""


def _plain_base(path: str) -> str | None:
    return _quoted(path) if "/" in path else None


def _azure_base(path: str) -> str | None:
    """Give a project's path, which is one of a repository."""
    return _quoted(path) if "_git" in path.split("/")[:-1] else None


def _server_base(path: str) -> str | None:
    """Give a repository's path: from `scm/project/name`, or the path itself."""
    parts = path.removeprefix("scm/").split("/")
    if len(parts) != 2:
        return _quoted(path) if parts[0] in ("projects", "users") else None
    owner, name = parts
    place = f"users/{owner[1:]}" if owner.startswith("~") else f"projects/{owner}"
    return _quoted(f"{place}/repos/{name}")


_BASES: Mapping[str, Callable[[str], str | None]] = {"azure": _azure_base, "bitbucket-server": _server_base}
"""By kind: what makes the path of the repository's page of that of the remote, where they differ."""
