"""What the templates of a file's two pages see: the facts of one file, grouped and ordered as a reader wants them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property

from markupsafe import Markup
from msgspec import Struct

from rankbook.embedding import Embedding
from rankbook.languages import LANGUAGES, STRUCTURED, by_fence, is_loose, is_template
from rankbook.model import (
    Class,
    Constant,
    Definition,
    Descent,
    Expression,
    Finding,
    Function,
    Module,
    Relation,
    Source,
    Survey,
    Test,
    Unfound,
)
from rankbook.pages.class_tree import Branch, class_tree
from rankbook.pages.dependencies import Dependency, dependencies
from rankbook.pages.elsewhere import Elsewhere
from rankbook.pages.entries import Entry, entries_by_kind
from rankbook.pages.evidence import Note, notes
from rankbook.pages.executed import is_executed
from rankbook.pages.fence import fence, source_fence
from rankbook.pages.finding_rows import FindingRow, finding_rows
from rankbook.pages.names import page_of_file
from rankbook.pages.needs import Glance, Need, glance, needs_of
from rankbook.pages.running import OneTest, Run, how_to_run, how_to_run_one
from rankbook.pages.test_rows import TestRow, TestTable, rows_by_class, table_of
from rankbook.pages.text import markdown, summary
from rankbook.requirements import Requirement
from rankbook.standard_library import OF_ALL_VERSIONS

_MOST_DEFINITIONS = 500
"""Definitions that the page of a file lists; its keyword page lists all."""
_OF_KEYS = frozenset({"json", "yaml", "toml"})
"""Languages whose definitions are keys."""
_FENCES = {language.name: language.fences[0] for language in LANGUAGES}


class FileTask(Struct, frozen=True):
    """All that is needed to make the pages of one file; it travels to the process that makes them."""

    module: Module
    title: str
    tests: tuple[Test, ...]
    requirements: tuple[Requirement, ...]
    relations: tuple[Relation, ...]
    unresolved: tuple[Expression, ...]
    imports: Mapping[str, str]
    """Module as written -> file of the tree."""
    importers: tuple[str, ...]
    """Files of the tree that import it."""
    findings: tuple[Finding, ...]
    """What a linter says of it, by line."""
    unlisted: frozenset[str]
    """Files that it refers to and whose pages have no listing."""
    descents: tuple[Descent, ...] = ()
    """Its classes that derive from classes of other files."""
    heirs: tuple[tuple[str, Descent], ...] = ()
    """Files whose classes derive from its own, each with the class and its ancestor."""
    elsewhere: tuple[Elsewhere, ...] = ()
    """Where else the APIs are tested that its tests call."""
    unfound: tuple[Unfound, ...] = ()
    """Tests that stand in it, and that pytest does not find."""


def file_task(  # noqa: PLR0913 - one argument for each thing that is known
    module: Module,
    survey: Survey,
    *,
    title: str,
    relations: tuple[Relation, ...],
    importers: tuple[str, ...],
    findings: tuple[Finding, ...],
    unlisted: frozenset[str],
    heirs: tuple[tuple[str, Descent], ...] = (),
    elsewhere: tuple[Elsewhere, ...] = (),
) -> FileTask:
    """Gather what is known of a file.

    Args:
        module: its facts.
        survey: what it says with the files that it names.
        title: of its page.
        relations: files that are related to it.
        importers: files that import it.
        findings: what a linter says of it.
        unlisted: all files whose pages have no listing.
        heirs: files whose classes derive from its own, each with the class and its ancestor.
        elsewhere: where else the APIs are tested that its tests call.
    """
    return FileTask(
        module=module,
        title=title,
        tests=survey.tests,
        requirements=survey.requirements,
        relations=relations,
        unresolved=survey.unresolved,
        imports=survey.imports,
        importers=importers,
        findings=findings,
        unlisted=unlisted & _named(module, survey, relations, importers, heirs) if unlisted else unlisted,
        descents=survey.descents,
        heirs=heirs,
        elsewhere=elsewhere,
        unfound=survey.unfound,
    )


def _named(
    module: Module, survey: Survey, relations: Iterable[Relation], importers: Iterable[str], heirs: Iterable[tuple[str, Descent]]
) -> set[str]:
    """Files that the pages of a file refer to."""
    needs = {need.path for test in survey.tests for need in test.requirements} | {need.path for need in survey.requirements}
    related = {relation.path for relation in relations} | {test.path for test in survey.tests}
    return {module.source.path, *needs, *related, *(path for path, _ in heirs), *survey.imports.values(), *importers}


class FileView:
    """One file as its templates see it."""

    def __init__(self, task: FileTask, text: str | None) -> None:
        self.task = task
        self.module = task.module
        self.source = task.module.source
        self.text = text
        """Text of the listing; None when there is none."""

    @property
    def path(self) -> str:
        """Path below the root."""
        return self.source.path

    @property
    def title(self) -> str:
        """Title of its page."""
        return self.task.title

    @property
    def is_titled(self) -> bool:
        """Whether the title is more than the file's name."""
        return self.title != self.source.name

    @property
    def is_executed(self) -> bool:
        """Whether running the book executes it, or listings inside it."""
        return not (is_template(self.path) or is_loose(self.path)) and is_executed(self.fence_word, self.text or "")

    @cached_property
    def tests_by_class(self) -> Mapping[str, tuple[TestRow, ...]]:
        """Its tests by their class, the empty one for functions; the variants of a function in one row."""
        return rows_by_class(self.tests, self.needs)

    @property
    def test_tables(self) -> Mapping[str, TestTable]:
        """The same, with what the rows of a class have in common said once."""
        return {name: table_of(rows) for name, rows in self.tests_by_class.items()}

    @property
    def tests(self) -> tuple[Test, ...]:
        """Tests that would run, inherited ones included."""
        return self.task.tests

    @property
    def relations(self) -> tuple[Relation, ...]:
        """Related files, nearest first."""
        return self.task.relations

    @cached_property
    def summary(self) -> str:
        """First sentence of the docstring; empty when there is none."""
        return summary_of(self.module)

    @cached_property
    def listing(self) -> Markup | None:
        """The fence that holds the source; None for an empty file and one that no page can hold."""
        return None if not self.text else markdown(source_fence(self.text, self.fence_word))

    @property
    def fence_word(self) -> str:
        """Word of the listing's language."""
        return _FENCES.get(self.source.language, "text")

    @cached_property
    def listing_by_extension(self) -> Markup | None:
        """The listing, with the file's extension as its language where that names one."""
        word = self.source.extension[1:].lower()
        if word == self.fence_word or not by_fence(word):
            return self.listing
        return None if not self.text else markdown(source_fence(self.text, word))

    @property
    def words(self) -> int:
        """Number of words of the text."""
        return len((self.text or "").split())

    @cached_property
    def bytes_note(self) -> str:
        """What is unusual about the file's bytes, as a clause; empty for UTF-8 with plain line ends."""
        return "" if self.source.embedding is None else ", ".join(_unusual(self.source.embedding))

    @cached_property
    def harnesses(self) -> tuple[str, ...]:
        """What runs its tests, by name."""
        return tuple(sorted({test.harness for test in self.tests if test.harness}))

    @cached_property
    def needs(self) -> tuple[Need, ...]:
        """Requirements of the file and of its tests, those of all tests first."""
        return needs_of(self.task.tests, self.task.requirements)

    @cached_property
    def missing_bases(self) -> tuple[str, ...]:
        """Base classes of its test classes that no file of the tree holds: what they would add is not known."""
        return tuple(sorted(set(_test_bases(self.task))))

    @cached_property
    def only_standard_library(self) -> bool:
        """Whether it has tests, needs nothing that is known of, and imports the standard library alone."""
        modules = (entry.module.partition(".")[0] for entry in self.dependencies)
        return bool(self.tests) and not self.needs and all(module in OF_ALL_VERSIONS for module in modules)

    @cached_property
    def dependencies(self) -> tuple[Dependency, ...]:
        """Imported modules in the order of the source."""
        return dependencies(self.module, self.task.imports)

    @cached_property
    def run(self) -> Run | None:
        """How to run it; None for a file that is neither a test module nor a script."""
        return how_to_run(self.module, self.tests)

    @property
    def run_listing(self) -> Markup | None:
        """The command as a listing."""
        run = self.run
        return markdown(fence(run.command + "\n", "bash")) if run else None

    @cached_property
    def run_one(self) -> tuple[OneTest, ...]:
        """How to run the first of its tests alone; empty when it has none."""
        if not self.tests:
            return ()
        rows = next(iter(self.tests_by_class.values()))
        return how_to_run_one(self.module, rows[0].selection, page_of_file("file", self.source.name))

    @cached_property
    def glance(self) -> Glance:
        """What its tests need, in one line."""
        return glance(self.needs)

    @cached_property
    def class_tree(self) -> tuple[Branch, ...]:
        """Its classes below their bases, with their subclasses in other files; empty when that tells nothing."""
        return class_tree(self.module, self.task.descents, self.task.heirs)

    @cached_property
    def lent(self) -> int:
        """Number of its tests that classes of other files, which its class tree tells of, inherit; 0 where tests run by themselves."""
        if self.tests or not self.class_tree:
            return 0
        lenders = {descent.ancestor for _, descent in self.task.heirs}
        return sum(entry.kind == "test" and entry.scope in lenders for entry in self.module.keywords)

    @property
    def elsewhere(self) -> tuple[Elsewhere, ...]:
        """Where else the APIs are tested that its tests call."""
        return self.task.elsewhere

    @cached_property
    def entries(self) -> Mapping[str, tuple[Entry, ...]]:
        """Keywords by kind, by name within a kind."""
        return entries_by_kind(self.module.keywords)

    @cached_property
    def most_called(self) -> tuple[tuple[str, int], ...]:
        """The eight names that it calls most, with the number of lines."""
        counts = Counter({entry.name: len(entry.lines) for entry in self.entries.get("call", ())})
        return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:8])

    @property
    def classes(self) -> tuple[Class, ...]:
        """Classes in the order of their lines."""
        return self.module.classes

    @property
    def functions(self) -> tuple[Function, ...]:
        """Functions outside classes, in the order of their lines."""
        return self.module.functions

    @property
    def callables(self) -> tuple[Function, ...]:
        """Functions and methods, in the order of their lines."""
        methods = (method for entry in self.classes for method in entry.methods)
        return tuple(sorted((*self.functions, *methods), key=lambda function: function.line))

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """What a file that is no Python source defines, in the order of its lines, up to a bearable number."""
        return self.module.definitions[:_MOST_DEFINITIONS]

    @property
    def more_definitions(self) -> int:
        """Number of definitions that are left out of `definitions`."""
        return len(self.module.definitions) - len(self.definitions)

    @cached_property
    def definition_counts(self) -> tuple[tuple[str, int], ...]:
        """Number of definitions by what they are called, most first."""
        counts = Counter(each.kind for each in self.module.definitions)
        return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    @property
    def cut(self) -> str:
        """That not all is listed of what a file defines that is no Python source, as a sentence; empty when it is."""
        module = self.module
        listed, noun = len(module.definitions), "keys" if self.source.language in _OF_KEYS else "definitions"
        if module.left_out:
            least = "at least " if module.is_cut else ""
            return f"Only the first {listed:,} of {least}{listed + module.left_out:,} {noun} are listed."
        if module.is_cut:
            return f"The file is too long to be read to its end: it may hold {noun} that are not listed."
        return f"Parts of the file could not be read: it may hold {noun} that are not listed." if module.is_torn else ""

    @property
    def is_structured(self) -> bool:
        """Whether definitions and imports are read from files of its language, and were read from it."""
        return self.source.language in STRUCTURED and not is_template(self.path) and self.module.unread is None

    @property
    def constants(self) -> tuple[Constant, ...]:
        """Module-level assignments."""
        return self.module.constants

    def findings(self, topic: str = "") -> tuple[FindingRow, ...]:
        """What a linter says of it, by rule; of all, or of a topic of `finding_rows.TOPICS`."""
        return finding_rows(self.task.findings, topic)

    @cached_property
    def patterns(self) -> tuple[Note, ...]:
        """Evidence for the patterns of `evidence.PATTERNS`."""
        return notes(self.module)


