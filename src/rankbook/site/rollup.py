"""What a folder, or the whole book, proves: how many of its tests a machine has run as they are now, and what is owed, slow or flaky."""

from __future__ import annotations

import html
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from heapq import nlargest
from typing import Any, NamedTuple

from msgspec import Struct, field

from rankbook.site.charts import bars, breakdown, count, legend, listed, share, stacked
from rankbook.site.expected import Want
from rankbook.site.history import time_of
from rankbook.site.outcomes import Group, badge, in_a_line

MOST = 10
"""Rows of a table of tests."""
NAMED = 20
"""Tests that are named of those that owe a run for the same need."""


class Place(NamedTuple):
    """A test, and where it stands."""

    name: str
    page: str
    link: str
    """Where it stands on that page, as the end of an address; empty when that is not known."""
    source: str = ""
    """That holds it; empty for a listing of a page made by a person."""


class Ways(NamedTuple):
    """Addresses, as the page writes them that shows the proof; empty for what the book has no place for."""

    test: Callable[[Place], tuple[str, str]]
    """Of a test, and what the page calls the test's file."""
    owner: Callable[[str], str]
    """Of the files of an owner."""
    hardware: Callable[[str], str]
    """Of what tests need of such a machine."""
    files: str
    """Of all files with tests, with what these need."""


class Slow(NamedTuple):
    """A test and how long it took."""

    seconds: float
    place: Place
    hardware: str


class Flaky(NamedTuple):
    """A test whose outcome changes though its listing, its hardware and its torch do not."""

    is_back: bool
    """Whether it ended again as it had before: one that changed once may have been broken by something else, or mended."""
    rate: float
    changes: int
    pairs: int
    runs: int
    place: Place


class Broken(NamedTuple):
    """A test that fails."""

    when: str
    place: Place
    word: str
    hardware: str
    reason: str


class Owed(NamedTuple):
    """The tests of a page that owe a run for the same need, as far as they are named."""

    page: str
    source: str
    tests: tuple[tuple[str, str], ...]
    """The name of each, and where it stands on the page, as the end of an address; empty where that is not known."""


_LOST = (Group.FAILED, Group.OLDER, Group.UNPROVED)
"""What must not hide behind tests that passed."""


class Summary(Struct):
    """What is known of the tests of a page, of a folder with all below it, or of the book."""

    tests: Counter[Group] = field(default_factory=Counter)
    others: Counter[Group] = field(default_factory=Counter)
    """Listings that are no tests, and doctests, as far as they were run."""
    doctests: int = 0
    """Number of doctests among these."""
    cases: int = 0
    """Tests for several of which one row of a page stands, because only a run tells them apart."""
    stand_ins: int = 0
    """Number of these rows."""
    debt: Counter[tuple[Want, Group]] = field(default_factory=Counter)
    owed: dict[Want, tuple[Owed, ...]] = field(default_factory=dict)
    """The pages, in order, that hold the first of the tests that are in debt."""
    slow: list[Slow] = field(default_factory=list)
    flaky: list[Flaky] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    owners: defaultdict[str, Counter[Group]] = field(default_factory=lambda: defaultdict(Counter))
    hardware: defaultdict[str, Counter[Group]] = field(default_factory=lambda: defaultdict(Counter))
    months: Counter[str] = field(default_factory=Counter)
    """Tests that were run as they are now, by the month of that run."""
    newest: str = ""
    """Time of the last run; empty where it is not known."""
    flaky_tests: int = 0

    @property
    def is_run(self) -> bool:
        """Whether anything of it was ever run, whether or not it is known when."""
        return self.others.total() > 0 or self.tests.total() > self.tests[Group.NEVER]

    @property
    def counts(self) -> Counter[Group]:
        """What a badge is about: the tests; with other listings where there is no test, or where one of those has lost its proof."""
        lost = Counter({group: self.others[group] for group in _LOST if self.others[group]})
        return self.tests + lost if self.tests else self.others

    def add(self, other: Summary) -> None:
        """Add what another one knows."""
        self.tests.update(other.tests)
        self.debt.update(other.debt)
        for want, pages in other.owed.items():
            self.owed[want] = _first_of(self.owed.get(want, ()), pages)
        _merge(self.owners, other.owners)
        _merge(self.hardware, other.hardware)
        if not other.is_run:
            return
        self.others.update(other.others)
        self.doctests += other.doctests
        self.cases += other.cases
        self.stand_ins += other.stand_ins
        self.months.update(other.months)
        self.slow = nlargest(MOST, self.slow + other.slow)
        self.flaky = nlargest(MOST, self.flaky + other.flaky)
        self.broken = nlargest(MOST, self.broken + other.broken)
        self.flaky_tests += other.flaky_tests
        self.newest = max(self.newest, other.newest)

    def facts(self) -> str:
        """Write all of it down, the same for the same."""
        plain: tuple[Mapping[Any, int], ...] = (self.tests, self.others, self.debt, self.months)
        named = [sorted((name, _written(counts)) for name, counts in groups.items()) for groups in (self.owners, self.hardware)]
        owed = [(want, self.owed.get(want)) for want, _ in _needs(self)[:MOST]]
        lists = (owed, self.slow, self.flaky, self.broken)
        return repr(([*map(_written, plain)], named, lists, self.newest, self.flaky_tests, self.doctests))


