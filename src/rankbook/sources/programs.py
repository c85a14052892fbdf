"""The definitions of Java, JavaScript, TypeScript, Rust, Go, shell and Starlark sources."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec.structs import replace
from tree_sitter import Node

from rankbook.model import Keyword, Module, Source
from rankbook.sources import outline
from rankbook.sources.outline import TYPES, Grammar, Handler, Place, Walk, defines, inside

_FUNCTIONS = frozenset({"arrow_function", "function_expression", "function", "generator_function"})
_JS_TESTS = frozenset({"it", "test", "describe", "suite", "xit", "xtest", "xdescribe", "fit", "fdescribe"})
_JS_GROUPS = frozenset({"describe", "suite", "xdescribe", "fdescribe"})
_JS_WAYS = frozenset({
    "skip", "only", "todo", "concurrent", "sequential", "failing", "fails", "each", "for", "skipIf", "runIf", "serial", "parallel",
    "describe",
})  # fmt: skip
"""Properties of what defines a test that say how it is run: `test.skip("x", ...)`, `it.each([1, 2])("x %d", ...)`."""
_MOST_WAYS = 8
"""Properties and calls of them that are looked through."""
_JAVA_TESTS = re.compile(r"@(?:\w+\.)*(?:Test|ParameterizedTest|RepeatedTest)\b")
_RUST_TESTS = re.compile(r"#\[(?:\w+::)*test\b")
_GO_TEST = re.compile(r"(?:Test|Benchmark|Fuzz|Example)(?![a-z])")
_MOST_SIBLINGS = 16
"""Attributes above a Rust function that are looked at."""


def _field(node: Node | None, name: str) -> Node | None:
    return None if node is None else node.child_by_field_name(name)


def _children(node: Node | None) -> Iterable[Node]:
    return () if node is None else node.children


def _named(node: Node, *kinds: str) -> Iterable[Node]:
    return (child for child in node.named_children if child.type in kinds)


def _unquoted(walk: Walk, node: Node | None) -> str:
    """Give the text of a string without its quotes."""
    text = walk.text(node)
    quotes = 3 if text[:3] in ('"""', "'''") else 1
    return text[quotes:-quotes] if len(text) >= 2 * quotes and text[0] in "\"'`" and text.endswith(text[:quotes]) else text


# Java


def _java_package(walk: Walk, at: Place) -> None:
    for name in _named(at.node, "scoped_identifier", "identifier"):
        walk.define("package", walk.text(name), at)


def _java_import(walk: Walk, at: Place) -> None:
    words = walk.text(at.node).removeprefix("import").strip(" ;").removeprefix("static ")
    walk.take(words.strip(), at.node)


def _java_method(walk: Walk, at: Place) -> None:
    modifiers = next(iter(_named(at.node, "modifiers")), None)
    kind = "test" if _JAVA_TESTS.search(walk.text(modifiers)) else "method"
    walk.define(kind, walk.text(_field(at.node, "name")), at)


def _java_field(walk: Walk, at: Place) -> None:
    words = set(walk.text(next(iter(_named(at.node, "modifiers")), None)).split())
    if {"static", "final"} <= words:
        for each in at.node.children_by_field_name("declarator"):
            walk.define("constant", walk.text(_field(each, "name")), at)


JAVA = Grammar(
    "java",
    {
        "package_declaration": _java_package,
        "import_declaration": _java_import,
        "class_declaration": defines("class", body="body"),
        "record_declaration": defines("record", body="body"),
        "interface_declaration": defines("interface", body="body"),
        "annotation_type_declaration": defines("annotation", body="body"),
        "enum_declaration": defines("enum", body="body"),
        "enum_body_declarations": inside,
        "method_declaration": _java_method,
        "constructor_declaration": defines("constructor"),
        "field_declaration": _java_field,
        "ERROR": inside,
    },
    comments=frozenset({"line_comment", "block_comment"}),
    marks_documentation=True,
    preamble=frozenset({"package_declaration", "import_declaration"}),
)


# JavaScript and TypeScript


