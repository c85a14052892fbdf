"""Which pytest marks the tests of a file carry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rankbook.model import Module, Test

_PREFIX = "pytest.mark."


def marks_of(module: Module, tests: Iterable[Test]) -> dict[str, int]:
    """Count the tests of a file by their marks, in the order of the alphabet.

    A mark stands on the module, a class or a function of this file; those of a class or function of another file are told there.

    Args:
        module: the facts of the file.
        tests: its tests.
    """
    marked: dict[str, set[str]] = {}
    for keyword in module.keywords:
        if keyword.kind == "mark":
            marked.setdefault(keyword.scope, set()).add(keyword.name.removeprefix(_PREFIX))
    if not marked:
        return {}
    path = module.source.path
    counts = Counter(mark for test in tests for mark in set().union(*(marked.get(scope, ()) for scope in _scopes(test, path))))
    return {mark: counts[mark] for mark in sorted(counts)}


def _scopes(test: Test, path: str) -> Iterable[str]:
    """Name the module, the classes and the function of a test, as far as they stand in its file."""
    yield ""
    for name in {test.class_name, test.inherited_from} - {None}:
        yield str(name)
        if test.path == path:
            yield f"{name}.{test.function}"
    if test.class_name is None and test.path == path:
        yield test.function
