"""What other files say of a file: who imports it, derives from its classes, runs its functions as tests, calls the same APIs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from rankbook.model import Descent, Module, Survey


class Links:
    """All references from file to file, by the file that they lead to.

    Args:
        surveys: what each file says.
    """

    def __init__(self, surveys: Iterable[Survey]) -> None:
        self._importers: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._heirs: defaultdict[str, list[tuple[str, Descent]]] = defaultdict(list)
        self._tested: defaultdict[str, set[int]] = defaultdict(set)
        for survey in surveys:
            self.add(survey)

    def add(self, survey: Survey) -> None:
        """Take up what one file says of others."""
        for target, line in survey.import_lines.items():
            self._importers[target][survey.path] = line
        for descent in survey.descents:
            self._heirs[descent.path].append((survey.path, descent))
        for test in survey.tests:
            self._tested[test.path].add(test.line)

    def importers(self, path: str) -> dict[str, int]:
        """Give the files that import a file, sorted, each with the line that does."""
        return dict(sorted(self._importers.get(path, {}).items()))

    def heirs(self, path: str) -> tuple[tuple[str, Descent], ...]:
        """Give the files with classes that derive from those of a file, with the class and its ancestor."""
        return tuple(sorted(self._heirs.get(path, ()), key=lambda entry: (entry[0], entry[1].distance, entry[1].name)))

    def with_tests(self, module: Module) -> Module:
        """Mark the keyword of each function that some class or file runs as a test."""
        own = self._tested.get(module.source.path)
        if not own:
            return module
        keywords = tuple(
            replace(keyword, kind="test") if keyword.kind in ("function", "method") and keyword.line in own else keyword
            for keyword in module.keywords
        )
        return replace(module, keywords=keywords)


class Mentions:
    """Which files call an API.

    Args:
        surveys: what each file says.
    """

    def __init__(self, surveys: Iterable[Survey]) -> None:
        self._callers: defaultdict[str, list[str]] = defaultdict(list)
        self.importing = 0
        """Number of files that import something of the tree or use something imported."""
        for survey in surveys:
            self.importing += bool(survey.imports or survey.uses)
            for use in survey.uses:
                if use.is_called:
                    self._callers[use.name].append(survey.path)

    def callers(self, name: str) -> list[str]:
        """Give the files that call an API, by its full dotted name."""
        return self._callers.get(name, [])
