"""A graph in layers: which edges close a cycle, which follow from others, which row each node is in and where it stands there.

An edge `(a, b)` points down: `a` stands above `b`. An edge that closes a cycle points up. All edges to the same node share a trunk, so that
few lines cross a row and none of them branches towards two nodes.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

from msgspec import Struct, field

Edge = tuple[int, int]
_ROUNDS = 6
"""Sweeps over all rows, to order them and again to place them."""
_GAP, _TRUNK_GAP = 16.0, 8.0
"""Least room between two nodes, and beside a trunk."""
_STRAIGHT = 3.0
"""How much more a trunk wants to be straight than a node wants to be near to its neighbours."""


class Stop(NamedTuple):
    """Where a line passes a row: a node, or the trunk that leads to one."""

    node: int
    row: int
    is_up: bool | None = None
    """Of a trunk: whether it leads up; None for the node itself."""


class Segment(NamedTuple):
    """A piece of a line between two rows that touch each other, in the direction of its arrow."""

    start: Stop
    end: Stop
    sources: tuple[int, ...]
    """Nodes whose edges run over it."""


class Layout(Struct, frozen=True):
    """Where everything stands."""

    rows: tuple[tuple[Stop, ...], ...]
    """From the top, each from left to right."""
    x: Mapping[Stop, float]
    """Middle of each."""
    segments: tuple[Segment, ...]


def ordered(count: int, edges: Sequence[Edge]) -> tuple[int, ...]:
    """Order nodes such that few edges lead back: none where there is no cycle."""
    after: list[set[int]] = [set() for _ in range(count)]
    for a, b in edges:
        after[a].add(b)
    found: list[int] = []
    for part in _components(after):
        found += _unravelled(part, after)
    return tuple(found)


def reduced(edges: Sequence[Edge], order: Sequence[int]) -> tuple[Edge, ...]:
    """Leave out the edges whose end can be reached without them.

    Args:
        edges: all of them.
        order: the order of `ordered`.
    """
    place = {node: index for index, node in enumerate(order)}
    after = [0] * len(order)
    down = [edge for edge in edges if place[edge[0]] < place[edge[1]]]
    kept: set[Edge] = set()
    for part in (down, [edge for edge in edges if place[edge[0]] > place[edge[1]]]):
        for a, b in part:
            after[a] |= 1 << b
        for a, b in sorted(part, key=lambda edge: (-abs(place[edge[1]] - place[edge[0]]), edge)):
            after[a] &= ~(1 << b)
            if not _reaches(after, a, b):
                after[a] |= 1 << b
                kept.add((a, b))
    return tuple(edge for edge in edges if edge in kept)


def rows_of(order: Sequence[int], edges: Sequence[Edge], widths: Sequence[float], most: float) -> tuple[tuple[int, ...], ...]:
    """Share nodes out over rows, from the top: the first of two connected ones stands above the other.

    Args:
        order: the order of `ordered`.
        edges: all of them; one that leads back in the order points up.
        widths: by node.
        most: greatest width of a row of several nodes.
    """
    place = {node: index for index, node in enumerate(order)}
    after: list[list[int]] = [[] for _ in order]
    before: list[list[int]] = [[] for _ in order]
    for edge in edges:
        upper, lower = sorted(edge, key=place.__getitem__)
        after[upper].append(lower)
        before[lower].append(upper)
    height = [0] * len(order)
    for node in order:
        height[node] = max((height[above] + 1 for above in before[node]), default=0)
    waiting = [len(below) for below in after]
    ready = [node for node in order if not waiting[node]]
    rows: list[tuple[int, ...]] = []
    while ready:
        ready.sort(key=lambda node: (-height[node], -len(before[node]), place[node]))
        row: list[int] = []
        room = most
        for node in ready:
            if not row or widths[node] <= room:
                row.append(node)
                room -= widths[node] + _GAP
        taken = set(row)
        ready = [node for node in ready if node not in taken]
        rows.append(tuple(row))
        for node in row:
            for above in before[node]:
                waiting[above] -= 1
                if not waiting[above]:
                    ready.append(above)
    return _raised(rows[::-1], before, after, widths, most)


def layout(rows: Sequence[Sequence[int]], edges: Sequence[Edge], widths: Sequence[float]) -> Layout:
    """Order each row and place its nodes, such that lines are short and cross seldom.

    Args:
        rows: nodes by row.
        edges: between nodes of different rows.
        widths: by node.
    """
    draft = _Draft(_segments(rows, edges), widths, [[Stop(node, number) for node in row] for number, row in enumerate(rows)])
    for stop in sorted({stop for segment in draft.segments for stop in (segment.start, segment.end)}, key=_key):
        if stop.is_up is not None:
            draft.rows[stop.row].append(stop)
    draft.order()
    return Layout(tuple(tuple(row) for row in draft.rows), draft.place(), draft.segments)


def _raised(
    rows: Sequence[Sequence[int]], before: Sequence[Sequence[int]], after: Sequence[Sequence[int]], widths: Sequence[float], most: float
) -> tuple[tuple[int, ...], ...]:
    """Move what points to nothing up to the nodes that point to it, as far as there is room."""
    raised = [list(row) for row in rows]
    place = {node: number for number, row in enumerate(rows) for node in row}
    for node in [node for row in rows for node in row if not after[node]]:
        for number in range(max((place[above] + 1 for above in before[node]), default=place[node]), place[node]):
            if sum(widths[other] + _GAP for other in raised[number]) + widths[node] <= most:
                raised[place[node]].remove(node)
                raised[number].append(node)
                place[node] = number
                break
    return tuple(tuple(row) for row in raised if row)


def _components(after: Sequence[set[int]]) -> list[list[int]]:
    """Find the groups of nodes that all reach each other, each before those that it points to."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for root in range(len(after)):
        if root in index:
            continue
        work = [(root, iter(sorted(after[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(sorted(after[other]))))
                    break
                if other in on_stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    start = stack.index(node)
                    found.append(sorted(stack[start:]))
                    on_stack.difference_update(stack[start:])
                    del stack[start:]
    return found[::-1]


def _unravelled(part: Sequence[int], after: Sequence[set[int]]) -> list[int]:
    """Order the nodes of a cycle such that few edges lead back: sinks last, sources first, else what points to most first."""
    left = set(part)
    out = {node: after[node] & left for node in part}
    into: dict[int, set[int]] = {node: set() for node in part}
    for node in part:
        for other in out[node]:
            into[other].add(node)
    first: list[int] = []
    last: list[int] = []
    while left:
        sink = next((node for node in sorted(left) if not out[node]), None)
        node = sink if sink is not None else min(left, key=lambda node: (bool(into[node]), len(into[node]) - len(out[node]), node))
        (last if sink is not None else first).append(node)
        left.remove(node)
        for other in out[node]:
            into[other].discard(node)
        for other in into[node]:
            out[other].discard(node)
    return first + last[::-1]


def _reaches(after: Sequence[int], start: int, end: int) -> bool:
    seen = fresh = after[start]
    while fresh:
        if seen >> end & 1:
            return True
        lowest = fresh & -fresh
        fresh ^= lowest
        more = after[lowest.bit_length() - 1] & ~seen
        seen |= more
        fresh |= more
    return False


def _segments(rows: Sequence[Sequence[int]], edges: Sequence[Edge]) -> tuple[Segment, ...]:
    row = {node: number for number, nodes in enumerate(rows) for node in nodes}
    sources: dict[tuple[Stop, Stop], list[int]] = {}
    for a, b in sorted(edges):
        is_up = row[a] > row[b]
        step = -1 if is_up else 1
        on_the_way = [Stop(b, number, is_up) for number in range(row[a] + step, row[b], step)]
        stops = [Stop(a, row[a]), *on_the_way, Stop(b, row[b])]
        for start, end in pairwise(stops):
            sources.setdefault((start, end), []).append(a)
    return tuple(Segment(start, end, tuple(nodes)) for (start, end), nodes in sources.items())


def _key(stop: Stop) -> tuple[int, int, int]:
    return stop.row, stop.node, -1 if stop.is_up is None else int(stop.is_up)


class _Draft(Struct, dict=True):
    """Rows that are being ordered and placed."""

    segments: tuple[Segment, ...]
    widths: Sequence[float]
    rows: list[list[Stop]]
    above: dict[Stop, list[Stop]] = field(default_factory=dict)
    below: dict[Stop, list[Stop]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for segment in self.segments:
            upper, lower = sorted((segment.start, segment.end), key=lambda stop: stop.row)
            self.above.setdefault(lower, []).append(upper)
            self.below.setdefault(upper, []).append(lower)

    def order(self) -> None:
        """Sweep down and up, putting each stop at the mean of its neighbours; keep the order with fewest crossings."""
        best, fewest = [list(row) for row in self.rows], self._crossings()
        for turn in range(2 * _ROUNDS):
            if not fewest:
                break
            down = turn % 2 == 0
            numbers = range(1, len(self.rows)) if down else range(len(self.rows) - 2, -1, -1)
            for number in numbers:
                self._sort(number, self.above if down else self.below, number - 1 if down else number + 1)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
        self.rows = best

    def place(self) -> dict[Stop, float]:
        """Sweep down and up, moving each stop as near to its neighbours as its row lets it."""
        x: dict[Stop, float] = {}
        rows = [(row, self._offsets(row)) for row in self.rows]
        for row, offsets in rows:
            x.update(zip(row, _apart(row, offsets, [0.0] * len(row)), strict=True))
        pulls = self._pulls
        for turn in range(2 * _ROUNDS):
            for row, offsets in rows if turn % 2 == 0 else rows[::-1]:
                wanted = [_mean([(x[other], weight) for other, weight in pulls[stop]], x[stop]) for stop in row]
                x.update(zip(row, _apart(row, offsets, wanted), strict=True))
        self._close_up(x)
        return x

    def _close_up(self, x: dict[Stop, float]) -> None:
        """Move parts that nothing connects towards each other, from the left."""
        part = self._parts()
        edge = min(middle - self._width(stop) / 2 for stop, middle in x.items())
        beside = {right: left for row in self.rows for left, right in pairwise(row)}
        for number in sorted(set(part.values()), key=lambda number: min((x[stop], _key(stop)) for stop in x if part[stop] == number)):
            own = [stop for stop in x if part[stop] == number]
            free = [self._free(stop, beside.get(stop), x, edge) for stop in own if part.get(beside.get(stop)) != number]
            for stop in own:
                x[stop] -= min(free)

    def _free(self, stop: Stop, left: Stop | None, x: Mapping[Stop, float], edge: float) -> float:
        """Give the room to the left of a stop."""
        return x[stop] - (edge + self._width(stop) / 2 if left is None else x[left] + self._room(left, stop))

    def _parts(self) -> dict[Stop | None, int]:
        """Number the parts of the graph that are connected."""
        part: dict[Stop | None, int] = {}
        for number, start in enumerate(stop for row in self.rows for stop in row):
            waiting = [start]
            while waiting:
                stop = waiting.pop()
                if stop not in part:
                    part[stop] = number
                    waiting += [other for other, _ in self._pulls[stop]]
        return part

    @cached_property
    def _pulls(self) -> dict[Stop, list[tuple[Stop, float]]]:
        """What each stop wants to be near to, and how much; a trunk wants to be straight above all."""
        beside = {stop: [*self.above.get(stop, ()), *self.below.get(stop, ())] for row in self.rows for stop in row}
        return {stop: [(other, _STRAIGHT if _is_trunk(stop, other) else 1.0) for other in others] for stop, others in beside.items()}

    def _sort(self, number: int, beside: Mapping[Stop, list[Stop]], other: int) -> None:
        place = {stop: float(index) for index, stop in enumerate(self.rows[other])}
        own = {stop: float(index) for index, stop in enumerate(self.rows[number])}
        mean = {stop: _mean([(place[neighbour], 1.0) for neighbour in beside.get(stop, ())], own[stop]) for stop in self.rows[number]}
        self.rows[number].sort(key=lambda stop: (mean[stop], own[stop]))

    def _crossings(self) -> int:
        total = 0
        for upper, lower in pairwise(self.rows):
            place = {stop: index for index, stop in enumerate(lower)}
            seen: list[int] = []
            for stop in upper:
                ends = [place[other] for other in self.below.get(stop, ())]
                total += sum(len(seen) - bisect_right(seen, end) for end in ends)
                for end in ends:
                    insort(seen, end)
        return total

    def _offsets(self, row: Sequence[Stop]) -> list[float]:
        """Tell how far the stops of a row must at least be from the first one."""
        return [*accumulate((self._room(left, right) for left, right in pairwise(row)), initial=0.0)]

    def _room(self, left: Stop, right: Stop) -> float:
        gap = _GAP if left.is_up is None and right.is_up is None else _TRUNK_GAP
        return (self._width(left) + self._width(right)) / 2 + gap

    def _width(self, stop: Stop) -> float:
        return self.widths[stop.node] if stop.is_up is None else 0.0


def _apart(row: Sequence[Stop], offsets: Sequence[float], wanted: Sequence[float]) -> list[float]:
    """Keep the order and the room between stops, as near to where they want to be as all of them together can.

    Args:
        row: the stops.
        offsets: how far they must at least be from the first one.
        wanted: where they want to be.
    """
    # Without their offsets the places must not decrease: pool the neighbours that would.
    blocks: list[tuple[float, float, int]] = []
    for stop, goal, offset in zip(row, wanted, offsets, strict=True):
        weight = 1.0 if stop.is_up is None else 2.0
        total, weights, count = weight * (goal - offset), weight, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / weights:
            before = blocks.pop()
            total, weights, count = total + before[0], weights + before[1], count + before[2]
        blocks.append((total, weights, count))
    bases = [total / weights for total, weights, count in blocks for _ in range(count)]
    return [base + offset for base, offset in zip(bases, offsets, strict=True)]


def _is_trunk(stop: Stop, other: Stop) -> bool:
    return stop.node == other.node and (stop.is_up is not None or other.is_up is not None)


def _mean(values: Sequence[tuple[float, float]], otherwise: float) -> float:
    total = weights = 0.0
    for value, weight in values:
        total += value * weight
        weights += weight
    return total / weights if values else otherwise
