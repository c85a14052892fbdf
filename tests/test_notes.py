"""Notes that a person writes on a generated page: every run keeps them byte for byte, wherever their source or test goes."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess

import markdown
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbook import freshness, listings
from rankbook.cli import main
from rankbook.config import load
from rankbook.errors import PageError
from rankbook.pages import Writer
from rankbook.pages.notes import Note, block, notes_of, placed, without_notes
from rankbook.site.addresses import Addresses
from rankbook.site.markdown import render

END = "<!-- /rankbook-notes -->\n"
SUITE = '''\
import unittest


class TestRing(unittest.TestCase):
    def test_token(self):
        """The token comes back."""
        self.assertEqual(7 % 7, 0)

    def test_size(self):
        self.assertEqual(len("ring"), 4)


class TestTree(unittest.TestCase):
    def test_root(self):
        self.assertTrue("root")
'''
STRANGE = (
    "Ends with spaces   \r\nand a tab\t\n\n\n| a | b |\n|---|---|\n| [x](y.md) | `<b>` |\n\n"
    "```md\n<!-- /rankbook-notes -->\n```\n\u00e9\u2028\x0c\n"
)


def gen(root, *options):
    return main(["gen", "--root", str(root), "--jobs", "1", *options])


def page(root, source="s/test_ring.py"):
    return root / f"out/{source}_docs.md"


def note(text, name=""):
    return f"<!-- rankbook-notes{' ' + name if name else ''} -->\n{text}{END}"


def write_note(file, text, name=""):
    """Write a note where a person may: below the title."""
    head, title, rest = file.read_bytes().decode().partition("\n# ")
    line, _, tail = rest.partition("\n")
    file.write_bytes(f"{head}{title}{line}\n{note(text, name)}{tail}".encode())


def texts(file):
    return [(each.name, each.text.decode()) for each in notes_of(file.read_bytes(), file.name)]


@pytest.fixture
def project(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["s"]\nout = "out"\ntitle = "Book"\nfindings = []\n')
    (tmp_path / "s/test_ring.py").write_text(SUITE)
    (tmp_path / "s/other.py").write_text("x = 1\n")
    assert gen(tmp_path) == 0
    return tmp_path


def git(root, *words):
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(root), *settings, *words], check=True, capture_output=True)


def test_notes_are_kept_byte_for_byte_through_many_runs(project):
    """Whatever a note holds, and whatever changes around it, its bytes stay."""
    write_note(page(project), STRANGE, "TestRing::test_token")
    write_note(page(project), "About the whole page.\n")
    wanted = [("", "About the whole page.\n"), ("TestRing::test_token", STRANGE)]
    for number in range(25):
        (project / "s/test_ring.py").write_text(f"# {number}\n{SUITE}")
        assert gen(project) == 0
        assert texts(page(project)) == wanted
    assert f"# 24\n{SUITE}" in page(project).read_text()


@pytest.mark.parametrize("has_cache", [True, False])
def test_notes_go_along_when_two_sources_change_places(project, has_cache):
    """Whatever it is about, a note goes with its source, on each of its pages; a source that is copied over another takes none along."""
    one, two, kept = project / "s/test_ring.py", project / "s/test_tree.py", project / "s/kept.py"
    two.write_text(SUITE.replace("Ring", "Tree2"))
    gen(project)
    keywords = project / "out/s/test_ring.py_kw.md"
    write_note(page(project), "of one\n")
    write_note(page(project), "of its test\n", "TestTree::test_root")
    write_note(keywords, "of its words\n")
    write_note(page(project, "s/test_tree.py"), "of two\n")
    gen(project)
    one.rename(kept)
    two.rename(one)
    kept.rename(two)
    if not has_cache:
        shutil.rmtree(freshness.cache_folder(load(project)))
    gen(project)
    assert texts(page(project)) == [("", "of two\n")]
    assert texts(page(project, "s/test_tree.py")) == [("", "of one\n"), ("TestTree::test_root", "of its test\n")]
    assert texts(project / "out/s/test_tree.py_kw.md") == [("", "of its words\n")]
    assert texts(keywords) == []
    assert not (project / "out/orphaned-notes.md").exists()
    one.write_bytes(two.read_bytes())
    two.write_text("x = 2\n")
    gen(project)
    assert texts(page(project)) == [("", "of two\n")]
    assert texts(page(project, "s/test_tree.py")) == [("", "of one\n")]


CHAINS = [
    {"b": "c", "a": "b"},
    {"a": "b", "b": "c", "c": "d"},
    {"a": "b", "b": "c", "c": "a"},
    {"a": "d", "b": "a", "c": "b"},
    {"a": "b", "b": "a", "c": "d"},
]


@pytest.mark.parametrize("moved", CHAINS, ids=str)
@pytest.mark.parametrize("has_cache", [True, False])
def test_notes_go_along_when_sources_take_each_others_places(project, moved, has_cache):
    """However many are renamed at once, a note goes with the content of its source, on each of its pages."""

    def source(name):
        return project / f"s/test_{name}.py"

    for name in moved:
        source(name).write_text(f"def test_x():\n    assert '{name}'\n")
    gen(project)
    for name in moved:
        write_note(page(project, f"s/test_{name}.py"), f"of {name}\n")
        write_note(page(project, f"s/test_{name}.py"), f"of the test of {name}\n", "test_x")
        write_note(project / f"out/s/test_{name}.py_kw.md", f"of the words of {name}\n")
    gen(project)
    held = {name: source(name).read_bytes() for name in moved}
    for name in moved:
        source(name).unlink()
    for name, to in moved.items():
        source(to).write_bytes(held[name])
    if not has_cache:
        shutil.rmtree(freshness.cache_folder(load(project)))
    assert gen(project) == 0
    for name in moved:
        at = moved[name]
        assert texts(page(project, f"s/test_{at}.py")) == [("", f"of {name}\n"), ("test_x", f"of the test of {name}\n")]
        assert texts(project / f"out/s/test_{at}.py_kw.md") == [("", f"of the words of {name}\n")]
    assert not (project / "out/orphaned-notes.md").exists()


@pytest.mark.parametrize("is_forced", [True, False])
def test_a_note_leaves_a_page_that_is_left_as_it_is(project, capsys, is_forced):
    """It stands in one place, forth and back again, and what somebody has edited on the page around it stays byte for byte."""
    write_note(page(project), "Mine.\n")
    gen(project)
    without = page(project).read_text().replace('len("ring"), 4', 'len("ring"), 5').replace(f"{note('Mine.' + chr(10))}\n", "")
    page(project).write_text(page(project).read_text().replace('len("ring"), 4', 'len("ring"), 5'))
    source, other = project / "s/test_ring.py", project / "s/test_circle.py"
    for _ in range(2):
        source.rename(other)
        assert gen(project) == 0
        assert page(project).read_text() == without
        assert texts(page(project, "s/test_circle.py")) == [("", "Mine.\n")]
        other.rename(source)
        assert gen(project) == 0
        assert texts(page(project)) == [("", "Mine.\n")]
        assert page(project).read_text().replace(f"{note('Mine.' + chr(10))}\n", "") == without
        assert not page(project, "s/test_circle.py").exists()
        assert not (project / "out/orphaned-notes.md").exists()
    source.rename(other)
    assert gen(project, *(["--force"] if is_forced else [])) == 0
    assert page(project).exists() != is_forced
    source.write_text(SUITE)
    other.unlink()
    assert gen(project, "--force") == 0
    assert texts(page(project)) == [("", "Mine.\n")]
    assert not (project / "out/orphaned-notes.md").exists()


def test_a_note_without_a_source_leaves_a_page_that_is_left_as_it_is(project):
    """It stands with those that belong nowhere, and no longer on the page as well."""
    write_note(page(project), "Mine.\n")
    gen(project)
    page(project).write_text(page(project).read_text().replace('len("ring"), 4', 'len("ring"), 5'))
    (project / "s/test_ring.py").unlink()
    for options in ([], [], ["--force"]):
        assert gen(project, *options) == 0
        assert texts(project / "out/orphaned-notes.md") == [("s/test_ring.py_docs.md", "Mine.\n")]
        assert page(project).exists() != bool(options)
        assert options or texts(page(project)) == []


def test_a_note_that_is_written_meanwhile_is_named_with_its_page(project, monkeypatch, capsys):
    """The error says where the page lies below the root."""
    (project / "s/test_ring.py").write_text(f"{SUITE}# more\n")
    real = Writer.find

    def slow(writer, paths):
        found = real(writer, paths)
        if not texts(page(project)):
            write_note(page(project), "Mine.\n")
        return found

    with monkeypatch.context() as patched:
        patched.setattr(Writer, "find", slow)
        assert gen(project) == 2
    assert "out/s/test_ring.py_docs.md: somebody has written a note on the page meanwhile" in capsys.readouterr().err
    assert gen(project) == 0
    assert texts(page(project)) == [("", "Mine.\n")]


def killed(root, where, *, before=False):
    """Run `gen`, and kill it when it has put a page in its place, or removed it; or right before."""
    child = os.fork()
    if not child:

        def dying(real, at):
            def call(*words, **options):
                is_here = os.fspath(words[at]).endswith(where)
                if is_here and before:
                    os._exit(9)
                real(*words, **options)
                if is_here:
                    os._exit(9)

            return call

        os.replace, os.unlink = dying(os.replace, 1), dying(os.unlink, 0)
        gen(root)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.parametrize("is_edited", [True, False])
def test_a_note_of_similar_sources_is_not_doubled_by_a_run_that_is_killed(project, is_edited):
    """Of two that are moved at once, each keeps its note, though the page of one is new no more when the next run looks."""
    for name in "ab":
        (project / f"s/test_{name}.py").write_text(f"{SUITE}# {name}\n")
    gen(project)
    write_note(page(project, "s/test_a.py"), "About a.\n")
    gen(project)
    (project / "s/new").mkdir()
    for name in "ab":
        new = (project / f"s/test_{name}.py").rename(project / f"s/new/test_{name}.py")
        new.write_text(new.read_text() + "# more\n" * is_edited)
    killed(project, "out/s/new/test_a.py_docs.md")
    assert gen(project) == 0
    assert texts(page(project, "s/new/test_a.py")) == [("", "About a.\n")]
    assert texts(page(project, "s/new/test_b.py")) == []
    assert not (project / "out/orphaned-notes.md").exists()


def test_a_note_that_moves_is_one_after_runs_that_are_killed_twice(project):
    """What a run had begun, the next one ends, and if that is killed, the one after it."""
    write_note(page(project), "Of a test.\n", "TestRing::test_token")
    gen(project)
    (project / "s/test_ring.py").rename(project / "s/test_circle.py")
    killed(project, "out/s/test_circle.py_docs.md")
    killed(project, "out/s/test_ring.py_docs.md", before=True)
    assert gen(project) == 0
    assert texts(page(project, "s/test_circle.py")) == [("TestRing::test_token", "Of a test.\n")]
    assert not page(project).exists()
    assert not (project / "out/orphaned-notes.md").exists()


def test_a_move_that_a_killed_run_has_begun_is_taken_back(project):
    """When the source is back before the next run, so is its note, once."""
    write_note(page(project), "Mine.\n")
    gen(project)
    (project / "s/test_ring.py").rename(project / "s/test_circle.py")
    killed(project, "out/s/test_circle.py_docs.md")
    (project / "s/test_circle.py").rename(project / "s/test_ring.py")
    assert gen(project) == 0
    assert texts(page(project)) == [("", "Mine.\n")]
    assert not page(project, "s/test_circle.py").exists()
    assert not (project / "out/orphaned-notes.md").exists()


def test_sources_that_change_places_keep_equal_notes_when_the_run_is_killed(project):
    """Two notes that say the same are two, whichever page was written first."""
    one, two, kept = project / "s/test_ring.py", project / "s/test_tree.py", project / "s/kept.py"
    two.write_text(SUITE.replace("Ring", "Tree2"))
    gen(project)
    for name in ("test_ring", "test_tree"):
        write_note(page(project, f"s/{name}.py"), "Flaky.\n")
    gen(project)
    one.rename(kept)
    two.rename(one)
    kept.rename(two)
    killed(project, "out/s/test_ring.py_docs.md")
    assert gen(project) == 0
    assert texts(page(project)) == texts(page(project, "s/test_tree.py")) == [("", "Flaky.\n")]
    assert not (project / "out/orphaned-notes.md").exists()


HOSTILE = "--><img src=x onerror=pwn()>"


def test_the_name_of_a_test_is_no_html(project):
    """A parameter that would end the comment of a marker is spelt otherwise on each page on which its note stands."""
    made = f"import pytest\n\n\n@pytest.mark.parametrize('x', ['{HOSTILE}', 'b'])\ndef test_p(x):\n    pass\n"
    (project / "s/test_p.py").write_text(made)
    gen(project)
    at, orphans, name = page(project, "s/test_p.py"), project / "out/orphaned-notes.md", f"test_p[{HOSTILE}]"
    write_note(at, "mine\n", name)
    for _ in range(2):
        assert gen(project) == 0
        assert texts(at) == [(name, "mine\n")]
        marker = next(line for line in at.read_text().splitlines() if line.startswith("<!-- rankbook-notes"))
        assert marker.partition("-->")[2] == ""
        (project / "s/test_p.py").write_text(made.replace(HOSTILE, "c"))
        assert gen(project) == 0
        assert texts(orphans) == [(f"s/test_p.py_docs.md::{name}", "mine\n")]
        assert "<img" not in markdown.markdown(orphans.read_text())
        (project / "s/test_p.py").write_text(made)
    orphans.write_text(f"# Notes\n\n{note('mine' + chr(10), f's/test_p.py_docs.md::test_q[{HOSTILE}]')}")
    assert gen(project) == 0
    assert "<img" not in orphans.read_text()
    assert texts(orphans) == [(f"s/test_p.py_docs.md::test_q[{HOSTILE}]", "mine\n")]


NAMES = st.text(st.sampled_from("a<>-! \\x3ce5[%")).filter(lambda name: name.strip() and name == name.strip())


@given(NAMES)
def test_a_marker_gives_its_name_back(name):
    """Whatever a test is called, a marker is one comment, and is read as it was meant."""
    written = block(name, b"mine\n")
    assert [each.name for each in notes_of(written, "p.md")] == [name]
    assert written.splitlines()[0].count(b"-->") == 1


@pytest.mark.parametrize("pack", ["rankbook", "repository", "repo-book"])
def test_a_note_stands_where_it_belongs(project, pack):
    """Wherever a person wrote it: one about the page behind its head, one about a test behind the table of its class."""
    gen(project, "--pack", pack)
    for name in ("TestTree::test_root", "", "TestRing::test_size"):
        write_note(page(project), f"About {name}.\n", name)
    gen(project, "--pack", pack)
    made = page(project).read_text()
    head, _, rest = made.partition("\n## ")
    assert note("About .\n") in head
    if pack == "rankbook":
        ring = rest.index("`test_size`")
        assert ring < rest.index("About TestRing::test_size.") < rest.index("`test_root`") < rest.index("About TestTree::test_root.")
    again = page(project).read_bytes()
    assert gen(project, "--pack", pack) == 0
    assert page(project).read_bytes() == again


def test_a_note_about_a_function_is_not_that_of_a_method(project):
    """A function stands below the classes, one of which may have a method of its name."""
    (project / "s/test_ring.py").write_text(SUITE + "\n\ndef test_size():\n    pass\n")
    gen(project)
    write_note(page(project), "About the function.\n", "test_size")
    gen(project)
    made = page(project).read_text()
    assert made.index("### Test functions") < made.index("About the function.") < made.index("\n## What it needs")


def test_a_run_without_what_earlier_ones_kept_makes_the_same_page(project):
    """A fresh checkout has the pages and no cache."""
    write_note(page(project), STRANGE, "TestTree::test_root")
    gen(project)
    warm = page(project).read_bytes()
    shutil.copytree(project, project.parent / "clone")
    assert gen(project.parent / "clone") == 0
    assert page(project.parent / "clone").read_bytes() == warm


def test_a_note_does_not_hide_the_listing_from_the_proof(project):
    """The proof wing finds the source on a page with notes, and takes no marker for a comment of its own."""
    write_note(page(project), "```python\nx = 1\n```\n", "TestRing::test_token")
    gen(project)
    found = listings.collect(page(project), "page.md")
    assert [each.problem for each in found] == [None] * len(found)
    assert [each.data() for each in found if each.about] == [SUITE.encode()]


@pytest.mark.parametrize("command", ["gen", "check"])
@pytest.mark.parametrize("name", ["s/d/test_ring.py_docs.md", "s/d/index.md", "suite-marks.md"])
def test_pages_with_notes_that_git_brings_back_are_known(project, capsys, command, name):
    """After a move on another branch and back again, the notes of this one are no news: nobody has written them meanwhile."""
    (project / "s/d").mkdir()
    (project / "s/test_ring.py").rename(project / "s/d/test_ring.py")
    (project / "s/d/test_ring.py").write_text(f"import pytest\n\n\n@pytest.mark.slow\ndef test_slow():\n    pass\n\n\n{SUITE}")
    gen(project)
    write_note(project / "out" / name, "Mine.\n")
    gen(project)
    git(project, "init", "-q", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-qm", "one")
    git(project, "checkout", "-qb", "moved")
    git(project, "mv", "s/d", "s/e")
    (project / "s/e/test_ring.py").write_text(SUITE)
    gen(project)
    git(project, "add", ".")
    git(project, "commit", "-qm", "two")
    git(project, "checkout", "-q", "main")
    capsys.readouterr()
    assert main([command, "--root", str(project), "--jobs", "1"]) == 0
    assert capsys.readouterr().err == ""
    assert gen(project) == 0
    assert texts(project / "out" / name) == [("", "Mine.\n")]
    assert main(["check", "--root", str(project)]) == 0


@pytest.mark.parametrize("heading", ["", "## Original Source\n\n"])
@pytest.mark.parametrize("place", ["\n## What is tested", "\n<!-- rankbook-seal"], ids=["above the listing", "below it"])
def test_a_copy_of_the_listing_in_a_note_is_a_listing_like_any_other(project, heading, place):
    """The proof wing and the site know the source's own listing from one in a note that has its heading and its options."""
    copied = f'{heading}```python {{#source linenums="1"}}\nx = 1\n```\n'
    whole = page(project).read_text()
    page(project).write_text(whole.replace(place, f"\n{note(copied)}{place}"))
    for _ in range(2):
        found = listings.collect(page(project), "page.md")
        assert [each.data() for each in found if each.about] == [SUITE.encode()]
        assert [(each.data(), each.about) for each in found if each.text == "x = 1\n"] == [(b"x = 1\n", None)]
        assert [each.problem for each in found] == [None] * len(found)
        assert gen(project) == 0
    made = render(page(project).read_text().split("\n---\n", 1)[1], "s/test_ring.py_docs.md", Addresses())
    assert made.html.count("rankbook-source") == 1
    assert made.lines == SUITE.count("\n")


