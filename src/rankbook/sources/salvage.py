"""What can be read of Python that does not parse: the statements that stop the parser become `pass`, and the rest is read as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec.structs import replace
from tree_sitter import Node

from rankbook.model import Module, Source
from rankbook.sources import grammars
from rankbook.syntax import syntax_tree

_MOST_ROUNDS = 60
"""Statements that are taken out one by one."""
_MOST_CHARACTERS = 1_000_000
"""Characters of a file that is mended."""
_MOST_BYTES = 2_000_000
"""Bytes that are parsed to find them, all rounds together."""
_STATEMENTS = frozenset({
    "expression_statement", "return_statement", "assert_statement", "raise_statement", "import_statement", "import_from_statement",
    "future_import_statement", "print_statement", "exec_statement", "delete_statement", "global_statement", "nonlocal_statement",
    "pass_statement", "break_statement", "continue_statement", "type_alias_statement", "if_statement", "for_statement", "while_statement",
    "try_statement", "with_statement", "match_statement", "decorated_definition", "function_definition", "class_definition", "ERROR",
})  # fmt: skip
_OLD = frozenset({"print_statement", "exec_statement", "type_alias_statement"})
"""Statements of other versions of Python, which are known to stop the parser."""
_HEAD = re.compile(r"([ \t]*)((?:async[ \t]+)?def[ \t]+\w+|class[ \t]+\w+)")
_NO_BODY = re.compile(r"expected an indented block after .* on line (\d+)")
_PLAIN = "pass"


def salvage(broken: Module, text: str, read: Callable[[bytes, Source, str], Module]) -> Module:
    """Give the facts of those statements of a Python file that parse.

    Args:
        broken: the file, with why it does not parse.
        text: its text.
        read: what reads a file that parses.

    Returns:
        The facts with the error; the error alone when its statements cannot be told apart, or no grammar is installed.
    """
    if len(text) > _MOST_CHARACTERS:
        return broken
    try:
        mended = _mended(grammars.bytes_of(text))
        encoding = broken.source.embedding.encoding if broken.source.embedding is not None else "utf-8"
        facts = read(mended.encode(encoding, errors="replace"), broken.source, mended)
    except (grammars.NoGrammarError, ValueError, RecursionError, MemoryError):
        return broken
    return broken if facts.error is not None else replace(facts, error=broken.error, error_line=broken.error_line)


def _mended(data: bytes) -> str:
    """Take out of a source what does not parse, as far as that can be found."""
    draft = _Draft(data.decode(), grammars.parse("python", data))
    for _ in range(min(_MOST_ROUNDS, _MOST_BYTES // (len(data) + 1))):
        try:
            syntax_tree(draft.text())
        except SyntaxError as error:
            if not draft.give_up(error):
                break
        except (RecursionError, MemoryError):
            break
        else:
            return draft.text()
    draft.keep_what_parses()
    return draft.text()


class _Draft:
    """A source in which statements are replaced one after another.

    Args:
        text: the source.
        root: its syntax tree, errors and all.
    """

    def __init__(self, text: str, root: Node) -> None:
        self._lines = text.split("\n")
        self._top = [node for node in root.children if node.is_named and node.type != "comment"]
        self._tried: set[tuple[str, int]] = set()
        for node in _walk(root):
            if node.type == "type_parameter":
                self._blank_within(node)
            elif node.type in _OLD:
                self._drop(node)

    def text(self) -> str:
        """Give the source as it is now."""
        return "\n".join(self._lines)

    def give_up(self, error: SyntaxError) -> bool:
        """Take out what an error is about, as little as may help; False when nothing is left to try."""
        headless = _NO_BODY.search(error.msg or "") if isinstance(error, IndentationError) else None
        if headless is not None and self._once(("body", int(headless[1]))):
            self._lines[int(headless[1]) - 1] += " pass"
            return True
        row = min(error.lineno or 1, len(self._lines)) - 1
        head = _HEAD.match(self._lines[row])
        if head is not None and self._once(("head", row)):
            self._lines[row] = head[1] + head[2] + (":" if head[2].startswith("class") else "():")
            return True
        for node in sorted(self._around(row), key=lambda node: (node.end_point.row - node.start_point.row, -node.start_byte)):
            if self._once((node.type, node.start_byte)):
                self._drop(node)
                return True
        if self._once(("line", row)):
            self._lines[row] = ""
            return True
        return False

    def _once(self, key: tuple[str, int]) -> bool:
        new = key not in self._tried
        self._tried.add(key)
        return new

    def keep_what_parses(self) -> None:
        """Replace each statement of the module that does not parse by itself."""
        for node in self._top:
            start, end = node.start_point.row, _last_row(node)
            try:
                syntax_tree("\n".join(self._lines[start : end + 1]))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self._drop(node)

    def _around(self, row: int) -> Iterator[Node]:
        """Give the statements that hold a row."""
        stack = [node for node in self._top if node.start_point.row <= row <= _last_row(node)]
        while stack:
            node = stack.pop()
            if node.type in _STATEMENTS:
                yield node
            stack += [child for child in node.children if child.start_point.row <= row <= _last_row(child)]

    def _drop(self, node: Node) -> None:
        self._write(node.start_point.row, _last_row(node), _PLAIN)

    def _write(self, start: int, end: int, instead: str) -> None:
        first = self._lines[start]
        indent = first[: len(first) - len(first.lstrip())]
        for row in range(start, min(end, len(self._lines) - 1) + 1):
            self._lines[row] = ""
        self._lines[start] = indent + instead

    def _blank_within(self, node: Node) -> None:
        row, start, end = node.start_point.row, node.start_point.column, node.end_point.column
        line = self._lines[row].encode()
        if node.end_point.row == row:
            self._lines[row] = (line[:start] + b" " * (end - start) + line[end:]).decode(errors="replace")


def _walk(root: Node) -> Iterator[Node]:
    """Give the nodes of a tree that are statements, or stand in their heads."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        if node.type not in _LEAVES:
            stack += reversed(node.children)


_LEAVES = frozenset({"expression_statement", "return_statement", "argument_list", "parameters", "string", *_OLD})


def _last_row(node: Node) -> int:
    end = node.end_point
    return end.row - (end.column == 0 and end.row > node.start_point.row)
