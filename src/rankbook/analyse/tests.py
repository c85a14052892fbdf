"""The tests that pytest and unittest would run: inherited, generated and imported ones included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from rankbook.analyse import absl_tests, aliases, decorated, expanded, marks, pytest_cases, torch_tests, wrappers
from rankbook.analyse.draft import Ancestor, Collected, Draft
from rankbook.analyse.evaluate import Frame
from rankbook.analyse.inheritance import lineage_of
from rankbook.analyse.made_classes import made_classes
from rankbook.analyse.made_functions import MadeFunction, by_decorators, made_functions
from rankbook.analyse.names import top_level_imports
from rankbook.analyse.public import listed
from rankbook.analyse.things import Unknown
from rankbook.analyse.variants import Shown, Variant, guarded, marked, why
from rankbook.model import Class, Constant, Expression, Function, Import, Module, Test
from rankbook.requirements import Requirement

_PARAMETRISERS = frozenset({
    "parametrize", "subtest", "ops", "dtypes", "modules", "optims", "parametrized", "expand", "parameterized_class",
    "parameters", "named_parameters", "product",
})  # fmt: skip
_NOT_CALLABLE = frozenset({"property", "cached_property", "fixture", "setter"})
_UNITTEST = ("unittest/case.py", "unittest/async_case.py")
"""Where `TestCase` stands in a tree that holds Python's own library."""


class _Held(Struct, frozen=True):
    """A class as pytest comes upon it."""

    name: str
    """In the file, with the classes around it."""
    lineage: tuple[Ancestor, ...]
    line: int = 0
    """Where it is made, when no class statement does."""
    device: str = ""
    case: Shown = ()
    needs: tuple[Requirement, ...] = ()
    family: str = ""
    own_tests: bool = True
    """Whether the tests of its own body are there."""
    made_of: Class | None = None
    """The class that a decorator makes it of."""
    outer: tuple[tuple[Ancestor, ...], ...] = ()
    """Lines of the classes around it, the nearest first."""


class _Method(Struct, frozen=True):
    """A test of a class, or a function that is one, before pytest makes cases of it."""

    ancestor: Ancestor
    """Class that defines it; of a function, one without a name."""
    function: Function
    variant: Variant
    family: str = ""
    idle: str = ""


def collect(draft: Draft, path: str) -> list[Collected]:
    """Collect the tests of a file, in the order in which pytest finds them."""
    module = draft.modules[path]
    if not is_test_module(draft, path):
        return []
    found = {collected.test.id: collected for collected in _collect(draft, path, module)}
    return list(_kept(draft, path, module, found.values()) if module.deleted or module.deleted_if else found.values())


def _kept(draft: Draft, path: str, module: Module, found: Iterable[Collected]) -> Iterator[Collected]:
    """Leave out what a `del` takes away, and say of what one takes away under a condition that it is there where that is not met."""
    own: list[Class | Function | Constant] = [*module.functions, *module.classes, *module.constants]
    last = {each.name if isinstance(each, Constant) else each.qualname: each.line for each in sorted(own, key=lambda each: each.line)}
    for collected in found:
        test = collected.test
        name = test.id.partition("[")[0].partition("::")[0]
        if name in module.deleted:
            continue
        taken = [each for each in module.deleted_if if each.name == name and each.line > last.get(name, 0)]
        needs = (need for each in taken for need in guarded(draft, path, each.line, each.text, wanted=False))
        yield replace(collected, test=replace(test, requirements=(*test.requirements, *needs))) if taken else collected


def is_test_module(draft: Draft, path: str) -> bool:
    """Tell whether something runs the tests of a file as its own: pytest, which knows it by its name, or itself."""
    module = draft.modules[path]
    if module.source.language != "python" or module.error is not None:
        return False
    return draft.rules.is_test_file(path) or module.runs_its_tests


def _collect(draft: Draft, path: str, module: Module) -> Iterator[Collected]:
    for name, origin, definition in _found(draft, path, module):
        if isinstance(definition, Function):
            if _is_callable(definition):
                yield from _of_functions(draft, path, name, origin, definition)
                for made in by_decorators(draft, path, definition) if origin == path else ():
                    yield from _of_made(draft, path, made)
            continue
        for held in definition:
            yield from _of_held(draft, path, held)
    yield from _of_aliases(draft, path, module)
    for made in made_functions(draft, path):
        is_test = draft.rules.is_test_function(made.name) or (bool(made.family) and draft.rules.is_test_class(made.name))
        if is_test and not made.holder:
            yield from _of_made(draft, path, made)