@pytest.mark.parametrize("how", ["mv", "mv and edit", "git mv", "git mv and edit", "git mv, commit, edit", "rewritten"])
def test_a_note_goes_along_with_a_moved_source(project, how):
    """By content, by what Git says, by the lines that are the same, or by the tests that the notes name."""
    if how.startswith("git"):
        git(project, "init", "-q")
        git(project, "add", "s", "pyproject.toml")
        git(project, "commit", "-qm", "one")
    for name in ("", "TestRing::test_token"):
        write_note(page(project), f"About {name}.\n", name)
    gen(project)
    (project / "s/below").mkdir()
    new = project / "s/below/test_circle.py"
    if how.startswith("git"):
        git(project, "mv", "s/test_ring.py", "s/below/test_circle.py")
    else:
        (project / "s/test_ring.py").rename(new)
    if "commit" in how:
        git(project, "commit", "-qm", "two")
        new.write_text(SUITE.replace("self.assert", "\n        self.a = 1\n        self.assert").replace("    def", "    # one\n    def"))
    elif "edit" in how:
        new.write_text(SUITE + "\n# more\n")
    elif how == "rewritten":
        new.write_text("from unittest import TestCase as Case\nclass TestRing(Case):\n  def test_token(me): pass\n")
    (project / "s/unrelated.py").write_text("y = 2\n")
    assert gen(project) == 0
    assert not page(project).exists()
    assert texts(page(project, "s/below/test_circle.py")) == [("", "About .\n"), ("TestRing::test_token", "About TestRing::test_token.\n")]
    assert not (project / "out/orphaned-notes.md").exists()


