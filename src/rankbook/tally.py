"""The count of all listings of a session: each in exactly one way to end, so that the sum is the number that the site shows."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct, field
from msgspec.structs import asdict

from rankbook.listing import Outcome

Register = dict[str, list[tuple[int, bool, bool]]]
"""By page: for each of its listings the line, whether it is code, and whether it lies inside another listing."""


class Tally(Struct, frozen=True):
    """Listings by the way they ended."""

    pages: int = 0
    listings: int = 0
    """Listings that the site shows; one with the output that it prints is one."""
    inside: int = 0
    """Listings inside Markdown sources, which the site shows as part of another; counted in the outcomes below like all others."""
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    proved_earlier: int = 0
    """Not run again, because the ledger proves them."""
    not_code: int = 0
    not_run: int = 0
    """Deselected, or not reached after `-x`."""
    reasons: dict[str, int] = field(default_factory=dict)
    """Tests and listings skipped, by reason."""
    endings: dict[str, int] = field(default_factory=dict)
    """Tests and listings, by the way they ended: `crashed`, `vacuous` ..."""

    def as_json(self) -> dict[str, object]:
        """Give the counts as a JSON object."""
        return asdict(self)

    def sentence(self) -> str:
        """Give the counts as one line."""
        inside = f" (and {self.inside} inside Markdown sources)" if self.inside else ""
        parts = [f"{self.passed} passed", f"{self.failed} failed", f"{self.skipped} skipped", f"{self.not_code} not code"]
        parts += [f"{self.proved_earlier} proved earlier"] if self.proved_earlier else []
        parts += [f"{self.not_run} not run"] if self.not_run else []
        return f"{_count(self.pages, 'page')}, {_count(self.listings, 'listing')}{inside}: {', '.join(parts)}"

    def tests(self) -> str:
        """Give the number of tests and listings by the way they ended, as one line."""
        return ", ".join(f"{number} {name}" for name, number in self.endings.items())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def count(register: Register, outcomes: dict[tuple[str, int], list[tuple[Outcome, str]]]) -> Tally:
    """Count the listings of a session.

    Args:
        register: all listings collected.
        outcomes: by page and line of a listing, what its tests, or the listing itself, ended as, with the reason.
    """
    ends: Counter[str] = Counter()
    for page, entries in register.items():
        for line, is_code, _ in entries:
            ends[_end([outcome for outcome, _ in outcomes.get((page, line), [])]) if is_code else "not_code"] += 1
    rows = [row for entries in register.values() for row in entries]
    skipped = [reason for found in outcomes.values() for outcome, reason in found if outcome.is_skip and outcome is not Outcome.PROVED]
    endings = Counter(str(outcome) for found in outcomes.values() for outcome, _ in found)
    return Tally(
        pages=len(register),
        listings=sum(not inside for _, _, inside in rows),
        inside=sum(inside for _, _, inside in rows),
        reasons=dict(Counter(skipped).most_common()),
        endings={str(outcome): endings[outcome] for outcome in Outcome if endings[outcome]},
        **ends,
    )


def _end(outcomes: list[Outcome]) -> str:
    """Give the way a listing ended by those of its tests: one failure fails it, one pass passes it."""
    if not outcomes:
        return "not_run"
    if any(outcome.is_failure for outcome in outcomes):
        return "failed"
    if Outcome.PASSED in outcomes:
        return "passed"
    return "proved_earlier" if Outcome.PROVED in outcomes else "skipped"
