"""The page of a file in a real browser: lines that are picked, old addresses, permalinks, commands to copy, keyboard, and no script."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from urllib.parse import quote

import pytest
import yaml

from browsing import DESKTOP, PHONE, served, visits
from ports import free_port
from rankbook.site.forge import FACTS, Forge
from tiny_site import build, write_project

pytest.importorskip("material", reason="the site needs the extra `site`")
pytest.importorskip("pyromark", reason="pages are stamped with it")

pytestmark = pytest.mark.browser
COMMIT = "0123456789abcdef0123456789abcdef01234567"
PAGE = "book/suite/test_ring.py_docs.html"
COMMAND = "pytest suite/test_ring.py::TestRing::test_token_comes_back"
QUOTED = ("test_of two words.py", "test_it's.py", "\u00e4hnlich_test.py")
FORGE = Forge.of("https://github.com/owner/name", "main")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A project, with sources whose names a shell takes for more than one word, or for letters that it may not know."""
    root = write_project(tmp_path_factory.mktemp("page"))
    for name in QUOTED:
        (root / "suite" / name).write_text("def test_it():\n    assert 1\n", encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def address(root):
    """Its site, whose pages have the links of a forge."""
    with served(on_forge(build(root), PAGE)) as address:
        yield address


LONG = "book/suite/test_long.py_docs.html"
LONG_SOURCE = "\n\n\n".join(f"def test_{number}():\n    one = {number}\n    assert one == {number}" for number in range(400)) + "\n"
FOLLOWING = ["navigation.instant", "navigation.tracking"]


@pytest.fixture(scope="module")
def following(tmp_path_factory):
    """Its site with a theme that never leaves the first page, and tells in the address which heading is in sight."""
    root = write_project(tmp_path_factory.mktemp("following"))
    (root / "suite/test_long.py").write_text(LONG_SOURCE)
    settings = yaml.safe_load((root / "mkdocs.yml").read_text())
    port = free_port()
    settings["site_url"] = f"http://127.0.0.1:{port}/"
    settings["theme"]["features"] = [*settings["theme"].get("features", []), *FOLLOWING]
    (root / "mkdocs.yml").write_text(yaml.safe_dump(settings))
    with served(on_forge(build(root), LONG), port) as address:
        yield address


def on_forge(site, path):
    """Give a page of a site the links of a forge; give the site."""
    page = site / path
    source = path.removeprefix("book/").removesuffix("_docs.html")
    text = re.sub(r'<div class="rankbook-actions">.*?</div>\n', "", page.read_text())
    actions = f'<div class="rankbook-actions">{FORGE.actions(source)}</div>'
    page.write_text(re.sub(r'(<div class="rankbook-page"[^>]*>)', lambda match: match[1] + actions, text, count=1))
    (site / FACTS).write_text(FORGE.facts(COMMIT))
    return site


@pytest.fixture
def visit(chromium, address):
    """A function that opens a page of the site, on which the forge answers."""
    with visits(chromium) as opened:

        def open_page(path=PAGE, site=address, **options):
            page = opened(permissions=["clipboard-read", "clipboard-write"], **options)
            page.route("https://github.com/**", lambda route: route.fulfill(body="the forge"))
            page.goto(site + path)
            return page

        yield open_page


PICKED = "[...document.querySelectorAll('.rankbook-picked')].map(each => Number(each.id.slice(1)))"


def picked(page):
    """The numbers of the lines that are marked."""
    return page.evaluate(PICKED)


def until(page, lines):
    """Wait until just these lines are marked."""
    page.wait_for_function(f"lines => JSON.stringify({PICKED}) === JSON.stringify(lines)", arg=list(lines))


def click_number(page, line, **options):
    """Click on the number that is drawn before a line."""
    place = page.locator(f"#L{line}").evaluate(
        "each => { each.scrollIntoView({block: 'center'}); const box = each.getClientRects()[0];"
        " return [each.parentElement.getBoundingClientRect().left, box.top + box.height / 2] }"
    )
    page.mouse.move(place[0] + 12, place[1])
    if options.get("shift"):
        page.keyboard.down("Shift")
    page.mouse.click(place[0] + 12, place[1])
    if options.get("shift"):
        page.keyboard.up("Shift")


def test_lines_of_the_address_are_marked_and_in_sight(visit):
    """An address that names lines marks them, in any order, and brings the first into sight; one of no such line marks none."""
    page = visit(f"{PAGE}#L19-L9")
    until(page, range(9, 20))
    assert page.locator("#L9").evaluate("each => { const top = each.getBoundingClientRect().top; return 0 <= top && top < innerHeight }")
    page.evaluate("location.hash = '#L3'")
    until(page, [3])
    page.evaluate("location.hash = '#L900'")
    until(page, [])


def test_an_old_address_leads_to_its_line(visit):
    """The address that engines give to a line leads to the same line of a stamped page."""
    page = visit(f"{PAGE}#__codelineno-source-12")
    until(page, [12])
    assert page.url.endswith("#L12")


def test_a_click_on_a_number_picks_its_line_and_shift_a_range(visit):
    """The address follows what is clicked, without a jump; a click on the text picks nothing."""
    page = visit()
    click_number(page, 9)
    until(page, [9])
    assert page.url.endswith("#L9")
    before = page.evaluate("scrollY")
    click_number(page, 14, shift=True)
    until(page, range(9, 15))
    assert page.url.endswith("#L9-L14")
    click_number(page, 6, shift=True)
    until(page, range(6, 10))
    assert abs(page.evaluate("scrollY") - before) < 600
    page.locator("#L11").click(position={"x": 200, "y": 5})
    assert picked(page) == [6, 7, 8, 9]


def test_lines_are_picked_by_the_keyboard(visit):
    """The box above the listing takes a line or a range, says what it did, and shares the address."""
    page = visit()
    box = page.get_by_role("textbox", name="Lines")
    box.focus()
    page.keyboard.type("3-9")
    page.keyboard.press("Enter")
    until(page, range(3, 10))
    page.wait_for_function("document.getElementById('rankbook-said').textContent === 'Lines 3 to 9'")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_function("document.getElementById('rankbook-said').textContent.startsWith('Copied: http')")
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    box.fill("none")
    box.press("Enter")
    page.wait_for_function("document.getElementById('rankbook-said').textContent === 'There is no such line.'")
    assert picked(page) == [*range(3, 10)]


def test_the_keys_of_the_theme_turn_the_pages(visit):
    """Material's keys n and p lead to the file behind and the file before, as they do on pages that MkDocs builds."""
    page = visit()
    page.wait_for_selector("link[rel=next], link[rel=prev]", state="attached")
    steps = {each.get_attribute("rel"): each.evaluate("each => each.href") for each in page.locator(".rankbook-steps a").all()}
    assert {"next": "n", "prev": "p"}.keys() & steps.keys()
    for rel, key, back in (("next", "n", "p"), ("prev", "p", "n")):
        if rel in steps:
            here = page.url
            page.keyboard.press(key)
            page.wait_for_url(steps[rel])
            page.wait_for_selector(f"link[rel={'prev' if rel == 'next' else 'next'}]", state="attached")
            page.keyboard.press(back)
            page.wait_for_url(here)


def test_the_permalink_names_the_commit_and_the_lines(visit):
    """The link to the branch becomes one to the commit, with the lines that are picked; the key y follows it, but not while one types."""
    page = visit(f"{PAGE}#L3-L9")
    link = page.get_by_role("link", name="Permalink")
    address = f"https://github.com/owner/name/blob/{COMMIT}/suite/test_ring.py"
    page.wait_for_function("address => document.querySelector('.rankbook-permalink').href === address", arg=f"{address}#L3-L9")
    page.evaluate("location.hash = '#L4'")
    page.wait_for_function("address => document.querySelector('.rankbook-permalink').href === address", arg=f"{address}#L4")
    assert link.is_visible()
    page.get_by_role("textbox", name="Lines").press("y")
    page.get_by_role("textbox", name="Lines").evaluate("each => each.blur()")
    assert page.url.endswith("#L4")
    page.keyboard.press("y")
    page.wait_for_url(f"{address}#L4")


def follow(page, number):
    """Click on the link to a line that stands in the text of the page."""
    page.locator(f".rankbook-page a[href$='#L{number}']").first.click()


def shows(page, number):
    """Wait until a line is marked, stands in the box, and is what the permalink leads to."""
    until(page, [number])
    address = f"https://github.com/owner/name/blob/{COMMIT}/suite/test_long.py#L{number}"
    page.wait_for_function("address => document.querySelector('.rankbook-permalink').href === address", arg=address)
    assert page.get_by_role("textbox", name="Lines").input_value() == str(number)


def test_lines_are_followed_in_a_theme_that_never_leaves_the_first_page(visit, following):
    """Such a theme writes the address of a link by itself: what is marked, the box and the permalink follow it, forth and back."""
    page = visit(LONG, following)
    page.wait_for_load_state("networkidle")
    for number in (6, 11, 16, 11):
        follow(page, number)
        shows(page, number)
    for number in (16, 11, 6):
        page.evaluate("history.back()")
        shows(page, number)
    page.evaluate("history.forward()")
    shows(page, 11)
    page.get_by_role("link", name="Original source").last.click()
    until(page, [])
    assert not page.get_by_role("button", name="Copy link to the lines").is_visible()
    follow(page, 11)
    shows(page, 11)
    page.keyboard.press("y")
    page.wait_for_url("https://github.com/**#L11")


def test_the_link_to_lines_names_them_whatever_the_address_says(visit, following):
    """A theme that tells in the address which heading is in sight takes the lines from it, but not from the page or what is copied."""
    page = visit(f"{LONG}#L1500-L1540", following)
    until(page, range(1500, 1541))
    page.wait_for_timeout(500)  # the theme waits for the first time that nothing moves
    page.mouse.move(600, 450)
    page.mouse.wheel(0, 300)
    page.wait_for_url("**#original-source")
    assert picked(page) == [*range(1500, 1541)]
    page.get_by_role("button", name="Copy link to the lines").click()
    page.wait_for_function("document.getElementById('rankbook-said').textContent.startsWith('Copied: http')")
    assert page.evaluate("navigator.clipboard.readText()") == f"{following}{LONG}#L1500-L1540"


def test_lines_stay_marked_when_the_theme_loads_the_page_again(visit, following):
    """Such a theme loads the page at the first change of its address, and may have changed the address once more until it is there."""
    page = visit(LONG, following)
    page.wait_for_load_state("networkidle")
    held = []

    def hold(route):
        held.append(route)

    page.route(f"**/{LONG}*", hold)
    page.evaluate("window.shown = document.querySelector('.rankbook-page')")
    page.evaluate("location.hash = '#L1500-L1540'")
    page.wait_for_timeout(500)
    page.mouse.move(600, 450)
    page.mouse.wheel(0, 300)
    page.wait_for_url("**#original-source")
    held[0].continue_()
    page.wait_for_function("document.querySelector('.rankbook-page') !== window.shown")
    until(page, range(1500, 1541))


def test_each_test_has_a_button_that_copies_its_command(visit):
    """The button beside a test has a name of its own, copies the command and says so; the link keeps no title that is read twice."""
    page = visit()
    button = page.get_by_role("button", name="Copy the command that runs test_token_comes_back alone")
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("command => document.getElementById('rankbook-said').textContent === `Copied: ${command}`", arg=COMMAND)
    assert page.evaluate("navigator.clipboard.readText()") == COMMAND
    assert page.locator("a[title^='pytest ']").count() == 0
    assert page.get_by_role("button", name="Copy this command").count() == 3


def commands_of(page, name):
    """The commands that the page of a file offers to copy, and of them the one of the page itself."""
    copied = page.locator("[data-copy]").evaluate_all("all => all.map(each => each.dataset.copy)")
    (own,) = [command for command in copied if any(f"docs/book/suite/{name}_docs.md::" in word for word in shlex.split(command))]
    shown = page.locator("li:has(> [data-copy])").evaluate_all(
        "all => all.map(each => each.firstChild.textContent + each.children[0].textContent)"
    )
    assert [each for each in shown if "from this page" in each] == [f"from this page, so that the ledger keeps the run: {own}"]
    return copied


def said_by(root, program, *arguments):
    """What a program says that is called as a command says."""
    start = [sys.executable, *(["-m", "pytest"] if program == "pytest" else [])]
    done = subprocess.run([*start, *arguments], cwd=root, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout + done.stderr


def test_what_is_copied_runs_at_the_root(visit, root):
    """Each command that a page offers to copy runs the test when it is pasted where the project lies, that of the page itself as well."""
    copied = set(commands_of(visit("book/suite/test_ring.py_docs.html"), "test_ring.py"))
    assert len(copied) == 3
    for command in copied:
        assert re.search(r"1 passed|Ran 1 test", said_by(root, *shlex.split(command))), command


def test_what_is_copied_of_names_that_a_shell_may_not_know_runs(visit, root):
    """So does that of a file whose name holds blanks, quotes or other letters: one word differs, in which the three are called at once."""
    offered = [commands_of(visit(f"book/suite/{quote(name)}_docs.html"), name) for name in QUOTED]
    assert len(offered[0]) > 1
    for commands in zip(*offered, strict=True):
        words = [shlex.split(command) for command in commands]
        assert len({tuple(each[:-1]) for each in words}) == 1, commands
        assert "3 passed" in said_by(root, *words[0], *(each[-1] for each in words[1:])), commands


def test_without_a_clipboard_the_command_is_copied_all_the_same(visit):
    """Where a browser gives no clipboard to a page, the older way is taken."""
    page = visit()
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.evaluate("document.addEventListener('copy', () => (window.taken = document.activeElement.value))")
    page.locator("[data-copy]").first.click()
    page.wait_for_function("command => window.taken === command", arg=COMMAND)
    assert page.locator(".rankbook-clip").count() == 0


@pytest.mark.parametrize("is_changed", [True, False])
def test_a_file_that_the_commit_does_not_hold_has_no_permalink(visit, is_changed):
    """What the site says of sources that were changed when it was built is heeded: the link would lead to other lines, or to nothing."""
    page = visit()
    of_another = "https://github.com/owner/name/blob/{commit}/suite/other.py"
    own = page.locator("a.rankbook-permalink").get_attribute("data-commit")
    facts = {"commit": COMMIT, "line": "#L{first}", "lines": "#L{first}-L{last}", "changed": [of_another, *([own] if is_changed else [])]}
    with page.expect_response("**/rankbook.json"):
        page.route("**/rankbook.json", lambda route: route.fulfill(json=facts))
        page.reload()
    page.wait_for_timeout(200)
    assert page.locator("a.rankbook-permalink").is_hidden() == is_changed


@pytest.mark.parametrize("is_absent", [True, False])
def test_a_file_that_is_on_no_forge_has_no_links_there(visit, is_absent):
    """Nobody can edit or view there what Git does not have yet."""
    page = visit()
    own = page.locator("a.rankbook-permalink").get_attribute("data-commit")
    facts = {"commit": COMMIT, "line": "#L{first}", "lines": "#L{first}-L{last}", "changed": [own], "absent": [own] if is_absent else []}
    with page.expect_response("**/rankbook.json"):
        page.route("**/rankbook.json", lambda route: route.fulfill(json=facts))
        page.reload()
    page.wait_for_timeout(200)
    assert page.get_by_role("link", name="Edit this file").is_visible() != is_absent
    assert page.get_by_role("link", name="View on GitHub").is_visible() != is_absent


def test_without_script_all_of_it_can_be_read(visit):
    """The links to the forge lead to the branch, the commands stand on the page, and no control does nothing."""
    page = visit(java_script_enabled=False)
    assert (
        page.get_by_role("link", name="Edit this file").get_attribute("href")
        == "https://github.com/owner/name/edit/main/suite/test_ring.py"
    )
    assert page.get_by_role("link", name="View on GitHub").get_attribute("href").endswith("/blob/main/suite/test_ring.py")
    assert page.locator("a.rankbook-permalink").is_hidden()
    assert page.locator("article a[title]", has_text="test_token_comes_back").first.get_attribute("title") == COMMAND
    assert page.get_by_text(COMMAND, exact=True).is_visible()
    assert page.locator(".rankbook-copy, .rankbook-lines").count() == 0


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP])
def test_what_the_script_adds_fits_the_screen(visit, viewport):
    """On a phone and on a desk nothing that the page offers lies outside of the screen."""
    page = visit(f"{PAGE}#L3-L9", viewport=viewport)
    until(page, range(3, 10))
    outside = page.evaluate(
        "[...document.querySelectorAll('.rankbook-actions a, .rankbook-lines *, .rankbook-steps a')].filter(each => {"
        " const box = each.getBoundingClientRect(); return box.width && (box.left < 0 || box.right > innerWidth) })"
        ".map(each => each.outerHTML)"
    )
    assert outside == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_controls_are_not_printed(visit):
    """On paper there is nothing to press."""
    page = visit()
    page.emulate_media(media="print")
    assert page.locator(".rankbook-copy").first.is_hidden()
    assert page.locator(".rankbook-lines").is_hidden()
    assert page.locator(".rankbook-actions").is_hidden()


def test_a_listing_has_room_for_its_lines(visit):
    """In a window of 1400 pixels a line of 95 characters is shown whole."""
    page = visit(viewport={"width": 1400, "height": 900})
    room = page.locator(".rankbook-source code").first.evaluate("""code => {
      const style = getComputedStyle(code), pen = document.createElement("canvas").getContext("2d");
      pen.font = `${style.fontSize} ${style.fontFamily}`;
      return (code.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)) / pen.measureText("x").width;
    }""")
    assert room >= 95
