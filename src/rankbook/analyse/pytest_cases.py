"""Tests as pytest makes them of one function: `@pytest.mark.parametrize`, fixtures with parameters, and the names that it gives them."""

from __future__ import annotations

import ast
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rankbook.analyse import pytestmarks
from rankbook.analyse.draft import Ancestor, Collected, Draft
from rankbook.analyse.evaluate import Evaluator, Frame
from rankbook.analyse.fixtures import Fixture, fixtures_of, parametrised_by_hooks
from rankbook.analyse.operations import MOST, entries
from rankbook.analyse.rules import short
from rankbook.analyse.things import Case, Generated, Thing, Unknown, Value, known, member_text
from rankbook.analyse.values import dotted, parsed
from rankbook.analyse.variants import Decorator, Variant, decorators_meant, shown, variants, within
from rankbook.model import Constant, Expression, Function
from rankbook.requirements import Requirement

_LONGEST = 100
"""Characters of a string that stand in a name."""
_NAMERS = frozenset({"repr", "str", "type"})
"""Python's own functions that may name cases."""
_EMPTY = "NOTSET"
"""What pytest calls a set of parameters where there is none."""


Lineages = Sequence[tuple[Ancestor, ...]]


class Axis(Struct, frozen=True):
    """One parametrisation of a function."""

    names: Value
    """Node or names of the parameters."""
    values: ast.expr
    ids: ast.expr | None
    frame: Frame
    text: str
    path: str
    line: int

    @property
    def is_fixture(self) -> bool:
        """Whether a fixture has it: the names are no node."""
        return not isinstance(self.names, ast.AST)

    def read(self, evaluator: Evaluator, node: ast.expr) -> Value:
        """Give its values or ids: a fixture copies them, a mark holds them until all tests are collected."""
        return evaluator.value(node, self.frame) if self.is_fixture else evaluator.kept(node, self.frame)


class _Row(Struct, frozen=True):
    name: str
    values: tuple[tuple[str, Value], ...]
    marks: tuple[str, ...]
    needs: tuple[Requirement, ...] = ()


def generated(draft: Draft, frame: Frame, function: Function, path: str, lineages: Lineages = ()) -> tuple[Variant, ...] | None:
    """Give the cases of a function, by what stands in brackets; None when it has none.

    Args:
        draft: the tree.
        frame: where the test is collected.
        function: the test.
        path: file of the function.
        lineages: classes from the test's own to the farthest; then those of each class around it.

    Raises:
        Unknown: only a run can tell.
    """
    marks = list(_marks(draft, frame, function, path, lineages))
    lines = {written.text: written.line for written in function.decorators}
    axes = [_axis(each, path, lines.get(each.text, function.line)) for each in marks if each.last == "parametrize"]
    axes = [*_fixture_axes(draft, frame, function, lineages, marks), *axes]
    if _is_open(draft, frame, function, lineages, marks):
        raise Unknown("a hook `pytest_generate_tests` parametrises it")
    if not axes:
        return None
    return variants(draft, frame, lambda evaluator: _variants(evaluator, axes))


def _is_open(draft: Draft, frame: Frame, function: Function, lineages: Lineages, marks: Sequence[Decorator]) -> bool:
    """Tell whether a test asks for what a hook parametrises; where that is not told, for what no fixture of the tree and no mark gives."""
    lineage = tuple(ancestor for each in lineages for ancestor in each)
    hooks = parametrised_by_hooks(draft, frame.path, lineage)
    if not hooks:
        return False
    known = fixtures_of(draft, frame.path, lineage)
    given = {name for each in marks if each.last == "parametrize" for name in _names_of(each)}
    wanted, direct = _wanted(known, marks, function), _direct(marks)
    asked = {*wanted, *(name for fixture in _closure(draft, known, wanted, direct) for name in fixture.asks)} - given
    unexplained = asked - known.keys() - _BUILT_IN
    return any(unexplained if names is None else asked & names for names in hooks)


_BUILT_IN = frozenset({
    "self", "request", "cache", "capfd", "capfdbinary", "caplog", "capsys", "capsysbinary", "capteesys", "doctest_namespace", "monkeypatch",
    "pytestconfig", "pytester", "record_property", "record_testsuite_property", "record_xml_attribute", "recwarn", "subtests", "testdir",
    "tmp_path", "tmp_path_factory", "tmpdir", "tmpdir_factory",
})  # fmt: skip
"""What pytest itself hands to a test."""


