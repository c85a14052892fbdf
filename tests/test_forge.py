"""Where a page's source lies on a forge: addresses of every kind, and what Git says of a checkout."""

from __future__ import annotations

import json
import os
import re
import subprocess
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbook.site.checkout import checkout, published
from rankbook.site.forge import KINDS, Forge

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PATH = "suite/test_ring.py"
REMOTES = {
    "https://github.com/owner/name.git": "https://github.com/owner/name/blob/main/suite/test_ring.py",
    "git@github.com:owner/name.git": "https://github.com/owner/name/blob/main/suite/test_ring.py",
    "ssh://git@ssh.github.com:443/owner/name.git": "https://github.com/owner/name/blob/main/suite/test_ring.py",
    "git+ssh://git@github.com/owner/name": "https://github.com/owner/name/blob/main/suite/test_ring.py",
    "https://github.company.org/team/name": "https://github.company.org/team/name/blob/main/suite/test_ring.py",
    "https://gitlab.com/group/sub/name.git": "https://gitlab.com/group/sub/name/-/blob/main/suite/test_ring.py",
    "http://gitlab.inside:8080/group/name.git/": "http://gitlab.inside:8080/group/name/-/blob/main/suite/test_ring.py",
    "git@bitbucket.org:owner/name.git": "https://bitbucket.org/owner/name/src/main/suite/test_ring.py",
    "https://bitbucket.company.org/scm/team/name.git": (
        "https://bitbucket.company.org/projects/team/repos/name/browse/suite/test_ring.py?at=refs/heads/main"
    ),
    "ssh://git@bitbucket.company.org:7999/~me/name.git": (
        "https://bitbucket.company.org/users/me/repos/name/browse/suite/test_ring.py?at=refs/heads/main"
    ),
    "https://codeberg.org/owner/name.git": "https://codeberg.org/owner/name/src/branch/main/suite/test_ring.py",
    "https://git.forgejo.dev/owner/name.git": "https://git.forgejo.dev/owner/name/src/branch/main/suite/test_ring.py",
    "https://gitea.company.org/owner/name.git": "https://gitea.company.org/owner/name/src/branch/main/suite/test_ring.py",
    "https://owner@dev.azure.com/owner/project/_git/name": (
        "https://dev.azure.com/owner/project/_git/name?path=/suite/test_ring.py&version=GBmain"
    ),
    "git@ssh.dev.azure.com:v3/owner/project/name": "https://dev.azure.com/owner/project/_git/name?path=/suite/test_ring.py&version=GBmain",
    "owner@vs-ssh.visualstudio.com:v3/owner/project/name": (
        "https://dev.azure.com/owner/project/_git/name?path=/suite/test_ring.py&version=GBmain"
    ),
    "https://owner.visualstudio.com/project/_git/name": (
        "https://owner.visualstudio.com/project/_git/name?path=/suite/test_ring.py&version=GBmain"
    ),
}


class Links(HTMLParser):
    """The links of a piece of HTML, by class."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: dict[str, dict[str, str | None]] = {}
        self.tags: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "a":
            values = dict(attrs)
            self.links[str(values["class"])] = values


@pytest.mark.parametrize(("remote", "address"), REMOTES.items())
def test_a_remote_tells_its_forge(remote, address):
    """Each form of a remote's address leads to the file as the forge shows it."""
    assert Forge.of(remote, "main").view(PATH) == address


@pytest.mark.parametrize(
    "remote",
    ["", "/srv/git/name.git", "../name", "file:///srv/name.git", "C:/repos/name", "https://", "https://github.com", "https://github.com/name",
     "https://git.company.org/team/name.git", "javascript:alert(1)//x/y", "https://github.com:port/a/b", "https://[::1/a/b",
     "ssh://git@ssh.dev.azure.com/v3/owner", "https://gitea.company.org/"],
)  # fmt: skip
def test_what_no_browser_can_open_is_no_forge(remote):
    """A folder, an unknown host and a broken address offer nothing, and are no error."""
    assert Forge.of(remote, "main") is None


