"""Which functions run when a test runs, as far as the sources say: its helpers, what is set up around it, its fixtures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct, field

from rankbook.analyse.canonical import split
from rankbook.analyse.draft import Ancestor, Collected, Draft
from rankbook.analyse.values import parsed
from rankbook.model import PACKAGES, Class, Expression, Function, Module

_AROUND_A_CLASS = (
    "setUpClass", "setup_class", "setUp", "asyncSetUp", "setup_method", "perThreadSetUp",
    "perThreadTearDown", "teardown_method", "asyncTearDown", "tearDown", "teardown_class", "tearDownClass",
)  # fmt: skip
"""Methods that run before or after the tests of a class."""
_AROUND_A_MODULE = ("setUpModule", "setup_module", "setup_function", "teardown_function", "teardown_module", "tearDownModule")
_RUN_BY_MAKING = ("__init__", "__post_init__", "__enter__", "__exit__", "__call__", "forward")
"""Methods that run when a class of the suite is made and its object is used."""
_SUITES = frozenset({"test", "tests", "testing"})
"""Names of folders that hold a suite with its helpers."""
_MOST = 2000
"""Functions that are followed from one test."""

Node = tuple[str, str]
"""A function: its file and its qualified name there."""
_Lines = tuple[tuple[str, str], ...]
_Methods = Mapping[str, list[Node]]
"""Methods of a line of inheritance by name, in the order in which Python finds them."""


class Mention(NamedTuple):
    """A use of an imported name, as written in full by the imports of the file."""

    name: str
    line: int
    is_called: bool


class Body(Struct):
    """What the functions of one outermost function, itself included, name."""

    mentions: list[Mention] = field(default_factory=list)
    own: dict[tuple[str, bool], None] = field(default_factory=dict)
    """Methods called on `self` or `cls`, and on `super()`, which is said with them."""
    local: dict[str, int] = field(default_factory=dict)
    """Names of the file itself that it calls, each with its first line."""


def bodies(draft: Draft, path: str) -> Mapping[str, Body]:
    """Give what each function and method of a file names, nested ones under the outermost; the rest comes under no name."""
    return draft.remember(("bodies", path), lambda: _bodies(draft.modules[path]))


def reached(draft: Draft, collected: Collected) -> tuple[Node, ...]:
    """Give the functions that run when a test runs, itself the first.

    Helpers are followed within the suite only: neither into the harness nor into what is under test.

    Args:
        draft: the tree.
        collected: the test.
    """
    lines = tuple((each.path, each.name) for each in collected.lineage if _is_followed(each))
    start = (collected.test.path, collected.function.qualname)
    return draft.remember(("reached", start, lines), lambda: _walk(draft, collected, start, lines))


def _bodies(module: Module) -> dict[str, Body]:
    functions = {function.qualname for function in module.functions}
    functions |= {method.qualname for each in module.classes for method in each.methods}
    around = _Bodies(functions)
    for kind, name, line, scope in module.keywords:
        if kind == "call":
            around[scope].mentions.append(Mention(name, line, is_called=True))
    for _, name, line, scope in module.references:
        around[scope].mentions.append(Mention(name, line, is_called=False))
    for kind, name, _, scope in module.self_calls:
        around[scope].own[name, kind == "super call"] = None
    for _, name, line, scope in module.local_calls:
        around[scope].local.setdefault(name, line)
    return around.found


class _Bodies(dict[str, Body]):
    """Bodies by the scopes inside them.

    Args:
        functions: qualified names of all functions of the file.
    """

    def __init__(self, functions: set[str]) -> None:
        super().__init__()
        self.found: dict[str, Body] = {}
        """By the outermost function."""
        self._functions = functions

    def __missing__(self, scope: str) -> Body:
        body = self[scope] = self.found.setdefault(_owner(scope, self._functions), Body())
        return body


def _owner(scope: str, functions: set[str]) -> str:
    """Name the outermost function around a scope; empty when there is none."""
    end = scope.find(".")
    while end != -1:
        if scope[:end] in functions:
            return scope[:end]
        end = scope.find(".", end + 1)
    return scope if scope in functions else ""


def _is_followed(ancestor: Ancestor) -> bool:
    return ancestor.facts is not None and not ancestor.path.startswith(PACKAGES) and ancestor.harness is None


def _walk(draft: Draft, collected: Collected, start: Node, lines: _Lines) -> tuple[Node, ...]:
    methods = _methods(draft, lines)
    found = dict.fromkeys(draft.remember(("around", start[0], lines), lambda: _around(draft, start[0], methods)))
    _follow(draft, [start, *_fixtures(draft, collected.function, start[0], lines)], methods, found)
    return (start, *sorted(found.keys() - {start}))


def _around(draft: Draft, path: str, methods: _Methods) -> tuple[Node, ...]:
    """Give what runs around each test of a class, or of a file."""
    first = [methods[name][0] for name in _AROUND_A_CLASS if name in methods]
    first += [(path, name) for name in _AROUND_A_MODULE if name in bodies(draft, path)]
    found: dict[Node, None] = {}
    _follow(draft, first, methods, found)
    return tuple(found)


def _follow(draft: Draft, waiting: list[Node], methods: _Methods, found: dict[Node, None]) -> None:
    """Add functions to those that are found, and all that these run."""
    while waiting and len(found) < _MOST:
        node = waiting.pop()
        if node not in found:
            found[node] = None
            waiting += _called(draft, node, methods)


def _methods(draft: Draft, lines: _Lines) -> _Methods:
    """Give the methods of a line of inheritance by name, in the order in which Python finds them."""

    def find() -> dict[str, list[Node]]:
        table: dict[str, list[Node]] = {}
        for path, name in lines:
            facts = _class(draft, path, name)
            for method in facts.methods if facts else ():
                table.setdefault(method.name, []).append((path, method.qualname))
        return table

    return draft.remember(("methods", lines), find)


def _class(draft: Draft, path: str, name: str) -> Class | None:
    place = draft.names.find(path, name, 1)
    return place.definition if place is not None and isinstance(place.definition, Class) else None


def _called(draft: Draft, node: Node, methods: _Methods) -> Iterator[Node]:
    path, qualname = node
    body = bodies(draft, path).get(qualname)
    if body is None:
        return
    for name, is_super in body.own:
        yield from _own(draft, node, methods.get(name, []), name, is_super=is_super)
    for name in body.local:
        yield from _local(draft, path, name)
    yield from _helpers(draft, path, qualname, body)


def _own(draft: Draft, node: Node, line: list[Node], name: str, *, is_super: bool) -> Iterator[Node]:
    """Give the method that a call on `self` runs, or one on `super()`: the next of its name in the line after the class that calls."""
    path, qualname = node
    own = qualname.rpartition(".")[0]
    if not line:
        yield from _method_of(draft, path, own, (name,))
    elif is_super:
        here = (path, f"{own}.{name}")
        yield from line[line.index(here) + 1 if here in line else 0 :][:1]
    else:
        yield line[0]


def _local(draft: Draft, path: str, name: str) -> Iterator[Node]:
    place = draft.names.find(path, name, 1)
    if place is None:
        outer, _, last = name.rpartition(".")
        yield from _method_of(draft, path, outer, (last,))
    elif isinstance(place.definition, Class):
        yield from _method_of(draft, path, name, _RUN_BY_MAKING)
    elif isinstance(place.definition, Function):
        yield path, place.definition.qualname


def _method_of(draft: Draft, path: str, name: str, wanted: tuple[str, ...]) -> Iterator[Node]:
    facts = _class(draft, path, name) if name else None
    for method in facts.methods if facts else ():
        if method.name in wanted:
            yield path, method.qualname


def _helpers(draft: Draft, path: str, qualname: str, body: Body) -> tuple[Node, ...]:
    """Give the functions of other files of the suite that a function names."""
    return draft.remember(("helpers", path, qualname), lambda: tuple(_find_helpers(draft, path, body.mentions)))


def _find_helpers(draft: Draft, path: str, mentions: Iterable[Mention]) -> Iterator[Node]:
    suite = _suite(path)
    for mention in mentions:
        spot = split(draft, path, mention.name)
        if spot is None or spot.path.startswith(PACKAGES) or not spot.path.startswith(suite):
            continue
        place = draft.names.find(spot.path, spot.name)
        if place is not None and place.path.startswith(suite) and not isinstance(place.definition, Class):
            yield from _local(draft, place.path, place.definition.name)


def _suite(path: str) -> str:
    """Give the folder that holds the helpers of a file: the outermost that is called like a suite, else its own."""
    folders = path.split("/")[:-1]
    count = next((index for index, name in enumerate(folders, 1) if name in _SUITES), len(folders))
    return "".join(f"{name}/" for name in folders[:count])


# Fixtures


class _Fixtures(Struct, frozen=True):
    """Fixtures that a file or a class defines."""

    named: Mapping[str, tuple[Node, Function]]
    automatic: tuple[str, ...]
    """Names of those that every test gets."""


def _fixtures(draft: Draft, function: Function, path: str, lines: _Lines) -> list[Node]:
    """Give the fixtures that a test gets, and those that these get, from its class, its file and the conftest files above."""
    places = draft.remember(("fixture places", path, lines), lambda: _places(draft, path, lines))
    if not places:
        return []
    asked = [*(name for place in places for name in place.automatic), *function.requested, *_asked_by_marks(function.decorators)]
    waiting = [(name, 0) for name in asked]
    found: set[Node] = set()
    while waiting:
        name, first = waiting.pop()
        for index, place in enumerate(places[first:], first):
            if name in place.named:
                node, fixture = place.named[name]
                # A fixture that asks for its own name means the one that it hides.
                waiting += [(inner, index + 1 if inner == name else 0) for inner in fixture.requested if node not in found]
                found.add(node)
                break
    return sorted(found)


def _places(draft: Draft, path: str, lines: _Lines) -> list[_Fixtures]:
    """Give what defines fixtures for the tests of a class or a file, the nearest first."""
    places = [*(_of_class(draft, *line) for line in lines), *(_of_file(draft, file) for file in _fixture_files(draft, path))]
    return [place for place in places if place.named]


def _fixture_files(draft: Draft, path: str) -> Iterator[str]:
    yield path
    draft.reads.ask("conftest")
    folder = path
    while folder:
        folder = folder.rpartition("/")[0]
        conftest = f"{folder}/conftest.py" if folder else "conftest.py"
        if conftest != path and conftest in draft.modules:
            yield conftest


def _of_file(draft: Draft, path: str) -> _Fixtures:
    def find() -> _Fixtures:
        return _those(draft, path, (each for each in draft.modules[path].functions if "." not in each.qualname))

    return draft.remember(("fixtures", path), find)


def _of_class(draft: Draft, path: str, name: str) -> _Fixtures:
    def find() -> _Fixtures:
        facts = _class(draft, path, name)
        return _those(draft, path, facts.methods if facts else ())

    return draft.remember(("fixtures", path, name), find)


def _those(draft: Draft, path: str, functions: Iterable[Function]) -> _Fixtures:
    named: dict[str, tuple[Node, Function]] = {}
    automatic = []
    for function in functions:
        for decorator in function.decorators:
            if draft.names.full(path, decorator.name) in ("pytest.fixture", "pytest_asyncio.fixture"):
                options = dict(decorator.keywords)
                name = options.get("name", function.name).strip("'\"")
                named[name] = (path, function.qualname), function
                if options.get("autouse") == "True":
                    automatic.append(name)
    return _Fixtures(named, tuple(automatic))


def _asked_by_marks(decorators: Iterable[Expression]) -> Iterator[str]:
    """Give the names in `@pytest.mark.usefixtures("group")`."""
    for decorator in decorators:
        if decorator.name.endswith("mark.usefixtures"):
            values = (getattr(parsed(argument), "value", None) for argument in decorator.arguments)
            yield from (value for value in values if isinstance(value, str))
