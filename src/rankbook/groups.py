"""Groups of names by what they have in common: of many thousands most hold one name, and take no more room than that."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Set as AbstractSet

from rankbook.sheaf import Sheaf

_SMALL = 8
"""Names up to which a tuple is as quick as a set, in a quarter of the room."""
Group = str | tuple[str, ...] | set[str]
"""As it is held: one name, a few, or many."""


class Groups:
    """Sets of names, by a key; what is empty is not there."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held: Sheaf[Group] = Sheaf()
        """The groups, in drawers."""

    def get(self, key: str) -> Collection[str]:
        """Give a group, each name once; empty when there is none."""
        held = self.held.get(key) or ()
        return (held,) if isinstance(held, str) else held

    def add(self, key: str, name: str) -> None:
        """Put a name into a group."""
        held = self.held.get(key)
        if held is None:
            self.held.put(key, name)
        elif isinstance(held, set):
            held.add(name)
            self.held.put(key, held)
        elif name not in (known := self.get(key)):
            self.held.put(key, (*known, name) if len(known) < _SMALL else {*known, name})

    def exchange(self, name: str, before: AbstractSet[str], after: AbstractSet[str]) -> None:
        """Take a name out of the groups that it has left, and put it into those that it has joined.

        Args:
            name: the name.
            before: keys of the groups that it was in.
            after: keys of those that it is in now.
        """
        for key in before - after:
            self.discard(key, name)
        for key in after - before:
            self.add(key, name)

    def discard(self, key: str, name: str) -> None:
        """Take a name out of a group, if it is there."""
        held = self.held.get(key)
        if isinstance(held, set):
            held.discard(name)
            self.held.put(key, held)
        elif held is not None:
            left = tuple(each for each in self.get(key) if each != name)
            self.held.put(key, left[0] if len(left) == 1 else left)
