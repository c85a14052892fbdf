"""Hand-written notes on generated pages: what stands between two markers is a person's, and every run keeps it byte for byte.

    <!-- rankbook-notes TestRing::test_token_comes_back -->
    Slow on machines without NVLink.
    <!-- /rankbook-notes -->

A marker stands alone on its line, outside of fences. A note without a name is about the whole page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from msgspec import Struct

from rankbook.errors import PageError
from rankbook.pages.text import code

_BEGIN = re.compile(rb" {0,3}<!--[ \t]*rankbook-notes(?:[ \t]+(?P<name>\S[^\r\n]*?))?[ \t]*-->[ \t]*[\r\n]*")
_END = re.compile(rb" {0,3}<!--[ \t]*/rankbook-notes[ \t]*-->[ \t]*[\r\n]*")
_COMMENT = rb"<!--[ \t]*/?[ \t]*(?i:rankbook[-_ ]?notes?)\b"
_MARK = re.compile(_COMMENT)
_LIKE = re.compile(rb"[ \t>]*" + _COMMENT)
_FENCE = re.compile(rb"(?P<before>[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+[ \t>]*)*)(?P<run>`{3,}|~{3,})(?P<rest>[^\r\n]*)")
_CLOSES = re.compile(rb"[ \t>]*(?P<run>`{3,}|~{3,})[ \t]*[\r\n]*")
_HEADING = re.compile(rb"#{2,6}[ \t]")
_SPELT = {"\\": r"\x5c", "<": r"\x3c", ">": r"\x3e"}
"""Characters of a name that a marker spells otherwise; pytest, which doubles each backslash of a node id, gives none so."""
_SPELLING = re.compile(r"(?<!\\)((?:\\\\)*)\\x(5c|3c|3e)")
_ALONE = "write <!-- rankbook-notes --> or <!-- rankbook-notes TestClass::test_name --> above a note and <!-- /rankbook-notes --> below it"


class Note(Struct, frozen=True):
    """A note as it stands on a page."""

    page: str
    """Path of the page, below the folder of all pages."""
    line: int
    """Line of its first marker."""
    name: str
    """Test that it is about, as its node id behind the file has it; empty when it is about the whole page."""
    text: bytes
    """What stands between the markers: whole lines."""
    left: str = ""
    """Page that it leaves, where a run that moves it has not come to its end."""


def may_hold_notes(data: bytes) -> bool:
    """Tell whether a page holds a marker of a note, or what was meant to be one; a listing may show one as well."""
    return _MARK.search(data) is not None


def notes_of(data: bytes, page: str, where: PurePath | None = None) -> tuple[Note, ...]:
    """Read the notes of a page.

    Args:
        data: the page.
        page: its path, below the folder of all pages.
        where: its path for errors, where that is another one.

    Raises:
        PageError: a marker has no partner, is misspelt, stands within another note, or is hidden by a fence that nothing closes.
    """
    if not may_hold_notes(data):
        return ()
    lines = data.splitlines(keepends=True)
    return tuple(Note(page, start + 1, name, b"".join(lines[start + 1 : end])) for start, end, name in _blocks(lines, where or page))


def without_notes(data: bytes) -> bytes:
    """Give a page without its notes and their markers.

    Raises:
        PageError: as `notes_of` says.
    """
    if not may_hold_notes(data):
        return data
    lines = data.splitlines(keepends=True)
    for start, end, _ in reversed(list(_blocks(lines, ""))):
        del lines[start : end + 1]
    return b"".join(lines)


def taken_off(data: bytes, notes: Sequence[Note]) -> bytes:
    """Take some notes off a page, each with one of the empty lines around it; all else stays as it is.

    Args:
        data: the page.
        notes: of the page, as `notes_of` gives them.
    """
    lines = data.splitlines(keepends=True)
    for note in sorted(notes, key=lambda note: note.line, reverse=True):
        start, end = note.line - 1, note.line + 1 + len(note.text.splitlines())
        is_alone = end >= len(lines) or not lines[end].strip()
        del lines[start - (is_alone and not lines[start - 1].strip()) : end]
    return b"".join(lines)


def spans_of(lines: Sequence[bytes]) -> Iterator[range]:
    """Yield the lines of each note of a page, counted from 0.

    Raises:
        PageError: as `notes_of` says.
    """
    return (range(start + 1, end) for start, end, _ in _blocks(lines, ""))


def spelt(name: str) -> str:
    """Give a name as it stands in a marker, where nothing of it may end the comment that the marker is."""
    is_plain = not ("--" in name and ">" in name) and _meant(name) == name
    return name if is_plain else "".join(_SPELT.get(character, character) for character in name)


def _meant(written: str) -> str:
    """Give the name that a marker spells."""
    return _SPELLING.sub(lambda found: found[1] + chr(int(found[2], 16)), written) if "\\x" in written else written


def block(name: str, text: bytes) -> bytes:
    """Give a note with its markers."""
    begin = f"<!-- rankbook-notes {spelt(name)} -->" if name else "<!-- rankbook-notes -->"
    return b"%s\n%s<!-- /rankbook-notes -->\n" % (begin.encode(), text)


def placed(data: bytes, notes: Sequence[Note]) -> bytes:
    """Put notes on a page: those about the page behind its head, before the first section, and those about a test behind its table.

    Args:
        data: the page as it is generated.
        notes: the notes, in the order in which they are to stand where several stand at one place.
    """
    lines = data.splitlines(keepends=True)
    shown = [number for number, _ in _outside(lines)]
    spots: dict[int, list[Note]] = {}
    for note in notes:
        spots.setdefault(_spot(lines, shown, note.name), []).append(note)
    for spot in sorted(spots, reverse=True):
        made = b"\n".join(block(note.name, note.text) for note in spots[spot])
        before = b"" if spot == 0 or not lines[spot - 1].strip() else b"\n"
        after = b"" if spot == len(lines) or not lines[spot].strip() else b"\n"
        lines.insert(spot, before + made + after)
    return b"".join(lines)


def unfenced(lines: Sequence[bytes]) -> Iterator[int]:
    """Yield the numbers, from 0, of the lines of a page below the front matter that lie in no fence."""
    return (number for number, _ in _outside(lines))


def _blocks(lines: Sequence[bytes], page: PurePath | str) -> Iterator[tuple[int, int, str]]:
    """Yield each note's first and last line, counted from 0, and its name."""
    start: int | None = None
    name = ""
    for number, line in _outside(lines, page):
        if b"<!--" not in line:
            continue
        if begin := _BEGIN.fullmatch(line):
            if start is not None:
                raise PageError(f"this note begins within the one of line {start + 1}", where=page, line=number + 1, right=_ALONE)
            start, name = number, _meant((begin["name"] or b"").decode(errors="replace"))
        elif _END.fullmatch(line):
            if start is None:
                raise PageError("this marker ends a note that nothing begins", where=page, line=number + 1, right=_ALONE)
            yield start, number, name
            start = None
        elif _LIKE.match(line):
            raise PageError(
                "this marker of a note is misspelt, or does not stand alone on its line", where=page, line=number + 1, right=_ALONE
            )
    if start is not None:
        hidden = next((opened for number, opened in _fenced(lines) if number > start and _END.fullmatch(lines[number])), None)
        what = "nothing ends this note" + ("" if hidden is None else f": the marker below it lies in the fence of line {hidden + 1}")
        right = "write <!-- /rankbook-notes --> on a line below it" + ("" if hidden is None else ", outside of fences")
        raise PageError(what, where=page, line=start + 1, right=right)


