"""What a listing prints, beside what its output fences say that it prints.

`...` stands for anything, runs of white space are equal, and a number with a fraction need only agree to the digits that are written.
"""

from __future__ import annotations

import bisect
import contextlib
import difflib
import doctest
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct, field
from msgspec.structs import asdict

from rankbook.listing import ExpectedOutput, Listing
from rankbook.terminal import uncoloured

MOST = 256 * 1024
"""Bytes of an output beyond which only its head and tail are kept: no page shows as much."""
PLAIN = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
ANYTHING = "..."

_UNSHOWN = re.compile(r"[^\t\x20-\x7e\xa0-\U0010ffff]|[\u2028\u2029\ufeff]")
"""Characters that Markdown, or a line of a page, does not keep."""
_TOKEN = re.compile(
    r"""
    (?P<anything>\.\.\.)
  | (?P<number>(?<![\w.])[+-]?(?:\d+\.\d+|\.\d+)(?:[eE][+-]?\d+)?(?!\d|\.\d)|(?<![\w.])[+-]?\d+[eE][+-]?\d+(?![\w.]))
  | (?P<space>\s+)
  | (?P<character>.)
    """,
    re.VERBOSE,
)


class _Number(Struct, frozen=True):
    """A number with a fraction or an exponent."""

    value: Decimal
    step: Decimal
    """Worth of its last digit."""

    @classmethod
    def of(cls, text: str) -> _Number:
        """Read it as it is written."""
        value = Decimal(text)
        exponent = value.as_tuple().exponent
        assert isinstance(exponent, int)
        return cls(value, Decimal(1).scaleb(exponent))


_Token = str | _Number


def is_expected(listing: Listing) -> bool:
    """Say whether a listing is an output fence that belongs to another listing."""
    return listing.output_of > 0


def matches(expected: str, printed: str) -> bool:
    """Say whether an output is the one that is expected."""
    if doctest.OutputChecker().check_output(_closed(expected), _closed(printed), PLAIN):
        return True
    try:
        return _fit(_tokens(expected), _tokens(printed))
    except InvalidOperation:  # an exponent beyond all bounds
        return False


def as_shown(text: str) -> str:
    """Give an output as a page can hold it.

    No colours; of a line that was written over by carriage returns the last state; no spaces at the ends of lines; no blank lines around.
    """
    lines = [_UNSHOWN.sub("\N{REPLACEMENT CHARACTER}", line.rpartition("\r")[2].rstrip()) for line in _lines(uncoloured(text))]
    return "\n".join((*lines, "")).lstrip("\n") if any(lines) else ""


def _lines(text: str) -> list[str]:
    return re.sub(r"\r+\n", "\n", text).encode(errors="replace").decode().rstrip().split("\n")


def _closed(text: str) -> str:
    return " ".join(text.split())


def _tokens(text: str) -> list[_Token]:
    return [_token(match) for match in _TOKEN.finditer(text.strip())]


def _token(match: re.Match[str]) -> _Token:
    if match["number"]:
        return _Number.of(match["number"])
    return " " if match["space"] else match[0]


def _fit(expected: Sequence[_Token], printed: Sequence[_Token]) -> bool:
    """Match tokens; each part between two ellipses is taken at its first place, which leaves the most for the others."""
    parts = _parts(expected)
    if len(parts) == 1:
        return len(expected) == len(printed) and _starts(parts[0], printed, 0)
    first, *middle, last = parts
    if len(first) + len(last) > len(printed) or not _starts(first, printed, 0) or not _starts(last, printed, len(printed) - len(last)):
        return False
    place, end = len(first), len(printed) - len(last)
    for part in middle:
        found = next((start for start in range(place, end - len(part) + 1) if _starts(part, printed, start)), None)
        if found is None:
            return False
        place = found + len(part)
    return True


def _parts(expected: Sequence[_Token]) -> list[list[_Token]]:
    parts: list[list[_Token]] = [[]]
    for token in expected:
        if token == ANYTHING:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _starts(part: Sequence[_Token], printed: Sequence[_Token], start: int) -> bool:
    return all(_agree(token, printed[start + place]) for place, token in enumerate(part))


def _agree(expected: _Token, printed: _Token) -> bool:
    if isinstance(expected, _Number) and isinstance(printed, _Number):
        return abs(expected.value - printed.value) < expected.step
    return expected == printed


