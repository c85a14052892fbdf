"""Regular expressions that mean the same in every Python that is supported.

Until Python 3.11.5 a possessive repeat of a group went wrong where the group failed behind its first characters, or behind a look ahead:
`(?:ab?c)*+` took the `a` that follows it (issues 100061 and 106052 of CPython). Such a repeat is then compiled as what it is short for, a
greedy one in an atomic group. That takes room for each time that the group is repeated, so it is done in those versions alone.
"""

from __future__ import annotations

import re
import sys
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

_IS_WRONG = sys.version_info < (3, 11, 5)
_UNITS = frozenset({_constants.ANY, _constants.IN, _constants.LITERAL, _constants.NOT_LITERAL})
"""What matches one character: a possessive repeat of that was always right."""


def compiled(expression: str, flags: int = 0) -> re.Pattern[str]:
    """Compile an expression that has a possessive repeat of a group.

    Args:
        expression: the expression.
        flags: as `re.compile` takes them.
    """
    return without_possessive_groups(expression, flags) if _IS_WRONG else re.compile(expression, flags)


def without_possessive_groups(expression: str, flags: int = 0) -> re.Pattern[str]:
    """Compile an expression with its possessive repeats of groups as greedy ones in atomic groups.

    Args:
        expression: the expression.
        flags: as `re.compile` takes them.
    """
    tree = _parser.parse(expression, flags)
    _replace(tree)
    made: re.Pattern[str] = _compiler.compile(tree, flags)
    return made


def possessive_groups(expression: str, flags: int = 0) -> int:
    """Count the possessive repeats of groups in an expression.

    Args:
        expression: the expression.
        flags: as `re.compile` takes them.
    """
    return _replace(_parser.parse(expression, flags))


def _replace(part: Any) -> int:
    """Replace the possessive repeats of groups in a part of an expression; gives how many there were."""
    if not isinstance(part, _parser.SubPattern):
        return sum(map(_replace, part)) if isinstance(part, tuple | list) else 0
    count = 0
    for place, (code, value) in enumerate(part.data):
        count += _replace(value)
        if code is _constants.POSSESSIVE_REPEAT and not _is_unit(value[2]):
            count += 1
            part.data[place] = (_constants.ATOMIC_GROUP, _parser.SubPattern(part.state, [(_constants.MAX_REPEAT, value)]))
    return count


def _is_unit(repeated: Any) -> bool:
    return len(repeated) == 1 and repeated[0][0] in _UNITS
