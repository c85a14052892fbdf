"""The generated pages in sites that other plugins, hooks, overrides and settings have a say in, before rankbook and after it."""

import json
import re
import textwrap
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from rankbook.cli import main
from rankbook.pages.inventory import FILE as INVENTORY
from test_inventory_file import LINE
from tiny_site import SOURCES, Html, broken_links, build, mkdocs

PAGE = "book/suite/test_ring.py_docs/index.html"
MARKS = re.compile("Rankbook (?:first|inner|last) part", re.IGNORECASE)
ORDERS = pytest.mark.parametrize("is_first", [True, False], ids=["before", "after"])


def project(root: Path, *, plugins=(), ours=("rankbook",), is_first=True, hook="", at=".", **settings) -> Path:
    """Write a project whose site has other plugins, and generate its pages; give the folder of its `mkdocs.yml`.

    Args:
        root: of the project.
        plugins: others, as `mkdocs.yml` names them.
        ours: rankbook, as it is named there.
        is_first: whether rankbook comes before them.
        hook: text of a file of hooks.
        at: folder of `mkdocs.yml`, below the root.
        settings: others of `mkdocs.yml`.
    """
    folder = root / at
    for path, text in SOURCES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    (root / "pyproject.toml").write_text(f'[tool.rankbook]\nsources = ["suite"]\nout = "{(Path(at) / "docs/book").as_posix()}"\njobs = 1\n')
    (folder / "docs/guide").mkdir(parents=True)
    (folder / "docs/index.md").write_text("# Home\n\nIts [suite](book/index.md) and its [guide](guide/one.md).\n")
    (folder / "docs/guide/one.md").write_text("# One\n\n## Part\n\nSome text.\n")
    (folder / "docs/guide/two.md").write_text("# Two\n\nMore text.\n")
    if hook:
        (folder / "hook.py").write_text(textwrap.dedent(hook))
        settings["hooks"] = ["hook.py"]
    written = {
        "site_name": "Tiny",
        "site_url": "https://example.org/tiny/",
        "theme": {"name": "material", "font": False},
        "markdown_extensions": ["attr_list", "tables", "pymdownx.superfences", {"toc": {"permalink": True}}],
        "plugins": [*ours, *plugins] if is_first else [*plugins, *ours],
        "nav": ["index.md", {"Guide": ["guide/one.md", "guide/two.md"]}, "book/"],
        **settings,
    }
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(written, sort_keys=False))
    assert main(["gen", "--root", str(root)]) == 0
    return folder


def pages(site: Path) -> dict[str, str]:
    """Give all HTML of a site."""
    return {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}


def check(site: Path) -> dict[str, str]:
    """Make sure that the generated pages are whole: what they load and link to is there, and nothing is left of the shell's own marks."""
    found = pages(site)
    assert broken_links(site)[1] == []
    assert [path for path, text in found.items() if MARKS.search(text) or "rankbook-first-part" in text.lower()] == []
    page = found[PAGE]
    assert "id=L1" in page
    assert "original-source" in {link.partition("#")[2] for link in Html(page).links if link.startswith("#")}
    assert "stylesheets/main." in page
    return found


@ORDERS
def test_minified_pages(tmp_path, is_first):
    """What takes quotes and comments out of pages, out of the one that the others take their shell from too, leaves pages whole."""
    minify = {"minify": {"minify_html": True, "htmlmin_opts": {"remove_comments": True}}}
    found = check(build(project(tmp_path, plugins=["search", minify], is_first=is_first)))
    (canonical,) = re.findall(r"<link [^>]*canonical[^>]*>", found[PAGE])
    assert "https://example.org/tiny/book/suite/test_ring.py_docs/" in canonical
    assert not re.search(r"<link [^>]*rel=.?(?:next|prev)", found[PAGE])


@ORDERS
def test_pages_that_another_plugin_makes(tmp_path, is_first):
    """A page that lies nowhere on the disk is the other plugin's, and generated pages may link to it."""
    (tmp_path / "make.py").write_text(
        "import mkdocs_gen_files\n\nwith mkdocs_gen_files.open('made.md', 'w') as made:\n    made.write('# Made')\n"
    )
    root = project(tmp_path, plugins=[{"gen-files": {"scripts": ["make.py"]}}], is_first=is_first)
    assert "Made" in check(build(root))["made/index.html"]


