"""What it costs to publish a book: from Python sources to the site that `mkdocs build` leaves, beside what other tools take.

    python benchmarks/publish.py scale [COUNT ...]
    python benchmarks/publish.py peers VENV [--count COUNT]

`scale` draws so many files (`corpus.py`), writes a project around them as `rankbook init` would, and builds it with Material: from nothing,
unchanged, after an edit of one file, and with new runs in the ledger; then it builds what came of that once more from nothing, elsewhere,
and ends with an error unless both sites and both folders of pages are the same, byte for byte.

`peers` builds the same pages with plain MkDocs and Material and with Zensical, and turns the sources of networkx, its tests included, into
HTML with Doxygen, pdoc, and Sphinx with AutoAPI. VENV has `mkdocs-material`, `zensical`, `pdoc`, `sphinx-autoapi` and `networkx`
installed; Doxygen is looked for on the path. What fails is told with its last line.

Each measurement runs in processes of its own; `--keep FILE` keeps what was measured, and goes on from it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from corpus import copy_package, draw
from measured import Measured, run

COUNTS = (200, 1000, 5000, 20000)
OUT = "docs/suite"
"""Folder of the generated pages."""
MKDOCS = [sys.executable, "-m", "mkdocs", "build", "--quiet"]
GEN = [sys.executable, "-m", "rankbook.cli", "gen"]
_SETTLED = {"NO_MKDOCS_2_WARNING": "1", "SOURCE_DATE_EPOCH": "1767225600"}
"""With the same date in both, the maps of two sites can be compared."""
_TIMES = 3
"""How often a short step is measured."""
_PARAGRAPH = "Ranks of a [process group](index.md) wait for *one another* in a `collective` until all of them have come to it.\n\n"
_GUIDE = f"# {{}}\n\n{12 * _PARAGRAPH}"
_GUIDES = ("index.md", "getting-started.md", "running.md", "writing.md", "machines.md", "reference.md")
_SETTINGS = """\
site_name: Scale
use_directory_urls: false
theme:
  name: material
  font: false
  features: [{features}]
markdown_extensions:
  - admonition
  - attr_list
  - tables
  - toc:
      permalink: true
  - pymdownx.highlight:
      anchor_linenums: true
      line_spans: __span
  - pymdownx.superfences
