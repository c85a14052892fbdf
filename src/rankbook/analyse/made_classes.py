"""Classes that a module makes without a class statement of their own: `TestX = Base`, `type("TestX", (Base,), {...})`, loops."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct, field

from rankbook.analyse.draft import Ancestor, Draft
from rankbook.analyse.evaluate import FAILS, Evaluator, Frame, bind
from rankbook.analyse.inheritance import joined, lineage_of
from rankbook.analyse.operations import MOST
from rankbook.analyse.things import Thing, Unknown, Value, unknown
from rankbook.analyse.values import parsed
from rankbook.analyse.variants import Variant, guarded, variants
from rankbook.model import Class, Constant, Expression, Function
from rankbook.requirements import Requirement

_SCOPES = frozenset({"globals", "vars", "locals"})
_STATEMENTS = 20_000
"""Statements of one loop that are followed."""
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_UPDATE = re.compile(rf"(?:{'|'.join(sorted(_SCOPES))})\(\)\.update\(")
_CALL = re.compile(r"([A-Za-z_][\w.]*)\(")


class MadeClass(Struct, frozen=True):
    """A class under the name by which pytest comes upon it."""

    name: str
    lineage: tuple[Ancestor, ...]
    line: int
    """Where it is made."""
    case: tuple[tuple[str, str], ...] = ()
    needs: tuple[Requirement, ...] = ()


def made_classes(draft: Draft, path: str) -> Iterator[MadeClass]:
    """Give the classes that a module makes; what only a run can tell makes none."""
    module = draft.modules[path]
    for constant in module.constants:
        if _may_be_class(draft, path, constant):
            yield from _made(draft, Frame(path, constant.line), partial(_of_constant, path, constant), constant.guard)
    for call in module.calls:
        if _UPDATE.match(call.text):
            yield from _made(draft, Frame(path, call.line), partial(_of_update, path, call), call.guard)
    for loop in module.loops:
        yield from _made(draft, Frame(path, loop.line), partial(_of_loop, path, loop))


def _made(draft: Draft, frame: Frame, answer: Callable[[Evaluator], Sequence[Variant]], guard: str | None = None) -> Iterator[MadeClass]:
    try:
        found = variants(draft, frame, answer)
    except Unknown:
        return
    around = guarded(draft, frame.path, frame.line, guard)
    for variant in found:
        thing = dict(variant.values)["class"]
        yield MadeClass(variant.name, _lineage(draft, thing, frame.path), frame.line, variant.case, (*variant.needs, *around))


def _lineage(draft: Draft, thing: Thing, path: str) -> tuple[Ancestor, ...]:
    assert isinstance(thing.definition, Class)
    if thing.body is None:
        return lineage_of(draft, thing.path, thing.definition)
    return joined(draft, thing.path or path, thing.definition, thing.body)


def _may_be_class(draft: Draft, path: str, constant: Constant) -> bool:
    """Tell whether a constant is worth a look: another name of a class, or what makes one."""
    if _NAME.fullmatch(constant.value):
        place = draft.names.find(path, constant.value)
        return place is not None and isinstance(place.definition, Class)
    call = _CALL.match(constant.value)
    if call is None or call[1] == "type":
        return call is not None
    place = draft.names.find(path, call[1])
    return place is not None and isinstance(place.definition, Function) and (place.definition.returns or "").startswith("type(")


def _of_constant(path: str, constant: Constant, evaluator: Evaluator) -> list[Variant]:
    value = evaluator.of(constant.value, Frame(path, constant.line))
    return [Variant(constant.name, values=(("class", value),))] if _is_class(value) else []


def _of_update(path: str, call: Expression, evaluator: Evaluator) -> list[Variant]:
    """Read `globals().update(...)`."""
    node = parsed(call.text)
    if not (isinstance(node, ast.Call) and len(node.args) == 1):
        raise Unknown("what it makes is known when it runs")
    frame, inner = Frame(path, call.line), node.args[0]
    name = evaluator.draft.names.full(path, ast.unparse(inner.func)).rpartition(".")[2] if isinstance(inner, ast.Call) else ""
    if isinstance(inner, ast.Call) and name in MAKERS:
        made: Mapping[str, Value] = MAKERS[name](evaluator, inner, frame)
    else:
        made = evaluator.value(inner, frame)
    return [Variant(key, values=(("class", value),)) for key, value in made.items() if _is_class(value)]


def _of_loop(path: str, loop: Expression, evaluator: Evaluator) -> list[Variant]:
    return _Run(evaluator, path, loop.line).made(loop.text)


def _of_rpc(evaluator: Evaluator, node: ast.Call, frame: Frame) -> Mapping[str, Value]:
    """Join each class with a fixture, as PyTorch's RPC tests are made: prefix, fixture, classes, module."""
    prefix, fixture, listed = (evaluator.value(argument, frame) for argument in node.args[:3])
    maker = evaluator.draft.names.find(frame.path, ast.unparse(node.func))
    helper = evaluator.draft.names.find(maker.path, "SpawnHelper") if maker else None
    shared = [Ancestor("SpawnHelper") if helper is None else Ancestor("SpawnHelper", helper.path, _class(helper.definition))]
    found = {}
    for thing in evaluator.listed(listed):
        name = f"{prefix}{thing.name}"
        bases = tuple(Ancestor(each.definition.qualname, each.path, each.definition) for each in (thing, fixture))
        found[name] = Thing("class", name, path=frame.path, definition=Class(name, name, frame.line, frame.line), body=(*bases, *shared))
    return found


