"""The search of the book in a real browser: what is found, how it is shown, and the keys that steer it."""

from __future__ import annotations

import re

import pytest
import yaml

from browsing import DESKTOP, PHONE, served, visits
from rankbook import searching
from rankbook.config import load
from rankbook.document import survey_tree
from tiny_site import RING, build, mkdocs, write_project

pytest.importorskip("material", reason="the site needs the extra `site`")

pytestmark = pytest.mark.browser
COLLECTIVES = '''\
"""Collectives under all their names."""

import torch.distributed as dist

MOST_RANKS = 8
"""A name with two words."""


def allreduce_all(tensors):
    return [dist.all_reduce(tensor) for tensor in tensors]


class AllReduceWorker:
    def forward(self):
        """As every module does."""


class Other:
    def forward(self):
        """As every module does, too."""


class ÜberGroß:
    """A name with letters that are not English."""


def test_all_reduce():
    dist.all_reduce(None)
'''
SPOTS = {"allreduce_all": "def allreduce_all", "AllReduceWorker": "class AllReduceWorker"}
SCATTERS = {
    "suite/test_scatter.py": "import torch\n\n\ndef test_one():\n    torch.scatter()\n    torch.distributed.scatter()\n",
    "suite/test_scatters.py": "import torch.distributed as dist\n\n\ndef test_two():\n    dist.scatter()\n",
}
MARKED = """\
import pytest


@pytest.mark.unhurried
@pytest.mark.world_size(3)
@pytest.mark.gpus(3)
@halls.without_echo(3)
def test_marked():
    pass
"""
WAYS = """\
import pytest


@pytest.mark.parametrize("shape", [(1, 2), (3, 4)])
@pytest.mark.parametrize("size", [12, True])
@pytest.mark.parametrize("way", ["with a gap", "one.two::three", "日本語", "<b>bold</b>"])
def test_ways(way, size, shape):
    pass
"""
SHARES = """\
import pytest


@pytest.mark.parametrize("share", ["100%", "7%"])
def test_share(share):
    pass
"""
SNAKES = """\
import pytest


class PythonSnakes:
    _gauge = 3


class PySnake(PythonSnakes):
    gauge = 4


class TestSnakes:
    def test_gauge(self):
        assert PySnake.gauge > PythonSnakes._gauge

    @pytest.mark.parametrize("speed", ["slow", "fast"])
    @pytest.mark.parametrize("machine", ["4gpu", "cpu"])
    def test_gauge_of(self, speed, machine): ...
"""
HOSTILE = '# Owner(s): ["<img src=x onerror=document.title=1>"]\n\n\ndef test_owned():\n    pass\n'


def project(root, *, theme=True):
    """Write and build the tiny project with sources to search in; give its site."""
    write_project(root, theme=theme)
    (root / "suite/test_collectives.py").write_text(COLLECTIVES, encoding="utf-8")
    (root / "suite/test_hostile.py").write_text(HOSTILE, encoding="utf-8")
    (root / "suite/test_marked.py").write_text(MARKED, encoding="utf-8")
    (root / "suite/test_ways.py").write_text(WAYS, encoding="utf-8")
    (root / "suite/test_snakes.py").write_text(SNAKES, encoding="utf-8")
    (root / "suite/test_shares.py").write_text(SHARES, encoding="utf-8")
    (root / "suite/test_[x].py").write_text("def test_bracketed():\n    pass\n", encoding="utf-8")
    for path, text in SCATTERS.items():
        (root / path).write_text(text, encoding="utf-8")
    site = build(root)
    settings = load(root)
    written = searching.write(settings, site, base="book", survey=lambda: survey_tree(settings))
    assert written.files > 1
    return site


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """The site below a path of its own, as on a forge's pages, with Material and with MkDocs' own theme."""
    folder = tmp_path_factory.mktemp("search")
    project(folder / "material-project").rename(folder / "material")
    project(folder / "plain-project", theme=False).rename(folder / "plain")
    return folder


@pytest.fixture(scope="module")
def address(sites):
    with served(sites) as address:
        yield f"{address}material/"


