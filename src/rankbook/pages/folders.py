"""What the templates of a folder's three pages see: sums over all that lies below it, taken once for the whole tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from rankbook.kinds import KINDS
from rankbook.model import Folder, Module, Project
from rankbook.pages.entries import alphabetical, entries_by_kind
from rankbook.pages.files import summary_of
from rankbook.pages.needs import requirement_order

LIMIT = 2000
"""Keywords that a folder's keyword index lists before it leaves kinds out."""
DEFINITIONS_LIMIT = 5000
"""Classes and tests that it lists before it leaves these out too."""
_ROLE_FILES = ("readme.md", "readme.rst", "readme.txt", "readme", "__init__.py")
_IMPORTANT = 5
_EXTENSIONS = 50
"""Extensions up to which those of a single file are listed."""


@dataclass(frozen=True, slots=True)
class FileRow:
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

    @property
    def name(self) -> str:
        """File name."""
        return self.path.rsplit("/", 1)[-1]


@dataclass(slots=True)
class Totals:
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

    def add_file(self, row: FileRow) -> None:
        """Count one more file."""
        self.files += 1
        self.test_files += bool(row.tests)
        self.tests += row.tests
        self.types[row.type] += 1
        self.extensions[row.extension] += 1
        self.needs.update(row.needs)
        self.keywords.update(row.keywords)

    def add_folder(self, other: Totals) -> None:
        """Count a folder and all below it."""
        self.folders += 1 + other.folders
        self.files += other.files
        self.test_files += other.test_files
        self.tests += other.tests
        for mine, theirs in (
            (self.types, other.types),
            (self.extensions, other.extensions),
            (self.needs, other.needs),
            (self.keywords, other.keywords),
        ):
            mine.update(theirs)


@dataclass(frozen=True, slots=True)
class FolderRow:
    """One subfolder in a folder's tables."""

    path: str
    name: str
    """Path below the folder of the table: a folder that holds nothing but one other is passed over."""
    summary: str
    totals: Totals


