"""The garbage collector is held back, and yet nothing grows without end."""

from __future__ import annotations

import subprocess
import sys

RING = '''\
import gc
import weakref

from rankbook.garbage import uncollected


class Ring:
    """Refers to itself, so that only the collector frees it."""

    def __init__(self):
        self.itself = self


def alive(rings):
    return sum(ring() is not None for ring in rings)


'''
MANY = """\
made, rings = len(gc.get_objects()) // 10, []
for _ in range(30):
    with uncollected():
        rings += [weakref.ref(Ring()) for _ in range(made)]
print(alive(rings) < len(rings) / 2)
"""
SMALL = """\
made, rings = len(gc.get_objects()) // 100, []
for _ in range(400):
    with uncollected():
        pass
    with uncollected():
        rings += [weakref.ref(Ring()) for _ in range(made)]
print(alive(rings) < len(rings) / 2)
"""
LARGE = """\
with uncollected():
    pass
gc.disable()
kept = [[] for _ in range(10 * len(gc.get_objects()))]
gc.enable()
looked, counted = [], []
gc.callbacks.append(lambda phase, about: looked.append(about) if (phase, about["generation"]) == ("start", 2) else None)
gc.get_objects = lambda *_: counted.append(1) or []
gc.get_freeze_count = lambda: counted.append(1) or 0
for _ in range(100):
    with uncollected():
        pass
print(len(looked), len(counted))
"""
ONE = """\
looked = []
gc.callbacks.append(lambda phase, _: looked.append(phase))
with uncollected():
    with uncollected():
        assert not gc.isenabled()
        rings = [weakref.ref(Ring()) for _ in range(len(gc.get_objects()))]
    assert not gc.isenabled()
assert alive(rings) == len(rings)
assert gc.isenabled()
assert not looked
gc.collect()
print(bool(looked))
"""


def said_by(program: str) -> list[str]:
    """What a program says in an interpreter that holds little besides."""
    done = subprocess.run([sys.executable, "-c", RING + program], check=True, capture_output=True, text=True)
    return done.stdout.split()


def test_what_many_pieces_of_work_leave_is_collected():
    """A server works again and again: what it leaves in cycles does not add up, however small the pieces are."""
    assert said_by(MANY) == ["True"]
    assert said_by(SMALL) == ["True"]


def test_many_objects_are_not_counted_for_each_piece_of_work():
    """What a small piece of work costs does not grow with all that there is: that is gone through once, when there is much more of it."""
    assert said_by(LARGE) == ["1", "0"]


def test_one_piece_of_work_never_looks_for_garbage():
    """Within the work nothing is collected, and after the first one neither; work within work changes nothing."""
    assert said_by(ONE) == ["True"]
