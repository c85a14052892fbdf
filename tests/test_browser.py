"""The built site in a real browser: from a keyword to its line, search, dark mode, and widths of a phone and a desktop."""

from __future__ import annotations

import itertools
import re
from collections import Counter

import pytest

from browsing import DESKTOP, PHONE, served, visits
from proved_site import STATES, WORDS, build_site
from tiny_site import RING, build, write_project

pytest.importorskip("material", reason="the site needs the extra `site`")

pytestmark = pytest.mark.browser
PAGES = (
    "",
    "book/index.html",
    "book/sub.html",
    "book/doc.html",
    "book/suite-hardware.html",
    "book/suite-words.html",
    "book/suite/test_ring.py_docs.html",
    "book/suite/test_ring.py_kw.html",
    "book/suite/inner/hostile.py_docs.html",
)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with served(build_site(tmp_path_factory.mktemp("browser"))) as address:
        yield address


@pytest.fixture
def visit(chromium, address):
    """A function that opens a page of the site, at a size, and gives the browser's page."""
    with visits(chromium) as opened:

        def open_page(path="", **options):
            page = opened(**options)
            page.goto(address + path)
            return page

        yield open_page


def line_of(text):
    return next(number for number, line in enumerate(RING.splitlines(), 1) if text in line)


def test_keyword_leads_to_its_line(visit):
    """A click on a keyword opens the source's page at the line that defines it."""
    page = visit("book/suite/test_ring.py_kw.html")
    line = line_of("def neighbour")
    page.locator(f'article a[href$="test_ring.py_docs.html#L{line}"]').first.click()
    page.wait_for_url(f"**/test_ring.py_docs.html#L{line}")
    anchor = page.locator(f"#L{line}")
    page.wait_for_function("element => element.getBoundingClientRect().top < innerHeight", arg=anchor.element_handle())
    assert anchor.evaluate("element => element.getBoundingClientRect().top") >= 0
    text = page.locator(".rankbook-source code").evaluate("element => element.textContent")
    assert text == RING


def test_a_listing_looks_like_its_source(visit):
    """With the theme's own style each line stands in a row of its own, empty ones too, with its number before it."""
    page = visit("book/suite/test_ring.py_docs.html")
    code = page.locator(".rankbook-source code")
    assert code.evaluate("element => element.innerText").rstrip("\n") == RING.rstrip("\n")
    drawn = page.locator(".rankbook-source code > [id]")
    assert drawn.count() == len(RING.splitlines())
    assert set(drawn.evaluate_all("all => all.map(each => getComputedStyle(each, '::before').content)")) == {"counter(rankbook-line)"}
    tops = drawn.evaluate_all("all => all.map(each => Math.round(each.getClientRects()[0].top))")
    steps = [below - above for above, below in itertools.pairwise(tops)]
    assert min(steps) > 8
    assert max(steps) - min(steps) <= 2


LONG = "def test_long(rank):\n" + "    rank = -rank\n" * 1799 + "    assert rank  # " + "wide " * 40 + "\n"
COPIES = ["clipboard-read", "clipboard-write"]


@pytest.fixture(scope="module")
def long_listing(tmp_path_factory):
    """The address of a page with a listing of 1801 lines, the last one of them wider than the screen."""
    root = write_project(tmp_path_factory.mktemp("long"))
    (root / "suite/test_long.py").write_text(LONG)
    with served(build(root)) as address:
        yield f"{address}book/suite/test_long.py_docs.html"


