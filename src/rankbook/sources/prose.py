"""Headings and first paragraph of Markdown and reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from tree_sitter import Node

from rankbook import front_matter
from rankbook.model import Definition, Heading, Import, Keyword, Module, Source
from rankbook.sources import grammars, outline

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_NOT_PARAGRAPH = re.compile(r"(?:[-*+>|<!:=#\[]|\d+[.)]\s|\.\. |__ | {4}|\t|```|~~~)")
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*[ \t]*$")
_INCLUDES = ("include:: ", "literalinclude:: ")
_HOLDERS = frozenset({
    "directive", "body", "content", "list_item", "bullet_list", "enumerated_list", "definition_list", "section", "block_quote", "ERROR",
    "field_list", "field", "field_body", "definition",
})  # fmt: skip
"""Types of node in which a directive can stand."""
_MOST_NODES = 100_000
_MOST_LINES = 20
"""Lines of a heading."""
_LONGEST = 120
"""Characters of a directive's name and argument."""
_LINE_END = re.compile(r"\r\n|\r|\n")


def read_markdown(_data: bytes, source: Source, text: str) -> Module:
    """Read a Markdown file: ATX and setext headings outside fences, comments and front matter."""
    _, offset = front_matter.split(text)
    skipped = len(_LINE_END.findall(text[:offset]))
    lines = list(_outside_fences(_LINE_END.split(text[offset:]), skipped + 1))
    found = list(_markdown_headings(lines))
    about = _first_paragraph(lines, {line for heading, last in found for line in range(heading.line, last + 1)})
    headings = tuple(heading for heading, _ in found if heading.text)
    return Module(source, docstring=about, headings=headings, keywords=tuple(_sections(headings)))


def read_rst(_data: bytes, source: Source, text: str) -> Module:
    """Read a reStructuredText file: a title is a line with a rule of punctuation below it, or above and below."""
    lines = list(enumerate(_LINE_END.split(text), start=1))
    headings = tuple(_rst_headings([line for _, line in lines]))
    about = _first_paragraph(lines, {heading.line for heading in headings})
    try:
        directives = tuple(islice(_directives(text), outline.MOST_DEFINITIONS))
    except grammars.NoGrammarError as error:
        return Module(source, docstring=about, headings=headings, keywords=tuple(_sections(headings)), unread=str(error))
    included = (each for each in directives if each.name.startswith(_INCLUDES))
    imports = tuple(Import(each.name.partition(":: ")[2], None, None, each.line) for each in included)
    keywords = [*_sections(headings), *(Keyword("import", each.module, each.line) for each in imports)]
    keywords += [Keyword("directive", name, line) for name, line in _first_lines(directives).items()]
    keywords.sort(key=lambda keyword: (keyword.line, keyword.kind, keyword.name))
    return Module(source, docstring=about, headings=headings, imports=imports, keywords=tuple(keywords), definitions=directives)


def _sections(headings: Iterable[Heading]) -> Iterator[Keyword]:
    return (Keyword("section", heading.text.replace("`", ""), heading.line) for heading in headings if heading.text.strip("` "))


def _first_lines(directives: Iterable[Definition]) -> dict[str, int]:
    lines: dict[str, int] = {}
    for each in directives:
        lines.setdefault(each.name, each.line)
    return lines


def _directives(text: str) -> Iterator[Definition]:
    """Give the directives of a reStructuredText file, each with its first argument, in the order of their lines."""
    data = grammars.bytes_of(text)
    stack = [(node, 0) for node in reversed(grammars.parse("rst", data).children)]
    for _ in range(_MOST_NODES):
        if not stack:
            break
        node, depth = stack.pop()
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        inner = node.children
        if node.type == "directive" and name is not None:
            arguments = next((child for child in body.children if child.type == "arguments"), None) if body is not None else None
            written = b"" if arguments is None else data[arguments.start_byte : arguments.end_byte].split(b"\n", 1)[0]
            label = f"{_decoded(data[name.start_byte : name.end_byte])}:: {_decoded(written)}"[:_LONGEST].removesuffix(":: ")
            yield Definition("directive", label, label, node.start_point.row + 1, _end_line(node), depth)
            inner = body.children if body is not None else []
        if node.type in _HOLDERS:
            stack += [(child, depth + (node.type == "directive")) for child in reversed(inner) if child.type in _HOLDERS]


def _decoded(data: bytes) -> str:
    return " ".join(data.decode(errors="replace").split())


def _end_line(node: Node) -> int:
    end = node.end_point
    return max(node.start_point.row, end.row - (end.column == 0)) + 1


def _outside_fences(lines: list[str], first: int) -> Iterator[tuple[int, str]]:
    """Number the lines, blanking those inside fences and HTML comments."""
    fence, comment = "", False
    for number, line in enumerate(lines, start=first):
        match = _FENCE.match(line)
        if fence:
            closes = match and match[1].startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if closes else fence
            yield number, ""
        elif comment or line.lstrip().startswith("<!--"):
            comment = "-->" not in line
            yield number, ""
        elif match:
            fence = match[1]
            yield number, ""
        else:
            yield number, line


def _markdown_headings(lines: list[tuple[int, str]]) -> Iterator[tuple[Heading, int]]:
    """Give the headings, each with its last line; one above a rule is the whole paragraph there."""
    paragraph: list[str] = []
    for number, line in lines:
        atx, setext = _ATX.match(line), _SETEXT.match(line)
        if atx:
            yield Heading(len(atx[1]), (atx[2] or "").strip(), number), number
            paragraph = []
        elif setext and 0 < len(paragraph) <= _MOST_LINES and not any(map(_NOT_PARAGRAPH.match, paragraph)):
            yield Heading(1 if "=" in setext[1] else 2, " ".join(map(str.strip, paragraph)), number - len(paragraph)), number - 1
            paragraph = []
        elif line.strip() and not setext:
            paragraph.append(line)
        else:
            paragraph = []


def _rst_headings(lines: list[str]) -> Iterator[Heading]:
    levels: dict[tuple[str, bool], int] = {}
    for index in range(1, len(lines)):
        title, rule = lines[index - 1], _ADORNMENT.match(lines[index])
        if not (rule and title.strip() and not _ADORNMENT.match(title)):
            continue
        overlined = index > 1 and lines[index - 2].rstrip() == rule[0].rstrip()
        if len(rule[0].rstrip()) < min(len(title.strip()), 4) or (title[0].isspace() and not overlined):
            continue
        yield Heading(levels.setdefault((rule[1], overlined), len(levels) + 1), title.strip(), index)


def _first_paragraph(lines: Iterable[tuple[int, str]], headings: set[int]) -> str | None:
    """Give the first run of plain lines: no heading, list, table, quote, directive, image or rule."""
    paragraph: list[str] = []
    for number, line in lines:
        plain = bool(line.strip()) and number not in headings and not _ADORNMENT.match(line) and not _NOT_PARAGRAPH.match(line)
        if plain or (paragraph and line.strip() and number not in headings):
            paragraph.append(line.strip())
        elif paragraph:
            break
    return " ".join(paragraph) or None
