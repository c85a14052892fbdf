"""One folder of pages, three engines: MkDocs, ProperDocs and Zensical give sites with the same addresses, texts and links."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from browsing import browser, served, visits
from tiny_site import broken_links, environment, write_project

pytest.importorskip("material", reason="the site needs the extra `site`")

STEPS = {
    "mkdocs": [["mkdocs", "build", "--strict"]],
    "properdocs": [["properdocs", "build", "--strict", "--config-file", "mkdocs.yml"]],
    "zensical": [["rankbook.cli", "gen"], ["zensical", "build", "--clean"], ["rankbook.cli", "stamp"]],
}
"""What a user of each engine runs; Zensical takes no plugins, so rankbook runs before it and after it."""
OWN = {"404.html", "sitemap.xml"}
"""What an engine adds of its own."""


def run(root: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command of the environment of the tests."""
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=root, env=environment(), check=False, capture_output=True, text=True, timeout=300)


def needs(engine: str) -> None:
    """Skip where an engine is not installed, or fail where all of them are required."""
    if importlib.util.find_spec(engine) is None:
        reason = f"{engine} is not installed"
        if os.environ.get("RANKBOOK_REQUIRE_ENGINES"):
            pytest.fail(f"{reason}, and RANKBOOK_REQUIRE_ENGINES is set")
        pytest.skip(reason)


def built(root: Path, engine: str) -> Path:
    """Build the site of a project with an engine."""
    for words in STEPS[engine]:
        done = run(root, words)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return root / "site"


def project(root: Path) -> Path:
    """Write the tiny project with one more page that a person made, and a navigation that each engine understands."""
    write_project(root)
    (root / "docs" / "guide.md").write_text(
        "# A guide\n\nSee [the test](book/suite/test_ring.py_docs.md#what-is-tested)"
        " and [line 9](book/suite/test_ring.py_docs.md#__codelineno-source-9).\n\n"
        "```python\nprint('a listing of a person')\n```\n"
    )
    settings = yaml.safe_load((root / "mkdocs.yml").read_text())
    settings["nav"] = ["index.md", "guide.md", {"Suite": "book/index.md"}]
    (root / "mkdocs.yml").write_text(yaml.safe_dump(settings))
    return root


@pytest.fixture(scope="module")
def of_mkdocs(tmp_path_factory) -> Path:
    """The site of MkDocs, with which others are compared."""
    return built(project(tmp_path_factory.mktemp("mkdocs")), "mkdocs")


@pytest.fixture(scope="module", params=["properdocs", "zensical"])
def other(request, tmp_path_factory) -> tuple[str, Path]:
    """The site of another engine."""
    needs(request.param)
    return request.param, built(project(tmp_path_factory.mktemp(request.param)), request.param)


VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


@dataclass
class Article(HTMLParser):
    """The text and the links of a page's article, without what themes put around and into it."""

    html: str
    text: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[str] = []
        self._skipped = 0
        self.feed(self.html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "article":
            self._open.append(tag)
        if not self._open or tag in VOID:
            return
        if self._skipped or tag in ("button", "nav", "script", "svg", "aside") or "headerlink" in (values.get("class") or ""):
            self._skipped += 1
            return
        if "id" in values:
            self.ids.add(str(values["id"]))
        if tag == "a" and "href" in values:
            self.links.append(str(values["href"]))

    def handle_endtag(self, tag: str) -> None:
        if self._skipped and tag not in VOID:
            self._skipped -= 1
        elif tag == "article" and self._open:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open and not self._skipped:
            self.text.append(data)

    @property
    def words(self) -> list[str]:
        """Its text, word by word."""
        return "".join(self.text).split()


def pages(site: Path) -> dict[str, Article]:
    """Read the pages of a site by their address."""
    paths = (path for path in sorted(site.rglob("*.html")) if path.name not in OWN)
    return {path.relative_to(site).as_posix(): Article(path.read_text(encoding="utf-8")) for path in paths}


def test_the_same_addresses(of_mkdocs, other):
    """Each engine gives the same pages at the same addresses, the generated ones among them."""
    engine, site = other
    assert set(pages(site)) == set(pages(of_mkdocs)), engine
    assert {"index.html", "guide.html", "book/index.html", "book/suite/test_ring.py_docs.html"} <= set(pages(site))


def test_the_same_texts(of_mkdocs, other):
    """Each page says the same, word by word."""
    engine, site = other
    theirs = pages(site)
    differing = {path: (page.words, theirs[path].words) for path, page in pages(of_mkdocs).items() if page.words != theirs[path].words}
    assert not differing, engine
    assert "test_token_comes_back" in " ".join(theirs["book/suite/test_ring.py_docs.html"].words)
    assert "Ranks pass a token around a ring" in " ".join(theirs["book/suite/test_ring.py_docs.html"].words)


def test_the_same_links(of_mkdocs, other):
    """Each page links to the same places, and every link of the site leads somewhere."""
    engine, site = other
    theirs = pages(site)
    assert {path: page.links for path, page in pages(of_mkdocs).items()} == {path: theirs[path].links for path in pages(of_mkdocs)}, engine
    number, broken = broken_links(site)
    assert number > 100
    assert not broken, engine


def test_the_same_lines(of_mkdocs, other):
    """The lines of a listing can be linked to under the same names."""
    engine, site = other
    path = "book/suite/test_ring.py_docs.html"
    lines = {name for name in pages(of_mkdocs)[path].ids if re.fullmatch(r"L\d+", name)}
    assert len(lines) > 20
    assert lines <= pages(site)[path].ids, engine


def test_properdocs_is_the_same_byte_by_byte(of_mkdocs, tmp_path):
    """ProperDocs continues MkDocs: its site differs at most where it names itself."""
    needs("properdocs")
    site = built(project(tmp_path), "properdocs")
    for path in sorted(of_mkdocs.rglob("*")):
        twin = site / path.relative_to(of_mkdocs)
        if path.is_file() and path.suffix in (".html", ".css", ".js", ".json"):
            assert neutral(twin.read_text(encoding="utf-8")) == neutral(path.read_text(encoding="utf-8")), twin


def neutral(text: str) -> str:
    """Leave out what names the engine, or the time of the build."""
    return re.sub(r'<meta name="generator"[^>]*>|Build Date.*', "", text)


# Publishing


def git(root: Path, *arguments: str) -> str:
    """Run Git as somebody."""
    who = {f"GIT_{role}_{what}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return subprocess.run(["git", *arguments], cwd=root, env={**os.environ, **who}, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path) -> Path:
    """The tiny project in a repository whose remote is a folder."""
    root = project(tmp_path / "project") if (tmp_path / "project").mkdir() is None else tmp_path
    git(tmp_path, "init", "--quiet", "--bare", "published.git")
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "remote", "add", "origin", str(tmp_path / "published.git"))
    git(root, "config", "user.name", "a")
    git(root, "config", "user.email", "a@example.org")
    (root / ".gitignore").write_text("/site/\n/.rankbook/\n")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "A book")
    return root