def needy_fixtures(draft: Draft, path: str, collected: Collected) -> list[Fixture]:
    """Give the fixtures that may skip a test, or that fail without a GPU, by what it asks for; to one of a `TestCase` none is handed.

    Args:
        draft: the tree.
        path: file in which the test is collected.
        collected: the test.
    """
    test, function, lineage = collected.test, collected.function, collected.lineage
    known = fixtures_of(draft, path, lineage)
    if not any(fixture.skips or fixture.gpu_calls for fixture in known.values()):
        return []
    marks = list(_marks(draft, Frame(path, test.line), function, test.path, (lineage,) if lineage else ()))
    used = [name for each in marks if each.last == "usefixtures" and each.call for name in _strings(each.call.args)]
    asked = function.requested if test.harness == "pytest" else ()
    wanted = [*(fixture.name for fixture in known.values() if fixture.autouse), *used, *asked]
    return [fixture for fixture in _closure(draft, known, wanted, _direct(marks)) if fixture.skips or fixture.gpu_calls]


def _marks(draft: Draft, frame: Frame, function: Function, path: str, lineages: Lineages) -> Iterator[Decorator]:
    """Give the marks of a test in the order in which pytest goes through them: function, class, module."""
    own = lineages[0] if lineages and function.decorators else ()
    holder = next((each for each in own if each.path == path and each.facts and function in each.facts.methods), None)
    for written in reversed(function.decorators):
        yield from _mark(draft, Frame(path, owner=holder.facts if holder else None), written)
    for ancestor in (each for lineage in lineages for each in reversed(lineage)):
        if ancestor.facts is not None:
            inside = Frame(ancestor.path, owner=ancestor.facts)
            for place, written in pytestmarks.that_a_class_may_set(draft, ancestor.path, ancestor.facts):
                yield from _mark(draft, inside if place == ancestor.path else Frame(place), written)
            for written in reversed(ancestor.facts.decorators):
                yield from _mark(draft, Frame(ancestor.path), written)
    for place, written in pytestmarks.of_module(draft, frame.path):
        yield from _mark(draft, Frame(place), written)


def _mark(draft: Draft, frame: Frame, written: Expression) -> Iterator[Decorator]:
    for meant in decorators_meant(draft, replace(frame, line=written.line), written) if written.name else ():
        if meant.name.rpartition(".")[0].endswith("mark"):
            yield _spread(draft, meant)


def _spread(draft: Draft, each: Decorator) -> Decorator:
    """Write out what a mark is called with by stars: `**ARGUMENTS` of a dictionary of the same file, `*("n", [1, 2])`."""
    call = each.call
    if call is None or not (any(isinstance(part, ast.Starred) for part in call.args) or any(part.arg is None for part in call.keywords)):
        return each
    arguments: list[ast.expr] = []
    for part in call.args:
        inner = _display(draft, each.frame.path, part.value) if isinstance(part, ast.Starred) else None
        arguments += inner.elts if isinstance(inner, (ast.Tuple, ast.List)) else [part]
    keywords: list[ast.keyword] = []
    for keyword in call.keywords:
        held = _display(draft, each.frame.path, keyword.value) if keyword.arg is None else None
        pairs = zip(held.keys, held.values, strict=True) if isinstance(held, ast.Dict) else ()
        named = [ast.keyword(key.value, value) for key, value in pairs if isinstance(key, ast.Constant) and isinstance(key.value, str)]
        keywords += named or [keyword]
    return replace(each, call=ast.copy_location(ast.Call(call.func, arguments, keywords), call))


