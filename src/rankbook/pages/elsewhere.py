"""Where else an API is tested: other files whose tests' files call what the tests of this one call."""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec import Struct

from rankbook.model import Survey
from rankbook.standard_library import STANDARD_LIBRARY

_APIS = 6
"""APIs of a file that its page names."""
_TOOLS = frozenset({"pytest", "_pytest", "hypothesis", "testing"})
"""Parts of the names of what tests are written with: nobody tests it by that."""
_FILES = 4
"""Other files that it names of an API."""


class Elsewhere(Struct, frozen=True):
    """An API that tests of a file call, and other files with tests that call it."""

    name: str
    """Full dotted name."""
    tests: int
    """Number of tests of the file that reach it."""
    paths: tuple[str, ...]
    """The nearest of the others."""
    more: int
    """Number of others that are not named."""


def elsewhere(
    survey: Survey, callers: Callable[[str], Collection[str]], has_tests: Callable[[str], bool], few: int
) -> tuple[Elsewhere, ...]:
    """Tell where else the APIs are tested that the tests of a file call most; what many files call says nothing of any of them.

    Args:
        survey: what the file says.
        callers: gives the files that call an API.
        has_tests: tells whether a file has tests.
        few: files that may call an API for it to be named.
    """
    found = []
    for use in survey.uses:
        if not (use.tests and use.is_called and use.lines) or _is_tool(use.name):
            continue
        paths = callers(use.name)
        others = [path for path in paths if path != survey.path and has_tests(path)] if len(paths) <= few else []
        if others:
            others.sort(key=lambda path: (_apart(survey.path, path), path))
            found.append(Elsewhere(use.name, len(use.tests), tuple(others[:_FILES]), len(others[_FILES:])))
    return tuple(sorted(found, key=lambda each: (-each.tests, len(each.paths) + each.more, each.name))[:_APIS])


def _is_tool(name: str) -> bool:
    parts = name.split(".")
    return parts[0] in STANDARD_LIBRARY or not _TOOLS.isdisjoint(parts)


def _apart(path: str, other: str) -> int:
    """Count the folders between two files."""
    here, there = path.split("/")[:-1], other.split("/")[:-1]
    same = next((place for place, (one, two) in enumerate(zip(here, there, strict=False)) if one != two), min(len(here), len(there)))
    return len(here) + len(there) - 2 * same
