"""What a script writes into each page, in a real browser: the header, the navigation, the theme's contents, and what tables leave out."""

from __future__ import annotations

import pytest
import yaml

from browsing import DESKTOP, PHONE, served, visits
from ports import free_port
from proved_site import STANDINGS, STATES, build_site, write
from tiny_site import build, with_own_cache, write_project

pytest.importorskip("material", reason="the site needs the extra `site`")
pytest.importorskip("pyromark", reason="pages are stamped with it")

pytestmark = pytest.mark.browser
PAGE = f"book/{STATES}_docs.html"
CONTENTS = "each => [...each.querySelectorAll('a')].map(link => [link.getAttribute('href'), link.textContent.trim()])"
HEADINGS = "each => [...each.querySelectorAll('h2, h3')].map(({id, firstChild}) => [`#${id}`, firstChild.textContent])"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with served(build_site(tmp_path_factory.mktemp("parts"))) as address:
        yield address


@pytest.fixture
def visit(chromium, address):
    """A function that opens a page of a site."""
    with visits(chromium) as opened:

        def open_page(path=PAGE, site=address, **options):
            page = opened(**options)
            page.goto(site + path)
            return page

        yield open_page


def test_a_page_has_all_that_the_theme_gives_to_pages(visit):
    """Header, navigation, contents and footer stand where the theme has them, and nothing is left of what stood in their place."""
    page = visit()
    assert page.locator(".md-header [data-md-component=header-topic]").inner_text() == "States"
    assert page.locator(".rankbook-contents, .rankbook-header").count() == 0
    contents = page.locator(".md-sidebar--secondary .md-nav--secondary > ul").evaluate(CONTENTS)
    assert contents == page.locator("article").evaluate(HEADINGS)
    assert page.locator(".md-nav--primary .md-nav__link--active:visible").all_inner_texts() == ["The tiny suite"]
    assert page.locator("footer.md-footer").is_visible()
    page.get_by_role("link", name="Owners").first.click()
    page.wait_for_url("**/book/suite-owners.html")


def test_links_of_parts_lead_to_the_site_from_any_depth(visit, address):
    """An address in a part is that of the site's folder, however deep the page lies."""
    for path in ("book/index.html", PAGE, "book/suite/inner/index.html"):
        page = visit(path)
        links = page.locator(".md-header a, .md-sidebar--primary a[href]").evaluate_all("all => all.map(each => each.href)")
        assert f"{address}index.html" in links
        assert f"{address}book/suite-owners.html" in links


def test_the_drawer_of_a_phone_opens(visit):
    """On a phone the navigation comes from the side."""
    page = visit(viewport=PHONE)
    drawer = page.locator(".md-sidebar--primary")
    before = drawer.bounding_box()["x"]
    page.locator(".md-header label[for=__drawer]").click()
    page.wait_for_function("document.querySelector('.md-sidebar--primary').getBoundingClientRect().x >= 0")
    assert before < 0
    assert drawer.get_by_role("link", name="Owners").is_visible()


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP])
def test_without_script_a_reader_finds_the_way(visit, viewport):
    """Without script there is the way home and to each folder, and, where it has room, the contents as a list."""
    page = visit(viewport=viewport, java_script_enabled=False)
    assert page.get_by_role("link", name="Skip to content").get_attribute("href") == "#states"
    contents = page.get_by_role("navigation", name="Table of contents")
    assert contents.is_visible() == (viewport is DESKTOP)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    if viewport is DESKTOP:
        assert contents.evaluate(CONTENTS) == page.locator("article").evaluate(HEADINGS)
        article = page.locator("article").bounding_box()
        assert contents.bounding_box()["x"] >= article["x"] + article["width"]
    page.locator("header").get_by_role("link", name="rankbook").click()
    page.wait_for_url("**/index.html")


def test_each_test_has_its_command_and_each_badge_its_words(visit):
    """What a table says once for all of its tests is said of each when the script is there."""
    page = visit()
    copied = page.locator("td .rankbook-copy").evaluate_all("all => all.map(each => each.dataset.copy)")
    names = page.locator("td:first-child > a[href^='#L'] > code").all_inner_texts()
    assert copied == [f"pytest {STATES}::TestStates::{name}" for name in names if "::" not in name]
    assert len(copied) >= len(STANDINGS)
    badges = page.locator("td:first-child > a.rankbook-run").evaluate_all("all => all.map(each => [each.textContent, each.title])")
    assert len(badges) >= len(STANDINGS) - 1  # one was never run
    assert [said for word, said in badges if not said.startswith(word)] == []


