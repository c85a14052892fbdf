"""What lines of C and C++ say where the grammar fails: heads of namespaces and classes, tests and includes that a walk has not met."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from rankbook.model import Definition, Keyword
from rankbook.sources import c_tests, grammars
from rankbook.sources.outline import KEYWORDS, MOST_DEFINITIONS, TYPES, Walk

_PASSED = re.compile(
    rb"""
    \#[ \t]*(?:
        include[ \t]*(?P<include><[^>\n]+>|"[^"\n]+")
        |(?P<macro>define\b(?:"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?(?:\*/|\Z)|\\\n|[^\n])*)
    )
    |/(?P<remark>/(?:\\\n|[^\n])*|\*.*?(?:\*/|\Z))
    |R"(?P<end>[^()\\\s"]{0,16})\(.*?(?:\)(?P=end)"|\Z)
    |"(?:\\.|[^"\\\n])*"
    |'(?<!\w')(?:\\.|[^'\\\n]){1,8}'
    """,
    re.VERBOSE | re.DOTALL,
)
"""What holds no code: comments, definitions of macros, strings; and the lines that include."""
_TOKEN = re.compile(
    rb"""
    (?:\A|(?<=[\n{};]))[ \t]*(?:
        \#[ \t]*(?P<branch>if|el|endif)[a-z]*
        |(?:inline\s+)?namespace(?P<namespace>[ \t\n]+\w+(?:[ \t]*::[ \t]*\w+)*)?\s*\{
        |(?:template\s*<[^;{}()]{0,2000}>\s*)?(?P<kind>class|struct|union)\s+(?P<type>\w+(?:::\w+)*(?:[ \t]*<[^;{}()]{0,200}?>)?)
            \s*(?:final\s*)?(?::(?!:)[^;{}()]{0,2000})?\{
        |(?P<macro>[A-Z][A-Z0-9_]+)[ \t]*\(
    )
    |extern\s+\{
    |[{}]
    """,
    re.VERBOSE,
)
"""Where a block begins or ends, in a text without strings."""
_BODY = re.compile(rb"\s*\{")
_BRACKET = re.compile(rb"[()\[\]{}]|,")
_SUITES = frozenset({"TEST_SUITE"})
"""Macros whose blocks hold tests."""
_MOST_BLOCKS = 400_000
_DEEPEST = 100
"""Blocks within each other that are followed."""
_FARTHEST = 5_000
"""Bytes in which a bracket that opens is looked for."""
_MOST_BRACKETS = 400
"""Brackets and commas in the arguments of a macro."""
_MOST_LOST = 200_000
"""The same of all macros of a file whose arguments have no end."""
_MOST_BYTES = 2_000_000
"""Bytes that are parsed once more, all of a file together."""
_MOST_SCOPES = 200
"""Namespaces and classes of a file that are added."""
_HEAD_LINES = 60
"""Lines of `template <...>` above the head of a class."""


class _Block(Struct, eq=False):
    """What stands between two braces."""

    kind: str
    """Kind of its definition; `open` for one that only holds others, empty for code."""
    name: str
    start: int
    word: int
    """Where its keyword stands, behind `template <...>`."""
    outer: _Block | None
    depth: int = 0
    end: int = -1
    """Where it ends; -1 while that is not known."""
    is_inner: bool = False
    """Whether it stands in code."""
    twins: list[_Block] = []
    """Blocks of other branches of an `#if` that end where it ends."""


def mend(walk: Walk, data: bytes) -> None:
    """Add to a walk over a tree with errors what lines of the text say and the walk has not met.

    Args:
        walk: what was found.
        data: the text as it was parsed.
    """
    spans, remarks = [], []
    known = {entry.line for entry in walk.imports}
    line = _numbers(data)
    for match in _PASSED.finditer(data):
        if match["include"] is None:
            spans.append(match.span())
            remarks += [match.span()] if match["remark"] or match["macro"] else []
        elif line(match.start("include")) not in known:
            written = match["include"].decode(errors="replace")
            walk.take_at(written[1:-1], line(match.start("include")), is_system=written.startswith("<"))
    scan = _Scan(grammars.blanked(walk.data, remarks), grammars.blanked(data, spans))
    scan.run()
    mending = _Mending(walk, data, line)
    for block in scan.found:
        mending.add(block)
    walk.is_torn = mending.has_added or scan.is_torn


class _Scan:
    """Finds the blocks of a text.

    Args:
        written: the text without comments.
        bare: the same without strings.
    """

    def __init__(self, written: bytes, bare: bytes) -> None:
        self.found: list[_Block] = []
        """Blocks that are definitions, by their places."""
        self.is_torn = False
        """Whether the braces do not fit each other."""
        self._written = written
        self._bare = bare
        self._top: _Block | None = None
        self._lost = 0
        """Brackets and commas of macros whose arguments have no end."""
        self._branches: list[tuple[_Block | None, list[_Block | None]]] = []
        """Of each `#if` around: the block that it stands in, and the one in which its first branch ends."""

    def run(self) -> None:
        """Go through the text."""
        position = 0
        for _ in range(_MOST_BLOCKS):
            match = _TOKEN.search(self._bare, position)
            if match is None:
                break
            if self._top is not None and self._top.depth > _DEEPEST:
                self.is_torn = True
                break
            position = match.end()
            if match["branch"] is not None:
                self._branch(match["branch"], match.start())
            elif match["macro"] is not None:
                position = self._macro(match)
            elif match[0] == b"}":
                self._close(match.start())
            else:
                self._open(*_head(match))
        else:
            self.is_torn = True
        self.is_torn |= self._top is not None

    def _open(self, kind: str, name: str, start: int, word: int) -> None:
        if kind in ("namespace", "test") and (kind == "namespace" or self._indent(start) == 0):
            # Neither stands in code or in a class: the end of what is around it was not seen.
            while self._top is not None and (self._top.is_inner or self._top.kind in TYPES):
                self._shut(self._top, start - 1)
                self._top, self.is_torn = self._top.outer, True
        around = self._top
        depth = around.depth + 1 if around is not None else 0
        within = around is not None and around.is_inner
        if within and kind in TYPES:
            kind, name = "", ""
        if name and kind != "test" and self._is_argument(start):
            kind, name, self.is_torn = "", "", True
        block = _Block(kind, name, start, word, around, depth, is_inner=within or kind in ("", "test"))
        if name:
            self.found.append(block)
        self._top = block

    def _is_argument(self, start: int) -> bool:
        """Tell whether a place stands within brackets: text for a macro that makes a string of it."""
        first = max(start - _FARTHEST, 0 if self._top is None else self._top.start)
        around = self._bare[first:start]
        return around.count(b"(") > around.count(b")")

    def _indent(self, start: int) -> int:
        return start - self._bare.rfind(b"\n", 0, start) - 1

    def _close(self, position: int) -> None:
        if self._top is None:
            self.is_torn = True
            return
        self._shut(self._top, position)
        self._top = self._top.outer

    def _shut(self, block: _Block, position: int) -> None:
        for each in (block, *block.twins):
            each.end = position

    def _branch(self, word: bytes, position: int) -> None:
        """Let each branch of an `#if` begin in the same block, and what follows go on from the first."""
        if word == b"if":
            self._branches.append((self._top, []))
            return
        if not self._branches:
            return
        around, first = self._branches[-1]
        if first:
            for mine, other in zip(_chain(self._top, around), _chain(first[0], around), strict=False):
                mine.end = position
                other.twins.append(mine)
        else:
            first.append(self._top)
        self._top = around
        if word == b"endif":
            self._branches.pop()
            self._top = first[0]

    def _macro(self, match: re.Match[bytes]) -> int:
        """Open the block behind a macro call; give the place where to go on."""
        macro = match["macro"].decode()
        if macro not in c_tests.MACROS and macro not in _SUITES:
            return match.end()
        arguments, end = self._arguments(match.end())
        body = _BODY.match(self._bare, end) if end >= 0 else None
        if body is None:
            return match.end()
        if macro in _SUITES:
            self._open("open", "", match.start("macro"), match.start("macro"))
        else:
            self._open("test", c_tests.name_of(macro, arguments), match.start("macro"), match.start("macro"))
        return body.end()

    def _arguments(self, start: int) -> tuple[list[str], int]:
        """Give the arguments of a call with the place behind it; -1 when that is not found."""
        found, depth, position = [], 0, start
        for _ in range(_MOST_BRACKETS if self._lost < _MOST_LOST else 0):
            match = _BRACKET.search(self._bare, position)
            if match is None:
                break
            position = match.end()
            if depth == 0 and match[0] in b",)":
                found.append(" ".join(self._written[start : match.start()].decode(errors="replace").split()))
                start = position
            if match[0] != b",":
                depth += 1 if match[0] in b"([{" else -1
            if depth < 0:
                return [each for each in found if each], position
        self._lost += _MOST_BRACKETS
        return [], -1


class _Mending:
    """Puts blocks that a walk has not met among its definitions.

    Args:
        walk: what was found.
        data: the text as it was parsed.
        line: tells the line of a place in it.
    """

    def __init__(self, walk: Walk, data: bytes, line: Callable[[int], int]) -> None:
        self.has_added = False
        self._line = line
        self._walk = walk
        self._data = data
        self._bytes = _MOST_BYTES
        self._scopes_left = _MOST_SCOPES
        self._separator = walk.grammar.separator
        self._found: list[Definition] = sorted(walk.definitions, key=lambda each: each.line)
        self._met: dict[tuple[str, int], list[str]] = defaultdict(list)
        """Names of what was found, by kind and line."""
        self._scopes: dict[int, tuple[str, int]] = {}
        """Qualified name and number of definitions around what it holds, by block."""
        for each in self._found:
            self._met[_group(each.kind), each.line].append(_plain(each.name))

    def add(self, block: _Block) -> None:
        """Add a block, with what it holds, unless the walk has met it."""
        line, end = self._line(block.start), self._line(block.end if block.end >= 0 else len(self._data) - 1)
        qualname, depth = self._scope(block.outer)
        own = f"{qualname}{self._separator}{block.name}" if qualname else block.name
        self._scopes[id(block)] = own, depth + 1
        if self._is_met(block) or len(self._found) >= MOST_DEFINITIONS:
            return
        self.has_added = True
        if block.kind != "test":
            self._scopes_left -= 1
            if self._scopes_left < 0 or self._read_again(block, line, qualname, depth):
                return
            self._enclose(block, line, end, qualname, own)
        self._put(Definition(block.kind, block.name, own, line, max(line, end), depth))
        self._walk.keywords.append(Keyword(KEYWORDS[block.kind], block.name, line, qualname))

    def _scope(self, block: _Block | None) -> tuple[str, int]:
        while block is not None and not block.name:
            block = block.outer
        return self._scopes[id(block)] if block is not None else ("", 0)

    def _is_met(self, block: _Block) -> bool:
        """Tell whether a block was found; each of the found is one block only."""
        line, group, name = self._line(block.word), _group(block.kind), _plain(block.name)
        names = self._met.get((group, line), [])
        if block.kind == "test" and names:
            names.pop(0)
            return True
        for row in range(line, max(0, line - (_HEAD_LINES if block.kind in TYPES else 1)), -1):
            names = self._met.get((group, row), [])
            if name in names:
                names.remove(name)
                return True
        return False

    def _enclose(self, block: _Block, line: int, end: int, outer: str, own: str) -> None:
        """Say of what stands in a block that it does."""
        before, start = (f"{scope}{self._separator}" if scope else "" for scope in (outer, own))
        for index in self._rows(line + 1, end):
            each = self._found[index]
            is_own = each.kind != "macro" and each.qualname.startswith(before)
            name = f"{start}{each.qualname[len(before) :]}" if is_own else each.qualname
            kind = "method" if each.kind == "function" and block.kind in TYPES and each.qualname == before + each.name else each.kind
            self._found[index] = replace(each, kind=kind, qualname=name, depth=each.depth + 1)
        self._walk.keywords = [
            each._replace(scope=self._within(each.scope, outer, own)) if self._moves(each, line, end) else each
            for each in self._walk.keywords
        ]

    def _moves(self, keyword: Keyword, line: int, end: int) -> bool:
        return line < keyword.line <= end and keyword.kind not in ("macro", "import")

    def _within(self, scope: str, outer: str, own: str) -> str:
        """Give a scope with a block put into it."""
        if scope == outer:
            return own
        before = f"{outer}{self._separator}" if outer else ""
        return f"{own}{self._separator}{scope[len(before) :]}" if scope.startswith(before) else scope

    def _read_again(self, block: _Block, line: int, outer: str, depth: int) -> bool:
        """Read a block by itself, as what confuses the grammar may stand outside; tell whether all of it could be read."""
        piece = self._data[block.start : block.end + 1]
        self._bytes -= len(piece)
        if block.end < 0 or self._bytes < 0:
            return False
        try:
            root = grammars.parse(self._walk.grammar.name, piece)
        except grammars.NoGrammarError:
            return False
        again = Walk(self._walk.grammar, self._walk.source, self._walk.data[block.start : block.end + 1])
        again.run(root)
        if (
            root.has_error
            or again.is_cut
            or not any(_plain(each.name) == _plain(block.name) and each.line == 1 for each in again.definitions)
        ):
            return False
        last = line + piece.count(b"\n")
        kept = [each for each in self._rows_of(line, last) if each.line == line and each.depth < depth]
        rows = self._rows(line, last)
        self._found[rows.start : rows.stop] = kept
        for row in range(line, last + 1):
            for group in ("namespace", "type", "test"):
                self._met.pop((group, row), None)
        for each in again.definitions:
            own = each.qualname if each.kind == "macro" else self._below(outer, each.qualname)
            self._put(replace(each, qualname=own, line=each.line + line - 1, end_line=each.end_line + line - 1, depth=each.depth + depth))
            self._met[_group(each.kind), each.line + line - 1].append(_plain(each.name))
        self._is_met(block)
        self._walk.keywords = [each for each in self._walk.keywords if each.kind == "import" or not line <= each.line <= last]
        for keyword in again.keywords:
            if keyword.kind != "import":
                scope = keyword.scope if keyword.kind == "macro" else self._below(outer, keyword.scope)
                self._walk.keywords.append(keyword._replace(line=keyword.line + line - 1, scope=scope))
        return True

    def _below(self, outer: str, name: str) -> str:
        return f"{outer}{self._separator}{name}" if outer and name else outer or name

    def _put(self, definition: Definition) -> None:
        index = bisect_right(self._found, (definition.line, definition.depth), key=lambda each: (each.line, each.depth))
        self._found.insert(index, definition)
        self._walk.definitions = self._found

    def _rows(self, first: int, last: int) -> range:
        """Give the places of what is found in some lines."""
        return range(
            bisect_left(self._found, first, key=lambda each: each.line), bisect_right(self._found, last, key=lambda each: each.line)
        )

    def _rows_of(self, first: int, last: int) -> Iterator[Definition]:
        return (self._found[index] for index in self._rows(first, last))


def _numbers(data: bytes) -> Callable[[int], int]:
    """Give what tells the line of a place in a text."""
    ends = [match.start() for match in re.finditer(b"\n", data)]
    return lambda position: bisect_left(ends, position) + 1


def _plain(name: str) -> str:
    """Give a name without its arguments, which may be written in several ways."""
    return "".join(name.partition("<")[0].split())


def _group(kind: str) -> str:
    return "type" if kind in TYPES else kind


def _head(match: re.Match[bytes]) -> tuple[str, str, int, int]:
    """Give kind, name and places of what a token opens."""
    start = match.end() - len(match[0].lstrip())
    if match["kind"] is not None:
        return match["kind"].decode(), _name(match["type"]), start, match.start("kind")
    if match["namespace"] is not None:
        return "namespace", _name(match["namespace"]), start, start
    return ("open" if match[0] != b"{" else ""), "", start, start


def _name(written: bytes) -> str:
    return " ".join(written.decode(errors="replace").split()).replace(" ::", "::").replace(":: ", "::")


def _chain(block: _Block | None, around: _Block | None) -> list[_Block]:
    """Give the blocks that stand in a block, the outermost first."""
    found: list[_Block] = []
    while block is not None and block is not around:
        found.append(block)
        block = block.outer
    return found[::-1] if block is around else []
