"""Whether a test that its harness calls passed was really run by its ranks.

PyTorch's harnesses pass a test for which they started no rank, and look at no rank's exit status but the first one's. Here both are seen:
the hand-over from the main process to its ranks is watched, and every rank's exit status is read.
"""

from __future__ import annotations

import inspect
import signal
import types
import unittest
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import pytest
from msgspec.structs import replace

from rankbook.harness import deaths, observing, rounds, script, world_size
from rankbook.harness.deaths import AGREED_SKIPS, Verdict
from rankbook.listing import Outcome, RankEnd, RankRecord, Runtime

NAMELESS_SKIP = 86
"""The one of them by which a rank says that its test raised `SkipTest`; the reason is lost."""
TEST_ERROR = 10
"""Exit status of a rank whose test raised an error. The harness then ends the others by SIGTERM, and some abort by themselves."""
JOINS = {"_join_processes": "MultiProcessTestCase", "_join_threads": "MultiThreadedTestCase"}
"""Method by which the main process waits for its ranks, and the harness that has it."""
CONTINUOUS = ("MultiProcContinuousTest", "MultiProcContinousTest")
"""Harness that keeps its ranks for a whole class, also as torch spelled it up to 2.6."""
MARK = "vacuous: it is a mark of pytest that was put on nothing, so nothing was tested"
"""What is said of `@pytest.mark.slow` above a decorator that returns None: it gives what can be called, which unittest takes for a test."""
GAVE_UP = "Previous test failed"
"""How the reason begins with which that harness skips what comes after a failure."""


