"""Proof on the page: what the site shows of the runs of each page's tests and listings, and what folders and the front page add up."""

from __future__ import annotations

import html
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from rankbook.front_matter import Stamp
from rankbook.listing import SAME_RUN, Outcome, Run
from rankbook.markers import ENGLISH
from rankbook.needs import Needs
from rankbook.page_names import holder
from rankbook.site import expected
from rankbook.site.addresses import Addresses
from rankbook.site.besides import Besides
from rankbook.site.charts import in_words
from rankbook.site.fences import Fence, link_to
from rankbook.site.history import Recorded, history, number_of_runs
from rankbook.site.outcomes import Group, Shown, badge, circumstances, circumstances_of, in_short_of, never_run, shown, why_in_short
from rankbook.site.overviews import Overviews, Spot
from rankbook.site.rollup import NAMED, Broken, Flaky, Owed, Place, Slow, Summary, Ways, head, label, rollup, row
from rankbook.site.runs_table import anchor, last_run
from rankbook.site.standing import Standing
from rankbook.site.whereabouts import in_source
from rankbook.terminal import harmless, word

COMMAND = "pytest --doctest-glob='*.md' {}"
"""What runs the listings of a folder."""
_OF_FOLDERS = frozenset({"index", "folder"})
_INSTANT, _QUICK = 0.05, 1.0
"""Seconds below which a test, and a listing without tests, whose process takes some time to begin, is none of the slowest."""


Row = tuple[str | None, str]
"""A row of the table of tests: the class, empty for functions and None where it is not known, and the name that the row has."""


class PageProof(Struct, frozen=True):
    """What one page shows, as HTML."""

    badge: str = ""
    """Beside its title."""
    tests: Mapping[Row, str] = field(default_factory=dict)
    """Behind the name of a test in the table of tests, by its class and that name."""
    listings: Mapping[str, str] = field(default_factory=dict)
    """Before a listing that is not its source, by the listing's name."""
    last_run: str = ""
    """In the place of the marker of the last runs."""
    rollup: str = ""
    """In the place of the marker of the proof."""
    rows: Mapping[str, str] = field(default_factory=dict)
    """Behind a link to a page in a table of files or folders, by that page's path."""
    folder: str = ""
    """The page's own, below the root, for a command that names the page; empty where a shell does not take it as it is."""


class Entry(NamedTuple):
    """A test or a listing of a page, as it is shown."""

    one: Shown
    name: str
    line: int
    """Of the source; 0 when it is not known, because only an older version was run."""
    is_test: bool
    is_doctest: bool = False
    """Whether it is the examples of a docstring, which no page lists among its tests before they have run."""
    is_command: bool = False
    """Whether it is how a generated page says that its source is run."""
    listing: str = ""
    """The listing that it is, or is a test of, where that has an anchor of its own."""

    @property
    def link(self) -> str:
        """Where it stands on its page, as the end of an address; empty when that is not known."""
        return link_to(self.listing) if self.listing else f"#L{self.line}" if self.line else ""


_Placed = tuple[int, Entry]
"""An entry of a page, and its place among them."""


class _View(Struct, frozen=True):
    """What is known of one page."""

    entries: tuple[Entry, ...]
    never: Mapping[str, expected.Want]
    """Tests that were never run, with what they need."""
    wanted: Needs = field(default_factory=dict)
    """All tests that the page says it has, with what they need."""