def _of_aliases(draft: Draft, path: str, module: Module) -> Iterator[Collected]:
    """Give the functions of a module that stand under another name in it."""
    defined = {name for name, _ in own_definitions(module)} | set(module.deleted)
    for constant in module.constants:
        if draft.rules.is_test_function(constant.name) and constant.name not in defined:
            for method in _renamed(draft, Ancestor("", path), constant, is_case=False):
                yield from _of_function(draft, path, method)


def _of_made(draft: Draft, path: str, made: MadeFunction) -> Iterator[Collected]:
    origin, variant = Ancestor("", made.path or path), Variant(made.name, needs=made.needs)
    yield from _of_function(draft, path, _Method(origin, made.function, variant, made.family))


def _of_held(draft: Draft, path: str, held: _Held) -> Iterator[Collected]:
    if not _is_collected(draft, held):
        return
    yield from _of_class(draft, path, held)
    if not is_test_case(held.lineage):
        for inner in _within(draft, held):
            yield from _of_held(draft, path, inner)


def _within(draft: Draft, held: _Held) -> Iterator[_Held]:
    """Give the classes within a plain class, those that it inherits too."""
    seen: set[str] = set()
    around = [line[0].facts for line in (held.lineage, *held.outer)]
    for ancestor in held.lineage:
        for each in draft.modules[ancestor.path].classes if ancestor.facts else ():
            outer, _, name = each.qualname.rpartition(".")
            if outer == ancestor.name and name not in seen and not any(each is facts for facts in around):  # none is within itself
                seen.add(name)
                yield _Held(f"{held.name}.{name}", lineage_of(draft, ancestor.path, each), outer=(held.lineage, *held.outer))


_Found = tuple[str, str, Function | list[_Held]]
"""Name in the file, source, and the function, or what a class is made into."""


def _found(draft: Draft, path: str, module: Module) -> Iterator[_Found]:
    for name, place, definition in _imported(draft, path, module):
        if isinstance(definition, Function):
            yield name, place, definition
        else:
            yield name, place, [_Held(name, lineage_of(draft, place, definition))]
    for name, own in own_definitions(module):
        yield (name, path, own) if isinstance(own, Function) else (name, path, list(_made_into(draft, path, own)))
    for made in made_classes(draft, path):
        yield made.name, path, [_Held(made.name, made.lineage, made.line, case=made.case, needs=made.needs)]


def own_definitions(module: Module) -> Iterator[tuple[str, Class | Function]]:
    """Give what stands in the file by itself; of two definitions of a name, the later one, unless it is a spare."""
    own: list[Class | Function] = [*module.functions, *module.classes]
    named = {each.qualname: each for each in own if "." not in each.qualname and not each.is_spare}
    for constant in module.constants:
        if constant.name in named and _takes_away(constant, named[constant.name].line):
            del named[constant.name]
    yield from sorted(named.items(), key=lambda entry: entry[1].line)


def _imported(draft: Draft, path: str, module: Module) -> Iterator[tuple[str, str, Class | Function]]:
    """Give the classes and functions that a test file imports: pytest runs them there too."""
    top = top_level_imports(module)
    for entry in module.imports:
        if entry.name is None or entry.line not in top:
            continue
        names = [entry.bound] if entry.name != "*" else _public(draft, path, _source(entry), {path})
        for name in names:
            place = draft.names.find(path, name)
            if place is not None and not isinstance(place.definition, Constant):
                yield name, place.path, place.definition


def _public(draft: Draft, path: str, module: str, seen: set[str]) -> list[str]:
    """Give the names that `import *` takes from a module: those of its `__all__`, else all that it defines, imports and takes so itself.

    Args:
        draft: the tree.
        path: file with the import.
        module: as written there.
        seen: files that are passed over.
    """
    target = draft.names.target(path, module)
    if target is None or target in seen:
        return []
    seen.add(target)
    named, facts = listed(draft, target), draft.modules[target]
    names = sorted(named) if named is not None else [name for name in _bound(draft, target, seen) if not name.startswith("_")]
    return [name for name in dict.fromkeys(names) if name not in facts.deleted]


def _bound(draft: Draft, path: str, seen: set[str]) -> Iterator[str]:
    """Yield the names that a module gives to functions, to classes and to what it imports from others."""
    module = draft.modules[path]
    names = [*(each.qualname for each in module.functions), *(each.qualname for each in module.classes)]
    yield from (name for name in names if "." not in name)
    top = top_level_imports(module)
    for entry in module.imports:
        if entry.name is not None and entry.line in top:
            yield from [entry.bound] if entry.name != "*" else _public(draft, path, _source(entry), seen)


