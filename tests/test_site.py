"""The site: built by the real MkDocs from a tiny project with this repository's own settings."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request

import pytest

from ports import free_port
from tiny_site import REPOSITORY, RING, Html, broken_links, build, environment, mkdocs, write_project

pytest.importorskip("mkdocs", reason="the site needs the extra `site`")
pytest.importorskip("material", reason="the site needs the extra `site`")

from rankbook.config import NO_KEYS, Settings
from rankbook.front_matter import OVERVIEWS, Stamp
from rankbook.ledger import Ledger
from rankbook.listing import Outcome, Run
from rankbook.pages.contents import TOPICS
from rankbook.site import lean
from rankbook.site.navigation import expanded, listed, without
from rankbook.site.outcomes import NOT_RUN

LAST_RUN_ROWS = re.compile(r'<tr id="rb-run-\d+">.*?(?=<tr|</table>)', re.DOTALL)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = write_project(tmp_path_factory.mktemp("tiny"))
    build(root)
    return root


@pytest.fixture
def site(project):
    return project / "site"


def page(site, name):
    return (site / "book" / f"{name}.html").read_text(encoding="utf-8")


def test_strict_build_generates_the_pages_and_is_clean(project):
    """A strict build writes the generated pages first and says nothing."""
    assert (project / "docs/book/suite/test_ring.py_docs.md").is_file()
    done = mkdocs(project, "build", "--strict", anew=True)
    assert done.returncode == 0
    assert [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("INFO")] == []


def test_every_internal_link_and_anchor_exists(site):
    """Each link of the built site leads to a file, and each fragment to an element of it."""
    count, broken = broken_links(site)
    assert broken == []
    assert count > 100


def test_hidden_sources_have_pages(site):
    """The page of a source in a folder that starts with a dot is part of the site, though MkDocs leaves out such pages of people."""
    assert "size" in page(site, "suite/.settings/ring.toml_docs")


def test_keywords_link_to_their_lines(site):
    """A keyword page links each definition to the line of the listing that holds it."""
    links = [link for link in Html(page(site, "suite/test_ring.py_kw")).links if "test_ring.py_docs.html#L" in link]
    lines = {int(link.rpartition("#L")[2]) for link in links}
    wanted = {number for number, line in enumerate(RING.splitlines(), 1) if re.match(r"\s*(def|class) |TOKEN =", line)}
    assert wanted <= lines


def test_the_engines_search_holds_what_people_wrote(site):
    """The index of the engine's own search holds the hand-written page and none of the generated ones."""
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    assert {entry["location"].partition("#")[0] for entry in index["docs"]} == {"index.html"}


@pytest.fixture(scope="module")
def unstamped(tmp_path_factory):
    """The site as the engine builds all of it."""
    root = write_project(tmp_path_factory.mktemp("unstamped"))
    settings = (root / "mkdocs.yml").read_text()
    (root / "mkdocs.yml").write_text(settings.replace("- rankbook\n", "- rankbook:\n    stamp: false\n"))
    return build(root)


def test_without_stamps_the_engine_builds_all_pages(unstamped, site):
    """With `stamp: false` the same files are there, every link leads somewhere, and the search knows names but not the listings."""
    names = [{path.relative_to(each) for path in each.rglob("*.html")} for each in (site, unstamped)]
    assert names[0] == names[1]
    assert broken_links(unstamped)[1] == []
    index = (unstamped / "search/search_index.json").read_text(encoding="utf-8")
    assert "test_token_comes_back" in index
    assert "neighbour" in index
    assert "self.assertEqual" not in index