class Proof:
    """What all pages show.

    Args:
        standing: how every test and listing stands.
        stamps: what each generated page says of itself, by the page's path below the folder of all pages.
        docs: that folder, below the root; empty when it is the root.
        addresses: where the pages stand on the site.
    """

    def __init__(self, standing: Standing, stamps: Mapping[str, Stamp], docs: str, addresses: Addresses) -> None:
        self._standing = standing
        self._stamps = stamps
        self._prefix = f"{docs.strip('/')}/" if docs.strip("/.") else ""
        self._addresses = addresses
        self._sources: dict[str, dict[str, Recorded]] = defaultdict(dict)
        self._pages: dict[str, dict[str, Recorded]] = defaultdict(dict)
        gone = frozenset(chain.from_iterable(each.nodes for each in standing.gone.values()))
        for node, found in standing.items.items():
            run = found.newest
            if node in gone and self._is_gone(found):
                continue
            names = self._sources[run.source] if run.source else self._pages[run.page]
            known = names.get(found.name)
            if known is None or known.newest.when < run.when:
                names[found.name] = found

    @classmethod
    def of(
        cls,
        standing: Standing,
        stamps: Mapping[str, Stamp],
        docs: str = "docs",
        addresses: Addresses | None = None,
    ) -> Proof:
        """Put together what all pages show.

        Args:
            standing: how every test and listing stands.
            stamps: what each generated page says of itself, by the page's path below the folder of all pages.
            docs: that folder, below the root.
            addresses: where the pages stand on the site.
        """
        return cls(standing, stamps, docs, addresses or Addresses())

    def digest(self, path: str) -> str:
        """Give a text that changes when what a page shows changes; empty for a page that shows nothing of any run.

        Args:
            path: of the page, below the folder of all pages.
        """
        if not self._standing.items:
            return ""
        stamp = self._stamps.get(path)
        if stamp is not None and stamp.page in _OF_FOLDERS:
            folder = posixpath.dirname(path)
            if not self._totals[folder].is_run:
                return f"never {sum(self._totals[folder].tests.values())}" + self._digest_of_rows(folder)
            return _hash([self._facts_of(folder), self._digest_of_rows(folder)])
        known = self._known(path, stamp)
        if stamp is None:
            present = self._standing.listings.get(self._prefix + path, {})
            return _hash([*map(self._facts, known), *(f"{name} {present[name]}" for name in sorted(present)), self._facts_of("")])
        if not known:
            return "never" if stamp.page == "file" else ""
        return _hash(map(self._facts, known))

    def _facts(self, found: Recorded) -> str:
        run = found.newest
        said = "\0".join((run.node_id, run.when, run.reason, run.machine, run.engine, run.torch, *found.words))
        changed = "\0".join(map(self._besides.changed, _runs(found)))
        return f"{said}\0{changed}" + "".join(f"\0{where}{data.hex()}" for where, data in found.beats.items())

    def _facts_of(self, folder: str) -> str:
        """Write down what a folder adds up, and where the rows of that lead."""
        summary, overviews = self._totals[folder], self._overviews
        ways = [(overviews.owner, summary.owners), (overviews.hardware, summary.hardware)]
        spots = [(name, way(name)) for way, names in ways for name in sorted(names)]
        return f"{summary.facts()}\0{spots}{overviews.files}"

    def _digest_of_rows(self, folder: str) -> str:
        return "".join(f"{page}{html}" for page, html in self._rows(folder).items())

    def page(
        self,
        path: str,
        fences: Collection[str] | None = None,
        tests: Sequence[Row] = (),
        commands: Mapping[str, str] | None = None,
        names: Collection[str] = (),
    ) -> PageProof | None:
        """Give what a page shows; None for a page without anything that is run.

        Args:
            path: of the page, below the folder of all pages.
            fences: hashes of the texts of its other listings, as they stand between their fences; None when they are not known.
            tests: rows of its table of tests.
            commands: of a generated page: hashes of the commands that it shows, by their names.
            names: of a page made by a person: the listings that have an anchor on it.
        """
        stamp = self._stamps.get(path)
        if stamp is not None and stamp.page in _OF_FOLDERS:
            folder = posixpath.dirname(path)
            title = head(self._totals[folder]) if self._standing.items else ""
            return PageProof(title, rollup=self._rollup(folder, path), rows=self._rows(folder))
        if stamp is not None and stamp.page != "file":
            return None
        commands = {} if self._prefix + path in self._standing.inside else commands or {}
        view = self._view(path, stamp, fences, commands, names)
        table = harmless(last_run(view.entries, view.never, COMMAND.format(word(self._prefix or "./"))))
        if stamp is None:
            return PageProof(last_run=_unsearched(table), rollup=self.front(path))
        own = f"{self._prefix}{posixpath.dirname(path)}".rstrip("/")
        folder = f"{own}/" if own and word(own) == own else ""
        if not self._standing.items:
            return PageProof(last_run=table, folder=folder)
        summary = self._summary(path, view)
        about = _about(view.entries, summary)
        where, href = (_where(view.entries, about[1]), f"#{anchor(about[0])}") if about else _why_not(view.entries)
        listings = {name: _of_listing(_placed(view.entries, name), is_tabled=True) for name in commands}
        return PageProof(head(summary, where, href), _badges(view, tests), listings, last_run=table, folder=folder)

    def fences(self, path: str) -> Sequence[Fence]:
        """Give the fences of a page made by a person, as far as anything was ever run.

        Args:
            path: of the page, below the folder of all pages.
        """
        return self._standing.fences.get(self._prefix + path, ()) if path not in self._stamps else ()

    def listings(self, path: str, *, is_tabled: bool) -> dict[str, str]:
        """Give what stands before each listing of a page made by a person, by the listing's name.

        Args:
            path: of the page, below the folder of all pages.
            is_tabled: whether the page has the table of its last runs, which the outcomes lead to then.
        """
        names = self._named(self._prefix + path) if path not in self._stamps else []
        entries = self._by_hand(path, names) if names else ()
        return {name: _of_listing(_placed(entries, name), is_tabled=is_tabled) for name in names}

    def front(self, path: str = "index.md") -> str:
        """Give the charts of the whole book, for a page made by a person.

        Args:
            path: of that page.
        """
        return _unsearched(self._rollup("", path))

    # What is known of a page

    @cached_property
    def _owners(self) -> Mapping[str, tuple[str, ...]]:
        return {path: stamp.owners for path, stamp in self._stamps.items() if stamp.owners}

    def _known(self, path: str, stamp: Stamp | None) -> list[Recorded]:
        if stamp is None:
            return list(self._pages.get(self._prefix + path, {}).values())
        if stamp.page != "file":
            return []
        return [*self._sources.get(stamp.source, {}).values(), *self._pages.get(self._prefix + path, {}).values()]

    def _view(
        self,
        path: str,
        stamp: Stamp | None,
        fences: Collection[str] | None = None,
        commands: Mapping[str, str] | None = None,
        names: Collection[str] = (),
    ) -> _View:
        """Put together what is known of a page, of which `page` is told these."""
        if stamp is None:
            return _View(self._by_hand(path, names), {})
        wanted = expected.tests(stamp.needs)
        known = _without_stand_ins(_without_whole(self._sources.get(stamp.source, {})), wanted)
        current = (stamp.sha256 or "",)
        is_current = [any(run.listing in current for run in _runs(found)) for found in known]
        has_current = any(is_current)
        entries = [
            entry
            for found, current_too in zip(known, is_current, strict=True)
            for entry in [self._of_source(found, current, wanted)]
            if current_too or expected.is_expected(wanted, found.name) or not (has_current or (wanted and entry.is_test))
        ]
        has_lost = bool(entries) and not any(entry.one.group.ran or self._is_present(entry.one.run, current) for entry in entries)
        others = list(self._beside(path, () if has_lost else fences, fences, commands or {}))
        failed = (entry.one.found for entry in entries if entry.one.run.outcome.is_failure)
        told = {run.reason for found in failed for run in _runs(found)} - {""}
        others = [_without_repetition(entry, told) for entry in others] if told else others
        seen = {entry.name for entry in entries if entry.is_test}
        return _View(tuple(sorted((*entries, *others), key=_place)), expected.missing(wanted, seen), wanted)

    def _of_source(self, found: Recorded, current: Collection[str], wanted: Needs) -> Entry:
        entry = self._entry(found, current)
        is_doctest = entry.is_test and _is_doctest(found.name, found.newest.source, wanted)
        return entry._replace(is_test=False, is_doctest=True) if is_doctest else entry

    def _is_present(self, run: Run, current: Collection[str]) -> bool:
        """Tell whether a run was of a present text, beside the present files."""
        return run.listing in current and not self._besides.changed(run)

    def _beside(
        self, path: str, of_source: Collection[str] | None, fences: Collection[str] | None, commands: Mapping[str, str]
    ) -> Iterator[Entry]:
        """Yield the listings of a generated page that are not its source: its command, and those inside of a Markdown source.

        Args:
            path: of the page.
            of_source: what the command may have been that was the run of the source.
            fences: what it may have been otherwise.
            commands: what it is, as far as it has an anchor.
        """
        inside = self._standing.inside.get(self._prefix + path, {})
        for found in self._pages.get(self._prefix + path, {}).values():
            if found.name in inside:
                yield self._entry(found, (inside[found.name],))._replace(is_command=False)
            elif not inside:
                current = of_source if found.newest.reason.startswith(SAME_RUN) else fences
                current = {commands[found.name]}.intersection(current or ()) if found.name in commands else current
                yield self._entry(found, current)._replace(is_command=True, listing=holder(found.name, commands))

    def _by_hand(self, path: str, names: Collection[str]) -> tuple[Entry, ...]:
        """Give the listings of a page made by a person in their order, as far as the page still has them, and those that were never run."""
        page = self._prefix + path
        present = self._standing.listings.get(page)
        known = self._pages.get(page, {}).values()
        if present is None:
            return tuple(self._entry(found, None) for found in known)
        own: dict[str, list[Recorded]] = {name: [] for name in present}
        for found in known:
            if listing := holder(found.name, present):
                own[listing].append(found)
        entries: dict[str, list[Entry]] = {}
        for name, each in own.items():
            listing = name if name in names else ""
            kept = (self._entry(found, (present[name],)) for found in _without_gone(each, name, present[name]))
            entries[name] = [entry._replace(line=0, listing=listing) for entry in sorted(kept, key=_place)]
        for name in self._named(page) if self._standing.items else ():
            entries[name] = entries[name] or [Entry(never_run(page, name), name, 0, is_test=False, listing=name if name in names else "")]
        return tuple(chain.from_iterable(entries.values()))

    def _is_gone(self, found: Recorded) -> bool:
        """Tell of a test of a source that no hardware finds any more whether its page, too, has it no more.

        One that the page names is there; of another text than was looked through, it may be.
        """
        run = found.newest
        stamp = self._stamps.get(run.page.removeprefix(self._prefix))
        if stamp is None or stamp.source != run.source or stamp.sha256 not in self._standing.gone[run.page].listings:
            return False
        return found.name not in expected.tests(stamp.needs)

    def _named(self, page: str) -> list[str]:
        """Name the listings of a page made by a person that the site shows as such."""
        return [fence.name for fence in self._standing.fences.get(page, ()) if fence.name and fence.key]

    def _entry(self, found: Recorded, current: Collection[str] | None) -> Entry:
        one = shown(found, current, self._besides.changed)
        run, newest = in_source(one.run), found.newest
        if run is not one.run:
            one = replace(one, run=run, listed=run.source if current is not None and run.listing in current else "")
        is_present = current is not None and newest.listing in current
        is_test = newest.kind == "test" and bool(newest.source) and found.name != posixpath.basename(newest.source)
        return Entry(one, found.name, newest.case.get("line", 0) if is_present else 0, is_test)

    @cached_property
    def _besides(self) -> Besides:
        """Each file as the book has it: on its page, or beside the book."""
        shown = {stamp.source: stamp.sha256 for stamp in self._stamps.values() if stamp.page == "file" and stamp.sha256}
        return Besides({**self._standing.files, **shown})

    # What folders add up

    @cached_property
    def _totals(self) -> Mapping[str, Summary]:
        """What is known of each folder of pages, with all below it; of the whole book under the empty name."""
        totals: dict[str, Summary] = defaultdict(Summary)
        for path, stamp in self._stamps.items():
            folder = posixpath.dirname(path)
            if stamp.page == "file":
                totals[folder].add(self._summaries[path])
            elif stamp.page in _OF_FOLDERS:
                totals[folder].add(_NOTHING)
        for folder in sorted(_with_parents(totals), key=lambda name: -name.count("/") if name else 1):
            if folder:
                totals[posixpath.dirname(folder)].add(totals[folder])
        for page in self._standing.listings:
            path = page.removeprefix(self._prefix)
            totals[""].add(self._summary(path, self._view(path, None, names=self._named(page))))
        return totals

    @cached_property
    def _summaries(self) -> Mapping[str, Summary]:
        """What is known of the source of each page."""
        return {path: self._file_summary(path, stamp) for path, stamp in self._stamps.items() if stamp.page == "file"}

    def _file_summary(self, path: str, stamp: Stamp) -> Summary:
        if stamp.source in self._sources or self._prefix + path in self._standing.inside:
            return self._summary(path, self._view(path, stamp))
        return self._never(path, stamp.needs)

    def _never(self, path: str, needs: str) -> Summary:
        """Sum up a page of which nothing was run."""
        if not needs:
            return _NOTHING
        found = Summary()
        owing: dict[expected.Want, list[tuple[str, str]]] = defaultdict(list)
        for want, number, names in expected.counted(needs, NAMED):
            found.debt[want, Group.NEVER] += number
            owing[want] += [(name, "") for name in names]
        found.owed = self._owed(path, owing)
        found.tests[Group.NEVER] = sum(found.debt.values())
        for owner in self._owners.get(path, ()):
            found.owners[owner].update(found.tests)
        return found

    def _summary(self, path: str, view: _View) -> Summary:
        found = Summary()
        owing: dict[expected.Want, list[tuple[str, str]]] = defaultdict(list)
        for entry in view.entries:
            if not entry.is_command and entry.one.group is not Group.NEVER:  # a command is no test of anybody; what it runs is
                want = self._count(found, path, entry, view.wanted)
                if want is not None:
                    owing[want].append((entry.name, entry.link))
        stood_for = expected.stood_for(view.wanted, [entry.name for entry in view.entries if entry.is_test])
        found.stand_ins, found.cases = len(stood_for), sum(stood_for.values())
        found.tests.update({Group.NEVER: len(view.never)} if view.never else {})
        for name, want in view.never.items():
            found.debt[want, Group.NEVER] += 1
            owing[want].append((name, ""))
        found.owed = self._owed(path, owing)
        for owner in self._owners.get(path, ()):
            found.owners[owner].update(found.tests)
        return found

    def _owed(self, path: str, owing: Mapping[expected.Want, Sequence[tuple[str, str]]]) -> dict[expected.Want, tuple[Owed, ...]]:
        """Put together which tests of a page are in debt, by what they need."""
        source = self._stamps[path].source if owing else ""
        return {want: (Owed(path, source, tuple(tests[:NAMED])),) for want, tests in owing.items()}

    def _count(self, found: Summary, path: str, entry: Entry, wanted: Needs) -> expected.Want | None:
        """Count a test or a listing; give what it needs where it is a test that is in debt."""
        one, run = entry.one, entry.one.run
        (found.tests if entry.is_test else found.others)[one.group] += 1
        found.doctests += entry.is_doctest
        found.newest = max(found.newest, one.found.newest.when)
        place = Place(entry.name, path, entry.link, run.source)
        if one.group.ran:
            if entry.is_test:
                found.months[run.when[:7]] += 1
            if run.duration >= (_INSTANT if entry.is_test else _QUICK):
                found.slow.append(Slow(round(run.duration, 3), place, run.machine))
        want = None
        if entry.is_test and not one.group.ran:
            told = one.found.newest.needs
            want = expected.want_of_test(wanted, entry.name, told, is_skipped=one.group is not Group.OLDER)
            want = want or expected.Want(told, self._standing.machines.get(told, ""))
            found.debt[want, one.group] += 1
        if one.group is Group.FAILED:
            found.broken.append(Broken(run.when, place, one.word, run.machine, run.reason))
        changed = one.found.changes()
        if changed.number:
            rate = changed.number / changed.pairs
            found.flaky.append(Flaky(changed.is_back, rate, changed.number, changed.pairs, changed.runs, place))
            found.flaky_tests += 1
        if entry.is_test:
            for where in one.found.beats:
                found.hardware[where][_on(one, where)] += 1
        return want

    def _rollup(self, folder: str, path: str) -> str:
        where = f"{self._prefix}{folder}".rstrip("/") or "."
        stamp = self._stamps.get(path)
        below = f"{stamp.source}/" if stamp and stamp.source else ""

        def test(place: Place) -> tuple[str, str]:
            return self._addresses.between(path, place.page) + place.link, place.source.removeprefix(below)

        def way(spot: Spot | None) -> str:
            return self._addresses.between(path, spot.page) + spot.end if spot else ""

        told = self._overviews
        ways = Ways(test, lambda name: way(told.owner(name)), lambda name: way(told.hardware(name)), way(told.files))
        is_book = not folder or bool(stamp and not stamp.source)
        found = self._totals[folder] if self._standing.items else _NOTHING
        return harmless(rollup(found, ways, COMMAND.format(word(f"{where}/")), is_whole=is_book))

    @cached_property
    def _overviews(self) -> Overviews:
        return Overviews(self._stamps)

    @cached_property
    def _children(self) -> Mapping[str, list[str]]:
        """The pages that the page of each folder lists: those of its files and subfolders, also through folders that hold nothing else."""
        found: dict[str, list[str]] = defaultdict(list)
        for path, stamp in self._stamps.items():
            folder = posixpath.dirname(path)
            if stamp.page == "file":
                found[folder].append(path)
            elif stamp.page == "index" and folder:
                found[posixpath.dirname(folder)].append(path)
        ways = {folder for folder, pages in found.items() if len(pages) == 1 and posixpath.basename(pages[0]) == "index.md"}
        for folder in sorted(ways - {""}, key=lambda name: -name.count("/")):
            found[posixpath.dirname(folder)] += found[folder]
        return found

    def _rows(self, folder: str) -> dict[str, str]:
        if not self._standing.items:
            return {}
        pairs = ((path, self._summaries.get(path) or self._totals[posixpath.dirname(path)]) for path in self._children.get(folder, ()))
        return {path: html for path, summary in pairs if (html := row(summary))}