def _source(entry: Import) -> str:
    return "." * entry.level + entry.module


def _made_into(draft: Draft, path: str, each: Class) -> Iterator[_Held]:
    """Give the classes that a class statement leads to: one per device, one per set of attributes, mostly itself."""
    lineage = lineage_of(draft, path, each)
    call = torch_tests.instantiated(draft, path).get(each.qualname)
    try:
        if call is not None and torch_tests.is_by_device(draft, path, call):
            for device in torch_tests.devices(draft, path, call):
                case = (("device", device.name),)
                yield _Held(f"{each.name}{device.name.upper()}", lineage, device=device.name, case=case, needs=device.needs)
            return
        made = expanded.classes(draft, path, each) if each.decorators else None
    except Unknown as error:
        text = call.text if call is not None else each.decorators[0].text
        yield _Held(each.qualname, lineage, family=why(error, text))
        return
    for variant in made or ():
        attributes = tuple(Constant(name, text, each.line) for name, text in variant.case)
        own = Class(variant.name, variant.name, each.line, each.end_line, each.docstring, attributes=attributes)
        held = (Ancestor(variant.name, path, own), *lineage)
        yield _Held(variant.name, held, case=variant.case, needs=variant.needs, made_of=each)
    yield _Held(each.qualname, lineage, own_tests=made is None)


def _of_functions(draft: Draft, path: str, name: str, origin: str, function: Function) -> Iterator[Collected]:
    """Give the tests of a function: itself, or those that a decorator puts beside it."""
    if origin == path and expanded.is_expanded(function):
        for method in _generate(draft, Ancestor("", path), function, ""):
            if draft.rules.is_test_function(method.variant.name):
                yield from _of_function(draft, path, method)
    elif draft.rules.is_test_function(name):
        yield from _of_function(draft, path, _Method(Ancestor("", origin), function, Variant(name)))


def _of_function(draft: Draft, path: str, method: _Method) -> Iterator[Collected]:
    function, variant, origin = method.function, method.variant, method.ancestor.path
    test = Test(
        id=variant.name,
        name=variant.name,
        function=function.name,
        line=function.line,
        path=origin,
        docstring=function.docstring,
        harness="pytest",
        requirements=(*variant.needs, *marked(draft, origin, function, variant.marks)),
        parameters=_parameters(function.decorators),
        case=variant.case,
        family=method.family,
        marks=_sorted(marks.around(draft, path), *_marks_of(draft, method)),
        decorators=_sorted(decorated.names_of(draft, origin, function)),
    )
    if test.family:
        yield Collected(test, function)
        return
    yield from _cases(draft, path, Collected(test, function))


def _of_class(draft: Draft, path: str, held: _Held) -> Iterator[Collected]:
    facts = held.made_of or held.lineage[0].facts
    harness = next((row.name for ancestor in held.lineage if (row := ancestor.harness)), "pytest")
    written = (*_parameters(facts.decorators if facts else ()), *_by_device(draft, held))
    is_case = is_test_case(held.lineage)
    lineages = (held.lineage, *held.outer)
    around = marks.around(draft, path, lineages)
    found = list(_methods(draft, held, is_case=is_case)) or list(_run_test(held, is_case=is_case))
    for method in found:
        ancestor, function, variant = method.ancestor, method.function, method.variant
        test = Test(
            id=f"{held.name.replace('.', '::')}::{variant.name}",
            name=variant.name,
            function=function.name,
            line=function.line,
            path=ancestor.path,
            class_name=held.name,
            inherited_from=None if ancestor.facts is facts and not held.line else ancestor.name,
            docstring=function.docstring,
            harness=harness,
            requirements=(*held.needs, *variant.needs, *marked(draft, ancestor.path, function, variant.marks)),
            parameters=_parameters(function.decorators) + written,
            case=tuple({**dict(held.case), **dict(variant.case)}.items()),
            family=method.family or held.family,
            idle=method.idle,
            marks=_sorted(around, *_marks_of(draft, method)),
            decorators=_sorted(decorated.names_of(draft, ancestor.path, function, held.lineage)),
        )
        collected = Collected(test, function, held.lineage)
        yield from (collected,) if is_case or method.family else _cases(draft, path, collected, lineages)


