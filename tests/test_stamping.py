"""Stamping: Markdown pages to HTML, the shell, what is made anew and what is left, and that every way to a site gives the same bytes."""

from __future__ import annotations

import html
import json
import re
import shutil
from urllib.parse import unquote

import markdown as python_markdown
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

pytest.importorskip("pyromark", reason="stamping needs the extra `site`")
pytest.importorskip("mkdocs", reason="the site needs the extra `site`")
pytest.importorskip("material", reason="the site needs the extra `site`")

from markdown.extensions.toc import slugify
from markdown.extensions.toc import unique as python_unique

from nursery import run_module
from rankbook import front_matter
from rankbook.cli import main
from rankbook.config import load
from rankbook.embedding import Embedding, embed
from rankbook.errors import RankbookError
from rankbook.front_matter import PAGE_KINDS, Stamp
from rankbook.pages.fence import source_fence
from rankbook.site import lean, parts, sheltering, stamping
from rankbook.site.addresses import Addresses
from rankbook.site.markdown import Heading, render, slug, unique
from rankbook.site.shell import Shell, source
from rankbook.stamps import stamp_of
from tiny_site import REPOSITORY, RING, Html, broken_links, build, elsewhere, environment, generate, mkdocs, with_own_cache, write_project

PLAIN = Addresses()
LISTING = re.compile(r'<div class="language-\S+ highlight rankbook-source"><pre><code[^>]*>(.*?)</code></pre></div>', re.DOTALL)
TAG = re.compile(r"<[^>]*>")


def shown(page):
    """The text of the listing of a page, as a browser copies it."""
    return html.unescape(TAG.sub("", LISTING.search(page)[1]))


def rendered(text, path="book/x.py_docs.md"):
    return render(text, path, PLAIN)


# Markdown


def python_markdown_of(text):
    """What the engines make of a page: with this repository's extensions, but for those that colour listings."""
    extensions = ["admonition", "attr_list", "def_list", "md_in_html", "tables", "toc", "pymdownx.details", "pymdownx.superfences"]
    settings = {"toc": {"permalink": True}, "pymdownx.superfences": {"preserve_tabs": True}}
    return python_markdown.Markdown(extensions=extensions, extension_configs=settings).convert(text)


def outline(page, *, rewritten):
    """Text and links of a page, without the spaces and the listings, which the two ways write each in their own."""
    page = re.sub(r"<pre.*?</pre>", "", page, flags=re.DOTALL)
    links = [link for link in Html(page).links if not link.startswith("#") or "__codelineno" in link or re.match(r"#L\d", link)]
    if rewritten:
        links = [re.sub(r"\.md(?=#|\Z)", ".html", link.replace("#__codelineno-source-", "#L")) for link in links]
    text = html.unescape(TAG.sub(" ", page)).replace("\xb6", "")
    anchors = re.findall(r'<h\d id="?([^">]*)', page)
    return " ".join(text.split()), links, anchors


@pytest.fixture(scope="module")
def pages_of_the_suite(tmp_path_factory):
    """The pages of the bundled suite, by their paths."""
    docs = tmp_path_factory.mktemp("suite") / "docs"
    assert main(["gen", "--root", str(REPOSITORY), "--out", str(docs)]) == 0
    return {path.relative_to(docs).as_posix(): path.read_bytes().decode() for path in sorted(docs.rglob("*.md"))}


def test_generated_pages_show_what_python_markdown_shows(pages_of_the_suite):
    """Each generated page of the bundled suite has the same text, links and anchors as where an engine builds it."""
    for path, text in pages_of_the_suite.items():
        body = text[front_matter.split(text)[1] :]
        ours = render(body, path, PLAIN)
        notes = iter(NOTE.findall(body))
        filled = re.sub("<!-- rankbook:[a-z-]+ -->", lambda _, notes=notes: next(notes), ours.html)
        assert outline(filled, rewritten=False) == outline(python_markdown_of(body), rewritten=True), path
    assert len(pages_of_the_suite) > 60


NOTE = re.compile(r"^.*(?=\n\n<!-- rankbook:[a-z-]+ -->)", re.MULTILINE)


def test_nested_lists_and_tables_are_read_as_by_the_engines():
    """Lists in lists, alignment of columns, code with pipes and entities are the same in both."""
    text = (
        "# A `b` & c\n\n- one\n    - two\n        - three, [line 3](#__codelineno-source-3)\n\n"
        "| A | B |\n| --- | --: |\n| <code>a &#124; b</code> | 1 |\n| `x < y` | &lt;i&gt; |\n\n**bold** *empty*\n"
    )
    ours = rendered(text)
    assert outline(ours.html, rewritten=False) == outline(python_markdown_of(text), rewritten=True)
    assert 'style="text-align: right"' in ours.html


@given(st.text(max_size=30))
@example("Extended Latin: žlutý kůň")
@example("x_1")
@example("<&>")
@example("")
def test_anchors_of_headings_are_those_of_python_markdown(text):
    """The anchor of a heading is what the toc extension makes of its text, also for a text that stands twice."""
    assert slug(text) == slugify(text, "-")
    ours, theirs = set(), set()
    for _ in range(3):
        assert unique(slug(text), ours) == python_unique(slugify(text, "-"), theirs)


SOURCES = st.text(max_size=300).filter(lambda text: text.strip() and isinstance_text(text))


def isinstance_text(text):
    """Whether a page can hold the text as a listing."""
    try:
        return hasattr(embed(text.encode()), "text")
    except UnicodeEncodeError:
        return False


