"""A site that grows by edits is, byte for byte, one that is built from nothing, with its pages."""

from __future__ import annotations

import hashlib
import random
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from mkdocs.__main__ import cli
from msgspec.structs import replace

from ledgers import cases
from rankbook.config import load
from rankbook.ledger import Ledger
from rankbook.listing import Outcome
from rankbook.site.proof import Proof
from tiny_site import RING, elsewhere, environment, mkdocs, with_own_cache, write_project
from whole import in_whole

USER = """
from test_ring import TestRing, neighbour


class TestUser(TestRing):
    def test_two(self):
        assert neighbour(0, 2) == 1
"""
FRONT = """\
# A tiny project

Its [suite](book/index.md), edition {}.

<!-- rankbook:last-run -->

<!-- rankbook:proof -->
"""
FOLDERS = ("suite", "suite/inner", "suite/outer", "suite/outer/deep")


class Edits:
    """Random changes of a project.

    Args:
        root: of the project.
        chance: chooses.
    """

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root = root
        self.chance = chance
        self.number = 0

    def one(self) -> str:
        """Do one of them, and name it."""
        self.number += 1
        edit = self.chance.choice(
            [self.test, self.renamed, self.new, self.removed, self.moved, self.folder, self.by_hand, self.in_place, self.beside, self.runs]
        )
        edit()
        return edit.__name__

    def _some(self, pattern: str = "*.py") -> Path | None:
        found = sorted((self.root / "suite").rglob(pattern))
        return self.chance.choice(found) if found else None

    def test(self) -> None:
        if file := self._some():
            file.write_text(f"{file.read_text()}\n\ndef test_{self.number}():\n    assert {self.number}\n")

    def renamed(self) -> None:
        if file := self._some():
            file.write_text(file.read_text().replace("TestRing", f"TestRing{self.number}").replace("neighbour", "successor"))

    def new(self) -> None:
        file = self.root / self.chance.choice(FOLDERS) / f"test_{self.chance.randint(0, 4)}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.chance.choice([USER, RING, "", "import torch\n\nLIMIT = 7\n"]))

    def removed(self) -> None:
        if file := self._some():
            file.unlink()

    def moved(self) -> None:
        if file := self._some():
            target = self.root / self.chance.choice(FOLDERS) / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            file.rename(target)

    def folder(self) -> None:
        for name in ("outer", "other"):
            place = self.root / "suite" / name
            if place.is_dir():
                place.rename(self.root / "suite" / {"outer": "other", "other": "outer"}[name])
                return

    def by_hand(self) -> None:
        (self.root / "docs/index.md").write_text(FRONT.format(self.number))

    def in_place(self) -> None:
        """Somebody writes a page where a generated one stands."""
        pages = sorted((self.root / "docs/book").rglob("test_*_docs.md"))
        if pages:
            self.chance.choice(pages).write_text("# Mine\n")

    def beside(self) -> None:
        folder = self.chance.choice(sorted(path for path in (self.root / "docs/book").rglob("*") if path.is_dir()))
        (folder / "README.md").write_text(f"# Read me {self.number}\n")

    def runs(self) -> None:
        settings = load(self.root)
        file = self._some("test_*.py")
        if file is not None:
            source = file.relative_to(self.root).as_posix()
            page = f"docs/book/{source}_docs.md"
            made = cases(["TestRing::test_token_comes_back", f"test_{self.number}"], page, source=source, when="2026-01-01T00:00:00+00:00")
            made[0] = replace(made[0], outcome=self.chance.choice([Outcome.PASSED, Outcome.FAILED]))
            Ledger(settings.below_root(settings.ledger)).record(made)


def built(root, *, anew=False):
    done = mkdocs(root, "build", "--quiet", anew=anew)
    assert done.returncode == 0, done.stdout + done.stderr
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for folder in ("docs", "site")
        for path in sorted((root / folder).rglob("*"))
        if path.is_file() and not path.name.startswith("sitemap")
    }


