"""Which other files a reader of a file wants next, each with its why."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from rankbook.analyse.links import Links, Mentions
from rankbook.model import Descent, Module, Relation, Survey
from rankbook.standard_library import STANDARD_LIBRARY

_MOST = 10
"""Rows of a file."""
_MOST_OF_A_KIND = 4
"""Rows of one kind, while there are others."""
RARE = 24
"""Files that may call a name for it to say that they are about the same thing; fewer in a small tree."""
_EVERYBODY = 0.05
"""Part of a tree's files that, when they use a file, make it one that everybody uses; `RARE` files do not."""
_ENOUGH = 4
"""Rows that leave no room for files that everybody uses."""
_SHOWN = 3
"""Names that a clause lists."""
_APART = 0.5
"""What sharing an API counts between a file with tests and one without."""
_BASE, _IMPORTS, _SUBCLASS, _IMPORTED_BY, _SHARES, _COMMON = range(6)

_Weighed = tuple[Relation, tuple[float, ...]]


def relations_of(module: Module, survey: Survey, links: Links, mentions: Mentions) -> tuple[Relation, ...]:
    """Relate a file to others by inheritance, by imports and by the rare APIs that they call; the nearest come first.

    A file that everybody imports or inherits from says little: it comes last, and only where there are few others.

    Args:
        module: its facts.
        survey: what it says of others.
        links: what others say of it.
        mentions: who calls which API.
    """
    path = survey.path
    limit = max(RARE, int(mentions.importing * _EVERYBODY))
    found: dict[str, _Weighed] = {}
    for entry in [*_by_inheritance(module, survey, links), *_by_import(survey, links), *_by_calls(survey, links, mentions)]:
        relation, weight = _demoted(entry, links, limit)
        known = found.get(relation.path)
        if relation.path != path and (known is None or (relation.rank, weight) < (known[0].rank, known[1])):
            found[relation.path] = relation, weight
    ordered = sorted(found.values(), key=lambda each: (each[0].rank, each[1], _distance(path, each[0].path), each[0].path))
    return _chosen([relation for relation, _ in ordered])


def _demoted(entry: _Weighed, links: Links, limit: int) -> _Weighed:
    relation, weight = entry
    if relation.rank not in (_BASE, _IMPORTS) or (users := links.users(relation.path)) <= limit:
        return entry
    return replace(relation, rank=_COMMON), (users, relation.rank, *weight)


def _by_inheritance(module: Module, survey: Survey, links: Links) -> Iterator[_Weighed]:
    path = module.source.path
    for descent, others in _nearest((descent.path, descent) for descent in survey.descents):
        why = f"holds {descent.ancestor}, a base class of {descent.name}{others}"
        yield Relation(descent.path, why, _BASE, descent.line, path), (descent.distance,)
    for descent, others in _nearest(links.heirs(path)):
        heir = descent.path
        why = f"holds {descent.name}, a subclass of {descent.ancestor}{',' * bool(others)}{others}"
        yield Relation(heir, why, _SUBCLASS, descent.line, heir), (descent.distance, not links.has_tests(heir))


def _nearest(descents: Iterable[tuple[str, Descent]]) -> Iterator[tuple[Descent, str]]:
    """Choose one descent for each file, the nearest and least nested, and say how many other classes there are."""
    by_path: dict[str, list[Descent]] = {}
    for path, descent in descents:
        by_path.setdefault(path, []).append(replace(descent, path=path))
    for found in by_path.values():
        others = len({descent.name for descent in found}) - 1
        more = f" and {others} more" if others else ""
        yield min(found, key=lambda descent: (descent.distance, descent.name.count("."), descent.line, descent.name)), more


def _by_import(survey: Survey, links: Links) -> Iterator[_Weighed]:
    for target, line in survey.import_lines.items():
        yield Relation(target, "is imported here", _IMPORTS, line, survey.path), (links.users(target),)
    for path, line in links.importers(survey.path).items():
        is_test = links.has_tests(path)
        why = "imports it, and has tests" if is_test else "imports it"
        yield Relation(path, why, _IMPORTED_BY, line, path), (not is_test, links.imports(path))


def _by_calls(survey: Survey, links: Links, mentions: Mentions) -> Iterator[_Weighed]:
    """Relate files that call the same names; a name counts the more, the fewer files call it."""
    rare = min(RARE, max(2, mentions.importing // 4))
    shared: defaultdict[str, list[tuple[int, str, int]]] = defaultdict(list)
    for use in survey.uses:
        if not (use.is_called and use.lines) or use.name.partition(".")[0] in STANDARD_LIBRARY:
            continue
        paths = mentions.callers(use.name)
        if len(paths) <= rare:
            for other in paths:
                shared[other].append((len(paths), use.name, use.lines[0]))
    for other, names in shared.items():
        if len(names) > 1:
            line = min(names)[2]
            yield Relation(other, _calls_clause(names), _SHARES, line, survey.path), (-_closeness(survey, other, names, links),)


def _closeness(survey: Survey, other: str, names: list[tuple[int, str, int]], links: Links) -> float:
    """Weigh the APIs that two files share: rare ones count, and all count more between neighbours and between test files."""
    alike = 1.0 if links.has_tests(other) == bool(survey.tests) else _APART
    # fsum: a plain sum of floats depends on its order.
    return alike * math.fsum(1 / count for count, _, _ in names) / (4 + _distance(survey.path, other))


def _calls_clause(names: Iterable[tuple[int, str, int]]) -> str:
    ordered = [name for _, name, _ in sorted(names)]
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
    common: list[Relation] = []
    for relation in ordered:
        counts[relation.rank] += 1
        if relation.rank == _COMMON:
            common.append(relation)
        else:
            (first if counts[relation.rank] <= _MOST_OF_A_KIND else rest).append(relation)
    chosen = (first + rest)[:_MOST]
    chosen += common[: max(0, _ENOUGH - len(chosen))]
    taken = set(chosen)
    return tuple(relation for relation in ordered if relation in taken)
