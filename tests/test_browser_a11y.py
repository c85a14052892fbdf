"""The book for every reader: what axe finds on each kind of page, keys alone, paper, chosen colours, and nothing wider than the screen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from browsing import DESKTOP, PHONE, TABLET, served, visits
from proved_site import LONG, LONGEST, STANDINGS, STATES, WORDS, build_site, write
from tiny_site import build
from whole import WHOLE

pytest.importorskip("material", reason="the site needs the extra `site`")
pytest.importorskip("pyromark", reason="pages are stamped with it")
axe_playwright_python = pytest.importorskip("axe_playwright_python", reason="axe comes with it")

pytestmark = pytest.mark.browser
STATES_PAGE = f"book/{STATES}_docs.html"
KINDS = {
    "file": STATES_PAGE,
    "guide": "guide.html",
    "front": "index.html",
    "book": "book/index.html",
    "folder": "book/suite/index.html",
    "about": "book/suite/doc.html",
    "keywords": "book/suite/sub.html",
    "keywords of a file": f"book/{STATES}_kw.html",
    "file with long names": f"book/{LONGEST}_docs.html",
    "hostile file": "book/suite/inner/hostile.py_docs.html",
    "document": "book/suite/inner/notes.md_docs.html",
    "not Python": "book/suite/.settings/ring.toml_docs.html",
    "hardware": "book/suite-hardware.html",
    "words": "book/suite-words.html",
    "marks": "book/suite-marks.html",
    "owners": "book/suite-owners.html",
    "nowhere": "book/suite/test_that_is_not_there.html",
}
"""A page of each kind, those that show most first, and an address where none is."""
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
ALL = {"runOnly": {"type": "tag", "values": TAGS}}
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
"""What may be otherwise in the dark; looking for it takes most of the time."""
BUT_COLOURS = {**ALL, "rules": {name: {"enabled": False} for name in COLOURS["runOnly"]["values"]}}
FOUND = """rules => axe.run(document, {...rules, resultTypes: ["violations"]}).then(({violations, passes}) => [
  passes.length,
  violations.filter(({impact}) => ["serious", "critical"].includes(impact)).map(({id, help, nodes}) =>
    `${id}: ${help}: ${nodes.slice(0, 3).map(({html, any, all, none}) =>
      `${html} (${[...any, ...all, ...none][0]?.message})`).join("; ")}`),
])"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with served(build_site(tmp_path_factory.mktemp("reader"))) as address:
        yield address


@pytest.fixture
def opened(chromium):
    """A function that opens an empty page."""
    with visits(chromium) as opened:
        yield opened


@pytest.fixture
def visit(opened, address):
    """A function that opens a page of the site and gives the browser's page, when its scripts have done their work."""

    def open_page(path=STATES_PAGE, **options):
        page = opened(**options)
        page.goto(address + path)
        settle(page)
        return page

    return open_page


def settle(page):
    """Wait until the scripts have done what they do when a page opens."""
    page.wait_for_function("document.readyState === 'complete' && document.querySelector('.rankbook-search-button')")
    page.evaluate("new Promise(done => setTimeout(done, 100))")


def go_to(page, address, kind):
    """Open the page of a kind, and see that it is there; of the address where no page is, that it says so."""
    answer = page.goto(address + KINDS[kind])
    settle(page)
    assert answer.status == (404 if kind == "nowhere" else 200), kind
    if kind == "nowhere":
        page.wait_for_selector(".rankbook-lost")


OVERFLOWING = """() => [...document.querySelectorAll("body *")].filter(each => {
  const box = each.getBoundingClientRect(), style = getComputedStyle(each);
  if (!box.width || !box.height || style.visibility === "hidden") return false;
  for (let up = each; up; up = up.parentElement) {
    const {overflowX, position, clipPath} = getComputedStyle(up);
    if (overflowX !== "visible" || clipPath !== "none") return false;
    if (position === "fixed") return false;
  }
  return box.right > document.documentElement.clientWidth + 1 || box.left < -1;
}).map(each => each.outerHTML.slice(0, 200))"""


def with_axe(page):
    """Give a page axe."""
    if not page.evaluate("'axe' in window"):
        page.evaluate((Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))


def found_by_axe(page, rules=ALL):
    """Run axe on a page; give the number of rules that it keeps, and what is serious or critical."""
    with_axe(page)
    return page.evaluate(FOUND, rules)