_NOTHING = Summary()


def _without_repetition(entry: Entry, told: Iterable[str]) -> Entry:
    """Leave out of the reason of a command, which was the same run as its page's tests, what the row of a failed test says already.

    Args:
        entry: the command, or another listing, which stays as it is.
        told: the reasons of the tests that failed, as the ledger has them.
    """
    run = entry.one.run
    said = f"{SAME_RUN} {run.page}"
    is_same = run.reason.startswith(said) and any(run.reason.endswith(f": {reason}") for reason in told)
    if not (entry.is_command and run.outcome.is_failure and is_same):
        return entry
    listing = run.reason.removeprefix(said).partition(": ")[0].removeprefix("::")
    return entry._replace(one=replace(entry.one, run=replace(run, reason=f"{SAME_RUN} {listing or 'the tests of this page'}")))


def _with_parents(folders: Iterable[str]) -> set[str]:
    found = set()
    for folder in folders:
        while folder not in found:
            found.add(folder)
            folder = posixpath.dirname(folder)  # noqa: PLW2901 - the way up
    return found


def _is_doctest(name: str, source: str, wanted: Needs) -> bool:
    """Tell whether what pytest has collected of a source are the examples of a docstring: it is called after its module, as no test is.

    Args:
        name: node id within the file.
        source: path of the file.
        wanted: the tests that its page lists.
    """
    stem = posixpath.basename(source).partition(".")[0]
    module = posixpath.basename(posixpath.dirname(source)) if stem == "__init__" else stem
    return not _MARKS.search(name) and f".{module}." in f".{name}." and not expected.is_expected(wanted, name)