def test_navigation_of_the_engine_has_titles_by_folder(project, unstamped):
    """The navigation lists the first pages about the whole suite, then folders and files under their titles, and no other page."""
    text = (unstamped / "book/suite/index.html").read_text(encoding="utf-8")
    sidebar = text[text.index("md-sidebar--primary") : text.index("md-sidebar--secondary")]
    links = Html(sidebar).links
    assert not [link for link in links if "_kw" in link or link.endswith(("doc.html", "sub.html"))]
    assert [link for link in links if link.endswith("test_ring.py_docs.html")]
    labels = re.findall(r'<span class="md-ellipsis">\s*(.*?)\s*</span>', sidebar, re.DOTALL)
    overviews = [topic.title for kind, topic in TOPICS.items() if (project / f"docs/book/{kind}.md").is_file()]
    assert {"Hardware", "Words from A to Z", "Owners"} <= set(overviews)
    assert labels == ["A tiny project", "The tiny suite", *overviews, "suite", "Ring", ".settings", "inner"]


def test_page_outside_the_navigation_shows_that_of_its_folder(unstamped):
    """A keyword page has its folder's part of the navigation beside it."""
    text = page(unstamped, "suite/test_ring.py_kw")
    sidebar = text[text.index("md-sidebar--primary") : text.index("md-sidebar--secondary")]
    assert [link for link in Html(sidebar).links if link.endswith("test_ring.py_docs.html")]


def test_navigation_of_every_stamped_page_is_that_of_the_book(project, site):
    """Beside each page stand the book's index and the pages about the whole suite, and no page of a folder or file."""
    overviews = [f"{kind}.html" for kind in TOPICS if (project / f"docs/book/{kind}.md").is_file()]
    for name in ("index", "suite/test_ring.py_kw", "suite/inner/index"):
        assert re.findall(r"<script>rb\(\d+\)</script><div class=md-content ", page(site, name))
    script = (site / lean.FILE).read_text(encoding="utf-8")
    parts = json.loads(script[script.index("[") : script.index("];") + 1])
    (sidebar,) = [part for part in parts if "md-sidebar--primary" in part]
    links = Html(sidebar).links
    assert [link for link in links if "suite-" in link] == [f"\ufdd1base\ufdd1/book/{kind}" for kind in overviews]
    assert not [link for link in links if "/suite/" in link]


def test_large_book_lists_folders_only(tmp_path):
    """Above `nav_files` file pages the navigation holds the folders' pages only, and the build is still clean."""
    root = write_project(tmp_path)
    settings = (root / "mkdocs.yml").read_text()
    (root / "mkdocs.yml").write_text(settings.replace("- rankbook\n", "- rankbook:\n    stamp: false\n    nav_files: 2\n"))
    text = (build(root) / "book/suite/index.html").read_text(encoding="utf-8")
    sidebar = text[text.index("md-sidebar--primary") : text.index("md-sidebar--secondary")]
    assert "_docs.html" not in sidebar
    assert "inner/index.html" in sidebar


def test_palette_is_light_and_dark_and_nothing_is_loaded_from_elsewhere(site):
    """A page offers both schemes, following the system first, and refers to no other server."""
    parsed = Html((site / "index.html").read_text(encoding="utf-8"))
    schemes = [values.get("data-md-color-scheme") for tag, values in parsed.tags if tag == "input" and "data-md-color-media" in values]
    assert {"default", "slate"} <= set(schemes)
    loaded = [values.get("src") or values.get("href") or "" for tag, values in parsed.tags if tag in ("script", "link", "img")]
    assert not [url for url in loaded if url.startswith(("http:", "https:", "//")) and "127.0.0.1" not in url]


def test_text_of_sources_stays_text(site):
    """Mark-up in a docstring becomes neither an element nor a last-run table, and the listing shows it as it stands."""
    text = page(site, "suite/inner/hostile.py_docs")
    assert '<script>alert("from' not in text
    assert "&lt;script&gt;" in text
    assert text.count(NOT_RUN) == 1
    assert "&lt;!-- rankbook:last-run --&gt;" in text


def run(**values):
    facts = {
        "page": "docs/book/suite/test_ring.py_docs.md",
        "node_id": "docs/book/suite/test_ring.py_docs.md::TestRing::test_token_comes_back",
        "listing": hashlib.sha256(RING.encode()).hexdigest(),
        "source": "suite/test_ring.py",
        "line": 60,
        "kind": "test",
        "outcome": Outcome.PASSED,
        "ranks": 2,
        "when": "2026-11-21T09:30:00+00:00",
        "machine": "CPU, 2 cores",
        "engine": "local",
    }
    return Run(**{**facts, **values})


