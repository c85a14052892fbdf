"""The facts of a Python file, in one walk over its syntax tree."""

from __future__ import annotations

import ast
import gc
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from rankbook.embedding import source_text
from rankbook.model import Class, Constant, Expression, Function, Import, Keyword, Module, Source
from rankbook.sources.text import Text, dotted, leading_name, string

_OWNERS = re.compile(r"^# Owner\(s\):[ \t]*\[(.*)\]", re.MULTILINE)
_QUOTED = re.compile(r""""([^"]*)"|'([^']*)'""")
_ENDS = frozenset({
    "sys.exit", "exit", "quit", "os._exit", "pytest.skip", "pytest.exit", "pytest.importorskip", "SystemExit", "SkipTest",
    "unittest.SkipTest", "unittest.case.SkipTest", "pytest.skip.Exception", "skip",
})  # fmt: skip
"""What ends a module early, called or raised."""
_SKIPS = frozenset({"self.skipTest", "cls.skipTest", "pytest.skip", "pytest.importorskip", "SkipTest", "unittest.SkipTest"})
"""What skips a test, called or raised in a function."""
_ENVIRONMENT_CALLS = frozenset({"get", "setdefault", "pop", "getenv", "putenv", "unsetenv", "setenv", "delenv", "update", "dict"})
_ENVIRONMENT = frozenset({
    "os.environ.get", "os.environ.setdefault", "os.environ.pop", "os.getenv", "os.putenv", "os.unsetenv", "os.environ.update", "os.environ",
})  # fmt: skip
"""What reads or sets an environment variable, by its full dotted name."""

_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class _Guard:
    """A condition around a statement."""

    outer: _Guard | None
    test: ast.expr | None
    """None for an `except` clause."""
    negated: bool = False
    line: int = 0
    failing: tuple[str, ...] = ()
    """Modules whose failing import leads here."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where a statement stands."""

    kind: str = "module"
    """`module`, `class` or `function`."""
    qualname: str = ""
    guard: _Guard | None = None
    methods: list[_FunctionDraft] | None = None
    """Of the class whose body this is."""
    attributes: list[Constant] | None = None
    skips: list[Expression] | None = None
    """Of the function whose body this is."""
    in_class: bool = False
    """Whether some class is around it."""
    in_main: bool = False
    """Whether it runs only when the file is a script."""


@dataclass(slots=True)
class _ClassDraft:
    facts: Class
    methods: list[_FunctionDraft]
    attributes: list[Constant]


@dataclass(slots=True)
class _FunctionDraft:
    facts: Function
    skips: list[Expression] = field(default_factory=list)

    def done(self) -> Function:
        return replace(self.facts, skips=tuple(self.skips)) if self.skips else self.facts


def read(data: bytes, source: Source, _text: str) -> Module:
    """Read the facts of a Python file; one that does not parse gives its error and line."""
    try:
        text = source_text(data)
        with _quiet():
            tree = ast.parse(data, filename=source.path)
    except SyntaxError as error:
        return Module(source, error=error.msg or "it does not parse", error_line=error.lineno)
    except (ValueError, LookupError) as error:
        return Module(source, error=str(error))
    return _Reader(Text(text)).read(tree, source, text)


