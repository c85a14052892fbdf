"""The book while somebody works on it: a real `mkdocs serve`, files that are really saved, and a browser that shows them."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from html import unescape

import pytest

from ports import free_port
from rankbook.config import Settings
from rankbook.ledger import Ledger
from rankbook.listing import Outcome, Run
from rankbook.serving import Live, Window
from rankbook.serving.watch import DEAF_NET
from tiny_site import RING, environment, write_project

pytest.importorskip("mkdocs", reason="the site needs the extra `site`")

MINUTE = 60.0
"""Patience with a machine that has much else to do."""
PAGE = "book/suite/test_ring.py_docs.html"
DOCS = "docs/book/suite/test_ring.py_docs.md"


def get(address):
    """What a server answers: the text of a page; empty when there is none."""
    try:
        with urllib.request.urlopen(address, timeout=MINUTE) as response:
            return response.read().decode()
    except urllib.error.HTTPError as error:
        error.close()
        return ""
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return ""


def until(found, what):
    """Wait until something is so; give it."""
    end = time.monotonic() + MINUTE
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(0.05)
    pytest.fail(f"waited in vain for {what}")


def save(path, text):
    """Save a file as editors do: beside it, then renamed."""
    beside = path.with_name(f".{path.name}.swp")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


class Served:
    """A project under `mkdocs serve`."""

    def __init__(self, root, process, address, log):
        self.root, self.process, self.address, self.log = root, process, address, log

    def shows(self, path, text):
        """Wait until a page holds a text, and give the page."""
        return until(lambda: text in (page := get(self.address + path)) and page, f"{text!r} on {path}\n{self.said()}")

    def loses(self, path, text):
        """Wait until a page is there without a text, and give the page."""
        return until(lambda: (page := get(self.address + path)) and text not in page and page, f"{path} without {text!r}\n{self.said()}")

    def said(self):
        """What the server has printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def builds(self):
        """How often the engine has built."""
        return self.said().count("Building documentation")

    def settled(self):
        """How often it has built, once it has looked at its files several times and builds no more."""
        built, end = self.builds(), time.monotonic() + MINUTE
        while time.monotonic() < end:
            time.sleep(2 * DEAF_NET)
            before, built = built, self.builds()
            if before == built:
                return built
        pytest.fail(f"it goes on building\n{self.said()}")


@contextmanager
def serving(root, *options, engine="mkdocs", **variables):
    address = f"127.0.0.1:{free_port()}"
    log = root.parent / f"{root.name}.log"
    with log.open("wb") as stream:
        command = [sys.executable, "-m", engine, "serve", "--dev-addr", address, *options]
        # A shell in the background starts its commands with SIGINT ignored; a terminal does not.
        heeding = functools.partial(signal.signal, signal.SIGINT, signal.default_int_handler)
        process = subprocess.Popen(
            command,
            cwd=root,
            env={**environment(), **variables},
            stdout=stream,
            stderr=subprocess.STDOUT,
            preexec_fn=heeding,  # noqa: PLW1509 - nothing else runs in this process
        )
    served = Served(root, process, f"http://{address}/", log)
    try:
        until(lambda: get(served.address) or process.poll() is not None, "the server")
        assert process.poll() is None, served.said()
        yield served
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=MINUTE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert "rankbook cannot bring the book up to date" not in served.said(), served.said()


@pytest.fixture
def served(tmp_path):
    root = write_project(tmp_path / "project", theme=False)
    (root / "docs/guide.md").write_text("# How to read it\n\n<!-- rankbook:proof -->\n\nFirst words.\n")
    with serving(root) as found:
        yield found


def run_that(outcome, text=RING):
    """A recorded run of the tiny project's only test, as it stands in a source."""
    line = text.splitlines().index("    def test_token_comes_back(self):") + 1
    return Run(
        page=DOCS,
        node_id=f"{DOCS}::TestRing::test_token_comes_back",
        listing=hashlib.sha256(text.encode()).hexdigest(),
        source="suite/test_ring.py",
        line=1,
        kind="unittest",
        outcome=outcome,
        reason="r",
        machine="CPU",
        case={"name": "TestRing::test_token_comes_back", "line": line},
    )


