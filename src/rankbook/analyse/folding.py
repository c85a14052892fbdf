"""Writes what a function of several statements returns as one expression: `a if x else b`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from rankbook.analyse.names import Names, Place
from rankbook.bindings import bindings_of, may_change
from rankbook.model import Function
from rankbook.tried import IMPORT_ERRORS, caught, tried

_MOST = 16
"""Places at which a function ends."""
_LARGEST = 1000
"""Nodes of an expression: where each name is what it is set to, a few lines may make one without end."""
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)
"""Expressions that bind names of their own, or end the function for a while."""
_SAME = frozenset({"functools.cache", "functools.lru_cache", "staticmethod", "classmethod", "property", "functools.cached_property"})
"""Decorators that change nothing in what a function returns."""
_Names = Mapping[str, "_Set"]


class _Set(NamedTuple):
    """What a name is set to."""

    value: ast.expr
    size: int
    """Number of its nodes."""


class _Untold(Exception):  # noqa: N818 - no failure: the caller keeps the name
    """Only a run can tell what a function returns."""


def returned(place: Place, names: Names) -> str | None:
    """Give what a function returns as one expression of its parameters and the names of its module; None when only a run can tell.

    Args:
        place: the function.
        names: the names of the tree.
    """
    function = place.definition
    if not isinstance(function, Function) or function.is_async:
        return None
    if any(names.full(place.path, each.name) not in _SAME for each in function.decorators):
        return None
    if function.returns is None:
        return _folded(function.text) if function.text else None
    return function.returns if _is_value(function.returns) else None


@lru_cache(maxsize=4096)
def _is_value(text: str) -> bool:
    """Tell whether an expression gives the same to each who asks: no generator, and nothing that may be changed where it is."""
    if "yield" not in text and "await" not in text and ":=" not in text:
        return True
    try:
        return not any(isinstance(each, (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)) for each in ast.walk(ast.parse(f"({text})")))
    except (SyntaxError, ValueError, RecursionError):
        return False


@lru_cache(maxsize=1024)
def _folded(text: str) -> str | None:
    try:
        definition = ast.parse(text).body[0]
        if not isinstance(definition, ast.FunctionDef) or any(isinstance(each, _SCOPES) for each in ast.walk(definition)):
            return None
        return ast.unparse(_Fold(definition).body(definition.body, {}))
    except (SyntaxError, ValueError, RecursionError, _Untold):
        return None


class _Fold:
    """Follows the statements of one function.

    Args:
        definition: the function.
    """

    def __init__(self, definition: ast.FunctionDef) -> None:
        self._ends = 0
        self._made = 0
        bound = bindings_of(definition)
        self._own = frozenset(name for name, by in bound.items() if not all(isinstance(each, ast.Import) for each in by))
        """Names that it binds, but for modules that it imports by their own name."""

    def body(self, statements: list[ast.stmt], names: _Names) -> ast.expr:
        """Give what statements return, where each name is what it is set to.

        Raises:
            _Untold: only a run can tell.
        """
        for number, node in enumerate(statements):
            rest = statements[number + 1 :]
            match node:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    if may_change(value):
                        raise _Untold
                    names = {**names, name: self._known(value, names)}
                case ast.If(test=test, body=body, orelse=other):
                    asked = self._known(test, names).value
                    return ast.IfExp(asked, self.body([*body, *rest], names), self.body([*other, *rest], names))
                case ast.Try(body=body, handlers=[handler], orelse=more, finalbody=[]):
                    tried = ast.BoolOp(ast.And(), _imports(body, handler))
                    return ast.IfExp(tried, self.body([*body, *more, *rest], names), self.body([*handler.body, *rest], names))
                case ast.Return(value=value):
                    self._end()
                    return ast.Constant(None) if value is None else self._known(value, names).value
                case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Import() | ast.ImportFrom():
                    continue
                case _:
                    raise _Untold
        self._end()
        return ast.Constant(None)

    def _end(self) -> None:
        self._ends += 1
        if self._ends > _MOST:
            raise _Untold

    def _known(self, node: ast.expr, names: _Names) -> _Set:
        """Give an expression of a function without its names; the one that is given stays as it is.

        Raises:
            _Untold: it would be too large, or has a name of which it is not known what it is set to.
        """
        known = _Known(names, self._own)
        found = _Set(known.visit(node), known.size)
        self._made += found.size
        if self._made > _MOST * _LARGEST:
            raise _Untold
        return found


class _Known(ast.NodeTransformer):
    """Puts what names are set to in their place.

    Args:
        names: those of the function of which it is known what they are set to.
        own: all that it binds.
    """

    def __init__(self, names: _Names, own: frozenset[str]) -> None:
        self._names = names
        self._own = own
        self.size = 0
        """Nodes of what was made so far."""

    def visit(self, node: ast.AST) -> ast.expr:
        """Give an expression without names of the function.

        Raises:
            _Untold: it would be too large, or has a name of which it is not known what it is set to.
        """
        found = self._names.get(node.id) if isinstance(node, ast.Name) else None
        self.size += found.size if found else 1
        if self.size > _LARGEST:
            raise _Untold
        if found:
            return found.value
        if isinstance(node, ast.Name):
            if node.id in self._own:
                raise _Untold
            return node
        fields = {name: self._of(value) for name, value in ast.iter_fields(node)}
        return type(node)(**fields)  # type: ignore[return-value]

    def _of(self, value: object) -> object:
        if isinstance(value, list):
            return [self._of(each) for each in value]
        return self.visit(value) if isinstance(value, ast.AST) else value


def _imports(body: list[ast.stmt], handler: ast.ExceptHandler) -> list[ast.expr]:
    """Write `importable("a.b")` for each module that statements import.

    Raises:
        _Untold: they import none, or they do not come to the handler by it.
    """
    found = () if caught(handler).isdisjoint(IMPORT_ERRORS) else tried(body, caught(handler))
    if not found:
        raise _Untold
    return [ast.Call(ast.Name("importable"), [ast.Constant(module)], []) for module in found]