@contextmanager
def _quiet() -> Iterator[None]:
    """Parse without warnings, and without collecting garbage: a syntax tree has none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if enabled:
            gc.enable()


class _Reader:
    """Walks one file; an explicit stack, so that no depth of nesting matters."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.classes: list[_ClassDraft] = []
        self.functions: list[_FunctionDraft] = []
        self.imports: list[Import] = []
        self.aliases: dict[str, str] = {}
        self.constants: list[Constant] = []
        self.keywords: list[Keyword] = []
        self.used: list[Keyword] = []
        self.variables: list[tuple[str, Keyword]] = []
        self.guards: list[Expression] = []
        self.marks: list[Expression] = []
        self.calls: list[Expression] = []
        self.deleted: list[str] = []
        self.is_script = False
        self.stack: list[tuple[ast.AST, _Scope]] = []

    def read(self, tree: ast.Module, source: Source, text: str) -> Module:
        self.push(tree.body, _Scope())
        self.walk()
        environment = self.environment()
        return Module(
            source,
            docstring=ast.get_docstring(tree),
            classes=tuple(_class(draft) for draft in sorted(self.classes, key=lambda draft: draft.facts.line)),
            functions=tuple(draft.done() for draft in sorted(self.functions, key=lambda draft: draft.facts.line)),
            imports=tuple(sorted(self.imports, key=lambda entry: entry.line)),
            constants=tuple(sorted(self.constants, key=lambda entry: entry.line)),
            keywords=_first_uses([*self.keywords, *environment, *self.called()]),
            guards=tuple(sorted(self.guards, key=lambda entry: entry.line)),
            marks=tuple(self.marks),
            calls=tuple(sorted(self.calls, key=lambda entry: entry.line)),
            deleted=tuple(self.deleted),
            owners=_owners(text),
            environment=_first_uses(environment),
            is_script=self.is_script,
        )

    def walk(self) -> None:
        stack, handlers = self.stack, _HANDLERS
        while stack:
            node, scope = stack.pop()
            handler = handlers.get(type(node))
            if handler is None:
                self.children(node, scope)
            else:
                handler(self, node, scope)

    def push(self, nodes: Sequence[ast.AST | None], scope: _Scope) -> None:
        """Put nodes on the stack so that the first of them is walked next."""
        self.stack.extend((node, scope) for node in reversed(nodes) if node is not None)

    def children(self, node: ast.AST, scope: _Scope) -> None:
        stack = self.stack
        for name in _inner_fields(type(node)):
            value = getattr(node, name, None)
            if value.__class__ is list:
                stack.extend((entry, scope) for entry in value if isinstance(entry, ast.AST))
            elif isinstance(value, ast.AST):
                stack.append((value, scope))

    # Definitions

    def class_(self, node: ast.ClassDef, scope: _Scope) -> None:
        qualname = _join(scope.qualname, node.name)
        facts = Class(
            name=node.name,
            qualname=qualname,
            line=node.lineno,
            end_line=node.end_lineno or node.lineno,
            docstring=ast.get_docstring(node),
            bases=tuple(self.text.expression(base) for base in node.bases),
            decorators=self.decorators(node, scope),
            guard=self.guard_of(scope),
        )
        draft = _ClassDraft(facts, [], [])
        self.classes.append(draft)
        self.keyword("class", node.name, node, scope)
        for base in facts.bases:
            self.keywords.append(Keyword("base class", base.name or base.text, base.line, qualname))
        self.push([*node.bases, *node.keywords, *_within(node.decorator_list)], scope)
        inner = _Scope("class", qualname, methods=draft.methods, attributes=draft.attributes, in_class=True, in_main=scope.in_main)
        self.push(node.body, inner)

    def function(self, node: _FunctionNode, scope: _Scope) -> None:
        draft = _FunctionDraft(self.function_facts(node, scope))
        if scope.methods is not None:
            scope.methods.append(draft)
        elif not scope.in_class:
            self.functions.append(draft)
        self.keyword(self.function_kind(draft.facts, scope), node.name, node, scope)
        self.push([*_within(node.decorator_list), node.args, node.returns], scope)
        inner = _Scope("function", draft.facts.qualname, skips=draft.skips, in_class=scope.in_class, in_main=scope.in_main)
        self.push(node.body, inner)

    def function_facts(self, node: _FunctionNode, scope: _Scope) -> Function:
        return Function(
            name=node.name,
            qualname=_join(scope.qualname, node.name),
            line=node.lineno,
            end_line=node.end_lineno or node.lineno,
            docstring=ast.get_docstring(node),
            decorators=self.decorators(node, scope),
            parameters=_parameters(node.args),
            is_async=isinstance(node, ast.AsyncFunctionDef),
            returns=self.returns(node),
            guard=self.guard_of(scope),
        )

    def function_kind(self, facts: Function, scope: _Scope) -> str:
        if any(self.resolve(decorator.name) in ("pytest.fixture", "pytest_asyncio.fixture") for decorator in facts.decorators):
            return "fixture"
        return "method" if scope.kind == "class" else "function"

    def decorators(self, node: ast.ClassDef | _FunctionNode, scope: _Scope) -> tuple[Expression, ...]:
        found = tuple(self.text.expression(decorator) for decorator in node.decorator_list)
        qualname = _join(scope.qualname, node.name)
        for decorator in found:
            if decorator.name:
                self.keywords.append(Keyword("decorator", decorator.name, decorator.line, qualname))
            self.mark(decorator, qualname)
        return found

    def mark(self, expression: Expression, scope: str) -> None:
        name = self.resolve(expression.name)
        if name.startswith("pytest.mark."):
            self.keywords.append(Keyword("mark", name, expression.line, scope))

    def returns(self, node: _FunctionNode) -> str | None:
        body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
        if len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None:
            return self.text.of(body[0].value)
        return None

    # Imports and assignments

    def import_(self, node: ast.Import, scope: _Scope) -> None:
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            self.bind(Import(alias.name, None, alias.asname, alias.lineno), alias.name if alias.asname else bound, alias.name, scope)

    def import_from(self, node: ast.ImportFrom, scope: _Scope) -> None:
        origin = "." * node.level + (node.module or "")
        for alias in node.names:
            name = origin + alias.name if origin.endswith(".") else f"{origin}.{alias.name}"
            self.bind(Import(node.module or "", alias.name, alias.asname, alias.lineno, node.level), name, name, scope)

    def bind(self, entry: Import, means: str, shown: str, scope: _Scope) -> None:
        self.imports.append(entry)
        self.keywords.append(Keyword("import", shown, entry.line, scope.qualname))
        if scope.kind == "module":
            self.aliases[entry.bound] = means
        else:
            self.aliases.setdefault(entry.bound, means)

    def assign(self, node: ast.Assign, scope: _Scope) -> None:
        for target in node.targets:
            self.assigned(target, node.value, scope)
        if leading_name(node.value) == "pytest.importorskip":
            self.ends(node.value, "pytest.importorskip", scope)
        self.children(node, scope)

    def annotated(self, node: ast.AnnAssign, scope: _Scope) -> None:
        self.assigned(node.target, node.value, scope)
        self.children(node, scope)

    def assigned(self, target: ast.expr, value: ast.expr | None, scope: _Scope) -> None:
        if scope.kind == "function":
            return
        for name, part in _assignments(target, value):
            constant = Constant(name.id, "" if part is None else self.text.of(part), name.lineno)
            (self.constants if scope.attributes is None else scope.attributes).append(constant)
            self.keyword("constant", name.id, name, scope)
            if name.id == "pytestmark" and value is not None:
                self.pytestmark(value, scope)

    def pytestmark(self, value: ast.expr, scope: _Scope) -> None:
        values = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]
        for entry in values:
            expression = self.text.expression(entry)
            self.mark(expression, scope.qualname)
            if scope.kind == "module":
                self.marks.append(expression)

    def delete(self, node: ast.Delete, scope: _Scope) -> None:
        if scope.kind == "module":
            self.deleted.extend(name.id for target in node.targets for name in _names(target))
        self.children(node, scope)

    # Conditions

    def if_(self, node: ast.If, scope: _Scope) -> None:
        if _is_main(node.test) and scope.kind == "module":
            self.is_script = True
            self.push(node.body, replace(scope, in_main=True))
            self.push(node.orelse, scope)
            return
        self.push([node.test], scope)
        self.push(node.body, replace(scope, guard=_Guard(scope.guard, node.test, line=node.lineno)))
        self.push(node.orelse, replace(scope, guard=_Guard(scope.guard, node.test, negated=True, line=node.lineno)))

    def try_(self, node: ast.Try | ast.TryStar, scope: _Scope) -> None:
        self.push([*node.body, *node.orelse, *node.finalbody], scope)
        failing = tuple(_imported_by(node.body))
        for handler in node.handlers:
            caught = {dotted(part) for part in _parts(handler.type)}
            of_import = bool(failing) and bool(caught & {"ImportError", "ModuleNotFoundError", "Exception"})
            guard = _Guard(scope.guard, None, line=handler.lineno, failing=failing) if of_import else scope.guard
            self.push(handler.body, replace(scope, guard=guard))
            self.push([handler.type], scope)

    def raise_(self, node: ast.Raise, scope: _Scope) -> None:
        if node.exc is not None:
            self.ends(node.exc, leading_name(node.exc), scope)
        self.children(node, scope)

    def expression_statement(self, node: ast.Expr, scope: _Scope) -> None:
        if isinstance(node.value, ast.Call):
            name = dotted(node.value.func)
            self.ends(node.value, name, scope)
            if scope.kind == "module" and not scope.in_main:
                self.calls.append(self.text.expression(node.value))
        self.children(node, scope)

    def ends(self, node: ast.expr, name: str, scope: _Scope) -> None:
        """Note a statement that ends the module or skips the test, under the condition that leads to it."""
        if scope.kind == "module" and name in _ENDS and not scope.in_main:
            self.guards.append(self.condition(node, name, scope))
        elif scope.skips is not None and name in _SKIPS:
            scope.skips.append(self.condition(node, name, scope))

    def condition(self, node: ast.expr, name: str, scope: _Scope) -> Expression:
        if scope.guard is None or name == "pytest.importorskip":
            return self.text.expression(node)
        guard = scope.guard
        if guard.failing:
            return Expression("except ImportError", "ImportError", guard.line, guard.failing)
        return Expression(self.rendered(guard), _guard_name(guard), guard.line)

    def guard_of(self, scope: _Scope) -> str | None:
        return None if scope.guard is None or scope.kind == "function" else self.rendered(scope.guard)

    def rendered(self, guard: _Guard) -> str:
        chain: list[_Guard] = []
        link: _Guard | None = guard
        while link is not None and len(chain) < 8:
            chain.append(link)
            link = link.outer
        parts = [self.part(entry, alone=len(chain) == 1) for entry in reversed(chain)]
        return " and ".join(parts)

    def part(self, guard: _Guard, *, alone: bool) -> str:
        if guard.test is None:
            return f"not_importable({', '.join(map(repr, guard.failing))})"
        text = self.text.of(guard.test)
        simple = isinstance(guard.test, (ast.Name, ast.Attribute, ast.Call, ast.Constant))
        if guard.negated:
            return f"not {text}" if simple else f"not ({text})"
        return text if alone or simple or isinstance(guard.test, (ast.Compare, ast.UnaryOp)) else f"({text})"

    # Uses

    def call(self, node: ast.Call, scope: _Scope) -> None:
        name = dotted(node.func)
        if name:
            self.used.append(Keyword("call", name, node.lineno, scope.qualname))
            if name.rpartition(".")[2] in _ENVIRONMENT_CALLS:
                self.environment_call(name, node, scope)
        self.children(node, scope)

    def environment_call(self, name: str, node: ast.Call, scope: _Scope) -> None:
        keys: list[str | None] = [string(node.args[0])] if node.args else []
        if name.endswith((".update", ".dict")):
            name = name if name.endswith(".update") else dotted(node.args[0]) if node.args else ""
            keys = [keyword.arg for keyword in node.keywords]
            keys += [string(key) for argument in node.args if isinstance(argument, ast.Dict) for key in argument.keys]
        self.variable(name, keys, node, scope)

    def subscript(self, node: ast.Subscript, scope: _Scope) -> None:
        key = string(node.slice)
        if key is not None:
            self.variable(dotted(node.value), [key], node, scope)
        self.children(node, scope)

    def compare(self, node: ast.Compare, scope: _Scope) -> None:
        key = string(node.left)
        if key is not None and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            self.variable(dotted(node.comparators[0]), [key], node, scope)
        self.children(node, scope)

    def variable(self, base: str, keys: Iterable[str | None], node: ast.expr, scope: _Scope) -> None:
        if base:
            self.variables += [(base, Keyword("environment variable", key, node.lineno, scope.qualname)) for key in keys if key]

    def environment(self) -> list[Keyword]:
        """Keep the candidates whose base turned out to be the environment."""
        return [
            keyword
            for base, keyword in self.variables
            if self.resolve(base) in _ENVIRONMENT or ("." in base and base.endswith((".setenv", ".delenv")))
        ]

    def called(self) -> list[Keyword]:
        """Keep the calls of what was imported, by full name."""
        imported = [use for use in self.used if use.name.partition(".")[0] in self.aliases]
        calls = (replace(use, name=self.resolve(use.name)) for use in imported)
        return [call for call in calls if not call.name.startswith("pytest.mark.")]

    def resolve(self, name: str) -> str:
        root, dot, rest = name.partition(".")
        return self.aliases.get(root, root) + dot + rest

    def keyword(self, kind: str, name: str, node: ast.stmt | ast.expr, scope: _Scope) -> None:
        self.keywords.append(Keyword(kind, name, node.lineno, scope.qualname))


