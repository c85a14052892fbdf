"""Text of sources on pages: filters, fences, links, packs."""

import html
import os
import posixpath
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import jinja2
import markdown
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markupsafe import Markup

from rankbook import TemplateError
from rankbook.config import Settings, load
from rankbook.document import document
from rankbook.embedding import Embedded, embed
from rankbook.freshness import cache_folder
from rankbook.harness import kind_of
from rankbook.languages import LANGUAGES
from rankbook.listing import Listing
from rankbook.markers import PROOF_MARKER, PROOF_NOTE
from rankbook.model import Definition, Folder, Heading, Keyword, Module, Source
from rankbook.pages import check_pack, pack_folders
from rankbook.pages.entries import Entry, entries_by_kind
from rankbook.pages.executed import is_executed
from rankbook.pages.fence import check, fence, source_fence
from rankbook.pages.names import Links
from rankbook.pages.packs import environment, fill
from rankbook.pages.text import code, first_sentence, link_title, one_line, plural, size, summary, table, text, url
from rankbook.pages.titles import distinct, title

EXTENSIONS = ["tables", "attr_list", "toc", "admonition", "pymdownx.superfences", "pymdownx.details", "pymdownx.highlight"]
HOSTILE = st.text(alphabet=st.one_of(st.sampled_from("|`*_[]()<>&#!:{}~^=$\\/-+.1 \n\t\"'@ax"), st.characters()), max_size=60)


def cells(page: str) -> list[list[str]]:
    """Give the plain words of each cell of each row of a rendered table."""
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    return [
        [html.unescape(re.sub(r"<[^>]*>", "", cell)).strip() for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL)]
        for row in rows
    ]


def site(page: str) -> str:
    """Render as the site does."""
    return markdown.markdown(page, extensions=EXTENSIONS)


def forge(page: str) -> str:
    """Render as a forge does."""
    return MarkdownIt("commonmark").enable("table").render(page)


@pytest.mark.parametrize("render", [site, forge])
@given(said=HOSTILE)
@settings(deadline=None, max_examples=150)
def test_prose_in_a_table_stays_one_cell_of_plain_words(render, said):
    """Whatever a docstring says, its cell shows those words, and nothing of them becomes Markdown or HTML."""
    said = said.replace("`", "'")
    page = render(f"| a | b |\n|---|---|\n| x {text(said)} | y |\n")
    assert cells(page) == [["a", "b"], [one_line(f"x {said}"), "y"]]
    assert not re.search(r"<(?!/?(?:table|thead|tbody|tr|th|td)\b)", page)


@pytest.mark.parametrize("render", [site, forge])
@given(said=HOSTILE)
@settings(deadline=None, max_examples=150)
def test_prose_as_a_paragraph_stays_a_paragraph(render, said):
    """Whatever a docstring says, at the start of a line it is one paragraph of those words."""
    said = said.replace("`", "'")
    page = render(f"{text(said)}\n")
    wanted = one_line(said)
    assert html.unescape(re.sub(r"</?p>|\n", "", page)).strip() == wanted
    assert page.count("<") == (2 if wanted else 0)


@pytest.mark.parametrize("render", [site, forge])
@given(said=HOSTILE)
@settings(deadline=None, max_examples=150)
def test_code_in_a_table_stays_one_cell_of_code(render, said):
    """Whatever a name is, its cell shows it as code, letter for letter."""
    page = render(f"| a | b |\n|---|---|\n| {code(said)} | y |\n")
    assert cells(page) == [["a", "b"], [one_line(said) or "empty", "y"]]
    assert not re.search(r"<(?!/?(?:table|thead|tbody|tr|th|td|code|em)\b)", page)


@pytest.mark.parametrize("blank", [" ", "\n", "\n" * 400])
def test_long_code_is_cut(blank):
    """A page shows the start of a value that is kept whole, and says that there is more; blanks do not count."""
    assert code(f"f(1,{blank}2)") == "`f(1, 2)`"
    assert str(code(f"f(1,{blank}" + "2, " * 5_000)) == "`f(1, " + "2, " * 78 + "2 …`"