def test_a_saved_source_shows_without_a_build(served):
    """A saved source, a new one and one that is gone show on their pages and in the index of their folder; the engine builds nothing."""
    ring = served.root / "suite/test_ring.py"
    assert "Ranks pass a token" in served.shows(PAGE, "Ranks pass a token")
    built = served.builds()
    save(ring, RING.replace("around a ring", "around a wide circle"))
    served.shows(PAGE, "around a wide circle")
    served.shows("book/suite/doc.html", "around a wide circle")
    (served.root / "suite/test_late.py").write_text('"""A late guest."""\n\n\ndef test_late():\n    """Comes last."""\n')
    served.shows("book/suite/test_late.py_docs.html", "Comes last.")
    served.shows("book/suite/doc.html", "A late guest.")
    (served.root / "suite/test_late.py").unlink()
    served.loses("book/suite/doc.html", "A late guest.")
    until(lambda: "Comes last." not in get(f"{served.address}book/suite/test_late.py_docs.html"), "the page of a source that is gone")
    assert served.builds() == built, served.said()
    assert "Traceback" not in served.said(), served.said()


def test_a_part_of_an_index_gets_another_name_without_a_build(tmp_path):
    """A page of a long index is called by the first name that it lists; the navigation lists the first page alone."""
    root = write_project(tmp_path / "project", theme=False)
    many = root / "suite/test_many.py"
    text = "".join(f"def test_{'abcdef'[number % 6]}{number:04}(): ...\n" for number in range(4000))
    many.write_text(text)
    with serving(root) as served:
        served.shows("book/suite-words-test-b0.html", "test_b0001")
        built = served.builds()
        save(many, text + "def test_b0000(): ...\n")
        assert "Words from A to Z: test_b0000" in served.shows("book/suite-words-test-b0.html", "test_b0000")
        save(many, text + "def broken(:\n")
        served.loses("book/suite-words-test-b0.html", "test_b0000")
        assert served.builds() == built, served.said()


def test_a_mistake_is_shown_and_what_was_right_stays(served):
    """A source with a mistake says so on its page; broken settings and templates are told under the last good page until put right."""
    ring, settings = served.root / "suite/test_ring.py", served.root / "pyproject.toml"
    served.shows(PAGE, "Ranks pass a token")
    save(ring, RING + "\ndef broken(:\n")
    served.shows(PAGE, "broken")
    assert re.search(r"line \d+|syntax", get(served.address + PAGE), re.IGNORECASE)
    save(ring, RING)
    served.loses(PAGE, "broken")
    good = settings.read_text()
    save(settings, good + "no-such-setting = 1\n")
    page = served.shows(PAGE, "rankbook-mistake")
    assert "no-such-setting" in page
    assert "Ranks pass a token" in page
    assert "unknown setting 'no-such-setting'" in served.said()
    save(settings, good)
    served.loses(PAGE, "rankbook-mistake")
    template = served.root / "templates/rankbook/file.md.jinja"
    template.parent.mkdir(parents=True)
    template.write_text("{% if %}")
    save(settings, good + "findings = []\n")  # the folder of templates is new
    page = served.shows(PAGE, "rankbook-mistake")
    assert "file.md.jinja" in page
    assert "Ranks pass a token" in page
    shutil.rmtree(template.parents[1])
    served.loses(PAGE, "rankbook-mistake")
    served.shows(PAGE, "Ranks pass a token")


