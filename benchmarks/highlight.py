"""Colouring listings beside Pygments, on the files of a tree, in one run: speed, size of the HTML, and how often both give a colour.

    python benchmarks/highlight.py TREE [--most 400] [--cache]

Seconds are CPU seconds of this process, MB millions of characters of source. "Same colour" is the share of characters, blanks aside,
whose classes Material for MkDocs gives one colour; names, operators and punctuation count as one, for the tables leave them plain.
With `--cache` a cache of HTML by the hash of its source is timed, too.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import re
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES

from rankbook.languages import by_path
from rankbook.site.highlight import highlighted
from rankbook.site.tokens import TABLES

COLOURS = {
    "string": "i cpf l s s1 s2 sb sc si ss",
    "special": "cp se sh sr sx",
    "number": "il m mb mf mh mi mo",
    "keyword": "b k kd kn kp kr kt nd ni nl nt",
    "constant": "bp nb no",
    "function": "nc ne nf nn",
    "comment": "u c c1 ch cm cs sd",
    "variable": "na nv vc vg vi",
    "generic": "ge gh go gp gr gs gt gu",
    "operator": "ow",
    "deleted": "gd",
    "inserted": "gi",
}
"""The classes to which Material gives one colour, and the elements that stand for them."""
COLOUR = {name: colour for colour, names in COLOURS.items() for name in names.split()}
LARGEST = 300_000
"""Pygments gets no file of more characters: one would outweigh all others."""
SPAN = re.compile(r"<(/?)([biu])(?: class=(\w+))?>|<[^>]*>|([^<]+)")


@dataclass
class Row:
    """What is measured of one language."""

    texts: list[str] = field(default_factory=list)
    ours: float = 0.0
    written: int = 0
    theirs: float = 0.0
    their_written: int = 0
    same: int = 0
    compared: int = 0


def texts_of(tree: Path, most: int) -> dict[str, Row]:
    """Read the tree's files, by their language."""
    rows: dict[str, Row] = defaultdict(Row)
    for path in sorted(tree.rglob("*")):
        if not path.is_file() or path.stat().st_size > LARGEST:
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        name = by_path(str(path), text.partition("\n")[0]).name
        if text and name in TABLES and len(rows[name].texts) < most:
            rows[name].texts.append(text)
    return {name: row for name, row in rows.items() if row.texts}


def measure(name: str, row: Row) -> None:
    """Colour all texts of a language, with the table and with Pygments."""
    highlighted("", name)
    start = time.process_time()
    row.written = sum(len(highlighted(text, name, anchors=True)) for text in row.texts)
    row.ours = time.process_time() - start
    lexer = get_lexer_by_name("python" if name == "starlark" else by_name(name))
    formatter = HtmlFormatter(anchorlinks=True, lineanchors="__codelineno", linespans="__span")
    start = time.process_time()
    row.their_written = sum(len(highlight(text, lexer, formatter)) for text in row.texts)
    row.theirs = time.process_time() - start
    for text in row.texts:
        ours, theirs = colours(highlighted(text, name)), lexed(text, lexer)
        if len(ours) == len(theirs) == len(text):
            pairs = [pair for pair, character in zip(zip(ours, theirs, strict=True), text, strict=True) if not character.isspace()]
            row.compared += len(pairs)
            row.same += sum(mine == other for mine, other in pairs)


def by_name(name: str) -> str:
    """Give the word by which Pygments knows a language."""
    return {"objective-c++": "objective-c++", "metal": "cpp", "opencl": "c", "svg": "xml", "makefile": "make"}.get(name, name)


def colours(page: str) -> list[str]:
    """Give the colour of each character of our HTML."""
    found: list[str] = []
    opened = [""]
    for end, element, name, token in SPAN.findall(page):
        if end:
            opened.pop()
        elif element:
            opened.append(COLOUR.get(name or element, ""))
        found += opened[-1:] * len(html.unescape(token))
    return found


def lexed(text: str, lexer: object) -> list[str]:
    """Give the colour of each character as Pygments has it."""
    found: list[str] = []
    for _, kind, token in lexer.get_tokens_unprocessed(text):
        while kind not in STANDARD_TYPES:
            kind = kind.parent  # noqa: PLW2901
        found += [COLOUR.get(STANDARD_TYPES[kind], "")] * len(token)
    return found


def cached(rows: dict[str, Row]) -> str:
    """Time a cache of HTML: what filling it costs, and what a hit does."""
    texts = [(name, text) for name, row in rows.items() for text in row.texts]
    size = sum(len(text) for _, text in texts) / 1e6
    with tempfile.TemporaryDirectory() as folder:
        pages = [(name, text, highlighted(text, name, anchors=True)) for name, text in texts]
        start = time.process_time()
        for _, text, page in pages:
            Path(folder, hashlib.sha256(text.encode()).hexdigest()).write_text(page, encoding="utf-8")
        filled = time.process_time() - start
        start = time.process_time()
        for _, text, _ in pages:
            Path(folder, hashlib.sha256(text.encode()).hexdigest()).read_text(encoding="utf-8")
        read = time.process_time() - start
    again = sum(row.ours for row in rows.values())
    disk = sum(row.written for row in rows.values()) / 1e6
    cache = f"cache: fill {filled:.2f} s, hit {read:.2f} s ({size / read:.0f} MB/s), {disk:.0f} MB on disk"
    return f"{size:.1f} MB: colouring {again:.2f} s; {cache}"


def main() -> None:
    """Print a row for each language."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("--most", type=int, default=400, help="files of a language (default 400)")
    parser.add_argument("--cache", action="store_true", help="time a cache, too")
    options = parser.parse_args()
    rows = texts_of(options.tree, options.most)
    print("| language | files | MB | MB/s | Pygments MB/s | ratio | out/in | Pygments out/in | same colour |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, row in sorted(rows.items(), key=lambda item: -sum(map(len, item[1].texts))):
        measure(name, row)
        size = sum(map(len, row.texts))
        print(
            f"| {name} | {len(row.texts)} | {size / 1e6:.2f} | {size / 1e6 / row.ours:.1f} | {size / 1e6 / row.theirs:.2f} "
            f"| {row.theirs / row.ours:.0f} x | {row.written / size:.2f} | {row.their_written / size:.2f} "
            f"| {row.same / max(row.compared, 1):.1%} |",
            flush=True,
        )
    if options.cache:
        print(cached(rows))


if __name__ == "__main__":
    main()
