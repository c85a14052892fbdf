"""The garbage collector is held back, and yet nothing grows without end."""

from __future__ import annotations

import gc
import weakref

import pytest

from rankbook import garbage
from rankbook.garbage import uncollected


class Ring:
    """Refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setattr(garbage, "_left", [0])


def test_what_many_pieces_of_work_leave_is_collected():
    """A server works again and again: what it leaves in cycles does not add up."""
    alive: list[weakref.ref[Ring]] = []
    made = len(gc.get_objects()) // 10
    for _ in range(30):
        with uncollected():
            alive += [weakref.ref(Ring()) for _ in range(made)]
    left = sum(ref() is not None for ref in alive)
    assert left < len(alive) / 2


def test_one_piece_of_work_never_looks_for_garbage(request):
    """Within the work nothing is collected, and after the first one neither; work within work changes nothing."""
    looked: list[str] = []

    def note(phase: str, _info: object) -> None:
        looked.append(phase)

    gc.callbacks.append(note)
    request.addfinalizer(lambda: gc.callbacks.remove(note))
    with uncollected():
        with uncollected():
            assert not gc.isenabled()
            rings = [weakref.ref(Ring()) for _ in range(len(gc.get_objects()))]
        assert not gc.isenabled()
    assert all(ring() is not None for ring in rings)
    assert gc.isenabled()
    assert not looked
    gc.collect()
    assert looked
