"""Calls that a function comes to whatever happens, and that fail where there is no GPU: `x.cuda()`, `torch.ones(2, device="cuda")`.

So do calls of the project's own, whose names and needs its settings say. What stands under a condition, in a `try`, or in a context that
may catch or feign something is not sure, and is passed over.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from rankbook.model import GPU_CALL, NCCL_CALL, Expression
from rankbook.sources.mentions import Mention
from rankbook.sources.text import Text, dotted, string
from rankbook.sources.torch_modules import Modules
from rankbook.vocabulary import find

WORDS = ("cuda", "nccl")
"""Of a file without these there is nothing to say."""
_NCCL = "init_process_group"
"""Last part of the name of what joins a process group of NCCL."""
_STARTS = frozenset({"spawn", "start_processes"})
"""Last parts of the names of what runs its first argument in other processes, and fails when one of them does."""
_CUDA = frozenset({
    "set_device", "synchronize", "current_device", "current_stream", "default_stream", "Stream", "Event", "CUDAGraph",
    "get_device_properties", "get_device_capability", "get_device_name", "mem_get_info",
})  # fmt: skip
"""Functions and classes of `torch.cuda` that do not work without a GPU."""
_SET_UP = ("setup", "asyncsetup")
"""How the names of methods before each test begin, without `_` and in lower case."""
_NO_FACTORIES = frozenset({"torch.device", "torch.autocast", "torch.compile", "torch.load"})
"""Functions of `torch` that take a device and put nothing there."""
_PLAIN_CONTEXTS = frozenset({
    "no_grad", "enable_grad", "inference_mode", "set_grad_enabled", "autocast", "subTest", "catch_warnings", "device", "stream",
    "TemporaryDirectory", "profile", "nullcontext", "use_deterministic_algorithms",
})  # fmt: skip
"""Contexts whose body runs, on tensors that are real, and whose errors are not caught."""
FEIGNING = ("monkeypatch", "mocker", "mock", "Mock", "MagicMock", "patch")
"""Words of what puts something else in the place of what is there."""
FEIGNS = re.compile(rf"(?<!config\.)\b(?:{'|'.join(FEIGNING)})\b")
"""What may put something else in the place of a GPU; the `config.patch` of torch's compilers does not."""
_LEAVES = re.compile(rf"\b(?:return|break|continue)\b|{FEIGNS.pattern}")
"""What may end the statements that are sure to be run."""
_YIELDS = re.compile(r"\byield\b")
_COMPOUND = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
_LONGEST = 60
"""Characters of a call that is told with its arguments."""
_DEPTH = 3
"""Functions that are followed from one to the next."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Placed = ast.stmt | ast.expr
_Found = tuple[ast.Call, ...]


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
        self._constants = _constants(tree, resolve)
        self._own = taught.words(text.source)
        self._lines = sorted(_lines_with([*WORDS, *self._constants, *self._own], text.source))
        self._callers = self._callers_of_telling(mentions)
        self._text = text
        self.most = 1 + ("nccl" in text.source) + len(self._own)
        """Calls to be found in a function."""
        self._may_feign = any(word in text.source for word in FEIGNING)
        self._is_feigned = any(self.feigns(node) and self.tells(node) for node in self._before_tests())
        """Whether a fixture or a set-up of the file puts something in the place of a GPU, for whichever of its tests."""
        self._known: dict[tuple[ast.AST, frozenset[str]], _Found] = {}
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
        """Tell the first call that needs a GPU, the first that needs NCCL, and the first of each name of the project's own.

        A call that needs a GPU where a parameter of the test names one has the parameter's name for its argument.
        """
        if self._is_feigned:
            return ()
        sure = tuple([self._told(call) for call in self.of(held, self.by_default(held.node))])
        if any(call.name in (GPU_CALL, NCCL_CALL) for call in sure):
            return sure
        return (*sure, *(Expression(self._short(call), GPU_CALL, call.lineno, (name,)) for name, call in self._parametrised(held)))

    def _told(self, call: ast.Call) -> Expression:
        if self.own(dotted(call.func)) is not None:
            return self._text.expression(call)._replace(text=self._short(call))
        return Expression(self._short(call), NCCL_CALL if _joins(call, dotted(call.func)) else GPU_CALL, call.lineno)

    def _parametrised(self, held: Held) -> Iterator[tuple[str, ast.Call]]:
        """Yield the parameters whose values decide whether a test needs a GPU, each with the first such call."""
        for name in [] if self._is_feigned_for(held) else _device_parameters(held.node):
            walk = _Walk(self, held, [name], calls=False)
            walk.statements(held.node.body)
            yield from ((name, call) for call in walk.found.values())

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

    def of(self, held: Held, devices: frozenset[str] = frozenset()) -> _Found:
        """Give these calls themselves.

        Args:
            held: the function.
            devices: those of its parameters that stand for a GPU.
        """
        node = held.node
        known = self._known.get((node, devices))
        if known is None:
            calls = held.qualname in self._callers
            if not (calls or devices or self.tells(node)):
                known = ()
            elif self._above > _DEPTH:
                return ()
            else:
                self._known[node, devices] = ()  # calls of itself come to nothing else
                self._above += 1
                known = self._found(held, devices, calls=calls)
                self._above -= 1
            self._known[node, devices] = known
        return known

    def _found(self, held: Held, devices: frozenset[str], *, calls: bool) -> _Found:
        if self._is_feigned_for(held):
            return ()
        walk = _Walk(self, held, self._constants.difference(_parameters(held.node)) | devices, calls=calls)
        walk.statements(held.node.body)
        return tuple(walk.found.values())

    def by_default(self, node: _Function, given: Iterable[str] = ()) -> frozenset[str]:
        """Give the parameters that stand for a GPU where a call does not give them: `device="cuda"`."""
        if not (node.args.defaults or node.args.kw_defaults) or not self.tells(node):
            return frozenset()
        named = [*node.args.posonlyargs, *node.args.args]
        pairs = [*zip(named[::-1], node.args.defaults[::-1], strict=False), *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
        return frozenset(each.arg for each, default in pairs if (string(default) or "").startswith("cuda")).difference(given)

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

    def __init__(self, file: GpuCalls, held: Held, devices: Iterable[str], *, calls: bool, depth: int = _DEPTH) -> None:
        self.found: dict[str, ast.Call] = {}
        """By what each is told once of."""
        self._file = file
        self._held = held
        self._calls = calls
        self._devices = set(devices)
        self._depth = depth
        self._inner: dict[str, _Function] = {}
        self._classes: dict[str, ast.ClassDef] = {}
        self._modules: dict[str, bool] = {}
        """Names that stand for modules: whether each has something to move."""
        self._left = False

    def statements(self, body: Iterable[ast.stmt]) -> None:
        """Go along statements, until one may leave the function."""
        for node in body:
            if self._left or len(self.found) == self._file.most:
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
                if isinstance(target, ast.Name):
                    (self._devices.add if self._is_gpu(node.value) else self._devices.discard)(target.id)
                    self._name_module(target.id, self._has_any(node.value))

    def _compound(self, node: ast.stmt) -> None:
        """Go past a statement of which only some parts are sure to be run."""
        if self._is_worth(node):
            heads = [child for child in ast.iter_child_nodes(node) if isinstance(child, (ast.expr, ast.withitem))]
            self._expressions(head.context_expr if isinstance(head, ast.withitem) else head for head in heads)
            self._set_anew(node.target if isinstance(node, (ast.For, ast.AsyncFor)) else None)
            self.statements(_sure(node))
            if isinstance(node, ast.If) and node.orelse:
                self._both(node)
        self._set_anew(node)
        self._left = self._left or self._file.leaves(node)

    def _both(self, node: ast.If) -> None:
        """Take what both sides of a condition come to."""
        found = [self._side(node.body), self._side(node.orelse)]
        for kind, call in found[0].items():
            if kind in found[1]:
                self.found.setdefault(kind, call)

    def _side(self, body: list[ast.stmt]) -> dict[str, ast.Call]:
        walk = _Walk(self._file, self._held, self._devices, calls=self._calls, depth=self._depth)
        walk._inner, walk._classes, walk._modules = dict(self._inner), dict(self._classes), dict(self._modules)
        walk.statements(body)
        return walk.found

    def _is_worth(self, node: ast.stmt) -> bool:
        """Tell whether a statement may have such a call."""
        return self._calls or bool(self._devices) or self._file.tells(node)

    def _set_anew(self, node: ast.AST | None) -> None:
        """Forget what names stand for that something sets which is not sure to be run, or runs several times."""
        if node is None or not (self._modules or self._devices):
            return
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                self._devices.discard(inner.id)
                self._modules.pop(inner.id, None)

    def _expressions(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            for call in _calls(node):
                if len(self.found) == self._file.most:
                    return
                self._call(call)

    def _call(self, call: ast.Call) -> None:
        name = dotted(call.func)
        if self._file.own(name) is not None or _joins(call, name) or self._needs_gpu(call, name):
            self.found.setdefault(self._file.kind(call), call)
        elif self._depth:
            self._follow(call, name)

    def _needs_gpu(self, call: ast.Call, name: str) -> bool:
        function = call.func
        if isinstance(function, ast.Attribute):
            is_move = function.attr == "to" and self._is_gpu(next(iter(call.args), None) or _keyword(call, "device"))
            if is_move or function.attr == "cuda":
                return self._has_any(function.value) is not False
            if function.attr == "from_pretrained":
                return self._is_gpu(_keyword(call, "device_map"))
        full = self._file.resolve(name) if name else ""
        if full.startswith("torch.cuda."):
            return full.removeprefix("torch.cuda.") in _CUDA
        is_factory = full.startswith(("torch.nn.", "torch.testing.")) or (full.startswith("torch.") and full.count(".") == 1)
        return is_factory and full not in _NO_FACTORIES and self._is_gpu(_keyword(call, "device"))

    def _is_gpu(self, node: ast.AST | None) -> bool:
        """Tell whether an expression names a GPU: `"cuda"`, `f"cuda:{rank}"`, `torch.device("cuda", 0)`, or a name for one of these."""
        if isinstance(node, ast.JoinedStr):
            node = next(iter(node.values), None)
        if isinstance(node, ast.Name):
            return node.id in self._devices
        if isinstance(node, ast.Call):
            return self._file.resolve(dotted(node.func)) == "torch.device" and self._is_gpu(next(iter(node.args), None))
        return (string(node) or "").startswith("cuda")

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
        given = frozenset[str]() if is_start else self._given(call, held.node)
        if inner is None:
            calls: Iterable[ast.Call] = self._file.of(held, given)
        else:
            own = set(_parameters(inner))
            walk = _Walk(self._file, self._held, self._devices - own | given, calls=self._calls, depth=self._depth - 1)
            walk._classes = self._classes
            walk._modules = {name: self._modules[name] for name in self._modules.keys() - own}
            walk.statements(inner.body)
            calls = walk.found.values()
        for each in calls:
            self.found.setdefault(self._file.kind(each), each)

    def _given(self, call: ast.Call, node: _Function) -> frozenset[str]:
        """Give the parameters of a function that stand for a GPU in a call of it."""
        named = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
        if named[:1] in (["self"], ["cls"]):
            named = named[1:]
        if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
            return frozenset()
        given = [*zip(named, call.args, strict=False), *((each.arg or "", each.value) for each in call.keywords)]
        said = frozenset(name for name, value in given if self._is_gpu(value))
        return said | self._file.by_default(node, (name for name, _ in given))


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
        return [node.generators[0].iter]
    return list(ast.iter_child_nodes(node))


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


def _constants(tree: ast.Module, resolve: Callable[[str], str]) -> frozenset[str]:
    """Give the names of a module that stand for a GPU, of those that are set once."""
    found: dict[str, bool] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
            if isinstance(value, ast.Call) and resolve(_name(value.func)) == "torch.device" and value.args:
                value = value.args[0]
            found[name] = name not in found and (string(value) or "").startswith("cuda")
    return frozenset(name for name in found if found[name])


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