@pytest.fixture
def recorded(tmp_path):
    """A function that builds the tiny project with runs in its ledger and gives the page of one source."""
    root = write_project(tmp_path)

    def built(*runs):
        Ledger(root / Settings().ledger).record(runs)
        return page(build(root), "suite/test_ring.py_docs")

    return built


def test_last_runs_stand_on_the_page(recorded):
    """The page of a source shows each recorded test with its outcome, reason and ranks, and once what all of them share."""
    text = recorded(
        run(), run(node_id="docs/book/suite/test_ring.py_docs.md::other", outcome=Outcome.SKIPPED, reason="needs 2 GPUs", line=61)
    )
    first, second = LAST_RUN_ROWS.findall(text)
    assert [fact for fact in ("TestRing::<wbr>test_token_comes_back", ">passed<", "<td>2") if fact not in first] == []
    assert [fact for fact in ("other", "rankbook-skipped", "needs 2 GPUs") if fact not in second] == []
    assert "1 passed, 1 skipped. Hardware: CPU, 2 cores. Engine: local." in text
    assert '<time datetime="2026-11-21T09:30:00+00:00">2026-11-21 09:30 UTC</time>' in text


def test_runs_that_differ_show_where_and_when_each_ran(recorded):
    """What not all runs of a page share stands in the row of each."""
    first, second = LAST_RUN_ROWS.findall(recorded(run(), run(node_id="x.md::other", line=61, machine="2 × H200", engine="fresh")))
    assert "<td>CPU, 2 cores<td>local" in first
    assert "<td>2 × H200<td>fresh" in second


def test_runs_of_an_older_version_say_so(recorded):
    """A run of a listing that has changed since is told apart from one of the listing on the page."""
    (row,) = LAST_RUN_ROWS.findall(recorded(run(listing="0" * 64)))
    assert "older version of this listing" in row
    assert "rankbook-passed" not in row


def test_text_of_the_ledger_is_escaped(recorded):
    """A reason with mark-up is shown as text."""
    (row,) = LAST_RUN_ROWS.findall(recorded(run(outcome=Outcome.FAILED, reason="<b>1 < 2</b> | `x`")))
    assert "&lt;b&gt;1 &lt; 2&lt;/b&gt; | `x`" in row


def test_page_without_runs_says_so(site):
    """A page of whose listings no run is recorded has the sentence for it in place of the table."""
    assert "has been run yet" in page(site, "suite/test_ring.py_docs")


def test_the_note_for_readers_elsewhere_is_not_on_the_site(recorded):
    """The sentence that stands for the outcomes on a forge gives way to the outcomes."""
    assert "The site shows here" not in recorded(run())


def test_what_runs_have_said_is_not_searched_as_prose(tmp_path):
    """The search of the engine holds the words of a page made by hand, and none of the runs that are shown on it."""
    root = write_project(tmp_path)
    (root / "docs/index.md").write_text("# A tiny project\n\nIts words.\n\n<!-- rankbook:proof -->\n\nAnd these.\n")
    Ledger(root / Settings().ledger).record([run(outcome=Outcome.FAILED, reason="rank 1 died")])
    index = json.loads((build(root) / "search/search_index.json").read_text())
    (text,) = (page["text"] for page in index["docs"] if page["location"] == "index.html")
    assert "rank 1 died" in (root / "site/index.html").read_text()
    assert (" ".join(re.sub("<[^>]*>", " ", text).split())) == "Its words. And these."


def test_a_page_made_by_hand_keeps_its_words_beside_the_marker(tmp_path):
    """On a page of a person the marker alone is replaced, whatever stands before it."""
    root = write_project(tmp_path)
    (root / "docs/index.md").write_text("# Mine\n\nMy own words.\n\n<!-- rankbook:last-run -->\n")
    text = (build(root) / "index.html").read_text(encoding="utf-8")
    assert "<p>My own words.</p>" in text
    assert NOT_RUN in text


