"""Listing → Program: what runs, and how; where it runs is the engines' matter.

`KINDS` is the table: the first row whose `accepts` says yes takes the listing. A new kind is a file and a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from rankbook.collecting import USUAL, Rules
from rankbook.harness import data, not_code, outputs, script, session, shared, shell, test_listing, unrunnable
from rankbook.listing import Listing

__all__ = ["KINDS", "Kind", "kind_of", "misplaced", "preloaded"]

PROCESS = frozenset({"env", "engine", "gpus", "share"})
"""Options of whatever runs code."""


def by_itself(accepts: Callable[[Listing], bool]) -> Callable[[Listing, Rules], bool]:
    """Let a listing decide alone, whatever the project takes for tests."""
    return lambda listing, _rules: accepts(listing)


class Kind(Struct, frozen=True):
    """One way to run a listing."""

    name: str
    """What the ledger and the summary call it."""
    accepts: Callable[[Listing, Rules], bool]
    """Whether it takes a listing of a project that has these rules of what is a test."""
    entry: str = ""
    """Entry of the program, as `module:function`; empty when nothing is started."""
    arguments: Callable[[Listing], Mapping[str, Any]] = field(default=lambda _listing: {})
    """What the entry wants to know of the listing."""
    reason: Callable[[Listing], str] = field(default=lambda _listing: "")
    """Why nothing is started, for a kind without entry that counts as skipped; empty for one that is not code."""
    has_tests: bool = False
    """Whether it holds tests that become items of their own."""
    on_ranks: bool = False
    """Whether it may be started on several ranks."""
    preload: bool = False
    """Whether its process gains from having torch, or pytest, imported already."""
    options: frozenset[str] | None = None
    """What has a meaning on it, of all that has a meaning on some kinds only: options by name, `env` for any variable, `hidden` for hidden
    lines and `output` for output fences; None for a kind that starts nothing, on which nothing is looked at."""


KINDS: tuple[Kind, ...] = (
    Kind("output", by_itself(outputs.is_expected)),
    Kind("not code", by_itself(not_code.accepts)),
    Kind(
        "shared session", by_itself(shared.accepts), entry="rankbook.harness.shared:run", arguments=shared.arguments, preload=True,
        options=PROCESS | {"session", "raises", "fixtures", "hidden", "output"},
    ),
    Kind(
        "session", by_itself(session.accepts), entry="rankbook.harness.session:run", arguments=session.arguments, preload=True,
        options=PROCESS | {"hidden"},
    ),
    Kind(
        "test", test_listing.accepts, entry="rankbook.harness.test_module:run", has_tests=True, preload=True,
        options=PROCESS | {"hidden"},
    ),
    Kind(
        "test", test_listing.holds_examples, entry="rankbook.harness.test_module:run", arguments=lambda _listing: {"examples": True},
        has_tests=True, preload=True, options=PROCESS | {"hidden"},
    ),
    Kind(
        "script", by_itself(script.accepts), entry="rankbook.harness.start:run", arguments=script.arguments, on_ranks=True, preload=True,
        options=PROCESS | {"ranks", "init", "backend", "raises", "fixtures", "hidden", "output"},
    ),
    Kind(
        "import", by_itself(script.is_library), entry="rankbook.harness.start:run", arguments=script.library_arguments, preload=True,
        options=PROCESS,
    ),
    Kind(
        "shell", by_itself(shell.accepts), entry="rankbook.harness.shell:run", arguments=shell.arguments,
        options=PROCESS | {"hidden", "output"},
    ),
    Kind("data", by_itself(data.accepts), entry="rankbook.harness.data:run", arguments=data.arguments, options=frozenset()),
    Kind("unrunnable", by_itself(unrunnable.accepts), reason=unrunnable.reason),
)  # fmt: skip

REASONS: Mapping[tuple[str, str], str] = {
    ("test", "ranks"): "only a program is started on ranks; take the option away, and let tests start their ranks by their own harness",
    ("test", "fixtures"): "a test takes fixtures as its arguments",
    ("test", "raises"): "a test says so with `pytest.raises`",
    ("session", "raises"): "a session shows the traceback below its statement",
    ("session", "output"): "a session shows what it prints below each statement",
}
"""Why an option has no meaning on a kind, where that needs a word."""


def misplaced(listing: Listing, kind: Kind) -> str | None:
    """Say which option, hidden line or output fence has no meaning on a listing; None when all have one.

    Args:
        listing: the listing.
        kind: what it is.
    """
    if kind.options is None:
        return None
    known = {option for other in KINDS for option in other.options or ()}
    written = ["env" if key.startswith("env.") else key for key in listing.options]
    written += ["hidden"] * bool(listing.hidden) + ["output"] * bool(listing.outputs)
    wrong = next((key for key in written if key in known and key not in kind.options), None)
    if wrong is None:
        return None
    what = {"hidden": "hidden lines have", "output": "an output fence has", "env": "an option 'env.NAME' has"}.get(
        wrong, f"option '{wrong}' has"
    )
    reason = REASONS.get((kind.name, wrong), "take it away")
    return f"{what} no meaning on a listing of the kind '{kind.name}': {reason}"


def preloaded() -> tuple[str, ...]:
    """Name the modules that programs of these kinds import, for an engine that can share them."""
    entries = (kind.entry.partition(":")[0] for kind in KINDS if kind.preload)
    return tuple(dict.fromkeys((*entries, "rankbook.harness.fixtured", *test_listing.preloaded())))


def kind_of(listing: Listing, rules: Rules = USUAL) -> Kind:
    """Give the first kind that accepts a listing; every known language has one.

    Args:
        listing: the listing.
        rules: what pytest takes for tests in its project.
    """
    return next(kind for kind in KINDS if kind.accepts(listing, rules))