def test_a_note_on_a_folder_goes_along_with_it(project):
    """A folder is moved where most of its files went."""
    write_note(project / "out/s/index.md", "About s.\n")
    gen(project)
    (project / "s").rename(project / "t")
    (project / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["t"]\nout = "out"\ntitle = "Book"\nfindings = []\n')
    assert gen(project) == 0
    assert texts(project / "out/t/index.md") == [("", "About s.\n")]
    assert not (project / "out/s").exists()


def test_a_note_goes_along_with_a_test_that_moves_to_another_file(project):
    """The only changed file that has the test now, and did not before, gets its note."""
    write_note(page(project), "About the root.\n", "TestTree::test_root")
    gen(project)
    ring, tree = SUITE.split("\n\nclass TestTree")
    (project / "s/test_ring.py").write_text(ring)
    (project / "s/test_other.py").write_text(f"import unittest\n\n\nclass TestTree{tree}")
    assert gen(project) == 0
    assert texts(page(project, "s/test_other.py")) == [("TestTree::test_root", "About the root.\n")]
    assert texts(page(project)) == []


@pytest.mark.parametrize("to", ["s/test_other.py", "s/test_zero.py"])
def test_a_note_whose_test_moves_is_not_lost_when_a_page_cannot_be_written(project, monkeypatch, to):
    """It lies on a page or with those without a place, whichever page is written first, and the next run puts it where it belongs."""
    (project / "s/test_zero.py").write_text("x = 1\n")
    tree = SUITE.partition("\n\nclass TestTree")[2]
    write_note(page(project), "About the root.\n", "TestTree::test_root")
    gen(project)
    (project / "s/test_ring.py").write_text(SUITE.partition("\n\nclass TestTree")[0])
    (project / to).write_text(f"import unittest\n\n\nclass TestTree{tree}")
    real = os.replace

    def full(source, target, **options):
        if os.fspath(target).endswith(f"{to}_docs.md"):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(source, target, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        assert gen(project) == 2
    files = (page(project), page(project, to), project / "out/orphaned-notes.md")
    assert "About the root.\n" in [text for file in files if file.exists() for _, text in texts(file)]
    assert gen(project) == 0
    assert texts(page(project, to)) == [("TestTree::test_root", "About the root.\n")]
    assert texts(page(project)) == []
    assert not (project / "out/orphaned-notes.md").exists()


def test_a_test_of_the_same_name_elsewhere_does_not_take_a_note(project):
    """A file that had a test of this name before is not where the note's test went."""
    (project / "s/twin.py").write_text(SUITE)
    gen(project)
    write_note(page(project), "About the root.\n", "TestTree::test_root")
    gen(project)
    (project / "s/test_ring.py").write_text(SUITE.partition("\n\nclass TestTree")[0])
    (project / "s/twin.py").write_text(f"{SUITE}# more\n")
    assert gen(project) == 0
    assert texts(page(project, "s/twin.py")) == []
    assert texts(project / "out/orphaned-notes.md") == [("s/test_ring.py_docs.md::TestTree::test_root", "About the root.\n")]


def test_a_note_without_its_test_is_told_of_and_kept_until_the_test_comes_back(project, capsys):
    """It stands on a page of its own, each run and each check names it, and it goes back with its bytes."""
    write_note(page(project), STRANGE, "TestTree::test_root")
    gen(project)
    (project / "s/test_ring.py").write_text(SUITE.partition("\n\nclass TestTree")[0])
    capsys.readouterr()
    assert main(["check", "--root", str(project)]) == 1
    said = capsys.readouterr()
    assert "missing   out/orphaned-notes.md" in said.out
    assert "out/s/test_ring.py_docs.md:" in said.err
    assert not (project / "out/orphaned-notes.md").exists()
    assert gen(project) == 0
    assert texts(project / "out/orphaned-notes.md") == [("s/test_ring.py_docs.md::TestTree::test_root", STRANGE)]
    line = (project / "out/orphaned-notes.md").read_text().splitlines().index(
        "<!-- rankbook-notes s/test_ring.py_docs.md::TestTree::test_root -->"
    ) + 1
    sentence = (
        f"out/orphaned-notes.md:{line}: this note is about the test TestTree::test_root of s/test_ring.py, which is gone from the book"
    )
    assert sentence in capsys.readouterr().err
    assert gen(project) == 0
    assert sentence in capsys.readouterr().err
    assert main(["check", "--root", str(project)]) == 0
    assert sentence in capsys.readouterr().err
    (project / "s/test_ring.py").write_text(SUITE)
    assert gen(project) == 0
    assert texts(page(project)) == [("TestTree::test_root", STRANGE)]
    assert not (project / "out/orphaned-notes.md").exists()
    assert "orphaned" not in capsys.readouterr().err


def test_notes_of_a_source_that_is_gone_are_kept(project):
    """All of them, beside those that are there, and what a person wrote around them."""
    for name in ("", "TestRing::test_token", "TestRing::test_size"):
        write_note(page(project), f"About {name}.\n", name)
    gen(project)
    (project / "s/test_ring.py").unlink()
    gen(project)
    orphans = project / "out/orphaned-notes.md"
    assert len(texts(orphans)) == 3
    orphans.write_text(orphans.read_text().replace("# Notes without a place\n", "# Notes without a place\n\nMine.\n"))
    (project / "s/test_ring.py").write_text(SUITE.replace("test_size", "test_length"))
    assert gen(project) == 0
    assert texts(orphans) == [("s/test_ring.py_docs.md::TestRing::test_size", "About TestRing::test_size.\n")]
    assert "Mine." in orphans.read_text()
    assert sorted(texts(page(project))) == [("", "About .\n"), ("TestRing::test_token", "About TestRing::test_token.\n")]


@pytest.mark.parametrize("at", ["s/index.md", "s/doc.md", "index.md", "suite-words.md"])
def test_a_note_about_a_test_goes_from_the_page_of_a_folder_to_that_of_its_file(project, capsys, at):
    """Where just one file of the folder, or below it, has the test; else a sentence says why it has no place."""
    write_note(project / "out" / at, "Mine.\n", "TestRing::test_token")
    assert gen(project) == 0
    assert texts(page(project)) == [("TestRing::test_token", "Mine.\n")]
    assert texts(project / "out" / at) == []
    assert not (project / "out/orphaned-notes.md").exists()
    (project / "s/test_twin.py").write_text(SUITE)
    gen(project)
    write_note(project / "out" / at, "Which?\n", "TestTree::test_root")
    capsys.readouterr()
    assert main(["check", "--root", str(project)]) == 1
    assert gen(project) == 0
    where = "below s" if at.startswith("s/") else "of the book"
    sentence = f"this note is about the test TestTree::test_root, which is not in just one file {where}; "
    said = capsys.readouterr().err
    assert f"{sentence}`rankbook gen` moves it" in said
    assert f"{sentence}move it, or delete it" in said
    assert texts(project / "out/orphaned-notes.md") == [(f"{at}::TestTree::test_root", "Which?\n")]
    (project / "s/test_ring.py").write_text(SUITE.partition("\n\nclass TestTree")[0])
    assert gen(project) == 0
    assert texts(page(project, "s/test_twin.py")) == [("TestTree::test_root", "Which?\n")]
    assert not (project / "out/orphaned-notes.md").exists()


def test_two_notes_that_say_the_same_are_two(project):
    """One whose source comes back goes back to its page, and does not stand in for the other, whose source goes at the same time."""
    (project / "s/other.py").write_text("x = 1\n")
    gen(project)
    write_note(page(project), "Flaky on H100.\n")
    gen(project)
    (project / "s/test_ring.py").unlink()
    gen(project)
    write_note(page(project, "s/other.py"), "Flaky on H100.\n")
    gen(project)
    (project / "s/test_ring.py").write_text(SUITE)
    (project / "s/other.py").unlink()
    assert gen(project) == 0
    assert texts(page(project)) == [("", "Flaky on H100.\n")]
    assert texts(project / "out/orphaned-notes.md") == [("s/other.py_docs.md", "Flaky on H100.\n")]


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("<!-- rankbook-notes -->\nmine\n", 1, "nothing ends this note"),
        (f"mine\n{END}", 2, "this marker ends a note that nothing begins"),
        (f"<!-- rankbook-notes a -->\n<!-- rankbook-notes b -->\n{END}", 2, "this note begins within the one of line"),
        (f"<!-- rankbook-notes --> mine\n{END}", 1, "does not stand alone on its line"),
        ("<!-- rankbook-note -->\nmine\n<!-- /rankbook-note -->\n", 1, "this marker of a note is misspelt"),
        (f"<!-- rankbook-notes -->\nmine\n{END.replace('/', '/ ')}", 3, "this marker of a note is misspelt"),
        ("<!-- Rankbook notes: a -->\nmine\n", 1, "this marker of a note is misspelt"),
        (f"<!-- rankbook-notes -->\n```\nopen\n{END}", 2, "nothing closes this fence"),
    ],
)
@pytest.mark.parametrize("is_warm", [True, False])
def test_a_broken_marker_is_an_error_before_anything_is_written(project, capsys, text, line, sentence, is_warm):
    """One sentence names the page and the line, and no page changes."""
    lines = page(project).read_text().split("\n")
    at = next(number for number, each in enumerate(lines) if each.startswith("# ")) + 1
    fence = next(number for number, each in enumerate(lines) if "{#source" in each)
    if "fence" in sentence:  # below the listing, whose own fence would close it
        at = next(number for number, each in enumerate(lines) if number > fence and each == "```") + 1
    page(project).write_text("\n".join([*lines[:at], *text.split("\n"), *lines[at:]]))
    (project / "s/test_ring.py").write_text("x = 1\n")
    (project / "s/other.py").write_text("x = 2\n")
    before = {path: path.read_bytes() for path in (project / "out").rglob("*") if path.is_file()}
    capsys.readouterr()
    assert main(["gen", "--root", str(project), *([] if is_warm else ["--jobs", "2", "--force"])]) == 2
    said = capsys.readouterr().err
    assert f"out/s/test_ring.py_docs.md:{at + line}: " in said
    assert sentence in said
    assert {path: path.read_bytes() for path in (project / "out").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "text",
    [
        "- ```bash {.no-run}\n  x\n  ```\n",
        "1. one\n2. - ~~~text\n     x\n     ~~~\n",
        "> ```text\n> x\n\nmore\n",
        "> - ```text\n>   x\n>   ```\n",
        "* ```text\n  x\n\n  y\nmore\n",
    ],
)
def test_a_fence_of_a_note_ends_with_what_it_stands_in(project, text):
    """One that begins in the line of a list's entry, or that its quote ends, hides neither the end of its note nor the next one."""
    write_note(page(project), text)
    write_note(page(project), text, "TestRing::test_token")
    (project / "s/test_ring.py").write_text(SUITE + "\n\nx = 1\n")
    assert gen(project) == 0
    assert texts(page(project)) == [("", text), ("TestRing::test_token", text)]
    assert main(["check", "--root", str(project)]) == 0


