"""The facts of a Python file: one walk over its statements, then one over what its expressions mention."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby
from operator import attrgetter
from typing import Any

from msgspec import Struct, field

from rankbook.bindings import CHANGERS, Bindings, Bound, bindings_of, changed_by, may_change, names_in
from rankbook.collecting import ABSL, GENERATING_HOOK, SET_UPS
from rankbook.embedding import UTF8, source_text
from rankbook.garbage import uncollected
from rankbook.model import Class, Constant, Expression, Function, Import, Keyword, Module, Source
from rankbook.sources.gpu_calls import FEIGNING, FEIGNS, NOTHING_TAUGHT, GpuCalls, Held, Taught
from rankbook.sources.gpu_calls import WORDS as GPU_WORDS
from rankbook.sources.mentions import CALL, LOCAL_CALL, REFERENCE, SELF_CALL, SUPER_CALL, VARIABLE, Mention, Mentions
from rankbook.sources.overwritten import overwritten
from rankbook.sources.text import Text, dotted, leading_name, shortened, string
from rankbook.syntax import applied, before, has_leaves, passed_by, set_inside, syntax_tree, written_entries
from rankbook.tried import IMPORT_ERRORS, caught, imported, may_raise, tried
from rankbook.words import ATTRIBUTES

_OWNERS = re.compile(r"^# Owner\(s\):[ \t]*\[(.*)\]", re.MULTILINE)
_QUOTED = re.compile(r""""([^"]*)"|'([^']*)'""")
_ENDS = frozenset({
    "sys.exit", "exit", "quit", "os._exit", "pytest.skip", "pytest.exit", "pytest.importorskip", "SystemExit", "SkipTest",
    "unittest.SkipTest", "unittest.case.SkipTest", "pytest.skip.Exception", "skip",
})  # fmt: skip
"""What ends a module early, called or raised."""
_SKIPS = frozenset({"self.skipTest", "cls.skipTest", "pytest.skip", "pytest.importorskip", "SkipTest", "unittest.SkipTest"})
"""What skips a test, called or raised in a function."""
_ASKS = re.compile("skip|requir|need|unless|ensure|only|support|avail|distributed")
"""What the name holds of a function of another file that is asked whether a test is skipped."""
_SPAWNS = frozenset({"spawn", "start_processes"})
"""Last parts of the names of what starts processes, as many as an argument says."""
_OF_RANKS = re.compile(r"rank|world|nproc")
"""Words of a loop that starts a process for each rank."""
_COUNTS = re.compile(r"size|rank|world|proc|worker|num|gpu|device|count|^n$|^[a-z]p$")
"""Words of names that may say how many ranks there are."""
_NAMED = frozenset({ast.Name, ast.Attribute, ast.Call})
"""Nodes by which a function may be handed on: its name, or `partial` of it."""
_MOST_HELPERS = 2
"""Functions between a test and the one that skips it."""
_MOST_NAMES = 4
"""Names that are followed from one to the next."""
_LAST_PARTS = frozenset(name.rpartition(".")[2] for name in _ENDS | _SKIPS)
_SKIP = "pytest.mark.skip"
_SAYS = re.compile(r"(?:^|\.)(?:print|warn|warning|info|debug|log)$")
"""What a test calls to say why it does nothing."""
_ASKS_MACHINE = re.compile(
    r"torch\.(?:cuda|xpu|hpu|accelerator|device|distributed\.is_)|dist\.is_|os\.(?:environ|getenv)|(?:int|len|min|max)$"
)
"""What it calls to ask for what the machine has."""
_QUESTIONS = re.compile(
    r"(?:^|\.)(?:str|bool|float|tuple|list|set|dict|range|sorted|isinstance|issubclass|hasattr|getattr|type|super|device_count|manual_seed|"
    r"find_spec|import_module|system|machine|platform|cpu_count|parse|Version|join|exists|is_file|is_dir|lower|upper|strip|split|"
    r"startswith|endswith|get|items|keys|values|device|get_device_name|get_device_properties|get_device_capability|get_device_type)$"
)
"""What it calls besides before it can be said to have begun: nothing of that fails where the test would not."""
_NAMESPACES = frozenset({"globals", "vars", "locals", "setattr"})
"""What sets names that no assignment tells, called in a loop."""
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_FIXTURES = frozenset({"pytest.fixture", "pytest_asyncio.fixture"})
_DEFINITIONS = frozenset({"class", "function", "method", "fixture"})
_LONGEST_NAME = 240
"""Characters of a base class that is named by its text."""
_MOST_GUARDS = 8
"""Conditions around a statement that are told, the nearest."""
_LONGEST_FOLLOWED = 150
"""Lines of a function that is followed."""
_LONGEST_PLAIN = 30
_PLAIN = frozenset({ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Raise, ast.Pass, ast.Import, ast.ImportFrom})
_CACHES = frozenset({"cache", "lru_cache"})
"""Last parts of the names of decorators that change nothing in what a function returns."""
_LINE = attrgetter("line")

_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = frozenset({ast.FunctionDef, ast.AsyncFunctionDef})
_TOLD = frozenset({*ATTRIBUTES, "pytestmark", "__test__", "device_type"})
_SKIPPING = frozenset({"skip", "skipTest", "SkipTest"})


class _Guard(Struct):
    """A condition around a statement."""

    outer: _Guard | None
    test: ast.expr | None
    """None where imports fail, or where none of them does."""
    negated: bool = False
    line: int = 0
    failing: tuple[str, ...] = ()
    """Modules whose failing import leads here."""
    imported: tuple[str, ...] = ()
    """Modules that are imported whole; `from a import b` where names are taken from one, which may fail too."""
    raising: tuple[_Guard, ...] = ()
    """Under what the statements that import raise by themselves what is caught."""
    text: str = ""
    """As it is rendered, once it is."""


class _Branch(Struct):
    """One of the two ways that an `if` with an `else`, or a `try` with one `except`, can go; alone of its kind under another statement."""

    of: ast.AST
    is_first: bool = True
    """Whether it is the `if`, or the `try` with its `else`."""
    is_told: bool = True
    """Whether the guards of what stands in it say when it is gone."""
    there: str | None = None
    """Of a `try`: the guard of what is there where its imports work."""

    def is_other_of(self, branch: _Branch) -> bool:
        """Tell whether the same statement goes this way where it does not go that one."""
        return self.of is branch.of and self.is_first != branch.is_first


class _Scope(Struct):
    """Where a statement stands."""

    kind: str
    """`module`, `class` or `function`."""
    qualname: str
    expressions: list[ast.AST]
    """Of all statements of this scope, for `Mentions`."""
    methods: list[_FunctionDraft] | None = None
    """Of the class whose body this is."""
    attributes: list[Constant] | None = None
    function: _FunctionDraft | None = None
    """Whose body this is."""
    in_class: bool = False
    """Whether some class is around it."""
    in_main: bool = False
    """Whether it runs only when the file is a script."""
    guard: _Guard | None = None
    is_fallback: bool = False
    """Whether it stands in for something else: an `else`, an `except`."""
    branch: _Branch | None = None
    """Which of the ways that the statement nearest around it decides, if any."""
    caught: str = ""
    """What the nearest `except` around it catches, unless that is a failing import."""
    swallowed: frozenset[str] = frozenset()
    """Exceptions by which a test is skipped that something around it catches."""

    def under(self, guard: _Guard | None, *, is_fallback: bool = False, branch: _Branch | None = None) -> _Scope:
        """Give the same scope under one more condition."""
        return _Scope(
            self.kind,
            self.qualname,
            self.expressions,
            self.methods,
            self.attributes,
            self.function,
            self.in_class,
            self.in_main,
            guard,
            self.is_fallback or is_fallback,
            branch or self.branch,
            self.caught,
            self.swallowed,
        )

    def swallowing(self, names: frozenset[str]) -> _Scope:
        """Give the same scope where more exceptions are caught by which a test is skipped."""
        inner = self.under(self.guard)
        inner.swallowed = self.swallowed | names
        return inner


