"""The zygote: a process that has imported once what programs import, torch and its test harnesses for those that use them.

It runs nothing, and forks a supervisor per program.

A fork differs from a new interpreter in one thing that cannot be mended: all forks of one zygote share the hash seed of `str`.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import importlib.util
import json
import os
import select
import signal
import socket
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from rankbook import rank_notes
from rankbook.engines import cuda_driver, huge_pages, isolation, leftovers, main_process, processes, spawning, wire
from rankbook.engines.job import Birth, Job
from rankbook.engines.roles import received
from rankbook.engines.supervisor import Nursery, supervise
from rankbook.errors import EngineError
from rankbook.syntax import syntax_tree

TORCH = ("numpy", "torch", "torch.distributed", "torch.nn.parallel")
"""What programs import besides that use torch; what is not installed is left out."""

HARNESSES = (
    "torch.testing._internal.common_utils",
    "torch.testing._internal.common_distributed",
    "torch.testing._internal.common_cuda",
    "torch.testing._internal.distributed._tensor.common_dtensor",
    "expecttest",
)
"""What they import that use its own test harnesses too: these bring the compiler, and take as long once more as torch itself."""

PRELOAD = (
    "unittest",
    "unittest.mock",
    "pytest",
    "_pytest.assertion.rewrite",
    "_pytest.config",
    "multiprocessing.connection",
    "multiprocessing.managers",
    "multiprocessing.pool",
    "multiprocessing.queues",
    "multiprocessing.shared_memory",
    "multiprocessing.synchronize",
    "concurrent.futures.process",
    "doctest",
    "runpy",
)
"""What programs mostly import."""

ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "PYTORCH_NVML_BASED_CUDA_CHECK": "1", "TORCH_WARM_POOL": "0"}
"""Set while the zygote imports: one thread, no pool of compilers, and CUDA devices counted without touching CUDA, for all forbid forking.

Up to torch 2.12, and where Triton is installed, the import of the compiler starts its pool of processes, which a thread of this one reads.
A program that compiles starts the pool then.

OMP_NUM_THREADS and MKL_NUM_THREADS stay the caller's: they start no thread before the first parallel operation, and a program that is
forked would keep their value, unlike one in a new interpreter.
"""

KEPT = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
"""Variables of `ENVIRONMENT` that programs keep, so that a main process that only counts devices may still fork."""

SETTLES = 0.5
"""Seconds that a thread which an import has started may take to end; one that lives longer is there to stay."""

MANY = 16
"""Programs after which it is worth while to make forks cheaper."""


def main(control: str, scratch: str, *others: str) -> NoReturn:
    """Be the zygote.

    Args:
        control: descriptor of a socket to the engine, which ends the zygote by word or by closing its side.
        scratch: folders to remove when the engine's process is killed, as a JSON list.
        others: modules to import besides `PRELOAD`.
    """
    engine = socket.socket(fileno=received(control))
    isolation.allowed()  # what is found holds for all forks
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors report to the caller; nobody waits for them here
    rank_notes.observe_calls()
    hidden, spoilers = preload((*PRELOAD, *others))
    with contextlib.suppress(OSError):  # the engine was killed in the meantime: there is no request
        wire.send(engine, {"hindrance": hindrance(), "spoilers": spoilers, "hidden": sorted(hidden)})
    steps, count = huge_pages.gather(), 0
    while (request := wire.receive(engine)) is not None:
        message, descriptors = request
        if not descriptors:
            os._exit(0)
        channel, events = descriptors
        with socket.socket(fileno=channel) as caller:
            _start_supervisor(Job.of(message), caller, events, engine)
        os.close(events)
        count += 1
        if count >= MANY:
            _use_the_time(steps, engine)
    _clean_up(json.loads(scratch))
    os._exit(0)


def _use_the_time(steps: Iterator[float], engine: socket.socket) -> None:
    """Go on with something, whose steps say how long to wait before the next, until there is a request."""
    pause: float | None = 0
    while pause is not None and not select.select([engine], [], [], pause)[0]:
        pause = next(steps, None)


def _clean_up(folders: Iterable[str]) -> None:
    """Remove the folders of an engine that was killed, when its supervisors have ended."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(-1, 0)  # SIGCHLD is ignored: it returns when there is no child left
    for folder in folders:
        leftovers.remove_folder(folder)