@pytest.fixture
def visit(chromium, address):
    """A function that opens a page of the site, or any address, at a size."""
    with visits(chromium) as opened:

        def open_page(path="", **options):
            page = opened(**options)
            page.goto(path if "://" in path else address + path)
            return page

        yield open_page


@pytest.fixture(scope="module")
def used(chromium, address):
    """A page on which one question after another is asked."""
    with visits(chromium) as opened:
        page = opened()
        page.goto(address)
        yield page


@pytest.fixture
def asked(used, address):
    """The same page for questions that leave nothing behind; where a test has left something, it is opened again."""
    if used.url != address or used.locator("dialog.rankbook-search [aria-pressed=true]").count():
        used.goto(address)
    return used


def line_of(text, source=COLLECTIVES):
    return next(number for number, line in enumerate(source.splitlines(), 1) if text in line)


def ask(page, text):
    """Open the search, type, and give the results as kind, name and place."""
    if not page.locator("dialog.rankbook-search").is_visible():
        page.keyboard.press("t")
    box = page.get_by_role("combobox", name="Find a test")
    box.fill(text)
    page.wait_for_function("text => document.querySelector('.rankbook-search__status').dataset.query === text", arg=text)
    return results(page)


def results(page):
    return [tuple(option.locator("> *").all_inner_texts()) for option in page.get_by_role("option").all()]


def status(page):
    return page.locator(".rankbook-search").get_by_role("status").inner_text()


API = ("API", "torch.distributed.all_reduce", "in 1 file")
TEST = ("test", "test_all_reduce", f"suite/test_collectives.py:{line_of('def test_all_reduce')}")
FUNCTION = ("function", "allreduce_all", f"suite/test_collectives.py:{line_of('def allreduce_all')}")
CLASS = ("class", "AllReduceWorker", f"suite/test_collectives.py:{line_of('class AllReduceWorker')}")


@pytest.mark.parametrize("query", ["all_reduce", "AllReduce", "allreduce", "all reduce", "allre"])
def test_one_name_however_it_is_written(asked, query):
    """A name is found with and without underscores, capitals and blanks between its words; exact names come first."""
    found = ask(asked, query)
    assert {API, TEST, FUNCTION, CLASS} <= set(found)
    assert query == "allre" or found[0] == API


@pytest.mark.parametrize(("query", "first"), [("reduce", TEST), ("dist.all_reduce", API), ("torch.distributed.all_reduce", API)])
def test_a_part_of_a_name(asked, query, first):
    """A name is found by any of its words, and by what it stands in; tests come first among equals."""
    assert ask(asked, query)[0] == first


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("suite/test_snakes.py", ("file", "test_snakes.py", "suite/test_snakes.py")),
        ("test_snakes.py", ("file", "test_snakes.py", "suite/test_snakes.py")),
        ("gauge", ("test", "TestSnakes::test_gauge", f"suite/test_snakes.py:{line_of('def test_gauge', SNAKES)}")),
        ("    def test_gauge(self):", ("test", "TestSnakes::test_gauge", f"suite/test_snakes.py:{line_of('def test_gauge', SNAKES)}")),
        ("class PySnake(PythonSnakes):", ("class", "PySnake", f"suite/test_snakes.py:{line_of('class PySnake', SNAKES)}")),
        ("snakes", ("class", "TestSnakes", f"suite/test_snakes.py:{line_of('class TestSnakes', SNAKES)}")),
    ],
)
def test_what_is_typed_and_pasted_most(asked, query, first):
    """A path leads to its file, a line of a source to what it defines, and a name without the word `test` to its tests before constants."""
    assert ask(asked, query)[0] == first


def test_what_is_needed_beside_gpus(asked):
    """Tests that need GPUs and more are found by the number of their GPUs."""
    assert ask(asked, "3 GPUs nccl") == ask(asked, "3 GPUs")
    assert ask(asked, "3 gpu")
    assert ask(asked, "keyword: 3 gpus nccl") == []
    assert [name for _, name, _ in ask(asked, "gauge 4gpu-slow")] == ["TestSnakes::test_gauge_of[4gpu|slow]"]


