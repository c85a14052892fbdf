"""A script whose ranks come from the standard library's multiprocessing alone: all that the spawn start method promises."""

import multiprocessing as mp
import os
import signal
import sys
import threading
import time
from pathlib import Path

from plain_programs import emit


def work(rank, queue, pipe, event, lock, total):
    print(f"rank {rank} speaks")
    print(f"rank {rank} complains", file=sys.stderr)
    event.wait(20)
    with lock:
        total.value += rank + 1
    queue.put((rank, os.environ.get("FROM_MAIN"), str(Path.cwd()), mp.parent_process().pid, mp.current_process().name, __name__))
    pipe.send({"rank": rank, "main": sys.modules["__main__"].__name__, "stdin": sys.stdin.read()})
    sys.exit(rank)


def signal_self(number):
    os.kill(os.getpid(), number)


def sleep():
    time.sleep(1000)


def spawn_one(depth, queue):
    queue.put((depth, mp.get_start_method()))
    print(f"depth {depth}")
    if depth:
        child = mp.get_context("spawn").Process(target=spawn_one, args=(depth - 1, queue))
        child.start()
        child.join()
        sys.exit(child.exitcode or 0)
    sys.exit(7)


def square(number):
    return number * number


def main():
    mp.set_start_method("spawn")
    os.environ["FROM_MAIN"] = "yes"
    context = mp.get_context("spawn")
    queue, event, lock, total = context.Queue(), context.Event(), context.Lock(), context.Value("i", 0)
    ends = [context.Pipe() for _ in range(2)]
    ranks = [context.Process(target=work, name=f"process {n}", args=(n, queue, ends[n][1], event, lock, total)) for n in range(2)]
    for rank in ranks:
        rank.start()
    alive = [rank.is_alive() for rank in ranks]
    event.set()
    said = sorted(queue.get(timeout=120) for _ in ranks)
    piped = [end.recv() for end, _ in ends]
    for rank in ranks:
        rank.join()
    emit({"type": "basic", "alive": alive, "said": said, "piped": piped, "codes": [rank.exitcode for rank in ranks], "total": total.value})
    emit({"type": "here", "pid": os.getpid(), "cwd": str(Path.cwd())})
    ranks[0].close()
    del ranks

    terminated = mp.Process(target=sleep, name="terminated")
    terminated.start()
    terminated.join(0.05)
    before = terminated.exitcode
    terminated.terminate()
    terminated.join()
    killed = mp.Process(target=sleep, name="killed", daemon=True)
    killed.start()
    killed.kill()
    mp.connection.wait([killed.sentinel], 20)
    killed.join()
    emit({"type": "ended", "before": before, "codes": [terminated.exitcode, killed.exitcode], "alive": killed.is_alive()})

    crashed = mp.Process(target=signal_self, name="crashed", args=(signal.SIGSEGV,))
    crashed.start()
    crashed.join()
    nested = context.SimpleQueue()
    parent = mp.Process(target=spawn_one, name="nested", args=(2, nested))
    parent.start()
    parent.join()
    emit({"type": "nested", "crashed": crashed.exitcode, "code": parent.exitcode, "said": [nested.get() for _ in range(3)]})

    with context.Pool(2) as pool:
        emit({"type": "pool", "squares": pool.map(square, range(5))})
    daemon = context.Process(target=sleep, name="daemon", daemon=True)
    daemon.start()
    forked = mp.get_context("fork").Process(target=sys.exit, args=(5,), name="forked")
    forked.start()
    forked.join()
    started = []
    thread = threading.Thread(target=lambda: (started.append(mp.Process(target=square, args=(2,), name="threaded")), started[0].start()))
    thread.start()
    thread.join()
    started[0].join()
    emit({"type": "late", "forked": forked.exitcode, "threaded": started[0].exitcode})


if __name__ == "__main__":
    main()