def _outside(lines: Sequence[bytes], page: PurePath | str = "") -> Iterator[tuple[int, bytes]]:
    """Yield the lines below the front matter that lie in no fence, with their numbers from 0."""
    for number, opened in _scanned(lines):
        if opened is None:
            yield number, lines[number]
        elif number == len(lines) and any(_LIKE.match(line) for line in lines[opened:]):
            raise PageError("nothing closes this fence, which hides a marker of a note", where=page, line=opened + 1, right="close it")


def _fenced(lines: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of the lines that lie in a fence, each with that of the line that opens it."""
    return ((number, opened) for number, opened in _scanned(lines) if opened is not None and number < len(lines))


def _scanned(lines: Sequence[bytes]) -> Iterator[tuple[int, int | None]]:
    """Yield the number, from 0, of each line below the front matter, with that of the line that opens the fence in which it lies.

    The line behind the last one is given too, where nothing closes the fence that is open there.
    """
    fence, inside, opened = b"", b"", 0
    for number in range(_body(lines), len(lines)):
        line = lines[number]
        if fence and _leaves(line, inside):
            fence = b""
        may_be = b"```" in line or b"~~~" in line
        if fence:
            yield number, opened
            if may_be and (found := _CLOSES.fullmatch(line)) and found["run"].startswith(fence):
                fence = b""
            continue
        found = _FENCE.match(line) if may_be else None
        if found and not (found["run"].startswith(b"`") and b"`" in found["rest"]):
            fence, inside, opened = found["run"], found["before"], number
        yield number, opened if fence else None
    if fence:
        yield len(lines), opened


def _leaves(line: bytes, inside: bytes) -> bool:
    """Tell whether a line lies behind the quote, or the entry of a list, that a fence stands in, and so ends the fence.

    Args:
        line: the line.
        inside: what stands before the fence where it begins.
    """
    if b">" in inside:
        return not line.lstrip(b" \t").startswith(b">")
    is_entry = bool(inside.strip())
    return is_entry and bool(line.strip()) and not line.startswith((b" ", b"\t"))


def _body(lines: Sequence[bytes]) -> int:
    """Give the number of the first line below the front matter."""
    if not lines or lines[0].removeprefix(b"\xef\xbb\xbf").rstrip() != b"---":
        return 0
    return next((number + 1 for number in range(1, len(lines)) if lines[number].rstrip() in {b"---", b"..."}), 0)


def _spot(lines: Sequence[bytes], shown: Sequence[int], name: str) -> int:
    """Give the line before which a note belongs."""
    row = _row(lines, shown, name) if name else None
    if row is not None:
        return next((number for number in range(row + 1, len(lines)) if not lines[number].strip()), len(lines))
    return next((number for number in shown if _HEADING.match(lines[number])), len(lines))


def _row(lines: Sequence[bytes], shown: Sequence[int], name: str) -> int | None:
    """Find the row of a table, or the entry of a list, that names a test."""
    for number in shown:
        if any(called == name or called.startswith(f"{name}[") for called in _commanded(lines[number])):
            return number
    owner, _, test = name.rpartition("::")
    spans = _spans((test, test.partition("[")[0], name, name.partition("[")[0]))
    within = next((number for number in shown if str(code(owner)).encode() in lines[number]), 0) if owner else 0
    for number in shown:
        line = lines[number]
        if number < within or not line.startswith((b"|", b"-")):
            continue
        head = line.split(b" | ", 1)[0] if line.startswith(b"|") else line
        if any(span in head for span in spans):
            return number
    return None


def _commanded(line: bytes) -> Iterator[str]:
    """Yield the tests that the commands of a row run, by the parts of their node ids behind the file."""
    if line.startswith((b"|", b"-")) and b'"pytest ' in line:
        yield from (found[1].decode(errors="replace") for found in _COMMAND.finditer(line))


_COMMAND = re.compile(rb"""\"pytest [^"]*?::([^"]*?)'?\"""")


def _spans(names: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(str(code(name)).encode() for name in names))
