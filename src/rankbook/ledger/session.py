"""The runs of one session, written as they come: whoever is killed loses the last moment and no more."""

from __future__ import annotations

import platform
import secrets
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from rankbook.errors import LedgerError
from rankbook.ledger import rows
from rankbook.ledger.tables import writing
from rankbook.ledger.values import Values, values_of
from rankbook.listing import Outcome, Run

SHARE = 20
"""After a write the next one waits so many times as long as it took: one part in so many of the time goes into writing."""
LONGEST = 0.5
"""Seconds that it waits at most."""
MOST = 100
"""Runs that are written at once, however soon after the last write."""
AGAIN = 10.0
"""Seconds until a write that failed is tried again."""


class Session:
    """One session: a run of pytest, on one machine.

    A write that fails is tried again later; what is still not written at the end is named by `close`.

    Args:
        path: file of the ledger.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.key = _new_id()
        self._waiting: list[Values] = []
        self._due = 0.0
        """Time of the monotonic clock before which a few runs are not written."""
        self._failed = False
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None
        """Writes what waits when nothing else comes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def record(self, run: Run) -> None:
        """Add a run, and write it unless others are about to come; what was proved earlier is in the ledger already."""
        if run.outcome is Outcome.PROVED:
            return
        with self._lock:
            self._waiting.append(self._values(run))
            if time.monotonic() >= self._due or (len(self._waiting) >= MOST and not self._failed):
                self._try()
            if self._waiting and self._timer is None:
                self._timer = threading.Timer(max(0.0, self._due - time.monotonic()), self._in_time)
                self._timer.daemon = True
                self._timer.start()

    def flush(self) -> None:
        """Write what waits.

        Raises:
            LedgerError: the file is no ledger, is of a newer format, or cannot be written.
        """
        with self._lock:
            start = time.monotonic()
            if self._waiting:
                with writing(self.path) as connection:
                    rows.add(connection, self._waiting)
                self._waiting.clear()
            self._failed = False
            self._due = time.monotonic() + min(LONGEST, SHARE * (time.monotonic() - start))

    def close(self) -> None:
        """Write what waits for the last time.

        Raises:
            LedgerError: the file is no ledger, is of a newer format, or cannot be written.
        """
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self.flush()

    def write(self, runs: Iterable[Run]) -> None:
        """Add runs at once, all or none.

        Raises:
            LedgerError: the file is no ledger, is of a newer format, or cannot be written.
        """
        values = [self._values(run) for run in runs]
        with writing(self.path) as connection:
            rows.add(connection, values)

    def _in_time(self) -> None:
        with self._lock:
            self._timer = None
            if self._waiting:
                self._try()

    def _try(self) -> None:
        try:
            self.flush()
        except LedgerError:
            self._failed = True
            self._due = time.monotonic() + AGAIN

    def _values(self, run: Run) -> Values:
        values = values_of(run)
        receipt = values.get("receipt", {})
        # Not every run says it: one whose process died could not.
        versions = {"python": platform.python_version(), **receipt.get("versions", {})}
        when = run.when or datetime.now(UTC).isoformat(timespec="seconds")
        return {**values, "receipt": {**receipt, "versions": versions}, "when": when, "id": _new_id(), "session": self.key}


_last = 0


def _new_id() -> str:
    """Make an id that nothing else has, and that is greater than the last one of this process."""
    global _last  # noqa: PLW0603 - the order of ids is that of the whole process
    _last = max(_last + 1, time.time_ns())
    return f"{_last:016x}{secrets.token_hex(8)}"
