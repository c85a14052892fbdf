"""Which files an answer has been read from, through everything that is remembered on the way."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from rankbook.model import PACKAGES, Module

_Answer = TypeVar("_Answer")


def looks_the_same(before: Module, after: Module) -> bool:
    """Tell whether answers that were read from a file stay as they are: they see all its facts, lines too, but not its bytes as such.

    Args:
        before: its facts as they were.
        after: as they are.
    """
    old, new = before.source, after.source
    source = replace(new, size=old.size, sha256=old.sha256, lines=old.lines, embedding=old.embedding)
    return replace(after, source=source) == before


class Trace(Struct):
    """What one answer rests on."""

    read: set[str] = field(default_factory=set)
    """Files."""
    asked: set[str] = field(default_factory=set)
    """Last parts of modules that were looked for, found or not."""


class Reads:
    """Notes what is read while an answer is found."""

    def __init__(self) -> None:
        self._read: set[str] = set()
        self._asked: set[str] = set()
        self._traces: dict[frozenset[str], frozenset[str]] = {}
        """Each once: most answers rest on what others rest on."""

    def note(self, path: str) -> None:
        """Note that a file is read."""
        self._read.add(path)

    def ask(self, *names: str) -> None:
        """Note that modules of these names are looked for."""
        self._asked.update(names)

    def take(self, paths: Iterable[str], names: Iterable[str]) -> None:
        """Note that files are read, and that modules of these names are looked for."""
        self._read.update(paths)
        self._asked.update(names)

    @contextmanager
    def traced(self) -> Iterator[Trace]:
        """Note in a trace of its own what is read inside; what is around it has read that too."""
        outer, trace = Trace(self._read, self._asked), Trace()
        self._read, self._asked = trace.read, trace.asked
        try:
            yield trace
        finally:
            self._read, self._asked = outer.read, outer.asked
            self._read |= trace.read
            self._asked |= trace.asked

    def remembered(self, answers: dict[Hashable, Any], question: Hashable, answer: Callable[[], _Answer]) -> _Answer:
        """Answer a question once; later askers take over its trace."""
        known = answers.get(question)
        if known is not None:
            value: _Answer
            value, read, asked = known
            self._read |= read
            self._asked |= asked
            return value
        outer_read, outer_asked = self._read, self._asked
        read = self._read = set()
        asked = self._asked = set()
        try:
            value = answer()
        finally:
            self._read, self._asked = outer_read, outer_asked
            outer_read |= read
            outer_asked |= asked
        answers[question] = (value, self._shared(read), self._shared(asked))
        return value

    def _shared(self, trace: set[str]) -> frozenset[str]:
        made = frozenset(trace)
        return self._traces.setdefault(made, made)

    def forget(self) -> None:
        """Keep no trace of answers that are forgotten."""
        self._traces.clear()

    def watched(self, modules: Mapping[str, Module], packages: Mapping[str, Module] | None) -> Mapping[str, Module]:
        """Give the files of the tree, and those of packages behind them, noting each that is read."""
        return _Watched(modules, {} if packages is None else packages, self)


class _Watched(Mapping[str, Module]):
    """Files that note who reads them."""

    def __init__(self, modules: Mapping[str, Module], packages: Mapping[str, Module], reads: Reads) -> None:
        self._modules = modules
        self._packages = packages
        self._reads = reads

    def __getitem__(self, path: str) -> Module:
        self._reads.note(path)
        return self._modules[path] if path in self._modules else self._packages[path]

    def __contains__(self, path: object) -> bool:
        if path in self._modules:
            return True
        if not (isinstance(path, str) and path.startswith(PACKAGES)):
            return False
        if path in self._packages:
            return True
        package = path.removeprefix(PACKAGES).partition("/")[0]
        if f"{PACKAGES}{package}/__init__.py" in self._packages:
            self._reads.note(path)  # it may appear in a package that is there
        return False

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)