def write_small(root, paths, addresses="use_directory_urls: false", out="docs"):
    """Write a project of a few empty-ish sources whose pages stand at the top of the site."""
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x = 1\n")
    sources = sorted({path.partition("/")[0] for path in paths})
    (root / "pyproject.toml").write_text(f'[tool.rankbook]\nsources = {sources}\nout = "{out}"\n')
    (root / "docs").mkdir()
    settings = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    settings = settings[: settings.index("\nnav:")].replace("use_directory_urls: false", addresses)
    (root / "mkdocs.yml").write_text(settings)
    return root


def test_sources_that_mkdocs_would_leave_out_have_pages(tmp_path):
    """Names with a dot and a folder `templates` at the top of the site are part of it, though MkDocs excludes both by default."""
    paths = ["templates/page.py", ".ci/run.py", "tests/.hidden.py"]
    site = build(write_small(tmp_path, paths))
    assert [path for path in paths if not (site / f"{path}_docs.html").is_file()] == []
    assert broken_links(site)[1] == []


FOLDERS_LIKE_PAGES = ["t/doc/x.py", "t/sub/x.py", "t/x.py_docs/y.py", "t/x.py"]


def test_folders_called_like_pages_do_not_collide(tmp_path):
    """A folder `doc` has its page beside the page `doc.md` of the folder above: every page has a file of its own."""
    root = write_small(tmp_path, FOLDERS_LIKE_PAGES)
    site = build(root)
    pages = sorted(path.relative_to(root / "docs").with_suffix(".html") for path in (root / "docs").rglob("*.md"))
    assert sorted(path.relative_to(site) for path in site.rglob("*.html") if path.name != "404.html") == pages
    assert broken_links(site)[1] == []


@pytest.mark.parametrize(
    "folder",
    ["t/index.md", "t/doc.html", "t/sub.html", "t/index.html", "t/imports.svg", "t/x.py_docs.md", "t/x.py_kw.html", "suite-words.html"],
)
def test_a_folder_called_like_a_page_costs_what_is_in_it(tmp_path, folder):
    """A source folder with the name of a page or of its place in the site is left out with a warning, and all else has its pages."""
    done = mkdocs(write_small(tmp_path, ["t/x.py", f"{folder}/deep/y.py"]), "build")
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert f"{folder} is left out: this folder of sources is called like a page" in said
    assert (tmp_path / "site/t/x.py_docs.html").is_file()
    assert list((tmp_path / "docs").rglob("y.py*")) == []


def test_pages_with_one_address_are_told_of(tmp_path):
    """With directory addresses pages that would overwrite each other are named, with the setting that helps, and a strict build ends."""
    done = mkdocs(write_small(tmp_path, FOLDERS_LIKE_PAGES, "use_directory_urls: true"), "build", "--strict")
    said = done.stdout + done.stderr
    assert done.returncode == 1
    assert "t/doc.md and t/doc/index.md have the same address; set `use_directory_urls: false`" in said
    assert said.count("have the same address") == 3


def test_wrong_settings_end_a_build_with_one_sentence(tmp_path):
    """An unknown setting ends `mkdocs build` with the file and the key, without a traceback."""
    root = write_project(tmp_path)
    (root / "pyproject.toml").write_text('[tool.rankbook]\nsource = ["suite"]\n')
    done = mkdocs(root, "build")
    assert done.returncode == 1
    assert "unknown setting 'source'" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_folder_in_nav_takes_a_title_and_vanishes_without_pages():
    """A folder in `nav` stands for its pages under its own title or a given one, at any depth; one of ours without pages is left out."""
    shown = {path: Stamp(kind, title, "") for path, kind, title in (("s/index.md", "index", "Suite"), ("s/a/x_docs.md", "file", "x"))}
    pages = ["s/index.md", {"a": ["s/a/x_docs.md"]}]
    assert expanded(["index.md", "s/", "s/none/"], shown, "s/") == ["index.md", {"Suite": pages}]
    nested = [{"Part": ["index.md", {"Tests": "s/"}, {"None": "s/none/"}]}, {"Forge": "https://example.org/"}]
    assert expanded(nested, shown, "s/") == [{"Part": ["index.md", {"Tests": pages}]}, {"Forge": "https://example.org/"}]


