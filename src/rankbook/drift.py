"""How pages are out of step with their sources, page by page: missing, outdated, obsolete or edited by hand, each with its diff."""

from __future__ import annotations

import difflib
import enum
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from rankbook.config import Settings
from rankbook.pages import Writer
from rankbook.pages.seals import Edited, Seen, look
from rankbook.report import Report
from rankbook.terminal import word

_BINARY = ".inv"
"""End of the name of what holds no lines."""


class Drift(enum.StrEnum):
    """How a page is out of step."""

    MISSING = "missing"
    OUTDATED = "outdated"
    OBSOLETE = "obsolete"
    """It has no source any more."""
    EDITED = "hand-edited"


class Drifted(Struct, frozen=True):
    """A page that is out of step."""

    page: str
    """Below the folder of all pages."""
    drift: Drift
    why: str = ""
    """Which side has changed, and what to do, as a clause."""

    @property
    def is_mended_by_gen(self) -> bool:
        """Whether generating the pages brings it into step without losing anything."""
        return self.drift is not Drift.EDITED


def drifted(settings: Settings, report: Report) -> list[Drifted]:
    """Say of each page how it is out of step.

    Args:
        settings: of the project.
        report: what a run would do.
    """
    writer = Writer(settings.below_root(settings.out))
    found = [Drifted(page, Drift.OUTDATED if (writer.out / page).exists() else Drift.MISSING) for page in report.written]
    found += [Drifted(page, Drift.OBSOLETE) for page in report.removed]
    for page in report.kept:
        seen = look(writer.read(page) or b"")
        if seen is not None and seen.edited:
            found.append(Drifted(page, Drift.EDITED, _why_edited(settings, page, seen)))
    return sorted(found, key=lambda each: each.page)


def _why_edited(settings: Settings, page: str, seen: Seen) -> str:
    command, source = f"rankbook accept {word(place_of(settings, page))}", seen.stamp.source
    if Edited.LISTING not in seen.edited:
        return "its text was edited outside of notes; write a note instead, then run `rankbook gen --force`"
    now = _digest(settings.root / source)
    if now is None:
        return f"its listing was edited, and {source} is gone"
    if now != seen.stamp.sha256:
        return f"its listing was edited, and {source} has changed as well; bring the edit there by hand, then run `rankbook gen --force`"
    if Edited.TEXT in seen.edited:
        return f"its listing was edited, {source} was not, but the text around the listing was; undo that, then run `{command}`"
    return f"its listing was edited, {source} was not; `{command}` takes the edit into the source"


def _digest(file: Path) -> str | None:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return None


class Sides(Struct, frozen=True):
    """The pages as they are and as they would be."""

    settings: Settings
    staged: Path | None

    def of(self, page: str) -> tuple[list[str], list[str]]:
        """Give the lines of a page as it is and as it would be."""
        old = Writer(self.settings.below_root(self.settings.out)).read(page)
        new = Writer(self.staged).read(page) if self.staged is not None else None
        return _lines(old), _lines(new)


def diffs(found: Sequence[Drifted], sides: Sides) -> Iterator[str]:
    """Yield the lines of a unified diff from pages as they are to pages as they would be."""
    for each in found:
        place = place_of(sides.settings, each.page)
        old, new = sides.of(each.page)
        before = "/dev/null" if each.drift is Drift.MISSING else f"a/{place}"
        after = "/dev/null" if each.drift is Drift.OBSOLETE else f"b/{place}"
        if each.page.endswith(_BINARY):
            yield f"Binary files {before} and {after} differ"
        else:
            yield from difflib.unified_diff(old, new, before, after, lineterm="")


def stat(page: str, sides: Sides) -> str:
    """Count the lines of a page that would come and go: `+3 -1`; empty for what holds no lines."""
    if page.endswith(_BINARY):
        return ""
    old, new = sides.of(page)
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=True).get_matching_blocks()
    same = sum(block.size for block in blocks)
    return f"+{len(new) - same} -{len(old) - same}"


def _lines(data: bytes | None) -> list[str]:
    """Give the lines of a page as a terminal may show them."""
    return [] if data is None else [printable(line.decode(errors="replace")) for line in data.splitlines()]


def printable(line: str) -> str:
    """Give a line in which nothing steers the terminal."""
    return line if line.isprintable() else "".join(each if each.isprintable() or each == "\t" else ascii(each)[1:-1] for each in line)


def place_of(settings: Settings, page: str) -> str:
    """Give the path of a page as a user names it: below the root where it lies there.

    Args:
        settings: of the project.
        page: below the folder of all pages.
    """
    path = settings.below_root(settings.out) / page
    return printable(path.relative_to(settings.root).as_posix() if path.is_relative_to(settings.root) else os.fspath(path))
