"""Pages that Git could not merge: what each side made of them, and whether anybody has edited them besides.

The text around the notes and the listing are generated again whatever the two sides were. What counts is that each side was as it had
been generated: the page says so itself where only a note is in conflict, and else Git, which keeps both until the conflict is resolved.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from msgspec import Struct
from msgspec.structs import replace

from rankbook.errors import PageError
from rankbook.pages import git
from rankbook.pages.notes import Note, notes_of, spans_of, unfenced
from rankbook.pages.seals import Edited, holds_the_same, look

_MARK = b"<<<<<<<"
_LINES = {
    "begins": re.compile(rb"<{7}(?: [^\r\n]*)?[\r\n]*"),
    "base": re.compile(rb"\|{7}(?: [^\r\n]*)?[\r\n]*"),
    "between": re.compile(rb"={7}[\r\n]*"),
    "ends": re.compile(rb">{7}(?: [^\r\n]*)?[\r\n]*"),
}
"""What Git writes above, between and below the sides."""


class Side(Struct, frozen=True):
    """A page as one side has it."""

    data: bytes
    lines: tuple[int, ...]
    """For each of its lines, that of the page in conflict, counted from 1."""


class Conflict(Struct, frozen=True):
    """A page that Git could not merge."""

    line: int
    """Of its first marker."""
    sides: tuple[Side, Side]


class _Hunk(Struct, frozen=True):
    """Lines on which the sides differ, counted from 0: those of its markers, of which the second has that of the base above it."""

    begins: int
    first_ends: int
    between: int
    ends: int


def may_be_in_conflict(data: bytes) -> bool:
    """Tell whether a page holds a marker of Git; a listing may show one as well."""
    return _MARK in data


def conflict_of(data: bytes, file: Path, *, by_hand: bool = False) -> Conflict | None:
    """Give what the two sides of a merge made of a page; None for a page without a conflict.

    Markers that a listing or a fence in a note shows are text, unless the text of the page around them is in conflict as well. So are
    all that stand within notes, unless Git says that the page is in conflict.

    Args:
        data: the page as it stands on disk.
        file: where it stands.
        by_hand: whether people put the page together, so that nothing tells of its text; markers that a fence shows are text there.
    """
    if not may_be_in_conflict(data):
        return None
    lines = data.splitlines(keepends=True)
    hunks = list(_hunks(lines))
    seen = look(data) if hunks and not by_hand else None
    if hunks and (by_hand or (seen is not None and Edited.TEXT not in seen.edited)):
        shown = set(unfenced(lines))
        hunks = [hunk for hunk in hunks if hunk.begins in shown]
    if not hunks or (_are_noted(lines, hunks) and not git.is_unmerged(file)):
        return None
    return Conflict(hunks[0].begins + 1, (_side(lines, hunks, 0), _side(lines, hunks, 1)))


def shows_conflict(text: bytes) -> bool:
    """Tell whether a note shows markers of a conflict, which may be meant or not."""
    return _MARK in text and any(_hunks(text.splitlines(keepends=True)))


def notes_of_sides(conflict: Conflict, page: str, where: PurePath) -> tuple[Note, ...]:
    """Read the notes of both sides of a page: those that are the same once, and those that are not one after the other.

    Args:
        conflict: the page.
        page: its path, below the folder of all pages.
        where: its path for errors.

    Raises:
        PageError: as `notes_of` says, of either side.
    """
    ours, theirs = (_notes_of_side(side, page, where) for side in conflict.sides)
    said = [[(note.name, note.text) for note in notes] for notes in (ours, theirs)]
    matcher = difflib.SequenceMatcher(None, said[0], said[1], autojunk=False)
    found: list[Note] = []
    for what, start, end, other_start, other_end in matcher.get_opcodes():
        found += ours[start:end]
        if what != "equal":
            found += theirs[other_start:other_end]
    return tuple(found)


def untouched(conflicts: Mapping[str, Conflict], out: Path) -> frozenset[str]:
    """Name the pages that nobody has edited outside of notes, neither on one of the sides nor after Git had put them together.

    Args:
        conflicts: pages in conflict, by path.
        out: folder of all pages.
    """
    found = {page for page, conflict in conflicts.items() if all(map(_is_intact, (side.data for side in conflict.sides)))}
    asked = sorted(conflicts.keys() - found)
    return frozenset(found.union(_as_git_left_them(conflicts, _stages(asked, out))))


def _hunks(lines: Sequence[bytes]) -> Iterator[_Hunk]:
    """Yield the conflicts of a text; what is not put as Git puts it is none."""
    places: dict[str, int] = {}
    for number, line in enumerate(lines):
        what = next((name for name, form in _LINES.items() if form.fullmatch(line)), "") if line[:1] in b"<|=>" else ""
        if what == "begins":
            places = {what: number}
        elif what and places:
            if what not in places and not (what == "base" and "between" in places):
                places[what] = number
            if what == "ends":
                if "between" in places:
                    yield _Hunk(places["begins"], places.get("base", places["between"]), places["between"], number)
                places = {}


def _are_noted(lines: Sequence[bytes], hunks: Iterable[_Hunk]) -> bool:
    """Tell whether all conflicts of a text lie within notes, which may show them."""
    try:
        noted = list(spans_of(lines))
    except PageError:
        return False
    return all(any(hunk.begins in span and hunk.ends in span for span in noted) for hunk in hunks)


def _side(lines: Sequence[bytes], hunks: Iterable[_Hunk], which: int) -> Side:
    numbers: list[int] = []
    start = 0
    for hunk in hunks:
        first, end = ((hunk.begins, hunk.first_ends), (hunk.between, hunk.ends))[which]
        numbers += [*range(start, hunk.begins), *range(first + 1, end)]
        start = hunk.ends + 1
    numbers += range(start, len(lines))
    return Side(b"".join(lines[number] for number in numbers), tuple(number + 1 for number in numbers))


def _notes_of_side(side: Side, page: str, where: PurePath) -> list[Note]:
    try:
        return [replace(note, line=side.lines[note.line - 1]) for note in notes_of(side.data, page, where)]
    except PageError as error:
        line = side.lines[error.line - 1] if error.line else None
        raise PageError(f"{error.what}, on one side of a conflict of Git", where=where, line=line, right=error.right) from error


def _is_intact(data: bytes) -> bool:
    seen = look(data)
    return seen is not None and not seen.edited


def _as_git_left_them(conflicts: Mapping[str, Conflict], stages: Mapping[str, git.Stages]) -> Iterator[str]:
    """Yield the pages that hold, besides notes, what Git makes of two sides as they were generated."""
    left = {page: known for page, known in stages.items() if _is_intact(known.ours) and _is_intact(known.theirs)}
    for made in git.merges(left) if left else ():
        same = {page for page, data in made.items() if page in left and _is_same(conflicts[page].sides, data)}
        yield from same
        left = {page: known for page, known in left.items() if page not in same}
        if not left:
            return


def _is_same(sides: tuple[Side, Side], merged: bytes) -> bool:
    """Tell whether the sides of a page are those of what Git makes of it, notes aside."""
    lines = merged.splitlines(keepends=True)
    hunks = list(_hunks(lines))
    return all(holds_the_same(side.data, _side(lines, hunks, which).data) for which, side in enumerate(sides))


def _stages(asked: Sequence[str], out: Path) -> dict[str, git.Stages]:
    """Ask Git for both sides of pages whose conflict is not resolved, and for what they were made from."""
    if not asked or not out.is_dir():
        return {}
    names = [(page, stage, f":{stage}:./{page}") for page in asked if "\n" not in page for stage in (1, 2, 3)]
    said = git.ask(out, "cat-file", "--batch", given="".join(f"{name}\n" for *_, name in names).encode(errors="surrogateescape"))
    found: dict[str, dict[int, bytes]] = {}
    place = 0
    for page, stage, _ in names:
        head, _, _ = said[place:].partition(b"\n")
        place += len(head) + 1
        words = head.split()
        if len(words) == 3 and words[1] == b"blob":
            size = int(words[2])
            found.setdefault(page, {})[stage] = said[place : place + size]
            place += size + 1
    return {page: git.Stages(known.get(1), known[2], known[3]) for page, known in found.items() if 2 in known and 3 in known}
