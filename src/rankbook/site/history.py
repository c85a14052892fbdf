"""What was recorded of a test or a listing, small enough to be kept of all of them: its last runs, and the outcomes on each hardware."""

from __future__ import annotations

import html
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from msgspec import Struct, field

from rankbook.listing import Outcome, Run

OUTCOMES = tuple(Outcome)
_NUMBERS = {outcome.value: number for number, outcome in enumerate(OUTCOMES)}
_LONGEST = 1e9
_EXPECTED_WORD = "failed as expected"
UNPROVED_WORD = "no proof"
"""What a run is called that ended as one does that proves something, and left no evidence: with GPUs that were only declared, say."""
_BEAT = struct.Struct("<BBHHIf")
"""Outcome, whether it left evidence, what it ran, version of torch, seconds since 1970, seconds that it took."""


class Beat(NamedTuple):
    """One run, as a history shows it."""

    outcome: Outcome
    is_real: bool
    """Whether it left evidence that the test ran."""
    version: str
    """What it ran: its listing, and the files beside it."""
    torch: str
    when: int
    """Seconds since 1970."""
    duration: float
    """Seconds."""

    @property
    def word(self) -> str:
        """How it ended, in the words of its badge: what is skipped and leaves evidence has failed as a mark expects."""
        if self.is_real:
            return _EXPECTED_WORD if self.outcome is Outcome.SKIPPED else self.outcome.value
        return UNPROVED_WORD if self.outcome is Outcome.PASSED or self.outcome.is_failure else self.outcome.value


class Changes(NamedTuple):
    """How often the outcome of a test changed from one run to the next of the same version, hardware and torch."""

    number: int = 0
    pairs: int = 0
    """Of such runs, one after the other."""
    runs: int = 0
    """All of these."""
    is_back: bool = False
    """Whether it ended again as it had before a change."""


class Recorded(Struct, frozen=True):
    """A test or a listing, and what was seen of it."""

    newest: Run
    """The run that was recorded last."""
    real: tuple[Run, ...] = ()
    """The newest run that left evidence on each class of hardware, of each version of its listing and the files beside it; oldest first."""
    versions: tuple[str, ...] = ()
    """Of these runs, what each ran, as beats have it."""
    hardware: tuple[str, ...] = ()
    """Of these runs, the class of hardware of each, as beats have it."""
    other: Run | None = None
    """The newest run that left none: skipped, vacuous, degenerate, not run, or on GPUs that were only declared."""
    beats: Mapping[str, bytes] = field(default_factory=dict)
    """By class of hardware: the last runs, packed, oldest first."""
    words: tuple[str, ...] = ()
    """What beats refer to by number: what they ran, versions of torch."""

    @property
    def name(self) -> str:
        """Part of the node id behind the page."""
        return self.newest.node_id.partition("::")[2] or self.newest.node_id

    def strip(self, hardware: str) -> Iterator[Beat]:
        """Give the last runs on a class of hardware, oldest first."""
        return map(self._beat, _BEAT.iter_unpack(self.beats[hardware]))

    def last(self, hardware: str) -> Beat:
        """Give the last run on a class of hardware."""
        return self._beat(_BEAT.unpack(self.beats[hardware][-_BEAT.size :]))

    def _beat(self, packed: tuple[Any, ...]) -> Beat:
        outcome, is_real, version, torch, when, duration = packed
        return Beat(OUTCOMES[outcome], bool(is_real), self.words[version], self.words[torch], when, duration)

    def changes(self) -> Changes:
        """Count how often its outcome changed though what it ran, hardware and torch did not."""
        if len({code for data in self.beats.values() for code in data[:: _BEAT.size]}) == 1:
            return Changes()  # all ended alike
        alike = [
            [(beat.outcome.is_failure, beat.outcome is Outcome.SKIPPED) for beat in beats]
            for hardware in self.beats
            for _, beats in groupby((beat for beat in self.strip(hardware) if beat.is_real), key=lambda beat: (beat.version, beat.torch))
        ]
        changed = [sum(before != after for before, after in pairwise(ends)) for ends in alike]
        runs = sum(len(ends) for ends in alike if len(ends) > 1)
        return Changes(sum(changed), sum(len(ends) - 1 for ends in alike), runs, any(number > 1 for number in changed))


