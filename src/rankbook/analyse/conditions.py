"""Reads conditions by the vocabulary; what it does not tell is kept verbatim."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from itertools import takewhile
from operator import attrgetter
from typing import TypeGuard

from msgspec import Struct, field
from msgspec.structs import replace

from rankbook import words
from rankbook.analyse.comparisons import OPERATORS, Bare, Truth, of_comparison, sides
from rankbook.analyse.counting import DEPTH, GPUS, counted
from rankbook.analyse.folding import returned
from rankbook.analyse.names import Place
from rankbook.analyse.rules import Evidence, Unread, expression, filled, made, short
from rankbook.analyse.values import Values, dotted, parsed
from rankbook.model import PACKAGES, Constant, Expression, Function
from rankbook.requirements import Requirement, Rule, gpu_range, joined, opposite

_DEPTH = 4
"""Constants and functions that a condition is followed through."""
_STEPS = 400
"""Parts of a condition that are read, those that it is followed to included."""
_MOST_APART = 16
"""Alternatives that one alternative is taken apart into."""
_JOINED = frozenset({"backend", "device", "library", "package", "platform"})
"""Kinds whose alternatives are written as one value."""


class _Budget(Struct):
    """Steps that are left."""

    steps: int = _STEPS

    def spend(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise Unread


class _Reading(Struct, frozen=True):
    """How a condition is read."""

    values: Values
    """Reads constants in the file of the condition."""
    evidence: Evidence
    depth: int = _DEPTH
    """Constants and functions still to follow."""
    strict: bool = False
    """Whether a part that is not told makes the whole unread."""
    as_written: bool = False
    """Whether Python itself asks whether the condition is true: then a function that is named, and not called, is."""
    budget: _Budget = field(default_factory=_Budget)


def of_condition(text: str, values: Values, evidence: Evidence, *, wanted: bool, as_written: bool = True) -> tuple[Requirement, ...]:
    """Read what a condition asks for.

    Args:
        text: the condition as written.
        values: reads its constants in its file.
        evidence: where it stands.
        wanted: whether the test needs it to be true.
        as_written: whether Python asks at once for what it comes to; some decorators call what they are given when the test is run.
    """
    node = parsed(text)
    inner = parsed(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
    node = inner or node
    try:
        if node is not None:
            return tuple(_needs(node, _Reading(values, evidence, as_written=as_written), wanted=wanted))
    except (RecursionError, Unread):  # it is too deep, or too long
        pass
    return (_verbatim(text if wanted else f"not ({text})", evidence),)


def of_condition_in_full(text: str, values: Values, evidence: Evidence, *, wanted: bool) -> tuple[Requirement, ...]:
    """Read what a condition asks for, when all of it can be read.

    Args:
        text: the condition as written.
        values: reads its constants in its file.
        evidence: where it stands.
        wanted: whether the test needs it to be true.

    Raises:
        Unread: some part of it cannot be read.
    """
    node = parsed(text)
    if node is None:
        raise Unread
    try:
        return tuple(_needs(node, _Reading(values, evidence, strict=True, as_written=True), wanted=wanted))
    except RecursionError as error:
        raise Unread from error


def of_skip(skip: Expression, values: Values, otherwise: str = "skipped") -> Iterable[Requirement]:
    """Read a condition that skips the test or ends the module; a bare call disables what it stands in.

    Args:
        skip: the condition, or the call, as written.
        values: reads its constants in its file.
        otherwise: what becomes of the test, as in `Requirement`.
    """
    return _of_skip(skip, values, otherwise, of_condition)


def of_skip_in_full(skip: Expression, values: Values) -> Iterable[Requirement]:
    """Read a condition that skips the test, when all of it can be read.

    Args:
        skip: the condition, or the call, as written.
        values: reads its constants in its file.

    Raises:
        Unread: some part of it cannot be read.
    """
    return _of_skip(skip, values, "skipped", of_condition_in_full)


def of_leaves(leaves: Iterable[Expression], values: Values) -> Iterator[Requirement]:
    """Give what a test must have of the machine to come to what it tests; plain pytest says that it has passed where that is missing.

    Args:
        leaves: conditions under which it ends before that, as written.
        values: reads their constants in their file.
    """
    for leave in leaves:
        try:
            found = list(of_skip_in_full(leave, values))
        except Unread:
            continue
        if all(map(_is_had, found)):
            yield from found


_OF_MACHINES = frozenset({"gpus", "backend", "device", "peer access", "capability", "memory", "library", "package"})
"""Kinds of needs that a machine meets by what it has."""


def _is_had(need: Requirement) -> bool:
    """Tell whether a need is met by what a machine has, and not by what it lacks."""
    least = gpu_range(need.value) if need.kind == "gpus" else None
    return least[0] > 0 if least else need.kind in _OF_MACHINES and not need.value.startswith("not ")


def _of_skip(skip: Expression, values: Values, otherwise: str, read: Callable[..., tuple[Requirement, ...]]) -> Iterable[Requirement]:
    evidence = Evidence(skip.text, values.path, skip.line, "" if skip.is_late else otherwise, _reason(skip, values))
    if skip.name == "ImportError":
        said = (replace(evidence, text=f"import {module}") for module in skip.arguments if _package(module))
        return [_of_import(each.text.removeprefix("import "), each, values) for each in said]
    if skip.name.endswith("importorskip"):
        name = values.of(skip.arguments[0]) if skip.arguments else None
        if not isinstance(name, str):
            return [_verbatim(skip.text, evidence)]
        found, least = _of_import(name, evidence, values), values.of(dict(skip.keywords).get("minversion", "None"))
        return [replace(found, value=f"{found.value} >= {least}") if isinstance(least, str) and found.kind == "package" else found]
    if skip.name.rpartition(".")[2] in _UNCONDITIONAL and parsed(skip.text) is not None and _is_call(skip):
        return [] if skip.is_late else [made("disabled", evidence.reason, evidence)]
    return read(skip.text, values, evidence, wanted=False)


_UNCONDITIONAL = frozenset({"skip", "skipTest", "SkipTest", "exit", "_exit", "SystemExit", "quit", "Exception"})
"""What ends a module or a test where no condition is around it."""


def _is_call(skip: Expression) -> bool:
    return skip.text == skip.name or skip.text.startswith(f"{skip.name}(")


def _of_import(module: str, evidence: Evidence, values: Values) -> Requirement:
    """Say what fails to be imported: a package, or a part of one that the tree itself holds."""
    evidence = replace(evidence, text=f"import {module}")
    is_own = values.names.is_own(values.path, module)
    return _verbatim(f"import {module}", evidence) if is_own else made("package", _package(module), evidence)


def _package(module: str) -> str:
    """Give the package of a module that may be missing; empty for one of the same tree."""
    return module.partition(".")[0]


def _reason(skip: Expression, values: Values) -> str:
    named = dict(skip.keywords)
    text = skip.reason or (skip.arguments[0] if skip.arguments else named.get("reason", named.get("msg", "")))
    value = values.of(text) if text else None
    return value if isinstance(value, str) else _filled_in(text)


def _filled_in(text: str) -> str:
    """Write what an f-string says, with the names of what it takes: `topk={topk}`; another expression as it stands."""
    node = parsed(text)
    if not isinstance(node, ast.JoinedStr):
        return text
    return "".join(str(part.value) if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}" for part in _parts_of(node))


def _parts_of(node: ast.JoinedStr) -> Iterator[ast.Constant | ast.FormattedValue]:
    return (part for part in node.values if isinstance(part, (ast.Constant, ast.FormattedValue)))


def _needs(node: ast.expr, reading: _Reading, *, wanted: bool) -> Iterator[Requirement]:
    """Take a condition apart; a part that is not told by the tables stays as it is."""
    reading.budget.spend()
    node = _of_flags(node, reading.values)
    rounds = _of_rounds(node, reading.values)
    if rounds is not None:
        with suppress(Unread):
            yield from list(_needs(rounds, replace(reading, strict=True), wanted=wanted))
            return
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from _needs(node.operand, reading, wanted=not wanted)
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) == wanted:
        for part in node.values:
            yield from _needs(part, reading, wanted=wanted)
    elif isinstance(node, ast.Compare) and len(node.ops) > 1 and wanted:
        for side in sides(node):
            yield from _needs(side, reading, wanted=True)
    else:
        try:
            yield from list(_single(node, reading, wanted=wanted))
        except Unread:
            if reading.strict or reading.budget.steps < 0:
                raise
            yield _verbatim(_negated(node, wanted=wanted), reading.evidence)


def _single(node: ast.expr, reading: _Reading, *, wanted: bool) -> Iterable[Requirement]:
    """Read what cannot be taken apart into things that are all needed."""
    if isinstance(node, ast.Constant):
        return _constant(holds=bool(node.value) == wanted, evidence=reading.evidence)
    if isinstance(node, (ast.Name, ast.Attribute)) and reading.values.names.full(reading.values.path, dotted(node)) in _NEVER:
        return _constant(holds=not wanted, evidence=reading.evidence)
    if reading.as_written and _is_function(node, reading.values):
        return _constant(holds=wanted, evidence=reading.evidence)
    inner = _wrapped(node)
    if inner is not None:
        return _needs(inner, reading, wanted=wanted)
    handler = _HANDLERS.get(type(node))
    return _of_name(node, dotted(node), reading, wanted=wanted) if handler is None else handler(node, reading, wanted=wanted)


_NEVER = frozenset({"typing.TYPE_CHECKING", "typing_extensions.TYPE_CHECKING"})
"""What is true for a type checker, and in no run."""


def _of_entry(node: ast.Subscript, reading: _Reading, *, wanted: bool) -> list[Requirement]:
    """Read `deepspeed.ops.__compatible_ops__[FusedAdamBuilder.NAME]`."""
    base, entry = dotted(node.value), dotted(node.slice).removesuffix(".NAME").rpartition(".")[2]
    row = words.INDEXED.get(reading.values.names.full(reading.values.path, base)) if base and entry else None
    if row is None:
        raise Unread
    return [made(row[0], f"{'' if wanted else 'not '}{row[1]} {entry}", reading.evidence)]


def _is_function(node: ast.expr, values: Values) -> bool:
    """Tell whether an expression is a function, which is true: `lambda: x`, `torch.cuda.is_available`."""
    if isinstance(node, ast.Lambda):
        return True
    name = dotted(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
    is_bound = name.partition(".")[0] in values.bound
    return bool(name) and not is_bound and _OF_TORCH.fullmatch(values.names.full(values.path, name)) is not None


_OF_TORCH = re.compile(r"torch\.(?!(?:\w+\.)*config\.)(?:\w+\.)*is_\w+")
"""Functions of torch that say whether something is there."""


def _wrapped(node: ast.expr) -> ast.expr | None:
    """Give the condition in `lambda: x` and in `bool(x)`."""
    if isinstance(node, ast.Lambda):
        return node.body
    return node.args[0] if isinstance(node, ast.Call) and dotted(node) == "bool" and len(node.args) == 1 else None


def _of_flags(node: ast.expr, values: Values) -> ast.expr:
    """Read `HAS_ONE & HAS_OTHER` as `HAS_ONE and HAS_OTHER`, where both are known to be true or false."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr))):
        return node
    sign, left, parts = type(node.op), node.left, [node.right]
    while isinstance(left, ast.BinOp) and type(left.op) is sign:
        parts.append(left.right)
        left = left.left
    parts = [left, *parts[::-1]]
    return ast.BoolOp(ast.And() if sign is ast.BitAnd else ast.Or(), parts) if all(_is_truth(part, values) for part in parts) else node


