"""The definitions of C, C++, CUDA, Metal and Objective-C sources."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace
from tree_sitter import Node

from rankbook.sources import c_tests, grammars, torn
from rankbook.sources.outline import TYPES, Grammar, Handler, Place, Walk, inside

_EXPORT = re.compile(rb"_(?:API|EXPORT|INLINE|DEVICE|HOST|HIDDEN|IMPORT|PUBLIC)(?=[ \t]+[A-Za-z_:~])")
"""End of a macro in front of a declaration: `C10_HOST_DEVICE inline float f()`."""
_HEADS = tuple(
    re.compile(word + rb"[ \t\n]+([A-Z][A-Z0-9_]{2,})(?=[ \t\n]+[A-Za-z_])") for word in (b"class", b"struct", b"union", b"enum")
)
"""Any macro in the head of a type: `class TORCH_API Tensor`."""
_UPPER = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_DIRECTIVES = (b"define ", b"ifdef ", b"ifndef ", b"defined ", b"undef ")
_METAL = re.compile(rb"\b(?:kernel|vertex|fragment)(?=\s+void\b)|\b(?:device|constant|threadgroup|thread)\b(?=[ \t]+[A-Za-z_])")
"""Words of Metal that C++ does not have."""
_MACRO = re.compile(r"[A-Z][A-Z0-9_]{2,}")
_CONSTANT = frozenset({"const", "constexpr", "constinit", "__constant__"})
_QUALIFIERS = frozenset({"type_qualifier", "storage_class_specifier", "__constant__"})
_OF_HEAD = frozenset({"__global__", "launch_bounds", "primitive_type", "type_identifier", *_QUALIFIERS})
"""What may stand in front of the name of a function, each as a node of its own."""
_LAUNCHED = re.compile(rb"\b__global__\b")
_DECLARATORS = frozenset({
    "pointer_declarator", "reference_declarator", "init_declarator", "array_declarator", "attributed_declarator",
    "parenthesized_declarator", "function_declarator",
})  # fmt: skip
_SPACED = re.compile(r"\s*(::|<|>|,)\s*")
_MOST_DECLARATORS = 32
"""Declarators within each other that are looked through."""


def _include(walk: Walk, at: Place) -> None:
    _take(walk, at, at.node.child_by_field_name("path"))


def _directive(walk: Walk, at: Place) -> None:
    """Handle `#import` of Objective-C; other directives name no file."""
    if walk.text(at.node.child_by_field_name("directive")) == "#import":
        _take(walk, at, at.node.child_by_field_name("argument"))


def _take(walk: Walk, at: Place, path: Node | None) -> None:
    written = walk.text(path)
    walk.take_at(written.strip('"<>'), at.node.start_point.row + 1, is_system=written.startswith("<"))


def _macro(walk: Walk, at: Place) -> None:
    name, parent = at.node.child_by_field_name("name"), at.node.parent
    guarded = parent is not None and parent.type == "preproc_ifdef" and at.node.child_by_field_name("value") is None
    if not (guarded and parent is not None and walk.text(parent.child_by_field_name("name")) == walk.text(name)):
        walk.define("macro", walk.text(name), replace(at, scope=replace(at.scope, qualname="")))


def _namespace(walk: Walk, at: Place) -> None:
    body = at.node.child_by_field_name("body")
    name = _SPACED.sub(r"\1", walk.text(at.node.child_by_field_name("name")))
    walk.define("namespace", name, at, body=body.children if body is not None else ())


def _type(kind: str) -> Handler:
    def handle(walk: Walk, at: Place) -> None:
        body = at.node.child_by_field_name("body")
        if body is not None:
            inner = () if kind == "enum" else body.children
            walk.define(kind, walk.text(at.node.child_by_field_name("name")), at, whole=_whole(at.node), body=inner)

    return handle


def _typedef(walk: Walk, at: Place) -> None:
    kind = at.node.child_by_field_name("type")
    named = [walk.text(_innermost(each)) for each in at.node.children_by_field_name("declarator")]
    if kind is not None and kind.type in _TYPES:
        body = kind.child_by_field_name("body")
        own = walk.text(kind.child_by_field_name("name"))
        inner = () if kind.type == "enum_specifier" or body is None else body.children
        if body is not None:
            walk.define(_TYPES[kind.type], own or (named[0] if named else ""), at, body=inner)
            named = [name for name in named if own and name != own]
    for name in named:
        walk.define("type", name, at)


def _alias(walk: Walk, at: Place) -> None:
    walk.define("type", walk.text(at.node.child_by_field_name("name")), at)


def _concept(walk: Walk, at: Place) -> None:
    walk.define("concept", walk.text(at.node.child_by_field_name("name")), at, whole=_whole(at.node))


def _function(walk: Walk, at: Place) -> None:
    kind = at.node.child_by_field_name("type")
    if kind is not None and kind.type in _TYPES and kind.child_by_field_name("body") is not None:
        walk.push([kind], at.scope, at.comment)
    declarator = _function_declarator(at.node.child_by_field_name("declarator"))
    if declarator is None:
        _misread(walk, at, kind)
        return
    name = _callee(walk, declarator)
    if kind is None and name in c_tests.MACROS:
        walk.define("test", c_tests.name_of(name, _arguments(walk, declarator)), at)
    elif name in _STATEMENTS:
        return
    elif kind is None and _MACRO.fullmatch(name):
        called = f"{name}({', '.join(_arguments(walk, declarator))})"
        walk.define("macro call", called, at, word=name)
    else:
        walk.define(_callable(walk, at, name), name, at, whole=_whole(at.node))


def _torn(walk: Walk, at: Place) -> None:
    """Handle the head of a function whose body no grammar finds the end of."""
    after, name = at.node.next_sibling, _callee(walk, at.node)
    if after is not None and after.type == "{" and name not in _STATEMENTS and not _MACRO.fullmatch(name):
        walk.define(_callable(walk, at, name), name, at)


def _misread(walk: Walk, at: Place, kind: Node | None) -> None:
    """Take a class whose head no grammar reads, because a macro stands in it, for what it is."""
    error = next((child for child in at.node.children if child.type == "ERROR"), None)
    body = at.node.child_by_field_name("body")
    if kind is None or kind.type not in _TYPES or error is None or body is None:
        return
    name = re.match(r"\w+", walk.text(error))
    if name is not None:
        walk.define(_TYPES[kind.type], name[0], at, body=body.children)


def _declaration(walk: Walk, at: Place) -> None:
    kind = at.node.child_by_field_name("type")
    if kind is not None and kind.type in _TYPES and kind.child_by_field_name("body") is not None:
        walk.push([kind], at.scope, at.comment)
    if at.node.parent is not None and at.node.parent.type == "ERROR":
        return
    for each in at.node.children_by_field_name("declarator"):
        declarator = _function_declarator(each)
        if declarator is not None:
            name = _callee(walk, declarator)
            if name and not (kind is None and _MACRO.fullmatch(name)):
                walk.define(_callable(walk, at, name), name, at, whole=_whole(at.node))
        elif each.type == "parenthesized_declarator" and _MACRO.fullmatch(walk.text(kind)):
            walk.define("macro call", f"{walk.text(kind)}{walk.text(each)}", at, word=walk.text(kind))
        elif at.node.type == "declaration" and at.scope.kind not in TYPES:
            _value(walk, at, each)


def _value(walk: Walk, at: Place, declarator: Node) -> None:
    """Note a variable that says how long it lives or that it never changes; any other may be a misread statement."""
    words = {walk.text(child) for child in at.node.children if child.type in _QUALIFIERS}
    name = walk.text(_innermost(declarator))
    if words and any(map(str.isalnum, name)):
        walk.define("constant" if words & _CONSTANT else "variable", name, at, whole=_whole(at.node))


def _statement(walk: Walk, at: Place) -> None:
    """Handle a macro call that stands alone: `TEST_CASE("adds") { ... }` is one, with a block behind it."""
    call = at.node.named_children[0] if at.node.named_child_count else None
    if call is None or call.type != "call_expression":
        return
    name = walk.text(call.child_by_field_name("function"))
    given = call.child_by_field_name("arguments")
    arguments = [walk.text(each) for each in given.named_children if each.type != "comment"] if given is not None else []
    if name in c_tests.MACROS:
        walk.define("test", c_tests.name_of(name, arguments), at)
    elif _MACRO.fullmatch(name):
        walk.define("macro call", f"{name}({', '.join(arguments)})", at, word=name)


def _function_declarator(node: Node | None) -> Node | None:
    """Look through pointers and references for the declarator of a function; None when it declares something else."""
    for _ in range(_MOST_DECLARATORS):
        if node is None or node.type == "init_declarator":
            return None
        if node.type == "function_declarator":
            inner = node.child_by_field_name("declarator")
            return None if inner is not None and inner.type == "parenthesized_declarator" else node
        node = _inner(node)
    return None


def _innermost(node: Node) -> Node:
    """Give the name in a declarator."""
    for _ in range(_MOST_DECLARATORS):
        inner = _inner(node)
        if inner is None:
            break
        node = inner
    return node


def _inner(node: Node) -> Node | None:
    if node.type not in _DECLARATORS:
        return None
    named = node.child_by_field_name("declarator")
    return named if named is not None else next((child for child in node.named_children if child.type != "type_qualifier"), None)


def _callee(walk: Walk, declarator: Node) -> str:
    """Give the name of a function, with the class that it is written with."""
    name = walk.text(declarator.child_by_field_name("declarator"))
    return name if name.isidentifier() else _SPACED.sub(r"\1", name).removeprefix("::")


def _arguments(walk: Walk, declarator: Node) -> list[str]:
    given = declarator.child_by_field_name("parameters")
    return [walk.text(each) for each in given.named_children if each.type != "comment"] if given is not None else []


def _callable(walk: Walk, at: Place, name: str) -> str:
    start = at.node.start_byte
    if _is_launched(at.node) or walk.data[max(0, start - 8) : start].rstrip().endswith(b"kernel"):  # the word is blank to the grammar
        return "kernel"
    return "method" if at.scope.kind in TYPES or "::" in name else "function"


def _is_launched(node: Node) -> bool:
    """Tell whether `__global__` stands in the head of a function, also where a macro in it has torn it into several nodes."""
    before = node.prev_sibling
    while before is not None and (before.type in _OF_HEAD or _is_unended(before)):
        if _LAUNCHED.search(before.text or b""):
            return True
        before = before.prev_sibling
    return any(child.type == "__global__" for child in node.children)


def _is_unended(node: Node) -> bool:
    """Tell whether the grammar has made up the end of a statement: what follows belongs to it."""
    while node.children:
        node = node.children[-1]
    return node.is_missing


def _whole(node: Node) -> Node:
    """Give a definition together with its `template <...>`."""
    for _ in range(4):
        if node.parent is None or node.parent.type not in ("template_declaration", "requires_clause"):
            break
        node = node.parent
    return node


_TYPES = {"class_specifier": "class", "struct_specifier": "struct", "union_specifier": "union", "enum_specifier": "enum"}
_STATEMENTS = frozenset({"if", "for", "while", "switch", "catch", "do", "else", "return", "sizeof"})
"""Words that seem to be names of functions where the text around them is not understood."""


def _branch(walk: Walk, at: Place) -> None:
    """Handle an `#if`: a comment above it is about the condition."""
    walk.push(at.node.children, at.scope)


_HANDLERS: Mapping[str, Handler] = {
    "preproc_include": _include,
    "preproc_call": _directive,
    "preproc_def": _macro,
    "preproc_function_def": _macro,
    "namespace_definition": _namespace,
    "template_declaration": inside,
    **{node: _type(kind) for node, kind in _TYPES.items()},
    "type_definition": _typedef,
    "alias_declaration": _alias,
    "concept_definition": _concept,
    "function_definition": _function,
    "function_declarator": _torn,
    "inline_method_definition": _function,
    "declaration": _declaration,
    "field_declaration": _declaration,
    "expression_statement": _statement,
    **dict.fromkeys(("preproc_if", "preproc_ifdef", "preproc_elif", "preproc_elifdef", "preproc_else", "ERROR"), _branch),
    **dict.fromkeys(("linkage_specification", "declaration_list", "labeled_statement"), inside),
}
_PREAMBLE = frozenset({"preproc_call", "preproc_ifdef", "preproc_def"})


def without_exports(data: bytes) -> bytes:
    """Write spaces over the macros of declarations, in which no grammar sees a word of its own.

    Args:
        data: source of C, C++ or a language on top of them.
    """
    spans = [match.span(1) for head in _HEADS for match in head.finditer(data)]
    for match in _EXPORT.finditer(data):
        start = match.start()
        while start and data[start - 1] in _UPPER:
            start -= 1
        if not data.endswith(_DIRECTIVES, 0, start):
            spans.append((start, match.end()))
    return grammars.blanked(data, spans) if spans else data


def _without_metal(data: bytes) -> bytes:
    return without_exports(grammars.blanked(data, (match.span() for match in _METAL.finditer(data))))


CPP = Grammar(
    "cpp",
    _HANDLERS,
    separator="::",
    marks_documentation=True,
    preamble=_PREAMBLE,
    statements=frozenset({"preproc_include"}),
    prepare=without_exports,
    mend=torn.mend,
)
C = replace(CPP, name="c")
CUDA = replace(CPP, name="cuda")
METAL = replace(CPP, prepare=_without_metal)