def _cases(draft: Draft, path: str, collected: Collected, lineages: pytest_cases.Lineages = ()) -> Iterator[Collected]:
    """Give the cases that pytest makes of a test."""
    test = collected.test
    try:
        made = pytest_cases.generated(draft, Frame(path, test.line), collected.function, test.path, lineages)
    except Unknown as error:
        text = next((text for text in test.parameters if "parametrize" in text), test.name)
        yield replace(collected, test=replace(test, family=why(error, text)))
        return
    for variant in made if made is not None else (None,):
        yield collected if variant is None else replace(collected, test=_case(draft, collected, variant))


def _case(draft: Draft, collected: Collected, variant: Variant) -> Test:
    test = collected.test
    needs = (*test.requirements, *variant.needs, *marked(draft, test.path, collected.function, variant.marks))
    name = f"{test.name}[{variant.name}]"
    marked_by = _sorted(test.marks, marks.of_case(draft, test.path, test.line, variant.marks))
    return replace(test, id=f"{test.id}[{variant.name}]", name=name, case=(*test.case, *variant.case), requirements=needs, marks=marked_by)


def _marks_of(draft: Draft, method: _Method) -> tuple[marks.Marks, marks.Marks]:
    """Give the marks of a function, and those of what it is made into."""
    path, function = method.ancestor.path, method.function
    return marks.of_function(draft, path, function), marks.of_case(draft, path, function.line, method.variant.marks)


def _sorted(*found: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({mark for each in found for mark in each}))


def _is_collected(draft: Draft, held: _Held) -> bool:
    lineage, name = held.lineage, held.name
    switch = next((each.value for ancestor in lineage for each in _attributes(ancestor) if each.name == "__test__"), "True")
    if switch == "False" or is_wrapped(draft, lineage[0]):
        return False
    if is_test_case(lineage):
        return True
    is_named = draft.rules.is_test_class(name.rpartition(".")[2])
    return is_named and constructor_of(draft, lineage) is None


def is_test_case(lineage: tuple[Ancestor, ...]) -> bool:
    """Tell whether a class is one of unittest's, which pytest finds by any name."""
    return any(ancestor.harness and (ancestor.facts is None or ancestor.path.endswith(_UNITTEST)) for ancestor in lineage)


def is_wrapped(draft: Draft, own: Ancestor) -> bool:
    """Tell whether pytest finds no class under the name of one, and no test either, since a decorator makes it a function."""
    if own.facts is None or not own.facts.decorators or draft.rules.is_test_function(own.facts.name):
        return False
    return wrappers.makes_function(draft, own.path, own.facts) is not None


def constructor_of(draft: Draft, lineage: tuple[Ancestor, ...]) -> tuple[Ancestor, int] | None:
    """Give the class that has pytest leave out those of its line, because they are made with arguments, and the line of what says so.

    None where there is none, and where a class of the line is not known: it may be one of unittest's, which pytest finds all the same.
    """
    if any(ancestor.facts is None and ancestor.name not in (*_HARMLESS, *_CONSTRUCTED) for ancestor in lineage):
        return None
    for ancestor in lineage:
        if any(each.name in _CONSTRUCTORS for each in _attributes(ancestor)):
            return None  # it is set to something
        if line := _made_at(draft, ancestor):
            return ancestor, line
        if ancestor.facts is None and ancestor.name in _CONSTRUCTED:
            return (ancestor, 0) if all(_has_sure_bases(draft, each) for each in lineage) else None
    return None


def _has_sure_bases(draft: Draft, ancestor: Ancestor) -> bool:
    """Tell whether a class has the same bases wherever its file is imported, as far as no name of them is set to something else."""
    if ancestor.facts is None:
        return True
    facts, path = ancestor.facts, ancestor.path
    twins = [each for each in draft.modules[path].classes if each.qualname == facts.qualname]
    heads = [base.name.partition(".")[0] for base in facts.bases]
    return facts.guard is None and len(twins) == 1 and all(_is_bound_once(draft, path, head) for head in heads)


def _is_bound_once(draft: Draft, path: str, name: str) -> bool:
    return draft.names.is_kept(path, name) and not draft.names.assigned(path, name)