def _of_rounds(node: ast.expr, values: Values) -> ast.BoolOp | None:
    """Read `all(n > SIZE for n in (2, 4))` as `2 > SIZE and 4 > SIZE`, and `any` as `or`, where the numbers or texts are known and few."""
    kind = _QUANTIFIERS.get(dotted(node)) if isinstance(node, ast.Call) and not _is_own(dotted(node), values) else None
    inner = node.args[0] if kind is not None and isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords else None
    if kind is None or not isinstance(inner, ast.GeneratorExp) or len(inner.generators) != 1:
        return None
    (over,) = inner.generators
    if not isinstance(over.target, ast.Name) or over.ifs or over.is_async:
        return None
    found = _entries(over.iter, values)
    known = [each for each in found if isinstance(each, int | str)]
    if not known or len(known) < len(found):
        return None
    return ast.BoolOp(kind(), [_With(over.target.id, each).visit(deepcopy(inner.elt)) for each in known])


def _entries(node: ast.expr, values: Values) -> Sequence[object]:
    """Give the entries of a collection, be it an attribute of the class; nothing where they are not known, or too many."""
    if dotted(node).startswith("self."):
        path, attribute = values.settled(dotted(node).removeprefix("self.")) or ("", None)
        inner = parsed(attribute.value) if isinstance(attribute, Constant) and attribute.guard is None else None
        found = values.in_file(path).entries(inner) if inner is not None else None
    else:
        found = values.entries(node)
    return found if found is not None and len(found) <= _MOST_APART else ()