def test_headings_lead_to_themselves(visit):
    """A heading has a link to itself, which is seen when it is pointed at."""
    page = visit()
    heading = page.locator("article h2").first
    link = heading.locator("a.headerlink")
    assert link.get_attribute("href") == f"#{heading.get_attribute('id')}"
    heading.hover()
    page.wait_for_function("getComputedStyle(document.querySelector('article h2 .headerlink')).opacity === '1'")


def test_names_in_lists_of_names_look_like_code(visit):
    """A name in a list of names has the font and the ground of code."""
    look = "each => { const style = getComputedStyle(each); return [style.fontFamily, style.backgroundColor, style.borderRadius] }"
    page = visit(f"book/{STATES}_kw.html")
    name = page.locator("article li b").first
    assert name.evaluate(look) == page.locator("article h1 code").evaluate(look)
    assert name.evaluate("each => getComputedStyle(each).fontWeight") == "400"


def test_on_a_phone_what_fails_says_why(visit):
    """Each cell of the table of what fails lies on the screen, the reason below its test."""
    page = visit("book/suite/index.html", viewport=PHONE)
    table = page.locator(".rb-scroll[aria-label=Failing] table")
    reasons = table.locator("td:last-child")
    assert "AssertionError" in reasons.first.inner_text()
    outside = table.locator("td").evaluate_all(
        "all => all.filter(each => { const box = each.getBoundingClientRect(); return box.left < 0 || box.right > innerWidth }).length"
    )
    assert outside == 0
    first = table.locator("td").first.bounding_box()
    assert reasons.first.bounding_box()["y"] >= first["y"] + first["height"]


def test_a_theme_that_never_leaves_the_first_page(chromium, tmp_path, monkeypatch):
    """With Material's instant navigation a generated page is whole, whichever page the reader comes from."""
    with_own_cache(monkeypatch, tmp_path / "cache")
    port = free_port()
    (tmp_path / "p").mkdir()
    root = write_project(tmp_path / "p")
    settings = yaml.safe_load((root / "mkdocs.yml").read_text())
    settings["site_url"] = f"http://127.0.0.1:{port}/"
    settings["theme"]["features"] = [*settings["theme"].get("features", []), "navigation.instant"]
    (root / "mkdocs.yml").write_text(yaml.safe_dump(settings))
    site = build(root)
    errors = []
    with served(site, port) as address:
        context = chromium.new_context(viewport=DESKTOP)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{address}index.html")
        page.wait_for_function("window.rb && document.querySelector('.rankbook-search-button')")
        page.wait_for_load_state("networkidle")
        page.evaluate("window.isFirst = true")
        for link, topic in (("suite", "The tiny suite"), ("suite", "suite"), ("Ring", "Ring")):
            page.locator("article a", has_text=link).first.click()
            page.wait_for_function("topic => document.querySelector('[data-md-component=header-topic]').innerText === topic", arg=topic)
            page.wait_for_selector(".md-sidebar--secondary .md-nav__link")
            assert page.locator(".md-sidebar--primary .md-nav__link").count() > 2
            assert page.locator(".rankbook-contents").count() == 0
            assert page.evaluate("window.isFirst") is True
        context.close()
    assert errors == []


def test_a_theme_without_a_palette_has_the_colours_of_outcomes(chromium, tmp_path):
    """A project that names no colour scheme has the light one: what passed is green there, and never has the colour of a link."""
    root = write(tmp_path)
    settings = yaml.safe_load((root / "mkdocs.yml").read_text(encoding="utf-8"))
    del settings["theme"]["palette"]
    (root / "mkdocs.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    with served(build(root)) as address:
        page = chromium.new_page()
        page.goto(address + PAGE)
        badges = page.locator("a.rankbook-run .rankbook-passed").evaluate_all("all => all.map(each => getComputedStyle(each).color)")
        page.close()
    assert set(badges) == {"rgb(27, 110, 44)"}
