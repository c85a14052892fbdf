"""A large table that a run which changes little reads and writes in small parts only."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

_Value = TypeVar("_Value")
_DRAWERS = 512
"""Parts in which a table is kept."""


class Sheaf(Generic[_Value]):
    """Values by name, whose drawers are opened when something in them is asked for.

    What is pickled of it is none of what it holds: that is kept drawer by drawer.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Value] = {}
        self._read: Callable[[int], dict[str, _Value] | None] | None = None
        self._open: set[int] = set()
        self._touched: set[int] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        return Sheaf, ()

    def open(self, read: Callable[[int], dict[str, _Value] | None]) -> None:
        """Take up what was kept.

        Args:
            read: gives a drawer; None when nothing is in it.
        """
        self._read = read

    def get(self, name: str) -> _Value | None:
        """Give a value, which is not to be changed; None when there is none."""
        if self._read is not None:
            self._opened(name)
        return self._known.get(name)

    def put(self, name: str, value: _Value | None) -> None:
        """Set a value; None or an empty one to leave none."""
        if self._read is not None:
            self._touched.add(self._opened(name))
        if value:
            self._known[name] = value
        else:
            self._known.pop(name, None)

    def changed(self) -> Iterator[tuple[int, dict[str, _Value]]]:
        """Yield the drawers that are not as they were kept."""
        drawers: dict[int, dict[str, _Value]] = {number: {} for number in (self._touched if self._read else range(_DRAWERS))}
        for name, value in self._known.items():
            number = _number(name)
            if number in drawers:
                drawers[number][name] = value
        yield from drawers.items()

    def _opened(self, name: str) -> int:
        number = _number(name)
        if number not in self._open and self._read is not None:
            self._open.add(number)
            self._known.update(self._read(number) or {})
        return number


def _number(name: str) -> int:
    return zlib.crc32(name.encode(errors="surrogatepass")) % _DRAWERS
