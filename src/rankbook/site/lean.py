"""What keeps pages small: HTML that says nothing that it may leave out, and drawings that stand once for all pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from rankbook.site.markdown import LISTING

FILE = "assets/rankbook-shell.js"
"""Where the built site holds what all pages share and a script can write."""
STYLE = "assets/rankbook-shell.css"
"""Where it holds the drawings that stand in all pages."""
_TOKEN = re.compile(r"(<!--.*?-->|<(?P<kept>script|style|pre|textarea|svg)\b.*?</(?P=kept)>|</?[a-zA-Z](?:[^>\"]|\"[^\"]*\")*>)", re.DOTALL)
_START = re.compile(r"<[a-zA-Z](?:[^>\"]|\"[^\"]*\")*>")
_NAMED = re.compile(r"<(/?)([a-zA-Z][\w-]*)")
_BLOCK = re.compile(
    "html|head|title|meta|link|body|header|nav|main|footer|section|article|aside|div|ul|ol|li|form|h[1-6r]|p|table",
)
"""Elements around and inside of which a browser shows no blank."""
_VOID = re.compile("meta|link|input|[bh]r|img|source|wbr")
_THEMED = re.compile(r'\sclass="md-')
"""What Material lays out as a box, whatever element it is: there is no blank at its edges."""
_QUOTED = re.compile(r'(\s[\w-]+=)"([^"]*)"')
_GENERATOR = re.compile(r'<meta name="generator"[^>]*>')
_DRAWING = re.compile(
    r'<svg xmlns="http://www\.w3\.org/2000/svg"((?: (?:viewBox|width|height)="[\d. ]*")+)>((?:<path d="[^"<>]*"\s*/>)+)</svg>'
)
"""A drawing in one colour, that of the text around it."""
_KEPT = re.compile(r"(<pre\b.*?</pre>|<svg\b.*?</svg>)", re.DOTALL)
_RULE = """\
.{name} {{
  background: currentcolor;
  forced-color-adjust: none;
  mask: url("data:image/svg+xml,{picture}") center / contain no-repeat;
}}
"""
_SPARED = re.compile(
    rf"<(?:/(?:(?:li|t(?:[dhr]|head|body))>\n?|p>\n(?<!{LISTING}</p>\n)(?=<(?:h[1-6]|[uo]l|table|p|div)\b))"
    r"|a class=headerlink href=#[^>]*>¶</a>(?=</h[1-6]>))"
)
"""What a browser adds, and a link from a heading to itself, which shows when it is pointed at: the script adds it."""
_LINK = re.compile(
    r"""
    "(?<=<a\ href=") (?:
        ([\w./:%?,+~@!$*()-]*+\#L\d++)"(>)<code>([^<]*:\d+)</code>(?=</a>)  # the style sheet shows a line, named by its file, as code
      | ([\w./\#:%?,+~@!$*()-]*[\w\#])"
    )
    """,
    re.VERBOSE,
)
"""An address and its quotes; what stays are its groups: to join what a text is split into takes a third of replacing."""
_RIGHT = {f'<{cell} style="text-align: right">': f"<{cell} class=r>" for cell in ("td", "th")}
"""Cells in a column of numbers, as Markdown writes them; the style sheet knows them by a class."""
_LISTS = re.compile(r'\A<div class="rankbook-page" data-rankbook="(?:keywords|subtree|suite-words)"')
"""Pages of which nearly all are lists of names."""
_SAID = re.compile(
    r"""
    <(?:
        (?P<table>table>)
      | a\ (?P<test>href=[^ >]*)\ title="(?P<command>pytest\ [^"]*)"(?=><code>(?P<name>[^<]*)</code></a>)
      | a\ class="rankbook-run"\ href="(?P<run>\#[\w-]+)"\ title="(?P<ended>[^"]*)"
    )
    """,
    re.VERBOSE,
)
"""What pointing at a test, or at the badge of its last run, shows in a table of tests."""


def compact(page: str) -> str:
    """Leave out of HTML what a browser or the script of all pages adds by itself, and say names in lists of names with few characters.

    A browser adds the ends of rows, cells, entries and paragraphs, and needs no quotes around addresses. In a list of names each is the
    `<b>` of a key word, which the style sheet shows as code. Of what pointing at the tests of a table shows the first says all; below it
    an empty title stands where it would be the same but for the name of the test.

    Args:
        page: the content of a page.
    """
    parts = _KEPT.split(page)
    parts[::2] = [_spared(part) for part in parts[::2]]
    if 'title="pytest ' in page:
        parts[::2] = [_SAID.sub(_Above(), part) for part in parts[::2]]
    if _LISTS.match(page):
        parts[::2] = [_named(part) for part in parts[::2]]
    return "".join(parts)


class _Above:
    """What the row above has said, while the tables of a page are gone through."""

    def __init__(self) -> None:
        self._start: str | None = None
        self._ended: str | None = None

    def __call__(self, match: re.Match[str]) -> str:
        if match["table"]:
            self._start = self._ended = None
            return match[0]
        if match["run"]:
            above, self._ended = self._ended, match["ended"]
            title = "title" if above == self._ended else f'title="{self._ended}"'
            return f"<a class=rankbook-run href={match['run']} {title}"
        command, name = match["command"], match["name"]
        above, self._start = self._start, command.removesuffix(name) if command.endswith(f"::{name}") else None
        return f"<a {match['test']} title" if above is not None and above == self._start else match[0]


def _spared(part: str) -> str:
    for cell, short in _RIGHT.items():
        part = part.replace(cell, short)
    return "".join(filter(None, _LINK.split(_SPARED.sub("", part))))


def _named(part: str) -> str:
    head, first, rest = part.partition("<ul>")
    return head + first + rest.replace("<code>", "<b>").replace("</code>", "</b>")


def tight(page: str, places: str) -> str:
    """Say a page of a theme in fewer characters: without blanks that are not shown and quotes that are not needed.

    Args:
        page: the page.
        places: what stands for addresses and anchors in it, as inside of a group of a regular expression.
    """
    bare = re.compile(rf"(?:{places}|[^\s\"'`=<>\ufdd1])*(?:{places}|[^\s\"'`=<>/\ufdd1])")
    pieces = _TOKEN.split(_GENERATOR.sub("", page))
    texts, tags = pieces[::3], pieces[1::3]
    edges = list(_edges(tags))
    for number, text in enumerate(texts):
        if number and edges[number - 1][1]:
            text = text.lstrip()  # noqa: PLW2901
        if number < len(tags) and edges[number][0]:
            text = text.rstrip()  # noqa: PLW2901
        texts[number] = text
    made = [_plain(tag, bare) for tag in tags]
    return "".join([part for pair in zip(texts, [*made, ""], strict=True) for part in pair])


def _edges(tags: Sequence[str]) -> Iterator[tuple[bool, bool]]:
    """Tell of each tag whether a blank before it, and one behind it, is not shown."""
    opened: list[tuple[str, bool]] = []
    for tag in tags:
        match = _NAMED.match(tag)
        name = match[2].lower() if match else ""
        block = _BLOCK.fullmatch(name) is not None
        if match is None or tag.count("<") > 1:
            yield False, False
        elif match[1]:
            yield block or _shut(opened, name), block
        else:
            is_void = _VOID.fullmatch(name) is not None
            themed = not is_void and _THEMED.search(tag) is not None
            if not is_void:
                opened.append((name, themed))
            yield block, block or themed


def _shut(opened: list[tuple[str, bool]], name: str) -> bool:
    """Close an element and what was left open in it; tell whether the theme lays it out as a box."""
    place = next((place for place in range(len(opened) - 1, -1, -1) if opened[place][0] == name), None)
    if place is None:
        return False
    themed = opened[place][1]
    del opened[place:]
    return themed


def _plain(tag: str, bare: re.Pattern[str]) -> str:
    """Write a tag without the quotes and blanks that it can do without."""
    match = _START.match(tag)
    if match is None:
        return "" if tag == "</li>" else tag
    head = _QUOTED.sub(lambda each: f"{each[1]}{each[2].strip()}" if bare.fullmatch(each[2].strip()) else each[0], match[0][:-1])
    return f"{head.rstrip()}>{tag[match.end() :]}"


def drawn(page: str, link: str) -> tuple[str, str]:
    """Take the drawings of a page out of it.

    Args:
        page: the page.
        link: address of the style sheet that holds them, as it stands in the page.

    Returns:
        The page, in which each drawing is an empty `<svg>` as large as it was, and the style that shows it there; none for no drawings.
    """
    names: dict[str, str] = {}
    rules: list[str] = []

    def named(match: re.Match[str]) -> str:
        drawing, frame = match[0], match[1]
        name = names.setdefault(drawing, f"rankbook-drawing-{len(names) + 1}")
        if len(rules) < len(names):
            picture = quote(drawing, safe=" ()=:/,.'-")
            rules.append(_RULE.format(name=name, picture=picture))
        return f"<svg{frame} class={name}></svg>"

    page = _DRAWING.sub(named, page)
    if not rules:
        return page, ""
    return page.replace("</head>", f'<link rel="stylesheet" href="{link}">\n</head>', 1), "".join(rules)
