"""What it costs to prove test files through their pages, beside `python FILE` and `pytest FILE`.

    python benchmarks/prove.py suite
    python benchmarks/prove.py pytorch TREE [--files FILE ...]
    python benchmarks/prove.py gloo TREE
    python benchmarks/prove.py many [--listings N]
    python benchmarks/prove.py stale [--listings N]
    python benchmarks/prove.py peers VENV

`suite` is the bundled suite; `pytorch` the files of PyTorch's `test/distributed` whose tests start ranks on a CPU; `gloo` its
`test_distributed_spawn.py`, the 285 tests of `distributed_test.py` on two ranks; `many` 200 listings of a guide on one rank and 200 on two;
`stale` 500 listings on 50 pages that need not run again; `peers` 200 plain listings beside other plugins, which VENV has installed.
`--keep FILE` keeps what was measured, and goes on from it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from measured import run

ROOT = Path(__file__).parents[1]
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
"""The plugin of hypothesis takes half a second at the end of each session; it has no part in this."""
FILES = (
    "_composable/test_replicate.py",
    "_tensor/experimental/test_local_map.py",
    "_tensor/experimental/test_register_sharding.py",
    "_tensor/test_common_rules.py",
    "_tensor/test_embedding_ops.py",
    "_tensor/test_experimental_ops.py",
    "_tensor/test_init.py",
    "algorithms/test_join.py",
    "checkpoint/test_format_utils.py",
    "rpc/test_share_memory.py",
    "test_c10d_logger.py",
    "test_c10d_object_collectives.py",
    "test_c10d_spawn_gloo.py",
    "test_collective_utils.py",
    "test_launcher.py",
)
"""Files of `test/distributed` with tests that start ranks and pass on a CPU."""
LISTINGS = {"many": 200, "stale": 500, "peers": 200}
PARAGRAPHS = 3 * "The ranks of a process group wait for *one another* in a [collective](https://example.org) until all have come to it.\n\n"
ONE_RANK = "```python\nimport torch\n\nassert torch.ones({0}).sum() == {0}\n```\n"
TWO_RANKS = """```python {{ranks=2}}
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
mine = torch.full((1,), {0}.0 + dist.get_rank())
dist.all_reduce(mine)
assert mine.item() == {1}.0
dist.destroy_process_group()
```
"""
PLAIN = "```python\nnumbers = list(range({0}))\nassert sum(numbers) == {0} * ({0} - 1) // 2\n```\n"
PEERS = {
    "sybil": [],
    "pytest-markdown-docs": ["--markdown-docs"],
    "pytest-codeblocks": ["--codeblocks"],
    "markdown-pytest": [],
}
SYBIL = """
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