@given(SOURCES)
@example("```\n")
@example("a\r\nb\rc\n")
@example("````\n```python {#source}\n")
@example("\n\n  x\t\n\x0c\u2028\ufdd0</code></pre><script>\n")
@example("<!-- rankbook:last-run -->\n")
@example("~~~\n")
def test_the_listing_is_shown_exactly(text):
    """Whatever a source holds, the text of its listing on the site is the source, with an anchor for each line."""
    kept = embed(text.encode()).text
    page = f"# x\n\n{source_fence(kept, 'text')}\n[Folder](index.md)\n"
    found = rendered(page)
    assert shown(found.html) == kept
    assert found.lines == len(re.findall(r"\r\n|\n|\r", kept))
    assert list(found.targets) == ["book/index.md"]
    assert "<script" not in found.html


HOSTILE = st.lists(
    st.sampled_from(
        [
            "<script>",
            "</p>",
            "<img src=x onerror=alert(1)>",
            "[a](javascript:alert(1))",
            "[a](JAVA&#83;cript:x)",
            "<!--",
            "-->",
            "\ufdd0",
            "\ufdd1",
            "`",
            "```\n",
            "\n",
            "\n\n",
            "|",
            "<code>",
            "</code>",
            "&lt;",
            '"',
            "'",
            "![a](//x.org/i.png)",
            "<http://x.org>",
            "[a](data:text/html,x)",
            '<div class="rankbook-filter">',
            "<!-- rankbook:last-run -->",
            "{: onclick=x}",
            "# ",
            "- ",
            "    ",
            "text",
            "<style>",
            "<a href='x'>",
        ]
    ),
    max_size=20,
).map("".join)
ELEMENTS = {
    "p",
    "a",
    "code",
    "pre",
    "div",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "li",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
}
ELEMENTS |= {"em", "strong", "blockquote", "hr", "br", "img", "del", "span"}
ATTRIBUTES = {"href", "id", "class", "title", "src", "alt", "style", "start"}


@given(HOSTILE)
@example("<script>alert(1)</script>")
@example("`<code>` <code>x</code>")
@example("[a]( javascript:alert(1))")
@example("[a](\tjavascript:alert(1))")
@example("![x](https://example.org/x.png)")
def test_a_page_holds_no_element_but_those_that_markdown_makes(text):
    """No input becomes an element, an attribute or an address that Markdown and the marks of our templates do not make."""
    page = Html(rendered(text).html)
    assert {tag for tag, _ in page.tags} <= ELEMENTS
    assert {name for _, values in page.tags for name in values} <= ATTRIBUTES
    for tag, values in page.tags:
        for name in ("href", "src"):
            address = (values.get(name) or "").strip().lower()
            assert not re.match(r"(?!https?:|mailto:|data:,\Z)[^/?#]*:", address), (tag, address)
        assert not (tag == "img" and re.match(r"[a-z]+://|//", values.get("src") or ""))


def test_raw_html_is_shown_as_text_and_comments_are_left_out():
    """What looks like HTML is text, but for the few marks that templates write; a comment is not shown at all."""
    found = rendered('a <b>c</b>\n\n<!-- gone -->\n\n<div class="rankbook-filter"></div>\n\n<code>x&#124;y</code> `<code>`\n').html
    assert "a &lt;b&gt;c&lt;/b&gt;" in found
    assert "gone" not in found
    assert '<div class="rankbook-filter"></div>' in found
    assert "<code>x|y</code> <code>&lt;code&gt;</code>" in found


def test_a_marker_takes_its_note_along():
    """On a generated page the paragraph before a marker is the note for readers elsewhere, and goes with it."""
    found = rendered("## Last run\n\nThe site shows.\n\n<!-- rankbook:last-run -->\n\nAfter.\n").html
    assert "The site shows." not in found
    assert "<!-- rankbook:last-run -->" in found
    assert "<p>After.</p>" in found


LINKS = [
    ("x.py_docs.md#__codelineno-source-12", "x.py_docs.html#L12", "x.py_docs/#L12"),
    ("../index.md", "../index.html", "../../"),
    ("#__codelineno-source-3", "#L3", "#L3"),
    ("sub/index.md#files", "sub/index.html#files", "../sub/#files"),
    ("imports.svg", "imports.svg", "../imports.svg"),
    ("a%20b.md", "a%20b.html", "../a%20b/"),
    ("README.md", "index.html", "../"),
    ("https://example.org/x.md", "https://example.org/x.md", "https://example.org/x.md"),
]


@pytest.mark.parametrize(("link", "plain", "directory"), LINKS)
def test_links_lead_where_the_engine_puts_the_pages(link, plain, directory):
    """A link to a page becomes one to its file on the site, with and without a folder for each page."""
    made = [Html(render(f"[a]({link})", "book/t/y.md", Addresses(each)).html).links[0] for each in (False, True)]
    assert made[0] == plain
    assert made[1].removeprefix("../") == directory.removeprefix("../")


@pytest.mark.parametrize(
    ("here", "address", "file"),
    [
        ("t/index.html", "x.py_docs.html#L3", "t/x.py_docs.html"),
        ("t/index.html", "sub/index.html", "t/sub/index.html"),
        ("t/index.html", "x.py_docs/#L3", "t/x.py_docs/index.html"),
        ("t/index.html", "a%20b/", "t/a b/index.html"),
        ("t/index.html", "../", "index.html"),
        ("t/index.html", "..", "index.html"),
        ("t/sub/index.html", "../sub.b/", "t/sub.b/index.html"),
        ("t/index.html", "./", "t/index.html"),
        ("t/index.html", "#files", "t/index.html"),
    ],
)
def test_an_address_on_the_site_leads_to_a_file(here, address, file):
    """Both ways of addressing tell which file of the site a link leads to."""
    assert stamping._target(here, address) == file


