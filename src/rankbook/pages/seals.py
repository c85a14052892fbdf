"""The last line of a generated page, by which it can be told whether somebody has edited the page.

It holds a digest of all that stands on the page besides the notes and the listing, which the source's own digest in the front matter
covers. Empty lines, spaces at the ends of lines and the kind of line ends do not count: tools that tidy files change those.
"""

from __future__ import annotations

import enum
import hashlib
import re

from msgspec import Struct

from rankbook import front_matter
from rankbook.embedding import Embedding, restore
from rankbook.errors import PageError
from rankbook.front_matter import Stamp
from rankbook.pages.fence import SOURCE_OPTIONS
from rankbook.pages.notes import without_notes

_SEAL = re.compile(rb"<!-- rankbook-seal ([0-9a-f]{32}) -->\s*\Z")
_LINE = 64
"""Bytes at a page's end among which its seal stands."""
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
    found = _SEAL.search(data, max(0, len(data) - _LINE))
    edited = Edited.NOTHING
    if found and found[1] != _frame(data[: found.start()]):
        edited |= Edited.TEXT
    embedding = stamp.embedding
    raw = listing_of(data)
    if embedding is None or (raw is None and _is_right(_restored(b"", embedding)[1] or b"", embedding)):
        return Seen(stamp, edited, None, None, is_sealed=found is not None)
    if raw is None:
        return Seen(stamp, edited | Edited.LISTING, None, None, "no listing of the source is found on the page", found is not None)
    text, source, problem = _restored(raw, embedding)
    if source is None or not _is_right(source, embedding):
        edited |= Edited.LISTING
    return Seen(stamp, edited, source, text, problem, found is not None)


def listing_of(data: bytes) -> bytes | None:
    """Give the text of the source's listing as it stands on a page; None when there is none, or nothing ends it."""
    span = _span(data)
    return None if span is None else data[span[0] : span[1]]


def is_lost(old: bytes, new: bytes) -> bool:
    """Tell whether somebody's edits on a page would be lost with a new one in its place, which may hold them already.

    Args:
        old: the page as it stands on disk.
        new: the page that is to take its place.
    """
    seen = look(old)
    if seen is None or not seen.edited:
        return False
    return Edited.TEXT in seen.edited or _listing_lines(old) != _listing_lines(new)


def _is_right(source: bytes, embedding: Embedding) -> bool:
    return hashlib.sha256(source).hexdigest() == embedding.sha256


def _listing_lines(data: bytes) -> list[bytes]:
    return (listing_of(data) or b"").splitlines()


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


def _frame(data: bytes) -> bytes:
    """Take the digest of a page that may hold notes; one with a broken marker is not as it was generated."""
    try:
        return _digest(without_notes(data))
    except PageError:
        return b""


def _digest(data: bytes) -> bytes:
    span = _span(data)
    rest = data if span is None else data[: span[0]] + data[span[1] :]
    lines = filter(None, map(bytes.rstrip, rest.splitlines()))
    return hashlib.blake2b(b"\n".join(lines), digest_size=16).hexdigest().encode()
