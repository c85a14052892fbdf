"""The one name of an API: `torch.distributed.all_reduce`, whichever module it is imported from."""

from __future__ import annotations

import re
from typing import NamedTuple

from rankbook.analyse.draft import Draft
from rankbook.dotted import INIT, is_private, module_name
from rankbook.model import Class, Constant, Function, Import

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_DEPTH = 16
"""Re-exports and aliases that a name is followed through."""


class Spot(NamedTuple):
    """A name at the top of a module."""

    module: str
    """Dotted name."""
    path: str
    """Its file; empty when that is not known."""
    name: str
    """Empty for the module itself."""

    @property
    def full(self) -> str:
        """The dotted name."""
        return f"{self.module}.{self.name}" if self.name else self.module


def public_name(draft: Draft, path: str, name: str) -> str:
    """Give the public name of what a file calls by a name written in full.

    A name in a package goes by the outermost package around that offers the same thing. One in a private module, in the module that defines
    it or in a helper of the suite is followed to where it comes from, and from there to the outermost package that offers it.

    Args:
        draft: the tree.
        path: the file.
        name: full dotted name; one of a relative import with its leading dots.
    """
    return draft.remember(("public", path.rpartition("/")[0], name), lambda: _followed(draft, path, absolute(draft, path, name)))


def _followed(draft: Draft, path: str, name: str) -> str:
    """Follow a full dotted name to the public one."""
    for _ in range(_DEPTH):
        found = split(draft, path, name)
        if found is None:
            break
        root, dot, rest = found.name.partition(".")
        known = _public(draft, Spot(found.module, found.path, root)).full + dot + rest
        if known == name:
            break
        name = known
    return name


def meaning(draft: Draft, path: str, name: str) -> str | None:
    """Give the public name of what a name of a file stands for by an assignment (`dc = dist`) or by `import *`; None for one of its own.

    Args:
        draft: the tree.
        path: the file.
        name: dotted name as written; its root is bound by no plain import.
    """
    root, dot, rest = name.partition(".")
    spot = Spot("", path, root)
    found = _next(draft, spot)
    return None if found is None or found == spot else public_name(draft, path, found.full + dot + rest)


def absolute(draft: Draft, path: str, name: str) -> str:
    """Write a name of a relative import from its import root: `.tools.run` → `suite.tools.run`."""
    bare = name.lstrip(".")
    if bare == name:
        return name
    folder = path
    for _ in range(len(name) - len(bare)):
        folder = folder.rpartition("/")[0]
    package = module_name(f"{folder}/{INIT}", draft.modules.__contains__) if folder else ""
    return ".".join(part for part in (package, bare) if part)


def split(draft: Draft, path: str, name: str) -> Spot | None:
    """Split a full dotted name into a module that is known and the rest; None when no part of it is.

    Args:
        draft: the tree.
        path: file that uses it.
        name: the name.
    """
    found = draft.names.split(path, name)
    return None if found is None else Spot(*found)


def origin(draft: Draft, spot: Spot) -> Spot | None:
    """Follow a name to where it is defined, as far as files are known; None when the module has no such name."""
    links = _links(draft, spot)
    return links[-1] if links else None


def _public(draft: Draft, spot: Spot) -> Spot:
    """Give the public name of a name at the top of a module."""
    is_open = spot.path.endswith(INIT) and not is_private(spot.module)
    return draft.remember(("public name", spot), lambda: _offered(draft, spot) if is_open else _chosen(draft, spot, _links(draft, spot)))


def _offered(draft: Draft, spot: Spot) -> Spot:
    """Give the name of what a package offers in the outermost package around it that offers the same."""
    end = origin(draft, spot) if spot.name else None
    return spot if end is None else _outermost(draft, spot, end)


def _chosen(draft: Draft, spot: Spot, links: list[Spot]) -> Spot:
    """Choose among the names of one thing: one of another package that a helper passes on, else the outermost that is not private."""
    top = _top(spot)
    outside = next((link for link in links if _top(link) != top and not is_private(link.full)), None)
    if outside is not None or not links:
        return outside or spot
    inside = next((link for link in links if not is_private(link.module)), spot)
    return _outermost(draft, inside, links[-1]) if inside.name else inside


def _top(spot: Spot) -> str:
    return spot.module.partition(".")[0]


def _outermost(draft: Draft, spot: Spot, end: Spot) -> Spot:
    """Climb to the packages around a module for as long as they offer the same thing under the same name."""
    best, parent = spot, spot.module.rpartition(".")[0]
    while parent:
        target = draft.names.target(spot.path, parent)
        above = Spot(parent, target or "", spot.name)
        if target and origin(draft, above) == end:
            best = above
        elif not is_private(parent):
            break
        parent = parent.rpartition(".")[0]
    return best


def _links(draft: Draft, spot: Spot) -> list[Spot]:
    """Give the names on the way to a definition, itself the first; none when the module has no such name."""
    found = _next(draft, spot)
    links = [spot] if found else []
    while found is not None and found not in links and len(links) < _DEPTH:
        links.append(found)
        found = _next(draft, found)
    return links


def _next(draft: Draft, spot: Spot) -> Spot | None:
    """Give the next name on the way to a definition; the same where it is defined, None where there is none."""
    if not (spot.path and spot.name):
        return None

    def find() -> Spot | None:
        place = draft.names.find(spot.path, spot.name, 1)
        if place is not None:
            return alias(draft, spot.path, place.definition) or spot
        entry = draft.names.bindings(spot.path).get(spot.name)
        return _starred(draft, spot) if entry is None else _imported(draft, spot.path, entry)

    return draft.remember(("next name", spot), find)


def alias(draft: Draft, path: str, definition: Class | Function | Constant) -> Spot | None:
    """Give what a constant is another name of: `DistError = torch._C._DistError`; None for all but other names of something imported."""
    if not isinstance(definition, Constant) or not _DOTTED.fullmatch(definition.value):
        return None
    if definition.value.partition(".")[0] not in draft.names.bindings(path):
        return None
    name = absolute(draft, path, draft.names.full(path, definition.value))
    return _known_module(draft, path, name) or split(draft, path, name) or _unknown(name)


def _imported(draft: Draft, path: str, entry: Import) -> Spot:
    if entry.name is None:
        name = entry.module if entry.alias else entry.bound
        return _known_module(draft, path, name) or Spot(name, "", "")
    source = "." * entry.level + entry.module
    inner = source + entry.name if source.endswith(".") else f"{source}.{entry.name}"
    module = _known_module(draft, path, inner)
    target = draft.names.target(path, source)
    return module or Spot(absolute(draft, path, source), target or "", entry.name)


def _known_module(draft: Draft, path: str, name: str) -> Spot | None:
    target = draft.names.target(path, name)
    return Spot(absolute(draft, path, name), target, "") if target else None


def _unknown(name: str) -> Spot:
    outer, _, last = name.rpartition(".")
    return Spot(outer, "", last) if outer else Spot(name, "", "")


def _starred(draft: Draft, spot: Spot) -> Spot | None:
    """Find the module that a module takes a name from by `import *`, near or far."""
    if spot.name.startswith("_"):
        return None
    for star in draft.names.starred(spot.path, spot.name):
        if draft.names.has(star.path, spot.name):
            return Spot(absolute(draft, star.importer, star.module), star.path, spot.name)
    return None
