"""Reads decorators and conditions by the tables of `rankbook.requirements`; what they do not tell is kept verbatim."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from rankbook import requirements
from rankbook.analyse.values import Value, Values, parsed, shown
from rankbook.model import Constant, Expression
from rankbook.requirements import Requirement, Rule

_PLACE = re.compile(r"\{(\d)(?:\|(\w+)(?:=([^}]*))?)?\}")
_OPERATORS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", ">="),
    ast.LtE: ("<=", ">"),
    ast.Gt: (">", "<="),
    ast.GtE: (">=", "<"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
"""Each operator, and what it is turned into by `not`."""
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PLATFORMS = {"win32": "Windows", "linux": "Linux", "darwin": "macOS"}
_DEPTH = 4
"""Constants that a condition is followed through."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a requirement is read from."""

    text: str
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class _Reading:
    """How a condition is read."""

    values: Values
    """Reads constants in the file of the condition."""
    evidence: Evidence
    depth: int = _DEPTH
    """Constants still to follow."""


class Unread(Exception):  # noqa: N818 - no failure: the caller keeps the text
    """A condition that the tables do not tell."""


def of_decorator(decorator: Expression, values: Values) -> Iterator[Requirement]:
    """Read what a decorator or a mark asks for.

    Args:
        decorator: as written.
        values: reads its arguments in its file.
    """
    evidence = Evidence(decorator.text, values.path, decorator.line)
    name = values.names.full(values.path, decorator.name)
    condition = requirements.find(requirements.CONDITIONS, name)
    rule = requirements.find(requirements.NAMES, name)
    alias = None if condition or rule else _aliased(decorator, values)
    if condition is not None:
        yield from of_condition(_condition(decorator), values, evidence, wanted=requirements.CONDITIONS[condition])
    elif rule is not None:
        yield from _by_rule(requirements.NAMES[rule], decorator, values, evidence)
    elif alias is not None:
        yield from (replace(each, evidence=decorator.text, line=decorator.line, path=values.path) for each in of_decorator(*alias))
    elif requirements.looks_like_requirement(decorator.name):
        yield _verbatim(decorator.text, evidence)


