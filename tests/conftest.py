"""What all tests share: what runs keep for the next one is kept in a folder of its own."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

pytest.register_assert_rewrite("browsing", "checked_books", "executions", "ledgers", "proving", "tiny_site")
_KEPT = tempfile.TemporaryDirectory(prefix="rankbook-tests-")
os.environ["RANKBOOK_CACHE_DIR"] = _KEPT.name
for name in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):
    os.environ.pop(name, None)  # programs of tests do the same in every shell

collect_ignore_glob = ["cases/*"]
"""Sources and pages that tests read: some of them are wrong on purpose."""


def pytest_configure(config: pytest.Config) -> None:
    """Leave Hypothesis out of the hundreds of runs of pytest that tests start: its plugin imports all of it at the end of each.

    Not out of the workers of xdist, whose own tests use it.
    """
    if hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None):
        os.environ["PYTEST_ADDOPTS"] = "-p no:hypothesispytest"


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> None:
    """Set Hypothesis up before a module is imported that may use it; the bundled suite, of which each page starts a pytest, does not."""
    if module_path.parent != Path(__file__).parent or parent.config.getoption("--hypothesis-profile", None):
        return
    from hypothesis import settings

    # The gate says the same of the same commit. `benchmarks/fuzz.py` looks further, and `--hypothesis-profile=default` tries others.
    settings.register_profile("gate", derandomize=True, deadline=None)
    settings.load_profile("gate")


FIRST = ("test_faults", "test_bundled_suite", "test_proof", "test_ray")
"""Files whose tests share what takes a minute to set up. One worker begins with them: what others take from it at the end are tests that
come last, and no two workers set up the same."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have the files with the longest set-ups first, all else in its order."""
    items.sort(key=lambda item: FIRST.index(item.path.stem) if item.path.stem in FIRST else len(FIRST))


@pytest.fixture(scope="module")
def chromium():
    """A browser."""
    from browsing import browser  # only tests of the browser need it

    with browser() as started:
        yield started
