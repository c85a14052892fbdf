"""`rankbook check`: which pages are out of step with their sources, and which side has changed."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rankbook import freshness
from rankbook.cli import main
from rankbook.config import load
from rankbook.document import document
from rankbook.pages.seals import Edited, look

HOOKS = Path(__file__).parents[1] / ".pre-commit-hooks.yaml"
SUITE = "import unittest\n\n\nclass TestRing(unittest.TestCase):\n    def test_token(self):\n        assert 7 % 7 == 0\n"


def run(root, command, *options):
    return main([command, "--root", str(root), "--jobs", "1", *options])


def check(root, capsys, *options):
    """Run the check; give its exit status, what it says, and its warnings."""
    capsys.readouterr()
    status = run(root, "check", *options)
    said = capsys.readouterr()
    return status, said.out, said.err


def page(root, source="s/test_ring.py"):
    return root / f"out/{source}_docs.md"


def edit(file, old, new):
    """Change a page by hand; what is changed must be there."""
    text = file.read_bytes()
    assert text.count(old.encode()) >= 1
    file.write_bytes(text.replace(old.encode(), new.encode()))


def tree(folder):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def project(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["s"]\nout = "out"\ntitle = "Book"\nfindings = []\n')
    (tmp_path / "s/test_ring.py").write_text(SUITE)
    (tmp_path / "s/other.py").write_text("x = 1\n")
    assert run(tmp_path, "gen") == 0
    return tmp_path


@pytest.mark.parametrize("has_cache", [True, False])
def test_each_kind_of_drift_is_named_and_nothing_is_written(project, capsys, has_cache):
    """Missing, outdated and obsolete pages, with and without what earlier runs kept."""
    status, said, errors = check(project, capsys)
    assert (status, said.partition(" (")[0], errors) == (0, "2 sources, 12 pages: all in step", "")
    (project / "s/test_ring.py").write_text(SUITE.replace("7 % 7", "6 % 6"))
    (project / "s/other.py").unlink()
    (project / "s/new.py").write_text("z = 1\n")
    if not has_cache:
        shutil.rmtree(freshness.cache_folder(load(project)))
    before, kept = tree(project), tree(freshness.cache_base())
    status, said, _ = check(project, capsys)
    assert status == 1
    for line in (
        "outdated  out/s/test_ring.py_docs.md",
        "missing   out/s/new.py_docs.md",
        "obsolete  out/s/other.py_kw.md",
    ):
        assert line in said.splitlines()
    assert ": 2 missing, 2 obsolete, 5 outdated, 1 other file outdated" in said
    assert said.rstrip().endswith("run `rankbook gen`")
    assert tree(project) == before
    assert tree(freshness.cache_base()) == kept
    assert run(project, "gen") == 0
    assert check(project, capsys)[0] == 0


def test_an_error_is_neither_in_step_nor_drift(project, capsys):
    """The exit status of an error is its own."""
    assert check(project, capsys, "nowhere")[0] == 2


def test_the_first_check_finds_all_pages_missing(project, capsys):
    """A book that was never generated is out of step as a whole, and not every page is named unless asked for."""
    shutil.rmtree(project / "out")
    for number in range(60):
        (project / f"s/m{number}.py").write_text("x = 1\n")
    status, said, _ = check(project, capsys)
    assert status == 1
    assert said.count("missing  ") == 100
    assert "pages more; `--all` names all" in said
    assert check(project, capsys, "--all")[1].count("missing  ") > 120
    assert not (project / "out").exists()


@pytest.mark.parametrize("has_cache", [True, False])
def test_it_is_said_which_side_of_a_listing_has_changed(project, capsys, has_cache):
    """The page alone, the page and its source, the text around the listing: each has its own way out."""

    def told():
        if not has_cache:
            shutil.rmtree(freshness.cache_folder(load(project)), ignore_errors=True)
        status, said, errors = check(project, capsys)
        assert status == 1
        assert errors == ""
        return next(line for line in said.splitlines() if line.startswith("hand-edited  out/s/test_ring.py_docs.md: ")).split(": ", 1)[1]

    edit(page(project), "7 % 7", "5 % 5")
    assert told() == (
        "its listing was edited, s/test_ring.py was not; `rankbook accept out/s/test_ring.py_docs.md` takes the edit into the source"
    )
    (project / "s/test_ring.py").write_text(SUITE + "\n")
    assert told().startswith("its listing was edited, and s/test_ring.py has changed as well")
    edit(page(project), "5 % 5", "7 % 7")
    edit(page(project), "## What is tested", "## What I test")
    assert told().startswith("its text was edited outside of notes")


def test_gen_leaves_what_somebody_has_edited(project, capsys):
    """Each run says so; `--force` writes the page anew; an edit that is taken back is no edit."""
    for old, new in (("7 % 7", "5 % 5"), ("## What is tested", "## What I test")):
        edit(page(project), old, new)
        edited = page(project).read_bytes()
        for source in (SUITE, SUITE + "\n\n", SUITE):
            (project / "s/test_ring.py").write_text(source)
            capsys.readouterr()
            assert run(project, "gen") == 0
            assert page(project).read_bytes() == edited
            assert "s/test_ring.py_docs.md is left as it is: somebody has edited it" in capsys.readouterr().err
        edit(page(project), new, old)
        assert check(project, capsys)[0] == 0
        edit(page(project), old, new)
        run(project, "gen")
        assert run(project, "gen", "--force") == 0
        assert old in page(project).read_text()
        assert check(project, capsys)[0] == 0


@pytest.mark.parametrize("has_cache", [True, False])
def test_an_edited_page_outlives_its_source(project, capsys, has_cache):
    """The page of a source that is gone stays while it holds somebody's work, and goes when they say so."""
    edit(page(project), "## What is tested", "## What I test")
    (project / "s/test_ring.py").unlink()
    for _ in range(2):
        if not has_cache:
            shutil.rmtree(freshness.cache_folder(load(project)), ignore_errors=True)
        assert run(project, "gen") == 0
        assert page(project).exists()
    status, said, _ = check(project, capsys)
    assert (status, "hand-edited  out/s/test_ring.py_docs.md" in said) == (1, True)
    assert run(project, "gen", "--force") == 0
    assert not page(project).exists()
    assert check(project, capsys)[0] == 0


