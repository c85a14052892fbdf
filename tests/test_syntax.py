"""What is found in a syntax tree without looking into all of it."""

from __future__ import annotations

import ast
from pathlib import Path

from rankbook.syntax import set_inside, syntax_tree

ODD = """
import unused


@decorated(
    (first := 1)
)
@plain
async def function(argument=(second := 2), *, other: (third := int) = 3) -> (fourth := int):
    if (fifth :=
            0):
        pass
    return [sixth := inner for inner in f'''
{(seventh := 1)}
{f"{(eighth := 2)!r:{(ninth := 3)}}"}
'''], (tenth
    # a comment
    := 4)


def passed_over():
    text = "nothing := here"  # nor := here
    return f"{text:=5}"


class Holder((eleventh := object), metaclass=(twelfth := type)):
    attribute = lambda self: (thirteenth := self)


match (fourteenth := 1):
    case 1 if (fifteenth := 2): pass
try: pass
except (sixteenth := ValueError): pass
with (seventeenth := open) as handle: (eighteenth := handle, "\\N{DIGIT ONE}\f"); ünïcode = (nineteenth := 1)
"""


def everywhere(tree):
    return sorted(node.target.id for node in ast.walk(tree) if isinstance(node, ast.NamedExpr))


def test_names_that_are_set_inside_of_expressions():
    tree = syntax_tree(ODD)
    assert sorted(set_inside(tree, ODD)) == everywhere(tree)
    assert len(everywhere(tree)) == 19


def test_names_that_the_standard_library_sets_inside_of_expressions():
    """Those that a walk over the whole tree finds, in each file that may set one."""
    files = sorted(Path(ast.__file__).parent.glob("*.py"))
    files += sorted((Path(ast.__file__).parent / "test").glob("test_named*.py"))
    found = 0
    for path in files:
        text = path.read_text(encoding="utf-8", errors="replace")
        if ":=" in text:
            tree = syntax_tree(text)
            assert sorted(set_inside(tree, text)) == everywhere(tree), path
            found += len(everywhere(tree))
    assert found
