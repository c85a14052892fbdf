"""What a linter says of the whole suite: how much by rule and by folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup
from msgspec import Struct

from rankbook.model import Finding
from rankbook.pages.folding import folded
from rankbook.pages.names import Links
from rankbook.pages.places import Places
from rankbook.pages.text import code, markdown, text
from rankbook.report import plural

_FILES = 5
"""Files of a rule that the page lists."""


class FindingCount(NamedTuple):
    """How often a rule is broken in a file."""

    rule: str
    name: str
    url: str
    path: str
    times: int
    line: int
    """The first."""


class FindingsView(Struct, frozen=True):
    """The page on findings as its template sees it."""

    findings: int
    files: int
    rules: Markup
    """A table of the rules."""
    folders: Markup
    """A table of the folders; empty when there is but one."""


def finding_counts(path: str, findings: Iterable[Finding]) -> tuple[FindingCount, ...]:
    """Count the findings of a file by rule."""
    by_rule: dict[str, list[Finding]] = {}
    for finding in findings:
        by_rule.setdefault(finding.rule, []).append(finding)
    return tuple(
        FindingCount(rule, same[0].name, same[0].url, path, len(same), min(finding.line for finding in same))
        for rule, same in sorted(by_rule.items())
    )


def findings_view(counts: Sequence[FindingCount], places: Places, links: Links) -> FindingsView:
    """Sum up the findings of a suite.

    Args:
        counts: those of all files.
        places: the links of the page.
        links: the same, to folders.
    """
    by_rule: dict[str, list[FindingCount]] = {}
    for count in counts:
        by_rule.setdefault(count.rule, []).append(count)
    rules = sorted(by_rule.items(), key=lambda entry: (-sum(count.times for count in entry[1]), entry[0]))
    head = "| Rule | About | Findings | Files | Most in |\n|---|---|--:|--:|---|\n"
    return FindingsView(
        findings=sum(count.times for count in counts),
        files=len({count.path for count in counts}),
        rules=markdown(head + "".join(_rule(rule, same, places) for rule, same in rules)),
        folders=_folders(counts, links),
    )


def _rule(rule: str, counts: list[FindingCount], places: Places) -> str:
    label = f"[{code(rule)}]({counts[0].url})" if counts[0].url else str(code(rule))
    counts.sort(key=lambda count: (-count.times, count.path))
    near = places.among({count.path for count in counts[:_FILES]})
    where = ", ".join(f"{near.line(count.path, count.line)} ({count.times:,})" for count in counts[:_FILES])
    more = f" and {plural(len(counts) - _FILES, 'more file')}" if len(counts) > _FILES else ""
    times = sum(count.times for count in counts)
    return f"| {label} | {text(counts[0].name.replace('-', ' '))} | {times:,} | {len(counts):,} | {where}{more} |\n"


def _folders(counts: Sequence[FindingCount], links: Links) -> Markup:
    folders = folded({count.path for count in counts})
    found: dict[str, Counter[str]] = {}
    for count in counts:
        found.setdefault(folders[count.path], Counter())[_group(count.rule)] += count.times
    if len(found) < 2:
        return markdown("")
    groups = sorted({group for numbers in found.values() for group in numbers})
    head = f"| Folder | All | {' | '.join(groups)} |\n|---|{'--:|' * (len(groups) + 1)}\n"
    return markdown(head + "".join(_folder(folder, found[folder], groups, links) for folder in sorted(found)))


def _group(rule: str) -> str:
    """Give the letters of a rule's code, which name its group."""
    return rule.rstrip("0123456789") or rule


def _folder(folder: str, found: Counter[str], groups: list[str], links: Links) -> str:
    label = code(f"{folder}/") if folder else "Files at the root"
    cells = " | ".join(f"{found[group]:,}" if found[group] else "" for group in groups)
    return f"| [{label}]({links.index(folder)}) | {found.total():,} | {cells} |\n"