@pytest.mark.parametrize("text", [SUITE, SUITE + "\n"])
def test_an_edited_page_whose_source_is_left_out_of_the_book(project, capsys, text):
    """What is said can be done: nothing takes an edit into a file that is no source, and `--force` removes the page."""
    edit(page(project), "7 % 7", "5 % 5")
    (project / "s/other.py").write_text("x = 1\n")
    (project / "s/test_ring.py").write_text(text)
    (project / "pyproject.toml").write_text((project / "pyproject.toml").read_text() + 'exclude = ["*test_ring.py"]\n')
    assert run(project, "gen") == 0
    status, said, _ = check(project, capsys)
    what = "its listing was edited, and s/test_ring.py is no source of this book any more; name it in the settings again, or"
    assert (status, f"out/s/test_ring.py_docs.md: {what}" in said) == (1, True)
    assert run(project, "gen", "--force") == 0
    assert not page(project).exists()
    assert check(project, capsys)[0] == 0


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_page_whose_long_front_matter_is_broken_is_edited(project, capsys, is_gone):
    """Where the top of the front matter says that rankbook made the page, and the rest is not read, nothing is lost without `--force`."""
    skip = '@pytest.mark.skipif(torch.cuda.device_count() < {0}, reason="few")\ndef test_of_many_devices_{0}():\n    pass\n\n\n'
    source = project / "s/test_long.py"
    source.write_text("import pytest\nimport torch\n\n\n" + "".join(skip.format(number) for number in range(2, 302)))
    run(project, "gen")
    file = page(project, "s/test_long.py")
    assert file.read_bytes().index(b"\n---\n") > 16384
    file.write_text(file.read_text().replace("\n---\n", "\nmine: [\n---\n", 1) + "\nMy words.\n")
    if is_gone:
        source.unlink()
    before = file.read_bytes()
    for _ in range(2):
        assert run(project, "gen") == 0
        assert file.read_bytes() == before
        status, said, _ = check(project, capsys)
        assert (status, "hand-edited  out/s/test_long.py_docs.md: its front matter cannot be read any more" in said) == (1, True)
    assert run(project, "gen", "--force") == 0
    assert file.exists() != is_gone
    assert check(project, capsys)[0] == 0


