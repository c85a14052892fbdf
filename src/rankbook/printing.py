"""From what is known to pages on disk: the pages of files and of folders, made and written in any process."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from rankbook import pages
from rankbook.analyse import relations_of
from rankbook.analyse.relations import RARE
from rankbook.dotted import module_name
from rankbook.knowledge import Knowledge
from rankbook.model import Finding, Folder, Module, Survey
from rankbook.pages import Book, Elsewhere, Entries, FileRow, Page, Placed, SuiteLink, Totals, Writer
from rankbook.sought import rows_of


class Made(Struct, frozen=True):
    """What became of the pages of one file or folder."""

    path: str
    """The file or folder."""
    placed: tuple[Placed, ...]
    """Its pages."""
    row: FileRow | None = None
    """Of a file, for the tables of folders."""
    words: Mapping[str, bytes] = field(default_factory=dict)
    """Of a file, for the index of words, as that keeps them."""
    apis: Mapping[str, bytes] = field(default_factory=dict)
    keywords: bytes = b""
    """Of a file, the first line of each keyword, packed."""
    sought: bytes = b""
    """Of a file, what a search finds in it, packed."""
    findings: tuple[pages.FindingCount, ...] = ()
    entries: Entries | None = None
    """What a file offers to links."""
    left: tuple[str, ...] = ()
    """Pages that stood there before and are not made any more."""
    warning: str = ""
    """Why nothing was written."""


class Press(Struct):
    """All that pages are made from."""

    root: Path
    book: Book
    writer: Writer
    modules: Mapping[str, Module]
    surveys: Mapping[str, Survey]
    findings: Mapping[str, tuple[Finding, ...]]
    knowledge: Knowledge
    folders: Mapping[str, Folder]
    rows: Mapping[str, FileRow]
    keywords: Mapping[str, pages.FirstLines]
    totals: Mapping[str, Totals]
    unlisted: frozenset[str]
    filed: Callable[[str, Sequence[tuple[Any, ...]]], Mapping[str, bytes]]
    """Packs the rows of a file for one of the long indexes, `words` or `apis`."""
    is_exact: bool = True
    """Whether the index of words leads to lines."""
    suite: tuple[SuiteLink, ...] = ()
    """The pages about the whole suite."""
    _titles: dict[str, dict[str, str]] = field(default_factory=dict)

    def files(self, paths: Sequence[str]) -> list[Made]:
        """Make and write the pages of files."""
        return [self._file(path) for path in paths]

    def folder_pages(self, paths: Sequence[str]) -> list[Made]:
        """Make and write the pages of folders."""
        importers = self.knowledge.links.importers
        tree = pages.Tree(
            self.book.title,
            self.folders,
            self.rows,
            self.totals,
            self.keywords,
            self.unlisted,
            importers,
            self.suite,
        )
        return [self._folder(path, pages.folder_pages(self.book, pages.folder_view(tree, path))) for path in paths]

    def _folder(self, path: str, made: Sequence[Page]) -> Made:
        left = set(pages.pages_of_folder(path)) - {page.path for page in made}
        return Made(path, self.put(made), left=tuple(sorted(left)))

    def put(self, made: Iterable[Page]) -> tuple[Placed, ...]:
        """Write pages that have changed."""
        return tuple([self.writer.put(page) for page in made])

    def titles(self, folder: str) -> dict[str, str]:
        """Give the titles of the files of a folder, by path."""
        if folder not in self._titles:
            briefs = self.knowledge.briefs
            self._titles[folder] = pages.distinct({path: briefs[path].title for path in self.folders[folder].files})
        return self._titles[folder]

    def _file(self, path: str) -> Made:
        facts, survey, links = self.modules[path], self.surveys[path], self.knowledge.links
        module = links.with_tests(facts)
        data: bytes | None = None
        if module.source.sha256:  # else it could not be read when its facts were taken, and its page says so
            try:
                data = (self.root / path).read_bytes()
            except OSError:
                data = b""
            if not pages.is_unchanged(module, data):
                return Made(path, (), warning=f"{path} has changed while it was being documented, so its pages are not written; run again")
        importers = tuple(links.importers(path))
        task = pages.file_task(
            module,
            survey,
            title=self.titles(module.source.folder)[path],
            relations=relations_of(module, survey, links, self.knowledge.mentions),
            importers=importers,
            findings=self.findings[path],
            unlisted=self.unlisted,
            heirs=links.heirs(path),
            elsewhere=self._elsewhere(survey),
        )
        placed = self.put(pages.file_pages(self.book, task, data))
        return Made(
            path,
            placed,
            pages.file_row(module, survey, len(importers)),
            words=self.filed("words", pages.word_rows(module, exact=self.is_exact)),
            apis=self.filed("apis", pages.api_rows(survey)),
            keywords=pickle.dumps(pages.first_lines(module), pickle.HIGHEST_PROTOCOL),
            sought=pickle.dumps(rows_of(facts, survey), pickle.HIGHEST_PROTOCOL),
            findings=pages.finding_counts(path, self.findings[path]),
            entries=pages.entries(pages.named(module, self._dotted(path), survey.tests), unlisted=self.unlisted),
        )

    def _elsewhere(self, survey: Survey) -> tuple[Elsewhere, ...]:
        mentions = self.knowledge.mentions
        return pages.elsewhere(survey, mentions.callers, self.knowledge.links.has_tests, min(RARE, max(2, mentions.importing // 2)))

    def _dotted(self, path: str) -> str:
        return module_name(path, self.modules.__contains__) if self.knowledge.briefs[path].is_python else ""
