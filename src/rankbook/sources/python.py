"""The facts of a Python file: one walk over its statements, then one over what its expressions mention."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from rankbook.bindings import CHANGERS, changed_by, names_in
from rankbook.collecting import GENERATING_HOOK
from rankbook.embedding import UTF8, source_text
from rankbook.garbage import uncollected
from rankbook.model import Constant, Expression, Import, Keyword, Module, Source
from rankbook.sources.drafts import DOTTED, FIXTURES, LINE, SPAWNS, Branch, ClassDraft, FunctionDraft, Skipping
from rankbook.sources.gpu_calls import NOTHING_TAUGHT, GpuCalls, Held, Taught
from rankbook.sources.gpu_calls import WORDS as GPU_WORDS
from rankbook.sources.mentions import CALL, LOCAL_CALL, REFERENCE, SELF_CALL, SUPER_CALL, VARIABLE, Mention, Mentions
from rankbook.sources.overwritten import overwritten
from rankbook.sources.python_nodes import (
    ASKS,
    SKIPS,
    FunctionNode,
    asked_name,
    assignments,
    defines,
    docstring_of,
    hands_on,
    is_main,
    lines_of,
    makes_cases,
    of_signature,
    sets_by_name,
    sets_elsewhere,
    sets_flag,
    targets_of,
)
from rankbook.sources.scopes import Guard, Scope
from rankbook.sources.swallowing import kind_of_skip, swallowed_by_contexts, swallowed_by_handlers
from rankbook.sources.text import Text, dotted, leading_name, shortened, string
from rankbook.sources.twins import choose
from rankbook.syntax import set_inside, syntax_tree
from rankbook.tried import IMPORT_ERRORS, caught, imported, may_raise, tried

_OWNERS = re.compile(r"^# Owner\(s\):[ \t]*\[(.*)\]", re.MULTILINE)
_QUOTED = re.compile(r""""([^"]*)"|'([^']*)'""")
_ENDS = frozenset({
    "sys.exit", "exit", "quit", "os._exit", "pytest.skip", "pytest.exit", "pytest.importorskip", "SystemExit", "SkipTest",
    "unittest.SkipTest", "unittest.case.SkipTest", "pytest.skip.Exception", "skip",
})  # fmt: skip
"""What ends a module early, called or raised."""
_OF_RANKS = re.compile(r"rank|world|nproc")
"""Words of a loop that starts a process for each rank."""
_NAMED = frozenset({ast.Name, ast.Attribute, ast.Call})
"""Nodes by which a function may be handed on: its name, or `partial` of it."""
_LAST_PARTS = frozenset(name.rpartition(".")[2] for name in _ENDS | SKIPS)
_SKIP = "pytest.mark.skip"
_DEFINITIONS = frozenset({"class", "function", "method", "fixture"})
_LONGEST_NAME = 240
"""Characters of a base class that is named by its text."""
_MOST_GUARDS = 8
"""Conditions around a statement that are told, the nearest."""
_LONGEST_FOLLOWED = 150
"""Lines of a function that is followed."""


def read(data: bytes, source: Source, text: str, taught: Taught = NOTHING_TAUGHT) -> Module:
    """Read the facts of a Python file; one that does not parse gives its error and line."""
    with uncollected():
        return _read(data, source, text, taught)


def _read(data: bytes, source: Source, text: str, taught: Taught) -> Module:
    """Read the facts; when this returns, the syntax tree is gone, so that no garbage collection ever walks over it."""
    try:
        text = _source_text(data, source, text)
        tree = syntax_tree(data, source.path)
    except SyntaxError as error:
        return Module(source, error=error.msg or "it does not parse", error_line=error.lineno)
    except (ValueError, LookupError) as error:
        return Module(source, error=str(error))
    return _Reader(text, taught).read(tree, source)


def _source_text(data: bytes, source: Source, embedded: str) -> str:
    """Give the text that Python reads: that of the listing, unless the file may name another encoding."""
    plain = source.embedding is not None and source.embedding.encoding == UTF8
    if plain and not any(b"coding" in line for line in data.split(b"\n", 2)[:2]):
        return embedded.replace("\r\n", "\n").replace("\r", "\n") if "\r" in embedded else embedded
    return source_text(data)


