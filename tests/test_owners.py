"""Who answers for a file: what it says itself, else what the repository's `CODEOWNERS` says of it."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from rankbook import searching
from rankbook.cli import main
from rankbook.codeowners import owners_of
from rankbook.config import load
from rankbook.site.addresses import Addresses
from rankbook.site.markdown import render
from rankbook.site.overviews import Overviews
from rankbook.site.search_shards import INDEX
from rankbook.stamps import body_of, stamp_of

GITHUB = """\
# A comment.
*       @org/all
*.js    @js # those who write it
/build/logs/ @doctor
docs/*  docs@example.com
apps/   @octocat
/scripts/ @doctor @octocat
**/logs @logs
/apps/github
/odd\\ name/ @space
/wide/**/deep @deep
"""
GITLAB = """\
* @all
[Docs] @writers
docs/
README.md @reader
^[Tests][2] @testers
/tests/
/tests/gpu/ @gpu
"""


def write(root: Path, text: str, name: str = "CODEOWNERS") -> Path:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("path", "owners"),
    [
        ("a.py", "@org/all"),
        ("deep/er/b.js", "@js"),
        ("build/logs/x/y.py", "@logs"),
        ("docs/start.md", "docs@example.com"),
        ("docs/build/start.md", "@org/all"),
        ("more/docs/start.md", "@org/all"),
        ("x/apps/a.py", "@octocat"),
        ("scripts/a.sh", "@doctor @octocat"),
        ("x/scripts/a.sh", "@org/all"),
        ("apps/github", ""),
        ("apps/github/x.py", ""),
        ("odd name/x.py", "@space"),
        ("wide/a/b/deep/x.py", "@deep"),
    ],
)
def test_lines_are_those_of_github(tmp_path, path, owners):
    """The last line that matches counts, also one that names nobody; stars and slashes mean what GitHub says that they mean."""
    assert owners_of(write(tmp_path, GITHUB, ".github/CODEOWNERS"), path) == tuple(owners.split())


@pytest.mark.parametrize(
    ("path", "owners"),
    [
        ("a.py", "@all"),
        ("docs/a.md", "@all @writers"),
        ("docs/README.md", "@all @reader"),
        ("tests/a.py", "@all @testers"),
        ("tests/gpu/a.py", "@all @gpu"),
    ],
)
def test_sections_are_those_of_gitlab(tmp_path, path, owners):
    """Each section has its last line, and owners of its own for lines that name none."""
    assert owners_of(write(tmp_path, GITLAB, ".gitlab/CODEOWNERS"), path) == tuple(owners.split())


def test_which_file_counts(tmp_path):
    """The repository's, also for a project in a folder of it; no link, no text that is not UTF-8, and nothing from outside."""
    project = tmp_path / "repository" / "part"
    project.mkdir(parents=True)
    write(tmp_path, "* @outside\n")
    (tmp_path / "repository" / ".git").mkdir()
    assert owners_of(project, "a.py") == ()
    (tmp_path / "repository" / "CODEOWNERS").symlink_to(tmp_path / "CODEOWNERS")
    assert owners_of(project, "a.py") == ()
    write(tmp_path / "repository", "* @docs\n/part/a.py @part\n", "docs/CODEOWNERS")
    assert (owners_of(project, "a.py"), owners_of(project, "b.py")) == (("@part",), ("@docs",))
    (tmp_path / "repository" / ".github").mkdir()
    (tmp_path / "repository" / ".github" / "CODEOWNERS").write_bytes(b"* @\xff\n")
    assert owners_of(project, "a.py") == ()