def test_what_a_name_stands_in_chooses(asked):
    """Of many methods of one name, the one of the class that is asked for is found, however that is written."""
    place = f"suite/test_collectives.py:{line_of('def forward') + 5}"
    for query in ("Other.forward", "other forward", "Other::forward"):
        assert ask(asked, query) == [("method", "Other.forward", place)]
    assert len(ask(asked, "forward")) == 2


@pytest.mark.parametrize(
    "query",
    [
        "test_all_reduce[SUM-expected0]",
        "suite/test_collectives.py::test_all_reduce[a::b/c",
        "docs/book/suite/test_collectives.py_docs.md::test_all_reduce[SUM-expected0]",
        "elsewhere/suite/test_collectives.py_docs.md::test_all_reduce",
        "test: test_all_reduce[1]",
        "FAILED suite/test_collectives.py::test_all_reduce[a b.c:3] - AssertionError: 2 is not 3",
        "pytest --doctest-glob='*.md' docs/book/suite/test_collectives.py_docs.md::test_all_reduce",
    ],
)
def test_a_node_id_as_pytest_prints_it(asked, query):
    """Parameters and what stands around it are no part of what is listed, and the node id of a page is that of its source."""
    assert ask(asked, query)[0] == TEST


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("test_ring.py:15", "suite/test_ring.py:15"),
        ("suite/test_ring.py:15: AssertionError", "suite/test_ring.py:15"),
        ("SKIPPED [1] docs/book/suite/test_ring.py_docs.md:70: needs 2 GPUs", "suite/test_ring.py"),
    ],
)
def test_a_line_of_a_file_as_pytest_prints_it(visit, query, place):
    """The file that is named is the first result, and opens at the line, unless that is one of its page's text."""
    page = visit()
    assert ask(page, query)[0] == ("file", "test_ring.py", place)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/material/book/suite/test_ring.py_docs.html{'#L15' if place.endswith(':15') else ''}")


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("with a gap", "with a gap"),
        ("gap", "with a gap"),
        ("two three", "one.two::three"),
        ("日本", "日本語"),
        ("<b>bold", "<b>bold</b>"),
        ("test:gap", "with a gap"),
        ("test_ways gap", "with a gap"),
        ("gap test_ways", "with a gap"),
        ("[with a gap-12]", "with a gap|12"),
        ("12-gap", "with a gap|12"),
    ],
)
def test_a_test_by_its_parameters(asked, query, shown):
    """What stands in brackets behind its name finds a test, once however many cases it has, and leads to its line."""
    assert ask(asked, query) == [("test", f"test_ways[{shown}]", f"suite/test_ways.py:{line_of('def test_ways', WAYS)}")]


@pytest.mark.parametrize("query", ["100%", "100", "test_share 100", "[100%]"])
def test_a_test_by_a_number(asked, query):
    """A number of three digits finds the test that has it in brackets."""
    assert ask(asked, query) == [("test", "test_share[100%]", f"suite/test_shares.py:{line_of('def test_share', SHARES)}")]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("test_[x].py", "test_[x].py"),
        ("suite/test_[x].py", "test_[x].py"),
        ("suite/test_[x].py:1", "test_[x].py"),
        ("suite/test_[x].py::test_bracketed[1]", "test_bracketed"),
    ],
)
def test_a_file_with_brackets_in_its_name(asked, query, first):
    """Brackets that are a part of a file's name are no parameters."""
    found = ask(asked, query)
    assert found[0][1] == first
    assert {place.partition(":")[0] for _, _, place in found} == {"suite/test_[x].py"}


def test_parameters_are_no_part_of_a_name(asked):
    """A test is found by its name as before, whatever its parameters are; what pytest numbers for want of a name finds none."""
    place = f"suite/test_ways.py:{line_of('def test_ways', WAYS)}"
    for query in ("test_ways", "test_ways[gap-12]", "suite/test_ways.py::test_ways[with a gap-True]"):
        assert ask(asked, query)[0] == ("test", "test_ways", place)
    assert [name for _, name, _ in ask(asked, "test_ways")] == ["test_ways", "test_ways.py"]
    for query in ("shape0", "test_ways shape1", "test_ways 2"):  # 2 is no part of 12
        ask(asked, query)
        assert status(asked).startswith("Nothing found.")