class _Skipping:
    """What in a file skips tests.

    Args:
        drafts: its functions and methods.
    """

    def __init__(self, drafts: Sequence[_FunctionDraft]) -> None:
        names = {draft.node.name for draft in drafts if draft.skips}
        for _ in range(_MOST_HELPERS if names else 0):
            names |= {draft.node.name for draft in drafts if any(name in names for name, _ in draft.called)}
        self._names = frozenset(names)
        self._holders = frozenset([draft.qualname.partition(".")[0] for draft in drafts if draft.skips])

    def may_be(self, name: str) -> bool:
        """Tell whether a function that is called so may skip the test."""
        return name in self._names or _ASKS.search(name) is not None

    def is_for(self, draft: _FunctionDraft, returns: str | None) -> bool:
        """Tell whether a function skips tests, by what it calls, by a function inside of it, or by the decorator that it gives."""
        return draft.node.name in self._names or draft.qualname in self._holders or "skip" in (returns or "")


class _ClassDraft(Struct):
    node: ast.ClassDef
    qualname: str
    bases: tuple[Expression, ...]
    decorators: tuple[Expression, ...]
    guard: str | None
    branch: _Branch | None = None
    is_spare: bool = False
    is_either: bool = False
    methods: list[_FunctionDraft] = field(default_factory=list)
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

    def asks_like(self, other: _ClassDraft) -> bool:
        """Tell whether another class has the same bases and methods, and sets the same."""
        if _texts(self.bases) != _texts(other.bases) or _texts(self.decorators) != _texts(other.decorators):
            return False
        if self.told() != other.told():
            return False
        mine, theirs = ({method.node.name: method for method in draft.methods} for draft in (self, other))
        return mine.keys() == theirs.keys() and all(method.asks_like(theirs[name]) for name, method in mine.items())

    def done(self, reader: _Reader, skipping: _Skipping, gpus: GpuCalls | None) -> Class:
        return Class(
            name=self.node.name,
            qualname=self.qualname,
            line=self.node.lineno,
            end_line=self.node.end_lineno or self.node.lineno,
            docstring=_docstring(self.node.body),
            bases=self.bases,
            decorators=self.decorators,
            methods=tuple(sorted([method.done(reader, skipping, gpus, self.qualname) for method in self.methods], key=_LINE)),
            attributes=tuple(sorted(self.attributes, key=_LINE)),
            guard=self.guard,
            is_spare=self.is_spare,
            is_either=self.is_either,
        )


def _choose(drafts: Sequence[_FunctionDraft] | Sequence[_ClassDraft], assigned: AbstractSet[str]) -> None:
    """Of two definitions of one name, between which an `if` or a `try` decides, take the one that runs tests.

    Args:
        drafts: all of a module or of a class.
        assigned: names that assignments set too, of which only a run can tell.
    """
    if all(draft.branch is None for draft in drafts):
        return
    named: dict[str, list[_FunctionDraft | _ClassDraft]] = {}
    for draft in drafts:
        named.setdefault(draft.qualname, []).append(draft)
    for qualname, several in named.items():
        ways = [draft.branch for draft in several if draft.branch is not None]
        if len(several) == len(ways) == 2 and ways[0].is_other_of(ways[1]) and qualname not in assigned:
            _choose_of_two(*several)


def _choose_of_two(*several: _FunctionDraft | _ClassDraft) -> None:
    """Take one of the two definitions between which a statement decides, or both, where that makes no difference."""
    for draft in several:
        if isinstance(draft, _FunctionDraft):
            draft.is_twin = True
            if draft.branch is not None and not draft.branch.is_told:
                draft.guard = None
    idle = [draft for draft in several if draft.only_skips()]
    if not idle and isinstance(several[0], _ClassDraft):
        idle = [draft for draft in several if isinstance(draft, _ClassDraft) and not draft.tests()]
    if len(idle) != 1:
        if not idle or isinstance(several[0], _ClassDraft):
            _let_either(*several)
        return
    spare = idle[0]
    (chosen,) = (draft for draft in several if draft is not spare)
    spare.is_spare = True
    if isinstance(chosen, _FunctionDraft):
        if spare.guard is not None and spare.branch is not None and spare.branch.is_told:
            chosen.skips.append(Expression(spare.guard, "", chosen.node.lineno))
    elif chosen.branch is not None and chosen.branch.there is not None:
        chosen.guard = chosen.branch.there


def _let_either(one: _FunctionDraft | _ClassDraft, other: _FunctionDraft | _ClassDraft) -> None:
    """Have two definitions under no condition where both ask for the same, and else take that of a `try` if it asks for nothing."""
    if isinstance(one, _FunctionDraft) and isinstance(other, _FunctionDraft):
        if one.asks_like(other):
            one.is_either = other.is_either = True
            return
    elif isinstance(one, _ClassDraft) and isinstance(other, _ClassDraft) and one.asks_like(other):
        for draft in (one, other):
            draft.is_either = True
            for method in draft.methods:
                method.is_either = True
        return
    tried, instead = (one, other) if one.branch is not None and one.branch.is_first else (other, one)
    if tried.branch is not None and tried.branch.there is not None and tried.asks_nothing():
        instead.is_spare = True


def _texts(expressions: Iterable[Expression]) -> list[str]:
    return [each.text for each in expressions]


def _has_skip(decorators: Iterable[Expression]) -> bool:
    return any(decorator.name.rpartition(".")[2] == "skip" for decorator in decorators)