def test_owners_on_the_pages(tmp_path, monkeypatch, capsys):
    """A file's own word goes before the repository's; pages follow when the repository changes its mind."""
    for name, text in {
        "pyproject.toml": '[tool.rankbook]\nsources = ["tests"]\nfindings = []\n',
        "CODEOWNERS": "* @everybody\n",
        "tests/test_a.py": "def test_a():\n    pass\n",
        "tests/test_b.py": '# Owner(s): ["oncall: b"]\n\ndef test_b():\n    pass\n',
        "tests/run.sh": "true\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)

    def owners() -> dict[str, int]:
        assert main(["gen"]) == 0
        capsys.readouterr()
        assert main(["query", "owners", "--format", "json"]) == 0
        return {row["owner"]: row["tests"] for row in json.loads(capsys.readouterr().out)}

    pages = tmp_path / "docs" / "suite"
    assert owners() == {"@everybody": 1, "oncall: b": 1}
    assert "Owned by `@everybody` ([all owners](../suite-owners.md))." in (pages / "tests/test_a.py_docs.md").read_text()
    assert "Owned by `@everybody` ([all owners](../suite-owners.md))." in (pages / "tests/run.sh_docs.md").read_text()
    said = (pages / "suite-owners.md").read_text()
    assert "`@everybody`" in said
    assert "Owners are those whom a file names in its line `# Owner(s):`, or else those whom `CODEOWNERS` names; a test counts" in said
    (tmp_path / "CODEOWNERS").write_text("* @everybody\n*_a.py @team-a @team-b\n")
    assert owners() == {"@team-a": 1, "@team-b": 1, "oncall: b": 1}
    assert "Owned by `@team-a`, `@team-b` ([all owners](../suite-owners.md))." in (pages / "tests/test_a.py_docs.md").read_text()
    assert main(["check"]) == 0
    (tmp_path / "tests/test_b.py").unlink()
    assert owners() == {"@team-a": 1, "@team-b": 1}
    assert "Owners are those whom `CODEOWNERS` names; a test counts" in (pages / "suite-owners.md").read_text()


def test_the_proof_leads_to_the_heading_of_an_owner(tmp_path, monkeypatch):
    """Whoever owns a file is found on the page of owners by the anchor that the site gives to the owner's heading, and to no other."""
    owners = ["@acme/ring", "acme ring", "acmering", "Owners", "oncall: ring", "größe", "<b>", "x" * 300]
    named = json.dumps(owners, ensure_ascii=False)
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["tests"]\nfindings = []\n')
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_a.py").write_text(f"# Owner(s): {named}\n\ndef test_a():\n    pass\n", encoding="utf-8")
    (tmp_path / "tests/test_b.py").write_text("def test_b():\n    pass\n")
    monkeypatch.chdir(tmp_path)
    assert main(["gen"]) == 0
    out = tmp_path / "docs/suite"
    stamps = {path.name: stamp for path in out.rglob("*.md") if (stamp := stamp_of(path))}
    assert sorted(stamps["test_a.py_docs.md"].owners) == sorted(owners)
    page = render(body_of(out / "suite-owners.md"), "suite-owners.md", Addresses())
    headings = {f"#{heading.anchor}": html.unescape(heading.text) for heading in page.headings}
    spots = {owner: Overviews(stamps).owner(owner) for owner in owners}
    assert {spot.page for spot in spots.values()} == {"suite-owners.md"}
    found = {owner: headings[spot.end] for owner, spot in spots.items()}
    assert found == {owner: owner if len(owner) < 240 else f"{owner[:240]} …" for owner in owners}


NAMED = ["@ada", "ada", "数据", "группа", "a - b", "größe", "oncall: ring", "@acme/ring", "Owners", "bob", "bob_1", "eve"]
"""Owners, the first of whom share a slug, or have none that a forge has, too."""
LINKED = {"oncall: ring", "@acme/ring", "bob", "bob_1", "eve", "No owner"}
"""Those whose headings have the same anchor everywhere."""


@pytest.mark.parametrize("number", [1, 400], ids=["on one page", "on several"])
def test_the_search_and_the_table_lead_to_the_headings_of_owners(tmp_path, monkeypatch, number):
    """The search opens each owner at the heading that is the owner's own; a link of the table does where a forge has the same anchor."""
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["tests"]\nfindings = []\n')
    (tmp_path / "tests").mkdir()
    for place, owner in enumerate([*NAMED[:-1], *["eve"] * number]):
        text = f"# Owner(s): {json.dumps([owner], ensure_ascii=False)}\n\ndef test_a():\n    pass\n"
        (tmp_path / f"tests/test_{place}.py").write_text(text, encoding="utf-8")
    (tmp_path / "tests/test_b.py").write_text("def test_b():\n    pass\n")
    monkeypatch.chdir(tmp_path)
    assert main(["gen"]) == 0
    out = tmp_path / "docs/suite"
    headings = {
        f"{path.name}#{heading.anchor}": html.unescape(heading.text)
        for path in out.glob("suite-owners*.md")
        for heading in render(body_of(path), path.name, Addresses()).headings
    }
    searching.write(load(tmp_path), tmp_path / "site", base="suite")
    shards = [path for path in (tmp_path / "site" / searching.FOLDER).iterdir() if path.name != INDEX]
    places = {place for path in shards for place in json.loads(path.read_bytes()) if place.startswith("/suite-owners")}
    found = [headings[re.sub(r"\.html", ".md", place[1:])] for place in places]
    assert sorted(found) == sorted(NAMED)
    table = re.findall(r"^\| (?:\[(.*?)\]\((.*?)\)|(.*?)) \|", (out / "suite-owners.md").read_text(encoding="utf-8"), re.MULTILINE)
    spots = {(name or plain).strip("`"): spot for name, spot, plain in table[2:]}
    assert spots.keys() == {*NAMED, "No owner"}
    assert {name for name, spot in spots.items() if "#" in spot} == LINKED
    assert all(headings[f"{'suite-owners.md' if spot[0] == '#' else ''}{spot}"] == name for name, spot in spots.items() if "#" in spot)
    assert all(spot for spot in spots.values()) == (number > 1)
