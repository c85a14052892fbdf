"""What decorates a test, under the names by which people know it: `skip_if_lt_x_gpu`; what it asks for is read in `decorators`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rankbook.analyse.canonical import meaning, public_name
from rankbook.analyse.draft import Ancestor, Draft
from rankbook.analyse.evaluate import Frame
from rankbook.analyse.variants import decorator
from rankbook.dotted import INIT
from rankbook.model import Expression, Function

_PYTEST = "pytest."
_OF_PYTHON = frozenset({"classmethod", "staticmethod", "property"})
_NONE: frozenset[str] = frozenset()


def names_of(draft: Draft, path: str, function: Function, lineage: Iterable[Ancestor] = ()) -> frozenset[str]:
    """Give the full names of what decorates a test, and the classes that it is a method of.

    Args:
        draft: the tree.
        path: file of the function.
        function: the function.
        lineage: classes from the test's own to the farthest.
    """
    around = (_of_class(draft, each) for each in lineage if each.facts is not None and each.facts.decorators)
    question = ("decorators", path, *function.key)
    own = draft.remember(question, lambda: _named(draft, path, function.decorators)) if function.decorators else _NONE
    return own.union(*around)


def _of_class(draft: Draft, each: Ancestor) -> frozenset[str]:
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
