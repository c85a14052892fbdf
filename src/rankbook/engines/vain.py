"""Waiting in vain: after a rank's death, whether the others are idle because they wait for it.

Torch's harnesses look at a dead rank only when all others have ended or a timeout of minutes is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from rankbook.engines import stacks

PATIENCE = 1.1
"""Seconds after a death in which the others may notice it themselves."""
LENIENCE = 10.0
"""The same after a rank has left by `os._exit(0)`: it may have been meant, to see how the others fare, in collectives with a timeout."""
SPAN = 0.7
"""Seconds over which the processor time of the others is measured."""
AGAIN = 1.5
"""Seconds until the next look when somebody was at work; each later look waits half as long again."""
IDLE_SHARE = 0.06
"""Share of a processor that an idle process may use: harnesses poll."""


class Vigil(Struct):
    """The looks at the other processes after a death."""

    processor_time: Callable[[int], int]
    """In clock ticks, by process id."""
    is_at_work: Callable[[int], bool]
    ticks: int = 100
    """Clock ticks of a second."""
    due: float | None = None
    """Time of the next look; None while nobody has died."""
    _before: dict[int, int] | None = None
    _since: float = 0.0
    _again: float = AGAIN
    _patience: float = PATIENCE

    def begin(self, patience: float = PATIENCE) -> None:
        """Take note of a death, unless one is being watched already with no more patience."""
        if self.due is None or patience < self._patience:
            self.due = time.monotonic() + patience
            self._patience = patience
            self._again = AGAIN
            self._before = None

    def end(self) -> None:
        """Watch no longer."""
        self.due = self._before = None

    def look(self, pids: Iterable[int]) -> bool:
        """Look at all processes, if it is time; says whether all have been idle since the last look."""
        now = time.monotonic()
        if self.due is None or now < self.due:
            return False
        used = {pid: self.processor_time(pid) for pid in pids}
        before, span = self._before, now - self._since
        if before is None:
            self._before, self._since, self.due = used, now, now + SPAN
            return False
        self.put_off(now)
        limit = max(2.0, IDLE_SHARE * span * self.ticks)
        return used.keys() == before.keys() and not any(used[pid] - before[pid] > limit or self.is_at_work(pid) for pid in used)

    def put_off(self, now: float) -> None:
        """Wait longer until the next look."""
        self._before = None
        self.due = now + self._again
        self._again *= 1.5


def is_in_vain(sights: Sequence[stacks.Sight], root: str) -> bool:
    """Say whether idle processes wait for a rank that is no more: none sleeps on purpose, and one is in what only ranks end."""
    kinds = {stacks.doing(sight, root) for sight in sights}
    return bool(kinds & stacks.VAIN) and kinds <= stacks.STILL