def test_a_marker_that_a_fence_hides_is_named(project, capsys):
    """Where the end of a note lies in a fence that a later one closes, that fence is named."""
    lines = page(project).read_text().split("\n")
    at = next(number for number, each in enumerate(lines) if each.startswith("# ")) + 1
    page(project).write_text("\n".join([*lines[:at], "<!-- rankbook-notes -->", "    ```", END.rstrip(), "", *lines[at:]]))
    capsys.readouterr()
    assert main(["gen", "--root", str(project)]) == 2
    assert (
        f"out/s/test_ring.py_docs.md:{at + 1}: nothing ends this note: the marker below it lies in the fence of line {at + 2}; "
        "write <!-- /rankbook-notes --> on a line below it, outside of fences\n"
    ) in capsys.readouterr().err


def test_a_source_that_shows_markers_has_no_notes(tmp_path):
    """What a listing holds is no note, whatever it looks like."""
    (tmp_path / "s").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["s"]\nout = "out"\ntitle = "Book"\nfindings = []\n')
    (tmp_path / "s/a.md").write_text(f"# A\n\n```\n{note('inner')}```\n\n{note('outer')}<!-- rankbook-notes -->\n")
    (tmp_path / "s/b.py").write_text(f'"""<!-- rankbook-notes -->\n\n<!-- rankbook-notes -->\n"""\n# {END}')
    for _ in range(2):
        assert gen(tmp_path) == 0
        assert main(["check", "--root", str(tmp_path)]) == 0
    assert not (tmp_path / "out/orphaned-notes.md").exists()


