"""`>>>` sessions: each statement's output must be the one that stands below it, as doctest compares it."""

from __future__ import annotations

import doctest
import io
import sys
import types
from pathlib import Path
from typing import Any

from rankbook.languages import by_fence
from rankbook.listing import Listing, Program, Runtime

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.REPORT_NDIFF
"""Option flags of every session; a `# doctest:` comment changes them for its statement."""


def accepts(listing: Listing) -> bool:
    """Say whether a listing is a session: `pycon`, or Python that starts with a prompt."""
    language = by_fence(listing.language)
    if language is None:
        return False
    return language.name == "pycon" or (language.name == "python" and listing.text.lstrip().startswith(">>>"))


class _Runner(doctest.DocTestRunner):
    """Keeps the first failing example's line: that is where the reader looks."""

    first: int | None = None

    def _note(self, example: doctest.Example) -> None:
        if self.first is None:
            self.first = example.lineno + 1

    def report_failure(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        self._note(example)
        super().report_failure(out, test, example, got)

    def report_unexpected_exception(self, out: Any, test: doctest.DocTest, example: doctest.Example, exc_info: Any) -> None:
        self._note(example)
        super().report_unexpected_exception(out, test, example, exc_info)


def run(program: Program, runtime: Runtime) -> int:
    """Run the session in a `__main__` module of its own."""
    path = Path(program.root) / program.path
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    sys.path.insert(0, str(path.parent))
    report: dict[str, Any] = {"type": "report", "id": "", "when": "call"}
    try:
        test = doctest.DocTestParser().get_doctest(path.read_text(encoding="utf-8"), module.__dict__, path.stem, str(path), 0)
    except ValueError as error:
        runtime.emit({**report, "outcome": "failed", "reason": str(error), "text": str(error)})
        return 1
    if problem := _idle(test):
        runtime.emit({**report, **problem})
        return 0
    text = io.StringIO()
    runner = _Runner(optionflags=FLAGS)
    result = runner.run(test, out=text.write, clear_globs=False)
    if result.failed:
        reason = f"{result.failed} of {result.attempted} statements did not give the output shown"
        runtime.emit({**report, "outcome": "failed", "reason": reason, "line": runner.first, "text": text.getvalue()})
        return 1
    runtime.emit({**report, "outcome": "passed"})
    return 0


def _idle(test: doctest.DocTest) -> dict[str, Any] | None:
    """Say what a session that runs no statement is: wrong when it shows none, skipped when it skips all of them."""
    if not test.examples:
        reason = "no statement: a session shows each after '>>> '"
        return {"outcome": "failed", "reason": reason, "text": reason, "line": 1}
    if all(example.options.get(doctest.SKIP) for example in test.examples):
        return {"outcome": "skipped", "reason": "all its statements carry '# doctest: +SKIP'"}
    return None