class Watch:
    """Watches one test: what its harness waited for, and how its ranks ended.

    Args:
        instance: the test's `unittest.TestCase`, or None.
        test: its function or method.
        runtime: of the program.
        before: ranks that were started before the test.
    """

    def __init__(self, instance: Any, test: Any, runtime: Runtime, before: int) -> None:
        self.instance = instance
        self.test = test
        self.runtime = runtime
        self.before = before
        self.since = observing.begin_test()
        self.waited_for: int | None = None
        """Ranks that the main process waited for; None while it waited for none and ran the body itself."""
        self.body: Any = None
        """What the harness has the ranks run."""
        self.left: dict[int, BaseException] = {}
        """Ranks that are threads and left by an exception."""
        self.was_given_up = False
        """Whether the harness skipped it because another test had failed."""
        for name in JOINS:
            if instance is not None and hasattr(instance, name):
                self._observe(name)

    def _observe(self, name: str) -> None:
        original: Callable[..., Any] = getattr(self.instance, name)

        def observed(instance: Any, *args: Any) -> Any:
            __tracebackhide__ = True
            ranks = args[0] if name == "_join_threads" else instance.processes
            self.waited_for = len(ranks)
            self.body = args[-1] if args else None
            if self.expects_deaths():
                self.runtime.pardon(None)
            if name != "_join_threads":
                return original(*args)
            with mock.patch.object(type(instance), "_check_return_codes", self._noting_exits()):
                return original(*args)

        setattr(self.instance, name, types.MethodType(observed, self.instance))

    def _noting_exits(self) -> Callable[..., Any]:
        """Give the harness's check of what its threads raised: it passes a test of which one left with a status that is no skip."""
        check = self.instance._check_return_codes

        def noting(failed_ranks: Any, *args: Any) -> Any:
            self.left = {rank: raised[1] for rank, raised in failed_ranks}
            return check(failed_ranks, *args)

        return noting

    # What is known of its ranks

    def records(self) -> list[RankRecord]:
        """Give the ranks that are processes: those that the test started, and those that its class shares."""
        shared = {process.pid for process in _class_processes(self.instance)}
        known = self.runtime.ranks
        return [record for number, record in enumerate(known) if number >= self.before or record.pid in shared]

    def threads(self) -> tuple[RankEnd, ...]:
        """Give the ranks that are threads."""
        codes = {f"rank {rank}": _status(error) for rank, error in self.left.items()}
        return tuple(replace(end, exit_code=codes.get(end.name, end.exit_code)) for end in observing.threads_since(self.since))

    def evidence(self) -> dict[str, Any]:
        """Give what an event says of the ranks, processes or threads, that the test ran on."""
        if self.was_given_up:
            return {"ranks": 0}
        size = world_size.effective(self.instance) if _is_of_ranks(self.instance) else None
        records = self.records()
        receipt = observing.receipt(self.runtime, records, since=self.since, threads=self.threads(), world_size=size)
        return {"ranks": max(len(records), self.waited_for or 0), "receipt": receipt}

    # Judgement

    def verdict(self, outcome: str) -> Verdict | None:
        """Judge a test that is `passed`, `skipped` or `failed` so far; None when the evidence agrees."""
        if outcome == "failed":
            return self._failed_by_death()
        if outcome == "passed" and (self._is_mark() or self._nobody_ran()):
            return self._vacuous()
        if outcome == "passed" and not self.waited_for and not self.records():
            if observing.started_nobody(self.since):
                return Verdict(Outcome.VACUOUS, observing.UNSTARTED)
            if not observing.started_anybody(self.since) and rounds.is_to_start(self.test):
                return Verdict(Outcome.VACUOUS, rounds.UNSTARTED)
        found = self._thread_that_left(outcome) or self._dead_rank(outcome)
        if found is None and outcome == "passed":
            return self._nobody_entered() or self._degenerate()
        return found

    def _is_mark(self) -> bool:
        return callable(self.test) and isinstance(inspect.unwrap(self.test), pytest.MarkDecorator)

    def _nobody_ran(self) -> bool:
        if self.waited_for is not None:
            return self.waited_for == 0
        rank = getattr(self.instance, "rank", None)
        return _is_continuous(self.instance) and type(rank) is int and rank == -1 and not _class_processes(self.instance)

    def _vacuous(self) -> Verdict:
        if self._is_mark():
            return Verdict(Outcome.VACUOUS, MARK)
        size = world_size.effective(self.instance)
        if size == 0:
            return Verdict(Outcome.VACUOUS, "vacuous: its world size is 0 here, so the harness started no rank and nothing was tested")
        return Verdict(Outcome.FAILED, f"vacuous: the harness started no rank although the world size is {size}; does setUp start them?")

    def _nobody_entered(self) -> Verdict | None:
        """Judge ranks that were started and ended well, but of which none has entered the test's body."""
        if not self.waited_for or not hasattr(getattr(type(self.instance), "join_or_run", None), "__wrapped__"):
            return None
        records = self.records()
        if observing.may_have_entered(records, self.since):
            return None
        ranks = "its rank" if self.waited_for == 1 else f"each of its {self.waited_for} ranks"
        return Verdict(Outcome.VACUOUS, f"vacuous: {ranks} ended well without having entered the test")

    def _degenerate(self) -> Verdict | None:
        ranks = len(_class_processes(self.instance)) if _is_continuous(self.instance) else self.waited_for
        if ranks != 1 or world_size.is_one_on_purpose(self.instance):
            return None
        return Verdict(Outcome.DEGENERATE, "degenerate: it passed at world size 1, where nothing passes between ranks")

    def _thread_that_left(self, outcome: str) -> Verdict | None:
        for rank, error in self.left.items():
            code = script.exit_status(error) if isinstance(error, SystemExit) else 0
            if code and code not in AGREED_SKIPS:
                return Verdict(Outcome.CRASHED, f"rank {rank} left with exit status {code}, but the test ended as {outcome}")
        return None

    def _dead_rank(self, outcome: str) -> Verdict | None:
        if self.expects_deaths():
            return None
        return next(
            (deaths.of_death(record, outcome) for record in self.runtime.ranks[self.before :] if deaths.is_hidden(record, outcome)), None
        )

    def _failed_by_death(self) -> Verdict | None:
        """Judge a test that failed: where a rank died, that is the reason, and errors of the others are what came of it."""
        records = self.records()
        others_failed = any(record.exit_code() == TEST_ERROR for record in records)
        harmless = {-signal.SIGTERM, -signal.SIGABRT} if others_failed else {-signal.SIGTERM}
        for record in records:
            code = record.exit_code()
            if code in (None, 0, TEST_ERROR) or code in harmless or code in AGREED_SKIPS or record.pid in deaths.ended:
                continue
            if code < 0 or observing.was_cut_off(record):
                return Verdict(Outcome.CRASHED, deaths.death(record))
        return None

    def expects_deaths(self) -> bool:
        """Whether the test says that ranks may end anyhow, or judges itself how they end."""
        listed = any(_holds(self.instance, name, self.body) for name in ("skip_return_code_checks", "special_return_code_checks"))
        return listed or _judges_ends(self.instance)

    def skip_reason(self) -> str:
        """Give the ranks' own reasons for a skip of which the harness has lost them; empty when it has not."""
        said = {rank: str(error) for rank, error in self.left.items() if isinstance(error, unittest.SkipTest)}
        records = [record for record in self.records() if record.exit_code() == NAMELESS_SKIP]
        said |= observing.skips(records, self.since) if records else {}
        if len(set(said.values())) <= 1:
            return next(iter(said.values()), "")
        return "; ".join(f"rank {rank}: {reason}" for rank, reason in sorted(said.items()))

    def gave_up(self, reason: str, failed: str) -> Verdict | None:
        """Judge a test that its harness skipped because another of its class had failed.

        Args:
            reason: of the skip.
            failed: the first test of the class that failed.
        """
        if not _is_continuous(self.instance) or not reason.startswith(GAVE_UP):
            return None
        self.was_given_up = True
        return Verdict(Outcome.NOT_RUN, f"not run: its harness gives up a class after a failure, and {failed or 'another test'} had failed")


