"""A script that its ranks cannot import, with as much to send to them as SIZE says."""

import multiprocessing as mp
import os

from plain_programs import emit

if __name__ == "__mp_main__":
    raise RuntimeError("this file does not run in a rank")

if __name__ == "__main__":
    rank = mp.get_context("spawn").Process(target=len, args=(b"x" * int(os.environ["SIZE"]),))
    rank.start()
    rank.join()
    emit({"type": "refused", "code": rank.exitcode})