@given(
    st.builds(
        Stamp,
        page=st.sampled_from(PAGE_KINDS),
        title=st.text(max_size=20),
        source=st.text(max_size=20),
        size=st.none() | st.integers(0, 10**9),
        sha256=st.none() | st.just("0" * 64),
        embedding=st.none() | st.just(Embedding("utf-8", bom=False, newline="lf", final_newline=True, size=1, sha256="0" * 64)),
        owners=st.lists(st.text(max_size=5), max_size=2).map(tuple),
        needs=st.just("") | st.just('{"needs": [["a|b", "2", ""]]}\n{"tests": {}}\n'),
    )
)
def test_front_matter_is_read_quickly_as_it_is_read_slowly(tmp_path_factory, stamp):
    """What is told of a page by the quick way is what the whole YAML tells, without how its listing is embedded."""
    path = tmp_path_factory.mktemp("pages") / "x.md"
    text = front_matter.write(stamp) + "\n# x\n"
    path.write_bytes(text.encode(errors="surrogatepass"))
    found = stamp_of(path)
    told = front_matter.read(front_matter.split(text)[0])
    assert found == replace(told, embedding=None)


# The shell

HEADINGS = [Heading(1, "all", "All"), Heading(2, "a", "A"), Heading(3, "b", "B &lt;b&gt;"), Heading(2, "c", 'C "c"')]
VALUES = {
    "title": "T & t",
    "name": "T & t",
    "address": "https://x.org/y.html",
    "description": "D",
    "top": "all",
    "content": "<p>Content</p>",
}


def shell_of(root, theme):
    """The shell that a theme gives."""
    docs = root / "docs/book"
    docs.mkdir(parents=True)
    (root / "docs/index.md").write_text("# Home\n")
    (docs / "index.md").write_text(source("The &amp; suite"))
    nav = "nav:\n  - index.md\n  - Book: book/index.md\n"
    (root / "mkdocs.yml").write_text(
        f"site_name: A site\nsite_url: https://example.org/s/\nuse_directory_urls: false\ntheme:\n  name: {theme}\n  font: false\n{nav}"
    )
    done = mkdocs(root, "build", "--strict")
    assert done.returncode == 0, done.stdout + done.stderr
    return Shell.of((root / "site/book/index.html").read_text(), file="book/index.html", title="The &amp; suite", label="Book")


def write_parts(site, shell):
    """Write the script of the shell's parts, as publishing does."""
    (site / lean.FILE).parent.mkdir(exist_ok=True)
    (site / lean.FILE).write_text(shell.script)
    (site / lean.STYLE).write_text(shell.style)


@pytest.mark.parametrize("theme", ["material", "mkdocs", "readthedocs"])
def test_shell_of_a_theme(tmp_path, theme):
    """Each theme gives a shell with places for title, address, contents and content, whose links lead to the same files at any depth."""
    shell = shell_of(tmp_path, theme)
    pages = {depth: shell.filled(depth, {**VALUES, "contents": shell.contents.of(HEADINGS)}) for depth in (0, 1, 4)}
    write_parts(tmp_path / "site", shell)
    for depth, page in pages.items():
        parsed = Html(page)
        assert "<title>T & t - A site</title>" in page
        assert page.count("<p>Content</p>") == 1
        assert 'href="https://x.org/y.html"' in page
        assert {link for link in parsed.links if link in ("#a", "#b", "#c")} >= {"#a", "#c"}
        assert "B &lt;b&gt;" in page or theme == "mkdocs"
        assert "ankbook first part" not in page
        assert "The &amp; suite" not in page
        folder = tmp_path / "site" / "/".join("abcd"[:depth])
        inside = [link for link in parsed.links if not re.match(r"[a-z]+:|//|#", link)]
        assert inside
        for link in inside:
            target = (folder / link.partition("#")[0].partition("?")[0]).resolve()
            assert target.exists() or (target / "index.html").exists() or link.endswith("search.html"), link
    assert re.findall(r"<script src=([^>]*rankbook-shell.js)>", pages[4]) == ["../../../../assets/rankbook-shell.js"]
    assert json.dumps("\ufdd1base\ufdd1").strip('"') in shell.script


CELLS = st.lists(st.lists(st.text("ab &|<", max_size=5), min_size=2, max_size=2), min_size=1, max_size=4)


@given(CELLS, st.text('abc</li>"= \n', max_size=30))
def test_what_is_left_out_of_html_is_added_by_the_browser(rows, listing):
    """A compact page has the same elements, text and links as before, and its listing the same characters."""
    body = "".join(
        f'<tr><td><a href="x.html#L{n}">{html.escape(a)}</a></td><td>{html.escape(b)}</td></tr>\n' for n, (a, b) in enumerate(rows)
    )
    code = html.escape(listing)
    page = f"<table><tbody>\n{body}</tbody></table><ul><li>a<ul><li>b</li></ul></li>\n<li>c</li></ul><pre><code>{code}</code></pre>"
    made = lean.compact(page)
    assert [Html(made).tags, Html(made).links] == [Html(page).tags, Html(page).links]
    assert html.unescape(TAG.sub("", made)).replace("\n", "") == html.unescape(TAG.sub("", page)).replace("\n", "")
    assert f"<pre><code>{code}</code></pre>" in made
    assert len(made) < len(page)


