"""How a long index is split into pages: by the beginnings of its names, so that an edit moves few of them from page to page."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, repeat

from msgspec import Struct

from rankbook.pages.entries import alphabetical

LIMIT = 300
"""Rows of a page."""
_FEW = 5
"""A page that is so many times smaller than the limit joins its neighbour."""
_LONGEST = 60
"""Characters of a key."""
_NOT_PLAIN = re.compile(r"[^a-z0-9.]+")

Tokens = Sequence[str]
"""The steps by which a name is looked up: its letters, or the parts of a dotted name."""


class Shard(Struct, frozen=True):
    """The names of one page of an index."""

    key: str
    """What its page's name adds to that of the index; empty when the whole index is one page."""
    names: tuple[str, ...]
    """In the order of the page."""
    rows: int
    """Number of rows that they have."""

    @property
    def first(self) -> str:
        """Its first name."""
        return self.names[0]

    @property
    def last(self) -> str:
        """Its last name."""
        return self.names[-1]


def letters(name: str) -> Tokens:
    """Look a name up letter by letter, without regard to case and leading underscores."""
    return alphabetical(name)[0]


def parts(name: str) -> Tokens:
    """Look a dotted name up part by part, without regard to case."""
    return tuple(name.casefold().split("."))


def folders(path: str) -> Tokens:
    """Look a path up folder by folder."""
    return tuple(path.split("/"))


def split(
    counts: Mapping[str, int],
    tokens: Callable[[str], Tokens] = letters,
    *,
    most: int = LIMIT,
    limit: int = LIMIT,
    order: Sequence[str] | None = None,
) -> list[Shard]:
    """Part the names of an index into pages of bearable length.

    Names that begin alike stay together as long as they fit; which page a name stands on depends only on those beside it that begin alike.

    Args:
        counts: number of rows by name.
        tokens: how a name is looked up.
        most: rows that a page shows of one name, however many there are.
        limit: rows that it shows of all its names.
        order: the names in their order, where it is known.

    Returns:
        The pages in the order of their names; none when there is no name.
    """
    if not counts:
        return []
    names = [name for _, name in sorted((tokens(name), name) for name in counts)] if order is None else order
    rows = list(map(counts.__getitem__, names))
    sums = [0, *accumulate(map(min, rows, repeat(min(most, limit))))]
    ranges = _without_few(_ranges(_Named(names, tokens), sums, limit), sums, limit)
    named_keys = zip(keys([(path, part) for _, _, path, part in ranges]), ranges, strict=True)
    return [Shard(key, tuple(names[low:high]), sum(rows[low:high])) for key, (low, high, _, _) in named_keys]


def exchanged(order: list[str], gone: Iterable[str], new: Iterable[str], tokens: Callable[[str], Tokens]) -> None:
    """Take names out of those of an index, and put others in at their places.

    Args:
        order: the names in their order.
        gone: names that are among them.
        new: names that are not.
        tokens: how a name is looked up.
    """

    def place(name: str) -> tuple[Tokens, str]:
        return tokens(name), name

    for name in gone:
        del order[bisect_left(order, place(name), key=place)]
    for name in new:
        insort(order, name, key=place)


class _Named:
    """Names with the steps by which they are looked up, told of those that are asked for."""

    def __init__(self, names: Sequence[str], tokens: Callable[[str], Tokens]) -> None:
        self._names = names
        self._tokens = tokens

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, place: int) -> Tokens:
        return self._tokens(self._names[place])


_Range = tuple[int, int, Tokens, int]
"""Start, end, how its first name begins, and which of the pages for just this beginning it is."""


def _without_few(ranges: Iterable[_Range], sums: list[int], limit: int) -> list[_Range]:
    """Join a range of few rows to the one before it, and one before it of few rows to it, as long as both fit on one page."""
    joined: list[_Range] = []
    for low, high, path, part in ranges:
        if joined:
            before = joined[-1]
            sizes = sums[high] - sums[low], sums[before[1]] - sums[before[0]]
            if min(sizes) * _FEW <= limit and sum(sizes) <= limit:
                joined[-1] = before[0], high, before[2], before[3]
                continue
        joined.append((low, high, path, part))
    return joined


def _ranges(named: _Named, sums: list[int], limit: int) -> Iterator[_Range]:
    pending: list[_Range] = [(0, len(named), (), 0)]
    while pending:
        low, high, path, _ = pending.pop()
        first, last = named[low], named[high - 1]
        if sums[high] - sums[low] <= limit:
            yield low, high, path, 0
        elif first == last:  # spelled alike but for case
            yield from ((start, end, path, part) for part, (start, end) in enumerate(_packed(list(range(low, high + 1)), sums, limit)))
        else:
            depth = _common(first, last)
            edges = list(_edges(named, low, high, depth))
            pending += [(start, end, named[start][: depth + 1], 0) for start, end in reversed(list(_packed(edges, sums, limit)))]


def _packed(edges: list[int], sums: list[int], limit: int) -> Iterator[tuple[int, int]]:
    """Join neighbours as long as they fit on one page."""
    start = edges[0]
    for end, following in zip(edges[1:], [*edges[2:], None], strict=True):
        if following is None or sums[following] - sums[start] > limit:
            yield start, end
            start = end


def _edges(named: _Named, low: int, high: int, depth: int) -> Iterator[int]:
    """Give the places at which the token of a depth changes, both ends included."""
    while low < high:
        yield low
        low = bisect_right(named, _token(named[low], depth), low, high, key=lambda tokens: _token(tokens, depth))
    yield high


def _token(tokens: Tokens, depth: int) -> str:
    return tokens[depth] if depth < len(tokens) else ""


def _common(first: Tokens, last: Tokens) -> int:
    """Count the tokens with which both begin, and so all between them."""
    same = (one == other for one, other in zip(first, last, strict=False))
    return next((depth for depth, equal in enumerate(same) if not equal), min(len(first), len(last)))


def keys(beginnings: Sequence[tuple[Tokens, int]]) -> Iterator[str]:
    """Make of each beginning what a file may be called anywhere, without underscores; no two are the same. A lone one needs no key.

    Args:
        beginnings: of the pages of an index, each with a number that tells those with the same beginning apart.
    """
    taken: set[str] = set()
    for path, part in beginnings:
        written = path if isinstance(path, str) else ".".join(path)
        plain = _NOT_PLAIN.sub("-", written)[:_LONGEST] or "~"
        if len(beginnings) == 1:
            plain = ""
        elif plain in taken or len(written) > _LONGEST or part:
            plain += "~" + hashlib.sha256(f"{written}\0{part}".encode(errors="surrogatepass")).hexdigest()[:16]
        taken.add(plain)
        yield plain
