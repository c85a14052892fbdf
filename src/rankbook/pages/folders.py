"""What the templates of a folder's three pages see: sums over all that lies below it, taken once for the whole tree."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct, field

from rankbook.kinds import KINDS
from rankbook.model import Folder, Module, Survey
from rankbook.pages.contents import SuiteLink
from rankbook.pages.entries import alphabetical
from rankbook.pages.files import summary_of
from rankbook.pages.graph import GraphFile, Import, Picture, import_graph, kind_of
from rankbook.pages.hardware import asks_of, by_gpus, hardware_of
from rankbook.pages.needs import requirement_order

LIMIT = 2000
"""Keywords that a folder's keyword index lists: of more it lists classes and tests, of more of these classes, of more of these none."""
_ROLE_FILES = ("readme.md", "readme.rst", "readme.txt", "readme", "__init__.py")
_IMPORTANT = 5
_EXTENSIONS = 50
"""Extensions up to which those of a single file are listed."""


class FileRow(Struct, frozen=True):
    """One file in a folder's tables."""

    path: str
    type: str
    extension: str
    summary: str
    """First sentence of its docstring; empty when there is none."""
    tests: int
    needs: tuple[str, ...]
    """What it needs, each once, without conditions."""
    conditions: int
    """Number of conditions under which tests of it are skipped."""
    keywords: Mapping[str, int]
    """Number of keywords by kind."""
    imported_by: int
    """Number of files that import it."""
    owners: tuple[str, ...] = ()
    hardware: Mapping[str, int] = field(default_factory=dict)
    """Number of tests by class of hardware, under the words of `hardware.Hardware.key`."""
    asks: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    """Number of tests by kind of requirement, by value and by class of hardware; GPUs are in `hardware` alone."""
    marks: Mapping[str, int] = field(default_factory=dict)
    """Number of tests by pytest mark."""
    decorators: Mapping[str, int] = field(default_factory=dict)
    """Number of tests by the full name of what decorates them or their classes."""
    apis: int = 0
    """Number of imported names that its tests exercise."""
    imports: Mapping[str, int] = field(default_factory=dict)
    """By file of the tree that it imports: the first line that names it."""
    codeowners: str = ""
    """The file of the repository that gives its owners; empty when it names them itself."""
    is_cut: bool = False
    """Whether it defines more than is listed of it."""

    @property
    def name(self) -> str:
        """File name."""
        return self.path.rsplit("/", 1)[-1]


class Totals(Struct):
    """Sums over all files of a folder and below it."""

    folders: int = 0
    files: int = 0
    test_files: int = 0
    tests: int = 0
    types: Counter[str] = field(default_factory=Counter)
    extensions: Counter[str] = field(default_factory=Counter)
    needs: Counter[str] = field(default_factory=Counter)
    """Number of files by what they need."""
    keywords: Counter[str] = field(default_factory=Counter)
    """Number of keywords by kind."""
    cut: int = 0
    """Number of files that define more than is listed of them."""
    most_tests: tuple[FileRow, ...] = ()
    """The five files with most tests."""
    most_imported: tuple[FileRow, ...] = ()
    """The five files that most files import."""
    role: str = ""
    """First sentence of the folder's own read-me or package docstring; empty when there is none."""
    role_path: str = ""
    """File that says so."""

    def add_file(self, row: FileRow) -> None:
        """Count one more file."""
        self.files += 1
        self.test_files += bool(row.tests)
        self.tests += row.tests
        self.types[row.type] += 1
        self.extensions[row.extension] += 1
        self.needs.update(row.needs)
        self.keywords.update(row.keywords)
        self.cut += row.is_cut
        self._most((row,), (row,))

    def add_folder(self, other: Totals) -> None:
        """Count a folder and all below it."""
        self.folders += 1 + other.folders
        self.files += other.files
        self.test_files += other.test_files
        self.tests += other.tests
        self.cut += other.cut
        for mine, theirs in (
            (self.types, other.types),
            (self.extensions, other.extensions),
            (self.needs, other.needs),
            (self.keywords, other.keywords),
        ):
            mine.update(theirs)
        self._most(other.most_tests, other.most_imported)

    def _most(self, tests: Iterable[FileRow], imported: Iterable[FileRow]) -> None:
        self.most_tests = _first((*self.most_tests, *tests), "tests")
        self.most_imported = _first((*self.most_imported, *imported), "imported_by")


class FolderRow(Struct, frozen=True):
    """One subfolder in a folder's tables."""

    path: str
    name: str
    """Path below the folder of the table: a folder that holds nothing but one other is passed over."""
    summary: str
    totals: Totals


class Place(NamedTuple):
    """Where a keyword of a folder's index stands first in a file."""

    path: str
    line: int


class Holder(NamedTuple):
    """What holds all keywords of a folder and below it: one of its subfolders, or one of its files."""

    name: str
    path: str
    is_folder: bool