def test_a_column_of_numbers_is_known_by_a_class():
    """The style of a cell becomes a class, and a text that shows such a style stays what it is."""
    cell, shown = (
        '<td style="text-align: right">7</td>',
        '<p><code>&lt;td style="text-align: right"&gt;</code> style="text-align: right"</p>',
    )
    assert lean.compact(f"<table><tr>{cell}</tr></table>{shown}") == f"<table><tr><td class=r>7</table>{shown}"


def part_list(script):
    """The parts that a script holds."""
    return json.loads(script[script.index("[") : script.index("];") + 1])


def test_what_a_script_can_write_stands_in_one_script():
    """What a script can write is taken out of a page whole, and the page calls for it where it stood; neighbours are one part."""
    search = '<div class="md-search" x><div>in</div></div>'
    icon = '<link rel="icon" href="_base_/i.png">'
    page = f'<html><head><meta charset="utf-8">{icon}<title>_title_ &amp; s</title><script>a("</div>")</script></head>'
    page += f"<body>{search}<p>kept</p>{search}\n{search}</body>"
    text, script, is_plain = parts.parted(page, "_")
    assert text == (
        '<html><head><meta charset="utf-8"><script src="_base_/assets/rankbook-shell.js"></script><title>_title_ &amp; s</title>'
        "<script>rb(0)</script></head><body><script>rb(1)</script><p>kept</p><script>rb(2)</script></body>"
    )
    assert not is_plain
    assert "</" not in script
    assert 'const rest = " & s";' in script
    assert part_list(script) == [icon + '<script>a("</div>")</script>', search, search + search]
    assert parts.parted("<html><head></head></html>", "_") == ("<html><head></head></html>", "", False)


def test_a_part_of_places_that_a_script_does_not_know_stays_in_the_page():
    """A script knows the name of a page and its headings; what else a part is filled with keeps it in the page."""
    side = '<div class="md-sidebar x"><nav aria-label="On this page"><ul>_contents_</ul></nav></div>'
    page = "<html><head></head><body>{}<p>kept</p></body></html>"
    assert parts.parted(page.format('<div class="md-dialog">_top_</div>'), "_")[1] == ""
    assert parts.parted(page.format(side), "_")[1] == ""
    text, script, is_plain = parts.parted(page.format(side), "_", {"leaf": "<li>_text_", "parent": "<li>_text_", "inner": "<li>_text_"})
    assert is_plain
    assert text.endswith(
        '<body><nav class="rankbook-contents" aria-label="On this page"><ul>_contents_</ul></nav>'
        "<script>rb(0)</script><p>kept</p></body></html>"
    )
    assert part_list(script) == [side]


def test_what_a_theme_takes_from_each_page_stays_in_it():
    """A theme that loads pages without leaving the first one finds in each of them the title that it shows."""
    title = '<div class="md-header__title">_name_</div>'
    page = f"<html><head></head><body>{title}<p>kept</p>{{}}</body></html>"
    settings = '<script>{"features": ["navigation.instant"]}</script>'
    assert title not in parts.parted(page.format("<script>{}</script>"), "_")[0]
    assert title in parts.parted(page.format(settings), "_")[0]


def test_what_a_table_says_of_each_test_is_said_of_the_first():
    """Below the first test of a table an empty title stands for what differs by the name alone; what differs otherwise is said."""

    def row(line, name, command, said=""):
        badge = f' <a class="rankbook-run" href="#rb-run-{line}" title="{said}"><span>passed</span></a>' if said else ""
        return f'<tr><td><a href="#L{line}" title="{command}"><code>{name}</code></a>{badge}</td></tr>\n'

    rows = [
        row(1, "test_a", "pytest x.py::A::test_a", "passed on CPU"),
        row(2, "test_b", "pytest x.py::A::test_b", "passed on CPU"),
        row(3, "test_c", "pytest y.py::B::test_c", "failed"),
        row(4, "test_d", "pytest y.py::B::test_d_cpu"),
        row(5, "test_e", "pytest y.py::B::test_e", "failed"),
    ]
    table = f"<table><tbody>{''.join(rows)}</tbody></table>"
    made = lean.compact(f"{table}<p></p>{table}")
    titles = ["pytest x.py::A::test_a", "passed on CPU", "", "", "pytest y.py::B::test_c", "failed", "pytest y.py::B::test_d_cpu"]
    titles += ["pytest y.py::B::test_e", ""]
    found = [values.get("title") or "" for tag, values in Html(made).tags if tag == "a"]
    assert found == titles * 2
    assert Html(made).links == Html(f"{table}{table}").links


@given(st.lists(st.tuples(st.text("ab ='\"<&>/.", max_size=6), st.text("a b\n", max_size=6)), min_size=1, max_size=4))
def test_a_tight_page_has_the_elements_of_the_page(links):
    """Quotes and blanks that say nothing go, and with them no element, attribute or word."""
    items = "".join(f'<li class="x">\n<a href="{html.escape(to)}" title="b c" >{html.escape(said)}</a>\n</li>\n' for to, said in links)
    page = f'<body data-a="BASE/x">\n<nav class="md-nav" >\n<ul>\n{items}</ul>\n</nav>\n<pre> a="b" \n</pre><p>a\n<b>b</b>\nc</p></body>'
    made = lean.tight(page, "BASE")
    stripped = [(tag, {name: value.strip() for name, value in values.items()}) for tag, values in Html(page).tags]
    assert [(tag, {name: value.strip() for name, value in values.items()}) for tag, values in Html(made).tags] == stripped
    assert html.unescape(TAG.sub(" ", made)).split() == html.unescape(TAG.sub(" ", page)).split()
    assert '<pre> a="b" \n</pre><p>a\n<b>b</b>\nc</p>' in made
    assert len(made) < len(page)