INKS = """() => {
  const found = new Set(), texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
  while (texts.nextNode()) {
    const text = texts.currentNode, within = text.parentElement, {color, fontSize, fontWeight} = getComputedStyle(within);
    range.selectNode(text);
    if (!text.data.trim() || !range.getBoundingClientRect().width || !within.checkVisibility({visibilityProperty: true})) continue;
    const grounds = [], link = within.closest("a"), around = link && getComputedStyle(link.parentElement).color;
    for (let up = within; up; up = up.parentElement) {
      const {backgroundColor, backgroundImage, opacity} = getComputedStyle(up);
      if (backgroundImage !== "none" || opacity !== "1") grounds.push(backgroundImage, opacity);
      if (backgroundColor !== "rgba(0, 0, 0, 0)") grounds.push(backgroundColor);
      if (backgroundColor.startsWith("rgb(")) break;
    }
    const isLarge = parseFloat(fontSize) >= (fontWeight >= 700 ? 18.66 : 24);
    found.add([color, ...grounds, isLarge, link && getComputedStyle(link).textDecorationLine, around].join(" "));
  }
  return [...found];
}"""
"""The colours of the words of a page and of what they stand on, with all else that readable words depend on."""


def test_axe_finds_nothing_serious_and_nothing_is_wider_than_the_screen(opened, address):
    """On no kind of page, in light and in dark, on a phone and on a desk, is there a serious or critical issue.

    With names that nobody broke into words no page scrolls sideways, and no element but what scrolls by itself reaches out of it.
    Where no word has other colours than words that axe has looked at, it does not look at them again.
    """
    looked = set()

    def is_new(page):
        inks = set(page.evaluate(INKS))
        known = inks <= looked
        looked.update(inks)
        return not known or WHOLE

    for viewport in (DESKTOP, PHONE):
        page = opened(color_scheme="light", viewport=viewport)
        for kind in KINDS:
            page.emulate_media(color_scheme="light")
            go_to(page, address, kind)
            assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), kind
            assert page.evaluate(OVERFLOWING) == [], kind
            kept, issues = found_by_axe(page, ALL if is_new(page) else BUT_COLOURS)
            assert kept > 20, kind
            assert not issues, (kind, issues)
            if viewport == PHONE and not WHOLE:  # colours do not ask how wide the screen is
                continue
            page.emulate_media(color_scheme="dark")
            page.wait_for_selector("body[data-md-color-scheme=slate]")
            page.evaluate("new Promise(done => setTimeout(done, 500))")  # the theme lets colours glide
            if is_new(page):
                kept, issues = found_by_axe(page, COLOURS)
                assert kept > 0, kind
                assert not issues, (kind, "dark", issues)
    assert len(looked) > 60