def _leaf(_reader: _Reader, _node: ast.AST, _scope: _Scope) -> None:
    """Pass over a node that holds no others."""


_HANDLERS: dict[type[ast.AST], Callable[[_Reader, Any, _Scope], None]] = {
    ast.ClassDef: _Reader.class_,
    ast.FunctionDef: _Reader.function,
    ast.AsyncFunctionDef: _Reader.function,
    ast.Import: _Reader.import_,
    ast.ImportFrom: _Reader.import_from,
    ast.Assign: _Reader.assign,
    ast.AnnAssign: _Reader.annotated,
    ast.Delete: _Reader.delete,
    ast.If: _Reader.if_,
    ast.Try: _Reader.try_,
    ast.TryStar: _Reader.try_,
    ast.Raise: _Reader.raise_,
    ast.Expr: _Reader.expression_statement,
    ast.Call: _Reader.call,
    ast.Subscript: _Reader.subscript,
    ast.Compare: _Reader.compare,
    ast.Name: _leaf,
    ast.Constant: _leaf,
}
_PASSED_OVER = frozenset({"ctx", "op", "ops", "kind", "type_comment"})
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}


def _inner_fields(kind: type[ast.AST]) -> tuple[str, ...]:
    names = _FIELDS.get(kind)
    if names is None:
        names = _FIELDS[kind] = tuple(name for name in kind._fields if name not in _PASSED_OVER)
    return names


