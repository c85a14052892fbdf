"""Listings as HTML: their text is the source, each line is whole, tokens have the right class, and no text takes more than linear time."""

from __future__ import annotations

import gc
import html
import re
import signal
import sys
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rankbook.languages import LANGUAGES, by_path
from rankbook.site.assets import style
from rankbook.site.highlight import highlighted, version
from rankbook.site.tokens import TABLES, others
from rankbook.site.tokens.table import escaped

REPOSITORY = Path(__file__).parents[1]
MARKUP = re.compile(
    r"<i(?: id=L[1-9]\d*)?>|<i class=[a-z][a-z0-9]*>|<(?:b|em|var)>|<u(?: id=L[1-9]\d*)?>|</(?:b|em|i|u|var)>"
    r'|<bdi class="rankbook-hidden" title="U\+[0-9A-F]{4,6}">|</bdi>'
    r"|<span style=--before:\d+>|</span>"
)
ALIKE = {
    "b": "k kd kn kp kr kt nd ni nl nt ow",
    "i": "cpf l s s1 s2 sb sc si ss",
    "u": "c c1 ch cm cs sd",
    "em": "il m mb mf mh mi mo",
    "var": "nb",
    "": "bp kc",
}
"""Classes that have one colour, by what stands for them; the last ones have that of names."""
SEEN = {name: written for written, names in ALIKE.items() for name in names.split()}
LIMIT = 0.75
"""CPU seconds that a text of `LENGTH` characters never takes: it takes hundredths, and more than one where time is quadratic."""
LENGTH = 20_000
FRAGMENTS = re.findall(
    "[^ \n]+",
    """\
" ' ` \"\"\" ''' f" f' {x {{ } rb" R"( R"a( )a" /* */ // # \\ ( ) [ ] { } < > & <a <!-- --> <![CDATA[ ]]> <script> </script>
- | : ; = , . @ $ ${ $( % ! * ** _ + -- === --- ``` ~~~ .. :: :a: a b1 _c if match case class def from import type in True null
0 1.5e3 0x 9. <<A A #[[ &lt; &amp; é 𝔘 ٣ \u202e \x00 \x85 \u2028 \ud800 \ufeff \x0b #include <x> #define >>> ... +++ diff
""",
)
texts = st.lists(
    st.sampled_from([*FRAGMENTS, "\n", "\n\n", "\t", " ", "    ", "\r", "\r\n", "\f", "\\\n"]) | st.text(max_size=4), max_size=60
).map("".join)
names = st.sampled_from([language.name for language in LANGUAGES])
tables = st.sampled_from(sorted(TABLES))


