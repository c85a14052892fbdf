"""What programs say while they run, as tests of engines look at it."""

from __future__ import annotations

from collections.abc import Iterator

from rankbook.listing import Event, Execution


def told(execution: Execution) -> Iterator[Event]:
    """Yield what a program itself says; where and how it runs must have been said before, and again when it starts anew."""
    begun = False
    for event in execution.events():
        if event["type"] == "began":
            assert not begun
            assert {"engine", "note", "isolation"} <= event.keys()
            begun = True
            continue
        begun = begun and event["type"] != "again"
        assert begun or event["type"] in ("again", "alive"), event
        yield event