def test_a_mistake_is_one_sentence_in_the_terminal(served):
    """Broken YAML and a folder of sources that is gone are told once, without what they looked like from within, also at the start."""
    config, gone = served.root / "mkdocs.yml", "the source 'suite' does not exist; name a file or a folder below the root"
    good = config.read_text()
    save(config, f"{good}nav: [a\nx: }}\n")
    what = "cannot read the settings of the site: expected ',' or ']', but got ':'; they must be valid YAML"
    served.shows(PAGE, "expected &#x27;,&#x27; or &#x27;]&#x27;")
    assert f"ERROR   -  {config}:{len(good.splitlines()) + 2}: {what}\n" in served.said()
    save(config, good)
    served.loses(PAGE, "rankbook-mistake")
    (served.root / "suite").rename(served.root / "elsewhere")
    served.shows(PAGE, "rankbook-mistake")
    save(config, f"{good}\n")  # the engine builds what people wrote without the sources
    until(lambda: served.said().count("Documentation built") == 3, "the third build")
    assert (served.said().count(gone), "Traceback" in served.said()) == (1, False), served.said()
    with serving(served.root) as other:
        other.shows(PAGE, "Ranks pass a token")
        assert (other.said().count(gone), "Traceback" in other.said()) == (1, False), other.said()
        (served.root / "elsewhere").rename(served.root / "suite")
        other.loses(PAGE, "rankbook-mistake")


def test_runs_of_tests_show_on_pages(served):
    """What is recorded while the server runs shows on the page of the test and on pages of people, the last state at the end."""
    served.shows(PAGE, "Ranks pass a token")
    built = served.builds()
    ledger = Ledger(served.root / Settings().ledger)
    ledger.record([run_that(Outcome.FAILED)])
    served.shows(PAGE, "rankbook-failed")
    for _ in range(20):
        ledger.record([run_that(Outcome.FAILED)])
    ledger.record([run_that(Outcome.PASSED)])
    served.shows(PAGE, "rankbook-passed")
    served.shows("guide.html", "Proof coverage")
    assert served.builds() == built


def test_a_file_without_a_page_makes_a_run_one_of_another_version(tmp_path):
    """A module that a test imports, a `conftest.py`, a file of settings and data change: badges say so without a build, and only then."""
    root = write_project(tmp_path / "project", theme=False)
    settings = root / "pyproject.toml"
    settings.write_text(f'{settings.read_text()}exclude = ["*.txt"]\n[tool.pytest.ini_options]\npythonpath = ["lib"]\n')
    module, conftest, told, data = root / "lib/pk.py", root / "conftest.py", root / "pytest.ini", root / "suite/words.txt"
    module.parent.mkdir()
    module.write_text("V = 1\n")
    data.write_text("words\n")
    test = (
        "import pathlib\nimport pk\n\n\ndef test_more():\n    assert pk.V and pathlib.Path(__file__).with_name('words.txt').read_text()\n"
    )
    (root / "suite/test_more.py").write_text(test)
    page, built = "book/suite/test_more.py_docs.html", [sys.executable, "-m", "rankbook.cli", "gen"]
    command = [sys.executable, "-m", "pytest", "-q", "--doctest-glob=*.md", "docs/book/suite/test_more.py_docs.md"]
    for words in (built, command):
        subprocess.run(words, cwd=root, env=environment(), check=True, capture_output=True, timeout=MINUTE)
    with serving(root) as served:
        assert "older version" not in served.shows(page, "rankbook-passed")
        builds = served.builds()
        for file, text, kept in (
            (module, "V = 2\n", "V = 1\n"),
            (conftest, "X = 1\n", None),
            (told, "[pytest]\npythonpath = lib\nxfail_strict = true\n", None),
            (data, "other words\n", "words\n"),
        ):
            save(file, text)
            assert file.name in served.shows(page, "older version") or file == told
            (file.unlink if kept is None else functools.partial(save, file, kept))()
            served.loses(page, "older version")
        reloads = served.said().count("Reloading browsers")
        save(module, "V = 1\n")
        time.sleep(8 * DEAF_NET)
        assert (served.builds(), served.said().count("Reloading browsers")) == (builds, reloads), served.said()


