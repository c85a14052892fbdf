"""Sources, outputs and pages are texts of others: nothing in them becomes an element, a link, a command, or a file outside of the book."""

from __future__ import annotations

import html
import io
import json
import os
import posixpath
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

pytest.importorskip("pyromark", reason="stamping needs the extra `site`")
pytest.importorskip("material", reason="the site needs the extra `site`")

import checked_books
import hostile
from browsing import browser, served
from rankbook import front_matter
from rankbook.cli import main
from rankbook.config import Settings
from rankbook.document import document
from rankbook.embedding import NotEmbedded, embed
from rankbook.errors import RankbookError
from rankbook.ledger import Ledger
from rankbook.listing import Outcome, Run
from rankbook.listings import site_of
from rankbook.pages.inventory import Named, entries, inventory, lines_of
from rankbook.pages.text import plain, summary
from rankbook.publish import Docs, Site, publish
from rankbook.site import markdown, sheltering
from rankbook.site.addresses import Addresses
from rankbook.site.highlight import highlighted
from rankbook.site.markdown import render
from rankbook.site.tokens import others
from rankbook.starter import drafts
from rankbook.starter.facts import Facts, Install, Remote
from rankbook.terminal import harmless, word
from tiny_site import REPOSITORY, mkdocs, write_project
from watching import watched

