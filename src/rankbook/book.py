"""The main job, told once: generate the pages, prove every listing, build the site, say what came of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec import Struct

from rankbook.config import Settings
from rankbook.document import document
from rankbook.errors import RankbookError
from rankbook.report import Progress, Report, pages_among
from rankbook.told_engines import MKDOCS, told

NO_LISTINGS = 5
"""pytest's exit status when it collected nothing."""


class Book(Struct, frozen=True):
    """What came of the main job."""

    generated: Report
    listings: Mapping[str, Any]
    """The tally of the proof, as JSON."""
    site: Path
    """Folder of the built site."""
    built: int
    """Exit status of the site's build."""
    status: int
    """0 when every step did its work and no listing failed."""
    seconds: Mapping[str, float]
    """Time of each step."""


def make_book(settings: Settings, docs: str | None = None, progress: Progress | None = None) -> Book:
    """Generate, prove, build.

    Args:
        settings: the project's settings.
        docs: folder of all pages, below the root; None for that of the site's settings.
        progress: told of each step of the generation; pytest shows its own.

    Returns:
        What came of it; a listing that fails does not keep the site from being built.

    Raises:
        RankbookError: the site has no settings, the pages cannot be generated, or the folder of all pages is not there.
    """
    engine = told(settings.root, MKDOCS)
    if engine.path is None:
        raise RankbookError("there is no mkdocs.yml, which says what the site is", where=settings.root, right="`rankbook init` writes one")
    if find_spec("mkdocs") is None:
        raise RankbookError("MkDocs, which builds the site, is not installed", right='pip install "rankbook[site]"')
    docs = docs or engine.docs_dir
    clock = [time.perf_counter()]
    generated = document(settings, progress=progress)
    if not settings.below_root(docs).is_dir():
        raise RankbookError("there is no folder of pages", where=settings.below_root(docs), right="name it with --docs")
    clock.append(time.perf_counter())
    listings, proved = _prove(settings.root, docs)
    clock.append(time.perf_counter())
    built = _call(settings.root, "-m", "mkdocs", "build", "--strict")
    clock.append(time.perf_counter())
    seconds = dict(zip(("generate", "prove", "build"), (end - start for start, end in pairwise(clock)), strict=True))
    return Book(generated, listings, settings.below_root(engine.site_dir), built, proved or built, seconds)


def _prove(root: Path, docs: str) -> tuple[dict[str, Any], int]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "listings.json"
        status = _call(root, "-m", "pytest", "--doctest-glob=*.md", f"--listings-report={report}", "-q", docs)
        if not report.is_file():
            raise RankbookError("pytest ended without a report of the listings", where=docs, right="its messages are above")
        return json.loads(report.read_text(encoding="utf-8")), 0 if status == NO_LISTINGS else status


def _call(root: Path, *arguments: str) -> int:
    # Material prints a banner about the future of MkDocs on each build; it says nothing about this book.
    environment = {"NO_MKDOCS_2_WARNING": "1", **os.environ}
    return subprocess.run([sys.executable, *arguments], cwd=root, env=environment, check=False).returncode


def summary(book: Book) -> Iterator[str]:
    """Yield the lines of the summary."""
    generated, tally = book.generated, book.listings
    yield f"sources   {generated.sources:6d}"
    written = f"{pages_among(generated.written)} written, {generated.unchanged} unchanged"
    yield f"pages     {tally['pages']:6d}   ({generated.pages} generated: {written})"
    inside = f"   (and {tally['inside']} inside Markdown sources)" if tally["inside"] else ""
    yield f"listings  {tally['listings']:6d}{inside}"
    for name in ("passed", "failed", "skipped", "not_code", "not_run"):
        if tally[name] or name in ("passed", "failed"):
            yield f"  {name.replace('_', ' '):9s}{tally[name]:5d}"
    for reason, number in tally["reasons"].items():
        yield f"{number:11d} × skipped: {reason}"
    if book.built:
        yield "site      not built: MkDocs says why above"
    yield "time      " + ", ".join(f"{step} {seconds:.1f} s" for step, seconds in book.seconds.items())
    if not book.built:
        yield f"look at it: `mkdocs serve`, or open {book.site / 'index.html'}"
