"""The ranks of a failed run as a diagram: a lane for each, from its start to its end, with what was last heard of it."""

from __future__ import annotations

import html
import re
import signal
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rankbook.listing import RankEnd, Run
from rankbook.site.charts import count, said_before
from rankbook.site.whereabouts import linker

MOST = 32
"""Ranks that a diagram shows; those that did not end in order come first."""
_SAID = re.compile(r"^(rank \d+)(?: of \d+)?:? (.+)$")
_TOP = 24
"""Units of the drawing above the first lane."""
_LONGEST = 30
"""Characters of an end that fit beside its lane."""


class Sheet(Struct, frozen=True):
    """What is drawn upon, in units of the drawing."""

    width: int
    names: int
    """Room left of the lanes."""
    ends: int
    """Room right of them."""
    lane: int
    """Height of a lane."""

    @property
    def room(self) -> int:
        """Length of the longest lane."""
        return self.width - self.names - self.ends


_WIDE, _NARROW = Sheet(720, 84, 196, 28), Sheet(340, 12, 12, 40)
"""For a desk, with names and ends beside the lanes; for a phone, with both above them."""


class Axis(Struct, frozen=True):
    """The time that the lanes are drawn upon: from the first start to the last end, in seconds after the run's start."""

    sheet: Sheet
    first: float
    last: float

    def x(self, at: float) -> str:
        """Give the place of a moment, in units of the drawing."""
        return f"{self.exactly(at):.1f}"

    def exactly(self, at: float) -> float:
        """Give the same, not rounded."""
        return self.sheet.names + (at - self.first) / ((self.last - self.first) or 1.0) * self.sheet.room


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
    called: str
    """Function of torch.distributed that it has called last: `all_reduce (train.py:12)`; empty when that is not known."""
    called_at: float | None
    """Seconds after the program's start at which it has called that."""

    @property
    def after(self) -> str:
        """Function that it has called last, unless it says itself that it waits in it."""
        name = self.called.partition(" (")[0]
        return "" if f" {name} " in f"{self.said} " else name


def lanes(run: Run) -> list[Lane]:
    """Give the ranks of a run, in their order."""
    heard = _heard(run.reason)
    last = {rank.name: place for place, rank in enumerate(run.receipt.ranks)}
    return [
        _lane(rank, rank.doing or (heard.get(rank.name, "") if place == last[rank.name] else ""))
        for place, rank in enumerate(run.receipt.ranks)
    ]


def _lane(rank: RankEnd, said: str) -> Lane:
    end, mark = _end(rank.exit_code)
    return Lane(rank.name, rank.started, rank.started + rank.duration, end, said, rank.entered, mark, rank.called, rank.called_at)


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


def _by_start(found: Sequence[Lane]) -> list[list[Lane]]:
    """Put the ranks of a run together that were started together: where one of a name comes again after all before have ended."""
    starts: list[list[Lane]] = [[]]
    for lane in found:
        own = starts[-1]
        if any(each.name == lane.name for each in own) and max(each.ended for each in own) <= lane.started:
            starts.append([])
        starts[-1].append(lane)
    return starts


def _drawn_lanes(found: Sequence[Lane]) -> tuple[list[Lane], int]:
    """Give the ranks that tell of a failure, and how many before them do not: those of starts from which all have ended in order.

    Ranks that bear one name because they were started after each other say of how many each is one.
    """
    starts = _by_start(found)
    left_out = 0
    while len(starts) > 1 and all(lane.mark == "done" for lane in starts[0]):
        left_out += len(starts.pop(0))
    if len(starts) == 1:
        return starts[0], left_out
    return [replace(lane, name=f"{lane.name} of {len(start)}") for start in starts for lane in start], left_out


def diagram(run: Run, listed: str = "") -> str:
    """Draw the ranks of a run, with a table of the same; empty when it had fewer than two.

    Where it started ranks several times, those of starts that ended well are left out.

    Args:
        run: one that failed, crashed or hung.
        listed: source to whose lines it leads, on the same page; empty where that lists none as the run had it.
    """
    found, left_out = _drawn_lanes(lanes(run))
    if len(found) < 2:
        return ""
    shown = sorted(sorted(found, key=lambda lane: lane.mark == "done")[:MOST], key=found.index)
    more = f"<p>{len(found) - MOST} more ranks are in the table only.</p>" if len(found) > MOST else ""
    more += f"<p>It had started {count(left_out, 'rank')} before, which ended in order.</p>" if left_out else ""
    table = _table(found, linker(listed))
    drawn = _scrolled("Ranks of the last failed run", _svg(shown, _WIDE) + _svg(shown, _NARROW))
    return (
        f'<figure class="rb-ranks">{drawn}{more}<figcaption>Seconds after the start of the run. '
        "<b>▷</b> entered the test, <b>◆</b> called torch.distributed for the last time, <b>✕</b> died, <b>○</b> still alive, "
        f"<b>|</b> ended in order.</figcaption><details><summary>The same as a table</summary>{table}</details></figure>"
    )


