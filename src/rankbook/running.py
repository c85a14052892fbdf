"""A listing under way: events of its program become reports of its tests, whatever becomes of its processes."""

from __future__ import annotations

import shutil
import signal
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from rankbook.jobs import Job
from rankbook.listing import Ended, Engine, Execution, Outcome, Program, RankEnd
from rankbook.reports import PASSED, Report, abnormal, broken_pytest, on_page, report_of, said_of

PHASES = ("setup", "call", "teardown")

_RED = (1, 2, 3, 4)
"""Exit statuses of a pytest that was not content."""

Key = tuple[str, str]
"""A test (`""` for a whole listing) and a phase of it."""


class Start(Struct, frozen=True):
    """How a listing begins, now that it is its turn."""

    program: Program
    modules: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each file beside it, by path."""


class Running:
    """The tests of a listing that share a process; a thread of the scheduler runs it, other threads wait for its reports.

    A test that takes its process with it costs itself: the tests behind it are run in a new process. So are those that their harness
    gives up because another test has failed before them.

    Args:
        job: what runs.
        ids: tests to run, in order; empty for a listing without tests.
        engine: gives the engine when it is wanted.
        begin: makes the program of the tests that are still waiting, for the GPUs that were granted.
        gpu_names: what each GPU is, by its id.
    """

    def __init__(
        self,
        job: Job,
        ids: tuple[str, ...],
        engine: Callable[[], Engine],
        begin: Callable[[list[str], tuple[str, ...] | None], Start],
        gpu_names: Mapping[str, str],
    ) -> None:
        self.job = job
        self.ids = ids
        self.waiting = list(ids) or [""]
        self.reports: dict[Key, Report] = {}
        self.modules: Mapping[str, str] = {}
        self.granted: tuple[str, ...] | None = None
        self._engine = engine
        self._begin = begin
        self._gpu_names = gpu_names
        self._changed = threading.Condition()
        self._done = False
        self._stopping = False
        self._error: BaseException | None = None
        self._again: list[str] = []
        """Tests that their harness gave up, for a process of their own."""
        self._execution: Execution | None = None
        self._where: dict[str, Any] = {}
        """Of a receipt: the engine that really runs it, why, how its ports are kept apart, on which node."""
        self._last: str | None = None

    def run(self, granted: tuple[str, ...] | None) -> None:
        """Run it to its end, in the thread that calls.

        Args:
            granted: GPUs that it may use, as `CUDA_VISIBLE_DEVICES` names them; None where there are none.
        """
        self.granted = granted
        try:
            while self.waiting and not self._stopping:
                self._run_once()
        except BaseException as error:  # noqa: BLE001  it is raised where somebody waits for the reports
            self._error = error
        finally:
            with self._changed:
                self._done = True
                self._changed.notify_all()

    def report(self, test: str, phase: str) -> Report:
        """Wait for one phase of one test (`""` for the whole listing); a phase that was never reached counts as passed."""
        key = (test, phase)
        with self._changed:
            self._changed.wait_for(lambda: self._is_settled or key in self.reports or test not in self.waiting)
            if not self.waiting and (phase == "teardown" or not self.job.kind.has_tests):
                self._changed.wait_for(lambda: self._is_settled)  # what is wrong with the end of the process is the last test's
            if self._error is not None and key not in self.reports:
                raise self._error
            if test in self.waiting and key not in self.reports:
                return Report(Outcome.NOT_RUN, "the session ended before it had run")
            return self.reports.get(key, PASSED)

    def ended(self, test: str) -> dict[str, Report]:
        """Give what a test that has run to its end has said, by phase, without waiting; empty for another.

        Of the last one that is known when the process has ended.
        """
        with self._changed:
            has_more = bool(self.waiting) and (test, "teardown") in self.reports
            if self._error is not None or test in self.waiting or not (self._done or has_more):
                return {}
            phases = PHASES if self.job.kind.has_tests else ("call",)
            return {phase: self.reports.get((test, phase), PASSED) for phase in phases}

    @property
    def is_over(self) -> bool:
        """Whether nothing more will be reported."""
        return self._done

    @property
    def _is_settled(self) -> bool:
        return self._done or self._stopping

    @property
    def has_process(self) -> bool:
        """Whether a process was started for it."""
        return self._execution is not None

    def give_up(self) -> None:
        """Start no process for it any more; whoever waits for reports waits no longer."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def stop(self) -> None:
        """End it now."""
        self.give_up()
        execution = self._execution
        if execution is not None:
            execution.stop()

    def _run_once(self) -> None:
        """Run what waits in one process."""
        start = self._begin(list(self.waiting), self.granted)
        self.program, self.modules = start.program, start.modules
        self._current: str | None = None
        self._before, self._begun = 0, time.monotonic()
        """Ranks that there were when the current test began, and the time of that."""
        self._charged = False
        """Whether a test has brought its process to its end."""
        self._settled = 0
        """Tests that have come to their end in this process."""
        self._status: int | None = None
        """Exit status of the listing's own pytest, once it has one."""
        self._has_failed = False
        """Whether a test of this process has failed."""
        self._running: frozenset[int] = frozenset()
        """Numbers of the ranks that outlived its tests."""
        self._broken: Report | None = None
        """What ended its session when no test was waiting any more."""
        try:
            execution = self._execution = self._engine().start(self.program)
            if self._stopping:
                execution.stop()
            for event in execution.events():
                with self._changed:
                    self._take(event)
                    self._changed.notify_all()
        finally:
            shutil.rmtree(self.program.root, ignore_errors=True)
        with self._changed:
            self._settle(execution.ended)
            self._changed.notify_all()

    def _take(self, event: Mapping[str, Any]) -> None:
        if event["type"] == "began":
            self._where = {name: event.get(name, "") for name in ("engine", "note", "isolation", "node")}
            self._begun = time.monotonic()
        elif event["type"] == "start":
            self._current, self._before, self._begun = event["id"], event.get("before", 0), time.monotonic()
        elif event["type"] == "report":
            self._take_report(event)
        elif event["type"] == "collect-error":
            self._fail_rest(report_of(self.job, event, self.program))
        elif event["type"] == "broken-off":
            self._break_off(report_of(self.job, event, self.program))
        elif event["type"] == "again":
            self._current = None
        elif event["type"] == "finished":
            self._status, self._running = event["status"], frozenset(event.get("running", ()))
        elif event["type"] == "left" and self.waiting:
            self._fail_rest(Report(Outcome.FAILED, f"the module left with exit status {event['code']} while its tests ran"))

    def _take_report(self, event: Mapping[str, Any]) -> None:
        test, phase = event["id"], event["when"]
        self._has_failed |= Outcome(event["outcome"]).is_failure
        if event["outcome"] == Outcome.NOT_RUN and self.job.kind.has_tests and test in self.waiting and self._settled:
            self._again.append(test)
        if test in self._again or test not in self.waiting:
            self._current = None
            return
        self.reports[test, phase] = self._timed(self._with_grant(report_of(self.job, event, self.program)))
        finished = phase == "teardown" or not self.job.kind.has_tests
        if finished and test in self.waiting:
            self.waiting.remove(test)
            self._last = test
            self._current = None
            self._settled += 1

    def _with_grant(self, report: Report) -> Report:
        """Add to a report's receipt what the listing itself does not know."""
        gpus = tuple(f"{gpu}: {self._gpu_names.get(gpu) or 'GPU'}" for gpu in self.granted or () if gpu)
        return replace(report, receipt=replace(report.receipt, gpus=gpus, **self._where))

    def _timed(self, report: Report) -> Report:
        """Give a listing without tests, or a part of it, the time since it began: pytest has timed those of tests."""
        if self.job.kind.has_tests or report.duration:
            return report
        began, self._begun = self._begun, time.monotonic()
        return replace(report, duration=round(self._begun - began, 3))

    def _break_off(self, report: Report) -> None:
        """Charge the test that is under way, if there is one, with the end of the whole pytest session."""
        if self._current in self.waiting:
            self._charge(self._current, report)
        else:
            self._broken = None if self.waiting else report
            self._fail_rest(report)

    def _charge(self, test: str, report: Report) -> None:
        """Let a test end in the phase that it has reached; the tests behind it are run in a new process."""
        self.waiting.remove(test)
        phase = next(phase for phase in PHASES if (test, phase) not in self.reports) if self.job.kind.has_tests else "call"
        self.reports[test, phase] = self._with_grant(report)
        self._last = test
        self._charged = True

    def _fail_rest(self, report: Report) -> None:
        for test in self.waiting:
            self.reports.setdefault((test, "call"), self._timed(self._with_grant(report)))
        self.waiting.clear()

    def _settle(self, ended: Ended) -> None:
        """Make sense of the end of the process."""
        given_up, self._again = self._again, []
        if not self.waiting:
            self._judge_end(ended)
            return
        if self._current in self.waiting:
            self._charge(self._current, self._end_of_current(ended))
        if self._charged and self.job.whole is not None:
            self._fail_rest(Report(Outcome.NOT_RUN, "a listing before it in its session took their process with it"))
        elif not self._charged and not (given_up and ended.exit_code == 0):
            self._fail_rest(self._never_started(ended))

    def _end_of_current(self, ended: Ended) -> Report:
        """Report the test that was under way: with its own time and ranks, and those of tests before it that were still alive."""
        own = tuple(rank for place, rank in enumerate(ended.ranks) if place >= self._before or rank.exit_code is None)
        return replace(abnormal(self.job, self.program, replace(ended, ranks=own)), duration=time.monotonic() - self._begun)

    def _never_started(self, ended: Ended) -> Report:
        when = "before its tests started" if self.job.kind.has_tests else ""
        if self._status is not None:
            return broken_pytest(self.job, self.program, ended, self._status, when)
        return abnormal(self.job, self.program, ended, when)

    def _died_late(self, known: Report, ended: Ended) -> RankEnd | None:
        """Give the first rank that still ran when its listing had passed, and then ended badly; what ends daemons is a SIGTERM."""
        if self.job.kind.has_tests:
            ends = [rank for number, rank in enumerate(ended.ranks) if number in self._running]
        else:
            before = known.receipt.ranks if known.receipt is not None and known.outcome is Outcome.PASSED else ()
            ends = [rank for rank, then in zip(ended.ranks, before, strict=False) if then.exit_code is None]
        return next((rank for rank in ends if rank.exit_code not in (None, 0, -signal.SIGTERM)), None)

    def _judge_end(self, ended: Ended) -> None:
        if self._last is None:
            return
        key = (self._last, "teardown" if self.job.kind.has_tests else "call")
        known = self.reports.get(key, PASSED)
        if not self.job.kind.has_tests and ended.output.strip():
            output = ("Captured output", on_page(self.job, self.program, ended.output))
            known = self.reports[key] = replace(known, sections=(output, *known.sections))
        if known.outcome.is_failure and not known.outputs:  # an output that differs may be written anew, a bad end may not
            return
        if ended.left:
            reason = f"it left {_count(len(ended.left), 'process', 'processes')} behind: {'; '.join(ended.left)}"
            text = "\n\n".join(filter(None, (reason, known.text)))
            self.reports[key] = replace(known, outcome=Outcome.FAILED, reason=reason, text=text, line=None, outputs={})
        elif (dead := self._died_late(known, ended)) is not None:
            reason = f"{said_of(dead)}, when {'its tests were over' if self.job.kind.has_tests else 'the listing had come to its end'}"
            receipt = known.receipt and replace(known.receipt, ranks=ended.ranks)
            self.reports[key] = replace(known, outcome=Outcome.CRASHED, reason=reason, text=reason, line=None, outputs={}, receipt=receipt)
        elif self._status in _RED and not self._has_failed:
            said = self._broken or broken_pytest(self.job, self.program, ended, self._status, "although none of its tests failed")
            self.reports[key] = replace(said, outcome=Outcome.FAILED, sections=known.sections, ranks=known.ranks)
        elif ended.hung or ended.exit_code not in ((0, 1) if known.outputs else (0,)):
            report = abnormal(self.job, self.program, ended, "after its last test" if self.job.kind.has_tests else "at its end")
            self.reports[key] = replace(report, sections=known.sections, ranks=known.ranks)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