_MARKS = re.compile(r"::|\[")
"""What only the node id of a test has."""


def _without_whole(known: Mapping[str, Recorded]) -> list[Recorded]:
    """Leave out a module that could not be collected, or skipped itself, where its tests have been run since on the same hardware."""
    whole = next((name for name, found in known.items() if name == posixpath.basename(found.newest.source)), None)
    tests = [found for name, found in known.items() if name != whole and found.newest.kind == "test"]
    if whole is None or not all(_is_later(tests, where, known[whole].last(where).when) for where in known[whole].beats):
        return list(known.values())
    return [found for name, found in known.items() if name != whole]


def _without_gone(known: Sequence[Recorded], listing: str, sha256: str) -> Sequence[Recorded]:
    """Leave out what a listing has held once: where it is known how many tests it holds now, or that it holds none.

    Args:
        known: the listing, as one that could not be collected, say, and its tests.
        listing: its name.
        sha256: hash of its present text.
    """
    whole = next((found for found in known if found.name == listing), None)
    tests = [found for found in known if found is not whole]
    present: list[Recorded] = []
    older: list[Recorded] = []
    for found in tests:
        (present if any(run.listing == sha256 for run in _runs(found)) else older).append(found)
    if whole is not None and all(_is_later(present, where, whole.last(where).when) for where in whole.beats):
        whole = None
    if whole is not None and any(run.listing == sha256 for run in _runs(whole)):
        return [whole, *present]
    number = max((found.newest.case.get("of", 0) for found in present if found.newest.listing == sha256), default=0)
    if 0 < number <= len(present):
        return present
    older.sort(key=lambda found: found.newest.when, reverse=True)
    kept = [*present, *(older[: number - len(present)] if number else older)]
    return kept if whole is None else [whole, *kept]