class _FunctionDraft(Struct):
    node: _FunctionNode
    qualname: str
    decorators: tuple[Expression, ...]
    guard: str | None
    branch: _Branch | None = None
    is_twin: bool = False
    is_spare: bool = False
    is_either: bool = False
    skips: list[Expression] = field(default_factory=list)
    called: list[tuple[str, ast.Call]] = field(default_factory=list)
    """What its statements call under no condition, with the last part of its name."""
    spawns: list[ast.Call] = field(default_factory=list)
    handed: list[ast.Call] = field(default_factory=list)
    """Calls to which it may hand a function."""
    inner: list[_FunctionDraft] = field(default_factory=list)
    """The functions within it, at whatever depth, of which one may start processes."""
    is_followed: bool = False
    """Whether it is worth following, whatever statements it has."""
    outer: _FunctionDraft | None = None
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

    def asks_like(self, other: _FunctionDraft) -> bool:
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
        return list(passed_by(self.node.body, node.lineno, _skips)) if self.may_leave else []

    def has_begun(self, node: ast.expr) -> bool:
        """Tell whether a test has done something that may fail when it comes to a node."""
        return self.node.name.startswith("test") and not all(map(_only_asks, before(self.node.body, node.lineno)))

    def _wraps(self) -> bool:
        """Tell whether it is what a decorator puts around a function: it calls a parameter of a function around it."""
        given = {name for outer in self.outers() for name in _parameters(outer.node.args)}
        return bool(given) and any(
            type(each) is ast.Call and type(each.func) is ast.Name and each.func.id in given for each in ast.walk(self.node)
        )

    def outers(self) -> Iterator[_FunctionDraft]:
        """Yield the functions around it."""
        outer = self.outer
        while outer is not None:
            yield outer
            outer = outer.outer

    def done(self, reader: _Reader, skipping: _Skipping, gpus: GpuCalls | None, holder: str = "") -> Function:
        node, text = self.node, reader.text
        returns = _returns(node.body, text)
        is_worth = self.is_followed or (returns is None and "." not in self.qualname and (_is_plain(node) or _gives_decorator(node)))
        skips = tuple(self._sure(self.skips, text)) if self.skips else ()
        asked = [(text.expression(call), call) for name, call in self.called if skipping.may_be(name)] if self.called else []
        asks = tuple([said._replace(is_late=True) if self.has_begun(call) else said for said, call in asked])
        leaves = list(_leaves_at_once(node.body, text)) if "test" in node.name or self._wraps() else []
        leaves = self._sure(leaves, text) if leaves else leaves
        starts = not self.is_test() and bool(self.spawns or self.handed or self.inner)
        return Function(
            name=node.name,
            qualname=self.qualname,
            line=node.lineno,
            end_line=node.end_lineno or node.lineno,
            docstring=_docstring(node.body),
            decorators=self.decorators,
            parameters=_parameters(node.args),
            is_async=isinstance(node, ast.AsyncFunctionDef),
            returns=returns,
            guard=self.guard,
            is_twin=self.is_twin,
            is_spare=self.is_spare,
            is_either=self.is_either,
            skips=skips,
            leaves=tuple(leaves),
            defaults=_defaults(node.args, text) if is_worth or returns is not None or starts or skipping.is_for(self, returns) else (),
            asks=() if self.is_either else asks,
            names=_set_names(self, (*skips, *leaves, *asks), reader) if skips or leaves or asks else (),
            spawns=tuple(self._spawned(text)) if self.spawns or self.inner else (),
            hands=tuple(self._handed(reader)) if self.handed or self.inner else (),
            gpu_calls=gpus.told(Held(holder, node))
            if gpus is not None and (holder or node.name == self.qualname) and not self.is_either
            else (),
            text=text.whole(node) if is_worth else "",
            case_marks=_case_marks(node.decorator_list) if node.decorator_list else (),
            settled=_settled(node.args),
            gives=_gives(self) if any(type(each) in _FUNCTIONS for each in node.body) else (),
        )

    def _spawned(self, text: Text) -> Iterator[Expression]:
        """Give the calls that start processes, in a function that is no test also those of the functions within it."""
        for draft in (self, *(() if self.is_test() else self.inner)):
            yield from (_started(call, draft, self, text) for call in draft.spawns)

    def _handed(self, reader: _Reader) -> Iterator[Expression]:
        """Give the calls to which a test hands a function of its file, and another function one that it was given itself."""
        for draft in (self, *(() if self.is_test() else self.inner)):
            known: AbstractSet[str]
            if self.is_test():
                known = reader.named
            elif reader.may_spawn:
                known = frozenset(name for each in (draft, *draft.outers()) for name in _parameters(each.node.args))
            else:
                continue
            for call in draft.handed:
                if known.isdisjoint(_given_to(call)):
                    continue
                first = _innermost(call)
                if not reader.resolve(dotted(first.func)).startswith("torch."):
                    yield _started(first, draft, self, reader.text)._replace(text=shortened(reader.text.of(call)))

    def is_test(self) -> bool:
        """Tell whether its name is that of a test."""
        return self.node.name.startswith("test")

    def _sure(self, skips: list[Expression], text: Text) -> list[Expression]:
        """Leave out what a fixture skips once its test has run, and what is asked after something was put in the place of what is asked."""
        node = self.node
        if any(decorator.name in _FIXTURES for decorator in self.decorators):
            ends = min((inner.lineno for inner in ast.walk(node) if isinstance(inner, ast.Yield)), default=0)
            skips = [skip for skip in skips if not ends or skip.line < ends]
        if any(word in text.source for word in FEIGNING):
            placed: list[ast.expr | ast.stmt] = [*node.decorator_list, *node.body]
            feigned = min((each.lineno for each in placed if any(map(FEIGNS.search, text.lines(each)))), default=0)
            skips = [skip for skip in skips if not feigned or skip.line <= feigned]
        return skips


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
        self.may_spawn = self.may_make_processes or any(f"{name}(" in text for name in _SPAWNS)
        self.text = Text(text)
        self.classes: list[_ClassDraft] = []
        self.functions: list[_FunctionDraft] = []
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
        self.unsettled: set[str] = set()
        """Names that something binds that is no assignment, or that are changed where they are; attributes begin with a dot."""
        self.meant: dict[str, set[tuple[int, str, str | None]]] = {}
        """What imports anywhere in the file make names stand for, once it is asked."""
        self.is_script = False
        self.expressions: dict[str, list[ast.AST]] = {}
        """By qualified name of the scope that they stand in."""
        self.stack: list[tuple[Iterator[ast.stmt], _Scope]] = []

    def read(self, tree: ast.Module, source: Source) -> Module:
        self.push(tree.body, _Scope("module", "", self.expressions_of("")))
        self.walk()
        assigned = {constant.name for constant in self.constants}
        for draft in self.classes:
            _choose(draft.methods, {f"{draft.qualname}.{each.name}" for each in draft.attributes})
        _choose(self.functions, assigned)
        _choose(self.classes, assigned)
        self.name_again()
        methods = {method.node.name for draft in self.classes for method in draft.methods}
        drafts = [*self.functions, *(method for draft in self.classes for method in draft.methods)] if self.may_skip else []
        skipping = _Skipping(drafts)
        mentions = Mentions(self.aliases, self.defined, methods, self.whole_text)
        mentions.read(self.expressions.items())
        found = mentions.found
        inner = (*found[LOCAL_CALL], *found[SELF_CALL]) if self.may_need_gpu else ()
        gpus = GpuCalls(self.text, tree, self.held(), inner, self.resolve, taught=self.taught) if self.may_need_gpu else None
        self.follow()
        return Module(
            source,
            docstring=_docstring(tree.body),
            classes=tuple(sorted([draft.done(self, skipping, gpus) for draft in self.classes], key=_LINE)),
            functions=tuple(sorted([draft.done(self, skipping, gpus) for draft in self.functions], key=_LINE)),
            imports=tuple(sorted(self.imports, key=_LINE)),
            constants=tuple(sorted(self.constants, key=_LINE)),
            keywords=_first_uses([*self.keywords, *found[VARIABLE], *found[CALL]]),
            guards=tuple(sorted([*self.guards, *self.skips], key=_LINE)),
            gpu_calls=gpus.of_import(tree.body) if gpus is not None else (),
            marks=tuple(self.marks),
            calls=tuple(sorted(self.calls, key=_LINE)),
            loops=tuple(self.loops),
            references=_first_uses(found[REFERENCE]),
            self_calls=_first_uses([*found[SELF_CALL], *found[SUPER_CALL]]),
            local_calls=_first_uses(found[LOCAL_CALL]),
            overwritten=overwritten(tree),
            deleted=tuple(self.deleted),
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
            draft.is_followed = draft.qualname in self.followed and not is_test and _lines(draft.node) <= _LONGEST_FOLLOWED

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

    def push(self, body: list[ast.stmt], scope: _Scope) -> None:
        """Walk statements next; of several lists, the one that is pushed last comes first."""
        if body:
            self.stack.append((iter(body), scope))

    def expressions_of(self, qualname: str) -> list[ast.AST]:
        return self.expressions.setdefault(qualname, [])

    def other(self, node: ast.stmt, scope: _Scope) -> None:
        """Walk a statement that says nothing by itself."""
        for name in reversed(node._fields):
            value = getattr(node, name, None)
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                self.push(value, scope)
            elif isinstance(value, list):
                scope.expressions.extend(value)
            elif isinstance(value, ast.AST):
                scope.expressions.append(value)

    def expressions_in(self, nodes: Iterable[ast.AST | None], scope: _Scope) -> None:
        scope.expressions.extend([node for node in nodes if node is not None])

    # Definitions

    def class_(self, node: ast.ClassDef, scope: _Scope) -> None:
        qualname = _join(scope.qualname, node.name)
        bases = tuple([self.text.expression(base) for base in node.bases])
        draft = _ClassDraft(node, qualname, bases, self.decorators(node, qualname, scope), self.guard_of(scope))
        draft.branch = scope.branch
        self.classes.append(draft)
        self.defined.add(node.name)
        self.keywords.append((node.lineno, "class", node.name, scope.qualname))
        for base in bases:
            self.keywords.append((base.line, "base class", base.name or shortened(base.text, _LONGEST_NAME), qualname))
        scope.expressions.extend(node.bases)
        scope.expressions.extend(node.keywords)
        inner = _Scope("class", qualname, self.expressions_of(qualname), draft.methods, draft.attributes, in_class=True)
        inner.in_main = scope.in_main
        self.push(node.body, inner)

    def function(self, node: _FunctionNode, scope: _Scope) -> None:
        qualname = _join(scope.qualname, node.name)
        draft = _FunctionDraft(node, qualname, self.decorators(node, qualname, scope), self.guard_of(scope), outer=scope.function)
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
        scope.expressions += _of_signature(node)
        inner = _Scope("function", qualname, self.expressions_of(qualname), None, None, draft, scope.in_class, scope.in_main)
        self.push(node.body, inner)

    def function_kind(self, draft: _FunctionDraft, scope: _Scope) -> str:
        if draft.decorators and any(self.resolve(decorator.name) in _FIXTURES for decorator in draft.decorators):
            return "fixture"
        return "method" if scope.kind == "class" else "function"

    def decorators(self, node: ast.ClassDef | _FunctionNode, qualname: str, scope: _Scope) -> tuple[Expression, ...]:
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

    def import_(self, node: ast.Import, scope: _Scope) -> None:
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            self.bind(Import(alias.name, None, alias.asname, alias.lineno), alias.name if alias.asname else bound, alias.name, scope)

    def import_from(self, node: ast.ImportFrom, scope: _Scope) -> None:
        module, level = node.module or "", node.level
        stem = "." * level + (f"{module}." if module else "")
        for alias in node.names:
            name = stem + alias.name
            self.bind(Import(module, alias.name, alias.asname, alias.lineno, level), name, name, scope)

    def bind(self, entry: Import, means: str, shown: str, scope: _Scope) -> None:
        self.imports.append(entry)
        self.keywords.append((entry.line, "import", shown, scope.qualname))
        if scope.kind == "module" and not scope.is_fallback:
            self.aliases[entry.bound] = means
        else:
            self.aliases.setdefault(entry.bound, means)

    def assign(self, node: ast.Assign, scope: _Scope) -> None:
        value = node.value
        scope.expressions.append(value)
        for target in node.targets:
            if type(target) is not ast.Name:
                scope.expressions.append(target)
                self.unsettle(target)
                self.changed(target, "__setitem__", value, scope)
            if scope.kind != "function":
                self.assigned(target, value, scope)
            elif not scope.in_class and _sets_elsewhere(target):
                self.followed.add(scope.qualname.partition(".")[0])
        if scope.kind == "function" and _makes_cases(value):
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

    def annotated(self, node: ast.AnnAssign, scope: _Scope) -> None:
        if scope.kind != "function":
            self.assigned(node.target, node.value, scope)
        if type(node.target) is not ast.Name:
            self.unsettle(node.target)
        self.expressions_in((node.target, node.annotation, node.value), scope)

    def assigned(self, target: ast.expr, value: ast.expr | None, scope: _Scope) -> None:
        for name, part in _assignments(target, value):
            constant = Constant(name.id, "" if part is None else self.text.of(part), name.lineno, self.guard_of(scope))
            (self.constants if scope.attributes is None else scope.attributes).append(constant)
            self.keywords.append((name.lineno, "constant", name.id, scope.qualname))
            if name.id == "pytestmark" and value is not None:
                self.pytestmark(value, scope)

    def changed(self, target: ast.expr, method: str, value: ast.expr | None, scope: _Scope) -> None:
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

    def augmented(self, node: ast.AugAssign, scope: _Scope) -> None:
        if scope.kind != "function" and isinstance(node.target, ast.Name):
            name, value = node.target.id, self.text.of(node.value)
            constant = Constant(name, f"{name} {_SIGNS[type(node.op)]} ({value})", node.lineno, self.guard_of(scope))
            (self.constants if scope.attributes is None else scope.attributes).append(constant)
            if node.lineno <= self.round_end:
                self.changed(node.target, "__iadd__", None, scope)
        if type(node.target) is not ast.Name:
            self.unsettle(node.target)
        self.expressions_in((node.target, node.value), scope)

    def pytestmark(self, value: ast.expr, scope: _Scope) -> None:
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

    def delete(self, node: ast.Delete, scope: _Scope) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                self.changed(target, "__delitem__", None, scope)
            elif isinstance(target, ast.Attribute):
                self.unsettled.add(f".{target.attr}")
        if scope.kind == "class":
            self.unsettled.update(f".{name.id}" for target in node.targets for name in _names(target))
        if scope.kind == "module" and scope.guard is None and not scope.caught:  # else what is taken away may be there
            names = [name.id for target in node.targets for name in _names(target)]
            self.deleted += names
            if "pytestmark" in names:
                self.marks, self.skips = [], []
        scope.expressions.extend(node.targets)

    # Conditions

    def if_(self, node: ast.If, scope: _Scope) -> None:
        if scope.kind == "module" and _is_main(node.test):
            self.is_script = True
            main = scope.under(scope.guard)
            main.in_main = True
            self.push(node.orelse, scope)
            self.push(node.body, main)
            return
        scope.expressions.append(node.test)
        if node.orelse:
            negated = _Guard(scope.guard, node.test, negated=True, line=node.lineno)
            self.push(node.orelse, scope.under(negated, is_fallback=True, branch=_Branch(node, is_first=False)))
        self.push(node.body, scope.under(_Guard(scope.guard, node.test, line=node.lineno), branch=_Branch(node)))

    def try_(self, node: ast.Try | ast.TryStar, scope: _Scope) -> None:
        failing = imported(node.body)
        there = scope
        if failing and scope.kind != "function":
            raising = tuple(self.raising(node.body, frozenset().union(*map(caught, node.handlers))))
            there = scope.under(_Guard(scope.guard, None, negated=True, imported=tried(node.body, IMPORT_ERRORS), raising=raising))
        self.push(node.finalbody, scope)
        tried_in = scope
        if node.handlers:
            first = _Branch(node, there=None if there is scope else self.guard_of(there))
            tried_in = scope.under(scope.guard, branch=first)
            there = tried_in if there is scope else there.under(there.guard, branch=first)
        self.push_flags(node.orelse, tried_in, there)
        for handler in reversed(node.handlers):
            guard, errors = scope.guard, caught(handler) if failing else frozenset()
            if not errors.isdisjoint(IMPORT_ERRORS):
                raising = tuple(self.raising(node.body, errors))
                missing = tried(node.body, errors)
                guard = _Guard(scope.guard, None, line=handler.lineno, failing=failing, imported=missing, raising=raising)
            second = _Branch(node if len(node.handlers) == 1 else handler, is_first=False, is_told=guard is not scope.guard)
            inner = scope.under(guard, is_fallback=True, branch=second)
            if guard is scope.guard:
                inner.caught = "Exception" if handler.type is None else self.text.of(handler.type)
            self.push(handler.body, inner)
            self.expressions_in([handler.type], scope)
            if handler.name is not None and scope.kind != "function":
                self.bound_in(scope, handler)
        swallowed = _swallowed_by_handlers(node.handlers) if self.may_skip and scope.function is not None else frozenset()
        inside = tried_in.swallowing(swallowed) if swallowed else tried_in
        last = max((number for number, each in enumerate(node.body, 1) if isinstance(each, (ast.Import, ast.ImportFrom))), default=0)
        self.push_flags(node.body[last:], inside, inside if there is tried_in else there)
        self.push(node.body[:last], inside)

    def raising(self, body: list[ast.stmt], errors: frozenset[str], outer: _Guard | None = None) -> Iterator[_Guard]:
        """Yield under what statements raise such errors; of a loop, or a context, only a run can tell."""
        for node in body:
            if isinstance(node, ast.If):
                yield from self.raising(node.body, errors, _Guard(outer, node.test, line=node.lineno))
                yield from self.raising(node.orelse, errors, _Guard(outer, node.test, negated=True, line=node.lineno))
            elif may_raise(node, errors):
                guard = _Guard(None, None, line=node.lineno, text=f"raised({', '.join(sorted(errors))})")
                yield outer if outer is not None and isinstance(node, ast.Raise) else guard

    def push_flags(self, body: list[ast.stmt], scope: _Scope, there: _Scope) -> None:
        """Walk statements next of which those that set a flag stand under a condition."""
        for is_flag, group in reversed([(is_flag, list(group)) for is_flag, group in groupby(body, _is_flag)]):
            self.push(group, there if is_flag else scope)

    def with_(self, node: ast.With | ast.AsyncWith, scope: _Scope) -> None:
        if scope.kind != "function":
            self.bound_in(scope, *(item.optional_vars for item in node.items))
        swallowed = _swallowed_by_contexts(node.items) if self.may_skip and scope.function is not None else frozenset()
        self.other(node, scope.swallowing(swallowed) if swallowed else scope)

    def match_(self, node: ast.Match, scope: _Scope) -> None:
        scope.expressions.append(node.subject)
        if scope.kind != "function":
            self.bound_in(scope, *(case.pattern for case in node.cases))
        for case in reversed(node.cases):
            self.push(case.body, scope)
            self.expressions_in((case.pattern, case.guard), scope)

    def for_(self, node: ast.For | ast.AsyncFor, scope: _Scope) -> None:
        if scope.kind == "module":
            self.round_end = max(self.round_end, node.end_lineno or 0)
        if scope.kind == "module" and not scope.in_main and node.lineno > self.loop_end and _defines(node):
            self.loop_end = node.end_lineno or node.lineno
            self.loops.append(Expression(shortened(self.text.whole(node)), "for", node.lineno))
        if scope.kind != "function":
            self.bound_in(scope, node.target)
        elif self.may_make_processes and scope.function is not None:
            self.rounds(node, scope.function)
        self.other(node, scope)

    def bound_in(self, scope: _Scope, *nodes: ast.AST | None) -> None:
        """Note the names of a module or a class that something binds that is no assignment."""
        dot = "." if scope.kind == "class" else ""
        self.unsettled.update(dot + name for name in names_in(*nodes))

    def global_(self, node: ast.Global, scope: _Scope) -> None:  # noqa: ARG002 - as all handlers
        """Note names of the module that a function sets."""
        self.unsettled.update(node.names)

    def raise_(self, node: ast.Raise, scope: _Scope) -> None:
        if node.exc is not None:
            self.ends(node.exc, leading_name(node.exc), scope)
        self.expressions_in((node.exc, node.cause), scope)

    def expression_statement(self, node: ast.Expr, scope: _Scope) -> None:
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
            if scope.function is not None and not scope.in_class and (_sets_by_name(last, value) or _hands_on(value, scope.function.node)):
                self.followed.add(scope.qualname.partition(".")[0])
            if scope.kind == "module" and not scope.in_main:
                call = self.text.expression(value)
                if last in CHANGERS and node.lineno <= self.round_end:
                    call = call._replace(arguments=(), keywords=())  # who knows how often, and with what
                self.calls.append(call if scope.guard is None else call._replace(guard=self.guard_of(scope)))
        scope.expressions.append(value)

    def spawned(self, value: ast.expr, scope: _Scope) -> None:
        """Note a call that starts processes."""
        if not self.may_spawn or scope.function is None or not isinstance(value, ast.Call):
            return
        if dotted(value.func).rpartition(".")[2] in _SPAWNS:
            self.starts(value, scope.function)

    def starts(self, call: ast.Call, function: _FunctionDraft) -> None:
        """Note a call by which a function starts processes, in those around it too: they may give it, or call it."""
        function.spawns.append(call)
        self.inside(function)

    def inside(self, function: _FunctionDraft) -> None:
        """Note a function in those around it."""
        for outer in function.outers():
            if all(each is not function for each in outer.inner):
                outer.inner.append(function)

    def handed(self, name: str, call: ast.Call, scope: _Scope) -> None:
        """Note a call to which a function may be handed, that it may run in processes which it starts."""
        function = scope.function
        if function is None or name.startswith("assert") or not (self.may_spawn or function.is_test()):
            return
        if not name or any(type(each) in _NAMED for each in (*call.args, *(each.value for each in call.keywords))):
            function.handed.append(call)
            if self.may_spawn and function.outer is not None:
                self.inside(function)

    def rounds(self, node: ast.For | ast.AsyncFor, function: _FunctionDraft) -> None:
        """Note a loop that starts a process for each rank: `for rank in range(world_size): Process(target=run, args=(rank,))`."""
        over = node.iter
        count = over.args[0] if isinstance(over, ast.Call) and dotted(over.func) == "range" and len(over.args) == 1 else None
        if count is None or not _OF_RANKS.search(f"{self.text.of(node.target)} {self.text.of(count)}"):
            return
        calls = (each for inner in node.body for each in ast.walk(inner) if type(each) is ast.Call)
        made = next((each for each in calls if getattr(each.func, "attr", getattr(each.func, "id", "")) == "Process"), None)
        if made is not None:
            self.starts(ast.copy_location(ast.Call(made.func, [], [ast.keyword("nprocs", count)]), made), function)

    def asked(self, name: str, call: ast.Call, scope: _Scope) -> None:
        """Note a call that may skip the test: of a function of this file, which may yet turn out to skip, or of one whose name says so."""
        is_sure = scope.guard is None and not scope.caught and not scope.swallowed
        if scope.function is not None and is_sure and (self.may_skip or _ASKS.search(name)) and not scope.function.passed_by(call):
            scope.function.called.append((name, call))

    def value(self, node: ast.Return, scope: _Scope) -> None:
        if node.value is not None:
            scope.expressions.append(node.value)
            if _makes_cases(node.value):
                self.followed.add(scope.qualname.partition(".")[0])

    def nothing(self, node: ast.stmt, scope: _Scope) -> None:
        """Pass over a statement without expressions."""

    def ends(self, node: ast.expr, name: str, scope: _Scope) -> None:
        """Note a statement that ends the module or skips the test, under the condition that leads to it."""
        if scope.kind == "module" and name in _ENDS and not scope.in_main:
            self.guards += self.conditions(node, name, scope)
        elif scope.function is not None and name in _SKIPS and _kind_of_skip(name) not in scope.swallowed:
            passed = scope.function.passed_by(node)
            found = [self.behind(passed, found, node, name) for found in self.conditions(node, name, scope)]
            has_begun = scope.function.has_begun(node)
            scope.function.skips += [each._replace(is_late=True) for each in found] if has_begun else found

    def conditions(self, node: ast.expr, name: str, scope: _Scope) -> list[Expression]:
        """Write under what a statement comes to be run, of which each is enough."""
        found = self.condition(node, name, scope)
        raising = scope.guard.raising if scope.guard is not None and found.name == "ImportError" else ()
        return [found, *(Expression(self.rendered(each), _guard_name(each), each.line) for each in raising)]

    def condition(self, node: ast.expr, name: str, scope: _Scope) -> Expression:
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
        return Expression(said, _guard_name(guard), guard.line, reason=self.reason_of(node))

    def behind(self, passed: Sequence[ast.expr | None], found: Expression, node: ast.expr, name: str) -> Expression:
        """Write under what a test is skipped by a statement behind others that may leave the function."""
        if not passed:
            return found
        before = [self.part(_Guard(None, test, negated=True), alone=False) if test is not None else "not returned()" for test in passed]
        failing = found.arguments[:1] if name == "pytest.importorskip" else ()
        if found.name == "ImportError":
            failing = tuple(map(repr, found.arguments))
        is_bare = found.text == self.text.expression(node).text
        within = f"not_importable({', '.join(failing)})" if failing else "" if is_bare else f"({found.text})"
        text = shortened(" and ".join([*before, within] if within else before))
        return Expression(text, _guard_name(_Guard(None, passed[0])), node.lineno, reason=self.reason_of(node))

    def reason_of(self, node: ast.expr) -> str:
        """Give what a skip says of why it skips, as written; empty where it says nothing, or only an exit status."""
        if not isinstance(node, ast.Call):
            return ""
        named = (keyword.value for keyword in node.keywords if keyword.arg in ("reason", "msg"))
        said = next(iter(node.args), None) or next(named, None)
        return "" if said is None or (isinstance(said, ast.Constant) and string(said) is None) else self.text.of(said)

    def guard_of(self, scope: _Scope) -> str | None:
        return None if scope.guard is None or scope.kind == "function" else self.rendered(scope.guard)

    def rendered(self, guard: _Guard) -> str:
        if not guard.text:
            chain: list[_Guard] = []
            link: _Guard | None = guard
            while link is not None and len(chain) < _MOST_GUARDS:
                chain.append(link)
                link = link.outer
            guard.text = shortened(" and ".join([self.part(entry, alone=len(chain) == 1) for entry in reversed(chain)]))
        return guard.text

    def part(self, guard: _Guard, *, alone: bool) -> str:
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
            if _DOTTED.fullmatch(constant.value) and constant.value.partition(".")[0] in self.aliases:
                self.aliases.setdefault(constant.name, self.resolve(constant.value))

    def resolve(self, name: str) -> str:
        root, dot, rest = name.partition(".")
        return self.aliases.get(root, root) + dot + rest


_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.BitOr: "|",
    ast.BitAnd: "&", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.MatMult: "@",
}  # fmt: skip

