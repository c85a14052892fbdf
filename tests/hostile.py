"""Hostile trees of sources, each with a tame twin of the same shape, and what must hold of the books that are made of them."""

from __future__ import annotations

import contextlib
import hashlib
import html
import io
import json
import os
import posixpath
import random
import re
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import markdown as python_markdown
import yaml
from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser, LexborNode

from rankbook import front_matter
from rankbook.config import Settings
from rankbook.document import document, survey_tree
from rankbook.embedding import Embedded, embed
from rankbook.ledger import Ledger
from rankbook.listing import Outcome, RankEnd, Receipt, Run
from rankbook.publish import Docs, Ledgered, Site, publish
from rankbook.searching import write as write_search
from rankbook.site import checkout
from rankbook.site.addresses import Addresses
from rankbook.site.forge import Forge
from rankbook.site.shell import Shell, source

CANARY = "zq"
"""Begins every hostile text, so that it is known again wherever it comes out."""
PIECES = (
    "<script>window.zq=1</script>",
    "</script><script>zq()</script>",
    '"><img src=x onerror=zq()>',
    "'><svg/onload=zq()>",
    "</code></pre></div><h2>zq</h2>",
    "</td></tr></table><h1>zq</h1>",
    "<div onclick='zq()'>",
    "<iframe src=//zq.example>",
    "<a href=javascript:zq()>zq</a>",
    "<style>*{display:none}</style>",
    "<!-- rankbook:last-run -->",
    "<!-- rankbook:proof -->",
    "<!-- rankbook-notes zq -->",
    "<!--",
    "-->",
    "--><b>zq</b>",
    "<![CDATA[ zq ]]>",
    "<?php zq ?>",
    "<br>",
    "<code>zq</code>",
    "<!-- hide -->",
    "[zq](javascript:zq())",
    "[zq](data:text/html,zq)",
    "[zq](VBSCRIPT:zq)",
    "[zq](java&#115;cript:zq())",
    "[zq](//zq.example/)",
    "![zq](http://zq.example/p.png)",
    "[zq][zq]",
    "[zq]: http://zq.example",
    "[^zq]: note",
    "[[zq]]",
    "*[zq]: abbreviation",
    "<http://zq.example>",
    "<zq@example.org>",
    "http://zq.example/",
    "www.zq.example",
    "zq@example.org",
    "](http://zq.example)",
    "`zq`",
    "``",
    "`",
    "```",
    "```python",
    "```` {#source}",
    "~~~",
    "# zq",
    "## zq {#zq onclick=zq()}",
    "{: onclick=zq() }",
    "{ #zq .zq onclick='zq()' }",
    "{{ zq.__class__ }}",
    "{% raw %}{{ zq }}",
    "{# zq #}",
    "${{ github.token }}",
    "$(touch zq)",
    "`touch zq`",
    "; touch zq #",
    "&& touch zq",
    "| zq | zq |",
    "|---|---|",
    "| a",
    "\\|",
    "\\",
    "- zq",
    "* zq",
    "1. zq",
    "> zq",
    "---",
    "===",
    "!!! danger",
    "??? zq",
    '=== "zq"',
    ":::zq",
    ": zq",
    ":smile:",
    "~~zq~~",
    "==zq==",
    "++zq++",
    "^^zq^^",
    "**zq**",
    "__zq__",
    "_zq_",
    "*zq",
    "$$zq$$",
    '--8<-- "zq"',
    "&lt;script&gt;",
    "&#60;b&#62;",
    "&amp;",
    "&",
    "<",
    ">",
    '"',
    "'",
    "%3Cscript%3E",
    "%s%n{0}{x}",
    "a\n\n# zq\n\nb",
    "a\n\n```\nzq\n```\n",
    "a\n\n| zq | zq |\n|---|---|\n| zq | zq |\n",
    "a\n---\nzq: 1\n---\n",
    "a\r\rb",
    "\u2028# zq",
    "\x0c# zq",
    "\x0b- zq",
    "\x85# zq",
    "\x1b[31mzq\x1b]0;zq\x07",
    "\x9b31mzq",
    "\u202ezq\u202c",
    "\u2066zq\u2069",
    "\u200bzq\ufeff",
    "\x00",
    "\x02klzzwxh:0000\x03",
    "\x02wzxhzdk:0\x03",
    "\ufdd0script>zq\ufdd0/script>",
    "\ufdd0code>zq\ufdd0/code>",
    "\ufdd0listing 0>",
    "\ufdd1content\ufdd1",
    "\ufffe\uffff",
    "\ud800",
    "\U0001f4a3",
    "ﬁ№ Ⅳ",
    "x" * 300,
    "[" * 60,
    "*_" * 60,
    "<b>" * 30,
    "(" * 60 + ")" * 60,
)
"""What a hostile text may hold."""
_SHAPE = re.compile(r"[^\s.!?]")
_END = re.compile(r"\r\n|\n|\r")


def tame(text: str) -> str:
    """Give a harmless text of the same shape: as long, with the same spaces and ends of sentences."""
    return _SHAPE.sub("x", text)


# Trees


