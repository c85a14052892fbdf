"""Ranks in circumstances that break what is built carelessly: many descriptors, a default timeout, starts from threads."""

import multiprocessing as mp
import os
import socket
import threading
from pathlib import Path

from plain_programs import emit


def count(ends, block, queue):
    for end in ends:
        end.close()
    queue.put((len(ends), len(block)))


def pass_on(rank, queue):
    queue.put(rank)


def main():
    socket.setdefaulttimeout(0.5)
    context = mp.get_context("spawn")
    queue = context.Queue()
    pipes = [context.Pipe(duplex=False) for _ in range(260)]
    many = context.Process(target=count, name="../many descriptors", args=([end for end, _ in pipes], b"x" * 3_000_000, queue))
    many.start()
    counted = queue.get(timeout=120)
    many.join()

    os.close(0)
    ranks = [context.Process(target=pass_on, args=(rank, queue)) for rank in range(6)]
    threads = [threading.Thread(target=rank.start) for rank in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed = sorted(queue.get(timeout=120) for _ in ranks)
    for rank in ranks:
        rank.join()
    emit({"type": "odd", "counted": counted, "passed": passed, "codes": [rank.exitcode for rank in ranks]})
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(8):
        rank = context.Process(target=pass_on, args=(1, queue))
        rank.start()
        rank.join()
    del rank
    emit({"type": "descriptors", "grown": len(list(Path("/proc/self/fd").iterdir())) - descriptors})


if __name__ == "__main__":
    main()
