"""The documents wing through its door: `rankbook gen` on tiny projects."""

import contextlib
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

import markdown
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rankbook import __version__, front_matter, generating
from rankbook.cli import main
from rankbook.config import load
from rankbook.document import document
from rankbook.embedding import restore
from rankbook.pages import packs

CASES = Path(__file__).parent / "cases/pages"
ROOT = Path(__file__).parents[1]
PACKS = ("rankbook", "repository", "repo-book")
EXTENSIONS = ["tables", "attr_list", "toc", "admonition", "pymdownx.superfences", "pymdownx.details", "pymdownx.highlight"]
SITE = {"pymdownx.highlight": {"anchor_linenums": True}}


def unpack(text):
    """Read files from a case: a line `=== path`, then the file."""
    parts = re.split(r"^=== (.+)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def plant(root, files):
    """Write a project's files."""
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def gen(root, *options, sources=(".",)):
    """Run the command in a project."""
    return main(["gen", *sources, "--root", str(root), "--out", "out", *options])


def pages(root, out="out"):
    """Give all pages of a project by path."""
    return {path.relative_to(root / out).as_posix(): path.read_bytes() for path in sorted((root / out).rglob("*.md"))}


def listing_of(page):
    """Find the source's listing on a page by hand, and give back the file's bytes."""
    text = page.decode()
    stamp = front_matter.read(front_matter.split(text)[0])
    match = re.search(r'(?:\A|\n)(`{3,})[^\n`]* \{#source linenums="1"\}\n', text)
    if match is None:
        if "The file is empty." not in text:
            return None
        return restore("", stamp.embedding) if stamp.embedding else b""
    start = match.end()
    end = next(found.start() for found in re.finditer(f"(?<=[\r\n]){match[1]}(?=\n)", text[start:]))
    return restore(text[start : start + end], stamp.embedding)


@pytest.mark.parametrize("pack", PACKS)
def test_pages_of_the_tiny_suite(tmp_path, pack):
    """All pages of the small tree are, letter for letter, those of the stored case."""
    root = tmp_path / "tiny"  # the seals are of pages that name it
    # What ruff says differs between its versions.
    plant(root, unpack((CASES / "tree.txt").read_text()) | {"pyproject.toml": "[tool.rankbook]\nfindings = []\n"})
    assert gen(root, "--pack", pack, sources=("README.md", "suite")) == 0
    made = "".join(f"=== {path}\n{data.decode()}" for path, data in pages(root).items())
    case = CASES / f"{pack}.txt"
    if os.environ.get("RANKBOOK_UPDATE_CASES"):
        case.write_text(made)
    assert made == case.read_text()


@pytest.mark.parametrize("pack", PACKS)
def test_every_link_of_the_pages_leads_somewhere(tmp_path, pack):
    """Each relative link names a page that is there, and each anchor one that the site gives to that page."""
    plant(tmp_path, unpack((CASES / "tree.txt").read_text()))
    plant(tmp_path, {"suite/deep/er/a b (1)#.py": "class C:\n    pass\n", "suite/deep/bin.dat": b"\0"})
    gen(tmp_path, "--pack", pack, sources=("README.md", "suite"))
    out = tmp_path / "out"
    html = {
        path: markdown.markdown(path.read_text()[front_matter.split(path.read_text())[1] :], extensions=EXTENSIONS, extension_configs=SITE)
        for path in out.rglob("*.md")
    }
    links = [(page, href) for page, text in html.items() for href in re.findall(r'<a href="([^"]+)"', text)]
    assert len(links) > 100
    for page, href in links:
        target, _, anchor = href.partition("#")
        path = (page.parent / re.sub("%(..)", lambda code: chr(int(code[1], 16)), target)).resolve() if target else page
        if path.suffix == ".svg":
            assert path.is_file()
            continue
        assert path in html, (page, href)
        assert not anchor or f'id="{anchor}"' in html[path], (page, href)


BYTES = st.binary(max_size=400) | st.text(st.sampled_from("`~a \t\r\n\f\x85\u2028#|<{é"), max_size=80).map(str.encode)


@example(sources=[("py", b"\xef\xbb\xbf"), ("txt", b"\xef\xbb\xbf"), ("md", b"\xef\xbb\xbf")])
@given(sources=st.lists(st.tuples(st.sampled_from(["py", "txt", "md"]), BYTES), min_size=3, max_size=8))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_listing_gives_back_its_source(tmp_path_factory, sources):
    """Bytes → page → listing's text → the same bytes; what cannot be embedded says so."""
    files = {f"src/x{number}.{suffix}": data for number, (suffix, data) in enumerate(sources)}
    root = plant(tmp_path_factory.mktemp("tree"), files)
    gen(root, sources=("src",))
    for path, data in files.items():
        page = (root / f"out/{path}_docs.md").read_bytes()
        found = listing_of(page)
        assert found == data or (found is None and b"The listing is left out: it" in page)


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbfx = 1\r\ny = 2",
        "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"),
        b"a\rb\r",
        b"\x0c\x0bx\n",
        "x = 1\n".encode("utf-16"),
        b"```\n~~~~\n`````\n",
        b"",
        b"\xef\xbb\xbf",
    ],
)
def test_odd_bytes_come_back(tmp_path, data):
    """Marks, coding cookies, line ends, form feeds and fences of a source survive its page."""
    plant(tmp_path, {"x.py": data})
    gen(tmp_path)
    page = pages(tmp_path)["x.py_docs.md"]
    assert listing_of(page) == data or (data == b"\xef\xbb\xbf" and "The file is empty." in page.decode())


