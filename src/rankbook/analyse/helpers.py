"""What the functions that a test calls skip it for: `requires_gpus(4)` in its body is as good as a decorator."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from rankbook.analyse.conditions import bound, inside, of_skip_in_full
from rankbook.analyse.rules import Evidence, Unread, made
from rankbook.analyse.values import Values
from rankbook.model import Expression, Function
from rankbook.requirements import Requirement

_DEPTH = 3
"""Functions that are followed from one to the next."""
_MOST = 200
"""Calls that are followed for one test."""
_LONGEST = 60
"""Characters of a call that is shown with its arguments."""


def of_helpers(function: Function, values: Values) -> Iterator[Requirement]:
    """Give what the functions that a function calls under no condition skip its test for.

    Args:
        function: the test, or what is called before it.
        values: reads the arguments of the calls.
    """
    yield from _of_calls(function, values, _DEPTH, iter(range(_MOST)))


def _of_calls(function: Function, values: Values, depth: int, left: Iterator[int]) -> Iterator[Requirement]:
    for call in function.asks:
        if next(left, None) is None:
            return
        yield from dict.fromkeys(_of_call(call, values, depth, left))


def _of_call(call: Expression, values: Values, depth: int, left: Iterator[int]) -> Iterator[Requirement]:
    found = called(call, values)
    if found is None:
        return
    helper, outer = found
    inner = inside(helper, outer)
    for skip in helper.skips:
        try:
            needs: list[Requirement] | None = list(of_skip_in_full(skip, inner))
        except (Unread, RecursionError):
            needs = None
        if needs is None or any(need.kind == "disabled" for need in needs):  # a return before it may be what saves the test
            needs = [made("condition", _short(call), Evidence(call.text, values.path, call.line))]
        yield from (_said_by(call, need, values) for need in needs)
    if depth > 1:
        yield from (_said_by(call, need, values) for need in _of_calls(helper, inner, depth - 1, left))


def _said_by(call: Expression, need: Requirement, values: Values) -> Requirement:
    otherwise = "" if call.is_late else need.otherwise
    return replace(need, evidence=call.text, path=values.path, line=call.line, otherwise=otherwise)


def _short(call: Expression) -> str:
    return call.text if len(call.text) <= _LONGEST else f"{call.name}(...)"


def called(call: Expression, values: Values) -> tuple[Function, Values] | None:
    """Find the function that a call means; None where that is not known.

    Args:
        call: by the name of a function, or of a method of the object or the class of a test.
        values: reads its arguments.

    Returns:
        The function, and what reads its parameters as the call gives them.
    """
    found = _meant(call, values)
    if found is None:
        return None
    path, function = found
    named = replace(function, parameters=function.parameters[1:]) if call.name.startswith(("self.", "cls.")) else function
    return function, values.in_file(path).with_bound(bound(named, call, values, path))


def _meant(call: Expression, values: Values) -> tuple[str, Function] | None:
    """Find the function that a call means, with its file."""
    owner, _, name = call.name.rpartition(".")
    if owner in ("self", "cls"):
        member = values.attribute(name)
        return (member[0], member[1]) if member is not None and isinstance(member[1], Function) else None
    if not call.name or call.name.partition(".")[0] in values.bound:
        return None
    place = values.names.only(values.path, call.name)
    return (place.path, place.definition) if place is not None and isinstance(place.definition, Function) else None
