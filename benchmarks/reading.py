"""What it costs a browser to open the page of a long source: as the site has it, and with the whole listing laid out at once.

    python benchmarks/reading.py FILE ...

A book is made of the files, built with Material, and each page is opened in Chromium with a cold cache: until the script of the page has
been told that it is loaded, until it is painted, and how long it takes to come from there to the middle of the listing. The floor of a
comparison is the same page with a style that takes the work away which is spared.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from measured import chromium, run
from search import served

_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
_SETTINGS = """\
site_name: Reading
use_directory_urls: false
theme: {name: material, font: false}
plugins: [search, rankbook]
"""
_WHOLE = "<style>code > span { content-visibility: visible !important; contain: none !important }</style></head>"
_PAINTED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
_TIMES = 5


class Opened(NamedTuple):
    """Seconds."""

    loaded: float
    painted: float
    middle: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="+")
    chosen = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(prefix="rankbook-reading-") as folder, sync_playwright() as playwright:
        site = build(Path(folder), chosen.file)
        browser = playwright.chromium.launch(executable_path=chromium(), args=_ARGUMENTS)
        print("| page | lines | KB | as | loaded, s | painted, s | to the middle, s |\n|---|--:|--:|---|--:|--:|--:|")
        with served(site) as address:
            for file in chosen.file:
                path = f"suite/src/{file.name}_docs.html"
                lines, size = file.read_bytes().count(b"\n"), (site / path).stat().st_size
                for name, whole in {"stretches": False, "one": True}.items():
                    times = [opened(browser, f"{address}{path}", lines // 2 or 1, whole=whole) for _ in range(_TIMES)]
                    told = " | ".join(f"{statistics.median(column):.2f}" for column in zip(*times, strict=True))
                    print(f"| {file.name} | {lines:,} | {size / 1e3:.0f} | {name} | {told} |", flush=True)
        browser.close()


def build(root: Path, files: list[Path]) -> Path:
    """Make a book of files; give the folder of its site."""
    for folder in ("src", "docs"):
        (root / folder).mkdir()
    for file in files:
        shutil.copy(file, root / "src" / file.name)
    (root / "docs/index.md").write_text("# Reading\n")
    (root / "mkdocs.yml").write_text(_SETTINGS)
    (root / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["src"]\n')
    built = run([sys.executable, "-m", "mkdocs", "build", "--quiet"], root, {"RANKBOOK_CACHE_DIR": f"{root}/cache"})
    if built.status:
        raise SystemExit(built.last)
    return root / "site"


def opened(browser: Any, address: str, line: int, *, whole: bool) -> Opened:
    """Open a page in a browser that has seen nothing of it, and go to a line.

    Args:
        browser: of Playwright.
        address: of the page.
        line: its number.
        whole: whether the listing is laid out as a whole.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    if whole:
        page.route(address, _laid_out)
    start = time.perf_counter()
    page.goto(address, wait_until="load", timeout=120_000)
    loaded = time.perf_counter() - start
    page.evaluate(_PAINTED)
    painted = time.perf_counter() - start
    start = time.perf_counter()
    page.evaluate(f"location.hash = 'L{line}'; {_PAINTED}")
    middle = time.perf_counter() - start
    context.close()
    return Opened(loaded, painted, middle)


def _laid_out(route: Any) -> None:
    had = route.fetch()
    head, _, body = had.text().partition("</head>")
    assert "<span style=--before:" in body
    route.fulfill(response=had, body=f"{head}{_WHOLE}{body}")


if __name__ == "__main__":
    main()
