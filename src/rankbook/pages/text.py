"""Filters of the templates: whatever a source says becomes plain words or a code span, never Markdown or HTML of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from rankbook.report import plural
from rankbook.terminal import word

# Control and bidirectional characters would be lost, or would show a reader something else than what stands there.
_UNPRINTABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_RISKY = re.compile(
    r"[\\`*\[\]<>&|~^{}$@]"
    r"|_(?![A-Za-z0-9])|(?<![A-Za-z0-9])_"
    r"|:(?=//|\w+:)|(?<=www)\.|==+",
    re.IGNORECASE,
)
_RISKY_START = re.compile(r"[-+#=!:?/%]|\d+[.)]")
"""What begins a block of its own at the start of a line."""
_BACKSLASHED = {character: "\\" + character for character in "`*_[]"}
_NAMED = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)(?<!etc\.)")


_NOT_PROSE = re.compile(r"[-*+]\s|[|>#=]|\d+[.)]\s|!?\[[^\[\]]*\]\([^()]*\)\s*\Z")
_MARKUP = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)|\*\*|__")
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")
_RULE = re.compile(r"^[ \t]*([=*#~^\"+_.:'`-])\1{2,}[ \t]*$", re.MULTILINE)
"""A rule of punctuation below or above a heading of reStructuredText."""
_ORDINAL = re.compile(r"(?:\d{1,3}|[A-Za-z#])[.)](?=\s)|.?", re.DOTALL)
"""Where a sentence begins that may end: behind the number of an item of a list, or a first character."""
NOT_IN_SPAN = re.compile("[`|]|&#")
"""What a code span in a table's cell cannot hold, and what confuses Python's reader of HTML even there: it loses or moves what follows."""
_NOT_IN_TITLE = re.compile(r"[^\w .:/=,+-]")
"""What might end the title of a link, the link or a table's cell."""
_LONGEST = 300
"""Characters of a summary."""
_LONGEST_CODE = 240
"""Characters of a piece of code; a source may hold far longer ones."""
_marked = str.__new__
"""Marks a text without asking it first whether it can tell its own HTML: it is one."""


def markdown(value: str) -> Markup:
    """Say that a text is Markdown: it was made here, of parts that are escaped."""
    return _marked(Markup, value)


def one_line(value: object) -> str:
    """Give a value on one line, without characters that cannot be shown."""
    written = str(value)
    if written.isascii() and written.isprintable() and " " not in written:
        return written
    return " ".join(_UNPRINTABLE.sub("\ufffd", written).split())


def is_plain(value: str) -> bool:
    """Whether a value, and a line number after it, is shown as code by backticks around it."""
    return len(value) < _LONGEST_CODE // 2 and code(value) == f"`{value}`"


def code(value: object) -> Markup:
    """Show a value as code, in a sentence or in a table's cell.

    HTML is used where a code span would not do: a pipe ends a table's cell even inside a span. What is very long ends with an ellipsis.
    """
    written = value if type(value) is str else str(value)
    known = _codes.get(written)
    if known is None:
        known = _code(written)
        if len(written) <= _LONGEST_CODE:
            if len(_codes) >= _MOST_CODES:
                _codes.clear()
            _codes[written] = known
    return known


_codes: dict[str, Markup] = {}
"""Pieces of code as they are shown: a dictionary answers in half the time of a cache that knows which was asked for last."""
_MOST_CODES = 1 << 15


def _code(value: str) -> Markup:
    line = in_a_line(value)
    if not line:
        return markdown("*empty*")
    if NOT_IN_SPAN.search(line):
        return markdown("<code>" + "".join(_plain(character) for character in line) + "</code>")
    return markdown(f"`{line}`")


def text(value: object) -> Markup:
    """Show a value as prose; what stands in backticks in it becomes code."""
    if isinstance(value, Markup):
        return value
    return _text(str(value))


@lru_cache(maxsize=16384)
def _text(value: str) -> Markup:
    line = one_line(value)
    start = _RISKY_START.match(line)
    position = start.end() if start else 0
    pieces = [_entities(line[:position])]
    for match in _CODE_SPAN.finditer(line):
        pieces += [_escaped(line[position : match.start()]), code(match[2])]
        position = match.end()
    return markdown("".join([*pieces, _escaped(line[position:])]))


