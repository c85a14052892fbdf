"""The ranks of a failed run as a diagram: a lane for each, from its start to its end, with what was last heard of it."""

from __future__ import annotations

import html
import re
import signal
from collections.abc import Mapping, Sequence

from msgspec import Struct

from rankbook.listing import RankEnd, Run

MOST = 32
"""Ranks that a diagram shows; those that did not end in order come first."""
_SAID = re.compile(r"^(rank \d+)(?: of \d+)?:? (.+)$")
_WIDTH, _NAMES, _ENDS, _LANE, _TOP = 720, 84, 196, 28, 24
"""Sizes in units of the drawing: its width, the room for names and for how ranks ended, the height of a lane, the room above the first."""
_LONGEST = 30
"""Characters of an end that fit beside its lane."""


class Lane(Struct, frozen=True):
    """One rank."""

    name: str
    started: float
    """Seconds after the program's start."""
    ended: float
    end: str
    """How it ended: `died by SIGKILL`."""
    said: str
    """What was last heard of it: `waits in all_reduce (train.py:12)`; empty when nothing was."""
    entered: float | None
    """Seconds after the program's start at which it entered the test's body; None when that is not known."""
    mark: str
    """Shape of its end: `done`, `died`, `alive`."""


def lanes(run: Run) -> list[Lane]:
    """Give the ranks of a run, in their order."""
    heard = _heard(run.reason)
    return [_lane(rank, rank.doing or heard.get(rank.name, "")) for rank in run.receipt.ranks]


def _lane(rank: RankEnd, said: str) -> Lane:
    end, mark = _end(rank.exit_code)
    return Lane(rank.name, rank.started, rank.started + rank.duration, end, said, rank.entered, mark)


def _end(code: int | None) -> tuple[str, str]:
    if code is None:
        return "still alive when the run ended", "alive"
    if code == 0:
        return "ended in order", "done"
    return (f"died by {_signal(-code)}", "died") if code < 0 else (f"left with exit status {code}", "died")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _heard(reason: str) -> Mapping[str, str]:
    """Read from a reason what it says of each rank: `rank 0 waits in all_reduce (train.py:12); rank 1 died by SIGKILL …`."""
    heard: dict[str, str] = {}
    for part in re.split(r"; (?=rank \d)|\n", reason):
        match = _SAID.match(part.strip())
        if match is not None:
            heard.setdefault(match[1], match[2])
    return heard


def diagram(run: Run) -> str:
    """Draw the ranks of a run, with a table of the same; empty when it had fewer than two.

    Args:
        run: one that failed, crashed or hung.
    """
    found = lanes(run)
    if len(found) < 2:
        return ""
    shown = sorted(sorted(found, key=lambda lane: lane.mark == "done")[:MOST], key=found.index)
    more = f"<p>{len(found) - MOST} more ranks are in the table only.</p>" if len(found) > MOST else ""
    drawn = _scrolled("Ranks of the last failed run", _svg(shown))
    return (
        f'<figure class="rb-ranks">{drawn}{more}<figcaption>Seconds after the start of the run. '
        "<b>▷</b> entered the test, <b>✕</b> died, <b>○</b> still alive, "
        f"<b>|</b> ended in order.</figcaption><details><summary>The same as a table</summary>{_table(found)}</details></figure>"
    )


def _scrolled(name: str, content: str) -> str:
    return f'<div class="rb-scroll" tabindex="0" role="group" aria-label="{name}">{content}</div>'


def _svg(shown: Sequence[Lane]) -> str:
    last = max((lane.ended for lane in shown), default=0.0) or 1.0
    scale = (_WIDTH - _NAMES - _ENDS) / last
    height = _TOP + _LANE * len(shown) + 8
    drawn = "".join(_drawn(lane, _TOP + _LANE * place + _LANE // 2, scale) for place, lane in enumerate(shown))
    said = html.escape("; ".join(f"{lane.name} {lane.end}" for lane in shown))
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img" aria-label="{said}">'
        f"{_axis(last, scale, height)}{drawn}</svg>"
    )


def _axis(last: float, scale: float, height: int) -> str:
    return "".join(
        f'<line class="rb-tick" x1="{_NAMES + at * scale:.1f}" x2="{_NAMES + at * scale:.1f}" y1="{_TOP - 4}" y2="{height - 8}"/>'
        f'<text class="rb-small" text-anchor="middle" x="{_NAMES + at * scale:.1f}" y="14">{at:.3g} s</text>'
        for at in (0.0, last / 2, last)
    )


def _drawn(lane: Lane, y: int, scale: float) -> str:
    start, end = _NAMES + lane.started * scale, _NAMES + lane.ended * scale
    about = html.escape(". ".join(filter(None, (f"{lane.name} {lane.end} {lane.ended:.3g} s after the start of the run", lane.said))))
    return (
        f'<g class="rb-lane rb-{lane.mark}"><title>{about}</title><text x="0" y="{y + 4}">{html.escape(lane.name[:12])}</text>'
        f'<line x1="{start:.1f}" x2="{max(end, start + 1):.1f}" y1="{y}" y2="{y}"/>'
        f'<circle class="rb-start" cx="{start:.1f}" cy="{y}" r="3"/>{_entered(lane, y, scale)}{_mark(lane.mark, end, y)}'
        f'<text class="rb-small" x="{_WIDTH - _ENDS + 14}" y="{y + 4}">{html.escape(_short(lane))}</text></g>'
    )


def _entered(lane: Lane, y: int, scale: float) -> str:
    return "" if lane.entered is None else f'<path d="M{_NAMES + lane.entered * scale:.1f} {y - 4}l5 4l-5 4z"/>'


def _mark(mark: str, x: float, y: int) -> str:
    shapes = {
        "done": f'<path d="M{x:.1f} {y - 6}v12"/>',
        "died": f'<path d="M{x - 5:.1f} {y - 5}l10 10m0 -10l-10 10"/>',
        "alive": f'<circle class="rb-open" cx="{x:.1f}" cy="{y}" r="5"/>',
    }
    return shapes[mark]


def _short(lane: Lane) -> str:
    """Say in a few words how a lane ends: what it waits for; where in the source, if there is room."""
    text = lane.end if lane.mark == "died" else lane.said or lane.end
    text = text if len(text) <= _LONGEST else text.partition(" (")[0]
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _table(found: Sequence[Lane]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{html.escape(lane.name)}</th><td>{lane.started:.3f} s</td><td>{_seconds(lane.entered)}</td>'
        f"<td>{lane.ended:.3f} s</td>"
        f"<td>{html.escape(lane.end)}</td><td>{html.escape(lane.said)}</td></tr>"
        for lane in found
    )
    head = "".join(
        f'<th scope="col">{name}</th>' for name in ("Rank", "Started", "Entered the test", "Last seen", "End", "Last heard of it")
    )
    table = f'<table class="rb-table"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return _scrolled("Ranks as a table", table)


def _seconds(at: float | None) -> str:
    return "" if at is None else f"{at:.3f} s"
