"""The search of a book beside Material's own and Pagefind: what is built, what a first result fetches, and what it costs the browser.

    python benchmarks/search.py PROJECT [--peers] [--edit SOURCE]

PROJECT has a `pyproject.toml` with rankbook's settings; nothing in it is changed. With `--peers` its pages are also built by MkDocs with
Material, whose search is measured on the same pages, and, where the package `pagefind[bin]` is installed, indexed by Pagefind. Each query
starts with a cold cache.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import importlib.util
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from measured import Measured, chromium, run

QUERIES = ("all_reduce", "TestCase", "reduce", "tensor", "test_basic", "linalg.norm", "forward", "parse")
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
_WRITE = """
import resource, sys
from pathlib import Path
from rankbook import searching
from rankbook.config import load
from rankbook.document import survey_tree
settings = load(Path(sys.argv[1]))
before = resource.getrusage(resource.RUSAGE_SELF)
written = searching.write(settings, Path(sys.argv[2]), base="book", survey=lambda: survey_tree(settings))
after = resource.getrusage(resource.RUSAGE_SELF)
cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
print(cpu, after.ru_maxrss // 1024, written.files, written.written, written.size)
"""
_PAGE = """<!doctype html><html lang="en"><title>Search</title>
<link rel="stylesheet" href="assets/rankbook.css"><script src="assets/rankbook.js"></script></html>
"""
_PAGEFIND = '<!doctype html><html lang="en"><title>Pagefind</title></html>'
_MATERIAL = """
site_name: peer
docs_dir: {docs}
site_dir: {site}
use_directory_urls: false
theme: {{name: material, font: false, features: [navigation.prune]}}
markdown_extensions: [tables, attr_list, pymdownx.superfences]
plugins: [search]
"""


_OF_SEARCH = re.compile(r"/rankbook-search/|/search/search_index|/workers/search|/pagefind/")
"""Addresses of what a search reads; Material begins with it before anyone asks."""


class Build(NamedTuple):
    """What a run of `searching.write` took."""

    cpu: float
    peak: int
    """MB of the process."""
    files: int
    written: int
    size: int


class First(NamedTuple):
    """What the first result of a query took from the moment in which the search was opened."""

    fetched: int
    """Bytes."""
    script: float
    """Milliseconds of script on the page's own thread."""
    browser: float
    """Milliseconds of CPU time of all the browser's processes."""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server that says nothing."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def write(project: Path, site: Path) -> Build:
    """Write the shards of a project in a process of its own."""
    said = subprocess.run([sys.executable, "-c", _WRITE, str(project), str(site)], check=True, capture_output=True, text=True).stdout
    cpu, *numbers = said.split()
    return Build(float(cpu), *map(int, numbers))


def copied(project: Path, folder: Path) -> Path:
    """Copy the sources and the settings of a project, with pages of its own."""
    copy = folder / "project"
    shutil.copytree(project, copy, ignore=shutil.ignore_patterns(".git", "site", "docs"), symlinks=True)
    settings = [line for line in (copy / "pyproject.toml").read_text().splitlines() if not line.startswith(("out", "docs"))]
    (copy / "pyproject.toml").write_text("\n".join(settings).replace("[tool.rankbook]", '[tool.rankbook]\nout = "docs/book"') + "\n")
    return copy


def done(command: list[str], cwd: Path) -> Measured:
    """Run a command that must succeed, and measure it."""
    measured = run(command, cwd)
    if measured.status:
        raise SystemExit(f"{' '.join(command)} failed:\n{measured.output}")
    return measured


def generate(project: Path) -> None:
    """Generate the pages."""
    done([sys.executable, "-m", "rankbook.cli", "gen"], project)


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve a site."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def rankbook_first(page: Any, query: str) -> None:
    """Open rankbook's search, and wait for the answer to a query."""
    page.keyboard.press("t")
    page.get_by_role("combobox").fill(query)
    page.wait_for_function("query => document.querySelector('.rankbook-search__status').dataset.query === query", arg=query)


def material_first(page: Any, query: str) -> None:
    """Open Material's search, and wait for the first result of a query."""
    page.locator(".md-search__input").click()
    page.locator(".md-search__input").fill(query)
    page.wait_for_function("document.querySelector('.md-search-result__meta')?.textContent.match(/\\\\d|No match/)", timeout=300_000)


def pagefind_first(page: Any, query: str) -> None:
    """Load Pagefind, and wait for the first result of a query."""
    page.evaluate(
        "async query => { const found = await (await import('/pagefind/pagefind.js')).search(query); await found.results[0]?.data(); }",
        query,
    )


def measure(browser: Any, address: str, query: str, first: Callable[[Any, str], None]) -> First:
    """Measure a query on a page that has just been opened, in a browser that has seen nothing before."""
    context = browser.new_context()
    try:
        page = context.new_page()
        page.set_default_timeout(300_000)
        network = context.new_cdp_session(page)
        fetched: list[int] = []
        ours: set[str] = set()
        network.send("Network.enable")
        network.send("Performance.enable")
        network.on("Network.requestWillBeSent", lambda event: _OF_SEARCH.search(event["request"]["url"]) and ours.add(event["requestId"]))
        network.on("Network.loadingFinished", lambda event: event["requestId"] in ours and fetched.append(int(event["encodedDataLength"])))
        page.goto(address)
        page.wait_for_load_state("networkidle")
        script, cpu = _script(network), _cpu()
        first(page, query)
        return First(sum(fetched), 1000 * (_script(network) - script), 1000 * (_cpu() - cpu))
    finally:
        context.close()


def _script(session: Any) -> float:
    return next(each["value"] for each in session.send("Performance.getMetrics")["metrics"] if each["name"] == "ScriptDuration")


def _cpu() -> float:
    """Count the CPU seconds of this process's descendants, the browser's processes among them."""
    parents: dict[int, tuple[int, int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1]), int(fields[11]) + int(fields[12])
    mine = {os.getpid()}
    while more := {each for each, (parent, _) in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(parents[each][1] for each in mine - {os.getpid()} if each in parents) / os.sysconf("SC_CLK_TCK")


def ask(site: Path, first: Callable[[Any, str], None]) -> dict[str, First]:
    """Measure all queries."""
    from playwright.sync_api import sync_playwright

    with served(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=_ARGUMENTS)
        measure(browser, address, QUERIES[0], first)  # the first of all warms the browser's own code
        found = {query: measure(browser, address, query, first) for query in QUERIES}
        browser.close()
    return found


def size_of(folder: Path, *names: str) -> tuple[int, int]:
    """Count the files, and their bytes, that match patterns."""
    files = [path for name in names for path in folder.glob(name) if path.is_file()]
    return len(files), sum(path.stat().st_size for path in files)


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", type=Path)
    parser.add_argument(
        "--peers", action="store_true", help="measure Material's search, and Pagefind where it is installed, on the same pages"
    )
    parser.add_argument(
        "--edit", help="source that gets a comment at its start and a test at its end (default: the Python file of middle size)"
    )
    parser.add_argument("--keep", type=Path, help="JSON file for all figures")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["RANKBOOK_CACHE_DIR"] = str(folder / "cache")
        project = copied(chosen.project.resolve(), folder)
        figures = own(project, folder / "site", chosen.edit)
        if chosen.peers:
            figures |= peers(project, folder)
    tables(figures)
    if chosen.keep:
        chosen.keep.write_text(json.dumps(figures, indent=1) + "\n")


def own(project: Path, site: Path, edited: str | None) -> dict[str, Any]:
    """Measure rankbook's search."""
    from rankbook.site.assets import script, style

    sources = [path for path in project.rglob("*.py") if path.is_file()]
    generate(project)
    steps = {"cold": write(project, site), "unchanged": write(project, site)}
    source = project / edited if edited else sorted(sources, key=lambda path: (path.stat().st_size, path))[len(sources) // 2]
    text = source.read_bytes()
    source.write_bytes(b"# A comment.\n" + text + b"\n\ndef test_that_was_added():\n    pass\n")
    generate(project)
    steps["edit"] = write(project, site)
    source.write_bytes(text)
    generate(project)
    write(project, site)
    (site / "assets/rankbook.js").write_text(script())
    (site / "assets/rankbook.css").write_text(style())
    (site / "index.html").write_text(_PAGE)
    return {
        "sources": (len(sources), sum(path.stat().st_size for path in sources)),
        "steps": {name: step._asdict() for name, step in steps.items()},
        "rankbook": {"cpu": steps["cold"].cpu, "index": (steps["cold"].files, steps["cold"].size), "queries": ask(site, rankbook_first)},
    }


def peers(project: Path, folder: Path) -> dict[str, Any]:
    """Measure the searches of others on the same pages."""
    site = folder / "peer"
    (folder / "mkdocs.yml").write_text(_MATERIAL.format(docs=project / "docs", site=site))
    if not (project / "docs/index.md").is_file():
        (project / "docs/index.md").write_text("# Start\n")
    with_index = done([sys.executable, "-m", "mkdocs", "build", "--quiet", "-f", str(folder / "mkdocs.yml")], folder)
    found: dict[str, Any] = {
        "Material": {"cpu": with_index.cpu, "index": size_of(site, "search/search_index.json"), "queries": ask(site, material_first)}
    }
    if importlib.util.find_spec("pagefind"):
        indexed = done([sys.executable, "-m", "pagefind", "--site", str(site)], folder)
        (site / "index.html").write_text(_PAGEFIND)
        found["Pagefind"] = {"cpu": indexed.cpu, "index": size_of(site, "pagefind/**/*"), "queries": ask(site, pagefind_first)}
    return found


def tables(figures: dict[str, Any]) -> None:
    """Print what was measured; ratios are to rankbook's."""
    count, size = figures["sources"]
    print(f"{count:,} Python files, {size / 1e6:.1f} MB; {time.strftime('%Y-%m-%d')}\n")
    print("| `searching.write` | CPU s | peak MB | files | written | MB |\n|---|--:|--:|--:|--:|--:|")
    for name, step in figures["steps"].items():
        print(f"| {name} | {step['cpu']:.2f} | {step['peak']} | {step['files']} | {step['written']} | {step['size'] / 1e6:.1f} |")
    print("\n| search | built in CPU s | files | MB | × | fetched KB, median (most) | × | script ms | browser CPU ms | × |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    floor: list[float] = []
    for name in ("rankbook", "Material", "Pagefind"):
        if name in figures:
            row, files = figures[name], figures[name]["index"]
            queries = [First(*each) for each in row["queries"].values()]
            fetched = [each.fetched / 1e3 for each in queries]
            values = [files[1] / 1e6, statistics.median(fetched), statistics.median(each.browser for each in queries)]
            floor = floor or values
            times = [value / max(other, 1e-9) for value, other in zip(values, floor, strict=True)]
            script = statistics.median(each.script for each in queries)
            built = f"{row['cpu']:.1f} | {files[0]} | {values[0]:.1f} | {times[0]:.2f}"
            costs = f"{script:.0f} | {values[2]:.0f} | {times[2]:.2f}"
            print(f"| {name} | {built} | {values[1]:.0f} ({max(fetched):.0f}) | {times[1]:.2f} | {costs} |")
    print("\nMaterial's CPU seconds are those of its whole build: its index is part of it. It and Pagefind index prose as well.")


if __name__ == "__main__":
    main()
