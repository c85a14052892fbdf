"""Leases of GPUs: between threads, between processes, and after a holder has died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from rankbook import leases as leases_module
from rankbook.errors import EngineError
from rankbook.leases import Leases

FOUR = ("a", "b", "c", "d")
SECONDS = 60
"""Within which another process has done what it does in milliseconds."""


@pytest.fixture(params=["locks on files", "locks in the process"])
def leases(request, tmp_path, monkeypatch):
    """Leases, with and without locks on files."""
    if request.param == "locks in the process":
        monkeypatch.setattr(leases_module, "fcntl", None)
    found = Leases(tmp_path / "leases")
    assert found.is_between_processes == (request.param == "locks on files")
    return found


def other_process(folder: Path, script: str) -> subprocess.Popen:
    """Start a process with leases in the same folder; what it prints can be read, and it goes on when it is written to."""
    head = f"import sys, time\nfrom pathlib import Path\nfrom rankbook.leases import Leases\nleases = Leases(Path({str(folder)!r}))\n"
    return subprocess.Popen([sys.executable, "-c", head + script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def eventually(condition) -> bool:
    """Tell whether something comes true."""
    end = time.monotonic() + SECONDS
    while not (answer := bool(condition())) and time.monotonic() < end:
        time.sleep(0.01)
    return answer


def test_all_or_none(leases):
    """As many as are wanted, or none; what is given back can be taken again."""
    with leases.take(FOUR, 3) as first:
        assert first.ids == ("a", "b", "c")
        assert leases.take(FOUR, 2) is None
        second = leases.take(FOUR, 1)
        assert second.ids == ("d",)
        assert leases.take(FOUR, 1) is None
    assert leases.take(FOUR, 3).ids == ("a", "b", "c")
    second.release()
    second.release()
    assert leases.take(FOUR, 1).ids == ("d",)


def test_shared_gpus(leases):
    """Who shares has them together with others that share, never beside one that does not."""
    first = leases.take(FOUR, 2, shared=True)
    second = leases.take(("b", "a"), 2, shared=True)
    assert set(second.ids) == set(first.ids) == {"a", "b"}
    assert leases.take(FOUR, 3) is None
    assert leases.take(FOUR, 2).ids == ("c", "d")
    assert leases.take(FOUR, 3, shared=True) is None
    first.release()
    assert leases.take(("a",), 1) is None
    second.release()
    assert leases.take(("a",), 1).ids == ("a",)


def test_the_caller_chooses(leases):
    """The choice is made among those that are free."""
    leases.take(("b",), 1)
    seen = []
    lease = leases.take(FOUR, 2, choose=lambda free, count: seen.append(tuple(free)) or free[-count:])
    assert seen == [("a", "c", "d")]
    assert lease.ids == ("c", "d")
    assert leases.take(FOUR, 1).ids == ("a",)


def test_nothing_is_always_to_be_had(leases):
    """A lease of no GPU needs none, whoever waits."""
    with leases.take(FOUR, 4), leases.take(FOUR, 0) as lease:
        assert lease.ids == ()


def test_too_many(leases):
    """More than there are is refused, and not waited for."""
    with pytest.raises(EngineError, match="5 GPUs cannot be leased of 4"):
        leases.take(FOUR, 5, wait=True)


def test_other_names_are_other_gpus(tmp_path):
    """Declared GPUs of different projects have the same ids."""
    one, other = (Leases(tmp_path, name) for name in ("one", "other"))
    with one.take(FOUR, 4):
        assert one.take(FOUR, 1) is None
        assert other.take(FOUR, 4)


def test_a_wait_is_given_up(leases):
    """Who waits asks whether to wait on."""
    asked = []
    with leases.take(FOUR, 1):
        assert leases.take(FOUR, 4, wait=lambda: asked.append(0) or len(asked) < 4) is None
    assert leases.take(FOUR, 4)


def test_who_waits_for_several_is_not_overtaken(leases):
    """GPUs that become free go to the one that waits for all of them, not to those that want one each and come later."""
    with ExitStack() as held:
        singles = [leases.take(FOUR, 1) for _ in FOUR]
        got = []
        waiter = threading.Thread(target=lambda: got.append(leases.take(FOUR, 4, wait=True)))
        waiter.start()
        held.callback(waiter.join)
        assert eventually(lambda: leases.take((), 0) and not turnstile_is_open(leases))
        for single in singles:
            assert not got
            single.release()
            assert leases.take(FOUR, 1) is None
        assert eventually(lambda: got)
    assert set(got[0].ids) == set(FOUR)


def turnstile_is_open(leases) -> bool:
    lock = leases._lock("turnstile", shared=True)
    if lock is not None:
        lock.release()
    return lock is not None


def test_two_wait_for_all(leases):
    """Two that wait for everything have it one after the other: half and half would be a deadlock."""
    order = []

    def work():
        for _ in range(5):
            with leases.take(FOUR, 4, wait=True):
                order.append("in")
                time.sleep(0.002)
                order.append("out")

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert order == ["in", "out"] * 10


def test_many_short_leases(leases):
    """Threads that take one to three of four GPUs five hundred times never meet on one, and all get theirs."""
    holders = dict.fromkeys(FOUR, 0)
    guard = threading.Lock()
    met = []

    def work(count):
        for turn in range(125):
            with leases.take(FOUR, count, wait=turn % 2 == 0) or leases.take(FOUR, count, wait=True) as lease:
                with guard:
                    for gpu in lease.ids:
                        holders[gpu] += 1
                        met.extend([gpu] * (holders[gpu] - 1))
                with guard:
                    for gpu in lease.ids:
                        holders[gpu] -= 1

    threads = [threading.Thread(target=work, args=(count,)) for count in (1, 2, 3, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert not met
    assert not any(thread.is_alive() for thread in threads)


needs_files = pytest.mark.skipif(leases_module.fcntl is None, reason="this system has no locks on files")


@needs_files
def test_a_dead_process_holds_nothing(tmp_path):
    """GPUs of a process that is killed are free at once, and so are those of one that was killed while it waited."""
    leases = Leases(tmp_path)
    holder = other_process(tmp_path, "lease = leases.take(('a', 'b'), 2)\nprint('held', flush=True)\nsys.stdin.read()\n")
    assert holder.stdout.readline() == "held\n"
    assert leases.take(("a", "b"), 1) is None
    waiter = other_process(tmp_path, "print('waits', flush=True)\nleases.take(('a', 'b'), 1, wait=True)\n")
    assert waiter.stdout.readline() == "waits\n"
    assert eventually(lambda: not turnstile_is_open(leases))
    for process in (waiter, holder):
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert leases.take(("a", "b"), 2).ids == ("a", "b")


@needs_files
@pytest.mark.parametrize("starts", ["subprocess.Popen(['sleep', '60'])", "os.fork() or time.sleep(60)"])
def test_no_child_keeps_a_lease(tmp_path, starts):
    """A child, forked or started, does not hold what its parent held, once the parent is gone."""
    script = f"import os, subprocess\nlease = leases.take(('a',), 1)\n{starts}\nprint('started', flush=True)\nsys.stdin.read()\n"
    parent = other_process(tmp_path, script)
    assert parent.stdout.readline() == "started\n"
    leases = Leases(tmp_path)
    assert leases.take(("a",), 1) is None
    group = subprocess.run(["pgrep", "-P", str(parent.pid)], capture_output=True, text=True, check=False).stdout.split()
    parent.kill()
    parent.wait()
    try:
        assert eventually(lambda: leases.take(("a",), 1))
    finally:
        for child in group:
            os.kill(int(child), signal.SIGKILL)
        parent.stdout.close()
        parent.stdin.close()


@needs_files
def test_a_forked_child_releases_nothing(tmp_path):
    """The child's copy of a lease is no lease: the parent's stays."""
    script = (
        "import os\nlease = leases.take(('a',), 1)\n"
        "if not os.fork():\n    mine = open(os.devnull)\n    lease.release()\n    mine.read()\n    os._exit(0)\n"
        "assert os.wait()[1] == 0\nprint(leases.take(('a',), 1), flush=True)\n"
    )
    done, _ = other_process(tmp_path, script).communicate(timeout=SECONDS)
    assert done == "None\n"


SHARERS = """
held = Path(sys.stdin.readline().strip())
met = turns = 0
for turn in range(40):
    count = 1 + turn % 3
    with leases.take(('a', 'b', 'c'), count, wait=True) as lease:
        for gpu in lease.ids:
            try:
                (held / gpu).mkdir()
            except FileExistsError:
                met += 1
        turns += 1
        for gpu in lease.ids:
            (held / gpu).rmdir()
