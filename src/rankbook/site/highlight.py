"""Listings as HTML: what stands inside `<pre><code>…</code></pre>`, coloured with the short class names of Pygments.

- A token is `<i class=nf>`; the kinds that are most of all tokens have no class: `<b>` is a keyword, `<i>` a string and `<b>` in it an
  escape, `<u>` a comment, `<em>` a number, `<var>` a builtin. One that goes over several lines is an element on each of them, so that
  each line is whole by itself; escapes lie inside of their string.
- With anchors, line 12 is `<i id=L12>…</i>` and the newline follows it; a line that is one comment is `<u id=L12>`. Its number is
  in no text: the style sheet counts the lines. What is selected and copied is the source.
- A long listing with anchors comes in stretches of 250 lines: a browser lays out those that are near what it shows. One is
  `<span style=--before:250>`, for the style sheet needs to know how many lines stand before it; the last one may be shorter.
- The text of the HTML is the listing, character for character. A carriage return is written `&#13;`, for a parser would make it a newline.
  What HTML cannot hold (NUL, half of a surrogate pair) is U+FFFD.
- A character that cannot be seen, or that turns the direction of the text around it, stands in
  `<bdi class="rankbook-hidden" title="U+202E">`: it acts on nothing outside of that, and the style sheet writes its name before it. What is
  copied is still the source.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from rankbook.languages import LANGUAGES, by_fence
from rankbook.site import tokens
from rankbook.site.tokens import others
from rankbook.site.tokens.table import escaped

_HIDDEN = re.compile(
    "(\r(?=(?:</(?:[biu]|em|var)>)?\\Z))|["
    "\x00-\x08\x0b\x0d-\x1f\x7f-\x9f\xad"
    "\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
"""Characters that are not seen, or that change how others are seen; the first group is a return at the end of all, which may stay so."""
_SOME_HIDDEN = re.compile(f"[\r{_HIDDEN.pattern.partition('|[')[2]}")
_SOME_HIDDEN_ASCII = re.compile("[\x00-\x08\x0b\x0d-\x1f\x7f]")
"""Find whether there are any: in one class, by which texts are searched quickly."""
_LONG = 1000
"""Lines of a listing up to which a browser lays it out as a whole in no time that a reader would notice."""
_STRETCH = 250
"""Lines that are laid out together: some screens full."""
_NAMES = {language.name: language for language in LANGUAGES}
_WRITTEN = {"\r": "&#13;", "\0": "\ufffd", **{chr(code): "\ufffd" for code in range(0xD800, 0xE000)}}


def highlighted(text: str, language: str, *, anchors: bool = False) -> str:
    """Write a listing as HTML.

    Args:
        text: the listing.
        language: the word that its fence carries, or the name of its language; an unknown one is plain text.
        anchors: whether each line is an element with an `id`: `L1`, `L2` and so on.
    """
    returned = [line[-1:] == "\r" for line in text.split("\n")[:-1]] if "\r\n" in text else []
    if returned:  # languages know one end of a line, and colours are the same with both
        text = text.replace("\r\n", "\n")
    known = by_fence(language) or _NAMES.get(language)
    if known is None or known.fences[0] == "text":
        html = escaped(text)
    elif table := tokens.TABLES.get(known.name):
        html = table.spans(escaped(text))
    else:
        html = others.spans(text, known.fences[0])
    if (_SOME_HIDDEN_ASCII if text.isascii() else _SOME_HIDDEN).search(text):
        html = _HIDDEN.sub(_shown, html)
    if returned:
        *ended, last = html.split("\n")
        html = "\n".join([*(_with_return(line) if has_one else line for line, has_one in zip(ended, returned, strict=True)), last])
    return _numbered(html) if anchors else html


@cache
def version() -> str:
    """Name what the HTML of a listing depends on besides the listing: the tables and the Pygments that stands in where there is none."""
    folder = Path(__file__).parent
    files = [Path(__file__), *sorted((folder / "tokens").glob("*.py"))]
    return hashlib.sha256(b"\0".join([*(path.read_bytes() for path in files), others.version().encode()])).hexdigest()[:16]


def _shown(match: re.Match[str]) -> str:
    character = match[0]
    written = _WRITTEN.get(character, character)
    return written if match[1] else f'<bdi class="rankbook-hidden" title="U+{ord(character):04X}">{written}</bdi>'


def _with_return(line: str) -> str:
    """Give a line its return back; that of a comment lies within it, so that one that is nothing else stays one element."""
    return f"{line[:-4]}&#13;</u>" if line.endswith("</u>") else f"{line}&#13;"


def _numbered(html: str) -> str:
    lines = html.split("\n")
    ended = len(lines) > 1 and not lines[-1]
    if ended:
        lines.pop()
    written = [f"<i id=L{number}>{line}</i>" if line[:3] != "<u>" else _comment(line, number) for number, line in enumerate(lines, 1)]
    if len(written) > _LONG:
        written = [_stretch(written[start : start + _STRETCH], start) for start in range(0, len(written), _STRETCH)]
    return "\n".join([*written, ""] if ended else written)


def _stretch(lines: Sequence[str], before: int) -> str:
    """Put lines, of which so many stand before them, into an element of their own, but for the last newline."""
    shown = "\n".join(lines)
    return f"<span style=--before:{before}>{shown}</span>"


def _comment(line: str, number: int) -> str:
    """Give a line that begins with a comment its anchor: one that is nothing else needs no element besides that of the token."""
    is_whole = line.find("</u>") == len(line) - 4
    return f"<u id=L{number}{line[2:]}" if is_whole else f"<i id=L{number}>{line}</i>"
