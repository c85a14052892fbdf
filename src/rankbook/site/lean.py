"""What keeps pages small: what only a script needs comes from one script for all pages, and HTML says nothing that it may leave out.

A large book has far more pages than sources: each kilobyte of a shell is a seventh of the sources again. Without script nothing is missed
of these parts: the switch of colours, the dialog of the engine's search and the settings of its script do nothing then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote

FILE = "assets/rankbook-shell.js"
"""Where the built site holds what only a script needs."""
STYLE = "assets/rankbook-shell.css"
"""Where it holds the drawings that stand in all pages."""
_SCRIPTED = re.compile(
    r"""
    <(?:
        (?P<script>script)(?![^>]*\ssrc=)[^>]*>
      | (?P<form>form)\ [^>]*data-md-component="palette"[^>]*>
      | (?P<label>label)\ class="md-header__button\ md-icon"\ for="__search"[^>]*>
      | (?P<button>button)\ [^>]*data-md-component="top"[^>]*>
      | (?P<input>input)\ [^>]*data-md-toggle="search"[^>]*>
      | (?P<div>div)\ (?:class="md-search"|class="md-dialog"|class="modal")[^>]*>
    )
    """,
    re.VERBOSE,
)
"""Where an element begins that does nothing without a script."""
_SCRIPT = """\
// What pages share and only a script needs; each page names the part that stands in its place.
(() => {{
  "use strict";
  const parts = {parts};
  const site = new URL("{up}", document.currentScript.src).href;
  window.rankbookPart = (number) => {{
    const place = document.currentScript;
    const part = parts[number].replaceAll({base} + "/", site).replaceAll({base}, site);
    place.replaceWith(document.createRange().createContextualFragment(part));
  }};
}})();
"""
_HEAD = re.compile(r"<head\b[^>]*>\s*(?:<meta\b[^>]*charset[^>]*>)?")
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
_ENDS = re.compile(r"</(?:li|td|th|tr|thead|tbody)>\n?")
_RULE = """\
.{name} {{
  background: currentcolor;
  forced-color-adjust: none;
  mask: url("data:image/svg+xml,{picture}") center / contain no-repeat;
}}
"""
_PLACED = re.compile(r"(<a href=[^ >]*#L\d+)><code>([^<]*:\d+)</code></a>")
"""A link to a line, named by its file: the style sheet shows it as code, without an element that says so each time."""
_LINK = re.compile(r'<a href="([\w./#:%?,+~@!$*()-]*[\w#])"')


def parted(text: str, base: str) -> tuple[str, str]:
    """Take what only a script needs out of a page.

    Args:
        text: the page.
        base: what stands in it for the way to the site's folder.

    Returns:
        The page with calls in the place of its parts, and the script that they call; an empty script when there is none.
    """
    parts: list[str] = []
    text = "".join(_pieces(text, parts))
    if not parts:
        return text, ""
    call = f'<script src="{base}/{FILE}"></script>'
    text = _HEAD.sub(lambda match: match[0] + call, text, count=1)
    written = json.dumps(parts, indent=0).replace("</", "<\\/")
    return text, _SCRIPT.format(parts=written, base=json.dumps(base), up="../" * FILE.count("/") or "./")


def _pieces(text: str, parts: list[str]) -> Iterator[str]:
    end = 0
    while (match := _SCRIPTED.search(text, end)) is not None:
        close = _close(text, match.lastgroup or "", match.start())
        part = text[match.start() : close]
        if parts and not text[end : match.start()].strip():
            parts[-1] += part
        else:
            yield text[end : match.start()]
            yield f"<script>rankbookPart({len(parts)})</script>"
            parts.append(part)
        end = close
    yield text[end:]


def _close(text: str, tag: str, start: int) -> int:
    """Find the end of an element."""
    if tag == "script":
        return text.index("</script>", start) + len("</script>")
    if tag == "input":
        return text.index(">", start) + 1
    depth = 0
    for match in re.compile(rf"<(/?){tag}\b[^>]*>").finditer(text, start):
        depth += -1 if match[1] else 1
        if depth == 0:
            return match.end()
    return len(text)


def compact(page: str) -> str:
    """Leave out of HTML what a browser adds by itself: ends of rows, cells and entries, and quotes around addresses."""
    parts = _KEPT.split(page)
    parts[::2] = [_PLACED.sub(r"\1>\2</a>", _LINK.sub(r"<a href=\1", _ENDS.sub("", part))) for part in parts[::2]]
    return "".join(parts)


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
