"""Page text → listings: the cases in `cases/listings`, the site's set-up, and the doors of the room."""

from __future__ import annotations

import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path

import pytest
from mkdocs.utils import meta

from rankbook import front_matter
from rankbook.embedding import embed
from rankbook.errors import ConfigError, PageError
from rankbook.listing import Listing
from rankbook.listings import OPTIONS, Site, collect, collect_text, site_of

CASES = sorted((Path(__file__).parent / "cases" / "listings").glob("*.md"))
MENDED = Path(__file__).parent / "cases" / "listings" / "page-of-a-page-with-a-short-fence.md"
"""The one case in which the listings are, on purpose, others than those of the site."""
SEPARATOR = "\n======== listings ========\n"
UPDATE = bool(os.environ.get("RANKBOOK_UPDATE_CASES"))
SITE = Site()
TABS = Site(extensions={**SITE.extensions, "pymdownx.superfences": {"preserve_tabs": True}})
"""The other way in which superfences takes fences: before whitespace is normalized."""
SITES = pytest.mark.parametrize("site", [SITE, TABS], ids=["usual", "preserve_tabs"])
NOT_RENDERED = "the site does not render this fence"


class Highlighted(HTMLParser):
    """Reads the text of every highlighted block off a page that the site's own Markdown has rendered."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._divs = 0
        self._block: int | None = None
        self._in_code = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag == "div":
            self._divs += 1
            if self._block is None and "fenced" in (dict(attrs).get("class") or "").split():
                self._block = self._divs
                self.texts.append("")
        self._in_code = self._in_code or (tag == "code" and self._block is not None)

    def handle_endtag(self, tag):
        if tag == "div":
            self._block = None if self._block == self._divs else self._block
            self._divs -= 1
        self._in_code = self._in_code and tag != "code"

    def parse_comment(self, i, report=1):
        # A browser ends a comment at `-->` and at the end of the page only, `HTMLParser` of Python 3.11 at `-- >` too and never there.
        end = re.compile("--!?>").search(self.rawdata, i + 2)
        return end.end() if end else len(self.rawdata)

    def handle_data(self, data):
        if self._in_code:
            self.texts[-1] += data


def plain(text: str) -> str:
    """Give a listing's text without what rendering changes: tabs, line ends, spaces at line ends, outer empty lines."""
    text = re.sub(r"\r\n?", "\n", text).expandtabs(4)
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def rendered_texts(text: str, site: Site = SITE) -> list[str]:
    """Give the listings' texts on a page as the site's own Markdown, with Pygments, renders them, in alphabetical order.

    A class of their own tells them from indented code, which is highlighted too.
    """
    fenced = {**site.extensions["pymdownx.superfences"], "css_class": "fenced"}
    md, _ = Site(site.config, {**site.extensions, "pymdownx.superfences": fenced}).markdown()
    return sorted(plain(block) for block in Highlighted(md.convert(text)).texts)


def shown_texts(listings: tuple[Listing, ...]) -> list[str]:
    """Give the texts of the listings that the site is said to render as such, in alphabetical order."""
    return sorted(plain(listing.text) for listing in listings if not (is_refused(listing) or listing.custom))


def is_refused(listing: Listing) -> bool:
    """Tell whether a listing stands for a line that is none: a fence that is not rendered, or hidden lines without a listing."""
    problem = listing.problem or ""
    return NOT_RENDERED in problem or (not listing.text and re.search(r"the comment at line|these hidden lines", problem) is not None)


def described(listings: tuple[Listing, ...], indent: str = "") -> str:
    """Print listings as the cases hold them."""
    return "".join(f"{indent}{line}\n" for listing in listings for line in _described(listing))


