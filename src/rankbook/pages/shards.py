"""How a long index is split into pages: by the beginnings of its names, so that an edit moves few of them from page to page."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

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


Range = tuple[int, int, Tokens, int]
"""Start, end, how its first name begins, and which of the pages for just this beginning it is."""


class Cut:
    """How a long index was cut, and where its names have changed since: what is as it was is cut as it was.

    Args:
        ranges: before those of few rows were joined.
        moves: where a name has come (1), gone (-1) or changed (0), in ascending order of the places in the order of now.
    """

    def __init__(self, ranges: Sequence[Range] = (), moves: Sequence[tuple[int, int]] = ()) -> None:
        self._ranges = ranges
        self._starts = [low for low, *_ in ranges]
        self._places = [place for place, _ in moves]
        self._shifts = [0, *accumulate(move for _, move in moves)]

    def within(self, low: int, high: int) -> Sequence[Range] | None:
        """Give the ranges of names that all begin alike, and alone do so, if none of them has changed; None if they are to be found."""
        first = bisect_left(self._places, low)
        if first < len(self._places) and self._places[first] <= high:
            return None
        shift = self._shifts[first]
        start, end = (bisect_left(self._starts, place - shift) for place in (low, high))
        found = self._ranges[start:end]
        if not found or found[0][0] != low - shift or found[-1][1] != high - shift:
            return None
        return [(start + shift, end + shift, path, part) for start, end, path, part in found]


UNCUT = Cut()
"""Of an index of which nothing is known."""


def split(
    counts: Mapping[str, int],
    tokens: Callable[[str], Tokens] = letters,
    *,
    most: int = LIMIT,
    limit: int = LIMIT,
) -> list[Shard]:
    """Part the names of an index into pages of bearable length.

    Names that begin alike stay together as long as they fit; which page a name stands on depends only on those beside it that begin alike.

    Args:
        counts: number of rows by name.
        tokens: how a name is looked up.
        most: rows that a page shows of one name, however many there are.
        limit: rows that it shows of all its names.

    Returns:
        The pages in the order of their names; none when there is no name.
    """
    names = [name for _, name in sorted((tokens(name), name) for name in counts)]
    return cut(names, list(map(counts.__getitem__, names)), tokens, most=most, limit=limit)[0]


def cut(  # noqa: PLR0913 - what is known of an index, and its limits
    names: Sequence[str],
    rows: Sequence[int],
    tokens: Callable[[str], Tokens] = letters,
    *,
    most: int = LIMIT,
    limit: int = LIMIT,
    before: Cut = UNCUT,
) -> tuple[list[Shard], list[Range]]:
    """Do so with names that are in order.

    Args:
        names: in their order.
        rows: their numbers of rows, at the same places.
        tokens: how a name is looked up.
        most: rows that a page shows of one name, however many there are.
        limit: rows that it shows of all its names.
        before: how it was cut before.

    Returns:
        The pages in the order of their names, none when there is no name; and the ranges from which to go on when names have changed.
    """
    if not names:
        return [], []
    most = min(most, limit)
    sums = [0, *accumulate([min(most, number) for number in rows])]
    ranges = list(_ranges(_Named(names, tokens), sums, limit, before))
    joined = _without_few(ranges, sums, limit)
    named_keys = zip(keys([(path, part) for _, _, path, part in joined]), joined, strict=True)
    return [Shard(key, tuple(names[low:high]), sum(rows[low:high])) for key, (low, high, _, _) in named_keys], ranges


class _Named:
    """Names with the steps by which they are looked up, told of those that are asked for."""

    def __init__(self, names: Sequence[str], tokens: Callable[[str], Tokens]) -> None:
        self._names = names
        self._tokens = tokens

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, place: int) -> Tokens:
        return self._tokens(self._names[place])


def _without_few(ranges: Iterable[Range], sums: list[int], limit: int) -> list[Range]:
    """Join a range of few rows to the one before it, and one before it of few rows to it, as long as both fit on one page."""
    joined: list[Range] = []
    for low, high, path, part in ranges:
        if joined:
            before = joined[-1]
            sizes = sums[high] - sums[low], sums[before[1]] - sums[before[0]]
            if min(sizes) * _FEW <= limit and sum(sizes) <= limit:
                joined[-1] = before[0], high, before[2], before[3]
                continue
        joined.append((low, high, path, part))
    return joined


def _ranges(named: _Named, sums: list[int], limit: int, before: Cut) -> Iterator[Range]:
    pending: list[Range] = [(0, len(named), (), 0)]
    while pending:
        low, high, path, _ = pending.pop()
        first, last = named[low], named[high - 1]
        if sums[high] - sums[low] <= limit:
            yield low, high, path, 0
        elif first == last:  # spelled alike but for case
            yield from ((start, end, path, part) for part, (start, end) in enumerate(_packed(list(range(low, high + 1)), sums, limit)))
        elif (known := before.within(low, high)) is not None:
            yield from known
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


def _token(tokens: Tokens, depth: int) -> str | tuple[str, ...]:
    """Give the token of a depth, if there is one: an empty one is not the same as none."""
    return tokens[depth : depth + 1]  # type: ignore[return-value] # steps are a text or a tuple


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
