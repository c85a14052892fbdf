"""Books of hostile trees, and what must hold of them: known elements and links, exact listings, and the same wherever they are shown."""

from __future__ import annotations

import contextlib
import html
import io
import json
import os
import posixpath
import random
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import markdown as python_markdown
import yaml
from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser, LexborNode

from hostile import Words, changed_tree, mutated, runs_of, tree, write
from rankbook import front_matter, listings
from rankbook.config import Settings
from rankbook.document import document, survey_tree
from rankbook.embedding import Embedded, embed
from rankbook.errors import PageError, RankbookError
from rankbook.ledger import Ledger
from rankbook.listing import Run
from rankbook.pages.notes import notes_of
from rankbook.pages.seals import look
from rankbook.publish import Docs, Ledgered, Site, publish
from rankbook.searching import write as write_search
from rankbook.site import checkout
from rankbook.site.addresses import Addresses
from rankbook.site.forge import Forge
from rankbook.site.markdown import Heading, render
from rankbook.site.shell import Shell, source


@dataclass(frozen=True, eq=False)
class Book:
    """A tree, its pages, and its site."""

    root: Path
    files: Mapping[str, bytes]
    pack: str = "rankbook"
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further settings."""

    @property
    def settings(self) -> Settings:
        """How it is made."""
        told: dict[str, Any] = {"title": "The book", "findings": (), "pack": self.pack, **self.more}
        return Settings(root=self.root, sources=("s",), out="docs", jobs=1, **told)

    @cached_property
    def pages(self) -> dict[str, str]:
        """Its Markdown pages, by their paths."""
        return {
            path.relative_to(self.root / "docs").as_posix(): path.read_bytes().decode()
            for path in sorted((self.root / "docs").rglob("*.md"))
        }


def make(
    root: Path,
    files: Mapping[str, bytes],
    runs: Sequence[Run] = (),
    *,
    pack: str = "rankbook",
    directories: bool = False,
    more: Mapping[str, Any] | None = None,
) -> Book:
    """Write a tree, and make its book; where there is one already, of what has changed."""
    write(root, files)
    book = Book(root, files, pack, more or {})
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


def differences(seed: object, top: Path, *, pack: str, files: int = 5, steps: int = 3) -> Iterator[str]:
    """Say what is different in a book of a hostile tree that has changed a few times, from one that is made of what it has become at once.

    Args:
        seed: of the tree, of the changes, and of how the book is made.
        top: folder for both.
        pack: of templates.
        files: sources of the tree.
        steps: how often it changes.
    """
    choose = random.Random(f"settings of {seed}")
    words = Words(choose, hostile=True)
    more = {
        "title": words.one().encode(errors="ignore").decode(),
        "findings": choose.choice(((), ("S", "PERF", "PT", "B", "F", "D"))),
        "apis": choose.choice(((), ("s.*", "torch.linalg"))),
    }
    made = partial(make, pack=pack, directories=choose.choice((False, True)), more=more)
    found = tree(seed, files=files)
    made(top / "changed", found, runs_of(found, seed))
    for step in range(steps):
        before, found = found, changed_tree(found, f"{step} of {seed}")
        for path in before.keys() - found.keys():
            (top / "changed" / path).unlink()
        made(top / "changed", found, runs_of(found, f"{step} of {seed}"))
    write(top / "new", {name: (top / "changed" / name).read_bytes() for name in (Settings().ledger,)})
    made(top / "new", found)
    changed, new = (_everything(top / name) for name in ("changed", "new"))
    yield from (f"{path!r} is not that of a new book" for path in sorted(changed.keys() | new) if changed.get(path) != new.get(path))


def _everything(root: Path) -> dict[str, bytes]:
    paths = (path for name in ("docs", "site") for path in (root / name).rglob("*"))
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths if path.is_file()}


@cache
def shell() -> Shell:
    """The shell that MkDocs and Material build."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "docs").mkdir()
        (root / "docs/index.md").write_text(source("The book"))
        (root / "mkdocs.yml").write_text(
            "site_name: A site\nuse_directory_urls: false\ntheme:\n  name: material\n  font: false\nplugins: []\n"
        )
        environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet"], cwd=root, env=environment, check=True)
        return Shell.of((root / "site/index.html").read_text(), file="index.html", title="The book", label="The book")


# What must hold

