"""Tests that stand in a file and that pytest does not find, without a word in most cases: nobody ever runs them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from rankbook.analyse import expanded, tests, wrappers
from rankbook.analyse.draft import Ancestor, Draft
from rankbook.analyse.inheritance import lineage_of
from rankbook.model import Class, Expression, Function, Module, Overwritten, Test, Unfound

_LEAVE_NOTHING = ("pytest.mark.", "unittest.", "torch.testing.", "hypothesis.")
"""Beginnings of decorators that put what they are given nowhere but under its own name, and leave a class one."""
_CONSTRUCTORS = frozenset({".__init__", ".__new__"})
"""As `Module.unsettled` has them."""


def unfound(draft: Draft, path: str) -> list[Unfound]:
    """Find the tests of a file of which it is certain that pytest does not, by line.

    A class that says `__test__`, or whose name is that of no test class, is left out on purpose. So is what a condition, a `try` or a
    loop defines, or what something else may have kept or replaced: a claim that is wrong is worse than none.
    """
    if not tests.is_test_module(draft, path):
        return []
    module = draft.modules[path]
    classes = _own_classes(module)
    gone = {(each.qualname, each.line): each for each in module.overwritten}
    found = [one for each in classes if (one := _of_class(draft, path, each, gone)) is not None]
    functions = [function for function in module.functions if "." not in function.qualname]
    found += [one for function in functions if (one := _of_function(draft, path, function, gone)) is not None]
    lost = {one.line for one in found}
    for each in classes:
        if each.line not in lost and (each.qualname, each.line) not in gone:
            found += (one for method in each.methods if (one := _of_method(draft, path, each, method, gone)) is not None)
    return sorted(found, key=lambda one: (one.line, one.name))


_Gone = dict[tuple[str, int], Overwritten]


def _own_classes(module: Module) -> list[Class]:
    """Give the classes that stand in a file by themselves, or within others."""
    names = {each.qualname for each in module.classes}
    return [each for each in module.classes if each.name not in module.deleted and _outer(each) <= names]


def _outer(each: Class) -> set[str]:
    parts = each.qualname.split(".")
    return {".".join(parts[:count]) for count in range(1, len(parts))}


def _of_class(draft: Draft, path: str, each: Class, gone: _Gone) -> Unfound | None:
    lineage = lineage_of(draft, path, each)
    is_case = tests.is_test_case(lineage)
    is_named = is_case or draft.rules.is_test_class(each.name)
    if not is_named or each.guard is not None or _says_what_it_is(lineage) or not _is_plain(draft, path, each.bases, lineage):
        return None
    if (later := gone.get((each.qualname, each.line))) is not None:
        if not _leave_nothing(draft, path, each.decorators):
            return None
        after = next((other for other in draft.modules[path].classes if (other.qualname, other.line) == later[::2]), None)
        kept = {(test.id, test.path, test.line) for test in tests.tests_of(draft, path, after)} if after is not None else set()
        why = ("again", "", later.later)
    elif _is_rebound(draft, path, each):
        return None
    else:
        kept = set()
        found = _function_maker(draft, path, each) if each.decorators else None
        found = found or (None if is_case else _constructor(draft, path, each, lineage))
        if found is None:
            return None
        why = found
    lost = [test for test in tests.tests_of(draft, path, each) if (test.id, test.path, test.line) not in kept]
    return Unfound(each.qualname, each.line, len(lost), *why) if lost else None


def _says_what_it_is(lineage: Iterable[Ancestor]) -> bool:
    return any(each.name == "__test__" for ancestor in lineage if ancestor.facts for each in ancestor.facts.attributes)


def _is_plain(draft: Draft, path: str, bases: Iterable[Expression], lineage: tuple[Ancestor, ...]) -> bool:
    """Tell whether each class of a line stands where it is certain to be the one that is meant."""
    for ancestor in lineage[1:]:
        if ancestor.facts is None:
            continue
        twins = [each for each in draft.modules[ancestor.path].classes if each.qualname == ancestor.facts.qualname]
        if ancestor.facts.guard is not None or len(twins) > 1 or not _leave_nothing(draft, ancestor.path, ancestor.facts.decorators):
            return False
    names = {base.name for base in bases}
    constants = draft.modules[path].constants
    return not any(constant.name in names for constant in constants)


def _is_rebound(draft: Draft, path: str, each: Class) -> bool:
    """Tell whether the name of a class may stand for something else at the end of its file."""
    module = draft.modules[path]
    later = [entry.bound for entry in module.imports if entry.line > each.line and entry.name is not None]
    later += [constant.name for constant in module.constants if constant.line > each.line]
    twins = [one for one in module.classes if one.qualname == each.qualname]
    return "*" in later or each.qualname in later or len(twins) > 1 or f".{each.name}" in module.unsettled


def _function_maker(draft: Draft, path: str, each: Class) -> tuple[str, str, int] | None:
    """Give the decorator that makes a class a function, unless one above it may make it a class again."""
    maker = wrappers.makes_function(draft, path, each) if tests.is_wrapped(draft, Ancestor(each.qualname, path, each)) else None
    if maker is None:
        return None
    above = each.decorators[: each.decorators.index(maker)]
    return ("function", f"@{maker.text}", maker.line) if _leave_nothing(draft, path, above) else None


def _constructor(draft: Draft, path: str, each: Class, lineage: tuple[Ancestor, ...]) -> tuple[str, str, int] | None:
    others = [decorator for decorator in each.decorators if draft.names.full(path, decorator.name) not in tests.MAKERS]
    made = tests.constructor_of(draft, lineage) if _leave_nothing(draft, path, others) else None
    if made is None or any(_changes_constructors(draft.modules[ancestor.path]) for ancestor in lineage if ancestor.facts):
        return None
    return "constructor", made[0].name, made[1] if made[0].path == path else 0


def _changes_constructors(module: Module) -> bool:
    """Tell whether a file sets, or takes away, the constructor of some class."""
    changes = (call for call in module.calls if call.name in ("setattr", "delattr"))
    return not _CONSTRUCTORS.isdisjoint(module.unsettled) or any("__init__" in text for call in changes for text in call.arguments)


def _of_function(draft: Draft, path: str, function: Function, gone: _Gone) -> Unfound | None:
    later = gone.get((function.qualname, function.line))
    if later is None or not draft.rules.is_test_function(function.name) or not _is_lost(draft, path, function):
        return None
    return Unfound(function.qualname, function.line, len(tests.tests_of_function(draft, path, function)), "again", "", later.later)


def _of_method(draft: Draft, path: str, each: Class, method: Function, gone: _Gone) -> Unfound | None:
    later = gone.get((method.qualname, method.line))
    if later is None or not _is_lost(draft, path, method):
        return None
    alone = replace(each, line=-method.line, methods=(method,))  # one of its own: what is known of a class is remembered by its line
    lost = [test for test in tests.tests_of(draft, path, alone) if _is_of(test, path, method)]
    return Unfound(method.qualname, method.line, len(lost), "again", "", later.later) if lost else None


def _is_of(test: Test, path: str, method: Function) -> bool:
    return (test.path, test.line) == (path, method.line)


def _is_lost(draft: Draft, path: str, function: Function) -> bool:
    return function.guard is None and not expanded.is_expanded(function) and _leave_nothing(draft, path, function.decorators)


def _leave_nothing(draft: Draft, path: str, decorators: Iterable[Expression]) -> bool:
    """Tell whether decorators neither keep what they are given elsewhere nor make something else of a class."""
    return all(draft.names.full(path, written.name).startswith(_LEAVE_NOTHING) for written in decorators)
