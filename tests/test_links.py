"""No dead link: every address of a built site is followed, in its files and in a browser, and nothing is loaded from elsewhere."""

from __future__ import annotations

import functools
import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import proved_site
from browsing import browser, served
from proved_site import STATES
from tiny_site import REPOSITORY, Html, build

pytest.importorskip("material", reason="the site needs the extra `site`")
pytest.importorskip("pyromark", reason="pages are stamped with it")

LOADED = ("img", "script", "iframe", "source", "video", "audio", "embed", "object", "track", "input")
"""Elements that load what they name."""
NAMED = re.compile(r"""url\(\s*(?!['"]?(?:data:|#))['"]?([^'")]+)""")
PICTURED = re.compile(r"""\b(?:xlink:)?href="([^"]+)\"""")


@pytest.fixture(scope="module")
def proved(tmp_path_factory):
    """The site of a project whose book shows everything that a page can hold."""
    return proved_site.build_site(tmp_path_factory.mktemp("proved"))


@pytest.fixture(scope="module")
def bundled(tmp_path_factory):
    """The site of this repository: its guides, and the book of its suite."""
    root = tmp_path_factory.mktemp("bundled")
    for name in ("docs", "tests/distributed", "templates", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "mkdocs.yml", "pyproject.toml"):
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__", "suite"))
        else:
            shutil.copy(source, root / name)
    return build(root)


@pytest.fixture(params=["proved", "bundled"])
def site(request):
    return request.getfixturevalue(request.param)


@functools.cache
def read(path: Path) -> Html:
    """Read a page, once: no test changes one that was read."""
    return Html(path.read_text(encoding="utf-8"))


