"""The macros of C++ that define a test, and what such a test is called."""

from __future__ import annotations

import re
from collections.abc import Sequence

MACROS = frozenset({
    "TEST", "TEST_F", "TEST_P", "TYPED_TEST", "TYPED_TEST_P", "GTEST_TEST", "TEST_CASE", "TEST_CASE_METHOD", "TEMPLATE_TEST_CASE",
    "SCENARIO", "BOOST_AUTO_TEST_CASE", "BOOST_FIXTURE_TEST_CASE", "BOOST_DATA_TEST_CASE", "BOOST_AUTO_TEST_CASE_TEMPLATE",
})  # fmt: skip
"""Macros of GoogleTest, Catch2, doctest and Boost.Test that define a test."""
_STRINGS = re.compile(r'(?:\s*(?:u8|[uUL])?(?:R"([^()\\\s"]{0,16})\((.*?)\)\1"|"((?:[^"\\]|\\.)*)"))', re.DOTALL)
"""One string of several that stand behind each other and are one."""
_ESCAPED = re.compile(r'\\(["\\])')


def name_of(macro: str, arguments: Sequence[str]) -> str:
    """Give the name of a test: its first string, or what its framework makes of the other arguments.

    Args:
        macro: what defines it.
        arguments: what the macro is given, as written.
    """
    if macro.startswith("BOOST_"):
        return arguments[0] if arguments else ""
    said = next((each for each in arguments if _STRINGS.match(each)), None)
    return ".".join(arguments[:2]) if said is None else _said(said)


def _said(written: str) -> str:
    """Give the text of a string on one line; of an empty one its quotes."""
    parts = (raw or _ESCAPED.sub(r"\1", plain) for _, raw, plain in _STRINGS.findall(written))
    return " ".join("".join(parts).split()) or '""'
