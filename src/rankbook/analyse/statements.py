"""Follows the statements of a function as a call of it runs them: what it returns, and what names it sets elsewhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from operator import is_
from typing import TYPE_CHECKING, Any, TypeGuard

from msgspec import Struct, field
from msgspec.structs import replace

from rankbook.analyse.operations import MOST, bounded, entries
from rankbook.analyse.things import Fails, Thing, Unknown, Value, unknown
from rankbook.bindings import CHANGERS, changed_in
from rankbook.model import Function

if TYPE_CHECKING:
    from rankbook.analyse.evaluate import Evaluator, Frame

_SCOPES = frozenset({"globals", "vars", "locals"})
_HOLDERS = frozenset({list, tuple, dict})
_LOOKS = 16
"""Lists, tuples and dictionaries that are looked through in a step."""
_SAYS = re.compile(r"(?:^|\.)(?:print|warn\w*|log\w*|debug|info|error|critical|exception|len)$")
"""Functions that only say something of what they are given."""
_NAMESPACES = frozenset({"__dict__", "f_globals", "f_locals"})
SETS_ATTRIBUTES = r"\bsetattr\(|\.test\w*\s*=(?!=)"
"""What sets an attribute that may be a test, as a pattern."""
_SETS_ATTRIBUTES = re.compile(SETS_ATTRIBUTES)


class Setting(Struct, frozen=True):
    """A name that is set elsewhere: `globals()[name] = value`, `setattr(holder, name, value)`, `holder.test_it = value`."""

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
    looked_at: int = 0
    """How many lists, tuples and dictionaries were looked through for one that changed."""
    read: dict[ast.stmt, tuple[frozenset[str], tuple[ast.expr, ...]]] = field(default_factory=dict)
    """What a statement calls, and what changes in it."""

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
            if type(node) in _SIMPLE:
                self.lose(node)
        return None

    def lose(self, node: ast.stmt) -> None:
        """Note that only a run can tell what lists, dictionaries and sets are that change within an expression of a statement."""
        if node not in self.read:
            called = frozenset({part.func.id for part in _calls(node) if isinstance(part.func, ast.Name)})
            self.read[node] = called, tuple(_changed(node, handled=node.value if isinstance(node, ast.Expr) else None))
        called, own = self.read[node]
        closures = [self.names[name].body[0] for name in called & self.names.keys() if self.is_closure(name)]
        for holder in (*own, *(each for closure in closures for each in _changed(closure))):
            held = self.content(holder) if _root(holder) in self.names else None
            if isinstance(held, (list, dict, frozenset)):
                self.becomes(holder, held, unknown(Unknown(f"`{ast.unparse(holder)}` is changed when it runs")))

    def is_closure(self, name: str) -> bool:
        """Tell whether a name stands for a function within the one that is followed."""
        held = self.names[name]
        return isinstance(held, Thing) and held.kind == "closure"

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
        elif is_attribute(target):
            self.set(self.content(target.value), ast.Constant(target.attr), value)
        elif isinstance(target, ast.Subscript) and _root(target) in self.names:
            self.entry(target.value, target.slice, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.parts(target, value)

    def entry(self, holder: ast.expr, at: ast.expr, value: Value) -> None:
        """Set an entry of a list or a dictionary."""
        held, key = self.content(holder), self.content(at)
        if isinstance(held, dict) and not (isinstance(key, Thing) and key.kind == "unknown"):
            self.becomes(holder, held, bounded({**held, key: value}))
        elif isinstance(held, list) and isinstance(key, int):
            self.becomes(holder, held, [*held[:key], value, *held[key:][1:]])
        else:
            self.becomes(holder, held, unknown(Unknown("an entry of it is set")))

    def becomes(self, holder: ast.expr, old: Value, new: Value) -> None:
        """Put what an object has become in the place of what it was, in all that holds it; of any other, its name becomes unknown."""
        if not isinstance(old, (list, dict)):
            self.names[_root(holder)] = new
            return
        for each, value in self.names.items():
            self.names[each] = self.swapped(value, old, new)

    def swapped(self, value: Value, old: Value, new: Value) -> Value:
        """Give a value with another in the place of an object; itself when it does not hold it."""
        if value is old:
            return new
        if type(value) not in _HOLDERS or not value:
            return value
        self.looked_at += 1
        if self.looked_at % _LOOKS == 0:
            self.evaluator.spend()
        parts = list(value.values() if isinstance(value, dict) else value)
        swapped = [self.swapped(part, old, new) if type(part) in _HOLDERS else part for part in parts]
        if all(map(is_, parts, swapped)):
            return value
        return dict(zip(value, swapped, strict=True)) if isinstance(value, dict) else type(value)(swapped)

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
            value, held = self.content(ast.BinOp(left, node.op, node.value)), self.names.get(node.target.id)
            if isinstance(held, (list, dict)):
                self.becomes(node.target, held, value)
            else:
                self.names[node.target.id] = value

    def if_(self, node: ast.If) -> tuple[Value] | None:
        try:
            is_true = self.evaluator.truth(node.test, self.here)
        except Fails:
            raise
        except Unknown as error:
            bound = _only_bound([node])
            if bound is None:
                raise
            self.names |= dict.fromkeys(bound, unknown(error))
            return None
        return self.body(node.body if is_true else node.orelse)

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
        elif isinstance(name, ast.Attribute) and _root(name) in self.names:
            self.changed(name.value, name.attr, call)
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
        """Call a function of the tree for the names that it sets; of another it matters which objects it is given."""
        function = self.content(call.func)
        text = function.definition.text if isinstance(function, Thing) and isinstance(function.definition, Function) else None
        if text is not None and sets_attributes(text):
            self.evaluator.value(call, self.here)
        node = definition(text) if text else None
        if _SAYS.search(ast.unparse(call.func)) or (node is not None and not any(True for _ in _changed(node))):
            return
        for each in (*call.args, *(keyword.value for keyword in call.keywords)):
            held = self.names.get(_root(each))
            if isinstance(held, (list, dict)):
                self.becomes(each, held, unknown(Unknown(f"`{ast.unparse(call.func)}` may change it")))

    def changed(self, holder: ast.expr, how: str, call: ast.Call) -> None:
        """Add to a list or a dictionary; what else a method does to an object is not followed."""
        value, given = self.content(holder), [self.content(each) for each in call.args]
        is_plain = len(given) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred)
        named = {each.arg: self.content(each.value) for each in call.keywords if each.arg}
        if is_plain and how == "append" and isinstance(value, list):
            self.becomes(holder, value, bounded([*value, given[0]]))
        elif is_plain and how == "extend" and isinstance(value, list) and isinstance(given[0], (list, tuple)):
            self.becomes(holder, value, bounded([*value, *given[0]]))
        elif is_plain and how == "update" and isinstance(value, dict) and isinstance(given[0], dict):
            self.becomes(holder, value, bounded({**value, **given[0]}))
        elif not given and how == "update" and isinstance(value, dict) and len(named) == len(call.keywords):
            self.becomes(holder, value, bounded({**value, **named}))
        elif isinstance(value, (list, dict, frozenset)) and how in CHANGERS:
            self.becomes(holder, value, unknown(Unknown(f"it is changed by `.{how}`")))

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


_SIMPLE = frozenset({ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr})


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


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Call))


def _changed(node: ast.AST, handled: ast.expr | None = None) -> Iterator[ast.expr]:
    """Yield what changes in a statement or function: by methods, by `next`, and in a function also by entries that it sets.

    Args:
        node: the statement or function.
        handled: a call that is followed.
    """
    for part in _calls(node):
        changed = changed_in(part) if part is not handled else None
        if changed is not None:
            yield changed
        elif isinstance(part.func, ast.Name) and part.func.id == "next" and part.args:
            yield part.args[0]
    for inner in ast.walk(node) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else ():
        if isinstance(inner, ast.Subscript) and not isinstance(inner.ctx, ast.Load):
            yield inner.value


def _only_bound(body: list[ast.stmt]) -> list[str] | None:
    """Give the names that statements bind; None when they may do anything else that matters."""
    found: list[str] = []
    for node in body:
        match node:
            case ast.If(body=there, orelse=otherwise):
                inner = _only_bound([*there, *otherwise])
                if inner is None:
                    return None
                found += inner
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.append(name)
            case ast.Assign(targets=targets) if not any(_changed(node)) and all(map(_is_plain_target, targets)):
                found += [each.id for each in targets if isinstance(each, ast.Name)]
            case ast.Expr(value=ast.Call(func=called)) if _SAYS.search(ast.unparse(called)) and not any(_changed(node)):
                continue
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                continue
            case _:
                return None
    return found


def _is_plain_target(node: ast.expr) -> bool:
    """Tell whether what is assigned to is a name, or an attribute that is no test."""
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and not is_attribute(node))


def sets_attributes(text: str) -> bool:
    """Tell whether a function as written sets attributes that may be tests."""
    return _SETS_ATTRIBUTES.search(text) is not None


def is_attribute(node: ast.expr) -> TypeGuard[ast.Attribute]:
    """Tell whether a node is an attribute that may be a test when it is set: `cls.test_it`."""
    return isinstance(node, ast.Attribute) and node.attr.startswith("test") and isinstance(node.value, ast.Name)


def _root(node: ast.expr) -> str:
    """Give the name that an expression leads on from: `rows` of `rows[0]["n"]`; empty when it is none."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


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
