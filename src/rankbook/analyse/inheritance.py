"""The line of inheritance of each class, across files."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence

from rankbook.analyse.draft import Ancestor, Draft
from rankbook.analyse.names import Place
from rankbook.analyse.values import dotted, parsed
from rankbook.model import PACKAGES, Class, Constant, Descent, Expression
from rankbook.standard_library import STANDARD_LIBRARY

_Key = tuple[str, str]
_MAKERS: dict[str, tuple[int, tuple[str, ...]]] = {"with_metaclass": (1, ()), "CoopTestCase": (0, ("TestCase",))}
"""Functions that make a base of classes: the first argument that is one, and the classes that they add from beside themselves."""
_NAMES = 4
"""Names of a base that are followed from one to the next."""
_MOST = 64
"""Classes of a line; the farther ones count only where no file holds them, as `unittest.TestCase`."""
_DEPTH = 32
"""Classes above one another that are gone up at once."""


class _TooDeepError(Exception):
    """More classes stand above one another than are gone up at once."""


def lineage_of(draft: Draft, path: str, each: Class) -> tuple[Ancestor, ...]:
    """Put the ancestors of a class into the order in which Python looks attributes up, the class itself first."""
    try:
        return _lineage(draft, path, each, ())
    except _TooDeepError:
        return draft.remember(("nearest", path, each.qualname, each.line), lambda: _nearest(draft, path, each))


def cut_short(draft: Draft, path: str) -> list[Class]:
    """Give the classes of a file that have more ancestors than are looked at."""
    return [each for each in draft.modules[path].classes if len(lineage_of(draft, path, each)) >= _MOST]


def joined(draft: Draft, path: str, each: Class, bases: Sequence[Ancestor]) -> tuple[Ancestor, ...]:
    """Give the line of a class that is made when it runs, from its bases themselves."""
    return (Ancestor(each.qualname, path, each), *_merge([_line_of(draft, base, ()) for base in bases]))


def unresolved(draft: Draft, path: str) -> tuple[Expression, ...]:
    """Give the base classes of a file that no known file holds and no table names."""
    return tuple(base for each in draft.modules[path].classes for base in each.bases if _is_unknown(draft, path, each, base))


def descents(draft: Draft, path: str) -> Iterator[Descent]:
    """Tell which classes of a file derive from classes of others of the tree."""
    for each in draft.modules[path].classes:
        for distance, ancestor in enumerate(lineage_of(draft, path, each)[1:], start=1):
            if ancestor.path and ancestor.path != path and not ancestor.path.startswith(PACKAGES):
                yield Descent(each.qualname, each.line, ancestor.name, ancestor.path, distance)


def _lineage(draft: Draft, path: str, each: Class, above: tuple[_Key, ...]) -> tuple[Ancestor, ...]:
    key = (path, each.qualname)
    own = Ancestor(each.qualname, path, each)
    if key in above:  # a class that derives from one of its own name
        return (own,)
    if len(above) == _DEPTH:
        raise _TooDeepError

    def lines() -> tuple[Ancestor, ...]:
        line = (own, *_merge([_line_of(draft, ancestor, (*above, key)) for ancestor in _bases(draft, path, each)]))
        return line[:_MOST] + tuple(ancestor for ancestor in line[_MOST:] if ancestor.facts is None)

    return draft.remember(("lineage", path, each.qualname, each.line), lines)


def _nearest(draft: Draft, path: str, each: Class) -> tuple[Ancestor, ...]:
    """Give the ancestors of a class one generation after the other."""
    found = {(path, each.qualname): Ancestor(each.qualname, path, each)}
    waiting = list(found.values())
    while waiting and len(found) < _MOST:
        bases = [base for one in waiting if one.facts is not None for base in _bases(draft, one.path, one.facts)]
        waiting = [base for base in bases if found.setdefault(_key(base), base) is base]
    return tuple(found.values())


def _line_of(draft: Draft, ancestor: Ancestor, above: tuple[_Key, ...]) -> tuple[Ancestor, ...]:
    return (ancestor,) if ancestor.facts is None else _lineage(draft, ancestor.path, ancestor.facts, above)


def _bases(draft: Draft, path: str, each: Class) -> Iterator[Ancestor]:
    for base in each.bases:
        owner, _, maker = base.name.rpartition(".")
        if base.arguments and maker in _MAKERS:
            first, own = _MAKERS[maker]
            yield from (_resolve(draft, path, each, Expression(name, name, base.line)) for name in base.arguments[first:])
            yield from (Ancestor(f"{owner}.{name}") for name in own)
        else:
            yield _resolve(draft, path, each, base)


def _resolve(draft: Draft, path: str, each: Class, base: Expression) -> Ancestor:
    plain = base.text == base.name or base.text.startswith(f"{base.name}[")
    if not (base.name and plain):
        return Ancestor(base.text)
    for name in _scoped(each.qualname, base.name):
        place = draft.names.find(path, name)
        if place is not None and isinstance(place.definition, Class) and place.definition is not each:
            return Ancestor(place.definition.qualname, place.path, place.definition)
        if place is not None and isinstance(place.definition, Constant) and place.definition.name not in draft.names.bindings(place.path):
            return _bound(draft, place, each)  # what is imported, too, is set to something else where it is of no use
    return Ancestor(draft.names.full(path, base.name))


def _bound(draft: Draft, place: Place, each: Class) -> Ancestor:
    """Give the class to which a name is set: of several, the one that is left when no condition holds."""
    for _ in range(_NAMES):
        assert isinstance(place.definition, Constant)
        last = [place.definition, *draft.names.assigned(place.path, place.definition.name)][-1]
        node = parsed(last.value)
        while isinstance(node, ast.IfExp):
            node = node.orelse
        name = dotted(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        found = draft.names.find(place.path, name) if name else None
        if found is not None and isinstance(found.definition, Class) and found.definition is not each:
            return Ancestor(found.definition.qualname, found.path, found.definition)
        if found is None or not isinstance(found.definition, Constant):
            return Ancestor(draft.names.full(place.path, name or place.definition.name))
        place = found
    return Ancestor(place.definition.name)


def _scoped(qualname: str, name: str) -> Iterator[str]:
    """Give the name as it may be meant: in the scopes around the class, the nearest first."""
    outer = qualname.rpartition(".")[0]
    while outer:
        yield f"{outer}.{name}"
        outer = outer.rpartition(".")[0]
    yield name


def _merge(lines: list[tuple[Ancestor, ...]]) -> tuple[Ancestor, ...]:
    """Linearise as Python does (C3); where that has no answer, take depth first."""
    rest = [list(line) for line in [*lines, tuple(line[0] for line in lines)] if line]
    merged: list[Ancestor] = []
    while rest:
        head = next((line[0] for line in rest if not any(_holds(other[1:], line[0]) for other in rest)), None)
        if head is None:
            return tuple({_key(ancestor): ancestor for line in reversed(lines) for ancestor in line}.values())
        merged.append(head)
        rest = [kept for line in rest if (kept := [ancestor for ancestor in line if _key(ancestor) != _key(head)])]
    return tuple(merged)


def _holds(line: Sequence[Ancestor], ancestor: Ancestor) -> bool:
    return any(_key(each) == _key(ancestor) for each in line)


def _key(ancestor: Ancestor) -> _Key:
    return ancestor.path, ancestor.name


def _is_unknown(draft: Draft, path: str, each: Class, base: Expression) -> bool:
    ancestor = _resolve(draft, path, each, base)
    known = ancestor.harness is not None or hasattr(builtins, ancestor.name)
    return ancestor.facts is None and not known and ancestor.name.partition(".")[0] not in STANDARD_LIBRARY
