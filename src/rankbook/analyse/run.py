"""All passes over the tree, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rankbook.analyse import folders, imports, inheritance, keywords, relations, requirements, tests
from rankbook.analyse.draft import Draft
from rankbook.model import Module, Project

PASSES: tuple[tuple[str, Callable[[Draft], None]], ...] = (
    ("folders", folders.run),
    ("imports", imports.run),
    ("inheritance", inheritance.run),
    ("tests", tests.run),
    ("requirements", requirements.run),
    ("keywords", keywords.run),
    ("relations", relations.run),
)
"""Each pass reads what those before it have found, and adds its own."""


def analyse(modules: Iterable[Module]) -> Project:
    """Analyse a tree.

    Args:
        modules: the facts of each file, in any order.

    Returns:
        The tree with what its files say together.
    """
    draft = Draft(modules)
    for _, run in PASSES:
        run(draft)
    return draft.project()