_HANDLERS: dict[type[ast.stmt], Callable[[_Reader, Any, _Scope], None]] = {
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


def _skips(node: ast.stmt) -> bool:
    """Tell whether a statement skips the test, so that a `return` behind it is for the reader alone."""
    called = node.exc if isinstance(node, ast.Raise) else node.value if isinstance(node, ast.Expr) else None
    return called is not None and leading_name(called) in _SKIPS


def _swallowed_by_handlers(handlers: Iterable[ast.ExceptHandler]) -> frozenset[str]:
    """Give the exceptions by which a test is skipped that some `except` catches and does not raise again."""
    found: set[str] = set()
    for handler in handlers:
        if not any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(handler)):
            found.update(*(_SWALLOWED_BY.get(name, ()) for name in map(dotted, _parts(handler.type))) if handler.type else _BOTH)
    return frozenset(found)


def _swallowed_by_contexts(items: Iterable[ast.withitem]) -> frozenset[str]:
    """Give those that a context keeps from the test: `pytest.raises(SkipTest)`, and a subtest, which is skipped alone."""
    found: set[str] = set()
    for item in items:
        call = item.context_expr
        name = dotted(call.func) if isinstance(call, ast.Call) else ""
        if name.rpartition(".")[2] == "subTest" or name == "subtests.test":
            return _BOTH
        if isinstance(call, ast.Call) and name.rpartition(".")[2] in _CATCHING:
            found.update(*(_SWALLOWED_BY.get(dotted(part), ()) for argument in call.args for part in _parts(argument)))
    return frozenset(found)


