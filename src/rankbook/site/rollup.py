"""What a folder, or the whole book, proves: how many of its tests a machine has run as they are now, and what is owed, slow or flaky."""

from __future__ import annotations

import html
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nlargest, nsmallest
from typing import Any, NamedTuple, Protocol

from msgspec import Struct, field

from rankbook.site.charts import bars, breakdown, count, in_words, legend, listed, share, stacked
from rankbook.site.expected import Want
from rankbook.site.history import time_of
from rankbook.site.outcomes import Group, badge, in_a_line

MOST = 10
"""Rows of a table of tests."""
MOST_OWED = 5
"""Tests that a row of the skip debt names."""


class Place(NamedTuple):
    """A test, and where it stands."""

    name: str
    page: str
    link: str
    """Where it stands on that page, as the end of an address; empty when that is not known."""
    source: str = ""
    """That holds it; empty for a listing of a page made by a person."""


class Way(Protocol):
    """Leads from the page that shows it all."""

    def to(self, place: Place) -> tuple[str, str]:
        """Give the address of a test, as the page writes it, and what the page calls the test's file."""

    def about(self, kind: str) -> str:
        """Give the address of a page about the whole suite: `suite-owners`; empty where there is none."""


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
    place: Place


class Broken(NamedTuple):
    """A test that fails."""

    when: str
    place: Place
    word: str
    hardware: str
    reason: str


class Owed(NamedTuple):
    """A test that no machine has run as it is now."""

    page: str
    number: int
    """Its place among those of its page."""
    place: Place


_LOST = (Group.FAILED, Group.OLDER, Group.UNPROVED)
"""What must not hide behind tests that passed."""


class Summary(Struct):
    """What is known of the tests of a page, of a folder with all below it, or of the book."""

    tests: Counter[Group] = field(default_factory=Counter)
    others: Counter[Group] = field(default_factory=Counter)
    """Listings that are no tests, and doctests, as far as they were run."""
    doctests: int = 0
    """Number of doctests among these."""
    debt: Counter[tuple[Want, Group]] = field(default_factory=Counter)
    owing: dict[Want, list[Owed]] = field(default_factory=dict)
    """The first tests of the debt, by what they need."""
    slow: list[Slow] = field(default_factory=list)
    flaky: list[Flaky] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    owners: defaultdict[str, Counter[Group]] = field(default_factory=lambda: defaultdict(Counter))
    hardware: defaultdict[str, Counter[Group]] = field(default_factory=lambda: defaultdict(Counter))
    months: Counter[str] = field(default_factory=Counter)
    """Tests that were run as they are now, by the month of that run."""
    newest: str = ""
    """Time of the last run."""
    flaky_tests: int = 0

    @property
    def is_run(self) -> bool:
        """Whether anything of it was ever run."""
        return bool(self.newest)

    @property
    def counts(self) -> Counter[Group]:
        """What a badge is about: the tests; with other listings where there is no test, or where one of those has lost its proof."""
        lost = Counter({group: self.others[group] for group in _LOST if self.others[group]})
        return self.tests + lost if self.tests else self.others

    def add(self, other: Summary) -> None:
        """Add what another one knows."""
        self.tests.update(other.tests)
        self.debt.update(other.debt)
        for want, tests in other.owing.items():
            self.owing[want] = nsmallest(MOST_OWED, [*self.owing.get(want, ()), *tests])
        _merge(self.owners, other.owners)
        _merge(self.hardware, other.hardware)
        if not other.is_run:
            return
        self.others.update(other.others)
        self.doctests += other.doctests
        self.months.update(other.months)
        self.slow = nlargest(MOST, self.slow + other.slow)
        self.flaky = nlargest(MOST, self.flaky + other.flaky)
        self.broken = nlargest(MOST, self.broken + other.broken)
        self.flaky_tests += other.flaky_tests
        self.newest = max(self.newest, other.newest)

    def owe(self, want: Want, group: Group, place: Place, number: int) -> None:
        """Add a test that no machine has run as it is now.

        Args:
            want: what it needs.
            group: how it stands.
            place: where it stands on its page.
            number: its place among the tests of that page.
        """
        self.debt[want, group] += 1
        tests = self.owing.setdefault(want, [])
        if len(tests) < MOST_OWED:
            tests.append(Owed(place.page, number, place))

    def facts(self) -> str:
        """Write all of it down, the same for the same."""
        plain: tuple[Mapping[Any, int], ...] = (self.tests, self.others, self.debt, self.months)
        named = [sorted((name, _written(counts)) for name, counts in groups.items()) for groups in (self.owners, self.hardware)]
        owing = sorted(self.owing.items())
        return repr(
            ([*map(_written, plain)], owing, named, self.slow, self.flaky, self.broken, self.newest, self.flaky_tests, self.doctests)
        )


def _written(counts: Mapping[Any, int]) -> list[str]:
    return sorted(map(repr, counts.items()))


def _merge(into: defaultdict[str, Counter[Group]], groups: Mapping[str, Counter[Group]]) -> None:
    for name, counts in groups.items():
        into[name].update(counts)


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


def rollup(summary: Summary, way: Way, command: str, *, is_whole: bool = True) -> str:
    """Write the charts of a folder or of the book.

    Args:
        summary: of it.
        way: to its tests, from the page that shows it.
        command: what runs the tests, for a book of which nothing was run.
        is_whole: whether it is the book; of a folder, whose page is about its files, the tables are folded.
    """
    whole = sum(summary.tests.values())
    if not summary.is_run:
        what = "its test" if whole == 1 else f"any of its {count(whole, 'test')}" if whole else "anything of it"
        said = f"No machine has run {what} yet"
        return f'<p class="rankbook-rollup">{said}: <code>{html.escape(command)}</code> runs what this machine can.</p>'
    first = "".join(part(summary, way) for part in _FIRST)
    tables = {name: table for name, part in _TABLES.items() if (table := part(summary, way))}
    opened = " open" if is_whole else ""
    names = ", ".join(tables)
    folded = f"<details{opened}><summary>{names[:1].upper()}{names[1:]}</summary>{''.join(tables.values())}</details>" if tables else ""
    return f'<div class="rankbook-rollup">{first}{folded}</div>'