@pytest.mark.parametrize(
    ("more", "view"),
    [
        ({"kind": "gitlab"}, "https://git.company.org/team/name/-/blob/main/suite/test_ring.py"),
        ({"kind": "Gitea"}, "https://git.company.org/team/name/src/branch/main/suite/test_ring.py"),
        ({"edit_uri": "edit/next/docs/"}, "https://git.company.org/team/name/blob/main/suite/test_ring.py"),
        ({"edit_uri": "-/edit/next/docs/", "branch": ""}, "https://git.company.org/team/name/-/blob/next/suite/test_ring.py"),
        ({"edit_uri": "_edit/next/docs/", "branch": ""}, "https://git.company.org/team/name/src/branch/next/suite/test_ring.py"),
        ({"edit_uri": "src/next/docs/?mode=edit", "branch": ""}, "https://git.company.org/team/name/src/next/suite/test_ring.py"),
    ],
)
def test_a_forge_of_ones_own_is_told_by_a_setting(more, view):
    """Where the host tells nothing, the setting does, or MkDocs' `edit_uri`."""
    assert Forge.of("https://git.company.org/team/name.git", **{"branch": "main", **more}).view(PATH) == view


def test_a_made_up_edit_uri_does_not_change_a_known_host():
    """MkDocs gives every project an `edit_uri` in GitHub's form; GitLab stays GitLab."""
    assert Forge.of("https://gitlab.com/a/b", "main", edit_uri="edit/master/docs/").kind is KINDS["gitlab"]


LINES = {
    "github": ("#L3", "#L3-L9"),
    "gitlab": ("#L3", "#L3-9"),
    "bitbucket": ("#lines-3", "#lines-3:9"),
    "bitbucket-server": ("#3", "#3-9"),
    "gitea": ("#L3", "#L3-L9"),
    "azure": (
        "&line=3&lineEnd=4&lineStartColumn=1&lineEndColumn=1&lineStyle=plain",
        "&line=3&lineEnd=10&lineStartColumn=1&lineEndColumn=1&lineStyle=plain",
    ),
}
EDIT = {
    "github": "https://host.org/a/b/edit/main/suite/test_ring.py",
    "gitlab": "https://host.org/a/b/-/edit/main/suite/test_ring.py",
    "bitbucket": "https://host.org/a/b/src/main/suite/test_ring.py?mode=edit&at=main",
    "gitea": "https://host.org/a/b/_edit/main/suite/test_ring.py",
}


PERMALINK = {
    "github": "https://host.org/a/b/blob/{}/suite/test_ring.py",
    "gitlab": "https://host.org/a/b/-/blob/{}/suite/test_ring.py",
    "bitbucket": "https://host.org/a/b/src/{}/suite/test_ring.py",
    "bitbucket-server": "https://host.org/projects/a/repos/b/browse/suite/test_ring.py?at={}",
    "gitea": "https://host.org/a/b/src/commit/{}/suite/test_ring.py",
    "azure": "https://host.org/a/_git/b?path=/suite/test_ring.py&version=GC{}",
}


@pytest.mark.parametrize("kind", LINES)
def test_lines_edit_and_permalink_of_every_kind(kind):
    """Each kind of forge has its own way to say lines, and an address at a commit; what cannot edit offers no edit."""
    forge = Forge.of("https://host.org/a/_git/b" if kind == "azure" else "https://host.org/a/b", "main", kind=kind)
    assert (forge.lines(3, 3), forge.lines(3, 9)) == LINES[kind]
    assert forge.edit(PATH) == EDIT.get(kind, "")
    assert forge.permalink(PATH, COMMIT) == PERMALINK[kind].format(COMMIT)
    links = Links(forge.actions(PATH, (3, 9))).links
    assert ("rankbook-edit" in links) == (kind in EDIT)
    assert links["rankbook-view"]["href"].endswith(LINES[kind][1])
    assert links["rankbook-permalink"]["data-commit"].replace("{commit}", COMMIT) == forge.permalink(PATH, COMMIT)


def test_without_a_branch_nothing_is_edited():
    """A checkout of no branch is shown at `HEAD` where a forge knows it, and offers no edit; elsewhere there is nothing."""
    forge = Forge.of("https://github.com/a/b")
    assert forge.view(PATH) == "https://github.com/a/b/blob/HEAD/suite/test_ring.py"
    assert "rankbook-edit" not in forge.actions(PATH)
    assert Forge.of("https://codeberg.org/a/b") is None


def test_lines_of_a_rendered_document_are_asked_for_as_text():
    """GitHub shows a document without line numbers unless it is asked for its text."""
    forge = Forge.of("https://github.com/a/b", "main")
    assert Links(forge.actions("README.md")).links["rankbook-permalink"]["data-commit"].endswith("README.md?plain=1")
    assert Links(forge.actions("README.md")).links["rankbook-view"]["href"].endswith("README.md")