plugins: [{plugins}]
"""
_NAVIGATION = f"nav: [{', '.join(_GUIDES)}, suite/]\n"
_DOXYFILE = """\
INPUT = {sources}
OUTPUT_DIRECTORY = {out}
RECURSIVE = YES
FILE_PATTERNS = *.py
GENERATE_LATEX = NO
SOURCE_BROWSER = YES
EXTRACT_ALL = YES
HAVE_DOT = NO
QUIET = YES
WARNINGS = NO
"""
_CONF = """\
project = "networkx"
extensions = ["autoapi.extension", "sphinx.ext.viewcode"]
autoapi_dirs = [{sources!r}]
"""
_PDOC = ["networkx", "!networkx.*tests", "!networkx.conftest", "!networkx.*test_all_random_functions"]
"""It imports what it documents, and ends when an import fails."""


@dataclass(frozen=True)
class Row:
    """What one step took."""

    name: str
    wall: float
    cpu: float
    peak: float
    """MB of the largest process."""
    failed: str = ""
    """How it failed; empty when it did not."""
    pages: int = 0
    """HTML pages of the site."""
    size: int = 0
    """Bytes of the site."""
    note: str = ""


class Kept:
    """Rows that were measured, by their table and name.

    Args:
        file: where they are kept; None to measure all of them now.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._rows: dict[str, dict[str, dict[str, object]]] = json.loads(file.read_text()) if file and file.is_file() else {}

    def has(self, table: str) -> bool:
        """Whether a whole table was measured before."""
        return table in self._rows

    def table(self, table: str) -> dict[str, Row]:
        """Give the rows of a table."""
        return {name: Row(**values) for name, values in self._rows.get(table, {}).items()}  # type: ignore[arg-type]

    def put(self, table: str, rows: Mapping[str, Row]) -> None:
        """Keep the rows of a table."""
        self._rows[table] = {name: asdict(row) for name, row in rows.items()}
        if self._file:
            self._file.write_text(json.dumps(self._rows, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, help="file that keeps what was measured")
    parser.add_argument("--folder", type=Path, help="where to work, and to leave what was made; a temporary folder otherwise")
    commands = parser.add_subparsers(required=True)
    scale = commands.add_parser("scale")
    scale.add_argument("counts", nargs="*", type=int, default=COUNTS)
    scale.set_defaults(measure=measure_scale)
    peers = commands.add_parser("peers")
    peers.add_argument("venv", type=Path)
    peers.add_argument("--count", type=int, default=200, help="sources whose pages other engines build")
    peers.set_defaults(measure=measure_peers)
    chosen = parser.parse_args()
    kept = Kept(chosen.keep)
    if chosen.folder:
        chosen.folder.mkdir(parents=True, exist_ok=True)
        chosen.measure(chosen, kept, chosen.folder.resolve())
        return
    with tempfile.TemporaryDirectory() as folder:
        chosen.measure(chosen, kept, Path(folder).resolve())


# Scale


def measure_scale(chosen: argparse.Namespace, kept: Kept, folder: Path) -> None:
    """Measure books of several sizes, one after the other."""
    tables = {}
    for count in chosen.counts:
        name = f"{count:,} sources"
        if not kept.has(name):
            kept.put(name, {row.name: row for row in scaled(count, folder / str(count))})
        tables[count] = kept.table(name)
        show_scale(name, tables[count])
    show_growth(tables)


def scaled(count: int, folder: Path) -> Iterator[Row]:
    """Build a book of so many sources again and again, and yield what each build took."""
    root = folder / "book"
    size = draw(count, root / "src")
    write_project(root, plugins="search, rankbook")
    site = root / "site"
    yield told("from nothing", mkdocs(root), site, note=f"{size} bytes of source")
    engine = folder / "engine"
    write_project(engine, plugins="search")
    yield told("the engine alone", median(lambda: mkdocs(engine)), engine / "site", note="its own pages, without the book")
    yield told("the pages alone", run(GEN, root, cache(folder / "gen")), note="`rankbook gen`, its cache empty")
    mkdocs(root)  # folders settle
    yield told("nothing changed", median(lambda: mkdocs(root)), site)
    source = edited(root)
    yield told("one edit", mkdocs(root), site, note=source.relative_to(root).as_posix())
    record(root, 0, 100)
    mkdocs(root)  # with the first runs every page says what was never run
    tests = record(root, 100, 120)
    yield told("new runs in the ledger", mkdocs(root), site, note=f"{tests} tests of 20 files that were never run")
    yield compared(root, folder / "again" / root.name)


def write_project(root: Path, plugins: str, *, features: str = "navigation.prune", nav: bool = True) -> None:
    """Write the settings and the pages that people made."""
    (root / "docs").mkdir(parents=True, exist_ok=True)
    for name in _GUIDES:
        (root / "docs" / name).write_text(_GUIDE.format(name.partition(".")[0].capitalize()))
    navigation = _NAVIGATION if "rankbook" in plugins else _NAVIGATION.replace(", suite/", "")
    (root / "mkdocs.yml").write_text(_SETTINGS.format(features=features, plugins=plugins) + (navigation if nav else ""))
    (root / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["src"]\ntitle = "Scale"\n')


def mkdocs(root: Path) -> Measured:
    """Run the user's command, with a cache beside the project."""
    return run(MKDOCS, root, _SETTLED | cache(root.parent / "cache"))


def cache(folder: Path) -> dict[str, str]:
    """Name the folder that takes the place of the user's cache."""
    return {"RANKBOOK_CACHE_DIR": os.fspath(folder)}


def median(measure: Callable[[], Measured]) -> Measured:
    """Measure a short step several times, and give the median by CPU time."""
    return sorted((measure() for _ in range(_TIMES)), key=lambda each: (each.status != 0, each.cpu))[_TIMES // 2]


def edited(root: Path) -> Path:
    """Add a test at the end of a file, and name the file."""
    source = min((path for path in (root / "src").rglob("test_*.py") if 4000 < path.stat().st_size < 40_000), key=os.fspath)
    with source.open("a") as file:
        file.write("\n\ndef test_one_more():\n    assert True\n")
    return source


def record(root: Path, first: int, end: int) -> int:
    """Record that the tests of some of the files with tests have passed, and give their number."""
    from rankbook.config import load
    from rankbook.document import survey_tree
    from rankbook.ledger import Ledger
    from rankbook.listing import Outcome, Run

    os.environ |= cache(root.parent / "cache")
    settings = load(root)
    project = survey_tree(settings)
    sources = [path for path, survey in project.surveys.items() if survey.tests][first:end]
    runs = [
        Run(
            page=f"{OUT}/{path}_docs.md",
            node_id=f"{OUT}/{path}_docs.md::{test.id}",
            listing=project.modules[path].source.sha256,
            source=path,
            line=test.line,
            kind="test",
            outcome=Outcome.PASSED,
            duration=0.5,
            when="2026-01-01T00:00:00+00:00",
            machine="CPU, 2 cores, x86_64",
            engine="local",
            case={"id": test.id},
        )
        for path in sources
        for test in project.surveys[path].tests
    ]
    Ledger(settings.below_root(settings.ledger)).record(runs)
    return len(runs)


def compared(root: Path, again: Path) -> Row:
    """Build a copy of the project from nothing, and compare pages and site with those that grew.

    Raises:
        SystemExit: they differ.
    """
    made = {os.fspath(root): {"site"}, f"{root}/docs": {"suite"}}
    shutil.copytree(root, again, ignore=lambda folder, names: made.get(os.fspath(folder), set()).intersection(names))
    built = mkdocs(again)
    pairs = [(f"{root}/{name}", f"{again}/{name}") for name in ("docs", "site")]
    differing = [line for pair in pairs for line in run(["diff", "-rq", *pair], root).output.splitlines()]
    if built.status or differing:
        raise SystemExit("\n".join([f"a build from nothing gives something else: {built.last}", *differing[:20]]))
    return told("from nothing, once more", built, again / "site", note="the same pages and the same site, byte for byte")


def told(name: str, measured: Measured, site: Path | None = None, note: str = "") -> Row:
    """Make the row of a step."""
    failed = "" if measured.status == 0 else f"exit {measured.status}: {measured.last}"
    files = [path for path in site.rglob("*") if path.is_file()] if site else []
    pages, size = sum(path.suffix == ".html" for path in files), sum(path.stat().st_size for path in files)
    return Row(name, measured.wall, measured.cpu, measured.peak, failed, pages, size, note)


def show_scale(name: str, rows: Mapping[str, Row]) -> None:
    """Print the table of one size."""
    cold = rows["from nothing"]
    source = int(cold.note.split()[0])
    engine = rows["the engine alone"]
    ratio = cold.size / source
    print(f"\n{name}, {source / 1e6:.1f} MB: {cold.pages:,} HTML pages, {cold.size / 1e6:.0f} MB, {ratio:.1f} bytes for each of source\n")
    print("| step | wall s | CPU s | beyond the engine, wall s | CPU s | peak MB | |\n|---|--:|--:|--:|--:|--:|---|")
    for row in rows.values():
        beyond = [f"{row.wall - engine.wall:.2f}", f"{row.cpu - engine.cpu:.2f}"] if row.size and row is not engine else ["", ""]
        note = row.failed or ("" if row is cold else row.note)
        print(f"| {row.name} | {row.wall:.2f} | {row.cpu:.2f} | {' | '.join(beyond)} | {row.peak:.0f} | {note} |")


def show_growth(tables: Mapping[int, Mapping[str, Row]]) -> None:
    """Print how the CPU time of a build from nothing grows with the number of sources."""
    counts = sorted(tables)
    for small, large in pairwise(counts):
        ratio = tables[large]["from nothing"].cpu / tables[small]["from nothing"].cpu
        print(f"\n{large:,} sources take {ratio:.2f} × the CPU time of {small:,}, of which they are {large / small:.2f} ×.")


# Peers


def measure_peers(chosen: argparse.Namespace, kept: Kept, folder: Path) -> None:
    """Measure other engines on the same pages, and other tools on the same sources."""
    venv = chosen.venv.resolve()
    jobs: dict[str, Callable[[Path], Iterator[Row]]] = {
        f"Engines on the pages of {chosen.count:,} sources": lambda place: engines(chosen.count, venv, place),
        "Tools on networkx": lambda place: tools(venv, place),
    }
    for number, (name, measure) in enumerate(jobs.items()):
        if not kept.has(name):
            kept.put(name, {row.name: row for row in measure(folder / f"peers{number}")})
        show_peers(name, kept.table(name))


def engines(count: int, venv: Path, folder: Path) -> Iterator[Row]:
    """Publish the same pages with rankbook, and with engines that build each of them."""
    root = folder / "book"
    draw(count, root / "src")
    write_project(root, plugins="search, rankbook")
    yield told("rankbook, sources to site", mkdocs(root), root / "site", note="`mkdocs build`, caches empty")
    plain = {"MkDocs + Material": "navigation.prune", "MkDocs + Material, whole navigation": ""}
    for number, (name, features) in enumerate(plain.items()):
        other = folder / f"plain{number}" / "book"
        shutil.copytree(root / "docs", other / "docs")
        write_project(other, plugins="search", features=features, nav=False)
        yield told(name, run([f"{venv}/bin/mkdocs", "build", "--quiet"], other, _SETTLED), other / "site", note="pages to site")
    other = folder / "zensical" / "book"
    shutil.copytree(root / "docs", other / "docs")
    write_project(other, plugins="search", nav=False)
    yield told("Zensical", run([f"{venv}/bin/zensical", "build"], other), other / "site", note="pages to site")


def tools(venv: Path, folder: Path) -> Iterator[Row]:
    """Turn the sources of one package into HTML."""
    root = folder / "book"
    copy_package("networkx", root / "src")
    sources = root / "src"
    write_project(root, plugins="search, rankbook")
    yield told("rankbook, sources to site", mkdocs(root), root / "site", note="`mkdocs build`, caches empty")
    yield told("of which the pages", run(GEN, root, cache(folder / "gen")), note="`rankbook gen`, its cache empty")
    if doxygen := shutil.which("doxygen"):
        (folder / "Doxyfile").write_text(_DOXYFILE.format(sources=sources, out=folder / "doxygen"))
        yield told("Doxygen, source browser", run([doxygen, "Doxyfile"], folder), folder / "doxygen", note="no graphs")
    yield told("pdoc", run([f"{venv}/bin/pdoc", *_PDOC, "-o", f"{folder}/pdoc"], folder), folder / "pdoc", note="without tests")
    (folder / "sphinx").mkdir()
    (folder / "sphinx/conf.py").write_text(_CONF.format(sources=os.fspath(sources / "networkx")))
    (folder / "sphinx/index.rst").write_text("networkx\n========\n")
    made = run([f"{venv}/bin/sphinx-build", "-q", "-b", "html", "sphinx", "html"], folder)
    yield told("Sphinx + AutoAPI + viewcode", made, folder / "html")


def show_peers(name: str, rows: Mapping[str, Row]) -> None:
    """Print a table with the first row as 1."""
    first = next(iter(rows.values()))
    print(f"\n{name}\n\n| tool | wall s | CPU s | × CPU | peak MB | HTML pages | MB | |\n|---|--:|--:|--:|--:|--:|--:|---|")
    for row in rows.values():
        shown = [
            f"{row.wall:.1f}",
            f"{row.cpu:.1f}",
            f"{row.cpu / first.cpu:.1f}",
            f"{row.peak:.0f}",
            f"{row.pages:,}",
            f"{row.size / 1e6:.0f}",
        ]
        print(f"| {row.name} | {' | '.join(shown)} | {row.failed or row.note} |")


if __name__ == "__main__":
    main()
