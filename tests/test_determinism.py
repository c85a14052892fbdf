"""The same sources give the same pages, whatever the interpreter's hash seed and the number of processes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def digest(out: Path, seed: str, jobs: str) -> str:
    """Generate pages of this repository's own code and digest them."""
    command = [sys.executable, "-m", "rankbook.cli", "gen", "src", "tests", "--root", str(ROOT), "--out", str(out), "--jobs", jobs]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed})
    pages = sorted(path for path in out.rglob("*") if path.is_file())
    whole = hashlib.sha256()
    for page in pages:
        whole.update(page.relative_to(out).as_posix().encode() + b"\0" + page.read_bytes())
    assert len(pages) > 200
    return whole.hexdigest()


def test_same_pages(tmp_path):
    """Two hash seeds, one process and two: identical bytes."""
    runs = [("1", "1"), ("2", "2")]
    assert len({digest(tmp_path / seed, seed, jobs) for seed, jobs in runs}) == 1