def _js_import(walk: Walk, at: Place) -> None:
    names = [walk.text(_field(each, "name")) for clause in _named(at.node, "import_clause") for each in _specifiers(clause)]
    walk.take(_unquoted(walk, _field(at.node, "source")), at.node, names, separator=".")


def _specifiers(clause: Node) -> Iterable[Node]:
    for group in _named(clause, "named_imports"):
        yield from _named(group, "import_specifier")


def _js_export(walk: Walk, at: Place) -> None:
    source = _field(at.node, "source")
    if source is not None:
        walk.take(_unquoted(walk, source), at.node)
    walk.push(at.node.children, at.scope, at.comment)


def _js_variables(walk: Walk, at: Place) -> None:
    for each in _named(at.node, "variable_declarator"):
        name, value = walk.text(_field(each, "name")), _field(each, "value")
        if value is not None and value.type == "call_expression" and walk.text(_field(value, "function")) == "require":
            arguments = _field(value, "arguments")
            if arguments is not None and arguments.named_children:
                walk.take(_unquoted(walk, arguments.named_children[0]), each)
        elif value is not None and value.type in _FUNCTIONS:
            walk.define("function", name, at)
        elif value is not None and value.type == "class":
            walk.define("class", name, at, body=tuple(_children(_field(value, "body"))))
        elif name.isidentifier():
            walk.define("constant" if walk.text(at.node.children[0]) == "const" else "variable", name, at)


def _js_method(walk: Walk, at: Place) -> None:
    name = walk.text(_field(at.node, "name"))
    walk.define("constructor" if name == "constructor" else "method", name, at)


def _js_field(walk: Walk, at: Place) -> None:
    value = _field(at.node, "value")
    if value is not None and value.type in _FUNCTIONS:
        walk.define("method", walk.text(_field(at.node, "property")), at)


def _js_statement(walk: Walk, at: Place) -> None:
    """Handle a call that stands alone: `it("works", () => {})`; modules of TypeScript stand in a statement too."""
    first = at.node.named_children[0] if at.node.named_child_count else None
    word = _js_word(walk, first)
    if first is not None and word:
        arguments = _field(first, "arguments")
        given = arguments.named_children if arguments is not None else []
        bodies = [_field(each, "body") for each in given if each.type in _FUNCTIONS]
        if given and given[0].type in ("string", "template_string"):
            body = bodies[0] if bodies and word in _JS_GROUPS else None
            statements = [each for each in _children(body) if each.type == "expression_statement"]
            walk.define("test", _unquoted(walk, given[0]), at, body=statements)
    elif first is not None and first.type == "internal_module":
        walk.push([first], at.scope, at.comment)


def _js_word(walk: Walk, node: Node | None) -> str:
    """Give the word of a call that defines a test, or a group of them: `describe` of `describe.each([1])("x", () => {})`."""
    if node is None or node.type != "call_expression":
        return ""
    words: list[str] = []
    for _ in range(_MOST_WAYS):
        if node is None:
            break
        if node.type == "call_expression":
            node = _field(node, "function")
        elif node.type == "member_expression":
            words.append(walk.text(_field(node, "property")))
            node = _field(node, "object")
        else:
            break
    base = walk.text(node) if node is not None and node.type == "identifier" else ""
    if base not in _JS_TESTS or not _JS_WAYS.issuperset(words):
        return ""
    return "describe" if "describe" in words else base


JAVASCRIPT = Grammar(
    "javascript",
    {
        "import_statement": _js_import,
        "export_statement": _js_export,
        "lexical_declaration": _js_variables,
        "variable_declaration": _js_variables,
        "function_declaration": defines("function"),
        "generator_function_declaration": defines("function"),
        "class_declaration": defines("class", body="body"),
        "method_definition": _js_method,
        "field_definition": _js_field,
        "expression_statement": _js_statement,
        "ERROR": inside,
    },
    marks_documentation=True,
    preamble=frozenset({"import_statement"}),
)
TYPESCRIPT = replace(
    JAVASCRIPT,
    name="typescript",
    handlers={
        **JAVASCRIPT.handlers,
        "interface_declaration": defines("interface", body="body"),
        "type_alias_declaration": defines("type"),
        "enum_declaration": defines("enum"),
        "abstract_class_declaration": defines("class", body="body"),
        "internal_module": defines("namespace", body="body"),
        "module": defines("module", body="body"),
        "ambient_declaration": inside,
        "method_signature": defines("method"),
        "abstract_method_signature": defines("method"),
        "function_signature": defines("function"),
        "public_field_definition": _js_field,
    },
)
_TSX = replace(TYPESCRIPT, name="tsx")


