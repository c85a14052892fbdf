"""The comparison as Markdown."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator

from truth_compared import KINDS, Comparison, Row

SAID = ("runs", "skipped", "absent", "unknown", "missed")
ENDS = ("runs", "skipped", "absent")


def report(found: Comparison) -> str:
    """Write all tables."""
    return "\n\n".join([*tests(found), *verdicts(found)]) + "\n"


def tests(found: Comparison) -> Iterator[str]:
    """Give the table about the inventory."""
    rows = [(name, found.tests(kind)) for name, kind in (("**all**", ""), *((kind, kind) for kind in KINDS))]
    yield table(
        ("kind", "collected", "expected", "both", "recall", "precision", "covered"),
        [
            (
                name,
                n["collected"],
                n["expected"],
                n["both"],
                share(n["both"], n["collected"]),
                share(n["both"], n["expected"]),
                n["covered"],
            )
            for name, n in rows
            if n["collected"] or n["expected"]
        ],
    )
    yield (
        f"{found.files} files. {len(found.not_collected)} more cannot be collected with the packages that are installed. "
        f"{len(found.families)} entries stand for several tests."
    )


def counted(name: str, *, expected: int, collected: int, both: int, covered: int) -> tuple[object, ...]:
    """Give the row of one kind of test."""
    return name, collected, expected, both, share(both, collected), share(both, expected), covered


def verdicts(found: Comparison) -> Iterator[str]:
    """Give the tables about the verdicts; none when no test was run."""
    counts = found.verdicts()
    if not any(really != "absent" for _, really in counts):
        return
    judged = {said: sum(counts[said, end] for end in ENDS) for said in SAID}
    yield table(
        ("said", *(f"really {end}" for end in ENDS), "precision"),
        [(said, *(counts[said, end] for end in ENDS), share(counts[said, said], judged[said])) for said in SAID if judged[said]],
    )
    happened = {end: sum(counts[said, end] for said in SAID) for end in ENDS}
    yield table(
        ("really", "tests", "recall"),
        [(end, happened[end], share(counts[end, end], happened[end])) for end in ENDS if happened[end]],
    )
    total, right = sum(counts.values()), sum(counts[end, end] for end in ENDS)
    certain = total - judged["unknown"] - judged["missed"]
    yield f"Right: {right} of {total} ({share(right, total)}); {share(right, certain)} of those of which something is said."
    ways = Counter(row.outcome for row in found.judged if row.outcome)
    yield f"How they ended: {', '.join(f'{count} {way}' for way, count in sorted(ways.items()))}."
    yield table(
        ("requirement that decides", "tests", "right", "share"),
        [(kind, len(rows), right_of(rows), share(right_of(rows), len(rows))) for kind, rows in sorted(by_kind(found).items())],
    )


def by_kind(found: Comparison) -> dict[str, list[Row]]:
    """Give the tests that were run, by the kind of the requirement that is not met or that cannot be judged."""
    kinds: dict[str, list[Row]] = defaultdict(list)
    for row in found.judged:
        if row.said is not None and row.said.requirement is not None:
            kinds[row.said.requirement.kind].append(row)
    return kinds


def right_of(rows: Iterable[Row]) -> int:
    """Count the tests of which rankbook says what happens."""
    return sum(row.word == row.really for row in rows)


REASONS = 4
"""Reasons that are listed for each test that is listed of one."""


def misses(found: Comparison, most: int) -> str:
    """Write every miss, by class: tests that are not named, named ones that are not there, wrong verdicts.

    Args:
        found: the comparison.
        most: misses of one class that are listed; the rest is counted.
    """
    parts = [report(found)]
    for title, is_one, reason in CLASSES:
        if rows := [row for row in (found.families if title is FAMILIES else found.rows) if is_one(row)]:
            parts += [f"### {title}: {len(rows)}", "\n".join(classes([(reason(row), row) for row in rows], most))]
    if cannot := [f"- `{path}`: {error}" for path, error in found.not_collected.items()]:
        parts += [f"### Files that cannot be collected: {len(cannot)}", "\n".join(cannot)]
    return "\n\n".join(parts) + "\n"


def wrong(said: str, really: str) -> Callable[[Row], bool]:
    """Tell the tests of which one thing is said and another happens."""
    return lambda row: row.is_collected and (row.word, row.really) == (said, really)


def shown(row: Row) -> str:
    """Give the requirement that decided, as written."""
    found = row.said.requirement if row.said else None
    return f"{found.text} (`{found.evidence}`)" if found else ""


FAMILIES = "Entries that stand for several tests"
CLASSES: tuple[tuple[str, Callable[[Row], bool], Callable[[Row], str]], ...] = (
    ("Collected, not named", lambda row: row.test is None and not row.is_covered, lambda row: f"{row.kind} in {row.path}"),
    ("Named, not collected", lambda row: row.is_expected and not row.is_collected, lambda row: f"{row.kind} in {row.path}"),
    ("Collected, called absent", lambda row: row.word == "absent" and row.is_collected, shown),
    (FAMILIES, lambda _: True, lambda row: row.test.family if row.test else ""),
    ("Called running, skipped", wrong("runs", "skipped"), lambda row: row.reason),
    ("Called skipped, run", wrong("skipped", "runs"), shown),
    ("Called skipped, absent", lambda row: (row.word, row.really) == ("skipped", "absent"), lambda row: f"{row.kind} in {row.path}"),
    ("Unknown, skipped", wrong("unknown", "skipped"), lambda row: f"{shown(row)}: {row.reason}"),
    ("Unknown, absent", lambda row: (row.word, row.really) == ("unknown", "absent"), shown),
    ("Unknown, run", wrong("unknown", "runs"), shown),
)
"""Classes of misses: a title, which tests belong to it, and why one does."""


def classes(entries: list[tuple[str, Row]], most: int) -> Iterator[str]:
    """List misses by their reason, the most frequent first."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for reason, row in entries:
        groups[reason].append(row)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    for reason, rows in ordered[: REASONS * most]:
        yield f"- {len(rows)}: {reason}"
        yield from (f"    - `{row.path}::{row.id}` {row.outcome}".rstrip() for row in rows[:most])
    if rest := ordered[REASONS * most :]:
        yield f"- {sum(len(rows) for _, rows in rest)} more, for {len(rest)} other reasons"


def share(part: int, whole: int) -> str:
    """Write a share in percent."""
    return f"{100 * part / whole:.1f} %" if whole else "–"


def table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    """Write a Markdown table."""
    lines = [head, tuple("---" if at == 0 else "--:" for at in range(len(head))), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)
