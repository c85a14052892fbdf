"""What a module offers to others, and what of it no test mentions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from fnmatch import fnmatchcase

from rankbook.analyse.canonical import Spot, absolute, alias, origin, public_name
from rankbook.analyse.draft import Draft
from rankbook.analyse.names import top_level_imports
from rankbook.analyse.values import parsed
from rankbook.dotted import INIT, is_private, module_name
from rankbook.model import PACKAGES, Class, Constant, Function, Import, PublicName, Survey

Listed = Callable[[str], Iterable[str]]
"""Gives the modules in the folder of a package outside the tree."""
_DEPTH = 16
"""Modules whose `__all__` is made from that of the next one."""


def public_names(draft: Draft, apis: Iterable[str], below: Listed = lambda _: ()) -> tuple[PublicName, ...]:
    """Read the public names of modules: their `__all__`, else what they define and what a package takes from its own modules.

    Methods are left out: a call on an object whose type only a run can tell is no evidence for or against one.

    Args:
        draft: the tree, with the packages that it imports.
        apis: dotted modules; `mypkg.*` for those below `mypkg`.
        below: gives the modules in the folder of a package outside the tree.

    Returns:
        Each name once, by its public name, sorted.
    """
    found: dict[str, PublicName] = {}
    for module, path in _modules(draft, apis, below).items():
        for name in exported(draft, path):
            for entry in _described(draft, Spot(module, path, name)):
                found.setdefault(entry.name, entry)
    return tuple(found[name] for name in sorted(found))


def unknown_modules(draft: Draft, apis: Iterable[str], below: Listed = lambda _: ()) -> tuple[str, ...]:
    """Give the entries of the setting `apis` for which no file is known."""
    return tuple(api for api in apis if not _modules(draft, [api], below))


def mentioned(surveys: Iterable[Survey]) -> dict[str, int]:
    """Count by name the files with tests that use it, in their own lines or in those that their tests reach."""
    counts: dict[str, int] = {}
    for survey in surveys:
        for use in survey.uses if survey.tests else ():
            counts[use.name] = counts.get(use.name, 0) + 1
    return counts


def unmentioned(public: Iterable[PublicName], names: Collection[str]) -> tuple[PublicName, ...]:
    """Give the public names that no test mentions, neither themselves nor something within them.

    Args:
        public: what modules offer.
        names: what tests mention, as `mentioned` gives it.
    """
    known = {name[:end] for name in names for end in _ends(name)}
    return tuple(each for each in public if each.name not in known)


def exported(draft: Draft, path: str) -> list[str]:
    """Name what a module offers, in the order of the alphabet."""
    return sorted(draft.remember(("exported", path), lambda: _exported(draft, path, frozenset())))


def _ends(name: str) -> Iterator[int]:
    yield from (index for index, letter in enumerate(name) if letter == ".")
    yield len(name)


def _modules(draft: Draft, apis: Iterable[str], below: Listed) -> dict[str, str]:
    """Find the files of modules."""
    found: dict[str, str] = {}
    for api in apis:
        target = None if "*" in api else _file(draft, api)
        found |= {api: target} if target else dict(_matching(draft, api, below)) if "*" in api else {}
    return found


def _file(draft: Draft, module: str) -> str | None:
    """Find the file of a module from the root, or from the folder below it that its package lies in (`src/`)."""
    inside = module.replace(".", "/")
    ends = (f"/{inside}/{INIT}", f"/{inside}.py")
    below = (path for path in draft.modules if path.endswith(ends) and module_name(path, draft.modules.__contains__) == module)
    return draft.names.target("", module) or min(below, key=len, default=None)


def _matching(draft: Draft, pattern: str, below: Listed) -> Iterator[tuple[str, str]]:
    """Find the modules whose names fit a pattern; one of the tree comes behind, and so before, a file of a package of the same name."""
    package = pattern.partition("*")[0].rpartition(".")[0].replace(".", "/")
    for path in below(package) if package else ():
        name = module_name(path.removeprefix(PACKAGES), lambda _: True)
        if fnmatchcase(name, pattern):
            yield name, path
    for path in draft.modules:
        if path.endswith((".py", ".pyi")):
            name = module_name(path, draft.modules.__contains__)
            if fnmatchcase(name, pattern) and not is_private(name):
                yield name, path


def _described(draft: Draft, spot: Spot) -> Iterator[PublicName]:
    """Say what a public name is and where it is defined; a module is none."""
    end = origin(draft, spot)
    if end is None or not end.name:
        return
    name = public_name(draft, spot.path, spot.full)
    place = (draft.names.find(end.path, end.name, 1) if end.path else None) or draft.names.find(spot.path, spot.name, 1)
    if place is None:
        entry = draft.names.bindings(spot.path).get(spot.name)
        yield PublicName(name, spot.path, entry.line if entry else 0, "name")
    else:
        yield PublicName(name, place.path, place.definition.line, _kind(place.definition))


def _kind(definition: Class | Function | Constant) -> str:
    return type(definition).__name__.lower()


def _exported(draft: Draft, path: str, above: frozenset[str]) -> set[str]:
    if path in above or len(above) > _DEPTH:
        return set()
    names = listed(draft, path, above)
    return names if names is not None else set(_by_default(draft, path, above | {path}))


def _by_default(draft: Draft, path: str, above: frozenset[str]) -> Iterator[str]:
    """Give what a module without `__all__` offers: what it defines; of a package also what it takes from its own modules."""
    module = draft.modules[path]
    defined = [function.name for function in module.functions if "." not in function.qualname]
    defined += [each.name for each in module.classes if "." not in each.qualname]
    defined += [constant.name for constant in module.constants if alias(draft, path, constant)]
    yield from (name for name in defined if not name.startswith("_") and name not in module.deleted)
    top = top_level_imports(module)
    for entry in module.imports:
        if entry.line in top and _is_passed_on(draft, path, entry):
            yield from _passed_on(draft, path, entry, above)


def _is_passed_on(draft: Draft, path: str, entry: Import) -> bool:
    """Tell whether an import is there for others: `as` the same name, or in a package from a module of its own."""
    if entry.name is None:
        return False
    if entry.alias == entry.name:
        return True
    own = module_name(path, draft.modules.__contains__)
    source = absolute(draft, path, "." * entry.level + entry.module)
    return path.endswith(INIT) and source.partition(".")[0] == own.partition(".")[0]


def _passed_on(draft: Draft, path: str, entry: Import, above: frozenset[str]) -> Iterator[str]:
    if entry.name != "*":
        yield from (name for name in (entry.bound,) if not name.startswith("_"))
        return
    target = draft.names.target(path, "." * entry.level + entry.module)
    if target is not None:
        yield from _exported(draft, target, above)


# __all__


def listed(draft: Draft, path: str, above: frozenset[str] = frozenset()) -> set[str] | None:
    """Read `__all__`; None when there is none, or none that can be read.

    Args:
        draft: the tree.
        path: the module.
        above: modules whose own list is made from this one.
    """
    module = draft.modules[path]
    texts = [constant.value for constant in module.constants if constant.name == "__all__"]
    parts = [_strings(draft, path, parsed(text), above | {path}) for text in texts]
    if None in parts or not parts:
        return None
    for call in module.calls:
        if call.name in ("__all__.extend", "__all__.append"):
            parts += [_strings(draft, path, parsed(argument), above | {path}) for argument in call.arguments]
    return {name for part in parts for name in part or ()}


def _strings(draft: Draft, path: str, node: ast.AST | None, above: frozenset[str]) -> set[str] | None:
    """Give the strings of a list, of several that are added, or of another module's `__all__`; None for anything else."""
    found: set[str] = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            waiting += node.elts
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            waiting += [node.left, node.right]
        elif isinstance(node, ast.Starred):
            waiting.append(node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        elif isinstance(node, ast.Name) and node.id == "__all__":
            continue  # what was in it before: `__all__ += [...]`
        elif isinstance(node, ast.Attribute) and node.attr == "__all__":
            spot = Spot("", path, ast.unparse(node.value))
            end = origin(draft, spot)
            found |= _exported(draft, end.path, above) if end is not None and end.path and not end.name else set()
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple", "sorted"):
            waiting += node.args
        else:
            return None
    return found
