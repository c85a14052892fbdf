"""Watches what this process writes, makes, moves and removes."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

_EVENTS = {
    "open": (0, None),
    "os.mkdir": (0, 2),
    "os.remove": (0, 1),
    "os.rmdir": (0, 1),
    "os.rename": (1, 3),
    "os.symlink": (1, 2),
    "os.link": (1, 3),
    "os.truncate": (0, None),
    "os.chmod": (0, 2),
    "sqlite3.connect": (0, None),
}
"""What the interpreter tells of before it is done: the place of the path among its facts, and of the folder that the path starts from."""
_watched: list[set[str]] = []
_hooks: list[object] = []
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def _hook(event: str, facts: tuple[Any, ...]) -> None:
    places = _EVENTS.get(event)
    if places is None or not _watched or (event == "open" and not (isinstance(facts[2], int) and facts[2] & _WRITING)):
        return
    path, folder = facts[places[0]], facts[places[1]] if places[1] else -1
    if isinstance(path, (str, bytes, os.PathLike)) and path != ":memory:":
        name = os.fsdecode(path)
        name = unquote(urlsplit(name).path) if name.startswith("file:") else name
        base = f"/proc/self/fd/{folder}" if isinstance(folder, int) and folder >= 0 else "."
        _watched[-1].add(os.path.join(os.path.realpath(os.path.join(base, os.path.dirname(name))), os.path.basename(name)))  # noqa: PTH118, PTH119, PTH120


@contextlib.contextmanager
def watched() -> Iterator[set[str]]:
    """Collect the paths that this process writes, makes, moves or removes, with links on the way to them resolved."""
    if not _hooks:  # a hook cannot be taken away
        _hooks.append(sys.addaudithook(_hook))
    _watched.append(set())
    try:
        yield _watched[-1]
    finally:
        _watched.pop()