class Words:
    """Texts for a tree: hostile ones, or their tame twins.

    Args:
        random: where the choices come from; it is asked for the same whatever is made.
        hostile: whether texts are to be hostile.
    """

    def __init__(self, choose: random.Random, *, hostile: bool) -> None:
        self.choose = choose
        self.hostile = hostile
        self.count = 0

    def text(self, *, most: int = 3, lines: bool = True) -> str:
        """Give a text."""
        self.count += 1
        pieces = [self.choose.choice(PIECES) for _ in range(self.choose.randint(1, most))]
        head = f"{CANARY}{self.count}" + self.choose.choice((" ", "", "\n\n" if lines else " "))
        piece = self.choose.choice((" ", "")).join(pieces)
        piece = piece if lines else " ".join(piece.split())
        return head + (piece if self.hostile else tame(piece))

    def bare(self) -> str:
        """Give a text on one line that does not begin with the canary."""
        self.count += 1
        piece = " ".join(self.choose.choice(PIECES).split()) or "x"
        end = f" {CANARY}{self.count}"
        return (piece if self.hostile else tame(piece)) + end

    def name(self) -> str:
        """Give a part of a path; one that is hostile may begin with a dash."""
        self.count += 1
        piece = "".join(self.choose.choice(PIECES) for _ in range(self.choose.randint(1, 2)))
        piece = _encodable(piece).replace("/", "").replace("\0", "")[:48].rstrip(". ")
        start = self.choose.choice(("", "", "", "-", "--", "."))
        end = f"{CANARY}{self.count}"
        return f"{start if self.hostile else ''}{end}{piece}" if self.hostile else f"{end}{tame(piece)}"

    def literal(self) -> str:
        """Give a text as a Python literal."""
        text = self.text()
        if self.choose.random() < 0.5:
            return repr(text)
        written = text.replace("\\", "\\\\").replace('"', '\\"')
        return '"""' + "".join(each if each.isprintable() or each == "\n" else repr(each)[1:-1] for each in written) + '"""'

    def one(self) -> str:
        """Give a text on one line."""
        return self.text(lines=False)

    def maybe(self, make: Callable[[], str], share: float = 0.5) -> str:
        """Give what is made, or nothing."""
        made = make()
        return made if self.choose.random() < share else ""


def _encodable(text: str) -> str:
    return text.encode(errors="ignore").decode()


def _printable(text: str) -> str:
    return "".join(each for each in text if each.isprintable())


_QUOTES = re.compile(r"""[][\\"']""")


def _python(words: Words) -> str:
    one, literal = words.one, words.literal
    quoted = [literal() for _ in range(14)]
    return f"""\
# Owner(s): ["{_printable(_QUOTES.sub("", one()))}", "oncall: {words.count}"]
# {_printable(one())}
{literal()}
import argparse
import os
import unittest

import pytest
import torch
import torch.distributed as dist
{words.maybe(lambda: f"importlib.import_module({quoted[0]})")}

NAME = {quoted[1]}
OTHER: {quoted[2]} = os.environ.get({quoted[3]}, {literal()})
pytest.importorskip({quoted[4]}, reason={literal()})


class TestFirst{words.count}(unittest.TestCase):
    {literal()}

    @unittest.skipIf(os.environ[{quoted[5]}] == {quoted[6]}, {literal()})
    @unittest.skipIf(torch.cuda.device_count() < 2, {literal()})
    def test_one(self, x={quoted[7]}):
        {literal()}
        dist.all_reduce(x, {quoted[8]})
        torch.linalg.norm({quoted[9]})

    @unittest.skip({literal()})
    def test_two(self): pass


@pytest.mark.parametrize("y", [{quoted[11]}, {literal()}], ids=[{quoted[12]}, {literal()}])
@pytest.mark.parametrize("x", [{literal()}, 2])
@pytest.mark.skipif({quoted[13]} in os.environ, reason={literal()})
@pytest.mark.slow({literal()})
def test_three(x, y={literal()}) -> {literal()}:
    {literal()}
    raise ValueError({literal()})


def helper(*, a: {literal()} = {literal()}):
    {literal()}
    # {_printable(one())}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description={literal()})
    parser.add_argument({literal()}, help={literal()})
    unittest.main()
"""


def _markdown(words: Words) -> str:
    body = "\n\n".join(words.choose.choice((words.text, words.bare, words.one))() for _ in range(8))
    return (
        f"# {words.one()}\n\n{words.bare()}\n\n## {words.bare()}\n\n- {words.one()}\n\n{body}\n\n"
        f"```python\n{words.one()}\n```\n\n{words.bare()}\n===\n\n{words.text()}\n"
    )


def _shell(words: Words) -> str:
    return f"#!/bin/bash\n# {words.one()}\nexport {words.one()}=1\n{words.one()}() {{ :; }}\nfunction f { words.one()}\nsource {words.one()}\n"


def _cpp(words: Words) -> str:
    one = words.one
    return (
        f"// {one()}\n/* {one()} */\n#include <{one()}>\n#define {one()} 1\nTEST(A, {one()}) {{ }}\nnamespace {one()} {{ class B; }}\n"
        f"/// {one()}\n__global__ void f(int {one()}) {{}}\nstruct C : {one()} {{}};\nint operator<({one()});\ntemplate <{one()}> void g();\n"
    )


def _cmake(words: Words) -> str:
    one = words.one
    quoted = [json.dumps(one()) for _ in range(4)]
    return f"# {one()}\nadd_executable({quoted[0]} a.cpp)\nadd_test(NAME {quoted[1]} COMMAND {quoted[2]})\noption({quoted[3]} {one()})\ninclude({one()})\n"