def _without_stand_ins(known: Sequence[Recorded], wanted: Needs) -> Sequence[Recorded]:
    """Leave out what a skipped module has in the place of several tests, where they have been collected elsewhere."""
    possible = {found.name for found in known if not found.real and found.newest.outcome is Outcome.SKIPPED and found.name[-1:] != "]"}
    if not possible:
        return known
    left_out = possible & expected.stand_ins(wanted, {found.name for found in known})
    return [found for found in known if found.name not in left_out] if left_out else known


def _is_later(tests: Iterable[Recorded], where: str, when: int) -> bool:
    return any(where in found.beats and found.last(where).when > when for found in tests)


def _runs(found: Recorded) -> Iterator[Run]:
    yield from found.real
    if found.other is not None:
        yield found.other


def _unsearched(part: str) -> str:
    """Keep what runs have said out of the search of an engine, which is for prose. Material knows the end of it by the element's name."""
    return f"<section {ENGLISH} data-search-exclude>{part}</section>" if part else ""


def _about(entries: Sequence[Entry], summary: Summary) -> _Placed | None:
    """Give the entry whose run the badge beside a page's title is about: the newest failure, or else the newest run that left evidence."""
    meant = [(place, entry) for place, entry in enumerate(entries) if entry.one.group in summary.counts and not entry.is_command]
    ran = [(place, entry) for place, entry in meant if entry.one.group.ran]
    failed = [pair for pair in ran if pair[1].one.group is Group.FAILED]
    return max(failed or ran, key=lambda pair: pair[1].one.run.when, default=None)


