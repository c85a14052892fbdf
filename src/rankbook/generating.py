"""A run of the documents wing that has something to do; what has not changed since the last run is taken from what that run kept."""

from __future__ import annotations

import os
import pickle
import secrets
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from rankbook import findings, freshness, homes, pages, staged
from rankbook.analyse import Draft, folders_of, looks_the_same, public_names, survey, targets, unknown_modules, unmentioned
from rankbook.collecting import rules_of
from rankbook.config import Settings
from rankbook.errors import PageError, RankbookError
from rankbook.freshness import Changes, Manifest
from rankbook.knowledge import Brief, Knowledge
from rankbook.model import Folder, Module, Project, Survey, Test, Use
from rankbook.offers import Offers
from rankbook.pages import Book, Fate, FileRow, Page, Seen, Writer, conflicts
from rankbook.pages.conflicts import Conflict
from rankbook.pages.names import pages_of_file
from rankbook.pages.notes import Note
from rankbook.printing import Made, Press
from rankbook.report import Progress, Report, pages_among, plural
from rankbook.sources import Packages, Taught, discover, folders_within, package_folders, parse
from rankbook.store import Kept, Store, StoreError
from rankbook.suite import Suite
from rankbook.vocabulary import Vocabulary
from rankbook.workers import processes, spread

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_FEW = 200
"""Files up to which starting processes costs more time than it saves."""
_MOST_AT_ONCE, _TURNS = 25, 64
"""Files that a process takes at once, and how often it takes some where they are fewer: at the end, one waits for the other's last."""
_FEW_SUMS = 40
"""Folders and parts of indexes up to which it does so."""
_FEW_READ = 40
"""Files whose facts are kept unpacked while pages are made: each is asked for once, or a few times on end."""


def generate(  # noqa: PLR0913 - one argument for each thing that a door chooses
    settings: Settings,
    changes: Changes | None,
    progress: Progress | None,
    *,
    check: bool = False,
    force: bool = False,
    staged: Path | None = None,
) -> Report:
    """Make the pages that show something new, and write them.

    Args:
        settings: what to document, where to and how.
        changes: what is not as the last run left it; None when no run has left anything.
        progress: told of each step.
        check: tell what would change, and write nothing.
        force: write pages whatever somebody has edited on them outside of notes.
        staged: with `check`, the folder that takes the pages as they would be.

    Raises:
        RankbookError: a setting, a source, a template, a note or the folder of the pages is not as it must be.
    """
    if changes is not None:  # before what the last run has left is lost
        pages.check_pack(pages.pack_folders(settings))
    writer = Writer(settings.below_root(settings.out), dry=check, staged=staged, force=force)
    if check and changes is None:
        return _documented(settings, Store(None, ""), None, progress, writer)
    kept_by = settings if changes is None else changes.kept_by
    store = Store(freshness.cache_folder(kept_by), freshness.world(kept_by))
    if changes is not None and changes.manifest.generation == store.generation:
        try:
            return _documented(settings, store, changes, progress, writer)
        except StoreError:
            store.close()
    if check:
        return _documented(settings, Store(None, ""), None, progress, writer)
    store.clear()
    return _documented(settings, store, None, progress, writer)


def surveyed(settings: Settings, changes: Changes | None, apis: Sequence[str] = ()) -> Project:
    """Survey the sources; nothing is written.

    Args:
        settings: what is documented.
        changes: what is not as the last run left it; None when no run has left anything.
        apis: modules whose public names are of interest, instead of those that the settings name.

    Raises:
        RankbookError: a setting or a source is not as it must be.
    """
    store = Store(freshness.cache_folder(settings), freshness.world(settings))
    if changes is not None and changes.manifest.generation == store.generation:
        try:
            return _surveyed(settings, store, changes, apis)
        except StoreError:
            store.close()
    return _surveyed(settings, Store(None, ""), None, apis)


def _surveyed(settings: Settings, store: Store, changes: Changes | None, apis: Sequence[str]) -> Project:
    run = _Run(settings, store, changes, _Clock(_silent), Writer(settings.below_root(settings.out), dry=True))
    surveys, _ = run.survey(*run.parse(run.discover()))
    return Project(
        modules=run.modules,
        folders=run.folders,
        surveys=dict(surveys.items()),
        public=public_names(run.draft, apis or settings.apis, run.packages.below),
    )


def _documented(settings: Settings, store: Store, changes: Changes | None, progress: Progress | None, writer: Writer) -> Report:
    started = time.time_ns()
    book = Book(settings.book_title, pages.pack_folders(settings))
    if not writer.dry:
        freshness.discard(settings)
    run = _Run(settings, store, changes, _Clock(progress or _silent), writer)
    report = run.report(book)
    if not writer.dry:
        run.keep(started, report)
    store.close()
    return report