print(met, turns)
"""


@needs_files
def test_processes_never_meet(tmp_path):
    """Three processes that take one, two or all of three GPUs again and again: none meets another, none is left out."""
    (tmp_path / "held").mkdir()
    processes = [other_process(tmp_path / "leases", SHARERS) for _ in range(3)]
    for process in processes:
        process.stdin.write(f"{tmp_path / 'held'}\n")
        process.stdin.flush()
    assert [process.communicate(timeout=SECONDS)[0] for process in processes] == ["0 40\n"] * 3


@needs_files
def test_the_folder_is_for_all_users(tmp_path, monkeypatch):
    """All users can lock, and none can remove another's file, whatever the umask is."""
    previous = os.umask(0o077)
    try:
        monkeypatch.setenv("RANKBOOK_LEASES", str(tmp_path / "below" / "leases"))
        leases = Leases()
        assert leases.folder == tmp_path / "below" / "leases"
        leases.take(("MIG-1/0",), 1).release()
    finally:
        os.umask(previous)
    assert leases.folder.stat().st_mode & 0o7777 == 0o1777
    files = sorted(leases.folder.iterdir())
    assert [file.name for file in files] == ["counter", "gpu-MIG-1%2F0", "turnstile"]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o644}


@needs_files
def test_no_link_is_followed(tmp_path):
    """A link in the place of a lock is refused: it may lead to another user's file."""
    (tmp_path / "gpu-a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EngineError, match="GPUs cannot be leased: "):
        Leases(tmp_path).take(("a",), 1)
    assert not (tmp_path / "elsewhere").exists()


@needs_files
def test_a_folder_that_cannot_be(tmp_path):
    """What stands in the way is named, with what would be right."""
    (tmp_path / "file").touch()
    with pytest.raises(EngineError, match=r"file: GPUs cannot be leased here; it must be a folder, or RANKBOOK_LEASES name one"):
        Leases(tmp_path / "file")
    with pytest.raises(EngineError, match="let RANKBOOK_LEASES name another folder"):
        Leases(tmp_path / "file" / "below")


@needs_files
def test_a_lock_whose_file_was_replaced(tmp_path):
    """A lock on a file that is no longer there is no lock."""
    leases = Leases(tmp_path)
    with leases.take(("a",), 1):
        pass
    real = os.lstat
    calls = []

    def replaced(path, *rest, **options):
        if not calls:
            calls.append(path)
            Path(path).unlink()
        return real(path, *rest, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "lstat", replaced)
        lease = leases.take(("a",), 1)
    assert calls
    assert leases.take(("a",), 1) is None
    lease.release()
