"""Seconds from saving a source to its new text in a browser: `mkdocs serve` with rankbook's stamping, without it, and `zensical serve`.

    python benchmarks/live.py CORPUS ... [--edits 5] [--ways stamped,engine,zensical]

A corpus is a project with sources in `src/`. Its copy gets a home page, five pages of a guide and Material's theme.
An edit adds a comment with a word of its own to a source whose page is open in Chromium; the clock stops when the word is on the page.
Zensical knows nothing of sources: there the edit is followed by `rankbook gen`, whose time counts.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from measured import chromium

REPOSITORY = Path(__file__).parents[1]
LIMIT = 900.0
"""Seconds after which a server counts as dead, and an edit as lost."""
WAYS = {
    "stamped": ("mkdocs", "serve", "--dev-addr"),
    "engine": ("mkdocs", "serve", "--dev-addr"),
    "zensical": ("zensical", "serve", "--dev-addr"),
}
"""Commands by the name of the way; each takes the address as its last argument."""


def project(corpus: Path, root: Path, way: str) -> Path:
    """Copy a corpus, and make it a book; give the source that is edited."""
    shutil.copytree(corpus, root, ignore=shutil.ignore_patterns("docs", ".rankbook", "site"))
    if not (root / "pyproject.toml").is_file():
        (root / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["src"]\n')
    settings = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))
    guide = [f"guide/{number}.md" for number in range(5)]
    settings["nav"] = ["index.md", *guide, "suite/index.md" if way == "zensical" else "suite/"]
    settings["plugins"] = ["search"] if way == "zensical" else ["search", {"rankbook": {"stamp": way == "stamped"}}]
    (root / "mkdocs.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    (root / "docs/guide").mkdir(parents=True)
    (root / "docs/index.md").write_text("# Home\n\nThe [suite](suite/index.md).\n")
    for number in range(5):
        (root / f"docs/guide/{number}.md").write_text(f"# Guide {number}\n\nWords on how to read the suite.\n")
    gen(root)
    return min((path for path in (root / "src").rglob("test_*.py") if path.stat().st_size > 2000), key=lambda path: path.stat().st_size)


def gen(root: Path) -> None:
    """Bring the pages up to date."""
    subprocess.run([sys.executable, "-m", "rankbook.cli", "gen"], cwd=root, env=environment(root), check=True, stdout=subprocess.DEVNULL)


def environment(root: Path) -> dict[str, str]:
    """Give the environment of a command: with a cache of the project's own."""
    return {**os.environ, "RANKBOOK_CACHE_DIR": f"{root}-cache", "NO_MKDOCS_2_WARNING": "1"}


@contextmanager
def served(root: Path, way: str) -> Iterator[str]:
    """Start a server; give its address once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"127.0.0.1:{port}"
    with (root.parent / f"{root.name}.log").open("wb") as log:
        command = [sys.executable, "-m", *WAYS[way], address]
        server = subprocess.Popen(command, cwd=root, env=environment(root), stdout=log, stderr=subprocess.STDOUT)
    try:
        until = time.monotonic() + LIMIT
        while not answers(f"http://{address}/"):
            if server.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"the server has ended; see {root}.log")
            time.sleep(0.05)
        yield f"http://{address}/"
    finally:
        server.terminate()
        server.wait()


def answers(address: str) -> bool:
    """Tell whether a server does."""
    try:
        with urllib.request.urlopen(address, timeout=LIMIT) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def edits(page: Any, source: Path, root: Path, way: str, count: int) -> Iterator[float]:
    """Save a source several times; give the seconds until each shows."""
    text = source.read_text(encoding="utf-8")
    for number in range(count):
        page.wait_for_timeout(1500)  # the page's own script has begun to wait for news
        word = f"saved_{number}_{time.time_ns()}"
        beside = source.with_name(f".{source.name}.swp")
        beside.write_text(f"{text}\n# {word}\n", encoding="utf-8")
        start = time.perf_counter()
        beside.replace(source)
        if way == "zensical":
            gen(root)
        page.wait_for_function("word => document.body && document.body.textContent.includes(word)", arg=word, timeout=LIMIT * 1000)
        yield time.perf_counter() - start


def main() -> None:
    """Print a row for each corpus and way."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", type=Path, metavar="CORPUS")
    parser.add_argument("--edits", type=int, default=5)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--keep", type=Path, help="folder for the copies (default: a temporary one)")
    chosen = parser.parse_args()
    print("| corpus | way | start (s) | save to visible: median (s) | longest (s) |\n|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="rankbook-live-", dir=chosen.keep) as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        for corpus in chosen.corpora:
            for way in chosen.ways.split(","):
                root = Path(folder, f"{corpus.name}-{way}")
                source = project(corpus, root, way)
                begun = time.perf_counter()
                with served(root, way) as address:
                    start = time.perf_counter() - begun
                    page = browser.new_page()
                    ending = "_docs/" if way == "zensical" and not (root / "mkdocs.yml").exists() else "_docs.html"
                    page.goto(f"{address}suite/{source.relative_to(root).as_posix()}{ending}", timeout=LIMIT * 1000)
                    seconds = list(edits(page, source, root, way, chosen.edits))
                    page.close()
                print(f"| {corpus.name} | {way} | {start:.1f} | {statistics.median(seconds):.2f} | {max(seconds):.2f} |", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