_HARMLESS = frozenset({"object", "typing.Generic", "abc.ABC", "torch.utils.data.Dataset"})
"""Classes that no file of the tree holds, and that neither are unittest's nor have a constructor."""
_CONSTRUCTED = frozenset({
    "torch.nn.Module", "torch.nn.modules.Module", "torch.nn.modules.module.Module", "torch.autograd.Function",
    "torch.autograd.function.Function", "typing.Protocol", "typing_extensions.Protocol",
})  # fmt: skip
"""Classes that no file of the tree holds, and that are not unittest's, but have a constructor."""
_CONSTRUCTORS = frozenset({"__init__", "__new__"})
MAKERS = frozenset({
    "dataclasses.dataclass", "attr.s", "attr.attrs", "attr.dataclass", "attr.define", "attr.frozen", "attr.mutable", "attrs.define",
    "attrs.frozen", "attrs.mutable",
})  # fmt: skip
"""Decorators that give a class a constructor."""


def _made_at(draft: Draft, ancestor: Ancestor) -> int:
    """Give the line of the constructor of a class, or of the decorator that makes it; 0 where there is none for certain."""
    if ancestor.facts is None:
        return 0
    for decorator in ancestor.facts.decorators:
        is_maker = draft.names.full(ancestor.path, decorator.name) in MAKERS
        if is_maker and ("init", "False") not in decorator.keywords:
            return decorator.line
    made = (method.line for method in ancestor.facts.methods if method.name in _CONSTRUCTORS and method.guard is None)
    return next(made, 0)


def tests_of(draft: Draft, path: str, each: Class) -> list[Test]:
    """Give the tests that a class, and those within it, would have if pytest found it, inherited ones too."""
    held = _Held(each.qualname, lineage_of(draft, path, each))
    within = () if is_test_case(held.lineage) else _within(draft, held)
    inner = [collected for one in within for collected in _of_held(draft, path, one)]
    return [collected.test for collected in (*_of_class(draft, path, held), *inner)]


def tests_of_function(draft: Draft, path: str, function: Function) -> list[Test]:
    """Give the tests that a function would be if pytest found it."""
    return [collected.test for collected in _of_functions(draft, path, function.name, path, function)]


def _attributes(ancestor: Ancestor) -> tuple[Constant, ...]:
    return ancestor.facts.attributes if ancestor.facts else ()


def _methods(draft: Draft, held: _Held, *, is_case: bool) -> Iterator[_Method]:
    """Give the tests as Python finds them: the first definition in the line counts, be it an attribute."""
    seen: set[str] = set()
    for place, ancestor in enumerate(held.lineage):
        if ancestor.facts is None:
            continue
        call = torch_tests.instantiated(draft, ancestor.path).get(ancestor.name)
        is_emptied = expanded.is_emptied(ancestor.facts) and ancestor.facts is not held.made_of
        taken = is_emptied or torch_tests.is_by_device(draft, ancestor.path, call)  # these are deleted from the class
        is_there = not taken if place else held.own_tests
        defined = _defined(draft, ancestor, "" if place else held.device, is_case=is_case, is_there=is_there)
        for name, method in defined.items():
            if method is not None and name not in seen:
                yield method
        seen |= defined.keys()


def _defined(draft: Draft, ancestor: Ancestor, device: str, *, is_case: bool, is_there: bool) -> dict[str, _Method | None]:
    """Give what the body of a class defines, by name: tests, and None for all else.

    Args:
        draft: the tree.
        ancestor: the class.
        device: that it is made for; empty where it is not.
        is_case: whether unittest's names count.
        is_there: whether the tests of its body stay in it; those that do not count for nothing.
    """
    defined: dict[str, _Method | None] = {}
    for each in _attributes(ancestor):
        defined[each.name] = None
        if is_there and is_test_name(draft, each.name, is_case=is_case):
            defined |= {method.variant.name: method for method in _renamed(draft, ancestor, each, device, is_case=is_case)}
    for function in ancestor.facts.methods if ancestor.facts else ():
        is_test = is_test_name(draft, function.name, is_case=is_case) or expanded.is_expanded(function)
        if function.is_spare or (is_test and not is_there):
            continue
        if not (is_test and _is_callable(function)):
            defined[function.name] = None
            continue
        defined.pop(function.name, None)
        made = _generated(draft, ancestor, function, device)
        defined |= {method.variant.name: method for method in made if is_test_name(draft, method.variant.name, is_case=is_case)}
        defined |= {method.variant.name: method for method in (_left(draft, ancestor, function, made) if is_case else ())}
        # What is left has the name of the function, and hides the test of a base that has it, too.
        defined |= {function.name: defined.get(function.name)} if _is_hiding(ancestor, function) else {}
    for each in _attributes(ancestor):
        method = defined.get(each.name)
        if method is not None and _takes_away(each, method.function.line):
            defined[each.name] = None
    for other in made_functions(draft, ancestor.path):
        if other.holder == ancestor.name and is_test_name(draft, other.name, is_case=is_case):
            variant, origin = Variant(other.name, needs=other.needs), Ancestor("", other.path) if other.path else ancestor
            defined.setdefault(other.name, _Method(origin, other.function, variant, other.family))
    return defined