def test_where_else_an_api_is_tested_in_a_small_suite(tmp_path):
    """What half of the files call says what a file is about; what more of them call does not."""
    calls = {name: ["all_reduce", "broadcast"][: 1 + (number < 3)] for number, name in enumerate("abcdef")}
    text = "import torch.distributed as dist\n\n\ndef test_{0}():\n    {1}\n"
    plant(
        tmp_path, {f"test_{name}.py": text.format(name, "; ".join(f"dist.{call}(x)" for call in called)) for name, called in calls.items()}
    )
    assert gen(tmp_path) == 0
    said = (tmp_path / "out/test_a.py_docs.md").read_text().partition("## Where else it is tested")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([\w.]+)` \|", said, re.MULTILINE) == ["torch.distributed.broadcast"]
    assert re.findall(r"\]\((.*?)\)", said) == ["test_b.py_docs.md", "test_c.py_docs.md", "suite-apis.md"]
    assert "## Where else it is tested" not in (tmp_path / "out/test_d.py_docs.md").read_text()


def test_only_what_changed_is_written(tmp_path):
    """A second run writes nothing; after an edit of a comment, only that file's page is written."""
    plant(tmp_path, unpack((CASES / "tree.txt").read_text()))
    gen(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.md")}
    settings_ = load(tmp_path, {"sources": (".",), "out": "out"})
    assert document(settings_).changes == ()
    assert {path: path.stat().st_mtime_ns for path in before} == before
    with (tmp_path / "suite/launch.py").open("a") as source:
        source.write("# changed\n")
    assert document(settings_).written == ("suite/launch.py_docs.md",)


def test_two_runs_and_two_ways_of_running_make_the_same_bytes(tmp_path):
    """Pages depend on sources and pack alone: not on the run, and not on the number of processes."""
    tree = unpack((CASES / "tree.txt").read_text())
    many = {f"many/n{number}.py": f'"""Number {number}."""\nX = {number}\n' for number in range(210)}
    one, two = plant(tmp_path / "a/tree", tree | many), plant(tmp_path / "b/tree", tree | many)
    assert gen(one, "--jobs", "1") == gen(two, "--jobs", "2") == 0
    assert pages(one) == pages(two)
    about_files = [path for path in pages(one) if path.endswith(("_docs.md", "_kw.md"))]
    assert len(about_files) == 2 * (len(tree) + 210)
    assert "suite-words.md" in pages(one)


def test_a_test_that_tests_nothing_is_named(tmp_path):
    """A row says which of its tests pytest runs for nothing."""
    text = "import unittest\nimport pytest\nfrom parameterized import parameterized\n\n\nclass TestA(unittest.TestCase):\n"
    text += "    @pytest.mark.slow\n    @parameterized.expand(['x'])\n    def test_a(self, n): ...\n"
    plant(tmp_path, {"test_it.py": text})
    gen(tmp_path)
    said = "`0_x`, `test_a`; `test_a` tests nothing: a mark above `parameterized.expand` is put on nothing"
    assert said in pages(tmp_path)["test_it.py_docs.md"].decode()


def test_pages_of_deleted_sources_go(tmp_path):
    """With a source its pages go, and folders that are empty then; all else stays."""
    plant(tmp_path, {"a/b/x.py": "", "y.py": "", "out/a/b/notes.txt": "mine", "out/mine.md": "# Mine\n"})
    gen(tmp_path, "--exclude", "out/**")
    (tmp_path / "a/b/x.py").unlink()
    gen(tmp_path, "--exclude", "out/**")
    assert sorted(pages(tmp_path)) == ["doc.md", "index.md", "mine.md", "sub.md", "y.py_docs.md", "y.py_kw.md"]
    assert (tmp_path / "out/a/b/notes.txt").exists()
    (tmp_path / "out/a/b/notes.txt").unlink()
    plant(tmp_path, {"c/x.py": ""})
    gen(tmp_path, "--exclude", "out/**")
    (tmp_path / "c/x.py").unlink()
    gen(tmp_path, "--exclude", "out/**")
    assert not (tmp_path / "out/c").exists()


def test_a_page_that_a_person_made_is_kept(tmp_path, capsys):
    """Where a page without a stamp stands, nothing is written, and the user is told."""
    plant(tmp_path, {"x.py": "x = 1\n", "out/x.py_docs.md": "---\ntitle: Mine\n---\n# Mine\n", "out/index.md": ""})
    assert gen(tmp_path, "--exclude", "out/**") == 0
    assert pages(tmp_path)["x.py_docs.md"] == b"---\ntitle: Mine\n---\n# Mine\n"
    assert pages(tmp_path)["index.md"] == b""
    said = capsys.readouterr()
    assert "rankbook: warning: out/x.py_docs.md is kept: a person made it" in said.err
    assert "1 source, 6 pages: 4 written, 0 unchanged, 2 kept, 1 other file written" in said.out


def test_links_inside_the_folder_of_pages_are_not_followed(tmp_path):
    """Nothing is written or removed behind a link, and a link at a page's place stays."""
    project, other = tmp_path / "project", tmp_path / "other"
    plant(other, {"old.md": front_matter.write(front_matter.Stamp("file", "old", "old")), "target.md": "theirs"})
    plant(project, {"a/x.py": "", "y.py": ""})
    (project / "out").mkdir()
    (project / "out/a").symlink_to(other, target_is_directory=True)
    (project / "out/y.py_docs.md").symlink_to(other / "target.md")
    gen(project, "--exclude", "out/**")
    assert sorted(path.name for path in other.iterdir()) == ["old.md", "target.md"]
    assert (other / "target.md").read_text() == "theirs"
    assert (project / "out/y.py_docs.md").is_symlink()


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
from rankbook.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_page_is_written_whole_or_not_at_all(tmp_path):
    """When the disk refuses a page half-way, the old page stays, no part of the new one is left, and the error says where."""
    plant(tmp_path, {"x.py": "x = 1\n"})
    gen(tmp_path)
    before = pages(tmp_path)
    (tmp_path / "x.py").write_text("#" * 60_000)
    command = [sys.executable, "-c", LIMITED, "gen", ".", "--root", str(tmp_path), "--out", "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "x.py_docs.md: cannot write the page: File too large" in done.stderr
    assert pages(tmp_path) == before
    assert [path.name for path in (tmp_path / "out").iterdir() if path.suffix != ".md"] == ["objects.inv"]


def test_a_file_in_the_place_of_the_folder_of_pages_is_an_error(tmp_path, capsys):
    """Where no folder can be made, the run ends with one sentence and the file stays."""
    plant(tmp_path, {"s/x.py": "x = 1\n", "out": "mine"})
    assert gen(tmp_path, sources=("s",)) == 2
    assert "out: the folder of the pages is a file; name a folder with --out" in capsys.readouterr().err
    assert (tmp_path / "out").read_text() == "mine"


def test_templates_are_loaded_once_as_long_as_they_stay(tmp_path):
    """A process that makes pages again and again loads a pack anew when one of its templates has changed."""
    part = tmp_path / "templates/rankbook/_x.md.jinja"
    plant(tmp_path, {"templates/rankbook/keywords.md.jinja": "{% include 'x.txt' %}{% include '_x.md.jinja' %}\n", part: "a"})
    plant(tmp_path, {"templates/rankbook/x.txt": "1"})
    folders = packs.pack_folders(load(tmp_path, {"sources": (".",)}))

    def made():
        packs.check_pack(folders)
        return packs.fill(folders, "keywords"), packs.environment(folders)

    (said, first), (_, again) = made(), made()
    assert (said, again is first) == ("1a", True)
    part.write_text("b")
    said, second = made()
    assert (said, second is first) == ("1b", False)
    (tmp_path / "templates/rankbook/x.txt").write_text("2")
    assert made()[0] == "2b"
    plant(tmp_path, {"templates/rankbook/keywords.md.jinja": "new"})
    assert made()[0] == "new"


def test_a_template_that_was_missing_or_could_not_be_read_is_loaded_anew(tmp_path, monkeypatch):
    """What an imported template includes if it is there counts once it is there; an error of the disk leaves nothing as it was before."""
    folder = "templates/rankbook"
    macros = "{% set said %}{% include '_more.md.jinja' ignore missing %}{% endset %}{% macro say() %}<{{ said }}>{% endmacro %}"
    plant(
        tmp_path,
        {f"{folder}/_say.md.jinja": macros, f"{folder}/keywords.md.jinja": "{% import '_say.md.jinja' as other %}{{ other.say() }}"},
    )
    folders = packs.pack_folders(load(tmp_path, {"sources": (".",)}))

    def made():
        packs.check_pack(folders)
        return packs.fill(folders, "keywords")

    assert made() == "<>"
    plant(tmp_path, {f"{folder}/_more.md.jinja": "more"})
    assert made() == "<more>"
    plant(tmp_path, {f"{folder}/keywords.md.jinja": "new"})

    def broken(*_):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch, pytest.raises(PermissionError):
        patch.setattr(packs.jinja2.FileSystemLoader, "get_source", broken)
        made()
    assert made() == "new"


def test_settings_and_flags(tmp_path, capsys):
    """The settings of `pyproject.toml` hold, flags override them, and the title names the root's page."""
    plant(
        tmp_path,
        {
            "pyproject.toml": '[tool.rankbook]\nsources = ["s"]\nout = "book"\npack = "repository"\ntitle = "My *suite*"\n',
            "s/x.py": "",
            "s/y.py": "",
        },
    )
    assert main(["gen", "--root", str(tmp_path), "--exclude", "**/y.py"]) == 0
    index = (tmp_path / "book/index.md").read_text()
    assert "\n# Index: My \\*suite\\*\n" in index
    assert sorted(pages(tmp_path, "book")) == sorted(
        [*(f"{folder}{page}.md" for folder in ("", "s/") for page in ("index", "doc", "sub")), "s/x.py_docs.md", "s/x.py_kw.md"]
    )
    assert main(["gen", "--root", str(tmp_path), "--pack", "repo-book", "--out", "other"]) == 0
    assert "# Documentation: `y.py`" in (tmp_path / "other/s/y.py_docs.md").read_text()


def test_own_templates_override_one_page(tmp_path):
    """A project's template replaces that of the pack; what it prints of a source is escaped all the same."""
    plant(tmp_path, {"s/x.py": '"""<b>Bold</b>."""\n', "templates/rankbook/keywords.md.jinja": "Mine: {{ file.summary }}\n"})
    assert gen(tmp_path, sources=("s",)) == 0
    assert (tmp_path / "out/s/x.py_kw.md").read_text().partition("\n\n<!-- ")[0].endswith("---\n\nMine: &lt;b&gt;Bold&lt;/b&gt;.")
    assert "\n# X\n" in (tmp_path / "out/s/x.py_docs.md").read_text()


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ file.nothing }}", "file.md.jinja:1: broken template"),
        (
            "",
            "rankbook/file.md.jinja: the template does not show the source's listing once, as it is, on the page s/x.py_docs.md",
        ),
        ("no listing", "file.md.jinja: the template does not show the source's listing once"),
        ("{{ file.listing }}\n{{ file.listing }}", "the template does not show the source's listing once"),
        ("\n{% include 'gone.jinja' %}", "file.md.jinja:2: there is no template 'gone.jinja' in the pack; write it"),
        ("{% import 'gone.jinja' as gone %}", "file.md.jinja:1: there is no template 'gone.jinja' in the pack; write it"),
    ],
)
def test_a_wrong_template_is_an_error(tmp_path, capsys, template, message):
    """A template that is broken or loses the listing costs the run, with one sentence and status 2."""
    plant(tmp_path, {"s/x.py": "x = 1\n", "templates/rankbook/file.md.jinja": template})
    assert gen(tmp_path, sources=("s",)) == 2
    said = capsys.readouterr().err
    assert said.startswith("rankbook: error: ")
    assert message in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["gone"], "'gone'"),
        ([".", "--pack", "gone"], "no template pack 'gone'"),
        ([], "no sources"),
    ],
)
def test_wrong_options_are_errors(tmp_path, capsys, options, message):
    """A source, a pack or a project that is not there ends with status 2 and one sentence."""
    assert main(["gen", "--root", str(tmp_path), *options]) == 2
    assert message in capsys.readouterr().err


def test_the_command_as_a_process(tmp_path):
    """`python tools/gen_docs.py` and `rankbook gen` are the same; warnings go to the error stream, the summary to the output."""
    plant(tmp_path, {"s/x.py": "x = 1\n"})
    script = [sys.executable, str(ROOT / "tools/gen_docs.py"), "s", "--root", str(tmp_path), "--out", "out"]
    done = subprocess.run(script, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    made = len([*(tmp_path / "out").rglob("*.md")])
    assert re.fullmatch(rf"1 source, {made} pages: {made} written, 0 unchanged, 1 other file written \([\d.]+ s\)\n", done.stdout)
    again = subprocess.run([sys.executable, "-m", "rankbook.cli", "gen", *script[2:]], capture_output=True, text=True, check=False)
    assert "0 written" not in again.stdout
    assert f"{made} unchanged" in again.stdout


def test_version(capsys):
    """`rankbook --version` prints the version."""
    with contextlib.suppress(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"rankbook {__version__}\n"


HOSTILE = '''"""</code><script>alert(1)</script> ![x](http://e.vil/a.png) [x](javascript:alert(1)) | {{ 7*7 }} {% raw %}

# Injected heading
"""
import os


class A:
    """| a | b |

    |---|---|
    """


    def test_it(self):
        """<!-- rankbook:last-run --> ```` <img src=x onerror=alert(1)> https://e.vil www.e.vil {: .x #y }"""


@os.environ["`|</td>"]
class TestB(A):
    "{#source linenums=\\"1\\"} --8<-- 'x' !!! note"
    X = "|`</a>"