def _written(counts: Mapping[Any, int]) -> list[str]:
    return sorted(map(repr, counts.items()))


def _merge(into: defaultdict[str, Counter[Group]], groups: Mapping[str, Counter[Group]]) -> None:
    for name, counts in groups.items():
        into[name].update(counts)


def _first_of(one: tuple[Owed, ...], other: tuple[Owed, ...]) -> tuple[Owed, ...]:
    """Put pages in order, as far as the tests of those before a page are too few."""
    if sum(len(each.tests) for each in one) >= NAMED and one[-1].page < other[0].page:
        return one
    found, left = [], NAMED
    for each in sorted(one + other):
        if left <= 0:
            break
        found.append(each)
        left -= len(each.tests)
    return tuple(found)


def covered(counts: Mapping[Group, int]) -> int:
    """Count the tests that a machine has run as they are now."""
    return sum(number for group, number in counts.items() if group.ran)


def row(summary: Summary) -> str:
    """Write the badge of a page or a folder in a table: what fails first, then how much is proved; empty when it has nothing to run."""
    counts = summary.counts
    if not counts:
        return ""
    return f'<span class="rankbook-row">{label(counts)}</span>'


def label(counts: Mapping[Group, int]) -> str:
    """Write one badge for several tests: what fails first, then how much is proved; green only when all of them passed."""
    whole = sum(counts.values())
    if counts.get(Group.FAILED):
        return badge(Group.FAILED, f"{counts[Group.FAILED]:,} failed" if whole > 1 else "")
    only = next((group for group in Group if counts.get(group) == whole), None)
    if only is not None:
        return badge(only)
    ran = covered(counts)
    if not ran:
        return badge(max(Group, key=lambda group: counts.get(group, 0)))
    return badge(Group.EXPECTED if ran == whole else Group.UNPROVED, f"{ran:,} of {whole:,} proved")


def head(summary: Summary, where: str = "", href: str = "") -> str:
    """Write the badge beside a page's title, with where and when the run was that it is about.

    Args:
        summary: of the page.
        where: circumstances of that run, as HTML.
        href: address of what is said of that run.
    """
    counts = summary.counts
    if not counts:
        return ""
    small = f" <small>{where}</small>" if where else ""
    word = f'<a class="rankbook-run" href="{href}">{label(counts)}</a>' if href else label(counts)
    return f'<span class="rankbook-head">{word}{small}</span>'


def rollup(summary: Summary, ways: Ways, command: str, *, is_whole: bool = True) -> str:
    """Write the charts of a folder or of the book.

    Args:
        summary: of it.
        ways: from the page that shows it.
        command: what runs the tests, for a book of which nothing was run.
        is_whole: whether it is the book; of a folder, whose page is about its files, the tables are folded.
    """
    whole = sum(summary.tests.values())
    if not summary.is_run:
        what = "its test" if whole == 1 else f"any of its {count(whole, 'test')}" if whole else "anything of it"
        said = f"No machine has run {what} yet"
        return f'<p class="rankbook-rollup">{said}: <code>{html.escape(command)}</code> runs what this machine can.</p>'
    first = "".join(part(summary, ways) for part in _FIRST)
    tables = {name: table for name, part in _TABLES.items() if (table := part(summary, ways))}
    opened = " open" if is_whole else ""
    names = ", ".join(tables)
    folded = f"<details{opened}><summary>{names[:1].upper()}{names[1:]}</summary>{''.join(tables.values())}</details>" if tables else ""
    return f'<div class="rankbook-rollup">{first}{folded}</div>'


