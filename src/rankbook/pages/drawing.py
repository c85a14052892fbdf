"""A layered graph as SVG: boxes that are links, lines with arrows, a legend and a caption, for light and dark screens."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from textwrap import wrap

from msgspec import Struct

from rankbook.pages.layers import Edge, Layout, Segment, Stop
from rankbook.pages.text import one_line

GENERATED = "<!-- rankbook: generated -->"
"""Second line of a picture, by which the writer knows it as its own."""
KINDS = {
    "test": "tests",
    "support": "conftest.py and __init__.py",
    "file": "other files",
    "folder": "other folders",
}
"""What a node may be, with what the legend says of it."""
_Sign = Callable[[float, float], str]
_LONGEST = 34
"""Characters of a label."""
_CHARACTER, _PADDING = 7.0, 9.0
"""Width of a label's character, room beside a label."""
_HEIGHT, _STEP, _MARGIN = 24.0, 64.0, 20.0
"""Height of a node, distance of two rows, edge of the picture."""
_SMALL, _LINE = 6.1, 18.0
"""Width of a character and height of a line, of legend and caption."""
_NARROWEST = 420.0
_PORTS = 14.0
"""Greatest distance of two lines that leave a node."""
_ARROW = 6.0
_TITLES = 12
"""Imports that a line's title lists."""
_LIGHT = ("#1565c0", "#c2410c", "#2e7d32", "#8e24aa", "#00838f", "#ad1457", "#6d4c41", "#4e5d94")
_DARK = ("#64b5f6", "#ff9e6d", "#81c784", "#ce93d8", "#4dd0e1", "#f48fb1", "#bcaaa4", "#9fa8da")
"""Colours that the lines take in turn."""


def _coloured(colours: Sequence[str]) -> str:
    return "".join(f".t{index}{{stroke:{colour}}}#a{index}{{fill:{colour}}}" for index, colour in enumerate(colours))


_STYLE = (
    "text{font:12px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;text-anchor:middle;fill:#1b1f24}"
    ".c{font:11px system-ui,sans-serif;text-anchor:start;fill:#57606a}"
    "rect{stroke:#57606a}.page{fill:#fff;stroke:none}.test{fill:#dbeafe}.support{fill:#fef3c7}.file{fill:#f3f4f6}"
    ".folder{fill:#fff;stroke-dasharray:3 2}"
    f".e{{fill:none;stroke-width:1.4}}.up{{stroke-dasharray:5 3}}a:hover rect,a:focus rect{{stroke-width:2.5}}{_coloured(_LIGHT)}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.c{fill:#9da7b3}rect{stroke:#9da7b3}.page,.folder{fill:#1e2129}"
    f".test{{fill:#1e3a5f}}.support{{fill:#4a3c12}}.file{{fill:#30363d}}{_coloured(_DARK)}}}"
)
_HEAD = "".join(
    f'<marker id="a{index}" viewBox="0 0 8 8" refX="1" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z"/></marker>'
    for index in range(len(_LIGHT))
)


class Node(Struct, frozen=True):
    """A box with a name."""

    label: str
    title: str
    """What it says to a reader who points at it."""
    href: str
    """Where it leads."""
    kind: str
    """A word of `KINDS`."""


def width_of(node: Node) -> float:
    """Give the width of a node's box."""
    return _columns(_short(node.label)) * _CHARACTER + 2 * _PADDING


