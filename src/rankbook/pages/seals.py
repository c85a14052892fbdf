"""The last line of a generated page, by which it can be told whether somebody has edited the page.

It holds a digest of all that stands on the page besides the notes and the listing, which the source's own digest in the front matter
covers. Empty lines, spaces at the ends of lines and the kind of line ends do not count: tools that tidy files change those. A page whose
seal is gone was edited, like one on which something stands behind it.
"""

from __future__ import annotations

import enum
import hashlib
import re
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from rankbook import front_matter
from rankbook.embedding import Embedding, restore
from rankbook.errors import PageError
from rankbook.front_matter import Stamp
from rankbook.pages.fence import SOURCE_OPTIONS
from rankbook.pages.notes import without_notes
from rankbook.stamps import stamp_of

_SEAL = re.compile(rb"<!-- rankbook-seal ([0-9a-f]{32}) -->")
_WORD = b"<!-- rankbook-seal "
_OPTIONS = SOURCE_OPTIONS.encode()
_OPENING = re.compile(rb"^(`{3,})[^\r\n`]*" + re.escape(_OPTIONS) + rb"[ \t]*\r?\n", re.MULTILINE)
_CLOSING = re.compile(rb"`{3,}[ \t]*(?:[\r\n]|\Z)")
_ENDS = {"lf": "\n", "crlf": "\r\n", "cr": "\r", "none": "\n"}
_ANY_END = re.compile(r"\r\n|\r|\n")


class Edited(enum.Flag):
    """Which parts of a generated page are not as they were generated, notes aside."""

    NOTHING = 0
    TEXT = enum.auto()
    """What stands around the listing."""
    LISTING = enum.auto()


class Seen(Struct, frozen=True):
    """A generated page as it stands on disk."""

    stamp: Stamp
    edited: Edited
    source: bytes | None
    """The source that its listing gives back; None without a listing, and where the source's encoding cannot hold it."""
    text: str | None
    """Text of its listing with the source's line ends; None without a listing."""
    problem: str = ""
    """Why the listing gives back no source, as a clause."""
    is_sealed: bool = True
    """Whether its last line tells of edits around the listing."""


def seal_of(data: bytes) -> bytes:
    """Give what stands at the end of a page, an empty line first: right below a table it would be a row of it.

    Args:
        data: the page as it is generated, without notes.
    """
    return b"\n<!-- rankbook-seal %s -->\n" % _digest(data)


def look(data: bytes) -> Seen | None:
    """Tell what somebody has edited on a page; None for a page that rankbook did not make.

    Args:
        data: the page as it stands on disk.
    """
    values, _ = front_matter.split(data.decode(errors="replace"))
    stamp = front_matter.read(values)
    if stamp is None:
        return None
    try:
        data, is_noted_well = without_notes(data), True
    except PageError:
        is_noted_well = False
    seal, frame = _unsealed(data)
    edited = Edited.NOTHING if is_noted_well and seal is not None and seal == _digest(frame) else Edited.TEXT
    embedding = stamp.embedding
    raw = _listing_of(data)
    if embedding is None or (raw is None and _is_right(_restored(b"", embedding)[1] or b"", embedding)):
        return Seen(stamp, edited, None, None, is_sealed=seal is not None)
    if raw is None:
        return Seen(stamp, edited | Edited.LISTING, None, None, "no listing of the source is found on the page", seal is not None)
    text, source, problem = _restored(raw, embedding)
    if source is None or not _is_right(source, embedding):
        edited |= Edited.LISTING
    return Seen(stamp, edited, source, text, problem, seal is not None)


def stamp_as_listed(path: Path) -> Stamp | None:
    """Read what a page says of itself, but of its source as its listing has it: somebody may have edited that on the page.

    Args:
        path: of the page.

    Returns:
        What it says; None for a page that is not generated.

    Raises:
        RankbookError: the page cannot be read.
    """
    stamp = stamp_of(path)
    if stamp is None or stamp.page != "file" or not stamp.sha256:
        return stamp
    return replace(stamp, sha256=_listed(path.read_bytes(), stamp.sha256))


def _listed(data: bytes, sha256: str) -> str:
    """Give the SHA-256 of the source as the listing of its page has it; empty where an edited listing gives back none.

    Args:
        data: the page as it stands on disk.
        sha256: that of the source from which it was generated.
    """
    raw = _listing_of(data)
    if raw is not None and hashlib.sha256(raw).hexdigest() == sha256:
        return sha256
    seen = look(data)
    if seen is None or Edited.LISTING not in seen.edited:
        return sha256
    return "" if seen.source is None else hashlib.sha256(seen.source).hexdigest()


def is_edited(data: bytes) -> bool:
    """Tell whether somebody has edited a page that rankbook made, its front matter included, which then may say nothing any more.

    Args:
        data: the page as it stands on disk.
    """
    seen = look(data)
    return seen is None or bool(seen.edited)


