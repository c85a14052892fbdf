"""One page of the site: what an engine has built for all, what the Markdown says, and what only the ledger and the forge know."""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Protocol
from urllib.parse import unquote

from msgspec import Struct

from rankbook.front_matter import Stamp
from rankbook.markers import ENGLISH, LAST_RUN, ROLLUP
from rankbook.site.addresses import Addresses
from rankbook.site.fences import shown_at
from rankbook.site.lean import compact
from rankbook.site.markdown import LISTING, Rendered
from rankbook.site.shell import Shell

_MARKER = re.compile(rf"<!-- rankbook:({LAST_RUN}|{ROLLUP}) -->")
_TITLE_END = re.compile(r"(?=<a class=headerlink [^>]*>¶</a></h1>)")
_ROW = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)
_LINK = re.compile(r'<a href="([^"]*)"[^>]*>.*?</a>', re.DOTALL)
_TESTED = "<h2 id=what-is-tested>"
_PART = re.compile(r"<(?:h3 [^>]*>(?P<class>.*?)</h3>|tr>\s*(?P<cell><t[hd])[^>]*>)", re.DOTALL)
"""Of what is said of tests: the heading of a class, and the start of the first cell of a row."""
_ALL_OF = re.compile(r"<p>[0-9,]+ tests?(?: of <code>(?P<class>.*?)</code>)?[.,]")
"""What is said where the tests stand under no heading: they are of one class, or functions."""
_HEAD = "Test</th>"
_NAME = re.compile(r"(?:<a [^>]*>)?<code>(?P<name>.*?)</code>(?:</a>)?", re.DOTALL)
_COMMAND = re.compile(rf"<h[1-6] id=(?P<anchor>[^ >]+)>|<p>{LISTING}(?P<place>\d+){LISTING}</p>|<pre>")
"""A heading, and what may be a listing."""
_CODE = re.compile(r"<code>(.*?)</code>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_PARAGRAPH = re.compile(r"<p>((?:(?!<a )[^\n])*?)</p>")


class PageProof(Protocol):
    """What the ledger knows of a page, as HTML."""

    @property
    def badge(self) -> str:
        """Behind the page's title."""

    @property
    def tests(self) -> Mapping[tuple[str | None, str], str]:
        """Behind the name of a test in the table of tests, by its class and that name."""

    @property
    def listings(self) -> Mapping[str, str]:
        """Before a listing that is a command, by the listing's name."""

    @property
    def last_run(self) -> str:
        """In the place of the marker for the last run."""

    @property
    def rollup(self) -> str:
        """In the place of the marker for the proof of a folder, or of all."""

    @property
    def rows(self) -> Mapping[str, str]:
        """Behind the first link to another page in a row of a table, by that page's path below the folder of all pages."""

    @property
    def folder(self) -> str:
        """The page's own, below the root, as a shell takes it, with `/`; empty where that is not known."""


class Step(Struct, frozen=True):
    """A neighbour of a page in the order of the sources."""

    path: str
    title: str
    """As HTML."""


class Leaf(Struct, frozen=True):
    """A page, and all that is told of it besides its text."""

    path: str
    """Below the folder of all pages."""
    stamp: Stamp
    proof: PageProof | None = None
    before: Step | None = None
    after: Step | None = None
    actions: str = ""
    """HTML of what the forge offers."""


def stamped(leaf: Leaf, rendered: Rendered, shell: Shell, addresses: Addresses) -> str:
    """Write a page of the site.

    Args:
        leaf: the page.
        rendered: its text as HTML.
        shell: what an engine has built.
        addresses: where the pages stand on the site.
    """
    file = addresses.file(leaf.path)
    top = next((heading.anchor for heading in rendered.headings if heading.level == 1), "")
    title = leaf.stamp.title
    values = {
        "title": title,
        "name": title,
        "address": html.escape(shell.canonical + addresses.url(leaf.path)),
        "description": _description(rendered.prose, title),
        "top": top,
        "content": rendered.whole(compact(_article(leaf, rendered, shell, addresses))),
        "contents": shell.contents.of(rendered.headings) if shell.contents else "",
    }
    return shell.filled(file.count("/"), values)


def commands(rendered: Rendered) -> dict[str, str]:
    """Give the digests of the commands that the page of a source shows, by their names: after the heading above, and counted."""
    return {name: rendered.commands[number] for _, number, name in _commands(rendered)}


def _commands(rendered: Rendered) -> Iterator[tuple[int, int, str]]:
    """Yield where the place of each command begins, with its number among the listings, and its name."""
    below: list[re.Match[str]] = []
    anchor = ""
    for part in [*_COMMAND.finditer(rendered.prose), None] if rendered.commands else []:
        if part is not None and part["anchor"] is None:
            below.append(part)
            continue
        if anchor and all(int(each["place"] or -1) in rendered.commands for each in below):  # an option may name a listing otherwise
            for count, each in enumerate(below, 1):
                yield each.start(), int(each["place"]), f"{anchor}-{count}" if count > 1 else anchor
        anchor, below = part["anchor"] if part is not None else "", []


def tests(rendered: Rendered) -> list[tuple[str | None, str]]:
    """Give the tests that the page of a source lists, as the rows of its tables have them: class and name."""
    return [key for _, key in _tests(rendered.prose)]


def _tests(prose: str) -> Iterator[tuple[int, tuple[str | None, str]]]:
    """Yield where the name of each test ends in its row, with its class and that name."""
    start = prose.find(_TESTED)
    if start < 0:
        return
    end = prose.find("<h2 ", start + 1)
    end = end if end >= 0 else len(prose)
    said = _ALL_OF.search(prose, start, end)
    holder = _text(said["class"] or "") if said else None
    has_tests = False
    for part in _PART.finditer(prose, start, end):
        if part["cell"] is None:
            name = _CODE.search(part["class"])
            holder = _text(name[1]) if name else ""
        elif part["cell"] == "<th":
            has_tests = prose.startswith(_HEAD, part.end())
        elif has_tests and (cell := _NAME.match(prose, part.end())) is not None:
            yield cell.end(), (holder, _text(cell["name"]))


def _text(body: str) -> str:
    return html.unescape(_TAG.sub("", body))


def _article(leaf: Leaf, rendered: Rendered, shell: Shell, addresses: Addresses) -> str:
    body = _MARKER.sub("", rendered.prose) if leaf.proof is None else _proved(leaf, leaf.proof, rendered, addresses)
    actions = f'<div class="rankbook-actions">{leaf.actions}</div>\n' if leaf.actions else ""
    folder = f' data-folder="{html.escape(leaf.proof.folder)}"' if leaf.proof is not None and leaf.proof.folder else ""
    language = "" if shell.is_english else f" {ENGLISH}"
    return (
        f'<div class="rankbook-page" data-rankbook="{leaf.stamp.page}"{language}{folder}>\n{actions}{body}{_steps(leaf, addresses)}</div>'
    )


def _proved(leaf: Leaf, proof: PageProof, rendered: Rendered, addresses: Addresses) -> str:
    body = rendered.prose
    shown = {LAST_RUN: proof.last_run, ROLLUP: proof.rollup}
    for place, _, name in reversed(list(_commands(rendered)) if proof.listings else []):
        body = f"{body[:place]}{shown_at(name, proof.listings[name])}{body[place:]}" if name in proof.listings else body
    if proof.badge:
        body = _TITLE_END.sub(lambda _: f" {proof.badge}", body, count=1)
    body = _with_badges(body, proof.tests)
    if proof.rows:
        body = _rows(body, leaf, proof, addresses)
    return _MARKER.sub(lambda match: shown[match[1]], body)


def _with_badges(body: str, badges: Mapping[tuple[str | None, str], str]) -> str:
    """Put badges behind the names of tests."""
    places = [(place, badges[key]) for place, key in _tests(body) if key in badges] if badges else []
    pieces = [body[start:end] for start, end in pairwise([0, *(place for place, _ in places), len(body)])]
    return "".join(f"{piece} {badge}" for piece, (_, badge) in zip(pieces, places, strict=False)) + pieces[-1]


def _rows(body: str, leaf: Leaf, proof: PageProof, addresses: Addresses) -> str:
    """Put a badge into each row of a table: behind its first link to another page, if that page has one."""
    badges = {addresses.file(path): badge for path, badge in proof.rows.items()}
    here = addresses.file(leaf.path)

    def with_badge(row: re.Match[str]) -> str:
        link = _LINK.search(row[0])
        badge = badges.get(_target(here, html.unescape(link[1])), "") if link is not None else ""
        return f"{row[0][: link.end()]} {badge}{row[0][link.end() :]}" if link is not None and badge else row[0]

    return _ROW.sub(with_badge, body)


def _target(here: str, address: str) -> str:
    """Name the file of the site that an address leads to, as far as it tells.

    Args:
        here: file of the page with the address.
        address: as a browser takes it; one that ends with `/` leads to the index of a folder.
    """
    path = unquote(address.partition("#")[0])
    if not path:
        return here
    is_folder = posixpath.basename(path) in ("", ".", "..")
    return posixpath.normpath(posixpath.join(posixpath.dirname(here), path, "index.html" if is_folder else ""))


def _steps(leaf: Leaf, addresses: Addresses) -> str:
    steps: Sequence[tuple[str, str, Step | None]] = (("prev", "Previous", leaf.before), ("next", "Next", leaf.after))
    links = [
        f'<a rel="{rel}" href="{html.escape(addresses.between(leaf.path, step.path))}"><span>{word}</span> {step.title}</a>'
        for rel, word, step in steps
        if step is not None
    ]
    return f'<nav class="rankbook-steps" aria-label="Files">{"".join(links)}</nav>\n' if links else ""


def _description(body: str, title: str) -> str:
    """Give the first paragraph of a page that is more than the way to it, in one line without elements."""
    match = _PARAGRAPH.search(body)
    said = _TAG.sub("", match[1]) if match else ""
    return (said if said and len(said) < 300 else title).replace('"', "&quot;")
