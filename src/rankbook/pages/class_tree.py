"""The tree of a file's classes: the bases above them, and the subclasses that other files of the tree hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from rankbook.model import Class, Descent, Expression, Module

_DEEPEST = 6
"""Levels that a tree shows."""
_MOST_HEIRS = 8
"""Subclasses in other files that it names of one class."""
_MOST = 300
"""Classes of a file up to which its tree is drawn."""


class Base(NamedTuple):
    """A base class."""

    name: str
    """Its qualified name; where no other file of the tree holds it, what the source says."""
    path: str = ""
    """The other file of the tree that holds it; empty when none does."""


class Branch(Struct, frozen=True):
    """A class, with the classes below it."""

    name: str
    """Qualified name; of a base that no file of the tree holds, what the source says."""
    path: str = ""
    """File of the tree that holds it; empty when none does."""
    line: int = 0
    """Where it is defined there; 0 when that is not told."""
    others: tuple[Base, ...] = ()
    """Its bases besides the one above it."""
    above: tuple[Base, ...] = ()
    """Of a base in another file: what the class below it derives from through it, nearest first."""
    below: tuple[Branch, ...] = ()
    more: int = 0
    """Number of subclasses in other files that are not named."""


def class_tree(module: Module, descents: Iterable[Descent], heirs: Iterable[tuple[str, Descent]]) -> tuple[Branch, ...]:
    """Draw the tree of a file's classes, as far as it tells more than each class by itself.

    Args:
        module: the file.
        descents: its classes that derive from classes of other files.
        heirs: files whose classes derive from its own, each with the class and its ancestor.

    Returns:
        What stands at the tops: a base of another file, or a class that has others below it.
    """
    if not module.classes or len(module.classes) > _MOST:
        return ()
    grown = _Growing(module, descents, heirs)
    tops = [grown.under(base, places) for base, places in grown.bases.items()]
    tops += [grown.branch(place, 1) for place in grown.alone]
    told = (top for top in tops if top.below or top.more)
    return tuple(sorted(told, key=lambda top: min((top.line, *(branch.line for branch in top.below if branch.path == module.source.path)))))


class _Growing:
    """What is known of a tree while it is drawn.

    Args:
        module: the file.
        descents: its classes that derive from classes of other files.
        heirs: files whose classes derive from its own.
    """

    def __init__(self, module: Module, descents: Iterable[Descent], heirs: Iterable[tuple[str, Descent]]) -> None:
        self._path = module.source.path
        self._classes = module.classes
        self._descents: dict[tuple[str, int], list[Descent]] = {}
        for descent in sorted(descents, key=lambda each: each.distance):
            self._descents.setdefault((descent.name, descent.line), []).append(descent)
        self._heirs: dict[str, list[tuple[str, Descent]]] = {}
        nearest: dict[tuple[str, str, int], Descent] = {}
        for path, descent in sorted(heirs, key=lambda each: (each[1].distance, each[0], each[1].line)):
            if nearest.setdefault((path, descent.name, descent.line), descent) is descent:
                self._heirs.setdefault(descent.ancestor, []).append((path, descent))
        self._children: dict[int, list[int]] = {}
        self.bases: dict[Base, list[int]] = {}
        """Bases that the file does not hold, each with the places of the classes that derive from it first."""
        self.alone: list[int] = []
        """Places of the classes without a base."""
        places = {each.qualname: place for place, each in reversed([*enumerate(module.classes)])}
        for place, each in enumerate(module.classes):
            self._plant(place, each, places)

    def _plant(self, place: int, each: Class, places: dict[str, int]) -> None:
        if not each.bases:
            self.alone.append(place)
            return
        base = self._base(each, each.bases[0], is_first=True)
        own = None if base.path else next((places[name] for name in _scoped(each.qualname, each.bases[0]) if name in places), None)
        if own is None or own == place:
            self.bases.setdefault(base, []).append(place)
        else:
            self._children.setdefault(own, []).append(place)

    def under(self, base: Base, places: Sequence[int]) -> Branch:
        """Draw what stands below a base that the file does not hold; below one that no file holds, only what has something below it."""
        below = tuple(branch for place in places if (branch := self.branch(place, 2)).below or branch.others or base.path)
        if not base.path:
            return Branch(base.name, below=tuple(branch for branch in below if branch.below or any(other.path for other in branch.others)))
        first = self._classes[places[0]]
        direct = {base, *self._others(first)}
        above = (Base(descent.ancestor, descent.path) for descent in self._of(first))
        return Branch(base.name, base.path, above=tuple(each for each in above if each not in direct), below=below)

    def branch(self, place: int, depth: int) -> Branch:
        """Draw a class of the file with what stands below it."""
        each = self._classes[place]
        heirs = self._heirs.get(each.qualname, [])
        own = tuple(self.branch(child, depth + 1) for child in self._children.get(place, ())) if depth < _DEEPEST else ()
        foreign = tuple(Branch(descent.name, path, descent.line) for path, descent in heirs[:_MOST_HEIRS])
        return Branch(each.qualname, self._path, each.line, self._others(each), (), own + foreign, len(heirs[_MOST_HEIRS:]))

    def _of(self, each: Class) -> list[Descent]:
        return self._descents.get((each.qualname, each.line), [])

    def _others(self, each: Class) -> tuple[Base, ...]:
        return tuple(self._base(each, base, is_first=False) for base in each.bases[1:])

    def _base(self, each: Class, base: Expression, *, is_first: bool) -> Base:
        """Find a base among the classes of other files: the first comes first in the order in which Python looks attributes up."""
        name = base.name.rpartition(".")[2]
        for descent in self._of(each):
            if descent.distance == 1 if is_first else name and descent.ancestor.rpartition(".")[2] == name:
                return Base(descent.ancestor, descent.path)
        return Base(base.text)


def _scoped(qualname: str, base: Expression) -> list[str]:
    """Give the names that a base may have in its file, of the scopes around the class, the nearest first."""
    if not base.name or not (base.text == base.name or base.text.startswith(f"{base.name}[")):
        return []
    scopes = qualname.split(".")[:-1]
    return [".".join((*scopes[:count], base.name)) for count in range(len(scopes), -1, -1)]