def come_to(page, line):
    page.wait_for_function("line => document.getElementById(line).getBoundingClientRect().top < innerHeight", arg=line)
    assert page.locator(f"#{line}").evaluate("line => line.getBoundingClientRect().top") >= 0


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_a_long_listing_is_laid_out_where_it_is_read(chromium, long_listing, viewport):
    """A link into the middle shows its line before others are laid out, in one column with them; a click on its number picks it."""
    with visits(chromium) as opened:
        page = opened(viewport=viewport)
        page.goto(f"{long_listing}#L1251")
        come_to(page, "L1251")
        is_laid_out = "line => line.checkVisibility({contentVisibilityAuto: true})"
        assert page.locator("#L1251").evaluate(is_laid_out)
        assert not page.locator("#L300").evaluate(is_laid_out)
        places = page.locator(":is(#L1249, #L1250, #L1251, #L1252)").evaluate_all("""lines => lines.map(line => {
          const text = document.createRange();
          text.selectNodeContents(line);
          return [text.getBoundingClientRect().left, text.getBoundingClientRect().top];
        })""")
        assert len({round(left) for left, _ in places}) == 1
        steps = [below - above for (_, above), (_, below) in itertools.pairwise(places)]
        assert max(steps) - min(steps) <= 1 < min(steps)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        code = page.locator(".rankbook-source code")
        assert code.evaluate("code => code.scrollWidth <= code.clientWidth")
        left = code.evaluate("code => code.getBoundingClientRect().left")
        page.mouse.click(left + 9, page.locator("#L1253").bounding_box()["y"] + 5)
        page.wait_for_url("**#L1253")
        page.evaluate("location.hash = 'L1801'")
        come_to(page, "L1801")
        assert code.evaluate("code => (code.scrollLeft = 9999, code.scrollWidth > code.clientWidth && code.scrollLeft > 0)")
        page.mouse.click(left + 9, page.locator("#L1800").bounding_box()["y"] + 5)
        page.wait_for_url("**#L1800")


def test_a_long_listing_is_copied_whole(chromium, long_listing):
    """Selected or by the button of the theme, what is copied is the source, wherever the reader is."""
    with visits(chromium) as opened:
        page = opened(permissions=COPIES)
        page.goto(long_listing)
        code = page.locator(".rankbook-source code")
        assert code.evaluate("code => code.textContent") == LONG
        page.locator(".rankbook-source [data-clipboard-target]").click()
        page.wait_for_function("navigator.clipboard.readText().then(text => text.length > 99)")
        assert page.evaluate("navigator.clipboard.readText()") == LONG.rstrip()
        page.evaluate("navigator.clipboard.writeText('')")
        code.evaluate("code => getSelection().selectAllChildren(code)")
        page.keyboard.press("Control+c")
        page.wait_for_function("navigator.clipboard.readText().then(text => text.length > 99)")
        assert page.evaluate("navigator.clipboard.readText()").rstrip() == LONG.rstrip()


def test_the_numbers_of_a_long_listing_go_on(chromium, long_listing):
    """What is laid out by itself counts on from what stands before it: each line has its own number, on the screen and on paper."""
    with visits(chromium) as opened:
        page = opened()
        page.goto(long_listing)
        page.evaluate("document.getElementById('L1251').scrollIntoView({block: 'center'})")
        session = page.context.new_cdp_session(page)
        for media, lines in {"screen": range(1249, 1255), "print": range(1, 1802)}.items():
            page.emulate_media(media=media)
            page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            nodes = session.send("Accessibility.getFullAXTree")["nodes"]
            drawn = Counter(node["name"]["value"] for node in nodes if node.get("role", {}).get("value") == "StaticText")
            assert {line: drawn[str(line)] for line in lines if line > 9 and drawn[str(line)] != 1} == {}, media


def first_is(page, name):
    """Wait until the first result of the search is a page: results come while the word is still being typed."""
    page.wait_for_function("name => document.querySelector('.md-search-result__link')?.href.includes(name)", arg=name)


def test_the_engines_search_works_on_a_stamped_page(visit):
    """On a stamped page the dialog of the engine's search finds what people wrote, and a click opens it."""
    page = visit("book/suite/test_ring.py_docs.html")
    page.locator(".md-search__input").click()
    page.locator(".md-search__input").press_sequentially("tiny project")
    first_is(page, "index.html")
    page.locator(".md-search-result__link").first.click()
    page.wait_for_url(lambda url: "/book/" not in url)
    assert "Its suite" in page.locator("article").inner_text()


