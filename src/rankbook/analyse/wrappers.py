"""Classes that a decorator for functions has taken: what stands under their names is a function, in which pytest finds no tests.

`@skip_on_error()` above a class, where the decorator returns `run`, a function of its own that calls what it was given.
"""

from __future__ import annotations

import ast

from rankbook.analyse.draft import Draft
from rankbook.analyse.values import dotted, parsed
from rankbook.model import Class, Expression, Function

_WRAPS = "functools.wraps"


def makes_function(draft: Draft, path: str, each: Class) -> Expression | None:
    """Give the decorator that certainly makes a class a function; None when none does.

    Args:
        draft: the tree.
        path: file of the class.
        each: the class.
    """
    return next((written for written in each.decorators if _gives_function(draft, path, written)), None)


def _gives_function(draft: Draft, path: str, written: Expression) -> bool:
    return draft.remember(("gives function", path, written.name, written.text == written.name), lambda: _follow(draft, path, written))


def _follow(draft: Draft, path: str, written: Expression) -> bool:
    node = parsed(written.text)
    maker = node.func if isinstance(node, ast.Call) else node
    if not written.name or maker is None or isinstance(maker, ast.Call) or dotted(maker) != written.name:
        return False
    place = draft.names.only(path, written.name)
    if place is None or not isinstance(place.definition, Function) or not _stays(draft, place.path, place.definition):
        return False
    given = _given(draft, place.path, [place.definition])
    return bool(_given(draft, place.path, given) if maker is not node else given)


def _given(draft: Draft, path: str, functions: list[Function]) -> list[Function]:
    """Give the functions that those of a file return when they are called; none when one of them may return anything else."""
    names = {f"{function.qualname}.{name}" for function in functions for name in function.gives}
    found = [each for each in draft.modules[path].functions if each.qualname in names]
    is_sure = all(function.gives for function in functions) and names == {each.qualname for each in found}
    return found if is_sure and all(_stays(draft, path, each) for each in found) else []


def _stays(draft: Draft, path: str, function: Function) -> bool:
    """Tell whether a function stays what its statements say, whatever its decorators do."""
    return all(draft.names.full(path, written.name) == _WRAPS for written in function.decorators)
