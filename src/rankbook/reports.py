"""How a listing, or one phase of a test, ended, in terms of the page: its path, its lines, and what a reader can do about it."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from rankbook.jobs import Job
from rankbook.listing import Ended, Outcome, Program, RankEnd, Receipt


class Report(Struct, frozen=True):
    """How one phase of one test, or of one whole listing, ended."""

    outcome: Outcome
    reason: str = ""
    text: str = ""
    """What a reader needs to understand it; paths and lines are those of the page."""
    line: int | None = None
    """Line on the page."""
    duration: float = 0.0
    """Seconds."""
    ranks: int = 0
    wasxfail: str | None = None
    sections: tuple[tuple[str, str], ...] = ()
    receipt: Receipt = field(default_factory=Receipt)
    needs: tuple[str, ...] = ()
    """What it lacked, as words: `2 GPUs`."""
    would_fail: bool = False
    """Of a skip: whether it is red, rather than skipped by itself, where it is tried all the same."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    """What it printed, by the rank of an expected output, where that differs from what the page shows."""


PASSED = Report(Outcome.PASSED)
MOST_WAITING = 4
"""Processes of which a reason says what they were doing; the text says it of all."""


def report_of(job: Job, event: Mapping[str, Any], program: Program) -> Report:
    """Turn an event of a program into a report in terms of the page."""
    line = event.get("line")
    reason = on_page(job, program, event.get("reason") or "")
    text = on_page(job, program, event.get("text") or "")
    if event.get("missing"):
        reason += f"; {where_to_get(event['missing'], job)}"
    return Report(
        Outcome(event["outcome"]),
        reason,
        text,
        event.get("page_line") or (job.placed.page_line(line) if line else None),
        event.get("duration") or 0.0,
        event.get("ranks") or 0,
        on_page(job, program, event["wasxfail"]) if "wasxfail" in event else None,
        tuple((title, on_page(job, program, content)) for title, content in event.get("sections") or ()),
        _placed(Receipt.of(event.get("receipt") or {}), job, program, Outcome(event["outcome"])),
        outputs=event.get("outputs") or {},
    )


def abnormal(job: Job, program: Program, ended: Ended, when: str = "") -> Report:
    """Report a process that ended without saying how its listing did."""
    output = on_page(job, program, ended.output)
    outcome, reason = _how(program, ended, when)
    waiting = on_page(job, program, "\n".join(ended.waiting))
    text = "\n".join(filter(None, (waiting, output)))
    said = "; ".join((reason, *waiting.splitlines()[:MOST_WAITING]))
    receipt = _placed(Receipt(tuple(_doing(rank, waiting) for rank in ended.ranks)), job, program, outcome)
    return Report(outcome, said, text, ranks=len(ended.ranks), receipt=receipt)


def _placed(receipt: Receipt, job: Job, program: Program, outcome: Outcome) -> Receipt:
    """Put lines of the page where ranks have called something last; of what has not failed nobody asks that."""
    if not any(rank.called for rank in receipt.ranks):
        return receipt
    if not outcome.is_failure:
        return replace(receipt, ranks=tuple(replace(rank, called="", called_at=None) for rank in receipt.ranks))
    return replace(receipt, ranks=tuple(replace(rank, called=on_page(job, program, rank.called)) for rank in receipt.ranks))


def _doing(rank: RankEnd, waiting: str) -> RankEnd:
    """Add to a rank's end what it was doing when its program was ended; one that had ended in order did nothing."""
    if rank.exit_code == 0:
        return rank
    said = (line.removeprefix(f"{rank.name} ") for line in waiting.splitlines() if line.startswith(f"{rank.name} "))
    return replace(rank, doing=next(said, ""))


def _how(program: Program, ended: Ended, when: str) -> tuple[Outcome, str]:
    if ended.death is not None:
        return Outcome.CRASHED, f"{said_of(ended.death)} {when}".strip()
    if ended.hung:
        return Outcome.HUNG, f"it had not ended after {program.timeout:g} s {when}".strip()
    code = ended.exit_code
    if code is None and ended.note:
        return Outcome.CRASHED, f"its process was lost {when}: {ended.note}"
    how = "was lost" if code is None else f"died by {_signal(-code)}" if code < 0 else f"left with exit status {code}"
    return Outcome.CRASHED, f"its process {how} {when}".strip()


def said_of(rank: RankEnd) -> str:
    """Say how a rank died and when."""
    code = rank.exit_code
    how = "died" if code is None else f"died by {_signal(-code)}" if code < 0 else f"left with exit status {code}"
    return f"{rank.name} {how} {rank.duration:.1f} s after its start"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def broken_pytest(job: Job, program: Program, ended: Ended, status: int, when: str) -> Report:
    """Report a pytest that refuses to run the module: a conftest file that cannot be imported, say."""
    output = on_page(job, program, ended.output)
    last = [line.removeprefix("E ").strip() for line in output.strip().splitlines()[-1:]]
    return Report(Outcome.FAILED, ": ".join((f"its pytest ended with status {status} {when}", *last)), output)


def on_page(job: Job, program: Program, text: str) -> str:
    """Put the page's path and lines in the place of those of the mirror tree; lone surrogates, which no file takes, are written out."""
    text = text.encode(errors="backslashreplace").decode()
    inside = rf"(?<![\w/.])(?:{re.escape(program.root)}/)?{re.escape(program.path)}(\", line |: line |:)(\d+)"
    text = re.sub(inside, lambda match: f"{job.listing.page}{match[1]}{job.placed.page_line(int(match[2]))}", text)
    text = text.replace(f"{program.root}/{program.path}", job.listing.page)
    return text.replace(f"{program.root}/", "")


def where_to_get(module: str, job: Job) -> str:
    """Say where a module that a listing imports, and that nothing has, would come from."""
    package, _, inner = module.rpartition(".")
    if package:  # Python names the first part that is not there
        return f"'{package}' is there, and has no '{inner}': correct the import, or have the '{package}' imported that holds it"
    about = job.listing.about
    if about is None:
        return f"install the package that has '{module}', or name its folder in pytest's settings: {_SETTING}"
    sibling = PurePosixPath(about.source).parent / f"{module}.py"
    return (
        f"no page shows {sibling}, and no folder named by pytest's `pythonpath` or by --source-path has '{module}': "
        f"install the package that has it, or name its folder in pytest's settings: {_SETTING}"
    )


_SETTING = 'pythonpath = ["src"], say'
"""A setting of pytest, as an example."""
