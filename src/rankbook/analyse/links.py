"""What other files say of a file: who imports it, derives from its classes, runs its functions as tests, calls the same APIs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
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
            self.exchange(survey.path, None, survey)

    def sheaves(self) -> dict[str, Sheaf[Any]]:
        """Give the large tables by their names."""
        return {"importers": self._importers, "heirs": self._heirs, "tested": self._tested}

    def exchange(self, path: str, before: Survey | None, after: Survey | None) -> None:
        """Take up what a file says of others in the place of what it has said; what it says still is not looked up.

        Args:
            path: of the file.
            before: what it has said; None when nothing was known of it.
            after: what it says; None when it is gone.
        """
        self._imports.pop(path, None)
        self._with_tests.discard(path)
        if after is not None and after.import_lines:
            self._imports[path] = len(after.import_lines)
        if after is not None and after.tests:
            self._with_tests.add(path)
        for table, (old, new) in zip(self.sheaves().values(), _both(before, after), strict=True):
            for target in _differing(old, new):
                _set(table, target, path, new.get(target))

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


def targets(survey: Survey | None) -> set[str]:
    """Name the files that a file says something of."""
    return {target for told in _told(survey) for target in told}


def told_anew(before: Survey | None, after: Survey | None) -> set[str]:
    """Name the files of which a file says something else than before.

    Those are all that it names when it has come, is gone, or has become one with tests or without, or one that imports more files or
    fewer: by that the others tell how near it is to them.
    """
    if _weight(before) != _weight(after):
        return targets(before) | targets(after)
    return {target for old, new in _both(before, after) for target in _differing(old, new)}


def _weight(survey: Survey | None) -> tuple[bool, int] | None:
    return None if survey is None else (bool(survey.tests), len(survey.import_lines))


_Told = Mapping[str, Any]
"""What a file says of others in one of the tables, by their paths."""


def _both(before: Survey | None, after: Survey | None) -> Iterator[tuple[_Told, _Told]]:
    """Give what a file has said and what it says, table by table."""
    return zip(_told(before), _told(after), strict=True)


def _told(survey: Survey | None) -> tuple[_Told, _Told, _Told]:
    if survey is None:
        return {}, {}, {}
    descents = _grouped((descent.path, descent) for descent in survey.descents)
    lines = _grouped((test.path, test.line) for test in survey.tests)
    return (
        survey.import_lines,
        {target: tuple(found) for target, found in descents.items()},
        {target: tuple(dict.fromkeys(found)) for target, found in lines.items()},
    )


def _differing(old: _Told, new: _Told) -> list[str]:
    return [target for target in {**old, **new} if old.get(target) != new.get(target)]


class Mentions:
    """Which files call an API.

    Args:
        surveys: what each file says.
    """

    def __init__(self, surveys: Iterable[Survey] = ()) -> None:
        self._callers = Groups()
        self._importing = 0
        for survey in surveys:
            self.exchange(survey.path, None, survey)

    def sheaves(self) -> dict[str, Sheaf[Any]]:
        """Give the large table by its name."""
        return {"callers": self._callers.held}

    def exchange(self, path: str, before: Survey | None, after: Survey | None) -> None:
        """Take up which APIs a file calls in the place of those that it has called.

        Args:
            path: of the file.
            before: what it has said; None when nothing was known of it.
            after: what it says; None when it is gone.
        """
        self._importing += _is_importing(after) - _is_importing(before)
        self._callers.exchange(path, called(before), called(after))

    @property
    def importing(self) -> int:
        """Number of files, roughly, that import something of the tree or use something imported."""
        return _roughly(self._importing)

    def callers(self, name: str) -> Collection[str]:
        """Give the files that call an API, by its full dotted name."""
        return self._callers.get(name)


def _set(table: Sheaf[dict[str, _Value]], target: str, path: str, value: _Value | None) -> None:
    """Set what a file says of another; None to leave nothing."""
    by_path = table.get(target) or {}
    if value is None:
        by_path.pop(path, None)
    else:
        by_path[path] = value
    table.put(target, by_path)


def called(survey: Survey | None) -> set[str]:
    """Name the APIs that a file calls in its own lines; None calls none."""
    return set() if survey is None else {use.name for use in survey.uses if use.is_called and use.lines}


def _is_importing(survey: Survey | None) -> bool:
    return survey is not None and bool(survey.imports or survey.uses)


def _roughly(number: int) -> int:
    """Round a number above eight down to a power of two."""
    return number if number <= 8 else 1 << number.bit_length() - 1


def _grouped(pairs: Iterable[tuple[str, _Value]]) -> dict[str, list[_Value]]:
    found: dict[str, list[_Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