def _class(draft: _ClassDraft) -> Class:
    methods = sorted((method.done() for method in draft.methods), key=lambda method: method.line)
    attributes = sorted(draft.attributes, key=lambda attribute: attribute.line)
    return replace(draft.facts, methods=tuple(methods), attributes=tuple(attributes))


def _first_uses(keywords: Iterable[Keyword]) -> tuple[Keyword, ...]:
    """Sort by line; of one use that comes again in the same scope, keep the first."""
    kept: dict[tuple[str, str, str, int], Keyword] = {}
    for keyword in sorted(keywords, key=lambda keyword: (keyword.line, keyword.kind, keyword.name)):
        line = keyword.line if keyword.kind in _DEFINITIONS else 0
        kept.setdefault((keyword.kind, keyword.name, keyword.scope, line), keyword)
    return tuple(kept.values())


_DEFINITIONS = frozenset({"class", "function", "method", "fixture"})


def _owners(text: str) -> tuple[str, ...]:
    lists = _OWNERS.findall(text[:4096])
    return tuple(dict.fromkeys(double or single for inner in lists for double, single in _QUOTED.findall(inner)))


def _join(outer: str, name: str) -> str:
    return f"{outer}.{name}" if outer else name


def _parameters(arguments: ast.arguments) -> tuple[str, ...]:
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    if arguments.vararg:
        names.append(f"*{arguments.vararg.arg}")
    names += [argument.arg for argument in arguments.kwonlyargs]
    if arguments.kwarg:
        names.append(f"**{arguments.kwarg.arg}")
    return tuple(names)