@given(path=st.text(alphabet=st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_an_address_has_no_characters_that_end_a_link(path):
    """Whatever a file is called, its address is one word without brackets or quotes."""
    assert re.fullmatch(r"[A-Za-z0-9%/._~-]+", url(path))


@given(data=st.binary(max_size=300) | st.text(alphabet="`~\n\r\f\t#a", max_size=60).map(str.encode))
def test_a_fence_holds_every_text_exactly(data):
    """No text can end its fence, and what stands between the fence's lines is the text."""
    embedded = embed(data)
    if isinstance(embedded, Embedded) and embedded.text:
        listing = source_fence(embedded.text, "python")
        first, _, rest = listing.partition("\n")
        ticks = re.match("`+", first)[0]
        assert first == ticks + ' python {#source linenums="1"}'.replace(" ", "", 1)
        assert rest == f"{embedded.text}{ticks}\n"
        assert ticks not in embedded.text


def test_a_listing_changed_by_a_template_is_refused():
    """A template that shows the listing twice, indented or not at all is told so."""
    listing = fence("x\n", "python")
    check(f"a\n\n{listing}\nb", listing, "p.md", Path("file.md.jinja"))
    for page in ("a\n", f"a\n{listing}\n{listing}", f"a\n {listing}"):
        with pytest.raises(TemplateError, match=r"file\.md\.jinja: the template does not show .* on the page p\.md"):
            check(page, listing, "p.md", Path("file.md.jinja"))


@given(cells_=st.lists(st.tuples(st.just(""), HOSTILE, st.sampled_from(["", "x"]), HOSTILE), max_size=4))
@settings(deadline=None, max_examples=100)
def test_a_table_keeps_what_its_rows_say_and_no_empty_column(cells_):
    """A column stands in a table exactly if a row says something in it, and every cell that is kept is unchanged."""
    written = [[str(text(first)), str(code(second)), third, str(text(fourth))] for first, second, third, fourth in cells_]
    lines = [["a", "b", "c", "d"], ["---"] * 4, *written]
    made = table("\n" + "\n\n".join(f"| {' | '.join(line)} |" for line in lines))
    kept = [index for index in range(4) if any(row[index] for row in written)]
    assert [line[2:-2].split(" | ") for line in made.splitlines()] == [[line[index] for index in kept] or [""] for line in lines]


def file(path, language="python", *headings):
    return Module(Source(path, 1, "", language, ""), headings=tuple(Heading(1, said, 1) for said in headings))


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (file("t/test_all_reduce.py"), "All reduce"),
        (file("t/test_c10d_nccl.py"), "c10d NCCL"),
        (file("t/test_fsdp2_cpu_offload.py"), "FSDP2 CPU offload"),
        (file("t/test_2d.py"), "2D"),
        (file("t/store_test.py"), "Store"),
        (file("t/tests.py"), "Tests"),
        (file("t/test_.py"), "Test"),
        (file("t/_utils.pyi"), "Utils"),
        (file("t/__main__.py"), "Main"),
        (file("t/_shard/__init__.py"), "Package _shard"),
        (file("__init__.py"), "Package"),
        (file("t/_.py"), "_"),
        (file("t/été-2.py"), "Été 2"),
        (file("t/build.sh", "bash"), "build.sh"),
        (file("t/notes.md", "markdown", "Notes on **the** [ring](x.md)", "More"), "Notes on the ring"),
        (file("t/notes.md", "markdown", "Use `dist.barrier`"), "Use dist.barrier"),
        (file("t/notes.md", "markdown", "<img> here"), "notes.md"),
        (file("t/notes.md", "markdown", "word " * 20), "notes.md"),
        (file("t/notes.md", "markdown"), "notes.md"),
        (file("t/README.md", "markdown", "The suite"), "README"),
        (file("LICENSE", "text"), "LICENSE"),
    ],
)
def test_a_file_has_a_title_that_a_reader_scans(module, expected):
    """Python files are titled by the words of their names, documents by their first heading, and all others by their names."""
    assert title(module) == expected


def test_files_that_would_share_a_title_are_called_by_their_names():
    """Two files of one folder never have one title."""
    modules = [file("a/test_store.py"), file("a/store.py"), file("a/rank.py")]
    found = distinct({module.source.path: title(module) for module in modules})
    assert found == {"a/test_store.py": "test_store.py", "a/store.py": "store.py", "a/rank.py": "Rank"}


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
def test_what_counts_as_executed_is_what_the_harness_starts(language):
    """A page has a last run for exactly those languages for which the harness starts something."""
    listing = Listing(page="p.md", name="x", language=language.fences[0], options={}, text="x\n", line=1, first_line=2)
    assert bool(kind_of(listing).entry) == is_executed(listing.language, listing.text)


