"""The picture of a folder's imports: what it shows, that it is sound whatever the names, and that its lines can be followed."""

import random
import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbook import model
from rankbook.config import Settings
from rankbook.model import Folder, Module, Source, Survey
from rankbook.pages import Book, Tree, file_row, folder_pages, folder_view, pack_folders, totals_of
from rankbook.pages.drawing import GENERATED
from rankbook.pages.graph import MOST_FILES, GraphFile, import_graph, kind_of
from rankbook.pages.layers import layout, ordered, reduced, rows_of
from rankbook.pages.text import one_line

SVG = "{http://www.w3.org/2000/svg}"
ODD = st.sampled_from(list("<>&\"'/\\`[]()|\n\r\t\0\x85\u2028\u202e\ufffe漢é "))
NAMES = st.lists(ODD | st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50).map("".join)
GRAPHS = st.integers(1, 14).flatmap(
    lambda count: st.tuples(
        st.just(count), st.sets(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda edge: edge[0] != edge[1]))
    )
)


def draw(*imports, folder="pkg", files=(), outside=()):
    """Draw imports between files, written as `a b`: `a` imports `b`."""
    pairs = [line.split() for line in imports]
    names = sorted({name for pair in pairs for name in pair} | set(files))
    rows = [(f"{folder}/{a}.py", f"{folder}/{b}.py", 7) for a, b in pairs]
    return import_graph(folder, [GraphFile(f"{folder}/{name}.py") for name in names], [*rows, *outside])


def links(picture):
    """Give the label of each node with its address."""
    root = ET.fromstring(picture.svg)
    return {node.find(f"{SVG}text").text: node.get("href") for node in root.iter(f"{SVG}a")}


def titles(picture):
    """Give what the lines say."""
    root = ET.fromstring(picture.svg)
    return sorted({line for path in root.iter(f"{SVG}path") for title in path.iter(f"{SVG}title") for line in title.text.split("\n")})


def closure(count, edges):
    """Give all pairs of which the second can be reached from the first."""
    after = {node: {b for a, b in edges if a == node} for node in range(count)}
    found = set()
    for start in range(count):
        waiting = list(after[start])
        while waiting:
            node = waiting.pop()
            if (start, node) not in found:
                found.add((start, node))
                waiting += after[node]
    return found


def test_no_picture_without_two_connected_files():
    """Files that do not import each other, a file that imports itself, and imports of other folders make no picture."""
    files = [GraphFile("pkg/a.py"), GraphFile("pkg/b.py")]
    assert import_graph("pkg", [], []) is None
    assert import_graph("pkg", files, [("pkg/a.py", "pkg/a.py", 1), ("pkg/a.py", "other/x.py", 1), ("x.py", "pkg/b.py", 1)]) is None


def test_what_a_picture_shows():
    """Each connected file is a link to its page, each import a line that says so, and the caption counts what is not there."""
    picture = draw("test_a common", "test_b common", files=["alone"])
    assert links(picture) == {f"{name}.py": f"{name}.py_docs.html" for name in ("test_a", "test_b", "common")}
    assert titles(picture) == ["test_a.py imports common.py (line 7)", "test_b.py imports common.py (line 7)"]
    assert picture.says == (
        "Imports within pkg: 3 of 4 files; an arrow leads from a file to one that it imports. "
        "No import connects the other one with a file of the folder."
    )
    lines = picture.svg.decode().splitlines()
    assert lines[:2] == ['<?xml version="1.0" encoding="UTF-8"?>', GENERATED]
    root = ET.fromstring(picture.svg)
    assert root.find(f"{SVG}title").text == "Imports within pkg"
    assert root.find(f"{SVG}desc").text == picture.says
    assert "@media(prefers-color-scheme:dark)" in root.find(f"{SVG}style").text


def test_kinds():
    """Files of tests, files that pytest and Python look for, and others differ in shape and colour, and the legend says how."""
    kinds = {path: kind_of(path, has_tests=path.startswith("test")) for path in ("test_a.py", "conftest.py", "p/__init__.py", "b.py")}
    assert list(kinds.values()) == ["test", "support", "support", "file"]
    files = [GraphFile(f"p/{path.removeprefix('p/')}", kind) for path, kind in kinds.items()]
    picture = import_graph("p", files, [(file.path, "p/b.py", 1) for file in files])
    root = ET.fromstring(picture.svg)
    shapes = {node.find(f"{SVG}text").text: node.find(f"{SVG}rect").get("class") for node in root.iter(f"{SVG}a")}
    assert shapes == {"test_a.py": "test", "conftest.py": "support", "__init__.py": "support", "b.py": "file"}
    said = [text.text for text in root.findall(f"{SVG}text")]
    assert said[:3] == ["tests", "conftest.py and __init__.py", "other files"]