def test_drawings_of_one_colour_stand_in_one_style_sheet():
    """A drawing is told once for all pages; one with colours or parts of its own stays where it is."""
    path = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path d="M3 6h18v2H3z"/></svg>'
    other = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path fill="red" d="M3"/></svg>'
    page, style = lean.drawn(f"<html><head></head><body>{path}{other}{path}</body></html>", "a.css")
    empty = '<svg viewBox="0 0 24 24" class=rankbook-drawing-1></svg>'
    assert page == f'<html><head><link rel="stylesheet" href="a.css">\n</head><body>{empty}{other}{empty}</body></html>'
    assert style.count("mask:") == 1
    assert path in unquote(style)
    assert lean.drawn("<head></head>", "a.css") == ("<head></head>", "")


def test_a_page_without_content_is_no_shell():
    """A page in which no content is found is told of in one sentence."""
    with pytest.raises(RankbookError, match="has no content"):
        Shell.of("<html><body></body></html>", file="x.html", title="x")


# What is set aside


def test_what_was_set_aside_comes_back_beside_what_was_built(tmp_path):
    """Stamped pages come back, what the engine has built stays, and what it built earlier and not now is gone."""
    site = tmp_path / "site"
    files = {"book/a/x.html": "stamped", "book/old.html": "built earlier", "book/index.html": "stamped index", "assets/s/1.json": "shard"}
    for name, text in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    sheltering.shelter(site, {"book", "none"}, ["assets/s"])
    shutil.rmtree(site / "assets")
    assert not (site / "book").exists()
    (site / "book/a").mkdir(parents=True)
    (site / "book/a/by_hand.html").write_text("built")
    (site / "book/index.html").write_text("the shell")
    sheltering.unshelter(site, {"book/a/x.html", "book/index.html"})
    pages = {"book/a/x.html": "stamped", "book/a/by_hand.html": "built", "book/index.html": "stamped index"}
    waits = site / sheltering.ASIDE / sheltering.WHOLE
    assert _texts(site) == {**pages, (waits / "assets/s/1.json").relative_to(site).as_posix(): "shard"}
    (waits / "assets/s/2.json").write_text("another")
    sheltering.unshelter_folders(site)
    assert _texts(site) == {**pages, "assets/s/1.json": "shard", "assets/s/2.json": "another"}
    sheltering.unshelter(site, set())
    sheltering.unshelter_folders(site)
    assert (site / "book/a/x.html").exists()


def test_nothing_is_set_aside_behind_a_link(tmp_path):
    """A link where pages are set aside is taken away, and what it leads to is left alone."""
    site, other = tmp_path / "site", tmp_path / "other"
    for folder in (site / "book", other):
        folder.mkdir(parents=True)
        (folder / "x.html").write_text("mine")
    aside = site / sheltering.ASIDE
    for place in (aside, aside / sheltering.WHOLE, aside / sheltering.WHOLE / "book"):
        for done in (
            lambda: sheltering.shelter(site, (), ["book"]),
            lambda: sheltering.unshelter_folders(site),
            lambda: sheltering.shelter(site, {"book"}),
            lambda: sheltering.unshelter(site, {"book/x.html"}),
            lambda: sheltering.drop(site),
        ):
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                place.symlink_to(other)
            done()
            assert _texts(other) == {"x.html": "mine"}
    assert _texts(site) == {"book/x.html": "mine"}


def _texts(site):
    return {path.relative_to(site).as_posix(): path.read_text() for path in site.rglob("*") if path.is_file()}


# The whole site


def files_of(site):
    """All files of a site by what they hold, without those in which the engine writes the time."""
    return {
        path.relative_to(site).as_posix(): path.read_bytes()
        for path in site.rglob("*")
        if path.is_file() and "sitemap" not in path.name and path.name != "404.html"
    }


@pytest.fixture
def project(tmp_path, monkeypatch):
    with_own_cache(monkeypatch, tmp_path / "cache")
    return write_project(tmp_path / "p") if (tmp_path / "p").mkdir() is None else None


def cold(root, monkeypatch):
    """Build the same project elsewhere, with a new interpreter and nothing kept."""
    return elsewhere(root, monkeypatch, lambda other: files_of(build(other, anew=True)))


def times(site):
    return {path: path.stat().st_mtime_ns for path in site.rglob("*_docs.html")}


def test_every_way_to_a_site_gives_the_bytes_of_a_cold_build(project, monkeypatch):
    """Whatever was changed since, the site is what a cold build makes, and only what has changed is written."""
    site = build(project)
    first, before = files_of(site), times(site)
    assert files_of(build(project)) == first
    assert times(site) == before

    (project / "suite/test_ring.py").write_text(RING.replace("neighbour", "successor"))
    assert files_of(build(project)) == cold(project, monkeypatch) != first
    assert [path.name for path, when in times(site).items() if before[path] != when] == ["test_ring.py_docs.html"]

    (project / "suite/inner/notes.md").unlink()
    made = cold(project, monkeypatch)
    assert files_of(build(project)) == made
    assert not list(site.rglob("notes*"))

    (site / "book/suite/test_ring.py_docs.html").write_text("edited by somebody")
    (site / "book/suite/inner/doc.html").unlink()
    assert files_of(build(project)) == made

    shutil.rmtree(site)
    assert files_of(build(project)) == made


