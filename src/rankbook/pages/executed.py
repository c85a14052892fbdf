"""Whether running the book executes a file: as its page's listing, or by the listings inside it."""

from __future__ import annotations

import re

from rankbook.languages import by_fence

EXECUTED = frozenset({"python", "pycon", "console", "bash", "json", "toml", "yaml", "xml", "ini"})
"""Languages whose listings are run, imported or parsed; a test holds this against the harness, which no other room may import."""
_FENCE = re.compile(r"^[ \t>*+\-\d.)]*(?:`{3,}|~{3,})[ \t]*\{?[ \t]*\.?([\w+#-]+)([^\n]*)$", re.MULTILINE)


def is_executed(fence: str, text: str) -> bool:
    """Tell whether a file has something that is executed.

    Args:
        fence: word of the listing's fence.
        text: text of its listing.
    """
    if fence == "markdown":
        return any(_runs(word) and ".no-run" not in options for word, options in _FENCE.findall(text))
    return bool(text) and _runs(fence)


def _runs(word: str) -> bool:
    language = by_fence(word)
    return language is not None and language.name in EXECUTED