def _scrolled(name: str, content: str) -> str:
    return f'<div class="rb-scroll" tabindex="0" role="group" aria-label="{name}">{content}</div>'


def _svg(shown: Sequence[Lane], sheet: Sheet) -> str:
    axis = Axis(sheet, min(lane.started for lane in shown), max(lane.ended for lane in shown))
    height = _TOP + sheet.lane * len(shown) + 8
    drawn = "".join(_drawn(lane, _TOP + sheet.lane * place, axis) for place, lane in enumerate(shown))
    said = html.escape("; ".join(f"{lane.name} {lane.end}" for lane in shown))
    return (
        f'<svg viewBox="0 0 {sheet.width} {height}" width="{sheet.width}" height="{height}" role="img" aria-label="{said}">'
        f"{_ticks(axis, height)}{drawn}</svg>"
    )


def _ticks(axis: Axis, height: int) -> str:
    anchors = ("middle", "middle", "middle") if axis.sheet is _WIDE else ("start", "middle", "end")
    moments = (axis.first, (axis.first + axis.last) / 2, axis.last)
    return "".join(
        f'<line class="rb-tick" x1="{axis.x(at)}" x2="{axis.x(at)}" y1="{_TOP - 4}" y2="{height - 8}"/>'
        f'<text class="rb-small" text-anchor="{anchor}" x="{axis.x(at)}" y="14">{at:.3g} s</text>'
        for at, anchor in zip(moments, anchors, strict=True)
    )


def _drawn(lane: Lane, top: int, axis: Axis) -> str:
    sheet = axis.sheet
    y = top + (sheet.lane // 2 if sheet is _WIDE else sheet.lane - 10)
    start, end = axis.exactly(lane.started), axis.exactly(lane.ended)
    called = f"It called last {lane.called}" if lane.called else ""
    ended = f"{lane.name} {lane.end} {lane.ended:.3g} s after the start of the run"
    about = html.escape(". ".join(filter(None, (ended, lane.said, called))))
    return (
        f'<g class="rb-lane rb-{lane.mark}"><title>{about}</title>{_words(lane, y, sheet)}'
        f'<line x1="{start:.1f}" x2="{max(end, start + 1):.1f}" y1="{y}" y2="{y}"/>'
        f'<circle class="rb-start" cx="{start:.1f}" cy="{y}" r="3"/>{_entered(lane, y, axis)}{_called(lane, y, axis)}'
        f"{_mark(lane.mark, end, y)}</g>"
    )


def _words(lane: Lane, y: int, sheet: Sheet) -> str:
    name, end = html.escape(lane.name[:13]), html.escape(_short(lane))
    after = f"after {html.escape(lane.after[:_LONGEST])}" if lane.after else ""
    if sheet is _NARROW:
        return f'<text x="{sheet.names}" y="{y - 11}">{name}: {" ".join(filter(None, (end, after)))}</text>'
    first, second = (y - 2, y + 10) if after else (y + 4, 0)
    x = sheet.width - sheet.ends + 14
    below = f'<text class="rb-small" x="{x}" y="{second}">{after}</text>' if after else ""
    return f'<text x="0" y="{y + 4}">{name}</text><text class="rb-small" x="{x}" y="{first}">{end}</text>{below}'


def _entered(lane: Lane, y: int, axis: Axis) -> str:
    return "" if lane.entered is None else f'<path d="M{axis.x(lane.entered)} {y - 4}l5 4l-5 4z"/>'


def _called(lane: Lane, y: int, axis: Axis) -> str:
    return "" if lane.called_at is None else f'<path class="rb-call" d="M{axis.x(lane.called_at)} {y - 5}l4 5l-4 5l-4 -5z"/>'


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


def _table(found: Sequence[Lane], linked: Callable[[str], str]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{html.escape(lane.name)}</th><td>{lane.started:.3f} s</td><td>{_seconds(lane.entered)}</td>'
        f"<td>{lane.ended:.3f} s</td>"
        f"<td>{html.escape(lane.end)}</td><td>{linked(_call(lane))}</td><td>{linked(lane.said)}</td></tr>"
        for lane in found
    )
    names = ("Rank", "Started", "Entered the test", "Last seen", "End", "Last call of torch.distributed", "Last heard of it")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    style = said_before(names, set(names) - {"Rank", "End"})
    table = f'<table class="rb-table"{style}><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return _scrolled("Ranks as a table", table)


def _call(lane: Lane) -> str:
    return " after ".join(filter(None, (lane.called, _seconds(lane.called_at))))


def _seconds(at: float | None) -> str:
    return "" if at is None else f"{at:.3f} s"
