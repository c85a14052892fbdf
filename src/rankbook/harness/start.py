"""The start of Python listings that are programs: in one process, with fixtures, or on several ranks."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankbook.harness import deaths, observing, outputs, script
from rankbook.harness.ranks import Launch, Order, backend_for
from rankbook.listing import Program, Runtime


def run(program: Program, runtime: Runtime) -> int:
    """Run the listing as `__main__`, or import it, or start it once on each number of ranks."""
    deaths.watch_looks(runtime)
    report: dict[str, Any] = {"type": "report", "id": "", "when": "call", "outcome": "passed"}
    if program.arguments.get("ranks"):
        return _on_ranks(program, runtime, report)
    comparison = outputs.Comparison.of(program.arguments)
    report = deaths.judged(report | comparison.judged(_alone(program, comparison)), runtime.ranks)
    runtime.emit(report | {"sections": [*script.sections(runtime.ranks)], "receipt": observing.receipt(runtime)})
    return 1 if report["outcome"] in ("failed", "crashed") else 0


def _alone(program: Program, comparison: outputs.Comparison) -> dict[str, Any] | None:
    path, said = Path(program.root) / program.path, program.arguments

    def body(given: Mapping[str, Any]) -> dict[str, Any] | None:
        with comparison.capture():
            return script.outcome_of(lambda: script.run_as_main(path, given), path, said.get("raises", ""))

    if said.get("import"):
        return script.outcome_of(lambda: script.import_file(path), path)
    if not said.get("fixtures"):
        return body({})
    from rankbook.harness import fixtured  # it needs pytest

    return fixtured.with_fixtures(said, body)


def _on_ranks(program: Program, runtime: Runtime, report: dict[str, Any]) -> int:
    if importlib.util.find_spec("torch") is None:
        runtime.emit({**report, "outcome": "skipped", "reason": "it needs torch, which is not installed here"})
        return 0
    comparison = outputs.Comparison.of(program.arguments)
    with tempfile.TemporaryDirectory() as folder:
        launch, failure = _launched(program, runtime, folder if comparison.expected else "")
        if failure is not None and failure["outcome"] == "crashed":
            reason = failure["reason"] + launch.wait_for_engine()
            failure |= {"reason": reason, "text": reason}
        receipt = observing.receipt(runtime)
        launch.end()
        comparison.outputs = {str(rank): outputs.as_shown(outputs.read(outputs.file_of(folder, rank))) for rank in range(launch.count)}
        sections = [*script.sections(runtime.ranks), *_printed(comparison)]
    report |= {"ranks": launch.count, "sections": sections, **comparison.judged(failure), "receipt": receipt}
    runtime.emit(report)
    return 1 if report["outcome"] in ("failed", "crashed") else 0


def _launched(program: Program, runtime: Runtime, folder: str) -> tuple[Launch, dict[str, Any] | None]:
    """Start it on each number of ranks; gives the last launch, or the first that failed."""
    said = program.arguments
    for count in sorted(said["ranks"]):
        backend = backend_for(said.get("backend", ""), count, program.gpus) if said.get("init") else ""
        order = Order(str(Path(program.root) / program.path), said.get("raises", ""), backend, folder)
        launch = Launch(order, count, runtime, program.timeout)
        failure = launch.run()
        if failure:
            break
    return launch, failure


def _printed(comparison: outputs.Comparison) -> list[tuple[str, str]]:
    if not comparison.expected:
        return []
    return [
        (f"Captured standard output of rank {rank}", script.both_ends_of(text)) for rank, text in comparison.outputs.items() if text.strip()
    ]
