"""Skip debt: tests that no machine has really run, not since their listing changed, or not for too long; with the machine that would."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from os import sep
from os.path import relpath
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from rankbook import smallest
from rankbook.config import Settings
from rankbook.ledger import Ledger, is_ahead
from rankbook.listing import Gone, Outcome, Run
from rankbook.needs import Needs
from rankbook.page_names import holder, is_page_name
from rankbook.required import BROKEN
from rankbook.requirements import KINDS, Requirement, gpus_of
from rankbook.site import expected
from rankbook.site.besides import Besides
from rankbook.terminal import one_line

REAL = (Outcome.PASSED, Outcome.FAILED, Outcome.CRASHED, Outcome.HUNG)
"""Ways to end that leave evidence: it ran. Skipped, vacuous, degenerate and not run do not count."""
NO_GPU = "no GPU"
"""What tests need of which a page says that they need nothing; those that want a machine without GPUs need `no GPU at all`."""
EXPECTED = "expected to fail"
"""How the reason of a test begins that was expected to fail."""
NOT_STARTED = "[NOTRUN]"
"""What pytest writes into the reason of one that it does not even start."""
STATUS = 1
"""Exit status where there is debt, for whoever asked to fail on it."""
_NEVER_RUN = frozenset({"not code", "unrunnable"})
"""Kinds of listing that nothing runs anywhere."""


class Debt(Struct, frozen=True):
    """Tests that owe a run for the same need."""

    needs: tuple[str, ...]
    """What they need, as their pages say it."""
    machine: str
    """The smallest machine that would run them; empty when their needs do not tell, or no machine meets all of them."""
    reason: str
    """Why they were skipped, where no page says what they need."""
    last: str
    """Day of the last real run of any of them, ISO 8601; empty for never."""
    note: str
    """Why that run does not count: `before the listing changed`, `80 days ago`."""
    node_ids: tuple[str, ...]

    def sentence(self) -> str:
        """Say it in one line: `41 tests need 4 GPUs; last run: never`; the smallest machine too, where their needs do not read like it."""
        one = len(self.node_ids) == 1
        tests = f"{len(self.node_ids)} {'test' if one else 'tests'}"
        needs = ", ".join(self.needs) or (NO_GPU if self.machine else "")
        if needs:
            what = f"{tests} {'needs' if one else 'need'} {needs}"
        else:
            what = f"{tests}, {'whose need is' if one else 'whose needs are'} not known" + (
                f" (skipped: {self.reason})" if self.reason else ""
            )
        last = ", ".join(filter(None, (self.last, self.note))) or "never"
        machine = self.machine if self.machine != needs else ""
        return one_line("; ".join(filter(None, (what, f"last run: {last}", f"smallest machine: {machine}" if machine else ""))))


class Page(NamedTuple):
    """What a page about a source says of its tests."""

    source: str
    sha256: str
    """Of the source as its listing has it."""
    tests: Needs


Listings = Mapping[str, Mapping[str, str]]
"""By page, the hash of the text of each of its listings, by the part of its node id behind the page."""


def pages_of(settings: Settings) -> dict[str, Page]:
    """Read what the pages of a book say of its tests, by path below the root.

    Raises:
        RankbookError: a page cannot be read.
    """
    from rankbook.pages.seals import stamp_as_listed  # what makes pages is of no use to a run of pytest

    out = settings.below_root(settings.out)
    found = {}
    for file in sorted(out.rglob("*.md")) if out.is_dir() else ():
        stamp = stamp_as_listed(file) if file.is_file() else None  # a folder of sources may have a name of this end
        if stamp is not None and stamp.page == "file":
            wanted = expected.tests(stamp.needs) if stamp.needs else {}
            found[relpath(file, settings.root).replace(sep, "/")] = Page(stamp.source, stamp.sha256 or "", wanted)
    return found


def owed(  # noqa: PLR0913 - one argument for each thing that tells of a run
    ledger: Ledger,
    current: Iterable[Run],
    days: int = 0,
    today: date | None = None,
    *,
    pages: Mapping[str, Page] = MappingProxyType({}),
    listings: Listings = MappingProxyType({}),
    files: Mapping[str, str] = MappingProxyType({}),
) -> list[Debt]:
    """Give the skip debt of the present listings, the largest machine last.

    Args:
        ledger: where all machines' runs are recorded.
        current: the last run of each test or listing, of whatever outcome; it says what the listing is now and what it needs.
        days: age in days from which a run does not count any more; 0 for never.
        today: the day from which ages are counted; the present one, in UTC, when None.
        pages: what pages say of their tests: a run of an older version does not count, and tests without a run owe one.
        listings: of pages made by people, as they are now.
        files: SHA-256 of files beside which runs were and that have no page, by path, as they are now: a run beside others does not count.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    now = today or datetime.now(UTC).date()
    same, any_listing = _real_runs(ledger, _page_by_source(pages))
    variants = _by_test(same)
    besides = Besides({**files, **{page.source: page.sha256 for page in pages.values() if page.sha256}})
    groups: dict[_Group, dict[str, str]] = defaultdict(dict)
    current = list(current)
    for run in current:
        if run.kind in _NEVER_RUN or run.outcome is Outcome.NOT_CODE:
            continue
        page = pages.get(run.page)
        listing = _text_of(run, page, listings)
        want = _want_of(run, page)
        key = run.node_id, listing
        alike = same.get(key, []) or (variants.get(key, []) if run.case.get("left_out") else [])
        times = [at for modules, at in alike if not _differ(modules, run.modules) and not besides.differing(modules, run)]
        is_new = is_proof(run) and run.listing == listing and not besides.changed(run)
        times += ["" if is_ahead(run.when) else run.when] if is_new else []
        last = max(times, default="")
        if times and not (days and (not last or _age(last, now) >= days)):
            continue
        before = last or any_listing.get(run.node_id, "")
        changed = "beside" if key in same else "changed"
        why = "old" if times else changed if run.node_id in any_listing else "never"
        groups[want, "" if any(want) else run.reason, why][run.node_id] = before
    for page_path, name, want in unrun(current, pages):
        groups[want, "", "never"][f"{page_path}::{name}"] = ""
    debts = [
        Debt(*want, reason, max(found.values())[:10], _NOTES[why](max(found.values()), now), tuple(sorted(found)))
        for (want, reason, why), found in groups.items()
    ]
    return sorted(debts, key=lambda debt: (_gpus(debt.needs), debt.needs, debt.last, debt.reason))