def summary_of(module: Module) -> str:
    """Give the sentence that sums a file up; empty when there is none."""
    return summary(module.docstring, is_markdown=module.source.language == "markdown")


def has_listing(source: Source) -> bool:
    """Whether the page of a file has a listing: it is not empty, and a text can hold it."""
    return source.embedding is not None and source.lines > 0


def _unusual(embedding: Embedding) -> Iterable[str]:
    ends = {"crlf": "CRLF line ends", "cr": "CR line ends", "mixed": "mixed line ends"}
    if embedding.encoding not in ("utf-8", "ascii"):
        yield f"encoding {embedding.encoding}"
    if embedding.bom:
        yield "a byte order mark"
    if embedding.newline in ends:
        yield ends[embedding.newline]
    if not embedding.final_newline and embedding.size:
        yield "no line end at its end"


def _test_bases(task: FileTask) -> Iterable[str]:
    """Base classes of the file's test classes, near and far, that no file of the tree holds."""
    wanted = {test.class_name for test in task.tests if test.class_name}
    missing = {(base.text, base.line) for base in task.unresolved}
    for entry in reversed(task.module.classes):
        if entry.name in wanted or entry.qualname in wanted:
            wanted.update(base.text.rpartition(".")[2] for base in entry.bases)
            yield from (base.text for base in entry.bases if (base.text, base.line) in missing)