def _kind_of_skip(name: str) -> str:
    return _PYTEST if name.startswith("pytest.") else _UNITTEST


_UNITTEST, _PYTEST = "unittest", "pytest"
"""What `SkipTest` is raised by, and what is skipped by pytest's own exception, which is no `Exception`."""
_BOTH = frozenset({_UNITTEST, _PYTEST})
_SWALLOWED_BY = {
    "BaseException": _BOTH,
    "Exception": frozenset({_UNITTEST}),
    "SkipTest": frozenset({_UNITTEST}),
    "unittest.SkipTest": frozenset({_UNITTEST}),
    "unittest.case.SkipTest": frozenset({_UNITTEST}),
    "pytest.skip.Exception": frozenset({_PYTEST}),
    "Skipped": frozenset({_PYTEST}),
    "OutcomeException": frozenset({_PYTEST}),
}
_CATCHING = frozenset({"raises", "assertRaises", "assertRaisesRegex", "suppress"})
"""Last parts of the names of contexts that catch what they are given."""


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


def _docstring(body: list[ast.stmt]) -> str | None:
    first = body[0] if body else None
    text = string(first.value) if isinstance(first, ast.Expr) else None
    return None if text is None else inspect.cleandoc(text) if "\n" in text else text.expandtabs().lstrip()