def test_runs_of_listings_show_before_them(served):
    """A page that people wrote shows how its listings ended as soon as they have, beside its table and the front page's, and once only."""
    guide = served.root / "docs/guide.md"
    save(guide, "# Guide\n\n## Print\n\n```python\nprint(1)\n```\n\n```text\nwords\n```\n\n<!-- rankbook:last-run -->\n")
    page = served.shows("guide.html", "print")
    assert "rankbook-listing" not in page
    built = served.settled()
    command = [sys.executable, "-m", "pytest", "-q", "--doctest-glob=*.md", "docs/guide.md"]
    for word in ("rankbook-passed", "last 2 runs: 2 passed"):
        subprocess.run(command, cwd=served.root, env=environment(), check=True, capture_output=True, timeout=MINUTE)
        page = served.shows("guide.html", word)
        assert page.count('id="rb-listing:print"') == 1
        assert 'href="#rb-listing:print"' in page
    assert served.builds() == built, served.said()
    save(guide, guide.read_text().replace("print(1)", "print(2)"))
    assert served.shows("guide.html", "older version").count("<section") == page.count("<section")


def test_a_page_that_is_asked_for_while_it_goes_is_no_mistake(served):
    """Git takes a source and its page away while a browser shows it: no page says that something is wrong, then or later."""
    source, late = served.root / "suite/test_late.py", "book/suite/test_late.py_docs.html"
    for number in range(3):
        save(source, f"def test_late_{number}(): ...\n")
        served.shows(late, f"test_late_{number}")
        (served.root / "docs/book/suite/test_late.py_docs.md").unlink()
        source.unlink()
        until(lambda: not get(served.address + late), "the page to go")
        assert "rankbook-mistake" not in get(served.address + PAGE)
    assert "cannot read the page" not in served.said(), served.said()


def test_a_page_with_a_mistake_that_goes_takes_the_mistake_along(served):
    """What is wrong with a page is wrong no longer when the page is gone."""
    source, page = served.root / "suite/test_late.py", served.root / "docs/book/suite/test_late.py_docs.md"
    late = "book/suite/test_late.py_docs.html"
    save(source, "def test_late(): ...\n")
    for _ in range(20):
        served.shows(late, "test_late")
        os.kill(served.process.pid, signal.SIGSTOP)
        page.unlink()
        page.mkdir()
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(get, served.address + late)
            time.sleep(0.3)  # it waits for the server, which may answer it before it looks at its files
            os.kill(served.process.pid, signal.SIGCONT)
            if "rankbook-mistake" in asked.result():
                break
        page.rmdir()
    else:
        pytest.fail(f"it has always looked before it answered\n{served.said()}")
    page.rmdir()
    source.unlink()
    served.loses(PAGE, "rankbook-mistake")


def test_what_people_write_is_built_by_the_engine(served):
    """A saved page of a guide shows; one that the engine cannot build leaves the last good site, and says what is wrong."""
    served.shows(PAGE, "Ranks pass a token")
    guide, settings = served.root / "docs/guide.md", served.root / "mkdocs.yml"
    save(guide, "# How to read it\n\nOther words.\n")
    served.shows("guide.html", "Other words.")
    served.shows(PAGE, "Ranks pass a token")
    good = settings.read_text()
    save(settings, good + "hooks: [no_such_hook.py]\n")
    page = served.shows("guide.html", "rankbook-mistake")
    assert "Other words." in page
    assert "Ranks pass a token" in get(served.address + PAGE)
    save(settings, good)
    served.loses("guide.html", "rankbook-mistake")
    (served.root / "hook.py").write_text("def on_page_markdown(markdown, **_):\n    if 'Bad' in markdown: raise OSError('a bad word')\n")
    save(settings, good + "hooks: [hook.py]\n")
    served.shows("guide.html", "Other words.")
    until(lambda: "hook.py" in settings.read_text() and served.said().rstrip().endswith("Reloading browsers"), "the build with a hook")
    save(guide, "# How to read it\n\nBad words.\n")
    page = served.shows("guide.html", "a bad word")
    assert "Other words." in page
    assert "Ranks pass a token" in get(served.address + PAGE)
    save(guide, "# How to read it\n\nGood words.\n")
    served.shows("guide.html", "Good words.")
    served.loses("guide.html", "rankbook-mistake")


