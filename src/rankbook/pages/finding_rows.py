"""What a linter says of a file, as a table shows it: a row for each rule and message, with a bound on all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from markupsafe import Markup
from msgspec import Struct

from rankbook.model import Finding
from rankbook.pages.text import code, markdown

LINES = 12
"""Lines that a row lists."""
MESSAGES = 5
"""Rows of a rule whose messages differ; one more sums up the others."""
TOPICS = {"performance": ("PERF",), "security": ("S",)}
"""Topics of the seed layouts, with the rules that are about them; `other` has all the rest."""


class FindingRow(Struct, frozen=True):
    """The places of a file of which a rule says the same."""

    link: Markup
    """Code of the rule, which leads to its explanation."""
    says: str
    count: int
    """Number of findings."""
    lines: tuple[int, ...]
    """The first of their lines, each once."""
    more: int
    """Number of lines that are not listed."""


def finding_rows(findings: Iterable[Finding], topic: str = "") -> tuple[FindingRow, ...]:
    """Group findings by rule and message, both in the order of the alphabet.

    Args:
        findings: what was said of one file.
        topic: a word of `TOPICS`, or `other`; empty for all of them.
    """
    rules: dict[str, list[Finding]] = {}
    for finding in findings:
        if not topic or topic == _topic(finding.rule):
            rules.setdefault(finding.rule, []).append(finding)
    return tuple(row for rule in sorted(rules, key=_parts) for row in _rows(rules[rule]))


def _topic(rule: str) -> str:
    letters = _parts(rule)[0]
    return next((topic for topic, groups in TOPICS.items() if letters in groups), "other")


def _parts(rule: str) -> tuple[str, str]:
    """Part a code into its letters and its digits, of which all codes of a group have equally many."""
    letters = re.match("[A-Z]*", rule)
    return letters[0] if letters else "", rule


def _rows(findings: list[Finding]) -> Iterator[FindingRow]:
    by_message: dict[str, list[Finding]] = {}
    for finding in findings:
        by_message.setdefault(finding.message, []).append(finding)
    first = list(by_message)[:MESSAGES] if len(by_message) > MESSAGES + 1 else list(by_message)
    for message in first:
        yield _row(by_message[message], message)
    others = [finding for finding in findings if finding.message not in first]
    if others:
        yield _row(others, f"the same of {len(by_message) - len(first):,} more things ({others[0].name.replace('-', ' ')})")


def _row(findings: list[Finding], says: str) -> FindingRow:
    lines = sorted({finding.line for finding in findings})
    rule = findings[0]
    link = markdown(f"[{code(rule.rule)}]({rule.url})") if rule.url else code(rule.rule)
    return FindingRow(link, says, len(findings), tuple(lines[:LINES]), len(lines[LINES:]))