def _coverage(summary: Summary, _ways: Ways) -> str:
    whole, ran = sum(summary.tests.values()), covered(summary.tests)
    newest = f"Last run: {time_of(summary.newest)}." if summary.newest else "When the last run was is not known."
    if not whole:
        return f"<p>{newest}</p>"
    sentence = f"Proof coverage: <strong>{share(ran, whole)}</strong>. A machine has run {ran:,} of {count(whole, 'test')} as they are now"
    if summary.cases:
        rows = "1 row of a page stands" if summary.stand_ins == 1 else f"{summary.stand_ins:,} rows of pages stand"
        sentence += f"; {summary.cases:,} of these are cases that {rows} for"
    sentence += "."
    return f"<p>{sentence} {newest}</p>{stacked(summary.tests)}{legend(summary.tests)}"


def _others(summary: Summary, _ways: Ways) -> str:
    if not summary.others:
        return ""
    others, doctests = sum(summary.others.values()), summary.doctests
    among = f", {count(doctests, 'doctest')} among them" if doctests else ""
    said = f"Other listings that were run{among}" if doctests < others else "Doctests that were run"
    return f"<p>{said}:</p>{legend(summary.others)}"


def _broken(summary: Summary, ways: Ways) -> str:
    rows = (
        (
            _link(one.place, ways),
            badge(Group.FAILED, one.word),
            html.escape(one.hardware),
            time_of(one.when),
            html.escape(in_a_line(one.reason)),
        )
        for one in summary.broken
    )
    failed = summary.tests[Group.FAILED] + summary.others[Group.FAILED]
    more = f"<p>and {count(failed - MOST, 'other')}.</p>" if failed > MOST else ""
    return listed("Failing", ("Test", "Outcome", "Hardware", "When", "Reason"), rows) + more


def _needs(summary: Summary) -> list[tuple[Want, Counter[Group]]]:
    """Give what tests in debt need, with how they stand, the need of most tests first."""
    needs: dict[Want, Counter[Group]] = defaultdict(Counter)
    for (want, group), number in summary.debt.items():
        needs[want][group] += number
    return sorted(needs.items(), key=lambda item: (-sum(item[1].values()), item[0]))


def _debts(summary: Summary, ways: Ways) -> str:
    """Write what would have to be run, and which tests that are."""
    ordered = _needs(summary)
    rows = [
        (
            html.escape(_need(want)),
            float(sum(groups.values())),
            f"{count(sum(groups.values()), 'test')}: {', '.join(f'{groups[group]:,} {group.word}' for group in Group if groups.get(group))}"
            + (f"; smallest machine: {html.escape(want.machine)}" if want.machine else ""),
        )
        for want, groups in ordered[:MOST]
    ]
    more = f"<p>and {count(len(ordered) - MOST, 'other combination')} of needs.</p>" if len(ordered) > MOST else ""
    below = [_named(want, summary.owed.get(want, ()), sum(groups.values()), ways) for want, groups in ordered[:MOST]]
    return bars("Skip debt: tests that no machine has run as they are now, by what they need", ("Needs", "Tests"), rows, below) + more


def _need(want: Want) -> str:
    return ", ".join(want.words) or ("no GPU" if want.machine else "what their pages do not say")


