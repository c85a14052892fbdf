"""Pieces of Python source as they are written, on one line."""

from __future__ import annotations

import ast

from rankbook.model import Expression

_LONGEST = 240
"""Characters of an expression that are shown; a longer one ends with an ellipsis."""
_MOST_LINES = 24
"""Lines up to which an expression is joined into one."""

Placed = ast.expr | ast.keyword | ast.stmt


class Text:
    """The lines of a Python file, from which the text of a node is cut.

    Args:
        text: the file's text with universal newlines.
    """

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")

    def of(self, node: Placed) -> str:
        """Give a node as written; one that spans lines is written anew on one line."""
        if node.end_lineno == node.lineno:
            return _short(self._slice(node.lineno, node.col_offset, node.end_col_offset))
        if (node.end_lineno or 0) - node.lineno < _MOST_LINES:
            try:
                return _short(" ".join(ast.unparse(node).split()))
            except RecursionError:
                pass
        return self._slice(node.lineno, node.col_offset, None).strip() + " …"

    def expression(self, node: ast.expr) -> Expression:
        """Give an expression with its dotted name and its arguments."""
        call = node if isinstance(node, ast.Call) else None
        return Expression(
            text=self.of(node),
            name=leading_name(node),
            line=node.lineno,
            arguments=tuple(self.of(argument) for argument in call.args) if call else (),
            keywords=tuple((keyword.arg or "**", self.of(keyword.value)) for keyword in call.keywords) if call else (),
        )

    def _slice(self, line: int, start: int, end: int | None) -> str:
        text = self._lines[line - 1]
        if text.isascii():
            return text[start:end]
        return text.encode()[start:end].decode(errors="replace")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST].rstrip() + " …"


def dotted(node: ast.AST) -> str:
    """Give `a.b.c` for such an expression; empty for any other."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


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