@pytest.mark.parametrize(
    ("written", "executed"),
    [
        ("# Words\n", False),
        ("```python\nx\n```\n", True),
        ("~~~~ {.python ranks=2}\nx\n~~~~\n", True),
        ("1. - > ```sh\n", True),
        ("```text\nx\n```\n", False),
        ("```python {.no-run}\nx\n```\n", False),
        ("Say ```python``` inline\n", False),
        ("", False),
    ],
)
def test_a_document_is_executed_when_it_holds_a_listing_that_is(written, executed):
    """A Markdown file has a last run if one of its fences is of a language that is executed."""
    assert is_executed("markdown", written) is executed


@pytest.mark.parametrize(
    ("said", "first"),
    [
        ("One. Two.", "One."),
        ("Of e.g. this\n    kind! More", "Of e.g. this kind!"),
        ("No end\n\nNext paragraph.", "No end"),
        ("Version 2.6.0 is it. Yes.", "Version 2.6.0 is it."),
        ("", ""),
        (None, ""),
        ("1. Everything is in order. More.", "1. Everything is in order."),
        ("a) First. Second.", "a) First."),
        (".. deprecated:: 3.5\n\n   Use something else.\n", ""),
        (".. deprecated:: 3.5\n   Use something else.\n\nAll ranks. Of all nodes.", "All ranks."),
        ("******\nLayout\n******\n\nOf graphs. And more.", "Of graphs."),
        ("Layout\n------\nOf graphs. And more.", "Of graphs."),
        ("======\nLayout\n======", "Layout"),
        ("Reduces ...\n\nMore.", "Reduces ..."),
        ("Layout\n======\n\n.. currentmodule:: a\n\n    x.\n\nOf graphs.", "Of graphs."),
    ],
)
def test_the_first_sentence_is_found(said, first):
    """A sentence ends at a full stop before a space, not at one within a number or an abbreviation."""
    assert first_sentence(said) == first


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("See the [guide](https://x.y/z). More.", "See the guide."),
        ("![logo](a.png)", ""),
        ("- [One](#one)\n- [Two](#two)", ""),
        ("| a | b |", ""),
        ("1. First", ""),
        ("**Bold** words", "Bold words"),
    ],
)
def test_the_summary_of_a_markdown_file_is_plain_words(said, shown):
    """Links of a first paragraph are their words, and a list, a table or an image is no summary."""
    assert summary(said, is_markdown=True) == shown


def test_a_long_summary_shows_that_it_goes_on():
    """What is too long for a table ends at a word, with an ellipsis."""
    assert summary("word " * 100, is_markdown=False) == "word " * 59 + "word …"


def test_backticks_in_a_docstring_become_code():
    """What a docstring puts into single or double backticks is code on the page."""
    assert text("use ``a*b`` or `c`") == "use `a*b` or `c`"


def test_only_what_starts_a_line_is_escaped_for_it():
    """A character that begins a list, a heading or a definition at the start of a line is left alone behind it."""
    assert [text("- a"), text("1. a"), text("`a`: b"), text("a - b")] == ["&#45; a", "&#49;&#46; a", "`a`: b", "a - b"]


def test_sizes_and_numbers_read_well():
    """Sizes have bytes and a short form, numbers their unit in singular or plural."""
    assert [size(1), size(512), size(3571), size(5 * 1024**2)] == [
        "1 byte",
        "512 bytes",
        "3,571 bytes (3.49 KB)",
        "5,242,880 bytes (5.00 MB)",
    ]
    assert [plural(1, "class", "classes"), plural(1234, "file")] == ["1 class", "1,234 files"]


def test_what_a_template_prints_without_a_filter_is_escaped():
    """A pack that forgets a filter still cannot turn a docstring into HTML."""
    made = environment(pack_folders(Settings())).from_string("{{ x }} {{ y }} {{ x | code }}")
    assert made.render(x="<b>*a*", y=Markup("<!-- c -->")) == r"&lt;b&gt;\*a\* <!-- c --> `<b>*a*`"


def test_links_between_folders_are_relative():
    """A link climbs and descends from the folder of the page that it stands on."""
    links = Links("a/b/x.py_docs.md", "a/b/x.py", frozenset({"a/empty.py"}))
    assert links.line(3) == "[line 3](#__codelineno-source-3)"
    assert links.line(3, "a/y z.py") == "[`y z.py:3`](../y%20z.py_docs.md#__codelineno-source-3)"
    assert links.line(3, "a/empty.py") == "[`empty.py:3`](../empty.py_docs.md)"
    assert links.index("") == "../../index.md"
    assert links.subtree("a/b/c") == "c/sub.md"
    assert links.trail("a/b", "Our *suite*") == r"[Our \*suite\*](../../index.md) / [a](../index.md) / [b](index.md) / "


