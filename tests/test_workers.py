"""Work in several processes: results, errors, deaths, and what is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from rankbook.errors import RankbookError
from rankbook.workers import beside, spread

ITEMS = list(range(997))


NO_CHILD = """
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no child")
"""


def run(program):
    """Run a program in an interpreter of its own: this one may have threads, beside which nothing is forked; and look for what it left."""
    command = [sys.executable, "-c", textwrap.dedent(program) + NO_CHILD]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_all_items_come_back_once(jobs):
    """Each chunk comes back with its own result, whichever process worked on it."""
    seen = {}
    for chunk, result in spread(lambda chunk: [(item, item * item, "x" * 9000) for item in chunk], ITEMS, jobs, 10):
        assert [item for item, _, _ in result] == list(chunk)
        seen |= {item: square for item, square, _ in result}
    assert seen == {item: item * item for item in ITEMS}


def test_work_is_done_beside_this_process():
    """With two processes, neither of them is this one, and none is left behind."""
    found = run("""
        import os
        from rankbook.workers import spread
        print(sorted({pid == os.getpid() for _, pid in spread(lambda chunk: os.getpid(), range(500), 2, 5)}))
    """)
    assert found.stdout.split("\n")[:2] == ["[False]", "no child"], found.stderr


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_is_raised_here(jobs):
    """The first error ends the work, while the other processes still have much to say."""

    def work(chunk):
        if 500 in chunk:
            raise RankbookError("item 500 is odd", right="make it even")
        return "x" * 200_000

    with pytest.raises(RankbookError, match="item 500 is odd"):
        list(spread(work, ITEMS, jobs, 5))


def test_an_error_that_does_not_travel_is_told_in_words():
    """An exception that cannot be pickled comes as a sentence."""

    def work(chunk):
        class LocalError(Exception): ...

        raise LocalError("it is made here")

    with pytest.raises(RankbookError, match="LocalError: it is made here"):
        list(spread(work, ITEMS, 2, 5))


def test_a_death_is_told():
    """A process that is killed is an error, not a wait for ever."""

    def work(chunk):
        if 500 in chunk:
            os.kill(os.getpid(), signal.SIGKILL)
        return chunk

    with pytest.raises(RankbookError, match="a worker process died"):
        list(spread(work, ITEMS, 2, 5))


def test_leaving_early_leaves_nothing():
    """Who wants no more results ends the processes."""
    found = run("""
        import os
        from rankbook.workers import spread
        for chunk, result in spread(lambda chunk: "x" * 300_000, range(997), 2, 5):
            break
    """)
    assert found.stdout == "no child\n", found.stderr


@pytest.mark.parametrize("jobs", [1, 2])
def test_this_process_works_meanwhile(jobs):
    """What this process does meanwhile is done once, before the first result is looked at."""
    done = []
    for _ in spread(len, ITEMS, jobs, 5, lambda: done.append("meanwhile")):
        assert done == ["meanwhile"]
    assert done == ["meanwhile"]


def test_an_error_meanwhile_ends_the_others():
    """What goes wrong here meanwhile is raised, and leaves no process behind."""
    found = run("""
        import os
        from rankbook.workers import spread
        try:
            list(spread(lambda chunk: "x" * 300_000, range(997), 2, 5, lambda: 1 / 0))
        except ZeroDivisionError:
            print("raised")
    """)
    assert found.stdout == "raised\nno child\n", found.stderr


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_function_runs_beside_a_block(jobs, tmp_path):
    """Its work is done when the block is left: with several processes in another one, with one here, after the block."""
    told = tmp_path / "told"
    with beside(lambda: told.write_text(str(os.getpid())), jobs):
        if jobs == 1:
            assert not told.exists()
    assert (int(told.read_text()) == os.getpid()) == (jobs == 1)


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_goes_wrong_beside_a_block_is_raised_behind_it(jobs):
    """The block is not cut short by it."""

    def wrong():
        raise RankbookError("the shelf is full", right="take a book out")

    done = []
    with pytest.raises(RankbookError, match="the shelf is full"), beside(wrong, jobs):
        done.append(True)
    assert done


def test_an_error_of_the_block_ends_what_runs_beside_it():
    """Nobody waits for what is of no use any more."""
    found = run("""
        import os, time
        from rankbook.workers import beside
        try:
            with beside(lambda: time.sleep(3600), 2):
                1 / 0
        except ZeroDivisionError:
            print("raised")
    """)
    assert found.stdout == "raised\nno child\n", found.stderr