@dataclass(frozen=True, slots=True)
class Place:
    """Where a keyword of a folder's index stands first in a file."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Letter:
    """All keywords with one first letter."""

    letter: str
    words: tuple[tuple[str, Mapping[str, tuple[Place, ...]]], ...]
    """Each word with its places by kind, definitions first."""


@dataclass(frozen=True)
class FolderView:
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

    @property
    def left_out(self) -> tuple[str, ...]:
        """Kinds that are there and that the keyword index leaves out."""
        return tuple(kind for kind in KINDS if self.totals.keywords[kind] and kind not in self.shown)


def folder_views(project: Project, title: str, unlisted: frozenset[str]) -> Iterator[FolderView]:
    """Make the views of all folders, parents after their children."""
    survey = _Survey(project, title, _file_rows(project), unlisted)
    for path in sorted(project.folders, key=lambda path: (-_depth(path), path)):
        folder = project.folders[path]
        survey.totals[path] = _totals(folder, survey.rows, survey.totals)
        yield _view(survey, folder)


@dataclass(frozen=True, slots=True)
class _Survey:
    """What is known of all folders so far."""

    project: Project
    title: str
    rows: Mapping[str, FileRow]
    unlisted: frozenset[str]
    totals: dict[str, Totals] = field(default_factory=dict)


def _depth(path: str) -> int:
    return path.count("/") + 1 if path else 0


def _file_rows(project: Project) -> dict[str, FileRow]:
    imported = Counter(target for survey in project.surveys.values() for target in survey.import_lines)
    return {path: _file_row(project, module, imported[path]) for path, module in project.modules.items()}


def _file_row(project: Project, module: Module, imported_by: int) -> FileRow:
    path = module.source.path
    needs = {need.text: None for need in sorted(project.requirements.get(path, ()), key=requirement_order) if need.kind != "condition"}
    conditions = {need.value for need in project.requirements.get(path, ()) if need.kind == "condition"}
    keywords = Counter(kind for kind, _ in {(keyword.kind, keyword.name) for keyword in module.keywords})
    return FileRow(
        path=path,
        type=module.source.type,
        extension=module.source.extension,
        summary=summary_of(module),
        tests=len(project.tests.get(path, ())),
        needs=tuple(needs),
        conditions=len(conditions),
        keywords={kind: keywords[kind] for kind in KINDS if keywords[kind]},
        imported_by=imported_by,
    )


def _totals(folder: Folder, rows: Mapping[str, FileRow], below: Mapping[str, Totals]) -> Totals:
    totals = Totals()
    for path in folder.files:
        totals.add_file(rows[path])
    for path in folder.folders:
        totals.add_folder(below[path])
    return totals


def _view(survey: _Survey, folder: Folder) -> FolderView:
    role, role_path = _role(folder, survey.rows)
    files = tuple(_files_below(survey.project, folder))
    totals = survey.totals[folder.path]
    shown = _shown(totals.keywords)
    return FolderView(
        path=folder.path,
        title=folder.name if folder.path else survey.title,
        parent=folder.path.rpartition("/")[0] if folder.path else None,
        role=role,
        role_path=role_path,
        folders=tuple(_folder_row(survey, folder, path) for path in sorted(folder.folders)),
        files=tuple(survey.rows[path] for path in sorted(folder.files)),
        totals=totals,
        most_tests=_most(files, survey.rows, "tests"),
        most_imported=_most(files, survey.rows, "imported_by"),
        letters=tuple(_letters((survey.project.modules[path] for path in files), shown)) if shown else (),
        shown=shown,
        unlisted=survey.unlisted.intersection(files),
    )


def _folder_row(survey: _Survey, above: Folder, path: str) -> FolderRow:
    folder = survey.project.folders[path]
    while len(folder.folders) == 1 and not folder.files:
        folder = survey.project.folders[folder.folders[0]]
    name = folder.path.removeprefix(above.path).removeprefix("/")
    return FolderRow(folder.path, name, _role(folder, survey.rows)[0], survey.totals[folder.path])


def _role(folder: Folder, rows: Mapping[str, FileRow]) -> tuple[str, str]:
    names = {path.rsplit("/", 1)[-1].lower(): path for path in folder.files}
    found = (names[name] for name in _ROLE_FILES if name in names and rows[names[name]].summary)
    path = next(found, "")
    return (rows[path].summary, path) if path else ("", "")


def _files_below(project: Project, folder: Folder) -> Iterator[str]:
    yield from folder.files
    for path in folder.folders:
        yield from _files_below(project, project.folders[path])


def _most(files: Iterable[str], rows: Mapping[str, FileRow], what: str) -> tuple[FileRow, ...]:
    counted = (rows[path] for path in files if getattr(rows[path], what))
    return tuple(sorted(counted, key=lambda row: (-getattr(row, what), row.path))[:_IMPORTANT])


def _shown(keywords: Counter[str]) -> tuple[str, ...]:
    """Choose the kinds that an index of bearable length lists: all, or definitions of classes and tests, or none."""
    kinds = tuple(kind for kind in KINDS if keywords[kind])
    definitions = tuple(kind for kind in kinds if kind in ("class", "test"))
    choices = ((kinds, LIMIT), (definitions, DEFINITIONS_LIMIT))
    return next((choice for choice, limit in choices if sum(keywords[kind] for kind in choice) <= limit), ())


def _letters(modules: Iterable[Module], shown: tuple[str, ...]) -> Iterator[Letter]:
    words: dict[str, dict[str, list[Place]]] = {}
    for module in modules:
        for kind, entries in entries_by_kind(module.keywords).items():
            for entry in entries if kind in shown else ():
                words.setdefault(entry.name, {}).setdefault(kind, []).append(Place(module.source.path, entry.lines[0]))
    letters: dict[str, list[tuple[str, Mapping[str, tuple[Place, ...]]]]] = {}
    for word in sorted(words, key=alphabetical):
        places = {kind: tuple(words[word][kind]) for kind in KINDS if kind in words[word]}
        letters.setdefault(_letter(word), []).append((word, places))
    for letter in sorted(letters, key=lambda letter: (letter == "Other", letter)):
        yield Letter(letter, tuple(letters[letter]))


def _letter(word: str) -> str:
    first = alphabetical(word)[0][:1].upper()
    return first if first.isascii() and first.isalpha() else "Other"
