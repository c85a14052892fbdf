"""The canary: a share of what forks have run is run again by new interpreters, and must end alike."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from msgspec import Struct

from rankbook.config import share
from rankbook.pytest_items import ListingItem, worst
from rankbook.reports import Report
from rankbook.running import PHASES


class Canary(Struct, frozen=True):
    """How much is run again.

    Attributes:
        share: between 0 and 1.
    """

    share: float = 0.0

    @classmethod
    def of(cls, text: str) -> Canary:
        """Read a share: `2%`."""
        return cls(share(text))

    def chosen(self, items: Sequence[ListingItem]) -> list[ListingItem]:
        """Choose at random among the items that a fork has run, at least one when the share is above 0."""
        able = [item for item in items if item.phases and item.job.kind.preload and (item.known is None or item.known is item.planned)]
        count = min(len(able), max(1, round(self.share * len(able)))) if self.share else 0
        return sorted(random.sample(able, count), key=lambda item: item.order)


def differences(items: Sequence[ListingItem]) -> Iterator[str]:
    """Run items again by new interpreters, and yield a sentence for each that ends otherwise."""
    under_way = [(item, item.submit_again("the canary runs it again")) for item in items]
    for item, running in under_way:
        item.state.prover.hurry(running)
        after = worst([running.report(item.test, phase) for phase in PHASES])
        before = item.planned or worst(list(item.phases.values()))
        judged = after if item.planned else item.judged(after)
        if item.planned:
            alike = after.outcome.is_skip or (item.planned.would_fail and after.outcome.is_failure)
        else:
            alike = before.outcome == judged.outcome
        if not alike or (not item.planned and before.outcome.is_skip and before.reason != judged.reason):
            yield f"{item.nodeid} ended as {_said(before)}, but as {_said(after)} in new interpreters"


def _said(report: Report) -> str:
    return f"{report.outcome} ({report.reason})" if report.reason else str(report.outcome)