def _where(entries: Iterable[Entry], about: Entry) -> str:
    """Say where and when the run was that a title is about; only when, where others ended so on other hardware."""
    run = about.one.run
    alike = {entry.one.run.machine for entry in entries if entry.one.group is about.one.group and not entry.is_command}
    return circumstances(run) if len(alike) <= 1 else f"the last one {circumstances(run)}"


def _why_not(entries: Iterable[Entry]) -> tuple[str, str]:
    """Say why nothing of a page was run, where all have one reason, and the address of its row; a source that nothing runs has none."""
    meant = [(place, entry) for place, entry in enumerate(entries) if entry.one.group is not Group.NEVER and not entry.is_command]
    said = {why_in_short(entry.one) for _, entry in meant}
    if len(said) != 1:
        return "", ""
    place, first = meant[0]
    return html.escape(said.pop()), "" if first.one.run.kind == "unrunnable" else f"#{anchor(place)}"


def _place(entry: Entry) -> tuple[tuple[bool, int], list[tuple[int, str]], str]:
    """Order tests by their line in the source, behind the page's own listings; variants by numbers: `[9]` before `[10]`.

    The line on the page says less of a test: it grows with the page, and not all were run when that was as it is now.
    """
    newest = entry.one.found.newest
    line = newest.case.get("line") or 0 if newest.source else newest.line
    parts = _NUMBER.split(entry.name)
    counted = [(len(part), part) if place % 2 else (0, part) for place, part in enumerate(parts)]
    return (bool(newest.source), line), counted, entry.name