@pytest.mark.parametrize("query", ["suite/inner", "suite/inner/", "folder:inner", "folder: Inner"])
def test_a_folder_by_its_path(visit, query):
    """A folder is found by its name or its path, and leads to its page."""
    page = visit()
    assert ask(page, query)[0] == ("folder", "suite/inner", "2 files")
    page.keyboard.press("Enter")
    page.wait_for_url("**/material/book/suite/inner/index.html")


@pytest.mark.parametrize("query", ["needs 3 gpus", "Need 3 GPUs", "3 gpus"])
def test_a_need_as_it_is_said(asked, query):
    """A requirement is found by the words by which pages tell of it."""
    assert ask(asked, query) == [("requirement", "3 GPUs", "in 1 file")]
    assert status(asked) == "1 result"


def test_a_mark_as_it_is_written(asked):
    """A decorator that is pasted finds its mark."""
    for query in ("@pytest.mark.unhurried", 'pytest.mark.unhurried(reason="a.b:3")'):
        assert ask(asked, query) == [("mark", "unhurried", "in 1 file")]
    for query in ("@halls.without_echo(3)", "@without_echo"):
        assert ask(asked, query) == [("decorator", "halls.without_echo", "in 1 file")]


def test_a_page_by_its_name(asked):
    """What a run over pages names is found by the name of its source."""
    assert ask(asked, "test_collectives.py_docs.md")[0][:2] == ask(asked, "test_collectives.py")[0][:2]


def test_letters_of_other_languages(asked):
    """A name that is not English is found, in capitals too."""
    for query in ("übergroß", "ÜBERGROSS", "übergross", "u\u0308bergroß"):  # the last as some file managers write it
        assert ask(asked, query)[0][:2] == ("class", "ÜberGroß")


def test_a_file_by_its_name(visit):
    """A file is found by its name as it is written, and by its words; its result opens its page."""
    page = visit()
    ring = ("file", "test_ring.py", "suite/test_ring.py")
    assert ring in ask(page, "file:ring")
    for query in ("test_ring.py", "suite/test_ring"):
        assert ask(page, query)[0] == ring
    page.keyboard.press("Enter")
    page.wait_for_url("**/material/book/suite/test_ring.py_docs.html")


def test_a_result_opens_its_line(visit):
    """Enter opens the page of the result that is chosen by the arrow keys, at its line, from any page of the book."""
    page = visit("book/suite/inner/hostile.py_docs.html")
    found = ask(page, "neighbour")
    assert found[0] == ("function", "neighbour", f"suite/test_ring.py:{line_of('def neighbour', RING)}")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/material/book/suite/test_ring.py_docs.html#L{line_of('def neighbour', RING)}")
    assert not page.locator("dialog.rankbook-search").is_visible()


def test_an_api_leads_to_its_tests(visit):
    """The result of an API opens the index of APIs at the heading of its namespace, and shows its row, where its tests are."""
    page = visit()
    assert ask(page, "api:all_reduce") == [API]
    page.get_by_role("option").click()
    page.wait_for_url("**/material/book/suite-apis.html?row=all_reduce#torchdistributed")
    assert page.locator("#torchdistributed").inner_text().startswith("torch.distributed")
    row = page.locator("tr.rankbook-found")
    row.wait_for()
    assert row.locator("td").first.inner_text() == "all_reduce"
    assert row.evaluate("each => { const {top, bottom} = each.getBoundingClientRect(); return top > 0 && bottom < innerHeight; }")


@pytest.mark.parametrize(
    ("query", "shown", "cell"),
    [
        ("keyword:without_echo", "suite-marks.html?row=halls.without_echo#decorators", "halls.without_echo"),
        ("keyword:unhurried", "suite-marks.html?row=unhurried#marks", "unhurried"),
        ("requirement:world size 3", "suite-marks.html?row=3#world-size", "3"),
        ("requirement:3 GPUs", "suite-hardware.html?row=3#hardware", "3"),
    ],
)
def test_marks_and_requirements_lead_to_their_rows(visit, query, shown, cell):
    """The result of a mark, or of what tests need, opens its page and shows the row that it has there."""
    page = visit()
    ask(page, query)
    page.get_by_role("option").click()
    page.wait_for_url(f"**/material/book/{shown}")
    row = page.locator("tr.rankbook-found")
    row.wait_for()
    assert row.locator("td").first.inner_text() == cell
    assert row.evaluate("each => { const {top, bottom} = each.getBoundingClientRect(); return top > 0 && bottom < innerHeight; }")


