"""Regular expressions mean the same in every Python that is supported.

Until 3.11.5 a possessive repeat of a group went wrong where the group failed behind its first characters (`(?:ab?c)*+`, issues 100061
and 106052 of CPython), and until 3.12.8 one could fail with a SystemError (101955). An atomic group, `(?>(?:ab?c)*)`, means the same and
is right in all of them; so are possessive repeats of one character.
"""

from __future__ import annotations

import json
import subprocess
import sys
from re import _constants, _parser

import pytest

UNITS = {_constants.ANY, _constants.IN, _constants.LITERAL, _constants.NOT_LITERAL}


def possessive_groups(expression: str, flags: int = 0) -> int:
    """Count the possessive repeats of more than one character."""

    def count(part: object) -> int:
        if isinstance(part, _parser.SubPattern):
            return sum(map(count, part))
        if not isinstance(part, tuple | list):
            return 0
        if len(part) == 2 and part[0] is _constants.POSSESSIVE_REPEAT:
            _, _, repeated = part[1]
            return (len(repeated) != 1 or repeated[0][0] not in UNITS) + count(repeated)
        return sum(map(count, part))

    return count(_parser.parse(expression, flags))


@pytest.mark.parametrize(
    ("expression", "number"),
    [
        (r"\d*+[ab]++.?+x{2,}+", 0),
        (r"(?>(?:ab?c)*)", 0),
        ("(?:ab?c)*+", 1),
        ("(?>a|(?:b(?=c(?:d|ee)?+))*)", 1),
        (r"(a)(?:\1)++|(?:b+)*+", 2),
    ],
)
def test_possessive_groups_are_found(expression, number):
    assert possessive_groups(expression) == number


COMPILED = """
import importlib, json, pkgutil, sys
from re import _compiler
import rankbook
compiled, plain = {}, _compiler.compile
def noting(expression, flags=0):
    if sys._getframe(3).f_globals["__name__"].startswith("rankbook."):
        compiled[expression.decode("latin-1") if isinstance(expression, bytes) else expression] = int(flags)
    return plain(expression, flags)
_compiler.compile = noting
for module in pkgutil.walk_packages(rankbook.__path__, "rankbook."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from rankbook.site.tokens import TABLES
tables = list({id(table): table for table in TABLES.values()}.values())
for table in tables:
    table.pattern, table.ascii_pattern
print(json.dumps([len(tables), compiled]))
"""


def test_no_group_is_possessive():
    """Of what all modules compile when they are imported, and of the tables of tokens, which are compiled when they are asked for."""
    told = subprocess.run([sys.executable, "-c", COMPILED], check=True, capture_output=True, text=True).stdout
    tables, compiled = json.loads(told)
    assert len(compiled) > 2 * tables + 100
    assert [expression for expression, flags in compiled.items() if possessive_groups(expression, flags)] == []
