"""Whether each test of PyTorch's `test/distributed` ends the same in both engines: outcome by outcome, reason by reason.

    python benchmarks/parity.py TREE [--files FILE ...] [--engines ENGINE ...] [--keep FOLDER] [--json OUT] [--write PAGE]

TREE is a source tree of PyTorch. Its files are run from their pages, each file once by each engine, with nothing planned: every test is
started, whatever its page says. What was run is kept in the folder `--keep`, so that a second call goes on where the first ended. The
report is Markdown; `--write` puts it into a page, between the two comments that mark its place. The exit status is 1 when tests differ.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankbook.ledger import Ledger

FILES = (
    "test_distributed_spawn.py",
    "test_c10d_gloo.py",
    "test_c10d_pypg.py",
    "test_c10d_object_collectives.py",
    "test_collective_utils.py",
    "test_control_collectives.py",
    "test_multi_threaded_pg.py",
    "test_store.py",
    "algorithms/test_join.py",
    "fsdp/test_fsdp_state_dict.py",
    "_composable/test_replicate.py",
    "_shard/sharded_tensor/test_sharded_tensor.py",
    "_tensor/test_init.py",
    "tensor/parallel/test_tp_style.py",
)
"""Files of `test/distributed` that run on a CPU: every harness is among them, and tests that a CPU cannot run."""
VARIABLES = {"test_distributed_spawn.py": {"BACKEND": "gloo", "WORLD_SIZE": "2"}}
"""What a driver of PyTorch's CI sets for a file: this one makes it run `distributed_test.py` of the installed torch on two ranks."""
SETTINGS = """[tool.rankbook]
engine = "{engine}"
plan = false
source-path = ["{test}"]
ledger = "{ledger}"
listing-timeout = 180.0
"""
EMPTY = ("vacuous", "degenerate", "not run")
"""Outcomes of tests that pytest alone would call passed or skipped."""
VARYING = re.compile(
    r"0x[0-9a-f]+|/tmp/[^\s'\",)]+|\b\d+\.\d+ s\b|(?<=pid: )\d+|(?<=port[ =])\d+|(?<=:)\d{4,5}\b|\[[0-9a-f:]{6,}\]"
    r"|(?<=seconds )[\d.]+|[\d.]+(?= seconds)"
)
"""What differs from run to run: addresses, temporary files, durations, process ids, ports."""
REASON = 300
"""Characters of a reason that are compared."""
START, END = "<!-- parity: start -->", "<!-- parity: end -->"


@dataclass(frozen=True)
class Ended:
    """How a test ended."""

    outcome: str
    reason: str = ""

    @property
    def fixed(self) -> str:
        """Its reason, without what differs from run to run."""
        return VARYING.sub("…", self.reason)[:REASON]

    def is_as(self, other: Ended) -> bool:
        """Whether another run of the test ended the same."""
        return (self.outcome, self.fixed) == (other.outcome, other.fixed)


@dataclass
class Runs:
    """What one engine made of the files."""

    engine: str
    tests: dict[str, Ended] = field(default_factory=dict)
    """By node id."""
    seconds: float = 0.0


def main() -> int:
    chosen = arguments()
    with tempfile.TemporaryDirectory(prefix="rankbook-parity-") as folder:
        keep = (chosen.keep or Path(folder, "keep")).resolve()
        runs = [run(engine, chosen.tree.resolve() / "test", chosen.files, Path(folder), keep) for engine in chosen.engines]
    different = list(differences(runs))
    text = "\n".join(report(runs, different)) + "\n"
    print(text)
    if chosen.json:
        chosen.json.write_text(json.dumps(figures(runs, different), indent=2), encoding="utf-8")
    if chosen.write:
        write(chosen.write, text)
    return 1 if different else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--files", nargs="+", default=FILES, help="files below test/distributed")
    parser.add_argument("--engines", nargs="+", default=["local", "fresh"], help="engines; the last one is the reference")
    parser.add_argument("--keep", type=Path, help="folder for what was run")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--write", type=Path, help="page that gets the report")
    return parser.parse_args()


# Running


def run(engine: str, test: Path, files: Sequence[str], folder: Path, keep: Path) -> Runs:
    """Run files from their pages in one engine, as far as what is kept does not know them."""
    found = Runs(engine)
    for file in files:
        kept = keep / engine / f"{file}.json"
        if not kept.is_file():
            kept.parent.mkdir(parents=True, exist_ok=True)
            values = run_file(engine, test, file, folder / engine / file)
            kept.write_text(json.dumps(values, indent=1), encoding="utf-8")
            print(f"{engine} {file}: {len(values['tests'])} tests in {values['seconds']:.0f} s", file=sys.stderr, flush=True)
        values = json.loads(kept.read_text(encoding="utf-8"))
        found.seconds += values["seconds"]
        found.tests |= {f"{file}::{name}": Ended(**ended) for name, ended in values["tests"].items()}
    return found


