"""What it costs to prove the bundled suite through its pages, beside plain `pytest` on the same files.

    python benchmarks/prove.py [FILE ...]

Without files the whole suite is run. Seconds are wall time.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUITE = "tests/distributed"


def main() -> None:
    files = sys.argv[1:] or [SUITE]
    with tempfile.TemporaryDirectory() as folder:
        generate = [sys.executable, "-m", "rankbook.cli", "gen", *files, "--out", f"{folder}/docs"]
        subprocess.run(generate, cwd=ROOT, check=True, capture_output=True)
        # The README and the run commands of the pages are listings too; only the tests are compared.
        pages = [str(page) for page in sorted(Path(folder).rglob("test_*.py_docs.md"))]
        rows = {
            "pytest": timed([f for f in files if f != SUITE] or [SUITE]),
            "pages, local": timed(["--doctest-glob=*.md", "--engine=local", "-k", "not how-to-run-it", *pages]),
            "pages, fresh": timed(["--doctest-glob=*.md", "--engine=fresh", "-k", "not how-to-run-it", *pages]),
        }
    show(rows)


def timed(arguments: list[str]) -> tuple[float, str]:
    """Run pytest and give wall seconds and its last line."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    return wall, done.stdout.strip().splitlines()[-1]


def show(rows: dict[str, tuple[float, str]]) -> None:
    """Print a table, with plain pytest as 1."""
    base = rows["pytest"][0]
    print("| way | wall s | × pytest | pytest says |")
    print("|---|--:|--:|---|")
    for name, (wall, said) in rows.items():
        print(f"| {name} | {wall:.1f} | {wall / base:.2f} | {said} |")


if __name__ == "__main__":
    main()