_Group = tuple[expected.Want, str, str]
"""Needs, the reason in their place, and a word of `_NOTES`."""


def _age(when: str, today: date) -> int:
    return (today - datetime.fromisoformat(when).date()).days


def _ago(days: int) -> str:
    return f"{days} {'day' if days == 1 else 'days'} ago"


_NOTES: Mapping[str, Callable[[str, date], str]] = {
    "never": lambda _last, _today: "",
    "changed": lambda _last, _today: "before the listing changed",
    "beside": lambda _last, _today: "before a file beside the listing changed",
    "old": lambda last, today: _ago(_age(last, today)) if last else "at a time that is not known",
}
"""Why a last run does not count, in words."""


def unrun(current: Iterable[Run], pages: Mapping[str, Page]) -> Iterator[tuple[str, str, expected.Want]]:
    """Yield the tests of pages of which there is no run at all: the page, the test, and what it needs.

    Args:
        current: the last run of each test.
        pages: what pages say of their tests.
    """
    seen: dict[str, set[str]] = defaultdict(set)
    for run in current:
        if "id" in run.case:
            seen[run.page].add(run.case["id"])
    for path, page in pages.items():
        for name, want in expected.missing(page.tests, seen[path]).items():
            yield path, name, want


def are_there(runs: Iterable[Run], pages: Mapping[str, Page], listings: Listings = MappingProxyType({})) -> list[Run]:
    """Leave out the runs of tests of an older version that their page has no more, and of commands that run those of their page.

    Args:
        runs: the last one of each test or listing.
        pages: what pages say of their tests.
        listings: of pages made by people, as they are now.
    """
    return [run for run in runs if not _is_gone(run, pages.get(run.page), listings)]


def _is_gone(run: Run, page: Page | None, listings: Listings) -> bool:
    """Tell of a test or a listing whether its page has it no more; of the command of a page, that it is no test: what it runs is."""
    if page is None and not run.source and run.page in listings:
        return not _listing_of(run, listings)
    if page is not None and not run.source:
        return not is_page_name(page.source)
    is_older = page is not None and "id" in run.case and run.source == page.source and run.listing != page.sha256
    return page is not None and is_older and not expected.is_expected(page.tests, run.case["id"])


def _text_of(run: Run, page: Page | None, listings: Listings) -> str:
    """Give the hash of the present text of what was run: of the source, or of the listing of a page that a person made."""
    if page is not None:
        return page.sha256 if page.sha256 and page.source == run.source else run.listing
    return listings.get(run.page, {}).get(_listing_of(run, listings), run.listing)


def _listing_of(run: Run, listings: Listings) -> str:
    return holder(run.node_id.partition("::")[2], listings.get(run.page, {}))


def _want_of(run: Run, page: Page | None) -> expected.Want:
    is_skipped = run.outcome is Outcome.SKIPPED and not is_real(run)
    want = expected.want_of_test(page.tests, run.case["id"], run.needs, is_skipped=is_skipped) if page and "id" in run.case else None
    return want or expected.Want(run.needs, smallest_machine(run.needs))


def is_proof(run: Run) -> bool:
    """Say whether a run leaves evidence that its test ran on hardware that is there: GPUs that were only declared prove nothing."""
    real, _, declared = run.machine.partition("; declared: ")
    pretended = real.startswith("CPU") and declared not in ("", "no GPUs")
    return is_real(run) and not pretended