_QUANTIFIERS: Mapping[str, type[ast.boolop]] = {"all": ast.And, "any": ast.Or}


class _With(ast.NodeTransformer):
    """Puts a value in the place of a name.

    Args:
        name: the name.
        value: a number or a text.
    """

    def __init__(self, name: str, value: int | str) -> None:
        self._name = name
        self._value = value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace one name."""
        return ast.Constant(self._value) if node.id == self._name else node


def _is_truth(node: ast.expr, values: Values, depth: int = _DEPTH) -> bool:
    """Tell whether an expression gives True or False: a comparison, or what a row says that asks whether something is there."""
    match node:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Constant(value=value):
            return isinstance(value, bool)
        case ast.BoolOp(values=parts):
            return all(_is_truth(part, values, depth) for part in parts)
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr(), right=right):
            return _is_truth(left, values, depth) and _is_truth(right, values, depth)
    return _ends(node, values, depth, _is_truth)


def _is_something(node: ast.expr, values: Values, depth: int = _DEPTH) -> bool:
    """Tell whether what an expression gives is None where it is false: what a row says that asks whether something is there."""
    is_none = isinstance(node, ast.Constant) and node.value is None
    return is_none or _ends(node, values, depth, _is_something)


def _ends(node: ast.expr, values: Values, depth: int, read_on: Callable[[ast.expr, Values, int], bool]) -> bool:
    """Tell whether a name, or a call, leads to what a row says, or to something else of which that is told."""
    name = dotted(node)
    if not depth or not name:
        return False
    if name == "bool" and read_on is _is_truth:
        return True
    inner = _next(node, name, values)
    if inner is not None:
        return read_on(*inner, depth - 1)
    rule = values.vocabulary.rule(values.names.full(values.path, name)) if name.partition(".")[0] not in values.bound else None
    return rule is not None and rule.condition is None and bool(rule.needs or rule.unless) and counted(node, values) != GPUS


def _next(node: ast.expr, name: str, values: Values) -> tuple[ast.expr, Values] | None:
    """Follow a name to what it is set to, a call to what its function returns, with what reads that; None where that is not known."""
    if name in values.bound:
        text, inner = ("", values) if isinstance(node, ast.Call) else values.bound[name]
    elif name.partition(".")[0] in values.bound:
        return None
    elif isinstance(node, ast.Call):
        place = values.names.only(values.path, name)
        if place is None or not isinstance(place.definition, Function):
            return None
        inner = values.in_file(place.path).with_bound(bound(place.definition, expression(node), values, place.path))
        text = returned(place, values.names) or ""
    else:
        place = values.names.settled(values.path, name)
        if place is None or not isinstance(place.definition, Constant):
            return None
        text, inner = place.definition.value, values.in_file(place.path)
    found = parsed(text) if text else None
    return None if found is None else (found, inner)


def _any_of(node: ast.BoolOp, reading: _Reading, *, wanted: bool) -> list[Requirement]:
    """Read alternatives; where one of them always holds, those that cannot be read do not matter."""
    found, is_read = [], True
    for part in node.values:
        try:
            found.append(_whole(part, reading, wanted=wanted))
        except Unread:  # not kept: with its traceback it would hold this frame, and all that it holds
            is_read = False
            continue
        if not found[-1]:
            return []
    if not is_read:
        raise Unread
    return _either(found, reading.evidence)


def _of_choice(node: ast.IfExp, reading: _Reading, *, wanted: bool) -> list[Requirement]:
    """Read `a if x else b`: one must hold with x, the other without; of one that always holds, or never does, the rest need not ask."""
    evidence = reading.evidence

    def if_so(*, holds: bool) -> tuple[Requirement, ...]:
        return _whole(node.test, reading, wanted=holds)

    there, otherwise = (_whole(side, reading, wanted=wanted) for side in (node.body, node.orelse))
    if _is_never(there) and _is_never(otherwise):
        return _constant(holds=False, evidence=evidence)
    if not (there or otherwise):
        return []
    if _is_never(there) or _is_never(otherwise):
        return list(dict.fromkeys((*if_so(holds=_is_never(otherwise)), *(otherwise if _is_never(there) else there))))
    if not there or not otherwise:
        return _either([if_so(holds=not there), there or otherwise], evidence)
    return _either([(*if_so(holds=True), *there), (*if_so(holds=False), *otherwise)], evidence)


def _is_never(needs: tuple[Requirement, ...]) -> bool:
    return any(need.kind == "disabled" for need in needs)


def _whole(node: ast.expr, reading: _Reading, *, wanted: bool) -> tuple[Requirement, ...]:
    return tuple(_needs(node, replace(reading, strict=True), wanted=wanted))


def _constant(*, holds: bool, evidence: Evidence) -> list[Requirement]:
    return [] if holds else [made("disabled", evidence.reason, evidence)]


def _of_comparison(node: ast.Compare, reading: _Reading, *, wanted: bool) -> Iterable[Requirement]:
    if len(node.ops) > 1:
        return _either([_whole(side, reading, wanted=wanted) for side in sides(node)], reading.evidence)
    try:
        return of_comparison(node, reading.values, reading.evidence, wanted=wanted)
    except Truth as truth:
        return _constant(holds=truth.holds, evidence=reading.evidence)
    except Bare as bare:
        is_none = isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value is None
        if (_is_something if is_none else _is_truth)(bare.node, reading.values):
            return _single(bare.node, reading, wanted=bare.wanted)
        return _by_cases(node, reading, wanted=wanted)
    except Unread:
        return _by_cases(node, reading, wanted=wanted)


def _by_cases(node: ast.Compare, reading: _Reading, *, wanted: bool) -> Iterable[Requirement]:
    """Read a comparison with a name that is one thing here and another there, or the least of several.

    `device == "cuda"`, of `device = infer_device()`; `size < 2`, of `size = min(4, torch.cuda.device_count())`.
    """
    turned = _TURNED.get(type(node.ops[0])) if isinstance(node.left, ast.Constant) else None
    if turned is not None:
        node = ast.Compare(node.comparators[0], [turned()], [node.left])
    value = _as_written(node.comparators[0], reading.values)
    found = _choice(node.left, reading.values, reading.depth) if value is not None else None
    if found is None or value is None:
        raise Unread
    choice, values, depth = found
    if isinstance(choice, ast.IfExp):
        cases: ast.expr = ast.IfExp(choice.test, *(ast.Compare(side, node.ops, [value]) for side in (choice.body, choice.orelse)))
    else:
        kind = _EXTREMES.get((choice.func.id, type(node.ops[0]))) if isinstance(choice.func, ast.Name) else None
        if kind is None:
            raise Unread
        cases = ast.BoolOp(kind(), [ast.Compare(each, node.ops, [value]) for each in choice.args])
    return list(_needs(cases, replace(reading, values=values, depth=depth, strict=True), wanted=wanted))


_TURNED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
"""How a comparison is written from its other side."""
_EXTREMES: Mapping[tuple[str, type[ast.cmpop]], type[ast.boolop]] = {
    ("min", ast.Lt): ast.Or,
    ("min", ast.LtE): ast.Or,
    ("min", ast.Gt): ast.And,
    ("min", ast.GtE): ast.And,
    ("max", ast.Lt): ast.And,
    ("max", ast.LtE): ast.And,
    ("max", ast.Gt): ast.Or,
    ("max", ast.GtE): ast.Or,
}
"""How what is compared with the least, or the greatest, of several is compared with each of them."""


def _as_written(node: ast.expr, values: Values) -> ast.expr | None:
    """Write a value so that it can be read in any file; None when it is not known, or may be changed where it is."""
    if isinstance(node, ast.Constant):
        return node
    known = values.of_node(node, DEPTH, exact=True)
    known = values.entries(node) if known is None else known
    return None if known is None else parsed(repr(known))


def _choice(node: ast.expr, values: Values, depth: int) -> tuple[ast.IfExp | ast.Call, Values, int] | None:
    """Follow a name or a call to an `a if x else b` or a `min(a, b)`; gives it, with what reads it and with what may still be followed."""
    if isinstance(node, ast.IfExp) or _is_extreme(node, values):
        return node, values, depth
    inner = _next(node, dotted(node), values) if depth and dotted(node) else None
    return None if inner is None else _choice(*inner, depth - 1)


def _is_extreme(node: ast.expr, values: Values) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in ("min", "max"):
        return False
    is_plain = len(node.args) > 1 and not node.keywords and not any(isinstance(each, ast.Starred) for each in node.args)
    return is_plain and not _is_own(node.func.id, values)


def _is_own(name: str, values: Values) -> bool:
    """Tell whether a file, or a function of it, calls something of its own by the name of a function of Python."""
    return name in values.bound or name in values.names.bindings(values.path) or values.names.find(values.path, name) is not None


def _either(alternatives: list[tuple[Requirement, ...]], evidence: Evidence) -> list[Requirement]:
    """Join alternatives into one requirement; one that always holds leaves nothing to ask."""
    open_ones = [needs for needs in alternatives if not any(need.kind == "disabled" for need in needs)]
    if not open_ones:
        return _constant(holds=False, evidence=evidence)
    if not all(open_ones):
        return []
    distinct = list(dict.fromkeys(each for needs in open_ones for each in _apart(needs)))
    if len(distinct) == 1:
        return list(distinct[0])
    singles = [needs[0] for needs in distinct if len(needs) == 1]
    kinds = {need.kind for need in singles}
    if len(singles) == len(distinct) and len(kinds) == 1:
        together = _one_value(kinds.pop(), [need.value for need in singles])
        if together is not None:
            return [made(singles[0].kind, together, evidence)]
    text = " or ".join(" and ".join(need.text for need in needs) for needs in distinct)
    return [replace(made("one of", text, evidence), either=tuple(distinct))]


def _apart(needs: Iterable[Requirement], most: int = _MOST_APART) -> list[tuple[Requirement, ...]]:
    """Give the alternatives that one alternative has within; itself alone, where there are too many."""
    whole = tuple(dict.fromkeys(needs))
    found: list[tuple[Requirement, ...]] = [()]
    for need in whole:
        found = [(*one, *each) for one in found for each in need.either or ((need,),)]
        if len(found) > most:
            return [whole]
    return [tuple(dict.fromkeys(each)) for each in found]


def _one_value(kind: str, values: list[str]) -> str | None:
    """Write alternatives of one kind as one value; None when that cannot be said."""
    if kind in _JOINED:
        return joined(values)
    ranges = [gpu_range(value) for value in values] if kind == "gpus" else [None]
    lows = [found[0] for found in ranges if found is not None and found[1] is None]
    return str(min(lows)) if len(lows) == len(values) else None


def _of_name(node: ast.expr, name: str, reading: _Reading, *, wanted: bool) -> Iterable[Requirement]:
    values, evidence = reading.values, reading.evidence
    if not name:
        raise Unread
    if isinstance(node, ast.Name) and name in values.bound and reading.depth:
        return _within(*values.bound[name], reading, wanted=wanted)
    if name in ("importable", "not_importable") and isinstance(node, ast.Call):
        return _of_failing(expression(node), values, evidence, wanted=wanted == (name == "not_importable"))
    full = values.names.full(values.path, name)
    is_bound = name.partition(".")[0] in values.bound
    if is_bound and full != name:  # the import is hidden by something else
        raise Unread
    rule = values.vocabulary.rule(full)
    if rule is not None and rule.condition is None and (rule.needs or rule.unless):
        own = None if is_bound or rule is not words.NAMES.get(full.rpartition(".")[2]) else _by_own(node, name, reading, wanted=wanted)
        return _of_rule(rule, node, values, evidence, wanted=wanted) if own is None else own
    if full.endswith(".startswith") and isinstance(node, ast.Call):
        return _of_start(node, full, reading, wanted=wanted)
    found = _of_number(node, values, evidence, wanted=wanted)
    if found is not None:
        return [found]
    if is_bound:
        raise Unread
    return _followed(node, name, reading, wanted=wanted)


def _by_own(node: ast.expr, name: str, reading: _Reading, *, wanted: bool) -> Iterable[Requirement] | None:
    """Follow a function of the project that is called as one of which a row speaks; None where there is none, or it cannot be followed."""
    place = reading.values.names.only(reading.values.path, name) if isinstance(node, ast.Call) and reading.depth else None
    if place is None or place.path.startswith(PACKAGES) or not isinstance(place.definition, Function):
        return None
    try:
        return list(_followed(node, name, replace(reading, strict=True), wanted=wanted))
    except Unread:
        return None


def _of_number(node: ast.expr, values: Values, evidence: Evidence, *, wanted: bool) -> Requirement | None:
    """Read whether a variable is set to something, and whether there are any of what is counted."""
    if not isinstance(node, ast.Call):
        return None
    cast = node.func.id if isinstance(node.func, ast.Name) else ""
    variable = values.variable_of(node) if cast != "str" else None
    if variable is not None and (wanted or cast in ("", "bool")):  # "0" is set, and false as a number
        return _of_environment(*variable, evidence, wanted=wanted)
    found = counted(node, values)
    if found == GPUS or (found is not None and found[0] == "gpus" and wanted):
        return made("gpus", "1" if wanted else "== 0", evidence)
    return None


def _of_failing(call: Expression, values: Values, evidence: Evidence, *, wanted: bool) -> Iterable[Requirement]:
    """Read whether modules cannot be imported; that a part of a package is missing says nothing of the package."""
    said = [module for module in map(values.of, call.arguments) if isinstance(module, str)]
    modules = [module.removeprefix("from ").partition(" ")[0] for module in said]
    if not modules or any(module.startswith(".") or values.names.is_own(values.path, module) for module in modules):
        raise Unread
    if wanted and any("." in module or " " in module for module in said):
        raise Unread
    if wanted:
        return [made("package", joined(f"not {module}" for module in modules), evidence)]
    return [made("package", module, evidence) for module in modules]


def _of_rule(rule: Rule, node: ast.expr, values: Values, evidence: Evidence, *, wanted: bool) -> list[Requirement]:
    call = expression(node)
    if wanted or rule.unless:
        needs = rule.needs if wanted else rule.unless
        if not needs:
            raise Unread
        return list(filled(replace(rule, needs=needs), call, values, evidence))
    return _either([(_opposite(need, evidence),) for need in filled(rule, call, values, evidence)], evidence)


def _opposite(need: Requirement, evidence: Evidence) -> Requirement:
    value = opposite(need.kind, need.value)
    if value is None:
        raise Unread
    return made(need.kind, value, evidence, need.otherwise)


def _followed(node: ast.expr, name: str, reading: _Reading, *, wanted: bool) -> Iterable[Requirement]:
    """Follow a flag to its one assignment, a function to the only value that it returns."""
    values = reading.values
    if not reading.depth:
        raise Unread
    if name.startswith(("self.", "cls.")) and name.count(".") == 1:
        found = values.settled(name.partition(".")[2])
        text, inner = (None, values) if found is None else _of_member(node, found[1], found[0], values)
        return _within(text, inner, reading, wanted=wanted)
    if isinstance(node, ast.Call):
        following = _next(node, name, values)
        if following is None:
            raise Unread
        return _read_on(*following, reading, wanted=wanted)
    plain = values.in_file(values.path)
    key = ("flag", values.path, name, wanted, reading.depth)
    known = values.names.remember(key, lambda: _of_flag(plain, name, reading.depth, wanted=wanted))
    if known is None:
        raise Unread
    return [_with_evidence(need, reading.evidence) for need in known]


def _of_member(node: ast.expr, member: Constant | Function, path: str, values: Values) -> tuple[str | None, Values]:
    """Give what an attribute, a property or a method that is called comes to, and what reads that."""
    inner = values.in_file(path)
    if isinstance(member, Constant):
        return (None if isinstance(node, ast.Call) else member.value), inner
    is_property = any(each.name.rpartition(".")[2].endswith("property") for each in member.decorators)
    if isinstance(node, ast.Call) == is_property:
        return None, inner
    is_static = any(each.name == "staticmethod" for each in member.decorators)
    named = member if is_static else replace(member, parameters=member.parameters[1:])
    call = expression(node)
    given = bound(named, call, values, path) if isinstance(node, ast.Call) else {}
    return returned(Place(path, member), values.names), inner.with_bound(given)


def _of_flag(values: Values, name: str, depth: int, *, wanted: bool) -> list[Requirement] | None:
    """Read what a flag of a module stands for, without saying where it is asked for; None when that is not told."""
    place = values.names.settled(values.path, name)
    reading = _Reading(values, Evidence("", "", 0), depth)
    try:
        if place is not None and isinstance(place.definition, Constant):
            return list(_within(place.definition.value, values.in_file(place.path), reading, wanted=wanted))
        imported = _if_imported(values, name)
        if imported is not None:
            return list(_read_on(imported[0], imported[1], reading, wanted=wanted))
        tried = _tried_import(values, name)
        if tried is None:
            return None
        package, value, path, is_sure = tried
        if not (wanted or is_sure):
            return None
        first = made("package", package if wanted else f"not {package}", reading.evidence)
        more = tuple(_within(value, values.in_file(path), reading, wanted=wanted))
    except Unread:
        return None
    return [first, *more] if wanted else _either([(first,), more], reading.evidence)


def _with_evidence(need: Requirement, evidence: Evidence) -> Requirement:
    """Say of what a flag stands for where it was asked for."""
    value = evidence.reason if need.kind == "disabled" else need.value
    either = tuple(tuple(_with_evidence(each, evidence) for each in needs) for needs in need.either)
    return replace(made(need.kind, value, evidence, need.otherwise and evidence.otherwise), either=either)


def _within(text: str | None, values: Values, reading: _Reading, *, wanted: bool) -> Iterable[Requirement]:
    """Read on in what a flag is set to; if that is not told in full, the flag itself says it best."""
    node = parsed(text) if text else None
    if node is None:
        raise Unread
    return _read_on(node, values, reading, wanted=wanted)


def _read_on(node: ast.expr, values: Values, reading: _Reading, *, wanted: bool) -> Iterable[Requirement]:
    return list(_needs(node, replace(reading, values=values, depth=reading.depth - 1, strict=True, as_written=False), wanted=wanted))


def bound(function: Function, call: Expression, values: Values, path: str) -> dict[str, tuple[str, Values]]:
    """Tell what the parameters of a function are in a call of it.

    Args:
        function: the function.
        call: the call.
        values: reads the arguments where the call stands.
        path: of the function's file, in which its defaults are read.
    """
    plain = list(takewhile(_is_plain, call.arguments))
    given = dict(zip(takewhile(_is_plain, function.parameters), plain, strict=False)) | dict(call.keywords)
    known = {name: (text, values) for name, text in given.items() if name in function.parameters and not name.startswith("*")}
    is_open = len(plain) < len(call.arguments) or any(name == "**" for name, _ in call.keywords)
    settled = Values(values.names, path)
    return {**(unknown(function, settled) if is_open else by_default(function, settled)), **known}


def _is_plain(text: str) -> bool:
    return not text.startswith("*")


def by_default(function: Function, values: Values) -> dict[str, tuple[str, Values]]:
    """Tell what the parameters of a function are where a call does not say it: empty for what only a run can tell."""
    settled = dict(function.defaults)
    return {name: (settled.get(name, ""), values) for name in _own_names(function)}


def unknown(function: Function, values: Values) -> dict[str, tuple[str, Values]]:
    """Say of all parameters of a function that only a run can tell what they are."""
    return dict.fromkeys(_own_names(function), ("", values))


def _own_names(function: Function) -> Iterator[str]:
    """Yield the names of the parameters of a function, but for the object or the class whose method it is."""
    return (name.lstrip("*") for name in function.parameters if name not in ("self", "cls"))


def inside(function: Function, values: Values) -> Values:
    """Read on inside a function, with the names that it sets.

    Args:
        function: the function.
        values: reads its parameters.
    """
    if not function.names:
        return values
    values = values.with_bound({**values.bound, **{name: ("", values) for name, _ in function.names}})
    for name, text in reversed(function.names):  # those that others rest on come last
        values = values.with_bound({**values.bound, name: (text, values)})
    return values


def _if_imported(values: Values, name: str) -> tuple[ast.expr, Values] | None:
    """Read a flag that is one thing where modules can be imported, and another where not; None for another flag.

    Returns:
        `one if importable("a") else other`, and what reads it.
    """
    set_to, path = _set_twice(values, name)
    if len(set_to) != 2:
        return None
    first, last = set_to
    tests = [None if each.guard is None else parsed(each.guard) for each in set_to]
    kinds = [each.guard if test is None else _kind_of_import(test) for test, each in zip(tests, set_to, strict=True)]
    one, other = parsed(first.value), parsed(last.value)
    is_first = kinds[0] == "not_importable"
    test = tests[0] if is_first else tests[1]
    if one is None or other is None or test is None or kinds not in _TRIED:
        return None
    return (ast.IfExp(test, one, other) if is_first else ast.IfExp(test, other, one)), values.in_file(path)


def _kind_of_import(test: ast.expr) -> str:
    """Tell whether imports must work, or one must fail, and what stands beside them: `importable("a") and not (old)`."""
    kind = {ast.And: "importable", ast.Or: "not_importable"}[type(test.op)] if isinstance(test, ast.BoolOp) else ""
    first = test.values[0] if isinstance(test, ast.BoolOp) else test
    name = dotted(first) if isinstance(first, ast.Call) else ""
    return name if kind in ("", name) else ""


_TRIED = ([None, "not_importable"], ["importable", "not_importable"], [None, "importable"], ["not_importable", "importable"])
"""Under what a flag is set the first time and the second where it depends on imports alone."""


def _tried_import(values: Values, name: str) -> tuple[str, str, str, bool] | None:
    """Find the package of a flag that is set right after an import, and false where that fails.

    Returns:
        The package, what the flag is set to when it is there, the file, and whether it is set so wherever the package is there; None for
        another flag.
    """
    set_to, path = _set_twice(values, name)
    there = [each for each in set_to if each.value != "False"]
    if len(there) != 1:
        return None
    guards = {each.guard for each in set_to if each is not there[0]} | {there[0].guard}
    failed = [guard for guard in guards if guard is not None]
    if any(not guard.startswith("not_importable(") for guard in failed) or there[0].guard is not None:
        return None
    entries = [entry for entry in values.names.bindings(path).values() if not entry.level]
    before = [entry for entry in entries if 0 < there[0].line - entry.line <= 2]
    package = _package(before[0].module) if before else ""
    if not package or values.names.is_own(path, before[0].module):
        return None
    is_sure = there[0].line - before[0].line == 1 and failed == [f"not_importable({before[0].module!r})"] and "." not in before[0].module
    return package, there[0].value, path, is_sure


def _set_twice(values: Values, name: str) -> tuple[list[Constant], str]:
    """Give the two assignments of a flag that nothing else binds, in their order, with their file; none for another name."""
    place = values.names.find(values.path, name)
    if place is None or not isinstance(place.definition, Constant):
        return [], ""
    own, path = place.definition.name, place.path
    set_to = sorted(values.names.assigned(path, own), key=attrgetter("line"))
    is_flag = len(set_to) == 2 and values.names.is_kept(path, own) and own not in values.names.bindings(path)
    return (set_to, path) if is_flag else ([], "")


def _of_environment(name: str, default: str | None, evidence: Evidence, *, wanted: bool) -> Requirement:
    """Read whether a variable is set to something."""
    if default:
        raise Unread
    return made("environment", f"{name} {'set' if wanted else 'not set'}", evidence)


def _of_start(node: ast.Call, full: str, reading: _Reading, *, wanted: bool) -> Iterable[Requirement]:
    """Read how a platform or an environment variable must begin; a default that begins so leaves it open."""
    values = reading.values
    if full.removesuffix(".startswith") in words.SYSTEM_NAMES:
        return _of_comparison(ast.Compare(node.func.value, [ast.Eq()], node.args[:1]), reading, wanted=wanted)  # type: ignore[attr-defined]
    variable = values.variable_of(node.func.value) if isinstance(node.func, ast.Attribute) else None
    start = values.of_node(node.args[0], _DEPTH) if node.args else None
    if variable is None or not isinstance(start, str) or (variable[1] or "").startswith(start):
        raise Unread
    return [made("environment", f"{variable[0]} {'starts' if wanted else 'does not start'} with {start}", reading.evidence)]


def _negated(node: ast.expr, *, wanted: bool) -> str:
    """Write what the test needs of a condition that stays as it is: the parts of it turned round, where it must be false."""
    if wanted:
        return ast.unparse(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ast.unparse(node.operand)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        return f"{left} {OPERATORS[type(node.ops[0])][1]} {right}"
    if isinstance(node, ast.BoolOp):
        sign, plain = (" or ", ast.Or) if isinstance(node.op, ast.And) else (" and ", ast.And)
        return sign.join(_in_parentheses(_negated(part, wanted=False), plain) for part in node.values)
    simple = isinstance(node, (ast.Name, ast.Attribute, ast.Call))
    return f"not {ast.unparse(node)}" if simple else f"not ({ast.unparse(node)})"


def _in_parentheses(text: str, around: type[ast.boolop]) -> str:
    """Write a condition as a part of a longer one."""
    node = parsed(text)
    is_other = isinstance(node, (ast.IfExp, ast.Lambda)) or (isinstance(node, ast.BoolOp) and not isinstance(node.op, around))
    return f"({text})" if is_other else text


def _verbatim(text: str, evidence: Evidence) -> Requirement:
    return made("condition", short(text), evidence)


_HANDLERS: Mapping[type[ast.expr], Callable[..., Iterable[Requirement]]] = {
    ast.BoolOp: _any_of,
    ast.Compare: _of_comparison,
    ast.IfExp: _of_choice,
    ast.Subscript: _of_entry,
}
"""How the parts of a condition are read that are no names."""