def draw(title: str, caption: str, nodes: Sequence[Node], edges: Mapping[Edge, str], made: Layout) -> str:
    """Draw a graph.

    Args:
        title: what the picture is, in a few words.
        caption: what it shows, in sentences.
        nodes: by number.
        edges: what each edge says to a reader who points at it.
        made: where everything stands.
    """
    graph = _Graph(nodes, edges, made)
    width = max(graph.width, _NARROWEST)
    legend = _Legend(width, graph.height)
    for kind in (kind for kind in KINDS if any(node.kind == kind for node in nodes)):
        legend.add(KINDS[kind], partial(_sign, kind))
    if graph.has_cycles:
        legend.add("closes a cycle", lambda x, y: f'<path class="e up t0" d="M{x:g} {y - 4:g}h20"/>')
    lines = wrap(one_line(caption), int((width - 2 * _MARGIN) / _SMALL))
    texts = [
        f'<text class="c" x="{_MARGIN:g}" y="{legend.y + 4 + _LINE * index:g}">{_xml(line)}</text>' for index, line in enumerate(lines, 1)
    ]
    height = legend.y + 4 + _LINE * len(lines) + _MARGIN
    view = f'viewBox="0 0 {width:.0f} {height:.0f}"'
    size = f'width="{width:.0f}" height="{height:.0f}"'
    return "\n".join(
        (
            '<?xml version="1.0" encoding="UTF-8"?>',
            GENERATED,
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} role="img" aria-labelledby="title desc">',
            f'<title id="title">{_xml(title)}</title>',
            f'<desc id="desc">{_xml(caption)}</desc>',
            f"<style>{_STYLE}{graph.highlights()}</style>",
            f"<defs>{_HEAD}</defs>",
            f'<rect class="page" {size} rx="6"/>',
            f'<g transform="translate({(width - graph.width) / 2:.1f} 0)">',
            *graph.lines(),
            *graph.boxes(),
            "</g>",
            *legend.entries,
            *texts,
            "</svg>\n",
        )
    )


class _Legend:
    """What shapes and lines mean, on as many lines as that needs."""

    def __init__(self, width: float, top: float) -> None:
        self.entries: list[str] = []
        self._width = width
        self._x = _MARGIN
        self.y = top + _LINE

    def add(self, says: str, sign: _Sign) -> None:
        """Add an entry: its sign, with what it says."""
        wide = 26 + _SMALL * len(says)
        if self._x > _MARGIN and self._x + wide > self._width - _MARGIN:
            self._x, self.y = _MARGIN, self.y + _LINE
        text = f'<text class="c" x="{self._x + 26:g}" y="{self.y:g}">{_xml(says)}</text>'
        self.entries.append(sign(self._x, self.y) + text)
        self._x += wide + 16


