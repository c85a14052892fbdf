"""What becomes of one test function or class that is made into several, and on what the machine decides in it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from rankbook.analyse.conditions import of_condition
from rankbook.analyse.decorators import of_decorator
from rankbook.analyse.draft import Draft
from rankbook.analyse.evaluate import FAILS, Evaluator, Frame, worlds
from rankbook.analyse.names import Place
from rankbook.analyse.operations import SetOrder, sets_in
from rankbook.analyse.rules import Evidence, expression
from rankbook.analyse.things import Case, Choice, Fails, Thing, Undecided, Unknown, Value
from rankbook.analyse.values import Values, parsed
from rankbook.collecting import ABSL
from rankbook.model import Class, Constant, Expression, Function
from rankbook.requirements import Requirement

_LONGEST = 80
"""Characters of a value that are shown."""
_OPEN = "…"
"""What is shown of a value that only a run can tell."""
_EACH = "one test for each"
_RETURNED = ("parametrize", *ABSL)
"""How the decorators end that are looked for in what a function returns."""
_MARK = "pytest.mark.parametrize"
_ALIASES = 4
"""Names of a decorator that are followed from one to the next."""

Assumed = Mapping[Choice, bool]
Shown = tuple[tuple[str, str], ...]
"""Names of parameters with their values as text."""


class Variant(Struct, frozen=True):
    """One of the tests, or classes, that a definition is made into."""

    name: str
    case: Shown = ()
    marks: tuple[str, ...] = ()
    """What is said of this one, as written: `pytest.mark.skip`."""
    needs: tuple[Requirement, ...] = ()
    values: tuple[tuple[str, Value], ...] = ()
    """Names of parameters with their values."""


def variants(draft: Draft, frame: Frame, answer: Callable[[Evaluator], Sequence[Variant]]) -> tuple[Variant, ...]:
    """Find all variants that there may be; those that not every run makes have a requirement.

    Args:
        draft: the tree.
        frame: where the definition stands.
        answer: finds the variants with an evaluator.

    Raises:
        Unknown: the sources do not tell them.
    """
    with sets_in(SetOrder()) as order:
        found = _in_worlds(draft, frame, answer)
    if not order.is_asked:
        return found
    with sets_in(SetOrder(is_turned=True)):
        return tuple(_in_any_order(found, _in_worlds(draft, frame, answer)))


def _in_any_order(found: Sequence[Variant], turned: Sequence[Variant]) -> Iterator[Variant]:
    """Give the variants that there are in whatever order sets are gone through, without the values that hang on it."""
    others = {each.name: each for each in turned}
    told = {each.name: (each.marks, each.needs) for each in found}
    if told != {each.name: (each.marks, each.needs) for each in turned}:
        raise Unknown("it goes by the order of a set, which is known when it runs")
    for each in found:
        same = set(others[each.name].case)
        yield replace(each, case=tuple(pair if pair in same else (pair[0], _OPEN) for pair in each.case))


def _in_worlds(draft: Draft, frame: Frame, answer: Callable[[Evaluator], Sequence[Variant]]) -> tuple[Variant, ...]:
    found = worlds(lambda assumed: _attempt(answer, Evaluator(draft, assumed)))
    if len(found) == 1:
        return tuple(found[0][1])
    where: dict[str, list[Assumed]] = {}
    first: dict[str, Variant] = {}
    for assumed, made in found:
        for variant in made:
            first.setdefault(variant.name, variant)
            where.setdefault(variant.name, []).append(assumed)
    every = [assumed for assumed, _ in found]
    return tuple(replace(each, needs=(*each.needs, *_needs(draft, frame, where[name], every))) for name, each in first.items())


def _attempt(answer: Callable[[Evaluator], Sequence[Variant]], evaluator: Evaluator) -> Sequence[Variant]:
    try:
        return answer(evaluator)
    except FAILS as error:
        raise Fails("it is known when it runs") from error


def _needs(draft: Draft, frame: Frame, present: list[Assumed], every: list[Assumed]) -> Iterator[Requirement]:
    """Say under which conditions a variant is there."""
    if len(present) == len(every):
        return
    common = dict(present[0].items() & set.intersection(*(set(each.items()) for each in present)))
    consistent = [each for each in every if all(each.get(choice) == outcome for choice, outcome in common.items())]
    if len(consistent) == len(present):
        for choice in sorted(common):
            yield from guarded(draft, choice.path, choice.line or frame.line, choice.text, wanted=common[choice])
        return
    text = " or ".join(sorted(" and ".join(sorted(_said(choice, outcome=outcome) for choice, outcome in each.items())) for each in present))
    yield Requirement("condition", text, text, frame.path, frame.line, "absent")


def guarded(draft: Draft, path: str, line: int, condition: str | None, *, wanted: bool = True) -> tuple[Requirement, ...]:
    """Read what a condition around a definition asks for, without which there is no definition."""
    if not condition:
        return ()
    found = of_condition(condition, Values(draft.names, path), Evidence(condition, path, line), wanted=wanted)
    return tuple(replace(each, otherwise="absent") for each in found)


def _said(choice: Choice, *, outcome: bool) -> str:
    return choice.text if outcome else f"not ({choice.text})"


def marked(draft: Draft, path: str, function: Function, marks: Iterable[str]) -> Iterator[Requirement]:
    """Read what the marks of one variant ask for."""
    values = Values(draft.names, path)
    lines = dict(function.case_marks) if marks else {}
    for mark in marks:
        node = parsed(mark)
        if node is not None:
            yield from of_decorator(expression(node, lines.get(mark, function.line)), values)


def shown(value: Value) -> str:
    """Write a value as a reader of the test would."""
    text = _written(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + "…"


def _written(value: Value) -> str:
    if isinstance(value, Case):
        return _written(value.values)
    if isinstance(value, Thing):
        return _thing(value)
    if isinstance(value, (tuple, list, set, frozenset)):
        inner = [_written(entry) for entry in list(value)[:_LONGEST]]
        text = ", ".join(sorted(inner) if isinstance(value, (set, frozenset)) else inner)
        return f"[{text}]" if isinstance(value, list) else f"({text})" if isinstance(value, tuple) else f"{{{text}}}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_written(key)}: {_written(entry)}" for key, entry in list(value.items())[:_LONGEST]) + "}"
    return repr(value)


def _thing(thing: Thing) -> str:
    if thing.kind == "dtype":
        return f"torch.{thing.name}"
    if thing.kind == "device":
        return f"torch.device({thing.scalar!r})"
    if thing.kind == "object":
        return f"{thing.name}({', '.join(f'{name}={_written(value)}' for name, value in thing.fields)})"
    return {"lambda": "lambda", "unknown": _OPEN}.get(thing.kind, thing.name)


class Decorator(Struct, frozen=True):
    """A decorator as it is meant, through aliases and imports."""

    name: str
    """Full dotted name."""
    call: ast.Call | None
    frame: Frame
    """Where its arguments stand."""
    text: str
    """As written at the function."""
    written: str = ""
    """Its name as written there."""

    @property
    def last(self) -> str:
        """Last part of the name."""
        return self.name.rpartition(".")[2]


def decorator(draft: Draft, frame: Frame, written: Expression) -> Decorator:
    """Follow a decorator to what it means: `needs = parametrize(...)` stands for its value."""
    path, name = draft.remember(("decorator", frame.path, written.name), lambda: _meaning(draft, frame.path, written.name))
    if isinstance(name, Function):
        return _returned(draft, path, name, frame, written)
    if isinstance(name, Constant):
        node = parsed(name.value)
        inner = expression(node, name.line) if isinstance(node, ast.Call) else None
        if inner is not None and written.text == written.name:
            return replace(decorator(draft, Frame(path, name.line), inner), text=written.text)
        return Decorator(written.name, None, frame, written.text)
    node = parsed(written.text)
    call = node if isinstance(node, ast.Call) else None
    return Decorator(name, call, replace(frame, line=written.line), written.text, written.name)


def _returned(draft: Draft, path: str, function: Function, frame: Frame, written: Expression) -> Decorator:
    """Follow a function that does nothing but make a decorator: `def each_backend(): return parametrize(...)`."""
    made, called = parsed(function.returns or ""), parsed(written.text)
    if not (isinstance(made, ast.Call) and isinstance(called, ast.Call)):
        return Decorator(draft.names.full(frame.path, written.name), None, frame, written.text)
    names = {}
    for name, argument in [*zip(function.parameters, called.args, strict=False), *((each.arg, each.value) for each in called.keywords)]:
        if name is not None and isinstance(argument, ast.Constant):
            names[name] = argument.value
    inner = decorator(draft, Frame(path, function.line), expression(made, function.line))
    return replace(inner, frame=replace(inner.frame, names=names, caller=(frame.path, written.line)), text=written.text)


def decorators_meant(draft: Draft, frame: Frame, written: Expression, maker: str = _MARK) -> tuple[Decorator, ...]:
    """Follow a decorator to the marks that it puts on a test, as `decorator` does, also through a function of several statements.

    Args:
        draft: the tree.
        frame: where it stands.
        written: the decorator.
        maker: full name of the mark that it puts on a test when only a run can tell which; marks of its package alone are followed.
    """
    words = ("parametrize",) if maker == _MARK else ABSL
    place = draft.remember(("marking", words[0], frame.path, written.name), lambda: _marking(draft, frame.path, written.name, words))
    if place is None:
        return (decorator(draft, frame, written),)
    try:
        with sets_in(SetOrder()) as order:
            found, is_told = _put(draft, place, frame, written), True
        if order.is_asked:
            with sets_in(SetOrder(is_turned=True)):
                is_told = found == _put(draft, place, frame, written)
    except (Unknown, Undecided, *FAILS):
        is_told = False
    return found if is_told else (Decorator(maker, None, frame, written.text),)


def _put(draft: Draft, place: Place, frame: Frame, written: Expression) -> tuple[Decorator, ...]:
    """Give the marks that a decorator puts on a test; see `applied`."""
    evaluator, test = Evaluator(draft), Thing("test", "")
    if isinstance(place.definition, Constant):
        marks = evaluator.call(evaluator.of(written.text, frame), [test], frame).body
    else:
        marks = applied(evaluator, place, frame, written, test).body or ()
    found = []
    for mark in marks:
        call, inner = mark.body or (None, frame)
        found.append(Decorator(mark.name, call, inner, written.text))
    return tuple(found)


def _marking(draft: Draft, path: str, name: str, words: Sequence[str]) -> Place | None:
    """Find the function of a decorator, if it parametrises tests by more than one `return`, or a constant that is set more than once."""

    def is_among(text: str) -> bool:
        return any(word in text for word in words)

    place = draft.names.find(path, name)
    if place is None or isinstance(place.definition, Class):
        return None
    if isinstance(place.definition, Function):
        return place if is_among(place.definition.text) else None
    set_to = [each.value for each in draft.names.assigned(place.path, place.definition.name)]
    return place if len(set_to) > 1 and any(map(is_among, set_to)) else None


def applied(evaluator: Evaluator, place: Place, frame: Frame, written: Expression, to: Thing) -> Thing:
    """Apply a decorator to a test or a class.

    Args:
        evaluator: notes which names it sets.
        place: the function that is, or that makes, the decorator.
        frame: where it decorates.
        written: the decorator.
        to: the test, or the class.

    Returns:
        The same with its marks, or what takes its place.

    Raises:
        Unknown: only a run can tell.
        Undecided: a choice that is not assumed decides it.
    """
    assert isinstance(place.definition, Function)
    function = Thing("function", place.definition.name, path=place.path, definition=place.definition)
    called = parsed(written.text)
    maker = evaluator.value(called, frame) if isinstance(called, ast.Call) else function
    made = evaluator.call(maker, [to], frame)
    return made if isinstance(made, Thing) else Thing("object", "object")


def _meaning(draft: Draft, path: str, name: str) -> tuple[str, str | Constant | Function]:
    """Give what a name is in full, or the call or function that it stands for."""
    for _ in range(_ALIASES):
        place = draft.names.constant(path, name)
        if place is None or not isinstance(place.definition, Constant):
            break
        node = parsed(place.definition.value)
        if isinstance(node, ast.Call):
            return place.path, place.definition
        if not isinstance(node, (ast.Name, ast.Attribute)) or place.definition.value == name:
            break
        path, name = place.path, place.definition.value
    found = draft.names.find(path, name)
    if found is not None and isinstance(found.definition, Function):
        made = (found.definition.returns or "").partition("(")[0]
        if made.endswith(_RETURNED):
            return found.path, found.definition
    return path, draft.names.full(path, name)


def decorators(draft: Draft, frame: Frame, function: Function) -> list[Decorator]:
    """Give the decorators of a function as they are meant, from top to bottom."""
    return [decorator(draft, frame, written) for written in function.decorators if written.name]


def why(error: Unknown, text: str) -> str:
    """Say why a parametrisation cannot be listed, as a clause."""
    text = f"`{_cut(error.of or text)}`"
    said = str(error)
    return f"{said} of {text}" if said.startswith(_EACH) else f"{_EACH} case of {text}: {said}"


class _Written(Protocol):
    """What has a text as written."""

    @property
    def text(self) -> str: ...


@contextmanager
def within(each: _Written) -> Iterator[None]:
    """Say of what only a run can tell in which decorator it stands."""
    try:
        yield
    except Unknown as error:
        error.of = error.of or each.text
        raise


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + "…"