@pytest.mark.parametrize(("scheme", "rules"), [("light", ALL), ("dark", COLOURS)], ids=["light", "dark"])
def test_axe_finds_nothing_serious_in_what_opens(visit, scheme, rules):
    """The same holds while the search shows results, a history is open, lines are picked, and a page is filtered."""
    page = visit(f"{STATES_PAGE}#L3-L9", color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(each => (each.open = true))")
    assert found_by_axe(page, rules)[1] == []
    page = visit(KINDS["words"], color_scheme=scheme)
    page.get_by_role("searchbox", name="Filter this page").fill("states")
    page.wait_for_function("/\\d of/.test(document.querySelector('.rankbook-filter [role=status]').textContent)")
    assert found_by_axe(page, rules)[1] == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Find a test, an API or an owner").click()
    page.get_by_role("combobox", name="Find a test").fill("test")
    page.wait_for_selector(".rankbook-search__list [role=option]")
    assert found_by_axe(page, rules)[1] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_that_lead_to_a_page_of_names_are_readable(visit, scheme):
    """In an index that is too long for one page each entry is a link whose name is code."""
    page = visit(KINDS["words"], color_scheme=scheme)
    page.locator(".rankbook-page li").first.evaluate("each => (each.innerHTML = '<a href=index.html><b>first</b> – <b>last</b></a> (300)')")
    assert page.locator("li a > b").count() == 2
    assert found_by_axe(page, COLOURS)[1] == []


def test_axe_finds_what_is_wrong(visit):
    """A button without a name and grey on grey are found: the check can fail."""
    page = visit(KINDS["guide"])
    page.evaluate(
        "document.querySelector('article').insertAdjacentHTML('afterbegin', '<button></button><p style=\"color: #aaa\">grey</p>')"
    )
    assert {issue.partition(":")[0] for issue in found_by_axe(page)[1]} == {"button-name", "color-contrast"}


def test_long_names_are_there_whole(visit):
    """What does not fit is broken, not cut."""
    page = visit(KINDS["file with long names"], viewport=PHONE)
    heading = page.locator("article h1")
    assert heading.evaluate("each => each.scrollWidth <= each.clientWidth")
    assert LONG in page.locator("article").inner_text()


def test_a_name_breaks_where_its_words_end(visit):
    """A name that is too long for its column goes on in the next line with a whole word, and is copied as it is written."""
    name = visit(viewport=PHONE).locator(".rankbook-page td code", has_text="test_passed_on_two_gpus").first
    assert name.inner_text() == "test_passed_on_two_gpus"
    assert name.locator("wbr").count() == 4
    name.evaluate("each => (each.style = 'display: block; width: 12ch')")
    pieces = "each => [...each.childNodes].filter(({data}) => data).map(part => { const all = document.createRange(); "
    pieces += "all.selectNodeContents(part); return all.getClientRects().length; })"
    assert set(name.evaluate(pieces)) == {1}


def test_long_names_outside_of_tables_break_where_their_words_end(visit):
    """A command does so as well; a word of a sentence that fits into a line stays whole."""
    page = visit(KINDS["file with long names"], viewport=PHONE)
    assert page.locator("article li > code wbr").count() > 4
    page = visit(viewport=PHONE)
    sentence = page.locator("article p > code", has_text="TestStates").first
    assert sentence.locator("wbr").count() == 0


FOCUS = """() => {
  const each = document.activeElement;
  if (!each || each === document.body) return null;
  const box = each.getBoundingClientRect(), style = getComputedStyle(each);
  return {
    name: `${each.tagName}.${each.className} ${(each.getAttribute("aria-label") || each.textContent || "").trim().slice(0, 60)}`,
    role: each.getAttribute("role") || each.tagName.toLowerCase(),
    isMarked: (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none",
    isInSight: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
    isInArticle: Boolean(each.closest("article")),
  };
}"""


def test_keys_alone_reach_all_of_a_page(visit):
    """The key Tab goes from the skip link through each control to the end, and each place it comes to is marked and in sight."""
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.classList.contains('md-skip')")
    page.keyboard.press("Enter")
    page.wait_for_function("location.hash === '#states'")
    reached = []
    for _ in range(400):
        page.keyboard.press("Tab")
        place = page.evaluate(FOCUS)
        if place is None or (reached and not place["isInArticle"]):
            break
        if place["isInArticle"]:
            reached.append(place)
    else:
        pytest.fail("the focus does not leave the article")
    assert [place["name"] for place in reached if not place["isMarked"]] == []
    assert [place["name"] for place in reached if not place["isInSight"]] == []
    named = " | ".join(place["name"] for place in reached)
    for control in ("Copy the command that runs test_passed", "Copy this command", "rankbook-run", "Last runs", "line "):
        assert control in named, control
    assert {"a", "button", "summary", "group", "input"} <= {place["role"] for place in reached}


def test_keys_that_go_back_reach_nothing_behind_the_header(visit):
    """What Shift and Tab come to stands below the header, which stays where it is."""
    page = visit()
    page.locator("article a").last.focus()
    hidden = """() => {
      const each = document.activeElement, header = document.querySelector(".md-header").getBoundingClientRect();
      const {top, height} = each.getBoundingClientRect();
      return each.closest("article") && height < innerHeight / 2 && top < header.bottom ? each.outerHTML : "";
    }"""
    reached = []
    for _ in range(60):
        page.keyboard.press("Shift+Tab")
        reached.append(page.evaluate(hidden))
    assert [each for each in reached if each] == []


def test_keys_alone_open_a_history(visit):
    """Enter follows a badge to its run and opens and closes the history."""
    page = visit()
    page.locator("a.rankbook-run", has_text="failed").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("location.hash.startsWith('#rb-run-')")
    row = page.locator("tr:target")
    assert "TestStates::test_failed" in row.inner_text()
    below = page.locator("tr:target + .rb-more")
    below.locator("summary").focus()
    page.keyboard.press("Enter")
    assert below.locator("details ul").is_visible()
    assert "passed" in below.locator("details ul").inner_text()
    assert page.locator(".rb-scroll[aria-label='Last runs']").evaluate("box => box.scrollWidth <= box.clientWidth")
    page.keyboard.press("Enter")
    assert below.locator("details ul").is_hidden()


def test_keys_alone_reach_the_tests_in_debt(visit, address):
    """What opens below a need says how many tests it names, and a name leads to the test's page; owners and hardware lead on, too."""
    page = visit()
    page.goto(address)
    settle(page)
    debt = page.get_by_label("1 test by name: 4 GPUs")
    debt.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/test_states.py_docs.html")
    page.goto(address)
    settle(page)
    page.get_by_role("link", name="CPU, x86_64", exact=True).click()
    page.wait_for_selector(".rankbook-found")
    assert page.locator(".rankbook-found td").first.inner_text() == "none"
    page.goto(address)
    settle(page)
    page.get_by_role("link", name="oncall: distributed").click()
    page.wait_for_url("**/suite-owners.html#oncall-distributed")
    assert "suite/test_states.py" in page.locator("h2:target + ul").inner_text()


def test_keys_alone_search_and_come_back(visit):
    """A key opens the search, arrows choose, Escape closes it and gives the focus back to where it was."""
    page = visit()
    page.get_by_role("button", name="Find a test, an API or an owner").focus()
    page.keyboard.press("Enter")
    page.keyboard.type("test_number")
    page.wait_for_selector(".rankbook-search__list [role=option]")
    page.keyboard.press("ArrowDown")
    assert page.locator("[role=option]").nth(1).get_attribute("aria-selected") == "true"
    page.keyboard.press("Escape")
    assert page.locator("dialog.rankbook-search").is_hidden()
    assert page.evaluate("document.activeElement.classList.contains('rankbook-search-button')")


def test_keys_alone_filter_a_page(visit):
    """The box above a long list takes words, says how many rows are left, and gives them back when it is emptied."""
    page = visit(KINDS["words"])
    box = page.get_by_role("searchbox", name="Filter this page")
    before = page.locator("article li:visible").count()
    box.focus()
    assert page.evaluate(FOCUS)["isMarked"]
    page.keyboard.type("test_flaky")
    page.wait_for_function("/^\\d+ of \\d+$/.test(document.querySelector('.rankbook-filter [role=status]').textContent)")
    shown = "[...document.querySelectorAll('article li')].filter((each) => each.checkVisibility())"
    page.wait_for_function(f"{shown}.every((each) => each.textContent.includes('test_flaky'))")  # the first letters filter, too
    left = page.locator("article li:visible").all_inner_texts()
    assert left
    assert all("test_flaky" in text for text in left)
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    page.wait_for_function("count => [...document.querySelectorAll('article li')].filter(each => !each.hidden).length >= count", arg=before)
    assert page.locator("article li:visible").count() == before


def test_a_wide_table_without_links_is_reached_by_keys(visit):
    """A table that the theme lets scroll has a name and takes the focus where it is too wide, and only there."""
    page = visit(KINDS["guide"], viewport=PHONE)
    box = page.locator(".md-typeset__scrollwrap").first
    box.evaluate("each => (each.querySelector('td').style.minWidth = '60rem')")
    page.wait_for_function("document.querySelector('.md-typeset__scrollwrap').tabIndex === 0")
    assert page.get_by_role("group", name="Table").count() == 1
    box.evaluate("each => (each.querySelector('td').style.minWidth = '')")


@pytest.mark.parametrize(("kind", "box", "viewport"), [("owners", ".md-typeset__scrollwrap", PHONE), ("file", ".rb-scroll", TABLET)])
def test_a_box_says_that_it_goes_on(visit, kind, box, viewport):
    """What holds more at its right than it shows fades there until it is moved; what shows all does not, and nothing does on paper."""
    page = visit(KINDS[kind], viewport=viewport)
    page.locator(f"{box} td").first.evaluate("each => (each.style.minWidth = '50rem')")
    page.wait_for_selector(f"{box}.rankbook-more")
    wide = page.locator(f"{box}.rankbook-more").first.element_handle()
    fades = "each => getComputedStyle(each).maskImage !== 'none'"
    assert wide.evaluate(fades)
    page.emulate_media(media="print")
    assert not wide.evaluate(fades)
    page.emulate_media(media="screen")
    page.wait_for_function(fades, arg=wide)
    wide.evaluate("each => (each.scrollLeft = each.scrollWidth)")
    page.wait_for_function("each => !each.matches('.rankbook-more')", arg=wide)
    page.set_viewport_size({"width": 1920, "height": 1000})
    page.wait_for_function("box => document.querySelector(`${box}:not(.rankbook-more)`)", arg=box)


def test_a_phone_shows_how_each_rank_ended(visit):
    """The drawing of the ranks fits the screen, in letters of a readable size, and each lane has its rank and how it ended."""
    page = visit(viewport=PHONE)
    drawn = page.locator("figure.rb-ranks svg:visible")
    assert drawn.count() == 2
    assert "rank 1: died by SIGKILL" in drawn.first.text_content()
    for each in drawn.locator("text").all():
        box = each.bounding_box()
        assert 0 <= box["x"] < box["x"] + box["width"] <= PHONE["width"]
        assert box["height"] >= 11


OUTSIDE = """all => all.filter(each => {
  const {left, right} = each.getBoundingClientRect();
  return left < 0 || right > innerWidth || each.scrollWidth > each.clientWidth;
}).map(each => each.outerHTML)"""


@pytest.mark.parametrize("width", [PHONE["width"], 320])
def test_a_phone_shows_runs_and_ranks_whole(visit, width):
    """Nothing of the last runs, the ranks as a table and what a folder adds up is moved sideways, and each number has its name there."""
    page = visit(viewport={"width": width, "height": 800})
    page.locator(".rankbook-runs details").evaluate_all("all => all.forEach(each => (each.open = true))")
    runs = page.locator(".rb-scroll[aria-label='Last runs']")
    assert page.locator(".rb-scroll, .rb-scroll tbody :is(tr, th, td, pre, li)").evaluate_all(OUTSIDE) == []
    said = "all => all.map(each => getComputedStyle(each, '::before').content.replace(/none|[\"]/g, '') + each.textContent)"
    hung = runs.locator("tr:has-text('test_hung') td").evaluate_all(said)
    assert "Ranks: 3" in hung
    first = page.locator("figure.rb-ranks tbody tr").first.locator("td").evaluate_all(said)
    assert first[:4] == ["Started: 0.250 s", "Entered the test: 0.700 s", "Last seen: 4.350 s", "still alive when the run ended"]
    assert first[4].startswith("Last call of torch.distributed: all_reduce")
    page = visit(KINDS["book"], viewport={"width": width, "height": 800})
    assert page.locator(".rb-scroll, .rb-scroll tbody :is(tr, th, td)").evaluate_all(OUTSIDE) == []


@pytest.mark.parametrize(
    ("width", "kind"),
    [*((320, kind) for kind in ("file", "file with long names", "folder", "words", "marks", "owners")), (390, "file"), (390, "owners")],
)
def test_a_phone_shows_each_row_of_a_table_whole(visit, kind, width):
    """A row of words and numbers lies on the screen whole, each number with the name of its column; numbers alone stay columns."""
    page = visit(KINDS[kind], viewport={"width": width, "height": 800})
    told = page.locator(".rankbook-page table[data-told]")
    assert told.locator("xpath=..").locator("td").evaluate_all(OUTSIDE) == []
    columns = page.locator(".rankbook-page table:not([class], [data-told]):has(th:nth-child(3)) tbody tr")
    assert columns.evaluate_all("all => all.every(each => getComputedStyle(each).display === 'table-row')")
    assert columns.count() or kind != "owners"
    said = "all => all.map(each => getComputedStyle(each, '::before').content.replace(/none|[\"]/g, '') + each.textContent)"
    if kind == "marks":
        assert told.locator("tr").nth(1).locator("td").evaluate_all(said)[:3] == ["slow", "Tests: 2", "Files: 1"]
    page.set_viewport_size(DESKTOP)
    assert told.locator("tr").evaluate_all("all => all.every(each => getComputedStyle(each).display === 'table-row')")


COLUMNS = ["Files", "Tests", "No GPU", "1", "2", "4", "8", "16", "Other device"]


def table(heads, *cells, numbers=0):
    """Write a table as a generated page has it, with columns of numbers at its right."""
    kinds = [""] * (len(heads) - numbers) + [" class=r"] * numbers
    head = "".join(f"<th{kind}>{name}" for kind, name in zip(kinds, heads, strict=True))
    return f"<table><thead><tr>{head}<tbody><tr>{''.join(f'<td{kind}>{cell}' for kind, cell in zip(kinds, cells, strict=True))}</table>"


@pytest.fixture
def visit_with(opened, address):
    """A function that opens the page of a file to which some HTML was added."""

    def open_page(more, width=PHONE["width"]):
        page = opened(viewport={"width": width, "height": 800})
        text = page.request.get(address + STATES_PAGE).text()
        text = re.sub(r'<div class="rankbook-page"[^>]*>', lambda match: match[0] + more, text, count=1)
        page.route("**/*_docs.html", lambda route: route.fulfill(body=text, content_type="text/html; charset=utf-8"))
        page.goto(address + STATES_PAGE)
        settle(page)
        return page

    return open_page


@pytest.mark.parametrize("width", [320, 375])
def test_a_phone_shows_many_columns_of_numbers(visit_with, width):
    """Up to seven columns stay columns, below the name of their row; more are told row by row, a number of GPUs as such."""
    name = "<a href=#x><code>suite/a_folder_whose_name_is_long/test_a_file_whose_name_is_longer.py</code></a>"
    few, many = COLUMNS[:7], COLUMNS
    tables = [table(["File", *heads], name, *map(str, range(1000, 1000 + len(heads))), numbers=len(heads)) for heads in (few, many)]
    page = visit_with("".join(tables), width)
    assert page.evaluate("[...document.querySelectorAll('.md-typeset__scrollwrap')].every(box => box.scrollWidth <= box.clientWidth)")
    assert page.locator(".rankbook-page td:visible, table[data-numbers] th").evaluate_all(OUTSIDE) == []
    columns = page.locator("table[data-numbers]")
    place = "all => all.map(each => each.getBoundingClientRect()).map(({left, right}) => [left, right])"
    assert columns.locator("th.r").evaluate_all(place) == columns.locator("td.r").evaluate_all(place)
    row = columns.locator("td").first.bounding_box()
    assert columns.locator("td").nth(1).bounding_box()["y"] >= row["y"] + row["height"]
    said = "all => all.map(each => getComputedStyle(each, '::before').content.replace(/none|[\"]/g, '') + each.textContent)"
    told = page.locator(".rankbook-page table[data-told]").first.locator("td").evaluate_all(said)
    assert told[1:] == ["Files: 1000", "Tests: 1001", "No GPU: 1002", "1 GPU: 1003", "2 GPUs: 1004", "4 GPUs: 1005", "8 GPUs: 1006",
                        "16 GPUs: 1007", "Other device: 1008"]  # fmt: skip
    page.set_viewport_size(DESKTOP)
    assert page.locator(".rankbook-page table[data-numbers] tr").first.evaluate("each => getComputedStyle(each).display") == "table-row"


@pytest.mark.parametrize("width", [320, 375])
def test_what_is_tested_is_told_below_the_test_on_a_phone(visit_with, width):
    """A table of two columns of words has no room for both beside one another."""
    variants = '3 variants of <code>pytest.mark.parametrize("a", range(3))</code>: <code>0</code>, <code>1</code>'
    page = visit_with(table(["Test", "Variants"], "<a href=#L6><code>test_never_param</code></a>", variants), width)
    name, said = page.locator(".rankbook-page table").first.locator("td").all()
    assert said.bounding_box()["y"] >= name.bounding_box()["y"] + name.bounding_box()["height"]
    assert page.locator(".rankbook-page td:visible").evaluate_all(OUTSIDE) == []


@pytest.mark.parametrize("width", [320, 375])
def test_links_in_a_row_that_is_told_are_far_enough_apart_for_a_finger(visit_with, width):
    """Links in lines below one another are no smaller targets than 24 pixels."""
    file = "<a href=base.html><code>tests/collectives/common_base.py</code></a>"
    cells = ("<code>common_base</code>", "<code>DeepBase</code>, <code>RingBase</code>", "<a href=#L21>line 21</a>", file)
    page = visit_with(table(["Module", "Names", "Line", "File of this book"], *cells), width)
    kept, issues = found_by_axe(page, {"runOnly": {"type": "rule", "values": ["target-size"]}})
    assert (kept, issues) == (1, [])


def test_each_badge_that_leads_on_has_a_name_of_its_own(visit):
    """Who goes from link to link hears the word of a badge and then what ended so, the same as is seen before all else."""
    page = visit()
    badges = page.locator("a.rankbook-run").evaluate_all("all => all.map(each => [each.textContent, each.ariaLabel])")
    assert [pair for pair in badges if not pair[1].startswith(f"{pair[0]}: ")] == []
    names = [name for _, name in badges]
    assert len(names) == len(set(names)) > len(STANDINGS) - 1
    assert names[0].endswith(": this page")
    for test, word in (("crashed", "crashed"), ("failed", "failed"), ("declared", "no proof")):
        assert page.get_by_role("link", name=f"{word}: TestStates::test_{test}", exact=True).count() == 1
    variants = visit(KINDS["file with long names"]).locator("td a.rankbook-run").get_attribute("aria-label")
    assert variants == f"1 failed: Test{LONG}::test_{LONG.lower()}"


ALIKE = (
    "axe.run(document, {runOnly: ['landmark-unique']}).then(({violations}) => violations.flatMap(({nodes}) => nodes.map(({html}) => html)))"
)


@pytest.mark.parametrize("kind", ["file", "guide", "folder"])
def test_no_two_places_of_a_page_have_one_name(visit, kind):
    """A button that copies is no place of a page, also one that a theme adds later."""
    page = visit(KINDS[kind])
    with_axe(page)
    assert page.evaluate(ALIKE) == []
    later = "<nav class=md-code__nav>x</nav><nav class=md-code__nav>y</nav>"
    page.locator("article").evaluate("(article, later) => article.insertAdjacentHTML('beforeend', later)", later)
    page.evaluate("new Promise(done => setTimeout(done, 50))")
    assert page.evaluate(ALIKE) == []


LIGHTNESS = """all => {
  const pen = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  return [...new Set(all.map(each => getComputedStyle(each).color))].map(colour => {
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    const [red, green, blue] = pen.getImageData(0, 0, 1, 1).data;
    return [colour, 0.2126 * red + 0.7152 * green + 0.0722 * blue];
  });
}"""


def test_a_dark_page_is_printed_in_dark_ink(visit):
    """Paper is white also when the screen is not: on it no badge, name or word of a listing is pale."""
    page = visit(color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("new Promise(done => setTimeout(done, 500))")  # the theme lets colours glide
    inks = page.locator("article :is(.rankbook-outcome, td code, .rankbook-source code > [id] *)").evaluate_all(LIGHTNESS)
    assert len(inks) >= 6
    assert [colour for colour, lightness in inks if lightness > 130] == []


def test_each_way_to_stand_is_told_by_a_word(visit):
    """On one page each way in which a test can stand has a badge with its word; those that no machine has run are not green."""
    page = visit()
    badges = page.locator(".rankbook-runs td > .rankbook-outcome").evaluate_all("all => all.map(each => [each.innerText, each.className])")
    assert {word for word, _ in badges} == set(WORDS)
    assert {word for word, css in badges if css.endswith(("rankbook-passed", "rankbook-expected"))} == {"passed", "failed as expected"}
    never = page.locator("tr", has_text="test_never").locator(".rankbook-outcome")
    assert never.inner_text() == "never run"
    assert page.locator("figure.rb-ranks svg[role=img]:visible").count() == 2


def test_paper_has_words_and_no_controls(visit):
    """Printed, a page has no bar, menu or button; badges keep their words, what is folded is shown, and what is wide is broken."""
    page = visit()
    page.emulate_media(media="print")
    for control in (".md-header", ".md-sidebar", ".md-footer", ".rankbook-copy", ".rankbook-lines", ".rankbook-actions", ".rankbook-steps"):
        assert page.locator(f"{control}:visible").count() == 0, control
    assert page.locator(".rankbook-outcome:visible", has_text="crashed").count() > 0
    assert page.locator(".rankbook-runs details ul").first.evaluate("each => each.checkVisibility({contentVisibilityAuto: true})")
    page.set_viewport_size({"width": 720, "height": 1000})
    wide = page.evaluate(
        "[...document.querySelectorAll('article *')].filter(each => each.getBoundingClientRect().right > innerWidth + 1)"
        ".map(each => each.outerHTML.slice(0, 160))"
    )
    assert wide == []
    headings = page.locator("article table:not(.rb-bars) thead th")
    assert set(headings.evaluate_all("all => all.map(each => getComputedStyle(each).overflowWrap)")) == {"normal"}
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", page.locator(".rankbook-runs").inner_text())
    assert page.pdf(format="A4").startswith(b"%PDF")


GAPS = """all => all.map(each => {
  const text = document.createRange(), table = each.closest("table").getBoundingClientRect();
  text.selectNodeContents(each);
  const box = text.getBoundingClientRect();
  return box.left - table.left;
})"""


def test_no_name_stands_on_the_line_around_a_table(visit):
    """On paper the first column of a table that the theme draws a line around keeps away from it."""
    page = visit()
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 720, "height": 1000})
    lined = "article table:not([class])"
    assert page.locator(lined).first.evaluate("each => getComputedStyle(each).borderLeftWidth") != "0px"
    gaps = page.locator(f"{lined} :is(th, td):first-child:not(:empty)").evaluate_all(GAPS)
    assert len(gaps) > 10
    assert min(gaps) >= 4


