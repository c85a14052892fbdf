"""What the site shows on pages made by people is what pytest runs; what it shows and nobody runs is told when the site is built."""

from __future__ import annotations

import re

import pytest

from ledgers import rankbook
from proving import prove
from tiny_site import mkdocs

MKDOCS = """\
site_name: P
docs_dir: {docs}
theme: {{name: mkdocs}}
plugins: [rankbook]
markdown_extensions: [attr_list, admonition, pymdownx.superfences, pymdownx.highlight{more}]
"""
WRONG = "```python {name=wrong}\nassert 1 == 2\n```\n"
TOLD = "that pytest does not find in the file, so that nobody runs"


@pytest.fixture
def project(tmp_path):
    """A function that writes the files of a project, and gives its folder."""

    def write(files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    return write


def build(folder, *options):
    """Build the site, and give what is said."""
    done = mkdocs(folder, "build", "--strict", *options)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("base", "page", "fragment"),
    [
        ("!relative $docs_dir", "pages/index.md", "pages/frag.txt"),
        ("!relative", "pages/sub/s.md", "pages/sub/frag.txt"),
        ("!relative $config_dir/parts", "pages/index.md", "parts/frag.txt"),
    ],
)
def test_snippets_lie_where_the_site_looks_for_them(project, base, page, fragment):
    """A listing that a snippet brings is run, whatever its path begins with."""
    settings = MKDOCS.format(docs="pages", more="").partition("markdown_extensions")[0]
    settings += f"markdown_extensions:\n- attr_list\n- pymdownx.superfences\n- pymdownx.snippets:\n    base_path:\n    - {base}\n"
    folder = project({"mkdocs.yml": settings, "pages/index.md": "# A\n", page: '# S\n\n--8<-- "frag.txt"\n', fragment: WRONG})
    result = prove(folder, "pages")
    assert result.outcomes() == {f"{page}::wrong": "failed"}
    assert TOLD not in build(folder)
    shown = [file for file in (folder / "site").rglob("*.html") if '<span class="k">assert' in file.read_text()]
    assert len(shown) == 1


@pytest.mark.parametrize("name", ["build", "dist"])
def test_pages_in_folders_that_pytest_passes_by(project, name):
    """The site shows them, so they are run, unless somebody says otherwise; other matter of pytest stays out."""
    settings = MKDOCS.format(docs="docs", more="")
    folder = project({"mkdocs.yml": settings, f"docs/{name}/index.md": f"# A\n\n{WRONG}", "docs/index.md": "# B\n"})
    found = {f"docs/{name}/index.md::wrong": "failed"}
    assert prove(folder, "docs").outcomes() == found
    for other in (name, "docs/node_modules", "docs/venv"):
        (folder / other).mkdir()
        (folder / other / "other.md").write_text(WRONG)
    assert prove(folder).outcomes() == found
    assert prove(folder, "-o", f"norecursedirs={name} node_modules venv").status == pytest.ExitCode.NO_TESTS_COLLECTED
    (folder / "mkdocs.yml").write_text(f"{settings}exclude_docs: {name}/\n")
    assert prove(folder).outcomes() == {}
    (folder / "mkdocs.yml").write_text(settings)
    (folder / "docs" / name / "conftest.py").write_text("raise RuntimeError('nobody asked for this')\n")
    assert prove(folder).outcomes() == {}


MANY = f"""\
# Many

```python {{name=one}}
# rankbook: hide
x = 1
```

```python {{title="with a title" linenums="1" hl_lines="1"}}
value = {{"a": "<b> & 'c'"}}
```

```text {{.output}}
```

!!! note

    ```pycon
    >>> 1 + 1
    2
    ```

- a list

    ```bash
    echo "a  b" # (1)!
    ```

Text with `language-python` in it, and

    an indented block

```console {{.no-run}}
$ pip install nothing
```

{WRONG}
"""


