"""Which pytest marks a test has, as `pytest -m` selects by them: its own, those of its case, of its classes and of its module."""

from __future__ import annotations

from collections.abc import Iterable

from rankbook.analyse import pytestmarks
from rankbook.analyse.draft import Ancestor, Draft
from rankbook.analyse.evaluate import Frame
from rankbook.analyse.rules import expression
from rankbook.analyse.values import parsed
from rankbook.analyse.variants import decorator
from rankbook.model import Expression, Function

_PREFIX = "pytest.mark."
_NO_LABELS = frozenset({"parametrize", "usefixtures", "filterwarnings"})
"""Marks that say how a test runs rather than what it is."""
_NONE: frozenset[str] = frozenset()

Marks = frozenset[str]
"""Names, without `pytest.mark.`."""


def of_function(draft: Draft, path: str, function: Function) -> Marks:
    """Give the marks that decorate a function.

    Args:
        draft: the tree.
        path: file of the function.
        function: the function.
    """
    if not function.decorators:
        return _NONE
    question = ("marks", path, *function.key)
    return draft.remember(question, lambda: _meant(draft, path, function.decorators))


def of_case(draft: Draft, path: str, line: int, written: Iterable[str]) -> Marks:
    """Give the marks of one set of parameters.

    Args:
        draft: the tree.
        path: file of the function.
        line: that of the function.
        written: what is said of the set, as written.
    """
    nodes = [node for each in written if (node := parsed(each)) is not None]
    return _meant(draft, path, [expression(node, line) for node in nodes]) if nodes else _NONE


def around(draft: Draft, path: str, lineages: Iterable[Iterable[Ancestor]] = ()) -> Marks:
    """Give the marks of a module, and of classes of it with all that they derive from.

    Args:
        draft: the tree.
        path: file in which the tests are collected.
        lineages: classes from the test's own to the farthest; then those of each class around it.
    """
    classes = [_of_class(draft, each) for lineage in lineages for each in lineage if each.facts is not None]
    return draft.remember(("module marks", path), lambda: _of_module(draft, path)).union(*classes)


def _of_class(draft: Draft, each: Ancestor) -> Marks:
    written = each.facts.decorators if each.facts else ()
    by_name = _by_name(draft, pytestmarks.that_a_class_may_set(draft, each.path, each.facts)) if each.facts else _NONE
    return _written(draft, each.path).get(each.name, _NONE) | by_name | (_meant(draft, each.path, written) if written else _NONE)


def _of_module(draft: Draft, path: str) -> Marks:
    return _written(draft, path).get("", _NONE) | _by_name(draft, pytestmarks.of_module(draft, path))


def _by_name(draft: Draft, found: Iterable[pytestmarks.Mark]) -> Marks:
    return _NONE.union(*(_meant(draft, path, [mark]) for path, mark in found))


def _written(draft: Draft, path: str) -> dict[str, Marks]:
    """Give the marks of a file that are written as such, by what they mark."""

    def found() -> dict[str, Marks]:
        by_scope: dict[str, set[str]] = {}
        for keyword in draft.modules[path].keywords:
            if keyword.kind == "mark":
                by_scope.setdefault(keyword.scope, set()).add(keyword.name)
        return {scope: _labels(names) for scope, names in by_scope.items()}

    return draft.remember(("written marks", path), found)


def _meant(draft: Draft, path: str, written: Iterable[Expression]) -> Marks:
    return _labels(decorator(draft, Frame(path, each.line), each).name for each in written if each.name)


def _labels(names: Iterable[str]) -> Marks:
    return frozenset(name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX)) - _NO_LABELS
