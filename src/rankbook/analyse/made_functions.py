"""Tests that a decorator puts under names of its own: `globals()["test_" + func.__name__] = wrapper`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from rankbook.analyse.draft import Draft
from rankbook.analyse.evaluate import Evaluator, Frame
from rankbook.analyse.names import Place
from rankbook.analyse.things import Thing, Unknown, Value
from rankbook.analyse.variants import Variant, applied, variants
from rankbook.model import Function

_SETS = re.compile(r"\b(?:globals|vars|locals|setattr)\(|__dict__|\bf_(?:globals|locals)\b")
"""What sets names that no assignment tells."""


class MadeFunction(Struct, frozen=True):
    """A test function under the name by which pytest comes upon it."""

    variant: Variant
    function: Function
    """The function that runs, with the decorators that count for it."""
    family: str = ""
    """Why its name is known only when it runs, as a clause."""


def made_functions(draft: Draft, path: str, function: Function) -> Iterator[MadeFunction]:
    """Give the tests that the decorators of a function put beside it."""
    for index, written in enumerate(function.decorators):
        place = setter(draft, path, written.name)
        if place is not None:
            yield from _made(draft, path, replace(function, decorators=function.decorators[index:]), place)


def setter(draft: Draft, path: str, name: str) -> Place | None:
    """Find the function that a name stands for, if it sets names that no assignment tells."""

    def find() -> Place | None:
        place = draft.names.find(path, name) if name else None
        function = place.definition if place is not None else None
        return place if isinstance(function, Function) and _SETS.search(function.text) else None

    return draft.remember(("setter", path, name), find)


def _made(draft: Draft, path: str, function: Function, place: Place) -> Iterator[MadeFunction]:
    frame, written = Frame(path, function.line), function.decorators[0]

    def answer(evaluator: Evaluator) -> list[Variant]:
        applied(evaluator, place, frame, written, function.name)
        names = [(each.name, each.value) for each in evaluator.settings if each.holder is None]
        return [Variant(name, values=(("test", value),)) for name, value in names if draft.rules.is_test_function(name)]

    try:
        found = variants(draft, frame, answer)
    except Unknown as error:
        yield MadeFunction(Variant(function.name), function, f"the tests that `{written.text}` makes of it: {error}")
        return
    for variant in found:
        value = dict(variant.values)["test"]
        runs = function if _is_test(value) else replace(function, decorators=(written,), parameters=())
        yield MadeFunction(replace(variant, values=()), runs)


def _is_test(value: Value) -> bool:
    return isinstance(value, Thing) and value.kind == "test"
