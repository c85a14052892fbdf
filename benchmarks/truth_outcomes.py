"""How the tests of a tree's files really end on this machine: pytest runs each file, in forks of a process that has imported torch.

A test that takes its process with it, or of which nothing is heard, costs itself: those behind it are run in a new process.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from rankbook import engines
from rankbook.harness import preloaded
from rankbook.listing import Engine, Event, Execution, Program
from truth_collected import Suite

SILENCE = 120.0
"""Seconds without a sign of life after which a test counts as hung."""

Outcomes = dict[str, dict[str, Any]]
"""By node id: `outcome`, `reason`, `seconds`."""


def engine() -> Engine:
    """Make the engine that runs the files."""
    return engines.create("local", preload=preloaded())


def run_file(runner: Engine, suite: Suite, path: str, ids: list[str]) -> Outcomes:
    """Run tests of one file.

    Args:
        runner: the engine.
        suite: where and how.
        path: file below its root.
        ids: tests to run.

    Returns:
        How each ended; what the budget did not reach is left out.
    """
    ended: Outcomes = {}
    deadline = time.monotonic() + suite.budget
    while (waiting := [test for test in ids if test not in ended]) and time.monotonic() < deadline:
        execution = runner.start(program(suite, path, waiting))
        before = len(ended)
        current = follow(execution, ended, deadline)
        if current:
            charge(ended, current, execution)
        elif time.monotonic() >= deadline:
            execution.stop()
        elif len(ended) == before:
            charge(ended, waiting[0], execution)
    return ended


def program(suite: Suite, path: str, ids: list[str]) -> Program:
    """Say what is run: tests of one file, by a pytest in the file's own process."""
    beside = f"pythonpath={(suite.root / path).parent} {suite.root}"
    arguments = {"select": ids, "options": [*suite.options, "-p", "no:warnings", "-o", beside]}
    return Program(path, "rankbook.harness.test_module:run", str(suite.root), path, arguments, suite.variables(path), SILENCE)


def follow(execution: Execution, ended: Outcomes, deadline: float) -> str:
    """Note how tests end until the process ends; give the test that was under way then."""
    current = ""
    for event in execution.events():
        if event["type"] == "start":
            current = event["id"]
        elif event["type"] == "report":
            note(ended, event)
            current = "" if event["when"] == "teardown" else current
        if time.monotonic() >= deadline and not current:
            break
    return current


def note(ended: Outcomes, event: Event) -> None:
    """Take one phase of one test: what is not passed decides."""
    known = ended.setdefault(event["id"], {"outcome": "passed", "reason": "", "seconds": 0.0})
    known["seconds"] = round(known["seconds"] + event["duration"], 2)
    if event["outcome"] == "passed" and "wasxfail" not in event:
        return
    known.update(outcome=named(event), reason=str(event.get("reason", ""))[:300])


def named(event: Event) -> str:
    """Name how a phase ended."""
    if "wasxfail" in event:
        return "xfailed"
    if event["outcome"] == "failed" and event["when"] != "call":
        return "error"
    return str(event["outcome"])


def charge(ended: Outcomes, test: str, execution: Execution) -> None:
    """Say of the test that was under way how its process ended."""
    end = execution.ended
    reason = f"exit status {end.exit_code}: {end.output.strip()[-200:]}"
    ended[test] = {"outcome": "hung" if end.hung else "crashed", "reason": reason, "seconds": round(end.duration, 2)}


def each(suite: Suite, tests: Mapping[str, list[str]]) -> Iterator[tuple[str, Outcomes]]:
    """Run files one by one.

    Args:
        suite: where and how.
        tests: node ids to run by file.
    """
    runner = engine()
    try:
        for path, ids in tests.items():
            yield path, run_file(runner, suite, path, ids)
    finally:
        runner.close()
