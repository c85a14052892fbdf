"""Tests as the package `parameterized` makes them: `@parameterized.expand`, `@parameterized_class`."""

from __future__ import annotations

from rankbook.analyse.draft import Draft
from rankbook.analyse.evaluate import Evaluator, Frame
from rankbook.analyse.operations import entries
from rankbook.analyse.things import SAFE_NAME, Case, Unknown, Value, known, scalar_of
from rankbook.analyse.variants import Decorator, Variant, decorator, decorators, shown, variants
from rankbook.model import Class, Function

_METHOD = "parameterized.expand"
_CLASS = "parameterized_class"


def generated(draft: Draft, frame: Frame, function: Function) -> tuple[Variant, ...] | None:
    """Give the tests that a method is made into; None when it stays as it is.

    Raises:
        Unknown: only a run can tell.
    """
    found = [each for each in decorators(draft, frame, function) if each.name.endswith(_METHOD)]
    if not found:
        return None
    return variants(draft, frame, lambda evaluator: _methods(evaluator, function, found[0]))


def _methods(evaluator: Evaluator, function: Function, each: Decorator) -> list[Variant]:
    if each.call is None or not each.call.args:
        raise Unknown("its cases are known when it runs")
    if any(keyword.arg in ("name_func", "testcase_func_name", None) for keyword in each.call.keywords):
        raise Unknown("its names are known when it runs")
    rows = [_arguments(row) for row in evaluator.listed(evaluator.value(each.call.args[0], each.frame))]
    if not rows:
        return [Variant(function.name)]
    digits = len(str(len(rows) - 1))
    names = [name for name in function.parameters if not name.startswith("*")][1:]
    return [
        Variant(
            f"{function.name}_{number:0>{digits}}{_suffix(row[0] if row else None)}",
            tuple((name, shown(value)) for name, value in zip(names, row, strict=False)),
        )
        for number, row in enumerate(rows)
    ]


def _arguments(row: Value) -> list[Value]:
    if isinstance(row, Case):
        return entries(row.values)
    return entries(row) if isinstance(row, (list, tuple, range, dict, frozenset)) else [row]


def _suffix(value: Value) -> str:
    text = scalar_of(known(value))
    return "_" + SAFE_NAME.sub("_", text) if isinstance(text, str) and text else "_" if text == "" else ""


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
    if each.call is None or not each.call.args or any(keyword.arg != "input_values" for keyword in each.call.keywords):
        raise Unknown("its names are known when it runs")
    first, *rest = [*each.call.args, *(keyword.value for keyword in each.call.keywords)]
    attributes = evaluator.value(first, each.frame)
    if rest:
        names = [attributes] if isinstance(attributes, str) else entries(attributes)
        listed = evaluator.listed(evaluator.value(rest[0], each.frame))
        rows = [dict(zip(names, entries(values), strict=False)) for values in listed]
    else:
        rows = [dict(row) for row in entries(attributes)]
    return [
        Variant(f"{name}_{number}{_class_suffix(row)}", tuple((key, shown(value)) for key, value in row.items()))
        for number, row in enumerate(rows)
    ]


def _class_suffix(row: dict[str, Value]) -> str:
    text = row["name"] if "name" in row else next((value for value in row.values() if isinstance(scalar_of(value), str)), "")
    return _suffix(scalar_of(text)) if text else ""
