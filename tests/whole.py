"""Whether a run of the tests is a whole one: then also what is left out of the gate, because other cases have the like, is run."""

from __future__ import annotations

import os
from typing import TypeVar

import pytest

Case = TypeVar("Case")

WHOLE = bool(os.environ.get("RANKBOOK_WHOLE_SUITE"))
"""New interpreters that import torch take many seconds each: the gate starts them where no other case has the like."""
only_in_whole = pytest.mark.skipif(not WHOLE, reason="other cases show it; RANKBOOK_WHOLE_SUITE=1 runs it too")


def in_whole(*cases: Case) -> tuple[Case, ...]:
    """Give the engines, or whatever else, that only a whole run tries."""
    return cases if WHOLE else ()
