"""Whose turn it is: one run at a time writes the pages of a book and what is kept of them, and none reads that meanwhile.

A server that watches the sources, a hook of Git and a person in a terminal all begin when a source is saved. The turn is a lock on a
file, which the system frees when its holder dies.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from rankbook import freshness
from rankbook.config import Settings

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:
    fcntl = None

PATIENCE = 60.0
"""Seconds after which a run goes on although another has the turn: that one may be stopped."""
_PAUSE = 0.02
"""Seconds between two looks at a turn that others have."""
_held: set[int] = set()
"""Files of locks that this process has open."""


def _forget() -> None:
    """Close them in a fork: the turn ends with its holder, whatever the children of that still do."""
    while _held:
        os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@contextmanager
def turn(settings: Settings, *, reads: bool) -> Iterator[None]:
    """Have the turn, and wait for it where another run has it.

    Args:
        settings: of the book.
        reads: whether the run writes nothing; such runs have the turn together.
    """
    descriptor = _opened(freshness.cache_folder(settings) / "turn", reads=reads)
    try:
        if descriptor is not None:
            _held.add(descriptor)
            _wait(descriptor, reads=reads)
        yield
    finally:
        if descriptor in _held:
            _let_go(descriptor)


def _opened(file: Path, *, reads: bool) -> int | None:
    """Open the file of the lock; None where the system has no such locks, or nothing is kept."""
    if fcntl is None:
        return None
    try:
        if reads:
            return os.open(file, os.O_RDONLY)
        file.parent.mkdir(parents=True, exist_ok=True)
        return os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        return None


def _wait(descriptor: int, *, reads: bool) -> None:
    assert fcntl is not None
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if reads else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE)
        except OSError:  # the file system has none
            return
        else:
            return


def _let_go(descriptor: int) -> None:
    assert fcntl is not None
    _held.remove(descriptor)
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
