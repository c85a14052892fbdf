"""What is known of an item before it runs: whether it can run here, and how many GPUs it gets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from msgspec.structs import replace

from rankbook import machine
from rankbook.config import Settings
from rankbook.jobs import Job
from rankbook.listing import Outcome
from rankbook.needs import ANY
from rankbook.planning import Claim, claim_of_source, gpus_wanted, needs_of, needs_of_all, plan_of, with_tree
from rankbook.prove import PageSources, Prover
from rankbook.reports import Report
from rankbook.required import BROKEN, Required, need_of_reason
from rankbook.requirements import FAILS, Requirement
from rankbook.smallest import owed_to
from rankbook.verdict import Machine


class Outlook:
    """Tells from what the pages say, and from what is here, what becomes of an item.

    Args:
        settings: whether tests are planned, and the GPUs that are declared.
        prover: knows the GPUs that a listing can be granted.
        required: what the machine was promised to have.
    """

    def __init__(self, settings: Settings, prover: Prover, required: Sequence[Required] = ()) -> None:
        self._settings = settings
        self._prover = prover
        self._required = tuple(required)

    @cached_property
    def _machine(self) -> Machine:
        here = machine.facts(self._settings.gpus)
        return replace(here, gpus=self._prover.most_gpus, capabilities=None) if self._prover.is_cluster else here

    def unmet(self, job: Job, test: str, sources: PageSources) -> Report | None:
        """Give the outcome of an item that cannot run here; None for one that is to be tried.

        Args:
            job: its listing.
            test: its test; empty for the whole listing.
            sources: where the other files of its tree are.
        """
        # What it needs to be collected is there: pytest has collected it.
        needs = [need for need in _needs(job, test) if need.otherwise != "absent"]
        if not needs or not (self._settings.plan or job.listing.about is None):
            return None
        planned = plan_of(needs, self._machine_of(job, sources))
        if planned.word != "skipped" or planned.need is None:
            return None
        would_fail = planned.need.otherwise == FAILS
        return self._promised(Report(Outcome.SKIPPED, planned.reason, needs=(planned.need.text,), would_fail=would_fail), planned.need)

    def unmet_by_all(self, job: Job, lacking: str, sources: PageSources) -> Report | None:
        """Give the outcome of a module of which no test can run here, as its page says, and that cannot be imported either.

        Args:
            job: its listing.
            lacking: what its import has raised; empty where that has nothing to do with the machine.
            sources: where the other files of its tree are.
        """
        if not lacking or not self._settings.plan:
            return None
        more = f"; and its import failed: {lacking.splitlines()[0]}"
        return self._unmet_by_each(job, sources, ("none of its tests can run here", more))

    def uncollected(self, job: Job, sources: PageSources) -> Report | None:
        """Give the outcome of a module that can be imported, and of whose tests pytest collects none; None where its page lists none.

        Args:
            job: its listing.
            sources: where the other files of its tree are.
        """
        known = needs_of_all(job.listing)
        if not known:
            return None
        met = Report(Outcome.VACUOUS, f"the module imports, and pytest collects no test from it; its page lists {', '.join(known)}")
        return self._unmet_by_each(job, sources, ("pytest collects none of its tests here", "")) or met

    def listed(self, job: Job) -> tuple[str, ...]:
        """Give the node ids of the tests that a listing's page lists; of several of which it says only how they begin, that beginning."""
        return tuple(dict.fromkeys(test.removesuffix(ANY) for test in needs_of_all(job.listing)))

    def _unmet_by_each(self, job: Job, sources: PageSources, said: tuple[str, str]) -> Report | None:
        """Give a skip, if that is how each test of a module is planned here.

        Args:
            job: its listing.
            sources: where the other files of its tree are.
            said: what is said before and after what is lacking.
        """
        here = self._machine_of(job, sources)
        planned = [plan_of(wanted, here) for wanted in needs_of_all(job.listing).values()]
        needs = [each.need for each in planned if each.word in ("absent", "skipped") and each.need is not None]
        if not needs or len(needs) < len(planned):
            return None
        reason = f"{said[0]}: {'; '.join(dict.fromkeys(each.reason for each in planned))}{said[1]}"
        report = Report(Outcome.SKIPPED, reason, needs=tuple(dict.fromkeys(need.text for need in needs)))
        return next((red for need in needs if (red := self._promised(report, need)) is not report), report)

    def _machine_of(self, job: Job, sources: PageSources) -> Machine:
        about = job.listing.about
        return with_tree(self._machine, about.source, sources.data) if about is not None else self._machine

    def claim(self, job: Job, test: str) -> Claim:
        """Give what an item claims of the GPUs; nothing on a machine that has none."""
        count = self._prover.most_gpus
        if not count:
            return Claim()
        if job.listing.about is not None or (job.kind.has_tests and "gpus" not in job.placed.options):
            return claim_of_source(_needs(job, test), job.listing.text, count)
        return Claim(gpus_wanted(_needs(job, test), count) or 0, shared="share" in job.placed.options)

    def needs_of(self, job: Job, test: str) -> tuple[str, ...]:
        """Give what an item needs, as words."""
        return tuple(dict.fromkeys(need.text for need in owed_to(_needs(job, test))))

    def lacking(self) -> list[str]:
        """Say what was promised and is not here, a sentence each."""
        return [sentence for required in self._required if (sentence := required.missing(self._machine))]

    def judge(self, report: Report) -> Report:
        """Turn a skip red whose need was promised to be met here."""
        if not self._required or report.outcome is not Outcome.SKIPPED or report.wasxfail is not None:
            return report
        return self._promised(report, need_of_reason(report.reason))

    def _promised(self, report: Report, need: Requirement | None) -> Report:
        promised = next((entry for entry in self._required if need is not None and entry.covers(need)), None)
        if promised is None:
            return report
        return replace(report, outcome=Outcome.FAILED, reason=f"{report.reason}; --require {promised.text}{BROKEN}")


def _needs(job: Job, test: str) -> tuple[Requirement, ...]:
    """Give what the page says that an item needs: the page of a source by test, the fence of a guide by its options."""
    if job.listing.about is not None:
        return needs_of(job.listing, test)
    if job.listing.problem is not None:
        return ()
    options = job.placed.options
    found = [Requirement("gpus", options["gpus"], f"{{gpus={options['gpus']}}}")] if "gpus" in options else []
    if "backend" in options:
        found.append(Requirement("backend", options["backend"], f"{{backend={options['backend']}}}"))
    if "ranks" in options:
        most = max(options["ranks"].split(","), key=int).strip()
        found.append(Requirement("world size", most, f"{{ranks={most}}}", otherwise=""))
    return tuple(found)