@pytest.mark.parametrize("extensions", [[], ["tables", "md_in_html", "attr_list", "admonition", "pymdownx.superfences"]])
def test_markers_are_comments_of_the_site_and_notes_are_markdown(project, extensions):
    """What stands between the markers is rendered, the table above it ends where it did, and neither marker nor seal shows."""
    write_note(page(project), "It is *slow*:\n\n- once\n- [twice](other.py_docs.md)\n", "TestRing::test_size")
    write_note(page(project), "# Mine\nright below the marker\n")
    gen(project)
    text = page(project).read_text().split("\n---\n", 1)[1]
    html = markdown.markdown(text, extensions=extensions)
    shown = re.sub(r"<!--.*?-->", "", html, flags=re.DOTALL)
    assert html.count("<!--") == len(re.findall(r"^<!-- ", text, re.MULTILINE))
    assert "rankbook-" not in shown
    assert "<em>slow</em>" in shown
    assert re.search(r"<h1[^>]*>Mine</h1>\s*<p>right below the marker</p>", shown)
    assert '<a href="other.py_docs.md">twice</a>' in shown
    if "tables" in extensions:
        assert re.search(r"</table>\s*<p>It is", shown)


def test_the_page_of_a_source_without_text_goes_with_it(tmp_path):
    """A source that is nothing but a byte order mark has no listing, which is no edit of one."""
    (tmp_path / "s").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["s"]\nout = "out"\nfindings = []\n')
    for name, data in (("empty.py", b""), ("mark.py", b"\xef\xbb\xbf"), ("other.py", b"x = 1\n")):
        (tmp_path / "s" / name).write_bytes(data)
    gen(tmp_path)
    for name in ("empty.py", "mark.py"):
        assert page(tmp_path, f"s/{name}").exists()
        (tmp_path / "s" / name).unlink()
    gen(tmp_path)
    assert [path.name for path in sorted((tmp_path / "out/s").glob("*_docs.md"))] == ["other.py_docs.md"]


