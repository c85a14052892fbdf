"""Regular expressions mean the same in every Python that is supported: possessive repeats of groups did not until 3.11.5."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from rankbook.patterns import compiled, possessive_groups, without_possessive_groups


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
    caller = sys._getframe(3).f_globals["__name__"] if isinstance(expression, str | bytes) else ""
    if caller.startswith("rankbook.") and caller != "rankbook.patterns":
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


def test_no_other_module_compiles_possessive_groups():
    """Neither when it is imported, nor, as the tables of tokens, when it is asked for."""
    told = subprocess.run([sys.executable, "-c", COMPILED], check=True, capture_output=True, text=True).stdout
    tables, by_others = json.loads(told)
    assert tables > 10
    assert len(by_others) > 100
    assert [expression for expression, flags in by_others.items() if possessive_groups(expression, flags)] == []


@pytest.mark.parametrize(
    ("expression", "text", "end"),
    [
        ("(?:ab?c)++", "aca", 2),
        ("(?:ab?c)*+", "aca", 2),
        ("(?:ab?c)?+", "a", 0),
        ("(?:ab?c){1,3}+", "aca", 2),
        ("(?:(?!C).)++", "ABC", 2),
        (r"(?>[^*]++|\*(?!/))*+\*/", "a*b*/", 5),
        (r"(?:a(?:b|cd?)++e)*+", "abcdeabcx", 5),
    ],
)
def test_possessive_groups_match_as_they_should(expression, text, end):
    """What other versions of CPython match wrongly, both ways to compile it match as the documentation says."""
    for made in (compiled(expression), without_possessive_groups(expression)):
        assert made.match(text).end() == end
    assert compiled(expression).groups == without_possessive_groups(expression).groups == re.compile(expression).groups
