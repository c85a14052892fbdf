"""The garbage collector, held back while many objects are made that have no cycles: looking for some costs up to a quarter of the time."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache


@contextmanager
def uncollected() -> Iterator[None]:
    """Work without looking for garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.freeze()  # and back: what was made counts as old, and is not gone through at once
            gc.unfreeze()
            gc.enable()


def pass_over() -> None:
    """Let no later look for garbage see what there is now: a command that ends soon has nothing to gain from it."""
    gc.freeze()


@cache
def leave_at_exit() -> None:
    """Let all that there is when the process ends go with it, without a last look for garbage."""
    atexit.register(gc.freeze)
