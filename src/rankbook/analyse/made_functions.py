"""Tests that a module makes under names that no definition tells: by decorators, in loops, by calls.

`globals()["test_" + func.__name__] = wrapper`, `setattr(TestX, f"test_{n}", make(n))`, `cls.test_smoke = test_smoke`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from rankbook.analyse import statements
from rankbook.analyse.draft import Draft
from rankbook.analyse.evaluate import Evaluator, Frame
from rankbook.analyse.made_classes import made_classes
from rankbook.analyse.names import Place
from rankbook.analyse.rules import expression
from rankbook.analyse.things import Thing, Unknown, Value
from rankbook.analyse.variants import Variant, applied, guarded, variants, why
from rankbook.model import Class, Expression, Function
from rankbook.requirements import Requirement

_SETS = re.compile(r"\b(?:globals|vars|locals|setattr)\(|__dict__|\bf_(?:globals|locals)\b")
"""What sets names that no assignment tells."""
_SETS_AFAR = re.compile(r"\b(?:vars|setattr)\(|__dict__|\bf_(?:globals|locals)\b")
"""What sets them in another file than its own."""
_SETS_ON_CLASS = re.compile(rf"{_SETS.pattern}|{statements.SETS_ATTRIBUTES}")
"""What sets names in a class that no statement of its body tells."""
_CALLED = re.compile(r"^\s*([A-Za-z_][\w.]*)\(", re.MULTILINE)
"""A call that stands as a statement, by the name of what is called."""
_CALLABLE = frozenset({"function", "closure", "lambda", "partial", "test", "unknown"})
"""Kinds of things that may be tests."""


_Starts = Sequence[tuple[str, str]]
"""How names begin, each with what gets it."""


class MadeFunction(Struct, frozen=True):
    """A test function under the name by which pytest comes upon it."""

    name: str
    function: Function
    """The function that runs, with the decorators that count for it."""
    holder: str = ""
    """Class that gets it, in the same file; empty for the module."""
    needs: tuple[Requirement, ...] = ()
    family: str = ""
    """What the entry stands for where only a run can tell the names, as a clause."""
    path: str = ""
    """File in which the function stands; empty for that which makes it."""


def by_decorators(draft: Draft, path: str, function: Function) -> Iterator[MadeFunction]:
    """Give the tests that the decorators of a function put beside it."""
    for index, written in enumerate(function.decorators):
        place = setter(draft, path, written.name)
        if place is not None and _reaches(place, path):
            yield from _beside(draft, path, replace(function, decorators=function.decorators[index:]), place)


def setter(draft: Draft, path: str, name: str, how: re.Pattern[str] = _SETS) -> Place | None:
    """Find the function that a name stands for, if it sets names that no assignment tells.

    Args:
        draft: the tree.
        path: file in which the name stands.
        name: as written there.
        how: what sets such names.
    """

    def find() -> Place | None:
        place = draft.names.find(path, name) if name else None
        function = place.definition if place is not None else None
        return place if isinstance(function, Function) and how.search(function.text) else None

    return draft.remember(("setter", path, name, how.pattern), find)


def _setters(draft: Draft, path: str, name: str) -> tuple[Place, ...]:
    """Find the function of a decorator of classes, and then those that it calls, if one of them sets names in the class."""

    def find() -> tuple[Place, ...]:
        place = draft.names.find(path, name) if name else None
        if place is None or not isinstance(place.definition, Function):
            return ()
        called = dict.fromkeys(_CALLED.findall(place.definition.text))
        helpers = [found for each in called if (found := setter(draft, place.path, each, _SETS_ON_CLASS)) is not None]
        return (place, *helpers) if helpers or _SETS_ON_CLASS.search(place.definition.text) else ()

    return draft.remember(("setters", path, name), find)


def _reaches(place: Place, path: str) -> bool:
    """Tell whether a function may set names of a file: `globals()` are those of its own."""
    return place.path == path or (isinstance(place.definition, Function) and _SETS_AFAR.search(place.definition.text) is not None)


def _beside(draft: Draft, path: str, function: Function, place: Place) -> Iterator[MadeFunction]:
    frame, written = Frame(path, function.line), function.decorators[0]

    def answer(evaluator: Evaluator) -> list[Variant]:
        applied(evaluator, place, frame, written, Thing("test", function.name))
        names = [(each.name, each.value) for each in evaluator.settings if each.holder is None and each.path in ("", path)]
        return [Variant(name, values=(("test", value),)) for name, value in names if draft.rules.is_test_function(name)]

    try:
        found = variants(draft, frame, answer)
    except Unknown as error:
        yield MadeFunction(function.name, function, family=f"the tests that `{written.text}` makes of it: {error}")
        return
    for variant in found:
        value = dict(variant.values)["test"]
        is_test = isinstance(value, Thing) and value.kind == "test"
        runs = function if is_test else replace(function, decorators=(written,), parameters=())
        yield MadeFunction(variant.name, runs, needs=variant.needs)


def made_functions(draft: Draft, path: str) -> tuple[MadeFunction, ...]:
    """Give the tests that loops, calls and decorators of classes of a module make; their names alone are sure."""
    return draft.remember(("made functions", path), lambda: tuple(_made(draft, path)))


def _made(draft: Draft, path: str) -> Iterator[MadeFunction]:
    module = draft.modules[path]
    for loop in module.loops:
        by_class = loop.line in {made.line for made in made_classes(draft, path)}
        found = _by(draft, path, loop, partial(_run, path, loop), list(_beginnings(loop.text)))
        yield from (made for made in found if not (by_class and made.family))
    for call in module.calls:
        place = setter(draft, path, call.name, _SETS_ON_CLASS)
        if place is not None and (_reaches(place, path) or statements.sets_attributes(_text(place))):
            starts = [(_given(place, call, holder), start) for holder, start in _beginnings(_text(place), "test")]
            yield from _by(draft, path, call, partial(_call, path, call), starts)
    for each in module.classes:
        for written in each.decorators:
            setters = _setters(draft, path, written.name) if "." not in each.qualname else ()
            if setters:
                told = dict.fromkeys((each.qualname, start) for place in setters for _, start in _beginnings(_text(place), "test"))
                yield from _by(draft, path, written, partial(_decorate, path, each, written, setters[0]), list(told))


def _run(path: str, loop: Expression, evaluator: Evaluator) -> None:
    try:
        tree = ast.parse(loop.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unknown("it is too long to be read") from error
    statements.follow(evaluator, Frame(path, loop.line), {}, tree.body)


def _call(path: str, call: Expression, evaluator: Evaluator) -> None:
    evaluator.of(call.text, Frame(path, call.line))


def _decorate(path: str, each: Class, written: Expression, place: Place, evaluator: Evaluator) -> None:
    thing = Thing("class", each.name, path=path, definition=each)
    applied(evaluator, place, Frame(path, each.line), written, thing)


def _given(place: Place, call: Expression, name: str) -> str:
    """Give what a call hands to a parameter, as written; any other name as it is."""
    names = place.definition.parameters if isinstance(place.definition, Function) else ()
    return {**dict(zip(names, call.arguments, strict=False)), **dict(call.keywords)}.get(name, name)


def _text(place: Place) -> str:
    return place.definition.text if isinstance(place.definition, Function) else ""


def _by(
    draft: Draft, path: str, maker: Expression, run: Callable[[Evaluator], None], starts: Sequence[tuple[str, str]]
) -> Iterator[MadeFunction]:
    """Give what a statement makes; where only a run can tell, one entry for each holder and beginning of a name that it writes."""

    def answer(evaluator: Evaluator) -> list[Variant]:
        run(evaluator)
        made = [each for each in evaluator.settings if each.path in ("", path) and _is_function(each.value)]
        return [Variant(f"{_holder(each)}::{each.name}", values=(("setting", each),)) for each in made]

    try:
        found: Sequence[Variant] = variants(draft, Frame(path, maker.line), answer)
    except Unknown as error:
        told = f"the tests that `{_first_line(maker.text)}` makes: {error}"
        classes = {each.qualname for each in draft.modules[path].classes}
        for holder, start in starts:
            function = Function(start, start, maker.line, maker.line)
            if holder in classes or not holder:
                yield MadeFunction(start, function, holder, family=told)
        return
    around = guarded(draft, path, maker.line, maker.guard)
    for variant in found:
        setting = dict(variant.values)["setting"]
        origin, function = _function(draft, path, setting, maker.line)
        needs = (*variant.needs, *around)
        yield MadeFunction(setting.name, function, _holder(setting), needs, _cases_of_run(setting), "" if origin == path else origin)


def _is_function(value: Value) -> bool:
    return isinstance(value, Thing) and value.kind in _CALLABLE


def _holder(setting: statements.Setting) -> str:
    """Name the class that gets a name; empty for the module."""
    held = setting.holder
    if held is None:
        return ""
    return held.definition.qualname if isinstance(held, Thing) and isinstance(held.definition, Class) else "?"


def _function(draft: Draft, path: str, setting: statements.Setting, line: int) -> tuple[str, Function]:
    """Give the function that runs, with its file; one that is known by its name only stands where it is made."""
    value = setting.value
    if value.kind == "function" and isinstance(value.definition, Function):
        return value.path, value.definition
    if value.kind == "closure":
        node, frame = value.body
        where = frame.line + node.lineno - 1
        for function in draft.modules[value.path].functions:
            if function.line == where:
                return value.path, function
    return path, Function(setting.name, setting.name, line, line)


def _cases_of_run(setting: statements.Setting) -> str:
    """Say why only a run can tell the cases of a function within another, as a clause: what is bound there says them; mostly empty."""
    if setting.value.kind != "closure":
        return ""
    node, frame = setting.value.body
    for decorator in node.decorator_list:
        written = expression(decorator, node.lineno)
        names = [part.id for part in ast.walk(decorator) if isinstance(part, ast.Name) and part.id in (frame.names or {})]
        if names and written.name.endswith("parametrize"):
            return why(Unknown(f"`{names[0]}` is known when it runs"), written.text)
    return ""


def _first_line(text: str) -> str:
    return text.partition("\n")[0].rstrip(": ")


def _beginnings(text: str, otherwise: str = "") -> Iterator[tuple[str, str]]:
    """Give how the names begin that a text sets, with what gets them: `test_ring` of `globals()[f"test_ring_{n}"]`.

    Args:
        text: statements as written.
        otherwise: beginning of a name that is put together and begins with no text.
    """
    try:
        yield from _told(ast.parse(text), otherwise)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return


def _told(tree: ast.Module, otherwise: str) -> list[tuple[str, str]]:
    names = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: dict[tuple[str, str], None] = {}
    for node in ast.walk(tree):
        for holder, name in _set_names(node):
            meant = names.get(name.id, name) if isinstance(name, ast.Name) else name
            start = _beginning(meant).rstrip("_") or (otherwise if isinstance(meant, (ast.JoinedStr, ast.BinOp)) else "")
            if start.lower().startswith("test"):
                found[holder, start] = None
    return list(found)


def _set_names(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and statements.is_scope(target.value):
                yield "", target.slice
            elif statements.is_attribute(target):
                yield ast.unparse(target.value), ast.Constant(target.attr)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr" and len(node.args) == 3:
        held = node.args[0]
        yield "" if statements.is_module(held) else ast.unparse(held), node.args[1]


def _beginning(node: ast.expr) -> str:
    """Give the text with which a string begins."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return _beginning(node.values[0]) if node.values else ""
    if isinstance(node, ast.BinOp):
        return _beginning(node.left).partition("%")[0]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _beginning(node.func.value).partition("{")[0]
    return ""
