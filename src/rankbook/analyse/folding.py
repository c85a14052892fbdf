"""Writes what a function of several statements returns as one expression: `a if x else b`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from rankbook.model import Function

_MOST = 16
"""Places at which a function returns."""
_LARGEST = 1000
"""Nodes of an expression: where each name is what it is set to, a few lines may make one without end."""
_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception"})
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr)
"""Expressions that bind names of their own."""
_Names = Mapping[str, "_Set"]


class _Set(NamedTuple):
    """What a name is set to."""

    value: ast.expr
    size: int
    """Number of its nodes."""


class _Untold(Exception):  # noqa: N818 - no failure: the caller keeps the name
    """Only a run can tell what a function returns."""


def returned(function: Function) -> str | None:
    """Give what a function returns as one expression of its parameters and the names of its module; None when only a run can tell."""
    return function.returns if function.returns is not None or not function.text else _folded(function.text)


@lru_cache(maxsize=1024)
def _folded(text: str) -> str | None:
    try:
        definition = ast.parse(text).body[0]
        if not isinstance(definition, ast.FunctionDef) or any(isinstance(each, _SCOPES) for each in ast.walk(definition)):
            return None
        return ast.unparse(_Fold().body(definition.body, {}))
    except (SyntaxError, ValueError, RecursionError, _Untold):
        return None


class _Fold:
    """Follows the statements of one function."""

    def __init__(self) -> None:
        self._returns = 0

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
                    names = {**names, name: _known(value, names)}
                case ast.If(test=test, body=body, orelse=other):
                    sides = (self.body([*body, *rest], names), self.body([*other, *rest], names))
                    return ast.IfExp(_known(test, names).value, *sides)
                case ast.Try(body=body, handlers=[handler], orelse=more, finalbody=[]) if _catches_imports(handler):
                    tried = ast.BoolOp(ast.And(), _imports(body))
                    return ast.IfExp(tried, self.body([*body, *more, *rest], names), self.body([*handler.body, *rest], names))
                case ast.Return(value=value):
                    self._returns += 1
                    if self._returns > _MOST:
                        raise _Untold
                    return ast.Constant(None) if value is None else _known(value, names).value
                case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Import() | ast.ImportFrom():
                    continue
                case _:
                    raise _Untold
        return ast.Constant(None)


def _known(node: ast.expr, names: _Names) -> _Set:
    """Give an expression of a function without its names; the one that is given stays as it is.

    Raises:
        _Untold: it would be too large.
    """
    known = _Known(names)
    return _Set(known.visit(node), known.size)


class _Known(ast.NodeTransformer):
    """Puts what names are set to in their place.

    Args:
        names: those of the function.
    """

    def __init__(self, names: _Names) -> None:
        self._names = names
        self.size = 0
        """Nodes of what was made so far."""

    def visit(self, node: ast.AST) -> ast.expr:
        """Give an expression without names of the function.

        Raises:
            _Untold: it would be too large.
        """
        found = self._names.get(node.id) if isinstance(node, ast.Name) else None
        self.size += found.size if found else 1
        if self.size > _LARGEST:
            raise _Untold
        if found:
            return found.value
        if isinstance(node, ast.Name):
            return node
        fields = {name: self._of(value) for name, value in ast.iter_fields(node)}
        return type(node)(**fields)  # type: ignore[return-value]

    def _of(self, value: object) -> object:
        if isinstance(value, list):
            return [self._of(each) for each in value]
        return self.visit(value) if isinstance(value, ast.AST) else value


def _catches_imports(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return all(isinstance(each, ast.Name) and each.id in _IMPORT_ERRORS for each in caught)


def _imports(body: Iterable[ast.stmt]) -> list[ast.expr]:
    """Write `not not_importable("a.b")` for each module that statements import, when little else is done that may fail."""
    found: list[str] = []
    for node in body:
        match node:
            case ast.Import(names=names):
                found += [each.name for each in names]
            case ast.ImportFrom(module=str(module), level=0):
                found.append(module)
            case ast.Return() | ast.Assign() | ast.Pass():
                continue
            case _:
                raise _Untold
    if not found:
        raise _Untold
    return [ast.UnaryOp(ast.Not(), ast.Call(ast.Name("not_importable"), [ast.Constant(module)], [])) for module in found]
