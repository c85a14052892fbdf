"""Tests as `absl.testing.parameterized` makes them: `@parameters`, `@named_parameters`, `@product`, on methods and on whole classes."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Mapping, Sequence

from rankbook.analyse.draft import Draft
from rankbook.analyse.evaluate import Evaluator, Frame
from rankbook.analyse.operations import MOST, entries
from rankbook.analyse.things import Case, Fails, Unknown, Value, scalar_of, text_of
from rankbook.analyse.variants import Decorator, Variant, decorators_meant, shown, variants, within
from rankbook.collecting import ABSL
from rankbook.model import Expression, Function

_MAKERS = tuple(f".{name}" for name in ABSL)
_ANY = f"absl.testing.{ABSL[0]}"
"""The decorator that a function is taken to be of which only a run can tell which it makes."""
_NAME = "testcase_name"
"""Key of a named case."""


def is_maker(name: str) -> bool:
    """Tell whether a full name is that of a decorator of this package."""
    return f".{name}".endswith(_MAKERS)


def generated(draft: Draft, frame: Frame, function: Function) -> tuple[Variant, ...] | None:
    """Give the tests that a method is made into, under the names that absl 2 gives them; None when it stays as it is.

    Raises:
        Unknown: only a run can tell.
    """
    found = _meant(draft, frame, function.decorators)
    if not found and frame.owner is not None and frame.owner.decorators:
        found = _meant(draft, Frame(frame.path, frame.owner.line), frame.owner.decorators)
    if not found:
        return None
    with within(found[0]):
        return variants(draft, frame, lambda evaluator: _methods(evaluator, function, found[0]))


def _meant(draft: Draft, frame: Frame, written: Iterable[Expression]) -> list[Decorator]:
    """Give the decorators of a method, or of a class for each of its methods, that make several tests of one."""
    meant = (each for one in written if one.name for each in decorators_meant(draft, frame, one, _ANY))
    return [each for each in meant if is_maker(each.name)]


def _methods(evaluator: Evaluator, function: Function, each: Decorator) -> list[Variant]:
    if each.call is None:
        raise Unknown("its cases are known when it runs")
    rows = _product(evaluator, each.call, each.frame) if each.last == "product" else _rows(evaluator, each.call, each.frame)
    if not rows:
        raise Fails("it has no cases")
    parameters = [name for name in function.parameters if not name.startswith("*")][1:]
    if each.last == "named_parameters":
        return [_named(function.name, parameters, row) for row in rows]
    return [Variant(f"{function.name}{number}", _shown(parameters, row)) for number, row in enumerate(rows)]


def _rows(evaluator: Evaluator, call: ast.Call, frame: Frame) -> list[Value]:
    """Give the cases of a call: its arguments, or what the only one holds when it is neither a tuple nor a dictionary."""
    if call.keywords:
        raise Unknown("its cases are known when it runs")
    rows = entries(evaluator.value(ast.List(call.args), frame))
    if len(rows) == 1 and not isinstance(rows[0], (tuple, dict)):
        return evaluator.listed(rows[0])
    return rows


def _product(evaluator: Evaluator, call: ast.Call, frame: Frame) -> list[Value]:
    """Give one case for each choice of values; dictionaries that are listed in one argument go together."""
    if any(keyword.arg is None for keyword in call.keywords):
        raise Unknown("its cases are known when it runs")
    groups = [evaluator.listed(listed) for listed in entries(evaluator.value(ast.List(call.args), frame))]
    if not all(isinstance(row, dict) for group in groups for row in group):
        raise Unknown("its cases are known when it runs")
    grid = [(keyword.arg, evaluator.listed(evaluator.value(keyword.value, frame))) for keyword in call.keywords]
    axes = [*groups, *([{name: value} for value in values] for name, values in grid)]
    size = 1
    for axis in axes:
        size *= len(axis)
        if size > MOST:
            raise Unknown(f"more than {MOST:,} tests")
    return [_joined(chosen) for chosen in itertools.product(*axes)]


def _joined(rows: Iterable[Mapping[Value, Value]]) -> Value:
    return {key: value for row in rows for key, value in row.items()}


def _named(test: str, parameters: Sequence[str], row: Value) -> Variant:
    """Name a test after its case, which says its name first."""
    rest: Value
    if isinstance(row, dict):
        named, rest = row.get(_NAME), {key: value for key, value in row.items() if key != _NAME}
    else:
        named, *rest = _values(row) or [None]
    if named is None:
        raise Fails("a case has no name")
    text = text_of(scalar_of(named))
    joint = "_" if test.startswith("test_") and text and not text.startswith("_") else ""
    return Variant(f"{test}{joint}{text}", _shown(parameters, rest))


def _values(row: Value) -> list[Value]:
    if isinstance(row, Case):
        return entries(row.values)
    return entries(row) if isinstance(row, (list, tuple, range, frozenset)) else [row]


def _shown(parameters: Sequence[str], row: Value) -> tuple[tuple[str, str], ...]:
    if isinstance(row, dict):
        return tuple((str(key), shown(value)) for key, value in row.items())
    return tuple((name, shown(value)) for name, value in zip(parameters, _values(row), strict=False))
