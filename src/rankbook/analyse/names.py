"""What a name in a file means: through imports, re-exports and aliases, as far as the tree goes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, NamedTuple, TypeVar

from rankbook.analyse.reads import Reads
from rankbook.analyse.stars import Star, Stars, Walk
from rankbook.dotted import INIT
from rankbook.model import PACKAGES, Class, Constant, Function, Import, Module
from rankbook.standard_library import OF_ALL_VERSIONS
from rankbook.vocabulary import BUILT_IN, Vocabulary

_Answer = TypeVar("_Answer")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_MOST_PARTS = 24
"""Parts of a dotted name that are looked at."""
_ENDS = (f"/{INIT}", ".py", ".pyi")
"""What the path of a module adds to its name, the first one first."""
_DEPTH = 16
"""Re-exports that a name is followed through."""


class Place(NamedTuple):
    """Where a name is defined."""

    path: str
    definition: Class | Function | Constant


class Optional(NamedTuple):
    """What an import that may fail gives."""

    package: str
    is_whole: bool
    """Whether it fails only where the package is missing: no name is taken from it, no module of it, and nothing else may fail."""


_FAILED = "not_importable("
"""How a condition begins that says that an import fails."""


class Names:
    """Looks names up across the tree, and behind it in the packages that are known.

    Args:
        modules: all files by path, those of packages too.
        paths: files of the tree.
        reads: notes what is read and what is looked for.
        vocabulary: what names of decorators, marks and flags mean, wherever they are defined.
        is_own: tells of a file of a package whether the project itself holds it.
        starts: folders of the tree in which an absolute import may start anywhere, the first one first.
    """

    def __init__(  # noqa: PLR0913 - one argument for each thing that answers are read from
        self,
        modules: Mapping[str, Module],
        paths: frozenset[str],
        reads: Reads,
        vocabulary: Vocabulary = BUILT_IN,
        is_own: Callable[[str], bool] | None = None,
        *,
        starts: tuple[str, ...] = (),
    ) -> None:
        self.vocabulary = vocabulary
        self._starts = starts
        self._is_own = is_own
        self._modules = modules
        self._files = paths
        self._reads = reads
        self._definitions: dict[str, dict[str, Class | Function | Constant]] = {}
        self._bindings: dict[str, dict[str, Import]] = {}
        self._targets: dict[Hashable, Any] = {}
        self._splits: dict[Hashable, Any] = {}
        self._unsettled: dict[str, frozenset[str]] = {}
        self._ways: dict[str, Counter[str]] = {}
        """In how many ways a file binds a name: those of functions only where the module does not bind it."""
        self._whole: dict[str, Stars] = {}
        self._walks: dict[str, Walk] = {}
        self._roots: dict[str, tuple[str, ...]] = {}
        self._answers: dict[Hashable, Any] = {}

    def target(self, path: str, module: str) -> str | None:
        """Find the file of the tree that an import names.

        Args:
            path: file that imports.
            module: dotted module, with its leading dots.
        """
        self._reads.ask(module.rpartition(".")[2])
        return self._target(path.rpartition("/")[0], module)

    def is_own(self, path: str, module: str) -> bool:
        """Tell whether the project itself holds a module, or a package around it, so that no other package can be missing.

        Args:
            path: file that imports it.
            module: its full dotted name; its first parts may be folders without an `__init__.py`.
        """
        around = accumulate(module.split("."), "{}.{}".format)
        taken = (f"{module}.{each.name}" for each in self._modules[path].imports if each.module == module and each.name and not each.level)
        targets = (self.target(path, name) for name in chain(around, taken))
        return any(target is not None and self._is_of_project(target) for target in targets)

    def _is_of_project(self, path: str) -> bool:
        return not path.startswith(PACKAGES) or (self._is_own is not None and self._is_own(path))

    def split(self, path: str, name: str) -> tuple[str, str, str] | None:
        """Split a full dotted name into the longest module that is known, and the rest; None when no part of it is.

        Args:
            path: file that uses it.
            name: the name.

        Returns:
            The module, its file and the rest.
        """
        folder = path.rpartition("/")[0]
        return self._reads.remembered(self._splits, (folder, name), lambda: self._split(folder, name))

    def full(self, path: str, name: str) -> str:
        """Write a name of a file in full, by its imports: `dist.barrier` → `torch.distributed.barrier`."""
        root, dot, rest = name.partition(".")
        entry = self.bindings(path).get(root)
        return name if entry is None else _meaning(entry) + dot + rest

    def find(self, path: str, name: str, depth: int = _DEPTH, *, once: bool = False) -> Place | None:
        """Find where a name of a file is defined; None when that is not in the tree.

        Args:
            path: file that uses the name.
            name: dotted name as written there.
            depth: re-exports and aliases still to follow.
            once: whether a name on the way counts only where nothing else in its file binds it.
        """
        if depth == 0 or not name or path not in self._modules:
            return None
        self._reads.note(path)
        found = self._own(path, name, depth, once=once)
        is_hidden = once and found is None and name.partition(".")[0] in self.bindings(path)
        return found if found is not None or is_hidden else self._starred(path, name, depth, once=once)

    def starred(self, path: str, name: str) -> Iterator[Star]:
        """Yield the modules that a file imports whole, near or far, that bind the first part of a name, noting all that are looked into.

        Args:
            path: the file.
            name: dotted name that it does not bind otherwise.
        """
        walk = self._walks.get(path)
        if walk is None:
            walk = self._walks[path] = Walk(path, self._stars_of, self._bound)
        for place in walk.places(name.partition(".")[0]):
            read, asked = walk.until[place]
            self._reads.take(walk.read[:read], walk.asked[:asked])
            yield walk.stars[place]
        self._reads.take(walk.read, walk.asked)

    def has(self, path: str, name: str) -> bool:
        """Tell whether a file itself defines or imports a name."""
        self._reads.note(path)
        return self._definition(path, name) is not None or name in self.bindings(path)

    def only(self, path: str, name: str) -> Place | None:
        """Find the one definition of a name; None when there is none in the tree, or more than one: only a run can tell."""
        return self.remember(("only", path, name), lambda: self.find(path, name, once=True))

    def constant(self, path: str, name: str) -> Place | None:
        """Find the one assignment of a constant; None when there is none, or more than one or an import too: only a run can tell."""
        place = self.find(path, name)
        if place is None or not isinstance(place.definition, Constant) or place.definition.name in self.bindings(place.path):
            return None
        same = [each for each in self._modules[place.path].constants if each.name == place.definition.name]
        return place if len(same) == 1 else None

    def settled(self, path: str, name: str) -> Place | None:
        """Find a constant that has one assignment, and is never changed or set otherwise in its file, or in the one that asks."""
        place = self.constant(path, name)
        if place is None or self.only(path, name) != place or name in self._doubted(path):
            return None
        is_sure = place.definition.guard is None or not self._stars(place.path)
        return place if is_sure and place.definition.name not in self._doubted(place.path) else None

    def is_kept(self, path: str, name: str) -> bool:
        """Tell whether a file sets a name by assignments alone."""
        return name not in self._doubted(path)

    def is_settled(self, path: str, attribute: str) -> bool:
        """Tell whether a file sets an attribute nowhere but in the bodies of its classes."""
        return f".{attribute}" not in self._doubted(path)

    def optional(self, path: str, name: str) -> Optional | None:
        """Find the package of a name that is imported, and set to None where that fails; None for any other name."""
        place = self.find(path, name)
        if place is None or not isinstance(place.definition, Constant) or place.definition.value != "None":
            return None
        own, guard = place.definition.name, place.definition.guard or _FAILED
        entry = self.bindings(place.path).get(own)
        if entry is None or entry.level or own in self._doubted(place.path) or not guard.startswith(_FAILED):
            return None
        is_whole = entry.name is None and "." not in entry.module and guard == f"{_FAILED}{entry.module!r})"
        return Optional(entry.module.partition(".")[0], is_whole)

    def remember(self, question: Hashable, answer: Callable[[], _Answer]) -> _Answer:
        """Answer a question about names once; later askers take over what the answer was read from."""
        return self._reads.remembered(self._answers, question, answer)

    def forget(self) -> None:
        """Forget all answers, and the files that they were read from."""
        self._answers.clear()
        self._definitions.clear()
        self._bindings.clear()
        self._unsettled.clear()
        self._ways.clear()
        self._splits.clear()
        self._whole.clear()
        self._walks.clear()

    def within(self, place: Place) -> Iterator[Function]:
        """Give a function and the functions that it defines inside."""
        if not isinstance(place.definition, Function):
            return
        qualname, lines = place.definition.qualname, range(place.definition.line, place.definition.end_line + 1)
        for function in self._modules[place.path].functions:
            if function.line in lines and (function.qualname == qualname or function.qualname.startswith(f"{qualname}.")):
                yield function

    def alternatives(self, place: Place) -> list[Function]:
        """Give the functions of its file that a function's name may stand for, in the order of their lines: mostly itself alone."""
        function = place.definition
        if not isinstance(function, Function) or not function.is_twin:
            return [function] if isinstance(function, Function) else []
        return [each for each in self._modules[place.path].functions if each.qualname == function.qualname]

    def assigned(self, path: str, name: str) -> list[Constant]:
        """Give all assignments of a module-level name of a file."""
        self._reads.note(path)
        return [each for each in self._modules[path].constants if each.name == name] if path in self._modules else []

    def bindings(self, path: str) -> dict[str, Import]:
        """Give the imports of a file by the name that they bind; those of the module win over those of functions."""
        self._reads.note(path)
        if path not in self._bindings:
            module = self._modules[path]
            top = top_level_imports(module)
            ordered = sorted(module.imports, key=lambda entry: entry.line in top)
            self._bindings[path] = {entry.bound: entry for entry in ordered if entry.name != "*"}
        return self._bindings[path]

    def _doubted(self, path: str) -> frozenset[str]:
        """Name what a file sets otherwise than its assignments say."""
        self._reads.note(path)
        known = self._unsettled.get(path)
        if known is None:
            module = self._modules[path]
            known = self._unsettled[path] = frozenset((*module.unsettled, *module.deleted))
        return known

    def _is_sure(self, path: str, name: str) -> bool:
        """Tell whether a file binds the first part of a name in one way alone."""
        root = name.partition(".")[0]
        self._reads.note(path)
        if path not in self._ways:
            module = self._modules[path]
            top = top_level_imports(module)
            ways = Counter(constant.name for constant in module.constants)
            ways.update(each.name for each in module.functions if "." not in each.qualname)
            ways.update(each.name for each in module.classes if "." not in each.qualname)
            ways.update(bound for bound, _ in {(entry.bound, _meaning(entry)) for entry in module.imports if entry.line in top})
            inner = Counter(bound for bound, _ in {(entry.bound, _meaning(entry)) for entry in module.imports if entry.line not in top})
            self._ways[path] = Counter({**inner, **ways})
        return self._ways[path][root] <= 1 and (root not in self._doubted(path) or root in self.bindings(path))

    def _own(self, path: str, name: str, depth: int, *, once: bool = False) -> Place | None:
        """Find what a file itself defines or imports by its name."""
        if once and not self._is_sure(path, name):
            return None
        found = self._definition(path, name)
        if isinstance(found, Constant) and _DOTTED.fullmatch(found.value) and found.value != name:
            return self.find(path, found.value, depth - 1, once=once) or Place(path, found)
        return Place(path, found) if found is not None else self._imported(path, name, depth, once=once)

    def _definition(self, path: str, name: str) -> Class | Function | Constant | None:
        return self._defined(path).get(name)

    def _defined(self, path: str) -> dict[str, Class | Function | Constant]:
        if path not in self._definitions:
            module = self._modules[path]
            table: dict[str, Class | Function | Constant] = {constant.name: constant for constant in module.constants}
            # Of functions all: a decorator that stands in for another is the one that says why a test is skipped.
            table |= {function.qualname: function for function in module.functions}
            table |= {each.qualname: each for each in module.classes if not each.is_spare}
            self._definitions[path] = table
        return self._definitions[path]

    def _bound(self, path: str) -> frozenset[str]:
        """Give the first parts of the names that a file itself defines or imports."""
        return frozenset(name.partition(".")[0] for name in (*self._defined(path), *self.bindings(path)))

    def _imported(self, path: str, name: str, depth: int, *, once: bool) -> Place | None:
        root, _, rest = name.partition(".")
        entry = self.bindings(path).get(root)
        if entry is None:
            return None
        origin = "." * entry.level + entry.module
        if entry.name is not None:
            inner = self._submodule(path, origin, entry.name)
            if inner is not None and rest:
                return self._in_module(path, inner, rest, depth, once=once)
            outer = self.target(path, origin)
            return self.find(outer, f"{entry.name}.{rest}" if rest else entry.name, depth - 1, once=once) if outer else None
        return self._in_module(path, entry.module if entry.alias else root, rest, depth, once=once)

    def _in_module(self, path: str, module: str, rest: str, depth: int, *, once: bool) -> Place | None:
        """Look `rest` up in a module or, where it starts with submodules, in those."""
        parts = rest.split(".")
        for count in range(len(parts) - 1, -1, -1):
            dotted = ".".join([module, *parts[:count]])
            target = self.target(path, dotted)
            found = self.find(target, ".".join(parts[count:]), depth - 1, once=once) if target else None
            if found:
                return found
        return None

    def _submodule(self, path: str, origin: str, name: str) -> str | None:
        dotted = origin + name if origin.endswith(".") else f"{origin}.{name}"
        return dotted if self.target(path, dotted) else None

    def _starred(self, path: str, name: str, depth: int, *, once: bool) -> Place | None:
        """Look a name up in the modules that a file imports whole, near or far, each once."""
        if depth == 1 or not self._stars(path):
            return None
        if once and not self._is_sure(path, name):
            return None
        among = self._only_among_stars if once else self._among_stars
        return self.remember(("starred", path, name, depth, once), lambda: among(path, name, depth))

    def _among_stars(self, path: str, name: str, depth: int) -> Place | None:
        for star in self.starred(path, name):
            found = self._own(star.path, name, depth - 1)
            if found:
                return found
        return None

    def _only_among_stars(self, path: str, name: str, depth: int) -> Place | None:
        seen, waiting, known = {path}, [*self._stars(path)], None
        while waiting:
            target = waiting.pop(0).path
            if target in seen:
                continue
            seen.add(target)
            self._reads.note(target)
            if not self._is_sure(target, name):
                return None
            found = self._own(target, name, depth - 1, once=True)
            if found and known and found != known:
                return None
            known = known or found
            waiting += () if found else self._stars(target)
        return known

    def _stars(self, path: str) -> tuple[Star, ...]:
        """Name what a file, which is noted as read, imports whole."""
        stars, read, asked = self._stars_of(path)
        self._reads.take(read, asked)
        return stars

    def _stars_of(self, path: str) -> Stars:
        known = self._whole.get(path)
        if known is None:
            modules = ["." * entry.level + entry.module for entry in self._modules[path].imports if entry.name == "*"]
            folder = path.rpartition("/")[0]
            with self._reads.traced() as trace:
                stars = [Star(path, module, target) for module in modules if (target := self._target(folder, module)) is not None]
            known = self._whole[path] = (tuple(stars), tuple(trace.read), tuple(module.rpartition(".")[2] for module in modules))
        return known

    def _target(self, folder: str, module: str) -> str | None:
        return self._reads.remembered(self._targets, (folder, module), lambda: self._find_file(folder, module))

    def _split(self, folder: str, name: str) -> tuple[str, str, str] | None:
        parts = name.split(".", _MOST_PARTS)
        if parts[0] not in _STANDARD:
            for count in range(len(parts) - 1, 0, -1):
                module = ".".join(parts[:count])
                self._reads.ask(module.rpartition(".")[2])
                target = self._target(folder, module)
                if target is not None:
                    return module, target, ".".join(parts[count:])
        return None

    def _find_file(self, folder: str, module: str) -> str | None:
        name = module.lstrip(".")
        level = len(module) - len(name)
        inside = name.replace(".", "/")
        if inside and not level and inside.partition("/")[0] not in self._heads:
            return self._of_package(PACKAGES + inside)
        for base in (_up(folder, level - 1),) if level else self._bases(folder, name):
            stem = f"{base}/{inside}" if base and inside else base or inside
            found = self._stems.get(stem) or (self._of_package(stem) if stem.startswith(PACKAGES) else None)
            if found is not None:
                return found
        return None

    @cached_property
    def _heads(self) -> frozenset[str]:
        """What the first part of a module of the tree may be: names of its folders and modules."""
        parts = {part for path in self._files for part in path.split("/")}
        return frozenset(parts | {part.removesuffix(end) for part in parts for end in _ENDS[1:] if part.endswith(end)})

    def _of_package(self, stem: str) -> str | None:
        return next((path for path in _candidates(stem) if path in self._modules), None)

    @cached_property
    def _stems(self) -> dict[str, str]:
        """The files of the tree by what an import makes of their path: packages before modules, these before stubs."""
        found: dict[str, str] = {}
        for end in reversed(_ENDS):
            found |= {path.removesuffix(end): path for path in self._files if path.endswith(end) and path != end}
        return found | ({"": INIT} if INIT in self._files else {})

    def _bases(self, folder: str, name: str) -> tuple[str, ...]:
        """Give the folders in which an absolute import may start, nearest first, but packages last: who knows who puts them on the path."""
        if name.partition(".")[0] in _STANDARD:
            return ("",)
        if folder not in self._roots:
            is_own = not f"{folder}/".startswith(PACKAGES)
            parents = (folder, *_parents(folder)) if is_own else ()
            packages = tuple(each for each in parents if each and f"{each}/{INIT}" in self._files)
            plain = tuple(each for each in parents if each not in packages)
            near, far = ((self._import_root(folder), *plain[: not packages]), ("", *plain)) if is_own else ((), ())
            self._roots[folder] = tuple(dict.fromkeys((*near, *self._starts, *far, PACKAGES.rstrip("/"), *packages)))
        return self._roots[folder]

    def _import_root(self, folder: str) -> str:
        """Give the first folder upwards that is no package: what pytest puts on the path."""
        while folder and f"{folder}/{INIT}" in self._files:
            folder = folder.rpartition("/")[0]
        return folder


_STANDARD = OF_ALL_VERSIONS - {"test"}
"""Modules that a file of the tree does not shadow, and whose names stay as they are; `test` is a common name of a folder of tests."""


def top_level_imports(module: Module) -> set[int]:
    """Give the lines of the imports outside functions and classes."""
    return {keyword.line for keyword in module.keywords if keyword.kind == "import" and not keyword.scope}


def _meaning(entry: Import) -> str:
    if entry.name is None:
        return entry.module if entry.alias else entry.bound
    origin = "." * entry.level + entry.module
    return origin + entry.name if origin.endswith(".") else f"{origin}.{entry.name}"


def _candidates(stem: str) -> tuple[str, ...]:
    return tuple(stem + end for end in _ENDS)


def _up(folder: str, times: int) -> str:
    for _ in range(times):
        folder = folder.rpartition("/")[0]
    return folder


def _parents(folder: str) -> Iterator[str]:
    while folder:
        folder = folder.rpartition("/")[0]
        yield folder
