"""A main process that ends in one of several bad ways while a rank of it lives."""

import multiprocessing as mp
import os
import signal
import sys
import time

from plain_programs import emit


def live(started):
    print("the rank speaks")
    started.set()
    time.sleep(1000)


def main():
    print("the main process speaks")
    context = mp.get_context("spawn")
    started = context.Event()
    rank = context.Process(target=live, name="process 7", args=(started,))
    rank.start()
    started.wait(30)
    emit({"type": "ready", "rank": rank.pid})
    if os.environ["BAD_END"] == "exit":
        os._exit(3)
    if os.environ["BAD_END"] == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if os.environ["BAD_END"] == "stopped":
        os.kill(rank.pid, signal.SIGSTOP)
    time.sleep(1000)
    sys.exit(1)


if __name__ == "__main__":
    main()
