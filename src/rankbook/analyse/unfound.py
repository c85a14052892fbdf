"""Tests that stand in a file and that pytest does not find, without a word in most cases: nobody ever runs them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from rankbook.analyse import expanded, tests, wrappers
from rankbook.analyse.draft import Ancestor, Draft
from rankbook.analyse.inheritance import lineage_of
from rankbook.model import Class, Constant, Function, Unfound

_LEAVE_NOTHING = ("pytest.mark.", "unittest.", "torch.testing.", "hypothesis.")
"""Beginnings of decorators that put what they are given nowhere but under its own name."""
_NAME = re.compile(r"\w+")


def unfound(draft: Draft, path: str) -> list[Unfound]:
    """Find the tests of a file that pytest does not, by line.

    A class that says `__test__ = False`, or whose name is that of no test class, is left out on purpose. So is what a condition defines:
    which of two definitions counts is not known then.
    """
    if not tests.is_test_module(draft, path):
        return []
    module = draft.modules[path]
    own = [each for name, each in tests.own_definitions(module) if isinstance(each, Class) and name not in module.deleted]
    functions = [each for each in module.functions if "." not in each.qualname]
    classes = [each for each in module.classes if "." not in each.qualname]
    found = [
        *_overwritten(draft, path, functions, module.constants, draft.rules.is_test_function),
        *_classes_overwritten(draft, path, classes),
        *(one for each in own for one in _of_class(draft, path, each)),
    ]
    return sorted(found, key=lambda one: (one.line, one.name))


def _of_class(draft: Draft, path: str, each: Class) -> Iterator[Unfound]:
    lineage = lineage_of(draft, path, each)
    is_case = tests.is_test_case(lineage)
    if not (is_case or draft.rules.is_test_class(each.name)) or _is_switched_off(lineage):
        return
    if tests.is_wrapped(draft, lineage[0]):
        decorator = wrappers.makes_function(draft, path, each)
        why = None if decorator is None else ("function", f"@{decorator.text}", decorator.line)
    else:
        maker = next(((ancestor, line) for ancestor in lineage if (line := tests.constructor_of(ancestor))), None) if not is_case else None
        why = None if maker is None else ("constructor", maker[0].name, maker[1] if maker[0].path == path else 0)
    if why is None:
        yield from _overwritten(draft, path, each.methods, each.attributes, lambda name: tests.is_test_name(draft, name, is_case=is_case))
    elif count := len(tests.names_of_tests(draft, path, each)):
        yield Unfound(each.qualname, each.line, count, *why)


def _is_switched_off(lineage: Iterable[Ancestor]) -> bool:
    attributes = (each for ancestor in lineage for each in (ancestor.facts.attributes if ancestor.facts else ()))
    return next((each.value for each in attributes if each.name == "__test__"), "True") == "False"


def _overwritten(
    draft: Draft, path: str, functions: Iterable[Function], set_there: Iterable[Constant], is_test: Callable[[str], bool]
) -> Iterator[Unfound]:
    """Give the functions of one body whose name is given to a later one, unless an assignment there has kept them."""
    last: dict[str, Function] = {}
    kept = {word for constant in set_there for word in _NAME.findall(constant.value)}
    for function in functions:
        before = last.get(function.name)
        last[function.name] = function
        if before is not None and is_test(function.name) and function.name not in kept and _is_replaced(draft, path, before, function):
            yield Unfound(before.qualname, before.line, 1, "again", "", function.line)


def _is_replaced(draft: Draft, path: str, before: Function, after: Function) -> bool:
    """Tell whether nothing is left of a function for certain, since another has its name."""
    if before.guard is not None or after.guard is not None or expanded.is_expanded(before):
        return False
    names = (draft.names.full(path, written.name) or written.name for written in before.decorators)
    return all(name.startswith(_LEAVE_NOTHING) for name in names)


def _classes_overwritten(draft: Draft, path: str, classes: Iterable[Class]) -> Iterator[Unfound]:
    last: dict[str, Class] = {}
    for each in classes:
        before = last.get(each.name)
        last[each.name] = each
        is_certain = before is not None and not before.decorators and before.guard is None and each.guard is None
        if before is None or not is_certain or any(base.name == before.name for base in each.bases):
            continue
        lineage = lineage_of(draft, path, before)
        is_found = tests.is_test_case(lineage) or draft.rules.is_test_class(before.name)
        count = len(tests.names_of_tests(draft, path, before)) if is_found and not _is_switched_off(lineage) else 0
        if count:
            yield Unfound(before.qualname, before.line, count, "again", "", each.line)