pytest_collect_file = Sybil(parsers=[PythonCodeBlockParser()], patterns=["*.md"]).pytest()
"""


class Table:
    """Rows of measurements, kept in a file as they come.

    Args:
        keep: the file; None keeps nothing.
    """

    def __init__(self, keep: Path | None) -> None:
        self.keep = keep
        self.rows: dict[str, dict] = json.loads(keep.read_text()) if keep is not None and keep.is_file() else {}

    def row(self, name: str, measure: Callable[[], dict]) -> None:
        """Measure what is not yet known."""
        if name in self.rows:
            return
        self.rows[name] = measure()
        print(f"  {name}: {self.rows[name]}", file=sys.stderr, flush=True)
        if self.keep is not None:
            self.keep.write_text(json.dumps(self.rows, indent=1))

    def show(self) -> None:
        """Print the table: each group of rows with its last row as 1."""
        print("| what | way | tests | wall s | CPU s | × wall | × CPU | it says |")
        print("|---|---|--:|--:|--:|--:|--:|---|")
        base = {name.split(" · ")[0]: row for name, row in self.rows.items() if " · pages" in name or " · rankbook" in name}
        for name, row in self.rows.items():
            what, way = name.split(" · ")
            own = base.get(what, row)
            ratios = f"{row['wall'] / own['wall']:.2f} | {row['cpu'] / own['cpu']:.2f}"
            print(f"| {what} | {way} | {row['tests']} | {row['wall']:.1f} | {row['cpu']:.1f} | {ratios} | {row['says']} |")


def measured(command: Sequence[str], cwd: Path, variables: dict[str, str] | None = None) -> dict:
    """Run a command and give a row."""
    # What was compiled is kept, as it is wherever nobody forbids it.
    found = run(command, cwd, {"OMP_NUM_THREADS": "1", "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "", **(variables or {})})
    says = found.last.strip("= ")
    tests = sum(int(number) for number in re.findall(r"(\d+) (?:passed|failed|skipped|vacuous|degenerate|proved)", says))
    ran = re.findall(r"^Ran (\d+) tests?", found.output, re.MULTILINE)
    return {"tests": tests or sum(map(int, ran)), "wall": found.wall, "cpu": found.cpu, "says": says[:90], "status": found.status}


def proved(pages: Sequence[str], cwd: Path, variables: dict[str, str] | None = None, options: Sequence[str] = ()) -> dict:
    """Prove pages and give a row."""
    return measured([*PYTEST, "--doctest-glob=*.md", "-k", "not how-to-run-it", *options, *pages], cwd, variables)


def generated(root: Path, files: Sequence[str], out: Path) -> list[str]:
    """Make the pages of files; give those of the files themselves."""
    command = [sys.executable, "-m", "rankbook.cli", "gen", "--root", str(root), *files, "--out", str(out), "--package-path", "installed"]
    found = run(command, root)
    if found.status:
        raise SystemExit(found.output)
    pages = [out / f"{file}_docs.md" for file in files]
    return [str(page) for page in pages if page.is_file()] or sorted(map(str, out.rglob("test_*.py_docs.md")))


def suite(table: Table, _chosen: argparse.Namespace, folder: Path) -> None:
    """Measure the bundled suite."""
    pages = generated(ROOT, ["tests/distributed"], folder / "docs")
    table.row("bundled suite · pytest FILES", lambda: measured([*PYTEST, "tests/distributed"], ROOT))
    table.row("bundled suite · fresh", lambda: proved(pages, ROOT, options=["--engine=fresh"]))
    table.row("bundled suite · pages", lambda: proved(pages, ROOT))


def pytorch(table: Table, chosen: argparse.Namespace, folder: Path) -> None:
    """Measure files of PyTorch's `test/distributed`, one after the other."""
    test = Path(chosen.tree) / "test"
    files = [f"distributed/{name}" for name in chosen.files or FILES]
    for file in files:
        _one_file(table, test, file, {"TEMP_DIR": str(folder)}, folder)
    options = ["--noconftest", f"--source-path={test}", f"--rootdir={folder}"]
    pages = generated(test, files, folder / "docs")
    table.row("all of them, one session · pages", lambda: proved(pages, folder, {"TEMP_DIR": str(folder)}, options))


def gloo(table: Table, chosen: argparse.Namespace, folder: Path) -> None:
    """Measure the 285 tests of `distributed_test.py` on two ranks."""
    (folder / "barrier").mkdir(exist_ok=True)
    (folder / "init_dir").mkdir(exist_ok=True)
    variables = {"BACKEND": "gloo", "WORLD_SIZE": "2", "TEMP_DIR": str(folder)}
    _one_file(table, Path(chosen.tree) / "test", "distributed/test_distributed_spawn.py", variables, folder)


def _one_file(table: Table, test: Path, file: str, variables: dict[str, str], folder: Path) -> None:
    what = file.removeprefix("distributed/")
    table.row(f"{what} · python FILE", lambda: measured([sys.executable, file], test, variables))
    table.row(f"{what} · pytest FILE", lambda: measured([*PYTEST, "--noconftest", "-p", "no:rankbook", file], test, variables))
    pages = generated(test, [file], folder / "docs")
    options = ["--noconftest", f"--source-path={test}", f"--rootdir={folder}"]
    table.row(f"{what} · pages", lambda: proved(pages, folder, variables, options))


