"""What other files say of a file: who imports it, derives from its classes, runs its functions as tests, calls the same APIs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, TypeVar

from msgspec.structs import replace

from rankbook.groups import Groups
from rankbook.model import Descent, Keyword, Module, Survey
from rankbook.sheaf import Sheaf

_Value = TypeVar("_Value")


class Links:
    """All references from file to file, by the file that they lead to.

    Args:
        surveys: what each file says.
    """

    def __init__(self, surveys: Iterable[Survey] = ()) -> None:
        self._importers: Sheaf[dict[str, int]] = Sheaf()
        self._heirs: Sheaf[dict[str, tuple[Descent, ...]]] = Sheaf()
        self._tested: Sheaf[dict[str, tuple[int, ...]]] = Sheaf()
        self._imports: dict[str, int] = {}
        self._with_tests: set[str] = set()
        for survey in surveys:
            self.add(survey)

    def sheaves(self) -> dict[str, Sheaf[Any]]:
        """Give the large tables by their names."""
        return {"importers": self._importers, "heirs": self._heirs, "tested": self._tested}

    def add(self, survey: Survey) -> None:
        """Take up what one file says of others."""
        path = survey.path
        if survey.import_lines:
            self._imports[path] = len(survey.import_lines)
        if survey.tests:
            self._with_tests.add(path)
        for target, line in survey.import_lines.items():
            _join(self._importers, target, path, line)
        for target, descents in _grouped((descent.path, descent) for descent in survey.descents).items():
            _join(self._heirs, target, path, tuple(descents))
        for target, lines in _grouped((test.path, test.line) for test in survey.tests).items():
            _join(self._tested, target, path, tuple(dict.fromkeys(lines)))

    def remove(self, survey: Survey) -> None:
        """Take back what one file has said of others."""
        self._imports.pop(survey.path, None)
        self._with_tests.discard(survey.path)
        for table in self.sheaves().values():
            for target in targets(survey):
                by_path = table.get(target)
                if by_path and survey.path in by_path:
                    del by_path[survey.path]
                    table.put(target, by_path)

    def importers(self, path: str) -> dict[str, int]:
        """Give the files that import a file, sorted, each with the line that does."""
        return dict(sorted((self._importers.get(path) or {}).items()))

    def heirs(self, path: str) -> tuple[tuple[str, Descent], ...]:
        """Give the files with classes that derive from those of a file, with the class and its ancestor."""
        found = ((heir, descent) for heir, descents in (self._heirs.get(path) or {}).items() for descent in descents)
        return tuple(sorted(found, key=lambda entry: (entry[0], entry[1].distance, entry[1].name)))

    def users(self, path: str) -> int:
        """Count, roughly, the files that import a file or derive from its classes, whichever are more.

        Roughly, so that one user more does not reorder what is related to all the others.
        """
        return _roughly(max(len(self._importers.get(path) or ()), len(self._heirs.get(path) or ())))

    def related(self, path: str) -> set[str]:
        """Name the files that import a file or derive from its classes."""
        return {*(self._importers.get(path) or ()), *(self._heirs.get(path) or ())}

    def imports(self, path: str) -> int:
        """Count the files that a file imports."""
        return self._imports.get(path, 0)

    def has_tests(self, path: str) -> bool:
        """Whether a file has tests that would run."""
        return path in self._with_tests

    def with_tests(self, module: Module) -> Module:
        """Mark the keyword of each function that some class or file runs as a test."""
        own = frozenset[int]().union(*(self._tested.get(module.source.path) or {}).values())
        if not own:
            return module
        keywords = tuple(
            Keyword("test", *keyword[1:]) if keyword.line in own and keyword.kind in ("function", "method") else keyword
            for keyword in module.keywords
        )
        return replace(module, keywords=keywords)


def targets(survey: Survey) -> set[str]:
    """Name the files that a file says something of."""
    return {*survey.import_lines, *(descent.path for descent in survey.descents), *(test.path for test in survey.tests)}


class Mentions:
    """Which files call an API.

    Args:
        surveys: what each file says.
    """

    def __init__(self, surveys: Iterable[Survey] = ()) -> None:
        self._callers = Groups()
        self._importing = 0
        for survey in surveys:
            self.add(survey)

    def sheaves(self) -> dict[str, Sheaf[Any]]:
        """Give the large table by its name."""
        return {"callers": self._callers.held}

    def add(self, survey: Survey) -> None:
        """Take up which APIs a file calls."""
        self._importing += _is_importing(survey)
        for name in called(survey):
            self._callers.add(name, survey.path)

    def remove(self, survey: Survey) -> None:
        """Take back which APIs a file calls."""
        self._importing -= _is_importing(survey)
        for name in called(survey):
            self._callers.discard(name, survey.path)

    @property
    def importing(self) -> int:
        """Number of files, roughly, that import something of the tree or use something imported."""
        return _roughly(self._importing)

    def callers(self, name: str) -> Collection[str]:
        """Give the files that call an API, by its full dotted name."""
        return self._callers.get(name)


def _join(table: Sheaf[dict[str, _Value]], target: str, path: str, value: _Value) -> None:
    """Set what a file says of another."""
    by_path = table.get(target) or {}
    by_path[path] = value
    table.put(target, by_path)


def called(survey: Survey) -> set[str]:
    """Name the APIs that a file calls in its own lines."""
    return {use.name for use in survey.uses if use.is_called and use.lines}


def _is_importing(survey: Survey) -> bool:
    return bool(survey.imports or survey.uses)


def _roughly(number: int) -> int:
    """Round a number above eight down to a power of two."""
    return number if number <= 8 else 1 << number.bit_length() - 1


def _grouped(pairs: Iterable[tuple[str, _Value]]) -> dict[str, list[_Value]]:
    found: dict[str, list[_Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
