"""Which pages there are about the whole suite, how they are called and what they say."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct


class Topic(Struct, frozen=True):
    """What a page about the whole suite is about."""

    title: str
    says: str
    """What a reader finds there, as a clause."""


TOPICS: dict[str, Topic] = {
    "suite-hardware": Topic("Hardware", "how many tests run on which machine, by folder, backend and capability"),
    "suite-apis": Topic("API index", "which tests exercise a function or a class, and under which requirements"),
    "suite-untested": Topic("Untested names", "public names that no test mentions"),
    "suite-words": Topic("Words from A to Z", "where each class, test, fixture, function and constant is defined"),
    "suite-marks": Topic("Marks and requirements", "which files have tests with a mark or a decorator, and tests that need something"),
    "suite-owners": Topic("Owners", "which files and tests belong to whom"),
    "suite-findings": Topic("Findings", "what ruff says, by rule and by folder"),
}
"""By kind of page, in the order in which the root's index names them."""


class SuiteLink(Struct, frozen=True):
    """A page about the whole suite, as the root's index names it."""

    page: str
    """Below the folder of all pages."""
    title: str
    says: str


def page_of_suite(kind: str, key: str = "") -> str:
    """Name a page about the whole suite, below the folder of all pages.

    Args:
        kind: a key of `TOPICS`.
        key: of the part of it; empty for its first page.
    """
    return f"{kind}-{key}.md" if key else f"{kind}.md"


def suite_links(kinds: Collection[str]) -> Iterator[SuiteLink]:
    """Give the links to the pages about the whole suite.

    Args:
        kinds: those of `TOPICS` that are made.
    """
    for kind, topic in TOPICS.items():
        if kind in kinds:
            yield SuiteLink(page_of_suite(kind), topic.title, topic.says)
