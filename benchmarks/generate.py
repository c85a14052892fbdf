"""What it costs to turn a source tree into pages, beside the floor: reading every file and parsing every Python file, in as many processes.

    python benchmarks/generate.py TREE --edit FILE [--jobs N] [--source PATH ...]

Each measurement runs in processes of its own; seconds are wall time, memory is the largest resident set of any process. The pages are made
from nothing, when nothing has changed, and after edits of one file, which is put back. `git status` of the same tree stands beside them.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--source", action="append", default=[], help="part of the tree; all of it when none is named")
    parser.add_argument("--edit", required=True, help="a Python file of the tree, below it, that is edited and put back")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.step:
        print(json.dumps(STEPS[chosen.step](chosen)))
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RANKBOOK_CACHE_DIR"] = f"{folder}/cache"
        rows = {}
        for name in STEPS:
            with edited(name, chosen):
                rows[name] = measured(name, chosen, f"{folder}/pages")
            if name in EDITS:
                measured("unchanged", chosen, f"{folder}/pages")  # the file is back as it was
    show(rows)


@contextmanager
def edited(name: str, chosen: argparse.Namespace) -> Iterator[None]:
    """Edit the file for a step that measures that, and put it back."""
    if name not in EDITS:
        yield
        return
    file = chosen.tree / chosen.edit
    before = file.read_text()
    file.write_text(EDITS[name](before))
    try:
        yield
    finally:
        file.write_text(before)


def measured(name: str, chosen: argparse.Namespace, folder: str) -> dict:
    """Run one step in a new process."""
    sources = [word for source in chosen.source for word in ("--source", source)]
    command = [
        sys.executable,
        __file__,
        str(chosen.tree),
        f"--jobs={chosen.jobs}",
        f"--step={name}",
        f"--out={folder}",
        f"--edit={chosen.edit}",
        *sources,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def floor(chosen: argparse.Namespace) -> dict:
    """Read every file and parse every Python file."""
    from rankbook.config import load
    from rankbook.sources import discover

    paths = discover(load(chosen.tree, {"sources": tuple(chosen.source) or (".",), "out": chosen.out})).paths
    start = time.perf_counter()
    with ProcessPoolExecutor(chosen.jobs, mp_context=get_context("spawn")) as pool:
        size = sum(pool.map(read_and_parse, [str(chosen.tree / path) for path in paths], chunksize=25))
    return facts(start, sources=len(paths), size=size)


def read_and_parse(path: str) -> int:
    """Read a file, parse it if it is Python, and give its size."""
    data = Path(path).read_bytes()
    if path.endswith(".py"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                ast.parse(data)
            except (SyntaxError, ValueError):
                return len(data)
    return len(data)


def generate(chosen: argparse.Namespace) -> dict:
    """Make the pages."""
    from rankbook.config import load
    from rankbook.document import document

    settings = load(chosen.tree, {"sources": tuple(chosen.source) or (".",), "out": chosen.out, "jobs": chosen.jobs})
    start = time.perf_counter()
    report = document(settings)
    return facts(start, sources=report.sources, pages=report.pages, written=len(report.written), seconds=dict(report.seconds))


def again(chosen: argparse.Namespace) -> dict:
    """Run the command over what is there, twice: the first time folders and Git's index may still look new."""
    words = ["gen", *(chosen.source or ["."]), f"--root={chosen.tree}", f"--out={chosen.out}", f"--jobs={chosen.jobs}"]
    command = [sys.executable, "-m", "rankbook.cli", *words]
    if chosen.step == "unchanged":
        subprocess.run(command, check=True, capture_output=True)
    start = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = {word: number.replace(",", "") for number, word in re.findall(r"([\d,]+) (source|page|written)", done.stdout)}
    return facts(start, sources=found.get("source", ""), pages=found.get("page", ""), written=found.get("written", "0"))


def status(chosen: argparse.Namespace) -> dict:
    """Ask Git what has changed."""
    command = ["git", "-C", str(chosen.tree), "status", "--short"]
    subprocess.run(command, check=True, capture_output=True)
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return facts(start, sources="")


def facts(start: float, **others: object) -> dict:
    """Add time and memory."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "wall": time.perf_counter() - start,
        "cpu": sum(entry.ru_utime + entry.ru_stime for entry in usage),
        "peak": max(entry.ru_maxrss for entry in usage) / 1024,
        **others,
    }


EDITS = {
    "comment added": lambda text: f"{text}# One line more.\n",
    "lines moved": lambda text: f"# One line more.\n{text}",
    "test added": lambda text: f"{text}\n\nclass TestOneMore:\n    def test_one_more(self):\n        pass\n",
}
STEPS = {"floor": floor, "cold": generate, "git status": status, "unchanged": again, **dict.fromkeys(EDITS, again)}


def show(rows: dict[str, dict]) -> None:
    """Print a table, with the floor as 1."""
    base = rows["floor"]["wall"]
    print("| step | sources | pages | written | wall s | × floor | CPU s | peak MB |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, row in rows.items():
        cells = [name, row["sources"], row.get("pages", ""), row.get("written", ""), f"{row['wall']:.2f}", f"{row['wall'] / base:.2f}"]
        print("| " + " | ".join(str(cell) for cell in [*cells, f"{row['cpu']:.1f}", f"{row['peak']:.0f}"]) + " |")


if __name__ == "__main__":
    main()
