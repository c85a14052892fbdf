"""Charts of HTML and CSS: read aloud as words, told apart by pattern as well as by colour, and printed as they are."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from rankbook.site.outcomes import Group

Row = tuple[str, float, str]
"""What a bar is about (HTML), its value, and how that is written (HTML)."""


def count(number: int, noun: str) -> str:
    """Write a number of things: `1 test`, `1,204 tests`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def share(part: int, whole: int) -> str:
    """Write a share (HTML); what is not all of it is never written as 100 %, what is not nothing never as 0 %."""
    if not whole:
        return ""
    percent = round(100 * part / whole)
    if 0 < part < whole and percent in {0, 100}:
        return "&gt; 99 %" if percent else "&lt; 1 %"
    return f"{percent} %"


def in_words(counts: Mapping[Group, int]) -> str:
    """Say in words how many are in each group: `12 passed, 1 failed, 3 never run`."""
    return ", ".join(f"{counts[group]:,} {group.word}" for group in Group if counts.get(group))


def stacked(counts: Mapping[Group, int]) -> str:
    """Draw one bar with a part for each group."""
    parts = "".join(f'<i class="rb-{group.css}" style="flex-grow:{counts[group]}"></i>' for group in Group if counts.get(group))
    return f'<span class="rb-bar" role="img" aria-label="{in_words(counts)}">{parts}</span>'


def legend(counts: Mapping[Group, int]) -> str:
    """Say what the parts of a bar are, with their numbers."""
    whole = sum(counts.values())
    entries = (
        f'<li><i class="rb-key rb-{group.css}"></i>{counts[group]:,} {group.word} <small>{share(counts[group], whole)}</small></li>'
        for group in Group
        if counts.get(group)
    )
    return f'<ul class="rb-legend">{"".join(entries)}</ul>'


def breakdown(caption: str, heading: str, rows: Sequence[tuple[str, Mapping[Group, int]]], whole: int = 0) -> str:
    """Write a table with a stacked bar for each row.

    Args:
        caption: of the table.
        heading: what its rows are.
        rows: a label (HTML) and its numbers by group.
        whole: what each row is a share of; 0 where that is its own sum.
    """
    body = "".join(
        f'<tr><th scope="row">{label}</th><td>{stacked(counts)}</td><td class="rb-number">{_ran(counts, whole)}</td>'
        f"<td>{in_words(counts)}</td></tr>"
        for label, counts in rows
    )
    return _table(caption, (heading, "Outcomes", "Coverage", "In words"), body) if body else ""


def _ran(counts: Mapping[Group, int], whole: int) -> str:
    return share(sum(number for group, number in counts.items() if group.ran), whole or sum(counts.values()))


def bars(caption: str, headings: Sequence[str], rows: Sequence[Row], below: Sequence[str] = ()) -> str:
    """Write a table with a bar for each row, as long as its value.

    Args:
        caption: of the table.
        headings: of its two columns.
        rows: the bars.
        below: what stands below each of them, as wide as the table; empty for nothing.
    """
    longest = max((value for _, value, _ in rows), default=0) or 1
    body = "".join(
        f'<tr><th scope="row">{label}</th><td><i class="rb-length" style="width:{max(1, round(100 * value / longest))}%"></i>'
        f"<span>{text}</span></td></tr>" + (f'<tr class="rb-more"><td colspan="{len(headings)}">{more}</td></tr>' if more else "")
        for (label, value, text), more in zip(rows, below or [""] * len(rows), strict=True)
    )
    return _table(caption, headings, body, "rb-bars") if body else ""


def listed(caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a plain table.

    Args:
        caption: of the table.
        headings: of its columns.
        rows: cells as HTML.
    """
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return _table(caption, headings, body) if body else ""


def said_before(headings: Iterable[str], names: Container[str]) -> str:
    """Write the style of a table whose head a phone does not show: what it says there before the cells of some columns.

    Args:
        headings: of all columns.
        names: headings of those whose cells would say nothing without them.
    """
    said = "".join(f"--rb-{place}:'{heading}: ';" for place, heading in enumerate(headings, 1) if heading in names)
    return f' style="{said}"' if said else ""


def _table(caption: str, headings: Sequence[str], body: str, css: str = "rb-table") -> str:
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    style = said_before(headings, {"Coverage"})
    return (
        f'<div class="rb-scroll" tabindex="0" role="group" aria-label="{caption}"><table class="{css}"{style}><caption>{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