def _display(draft: Draft, path: str, node: ast.expr) -> ast.expr | None:
    """Give a node that is written out, or that a constant of the same file is set to."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return node
    place = draft.names.settled(path, dotted(node))
    constant = place.definition if place is not None and place.path == path else None
    return parsed(constant.value) if isinstance(constant, Constant) else None


def _axis(each: Decorator, path: str, line: int) -> Axis:
    given = _given(each)
    if "argnames" not in given or "argvalues" not in given:
        with within(each):
            raise Unknown("its cases are known when it runs")
    return Axis(given["argnames"], given["argvalues"], given.get("ids"), each.frame, each.text, path, line)


def _fixture_axes(draft: Draft, frame: Frame, function: Function, lineages: Lineages, marks: Sequence[Decorator]) -> Iterator[Axis]:
    known = fixtures_of(draft, frame.path, tuple(ancestor for lineage in lineages for ancestor in lineage))
    if not known:
        return
    taken = {name for each in marks if each.last == "parametrize" for name in _names_of(each)}
    for name in {fixture.name: None for fixture in _closure(draft, known, _wanted(known, marks, function), _direct(marks))}:
        fixture = known[name].parametrised if name not in taken else None
        if fixture is not None and fixture.params is not None:
            text, line = f"fixture {name}", fixture.function.line
            yield Axis((name,), fixture.params, fixture.ids, fixture.frame, text, fixture.frame.path, line)


def _direct(marks: Sequence[Decorator]) -> frozenset[str]:
    """Give the parameters that take the place of fixtures; those that are handed to fixtures (`indirect`) do not."""
    return frozenset(name for each in marks if each.last == "parametrize" for name in _names_of(each) if name not in _indirect(each))


def _indirect(each: Decorator) -> Sequence[str]:
    node = _given(each).get("indirect")
    if isinstance(node, ast.Constant):
        return _names_of(each) if node.value is True else ()
    return _strings(getattr(node, "elts", []))


def _wanted(known: dict[str, Fixture], marks: Sequence[Decorator], function: Function) -> list[str]:
    """Give the names of what a test asks for: fixtures that are always there, those of its marks, its arguments."""
    used = [name for each in marks if each.last == "usefixtures" and each.call for name in _strings(each.call.args)]
    return [*(fixture.name for fixture in known.values() if fixture.autouse), *used, *function.requested]


def _closure(draft: Draft, known: dict[str, Fixture], wanted: Iterable[str], direct: frozenset[str]) -> list[Fixture]:
    """Give the fixtures that a test asks for, and those that these ask for: of the widest scope first.

    Args:
        draft: the tree.
        known: the fixtures that the test sees.
        wanted: what it asks for itself.
        direct: parameters of it that are no fixtures.
    """
    rest, found = [name for name in dict.fromkeys(wanted) if name in known], dict[str, Fixture]()
    while rest:
        name = rest.pop(0)
        if name in found or name in direct:
            continue
        found[name] = known[name]
        asked = [each for each in _asked(known[name]) if each in known]
        rest = [*asked, *rest] if draft.rules.goes_deep else [*rest, *asked]
    ordered = sorted(found.values(), key=lambda fixture: fixture.rank)
    return [part for fixture in ordered for part in _parts(fixture)]


def _asked(fixture: Fixture) -> Iterator[str]:
    """Give what a fixture asks for, with what that asks for in whose place it stands, where it asks for that."""
    for name in fixture.function.requested:
        if name != fixture.name:
            yield name
        elif fixture.over is not None:
            yield from _asked(fixture.over)


def _parts(fixture: Fixture) -> Iterator[Fixture]:
    """Give a fixture, and those that it stands in the place of and asks for."""
    part: Fixture | None = fixture
    while part is not None:
        yield part
        part = part.over


def _given(each: Decorator) -> dict[str, ast.expr]:
    """Give the arguments of a mark `parametrize` by their names."""
    named = {keyword.arg: keyword.value for keyword in each.call.keywords if keyword.arg} if each.call else {}
    return dict(zip(("argnames", "argvalues", "indirect", "ids"), each.call.args if each.call else (), strict=False)) | named


def _names_of(each: Decorator) -> list[str]:
    first = _given(each).get("argnames")
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        return [name.strip() for name in first.value.split(",")]
    return _strings(getattr(first, "elts", []))


def _strings(nodes: Iterable[ast.expr]) -> list[str]:
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def _variants(evaluator: Evaluator, axes: list[Axis]) -> list[Variant]:
    rows = []
    for axis in axes:
        with within(axis):
            rows.append(_rows(evaluator, axis))
    size = 1
    for row in rows:
        size *= len(row)
        if size > MOST:
            raise Unknown(f"more than {MOST:,} tests")
    found = []
    for combined in itertools.product(*rows):
        case = {name: shown(value) for row in combined for name, value in row.values}
        marks = tuple(mark for row in combined for mark in row.marks)
        needs = tuple(need for row in combined for need in row.needs)
        found.append(Variant("-".join(row.name for row in combined), tuple(case.items()), marks, needs))
    return found


def _rows(evaluator: Evaluator, axis: Axis) -> list[_Row]:
    names, is_single = _argument_names(evaluator, axis)
    listed = evaluator.listed(axis.read(evaluator, axis.values))
    cases = [each if isinstance(each, Case) else Case((each,) if is_single else each, None) for each in listed]
    if not cases:
        return [_Row(_EMPTY, (), (), _on_empty(evaluator, axis, names))]
    rows = [_values(names, case) for case in cases]
    ids = _ids(evaluator, axis, names, cases)
    return [_Row(name, tuple(zip(names, row, strict=True)), case.marks) for name, row, case in zip(ids, rows, cases, strict=True)]


def _on_empty(evaluator: Evaluator, axis: Axis, names: list[str]) -> tuple[Requirement, ...]:
    """Say why pytest skips a test that has no set of parameters, in its words; nothing where it is told to do something else."""
    if not evaluator.draft.rules.skips_empty_sets:
        return ()
    return (Requirement("disabled", f"got empty parameter set for ({', '.join(names)})", short(axis.text), axis.path, axis.line),)


def _values(names: list[str], case: Case) -> list[Value]:
    values = entries(case.values)
    if len(values) != len(names):
        raise Unknown("its cases do not fit its names")
    return values


def _argument_names(evaluator: Evaluator, axis: Axis) -> tuple[list[str], bool]:
    value = list(axis.names) if axis.is_fixture else evaluator.value(axis.names, axis.frame)
    if not isinstance(value, str):
        return [str(name) for name in entries(value)], axis.is_fixture
    names = [name.strip() for name in value.split(",") if name.strip()]
    return names, len(names) == 1 and not value.rstrip().endswith(",")


def _ids(evaluator: Evaluator, axis: Axis, names: list[str], cases: list[Case]) -> list[str]:
    given: Value = None
    if axis.ids is not None:
        by_python = isinstance(axis.ids, ast.Name) and axis.ids.id in _NAMERS
        given = Thing("builtin", ast.unparse(axis.ids)) if by_python else axis.read(evaluator, axis.ids)
    listed = None if given is None or isinstance(given, Thing) else entries(given)
    found = []
    for number, case in enumerate(cases):
        explicit = case.name if case.name is not None else listed[number] if listed and number < len(listed) else None
        if explicit is not None:
            found.append(_escaped(explicit) if isinstance(explicit, str) else _written(explicit, ""))
        else:
            namer = given if isinstance(given, Thing) else None
            pairs = zip(names, entries(case.values), strict=True)
            found.append("-".join(_id(evaluator, Frame(axis.frame.path), namer, (name, value), number) for name, value in pairs))
    return _unique(found)


def _id(evaluator: Evaluator, frame: Frame, namer: Thing | None, pair: tuple[str, Value], number: int) -> str:
    name, value = pair
    if namer is not None:
        written = evaluator.call(namer, [value], frame)
        if written is not None:
            return _written(written, f"{name}{number}")
    if isinstance(value, (str, bytes)) and len(value) > _LONGEST:
        return f"{name}{number}"
    return _written(value, f"{name}{number}")


def _written(value: Value, otherwise: str) -> str:
    """Write a value as pytest does where it has a way; otherwise by its place."""
    if isinstance(value, Thing) and value.kind == "member":
        return _escaped(value.scalar) if isinstance(value.scalar, str) else member_text(value)
    if isinstance(value, Thing) and value.kind == "pattern":
        return _written(value.scalar, otherwise)
    if isinstance(known(value), Thing):
        if value.kind == "text":
            raise Unknown(f"the text of `{value.name}` is known when it runs")
        return value.name if value.kind in ("class", "function", "lambda") else otherwise
    if isinstance(value, bytes):
        return "".join(each if each.isprintable() else _escaped(each) for each in value.decode("ascii", "backslashreplace"))
    if isinstance(value, str):
        return _escaped(value)
    named = "<genexpr>" if isinstance(value, Generated) else otherwise
    return str(value) if value is None or isinstance(value, (float, int, bool, complex)) else named


def _escaped(text: str) -> str:
    return text.encode("unicode_escape").decode("ascii")


def _unique(ids: list[str]) -> list[str]:
    """Number those that come more than once, as pytest does."""
    counts, found = Counter(ids), list(ids)
    if len(counts) == len(ids):
        return found
    used: defaultdict[str, int] = defaultdict(int)
    taken = set(ids)
    for place, name in enumerate(ids):
        if counts[name] > 1:
            joint = "_" if name and name[-1].isdigit() else ""
            while f"{name}{joint}{used[name]}" in taken:
                used[name] += 1
            found[place] = f"{name}{joint}{used[name]}"
            taken.add(found[place])
            used[name] += 1
    return found