def _assignments(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.Name, ast.expr | None]]:
    """Give each name with what it is set to, where the parts of a tuple stand side by side."""
    sides = (ast.Tuple, ast.List)
    if isinstance(target, sides) and isinstance(value, sides) and len(target.elts) == len(value.elts):
        for inner, part in zip(target.elts, value.elts, strict=True):
            yield from _assignments(inner, part)
    else:
        yield from ((name, value) for name in _names(target))


def _within(decorators: Iterable[ast.expr]) -> Iterator[ast.AST]:
    """Give what is used in the arguments of decorators; that they are called is said by `@`."""
    for decorator in decorators:
        if isinstance(decorator, ast.Call):
            yield from (*decorator.args, *decorator.keywords)
        else:
            yield decorator


def _names(target: ast.expr) -> Iterator[ast.Name]:
    if isinstance(target, ast.Name):
        yield target
    elif isinstance(target, (ast.Tuple, ast.List)):
        yield from (entry for entry in target.elts if isinstance(entry, ast.Name))


def _parts(node: ast.expr | None) -> Iterable[ast.expr]:
    if node is None:
        return ()
    return node.elts if isinstance(node, ast.Tuple) else (node,)


def _imported_by(body: Iterable[ast.stmt]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            yield "." * statement.level + statement.module


def _is_main(test: ast.expr) -> bool:
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return False
    sides = (test.left, test.comparators[0])
    return any(dotted(side) == "__name__" for side in sides) and any(string(side) == "__main__" for side in sides)


def _guard_name(guard: _Guard) -> str:
    test = guard.test
    while isinstance(test, ast.UnaryOp):
        test = test.operand
    return leading_name(test) if test is not None else ""