class Text(HTMLParser):
    """The text that a page shows, read as a browser reads it."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.read = ""
        self.feed(page.replace("\r\n", "\n").replace("\r", "\n").replace("\0", ""))
        self.close()

    def handle_data(self, data):
        self.read += data


def text_of(page):
    """The text of HTML that was written by the highlighter; whatever is no markup of its own fails."""
    left = MARKUP.sub("", page)
    assert "<" not in left
    assert ">" not in left
    return Text(f"<pre><code>{page}</code></pre>").read


def shown(text):
    """The text that HTML can hold."""
    return re.sub("[\0\ud800-\udfff]", "\ufffd", text)


def lines_of(text):
    return text.count("\n") + (not text.endswith("\n"))


def tokens(text, language):
    """The coloured tokens of a text, each with the class of the innermost element around it: a keyword is `b`, a string `i`."""
    found, opened = [], []
    for end, element, name, token in re.findall(r"<(/?)(b|em|i|u|var)(?: class=(\w+))?>|([^<]+)", highlighted(text, language)):
        if token and opened:
            is_escape = opened[-1] == "b" and "i" in opened
            found.append(("se" if is_escape else opened[-1], html.unescape(token)))
        elif end:
            opened.pop()
        elif element:
            opened.append(name or element)
    return found


def seen(expected):
    """Tokens as they are seen: all keywords alike, all strings alike."""
    return [(SEEN.get(name, name), token) for name, token in expected if SEEN.get(name, name)]


@contextmanager
def at_most(seconds):
    """Fail when the block takes more CPU time; the garbage of other tests is not looked for meanwhile."""

    def fail(*_):
        raise AssertionError(f"more than {seconds} CPU seconds")

    gc.disable()
    before = signal.signal(signal.SIGVTALRM, fail)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        gc.enable()


@settings(max_examples=300, deadline=None)
@given(texts, names)
def test_the_text_of_the_html_is_the_source(text, name):
    assert text_of(highlighted(text, name)) == shown(text)


@settings(max_examples=300, deadline=None)
@given(texts, names)
def test_each_line_is_whole_by_itself_and_has_its_anchor(text, name):
    page = highlighted(text, name, anchors=True)
    assert text_of(page) == shown(text)
    lines = page.removesuffix("\n").split("\n")
    assert len(lines) == max(lines_of(text), 1)
    for number, line in enumerate(lines, 1):
        assert re.match(rf"<[iu] id=L{number}>", line)
        assert line.endswith(f"</{line[1]}>")
        opened = []
        for end, tag in re.findall(r"<(/?)(b|em|i|u|var|bdi)\b", line):
            assert opened or tag == line[1]
            if end:
                assert opened.pop() == tag
            else:
                opened.append(tag)
        assert opened == []


@pytest.mark.parametrize("number", [999, 1000, 1001, 1250, 1251])
@pytest.mark.parametrize("end", ["\n", ""], ids=["ended", "open"])
def test_a_long_listing_comes_in_stretches(number, end):
    """Each says how many lines stand before it; the text is the source all the same, and each line has its anchor."""
    text = "\n".join(f'x = "{each}"  # \u202e' if each % 7 else '"""' for each in range(number)) + end
    page = highlighted(text, "python", anchors=True)
    assert text_of(page) == text
    told = [int(before) for before in re.findall(r"<span style=--before:(\d+)>", page)]
    assert told == ([*range(0, number, 250)] if number > 1000 else [])
    assert "contain-intrinsic-height: auto 250lh" in style(), "the style sheet keeps as much room as a stretch takes"
    for before, part in zip(told, page.split("<span ")[1:], strict=True):
        assert [int(line) for line in re.findall(r"<[iu] id=L(\d+)>", part)] == [*range(before + 1, min(before + 250, number) + 1)]
    lines = re.sub(r"<span style[^>]*>|</span>", "", page).removesuffix("\n").split("\n")
    assert len(lines) == number
    assert all(line.startswith((f"<i id=L{each}>", f"<u id=L{each}>")) for each, line in enumerate(lines, 1))


@settings(max_examples=300, deadline=None)
@given(texts, tables)
def test_texts_of_ascii_are_read_like_others(text, name):
    html = escaped(text.encode("ascii", "replace").decode())
    table = TABLES[name]
    assert table.spans(html) == table.pattern.sub(table._write, html)


@settings(max_examples=100, deadline=None)
@given(texts, names)
def test_anchors_add_nothing_but_anchors(text, name):
    apart = re.sub(r"<u id=(L\d+)>(.*?)</u>(?=\n|\Z)", r"<i id=\1><u>\2</u></i>", highlighted(text, name, anchors=True))
    assert re.sub(r"<i id=L\d+>(.*?)</i>(?=\n|\Z)", r"\1", apart) == highlighted(text, name)


@pytest.mark.parametrize("suffixes", [(".py",), (".md", ".toml", ".yml", ".json", ".css", ".js", ".jinja", ".txt", "")])
def test_the_files_of_this_repository_come_out_as_they_are(suffixes):
    paths = [
        path for folder in ("src", "tests", "docs", "benchmarks") for path in sorted((REPOSITORY / folder).rglob("*")) if path.is_file()
    ]
    read = 0
    for path in paths:
        if path.suffix in suffixes and path.stat().st_size < 400_000 and "__pycache__" not in path.parts:
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            read += 1
            page = highlighted(text, by_path(path.name).name, anchors=True)
            assert html.unescape(MARKUP.sub("", page)) == shown(text), path
    assert read > 5


