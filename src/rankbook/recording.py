"""What the reports of a session say, kept by the process that owns it: for the ledger, the count, the debt and the expected outputs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from rankbook import debt, listings, updating
from rankbook.errors import RankbookError
from rankbook.jobs import Job, plan
from rankbook.ledger import Ledger
from rankbook.ledger.session import Session as Recording
from rankbook.ledger.values import run_of
from rankbook.listing import Outcome, Run
from rankbook.page_names import SUFFIXES
from rankbook.pytest_items import Session
from rankbook.tally import Tally, count

_CRASHED = "???"
"""Phase that xdist names when a worker has died, and its item with it."""


class Recorder:
    """Plugin of the process that owns the session.

    Args:
        state: the session; what workers of xdist have found is added to it.
    """

    def __init__(self, state: Session) -> None:
        self.state = state
        self._runs: dict[tuple[str, str], tuple[int, Run]] = {}
        """The last outcome of each item by each worker, with the line of its listing."""
        self._outputs: dict[str, dict[int, updating.Block]] = {}
        """Expected outputs that differ, by page and line."""
        self._waiting: dict[tuple[str, str], bool] = {}
        """Of the outcomes that are recorded when their pages are as they will be, whether they passed for what is to be written."""
        self._ledger = Ledger(state.settings.below_root(state.settings.ledger))
        self._open = ExitStack()
        self._recording: Recording | None = None
        self._refused = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep an outcome, and record it at once."""
        facts: dict[str, Any] | None = getattr(report, "rankbook", None)
        if facts is None:
            if report.when == _CRASHED and report.nodeid.partition("::")[0].lower().endswith(SUFFIXES):
                said = f"{report.nodeid}: the worker that ran it is gone, so that the ledger has no run of it; run it again by itself"
                self.state.complaints += [] if said in self.state.complaints else [said]
            return
        run = run_of(facts["run"])
        key = run.node_id, getattr(report, "worker_id", "")
        self._runs[key] = facts["line"], run
        for line, old, new in facts["outputs"]:
            self._outputs.setdefault(run.page, {})[line] = updating.Block(line, old, new)
        if facts["waits"]:
            self._waiting[key] = bool(facts["outputs"])
        else:
            self.catch_up([run])

    def catch_up(self, runs: Iterable[Run]) -> None:
        """Record outcomes, those too of which the session, which ends before its time, has no report."""
        for run in runs:
            if run.outcome is not Outcome.PROVED and not self._refused:
                self._record(run)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take what a worker of xdist has found: all have the same listings."""
        del error
        output = getattr(node, "workeroutput", {})
        for page, rows in output.get("rankbook_register", {}).items():
            self.state.register[page] = [tuple(row) for row in rows]
        for known, said in zip((self.state.complaints, self.state.failures), output.get("rankbook_said", ()), strict=False):
            known += [sentence for sentence in said if sentence not in known]

    def _record(self, run: Run) -> None:
        """Write into the ledger; where that fails it is said once, for the outcomes themselves stand all the same."""
        try:
            if self._recording is None:
                self._recording = self._open.enter_context(self._ledger.session())
            self._recording.record(run)
        except (OSError, RankbookError) as error:
            self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        self._refused = True
        self.state.complaints.append(f"the ledger was not written: {error}")

    def close(self) -> None:
        """Write what is not yet in the ledger."""
        try:
            self._open.close()
        except (OSError, RankbookError) as error:
            self._refuse(error)

    def tally(self) -> Tally:
        """Count the listings."""
        outcomes: dict[tuple[str, int], list[tuple[Outcome, str]]] = {}
        for line, run in self._runs.values():
            outcomes.setdefault((run.page, line), []).append((run.outcome, run.reason))
        return count(self.state.register, outcomes)

    def write_tally(self, target: str) -> None:
        """Write the count of listings as JSON."""
        try:
            Path(target).write_text(json.dumps(self.tally().as_json(), indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            self.state.failures.append(f"the count of listings was not written: {error}")

    def debts(self) -> list[str]:
        """Say what of the recorded items has never really run, or not since it changed."""
        try:
            return debt.sentences(self._ledger, [run for _, run in self._runs.values()], days=self.state.settings.debt_days)
        except (OSError, RankbookError) as error:
            return [f"the skip debt is not known: {error}"]

    def update_outputs(self, root: Path) -> Iterator[str]:
        """Write the expected outputs that differ, and record what waits for that; say what was done."""
        refused: dict[str, str] = {}
        for page, blocks in sorted(self._outputs.items()):
            try:
                written = updating.update(root / page, list(blocks.values()))
            except RankbookError as error:
                refused[page] = str(error)
                self.state.failures.append(str(error))
            else:
                yield f"{page}: {written} expected output{'s' * (written != 1)} written"
        self._record_waiting(root, refused)

    def _record_waiting(self, root: Path, refused: Mapping[str, str]) -> None:
        """Record the outcomes that waited, for the pages as they are now; what was not written is not what its listing prints."""
        jobs = {page: self._jobs_of(root, page) for page in self._outputs.keys() - refused.keys()}
        for key, is_written in self._waiting.items():
            line, run = self._runs[key]
            if is_written and run.page in refused:
                run = replace(run, outcome=Outcome.FAILED, reason=refused[run.page])
            elif run.page in jobs:
                job = jobs[run.page].get(run.node_id)
                run = replace(run, listing=job.fingerprint if job else "", line=job.listing.line if job else run.line)
            self._runs[key] = line, run
            self.catch_up([run])

    def _jobs_of(self, root: Path, page: str) -> dict[str, Job]:
        """Give what becomes of the listings of a page, by the node ids of those that are one item."""
        try:
            return {job.name: job for job in plan(listings.collect(root / page, page), self.state.rules)}
        except RankbookError:
            return {}
