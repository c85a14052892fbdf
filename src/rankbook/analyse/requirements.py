"""What each test needs, from its decorators, classes, harness and module."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from msgspec.structs import replace

from rankbook import words
from rankbook.analyse import pytestmarks
from rankbook.analyse.conditions import by_default, inside, of_condition, of_leaves, of_skip, of_skip_in_full, unknown
from rankbook.analyse.decorators import of_call, of_decorator
from rankbook.analyse.draft import Ancestor, Collected, Draft
from rankbook.analyse.fixtures import fixtures_of
from rankbook.analyse.helpers import of_helpers
from rankbook.analyse.inheritance import lineage_of
from rankbook.analyse.launchers import PER_GPU, may_start, of_starts
from rankbook.analyse.names import Place
from rankbook.analyse.pytest_cases import needy_fixtures
from rankbook.analyse.rules import Evidence, Unread
from rankbook.analyse.values import Value, Values
from rankbook.collecting import SET_UPS
from rankbook.model import GPU_CALL, NCCL_CALL, RANKS_OWN, Class, Constant, Expression, Function, Module, Test
from rankbook.requirements import DEVICES, FAILS, HARNESSES, KINDS, Harness, Requirement, gpu_range, gpus_of_device

_Line = tuple[Ancestor, ...]
_MODULE_SET_UP = frozenset({"setUpModule", "setup_module"})
_SET_UP_ENDS = tuple(SET_UPS)
_HARNESS_FILES = ("torch/testing/_internal/", "unittest/", "torch/_dynamo/")
"""Parts of paths in which the harnesses stand whose rows say all of them."""


_CUDA = re.compile(r"""(?:torch\.device\()?['"](cuda(?::\d+)?)['"](?:, *(\d{1,6}))?\)?""")
"""Values of a parameter, or of an attribute, that name a GPU."""


def of_tests(draft: Draft, path: str, collected: Iterable[Collected]) -> tuple[Test, ...]:
    """Give the tests of a file with what each needs."""
    return tuple(replace(each.test, requirements=_of_test(draft, path, each)) for each in collected)


def of_file(draft: Draft, path: str, tests: Iterable[Test]) -> tuple[Requirement, ...]:
    """Give what a file as a whole needs: the union over its tests, and what its module needs."""
    own = _of_module(draft, path, draft.modules[path])
    return _sorted(_distinct([*own, *(need for test in tests for need in test.requirements)]))


def _of_test(draft: Draft, path: str, collected: Collected) -> tuple[Requirement, ...]:
    """Give what a test needs; variants of which nothing else is said share the answer, and so do functions of which nothing is said."""
    test, function, lineage = collected.test, collected.function, collected.lineage
    device = dict(test.case).get("device")
    decides = (
        function.skips
        or function.leaves
        or function.spawns
        or function.hands
        or function.asks
        or any(call.name == GPU_CALL and call.arguments for call in function.gpu_calls)
    )
    case = test.case if decides or _has_deciding_fixture(draft, path, collected) else ()
    is_plain = not (decides or function.decorators or function.guard or function.gpu_calls)
    own = (function.requested, _lines(lineage)) if is_plain else function.key
    key = (path, test.path, own, test.harness, device, case, test.requirements)

    def needs() -> tuple[Requirement, ...]:
        files = dict.fromkeys([path, *(ancestor.path for ancestor in lineage if _is_own(ancestor)), test.path])
        found = [need for file in files for need in _of_module(draft, file, draft.modules[file], marks=file == path)]
        found += test.requirements
        found += _of_function(draft, path, collected, device)
        found += _of_fixtures(draft, path, collected)
        found += _of_class(draft, lineage, test.harness or "", device)
        found += _of_starts(draft, collected, found)
        found = _closest_sizes(found)
        found += _of_ranks(lineage, HARNESSES.get(test.harness or ""), found)
        found += _of_rank_fixtures(draft, path, collected)
        found += _of_marked_ranks(draft, found)
        return _sorted(_strongest(_distinct(_settled(_strongest(_distinct(_unsaid(found)))))))

    return draft.remember(("test needs", *key, _names(lineage)), needs)


def _of_module(draft: Draft, path: str, module: Module, *, marks: bool = True) -> tuple[Requirement, ...]:
    def guards() -> tuple[Requirement, ...]:
        values = Values(draft.names, path)
        guarded = (need for guard in module.guards for need in of_skip(guard, values, "absent"))
        return (*guarded, *(_by_ranks(need, 1) for need in _of_gpu_calls(module.gpu_calls, values)))

    def before() -> tuple[Requirement, ...]:
        set_ups = [function for function in module.functions if function.qualname in _MODULE_SET_UP]
        return tuple(_by_ranks(need, 1) for function in set_ups for need in _of_set_up(draft, path, function))

    found = draft.remember(("module needs", path), guards)
    if not marks:
        return found
    values = Values(draft.names, path)
    marked = (need for place, mark in pytestmarks.of_module(draft, path) for need in of_decorator(mark, _at(values, place)))
    return (*found, *marked, *draft.remember(("module set-up", path), before))


def _of_set_up(draft: Draft, path: str, function: Function) -> Iterator[Requirement]:
    """Give what a function that runs before all tests of a module skips for, and what of it fails without a GPU."""
    plain = Values(draft.names, path)
    values = inside(function, plain.with_bound(unknown(function, plain)))
    yield from (need for skip in function.skips for need in of_skip(skip, values))
    yield from of_helpers(function, values)
    yield from _of_gpu_calls(function.gpu_calls, plain)


def _of_function(draft: Draft, path: str, collected: Collected, device: str | None) -> tuple[Requirement, ...]:
    function, test = collected.function, collected.test
    key = (test.path, *function.key)

    def decorators() -> tuple[Requirement, ...]:
        values = _bound(_in_class(Values(draft.names, test.path), collected), {"device": device} if device else {})
        return (*(need for each in function.decorators for need in of_decorator(each, values)), *_of_guard(function, values))

    def skips() -> tuple[Requirement, ...]:
        plain = Values(draft.names, test.path, _own(collected.lineage))
        given = by_default(function, plain) if _is_called_plainly(collected, plain) else unknown(function, plain)
        handed = _handed(draft, path, collected, function) if test.harness == "pytest" else {}
        values = inside(function, _bound(plain.with_bound({**given, **handed}), _given(draft, path, collected)))
        skipped = (need for skip in function.skips for need in of_skip(skip, values))
        return (*skipped, *of_leaves(function.leaves, values), *of_helpers(function, values))

    found = draft.remember(("decorator needs", *key, device), decorators)
    plain = Values(draft.names, test.path, collected.lineage)
    found = (*found, *_of_gpu_calls(function.gpu_calls, plain, dict(test.case)))
    return (*found, *skips()) if function.skips or function.leaves or function.asks else found


def _given(draft: Draft, path: str, collected: Collected) -> dict[str, str]:
    """Tell what a test gets for its parameters: what a case says, unless a fixture makes something of it."""
    case = dict(collected.test.case)
    if not case or not collected.function.requested:
        return case
    known = fixtures_of(draft, path, collected.lineage)
    marks = [each for each in collected.function.decorators if each.name.endswith("mark.parametrize")]
    direct = [each for each in marks if "indirect" not in dict(each.keywords) and len(each.arguments) <= 2]
    is_indirect = len(direct) < len(marks)
    given = {name for each in direct for name in re.findall(r"\w+", next(iter(each.arguments), ""))}
    made = {name for name, fixture in known.items() if name not in given and fixture.function.returns != "request.param"}
    return {name: "" if name in made or (is_indirect and name not in known) else text for name, text in case.items()}


def _handed(draft: Draft, path: str, collected: Collected, function: Function, depth: int = 3) -> dict[str, tuple[str, Values]]:
    """Tell what fixtures hand to a test, or to another fixture, as the expressions that they return.

    Args:
        draft: the tree.
        path: file in which the test is collected.
        collected: the test.
        function: what asks for the fixtures.
        depth: fixtures that are followed from one to the next.
    """
    known = fixtures_of(draft, path, collected.lineage) if function.requested and depth else {}
    found = {}
    for fixture in (known[name] for name in function.requested if name in known):
        returned = fixture.function.returns
        if returned is not None and fixture.params is None and fixture.function is not function:
            plain = Values(draft.names, fixture.frame.path)
            asked = _handed(draft, path, collected, fixture.function, depth - 1)
            found[fixture.name] = returned, inside(fixture.function, plain.with_bound({**unknown(fixture.function, plain), **asked}))
    return found


def _is_called_plainly(collected: Collected, values: Values) -> bool:
    """Tell whether nothing that is put around a test may give it arguments: its decorators are marks, or only skip."""
    own = (each.facts.decorators for each in collected.lineage if each.facts is not None)
    return all(_gives_nothing(decorator, values) for decorators in (collected.function.decorators, *own) for decorator in decorators)


def _gives_nothing(decorator: Expression, values: Values) -> bool:
    name = values.names.full(values.path, decorator.name)
    if ".mark." in f".{name}" or name in _PLAIN:
        return True
    rule = values.vocabulary.rule(name)
    return rule is not None and rule.otherwise == "skipped" and bool(rule.needs or rule.condition is not None)


_PLAIN = frozenset({"unittest.expectedFailure", "staticmethod", "classmethod"})
"""Decorators besides marks and skips that give a test no arguments."""


def _has_deciding_fixture(draft: Draft, path: str, collected: Collected) -> bool:
    """Tell whether what a test needs hangs on the parameter of a fixture, by which that skips it."""
    if not collected.test.case:
        return False

    def deciding() -> frozenset[str]:
        known = fixtures_of(draft, path, collected.lineage)
        return frozenset(name for name, fixture in known.items() if any(_PARAMETER.search(skip.text) for skip in fixture.skips))

    names = draft.remember(("deciding fixtures", path, _names(collected.lineage), _lines(collected.lineage)), deciding)
    return not names.isdisjoint(dict(collected.test.case))


_PARAMETER = re.compile(r"\brequest\.param\b(?![\w.(\[])")
"""What a fixture calls its parameter, as a whole."""


def _with_parameter(skip: Expression, value: str) -> Expression:
    """Say the condition of a fixture for one of its parameters, where that is written as a value."""
    try:
        ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return skip
    return skip._replace(text=_PARAMETER.sub(lambda _: value, skip.text))


def _of_fixtures(draft: Draft, path: str, collected: Collected) -> Iterator[Requirement]:
    """Give what the fixtures of a test skip for, and what of them fails without a GPU.

    Of the skips of one that every test gets, only what can be read in full: it may ask what test it is.
    """
    for fixture in needy_fixtures(draft, path, collected):
        plain = Values(draft.names, fixture.frame.path)
        yield from _of_gpu_calls(fixture.gpu_calls, plain)
        asked = _handed(draft, path, collected, fixture.function)
        values = inside(fixture.function, plain.with_bound({**unknown(fixture.function, plain), **asked}))
        value = dict(collected.test.case).get(fixture.name, "")
        for written in fixture.skips:
            skip = _with_parameter(written, value) if value else written
            try:
                yield from of_skip_in_full(skip, values) if fixture.autouse else of_skip(skip, values)
            except Unread:
                continue


def _of_gpu_calls(calls: Iterable[Expression], values: Values, case: Mapping[str, str] = MappingProxyType({})) -> Iterator[Requirement]:
    """Give what a function needs by what it comes to: a GPU; NCCL too, where it joins a process group of that; what the settings say.

    Args:
        calls: what it comes to.
        values: reads attributes of its class, in its file.
        case: values of its parameters, as text: some calls need a GPU only where a parameter names one, or an attribute.
    """
    for call in calls:
        given = {name: number for name in call.arguments if (number := _gpus_named(case.get(name) or _attribute(name, values)))}
        if call.name == GPU_CALL and len(given) < len(call.arguments):
            continue
        if call.name not in (GPU_CALL, NCCL_CALL):
            yield from of_call(call, Values(values.names, values.path), FAILS)
            continue
        gpus = dict(call.keywords)["gpus"]
        yield Requirement("gpus", str(given.get(gpus, gpus)), call.text, values.path, call.line, otherwise=FAILS)
        if call.name == NCCL_CALL:
            yield Requirement("backend", "nccl", call.text, values.path, call.line, otherwise=FAILS)


def _gpus_named(text: str) -> int:
    """Count the GPUs that must be there for a value, as it is written; 0 for one that names none."""
    match = _CUDA.fullmatch(text)
    return 0 if match is None else int(match[2]) + 1 if match[2] else gpus_of_device(match[1])


def _attribute(name: str, values: Values) -> str:
    """Give what `self.device` is set to in the body of the class; empty where it may be something else, and for another name."""
    owner, _, own = name.partition(".")
    found = values.settled(own) if owner == "self" else None
    return found[1].value if found is not None and isinstance(found[1], Constant) else ""


def _unsaid(found: list[Requirement]) -> list[Requirement]:
    """Leave out what calls need where the test says more of it, by a skip, a mark, its harness, and where it is disabled."""
    if not any(need.otherwise == FAILS for need in found):
        return found
    said = [need for need in found if need.otherwise not in ("", FAILS)]
    if any(need.kind == "disabled" or _is_about_gpus(need) for need in said):
        return [need for need in found if need.otherwise != FAILS or need.kind not in ("gpus", "backend")]
    sizes = [need for need in found if need.kind == "world size" and not need.otherwise]
    ranks = sizes[0].value.split(", ") if len(sizes) == 1 else []
    count = max(map(int, ranks), default=1) if all(each.isdecimal() for each in ranks) else 1
    is_nccl = any(need.otherwise == FAILS and need.kind == "backend" for need in found)
    return [_by_ranks(need, count, is_nccl=is_nccl) for need in found]


def _by_ranks(need: Requirement, ranks: int, *, is_nccl: bool = False) -> Requirement:
    """Say how many GPUs ranks need that take one each: with NCCL all of them do.

    Args:
        need: of a call, or another one, which stays as it is.
        ranks: that run the test.
        is_nccl: whether they join a process group of NCCL.
    """
    if need.otherwise != FAILS or need.kind != "gpus":
        return need
    return replace(need, value=str(ranks)) if need.value == RANKS_OWN or (is_nccl and need.value == "1") else need


def _is_about_gpus(need: Requirement) -> bool:
    """Tell whether a need, or a part of it, says whether there must be GPUs."""
    if need.kind == "one of":
        return any(_is_about_gpus(each) for alternative in need.either for each in alternative)
    is_device = need.kind == "device" and ("cuda" in need.value or "GPU" in need.value)
    return is_device or need.kind in ("gpus", "capability", "peer access") or (need.kind, need.value) == ("backend", "nccl")


def _of_starts(draft: Draft, collected: Collected, found: Iterable[Requirement]) -> Iterator[Requirement]:
    """Give the world size of a test that starts processes itself, unless its class or a mark says one."""
    function, test = collected.function, collected.test
    if may_start(function) and not any(need.kind == "world size" for need in found):
        yield from of_starts(function, _bound(Values(draft.names, test.path, _own(collected.lineage)), dict(test.case)))


def _in_class(values: Values, collected: Collected) -> Values:
    """Read on in the body of the class in which a test is defined: its decorators know the names that are set there."""
    holder, _, _ = collected.function.qualname.rpartition(".")
    own = (each.facts for each in collected.lineage if each.path == values.path and each.facts is not None)
    attributes = next((facts.attributes for facts in own if facts.qualname == holder), ())
    times = Counter(each.name for each in attributes)
    once = (each for each in attributes if times[each.name] == 1 and each.guard is None and each.name != "device")
    names = {each.name: (each.value, values) for each in once}
    return values.with_bound(names) if names else values


def _bound(values: Values, case: dict[str, str]) -> Values:
    """Read on with the parameters of a generated test."""
    own = {name: (_quoted(name, text), values) for name, text in case.items()}
    return values.with_bound({**values.bound, **own}) if case else values


def _quoted(name: str, text: str) -> str:
    return repr(text.strip("'\"")) if name == "device" else text


def _of_class(draft: Draft, lineage: tuple[Ancestor, ...], harness: str, device: str | None) -> tuple[Requirement, ...]:
    def needs() -> tuple[Requirement, ...]:
        replaced: set[str] = set()
        found: list[Requirement] = []
        for ancestor in lineage:
            if ancestor.facts:
                found += _of_ancestor(draft, ancestor, ancestor.facts, lineage, device, replaced)
                replaced |= _replacing(draft, ancestor, ancestor.facts)
        found += _of_attributes(draft, lineage, harness)
        return (*found, *_of_harness(lineage, harness, found))

    return draft.remember(("class needs", _names(lineage), device), needs)


def _names(lineage: tuple[Ancestor, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((ancestor.path, ancestor.name) for ancestor in lineage)


def _lines(lineage: tuple[Ancestor, ...]) -> tuple[int, ...]:
    """Tell classes of one name apart."""
    return tuple([0 if ancestor.facts is None else ancestor.facts.line for ancestor in lineage])


def _replacing(draft: Draft, ancestor: Ancestor, facts: Class) -> set[str]:
    """Name the methods before each test that a class has in the place of those of its bases: they do not call them."""
    own = {method.name: f"{facts.qualname}.{method.name}" for method in facts.methods if method.name in SET_UPS}
    module = draft.modules.get(ancestor.path) if own else None
    if module is None:
        return set(own)

    def called() -> frozenset[str]:
        said = (call for call in (*module.self_calls, *module.local_calls, *module.keywords) if call.name.endswith(_SET_UP_ENDS))
        names = ((call.name.rpartition(".")[2], call) for call in said if call.kind.endswith("call"))
        return frozenset([name for name, call in names if own.get(name) == call.scope])

    return set(own) - draft.remember(("called set-ups", ancestor.path, facts.qualname), called)


def _of_ancestor(  # noqa: PLR0913, PLR0917 - one argument for each thing that tells what a class means
    draft: Draft, ancestor: Ancestor, facts: Class, lineage: _Line, device: str | None, replaced: Collection[str]
) -> Iterator[Requirement]:
    values = Values(draft.names, ancestor.path, _own(lineage))
    values = _bound(values, {"device": device} if device else {})
    for decorator in facts.decorators:
        yield from of_decorator(decorator, values)
    if not _is_own(ancestor):
        return
    standing = {method.name: method for method in facts.methods if not method.is_spare}  # of two of a name, the later
    for method in standing.values():
        if method.name in SET_UPS and method.name not in replaced:
            within = inside(method, values)
            for skip in method.skips:
                yield from of_skip(skip, within)
            yield from of_helpers(method, within)
            yield from _of_gpu_calls(method.gpu_calls, Values(draft.names, ancestor.path, lineage))
    for path, mark in pytestmarks.of_class(draft, ancestor.path, facts):
        yield from of_decorator(mark, _at(values, path))
    yield from _of_guard(facts, values)


def _is_own(ancestor: Ancestor) -> bool:
    """Tell whether a known file holds the class, and no row of the table of harnesses says all of it."""
    is_harness = ancestor.harness is not None and any(part in f"/{ancestor.path}" for part in _HARNESS_FILES)
    return bool(ancestor.path) and not is_harness


def _own(lineage: tuple[Ancestor, ...]) -> tuple[Ancestor, ...]:
    """Leave out the harnesses: what they set by default says nothing of the test."""
    return tuple(ancestor for ancestor in lineage if ancestor.harness is None)


def _of_attributes(draft: Draft, lineage: tuple[Ancestor, ...], harness: str) -> Iterator[Requirement]:
    """Read what the class says of itself; of a harness that the tree holds, the table says it.

    Where no harness starts ranks, a backend may be one of kernels, or of a server: only those of torch.distributed are taken for such.
    """
    row = HARNESSES.get(harness)
    starts = (row is not None and bool(row.world_size)) or Values(draft.names, "", lineage).attribute("world_size") is not None
    for name, kind in words.ATTRIBUTES.items():
        values = Values(draft.names, "", _own(lineage))
        found = values.attribute(name)
        if found is not None and (isinstance(found[1], Constant) or not found[1].parameters[1:]):
            needs = _of_member(kind, found[1], values.in_file(found[0]))
            yield from (need for need in needs if starts or kind != "backend" or words.DISTRIBUTED.fullmatch(need.value))


def _of_member(kind: str, member: Constant | Function, values: Values) -> Iterator[Requirement]:
    text = member.value if isinstance(member, Constant) else member.returns
    value = values.of(text) if text else None
    evidence = f"{member.name} = {text}" if isinstance(member, Constant) else f"{member.name} returns {text}"
    if kind == "world size" and isinstance(member, Constant) and member.guard is not None:
        yield _says(kind, "as its class decides", f"{evidence} if {member.guard}", values.path, member.line)
    elif kind == "world size" and text:
        yield _says(kind, _numbers(value) or text, evidence, values.path, member.line)
    elif kind == "world size" and isinstance(member, Function):
        yield _says(kind, f"as {member.qualname} decides", member.qualname, values.path, member.line)
    elif isinstance(value, str) and value:
        yield _says(kind, value.partition(":")[0] if kind == "device" else value, evidence, values.path, member.line)


def _says(kind: str, value: str, evidence: str, path: str, line: int) -> Requirement:
    """Make a requirement that only describes: the test is run, whatever the machine."""
    return Requirement(kind, value, evidence, path, line, otherwise="")


def _numbers(value: Value | None) -> str | None:
    """Write a world size, or several of which each is run in turn."""
    values = value if isinstance(value, tuple) else (value,)
    if not values or not all(isinstance(entry, int) and not isinstance(entry, bool) for entry in values):
        return None
    return ", ".join(map(str, values))


def _of_harness(lineage: tuple[Ancestor, ...], name: str, found: Iterable[Requirement]) -> Iterator[Requirement]:
    """Give the world size of a harness whose classes name none."""
    harness, own = HARNESSES.get(name), lineage[0].facts if lineage else None
    if harness and harness.world_size and own and not any(need.kind == "world size" for need in found):
        yield _says("world size", harness.world_size, name, lineage[0].path, own.line)


def _of_ranks(lineage: tuple[Ancestor, ...], harness: Harness | None, found: Iterable[Requirement]) -> Iterator[Requirement]:
    """Give what a harness skips for: a backend that is missing, GPUs when it wants one per rank."""
    own = lineage[0] if lineage else None
    if own is None or own.facts is None or harness is None:
        return
    said = {need.kind: need for need in reversed(list(found)) if need.kind in ("world size", "backend", "device")}
    if harness.needs_backend and "backend" in said:
        yield replace(said["backend"], otherwise="skipped")
    count = _gpus(harness, {kind: need.value for kind, need in said.items()}, lineage)
    if count:
        yield Requirement("gpus", count, harness.name, own.path, own.facts.line)


def _closest_sizes(found: list[Requirement]) -> list[Requirement]:
    """Keep of the world sizes those of the nearest mark, where there is one: it counts more than what the class says."""
    marked = next((need for need in found if need.kind == "world size" and ".mark." in f".{need.evidence}"), None)
    return [need for need in found if marked is None or need.kind != "world size" or need.evidence == marked.evidence]


def _of_rank_fixtures(draft: Draft, path: str, collected: Collected) -> Iterator[Requirement]:
    """Give the GPUs for whose want a fixture skips that is a class and starts ranks of its own, or that calls such a class."""
    harness = HARNESSES.get(collected.test.harness or "")
    if harness is None or not harness.fixture:
        return
    for name in collected.function.requested:
        for place in _rank_fixtures(draft, path, name, collected.lineage):
            if not isinstance(place.definition, Class):
                continue
            lineage = lineage_of(draft, place.path, place.definition)
            if any(each.last == harness.fixture and harness.is_defined_in(each.path) for each in lineage):
                size = Values(draft.names, place.path, lineage).of("self.world_size")
                numbers = [number for number in (size if isinstance(size, tuple) else (size,)) if isinstance(number, int)]
                if numbers:
                    yield Requirement("gpus", str(max(numbers)), f"fixture {name}", place.path, place.definition.line)


def _rank_fixtures(draft: Draft, path: str, name: str, lineage: _Line) -> Iterator[Place]:
    """Yield what may be a fixture that starts ranks: what a test calls so, and what the function calls that is its fixture."""
    place = draft.names.find(path, name)
    if place is not None:
        yield place
    fixture = fixtures_of(draft, path, lineage).get(name)
    module = draft.modules.get(fixture.frame.path) if fixture is not None else None
    if fixture is None or module is None:
        return
    calls = (call for call in (*module.local_calls, *module.keywords) if call.kind.endswith("call"))
    for called in dict.fromkeys(call.name for call in calls if call.scope == fixture.function.qualname):
        found = draft.names.find(fixture.frame.path, called)
        if found is not None:
            yield found


def _of_marked_ranks(draft: Draft, found: Iterable[Requirement]) -> list[Requirement]:
    """Give the GPUs that a mark without a number asks for beside a mark of ranks: one for each, unless Gloo joins them."""
    sizes = [int(need.value) for need in found if need.kind == "world size" and need.value.isdecimal() and ".mark." in f".{need.evidence}"]
    if len(set(sizes)) != 1 or sizes[0] == 1 or any(need.kind == "backend" and need.value == "gloo" for need in found):
        return []
    return [replace(need, value=str(sizes[0])) for need in found if _is_per_rank(draft, need)]


def _is_per_rank(draft: Draft, need: Requirement) -> bool:
    name = need.evidence.removesuffix("()")
    mark = f"mark.{name.rpartition('.')[2]}"
    is_mark = need.kind == "gpus" and mark in words.PER_RANK and f".{name}".endswith(f".{mark}")
    return is_mark and draft.names.vocabulary.rule(mark) == words.NAMES[mark]


def _gpus(harness: Harness, said: dict[str, str], lineage: tuple[Ancestor, ...]) -> str:
    """Give the GPUs that a harness wants; empty when it wants none, or when only a run can tell."""
    ranks = said.get("world size", "")
    if harness.world_size and PER_GPU.fullmatch(ranks):
        return "1"
    if harness.gpus == "always" or (harness.gpus == "with nccl" and "nccl" in said.get("backend", "")):
        if ranks == DEVICES:
            return "1"
        numbers = [number for number in ranks.split(", ") if number.isdecimal()]
        return max(numbers, key=int, default="") if _uses_gpus(lineage) else ""
    return "1" if harness.needs_backend and ranks == DEVICES and said.get("device") == "cuda" else ""


def _uses_gpus(lineage: tuple[Ancestor, ...]) -> bool:
    """Tell whether no class says that it does without GPUs."""
    attributes = (each for ancestor in lineage if ancestor.facts for each in ancestor.facts.attributes)
    return next((each.value for each in attributes if each.name == "requires_cuda_env"), "True") != "False"


def _of_guard(definition: Class | Function, values: Values) -> Iterable[Requirement]:
    if definition.guard is None or definition.is_either:
        return ()
    evidence = Evidence(f"if {definition.guard}", values.path, definition.line, "absent")
    return of_condition(definition.guard, values, evidence, wanted=True)


def _at(values: Values, path: str) -> Values:
    """Give what is known in the file in which a mark is written."""
    return values if path == values.path else Values(values.names, path)


_LOSS = {"": 0, FAILS: 1, "skipped": 1, "absent": 2}
"""How much is lost where a requirement is not met."""


def _distinct(needs: Iterable[Requirement]) -> list[Requirement]:
    """Keep the first evidence of each need, and of those the one for whose want the test is lost."""
    kept: dict[tuple[str, str], Requirement] = {}
    for need in needs:
        known = kept.setdefault((need.kind, need.value), need)
        if _LOSS[need.otherwise] > _LOSS[known.otherwise]:
            kept[need.kind, need.value] = need
    return list(kept.values())


def _strongest(needs: list[Requirement]) -> list[Requirement]:
    """Of several numbers of GPUs with the same end, keep the greatest: it holds the others; of a package, the one with its version."""
    greatest: dict[str, int] = {}
    for need in needs:
        if need.kind == "gpus" and need.value.isdecimal():
            greatest[need.otherwise] = max(int(need.value), greatest.get(need.otherwise, 0))
    of_version = {(need.value.partition(" >")[0], need.otherwise) for need in needs if need.kind == "package" and " >" in need.value}
    numbered = (need for need in needs if need.kind != "package" or (need.value, need.otherwise) not in of_version)
    return [need for need in numbered if need.kind != "gpus" or not need.value.isdecimal() or int(need.value) == greatest[need.otherwise]]


def _settled(needs: list[Requirement]) -> Iterator[Requirement]:
    """Leave out of alternatives what the other needs answer: with "1 GPU", of "no GPU or capability >= 8.9" the second is left."""
    least = max((int(need.value) for need in needs if need.kind == "gpus" and need.otherwise and need.value.isdecimal()), default=0)
    for need in needs:
        if not (least and need.kind == "one of"):
            yield need
            continue
        possible = [each for each in need.either if not any(_excludes_gpus(part) for part in each)]
        left = [tuple(part for part in each if not _is_met(part, least)) for each in possible]
        if not left or left == list(need.either):
            yield need
        elif len(left) == 1:
            yield from (replace(part, otherwise=need.otherwise) for part in left[0])
        elif all(left):
            yield replace(need, value=" or ".join(" and ".join(part.text for part in each) for each in left), either=tuple(left))


def _excludes_gpus(need: Requirement) -> bool:
    """Tell whether there must be no GPU at all."""
    return need.kind == "gpus" and gpu_range(need.value) == (0, 0)


def _is_met(need: Requirement, gpus: int) -> bool:
    """Tell whether a number of GPUs is enough for a need."""
    return need.kind == "gpus" and need.value.isdecimal() and int(need.value) <= gpus


def _sorted(needs: list[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(needs, key=lambda need: (KINDS.index(need.kind), need.value, need.path, need.line)))
