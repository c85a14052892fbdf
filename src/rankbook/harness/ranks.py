"""One listing on several ranks: a process for each, with the environment that torchrun gives."""

from __future__ import annotations

import math
import multiprocessing
import multiprocessing.connection
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from rankbook.harness import observing, outputs, script
from rankbook.last_calls import last_call
from rankbook.listing import Runtime

MESSAGE_SHOWN = 7_000
"""Characters of a rank's message, and of its traceback, that travel: both, of four bytes each, are less than a pipe holds, so that a
dying rank never waits for its reader."""
SKIPPED = 86
"""Exit status of a rank that skips, as in torch's own harness."""
PATIENCE = 90.0
"""Seconds after a death in which the engine may end the others, with their stacks; then they are ended here. At most half of the listing's
timeout: what died shall not count as hung."""

SKIP_PATIENCE = 30.0
"""Seconds in which the other ranks may still fail when one has skipped: they may as well wait for it."""


class Order(Struct, frozen=True):
    """What each rank of a listing is told besides its place."""

    path: str
    raises: str = ""
    backend: str = ""
    """Of the process group that is made for it; empty when none is."""
    printed: str = ""
    """Folder that takes a file per rank with what it prints; empty when that is of no interest."""


class Launch(Struct):
    """A listing that runs on a number of ranks.

    Args:
        order: what they are told.
        count: the number.
        runtime: of the program.
        timeout: of the program, in seconds.
    """

    order: Order
    count: int
    runtime: Runtime
    timeout: float
    processes: list[Any] = field(default_factory=list)
    errors: list[Any] = field(default_factory=list)
    """What each of them tells of its end; up until the last has ended, for one that begins late finds no queue that is gone."""
    store: Any = None
    """Where they meet; up until the last has ended, or one that waits there would come to an end of its own."""

    def run(self) -> dict[str, Any] | None:
        """Start the ranks and wait for them; gives what is wrong as soon as one has ended badly, None when all have ended well."""
        import torch.distributed as dist

        first = len(self.runtime.ranks)
        # As under torchrun, the store is up before the ranks are: no two listings can race for a port.
        self.store = dist.TCPStore("127.0.0.1", 0, self.count, is_master=True, wait_for_workers=False)
        context = multiprocessing.get_context("spawn")
        errors = self.errors = [context.SimpleQueue() for _ in range(self.count)]
        self.processes = [
            context.Process(target=rank_main, name=f"rank {rank}", args=(self.order, rank, self.count, self.store.port, errors[rank]))
            for rank in range(self.count)
        ]
        for process in self.processes:
            process.start()
        self.runtime.emit({"type": "alive"})
        failed = self._wait()
        if failed is None:
            return None
        # A death is something heard: what follows it has the listing's whole timeout, however late it came.
        self.runtime.emit({"type": "alive"})
        raised = {} if errors[failed].empty() else errors[failed].get() or {}
        return self._failure(failed, raised, self.runtime.ranks[first + failed])

    def _wait(self) -> int | None:
        """Wait for all ranks; give the first that ended badly as soon as it did, or one that skipped when no other has failed by then."""
        waiting = dict(enumerate(self.processes))
        skipped: int | None = None
        end = math.inf
        while waiting and (rest := end - time.monotonic()) > 0:
            multiprocessing.connection.wait([process.sentinel for process in waiting.values()], None if skipped is None else rest)
            ended = {rank: process.exitcode for rank, process in waiting.items() if process.exitcode is not None}
            waiting = {rank: process for rank, process in waiting.items() if rank not in ended}
            skips = [rank for rank, code in ended.items() if code == SKIPPED and self._has_reported(rank)]
            # Where several have ended at once, the one that died by a signal is the cause.
            failed = sorted(
                (code >= 0, rank) for rank, code in ended.items() if rank not in skips and (code or not self._has_reported(rank))
            )
            if failed:
                return failed[0][1]
            if skips and skipped is None:
                skipped, end = skips[0], time.monotonic() + min(SKIP_PATIENCE, self.timeout / 2)
            for rank in skips:  # the others may wait for it, which is no failure
                self.runtime.pardon(self.processes[rank].pid)
        return skipped

    def _has_reported(self, rank: int) -> bool:
        """Tell whether a rank that left with exit status 0 has come to the end of the listing."""
        return not self.errors[rank].empty()

    def _failure(self, rank: int, raised: Mapping[str, Any], record: Any) -> dict[str, Any]:
        if raised.get("outcome") == "skipped":
            return dict(raised)
        if raised:
            return {**raised, "reason": f"rank {rank} of {self.count}: {raised['reason']}"}
        end = observing.end_of(record)
        reason = f"rank {rank} of {self.count} {script.death(end.exit_code)} after {end.duration:.1f} s"
        reason += "" if end.exit_code else ", before the end of the listing"
        return {"outcome": "crashed", "reason": reason, "text": reason}

    def wait_for_engine(self) -> str:
        """Let the engine end the ranks that still run when one has died without a word, and say what each was doing: it has more to say.

        Returns:
            Clauses about those that it has left alone, each behind a semicolon: nothing that it knows as waiting for the dead one.
        """
        end = time.monotonic() + min(PATIENCE, self.timeout / 2)
        while (rest := end - time.monotonic()) > 0 and (living := self._living()):
            multiprocessing.connection.wait([process.sentinel for process in living], rest)
        return "".join(map(self._doing, self._living()))

    def _living(self) -> list[Any]:
        return [process for process in self.processes if process.exitcode is None]

    def _doing(self, process: Any) -> str:
        """Say what a rank has called last, and have it write where it is."""
        sys.stderr.write(f"{process.name} still ran, and was ended:\n")
        sys.stderr.flush()
        self.runtime.show(process.pid)
        call = last_call(process.pid)
        return f"; {process.name} still ran{f', and had called {call} last' if call.name else ''}"

    def end(self) -> None:
        """End the ranks that still run."""
        self.runtime.pardon(None)
        for process in self.processes:
            process.kill()
            process.join()