_NUMBER = re.compile(r"0*(\d+)")


def _placed(entries: Sequence[Entry], listing: str) -> list[_Placed]:
    return [(place, entry) for place, entry in enumerate(entries) if entry.listing == listing]


def _of_listing(entries: Sequence[_Placed], *, is_tabled: bool) -> str:
    """Write how a listing ended, where and when, or why not; with its history where no table has that.

    Args:
        entries: the listing, or its tests.
        is_tabled: whether the page has the table of the last runs.
    """
    if not entries:
        return badge(Group.NEVER)
    ones = [entry.one for _, entry in entries]
    whole = max((one.run.case.get("of", 0) for one in ones if one.group.ran), default=0)
    never = max(0, whole - sum(entry.name != entry.listing for _, entry in entries))
    word = _badge(entries, never, is_tabled=is_tabled)
    meant = [one for one in ones if one.group is Group.FAILED] or [one for one in ones if one.group.ran] or ones
    newest = max(meant, key=lambda one: one.run.when)
    is_told = newest.group.ran and (is_tabled or newest.group is not Group.FAILED)
    said = "; ".join(
        filter(None, (circumstances(newest.run) if newest.group.ran else "", "" if is_told else html.escape(why_in_short(newest))))
    )
    small = f" <small>{said}</small>" if said else ""
    strip = f" {history(newest.found)}" if not is_tabled and len(ones) == 1 and number_of_runs(newest.found) > 1 else ""
    return f'<span class="rankbook-head">{word}{small}</span>{strip}'