PART = st.text(alphabet="ab`| [](){}%#ä", min_size=1, max_size=5)
PATH = st.lists(PART, min_size=1, max_size=4).map("/".join)


@given(page=PATH, target=PATH, line=st.integers(1, 10**6))
@settings(deadline=None)
def test_an_address_is_the_shortest_way_from_the_page_to_the_other(page, target, line):
    """Whatever folders are called, a link climbs as far as it must and no further, and its label says the name and the line."""
    links = Links(f"{page}_docs.md", page, frozenset())
    way = posixpath.relpath(f"/{target}_docs.md", posixpath.dirname(f"/{page}_docs.md"))
    assert links.file(target) == quote(way)
    if target != page:
        name = target.rpartition("/")[2]
        assert links.line(line, target) == f"[{code(f'{name}:{line}')}]({quote(way)}#__codelineno-source-{line})"
    assert links.line(0, target).endswith(f"]({quote(way)})")


def test_what_holds_a_keyword_stands_in_the_order_of_its_lines():
    """The second line is that of the second class, whatever the classes are called."""
    uses = [Keyword("method", "forward", line, scope) for scope, line in (("Zeta", 2), ("Mid", 10), ("Alpha", 6), ("Zeta", 12))]
    assert entries_by_kind(uses) == {"method": (Entry("method", "forward", (2, 6, 10, 12), ("Zeta", "Alpha", "Mid")),)}


@given(name=HOSTILE.filter(str.strip), lines=st.lists(st.integers(1, 999), min_size=1, max_size=3), scopes=st.lists(PART, max_size=2))
@settings(deadline=None)
def test_rows_of_keywords_are_what_a_template_would_print(name, lines, scopes):
    """A row that is written in one piece is the row that a loop over the facts gives."""
    entries = [Entry("call", name, tuple(lines), tuple(scopes))]
    links = Links("x.py_kw.md", "x.py", frozenset())
    loop = (
        "{% for entry in entries %}- {{ entry.name | code }}: {% for line in entry.lines %}{{ links.line(line) }}"
        "{% if not loop.last %}, {% endif %}{% endfor %}{% if entry.scopes %} in {{ entry.scopes | listed }}{% endif %}\n\n{% endfor %}"
    )
    pack = environment(pack_folders(Settings()))
    values = {"entries": entries, "links": links}
    assert pack.from_string("{{ entries | keyword_rows(links) }}").render(values) == pack.from_string(loop).render(values)


@given(
    kind=HOSTILE.filter(str.strip),
    name=HOSTILE.filter(str.strip),
    docstring=st.none() | HOSTILE,
    line=st.integers(1, 999),
    depth=st.integers(0, 3),
)
@settings(deadline=None)
def test_rows_of_definitions_are_what_a_template_would_print(kind, name, docstring, line, depth):
    """Words, names and docstrings of a source are escaped in rows as a template escapes them."""
    values = {"all": [Definition(kind, name, name, line, line, depth, docstring)], "links": Links("x.c_docs.md", "x.c", frozenset())}
    loop = (
        "{% for each in all %}{{ '    ' * each.depth }}- {{ each.kind }} {{ each.name | code }}, {{ links.line(each.line) }}"
        "{% set said = each.docstring | sentence %}{% if said %} — {{ said }}{% endif %}\n\n{% endfor %}"
    )
    pack = environment(pack_folders(Settings()))
    expected = pack.from_string(loop.replace("{{ '    ' * each.depth }}", "    " * depth)).render(values)
    assert pack.from_string("{{ all | definition_rows(links) }}").render(values) == expected


def test_a_line_of_a_file_without_a_listing_is_not_linked():
    """Where the site has no anchor, no link leads to it."""
    assert Links("e_docs.md", "e", frozenset({"e"})).line(2) == "line 2"


@pytest.mark.parametrize("pack", ["rankbook", "repository", "repo-book"])
def test_the_packs_that_come_with_rankbook_are_whole(pack):
    """All five templates of each pack can be read."""
    check_pack(pack_folders(Settings(pack=pack)))


