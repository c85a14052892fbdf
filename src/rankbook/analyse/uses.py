"""Which APIs a file uses, and which of its tests reach them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from rankbook.analyse.draft import Collected, Draft
from rankbook.model import Use


def uses(draft: Draft, path: str, collected: Iterable[Collected]) -> Iterator[Use]:
    """Give each imported name that a file uses, with the tests whose own body does.

    Args:
        draft: the tree.
        path: the file.
        collected: its tests.
    """
    scopes: defaultdict[str, list[str]] = defaultdict(list)
    for each in collected:
        if each.test.path == path:
            scopes[each.function.qualname].append(each.test.id)
    lines: defaultdict[str, set[int]] = defaultdict(set)
    tests: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for keyword in draft.modules[path].keywords:
        if keyword.kind == "call":
            lines[keyword.name].add(keyword.line)
            tests[keyword.name].update(dict.fromkeys(scopes.get(keyword.scope, ())))
    for name in sorted(lines):
        yield Use(name, tuple(sorted(lines[name])), tuple(tests[name]))
