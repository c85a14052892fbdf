"""Pass: which of the functions in the keyword lists are tests."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from rankbook.analyse.draft import Draft


def run(draft: Draft) -> None:
    """Mark the keyword of each function that some class or file runs as a test."""
    lines: defaultdict[str, set[int]] = defaultdict(set)
    for tests in draft.tests.values():
        for test in tests:
            lines[test.path].add(test.line)
    for path, own in lines.items():
        module = draft.modules[path]
        keywords = tuple(
            replace(keyword, kind="test") if keyword.kind in ("function", "method") and keyword.line in own else keyword
            for keyword in module.keywords
        )
        draft.modules[path] = replace(module, keywords=keywords)