def cold(root, monkeypatch, *, anew=False):
    return elsewhere(root, monkeypatch, lambda other: built(other, anew=anew))


@pytest.fixture
def root(tmp_path, monkeypatch):
    """The tiny project, with a cache of its own."""
    with_own_cache(monkeypatch, tmp_path / "cache")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    (tmp_path / "p").mkdir()
    return write_project(tmp_path / "p", theme=False)


@pytest.mark.parametrize(("seed", "directories"), [(1, False), *in_whole((2, False)), (3, True)])
def test_a_site_that_grew_is_one_from_nothing(root, monkeypatch, seed, directories):
    """After any sequence of edits the pages and the site are those of a build that knows nothing."""
    settings = (root / "mkdocs.yml").read_text()
    (root / "mkdocs.yml").write_text(settings.replace("use_directory_urls: false", f"use_directory_urls: {str(directories).lower()}"))
    edits = Edits(root, random.Random(seed))
    edits.by_hand()
    built(root)
    history = []
    for number in range(5):
        history += [edits.one() for _ in range(edits.chance.randint(1, 3))]
        made, anew = built(root), cold(root, monkeypatch, anew=number == 4)
        assert made.keys() == anew.keys(), history
        assert [path for path in made if made[path] != anew[path]] == [], history


def test_charts_of_a_book_that_is_as_it_was_are_not_drawn_again(root, monkeypatch):
    """A build that has nothing to do reads no run, and shows the same; a run, a source and a word of the page itself are seen."""
    edits = Edits(root, random.Random(0))
    edits.by_hand()
    edits.runs()
    built(root)
    before = (root / "site/index.html").read_bytes()
    assert b"Proof coverage" in before
    monkeypatch.chdir(root)
    with monkeypatch.context() as patched:
        patched.setattr(Proof, "of", lambda *_: pytest.fail("all runs were added up"))
        again = CliRunner().invoke(cli, ["build", "--quiet"], catch_exceptions=False)
    assert (again.exit_code, (root / "site/index.html").read_bytes()) == (0, before)
    source = root / "suite/test_ring.py"

    def more():
        source.write_text(f"{RING}\n\ndef test_more():\n    assert TOKEN\n")

    def ran():
        text = hashlib.sha256(source.read_bytes()).hexdigest()
        page = "docs/book/suite/test_ring.py_docs.md"
        made = cases(["test_more"], page, source="suite/test_ring.py", listing=text, when="2026-01-01T00:00:00+00:00")
        settings = load(root)
        Ledger(settings.below_root(settings.ledger)).record(made)

    for number, edit in enumerate((more, ran, edits.by_hand), 1):
        edits.number = number
        edit()
        made = built(root)
        assert made["site/index.html"] != before, number
        assert made == cold(root, monkeypatch)
        before = made["site/index.html"]


def test_what_a_page_of_a_person_includes_takes_its_proof(root, monkeypatch):
    """A listing that stands in another file is another one with it, and none without the extension that reads it, in charts too."""
    settings = root / "mkdocs.yml"
    plain = settings.read_text()
    snippets = plain.replace("markdown_extensions:\n", "markdown_extensions:\n- pymdownx.snippets: {base_path: [.]}\n", 1)
    assert snippets != plain
    settings.write_text(snippets)
    (root / "snip.py").write_text("assert 1\n")
    (root / "docs/hand.md").write_text('# Hand\n\n```python\n--8<-- "snip.py"\n```\n\n<!-- rankbook:last-run -->\n')
    (root / "docs/index.md").write_text(FRONT.format(0))
    words = (sys.executable, "-m", "pytest", "--doctest-glob=*.md", "-p", "no:cacheprovider", "docs/hand.md")
    subprocess.run(words, cwd=root, env=environment(), check=True, capture_output=True)
    before = built(root)
    assert b"rankbook-passed" in before["site/hand.html"]
    for file, text in ((root / "snip.py", "assert 2\n"), (settings, plain)):
        kept = file.read_text()
        file.write_text(text)
        made, anew = built(root), cold(root, monkeypatch)
        assert b"rankbook-passed" not in made["site/hand.html"], file
        assert [path for path in made if made[path] != anew[path]] == [], file
        assert made["site/index.html"] != before["site/index.html"], file
        file.write_text(kept)
        assert built(root) == before, file