def test_an_edited_page_that_a_person_deletes_is_forgotten(project, capsys):
    """The page of a source that is gone, left for its edits, is nobody's any more once it is deleted."""
    edit(page(project), "## What is tested", "## What I test")
    (project / "s/test_ring.py").unlink()
    run(project, "gen")
    page(project).unlink()
    run(project, "gen")
    status, said, errors = check(project, capsys)
    assert (status, errors) == (0, "")
    assert "1 source, 9 pages: all in step" in said


OWNED = '# Owner(s): ["a"]\nimport pytest\n\n\n@pytest.mark.slow\ndef test_owned():\n    pass\n'


@pytest.mark.parametrize("words", ["mine\n", None])
@pytest.mark.parametrize("is_at_once", [True, False])
def test_what_stood_in_the_place_of_a_page_that_no_run_makes_is_forgotten(project, capsys, words, is_at_once):
    """A file of a person's, or an edited page, about the whole suite is nobody's once no run makes that page and the file is gone."""
    (project / "s/test_owned.py").write_text(OWNED)
    run(project, "gen")
    owners = project / "out/suite-owners.md"
    owners.write_text(words or owners.read_text().replace("\n# ", "\n# My "))
    run(project, "gen")
    assert check(project, capsys)[0] == 1
    (project / "s/test_owned.py").unlink()
    if is_at_once:
        owners.unlink()
    run(project, "gen")
    assert check(project, capsys)[0] == (0 if is_at_once or words else 1)
    owners.unlink(missing_ok=True)
    run(project, "gen")
    status, said, errors = check(project, capsys)
    assert (status, errors) == (0, "")
    shutil.rmtree(freshness.cache_folder(load(project)))
    assert said.partition(":")[0] == check(project, capsys)[1].partition(":")[0]


def test_pages_that_went_with_their_source_are_not_counted(project, capsys):
    """Where a person has deleted all pages and a source, a run counts those that there are then."""
    (project / "s/other.py").unlink()
    shutil.rmtree(project / "out")
    capsys.readouterr()
    run(project, "gen")
    there = len(list((project / "out").rglob("*.md")))
    assert f"1 source, {there} pages: {there} written, 0 unchanged" in capsys.readouterr().out
    assert f"1 source, {there} pages: all in step" in check(project, capsys)[1]


WORDS = "\n## My own section\n\nThree hours of my work.\n"


@pytest.mark.parametrize(
    ("name", "has_cache"),
    [("s/test_ring.py_docs.md", True), ("s/test_ring.py_docs.md", False), ("s/test_ring.py_kw.md", False), ("index.md", True)],
)
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text + WORDS,
        lambda text: text + WORDS * 2000,
        lambda text: f"{text.rstrip()} Three hours of my work.\n",
        lambda text: text[: text.rindex("<!-- rankbook-seal")].replace("\n# ", f"\n{WORDS}\n# ", 1),
        lambda text: text.replace("<!-- rankbook-seal ", f"{WORDS}<!-- rankbook-seal 0"),
    ],
    ids=["behind the seal", "far behind it", "on its line", "without a seal", "with a broken seal"],
)
def test_words_are_kept_wherever_they_stand_and_whatever_became_of_the_seal(project, capsys, change, name, has_cache):
    """Neither a run nor the end of the source takes them away, and the check names the page."""
    file = project / "out" / name
    file.write_text(change(file.read_text()))
    edited = file.read_bytes()
    for _ in range(2):
        if not has_cache:
            shutil.rmtree(freshness.cache_folder(load(project)), ignore_errors=True)
        status, said, _ = check(project, capsys)
        assert (status, f"hand-edited  out/{name}: " in said) == (1, True)
        assert run(project, "gen") == 0
        assert file.read_bytes() == edited
        assert f"{name} is left as it is: somebody has edited it" in capsys.readouterr().err
    (project / "s/test_ring.py").unlink()
    run(project, "gen")
    assert file.read_bytes() == edited
    assert run(project, "gen", "--force") == 0
    assert not file.exists() or b"Three hours" not in file.read_bytes()