def _described(listing: Listing):
    yield f"line {listing.line}: {listing.language or '(none)'}, {listing.name}"
    if listing.heading:
        yield f"  heading: {listing.heading}"
    if listing.options:
        yield f"  options: {', '.join(f'{key}={value!r}' for key, value in listing.options.items())}"
    if listing.about:
        yield f"  about: {listing.about.source}, {listing.about.size} bytes"
    if listing.custom:
        yield "  custom"
    if listing.problem:
        yield f"  problem: {listing.problem}"
    if listing.output_of:
        yield f"  output of: {listing.output_of}"
    for output in listing.outputs:
        yield f"  output: line {output.line}, {output.first_line}, rank {output.rank or '(all)'}, {output.text!r}"
    yield from (f"  {line:3}: {text}".rstrip() for line, text in listing.hidden)
    yield from (f"  {listing.first_line + number:3}| {line}".rstrip() for number, line in enumerate(listing.text.splitlines()))
    yield from described(listing.children, "  ").splitlines()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_case(case: Path, tmp_path: Path):
    """A page gives the listings that its case says, each with its line, name, options, text, children and problem."""
    page, _, expected = case.read_bytes().decode().partition(SEPARATOR)
    path = tmp_path / "page.md"
    path.write_bytes(page.encode())
    found = described(collect(path, "page.md", SITE))
    if UPDATE:
        case.write_bytes(f"{page}{SEPARATOR}{found}".encode())
    assert found == expected or UPDATE


@pytest.mark.parametrize("case", [case for case in CASES if case != MENDED], ids=lambda case: case.stem)
def test_case_agrees_with_the_rendered_page(case: Path):
    """The listings of each case are those that superfences with Pygments renders, in number and in text."""
    page = case.read_bytes().decode().partition(SEPARATOR)[0].removeprefix("\ufeff")
    listings = collect_text(page, "page.md", SITE)
    body, _ = meta.get_data(page)
    assert shown_texts(listings) == rendered_texts(body)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_lines_end_as_python_markdown_sees_them(end: str):
    """Positions count LF, CR LF and a lone CR, and no form feed or Unicode line separator; the text keeps its own line ends."""
    lines = ["# Title", "", "a\fb\vc\u2028d\u0085e", "", "```python", "x = '\f \v \u2028 \u0085'", "\ty", "```", ""]
    (listing,) = collect_text(end.join(lines), "p.md", SITE)
    assert (listing.line, listing.first_line) == (5, 6)
    assert listing.text == f"x = '\f \v \u2028 \u0085'{end}\ty{end}"


def test_tabs_of_an_indented_fence():
    """In an indented fence the prefix goes column by column, and a tab that only begins in it leaves its other columns."""
    (listing,) = collect_text('=== "Tab"\n\n\t```python\n\tif x:\n\t\ty\n\n      z\n\t```\n', "p.md", SITE)
    assert listing.text == "if x:\n\ty\n\n  z\n"
    (listing,) = collect_text("  ```python\n\tx\n  ```\n", "p.md", SITE)
    assert listing.text == "  x\n"
    (listing,) = collect_text("> \t```python\n> \tx\n> \t\ty\n> \t```\n", "p.md", SITE)
    assert listing.text == "x\n\ty\n"


def test_marks_do_not_show():
    """A refused fence that the site takes for a heading has that heading as it stands on the page, and a name without marks."""
    page = "```python ranks=2\n---\n\n~~~python\nx\n~~~\n"
    refused, listing = collect_text(page, "p.md", SITE)
    assert NOT_RENDERED in refused.problem
    assert listing.heading == "```python ranks=2"
    assert listing.name == "python-ranks2"


