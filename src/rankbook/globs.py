"""Glob patterns on paths below the root: `*` and `?` stay within a name, `**` spans folders."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable


def matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Build the test whether a path, or a folder that holds it, matches one of the patterns.

    Args:
        patterns: globs; one without `/` matches names in any folder, as `.gitignore` has it.
    """
    expressions = [_expression(pattern) for pattern in patterns]
    if not expressions:
        return lambda _: False
    compiled = re.compile("|".join(expressions))
    return lambda path: compiled.fullmatch(path) is not None


def _expression(pattern: str) -> str:
    pattern = pattern.removeprefix("./").rstrip("/")
    if "/" not in pattern:
        pattern = f"**/{pattern}"
    segments = [segment for segment in pattern.split("/") if segment]
    body = "".join(_segment(segment, last=index == len(segments) - 1) for index, segment in enumerate(segments))
    return f"(?s:{body}(?:/.*)?)"


def _segment(segment: str, *, last: bool) -> str:
    if segment == "**":
        return ".*" if last else "(?:.*/)?"
    return _name(segment) + ("" if last else "/")


def _name(segment: str) -> str:
    out, index = "", 0
    while index < len(segment):
        char = segment[index]
        end = segment.find("]", index + 2) if char == "[" else -1
        if end > 0:
            out += _class(segment[index + 1 : end])
            index = end
        else:
            out += {"*": "[^/]*", "?": "[^/]"}.get(char) or re.escape(char)
        index += 1
    return out


def _class(inner: str) -> str:
    negated = inner[:1] in "!^"
    body = inner[1:] if negated else inner
    escaped = re.sub(r"([\\\[\]&~|^])", r"\\\1", body)
    expression = f"[{'^/' if negated else ''}{escaped}]"
    try:
        re.compile(expression)
    except re.error:
        return re.escape(f"[{inner}]")
    return expression