@pytest.mark.parametrize("ending", ["?row=a#%", "?row=a#%ED%A0%80", "?row=%ff#%41%"])
def test_an_address_that_spells_no_row(visit, ending):
    """It shows the page as it is."""
    page = visit(f"book/suite/test_collectives.py_docs.html{ending}")
    assert ask(page, "all_reduce")


def test_large_letters_leave_the_page_as_wide_as_the_screen(visit):
    """Where the header has no room for the button it gives way, and comes back; the key opens the search all the same."""
    page = visit("book/suite/test_collectives.py_docs.html", viewport=PHONE)
    button = page.get_by_role("button", name="Find a test, an API or an owner")
    assert button.is_visible()
    style = page.add_style_tag(content="html { font-size: 250% !important }")
    button.wait_for(state="hidden")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert ask(page, "all_reduce")
    page.keyboard.press("Escape")
    style.evaluate("each => each.remove()")
    page.set_viewport_size({**PHONE, "width": PHONE["width"] + 1})
    button.wait_for(state="visible")


def test_the_button_is_there_whatever_the_window_was_before(visit):
    """The theme moves its own search when a window gets wide, which takes a moment in which there is no room."""
    page = visit("book/suite/test_collectives.py_docs.html", viewport={**DESKTOP, "width": 280})
    page.get_by_role("button", name="Find a test, an API or an owner").wait_for(state="visible")
    page.set_viewport_size(DESKTOP)
    page.wait_for_timeout(1500)
    assert page.get_by_role("button", name="Find a test, an API or an owner").is_visible()


def test_an_owner_is_found_and_leads_to_the_owners(visit):
    """An owner is found by any word of its name, and its result opens the page on owners at its files."""
    page = visit()
    assert ask(page, "owner:distributed") == [("owner", "oncall: distributed", "in 1 file")]
    page.keyboard.press("Enter")
    page.wait_for_url("**/material/book/suite-owners.html#oncall-distributed")
    assert page.locator("#oncall-distributed").inner_text().startswith("oncall: distributed")


def test_keys_steer_the_list(visit):
    """Arrow keys go through the results in a circle, the box says which one is chosen, and Escape closes and gives the focus back."""
    page = visit()
    page.get_by_role("button", name="Find a test, an API or an owner").focus()
    page.keyboard.press("Enter")
    count = len(ask(page, "reduce"))
    box = page.get_by_role("combobox", name="Find a test")
    assert box.get_attribute("aria-expanded") == "true"
    chosen = []
    for key in ("ArrowDown", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
        selected = page.locator('[role=option][aria-selected="true"]')
        assert selected.count() == 1
        assert box.get_attribute("aria-activedescendant") == selected.get_attribute("id")
        chosen.append(int(selected.get_attribute("id").rpartition("-")[2]))
    assert chosen == [1, 0, count - 1]
    page.keyboard.press("Escape")
    assert not page.locator("dialog.rankbook-search").is_visible()
    assert page.evaluate("document.activeElement.className").find("rankbook-search-button") >= 0


def test_the_number_of_results_is_announced(asked):
    """A live region tells how many results there are, and what to do when there are none."""
    assert len(ask(asked, "Other.forward")) == 1
    assert status(asked) == "1 result"
    ask(asked, "zzzznothing")
    assert status(asked).startswith("Nothing found.")
    assert asked.get_by_role("combobox", name="Find a test").get_attribute("aria-expanded") == "false"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("test_al_reduce", "test_all_reduce"),
        ("test_all_redcue", "test_all_reduce"),
        ("AllReduceWoker", "AllReduceWorker"),
        ("suite/test_colectives.py", "test_collectives.py"),
        ("neighbuor", "neighbour"),
        ("redcue", "test_all_reduce"),
        ("colectives", "test_collectives.py"),
    ],
)
def test_what_is_spelt_almost_so_is_offered(asked, query, found):
    """Where nothing has a name, those that differ by a letter or two are shown, and said to be others."""
    assert found in [name for _, name, _ in ask(asked, query)]
    assert status(asked) == "Nothing found. Spelt almost so:"
    asked.get_by_role("button", name="Owner", exact=True).click()
    asked.wait_for_function("!document.querySelector('[role=option]')")