class _Reader:
    """Walks the statements of one file; an explicit stack, so that no depth of nesting matters."""

    def __init__(self, text: str, taught: Taught) -> None:
        self.whole_text = text
        self.taught = taught
        self.may_need_import = "importorskip" in text
        self.may_skip = "skip" in text or "Skip" in text
        self.may_need_gpu = any(word in text for word in GPU_WORDS) or bool(taught.words(text))
        self.may_make_processes = "Process(" in text
        self.may_spawn = self.may_make_processes or any(f"{name}(" in text for name in SPAWNS)
        self.text = Text(text)
        self.classes: list[ClassDraft] = []
        self.functions: list[FunctionDraft] = []
        self.followed: set[str] = set()
        """Names of functions of the module that set names or parametrise tests."""
        self.defined: set[str] = set()
        """Names of all functions and classes."""
        self.named: set[str] = set()
        """Names of all functions and methods."""
        self.imports: list[Import] = []
        self.aliases: dict[str, str] = {}
        self.constants: list[Constant] = []
        self.keywords: list[Mention] = []
        self.guards: list[Expression] = []
        self.marks: list[Expression] = []
        self.skips: list[Expression] = []
        """Conditions under which a mark skips all tests."""
        self.calls: list[Expression] = []
        self.loops: list[Expression] = []
        self.round_end = 0
        """Last line of the loops of the module that have been come to."""
        self.loop_end = 0
        self.deleted: list[str] = []
        self.deleted_if: list[Expression] = []
        self.unsettled: set[str] = set()
        """Names that something binds that is no assignment, or that are changed where they are; attributes begin with a dot."""
        self.meant: dict[str, set[tuple[int, str, str | None]]] = {}
        """What imports anywhere in the file make names stand for, once it is asked."""
        self.is_script = False
        self.expressions: dict[str, list[ast.AST]] = {}
        """By qualified name of the scope that they stand in."""
        self.stack: list[tuple[Iterator[ast.stmt], Scope]] = []

    def read(self, tree: ast.Module, source: Source) -> Module:
        self.push(tree.body, Scope("module", "", self.expressions_of("")))
        self.walk()
        assigned = {constant.name for constant in self.constants}
        for draft in self.classes:
            choose(draft.methods, {f"{draft.qualname}.{each.name}" for each in draft.attributes})
        choose(self.functions, assigned)
        choose(self.classes, assigned)
        self.name_again()
        methods = {method.node.name for draft in self.classes for method in draft.methods}
        drafts = [*self.functions, *(method for draft in self.classes for method in draft.methods)] if self.may_skip else []
        skipping = Skipping(drafts)
        mentions = Mentions(self.aliases, self.defined, methods, self.whole_text)
        mentions.read(self.expressions.items())
        found = mentions.found
        inner = (*found[LOCAL_CALL], *found[SELF_CALL]) if self.may_need_gpu else ()
        gpus = GpuCalls(self.text, tree, self.held(), inner, self.resolve, taught=self.taught) if self.may_need_gpu else None
        self.follow()
        return Module(
            source,
            docstring=docstring_of(tree.body),
            classes=tuple(sorted([draft.done(self, skipping, gpus) for draft in self.classes], key=LINE)),
            functions=tuple(sorted([draft.done(self, skipping, gpus) for draft in self.functions], key=LINE)),
            imports=tuple(sorted(self.imports, key=LINE)),
            constants=tuple(sorted(self.constants, key=LINE)),
            keywords=_first_uses([*self.keywords, *found[VARIABLE], *found[CALL]]),
            guards=tuple(sorted([*self.guards, *self.skips], key=LINE)),
            gpu_calls=gpus.of_import(tree.body) if gpus is not None else (),
            marks=tuple(self.marks),
            calls=tuple(sorted(self.calls, key=LINE)),
            loops=tuple(self.loops),
            references=_first_uses(found[REFERENCE]),
            self_calls=_first_uses([*found[SELF_CALL], *found[SUPER_CALL]]),
            local_calls=_first_uses(found[LOCAL_CALL]),
            overwritten=overwritten(tree),
            deleted=tuple(self.deleted),
            deleted_if=tuple(self.deleted_if),
            unsettled=self.doubted(tree),
            owners=_owners(self.whole_text),
            environment=_first_uses(found[VARIABLE]),
            is_script=self.is_script,
        )

    def held(self) -> Iterator[Held]:
        """Yield the functions of the module and of its classes, but not those inside others."""
        yield from (Held("", draft.node) for draft in self.functions if "." not in draft.qualname)
        yield from (Held(draft.qualname, method.node) for draft in self.classes for method in draft.methods)

    def doubted(self, tree: ast.Module) -> tuple[str, ...]:
        """Name what is set otherwise than its assignments say, of what they set, or what imported modules hold."""
        if ":=" in self.whole_text:
            self.unsettled.update(set_inside(tree, self.whole_text))
        set_to = {constant.name for constant in self.constants}
        attributes = {f".{each.name}" for draft in self.classes for each in (*draft.attributes, *(method.node for method in draft.methods))}
        taken = {entry.bound for entry in self.imports if entry.name is not None}
        roots = {entry.bound for entry in self.imports}
        known = set_to | attributes | taken
        held = (
            name
            for name in self.unsettled
            if name in known or "*" in taken or name.endswith("]") or ("." in name[1:] and name.partition(".")[0] in roots)
        )
        return tuple(sorted(held))

    def is_import(self, name: str, bound: Iterable[object]) -> bool:
        """Tell whether a function binds a name by imports alone, to what it stands for in all of the file."""
        if not all(isinstance(each, (ast.alias, ast.Import)) for each in bound):
            return False
        if not self.meant:
            for entry in self.imports:
                is_whole = entry.name is None and entry.alias is None
                self.meant.setdefault(entry.bound, set()).add((entry.level, entry.bound if is_whole else entry.module, entry.name))
        others = (constant.name for constant in self.constants)
        return len(self.meant.get(name, ())) == 1 and name not in self.defined and name not in others

    def follow(self) -> None:
        """Note which functions of the module are worth following, whatever statements they have."""
        for draft in self.functions if self.followed else ():
            is_test = draft.node.name.startswith("test")
            draft.is_followed = draft.qualname in self.followed and not is_test and lines_of(draft.node) <= _LONGEST_FOLLOWED

    def walk(self) -> None:
        stack, handlers = self.stack, _HANDLERS
        while stack:
            body, scope = stack[-1]
            depth = len(stack)
            for node in body:
                handler = handlers.get(type(node))
                if handler is None:
                    self.other(node, scope)
                else:
                    handler(self, node, scope)
                if len(stack) != depth:  # what stands inside comes first
                    break
            else:
                stack.pop()

    def push(self, body: list[ast.stmt], scope: Scope) -> None:
        """Walk statements next; of several lists, the one that is pushed last comes first."""
        if body:
            self.stack.append((iter(body), scope))

    def expressions_of(self, qualname: str) -> list[ast.AST]:
        return self.expressions.setdefault(qualname, [])

    def other(self, node: ast.stmt, scope: Scope) -> None:
        """Walk a statement that says nothing by itself."""
        for name in reversed(node._fields):
            value = getattr(node, name, None)
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                self.push(value, scope)
            elif isinstance(value, list):
                scope.expressions.extend(value)
            elif isinstance(value, ast.AST):
                scope.expressions.append(value)

    def expressions_in(self, nodes: Iterable[ast.AST | None], scope: Scope) -> None:
        scope.expressions.extend([node for node in nodes if node is not None])

    # Definitions

    def class_(self, node: ast.ClassDef, scope: Scope) -> None:
        qualname = _join(scope.qualname, node.name)
        bases = tuple([self.text.expression(base) for base in node.bases])
        draft = ClassDraft(node, qualname, bases, self.decorators(node, qualname, scope), self.guard_of(scope))
        draft.branch = scope.branch
        self.classes.append(draft)
        self.defined.add(node.name)
        self.keywords.append((node.lineno, "class", node.name, scope.qualname))
        for base in bases:
            self.keywords.append((base.line, "base class", base.name or shortened(base.text, _LONGEST_NAME), qualname))
        scope.expressions.extend(node.bases)
        scope.expressions.extend(node.keywords)
        inner = Scope("class", qualname, self.expressions_of(qualname), draft.methods, draft.attributes, in_class=True)
        inner.in_main = scope.in_main
        self.push(node.body, inner)

    def function(self, node: FunctionNode, scope: Scope) -> None:
        qualname = _join(scope.qualname, node.name)
        draft = FunctionDraft(node, qualname, self.decorators(node, qualname, scope), self.guard_of(scope), outer=scope.function)
        self.named.add(node.name)
        draft.branch = scope.branch
        if scope.methods is not None:
            scope.methods.append(draft)
        else:
            self.defined.add(node.name)
            if not scope.in_class:
                self.functions.append(draft)
            if qualname == GENERATING_HOOK:
                self.followed.add(qualname)
        self.keywords.append((node.lineno, self.function_kind(draft, scope), node.name, scope.qualname))
        scope.expressions += of_signature(node)
        inner = Scope("function", qualname, self.expressions_of(qualname), None, None, draft, scope.in_class, scope.in_main)
        self.push(node.body, inner)

    def function_kind(self, draft: FunctionDraft, scope: Scope) -> str:
        if draft.decorators and any(self.resolve(decorator.name) in FIXTURES for decorator in draft.decorators):
            return "fixture"
        return "method" if scope.kind == "class" else "function"

    def decorators(self, node: ast.ClassDef | FunctionNode, qualname: str, scope: Scope) -> tuple[Expression, ...]:
        if not node.decorator_list:
            return ()
        for decorator in node.decorator_list:
            # That a decorator is called is said by `@`.
            inner = (*decorator.args, *decorator.keywords) if isinstance(decorator, ast.Call) else (decorator,)
            scope.expressions.extend(inner)
        found = tuple([self.text.expression(decorator) for decorator in node.decorator_list])
        for expression in found:
            if expression.name:
                self.keywords.append((expression.line, "decorator", expression.name, qualname))
            self.mark(expression, qualname)
        return found

    def mark(self, expression: Expression, scope: str) -> None:
        name = self.resolve(expression.name)
        if name.startswith("pytest.mark."):
            self.keywords.append((expression.line, "mark", name, scope))

    # Imports and assignments

    def import_(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            self.bind(Import(alias.name, None, alias.asname, alias.lineno), alias.name if alias.asname else bound, alias.name, scope)

    def import_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        module, level = node.module or "", node.level
        stem = "." * level + (f"{module}." if module else "")
        for alias in node.names:
            name = stem + alias.name
            self.bind(Import(module, alias.name, alias.asname, alias.lineno, level), name, name, scope)

    def bind(self, entry: Import, means: str, shown: str, scope: Scope) -> None:
        self.imports.append(entry)
        self.keywords.append((entry.line, "import", shown, scope.qualname))
        if scope.kind == "module" and not scope.is_fallback:
            self.aliases[entry.bound] = means
        else:
            self.aliases.setdefault(entry.bound, means)

    def assign(self, node: ast.Assign, scope: Scope) -> None:
        value = node.value
        scope.expressions.append(value)
        for target in node.targets:
            if type(target) is not ast.Name:
                scope.expressions.append(target)
                self.unsettle(target)
                self.changed(target, "__setitem__", value, scope)
            if scope.kind != "function":
                self.assigned(target, value, scope)
            elif not scope.in_class and sets_elsewhere(target):
                self.followed.add(scope.qualname.partition(".")[0])
        if scope.kind == "function" and makes_cases(value):
            self.followed.add(scope.qualname.partition(".")[0])
        self.spawned(value, scope)
        if isinstance(value, ast.Call):
            last = dotted(value.func).rpartition(".")[2]
            self.handed(last, value, scope)
            if last in CHANGERS:
                self.unsettle(value)
            self.asked(last, value, scope)
        if self.may_need_import and leading_name(value) == "pytest.importorskip":
            self.ends(value, "pytest.importorskip", scope)

    def annotated(self, node: ast.AnnAssign, scope: Scope) -> None:
        if scope.kind != "function":
            self.assigned(node.target, node.value, scope)
        if type(node.target) is not ast.Name:
            self.unsettle(node.target)
        self.expressions_in((node.target, node.annotation, node.value), scope)

    def assigned(self, target: ast.expr, value: ast.expr | None, scope: Scope) -> None:
        for name, part in assignments(target, value):
            constant = Constant(name.id, "" if part is None else self.text.of(part), name.lineno, self.guard_of(scope))
            (self.constants if scope.attributes is None else scope.attributes).append(constant)
            self.keywords.append((name.lineno, "constant", name.id, scope.qualname))
            if name.id == "pytestmark" and value is not None:
                self.pytestmark(value, scope)

    def changed(self, target: ast.expr, method: str, value: ast.expr | None, scope: Scope) -> None:
        """Note as a call what a statement changes in what a name of the module stands for: `x["a"] = 1` updates it by `{"a": 1}`.

        Args:
            target: what it changes.
            method: that Python calls for it.
            value: that is set; None where there is none.
            scope: where it stands.
        """
        name = target.value if isinstance(target, ast.Subscript) else target
        if scope.kind != "module" or scope.in_main or not isinstance(name, ast.Name):
            return
        given: tuple[str, ...] = ()
        if isinstance(target, ast.Subscript) and value is not None and target.lineno > self.round_end:
            given = (f"{{{self.text.of(target.slice)}: {self.text.of(value)}}}",)
        self.calls.append(Expression(self.text.of(target), f"{name.id}.{method}", target.lineno, given, guard=self.guard_of(scope)))

    def unsettle(self, node: ast.expr) -> None:
        """Note what a target that is no name, or a call, changes: an attribute, or what a name stands for."""
        if type(node) is ast.Attribute and type(node.value) is ast.Name and node.value.id == "self":
            self.unsettled.add(f".{node.attr}")
            return
        if isinstance(node, (ast.Tuple, ast.List)):
            for part in node.elts:
                self.unsettle(part)
            return
        changed = node if isinstance(node, ast.Attribute) else None if isinstance(node, ast.Name) else changed_by(node)
        if isinstance(changed, ast.Attribute) and changed.attr == "environ":
            key = node.slice if isinstance(node, ast.Subscript) else next(iter(node.args), None) if isinstance(node, ast.Call) else None
            name = string(key)
            self.unsettled.update(() if name is None else (f"environ[{name!r}]",))
        elif isinstance(changed, ast.Attribute):
            self.unsettled.update((f".{changed.attr}", dotted(changed)))
        elif changed is not None:
            self.unsettled.add(changed.id)

    def augmented(self, node: ast.AugAssign, scope: Scope) -> None:
        if scope.kind != "function" and isinstance(node.target, ast.Name):
            name, value = node.target.id, self.text.of(node.value)
            constant = Constant(name, f"{name} {_SIGNS[type(node.op)]} ({value})", node.lineno, self.guard_of(scope))
            (self.constants if scope.attributes is None else scope.attributes).append(constant)
            if node.lineno <= self.round_end:
                self.changed(node.target, "__iadd__", None, scope)
        if type(node.target) is not ast.Name:
            self.unsettle(node.target)
        self.expressions_in((node.target, node.value), scope)

    def pytestmark(self, value: ast.expr, scope: Scope) -> None:
        values = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]
        written = [self.text.expression(entry) for entry in values]
        for expression in written:
            self.mark(expression, scope.qualname)
        if scope.kind != "module":
            return
        if scope.guard is None and not scope.caught:
            self.marks, self.skips = written, []
            return
        # What is set under a condition may not be: of a skip that condition tells when, of another mark nothing does.
        skips = [(entry, mark.name) for entry, mark in zip(values, written, strict=True) if mark.name == _SKIP]
        self.skips += [condition for skip in skips for condition in self.conditions(*skip, scope)]

    def delete(self, node: ast.Delete, scope: Scope) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                self.changed(target, "__delitem__", None, scope)
            elif isinstance(target, ast.Attribute):
                self.unsettled.add(f".{target.attr}")
        if scope.kind == "class":
            self.unsettled.update(f".{name.id}" for target in node.targets for name in targets_of(target))
        if scope.kind == "module" and not scope.caught and not scope.in_main:  # else what is taken away may be there
            names = [name.id for target in node.targets for name in targets_of(target)]
            if scope.guard is not None:
                self.deleted_if += [Expression(self.rendered(scope.guard), name, node.lineno) for name in names]
            else:
                self.deleted += names
                if "pytestmark" in names:
                    self.marks, self.skips = [], []
        scope.expressions.extend(node.targets)

    # Conditions

    def if_(self, node: ast.If, scope: Scope) -> None:
        if scope.kind == "module" and is_main(node.test):
            self.is_script = True
            main = scope.under(scope.guard)
            main.in_main = True
            self.push(node.orelse, scope)
            self.push(node.body, main)
            return
        scope.expressions.append(node.test)
        if node.orelse:
            negated = Guard(scope.guard, node.test, negated=True, line=node.lineno)
            self.push(node.orelse, scope.under(negated, is_fallback=True, branch=Branch(node, is_first=False)))
        self.push(node.body, scope.under(Guard(scope.guard, node.test, line=node.lineno), branch=Branch(node)))

    def try_(self, node: ast.Try | ast.TryStar, scope: Scope) -> None:
        failing = imported(node.body)
        there = scope
        if failing and scope.kind != "function":
            raising = tuple(self.raising(node.body, frozenset().union(*map(caught, node.handlers))))
            there = scope.under(Guard(scope.guard, None, negated=True, imported=tried(node.body, IMPORT_ERRORS), raising=raising))
        self.push(node.finalbody, scope)
        tried_in = scope
        if node.handlers:
            first = Branch(node, there=None if there is scope else self.guard_of(there))
            tried_in = scope.under(scope.guard, branch=first)
            there = tried_in if there is scope else there.under(there.guard, branch=first)
        self.push_flags(node.orelse, tried_in, there)
        for handler in reversed(node.handlers):
            guard, errors = scope.guard, caught(handler) if failing else frozenset()
            if not errors.isdisjoint(IMPORT_ERRORS):
                raising = tuple(self.raising(node.body, errors))
                missing = tried(node.body, errors)
                guard = Guard(scope.guard, None, line=handler.lineno, failing=failing, imported=missing, raising=raising)
            second = Branch(node if len(node.handlers) == 1 else handler, is_first=False, is_told=guard is not scope.guard)
            inner = scope.under(guard, is_fallback=True, branch=second)
            if guard is scope.guard:
                inner.caught = "Exception" if handler.type is None else self.text.of(handler.type)
            self.push(handler.body, inner)
            self.expressions_in([handler.type], scope)
            if handler.name is not None and scope.kind != "function":
                self.bound_in(scope, handler)
        swallowed = swallowed_by_handlers(node.handlers) if self.may_skip and scope.function is not None else frozenset()
        inside = tried_in.swallowing(swallowed) if swallowed else tried_in
        last = max((number for number, each in enumerate(node.body, 1) if isinstance(each, (ast.Import, ast.ImportFrom))), default=0)
        self.push_flags(node.body[last:], inside, inside if there is tried_in else there)
        self.push(node.body[:last], inside)

    def raising(self, body: list[ast.stmt], errors: frozenset[str], outer: Guard | None = None) -> Iterator[Guard]:
        """Yield under what statements raise such errors; of a loop, or a context, only a run can tell."""
        for node in body:
            if isinstance(node, ast.If):
                yield from self.raising(node.body, errors, Guard(outer, node.test, line=node.lineno))
                yield from self.raising(node.orelse, errors, Guard(outer, node.test, negated=True, line=node.lineno))
            elif may_raise(node, errors):
                guard = Guard(None, None, line=node.lineno, text=f"raised({', '.join(sorted(errors))})")
                yield outer if outer is not None and isinstance(node, ast.Raise) else guard

    def push_flags(self, body: list[ast.stmt], scope: Scope, there: Scope) -> None:
        """Walk statements next of which those that set a flag stand under a condition."""
        for is_flag, group in reversed([(is_flag, list(group)) for is_flag, group in groupby(body, sets_flag)]):
            self.push(group, there if is_flag else scope)

    def with_(self, node: ast.With | ast.AsyncWith, scope: Scope) -> None:
        if scope.kind != "function":
            self.bound_in(scope, *(item.optional_vars for item in node.items))
        swallowed = swallowed_by_contexts(node.items) if self.may_skip and scope.function is not None else frozenset()
        self.other(node, scope.swallowing(swallowed) if swallowed else scope)

    def match_(self, node: ast.Match, scope: Scope) -> None:
        scope.expressions.append(node.subject)
        if scope.kind != "function":
            self.bound_in(scope, *(case.pattern for case in node.cases))
        for case in reversed(node.cases):
            self.push(case.body, scope)
            self.expressions_in((case.pattern, case.guard), scope)

    def for_(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        if scope.kind == "module":
            self.round_end = max(self.round_end, node.end_lineno or 0)
        if scope.kind == "module" and not scope.in_main and node.lineno > self.loop_end and defines(node):
            self.loop_end = node.end_lineno or node.lineno
            self.loops.append(Expression(shortened(self.text.whole(node)), "for", node.lineno))
        if scope.kind != "function":
            self.bound_in(scope, node.target)
        elif self.may_make_processes and scope.function is not None:
            self.rounds(node, scope.function)
        self.other(node, scope)

    def bound_in(self, scope: Scope, *nodes: ast.AST | None) -> None:
        """Note the names of a module or a class that something binds that is no assignment."""
        dot = "." if scope.kind == "class" else ""
        self.unsettled.update(dot + name for name in names_in(*nodes))

    def global_(self, node: ast.Global, scope: Scope) -> None:  # noqa: ARG002 - as all handlers
        """Note names of the module that a function sets."""
        self.unsettled.update(node.names)

    def raise_(self, node: ast.Raise, scope: Scope) -> None:
        if node.exc is not None:
            self.ends(node.exc, leading_name(node.exc), scope)
        self.expressions_in((node.exc, node.cause), scope)

    def expression_statement(self, node: ast.Expr, scope: Scope) -> None:
        value = node.value
        if isinstance(value, ast.Call):
            function = value.func
            last = function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
            if last in _LAST_PARTS:
                self.ends(value, dotted(function), scope)
            if last in CHANGERS:
                self.unsettle(value)
            self.spawned(value, scope)
            self.handed(last, value, scope)
            self.asked(last, value, scope)
            if scope.function is not None and not scope.in_class and (sets_by_name(last, value) or hands_on(value, scope.function.node)):
                self.followed.add(scope.qualname.partition(".")[0])
            if scope.kind == "module" and not scope.in_main:
                call = self.text.expression(value)
                if last in CHANGERS and node.lineno <= self.round_end:
                    call = call._replace(arguments=(), keywords=())  # who knows how often, and with what
                self.calls.append(call if scope.guard is None else call._replace(guard=self.guard_of(scope)))
        scope.expressions.append(value)

    def spawned(self, value: ast.expr, scope: Scope) -> None:
        """Note a call that starts processes."""
        if not self.may_spawn or scope.function is None or not isinstance(value, ast.Call):
            return
        if dotted(value.func).rpartition(".")[2] in SPAWNS:
            self.starts(value, scope.function)

    def starts(self, call: ast.Call, function: FunctionDraft) -> None:
        """Note a call by which a function starts processes, in those around it too: they may give it, or call it."""
        function.spawns.append(call)
        self.inside(function)

    def inside(self, function: FunctionDraft) -> None:
        """Note a function in those around it."""
        for outer in function.outers():
            if all(each is not function for each in outer.inner):
                outer.inner.append(function)

    def handed(self, name: str, call: ast.Call, scope: Scope) -> None:
        """Note a call to which a function may be handed, that it may run in processes which it starts."""
        function = scope.function
        if function is None or name.startswith("assert") or not (self.may_spawn or function.is_test()):
            return
        if not name or any(type(each) in _NAMED for each in (*call.args, *(each.value for each in call.keywords))):
            function.handed.append(call)
            if self.may_spawn and function.outer is not None:
                self.inside(function)

    def rounds(self, node: ast.For | ast.AsyncFor, function: FunctionDraft) -> None:
        """Note a loop that starts a process for each rank: `for rank in range(world_size): Process(target=run, args=(rank,))`."""
        over = node.iter
        count = over.args[0] if isinstance(over, ast.Call) and dotted(over.func) == "range" and len(over.args) == 1 else None
        if count is None or not _OF_RANKS.search(f"{self.text.of(node.target)} {self.text.of(count)}"):
            return
        calls = (each for inner in node.body for each in ast.walk(inner) if type(each) is ast.Call)
        made = next((each for each in calls if getattr(each.func, "attr", getattr(each.func, "id", "")) == "Process"), None)
        if made is not None:
            self.starts(ast.copy_location(ast.Call(made.func, [], [ast.keyword("nprocs", count)]), made), function)

    def asked(self, name: str, call: ast.Call, scope: Scope) -> None:
        """Note a call that may skip the test: of a function of this file, which may yet turn out to skip, or of one whose name says so."""
        is_sure = scope.guard is None and not scope.caught and not scope.swallowed
        if scope.function is not None and is_sure and (self.may_skip or ASKS.search(name)) and not scope.function.passed_by(call):
            scope.function.called.append((name, call))

    def value(self, node: ast.Return, scope: Scope) -> None:
        if node.value is not None:
            scope.expressions.append(node.value)
            if makes_cases(node.value):
                self.followed.add(scope.qualname.partition(".")[0])

    def nothing(self, node: ast.stmt, scope: Scope) -> None:
        """Pass over a statement without expressions."""

    def ends(self, node: ast.expr, name: str, scope: Scope) -> None:
        """Note a statement that ends the module or skips the test, under the condition that leads to it."""
        if scope.kind == "module" and name in _ENDS and not scope.in_main:
            self.guards += self.conditions(node, name, scope)
        elif scope.function is not None and name in SKIPS and kind_of_skip(name) not in scope.swallowed:
            passed = scope.function.passed_by(node)
            found = [self.behind(passed, found, node, name) for found in self.conditions(node, name, scope)]
            has_begun = scope.function.has_begun(node)
            scope.function.skips += [each._replace(is_late=True) for each in found] if has_begun else found

    def conditions(self, node: ast.expr, name: str, scope: Scope) -> list[Expression]:
        """Write under what a statement comes to be run, of which each is enough."""
        found = self.condition(node, name, scope)
        raising = scope.guard.raising if scope.guard is not None and found.name == "ImportError" else ()
        return [found, *(Expression(self.rendered(each), asked_name(each.test), each.line) for each in raising)]

    def condition(self, node: ast.expr, name: str, scope: Scope) -> Expression:
        guard = scope.guard
        raised = f"raised({scope.caught})"
        if name == "pytest.importorskip" or (guard is None and not scope.caught):
            return self.text.expression(node)
        if guard is None:
            return Expression(raised, "raised", node.lineno)
        if guard.failing:
            return Expression("except ImportError", "ImportError", guard.line, guard.failing)
        text = self.rendered(guard)
        said = f"{raised} and ({text})" if scope.caught else text
        return Expression(said, asked_name(guard.test), guard.line, reason=self.reason_of(node))

    def behind(self, passed: Sequence[ast.expr | None], found: Expression, node: ast.expr, name: str) -> Expression:
        """Write under what a test is skipped by a statement behind others that may leave the function."""
        if not passed:
            return found
        before = [self.part(Guard(None, test, negated=True), alone=False) if test is not None else "not returned()" for test in passed]
        failing = found.arguments[:1] if name == "pytest.importorskip" else ()
        if found.name == "ImportError":
            failing = tuple(map(repr, found.arguments))
        is_bare = found.text == self.text.expression(node).text
        within = f"not_importable({', '.join(failing)})" if failing else "" if is_bare else f"({found.text})"
        text = shortened(" and ".join([*before, within] if within else before))
        return Expression(text, asked_name(passed[0]), node.lineno, reason=self.reason_of(node))

    def reason_of(self, node: ast.expr) -> str:
        """Give what a skip says of why it skips, as written; empty where it says nothing, or only an exit status."""
        if not isinstance(node, ast.Call):
            return ""
        named = (keyword.value for keyword in node.keywords if keyword.arg in ("reason", "msg"))
        said = next(iter(node.args), None) or next(named, None)
        return "" if said is None or (isinstance(said, ast.Constant) and string(said) is None) else self.text.of(said)

    def guard_of(self, scope: Scope) -> str | None:
        return None if scope.guard is None or scope.kind == "function" else self.rendered(scope.guard)

    def rendered(self, guard: Guard) -> str:
        if not guard.text:
            chain: list[Guard] = []
            link: Guard | None = guard
            while link is not None and len(chain) < _MOST_GUARDS:
                chain.append(link)
                link = link.outer
            guard.text = shortened(" and ".join([self.part(entry, alone=len(chain) == 1) for entry in reversed(chain)]))
        return guard.text

    def part(self, guard: Guard, *, alone: bool) -> str:
        if guard.test is None:
            modules, raising = ", ".join(map(repr, guard.imported)), [f"({self.rendered(each)})" for each in guard.raising]
            if guard.negated:
                return " and not ".join([f"importable({modules})", *raising])
            return f"({' or '.join([f'not_importable({modules})', *raising])})" if raising else f"not_importable({modules})"
        text = self.text.of(guard.test)
        simple = isinstance(guard.test, (ast.Name, ast.Attribute, ast.Call, ast.Constant))
        if guard.negated:
            return f"not {text}" if simple else f"not ({text})"
        return text if alone or simple or isinstance(guard.test, (ast.Compare, ast.UnaryOp)) else f"({text})"

    def name_again(self) -> None:
        """Take up other names of what is imported: `dc = dist`."""
        for constant in self.constants:
            if DOTTED.fullmatch(constant.value) and constant.value.partition(".")[0] in self.aliases:
                self.aliases.setdefault(constant.name, self.resolve(constant.value))

    def resolve(self, name: str) -> str:
        root, dot, rest = name.partition(".")
        return self.aliases.get(root, root) + dot + rest


_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.BitOr: "|",
    ast.BitAnd: "&", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.MatMult: "@",
}  # fmt: skip
_HANDLERS: dict[type[ast.stmt], Callable[[_Reader, Any, Scope], None]] = {
    ast.ClassDef: _Reader.class_,
    ast.FunctionDef: _Reader.function,
    ast.AsyncFunctionDef: _Reader.function,
    ast.Import: _Reader.import_,
    ast.ImportFrom: _Reader.import_from,
    ast.Assign: _Reader.assign,
    ast.AnnAssign: _Reader.annotated,
    ast.AugAssign: _Reader.augmented,
    ast.Delete: _Reader.delete,
    ast.If: _Reader.if_,
    ast.With: _Reader.with_,
    ast.AsyncWith: _Reader.with_,
    ast.Try: _Reader.try_,
    ast.TryStar: _Reader.try_,
    ast.Match: _Reader.match_,
    ast.For: _Reader.for_,
    ast.AsyncFor: _Reader.for_,
    ast.Raise: _Reader.raise_,
    ast.Expr: _Reader.expression_statement,
    ast.Return: _Reader.value,
    ast.Pass: _Reader.nothing,
    ast.Global: _Reader.global_,
    ast.Nonlocal: _Reader.nothing,
}
"""How the kinds of statement are read that say something; of others, the statements and expressions inside are."""


def _first_uses(mentions: list[Mention]) -> tuple[Keyword, ...]:
    """Sort by line; of one use that comes again in the same scope, keep the first."""
    kept: list[Keyword] = []
    known: set[tuple[str, ...]] = set()
    for mention in sorted(mentions):
        line, kind, name, scope = mention
        use = mention[1:]
        if kind in _DEFINITIONS or use not in known:
            known.add(use)
            kept.append(Keyword(kind, name, line, scope))
    return tuple(kept)


def _owners(text: str) -> tuple[str, ...]:
    if "# Owner(s):" not in text[:4096]:
        return ()
    lists = _OWNERS.findall(text[:4096])
    return tuple(dict.fromkeys(double or single for inner in lists for double, single in _QUOTED.findall(inner)))


def _join(outer: str, name: str) -> str:
    return f"{outer}.{name}" if outer else name