def _class(definition: Class | Function | Constant) -> Class | None:
    return definition if isinstance(definition, Class) else None


MAKERS: Mapping[str, Callable[[Evaluator, ast.Call, Frame], Mapping[str, Value]]] = {"generate_tests": _of_rpc}
"""Functions that make classes for `globals().update(...)`, by the last part of their names."""


def _is_class(value: Value) -> bool:
    return isinstance(value, Thing) and value.kind == "class" and isinstance(value.definition, Class)


class _Run(Struct):
    """Follows the statements of a loop."""

    evaluator: Evaluator
    path: str
    line: int
    """Of the loop in its file."""
    names: dict[str, Value] = field(default_factory=dict)
    found: dict[str, Variant] = field(default_factory=dict)
    steps: int = 0

    def made(self, text: str) -> list[Variant]:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise Unknown("it is too long to be read") from error
        self.body(tree.body)
        return list(self.found.values())

    @property
    def frame(self) -> Frame:
        return Frame(self.path, self.line, names=self.names)

    def body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self.steps += 1
            if self.steps > _STATEMENTS or len(self.found) > MOST:
                raise Unknown("its loop is too long")
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.For):
            for value in self.evaluator.listed(self.evaluator.value(node.iter, self.frame)):
                self.names |= bind(node.target, value)
                self.body(node.body)
        elif isinstance(node, ast.If):
            self.body(node.body if self.evaluator.truth(node.test, self.frame) else node.orelse)
        elif isinstance(node, ast.ClassDef):
            self.names[node.name] = self.defined(node)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            self.assign(node.targets[0], node.value)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self.call(node.value)

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Subscript) and _is_scope(target.value):
            self.bound(target.slice, value)
        elif isinstance(target, ast.Attribute) and target.attr == "__name__":
            return
        elif isinstance(target, ast.Name):
            try:
                self.names[target.id] = self.evaluator.value(value, self.frame)
            except (Unknown, *FAILS) as error:
                self.names[target.id] = unknown(Unknown(str(error)))

    def call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "setattr" and len(node.args) == 3 and _is_module(node.args[0]):
            self.bound(node.args[1], node.args[2])

    def bound(self, name: ast.expr, value: ast.expr) -> None:
        """Note a name of the module that the loop sets to a class."""
        key, made = self.evaluator.value(name, self.frame), self.evaluator.value(value, self.frame)
        if not isinstance(key, str) or not _is_class(made):
            raise Unknown("what the loop makes is known when it runs")
        self.found[key] = Variant(key, values=(("class", made),))

    def defined(self, node: ast.ClassDef) -> Thing:
        """Give a class of the loop's body with its bases and attributes as this turn of the loop makes them."""
        line = self.line + node.lineno - 1
        facts = next((each for each in self.evaluator.draft.modules[self.path].classes if each.line == line), None)
        if facts is None:
            raise Unknown("its class is known when it runs")
        attributes = tuple(Constant(each.name, self.settled(each.value), each.line) for each in facts.attributes)
        made = Class(
            facts.name, f"{facts.qualname}@{self.steps}", facts.line, facts.end_line, facts.docstring, facts.bases, facts.decorators,
            facts.methods, attributes, facts.guard,
        )  # fmt: skip
        return Thing("class", node.name, path=self.path, definition=made, body=self.evaluator.bases(node.bases, self.frame))

    def settled(self, text: str) -> str:
        node = parsed(text)
        return text if node is None else self.evaluator.written(node, self.frame)


def _is_scope(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SCOPES


def _is_module(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return text.endswith("modules[__name__]") or text in ("module", "this_module", "current_module", "_module")
