"""The main job in a project of its own: pages, proof, site, and a summary whose sum is what the site shows."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("mkdocs")
pytest.importorskip("material")

MKDOCS = """site_name: Tiny
use_directory_urls: false
theme:
  name: material
  font: false
markdown_extensions:
  - admonition
  - attr_list
  - tables
  - pymdownx.details
  - pymdownx.highlight:
      anchor_linenums: true
  - pymdownx.superfences:
      preserve_tabs: true
  - pymdownx.tabbed:
      alternate_style: true
plugins:
  - search
  - rankbook
"""
INDEX = """# Tiny

```python
print("a guide's listing")
```

!!! note

    ```python
    assert 1 + 1 == 2
    ```

=== "Shell"

    ```bash
    true
    ```

=== "Text"

    ```text
    not code
    ```

````markdown
```python
raise SystemExit("shown, not run")
```
````
"""
TEST = "def test_one():\n    assert True\n\n\ndef test_two():\n    assert 2 == {two}\n"


@pytest.fixture
def project(tmp_path) -> Path:
    """A project with one test file, a Markdown source and one hand-written page."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["suite"]\n')
    (tmp_path / "mkdocs.yml").write_text(MKDOCS)
    (tmp_path / "docs" / "index.md").write_text(INDEX)
    (tmp_path / "suite" / "test_tiny.py").write_text(TEST.format(two=2))
    (tmp_path / "suite" / "NOTES.md").write_text("# Notes\n\n```python\nprint('inside')\n```\n")
    return tmp_path


def book(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the main job."""
    command = [sys.executable, "-m", "rankbook.cli", "book", *arguments]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


def shown(site: Path) -> int:
    """Count the listings that the built site shows."""
    found = _Listings()
    for page in site.rglob("*.html"):
        found.feed(page.read_text())
    return found.number


class _Listings(HTMLParser):
    """Counts the elements that hold a listing."""

    number = 0

    def handle_starttag(self, tag, attributes):
        self.number += tag == "div" and "highlight" in (dict(attributes).get("class") or "").split()


def test_sum_is_what_the_site_shows(project):
    """Every listing is counted once, in one way to end; what `mkdocs.yml` says of folders holds; a second run writes no page."""
    (project / "docs").rename(project / "book")
    (project / "docs").mkdir()
    (project / "docs" / "manual.md").write_text("```python\nraise SystemExit('another tool lives here')\n```\n")
    (project / "mkdocs.yml").write_text(f"docs_dir: book\nsite_dir: public\n{MKDOCS}")
    (project / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["suite"]\nout = "book/suite"\n')
    done = book(project)
    assert done.returncode == 0, done.stdout + done.stderr
    numbers = dict(re.findall(r"^\s*(sources|pages|listings|passed|failed|skipped|not code)\s+(\d+)", done.stdout, re.MULTILINE))
    assert numbers["sources"] == "2"
    generated = int(re.search(r"\((\d+) generated: ", done.stdout)[1])
    assert f"{generated} written, 0 unchanged" in done.stdout
    assert int(numbers["pages"]) == generated + len([*(project / "book").glob("*.md")])
    assert int(numbers["listings"]) == shown(project / "public")
    inside = 1
    assert sum(int(numbers.get(name, 0)) for name in ("passed", "failed", "skipped", "not code")) == shown(project / "public") + inside
    assert (project / "public" / "suite" / "index.html").is_file()
    assert not (project / "site").exists()
    assert done.stdout.splitlines()[-1] == f"look at it: `mkdocs serve`, or open {project.resolve() / 'public' / 'index.html'}"
    assert re.search(r"\(\d+ generated: 0 written, \d+ unchanged\)", book(project).stdout)


def test_a_failing_listing_fails_the_book_but_not_the_site(project):
    """A failure makes the status non-zero; the site is built all the same and shows it."""
    (project / "suite" / "test_tiny.py").write_text(TEST.format(two=3))
    done = book(project)
    assert done.returncode == 1
    page = next((project / "site").rglob("test_tiny.py_docs.html")).read_text()
    assert "assert 2 == 3" in page
    assert "failed" in page


def test_a_folder_of_pages_that_is_not_there_is_told_before_anything_is_proved(project):
    """A mistyped folder is one sentence, not a site without listings."""
    done = book(project, "--docs", "nowhere")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "nowhere: there is no folder of pages; name it with --docs" in done.stderr
    assert not (project / "site").exists()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (None, "there is no mkdocs.yml, which says what the site is; `rankbook init` writes one"),
        (b"site_name: [\n", "mkdocs.yml:2: cannot read the settings of the site: "),
        (b"site_name: \xff\n", "mkdocs.yml: cannot read the settings of the site: it is not UTF-8 (at offset 11); save it as UTF-8"),
        (b"3\n", "mkdocs.yml: what it holds is no table of settings; write a key and a value on each line"),
        (b"site_name: a\ndocs_dir: 3\n", "mkdocs.yml: docs_dir is no text; name a folder"),
    ],
)
def test_a_site_that_cannot_be_built_is_told_before_anything_is_done(project, settings, said):
    """A suite is not proved for hours, nor a page written, for a site whose settings are missing or broken."""
    path = project / "mkdocs.yml"
    path.unlink() if settings is None else path.write_bytes(settings)
    done = book(project)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stdout + done.stderr
    assert said in done.stderr
    assert not (project / "docs" / "suite").exists()


def test_a_site_is_built_by_mkdocs_or_nothing_is_done(project):
    """Where MkDocs is not installed, that is told before the suite is proved."""
    program = "import sys; sys.modules['mkdocs'] = None; from rankbook.cli import main; sys.exit(main(['book']))"
    done = subprocess.run([sys.executable, "-c", program], cwd=project, capture_output=True, text=True, check=False)
    said = 'rankbook: error: MkDocs, which builds the site, is not installed; pip install "rankbook[site]"\n'
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