def _toml(words: Words) -> str:
    return f'# {words.one()}\n[{json.dumps(_encodable(words.one()))}]\n{json.dumps(words.one())} = {json.dumps(words.one())}\n{words.one()}\n'


def _yaml(words: Words) -> str:
    return f"# {words.one()}\n{json.dumps(words.one())}: {json.dumps(words.one())}\n{words.one()}:\n  - {words.bare()}\n&a {words.one()}: *a\n"


def _json(words: Words) -> str:
    return json.dumps({words.text(): {words.one(): [words.text()]}, words.text(): 1}, indent=1)


def _javascript(words: Words) -> str:
    one = words.one
    return (
        f"// {one()}\nimport x from {json.dumps(one())};\nexport class A extends {one()} {{}}\nfunction {one()}() {{}}\n"
        f"test({json.dumps(one())}, () => {{}});\nconst {one()} = `{one()}`;\n"
    )


def _rust(words: Words) -> str:
    return f"//! {words.one()}\nuse {words.one()};\n/// {words.one()}\n#[test]\nfn {words.one()}() {{}}\nstruct {words.one()};\nmacro_rules! {words.one()} {{}}\n"


def _rst(words: Words) -> str:
    title = words.one()
    return f"{title}\n{'=' * len(title)}\n\n{words.text()}\n\n.. {words.one()}:: {words.one()}\n\n.. include:: {words.one()}\n\n{words.bare()}\n----\n"


def _docker(words: Words) -> str:
    return f"# {words.one()}\nFROM {words.one()} AS {words.one()}\nRUN {words.one()}\n"


def _make(words: Words) -> str:
    return f"# {words.one()}\n{words.one()}: {words.one()}\n\t{words.one()}\n{words.one()} := {words.one()}\ninclude {words.one()}\n"


def _plain(words: Words) -> str:
    return "\n".join(words.choose.choice((words.text, words.bare))() for _ in range(12))


MAKERS: Mapping[str, Callable[[Words], str]] = {
    ".py": _python,
    ".md": _markdown,
    ".sh": _shell,
    ".cpp": _cpp,
    ".cu": _cpp,
    ".cmake": _cmake,
    ".toml": _toml,
    ".yaml": _yaml,
    ".json": _json,
    ".js": _javascript,
    ".ts": _javascript,
    ".rs": _rust,
    ".rst": _rst,
    ".dockerfile": _docker,
    ".mk": _make,
    ".txt": _plain,
    ".go": _rust,
    ".java": _javascript,
    ".ipynb": _json,
    "": _plain,
}
"""What writes a file, by the end of its name."""


def tree(seed: object, *, hostile: bool = True, files: int = 8, suffixes: Sequence[str] = ()) -> dict[str, bytes]:
    """Make a tree of sources.

    Args:
        seed: of the choices; the tree and its tame twin have the same one.
        hostile: whether its texts are hostile.
        files: how many it has.
        suffixes: ends of their names; by default of all kinds. Where they are Python sources alone, both twins hold the same statements.
    """
    choose = random.Random(f"{seed}")
    words = Words(choose, hostile=hostile)
    folders = ["s", f"s/{words.name()}", f"s/{words.name()}/{words.name()}"]
    made: dict[str, bytes] = {"s/test_plain.py": b"import unittest\n\n\nclass TestPlain(unittest.TestCase):\n    def test_it(self):\n        pass\n"}
    for suffix in (choose.choice(suffixes or [*MAKERS]) for _ in range(files)):
        folder = choose.choice(folders)
        start = choose.choice(("", "test_"))
        name = f"{start}{words.name()}{suffix}"
        made[f"{folder}/{name}"] = _encodable(MAKERS[suffix](words)).encode()
    modules = [path for path in made if path.endswith(".py")]
    for path in modules[1:]:
        made[path] = made[path].replace(b"import argparse\n", b"import argparse\nfrom test_plain import TestPlain\nimport s.test_plain\n", 1)
    return made


def write(root: Path, files: Mapping[str, bytes]) -> None:
    """Write a tree."""
    for path, data in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


# Runs


def runs_of(files: Mapping[str, bytes], seed: object, *, hostile: bool = True, is_timed: bool = True) -> list[Run]:
    """Make runs of the sources of a tree, whatever a program may have printed in them.

    Args:
        files: the tree.
        seed: of the choices.
        hostile: whether the texts are hostile.
        is_timed: whether the times of the runs are times.
    """
    choose = random.Random(f"runs of {seed}")
    words = Words(choose, hostile=hostile)
    made = []
    for path, data in files.items():
        for number in range(choose.randint(0, 3)):
            outcome = choose.choice([each for each in Outcome if each is not Outcome.PROVED])
            ranks = tuple(RankEnd(words.one(), choose.choice((0, 1, -9, None)), 0.0, number + 1.0) for _ in range(choose.choice((0, 2, 3))))
            said = f"rank 0 waits in {words.text()}; rank 1 died {words.text()}"
            made.append(
                Run(
                    page=f"docs/{path}_docs.md",
                    node_id=f"docs/{path}_docs.md::{words.one()}[{words.text()}]",
                    listing=choose.choice((hashlib.sha256(data).hexdigest(), "0" * 64)),
                    source=path,
                    line=number + 1,
                    kind="test",
                    outcome=outcome,
                    reason=choose.choice((words.text(), said)),
                    duration=choose.random() * 100,
                    ranks=len(ranks),
                    when="2026-11-20T14:05:00+00:00" if is_timed else choose.choice(("2026-11-20T14:05:00+00:00", words.text())),
                    machine=choose.choice((words.one(), "2 × NVIDIA H200")),
                    engine=words.one(),
                    torch=words.one(),
                    commit=words.one(),
                    receipt=Receipt(ranks=ranks, backend=words.one(), device=words.one(), gpus=(words.one(),), note=words.one()),
                    needs=(words.one(), "2 GPUs"),
                    case={"id": words.one(), "line": number + 1, "marks": [words.one()]},
                )
            )
    return made