def test_other_folders_are_joined():
    """Where they are few, other folders are shown: those below by their first step, with the number of imports."""
    outside = [
        ("pkg/a.py", "pkg/sub/x.py", 1),
        ("pkg/a.py", "pkg/sub/deep/y.py", 2),
        ("tests/test_a.py", "pkg/a.py", 3),
        ("setup.py", "pkg/b.py", 4),
    ]
    picture = draw("a b", outside=outside)
    assert links(picture) == {
        "a.py": "a.py_docs.html",
        "b.py": "b.py_docs.html",
        "sub/": "sub/index.html",
        "tests/": "../tests/index.html",
        "/": "../index.html",
    }
    assert "a.py imports sub/ (2 imports)" in titles(picture)
    assert "tests/ imports a.py (1 import)" in titles(picture)
    many = [("pkg/a.py", f"other{number}/x.py", 1) for number in range(20)]
    assert set(links(draw("a b", outside=many))) == {"a.py", "b.py"}


def test_a_large_folder_shows_its_most_connected_files():
    """Sixty files are enough; the caption says of how many."""
    imports = [(f"f/m{number:03}.py", "f/hub.py", 1) for number in range(100)]
    imports += [(f"f/m{number:03}.py", f"f/m{number + 1:03}.py", 1) for number in range(30)]
    files = [GraphFile(f"f/m{number:03}.py") for number in range(213)] + [GraphFile("f/hub.py")]
    picture = import_graph("f", files, imports)
    assert picture.says.startswith("Imports within f: 60 of 214 files;")
    assert "They are those with most imports; 41 more are connected." in picture.says
    shown = links(picture)
    assert len(shown) == MOST_FILES
    assert {"hub.py", *(f"m{number:03}.py" for number in range(31))} <= shown.keys()


def test_a_dense_picture_leaves_out_what_follows():
    """Where imports are many, those that follow from others are left out, and the caption says how many."""
    names = "abcdef"
    picture = draw(*(f"{a} {b}" for a in names for b in names if a < b))
    assert titles(picture) == [f"{a}.py imports {b}.py (line 7)" for a, b in pairwise(names)]
    assert picture.says.endswith("10 imports that follow from those shown are left out.")
    sparse = draw("a b", "b c", "a c")
    assert len(titles(sparse)) == 3
    assert "left out" not in sparse.says


def test_a_cycle_is_shown_as_one():
    """An import that closes a cycle is dashed, and the legend says so."""
    picture = draw("a b", "b c", "c a")
    assert "closes a cycle" in picture.svg.decode()
    ups = [path for path in ET.fromstring(picture.svg).iter(f"{SVG}path") if "up" in path.get("class", "").split()]
    assert {title.text for path in ups for title in path.iter(f"{SVG}title")} == {"c.py imports a.py (line 7)"}
    assert "closes a cycle" not in draw("a b", "b c").svg.decode()


@given(folder=NAMES, names=st.lists(NAMES, min_size=2, max_size=6, unique=True), other=NAMES)
@settings(deadline=None, max_examples=150)
def test_names_never_break_a_picture(folder, names, other):
    """Whatever files and folders are called, the picture is sound XML that shows their names and leads to one address for each."""
    folder, other = folder.strip("/"), other.replace("/", "_")
    paths = [f"{folder}/{name.replace('/', '_')}" for name in names]
    if len(set(paths)) < 2:
        return
    imports = [(path, paths[0], 1) for path in sorted(set(paths[1:]) - {paths[0]})] + [(paths[0], f"{other}/x.py", 2)]
    picture = import_graph(folder, [GraphFile(path) for path in sorted(set(paths))], imports)
    root = ET.fromstring(picture.svg)
    assert root.find(f"{SVG}desc").text.strip() == picture.says.strip()
    shown = [node.find(f"{SVG}title").text for node in root.iter(f"{SVG}a")]
    assert sorted(filter(None, shown)) == sorted(filter(None, [*map(one_line, set(paths)), *_beside(folder, other)]))
    assert all(re.fullmatch(r"[A-Za-z0-9%/._~-]+\.html", node.get("href")) for node in root.iter(f"{SVG}a"))


def _beside(folder, other):
    """Give the title of the folder that stands for a file of another one, by the same rule."""
    path = f"{other}/x.py"
    inside = path.startswith(f"{folder}/") if folder else True
    start = f"{folder}/" if folder else ""
    found = start + path[len(start) :].partition("/")[0] if inside else path.rpartition("/")[0]
    return [one_line(found) or "the root folder"]


@given(GRAPHS)
@settings(deadline=None, max_examples=200)
def test_an_order_leads_back_only_in_cycles(graph):
    """All nodes are in the order; without a cycle no edge leads back, and no edge between two cycles ever does."""
    count, edges = graph
    order = ordered(count, sorted(edges))
    assert sorted(order) == list(range(count))
    place = {node: index for index, node in enumerate(order)}
    reach = closure(count, edges)
    assert all((b, a) in reach for a, b in edges if place[a] > place[b])


