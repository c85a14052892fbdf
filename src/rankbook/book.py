"""The main job, told once: generate the pages, prove every listing, build the site, say what came of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankbook.config import Settings
from rankbook.document import Report, document
from rankbook.errors import RankbookError

SITE = "site"
"""Folder of the built site, below the root."""
NO_LISTINGS = 5
"""pytest's exit status when it collected nothing."""


@dataclass
class Book:
    """What came of the main job."""

    generated: Report | None = None
    listings: dict[str, Any] = field(default_factory=dict)
    """The tally of the proof, as JSON."""
    status: int = 0
    """0 when every step did its work and no listing failed."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Time of each step."""


def make_book(settings: Settings, docs: str, progress: Callable[[str, int, int], None] | None = None) -> Book:
    """Generate, prove, build.

    Args:
        settings: the project's settings.
        docs: folder of all pages, below the root.
        progress: called with a step, the number done and the number in all.

    Returns:
        What came of it; a listing that fails does not keep the site from being built.
    """
    book = Book()
    with _timed(book, "generate"):
        book.generated = document(settings, progress=progress)
    with _timed(book, "prove"):
        book.listings, status = _prove(settings.root, docs)
    with _timed(book, "build"):
        built = _call(settings.root, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", SITE)
    book.status = status or built
    return book


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


@contextmanager
def _timed(book: Book, step: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    book.seconds[step] = time.perf_counter() - start


def summary(book: Book) -> Iterator[str]:
    """Yield the lines of the summary."""
    generated, tally = book.generated, book.listings
    assert generated is not None
    yield f"sources   {generated.sources:6d}"
    yield f"pages     {tally['pages']:6d}   ({generated.pages} generated: {len(generated.written)} written, {generated.unchanged} unchanged)"
    inside = f"   (and {tally['inside']} inside Markdown sources)" if tally["inside"] else ""
    yield f"listings  {tally['listings']:6d}{inside}"
    for name in ("passed", "failed", "skipped", "not_code", "not_run"):
        if tally[name] or name in ("passed", "failed"):
            yield f"  {name.replace('_', ' '):9s}{tally[name]:5d}"
    for reason, number in tally["reasons"].items():
        yield f"{number:11d} × skipped: {reason}"
    yield "time      " + ", ".join(f"{step} {seconds:.1f} s" for step, seconds in book.seconds.items())