def test_folders_of_others_in_nav_stay_as_they_are():
    """An entry that ends in a slash and names no generated page is a link, or what another plugin reads."""
    nav = ["guide/", "/", "", {"Forum": "/forum/"}, {"Chat": "//chat.example.org/"}, {"Blog": "../blog/"}, {"More": [{"Guide": "guide/"}]}]
    shown = {"s/index.md": Stamp("index", "Suite", "")}
    assert expanded(nav, shown, "s/") == nav
    assert expanded(nav, {}, "") == nav


def test_pages_are_left_out_of_nav_at_any_depth():
    """What another plugin has taken away is not named; what stands around it stays."""
    nav = ["a.md", "b.md", {"B": "b.md"}, {"C": ["b.md", {"D": "c.md"}]}, {"E": None}]
    assert without(nav, {"b.md"}) == ["a.md", {"C": [{"D": "c.md"}]}]


def stamps(*paths):
    """Stamps of the pages of a tree of sources, under `s/`."""
    folders = {"", *(folder for path in paths for folder in parents(path))}
    files = {f"s/{path}_docs.md": Stamp("file", path.rpartition("/")[2], path) for path in paths}
    return files | {f"s/{folder}/index.md".replace("//", "/"): Stamp("index", folder or "Suite", folder) for folder in folders}


def parents(path):
    """Folders of a path, without the root."""
    return [path[:index] for index, character in enumerate(path) if character == "/"]


def test_navigation_passes_over_folders_that_hold_one_folder():
    """A folder with nothing but one folder in it is no step of the navigation; the next one has both names, and deeper ones their own."""
    shown = listed(stamps("t/dist/a.py", "t/dist/fsdp/b.py", "t/dist/fsdp/c.py"), 500)
    fsdp = {"fsdp": ["s/t/dist/fsdp/index.md", "s/t/dist/fsdp/b.py_docs.md", "s/t/dist/fsdp/c.py_docs.md"]}
    assert expanded(["s/"], shown) == [{"Suite": ["s/index.md", {"t/dist": ["s/t/dist/index.md", "s/t/dist/a.py_docs.md", fsdp]}]}]


def test_navigation_names_the_pages_about_the_whole_suite():
    """Below the book's own page stand those about the whole suite, in the order of their topics; their further parts are not listed."""
    whole = {f"s/{name}.md": Stamp(name, name, "") for name in ("suite-words", "suite-words-a", "suite-hardware")}
    everything = {**stamps("t/a.py", "t/b.py"), **whole}
    first = ["s/index.md", "s/suite-hardware.md", "s/suite-words.md"]
    assert expanded(["s/"], listed(everything, 500, OVERVIEWS)) == [
        {"Suite": [*first, {"t": ["s/t/index.md", "s/t/a.py_docs.md", "s/t/b.py_docs.md"]}]},
    ]
    assert expanded(["s/"], listed(everything, 1, OVERVIEWS)) == [{"Suite": [*first, {"t": ["s/t/index.md"]}]}]


def test_navigation_of_a_large_book_is_of_folders():
    """Above the limit folders that hold files stay in the navigation, though their files are not listed."""
    shown = listed(stamps("t/dist/a.py", "t/dist/fsdp/b.py"), 1)
    assert expanded(["s/"], shown) == [
        {"Suite": ["s/index.md", {"t/dist": ["s/t/dist/index.md", {"fsdp": ["s/t/dist/fsdp/index.md"]}]}]},
    ]