def test_an_unknown_pack_is_refused_with_the_known_ones(tmp_path):
    """The sentence names the packs that there are, own ones too."""
    (tmp_path / "templates/mine").mkdir(parents=True)
    with pytest.raises(TemplateError, match=r"no template pack 'none'.*known packs are mine, rankbook, repo-book, repository"):
        pack_folders(Settings(root=tmp_path, pack="none"))


@pytest.mark.parametrize("pack", ["../rankbook", "", "_shared", "."])
def test_a_pack_is_a_name_not_a_path(tmp_path, pack):
    """A pack's name cannot lead out of the folder of packs, and shared templates are no pack."""
    with pytest.raises(TemplateError, match="no template pack"):
        pack_folders(Settings(root=tmp_path, pack=pack))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("line\n{% if %}", r"index\.md\.jinja:2: broken template"),
        ("\n\n{{ folder.nothing }}", r"index\.md\.jinja:3: broken template: .*nothing"),
        ("{{ 1 / 0 }}", r"index\.md\.jinja:1: broken template: division by zero"),
        ("{{ nobody }}", r"index\.md\.jinja:1: broken template: 'nobody' is undefined"),
        ("{% include 'gone.md.jinja' %}", r"index\.md\.jinja:1: there is no template 'gone\.md\.jinja'"),
    ],
)
def test_a_broken_template_is_named_with_its_line(tmp_path, broken, message):
    """An error in a project's own template says which file and line, and what is wrong."""
    own = tmp_path / "templates/rankbook"
    own.mkdir(parents=True)
    (own / "index.md.jinja").write_text(broken)
    with pytest.raises(TemplateError, match=message):
        fill(pack_folders(Settings(root=tmp_path)), "index", folder=Folder(""))


def test_environment_is_strict():
    """A misspelt name in a template is an error, never an empty place."""
    assert environment(pack_folders(Settings())).undefined is jinja2.StrictUndefined


def test_own_templates_come_first(tmp_path):
    """A single template of the project overrides that of the pack; the others stay."""
    own = tmp_path / "templates/rankbook"
    own.mkdir(parents=True)
    folders = pack_folders(Settings(root=tmp_path))
    assert [Path(folder).name for folder in folders] == ["rankbook", "rankbook", "_shared"]
    assert Path(folders[0]) == own


RING = '''
import unittest

import pytest


class TestRing(unittest.TestCase):
    def test_token(self):
        """The token comes back."""

    def test_token_twice(self):
        """And again."""


@pytest.mark.parametrize("size", ["1", "a b", "c'd"])
def test_size(size):
    pass


@pytest.mark.parametrize("one", [1])
def test_one(one):
    pass


if __name__ == "__main__":
    unittest.main()
'''
MADE = """
from torch.testing._internal.common_utils import TestCase, instantiate_parametrized_tests, parametrize, run_tests


class TestMade(TestCase):
    @parametrize("x", [1, 2])
    def test_a(self, x):
        pass

    @parametrize("x", [1, 2])
    def test_a_longer(self, x):
        pass


instantiate_parametrized_tests(TestMade)

if __name__ == "__main__":
    run_tests()
"""


def gen(root: Path, files: dict[str, str], **more) -> Path:
    """Document a project; give the folder of its pages."""
    for path, content in files.items():
        (root / "s" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "s" / path).write_text(content)
    document(load(root, {"sources": ("s",), "out": "out", "jobs": 1, "findings": (), **more}))
    return root / "out"


def test_a_page_that_is_called_like_a_section_of_it_leads_to_the_section(tmp_path):
    """The title has the section's own anchor then, and the section the next one."""
    text = "import pytest, torch\n\n@pytest.mark.skipif(torch.cuda.device_count() < 2, reason='two')\ndef test_x(): pass\n"
    out = gen(tmp_path, {"test_what_it_needs.py": text, "test_other.py": text})
    texts = [(out / f"s/{name}.py_docs.md").read_text() for name in ("test_what_it_needs", "test_other")]
    found = [markdown.markdown(text, extensions=[*EXTENSIONS, "toc"]) for text in texts]
    assert ['href="#what-it-needs_1"' in page and 'id="what-it-needs_1"' in page for page in found] == [True, False]
    assert 'href="#what-it-needs"' in found[1]


def commands(page: str) -> dict[str, str]:
    """Give the command of each test on a page, as a reader sees it who points at the test's name."""
    made = MarkdownIt("commonmark").enable("table").render(page)
    found = re.findall(r'<a href="[^"]*" title="([^"]*)"><code>([^<]*)</code></a>', made)
    return {html.unescape(name): html.unescape(title) for title, name in found}


