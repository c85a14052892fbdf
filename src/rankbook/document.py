"""The documents wing, told once: sources in, pages out.

A look at all files comes first; what makes pages (`generating.py`) is loaded only when something has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rankbook import freshness
from rankbook.config import Settings
from rankbook.freshness import Changes
from rankbook.garbage import uncollected
from rankbook.report import Progress, Report

if TYPE_CHECKING:
    from rankbook.model import Project


def document(  # noqa: PLR0913 - one argument for each thing that a door chooses
    settings: Settings,
    *,
    check: bool = False,
    force: bool = False,
    staged: Path | None = None,
    progress: Progress | None = None,
    changes: Changes | None = None,
) -> Report:
    """Turn the sources into pages, and write what has changed.

    Args:
        settings: what to document, where to and how.
        check: tell what would change, and write nothing.
        force: write pages whatever somebody has edited on them outside of notes.
        staged: with `check`, the folder that takes the pages as they would be.
        progress: told of each step.
        changes: what a look at all files has told; None to look now.

    Raises:
        RankbookError: a setting, a source, a template, a note or the folder of the pages is not as it must be.
    """
    changes = _asked(changes or freshness.compare(settings, reads=check), force=force or staged is not None)
    if changes is not None and changes.report is not None:
        return changes.report
    from rankbook.turns import turn

    lent = None if changes is None or changes.kept_by is settings else changes.kept_by
    with uncollected(), turn(settings, reads=check), turn(lent, reads=True) if lent is not None else nullcontext():
        from rankbook.generating import generate

        # Another run has come between, or may have: what is lent has no manifest that tells of it.
        if changes is None or lent is not None or changes.manifest is not freshness.load(changes.kept_by):
            changes = _asked(freshness.compare(settings, reads=check), force=force or staged is not None)
            if changes is not None and changes.report is not None:
                return changes.report
        return generate(settings, changes, progress, check=check, force=force, staged=staged)


def _asked(changes: Changes | None, *, force: bool) -> Changes | None:
    """Give what is to be looked at: pages that were left as they are, too, where they are to be written or shown."""
    return replace(changes, pages=(*changes.pages, *changes.manifest.report.kept)) if changes is not None and force else changes


def survey_tree(settings: Settings, apis: Sequence[str] = ()) -> Project:
    """Survey the sources, from what the last run kept where nothing has changed since; nothing is written.

    Args:
        settings: what is documented.
        apis: modules whose public names are of interest, instead of those that the settings name.

    Raises:
        RankbookError: a setting or a source is not as it must be.
    """
    from rankbook.generating import surveyed
    from rankbook.turns import turn

    with turn(settings, reads=True):
        return surveyed(settings, freshness.compare(settings), apis)