def _coverage(summary: Summary, _way: Way) -> str:
    whole, ran = sum(summary.tests.values()), covered(summary.tests)
    newest = f"Last run: {time_of(summary.newest)}."
    if not whole:
        return f"<p>{newest}</p>"
    sentence = f"Proof coverage: <strong>{share(ran, whole)}</strong>. A machine has run {ran:,} of {count(whole, 'test')} as they are now."
    return f"<p>{sentence} {newest}</p>{stacked(summary.tests)}{legend(summary.tests)}"


def _others(summary: Summary, _way: Way) -> str:
    if not summary.others:
        return ""
    others, doctests = sum(summary.others.values()), summary.doctests
    among = f", {count(doctests, 'doctest')} among them" if doctests else ""
    said = f"Other listings that were run{among}" if doctests < others else "Doctests that were run"
    return f"<p>{said}:</p>{legend(summary.others)}"


def _broken(summary: Summary, way: Way) -> str:
    rows = (
        (
            _link(one.place, way),
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


def _debts(summary: Summary, way: Way) -> str:
    """Write what would have to be run, the need of most tests first; each opens to the first of these tests."""
    needs: dict[Want, Counter[Group]] = defaultdict(Counter)
    for (want, group), number in summary.debt.items():
        needs[want][group] += number
    ordered = sorted(needs.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    rows = [
        (
            html.escape(", ".join(want.words) or ("no GPU" if want.machine else "what their pages do not say")),
            float(sum(groups.values())),
            _owed(want, groups, summary.owing.get(want, ()), way),
        )
        for want, groups in ordered[:MOST]
    ]
    more = f"<p>and {count(len(ordered) - MOST, 'other combination')} of needs.</p>" if len(ordered) > MOST else ""
    return bars("Skip debt: tests that no machine has run as they are now, by what they need", ("Needs", "Tests"), rows) + more


def _owed(want: Want, groups: Mapping[Group, int], first: Sequence[Owed], way: Way) -> str:
    whole = sum(groups.values())
    said = f"{count(whole, 'test')}: {in_words(groups)}" + (f"; smallest machine: {html.escape(want.machine)}" if want.machine else "")
    if not first:
        return said
    tests = "".join(f"<li>{_link(one.place, way)}</li>" for one in first)
    more = f"<li>and {whole - len(first):,} more</li>" if whole > len(first) else ""
    return f"<details><summary>{said}</summary><ul>{tests}{more}</ul></details>"


def _slowest(summary: Summary, way: Way) -> str:
    rows = [(_link(one.place, way), one.seconds, f"{duration(one.seconds)}, {html.escape(one.hardware)}") for one in summary.slow]
    return bars("Slowest", ("Test", "Time of its last run"), rows)


def duration(seconds: float) -> str:
    """Write how long something took."""
    if seconds < 60:
        return f"{seconds:.2g}\xa0s" if seconds < 10 else f"{seconds:.0f}\xa0s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}\xa0min {rest}\xa0s" if minutes < 60 else f"{minutes // 60}\xa0h {minutes % 60}\xa0min"


def _flakiest(summary: Summary, way: Way) -> str:
    rows = [
        (
            _link(one.place, way),
            one.rate,
            f"{share(one.changes, one.pairs)}: {count(one.changes, 'change')} in {count(one.pairs + 1, 'run')}",
        )
        for one in summary.flaky
    ]
    more = f"<p>and {count(summary.flaky_tests - MOST, 'other')}.</p>" if summary.flaky_tests > MOST else ""
    return bars("Flakiest: changes of outcome with the same listing, hardware and torch", ("Test", "Changes"), rows) + more


def _owners(summary: Summary, way: Way) -> str:
    owners = _ordered({name: counts for name, counts in summary.owners.items() if any(counts.values())})
    table = breakdown("By owner", "Owner", owners)
    return table and table + _further(way.about("suite-owners"), "The files of each owner")


def _further(address: str, said: str) -> str:
    return f'<p><a href="{html.escape(address)}">{said}</a></p>' if address else ""


def _hardware(summary: Summary, way: Way) -> str:
    whole = sum(summary.tests.values())
    caption = "By hardware: the last run of each test on it, and its share of all tests"
    table = breakdown(caption, "Hardware", _ordered(summary.hardware), whole)
    return table and table + _further(way.about("suite-hardware"), "What the tests need")


def _ordered(groups: Mapping[str, Mapping[Group, int]]) -> list[tuple[str, Mapping[Group, int]]]:
    return sorted(groups.items(), key=lambda item: (-sum(item[1].values()), item[0]))


def _freshness(summary: Summary, _way: Way) -> str:
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
_TABLES: Mapping[str, Callable[[Summary, Way], str]] = {
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


def _link(place: Place, way: Way) -> str:
    address, file = way.to(place)
    said = f" <small>{html.escape(file)}</small>" if file else ""
    return f'<a href="{html.escape(address)}"><code>{broken(place.name)}</code></a>{said}'


def total(summaries: Iterable[Summary]) -> Summary:
    """Put summaries together."""
    found = Summary()
    for summary in summaries:
        found.add(summary)
    return found
