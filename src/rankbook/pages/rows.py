"""Rows that pages hold by the hundred, written in one piece; where they stand is said by the templates.

Each function is a filter of the templates. A pack that wants other rows loops over the facts instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from markupsafe import Markup

from rankbook.model import Class, Constant, Definition, Function, Relation
from rankbook.pages.class_tree import Base, Branch
from rankbook.pages.dependencies import Dependency
from rankbook.pages.elsewhere import Elsewhere
from rankbook.pages.entries import Entry
from rankbook.pages.names import Links
from rankbook.pages.places import Places
from rankbook.pages.text import code, first_sentence, listed, markdown, text
from rankbook.report import plural

_STEP = "    "
"""What stands before an item of a list within a list."""


class _Place(Protocol):
    @property
    def path(self) -> str: ...
    @property
    def line(self) -> int: ...


def keyword_rows(entries: Iterable[Entry], links: Links, *, scopes: bool = True) -> Markup:
    """Write the keywords of one kind with their lines on the page of their file.

    Args:
        entries: the keywords.
        links: the links of the page.
        scopes: whether to say what holds them.
    """
    link = links.to_lines()
    return markdown(
        "".join(
            f"- {code(entry.name)}: {', '.join(map(link, entry.lines))}{f' in {listed(entry.scopes)}' if scopes and entry.scopes else ''}\n"
            for entry in entries
        )
    )


def word_rows(words: Iterable[tuple[str, Mapping[str, Iterable[_Place]]]], links: Links) -> Markup:
    """Write words of a folder's index with their places by kind."""
    return markdown("".join(f"- {code(word)}: {'; '.join(_kinds(places, links))}\n" for word, places in words))


def class_rows(classes: Iterable[Class], links: Links) -> Markup:
    """Write classes, each with its methods below it."""
    link = links.to_lines()
    return markdown("".join(row for each in classes for row in (_class(each, link), *_methods(each, link))))


def function_rows(functions: Iterable[Function], links: Links) -> Markup:
    """Write functions with their lines."""
    link = links.to_lines()
    return markdown("".join(f"- function {code(each.qualname)}, {link(each.line)}{_dash(each.docstring)}\n" for each in functions))


def constant_rows(constants: Iterable[Constant], links: Links) -> Markup:
    """Write constants with their lines."""
    link = links.to_lines()
    return markdown("".join(f"- constant {code(each.name)}, {link(each.line)}\n" for each in constants))


def definition_rows(definitions: Iterable[Definition], links: Links) -> Markup:
    """Write what a file that is no Python source defines, what stands in something else below it."""
    link = links.to_lines()
    return markdown(
        "".join(
            f"{_STEP * each.depth}- {text(each.kind)} {code(each.name)}, {link(each.line)}{_dash(each.docstring)}\n" for each in definitions
        )
    )


def named_lines(definitions: Iterable[Class | Function], links: Links) -> Markup:
    """Name classes or functions with their lines, in a sentence."""
    link = links.to_lines()
    return markdown(", ".join(f"{code(each.qualname)} ({link(each.line)})" for each in definitions))


def tree_rows(branches: Iterable[Branch], links: Links) -> Markup:
    """Write the tree of a file's classes, each class below its first base."""
    return markdown("".join(row for branch in branches for row in _branch(branch, links, "")))


def elsewhere_rows(rows: Iterable[Elsewhere], links: Links) -> Markup:
    """Write APIs as rows of a table: name, number of tests, other files."""
    places = Places(links)
    return markdown("".join(f"| {code(row.name)} | {row.tests:,} | {_files(row, places)} |\n" for row in rows))


def relation_rows(relations: Iterable[Relation], links: Links) -> Markup:
    """Write related files, each with why it is related and the line that says so."""
    return markdown("".join(f"- {links.name(each.path)}: {text(each.why)}{_said_at(each, links)}\n" for each in relations))


def dependency_rows(dependencies: Iterable[Dependency], links: Links) -> Markup:
    """Write imported modules as rows of a table: module, names, line and files of the tree."""
    link = links.to_lines()
    return markdown(
        "".join(
            f"| {code(each.module)} | {listed(each.names)} | {link(each.line)} | {', '.join(map(links.name, each.paths))} |\n"
            for each in dependencies
        )
    )


ROWS: dict[str, Callable[..., Any]] = {
    "keyword_rows": keyword_rows,
    "word_rows": word_rows,
    "class_rows": class_rows,
    "function_rows": function_rows,
    "constant_rows": constant_rows,
    "definition_rows": definition_rows,
    "named_lines": named_lines,
    "relation_rows": relation_rows,
    "tree_rows": tree_rows,
    "elsewhere_rows": elsewhere_rows,
    "dependency_rows": dependency_rows,
}


def _kinds(places: Mapping[str, Iterable[_Place]], links: Links) -> Iterable[str]:
    to_lines = links.to_lines
    for kind, same in places.items():
        yield f"{text(kind)} {', '.join([to_lines(place.path)(place.line) for place in same])}"


def _files(row: Elsewhere, places: Places) -> str:
    return ", ".join(map(places.among(row.paths).file, row.paths)) + (f" and {plural(row.more, 'more file')}" if row.more else "")


def _branch(branch: Branch, links: Links, pad: str) -> Iterable[str]:
    others = f", also from {_bases(branch.others, links)}" if branch.others else ""
    above = f", further up {_bases(branch.above, links)}" if branch.above else ""
    yield f"{pad}- {_known(branch, links)}{others}{above}\n"
    for each in branch.below:
        yield from _branch(each, links, pad + _STEP)
    if branch.more:
        yield f"{pad}{_STEP}- {plural(branch.more, 'more class', 'more classes')} of other files\n"


def _known(branch: Branch, links: Links) -> str:
    if not branch.path:
        return str(code(branch.name))
    if branch.path == links.source:
        return f"**{code(branch.name)}**, {links.line(branch.line)}"
    return f"{code(branch.name)} in {links.name(branch.path, branch.line)}"


def _bases(bases: Iterable[Base], links: Links) -> str:
    return ", ".join(f"{code(base.name)} in {links.name(base.path)}" if base.path else str(code(base.name)) for base in bases)


def _said_at(relation: Relation, links: Links) -> str:
    return f" ({links.to_lines(relation.where)(relation.line)})" if relation.line else ""


def _class(each: Class, link: Callable[[int], str]) -> str:
    bases = f" from {', '.join(code(base.text) for base in each.bases)}" if each.bases else ""
    guard = f", only if {code(each.guard)}" if each.guard else ""
    return f"- class {code(each.qualname)}{bases}, {link(each.line)}{guard}{_dash(each.docstring)}\n"


def _methods(each: Class, link: Callable[[int], str]) -> Iterable[str]:
    for method in each.methods:
        yield f"{_STEP}- {code(method.name)}, {link(method.line)}{_dash(method.docstring)}\n"


def _dash(docstring: str | None) -> str:
    sentence = first_sentence(docstring) if docstring else ""
    return f" — {text(sentence)}" if sentence else ""
