"""Languages without a table: Pygments, where it is installed and the text is not too long for it; else no colours."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from time import thread_time
from typing import TYPE_CHECKING, Any

from rankbook.site.tokens.table import UNCOLOURED, escaped, spanned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST = 100_000
"""Largest number of characters that Pygments gets: it reads less than 1 MB in a second."""
SECONDS = 5.0
"""CPU time that Pygments gets for a text, many times that of the slowest one that is not made to be slow."""
_LONG = re.compile(r"[^\n]{2000}|\s{500}")
"""Lines and blanks in which many a lexer takes each character for the start of something that it looks for up to their end."""


def spans(text: str, language: str) -> str:
    """Put each token into its element.

    Args:
        text: the text as it is.
        language: a name that Pygments knows.
    """
    lexer = _lexer(language) if len(text) <= MOST and not _LONG.search(text) else None
    if lexer is None:
        return escaped(text)
    try:
        found = list(_merged(_in_time(lexer.get_tokens_unprocessed(text))))
    except Exception:  # noqa: BLE001 - a lexer is code for any text, and a page must not fail for want of colours
        return escaped(text)
    if "".join([token for _, token in found]) != text:
        return escaped(text)
    return "".join([escaped(token) if name in UNCOLOURED else spanned(name, escaped(token)) for name, token in found])


def _in_time(tokens: Iterator[tuple[int, Any, str]]) -> Iterator[tuple[int, Any, str]]:
    """Stop a lexer that reads the same lines again and again: for a text that is made for it some take hours."""
    start = thread_time()
    for number, token in enumerate(tokens):
        if number % 16 == 0 and thread_time() - start > SECONDS:
            raise TimeoutError
        yield token


def version() -> str:
    """Name the version of Pygments; empty where there is none."""
    try:
        return str(import_module("pygments").__version__)
    except ImportError:
        return ""


def _merged(found: Iterable[tuple[int, Any, str]]) -> Iterator[tuple[str, str]]:
    """Give the class and the text of each token, neighbours of one class as one."""
    names = import_module("pygments.token").STANDARD_TYPES
    last, parts = "", [""]
    for _, kind, text in found:
        while kind not in names:
            kind = kind.parent  # noqa: PLW2901
        if (name := names[kind]) != last:
            yield last, "".join(parts)
            last, parts = name, []
        parts.append(text)
    yield last, "".join(parts)


@lru_cache(64)
def _lexer(language: str) -> Any:
    try:
        return import_module("pygments.lexers").get_lexer_by_name(language)
    except (ImportError, ValueError):
        return None