def test_a_build_that_fails_leaves_the_pages_where_they_were(project):
    """A mistake in a hand-written page ends a strict build, and the stamped pages are back in the site."""
    site = build(project)
    (project / "docs/index.md").write_text("# Mine\n\n[nowhere](nowhere.md)\n")
    assert mkdocs(project, "build", "--strict").returncode != 0
    assert (site / "book/suite/test_ring.py_docs.html").is_file()
    (project / "mkdocs.yml").write_text((project / "mkdocs.yml").read_text() + "\nextra_templates: [none.html]\nhooks: [broken.py]\n")
    (project / "broken.py").write_text("def on_env(env, **_):\n    raise ValueError('broken')\n")
    assert mkdocs(project, "build", "--quiet").returncode != 0
    assert (site / "book/suite/test_ring.py_docs.html").is_file()
    assert not (site / sheltering.ASIDE).exists()


def test_a_site_without_generated_pages_holds_none_of_the_last_build(project):
    """When a project documents no sources any more, nothing is left of their pages, set aside or not."""
    site = build(project)
    assert (site / "book/suite/test_ring.py_docs.html").is_file()
    settings = (project / "pyproject.toml").read_text()
    (project / "pyproject.toml").write_text(re.sub(r"sources = .*", "sources = []", settings))
    shutil.rmtree(project / "docs/book")
    (project / "docs/index.md").write_text("# Mine\n")
    build(project)
    assert not (site / "book").exists()
    assert not (site / sheltering.ASIDE).exists()
    (project / "mkdocs.yml").write_text((project / "mkdocs.yml").read_text().replace("- rankbook\n", "- rankbook:\n    gen: false\n"))
    (project / "pyproject.toml").write_text(settings.replace('["suite"]', '["missing"]'))
    build(project)  # of sources that nobody documents nothing is searched


def test_a_site_that_is_removed_while_it_is_built_is_whole(project, monkeypatch):
    """A hook that clears the folder of the site takes away what waits there, the search too: all of it is made again."""
    build(project)
    (project / "mkdocs.yml").write_text((project / "mkdocs.yml").read_text() + "\nhooks: [clear.py]\n")
    (project / "clear.py").write_text(
        "import shutil\n\ndef on_files(files, config):\n    shutil.rmtree(config.site_dir, ignore_errors=True)\n"
    )
    assert files_of(build(project)) == cold(project, monkeypatch)


def test_dead_links_of_generated_pages_are_told_of(project):
    """A link of a generated page that leads nowhere is a warning, so that a strict build ends; also when nothing has changed since."""
    settings = (project / "mkdocs.yml").read_text()
    (project / "mkdocs.yml").write_text(settings.replace("- rankbook\n", "- rankbook:\n    gen: false\n"))
    generate(project)
    target = project / "docs/book/suite/doc.md"
    text = target.read_text()
    target.write_text(f"{text}\n[a](none.md) [b](test_ring.py_docs.md#__codelineno-source-99) [c](index.md#none) [d](../index.md)\n")
    for _ in range(2):
        done = mkdocs(project, "build", "--strict")
        said = done.stdout + done.stderr
        assert done.returncode == 1
        assert "book/suite/doc.md links to book/suite/none.md, which is not there" in said
        assert (
            f"book/suite/doc.md links to line 99 of book/suite/test_ring.py_docs.md, whose listing has {RING.count(chr(10))} lines" in said
        )
        assert "book/suite/doc.md links to book/suite/index.md#none, which is not there" in said
        assert said.count("links to") == 3
    target.write_text(text)
    build(project)


@pytest.mark.parametrize(
    ("validation", "told", "status"),
    [
        ("", {"none.md": "WARNING", "index.md#none": "INFO"}, 1),
        ("validation:\n  links:\n    not_found: info\n", {"none.md": "INFO", "index.md#none": "INFO"}, 0),
        ("validation:\n  links:\n    not_found: ignore\n    anchors: warn\n", {"index.md#none": "WARNING"}, 1),
    ],
)
def test_a_page_that_is_not_there_is_told_as_the_engine_tells_it(project, linking, validation, told, status):
    """A link to a missing page has the level of missing pages, and one to a missing place that of places, the engine's own by default."""
    settings = (project / "mkdocs.yml").read_text()
    (project / "mkdocs.yml").write_text(re.sub(r"validation:.*?(?=\n\w|\Z)", "", settings, flags=re.DOTALL) + f"\n{validation}")
    linking("[a](none.md) [b](index.md#none)")
    done = mkdocs(project, "build", "--strict")
    found = re.findall(r"(\w+) +-  book/suite/doc.md links to book/suite/(\S+), which is not there", done.stdout + done.stderr)
    assert {place: level for level, place in found} == told, done.stderr
    assert done.returncode == status


def test_dead_links_into_the_book_are_told_of(project):
    """A page that somebody wrote may link to any place of a stamped page, which MkDocs has not built; what is not there is a warning."""
    guide = project / "docs/index.md"
    text, page = guide.read_text(), "book/suite/test_ring.py_docs.md"
    good = ("#L3", "#__codelineno-source-3", "#original-source", "#last-run", "#how-to-run-it", "")
    links = [f"[a]({page}{place})" for place in good] + ["[b](book/index.md#subfolders)", "[c](book/suite/doc.md)"]
    guide.write_text(f"{text}\n{' '.join(links)}\n")
    assert mkdocs(project, "build", "--strict").returncode == 0
    for place in ("#none", "#L999", "#original-sourc"):
        guide.write_text(f"{text}\n{' '.join(links)} [d]({page}{place})\n")
        done = mkdocs(project, "build", "--strict")
        assert done.returncode == 1
        assert f"Doc file 'index.md' contains a link '{page}{place}', but the doc '{page}' does not contain" in done.stderr
        assert done.stderr.count("does not contain") == 1