class _Graph:
    """Nodes and lines, with the left one of them at the margin."""

    def __init__(self, nodes: Sequence[Node], edges: Mapping[Edge, str], made: Layout) -> None:
        self._nodes = nodes
        self._edges = edges
        self._made = made
        self._widths = [width_of(node) for node in nodes]
        sides = [(x - self._half(stop), x + self._half(stop)) for stop, x in made.x.items()]
        self._left = _MARGIN - min(left for left, _ in sides)
        self.width = self._left + max(right for _, right in sides) + _MARGIN
        self.height = 2 * _MARGIN + _STEP * (len(made.rows) - 1) + _HEIGHT
        self.has_cycles = any(_is_up(segment) for segment in made.segments)
        targets = dict.fromkeys(segment.end.node for segment in made.segments)
        self._colours = {node: index % len(_LIGHT) for index, node in enumerate(targets)}
        self._ports = self._spread()

    def lines(self) -> Iterator[str]:
        """Draw all pieces of lines; a piece that crosses a row crosses the next one with it."""
        for segment in self._made.segments:
            colour = self._colours[segment.end.node]
            arrow = f' marker-end="url(#a{colour})"' if segment.end.is_up is None else ""
            titles = [self._edges[source, segment.end.node] for source in segment.sources]
            said = [*titles[:_TITLES], *([f"and {len(titles) - _TITLES} more"] if len(titles) > _TITLES else [])]
            title = "\n".join(map(_xml, said))
            yield f'<path class="{self._classes(segment)}" d="{self._way(segment)}"{arrow}><title>{title}</title></path>'

    def boxes(self) -> Iterator[str]:
        """Draw all nodes, each as a link."""
        for stop in (stop for row in self._made.rows for stop in row if stop.is_up is None):
            node, width = self._nodes[stop.node], self._widths[stop.node]
            x, y = self._left + self._made.x[stop], self._y(stop.row)
            length = f'textLength="{width - 2 * _PADDING:.1f}" lengthAdjust="spacingAndGlyphs"'
            yield (
                f'<a id="n{stop.node}" href="{_xml(node.href)}">{_box(node.kind, x - width / 2, y - _HEIGHT / 2, width, _HEIGHT)}'
                f'<text x="{x:.1f}" y="{y + 4:.1f}" {length}>{_xml(_short(node.label))}</text><title>{_xml(node.title)}</title></a>'
            )

    def highlights(self) -> str:
        """Give the rules by which all lines fade but those of the node that a reader points at."""
        numbers = range(len(self._nodes))
        return "".join(f"svg:has(#n{number}:is(:hover,:focus)) .e:not(.n{number}){{opacity:.12}}" for number in numbers)

    def _classes(self, segment: Segment) -> str:
        nodes = (segment.end.node, *segment.sources)
        return " ".join([f"e t{self._colours[segment.end.node]}", *(["up"] if _is_up(segment) else []), *(f"n{node}" for node in nodes)])

    def _half(self, stop: Stop) -> float:
        return self._widths[stop.node] / 2 if stop.is_up is None else 2.0

    def _y(self, row: int) -> float:
        return _MARGIN + _HEIGHT / 2 + _STEP * row

    def _spread(self) -> dict[Segment, float]:
        """Give each line that leaves a node a place of its own beside the middle, in the order of where they lead."""
        leaving: dict[tuple[Stop, bool], list[Segment]] = {}
        for segment in self._made.segments:
            if segment.start.is_up is None:
                leaving.setdefault((segment.start, _is_up(segment)), []).append(segment)
        ports: dict[Segment, float] = {}
        for (stop, is_up), segments in leaving.items():
            segments.sort(key=lambda segment: (self._made.x[segment.end], segment.end.node))
            step = min(_PORTS, (self._widths[stop.node] - 2 * _PADDING) / len(segments))
            # Arrows arrive in the middle of the upper side: a line that leaves it there keeps clear of them.
            first = step / 2 if is_up and len(segments) % 2 else 0.0
            ports |= {segment: first + (index - (len(segments) - 1) / 2) * step for index, segment in enumerate(segments)}
        return ports

    def _way(self, segment: Segment) -> str:
        side = -1 if _is_up(segment) else 1
        x0 = self._left + self._made.x[segment.start] + self._ports.get(segment, 0.0)
        x1 = self._left + self._made.x[segment.end]
        y0 = self._y(segment.start.row) + side * _HEIGHT / 2
        y1 = self._y(segment.end.row) - side * (_HEIGHT / 2 + (_ARROW if segment.end.is_up is None else 0))
        start = f"M{x0:.1f} {y0:.1f}" if segment.start.is_up is None else f"M{x0:.1f} {y0 - side * _HEIGHT:.1f}V{y0:.1f}"
        middle = (y0 + y1) / 2
        straight = abs(x0 - x1) < 0.05
        return f"{start}V{y1:.1f}" if straight else f"{start}C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"


def _is_up(segment: Segment) -> bool:
    return segment.end.row < segment.start.row


def _box(kind: str, x: float, y: float, width: float, height: float) -> str:
    radius = {"test": height / 2, "folder": 0}.get(kind, 3)
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:g}" rx="{radius:g}"/>'


def _sign(kind: str, x: float, y: float) -> str:
    return _box(kind, x, y - 10, 20, 12)


def _short(label: str) -> str:
    half = _LONGEST // 2
    return label if len(label) <= _LONGEST else f"{label[:half]}…{label[1 - half :]}"


def _columns(label: str) -> int:
    """Count the columns of a label in a font of equally wide characters, of which some take two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in label)


def _xml(said: str) -> str:
    return escape(one_line(said), quote=True)
