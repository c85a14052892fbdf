"""The definitions of Objective-C and Objective-C++ sources: classes by their `@` words, all else as C or C++ has it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from rankbook.model import Definition, Keyword, Module, Source
from rankbook.sources import c_family, grammars, outline
from rankbook.sources.outline import Grammar

_MARK = re.compile(rb"^@(?:(interface|implementation|protocol)[ \t]+(\w+)(?![\w \t]*[;,])|end\b)", re.MULTILINE)
"""Where a class begins or ends."""
_FORWARD = re.compile(rb"^[ \t]*@(?:class|import|protocol)\b[^\n;]*;", re.MULTILINE)
_METHOD = re.compile(rb"^[-+][ \t]*\([^)\n]*\)[ \t]*(\w+:?)(?:[^;{\n]|\n(?![-+@])){0,2000}", re.MULTILINE)
_PART = re.compile(rb"\b(\w+:)[ \t]*\(")
_KINDS = {b"interface": "class", b"implementation": "class", b"protocol": "protocol"}


def read(grammar: Grammar) -> Callable[[bytes, Source, str], Module]:
    """Give the reader of Objective-C on top of a grammar of C or C++."""
    grammar = replace(grammar, prepare=lambda data: c_family.without_exports(_without_objects(data)))

    def reader(_data: bytes, source: Source, text: str) -> Module:
        module = outline.read(grammar, source, text)
        found = list(_definitions(grammars.bytes_of(text)))
        keywords = [Keyword(outline.KEYWORDS[each.kind], each.name, each.line, each.qualname.rpartition(".")[0]) for each in found]
        return replace(
            module,
            definitions=outline.definitions_of([*module.definitions, *found])[: outline.MOST_DEFINITIONS],
            keywords=outline.keywords_of([*module.keywords, *keywords]),
        )

    return reader


def _without_objects(data: bytes) -> bytes:
    spans = [(head.start(), end) for head, end in _blocks(data)]
    return grammars.blanked(data, [*spans, *(match.span() for match in _FORWARD.finditer(data))])


def _blocks(data: bytes) -> Iterator[tuple[re.Match[bytes], int]]:
    """Give the head of each class with the place where it ends."""
    head = None
    for mark in _MARK.finditer(data):
        if mark[1] is None and head is not None:
            yield head, mark.end()
        head = mark if mark[1] is not None else None


def _definitions(data: bytes) -> Iterator[Definition]:
    ends = [match.start() for match in re.finditer(b"\n", data)]

    def line(position: int) -> int:
        return bisect_right(ends, position - 1) + 1

    for head, end in _blocks(data):
        name = head[2].decode(errors="replace")
        yield Definition(_KINDS[head[1]], name, name, line(head.start()), line(end))
        for method in _METHOD.finditer(data, head.end(), end):
            selector = b"".join(dict.fromkeys((method[1], *_PART.findall(method[0])))).decode(errors="replace")
            yield Definition("method", selector, f"{name}.{selector}", line(method.start()), line(method.end() - 1), 1)
