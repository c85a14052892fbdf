"""The imports between the files of a folder as a picture: what it shows, and what it says of what it leaves out."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from rankbook.pages.drawing import Node, draw, width_of
from rankbook.pages.layers import Edge, layout, ordered, reduced, rows_of
from rankbook.pages.names import page_of_file, page_of_folder
from rankbook.pages.text import one_line, url
from rankbook.report import plural

NAME = "imports.svg"
"""Name of the picture among the pages of its folder."""
MOST_FILES = 60
"""Files that a picture shows."""
_MOST_FOLDERS = 6
"""Other folders that it shows on each side; where there are more, it shows none."""
_FEW_FILES = 30
"""Files up to which it shows other folders at all."""
_DENSE = 1.4
"""Imports for each node from which on those that follow from others are left out."""
_WIDTH = 560.0
"""Width of a row of several nodes."""

Import = tuple[str, str, int]
"""Importing file, imported file, and the line that says so."""


class GraphFile(Struct, frozen=True):
    """A file of the folder."""

    path: str
    kind: str = "file"
    """A word of `drawing.KINDS`."""


class Picture(Struct, frozen=True):
    """The imports of a folder, drawn."""

    svg: bytes
    says: str
    """What it shows, in sentences."""


class _Graph(Struct, frozen=True):
    """What is drawn, while it is gathered."""

    folder: str
    number: dict[str, int]
    """Node by path of its file."""
    nodes: list[Node]
    edges: dict[Edge, str] = field(default_factory=dict)
    """Each import with what it says."""


def kind_of(path: str, *, has_tests: bool) -> str:
    """Say as what a picture shows a file: a word of `drawing.KINDS`."""
    if path.rpartition("/")[2] in ("conftest.py", "__init__.py", "__init__.pyi"):
        return "support"
    return "test" if has_tests else "file"


def import_graph(folder: str, files: Sequence[GraphFile], imports: Iterable[Import]) -> Picture | None:
    """Draw the imports between the files of a folder, and, where they are few, those from and to other folders.

    Args:
        folder: its path.
        files: its direct files.
        imports: in any order, each pair of files once; those without a file of the folder are passed over.

    Returns:
        The picture; None when no two files of the folder are connected.
    """
    own = {file.path: file for file in files}
    rows = sorted(row for row in imports if (row[0] in own or row[1] in own) and row[0] != row[1])
    inner = [row for row in rows if row[0] in own and row[1] in own]
    if not inner:
        return None
    degrees = Counter(path for row in inner for path in row[:2])
    chosen = sorted(sorted(degrees, key=lambda path: (-degrees[path], path))[:MOST_FILES])
    graph = _Graph(folder, {path: number for number, path in enumerate(chosen)}, [_file_node(folder, own[path]) for path in chosen])
    for a, b, line in inner:
        if a in graph.number and b in graph.number:
            graph.edges[graph.number[a], graph.number[b]] = f"{_name(a)} imports {_name(b)} (line {line})"
    if len(chosen) <= _FEW_FILES:
        _add_folders(graph, [(a, b) for a, b, _ in rows if a not in own], is_importing=True)
        _add_folders(graph, [(b, a) for a, b, _ in rows if b not in own], is_importing=False)
    return _picture(graph, tuple(_what_is_shown(folder, len(chosen), len(degrees), len(own))))


def _picture(graph: _Graph, says: tuple[str, ...]) -> Picture:
    edges = tuple(sorted(graph.edges))
    order = ordered(len(graph.nodes), edges)
    shown = reduced(edges, order) if len(edges) > _DENSE * len(graph.nodes) else edges
    widths = [width_of(node) for node in graph.nodes]
    made = layout(rows_of(order, shown, widths, _WIDTH), shown, widths)
    caption = " ".join((*says, *_what_is_left_out(len(edges) - len(shown))))
    return Picture(draw(_title(graph.folder), caption, graph.nodes, graph.edges, made).encode(), caption)


def _title(folder: str) -> str:
    return f"Imports within {one_line(folder) or 'the root folder'}"


def _what_is_shown(folder: str, shown: int, connected: int, files: int) -> Iterator[str]:
    yield f"{_title(folder)}: {shown:,} of {plural(files, 'file')}; an arrow leads from a file to one that it imports."
    if shown < connected:
        yield f"They are those with most imports; {connected - shown:,} more {'is' if connected - shown == 1 else 'are'} connected."
    elif shown < files:
        yield f"No import connects the {'other one' if files - shown == 1 else f'other {files - shown:,}'} with a file of the folder."


def _what_is_left_out(count: int) -> Iterator[str]:
    if count:
        follow, are = ("follows", "is") if count == 1 else ("follow", "are")
        yield f"{plural(count, 'import')} that {follow} from those shown {are} left out."


def _add_folders(graph: _Graph, pairs: Iterable[tuple[str, str]], *, is_importing: bool) -> None:
    """Add the folders that import files of this one, or those that such files import, when they are few.

    Args:
        graph: what is drawn.
        pairs: each file outside with the one inside.
        is_importing: whether the file outside is the one that imports.
    """
    found: dict[str, dict[str, int]] = {}
    for outside, inside in pairs:
        if inside in graph.number:
            counts = found.setdefault(_beside(graph.folder, outside), {})
            counts[inside] = counts.get(inside, 0) + 1
    for other in sorted(found) if len(found) <= _MOST_FOLDERS else ():
        node = len(graph.nodes)
        graph.nodes.append(_folder_node(graph.folder, other))
        for path, count in sorted(found[other].items()):
            number, label = graph.number[path], graph.nodes[node].label
            if is_importing:
                graph.edges[node, number] = f"{label} imports {_name(path)} ({plural(count, 'import')})"
            else:
                graph.edges[number, node] = f"{_name(path)} imports {label} ({plural(count, 'import')})"


def _beside(folder: str, path: str) -> str:
    """Name the folder that stands for a file outside: below this folder it is the first on the way to the file."""
    start = f"{folder}/" if folder else ""
    if path.startswith(start):
        return start + path[len(start) :].partition("/")[0]
    return posixpath.dirname(path)


_PAGE = re.compile(rb'(<a id="n\d+" href=")((?:[^"]*/)?)(?:index|([^"/]+))\.html(?=")')
"""The address of a page: `index` is that of its folder."""


def _file_node(folder: str, file: GraphFile) -> Node:
    return Node(_name(file.path), one_line(file.path), _address(page_of_file("file", file.path), folder), file.kind)


def _folder_node(folder: str, other: str) -> Node:
    label = f"{other.removeprefix(f'{folder}/') if folder else other}/"
    return Node(one_line(label), one_line(other) or "the root folder", _address(page_of_folder("index", other), folder), "folder")


def _name(path: str) -> str:
    return one_line(path.rpartition("/")[2])


def _address(page: str, folder: str) -> str:
    """Give the address of a page on the site, where nobody rewrites the links of pictures as those of pages."""
    return url(posixpath.relpath(f"/{page}", f"/{folder}")).removesuffix(".md") + ".html"


def with_directories(data: bytes) -> bytes:
    """Write a picture anew for a site that gives each page a folder of its own (MkDocs' `use_directory_urls`).

    Args:
        data: the picture as it was generated.
    """

    def addressed(match: re.Match[bytes]) -> bytes:
        below = match[2] + (match[3] + b"/" if match[3] else b"")
        return match[1] + (below or b"./")

    return _PAGE.sub(addressed, data)