# Books


@dataclass(frozen=True, eq=False)
class Book:
    """A tree, its pages, and its site."""

    root: Path
    files: Mapping[str, bytes]
    pack: str = "rankbook"

    @property
    def settings(self) -> Settings:
        """How it is made."""
        return Settings(root=self.root, sources=("s",), out="docs", title="The book", jobs=1, findings=(), pack=self.pack)

    @cached_property
    def pages(self) -> dict[str, str]:
        """Its Markdown pages, by their paths."""
        return {
            path.relative_to(self.root / "docs").as_posix(): path.read_bytes().decode() for path in sorted((self.root / "docs").rglob("*.md"))
        }


def make(root: Path, files: Mapping[str, bytes], runs: Sequence[Run] = (), *, pack: str = "rankbook", directories: bool = False) -> Book:
    """Write a tree, and make its book."""
    write(root, files)
    book = Book(root, files, pack)
    settings = book.settings
    document(settings)
    if runs:
        Ledger(root / settings.ledger).record(runs)
    site = Site(settings, root / "docs", root / "site")
    docs = Docs(site)
    forge = Forge.of("https://github.com/owner/name", "main")
    published = checkout.Published(forge, forge.facts("0" * 40)) if forge else None
    publish(docs, shell(), directories=directories, ledgered=Ledgered(docs), forge=published)
    write_search(settings, root / "site", base="", addresses=Addresses(directories), survey=lambda: survey_tree(settings))
    return book


