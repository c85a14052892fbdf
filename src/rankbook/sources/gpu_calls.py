"""Calls that a function comes to whatever happens, and that fail where there is no GPU: `x.cuda()`, `torch.ones(2, device="cuda")`.

So do calls of the project's own, whose names and needs its settings say. What stands under a condition, in a `try`, or in a context that
may catch or feign something is not sure, and is passed over.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from sys import maxsize
from types import MappingProxyType
from typing import NamedTuple

from rankbook.model import GPU_CALL, NCCL_CALL, RANKS_OWN, Expression
from rankbook.requirements import gpus_of_device
from rankbook.sources.mentions import Mention
from rankbook.sources.text import Text, dotted, string
from rankbook.sources.torch_modules import Modules
from rankbook.vocabulary import find

WORDS = (
    "cuda", "nccl", "self.dev",
    *(f"{call}{owner}{name}" for call in (".to(", "device(", "device=") for owner in ("", "self.") for name in ("rank", "local_rank")),
)  # fmt: skip
"""Of a file without these there is nothing to say."""
_ATTRIBUTE = re.compile(r"\bself\.dev\w*")
"""An attribute that may be a device."""
_NCCL = "init_process_group"
"""Last part of the name of what joins a process group of NCCL."""
_STARTS = frozenset({"spawn", "start_processes"})
"""Last parts of the names of what runs its first argument in other processes, and fails when one of them does."""
_CUDA = frozenset({
    "set_device", "synchronize", "current_device", "current_stream", "default_stream", "Stream", "Event", "CUDAGraph",
    "get_device_properties", "get_device_capability", "get_device_name", "mem_get_info",
})  # fmt: skip
"""Functions and classes of `torch.cuda` that do not work without a GPU."""
_NO_PLACES = frozenset({"Event", "CUDAGraph"})
"""Those of them whose first argument is no device."""
_SET_UP = ("setup", "asyncsetup")
"""How the names of methods before each test begin, without `_` and in lower case."""
_NO_FACTORIES = frozenset({"torch.device", "torch.autocast", "torch.compile", "torch.load", "torch.get_device_module"})
"""Functions of `torch` that take a device and put nothing there."""
_MOVES = frozenset({"device", "non_blocking", "memory_format"})
"""Keywords of the methods that move a tensor or a module to a GPU."""
_PLAIN_CONTEXTS = frozenset({
    "no_grad", "enable_grad", "inference_mode", "set_grad_enabled", "autocast", "subTest", "catch_warnings", "device", "stream",
    "TemporaryDirectory", "profile", "nullcontext", "use_deterministic_algorithms",
})  # fmt: skip
"""Contexts whose body runs, on tensors that are real, and whose errors are not caught."""
FEIGNING = ("monkeypatch", "mocker", "mock", "Mock", "MagicMock", "patch")
"""Words of what puts something else in the place of what is there."""
FEIGNS = re.compile(rf"(?<!config\.)\b(?:{'|'.join(FEIGNING)})\b(?!\.(?:setenv|delenv|chdir|syspath_prepend)\()")
"""What may put something else in the place of a GPU; the `config.patch` of torch's compilers does not, nor does another environment."""
_LEAVES = re.compile(rf"\b(?:return|break|continue)\b|{FEIGNS.pattern}")
"""What may end the statements that are sure to be run."""
_YIELDS = re.compile(r"\byield\b")
_COMPOUND = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
_LONGEST = 60
"""Characters of a call that is told with its arguments."""
_EMPTIES = (".clear", ".pop", ".remove")
"""Ends of the names of methods after which a list may be empty."""
_DEPTH = 3
"""Functions that are followed from one to the next."""
_OF_CASE = maxsize
"""GPUs of a parameter that a case sets: as many as its value says."""
_OF_RANK = maxsize - 1
"""GPUs of what each rank takes one of its own: as many as there are ranks."""
_RANK = re.compile(r"(?:\w+\.)*_?(?:local_|global_)?rank")
"""Names of a rank, where an index of a GPU is to stand."""
_RANK_CALLS = re.compile(r"(?:\w+\.)*get_(?:local_)?rank")
"""Functions that give it."""
_RANK_SETTING = re.compile(r"(?:os\.)?(?:environ(?:\.get)?|getenv)[\[(]['\"](?:LOCAL_)?RANK['\"]")
"""What a launcher has set for it."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Placed = ast.stmt | ast.expr
_Devices = Mapping[str, int]
"""Names that stand for a GPU, with how many there must be for it: 2 for `cuda:1`."""
_NO_DEVICES: _Devices = MappingProxyType({})


_MODULE = ast.FunctionDef("", ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[]), [], [], lineno=0)
"""Stands for the statements of a module."""


class _Sure(NamedTuple):
    """A call that a function comes to."""

    call: ast.Call
    gpus: int = 1
    """How many there must be, where it needs GPUs."""


_Found = tuple[_Sure, ...]


class Taught:
    """Names of the project's own whose calls need something.

    Args:
        names: as the settings have them: ends of dotted names.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = dict.fromkeys(names, "")
        self._words = frozenset(name.rpartition(".")[2] for name in self._names)

    def words(self, text: str) -> tuple[str, ...]:
        """Give the words that a line of a text has which calls one of them."""
        return tuple(sorted(word for word in self._words if word in text))

    def find(self, name: str) -> str | None:
        """Give the longest end of a dotted name that is one of them."""
        return find(self._names, name)