def test_a_run_that_was_dated_ahead_comes_of_age(root, monkeypatch):
    """One that says a time more than a day ahead hides no other, and is the newest as soon as its time may be right."""
    built(root)
    ahead = datetime.now(UTC) + timedelta(days=1, seconds=12)
    known, late = (
        cases(["test_ring"], "docs/book/suite/test_ring.py_docs.md", source="suite/test_ring.py", when=when, outcome=outcome)
        for when, outcome in (("2026-01-01T00:00:00+00:00", Outcome.PASSED), (ahead.isoformat(timespec="seconds"), Outcome.FAILED))
    )
    settings = load(root)
    Ledger(settings.below_root(settings.ledger)).record([*known, *late])
    page = "site/book/suite/test_ring.py_docs.html"
    before = built(root)[page]
    assert built(root)[page] == before
    time.sleep(max(0.0, (ahead - datetime.now(UTC) - timedelta(days=1)).total_seconds()) + 1.5)
    made, anew = built(root), cold(root, monkeypatch)
    assert made[page] != before
    assert [path for path in made if made[path] != anew[path]] == []


def test_the_search_of_pages_that_are_older_than_the_sources(root, monkeypatch):
    """Where a build makes no pages, and nothing is kept, what the sources hold is found where it has a page, and only there."""
    built(root)
    settings = yaml.safe_load((root / "mkdocs.yml").read_text())
    settings["plugins"] = [{"rankbook": {"gen": False}} if plugin == "rankbook" else plugin for plugin in settings["plugins"]]
    (root / "mkdocs.yml").write_text(yaml.safe_dump(settings))
    (root / "suite/new").mkdir()
    (root / "suite/test_ring.py").rename(root / "suite/new/test_zebra.py")
    found = b"".join(data for path, data in cold(root, monkeypatch).items() if path.startswith("site/assets/rankbook-search/"))
    assert (b"suite/inner/hostile.py" in found, b"zebra" in found, b"suite/new" in found) == (True, False, False)


def test_a_site_that_was_brought_back_holds_no_page_of_what_is_gone(root, tmp_path, monkeypatch):
    """Where a site was kept, as continuous integration does, the times of its files say nothing; pages of people stay."""
    edits = Edits(root, random.Random(0))
    edits.new()
    built(root)
    shutil.copytree(root / "site", tmp_path / "kept")
    shutil.rmtree(root / "site")
    shutil.copytree(tmp_path / "kept", root / "site", copy_function=shutil.copy)
    edits.removed()
    edits.in_place()
    assert built(root) == cold(root, monkeypatch)


def test_a_page_that_somebody_has_copied_is_a_page_like_others(root, monkeypatch):
    """A copy of a generated page, which the last build did not know, ends no build that shows runs."""
    Edits(root, random.Random(0)).runs()
    built(root)
    page = next(root.glob("docs/**/test_ring.py_docs.md"))
    for name in ("a_copy.md", "z_copy.md"):
        shutil.copy(page, root / "docs" / name)
    assert built(root) == cold(root, monkeypatch)


def test_what_was_kept_of_links_may_be_broken(root, tmp_path, monkeypatch):
    """A file of what pages link to that is no such file costs no build."""
    built(root)
    (kept,) = (tmp_path / "cache").rglob("site-*-facts.sqlite")
    for data in (b"no such thing", kept.read_bytes()[:4096] + b"\0" * 4096):
        kept.write_bytes(data)
        Edits(root, random.Random(0)).test()
        assert built(root) == cold(root, monkeypatch)
