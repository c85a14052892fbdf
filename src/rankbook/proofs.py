"""What need not run again: runs in the ledger that prove the same listing, beside the same files, under the same circumstances."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from rankbook.ledger import Ledger, setting
from rankbook.listing import Outcome, Run


class Proofs:
    """What the ledger proves on one class of hardware, with one minor version of Python and one version of torch.

    Of each test only the last run under these circumstances counts: what has failed since it passed is not proved.

    Args:
        ledger: where runs are recorded.
        machine: name of the hardware; GPUs count by number and model, a CPU without the number of its cores.
        python: version of Python; the minor version counts.
        torch: version of torch.

    Raises:
        LedgerError: the ledger cannot be read.
    """

    def __init__(self, ledger: Ledger, machine: str, python: str, torch: str) -> None:
        self._runs: dict[tuple[str, str], list[Run]] = defaultdict(list)
        for run in ledger.latest(under=setting(machine, python, torch)):
            self._runs[run.page, run.listing].append(run)

    def of(self, page: str, names: Sequence[str], listing: str, modules: Mapping[str, str]) -> list[Run]:
        """Give the last run of each test of a listing, in the order in which pytest collects them, or the one run of a whole listing.

        Which tests a module holds is known when the runs of all of them are: each says of how many tests it is one.

        Args:
            page: path of the page.
            names: part of the node id behind the page; that of the listing's tests goes on after it.
            listing: SHA-256 of the listing's bytes.
            modules: SHA-256 of each file that it would be run beside, by path.

        Returns:
            Runs that passed and others: only those that are `proved` need not run again. Nothing when the listing would have to be
            collected to know its tests.
        """
        node = "::".join((page, *names))
        same = [run for run in self._runs.get((page, listing), ()) if run.modules == modules]
        cases = [run for run in same if "id" in run.case and run.node_id == f"{node}::{run.case['id']}"]
        if not cases:
            return [run for run in same if "id" not in run.case and run.node_id == node][:1]
        whole = cases[-1].case.get("of", 0)
        known = [run for run in cases if run.case.get("of") == whole]
        if len(known) != whole or sorted(run.case.get("place", -1) for run in known) != list(range(whole)):
            return []
        return sorted(known, key=lambda run: run.case["place"])


def proved(runs: Sequence[Run]) -> Iterator[Run]:
    """Yield the runs that need not be repeated: those that passed."""
    return (run for run in runs if run.outcome is Outcome.PASSED)


def sentence(run: Run) -> str:
    """Say where and when a run has proved its test: `passed on CPU, 2 cores, x86_64, 2026-11-20 14:05, commit 1a2b3c`."""
    commit = f"commit {run.commit}" if run.commit else ""
    return f"passed on {', '.join(filter(None, (run.machine, _minute(run.when), commit)))}"


def _minute(when: str) -> str:
    return datetime.fromisoformat(when).strftime("%Y-%m-%d %H:%M UTC") if when else ""
