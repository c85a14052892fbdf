"""The files that `rankbook init` writes or adds to: one row each, from the facts and what is there to what shall be there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path

from msgspec import Struct

from rankbook.starter import edits
from rankbook.starter.edits import Edit
from rankbook.starter.facts import Facts
from rankbook.starter.templates import rendered
from rankbook.starter.yaml_edits import CannotEdit


class Kind(Enum):
    """What becomes of a file."""

    NEW = "written"
    CHANGED = "changed"
    SAME = "unchanged"
    LEFT = "left"


class Draft(Struct, frozen=True):
    """One file, as it shall be."""

    path: str
    """Below the top of the repository."""
    kind: Kind
    before: str
    """The text that is there; empty for none."""
    after: str
    """The text that shall be there; that before where it is left."""
    why: str = ""
    """What is added, or why it is left; a clause."""
    left: tuple[str, ...] = ()
    """What could not be added, each with what is to be done by hand."""

    is_whole: bool = False
    """Whether it is left because it can only be replaced as a whole."""

    @property
    def needs_a_hand(self) -> bool:
        """Whether something is left to be done."""
        return self.kind is Kind.LEFT or bool(self.left)


class _Row(Struct, frozen=True):
    """A file and how it comes about."""

    path: Callable[[Facts], str]
    """Its place below the top of the repository; empty when it is not for this project."""
    whole: str = ""
    """Template of the file; empty for one that is only added to."""
    add: Callable[[str, Facts], Edit] | None = None
    """Adds to an existing file; None for a file that is left when it is there."""
    by_hand: Callable[[Facts], str] = lambda _: ""
    """Says what is to be done by hand when the file is left."""


def drafts(facts: Facts, top: Path, forced: tuple[str, ...] = ()) -> Iterator[Draft]:
    """Draft all files.

    Args:
        facts: what they hang on.
        top: top of the repository.
        forced: paths of files that are replaced even if they are there and differ.
    """
    for row in _ROWS:
        path = row.path(facts)
        if path:
            yield _draft(row, facts, path, top, is_forced=path in forced)


def _draft(row: _Row, facts: Facts, path: str, top: Path, *, is_forced: bool) -> Draft:
    file = top / path
    before, lacking = _read(file, top)
    if lacking:
        return Draft(path, Kind.LEFT, "", "", lacking)
    there = file.exists()
    if row.whole and (not there or is_forced):
        after = rendered(row.whole, facts)
        kind = Kind.SAME if after == before else Kind.CHANGED if there else Kind.NEW
        return Draft(path, kind, before, after, "replaced" if kind is Kind.CHANGED else "")
    if row.add is None:
        if before == rendered(row.whole, facts):
            return Draft(path, Kind.SAME, before, before)
        return Draft(path, Kind.LEFT, before, before, edits.of_another(before, facts) or "it is there", is_whole=True)
    try:
        edit = row.add(before.replace("\r\n", "\n"), facts)
    except CannotEdit as error:
        return Draft(path, Kind.LEFT, before, before, f"{error}; {row.by_hand(facts)}")
    after = edit.text.replace("\n", "\r\n") if "\r\n" in before else edit.text
    kind = Kind.SAME if after == before else Kind.CHANGED if there else Kind.NEW
    return Draft(path, kind, before, after, edit.said if kind is Kind.CHANGED else "", edit.left)


def _read(file: Path, top: Path) -> tuple[str, str]:
    """Read a file; give its text, and why it must be left."""
    if file.is_symlink():
        return "", "it is a symbolic link"
    if not file.parent.resolve().is_relative_to(top.resolve()):
        return "", "it lies outside of the repository"
    if not next(folder for folder in file.parents if folder.exists()).is_dir():
        return "", "a file stands where its folder is to be"
    try:
        return (file.read_bytes().decode("utf-8"), "") if file.exists() else ("", "")
    except (OSError, UnicodeDecodeError):
        return "", "it cannot be read as UTF-8"


_ROWS = (
    _Row(lambda facts: facts.at_top("pyproject.toml"), add=edits.settings, by_hand=edits.settings_by_hand),
    _Row(lambda facts: facts.at_top(facts.config), whole="mkdocs.yml.jinja", add=edits.site, by_hand=edits.site_by_hand),
    _Row(lambda facts: facts.at_top(f"{facts.docs}/index.md") if facts.is_docs_new else "", whole="index.md.jinja"),
    _Row(lambda facts: facts.at_top(".gitignore"), add=edits.ignored),
    _Row(
        lambda facts: ".pre-commit-config.yaml" if not facts.is_ignored and _has_hooks(facts) else "",
        add=edits.hook,
        by_hand=lambda facts: f"add a local hook with the entry `{edits.hook_entry(facts)}` and `always_run: true`",
    ),
    _Row(lambda facts: ".github/workflows/book.yml" if "github" in facts.forges else "", whole="github.yml.jinja"),
    _Row(lambda facts: edits.GITLAB_JOBS if "gitlab" in facts.forges else "", whole="gitlab.yml.jinja"),
    _Row(
        lambda facts: ".gitlab-ci.yml" if "gitlab" in facts.forges else "",
        add=edits.included,
        by_hand=lambda _: f"add `local: {edits.GITLAB_JOBS}` to its include",
    ),
)
"""All files, in the order in which they are told."""


def _has_hooks(facts: Facts) -> bool:
    return (facts.top / ".pre-commit-config.yaml").is_file()
