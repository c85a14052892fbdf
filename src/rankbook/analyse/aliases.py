"""Tests that are functions under another name.

`test_small = _run`, `test_small = skip_if_lt_x_gpu(2)(Base._run)`, `test_small = partialmethod(_run, ranks=2)`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from msgspec.structs import replace

from rankbook.analyse.draft import Ancestor, Draft
from rankbook.analyse.inheritance import lineage_of
from rankbook.analyse.rules import expression
from rankbook.analyse.values import dotted, parsed
from rankbook.model import Class, Constant, Expression, Function

_MOST = 4
"""Decorators that are called one around the other, and names that are followed from one to the next."""


def meant(draft: Draft, holder: Ancestor, constant: Constant, *, is_case: bool) -> tuple[Ancestor, Function] | None:
    """Find the function that an assignment binds to the name of a test.

    Args:
        draft: the tree.
        holder: class in whose body the assignment stands; one without a name for a module.
        constant: the assignment.
        is_case: whether unittest runs the tests of the class: pytest itself takes no `partialmethod` for one.

    Returns:
        The class that defines the function, or the module, and the function with the decorators that are called on it there; None when
        the name is bound to something else, or only a run can tell.
    """
    node, around, given = parsed(constant.value), list[Expression](), dict[str | int, str]()
    while isinstance(node, ast.Call) and node.args and len(around) < _MOST:
        maker = dotted(node.func).rpartition(".")[2]
        if maker == "partial" or (maker == "partialmethod" and is_case):
            given |= {number: ast.unparse(each) for number, each in enumerate(node.args[1:])}
            given |= {each.arg or "**": ast.unparse(each.value) for each in node.keywords}
        elif len(node.args) == 1 and not node.keywords and maker != "partialmethod":
            around.append(expression(node.func, constant.line))
        else:
            return None
        node = node.args[0]
    name = dotted(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
    found = _function(draft, holder, name) if name else None
    if found is None or not (around or given):
        return found
    ancestor, function = found
    defaults = _defaults(function, given)
    settled = (*function.settled, *(name for name, _ in defaults))
    return ancestor, replace(
        function, decorators=(*around, *function.decorators), defaults=(*defaults, *function.defaults), settled=settled
    )


def _defaults(function: Function, given: Mapping[str | int, str]) -> tuple[tuple[str, str], ...]:
    """Give the parameters of a function that are given beforehand: by name, or by their place behind that of the object."""
    names = function.parameters[1:] if "." in function.qualname else function.parameters
    named = ((names[key] if isinstance(key, int) and key < len(names) else key, value) for key, value in given.items())
    return tuple((name, value) for name, value in named if isinstance(name, str))


def _function(draft: Draft, holder: Ancestor, name: str, names: int = _MOST) -> tuple[Ancestor, Function] | None:
    owner, _, last = name.rpartition(".")
    if not owner and holder.facts is not None:
        method = _method(holder, last)
        if method is not None:
            return holder, method
        other = next((each for each in reversed(holder.facts.attributes) if each.name == last), None)
        if other is not None:
            return _function(draft, holder, other.value, names - 1) if names and other.value.isidentifier() else None
    place = draft.names.find(holder.path, name)
    if place is not None and isinstance(place.definition, Function) and "." not in place.definition.qualname:
        return Ancestor("", place.path), place.definition
    around = draft.names.find(holder.path, owner) if owner else None
    if around is None or not isinstance(around.definition, Class):
        return None
    lineage = lineage_of(draft, around.path, around.definition)
    return next(((each, method) for each in lineage if (method := _method(each, last)) is not None), None)


def _method(ancestor: Ancestor, name: str) -> Function | None:
    methods = ancestor.facts.methods if ancestor.facts else ()
    return next((method for method in reversed(methods) if method.name == name), None)
