"""Whether a test was to start ranks in a loop, whatever happens: one that started none has had no round of it, and has tested nothing.

`for size in [n for n in (1, 2, 4) if n <= torch.cuda.device_count()]: mp.spawn(run, nprocs=size)` is one without a GPU, so is one that
passes over a size by `continue`, and so is a call of a function that does this; processes of `multiprocessing` that a loop makes and starts
are the same. What may have left before, or does something else that may fail, is not judged.
"""

from __future__ import annotations

import ast
import functools
import inspect
import multiprocessing
import re
import textwrap
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

UNSTARTED = "vacuous: it was to start its ranks by multiprocessing in a loop that started none here"
"""Why a test of which this is so has not passed."""
_STARTS = frozenset({"spawn", "start_processes"})
_PROCESS = "Process"
"""How the names of most classes of processes end."""
_HANDLES = frozenset({"append", "join", "terminate", "kill", "close"})
"""Methods of processes, and of lists of them, that nothing comes of where there are none."""
_MODULES = "torch.multiprocessing"
_DEPTH = 3
"""Functions that are followed from one to the next."""
_FEIGNED = re.compile(r"mock|patch|yield|await", re.IGNORECASE)
"""Words of a function that may put something else in the place of what starts ranks, or that is not run by a call of it."""
_SETTING = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Pass,
    ast.Global, ast.Nonlocal, ast.Break, ast.Continue,
)  # fmt: skip
"""Statements that do no more than to give names to something."""
_SAYS = re.compile(r"(?:^|\.)(?:print|warn|warning|info|debug|log)$")
"""What says that a round is left out."""
_CATCHES = re.compile(r"raise|suppress|warn|catch", re.IGNORECASE)
"""Words of contexts that expect something else than that ranks end."""


def is_to_start(test: Any) -> bool:
    """Tell whether all that a test does is to start ranks in a loop.

    Args:
        test: function or method.
    """
    owner = getattr(test, "__self__", None)
    function = _plain(inspect.unwrap(test)) if callable(test) else None
    cls: type = type(owner)
    return function is not None and _names(function, cls, _DEPTH) and _found(function, owner, _DEPTH) == "in a loop"


def _plain(function: Any) -> FunctionType | None:
    """Give the function of a method; None for what is no function of Python."""
    function = function.__func__ if isinstance(function, (MethodType, staticmethod, classmethod)) else function
    return function if isinstance(function, FunctionType) else None


@functools.cache
def _names(function: FunctionType, owner: type, depth: int) -> bool:
    """Tell whether a function, or one that it may call, has a name of what starts ranks: most have none, and their text is not read."""
    code = function.__code__
    within = (each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == "<listcomp>")
    names = (*code.co_names, *chain.from_iterable(each.co_names for each in within))
    if any(name in _STARTS or name.endswith(_PROCESS) for name in (*names, *code.co_freevars)):
        return True
    if any(_is_process(function.__globals__.get(name)) for name in names):
        return True
    values = (each for name in names for each in (function.__globals__.get(name), inspect.getattr_static(owner, name, None)))
    called = [each for each in map(_plain, [*values, *(_cells(function).values())]) if each is not None]
    return depth > 1 and any(_names(each, owner, depth - 1) for each in called)


