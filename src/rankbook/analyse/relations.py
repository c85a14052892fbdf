"""Which other files a reader of a file wants next, each with its why."""

from __future__ import annotations

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from rankbook.analyse.links import Links, Mentions
from rankbook.model import Module, Relation, Survey

_MOST = 10
"""Rows of a file."""
_MOST_OF_A_KIND = 4
"""Rows of one kind, while there are others."""
RARE = 24
"""Files that may call a name for it to say that they are about the same thing; fewer in a small tree."""
_SHOWN = 3
"""Names that a clause lists."""
_BASE, _IMPORTS, _SUBCLASS, _IMPORTED_BY, _SHARES = range(5)

_Weighed = tuple[Relation, float]


def relations_of(module: Module, survey: Survey, links: Links, mentions: Mentions) -> tuple[Relation, ...]:
    """Relate a file to others by inheritance, by imports and by the rare APIs that they call; the nearest come first.

    Args:
        module: its facts.
        survey: what it says of others.
        links: what others say of it.
        mentions: who calls which API.
    """
    path = survey.path
    found: dict[str, _Weighed] = {}
    for relation, weight in [*_by_inheritance(module, survey, links), *_by_import(survey, links), *_by_calls(survey, mentions)]:
        known = found.get(relation.path)
        if relation.path != path and (known is None or (relation.rank, weight) < (known[0].rank, known[1])):
            found[relation.path] = relation, weight
    ordered = sorted(found.values(), key=lambda each: (each[0].rank, each[1], _distance(path, each[0].path), each[0].path))
    return _chosen([relation for relation, _ in ordered])


def _by_inheritance(module: Module, survey: Survey, links: Links) -> Iterator[_Weighed]:
    path = module.source.path
    for descent in survey.descents:
        why = f"holds {descent.ancestor}, a base class of {descent.name}"
        yield Relation(descent.path, why, _BASE, descent.line, path), descent.distance
    for heir, descent in links.heirs(path):
        why = f"holds {descent.name}, a subclass of {descent.ancestor}"
        yield Relation(heir, why, _SUBCLASS, descent.line, heir), descent.distance


def _by_import(survey: Survey, links: Links) -> Iterator[_Weighed]:
    for target, line in survey.import_lines.items():
        yield Relation(target, "is imported here", _IMPORTS, line, survey.path), len(links.importers(target))
    for path, line in links.importers(survey.path).items():
        yield Relation(path, "imports it", _IMPORTED_BY, line, path), 0


def _by_calls(survey: Survey, mentions: Mentions) -> Iterator[_Weighed]:
    """Relate files that call the same names; a name counts the more, the fewer files call it."""
    rare = min(RARE, max(2, mentions.importing // 4))
    shared: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for use in survey.uses:
        if not use.is_called or use.name.partition(".")[0] in sys.stdlib_module_names:
            continue
        paths = mentions.callers(use.name)
        if len(paths) <= rare:
            for other in paths:
                shared[other].append((len(paths), use.name))
    for other, names in shared.items():
        if len(names) > 1:
            # fsum: a plain sum of floats depends on its order.
            yield Relation(other, _calls_clause(names), _SHARES), -math.fsum(1 / count for count, _ in names)


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
