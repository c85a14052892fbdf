"""`>>>` sessions: each statement's output must be the one that stands below it, as doctest compares it."""

from __future__ import annotations

import doctest
import io
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankbook import rewriting
from rankbook.harness import deaths, observing, script
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


def arguments(listing: Listing) -> Mapping[str, Any]:
    """Give the number of the file's lines that stand above the session: hidden ones, plain Python."""
    return {"hidden": listing.lines_above} if listing.hidden else {}


def run(program: Program, runtime: Runtime) -> int:
    """Run the session in a `__main__` module of its own."""
    deaths.watch_looks(runtime)
    path = Path(program.root) / program.path
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    sys.path.insert(0, str(path.parent))
    said = outcome_of(path.read_text(encoding="utf-8"), path, module.__dict__, program.arguments.get("hidden", 0))
    report = deaths.judged({"type": "report", "id": "", "when": "call", "outcome": "passed", **(said or {})}, runtime.ranks)
    runtime.emit({**report, "receipt": observing.receipt(runtime)})
    return 1 if report["outcome"] in ("failed", "crashed") else 0


def outcome_of(text: str, path: Path, names: dict[str, Any], hidden: int = 0) -> dict[str, Any] | None:
    """Run a session and say what is wrong with it; None when nothing is.

    Args:
        text: the session.
        path: file that it stands in, at the same lines.
        names: names that it finds and leaves.
        hidden: lines of the text, from the first, that are no session but Python that runs before it.
    """
    lines = text.splitlines(keepends=True)
    above = "".join(lines[:hidden])
    failure = script.outcome_of(lambda: exec(rewriting.compiled(above.encode(), str(path)), names), path)  # noqa: S102
    if failure:
        return failure
    try:
        rest = "\n" * hidden + "".join(lines[hidden:])
        test = doctest.DocTestParser().get_doctest(rest, names, path.stem, str(path), 0)
    except ValueError as error:
        return {"outcome": "failed", "reason": str(error), "text": str(error)}
    if problem := _idle(test):
        return problem
    told = io.StringIO()
    # doctest keeps the names in a copy; what a session defines must be there for whoever comes after it.
    test.globs = names
    runner = _Runner(optionflags=FLAGS)
    result = runner.run(test, out=told.write, clear_globs=False)
    if not result.failed:
        return None
    reason = f"{result.failed} of {result.attempted} statements did not give the output shown"
    return {"outcome": "failed", "reason": reason, "line": runner.first, "text": told.getvalue()}


def _idle(test: doctest.DocTest) -> dict[str, Any] | None:
    """Say what a session that runs no statement is: wrong when it shows none, skipped when it skips all of them."""
    if not test.examples:
        reason = "no statement: a session shows each after '>>> '"
        return {"outcome": "failed", "reason": reason, "text": reason, "line": 1}
    if all(example.options.get(doctest.SKIP) for example in test.examples):
        return {"outcome": "skipped", "reason": "all its statements carry '# doctest: +SKIP'"}
    return None
