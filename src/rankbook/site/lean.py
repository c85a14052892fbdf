"""What keeps pages small: what only a script needs comes from one script for all pages, and HTML says nothing that it may leave out.

A large book has far more pages than sources: each kilobyte of a shell is a seventh of the sources again. Without script nothing is missed
of these parts: the switch of colours, the dialog of the engine's search and the settings of its script do nothing then.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence

FILE = "assets/rankbook-shell.js"
"""Where the built site holds what only a script needs."""
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
_TOKEN = re.compile(r"(<!--.*?-->|<(?P<kept>script|style|pre|textarea|svg)\b.*?</(?P=kept)>|</?[a-zA-Z][^>]*>)", re.DOTALL)
_NAMED = re.compile(r"<(/?)([a-zA-Z][\w-]*)")
_BLOCKS = frozenset(
    "html head title meta link body header nav main footer section article aside div ul ol li form h1 h2 h3 h4 h5 h6 p table hr".split()
)
"""Elements around and inside of which a browser shows no blank."""
_VOID = frozenset("meta link input br hr img source wbr".split())
_THEMED = re.compile(r'\sclass="md-')
"""What Material lays out as a box, whatever element it is: there is no blank at its edges."""
_QUOTED = re.compile(r'(\s[\w-]+=)"([^"]*)"')
_GENERATOR = re.compile(r'<meta name="generator"[^>]*>')
_DRAWING = re.compile(r'<svg(?: xmlns="http://www\.w3\.org/2000/svg")?([^>]*)>(.{120,}?)</svg>', re.DOTALL)
_KEPT = re.compile(r"(<pre\b.*?</pre>|<svg\b.*?</svg>)", re.DOTALL)
_ENDS = re.compile(r"</(?:li|td|th|tr|thead|tbody)>\n?")
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
    parts[::2] = [_LINK.sub(r"<a href=\1", _ENDS.sub("", part)) for part in parts[::2]]
    return "".join(parts)


def tight(page: str, places: str) -> str:
    """Say a page of a theme in fewer characters: without blanks that are not shown, quotes that are not needed, drawings that repeat.

    Args:
        page: the page.
        places: what stands for addresses and anchors in it, as inside of a group of a regular expression.
    """
    bare = re.compile(rf"(?:{places}|[^\s\"'`=<>\ufdd1])*(?:{places}|[^\s\"'`=<>/\ufdd1])")
    pieces = _TOKEN.split(_once(_GENERATOR.sub("", page)))
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
        block = name in _BLOCKS
        if match is None or tag.count("<") > 1:
            yield False, False
        elif match[1]:
            yield block or _shut(opened, name), block
        else:
            themed = name not in _VOID and _THEMED.search(tag) is not None
            if name not in _VOID:
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
    """Write a start tag without the quotes and blanks that it can do without."""
    if tag.startswith(("</", "<!")):
        return tag
    head, end, rest = tag.partition(">")
    head = _QUOTED.sub(lambda match: f"{match[1]}{match[2].strip()}" if bare.fullmatch(match[2].strip()) else match[0], head)
    return f"{head.rstrip()}{end}{rest}"


def _once(page: str) -> str:
    """Let a drawing that stands in a page a second time refer to the first one."""
    known: dict[str, str] = {}
    repeated = {inner for inner, times in Counter(match[2] for match in _DRAWING.finditer(page)).items() if times > 1}

    def drawn(match: re.Match[str]) -> str:
        frame, inner = match[1], match[2]
        if inner not in repeated:
            return f"<svg{frame}>{inner}</svg>"
        if inner in known:
            return f'<svg{frame}><use href="#{known[inner]}"></use></svg>'
        known[inner] = f"rankbook-drawing-{len(known) + 1}"
        return f'<svg{frame}><g id="{known[inner]}">{inner}</g></svg>'

    return _DRAWING.sub(drawn, page)