_WORDS = re.compile(r"[\w -]*")
_RELATIVE = re.compile(r"(?:[\w.~%/-]*(?:#[\w%.-]*)?)")
_ROW = re.compile(r"(?:\.\./)*suite-(?:owners|hardware)\.html\?row=[\w.~%-]+#(?:owners|hardware)", re.ASCII)
_FORGE = re.compile(r"https://github\.com/owner/name/(?:edit|blob)/(?:main|\{commit\})/[\w.~%/-]*(?:\?plain=1)?")
_ANY = re.compile(r".*", re.DOTALL)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_ID = re.compile(r"[\w-]*")
_GLOBAL = {
    "class": _WORDS,
    "id": _ID,
    "hidden": re.compile(""),
    "aria-label": _ANY,
    "title": _ANY,
    "role": _WORDS,
    "tabindex": re.compile("0"),
}
_SVG_NUMBERS = ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height")
_SVG: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(_SVG_NUMBERS, _NUMBER),
    "viewBox": re.compile(r"[\d. ]*"),
    "d": re.compile(r"[\w. -]*"),
    "text-anchor": _WORDS,
    "points": re.compile(r"[\d., ]*"),
}
_NONE: Mapping[str, re.Pattern[str]] = {}
_CELL: Mapping[str, re.Pattern[str]] = {
    "style": re.compile(r"text-align: (?:left|right|center)"),
    "scope": re.compile("col|row"),
    "colspan": _NUMBER,
}
_COLUMNS = "Ranks|torch|Engine|Commit|Coverage|Started|Entered the test|Last seen|Last call of torch.distributed|Last heard of it"
"""Whose names a phone says before their cells."""
_PLAIN = (
    *(
        "h1",
        "h2",
        "h3",
        "p",
        "ul",
        "li",
        "strong",
        "em",
        "pre",
        "br",
        "hr",
        "thead",
        "tbody",
        "tr",
        "small",
        "summary",
        "var",
        "wbr",
    ),
    *("figure", "figcaption", "caption", "b", "u", "nav", "span", "del"),
)
_ENGLISH = {"lang": re.compile("en"), "dir": re.compile("ltr")}
ALLOWED: Mapping[str, Mapping[str, re.Pattern[str]]] = {
    **dict.fromkeys(_PLAIN, _NONE),
    **dict.fromkeys(("th", "td"), _CELL),
    "code": {"class": re.compile("nohighlight")},
    "section": {"id": re.compile(r"rb-listing:[\w.:\[\]-]*"), "data-search-exclude": re.compile(""), **_ENGLISH},
    "bdi": {"title": re.compile(r"U\+[0-9A-F]{4,6}")},
    "details": {"open": re.compile("")},
    "time": {"datetime": re.compile(r"[\dTZ:+.-]*")},
    "table": {"style": re.compile(rf"(?:--rb-\d:'(?:{_COLUMNS}): ';)+")},
    "span": {"style": re.compile(r"--before:\d+")},
    "i": {"style": re.compile(r"(?:flex-grow:\d+|width:\d+%)")},
    "ol": {"start": _NUMBER},
    "a": {
        "href": re.compile(f"{_RELATIVE.pattern}|{_ROW.pattern}|{_FORGE.pattern}"),
        "rel": re.compile("prev|next"),
        "data-commit": _FORGE,
    },
    "img": {"src": re.compile(r"imports\.svg"), "alt": _ANY},
    "div": {
        "data-rankbook": _WORDS,
        "data-folder": re.compile(r"[\w@%+=:,./-]+/", re.ASCII),
        "class": re.compile(r"language-objective-c\+\+ highlight rankbook-source"),
        **_ENGLISH,
    },
    **dict.fromkeys(("svg", "g", "line", "text", "title", "path", "circle"), _SVG),
}
"""Elements that a page may hold, with the attributes that each may have besides those of all, and what these may say."""
_OF_SHAPE = (
    "h1",
    "h2",
    "h3",
    "h4",
    "table",
    "tr",
    "td",
    "th",
    "ul",
    "ol",
    "li",
    "p",
    "a",
    "img",
    "hr",
    "blockquote",
    "pre",
    "dl",
    "br",
    "div",
)
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
    twins = dict(zip(book.files, twin.files, strict=True)) if twin else {}
    choose = random.Random(f"engines {seed}")
    yield from _missing(book, pages)
    for path, page in pages.items():
        stamped = _read_site(book, path)
        told = [*_front_matter(path, page), *_elements(stamped, path, book), *_rows(stamped, "the site")]
        if choose.random() < engines:
            told += _engines(page, stamped)
        if twin is not None:
            other = _twin_page(path, twins)
            told += _compared(stamped, _read_site(twin, other)) if other in twin.pages else [f"the tame twin has no page {other}"]
        yield from (f"{path!r}: {each}" for each in told)
    yield from _listings(book, pages)
    yield from _search(book)
    yield from _pictures(book)
    yield from _inventory(book)


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
    for node in nodes(page):
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