def test_what_only_the_site_shows_is_told(project):
    """A hook that adds listings, a page of another suffix: one line for each page, with the first line; none for listings that are run."""
    hook = "def on_page_markdown(markdown, page, **_):\n    return markdown + page.meta.get('more', '')\n"
    more = '---\nmore: "\\n```python\\nassert 1 == 3\\n```\\n\\n```bash\\nfalse\\n```\\n"\n---\n'
    files = {
        "mkdocs.yml": MKDOCS.format(docs="docs", more="") + "hooks: [hook.py]\n", "hook.py": hook, "docs/index.md": MANY,
        "docs/hooked.md": f"{more}# A\n\n{WRONG}", "docs/other.markdown": "# B\n\n```python\nassert 1 == 4\n```\n",
    }  # fmt: skip
    folder = project(files)
    told = sorted(line.partition("-  ")[2] for line in build(folder).splitlines() if TOLD in line)
    assert told == [
        f"hooked.md: the site shows 2 listings {TOLD} them: assert 1 == 3; false",
        f"other.markdown: the site shows a listing {TOLD} it: assert 1 == 4",
    ]
    assert prove(folder, "docs").outcomes()["docs/hooked.md::wrong"] == "failed"


SIGNATURE = '<div class="doc-signature highlight"><pre><code class="language-python">f()</code></pre></div>'
SOURCE = '<details class="mkdocstrings-source"><summary>s</summary><div class="language-python highlight"><pre>def f</pre></div></details>'
OUTPUT = '<div class="jp-OutputArea-output"><pre><span class="ansi-red-fg">Error</span></pre></div>'
ADDED = '<div class="highlight"><pre><span></span><code><span style="color: #333">boom</span>()</code></pre></div>'


def test_what_a_hook_adds_to_the_html_is_told(project):
    """Also where it is marked up without classes; what is no listing is not: signatures, sources and outputs of notebooks."""
    hook = f"def on_page_content(html, **_):\n    return html + {''.join((SIGNATURE, SOURCE, OUTPUT, *[ADDED] * 6))!r}\n"
    settings = MKDOCS.format(docs="docs", more="") + "hooks: [hook.py]\n"
    folder = project({"mkdocs.yml": settings, "hook.py": hook, "docs/index.md": f"# A\n\n{WRONG}"})
    (told,) = (line.partition("-  ")[2] for line in build(folder).splitlines() if TOLD in line)
    assert told == f"index.md: the site shows 6 listings {TOLD} them: {'boom(); ' * 5}..."


def test_what_another_page_gives_is_run_there(project):
    """A page that a hook includes has its listings run where they stand."""
    hook = "def on_page_markdown(markdown, page, **_):\n    return markdown.replace('{part}', open('docs/part.md').read())\n"
    settings = MKDOCS.format(docs="docs", more="") + "hooks: [hook.py]\n"
    folder = project({"mkdocs.yml": settings, "hook.py": hook, "docs/index.md": "# A\n\n{part}\n", "docs/part.md": WRONG})
    assert TOLD not in build(folder)
    assert prove(folder, "docs").outcomes() == {"docs/part.md::wrong": "failed"}


EXECUTED = """\
# Executed

```python exec="on" source="above"
assert "above" == "below"
```

```{.python exec="true" source="tabbed-left" session="one" title="a" timeout="50"}
x = 1
print("*hello*")
```

```python {exec=on source=above session=one}
assert x == 2
```

```tree
docs
```

```python {.no-run exec=on source=above}
no = run
```

```python exec="on" result="python" source="console" name="shows"
print("x = 3")
```

```sh exec="1" source="above" session="two" returncode="0"
false
```

```pyodide
import js
```

```python
assert 1 == 2
```
"""


def test_fences_that_a_plugin_runs_are_run(project):
    """`markdown-exec` shows the code that it runs: pytest runs it too, as it does all other listings of such a page."""
    settings = MKDOCS.format(docs="docs", more="").replace("[rankbook]", "[rankbook, markdown-exec]")
    folder = project({"mkdocs.yml": settings, "docs/index.md": EXECUTED})
    done = mkdocs(folder, "build")
    assert done.returncode == 0, done.stderr
    assert TOLD not in done.stderr
    result = prove(folder, "docs")
    assert result.outcomes() == {
        f"docs/index.md::{name}": outcome
        for name, outcome in (
            ("executed", "failed"),
            ("executed-2", "passed"),
            ("executed-3", "failed"),
            ("shows", "passed"),
            ("executed-6", "failed"),
            ("executed-8", "failed"),
        )
    }