def test_every_language_and_every_word_of_a_fence_is_taken():
    text = 'a = "b" # <c> & d\n'
    for language in LANGUAGES:
        for word in (language.name, *language.fences):
            assert text_of(highlighted(text, word)) == text
    assert highlighted(text, "no such language") == 'a = "b" # &lt;c&gt; &amp; d\n'


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer of CPU time")
@pytest.mark.parametrize("name", sorted({id(table): name for name, table in TABLES.items()}.values()))
def test_time_is_linear_for_what_is_opened_and_never_closed(name):
    TABLES[name].pattern, TABLES[name].ascii_pattern
    units = [
        *FRAGMENTS,
        'f"{',
        "f\"{'",
        'R"a(R"b(',
        "<a '",
        '"$(',
        '"$("',
        "=/[",
        "`${`",
        "a:",
        "x::y",
        "<<A",
        "a (",
        "[a](",
        "key: |\n ",
        "- - ",
        '"\\',
    ]
    for unit in units:
        with at_most(LIMIT):
            highlighted(unit * (LENGTH // len(unit)), name)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer of CPU time")
@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from([*FRAGMENTS, "\n", " ", "\\\n"]), min_size=1, max_size=6).map("".join), tables)
def test_time_is_linear_for_what_is_repeated(unit, name):
    TABLES[name].pattern, TABLES[name].ascii_pattern
    with at_most(LIMIT):
        highlighted(unit * (LENGTH // 2 // len(unit)), name)


PYTHON = {
    "x = 1  # a": [("mi", "1"), ("c1", "# a")],
    "def f(): pass": [("k", "def"), ("nf", "f"), ("k", "pass")],
    "async  def  g(a: int = None): return not a": [
        ("k", "async"), ("k", "def"), ("nf", "g"), ("nb", "int"), ("kc", "None"), ("k", "return"), ("ow", "not"),
    ],
    "class A(ValueError):": [("k", "class"), ("nc", "A"), ("ne", "ValueError")],
    "from a.b import c as d": [("kn", "from"), ("nn", "a.b"), ("kn", "import"), ("k", "as")],
    "yield from e": [("k", "yield"), ("kn", "from")],
    "@a.b(1)\ndef f(): a @ b": [("nd", "@a.b"), ("mi", "1"), ("k", "def"), ("nf", "f")],
    "self.print(print)": [("bp", "self"), ("nb", "print")],
    "'a' \"b\" b'c' Rb\"\\\"": [("s1", "'a'"), ("s2", '"b"'), ("s1", "b'c'"), ("s2", 'Rb"\\"')],
    "'a\\n\\q\\x41'": [("s1", "'a"), ("se", "\\n"), ("s1", "\\q"), ("se", "\\x41"), ("s1", "'")],
    "r'a\\n'": [("s1", "r'a\\n'")],
    "'open\nx = 'a'": [("s1", "'open"), ("s1", "'a'")],
    "'a\\\nb' 1": [("s1", "'a\\"), ("s1", "b'"), ("mi", "1")],
    '"""doc"""\nx = """a\n\nb""" + \'c\'': [("sd", '"""doc"""'), ("s2", '"""a'), ("s2", 'b"""'), ("s1", "'c'")],
    'f(\n    """a""",\n)': [("s2", '"""a"""')],
    '"""never\nclosed': [("sd", '"""never'), ("sd", "closed")],
    "f'{a!r:>{w}} {{b}}' + 'c'": [("s1", "f'{"), ("s1", "} {{b}}'"), ("s1", "'c'")],
    'f"{x["a"]}" + 1': [("s2", 'f"{'), ("s2", '"a"'), ("s2", '}"'), ("mi", "1")],
    "f\"{'}'}\" + 1": [("s2", 'f"{'), ("s1", "'}'"), ("s2", '}"'), ("mi", "1")],
    'f"{f"{1}"}" # c': [("s2", 'f"{'), ("s2", 'f"{1}"'), ("s2", '}"'), ("c1", "# c")],
    'f"{x:\'>10}", 2': [("s2", 'f"{x:\'>10}"'), ("mi", "2")],
    'f"{unclosed" + 3': [("s2", 'f"{unclosed"'), ("mi", "3")],
    'f"""{a\n+ 1}"""; 2': [("s2", 'f"""{'), ("mi", "1"), ("s2", '}"""'), ("mi", "2")],
    "match x:\n    case 1: pass": [("k", "match"), ("k", "case"), ("mi", "1"), ("k", "pass")],
    "match = 1; case.x; re.match(y)": [("mi", "1")],
    "match(a, b)": [],
    "type X = int; type(a)": [("k", "type"), ("nb", "int"), ("nb", "type")],
    "0x_FF 1_0.5e-3j 1..real 3 .bit_length": [("mi", "0x_FF"), ("mi", "1_0.5e-3j"), ("mi", "1"), ("mi", "3")],
    "amp & lt < gt > 1": [("mi", "1")],
    "naïve = 'é'": [("s1", "'é'")],
}  # fmt: skip
OTHERS = {
    ("cpp", "#include <a/b.h> // c\nint main() { return 0; }"): [
        ("cp", "#include "), ("cpf", "<a/b.h>"), ("cp", " "), ("c1", "// c"), ("kt", "int"), ("nf", "main"), ("k", "return"), ("mi", "0"),
    ],
    ("cpp", "#define A(x) \\\n  f(x)\nB"): [("cp", "#define A(x) \\"), ("cp", "  f(x)")],
    ("cpp", 'auto s = R"x(a)" b)x" + "c\\n" + u8\'d\';'): [
        ("k", "auto"), ("s", 'R"x(a)" b)x"'), ("s", '"c'), ("se", "\\n"), ("s", '"'), ("sc", "u8'd'"),
    ],
    ("c", "/* a\n * b */ x = 1'000u + 0x1p-3f;"): [("cm", "/* a"), ("cm", " * b */"), ("mi", "1'000u"), ("mi", "0x1p-3f")],
    ("cuda", "__global__ void f(int* a) { a[threadIdx.x] = 1; }"): [
        ("k", "__global__"), ("kt", "void"), ("nf", "f"), ("kt", "int"), ("nb", "threadIdx"), ("mi", "1"),
    ],
    ("yaml", "a: 1 # b\n- c d: 'e: f'\n- on"): [("nt", "a"), ("mi", "1"), ("c1", "# b"), ("nt", "c d"), ("s1", "'e: f'"), ("kc", "on")],
    ("yaml", "run: |\n  # no comment\n  a: b\n\n  c\nd: e"): [
        ("nt", "run"), ("s", "  # no comment"), ("s", "  a: b"), ("s", "  c"), ("nt", "d")],
    ("yaml", "-a: b\n- - c-d: e\n-\tf: g"): [("nt", "-a"), ("nt", "c-d"), ("nt", "f")],
    ("json", '{"a": ["b", 1.5, true]}'): [("nt", '"a"'), ("s", '"b"'), ("mi", "1.5"), ("kc", "true")],
    ("toml", '[a."b"] # c\nd.e = """f\n"""\ng = 2026-01-01'): [
        ("k", '[a."b"]'), ("c1", "# c"), ("na", "d.e"), ("s2", '"""f'), ("s2", '"""'), ("na", "g"), ("mi", "2026-01-01"),
    ],
    ("ini", "[a]\n; b\nc d = 1 # e"): [("k", "[a]"), ("c1", "; b"), ("na", "c d"), ("mi", "1"), ("c1", "# e")],
    ("bash", 'for a in "$(f "${b}")"; do\n  C=1 echo $a#x # d\ndone'): [
        ("k", "for"), ("k", "in"), ("s2", '"$(f "'), ("nv", "${b}"), ("s2", '")"'), ("k", "do"), ("nv", "C"), ("mi", "1"), ("nb", "echo"),
        ("nv", "$a"), ("c1", "# d"), ("k", "done"),
    ],
    ("bash", "cat <<'EOF' > x\n# 'no\nEOF\necho"): [("s", "# 'no"), ("nb", "echo")],
    ("bash", "pytest test/test_a.py; time.sh; test -d a; set-up"): [("nb", "test")],
    ("console", "$ ls 'a'\n'b\n> c"): [("gp", "$ "), ("s1", "'a'"), ("go", "'b"), ("gp", "> ")],
    ("pycon", ">>> f('a')\n'a'\n... 1"): [("gp", ">>> "), ("s1", "'a'"), ("go", "'a'"), ("gp", "... "), ("mi", "1")],
    ("cmake", 'if(A AND "${B}")\n  set(C [=[d]]]=]) # e'): [
        ("k", "if"), ("ow", "AND"), ("s2", '"'), ("nv", "${B}"), ("s2", '"'), ("nb", "set"), ("s", "[=[d]]]=]"), ("c1", "# e"),
    ],
    ("makefile", "A := b\nall: $(A) # c\n\tcp"): [("nv", "A"), ("nf", "all"), ("nv", "$(A)"), ("c1", "# c")],
    ("dockerfile", 'FROM a AS b\n# c\nRUN echo "$D"'): [
        ("k", "FROM"), ("k", "AS"), ("c1", "# c"), ("k", "RUN"), ("nb", "echo"), ("s2", '"'), ("nv", "$D"), ("s2", '"'),
    ],
    ("sql", "SELECT a FROM b -- c\nwhere d = 'e''f'"): [("k", "SELECT"), ("k", "FROM"), ("c1", "-- c"), ("k", "where"), ("s1", "'e''f'")],
    ("javascript", "const a = /b\\/['\"]/g, c = `d ${`e`} f`; // g"): [
        ("kd", "const"), ("sr", "/b\\/['\"]/g"), ("sb", "`d ${`e`} f`"), ("c1", "// g"),
    ],
    ("javascript", "a = b / c; d = 'e'"): [("s1", "'e'")],
    ("html", '<!-- a --><p class="b" c=d>&amp;<script>let e</script>'): [
        ("cm", "<!-- a -->"), ("nt", "<p"), ("na", "class"), ("s", '"b"'), ("na", "c"), ("s", "d"), ("nt", ">"), ("ni", "&amp;"),
        ("nt", "<script"), ("nt", ">"), ("kd", "let"), ("nt", "</script"), ("nt", ">"),
    ],
    ("xml", '<?a?><b:c d="e>f"/><![CDATA[<g>]]>'): [
        ("cp", "<?a?>"), ("nt", "<b:c"), ("na", "d"), ("s", '"e>f"'), ("nt", "/>"), ("cp", "<![CDATA[<g>]]>"),
    ],
    ("markdown", "# a\n- `b` **c**\n\n```python\nx = 'd'\n```\n[e](f)"): [
        ("gh", "# a"), ("k", "-"), ("sb", "`b`"), ("gs", "**c**"), ("nl", "```python"), ("s1", "'d'"), ("nl", "```"),
        ("nt", "[e]"), ("na", "f"),
    ],
    ("rst", "a\n===\n\n.. code-block:: python\n\n   x = 'b'\n\n``c`` :d:`e`"): [
        ("gh", "a"), ("gh", "==="), ("k", ".. code-block::"), ("s1", "'b'"), ("s", "``c``"), ("na", ":d:"), ("nv", "`e`"),
    ],
    ("diff", "--- a\n+++ b\n@@ -1 +1 @@\n-c\n+d"): [("gh", "--- a"), ("gh", "+++ b"), ("gu", "@@ -1 +1 @@"), ("gd", "-c"), ("gi", "+d")],
    ("starlark", 'load("a", "b")\nc(d = True) # e'): [("k", "load"), ("s2", '"a"'), ("s2", '"b"'), ("kc", "True"), ("c1", "# e")],
    ("rust", "fn f<'a>(x: &'a str) -> char { 'b' } // c"): [
        ("k", "fn"), ("nf", "f"), ("kt", "str"), ("kt", "char"), ("sc", "'b'"), ("c1", "// c"),
    ],
    ("csv", "a,'b',1"): [],
    ("text", "if 'a' # 1"): [],
}  # fmt: skip


@pytest.mark.parametrize("source", PYTHON)
def test_tokens_of_python(source):
    assert tokens(source, "python") == seen(PYTHON[source])


@pytest.mark.parametrize(("language", "source"), OTHERS)
def test_tokens_of_other_languages(language, source):
    assert tokens(source, language) == seen(OTHERS[language, source])


@pytest.mark.parametrize("quote", ["'", '"'])
@settings(max_examples=150, deadline=None)
@given(st.text("abc{}:!\\ ", max_size=12))
def test_what_follows_a_line_is_never_taken_for_a_string_of_it(quote, inside):
    source = f"f{quote}{inside.rstrip(chr(92))}{quote}\nafter = 1\n"
    page = highlighted(source, "python").split("\n")
    assert page[-2] == "after = <em>1</em>"


def test_what_nobody_would_see_is_shown_and_confined():
    page = highlighted('a = "\u202e\u2066" # \x1b[31m\u200b', "python", anchors=True)
    assert [f"U+{ord(character):04X}" for character in "\u202e\u2066\x1b\u200b"] == re.findall('title="(.*?)"', page)
    assert '<bdi class="rankbook-hidden" title="U+202E">\u202e</bdi>' in page
    assert "rankbook-hidden" not in highlighted("tab\tform\ffeed ünï 👩‍💻 عربي\n", "text")


def test_what_html_cannot_hold_is_named():
    page = highlighted("a\0b\udc80", "text")
    assert page == ('a<bdi class="rankbook-hidden" title="U+0000">\ufffd</bdi>b<bdi class="rankbook-hidden" title="U+DC80">\ufffd</bdi>')
    page.encode()


def test_a_return_survives_and_is_shown_only_where_it_hides_something():
    page = highlighted("'a'\r\nb\rc\r\n", "python", anchors=True)
    assert page == ('<i id=L1><i>\'a\'</i>&#13;</i>\n<i id=L2>b<bdi class="rankbook-hidden" title="U+000D">&#13;</bdi>c&#13;</i>\n')


@settings(max_examples=300, deadline=None)
@given(texts, names)
@example("# a\n\n```\nb\n```\n\n## c\n", "markdown")
@example("cat <<END\nb\nEND\necho $c\n", "bash")
@example("a: |\n  b: c\nd: e\n", "yaml")
@example("#define A(b) \\\n  c\n// d \\\n  e\n", "cpp")
@example('# a\nb = 1  # c\n"""d\ne"""\n', "python")
def test_both_ends_of_lines_have_the_same_colours(text, name):
    text = text.replace("\r", "")
    page = highlighted(text.replace("\n", "\r\n"), name, anchors=True)
    assert page.count("&#13;") == text.count("\n")
    assert page.replace("&#13;", "") == highlighted(text, name, anchors=True)


@pytest.mark.parametrize(("text", "anchors"), [("", 1), ("\n", 1), ("\n\n", 2), ("a", 1), ("a\n", 1), ("a\n\nb", 3)])
def test_lines_are_counted_as_editors_do(text, anchors):
    assert highlighted(text, "text", anchors=True).count("<i id=") == anchors


def test_pygments_stands_in_where_there_is_no_table():
    pytest.importorskip("pygments")
    assert ("b", "end") in tokens("module A\nend\n", "julia")
    assert highlighted("a" * (others.MOST + 1), "julia") == "a" * (others.MOST + 1)


def test_without_pygments_a_listing_has_no_colours(monkeypatch):
    others._lexer.cache_clear()
    for module in [name for name in sys.modules if name.partition(".")[0] == "pygments"]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "pygments", None)
    try:
        assert highlighted("module A # <b>\n", "julia") == "module A # &lt;b&gt;\n"
        assert others.version() == ""
    finally:
        others._lexer.cache_clear()


@pytest.mark.parametrize("broken", [lambda _: 1 / 0, lambda _: [(0, None, "lost")]])
def test_a_lexer_that_fails_or_loses_text_costs_the_colours_only(monkeypatch, broken):
    lexer = type("Lexer", (), {"get_tokens_unprocessed": staticmethod(broken)})
    monkeypatch.setattr(others, "_lexer", lambda _: lexer)
    assert highlighted("module <A>\n", "julia") == "module &lt;A&gt;\n"


def test_the_version_names_the_tables(monkeypatch):
    before = version()
    assert re.fullmatch("[0-9a-f]{16}", before)
    version.cache_clear()
    monkeypatch.setattr(others, "version", lambda: "another Pygments")
    try:
        assert version() != before
    finally:
        version.cache_clear()


@pytest.mark.browser
def test_a_browser_copies_the_source_and_draws_the_numbers(tmp_path, chromium):
    """What is copied is the source, byte for byte; line numbers are drawn, and the line of an address is in sight and marked."""
    source = '\ndef f(x):\n\t"""Doc.\n\n    More."""\n    return f"{x}\u202e"  # <b> & c\n' + "y = 1\n" * 60
    page = tmp_path / "page.html"
    listing = f'<div class="highlight rankbook-source"><pre><code>{highlighted(source, "python", anchors=True)}</code></pre></div>'
    page.write_text(f"<!doctype html><meta charset=utf-8><style>{style()}</style>{listing}", encoding="utf-8")
    view = chromium.new_page(viewport={"width": 390, "height": 500})
    view.goto(f"{page.as_uri()}#L40")
    code = "document.querySelector('code')"
    assert view.evaluate(f"{code}.textContent") == source
    assert view.evaluate(f"{code}.innerText") == source
    assert view.evaluate(f"getSelection().selectAllChildren({code}), getSelection().toString()").rstrip("\n") == source.rstrip("\n")
    line = "document.getElementById('L40')"
    assert view.evaluate(f"getComputedStyle({line}, '::before').content") == "counter(rankbook-line)"
    assert view.evaluate(f"getComputedStyle({line}).backgroundColor") != view.evaluate(
        "getComputedStyle(document.getElementById('L41')).backgroundColor"
    )
    assert 0 <= view.evaluate(f"{line}.getBoundingClientRect().top") < 500
    view.close()
