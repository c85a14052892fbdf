"""Listings of a page with the same `session=NAME`: one process, one namespace, in the order of the page, an outcome for each.

They share one file, in which each line stands where it stands on the page, unless a snippet above it has more lines than the page.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from rankbook import rewriting
from rankbook.harness import deaths, observing, outputs, script, session
from rankbook.languages import by_fence
from rankbook.listing import Listing, Program, Runtime

OPTION = "session"
LANGUAGES = frozenset({"python", "pycon"})
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def accepts(listing: Listing) -> bool:
    """Say whether a listing is a part of a session that several share."""
    language = by_fence(listing.language)
    return OPTION in listing.options and language is not None and language.name in LANGUAGES


def wholes(listings: Iterable[Listing]) -> dict[int, Listing]:
    """Put the parts of the sessions of a page together.

    Args:
        listings: listings of one page, in page order.

    Returns:
        By the line of each part the listing that its whole session is; the parts are its children.
    """
    sessions: dict[str, list[Listing]] = {}
    for listing in listings:
        if accepts(listing) and not {"no-run", "skip"} & listing.options.keys():
            sessions.setdefault(listing.options[OPTION], []).append(listing)
    return {part.line: whole for parts in sessions.values() for whole in [_whole(parts)] for part in parts}


def _whole(parts: list[Listing]) -> Listing:
    text = ""
    lines: list[int] = []
    for part, place in zip(parts, _places(parts), strict=True):
        text += "\n" * (place.start - 1 - len(lines)) + _closed(part.data().decode())
        lines += range(len(lines) + 1, place.start)
        lines += (part.page_line(line) for line in range(1, place.end - place.start + 1))
    first = parts[0]
    return replace(
        first, name=first.options[OPTION], options=_options(parts), text=text, line=first.line, first_line=1,
        children=tuple(parts), hidden=(), outputs=(), problem=None, language="python",
        lines=() if lines == list(range(1, len(lines) + 1)) else tuple(lines),
    )  # fmt: skip


def _closed(text: str) -> str:
    return text if not text or text[-1] in "\r\n" else text + "\n"


class _Place(Struct, frozen=True):
    """Where a part stands in the file of its session."""

    start: int
    """Its first line, hidden or not."""
    first: int
    """The first line of its text."""
    end: int
    """The line after its last one."""


def _places(parts: Sequence[Listing]) -> list[_Place]:
    """Give the places of the parts of a session: those on the page, or as near below them as there is room."""
    found: list[_Place] = []
    end = 1
    for part in parts:
        start = max(part.page_line(1), end)
        first = start + part.lines_above
        end = first + len(_LINE.findall(part.text))
        found.append(_Place(start, first, end))
    return found


def _options(parts: list[Listing]) -> dict[str, str]:
    """Give the options of the process: those of all parts, of numbers the greatest."""
    found: dict[str, str] = {}
    for part in parts:
        for key, value in part.options.items():
            found[key] = max(found.get(key, value), value, key=_number) if key in ("gpus", "timeout") else value
    return found


def _number(value: str) -> float:
    """Read a number; what is none has been found out as a problem of its listing."""
    try:
        return float(value)
    except ValueError:
        return 0.0


def arguments(whole: Listing) -> Mapping[str, Any]:
    """Give the parts of a session."""
    children = whole.children or (whole,)
    parts = [_part(part, place) for part, place in zip(children, _places(children), strict=True)]
    return {"parts": parts, "fixtures": sorted({name for part in parts for name in part.get("fixtures", ())})}


def _part(part: Listing, where: _Place) -> dict[str, Any]:
    said = {key: value for key, value in script.arguments(part).items() if key != "ranks"}
    place = {"id": part.name, "line": part.line, **asdict(where)}
    return {**said, **place, "prompts": session.accepts(part), "broken": part.problem is not None}


def run(program: Program, runtime: Runtime) -> int:
    """Run the parts up to the last one that `select` names, or all."""
    deaths.watch_looks(runtime)
    under_way = _Run(program, runtime)
    if not program.arguments["fixtures"]:
        return under_way.end(under_way.run({}))
    from rankbook.harness import fixtured  # it needs pytest

    return under_way.end(fixtured.with_fixtures(program.arguments, under_way.run))


def _until(parts: Sequence[Mapping[str, Any]], select: Sequence[str] | None) -> Sequence[Mapping[str, Any]]:
    """Leave out the parts behind the last one that is asked for."""
    wanted = [place for place, part in enumerate(parts) if not select or part["id"] in select]
    return parts[: wanted[-1] + 1 if wanted else 0]


class _Run:
    """A session under way.

    Args:
        program: the session.
        runtime: of the program.
    """

    def __init__(self, program: Program, runtime: Runtime) -> None:
        self._path = Path(program.root) / program.path
        self._lines = _LINE.findall(self._path.read_bytes().decode())
        self._runtime = runtime
        self._parts = _until(program.arguments["parts"], program.arguments.get("select"))
        self._reached = 0
        """Parts that have run."""
        self._held: dict[str, Any] = {}
        """Report of the part that ran last: what comes after it may be its fault."""
        self._before, self._since = 0, 0.0
        """Ranks that there were when that part began, and the time of that."""

    def run(self, given: Mapping[str, Any]) -> dict[str, Any] | None:
        """Run one part after the other until one does not pass; each has its own report, so nothing is left to say."""
        names = script.as_main(self._path)
        for part in self._parts:
            if part["broken"]:
                break
            self._begin(part)
            names.update({name: given[name] for name in part.get("fixtures", ())})
            comparison = outputs.Comparison.of(part)
            with comparison.capture():
                failure = self._outcome(part, names)
            self._held |= comparison.judged(failure)
            if self._held["outcome"] != "passed":
                break
        return None

    def _begin(self, part: Mapping[str, Any]) -> None:
        self._tell()
        self._runtime.emit({"type": "start", "id": part["id"]})
        self._held = {"type": "report", "id": part["id"], "when": "call", "outcome": "passed"}
        self._before, self._since = len(self._runtime.ranks), time.monotonic()
        self._reached += 1

    def _tell(self) -> None:
        if self._held:
            report = deaths.judged(self._held, self._runtime.ranks[self._before :], self._since)
            self._runtime.emit({**report, "receipt": observing.receipt(self._runtime)})

    def _outcome(self, part: Mapping[str, Any], names: dict[str, Any]) -> dict[str, Any] | None:
        start, first, end = part["start"], part["first"], part["end"]
        text = "\n" * (start - 1) + "".join(self._lines[start - 1 : end - 1])
        if part["prompts"]:
            return session.outcome_of(text, self._path, names, first - 1)

        def body() -> None:
            exec(rewriting.compiled(text.encode(), str(self._path)), names)  # noqa: S102 - that is what rankbook does

        return script.outcome_of(body, self._path, part.get("raises", ""))

    def end(self, failure: Mapping[str, Any] | None) -> int:
        """Report the part that ran last, and those that were not reached; gives the exit status: the reports say all there is.

        Args:
            failure: what is wrong with the fixtures of the session.
        """
        if failure and not self._reached:
            self._begin(self._parts[0])
        if failure and self._held["outcome"] == "passed":
            self._held |= failure
        self._tell()
        passed = not self._held or self._held["outcome"] == "passed"
        guilty = self._parts[self._reached - (not passed)] if self._reached < len(self._parts) else None
        for part in self._parts[self._reached :]:
            if not part["broken"] and guilty is not None:
                reason = f"the listing at line {guilty['line']}, which comes before it in its session, did not pass"
                self._runtime.emit({"type": "report", "id": part["id"], "when": "call", "outcome": "not run", "reason": reason})
        return 0