PACKS = ("rankbook", "repository", "repo-book")
SEEDS = st.integers(0, 2**40)
CASES = sorted((Path(__file__).parent / "cases/hostile").iterdir())
PAGES = sorted((REPOSITORY / "tests/cases/listings").glob("*.md"))
FILES = [path for folder in ("tests/distributed", "tests/cases/sources") for path in sorted((REPOSITORY / folder).rglob("*"))]
ORIGINALS = [(path.name, path.read_bytes()) for path in FILES if path.is_file() and path.suffix != ".pyc" and path.stat().st_size < 30_000]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """A cache of its own for each test."""
    monkeypatch.setenv("RANKBOOK_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


def checked(seed, make):
    """Make books in a folder of their own; give what is wrong with them, and what was written outside."""
    checked_books.shell()  # an engine builds it, in a folder of its own
    with tempfile.TemporaryDirectory() as folder, watched() as written:
        found = make(Path(folder), PACKS[seed % 3])
        ruff = f"{tempfile.gettempdir()}/rankbook-findings-"
        allowed = (os.path.realpath(folder), os.path.realpath(os.environ["RANKBOOK_CACHE_DIR"]), ruff, "/dev/", "/proc/")
        outside = [path for path in written if not path.startswith(allowed) and "/__pycache__/" not in path]  # what Python itself keeps
        return [*found, *outside]


# The whole way: sources, pages, site, search, pictures, inventory


@given(seed=SEEDS)
@example(seed=1)  # of each pack one
@example(seed=2)
@settings(deadline=None, max_examples=2)
def test_a_hostile_tree_gives_the_book_of_a_tame_one(seed):
    """Whatever names, docstrings, conditions and outputs hold, each page has the elements that harmless words in their places give it."""

    def make(top, pack):
        books = []
        for name, is_hostile in (("hostile", True), ("tame", False)):
            tree = hostile.tree(seed, hostile=is_hostile, files=5, suffixes=(".py",))
            books.append(checked_books.make(top / name, tree, hostile.runs_of(tree, seed, hostile=is_hostile), pack=pack))
        return checked_books.problems(*books, engines=0.4, seed=seed)

    assert checked(seed, make) == []


@given(seed=SEEDS)
@settings(deadline=None, max_examples=6)
def test_hostile_files_of_any_kind_stay_text(seed):
    """Whatever files of any kind hold, the site has only known elements and links, every engine shows the same, and listings are exact."""

    def make(top, pack):
        tree = hostile.tree(seed, files=6)
        book = checked_books.make(top, tree, hostile.runs_of(tree, seed, is_timed=False), pack=pack)
        return checked_books.problems(book, engines=0.4, seed=seed)

    assert checked(seed, make) == []


@given(seed=SEEDS)
@example(seed=155)  # a listing whose last line ends with a carriage return alone
@settings(deadline=None, max_examples=3)
def test_real_files_that_somebody_has_changed_stay_text(seed):
    """The same holds of real files into which anything was put."""

    def make(top, pack):
        tree = hostile.mutated_tree(ORIGINALS, seed, files=5)
        return checked_books.problems(checked_books.make(top, tree, hostile.runs_of(tree, seed), pack=pack), engines=0.4, seed=seed)

    assert checked(seed, make) == []


@given(seed=SEEDS)
@example(seed=1)  # of each pack one
@example(seed=2)
@settings(deadline=None, max_examples=1)
def test_a_hostile_tree_that_changes_has_the_book_of_a_new_one(seed):
    """Whatever comes, goes, moves and is edited, pages, site and search are byte by byte those that are made at once."""
    assert checked(seed, lambda top, pack: checked_books.differences(seed, top, pack=pack, files=4, steps=2)) == []


@pytest.mark.parametrize("pack", PACKS)
def test_what_was_found_once_stays_mended(tmp_path, pack):
    """Each file that once did harm has its pages, and they do none; nor do all together, in files so long that they come in stretches."""
    files = {f"s/{path.name}": path.read_bytes() for path in CASES}
    whole = b"\n".join(files.values())
    files |= {f"s/long{suffix}": whole * (1100 // whole.count(b"\n") + 1) for suffix in (".py", ".cpp", ".txt")}
    book = checked_books.make(tmp_path, files, hostile.runs_of(files, 0, is_timed=False), pack=pack)
    assert list(checked_books.problems(book, engines=1 if pack == PACKS[0] else 0.3)) == []
    assert len(files) >= 8


def test_the_checks_find_what_they_are_for(tmp_path):
    """A page with a foreign element, a dead or a foreign link, a ragged table or a wrong listing is told of."""
    files = hostile.tree(3, files=3)
    book = checked_books.make(tmp_path, files)
    path = next(path for path in book.pages if path.endswith(".py_docs.md"))
    page = tmp_path / "site" / Addresses().file(path)
    text = page.read_text()
    assert list(checked_books.problems(book, engines=0)) == []
    for old, new, said in (
        ("<h1", "<img src=x onerror=zq()><h1", "<img"),
        ("<h1", "<script>zq()</script><h1", "<script>"),
        ("<h1", "<a href=javascript:zq()>zq</a><h1", "javascript:"),
        ("<h1", "<a href=//zq.example>zq</a><h1", "zq.example"),
        ("<h1", "<a href=nowhere.html>zq</a><h1", "leads nowhere"),
        ("<h1", "</div><p onclick=zq()>zq</p><div><h1", "onclick"),
        ("<h1", "<table><tr><td>a<tr><td>a<td>b</table><h1", "rows of a table"),
        ("import", "imqort", "its listing differs"),
    ):
        page.write_text(text.replace(old, new, 1) if said != "its listing differs" else text.replace(old, new))
        assert any(said in problem for problem in checked_books.problems(book, engines=0)), said


# Pages as input


@given(seed=SEEDS)
@settings(deadline=None, max_examples=60)
def test_a_page_that_somebody_has_changed_becomes_known_elements(seed):
    """Whatever stands on a page, the site shows it as elements that Markdown makes, and its listings are read or refused."""
    page = random.Random(seed).choice(PAGES).read_text()
    assert list(checked_books.page_problems(page, seed)) == []
    checked_books.collected(page, seed, site_of(REPOSITORY / "docs/index.md"))


BOMBS = {
    "merge keys": "a: &a {k: v}\n" + "".join(f"b{n}: &{chr(98 + n)} {{<<: [*{chr(97 + n)}, *{chr(97 + n)}]}}\n" for n in range(24)),
    "open lists": "a: " + "[" * 200_000,
    "nested lists": "a: " + "[" * 200_000 + "]" * 200_000,
    "nested sequences": "- " * 200_000,
    "nested keys": "? " * 200_000,
    "nested mappings": "\n".join(" " * depth + "a:" for depth in range(1500)),
    "aliases": "a0: &a0 [x]\n"
    + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    + "title: *a59\nrankbook: {page: file, source: *a59, size: *a59}\n",
    "kinds": "title: [1]\nrankbook: {page: file, source: {a: b}, size: x, sha256: [x], encoding: [x], owners: [[x]], needs: [x]}",
    "numbers": "title: 0x" + "f" * 9000 + "\nrankbook: {page: file, size: 1e999, source: .nan}",
    "tags": "a: !!python/object/apply:os.system [touch zq]",
}
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
from rankbook.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_front_matter_cannot_take_for_ever(tmp_path):
    """YAML that grows without end, in sources or on pages, is left alone: a process that may use two GiB and a minute makes the pages."""
    pages = {name.replace(" ", "_"): f"---\n{bomb}\n---\n\n# Words\n" for name, bomb in BOMBS.items()}
    for folder in ("s", "docs/suite"):
        hostile.write(tmp_path, {f"{folder}/{name}.md": page.encode() for name, page in pages.items()})
    hostile.write(tmp_path, {"s/b.py": b"x = 1\n"})
    command = [sys.executable, "-c", LIMITED, "gen", "s", "--root", str(tmp_path), "--jobs", "1"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "docs/suite/s/b.py_docs.md").exists()
    assert not Path("zq").exists()
    for name, page in pages.items():
        values, _ = front_matter.split(page)
        stamp = front_matter.read(values)
        if stamp is not None:
            assert isinstance(stamp.title, str) and isinstance(stamp.source, str), name
            assert not isinstance(stamp.size, (str, list)), name


def test_plain_front_matter_is_read_as_before():
    """What people write is read: aliases, merge keys, lists, and brackets in a text."""
    text = "---\na: &a {x: 1}\nb: {<<: *a, y: [2]}\nc: |\n  " + "[{" * 500 + "\n---\n# x\n"
    values, offset = front_matter.split(text)
    assert values == {"a": {"x": 1}, "b": {"x": 1, "y": [2]}, "c": "[{" * 500 + "\n"}
    assert text[offset:] == "# x\n"


@pytest.mark.parametrize(
    "name", ["undefined", "idna", "punycode", "zip", "rot13", "unicode_escape", "utf-7", "x" * 300, "../../x", "os.path"]
)
@pytest.mark.parametrize("body", [b"x = 1\n", b"a-" * 3000, b"\\" * 3000, bytes(range(1, 255))])
def test_any_encoding_that_a_source_names_is_read_or_refused(name, body):
    """A source may name any encoding that Python knows, also one that no file has."""
    data = f"# coding: {name}\n".encode() + body
    found = embed(data)
    assert isinstance(found, NotEmbedded) or found.text


@pytest.mark.parametrize("text", ["[" * 300_000, "[x](" * 80_000, "![[" * 80_000, "# " + "[" * 300_000])
def test_long_headings_and_paragraphs_are_read_once(text):
    """Brackets that nothing closes are looked at once each: a third of a million would take hours otherwise."""
    assert plain(text).strip()
    assert isinstance(summary(text, is_markdown=True), str)


@pytest.mark.parametrize(
    "page",
    [
        "<listing 0>\n\n```\na < b\n```\n",
        "\ufdd20\ufdd2\n\n```\na < b\n```\n",
        "<listing 7>\n\n~~~text\na < b\n~~~\n",
        "   ```\nbefore\n```text\na < b\n```\nafter\n   ```\n",
        "- ~~~\n  before\n```\na < b\n```\n",
    ],
)
def test_a_listing_is_shown_once_whatever_a_page_says(page):
    """A text that looks like the place of a listing is a text, and a listing that Markdown takes for part of another is in it."""
    made = render(page, "suite/x.md", Addresses()).html
    assert made.count("a &lt; b") == 1
    assert made.count("<pre>") == 1 + page.startswith("- ")
    assert not re.search("[\ufdd0-\ufdd2]", made)


@pytest.mark.parametrize("anchor", ["__codelineno-source-", "L"])
def test_a_line_of_any_number_is_no_mistake(anchor):
    made = render(f"[a](x.md#{anchor}{'9' * 5000}) [b](x.md#{anchor}3)\n", "suite/y.md", Addresses())
    assert 'href="x.html#L3"' in made.html
    assert made.targets["suite/x.md"].line == 3


PLACES = st.sampled_from(
    ["", "x.md", "../t/x.md", "../../README.md", "a%20b.md", "a&amp;b.md", "x.png", "1x:y", "javascript:x", "//h/x.md", "https://h/x.md"]
)
ENDS = st.sampled_from(
    ["", "#a", "#L4", "#__codelineno-source-", "#__codelineno-source-0", "#__codelineno-source-007", "#__codelineno-source-12", "?q#L1"]
)


@given(links=st.lists(st.tuples(PLACES, ENDS, st.sampled_from(["a href", "img src"])), max_size=8), directories=st.booleans())
@settings(deadline=None)
def test_links_to_lines_are_written_like_each_by_itself(links, directories):
    page = "".join(f'<p><{kind}="{place}{end}" title="x"></p>' for place, end, kind in links)
    at_once, by_itself = (markdown._Links("suite/t/p.md", Addresses(directories)) for _ in range(2))

    def written(match):
        made = by_itself._made(html.unescape(match[2]))
        return f'<{match[1]}="{"data:," if match[1] == "img src" and markdown._FOREIGN.match(made) else made}"'

    assert at_once.rewritten(page) == re.sub(r'<(a href|img src)="([^"]*)"', written, page)
    assert at_once.targets == by_itself.targets


SLOW = {"matlab": "\n" * 90_000, "ocaml": "0" * 90_000, "csharp": "a\n" * 40_000, "terraform": "<<A\n" * 20_000}


@pytest.mark.parametrize("language", SLOW)
def test_a_text_that_is_made_to_be_slow_has_no_colours(monkeypatch, language):
    """Lexers of Pygments that would take minutes or hours are not asked, or stopped; what they are given is shown all the same."""
    monkeypatch.setattr(others, "SECONDS", 0.5)
    assert highlighted(SLOW[language], language) == SLOW[language].replace("<", "&lt;")
    assert "<" in highlighted('x = "a"; let y = 12\n', language)


# Commands


def shadowed(command, folder):
    """Let a shell read a command, with one in the place of each program that only says what it was given."""
    says = "".join(f'{name}() {{ printf "%s\\0" "$@"; }}; ' for name in ("pytest", "python", "cd", "cp"))
    done = subprocess.run(["bash", "-c", says + command], check=True, capture_output=True, cwd=folder)
    return [each.decode() for each in done.stdout.split(b"\0")[:-1]]


PATHS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=30)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@given(paths=st.lists(PATHS, min_size=1, max_size=40))
@settings(deadline=None, max_examples=15)
@example(paths=["-x", "--rootdir=/", "a b", "a'b", "$(touch zq)", "`touch zq`", "a;b", "a\nb", "a\rb", "\x1b[31m", "~", "*", "!!"])
@example(paths=["\u202e", "'", "\\'", "é\x01", "{a,b}"])
def test_a_path_is_one_word_of_a_command(paths):
    """Bash reads each word as the path that was meant; it is one line that shows all of itself, and no option."""
    words = [word(path) for path in paths]
    assert all(each.isprintable() and not each.startswith("-") for each in words)
    shown = subprocess.run(["bash", "-c", f"printf '%s\\0' {' '.join(words)}"], check=True, capture_output=True).stdout
    assert [os.fsdecode(each) for each in shown.split(b"\0")[:-1]] == [f"./{path}" if path.startswith("-") else path for path in paths]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize("pack", PACKS)
def test_commands_on_pages_name_their_file(tmp_path, pack):
    """Each command that a page shows for a file with a hostile name is taken by a shell as a command about that file."""
    name = "--co nf; touch $(zq) `zq` 'x' \"y\" & # | <b>.py"
    folder = "-s; touch zq"
    test = "import unittest\nclass TestX(unittest.TestCase):\n    def test_x(self): pass\nif __name__ == '__main__':\n    unittest.main()\n"
    hostile.write(tmp_path, {f"{folder}/{name}": test.encode()})
    book = checked_books.Book(tmp_path, {f"{folder}/{name}": test.encode()}, pack)
    chosen = replace(book.settings, sources=(folder,))
    document(chosen)
    site = Site(chosen, tmp_path / "docs", tmp_path / "site")
    publish(Docs(site), checked_books.shell())
    page = checked_books.LexborHTMLParser((tmp_path / f"site/{folder}/{name}_docs.html").read_text())
    codes = [code.text() for code in page.css("code") if code.text().startswith(("pytest ", "python "))]
    codes += [link.attributes["title"] for link in page.css(".rankbook-page td a[title], .rankbook-page li a[title]")]
    assert len(codes) >= 4
    for command in codes:
        words = shadowed(command, tmp_path)
        assert any(each.partition("::")[0] in {f"./{folder}/{name}", f"./{name}_docs.md"} for each in words), command
    assert not list(tmp_path.rglob("zq"))


# Terminals


@given(text=st.text(st.characters(), max_size=60))
@example(text="\x1b]0;zq\x07\x9b31m\u202e\u2066\udcff\U000e0041 é ü ×")
def test_nothing_steers_the_terminal(text):
    """What is written on a terminal moves no cursor, turns no direction and can be encoded; everything else stays, and so does JSON."""
    made = harmless(text)
    steering = (range(9), range(11, 32), range(127, 160), range(0x202A, 0x202F), range(0x2066, 0x206A))
    assert not any(ord(each) in codes for each in made for codes in steering)
    made.encode()
    assert json.loads(harmless(json.dumps([text], ensure_ascii=False))) == [text]
    assert harmless(made) == made


def test_names_of_files_do_not_steer_the_terminal(tmp_path, monkeypatch):
    """Warnings, errors, answers and diffs about files with escape sequences in their names are shown without them."""
    name = "test_\x1b]0;zq\x07\u202e\nrankbook: error: zq.py"
    hostile.write(tmp_path, {f"s/{name}": b"def test_zq():\n    pass\n", "s/a.py": b"x = 1\n"})
    (tmp_path / f"s/link{name}").symlink_to("/etc/hostname")
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["s"]\n')
    said = io.StringIO()
    monkeypatch.chdir(tmp_path)
    with redirect_stdout(said), redirect_stderr(said):
        assert main(["gen"]) == 0
        (tmp_path / f"s/{name}").write_bytes(b"def test_other():\n    pass\n")
        assert main(["check", "--diff"]) == 1
        assert main(["query", "tests"]) == 0
        assert main(["query", "tests", "--format", "json"]) == 0
        assert main(["gen", "nowhere\x1b]0;zq\x07"]) == 2
    text = said.getvalue()
    assert "link" in text
    assert "test_other" in text
    assert not set(text) & set("\x1b\x07\u202e")
    assert "\nrankbook: error: zq" not in text


STEERING = """
import sys
import unittest

import pytest

EVIL = "\\x1b]0;evil\\x07\\u202e"
print(EVIL)


def test_raises():
    print(EVIL)
    print(EVIL, file=sys.stderr)
    raise ValueError(EVIL)


def test_skips():
    pytest.skip(EVIL)


@pytest.mark.xfail(reason=EVIL)
def test_is_expected():
    raise ValueError


class TestSet(unittest.TestCase):
    pass


setattr(TestSet, f"test_{EVIL}", lambda self: self.fail(EVIL))
"""


@pytest.mark.parametrize("more", [["--canary=100%", "-vv", "-rA", "--color=yes"], ["-n2", "-rA"], ["--collect-only", "-q"]])
def test_listings_do_not_steer_the_terminal(tmp_path, more):
    """What listings raise, print and are called, and what their pages are called, is reported without control sequences of theirs."""
    name = "test_\x1bc\x07.py"
    hostile.write(tmp_path, {f"s/\x9bA/{name}": STEERING.encode(), "pyproject.toml": b'[tool.rankbook]\nsources = ["s"]\nfindings = []\n'})
    assert main(["gen", "--root", str(tmp_path)]) == 0
    page = tmp_path / "docs/suite/loose.md"
    fences = (("python", 'print("\x1b[33m")\nraise ValueError("\x1b]0;evil\x07")'), ('python {skip="\x1b[34mx"}', "1"), ("pytho\x1bn", "x"))
    page.write_text("# Loose\n" + "".join(f"\n```{info}\n{text}\n```\n" for info, text in fences))

    def run(*words):
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:tach", "--doctest-glob=*.md", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"COLUMNS": "400"}, check=False)
        said = done.stdout + done.stderr
        return re.sub(r"\x1b\[[0-9;]*m", "", said) if "--color=yes" in words else said

    said = run("docs", *more)
    assert "s/\\u009bA/test_\\u001bc\\u0007.py_docs.md" in said
    assert not set(said) & set("\x1b\x07\u202e"), said
    if "--collect-only" in more:
        return
    assert "ValueError: \\u001b]0;evil\\u0007\\u202e" in said
    assert re.search(r"[34] failed, ", said), said
    if "-n2" in more:  # which says the same command
        return
    again = re.search(r"run it again: (.*::test_raises'?)$", said, re.MULTILINE)[1]
    words = subprocess.run(["bash", "-c", f"printf '%s\\0' {again}"], capture_output=True, text=True, check=True).stdout.split("\0")[:-1]
    assert words[0] == "pytest"
    said = run(*words[2:])
    assert "1 failed in" in said, said


# Links, and what lies outside


def outside(tmp_path):
    """A folder that nothing may be written to, with a file that nobody may read."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.py").write_text("SECRET = 'zq-secret'\n")
    return folder


def test_links_do_not_lead_out_of_the_tree(tmp_path):
    """Links to files and folders outside are no sources, sources with `..` are refused, and a loop of links ends."""
    secret = outside(tmp_path)
    root = tmp_path / "root"
    hostile.write(root, {"s/a.py": b"x = 1\n"})
    (root / "s/file.py").symlink_to(secret / "secret.py")
    (root / "s/folder").symlink_to(secret)
    (root / "s/loop").symlink_to(root / "s")
    (root / "s/self.py").symlink_to(root / "s/self.py")
    book = checked_books.make(root, {})
    assert not [path for path, page in book.pages.items() if "zq-secret" in page]
    assert not [path for path in (root / "site").rglob("*") if path.is_file() and b"zq-secret" in path.read_bytes()]
    for source in ("..", "../outside", "s/folder", "s/../../outside", str(secret)):
        with pytest.raises(RankbookError, match=r"outside the root|does not exist"):
            document(Settings(root=root, sources=(source,), jobs=1, findings=()))


@pytest.mark.parametrize("place", ["docs/s", "docs/s/b", "docs/s/a.py_docs.md"])
def test_links_do_not_lead_out_of_the_pages(tmp_path, place):
    """Where a link stands in the folder of the pages, nothing is written, read or removed behind it."""
    secret = outside(tmp_path)
    (secret / "a.py_docs.md").write_text('---\ntitle: "x"\nrankbook:\n  page: "file"\n  source: "gone.py"\n---\n')
    root = tmp_path / "root"
    hostile.write(root, {"s/a.py": b"x = 1\n", "s/b/c.py": b"y = 1\n"})
    (root / place).parent.mkdir(parents=True)
    (root / place).symlink_to(secret / "a.py_docs.md" if place.endswith(".md") else secret)
    before = {path: path.read_bytes() for path in secret.rglob("*")}
    with watched() as written:
        document(Settings(root=root, sources=("s",), out="docs", jobs=1, findings=()))
        document(Settings(root=root, sources=("s/b",), out="docs", jobs=1, findings=()))
    assert {path: path.read_bytes() for path in secret.rglob("*")} == before
    assert not [path for path in written if path.startswith(str(secret))]


@pytest.mark.parametrize("place", ["s", "s/b", "assets", "assets/rankbook-search"])
def test_links_do_not_lead_out_of_the_site(tmp_path, place):
    """Where a link stands in the folder of the site, nothing is written or removed behind it, and the user is told."""
    secret = outside(tmp_path)
    for name in ("a.py_docs.html", "rankbook.json", "index.json", "old.json"):
        (secret / name).write_text("mine")
    root = tmp_path / "root"
    hostile.write(root, {"s/a.py": b"x = 1\n", "s/b/c.py": b"y = 1\n"})
    link = root / "site" / place
    link.parent.mkdir(parents=True)
    link.symlink_to(secret)
    before = {path: path.read_bytes() for path in secret.rglob("*")}
    book = checked_books.Book(root, {})
    with watched() as written:
        document(book.settings)
        site = Site(book.settings, root / "docs", root / "site")
        with pytest.raises(RankbookError, match="leads out of the folder of the site"):
            publish(Docs(site), checked_books.shell())
            site.write_search(Addresses(), lambda: pytest.fail("the sources are known"))
        with suppress(RankbookError):
            site.shelter()
            site.write_search(Addresses(), lambda: pytest.fail("the sources are known"))
            site.unshelter_search()
    assert {path: path.read_bytes() for path in secret.rglob("*")} == before
    assert not [path for path in written if path.startswith(str(secret))]


def test_nothing_is_written_through_a_link_in_the_place_of_a_file(tmp_path, monkeypatch):
    """Links that a project brings along under names that rankbook gives to files lead to nothing that is written."""
    secret = tmp_path / "secret"
    secret.write_text("precious")
    root = write_project(tmp_path / "p") if (tmp_path / "p").mkdir() is None else tmp_path
    monkeypatch.chdir(root)
    names = ("index.json", *(f"{number:x}.json" for number in range(4)))
    places = [
        *(f"site/assets/rankbook-search/{name}" for name in names),
        *(f"docs/book/.rankbook-{os.getpid()}.tmp", "docs/book/suite/.rankbook.tmp"),
        *(f"{name}.part" for name in (".gitignore", "mkdocs.yml", "pyproject.toml", "out.json")),
    ]
    for place in places:
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).symlink_to(secret)
    assert main(["gen"]) == 2  # it stands where a page is written first, and is taken away
    assert main(["gen"]) == 0
    assert mkdocs(root, "build").returncode == 0
    assert not (root / "site/assets/rankbook-search/index.json").is_symlink()
    assert main(["init", "suite", "--force", "mkdocs.yml"]) == 0
    assert main(["ledger", "export", "out.json"]) == 0
    assert secret.read_text() == "precious"
    assert [path for path in root.rglob(".rankbook-*") if not path.is_symlink()] == []


def test_what_was_set_aside_is_not_put_behind_a_link(tmp_path):
    """Stamped pages wait while the engine builds; where it has made a link in their place, nothing behind that is touched."""
    secret = outside(tmp_path)
    site = tmp_path / "site"
    hostile.write(site, {"s/a.html": b"ours", "s/b/c.html": b"ours"})
    sheltering.shelter(site, {"s"})
    (site / "s").symlink_to(secret)
    sheltering.unshelter(site, {"s/a.html", "s/b/c.html"})
    assert [path.name for path in secret.iterdir()] == ["secret.py"]
    assert (site / "s").is_symlink()


REACHES = (
    "cycler.__init__.__globals__.os.popen('touch zq').read()",
    "file.__class__.__mro__",
    "''.__class__.__base__.__subclasses__()",
    "'{0.__class__}'.format(file)",
)


@pytest.mark.parametrize("way", REACHES)
def test_templates_of_a_project_reach_nothing_but_facts(tmp_path, way):
    """A template that comes with the sources may arrange what is known of them, and run nothing."""
    template = (REPOSITORY / "templates/rankbook/file.md.jinja").read_text()
    hostile.write(tmp_path, {"s/a.py": b"x = 1\n", "templates/rankbook/file.md.jinja": f"{template}\n{{{{ {way} }}}}\n".encode()})
    with pytest.raises(RankbookError, match=r"unsafe|has no attribute|broken template"):
        document(Settings(root=tmp_path, sources=("s",), out="docs", jobs=1, findings=()))
    assert not Path("zq").exists()
    harmless_ones = "{{ file.path | code }} has 1,{{ '{:,}'.format(1000) }}"
    (tmp_path / "templates/rankbook/file.md.jinja").write_text(f"{template}\n{harmless_ones}\n")
    document(Settings(root=tmp_path, sources=("s",), out="docs", jobs=1, findings=()))
    assert "`s/a.py` has 1,1,000" in (tmp_path / "docs/s/a.py_docs.md").read_text()


def test_a_template_is_a_file_of_its_project(tmp_path):
    """A link to a file elsewhere is no template, whose text would come out on the pages; one to another pack is."""
    (tmp_path / "secret").write_text("zq")
    template = (REPOSITORY / "templates/rankbook/file.md.jinja").read_text()
    hostile.write(tmp_path, {"s/a.py": b"x = 1\n", "templates/rankbook/file.md.jinja": f"{template}{{% include '_x.md.jinja' %}}".encode()})
    part, settings_ = tmp_path / "templates/rankbook/_x.md.jinja", Settings(root=tmp_path, sources=("s",), out="docs", jobs=1, findings=())
    part.symlink_to(tmp_path / "secret")
    with pytest.raises(RankbookError, match=r"_x\.md\.jinja: the template is a link that leads out of the templates; put the file itself"):
        document(settings_)
    assert not (tmp_path / "docs").exists()
    part.unlink()
    (tmp_path / "templates/other").mkdir()
    (tmp_path / "templates/other/_x.md.jinja").write_text("of another pack")
    part.symlink_to("../other/_x.md.jinja")
    document(settings_)
    assert "of another pack" in (tmp_path / "docs/s/a.py_docs.md").read_text()
    part.unlink()
    part.write_bytes(b"\xff\xfe")
    with pytest.raises(RankbookError, match=r"_x\.md\.jinja: the template is not UTF-8; save it as UTF-8"):
        document(settings_)


# Inventory, ledger, CI


def test_a_heading_is_no_entry_of_its_own():
    """A name that Sphinx would read as a shorter one that leads elsewhere is left out; other names of several words stay."""
    headings = (("Set up py:module 1 http://zq.example $ -", 3), ("Set up: 2 ways", 5), ("On 2 GPUs", 7))
    made = entries(Named("s/a b:c 1 d.md", "", (), headings))
    plain_ones = entries(Named("s/a.md", "", (), headings))
    data = inventory([lines_of([made, plain_ones], Counter())], "T")
    lines = [checked_books.ENTRY.match(line).groups() for line in checked_books.inventory_lines(data)]
    assert {(name, role) for name, role, *_ in lines} == {("s/a.md", "std:doc"), ("s/a.md:on 2 gpus", "std:label")}


EVIL = 'x\'; touch zq; ${{ github.token }} $(zq) #: [a] "b" & <b>{{c}}'


def facts(tmp_path, **values):
    """What is known of a project whose names are hostile."""
    install = Install(("python -m pip install -e .",), "pyproject.toml")
    known = {
        "root": tmp_path / EVIL, "below": EVIL, "title": f"{EVIL}\n# zq", "sources": (EVIL,), "include": (EVIL,), "docs": EVIL,
        "out": f"{EVIL}/{EVIL}", "site_dir": EVIL, "is_docs_new": True, "config": "mkdocs.yml",
        "remote": Remote("github.com", f"o/{EVIL.replace(' ', '')}"),
        "branch": EVIL.replace(" ", "").replace("[", "").replace(":", ""), "python": "3.13", "install": install, "site": install,
        "rankbook": f"rankbook @ git+https://x/{EVIL}", "needs_torch": True, "gpus": 2, "forges": ("github", "gitlab"), "is_ignored": True,
        "stage": EVIL, "is_published": True,
    }  # fmt: skip
    return Facts(**{**known, **values})


def scalars(node):
    """Give all texts of plain YAML values."""
    if isinstance(node, dict):
        return [text for item in node.items() for part in item for text in scalars(part)]
    return [text for part in node for text in scalars(part)] if isinstance(node, list) else [node]


def expressions(text):
    """Give what GitHub takes for expressions: from `${{` to the first `}}` that stands in no quotes."""
    found, place = [], 0
    while (start := text.find("${{", place)) >= 0:
        is_quoted, place = False, start + 3
        while is_quoted or not text.startswith("}}", place):
            is_quoted ^= text[place] == "'"
            place += 1
        found.append(text[start + 3 : place].strip())
    return found


def shape(node):
    """Give the keys of YAML values, at all depths."""
    if isinstance(node, dict):
        return {key: shape(value) for key, value in node.items()}
    return [shape(part) for part in node] if isinstance(node, list) else type(node).__name__


def test_files_for_ci_hold_names_as_texts(tmp_path):
    """Names of folders, branches and projects are neither YAML, nor expressions, nor commands in what `rankbook init` writes."""
    top = tmp_path
    (top / EVIL).mkdir()
    branch = facts(top).branch.replace("'", "''")
    made = {draft.path: draft.after for draft in drafts(facts(top), top)}
    plain_facts = facts(top, below="x", title="x", sources=("x",), docs="x", out="x/x", site_dir="x", branch="x", stage="x")
    tame = {draft.path: draft.after for draft in drafts(plain_facts, top)}
    for path in (".github/workflows/book.yml", ".gitlab/book.gitlab-ci.yml", f"{EVIL}/mkdocs.yml"):
        read, wanted = (yaml.load(text, yaml.BaseLoader) for text in (made[path], tame[path.replace(EVIL, "x")]))
        assert shape(read) == shape(wanted)
        if path.startswith(".github"):
            ours = {each for text in scalars(wanted) for each in expressions(text)} | {"'${{'"}
            found = {each.replace(branch, "x") for key in read if key != "on" for text in scalars(read[key]) for each in expressions(text)}
            assert found <= ours
            assert "'${{'" in found
    workflow = yaml.load(made[".github/workflows/book.yml"], yaml.BaseLoader)
    pipeline = yaml.load(made[".gitlab/book.gitlab-ci.yml"], yaml.BaseLoader)
    assert workflow["defaults"]["run"]["working-directory"].replace("${{ '${{' }}", "${{") == EVIL
    runs = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if step.get("run", "").startswith("pytest")]
    jobs = [job for job in pipeline.values() if isinstance(job, dict)]
    lines = [line for job in jobs for part in ("script", "after_script") for line in job.get(part, ())]
    commands = [run.replace("${{ '${{' }}", "${{") for run in runs]
    commands += [line for line in lines if line.startswith(("pytest", "cd ", "cp "))]
    assert len(commands) >= 6
    for command in commands:
        assert any(EVIL in each for each in shadowed(command, tmp_path))
    assert not list(tmp_path.rglob("zq"))
    assert tomllib.loads(made[f"{EVIL}/pyproject.toml"])["tool"]["rankbook"]["sources"] == [EVIL]
    home = checked_books.LexborHTMLParser(checked_books.by_engine(made[f"{EVIL}/{EVIL}/index.md"]))
    assert [home.css("h1")[0].text(), len(home.css("h1, h2")), len(home.css("b"))] == [" ".join(f"{EVIL} # zq".split()), 2, 0]


def test_the_name_of_a_project_is_no_html_of_the_theme(tmp_path, monkeypatch):
    """Themes write a site's name into HTML as it stands: what `rankbook init` takes from a project's name makes no element."""
    title = """<img src=x id=zq>'"><b id=zq>"""
    hostile.write(tmp_path, {"tests/test_a.py": b"def test_a():\n    pass\n"})
    (tmp_path / "pyproject.toml").write_text(f"[project]\nname = {json.dumps(title)}\n")
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    assert mkdocs(tmp_path, "build").returncode == 0
    pages = [checked_books.LexborHTMLParser(path.read_text()) for path in (tmp_path / "site").rglob("*.html")]
    assert len(pages) > 5
    assert [page for page in pages if page.css("#zq")] == []
    assert title in pages[0].css("title")[0].text()


def test_a_name_that_is_too_long_costs_its_file_only(tmp_path, monkeypatch, capsys):
    """A source with the longest name of which pages can be made has them on the site; one with a longer name is left out, and told of."""
    longest, longer = f"{'n' * 242}.py", f"{'n' * 243}.py"
    write_project(tmp_path)
    hostile.write(tmp_path, {f"suite/{name}": b"def test_a():\n    pass\n" for name in (longest, longer)})
    monkeypatch.chdir(tmp_path)
    assert mkdocs(tmp_path, "build").returncode == 0
    names = {path.name for path in (tmp_path / "site").rglob("*_docs.html")}
    assert names >= {f"{longest}_docs.html", "test_ring.py_docs.html"}
    assert f"{longer}_docs.html" not in names
    assert main(["gen"]) == 0
    assert f"suite/{longer} is left out: its name has 246 bytes" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["suite", "suite/part/.git"])
def test_no_program_runs_that_a_tree_names(tmp_path, place):
    """A folder that comes with a repository's settings, bare as Git clones it or unpacked, has nothing run by Git."""
    root, ran = tmp_path / "root", tmp_path / "ran"
    hook = f'[core]\n repositoryformatversion = 0\n bare = false\n fsmonitor = "touch {ran}; echo"\n'
    hook += " worktree = .\n" if place == "suite" else ""
    tests = {"suite/test_a.py": b"def test_a():\n    pass\n", "suite/part/test_b.py": b"def test_b():\n    pass\n"}
    inner = {"HEAD": b"ref: refs/heads/main\n", "config": hook.encode(), "objects/k": b"", "refs/k": b""}
    hostile.write(root, {**tests, **{f"{place}/{name}": data for name, data in inner.items()}})
    (root / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["suite"]\nfindings = []\n')
    subprocess.run(["git", "init", "-q", root], check=True)
    for command in ("gen", "check"):
        assert main([command, "--root", str(root)]) == 0
    assert (root / "docs/suite/suite/test_a.py_docs.md").is_file()
    assert (root / "docs/suite/suite/part/test_b.py_docs.md").is_file()
    assert not ran.exists()


def test_init_writes_nothing_outside_of_the_repository(tmp_path):
    """A site whose pages lie elsewhere, by `..` or by a link, gets no page from us."""
    secret = outside(tmp_path)
    top = tmp_path / "top"
    top.mkdir()
    (top / "link").symlink_to(secret)
    for docs in ("../outside/docs", "link/docs"):
        found = {draft.path: draft for draft in drafts(facts(top, below="", docs=docs, forges=("github",)), top)}
        assert found[f"{docs}/index.md"].after == ""
        assert "outside" in found[f"{docs}/index.md"].why


def test_a_run_may_say_anything(tmp_path):
    """Halves of surrogate pairs, times that are none and control characters in a run are recorded and shown."""
    files = {"s/a.py": b"def test_a():\n    pass\n"}
    strange = "\ud800\x00\x1b<b>\u202e"
    page = "docs/s/a.py_docs.md"
    run = Run(page, f"{page}::{strange}", "0" * 64, "s/a.py", 1, "test", Outcome.FAILED, strange, when='"><b>\ud800')
    run = replace(run, machine=strange, engine=strange, torch=strange, commit=strange, case={"id": strange}, needs=(strange,))
    book = checked_books.make(
        tmp_path, files, [run, replace(run, outcome=Outcome.PASSED, when="x"), replace(run, reason="y", when="9999-99")]
    )
    assert list(checked_books.problems(book)) == []


# A real browser


@pytest.mark.browser
def test_a_browser_does_nothing_that_a_source_says(tmp_path):
    """Chromium opens a page that shows every hostile text: no dialog, no error, no other host, no new global, and the search shows text."""
    root = write_project(tmp_path)
    words = "\n\n".join(each.encode(errors="ignore").decode() for each in hostile.PIECES)
    names = "".join(f"    def test_{number}(self):\n        {each!a}\n" for number, each in enumerate(hostile.PIECES))
    source = f"{words!r}\nimport unittest\n\n\nclass TestAll(unittest.TestCase):\n    {words!r}\n\n{names}\n"
    files = {
        "suite/<img src=x onerror=zq()>/test_all.py": source.encode(),
        "suite/all.md": words.encode(),
        "suite/<script>zq()<script>.md": f"# {hostile.PIECES[0]}\n".encode(),
    }
    hostile.write(root, files)
    found = hostile.runs_of(dict.fromkeys(files, b""), 5)
    runs = [replace(each, page=f"docs/book/{each.source}_docs.md", node_id=f"docs/book/{each.source}_docs.md::x") for each in found]
    Ledger(root / Settings().ledger).record(runs)
    done = mkdocs(root, "build")
    assert done.returncode == 0, done.stderr
    with served(root / "site") as address, browser() as chromium:
        context = chromium.new_context()
        page = context.new_page()
        said = []
        page.on("dialog", lambda dialog: (said.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("pageerror", lambda error: said.append(f"error {error}"))
        page.on("console", lambda message: said.append(f"console {message.text}") if message.type == "error" else None)
        page.on(
            "request",
            lambda request: None if request.url.startswith((address, "data:", "blob:")) else said.append(f"request {request.url}"),
        )
        page.goto(f"{address}book/suite/test_ring.py_docs.html")
        page.wait_for_load_state("networkidle")
        known = set(page.evaluate("Object.keys(window)"))
        for path in (*(f"book/{file}_docs.html" for file in files), "book/index.html", "book/suite/index.html", "book/sub.html"):
            page.goto(address + posixpath.join(*map(_quoted, path.split("/"))))
            page.wait_for_load_state("networkidle")
            page.keyboard.press("t")
            page.get_by_role("combobox", name="Find a test").fill("onerror")
            page.wait_for_function("document.querySelector('.rankbook-search__status')?.dataset.query === 'onerror'")
            assert page.locator(".rankbook-search img, .rankbook-search script").count() == 0
            page.keyboard.press("Escape")
            assert set(page.evaluate("Object.keys(window)")) - known <= {"0"}
            assert page.evaluate("'zq' in window") is False
        context.close()
    assert said == []


def _quoted(step):
    return quote(step, safe="")
