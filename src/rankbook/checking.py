"""The command `rankbook check`: whether the pages are in step with their sources; nothing is written."""

from __future__ import annotations

import re
import tempfile
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rankbook import freshness
from rankbook.config import Settings
from rankbook.report import Progress, Report, others_among, pages_among, plural

if TYPE_CHECKING:
    from rankbook.drift import Drifted, Sides

Say = Callable[[str], None]
"""Prints a line."""
_KEPT = re.compile(" is (?:left as it is|kept): ")
"""What stands behind a page's name in a warning that it was not written."""
_MOST_PAGES = 100
"""Pages that are named unless all are asked for."""
_MOST_LINES = 400
"""Lines of the diff that are shown unless all are asked for."""


def options(parser: ArgumentParser) -> None:
    """Add what is told of pages that are out of step."""
    parser.add_argument("--diff", action="store_true", help="show how each page would change")
    parser.add_argument("--stat", action="store_true", help="show how many lines of each page would change")
    parser.add_argument("--staged", action="store_true", help="compare what is in Git's index, as the next commit has it")
    parser.add_argument(
        "--all", action="store_true", help=f"name more than {_MOST_PAGES} pages, show more than {_MOST_LINES} lines of the diff"
    )


def check(chosen: Namespace, settings: Settings, progress: Progress, say: Say, warn: Say) -> int:
    """Tell which pages are out of step.

    Args:
        chosen: options of the command line.
        settings: of the project.
        progress: told of each step.
        say: prints a line.
        warn: prints a warning.

    Returns:
        The exit status: 1 when a page is out of step.

    Raises:
        RankbookError: a setting, a source, a template or a note is not as it must be.
    """
    changes = freshness.compare(settings, reads=True)
    report = None if changes is None else changes.report
    if report is not None and not report.kept:
        for warning in report.warnings:
            warn(warning)
        say(_summary(report, []))
        return 0
    # What makes pages is loaded only when there is something to look at.
    from rankbook.document import document
    from rankbook.drift import Sides, drifted

    with tempfile.TemporaryDirectory(prefix="rankbook-check-") as folder:
        staged = Path(folder) if chosen.diff or chosen.stat else None
        report = document(settings, check=True, staged=staged, progress=progress, changes=changes)
        found = drifted(settings, report)
        said = {settings.place_of(each.page) for each in found}
        for warning in report.warnings:
            if _KEPT.split(warning, 1)[0] not in said:
                warn(warning)
        for line in _told(found, Sides(settings, staged), chosen):
            say(line)
    say(_summary(report, found))
    return 1 if found else 0


def _told(found: list[Drifted], sides: Sides, chosen: Namespace) -> Iterator[str]:
    from rankbook.drift import diffs, place_of, stat

    width = max((len(each.drift) for each in found), default=0)
    most = len(found) if chosen.all else _MOST_PAGES
    for each in found[:most]:
        why = f": {each.why}" if each.why else ""
        lines = f" | {count}" if chosen.stat and (count := stat(each.page, sides)) else ""
        place = place_of(sides.settings, each.page) + (f":{each.line}" if each.line else "")
        yield f"{each.drift:<{width}}  {place}{lines}{why}"
    if len(found) > most:
        yield f"... and {plural(len(found) - most, 'page')} more; `--all` names all"
    if chosen.diff:
        yield from _bounded(diffs(found, sides), None if chosen.all else _MOST_LINES)


def _bounded(lines: Iterator[str], most: int | None) -> Iterator[str]:
    yield from islice(lines, most)
    if most is not None and next(lines, None) is not None:
        yield "... `--all` shows the whole diff"


def _summary(report: Report, found: list[Drifted]) -> str:
    """Say in one line how the book stands."""
    by_drift: defaultdict[str, list[str]] = defaultdict(list)
    for each in sorted(found, key=lambda each: each.drift):
        by_drift[str(each.drift)].append(each.page)
    told = [f"{count:,} {drift}" for drift, paths in by_drift.items() if (count := pages_among(paths))]
    said = ", ".join([*told, *others_among(by_drift)]) or "all in step"
    book = f"{plural(report.sources, 'source')}, {plural(report.pages, 'page')}: {said} ({sum(report.seconds.values()):.1f} s)"
    return f"{book}; run `rankbook gen`" if any(each.is_mended_by_gen for each in found) else book
