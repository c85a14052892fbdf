"""Whether a test was to start ranks in a loop, whatever happens: one that started none has had no round of it, and has tested nothing.

`for size in [n for n in (1, 2, 4) if n <= torch.cuda.device_count()]: mp.spawn(run, nprocs=size)` is one without a GPU, so is one that
passes over a size by `continue`, and so is a call of a function that does this. What may have left before, or does something else that may
fail, is not judged.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FunctionType, MethodType, ModuleType
from typing import Any

UNSTARTED = "vacuous: it was to start its ranks by torch.multiprocessing in a loop that started none here"
"""Why a test of which this is so has not passed."""
_STARTS = frozenset({"spawn", "start_processes"})
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
    names = function.__code__.co_names
    if not _STARTS.isdisjoint(names):
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
    return "" if plain is None or definition is None else _in(definition.body, functools.partial(_meant, plain, owner), owner, depth)


def _definition(function: FunctionType) -> ast.FunctionDef | None:
    try:
        text = textwrap.dedent(inspect.getsource(function))
        node = ast.parse(text).body[0]
    except (OSError, TypeError, SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
        return None
    return node if isinstance(node, ast.FunctionDef) and not _FEIGNED.search(text) else None


def _in(body: Iterable[ast.stmt], meant: Callable[[ast.expr], Any], owner: Any, depth: int, *, in_loop: bool = False) -> str:
    """Tell the same of statements; in a loop a condition may pass over what starts ranks."""
    found = ""
    for node in body:
        here = ""
        if isinstance(node, (ast.Expr, ast.Assign, ast.AnnAssign)):
            here = _starts(node.value, meant, owner, depth)
        elif isinstance(node, (ast.For, ast.While)) and not node.orelse:
            here = "in a loop" if _in(node.body, meant, owner, depth, in_loop=True) else ""
        elif isinstance(node, ast.With) and not any(_CATCHES.search(ast.unparse(item.context_expr)) for item in node.items):
            here = _in(node.body, meant, owner, depth, in_loop=in_loop)
        elif isinstance(node, ast.If) and in_loop:
            sides = [_in(side, meant, owner, depth, in_loop=True) for side in (node.body, node.orelse) if not _only_says(side)]
            if not all(sides):
                return ""
            here = "".join(sides[:1])
            if not sides:
                continue
        if here:
            found = here if found in ("", here) else "at once"
        elif not (isinstance(node, _SETTING) or _only_says([node])):
            return ""
    return found


def _only_says(body: Iterable[ast.stmt]) -> bool:
    """Tell whether statements do no more than to say something, or to go on with the next round."""
    return all(
        isinstance(node, (ast.Pass, ast.Continue, ast.Break))
        or (isinstance(node, ast.Expr) and (isinstance(node.value, ast.Constant) or _says(node.value)))
        for node in body
    )


def _says(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _SAYS.search(ast.unparse(node.func)) is not None


def _starts(node: ast.expr | None, meant: Callable[[ast.expr], Any], owner: Any, depth: int) -> str:
    called = meant(node.func) if isinstance(node, ast.Call) else None
    if called is None:
        return ""
    if getattr(called, "__name__", "") in _STARTS and str(getattr(called, "__module__", "")).startswith(_MODULES):
        return "at once"
    return _found(called, owner, depth - 1)


def _meant(function: FunctionType, owner: Any, node: ast.expr) -> Any:
    """Give what a name means in a function; None where that is not known."""
    code = function.__code__
    if isinstance(node, ast.Attribute):
        if isinstance(node.value, ast.Name) and node.value.id == "self" == next(iter(code.co_varnames), ""):
            return inspect.getattr_static(type(owner), node.attr, None)
        holder = _meant(function, owner, node.value)
        return getattr(holder, node.attr, None) if isinstance(holder, (ModuleType, type)) else None
    if not isinstance(node, ast.Name) or node.id in code.co_varnames or node.id in code.co_cellvars:
        return None
    return _cells(function)[node.id] if node.id in _cells(function) else function.__globals__.get(node.id)
