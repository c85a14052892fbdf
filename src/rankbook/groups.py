"""Groups of names by what they have in common: of many thousands most hold one name, and take no more room than that."""

from __future__ import annotations

from collections.abc import Collection, Iterator

_SMALL = 8
"""Names up to which a tuple is as quick as a set, in a quarter of the room."""


class Groups:
    """Sets of names, by a key; what is empty is not there."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[str, str | tuple[str, ...] | set[str]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def get(self, key: str) -> Collection[str]:
        """Give a group, each name once; empty when there is none."""
        held = self._held.get(key, ())
        return (held,) if isinstance(held, str) else held

    def add(self, key: str, name: str) -> None:
        """Put a name into a group."""
        held = self._held.get(key)
        if held is None:
            self._held[key] = name
        elif isinstance(held, set):
            held.add(name)
        elif name not in (known := self.get(key)):
            self._held[key] = (*known, name) if len(known) < _SMALL else {*known, name}

    def discard(self, key: str, name: str) -> None:
        """Take a name out of a group, if it is there."""
        held = self._held.get(key)
        if isinstance(held, set) and len(held) > 1:
            held.discard(name)
        elif held is not None:
            left = tuple(each for each in self.get(key) if each != name)
            if left:
                self._held[key] = left[0] if len(left) == 1 else left
            else:
                del self._held[key]
