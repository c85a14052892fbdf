"""The last runs of a page as a table, with what was never run, and the ranks of what failed."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rankbook.site.charts import count, in_words, said_before, stacked
from rankbook.site.history import history, number_of_runs, time_of
from rankbook.site.outcomes import NOT_RUN, Group, badge, why
from rankbook.site.rank_diagram import diagram
from rankbook.site.rollup import broken, duration

if TYPE_CHECKING:
    from rankbook.site.expected import Want
    from rankbook.site.history import Recorded
    from rankbook.site.outcomes import Shown
    from rankbook.site.proof import Entry

_DIAGRAMS = 3
"""Failed runs whose ranks are drawn."""


def last_run(entries: Sequence[Entry], never: Mapping[str, Want], command: str) -> str:
    """Write what is known of the runs of a page.

    Args:
        entries: its tests and listings, in the order of the page.
        never: its tests that were never run, with what they need.
        command: what runs the pages.
    """
    if not entries and not never:
        return f"<p>{NOT_RUN}</p>"
    if not entries:
        return (
            f"<p>None of the {count(len(never), 'test')} of this page has been run yet: <code>{html.escape(command)}</code> runs what this"
            " machine can.</p>"
        )
    tests = Counter(entry.one.group for entry in entries if entry.is_test) + Counter({Group.NEVER: len(never)})
    doctests = Counter(entry.one.group for entry in entries if entry.is_doctest)
    others = Counter(entry.one.group for entry in entries if not (entry.is_test or entry.is_doctest))
    columns = {name: [cell(entry) for entry in entries] for name, cell in _COLUMNS.items()}
    ran = [place for place, entry in enumerate(entries) if entry.one.group is not Group.NEVER]
    facts_of = {name: {columns[name][place] for place in ran} for name in _SHARED}
    shared = {name: next(iter(cells)) for name, cells in facts_of.items() if len(cells) == 1 and any(cells)}
    said = [f"{count(sum(tests.values()), 'test')}: {in_words(tests)}"] if tests else []
    said += [f"{count(sum(doctests.values()), 'doctest')}: {in_words(doctests)}"] if doctests else []
    said += [f"{count(sum(others.values()), 'other listing' if tests or doctests else 'listing')}: {in_words(others)}"] if others else []
    facts = [*said, *(f"{name}: {text}" for name, text in shared.items())]
    own = {name: cells for name, cells in columns.items() if name not in shared and any(cells)}
    table = _table(own, [_more(entry) + _history(entry.one.found) for entry in entries])
    drawn = tests or doctests or others
    chart = stacked(drawn) if sum(drawn.values()) > 1 else ""
    return f'<div class="rankbook-runs"><p>{". ".join(facts)}.</p>{chart}{table}{_never(never)}{_ranks(entries)}</div>'


def anchor(place: int) -> str:
    """Name the row of a test, by its place among the entries of its page."""
    return f"rb-run-{place + 1}"


def _table(columns: Mapping[str, list[str]], more: Sequence[str]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    rows = ("".join(f"<td>{cell}</td>" for cell in row) for row in zip(*columns.values(), strict=True))
    below = [f'<tr class="rb-more"><td colspan="{len(columns)}">{said}</td></tr>' if said else "" for said in more]
    body = "".join(f'<tr id="{anchor(place)}">{row}</tr>{said}' for place, (row, said) in enumerate(zip(rows, below, strict=True)))
    return (
        '<div class="rb-scroll" tabindex="0" role="group" aria-label="Last runs">'
        f'<table class="rb-table"{said_before(columns, _BARE)}>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def _more(entry: Entry) -> str:
    """Give a reason that opens, which has a row of its own: tracebacks are wide; empty for a shorter one."""
    said = why(entry.one)
    return said if said.startswith("<details") else ""


def _name(entry: Entry) -> str:
    name = f"<code>{broken(entry.name)}</code>"
    return f'<a href="{html.escape(entry.link)}">{name}</a>' if entry.link else name


_COLUMNS: Mapping[str, Callable[[Entry], str]] = {
    "Listing": _name,
    "Outcome": lambda entry: " ".join(filter(None, (badge(entry.one.group, entry.one.word), "" if _more(entry) else why(entry.one)))),
    "Ranks": lambda entry: str(entry.one.run.ranks or ""),
    "Took": lambda entry: duration(entry.one.run.duration) if entry.one.group.ran and entry.one.run.duration else "",
    "Hardware": lambda entry: html.escape(entry.one.run.machine),
    "torch": lambda entry: html.escape(entry.one.run.torch),
    "Engine": lambda entry: html.escape(entry.one.run.engine),
    "Commit": lambda entry: html.escape(entry.one.run.commit),
    "When": lambda entry: time_of(entry.one.run.when) if entry.one.run.when else "",
}
"""The facts of a run, as HTML; one that no run of the page has is left out."""
_BARE = frozenset({"Ranks", "torch", "Engine", "Commit"})
"""Facts that say nothing without their names."""
_SHARED = ("Hardware", "torch", "Engine", "Commit", "When")


def _history(found: Recorded) -> str:
    """Write the history of a test, below its row; one run is none, for the columns say all of it."""
    return f'<div class="rb-past"><span>History</span> {history(found)}</div>' if number_of_runs(found) > 1 else ""


def _never(never: Mapping[str, Want]) -> str:
    if not never:
        return ""
    needs = {name: f" needs {html.escape(', '.join(want.words))}" if want.words else "" for name, want in never.items()}
    rows = "".join(f"<li><code>{html.escape(name)}</code>{said}</li>" for name, said in needs.items())
    return f"<details><summary>{count(len(never), 'test')} never run</summary><ul>{rows}</ul></details>"


def _ranks(entries: Sequence[Entry]) -> str:
    pairs = ((entry, diagram(entry.one.run, entry.one.listed)) for entry in entries if entry.one.run.outcome.is_failure)
    failed = [(entry, drawn) for entry, drawn in pairs if drawn]
    newest = sorted(failed, key=lambda pair: (pair[0].one.group is Group.FAILED, pair[0].one.run.when), reverse=True)[:_DIAGRAMS]
    return "".join(f"<p>Ranks of <code>{html.escape(entry.name)}</code>, {_ended(entry.one)}:</p>{drawn}" for entry, drawn in newest)


def _ended(one: Shown) -> str:
    return f"which {one.word}" if one.group is Group.FAILED else f"which {one.run.outcome.value} in an older version"