def _returns(body: list[ast.stmt], text: Text) -> str | None:
    if len(body) > 2:
        return None
    last = body[-1]
    if len(body) == 2 and not (isinstance(body[0], ast.Expr) and string(body[0].value) is not None):
        return None
    return text.of(last.value) if isinstance(last, ast.Return) and last.value is not None else None


def _leaves_at_once(body: list[ast.stmt], text: Text) -> Iterator[Expression]:
    """Yield the conditions under which nothing is done: statements end by a `return` before that, or all of them stand under an `if`."""
    for node in body:
        if isinstance(node, ast.If) and not node.orelse and _only_returns(node.body):
            yield Expression(text.of(node.test), _guard_name(_Guard(None, node.test)), node.lineno)
        elif isinstance(node, ast.If) and node is body[-1] and (not node.orelse or _only_returns([*node.orelse, ast.Return()])):
            yield Expression(f"not ({text.of(node.test)})", _guard_name(_Guard(None, node.test)), node.lineno)
        elif not _only_prepares(node):
            return


def _only_returns(body: list[ast.stmt]) -> bool:
    """Tell whether statements return nothing, and do no more than to say so."""
    *before, last = body
    is_bare = isinstance(last, ast.Return) and (last.value is None or (isinstance(last.value, ast.Constant) and last.value.value is None))
    return is_bare and all(isinstance(node, ast.Expr) and _says(node.value) for node in before)