def test_what_the_engine_says_of_a_mistake_is_shown(served):
    """A wrong setting of the site is told with its name, a page that cannot be built with its path; the terminal says it once."""
    settings, guide = served.root / "mkdocs.yml", served.root / "docs/guide.md"
    good, what = settings.read_text(), "Config value 'docs_dir': The path "
    save(settings, f"{good}docs_dir: nowhere\n")
    page = served.shows("guide.html", "rankbook-mistake")
    assert what in unescape(page)
    assert "First words." in page
    save(settings, f"{good}hooks: [hook.py]\n")
    (served.root / "hook.py").write_text("def on_page_markdown(markdown, **_):\n    if 'Bad' in markdown: raise OSError('a bad word')\n")
    save(guide, "# How to read it\n\nOther words.\n")
    served.shows("guide.html", "Other words.")
    served.loses("guide.html", "rankbook-mistake")
    save(guide, "# How to read it\n\nBad words.\n")
    mistake = unescape(served.shows("guide.html", "rankbook-mistake"))
    assert (mistake.count("'guide.md'"), mistake.count("a bad word")) == (1, 1), mistake
    assert served.said().count(what) == 1


def test_what_another_branch_lacks_is_watched_when_it_is_back(served):
    """A change of branch takes sources, pages and settings away, and another brings them back: what is saved then shows as before."""
    names, away = ("suite", "docs", "pyproject.toml", "mkdocs.yml"), served.root.parent / "away"
    away.mkdir()
    served.shows(PAGE, "Ranks pass a token")
    for name in names:
        (served.root / name).rename(away / name)
    served.shows(PAGE, "does not exist")
    built = served.settled()
    time.sleep(6 * DEAF_NET)  # the engine looks at its files meanwhile, and nothing has changed
    assert served.builds() <= built + 1, served.said()
    for name in names:
        (away / name).rename(served.root / name)
    served.loses(PAGE, "rankbook-mistake")
    save(served.root / "suite/test_ring.py", RING.replace("around a ring", "around a bend"))
    served.shows(PAGE, "around a bend")
    for words in ("Other words.", "Still others."):  # a build that was begun already may show the first
        save(served.root / "docs/guide.md", f"# How to read it\n\n{words}\n")
        served.shows("guide.html", words)


def test_what_new_settings_name_is_seen_at_once(served):
    """A folder that becomes a source or one of packages, and a file of owners, show when they change, long before the next look would."""
    root, settings = served.root, served.root / "pyproject.toml"
    package = root / "lib/parts/base.py"
    package.parent.mkdir(parents=True)
    package.write_text("class Base:\n    def test_base(self): ...\n")
    (root / "more").mkdir()
    save(root / "more/test_more.py", "def test_more_of_it(): ...\n")
    save(root / "suite/test_heir.py", "from parts.base import Base\n\n\nclass TestHeir(Base): ...\n")
    save(settings, settings.read_text().replace('["suite"]', '["suite", "more"]\npackage-path = ["lib"]'))
    served.shows("book/more/test_more.py_docs.html", "test_more_of_it")
    heir = "book/suite/test_heir.py_docs.html"
    served.shows(heir, "test_base")
    seconds = {}
    for number in range(3):
        for file, text, page, word in (
            (package, f"class Base:\n    def test_base_{number}(self): ...\n", heir, f"test_base_{number}"),
            (root / "more/test_more.py", f"def test_more_{number}(): ...\n", "book/more/test_more.py_docs.html", f"test_more_{number}"),
            (root / ".github/CODEOWNERS", f"* @team-{number}\n", heir, f"@team-{number}"),
        ):
            time.sleep(DEAF_NET)
            file.parent.mkdir(exist_ok=True)
            save(file, text)
            start = time.monotonic()
            served.shows(page, word)
            seconds.setdefault(file.name, []).append(time.monotonic() - start)
    assert all(min(each) < 2 * DEAF_NET for each in seconds.values()), seconds


def test_new_settings_build_anew(served):
    """Another title of the book is in the navigation, which only the engine can write."""
    settings = served.root / "pyproject.toml"
    save(settings, settings.read_text().replace("The tiny suite", "The renamed suite"))
    served.shows("guide.html", "The renamed suite")
    served.shows("book/index.html", "The renamed suite")


