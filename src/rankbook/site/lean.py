"""What keeps pages small: what only a script needs comes from one script for all pages, and HTML says nothing that it may leave out.

A large book has far more pages than sources: each kilobyte of a shell is a seventh of the sources again. Without script nothing is missed
of these parts: the switch of colours, the dialog of the engine's search and the settings of its script do nothing then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

FILE = "assets/rankbook-shell.js"
"""Where the built site holds what only a script needs."""
_SCRIPTED = re.compile(
    r"""
    <(?:
        (?P<script>script)(?![^>]*\ssrc=)[^>]*>
      | (?P<form>form)\ [^>]*data-md-component="palette"[^>]*>
      | (?P<label>label)\ class="md-header__button\ md-icon"\ for="__search"[^>]*>
      | (?P<button>button)\ [^>]*data-md-component="top"[^>]*>
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
  const base = new URL(document.currentScript.dataset.base + "/.", location).href.replace(/\\/$/, "");
  window.rankbookPart = (number) => {{
    const place = document.currentScript;
    place.replaceWith(document.createRange().createContextualFragment(parts[number].replaceAll({base}, base)));
  }};
}})();
"""
_HEAD = re.compile(r"<head\b[^>]*>\s*(?:<meta\b[^>]*charset[^>]*>)?")
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
    call = f'\n<script src="{base}/{FILE}" data-base="{base}"></script>'
    text = _HEAD.sub(lambda match: match[0] + call, text, count=1)
    return text, _SCRIPT.format(parts=json.dumps(parts, indent=0).replace("</", "<\\/"), base=json.dumps(base))


def _pieces(text: str, parts: list[str]) -> Iterator[str]:
    end = 0
    while (match := _SCRIPTED.search(text, end)) is not None:
        close = _close(text, match.lastgroup or "", match.start())
        yield text[end : match.start()]
        yield f"<script>rankbookPart({len(parts)})</script>"
        parts.append(text[match.start() : close])
        end = close
    yield text[end:]


def _close(text: str, tag: str, start: int) -> int:
    """Find the end of an element."""
    if tag == "script":
        return text.index("</script>", start) + len("</script>")
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