class Served:
    """A running `mkdocs serve`, polled through its own address."""

    def __init__(self, root):
        self.address = f"127.0.0.1:{free_port()}"
        self.log = root / "serve.log"
        self.stream = self.log.open("w")
        command = [sys.executable, "-m", "mkdocs", "serve", "--dev-addr", self.address]
        self.process = subprocess.Popen(command, cwd=root, env=environment(), stdout=self.stream, stderr=subprocess.STDOUT)

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://{self.address}/{path}", timeout=10) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            error.close()
            return ""
        except OSError:
            return ""

    def wait_for(self, path, text, tries=400):
        for _ in range(tries):
            if text in self.get(path):
                return
            time.sleep(0.25)
        pytest.fail(f"no {text!r} on {path}; the server wrote:\n{self.log.read_text()}")

    def builds(self):
        return self.log.read_text().count("Building documentation")

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=20)
        self.stream.close()


def test_serving_follows_the_sources(tmp_path):
    """While `mkdocs serve` runs, a saved source changes its page, a broken setting is survived, and nothing is rebuilt without a change."""
    root = write_project(tmp_path, theme=False)
    served = Served(root)
    try:
        ring = "book/suite/test_ring.py_docs.html"
        served.wait_for(ring, "neighbour")
        (root / "suite/test_ring.py").write_text(RING.replace("neighbour", "successor"))
        served.wait_for(ring, "successor")
        settings = (root / "pyproject.toml").read_text()
        (root / "pyproject.toml").write_text("[tool.rankbook]\nsource = 1\n")
        for _ in range(400):
            if "unknown setting 'source'" in served.log.read_text():
                break
            time.sleep(0.25)
        assert "unknown setting 'source'" in served.log.read_text()
        (root / "pyproject.toml").write_text(settings)
        (root / "suite/test_ring.py").write_text(RING.replace("neighbour", "follower"))
        served.wait_for(ring, "follower")
        time.sleep(2.5)
        settled = served.builds()
        time.sleep(2.5)
        assert served.builds() == settled, served.log.read_text()
    finally:
        served.close()


SETTINGS = (REPOSITORY / "docs/guide/settings.md").read_text(encoding="utf-8")


def table(heading):
    """Give the rows of the first table under a heading of the reference, as lists of cells."""
    section = SETTINGS.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)[0].splitlines()]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def test_reference_of_settings_is_complete():
    """The reference lists exactly the fields of `Settings`, in their order, with their defaults and their own words."""
    documented = {key.strip("`"): tomllib.loads(f"x = {default.strip('`')}")["x"] for key, default, _ in table("Settings")}
    actual = {name.replace("_", "-"): getattr(Settings(), name) for name in Settings.__struct_fields__ if name not in NO_KEYS}
    assert documented == {key: list(value) if isinstance(value, tuple) else value for key, value in actual.items()}
    assert list(documented) == list(actual)


def test_reference_of_gen_is_complete():
    """The reference lists exactly the arguments of `rankbook gen`."""
    command = [sys.executable, "-c", "from rankbook.cli import main; main()", "gen", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    documented = {flag for row in table("`rankbook gen`") for flag in re.findall(r"--[a-z-]+", row[0])}
    assert documented == set(re.findall(r"--[a-z-]+", shown)) - {"--help"}


def test_reference_of_pytest_options_is_complete():
    """The reference lists exactly the options that the pytest plugin adds, and `--doctest-glob`."""
    shown = subprocess.run([sys.executable, "-m", "pytest", "--help"], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    group = re.search(r"^rankbook.*?:\n((?:  .*\n)+)", shown, re.MULTILINE)[1]
    documented = {flag for row in table("pytest") for flag in re.findall(r"--[a-z-]+", row[0])}
    assert documented == set(re.findall(r"^  (--[a-z-]+)", group, re.MULTILINE)) | {"--doctest-glob"}


def test_reference_of_fence_options_is_complete():
    """The reference lists every option of a fence that rankbook itself gives a meaning."""
    from rankbook.listings import OPTIONS

    documented = {row[0].strip("`").lstrip(".") for row in table("Fences")}
    styling = {"id", "title", "title_mode", "linenums", "hl_lines"}
    assert documented == ({option.name for option in OPTIONS} | {"env.NAME"}) - styling