def target_of(address: str, page: Path, site: Path) -> tuple[Path, str] | None:
    """Find the file and the anchor that an address on a page leads to; None when it leads out of the site."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return None
    start = site if parts.path.startswith("/") else page.parent
    target = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else page
    return (target / "index.html" if target.is_dir() else target), unquote(parts.fragment)


def followed(site: Path) -> tuple[int, int, list[str]]:
    """Follow every internal address of a site; give the number of pages, of addresses with an anchor, and those that lead nowhere."""
    site = site.resolve()
    pages = {path: read(path) for path in site.rglob("*.html") if path.name != "404.html"}
    dead, anchors = [], 0
    for path, page in pages.items():
        for address in page.links:
            found = target_of(address, path, site)
            if found is None:
                continue
            target, fragment = found
            anchors += bool(fragment)
            lines = re.fullmatch(r"L(\d+)-L(\d+)", fragment)
            wanted = [f"L{number}" for number in lines.groups()] if lines else [fragment] if fragment else []
            is_there = target.is_file() and target.is_relative_to(site)
            if not is_there or (target in pages and not pages[target].ids.issuperset(wanted)):
                dead.append(f"{path.relative_to(site)}: {address}")
    return len(pages), anchors, dead


def test_every_address_leads_somewhere(site):
    """Each internal address of each page names a file of the site and, with a fragment, an element of it."""
    pages, anchors, dead = followed(site)
    assert dead == []
    assert anchors > pages > 20


def test_what_leads_nowhere_is_found(proved, tmp_path):
    """A page that is gone, an anchor that has another name and a way out of the site are dead links: the check can fail."""
    site = Path(shutil.copytree(proved, tmp_path / "site"))
    page = site / f"book/{STATES}_docs.html"
    text = re.sub(r'\bid=("?)L10\b', r"id=\1M10", page.read_text())
    page.write_text(text.replace("</article>", '<a href="../../../outside.html">x</a></article>'))
    (tmp_path / "outside.html").touch()
    (site / "book/suite-words.html").unlink()
    dead = followed(site)[2]
    assert f"book/{STATES}_docs.html: ../../../outside.html" in dead
    assert any(each.endswith("#L10") for each in dead)
    assert any(each.endswith("suite-words.html") for each in dead)
    assert all(each.endswith(("outside.html", "#L10", "suite-words.html")) for each in dead)


def test_no_id_stands_twice(site):
    """An anchor names one place: no page has two elements with the same id."""
    for path in site.rglob("*.html"):
        ids = [values["id"] for _, values in read(path).tags if values.get("id")]
        assert len(ids) == len(set(ids)), (path, sorted({each for each in ids if ids.count(each) > 1}))


def test_nothing_is_loaded_from_elsewhere(site):
    """No page, style sheet or picture of the site loads anything that is not in its folder."""
    for path in site.rglob("*.html"):
        for tag, values in read(path).tags:
            is_linked = tag == "link" and values.get("rel") != "canonical"
            loaded = values.get("href" if is_linked else "src") if is_linked or tag in LOADED else None
            assert not loaded or not (urlsplit(loaded).scheme or urlsplit(loaded).netloc), (path, loaded)
    for path in (*site.rglob("*.css"), *site.rglob("*.svg")):
        text = path.read_text(encoding="utf-8")
        for address in (*NAMED.findall(text), *(PICTURED.findall(text) if path.suffix == ".svg" else ())):
            found = target_of(address.replace("&amp;", "&"), path, site)
            assert found is not None, (path, address)
            assert found[0].is_file(), (path, address)


def test_every_result_of_the_search_leads_somewhere(site):
    """Each page, heading and line that the search can offer is there."""
    folder = next(path.parent for path in site.rglob("index.json") if "starts" in json.loads(path.read_text(encoding="utf-8")))
    top = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    base = site / top["root"] if top["root"] else site
    offered = 0
    for shard in folder.glob("*-????????.json"):
        for place, rows in json.loads(shard.read_text(encoding="utf-8")).items():
            is_page = place.startswith("/")
            path, _, heading = place[1:].partition("#") if is_page else (top["page"].replace("{}", place), "", "")
            target = base / (path.partition("?")[0] if is_page else path)
            assert target.is_file(), (place, rows)
            assert not heading or heading in read(target).ids, (place, rows)
            for row in rows.split("\n"):
                number = int(re.match(r".(\d*)", row)[1] or 0)
                offered += 1
                if number and not is_page:
                    assert f"L{number}" in read(target).ids, (place, row)
    assert offered > 50


SEEN = """() => ["href", "src"].flatMap(name =>
  [...document.querySelectorAll(`[${name}]`)].map(each => each[name]?.baseVal ?? each[name]).filter(each => typeof each === "string"))"""
KINDS = (
    "index.html",
    "guide.html",
    "book/index.html",
    "book/suite/index.html",
    "book/suite/doc.html",
    "book/suite/sub.html",
    "book/suite-words.html",
    f"book/{STATES}_docs.html",
    f"book/{STATES}_kw.html",
    "book/suite/inner/hostile.py_docs.html",
    f"book/{proved_site.LONGEST}_docs.html",
)


@pytest.mark.browser
def test_addresses_that_scripts_make_lead_somewhere(proved):
    """What stands on a page once its scripts have run leads somewhere, too, and no request leaves the site or fails."""
    site, asked, failed, dead = proved.resolve(), set(), [], []
    with served(site) as address, browser() as started:
        page = started.new_context().new_page()
        page.on("request", lambda request: asked.add(request.url))
        page.on("response", lambda response: failed.append(response.url) if response.status >= 400 else None)
        for path in KINDS:
            page.goto(address + path)
            page.wait_for_function("document.querySelector('.rankbook-search-button')")
            for link in page.evaluate(SEEN):
                if not link.startswith(address):
                    continue
                target, fragment = target_of(f"/{link.removeprefix(address)}", site / path, site)
                is_there = target.is_file()
                if is_there and fragment and target == site / path:
                    is_there = page.evaluate("id => Boolean(document.getElementById(id))", fragment)
                elif is_there and fragment:
                    is_there = fragment in read(target).ids
                if not is_there:
                    dead.append((path, link))
        page.keyboard.press("t")
        page.get_by_role("combobox", name="Find a test").fill("test")
        page.wait_for_selector("[role=option]")
    assert dead == []
    assert failed == []
    assert {url for url in asked if not url.startswith((address, "data:", "blob:"))} == set()
    assert len(asked) > len(KINDS)
