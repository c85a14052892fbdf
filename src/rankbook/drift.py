"""How pages are out of step with their sources, page by page: missing, outdated, obsolete, in conflict, edited or foreign; with diffs."""

from __future__ import annotations

import difflib
import enum
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from rankbook.config import Settings
from rankbook.pages import Writer, is_ours
from rankbook.pages.notes import may_hold_notes
from rankbook.pages.seals import Edited, Seen, look
from rankbook.report import Report
from rankbook.sources import discover
from rankbook.terminal import word

_BINARY = ".inv"
"""End of the name of what holds no lines."""


class Drift(enum.StrEnum):
    """How a page is out of step."""

    MISSING = "missing"
    OUTDATED = "outdated"
    OBSOLETE = "obsolete"
    """It has no source any more."""
    CONFLICTED = "conflicted"
    """Git could not merge it."""
    EDITED = "hand-edited"
    FOREIGN = "foreign"
    """Something else stands in its place."""
    UNSTAGED = "unstaged"
    """It is in step as it stands on disk, and not in the commit that way."""


class Drifted(Struct, frozen=True):
    """A page that is out of step."""

    page: str
    """Below the folder of all pages."""
    drift: Drift
    why: str = ""
    """Which side has changed, and what to do, as a clause."""
    line: int | None = None
    """Where."""
    is_mended_by_gen: bool = True
    """Whether generating the pages brings it into step without losing anything."""


def drifted(settings: Settings, report: Report) -> list[Drifted]:
    """Say of each page how it is out of step.

    Args:
        settings: of the project.
        report: what a run would do.
    """
    writer = Writer(settings.below_root(settings.out))
    tidied = frozenset(report.tidied)
    found = [_written(page, writer, is_tidied=page in tidied) for page in report.written]
    found += [Drifted(page, Drift.OBSOLETE) for page in report.removed]
    found += [_kept(settings, page, writer) for page in report.kept]
    told = {each.page for each in found}
    why = "the commit does not hold it, or its source, as it stands; run `git add`"
    found += [Drifted(page, Drift.UNSTAGED, why, is_mended_by_gen=False) for page in report.unstaged if page not in told]
    return sorted(found, key=lambda each: each.page)


def _written(page: str, writer: Writer, *, is_tidied: bool) -> Drifted:
    data = writer.read(page)
    if data is None:
        return Drifted(page, Drift.MISSING)
    if (conflict := writer.conflict_on(page, data)) is not None:
        why = "it has unresolved conflicts of Git; `rankbook gen` writes it anew, with the notes of both sides"
        return Drifted(page, Drift.CONFLICTED, why, conflict.line)
    return Drifted(page, Drift.OUTDATED, _why_tidied(data) if is_tidied else "")


def _why_tidied(data: bytes) -> str:
    if data.startswith(b"---\r\n"):
        return "its line ends are CRLF, as Git may have written them, and those of its source are not; let Git leave pages as they are"
    if may_hold_notes(data):
        return "a note, or an empty line, stands elsewhere than `rankbook gen` puts it"
    return "it has other empty lines, or other spaces at the ends of lines, than `rankbook gen` writes"


def _kept(settings: Settings, page: str, writer: Writer) -> Drifted:
    data = writer.read(page)
    conflict = None if data is None else writer.conflict_on(page, data)
    if data is None or not is_ours(data, conflict):
        why = f"{writer.what_stands(page)}, and a page is to stand in its place; move it away, then run `rankbook gen`"
        return Drifted(page, Drift.FOREIGN, why, is_mended_by_gen=False)
    if conflict is not None:
        why = (
            "it has unresolved conflicts of Git, and nothing shows that it is otherwise as it was generated; "
            "move what is yours into a note, then run `rankbook gen --force`, which keeps the notes of both sides"
        )
        return Drifted(page, Drift.CONFLICTED, why, conflict.line, is_mended_by_gen=False)
    seen = look(data)
    why = "its front matter cannot be read any more; move what is yours into a note, then run `rankbook gen --force`"
    return Drifted(page, Drift.EDITED, why if seen is None else _why_edited(settings, page, seen), is_mended_by_gen=False)


def _why_edited(settings: Settings, page: str, seen: Seen) -> str:
    command, source = f"rankbook accept {word(place_of(settings, page))}", seen.stamp.source
    if Edited.LISTING not in seen.edited:
        what = "its text was edited outside of notes" if seen.is_sealed else "its last line, the seal, is gone"
        return f"{what}; move what is yours into a note, then run `rankbook gen --force`"
    now = _digest(settings.root / source)
    if now is None:
        return f"its listing was edited, and {source} is gone; take what is yours elsewhere, then `rankbook gen --force` removes the page"
    if source not in discover(settings).paths:
        what = f"its listing was edited, and {source} is no source of this book any more"
        return f"{what}; name it in the settings again, or take what is yours elsewhere, then `rankbook gen --force` removes the page"
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
    """Give the path of a page as a user names it, on one line.

    Args:
        settings: of the project.
        page: below the folder of all pages.
    """
    return printable(settings.place_of(page))
