"""Entries of the contract that every engine keeps; torch is needed by the file of ranks only."""

import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path


def give_status(program, runtime):
    runtime.emit({"type": "report", "status": program.arguments["status"]})
    return program.arguments["status"]


def fail(program, runtime):
    raise ValueError(f"the entry is broken in {program.root}")


def say(program, runtime):
    for number in range(program.arguments["count"]):
        runtime.emit({"type": "number", "number": number, "text": "x" * program.arguments.get("size", 0)})
    return 0


def say_and_wait(program, runtime):
    """Say something, then live until somebody makes a file, and say it."""
    runtime.emit({"type": "ready", "pid": os.getpid()})
    while not Path(program.arguments["until"]).exists():
        time.sleep(0.02)
    runtime.emit({"type": "seen"})
    return 0


def crash(program, runtime):
    os.kill(os.getpid(), signal.SIGSEGV)


def hang(program, runtime):
    runtime.emit({"type": "ready", "pid": os.getpid()})
    time.sleep(1000)


def wait_here(ready):
    ready.put(True)
    time.sleep(1000)


def die(ready):
    ready.put(True)
    os.kill(os.getpid(), signal.SIGKILL)


def show_again_and_again(program, runtime):
    """Show where one rank is, while another one that has died has the supervisor look at it too."""
    context = multiprocessing.get_context("spawn")
    ready = context.SimpleQueue()
    ranks = [context.Process(target=target, args=[ready], name=f"rank {number}") for number, target in enumerate((wait_here, die))]
    for rank in ranks:
        rank.start()
    for _ in ranks:
        ready.get()
    ranks[1].join()
    end, number = time.monotonic() + program.arguments["seconds"], 0
    while time.monotonic() < end:
        number += 1
        print("number", number, flush=True)
        runtime.show(ranks[0].pid)
    runtime.show(ranks[1].pid)
    runtime.pardon(None)
    ranks[0].kill()
    ranks[0].join()
    return 0


def flood(program, runtime):
    os.write(1, b"the beginning\n")
    for _ in range(program.arguments["megabytes"] * 16):
        os.write(1, b"y" * 65535 + b"\n")
    os.write(1, b"the end\n")
    return 0


def look_around(program, runtime):
    found = {str(path.relative_to(program.root)): path.read_bytes().hex() for path in Path(program.root).rglob("*") if path.is_file()}
    runtime.emit(
        {
            "type": "around",
            "cwd": str(Path.cwd()),
            "file": str(Path(program.root, program.path)),
            "files": found,
            "environment": dict(os.environ),
            "arguments": dict(program.arguments),
        }
    )
    print("in", Path.cwd())
    return 0


def run_file(program, runtime):
    """Run the program's file as a script, in the module `__main__` itself; it may call `emit`."""
    import __main__

    path = Path(program.root) / program.path
    sys.path.insert(0, str(path.parent))
    __main__.__dict__.update(__file__=str(path), emit=runtime.emit)
    exec(compile(path.read_bytes(), str(path), "exec"), __main__.__dict__)
    return 0