def of_condition(text: str, values: Values, evidence: Evidence, *, wanted: bool) -> tuple[Requirement, ...]:
    """Read what a condition asks for.

    Args:
        text: the condition as written.
        values: reads its constants in its file.
        evidence: where it stands.
        wanted: whether the test needs it to be true.
    """
    node = parsed(text)
    inner = parsed(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
    node = inner or node
    if node is None:
        return (_verbatim(text if wanted else f"not ({text})", evidence),)
    return tuple(_needs(node, _Reading(values, evidence), wanted=wanted))


def _needs(node: ast.expr, reading: _Reading, *, wanted: bool) -> Iterator[Requirement]:
    """Take a condition apart; a part that is not told by the tables stays as it is."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from _needs(node.operand, reading, wanted=not wanted)
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) == wanted:
        for part in node.values:
            yield from _needs(part, reading, wanted=wanted)
    else:
        try:
            yield from list(_single(node, reading, wanted=wanted))
        except Unread:
            yield _verbatim(_negated(node, wanted=wanted), reading.evidence)


def _single(node: ast.expr, reading: _Reading, *, wanted: bool) -> Iterable[Requirement]:
    if isinstance(node, ast.Constant):
        return [] if bool(node.value) == wanted else [_verbatim(reading.evidence.text, reading.evidence)]
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return [_of_comparison(node, reading, wanted=wanted)]
    name = _dotted(node)
    if name:
        return _of_name(node, name, reading, wanted=wanted)
    raise Unread


def _of_name(node: ast.expr, name: str, reading: _Reading, *, wanted: bool) -> Iterable[Requirement]:
    values, evidence = reading.values, reading.evidence
    full = values.names.full(values.path, name)
    key = requirements.find(requirements.NAMES, full)
    if key is not None:
        rule = requirements.NAMES[key]
        needs = rule.needs if wanted else rule.unless
        if not needs:
            raise Unread
        return _filled(replace(rule, needs=needs), expression(node), values, evidence)
    if full.startswith("os.environ.get") or full == "os.getenv":
        return [_of_environment(node, evidence, wanted=wanted)]
    return _of_constant(name, reading, wanted=wanted)


def _of_constant(name: str, reading: _Reading, *, wanted: bool) -> Iterable[Requirement]:
    """Follow a flag to its one assignment; if that says nothing more, the flag itself says it best."""
    values = reading.values
    place = values.names.constant(values.path, name) if reading.depth else None
    if place is None or not isinstance(place.definition, Constant):
        raise Unread
    node = parsed(place.definition.value)
    if node is None or isinstance(node, ast.Constant):
        raise Unread
    found = list(_needs(node, replace(reading, values=values.in_file(place.path), depth=reading.depth - 1), wanted=wanted))
    if any(each.kind == "condition" for each in found):
        raise Unread
    return found


def _of_comparison(node: ast.Compare, reading: _Reading, *, wanted: bool) -> Requirement:
    values, evidence = reading.values, reading.evidence
    left, right = node.left, node.comparators[0]
    operator = _OPERATORS[type(node.ops[0])][0 if wanted else 1]
    if isinstance(left, (ast.Constant, ast.Tuple)):
        left, right, operator = right, left, _MIRRORED.get(operator, operator)
    counted = _known_count(left, values)
    if counted:
        return _counted(requirements.COUNTS[counted], operator, values.of_node(right, _DEPTH), evidence)
    return _of_identity(ast.unparse(left), operator, values.of_node(right, _DEPTH), reading)


def _of_identity(name: str, operator: str, value: Value | None, reading: _Reading) -> Requirement:
    values, evidence = reading.values, reading.evidence
    full = values.names.full(values.path, name)
    if full == "sys.platform" and operator in ("==", "!=") and isinstance(value, str):
        system = _PLATFORMS.get(value, value)
        return _made("platform", system if operator == "==" else f"not {system}", evidence)
    if full == "torch.version.hip" and operator in ("is", "is not"):
        return _made("platform", "not ROCm" if operator == "is" else "ROCm", evidence)
    raise Unread


def _known_count(node: ast.expr, values: Values) -> str | None:
    name = _dotted(node)
    return requirements.find(requirements.COUNTS, values.names.full(values.path, name)) if name else None


def _counted(row: tuple[str, str], operator: str, value: Value | None, evidence: Evidence) -> Requirement:
    kind, label = row
    if kind == "gpus" and isinstance(value, int) and operator in (">=", ">", "=="):
        return _made(kind, str(value + (operator == ">")), evidence)
    text = None if value is None else shown(value)
    if text is None or kind == "gpus":
        raise Unread
    return _made(kind, f"{label} {operator} {text}".strip(), evidence)


def _of_environment(node: ast.expr, evidence: Evidence, *, wanted: bool) -> Requirement:
    if not (isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.args[0], ast.Constant)):
        raise Unread
    return _made("environment", f"{node.args[0].value!s} {'set' if wanted else 'not set'}", evidence)


def _by_rule(rule: Rule, call: Expression, values: Values, evidence: Evidence) -> Iterable[Requirement]:
    try:
        return list(_filled(rule, call, values, evidence))
    except Unread:
        return [_verbatim(call.text, evidence)]


def _filled(rule: Rule, call: Expression, values: Values, evidence: Evidence) -> Iterator[Requirement]:
    """Put the arguments of a call into the values of its rule."""
    if rule.when is not None and _fill(rule.when[0], call, values) != rule.when[1]:
        return
    for kind, template in rule.needs:
        value = _fill(template, call, values)
        if kind == "gpus" and not value.isdecimal():
            raise Unread
        if value or not template:
            yield _made(kind, value, evidence)


def _fill(template: str, call: Expression, values: Values) -> str:
    match = _PLACE.search(template)
    if match is None:
        return template
    text = _argument(call, int(match[1]), match[2])
    if text is None and match[3] is not None:
        return template[: match.start()] + match[3] + template[match.end() :]
    value = None if text is None else values.of(text)
    written = None if value is None else shown(value)
    if written is None:
        raise Unread
    return template[: match.start()] + written + template[match.end() :]


def _argument(call: Expression, index: int, keyword: str | None) -> str | None:
    if index < len(call.arguments):
        return call.arguments[index]
    return next((value for name, value in call.keywords if name == keyword), None)


def _condition(decorator: Expression) -> str:
    named = dict(decorator.keywords)
    return decorator.arguments[0] if decorator.arguments else named.get("condition", named.get("cond", ""))


def _aliased(decorator: Expression, values: Values) -> tuple[Expression, Values] | None:
    """Follow `needs_two = unittest.skipIf(...)` to the call that it stands for."""
    place = values.names.constant(values.path, decorator.name) if decorator.text == decorator.name else None
    if place is None or not isinstance(place.definition, Constant):
        return None
    node = parsed(place.definition.value)
    return (expression(node, place.definition.line), values.in_file(place.path)) if isinstance(node, ast.Call) else None


def expression(node: ast.expr, line: int = 0) -> Expression:
    """Give a node of a condition or of a mark as an expression with its arguments."""
    call = node if isinstance(node, ast.Call) else None
    return Expression(
        text=ast.unparse(node),
        name=_dotted(node),
        line=line,
        arguments=tuple(ast.unparse(argument) for argument in call.args) if call else (),
        keywords=tuple((keyword.arg or "**", ast.unparse(keyword.value)) for keyword in call.keywords) if call else (),
    )


def _dotted(node: ast.expr) -> str:
    """Give the dotted name of `a.b`, `a.b()`, and of `a().b()` without the first call's arguments."""
    parts: list[str] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        else:
            return ""
    return ".".join([node.id, *reversed(parts)])


def _negated(node: ast.expr, *, wanted: bool) -> str:
    """Write what the test needs of a condition that stays as it is."""
    if wanted:
        return ast.unparse(node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        return f"{left} {_OPERATORS[type(node.ops[0])][1]} {right}"
    simple = isinstance(node, (ast.Name, ast.Attribute, ast.Call))
    return f"not {ast.unparse(node)}" if simple else f"not ({ast.unparse(node)})"


def _verbatim(text: str, evidence: Evidence) -> Requirement:
    return _made("condition", text, evidence)


def _made(kind: str, value: str, evidence: Evidence) -> Requirement:
    return Requirement(kind, value, evidence.text, evidence.path, evidence.line)