def _cells(function: FunctionType) -> dict[str, Any]:
    """Give what a function knows of the one around it."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # it is not set yet
            found[name] = cell.cell_contents
    return found


def _found(function: Any, owner: Any, depth: int) -> str:
    """Tell how a function starts ranks: `in a loop`, `at once`; empty where it may do without, or does more."""
    plain = _plain(function)
    definition = _definition(plain) if plain is not None and depth else None
    return "" if plain is None or definition is None else _in(definition.body, _Function.of(plain, owner, definition), depth)


def _definition(function: FunctionType) -> ast.FunctionDef | None:
    try:
        text = textwrap.dedent(inspect.getsource(function))
        node = ast.parse(text).body[0]
    except (OSError, TypeError, SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
        return None
    return node if isinstance(node, ast.FunctionDef) and not _FEIGNED.search(text) else None


class _Function(NamedTuple):
    """A function, and what is known of the names in it."""

    code: CodeType
    known: Mapping[str, Any]
    """What the names of its module, and of the function around it, stand for."""
    owner: Any
    """What it is a method of."""
    contexts: frozenset[str] = frozenset()
    """Its own names of contexts of `multiprocessing`."""
    processes: frozenset[str] = frozenset()
    """Its own names of processes, and of lists of them."""

    @classmethod
    def of(cls, function: FunctionType, owner: Any, definition: ast.FunctionDef) -> _Function:
        """Read what it gives names to."""
        bare = cls(function.__code__, ChainMap(_cells(function), function.__globals__), owner)
        given = [(target.id, value) for target, value in _assigned(definition) if isinstance(target, ast.Name)]
        contexts = frozenset(name for name, value in given if isinstance(value, ast.Call) and _is_context(bare.meant(value.func)))
        found = bare._replace(contexts=contexts)
        names = {name for name, value in given if any(map(found.makes, _elements(value)))}
        for _ in range(2):  # a process of a list, a list of such processes
            names |= set(_handed_on(definition, names, found))
        others = {name for name, value in given if _elements(value) and not any(map(found.makes, _elements(value)))}
        others |= set(_gone_through(definition, names))
        return found._replace(processes=frozenset(names - others))

    def meant(self, node: ast.expr) -> Any:
        """Give what an expression means; None where that is not known."""
        code = self.code
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in self.contexts:
                return getattr(multiprocessing.get_context(), node.attr, None)
            if isinstance(node.value, ast.Call) and _is_context(self.meant(node.value.func)):
                return getattr(multiprocessing.get_context(), node.attr, None)
            if isinstance(node.value, ast.Name) and node.value.id == "self" == next(iter(code.co_varnames), ""):
                return inspect.getattr_static(type(self.owner), node.attr, None)
            holder = self.meant(node.value)
            return getattr(holder, node.attr, None) if isinstance(holder, (ModuleType, type, BaseContext)) else None
        if not isinstance(node, ast.Name) or node.id in code.co_varnames or node.id in code.co_cellvars:
            return None
        return self.known.get(node.id)

    def makes(self, node: ast.expr) -> bool:
        """Tell whether an expression makes a process."""
        return isinstance(node, ast.Call) and _is_process(self.meant(node.func))

    def is_of_process(self, node: ast.expr, methods: frozenset[str]) -> bool:
        """Tell whether an expression calls one of some methods of a process, or of a list of processes, with nothing that may do more."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in methods:
            return False
        given = (*node.args, *(each.value for each in node.keywords))
        if not all(isinstance(each, (ast.Name, ast.Constant)) or self.makes(each) for each in given):
            return False
        return self.makes(node.func.value) or self._is_held(node.func.value, frozenset())

    def looks(self, node: ast.expr, also: frozenset[str] = frozenset()) -> bool:
        """Tell whether an expression does no more than to look at how processes ended: `p.exitcode == 0`, `all(... for p in ps)`.

        Args:
            node: the expression.
            also: names of processes that hold within it alone.
        """
        if isinstance(node, ast.UnaryOp):
            return self.looks(node.operand, also)
        if isinstance(node, ast.Compare):
            sides = [side for side in (node.left, *node.comparators) if not isinstance(side, ast.Constant)]
            return bool(sides) and all(self.looks(side, also) for side in sides)
        if isinstance(node, ast.Attribute):
            return node.attr == "exitcode" and self._is_held(node.value, also)
        return isinstance(node, ast.Call) and self._asks(node, also)

    def _asks(self, node: ast.Call, also: frozenset[str]) -> bool:
        """Tell the same of a call: `p.is_alive()`, `all(...)`, `any(...)`."""
        if isinstance(node.func, ast.Attribute):
            return node.func.attr == "is_alive" and not node.args and self._is_held(node.func.value, also)
        inner = node.args[0] if len(node.args) == 1 and isinstance(node.func, ast.Name) and node.func.id in ("all", "any") else None
        if not isinstance(inner, (ast.GeneratorExp, ast.ListComp)) or len(inner.generators) != 1 or inner.generators[0].ifs:
            return False
        over = inner.generators[0]
        return isinstance(over.target, ast.Name) and self._is_held(over.iter, also) and self.looks(inner.elt, also | {over.target.id})

    def _is_held(self, node: ast.expr, also: frozenset[str]) -> bool:
        return isinstance(node, ast.Name) and node.id in self.processes | also


def _is_process(value: Any) -> bool:
    """Tell whether something is a class of processes, that are started as all are."""
    return isinstance(value, type) and issubclass(value, BaseProcess) and value.start is BaseProcess.start


