"""Under which folder a file is counted, in a table that has only so many lines."""

from __future__ import annotations

from collections.abc import Collection

MOST = 100
"""Folders of a table; in a larger tree those farthest down are counted to the ones above them."""


def folded(paths: Collection[str]) -> dict[str, str]:
    """Give each file the folder under which a table counts it.

    Args:
        paths: the files; there must be one at least.
    """
    chosen = _at_depth(paths, 0)
    for depth in range(1, 1 + max(path.count("/") for path in paths)):
        deeper = _at_depth(paths, depth)
        if len(set(deeper.values())) > MOST:
            break
        chosen = deeper
    return chosen


def _at_depth(paths: Collection[str], depth: int) -> dict[str, str]:
    return {path: "/".join(path.split("/")[:-1][:depth]) for path in paths}
