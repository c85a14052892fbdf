"""What all tests share: what runs keep for the next one is kept in a folder of its own."""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import settings

from browsing import browser

_KEPT = tempfile.TemporaryDirectory(prefix="rankbook-tests-")
os.environ["RANKBOOK_CACHE_DIR"] = _KEPT.name

# The gate says the same of the same commit. `benchmarks/fuzz.py` looks further, and `--hypothesis-profile=default` tries other examples.
settings.register_profile("gate", derandomize=True, deadline=None)
settings.load_profile("gate")

collect_ignore_glob = ["cases/*"]
"""Sources and pages that tests read: some of them are wrong on purpose."""


@pytest.fixture(scope="module")
def chromium():
    """A browser."""
    with browser() as started:
        yield started