def nodes(page: LexborHTMLParser) -> Iterator[LexborNode]:
    root = page.root
    assert root is not None
    yield from root.traverse()


def _is_bad(tag: str, name: str, value: str | None) -> bool:
    return name.startswith("on") or bool(re.match(r"\s*(?:javascript|data|vbscript):", value or "", re.IGNORECASE) and tag != "img")


@cache
def _shell_forms() -> frozenset[tuple[str, str]]:
    """Elements and attributes that the theme makes, of a page with headings."""
    headings = [Heading(2, "a", "A"), Heading(3, "b", "B"), Heading(2, "c", "C")]
    contents = shell().contents
    values = dict.fromkeys(("title", "name", "address", "description", "top", "content"), "")
    page = LexborHTMLParser(shell().filled(0, {**values, "contents": contents.of(headings) if contents else ""}))
    return frozenset((node.tag or "", name) for node in nodes(page) for name in ("", *node.attributes))


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
        widths = {sum(int(cell.attributes.get("colspan") or 1) for cell in row.css("td, th")) for row in table.css("tr")}
        if len(widths) > 1:
            told.append(f"{where}: the rows of a table have {sorted(widths)} cells: {' '.join(table.text().split())[:200]!r}")
    return told


def _shape(page: LexborHTMLParser) -> Counter[str]:
    """Count elements.

    Neighbours are left out, for paths are in another order in the tame twin, and so are links from the table of owners to the headings of
    its own page: which of them there are hangs on what engines and forges make of a name.
    """
    found: Counter[str] = Counter()
    for node in page.css("nav.rankbook-steps"):
        node.decompose()
    title = page.css_first("h1")
    if title is not None and title.text().startswith("Owners"):
        for node in page.css("td a[href^='#']"):
            node.unwrap()
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
_OF_ENGINES = (
    "h1",
    "h2",
    "h3",
    "h4",
    "table",
    "tr",
    "td",
    "th",
    "ul",
    "ol",
    "li",
    "a",
    "img",
    "hr",
    "blockquote",
    "pre",
    "dl",
    "details",
    "input",
)


def by_engine(text: str) -> str:
    """Render as MkDocs does, which reads a page with all line ends made one."""
    text = io.StringIO(text, newline=None).read()
    return python_markdown.markdown(text, extensions=_EXTENSIONS, extension_configs=_CONFIGS)


def by_forge(text: str) -> str:
    """Render as a forge does."""
    return MarkdownIt("commonmark").enable("table").enable("strikethrough").render(text)


def _engines(page: str, stamped: LexborHTMLParser) -> list[str]:
    told = []
    body = page[front_matter.split(page)[1] :]
    body = _NOTE.sub("", body)
    ours, said = _outline(stamped.css("div.rankbook-page")[0].html or "")
    for name, engine in (("MkDocs", by_engine), ("a forge", by_forge)):
        made = engine(body)
        counts, text = _outline(made)
        if counts != ours:
            told.append(f"{name} shows {dict(counts - ours)} more and {dict(ours - counts)} less")
        if text != said:
            place = next((place for place, (a, b) in enumerate(zip(text, said, strict=False)) if a != b), min(len(text), len(said)))
            told.append(f"{name} says {text[max(0, place - 40) : place + 60]!r} for {said[max(0, place - 40) : place + 60]!r}")
        told += _foreign(made, name)
    return told


_FOREIGN = {
    "script",
    "style",
    "iframe",
    "img",
    "svg",
    "object",
    "embed",
    "form",
    "input",
    "base",
    "link",
    "meta",
    "details",
    "math",
    "template",
}


def _foreign(made: str, name: str) -> list[str]:
    told = []
    page = LexborHTMLParser(made)
    for node in nodes(page):
        if (
            node.tag in _FOREIGN
            and not (node.tag == "img" and node.attributes.get("src") == "imports.svg")
            and node.tag not in {"meta", "link"}
        ):
            told.append(f"{name} makes a <{node.tag}>")
        for attribute, value in node.attributes.items():
            if _is_bad(node.tag or "", attribute, value) or (
                attribute in {"href", "src"} and re.match(r"\s*(?:[a-z][a-z0-9+.-]*:|//)", value or "", re.IGNORECASE)
            ):
                told.append(f"{name} makes <{node.tag} {attribute}={value!r}>")
    told += _rows(page, name)
    return told


