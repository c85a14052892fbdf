"""Putting new text into output fences of a page: those blocks change, and no other byte.

A block keeps its indentation, its quote marks and its line ends. Its fence grows when the new text holds one that would close it.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from msgspec import Struct

from rankbook.errors import PageError
from rankbook.harness.outputs import as_shown, differences, matches
from rankbook.listing import ExpectedOutput

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_FENCE = re.compile(rb"(?P<prefix>[ \t>]*)(?P<run>`{3,}|~{3,})(?P<rest>[^\r\n]*)")


class Block(Struct, frozen=True):
    """An output fence of a page, and what is to stand in it."""

    line: int
    """Line of its opening fence."""
    old: str
    """What stands in it, without indentation and quote marks."""
    new: str
    is_brought: bool = False
    """Whether a part of what stands in it comes from another file."""


def blocks_of(expected: Sequence[ExpectedOutput], outputs: Mapping[str, str]) -> list[Block]:
    """Give the output fences of a listing that do not hold what it printed.

    Args:
        expected: its output fences.
        outputs: what it printed, as its report says it: by rank, or under `""`.
    """
    found = differences(expected, outputs)
    return [Block(each.expected.line, each.expected.text, each.printed, is_brought=bool(each.expected.lines)) for each in found]


def refusal(path: Path, blocks: Sequence[Block]) -> str:
    """Say why the blocks of a page cannot be rewritten, as a clause; empty when they can.

    Args:
        path: the page.
        blocks: blocks of a listing.
    """
    if any(block.is_brought for block in blocks):
        return "it stands in a file that a snippet brings in; write it there"
    try:
        _, changed = updated(path.read_bytes(), blocks, str(path))
        if changed:
            _check_writable(path)
    except OSError as error:
        return f"the page cannot be written: {error.strerror or error}"
    except PageError as error:
        return error.what
    return ""


def _check_writable(path: Path) -> None:
    """Raise an OSError where a page cannot be replaced."""
    descriptor, new = _beside(path.resolve())
    os.close(descriptor)
    new.unlink(missing_ok=True)


def _beside(target: Path) -> tuple[int, Path]:
    """Make an empty file beside a page that may be written, to take its place."""
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".rankbook-")
    return descriptor, Path(name)


def update(path: Path, blocks: Sequence[Block]) -> int:
    """Rewrite the blocks of a page whose text is not the new one.

    Args:
        path: the page.
        blocks: the blocks, in any order.

    Returns:
        How many blocks were changed.

    Raises:
        PageError: the page cannot be read or written, or it is not what it was when its listings ran; then nothing is written.
    """
    try:
        before = path.read_bytes()
        after, changed = updated(before, blocks, str(path))
        if changed:
            _replace(path, before, after)
    except OSError as error:
        raise PageError(f"the expected output was not updated: {error.strerror or error}", where=str(path)) from error
    return changed


def updated(page: bytes, blocks: Sequence[Block], where: str) -> tuple[bytes, int]:
    """Give a page with new blocks.

    Args:
        page: the page's bytes.
        blocks: the blocks, in any order.
        where: name of the page, for errors.

    Returns:
        The page's new bytes, and how many blocks were changed.

    Raises:
        PageError: a block is not at its place.
    """
    lines = _LINE.findall(page)
    changed = 0
    for block in sorted(blocks, key=lambda block: block.line, reverse=True):
        opening = block.line - 1
        closing = _closing(lines, opening, block, where)
        old = _shown(lines[opening + 1 : closing], lines[opening])
        new = _with_kept(old, as_shown(block.new).splitlines())
        if old != new:
            lines[opening : closing + 1] = _written(lines[opening], lines[closing], new)
            changed += 1
    return b"".join(lines), changed


def _with_kept(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Give new lines, with an old one in the place of each that agrees with it: line by line, or from the beginning and the end."""
    if len(old) == len(new):
        kept = [before if matches(before, after) else after for before, after in zip(old, new, strict=True)]
    else:
        head = _agreeing(zip(old, new, strict=False))
        tail = _agreeing(zip(reversed(old[head:]), reversed(new[head:]), strict=False))
        kept = [*old[:head], *new[head : len(new) - tail], *old[len(old) - tail :]]
    return kept if matches("\n".join(kept), "\n".join(new)) else list(new)


def _agreeing(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: matches(*pair), pairs))


def _closing(lines: Sequence[bytes], opening: int, block: Block, where: str) -> int:
    """Find the line that closes a block, whose text must be the old one."""
    closing = opening + 1 + len(_LINE.findall(block.old.encode()))
    if closing >= len(lines):
        raise _moved(block, where)
    fence, end = _FENCE.match(lines[opening]), _FENCE.match(lines[closing])
    if fence is None or end is None or fence["run"] != end["run"] or end["rest"].strip():
        raise _moved(block, where)
    if _shown(lines[opening + 1 : closing], lines[opening]) != _shown(_LINE.findall(block.old.encode()), b"```"):
        raise _moved(block, where)
    return closing


def _moved(block: Block, where: str) -> PageError:
    what = "the page has changed since its listings ran, so its expected output was not updated"
    return PageError(what, where=where, line=block.line, right="run it again")


def _shown(lines: Sequence[bytes], opening: bytes) -> list[str]:
    """Give the lines of a block without what stands before them, and without line ends."""
    fence = _FENCE.match(opening)
    assert fence is not None
    width = len(fence["prefix"].expandtabs(4))
    return [_without(line.rstrip(b"\r\n").decode(errors="replace"), width) for line in lines]


def _without(line: str, width: int) -> str:
    """Take a prefix of so many columns off a line."""
    column = index = 0
    while index < len(line) and column < width and line[index] in " \t>":
        column += 4 - column % 4 if line[index] == "\t" else 1
        index += 1
    return " " * (column - width) + line[index:]


def _written(opening: bytes, closing: bytes, lines: Sequence[str]) -> list[bytes]:
    """Write a block anew, with a longer fence where its text holds one."""
    fence, end = _FENCE.match(opening), _FENCE.match(closing)
    assert fence is not None
    assert end is not None
    run = fence["run"]
    inner = [match[0] for line in lines for match in re.finditer(re.escape(run[:1]) + rb"{3,}", line.encode())]
    longest = max((len(found) + 1 for found in inner), default=0)
    longer = run[:1] * max(len(run), longest)
    tail = opening[fence.end() :]
    body = [((fence["prefix"] + line.encode()) if line else fence["prefix"].rstrip()) + tail for line in lines]
    first = fence["prefix"] + longer + fence["rest"] + tail
    last = end["prefix"] + longer + end["rest"] + closing[end.end() :]
    return [first, *body, last]


def _replace(path: Path, before: bytes, after: bytes) -> None:
    """Put new bytes in a file's place at once, unless somebody else has written it meanwhile."""
    target = path.resolve()
    descriptor, new = _beside(target)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            file.write(after)
        new.chmod(target.stat().st_mode & 0o7777)
        if target.read_bytes() != before:
            raise PageError("somebody else has written the page meanwhile, so it was left alone", where=str(path), right="run it again")
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)