def class_verdict(cls: type | None, records: Sequence[RankRecord], before: int, blamed: set[int]) -> Verdict | None:
    """Judge the ranks that a whole class shared, once they have ended.

    Args:
        cls: the class.
        records: all ranks of the program.
        before: how many there were before the class.
        blamed: ranks, by process id, for whose death a test of the class has answered.
    """
    if cls is None or not any(base.__name__ in CONTINUOUS for base in cls.__mro__):
        return None
    for record in records[before:]:
        if record.exit_code() not in (None, 0) and record.pid not in blamed | deaths.ended:
            return Verdict(Outcome.CRASHED, f"{deaths.death(record)}: it served all tests of {cls.__name__}")
    return None


def _status(error: BaseException) -> int:
    """Give the exit status that a process would have had that left by an exception."""
    if isinstance(error, unittest.SkipTest):
        return NAMELESS_SKIP
    if isinstance(error, SystemExit):
        return script.exit_status(error)
    return TEST_ERROR


def _harness(instance: Any) -> set[str]:
    return {base.__name__ for base in type(instance).__mro__} if instance is not None else set()


def _is_continuous(instance: Any) -> bool:
    return not _harness(instance).isdisjoint(CONTINUOUS)


def _is_of_ranks(instance: Any) -> bool:
    return not _harness(instance).isdisjoint((*JOINS.values(), *CONTINUOUS))


def _class_processes(instance: Any) -> list[Any]:
    return list(getattr(type(instance), "processes", None) or []) if _is_continuous(instance) else []


def _judges_ends(instance: Any) -> bool:
    """Whether a class of the test's own has replaced the harness's check of how its ranks end."""
    owner = next((base for base in type(instance).__mro__ if "_check_return_codes" in vars(base)), None)
    return owner is not None and not owner.__module__.startswith("torch.testing.")


def _holds(instance: Any, name: str, body: Any) -> bool:
    """Whether a collection of the harness holds what the ranks run."""
    return body is not None and body in (getattr(instance, name, None) or ())