def test_the_filter_is_not_printed(visit):
    """On paper nothing can be filtered."""
    page = visit(KINDS["words"])
    assert page.locator(".rankbook-filter").is_visible()
    page.emulate_media(media="print")
    assert page.locator(".rankbook-filter").is_hidden()


def test_chosen_colours_keep_shapes(visit):
    """With the colours of the system each part of a bar has a ground of its own and a line around it, and what is chosen is marked."""
    page = visit(forced_colors="active")
    parts = page.locator(".rb-bar > i").evaluate_all(
        "all => all.map(each => getComputedStyle(each)).map(style => [style.outlineStyle, style.backgroundColor + style.backgroundImage])"
    )
    assert {line for line, _ in parts} == {"solid"}
    assert len({ground for _, ground in parts}) >= 6
    assert page.locator(".rankbook-outcome").first.evaluate("each => getComputedStyle(each).borderTopWidth") != "0px"
    page.keyboard.press("t")
    page.get_by_role("combobox", name="Find a test").fill("test")
    page.wait_for_selector("[role=option][aria-selected=true]")
    lines = page.locator("[role=option]").evaluate_all("all => all.map(each => getComputedStyle(each).outlineStyle)")
    assert lines[0] == "solid"
    assert set(lines[1:]) == {"none"}


