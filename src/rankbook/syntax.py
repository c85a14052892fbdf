"""The syntax tree of Python that is only looked at: what Python would warn of in it is told by whoever runs it."""

from __future__ import annotations

import ast
import warnings


def syntax_tree(source: str | bytes, path: str = "<unknown>") -> ast.Module:
    """Parse a source in silence, also where the tests that are running turn warnings into errors.

    Args:
        source: text, or bytes that may name their encoding.
        path: of the file, for errors.

    Raises:
        SyntaxError: it does not parse.
        ValueError: it cannot be read as text.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source, path)