def _says(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Call) and _SAYS.search(dotted(node.func)) is not None)


def _only_prepares(node: ast.stmt) -> bool:
    """Tell whether a statement tests nothing: an import, a docstring, or a name that is set to what the machine has, or to a constant."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        calls = [inner for inner in ast.walk(node) if isinstance(inner, ast.Call | ast.Await)]
        return all(isinstance(call, ast.Call) and _ASKS_MACHINE.match(dotted(call.func)) for call in calls)
    return isinstance(node, ast.Import | ast.ImportFrom | ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _only_asks(node: ast.stmt) -> bool:
    """Tell whether a statement, with those inside of it, does no more than to ask what there is, and to say so."""
    if isinstance(node, _FunctionNode | ast.ClassDef | ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Assert) or (isinstance(node, ast.Raise) and (node.exc is None or leading_name(node.exc) not in _SKIPS)):
        return False
    inner = [part for part in ast.iter_child_nodes(node) if not isinstance(part, ast.stmt)]
    calls = [part for each in inner for part in ast.walk(each) if isinstance(part, ast.Call | ast.Await)]
    is_asking = all(isinstance(call, ast.Call) and _is_question(dotted(call.func)) for call in calls)
    return is_asking and all(map(_only_asks, (part for part in ast.walk(node) if isinstance(part, ast.stmt) and part is not node)))


def _is_question(name: str) -> bool:
    if name.rpartition(".")[2].startswith(("assert", "test")):
        return False
    return bool(_ASKS_MACHINE.match(name) or _SAYS.search(name) or _QUESTIONS.search(name) or _ASKS.search(name))


def _is_plain(node: _FunctionNode) -> bool:
    """Tell whether a function only computes what it returns: by assignments to names, conditions, and imports that may fail."""
    body = node.body
    is_made = type(body[-1]) in (ast.If, ast.Try) or (len(body) > 1 and type(body[-1]) is ast.Return)
    is_made &= not node.name.startswith("test") and all(map(_is_cache, node.decorator_list))
    return is_made and _lines(node) <= _LONGEST_PLAIN and all(map(_is_plain_step, body))


def _gives_decorator(node: _FunctionNode) -> bool:
    """Tell whether a function gives one of its own that puts marks on what it gets: `def wrapper(test): return mark(test)`."""
    *body, last = node.body
    name = last.value.id if type(last) is ast.Return and type(last.value) is ast.Name else ""
    inner = [each for each in body if type(each) is ast.FunctionDef]
    if len(inner) != 1 or inner[0].name != name or len(_parameters(inner[0].args)) != 1 or _lines(node) > _LONGEST_PLAIN:
        return False
    return all(map(_is_plain_step, (*(each for each in body if each is not inner[0]), *inner[0].body)))


def _is_plain_step(node: ast.stmt) -> bool:
    return _is_plain_statement(node) or applied(node) is not None


def _gives(draft: _FunctionDraft) -> tuple[str, ...]:
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
    if not is_plain or not returned.isdisjoint(_parameters(draft.node.args)):
        return ()
    defined = [node.name for node in own if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    is_sure = all(name in defined and defined.count(name) == len(draft.bindings()[name]) for name in returned)
    return tuple(sorted(returned)) if is_sure else ()


def _is_cache(decorator: ast.expr) -> bool:
    return dotted(decorator.func if isinstance(decorator, ast.Call) else decorator).rpartition(".")[2] in _CACHES


def _is_plain_statement(node: ast.stmt) -> bool:
    if type(node) is ast.If:
        return all(map(_is_plain_statement, node.body)) and all(map(_is_plain_statement, node.orelse))
    if type(node) is ast.Try:
        handled = [inner for handler in node.handlers for inner in handler.body]
        return all(map(_is_plain_statement, (*node.body, *handled, *node.orelse, *node.finalbody)))
    if type(node) is ast.Expr:
        return type(node.value) is ast.Constant
    return type(node) in _PLAIN


def _set_names(draft: _FunctionDraft, asked: Sequence[Expression], reader: _Reader) -> tuple[tuple[str, str], ...]:
    """Give what a function sets the names to by which it skips a test, or not; empty for one of which only a run can tell what it is."""
    bound = draft.bindings()
    parameters = {name.lstrip("*") for name in _parameters(draft.node.args)}
    around = {name for outer in draft.outers() for name in outer.bindings()} - parameters
    found: dict[str, str] = {}
    texts = [each.text for each in asked]
    for _ in range(_MOST_NAMES):
        names = {root for each in texts for name in _DOTTED.findall(each) for root in (name.partition(".")[0],)} - found.keys()
        values = {name: None if name in parameters or name not in bound else _only(bound[name]) for name in sorted(names)}
        told = {name: value for name, value in values.items() if name in bound or name in around}
        own = {name: value for name, value in told.items() if name not in bound or not reader.is_import(name, bound[name])}
        texts = ["" if value is None else reader.text.of(value) for value in own.values()]
        found |= dict(zip(own, texts, strict=True))
    return tuple(found.items())


def _only(bound: list[Bound]) -> ast.expr | None:
    """Give what a name is set to, when it is bound in one place alone, and to something that nothing changes where it is."""
    value = bound[0] if len(bound) == 1 else None
    return value if isinstance(value, ast.expr) and not may_change(value) else None


def _defaults(arguments: ast.arguments, text: Text) -> tuple[tuple[str, str], ...]:
    named = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(named[::-1], arguments.defaults[::-1], strict=False), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return tuple([(parameter.arg, text.of(value)) for parameter, value in pairs if value is not None])


def _started(call: ast.Call, draft: _FunctionDraft, told: _FunctionDraft, text: Text) -> Expression:
    """Give a call with its arguments; a name that its function sets once is what it is set to.

    Args:
        call: the call.
        draft: the function in which it stands.
        told: the function of which it is told, which is that one or is around it.
        text: of the file.
    """
    is_start = dotted(call.func).rpartition(".")[2] in _SPAWNS or draft is not told

    def of(node: ast.expr) -> str:
        if is_start or (isinstance(node, ast.Name) and _COUNTS.search(node.id)):  # to know all that a function sets takes its time
            node = _set_once(node, draft)
        inner = [each for each in (draft, *draft.outers()) if each is not told and told in each.outers()]
        own = {name for each in inner for name in (*_parameters(each.node.args), *each.bindings())}
        return "" if own and any(type(each) is ast.Name and each.id in own for each in ast.walk(node)) else text.of(node)

    arguments = tuple([of(argument) for argument in call.args])
    keywords = tuple([(keyword.arg or "**", of(keyword.value)) for keyword in call.keywords])
    return Expression(text.of(call), dotted(call.func), call.lineno, arguments, keywords)


def _set_once(node: ast.expr, draft: _FunctionDraft) -> ast.expr:
    """Give what a name is set to, when its function, or one around it, sets it in one place alone; of a loop, what that goes through."""
    for _ in range(_MOST_NAMES):
        name = node.id if isinstance(node, ast.Name) else ""
        holder = next((each for each in (draft, *draft.outers()) if name in each.bindings()), None) if name else None
        if holder is None or name in _parameters(holder.node.args):
            break
        bound = holder.bindings()[name]
        value = _gone_through(name, holder.node) if bound == [None] else _only(bound)
        if value is None:
            break
        node = value
    return node


def _gone_through(name: str, function: _FunctionNode) -> ast.expr | None:
    """Give what a loop of a function goes through that sets a name."""
    loops = (node for node in ast.walk(function) if isinstance(node, ast.For))
    return next((loop.iter for loop in loops if isinstance(loop.target, ast.Name) and loop.target.id == name), None)


def _innermost(call: ast.Call) -> ast.Call:
    """Give the first of calls that are made one of the other: `start(2)` of `start(2)(body)()`."""
    while isinstance(call.func, ast.Call):
        call = call.func
    return call


def _given_to(call: ast.Call) -> Iterator[str]:
    """Yield the last parts of the names that a call is given, or one that makes what it calls, and those that `partial` takes."""
    at: ast.expr = call
    while isinstance(at, ast.Call):
        for each in (*at.args, *(keyword.value for keyword in at.keywords)):
            if isinstance(each, ast.Call) and dotted(each.func).endswith("partial") and each.args:
                yield dotted(each.args[0]).rpartition(".")[2]
            elif isinstance(each, (ast.Name, ast.Attribute)):
                yield dotted(each).rpartition(".")[2]
        at = at.func


def _lines(node: _FunctionNode) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _is_namespace(node: ast.expr) -> bool:
    """Tell whether a node gives the names of a module or a frame: `globals()`, `module.__dict__`, `frame.f_globals`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _NAMESPACES
    return isinstance(node, ast.Attribute) and node.attr in ("__dict__", "f_globals", "f_locals")


