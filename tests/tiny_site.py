"""A tiny project with a site of its own, made with this repository's MkDocs settings; used by the tests of the site."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml

REPOSITORY = Path(__file__).parents[1]

RING = '''\
# Owner(s): ["oncall: distributed"]
"""Ranks pass a token around a ring."""

import unittest

TOKEN = 7


def neighbour(rank: int, world_size: int) -> int:
    """Give the rank that follows."""
    return (rank + 1) % world_size


class TestRing(unittest.TestCase):
    def test_token_comes_back(self):
        """After as many steps as there are ranks the token is where it started."""
        rank = 0
        for _ in range(TOKEN):
            rank = neighbour(rank, TOKEN)
        self.assertEqual(rank, 0)


if __name__ == "__main__":
    unittest.main()
'''

HOSTILE = '''\
"""<script>alert("from a docstring")</script> | a pipe, <!-- rankbook:last-run --> and [a link](http://example.org)."""

MARKER = """
<!-- rankbook:last-run -->
"""


class AVeryLongClassNameThatDoesNotFitIntoThePhonesWidthBecauseNobodyBrokeItIntoSeveralShorterWords:
    """A ``code`` span | in a table."""


if __name__ == "__main__":
    print(MARKER)
'''

NOTES = """\
# Notes on the ring

Run it:

```python
print("a listing in a source")
```
"""

SOURCES = {
    "suite/test_ring.py": RING,
    "suite/inner/hostile.py": HOSTILE,
    "suite/inner/notes.md": NOTES,
    "suite/.settings/ring.toml": "size = 7\n",
}


def write_project(root: Path, *, theme: bool = True) -> Path:
    """Write the project's sources, settings and hand-written page; give its root."""
    for path, text in SOURCES.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    (root / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["suite"]\nout = "docs/book"\ntitle = "The tiny suite"\njobs = 1\n')
    (root / "docs").mkdir()
    (root / "docs/index.md").write_text("# A tiny project\n\nIts [suite](book/index.md).\n")
    settings = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))
    settings["nav"] = ["index.md", "book/"]
    if not theme:
        settings["theme"] = {"name": "mkdocs", "highlightjs": False}
    (root / "mkdocs.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return root


def mkdocs(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run MkDocs as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", *arguments], cwd=root, env=environment(), check=False, capture_output=True, text=True, timeout=120
    )


def environment() -> dict[str, str]:
    """Give the environment of a MkDocs process: without the notice that Material prints about MkDocs 2."""
    return {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONWARNINGS": "default", "COLUMNS": "200"}


def build(root: Path) -> Path:
    """Build the site strictly; give its folder. MkDocs counts no warning that `--quiet` keeps it from writing."""
    done = mkdocs(root, "build", "--strict")
    assert done.returncode == 0, done.stdout + done.stderr
    return root / "site"


class Html(HTMLParser):
    """What the checks want to know of a page: ids, links, text of the navigation."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append((tag, values))
        self.ids |= {value for name in ("id", "name") if (value := values.get(name))}
        self.links += [value for name in ("href", "src") if (value := values.get(name))]


def broken_links(site: Path) -> tuple[int, list[str]]:
    """Follow every internal link of a built site; give their number and those that lead nowhere."""
    pages = {path: Html(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    count, broken = 0, []
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            fragment = unquote(parts.fragment)
            if not target.is_file() or (fragment and target in pages and fragment not in pages[target].ids):
                broken.append(f"{path.relative_to(site)}: {link}")
    return count, broken


def elsewhere(root, monkeypatch, made):
    """Make something of a copy of a project, with nothing kept.

    Args:
        root: of the project.
        monkeypatch: pytest's.
        made: makes it of the copy.
    """
    other = root.parent / "cold" / root.name
    shutil.rmtree(other.parent, ignore_errors=True)
    shutil.copytree(root, other, ignore=shutil.ignore_patterns("site"))
    with monkeypatch.context() as inner:
        inner.setenv("RANKBOOK_CACHE_DIR", str(other.parent / "cache"))
        return made(other)
