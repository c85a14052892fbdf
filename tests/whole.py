"""Whether a run of the tests is a whole one: then each case is run in every engine that there is, and every file of the bundled suite."""

from __future__ import annotations

import os

WHOLE = bool(os.environ.get("RANKBOOK_WHOLE_SUITE"))
"""New interpreters that import torch take many seconds each: the gate starts them where no other case has the like."""


def in_whole(*engines: str) -> tuple[str, ...]:
    """Give the engines, or whatever else, that only a whole run tries."""
    return engines if WHOLE else ()
