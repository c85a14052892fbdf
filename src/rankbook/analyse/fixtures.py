"""The fixtures that a test sees: those of its class, its file and the `conftest.py` files of the folders above."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from rankbook.analyse import aliases, statements
from rankbook.analyse.draft import Ancestor, Draft
from rankbook.analyse.evaluate import Frame
from rankbook.analyse.names import top_level_imports
from rankbook.analyse.variants import Decorator, decorator
from rankbook.collecting import GENERATING_HOOK
from rankbook.model import Constant, Expression, Function

_SCOPES = ("session", "package", "module", "class", "function")
"""From the widest to the narrowest."""
_READ = frozenset({"fixturenames", "config", "function", "cls", "module", "definition"})
"""What a hook may read of what it is given without parametrising a test."""
_MARKS = frozenset({"pytest.fixture", "pytest_asyncio.fixture"})
_MAY_BE_ONE = re.compile(r"[A-Za-z_][\w.]*|.*\bfixture\b.*\)")
"""What an assignment may bind to a name that makes it one of a fixture."""
_STARS = 4
"""Files that `import *` is followed through."""


class Fixture(Struct, frozen=True):
    """A fixture with what of it bears on the names of tests."""

    name: str
    asks: tuple[str, ...]
    """Names of its parameters."""
    params: ast.expr | None
    ids: ast.expr | None
    frame: Frame
    """Where these stand."""
    autouse: bool
    rank: int
    """Place of its scope among all, the widest first."""
    function: Function
    over: Fixture | None = None
    """The fixture of the same name in whose place it stands, and for which it asks."""

    @property
    def parametrised(self) -> Fixture | None:
        """The nearest of those that it is made of that has parameters."""
        found: Fixture | None = self
        while found is not None and found.params is None:
            found = found.over
        return found

    @property
    def skips(self) -> tuple[Expression, ...]:
        """Conditions under which it skips the test that asks for it."""
        return self.function.skips

    @property
    def gpu_calls(self) -> tuple[Expression, ...]:
        """What it comes to, and what fails where there is no GPU."""
        return self.function.gpu_calls


def fixtures_of(draft: Draft, path: str, lineage: tuple[Ancestor, ...] = ()) -> dict[str, Fixture]:
    """Give the fixtures by name; the nearest of a name wins.

    Args:
        draft: the tree.
        path: file in which the test is collected.
        lineage: its classes.
    """

    def find() -> dict[str, Fixture]:
        found: dict[str, Fixture] = {}
        for conftest in _conftests(draft, path):
            _put_over(found, of_file(draft, conftest))
        _put_over(found, of_file(draft, path))
        for ancestor in reversed(lineage):
            if ancestor.facts is not None:
                _put_over(found, _among(draft, ancestor.path, ancestor.facts.methods))
                _put_over(found, _renamed(draft, ancestor, ancestor.facts.attributes))
        return found

    return draft.remember(("all fixtures", path, *((each.path, each.name, each.facts and each.facts.line) for each in lineage)), find)


def _put_over(found: dict[str, Fixture], nearer: Mapping[str, Fixture]) -> None:
    """Put fixtures in the place of those of their names that are farther away; one may ask for what it stands in the place of."""
    for name, fixture in nearer.items():
        farther = found.get(name)
        asks = farther is not None and name in fixture.function.requested
        found[name] = replace(fixture, over=farther) if asks else fixture


def _renamed(draft: Draft, holder: Ancestor, constants: Iterable[Constant]) -> dict[str, Fixture]:
    """Give the fixtures that stand under another name: `right = left`, `right = pytest.fixture(params=[1, 2])(make)`."""
    found: dict[str, Fixture] = {}
    for constant in constants:
        if _MAY_BE_ONE.fullmatch(constant.value):
            bound = aliases.meant(draft, holder, constant, is_case=False)
            if bound is not None:
                found |= _among(draft, bound[0].path, (bound[1],), constant.name)
    return found


def parametrised_by_hooks(draft: Draft, path: str, lineage: tuple[Ancestor, ...] = ()) -> tuple[frozenset[str] | None, ...]:
    """Give what each hook `pytest_generate_tests` that bears on a file parametrises; None for one of which only a run can tell.

    Args:
        draft: the tree.
        path: file in which the test is collected.
        lineage: its classes.
    """

    def find() -> tuple[frozenset[str] | None, ...]:
        places = (draft.names.find(each, GENERATING_HOOK) for each in (*_conftests(draft, path), path))
        return tuple(_parametrised(place.definition) for place in places if place is not None and isinstance(place.definition, Function))

    own = (each for ancestor in lineage if ancestor.facts for each in ancestor.facts.methods if each.name == GENERATING_HOOK)
    return (*draft.remember(("hooks", path), find), *map(_parametrised, own))


def _parametrised(hook: Function) -> frozenset[str] | None:
    """Give the names that a hook parametrises by `metafunc.parametrize("name", ...)`; None where they may be others too."""
    node = statements.definition(hook.text) if hook.text else None
    if node is None:
        return None
    found: list[str] = []
    told: list[ast.expr] = []
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "parametrize":
            names = [*part.args, *(each.value for each in part.keywords if each.arg == "argnames")][:1]
            told += [part.func.value] * len(names)
            for each in names:
                nodes = each.elts if isinstance(each, (ast.Tuple, ast.List)) else [each]
                found += [_string(each) for each in nodes]
        elif isinstance(part, ast.Attribute) and part.attr in _READ:
            told.append(part.value)
    is_open = any(isinstance(part, ast.Name) and part.id == "metafunc" and part not in told for part in ast.walk(node))
    return None if is_open or "" in found else frozenset(name.strip() for each in found for name in each.split(","))


def of_file(draft: Draft, path: str, stars: int = _STARS) -> dict[str, Fixture]:
    """Give the fixtures that a file defines or imports at its top."""

    def table() -> dict[str, Fixture]:
        module = draft.modules[path]
        found: dict[str, Fixture] = {}
        top = top_level_imports(module) if stars else set()
        for entry in module.imports:
            if entry.line in top and entry.name is not None:
                found |= _imported(draft, path, entry.bound if entry.name != "*" else "", "." * entry.level + entry.module, stars)
        found |= _among(draft, path, tuple(each for each in module.functions if each.qualname == each.name))
        return found | _renamed(draft, Ancestor("", path), module.constants)

    return draft.remember(("fixtures", path, stars), table)


def _imported(draft: Draft, path: str, name: str, module: str, stars: int) -> dict[str, Fixture]:
    if not name:
        target = draft.names.target(path, module)
        return of_file(draft, target, stars - 1) if target and target != path else {}
    place = draft.names.find(path, name)
    if place is None or not isinstance(place.definition, Function):
        return {}
    return _among(draft, place.path, (place.definition,), name)


def _conftests(draft: Draft, path: str) -> Iterator[str]:
    """Give the `conftest.py` files that bear on a file, the outermost first."""
    draft.reads.ask("conftest")
    parts = path.split("/")[:-1]
    for count in range(len(parts) + 1):
        conftest = "/".join([*parts[:count], "conftest.py"])
        if conftest in draft.modules and conftest != path:
            yield conftest


def _among(draft: Draft, path: str, functions: tuple[Function, ...], name: str = "") -> dict[str, Fixture]:
    """Give the fixtures among some functions.

    Args:
        draft: the tree.
        path: file of the functions.
        functions: these.
        name: under which they stand where that is another than their own; a name that is given to the fixture itself counts more.
    """
    found: dict[str, Fixture] = {}
    for function in functions:
        for written in function.decorators if not function.is_spare else ():
            meant = decorator(draft, Frame(path), written) if written.name else None
            if meant is not None and meant.name in _MARKS:
                fixture = _fixture(function, meant, name or function.name)
                found[fixture.name] = fixture
    return found


def _fixture(function: Function, meant: Decorator, name: str) -> Fixture:
    named = {keyword.arg: keyword.value for keyword in meant.call.keywords if keyword.arg} if meant.call is not None else {}
    scope = _string(named.get("scope")) or "function"
    autouse = named.get("autouse")
    called = _string(named.get("name")) or name
    return Fixture(
        name=called,
        asks=tuple(name for name in function.requested if name != called),
        params=named.get("params"),
        ids=named.get("ids"),
        frame=meant.frame,
        autouse=isinstance(autouse, ast.Constant) and autouse.value is True,
        rank=_SCOPES.index(scope) if scope in _SCOPES else len(_SCOPES) - 1,
        function=function,
    )


def _string(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
