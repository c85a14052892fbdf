"""How the listings of a page last ended, as HTML."""

from __future__ import annotations

import html
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rankbook.front_matter import Stamp
    from rankbook.listing import Run

NOT_RUN = "No listing of this page has been run yet."


def last_runs(runs: Iterable[Run], stamp: Stamp | None) -> str:
    """Write the last runs of a page as HTML: what all of them share as a sentence, the rest as a table.

    Args:
        runs: one per listing or test of the page.
        stamp: what the page says of itself; None for a page that a person made.
    """
    rows = sorted(runs, key=lambda run: (run.line, run.node_id))
    if not rows:
        return f"<p>{NOT_RUN}</p>"
    columns = {name: [cell(run, stamp) for run in rows] for name, cell in _COLUMNS.items()}
    shared = {name: cells[0] for name, cells in columns.items() if name in _SHARED and len(set(cells)) == 1 and cells[0]}
    shown = {name: cells for name, cells in columns.items() if name not in shared and any(cells)}
    counts = Counter(run.outcome.value for run in rows)
    facts = [
        ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()),
        *(f"{name}: {text}" for name, text in shared.items()),
    ]
    return f"<p>{'. '.join(facts)}.</p>\n{_table(shown)}"


def _table(columns: Mapping[str, list[str]]) -> str:
    head = "".join(f"<th>{name}</th>" for name in columns)
    rows = ("".join(f"<td>{cell}</td>" for cell in row) for row in zip(*columns.values(), strict=True))
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody></table>"


def _name(run: Run, _stamp: Stamp | None) -> str:
    return f"<code>{html.escape(run.node_id.partition('::')[2] or run.node_id)}</code>"


def _outcome(run: Run, stamp: Stamp | None) -> str:
    badge = f'<span class="rankbook-outcome rankbook-{run.outcome.value.replace(" ", "-")}">{run.outcome.value}</span>'
    older = stamp is not None and run.source == stamp.source and run.listing != stamp.sha256
    return badge + (" (older version of this listing)" if older else "")


def _when(written: str) -> str:
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return written
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


_COLUMNS: Mapping[str, Callable[[Run, Stamp | None], str]] = {
    "Listing": _name,
    "Outcome": _outcome,
    "Reason": lambda run, _: html.escape(run.reason),
    "Ranks": lambda run, _: str(run.ranks or ""),
    "Hardware": lambda run, _: html.escape(run.machine),
    "Engine": lambda run, _: html.escape(run.engine),
    "When": lambda run, _: html.escape(_when(run.when)),
}
"""The facts of a run, as HTML; one that no run of the page has is left out."""
_SHARED = ("Hardware", "Engine", "When")