def _badges(view: _View, tests: Sequence[Row]) -> dict[Row, str]:
    """Give the badge of each row of the table of tests: of its test, or of all that are made of its function."""
    found: dict[Row, list[_Placed]] = {row: [] for row in tests}
    plain = {*view.wanted, *(entry.name for entry in view.entries)}
    for place, entry in enumerate(view.entries):
        row = _row_of(entry.name, found, plain) if entry.is_test else None
        if row is not None:
            found[row].append((place, entry))
    never = Counter(_row_of(name, found, plain) for name in view.never)
    return {row: _badge(entries, never[row]) if entries else badge(Group.NEVER) for row, entries in found.items()}


def _row_of(test: str, rows: Collection[Row], plain: Collection[str]) -> Row | None:
    """Find the row that a test belongs to: by its class and its name, or by the longest name that its own begins with.

    Tests that are made of a function are called after it and what they were made for: `test_sum[2]`, `test_sum_cuda`. What is a test by
    itself has none that are made of it, whatever others are called.

    Args:
        test: its node id within the file.
        rows: all rows.
        plain: the node ids of all tests.
    """
    head, bracket, parameters = test.partition("[")
    owner, _, function = head.rpartition("::")
    names = [function + bracket + parameters, function]
    shorter = [function[:end] for end in range(len(function) - 1, 0, -1) if function[end] == "_"]
    names += [name for name in shorter if (f"{owner}::{name}" if owner else name) not in plain]
    return next((row for name in names for row in ((owner, name), (None, name)) if row in rows), None)


def _badge(entries: Sequence[_Placed], never: int, *, is_tabled: bool = True) -> str:
    """Write the badge of a test, or one for all of its variants, which leads to the row of one of its runs, a failed one if any.

    Args:
        entries: those that were run.
        never: number of those that were not.
        is_tabled: whether the page has these rows.
    """
    place, first = next((pair for pair in entries if pair[1].one.group is Group.FAILED), entries[0])
    word = badge(first.one.group, first.one.word)
    said = in_short_of(first.one)
    if len(entries) + never > 1:
        counts = Counter(entry.one.group for _, entry in entries) + Counter({Group.NEVER: never})
        word, said = label(counts), "; ".join(filter(None, (in_words(counts), circumstances_of(entry.one for _, entry in entries))))
    if not is_tabled:
        return f'<span title="{html.escape(said)}">{word}</span>'
    return f'<a class="rankbook-run" href="#{anchor(place)}" title="{html.escape(said)}">{word}</a>'


def _on(one: Shown, hardware: str) -> Group:
    """Tell how a test stands on one class of hardware, by its last run there."""
    last = one.found.last(hardware)
    if not last.is_real:
        return Group.SKIPPED if last.outcome is Outcome.SKIPPED else Group.UNPROVED
    if last.version not in one.present:
        return Group.OLDER
    if last.outcome.is_failure:
        return Group.FAILED
    return Group.PASSED if last.outcome is Outcome.PASSED else Group.EXPECTED


def _hash(parts: Iterable[str]) -> str:
    return blake2b("\1".join(parts).encode(errors="backslashreplace"), digest_size=12).hexdigest()