class Difference(Struct, frozen=True):
    """An output that is not the one expected."""

    expected: ExpectedOutput
    printed: str

    @property
    def line(self) -> int:
        """Line of the page from which on they differ."""
        lines = self.expected.text.splitlines(keepends=True)
        printed = _tokens(self.printed)
        agreeing = bisect.bisect_left(
            range(1, len(lines) + 1), x=True, key=lambda count: not _fit([*_tokens("".join(lines[:count])), ANYTHING], printed)
        )
        found = self.expected.lines
        return found[min(agreeing, len(found) - 1)] if found else self.expected.first_line + agreeing

    @property
    def text(self) -> str:
        """The two, line by line; lines that agree are shown as they are expected."""
        expected = [line.rstrip() for line in self.expected.text.rstrip().splitlines()]
        printed = [_as_expected(line.rstrip(), expected) for line in self.printed.rstrip().splitlines()]
        return "\n".join(difflib.unified_diff(expected, printed, "expected", "printed", lineterm=""))

    @property
    def reason(self) -> str:
        """What is wrong, as a sentence."""
        return f"{_owner(self.expected.rank)} printed another output than the one at line {self.expected.line}"


def _owner(rank: str) -> str:
    return f"rank {int(rank)}" if rank else "it"


def _as_expected(line: str, expected: Sequence[str]) -> str:
    return next((other for other in expected[:1000] if other.strip() != ANYTHING and matches(other, line)), line)


def printed_for(output: ExpectedOutput, outputs: Mapping[str, str]) -> str:
    """Give what was printed for an output fence.

    Args:
        output: the fence.
        outputs: what was printed, by rank, or under `""` by the one process.
    """
    if output.rank:
        return outputs.get(str(int(output.rank)), "")
    return "".join(_ended(outputs[rank]) for rank in sorted(outputs, key=lambda rank: int(rank or 0)))


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def differences(expected: Sequence[ExpectedOutput], outputs: Mapping[str, str]) -> list[Difference]:
    """Give the output fences whose text is not what was printed, with that, in page order.

    Args:
        expected: the output fences of a listing.
        outputs: what it printed, by rank, or under `""` by the one process.
    """
    found = (Difference(output, printed_for(output, outputs)) for output in expected)
    return [difference for difference in found if not matches(difference.expected.text, difference.printed)]


def arguments(listing: Listing) -> dict[str, Any]:
    """Give a listing's output fences as plain data; nothing when it has none."""
    return {"expected": [asdict(output) for output in listing.outputs]} if listing.outputs else {}


class Comparison(Struct):
    """The output fences of a program, and what it printed.

    Args:
        expected: the output fences.
    """

    expected: Sequence[ExpectedOutput]
    outputs: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Comparison:
        """Read it from the arguments of a program."""
        return cls([ExpectedOutput(**entry) for entry in values.get("expected") or ()])

    def judged(self, failure: dict[str, Any] | None) -> dict[str, Any]:
        """Give what a report says of the output.

        Args:
            failure: what is wrong with the listing otherwise; its output is then not looked at.
        """
        if failure or not self.expected:
            return failure or {}
        wrong = differences(self.expected, self.outputs)
        if not wrong:
            return {}
        text = "\n\n".join(difference.text for difference in wrong)
        return {"outcome": "failed", "reason": wrong[0].reason, "text": text, "page_line": wrong[0].line, "outputs": self.outputs}

    @contextlib.contextmanager
    def capture(self) -> Iterator[None]:
        """Keep what this process and its children write to the standard output, and write it there in the end all the same."""
        if not self.expected:
            yield
            return
        with tempfile.TemporaryFile() as kept:
            with _redirected(kept.fileno()):
                yield
            text = _text_of(kept)
        self.outputs[""] = as_shown(text)
        rest = memoryview(text.encode())
        while rest:
            rest = rest[os.write(1, rest) :]


@contextlib.contextmanager
def _redirected(descriptor: int) -> Iterator[None]:
    """Let the standard output go to a descriptor; a process that the listing leaves behind keeps it."""
    _flush()
    plain = os.dup(1)
    os.dup2(descriptor, 1)
    try:
        yield
    finally:
        _flush()
        os.dup2(plain, 1)
        os.close(plain)


def _flush() -> None:
    """Write out what Python and C libraries hold back."""
    with contextlib.suppress(Exception):  # a listing may have closed it, or put something else in its place
        sys.stdout.flush()
    with contextlib.suppress(OSError, AttributeError, ImportError):
        import ctypes

        ctypes.CDLL(None).fflush(None)


def _text_of(file: BinaryIO) -> str:
    """Turn what was written into text; a long one keeps its head and tail."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    data = file.read(MOST // 2 if size > MOST else MOST)
    if size > MOST:
        file.seek(-MOST // 2, os.SEEK_END)
        data += f"\n[... {size - MOST:,} bytes left out ...]\n".encode() + file.read()
    return data.decode(errors="replace")


def file_of(folder: str, rank: int) -> str:
    """Name the file that takes what a rank prints."""
    return str(Path(folder, f"{rank}.txt"))


def read(path: str) -> str:
    """Give what a rank has written to its file; empty when it has not begun."""
    if not Path(path).exists():
        return ""
    with Path(path).open("rb") as file:
        return _text_of(file)
