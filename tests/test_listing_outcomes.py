"""Listings of pages that people write: each shows on the site how it ended, and what tells of it leads there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from browsing import DESKTOP, PHONE, served, visits
from ledgers import run
from rankbook import machine
from rankbook.config import Settings
from rankbook.ledger import Ledger
from rankbook.listing import Outcome
from rankbook.site.fences import Fence, key_of, with_outcomes, without_outcomes
from tiny_site import broken_links, build, elsewhere, environment, write_project

pytest.importorskip("mkdocs", reason="the site needs the extra `site`")

GUIDE = """\
# A guide

## First

```python
print("<1> & 2")
```

```text
no listing
```

## Broken

```python
assert 1 == 2, "one is not two"
```

## In a terminal

~~~console
$ echo hello
hello
~~~

## On ranks

```python {ranks=2}
import os
print("rank", os.environ["RANK"])
```

## Tests

```python
def test_one():
    assert True


def test_two():
    assert True
```

## Inside

!!! note

    ```python
    inside = "a note"
    ```

=== "A tab"

    ```python title="tab.py" linenums="1" hl_lines="2"
    inside = "a tab"

    print(inside)
    ```

- An item

    ```python
    inside = "an item"
    ```

> ```python
> inside = "a quote"
> ```

## Twice

```text
x = 1
```

```python
x = 1
```

## Unsure

```python
y = 1
```

    y = 1

## Left

```python
never = "run"
```

## Noted

A word.[^1] And another.[^2]

[^1]:
    ```python
    moved = 1
    ```

```python
moved = 1
```

[^2]:
    ```python
    noted = 1
    ```

## Hidden

<!-- rankbook: hidden
z = 3
-->

```python
print(z)
```

```python {.no-run}
not_run = 1
```
"""
TAB_OPTIONS = ' title="tab.py" linenums="1" hl_lines="2"'
PLAIN = "# Plain\n\n```text\nno listing\n```\n\n    indented = 1\n"
SHOWN = {
    'print("<1> & 2")': "passed",
    "no listing": None,
    'assert 1 == 2, "one is not two"': "failed",
    "$ echo hello\nhello": "passed",
    'import os\nprint("rank", os.environ["RANK"])': "passed",
    "def test_one():\n    assert True\n\n\ndef test_two():\n    assert True": "1 of 2 proved",
    'inside = "a note"': "passed",
    'inside = "a tab"\n\nprint(inside)': "passed",
    'inside = "an item"': "passed",
    'inside = "a quote"': "passed",
    "x = 1": "passed",
    "y = 1": None,
    'never = "run"': "never run",
    "moved = 1": None,
    "noted = 1": "passed",
    "print(z)": "passed",
    "not_run = 1": None,
}
"""The word before each block of the guide; None for one that is no listing, or of which it is not sure which one it is."""
NAMES = [
    "first",
    "broken",
    "in-a-terminal",
    "on-ranks",
    "tests",
    "inside",
    "inside-2",
    "inside-3",
    "inside-4",
    "twice-2",
    "left",
    "hidden-3",
    "hidden-2",
]
"""The listings that have an anchor."""


class Page(HTMLParser):
    """What stands before each block of a page, by the block's text, and where links lead."""

    def __init__(self, file):
        super().__init__()
        self.said, self.anchors, self.ids, self.links, self.titles = {}, [], [], {}, []
        self._outcome = self._text = self._link = None
        self._is_outcome = self._is_number = False
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids += filter(None, [values.get("id")])
        self._is_number |= values.get("class") in ("linenos", "lineno") or "padding-right: 5px" in (values.get("style") or "")
        if tag == "section" and values.get("class") == "rankbook-listing":
            self._outcome, self._is_outcome = "", True
            self.anchors.append(values.get("id"))
        elif tag == "pre" and not self._is_number:
            self._text = ""
        elif tag == "a":
            self._link = values.get("href")
        self.titles += [values["title"]] if self._is_outcome and "title" in values else []

    def handle_endtag(self, tag):
        if tag == "section":
            self._is_outcome = False
        elif tag in ("td", "span") and self._is_number:
            self._is_number = False
        elif tag == "pre" and self._text is not None:
            self.said[self._text.strip()] = self._outcome
            self._outcome = self._text = None
        elif tag == "a":
            self._link = None

    def handle_data(self, data):
        if self._is_outcome:
            self._outcome += data
        elif self._text is not None and not self._is_number:
            self._text += data
        if self._link is not None:
            self.links[data] = self._link

    @property
    def words(self):
        """Of each block, without where and when its run was."""
        return {text: said and re.split(r" on | [0-9]{4}-", said.strip())[0] for text, said in self.said.items()}