def many(table: Table, chosen: argparse.Namespace, folder: Path) -> None:
    """Measure many short listings, each in processes of its own."""
    for ranks, listing in (("one rank", ONE_RANK), ("two ranks", TWO_RANKS)):
        page = folder / f"{ranks.replace(' ', '-')}.md"
        page.write_text("\n".join(listing.format(number, 2 * number + 1) for number in range(1, chosen.listings + 1)))
        table.row(f"{chosen.listings} listings on {ranks} · rankbook", lambda page=page: proved([page.name], folder))


def stale(table: Table, chosen: argparse.Namespace, folder: Path) -> None:
    """Measure listings that the ledger proves: beside a run of all, and where their pages are not kept rendered."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "docs").mkdir()
    for first in range(1, chosen.listings + 1, 10):
        parts = [
            f"## Part {number}\n\n{PARAGRAPHS}\n{PLAIN.format(number)}" for number in range(first, min(first + 10, chosen.listings + 1))
        ]
        (folder / "docs" / f"page{first}.md").write_text("# Page\n\n" + "\n".join(parts))
    for way, cache, options in (
        ("all run", "kept", []),
        ("--stale, pages rendered again", "none", ["--stale"]),
        ("rankbook --stale", "kept", ["--stale"]),
    ):
        variables = {"RANKBOOK_CACHE_DIR": str(folder / cache)}
        table.row(
            f"{chosen.listings} unchanged listings · {way}",
            lambda variables=variables, options=options: proved(["docs"], folder, variables, options),
        )


def peers(table: Table, chosen: argparse.Namespace, folder: Path) -> None:
    """Measure plain listings beside other plugins, which run them all in one process."""
    listings = [PLAIN.format(number) for number in range(1, chosen.listings + 1)]
    text = "\n".join(listings)
    python = [str(Path(chosen.venv) / "bin" / "python"), *PYTEST[1:]]
    for name, options in PEERS.items():
        own = folder / name
        own.mkdir(exist_ok=True)
        named = "\n".join(f"<!-- name: test_{number} -->\n{listing}" for number, listing in enumerate(listings))
        (own / "page.md").write_text(named if name == "markdown-pytest" else text)
        if name == "sybil":
            (own / "conftest.py").write_text(SYBIL)
        quiet = [option for other in PEERS if other != name for option in ("-p", f"no:{PLUGINS[other]}")]
        command = [*python, *quiet, *options, "page.md"]
        table.row(f"{chosen.listings} plain listings · {name}", lambda command=command, own=own: measured(command, own))
    (folder / "page.md").write_text(text)
    table.row(f"{chosen.listings} plain listings · rankbook", lambda: proved(["page.md"], folder))


PLUGINS = {
    "sybil": "sybil",
    "pytest-markdown-docs": "pytest_markdown_docs",
    "pytest-codeblocks": "codeblocks",
    "markdown-pytest": "markdown-pytest",
}


MEASURES = {"suite": suite, "pytorch": pytorch, "gloo": gloo, "many": many, "stale": stale, "peers": peers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    for name in MEASURES:
        inner = commands.add_parser(name)
        inner.add_argument("--keep", type=Path)
        if name in ("pytorch", "gloo"):
            inner.add_argument("tree")
        if name == "pytorch":
            inner.add_argument("--files", nargs="+")
        if name in LISTINGS:
            inner.add_argument("--listings", type=int, default=LISTINGS[name])
        if name == "peers":
            inner.add_argument("venv")
    chosen = parser.parse_args()
    table = Table(chosen.keep)
    with tempfile.TemporaryDirectory(prefix="rankbook-benchmark-") as folder:
        MEASURES[chosen.what](table, chosen, Path(folder))
    table.show()


if __name__ == "__main__":
    main()