def test_chips_narrow_to_a_kind(asked):
    """A chip leaves results of its kind only, says that it is pressed, and is let go by a second click."""
    everything = ask(asked, "reduce")
    chip = asked.get_by_role("button", name="API", exact=True)
    chip.click()
    asked.wait_for_function("document.querySelectorAll('[role=option]').length === 1")
    assert results(asked) == [API]
    assert chip.get_attribute("aria-pressed") == "true"
    chip.click()
    asked.wait_for_function("count => document.querySelectorAll('[role=option]').length === count", arg=len(everything))
    assert results(asked) == everything


def test_an_api_of_many_files_comes_first(asked):
    """Of two names that fit alike, the one that more files use is the first, though the other is shorter."""
    found = ask(asked, "api:scatter")
    assert found == [("API", "torch.distributed.scatter", "in 2 files"), ("API", "torch.scatter", "in 1 file")]


def test_the_search_of_the_engine_leads_to_this_one(visit):
    """Who asks the search for prose is offered the same question here, as the first entry for the arrow keys; Enter alone takes a page."""
    page = visit("book/suite/test_ring.py_docs.html")
    box = page.locator("input.md-search__input")
    box.click()
    assert page.locator(".rankbook-search-bridge").is_hidden()
    box.press_sequentially("neighbour")
    link = page.get_by_role("link", name="Find “neighbour” among tests")
    link.wait_for()
    page.wait_for_function("/\\w/.test(document.querySelector('.md-search-result__meta').textContent)")
    page.keyboard.press("ArrowDown")
    assert link.evaluate("each => each === document.activeElement")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog.rankbook-search [role=option]")
    assert results(page)[0][:2] == ("function", "neighbour")
    assert not page.locator("[data-md-toggle=search]").is_checked()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/material/book/suite/test_ring.py_docs.html#L{line_of('def neighbour', RING)}")
    page = visit("book/suite/test_ring.py_docs.html")
    page.keyboard.press("/")
    page.keyboard.type("tiny project")
    page.wait_for_selector(".md-search-result__link")
    page.keyboard.press("Enter")
    page.wait_for_url("**/material/index.html?h=*")


def test_the_search_of_the_engine_does_not_say_that_nothing_is_there(visit):
    """Where the prose has no match and the book has, the number of results stands there, and not that no document matches."""
    page = visit("book/suite/test_ring.py_docs.html")
    box = page.locator("input.md-search__input")
    meta = page.locator(".md-search-result__meta")
    box.click()
    box.press_sequentially("neighbour")
    page.get_by_role("link", name=re.compile("Find “neighbour” among tests, APIs, keywords and owners: [0-9]+ results?")).wait_for()
    page.wait_for_function("document.querySelector('.md-search-result__meta').textContent.trim() === 'No matching documents'")
    assert meta.is_hidden()
    box.fill("nothinglikeit")
    page.get_by_role("link", name="Find “nothinglikeit” among tests").wait_for()
    meta.get_by_text("No matching documents").wait_for()


def test_what_was_asked_for_is_marked(asked):
    """The letters that fit are marked, also over an underscore."""
    ask(asked, "allred")
    option = asked.get_by_role("option").filter(has_text="torch.distributed.all_reduce")
    assert option.locator("mark").all_inner_texts() == ["all_red"]


@pytest.mark.parametrize("key", ["t", "Control+k", "Meta+k"])
def test_it_opens_by_keyboard(visit, key):
    """T, Ctrl+K and Cmd+K open the search with the focus in its box."""
    page = visit()
    page.keyboard.press(key)
    assert page.locator("dialog.rankbook-search").is_visible()
    assert page.evaluate("document.activeElement.getAttribute('role')") == "combobox"