def _parametrises(node: ast.expr) -> bool:
    """Tell whether a node is a call of `parametrize`, or applies one."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Call):
        function = function.func
    return isinstance(function, ast.Attribute) and function.attr == "parametrize"


def _makes_cases(node: ast.expr) -> bool:
    """Tell whether a node is a call of a decorator that makes several tests of one: pytest's, or one of `absl.testing.parameterized`."""
    return _parametrises(node) or (isinstance(node, ast.Call) and dotted(node.func).endswith(ABSL))


def _case_marks(decorators: Iterable[ast.expr]) -> tuple[tuple[str, int], ...]:
    """Give the marks of single cases, each with its line: `pytest.param(1, marks=[...])`, `subtest(1, decorators=[...])`.

    One that stands on several lines is left out: no case says which of them is its own.
    """
    found: dict[str, set[int]] = {}
    calls = (decorator for decorator in decorators if _parametrises(decorator))
    for inner in (inner for call in calls for inner in ast.walk(call)):
        if isinstance(inner, ast.keyword) and inner.arg in ("marks", "decorators"):
            for part in written_entries(inner.value):
                found.setdefault(ast.unparse(part), set()).add(part.lineno)
    return tuple((mark, min(lines)) for mark, lines in found.items() if len(lines) == 1)


def _sets_elsewhere(target: ast.expr) -> bool:
    """Tell whether a target is a name in a module or a frame, or an attribute that may be a test: `cls.test_it`."""
    if type(target) is ast.Subscript:
        return _is_namespace(target.value)
    return type(target) is ast.Attribute and type(target.value) is ast.Name and target.attr.startswith("test")


def _sets_by_name(last: str, call: ast.Call) -> bool:
    """Tell whether a call is one of `setattr` whose name may be that of a test."""
    if last != "setattr":
        return False
    name = call.args[1] if len(call.args) > 1 else None
    return type(name) is not ast.Constant or (string(name) or "").startswith("test")


def _hands_on(call: ast.Call, function: _FunctionNode) -> bool:
    """Tell whether a call hands on what a function gives back at its end, as the decorator of a class does that others complete."""
    last = function.body[-1]
    if type(last) is not ast.Return or type(last.value) is not ast.Name:
        return False
    given = last.value.id
    return given in _parameters(function.args) and any(type(each) is ast.Name and each.id == given for each in call.args)


def _of_signature(node: _FunctionNode) -> list[ast.AST]:
    """Give the expressions in a signature: defaults and annotations."""
    signature = node.args
    found: list[ast.AST] = [*signature.defaults]
    arguments = signature.args
    if signature.posonlyargs or signature.kwonlyargs or signature.vararg or signature.kwarg:
        others = [argument for argument in (signature.vararg, signature.kwarg) if argument is not None]
        arguments = [*signature.posonlyargs, *arguments, *signature.kwonlyargs, *others]
        found += [default for default in signature.kw_defaults if default is not None]
    for argument in arguments:
        if argument.annotation is not None:
            found.append(argument.annotation)
    if node.returns is not None:
        found.append(node.returns)
    return found


def _defines(loop: ast.For | ast.AsyncFor) -> bool:
    """Tell whether a loop defines classes, or sets names that no assignment tells."""
    for node in ast.walk(loop):
        if isinstance(node, ast.ClassDef):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            if name in _NAMESPACES or (name == "type" and len(node.args) + len(node.keywords) > 1):
                return True
    return False


def _owners(text: str) -> tuple[str, ...]:
    if "# Owner(s):" not in text[:4096]:
        return ()
    lists = _OWNERS.findall(text[:4096])
    return tuple(dict.fromkeys(double or single for inner in lists for double, single in _QUOTED.findall(inner)))


def _join(outer: str, name: str) -> str:
    return f"{outer}.{name}" if outer else name


def _parameters(arguments: ast.arguments) -> tuple[str, ...]:
    names = [argument.arg for argument in arguments.posonlyargs + arguments.args]
    if arguments.vararg:
        names.append(f"*{arguments.vararg.arg}")
    names += [argument.arg for argument in arguments.kwonlyargs]
    if arguments.kwarg:
        names.append(f"**{arguments.kwarg.arg}")
    return tuple(names)


def _settled(arguments: ast.arguments) -> tuple[str, ...]:
    """Name the parameters that have a default, or that no keyword gives."""
    if not (arguments.defaults or arguments.posonlyargs or arguments.kw_defaults):
        return ()
    named = arguments.args[max(0, len(arguments.args) - len(arguments.defaults)) :] if arguments.defaults else []
    by_keyword = [argument for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value is not None]
    return tuple(argument.arg for argument in (*arguments.posonlyargs, *named, *by_keyword))


def _assignments(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.Name, ast.expr | None]]:
    """Give each name with what it is set to, where the parts of a tuple stand side by side."""
    sides = (ast.Tuple, ast.List)
    if isinstance(target, sides) and isinstance(value, sides) and len(target.elts) == len(value.elts):
        for inner, part in zip(target.elts, value.elts, strict=True):
            yield from _assignments(inner, part)
    else:
        yield from ((name, value) for name in _names(target))


def _names(target: ast.expr) -> Iterator[ast.Name]:
    if isinstance(target, ast.Name):
        yield target
    elif isinstance(target, (ast.Tuple, ast.List)):
        yield from (entry for entry in target.elts if isinstance(entry, ast.Name))


def _parts(node: ast.expr | None) -> Iterable[ast.expr]:
    if node is None:
        return ()
    return node.elts if isinstance(node, ast.Tuple) else (node,)


def _is_flag(node: ast.stmt) -> bool:
    """Tell whether a statement sets something to True or False."""
    return type(node) is ast.Assign and isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool)


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