class _Run:
    """One run, step by step; each step leaves for the next what it found.

    Args:
        settings: of the run.
        store: what the last run kept; empty when there is none that counts.
        changes: what has changed since then; None when nothing is known.
        clock: takes the time.
        writer: of the pages.
    """

    def __init__(  # noqa: PLR0915 - one statement for each thing that a run finds
        self, settings: Settings, store: Store, changes: Changes | None, clock: _Clock, writer: Writer
    ) -> None:
        self.settings = settings
        self.store = store
        self.changes = changes
        self.clock = clock
        self.writer = writer
        self.jobs = processes(settings.jobs)
        self.knowledge = Knowledge.kept(store)
        self.packages = Packages(package_folders(settings.root, settings.package_path))
        self.vocabulary = Vocabulary(settings.requirements)
        self.taught = Taught(self.vocabulary.called)
        self.suite = Suite(store)
        self.offers = Offers(store)
        self.paths: tuple[str, ...] = ()
        self.warnings: tuple[str, ...] = ()
        """Of the search for sources."""
        self.surroundings: tuple[str, ...] | None = None
        """Of a search for sources; None when there was none."""
        self.cut_short: dict[str, str] = {}
        """Warnings of classes with more ancestors than are looked at, by file."""
        self.unknown: tuple[str, ...] = ()
        """Warnings of modules that are named and not there."""
        self.passing: list[str] = []
        """Warnings of this run alone."""
        self.noted: tuple[str, ...] = ()
        """Pages that hold notes."""
        self.homes = homes.Homes()
        """What is to become of the notes."""
        self.orphans: tuple[str, ...] = ()
        """Warnings of notes that belong nowhere."""
        self.orphans_before: bytes | None = None
        """The page of such notes as the last run left it."""
        self.orphans_after: bytes | None = None
        self.doubtful: tuple[str, ...] = ()
        """Pages that held or hold notes that show what may not be meant."""
        self.conflicts: Mapping[str, Conflict] = {}
        """Pages that Git could not merge."""
        self.fates: dict[str, Fate] = {}
        """Of the pages that this run has made."""
        self.seen: dict[str, Seen] = {}
        """Those that were written, or found the same, as they were then: Git may bring another back before the run ends."""
        self.is_whole = True
        """Whether all is as it must be; else the next run starts anew."""
        self.obsolete: set[str] = set()
        """Pages that this run could have made and has not."""
        self.before: dict[str, Brief] = {}
        """The files as the last run knew them."""
        self.old_facts: dict[str, Module | None] = {}
        """Facts of changed files as the last run knew them."""
        self.old_rows: dict[str, FileRow | None] = {}
        """Rows of the files that are printed, as the last run knew them."""
        self.pages: tuple[str, ...] = ()
        """All pages of the book."""

    @cached_property
    def folders(self) -> Mapping[str, Folder]:
        """The folders that hold the sources, once those are known."""
        return folders_of(self.paths)

    def report(self, book: Book) -> Report:
        """Do all steps."""
        with self.clock.step("discover"):
            suspects = self.discover()
        changed, gone = self.parse(suspects, None if self.changes is not None else partial(pages.check_pack, book.folders))
        with (
            self.clock.step("analyse"),
            findings.start(self.settings.root, self._python(changed), self.settings.findings, self.settings.jobs) as linter,
        ):
            surveys, shown = self.survey(changed, gone)
            self._keep_findings(changed | gone, linter.result())
        press = self._press(book, surveys)
        self._settle_notes(press, changed)
        self._print(press, changed, gone, shown)
        with self.clock.step("sweep"):
            lost = self._keep_orphans(gone)
            removed = self._sweep(gone)
            self._tell_orphans(lost)
        return self._told(removed)

    # Sources

    def discover(self) -> list[str]:
        """Find the sources; give those that may have changed."""
        changes = self.changes
        if changes is None:
            self._search()
            return list(self.paths)
        self.paths = changes.manifest.sources.paths
        self.warnings = self.store.get("indexes", "warnings")
        if changes.surroundings or any(path.lower().endswith(".md") for path in changes.sources):
            self._search()
        known = self.knowledge.briefs
        present = set(self.paths)
        return sorted(present.intersection(changes.sources) | (present - known.keys()))

    def _search(self) -> None:
        found = discover(self.settings)
        left = pages.clashing(found.paths)
        starts = tuple(f"{folder}/" for folder in left)
        self.paths = tuple(path for path in found.paths if not path.startswith(starts)) if left else found.paths
        is_main = pages.is_of_the_project(self.settings)
        others = tuple(pages.other_books(self.settings, self.paths)) if is_main else ()
        self.warnings = (*found.warnings, *map(_taken, left), *(_doubled(other, self.settings.out) for other in others))
        told = [f"{other}/index.md" for other in others] if is_main else ["pyproject.toml"]  # which may come to name this book
        self.surroundings = (*found.surroundings, *told)

    def parse(self, suspects: list[str], meanwhile: Callable[[], None] | None = None) -> tuple[set[str], set[str]]:
        """Read the facts of files, and do something else meanwhile; give those that are new or have changed, and those that are gone."""
        briefs = self.knowledge.briefs
        self.before = dict(briefs)
        root, taught = self.settings.root, self.taught

        def read(paths: Sequence[str]) -> list[tuple[str, Brief, bytes]]:
            return [(path, _brief(module := parse(root, path, taught)), _packed(module)) for path in paths]

        changed = set()
        with self.clock.step("parse", len(suspects)) as count:
            for path, brief, data in count(self._spread(read, suspects, meanwhile)):
                if not brief.sha256 or brief.sha256 != getattr(briefs.get(path), "sha256", None):
                    changed.add(path)
                    briefs[path] = brief
                    if self.changes is not None:
                        self.old_facts[path] = self.store.get("facts", path)
                    self.store.put("facts", path, data)
        known = briefs.keys() | (() if self.changes is None else self.changes.manifest.sources.paths)
        gone = set(known) - set(self.paths)
        for path in gone:
            briefs.pop(path, None)
            self.store.put("facts", path, None)
        return changed, gone

    def _python(self, paths: Iterable[str]) -> list[str]:
        return sorted(path for path in paths if path in self.knowledge.briefs and self.knowledge.briefs[path].is_python)

    # Surveys

    def survey(self, changed: set[str], gone: set[str]) -> tuple[Kept[Survey], set[str]]:
        """Read files together with those that they name; give what they say, and the other files on whose pages that may show."""
        self.modules: Kept[Module] = Kept(self.store, "facts", self.paths, partial(parse, self.settings.root, taught=self.taught))
        briefs = self.knowledge.briefs
        doubtful = {path for path in changed | self._resting_on(changed, gone) if path in briefs}
        mute = {path for path in doubtful if not briefs[path].is_surveyed}
        before = {path: known for path in sorted(doubtful | gone) if (known := self.store.get("surveys", path)) is not None}
        packages = _KeptPackages(self.store, self.packages)
        rules = rules_of(self.settings.root)
        starts = folders_within(self.settings.root, (*rules.pythonpath, *self.settings.package_path))
        paths, is_own = frozenset(self.paths), self.packages.is_own
        draft = self.draft = Draft(self.modules, paths, packages, self.vocabulary, rules, is_own=is_own, starts=starts)

        def read(paths: Sequence[str]) -> list[tuple[Survey, bytes, dict[str, bytes], str]]:
            found = []
            for path in paths:
                made, mistake = _surveyed_alone(draft, path)
                found.append((_gist(made), _packed(made), packages.taken(), mistake))
                draft.relieve()
            return found

        after = {}
        kept_short = self.store.get("indexes", "cut short") or {}
        self.cut_short = {path: said for path, said in kept_short.items() if path not in doubtful | gone}
        for gist, data, read_packages, mistake in self._spread(read, sorted(doubtful - mute)):
            self.cut_short |= _told_of_ancestors(gist)
            if mistake:
                self.passing.append(mistake)
                self.is_whole = False
            self.store.put("surveys", gist.path, data)
            if self.changes is None:
                self.knowledge.add(gist)
            else:
                after[gist.path] = gist
            for path, facts in read_packages.items():
                self.store.put("packages", path, facts)
        for path in gone | mute:
            self.store.put("surveys", path, None)
        watched = self.knowledge.foreign()
        shown = self.knowledge.exchange({path: _gist(known) for path, known in before.items()}, after)
        for path in set(watched).difference(self.knowledge.foreign()):
            self.store.put("packages", path, None)  # nobody looks whether it changes
        if self.changes is not None:
            shown |= {path for path in doubtful if before.get(path) != self.store.get("surveys", path)}
        return Kept(self.store, "surveys", self.paths, Survey), shown

    def _resting_on(self, changed: set[str], gone: set[str]) -> set[str]:
        """Name the files whose survey may have become another because of those that have changed or are gone, and of packages."""
        foreign = self._changed_packages()
        came = {path for path in foreign if self.packages.file(path) is None or self.store.get("packages", path) is None}
        for path in came:
            self.store.put("packages", path, None)
        same = {path for path, old in self.old_facts.items() if old is not None and looks_the_same(old, self.modules[path])}
        others = (changed - same) | gone | came | self._read_packages(sorted(foreign - came))
        return self.knowledge.to_survey(others, (changed - self.before.keys()) | gone | came)

    def _changed_packages(self) -> set[str]:
        """Name the files of packages that have changed, have come or are gone."""
        if self.changes is None or not self.changes.foreign:
            return set()
        changed = set(self.changes.foreign)
        return {path for path in self.knowledge.foreign() if not changed.isdisjoint(self.packages.places(path))}

    def _read_packages(self, paths: Sequence[str]) -> set[str]:
        """Read files of packages again; give those that others see otherwise than before."""

        def read(paths: Sequence[str]) -> list[tuple[str, bool, bytes]]:
            found = []
            for path in paths:
                before, now = self.store.get("packages", path), _OfPackage(self.packages[path], self.packages.is_own(path))
                is_same = before.is_own == now.is_own and looks_the_same(before.facts, now.facts)
                found.append((path, is_same, _packed(now)))
            return found

        showing = set()
        for path, is_same, data in self._spread(read, paths):
            self.store.put("packages", path, data)
            if not is_same:
                showing.add(path)
        return showing

    def _keep_findings(self, paths: Iterable[str], found: findings.Findings) -> None:
        if found.warning:
            self.passing.append(found.warning)
            self.is_whole = False
        for path in paths:
            said = found.by_path.get(path)
            self.store.put("findings", path, _packed(said) if said else None)

    # Pages

    def _press(self, book: Book, surveys: Kept[Survey]) -> Press:
        self.modules.most = surveys.most = _FEW_READ
        return Press(
            root=self.settings.root,
            book=book,
            writer=self.writer,
            modules=self.modules,
            surveys=surveys,
            findings=Kept(self.store, "findings", self.paths, lambda _: (), most=_FEW_READ),
            knowledge=self.knowledge,
            folders=self.folders,
            rows=Kept(self.store, "rows", self.paths, lambda path: pages.file_row(self.modules[path], surveys[path], 0)),
            keywords=Kept(
                self.store,
                "keywords",
                self.paths,
                lambda path: pages.first_lines(self.knowledge.links.with_tests(self.modules[path])),
                most=_FEW_READ,
            ),
            totals=Kept(self.store, "totals", self.folders),
            filed=self.suite.filed,
            is_exact=len(self.paths) <= pages.EXACT,
            unlisted=frozenset(path for path, brief in self.knowledge.briefs.items() if not brief.is_listed),
        )

    def _print(self, press: Press, changed: set[str], gone: set[str], shown: set[str]) -> None:
        """Make and write all pages on which something may show."""
        files = self._to_print(press, changed, gone, shown)
        with self.clock.step("render", len(files)) as count:
            outrun = []
            for made in count(self._spread(press.files, sorted(files))):
                self._take(made)
                outrun += [made.path] if made.warning else []
            for path in gone:
                self.suite.drop(path)
                self.store.put("rows", path, None)
                self.store.put("keywords", path, None)
                self.store.put("sought", path, None)
                self.offers.put(path, None)
            self._print_folders(press, files, gone)
            if self.offers.is_changed or self._is_spoiled(pages.INVENTORY):
                data = self.offers.inventory(press.folders, press.book.title)
                self._take(Made(pages.INVENTORY, press.put([Page(pages.INVENTORY, data)])))
        for path in outrun:  # only now, for the pages around them call all files by their titles
            self.knowledge.briefs.pop(path, None)

    def _to_print(self, press: Press, changed: set[str], gone: set[str], shown: set[str]) -> set[str]:
        """Name the files on whose pages something may show."""
        files = set(self.paths)
        if self.changes is None:
            return files
        if any(path.endswith("/__init__.py") for path in (changed | gone) - (self.before.keys() & self.knowledge.briefs.keys())):
            return files  # packages say how all are called that are imported
        if press.is_exact != (len(self.changes.manifest.sources.paths) <= pages.EXACT):
            return files
        found = changed | shown | self._retitled(press, changed | gone) | self._relisted(press, changed | gone)
        return files & (found | _owners((*self.changes.pages, *self.homes.touched()))[0])

    def _print_folders(self, press: Press, files: set[str], gone: set[str]) -> None:
        """Make and write the pages of the folders around files that show there otherwise than before, and of the whole suite."""
        folders = set(press.folders)
        if self.changes is not None:
            moved = {path for path in files if self._is_moved(path, press)} | gone
            folders &= {folder for path in moved for folder in _above(path)} | _owners((*self.changes.pages, *self.homes.touched()))[1]
        self.store.prepare("rows", [path for folder in folders for path in press.folders[folder].files])
        for path in pages.deepest_first(folders):
            self.store.put("totals", path, _packed(pages.totals_of(press.folders[path], press.rows, press.totals)))
        public = public_names(self.draft, self.settings.apis, self.packages.below) if self.settings.apis else ()
        self.unknown = tuple(_unknown_sentence(api) for api in unknown_modules(self.draft, self.settings.apis, self.packages.below))
        untested = unmentioned(public, self.suite.mentioned()) if public else ()
        press.suite = self.suite.links(untested)
        if press.suite != self.store.get("indexes", "suite links"):
            folders.add("")
            self.store.put("indexes", "suite links", _packed(press.suite))
        for made in self._spread_finely(press.folder_pages, pages.deepest_first(folders)[::-1]):  # the largest first
            self._take(made)
        for made in self.suite.print(press, untested, len(public), self._spread_finely, anew=self._is_spoiled("suite-")):
            self._take(made)

    def _is_spoiled(self, start: str) -> bool:
        """Tell whether a page at the root whose name starts so is not as the last run left it, or there was none."""
        return self.changes is None or any(page.startswith(start) for page in self.changes.pages)

    def _is_moved(self, path: str, press: Press) -> bool:
        """Tell whether the pages of the folders around a file may show it otherwise than before."""
        old, new = self.old_facts.get(path), press.modules[path]
        if old is None or old.keywords != new.keywords or pages.has_listing(old.source) != pages.has_listing(new.source):
            return True
        return self.old_rows.get(path) != press.rows[path]

    def _take(self, made: Made) -> None:
        for page in made.placed:
            self.fates[page.path] = page.fate
            if page.seen is not None:
                self.seen[page.path] = page.seen
        self.obsolete |= set(made.left)
        if made.row is not None:
            self.suite.take(made)
            if self.changes is not None:
                self.old_rows[made.path] = self.store.get("rows", made.path)
            self.store.put("rows", made.path, _packed(made.row))
            self.store.put("keywords", made.path, made.keywords)
            self.store.put("sought", made.path, made.sought)
            self.offers.put(made.path, made.entries)
        if made.warning:
            self.passing.append(made.warning)
            self.store.put("facts", made.path, None)
            self.store.put("sought", made.path, None)

    def _retitled(self, press: Press, paths: set[str]) -> set[str]:
        """Name the files that are called otherwise because of their neighbours."""
        found = set()
        for folder in {path.rpartition("/")[0] for path in paths} & press.folders.keys():
            old = pages.distinct({path: brief.title for path, brief in self.before.items() if path.rpartition("/")[0] == folder})
            found |= {path for path, title in press.titles(folder).items() if old.get(path) != title}
        return found

    def _relisted(self, press: Press, paths: set[str]) -> set[str]:
        """Name the files that refer to one whose page has a listing now, or has none any more."""
        found = set()
        for path in paths:
            old, new = self.before.get(path), self.knowledge.briefs.get(path)
            if (old and old.is_listed) != (new and new.is_listed):
                found |= self.knowledge.referring(path) | (targets(press.surveys[path]) if path in press.surveys else set())
        return found

    def _sweep(self, gone: set[str]) -> tuple[str, ...]:
        """Remove the pages of what is gone; give those that are removed."""
        # Pages that are not in the commit are those of sources that are not in it either.
        staying = staged.untracked(self.writer.out) if self.settings.staged else frozenset()
        if self.changes is None:
            fates = self.writer.sweep({*self.fates, *staying})
        else:
            fates = self.writer.remove(sorted(self._to_remove(gone) - staying))
        self.fates |= {path: fate for path, fate in fates.items() if fate is Fate.EDITED}
        return tuple(path for path, fate in fates.items() if fate is Fate.REMOVED)

    def _to_remove(self, gone: set[str]) -> set[str]:
        """Name the pages that are not made any more, as far as the last run knew them."""
        left = {folder for path in gone for folder in _above(path)} - self.folders.keys()
        self.obsolete |= {page for path in gone for page in pages.pages_of_file(path)}
        self.obsolete |= {page for path in left for page in pages.pages_of_folder(path)}
        self.obsolete |= self._spared() | self._appeared()
        for path in left:
            self.store.put("totals", path, None)
        return self.obsolete - self.fates.keys()

    def _appeared(self) -> set[str]:
        """Name what may be pages and is not as the last run left it: what of it is still to be there, this run has made."""
        return set() if self.changes is None else set(self.changes.pages) - {homes.ORPHANS}

    def _spared(self) -> set[str]:
        """Name the pages of what was gone before, which are there because somebody has edited them."""
        kept = () if self.changes is None else self.changes.manifest.report.kept
        files = frozenset(self.paths if kept else ())
        return {page for page in kept for kind, path in [pages.owner(page)] if path not in (files if kind == "file" else self.folders)}

    # Notes

    def _settle_notes(self, press: Press, changed: set[str]) -> None:
        """Find the notes on all pages, and where they belong, before any page is written."""
        left = self.writer.find(None if self.changes is None else sorted(self._may_be_noted(self.changes)))
        found, self.conflicts = left.notes, left.conflicts
        data = self.orphans_before = self.orphans_after = self.writer.read(homes.ORPHANS)
        where = self.writer.out / homes.ORPHANS
        if data is not None and (conflict := conflicts.conflict_of(data, where, by_hand=True)) is not None:
            right = "keep what both sides say, without the markers"
            raise PageError("this page has unresolved conflicts of Git", where=where, line=conflict.line, right=right)
        orphans = [] if data is None else homes.orphans_of(data, self.writer.out)
        if found or orphans:
            tree = homes.Tree(
                root=self.settings.root,
                files=frozenset(self.paths),
                folders=press.folders,
                sha256=lambda path: self.knowledge.briefs[path].sha256,
                tests=lambda path: [test.id for test in press.surveys[path].tests],
                changed=changed,
            )
            self.homes = homes.settle(found, orphans, tree, self.writer)
            if not self.writer.dry:
                self._write_orphans(self.homes.under_way())
        notes = {page: tuple(notes) for page, notes in self.homes.by_page.items()}
        places = [(page, note) for page, held in notes.items() for note in held] + [(note.page, note) for note in found]
        self.doubtful = tuple(sorted({page for page, note in places if conflicts.shows_conflict(note.text)}))
        untouched = conflicts.untouched(self.conflicts, self.writer.out)
        leaving = self.homes.leaving(found)
        self.writer = press.writer = replace(self.writer, notes=notes, known=frozenset(found), leaving=leaving, untouched=untouched)

    def _may_be_noted(self, changes: Changes) -> set[str]:
        """Name the pages that held notes before, that have changed since, or that the last run did not know."""
        new = set(self.paths).difference(changes.manifest.sources.paths)
        came = {page for path in new for page in pages.pages_of_file(path)}
        came |= {page for folder in {above for path in new for above in _above(path)} for page in pages.pages_of_folder(folder)}
        came.update(self.writer.pages_on_top())  # those about the whole suite, which come and go with what the sources hold
        came.difference_update(changes.manifest.pages.paths)
        return {*(self.store.get("indexes", "noted") or ()), *changes.pages, *came} - {homes.ORPHANS}

    def _keep_orphans(self, gone: set[str]) -> list[Note]:
        """Keep the notes that belong nowhere, or on a page that could not be written, and give them.

        Those that have moved stay beside them until the pages that they left are gone: a run may be cut short.
        """
        doomed = self.homes.by_page.keys() - self.fates.keys()
        if self.changes is not None:
            doomed &= self._to_remove(gone)
        lost = [note for note in self.homes.homeless if not self._stays(note, note.page)]
        for page, notes in self.homes.by_page.items():
            lost += [note for note in notes if page in doomed or not (self._is_made(page, note) or self._stays(note, page))]
        if self.homes.orphans or self.homes.homeless or lost or self.orphans_after != self.orphans_before:
            self._write_orphans([*lost, *self._moving()])
        self.writer = replace(self.writer, leaving=self.writer.leaving.union(lost))
        self.noted = tuple(sorted(self.homes.by_page.keys() - doomed))
        return lost

    def _tell_orphans(self, lost: Sequence[Note]) -> None:
        """Leave no others on their page, and tell of them; what stays on a page that is left as it is, the next run is to look at."""
        if self._moving():
            self._write_orphans(lost)
        held = {note.page for note in self.writer.known if self._is_left(note.page)}
        self.noted = tuple(sorted(held.union(self.noted)))
        self.orphans = tuple(self._told_of_orphans(lost))

    def _moving(self) -> list[Note]:
        """Give the notes that go from one page to another, where that is done."""
        return [] if self.writer.dry else self.homes.moving()

    def _is_made(self, page: str, note: Note) -> bool:
        """Tell whether a page now holds a note that belongs on it."""
        fate = self.fates.get(page)
        is_there = (
            fate is Fate.UNCHANGED or (fate is not None and fate.is_written) or (fate is Fate.EDITED and self.writer.takes_notes(page))
        )
        return is_there or (fate is None and note.page == page and note not in self.homes.orphans)

    def _stays(self, note: Note, page: str) -> bool:
        """Tell whether a note stays where it was found, because that page is left as it is."""
        return note not in self.homes.orphans and note.page == page and self._is_left(page)

    def _is_left(self, page: str) -> bool:
        """Tell whether a page is left as it is; where this run does not look at it, whether the last one did so."""
        if page in self.fates or self.changes is None:
            return self.fates.get(page) in (Fate.EDITED, Fate.KEPT)
        return page in self.changes.manifest.report.kept and page not in self.obsolete

    def _write_orphans(self, notes: Sequence[Note]) -> None:
        self.orphans_after = homes.with_orphans(self.orphans_before, list(dict.fromkeys(notes)))
        self.writer.put_by_hand(homes.ORPHANS, self.orphans_after)

    def _fate_of_orphans(self) -> tuple[set[str], set[str]]:
        """Give the page of notes that belong nowhere among the written pages, or among the removed ones, if it has changed."""
        if self.orphans_after == self.orphans_before:
            return set(), set()
        return (set(), {homes.ORPHANS}) if self.orphans_after is None else ({homes.ORPHANS}, set())

    def _told_of_orphans(self, lost: Sequence[Note]) -> Iterator[str]:
        if self.writer.dry:
            for note in lost:
                if note not in self.homes.orphans:
                    what = f"this note is about {homes.describe(note)}"
                    yield f"{self.settings.place_of(note.page)}:{note.line}: {what}; `rankbook gen` moves it to {homes.ORPHANS}"
        data = self.orphans_before if self.writer.dry else self.orphans_after
        for note in homes.orphans_of(data or b""):
            if note.left:  # a run that was cut short was moving it
                continue
            place = f"{self.settings.place_of(homes.ORPHANS)}:{note.line}"
            yield f"{place}: this note is about {homes.describe(note)}; move it, or delete it"

    # What is left for the next run

    def _told(self, removed: tuple[str, ...]) -> Report:
        # Of what is obsolete nothing of ours is there any more, or it has a fate.
        lost = {*removed, *self.obsolete, *self._spared()} - self.fates.keys()
        earlier = set() if self.changes is None else set(self.changes.manifest.pages.paths) - lost - {homes.ORPHANS}
        kept_earlier = set() if self.changes is None else set(self.changes.manifest.report.kept) - lost
        self.pages = tuple(sorted(earlier | self.fates.keys()))
        left = {path for path, fate in self.fates.items() if fate in (Fate.KEPT, Fate.EDITED)}
        kept = tuple(sorted((kept_earlier - self.fates.keys()) | left))
        self.is_whole &= not any(self.writer.is_empty(path) for path in left)  # no look at times tells when these can be written
        written = {path for path, fate in self.fates.items() if fate.is_written}
        written_orphans, removed_orphans = self._fate_of_orphans()
        self.passing += self._told_of_merges()
        unstaged = self._unstaged({*self.pages, *removed, *written_orphans, *removed_orphans, homes.ORPHANS})
        return Report(
            sources=len(self.paths),
            pages=pages_among(self.pages),
            written=tuple(sorted(written | written_orphans)),
            tidied=tuple(sorted(path for path, fate in self.fates.items() if fate is Fate.TIDIED)),
            unchanged=pages_among(self.pages) - pages_among(written) - pages_among(kept),
            removed=tuple(sorted({*removed} | removed_orphans)),
            kept=kept,
            unstaged=tuple(sorted(unstaged)),
            warnings=(
                *self.warnings,
                *(said for _, said in sorted(self.cut_short.items())),
                *self.unknown,
                *self.passing,
                *(self._kept_sentence(path) for path in kept),
                *self._told_of_markers(),
                *self.orphans,
            ),
            unparsed=tuple(f"{path}:{brief.error}" for path, brief in sorted(self.knowledge.briefs.items()) if brief.error),
            seconds=self.clock.seconds,
        )

    def _unstaged(self, pages_of_run: set[str]) -> frozenset[str]:
        """Name the pages that stand otherwise than in the commit, or are made from what does, where that is asked for.

        Args:
            pages_of_run: those that this run knows; of others only the commit may have kept a page that is removed.
        """
        if not self.settings.staged:
            return frozenset()
        sources = sorted(staged.changed(self.settings.root).intersection(self.paths))
        for path in sources:
            self.passing.append(f"{path}: not all of its changes are staged; its pages are made from the file as it stands on disk")
        made = {page for path in sources for page in pages_of_file(path)}
        changed = staged.changed(self.writer.out)
        others = [page for page in sorted(changed - pages_of_run) if self.writer.read(page) is None]
        kept = {page for page, data in staged.contents(self.writer.out, others).items() if pages.is_generated(data)}
        return (staged.untracked(self.writer.out) | changed | made) & pages_of_run | kept

    def _told_of_markers(self) -> Iterator[str]:
        """Tell of the notes that show markers of Git, at the places where they stand now."""
        notes = self.writer.find(self.doubtful).notes
        orphans = homes.orphans_of((self.orphans_before if self.writer.dry else self.orphans_after) or b"")
        for note in (*notes, *(replace(note, page=homes.ORPHANS) for note in orphans)):
            if conflicts.shows_conflict(note.text):
                what = "this note shows conflict markers of Git; where they are not meant, choose a side"
                yield f"{self.settings.place_of(note.page)}:{note.line}: {what}"

    def _told_of_merges(self) -> Iterator[str]:
        merged = sorted(path for path, fate in self.fates.items() if fate is Fate.MERGED and not self.writer.dry)
        noted = [path for path in merged if path in self.conflicts and self.homes.by_page.get(path)]
        for path in noted:
            what = "it had unresolved conflicts of Git, and is written anew with the notes of both sides; look them through"
            yield f"{self.settings.place_of(path)}:{self.conflicts[path].line}: {what}"
        if others := len(merged) - len(noted):
            verb = "is" if others == 1 else "are"
            yield f"{plural(others, 'page')} without notes had unresolved conflicts of Git, and {verb} written anew"

    def _kept_sentence(self, path: str) -> str:
        data, page = self.writer.read(path), self.settings.place_of(path)
        conflict = None if data is None else self.writer.conflict_on(path, data)
        if self.writer.is_free(path):
            return f"{page} is not written yet: pages that are gone now stood in its place; run `rankbook gen` again"
        if data is None or not pages.is_ours(data, conflict):
            return f"{page} is kept: {self.writer.what_stands(path)}, and a page is to stand in its place"
        if conflict is None:
            return f"{page} is left as it is: somebody has edited it; see `rankbook check`, or write it anew by `rankbook gen --force`"
        way = "see `rankbook check`, or write it anew, with the notes of both sides, by `rankbook gen --force`"
        return f"{page} is left as it is: it has unresolved conflicts of Git from line {conflict.line} on; {way}"

    def keep(self, started: int, report: Report) -> None:
        """Leave for the next run what this one found."""
        generation = secrets.token_hex(8)
        self.suite.keep()
        self.knowledge.keep(self.store)
        self.store.put("indexes", "warnings", _packed(self.warnings))
        self.store.put("indexes", "noted", _packed(self.noted))
        self.store.put("indexes", "cut short", _packed(self.cut_short))
        if not (self.is_whole and self.store.commit(generation)):
            return
        root, out = os.fspath(self.settings.root), os.fspath(self.writer.out)
        old = self.changes.manifest if self.changes is not None else None
        foreign = [place for path in self.knowledge.foreign() for place in self.packages.places(path)]
        foreign += self._looked_up
        known = set() if old is None else set(old.sources.paths) - set(self.changes.sources if self.changes else ())
        looked = [path for path in self.paths if path not in known]
        freshness.save(
            self.settings,
            Manifest(
                world=self.store.world,
                generation=generation,
                sources=freshness.merged(None if old is None else old.sources, self.paths, freshness.look(root, looked, started)),
                surroundings=old.surroundings
                if old is not None and self.surroundings is None
                else freshness.look(root, self.surroundings or (), started),
                foreign=freshness.look(root, foreign, started),
                pages=freshness.merged(
                    None if old is None else old.pages,
                    (*self.pages, homes.ORPHANS),
                    freshness.look(out, [*sorted(self.fates), homes.ORPHANS], known=self.seen),
                ),
                folders=freshness.look(out, freshness.folders_of(self.pages)),
                report=replace(
                    report,
                    written=(),
                    tidied=(),
                    removed=(),
                    unstaged=(),
                    unchanged=report.pages - pages_among(report.kept),
                    warnings=self._lasting(report),
                ),
            ),
        )

    @property
    def _looked_up(self) -> list[str]:
        """Where the modules in the setting `apis` lie, or may come to lie, that no source leads to."""
        listed = self.packages.listed
        if not listed:
            return []
        modules = (place for path in self.packages for place in self.packages.places(path))
        return sorted({*listed, *modules})

    def _lasting(self, report: Report) -> tuple[str, ...]:
        """Give the warnings that hold for as long as nothing changes."""
        return tuple(warning for warning in report.warnings if warning not in self.passing)

    def _spread(
        self, function: Callable[[Sequence[_Item]], list[_Result]], items: Sequence[_Item], meanwhile: Callable[[], None] | None = None
    ) -> Iterator[_Result]:
        """Apply a function to paths, in several processes when they are many."""
        chunk = min(_MOST_AT_ONCE, len(items) // (self.jobs * _TURNS) + 1)
        for _, results in spread(function, items, self.jobs if len(items) > _FEW else 1, chunk, meanwhile):
            yield from results

    def _spread_finely(self, function: Callable[[Sequence[_Item]], list[_Result]], items: Sequence[_Item]) -> Iterator[_Result]:
        """Apply a function to items each of which sums up many files, in several processes when the tree is large and they are not few."""
        for _, results in spread(function, items, self.jobs if len(self.paths) > _FEW and len(items) > _FEW_SUMS else 1, 1):
            yield from results


class _OfPackage(Struct, frozen=True):
    """What the tree sees of a file of a package."""

    facts: Module
    is_own: bool
    """Whether the project itself holds it."""


class _KeptPackages(Mapping[str, Module]):
    """Files of packages whose facts an earlier run may have kept.

    Args:
        store: where they lie.
        packages: reads the others.
    """

    def __init__(self, store: Store, packages: Packages) -> None:
        self._store = store
        self._packages = packages
        self._known: dict[str, Module] = {}
        self._read: dict[str, bytes] = {}

    def taken(self) -> dict[str, bytes]:
        """Give the facts that were read since this was asked last, packed."""
        read, self._read = self._read, {}
        return read

    def __contains__(self, path: object) -> bool:
        return path in self._packages

    def __getitem__(self, path: str) -> Module:
        if path not in self._known:
            kept = self._store.get("packages", path)
            if kept is None:
                kept = _OfPackage(self._packages[path], self._packages.is_own(path))
                self._read[path] = _packed(kept)
            self._known[path] = kept.facts
        return self._known[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._packages)

    def __len__(self) -> int:
        return len(self._packages)


def _surveyed_alone(draft: Draft, path: str) -> tuple[Survey, str]:
    """Read a file together with those that it names; where rankbook itself fails, that costs the file what it says, and a warning."""
    try:
        return survey(draft, path), ""
    except (RankbookError, StoreError):
        raise
    except Exception as error:  # noqa: BLE001 - a mistake of ours can be of any kind, and no file takes the others along
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        what = f"rankbook itself failed to tell its tests and what they need ({type(error).__name__}: {error}, {where})"
        return Survey(path), f"{path}: {what}; its page goes without them: report the file as a bug"


def _brief(module: Module) -> Brief:
    source = module.source
    is_python = source.language == "python"
    error = "" if module.error is None else f"{f'{module.error_line}: ' if module.error_line else ' '}{module.error}"
    return Brief(source.sha256, pages.title(module), is_python, is_python or bool(module.imports), pages.has_listing(source), error)


def _gist(made: Survey) -> Survey:
    """Take from a survey what is known of the whole tree at once."""
    tests = {(test.path, test.line): Test("", "", test.line, test.path) for test in made.tests}
    used = tuple(Use(use.name, use.lines[:1]) for use in made.uses if use.is_called and use.lines)
    return replace(made, tests=tuple(tests.values()), uses=used, requirements=(), unresolved=())


def _packed(value: object) -> bytes:
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def _above(path: str) -> Iterator[str]:
    """Name the folders that hold a file, the root last."""
    while path:
        path = path.rpartition("/")[0]
        yield path


def _owners(spoiled: Iterable[str]) -> tuple[set[str], set[str]]:
    """Name the files and the folders that pages are about."""
    files: set[str] = set()
    folders: set[str] = set()
    for page in spoiled:
        kind, source = pages.owner(page)
        (files if kind == "file" else folders).add(source)
    return files, folders


def _told_of_ancestors(survey: Survey) -> dict[str, str]:
    """Give the sentence about a file's classes that have too many, by its path; none for other files."""
    if not survey.cut_short:
        return {}
    (name, line), *others = survey.cut_short
    who = f"the class {name} has" if not others else f"the class {name} and {plural(len(others), 'other')} of the file have"
    what = "more ancestors than are looked at; what is inherited from the farthest is left out"
    return {survey.path: f"{survey.path}:{line}: {who} {what}"}


def _taken(folder: str) -> str:
    what = f"{folder} is left out: this folder of sources is called like a page, or a picture, that is to stand in its place"
    return f"{what}; rename it, or leave it out by the setting exclude"


def _doubled(other: str, out: str) -> str:
    what = f"{other} holds pages of the same sources, which are published and executed beside those in {out}"
    return f"{what}; delete it, or put it in the place of {out} by `git mv`, so that the notes on its pages go along"


def _unknown_sentence(api: str) -> str:
    return f"the setting apis names '{api}', of which no file is known; add its source, or the folder of its package to package-path"


def _silent(_step: str, _done: int, _total: int) -> None:
    """Show nothing."""


class _Clock(Struct):
    """Takes the time of each step, and tells how far it is."""

    progress: Progress
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str, total: int = 1) -> Iterator[Callable[[Iterable[_Item]], Iterator[_Item]]]:
        """Time a step; what it gives counts the items that pass."""
        done = 0

        def count(items: Iterable[_Item]) -> Iterator[_Item]:
            nonlocal done
            for item in items:
                done += 1
                self.progress(name, done, total)
                yield item

        start = time.perf_counter()
        self.progress(name, 0, total)
        yield count
        self.seconds[name] = time.perf_counter() - start
        self.progress(name, total, total)