'''


@pytest.mark.parametrize("pack", PACKS)
def test_nothing_of_a_source_becomes_part_of_the_page(tmp_path, pack):
    """Headings, links, images, tags, templates and table cells in a source stay words on every page of it."""
    plant(tmp_path, {"s/test_<b>x|`y`.py": HOSTILE, "s/README.md": "# <script>x</script>\n\n[a](javascript:b) | c\n"})
    assert gen(tmp_path, "--pack", pack, sources=("s",)) == 0
    for name, data in pages(tmp_path).items():
        body = data.decode()
        found, body = front_matter.read(front_matter.split(body)[0]), body[front_matter.split(body)[1] :]
        html = markdown.markdown(body, extensions=EXTENSIONS)
        outside = re.sub(r'<div id="source".*?</table></div>', "", html, flags=re.DOTALL)
        assert not re.search(r"<(script|img|b|iframe)\b", html), name
        assert all(
            href.endswith((".md", ".md#original-source", "code-structure", "import-dependencies")) or "__codelineno-source-" in href
            for href in re.findall(r'href="([^"]*)"', outside)
        ), name
        assert "Injected heading" not in "".join(re.findall(r"<h\d.*?</h\d>", outside, re.DOTALL)), name
        assert " 49 " not in outside, name
        assert outside.count("rankbook:last-run") <= 1 + outside.count("&lt;!-- rankbook:last-run"), name
        for table in re.findall(r"<table>.*?</table>", outside, re.DOTALL):
            widths = {len(re.findall(r"<t[dh]\b", row)) for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL)}
            assert len(widths) == 1, (name, table)
        assert found is not None


SEED_MISTAKES = '''"""One class and one comment."""
# this class and that class import nothing
import torch


class CupyWrapper:
    pass
