"""Which pytest marks a test has, as `pytest -m` selects by them: its own, those of its case, of its classes and of its module.

And which decorators, by which people know what it needs: `skip_if_lt_x_gpu`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rankbook.analyse import pytestmarks
from rankbook.analyse.canonical import meaning, public_name
from rankbook.analyse.draft import Ancestor, Draft
from rankbook.analyse.evaluate import Frame
from rankbook.analyse.rules import expression
from rankbook.analyse.values import parsed
from rankbook.analyse.variants import decorator
from rankbook.dotted import INIT
from rankbook.model import Expression, Function

_PYTEST = "pytest."
_PREFIX = f"{_PYTEST}mark."
_NO_LABELS = frozenset({"parametrize", "usefixtures", "filterwarnings"})
"""Marks that say how a test runs rather than what it is."""
_OF_PYTHON = frozenset({"classmethod", "staticmethod", "property"})
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


def decorators_of(draft: Draft, path: str, function: Function, lineage: Iterable[Ancestor] = ()) -> frozenset[str]:
    """Give the full names of what decorates a test, and the classes that it is a method of.

    Args:
        draft: the tree.
        path: file of the function.
        function: the function.
        lineage: classes from the test's own to the farthest.
    """
    around = (_decorators_of_class(draft, each) for each in lineage if each.facts is not None and each.facts.decorators)
    question = ("decorators", path, *function.key)
    own = draft.remember(question, lambda: _named(draft, path, function.decorators)) if function.decorators else _NONE
    return own.union(*around)


def _decorators_of_class(draft: Draft, each: Ancestor) -> frozenset[str]:
    written = each.facts.decorators if each.facts else ()
    question = ("decorators of class", each.path, each.name, each.facts.line if each.facts else 0)
    return draft.remember(question, lambda: _named(draft, each.path, written))


def _named(draft: Draft, path: str, written: Iterable[Expression]) -> frozenset[str]:
    """Give the full names of decorators, without marks, under whatever name, and without what pytest and Python themselves have."""
    named = [each for each in written if each.name and not decorator(draft, Frame(path, each.line), each).name.startswith(_PYTEST)]
    return frozenset(_full(draft, path, each.name) for each in named if each.name not in _OF_PYTHON)


def _full(draft: Draft, path: str, name: str) -> str:
    """Write a name as the index of APIs does, one of the file itself as others import it, and one that nobody defines as it stands."""
    if name.partition(".")[0] in draft.names.bindings(path):
        return public_name(draft, path, draft.names.full(path, name))
    own = f".{name}" if Path(path).name == INIT else f".{Path(path).stem}.{name}"
    return meaning(draft, path, name) or (public_name(draft, path, own) if draft.names.find(path, name) else name)


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