def test_a_page_that_lacks_nothing_but_its_seal_is_written_anew(project, capsys):
    """Nothing of anybody's would be lost with it."""
    whole = page(project).read_text()
    page(project).write_text(whole[: whole.rindex("<!-- rankbook-seal")])
    assert "outdated  out/s/test_ring.py_docs.md" in check(project, capsys)[1]
    assert run(project, "gen") == 0
    assert page(project).read_text() == whole


def test_a_page_that_is_cut_short_is_told_of(project, capsys):
    """Whatever cut it, its source may have changed since, so that nothing tells whose lines are missing."""
    data = page(project).read_bytes()
    page(project).write_bytes(data[: len(data) // 2])
    status, said, _ = check(project, capsys)
    assert (status, "hand-edited  out/s/test_ring.py_docs.md: " in said) == (1, True)
    assert run(project, "gen", "--force") == 0
    assert page(project).read_bytes() == data


def test_a_build_of_the_site_leaves_words_behind_the_seal(project):
    """MkDocs generates the pages first, and takes nothing away either."""
    (project / "docs").mkdir()
    (project / "docs/index.md").write_text("# Home\n")
    settings = (project / "pyproject.toml").read_text()
    (project / "pyproject.toml").write_text(settings.replace('"out"', '"docs/suite"'))
    (project / "mkdocs.yml").write_text("site_name: x\nplugins: [rankbook]\n")
    run(project, "gen")
    file = project / "docs/suite/s/test_ring.py_docs.md"
    file.write_text(file.read_text() + WORDS)
    build = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(project / "site")]
    done = subprocess.run(build, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "s/test_ring.py_docs.md is left as it is: somebody has edited it" in done.stderr
    assert file.read_text().endswith(WORDS)


def test_tidied_pages_are_not_edited(project, capsys):
    """CRLF, as Git may check pages out on Windows, and stripped spaces are nobody's work; the page is outdated, and it is said why."""
    page(project).write_bytes(page(project).read_bytes().replace(b"\n", b"\r\n"))
    seen = look(page(project).read_bytes())
    assert (seen.edited, seen.source) == (Edited.NOTHING, SUITE.encode())
    status, said, _ = check(project, capsys)
    assert (status, "outdated  out/s/test_ring.py_docs.md: its line ends are CRLF" in said) == (1, True)
    run(project, "gen")
    assert b"\r" not in page(project).read_bytes()
    whole = page(project).read_bytes()
    page(project).write_bytes(whole.replace(b"\n## ", b"\n\n## "))
    status, said, _ = check(project, capsys)
    assert (status, "outdated  out/s/test_ring.py_docs.md: it has other empty lines" in said) == (1, True)
    run(project, "gen")
    assert page(project).read_bytes() == whole


def test_pages_that_come_back_are_obsolete(project, capsys, monkeypatch, tmp_path_factory):
    """A page of a source that is gone is told of, and goes, also where the last run did not know it, as after a checkout by Git."""
    (project / "s/deep/er").mkdir(parents=True)
    (project / "s/deep/er/gone.py").write_text("x = 1\n")
    assert run(project, "gen") == 0
    old = {path: path.read_bytes() for path in sorted((project / "out/s/deep").rglob("*")) if path.is_file()}
    shutil.rmtree(project / "s/deep")
    assert run(project, "gen") == 0
    assert old and not any(path.exists() for path in old)
    for path, data in old.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (project / "out/s/README.md").write_text("# Mine\n")
    warm = check(project, capsys)
    with monkeypatch.context() as another:
        another.setenv("RANKBOOK_CACHE_DIR", str(tmp_path_factory.mktemp("another")))
        cold = check(project, capsys)
    told = [[line for line in said.splitlines() if " out/" in line] for _, said, _ in (warm, cold)]
    assert (warm[0], cold[0], told[0]) == (1, 1, told[1])
    assert told[0] == [f"obsolete  {path.relative_to(project)}" for path in old if path.suffix == ".md"]
    assert run(project, "gen") == 0
    assert not any(path.exists() for path in old) and (project / "out/s/README.md").read_text() == "# Mine\n"
    assert check(project, capsys)[0] == 0


@pytest.mark.parametrize("has_cache", [True, False])
def test_it_is_said_that_a_note_stands_elsewhere(project, capsys, has_cache):
    """A note that a person has just written is in its place after the next run, and until then the page is outdated for this reason."""
    edit(page(project), "\n<!-- rankbook-seal", "\n<!-- rankbook-notes -->\nMine.\n<!-- /rankbook-notes -->\n\n<!-- rankbook-seal")
    if not has_cache:
        shutil.rmtree(freshness.cache_folder(load(project)))
    status, said, _ = check(project, capsys)
    why = "a note, or an empty line, stands elsewhere than `rankbook gen` puts it"
    assert (status, f"outdated  out/s/test_ring.py_docs.md: {why}" in said) == (1, True)
    run(project, "gen")
    assert check(project, capsys)[0] == 0
    page(project).write_bytes(page(project).read_bytes().replace(b"\n", b"\r\n"))
    assert "its line ends are CRLF" in check(project, capsys)[1]
    run(project, "gen")
    assert b"\r" not in page(project).read_bytes()
    assert b"\nMine.\n" in page(project).read_bytes()


def test_a_page_of_a_merge_conflict_is_edited(project):
    """What Git leaves in a page when two branches changed it is not overwritten without a word."""
    edit(page(project), "## What is tested", "<<<<<<< ours\n## What is tested\n=======\n## What\n>>>>>>> theirs")
    before = page(project).read_bytes()
    run(project, "gen")
    assert page(project).read_bytes() == before


def test_the_diff_shows_what_gen_would_do(project, capsys):
    """A unified diff from the pages as they are, bounded unless all is asked for; `--stat` counts its lines."""
    (project / "s/test_ring.py").write_text(SUITE.replace("7 % 7", "6 % 6"))
    said = check(project, capsys, "--diff", "--stat")[1]
    assert "outdated  out/s/test_ring.py_docs.md | +" in said
    assert "--- a/out/s/test_ring.py_docs.md\n+++ b/out/s/test_ring.py_docs.md\n" in said
    assert "\n-        assert 7 % 7 == 0\n+        assert 6 % 6 == 0\n" in said
    (project / "s/new.py").write_text("".join(f"x{number} = 1\n" for number in range(900)))
    said = check(project, capsys, "--diff")[1]
    assert "... `--all` shows the whole diff" in said
    assert len(said.splitlines()) < 450
    whole = check(project, capsys, "--diff", "--all")[1]
    assert "\n+x899 = 1\n" in whole
    assert "--- /dev/null\n+++ b/out/s/new.py_docs.md\n" in whole


def test_the_diff_of_an_edited_page_is_what_would_be_lost(project, capsys):
    """Also when the last run has left the page, so that this one has nothing to do."""
    edit(page(project), "7 % 7", "5 % 5")
    run(project, "gen")
    assert "\n-        assert 5 % 5 == 0\n+        assert 7 % 7 == 0\n" in check(project, capsys, "--diff")[1]


def test_the_diff_cannot_steer_the_terminal(project, capsys):
    """A source is untrusted text: its control characters are shown as words."""
    (project / "s/test_ring.py").write_text(f"# \x1b[2J\x9b2J\u202e\n{SUITE}")
    said = check(project, capsys, "--diff")[1]
    assert "\\x1b[2J\\x9b2J\\u202e" in said
    assert said.replace("\n", "").replace("\t", "").isprintable()


def test_gen_tells_hooks_that_pages_were_written(project):
    """With `--exit-code` only."""
    (project / "s/other.py").write_text("x = 2\n")
    assert run(project, "gen", "--exit-code") == 1
    assert run(project, "gen", "--exit-code") == 0
    (project / "s/other.py").unlink()
    assert run(project, "gen") == 0


def git(root, *words):
    """Run Git as a user of the project."""
    mine = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", "-C", root, *mine, *words], capture_output=True, text=True, check=False)


@pytest.fixture
def repository(project):
    """A project whose first commit holds its pages, and each of whose commits runs our hooks."""
    (project / ".gitignore").write_text("ignored.py\n")
    git(project, "init", "-q")
    git(project, "add", ".")
    assert git(project, "commit", "-qm", "first").returncode == 0
    return project


def hooked(root, hook):
    """Let commits run one of our hooks."""
    entries = {each["id"]: each["entry"].split() for each in yaml.safe_load(HOOKS.read_text())}
    assert entries[hook][0] == "rankbook"
    command = shlex.join([sys.executable, "-m", "rankbook.cli", *entries[hook][1:]])
    script = root / ".git/hooks/pre-commit"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"#!/bin/sh\nexec {command}\n")
    script.chmod(0o755)


def cloned(root, folder):
    """Check the commit as others get it."""
    assert git(root, "clone", "-q", root, folder).returncode == 0
    return main(["check", "--root", str(folder)])


@pytest.mark.parametrize("hook", ["rankbook-check", "rankbook-gen"])
def test_a_commit_holds_the_pages_of_its_sources(repository, tmp_path, hook):
    """Pages that are not added stop it, so do those of a source that is not added; what is not to be committed stops nothing."""
    hooked(repository, hook)
    (repository / "s/test_new.py").write_text(SUITE.replace("Ring", "New"))
    (repository / "s/ignored.py").write_text("x = 1\n")
    git(repository, "add", "s")
    assert git(repository, "commit", "-qm", "no page").returncode == 1
    assert run(repository, "gen") == 0
    told = git(repository, "commit", "-qm", "pages that are not added")
    assert told.returncode == 1
    if hook == "rankbook-check":
        assert "unstaged  out/s/test_new.py_docs.md: the commit does not hold it, or its source, as it stands; run `git add`" in told.stderr
    else:
        assert "files of the book to stage: git add out" in told.stderr
    git(repository, "add", "out")
    assert git(repository, "commit", "-qm", "pages").returncode == 0
    assert cloned(repository, tmp_path / "second") == 0

    (repository / "s/test_scratch.py").write_text(SUITE.replace("Ring", "Scratch"))
    (repository / "README.md").write_text("# Rings\n")
    git(repository, "add", "README.md")
    assert git(repository, "commit", "-qm", "beside a source of nobody").returncode == 0
    assert run(repository, "gen") == 0
    scratch = page(repository, "s/test_scratch.py")
    git(repository, "add", "out")
    assert git(repository, "commit", "-qm", "pages of a source that is not added").returncode == 1
    assert scratch.is_file() == (hook == "rankbook-check")
    git(repository, "reset", "-q", "--hard")
    assert run(repository, "gen") == 0
    git(repository, "stash", "-q")  # as pre-commit hides what is not staged; the scratch file and its pages stay
    before = scratch.read_bytes()
    (repository / "README.md").write_text("# More rings\n")
    assert git(repository, "commit", "-qm", "a file by its name", "README.md").returncode == 0
    assert scratch.read_bytes() == before
    assert cloned(repository, tmp_path / "third") == 0


def test_the_hooks_look_at_commits_that_only_delete(repository):
    """pre-commit runs no hook for these by itself, for it counts no file that is gone."""
    assert all(each["always_run"] and not each["pass_filenames"] for each in yaml.safe_load(HOOKS.read_text()))
    hooked(repository, "rankbook-check")
    git(repository, "rm", "-q", "s/test_ring.py")
    assert git(repository, "commit", "-qm", "without its pages").returncode == 1


@pytest.mark.parametrize(("hook", "has_cache"), [("rankbook-check", False), ("rankbook-gen", True)])
def test_a_commit_loses_no_page_and_no_note(repository, tmp_path, monkeypatch, hook, has_cache):
    """A page that was removed and is still in the commit stops it, and so does a note of it that is not added where it is now."""
    file = page(repository, "s/test_ring.py")
    file.write_bytes(file.read_bytes().replace(b"\n## ", b"\n<!-- rankbook-notes -->\nMine.\n<!-- /rankbook-notes -->\n\n## ", 1))
    (repository / "s/test_two.py").write_text("def test_two():\n    pass\n")
    mine = repository / "out/mine.md"
    mine.write_text("# Mine\n")
    assert run(repository, "gen") == 0
    git(repository, "add", ".")
    assert git(repository, "commit", "-qm", "a note").returncode == 0
    hooked(repository, hook)
    mine.unlink()
    git(repository, "rm", "-q", "s/test_ring.py")
    assert run(repository, "gen") == 0
    assert run(repository, "gen") == 0
    if not has_cache:
        monkeypatch.setenv("RANKBOOK_CACHE_DIR", str(tmp_path / "new"))
    git(repository, "add", "-u", "s", "out/s/index.md", "out/index.md", ":!out/s/test_ring.py*")
    git(repository, "add", *(str(each) for each in (repository / "out").rglob("*.*") if each.name != "orphaned-notes.md"))
    assert git(repository, "commit", "-qm", "with the pages that are gone").returncode == 1
    git(repository, "add", "-u", "out/s")
    assert git(repository, "commit", "-qm", "without the note").returncode == 1
    git(repository, "add", "out/orphaned-notes.md")
    assert git(repository, "commit", "-qm", "all").returncode == 0
    assert git(repository, "clone", "-q", repository, tmp_path / "second").returncode == 0
    assert "Mine." in (tmp_path / "second/out/orphaned-notes.md").read_text()
    assert (tmp_path / "second/out/mine.md").is_file()


def test_a_commit_of_some_files_has_an_index_of_its_own(repository, tmp_path):
    """`git commit FILE` leaves what is staged besides for later, and the hook sees the commit as it will be."""
    hooked(repository, "rankbook-check")
    (repository / "s/test_new.py").write_text(SUITE.replace("Ring", "New"))
    (repository / "README.md").write_text("# Rings\n")
    git(repository, "add", "s", "README.md")
    assert git(repository, "commit", "-qm", "alone", "README.md").returncode == 0
    assert git(repository, "commit", "-qm", "the source").returncode == 1
    (repository / "s/test_ring.py").write_text(f"# new\n{SUITE}")
    assert git(repository, "commit", "-qam", "a change without its page").returncode == 1
    assert run(repository, "gen") == 0
    git(repository, "add", "out")
    told = git(repository, "commit", "-qm", "pages without their sources' changes")
    assert told.returncode == 1
    assert "s/test_ring.py: not all of its changes are staged" in told.stderr
    assert git(repository, "commit", "-qam", "all").returncode == 0
    assert cloned(repository, tmp_path / "second") == 0


def test_a_look_at_what_is_staged_begins_with_what_the_last_run_left(repository):
    """A hook that only checks reads what has changed since the pages were made, whichever run made them, and not the whole suite."""
    assert run(repository, "gen") == 0
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "all")
    (repository / "s/test_scratch.py").write_text(SUITE.replace("Ring", "Scratch"))

    def checked():
        read = {}
        chosen = load(repository, {"staged": True})
        report = document(chosen, check=True, progress=lambda step, _done, total: read.update({step: total}))
        return read["parse"], report.changes

    assert checked() == (0, ())
    with (repository / "s/test_ring.py").open("a") as source:
        source.write("# more\n")
    read, changes = checked()
    assert read == 1
    assert "s/test_ring.py_docs.md" in changes
    assert run(repository, "gen", "--staged") == 0
    assert checked() == (0, ())


def test_what_is_staged_is_asked_of_git(project, capsys):
    """Without a repository, in one sentence."""
    status, _, told = check(project, capsys, "--staged")
    assert status == 2
    assert told.startswith(f"rankbook: error: {project / 's'}: Git cannot say what is staged (fatal: not a git repository")
    assert told.endswith("; leave out --staged\n")