@ORDERS
def test_navigation_that_another_plugin_writes(tmp_path, is_first):
    """A folder of hand-written pages in `nav` is another plugin's to read, and the book's section may be its own first page."""
    nav = [{"Home": "index.md"}, {"All of the guide": "guide/"}, {"Forum": "/forum/"}, "book/"]
    root = project(tmp_path, plugins=["literate-nav", "section-index"], is_first=is_first, nav=nav)
    (root / "docs/guide/SUMMARY.md").write_text("- [First](one.md)\n- [Second](two.md)\n")
    done = mkdocs(root, "build")
    assert done.returncode == 0, done.stdout + done.stderr
    home = (root / "site/index.html").read_text(encoding="utf-8")
    assert [text for text in ("All of the guide", "First", "Second", "Forum") if text not in home] == []
    assert re.search(r'href="/forum/?"', home)
    for path, text in pages(root / "site").items():
        assert not MARKS.search(text), path


@ORDERS
def test_a_redirect_to_a_generated_page(tmp_path, is_first):
    """A redirect may lead to a page that the engine does not build."""
    redirects = {"redirects": {"redirect_maps": {"old.md": "book/suite/test_ring.py_docs.md"}}}
    site = build(project(tmp_path, plugins=[redirects], is_first=is_first))
    assert "book/suite/test_ring.py_docs/" in (site / "old/index.html").read_text(encoding="utf-8")
    check(site)


@ORDERS
def test_a_site_in_two_languages(tmp_path, is_first):
    """The engine builds generated pages by itself where each language has its own."""
    i18n = {"i18n": {"languages": [{"locale": "en", "default": True, "name": "English"}, {"locale": "de", "name": "Deutsch"}]}}
    root = project(tmp_path, plugins=[i18n], is_first=is_first)
    done = mkdocs(root, "build")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The plugin i18n builds the site once for each language: MkDocs builds the generated pages" in done.stdout + done.stderr
    found = pages(root / "site")
    assert {PAGE, "de/index.html", f"de/{PAGE}"} <= found.keys()
    assert '<html lang="de"' in found[f"de/{PAGE}"]
    assert re.search(r'<div lang="en" dir="ltr">\s*<h1 id="ring"', found[f"de/{PAGE}"])
    assert not any(MARKS.search(text) for text in found.values())
    assert (root / "site/assets/rankbook.css").is_file()


@ORDERS
def test_what_is_taken_from_elsewhere_is_taken_for_generated_pages_too(tmp_path, is_first):
    """Material's privacy plugin keeps a copy of what pages load from other sites: no generated page asks those."""
    given = tmp_path / "given"
    given.mkdir()
    (given / "x.js").write_text("void 0;\n")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(given)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_port}/x.js"
        site = build(
            project(
                tmp_path / "project",
                plugins=[{"privacy": {"assets_exclude": ["unpkg.com/*"]}}],
                is_first=is_first,
                extra_javascript=[address],
            )
        )
    finally:
        server.shutdown()
        server.server_close()
    found = check(site)
    assert [path for path, text in found.items() if address in text] == []
    assert "assets/external/" in found[PAGE]


def test_hooks_see_finished_pages(tmp_path):
    """What a hook makes of a finished page is on all of them; what it reads of the book's first page holds nothing of the shell's marks."""
    hook = """
        from pathlib import Path

        def on_page_content(html, page, config, files):
            with open(Path(config.site_dir).parent / "read.txt", "a") as file:
                print(html, [item.title for item in page.toc] if page.file.src_uri != "book/index.md" else "", file=file)

        def on_post_page(output, page, config):
            return output.replace("</body>", "<p>from a hook</p></body>")

    """
    root = project(tmp_path, hook=hook)
    found = check(build(root))
    assert [path for path, text in found.items() if "from a hook" not in text and path != "404.html"] == []
    read = (root / "read.txt").read_text()
    assert "Home" in read
    assert not MARKS.search(read)


@pytest.mark.parametrize(
    "toc",
    [
        {"separator": "_"},
        {"toc_depth": 2},
        {"toc_depth": "2-3"},
        {"toc_depth": "3-3"},
        {"baselevel": 2},
        {"slugify": "pymdownx.slugs.slugify"},
    ],
    ids=lambda toc: "-".join(map(str, toc)),
)
def test_tables_of_contents(tmp_path, toc):
    """Whatever the engine calls headings, a generated page's table of contents names its own."""
    root = project(tmp_path)
    settings = yaml.safe_load((root / "mkdocs.yml").read_text())
    settings["markdown_extensions"][-1] = {"toc": {"permalink": True, **toc}}
    text = yaml.safe_dump(settings, sort_keys=False)
    if "slugify" in toc:
        text = text.replace("slugify: pymdownx.slugs.slugify", "slugify: !!python/object/apply:pymdownx.slugs.slugify {kwds: {case: none}}")
    (root / "mkdocs.yml").write_text(text)
    site = build(root)
    found = pages(site)
    assert [path for path, page in found.items() if MARKS.search(page) or "rankbook-first-part" in page.lower()] == []
    assert re.search(r"<a href=#ring class=md-skip>", found[PAGE])
    assert "#original-source" in Html(found[PAGE]).links