def test_sources_of_other_repositories_have_no_actions():
    """A submodule's file and one outside of the root lie elsewhere."""
    forge = Forge.of("https://github.com/a/b", "main", "packages/one", foreign=("third_party/lib",))
    assert forge.actions("third_party/lib/x.py") == ""
    assert forge.actions("../x.py") == ""
    assert forge.actions("") == ""
    assert "packages/one/third_party/library.py" in forge.actions("third_party/library.py")


SECRET = "tok3n-s3cret"


@given(
    host=st.sampled_from(["github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "dev.azure.com", "git.company.org"]),
    form=st.sampled_from(["https://{}@{}/a/_git/b.git", "https://me:{}@{}/a/b", "ssh://{}@{}/a/b", "{}@{}:a/b.git", "https://{}:x@{}:8443/a/b"]),
    kind=st.sampled_from(["", *KINDS]),
    commit=st.sampled_from([COMMIT, "", "not a commit"]),
)  # fmt: skip
def test_no_password_of_a_remote_is_ever_shown(host, form, kind, commit):
    """Whatever a remote's address holds before its host stands in no link, no fact and no printed form."""
    forge = Forge.of(form.format(SECRET, host), "main", kind=kind)
    if forge is not None:
        assert SECRET not in forge.actions(PATH) + forge.facts(commit) + repr(forge)


@given(remote=st.text(max_size=60) | st.text(alphabet="htps:/@.abgiu[]%#?{}<>\"' \\\n0", max_size=40), branch=st.text(max_size=8))
@settings(max_examples=400)
def test_any_remote_is_read_without_an_error(remote, branch):
    """Any text is a forge or none, and what it offers are links to http addresses alone."""
    forge = Forge.of(remote, branch, kind="github")
    if forge is not None:
        assert {urlsplit(str(link["href"])).scheme for link in Links(forge.actions(PATH)).links.values()} <= {"http", "https"}


@given(
    path=st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20),
    kind=st.sampled_from([*KINDS]),
)
@settings(max_examples=200)
def test_a_path_stays_a_path(path, kind):
    """Whatever a file is called, its links are three elements at most, and their address gives the path back."""
    forge = Forge.of("https://github.com/a/_git/b" if kind == "azure" else "https://github.com/a/b", "main", kind=kind)
    made = Links(forge.actions(f"s/{path}"))
    assert set(made.tags) == {"nav", "a"}
    assert unquote(str(made.links["rankbook-view"]["href"])).count(f"s/{path}") == 1
    assert re.fullmatch(r"[!-~]+", str(made.links["rankbook-view"]["href"]))
    assert str(made.links["rankbook-permalink"]["data-commit"]).count("{commit}") == 1


def test_the_commit_stands_in_the_facts_alone():
    """Pages are the same for every commit; the one file that the script reads is not."""
    forge = Forge.of("https://github.com/a/b", "main")
    assert json.loads(forge.facts(COMMIT)) == {"commit": COMMIT, "line": "#L{first}", "lines": "#L{first}-L{last}"}
    assert json.loads(forge.facts("")) == {}
    assert COMMIT not in forge.actions(PATH)


def git(folder, *arguments):
    """Run Git as in a repository of nobody's."""
    identity = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=trunk", "-c", "protocol.file.allow=always"]
    return subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """A repository with a commit, and a package in it."""
    root = tmp_path / "repository"
    (root / "packages/one").mkdir(parents=True)
    (root / "packages/one/x.py").write_text("x = 1\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


def test_git_tells_remote_branch_commit_and_folder(repository):
    """What is checked out is told; the default branch of the remote comes before one's own."""
    git(repository, "remote", "add", "upstream", "https://gitlab.com/up/name.git")
    git(repository, "remote", "add", "origin", f"https://{SECRET}@github.com/me/name.git")
    found = checkout(repository / "packages/one")
    assert (found.branch, found.root, found.commit) == ("trunk", "packages/one", git(repository, "rev-parse", "HEAD"))
    git(repository, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(repository, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    git(repository, "checkout", "-q", "-b", "a/topic")
    made = published(repository / "packages/one")
    assert made.forge.view("x.py") == "https://github.com/me/name/blob/main/packages/one/x.py"
    assert SECRET not in made.forge.actions("x.py") + made.facts
    assert json.loads(made.facts)["commit"] == found.commit
    assert (
        published(repository, url="https://codeberg.org/a/b", branch="next").forge.view("x.py")
        == "https://codeberg.org/a/b/src/branch/next/x.py"
    )


def test_a_name_that_only_ssh_knows_leads_to_the_host_that_it_stands_for(repository, tmp_path, monkeypatch):
    """Readers have not the settings of ssh of who builds the site; where those say nothing, there is no link."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ssh").write_text('#!/bin/sh\ntest "$*" = "-G work" && echo hostname github.com || echo "hostname $2"\n')
    (tmp_path / "bin/ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    git(repository, "remote", "add", "origin", "git@work:me/name.git")
    assert published(repository).forge.view("x.py") == "https://github.com/me/name/blob/trunk/x.py"
    git(repository, "remote", "set-url", "origin", "git@github.com-home:me/name.git")
    assert published(repository) is None


def test_what_is_not_as_in_the_commit_is_told_to_the_script(repository):
    """A file that has changed since has no permalink, one that is not in it no link at all; where very many are so, none is made."""
    git(repository, "remote", "add", "origin", "https://github.com/me/name.git")
    root = repository / "packages/one"
    for name in ("same.py", "changed.py", "a ü.md"):
        (root / name).write_text("x = 1\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "files")
    assert "changed" not in json.loads(published(root, sources=["."]).facts)
    for name in ("changed.py", "new.py", "a ü.md"):
        (root / name).write_text("x = 2\n")
    (repository / "beside.py").write_text("x = 1\n")
    found = published(root, sources=["."])
    links = [Links(found.forge.actions(name)).links["rankbook-permalink"]["data-commit"] for name in ("a ü.md", "changed.py", "new.py")]
    assert json.loads(found.facts)["changed"] == links
    assert json.loads(found.facts)["absent"] == links[2:]
    git(repository, "add", "packages/one/new.py")
    assert json.loads(published(root, sources=["."]).facts)["absent"] == links[2:]
    assert json.loads(published(root, sources=["new.py"]).facts)["changed"] == links[2:]
    for number in range(300):
        (root / f"{number}.py").write_text("x = 1\n")
    assert json.loads(published(root, sources=["."]).facts) == {}


def test_the_only_remote_counts_whatever_it_is_called(repository):
    """A clone whose remote is not called `origin` has a forge, too."""
    git(repository, "remote", "add", "upstream", "https://gitlab.com/up/name.git")
    assert published(repository).forge.view("x.py") == "https://gitlab.com/up/name/-/blob/trunk/x.py"


def test_a_detached_checkout_has_no_branch_of_its_own(repository):
    """What a continuous integration checks out may be no branch at all."""
    git(repository, "remote", "add", "origin", "https://github.com/me/name")
    git(repository, "checkout", "-q", "--detach")
    assert checkout(repository).branch == ""
    assert published(repository).forge.view("x.py") == "https://github.com/me/name/blob/HEAD/x.py"


def test_where_git_says_nothing_there_are_no_actions(tmp_path, repository, monkeypatch):
    """No repository, no remote, no commit, no Git: no error, and no forge."""
    assert published(repository) is None
    (tmp_path / "plain").mkdir()
    assert checkout(tmp_path / "plain") is None
    assert published(tmp_path / "plain") is None
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    git(empty, "remote", "add", "origin", "https://github.com/me/name")
    assert json.loads(published(empty).facts) == {}
    monkeypatch.setenv("PATH", "")
    assert checkout(repository) is None


def test_a_hook_of_git_does_not_lead_astray(tmp_path, repository, monkeypatch):
    """The environment of a hook names its own repository; the folder's is asked about."""
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert checkout(repository).branch == "trunk"


def test_submodules_are_seen_from_the_folder(tmp_path, repository):
    """A submodule below the folder is told with its path from there; one beside it is left out."""
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "y.py").write_text("y = 1\n")
    git(other, "add", ".")
    git(other, "commit", "-qm", "first")
    for place in ("packages/one/lib", "packages/two"):
        git(repository, "submodule", "--quiet", "add", str(other), place)
    git(repository, "remote", "add", "origin", "https://github.com/me/name")
    assert checkout(repository / "packages/one").submodules == ("lib",)
    assert checkout(repository).submodules == ("packages/one/lib", "packages/two")
    forge = published(repository / "packages/one").forge
    assert forge.actions("lib/y.py") == ""
    assert forge.actions("x.py") != ""
    assert published(repository / "packages/two") is None  # the submodule's own remote is a folder
