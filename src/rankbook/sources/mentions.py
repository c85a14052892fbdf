"""What the expressions of a Python file call and mention, scope by scope."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

from rankbook.sources.text import dotted, string

Mention = tuple[int, str, str, str]
"""Line, kind, name and scope of a keyword, in the order in which keywords are sorted."""
CALL, REFERENCE, LOCAL_CALL, SELF_CALL, SUPER_CALL = "call", "reference", "local call", "self call", "super call"
VARIABLE = "environment variable"
"""Kinds of what is mentioned."""

_ENVIRONMENT_CALLS = frozenset({"get", "setdefault", "pop", "getenv", "putenv", "unsetenv", "setenv", "delenv", "update", "dict"})
_ENVIRONMENT = frozenset({
    "os.environ.get", "os.environ.setdefault", "os.environ.pop", "os.getenv", "os.putenv", "os.unsetenv", "os.environ.update", "os.environ",
})  # fmt: skip
"""What reads or sets an environment variable, by its full dotted name."""
_ENVIRONMENT_WORDS = ("environ", "tenv", "delenv")
"""Of these, a file holds one if it reads or sets an environment variable."""
_NO_EXPRESSIONS = frozenset({"ctx", "op", "ops", "kind", "type_comment", "conversion", "arg", "name", "rest", "kwd_attrs", "is_async"})


class _Fields(dict[type, tuple[str, ...]]):
    """Fields that hold expressions, by kind of node; none for what is no node."""

    def __missing__(self, kind: type) -> tuple[str, ...]:
        found = tuple(name for name in getattr(kind, "_fields", ()) if name not in _NO_EXPRESSIONS)
        self[kind] = found
        return found


_FIELDS = _Fields()
_INNER: dict[type, Callable[[Any], Iterable[Any]]] = {
    **{kind: attrgetter("elts") for kind in (ast.Tuple, ast.List, ast.Set)},
    **{kind: attrgetter("values") for kind in (ast.JoinedStr, ast.BoolOp)},
    ast.BinOp: attrgetter("left", "right"),
    ast.Subscript: attrgetter("value", "slice"),
    ast.Slice: attrgetter("lower", "upper", "step"),
    ast.IfExp: attrgetter("test", "body", "orelse"),
    ast.FormattedValue: attrgetter("value", "format_spec"),
}
"""What gives the expressions in the most frequent kinds of node at once."""


class _FullNames(dict[str, str]):
    """Names in full, by names as written; empty for a mark of pytest, which is no API."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        super().__init__()
        self._aliases = aliases

    def __missing__(self, name: str) -> str:
        root, dot, rest = name.partition(".")
        full = self._aliases.get(root, root) + dot + rest
        self[name] = full = "" if full.startswith("pytest.mark.") else full
        return full