def environment(rank: int, count: int, port: int) -> dict[str, str]:
    """Give the environment that torchrun gives to a rank on one machine."""
    return {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count),
        "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", "ROLE_RANK": str(rank), "ROLE_WORLD_SIZE": str(count), "ROLE_NAME": "default",
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RUN_ID": "rankbook", "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": os.environ.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }  # fmt: skip


def backend_for(backend: str, count: int, gpus: tuple[str, ...] | None) -> str:
    """Choose the backend of a process group: the one that is named, else `nccl` where each rank has a GPU, else `gloo`."""
    return backend or ("nccl" if len(gpus or ()) >= count else "gloo")


def rank_main(order: Order, rank: int, count: int, port: int, errors: Any) -> None:
    """Run a listing as one rank."""
    os.environ |= environment(rank, count, port)
    path = Path(order.path)
    if order.printed:
        sys.stdout.flush()
        descriptor = os.open(outputs.file_of(order.printed, rank), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(descriptor, 1)
        os.close(descriptor)
    own = os.getpid()
    failure = script.outcome_of(lambda: _begin(order), path, order.raises) or _end(order)
    if os.getpid() != own:  # what the rank has forked does not speak for it
        raise SystemExit(failure.get("status", 1) if failure else 0)
    if failure is None:
        errors.put(None)
        return
    text = failure.get("text", "")
    errors.put(failure | {"reason": failure["reason"][:MESSAGE_SHOWN], "text": text[-MESSAGE_SHOWN:]})
    if failure["outcome"] != "skipped":
        sys.stderr.write(text.rstrip() + "\n")
    sys.stderr.flush()
    sys.stdout.flush()
    raise SystemExit(SKIPPED if failure["outcome"] == "skipped" else failure.get("status", 1))


def _begin(order: Order) -> None:
    if order.backend:
        import torch
        import torch.distributed as dist

        if "nccl" in order.backend:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        dist.init_process_group(order.backend)
        _meet()
    script.run_as_main(Path(order.path))


def _meet() -> None:
    """Wait until all ranks have their process group: one that came to its end before would cut off those that still connect to it."""
    import torch.distributed as dist

    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    store.set(f"rankbook/{dist.get_rank()}", "")
    store.wait([f"rankbook/{rank}" for rank in range(dist.get_world_size())])


def _end(order: Order) -> dict[str, Any] | None:
    """Destroy the process group that was made for the listing."""
    if not order.backend:
        return None
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()
    return None