class Letter(Struct, frozen=True):
    """All keywords with one first letter."""

    letter: str
    words: tuple[tuple[str, Mapping[str, tuple[Place, ...]]], ...]
    """Each word with its places by kind, definitions first."""


class FolderView(Struct, frozen=True, dict=True):
    """One folder as its templates see it."""

    path: str
    title: str
    """Its name; the book's title for the root."""
    parent: str | None
    """Path of the folder above; None for the root."""
    role: str
    """First sentence of its read-me or package docstring; empty when there is none."""
    role_path: str
    """File that says so."""
    folders: tuple[FolderRow, ...]
    files: tuple[FileRow, ...]
    totals: Totals
    """Of the folder and all below it."""
    most_tests: tuple[FileRow, ...]
    """The five files below it with most tests."""
    most_imported: tuple[FileRow, ...]
    """The five files below it that most files import."""
    letters: tuple[Letter, ...]
    """The keyword index."""
    shown: tuple[str, ...]
    """Kinds that the keyword index lists; the others are left out of it, because they are too many."""
    unlisted: frozenset[str]
    """Files below it whose pages have no listing."""
    suite: tuple[SuiteLink, ...] = ()
    """Of the root: the pages about the whole suite."""
    imports: tuple[Import, ...] = ()
    """Imports by its direct files and of them."""

    @property
    def label(self) -> str:
        """Its path; the book's title for the root."""
        return self.path or self.title

    @property
    def keywords(self) -> int:
        """Number of keywords of all files below it."""
        return self.totals.keywords.total()

    @property
    def extensions(self) -> tuple[tuple[str, int], ...]:
        """Extensions with their number of files, most files first; in a large tree those of several files only."""
        counts = self.totals.extensions.most_common()
        return tuple((name, count) for name, count in counts if count > 1 or len(counts) <= _EXTENSIONS)

    @cached_property
    def graph(self) -> Picture | None:
        """Picture of the imports; None when none connects two direct files."""
        files = [GraphFile(row.path, kind_of(row.path, has_tests=bool(row.tests))) for row in self.files]
        return import_graph(self.path, files, self.imports)

    @property
    def holder(self) -> Holder | None:
        """The one child that holds all its keywords, so that another page lists the same; None for the root, whose page lists all."""
        folders = [Holder(f"{row.name}/", row.path, is_folder=True) for row in self.folders if row.totals.keywords.total()]
        files = [Holder(row.name, row.path, is_folder=False) for row in self.files if row.keywords]
        return (folders + files)[0] if self.path and len(folders) + len(files) == 1 else None

    @property
    def left_out(self) -> tuple[str, ...]:
        """Kinds that are there and that the keyword index leaves out."""
        return tuple(kind for kind in KINDS if self.totals.keywords[kind] and kind not in self.shown)


def deepest_first(folders: Iterable[str]) -> list[str]:
    """Sort folders so that each comes after those below it."""
    return sorted(folders, key=lambda path: (-_depth(path), path))


def totals_of(folder: Folder, rows: Mapping[str, FileRow], below: Mapping[str, Totals]) -> Totals:
    """Sum up a folder.

    Args:
        folder: the folder.
        rows: rows of its direct files.
        below: sums of its direct subfolders.
    """
    totals = Totals()
    totals.role, totals.role_path = _role(folder, rows)
    for path in folder.files:
        totals.add_file(rows[path])
    for path in folder.folders:
        totals.add_folder(below[path])
    return totals


FirstLines = Mapping[str, Mapping[str, int]]
"""The first line of each keyword of a file, by kind and name."""


class Tree(Struct, frozen=True):
    """What the views of folders are made from."""

    title: str
    """Of the book."""
    folders: Mapping[str, Folder]
    rows: Mapping[str, FileRow]
    totals: Mapping[str, Totals]
    keywords: Mapping[str, FirstLines]
    unlisted: frozenset[str]
    """Files whose pages have no listing."""
    importers: Callable[[str], Mapping[str, int]] | None = None
    """Gives the files that import a file, each with the line that does; without it no picture of imports is made."""
    suite: tuple[SuiteLink, ...] = ()
    """The pages about the whole suite."""


def _depth(path: str) -> int:
    return path.count("/") + 1 if path else 0


def file_row(module: Module, survey: Survey, imported_by: int) -> FileRow:
    """Sum up a file for the tables of folders.

    Args:
        module: its facts.
        survey: what it says with the files that it names.
        imported_by: number of files that import it.
    """
    path = module.source.path
    needs = {need.text: None for need in sorted(survey.requirements, key=requirement_order) if need.kind != "condition"}
    conditions = {need.value for need in survey.requirements if need.kind == "condition"}
    keywords = Counter(kind for kind, _ in {(keyword.kind, keyword.name) for keyword in module.keywords})
    return FileRow(
        path=path,
        type=module.source.type,
        extension=module.source.extension,
        summary=summary_of(module),
        tests=len(survey.tests),
        needs=tuple(needs),
        conditions=len(conditions),
        keywords={kind: keywords[kind] for kind in KINDS if keywords[kind]},
        imported_by=imported_by,
        owners=module.owners,
        hardware=by_gpus({hardware_of(test).key: 1} for test in survey.tests),
        asks=asks_of(survey.tests),
        marks=dict(sorted(Counter(mark for test in survey.tests for mark in test.marks).items())),
        decorators=dict(sorted(Counter(name for test in survey.tests for name in test.decorators).items())),
        apis=sum(bool(use.tests) for use in survey.uses),
        imports=dict(survey.import_lines),
        codeowners=module.codeowners,
        is_cut=module.is_cut or module.left_out > 0,
    )