@pytest.fixture
def linking(project):
    """The project with generated pages that are not made again, and a function that puts a line on one of them."""
    settings = (project / "mkdocs.yml").read_text()
    (project / "mkdocs.yml").write_text(settings.replace("- rankbook\n", "- rankbook:\n    gen: false\n") + "\nnot_in_nav: more.md\n")
    generate(project)
    target = project / "docs/book/suite/doc.md"
    text = target.read_text()
    return lambda line: target.write_text(f"{text}\n{line}\n")


def told_as_dead(project):
    """Build, and give the links that are told to lead nowhere."""
    done = mkdocs(project, "build", "--strict")
    found = re.findall(r"book/suite/doc.md links to (\S+), which is not there", done.stdout + done.stderr)
    assert done.returncode == bool(found), done.stderr
    return found


@pytest.mark.parametrize("name", ["more.md", "more.png"])
def test_a_link_to_what_somebody_takes_away_is_told_of(project, linking, name):
    """A generated page that has not changed and links to a file made by hand, in a note say, is named while that is gone."""
    other = project / "docs" / name
    for _ in range(2):
        other.write_text("# More\n")
        linking(f"[more](../../{name})")
        assert told_as_dead(project) == []
        other.unlink()
        assert told_as_dead(project) == [name]
    assert told_as_dead(project) == [name]
    linking(f"[more](../../{name}) again")
    assert told_as_dead(project) == [name]


@pytest.mark.parametrize("lost", ["state", "spoiled state", "facts", "spoiled facts", "newer facts"])
def test_a_dead_link_is_told_of_whatever_is_lost_of_what_was_kept(project, linking, lost, monkeypatch):
    """What runs leave may be deleted, spoiled, or of two different runs: a dead link is told of all the same, until it is mended."""
    with_own_cache(monkeypatch, project / "cache")
    build(project)
    (facts,) = (project / "cache").rglob("site-*-facts.sqlite")
    state = facts.with_name(facts.name.removesuffix("-facts.sqlite"))
    before = state.read_bytes()
    linking("[a](none.md)")
    assert told_as_dead(project) == ["book/suite/none.md"]
    if lost == "newer facts":  # as a run leaves them that ends in between
        state.write_bytes(before)
    elif "spoiled" in lost:
        (state if "state" in lost else facts).write_bytes(b"no such thing")
    else:
        (state if "state" in lost else facts).unlink()
    assert [told_as_dead(project) for _ in range(2)] == [["book/suite/none.md"]] * 2
    linking("")
    assert told_as_dead(project) == []


def test_hand_written_links_lead_to_lines_of_listings(project):
    """A link of a hand-written page to a line, as it works on pages of the engine, leads to the line's anchor on the stamped page."""
    (project / "docs/index.md").write_text("# Mine\n\n[line](book/suite/test_ring.py_docs.md#__codelineno-source-9)\n")
    site = build(project)
    assert 'href="book/suite/test_ring.py_docs.html#L9"' in (site / "index.html").read_text()
    assert broken_links(site)[1] == []


@pytest.mark.parametrize("theme", ["mkdocs", "readthedocs"])
def test_themes_of_mkdocs(project, theme):
    """With MkDocs' own themes a strict build is clean, every link leads somewhere, and its search does not hold the shell."""
    settings = (project / "mkdocs.yml").read_text()
    start, end = settings.index("\ntheme:"), settings.index("\nuse_directory_urls")
    options = "  highlightjs: false\n" if theme == "mkdocs" else ""
    (project / "mkdocs.yml").write_text(f"{settings[:start]}\ntheme:\n  name: {theme}\n{options}{settings[end:]}")
    site = build(project)
    found = [link for link in broken_links(site)[1] if "search.html" not in link]
    assert found == []
    assert "ankbook first part" not in (site / "search/search_index.json").read_text()
    assert "<i id=L9>" in (site / "book/suite/test_ring.py_docs.html").read_text()


def test_directory_addresses(project):
    """Where each page is the index of a folder of its own, every link of stamped and hand-written pages still leads somewhere."""
    settings = (project / "mkdocs.yml").read_text()
    (project / "mkdocs.yml").write_text(settings.replace("use_directory_urls: false", "use_directory_urls: true"))
    site = build(project)
    assert (site / "book/suite/test_ring.py_docs/index.html").is_file()
    assert [link for link in broken_links(site)[1] if "rankbook-run" not in link] == []


def test_sitemap_names_the_stamped_pages(project):
    """With an address of the site each page stands once in its map, and says itself where it is."""
    (project / "mkdocs.yml").write_text((project / "mkdocs.yml").read_text() + "\nsite_url: https://example.org/s/\n")
    site = build(project)
    named = re.findall(r"<loc>https://example.org/s/(.*?)</loc>", (site / "sitemap.xml").read_text())
    built = [path.relative_to(site).as_posix() for path in site.rglob("*.html") if path.name != "404.html"]
    assert sorted(named) == sorted(["", *built])  # by the front page Material knows where another version of a book begins
    page = (site / "book/suite/test_ring.py_docs.html").read_text()
    assert '<link rel=canonical href="https://example.org/s/book/suite/test_ring.py_docs.html">' in page


