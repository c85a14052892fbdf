"""The story of this room: what each file says, then what files say of each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from rankbook.analyse import imports, inheritance, requirements, tests, unfound, uses
from rankbook.analyse.draft import Draft
from rankbook.analyse.folders import folders_of
from rankbook.analyse.links import Links, Mentions
from rankbook.analyse.relations import relations_of
from rankbook.model import Module, Project, Survey
from rankbook.vocabulary import BUILT_IN, Vocabulary


def survey(draft: Draft, path: str) -> Survey:
    """Read one file together with the files that it names.

    Args:
        draft: the tree.
        path: the file.

    Returns:
        What it says, with the files that must be the same for it to stay so.
    """
    with draft.reads.traced() as trace:
        collected = tests.collect(draft, path)
        found = requirements.of_tests(draft, path, collected)
        targets = list(imports.targets(draft, path))
        made = Survey(
            path,
            imports={name: target for name, target, _ in targets},
            import_lines={target: line for _, target, line in reversed(targets)},
            descents=tuple(inheritance.descents(draft, path)),
            unresolved=inheritance.unresolved(draft, path),
            cut_short=tuple((each.qualname, each.line) for each in inheritance.cut_short(draft, path)),
            tests=found,
            unfound=tuple(unfound.unfound(draft, path)),
            requirements=requirements.of_file(draft, path, found),
            uses=tuple(uses.uses(draft, path, collected)),
        )
    return replace(made, reads=frozenset(trace.read - {path}), asked=frozenset(trace.asked))


def analyse(modules: Iterable[Module], packages: Mapping[str, Module] | None = None, vocabulary: Vocabulary = BUILT_IN) -> Project:
    """Analyse a tree that fits into memory.

    Args:
        modules: the facts of each file, in any order.
        packages: the facts of files outside the tree that imports lead to, by path.
        vocabulary: what names of decorators, marks and flags mean.

    Returns:
        The tree with what its files say together.
    """
    facts = {module.source.path: module for module in sorted(modules, key=lambda each: each.source.path)}
    draft = Draft(facts, frozenset(facts), packages, vocabulary)
    surveys = {path: survey(draft, path) for path in facts}
    links = Links(surveys.values())
    mentions = Mentions(surveys.values())
    related = {path: relations_of(facts[path], surveys[path], links, mentions) for path in facts}
    return Project(
        modules={path: links.with_tests(module) for path, module in facts.items()},
        folders=folders_of(facts),
        surveys=surveys,
        relations={path: relations for path, relations in related.items() if relations},
    )