def test_a_formatter_of_the_site_for_python(project):
    """What a formatter shows is Python by the word of its fence, so it is run; its own options are not ours, and ours hold."""
    fence = "{custom_fences: [{name: python, class: play, format: !!python/name:pymdownx.superfences.fence_code_format }]}"
    settings = MKDOCS.format(docs="docs", more="").replace("pymdownx.superfences", f"{{pymdownx.superfences: {fence}}}")
    listings = "```{.python .play height=3 name=one}\nassert 0\n```\n\n```{.python ranks=two name=two}\n1\n```\n\n```python\n1\n```\n"
    folder = project({"mkdocs.yml": settings, "docs/index.md": f"# A\n\n{listings}"})
    result = prove(folder, "docs")
    assert result.outcomes() == {"docs/index.md::one": "failed", "docs/index.md::two": "failed", "docs/index.md::a": "passed"}
    assert "option 'ranks' is 'two'" in result.ends()["docs/index.md::two"]["text"]
    assert TOLD not in build(folder)


@pytest.mark.parametrize("style", ["inline", "pymdownx-inline", "table"])
def test_numbers_of_lines_make_no_listing(project, style):
    """A block that is indented is no listing, whether or not its lines have numbers."""
    settings = MKDOCS.format(docs="docs", more="").replace(
        "pymdownx.highlight]", f"{{pymdownx.highlight: {{linenums: true, linenums_style: {style}}}}}]"
    )
    folder = project({"mkdocs.yml": settings, "docs/index.md": f"# A\n\n    A quotation, indented\n\n{WRONG}"})
    assert TOLD not in build(folder)


def test_settings_that_pytest_does_not_see_are_told(project):
    """Settings elsewhere may show other listings than those that pytest finds without them."""
    settings = MKDOCS.format(docs="../docs", more="").replace("[attr_list", "[attr_list, {pymdownx.snippets: {base_path: [docs]}}")
    folder = project({"conf/mkdocs.yml": settings, "docs/index.md": '# A\n\n--8<-- "frag.txt"\n', "docs/frag.txt": WRONG})
    assert f"index.md: the site shows a listing {TOLD} it: assert 1 == 2" in build(folder, "-f", "conf/mkdocs.yml")


def test_outcomes_lead_to_lines_where_the_engine_builds_the_pages(project):
    """With `stamp: false` a line has the anchor of the engine; what is said of runs leads there, from each page."""
    settings = MKDOCS.format(docs="docs", more=", {toc: {permalink: true}}").replace("[rankbook]", "[{rankbook: {stamp: false}}]")
    settings = settings.replace("pymdownx.highlight,", "{pymdownx.highlight: {anchor_linenums: true}},")
    folder = project({
        "mkdocs.yml": f"use_directory_urls: false\n{settings}",
        "docs/index.md": "# A\n\n<!-- rankbook:proof -->\n",
        "tests/test_a.py": "def test_a():\n    assert 0\n\n\ndef test_b():\n    assert 0\n",
    })  # fmt: skip
    (folder / "pyproject.toml").write_text("[tool.rankbook]\nsources = ['tests']\nout = 'docs/suite'\n")
    rankbook("gen", cwd=folder)
    assert prove(folder, "docs").status == pytest.ExitCode.TESTS_FAILED
    build(folder)
    pages = {file: file.read_text() for file in (folder / "site").rglob("*.html")}
    links = [(file, link) for file, text in pages.items() for link in re.findall(r'href="([^"]*#(?:L\d|__codelineno)[^"]*)"', text)]
    assert {file.name for file, _ in links} >= {"index.html", "test_a.py_docs.html"}
    for file, link in links:
        path, _, anchor = link.partition("#")
        assert f'id="{anchor}"' in pages[(file.parent / path).resolve() if path else file], (file, link)