def test_warnings_of_an_extension_leave_it_in(tmp_path: Path, monkeypatch):
    """An extension that warns is used, although warnings are errors in this run."""
    (tmp_path / "warning_extension.py").write_text(
        "import warnings\nfrom markdown.extensions.sane_lists import makeExtension as make\nwarnings.warn('old', DeprecationWarning)\n\n\n"
        "def makeExtension(**settings):\n    warnings.warn('old')\n    return make(**settings)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    site = _site(tmp_path, "markdown_extensions: [pymdownx.superfences, warning_extension]")
    assert site.left_out == ()


def test_a_page_about_a_file_without_its_listing():
    """A page that is about a file and shows no listing of it has its other listings, about nothing."""
    page = "# Documentation: `a.py`\n\n- **Path**: `a.py`\n- **Size**: 0 bytes\n\n## Testing\n\n```bash\npytest\n```\n"
    (listing,) = collect_text(page, "p.md", SITE)
    assert listing.about is None


def test_a_refused_source_is_about_its_file():
    """A source whose fence the site does not render is still the source's listing, with the reason why the site does not show it."""
    page = page_of(b"x = 1\n").replace('{#source linenums="1"}', "linenums=1")
    (listing,) = collect_text(page, "p.md", SITE)
    assert listing.about is not None
    assert "its options stand without braces; write ```python {linenums=1}" in listing.problem
    assert listing.data() == b"x = 1\n"


def test_a_fence_that_cannot_be_mended():
    """A source that the site breaks off for another reason than a short fence has one problem, and collecting ends."""
    page = page_of(b"x = 1\n").replace("```python", "    ```python").replace("x = 1\n```", "    x = 1\n    ```\n\n```text\nx = 1\n```")
    (listing,) = collect_text(page, "p.md", SITE)
    assert listing.line == page.split("\n").index("```text") + 1


def test_names_are_stable():
    """Lines and listings of other headings that come above a listing do not change its name."""
    page = "## Use\n\n```python\na\n```\n\n```python\nb\n```\n"
    names = [listing.name for listing in collect_text(page, "p.md", SITE)]
    later = [listing.name for listing in collect_text("# New\n\n```text\nx\n```\n\nWords.\n\n" + page, "p.md", SITE)]
    assert names == ["use", "use-2"]
    assert later == ["new", "use", "use-2"]


def test_chosen_name_comes_first():
    """A name that a fence chooses is kept even when an earlier listing would have got it from its heading."""
    page = "## Use\n\n```python\na\n```\n\n```python {name=use}\nb\n```\n"
    assert [listing.name for listing in collect_text(page, "p.md", SITE)] == ["use-2", "use"]


def test_unreadable_pages(tmp_path: Path):
    """A page that is missing, or is not UTF-8, is a PageError that names the page, and the line of the bad byte."""
    with pytest.raises(PageError, match=r"^p\.md: cannot read the page"):
        collect(tmp_path / "missing.md", "p.md")
    (tmp_path / "bad.md").write_bytes(b"# T\n\n\xff\n")
    with pytest.raises(PageError, match=r"^p\.md:3: the page is not UTF-8; save it as UTF-8"):
        collect(tmp_path / "bad.md", "p.md")


def test_markdown_that_fails_is_a_page_error(tmp_path: Path):
    """A page on which an extension of the site fails is a PageError with the extension's own words."""
    site = _site(tmp_path, "markdown_extensions: [pymdownx.superfences, pymdownx.snippets: {check_paths: true}]")
    with pytest.raises(PageError, match=r"missing\.txt"):
        collect_text('--8<-- "missing.txt"\n', "p.md", site)


def _site(folder: Path, text: str) -> Site:
    (folder / "mkdocs.yml").write_text(text, encoding="utf-8")
    (folder / "docs").mkdir(exist_ok=True)
    return site_of(folder / "docs" / "p.md")


def test_site_is_that_of_the_nearest_configuration(tmp_path: Path):
    """Pages below one mkdocs.yml share a site; without the admonition extension an indented fence is no listing."""
    site = _site(tmp_path, "markdown_extensions:\n  - pymdownx.superfences\n")
    assert site_of(tmp_path / "docs" / "deep" / "p.md") is site
    page = "!!! note\n\n    ```python\n    x\n    ```\n"
    assert len(collect_text(page, "p.md", SITE)) == 1
    assert collect_text(page, "p.md", site) == ()


def test_changed_configuration_is_read_again(tmp_path: Path):
    """A site is set up anew after its mkdocs.yml has changed."""
    before = _site(tmp_path, "markdown_extensions: [pymdownx.superfences]\n")
    os.utime(tmp_path / "mkdocs.yml", ns=(1, 1))
    assert site_of(tmp_path / "docs" / "p.md") is not before


def test_configuration_tags_and_parents(tmp_path: Path, monkeypatch):
    """`!!python/name:`, `!ENV`, `!relative` and INHERIT are read; what cannot be imported is left out and named."""
    monkeypatch.setenv("RANKBOOK_TEST_DEPTH", "3")
    (tmp_path / "base.yml").write_text(
        "markdown_extensions:\n  toc: {toc_depth: !ENV [NO_SUCH_VARIABLE, RANKBOOK_TEST_DEPTH, 6]}\n  pymdownx.superfences: {}\n"
    )
    site = _site(
        tmp_path,
        "INHERIT: base.yml\nplugins: [search: {x: !unknown y}]\nmarkdown_extensions:\n  no_such_extension: {}\n"
        "  toc: {slugify: !!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}, permalink: !!python/name:no_such.name }\n"
        "  pymdownx.snippets: {base_path: [!relative $config_dir/docs]}\n",
    )
    assert site.extensions["toc"]["toc_depth"] == 3
    assert site.extensions["toc"]["slugify"]("A B", "-") == "a-b"
    assert site.extensions["pymdownx.snippets"]["base_path"] == [str(tmp_path / "docs")]
    assert len(site.left_out) == 2
    assert "permalink" in site.left_out[0] or "permalink" in site.left_out[1]
    assert any("no_such_extension" in sentence for sentence in site.left_out)
    assert len(collect_text("```python\nx\n```\n", "p.md", site)) == 1


@pytest.mark.parametrize("text", ["markdown_extensions: [", "markdown_extensions: 3", "site_name: x"])
def test_wrong_configuration(tmp_path: Path, text: str):
    """A mkdocs.yml that is no YAML, has no list of extensions, or lacks superfences is a ConfigError that names the file."""
    with pytest.raises(ConfigError, match=r"mkdocs\.yml"):
        collect_text("```python\nx\n```\n", "p.md", _site(tmp_path, text))


CUSTOM = """markdown_extensions:
  - attr_list
  - pymdownx.superfences:
      custom_fences:
        - name: mermaid
          class: mermaid
          format: !!python/name:pymdownx.superfences.fence_code_format
        - name: other
          class: other
          format: !!python/name:no_such.format
          validator: !!python/name:no_such.validator
"""


def test_custom_fences_are_marked(tmp_path: Path):
    """A fence that a formatter of the site renders is marked as custom and has no problem, whatever its language and options."""
    page = "```mermaid\ngraph TD\n```\n\n```{.other size=3}\nx\n```\n\n```python\nx\n```\n"
    listings = collect_text(page, "p.md", _site(tmp_path, CUSTOM))
    assert [(listing.language, listing.custom, listing.problem) for listing in listings] == [
        ("mermaid", True, None),
        ("other", True, None),
        ("python", False, None),
    ]


def test_default_language(tmp_path: Path):
    """On a site with a default language a fence that names none is in that language."""
    site = _site(tmp_path, "markdown_extensions: [pymdownx.superfences, pymdownx.highlight: {default_lang: Python}]")
    (listing,) = collect_text("```\nx\n```\n", "p.md", site)
    assert (listing.language, listing.problem) == ("python", None)


def test_relaxed_headers(tmp_path: Path):
    """Where the site takes any header, options that it passes over are a problem, never a listing run without them."""
    site = _site(tmp_path, "markdown_extensions: [pymdownx.superfences: {relaxed_headers: true}]")
    (listing,) = collect_text("```python ranks=2\nx\n```\n", "p.md", site)
    assert listing.language == "python"
    assert listing.problem == "the site passes over 'ranks=2'; write options in braces: {ranks=2}"


def test_options_without_attr_list(tmp_path: Path):
    """Options are read from the fence itself, so a site without attr_list has them too."""
    site = _site(tmp_path, "markdown_extensions: [pymdownx.superfences]")
    (listing,) = collect_text("```python {ranks=2 .no-run}\nx\n```\n", "p.md", site)
    assert listing.options == {"no-run": "", "ranks": "2"}


@pytest.mark.parametrize("tabs", ["true", "false"])
def test_positions_when_other_preprocessors_change_the_lines(tmp_path: Path, tabs: str):
    """Lines that a snippet brings in do not move the positions of those that stand on the page, and they belong to the text."""
    fences = f"pymdownx.superfences: {{preserve_tabs: {tabs}}}"
    site = _site(tmp_path, f"markdown_extensions: [{fences}, pymdownx.snippets: {{base_path: docs}}]")
    (tmp_path / "docs" / "part.py").write_text("one\ntwo\n")
    page = '--8<-- "part.py"\n\n```python\n--8<-- "part.py"\n\tthree\n```\n\n```python\n```\n\n```python\nfour\n```\n'
    listings = collect_text(page, "p.md", site)
    assert shown_texts(listings) == rendered_texts(page, site)
    assert [(listing.line, listing.first_line, listing.text) for listing in listings] == [
        (3, 4, "one\ntwo\n\n\tthree\n"),
        (8, 9, ""),
        (11, 12, "four\n"),
    ]


def test_empty_fences_on_a_site_that_preserves_tabs():
    """Fences without a line in them do not move the positions of what stands below them."""
    listings = collect_text("```python\n```\n```python\n```\n\n```python\nx\n```\n", "p.md", TABS)
    assert [(listing.line, listing.text) for listing in listings] == [(1, ""), (3, ""), (6, "x\n")]


def test_every_option_is_in_the_table():
    """The table holds each option once, and the sentence about an unknown option names them all."""
    names = [option.name for option in OPTIONS]
    (listing,) = collect_text("```python {rnks=2}\nx\n```\n", "p.md", SITE)
    assert len(names) == len(set(names))
    assert listing.problem is not None
    assert listing.problem.startswith("unknown option 'rnks'; did you mean 'ranks'? known are ranks, init,")
    assert all(name in listing.problem for name in names)


OPTION_ROWS = [
    ("python {ranks=2}", None),
    ('python {ranks="2,4"}', None),
    ("{.python ranks=2 .no-run #here data-x=1 .narrow}", None),
    ('python title="a" linenums="1" hl_lines="1 3-4"', None),
    ('{.python title="a" title_mode=html}', None),
    ("{.text .no-run}", None),
    ('bash {timeout=1.5 skip="no network" name=first-step}', None),
    ("bash {.norun}", "class '.norun' is nearly an option; write .no-run, or give the class another name"),
    ("bash {.No_Run}", "class '.No_Run' is nearly an option; write .no-run"),
    ("text {.Output}", "class '.Output' is nearly an option; write .output"),
    ("bash {.shared .outputs}", None),
    ("python {session=}", "option 'session' is empty; write a name that can stand in a node id, such as first-step"),
    ("python {ranks=0}", "option 'ranks' is '0'"),
    ('python {ranks="2,x"}', "option 'ranks' is '2,x'"),
    ("python {.ranks}", "write ranks=value instead of .ranks"),
    ("bash {ranks=2}", "has no meaning on a bash listing; it belongs on python listings"),
    ("python {timeout=-1}", "option 'timeout' is '-1'"),
    ("python {timeout=inf}", "option 'timeout' is 'inf'"),
    ('python {skip=" "}', "option 'skip' gives no reason"),
    ("python {no-run}", "option 'no-run' is a class; write .no-run"),
    ("python {name=a::b}", "option 'name' holds '::'"),
    ('python {name="a b"}', "option 'name' holds ' '"),
    ("python {name=a[1]}", "option 'name' holds '['"),
    ("python {hl_lines=x}", "option 'hl_lines' is 'x'"),
    ("python {linenums=x}", "option 'linenums' is 'x'"),
    ("python {title=x title_mode=bold}", "option 'title_mode' is 'bold'"),
    ("python {onclick=x}", "unknown option 'onclick'; known are"),
    ("pyton", "unknown language 'pyton'; did you mean 'python'?"),
    ("{ranks=2}", "names no language"),
]


@pytest.mark.parametrize(("header", "problem"), OPTION_ROWS, ids=[row[0] for row in OPTION_ROWS])
def test_options(header: str, problem: str | None):
    """A right option is taken; a wrong one is a problem that names the option, the value and what would be right."""
    (listing,) = collect_text(f"```{header}\nx\n```\n", "p.md", SITE)
    assert (listing.problem is None) == (problem is None)
    assert (problem or "") in (listing.problem or "")


def page_of(data: bytes, path: str = "pkg/x.py", fence: str = "") -> str:
    """Make the page of a source as rankbook does: front matter, heading, and a fence longer than any run of backticks."""
    embedded = embed(data)
    fence = fence or "`" * max(3, *(len(run) + 1 for run in re.findall("`+", embedded.text)), 3)
    stamp = front_matter.Stamp("file", path, path, len(data), embedded.embedding.sha256, embedded.embedding)
    head = f"{front_matter.write(stamp)}\n# {path}\n\n## Original Source\n\n"
    return f'{head}{fence}python {{#source linenums="1"}}\n{embedded.text}{fence}\n'


def test_page_of_rankbook_gives_its_source():
    """The listing of a generated page is about its source, is named after it and gives back its bytes."""
    data = b"\xef\xbb\xbfx = 1\r\ny = '```'\r"
    (listing,) = collect_text(page_of(data), "p.md", SITE)
    assert (listing.name, listing.about.source, listing.problem) == ("x.py", "pkg/x.py", None)
    assert listing.data() == data


def test_source_of_another_size_is_a_problem():
    """A listing that does not give back as many bytes as its page says is a problem."""
    page = page_of(b"x = 1\n").replace("x = 1\n", "x = 12\n")
    (listing,) = collect_text(page, "p.md", SITE)
    assert listing.problem == "the page says that pkg/x.py has 6 bytes, but its listing holds 7; generate the page again"


def test_short_fence_of_a_source_is_mended():
    """A source whose own fence ends its listing early is given whole, with a problem that says where the site ends it."""
    data = b'"""Doc.\n\n```\nx\n```\n"""\ny = 1\n'
    (listing,) = collect_text(page_of(data, fence="```"), "p.md", SITE)
    assert listing.data() == data
    assert listing.problem.startswith(f"the site ends this listing at line {listing.first_line + 2}, 5 lines before its source does")


def test_pages_within_pages():
    """A listing in a page in a page keeps its place on the outermost page, and each page in between is about its own file."""
    inner = page_of(b"x = 1\n", "a.py", "```")
    middle = page_of(inner.encode(), "a.py_docs.md", "````").replace("python {", "markdown {", 1)
    outer = page_of(middle.encode(), "a.py_docs.md_docs.md", "`````")
    (first,) = collect_text(outer, "p.md", SITE)
    (second,) = first.children
    (third,) = second.children
    assert [listing.name for listing in (first, second, third)] == ["a.py_docs.md_docs.md", "a.py_docs.md", "a.py"]
    assert outer.split("\n")[third.first_line - 1] == "x = 1"
    assert third.data() == b"x = 1\n"


def test_pages_in_threads(tmp_path):
    """Pages that several threads read at once give the listings that each gives alone: one Markdown serves a whole site."""
    pages = []
    for number in range(12):
        pages.append(tmp_path / f"page{number}.md")
        pages[-1].write_text("".join(f"# {number}.{part}\n\n```python\nx = {number}\n```\n\n" for part in range(20 + number)))
    alone = [[listing.text for listing in collect(page, page.name)] for page in pages]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(6) as threads:
            together = list(threads.map(lambda page: [listing.text for listing in collect(page, page.name)], pages * 6))
    finally:
        sys.setswitchinterval(interval)
    assert together == alone * 6
