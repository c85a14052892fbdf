"""Two ranks of which one goes wrong, as the variable FAULT says; the other waits for it in a process group."""

import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def leave():
    os._exit(0)


def sleep():
    time.sleep(1000)


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)


def hold():
    import ctypes

    mutex = ctypes.create_string_buffer(64)
    for _ in range(2):  # no signal ends the second call, as one ends a sleep of C
        ctypes.PyDLL(None).pthread_mutex_lock(mutex)


def rank_main(rank, folder):
    import torch.distributed as dist

    store = dist.FileStore(str(Path(folder, "store")), 2)
    if rank == 1:
        globals()[os.environ["FAULT"]]()
    dist.init_process_group("gloo", rank=rank, world_size=2, store=store)


if __name__ == "__main__":
    runtime = sys.modules["plain_programs"].current[0]
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=rank_main, name=f"process {rank}", args=(rank, os.environ["TMPDIR"])) for rank in range(2)]
    for rank in ranks:
        rank.start()
    if os.environ.get("PARDON"):
        runtime.pardon(ranks[1].pid)
        ranks[1].join()
        time.sleep(5)
        ranks[0].kill()
    for rank in ranks:
        rank.join()