@cache
def shell() -> Shell:
    """The shell that MkDocs and Material build."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "docs").mkdir()
        (root / "docs/index.md").write_text(source("The book"))
        (root / "mkdocs.yml").write_text("site_name: A site\nuse_directory_urls: false\ntheme:\n  name: material\n  font: false\nplugins: []\n")
        environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet"], cwd=root, env=environment, check=True)
        return Shell.of((root / "site/index.html").read_text(), file="index.html", title="The book", label="The book")


# What must hold

_WORDS = re.compile(r"[\w -]*")
_RELATIVE = re.compile(r"(?:[\w.~%/-]*(?:#[\w%.-]*)?)")
_FORGE = re.compile(r"https://github\.com/owner/name/(?:edit|blob)/(?:main|\{commit\})/[\w.~%/-]*(?:\?plain=1)?")
_ANY = re.compile(r".*", re.DOTALL)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_ID = re.compile(r"[\w-]*")
_GLOBAL = {"class": _WORDS, "id": _ID, "hidden": re.compile(""), "aria-label": _ANY, "title": _ANY, "role": _WORDS, "tabindex": re.compile("0")}
_SVG_NUMBERS = ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height")
_SVG: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(_SVG_NUMBERS, _NUMBER),
    "viewBox": re.compile(r"[\d. ]*"),
    "d": re.compile(r"[\w. -]*"),
    "text-anchor": _WORDS,
    "points": re.compile(r"[\d., ]*"),
}
ALLOWED: Mapping[str, Mapping[str, re.Pattern[str]]] = {
    **dict.fromkeys(("h1", "h2", "h3", "p", "ul", "li", "strong", "em", "pre", "br", "hr", "table", "thead", "tbody", "tr"), {}),
    **dict.fromkeys(("small", "summary", "figure", "figcaption", "caption", "b", "ol", "i", "nav", "span", "div", "del"), {}),
    **dict.fromkeys(("th", "td"), {"style": re.compile(r"text-align: (?:left|right|center)"), "scope": re.compile("col|row")}),
    "code": {"class": re.compile("nohighlight")},
    "bdi": {"title": re.compile(r"U\+[0-9A-F]{4,6}")},
    "details": {"open": re.compile("")},
    "time": {"datetime": re.compile(r"[\dTZ:+.-]*")},
    "i": {"style": re.compile(r"(?:flex-grow:\d+|width:\d+%)")},
    "ol": {"start": _NUMBER},
    "a": {
        "href": re.compile(f"{_RELATIVE.pattern}|{_FORGE.pattern}"),
        "rel": re.compile("prev|next"),
        "data-commit": _FORGE,
    },
    "img": {"src": re.compile(r"imports\.svg"), "alt": _ANY},
    "div": {"data-rankbook": _WORDS},
    **dict.fromkeys(("svg", "g", "line", "text", "title", "path", "circle"), _SVG),
}
"""Elements that a page may hold, with the attributes that each may have besides those of all, and what these may say."""
_OF_SHAPE = ("h1", "h2", "h3", "h4", "table", "tr", "td", "th", "ul", "ol", "li", "p", "a", "img", "hr", "blockquote", "pre", "dl", "br", "div")
"""Elements by whose numbers a page is compared with that of the tame twin."""


def problems(book: Book, twin: Book | None = None, *, engines: float = 1.0, seed: object = 0) -> Iterator[str]:
    """Say what is wrong with a book.

    Args:
        book: made of a hostile tree.
        twin: made of its tame twin; None where there is none.
        engines: share of the pages that is also rendered as engines and forges do.
        seed: chooses those.
    """
    pages = book.pages
    twins = dict(zip(sorted_alike(book.files), sorted_alike(twin.files), strict=True)) if twin else {}
    choose = random.Random(f"engines {seed}")
    yield from _missing(book, pages)
    for path, page in pages.items():
        with _where(path) as told:
            told += _front_matter(path, page)
            stamped = _read_site(book, path)
            told += _elements(stamped, path, book)
            told += _rows(stamped, "stamped")
            if choose.random() < engines:
                told += _engines(page, stamped)
            if twin is not None:
                other = _twin_page(path, twins)
                told += _compared(stamped, _read_site(twin, other)) if other in twin.pages else [f"the tame twin has no page {other}"]
        yield from told
    yield from _listings(book, pages)
    yield from _search(book)
    yield from _pictures(book)
    yield from _inventory(book)


@contextlib.contextmanager
def _where(path: str) -> Iterator[list[str]]:
    told: list[str] = []
    yield told
    told[:] = [f"{path!r}: {each}" for each in told]


def sorted_alike(files: Mapping[str, bytes]) -> list[str]:
    """Give the paths of a tree in the order in which they were made, which is that of its twin."""
    return list(files)


def _twin_page(path: str, twins: Mapping[str, str]) -> str:
    for suffix in ("_docs.md", "_kw.md"):
        if path.endswith(suffix) and path.removesuffix(suffix) in twins:
            return twins[path.removesuffix(suffix)] + suffix
    folder, _, name = path.rpartition("/")
    depth = folder.count("/")
    other = next((twins[file].split("/") for file in twins if file.startswith(f"{folder}/")), None) if folder else []
    return path if other is None else posixpath.join("/".join(other[: depth + 1] if folder else []), name)


def _missing(book: Book, pages: Mapping[str, str]) -> Iterator[str]:
    for path in book.files:
        for suffix in ("_docs.md", "_kw.md"):
            if f"{path}{suffix}" not in pages:
                yield f"{path!r}: there is no page {suffix}"


def _front_matter(path: str, page: str) -> list[str]:
    told = []
    head, _, _ = page.removeprefix("---\n").partition("\n---\n")
    values = yaml.safe_load(head)
    if not set(values) <= {"title", "rankbook", "search"} or values.get("search", {"exclude": True}) != {"exclude": True}:
        told.append(f"front matter has the keys {sorted(values)}")
    stamp = front_matter.read(values)
    if stamp is None:
        return [*told, "front matter has no stamp"]
    kind = {"_docs.md": "file", "_kw.md": "keywords"}.get(next((end for end in ("_docs.md", "_kw.md") if path.endswith(end)), ""), "")
    if kind and (stamp.page, stamp.source) != (kind, path.removesuffix("_docs.md").removesuffix("_kw.md")):
        told.append(f"front matter names {stamp.page} {stamp.source!r}")
    if re.search(r"[<>]", stamp.title) or html.escape(html.unescape(stamp.title), quote=False) != stamp.title:
        told.append(f"title is no plain text: {stamp.title!r}")
    if "\n" in stamp.title:
        told.append("title has several lines")
    return told


def _read_site(book: Book, path: str) -> LexborHTMLParser:
    return LexborHTMLParser((book.root / "site" / Addresses().file(path)).read_bytes().decode())


def _elements(page: LexborHTMLParser, path: str, book: Book) -> list[str]:
    told = []
    article = page.css("div.rankbook-page")
    if len(article) != 1:
        return [f"there are {len(article)} pages in the page"]
    inside = {node.mem_id for node in article[0].traverse()}
    forms = _shell_forms()
    ids: Counter[str] = Counter()
    for node in _nodes(page):
        tag, attributes = node.tag, node.attributes
        if tag is None:
            continue
        if identifier := attributes.get("id"):
            ids[identifier] += 1
        if node.mem_id not in inside:
            told += [f"<{tag} {name}> stands outside of the article" for name in ("", *attributes) if (tag, name) not in forms]
            told += [f"<{tag} {name}={value!r}> outside of the article" for name, value in attributes.items() if _is_bad(tag, name, value)]
            continue
        allowed = ALLOWED.get(tag)
        if allowed is None:
            told.append(f"<{tag}> stands in the article")
            continue
        for name, value in attributes.items():
            if name == "href" and tag == "a":
                told += _link(value or "", path, book)
            patterns = [form for form in (allowed.get(name), _GLOBAL.get(name)) if form is not None]
            if not any(form.fullmatch(value or "") for form in patterns):
                told.append(f"<{tag} {name}={value!r}> stands in the article")
    told += [f"the id {name!r} is there {count} times" for name, count in ids.items() if count > 1]
    if _CONTROLS.search(page.html or ""):
        told.append("a control character stands in the page")
    return told


_CONTROLS = re.compile("[\x00]")


def _nodes(page: LexborHTMLParser) -> Iterator[LexborNode]:
    root = page.root
    assert root is not None
    yield from root.traverse()


def _is_bad(tag: str, name: str, value: str | None) -> bool:
    return name.startswith("on") or bool(re.match(r"\s*(?:javascript|data|vbscript):", value or "", re.IGNORECASE) and tag != "img")


@cache
def _shell_forms() -> frozenset[tuple[str, str]]:
    """Elements and attributes that the theme makes, of a page with headings."""
    from rankbook.site.markdown import Heading

    headings = [Heading(2, "a", "A"), Heading(3, "b", "B"), Heading(2, "c", "C")]
    contents = shell().contents
    values = dict.fromkeys(("title", "name", "address", "description", "top", "content"), "")
    page = LexborHTMLParser(shell().filled(0, {**values, "contents": contents.of(headings) if contents else ""}))
    return frozenset((node.tag or "", name) for node in _nodes(page) for name in ("", *node.attributes))


def _link(href: str, path: str, book: Book) -> list[str]:
    parts = urlsplit(href)
    if _FORGE.fullmatch(href):
        return []
    if parts.scheme or parts.netloc:
        return [f"a link leads to {href!r}"]
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(parts.path))) if parts.path else ""
    if target.startswith(".."):
        return [f"a link leads out of the site: {href!r}"]
    if target and not (book.root / "site" / target).is_file():
        return [f"a link leads nowhere: {href!r}"]
    return []


def _rows(page: LexborHTMLParser, where: str) -> list[str]:
    told = []
    for table in page.css("table"):
        widths = {len(row.css("td, th")) for row in table.css("tr")}
        if len(widths) > 1:
            told.append(f"{where}: the rows of a table have {sorted(widths)} cells: {' '.join(table.text().split())[:200]!r}")
    return told


def _shape(page: LexborHTMLParser) -> Counter[str]:
    """Count elements; neighbours are left out, for paths are in another order in the tame twin."""
    found: Counter[str] = Counter()
    for node in page.css("nav.rankbook-steps"):
        node.decompose()
    for node in page.css("div.rankbook-page")[0].traverse():
        if node.tag in _OF_SHAPE:
            found[node.tag] += 1
    return found


def _compared(page: LexborHTMLParser, twin: LexborHTMLParser) -> list[str]:
    ours, theirs = _shape(page), _shape(twin)
    return [] if ours == theirs else [f"it has {dict(ours - theirs)} more and {dict(theirs - ours)} less than its tame twin"]


# The same pages elsewhere

_EXTENSIONS = [
    "admonition", "attr_list", "def_list", "md_in_html", "tables", "toc", "pymdownx.details", "pymdownx.highlight", "pymdownx.superfences",
    "pymdownx.tabbed",
]  # fmt: skip
_CONFIGS: dict[str, dict[str, Any]] = {
    "pymdownx.highlight": {"use_pygments": False},
    "pymdownx.superfences": {"preserve_tabs": True},
    "pymdownx.tabbed": {"alternate_style": True},
}
_NEVER = ("No listing of this page has been run yet.", "None of the ", "No machine has run ")
"""How sentences begin that stand for runs where there were none."""
_NOTE = re.compile(r"^.*\n\n<!-- rankbook:[a-z-]+ -->$", re.MULTILINE)
_OF_ENGINES = ("h1", "h2", "h3", "h4", "table", "tr", "td", "th", "ul", "ol", "li", "a", "img", "hr", "blockquote", "pre", "dl", "details", "input")


def by_engine(text: str) -> str:
    """Render as MkDocs does."""
    return python_markdown.markdown(text, extensions=_EXTENSIONS, extension_configs=_CONFIGS)


def by_forge(text: str) -> str:
    """Render as a forge does."""
    return MarkdownIt("commonmark").enable("table").enable("strikethrough").render(text)


def _engines(page: str, stamped: LexborHTMLParser) -> list[str]:
    told = []
    body = page[front_matter.split(page)[1] :]
    body = _NOTE.sub("", body)
    ours, said = _outline(stamped.css("div.rankbook-page")[0].html or "")
    for name, render in (("MkDocs", by_engine), ("a forge", by_forge)):
        made = render(body)
        counts, text = _outline(made)
        if counts != ours:
            told.append(f"{name} shows {dict(counts - ours)} more and {dict(ours - counts)} less")
        if text != said:
            place = next((place for place, (a, b) in enumerate(zip(text, said, strict=False)) if a != b), min(len(text), len(said)))
            told.append(f"{name} says {text[max(0, place - 40) : place + 60]!r} for {said[max(0, place - 40) : place + 60]!r}")
        told += _foreign(made, name)
    return told


_FOREIGN = {"script", "style", "iframe", "img", "svg", "object", "embed", "form", "input", "base", "link", "meta", "details", "math", "template"}


def _foreign(made: str, name: str) -> list[str]:
    told = []
    page = LexborHTMLParser(made)
    for node in _nodes(page):
        if node.tag in _FOREIGN and not (node.tag == "img" and node.attributes.get("src") == "imports.svg") and node.tag not in {"meta", "link"}:
            told.append(f"{name} makes a <{node.tag}>")
        for attribute, value in node.attributes.items():
            if _is_bad(node.tag or "", attribute, value) or (attribute in {"href", "src"} and re.match(r"\s*(?:[a-z][a-z0-9+.-]*:|//)", value or "", re.IGNORECASE)):
                told.append(f"{name} makes <{node.tag} {attribute}={value!r}>")
    told += _rows(page, name)
    return told


def _outline(made: str) -> tuple[Counter[str], str]:
    page = LexborHTMLParser(made)
    for node in page.css(
        "pre, a.headerlink, .rankbook-actions, .rankbook-steps, .rankbook-head, .rankbook-run, .rankbook-runs, .rankbook-rollup, .rankbook-row,"
        ".rankbook-filter, .rankbook-outcome, p.rankbook-rollup"
    ):
        if node.tag == "pre":
            node.replace_with("")
        else:
            node.decompose()
    for node in page.css("p"):
        if node.text().startswith(_NEVER):
            node.decompose()
    counts: Counter[str] = Counter()
    for node in _nodes(page):
        if node.tag in _OF_ENGINES:
            counts[node.tag] += 1
    return counts, "".join((page.body.text() if page.body else "").split())


# What else is made


def _listings(book: Book, pages: Mapping[str, str]) -> Iterator[str]:
    for path, data in book.files.items():
        found = embed(data)
        page = pages.get(f"{path}_docs.md")
        if page is None or not isinstance(found, Embedded) or not found.text:
            continue
        raw = (book.root / "site" / Addresses().file(f"{path}_docs.md")).read_bytes().decode()
        shown = LexborHTMLParser(raw).css("div.rankbook-source pre code")
        text = shown[0].text() if shown else None
        if text is None or text != _displayable(found.text):
            yield f"{path!r}: its listing differs on the site"
        fences = [match.end() for match in re.finditer(r'^`{3,}[^`\n]*\{#source linenums="1"\}\n', page, re.MULTILINE)]
        if not any(page.startswith(found.text, place) for place in fences):
            yield f"{path!r}: its listing differs on its page"


def _displayable(text: str) -> str:
    return re.sub("[\x00\ud800-\udfff]", "\ufffd", text)


def _search(book: Book) -> Iterator[str]:
    folder = book.root / "site/assets/rankbook-search"
    places: set[str] = set()
    known = json.loads((folder / "index.json").read_bytes())
    for file in folder.glob("*.json"):
        told = json.loads(file.read_bytes())
        if file.name == "index.json":
            continue
        for place, rows in told.items():
            places.add(place)
            for row in rows.split("\n"):
                if row[:1] not in known["kinds"] or not re.match(r"[a-z]\d*(?: |\Z)", row):
                    yield f"{place!r}: the search has the row {row!r}"
    strangers = {place for place in places if not place.startswith("/")} - set(book.files)
    if strangers:
        yield f"the search knows {sorted(strangers)!r}"
    if missing := set(book.files) - places:
        yield f"the search does not know {sorted(missing)!r}"


_PICTURE = {"svg", "title", "desc", "style", "defs", "marker", "path", "rect", "g", "text", "a"}


def _pictures(book: Book) -> Iterator[str]:
    for file in (book.root / "site").rglob("*.svg"):
        for node in ET.parse(file).iter():  # noqa: S314 - ours, and the check is that it parses
            tag = node.tag.rpartition("}")[2]
            if tag not in _PICTURE:
                yield f"{file.name} holds <{tag}>"
            for name, value in node.attrib.items():
                if name.startswith("on") or (name.rpartition("}")[2] == "href" and not _RELATIVE.fullmatch(value)):
                    yield f"{file.name} holds <{tag} {name}={value!r}>"


_ENTRY = re.compile(r"(.+?)\s+(\S+)\s+(-?\d+)\s+?(\S*)\s+(.*)")
"""How Sphinx reads a line of an inventory."""
_ROLES = {"std:doc", "std:label", "py:module", "py:class", "py:method", "py:function"}


def _inventory(book: Book) -> Iterator[str]:
    lines = _inventory_of(book)
    for line in lines:
        match = _ENTRY.match(line)
        if match is None or match[2] not in _ROLES:
            yield f"objects.inv holds {line!r}"
            continue
        target = unquote(match[4].partition("#")[0])
        if not (book.root / "site" / target).is_file():
            yield f"objects.inv leads to {match[4]!r} for {match[1]!r}"


def _inventory_of(book: Book) -> list[str]:
    data = (book.root / "docs/objects.inv").read_bytes()
    head, body = data.split(b"zlib.\n", 1)
    assert head.count(b"\n") == 3
    return zlib.decompress(body).decode().splitlines()


# Nothing outside


_EVENTS = {"open": 0, "os.mkdir": 0, "os.remove": 0, "os.rename": 1, "os.rmdir": 0, "os.symlink": 1, "os.link": 1, "os.truncate": 0, "os.chmod": 0}
_watched: list[set[str]] = []
_hooked = False
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    place = _EVENTS.get(event)
    if place is None or not _watched:
        return
    if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & _WRITING):
        return
    path = arguments[place]
    if isinstance(path, (str, bytes, os.PathLike)):
        name = os.path.realpath(os.path.dirname(os.fsdecode(path) or "."))  # noqa: PTH120 - a hook of the interpreter
        _watched[-1].add(os.path.join(name, os.path.basename(os.fsdecode(path))))  # noqa: PTH118, PTH119


@contextlib.contextmanager
def watched() -> Iterator[set[str]]:
    """Collect the paths that this process writes, makes, moves or removes, with links on the way to them resolved."""
    global _hooked  # noqa: PLW0603 - a hook cannot be taken away
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked = True
    _watched.append(set())
    try:
        yield _watched[-1]
    finally:
        _watched.pop()


# Mutations

_BYTES = tuple(piece.encode(errors="surrogatepass") for piece in PIECES)


def mutated(data: bytes, choose: random.Random) -> bytes:
    """Change a file in a few places: hostile texts put in, lines repeated, moved and lost, bytes changed."""
    for _ in range(choose.randint(1, 8)):
        data = choose.choice(_CHANGES)(data, choose)
    return data


def _insert(data: bytes, choose: random.Random) -> bytes:
    place = choose.randint(0, len(data))
    return data[:place] + choose.choice(_BYTES) + data[place:]


def _insert_line(data: bytes, choose: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    place = choose.randint(0, len(lines))
    indent = b" " * choose.choice((0, 0, 1, 3, 4, 8))
    return b"".join([*lines[:place], indent + choose.choice(_BYTES) + choose.choice((b"\n", b"\r\n", b"\r", b"")), *lines[place:]])


def _insert_into_word(data: bytes, choose: random.Random) -> bytes:
    words = list(re.finditer(rb"\w+", data[: 1 << 20]))
    if not words:
        return data + choose.choice(_BYTES)
    match = choose.choice(words)
    return data[: match.start()] + choose.choice(_BYTES) + data[match.end() :]


def _insert_into_string(data: bytes, choose: random.Random) -> bytes:
    quotes = list(re.finditer(rb"[\"']", data[: 1 << 20]))
    if not quotes:
        return data
    place = choose.choice(quotes).end()
    return data[:place] + choose.choice(_BYTES) + data[place:]


def _repeat(data: bytes, choose: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    place = choose.randrange(len(lines))
    return b"".join([*lines[:place], *lines[place : place + choose.randint(1, 9)] * choose.randint(1, 5), *lines[place:]])


def _lose(data: bytes, choose: random.Random) -> bytes:
    start = choose.randint(0, len(data))
    return data[:start] + data[start + choose.randint(1, 200) :]


def _move(data: bytes, choose: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return data
    line = lines.pop(choose.randrange(len(lines)))
    lines.insert(choose.randint(0, len(lines)), line)
    return b"".join(lines)


def _byte(data: bytes, choose: random.Random) -> bytes:
    place = choose.randint(0, len(data))
    return data[:place] + bytes([choose.randrange(256)]) + data[place + 1 :]


_CHANGES = (_insert, _insert, _insert_line, _insert_line, _insert_into_word, _insert_into_string, _insert_into_string, _repeat, _lose, _move, _byte)


def mutated_tree(originals: Sequence[tuple[str, bytes]], seed: object, *, files: int = 8) -> dict[str, bytes]:
    """Make a tree of mutated files.

    Args:
        originals: names and contents of real files.
        seed: of the choices.
        files: how many it has.
    """
    choose = random.Random(f"mutations {seed}")
    words = Words(choose, hostile=True)
    folders = ["s", f"s/{words.name()}"]
    made = {}
    for number in range(files):
        name, data = choose.choice(originals)
        name = choose.choice((f"{number}{name}", f"{words.name()}{Path(name).suffix}"))
        made[f"{choose.choice(folders)}/{name}"] = mutated(data, choose)
    return made


# Pages as input


def page_problems(page: str, seed: object) -> Iterator[str]:
    """Say what is wrong with what a page becomes whose Markdown anybody may have written."""
    from rankbook.errors import RankbookError
    from rankbook.pages.notes import notes_of
    from rankbook.pages.seals import look
    from rankbook.site.markdown import render

    data = mutated(page.encode(errors="surrogateescape"), random.Random(f"page {seed}"))
    text = data.decode(errors="replace")
    look(data)
    with contextlib.suppress(RankbookError):
        notes_of(data, "p.md")
    body = text[front_matter.split(text)[1] :]
    made = LexborHTMLParser(render(body, "s/p.md", Addresses()).html)
    for node in _nodes(made):
        tag = node.tag or ""
        if tag in {"html", "head", "body"} or tag not in {*ALLOWED, "h4", "h5", "h6", "blockquote", "del"}:
            if tag not in {"html", "head", "body", "-undef", "-text", "-comment", "!doctype", "-document"}:
                yield f"<{tag}> stands on the page"
            continue
        allowed = {**_GLOBAL, **ALLOWED.get(tag, {}), **_OF_PAGES.get(tag, {})}
        yield from (f"<{tag} {name}={value!r}>" for name, value in node.attributes.items() if name not in allowed or _is_bad(tag, name, value))
        source = node.attributes.get("src") if tag == "img" else None
        if source and re.match(r"\s*(?:[a-z][a-z0-9+.-]*:(?!,\Z)|//|\\)", source, re.IGNORECASE):
            yield f"a picture is loaded from {source!r}"


_OF_PAGES: Mapping[str, Mapping[str, object]] = {"a": {"title": 0, "href": 0}, "img": {"src": 0, "alt": 0}, "code": {"class": 0}, "ol": {"start": 0}}


def collected(page: str, seed: object, site: Any) -> None:
    """Collect the listings of a mutated page; only a page error may come of it."""
    from rankbook import listings
    from rankbook.errors import PageError

    data = mutated(page.encode(errors="surrogateescape"), random.Random(f"listings {seed}"))
    with contextlib.suppress(PageError):
        listings.collecting.collect_text(data.decode(errors="replace"), "p.md", site)