def collected(command: str, root: Path) -> list[str]:
    """Run a command of a page in a shell, but let pytest only collect; give the node ids."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        f"{command} --collect-only -q -p no:cacheprovider",
        shell=True,
        cwd=root,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]


COLLECTS = """
import shlex, sys, pytest

for command in sys.argv[1:]:
    word, *words = shlex.split(command)
    assert word == "pytest"
    print("=== a command")
    assert pytest.main([*words, "--collect-only", "-q", "-p", "no:cacheprovider"]) == 0
"""


def collected_by_one(commands, root: Path) -> list[list[str]]:
    """Do so for several commands in one interpreter, which imports torch once; give the node ids of each."""
    done = subprocess.run([sys.executable, "-c", COLLECTS, *commands], cwd=root, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    parts = done.stdout.split("=== a command\n")[1:]
    return [[line.partition("::")[2] for line in part.splitlines() if "::" in line] for part in parts]


def test_each_test_has_the_command_that_runs_it_alone(tmp_path):
    """What a row's command collects are the tests of the row: one, or the variants of one function."""
    out = gen(tmp_path, {"test_ring.py": RING})
    found = commands((out / "s/test_ring.py_docs.md").read_text())
    assert found.keys() == {"test_token", "test_token_twice", "test_size", "test_one[1]"}
    assert {name: collected(command, tmp_path) for name, command in found.items()} == {
        "test_token": ["TestRing::test_token"],
        "test_token_twice": ["TestRing::test_token_twice"],
        "test_size": ["test_size[1]", "test_size[a b]", "test_size[c'd]"],
        "test_one[1]": ["test_one[1]"],
    }


def test_variants_with_names_of_their_own_are_run_without_those_of_a_longer_name(tmp_path):
    """Tests that are made of one function have no node id in common; the command chooses them by their name."""
    if find_spec("torch") is None:
        pytest.skip("needs torch")
    out = gen(tmp_path, {"test_made.py": MADE})
    page = (out / "s/test_made.py_docs.md").read_text()
    found = commands(page)
    assert found["test_a"] == "pytest s/test_made.py::TestMade -k 'test_a and not test_a_longer'"
    assert dict(zip(found, collected_by_one(found.values(), tmp_path), strict=True)) == {
        "test_a": ["TestMade::test_a_x_1", "TestMade::test_a_x_2"],
        "test_a_longer": ["TestMade::test_a_longer_x_1", "TestMade::test_a_longer_x_2"],
    }
    assert "- as a script:" not in page  # unittest's own `-k` has no `and not`