def folder_view(tree: Tree, path: str) -> FolderView:
    """Make the view of a folder."""
    folder, totals = tree.folders[path], tree.totals[path]
    shown = _shown(totals.keywords)
    files = tuple(_files_below(tree.folders, folder)) if shown else folder.files
    return FolderView(
        path=path,
        title=folder.name if path else tree.title,
        parent=path.rpartition("/")[0] if path else None,
        role=totals.role,
        role_path=totals.role_path,
        folders=tuple(_folder_row(tree, folder, inner) for inner in sorted(folder.folders)),
        files=tuple(tree.rows[file] for file in sorted(folder.files)),
        totals=totals,
        most_tests=totals.most_tests,
        most_imported=totals.most_imported,
        letters=tuple(_letters(((file, tree.keywords[file]) for file in files), shown)) if shown else (),
        shown=shown,
        unlisted=tree.unlisted.intersection(files),
        imports=tuple(_imports(tree, folder)),
        suite=() if path else tree.suite,
    )


def _imports(tree: Tree, folder: Folder) -> Iterator[Import]:
    """Give each import by the direct files of a folder and of them, once."""
    if tree.importers is None:
        return
    own = set(folder.files)
    for path in folder.files:
        yield from ((path, target, line) for target, line in tree.rows[path].imports.items())
        yield from ((importer, path, line) for importer, line in tree.importers(path).items() if importer not in own)


def _folder_row(tree: Tree, above: Folder, path: str) -> FolderRow:
    folder = tree.folders[path]
    while len(folder.folders) == 1 and not folder.files:
        folder = tree.folders[folder.folders[0]]
    name = folder.path.removeprefix(above.path).removeprefix("/")
    return FolderRow(folder.path, name, tree.totals[folder.path].role, tree.totals[folder.path])


def _role(folder: Folder, rows: Mapping[str, FileRow]) -> tuple[str, str]:
    names = {path.rsplit("/", 1)[-1].lower(): path for path in folder.files}
    found = (names[name] for name in _ROLE_FILES if name in names and rows[names[name]].summary)
    path = next(found, "")
    return (rows[path].summary, path) if path else ("", "")


def _files_below(folders: Mapping[str, Folder], folder: Folder) -> Iterator[str]:
    yield from folder.files
    for path in folder.folders:
        yield from _files_below(folders, folders[path])


def _first(rows: tuple[FileRow, ...], what: str) -> tuple[FileRow, ...]:
    counted = {row.path: row for row in rows if getattr(row, what)}
    return tuple(sorted(counted.values(), key=lambda row: (-getattr(row, what), row.path))[:_IMPORTANT])


def _shown(keywords: Counter[str]) -> tuple[str, ...]:
    """Choose the kinds that an index of bearable length lists: all, or classes and tests, or classes, or none."""
    kinds = tuple(kind for kind in KINDS if keywords[kind])
    choices = (kinds, *(tuple(kind for kind in kinds if kind in wanted) for wanted in (("class", "test"), ("class",))))
    return next((choice for choice in choices if sum(keywords[kind] for kind in choice) <= LIMIT), ())


def first_lines(module: Module) -> FirstLines:
    """Give the first line of each keyword of a file, by kind and name."""
    first: dict[str, dict[str, int]] = {}
    for kind, name, line, _ in module.keywords:
        lines = first.setdefault(kind, {})
        if line < lines.get(name, sys.maxsize):
            lines[name] = line
    return first


def _letters(files: Iterable[tuple[str, FirstLines]], shown: tuple[str, ...]) -> Iterator[Letter]:
    words: dict[str, dict[str, list[Place]]] = {}
    for path, first in files:
        for kind in shown:
            for name, line in first.get(kind, {}).items():
                words.setdefault(name, {}).setdefault(kind, []).append(Place(path, line))
    letters: dict[str, list[tuple[str, Mapping[str, tuple[Place, ...]]]]] = {}
    for word in sorted(words, key=alphabetical):
        places = {kind: tuple(words[word][kind]) for kind in KINDS if kind in words[word]}
        letters.setdefault(_letter(word), []).append((word, places))
    for letter in sorted(letters, key=lambda letter: (letter == "Other", letter)):
        yield Letter(letter, tuple(letters[letter]))


def _letter(word: str) -> str:
    first = alphabetical(word)[0][:1].upper()
    return first if first.isascii() and first.isalpha() else "Other"
