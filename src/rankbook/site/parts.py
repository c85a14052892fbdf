"""What all pages share and a script can write: it stands in one script of the site, and each page calls for it where it belongs.

A large book has far more pages than sources: each kilobyte of a shell is a seventh of the sources again. Without script a page keeps its
title, the way home, its table of contents as a plain list, and what it says; the navigation, the switch of colours and the engine's search
are the script's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import unescape

from rankbook.site.lean import FILE

_SCRIPTED = re.compile(
    r"""
    <(?:
        (?P<script>script)(?![^>]*\ssrc=)[^>]*>
      | (?P<form>form)\ [^>]*data-md-component="palette"[^>]*>
      | (?P<label>label)\ class="(?:md-header__button\ md-icon|md-overlay)"\ for="__(?:search|drawer)"[^>]*>
      | (?P<button>button)\ [^>]*data-md-component="top"[^>]*>
      | (?P<input>input)\ [^>]*data-md-toggle="(?:search|drawer)"[^>]*>
      | (?P<link>link)\ rel="icon"[^>]*>
      | (?P<nav>nav)\ class="md-tabs"[^>]*>
      | (?P<header>header)\ class="md-header[^>]*>
      | (?P<footer>footer)\ class="md-footer"[^>]*>
      | (?P<div>div)\ class="(?:md-search"|md-dialog"|modal"|md-header__title"|md-header__source"|md-sidebar[ ])[^>]*>
      | (?P<announce>div)\ data-md-component="announce"[^>]*>
    )
    """,
    re.VERBOSE,
)
"""Where an element begins that a script can write."""
_LOOKED_FOR = re.compile(r'<(?:link |nav |header |div class="md-header__title|div data-md-component)')
"""Of these, what a theme that loads pages without leaving the first one takes from each of them."""
_ICON = re.compile(r'(<link rel="icon"[^>]*>\s*)((?:(?!<script(?![^>]*\ssrc=)|</head>).)*)(?=<script(?![^>]*\ssrc=))', re.DOTALL)
"""The picture of the site, which may as well stand beside the first script of its own."""
_SKIPPED = re.compile(r'(<body\b[^>]*>)(.*?)(<div data-md-component="skip">.*?</div>)', re.DOTALL)
"""The way to the content, which comes first for those who need it."""
_HOME = re.compile(r'<header class="md-header.*?<a href="([^"]*)" title="([^"]*)"[^>]* data-md-component="logo">', re.DOTALL)
_INSTANT = '"navigation.instant'
_VOID = ("input", "link")
_SCRIPT = """\
// What pages share and a script can write; each page names the part that stands in its place.
(() => {{
  "use strict";
  const parts = {parts};
  const entries = {entries};
  const rest = {rest}; // of each title, behind the name of the page
  const site = new URL("{up}", document.currentScript.src).href;
  let contents = "";

  const plain = (text) => text.replace(/[&<>"]/g, (letter) => `&#${{letter.charCodeAt()}};`);
  const filled = (text, values) => text.replace(/{cut}([a-z]+){cut}/g, (_, name) => values[name]);
  const name = () => document.title.slice(0, rest && document.title.endsWith(rest) ? -rest.length : undefined);

  // A page has a plain list of its headings, and plain ways elsewhere; around each of its entries the theme's own list needs more.
  const entry = (item, isInner) => {{
    const link = item.querySelector("a");
    const below = isInner ? [] : [...item.querySelectorAll("li")];
    return filled(entries[isInner ? "inner" : below.length ? "parent" : "leaf"], {{
      anchor: plain(link.getAttribute("href").slice(1)),
      text: plain(link.textContent),
      inner: below.map((each) => entry(each, true)).join(""),
    }});
  }};

  window.rb = (number) => {{
    const place = document.currentScript;
    const before = place.previousElementSibling;
    if (before?.matches(".rankbook-contents")) contents = [...before.firstChild.children].map((item) => entry(item, false)).join("");
    if (before?.matches(".rankbook-contents, .rankbook-header")) before.remove();
    const part = filled(parts[number].replaceAll("{cut}base{cut}/", site), {{ base: site, name: plain(name()), contents }});
    place.replaceWith(document.createRange().createContextualFragment(part));
  }};
}})();
"""
_HEAD = re.compile(r"<head\b[^>]*>\s*(?:<meta\b[^>]*charset[^>]*>)?")
_NAMED = re.compile(r'<nav [^>]*aria-label="([^"]*)"[^>]*>(?:(?!<nav ).)*\Z', re.DOTALL)
_LIST = '<nav class="rankbook-contents" aria-label="{}"><ul>{}</ul></nav>'
_HEADER = '<header class="md-header rankbook-header"><a href="{}">{}</a></header>'


def parted(text: str, cut: str, entries: Mapping[str, str] | None = None) -> tuple[str, str, bool]:
    """Take what a script can write out of a page.

    Args:
        text: the page.
        cut: what stands on both sides of the name of a place.
        entries: how the theme writes entries of the table of contents: a `leaf`, a `parent` of others, and one that is `inner`.

    Returns:
        The page with calls in the place of its parts, the script that they call, empty when there is none, and whether that script
        makes the theme's table of contents of a plain list.
    """
    ordered = _SKIPPED.sub(r"\1\3\2", _ICON.sub(r"\2\1", text, count=1), count=1)
    pieces = _pieces(ordered, cut, is_listed=bool(entries))
    parts = pieces[1::2]
    if not parts:
        return text, "", False
    contents = f"{cut}contents{cut}"
    first = next((number for number, part in enumerate(parts) if contents in part), None)
    made = pieces[0]
    for number, (part, behind) in enumerate(zip(parts, pieces[2::2], strict=True)):
        plain = _LIST.format(_label(part.partition(contents)[0]), contents) if number == first else ""
        if (home := _HOME.search(part)) is not None:
            plain = _HEADER.format(*home.groups()) + plain
        made += f"{plain}<script>rb({number})</script>{behind}"
    call = f'<script src="{cut}base{cut}/{FILE}"></script>'
    title = re.search(rf"{cut}title{cut}(.*?)</title>", made, re.DOTALL)
    script = _SCRIPT.format(
        parts=_written(parts),
        entries=_written(entries or {}),
        rest=_written(re.sub(r"\s+", " ", unescape(title[1])).rstrip() if title else ""),
        cut=json.dumps(cut).strip('"'),
        up="../" * FILE.count("/") or "./",
    )
    return _HEAD.sub(lambda match: match[0] + call, made, count=1), script, first is not None


def _label(before: str) -> str:
    """Give the theme's name for the table of contents, which stands around it."""
    found = _NAMED.search(before)
    return found[1] if found else "Table of contents"


def _written(value: object) -> str:
    return json.dumps(value, indent=0).replace("</", "<\\/")


def _pieces(text: str, cut: str, *, is_listed: bool) -> list[str]:
    """Cut a page: what stays, a part, what stays, and so on."""
    known = {"base", "name", "contents"} if is_listed else {"base", "name"}
    place = re.compile(f"{cut}([a-z]+){cut}")
    is_instant = _INSTANT in text
    pieces = [""]
    start = end = 0
    while (match := _SCRIPTED.search(text, start)) is not None:
        close = _close(text, match.lastgroup or "", match.start())
        part, before = text[match.start() : close], text[end : match.start()]
        if not known.issuperset(place.findall(part)) or (is_instant and _LOOKED_FOR.match(part)):
            start = match.end()
            continue
        if len(pieces) > 1 and not before.strip():
            pieces[-2] += part
        else:
            pieces[-1] = before
            pieces += [part, ""]
        start = end = close
    return [*pieces[:-1], text[end:]]


def _close(text: str, tag: str, start: int) -> int:
    """Find the end of an element."""
    tag = "div" if tag == "announce" else tag
    if tag == "script":
        return text.index("</script>", start) + len("</script>")
    if tag in _VOID:
        return text.index(">", start) + 1
    depth = 0
    for match in re.compile(rf"<(/?){tag}\b[^>]*>").finditer(text, start):
        depth += -1 if match[1] else 1
        if depth == 0:
            return match.end()
    return len(text)