def is_real(run: Run) -> bool:
    """Say whether a run leaves evidence that its test ran: also one that was expected to fail, and did."""
    if run.reason.endswith(BROKEN):
        return False
    return run.outcome in REAL or (run.reason.startswith(EXPECTED) and NOT_STARTED not in run.reason)


def sentences(ledger: Ledger, current: Iterable[Run], days: int = 0) -> list[str]:
    """Say what `owed` gives, a line for each need; nothing when there is no debt.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    return [debt.sentence() for debt in owed(ledger, current, days)]


def current_runs(ledger: Ledger, pages: Mapping[str, Page] = MappingProxyType({})) -> list[Run]:
    """Give the last run of each test and listing, without those that no hardware finds on their page any more.

    Args:
        ledger: where all machines' runs are recorded.
        pages: what pages say of their tests: those that they name are there, and in another text than was run all may be. A run of a
            source on another page counts as one on its page.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    gone, homes = ledger.gone(), _page_by_source(pages)
    last: dict[str, Run] = {}
    for run in ledger.latest():
        page = homes.get(run.source, run.page)
        if not _is_found_no_more(run, gone.get(run.page, Gone()), pages.get(page)):
            node = run.node_id if page == run.page else _on_page(run.node_id, page)
            last[node] = run if page == run.page else replace(run, page=page, node_id=node)
    return list(last.values())


def _page_by_source(pages: Mapping[str, Page]) -> Mapping[str, str]:
    """Say where each source has its page: it was run on another one before the setting `out`, or a pack, gave it this place."""
    return {page.source: path for path, page in pages.items()}


def _on_page(node: str, page: str) -> str:
    _, separator, name = node.partition("::")
    return page + separator + name


def _is_found_no_more(run: Run, gone: Gone, page: Page | None) -> bool:
    if run.node_id not in gone.nodes or page is None or run.source != page.source:
        return run.node_id in gone.nodes
    return page.sha256 in gone.listings and run.case.get("id") not in page.tests


_Beside = list[tuple[Mapping[str, str], str]]
"""Files beside which a test was run, and the time of its last run beside them."""


def _real_runs(ledger: Ledger, homes: Mapping[str, str]) -> tuple[Mapping[tuple[str, str], _Beside], Mapping[str, str]]:
    """Give the times of last real runs: by node id and listing, and by node id.

    Args:
        ledger: where all machines' runs are recorded.
        homes: the page of each source; a run elsewhere counts as one there.
    """
    same: dict[tuple[str, str], _Beside] = defaultdict(list)
    last: dict[str, str] = {}
    for ran_as, source, listing, modules, when in ledger.times(REAL, EXPECTED, NOT_STARTED, BROKEN):
        node = _on_page(ran_as, homes[source]) if source in homes else ran_as
        same[node, listing].append((modules, when))
        last[node] = max(last.get(node, ""), when)
    return same, last


def _by_test(same: Mapping[tuple[str, str], _Beside]) -> Mapping[tuple[str, str], _Beside]:
    """Put the runs of the variants of a test together: a page whose module is skipped as a whole may have one name for all of them."""
    found: dict[tuple[str, str], _Beside] = defaultdict(list)
    for (node, listing), times in same.items():
        page, separator, name = node.partition("::")
        test, bracket, _ = name.partition("[")
        if bracket:
            found[page + separator + test, listing] += times
    return found


def _differ(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Say whether a file is another one now: only what both runs were beside tells, for machines may have more of it installed."""
    return before is not now and any(now.get(path, digest) != digest for path, digest in before.items())


def smallest_machine(needs: Iterable[str]) -> str:
    """Describe the smallest machine on which all of some needs are met.

    Args:
        needs: as pages say them.

    Returns:
        `4 GPUs with compute capability 9.0`; empty when they are not known, or when no machine meets all of them.
    """
    found = [requirement_of(need) for need in needs]
    return smallest.machine_for(found) if found else ""


def _gpus(needs: Iterable[str]) -> int:
    """Give the most GPUs that any need asks for."""
    return max((found[0] for found in map(gpus_of, map(requirement_of, needs)) if found is not None), default=0)


def requirement_of(text: str) -> Requirement:
    """Read a need as a page says it: `2 GPUs`, `at most 2 GPUs`, `backend nccl`; what is not of a known kind is a condition.

    Args:
        text: the requirement's `text`.
    """
    match = _GPUS.fullmatch(text)
    if match is not None:
        number = f"{_COMPARISONS[match[1] or '']}{match[2]}" if match[2] else "<= 0"
        return Requirement("gpus", number + (match[3] or ""), text)
    kind = next((kind for kind in KINDS if text == kind or text.startswith((f"{kind} ", f"{kind}: ", f"{kind}, "))), "condition")
    return Requirement(kind, text if kind == "condition" else text.removeprefix(kind).lstrip(" :,"), text)


_GPUS = re.compile(r"(?:no GPU(?: at all)?|(exactly |at most )?(\S.*?) GPUs?)( or none)?")
_COMPARISONS = {"": "", "exactly ": "== ", "at most ": "<= "}