def test_an_override_that_writes_entries_in_its_own_way(tmp_path):
    """A table of contents whose entries are not each one item of a list names the page's own headings as well."""
    override = tmp_path / "overrides/partials/toc-item.html"
    override.parent.mkdir(parents=True)
    override.write_text(
        '<li class="md-nav__item"></li>\n<a href="{{ toc_item.url }}" class="md-nav__link">{{ toc_item.title }}</a>\n'
        '{% if toc_item.children %}<nav class="md-nav"><ul class="md-nav__list">'
        '{% for toc_item in toc_item.children %}{% include "partials/toc-item.html" %}{% endfor %}</ul></nav>{% endif %}\n</li>\n'
    )
    site = build(project(tmp_path, theme={"name": "material", "font": False, "custom_dir": "overrides"}))
    check(site)
    (entries,) = re.findall(r"const entries = (\{.*?\n\});", (site / "assets/rankbook-shell.js").read_text(encoding="utf-8"), re.DOTALL)
    assert [kind for kind, text in json.loads(entries).items() if not {"anchor", "text"} <= set(re.split("\ufdd1", text))] == []


@pytest.mark.parametrize("stamp", [True, False])
def test_an_override_that_names_the_page(tmp_path, stamp):
    """As the guide says: what it writes of a page is that of the book's first page on stamped pages, and each page's own on others."""
    override = tmp_path / "overrides/main.html"
    override.parent.mkdir(parents=True)
    override.write_text('{% extends "base.html" %}{% block extrahead %}<meta name="ask" content="?{{ page.url }}">{% endblock %}')
    theme = {"name": "material", "font": False, "custom_dir": "overrides"}
    root = project(tmp_path, theme=theme, ours=[{"rankbook": {"stamp": stamp}}])
    found = pages(build(root))
    asked = {
        path: re.search(r'<meta name="?ask"? content="?\?([^">]*)', found[path])[1]
        for path in ("guide/one/index.html", "book/index.html", PAGE)
    }
    assert asked == {
        "guide/one/index.html": "guide/one/",
        "book/index.html": "book/",
        PAGE: "book/" if stamp else "book/suite/test_ring.py_docs/",
    }


def test_dates_of_one_page_are_not_on_all(tmp_path):
    """When the book's first page was changed says nothing of the others."""
    hook = """
        def on_page_markdown(markdown, page, config, files):
            page.meta["git_revision_date_localized"] = "January 1, 2020"
            page.meta["git_creation_date_localized"] = "January 1, 2020"
    """
    found = check(build(project(tmp_path, hook=hook)))
    assert "January 1, 2020" in found["index.html"]
    assert "January 1, 2020" not in found[PAGE]


def test_hooks_that_leave_no_place_for_a_content(tmp_path):
    """Generated pages have the theme's own shell then, and that is said; a theme that has none itself ends the build in a sentence."""
    hook = "def on_post_page(output, page, config):\n    return '<p>locked</p>'\n"
    root = project(tmp_path / "hook", hook=hook)
    done = mkdocs(root, "build")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "What plugins make of a finished page is not on the generated pages" in done.stdout + done.stderr
    assert "id=L1" in pages(root / "site")[PAGE]
    template = tmp_path / "bare/overrides/main.html"
    template.parent.mkdir(parents=True)
    template.write_text("<p>nothing of the page</p>\n")
    bare = project(tmp_path / "bare", theme={"name": "material", "font": False, "custom_dir": "overrides"})
    done = mkdocs(bare, "build")
    assert done.returncode == 1
    assert "the page that the site's engine has built for the book has no content" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_drafts_are_not_published(tmp_path):
    """`draft_docs` counts for generated pages as for others."""
    root = project(tmp_path, draft_docs="/book/suite/inner/\n")
    for _ in range(2):
        found = pages(build(root))
        assert PAGE in found
        assert [path for path in found if path.startswith("book/suite/inner/")] == []
    text = (root / "mkdocs.yml").read_text().replace("draft_docs", "exclude_docs")
    for written in (text.replace("/book/suite/inner/", "/nowhere/"), text):
        (root / "mkdocs.yml").write_text(written)
        found = pages(build(root))
    assert PAGE in found
    assert [path for path in found if path.startswith("book/suite/inner/")] == []


def test_pages_that_are_meant_to_be_in_no_navigation(tmp_path):
    """`not_in_nav` is heard, and nothing is said of pages that it names."""
    root = project(tmp_path, not_in_nav="/book/\n", nav=["index.md", "guide/one.md", "guide/two.md"], validation={"omitted_files": "warn"})
    check(build(root))


def test_pages_that_another_plugin_takes_away(tmp_path):
    """A file that is taken out of the list of files is on no page and in no navigation, whenever that is done."""
    hook = """
        def on_files(files, config):
            for file in list(files):
                if "/inner/" in file.src_uri:
                    files.remove(file)
            return files
    """
    site = build(project(tmp_path, hook=hook))
    found = pages(site)
    assert PAGE in found
    assert [path for path in found if path.startswith("book/suite/inner/")] == []


