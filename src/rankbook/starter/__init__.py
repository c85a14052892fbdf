"""What `rankbook init` finds out about a repository, and the files that it writes into it."""

from __future__ import annotations

from rankbook.starter.declared import Declared
from rankbook.starter.drafts import Draft, Kind, drafts
from rankbook.starter.facts import Demands, Facts, Wishes
from rankbook.starter.finding import Found, find_facts
from rankbook.starter.repository import Ignored, changed, ignored, is_there, top
from rankbook.starter.suites import Sources, find_tests, folders_of_modules, folders_of_tests

__all__ = [
    "Declared",
    "Demands",
    "Draft",
    "Facts",
    "Found",
    "Ignored",
    "Kind",
    "Sources",
    "Wishes",
    "changed",
    "drafts",
    "find_facts",
    "find_tests",
    "folders_of_modules",
    "folders_of_tests",
    "ignored",
    "is_there",
    "top",
]