def test_the_engine_keeps_its_keys(visit):
    """The keys of the engine's own search still open that, T types a letter in its box, and they do nothing behind the open dialog."""
    page = visit()
    page.keyboard.press("/")
    page.wait_for_function("document.activeElement.matches('.md-search__input')")
    page.keyboard.press("t")
    assert page.locator(".md-search__input").input_value() == "t"
    assert not page.locator("dialog.rankbook-search").is_visible()
    page = visit()
    page.keyboard.press("t")
    page.get_by_role("button", name="File", exact=True).focus()
    for key in ("s", "f", "/"):
        page.keyboard.press(key)
    assert not page.evaluate("document.activeElement.matches('.md-search__input')")


def test_a_field_of_a_web_component_takes_letters(visit):
    """Zensical's own search is one: what is typed there stays there."""
    page = visit()
    page.evaluate("""() => {
        const root = document.body.appendChild(document.createElement("div")).attachShadow({ mode: "open" });
        root.appendChild(document.createElement("input")).focus();
    }""")
    page.keyboard.type("test")
    assert page.evaluate("document.body.lastElementChild.shadowRoot.firstChild.value") == "test"
    assert not page.locator("dialog.rankbook-search").is_visible()


def test_text_of_a_source_is_no_html(asked):
    """What a source holds is shown as text."""
    assert ask(asked, "owner:onerror")[0][1] == "<img src=x onerror=document.title=1>"
    assert asked.locator("dialog.rankbook-search img").count() == 0
    assert asked.title() != "1"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_it_fits_and_is_readable(visit, viewport, scheme):
    """The dialog fits the screen, scrolls nothing sideways, and every text in it has a contrast of at least 4.5 to 1."""
    page = visit(viewport=viewport, color_scheme=scheme)
    ask(page, "reduce")
    box = page.locator("dialog.rankbook-search").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= viewport["width"]
    assert box["y"] + box["height"] <= viewport["height"]
    assert page.evaluate(
        "document.querySelector('.rankbook-search__list').scrollWidth <= document.querySelector('.rankbook-search__list').clientWidth"
    )
    ratios = page.locator(
        "dialog.rankbook-search :is(input, button, p, code, mark, .rankbook-search__kind, .rankbook-search__where)"
    ).evaluate_all(CONTRAST)
    assert len(ratios) > 10
    assert min(ratios) >= 4.5


CONTRAST = """elements => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const over = (colours) => {
    canvas.clearRect(0, 0, 1, 1);
    colours.forEach((colour) => { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); });
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const linear = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const luminance = rgb => rgb.map(linear).reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
  return elements.filter(element => element.checkVisibility()).map(element => {
    const grounds = [];
    const ground = (each) => grounds.unshift(getComputedStyle(each).backgroundColor);
    for (let each = element; !each.matches("dialog"); each = each.parentElement) ground(each);
    ground(element.closest("dialog"));
    const [light, dark] = [over(grounds), over([...grounds, getComputedStyle(element).color])].map(luminance).sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  });
}"""


def test_a_theme_without_a_header_of_material(visit, address):
    """With MkDocs' own theme the button stands in a corner, and the search works the same."""
    page = visit(address.replace("/material/", "/plain/"))
    page.get_by_role("button", name="Find a test, an API or an owner").click()
    assert ask(page, "neighbour")[0][1] == "neighbour"


def test_a_theme_without_boxes_around_tables(visit, address):
    """With MkDocs' own theme a table with long names is moved by itself: a page is as wide as the phone."""
    page = visit(address.replace("/material/", "/plain/") + "book/suite/test_collectives.py_docs.html", viewport=PHONE)
    page.locator("table.table").first.wait_for()
    page.locator("td").first.evaluate("each => { each.textContent = 'test_'.repeat(40); }")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_page_from_disk_says_why_it_cannot_search(chromium, sites):
    """On a page that is opened from disk, where browsers read no other file, a sentence says what to do."""
    page = chromium.new_page()
    page.goto((sites / "material/index.html").as_uri())
    page.keyboard.press("t")
    page.wait_for_function("document.querySelector('.rankbook-search__status').textContent.includes('python -m http.server')")
    page.close()


