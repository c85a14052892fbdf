"""Stacks of processes, read and told: who waits for whom."""

from __future__ import annotations

import faulthandler
import tempfile
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbook.engines.stacks import Doing, Frame, Sight, doing, read, sentences, without_engine
from rankbook.engines.vain import LENIENCE, PATIENCE, Vigil, is_in_vain

ROOT = "/tree"
OWN = '  File "/tree/guide/train.py", line 12 in step\n'
C10D = '  File "/site/torch/distributed/c10d_logger.py", line 83 in wrapper\n'
REDUCE = '  File "/site/torch/distributed/distributed_c10d.py", line 9 in all_reduce\n'
HARNESS = '  File "/site/torch/testing/_internal/common_distributed.py", line 1170 in {}\n'
OURS = '  File "/site/rankbook/harness/ranks.py", line 91 in {}\n'
POLL = '  File "/lib/python3.11/multiprocessing/connection.py", line 948 in wait\n'
QUEUE = '  File "/lib/python3.11/multiprocessing/queues.py", line 103 in get\n'
MAIN = "Current thread 0x00007f3fcbb0bb80 (most recent call first):\n"
OTHER = "Thread 0x00007f3fcaec56c0 [pt_thread] (most recent call first):\n"
names = st.from_regex(r"[a-z_<>.]{1,12}", fullmatch=True)
files = st.text(st.characters(codec="ascii", exclude_characters='\n\r\x0b\x0c\x1c\x1d\x1e\x85"'), min_size=1, max_size=30)
frames = st.builds(Frame, files, st.integers(0, 10**6), names)


def written(frame: Frame) -> str:
    return f'  File "{frame.file}", line {frame.line or "???"} in {frame.function}\n'


@given(st.lists(st.lists(frames, max_size=5), max_size=4), st.booleans())
def test_round_trip(stacks, noisy):
    """What is written as faulthandler writes it is read again, whatever other lines stand between."""
    noise = 'Current thread\'s C stack trace (most recent call first):\n  Binary file "x", at +0x1\n' if noisy else ""
    dump = "".join(noise + OTHER + "".join(map(written, stack)) + "\n" for stack in stacks)
    assert read(dump) == [tuple(stack) for stack in stacks]


@given(st.text(max_size=200))
def test_any_text(text):
    """No text is too odd to be told of: a process may write into the descriptor what it likes."""
    for dump in (text, MAIN + text):
        sight = Sight("rank 0", dump)
        assert doing(sight, ROOT) in Doing
        assert next(iter(sentences([sight], ROOT))).startswith("rank 0 ")
        assert len(without_engine(dump)) <= len(dump)


def test_real_dump():
    """A dump of this interpreter has this very function on its last stack, and the thread's on another."""
    ready, done = threading.Event(), threading.Event()

    def wait_in_thread():
        ready.set()
        done.wait()

    thread = threading.Thread(target=wait_in_thread)
    thread.start()
    ready.wait()
    with tempfile.TemporaryFile("w+") as stream:
        faulthandler.dump_traceback(stream, all_threads=True)
        stream.seek(0)
        dump = stream.read()
    done.set()
    thread.join()
    stacks = read(dump)
    assert stacks[-1][0].function.endswith("test_real_dump")
    assert stacks[-1][0].file == __file__
    assert any(frame.function.endswith("wait_in_thread") for stack in stacks[:-1] for frame in stack)