def first_sentence(value: str | None) -> str:
    """Give the first sentence of a docstring's first paragraph; empty when there is none.

    A directive of reStructuredText is none, and of a heading with a rule of punctuation what stands below it counts, if anything does.
    """
    said = (value or "").strip()
    paragraph = one_line(_PARAGRAPH_END.split(said, maxsplit=1)[0])
    if paragraph.startswith(".. ") or _RULE.search(said):
        paragraph = one_line(_prose(said))
    end = _SENTENCE_END.search(paragraph, _ORDINAL.match(paragraph).end())  # type: ignore[union-attr] # it matches nothing as well
    return paragraph[: end.end()] if end else paragraph


def _prose(said: str) -> str:
    """Give the first paragraph that is neither a directive nor the heading of what follows; the heading where nothing does."""
    title, is_directive = "", False
    for paragraph in _PARAGRAPH_END.split(said):
        lines = paragraph.strip("\n").split("\n")
        is_directive = lines[0].startswith(".. ") or (is_directive and lines[0].startswith((" ", "\t")))
        if is_directive:
            continue
        rule = next((place for place in reversed(range(len(lines))) if _RULE.fullmatch(lines[place])), None)
        if rule is None or any(line.strip() for line in lines[rule + 1 :]):
            return "\n".join(lines[rule + 1 :] if rule is not None else lines)
        title = title or " ".join(line for line in lines if not _RULE.fullmatch(line))
    return title


def plain(said: str) -> str:
    """Give the words of a line of Markdown, without its links, emphasis and code marks."""
    return one_line(_MARKUP.sub(r"\1", said).replace("`", ""))


def summary(said: str | None, *, is_markdown: bool) -> str:
    """Give the sentence that sums a file up, short enough for a table; empty when its first paragraph is no sentence."""
    said = (said or "").strip()
    if is_markdown:
        said = "" if _NOT_PROSE.match(said) else _MARKUP.sub(r"\1", said)
    sentence = first_sentence(said)
    return sentence if len(sentence) <= _LONGEST else sentence[:_LONGEST].rpartition(" ")[0] + " …"


def url(path: str) -> Markup:
    """Give the address of a path in a link, whatever characters it holds."""
    return markdown(quote(path, safe="/"))


def size(count: int) -> str:
    """Say how large a file is: `3,571 bytes (3.49 KB)`."""
    if count < 1024:
        return plural(count, "byte")
    short = f"{count / 1024:.2f} KB" if count < 1024**2 else f"{count / 1024**2:.2f} MB"
    return f"{count:,} bytes ({short})"


def within(heading: str) -> str:
    """Give a heading as it is written within a sentence: `base classes`, `API calls`."""
    return heading if heading[1:2].isupper() else heading[:1].lower() + heading[1:]


def link_title(value: str) -> str:
    """Spell a value as the title of a link, with its quotes; no character of it ends the title, the link or a table's cell."""
    return f'"{_NOT_IN_TITLE.sub(lambda match: f"&#{ord(match[0])};", one_line(value))}"'


def listed(values: Any) -> Markup:
    """Join code spans by commas."""
    return markdown(", ".join(code(value) for value in values))


def table(written: object) -> Markup:
    """Tidy a Markdown table as a template writes it: a column in which no row says anything is left out.

    Args:
        written: one row per line, the heading and its rule first; no cell holds a pipe, because `code` and `text` write none.
    """
    rows = [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in str(written).splitlines() if line.strip()]
    shown = [index for index in range(len(rows[0])) if any(row[index] for row in rows[2:])]
    return markdown("".join(f"| {' | '.join(row[index] for index in shown)} |\n" for row in rows))


FILTERS: dict[str, Callable[..., Any]] = {
    "code": code,
    "text": text,
    "sentence": first_sentence,
    "size": size,
    "plural": plural,
    "listed": listed,
    "table": table,
    "within": within,
    "word": word,
}


def in_a_line(value: str) -> str:
    """Give the text that a value has as code: on one line, and not very long."""
    return _shortened(one_line(value)) if len(value) > _LONGEST_CODE else one_line(value)


def _shortened(line: str) -> str:
    return line if len(line) <= _LONGEST_CODE else line[:_LONGEST_CODE].rstrip() + " …"


def _escaped(line: str) -> str:
    return _RISKY.sub(lambda match: _entities(match[0]), line)


def _entities(characters: str) -> str:
    return "".join(map(_entity, characters))


def _entity(character: str) -> str:
    return _BACKSLASHED.get(character) or _NAMED.get(character) or f"&#{ord(character)};"


def _plain(character: str) -> str:
    """Spell a character such that no Markdown processor sees anything in it."""
    return character if character.isalnum() or character in " .,=()'\"+-/;" else f"&#{ord(character)};"
