"""The garbage collector, held back while many objects are made that have no cycles: looking for some costs up to a quarter of the time."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_GROWTH = 1.5
"""So many times the blocks of memory of when garbage was last looked for make it worth looking again."""
_left = [0]
"""How many blocks there were then, or when the first work ended: to count the objects would take as long as they are many."""


@contextmanager
def uncollected() -> Iterator[None]:
    """Work without looking for garbage, until what is left of such work has grown: a server works so again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.freeze()  # and back: what was made counts as old, and is not gone through at once, nor at any time by itself
            there = sys.getallocatedblocks() or gc.get_freeze_count()  # with `PYTHONMALLOC=malloc` nobody knows the blocks
            gc.unfreeze()
            gc.enable()
            if not _left[0]:
                _left[0] = there
            elif there > _GROWTH * _left[0]:
                gc.collect()
                _left[0] = sys.getallocatedblocks() or len(gc.get_objects())


def pass_over() -> None:
    """Let no later look for garbage see what there is now: a command that ends soon has nothing to gain from it."""
    gc.freeze()


@cache
def leave_at_exit() -> None:
    """Let all that there is when the process ends go with it, without a last look for garbage."""
    atexit.register(gc.freeze)