def is_lost(old: bytes, new: bytes) -> bool:
    """Tell whether somebody's edits on a page would be lost with a new one in its place, which may hold them already.

    Args:
        old: the page as it stands on disk.
        new: the page that is to take its place.
    """
    seen = look(old)
    if seen is None:
        return old != new
    if not seen.edited:
        return False
    try:
        old, new = without_notes(old), without_notes(new)
    except PageError:
        return True
    is_other = Edited.TEXT in seen.edited and _digest(_unsealed(old)[1]) != _digest(_unsealed(new)[1])
    return is_other or _listing_lines(old) != _listing_lines(new)


def holds_the_same(one: bytes, other: bytes) -> bool:
    """Tell whether two pages have the same listing, and differ around it in nothing but notes, empty lines and spaces at the ends of lines.

    Args:
        one: a page, which anybody may have edited.
        other: another one.
    """
    try:
        one, other = without_notes(one), without_notes(other)
    except PageError:
        return False
    return _digest(one) == _digest(other) and _listing_lines(one) == _listing_lines(other)


def says_the_same(old: bytes, new: bytes) -> bool:
    """Tell whether two pages differ in nothing but notes, empty lines, spaces at the ends of lines and the kind of line ends.

    Args:
        old: a page that nobody has edited.
        new: a page as it is generated, with its notes.
    """
    ends = [data[data.rfind(_WORD) :].split(b"-->")[0] for data in (old, new)]
    return ends[0] == ends[1] and _lines(old) == _lines(new)


def _lines(data: bytes) -> list[bytes]:
    return [line for line in map(bytes.rstrip, without_notes(data).splitlines()) if line]


def _is_right(source: bytes, embedding: Embedding) -> bool:
    return hashlib.sha256(source).hexdigest() == embedding.sha256


def _listing_lines(data: bytes) -> list[bytes]:
    return (_listing_of(data) or b"").splitlines()


def _listing_of(data: bytes) -> bytes | None:
    """Give the text of the source's listing on a page without notes; None when there is none, or nothing ends it."""
    span = _span(data)
    return None if span is None else data[span[0] : span[1]]


def _unsealed(data: bytes) -> tuple[bytes | None, bytes]:
    """Take the seal from a page without notes: give what it says, and all else; None where none stands behind the listing."""
    span = _span(data)
    place = data.rfind(_WORD, span[1] if span else 0)
    found = _SEAL.match(data, place) if place >= 0 else None
    return (None, data) if found is None else (found[1], data[:place] + data[found.end() :])


def _restored(raw: bytes, embedding: Embedding) -> tuple[str | None, bytes | None, str]:
    """Give a listing's text with the source's line ends, the bytes of the source, and why there are none."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None, None, "its listing is not UTF-8"
    if not embedding.final_newline:
        text = re.sub(r"(?:\r\n|\r|\n)\Z", "", text)
    if embedding.newline in _ENDS and _mixed(text, embedding.newline):
        text = _ANY_END.sub(lambda _: _ENDS[embedding.newline], text)
    try:
        return text, restore(text if embedding.final_newline else f"{text}\n", embedding), ""
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        what = (
            f"line {line} of its listing holds {text[error.start]!r}, which {embedding.encoding}, the encoding of the source, cannot hold"
        )
        return text, None, what
    except LookupError:
        return text, None, f"its encoding {embedding.encoding} is not known"


def _mixed(text: str, newline: str) -> bool:
    """Whether a text holds line ends other than those of its source."""
    crlf = text.count("\r\n")
    counts = {"crlf": crlf, "lf": text.count("\n") - crlf, "cr": text.count("\r") - crlf}
    return any(count for name, count in counts.items() if name != ("lf" if newline == "none" else newline))


def _span(data: bytes) -> tuple[int, int] | None:
    """Find the text of the source's listing."""
    opening = _opening(data)
    if opening is None:
        return None
    start = end = opening.end()
    while (end := data.find(opening[1], end)) >= 0:
        if data[end - 1] in b"\r\n" and _CLOSING.match(data, end):
            return start, end
        end += 1
    return None


def _opening(data: bytes) -> re.Match[bytes] | None:
    """Find the line that opens the source's listing."""
    place = data.find(_OPTIONS)
    while place >= 0:
        found = _OPENING.match(data, data.rfind(b"\n", 0, place) + 1)
        if found is not None:
            return found
        place = data.find(_OPTIONS, place + 1)
    return None


def _digest(data: bytes) -> bytes:
    span = _span(data)
    rest = data if span is None else data[: span[0]] + data[span[1] :]
    lines = filter(None, map(bytes.rstrip, rest.splitlines()))
    return hashlib.blake2b(b"\n".join(lines), digest_size=16).hexdigest().encode()