@pytest.fixture(scope="module")
def turned(tmp_path_factory):
    """A site in a language that goes from right to left."""
    root = write(tmp_path_factory.mktemp("turned"))
    settings = yaml.safe_load((root / "mkdocs.yml").read_text(encoding="utf-8"))
    settings["theme"]["language"] = "ar"
    (root / "mkdocs.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    with served(build(root)) as address:
        yield address


ENGLISH = "each => [each.closest('[lang]').lang, getComputedStyle(each).direction]"
REACHING_OUT = """all => all.filter(each => {
  const box = each.getBoundingClientRect(), around = each.closest("svg, .rankbook-page").getBoundingClientRect();
  return box.width && (box.left < around.left - 1 || box.right > around.right + 1);
}).map(each => each.outerHTML.slice(0, 160))"""


def test_what_is_english_is_so_on_a_site_in_another_language(opened, turned):
    """A screen reader is told of the language, words stand in their order, and nothing is turned that is written from left to right."""
    page = opened()
    for kind, parts in {
        "file": (".rankbook-page > *", ".rankbook-runs", "svg text"),
        "guide": (".rankbook-runs > *",),
        "front": (".rankbook-rollup > *",),
        "book": (".rankbook-page li",),
    }.items():
        go_to(page, turned, kind)
        assert page.locator("article").evaluate(ENGLISH) == ["ar", "rtl"]
        for part in parts:
            assert page.locator(part).first.evaluate(ENGLISH) == ["en", "ltr"], (kind, part)
        assert page.locator("svg text, .rankbook-page li").evaluate_all(REACHING_OUT) == []
        assert found_by_axe(page, BUT_COLOURS)[1] == []
    entry = page.locator(".rankbook-page li").first
    assert entry.evaluate("each => each.getBoundingClientRect().left - each.closest('.rankbook-page').getBoundingClientRect().left") > 20
    page.keyboard.press("t")
    page.get_by_role("combobox", name="Find a test").fill("test")
    page.wait_for_selector(".rankbook-search__list [role=option]")
    assert page.locator("dialog.rankbook-search [role=option]").first.evaluate(ENGLISH) == ["en", "ltr"]
    assert found_by_axe(page, BUT_COLOURS)[1] == []


def test_who_wants_no_motion_gets_none(visit):
    """Where the system asks for less motion nothing of the article moves, and no jump glides."""
    page = visit(reduced_motion="reduce")
    longest = page.evaluate(
        "Math.max(...[...document.querySelectorAll('article, article *')].flatMap(each => { const style = getComputedStyle(each);"
        " return [...style.transitionDuration.split(','), ...style.animationDuration.split(',')].map(parseFloat) }))"
    )
    assert longest < 0.01
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
