"""Runs at the same time: a server, a hook of Git and a person may all bring the same pages up to date."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time

import pytest

from rankbook import turns
from rankbook.cli import main
from rankbook.config import load
from rankbook.document import document
from rankbook.freshness import cache_folder

SUITE = "import unittest\n\n\nclass TestRing(unittest.TestCase):\n    def test_token(self):\n        assert 7 % 7 == 0\n"


@pytest.fixture
def project(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["s"]\nout = "out"\nfindings = []\njobs = 1\n')
    (tmp_path / "s/test_ring.py").write_text(SUITE)
    (tmp_path / "s/other.py").write_text("x = 1\n")
    assert gen(tmp_path) == 0
    return tmp_path


def gen(root, *words):
    return main([*(words or ("gen",)), "--root", str(root)])


def write_note(root, name):
    page = root / f"out/s/{name}.py_docs.md"
    page.write_text(f"{page.read_text()}\n<!-- rankbook-notes -->\nAbout {name}.\n<!-- /rankbook-notes -->\n")
    assert gen(root) == 0


def with_note(root, name):
    return [path.name for path in (root / "out").rglob("*.md") for _ in range(path.read_text().count(f"About {name}."))]


class Halted:
    """A run in a process of its own that waits before it puts its first page in place, or takes one away.

    Args:
        root: of the project.
        at: the function of `os` before whose first call it waits.
        calls: that it makes before.
    """

    def __init__(self, root, at="replace", calls=0):
        reached, here = os.pipe()
        may_go, self._go = os.pipe()
        self._process = os.fork()
        if not self._process:
            self._run(root, at, calls, here, may_go)
        os.close(here)
        assert os.read(reached, 1)

    def _run(self, root, at, calls, here, may_go):
        real, left = getattr(os, at), [None] * calls

        def halting(place, *words, **options):
            if os.fspath(place).startswith(os.fspath(root)) and not (left and left.pop() is None):
                setattr(os, at, real)
                os.write(here, b"x")
                os.read(may_go, 1)
            real(place, *words, **options)

        os.close(self._go)  # so that the end of the other process, however it ends, lets this one go on
        setattr(os, at, halting)
        status = 99
        try:
            status = gen(root)
        finally:
            os._exit(status)

    def kill(self):
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)

    def go_on(self):
        os.write(self._go, b"x")

    def status(self):
        return os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])


@pytest.fixture
def waits(monkeypatch):
    """What is done when a run of this process has to wait for the first time."""
    real, done = time.sleep, []

    def sleep(seconds):
        if done:
            done.pop()()
        real(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
    return done


def test_a_note_is_not_lost_between_two_runs_at_once(project, waits, capsys):
    """While one run takes the page of notes without a place away, another begins that puts a note there, and waits."""
    for name in ("test_ring", "other"):
        write_note(project, name)
    (project / "s/test_ring.py").rename(project / "s/test_moved.py")
    first = Halted(project, "unlink")
    (project / "s/other.py").unlink()
    waits.append(first.go_on)
    status = gen(project)
    for go_on in waits:  # it has not waited
        go_on()
    assert (status, first.status()) == (0, 0), capsys.readouterr().err
    assert with_note(project, "test_ring") == ["test_moved.py_docs.md"]
    assert with_note(project, "other") == ["orphaned-notes.md"]
    assert gen(project, "check") == 0


def test_a_check_waits_for_a_run(project, waits, capsys):
    """While a run writes pages, a check does not take those that are not written yet for pages that are out of step."""
    (project / "s/test_ring.py").rename(project / "s/test_moved.py")
    first = Halted(project)
    waits.append(first.go_on)
    status = gen(project, "check")
    for go_on in waits:
        go_on()
    assert (status, first.status()) == (0, 0), capsys.readouterr().err


def test_a_look_at_what_is_staged_waits_for_both_runs(project, monkeypatch):
    """It begins with what a run of all files has left, and waits for one of what is staged, too, which may be writing the pages."""
    for words in (("init", "-q"), ("add", ".")):
        subprocess.run(["git", *words], cwd=project, check=True)
    staged = load(project, {"staged": True})
    cache_folder(staged).mkdir(parents=True)
    files = [folder / "turn" for folder in (cache_folder(staged), cache_folder(load(project)))]
    files[0].touch()
    waited, real = [], turns._wait

    def wait(descriptor, *, reads):
        waited.append(next(file for file in files if os.path.samestat(os.fstat(descriptor), file.stat())))
        real(descriptor, reads=reads)

    monkeypatch.setattr(turns, "_wait", wait)
    assert not document(staged, check=True).changes
    assert waited == files


def test_the_turn_of_a_killed_run_ends_with_it(project):
    """Also where a process that it has forked lives on."""
    settings = load(project)
    told, here = os.pipe()
    holder = os.fork()
    if not holder:
        with turns.turn(settings, reads=False):
            if not os.fork():
                os.write(here, str(os.getpid()).encode())  # so that it has begun, and has closed what it inherited of the turn
            time.sleep(60)
        os._exit(0)
    child = int(os.read(told, 20))
    os.kill(holder, signal.SIGKILL)
    os.waitpid(holder, 0)
    with (cache_folder(settings) / "turn").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.kill(child, signal.SIGKILL)


def test_a_run_that_was_stopped_keeps_nobody_for_ever(project, monkeypatch, capsys):
    """Where another run has the turn and does not go on, the pages are written all the same."""
    (project / "s/other.py").write_text("x = 2\n")
    first = Halted(project)
    monkeypatch.setattr(turns, "PATIENCE", 0.1)
    assert gen(project) == 0
    assert "x = 2" in (project / "out/s/other.py_docs.md").read_text()
    first.go_on()
    assert first.status() == 0, capsys.readouterr().err


def test_a_page_that_somebody_takes_away_meanwhile_is_gone(project, capsys):
    """The page of a source that is gone, deleted by a person or by Git while a run is about to do so, is no error."""
    (project / "s/other.py").unlink()
    first = Halted(project, "unlink")
    (project / "out/s/other.py_docs.md").unlink()
    first.go_on()
    assert first.status() == 0, capsys.readouterr().err
    assert gen(project, "check") == 0


def test_a_killed_run_leaves_nothing_half_written(project):
    """What a process was writing when it was killed is taken away by the next run; a file of a process that lives is not."""
    (project / "s/other.py").write_text("x = 2\n")
    before = {path: path.read_bytes() for path in (project / "out").rglob("*.md")}
    Halted(project).kill()
    assert {path: path.read_bytes() for path in (project / "out").rglob("*.md")} == before
    assert [path.suffix for path in (project / "out").rglob(".*")] == [".tmp"]
    others = project / f"out/s/.rankbook-{os.getppid()}.tmp", project / "out/.rankbook-notes.tmp"
    for path in others:
        path.write_text("x")
    assert gen(project) == 0
    assert set((project / "out").rglob(".*")) == set(others)
    assert gen(project, "check") == 0


@pytest.mark.parametrize("goes", ["source", "test"])
@pytest.mark.parametrize(("at", "calls"), [("replace", 1), ("replace", 2), ("replace", 3), ("unlink", 0)])
def test_a_note_that_moves_stands_once_after_a_killed_run(project, goes, at, calls):
    """Wherever a run is killed while a note goes along with its source or its test, it stands at its new place alone after the next."""
    page = project / "out/s/test_ring.py_docs.md"
    page.write_text(f"{page.read_text()}\n<!-- rankbook-notes TestRing::test_token -->\nAbout it.\n<!-- /rankbook-notes -->\n")
    assert gen(project) == 0
    if goes == "source":
        (project / "s/test_ring.py").rename(project / "s/test_moved.py")
    else:
        (project / "s/test_moved.py").write_text(SUITE)
        (project / "s/test_ring.py").write_text("y = 1\n")
    Halted(project, at, calls).kill()
    assert with_note(project, "it")
    assert gen(project) == 0
    assert with_note(project, "it") == ["test_moved.py_docs.md"]
    assert gen(project, "check") == 0
