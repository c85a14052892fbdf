"""Where names come from that a file takes from others by `import *`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple


class Star(NamedTuple):
    """A module that a file imports whole."""

    importer: str
    """The file that imports it."""
    module: str
    """As it is written there, with its leading dots."""
    path: str
    """Its file."""


Stars = tuple[tuple[Star, ...], tuple[str, ...], tuple[str, ...]]
"""What a file imports whole, as far as it is known; where else that was looked for; and the last parts of the modules that it names."""


class Walk:
    """The files that one imports whole, near and far, each once, in the order in which names are looked for, of which there are many.

    Args:
        path: the file.
        stars: gives what a file imports whole.
        names: gives the names that a file itself binds.
    """

    def __init__(self, path: str, stars: Callable[[str], Stars], names: Callable[[str], Collection[str]]) -> None:
        self.stars: list[Star] = []
        """As far as it was necessary to go."""
        self.read: list[str] = []
        """Their files, and where those were looked for."""
        self.asked: list[str] = []
        """Last parts of the modules that were looked for."""
        self.until: list[tuple[int, int]] = []
        """For each file, how many of these two there were when it was reached."""
        self._names: list[Collection[str]] = []
        self._steps = self._step(path, stars, names)

    def places(self, name: str) -> Iterator[int]:
        """Yield the places of those that bind a name."""
        known, place = self._names, 0
        while place < len(known) or next(self._steps, False):
            if name in known[place]:
                yield place
            place += 1

    def _step(self, path: str, stars: Callable[[str], Stars], names: Callable[[str], Collection[str]]) -> Iterator[bool]:
        """Go one file further each time."""
        seen, waiting = {path}, deque[Star]()
        while True:
            near, read, asked = stars(path)
            waiting += near
            self.read += read
            self.asked += asked
            while waiting and waiting[0].path in seen:
                waiting.popleft()
            if not waiting:
                return
            star = waiting.popleft()
            path = star.path
            seen.add(path)
            self._names.append(names(path))
            self.stars.append(star)
            self.read.append(path)
            self.until.append((len(self.read), len(self.asked)))
            yield True