def test_a_page_tells_how_one_test_is_run(tmp_path):
    """The commands run the test from its source, as a script and from the page; a main guard that runs no tests is no script of tests."""
    plain = "def test_it():\n    pass\n\n\nif __name__ == '__main__':\n    print('no test')\n"
    out = gen(tmp_path, {"a b/test_ring.py": RING, "test_plain.py": plain})
    page = (out / "s/a b/test_ring.py_docs.md").read_text()
    ways = dict(re.findall(r"^- (from its source|as a script|from this page)[^:]*: `(.*)`$", page, re.MULTILINE))
    assert ways == {
        "from its source": "pytest 's/a b/test_ring.py::TestRing::test_token'",
        "as a script": "python 's/a b/test_ring.py' TestRing.test_token",
        "from this page": "pytest --doctest-glob='*.md' test_ring.py_docs.md::TestRing::test_token",
    }
    for way, command in ways.items():
        folder = out / "s/a b" if way == "from this page" else tmp_path
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(command, shell=True, cwd=folder, env=environment, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert re.search(r"\b1 passed|Ran 1 test", done.stdout + done.stderr)
    assert "as a script" not in (out / "s/test_plain.py_docs.md").read_text()


@pytest.mark.parametrize("render", [site, forge])
@given(said=HOSTILE)
@settings(deadline=None, max_examples=150)
def test_a_title_of_a_link_is_shown_letter_for_letter(render, said):
    """Whatever a node id holds, pointing at the link in a table's cell shows it, and the link and the cell end where they should."""
    page = render(f"| a | b |\n|---|---|\n| [`x`](#y {link_title(f'x {said}')}) | z |\n")
    assert cells(page) == [["a", "b"], ["x", "z"]]
    assert html.unescape(re.search(r'<a href="#y" title="([^"]*)"><code>x</code></a>', page)[1]) == one_line(f"x {said}")


NEEDS = """
import unittest

import torch
from torch.testing._internal.common_distributed import MultiProcessTestCase, requires_nccl, skip_if_lt_x_gpu


class TestRing(MultiProcessTestCase):
    world_size = 2

    @requires_nccl()
    @skip_if_lt_x_gpu(4)
    def test_many(self):
        pass

    @unittest.skipIf(BROKEN, "broken")
    def test_few(self):
        pass
"""


SLOW = """\
import os

import pytest


@pytest.mark.slow
def test_slow():
    pass


@pytest.mark.skip("broken")
def test_off():
    pass


@pytest.mark.skipif(os.environ.get("TOKEN") is None, reason="no")
def test_luck():
    pass
"""


def test_what_a_file_needs_stands_at_its_top(tmp_path):
    """One line before the first heading says the number of tests and what all and some of them need, and leads to the evidence."""
    out = gen(
        tmp_path,
        {
            "test_needs.py": NEEDS,
            "test_none.py": "def test_it():\n    pass\n",
            "test_off.py": "import pytest\n\n\n@pytest.mark.skip('no')\ndef test_it():\n    pass\n",
            "test_slow.py": SLOW,
            "test_third.py": "import x\ndef test_it(): pass\n",
            "test_marked.py": "import pytest\n\n\n@pytest.mark.optional\ndef test_a(): pass\n\n\ndef test_b(): pass\n",
        },
    )
    names = ("needs", "none", "off", "slow", "third", "marked")
    tops = {name: (out / f"s/test_{name}.py_docs.md").read_text().partition("\n## ")[0].split("\n\n") for name in names}
    assert tops["needs"][-1].strip() == (
        "**2 tests**: each needs world size 2; some need 4 GPUs and backend nccl; 1 condition may skip some "
        "([what says so](#what-it-needs))."
    )
    assert tops["slow"][-1].strip() == "**3 tests**: 1 condition may skip some; 1 is disabled ([what says so](#what-it-needs))."
    assert tops["off"][-1].strip() == "**1 test**: it is disabled ([what says so](#what-it-needs))."
    assert tops["none"][-1].strip() == "**1 test**: nothing is needed beyond Python."
    assert tops["third"][-1].strip() == "**1 test**: no requirement was found."
    described = "**2 tests**: no requirement was found, only what describes them ([what says so](#what-it-needs))."
    assert tops["marked"][-1].strip() == described


TREE = {
    "root.py": "class Root:\n    pass\n",
    "base.py": "from root import Root\n\n\nclass Base(Root):\n    pass\n\n\nclass Mixin:\n    pass\n",
    "test_near.py": (
        "import unittest\n\nfrom base import Base, Mixin\n\n\nclass Near(Base, Mixin, Unknown):\n    pass\n\n\n"
        "class Below(Near):\n    class Inner(Near):\n        pass\n\n\nclass Alone(unittest.TestCase):\n    pass\n"
    ),
    "test_far.py": "import test_near\n\n\nclass Far(test_near.Below):\n    pass\n",
}


def test_the_tree_of_classes_leads_up_and_down(tmp_path):
    """Bases of the book are linked and others named, classes stand below their first base, subclasses of other files below them."""
    out = gen(tmp_path, TREE)
    page = (out / "s/test_near.py_docs.md").read_text()
    assert re.search(r"## Class tree\n\n(.*?)\n\n##", page, re.DOTALL)[1].splitlines() == [
        "- `Base` in [`s/base.py`](base.py_docs.md), further up `Root` in [`s/root.py`](root.py_docs.md)",
        "    - **`Near`**, [line 6](#__codelineno-source-6), also from `Mixin` in [`s/base.py`](base.py_docs.md), `Unknown`",
        "        - **`Below`**, [line 10](#__codelineno-source-10)",
        "            - `Far` in [`s/test_far.py`](test_far.py_docs.md#__codelineno-source-4)",
        "        - **`Below.Inner`**, [line 11](#__codelineno-source-11)",
    ]
    assert "## Class tree" in (out / "s/root.py_docs.md").read_text()


@pytest.mark.parametrize("pack", ["rankbook", "repository", "repo-book"])
def test_a_base_class_says_where_its_tests_run(tmp_path, pack):
    """A file whose tests only others run says so; one that has its own, or tests that nobody inherits, does not."""
    base = "class Base:\n" + "\n".join(f"    def {name}(self):\n        pass\n" for name in ("test_one", "test_two", "helper"))
    lone = "class Lone:\n    def test_one(self):\n        pass\n"
    heir = "import unittest\n\nfrom base import Base\n\n\nclass TestHeir(Base, unittest.TestCase):\n    pass\n"
    out = gen(tmp_path, {"base.py": base, "lone.py": lone, "test_heir.py": heir}, pack=pack)
    said = "Its 2 tests can run only from other files, which inherit or import their classes"
    link = " ([class tree](#class-tree))" if pack == "rankbook" else ""
    assert f"\n\n{said}{link}.\n" in (out / "s/base.py_docs.md").read_text()
    assert "which inherit" not in (out / "s/lone.py_docs.md").read_text()
    assert "which inherit" not in (out / "s/test_heir.py_docs.md").read_text()


@pytest.mark.parametrize("pack", ["rankbook", "repository", "repo-book"])
@pytest.mark.parametrize("path", ["test_far.py", "base.py", "root.py", "test_other.py"])
def test_an_edit_elsewhere_makes_what_it_shows_on_anew(tmp_path, path, pack):
    """A subclass or a call that comes, moves or goes in another file changes the pages that tell of it, as a run from nothing would."""
    use = "import numpy.ring\n\n\ndef test_it():\n    numpy.ring.turn()\n"
    files = {**TREE, "test_use.py": use, "test_other.py": use}
    edits = ("", "# a line\n", "class Base:\n    pass\n", None)
    out = gen(tmp_path, files, pack=pack)
    assert "numpy.ring.turn" in (out / "s/test_use.py_docs.md").read_text().partition("API index")[0]
    for edit in edits:
        file = tmp_path / "s" / path
        file.unlink() if edit is None else file.write_text(edit + (files[path] if edit.startswith("#") else ""))
        gen(tmp_path, {}, pack=pack)
        made = {page.relative_to(out): page.read_bytes() for page in out.rglob("*.md")}
        document(load(tmp_path, {"sources": ("s",), "out": "cold", "jobs": 1, "findings": (), "pack": pack}))
        assert made == {page.relative_to(tmp_path / "cold"): page.read_bytes() for page in (tmp_path / "cold").rglob("*.md")}
        shutil.rmtree(tmp_path / "cold")
        shutil.rmtree(cache_folder(load(tmp_path, {"out": "cold"})), ignore_errors=True)


def test_where_an_api_is_tested_elsewhere(tmp_path):
    """Other test files that call what the tests call are named, the nearest first; what everybody calls and tools of tests are not."""
    use = "import pytest\nimport ring\n\n\ndef test_it():\n    ring.{}()\n    ring.everybody()\n    pytest.importorskip('x')\n"
    files = {f"{folder}/test_{count}.py": use.format("turn") for folder in "abc" for count in range(2)}
    files |= {f"d/test_{count}.py": use.format("other") for count in range(30)} | {"a/tool.py": "import ring\nring.turn()\n"}
    page = (gen(tmp_path, files) / "s/b/test_1.py_docs.md").read_text()
    rows = re.search(r"## Where else it is tested\n\n(.*?)\n\n", page, re.DOTALL)[1].splitlines()[2:]
    shown = {"b/test_0.py": "", "a/test_0.py": "../a/", "test_1.py": "../a/", "c/test_0.py": "../c/"}
    links = ", ".join(f"[`{label}`]({folder}{label.rpartition('/')[2]}_docs.md)" for label, folder in shown.items())
    assert rows == [f"| `ring.turn` | 1 | {links} and 1 more file |"]


@pytest.mark.parametrize("pack", ["rankbook", "repository", "repo-book"])
def test_folders_with_tests_have_a_place_for_their_proof(tmp_path, pack):
    """The marker stands once on the index of each folder with tests below, on a line of its own behind its note, and nowhere else."""
    out = gen(tmp_path, {"a/test_it.py": "def test_it(): pass\n", "b/x.py": "x = 1\n"}, pack=pack)
    assert {page.relative_to(out).as_posix() for page in out.rglob("*.md") if PROOF_MARKER in page.read_text()} == {
        "index.md", "s/index.md", "s/a/index.md"}  # fmt: skip
    assert (out / "s/index.md").read_text().count(f"\n\n{PROOF_NOTE}\n\n{PROOF_MARKER}\n\n") == 1
