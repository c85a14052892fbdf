"""Entries that the engine tests run as main processes: one way to live or to die each; torch is not needed."""

import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

current = []
"""The runtime of the script that `run_file` runs."""


def emit(event):
    current[0].emit(event)


def give_status(program, runtime):
    return program.arguments.get("status", 0)


def terminate_ranks(program, runtime):
    """Start ranks and terminate each as soon as it is known."""
    for _ in range(program.arguments["count"]):
        rank = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
        rank.start()
        rank.terminate()
        rank.join()
        runtime.emit({"type": "terminated", "code": rank.exitcode})
    return 0


def leave(program, runtime):
    code = program.arguments["code"]
    sys.exit(code)


def fail(program, runtime):
    raise ValueError("the entry is broken")


def leave_at_once(program, runtime):
    print("last words", flush=True)
    os._exit(3)


def crash(program, runtime):
    os.kill(os.getpid(), signal.SIGSEGV)


def say(program, runtime):
    for number in range(program.arguments["count"]):
        runtime.emit({"type": "number", "number": number, "text": "x" * program.arguments.get("size", 0)})
    return 0


def say_from_threads(program, runtime):
    def work(name):
        for number in range(50):
            runtime.emit({"type": "t", "name": name, "number": number, "text": str(name) * 20_000})

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 0


def say_in_fork(program, runtime):
    pid = os.fork()
    runtime.emit({"type": "who", "child": pid == 0})
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return 0


def say_slowly(program, runtime):
    for number in range(6):
        time.sleep(0.3)
        runtime.emit({"type": "number", "number": number})
    return 0


def _target(link):
    """Where a link of /proc leads, or "" when it is gone: as the descriptor is with which the folder itself is read."""
    try:
        return str(link.readlink())
    except OSError:
        return ""


def look_around(program, runtime):
    import multiprocessing
    import tempfile

    import __main__

    runtime.emit(
        {
            "type": "around",
            "cwd": str(Path.cwd()),
            "argv": sys.argv,
            "environment": dict(os.environ),
            "main": sorted(__main__.__dict__),
            "main_is_main": sys.modules["__main__"] is __main__,
            "stdin": sys.stdin.read(),
            "sigint": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
            "sigchld": signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL,
            "sigterm": signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,
            "mask": len(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
            "wakeup": signal.set_wakeup_fd(-1),
            "process": multiprocessing.current_process().name,
            "parent_process": multiprocessing.parent_process() is None,
            "tempdir": tempfile.gettempdir(),
            "threads": len(list(Path("/proc/self/task").iterdir())),
            "session": os.getsid(0) != os.getpid(),
            # Where ctypes is loaded, the system's libffi may keep a descriptor of itself for its trampolines: nobody's leak
            "descriptors": [name for each in Path("/proc/self/fd").iterdir() if "/libffi.so" not in (name := _target(each))],
            "modules": sorted(sys.modules),
            "sys_path": sys.path,
            "streams": [sys.stdout.name, sys.stderr.name, sys.stdout.encoding, sys.stderr.errors, sys.stdout.line_buffering],
        }
    )
    return 0


def draw(program, runtime):
    numbers = {"random": random.random()}
    if program.arguments.get("torch"):
        import numpy as np
        import torch

        numbers |= {
            "numpy": np.random.rand(),  # noqa: NPY002  the shared state is what is asked about
            "torch": torch.rand(1).item(),
            "threads": torch.get_num_threads(),
        }
        numbers["fork"] = torch.cuda._is_in_bad_fork()
    runtime.emit({"type": "drawn", **numbers})
    return 0


def hang_asleep(program, runtime):
    runtime.emit({"type": "ready"})
    print("going to sleep", flush=True)
    time.sleep(1000)


def hang_with_semaphore(program, runtime):
    """Say the name of a semaphore that multiprocessing is to remove, and wait for ever."""
    lock = multiprocessing.get_context("spawn").Lock()
    runtime.emit({"type": "semaphore", "name": lock._semlock.name})
    time.sleep(3600)


def hang_in_c(program, runtime):
    runtime.emit({"type": "ready"})
    return re.match(r"(a+)+$", "a" * 60 + "b") is None


def hang_stopped(program, runtime):
    runtime.emit({"type": "ready"})
    os.kill(os.getpid(), signal.SIGSTOP)


def leave_child(program, runtime):
    command = [sys.executable, "-c", "import time; time.sleep(1000)", "left-behind"]
    subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return 0


def leave_orphan(program, runtime):
    """Fork twice, as daemons do."""
    subprocess.run(["sh", "-c", "setsid sleep 1001 >/dev/null 2>&1 &"], check=True)
    return 0


def leave_quick_child(program, runtime):
    subprocess.Popen(["sleep", "0.05"])
    return 0


def flood(program, runtime):
    block = b"y" * 65535 + b"\n"
    os.write(1, b"the beginning\n")
    for _ in range(program.arguments["megabytes"] * 16):
        os.write(1, block)
    os.write(2, b"the end\n")
    return 0


def use_temporary_folder(program, runtime):
    import tempfile

    with tempfile.NamedTemporaryFile(delete=False) as file:
        runtime.emit({"type": "temporary", "path": file.name})
    return 0


def end_in_order(program, runtime):
    import atexit

    atexit.register(print, "an exit function")

    def late():
        time.sleep(0.2)
        print("a late thread")

    threading.Thread(target=late).start()
    sys.stdout.write("not flushed, ")
    return 0


def hang_with_family(program, runtime):
    """Live on with a child in its own session, and say where both are."""
    child = subprocess.Popen(["setsid", "sleep", "1002"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    runtime.emit({"type": "family", "pids": [os.getpid(), child.pid]})
    time.sleep(1000)


def run_file(program, runtime):
    """Run the program's file as a script, in the module `__main__` itself."""
    import __main__

    path = Path(program.root) / program.path
    sys.path.insert(0, str(path.parent))
    __main__.__dict__.update(__file__=str(path))
    current.append(runtime)
    exec(compile(path.read_bytes(), str(path), "exec"), __main__.__dict__)
    for rank in runtime.ranks:
        text = Path(rank.output).read_text() if rank.output and Path(rank.output).exists() else None
        runtime.emit({"type": "rank", "name": rank.name, "pid": rank.pid, "code": rank.exit_code(), "output": text})
    return 0
