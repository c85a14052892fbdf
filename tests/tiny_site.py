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

from nursery import run_module

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


def mkdocs(root: Path, *arguments: str, anew: bool = False) -> subprocess.CompletedProcess[str]:
    """Run MkDocs, in a process of its own.

    Args:
        root: of the project.
        arguments: of the command.
        anew: as a user does, with a new interpreter, in which what has no order of its own has another one.
    """
    if not anew:
        return run_module(root, "mkdocs", *arguments, environment=environment())
    command = [sys.executable, "-m", "mkdocs", *arguments]
    return subprocess.run(command, cwd=root, env=environment(), check=False, capture_output=True, text=True, timeout=120)


def generate(root: Path) -> None:
    """Run `rankbook gen`, in a process of its own."""
    done = run_module(root, "rankbook.cli", "gen", environment=environment())
    assert done.returncode == 0, done.stderr


def environment() -> dict[str, str]:
    """Give the environment of a MkDocs process: without the notice that Material prints about MkDocs 2."""
    return {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONWARNINGS": "default", "COLUMNS": "200"}


def build(root: Path, *, anew: bool = False) -> Path:
    """Build the site strictly; give its folder. MkDocs counts no warning that `--quiet` keeps it from writing."""
    done = mkdocs(root, "build", "--strict", anew=anew)
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


def with_own_cache(monkeypatch, folder):
    """Keep nothing for the next run but in a new folder; of what was kept, only templates as Jinja has compiled them are there.

    Args:
        monkeypatch: pytest's.
        folder: the new one.
    """
    templates = Path(os.environ["RANKBOOK_CACHE_DIR"], "templates").resolve()
    templates.mkdir(parents=True, exist_ok=True)
    folder.mkdir()
    (folder / "templates").symlink_to(templates)
    monkeypatch.setenv("RANKBOOK_CACHE_DIR", str(folder))


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
        with_own_cache(inner, other.parent / "cache")
        return made(other)