def test_a_stamped_page_has_no_error(visit):
    """Scripts of the theme and of the book end without an error on every kind of page, and a copied listing is the source."""
    page = visit()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    origin = page.url
    for path in PAGES:
        page.goto(origin + path)
        page.wait_for_function("document.querySelector('form[data-md-component=palette], .md-search__input')")
    assert errors == []


def test_scheme_follows_the_system_and_can_be_changed(visit):
    """A dark system gets the dark scheme; the toggle changes it, and the next page keeps the choice."""
    page = visit(color_scheme="dark")
    body = page.locator("body")
    assert body.get_attribute("data-md-color-scheme") == "slate"
    page.locator("form.md-header__option label:not([hidden])").first.click()
    page.wait_for_function("document.body.dataset.mdColorScheme === 'default'")
    page.goto(page.url + "book/index.html")
    page.wait_for_function("document.body.dataset.mdColorScheme === 'default'")


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_no_page_is_wider_than_the_screen(visit, viewport):
    """No kind of page scrolls sideways as a whole, at the width of a phone or of a desktop."""
    page = visit(viewport=viewport)
    origin = page.url
    for path in PAGES:
        page.goto(origin + path)
        widths = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert widths[0] <= widths[1], path
        assert re.search(r"\S", page.locator("article").inner_text()), path


CONTRAST = """badges => {
  const channels = text => text.match(/[\\d.]+/g).map(Number);
  const linear = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const luminance = rgb => rgb.map(linear).reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
  const over = (rgba, ground) => ground.map((value, at) => rgba[at] * (rgba[3] ?? 1) + value * (1 - (rgba[3] ?? 1)));
  const ground = element => {
    const colour = channels(getComputedStyle(element).backgroundColor);
    return over(colour, element.parentElement ? ground(element.parentElement) : [255, 255, 255]);
  };
  return badges.map(badge => {
    const below = ground(badge);
    const [light, dark] = [below, over(channels(getComputedStyle(badge).color), below)].map(luminance).sort((a, b) => b - a);
    return [badge.innerText, (light + 0.05) / (dark + 0.05)];
  });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_outcomes_are_readable(visit, scheme):
    """The badge of every outcome has a contrast of at least 4.5 to 1 with what lies below it, also in the row under the mouse."""
    page = visit(f"book/{STATES}_docs.html", color_scheme=scheme)
    badges = page.locator(".rankbook-outcome")
    ratios = dict(badges.evaluate_all(CONTRAST))
    assert set(ratios) >= set(WORDS) | {"never run"}
    assert min(ratios.values()) >= 4.5, ratios
    assert len(set(ratios.values())) > 1
    badges.first.hover()
    page.wait_for_timeout(300)
    assert min(ratio for _, ratio in badges.evaluate_all(CONTRAST)) >= 4.5


def test_a_phone_shows_all_columns_of_a_table_of_tests(visit):
    """What is tested fits the width of a phone: no column of the table lies outside the screen."""
    page = visit("book/suite/test_ring.py_docs.html", viewport=PHONE)
    table = page.locator("article table:not([class])").first
    assert "test_token_comes_back" in table.inner_text()
    assert table.evaluate("table => table.getBoundingClientRect().right") <= PHONE["width"]


def test_the_trail_leads_up(visit):
    """The line below a page's heading leads from folder to folder up to the root of the book."""
    page = visit("book/suite/inner/hostile.py_docs.html")
    steps = (("inner", "suite/inner/", "suite/inner"), ("suite", "suite/", "suite"), ("The tiny suite", "", "The tiny suite"))
    for label, folder, heading in steps:
        page.locator("article h1 + p a", has_text=re.compile(f"^{label}$")).click()
        page.wait_for_url(f"**/book/{folder}index.html")
        assert page.locator("article h1").inner_text().startswith(heading)