PIECES = st.lists(
    st.sampled_from(
        ["text", "", "## Section", "| `test_a` | x |", "|---|", "- `T::test_a`", "`T`", "```py", "```", "~~~", "> quoted", "\ttab", "é"]
    ),
    max_size=12,
).map(lambda lines: "".join(f"{line}\n" for line in lines))


@given(PIECES, st.lists(st.tuples(st.sampled_from(["", "test_a", "T::test_a", "T::test_b[1]"]), PIECES), max_size=4))
def test_what_is_placed_is_read_again(page_text, wanted):
    """Notes put on any page that is not broken are read back byte for byte, and the page without them is the page."""
    data = f"---\ntitle: x\n---\n\n# T\n\n{page_text}".encode()
    notes = []
    for name, text in wanted:
        made = Note("p.md", 0, name, text.encode())
        try:
            (found,) = notes_of(placed(b"# T\n", [made]), "p.md")
        except (PageError, ValueError):
            continue
        assert found.text == made.text
        notes.append(made)
    try:
        found = notes_of(placed(data, notes), "p.md")
    except PageError:
        return
    if page_text.count("```") + page_text.count("~~~") == 0:
        assert sorted((each.name, each.text) for each in found) == sorted((each.name, each.text) for each in notes)
        assert [*filter(None, without_notes(placed(data, notes)).splitlines())] == [*filter(None, data.splitlines())]
        assert placed(data, found) == placed(data, notes)


