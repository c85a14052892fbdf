"""What each test needs, from its decorators, classes, harness and module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from rankbook import requirements as tables
from rankbook.analyse.conditions import Evidence, expression, of_condition, of_decorator
from rankbook.analyse.draft import Ancestor, Collected, Draft
from rankbook.analyse.values import Value, Values, parsed
from rankbook.model import Class, Constant, Expression, Function, Module, Test
from rankbook.requirements import HARNESSES, Requirement

_SET_UP = frozenset({"setUp", "setUpClass", "asyncSetUp", "setup_method", "setup_class"})
"""Methods that run before each test of a class and may skip it."""


def of_tests(draft: Draft, path: str, collected: Iterable[Collected]) -> tuple[Test, ...]:
    """Give the tests of a file with what each needs."""
    return tuple(replace(each.test, requirements=_of_test(draft, path, each)) for each in collected)


def of_file(draft: Draft, path: str, tests: Iterable[Test]) -> tuple[Requirement, ...]:
    """Give what a file as a whole needs: the union over its tests, and what its module needs."""
    own = _of_module(draft, path, draft.modules[path])
    return _sorted(_distinct([*own, *(need for test in tests for need in test.requirements)]))


def _of_test(draft: Draft, path: str, collected: Collected) -> tuple[Requirement, ...]:
    files = dict.fromkeys([path, *(ancestor.path for ancestor in collected.lineage if ancestor.path), collected.test.path])
    found = [need for file in files for need in _of_module(draft, file, draft.modules[file], marks=file == path)]
    found += _of_function(draft, collected.test.path, collected.function, collected.lineage)
    found += _of_class(draft, collected.lineage, collected.test.harness or "")
    found += _of_ranks(collected.lineage, collected.test.harness or "", found)
    return _sorted(_strongest(_distinct(found)))


def _of_module(draft: Draft, path: str, module: Module, *, marks: bool = True) -> tuple[Requirement, ...]:
    def guards() -> tuple[Requirement, ...]:
        values = Values(draft.names, path)
        return tuple(need for guard in module.guards for need in _of_skip(guard, values))

    found = draft.remember(("module needs", path), guards)
    if not (marks and module.marks):
        return found
    values = Values(draft.names, path)
    return (*found, *(need for mark in module.marks for need in of_decorator(mark, values)))


def _of_function(draft: Draft, path: str, function: Function, lineage: tuple[Ancestor, ...]) -> list[Requirement]:
    values = Values(draft.names, path, lineage)
    found = [need for decorator in function.decorators for need in of_decorator(decorator, values)]
    found += [need for skip in function.skips for need in _of_skip(skip, values)]
    return [*found, *_of_guard(function, values)]


def _of_class(draft: Draft, lineage: tuple[Ancestor, ...], harness: str) -> tuple[Requirement, ...]:
    def needs() -> tuple[Requirement, ...]:
        found = [need for ancestor in lineage if ancestor.facts for need in _of_ancestor(draft, ancestor, ancestor.facts, lineage)]
        found += _of_attributes(draft, lineage)
        return (*found, *_of_harness(lineage, harness, found))

    return draft.remember(("class needs", tuple((ancestor.path, ancestor.name) for ancestor in lineage)), needs)


def _of_ancestor(draft: Draft, ancestor: Ancestor, facts: Class, lineage: tuple[Ancestor, ...]) -> Iterator[Requirement]:
    values = Values(draft.names, ancestor.path, lineage)
    for decorator in facts.decorators:
        yield from of_decorator(decorator, values)
    for method in facts.methods:
        if method.name in _SET_UP:
            for skip in method.skips:
                yield from _of_skip(skip, values)
    for mark in _class_marks(facts):
        yield from of_decorator(mark, values)
    yield from _of_guard(facts, values)


def _of_attributes(draft: Draft, lineage: tuple[Ancestor, ...]) -> Iterator[Requirement]:
    """Read what the class says of itself; of a harness that the tree holds, the table says it."""
    own = tuple(ancestor for ancestor in lineage if ancestor.last not in HARNESSES)
    for name, kind in tables.ATTRIBUTES.items():
        values = Values(draft.names, "", own)
        found = values.attribute(name)
        if found is not None and (isinstance(found[1], Constant) or not found[1].parameters[1:]):
            yield from _of_member(kind, found[1], values.in_file(found[0]))


def _of_member(kind: str, member: Constant | Function, values: Values) -> Iterator[Requirement]:
    text = member.value if isinstance(member, Constant) else member.returns
    value = values.of(text) if text else None
    evidence = f"{member.name} = {text}" if isinstance(member, Constant) else f"{member.name} returns {text}"
    if kind == "world size" and text:
        yield Requirement(kind, _number(value) or text, evidence, values.path, member.line)
    elif kind == "world size" and isinstance(member, Function):
        yield Requirement(kind, f"as {member.qualname} decides", member.qualname, values.path, member.line)
    elif isinstance(value, str) and value:
        yield Requirement(kind, value.partition(":")[0] if kind == "device" else value, evidence, values.path, member.line)


def _number(value: Value | None) -> str | None:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _of_harness(lineage: tuple[Ancestor, ...], name: str, found: Iterable[Requirement]) -> Iterator[Requirement]:
    """Give the world size of a harness whose classes name none."""
    harness, own = HARNESSES.get(name), lineage[0].facts if lineage else None
    if harness and harness.world_size and own and not any(need.kind == "world size" for need in found):
        yield Requirement("world size", harness.world_size, name, lineage[0].path, own.line)


def _of_ranks(lineage: tuple[Ancestor, ...], name: str, found: Iterable[Requirement]) -> Iterator[Requirement]:
    """Give the GPUs of a harness that wants one per rank when its backend is NCCL."""
    values = {need.kind: need.value for need in found if need.kind in ("world size", "backend")}
    own = lineage[0].facts if lineage else None
    if own and HARNESSES[name].gpus_for_nccl and values.get("backend") == "nccl" and values["world size"].isdigit():
        yield Requirement("gpus", values["world size"], name, lineage[0].path, own.line)


def _of_skip(skip: Expression, values: Values) -> Iterable[Requirement]:
    """Read a condition that skips the test or ends the module; a bare call is what it says."""
    evidence = Evidence(skip.text, values.path, skip.line)
    if skip.name == "ImportError":
        return [Requirement("package", module.partition(".")[0], f"import {module}", values.path, skip.line) for module in skip.arguments]
    if skip.name.endswith("importorskip"):
        return of_decorator(skip, values)
    if _is_unconditional(skip):
        return [Requirement("condition", skip.text, skip.text, values.path, skip.line)]
    return of_condition(skip.text, values, evidence, wanted=False)


def _is_unconditional(skip: Expression) -> bool:
    return skip.name.rpartition(".")[2] in ("skip", "skipTest", "SkipTest", "exit", "_exit", "SystemExit", "quit", "Exception")


def _of_guard(definition: Class | Function, values: Values) -> Iterable[Requirement]:
    if definition.guard is None:
        return ()
    evidence = Evidence(f"if {definition.guard}", values.path, definition.line)
    return of_condition(definition.guard, values, evidence, wanted=True)


def _class_marks(facts: Class) -> Iterator[Expression]:
    for attribute in facts.attributes:
        if attribute.name == "pytestmark":
            yield from _marks(attribute)


def _marks(attribute: Constant) -> Iterator[Expression]:
    node = parsed(attribute.value)
    for entry in getattr(node, "elts", [node]):
        if entry is not None:
            yield expression(entry, attribute.line)


def _distinct(needs: Iterable[Requirement]) -> list[Requirement]:
    """Keep the first evidence of each need."""
    kept: dict[tuple[str, str], Requirement] = {}
    for need in needs:
        kept.setdefault((need.kind, need.value), need)
    return list(kept.values())


def _strongest(needs: list[Requirement]) -> list[Requirement]:
    """Of several numbers of GPUs, keep the greatest: it holds the others."""
    numbers = [int(need.value) for need in needs if need.kind == "gpus"]
    return [need for need in needs if need.kind != "gpus" or int(need.value) == max(numbers)]


def _sorted(needs: list[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(needs, key=lambda need: (tables.KINDS.index(need.kind), need.value, need.path, need.line)))