def read_typescript(_data: bytes, source: Source, text: str) -> Module:
    """Read a TypeScript file; one with markup in it has a grammar of its own."""
    return outline.read(_TSX if source.name.endswith(".tsx") else TYPESCRIPT, source, text)


# Rust


def _rust_use(walk: Walk, at: Place) -> None:
    used = _field(at.node, "argument")
    group = _field(used, "list")
    if used is not None and used.type == "scoped_use_list" and group is not None:
        walk.take(walk.text(_field(used, "path")), at.node, [walk.text(each) for each in group.named_children], separator="::")
    else:
        walk.take(walk.text(used), at.node)


def _rust_crate(walk: Walk, at: Place) -> None:
    walk.take(walk.text(_field(at.node, "name")), at.node)


def _rust_function(walk: Walk, at: Place) -> None:
    kind = "method" if at.scope.kind in TYPES else "function"
    above = at.node.prev_sibling
    for _ in range(_MOST_SIBLINGS):
        if above is None or above.type not in ("attribute_item", "line_comment"):
            break
        if _RUST_TESTS.match(walk.text(above)):
            kind = "test"
        above = above.prev_sibling
    walk.define(kind, walk.text(_field(at.node, "name")), at)


def _rust_implementation(walk: Walk, at: Place) -> None:
    trait = walk.text(_field(at.node, "trait"))
    name = walk.text(_field(at.node, "type"))
    whole = f"<{name} as {trait}>" if trait else name
    walk.define("implementation", whole, at, body=tuple(_children(_field(at.node, "body"))))


RUST = Grammar(
    "rust",
    {
        "use_declaration": _rust_use,
        "extern_crate_declaration": _rust_crate,
        "mod_item": defines("module", body="body"),
        "struct_item": defines("struct"),
        "enum_item": defines("enum"),
        "union_item": defines("union"),
        "trait_item": defines("trait", body="body"),
        "impl_item": _rust_implementation,
        "function_item": _rust_function,
        "function_signature_item": _rust_function,
        "const_item": defines("constant"),
        "static_item": defines("constant"),
        "type_item": defines("type"),
        "macro_definition": defines("macro"),
        "foreign_mod_item": inside,
        "declaration_list": inside,
        "ERROR": inside,
    },
    separator="::",
    comments=frozenset({"line_comment", "block_comment"}),
    marks_documentation=True,
    preamble=frozenset({"inner_attribute_item", "use_declaration"}),
    attributes=frozenset({"attribute_item"}),
)


# Go


def _go_package(walk: Walk, at: Place) -> None:
    for name in _named(at.node, "package_identifier"):
        walk.define("package", walk.text(name), at)


def _go_import(walk: Walk, at: Place) -> None:
    walk.take(_unquoted(walk, _field(at.node, "path")), at.node)


def _go_function(walk: Walk, at: Place) -> None:
    name = walk.text(_field(at.node, "name"))
    tested = walk.source.name.endswith("_test.go") and _GO_TEST.match(name)
    walk.define("test" if tested else "function", name, at)


def _go_method(walk: Walk, at: Place) -> None:
    receiver = re.search(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\])?\s*\)$", walk.text(_field(at.node, "receiver")))
    held = replace(at, scope=replace(at.scope, qualname=receiver[1])) if receiver else at
    walk.define("method", walk.text(_field(at.node, "name")), held)