def _is_hiding(ancestor: Ancestor, function: Function) -> bool:
    """Tell whether a function of which tests are made is sure to leave its name to nothing."""
    is_set_anew = any(each.name == function.name and each.line > function.line for each in _attributes(ancestor))
    return expanded.is_expanded(function) and function.guard is None and not is_set_anew


def _left(draft: Draft, ancestor: Ancestor, function: Function, made: Iterable[_Method]) -> Iterator[_Method]:
    """Give the test that is left of a method of which others are made, as unittest finds it."""
    if expanded.is_expanded(function) and is_test_name(draft, function.name, is_case=True) and not any(method.family for method in made):
        frame = Frame(ancestor.path, function.line, owner=ancestor.facts)
        left = expanded.left(draft, frame, function, [method.variant for method in made])
        if left is not None:
            alone, variant, idle = left
            yield _Method(ancestor, alone, variant, idle=idle)


def _takes_away(constant: Constant, line: int) -> bool:
    """Tell whether an assignment takes the name of what is defined in a line: `test_x = None` below it."""
    return constant.value == "None" and constant.guard is None and constant.line > line


def _renamed(draft: Draft, holder: Ancestor, constant: Constant, device: str = "", *, is_case: bool) -> Iterator[_Method]:
    """Give what a function is made into that an assignment puts under another name; nothing when it does not."""
    ancestor, function = aliases.meant(draft, holder, constant, is_case=is_case) or (holder, None)
    if function is None or not _is_callable(function):
        return
    around = guarded(draft, holder.path, constant.line, constant.guard)
    for method in _generated(draft, ancestor, replace(function, name=constant.name), device):
        variant = replace(method.variant, needs=(*method.variant.needs, *around))
        yield replace(method, function=replace(method.function, name=function.name), variant=variant)


def _generated(draft: Draft, ancestor: Ancestor, function: Function, device: str) -> tuple[_Method, ...]:
    """Give what a method of a class is made into, once for all classes that inherit it."""
    question = ("generated", ancestor.path, ancestor.name, function.name, *function.key, device)
    return draft.remember(question, lambda: tuple(_generate(draft, ancestor, function, device)))


def _generate(draft: Draft, ancestor: Ancestor, function: Function, device: str) -> Iterator[_Method]:
    frame = Frame(ancestor.path, function.line, owner=ancestor.facts)
    try:
        made = expanded.generated(draft, frame, function) if function.decorators else None
        made = absl_tests.generated(draft, frame, function) if made is None else made
        call = torch_tests.instantiated(draft, ancestor.path).get(ancestor.name)
        if made is None and (device or (call is not None and not torch_tests.is_by_device(draft, ancestor.path, call))):
            made = torch_tests.generated(draft, frame, function, device)
    except Unknown as error:
        text = next(iter(_parameters(function.decorators)), function.name)
        yield _Method(ancestor, function, Variant(function.name), why(error, text))
        return
    for variant in made if made is not None else (Variant(function.name),):
        yield _Method(ancestor, expanded.kept(function), variant)


def _run_test(held: _Held, *, is_case: bool) -> Iterator[_Method]:
    """Give the one test of a case that has no other."""
    for ancestor in held.lineage if is_case else ():
        for function in ancestor.facts.methods if ancestor.facts else ():
            if function.name == "runTest":
                yield _Method(ancestor, function, Variant(function.name))
                return


def is_test_name(draft: Draft, name: str, *, is_case: bool) -> bool:
    """Tell whether a method of that name is a test: unittest has a rule of its own."""
    return name.startswith("test") if is_case else draft.rules.is_test_function(name)


def _is_callable(function: Function) -> bool:
    return not any(decorator.name.rpartition(".")[2] in _NOT_CALLABLE for decorator in function.decorators)


def _parameters(decorators: Iterable[Expression]) -> tuple[str, ...]:
    return tuple(decorator.text for decorator in decorators if decorator.name.rpartition(".")[2] in _PARAMETRISERS)


def _by_device(draft: Draft, held: _Held) -> tuple[str, ...]:
    own = held.lineage[0]
    call = torch_tests.instantiated(draft, own.path).get(own.name) if own.path else None
    return (call.text,) if call is not None and torch_tests.is_by_device(draft, own.path, call) else ()