'''


def kinds_of_file():
    """A tree with a file of each sort that matters to its page."""
    return {
        "t/deep/er/test_run.py": "import os\n\n\ndef test_it(): pass\n",
        "t/deep/er/lib.py": '"""A library."""\nX = 1\n',
        "t/deep/er/empty.py": "",
        "t/deep/er/run.sh": "true\n",
        "t/deep/er/data.json": "{}\n",
        "t/deep/er/guide.md": "# Guide & <tags>\n\n```python\nx = 1\n```\n",
        "t/deep/er/words.md": "# Only words\n\nNo listing.\n",
        "t/deep/er/kernel.cu": "int x;\n",
        "t/deep/er/blob.bin": b"\0\1",
        "t/other/notes.txt": "words\n",
    }


@pytest.mark.parametrize("pack", PACKS)
def test_every_page_of_an_executed_file_has_a_last_run(tmp_path, pack):
    """The marker stands once on the page of each file that is run, imported or parsed, or that holds such listings; on no other."""
    plant(tmp_path, kinds_of_file())
    gen(tmp_path, "--pack", pack, sources=("t",))
    counts = {
        path.name[: -len("_docs.md")]: path.read_text().count("\n\n<!-- rankbook:last-run -->\n") for path in tmp_path.rglob("*_docs.md")
    }
    executed = {"test_run.py", "lib.py", "run.sh", "data.json", "guide.md"}
    assert counts == {Path(path).name: int(Path(path).name in executed) for path in kinds_of_file()}


@pytest.mark.parametrize("pack", PACKS)
def test_every_page_leads_up(tmp_path, pack):
    """Each page but the root's index links to the index of its folder, or, as an index, to that of the folder above."""
    plant(tmp_path, kinds_of_file())
    gen(tmp_path, "--pack", pack, sources=("t",))
    for name, data in pages(tmp_path).items():
        up = "../index.md" if name.endswith("/index.md") else "index.md"
        assert name == "index.md" or f"]({up})" in data.decode(), name


def test_a_page_is_called_what_its_heading_says(tmp_path):
    """In the default pack the title of each page, which the navigation shows, is the text of its first heading."""
    plant(tmp_path, kinds_of_file() | {"t/a_b*c*.py": "x = 1\n", "t/_d_/x.py": ""})
    gen(tmp_path, sources=("t",))
    for name, data in pages(tmp_path).items():
        values, start = front_matter.split(data.decode())
        html = markdown.markdown(data.decode()[start:], extensions=EXTENSIONS)
        assert re.search(r"<h1[^>]*>(.*?)</h1>", html)[1].replace("<code>", "").replace("</code>", "") == values["title"], name


def test_no_table_has_an_empty_column(tmp_path):
    """Where no row of a table says anything in a column, the default pack leaves the column out."""
    plant(tmp_path, unpack((CASES / "tree.txt").read_text()) | kinds_of_file())
    gen(tmp_path, sources=("t", "README.md", "suite"))
    tables = [found for data in pages(tmp_path).values() for found in re.findall(r"(?:^\|.*\n){3,}", data.decode(), re.MULTILINE)]
    columns = [list(zip(*(line[1:-1].split("|") for line in found.splitlines()), strict=True)) for found in tables]
    assert len(columns) > 20
    assert [column for found in columns for column in found if not any(cell.strip() for cell in column[2:])] == []


PARAMETRIZED = """    import pytest

    @pytest.mark.parametrize("x", [1, 2])
    def"""


def test_tests_are_told_apart_by_their_class(tmp_path):
    """Tests of several classes stand under the class's name, functions under a heading of their own; one group needs no heading."""
    case = "class TestA:\n    def test_it(self): pass\n\n\n"
    functions = "".join(f"def test_{number}(): pass\n" for number in range(3))
    plant(
        tmp_path,
        {
            "s/test_one.py": case,
            "s/test_two.py": f"{case}{case.replace('TestA', 'TestB')}def test_it(): pass\n",
            "s/test_beside.py": f"{case.replace('self', 'self, x').replace('    def', PARAMETRIZED)}{functions}",
        },
    )
    gen(tmp_path, sources=("s",))
    names = ("one", "two", "beside")
    one, two, beside = ((tmp_path / f"out/s/test_{name}.py_docs.md").read_text().partition("## What it needs")[0] for name in names)
    assert "1 test of `TestA`, run by" in one
    assert "###" not in one
    assert "3 tests, 2 of them of 2 classes, run by" in two
    assert "5 tests, 2 of them of `TestA`, run by" in beside
    lines = [line for line in two.splitlines() if line.startswith(("###", "| [`test_it`]"))]
    assert [line.removesuffix(" |") for line in lines] == [
        "### `TestA`",
        '| [`test_it`](#__codelineno-source-2 "pytest s/test_two.py::TestA::test_it")',
        "### `TestB`",
        '| [`test_it`](#__codelineno-source-6 "pytest s/test_two.py::TestB::test_it")',
        "### Test functions",
        '| [`test_it`](#__codelineno-source-9 "pytest s/test_two.py::test_it")',
    ]


def test_folders_that_hold_one_folder_are_passed_over(tmp_path):
    """A table of subfolders leads to the first folder that holds something else than one folder, under its whole path."""
    plant(tmp_path, kinds_of_file())
    gen(tmp_path, sources=("t",))
    assert "| [`t/`](t/index.md) | 10 |" in (tmp_path / "out/index.md").read_text()
    assert "| [`deep/er/`](deep/er/index.md) | 9 | 1 |" in (tmp_path / "out/t/index.md").read_text()


def test_an_index_names_few_requirements_and_leads_to_all(tmp_path):
    """An index names the five things that most files need, and links to the list of all of them."""
    skips = "".join(f"@requires_{name}()\ndef test_{name}(): pass\n" for name in ("nccl", "gloo", "ucc", "mpi"))
    plant(
        tmp_path,
        {
            "s/test_many.py": "from torch.testing._internal.common_distributed import *\nimport pytest\n\n"
            f"{skips}@pytest.mark.gpu(2)\ndef test_two(): pass\n@pytest.mark.gpu(4)\ndef test_four(): pass\n"
        },
    )
    gen(tmp_path, sources=("s",))
    index, about = ((tmp_path / "out/s" / name).read_text() for name in ("index.md", "doc.md"))
    said = re.search(r"^Most needed.*$", index, re.MULTILINE)[0]
    assert said.count(" (1)") == 5
    assert said.endswith("[All 6 requirements](doc.md#tests-and-what-they-need).")
    assert "\n## Tests and what they need\n" in about


@pytest.mark.parametrize("pack", PACKS)
def test_words_of_comments_are_no_classes(tmp_path, pack):
    """A class is a definition: not the word after "class" in a comment, and one without parentheses counts."""
    plant(tmp_path, {"s/x.py": SEED_MISTAKES})
    gen(tmp_path, "--pack", pack, sources=("s",))
    keywords = (tmp_path / "out/s/x.py_kw.md").read_text()
    assert "`CupyWrapper`: [line 6](x.py_docs.md#__codelineno-source-6)" in keywords
    assert not re.search("`(and|that|class|import|nothing)`", keywords)


@pytest.mark.parametrize("pack", PACKS)
def test_nothing_is_cut_silently(tmp_path, pack):
    """All of many classes and functions stand on the page and on the keyword page."""
    source = "".join(f"class C{number}:\n    def f{number}(self): pass\n\n" for number in range(60))
    plant(tmp_path, {"s/x.py": source})
    gen(tmp_path, "--pack", pack, sources=("s",))
    for name in ("x.py_docs.md", "x.py_kw.md"):
        page = (tmp_path / "out/s" / name).read_text()
        assert all(f"C{number}`" in page and f"f{number}`" in page for number in range(60))


@pytest.mark.parametrize("pack", PACKS)
def test_empty_phrases_are_not_written(tmp_path, pack):
    """No page says a sentence that holds of any file."""
    plant(tmp_path, unpack((CASES / "tree.txt").read_text()))
    gen(tmp_path, "--pack", pack, sources=("README.md", "suite"))
    everything = b"".join(pages(tmp_path).values()).decode()
    for phrase in ("Classs", "No obvious security", "Complexity: Standard", "Refer to the", "class(es)", "may contain"):
        assert phrase not in everything


@pytest.mark.parametrize("pack", PACKS)
def test_how_to_run_is_right(tmp_path, pack):
    """Test modules have `pytest`, scripts told their rank have `torchrun`, others with a main guard `python`, and the rest no command."""
    guard = 'if __name__ == "__main__":\n    pass\n'
    plant(
        tmp_path,
        {
            "s/test_a.py": "def test_a(): pass\n",
            "s/ranks.py": f'import os\nos.environ["LOCAL_RANK"]\n{guard}',
            "s/spawns.py": f'import os\nimport torch.multiprocessing as mp\nos.environ["RANK"] = "0"\nmp.spawn(print)\n{guard}',
            "s/plain it.py": guard,
            "s/joins.py": f'"""Run with: torchrun joins.py"""\nimport torch.distributed as dist\ndist.init_process_group("gloo")\n{guard}',
            "s/alone.py": f'import torch.distributed as dist\ndist.init_process_group("gloo", rank=0, world_size=1, store=make())\n{guard}',
            "s/__init__.py": "X = 1\n",
            "s/page.md": "# Page\n",
        },
    )
    gen(tmp_path, "--pack", pack, sources=("s",))
    commands = {
        path.name[: -len("_docs.md")]: re.findall(r"^```bash\n(.*)\n```$", path.read_text(), re.MULTILINE)
        for path in (tmp_path / "out/s").glob("*_docs.md")
    }
    assert commands == {
        "test_a.py": ["pytest s/test_a.py"],
        "ranks.py": ["torchrun --nproc-per-node=2 s/ranks.py"],
        "spawns.py": ["python s/spawns.py"],
        "plain it.py": ["python 's/plain it.py'"],
        "joins.py": ["torchrun --nproc-per-node=2 s/joins.py"],
        "alone.py": ["python s/alone.py"],
        "__init__.py": [],
        "page.md": [],
    }


@pytest.mark.parametrize("pack", PACKS)
def test_inherited_tests_and_requirements_are_on_the_page(tmp_path, pack):
    """A class without a test of its own shows those of its base in another file, and what they need."""
    plant(
        tmp_path,
        {
            "s/common.py": (
                "from torch.testing._internal.common_distributed import MultiProcessTestCase, skip_if_lt_x_gpu\n\n\n"
                "class Base(MultiProcessTestCase):\n    @skip_if_lt_x_gpu(2)\n    def test_far(self):\n        pass\n"
            ),
            "s/test_near.py": "from common import Base\n\n\nclass TestNear(Base):\n    pass\n",
        },
    )
    gen(tmp_path, "--pack", pack, sources=("s",))
    page = (tmp_path / "out/s/test_near.py_docs.md").read_text()
    assert {"rankbook": "### `TestNear`"}.get(pack, "`TestNear::test_far`") in page
    assert "[`common.py:6`](common.py_docs.md#__codelineno-source-6)" in page
    assert "2 GPUs" in page
    assert "`skip_if_lt_x_gpu(2)`" in page


@pytest.mark.parametrize(
    "told",
    [
        "[tool.rankbook]\npackage-path = ['src']\n",
        "[tool.pytest.ini_options]\npythonpath = ['lib', 'src']\n",
        "[tool.pytest.ini_options]\npythonpath = 'src'\n",
    ],
)
def test_a_package_that_is_a_source_is_that_source(tmp_path, monkeypatch, told):
    """An import that leads to a source by a folder of `package-path`, or of pytest's `pythonpath`, is linked like one of a neighbour."""
    monkeypatch.setenv("RANKBOOK_CACHE_DIR", str(tmp_path / "cache"))
    ring = "def next_rank(rank):\n    return rank + 1\n\n\nclass Ring:\n    def walk(self):\n        pass\n"
    test = "from acme.inner import ring\nfrom acme.inner.ring import Ring, next_rank\n\n\ndef test_ring():\n"
    test += "    assert next_rank(1) == 2\n    Ring.walk(ring.Ring())\n"
    plant(tmp_path, {"pyproject.toml": told, "src/acme/inner/ring.py": ring, "tests/deep/test_ring.py": test})
    assert gen(tmp_path, sources=("src", "tests")) == 0
    made = {path: data.decode() for path, data in pages(tmp_path).items()}
    page = "tests/deep/test_ring.py_docs.md"
    assert re.findall(r"^\| `(acme.*?)` \|.*\[`(src/acme/inner/ring.py)`\]", made[page], re.MULTILINE) == [
        ("acme.inner", "src/acme/inner/ring.py"), ("acme.inner.ring", "src/acme/inner/ring.py"),
    ]  # fmt: skip
    assert f"[`tests/deep/test_ring.py`](../../../{page}): imports it, and has tests" in made["src/acme/inner/ring.py_docs.md"]
    index = re.findall(r"^\| \[`(\w+)`\]\(src/acme/inner/ring\.py_docs\.md#\S+-(\d+)\)", made["suite-apis.md"], re.MULTILINE)
    assert sorted(index) == [("Ring", "5"), ("next_rank", "1"), ("walk", "5")]
    plant(tmp_path, {"src/acme/inner/ring.py": f'"""Rings."""\n\n\n{ring}'})
    assert gen(tmp_path, sources=("src", "tests")) == 0
    assert "[`Ring`](src/acme/inner/ring.py_docs.md#__codelineno-source-8)" in pages(tmp_path)["suite-apis.md"].decode()
    plant(tmp_path, {"pyproject.toml": ""})
    assert gen(tmp_path, sources=("src", "tests")) == 0
    assert "imports it" not in pages(tmp_path)["src/acme/inner/ring.py_docs.md"].decode()


@pytest.mark.parametrize("pack", ["repository", "repo-book"])
def test_usage_is_who_imports_the_file(tmp_path, pack):
    """Files that import a file are its usage examples, also where more relates them; beyond ten, the page says how many."""
    users = {f"s/u{number:02}.py": "from s.base import Base\n\n\nclass T(Base): pass\n" for number in range(12)}
    plant(tmp_path, {"s/base.py": "class Base: pass\n", "s/__init__.py": "", **users})
    gen(tmp_path, "--pack", pack, sources=("s",))
    page = (tmp_path / "out/s/base.py_docs.md").read_text()
    assert "12 files of this book import it; the first ten by name:" in page
    assert "- [`s/u09.py`](u09.py_docs.md) imports it" in page
    assert "None was found" in (tmp_path / "out/s/u00.py_docs.md").read_text()


def test_only_the_standard_library_is_nothing_beyond_python(tmp_path):
    """The sentence is written for a test of the standard library alone, not for one that imports a neighbour or a package."""
    test = "def test_it(): pass\n"
    plant(
        tmp_path,
        {"s/test_a.py": f"import os.path\n{test}", "s/test_b.py": f"from . import test_a\n{test}", "s/test_c.py": f"import torch\n{test}"},
    )
    gen(tmp_path, sources=("s",))
    said = ["Nothing beyond Python" in (tmp_path / f"out/s/test_{name}.py_docs.md").read_text() for name in "abc"]
    assert said == [True, False, False]


def test_pages_are_never_sources(tmp_path):
    """A run over its own output documents no page again."""
    plant(tmp_path, {"x.py": "x = 1\n"})
    gen(tmp_path)
    first = sorted(pages(tmp_path))
    assert main(["gen", ".", "--root", str(tmp_path), "--out", "second"]) == 0
    assert sorted(pages(tmp_path, "second")) == first


def test_a_large_index_says_what_it_leaves_out_and_where_it_is(tmp_path):
    """Of more than 2,000 keywords an index lists classes and tests, of more of these classes; it links to the pages that list the rest."""
    names = "".join(f"n{number} = {number}\n" for number in range(2100))
    plant(tmp_path, {"s/many.py": f"{names}class Lonely: pass\n", "s/few/x.py": "y = 1\n"})
    gen(tmp_path, sources=("s",))
    page = (tmp_path / "out/s/sub.md").read_text()
    assert "only classes are listed here" in page
    assert "`Lonely`: class [`many.py:2101`](many.py_docs.md#__codelineno-source-2101)" in page
    assert "[`many.py`](many.py_kw.md): 2,101 keywords" in page
    assert "[`few/`](few/sub.md): 1 keyword\n" in page
    assert "`n7`" not in page
    tests = "".join(f"def test_{number}(): pass\n" for number in range(2000))
    plant(tmp_path, {"s/test_many.py": tests})
    gen(tmp_path, sources=("s",))
    page = (tmp_path / "out/s/sub.md").read_text()
    assert "only classes are listed here" in page
    assert "`Lonely`: class" in page
    assert "`test_7`" not in page


def test_a_folder_whose_keywords_are_all_in_one_child_leads_to_its_page(tmp_path):
    """Where one file or one subfolder holds all keywords, its page lists them, and the folder's says so; the root lists all itself."""
    plant(tmp_path, {"s/a/b/x.py": "y = 1\n", "s/a/b/empty.py": "", "s/a/notes.txt": "text\n"})
    gen(tmp_path)
    out = tmp_path / "out"
    assert (
        "1 keyword here and below: 1 constant. All of them are in [`x.py`](x.py_kw.md), whose page lists them."
        in (out / "s/a/b/sub.md").read_text()
    )
    assert "All of them are in [`b/`](b/sub.md), whose page lists them." in (out / "s/a/sub.md").read_text()
    assert "`y`: constant [`x.py:1`](s/a/b/x.py_docs.md#__codelineno-source-1)" in (out / "sub.md").read_text()
    plant(tmp_path, {"s/a/b/z.py": "z = 1\n"})
    gen(tmp_path)
    assert "`z`: constant" in (out / "s/a/b/sub.md").read_text()
    assert "All of them" not in (out / "s/a/b/sub.md").read_text()


def test_a_source_that_cannot_be_read_or_parsed_costs_only_itself(tmp_path, capsys):
    """A broken file has its page with the error and its listing, and a warning until it is mended; the others have theirs."""
    plant(tmp_path, {"s/bad.py": "def f(:\n", "s/good.py": "x = 1\n", "s/bin.dat": b"\0\1"})
    assert gen(tmp_path, sources=("s",)) == 0
    bad = (tmp_path / "out/s/bad.py_docs.md").read_bytes()
    assert b"**It could not be parsed** ([line 1](#__codelineno-source-1)): " in bad
    assert listing_of(bad) == b"def f(:\n"
    assert "The listing is left out: it" in (tmp_path / "out/s/bin.dat_docs.md").read_text()
    assert listing_of((tmp_path / "out/s/good.py_docs.md").read_bytes()) == b"x = 1\n"
    told = "rankbook: warning: s/bad.py:1: invalid syntax; it could not be parsed, so its page tells what its other statements hold\n"
    assert capsys.readouterr().err == told
    for text in ("x = 2\n", "x = 3\n"):  # of a file that is not read again, and when nothing is
        assert gen(tmp_path, sources=("s",)) == 0
        assert capsys.readouterr().err == told
        plant(tmp_path, {"s/good.py": text})
    plant(tmp_path, {f"s/bad_{number}.py": "\0" for number in range(6)})
    assert gen(tmp_path, sources=("s",)) == 0
    *said, last = capsys.readouterr().err.splitlines()
    assert [line.split(":")[2].strip() for line in said] == ["s/bad.py", *(f"s/bad_{number}.py" for number in range(4))]
    assert last == "rankbook: warning: 2 more files could not be parsed; the page of each says why"
    for name in ("bad", *(f"bad_{number}" for number in range(6))):
        (tmp_path / f"s/{name}.py").write_text("y = 1\n")
    assert (gen(tmp_path, sources=("s",)), capsys.readouterr().err) == (0, "")


ABOUT = ("s/x.py_docs.md", "s/x.py_kw.md", "s/y.py_docs.md", "s/y.py_kw.md")


def test_a_source_that_changes_during_the_run_is_told_of(tmp_path):
    """Facts and listing of a page are of the same bytes: a source that changes in between is left for the next run."""
    plant(tmp_path, {"s/x.py": "x = 1\n", "s/y.py": "y = 1\n"})
    settings_ = load(tmp_path, {"sources": ("s",), "out": "out"})
    document(settings_)
    before = pages(tmp_path)
    settings_ = load(tmp_path, {"sources": ("s",), "out": "out", "jobs": 1})
    (tmp_path / "s/x.py").write_text("x = 3\n")
    (tmp_path / "s/y.py").write_text("y = 3\n")

    def meddle(step, done, _total):
        if (step, done) == ("analyse", 0):
            (tmp_path / "s/x.py").write_text("x = 2\n")
            (tmp_path / "s/y.py").unlink()

    report = document(settings_, progress=meddle)
    assert [warning.split(" has changed")[0] for warning in report.warnings] == ["s/x.py", "s/y.py"]
    assert {path: pages(tmp_path)[path] for path in ABOUT} == {path: before[path] for path in ABOUT}
    assert document(settings_).removed == ("s/y.py_docs.md", "s/y.py_kw.md")
    assert listing_of(pages(tmp_path)["s/x.py_docs.md"]) == b"x = 2\n"


SEED_HEADINGS = {
    "repository": """# Documentation: `s/x.py`
## File Metadata
## File Purpose
## Original Source
## High-Level Overview
## Detailed Analysis
### Code Structure
## Architecture & Design
### Role in PyTorch Architecture
## Dependencies
### Import Dependencies
## Code Patterns & Idioms
### Common Patterns
## Performance Considerations
### Performance Notes
## Security & Safety
### Security Considerations
## Testing & Usage
### Testing
### Usage Examples
## Related Files
### Related Files
## Cross-References""",
    "repo-book": """# Documentation: `x.py`
## File Metadata
## Original Source
## High-Level Overview
## Detailed Walkthrough
### Classes
### Functions
## Key Components
## Usage & Examples
## Performance & Security Notes
## Related Files
## Testing""",
}


@pytest.mark.parametrize("pack", SEED_HEADINGS)
@pytest.mark.parametrize("source", ["", "x = 1\n", "def f(:\n", "import torch\n\n\ndef test_x(): torch.cuda.synchronize()\n"])
def test_the_seed_layouts_have_their_headings_in_order(tmp_path, pack, source):
    """The two seed layouts keep every heading, whatever a file holds, and say below it what was looked for when nothing was found."""
    plant(tmp_path, {"pyproject.toml": '[tool.rankbook]\ntitle = "PyTorch"\n', "s/x.py": source})
    gen(tmp_path, "--pack", pack, sources=("s",))
    page = (tmp_path / "out/s/x.py_docs.md").read_text()
    assert re.findall(r"^#+ .*$", page, re.MULTILINE) == SEED_HEADINGS[pack].splitlines()
    sections = re.split(r"^#+ .*$", page, flags=re.MULTILINE)[1:]
    levels = [heading.count("#", 0, 4) for heading in SEED_HEADINGS[pack].splitlines()] + [1]
    silent = [not said.strip() for said in sections]
    assert [index for index, empty in enumerate(silent) if empty and levels[index + 1] <= levels[index]] == []


def test_sources_do_not_lie_in_the_folder_of_the_pages(tmp_path, monkeypatch, capsys):
    """A folder that is to hold the pages of what lies in it is an error, and nothing is written."""
    plant(tmp_path, {"s/a.py": "x = 1\n"})
    monkeypatch.chdir(tmp_path)
    assert main(["gen", "s", "--out", "s"]) == 2
    assert "s: the source 's' lies in the folder of the pages; name another folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*")] == ["s", "a.py"]
    assert main(["gen", "s", "--out", "."]) == 2
    assert "the pages would lie among the sources; name another folder" in capsys.readouterr().err


@pytest.mark.parametrize("out", ["/", "..", "sub/../..", ".git", ".git/book", "link", "link/book", "../other/out", "../book", "s/sub"])
def test_pages_have_a_folder_of_their_own(tmp_path, monkeypatch, capsys, out):
    """What holds the project, what is Git's, and what a link names outside of the project is refused, and nothing there changes."""
    other, root = tmp_path / "other", tmp_path / "root"
    plant(other, {"s/a.py": "x = 1\n"})
    assert gen(other, sources=("s",)) == 0
    plant(root, {"s/b.py": "x = 1\n", "s/sub/c.py": "x = 1\n", ".git/HEAD": "ref: refs/heads/main\n"})
    (root / "link").symlink_to(other / "out")
    before = pages(other)
    monkeypatch.chdir(root)
    capsys.readouterr()
    assert main(["gen", "s", "--out", out]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert pages(other) == before
    assert sorted(path.name for path in tmp_path.rglob("*.md") if "other" not in path.parts) == []


def test_the_folder_of_another_project_is_refused(tmp_path, capsys):
    """Where a project beside, or within, says that its pages lie, no other project's are put."""
    for name in ("one", "one/s/two"):
        plant(tmp_path / name, {"s/a.py": f"# {name}\n", "pyproject.toml": '[tool.rankbook]\nsources = ["s"]\nout = "out"\n'})
    plant(tmp_path / "three", {"s/b.py": "x = 1\n"})
    assert main(["gen", "--root", str(tmp_path / "one")]) == main(["gen", "--root", str(tmp_path / "one/s/two")]) == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.md")}
    for root, out in (("three", "one/out"), ("three", "one/s/two/out"), ("one", "one/s/two/out")):
        capsys.readouterr()
        assert main(["gen", "s", "--root", str(tmp_path / root), "--out", str(tmp_path / out)]) == 2
        assert f"the folder of the pages is that of the project in {(tmp_path / out).parent}; name a folder" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.md")} == before
    assert main(["gen", "s", "--root", str(tmp_path / "three"), "--out", str(tmp_path / "book")]) == 0


def test_the_book_of_another_project_is_nobody_elses(tmp_path, monkeypatch):
    """A book that lies below the folder of the pages keeps its pages and notes, in whole runs and in later ones; so do inventories."""
    inner = tmp_path / "out/inner"
    plant(inner, {"s/a.py": "x = 1\n"})
    assert gen(inner, sources=("s",)) == 0
    page = inner / "out/s/a.py_docs.md"
    page.write_text(page.read_text().replace("# A\n", "# A\n\n<!-- rankbook-notes -->\nmine\n<!-- /rankbook-notes -->\n", 1))
    assert gen(inner, sources=("s",)) == 0
    assert "mine" in page.read_text()
    inventory = b"# Sphinx inventory version 2\n# Project: Python\n# Version: 3\n# The remainder of this file is compressed using zlib.\n"
    inventory += zlib.compress(b"a py:function 1 a.html -\n", 9)
    plant(tmp_path, {"s/b.py": "x = 1\n", "s/c.py": "x = 2\n"})
    (tmp_path / "out/python.inv").write_bytes(inventory)
    (tmp_path / "out/copy.inv").write_bytes((inner / "out/objects.inv").read_bytes())
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    for step in range(3):
        if step == 1:
            (tmp_path / "s/c.py").unlink()
        if step == 2:
            (tmp_path / "out/inner/more.md").write_text("# More\n")
            (tmp_path / "out/inner/more.md").unlink()
        assert gen(tmp_path, sources=("s",)) == 0
        assert (tmp_path / "out/s/c.py_docs.md").exists() == (step == 0)
        assert {path: path.read_bytes() for path in before} == before
    for other in (inventory, inventory[: inventory.rindex(b"\n") + 1] + zlib.compress(b"a py:function 1 a.html -\n", 1)):
        (tmp_path / "out/objects.inv").write_bytes(other)
        assert gen(tmp_path, sources=("s",)) == 0
        assert (tmp_path / "out/objects.inv").read_bytes() == other
    (tmp_path / "out/copy.inv").unlink()


def test_pages_are_not_put_around_those_of_the_book(tmp_path, monkeypatch, capsys):
    """A folder that holds the book's own is refused, and the book with its notes stays where it is."""
    plant(tmp_path, {"s/a.py": "x = 1\n", "pyproject.toml": '[tool.rankbook]\nsources = ["s"]\nout = "docs/book"\n'})
    monkeypatch.chdir(tmp_path)
    assert main(["gen"]) == 0
    before = pages(tmp_path, "docs")
    assert main(["gen", "--out", "docs"]) == 2
    assert before
    assert "'docs' holds the pages of the book, which are in 'docs/book'; name a folder beside that" in capsys.readouterr().err
    assert pages(tmp_path, "docs") == before
    assert main(["gen", "--out", "docs/other"]) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--exclude", "*"], "the book has no source: the patterns of include and exclude leave none"),
        (["--include", "[[]"], "the book has no source: the patterns of include and exclude leave none"),
        (["--package-path", "nowhere"], "the setting package-path names 'nowhere', which is no folder"),
    ],
)
def test_what_leaves_nothing_is_told(tmp_path, capsys, words, said):
    """A pattern or a folder that was mistyped is no silent success, in the first run and in those that find nothing changed."""
    plant(tmp_path, {"s/a.py": "x = 1\n"})
    for _ in range(2):
        assert gen(tmp_path, *words, sources=("s",)) == 0
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("words", [["s/a.py"], ["./s/", "--out", "docs/../docs/suite"], ["s", "t/c"], ["u"]])
@pytest.mark.parametrize("command", ["gen", "check"])
def test_a_part_of_the_sources_does_not_take_the_place_of_the_book(tmp_path, monkeypatch, capsys, command, words):
    """Who names one file of a book does not lose the pages of all others, nor is told that they are out of step."""
    files = {"s/a.py": "x = 1\n", "t/c/b.py": "x = 2\n", "t/d.py": "x = 3\n", "u/e.py": "x = 4\n"}
    plant(tmp_path, {"pyproject.toml": '[tool.rankbook]\nsources = ["s", "t"]\nfindings = []\n', **files})
    monkeypatch.chdir(tmp_path)
    assert main(["gen"]) == 0
    page = tmp_path / "docs/suite/t/d.py_docs.md"
    page.write_text(page.read_text().replace("## ", "<!-- rankbook-notes -->\nMine.\n<!-- /rankbook-notes -->\n\n## ", 1))
    before = pages(tmp_path, "docs/suite")
    assert main([command, *words]) == 2
    said = capsys.readouterr().err
    assert said.startswith(
        f"rankbook: error: {tmp_path / 'pyproject.toml'}: the book in 'docs/suite' has the sources s, t, and the command"
    )
    assert said.count("\n") == 1
    assert pages(tmp_path, "docs/suite") == before


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("sources = [\n  'a.py',\n  'gone',\n]\n", "error: {}:2: the source 'gone' does not exist; name a file or a folder below the root"),
        ("sources = ['a.py', '../b']\n", "error: {}:2: the source '../b' lies outside the root; name a file or a folder below the root"),
        ("sources = ['a.py']\npack = 'gone'\n", "error: {}:3: there is no template pack 'gone'; known packs are "),
        (
            "sources = ['a.py']\n\npackage-path = ['gone']\n",
            "warning: pyproject.toml:4: the setting package-path names 'gone', which is no folder",
        ),
    ],
)
def test_a_mistake_of_a_setting_is_told_with_its_line(tmp_path, monkeypatch, capsys, setting, said):
    """Also of one that only shows when it is used; the command line has no line."""
    root = tmp_path / "root"
    plant(tmp_path, {"b/c.py": "x = 1\n", "root/a.py": "x = 1\n", "root/pyproject.toml": f"[tool.rankbook]\n{setting}"})
    monkeypatch.chdir(root)
    main(["gen"])
    assert f"rankbook: {said.format(root / 'pyproject.toml')}" in capsys.readouterr().err
    assert main(["gen", "none.py", "--out", "small", "--pack", "rankbook"]) == 2
    assert f"rankbook: error: {root}: the source 'none.py' does not exist; name" in capsys.readouterr().err


def test_a_part_of_the_sources_has_a_book_of_its_own(tmp_path, monkeypatch, capsys):
    """Named sources make a book in another folder, or in this one by force; all that the settings name, and more, needs neither."""
    files = {"s/a.py": "x = 1\n", "s/b.py": "x = 2\n", "t/c.py": "x = 3\n"}
    plant(tmp_path, {"pyproject.toml": '[tool.rankbook]\nsources = ["s"]\nfindings = []\ninclude = ["*.py"]\n', **files})
    monkeypatch.chdir(tmp_path)
    assert main(["gen", "s/a.py", "--out", "small"]) == 0
    assert "a.py_docs.md" in {Path(path).name for path in pages(tmp_path, "small")}
    for words in ([], ["s"], ["./s", "t"], ["."]):
        assert main(["gen", *words]) == 0
        assert main(["check", *words]) == 0
    assert main(["gen", "nowhere"]) == 2
    assert "the source 'nowhere' does not exist" in capsys.readouterr().err
    assert main(["gen", "s/a.py", "--force"]) == 0
    found = {path for path in pages(tmp_path, "docs/suite") if path.endswith("_docs.md")}
    assert found == {"s/a.py_docs.md"}


def test_a_mistake_of_rankbook_itself_costs_one_file(tmp_path, capsys, monkeypatch):
    """Where what reads tests fails on a file, its page goes without them, a warning names the place, and the others are as ever."""
    plant(tmp_path, {"test_a.py": "def test_a():\n    pass\n", "test_b.py": "def test_b():\n    pass\n"})
    real = generating.survey

    def failing(draft, path):
        if path == "test_a.py":
            raise KeyError("lost")
        return real(draft, path)

    with monkeypatch.context() as patched:
        patched.setattr(generating, "survey", failing)
        assert gen(tmp_path, "--jobs", "1") == 0
    said = capsys.readouterr().err
    assert re.search(r"test_a\.py: rankbook itself failed to tell its tests .* \(KeyError: 'lost', test_gen\.py:\d+\); its page goes", said)
    assert "test_b" not in said
    assert "## What is tested" not in (tmp_path / "out/test_a.py_docs.md").read_text()
    assert "## What is tested" in (tmp_path / "out/test_b.py_docs.md").read_text()
    assert gen(tmp_path) == 0
    assert "## What is tested" in (tmp_path / "out/test_a.py_docs.md").read_text()
    assert "failed" not in capsys.readouterr().err


@pytest.mark.parametrize(("count", "base"), [(120, "(number + 1) % 120"), (120, "number + 1"), (100, "number - 1")])
def test_a_line_of_inheritance_is_followed_so_far(tmp_path, capsys, count, base):
    """Classes in a circle, and more above one another than a suite has, cost what the farthest hold, with a warning, not the page."""
    bases = {number: eval(base, {"number": number}) for number in range(count)}
    classes = [f"class TestA{number}(TestA{above}):\n    def test_{number}(self): pass\n" for number, above in bases.items()]
    plant(tmp_path, {"s/test_a.py": "".join(classes), "s/b.py": "x = 1\n"})
    for step in range(3):
        (tmp_path / "s/b.py").write_text(f"x = {step}\n")
        assert gen(tmp_path, sources=("s",)) == 0
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert re.search(r"s/test_a\.py:\d+: the class TestA\d+ and \d+ others of the file have more ancestors than are looked at", said)
    page = (tmp_path / "out/s/test_a.py_docs.md").read_text()
    assert page.count(f"test_{count // 2}") > 64
    (tmp_path / "s/test_a.py").write_text("def test_a(): pass\n")
    assert gen(tmp_path, sources=("s",)) == 0
    assert capsys.readouterr().err == ""


def test_a_document_that_calls_itself_a_page_is_told_of(tmp_path, capsys):
    """A source whose front matter says what only pages say is left out with a warning, where it is not called like a page."""
    plant(tmp_path, {"s/a.py": "x = 1\n", "s/read.md": '---\nrankbook: {page: "file", source: "x"}\n---\n\n# Mine\n'})
    for _ in range(2):
        assert gen(tmp_path, sources=("s",)) == 0
        assert "s/read.md is left out: its head says that it is a page of a book, and it is called like none" in capsys.readouterr().err
    assert not (tmp_path / "out/s/read.md_docs.md").exists()
    (tmp_path / "s/read.md").write_text("# Mine\n")
    assert gen(tmp_path, sources=("s",)) == 0
    assert (tmp_path / "out/s/read.md_docs.md").exists()


NESTED = ("TestA::test_a", "TestA::TestB::test_a", "TestA::TestB::test_b")


def test_a_class_within_itself_is_read_once(tmp_path, capsys):
    """A class that derives from the one around it has its tests, and holds no other of its kind."""
    plant(tmp_path, {"s/test_a.py": "class TestA:\n    def test_a(self): pass\n    class TestB(TestA):\n        def test_b(self): pass\n"})
    assert gen(tmp_path, sources=("s",)) == 0
    assert capsys.readouterr().err == ""
    page = (tmp_path / "out/s/test_a.py_docs.md").read_text()
    assert set(re.findall(r"pytest (s/test_a\.py::\S+?)\"", page)) == {f"s/test_a.py::{name}" for name in NESTED}


@pytest.mark.parametrize("outrun", ["t/a.py", "t/c.py"])
def test_a_source_that_is_saved_meanwhile(tmp_path, monkeypatch, outrun):
    """It costs the file its pages and a warning, whichever of its folder it is; the next run makes them."""
    plant(tmp_path, {"pyproject.toml": '[tool.rankbook]\nsources = ["t"]\n', **{f"t/{name}.py": f"{name} = 1\n" for name in "abc"}})
    given, is_unchanged = load(tmp_path, {"jobs": 1}), generating.pages.is_unchanged
    monkeypatch.setattr(generating.pages, "is_unchanged", lambda module, data: module.source.path != outrun and is_unchanged(module, data))
    said = f"{outrun} has changed while it was being documented, so its pages are not written; run again"
    assert said in document(given).warnings
    out = given.below_root(given.out)
    assert [(out / f"t/{name}.py_docs.md").is_file() for name in "abc"] == [f"t/{name}.py" != outrun for name in "abc"]
    monkeypatch.undo()
    monkeypatch.setenv("RANKBOOK_CACHE_DIR", str(tmp_path / "cache"))
    assert said not in document(given).warnings
    assert (out / f"{outrun}_docs.md").is_file()
    assert f"{outrun.removeprefix('t/')}_docs.md" in (out / "t/index.md").read_text()