_NOT_OF_THE_PAGE = (
    "pre, a.headerlink, .rankbook-actions, .rankbook-steps, .rankbook-head, .rankbook-run, .rankbook-runs, .rankbook-rollup, "
    ".rankbook-row, .rankbook-filter, .rankbook-outcome"
)
"""Listings, and what only the site knows."""


def _outline(made: str) -> tuple[Counter[str], str]:
    page = LexborHTMLParser(made)
    for node in page.css(_NOT_OF_THE_PAGE):
        if node.tag == "pre":
            node.replace_with("")
        else:
            node.decompose()
    for node in page.css("p"):
        if node.text().startswith(_NEVER):
            node.decompose()
    counts: Counter[str] = Counter()
    for node in nodes(page):
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
        for node in ET.parse(file).iter():
            tag = node.tag.rpartition("}")[2]
            if tag not in _PICTURE:
                yield f"{file.name} holds <{tag}>"
            for name, value in node.attrib.items():
                if name.startswith("on") or (name.rpartition("}")[2] == "href" and not _RELATIVE.fullmatch(value)):
                    yield f"{file.name} holds <{tag} {name}={value!r}>"


ENTRY = re.compile(r"(.+?)\s+(\S+)\s+(-?\d+)\s+?(\S*)\s+(.*)")
"""How Sphinx reads a line of an inventory."""
_ROLES = {"std:doc", "std:label", "py:module", "py:class", "py:method", "py:function"}


def _inventory(book: Book) -> Iterator[str]:
    lines = _inventory_of(book)
    for line in lines:
        match = ENTRY.match(line)
        if match is None or match[2] not in _ROLES:
            yield f"objects.inv holds {line!r}"
            continue
        target = unquote(match[4].partition("#")[0])
        if not (book.root / "site" / target).is_file():
            yield f"objects.inv leads to {match[4]!r} for {match[1]!r}"


def _inventory_of(book: Book) -> list[str]:
    return inventory_lines((book.root / "docs/objects.inv").read_bytes())


def inventory_lines(data: bytes) -> list[str]:
    """Give the lines of an inventory."""
    head, body = data.split(b"zlib.\n", 1)
    assert head.count(b"\n") == 3
    return zlib.decompress(body).decode().splitlines()


# Pages as input


def page_problems(page: str, seed: object) -> Iterator[str]:
    """Say what is wrong with what a page becomes whose Markdown anybody may have written."""
    data = mutated(page.encode(errors="surrogateescape"), random.Random(f"page {seed}"))
    text = data.decode(errors="replace")
    look(data)
    with contextlib.suppress(RankbookError):
        notes_of(data, "p.md")
    body = text[front_matter.split(text)[1] :]
    made = LexborHTMLParser(render(body, "s/p.md", Addresses()).html)
    for node in nodes(made):
        tag = node.tag or ""
        if tag in {"html", "head", "body"} or tag not in {*ALLOWED, "h4", "h5", "h6", "blockquote", "del"}:
            if tag not in {"html", "head", "body", "-undef", "-text", "-comment", "!doctype", "-document"}:
                yield f"<{tag}> stands on the page"
            continue
        allowed = {**_GLOBAL, **ALLOWED.get(tag, {}), **_OF_PAGES.get(tag, {})}
        yield from (
            f"<{tag} {name}={value!r}>" for name, value in node.attributes.items() if name not in allowed or _is_bad(tag, name, value)
        )
        source = node.attributes.get("src") if tag == "img" else None
        if source and re.match(r"\s*(?:[a-z][a-z0-9+.-]*:(?!,\Z)|//|\\)", source, re.IGNORECASE):
            yield f"a picture is loaded from {source!r}"


_OF_PAGES: Mapping[str, Mapping[str, object]] = {
    "a": {"title": 0, "href": 0},
    "img": {"src": 0, "alt": 0},
    "code": {"class": 0},
    "ol": {"start": 0},
}


def collected(page: str, seed: object, site: Any) -> None:
    """Collect the listings of a mutated page; only a page error may come of it."""
    data = mutated(page.encode(errors="surrogateescape"), random.Random(f"listings {seed}"))
    with contextlib.suppress(PageError):
        listings.collecting.collect_text(data.decode(errors="replace"), "p.md", site)
