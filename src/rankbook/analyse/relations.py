"""Pass: which other files a reader of a file wants next, each with its why."""

from __future__ import annotations

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from rankbook.analyse.draft import Draft
from rankbook.analyse.imports import imported_modules
from rankbook.model import Module, Relation

_MOST = 10
"""Rows of a file."""
_MOST_OF_A_KIND = 4
"""Rows of one kind, while there are others."""
_RARE = 24
"""Files that may call a name for it to say that they are about the same thing; fewer in a small tree."""
_SHOWN = 3
"""Names that a clause lists."""
_BASE, _IMPORTS, _SUBCLASS, _IMPORTED_BY, _SHARES = range(5)

_Pair = tuple[str, str]


def run(draft: Draft) -> None:
    """Relate files by inheritance, by imports and by the rare APIs that they call; the nearest come first."""
    found: defaultdict[str, dict[str, Relation]] = defaultdict(dict)
    weights: dict[_Pair, float] = {}
    for path, relation, weight in [*_by_inheritance(draft), *_by_import(draft), *_by_calls(draft)]:
        known = found[path].get(relation.path)
        if relation.path != path and (known is None or relation.rank < known.rank):
            found[path][relation.path] = relation
            weights[path, relation.path] = weight
    for path, relations in found.items():
        ordered = sorted(relations.values(), key=lambda each: (each.rank, weights[path, each.path], _distance(path, each.path), each.path))
        if ordered:
            draft.relations[path] = _chosen(ordered)


def _by_inheritance(draft: Draft) -> Iterator[tuple[str, Relation, float]]:
    for (path, name), lineage in draft.lineages.items():
        for distance, ancestor in enumerate(lineage[1:], start=1):
            if ancestor.path and ancestor.path != path:
                yield path, Relation(ancestor.path, f"holds the base class {ancestor.name}", _BASE), distance
                yield ancestor.path, Relation(path, f"holds {name}, a subclass of {ancestor.name}", _SUBCLASS), distance


def _by_import(draft: Draft) -> Iterator[tuple[str, Relation, float]]:
    importers = Counter(target for targets in draft.imports.values() for target in set(targets.values()))
    for path, targets in draft.imports.items():
        lines = _import_lines(draft.modules[path])
        for name, target in targets.items():
            place = f"(line {lines[name]})" if name in lines else ""
            yield path, Relation(target, f"is imported here {place}".rstrip(), _IMPORTS), importers[target]
            yield target, Relation(path, f"imports it {place}".rstrip(), _IMPORTED_BY), len(targets)


def _import_lines(module: Module) -> dict[str, int]:
    lines: dict[str, int] = {}
    for entry in module.imports:
        for name in imported_modules(entry):
            lines.setdefault(name, entry.line)
    return lines


def _by_calls(draft: Draft) -> Iterator[tuple[str, Relation, float]]:
    """Relate files that call the same names; a name counts the more, the fewer files call it."""
    callers: defaultdict[str, list[str]] = defaultdict(list)
    for path, module in draft.modules.items():
        for name in {keyword.name for keyword in module.keywords if keyword.kind == "call"}:
            if name.partition(".")[0] not in sys.stdlib_module_names:
                callers[name].append(path)
    rare = min(_RARE, max(2, sum(bool(module.imports) for module in draft.modules.values()) // 4))
    shared: defaultdict[_Pair, list[tuple[int, str]]] = defaultdict(list)
    for name, paths in callers.items():
        for pair in _pairs(paths) if len(paths) <= rare else ():
            shared[pair].append((len(paths), name))
    for (path, other), names in shared.items():
        if len(names) > 1:
            # fsum: a plain sum of floats depends on its order, which is that of a set.
            yield path, Relation(other, _calls_clause(names), _SHARES), -math.fsum(1 / count for count, _ in names)


def _pairs(paths: list[str]) -> Iterator[_Pair]:
    return ((path, other) for path in paths for other in paths if path != other)


def _calls_clause(names: Iterable[tuple[int, str]]) -> str:
    ordered = [name for _, name in sorted(names)]
    more = f" and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else ""
    return f"calls the same APIs: {', '.join(ordered[:_SHOWN])}{more}"


def _distance(path: str, other: str) -> int:
    """Count the folders between two files."""
    here, there = path.split("/")[:-1], other.split("/")[:-1]
    common = 0
    while common < min(len(here), len(there)) and here[common] == there[common]:
        common += 1
    return len(here) + len(there) - 2 * common


def _chosen(ordered: list[Relation]) -> tuple[Relation, ...]:
    """Take the nearest of each kind, then fill up in order."""
    counts: Counter[int] = Counter()
    first: list[Relation] = []
    rest: list[Relation] = []
    for relation in ordered:
        counts[relation.rank] += 1
        (first if counts[relation.rank] <= _MOST_OF_A_KIND else rest).append(relation)
    taken = set((first + rest)[:_MOST])
    return tuple(relation for relation in ordered if relation in taken)