def _is_context(value: Any) -> bool:
    """Tell whether something gives a context of `multiprocessing`."""
    module = str(getattr(value, "__module__", ""))
    return getattr(value, "__name__", "") == "get_context" and module.removeprefix("torch.").startswith("multiprocessing")


def _assigned(definition: ast.FunctionDef) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in ast.walk(definition):
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield node.target, node.value


def _elements(node: ast.expr) -> list[ast.expr]:
    """Give what an expression consists of: what a list has, or a comprehension makes, or itself."""
    return node.elts if isinstance(node, ast.List) else [node.elt] if isinstance(node, ast.ListComp) else [node]


def _handed_on(definition: ast.FunctionDef, names: set[str], within: _Function) -> Iterator[str]:
    """Yield the names of lists that one of some processes is put into, and of what goes through lists of them."""
    for node in ast.walk(definition):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Name) and node.iter.id in names and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Call):
            is_process = any((isinstance(each, ast.Name) and each.id in names) or within.makes(each) for each in node.args)
            to = node.func if is_process else None
            if isinstance(to, ast.Attribute) and to.attr == "append" and isinstance(to.value, ast.Name):
                yield to.value.id


def _gone_through(definition: ast.FunctionDef, names: set[str]) -> Iterator[str]:
    """Yield the names of what goes through something else than lists of processes."""
    for node in ast.walk(definition):
        if isinstance(node, ast.For) and not (isinstance(node.iter, ast.Name) and node.iter.id in names):
            yield from (each.id for each in ast.walk(node.target) if isinstance(each, ast.Name))


def _in(body: Iterable[ast.stmt], within: _Function, depth: int, *, in_loop: bool = False) -> str:
    """Tell the same of statements; in a loop a condition may pass over what starts ranks."""
    found = ""
    for node in body:
        if isinstance(node, ast.If) and in_loop:
            sides = [_in(side, within, depth, in_loop=True) for side in (node.body, node.orelse) if not _only_says(side)]
            if not all(sides):
                return ""
            here = "".join(sides[:1])
        else:
            here = _of(node, within, depth, in_loop=in_loop)
            if not here and not (isinstance(node, _SETTING) or _only_says([node]) or _awaits(node, within)):
                return ""
            if here == "at once" and not isinstance(node, ast.With):
                return here  # what comes behind is done where ranks were started
        if here:
            found = here if found in ("", here) else "at once"
    return found


def _of(node: ast.stmt, within: _Function, depth: int, *, in_loop: bool) -> str:
    """Tell the same of one statement that is no condition."""
    if isinstance(node, (ast.Expr, ast.Assign, ast.AnnAssign)):
        return _starts(node.value, within, depth)
    if isinstance(node, (ast.For, ast.While)) and not node.orelse:
        return "in a loop" if _in(node.body, within, depth, in_loop=True) else ""
    if isinstance(node, ast.With) and not any(_CATCHES.search(ast.unparse(item.context_expr)) for item in node.items):
        return _in(node.body, within, depth, in_loop=in_loop)
    return ""


def _awaits(node: ast.stmt, within: _Function) -> bool:
    """Tell whether a statement does no more than to wait for processes and to look at how they ended."""
    if isinstance(node, ast.For) and not node.orelse:
        return all(_awaits(each, within) for each in node.body)
    if isinstance(node, ast.Assert):
        return within.looks(node.test)
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    if within.is_of_process(node.value, _HANDLES):
        return True
    given = node.value.args if ast.unparse(node.value.func).startswith("self.assert") else []
    looked_at = [each for each in given if within.looks(each)]
    return bool(looked_at) and all(isinstance(each, ast.Constant) or each in looked_at for each in given)


def _only_says(body: Iterable[ast.stmt]) -> bool:
    """Tell whether statements do no more than to say something, or to go on with the next round."""
    return all(
        isinstance(node, (ast.Pass, ast.Continue, ast.Break))
        or (isinstance(node, ast.Expr) and (isinstance(node.value, ast.Constant) or _says(node.value)))
        for node in body
    )


def _says(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _SAYS.search(ast.unparse(node.func)) is not None


def _starts(node: ast.expr | None, within: _Function, depth: int) -> str:
    if not isinstance(node, ast.Call):
        return ""
    if within.is_of_process(node, frozenset({"start"})):
        return "at once"
    called = within.meant(node.func)
    if called is None:
        return ""
    if getattr(called, "__name__", "") in _STARTS and str(getattr(called, "__module__", "")).startswith(_MODULES):
        return "at once"
    return _found(called, within.owner, depth - 1)
