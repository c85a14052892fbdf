"""Tests as the package `parameterized` makes them: `@parameterized.expand`, `@parameterized_class`."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from rankbook.analyse.draft import Draft
from rankbook.analyse.evaluate import Evaluator, Frame
from rankbook.analyse.operations import entries
from rankbook.analyse.things import SAFE_NAME, Case, Fails, Thing, Unknown, Value, known, scalar_of, text_of
from rankbook.analyse.variants import Decorator, Variant, decorator, decorators, guarded, shown, variants
from rankbook.model import Class, Expression, Function
from rankbook.requirements import Requirement

_METHOD = "parameterized.expand"
_CLASS = "parameterized_class"
_EXPAND = ("input", "name_func", "doc_func", "skip_on_empty", "namespace")
_NO_CASES = "no cases"
_IDLE = f"a mark above `{_METHOD}` is put on nothing"
_MARK = "pytest.mark."
_SKIP = "unittest.skip"
_SKIPS_IF = {"unittest.skipIf": "({})", "unittest.skipUnless": "not ({})"}
"""Decorators that skip under a condition, and how that is said."""
_CLASSES = ("attrs", "input_values", "class_name_func", "classname_func")
"""Parameters of both, in their order."""


def is_expanded(function: Function) -> bool:
    """Tell whether a decorator looks as if it made several functions of one, under names of its own."""
    return any(each.name.endswith(_METHOD) for each in function.decorators)


def generated(draft: Draft, frame: Frame, function: Function) -> tuple[Variant, ...] | None:
    """Give the tests that a function is made into; None when it stays as it is.

    Raises:
        Unknown: only a run can tell.
    """
    found = [each for each in decorators(draft, frame, function) if each.name.endswith(_METHOD)]
    if not found:
        return None
    return variants(draft, frame, lambda evaluator: _methods(evaluator, function, found[0]))


def kept(function: Function) -> Function:
    """Leave out the decorators above the one that makes the tests: they are put on nothing."""
    above = next((place for place, each in enumerate(function.decorators) if each.name.endswith(_METHOD)), 0)
    return replace(function, decorators=function.decorators[above:]) if above else function


def left(draft: Draft, frame: Frame, function: Function, made: Iterable[Variant]) -> tuple[Function, Variant, str] | None:
    """Give the test that unittest finds under the name of the function itself; None where it finds none, or where only a run can tell.

    The decorator leaves None there. A mark of pytest that is put on that can be called, so it passes, and tests nothing; what a skip makes
    of it is skipped.

    Args:
        draft: the tree.
        frame: where the function stands.
        function: the function.
        made: what it is made into.

    Returns:
        The test, as a function and as a variant of it, and why it tests nothing, as a clause; empty where it is skipped.
    """
    above = function.decorators[: len(function.decorators) - len(kept(function).decorators)]
    if not above or any(need.value == _NO_CASES for each in made for need in each.needs):  # that leaves the function
        return None
    is_mark = is_skip = False
    ways: list[str] = []
    on_it: list[Expression] = []
    for written in reversed(above):
        meant = decorator(draft, frame, written)
        if meant.name.startswith(_MARK) and not is_skip:
            is_mark = True
            continue
        condition = _SKIPS_IF.get(meant.name)
        if not meant.name.startswith(_MARK) and (meant.call is None or (condition is None and meant.name != _SKIP)):
            return None
        is_skip = is_skip or meant.name == _SKIP
        if condition is not None and meant.call is not None and meant.call.args:
            ways.append(condition.format(ast.unparse(meant.call.args[0])))
        on_it.insert(0, written)
    if not (is_mark or is_skip or ways):
        return None
    needs = () if is_mark or is_skip else guarded(draft, frame.path, function.line, " or ".join(ways))
    alone = Function(function.name, function.qualname, function.line, function.end_line, decorators=tuple(on_it), guard=function.guard)
    return alone, Variant(function.name, needs=needs), _IDLE if is_mark and not is_skip else ""


def _methods(evaluator: Evaluator, function: Function, each: Decorator) -> list[Variant]:
    given = _given(each, _EXPAND)
    namer = _namer(evaluator, each, given, ("name_func", "testcase_func_name"))
    if "namespace" in given:
        raise Unknown("where its tests stand is known when it runs")
    listed = evaluator.value(given["input"], each.frame)
    if isinstance(listed, Thing) and listed.kind in ("lambda", "function", "closure"):
        listed = evaluator.call(listed, [], each.frame)
    rows = [_arguments(row) for row in evaluator.listed(listed)]
    if not rows:
        return [_on_empty(evaluator, each, given, function.name)]
    digits = len(str(len(rows) - 1))
    names = [name for name in function.parameters if not name.startswith("*")]
    return [
        Variant(
            _name(namer, function.name, f"{number:0>{digits}}", row),
            tuple((name, shown(value)) for name, value in zip(names[names[:1] == ["self"] :], row, strict=False)),
        )
        for number, row in enumerate(rows)
    ]


def _given(each: Decorator, names: tuple[str, ...]) -> dict[str, ast.expr]:
    """Give the arguments of a call by their names."""
    if each.call is None or any(keyword.arg is None for keyword in each.call.keywords) or not (each.call.args or each.call.keywords):
        raise Unknown("its cases are known when it runs")
    named = {keyword.arg: keyword.value for keyword in each.call.keywords if keyword.arg}
    given = dict(zip(names, each.call.args, strict=False)) | named
    if names[0] not in given:
        raise Unknown("its cases are known when it runs")
    return given


class _Namer(Struct, frozen=True):
    """Makes the names of tests or classes."""

    evaluator: Evaluator
    frame: Frame
    function: Thing | None
    """The function that the decorator names; None for that of the package."""

    def name(self, *arguments: Value) -> str | None:
        """Call the function; None when there is none."""
        made = None if self.function is None else self.evaluator.call(self.function, list(arguments), self.frame)
        if self.function is not None and not isinstance(made, str):
            raise Unknown("its names are known when it runs")
        return made


def _namer(evaluator: Evaluator, each: Decorator, given: dict[str, ast.expr], names: tuple[str, ...]) -> _Namer:
    node = next((given[name] for name in names if name in given), None)
    function = None if node is None else evaluator.value(node, each.frame)
    if function is not None and not isinstance(function, Thing):
        raise Unknown("its names are known when it runs")
    return _Namer(evaluator, each.frame, function)


def _name(namer: _Namer, name: str, number: str, row: list[Value]) -> str:
    made = namer.name(Thing("test", name), number, Thing("object", "param", fields=(("args", tuple(row)),)))
    return f"{name}_{number}{_suffix(row[0] if row else None)}" if made is None else made


def _on_empty(evaluator: Evaluator, each: Decorator, given: dict[str, ast.expr], name: str) -> Variant:
    """Give the test that is skipped for want of cases, where the package does not refuse it."""
    if "skip_on_empty" not in given or not evaluator.value(given["skip_on_empty"], each.frame):
        raise Fails("it has no cases")
    return Variant(name, needs=(Requirement("disabled", _NO_CASES, each.text, each.frame.path, each.frame.line),))


def _arguments(row: Value) -> list[Value]:
    if isinstance(row, Case):
        return entries(row.values)
    return entries(row) if isinstance(row, (list, tuple, range, dict, frozenset)) else [row]


def _suffix(value: Value) -> str:
    text = scalar_of(known(value))
    return "_" + SAFE_NAME.sub("_", text) if isinstance(text, str) else ""


def is_emptied(each: Class) -> bool:
    """Tell whether a decorator takes the tests of a class away, which are those of classes of their own then."""
    return any(written.name.rpartition(".")[2] == _CLASS for written in each.decorators)


def classes(draft: Draft, path: str, each: Class) -> tuple[Variant, ...] | None:
    """Give the classes that a class is made into; None when it stays as it is.

    Raises:
        Unknown: only a run can tell.
    """
    frame = Frame(path, each.line)
    found = [decorator(draft, frame, written) for written in each.decorators if written.name]
    made = [meant for meant in found if meant.last == _CLASS]
    if not made:
        return None
    return variants(draft, frame, lambda evaluator: _classes(evaluator, each.name, made[0]))


def _classes(evaluator: Evaluator, name: str, each: Decorator) -> list[Variant]:
    given = _given(each, _CLASSES)
    if "classname_func" in given:
        raise Unknown("its names are known when it runs")
    namer = _namer(evaluator, each, given, ("class_name_func",))
    attributes = evaluator.value(given["attrs"], each.frame)
    if "input_values" in given:
        names = [attributes] if isinstance(attributes, str) else entries(attributes)
        listed = evaluator.listed(evaluator.value(given["input_values"], each.frame))
        rows = [dict(zip(names, entries(values), strict=False)) for values in listed]
    else:
        rows = [dict(row) for row in entries(attributes)]
    return [
        Variant(_class_name(namer, name, number, row), tuple((key, shown(value)) for key, value in row.items()))
        for number, row in enumerate(rows)
    ]


def _class_name(namer: _Namer, name: str, number: int, row: dict[str, Value]) -> str:
    made = namer.name(Thing("class", name), number, row)
    if made is not None:
        return made
    text = row["name"] if "name" in row else next((value for value in row.values() if isinstance(scalar_of(known(value)), str)), "")
    suffix = SAFE_NAME.sub("_", text_of(scalar_of(text)))
    return f"{name}_{number}{suffix and '_' + suffix}"