def run_file(engine: str, test: Path, file: str, folder: Path) -> dict[str, Any]:
    """Make the page of a file in a project of its own, run it, and read the ledger."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("barrier", "init_dir", "test_dir"):
        (folder / "temporary" / name).mkdir(parents=True)
    ledger = folder / "ledger.sqlite"
    source = f"distributed/{file}"
    checked([sys.executable, "-m", "rankbook.cli", "gen", "--root", test, source, "--out", folder / "docs"], test)
    (folder / "pyproject.toml").write_text(SETTINGS.format(engine=engine, test=test, ledger=ledger), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    page = folder / "docs" / f"{source}_docs.md"
    command = [sys.executable, "-m", "pytest", "-q", "--doctest-glob=*.md", "-p", "no:cacheprovider", "--noconftest", page]
    variables = {"TEMP_DIR": str(folder / "temporary"), "OMP_NUM_THREADS": "1", **VARIABLES.get(file, {})}
    start = time.perf_counter()
    said = checked(command, folder, variables, statuses=(0, 1))
    seconds = time.perf_counter() - start
    tests = {name: {"outcome": str(entry.outcome), "reason": entry.reason} for name, entry in recorded(ledger, page.name)}
    if not tests:
        raise SystemExit(f"no test of {file} was recorded by the engine {engine}:\n{said[-3000:]}")
    return {"seconds": seconds, "tests": tests}


def recorded(ledger: Path, page: str) -> Iterator[tuple[str, Any]]:
    """Yield the tests of a page with their last outcomes."""
    for entry in Ledger(ledger).latest():
        path, _, name = entry.node_id.partition("::")
        if path.endswith(page) and entry.kind == "test":
            yield name, entry


def checked(command: Sequence[object], cwd: Path, variables: Mapping[str, str] | None = None, statuses: Sequence[int] = (0,)) -> str:
    """Run a command that must end with one of these statuses; give its output."""
    environment = {**os.environ, **(variables or {})}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in statuses:
        raise SystemExit(f"{' '.join(map(str, command))}\nended with status {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout + done.stderr


# Comparing


def differences(runs: Sequence[Runs]) -> Iterator[tuple[str, list[Ended]]]:
    """Yield each test that did not end the same in all engines, with its ends."""
    missing = Ended("no outcome")
    for name in sorted({name for one in runs for name in one.tests}):
        ends = [one.tests.get(name, missing) for one in runs]
        if not all(end.is_as(ends[-1]) for end in ends):
            yield name, ends


def figures(runs: Sequence[Runs], different: Sequence[tuple[str, list[Ended]]]) -> dict[str, Any]:
    """Give the comparison as plain data."""
    return {
        "tests": len(runs[-1].tests),
        "outcomes": {one.engine: dict(Counter(end.outcome for end in one.tests.values())) for one in runs},
        "seconds": {one.engine: round(one.seconds, 1) for one in runs},
        "different": {name: [[end.outcome, end.fixed] for end in ends] for name, ends in different},
        "empty": {kind: [name for name, end in runs[-1].tests.items() if end.outcome == kind] for kind in EMPTY},
    }


def report(runs: Sequence[Runs], different: Sequence[tuple[str, list[Ended]]]) -> Iterator[str]:
    """Yield the lines of the report."""
    reference = runs[-1].tests
    same = len(reference) - len(different)
    files = sorted({name.partition("::")[0] for name in reference})
    engines = " and ".join(one.engine for one in runs)
    yield f"{len(reference)} tests of {len(files)} files: {same} end the same in {engines}, reasons included."
    yield ""
    yield from table(["outcome", *(one.engine for one in runs)], outcome_rows(runs))
    yield ""
    yield from table(["file", "tests", "different", *EMPTY], file_rows(files, reference, different))
    if different:
        yield ""
        cells = ([f"`{name}`", *(cell(f"{end.outcome}: {end.fixed}") for end in ends)] for name, ends in different)
        yield from table(["test", *(one.engine for one in runs)], cells, right=False)
    for kind in EMPTY:
        yield from named(kind, [name for name, end in reference.items() if end.outcome == kind], reference)


def outcome_rows(runs: Sequence[Runs]) -> Iterator[list[str]]:
    """Yield how many tests ended in each way, and the seconds that they took."""
    counts = [Counter(end.outcome for end in one.tests.values()) for one in runs]
    for kind in sorted(set().union(*counts), key=lambda kind: -counts[-1][kind]):
        yield [kind, *(str(count[kind]) for count in counts)]
    yield ["wall s", *(f"{one.seconds:.0f}" for one in runs)]


def file_rows(files: Sequence[str], tests: Mapping[str, Ended], different: Sequence[tuple[str, list[Ended]]]) -> Iterator[list[str]]:
    """Yield the counts of each file."""
    for file in files:
        own = [end.outcome for name, end in tests.items() if name.startswith(f"{file}::")]
        unlike = sum(name.startswith(f"{file}::") for name, _ in different)
        yield [f"`{file}`", str(len(own)), str(unlike), *(str(own.count(kind)) for kind in EMPTY)]


def named(kind: str, names: Sequence[str], all_names: Collection[str]) -> Iterator[str]:
    """Yield a folded list of tests, in which a class stands for its tests when it has no other."""
    if names:
        yield ""
        yield f"<details markdown><summary>{len(names)} tests are {kind}</summary>"
        yield ""
        by_class: dict[str, list[str]] = {}
        for name in names:
            head, _, test = name.rpartition("::")
            by_class.setdefault(head, []).append(test)
        for head, tests in by_class.items():
            whole = len(tests) == sum(name.rpartition("::")[0] == head for name in all_names)
            yield f"- `{head}`: {f'all its tests ({len(tests)})' if whole else ', '.join(f'`{test}`' for test in tests)}"
        yield ""
        yield "</details>"


def table(heads: Sequence[str], rows: Iterator[list[str]], *, right: bool = True) -> Iterator[str]:
    """Yield a Markdown table."""
    yield f"| {' | '.join(heads)} |"
    yield f"| --- |{(' --: |' if right else ' --- |') * (len(heads) - 1)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def cell(text: str) -> str:
    """Write a text into a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def write(page: Path, text: str) -> None:
    """Put the report into its place on a page."""
    before, start, rest = page.read_text(encoding="utf-8").partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise SystemExit(f"{page} has no place for the report: it must hold {START} and {END}")
    page.write_text(f"{before}{START}\n\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
