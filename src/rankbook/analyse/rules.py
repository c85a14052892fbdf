"""Puts the arguments of a call into the row that the vocabulary has for its name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from msgspec import Struct

from rankbook.analyse.values import Value, Values, dotted, shown
from rankbook.model import Expression
from rankbook.requirements import Needs, Requirement, Rule

_PLACE = re.compile(r"\{(\d)(?:\|(\w+)(?:=([^}]*))?)?\}")
_GPUS = re.compile(r"\d{1,6}(?: or none)?|(?:==|<=|>=) \d{1,6}|\d{1,6} to \d{1,6}|[A-Z][A-Z0-9_]*")
_SPECIFIED = re.compile(r"^((?:not )?[\w.-]+) ?(<=|>=|==|!=|<|>) ?")
"""`numpy>=2` as it stands in a list of requirements."""
_LONGEST = 240
"""Characters of a text that is shown."""
_FALSE = (False, None, 0, "")


class Evidence(Struct, frozen=True):
    """Where a requirement is read from."""

    text: str
    path: str
    line: int
    otherwise: str = "skipped"
    """What becomes of the test where the requirement is not met, as in `Requirement`."""
    reason: str = ""
    """Why a test is skipped, where the decorator says so."""


class Unread(Exception):  # noqa: N818 - no failure: the caller keeps the text
    """What the tables do not tell."""


def made(kind: str, value: str, evidence: Evidence, otherwise: str | None = None) -> Requirement:
    """Make a requirement.

    Args:
        kind: a word of `KINDS`.
        value: its value.
        evidence: where it is read from.
        otherwise: what becomes of the test where it is not met, when the evidence does not say it.
    """
    outcome = evidence.otherwise if otherwise is None else otherwise
    if kind == "package":
        value = _SPECIFIED.sub(r"\1 \2 ", value)
    return Requirement(kind, short(value), short(evidence.text), evidence.path, evidence.line, outcome)


def short(text: str) -> str:
    """Cut a text that is too long to be shown."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 2].rstrip() + " …"


def filled(rule: Rule, call: Expression, values: Values, evidence: Evidence) -> Iterator[Requirement]:
    """Put the arguments of a call into the values of its rule.

    Args:
        rule: the row.
        call: the decorator, mark or call.
        values: reads its arguments.
        evidence: where it stands.

    Raises:
        Unread: an argument cannot be read.
    """
    if rule.when is not None and not _applies(rule.when, call, values):
        return
    otherwise = evidence.otherwise if rule.otherwise == "skipped" or not evidence.otherwise else rule.otherwise
    for kind, template in _asked(rule, call, values):
        value = _fill(template, call, values)
        if kind == "gpus" and not _GPUS.fullmatch(value):
            raise Unread
        if value or not template or kind == "disabled":
            yield made(kind, value, evidence, otherwise)


def _applies(when: tuple[str, str], call: Expression, values: Values) -> bool:
    return _fill(when[0], call, values) == when[1]


def _asked(rule: Rule, call: Expression, values: Values) -> Needs:
    """Give the needs of the keywords that are given and not false; without any, the rule's own."""
    given = dict(call.keywords)
    found: list[tuple[str, str]] = []
    for name, needs in rule.keywords:
        if name not in given:
            continue
        value = values.of(given[name])
        text = None if value is None else shown(value)
        if given[name] != "None" and text is None:
            raise Unread
        if value not in _FALSE:
            found += [(kind, template.replace("{}", text or "")) for kind, template in needs]
    return tuple(found) or rule.needs


def _fill(template: str, call: Expression, values: Values) -> str:
    return _PLACE.sub(lambda match: _filling(match, call, values), template)


def _filling(match: re.Match[str], call: Expression, values: Values) -> str:
    """Write the argument of one place of a value."""
    text = _argument(call, int(match[1]), match[2])
    if text is None and match[3] is not None:
        return match[3]
    written = None if text is None else _written(text, values)
    if written is None:
        raise Unread
    return written


def _written(text: str, values: Values) -> str | None:
    value: Value | None = values.of(text)
    if value is not None:
        return shown(value)
    variable = values.variable(text)
    return None if variable is None else variable[0]


def _argument(call: Expression, index: int, keyword: str | None) -> str | None:
    if index < len(call.arguments):
        return call.arguments[index]
    return next((value for name, value in call.keywords if name == keyword), None)


def expression(node: ast.expr, line: int = 0) -> Expression:
    """Give a node of a condition or of a mark as an expression with its arguments."""
    call = node if isinstance(node, ast.Call) else None
    return Expression(
        text=ast.unparse(node),
        name=dotted(node),
        line=line,
        arguments=tuple(ast.unparse(argument) for argument in call.args) if call else (),
        keywords=tuple((keyword.arg or "**", ast.unparse(keyword.value)) for keyword in call.keywords) if call else (),
    )