def _go_type(walk: Walk, at: Place) -> None:
    kinds = {"struct_type": "struct", "interface_type": "interface"}
    shape = _field(at.node, "type")
    walk.define(kinds.get(shape.type if shape else "", "type"), walk.text(_field(at.node, "name")), at)


def _go_values(kind: str) -> Handler:
    def handle(walk: Walk, at: Place) -> None:
        for name in at.node.children_by_field_name("name"):
            if name.is_named:
                walk.define(kind, walk.text(name), at)

    return handle


GO = Grammar(
    "go",
    {
        "package_clause": _go_package,
        "import_spec": _go_import,
        "function_declaration": _go_function,
        "method_declaration": _go_method,
        "type_spec": _go_type,
        "type_alias": defines("type"),
        "const_spec": _go_values("constant"),
        "var_spec": _go_values("variable"),
        **dict.fromkeys(
            (
                "import_declaration",
                "import_spec_list",
                "type_declaration",
                "const_declaration",
                "var_declaration",
                "var_spec_list",
                "ERROR",
            ),
            inside,
        ),
    },
)


# Shell


def _shell_variable(walk: Walk, at: Place) -> None:
    name = walk.text(_field(at.node, "name"))
    if at.scope.kind != "function" and name not in walk.seen:
        walk.seen.add(name)
        walk.define("variable", name, at)


def _shell_declaration(walk: Walk, at: Place) -> None:
    """Handle `export A=1`, `readonly B=2` and `local c`."""
    exported = walk.text(at.node.children[0]) == "export"
    for each in _named(at.node, "variable_assignment", "variable_name"):
        name = walk.text(_field(each, "name") or each)
        if exported:
            walk.define("environment variable", name, at)
        elif each.type == "variable_assignment":
            _shell_variable(walk, replace(at, node=each))


def _shell_command(walk: Walk, at: Place) -> None:
    if walk.text(_field(at.node, "name")) in ("source", "."):
        argument = _field(at.node, "argument")
        if argument is not None:
            walk.take(_unquoted(walk, argument), at.node)
    for each in _named(at.node, "variable_assignment"):
        walk.keywords.append(Keyword("environment variable", walk.text(_field(each, "name")), each.start_point.row + 1, at.scope.qualname))


BASH = Grammar(
    "bash",
    {
        "function_definition": defines("function", body="body"),
        "variable_assignment": _shell_variable,
        "declaration_command": _shell_declaration,
        "command": _shell_command,
        **dict.fromkeys(
            (
                "compound_statement", "if_statement", "elif_clause", "else_clause", "for_statement", "c_style_for_statement", "do_group",
                "while_statement", "case_statement", "case_item", "list", "pipeline", "subshell", "redirected_statement", "negated_command",
                "ERROR",
            ),
            inside,
        ),
    },
    statements=frozenset({"command"}),
)  # fmt: skip


# Starlark, the Python of build files


def _rule_call(walk: Walk, at: Place) -> None:
    """Handle `cc_library(name = "x")` and `load("//a:b.bzl", "c")`."""
    call = at.node.named_children[0] if at.node.named_child_count else None
    if call is None or call.type != "call":
        _assignment(walk, at, call)
        return
    arguments = _field(call, "arguments")
    given = arguments.named_children if arguments is not None else []
    if walk.text(_field(call, "function")) == "load" and given:
        names = [_unquoted(walk, each if each.type == "string" else _field(each, "value")) for each in given[1:]]
        walk.take(_unquoted(walk, given[0]), at.node, names, separator=" ")
        return
    name = next((each for each in given if each.type == "keyword_argument" and walk.text(_field(each, "name")) == "name"), None)
    value = _field(name, "value")
    if value is not None and value.type == "string":
        walk.define("target", _unquoted(walk, value), at)


def _assignment(walk: Walk, at: Place, node: Node | None) -> None:
    left = _field(node, "left")
    if node is not None and node.type == "assignment" and left is not None and left.type == "identifier":
        walk.define("constant", walk.text(left), at)


STARLARK = Grammar(
    "python",
    {
        "function_definition": defines("function"),
        "expression_statement": _rule_call,
        "ERROR": inside,
    },
)
