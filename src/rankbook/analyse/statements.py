"""Follows the statements of a function as a call of it runs them: what it returns, and what names it sets elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from rankbook.analyse.operations import MOST, bounded, entries
from rankbook.analyse.things import Fails, Thing, Unknown, Value, unknown
from rankbook.model import Function

if TYPE_CHECKING:
    from rankbook.analyse.evaluate import Evaluator, Frame

_SCOPES = frozenset({"globals", "vars", "locals"})
_NAMESPACES = frozenset({"__dict__", "f_globals", "f_locals"})


class Setting(Struct, frozen=True):
    """A name that is set by no assignment to it: `globals()[name] = value`, `setattr(holder, name, value)`."""

    holder: Value
    """Class or object that gets it; None for a module."""
    name: str
    value: Value
    path: str = ""
    """File of the module whose names it sets; empty when that is known when it runs."""


class _Run(Struct):
    """Follows statements.

    What a statement sets to something that the sources do not tell is unknown, and only where it matters that is an end.
    """

    evaluator: Evaluator
    frame: Frame
    names: dict[str, Value]
    """Names that are bound, those of the functions around it included."""

    @property
    def here(self) -> Frame:
        """Where the statements stand, with the names that are bound."""
        return self.frame.within(self.names)

    def body(self, statements: list[ast.stmt]) -> tuple[Value] | None:
        """Follow statements up to the one that returns.

        Returns:
            What is returned; None when nothing is.

        Raises:
            Unknown: only a run can tell.
        """
        for node in statements:
            self.evaluator.spend()
            handler = _HANDLERS.get(type(node))
            if handler is None:
                raise Unknown("it is known when it runs")
            found = handler(self, node)
            if found is not None:
                return found
        return None

    def content(self, node: ast.expr) -> Value:
        """Give a value, which may be unknown."""
        try:
            return self.evaluator.value(node, self.here)
        except Unknown as error:
            return unknown(error)

    def returned(self, node: ast.Return) -> tuple[Value]:
        return (None if node.value is None else self.evaluator.value(node.value, self.here),)

    def assign(self, node: ast.Assign) -> None:
        value = self.content(node.value)
        for target in node.targets:
            self.target(target, value)

    def annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.target(node.target, self.content(node.value))

    def target(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, ast.Subscript) and is_scope(target.value):
            is_own = isinstance(target.value, ast.Call) and not target.value.args
            self.set(self.holder(target.value), target.slice, value, self.frame.path if is_own else "")
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id in self.names:
            self.names[target.value.id] = unknown(Unknown("an entry of it is set"))
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.parts(target, value)

    def parts(self, target: ast.Tuple | ast.List, value: Value) -> None:
        try:
            values = entries(value)
        except Unknown as error:
            values = [unknown(error)] * len(target.elts)
        if len(values) != len(target.elts) or any(isinstance(each, ast.Starred) for each in target.elts):
            raise Unknown("it is known when it runs")
        for inner, part in zip(target.elts, values, strict=True):
            self.target(inner, part)

    def augmented(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            left = ast.Name(node.target.id, ast.Load())
            self.names[node.target.id] = self.content(ast.BinOp(left, node.op, node.value))

    def if_(self, node: ast.If) -> tuple[Value] | None:
        return self.body(node.body if self.evaluator.truth(node.test, self.here) else node.orelse)

    def for_(self, node: ast.For) -> tuple[Value] | None:
        for value in self.evaluator.listed(self.evaluator.value(node.iter, self.here)):
            self.target(node.target, value)
            found = self.body(node.body)
            if found is not None:
                return found
        return None

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Bind a function; one that is wrapped around a test stands for that test."""
        wrapped = [self.content(each) for each in map(_wrapped, node.decorator_list) if each is not None]
        is_test = wrapped and isinstance(wrapped[0], Thing) and wrapped[0].kind == "test"
        self.names[node.name] = (
            wrapped[0] if is_test else Thing("closure", node.name, path=self.frame.path, body=(node, replace(self.frame, names=self.names)))
        )

    def class_(self, node: ast.ClassDef) -> None:
        self.names[node.name] = Thing("class", node.name)

    def expression(self, node: ast.Expr) -> None:
        call = node.value
        if not isinstance(call, ast.Call):
            return
        name = call.func
        if isinstance(name, ast.Name) and name.id == "setattr" and len(call.args) == 3:
            self.set(self.holder(call.args[0]), call.args[1], self.content(call.args[2]))
        elif isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name) and name.value.id in self.names:
            self.changed(name.value.id, name.attr, call)
        elif isinstance(name, (ast.Name, ast.Attribute)):
            self.called(call)

    def holder(self, node: ast.expr) -> Value:
        """Give what a name is set on; None for a module, which is no value that is known."""
        if isinstance(node, ast.Call) and is_scope(node):
            return None
        inner = node.value if isinstance(node, ast.Attribute) and node.attr in _NAMESPACES else node
        held = self.content(inner)
        is_unknown = isinstance(held, Thing) and held.kind == "unknown"
        return None if is_unknown and (inner is not node or is_module(inner)) else held

    def called(self, call: ast.Call) -> None:
        """Call a function of the tree for the names that it sets; one that sets none makes no difference."""
        function = self.content(call.func)
        if isinstance(function, Thing) and isinstance(function.definition, Function) and "setattr(" in function.definition.text:
            self.evaluator.value(call, self.here)

    def changed(self, name: str, how: str, call: ast.Call) -> None:
        """Add to a list; what else a method does to an object is not followed."""
        value = self.names[name]
        if how == "append" and isinstance(value, list) and len(call.args) == 1:
            self.names[name] = bounded([*value, self.content(call.args[0])])
        elif isinstance(value, (list, dict)):
            self.names[name] = unknown(Unknown(f"it is changed by `.{how}`"))

    def set(self, holder: Value, name: ast.expr, value: Value, path: str = "") -> None:
        key = self.evaluator.value(name, self.here)
        if not isinstance(key, str):
            raise Unknown("the name that it sets is known when it runs")
        self.evaluator.settings.append(Setting(holder, key, value, path))
        if len(self.evaluator.settings) > MOST:
            raise Unknown("its loop is too long")

    def raised(self, _node: ast.Raise) -> None:
        raise Fails("it fails when it runs")

    def nothing(self, _node: ast.stmt) -> None:
        """Pass over a statement that changes no value."""


