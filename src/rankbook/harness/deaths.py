"""How the ranks of a program ended, and whether anybody has looked: a death that nobody looked at is one that the program hides."""

from __future__ import annotations

import inspect
import multiprocessing.process
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from rankbook.harness import observing
from rankbook.listing import Outcome, RankRecord, Runtime
from rankbook.rank_notes import rank_name

AGREED_SKIPS = range(72, 90)
"""Exit statuses by which a rank of torch's harness says that it skips (`TEST_SKIPS` in `torch/testing/_internal/common_distributed.py`)."""


class Verdict(Struct, frozen=True):
    """What the evidence makes of the end that a test's harness gives it."""

    outcome: Outcome
    reason: str

    @property
    def phase(self) -> str:
        """Outcome of the phase in pytest's words."""
        return "failed" if self.outcome.is_failure else "skipped"


def late_death(records: Sequence[RankRecord], outcome: str) -> tuple[RankRecord, Verdict] | None:
    """Judge ranks that have ended between the end of a test's call and that of its teardown; those of which nobody need know are left out.

    Args:
        records: ranks whose ends nobody has judged yet.
        outcome: of the test so far.
    """
    for record in records:
        if record.pid not in ended | closed and not observing.is_daemon(record) and is_hidden(record, outcome):
            return record, of_death(record, outcome)
    return None


def judged(report: dict[str, Any], records: Sequence[RankRecord], since: float = 0.0) -> dict[str, Any]:
    """Give the report of a program, or of a part of one, as its evidence has it.

    What was to start ranks, and started none, has not passed, nor has what has started one that died, and did not look how that ended.

    Args:
        report: how it ended.
        records: ranks that it has started.
        since: when it began.
    """
    if report["outcome"] != "passed":
        return report
    if not records and observing.started_nobody(since):
        return report | {"outcome": str(Outcome.VACUOUS), "reason": observing.UNSTARTED}
    found = next((of_death(record, "passed", "listing") for record in records if is_hidden(record, "passed")), None)
    return report if found is None else report | {"outcome": str(found.outcome), "reason": found.reason, "text": found.reason}


def running(records: Sequence[RankRecord]) -> list[int]:
    """Give the numbers of the ranks that outlive the tests, and that somebody should wait for.

    Args:
        records: all ranks of the program.
    """
    known = ended | closed | looked_at
    return [
        number
        for number, record in enumerate(records)
        if record.pid not in known and not observing.is_daemon(record) and record.exit_code() is None
    ]


def is_hidden(record: RankRecord, outcome: str) -> bool:
    """Whether a rank has died, and nobody has looked at it."""
    agreed = {*AGREED_SKIPS, -signal.SIGTERM} if outcome == "skipped" else set()
    code = record.exit_code()
    return code not in (None, 0) and code not in agreed and record.pid not in looked_at


def of_death(record: RankRecord, outcome: str, what: str = "test") -> Verdict:
    """Judge a rank that has died.

    Args:
        record: of the rank.
        outcome: of what has started it, so far.
        what: has started it.
    """
    kind = Outcome.FAILED if record.exit_code() in AGREED_SKIPS else Outcome.CRASHED
    return Verdict(kind, f"{death(record)}, but the {what} ended as {outcome}")


def death(record: RankRecord) -> str:
    """Say how and when a rank ended."""
    end = observing.end_of(record)
    return f"{rank_name(record.name)} {_manner(end.exit_code)} {end.duration:.1f} s after its start"


def _manner(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"died by {signal.Signals(-code).name}"
        except ValueError:
            return f"died by signal {-code}"
    return f"left with exit status {code}, a skip," if code in AGREED_SKIPS else f"left with exit status {code},"


# A test that reads a child's exit status, or ends the child itself, knows how it ended; only a death that nobody looked at is hidden.
looked_at: set[int | None] = set()
ended: set[int | None] = set()
closed: set[int | None] = set()
"""Those that their harness ends when a test is over."""
# Torch's harness polls all its ranks but judges only the first; its looks, and those from here, say nothing.
_HARNESS = ("torch.testing._internal.common_distributed", "rankbook.")


def watch_looks(runtime: Runtime) -> None:
    """Note from now on which child processes the tests themselves look at or end; the engine is told that they may die."""
    observing.observer()
    base = multiprocessing.process.BaseProcess
    original: Any = inspect.getattr_static(base, "exitcode")

    def exitcode(process: Any) -> Any:
        code = original.fget(process)
        if code is not None and not _caller_is((*_HARNESS, "multiprocessing.")):
            _note(runtime, process.pid, looked_at)
        return code

    base.exitcode = property(exitcode)  # type: ignore[assignment,method-assign]
    for name in ("terminate", "kill"):
        setattr(base, name, _noting_end(runtime, getattr(base, name)))
    os.kill = _noting_signal(runtime, os.kill)


def _note(runtime: Runtime, pid: int | None, *known: set[int | None]) -> None:
    if pid is not None and any(pid not in noted for noted in known):
        for noted in known:
            noted.add(pid)
        runtime.pardon(pid)


def _noting_end(runtime: Runtime, method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def noting(process: Any) -> Any:
        if _caller_is(_HARNESS):
            closed.add(process.pid)
        else:  # a pool of multiprocessing ends its workers on purpose
            _note(runtime, process.pid, looked_at, ended)
        return method(process)

    return noting


def _noting_signal(runtime: Runtime, kill: Callable[[int, int], None]) -> Callable[[int, int], None]:
    def noting(pid: int, number: int, /) -> None:
        if number and not _caller_is(_HARNESS):
            _note(runtime, pid, looked_at, ended)
        kill(pid, number)

    return noting


def _caller_is(modules: tuple[str, ...]) -> bool:
    name: str = sys._getframe(2).f_globals.get("__name__", "")
    return name.startswith(modules)
