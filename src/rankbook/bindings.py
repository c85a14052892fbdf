"""Tells by what the names of a function are bound: assignments, imports, loops, handlers, patterns, functions inside of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

Bound = ast.expr | ast.Import | ast.alias | None
"""What binds a name: the value of an assignment; an import by the name that it has anyway; any other import; None for all else."""
Bindings = dict[str, list[Bound]]
"""For each name what binds it, place by place."""
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MAKERS = frozenset({"list", "dict", "set", "bytearray", "defaultdict", "OrderedDict", "Counter", "deque", "iter", "zip"})
"""Last parts of the names of what makes something that may be changed where it is."""
CHANGERS = frozenset({
    "add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "insert", "intersection_update", "pop", "popitem",
    "remove", "reverse", "setdefault", "sort", "symmetric_difference_update", "update",
})  # fmt: skip
"""Methods that change what they are called on."""


def bindings_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Bindings:
    """Give what binds the names of a function, its parameters left out."""
    found: Bindings = {}
    values: dict[int, ast.expr | None] = {}
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            values.update((id(target), node.value) for target in (node.targets if isinstance(node, ast.Assign) else [node.target]))
        for name, bound in _by(node, values):
            found.setdefault(name, []).append(bound)
        if isinstance(node, _SCOPES):
            waiting += [*node.decorator_list, *(each for each in ast.walk(node) if isinstance(each, (ast.Global, ast.Nonlocal)))]
        elif not isinstance(node, ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return found


def _by(node: ast.AST, values: Mapping[int, ast.expr | None]) -> Iterator[tuple[str, Bound]]:
    """Yield the names that a node itself binds, each with what binds it."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id, values.get(id(node))
    elif isinstance(node, ast.Import):
        yield from ((each.asname or each.name.partition(".")[0], node if each.asname is None else each) for each in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from ((each.asname or each.name, each) for each in node.names)
    else:
        yield from ((name, None) for name in _bound_by(node))


def _bound_by(node: ast.AST) -> Iterable[str]:
    """Name what a node binds that is no `Name` inside of it."""
    match node:
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return names
        case (
            ast.FunctionDef(name=name)
            | ast.AsyncFunctionDef(name=name)
            | ast.ClassDef(name=name)
            | ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
            | ast.MatchMapping(rest=str(name))
        ):
            return (name,)
    return ()


def names_in(*nodes: ast.AST | None) -> Iterator[str]:
    """Yield the names that patterns, targets and the expressions inside of them bind."""
    for node in (inner for each in nodes if each is not None for inner in ast.walk(each)):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        else:
            yield from _bound_by(node)


def changed_in(call: ast.Call) -> ast.expr | None:
    """Give what a method changes that is called on it: `found[0]` of `found[0].append(1)`; None when it changes nothing."""
    method = call.func
    return method.value if isinstance(method, ast.Attribute) and method.attr in CHANGERS else None


def changed_by(node: ast.expr) -> ast.Name | ast.Attribute | None:
    """Give what an expression changes where it is: `found` of `found.append(1)`, of `found[0]` where that is set; None when nothing."""
    changed = changed_in(node) if isinstance(node, ast.Call) else node
    while isinstance(changed, (ast.Subscript, ast.Starred)):
        changed = changed.value
    return changed if isinstance(changed, (ast.Name, ast.Attribute)) else None


def may_change(node: ast.expr | None) -> bool:
    """Tell whether what an expression gives may be changed where it is: a list, a set, a dictionary, an iterator."""
    match node:
        case ast.IfExp(body=body, orelse=other):
            return may_change(body) or may_change(other)
        case ast.BoolOp(values=parts) | ast.Tuple(elts=parts):
            return any(map(may_change, parts))
        case ast.BinOp(left=left, right=right):
            return may_change(left) or may_change(right)
        case ast.NamedExpr(value=value) | ast.Starred(value=value):
            return may_change(value)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _MAKERS
    return isinstance(node, (ast.List, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp))