@given(GRAPHS)
@settings(deadline=None, max_examples=200)
def test_what_is_left_out_follows_from_what_is_shown(graph):
    """The same nodes can be reached over the edges that are kept, and without a cycle none of them could be spared."""
    count, edges = graph
    kept = reduced(sorted(edges), ordered(count, sorted(edges)))
    reach = closure(count, edges)
    assert set(kept) <= edges
    assert closure(count, kept) == reach
    if not any((node, node) in reach for node in range(count)):
        assert all((a, b) not in closure(count, [edge for edge in kept if edge != (a, b)]) for a, b in kept)


@given(GRAPHS, st.lists(st.integers(20, 300), min_size=14, max_size=14))
@settings(deadline=None, max_examples=150)
def test_nothing_overlaps_and_every_line_arrives(graph, widths):
    """No two boxes of a row touch, no trunk runs through a box, and each edge can be followed from its node to the other."""
    count, edges = graph
    rows = rows_of(ordered(count, sorted(edges)), sorted(edges), widths, 500)
    assert sorted(node for row in rows for node in row) == list(range(count))
    assert all(len(row) == 1 or sum(widths[node] for node in row) <= 500 for row in rows)
    made = layout(rows, sorted(edges), widths)
    for row in made.rows:
        halves = [widths[stop.node] / 2 if stop.is_up is None else 0 for stop in row]
        sides = [(made.x[stop] - half, made.x[stop] + half) for stop, half in zip(row, halves, strict=True)]
        assert all(left[1] + 5 < right[0] for left, right in pairwise(sides))
    for a, b in edges:
        steps = {segment.start: segment.end for segment in made.segments if segment.end.node == b and a in segment.sources}
        stop = next(stop for stop in steps if stop.node == a and stop.is_up is None)
        passed = [stop]
        while stop in steps:
            assert abs(steps[stop].row - stop.row) == 1
            stop = steps[stop]
            passed.append(stop)
        assert (stop.node, stop.is_up) == (b, None)
        assert len(passed) == len(steps) + 1


def test_the_same_picture_in_any_order():
    """The picture hangs on what is imported, not on the order in which it is told."""
    names = [f"p/m{number}.py" for number in range(30)]
    imports = [(a, b, 1) for index, a in enumerate(names) for b in names[index + 1 :: 3]] + [(names[9], names[2], 5)]
    picture = import_graph("p", [GraphFile(name) for name in names], imports)
    for seed in range(3):
        files = [GraphFile(name) for name in names]
        random.Random(seed).shuffle(files)
        random.Random(seed).shuffle(imports)
        assert import_graph("p", files, imports) == picture


def test_files_that_all_import_each_other():
    """The worst folder is drawn as any other."""
    names = [f"p/m{number}.py" for number in range(MOST_FILES)]
    picture = import_graph("p", [GraphFile(name) for name in names], [(a, b, 1) for a in names for b in names if a != b])
    assert len(links(picture)) == MOST_FILES
    assert len(picture.svg) < 200_000


@pytest.mark.parametrize("pack", ["rankbook", "repository", "repo-book"])
def test_a_folder_page_shows_its_picture(pack):
    """The page of a folder shows the picture as a link to itself, with what it shows as its text; one without a picture does not."""
    facts = {path: Module(Source(path, 1, "", "python", "Python source", 1)) for path in ("[p]/a_b.py", "[p]/test_c.py")}
    test = model.Test("test_c", "test_c", 1, "[p]/test_c.py")
    surveys = {"[p]/a_b.py": Survey("[p]/a_b.py"), "[p]/test_c.py": Survey("[p]/test_c.py", import_lines={"[p]/a_b.py": 3}, tests=(test,))}
    folders = {"": Folder("", ("[p]",)), "[p]": Folder("[p]", (), tuple(facts))}
    rows = {path: file_row(facts[path], surveys[path], 0) for path in facts}
    totals = {"[p]": totals_of(folders["[p]"], rows, {})}
    totals[""] = totals_of(folders[""], rows, totals)
    importers = {"[p]/a_b.py": {"[p]/test_c.py": 3}}
    tree = Tree("Book", folders, rows, totals, {path: {} for path in facts}, frozenset(), lambda path: importers.get(path, {}))
    book = Book("Book", pack_folders(Settings(pack=pack)))
    view = folder_view(tree, "[p]")
    assert titles(view.graph) == ["test_c.py imports a_b.py (line 3)"]
    pages = {
        page.path: page.data.decode()
        for path in ("", "[p]")
        for page in folder_pages(book, folder_view(tree, path))
        if page.path.endswith("doc.md")
    }
    assert (
        "[![Imports within \\[p\\]: 2 of 2 files; an arrow leads from a file to one that it imports.](imports.svg)](imports.svg)"
        in pages["[p]/doc.md"]
    )
    assert "imports.svg" not in pages["doc.md"]