NOTHING_TAUGHT = Taught()


class Held(NamedTuple):
    """A function of a file."""

    holder: str
    """Qualified name of its class; empty where it has none."""
    node: _Function

    @property
    def qualname(self) -> str:
        """Its own qualified name."""
        return f"{self.holder}.{self.node.name}" if self.holder else self.node.name


class GpuCalls:
    """What the functions of a file come to.

    Args:
        text: of the file.
        tree: its statements.
        functions: those of the module and of its classes.
        mentions: what its scopes call of what the file itself defines.
        resolve: gives the full name of a dotted one, by what the file imports.
        taught: names of the project's own.
    """

    def __init__(  # noqa: PLR0913 - one argument for each thing that is known of the file
        self,
        text: Text,
        tree: ast.Module,
        functions: Iterable[Held],
        mentions: Iterable[Mention],
        resolve: Callable[[str], str],
        *,
        taught: Taught = NOTHING_TAUGHT,
    ) -> None:
        self.resolve = resolve
        self._taught = taught
        self._functions: dict[tuple[str, str], list[Held]] = {}
        self._methods: dict[str, list[Held]] = {}
        for each in functions:
            self._functions.setdefault((each.holder, each.node.name), []).append(each)
            if each.holder:
                self._methods.setdefault(each.node.name, []).append(each)
        self.classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        self.namespaces = frozenset({*_imported(tree), *self.classes}) - _assigned_in(tree)
        """Names of modules and classes: what they have is no tensor."""
        self._constants = _constants(tree, resolve)
        self.filled = _filled(tree)
        self._own = taught.words(text.source)
        self._lines = sorted(_lines_with([*WORDS, *self._constants, *self._own], text.source))
        self._callers = self._callers_of_telling(mentions)
        self._attributes = tuple(dict.fromkeys(_ATTRIBUTE.findall(text.source)))
        self._text = text
        self._may_feign = any(word in text.source for word in FEIGNING)
        self._is_feigned = any(self.feigns(node) and self.tells(node) for node in self._before_tests())
        """Whether a fixture or a set-up of the file puts something in the place of a GPU, for whichever of its tests."""
        self._known: dict[tuple[ast.AST, frozenset[tuple[str, int]]], _Found] = {}
        self._above = 0

    def _callers_of_telling(self, mentions: Iterable[Mention]) -> frozenset[str]:
        """Give the functions that may call one that has a word of GPUs, by their qualified names."""
        held = {each.qualname: each for found in self._functions.values() for each in found}
        telling = {name for name, each in held.items() if self.tells(each.node)}
        called = [(_function_of(scope, held), name.rpartition(".")[2]) for _, _, name, scope in mentions] if telling else []
        callers: frozenset[str] = frozenset()
        for _ in range(_DEPTH):
            names = {held[name].node.name for name in telling | callers}
            more = frozenset(caller for caller, name in called if name in names and caller)
            if more <= callers:
                break
            callers |= more
        return callers

    def _before_tests(self) -> Iterator[_Function]:
        for each in (held for found in self._functions.values() for held in found) if self._may_feign else ():
            decorated = any(_name(decorator).rpartition(".")[2] == "fixture" for decorator in each.node.decorator_list)
            if decorated or each.node.name.lower().replace("_", "").startswith(_SET_UP):
                yield each.node

    def told(self, held: Held) -> tuple[Expression, ...]:
        """Tell the first call that needs the most GPUs, the first that needs NCCL, and the first of each name of the project's own.

        The keyword `gpus` says how many a call needs. One that needs a GPU where a parameter of the test names one, or an attribute of its
        class, has the name of that for its argument, `device` or `self.device`, and for its keyword where the value says how many.
        """
        if self._is_feigned:
            return ()
        sure = [self._told(each) for each in self.of(held, self.by_default(held.node))]
        return (*sure, *(self._told(each, name) for name, each in self._named(held)))

    def of_import(self, body: Iterable[ast.stmt]) -> tuple[Expression, ...]:
        """Tell the same of what an import of the file runs: its statements, those of its classes, and decorators.

        Args:
            body: statements of the module.
        """
        if self._is_feigned or not self._lines:
            return ()
        walk = _Walk(self, Held("", _MODULE), {}, calls=True)
        walk.statements(self._run_by_import(body))
        return tuple(self._told(each) for each in walk.found.values())

    def _run_by_import(self, body: Iterable[ast.stmt], *, is_module: bool = True) -> Iterator[ast.stmt]:
        for node in body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                continue
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                decorators = (each for each in node.decorator_list if self.tells(each) and not self.feigns(each))
                yield from (_alone(part) for each in decorators for part in _arguments(each))
            if isinstance(node, ast.ClassDef):
                yield from self._run_by_import(node.body, is_module=False)
            if is_module:
                yield node
            elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.Expr)) and node.value is not None and self.tells(node):
                yield _alone(node.value)

    def _told(self, sure: _Sure, parameter: str = "") -> Expression:
        call, short = sure.call, self._short(sure.call)
        if self.own(dotted(call.func)) is not None:
            return self._text.expression(call)._replace(text=short)
        name = NCCL_CALL if _joins(call, dotted(call.func)) else GPU_CALL
        gpus = {_OF_CASE: parameter, _OF_RANK: RANKS_OWN}.get(sure.gpus, str(sure.gpus))
        return Expression(short, name, call.lineno, (parameter,) if parameter else (), (("gpus", gpus),))

    def _named(self, held: Held) -> Iterator[tuple[str, _Sure]]:
        """Yield the names whose values decide whether a function needs a GPU, each with the first such call."""
        for name in [] if self._is_feigned_for(held) else [*_device_parameters(held.node), *self._attributes_of(held)]:
            walk = _Walk(self, held, {name: _OF_CASE}, calls="." in name)
            walk.statements(held.node.body)
            if GPU_CALL in walk.found:
                yield name, walk.found[GPU_CALL]

    def _attributes_of(self, held: Held) -> tuple[str, ...]:
        """Name the attributes of the file's classes that a method may take for a device."""
        return self._attributes if held.holder and (held.qualname in self._callers or self.tells(held.node)) else ()

    def own(self, name: str) -> str | None:
        """Give the name of the project's own that a call of a dotted name is of."""
        return self._taught.find(self.resolve(name)) if name and self._own else None

    def kind(self, call: ast.Call) -> str:
        """Give what a call is told once of, that needs something."""
        name = dotted(call.func)
        return self.own(name) or (NCCL_CALL if _joins(call, name) else GPU_CALL)

    def _short(self, call: ast.Call) -> str:
        written = self._text.of(call)
        if len(written) <= _LONGEST:
            return written
        last = f"….{call.func.attr}" if isinstance(call.func, ast.Attribute) else "…"
        return f"{dotted(call.func) or last}(…)"

    def of(self, held: Held, devices: _Devices = _NO_DEVICES) -> _Found:
        """Give these calls themselves.

        Args:
            held: the function.
            devices: those of its parameters that stand for a GPU.
        """
        node, key = held.node, (held.node, frozenset(devices.items()))
        known = self._known.get(key)
        if known is None:
            calls = held.qualname in self._callers
            if not (calls or devices or self.tells(node)):
                known = ()
            elif self._above > _DEPTH:
                return ()
            else:
                self._known[key] = ()  # calls of itself come to nothing else
                self._above += 1
                known = self._found(held, devices, calls=calls)
                self._above -= 1
            self._known[key] = known
        return known

    def _found(self, held: Held, devices: _Devices, *, calls: bool) -> _Found:
        if self._is_feigned_for(held):
            return ()
        walk = _Walk(self, held, {**_without(self._constants, _parameters(held.node)), **devices}, calls=calls)
        walk.statements(held.node.body)
        return tuple(walk.found.values())

    def by_default(self, node: _Function, given: Iterable[str] = ()) -> _Devices:
        """Give the parameters that stand for a GPU where a call does not give them: `device="cuda"`."""
        if not (node.args.defaults or node.args.kw_defaults) or not self.tells(node):
            return _NO_DEVICES
        named = [*node.args.posonlyargs, *node.args.args]
        pairs = [*zip(named[::-1], node.args.defaults[::-1], strict=False), *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
        counted = {each.arg: _gpus_of_string(default) for each, default in pairs}
        return _without({name: gpus for name, gpus in counted.items() if gpus}, given)

    def _is_feigned_for(self, held: Held) -> bool:
        around = self.classes.get(held.holder)
        return any(map(self.feigns, [*held.node.decorator_list, *(around.decorator_list if around else ())]))

    def called(self, name: str) -> Held | None:
        """Find the function that a name means; None where it may be another one.

        Args:
            name: as it is called: `make`, `self.make`, `Maker.make`.
        """
        owner, _, last = name.rpartition(".")
        found = self._methods.get(last, []) if owner in ("self", "cls") else self._functions.get((owner, last), [])
        return found[0] if len(found) == 1 else None

    def tells(self, node: _Placed) -> bool:
        """Tell whether a node has a word of GPUs."""
        place = bisect_left(self._lines, node.lineno)
        return place < len(self._lines) and self._lines[place] <= (node.end_lineno or node.lineno)

    def feigns(self, node: _Placed) -> bool:
        """Tell whether a node may put something else in the place of a GPU."""
        return self._may_feign and self._holds(node, FEIGNS)

    def leaves(self, node: _Placed) -> bool:
        """Tell whether what follows a node may not be run."""
        return self._holds(node, _LEAVES)

    def yields(self, node: _Placed) -> bool:
        """Tell whether to call a function does not yet run it."""
        return self._holds(node, _YIELDS)

    def _holds(self, node: _Placed, pattern: re.Pattern[str]) -> bool:
        return any(map(pattern.search, self._text.lines(node)))


class _Walk:
    """Goes along the statements of a function that are sure to be run.

    Args:
        file: finds what is called.
        held: the function.
        devices: names that stand for a GPU.
        calls: whether it may call, where it has no word of GPUs itself, what has one.
        depth: functions that are yet followed.
    """

    def __init__(self, file: GpuCalls, held: Held, devices: _Devices, *, calls: bool, depth: int = _DEPTH) -> None:
        self.found: dict[str, _Sure] = {}
        """By what each is told once of."""
        self._file = file
        self._held = held
        self._calls = calls
        self._devices = dict(devices)
        self._depth = depth
        self._inner: dict[str, _Function] = {}
        self._classes: dict[str, ast.ClassDef] = {}
        self._modules: dict[str, bool] = {}
        """Names that stand for modules: whether each has something to move."""
        self._set_here: set[str] = set()
        """Names that the function sets, so that they say nothing by themselves."""
        self._filled: set[str] = set()
        """Names that stand for lists that are not empty."""
        self._left = False

    def statements(self, body: Iterable[ast.stmt]) -> None:
        """Go along statements, until one may leave the function."""
        for node in body:
            if self._left:
                return
            self._statement(node)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef):
            self._inner[node.name] = node
        elif isinstance(node, ast.ClassDef):
            self._classes[node.name] = node
        elif isinstance(node, _COMPOUND):
            self._compound(node)
        elif not isinstance(node, ast.AsyncFunctionDef):
            self._simple(node)

    def _simple(self, node: ast.stmt) -> None:
        self._left = self._file.feigns(node)
        if not self._left and self._is_worth(node):
            self._expressions(child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
        self._left = self._left or isinstance(node, (ast.Return, ast.Raise))
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name, value in _named(target, node.value):
                    self._set(name, self._gpus(value))
                    self._name_module(name, self._has_any(value))
                    if isinstance(value, (ast.List, ast.Tuple)) and _is_run(value):
                        self._filled.add(name)

    def _set(self, name: str, gpus: int) -> None:
        self._set_here.add(name)
        self._filled.discard(name)
        self._devices.pop(name, None)
        if gpus:
            self._devices[name] = gpus

    def _compound(self, node: ast.stmt) -> None:
        """Go past a statement of which only some parts are sure to be run."""
        if self._is_worth(node):
            heads = [child for child in ast.iter_child_nodes(node) if isinstance(child, (ast.expr, ast.withitem))]
            self._expressions(head.context_expr if isinstance(head, ast.withitem) else head for head in heads)
            self._set_anew(node.target if isinstance(node, (ast.For, ast.AsyncFor)) else None)
            self.statements(node.body if isinstance(node, (ast.For, ast.AsyncFor)) and self._has_round(node.iter) else _sure(node))
            if isinstance(node, ast.If) and node.orelse:
                self._both(node)
        self._set_anew(node)
        self._left = self._left or self._file.leaves(node)

    def _both(self, node: ast.If) -> None:
        """Take what both sides of a condition come to."""
        found = [self._side(node.body), self._side(node.orelse)]
        for kind, each in found[0].items():
            if kind in found[1]:
                self._take(kind, _lesser(each, found[1][kind]))

    def _take(self, kind: str, sure: _Sure) -> None:
        """Keep of two calls of a kind the one that needs more GPUs, and the first where they need as many."""
        self.found[kind] = max(self.found.get(kind, sure), sure, key=_gpus)

    def _side(self, body: list[ast.stmt]) -> dict[str, _Sure]:
        walk = _Walk(self._file, self._held, self._devices, calls=self._calls, depth=self._depth)
        walk._inner, walk._classes, walk._modules = dict(self._inner), dict(self._classes), dict(self._modules)
        walk._set_here, walk._filled = set(self._set_here), set(self._filled)
        walk.statements(body)
        return walk.found

    def _has_round(self, iterated: ast.expr) -> bool:
        """Tell whether a name that is gone through stands for a list that is not empty."""
        name = iterated.id if isinstance(iterated, ast.Name) else ""
        is_own = name in self._set_here or name in _parameters(self._held.node)
        return name in self._filled or (name in self._file.filled and not is_own)

    def _is_worth(self, node: ast.stmt) -> bool:
        """Tell whether a statement may have such a call."""
        return self._calls or bool(self._devices) or self._file.tells(node)

    def _set_anew(self, node: ast.AST | None) -> None:
        """Forget what names stand for that something sets which is not sure to be run, or runs several times."""
        if node is None or not (self._modules or self._devices or self._filled):
            return
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                self._set(inner.id, 0)
                self._modules.pop(inner.id, None)

    def _expressions(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            for call in _calls(node):
                self._call(call)

    def _call(self, call: ast.Call) -> None:
        name = dotted(call.func)
        self._filled.difference_update([name.rpartition(".")[0]] if name.endswith(_EMPTIES) else ())
        gpus = 1 if self._file.own(name) is not None or _joins(call, name) else self._gpus_of_call(call, name)
        if gpus:
            self._take(self._file.kind(call), _Sure(call, gpus))
        elif self._depth:
            self._follow(call, name)

    def _gpus_of_call(self, call: ast.Call, name: str) -> int:
        """Count the GPUs without which a call fails, as far as it names them; 0 for one that may do without."""
        function, first = call.func, next(iter(call.args), None)
        if isinstance(function, ast.Attribute):
            place = first or _keyword(call, "device")
            gpus = int(self._is_moved(call, function)) if function.attr == "cuda" else self._gpus(place) if function.attr == "to" else 0
            if gpus:
                return 0 if self._has_any(function.value) is False else max(gpus, self._placed(place))
            if function.attr == "from_pretrained":
                return self._gpus(_keyword(call, "device_map"))
        full = self._file.resolve(name) if name else ""
        if full.startswith("torch.cuda."):
            last = full.removeprefix("torch.cuda.")
            place = None if last in _NO_PLACES else first or _keyword(call, "device")
            return max(1, self._placed(place)) if last in _CUDA else 0
        is_factory = full.startswith(("torch.nn.", "torch.testing.")) or (full.startswith("torch.") and full.count(".") == 1)
        return self._gpus(_keyword(call, "device")) if is_factory and full not in _NO_FACTORIES else 0

    def _is_moved(self, call: ast.Call, function: ast.Attribute) -> bool:
        """Tell whether `x.cuda()` may move a tensor or a module: not where a module or a class has a function of that name."""
        if any(keyword.arg not in (None, *_MOVES) for keyword in call.keywords):
            return False
        name = function.value.id if isinstance(function.value, ast.Name) else ""
        return name not in self._file.namespaces or name in _assigned_in(self._held.node) or name in _parameters(self._held.node)

    def _placed(self, node: ast.AST | None) -> int:
        """Count the GPUs that must be there for what stands for one, or for its index: 2 for `1`."""
        return _gpus_of_index(node) or self._gpus(node)

    def _gpus(self, node: ast.AST | None) -> int:
        """Count the GPUs that must be there for what an expression names: `"cuda"`, `f"cuda:{rank}"`, `torch.device("cuda", 1)`.

        A name may stand for one of these. What names no GPU gives 0.
        """
        if isinstance(node, ast.JoinedStr):
            rest = node.values[1:]
            is_of_rank = len(rest) == 1 and isinstance(rest[0], ast.FormattedValue) and self._is_rank(rest[0].value)
            return self._gpus(next(iter(node.values), None)) and (_OF_RANK if is_of_rank else 1)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._devices.get(dotted(node), 0) or (_OF_RANK if self._is_rank(node) else 0)
        if isinstance(node, ast.Call):
            is_device = self._file.resolve(dotted(node.func)) == "torch.device"
            return _gpus_of_made(node, self._gpus, self._placed) if is_device else _OF_RANK if self._is_rank(node) else 0
        return _gpus_of_string(node)

    def _is_rank(self, node: ast.AST | None) -> bool:
        """Tell whether an expression is the number of the rank that comes to it, as far as names tell that."""
        if isinstance(node, (ast.Name, ast.Attribute)):
            name = dotted(node)
            known = self._devices.get(name)
            return known == _OF_RANK if known or name in self._set_here else _RANK.fullmatch(name) is not None
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            if name == "int":
                return bool(node.args) and _RANK_SETTING.match(ast.unparse(node.args[0])) is not None
            return _RANK_CALLS.fullmatch(name) is not None
        return False

    def _has_any(self, node: ast.AST | None) -> bool | None:
        """Tell whether an expression is a module with something to move; None where that is not seen."""
        return Modules(self._file.resolve, ChainMap(self._classes, self._file.classes)).has_any(node, self._modules)

    def _name_module(self, name: str, has_any: bool | None) -> None:  # noqa: FBT001 - what is known of it
        self._modules.pop(name, None)
        if has_any is not None:
            self._modules[name] = has_any

    def _follow(self, call: ast.Call, name: str) -> None:
        is_start = name.rpartition(".")[2] in _STARTS and bool(call.args)
        if is_start:
            name = dotted(call.args[0])
        inner = self._inner.get(name)
        held = self._file.called(name) if inner is None else Held(self._held.holder, inner)
        if held is None or isinstance(held.node, ast.AsyncFunctionDef) or self._file.yields(held.node):
            return
        given = _of_first(held.node) if is_start else self._given(call, held.node)
        if name.startswith("self."):
            given = {**given, **{device: gpus for device, gpus in self._devices.items() if device.startswith("self.")}}
        if inner is None:
            found: Iterable[_Sure] = self._file.of(held, given)
        else:
            own = set(_parameters(inner))
            devices = {**_without(self._devices, own), **given}
            walk = _Walk(self._file, self._held, devices, calls=self._calls, depth=self._depth - 1)
            walk._classes = self._classes
            walk._modules = {name: self._modules[name] for name in self._modules.keys() - own}
            walk._set_here = self._set_here - own
            walk.statements(inner.body)
            found = walk.found.values()
        for each in found:
            self._take(self._file.kind(each.call), each)

    def _given(self, call: ast.Call, node: _Function) -> _Devices:
        """Give the parameters of a function that stand for a GPU in a call of it."""
        named = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
        if named[:1] in (["self"], ["cls"]):
            named = named[1:]
        if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
            return _NO_DEVICES
        given = [*zip(named, call.args, strict=False), *((each.arg or "", each.value) for each in call.keywords)]
        said = {name: gpus for name, value in given if (gpus := self._gpus(value))}
        return {**said, **self._file.by_default(node, (name for name, _ in given))}


def _of_first(node: _Function) -> _Devices:
    """Give what a function that is run in other processes gets for its first parameter: the number of its process."""
    named = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    return {named[0]: _OF_RANK} if named else _NO_DEVICES


def _arguments(node: ast.expr) -> list[ast.expr]:
    """Give what a decorator is called with: itself it makes nothing."""
    return [*node.args, *(each.value for each in node.keywords)] if isinstance(node, ast.Call) else []


def _alone(node: ast.expr) -> ast.stmt:
    """Make an expression a statement, where it stands."""
    return ast.copy_location(ast.Expr(node), node)


def _gpus(sure: _Sure) -> int:
    return sure.gpus


def _lesser(one: _Sure, other: _Sure) -> _Sure:
    """Give of two calls the one that needs fewer GPUs: just one where the value of a parameter says how many one of them needs."""
    fewer, more = sorted((one, other), key=_gpus)
    return fewer if more.gpus < _OF_CASE or fewer.gpus == _OF_CASE else fewer._replace(gpus=1)


def _gpus_of_made(call: ast.Call, gpus: Callable[[ast.AST | None], int], placed: Callable[[ast.AST | None], int]) -> int:
    """Count the GPUs that must be there for a device that a call makes: 2 for `torch.device("cuda", 1)`.

    Args:
        call: of `torch.device`.
        gpus: counts those of a device.
        placed: counts those of the index of one.
    """
    named = gpus(next(iter(call.args), None))
    index = call.args[1] if len(call.args) > 1 else _keyword(call, "index")
    return named and max(named, placed(index))


def _gpus_of_string(node: ast.AST | None) -> int:
    return gpus_of_device(string(node) or "")


def _gpus_of_index(node: ast.AST | None) -> int:
    """Count the GPUs that must be there for the index of one; 0 for what is not written as a number."""
    index = node.value if isinstance(node, ast.Constant) else None
    return index + 1 if isinstance(index, int) and not isinstance(index, bool) else 0


def _sure(node: ast.stmt) -> Iterable[ast.stmt]:
    """Give the statements inside a compound one that run with it."""
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return node.body if all(_name(item.context_expr).rpartition(".")[2] in _PLAIN_CONTEXTS for item in node.items) else ()
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return node.body if _is_run(node.iter) else ()
    if isinstance(node, (ast.Try, ast.TryStar)):
        return node.finalbody if node.handlers else (*node.body, *node.finalbody)
    return ()


def _calls(node: ast.AST | None) -> Iterator[ast.Call]:
    """Yield the calls in an expression that are made whatever its values are."""
    stack = [node] if node is not None else []
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Call):
            yield node
        stack += reversed(_parts(node))


def _parts(node: ast.AST) -> list[ast.AST]:
    """Give what of an expression is sure to be evaluated with it."""
    if isinstance(node, (ast.Name, ast.Constant, ast.Lambda)):
        return []
    if isinstance(node, ast.Attribute):
        return [node.value]
    if isinstance(node, ast.IfExp):
        return [node.test]
    if isinstance(node, ast.BoolOp):
        return [node.values[0]]
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return [node.generators[0].iter, *_parts_of_rounds(node)]
    return list(ast.iter_child_nodes(node))


def _parts_of_rounds(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> list[ast.AST]:
    """Give what a comprehension is sure to evaluate at least once, where that goes to the same device each time."""
    first = node.generators[0]
    if isinstance(node, ast.GeneratorExp) or len(node.generators) > 1 or first.ifs or not _is_run(first.iter):
        return []
    made: list[ast.AST] = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    own = {each.id for each in ast.walk(first.target) if isinstance(each, ast.Name)}
    places = (place for part in made for call in ast.walk(part) if isinstance(call, ast.Call) for place in _places(call))
    return [] if any(isinstance(each, ast.Name) and each.id in own for place in places for each in ast.walk(place)) else made


def _places(call: ast.Call) -> Iterator[ast.expr]:
    """Yield what a call may be given as a device."""
    yield from (keyword.value for keyword in call.keywords if keyword.arg == "device")
    if isinstance(call.func, ast.Attribute):
        yield from (call.func.value, *(call.args if call.func.attr in ("to", "cuda") else ()))


def _joins(call: ast.Call, name: str) -> bool:
    """Tell whether a call joins a process group of NCCL."""
    return name.endswith(_NCCL) and string(next(iter(call.args), None) or _keyword(call, "backend")) == "nccl"


def _name(node: ast.AST) -> str:
    return dotted(node.func if isinstance(node, ast.Call) else node)


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _is_run(iterated: ast.expr) -> bool:
    """Tell whether a loop has a first round: over a list that is written out, or over a range of a number."""
    if isinstance(iterated, ast.Call) and _name(iterated.func) in ("range", "enumerate") and iterated.args:
        first = iterated.args[0]
        return _is_run(first) if len(iterated.args) == 1 and not isinstance(first, ast.Constant) else _is_positive(iterated)
    return isinstance(iterated, (ast.Tuple, ast.List, ast.Set)) and bool(iterated.elts) and not isinstance(iterated.elts[0], ast.Starred)


def _is_positive(call: ast.Call) -> bool:
    value = call.args[0].value if len(call.args) == 1 and isinstance(call.args[0], ast.Constant) else None
    return isinstance(value, int) and value > 0


def _parameters(node: _Function) -> Iterator[str]:
    yield from (each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg))


def _device_parameters(node: _Function) -> list[str]:
    """Give the parameters of a test that `parametrize` sets, and whose names are those of a device."""
    marks = (each for each in node.decorator_list if isinstance(each, ast.Call) and each.args and _name(each).endswith("parametrize"))
    said = (each for mark in marks for each in getattr(mark.args[0], "elts", mark.args[:1]))
    names = (name.strip() for each in said for name in (string(each) or "").split(","))
    own = set(_parameters(node))
    return [name for name in dict.fromkeys(names) if "dev" in name and name in own]


def _without(devices: _Devices, names: Iterable[str]) -> _Devices:
    others = set(names)
    return {name: gpus for name, gpus in devices.items() if name not in others}


def _imported(tree: ast.Module) -> Iterator[str]:
    """Yield the names that the imports of modules at the top of a file bind."""
    for node in tree.body:
        for each in (node, *(inner for inner in ast.walk(node) if isinstance(node, (ast.If, ast.Try)))):
            if isinstance(each, ast.Import):
                yield from (alias.asname or alias.name.partition(".")[0] for alias in each.names)


def _assigned_in(around: ast.AST) -> frozenset[str]:
    """Name what statements set, of a file what stands in none of its functions."""
    waiting, found = list(ast.iter_child_nodes(around)), set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
    return frozenset(found)


def _constants(tree: ast.Module, resolve: Callable[[str], str]) -> _Devices:
    """Give the names of a module that stand for a GPU, of those that are set once."""
    found: dict[str, int] = {}
    for node in tree.body:
        for name, value in _named(node.targets[0], node.value) if isinstance(node, ast.Assign) and len(node.targets) == 1 else ():
            made = value if isinstance(value, ast.Call) and resolve(_name(value.func)) == "torch.device" else None
            counted = _gpus_of_string(value) if made is None else _gpus_of_made(made, _gpus_of_string, _gpus_of_index)
            found[name] = 0 if name in found else counted
    return {name: gpus for name, gpus in found.items() if gpus}


def _filled(tree: ast.Module) -> frozenset[str]:
    """Give the names of a module that stand for lists that are not empty, of those that are set once."""
    pairs = [pair for node in tree.body if isinstance(node, ast.Assign) for each in node.targets for pair in _named(each, node.value)]
    times = Counter(name for name, _ in pairs)
    return frozenset(name for name, value in pairs if times[name] == 1 and isinstance(value, (ast.List, ast.Tuple)) and _is_run(value))


def _named(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the names that an assignment sets, each with its value; None for one that is not written there."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)):
        given = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        is_clear = len(given) == len(target.elts) and not any(isinstance(each, ast.Starred) for each in (*given, *target.elts))
        for number, each in enumerate(target.elts):
            yield from _named(each, given[number] if is_clear else None)


def _function_of(scope: str, held: Mapping[str, Held]) -> str:
    """Give the function of a class or module in which a scope lies; empty for one that lies in none."""
    while scope and scope not in held:
        scope = scope.rpartition(".")[0]
    return scope


def _lines_with(words: Iterable[str], text: str) -> set[int]:
    found = set()
    for word in words:
        line, place, last = 1, text.find(word), 0
        while place >= 0:
            line += text.count("\n", last, place)
            found.add(line)
            end = text.find("\n", place)
            last, place = place, text.find(word, end) if end >= 0 else -1
    return found
