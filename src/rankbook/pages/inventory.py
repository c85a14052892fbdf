"""The file `objects.inv`, by which other Sphinx and MkDocs sites link into the book.

It is a Sphinx inventory, version 2: four lines of text, then one line per name, compressed.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote

from msgspec import Struct

from rankbook.model import PACKAGES, Module, Test
from rankbook.pages.fence import line_anchor
from rankbook.pages.names import page_of_file

FILE = "objects.inv"
"""Its name, at the root of the folder of all pages."""
_HEAD = "# Sphinx inventory version 2\n# Project: {title}\n# Version: {version}\n# The remainder of this file is compressed using zlib.\n"
_IDENTIFIER = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_SPACE = re.compile(r"\s+")
_READ = re.compile(r"(.+?)\s+\S+\s+-?\d+\s+?\S*\s+.*")
"""How a line is read: Sphinx ends the name as soon as what follows looks like a role and a number."""
_ADDRESS = re.compile(rb"^(.+?\s+(?:std|py):\w+\s+-?\d+\s+[^\s#]+?)\.html(?=[#\s])", re.MULTILINE)
"""How a line begins, up to the end of the name of its page."""
_FASTEST = 1
_OPENING, _END = b"\x78\x01", b"\x03\x00"
"""How compressed data begins that was made quickly, and an empty last block."""
_BASE = 65521
"""Of its checksum, Adler-32."""


class Named(Struct, frozen=True):
    """What one file offers to links."""

    path: str
    module: str
    """Dotted name under which it is imported; empty for a file that is no Python module."""
    names: tuple[tuple[str, str, str, int], ...] = ()
    """Role, name within the module, path and line: `("py:method", "TestX.test_y", "tests/test_x.py", 12)`; line 0 for a page as a whole."""
    labels: tuple[tuple[str, int], ...] = ()
    """Headings of a prose file, with their lines."""


def named(module: Module, name: str, tests: Iterable[Test] = ()) -> Named:
    """Gather what links to a file may name.

    Args:
        module: its facts.
        name: dotted name under which it is imported; empty for a file that is no Python module.
        tests: tests that are collected from it, so that inherited ones are found under their classes.
    """
    path = module.source.path
    found: dict[str, tuple[str, str, str, int]] = {}
    for function in module.functions:
        found.setdefault(function.qualname, ("py:function", function.qualname, path, function.line))
    for each in module.classes:
        found.setdefault(each.qualname, ("py:class", each.qualname, path, each.line))
        for method in each.methods:
            found.setdefault(method.qualname, ("py:method", method.qualname, path, method.line))
    inner = {function.qualname for function in module.functions} | {method.qualname for each in module.classes for method in each.methods}
    for test in tests:
        qualname = f"{test.class_name}.{test.name}" if test.class_name else test.name
        place = (path, 0) if test.path.startswith(PACKAGES) else (test.path, test.line)
        found.setdefault(qualname, ("py:method" if test.class_name else "py:function", qualname, *place))
    names = tuple(entry for entry in found.values() if _IDENTIFIER.fullmatch(entry[1]) and not _is_within(entry[1], inner))
    return Named(path, name, names if name else (), tuple((heading.text, heading.line) for heading in module.headings))


class Entries(Struct, frozen=True):
    """What one file offers to links, as lines of the inventory."""

    module: str
    """Dotted name under which it is imported; empty when it has none that can be linked to."""
    otherwise: str
    """Dotted name of its path, by which it goes where several files are imported under one name."""
    pages: bytes
    names: bytes
    """Lines that begin with the dotted name."""


def entries(file: Named, *, unlisted: frozenset[str] = frozenset()) -> Entries:
    """Write what one file offers.

    Args:
        file: what it offers.
        unlisted: files whose pages have no listing, so that no line of them can be linked to.
    """
    addresses = _Addresses(unlisted)
    otherwise = _dotted(file.path)
    module = file.module if _IDENTIFIER.fullmatch(file.module) else ""
    pages, names = _page_lines(file, addresses), _name_lines(file, addresses) if module else ()
    return Entries(module, otherwise if _IDENTIFIER.fullmatch(otherwise) else "", "".join(pages).encode(), "".join(names).encode())


class Lines(Struct, frozen=True):
    """Lines of the inventory, compressed so that they can stand beside others."""

    data: bytes
    size: int
    """Bytes of the lines themselves."""
    checksum: int


def lines_of(files: Iterable[Entries], taken: Mapping[str, int]) -> Lines:
    """Compress what some files offer.

    Args:
        files: what each offers, in their order.
        taken: number of files by the dotted name under which they are imported.
    """
    body = b"".join(file.pages + (file.names if taken[file.module] == 1 else _renamed(file)) for file in files)
    compressor = zlib.compressobj(_FASTEST, wbits=-zlib.MAX_WBITS)
    return Lines(compressor.compress(body) + compressor.flush(zlib.Z_FULL_FLUSH), len(body), zlib.adler32(body))


def inventory(parts: Iterable[Lines], title: str, version: str = "") -> bytes:
    """Write the inventory.

    Args:
        parts: its lines.
        title: of the book.
        version: of what is documented.
    """
    head = _HEAD.format(title=_one_line(title), version=_one_line(version))
    checksum = zlib.adler32(b"")
    found = []
    for part in parts:
        found.append(part.data)
        checksum = _joined(checksum, part.checksum, part.size)
    return b"".join((head.encode(), _OPENING, *found, _END, checksum.to_bytes(4, "big")))


def with_directories(data: bytes) -> bytes:
    """Write an inventory anew for a site that gives each page a folder of its own (MkDocs' `use_directory_urls`).

    Args:
        data: the inventory as it was generated; what is none stays as it is.
    """
    *head, body = data.split(b"\n", _HEAD.count("\n"))
    try:
        lines = zlib.decompress(body)
    except zlib.error:
        return data
    return b"\n".join((*head, zlib.compress(_ADDRESS.sub(rb"\1/", lines), _FASTEST)))


def _joined(first: int, second: int, size: int) -> int:
    """Give the checksum of two texts, one behind the other, by theirs and by the size of the second."""
    low = (first & 0xFFFF) + (second & 0xFFFF) - 1
    high = (first >> 16) + (second >> 16) + size * ((first & 0xFFFF) - 1)
    return (high % _BASE) << 16 | low % _BASE


def _renamed(file: Entries) -> bytes:
    """Put the dotted name of its path in the place of the one that several files share."""
    if not (file.module and file.otherwise):
        return b""
    return re.sub(rb"^" + re.escape(file.module.encode()), file.otherwise.encode(), file.names, flags=re.MULTILINE)


class _Addresses(Struct, frozen=True):
    """Addresses in the built site, below the folder of all pages."""

    unlisted: frozenset[str]

    def page(self, path: str) -> str:
        """Address of the page of a file."""
        return f"{quote(page_of_file('file', path).removesuffix('.md'))}.html"

    def line(self, path: str, line: int, page: str) -> str:
        """Address of a line of a listing."""
        return page if path in self.unlisted or line < 1 else f"{page}#{line_anchor(line)}"


def _page_lines(file: Named, addresses: _Addresses) -> Iterator[str]:
    page = addresses.page(file.path)
    shown = _one_line(file.path)
    yield from _line(shown, "std:doc", page, "-")
    seen: Counter[str] = Counter()
    for text, line in file.labels:
        label = _one_line(text)
        seen[label.lower()] += 1
        number = f":{seen[label.lower()]}" if seen[label.lower()] > 1 else ""
        yield from _line(f"{shown.lower()}:{label.lower()}{number}", "std:label", addresses.line(file.path, line, page), label or shown)


def _line(name: str, role: str, address: str, shown: str) -> Iterator[str]:
    """Write a line, unless a name of several words would be read as a shorter one that leads elsewhere."""
    line = f"{name} {role} -1 {address} {shown}"
    match = _READ.match(line)
    if match is not None and match[1] == name:
        yield f"{line}\n"


def _name_lines(file: Named, addresses: _Addresses) -> Iterator[str]:
    pages = {file.path: addresses.page(file.path)}
    yield f"{file.module} py:module 0 {pages[file.path]} -\n"
    for role, name, path, line in file.names:
        if path not in pages:
            pages[path] = addresses.page(path)
        yield f"{file.module}.{name} {role} 1 {addresses.line(path, line, pages[path])} -\n"


def _dotted(path: str) -> str:
    stem = path.rpartition(".")[0] or path
    return stem.removesuffix("/__init__").replace("/", ".")


def _is_within(name: str, functions: set[str]) -> bool:
    """Tell whether a name stands in a function, where nothing else can reach it."""
    end = name.find(".")
    while end != -1:
        if name[:end] in functions:
            return True
        end = name.find(".", end + 1)
    return False


def _one_line(text: str) -> str:
    return _SPACE.sub(" ", text).strip()