def published(repository: Path, into: Path) -> Path:
    """Check out what was published."""
    git(into.parent, "clone", "--quiet", "--branch", "gh-pages", str(repository.parent / "published.git"), str(into))
    return into


def test_gh_deploy(repository, tmp_path):
    """`mkdocs gh-deploy` publishes the stamped site, and leaves the project as it is."""
    done = run(repository, ["mkdocs", "gh-deploy", "--strict"])
    assert done.returncode == 0, done.stdout + done.stderr
    site = published(repository, tmp_path / "site")
    assert "Ranks pass a token" in (site / "book/suite/test_ring.py_docs.html").read_text()
    assert (site / "assets/rankbook.css").is_file()
    assert (site / ".nojekyll").is_file()
    assert not broken_links(site)[1]


def test_versions_with_mike(repository, tmp_path):
    """Two versions of a book stand beside each other, each with its own pages, and a third command names the newest.

    Material's selector leads to the same page of the other version.
    """
    needs("mike")
    settings = yaml.safe_load((repository / "mkdocs.yml").read_text())
    settings |= {"site_url": "https://example.org/ring/", "extra": {"version": {"provider": "mike"}}}
    settings["plugins"] = [*settings["plugins"], "mike"]
    (repository / "mkdocs.yml").write_text(yaml.safe_dump(settings))
    deploy(repository, "deploy", "1.0")
    source = repository / "suite" / "test_ring.py"
    source.write_text(source.read_text().replace("Ranks pass a token around a ring", "Ranks pass two tokens around a ring"))
    deploy(repository, "deploy", "--update-aliases", "2.0", "latest")
    deploy(repository, "set-default", "latest")
    site = published(repository, tmp_path / "site")
    page = "book/suite/test_ring.py_docs.html"
    assert "pass a token" in (site / "1.0" / page).read_text()
    assert "pass two tokens" in (site / "2.0" / page).read_text()
    assert "pass two tokens" in (site / "latest" / page).read_text()
    assert '"2.0"' in (site / "versions.json").read_text()
    assert "latest" in (site / "index.html").read_text()
    for version in ("1.0", "2.0"):
        assert (site / version / "assets/rankbook.css").is_file()
        assert not broken_links(site / version)[1]
        assert f"https://example.org/ring/{version}/{page}" in (site / version / page).read_text()
    with browser() as started, visits(started) as visit, served(site) as address:
        view = visit()
        view.goto(f"{address}1.0/{page}")
        view.locator(".md-version").hover(force=True)
        view.locator(".md-version__link", has_text="2.0").click()
        view.wait_for_url(f"{address}2.0/{page}")
        view.get_by_text("Ranks pass two tokens").first.wait_for()


def deploy(root: Path, *arguments: str) -> None:
    """Run mike."""
    command, *rest = arguments
    words = [sys.executable, "-c", "from mike.driver import main; main()", command, "--push", *rest]
    path = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(words, cwd=root, env=environment() | path, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_prefix_of_mike(repository, tmp_path):
    """With a prefix the books stand below it, and their links stay inside."""
    needs("mike")
    deploy(repository, "deploy", "--deploy-prefix", "books/ring", "1.0")
    site = published(repository, tmp_path / "site")
    assert (site / "books/ring/1.0/book/suite/test_ring.py_docs.html").is_file()
    assert not broken_links(site / "books/ring/1.0")[1]
    shutil.rmtree(site)
