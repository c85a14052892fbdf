"""What the passes have found so far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rankbook.analyse.names import Names
from rankbook.model import Class, Expression, Folder, Function, Module, Project, Relation, Test
from rankbook.requirements import Requirement


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A class in the line of inheritance of another, that class included."""

    name: str
    """Qualified name; the full dotted name of one outside the tree."""
    path: str = ""
    """Its source; empty outside the tree."""
    facts: Class | None = None
    """None outside the tree."""

    @property
    def last(self) -> str:
        """Last part of the name."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Collected:
    """A test with what its requirements are read from."""

    test: Test
    function: Function
    lineage: tuple[Ancestor, ...] = ()
    """Classes from its own to the farthest; empty for a function."""


class Draft:
    """The tree while it is analysed.

    Args:
        modules: the facts of each file.
    """

    def __init__(self, modules: Iterable[Module]) -> None:
        self.modules: dict[str, Module] = {module.source.path: module for module in sorted(modules, key=lambda each: each.source.path)}
        self.names = Names(self.modules)
        self.folders: dict[str, Folder] = {}
        self.lineages: dict[tuple[str, str], tuple[Ancestor, ...]] = {}
        """By path and qualified name."""
        self.unresolved: dict[str, tuple[Expression, ...]] = {}
        self.collected: dict[str, list[Collected]] = {}
        self.tests: dict[str, tuple[Test, ...]] = {}
        self.requirements: dict[str, tuple[Requirement, ...]] = {}
        self.relations: dict[str, tuple[Relation, ...]] = {}
        self.imports: dict[str, dict[str, str]] = {}

    def project(self) -> Project:
        """Give the finished tree."""
        return Project(
            modules=self.modules,
            folders=self.folders,
            tests=self.tests,
            unresolved=self.unresolved,
            relations=self.relations,
            requirements=self.requirements,
            imports=self.imports,
        )
