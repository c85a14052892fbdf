"""Listing → Program: what runs, and how; where it runs is the engines' matter.

`KINDS` is the table: the first row whose `accepts` says yes takes the listing. A new kind is a file and a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rankbook.harness import data, not_code, script, session, shell, test_module, unrunnable
from rankbook.listing import Listing

__all__ = ["KINDS", "Kind", "kind_of", "preloaded"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to run a listing."""

    name: str
    """What the ledger and the summary call it."""
    accepts: Callable[[Listing], bool]
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
    """Whether its process gains from having torch imported already."""


KINDS: tuple[Kind, ...] = (
    Kind("not code", not_code.accepts),
    Kind("session", session.accepts, entry="rankbook.harness.session:run", preload=True),
    Kind("test", test_module.accepts, entry="rankbook.harness.test_module:run", has_tests=True, preload=True),
    Kind("script", script.accepts, entry="rankbook.harness.script:run", arguments=script.arguments, on_ranks=True, preload=True),
    Kind("import", script.is_library, entry="rankbook.harness.script:run", arguments=script.library_arguments, preload=True),
    Kind("shell", shell.accepts, entry="rankbook.harness.shell:run", arguments=shell.arguments),
    Kind("data", data.accepts, entry="rankbook.harness.data:run", arguments=data.arguments),
    Kind("unrunnable", unrunnable.accepts, reason=unrunnable.reason),
)


def preloaded() -> tuple[str, ...]:
    """Name the modules that programs of these kinds import, for an engine that can share them."""
    entries = (kind.entry.partition(":")[0] for kind in KINDS if kind.preload)
    return tuple(dict.fromkeys((*entries, *test_module.preloaded())))


def kind_of(listing: Listing) -> Kind:
    """Give the first kind that accepts a listing; every known language has one."""
    return next(kind for kind in KINDS if kind.accepts(listing))
