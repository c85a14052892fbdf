"""How far what rankbook reads statically agrees with what pytest collects and with how the tests end on this machine.

    python benchmarks/truth.py TREE --cwd test --folder distributed --no-conftest [--outcomes] [--files GLOB ...] [--budget S]
                               [--keep FOLDER] [--misses OUT] [--json OUT] [--most N]

TREE is a source tree: `--folder` names the tests in it, below `--cwd`, the folder in which they are run. Each file is collected by
pytest in a process of its own; with `--outcomes` its tests are run too, which takes about an hour for PyTorch's `test/distributed`.
What was collected and run is kept in the folder `--keep`, so that a second call goes on where the first ended. The report is Markdown.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import truth_collected
import truth_outcomes
from rankbook.analyse import survey
from rankbook.analyse.draft import Draft
from rankbook.model import Test
from rankbook.sources import parse
from rankbook.sources.packages import INSTALLED, Packages, package_folders
from truth_collected import Suite
from truth_compared import Truth, compare
from truth_report import misses, report

TEST_FILES = ("test_*.py", "*_test.py")


def main() -> None:
    chosen = arguments()
    with tempfile.TemporaryDirectory() as folder:
        keep = chosen.keep or Path(folder)
        keep.mkdir(parents=True, exist_ok=True)
        truth = gathered(chosen, keep)
    found = compare(truth, inventory(chosen.tree, f"{chosen.cwd}/{chosen.folder}".strip("/")))
    print(report(found))
    if chosen.misses:
        chosen.misses.write_text(misses(found, chosen.most), encoding="utf-8")
    if chosen.json:
        chosen.json.write_text(json.dumps(found.figures(), indent=2), encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--cwd", default="", help="folder of the tree in which its tests are run")
    parser.add_argument("--folder", default="tests", help="folder of the tests below it")
    parser.add_argument("--files", action="append", default=[], help="glob of paths below the tree; all when none is named")
    parser.add_argument("--no-conftest", action="store_true", help="leave out the tree's conftest files")
    parser.add_argument("--outcomes", action="store_true", help="run the tests too")
    parser.add_argument("--budget", type=float, default=600.0, help="seconds for the tests of one file")
    parser.add_argument("--keep", type=Path, help="folder for what was collected and run")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--misses", type=Path, help="file for every miss")
    parser.add_argument("--most", type=int, default=40, help="misses of one class that are listed")
    return parser.parse_args()


def gathered(chosen: argparse.Namespace, keep: Path) -> Truth:
    """Collect and run what is not known yet."""
    collected, outcomes = Kept(keep / "collected.json"), Kept(keep / "outcomes.json")
    paths = [path for path in test_files(chosen) if not chosen.files or any(fnmatch(path, pattern) for pattern in chosen.files)]
    root, start = chosen.tree.resolve() / chosen.cwd, f"{chosen.cwd}/" if chosen.cwd else ""
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(root, Path(folder), ("--noconftest",) if chosen.no_conftest else (), chosen.budget)
        unknown = [path.removeprefix(start) for path in paths if path not in collected.values]
        for path, found in truth_collected.each(suite, unknown) if unknown else ():
            collected.keep(start + path, found)
        if chosen.outcomes:
            for path, ended in truth_outcomes.each(suite, dict(waiting(paths, start, collected, outcomes))):
                outcomes.keep(start + path, {**outcomes.values.get(start + path, {}), **ended})
                print(f"{path}: {len(ended)} tests", file=sys.stderr)
    return Truth({path: collected.values[path] for path in paths}, {path: outcomes.values.get(path, {}) for path in paths})


def waiting(paths: list[str], start: str, collected: Kept, outcomes: Kept) -> Iterator[tuple[str, list[str]]]:
    """Give the tests whose outcome is not known, by file, the file with the most first."""
    for path in sorted(paths, key=lambda path: (-len(collected.values[path]["ids"]), path)):
        known = outcomes.values.get(path, {})
        if ids := [test for test in collected.values[path]["ids"] if test not in known]:
            yield path.removeprefix(start), ids


def test_files(chosen: argparse.Namespace) -> list[str]:
    """Name the files that pytest would collect of the folder."""
    folder = chosen.tree / chosen.cwd / chosen.folder
    found = (path for path in folder.rglob("*.py") if any(fnmatch(path.name, pattern) for pattern in TEST_FILES))
    return sorted(path.relative_to(chosen.tree).as_posix() for path in found)


def inventory(tree: Path, folder: str) -> dict[str, tuple[Test, ...]]:
    """Read the tests of a folder statically, by file; bases outside it are looked for in the installed packages."""
    paths = sorted(path.relative_to(tree).as_posix() for path in (tree / folder).rglob("*.py"))
    facts = {path: parse(tree, path) for path in paths}
    draft = Draft(facts, frozenset(facts), Packages(package_folders(tree, (INSTALLED,))))
    return {path: survey(draft, path).tests for path in paths}


class Kept:
    """What is known by file, in a JSON file that is whole at any time.

    Args:
        path: the JSON file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def keep(self, name: str, value: Any) -> None:
        """Keep what is known of one file."""
        self.values[name] = value
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.values, indent=0, sort_keys=True), encoding="utf-8")
        part.replace(self.path)


if __name__ == "__main__":
    main()