def _named(want: Want, pages: Iterable[Owed], whole: int, ways: Ways) -> str:
    """Write which tests are in debt for a need, as what opens: the first of them, and where the others are found."""
    tests = [Place(name, one.page, link, one.source) for one in pages for name, link in one.tests][:NAMED]
    if not tests:
        return ""
    said = f"{count(whole, 'test')} by name" if len(tests) == whole else f"{len(tests):,} of {count(whole, 'test')} by name"
    entries = "".join(f"<li>{_link(place, ways)}</li>" for place in tests)
    if len(tests) < whole:
        where = f', in <a href="{html.escape(ways.files)}">files by what their tests need</a>' if ways.files else ""
        entries += f"<li>and {count(whole - len(tests), 'other')}{where}</li>"
    label = html.escape(f"{said}: {_need(want)}")
    return f'<details class="rb-named"><summary aria-label="{label}">{said}</summary><ul>{entries}</ul></details>'


def _slowest(summary: Summary, ways: Ways) -> str:
    rows = [(_link(one.place, ways), one.seconds, f"{duration(one.seconds)}, {html.escape(one.hardware)}") for one in summary.slow]
    return bars("Slowest", ("Test", "Time of its last run"), rows)


def duration(seconds: float) -> str:
    """Write how long something took."""
    if seconds < 60:
        return f"{seconds:.2g}\xa0s" if seconds < 10 else f"{seconds:.0f}\xa0s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}\xa0min {rest}\xa0s" if minutes < 60 else f"{minutes // 60}\xa0h {minutes % 60}\xa0min"


def _flakiest(summary: Summary, ways: Ways) -> str:
    rows = [
        (
            _link(one.place, ways),
            one.rate,
            f"{share(one.changes, one.pairs)}: {count(one.changes, 'change')} in {count(one.runs, 'run')}",
        )
        for one in summary.flaky
    ]
    more = f"<p>and {count(summary.flaky_tests - MOST, 'other')}.</p>" if summary.flaky_tests > MOST else ""
    return bars("Flakiest: changes of outcome with the same listing, hardware and torch", ("Test", "Changes"), rows) + more


def _owners(summary: Summary, ways: Ways) -> str:
    owners = {name: counts for name, counts in summary.owners.items() if any(counts.values())}
    return breakdown("By owner", "Owner", _ordered(owners, ways.owner))


def _hardware(summary: Summary, ways: Ways) -> str:
    whole = sum(summary.tests.values())
    caption = "By hardware: the last run of each test on it, and its share of all tests"
    return breakdown(caption, "Hardware", _ordered(summary.hardware, ways.hardware), whole)


def _ordered(groups: Mapping[str, Mapping[Group, int]], way: Callable[[str], str]) -> list[tuple[str, Mapping[Group, int]]]:
    ordered = sorted(groups.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    return [(_leading(html.escape(name), way(name)), counts) for name, counts in ordered]


def _leading(label: str, address: str) -> str:
    return f'<a href="{html.escape(address)}">{label}</a>' if address else label


def _freshness(summary: Summary, _ways: Ways) -> str:
    months = sorted(summary.months.items(), reverse=True)
    months = [(month, number) for month, number in months if month]  # a run whose time is not known is of no month
    older = sum(number for _, number in months[12:])
    rows = [(_month(month), float(number), count(number, "test")) for month, number in months[:12]]
    rows += [("before", float(older), count(older, "test"))] if older else []
    return bars("Freshness: tests that were run as they are now, by the month of that run", ("Month", "Tests"), rows)


def _month(written: str) -> str:
    return f'<time datetime="{written}">{written}</time>' if _MONTH.fullmatch(written) else html.escape(written)


_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_FIRST = (_coverage, _others, _broken)
_TABLES: Mapping[str, Callable[[Summary, Ways], str]] = {
    "skip debt": _debts,
    "flakiest": _flakiest,
    "slowest": _slowest,
    "by owner": _owners,
    "by hardware": _hardware,
    "freshness": _freshness,
}
"""What is folded on the page of a folder."""


def broken(name: str) -> str:
    """Give the name of a test as HTML that may break behind its classes."""
    return html.escape(name).replace("::", "::<wbr>")


def _link(place: Place, ways: Ways) -> str:
    address, file = ways.test(place)
    said = f" <small>{html.escape(file)}</small>" if file else ""
    return f"{_leading(f'<code>{broken(place.name)}</code>', address)}{said}"


def total(summaries: Iterable[Summary]) -> Summary:
    """Put summaries together."""
    found = Summary()
    for summary in summaries:
        found.add(summary)
    return found