def preload(names: Sequence[str]) -> tuple[set[str], list[str]]:
    """Import what programs need, up to what forbids forking, and take it out of the collector's sight, so that forks share it.

    Returns:
        The modules among it that importing the packages above them may not bring: a program may use them without importing them, and
        would not notice. And the name whose import has made this process one that must not be forked, with those behind it that import
        that one; nothing where none has.
    """
    gc.disable()  # imports make much that stays
    brought, spoilers = set[str](), list[str]()
    for place, name in enumerate(names):
        with contextlib.suppress(Exception):  # a program that needs it will say why it cannot be imported
            importlib.import_module(name.partition(".")[0])
            before = set(sys.modules)
            importlib.import_module(name)
            brought |= sys.modules.keys() - before
        if _is_spoilt():
            spoilers = _that_bring(name, names[place + 1 :])
            break
    hidden = {name for name in brought if "." in name and not _comes_with_package(name)}
    spawning.disown_finalizers()
    spawning.clear_main()
    gc.collect()
    gc.freeze()
    gc.enable()
    return hidden, spoilers


def _that_bring(spoiler: str, others: Iterable[str]) -> list[str]:
    """Name a module and those of others that import it, as far as that stands plainly in their files."""
    found = [spoiler]
    for name in others:
        with contextlib.suppress(ImportError, ValueError):
            spec = importlib.util.find_spec(name)
            if spec is not None and not _imported_by(name.rpartition(".")[0], spec.origin or "").isdisjoint(found):
                found.append(name)
    return found


def _comes_with_package(name: str) -> bool:
    """Tell whether a module is surely there when the package above it is: that one imports it, or gives it when it is asked for."""
    package, _, child = name.rpartition(".")
    module = sys.modules.get(package)
    if module is None:
        return False
    if name in _imported_by(package, getattr(module, "__file__", None) or ""):
        return True
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return module.__getattr__(child) is sys.modules[name]
    return False


@functools.cache
def _imported_by(package: str, file: str) -> frozenset[str]:
    """Name what the file of a package imports whenever it is executed, as far as it stands there plainly."""
    try:
        tree = syntax_tree(Path(file).read_bytes(), file)
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    found = set[str]()
    for node in tree.body:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join((*above, *filter(None, [node.module])))
            found.update((module, *(f"{module}.{alias.name}" for alias in node.names)))
    return frozenset(found)


def hindrance() -> str:
    """Say why this process must not be forked; empty when nothing speaks against it."""
    if (count := processes.threads()) > 1:
        return f"the process that listings are forked from has {count} threads"
    is_touched = _has_touched_cuda() or cuda_driver.is_initialised() or _is_fork_bad()
    return "the process that listings are forked from has initialised CUDA" if is_touched else ""


def _is_spoilt() -> bool:
    """Tell whether this process must not be forked any more; where no driver of CUDA is loaded, no fork need try that."""
    deadline = time.monotonic() + SETTLES
    while processes.threads() > 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    return processes.threads() > 1 or _has_touched_cuda() or (cuda_driver.library() is not None and bool(hindrance()))


def _is_fork_bad() -> bool:
    """Say whether a fork of this process finds CUDA spoilt: torch itself tells it only there."""
    answer, tell = os.pipe()
    if os.fork() == 0:
        os.write(tell, b"\1" if _has_touched_cuda() else b"\0")
        os._exit(0)
    os.close(tell)
    with os.fdopen(answer, "rb") as stream:
        return stream.read() != b"\0"


def _has_touched_cuda() -> bool:
    cuda = sys.modules.get("torch.cuda")
    return cuda is not None and bool(cuda.is_initialized() or cuda._is_in_bad_fork())


def _start_supervisor(job: Job, caller: socket.socket, events: int, engine: socket.socket) -> None:
    try:
        pid = os.fork()
    except OSError as error:
        wire.send(caller, {"error": str(error)})
        return
    if pid == 0:
        engine.close()
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        supervise(job, caller, events, Nursery(main=_become_main, rank=_become_rank))


def _become_main(birth: Birth) -> NoReturn:
    _refuse_bad_fork()
    spawning.renew({**birth.job.environment, **KEPT})
    main_process.run(birth, forks=True)


def _become_rank(birth: Birth, channel: socket.socket) -> NoReturn:
    _refuse_bad_fork()
    os.close(birth.output)
    spawning.forked_rank(channel, spawning.Setting(birth.job.program.root, birth.stacks, birth.notes, birth.calls, forks=True))


def _refuse_bad_fork() -> None:
    if _has_touched_cuda():
        raise EngineError("CUDA was initialised in the process that has imported torch", right="run with the engine 'fresh'")
