"""Whether a test that its harness calls passed was really run by its ranks.

PyTorch's harnesses pass a test for which they started no rank, and look at no rank's exit status but the first one's. Here both are seen:
the hand-over from the main process to its ranks is watched, and every rank's exit status is read.
"""

from __future__ import annotations

import inspect
import multiprocessing.process
import os
import signal
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

from rankbook.harness.script import rank_name
from rankbook.listing import RankRecord

AGREED_SKIPS = range(72, 90)
"""Exit statuses by which a rank of torch's harness says that it skips (`TEST_SKIPS` in `torch/testing/_internal/common_distributed.py`)."""
JOINS = {"_join_processes": "MultiProcessTestCase", "_join_threads": "MultiThreadedTestCase"}
"""Method by which the main process waits for its ranks, and the harness that has it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the evidence makes of a test that its harness calls passed or skipped."""

    outcome: str
    """`failed` or `skipped`."""
    reason: str
    vacuous: bool = False


class Watch:
    """Watches one test: what its harness waited for, and how its ranks ended.

    Args:
        instance: the test's `unittest.TestCase`, or None.
        before: ranks that were started before the test.
    """

    def __init__(self, instance: Any, before: int) -> None:
        self.instance = instance
        self.before = before
        self.waited_for: int | None = None
        """Ranks that the main process waited for; None while it waited for none and ran the body itself."""
        self.exits: list[tuple[int, object]] = []
        """Ranks that are threads and left by `SystemExit`, with its code."""
        for name in JOINS:
            if instance is not None and hasattr(instance, name):
                self._observe(name)

    def _observe(self, name: str) -> None:
        original: Callable[..., Any] = getattr(self.instance, name)

        def observed(instance: Any, *args: Any) -> Any:
            ranks = args[0] if name == "_join_threads" else instance.processes
            self.waited_for = len(ranks)
            if name != "_join_threads":
                return original(*args)
            with mock.patch.object(type(instance), "_check_return_codes", self._noting_exits()):
                return original(*args)

        setattr(self.instance, name, types.MethodType(observed, self.instance))

    def _noting_exits(self) -> Callable[..., Any]:
        """Give the harness's check of what its threads raised: it passes a test of which one left with a status that is no skip."""
        check = self.instance._check_return_codes

        def noting(failed_ranks: Any, *args: Any) -> Any:
            self.exits = [(rank, raised[1].code) for rank, raised in failed_ranks if isinstance(raised[1], SystemExit)]
            return check(failed_ranks, *args)

        return noting

    def count(self, records: list[RankRecord]) -> int:
        """Give the number of ranks, processes or threads, that the test ran on."""
        own = len(records) - self.before
        return max(own, self.waited_for or 0, len(_class_processes(self.instance)))

    def verdict(self, outcome: str, records: list[RankRecord]) -> Verdict | None:
        """Judge a test that is `passed` or `skipped` so far; None when the evidence agrees."""
        if outcome == "passed" and self._nobody_ran():
            return self._vacuous()
        return self._thread_that_left(outcome) or self._dead_rank(outcome, records[self.before :])

    def _nobody_ran(self) -> bool:
        if self.waited_for is not None:
            return self.waited_for == 0
        rank = getattr(self.instance, "rank", None)
        return _is_continuous(self.instance) and type(rank) is int and rank == -1 and not _class_processes(self.instance)

    def _vacuous(self) -> Verdict:
        size = _world_size(self.instance)
        if size == 0:
            return Verdict(
                "skipped", "vacuous: its world size is 0 here, so the harness started no rank and nothing was tested", vacuous=True
            )
        return Verdict(
            "failed", f"vacuous: the harness started no rank although the world size is {size}; does setUp start them?", vacuous=True
        )

    def _thread_that_left(self, outcome: str) -> Verdict | None:
        for rank, code in self.exits:
            if code not in (None, 0) and code not in AGREED_SKIPS:
                return Verdict("failed", f"rank {rank} left with exit status {code}, but the test ended as {outcome}")
        return None

    def _dead_rank(self, outcome: str, records: list[RankRecord]) -> Verdict | None:
        allowed = _allowed_codes(self.instance, outcome)
        if allowed is None:
            return None
        for record in records:
            code = record.exit_code()
            if code in (None, 0) or code in allowed or _was_looked_at(record):
                continue
            return Verdict("failed", f"{rank_name(record.name)} {_death(code)}, but the test ended as {outcome}")
        return None


