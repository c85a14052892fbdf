"""How a test or a listing is shown: by its best evidence, for the text that stands on the page, and never greener than that."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Container, Iterable, Mapping
from enum import Enum

from msgspec import Struct

from rankbook.listing import Outcome, Run
from rankbook.site.history import UNPROVED_WORD, Recorded, in_short, time_of
from rankbook.site.whereabouts import linker


class Group(Enum):
    """What counts alike in a chart: its word, the class of its colour, and whether a machine has run it as it is now."""

    PASSED = ("passed", "passed", True)
    EXPECTED = ("failed as expected", "expected", True)
    FAILED = ("failed", "failed", True)
    OLDER = ("older version", "older", False)
    SKIPPED = ("skipped", "skipped", False)
    UNPROVED = (UNPROVED_WORD, "unproved", False)
    NEVER = ("never run", "never", False)

    def __init__(self, word: str, css: str, ran: bool) -> None:  # noqa: FBT001 - a row of a table
        self.word = word
        self.css = css
        self.ran = ran


class Shown(Struct, frozen=True):
    """How one test or listing is shown."""

    group: Group
    word: str
    """Of its badge."""
    note: str
    """Why its last run is no proof of what stands on the page, or what it lacked, as a clause; empty when there is nothing to say."""
    run: Run
    """The run that the badge is about."""
    found: Recorded
    present: frozenset[str] = frozenset()
    """What was run of it, as beats have it, that is as it is now."""
    listed: str = ""
    """Source that the run names lines of and that its page lists as the run had it; empty where there is none."""


def _unchanged(_run: Run) -> str:
    return ""


def shown(found: Recorded, current: Container[str] | None, changed: Callable[[Run], str] = _unchanged) -> Shown:
    """Decide how a test or a listing is shown.

    Of the runs of its present text, beside the present files, the newest on each class of hardware counts, whatever else may have differed,
    as command lines and files that Git ignores do; of these one that failed counts before one that passed.

    Args:
        found: what was recorded of it.
        current: hashes of which one is that of its present text; None when that is not known.
        changed: names a file beside which a run was, and that is another now; empty when there is none.
    """
    if current is None:
        return _unknown(found)
    rows = zip(found.real, found.versions, found.hardware, strict=True)
    present = [row for row in rows if row[0].listing in current and not changed(row[0])]
    if present:
        real = list({hardware: run for run, _, hardware in present}.values())
        failed = [run for run in real if run.outcome.is_failure]
        run = max(failed or real, key=lambda run: run.when)
        group = Group.FAILED if failed else Group.PASSED if run.outcome is Outcome.PASSED else Group.EXPECTED
        word = Group.EXPECTED.word if group is Group.EXPECTED else run.outcome.value
        return Shown(group, word, "", run, found, frozenset(version for _, version, _ in present))
    other = found.other
    if other is not None and ((other.listing in current and not changed(other)) or not found.real):
        return _unreal(found, other, "" if other.listing in current else "that was an older version of this listing")
    run = max(found.real, key=lambda run: (run.listing in current, run.when))
    file = changed(run) if run.listing in current else ""
    note = f"it {_ENDED[run.outcome]}, but {file} has changed since" if file else f"an older version of this listing {_ENDED[run.outcome]}"
    return Shown(Group.OLDER, Group.OLDER.word, note, run, found)


def never_run(page: str, name: str) -> Shown:
    """Show a listing that was never run.

    Args:
        page: that holds it.
        name: the part of its node id behind the page.
    """
    run = Run(page, f"{page}::{name}", "", "", 0, "", Outcome.NOT_RUN)
    return Shown(Group.NEVER, Group.NEVER.word, "", run, Recorded(run))


def _unknown(found: Recorded) -> Shown:
    run = found.newest
    if run is found.other:
        return _unreal(found, run, "")
    return Shown(Group.OLDER, f"{_ENDED[run.outcome]} once", "whether its listing has changed since is not known", run, found)


def _unreal(found: Recorded, run: Run, older: str) -> Shown:
    """Show a run that left no evidence."""
    if run.outcome not in _ENDED or run.outcome is Outcome.SKIPPED:
        group = Group.SKIPPED if run.outcome is Outcome.SKIPPED else Group.UNPROVED
        return Shown(group, run.outcome.value, older, run, found)
    why = f"it {_ENDED[run.outcome]} with GPUs that were only declared" if "; declared: " in run.machine else ""
    return Shown(Group.UNPROVED, Group.UNPROVED.word, "; ".join(filter(None, (why, older))), run, found)


_ENDED: Mapping[Outcome, str] = {
    Outcome.PASSED: "passed",
    Outcome.FAILED: "failed",
    Outcome.CRASHED: "crashed",
    Outcome.HUNG: "hung",
    Outcome.SKIPPED: "failed as expected",
}
"""How a run that left evidence ended."""


def badge(group: Group, word: str = "") -> str:
    """Write a badge: the word carries the meaning, the colour repeats it."""
    return f'<span class="rankbook-outcome rankbook-{group.css}">{html.escape(word or group.word)}</span>'


def circumstances(run: Run) -> str:
    """Say where and when a run was, as HTML: `on 2 × NVIDIA H200, torch 2.13.0, 2026-11-20 14:05 UTC`."""
    hardware = f"on {html.escape(run.machine)}" if run.machine else ""
    torch = f"torch {html.escape(run.torch)}" if run.torch else ""
    return ", ".join(filter(None, (hardware, torch, time_of(run.when) if run.when else "")))


def why(one: Shown) -> str:
    """Say why it ended as it did, and why that is no proof, as HTML: what is long opens from its line that says most; empty for nothing."""
    reason = one.run.reason.strip()
    linked = linker(one.listed)
    said = linked("; ".join(filter(None, (reason, one.note))))
    if len(reason) <= _FEW:
        return said
    if len(reason) <= _MOST_SHOWN and reason.count("\n") < _MOST_LINES:
        return f'<span class="rb-why">{said}</span>'
    short = html.escape("; ".join(filter(None, (in_a_line(reason), one.note))))
    return f'<details class="rb-why"><summary>{short}</summary><pre>{linked(reason)}</pre></details>'


def in_a_line(reason: str, most: int = 160) -> str:
    """Give the line of a reason that says most: where one only announces what was raised elsewhere, with what that was.

    Of several ranks the first one counts that did not just lose its connection to another.
    """
    line = reason.partition("\n")[0]
    heads = [match for match in _ANNOUNCED.finditer(reason) if match.start() == 0 or _OF_RANK.search(match[0])]
    if line.rstrip().endswith(":") and heads:
        ends = [*(head.start() for head in heads[1:]), len(reason)]
        pairs = [(head[0].strip(), _RAISED.search(reason, head.end(), end)) for head, end in zip(heads, ends, strict=True)]
        told = [f"{head} {raised[0]}" for head, raised in pairs if raised]
        line = next((each for each in told if not _LOST.search(each)), told[0] if told else line)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def in_short_of(one: Shown) -> str:
    """Say in one line of text how it ended, where and when, and how it ended before."""
    run = one.run
    if one.group is Group.NEVER:
        return "no machine has tried it"
    where = ", ".join(filter(None, (f"on {run.machine}" if run.machine else "", f"torch {run.torch}" if run.torch else "", run.when[:10])))
    return "; ".join(filter(None, (f"{one.word} {where}", in_a_line(run.reason, _MOST_REASON), in_short(one.found))))


def circumstances_of(ones: Iterable[Shown]) -> str:
    """Say in one line of text where and when the runs of several were: `on 2 × NVIDIA H200, torch 2.13.0, 2026-11-20 to 2026-11-22`."""
    runs = [one.run for one in ones if one.group is not Group.NEVER]
    machines, versions, dates = (sorted(set(filter(None, told))) for told in (
        (run.machine for run in runs), (run.torch for run in runs), (run.when[:10] for run in runs)
    ))  # fmt: skip
    named = " and on ".join(machines) if len(machines) <= _MOST_MACHINES else f"{len(machines)} kinds of hardware"
    torch = f"torch {versions[0]}" if len(versions) == 1 else ""
    return ", ".join(filter(None, (f"on {named}" if named else "", torch, " to ".join(dict.fromkeys((*dates[:1], *dates[-1:]))))))


def why_in_short(one: Shown) -> str:
    """Say in one line of text why it proves nothing; empty where there is nothing to say."""
    return "; ".join(filter(None, (in_a_line(one.run.reason.strip(), _MOST_REASON), one.note)))


_MOST_REASON = 120
_MOST_MACHINES = 2
"""Kinds of hardware that are named in a line."""
_FEW, _MOST_SHOWN, _MOST_LINES = 40, 300, 5
"""Characters of a reason that need no room of their own, and characters and lines of one that is shown without being opened."""
_ANNOUNCED = re.compile(r"^\S.*:[ \t]*$", re.MULTILINE)
_OF_RANK = re.compile(r"\b(?:Process|Thread|Rank) \d+ exited\b")
"""Lines behind which a traceback stands; those of other ranks than the first say whose it is."""
_LOST = re.compile(r"(?i)connection (?:was )?(?:closed|reset|refused)|broken pipe|timed out waiting|watchdog")
"""What a rank says that another one has left alone."""
_RAISED = re.compile(r"^[\w.]*(?:Error|Exception|Interrupt|Exit|Failed)\b.*", re.MULTILINE)
"""The last line of a traceback."""


NOT_RUN = "No listing of this page has been run yet."
"""What a page says of which no run is known."""
