"""What comments say: prose without its marks, and whether it describes the code at all."""

from __future__ import annotations

import re

_OPENING = re.compile(r"\A(?:/\*[*!]?<?|//[/!]?<?|#+|--+|;+)")
_LINE_MARK = re.compile(r"^[ \t]*(?://[/!]?<?|\*(?!/)|#+)[ \t]?", re.MULTILINE)
_DOC = re.compile(r"/\*[*!](?!\*)|//[/!](?!/)")
_LICENCE = (
    "copyright", "license", "licence", "spdx-", "all rights reserved", "redistribution and use", "without warranty", "permission is hereby",
)  # fmt: skip
"""What a comment that states the terms of use says."""
_DIRECTION = re.compile(
    r"(?:NOLINT|clang-format|clang-tidy|IWYU|eslint|prettier|shellcheck|cspell|vim?:|-\*-|@lint|lint:|noqa|pragma|TODO|FIXME|XXX|coding[:=])",
    re.IGNORECASE,
)
"""What a comment starts with that speaks to a tool or to the next author."""
_SENTENCE = re.compile(r"[A-Z`\"(][^\s]*(?:\s+\S+){2}")
_TAG = re.compile(r"[@\\](?:brief|file|short|details|summary)\s+(?:[\w./]+\.\w+\s*$)?", re.MULTILINE)
_SHEBANG = re.compile(r"\A#!.*\n?")
_BLOCK_TAGS = re.compile(r"^[@\\](?:param|tparam|returns?|throws?|see|since|author|ingroup|note|code)\b.*", re.MULTILINE | re.DOTALL)
_INLINE_TAG = re.compile(r"\{@\w+\s+#?([^}]*)\}")
_RULE = re.compile(r"^(?:[-=~*#+]{2,}\[?|\[)[ \t]*|[ \t]*[-=~*#+]{3,}$")
"""What draws a line around a heading."""
_HEAD = 800
"""Characters in which a licence names itself."""
_LONGEST_PARAGRAPH = 600
_LONGEST = 4000
"""Characters of a comment that are read."""


def prose(written: str) -> str | None:
    """Give the words of a comment as written; None when they do not describe the code.

    Args:
        written: one comment, or several that follow each other, with their marks.
    """
    lines = (_unmarked(line) for line in _SHEBANG.sub("", written[:_LONGEST]).split("\n"))
    text = "\n".join(line for line in lines if not line or any(map(str.isalnum, line))).strip()
    text = _INLINE_TAG.sub(r"`\1`", _BLOCK_TAGS.sub("", _TAG.sub("", text))).strip()
    head = text[:_HEAD].lower()
    if not text or _DIRECTION.match(text) or any(word in head for word in _LICENCE):
        return None
    return text


def documentation(written: str, *, marked: bool) -> str | None:
    """Give the first paragraph of what a comment says of the definition below it; None when it says nothing.

    Args:
        written: the comment with its marks.
        marked: whether the language marks such comments (`///`, `/**`), so that others count as whole sentences only.
    """
    said = prose(written)
    if said is None or (marked and not _DOC.match(written) and not _SENTENCE.match(said)):
        return None
    return said.partition("\n\n")[0][:_LONGEST_PARAGRAPH]


def _unmarked(line: str) -> str:
    line = line.strip()
    opened = _OPENING.sub("", line, count=1) if line.startswith(("/*", "//", "#", "--", ";")) else _LINE_MARK.sub("", line)
    return _RULE.sub("", opened.removesuffix("*/").strip())