def class_verdict(cls: type | None, records: list[RankRecord], before: int) -> str | None:
    """Judge the ranks that a whole class shared, once they have ended: a sentence when one died."""
    if cls is None or not any(base.__name__ == "MultiProcContinuousTest" for base in cls.__mro__):
        return None
    for record in records[before:]:
        code = record.exit_code()
        if code not in (None, 0):
            return f"{rank_name(record.name)} of {cls.__name__} {_death(code)}"
    return None


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"died by {signal.Signals(-code).name}"
        except ValueError:
            return f"died by signal {-code}"
    return f"left with exit status {code}"


def _harness(instance: Any) -> set[str]:
    return {base.__name__ for base in type(instance).__mro__} if instance is not None else set()


def _is_continuous(instance: Any) -> bool:
    return "MultiProcContinuousTest" in _harness(instance)


def _class_processes(instance: Any) -> list[Any]:
    return list(getattr(type(instance), "processes", None) or []) if _is_continuous(instance) else []


def _world_size(instance: Any) -> int | None:
    try:
        return int(instance.world_size)
    except Exception:  # noqa: BLE001 - a property of the test may do anything
        return None


def _allowed_codes(instance: Any, outcome: str) -> set[int] | range | None:
    """Exit statuses besides 0 that are no death; None when the test says that it expects deaths."""
    if getattr(instance, "skip_return_code_checks", None) or getattr(instance, "special_return_code_checks", None):
        return None
    if outcome == "skipped":
        return {*AGREED_SKIPS, -signal.SIGTERM}
    return set()


# A test that reads a child's exit status, or ends the child itself, knows how it ended; only a death that nobody looked at is hidden.
_looked_at: set[int] = set()
# Torch's harness polls all its ranks but judges only the first; its looks, and those from here, say nothing.
_HARNESS = ("torch.testing._internal.common_distributed", "rankbook.")


def watch_looks() -> None:
    """Note from now on which child processes the tests themselves look at or end."""
    base = multiprocessing.process.BaseProcess
    original: Any = inspect.getattr_static(base, "exitcode")

    def exitcode(process: Any) -> Any:
        if not _reads_of_harness():
            _looked_at.add(process.pid)
        return original.fget(process)

    base.exitcode = property(exitcode)  # type: ignore[assignment,method-assign]
    for name in ("terminate", "kill"):
        setattr(base, name, _noting_end(getattr(base, name)))
    os.kill = _noting_signal(os.kill)


def _noting_end(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def noting(process: Any) -> Any:
        if not _caller_is(_HARNESS):  # a pool of multiprocessing ends its workers on purpose
            _looked_at.add(process.pid)
        return method(process)

    return noting


def _noting_signal(kill: Callable[[int, int], None]) -> Callable[[int, int], None]:
    def noting(pid: int, number: int, /) -> None:
        if number and not _caller_is(_HARNESS):
            _looked_at.add(pid)
        kill(pid, number)

    return noting


def _reads_of_harness() -> bool:
    return _caller_is((*_HARNESS, "multiprocessing."), 3)


def _caller_is(modules: tuple[str, ...], depth: int = 2) -> bool:
    name: str = sys._getframe(depth).f_globals.get("__name__", "")
    return name.startswith(modules)


def _was_looked_at(record: RankRecord) -> bool:
    return record.pid in _looked_at