def test_settings_that_change_while_pages_are_made_are_not_lost(served):
    """What is saved while the server is at work on something else shows like anything else."""
    settings, text = served.root / "pyproject.toml", (served.root / "pyproject.toml").read_text()
    ring = served.root / "suite/test_ring.py"
    for number, pause in enumerate((0.1, 0.2, 0.3, 0.4)):
        for index in range(40):
            save(served.root / f"suite/test_more_{index}.py", f"def test_more_{number}():\n    assert {index} >= 0\n")
        save(ring, f"{RING}\n# {number}\n")
        time.sleep(pause)
        save(settings, text.replace("The tiny suite", f"The suite of time {number}"))
        served.shows("book/index.html", f"The suite of time {number}")


def test_what_a_front_page_counts_is_what_the_book_counts(served):
    """A run is one of another version as soon as the test has changed, on pages of people too."""
    save(served.root / "suite/test_more.py", "def test_more():\n    assert 1\n")
    served.shows("book/suite/test_more.py_docs.html", "test_more")
    command = [sys.executable, "-m", "pytest", "-q", "--doctest-glob=*.md", "docs/book/suite/test_more.py_docs.md"]
    subprocess.run(command, cwd=served.root, env=environment(), check=True, capture_output=True, timeout=MINUTE)
    counted = re.search(r"has run 1 of [\d,]+ tests?", served.shows("guide.html", "has run 1 of"))
    assert counted is not None
    save(served.root / "suite/test_more.py", "def test_more():\n    assert 2\n")
    served.shows("book/index.html", counted[0].replace("1 of", "0 of"))
    served.shows("guide.html", counted[0].replace("1 of", "0 of"))


@pytest.mark.parametrize("is_linked", [False, True])
def test_what_is_committed_of_the_sources_is_what_the_site_knows(tmp_path, is_linked):
    """Permalinks lead to lines of a commit only where the file is as it is there."""
    root = write_project(tmp_path / "project", theme=False)
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (
        ["init", "-q"],
        ["remote", "add", "origin", "https://github.com/people/ring"],
        ["add", "."],
        [*who, "commit", "-qm", "a"],
    ):
        subprocess.run(["git", *words], cwd=root, check=True)
    if is_linked:
        subprocess.run(["git", "worktree", "add", "-q", "../linked"], cwd=root, check=True)
        root = root.parent / "linked"
    with serving(root) as served:
        assert "changed" not in json.loads(served.shows("assets/rankbook.json", "commit"))
        save(root / "suite/test_ring.py", f"# one\n{RING}")
        served.shows("assets/rankbook.json", "test_ring.py")
        subprocess.run(["git", *who, "commit", "-qam", "b"], cwd=root, check=True)
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, check=True, capture_output=True, text=True).stdout.strip()
        assert "changed" not in json.loads(served.shows("assets/rankbook.json", commit))
        subprocess.run(["git", "reset", "-q", "--soft", "HEAD~"], cwd=root, check=True)
        assert commit not in served.shows("assets/rankbook.json", "test_ring.py")


def test_a_mistake_in_the_settings_is_told_once_and_stays(served):
    """It is on each page from the first reload on until it is mended."""
    settings, text = served.root / "pyproject.toml", (served.root / "pyproject.toml").read_text()
    save(settings, text.replace("[tool.rankbook]", '[tool.rankbook]\npack = "nosuch"'))
    served.shows(PAGE, "there is no template pack")
    end = time.monotonic() + 6 * DEAF_NET
    while time.monotonic() < end:
        assert "there is no template pack" in get(served.address + PAGE)
        time.sleep(0.1)
    assert served.said().count("there is no template pack") == 1, served.said()
    save(settings, text)
    served.loses(PAGE, "there is no template pack")


def test_without_live_reload_all_pages_are_there(tmp_path):
    """A server that reloads nothing is never asked to show a page: all are made at the start."""
    root = write_project(tmp_path / "project", theme=False)
    with serving(root, "--no-livereload") as served:
        assert "Ranks pass a token" in get(served.address + PAGE)
        assert "rankbook-open" not in get(served.address + PAGE)
        assert '"kinds"' in get(f"{served.address}assets/rankbook-search/index.json")


