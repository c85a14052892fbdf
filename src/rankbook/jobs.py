"""What becomes of each listing of a page: which kind of program it is, under which name, and what pytest collects from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rankbook.collecting import USUAL, Rules
from rankbook.harness import KINDS, Kind, kind_of, misplaced, shared, shell, test_listing
from rankbook.languages import by_fence
from rankbook.listing import Listing, Outcome

RUN_OPTIONS = frozenset({"ranks", "init", "backend", "gpus", "share", "raises", "fixtures", "engine", "session"})
"""Options that change what a run shows; so do those that set variables."""


class Job(Struct, frozen=True, dict=True):
    """One listing of a page, and what becomes of it."""

    listing: Listing
    kind: Kind
    names: tuple[str, ...]
    """Part of the node id behind the page; empty for the tests of the source that the page is about."""
    beside: Listing | None = None
    """The listing of the source that the page is about, for another listing of that page."""
    same_as: Listing | None = None
    """The listing whose run this one is, for a shell listing that runs its page's own source."""
    whole: Listing | None = None
    """The session that it is a part of, put together as one listing; None for all others."""

    @property
    def placed(self) -> Listing:
        """The listing whose file runs: its own, or its session's."""
        return self.whole or self.listing

    @property
    def name(self) -> str:
        """Node id, for messages."""
        return "::".join((self.listing.page, *self.names))

    @property
    def is_code(self) -> bool:
        """Whether it is to be run, here or elsewhere."""
        return self.kind.name not in ("not code", "output") or self.listing.problem is not None

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of what its page says of its run: the listing's bytes, its options, what it is to print, and the session around it."""
        said = [_said(listing) for listing in ((self.listing, *self.whole.children) if self.whole else (self.listing,))]
        more = json.dumps(said, sort_keys=True).encode() if any(map(any, said)) else b""
        return sha256(self.placed.data() + more).hexdigest()


class Case(Struct, frozen=True):
    """One test that a listing holds, as pytest itself collected it."""

    id: str
    """`TestClass::test_name[parameter]`."""
    line: int | None = None
    """Line in the listing."""
    marks: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    left_out: str = ""
    """Why plain pytest would not run it: it is not collected, or deselected; empty for a test that it runs."""


class Collected(Struct, frozen=True):
    """What a test module holds, or why that cannot be told."""

    cases: tuple[Case, ...] = ()
    outcome: Outcome = Outcome.PASSED
    """SKIPPED for a module that skips itself, a failure for one that cannot be collected."""
    reason: str = ""
    text: str = ""
    line: int | None = None
    lacking: str = ""
    """What its import has raised that may be for want of what another machine has."""


def plan(found: Sequence[Listing], rules: Rules = USUAL, parents: tuple[str, ...] = (), holder: Listing | None = None) -> Iterator[Job]:
    """Say what each listing of a page is, inner listings included, in page order.

    Args:
        found: the page's listings.
        rules: what pytest takes for tests in their project.
        parents: names of the listings that hold them.
        holder: the listing of the Markdown source that holds them.
    """
    about = next((listing for listing in found if listing.about is not None), None)
    own = _own_runs(found, about, rules)
    ranks = max((run.ranks for run in own.values()), default=0)
    wholes = shared.wholes(found)
    for listing in found:
        current = replace(listing, options={**listing.options, "ranks": str(ranks)}) if listing is about and ranks else listing
        kind = kind_of(current, rules)
        problem = current.problem or misplaced(current, kind)
        if problem is None and listing.line in wholes:
            problem = _idle_tests(listing, wholes[listing.line], rules)
        current = replace(current, problem=problem)
        primary = listing is about and kind.has_tests and not parents
        names = parents if primary else (*parents, listing.name)
        beside = about or holder if listing is not about else None
        yield Job(current, kind, names, beside=beside, same_as=about if id(listing) in own else None, whole=wholes.get(listing.line))
        yield from plan(listing.children, rules, (*parents, listing.name), listing)


def _idle_tests(part: Listing, whole: Listing, rules: Rules) -> str | None:
    """Say which tests a part of a session has that nobody would run; None where it has none, or where the session uses them."""
    others = [each.text for each in whole.children if each.line != part.line]
    if any(test_listing.runs_itself(text) for text in others):
        return None
    idle = [name for name in test_listing.lone(part, rules) if not any(re.search(rf"\b{name}\b", text) for text in others)]
    if not idle:
        return None
    what = "option 'session' has no meaning on a listing of tests, which pytest runs one by one"
    return f"{what}: take it away, or call {idle[0]} in the session"


def _own_runs(found: Sequence[Listing], about: Listing | None, rules: Rules) -> dict[int, shell.OwnRun]:
    language = by_fence(about.language) if about is not None else None
    if about is None or about.about is None or language is None or language.name != "python":
        return {}
    runs = {id(listing): shell.own_run(listing, about.about.source) for listing in found if shell.accepts(listing)}
    has_tests = kind_of(about, rules).has_tests
    return {key: run for key, run in runs.items() if run is not None and _is_same(run, about, has_tests=has_tests)}


def _is_same(run: shell.OwnRun, about: Listing, *, has_tests: bool) -> bool:
    """Say whether a command does what becomes of the source's listing: pytest runs tests, and a script that has them run does."""
    if not has_tests:
        return not run.by_pytest
    return run.by_pytest or (not run.ranks and test_listing.runs_its_tests(about))


def _said(listing: Listing) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Give what the options of a listing, and the output fences below it, say of its run.

    The ranks of a source's listing are not its own: the command of its page says them, which is a listing too.
    """
    own = {key: value for key, value in listing.options.items() if listing.about is None or key != "ranks"}
    options = {key: value for key, value in own.items() if key in RUN_OPTIONS or key.startswith("env.")}
    return options, [(output.rank, output.text) for output in listing.outputs]


def as_program(job: Job) -> Job:
    """Take a listing that looks like a test module, but of which pytest collects no test, for the program that it is."""
    return replace(job, kind=next(kind for kind in KINDS if not kind.has_tests and kind.accepts(job.listing, USUAL)))
