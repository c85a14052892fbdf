"""The built site in a real browser: from a keyword to its line, search, dark mode, and widths of a phone and a desktop."""

from __future__ import annotations

import itertools
import re

import pytest

from browsing import DESKTOP, PHONE, served, visits
from proved_site import STATES, WORDS, build_site
from tiny_site import RING

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
