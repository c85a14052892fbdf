"""What all tests share: what runs keep for the next one is kept in a folder of its own."""

from __future__ import annotations

import os
import tempfile

_KEPT = tempfile.TemporaryDirectory(prefix="rankbook-tests-")
os.environ["RANKBOOK_CACHE_DIR"] = _KEPT.name

collect_ignore_glob = ["cases/*"]
"""Sources and pages that tests read: some of them are wrong on purpose."""
