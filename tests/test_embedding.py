"""The bytes of a file survive their way into a listing and back."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbook.embedding import Embedded, Embedding, NotEmbedded, embed, restore
from rankbook.front_matter import Stamp, read, split, write

ENCODED = [
    ("lf", b"a\nb\n", "utf-8", "lf"),
    ("crlf", b"a\r\nb\r\n", "utf-8", "crlf"),
    ("cr", b"a\rb\r", "utf-8", "cr"),
    ("mixed", b"a\nb\r\n", "utf-8", "mixed"),
    ("no final newline", b"a\nb", "utf-8", "lf"),
    ("one line", b"a", "utf-8", "none"),
    ("empty", b"", "utf-8", "none"),
    ("byte order mark", codecs.BOM_UTF8 + b"a\n", "utf-8", "lf"),
    ("form feed", b"a\x0cb\x0b\n", "utf-8", "lf"),
    ("latin-1 cookie", "# -*- coding: latin-1 -*-\n# \xe9\n".encode("latin-1"), "iso8859-1", "lf"),
    ("cookie in line 2", "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n# \x80\n".encode("latin-1"), "cp1252", "lf"),
    ("what is called like a cookie", "encoding: latin-1\nname: Grüße\n".encode(), "utf-8", "lf"),
    ("a cookie behind code", "x = dict(encoding=latin1)\n# coding: cp1252 é\n".encode(), "utf-8", "lf"),
    ("utf-16", codecs.BOM_UTF16_LE + "a\né\n".encode("utf-16-le"), "utf-16-le", "lf"),
]


@pytest.mark.parametrize(("data", "encoding", "newline"), [row[1:] for row in ENCODED], ids=[row[0] for row in ENCODED])
def test_every_kind_of_text_comes_back(data, encoding, newline):
    """Encodings, line ends and final newlines of all kinds are kept and named."""
    found = embed(data)
    assert isinstance(found, Embedded)
    assert (found.embedding.encoding, found.embedding.newline) == (encoding, newline)
    assert restore(found.text, found.embedding) == data


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x89PNG\0", "it is binary (a null byte at offset 4)"),
        (b"\x7fELF\0", "it is binary (a null byte at offset 4)"),
        (b"\xff\xfe\xfd", "cannot be read as utf-16-le"),
        (b"caf\xe9", "it is not UTF-8 (at offset 3) and names no other encoding"),
        (b"a\x02b", "control character U+0002"),
    ],
)
def test_what_cannot_be_embedded_says_so(data, reason):
    """A file that no text can stand for names the reason."""
    found = embed(data)
    assert isinstance(found, NotEmbedded)
    assert reason in found.reason


@given(st.binary())
def test_arbitrary_bytes(data):
    """Any bytes either come back or are refused with a reason."""
    found = embed(data)
    if isinstance(found, Embedded):
        assert restore(found.text, found.embedding) == data
        assert found.text == "" or found.text.endswith(("\n", "\r"))
    else:
        assert found.reason


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.sampled_from(["utf-8", "utf-16-le", "latin-1"]))
def test_arbitrary_text(text, encoding):
    """Any text in an encoding that it names comes back."""
    mark = codecs.BOM_UTF16_LE if encoding == "utf-16-le" else b""
    data = mark + text.encode(encoding, errors="replace")
    found = embed(data)
    if isinstance(found, Embedded):
        assert restore(found.text, found.embedding) == data


EMBEDDINGS = st.builds(
    Embedding,
    encoding=st.sampled_from(["utf-8", "iso8859-1"]),
    bom=st.booleans(),
    newline=st.sampled_from(["lf", "crlf", "cr", "mixed", "none"]),
    final_newline=st.booleans(),
    size=st.integers(0, 10**9),
    sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
)


@given(st.text(max_size=30), st.text(max_size=30), EMBEDDINGS)
def test_front_matter_round_trip(title, source, embedding):
    """What a page says of itself is read back, whatever its file is called."""
    stamp = Stamp("file", title, source, embedding.size, embedding.sha256, embedding)
    text = write(stamp) + "# Page\n"
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    values, offset = split(text)
    assert text[offset:] == "# Page\n"
    assert read(values) == stamp


PERSONAL = ["", "# Page\n", "---\ntitle: x\n---\n", "---\n- a\n---\n", "---\na: [\n---\n", "---\nrankbook: {page: other}\n---\n"]


@pytest.mark.parametrize("text", PERSONAL)
def test_a_persons_page_has_no_stamp(text):
    """A page without the mark, or with front matter of another kind, is not taken for a generated one."""
    values, _ = split(text)
    assert read(values) is None
