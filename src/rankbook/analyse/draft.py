"""The tree while it is analysed: every answer about a file notes which other files it was read from."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from msgspec import Struct

from rankbook.analyse.includes import Includes
from rankbook.analyse.names import Names
from rankbook.analyse.reads import Reads
from rankbook.collecting import Rules
from rankbook.model import Class, Function, Module, Test
from rankbook.requirements import HARNESSES, Harness
from rankbook.vocabulary import BUILT_IN, Vocabulary

_Answer = TypeVar("_Answer")
_MOST_ANSWERS = 40_000
"""Answers that are remembered at once."""
_STARTS = frozenset({"_start_processes", "_spawn_processes", "_spawn_threads"})
"""Methods by which torch's harnesses start ranks, and by which copies of them are known that projects keep for themselves."""


class Ancestor(Struct, frozen=True):
    """A class in the line of inheritance of another, that class included."""

    name: str
    """Qualified name; the full dotted name of one that no known file holds."""
    path: str = ""
    """Its source; empty when no known file holds it."""
    facts: Class | None = None
    """None when no known file holds it."""

    @property
    def last(self) -> str:
        """Last part of the name."""
        return self.name.rpartition(".")[2]

    @property
    def harness(self) -> Harness | None:
        """The row of the table of harnesses that is about it; None where there is none."""
        row = HARNESSES.get(self.last)
        return row if row is not None and (row.is_defined_in(self.path) or self._is_copy()) else None

    def _is_copy(self) -> bool:
        """Tell whether a class of a project starts ranks as the harness does from which it has its name."""
        return self.facts is not None and any(method.name in _STARTS for method in self.facts.methods)


class Collected(Struct, frozen=True):
    """A test with what its requirements and its uses are read from."""

    test: Test
    function: Function
    lineage: tuple[Ancestor, ...] = ()
    """Classes from its own to the farthest; empty for a function."""


class Draft:
    """The tree while it is analysed.

    A question about one file is answered from `modules`, `names` and answers that were remembered, never by a walk over all files: what an
    answer has read is what it must be asked again for.

    Args:
        modules: the facts of each file, by path; it may read them when they are asked for.
        paths: all files of the tree.
        packages: the facts of files outside the tree that imports lead to, by path; None when none are known.
        vocabulary: what names of decorators, marks and flags mean.
        rules: what pytest takes for tests; as it comes when None.
        is_own: tells of a file of a package whether the project itself holds it.
        starts: folders of the tree that imports are looked for in, wherever they stand.
    """

    def __init__(  # noqa: PLR0913 - one argument for each thing that answers are read from
        self,
        modules: Mapping[str, Module],
        paths: frozenset[str],
        packages: Mapping[str, Module] | None = None,
        vocabulary: Vocabulary = BUILT_IN,
        rules: Rules | None = None,
        *,
        is_own: Callable[[str], bool] | None = None,
        starts: tuple[str, ...] = (),
    ) -> None:
        self.rules = rules or Rules()
        self.reads = Reads()
        self.modules: Mapping[str, Module] = self.reads.watched(modules, packages)
        self.names = Names(self.modules, paths, self.reads, vocabulary, is_own, starts=starts)
        self.includes = Includes(paths, self.reads)
        self._answers: dict[Hashable, Any] = {}

    def remember(self, question: Hashable, answer: Callable[[], _Answer]) -> _Answer:
        """Answer a question once; later askers take over what the answer was read from.

        Args:
            question: what tells it from all others.
            answer: finds the answer.
        """
        return self.reads.remembered(self._answers, question, answer)

    def relieve(self) -> None:
        """Forget the answers when they are many: those to questions of files far behind are not asked for again."""
        if len(self._answers) > _MOST_ANSWERS:
            self._answers.clear()
            self.names.forget()
            self.reads.forget()
