"""Where a statement of a Python file stands, and under which conditions."""

from __future__ import annotations

import ast

from msgspec import Struct

from rankbook.model import Constant
from rankbook.sources.drafts import Branch, FunctionDraft


class Guard(Struct):
    """A condition around a statement."""

    outer: Guard | None
    test: ast.expr | None
    """None where imports fail, or where none of them does."""
    negated: bool = False
    line: int = 0
    failing: tuple[str, ...] = ()
    """Modules whose failing import leads here."""
    imported: tuple[str, ...] = ()
    """Modules that are imported whole; `from a import b` where names are taken from one, which may fail too."""
    raising: tuple[Guard, ...] = ()
    """Under what the statements that import raise by themselves what is caught."""
    text: str = ""
    """As it is rendered, once it is."""


class Scope(Struct):
    """Where a statement stands."""

    kind: str
    """`module`, `class` or `function`."""
    qualname: str
    expressions: list[ast.AST]
    """Of all statements of this scope, for `Mentions`."""
    methods: list[FunctionDraft] | None = None
    """Of the class whose body this is."""
    attributes: list[Constant] | None = None
    function: FunctionDraft | None = None
    """Whose body this is."""
    in_class: bool = False
    """Whether some class is around it."""
    in_main: bool = False
    """Whether it runs only when the file is a script."""
    guard: Guard | None = None
    is_fallback: bool = False
    """Whether it stands in for something else: an `else`, an `except`."""
    branch: Branch | None = None
    """Which of the ways that the statement nearest around it decides, if any."""
    caught: str = ""
    """What the nearest `except` around it catches, unless that is a failing import."""
    swallowed: frozenset[str] = frozenset()
    """Exceptions by which a test is skipped that something around it catches."""

    def under(self, guard: Guard | None, *, is_fallback: bool = False, branch: Branch | None = None) -> Scope:
        """Give the same scope under one more condition."""
        return Scope(
            self.kind,
            self.qualname,
            self.expressions,
            self.methods,
            self.attributes,
            self.function,
            self.in_class,
            self.in_main,
            guard,
            self.is_fallback or is_fallback,
            branch or self.branch,
            self.caught,
            self.swallowed,
        )

    def swallowing(self, names: frozenset[str]) -> Scope:
        """Give the same scope where more exceptions are caught by which a test is skipped."""
        inner = self.under(self.guard)
        inner.swallowed = self.swallowed | names
        return inner