def test_directory_addresses_lead_to_pages(tmp_path):
    """A page that is the index of a folder of its own is made under both of its addresses."""
    root = write_project(tmp_path / "project", theme=False)
    settings = root / "mkdocs.yml"
    settings.write_text(settings.read_text().replace("use_directory_urls: false", "use_directory_urls: true"))
    with serving(root) as served:
        assert "Ranks pass a token" in get(f"{served.address}book/suite/test_ring.py_docs")
        assert "Ranks pass a token" in get(f"{served.address}book/suite/test_ring.py_docs/")


def test_another_process_generates_first(served):
    """What `rankbook gen` has written while the server did not look shows all the same."""
    served.shows(PAGE, "around a ring")
    os.kill(served.process.pid, signal.SIGSTOP)
    save(served.root / "suite/test_first.py", "def test_first():\n    pass\n")
    save(served.root / "suite/test_ring.py", RING.replace("around a ring", "around a bend"))
    subprocess.run([sys.executable, "-m", "rankbook.cli", "gen"], cwd=served.root, env=environment(), check=True, capture_output=True)
    os.kill(served.process.pid, signal.SIGCONT)
    served.shows(PAGE.replace("test_ring", "test_first"), "test_first")
    until(lambda: "test_first" in get(served.address + "book/suite/index.html"), "the new file in its folder's index")


def test_many_files_at_once(served):
    """A change of branch writes many sources within moments; all of them show, and those that it takes away are gone."""
    served.shows(PAGE, "Ranks pass a token")
    for number in range(40):
        (served.root / f"suite/many_{number}.py").write_text(f'"""Number {number} of many."""\n')
    (served.root / "suite/inner/hostile.py").rename(served.root / "suite/inner/renamed.py")
    for number in (0, 17, 39):
        served.shows(f"book/suite/many_{number}.py_docs.html", f"Number {number} of many.")
    served.shows("book/suite/inner/renamed.py_docs.html", "AVeryLongClassName")
    until(lambda: "AVeryLongClassName" not in get(f"{served.address}book/suite/inner/hostile.py_docs.html"), "the old name to go")


def test_the_end_of_the_server_leaves_no_half_of_its_work(tmp_path):
    """Ctrl-C while pages are written: they are written to the end, and nothing else lies among them."""
    root = write_project(tmp_path / "project", theme=False)
    pages = root / "docs/book/suite/many"
    with serving(root) as served:
        served.shows(PAGE, "Ranks pass a token")
        for number in range(300):
            source = root.parent / f"many/in_{number}/test_one.py"
            source.parent.mkdir(parents=True)
            source.write_text(f"def test_{number}(): ...\n")
        (root.parent / "many").rename(root / "suite/many")  # all at once
        until(lambda: next(pages.rglob("*.md"), None), "the first page")
    assert len([*pages.rglob("test_one.py_docs.md")]) == 300
    assert not [*root.rglob("*.tmp")]
    assert "Traceback" not in served.said(), served.said()


def test_the_end_of_the_server_while_it_begins_to_watch_folders(tmp_path):
    """Ctrl-C while the system is told of folders to watch, which takes a while where there are thousands: nothing is said of it."""
    root = write_project(tmp_path / "project", theme=False)
    begun = tmp_path / "begun"
    (tmp_path / "sitecustomize.py").write_text(
        "import pathlib, time\nfrom watchdog.observers import inotify_c\nquick = inotify_c.inotify_add_watch\n\n"
        "def slow(file, path, mask):\n    if b'templates' in path:\n"
        f"        pathlib.Path({str(begun)!r}).touch()\n        time.sleep(0.1)\n    return quick(file, path, mask)\n\n"
        "inotify_c.inotify_add_watch = slow\n"
    )
    for number in range(20):
        (tmp_path / f"templates/pack_{number}").mkdir(parents=True)
    with serving(root, PYTHONPATH=str(tmp_path)):
        (tmp_path / "templates").rename(root / "templates")
        until(begun.exists, "a folder that is new")


