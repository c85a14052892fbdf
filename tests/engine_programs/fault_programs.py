"""Entries for the fault tests: what goes wrong without torch."""

import multiprocessing
import os
import signal
import socket
import subprocess
import time
from multiprocessing import shared_memory
from pathlib import Path


def use_port(program, runtime):
    """Hold a fixed port for a while, as a rendezvous store does: in use elsewhere, it is an error."""
    with socket.create_server(("127.0.0.1", program.arguments["port"])):
        time.sleep(0.5)
    runtime.emit({"type": "network", "name": Path("/proc/self/ns/net").readlink().name})
    return 0


def look_at_network(program, runtime):
    """Say which networks can be reached, and the environment of GPUs."""
    addresses = socket.gethostbyname_ex(socket.gethostname())[2]
    with socket.create_server((addresses[0], 0)) as server, socket.create_connection(server.getsockname()[:2], 5):
        pass
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server, socket.create_connection(server.getsockname()[:2], 5):
        pass
    runtime.emit({"type": "reached", "name": Path("/proc/self/ns/net").readlink().name})
    return 0


def give_environment(program, runtime):
    runtime.emit({"type": "environment", **os.environ})
    return 0


def take_lease(program, runtime):
    """Take a GPU, as a pytest does that the program starts."""
    from rankbook.leases import Leases

    runtime.emit({"type": "lease", "taken": Leases().take(["0"], 1) is not None})
    return 0


def fill_disk(program, runtime):
    """Write more into the temporary folder than there is room."""
    with Path(os.environ["TMPDIR"], "big").open("wb") as stream:
        for _ in range(8):
            stream.write(bytes(1 << 20))
            stream.flush()
    return 0


def _flood(megabytes):
    os.write(1, b"the beginning\n")
    for _ in range(megabytes):
        os.write(1, bytes(1 << 20))
    os.write(1, b"the end\n")
    time.sleep(1)


def flood(program, runtime):
    """Have a rank write very much, and say what its file takes of the disk."""
    rank = multiprocessing.get_context("spawn").Process(target=_flood, name="process 0", args=(200,))
    rank.start()
    rank.join()
    path = Path(runtime.ranks[0].output)
    size = path.stat()
    with path.open("rb") as stream:
        head = stream.read(14).decode()
        stream.seek(-8, os.SEEK_END)
        runtime.emit({"type": "flood", "size": size.st_size, "disk": size.st_blocks * 512, "head": head, "tail": stream.read().decode()})
    return 0


def _share(ready):
    memory = shared_memory.SharedMemory(create=True, size=4096)
    Path("/dev/shm", f"torch_{os.getpid()}_1_0").write_bytes(b"x")
    ready.put([memory.name, f"torch_{os.getpid()}_1_0"])
    time.sleep(1000)


def share(program, runtime):
    """Have a rank share memory, and be killed with it."""
    context = multiprocessing.get_context("spawn")
    ready = context.SimpleQueue()
    context.Process(target=_share, args=(ready,)).start()
    runtime.emit({"type": "shared", "names": ready.get()})
    os.kill(os.getpid(), signal.SIGKILL)


def _end(how):
    time.sleep(0.2)
    if how == "signal":
        os.kill(os.getpid(), signal.SIGSEGV)
    os._exit(how) if isinstance(how, int) else time.sleep(1000 if how == "never" else 0)


def _end_forked(how):
    _end(how)


def end_ranks(program, runtime):
    """Start ranks that end in all ways, and leave without looking at any of them."""
    context = multiprocessing.get_context("spawn")
    for number, how in enumerate(["well", 3, "signal", "never"]):
        context.Process(target=_end, name=f"process {number}", args=(how,), daemon=True).start()
    multiprocessing.get_context("fork").Process(target=_end_forked, name="forked", args=(5,), daemon=True).start()
    deadline = time.monotonic() + 60
    while sum(rank.exit_code() is not None for rank in runtime.ranks) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    os._exit(0)


def leave_shell(program, runtime):
    """Run a program that is no Python for a while: nobody waits in vain."""
    subprocess.run(["sleep", "0.1"], check=True)
    return 0