def test_pages_that_stay_behind_are_told_of(project, capsys):
    """With another folder for the pages, the one before is named until it is gone, or its pages and notes are where they belong now."""
    settings = project / "pyproject.toml"
    text = settings.read_text()
    said = "docs/suite holds pages of the same sources, which are published and executed beside those in docs/book; delete it, or put it in"
    settings.write_text(text.replace('out = "out"', 'out = "docs/suite"'))
    assert gen(project) == 0
    write_note(project / "docs/suite/s/test_ring.py_docs.md", "Mine.\n")
    (project / "docs/guide").mkdir()
    (project / "docs/guide/index.md").write_text("# Guide\n")
    assert gen(project) == 0
    assert "warning" not in capsys.readouterr().err
    (project / "docs").rename(project / "website")
    (project / "docs").symlink_to("website")
    assert gen(project, "--force") == 0
    assert "warning" not in capsys.readouterr().err
    (project / "docs").unlink()
    (project / "website").rename(project / "docs")
    settings.write_text(text.replace('out = "out"', 'out = "docs/book"'))
    for command in ("check", "gen", "gen", "check"):
        main([command, "--root", str(project), "--jobs", "1"])
        assert capsys.readouterr().err.count(said) == 1
    shutil.rmtree(project / "docs/book")
    (project / "docs/suite").rename(project / "docs/book")
    assert gen(project) == 0
    assert main(["check", "--root", str(project), "--jobs", "1"]) == 0
    assert "warning" not in capsys.readouterr().err
    assert texts(project / "docs/book/s/test_ring.py_docs.md") == [("", "Mine.\n")]
    other = project / "other"
    shutil.copytree(project / "docs/book", other / "docs/old")
    (other / "t").mkdir()
    (other / "t/test_else.py").write_text("x = 1\n")
    (other / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["t"]\nfindings = []\n')
    assert gen(other) == 0
    assert "warning" not in capsys.readouterr().err


def test_a_book_of_a_part_of_the_sources_is_no_double(project, monkeypatch, capsys):
    """A part with a book of its own, as its refusal says, is told as a double neither by its run nor by that of the whole."""
    settings = project / "pyproject.toml"
    settings.write_text(settings.read_text().replace('out = "out"', 'out = "docs/suite"'))
    (project / "s/gpu").mkdir()
    (project / "s/gpu/test_b.py").write_text(SUITE)
    assert gen(project) == 0
    assert gen(project, "s/gpu") == 2
    assert "a book of its own with --out" in capsys.readouterr().err
    assert gen(project, "s/gpu", "--out", "docs/gpu") == 0
    for cache in ("kept", "new"):
        monkeypatch.setenv("RANKBOOK_CACHE_DIR", str(project / ".rankbook" / cache))
        assert gen(project) == gen(project, "s/gpu", "--out", "docs/gpu") == 0
    assert gen(project, "--out", "docs/again") == 0
    assert "warning" not in capsys.readouterr().err
    settings.write_text(settings.read_text().replace("docs/suite", "docs/again"))
    assert gen(project) == 0
    err = capsys.readouterr().err
    assert err.count("warning") == 1
    assert "docs/suite holds pages of the same sources" in err


def test_a_note_stays_on_an_edited_page_that_a_run_does_not_make(project, capsys):
    """One about the whole suite is made only where what it shows has changed; other runs leave it and its notes alone."""
    words = project / "out/suite-words.md"
    assert gen(project) == 0
    write_note(words, "Mine.\n", "test_gone")
    words.write_bytes(words.read_bytes() + b"\nMy words.\n")
    assert gen(project) == 0
    before = words.read_bytes()
    for number in range(2):
        (project / f"s/note{number}.txt").write_text("text\n")
        assert gen(project) == 0
        assert not (project / "out/orphaned-notes.md").exists()
        (project / f"s/test_{number}.py").write_text(f"def test_more_{number}():\n    pass\n")
        assert gen(project) == 0
        assert words.read_bytes() == before
    assert "is left as it is: somebody has edited it" in capsys.readouterr().err