def test_neighbours_are_those_of_the_sources(project):
    """Each page of a source leads to the page before and after it, in the order of the sources."""
    site = build(project)
    page, seen = site / "book/suite/.settings/ring.toml_docs.html", []
    while page is not None:
        seen.append(page.name)
        link = re.search(r'<a rel="next" href="([^"]*)"', page.read_text())
        page = (page.parent / link[1]).resolve() if link else None
    assert seen == ["ring.toml_docs.html", "hostile.py_docs.html", "notes.md_docs.html", "test_ring.py_docs.html"]


# After another engine


def stamp(root, *arguments):
    return run_module(root, "rankbook.cli", "stamp", *arguments, environment=environment())


@pytest.fixture
def foreign(project):
    """A site that an engine without our plugin has built of the same pages."""
    generate(project)
    settings = (project / "mkdocs.yml").read_text()
    settings = settings.replace("- rankbook\n", "").replace("- book/\n", "- Book: book/index.md\n")
    settings = re.sub(r"validation:.*?(?=\n\w)", "exclude_docs: '!.settings'", settings, flags=re.DOTALL)
    (project / "mkdocs.yml").write_text(settings)
    (project / "docs/index.md").write_text(
        "# Mine\n\n<!-- rankbook:proof -->\n\n[9](book/suite/test_ring.py_docs.md#__codelineno-source-9)\n"
    )
    assert mkdocs(project, "build", "--quiet").returncode == 0
    return project


def test_stamping_a_site_that_another_engine_has_built(foreign):
    """The generated pages are replaced, style and script are there, every link leads somewhere, and a second time nothing changes."""
    done = stamp(foreign, "--strict")
    assert (done.returncode, done.stderr) == (0, "")
    number = len([*(foreign / "docs/book").rglob("*.md")])
    assert done.stdout == f"{number} generated pages: {number} written, 1 other file written\n"
    site = foreign / "site"
    page = (site / "book/suite/test_ring.py_docs.html").read_text()
    assert shown(page) == RING
    assert "href=../../assets/rankbook.css>" in page
    assert broken_links(site)[1] == []
    assert 'href="book/suite/test_ring.py_docs.html#L9"' in (site / "index.html").read_text()
    before = files_of(site)
    again = stamp(foreign)
    assert ": 0 written" in again.stdout
    assert files_of(site) == before
    assert mkdocs(foreign, "build", "--quiet").returncode == 0
    assert stamp(foreign).returncode == 0
    assert files_of(site) == before


def test_stamping_needs_a_site(project):
    """Without a site, generated pages or a page of the book's index there is one sentence that says what would be right."""
    done = stamp(project)
    assert done.returncode == 2
    assert "there is no built site" in done.stderr
    (project / "site").mkdir()
    assert "run `rankbook gen` first" in stamp(project).stderr
    generate(project)
    done = stamp(project)
    assert (done.returncode, "the site has no page for the index of the book" in done.stderr) == (2, True)
    assert list((project / "site").iterdir()) == []
    assert "there is no folder of pages; name it with --docs-dir" in stamp(project, "--docs-dir", "nowhere").stderr


def test_what_the_plugin_has_built_needs_no_stamp(foreign):
    """A site into which the plugin has put the pages is told from one that waits for them, also where another engine built one before."""
    assert stamp(foreign).returncode == 0
    settings = (foreign / "mkdocs.yml").read_text()
    (foreign / "mkdocs.yml").write_text(settings.replace("plugins:\n", "plugins:\n- rankbook\n", 1))
    assert mkdocs(foreign, "build", "--quiet").returncode == 0
    before = files_of(foreign / "site")
    done = stamp(foreign)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the plugin has put them in when the engine built it; nothing is left to stamp" in done.stderr
    assert files_of(foreign / "site") == before


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("mkdocs.yml", "a: [b\nc: }\n", "mkdocs.yml:2: cannot read the settings of the site: expected ',' or ']', but got ':'"),
        ("mkdocs.yml", "- a\n", "what it holds is no table of settings"),
        ("mkdocs.yml", "site_dir: [a]\n", "site_dir is no text"),
        ("zensical.toml", "[project\n", "cannot read the settings of the site"),
        ("zensical.toml", "project = 3\n", "its `project` is no table of settings"),
    ],
)
def test_settings_that_cannot_be_read_are_one_sentence(project, file, text, said):
    """What is wrong, where, and what would be right, on one line."""
    (project / "mkdocs.yml").unlink()
    (project / file).write_text(text)
    done = stamp(project)
    assert (done.returncode, done.stderr.count("\n"), said in done.stderr) == (2, 1, True), done.stderr


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ('repo-forge = "gitlub"', "setting 'repo-forge' is 'gitlub'; known are github, gitlab,"),
        ('repo-url = "javascript://a/b"', "no browser opens the address in the setting 'repo-url'; write repo-url ="),
    ],
)
def test_a_forge_that_is_none_is_told_of(project, setting, said):
    """A forge that is mistyped leaves no site without its links and without a word."""
    with (project / "pyproject.toml").open("a") as file:
        file.write(f"{setting}\n")
    done = mkdocs(project, "build")
    assert (done.returncode, said in done.stderr, "Traceback" in done.stderr) == (1, True, False), done.stderr


def test_settings_are_those_of_the_project(project):
    """The folder of the site and of the pages are read from the engine's settings, whatever tags those hold."""
    from rankbook.told_engines import told

    (project / "mkdocs.yml").write_text(
        "site_name: x\nsite_dir: public\ndocs_dir: pages\nuse_directory_urls: false\nx: !!python/name:a.b\ny: !ENV [A, b]\n"
    )
    found = told(project)
    assert (found.docs_dir, found.site_dir, found.directories) == ("pages", "public", False)
    assert load(project).out == "docs/book"