def test_properdocs_is_as_live(tmp_path):
    """The engine that MkDocs' authors carry on shows a saved source without a build, too."""
    pytest.importorskip("properdocs", reason="ProperDocs is not installed")
    pytest.importorskip("material", reason="ProperDocs brings no theme of its own")
    root = write_project(tmp_path / "project")
    with serving(root, "--config-file", "mkdocs.yml", engine="properdocs") as served:
        served.shows(PAGE, "Ranks pass a token")
        built = served.builds()
        save(root / "suite/test_ring.py", RING.replace("around a ring", "around a wide circle"))
        served.shows(PAGE, "around a wide circle")
        assert served.builds() == built, served.said()


@pytest.mark.browser
def test_an_open_page_follows_its_source(tmp_path, chromium):
    """In a browser the page of a saved source reloads by itself, keeps the reader's place, and what was opened on it is open."""
    pytest.importorskip("material", reason="the site needs the extra `site`")
    root = write_project(tmp_path / "project")
    long = RING + "".join(f"LINE_{number} = {number}\n" for number in range(300))
    (root / "docs/index.md").write_text("# Home\n\n<details><summary>More</summary>Words.</details>\n")
    (root / "suite/test_ring.py").write_text(long)
    with serving(root) as served:
        page = chromium.new_page(viewport={"width": 1000, "height": 600})
        page.set_default_timeout(MINUTE * 1000)
        page.goto(served.address + PAGE)
        other = chromium.new_page()
        other.goto(served.address)
        other.get_by_text("More").click()
        other.evaluate("window.isOld = true")
        page.evaluate("scrollTo(0, 2500)")
        page.wait_for_function("scrollY === 2500")
        saved = long.replace("LINE_150 = 150", "LINE_150 = 'saved'")
        save(root / "suite/test_ring.py", saved)
        page.wait_for_function("document.body && document.body.textContent.includes(\"LINE_150 = 'saved'\")")
        page.wait_for_function("Math.abs(scrollY - 2500) < 5")
        other.wait_for_function("!window.isOld && document.querySelector('details')?.open", timeout=MINUTE * 1000)
        Ledger(root / Settings().ledger).record([run_that(Outcome.FAILED, saved)])
        page.locator(".rankbook-failed").first.wait_for()
        settings = (root / "pyproject.toml").read_text()
        save(root / "pyproject.toml", "[tool.rankbook\n")
        page.get_by_role("alert").filter(has_text="pyproject.toml").wait_for()
        save(root / "pyproject.toml", settings)
        page.get_by_role("alert").wait_for(state="detached")
        source = root / "suite/test_ring.py"
        source.rename(root / "away.txt")
        page.wait_for_function("document.body && !document.body.textContent.includes('LINE_150')")
        (root / "away.txt").rename(source)
        page.wait_for_function("document.body && document.body.textContent.includes('LINE_150')")
        page.close()
        other.close()


def answer(body, status="200 OK", kind="text/html"):
    """An application that always answers the same."""

    def app(environ, start_response):
        start_response(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
        return [body]

    return app


def asked(app, path="/x.html"):
    """What an application answers, with its headers."""
    told = []
    body = b"".join(app({"PATH_INFO": path}, lambda *said: told.append(said)))
    return told[0][0], dict(told[0][1]), body


def test_a_mistake_is_text_on_the_page():
    """What is wrong is shown as text whatever it holds, the length is that of the page, and no other file is touched."""
    live = Live(logging.getLogger("test"))
    live.mistakes["gen"] = "<script>alert(1)</script> & more"
    status, headers, body = asked(Window(answer(b"<html><body>Words</body></html>"), live, "/"))
    assert status == "200 OK"
    assert int(headers["Content-Length"]) == len(body)
    assert b"&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in body
    assert body.startswith(b"<html><body>Words<div")
    assert body.endswith(b"</body></html>")
    assert asked(Window(answer(b"<body>", kind="application/json"), live, "/"))[2] == b"<body>"
    assert asked(Window(answer(b"no end"), live, "/"))[2].startswith(b"no end<div")