LEFT = ("docs/guide.md::left", "docs/guide.md::tests::test_two")


def prove(root, *chosen):
    """Run listings of the guide: by default all but for one and for one of two tests."""
    most = ["docs/guide.md", *(f"--deselect={node}" for node in LEFT)]
    words = [sys.executable, "-m", "pytest", "-q", "--doctest-glob=*.md", *(chosen or most)]
    done = subprocess.run(words, cwd=root, env=environment(), check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stdout + done.stderr


def write(root, guide=GUIDE, *, theme=True):
    """Write a project with a guide, whose front page shows what fails."""
    write_project(root, theme=theme)
    (root / "docs/guide.md").write_text(guide)
    (root / "docs/plain.md").write_text(PLAIN)
    (root / "docs/index.md").write_text("# Home\n\n[g](guide.md) [p](plain.md)\n\n<!-- rankbook:proof -->\n")
    return root


def configure(root, **values):
    """Change the settings of the site."""
    settings = yaml.safe_load((root / "mkdocs.yml").read_text())
    settings["markdown_extensions"] += [] if "footnotes" in settings["markdown_extensions"] else ["footnotes"]
    settings |= {"nav": ["index.md", "guide.md", "plain.md", "book/"], **values}
    (root / "mkdocs.yml").write_text(yaml.safe_dump(settings))
    return root


def files_of(site):
    """The pages of a site that people wrote."""
    return {name: (site / f"{name}.html").read_bytes() for name in ("index", "guide", "plain")}


@pytest.fixture(scope="module")
def proved(tmp_path_factory):
    """A project whose guide was run, for copies of it."""
    root = configure(write(tmp_path_factory.mktemp("proved")))
    before = (build(root) / "plain.html").read_bytes()
    prove(root)
    return root, before


@pytest.fixture(scope="module")
def site(proved):
    return build(proved[0])


def test_each_listing_shows_how_it_ended(site):
    """Each fence that is run has its outcome before it, wherever it stands, and no other block has one."""
    page = Page(site / "guide.html")
    assert {text: page.words[text] for text in SHOWN} == SHOWN
    assert page.anchors == [f"rb-listing:{name}" for name in NAMES]
    assert max(Counter(page.ids).values()) == 1
    assert "AssertionError: one is not two" in page.said['assert 1 == 2, "one is not two"']
    assert re.search(rf"on {re.escape(machine.hardware())}, torch .*[0-9]{{4}}-[0-9]{{2}}", page.said["$ echo hello\nhello"])
    assert page.titles[0].startswith(f"passed on {machine.hardware()}")
    assert broken_links(site)[1] == []


def test_what_fails_leads_from_the_front_page_to_its_listing(site):
    """The tables of the front page lead to the listing itself."""
    assert Page(site / "index.html").links["broken"] == "guide.html#rb-listing:broken"


def test_a_page_without_listings_stays_as_it_was(proved, site):
    """Not a byte of such a page changes when others have been run."""
    assert (site / "plain.html").read_bytes() == proved[1]


def test_every_way_gives_the_same_bytes(proved, site, monkeypatch):
    """A second build, and one with nothing kept, make the same pages."""
    first = files_of(site)
    assert files_of(build(proved[0])) == first
    assert elsewhere(proved[0], monkeypatch, lambda other: files_of(build(other, anew=True))) == first


def test_the_table_has_all_listings_and_leads_to_them(proved, monkeypatch):
    """With the marker, each listing has a row that leads to it, also one that was never run, and outcomes lead to the rows."""

    def made(root):
        (root / "docs/guide.md").write_text(GUIDE.replace("# A guide\n", "# A guide\n\n<!-- rankbook:last-run -->\n"))
        site = build(root)
        return Page(site / "guide.html"), (site / "guide.html").read_text(), broken_links(site)[1]

    page, text, broken = elsewhere(proved[0], monkeypatch, made)
    assert broken == []
    (said,) = re.findall(r"<p>([0-9]+ listings: [^<]*)[.] Hardware: ", text)
    assert said == "16 listings: 14 passed, 1 failed, 1 never run"
    assert {name: page.links.get(name) for name in NAMES if name != "tests"} == {
        name: f"#rb-listing:{name}" for name in NAMES if name != "tests"
    }
    assert page.links["test_one"] == "#rb-listing:tests"
    assert "<code>unsure</code>" in text
    assert not {"unsure", "noted", "hidden"} & page.links.keys()
    (row,) = re.findall(r'<tr id="([^"]*)">(?:(?!</tr>).)*#rb-listing:left', text)
    assert f'href="#{row}" title="no machine has tried it"' in text


SETTINGS = {
    "numbers in a table": {"pymdownx.highlight": {"linenums": True, "anchor_linenums": True}},
    "numbers in lines": {"pymdownx.highlight": {"linenums": True, "linenums_style": "inline"}},
    "numbers beside lines": {"pymdownx.highlight": {"linenums": True, "linenums_style": "pymdownx-inline"}},
    "without classes": {"pymdownx.highlight": {"noclasses": True}},
    "without classes, numbers in lines": {"pymdownx.highlight": {"noclasses": True, "linenums": True, "linenums_style": "inline"}},
    "without classes, numbers in a table": {"pymdownx.highlight": {"noclasses": True, "linenums": True}},
    "without Pygments": {"pymdownx.highlight": {"use_pygments": False}},
    "codehilite": {"codehilite": {}, "pymdownx.highlight": None},
    "codehilite without Pygments": {"codehilite": {"use_pygments": False}, "pymdownx.highlight": None},
    "codehilite with numbers": {"codehilite": {"linenums": True}, "pymdownx.highlight": None},
}


@pytest.mark.parametrize("changed", SETTINGS.values(), ids=SETTINGS.keys())
def test_listings_are_found_however_they_are_marked_up(proved, monkeypatch, changed):
    """With and without Pygments, with line numbers of all kinds: each outcome stands before its listing."""

    def made(root):
        settings = yaml.safe_load((root / "mkdocs.yml").read_text())
        listed = [entry for entry in settings["markdown_extensions"] if not (isinstance(entry, dict) and set(entry) & set(changed))]
        configure(root, markdown_extensions=[*listed, *({name: values} for name, values in changed.items() if values is not None)])
        if not (changed.get("pymdownx.highlight") or {}).get("use_pygments", True):  # which takes no such options then
            (root / "docs/guide.md").write_text(GUIDE.replace(TAB_OPTIONS, ""))
        return Page(build(root) / "guide.html")

    page = elsewhere(proved[0], monkeypatch, made)
    assert {text: page.words.get(text) for text in SHOWN} == SHOWN
    assert max(Counter(page.ids).values()) == 1


MOVED = """
import shutil
import tempfile

def on_config(config):
    merged = tempfile.mkdtemp(dir="..")
    shutil.copytree(config.docs_dir, merged, dirs_exist_ok=True)
    shutil.copytree("part", f"{merged}/part")
    config.docs_dir = merged
"""


@pytest.mark.parametrize("way", ["a link", "a link to all", "by a link to all", "copies", "other pages"])
def test_pages_that_lie_elsewhere(proved, monkeypatch, way):
    """Their folder is a link, or a plugin chooses another, or makes copies with others: outcomes are those of the pages by name."""

    def made(root):
        before = files_of(build(root))
        link = root.with_name("link")
        if way == "a link":
            (root / "docs").rename(root / "documentation")
            (root / "docs").symlink_to("documentation")
        elif way in ("a link to all", "by a link to all"):
            link.symlink_to(root)
            configure(root, **({"docs_dir": str(link / "docs")} if way == "by a link to all" else {}))
            root = link if way == "a link to all" else root
        elif way == "other pages":
            (root / "placeholder").mkdir()
            (root / "placeholder/index.md").write_bytes((root / "docs/index.md").read_bytes())
            (root / "hook.py").write_text("def on_config(config):\n    config.docs_dir = 'docs'\n")
            configure(root, docs_dir="placeholder", hooks=["hook.py"])
        else:
            (root / "part").mkdir()
            (root / "part/one.md").write_text("# One\n\n```python\nelsewhere = 1\n```\n")
            (root / "hook.py").write_text(MOVED)
            configure(root, hooks=["hook.py"], not_in_nav="part/")
        site = build(root, anew=True)
        plain = Page(site / "part/one.html").words if way == "copies" else None
        found = before == files_of(site), Page(site / "guide.html"), plain
        link.unlink(missing_ok=True)
        return found

    is_same, page, plain = elsewhere(proved[0], monkeypatch, made)
    assert {text: page.words.get(text) for text in SHOWN} == SHOWN
    assert is_same
    assert plain == ({"elsewhere = 1": None} if way == "copies" else None)


GRID = """\
<div class="grid" markdown>

=== "One"

    ```python
    grid = 1
    ```

```python
grid = 2
```

</div>

```python
grid = 4
```

=== "Outer"

    A tab.

=== "Other"

    === "First"

        Another.

    === "Second"

        ```python {name=deep}
        grid = 3
        ```
"""


@pytest.mark.browser
def test_outcomes_in_grids_and_tabs(proved, monkeypatch, chromium):
    """An outcome is no cell of a grid, and a link to a listing opens the tabs that it stands in."""

    def made(root):
        (root / "docs/guide.md").write_text("# A guide\n\n" + GRID + "\nA line.\n" * 40)
        listed = yaml.safe_load((root / "mkdocs.yml").read_text())["markdown_extensions"]
        listed = [entry for entry in listed if not (isinstance(entry, dict) and "pymdownx.highlight" in entry)]
        configure(root, markdown_extensions=[*listed, {"pymdownx.highlight": {"linenums": True, "anchor_linenums": True}}])
        prove(root, "docs/guide.md")
        with served(build(root)) as address, visits(chromium) as opened:
            page = opened(viewport=PHONE)
            page.goto(f"{address}guide.html")
            cells = page.locator(".grid > *").evaluate_all("all => all.map(each => each.className)")
            blocks = page.locator(".grid .highlight").evaluate_all("all => all.map(each => each.innerText)")
            top = "getBoundingClientRect().y"
            shift = f"each.querySelector('td.code pre').{top} - each.querySelector('.linenodiv pre').{top}"
            shown = page.locator(".highlighttable").evaluate_all(f"all => all.filter(each => each.offsetParent).map(each => {shift})")
            page.goto(f"{address}index.html")
            page.goto(f"{address}guide.html#rb-listing:deep")
            block = page.locator("[id='rb-listing:deep']")
            block.wait_for(state="visible")
            page.wait_for_function("scrollY > 0")
            return cells, blocks, shown, block.bounding_box()["y"]

    cells, blocks, shifts, top = elsewhere(proved[0], monkeypatch, made)
    assert len(cells) == 2
    assert "tabbed-set" in cells[0]
    assert "highlight" in cells[1]
    assert "passed" in blocks[1]
    assert len(shifts) == 3
    assert len(set(shifts)) == 1, "numbers stand at their lines"
    assert 0 < top < PHONE["height"]


def test_drawings_are_no_listings(proved, monkeypatch):
    """With another theme, and with fences that the site draws: what is no listing has no outcome, and takes none from one."""
    form = "!!python/name:pymdownx.superfences.fence_code_format"
    drawn = f"    custom_fences:\n    - name: mermaid\n      class: mermaid\n      format: {form}\n"

    def made(root):
        (root / "docs/guide.md").write_text(f"```mermaid\ngraph\n```\n\n```mermaid\nx = 1\n```\n\n{GUIDE}")
        configure(root, theme={"name": "mkdocs", "highlightjs": False})
        settings = (root / "mkdocs.yml").read_text()
        assert "    preserve_tabs: true\n" in settings
        (root / "mkdocs.yml").write_text(settings.replace("    preserve_tabs: true\n", f"    preserve_tabs: true\n{drawn}"))
        site = build(root)
        return Page(site / "guide.html"), (site / "guide.html").read_text()

    page, text = elsewhere(proved[0], monkeypatch, made)
    assert {text: page.words.get(text) for text in SHOWN} == SHOWN
    assert page.words["graph"] is None
    assert text.count('<section class="rankbook-listing"') == len(NAMES)


@pytest.mark.parametrize("engine", ["properdocs", "zensical"])
def test_other_engines_show_the_same(proved, site, monkeypatch, engine):
    """ProperDocs shows it by the plugin, Zensical after `rankbook stamp`, and a second stamp changes nothing."""
    pytest.importorskip(engine, reason=f"{engine} is not installed")
    steps = {
        "properdocs": [["properdocs", "build", "--strict", "--config-file", "mkdocs.yml"]],
        "zensical": [["rankbook.cli", "gen"], ["zensical", "build", "--clean"], ["rankbook.cli", "stamp"]],
    }

    def call(root, words):
        done = subprocess.run([sys.executable, "-m", *words], cwd=root, env=environment(), check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def made(root):
        if engine == "zensical":
            configure(root, nav=["index.md", "guide.md", "plain.md", {"Suite": "book/index.md"}])
        for words in steps[engine]:
            call(root, words)
        first = files_of(root / "site")
        if engine == "zensical":
            call(root, ["rankbook.cli", "stamp"])
        assert files_of(root / "site") == first
        return Page(root / "site/guide.html"), first["plain"]

    page, plain = elsewhere(proved[0], monkeypatch, made)
    mine = Page(site / "guide.html")
    assert len(page.anchors) == len(NAMES)
    assert ({text: page.said.get(text) for text in SHOWN}, page.anchors) == ({text: mine.said[text] for text in SHOWN}, mine.anchors)
    assert b"assets/rankbook" not in plain or engine == "properdocs"


def test_a_listing_that_was_edited_says_so(proved, monkeypatch):
    """A text that was changed since its run is not green, and says how the older one ended."""

    def made(root):
        (root / "docs/guide.md").write_text(GUIDE.replace('print("<1> & 2")', 'print("<1> & 3")'))
        return Page(build(root) / "guide.html")

    page = elsewhere(proved[0], monkeypatch, made)
    assert page.said['print("<1> & 3")'].strip() == "older version an older version of this listing passed"


def test_a_history_opens_where_no_table_has_it(proved, monkeypatch):
    """A listing that was run more than once shows its runs, and opens to say when which was."""

    def made(root):
        found = Ledger(root / Settings().ledger)
        values = {"source": "", "kind": "script", "when": "2020-01-01T10:00:00+00:00", "torch": "2.6.0", "machine": machine.hardware()}
        found.record([run("docs/guide.md::first", Outcome.FAILED, listing="00", **values)])
        return Page(build(root) / "guide.html").said['print("<1> & 2")']

    assert "✗✓" in elsewhere(proved[0], monkeypatch, made).replace(" ", "")


def test_what_a_listing_has_held_once_is_not_told_of(proved, monkeypatch):
    """A listing has as many tests as it says: one that is gone stands for one that was not run, until all have been."""

    def made(root):
        values = {"source": "", "when": "2020-01-01T10:00:00+00:00", "listing": "00", "machine": machine.hardware()}
        old = [run(f"docs/guide.md::{name}", Outcome.FAILED, **values) for name in ("tests", "tests::test_gone")]
        Ledger(root / Settings().ledger).record(old)
        before = Page(build(root) / "guide.html").words
        prove(root, *LEFT)
        return before, Page(build(root) / "guide.html").words

    before, after = elsewhere(proved[0], monkeypatch, made)
    (text,) = (text for text in SHOWN if "test_two" in text)
    assert before[text] == "1 of 2 proved"
    assert (after[text], after['never = "run"']) == ("passed", "passed")


def test_the_command_of_a_generated_page_shows_how_it_ended(tmp_path):
    """The listing below "How to run it" has its outcome, and its row leads to it; before its first run it says so."""
    root = write_project(tmp_path)
    page = "docs/book/suite/test_ring.py_docs.md"
    Ledger(root / Settings().ledger).record([run("docs/guide.md::x", source="")])
    text = (build(root) / "book/suite/test_ring.py_docs.html").read_text()
    assert re.search(r"<section [^>]*how-to-run-it[^>]*><span[^>]*rankbook-never[^>]*>never run</span></section>", text)
    words = [sys.executable, "-m", "pytest", "-q", "--doctest-glob=*.md", page]
    subprocess.run(words, cwd=root, env=environment(), check=True, capture_output=True, timeout=300)
    site = build(root)
    text = (site / "book/suite/test_ring.py_docs.html").read_text()
    section = re.search(r"<section [^>]*rb-listing:how-to-run-it.*?</section>", text, re.DOTALL)[0]
    assert "rankbook-passed" in section
    row = re.search(r"href=#(rb-run-[0-9]+)", section)[1]
    assert re.search(rf"<tr id=.{row}.><td><a href=#rb-listing:how-to-run-it>", text)
    assert broken_links(site)[1] == []


@pytest.mark.browser
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_way_from_what_fails_ends_at_its_listing(proved, site, chromium, viewport):
    """In a browser the link of the front page brings a listing and its outcome into sight, with the date in words and its runs on hover."""
    with served(site) as address, visits(chromium) as opened:
        page = opened(viewport=viewport)
        page.goto(f"{address}index.html")
        page.get_by_role("link", name="broken").click()
        page.wait_for_url("**/guide.html#rb-listing:broken")
        outcome = page.locator("[id='rb-listing:broken']")
        block = outcome.locator("xpath=following-sibling::*[1]")
        assert "one is not two" in block.inner_text()
        page.wait_for_function("scrollY > 0")
        above, below = outcome.bounding_box(), block.bounding_box()
        header = page.locator(".md-header").bounding_box()
        assert header["y"] + header["height"] <= above["y"]
        assert above["y"] + above["height"] <= below["y"] < viewport["height"]
        page.wait_for_function("document.querySelector('.rankbook-listing time').title")
        assert outcome.locator("[title]").first.get_attribute("title").startswith("failed on CPU")
        wide = page.locator(".rankbook-listing").evaluate_all(
            "all => all.filter(each => each.getBoundingClientRect().right > innerWidth).length"
        )
        assert wide == 0


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d"]), st.booleans(), st.booleans()), max_size=8))
def test_no_outcome_stands_at_another_listing(blocks):
    """Whatever is on a page besides: each outcome stands before a block that holds its listing's text, and is taken away again whole."""
    fences = [Fence(f"{text}{place}" if named else "", key_of(text)) for place, (text, named, is_fence) in enumerate(blocks) if is_fence]
    page = "<p>x</p>\n".join(f'<div class="highlight"><pre><code><i>{text}</i>\n</code></pre></div>\n' for text, *_ in blocks)
    made, names = with_outcomes(page, fences, {fence.name: f"[{fence.name}]" for fence in fences if fence.name})
    found = re.findall(r'data-search-exclude>\[(.)[0-9]+\]</section>\n<div class="highlight"><pre><code><i>(.)</i>', made)
    assert len(found) == len(names)
    assert all(said == text for said, text in found)
    assert without_outcomes(made) == page
