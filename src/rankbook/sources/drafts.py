"""What is known of the classes and functions of a Python file while its statements are walked."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter
from typing import Protocol

from msgspec import Struct, field

from rankbook.bindings import Bindings, bindings_of
from rankbook.collecting import SET_UPS
from rankbook.model import Class, Constant, Expression, Function
from rankbook.sources.gpu_calls import FEIGNING, FEIGNS, GpuCalls, Held
from rankbook.sources.python_nodes import (
    ASKS,
    FUNCTIONS,
    FunctionNode,
    case_marks,
    defaults_of,
    docstring_of,
    given_to,
    gives_decorator,
    gone_through,
    innermost,
    is_skip,
    leaves_at_once,
    only_asks,
    only_computes,
    only_value,
    parameters_of,
    settled_in,
    value_returned,
)
from rankbook.sources.text import Text, dotted, shortened
from rankbook.syntax import before, has_leaves, passed_by
from rankbook.words import ATTRIBUTES

SPAWNS = frozenset({"spawn", "start_processes"})
"""Last parts of the names of what starts processes, as many as an argument says."""
_COUNTS = re.compile(r"size|rank|world|proc|worker|num|gpu|device|count|^n$|^[a-z]p$", re.IGNORECASE)
"""Words of names that may say how many ranks there are."""
_MOST_HELPERS = 2
"""Functions between a test and the one that skips it."""
_MOST_NAMES = 4
"""Names that are followed from one to the next."""
DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
FIXTURES = frozenset({"pytest.fixture", "pytest_asyncio.fixture"})
LINE = attrgetter("line")
_TOLD = frozenset({*ATTRIBUTES, "pytestmark", "__test__", "device_type"})
_SKIPPING = frozenset({"skip", "skipTest", "SkipTest"})


class Reading(Protocol):
    """What a draft asks of the reader of its file."""

    text: Text
    named: set[str]
    """Names of all functions and methods."""
    may_spawn: bool
    """Whether anything may start processes."""

    def resolve(self, name: str) -> str:
        """Give the name of what a name stands for, as far as imports tell."""

    def is_import(self, name: str, bound: Iterable[object]) -> bool:
        """Tell whether a function binds a name by imports alone, to what it stands for in all of the file."""


class Branch(Struct):
    """One of the two ways that an `if` with an `else`, or a `try` with one `except`, can go; alone of its kind under another statement."""

    of: ast.AST
    is_first: bool = True
    """Whether it is the `if`, or the `try` with its `else`."""
    is_told: bool = True
    """Whether the guards of what stands in it say when it is gone."""
    there: str | None = None
    """Of a `try`: the guard of what is there where its imports work."""

    def is_other_of(self, branch: Branch) -> bool:
        """Tell whether the same statement goes this way where it does not go that one."""
        return self.of is branch.of and self.is_first != branch.is_first


class FunctionDraft(Struct):
    """A function or a method of the file."""

    node: FunctionNode
    qualname: str
    decorators: tuple[Expression, ...]
    guard: str | None
    branch: Branch | None = None
    is_twin: bool = False
    is_spare: bool = False
    is_either: bool = False
    skips: list[Expression] = field(default_factory=list)
    called: list[tuple[str, ast.Call]] = field(default_factory=list)
    """What its statements call under no condition, with the last part of its name."""
    spawns: list[ast.Call] = field(default_factory=list)
    handed: list[ast.Call] = field(default_factory=list)
    """Calls to which it may hand a function."""
    inner: list[FunctionDraft] = field(default_factory=list)
    """The functions within it, at whatever depth, of which one may start processes."""
    is_followed: bool = False
    """Whether it is worth following, whatever statements it has."""
    outer: FunctionDraft | None = None
    """The function in which it is defined."""
    bound: Bindings | None = None
    may_leave: bool | None = None
    """Whether it may end before its last statement; None until that is asked."""

    def only_skips(self) -> bool:
        """Tell whether it skips under no condition, or is skipped itself."""
        if _has_skip(self.decorators):
            return True
        calls = [skip for skip in self.skips if not skip.is_late and skip.text.partition("(")[0] == skip.name]
        is_skipped = any(skip.name.rpartition(".")[2] in _SKIPPING for skip in calls)
        return is_skipped and not any(isinstance(each, ast.Yield | ast.For | ast.While | ast.With) for each in ast.walk(self.node))

    def asks_nothing(self) -> bool:
        """Tell whether neither a decorator nor a skip says that something is needed."""
        return not self.skips and all(each.name.rpartition(".")[2] == "fixture" for each in self.decorators)

    def asks_like(self, other: FunctionDraft) -> bool:
        """Tell whether neither it nor another function skips, and both have the same decorators."""
        return not self.skips and not other.skips and _texts(self.decorators) == _texts(other.decorators)

    def bindings(self) -> Bindings:
        """Give what binds its names."""
        if self.bound is None:
            self.bound = bindings_of(self.node)
        return self.bound

    def passed_by(self, node: ast.expr) -> list[ast.expr | None]:
        """Give what must be false for a node to be come to, as `syntax.passed_by` does."""
        if self.may_leave is None:
            self.may_leave = has_leaves([each for each in self.node.body if type(each) is not ast.Return])
        return list(passed_by(self.node.body, node.lineno, is_skip)) if self.may_leave else []

    def has_begun(self, node: ast.expr) -> bool:
        """Tell whether a test has done something that may fail when it comes to a node."""
        return self.node.name.startswith("test") and not all(map(only_asks, before(self.node.body, node.lineno)))

    def _wraps(self) -> bool:
        """Tell whether it is what a decorator puts around a function: it calls a parameter of a function around it."""
        given = {name for outer in self.outers() for name in parameters_of(outer.node.args)}
        return bool(given) and any(
            type(each) is ast.Call and type(each.func) is ast.Name and each.func.id in given for each in ast.walk(self.node)
        )

    def outers(self) -> Iterator[FunctionDraft]:
        """Yield the functions around it."""
        outer = self.outer
        while outer is not None:
            yield outer
            outer = outer.outer

    def done(self, reader: Reading, skipping: Skipping, gpus: GpuCalls | None, holder: str = "") -> Function:
        """Give what is told of it, once the whole file has been walked.

        Args:
            reader: of the file.
            skipping: what in it skips tests.
            gpus: the calls in it that need a GPU; None where there can be none.
            holder: the class whose method it is; empty for a function.
        """
        node, text = self.node, reader.text
        returns = value_returned(node.body, text)
        is_worth = self.is_followed or (returns is None and "." not in self.qualname and (only_computes(node) or gives_decorator(node)))
        skips = tuple(self._sure(self.skips, text)) if self.skips else ()
        asked = [(text.expression(call), call) for name, call in self.called if skipping.may_be(name)] if self.called else []
        asks = tuple([said._replace(is_late=True) if self.has_begun(call) else said for said, call in asked])
        leaves = list(leaves_at_once(node.body, text)) if "test" in node.name or self._wraps() else []
        leaves = self._sure(leaves, text) if leaves else leaves
        starts = not self.is_test() and bool(self.spawns or self.handed or self.inner)
        return Function(
            name=node.name,
            qualname=self.qualname,
            line=node.lineno,
            end_line=node.end_lineno or node.lineno,
            docstring=docstring_of(node.body),
            decorators=self.decorators,
            parameters=parameters_of(node.args),
            is_async=isinstance(node, ast.AsyncFunctionDef),
            returns=returns,
            guard=self.guard,
            is_twin=self.is_twin,
            is_spare=self.is_spare,
            is_either=self.is_either,
            skips=skips,
            leaves=tuple(leaves),
            defaults=defaults_of(node.args, text) if is_worth or returns is not None or starts or skipping.is_for(self, returns) else (),
            asks=() if self.is_either else asks,
            names=_set_names(self, (*skips, *leaves, *asks), reader) if skips or leaves or asks else (),
            spawns=tuple(self._spawned(text)) if self.spawns or self.inner else (),
            hands=tuple(self._handed(reader)) if self.handed or self.inner else (),
            gpu_calls=gpus.told(Held(holder, node))
            if gpus is not None and (holder or node.name == self.qualname) and not self.is_either
            else (),
            text=text.whole(node) if is_worth else "",
            case_marks=case_marks(node.decorator_list) if node.decorator_list else (),
            settled=settled_in(node.args),
            gives=_gives(self) if any(type(each) in FUNCTIONS for each in node.body) else (),
        )

    def _spawned(self, text: Text) -> Iterator[Expression]:
        """Give the calls that start processes, in a function that is no test also those of the functions within it."""
        for draft in (self, *(() if self.is_test() else self.inner)):
            yield from (_started(call, draft, self, text) for call in draft.spawns)

    def _handed(self, reader: Reading) -> Iterator[Expression]:
        """Give the calls to which a test hands a function of its file, and another function one that it was given itself."""
        for draft in (self, *(() if self.is_test() else self.inner)):
            known: AbstractSet[str]
            if self.is_test():
                known = reader.named
            elif reader.may_spawn:
                known = frozenset(name for each in (draft, *draft.outers()) for name in parameters_of(each.node.args))
            else:
                continue
            for call in draft.handed:
                if known.isdisjoint(given_to(call)):
                    continue
                first = innermost(call)
                if not reader.resolve(dotted(first.func)).startswith("torch."):
                    yield _started(first, draft, self, reader.text)._replace(text=shortened(reader.text.of(call)))

    def is_test(self) -> bool:
        """Tell whether its name is that of a test."""
        return self.node.name.startswith("test")

    def _sure(self, skips: list[Expression], text: Text) -> list[Expression]:
        """Leave out what a fixture skips once its test has run, and what is asked after something was put in the place of what is asked."""
        node = self.node
        if any(decorator.name in FIXTURES for decorator in self.decorators):
            ends = min((inner.lineno for inner in ast.walk(node) if isinstance(inner, ast.Yield)), default=0)
            skips = [skip for skip in skips if not ends or skip.line < ends]
        if any(word in text.source for word in FEIGNING):
            placed: list[ast.expr | ast.stmt] = [*node.decorator_list, *node.body]
            feigned = min((each.lineno for each in placed if any(map(FEIGNS.search, text.lines(each)))), default=0)
            skips = [skip for skip in skips if not feigned or skip.line <= feigned]
        return skips


class ClassDraft(Struct):
    """A class of the file."""

    node: ast.ClassDef
    qualname: str
    bases: tuple[Expression, ...]
    decorators: tuple[Expression, ...]
    guard: str | None
    branch: Branch | None = None
    is_spare: bool = False
    is_either: bool = False
    methods: list[FunctionDraft] = field(default_factory=list)
    attributes: list[Constant] = field(default_factory=list)

    def only_skips(self) -> bool:
        """Tell whether none of its tests runs: it is skipped, what is called before them skips, or they all do."""
        skipped = {method.node.name for method in self.methods if method.only_skips()}
        tests = self.tests()
        return _has_skip(self.decorators) or not SET_UPS.isdisjoint(skipped) or (bool(tests) and tests <= skipped)

    def tests(self) -> set[str]:
        """Name the methods that are called like tests."""
        return {method.node.name for method in self.methods if method.is_test()}

    def told(self) -> list[tuple[str, str]]:
        """Give the attributes that say what tests need, or whether they are any."""
        return [(each.name, each.value) for each in self.attributes if each.name in _TOLD]

    def asks_nothing(self) -> bool:
        """Tell whether neither it nor one of its methods says that something is needed."""
        return not self.decorators and not self.told() and all(method.asks_nothing() for method in self.methods)

    def asks_like(self, other: ClassDraft) -> bool:
        """Tell whether another class has the same bases and methods, and sets the same."""
        if _texts(self.bases) != _texts(other.bases) or _texts(self.decorators) != _texts(other.decorators):
            return False
        if self.told() != other.told():
            return False
        mine, theirs = ({method.node.name: method for method in draft.methods} for draft in (self, other))
        return mine.keys() == theirs.keys() and all(method.asks_like(theirs[name]) for name, method in mine.items())

    def done(self, reader: Reading, skipping: Skipping, gpus: GpuCalls | None) -> Class:
        """Give what is told of it, once the whole file has been walked."""
        return Class(
            name=self.node.name,
            qualname=self.qualname,
            line=self.node.lineno,
            end_line=self.node.end_lineno or self.node.lineno,
            docstring=docstring_of(self.node.body),
            bases=self.bases,
            decorators=self.decorators,
            methods=tuple(sorted([method.done(reader, skipping, gpus, self.qualname) for method in self.methods], key=LINE)),
            attributes=tuple(sorted(self.attributes, key=LINE)),
            guard=self.guard,
            is_spare=self.is_spare,
            is_either=self.is_either,
        )


class Skipping:
    """What in a file skips tests.

    Args:
        drafts: its functions and methods.
    """

    def __init__(self, drafts: Sequence[FunctionDraft]) -> None:
        names = {draft.node.name for draft in drafts if draft.skips}
        for _ in range(_MOST_HELPERS if names else 0):
            names |= {draft.node.name for draft in drafts if any(name in names for name, _ in draft.called)}
        self._names = frozenset(names)
        self._holders = frozenset([draft.qualname.partition(".")[0] for draft in drafts if draft.skips])

    def may_be(self, name: str) -> bool:
        """Tell whether a function that is called so may skip the test."""
        return name in self._names or ASKS.search(name) is not None

    def is_for(self, draft: FunctionDraft, returns: str | None) -> bool:
        """Tell whether a function skips tests, by what it calls, by a function inside of it, or by the decorator that it gives."""
        return draft.node.name in self._names or draft.qualname in self._holders or "skip" in (returns or "")


def _texts(expressions: Iterable[Expression]) -> list[str]:
    return [each.text for each in expressions]


def _has_skip(decorators: Iterable[Expression]) -> bool:
    return any(decorator.name.rpartition(".")[2] == "skip" for decorator in decorators)


def _gives(draft: FunctionDraft) -> tuple[str, ...]:
    """Name the functions within a function of which it returns one, whatever happens; none where it may return anything else."""
    own: list[ast.AST] = []
    waiting: list[ast.AST] = [*draft.node.body]
    while waiting:
        node = waiting.pop()
        own.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
    returned = {node.value.id if isinstance(node.value, ast.Name) else "" for node in own if isinstance(node, ast.Return)}
    is_plain = type(draft.node) is ast.FunctionDef and not any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in own)
    if not is_plain or not returned.isdisjoint(parameters_of(draft.node.args)):
        return ()
    defined = [node.name for node in own if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    is_sure = all(name in defined and defined.count(name) == len(draft.bindings()[name]) for name in returned)
    return tuple(sorted(returned)) if is_sure else ()


def _set_names(draft: FunctionDraft, asked: Sequence[Expression], reader: Reading) -> tuple[tuple[str, str], ...]:
    """Give what a function sets the names to by which it skips a test, or not; empty for one of which only a run can tell what it is."""
    bound = draft.bindings()
    parameters = {name.lstrip("*") for name in parameters_of(draft.node.args)}
    around = {name for outer in draft.outers() for name in outer.bindings()} - parameters
    found: dict[str, str] = {}
    texts = [each.text for each in asked]
    for _ in range(_MOST_NAMES):
        names = {root for each in texts for name in DOTTED.findall(each) for root in (name.partition(".")[0],)} - found.keys()
        values = {name: None if name in parameters or name not in bound else only_value(bound[name]) for name in sorted(names)}
        told = {name: value for name, value in values.items() if name in bound or name in around}
        own = {name: value for name, value in told.items() if name not in bound or not reader.is_import(name, bound[name])}
        texts = ["" if value is None else reader.text.of(value) for value in own.values()]
        found |= dict(zip(own, texts, strict=True))
    return tuple(found.items())


def _started(call: ast.Call, draft: FunctionDraft, told: FunctionDraft, text: Text) -> Expression:
    """Give a call with its arguments; a name that its function sets once is what it is set to.

    Args:
        call: the call.
        draft: the function in which it stands.
        told: the function of which it is told, which is that one or is around it.
        text: of the file.
    """
    is_start = dotted(call.func).rpartition(".")[2] in SPAWNS or draft is not told

    def of(node: ast.expr) -> str:
        if is_start or (isinstance(node, ast.Name) and _COUNTS.search(node.id)):  # to know all that a function sets takes its time
            node = _set_once(node, draft)
        inner = [each for each in (draft, *draft.outers()) if each is not told and told in each.outers()]
        own = {name for each in inner for name in (*parameters_of(each.node.args), *each.bindings())}
        return "" if own and any(type(each) is ast.Name and each.id in own for each in ast.walk(node)) else text.of(node)

    arguments = tuple([of(argument) for argument in call.args])
    keywords = tuple([(keyword.arg or "**", of(keyword.value)) for keyword in call.keywords])
    return Expression(text.of(call), dotted(call.func), call.lineno, arguments, keywords)


def _set_once(node: ast.expr, draft: FunctionDraft) -> ast.expr:
    """Give what a name is set to, when its function, or one around it, sets it in one place alone; of a loop, what that goes through."""
    for _ in range(_MOST_NAMES):
        name = node.id if isinstance(node, ast.Name) else ""
        holder = next((each for each in (draft, *draft.outers()) if name in each.bindings()), None) if name else None
        if holder is None or name in parameters_of(holder.node.args):
            break
        bound = holder.bindings()[name]
        value = gone_through(name, holder.node) if bound == [None] else only_value(bound)
        if value is None:
            break
        node = value
    return node