_HANDLERS: Mapping[type[ast.stmt], Callable[[_Run, Any], tuple[Value] | None]] = {
    ast.Return: _Run.returned,
    ast.Assign: _Run.assign,
    ast.AnnAssign: _Run.annotated,
    ast.AugAssign: _Run.augmented,
    ast.If: _Run.if_,
    ast.For: _Run.for_,
    ast.FunctionDef: _Run.function,
    ast.AsyncFunctionDef: _Run.function,
    ast.ClassDef: _Run.class_,
    ast.Expr: _Run.expression,
    ast.Raise: _Run.raised,
    **dict.fromkeys((ast.Assert, ast.Pass, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom), _Run.nothing),
}


def follow(evaluator: Evaluator, frame: Frame, names: dict[str, Value], body: list[ast.stmt]) -> Value:
    """Give what a call of a function returns.

    Args:
        evaluator: evaluates its expressions, and notes which names it sets elsewhere.
        frame: where the function stands.
        names: its parameters, and the names of the functions around it.
        body: its statements.

    Raises:
        Unknown: only a run can tell.
    """
    found = _Run(evaluator, frame, names).body(body)
    return None if found is None else found[0]


@lru_cache(maxsize=1024)
def definition(text: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Give the node of a function as written; None when it cannot be read."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    node = tree.body[0] if tree.body else None
    return node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


def is_module(node: ast.expr) -> bool:
    """Tell whether what a node stands for seems to be a module: `sys.modules[__name__]`, `caller_module`."""
    return "mod" in ast.unparse(node).lower()


def is_scope(node: ast.expr) -> bool:
    """Tell whether a node gives the names of a module, a frame or an object: `globals()`, `module.__dict__`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _SCOPES
    return isinstance(node, ast.Attribute) and node.attr in _NAMESPACES


def _wrapped(node: ast.expr) -> ast.expr | None:
    """Give what is wrapped in `functools.wraps(test)`."""
    if not (isinstance(node, ast.Call) and node.args):
        return None
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return node.args[0] if name == "wraps" else None
