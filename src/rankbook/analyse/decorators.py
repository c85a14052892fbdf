"""Reads decorators and marks by the vocabulary, and those that the tree defines by what they are made of."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from rankbook import vocabulary, words
from rankbook.analyse.conditions import bound, inside, of_condition, of_condition_in_full, of_leaves, of_skip_in_full, unknown
from rankbook.analyse.names import Place
from rankbook.analyse.rules import Evidence, Unread, expression, filled, made
from rankbook.analyse.values import Values, parsed
from rankbook.model import Constant, Expression, Function
from rankbook.requirements import Requirement, Rule
from rankbook.syntax import applied

_DEPTH = 4
"""Helpers that a decorator is followed through."""
_PARTIALS = frozenset({"partial", "functools.partial"})
_ORDERS = frozenset({"list", "reversed", "tuple"})
"""What gives the same marks in another order, or in another list."""
_LISTS = (ast.List, ast.Tuple, ast.BinOp)
"""How marks are listed, or lists of them added up."""
_SKIPS = re.compile(r"\bmark\.skip(if)?\b|\bskip(If|Unless|Test)?\(|\bSkipTest\b")
_ASKING = frozenset({"unittest.skipIf", "unittest.skipUnless", "pytest.mark.skipif"})
"""Decorators that ask at once whether their condition is true."""
_OF_TORCH = "torch/testing/_internal/"


def of_decorator(decorator: Expression, values: Values, otherwise: str = "skipped", depth: int = _DEPTH) -> Iterator[Requirement]:
    """Read what a decorator or a mark asks for.

    Args:
        decorator: as written.
        values: reads its arguments in its file.
        otherwise: what becomes of the test where that is not met, as in `Requirement`.
        depth: helpers still to follow.
    """
    evidence = Evidence(decorator.text, values.path, decorator.line, otherwise, _reason(decorator, values))
    name = values.names.full(values.path, decorator.name)
    rule = values.vocabulary.rule(name)
    if rule is None:
        yield from _of_helper(decorator, name, values, evidence, depth)
        return
    own = _of_own(decorator, name, rule, values, depth)
    if own is not None:
        yield from _at(decorator, values, own)
        return
    device = _device(values)
    if rule.devices and device is not None and device not in rule.devices:
        return
    if rule.devices and device is None:
        evidence = replace(evidence, otherwise="")
    if rule.condition is not None:
        yield from of_condition(_condition(decorator), values, evidence, wanted=rule.condition, as_written=name in _ASKING)
    else:
        yield from (each for need in _by_rule(rule, decorator, values, evidence) for each in _on_device(need, device, evidence))


def of_call(call: Expression, values: Values, otherwise: str) -> Iterable[Requirement]:
    """Read what a call needs whose name the settings have.

    Args:
        call: as written.
        values: reads its arguments in its file.
        otherwise: what becomes of the test where that is not met, as in `Requirement`, unless the settings say it.
    """
    rule = values.vocabulary.rule(values.names.full(values.path, call.name))
    return _by_rule(rule, call, values, Evidence(call.text, values.path, call.line, otherwise)) if rule is not None else ()


def _by_rule(rule: Rule, call: Expression, values: Values, evidence: Evidence) -> Iterable[Requirement]:
    if rule.needs[:1] and rule.needs[0][0] == "disabled":
        return [made("disabled", evidence.reason, evidence)]
    try:
        return list(filled(rule, call, values, evidence))
    except Unread:
        return [made("condition", call.text, evidence)]


def _on_device(need: Requirement, device: str | None, evidence: Evidence) -> Iterator[Requirement]:
    """Leave out what the device of a generated test answers, be it with yes or with no."""
    words = need.value.removeprefix("not ").split(" or ")
    if need.kind != "device" or not need.otherwise or device is None or any(" " in word for word in words):
        yield need
    elif (device in words) == need.value.startswith("not "):
        yield made("disabled", f"on {device}", evidence)


def _device(values: Values) -> str | None:
    """Give the device of a generated test; None when the test has none."""
    return values.bound["device"][0].strip("'\"").partition(":")[0] if "device" in values.bound else None


def _of_helper(decorator: Expression, name: str, values: Values, evidence: Evidence, depth: int) -> Iterator[Requirement]:
    """Read a decorator that no row names: one of the tree, a mark, or one that only its name speaks for."""
    if ".mark." in f".{name}":
        mark = name.rpartition(".")[2]
        if mark not in words.PASSED_OVER and name.partition("mark.")[2] == mark:
            yield made("mark", mark, evidence, "")
        return
    try:
        found = None if depth == 0 else _followed(decorator, values, depth)
    except (Unread, RecursionError):
        found = [made("condition", decorator.text, evidence)]
    if found is not None:
        yield from _at(decorator, values, found)
    elif vocabulary.looks_like_requirement(decorator.name) or _may_skip(decorator, values):
        yield made("condition", decorator.text, evidence)


def _may_skip(decorator: Expression, values: Values) -> bool:
    """Tell whether a decorator of the tree, which cannot be followed, is made of one that skips."""
    place = values.names.find(values.path, decorator.name)
    if place is not None and isinstance(place.definition, Constant):
        return any(_SKIPS.search(each.value) for each in values.names.assigned(place.path, place.definition.name))
    place = values.names.only(values.path, decorator.name)
    definition = place.definition if place is not None else None
    return isinstance(definition, Function) and _SKIPS.search(definition.text or definition.returns or "") is not None


def _at(decorator: Expression, values: Values, found: Iterable[Requirement]) -> Iterator[Requirement]:
    """Say of what a decorator is made of that the decorator says it."""
    return (replace(each, evidence=decorator.text, line=decorator.line, path=values.path, either=each.either) for each in found)


def _of_own(decorator: Expression, name: str, rule: Rule, values: Values, depth: int) -> list[Requirement] | None:
    """Follow a decorator of the tree that is called as one of which a row speaks; None where there is none, or it cannot be read in full.

    The rows about PyTorch's own are about the very functions that the tree of PyTorch has, and say more than these.
    """
    if not depth or rule.condition is not None or rule is not words.NAMES.get(name.rpartition(".")[2]) or name.startswith("torch."):
        return None
    place = values.names.only(values.path, decorator.name)
    if place is None or not isinstance(place.definition, Function) or _OF_TORCH in place.path:
        return None
    try:
        found = _followed(decorator, values, depth)
    except (Unread, RecursionError):
        return None
    return None if found is None else _read_in_full(found)


def _read_in_full(found: list[Requirement]) -> list[Requirement] | None:
    return None if any(need.kind == "condition" for need in found) else found


def _followed(decorator: Expression, values: Values, depth: int) -> list[Requirement] | None:
    """Follow a decorator to what the tree says that it is; None when the tree does not say it."""
    place = values.names.constant(values.path, decorator.name)
    if place is not None and isinstance(place.definition, Constant):
        return _of_alias(decorator, place.definition, values, place, depth)
    place = values.names.find(values.path, decorator.name)
    if place is None or not isinstance(place.definition, Function):
        return None
    several = values.names.alternatives(place)
    found = [_of_function(decorator, Place(place.path, each), values, depth) for each in several]
    if len(several) > 1:
        return _of_alternatives(several, found, values.in_file(place.path))
    if found[0] and any(need.kind == "disabled" for need in found[0]) and values.names.only(values.path, decorator.name) is None:
        raise Unread  # its name may stand for something else
    return found[0]


def _of_function(decorator: Expression, place: Place, values: Values, depth: int) -> list[Requirement] | None:
    """Follow a decorator to what a function says that it is; None when that does not say it."""
    function = place.definition
    assert isinstance(function, Function)
    is_called = decorator.text != decorator.name
    inner = values.in_file(place.path).with_bound(bound(function, decorator, values, place.path) if is_called else {})
    if function.returns is not None:
        return _of_return(parsed(function.returns), function, inner, depth, is_called=is_called)
    return _of_wrapper(place, inner) or _of_statements(function, inner, depth, is_called=is_called)


def _of_alternatives(several: list[Function], found: list[list[Requirement] | None], values: Values) -> list[Requirement] | None:
    """Read a decorator that is defined more than once: where it skips stands under a condition, without which the test is run."""
    needs: list[Requirement] = []
    others = []
    for function, read in zip(several, found, strict=True):
        if read is None or not any(need.kind == "disabled" for need in read):
            others.append(read)
        elif function.guard is None:
            raise Unread
        else:
            needs += of_condition_in_full(function.guard, values, Evidence(function.name, values.path, function.line), wanted=False)
    if any(read != others[0] for read in others) or (needs and others[:1] == [None]):
        raise Unread
    return [*needs, *(others[0] or ())] if needs or (others and others[0] is not None) else None


def _of_alias(decorator: Expression, constant: Constant, values: Values, place: Place, depth: int) -> list[Requirement] | None:
    """Read `needs_two = unittest.skipIf(...)`, and `needs = functools.partial(unittest.skipIf, ...)` with the arguments of its call."""
    node = parsed(constant.value)
    inner = values.in_file(place.path)
    if isinstance(node, ast.Attribute) and decorator.text == decorator.name:
        return list(of_decorator(expression(node, constant.line), inner, depth=depth - 1))
    if not isinstance(node, ast.Call):
        return None
    call = expression(node, constant.line)
    if values.names.full(place.path, call.name) not in _PARTIALS:
        return list(of_decorator(call, inner, depth=depth - 1))
    whole = Expression(
        call.text,
        call.arguments[0] if call.arguments else "",
        call.line,
        (*call.arguments[1:], *decorator.arguments),
        (*call.keywords, *decorator.keywords),
    )
    return list(of_decorator(whole, inner, depth=depth - 1))


def _of_statements(function: Function, values: Values, depth: int, *, is_called: bool) -> list[Requirement] | None:
    """Read a decorator that is made in several statements: names are set, and under conditions a skip is what is returned."""
    definition = next(iter(ast.parse(function.text).body), None) if "skip" in function.text or "mark" in function.text else None
    if not isinstance(definition, ast.FunctionDef):
        return None
    plain, known = values.in_file(values.path), dict(values.bound)
    for parameter, default in _defaults(definition.args):
        known.setdefault(parameter, (ast.unparse(default), plain))
    return _of_body(definition.body, function, values.with_bound(known), depth, is_called=is_called)


def _of_body(body: list[ast.stmt], function: Function, values: Values, depth: int, *, is_called: bool) -> list[Requirement] | None:
    """Read the statements up to the first that returns."""
    for number, node in enumerate(body):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if not is_called and name in function.parameters:
                around = _of_return(value, function, values, depth, is_called=False)
                return _with_more(around, body[number + 1 :], function, values, depth)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                values = values.with_bound({**values.bound, name: (ast.unparse(value), values)})
            case ast.For() if not is_called and (listed := applied(node)) is not None:
                if isinstance(_listed(listed, values)[0], ast.Name) and getattr(listed, "id", "") not in values.bound:
                    raise Unread
                around = _of_return(listed, function, values, depth, is_called=True)
                return _with_more(around, body[number + 1 :], function, values, depth)
            case ast.FunctionDef(name=name, args=arguments, body=inner) if is_called and _is_given(name, body[number + 1 :]):
                own = replace(function, parameters=tuple(each.arg for each in (*arguments.posonlyargs, *arguments.args)))
                outside = {key: value for key, value in values.bound.items() if key not in own.parameters}
                return _of_body(inner, own, values.with_bound(outside), depth, is_called=False)
            case ast.If(test=test, body=inner, orelse=other):
                there = _of_body(inner, function, values, depth, is_called=is_called)
                otherwise = _of_body([*other, *body[number + 1 :]], function, values, depth, is_called=is_called)
                return _of_choice(test, there, otherwise, values, function)
            case ast.Return(value=ast.expr() as value):
                return _of_return(value, function, values, depth, is_called=is_called)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                continue
            case _:
                break
    return None


def _is_given(name: str, behind: list[ast.stmt]) -> bool:
    """Tell whether all that comes behind a function is that it is returned."""
    match behind:
        case [ast.Return(value=ast.Name(id=given))]:
            return given == name
    return False


def _with_more(
    around: list[Requirement] | None, behind: list[ast.stmt], function: Function, values: Values, depth: int
) -> list[Requirement] | None:
    """Add what the statements behind put on a test to what was put on it."""
    within = None if around is None else _of_body(behind, function, values, depth, is_called=False)
    return None if around is None or within is None else [*around, *within]


def _of_choice(
    test: ast.expr, there: list[Requirement] | None, otherwise: list[Requirement] | None, values: Values, function: Function
) -> list[Requirement] | None:
    """Read what a condition decides: on one of its sides the test is skipped, or both need the same; None where nothing is skipped."""
    if there is None or otherwise is None:
        if "skip" not in function.text:
            return None
        raise Unread
    if there == otherwise:
        return there
    evidence = Evidence(function.name, values.path, function.line)
    for needs, others, wanted in ((there, otherwise, False), (otherwise, there, True)):
        if any(need.kind == "disabled" for need in needs):
            return [*others, *of_condition_in_full(ast.unparse(test), values, evidence, wanted=wanted)]
    if "skip" in function.text:
        raise Unread
    return None


def _gives_back(node: ast.expr, function: Function) -> bool:
    """Tell whether what is returned leaves a test as it is: `lambda test: test`, or the test itself."""
    if isinstance(node, ast.Lambda):
        return isinstance(node.body, ast.Name) and [each.arg for each in node.args.args] == [node.body.id]
    return isinstance(node, ast.Name) and node.id in function.parameters


def _of_return(node: ast.expr | None, function: Function, values: Values, depth: int, *, is_called: bool) -> list[Requirement] | None:
    """Read `return unittest.skipIf(...)(f)` and `return unittest.skipIf(...)`: the decorator, or their list, that is given or applied."""
    while is_called and isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _ORDERS and len(node.args) == 1:
        node = node.args[0]
    if isinstance(node, ast.IfExp):
        there, otherwise = (_of_return(side, function, values, depth, is_called=is_called) for side in (node.body, node.orelse))
        return _of_choice(node.test, there, otherwise, values, function)
    if node is not None and _gives_back(node, function):
        return []
    if isinstance(node, ast.Call) and not is_called and len(node.args) == 1 and isinstance(node.args[0], ast.Call):
        return _of_both(node, node.args[0], function, values, depth)
    if (isinstance(node, ast.Call) and isinstance(node.func, ast.Call)) or (isinstance(node, ast.Call) and not is_called):
        node, is_called = node.func, True
    if isinstance(node, ast.Name) and node.id in values.bound:
        text, outside = values.bound[node.id]
        return _of_return(parsed(text) if text else None, function, outside, depth, is_called=is_called)
    node, values = _listed(node, values) if is_called else (node, values)
    if isinstance(node, _LISTS) and is_called:
        return _of_all(node, function, values, depth)
    call = expression(node, function.line) if isinstance(node, (ast.Call, ast.Name, ast.Attribute)) else None
    return None if call is None or call.name == function.name else _all_read(of_decorator(call, values, depth=depth - 1))


def _listed(node: ast.expr | None, values: Values) -> tuple[ast.expr | None, Values]:
    """Give the list of marks that a name of a module stands for, and what reads it; another node as it is."""
    place = values.names.constant(values.path, node.id) if isinstance(node, ast.Name) else None
    listed = parsed(place.definition.value) if place is not None and isinstance(place.definition, Constant) else None
    return (listed, values.in_file(place.path)) if place is not None and isinstance(listed, _LISTS) else (node, values)


def _of_both(outer: ast.Call, inner: ast.Call, function: Function, values: Values, depth: int) -> list[Requirement] | None:
    """Read a decorator that is put around what another one has made of the test: `selected(skipped(test))`."""
    around = _of_return(outer.func, function, values, depth, is_called=True)
    within = _of_return(inner, function, values, depth, is_called=False)
    return within if around is None else around if within is None else [*around, *within]


def _of_all(node: ast.List | ast.Tuple | ast.BinOp, function: Function, values: Values, depth: int) -> list[Requirement] | None:
    """Read each decorator of a list, or of two that are added up."""
    parts = [node.left, node.right] if isinstance(node, ast.BinOp) else node.elts
    found = [_of_return(part.value if isinstance(part, ast.Starred) else part, function, values, depth, is_called=True) for part in parts]
    return None if any(needs is None for needs in found) else [need for needs in found for need in needs or ()]


def _of_wrapper(place: Place, values: Values) -> list[Requirement]:
    """Read the conditions under which the function that a decorator puts around a test skips it, or does not call it."""
    found: list[Requirement] = []
    for function in values.names.within(place):
        own = {} if function.qualname == getattr(place.definition, "qualname", "") else unknown(function, values)
        inner = inside(function, values.with_bound({**values.bound, **own}) if own else values)
        found += [need for skip in function.skips for need in of_skip_in_full(skip, inner)]
        found += of_leaves(function.leaves, inner) if function.qualname != getattr(place.definition, "qualname", "") else ()
    return found


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """Yield the parameters of a function that have a default, each with it."""
    named = [*arguments.posonlyargs, *arguments.args]
    yield from ((each.arg, default) for each, default in zip(named[::-1], arguments.defaults[::-1], strict=False))
    yield from (
        (each.arg, default) for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is not None
    )


def _all_read(needs: Iterable[Requirement]) -> list[Requirement]:
    found = list(needs)
    if any(need.kind == "condition" for need in found):
        raise Unread
    return found


def _condition(decorator: Expression) -> str:
    named = dict(decorator.keywords)
    return decorator.arguments[0] if decorator.arguments else named.get("condition", named.get("cond", ""))


def _reason(decorator: Expression, values: Values) -> str:
    """Give the last text among the arguments: the reason of a skip."""
    named = dict(decorator.keywords)
    texts = [named[key] for key in ("reason", "msg") if key in named] or list(decorator.arguments[-1:])
    value = values.of(texts[0]) if texts else None
    return value if isinstance(value, str) else ""
