"""How the bytes of a source file become the text of a listing, and come back.

Both wings stand on this: the documents wing embeds, the proof wing restores. A page's front matter carries the `Embedding`;
the listing's text carries everything else.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import re
import tokenize

from msgspec import Struct

UTF8 = "utf-8"
_MAGIC = re.compile(rb".*?coding[:=][ \t]*([-\w.]+)")
_COMMENTS = (b"#", b"//", b"/*", b"<!--", b"%", b";")
"""How the comments begin in which a file may name its encoding."""
_NOT_OF_FILES = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"})
"""Encodings that Python knows and no file has; to read some would take for ever."""
_BAD_CHARACTERS = "\0\2\3"
_BAD = re.compile(f"[{_BAD_CHARACTERS}]")
"""What a Markdown page cannot show."""
_BOMS = (
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Embedding(Struct, frozen=True):
    """How a file's bytes relate to the text of its listing."""

    encoding: str
    """Python's name of the file's encoding."""
    bom: bool
    """Whether the file starts with a byte order mark, which the listing leaves out."""
    newline: str
    """`lf`, `crlf`, `cr`, `mixed` or `none`; the listing keeps the line ends as they are."""
    final_newline: bool
    """Whether the last line is ended; in the listing it always is."""
    size: int
    """Bytes of the file."""
    sha256: str
    """Hexadecimal digest of the file."""


class Embedded(Struct, frozen=True):
    """A file as a listing shows it."""

    text: str
    """The listing's text; ends with a line end unless the file is empty."""
    embedding: Embedding


class NotEmbedded(Struct, frozen=True):
    """Why a file has no listing."""

    reason: str
    """A clause: `it is binary (a null byte at offset 12)`."""
    size: int
    sha256: str


def embed(data: bytes) -> Embedded | NotEmbedded:
    """Turn a file's bytes into the text of a listing.

    Args:
        data: the whole file.

    Returns:
        The text with what is needed to restore the bytes, or the reason why a text cannot hold them.
    """
    digest = hashlib.sha256(data).hexdigest()
    bom, encoding = _detect(data)
    body = data[len(bom) :]
    try:
        text = body.decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        return NotEmbedded(_why_not(data, encoding, error), len(data), digest)
    bad = _BAD.search(text) if any(character in text for character in _BAD_CHARACTERS) else None
    if bad and bad[0] == "\0":
        return NotEmbedded(_why_not(data, encoding, ValueError()), len(data), digest)
    if bad:
        return NotEmbedded(f"it holds the control character U+{ord(bad[0]):04X}, which a Markdown page cannot show", len(data), digest)
    if encoding != UTF8 and not _is_faithful(data, bom, encoding, text):
        return NotEmbedded(f"its {encoding} text does not give back the same bytes", len(data), digest)
    final = text == "" or text.endswith(("\n", "\r"))
    shown = text if final else text + "\n"
    return Embedded(shown, Embedding(encoding, bool(bom), _newline(text), bool(text) and final, len(data), digest))


def restore(text: str, embedding: Embedding) -> bytes:
    """Give back the bytes of a file from the text of its listing.

    Args:
        text: the listing's text, with the line ends that stand in the page.
        embedding: what the page says of the file.

    Returns:
        The file's bytes. Whether they are the right ones is told by `embedding.sha256`.
    """
    if not embedding.final_newline and text.endswith("\n"):
        text = text[:-1]
    body = text.encode(embedding.encoding, errors="surrogatepass" if embedding.encoding == UTF8 else "strict")
    return (_bom_of(embedding.encoding) if embedding.bom else b"") + body


def is_exact(text: str, embedding: Embedding) -> bool:
    """Tell whether the text of a listing gives back the very bytes of its file."""
    try:
        return hashlib.sha256(restore(text, embedding)).hexdigest() == embedding.sha256
    except (UnicodeError, LookupError):
        return False


def _is_faithful(data: bytes, bom: bytes, encoding: str, text: str) -> bool:
    """Tell whether a text gives back the bytes that it was read from; strict UTF-8 always does."""
    try:
        return bom + text.encode(encoding) == data and text.encode(UTF8).decode(UTF8) == text
    except UnicodeEncodeError:
        return False


def known(name: str) -> str:
    """Give Python's own name of an encoding; empty when no file has it."""
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        return ""
    return "" if found in _NOT_OF_FILES else found


def _detect(data: bytes) -> tuple[bytes, str]:
    """Find the byte order mark and the encoding: a mark first, then a coding cookie (PEP 263), then UTF-8."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return mark, encoding
    for line in data.split(b"\n", 2)[:2]:
        if line.strip(b" \t\r\f") and not line.lstrip(b" \t\f").startswith(_COMMENTS):
            break
        match = _MAGIC.match(line)
        if match:
            name = match[1].decode("ascii")
            return b"", UTF8 if name.lower() == "utf8" else known(name) or UTF8
    return b"", UTF8


def _bom_of(encoding: str) -> bytes:
    return next(mark for mark, name in _BOMS if name == encoding)


def _newline(text: str) -> str:
    if "\r" not in text:
        return "lf" if "\n" in text else "none"
    crlf = text.count("\r\n")
    counts = {"lf": text.count("\n") - crlf, "crlf": crlf, "cr": text.count("\r") - crlf}
    names = [name for name, count in counts.items() if count]
    return names[0] if len(names) == 1 else "mixed"


def _why_not(data: bytes, encoding: str, error: Exception) -> str:
    null = data.find(b"\0")
    if null >= 0:
        return f"it is binary (a null byte at offset {null})"
    if isinstance(error, UnicodeDecodeError) and encoding == UTF8:
        return f"it is not UTF-8 (at offset {error.start}) and names no other encoding"
    return f"it cannot be read as {encoding}, the encoding that it names"


def source_text(data: bytes) -> str:
    """Decode Python source as the interpreter does, with universal newlines.

    Raises:
        SyntaxError, UnicodeDecodeError: as `tokenize.detect_encoding` and the codec do.
    """
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return io.TextIOWrapper(io.BytesIO(data), encoding, newline=None).read()
