"""The evidence of a listing's ranks, gathered in its main process: when each began and ended, and what they have noted of themselves."""

from __future__ import annotations

import functools
import inspect
import multiprocessing.process
import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rankbook import rank_notes
from rankbook.last_calls import last_call
from rankbook.listing import RankEnd, RankRecord, Receipt, Runtime
from rankbook.rank_notes import BEGAN, BODY, DONE, END, GROUP, NOBODY, SKIP, Note, rank_name

UNSTARTED = "vacuous: it was to start its ranks by torch.multiprocessing, 0 of them here, and none ran"
"""Why what has started none of its ranks has not passed."""


class Observer:
    """What is known of the processes of one program."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.reader = rank_notes.open_pipe()
        self.notes: list[Note] = []
        self.started: dict[int, float] = {}
        """When each process was started."""
        self.gone: dict[int, float] = {}
        """When each process was first seen to have ended."""
        self.daemons: set[int] = set()
        """Processes that nobody need wait for."""
        _watch_processes(self)

    def read(self) -> list[Note]:
        """Give all notes so far."""
        self.notes += self.reader.read()
        return self.notes

    def of(self, records: Sequence[RankRecord], since: float = 0.0) -> list[Note]:
        """Give the notes of ranks, whenever they came, and those since a moment of what is no rank: this process, ranks of ranks."""
        pids = {record.pid for record in records}
        return [note for note in self.read() if note.pid in pids or (note.at >= since and note.pid not in self.started)]

    def end(self, record: RankRecord, notes: Iterable[Note], since: float = 0.0) -> RankEnd:
        """Say how a rank ended, with the moments that its own notes and the main process know, and what it has called since a moment."""
        now = time.monotonic()
        pid = record.pid or 0
        code = record.exit_code()
        gone = now if code is None else record.ended() or self.gone.setdefault(pid, now)
        own = [note for note in notes if note.pid == pid]
        ended = next((note.at for note in own if note.what == END), gone)
        started = self.started.get(pid) or next((note.at for note in own if note.what == BEGAN), self.began)
        entered = next((_seconds(note.at - self.began) for note in reversed(own) if note.what == BODY), None)
        call = last_call(pid)
        is_news = bool(call.name) and call.at >= max(since, started)
        return RankEnd(
            rank_name(record.name),
            code,
            _seconds(started - self.began),
            _seconds(ended - started),
            entered,
            called=str(call) if is_news else "",
            called_at=_seconds(call.at - self.began) if is_news else None,
        )


def _seconds(duration: float) -> float:
    return round(max(0.0, duration), 3)


def _watch_processes(observer: Observer) -> None:
    base = multiprocessing.process.BaseProcess
    plain_start = base.start
    plain_code: Any = inspect.getattr_static(base, "exitcode")

    def start(process: Any) -> None:
        began = time.monotonic()
        plain_start(process)
        observer.started[process.pid] = began
        observer.daemons |= {process.pid} if process.daemon else set()

    def exitcode(process: Any) -> Any:
        code = plain_code.fget(process)
        if code is not None:
            observer.gone.setdefault(process.pid, time.monotonic())
        return code

    base.start = start  # type: ignore[assignment,method-assign]
    base.exitcode = property(exitcode)  # type: ignore[assignment,method-assign]


@functools.cache
def observer() -> Observer:
    """Begin to observe this program, or give what has been observed so far."""
    return Observer()


def begin_test() -> float:
    """Begin to observe a test; gives the moment."""
    observer()
    rank_notes.forget_groups()
    return time.monotonic()


def may_have_entered(records: Sequence[RankRecord], since: float) -> bool:
    """Whether a rank has entered the body of a test, or one of which nothing is known may have.

    Args:
        records: ranks that are processes.
        since: when the test began; ranks that are threads have entered it after that.
    """
    notes = observer().of(records, since)
    unheard = {record.pid for record in records} - {note.pid for note in notes if note.what == BEGAN}
    return bool(unheard) or observer().reader.may_miss or any(note.what == BODY for note in notes)


def started_nobody(since: float) -> bool:
    """Whether this process was to start ranks since a moment, and was told to start 0 of them."""
    return any(note.what == NOBODY and note.pid == os.getpid() and note.at >= since for note in observer().read())


def started_anybody(since: float) -> bool:
    """Whether this process has started a process of `multiprocessing` since a moment."""
    return any(moment >= since for moment in observer().started.values())


def was_cut_off(record: RankRecord) -> bool:
    """Whether a rank is known to have ended without the steps by which an interpreter ends: by `os._exit` or a signal."""
    own = {note.what for note in observer().read() if note.pid == record.pid}
    return BEGAN in own and END not in own and not observer().reader.may_miss


def is_daemon(record: RankRecord) -> bool:
    """Whether a rank is one that nobody need wait for."""
    return record.pid in observer().daemons


def skips(records: Sequence[RankRecord], since: float) -> dict[int, str]:
    """Give by rank why ranks skipped: their own words, which the harness loses."""
    return {note.rank or 0: note.text for note in observer().of(records, since) if note.what == SKIP}


def end_of(record: RankRecord) -> RankEnd:
    """Say how a rank ended."""
    return observer().end(record, observer().read())


def threads_since(since: float) -> tuple[RankEnd, ...]:
    """Give the ranks that were threads of this process since a moment."""
    known = observer()
    own = [note for note in known.read() if note.pid == os.getpid() and note.at >= since]
    left = {note.rank: note.at for note in own if note.what == DONE}
    ends = [
        RankEnd(f"rank {note.rank}", 0 if note.rank in left else None, _seconds(note.at - known.began), _seconds(left[note.rank] - note.at))
        for note in own
        if note.what == BODY and note.rank in left
    ]
    return tuple(sorted(ends, key=lambda end: int(end.name.rpartition(" ")[2])))


def receipt(
    runtime: Runtime,
    records: Sequence[RankRecord] | None = None,
    *,
    since: float = 0.0,
    threads: Sequence[RankEnd] = (),
    world_size: int | None = None,
) -> dict[str, Any]:
    """Give the evidence of a test, or of a whole listing, as the JSON object of a `Receipt`.

    Args:
        runtime: of the program.
        records: its ranks; all that the program has started, when not given.
        since: when it began; what other processes noted before is left out.
        threads: ranks that were threads.
        world_size: what its harness calls its world size.
    """
    records = runtime.ranks if records is None else records
    notes = observer().of(records, since)
    groups = [note for note in notes if note.what == GROUP]
    sizes = [note.size for note in groups] + [world_size or 0]
    return Receipt(
        ranks=(*(observer().end(record, notes, since) for record in records), *threads),
        world_size=max(sizes) or None,
        backend=",".join(sorted({backend for note in groups for backend in note.text.split(",")})),
        device=_device(notes),
        seed=_seed(),
        versions=dict(_versions()),
    ).as_json()


def _device(notes: Iterable[Note]) -> str:
    """Name the kind of device that was used: the accelerator, where any process had one."""
    used = {note.text for note in notes if note.what in (DONE, END)} | {rank_notes.device()}
    return next((name for name in (*rank_notes.ACCELERATORS, "cpu") if name in used), "")


def _seed() -> int | None:
    torch = sys.modules.get("torch")
    return int(torch.initial_seed()) if hasattr(torch, "initial_seed") and torch is not None else None


def _versions() -> Iterator[tuple[str, str]]:
    yield "python", platform.python_version()
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "version"):
        return
    yield "torch", str(torch.__version__)
    if torch.version.cuda:
        yield "cuda", str(torch.version.cuda)
    if nccl := _nccl_version():
        yield "nccl", nccl


@functools.cache
def _nccl_version() -> str:
    """Name the version of NCCL that torch was built with; empty for none. Asking for it touches no GPU."""
    torch: Any = sys.modules["torch"]
    try:
        version = torch.cuda.nccl.version()
    except (AttributeError, RuntimeError):
        return ""
    return ".".join(map(str, version)) if isinstance(version, tuple) else str(version)