def test_settings_above_the_folder_of_the_site(tmp_path):
    """A site in a folder of its own is that of the project around it: its pages are brought up to date when it is built."""
    root = project(tmp_path, at="web")
    source = tmp_path / "suite/test_ring.py"
    source.write_text(source.read_text().replace("test_token_comes_back", "test_token_is_home"))
    found = check(build(root))
    assert "test_token_is_home" in found[PAGE]


def test_a_plugin_that_builds_from_a_copy_of_all_pages(tmp_path):
    """Pages are generated before a copy is taken: the site is never one build behind."""
    hook = """
        import shutil
        import tempfile

        def on_config(config):
            folder = tempfile.mkdtemp()
            shutil.copytree(config.docs_dir, folder, dirs_exist_ok=True)
            config.docs_dir = folder
            return config
    """
    root = project(tmp_path, hook=hook)
    source = tmp_path / "suite/test_ring.py"
    source.write_text(source.read_text().replace("test_token_comes_back", "test_token_is_home"))
    assert "test_token_is_home" in (build(root) / PAGE).read_text(encoding="utf-8")


def set_stamp(root: Path, stamp: bool) -> None:
    """Say who puts the generated pages into the site."""
    settings = root / "mkdocs.yml"
    settings.write_text(settings.read_text().replace("- rankbook\n", f"- rankbook: {{stamp: {str(stamp).lower()}}}\n"))


@pytest.mark.parametrize("directories", [True, False])
@pytest.mark.parametrize("stamp", [True, False])
def test_the_inventory_names_addresses_that_are_there(tmp_path, directories, stamp):
    """Each address of `objects.inv` is one of the site, whatever form its addresses have."""
    root = project(tmp_path, plugins=[], use_directory_urls=directories)
    set_stamp(root, stamp)
    site = build(root)
    lines = inventory_lines(site / "book" / INVENTORY)
    addresses = {line[4].partition("#")[0].replace("$", line[1]) for line in lines}
    assert len(addresses) > 3
    found = {path.relative_to(site / "book").as_posix().removesuffix("index.html") for path in (site / "book").rglob("*.html")}
    assert addresses - found == set()
    assert all(address.endswith("/") == directories for address in addresses)


@ORDERS
def test_the_inventory_of_a_site_in_folders_of_languages(tmp_path, is_first):
    """Where each language has a folder of its own, the inventory stands beside the pages, and leads to them."""
    languages = [{"locale": "en", "default": True, "name": "English"}, {"locale": "de", "name": "Deutsch"}]
    root = project(tmp_path, plugins=[{"i18n": {"docs_structure": "folder", "languages": languages}}], is_first=is_first, nav=None)
    (root / "docs/en").mkdir()
    (root / "docs/index.md").rename(root / "docs/en/index.md")
    done = mkdocs(root, "build")
    assert done.returncode == 0, done.stdout + done.stderr
    inventories = list((root / "site").rglob(INVENTORY))
    assert inventories
    for file in inventories:
        addresses = {line[4].partition("#")[0].replace("$", line[1]) for line in inventory_lines(file)}
        assert len(addresses) > 3
        assert [each for each in addresses if not (file.parent / each / "index.html").is_file()] == [], file


@pytest.mark.parametrize("directories", [True, False])
@pytest.mark.parametrize("stamp", [True, False])
def test_names_in_a_picture_lead_to_pages(tmp_path, directories, stamp):
    """Each name in the picture of a folder's imports leads to its page, whatever form addresses have."""
    root = project(tmp_path, plugins=[], use_directory_urls=directories)
    set_stamp(root, stamp)
    sources = {
        "index.py": "x = 1\n",
        "near/a.py": "from near import b\nimport far\n",
        "near/b.py": "\n",
        "far.py": "import index, near.a\n",
    }
    for path, source in sources.items():
        (tmp_path / "suite" / path).parent.mkdir(exist_ok=True)
        (tmp_path / "suite" / path).write_text(source)
    site = build(root)
    pictures = list((site / "book").rglob("imports.svg"))
    found = [picture.parent / link for picture in pictures for link in re.findall(r'<a id="n\d+" href="([^"]*)"', picture.read_text())]
    assert len(pictures) == 2
    assert len(found) > 4
    assert [path for path in found if not (path / "index.html" if directories else path).is_file()] == []


def inventory_lines(file: Path) -> list[re.Match[str]]:
    """Read the lines of an inventory."""
    import zlib

    body = file.read_bytes().split(b"\n", 4)[4]
    return [match for line in zlib.decompress(body).decode().splitlines() if (match := LINE.fullmatch(line))]
