"""The roll of a program's ranks: who was started when, and how each ended."""

from __future__ import annotations

import time
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from rankbook.last_calls import last_call
from rankbook.listing import RankEnd
from rankbook.rank_notes import rank_name

AGREED = range(72, 90)
"""Exit statuses by which a rank of torch's harness says that it skips."""


class Entry(Struct):
    """One rank."""

    name: str
    started: float
    own: bool = True
    """Whether the main process started it; the ranks of ranks are not on the record."""
    orderly: bool = False
    """Whether it came to its own end, or whether that cannot be known; `os._exit` is none."""
    ended: float | None = None
    code: int | None = None
    pardoned: bool = False
    """Whether its death is no news."""

    @property
    def is_death(self) -> bool:
        """Whether it ended in a way that others may not have noticed."""
        if self.ended is None or self.pardoned or self.code is None or self.code in AGREED:
            return False
        return self.code != 0 or not self.orderly


class Roll:
    """The ranks of one program, by process id.

    Args:
        calls: descriptor of the file that keeps the last call of each process.
    """

    def __init__(self, calls: int = -1) -> None:
        self._calls = calls
        self._began = time.monotonic()
        self._since = 0.0
        self._entries: list[tuple[int, Entry]] = []
        self._living: dict[int, Entry] = {}
        self._closed: float | None = None
        self._early: set[int] = set()
        """Processes that came to their own end, as far as they were no ranks yet."""

    def enter(self, pid: int, name: str, *, own: bool, orderly: bool = False) -> None:
        """Note the start of a rank.

        Args:
            pid: its process id.
            name: name of its process.
            own: whether the main process started it.
            orderly: whether nothing will tell of its own end.
        """
        entry = self._living[pid] = Entry(rank_name(name), self._now(), own, orderly or pid in self._early)
        self._early.discard(pid)
        self._entries.append((pid, entry))

    def order(self, pid: int) -> None:
        """Note that a process has come to its own end; one that is short-lived may say so before its parent tells of its start."""
        if pid in self._living:
            self._living[pid].orderly = True
        else:
            self._early.add(pid)

    def leave(self, pid: int, code: int | None) -> bool:
        """Note how a rank ended; says whether it was one, and that was not known."""
        entry = self._living.get(pid)
        if entry is None or self._closed is not None:
            return False
        if entry.ended is None:
            entry.ended = self._now()
        entry.code = code
        if code is not None:
            del self._living[pid]
        return True

    def pardon(self, pid: int | None) -> None:
        """Expect the death of a rank, or of all so far."""
        for number, entry in self._entries:
            if pid is None or number == pid:
                entry.pardoned = True

    def forget(self) -> None:
        """Let the deaths and calls so far be no news: another test has begun."""
        self._since = self._now()
        for _, entry in self._entries:
            entry.pardoned |= entry.ended is not None

    def close(self) -> bool:
        """Note that from now on ranks are ended by force; says whether that is new."""
        if self._closed is not None:
            return False
        self._closed = self._now()
        return True

    def death(self) -> Entry | None:
        """Give the first rank whose death is news; signals come before exit statuses, and 0 comes last."""
        deaths = [entry for _, entry in self._entries if entry.own and entry.is_death]
        return min(deaths, key=lambda entry: ((entry.code or 0) >= 0, entry.code == 0, entry.ended), default=None)

    def name(self, pid: int) -> str | None:
        """Give the name of a rank."""
        return next((entry.name for number, entry in reversed(self._entries) if number == pid), None)

    def pids(self) -> set[int]:
        """Give the process ids of all ranks that there were."""
        return {pid for pid, _ in self._entries}

    def is_empty(self) -> bool:
        """Whether no rank lives."""
        return not self._living

    def ends(self) -> list[dict[str, Any]]:
        """Give the ends of the main process's ranks, oldest first, as plain data."""
        return [self._end(pid, entry) for pid, entry in self._entries if entry.own]

    def end_of(self, entry: Entry) -> dict[str, Any]:
        """Give the end of one rank as plain data."""
        return next(self._end(pid, own) for pid, own in self._entries if own is entry)

    def _end(self, pid: int, entry: Entry) -> dict[str, Any]:
        last = entry.ended if entry.ended is not None else self._closed if self._closed is not None else self._now()
        code = entry.code if entry.ended is not None else None
        seen = last_call(pid, self._calls)
        entered, at = seen.entered - self._began, seen.at - self._began
        is_news = bool(seen.name) and at >= max(self._since, entry.started)
        return asdict(
            RankEnd(
                entry.name,
                code,
                round(entry.started, 3),
                round(max(0.0, last - entry.started), 3),
                round(entered, 3) if entered > max(self._since, entry.started) else None,
                called=str(seen) if is_news else "",
                called_at=round(at, 3) if is_news else None,
            )
        )

    def _now(self) -> float:
        return time.monotonic() - self._began
