"""Pages that Git could not merge, and what else stands in the place of a page: the check says no, and no work of a person is lost."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from rankbook import freshness
from rankbook.cli import main
from rankbook.config import load
from rankbook.pages.notes import notes_of

SUITE = "".join(f"def test_{number}():\n    assert {number}\n\n\n" for number in range(30))
NAME = "docs/suite/s/test_ring.py_docs.md"


def run(root, command, *options):
    return main([command, "--root", str(root), *options])


def check(root, capsys):
    """Run the check; give its exit status and what it says."""
    capsys.readouterr()
    status = run(root, "check", "--jobs", "1")
    return status, capsys.readouterr().out


def git(root, *words, check=True):
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", "-C", str(root), *settings, *words], check=check, capture_output=True, text=True).stdout


def note(text, name=""):
    return f"<!-- rankbook-notes{' ' + name if name else ''} -->\n{text}<!-- /rankbook-notes -->\n"


def add_note(file, text, name=""):
    file.write_text(file.read_text().replace("\n## ", f"\n{note(text, name)}\n## ", 1))


def texts(file):
    return [(each.name, each.text.decode()) for each in notes_of(file.read_bytes(), file.name)]


def told_of_markers(said):
    """Give the only place at which a note is said to show markers of Git."""
    (line,) = [line for line in said.splitlines() if "this note shows conflict markers of Git" in line]
    return line.removeprefix("rankbook: ").removeprefix("warning: ").partition(": this note")[0]


def forget(root):
    shutil.rmtree(freshness.cache_folder(load(root)), ignore_errors=True)


def change(root, old, new, words, message):
    """Change a test and the note, and commit them with their pages."""
    source = root / "s/test_ring.py"
    source.write_text(source.read_text().replace(old, new))
    page = root / NAME
    page.write_text(page.read_text().replace("About the page.\n", words))
    assert run(root, "gen", "--jobs", "1") == 0
    git(root, "commit", "-qam", message)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["s"]\ntitle = "Book"\nfindings = []\n')
    (tmp_path / "s/test_ring.py").write_text(SUITE)
    assert run(tmp_path, "gen", "--jobs", "1") == 0
    add_note(tmp_path / NAME, "About the page.\n")
    add_note(tmp_path / NAME, "Slow.\n", "test_7")
    assert run(tmp_path, "gen", "--jobs", "1") == 0
    return tmp_path


@pytest.fixture
def merged(project):
    """A merge in which the source goes together and its page does not."""
    git(project, "init", "-q", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-qm", "one")
    git(project, "checkout", "-qb", "other")
    change(project, "assert 25\n", "assert 250\n", "Theirs, about the page.\n", "two")
    git(project, "checkout", "-q", "main")
    change(project, "assert 3\n", "assert 300\n", "Ours, about the page.\n", "three")
    return project


BOTH = [("", "Ours, about the page.\n"), ("", "Theirs, about the page.\n"), ("test_7", "Slow.\n")]


@pytest.mark.parametrize("has_cache", [True, False])
@pytest.mark.parametrize("way", ["merge", "rebase", "diff3"])
def test_pages_that_git_could_not_merge_are_written_anew_with_the_notes_of_both(merged, capsys, way, has_cache):
    """The check says no with the line, the run mends it, and nothing that people wrote is missing."""
    style = ("-c", "merge.conflictStyle=diff3") if way == "diff3" else ()
    git(merged, *style, "rebase" if way == "rebase" else "merge", "other", check=False)
    page = merged / NAME
    line = next(number for number, text in enumerate(page.read_text().splitlines(), 1) if text.startswith("<<<<<<< "))
    if not has_cache:
        forget(merged)
    status, said = check(merged, capsys)
    assert (status, f"conflicted  {NAME}:{line}: it has unresolved conflicts of Git; `rankbook gen` writes it anew" in said) == (1, True)
    assert run(merged, "accept", "--yes") == 1
    assert f"{NAME}: it has unresolved conflicts of Git from line {line} on; run `rankbook gen` first" in capsys.readouterr().err
    assert run(merged, "gen", "--jobs", "1") == 0
    said = capsys.readouterr().err
    assert f"{NAME}:{line}: it had unresolved conflicts of Git, and is written anew with the notes of both" in said
    assert "without notes" not in said
    assert sorted(texts(page)) == sorted(BOTH)
    assert "assert 300\n" in page.read_text()
    assert "assert 250\n" in page.read_text()
    assert "<<<<<<<" not in page.read_text()
    for _ in range(2):
        assert check(merged, capsys)[0] == 0
        forget(merged)


@pytest.mark.parametrize("how", ["words", "committed", "edited before"])
def test_a_page_in_conflict_on_which_there_may_be_other_work_is_left(merged, capsys, how):
    """Words beside the conflicts, conflicts that Git knows no more, and edits on a side are told of; `--force` keeps all notes."""
    page = merged / NAME
    if how == "edited before":
        page.write_text(page.read_text().replace("## Structure", "## My structure"))
        git(merged, "commit", "-qam", "four")
    git(merged, "merge", "other", check=False)
    if how == "words":
        page.write_text(page.read_text().replace("## Structure", "My words.\n\n## Structure"))
    elif how == "committed":
        git(merged, "commit", "-qam", "five")
    before = page.read_bytes()
    for _ in range(2):
        assert run(merged, "gen", "--jobs", "1") == 0
        assert "it has unresolved conflicts of Git from line" in capsys.readouterr().err
        assert page.read_bytes() == before
        status, said = check(merged, capsys)
        assert (status, "conflicted" in said, "run `rankbook gen --force`, which keeps the notes of both sides" in said) == (1, True, True)
        assert not said.rstrip().endswith("; run `rankbook gen`")
        forget(merged)
    assert run(merged, "gen", "--force") == 0
    assert texts(page) == BOTH
    assert check(merged, capsys)[0] == 0


@pytest.mark.parametrize(("edit", "style"), [("repeated", "merge"), ("deleted", "diff3"), ("swapped", "merge"), ("spaces", "diff3")])
def test_edits_of_known_lines_on_a_page_in_conflict_are_other_work(project, capsys, edit, style):
    """A line that is written once more, deleted or moved is left as it is; a page without such edits is written."""
    git(project, "init", "-q", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-qm", "one")
    git(project, "checkout", "-qb", "other")
    change(project, "def test_4()", "def test_theirs()", "About the page.\n", "two")
    git(project, "checkout", "-q", "main")
    change(project, "def test_4()", "def test_ours()", "About the page.\n", "three")
    git(project, "-c", f"merge.conflictStyle={style}", "merge", "other", check=False)
    git(project, "checkout", "--ours", "--", "s/test_ring.py")
    page = project / NAME
    left = page.read_text()
    begin = left.index("{#source")
    one, two = "    assert 20\n", "    assert 21\n"
    new = {
        "repeated": lambda text: text.replace(one, one + one),
        "deleted": lambda text: text.replace(one, ""),
        "swapped": lambda text: text.replace(one, "%").replace(two, one).replace("%", two),
        "spaces": lambda text: text.replace(one, one.replace("\n", " \n")),
    }[edit]
    page.write_text(left[:begin] + new(left[begin:]))
    before = page.read_bytes()
    assert before != left.encode()
    assert run(project, "gen", "--jobs", "1") == 0
    assert "it has unresolved conflicts of Git from line" in capsys.readouterr().err
    assert page.read_bytes() == before
    assert check(project, capsys)[0] == 1
    page.write_text(left.replace("About the page.\n", "Seen while it was merged.\n"))
    assert run(project, "gen", "--jobs", "1") == 0
    assert "<<<<<<<" not in page.read_text()
    assert ("", "Seen while it was merged.\n") in texts(page)
    assert check(project, capsys)[0] == 0


def test_pages_without_notes_are_counted(project, capsys):
    """After a large merge one sentence tells of all pages that hold nothing of a person's."""
    git(project, "init", "-q", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-qm", "one")
    for words, name in ((("-b", "other"), "theirs"), (("main",), "ours")):
        git(project, "checkout", "-q", *words)
        (project / f"s/test_{name}.py").write_text("def test_one():\n    pass\n")
        run(project, "gen", "--jobs", "1")
        git(project, "add", ".")
        git(project, "commit", "-qm", name)
    git(project, "merge", "other", check=False)
    assert check(project, capsys)[0] == 1
    assert run(project, "gen", "--jobs", "1") == 0
    assert "pages without notes had unresolved conflicts of Git, and are written anew" in capsys.readouterr().err
    assert check(project, capsys)[0] == 0


def test_a_note_that_both_sides_have_changed_is_kept_twice(project, capsys):
    """Where nothing but a note is in conflict, both sides of the note stay, and the check names the line of the first marker."""
    git(project, "init", "-q", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-qm", "one")
    page = project / NAME
    text = page.read_text()
    for branch, words in (("other", "Theirs.\n"), ("mine", "Ours.\n")):
        git(project, "checkout", "-q", "-b", branch, "main")
        page.write_text(text.replace("About the page.\n", words))
        git(project, "commit", "-qam", branch)
    git(project, "merge", "other", check=False)
    assert "\n<<<<<<< " in page.read_text()
    assert f"conflicted  {NAME}:" in check(project, capsys)[1]
    assert run(project, "gen") == 0
    assert texts(page) == [("", "Ours.\n"), ("", "Theirs.\n"), ("test_7", "Slow.\n")]
    assert check(project, capsys)[0] == 0


def test_a_note_that_one_side_deleted_is_kept(project, capsys):
    """Markers around a note are nothing that the note shows, so no Git is needed."""
    page = project / NAME
    text = page.read_text()
    page.write_text(text.replace(note("About the page.\n"), f"<<<<<<< a\n=======\n{note('Theirs.' + chr(10))}>>>>>>> b\n"))
    assert check(project, capsys)[0] == 1
    assert run(project, "gen") == 0
    assert texts(page) == [("", "Theirs.\n"), ("test_7", "Slow.\n")]
    assert check(project, capsys)[0] == 0


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("shown", ["<pre>\n{}</pre>\n", "{}"])
def test_a_note_that_shows_a_conflict_outside_of_a_fence_stays(project, capsys, shown, is_committed):
    """Without a conflict of which Git knows, markers within a note are text, and a warning names them."""
    if is_committed:
        git(project, "init", "-q", "-b", "main")
        git(project, "add", ".")
        git(project, "commit", "-qm", "one")
    words = shown.format("<<<<<<< a\none\n=======\ntwo\n>>>>>>> b\n")
    page = project / NAME
    page.write_text(page.read_text().replace("About the page.\n", words))
    if is_committed:
        git(project, "commit", "-qam", "two")
    before = page.read_bytes()
    for options in ((), (), ("--force",)):
        capsys.readouterr()
        assert run(project, "gen", *options) == 0
        said = capsys.readouterr().err
        assert "this note shows conflict markers of Git; where they are not meant, choose a side" in said
        assert "unresolved" not in said
        assert page.read_bytes() == before
        assert check(project, capsys)[0] == 0
        forget(project)


def test_a_whole_page_in_conflict(project, capsys):
    """Also where the first marker stands above the front matter, Git's or not, no note is lost."""
    page = project / NAME
    ours = page.read_text()
    theirs = ours.replace("About the page.\n", "Theirs.\n")
    page.write_text(f"<<<<<<< a\n{ours}=======\n{theirs}>>>>>>> b\n")
    assert f"conflicted  {NAME}:1: " in check(project, capsys)[1]
    assert run(project, "gen") == 0
    assert texts(page) == [("", "About the page.\n"), ("", "Theirs.\n"), ("test_7", "Slow.\n")]
    assert check(project, capsys)[0] == 0


def test_markers_that_are_meant_are_kept_and_told_of(project, capsys):
    """A listing and a fence in a note may show how a conflict looks."""
    shown = "```text {.no-run}\n<<<<<<< a\none\n=======\ntwo\n>>>>>>> b\n```\n"
    (project / "s/how.txt").write_text(shown)
    add_note(project / NAME, shown, "test_8")
    for _ in range(2):
        capsys.readouterr()
        assert run(project, "gen") == 0
        assert "this note shows conflict markers of Git" in capsys.readouterr().err
        assert check(project, capsys)[0] == 0
    assert ("test_8", shown) in texts(project / NAME)
    assert shown in (project / "docs/suite/s/how.txt_docs.md").read_text()


def test_a_broken_marker_on_one_side_is_an_error_with_its_line(project, capsys):
    """Where the notes of a side cannot be read, nothing is written, whatever is asked for."""
    page = project / NAME
    page.write_text(page.read_text().replace("About the page.\n", "<<<<<<< a\nOurs.\n=======\n<!-- rankbook-notes -->\n>>>>>>> b\n"))
    before = page.read_bytes()
    line = next(number for number, text in enumerate(page.read_text().splitlines(), 1) if text.startswith("=======")) + 1
    assert run(project, "gen", "--force") == 2
    assert f"{NAME}:{line}: this note begins within the one of line" in capsys.readouterr().err
    assert page.read_bytes() == before


def test_notes_without_a_place_in_conflict_are_an_error(project, capsys):
    """Their page is a person's, who has to resolve it."""
    (project / "s/test_ring.py").unlink()
    (project / "s/other.py").write_text("x = 1\n")
    run(project, "gen")
    orphans = project / "docs/suite/orphaned-notes.md"
    orphans.write_text(f"{orphans.read_text()}<<<<<<< a\n=======\nWords.\n>>>>>>> b\n")
    before = orphans.read_bytes()
    for command in ("check", "gen"):
        assert run(project, command) == 2
        assert "orphaned-notes.md:" in (said := capsys.readouterr().err)
        assert "this page has unresolved conflicts of Git" in said
    assert orphans.read_bytes() == before


@pytest.mark.parametrize("shown", ["```text {{.no-run}}\n{}```\n", "<pre>\n{}</pre>\n"])
def test_markers_that_are_meant_stop_nothing_once_their_source_is_gone(project, capsys, shown):
    """On the page of notes without a place they are text as well, and what is told of them names a line at which they stand."""
    words = shown.format("<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n")
    add_note(project / NAME, words)
    (project / "s/other.py").write_text("x = 1\n")
    assert run(project, "gen") == 0
    (project / "s/test_ring.py").unlink()
    for number in range(4):
        if number == 2:
            (project / "s/more.py").write_text("x = 2\n")
        for command in ("gen", "check"):
            capsys.readouterr()
            assert run(project, command) == 0
            page, _, line = told_of_markers(capsys.readouterr().err).rpartition(":")
            assert note(words).splitlines()[1:] == (project / page).read_text().splitlines()[int(line) :][: words.count("\n") + 1]
    assert words in [text for _, text in texts(project / "docs/suite/orphaned-notes.md")]


@pytest.mark.parametrize("is_resolved", [True, False])
def test_a_page_in_conflict_whose_source_is_gone(merged, capsys, is_resolved):
    """Its notes are kept, and it goes unless there may be other work on it."""
    git(merged, "merge", "other", check=False)
    if is_resolved:
        git(merged, "commit", "-qam", "four")
    (merged / "s/test_ring.py").unlink()
    (merged / "s/other.py").write_text("x = 1\n")
    for _ in range(2):
        assert run(merged, "gen", "--jobs", "1") == 0
    assert (merged / NAME).exists() == is_resolved
    assert check(merged, capsys)[0] == is_resolved
    assert run(merged, "gen", "--force") == 0
    assert not (merged / NAME).exists()
    assert [text for _, text in texts(merged / "docs/suite/orphaned-notes.md")] == [text for _, text in BOTH]


@pytest.mark.parametrize(
    ("what", "said", "has_cache"),
    [
        ("words", "a person made it", True),
        ("words", "a person made it", False),
        ("a link to a file", "it is a link", True),
        ("a link to a file", "it is a link", False),
        ("a link to nothing", "it is a link", True),
        ("a link to a folder", "it is a link", True),
        ("a folder", "it is a folder", True),
        ("a folder", "it is a folder", False),
        ("a linked folder", "a link leads to its folder", False),
    ],
)
def test_what_stands_in_the_place_of_a_page_is_out_of_step(project, capsys, what, said, has_cache):
    """The check says no as long as the run cannot write a page, and both say what is there."""
    page = project / "docs/suite/s/test_ring.py_kw.md"
    elsewhere = project / "elsewhere"
    elsewhere.mkdir()
    if what == "a linked folder":
        page.parent.rename(elsewhere / "s")
        page.parent.symlink_to(elsewhere / "s")
    else:
        page.unlink()
        (elsewhere / "mine.md").write_text("Mine.\n")
        if what == "words":
            page.write_text("Mine.\n")
        elif what == "a folder":
            page.mkdir()
        else:
            page.symlink_to(elsewhere / {"a link to a file": "mine.md", "a link to nothing": "none.md"}.get(what, ""))
    for _ in range(2):
        if not has_cache:  # a run that knows files does not look at them again where they are the same behind a link
            forget(project)
        status, told = check(project, capsys)
        assert (status, f"foreign  docs/suite/s/test_ring.py_kw.md: {said}, and a page is to stand in its place" in told) == (1, True)
        assert run(project, "gen") == 0
        assert f"s/test_ring.py_kw.md is kept: {said}, and a page is to stand in its place" in capsys.readouterr().err