@pytest.mark.parametrize(
    ("sight", "kind", "sentence"),
    [
        (Sight("rank 0", MAIN + REDUCE + C10D + OWN), Doing.COLLECTIVE, "rank 0 waits in all_reduce (guide/train.py:12)"),
        (Sight("rank 0", MAIN + OWN + REDUCE, asleep=True), Doing.SLEEP, "rank 0 is in sleep (guide/train.py:12)"),
        (Sight("rank 0", MAIN + OWN), Doing.NATIVE, "rank 0 is in native code called from guide/train.py:12"),
        (Sight("rank 0", MAIN + OWN, busy=True), Doing.RUNNING, "rank 0 is running (guide/train.py:12)"),
        (Sight("rank 1", "", stopped=True), Doing.STOPPED, "rank 1 is stopped by a signal"),
        (Sight("rank 1", ""), Doing.SILENT, "rank 1 does not say what it does"),
        (Sight("it", MAIN + HARNESS.format("_join_processes"), asleep=True), Doing.RANKS, "it waits for its ranks"),
        (Sight("it", MAIN + POLL + OURS.format("_wait")), Doing.RANKS, "it waits for its ranks"),
        (Sight("it", MAIN + POLL + OURS.format("end")), Doing.RANKS, "it waits for its ranks"),
        (Sight("rank 1", MAIN + QUEUE + HARNESS.format("_worker_loop")), Doing.TASK, "rank 1 waits for its next test"),
        (
            Sight("rank 1", MAIN + QUEUE + OWN + HARNESS.format("_worker_loop")),
            Doing.OTHERS,
            "rank 1 waits for a queue (guide/train.py:12)",
        ),
    ],
)
def test_sentence(sight, kind, sentence):
    """Each kind of doing has its sentence, with the innermost place on the program's own files."""
    assert doing(sight, ROOT) is kind
    assert list(sentences([sight], ROOT)) == [sentence]


def test_threads_that_are_ranks():
    """Of a process whose ranks are threads, those that are in a collective are told of too."""
    sight = Sight("the main process", OTHER + REDUCE + OWN + "\n" + OTHER + QUEUE + "\n" + MAIN + HARNESS.format("_join_threads"))
    assert list(sentences([sight], ROOT)) == [
        "the main process waits for its threads",
        "a thread of the main process waits in all_reduce (guide/train.py:12)",
    ]


def test_engine_is_left_out():
    """What an engine called before the program is not shown; other threads are."""
    engine = '  File "/site/rankbook/engines/spawning.py", line 3 in finish\n  File "<frozen runpy>", line 88 in _run_code\n'
    assert without_engine(MAIN + OWN + engine + "\n" + OTHER + OWN) == MAIN + OWN + "\n" + OTHER + OWN


WAITS = Sight("the main process", MAIN + HARNESS.format("_join_processes"))
STUCK = Sight("rank 0", MAIN + REDUCE + OWN)


@pytest.mark.parametrize(
    ("other", "vain"),
    [
        (STUCK, True),
        (Sight("rank 0", MAIN + OWN), True),
        (Sight("rank 0", MAIN + OWN, asleep=True), False),
        (Sight("rank 0", MAIN + OWN, busy=True), False),
        (Sight("rank 0", "", stopped=True), False),
        (Sight("make", ""), False),
    ],
)
def test_in_vain(other, vain):
    """Others wait in vain when a harness or a collective waits and nobody does something of its own: sleep, compute, be another program."""
    assert is_in_vain([WAITS, other], ROOT) is vain


def test_nobody_waits_for_ranks():
    """A program that waits for something else is left alone."""
    assert not is_in_vain([Sight("the main process", MAIN + QUEUE + OWN)], ROOT)


def looks(used, at_work=lambda pid: False, pids=((1, 2), (1, 2))):
    """Give the answers of two looks, between which processes have used so many ticks."""
    times = iter(used)
    vigil = Vigil(lambda pid: next(times), at_work)
    vigil.begin()
    assert not vigil.look(pids[0])
    answers = []
    for some in pids:
        vigil.due = time.monotonic()
        answers.append(vigil.look(some))
    return answers


def test_vigil():
    """All must be idle, the same processes, over the whole span."""
    assert looks([5, 7, 5, 8]) == [False, True]
    assert looks([5, 7, 5, 90]) == [False, False]
    assert looks([5, 7, 5, 7], at_work=lambda pid: pid == 2) == [False, False]
    assert looks([5, 7, 5], pids=((1, 2), (1,))) == [False, False]


def test_vigil_is_as_patient_as_the_last_death_allows():
    """After an end that may have been meant the first look comes late; a death beside it has it come soon, and nothing puts that off."""
    vigil = Vigil(lambda pid: 0, lambda pid: False)
    vigil.begin(LENIENCE)
    late = vigil.due
    vigil.begin(PATIENCE)
    soon = vigil.due
    assert late - soon > LENIENCE - PATIENCE - 1
    vigil.begin(LENIENCE)
    vigil.begin(PATIENCE)
    assert vigil.due == soon