class Mentions:
    """Collects what the expressions of a file call and mention.

    Args:
        aliases: what each imported name stands for.
        defined: names of the functions and classes that the file defines.
        methods: names of the methods that it defines.
        text: the file.
    """

    def __init__(self, aliases: Mapping[str, str], defined: Iterable[str], methods: Iterable[str], text: str) -> None:
        self.found: dict[str, list[Mention]] = {kind: [] for kind in (CALL, REFERENCE, LOCAL_CALL, SELF_CALL, SUPER_CALL, VARIABLE)}
        """By kind."""
        self._full = _FullNames(aliases)
        self._methods = frozenset(methods)
        self._lines: dict[str, dict[str, int]] = {kind: {} for kind in (CALL, REFERENCE, LOCAL_CALL, SELF_CALL, SUPER_CALL)}
        """Of the scope that is read: by kind and by name as written, the first line."""
        self._roots = {
            **dict.fromkeys(defined, self._lines[LOCAL_CALL]),
            **dict.fromkeys(("self", "cls"), self._lines[SELF_CALL]),
            **dict.fromkeys(aliases, self._lines[CALL]),
        }
        """Where a call is noted, by the first name of what is called."""
        self._watches = "env" in text and any(word in text for word in _ENVIRONMENT_WORDS)
        self._scope = ""

    def read(self, scopes: Iterable[tuple[str, list[Any]]]) -> None:  # noqa: C901, PLR0912, PLR0915 - calls would cost more than this
        """Take up the expressions of all scopes.

        Args:
            scopes: by qualified name, the expressions; to each list those are added that stand inside them, so that no depth matters.
        """
        roots, fields, inside, watches = self._roots, _FIELDS, _INNER, self._watches
        called, own, mentioned = self._lines[CALL], self._lines[SELF_CALL], self._lines[REFERENCE]
        local, methods = self._lines[LOCAL_CALL], self._methods
        call, attribute, name, constant, load = ast.Call, ast.Attribute, ast.Name, ast.Constant, ast.Load
        for self._scope, nodes in scopes:
            push, extend = nodes.append, nodes.extend
            for node in nodes:
                kind = type(node)
                if kind is name:
                    written = node.id
                    lines = roots.get(written)
                    if lines is not None and lines is not own and type(node.ctx) is load:
                        line, lines = node.lineno, mentioned if lines is called else local
                        if line < lines.get(written, line + 1):
                            lines[written] = line
                    continue
                if kind is constant:
                    continue
                if watches and kind in _WATCHED:
                    _WATCHED[kind](self, node)
                if kind is call:
                    named = node.func
                    extend(node.args)
                    for keyword in node.keywords:
                        push(keyword.value)
                elif kind is attribute:
                    named = node
                elif kind in inside:
                    extend(inside[kind](node))
                    continue
                else:
                    for field in fields[kind]:
                        inner = getattr(node, field)
                        if type(inner) is list:
                            extend(inner)
                        else:
                            push(inner)
                    continue
                base = named
                while type(base) is attribute:
                    base = base.value
                if type(base) is not name:
                    push(base)
                    if kind is call and type(base) is call:
                        self._note_super(named, base)
                    continue
                lines = roots.get(base.id)
                if lines is None:
                    continue
                if lines is own:
                    if named is base or named.value is not base or (named is node and named.attr not in methods):
                        continue
                    written = named.attr
                elif named is base:
                    written = base.id
                else:
                    if named is node:
                        if lines is not called:
                            continue
                        lines = mentioned
                    written = f"{base.id}.{named.attr}" if named.value is base else dotted(named)
                line = node.lineno
                if line < lines.get(written, line + 1):
                    lines[written] = line
            self._next_scope()

    def _next_scope(self) -> None:
        for kind, lines in self._lines.items():
            if not lines:
                continue
            if kind in (CALL, REFERENCE):
                full = self._full
                self.found[kind] += [(line, kind, full[name], self._scope) for name, line in lines.items() if full[name]]
            else:
                self.found[kind] += [(line, kind, name, self._scope) for name, line in lines.items()]
            lines.clear()

    def _note_super(self, named: ast.expr, base: ast.Call) -> None:
        """Note the call of `super().name`."""
        if isinstance(named, ast.Attribute) and named.value is base and dotted(base.func) == "super":
            lines = self._lines[SUPER_CALL]
            lines[named.attr] = min(named.lineno, lines.get(named.attr, named.lineno))

    # Environment variables

    def _watch_call(self, node: ast.Call) -> None:
        name = dotted(node.func)
        if name.rpartition(".")[2] not in _ENVIRONMENT_CALLS:
            return
        keys = [string(node.args[0])] if node.args else []
        if name.endswith((".update", ".dict")):
            name = name if name.endswith(".update") else dotted(node.args[0]) if node.args else ""
            keys = [keyword.arg for keyword in node.keywords]
            keys += [string(key) for argument in node.args if isinstance(argument, ast.Dict) for key in argument.keys]
        self._note_variables(name, keys, node.lineno)

    def _watch_subscript(self, node: ast.Subscript) -> None:
        self._note_variables(dotted(node.value), [string(node.slice)], node.lineno)

    def _watch_comparison(self, node: ast.Compare) -> None:
        if isinstance(node.ops[0], (ast.In, ast.NotIn)):
            self._note_variables(dotted(node.comparators[0]), [string(node.left)], node.lineno)

    def _note_variables(self, base: str, keys: Iterable[str | None], line: int) -> None:
        if self._full[base] in _ENVIRONMENT or base.endswith((".setenv", ".delenv")):
            self.found[VARIABLE] += [(line, VARIABLE, key, self._scope) for key in keys if key]


_WATCHED: dict[type, Callable[[Mentions, Any], None]] = {
    ast.Call: Mentions._watch_call,
    ast.Subscript: Mentions._watch_subscript,
    ast.Compare: Mentions._watch_comparison,
}
"""What may name an environment variable."""