def beat(outcome: str, is_real: bool, version: int, torch: int, when: str, duration: float) -> bytes:  # noqa: FBT001, PLR0913, PLR0917
    """Pack one run for a history.

    Args:
        outcome: how it ended.
        is_real: whether it left evidence that the test ran.
        version: number of what it ran among the words.
        torch: number of its version of torch among them.
        when: its time, as a run has it.
        duration: seconds that it took.

    Raises:
        ValueError: it ended in a way that this rankbook does not know.
    """
    return _BEAT.pack(_NUMBERS[outcome], is_real, version, torch, _seconds(when), min(max(duration, 0.0), _LONGEST))


def _seconds(when: str) -> int:
    try:
        return min(max(int(moment(when).timestamp()), 0), 2**32 - 1)
    except ValueError:
        return 0


def moment(when: str) -> datetime:
    """Read the time of a run.

    Raises:
        ValueError: it is none.
    """
    found = datetime.fromisoformat(when)
    try:
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError as error:  # at the beginning of the first year, or at the end of the last one
        raise ValueError(str(error)) from error


def time_of(when: str) -> str:
    """Write the time of a run as HTML: a date that a script may turn into `two days ago`."""
    try:
        found = moment(when)
    except ValueError:
        return html.escape(when)
    return _time(found)


def _time(found: datetime) -> str:
    return f'<time datetime="{found.isoformat(timespec="seconds")}">{found:%Y-%m-%d %H:%M} UTC</time>'


_SIGNS: Mapping[Outcome, tuple[str, str]] = {
    Outcome.PASSED: ("✓", "good"),
    Outcome.FAILED: ("✗", "bad"),
    Outcome.CRASHED: ("✗", "bad"),
    Outcome.HUNG: ("✗", "bad"),
}
"""How a strip shows an outcome: by its shape, and by a colour; anything else ran nothing."""
_NOTHING_RAN = ("–", "none")
_EXPECTED = ("✓", "none")


def _sign(beat: Beat) -> tuple[str, str]:
    if not beat.is_real:
        return _NOTHING_RAN
    return _SIGNS.get(beat.outcome, _EXPECTED)


def history(found: Recorded) -> str:
    """Write the last runs as HTML: a sign for each, the newest at the right; where there is more to say it opens to that. No script."""
    rows = {where: list(found.strip(where)) for where in sorted(found.beats)}
    signs = " ".join(_signs(beats) for beats in rows.values())
    if len(rows) == 1 and all(beat.word == beats[0].word for beats in rows.values() for beat in beats):
        return signs
    listed = "".join(f"<li>{_line(where, beats)}</li>" for where, beats in rows.items())
    return f"<details><summary>{signs}</summary><ul>{listed}</ul></details>"


def number_of_runs(found: Recorded) -> int:
    """Count the runs that are shown; one is no history."""
    return sum(len(data) for data in found.beats.values()) // _BEAT.size


def in_short(found: Recorded) -> str:
    """Say how the last runs ended: `last 14 runs: 13 passed, 1 failed`."""
    return _counts([beat for where in sorted(found.beats) for beat in found.strip(where)])


def _counts(beats: Sequence[Beat]) -> str:
    counts = Counter(beat.word for beat in beats)
    number = "1 run" if len(beats) == 1 else f"last {len(beats)} runs"
    return f"{number}: {', '.join(f'{count} {word}' for word, count in counts.most_common())}"


def _signs(beats: Sequence[Beat]) -> str:
    signs = "".join(
        f'<b class="rb-{colour}">{"".join(sign for sign, _ in group)}</b>'
        for colour, group in groupby(map(_sign, beats), key=lambda sign: sign[1])
    )
    return f'<span class="rb-strip" role="img" aria-label="{_counts(beats)}">{signs}</span>'


def _line(where: str, beats: Sequence[Beat]) -> str:
    newest = beats[-1]
    torch = f", torch {html.escape(newest.torch)}" if newest.torch else ""
    time = _time(_date(newest)) if newest.when else "at a time that is not known"
    return f"{html.escape(where) or 'unknown hardware'}: {newest.word}{torch}, {time}{_changed(beats)} <small>({_counts(beats)})</small>"


def _changed(beats: Sequence[Beat]) -> str:
    """Say since when it has ended as it does now, and how and when it ended before that; nothing where it has always ended so."""
    since = next((place for place in range(len(beats) - 1, 0, -1) if beats[place - 1].word != beats[-1].word), 0)
    before = beats[since - 1]
    if not (since and before.when and beats[since].when):
        return ""
    return f"; so since {_date(beats[since]):%Y-%m-%d}, {before.word} on {_date(before):%Y-%m-%d}"


def _date(beat: Beat) -> datetime:
    return datetime.fromtimestamp(beat.when, UTC)
