"""Flight records: what torch's recorder wrote of each rank's collectives on GPUs, told in a sentence per rank."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

TRACE, PIPE = "trace_rank_", "dump_rank_"
"""Beginnings of the names of a rank's record, and of the pipe through which it is asked for one."""
LIMIT = 2.0
"""Seconds that ranks have to write their records when asked."""
UNDER_WAY = ("scheduled", "started")
_MOST = 64 * 1024 * 1024


class _Plain(pickle.Unpickler):
    """Reads numbers, texts, lists and tables; a record holds nothing else, and nothing else is made from it."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"a flight record holds no {module}.{name}")


def ask(traces: Path) -> None:
    """Have the ranks that record write what they have, and wait for it a moment."""
    asked = [path for path in _files(traces, PIPE) if _write(path)]
    end = time.monotonic() + LIMIT
    while len(list(_files(traces, TRACE))) < len(asked) and time.monotonic() < end:
        time.sleep(0.05)


def _write(pipe: Path) -> bool:
    with contextlib.suppress(OSError):
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.write(descriptor, b"1\n") > 0
        finally:
            os.close(descriptor)
    return False


def sentences(traces: Path) -> Iterator[str]:
    """Say of each rank that has a record what it had under way: `rank 0 has all_reduce, its collective 7, started`."""
    for path in _files(traces, TRACE):
        rank = re.search(r"\d+", path.name)
        record = _read(path)
        if rank and record is not None:
            yield f"rank {rank[0]} {_phrase(record)}"


def _files(traces: Path, start: str) -> list[Path]:
    with contextlib.suppress(OSError):
        found = [path for path in traces.iterdir() if path.name.startswith(start)]
        return sorted(found, key=lambda path: [int(number) for number in re.findall(r"\d+", path.name)])
    return []


def _read(path: Path) -> Mapping[str, Any] | None:
    with contextlib.suppress(Exception):  # a record may be cut off, or of another version
        if path.stat().st_size <= _MOST:
            with path.open("rb") as stream:
                record = _Plain(stream).load()
            return record if isinstance(record, dict) else None
    return None


def _phrase(record: Mapping[str, Any]) -> str:
    entries = [entry for entry in record.get("entries") or () if isinstance(entry, dict)]
    if not entries:
        return "has recorded no collective"
    waiting = next((entry for entry in entries if entry.get("state") in UNDER_WAY), None)
    entry = waiting or entries[-1]
    name = str(entry.get("profiling_name", "a collective")).partition(":")[2] or str(entry.get("profiling_name", "a collective"))
    number = f", its collective {entry['collective_seq_id']}" if entry.get("collective_seq_id") else ""
    return f"has {name}{number}, {entry['state']}" if waiting else f"has completed {name}{number}, and begun no other"