def test_a_site_without_shards_says_so(visit, address, sites):
    """Where the shards are missing, the search says that its index could not be read, and the page lives on."""
    (sites / "material/assets/rankbook-search").rename(sites / "aside")
    try:
        page = visit()
        page.keyboard.press("t")
        page.wait_for_function("document.querySelector('.rankbook-search__status').textContent.includes('could not be read')")
    finally:
        (sites / "aside").rename(sites / "material/assets/rankbook-search")


def test_a_site_that_the_engine_builds_has_the_search_too(visit, tmp_path):
    """Where MkDocs builds all pages, here once for each of two languages, each page has one button, and a result leads to its line."""
    root = write_project(tmp_path)
    (root / "suite/test_long.py").write_text("\n".join(f"def test_q{number}():\n    pass\n" for number in range(200)))
    settings = yaml.safe_load((root / "mkdocs.yml").read_text())
    languages = [{"locale": "en", "default": True, "name": "English", "build": True}, {"locale": "de", "name": "Deutsch", "build": True}]
    settings["plugins"] = ["search", {"i18n": {"docs_structure": "suffix", "languages": languages}}, "rankbook"]
    settings["site_url"] = "https://example.org/tiny/"
    (root / "mkdocs.yml").write_text(yaml.safe_dump(settings, sort_keys=False))
    done = mkdocs(root, "build")
    assert done.returncode == 0, done.stderr
    with served(root / "site") as address:
        for start in ("de/book/index.html", "book/index.html"):
            page = visit(address + start)
            assert page.get_by_role("button", name="Find a test").count() == 1
            assert ask(page, "test_q150") == [("test", "test_q150", "suite/test_long.py:451")]
            page.keyboard.press("Enter")
            page.wait_for_url("**/suite/test_long.py_docs*451")
            page.wait_for_function("scrollY > 1000")


def test_a_site_without_generated_pages_has_no_search(visit, tmp_path):
    """The plugin in a site of pages that people wrote alone adds no button that finds nothing."""
    root = write_project(tmp_path)
    (root / "pyproject.toml").write_text("")
    (root / "docs/index.md").write_text("# A site\n")
    settings = yaml.safe_load((root / "mkdocs.yml").read_text())
    (root / "mkdocs.yml").write_text(yaml.safe_dump(settings | {"nav": ["index.md"]}))
    with served(build(root)) as address:
        page = visit(f"{address}index.html")
        assert page.evaluate("!!document.querySelector('script[src*=\"assets/rankbook.js\"]')")
        page.keyboard.press("t")
        assert page.get_by_role("button", name="Find a test").count() == 0
        assert page.locator("dialog.rankbook-search").count() == 0


def test_an_old_address_leads_to_what_has_its_name(visit, sites):
    """Where no page is, the site says so, and shows what the book has by that name: a link to a page that was moved is no dead end."""
    with served(sites / "material") as address:
        page = visit(f"{address}book/elsewhere/test_collectives.py_docs.html#L12")
        lost = page.locator(".rankbook-lost")
        lost.wait_for()
        assert lost.locator("p").inner_text() == "Nothing stands at this address. What the book knows by its name:"
        first = lost.get_by_role("link").first
        assert first.inner_text().split() == ["file", "test_collectives.py", "suite/test_collectives.py"]
        first.click()
        assert page.locator("h1").inner_text().startswith("Collectives")
        assert page.url == f"{address}book/suite/test_collectives.py_docs.html"
        page.goto(f"{address}book/never_heard_of.html")
        page.get_by_role("button", name="Find it by another name").click()
        assert page.get_by_role("combobox", name="Find a test").input_value() == "never_heard_of"
        assert "knows nothing by its name" in lost.inner_text()


def test_what_is_pasted_by_mistake_is_answered(visit):
    """A whole file in the box of the search is a question like another: the page does not stand still over it."""
    page = visit()
    assert ask(page, "zq." * 100_000) == []
    assert "Nothing found" in page.locator(".rankbook-search__status").inner_text()
