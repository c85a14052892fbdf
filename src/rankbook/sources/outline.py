"""A walk over a syntax tree that looks only where definitions can stand, and the facts that it gathers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from tree_sitter import Node

from rankbook.garbage import uncollected
from rankbook.model import Definition, Import, Keyword, Module, Source
from rankbook.sources import comments, grammars

MOST_DEFINITIONS = 5000
"""Definitions of a file that are listed; only generated files have more."""
_MOST_NODES = 400_000
"""Nodes that a walk visits."""
_MOST_CHILDREN = 50_000
"""Nodes of one node that are looked at."""
_LONGEST_NAME = 160
_WHERE_FIRST = frozenset({"import", "key", "directive", "variable", "environment variable", "macro"})
"""Kinds of keyword of which a file and scope shows the first use only."""

KEYWORDS: Mapping[str, str] = {
    "class": "class",
    "struct": "class",
    "union": "class",
    "record": "class",
    "enum": "type",
    "interface": "type",
    "annotation": "type",
    "trait": "type",
    "protocol": "type",
    "concept": "type",
    "type": "type",
    "namespace": "namespace",
    "package": "namespace",
    "module": "namespace",
    "function": "function",
    "method": "method",
    "constructor": "method",
    "kernel": "kernel",
    "test": "test",
    "macro": "macro",
    "macro call": "macro",
    "constant": "constant",
    "variable": "variable",
    "environment variable": "environment variable",
    "target": "target",
    "option": "option",
    "key": "key",
    "table": "key",
    "directive": "directive",
}
"""Kind of keyword by kind of definition; what has no row is listed in its file only."""


class Scope(Struct, frozen=True):
    """What is around a node."""

    qualname: str = ""
    kind: str = ""
    """Kind of the innermost definition."""
    depth: int = 0
    """Number of definitions."""


class Place(Struct):
    """A node with what is around it."""

    node: Node
    scope: Scope
    comment: str = ""
    """Comment right above it, as written."""


Handler = Callable[["Walk", Place], None]
"""What is done with a node."""


class Grammar(Struct, frozen=True):
    """How the definitions of a language are found."""

    name: str
    """Key of `grammars.GRAMMARS`."""
    handlers: Mapping[str, Handler]
    """By type of node; a node of another type is passed over with all that it holds."""
    separator: str = "."
    """Between the parts of a qualified name."""
    comments: frozenset[str] = frozenset({"comment"})
    """Types of node that are comments."""
    marks_documentation: bool = False
    """Whether comments that document have a mark of their own."""
    preamble: frozenset[str] = frozenset()
    """Types of node that may stand above the comment that describes the file."""
    statements: frozenset[str] = frozenset()
    """Types of node that define nothing, so that a comment right above them may describe the file."""
    attributes: frozenset[str] = frozenset()
    """Types of node that stand between a comment and the definition that both are about."""
    prepare: Callable[[bytes], bytes] | None = None
    """Makes the text readable to the grammar, byte for byte in its place."""
    mend: Callable[[Walk, bytes], None] | None = None
    """Adds to a walk over a tree with errors what the text shows without the grammar."""


def read(grammar: Grammar, source: Source, text: str) -> Module:
    """Read the definitions of a file.

    Args:
        grammar: its language.
        source: the file.
        text: its text.
    """
    data = grammars.bytes_of(text)
    prepared = grammar.prepare(data) if grammar.prepare else data
    try:
        root = grammars.parse(grammar.name, prepared)
    except grammars.NoGrammarError as error:
        return Module(source, unread=str(error))
    walk = Walk(grammar, source, data)
    with uncollected():
        walk.run(root)
        if grammar.mend is not None and root.has_error:
            grammar.mend(walk, prepared)
        return walk.module(_leading_comment(grammar, walk, root))


class Walk:
    """Walks one file with an explicit stack, so that no depth of nesting matters."""

    def __init__(self, grammar: Grammar, source: Source, data: bytes) -> None:
        self.grammar = grammar
        self.source = source
        self.data = data
        self.definitions: list[Definition] = []
        self.imports: list[Import] = []
        self.keywords: list[Keyword] = []
        self.seen: set[str] = set()
        """Names that are listed once only."""
        self.left_out = 0
        """Definitions that are not listed."""
        self.is_cut = False
        """Whether there is more that was not looked at."""
        self.is_torn = False
        """Whether there is more that the grammar did not understand."""
        self._stack: list[tuple[Handler, Place]] = []

    def run(self, root: Node) -> None:
        """Walk a tree from its root."""
        self.enter(root, Scope())
        for _ in range(_MOST_NODES):
            if not self._stack or len(self.definitions) >= MOST_DEFINITIONS:
                break
            handler, place = self._stack.pop()
            handler(self, place)
        self.is_cut |= bool(self._stack) or (self.left_out > 0 and root.has_error)

    def enter(self, node: Node, scope: Scope, comment: str = "") -> None:
        """Put the nodes in a node on the stack, in the same way."""
        nodes = children(node)
        self.is_cut |= len(nodes) < node.child_count
        self.push(nodes, scope, comment)

    def push(self, nodes: Iterable[Node], scope: Scope, comment: str = "") -> None:
        """Put nodes on the stack so that the first of them is walked next, each with the comment right above it."""
        handlers, remarks = self.grammar.handlers, self.grammar.comments
        found, run = [], _Run(comment)
        for node in nodes:
            kind = node.type
            if kind in remarks:
                run.add(node)
            elif kind in handlers:
                found.append((handlers[kind], Place(node, scope, run.above(self, node))))
                run = _Run()
            elif node.type in self.grammar.attributes:
                run.extend(node)
            elif node.is_named:
                run = _Run("" if found else comment)
        self._stack.extend(reversed(found))

    def text(self, node: Node | None) -> str:
        """Give a node as written, on one line; empty for none."""
        return "" if node is None else " ".join(self.written(node).split())

    def written(self, node: Node) -> str:
        """Give a node as written."""
        return self.data[node.start_byte : node.end_byte].decode(errors="replace")

    def define(  # noqa: PLR0913 - a definition has that many sides
        self, kind: str, name: str, at: Place, *, whole: Node | None = None, body: Sequence[Node] = (), word: str = ""
    ) -> None:
        """Note a definition and its keyword, and walk what it holds.

        Args:
            kind: what its language calls it.
            name: its name.
            at: where it stands.
            whole: all of it, when that is more than the node.
            body: nodes in which it may define more.
            word: its keyword, when that is not its name.
        """
        name, scope = name[:_LONGEST_NAME], at.scope
        if not name:
            self.push(body, scope)
            return
        qualname = f"{scope.qualname}{self.grammar.separator}{name}" if scope.qualname else name
        line, end = _lines(whole or at.node)
        said = comments.documentation(at.comment, marked=self.grammar.marks_documentation) if at.comment else None
        self.definitions.append(Definition(kind, name, qualname, line, end, scope.depth, said))
        if kind in KEYWORDS:
            self.keywords.append(Keyword(KEYWORDS[kind], word or name, line, scope.qualname))
        if body:
            self.push(body, Scope(qualname, kind, scope.depth + 1))

    def take(self, module: str, node: Node, names: Iterable[str] = (), *, separator: str = "") -> None:
        """Note an import.

        Args:
            module: what is imported, as written.
            node: where.
            names: what is taken from it.
            separator: between both, in the index.
        """
        self.take_at(module, node.start_point.row + 1, names, separator=separator)

    def take_at(self, module: str, line: int, names: Iterable[str] = (), *, separator: str = "", is_system: bool = False) -> None:
        """Note an import in a line."""
        for name in tuple(names) or ("",):
            if module or name:
                self.imports.append(Import(module, name or None, None, line, is_system=is_system))
                self.keywords.append(Keyword("import", f"{module}{separator}{name}" if name else module, line))

    def module(self, docstring: str | None) -> Module:
        """Give the facts that were gathered."""
        environment = [keyword for keyword in self.keywords if keyword.kind == "environment variable"]
        return Module(
            self.source,
            docstring=docstring,
            imports=tuple(sorted(self.imports, key=lambda entry: entry.line)),
            keywords=keywords_of(self.keywords),
            definitions=definitions_of(self.definitions),
            left_out=self.left_out,
            is_cut=self.is_cut,
            is_torn=self.is_torn,
            environment=keywords_of(environment),
        )


def definitions_of(found: Iterable[Definition]) -> tuple[Definition, ...]:
    """Sort definitions by line; those of one line stay as they are, the outer one first."""
    return tuple(sorted(found, key=lambda each: each.line))


def keywords_of(found: Iterable[Keyword]) -> tuple[Keyword, ...]:
    """Sort keywords by line; of a use that comes again in the same scope, keep the first."""
    kept: dict[tuple[str, str, str, int], Keyword] = {}
    for keyword in sorted(found, key=lambda keyword: (keyword.line, keyword.kind, keyword.name)):
        line = 0 if keyword.kind in _WHERE_FIRST else keyword.line
        kept.setdefault((keyword.kind, keyword.name, keyword.scope, line), keyword)
    return tuple(kept.values())


def inside(walk: Walk, at: Place) -> None:
    """Handle a node that only holds others."""
    walk.enter(at.node, at.scope, at.comment)


def children(node: Node) -> Sequence[Node]:
    """Give the nodes in a node; of a list of data that is longer than anybody reads, the first."""
    if node.child_count <= _MOST_CHILDREN:
        return node.children
    cursor = node.walk()
    cursor.goto_first_child()
    found: list[Node] = []
    while cursor.node is not None and len(found) < _MOST_CHILDREN:
        found.append(cursor.node)
        if not cursor.goto_next_sibling():
            break
    return found


def defines(kind: str, *, body: str = "", name: str = "name", member: str = "") -> Handler:
    """Handle a definition whose name is a field.

    Args:
        kind: what it is called.
        body: field that holds more definitions.
        name: field of its name.
        member: what it is called inside a type.
    """

    def handle(walk: Walk, at: Place) -> None:
        within = at.node.child_by_field_name(body) if body else None
        called = member if member and at.scope.kind in TYPES else kind
        walk.define(called, walk.text(at.node.child_by_field_name(name)), at, body=within.children if within is not None else ())

    return handle


TYPES = frozenset({"class", "struct", "union", "record", "enum", "interface", "trait", "implementation", "annotation", "protocol"})
"""Kinds of definition whose functions are methods."""


class _Run:
    """Comments that follow each other without a blank line."""

    def __init__(self, inherited: str = "") -> None:
        self.inherited = inherited
        self.nodes: list[Node] = []
        self.last = -1
        """Row in which it ends."""

    def add(self, node: Node) -> None:
        """Take one more comment, dropping those above a blank line."""
        if self.nodes and self.last + 1 < node.start_point.row:
            self.nodes = []
        self.nodes.append(node)
        self.last = _last_row(node)

    def extend(self, node: Node) -> None:
        """Let an attribute stand between the comments and what they are about."""
        if self.nodes and node.start_point.row == self.last + 1:
            self.last = _last_row(node)

    def above(self, walk: Walk, node: Node) -> str:
        """Give the comments, when they stand right above a node."""
        if not self.nodes or self.last + 1 != node.start_point.row:
            return self.inherited
        return self.text(walk)

    def text(self, walk: Walk) -> str:
        """Give the comments as written."""
        return "\n".join(walk.written(node).rstrip() for node in self.nodes)


def _leading_comment(grammar: Grammar, walk: Walk, root: Node) -> str | None:
    """Give the first comment of a file that describes it; one right above a definition describes that."""
    run = _Run()
    nodes = list(_preamble(grammar, root))
    for node, after in zip(nodes, [*nodes[1:], None], strict=False):
        if node.type not in grammar.comments:
            continue
        run.add(node)
        apart = after is None or after.start_point.row > _last_row(node) + 1
        if apart or (after is not None and after.type in grammar.preamble | grammar.statements):
            said = comments.prose(run.text(walk))
            if said is not None:
                return said
            run = _Run()
    return None


def _preamble(grammar: Grammar, root: Node) -> Iterable[Node]:
    """Give the nodes before the first that is code, that one included, and look into the guard of a header."""
    stack = list(reversed(children(root)))
    for _ in range(200):
        if not stack:
            return
        node = stack.pop()
        yield node
        if node.type in ("preproc_ifdef", "document", "stream"):
            stack.extend(reversed([child for child in node.children if child.type not in ("identifier", "#ifndef", "#ifdef")]))
        elif node.type not in grammar.comments and node.type not in grammar.preamble:
            return


def _last_row(node: Node) -> int:
    """Give the row in which a node ends: a line comment may own its line end."""
    end = node.end_point
    return end.row - (end.column == 0 and end.row > node.start_point.row)


def _lines(node: Node) -> tuple[int, int]:
    start = node.start_point.row
    return start + 1, max(_last_row(node), start) + 1
