"""The tests that pytest and unittest would run, inherited ones included."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch

from rankbook.analyse.draft import Ancestor, Collected, Draft
from rankbook.analyse.inheritance import lineage_of
from rankbook.analyse.names import top_level_imports
from rankbook.model import Class, Constant, Expression, Function, Module, Test
from rankbook.requirements import HARNESSES

_TEST_FILES = ("test_*.py", "*_test.py")
_PARAMETRISERS = frozenset({"parametrize", "subtest", "ops", "dtypes", "modules", "optims", "parametrized"})
_INSTANTIATES = frozenset({"instantiate_device_type_tests"})
"""Calls that make one class per device of the class that they are given."""
_NOT_CALLABLE = frozenset({"property", "cached_property", "fixture", "setter"})
_UNITTEST = ("unittest/case.py", "unittest/async_case.py")
"""Where `TestCase` stands in a tree that holds Python's own library."""

_Named = tuple[str, str, Class | Function]
"""Name in the file, source and definition."""


def collect(draft: Draft, path: str) -> list[Collected]:
    """Collect the tests of a file, in the order in which pytest finds them."""
    module = draft.modules[path]
    if module.source.language != "python" or module.error is not None:
        return []
    return list({collected.test.id: collected for collected in _collect(draft, path, module)}.values())


def is_test_file(path: str) -> bool:
    """Tell whether pytest collects plain functions and `Test` classes of a file, as it comes."""
    name = path.rpartition("/")[2]
    return any(fnmatch(name, pattern) for pattern in _TEST_FILES)


def _collect(draft: Draft, path: str, module: Module) -> Iterator[Collected]:
    test_file = is_test_file(path)
    for name, origin, definition in [*_imported(draft, path, module, test_file=test_file), *_own(draft, path, module)]:
        if name in module.deleted:
            continue
        if isinstance(definition, Function):
            if test_file and name.startswith("test") and _is_test(definition):
                yield _of_function(name, origin, definition)
            continue
        line = lineage_of(draft, origin, definition)
        if _is_collected(name, line, test_file=test_file):
            yield from _of_class(module, name, line)


def _own(draft: Draft, path: str, module: Module) -> Iterator[_Named]:
    """Give what stands in the file by itself; of two definitions of a name, the later one."""
    named: dict[str, Class | Function] = {function.name: function for function in module.functions if "." not in function.qualname}
    named |= {each.qualname: each for each in module.classes if _is_reached(draft, path, each)}
    for name, definition in sorted(named.items(), key=lambda entry: entry[1].line):
        yield name, path, definition


def _is_reached(draft: Draft, path: str, each: Class) -> bool:
    """Tell whether pytest would come upon a class: at the top, or within plain classes that it collects."""
    outer = each.qualname.rpartition(".")[0]
    while outer:
        holder = next((known for known in draft.modules[path].classes if known.qualname == outer), None)
        if holder is None or not holder.name.startswith("Test") or _is_test_case(lineage_of(draft, path, holder)):
            return False
        outer = outer.rpartition(".")[0]
    return True


def _imported(draft: Draft, path: str, module: Module, *, test_file: bool) -> Iterator[_Named]:
    """Give the classes and functions that a test file imports: pytest runs them there too."""
    if not test_file:
        return
    top = top_level_imports(module)
    for entry in module.imports:
        if entry.name in (None, "*") or entry.line not in top:
            continue
        place = draft.names.find(path, entry.bound)
        if place is not None and not isinstance(place.definition, Constant):
            yield entry.bound, place.path, place.definition


def _of_function(name: str, origin: str, function: Function) -> Collected:
    test = Test(
        id=name,
        name=name,
        function=function.name,
        line=function.line,
        path=origin,
        docstring=function.docstring,
        harness="pytest",
        parameters=_parameters(function.decorators),
    )
    return Collected(test, function)


def _of_class(module: Module, name: str, lineage: tuple[Ancestor, ...]) -> Iterator[Collected]:
    facts = lineage[0].facts
    harness = next((ancestor.last for ancestor in lineage if ancestor.last in HARNESSES), "pytest")
    common = _parameters(facts.decorators if facts else ()) + _per_device(module, name)
    for ancestor, function in _methods(lineage):
        test = Test(
            id=f"{name.replace('.', '::')}::{function.name}",
            name=function.name,
            function=function.name,
            line=function.line,
            path=ancestor.path,
            class_name=name,
            inherited_from=None if ancestor is lineage[0] else ancestor.name,
            docstring=function.docstring,
            harness=harness,
            parameters=_parameters(function.decorators) + common,
        )
        yield Collected(test, function, lineage)


def _is_collected(name: str, lineage: tuple[Ancestor, ...], *, test_file: bool) -> bool:
    switch = next((each.value for ancestor in lineage for each in _attributes(ancestor) if each.name == "__test__"), "True")
    if switch == "False":
        return False
    if _is_test_case(lineage):
        return "." not in name or test_file
    return test_file and name.rpartition(".")[2].startswith("Test") and not any(_is_constructed(ancestor) for ancestor in lineage)


def _is_test_case(lineage: tuple[Ancestor, ...]) -> bool:
    return any(ancestor.last in HARNESSES and (ancestor.facts is None or ancestor.path.endswith(_UNITTEST)) for ancestor in lineage)


def _is_constructed(ancestor: Ancestor) -> bool:
    """Tell whether pytest leaves a class out because it is made with arguments."""
    if ancestor.facts is None:
        return False
    made = any(decorator.name.rpartition(".")[2] == "dataclass" for decorator in ancestor.facts.decorators)
    return made or any(method.name in ("__init__", "__new__") for method in ancestor.facts.methods)


def _attributes(ancestor: Ancestor) -> tuple[Constant, ...]:
    return ancestor.facts.attributes if ancestor.facts else ()


def _methods(lineage: tuple[Ancestor, ...]) -> Iterator[tuple[Ancestor, Function]]:
    """Give the test methods as Python finds them: the first definition in the line counts, be it an attribute."""
    seen: set[str] = set()
    for ancestor in lineage:
        if ancestor.facts is None:
            continue
        methods = {method.name: method for method in ancestor.facts.methods}
        for name, method in methods.items():
            if name not in seen and _is_test(method):
                yield ancestor, method
        seen |= methods.keys() | {each.name for each in ancestor.facts.attributes}


def _is_test(function: Function) -> bool:
    uncallable = any(decorator.name.rpartition(".")[2] in _NOT_CALLABLE for decorator in function.decorators)
    return function.name.startswith("test") and not uncallable


def _parameters(decorators: tuple[Expression, ...]) -> tuple[str, ...]:
    return tuple(decorator.text for decorator in decorators if decorator.name.rpartition(".")[2] in _PARAMETRISERS)


def _per_device(module: Module, name: str) -> tuple[str, ...]:
    return tuple(call.text for call in module.calls if call.name.rpartition(".")[2] in _INSTANTIATES and call.arguments[:1] == (name,))
