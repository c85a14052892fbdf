"""Pieces of Python source as they are written."""

from __future__ import annotations

import ast
import re
import sys

from rankbook.model import Expression

LONGEST = 20_000
"""Characters of a piece that are kept; a longer one ends with an ellipsis."""
_JOINED = 4 * LONGEST
"""Characters of a piece that are looked at when its lines are joined: some of them are indentation and comments."""
_STRING = r"""(?P<prefix>[A-Za-z]{0,2})(?:'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")"""
_BREAK = r"(?<![ \t\f])(?:[ \t\f]*(?:#[^\n]*|\\)?\n)+[ \t\f]*"
"""The end of a line outside strings, with the comment before it and the indentation after it."""
_TOKENS = re.compile(rf"{_STRING}|{_BREAK}", re.DOTALL)
_PLAIN_BREAK = re.compile(r"(?<![ \t\f])[ \t\f]*\n\s*")
_ESCAPES = re.compile(r"\\(.)|\n", re.DOTALL)
_FORMATS = frozenset("fFtT")
_KEPT_AS_IT_IS = frozenset("rR") | _FORMATS
"""Prefixes of strings in which `\\n` would not stand for the end of a line."""
_NESTED_QUOTES = sys.version_info >= (3, 12)
"""Whether the braces of a formatted string may hold its own quotes."""
_FORMATTED = re.compile(r"\b(?:[rR]?[fFtT]|[fFtT][rR])['\"]")
"""The beginning of such a string."""

Placed = ast.expr | ast.keyword | ast.stmt
_CLOSED = (ast.Call, ast.List, ast.Set, ast.Dict)
"""What means the same without a comma before its last bracket."""


class Text:
    """The lines of a Python file, from which the text of a node is cut.

    Args:
        text: the file's text with universal newlines.
    """

    def __init__(self, text: str) -> None:
        self.source = text
        self._lines = text.split("\n")
        self._encoded: dict[int, bytes] = {}

    def of(self, node: Placed) -> str:
        """Give a node as written; one that spans lines is joined into one, without comments, and means the same."""
        if node.end_lineno == node.lineno:
            text = self._slice(node.lineno, node.col_offset, node.end_col_offset)
            return text if len(text) <= LONGEST else shortened(text)
        text = self.whole(node)
        is_whole = len(text) <= _JOINED
        joined = _joined(text) if is_whole else text[:_JOINED]
        if joined is None or (is_whole and _NESTED_QUOTES and _FORMATTED.search(text) and not _means(joined, node)):
            joined = _unparsed(node)
        if isinstance(node, _CLOSED) and joined[-2:-1] == ",":
            joined = joined[:-2] + joined[-1]
        return shortened(joined)

    def whole(self, node: Placed) -> str:
        """Give a node as written, with its line ends; a statement loses its indentation."""
        first, last = node.lineno, node.end_lineno or node.lineno
        if first == last:
            return self._slice(first, node.col_offset, node.end_col_offset)
        lines = [self._slice(first, node.col_offset, None), *self._lines[first : last - 1], self._slice(last, 0, node.end_col_offset)]
        if isinstance(node, ast.stmt):
            indentation = self._lines[first - 1][: node.col_offset]
            lines = [line.removeprefix(indentation) for line in lines]
        return "\n".join(lines)

    def lines(self, node: Placed) -> list[str]:
        """Give the whole lines on which a node stands."""
        return self._lines[node.lineno - 1 : node.end_lineno or node.lineno]

    def expression(self, node: ast.expr) -> Expression:
        """Give an expression with its dotted name and its arguments."""
        if not isinstance(node, ast.Call):
            return Expression(self.of(node), leading_name(node), node.lineno)
        arguments = tuple([self.of(argument) for argument in node.args])
        keywords = tuple([(keyword.arg or "**", self.of(keyword.value)) for keyword in node.keywords])
        return Expression(self.of(node), leading_name(node), node.lineno, arguments, keywords)

    def _slice(self, line: int, start: int, end: int | None) -> str:
        text = self._lines[line - 1]
        if text.isascii():
            return text[start:end]
        encoded = self._encoded.get(line)
        if encoded is None:
            encoded = self._encoded[line] = text.encode()
        return encoded[start:end].decode(errors="replace")


def shortened(text: str, longest: int = LONGEST) -> str:
    """Cut a text that is too long, and say so by an ellipsis."""
    return text if len(text) <= longest else text[:longest].rstrip() + " …"


def _joined(text: str) -> str | None:
    """Join the lines of an expression; None where a string in it cannot be written on one line as it is."""
    if "#" in text or "\\" in text or '"""' in text or "'''" in text:
        try:
            return _TOKENS.sub(_token, text)
        except _UnjoinedError:
            return None
    return _PLAIN_BREAK.sub(_line_break, text)


class _UnjoinedError(Exception):
    """A string that cannot be written on one line as it is."""


def _token(match: re.Match[str]) -> str:
    prefix = match["prefix"]
    if prefix is None:
        return _line_break(match)
    text = match[0]
    if "\n" not in text:
        return text
    if not _KEPT_AS_IT_IS.isdisjoint(prefix):
        raise _UnjoinedError
    return _ESCAPES.sub(_escape, text)


def _line_break(match: re.Match[str]) -> str:
    text, start, end = match.string, match.start(), match.end()
    return "" if text[start - 1] in "([{" or text[end : end + 1] in (")", "]", "}") else " "


def _escape(match: re.Match[str]) -> str:
    """Write the end of a line in a string as an escape; one that is escaped itself says nothing."""
    if match[1] is None:
        return "\\n"
    return "" if match[1] == "\n" else match[0]


def _means(text: str, node: Placed) -> bool:
    """Tell whether a text, on one line, means a node."""
    try:
        if isinstance(node, ast.stmt):
            return ast.dump(ast.parse(text).body[0]) == ast.dump(node)
        if isinstance(node, ast.Tuple | ast.Slice):  # which may stand without brackets
            within = ast.parse(f"_[{text}]", mode="eval").body
            return isinstance(within, ast.Subscript) and ast.dump(within.slice) == ast.dump(node)
        call = ast.parse(f"_({text})" if isinstance(node, ast.keyword | ast.Starred) else f"_(({text}))", mode="eval").body
        return isinstance(call, ast.Call) and [ast.dump(each) for each in (*call.args, *call.keywords)] == [ast.dump(node)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _unparsed(node: Placed) -> str:
    try:
        return " ".join(ast.unparse(node).splitlines())
    except RecursionError:
        return " …"


def dotted(node: ast.AST) -> str:
    """Give `a.b.c` for such an expression; empty for any other."""
    if isinstance(node, ast.Name):
        return node.id
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    return ".".join(reversed(parts))


def leading_name(node: ast.AST) -> str:
    """Give the dotted name that an expression starts with: `a.b` of `a.b(c)(d)`, `a.b[c]` and `a.b < c`; empty when it has none."""
    while True:
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Compare):
            node = node.left
        else:
            return dotted(node)


def string(node: ast.AST | None) -> str | None:
    """Give the value of a string literal; None for any other node."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
