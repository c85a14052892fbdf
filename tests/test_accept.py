"""`rankbook accept`: a listing that was edited on its page goes back into its source, byte for byte as the source is written."""

from __future__ import annotations

import codecs
import errno
import os
import re
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rankbook import front_matter
from rankbook.cli import main
from rankbook.embedding import Embedded, embed
from rankbook.pages.fence import source_fence
from rankbook.pages.seals import Edited, look, seal_of

SOURCE = b"import unittest\n\n\nclass TestRing(unittest.TestCase):\n    def test_token(self):\n        assert 7 % 7 == 0\n"


def run(root, command, *options):
    return main([command, *map(str, options), "--root", str(root)])


def page(root, source="s/test_ring.py"):
    return root / f"out/{source}_docs.md"


def edit(file, old, new):
    """Change a page by hand, as bytes; what is changed must be there."""
    data = file.read_bytes()
    assert old in data
    file.write_bytes(data.replace(old, new))


@pytest.fixture
def project(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["s"]\nout = "out"\nfindings = []\njobs = 1\n')
    (tmp_path / "s/test_ring.py").write_bytes(SOURCE)
    (tmp_path / "s/other.py").write_text("x = 1\n")
    assert run(tmp_path, "gen") == 0
    return tmp_path


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a = 1\nb = 2\n", b"b = 2", b"b = 3\nc = 4", b"a = 1\nb = 3\nc = 4\n"),
        (b"a = 1\r\nb = 2\r\n", b"b = 2\r\n", b"b = 3\nc = 4\r\n", b"a = 1\r\nb = 3\r\nc = 4\r\n"),
        (b"a = 1\rb = 2\r", b"b = 2\r", b"b = 3\nc = 4\n", b"a = 1\rb = 3\rc = 4\r"),
        (b"a = 1\nb = 2", b"b = 2", b"b = 3\nc = 4", b"a = 1\nb = 3\nc = 4"),
        (b"a = 1\r\nb = 2", b"b = 2\n", b"b = 3\r\nc = 4\r\n", b"a = 1\r\nb = 3\r\nc = 4"),
        (b"a = 1", b"a = 1", b"a = 2\nb = 3", b"a = 2\nb = 3"),
        (b"a = 1\r\nb = 2\nc = 3\n", b"c = 3", b"c = 4\r\nd = 5", b"a = 1\r\nb = 2\nc = 4\r\nd = 5\n"),
        (codecs.BOM_UTF8 + b"a = 1\n", b"a = 1\n```", b"a = 2\n```", codecs.BOM_UTF8 + b"a = 2\n"),
        (codecs.BOM_UTF16_LE + "a = 'é'\n".encode("utf-16-le"), "a = 'é'\n```".encode(), "a = 'ü'\n```".encode(),
         codecs.BOM_UTF16_LE + "a = 'ü'\n".encode("utf-16-le")),
        ("# coding: latin-1\na = 'é'\n".encode("latin-1"), "a = 'é'\n```".encode(), "a = 'ü'\n```".encode(),
         "# coding: latin-1\na = 'ü'\n".encode("latin-1")),
        (b"a = 1\n", b"a = 1\n```", b"a = '```'\n\n\n```", b"a = '```'\n\n\n"),
    ],
    ids=["lf", "crlf", "cr", "no final newline", "crlf, no end", "one line", "mixed", "BOM", "utf-16", "latin-1", "backticks"],
)  # fmt: skip
def test_a_source_keeps_the_way_it_is_written(project, before, old, new, after):
    """Encoding, byte order mark, line ends and the final newline stay, whatever the editor of the page made of them."""
    source = project / "s/test_ring.py"
    source.write_bytes(before)
    run(project, "gen")
    edit(page(project), old, new)
    assert run(project, "accept", "--yes") == 0
    assert source.read_bytes() == after
    assert run(project, "check") == 0


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
@pytest.mark.parametrize("source", [b"a = 1\nb = 2\r\nc = 3\n", b"a = 1\r\nb = 2\nc = 3", b"a = 1\r\n\r\nb = 2\rc = 3\nd = 4\n"])
def test_line_ends_that_git_made_alike_are_no_edit(project, capsys, source, end):
    """A source of several kinds of line ends keeps each, whatever Git made of its page; a line that is edited there keeps its own."""
    file = project / "s/test_ring.py"
    file.write_bytes(source)
    run(project, "gen")
    page(project).write_bytes(page(project).read_bytes().replace(b"\r\n", b"\n").replace(b"\n", end))
    capsys.readouterr()
    assert run(project, "accept", "--yes") == 0
    assert capsys.readouterr().out == "no listing was edited\n"
    assert file.read_bytes() == source
    edit(page(project), b"b = 2", b"b = 5")
    assert run(project, "accept", "--yes") == 0
    assert file.read_bytes() == source.replace(b"b = 2", b"b = 5")
    assert run(project, "check") == 0


LINES = st.lists(st.text(st.characters(exclude_characters="\r\n\0\2\3", exclude_categories=["Cs"]), max_size=12), max_size=8)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(LINES, LINES, st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans())
def test_any_edit_of_a_listing_gives_the_source_that_was_meant(old, new, newline, editor, has_bom, has_end):
    """Whatever text replaces a listing: its source is that text in the source's own style."""

    def written(lines, *, has_end=has_end):
        end = newline if has_end and lines else ""
        return (codecs.BOM_UTF8 if has_bom else b"") + (newline.join(lines) + end).encode()

    before, after = embed(written(old)), embed(written(new))
    if not (isinstance(before, Embedded) and isinstance(after, Embedded) and before.text and before.embedding.newline != "none"):
        return
    if before.embedding.encoding != "utf-8" or after.embedding.encoding != "utf-8":
        return
    made = _page_of(before)
    assert look(made).edited == Edited.NOTHING
    shown = "".join(f"{line}{editor}" for line in new)
    has_end = before.embedding.final_newline
    if "```" in shown:
        return
    start = made.index(b"\n", made.index(b"{#source")) + 1
    end = start + len(before.text.encode())
    seen = look(made[:start] + shown.encode() + made[end:])
    assert Edited.TEXT not in seen.edited
    assert seen.source == written(new, has_end=has_end)


def _page_of(embedded):
    stamp = front_matter.Stamp("file", "x", "x.py", embedded.embedding.size, embedded.embedding.sha256, embedded.embedding)
    body = f"{front_matter.write(stamp)}\n# x\n\n{source_fence(embedded.text, 'python')}\n".encode()
    return body + seal_of(body)


def test_the_edit_is_shown_and_asked_for(project, capsys, monkeypatch):
    """Nothing is written without a yes: not on a no, not where nobody answers, not in a dry run."""
    edit(page(project), b"7 % 7", b"5 % 5")
    for answer in ("n", "", None):
        capsys.readouterr()

        def ask(question, answer=answer):
            print(question)
            if answer is None:
                raise EOFError
            return answer

        monkeypatch.setattr("builtins.input", ask)
        assert run(project, "accept") == 0
        said = capsys.readouterr().out
        assert "--- a/s/test_ring.py\n+++ b/s/test_ring.py\n" in said
        assert "\n-        assert 7 % 7 == 0\n+        assert 5 % 5 == 0\n" in said
        assert "Take this into s/test_ring.py? [y/N]" in said
        assert "\n0 listings taken into the source, 1 left" in said
    assert run(project, "accept", "--dry-run") == 0
    assert "1 listing to take" in capsys.readouterr().out
    assert (project / "s/test_ring.py").read_bytes() == SOURCE
    monkeypatch.setattr("builtins.input", lambda _: "y")
    assert run(project, "accept") == 0
    assert (project / "s/test_ring.py").read_bytes() == SOURCE.replace(b"7 % 7", b"5 % 5")
    assert run(project, "check") == 0
    capsys.readouterr()
    assert run(project, "accept") == 0
    assert capsys.readouterr().out == "no listing was edited\n"


@pytest.mark.parametrize(
    ("name", "before", "old", "new", "sentence"),
    [
        ("test_ring.py", SOURCE, SOURCE, b"", "this leaves nothing of s/test_ring.py"),
        ("test_ring.py", SOURCE, SOURCE, b"\n\n", "this leaves nothing of s/test_ring.py"),
        ("notes.txt", b"words\n", b"words\n", b"", "this leaves nothing of s/notes.txt"),
        ("test_ring.py", SOURCE, b"7 % 7 == 0", b"x = (", "s/test_ring.py would not be valid Python any more: "),
        ("script", b"#!/usr/bin/env python\nx = 1\n", b"x = 1", b"x = (", "s/script would not be valid Python any more: '(' was never"),
    ],
    ids=["emptied", "blank", "a text", "not Python", "a script"],
)
def test_what_is_hardly_meant_needs_a_yes_of_a_person(project, capsys, monkeypatch, name, before, old, new, sentence):
    """An edit that empties a source, or makes Python that parsed parse no more, is told of, and not taken by `--yes`."""
    source, file = project / "s" / name, page(project, f"s/{name}")
    source.write_bytes(before)
    run(project, "gen")
    head, opening, tail = file.read_bytes().partition(b"{#source")
    file.write_bytes(head + opening + tail.replace(old, new, 1))
    capsys.readouterr()
    assert run(project, "accept", "--yes") == 1
    said = capsys.readouterr()
    assert f"out/s/{name}_docs.md: {sentence}" in said.err
    assert f"; `rankbook accept out/s/{name}_docs.md` asks whether that is meant" in said.err
    assert "0 listings taken into the source, 1 refused" in said.out
    assert source.read_bytes() == before
    assert run(project, "accept", "--dry-run") == 0
    assert sentence in capsys.readouterr().err
    monkeypatch.setattr("builtins.input", lambda _: "y")
    assert run(project, "accept") == 0
    assert sentence in capsys.readouterr().err
    assert source.read_bytes() == before.replace(old, new)
    assert run(project, "check") == 0


def test_python_that_did_not_parse_before_may_be_edited(project):
    """`--yes` takes an edit that is not what broke it."""
    (project / "s/test_ring.py").write_bytes(b"def f(:\n    pass\n")
    run(project, "gen")
    edit(page(project), b"    pass\n", b"    return\n")
    assert run(project, "accept", "--yes") == 0
    assert (project / "s/test_ring.py").read_bytes() == b"def f(:\n    return\n"


def test_several_pages_at_once(project, capsys):
    """Those that are named, or all; one that is refused does not hold up the others, and sets the exit status."""
    edit(page(project), b"7 % 7", b"5 % 5")
    edit(page(project, "s/other.py"), b"x = 1\n```", b"x = 2\n```")
    assert run(project, "accept", "--yes", page(project, "s/other.py")) == 0
    assert (project / "s/other.py").read_text() == "x = 2\n"
    assert (project / "s/test_ring.py").read_bytes() == SOURCE
    edit(page(project, "s/other.py"), b"x = 2\n```", b"x = 3\n```")
    (project / "s/other.py").write_text("x = 4\n")
    capsys.readouterr()
    assert run(project, "accept", "--yes") == 1
    said = capsys.readouterr()
    assert "out/s/other.py_docs.md: its listing was edited, and s/other.py has changed since the page was generated" in said.err
    assert "1 listing taken into the source, 1 refused" in said.out
    assert (project / "s/other.py").read_text() == "x = 4\n"
    assert b"5 % 5" in (project / "s/test_ring.py").read_bytes()
    assert b"x = 3\n" in page(project, "s/other.py").read_bytes()


def test_a_source_that_cannot_be_written_holds_up_no_other(project, capsys, monkeypatch):
    """It is refused with its sentence, and the pages of those that are taken are generated."""
    edit(page(project), b"7 % 7", b"5 % 5")
    edit(page(project, "s/other.py"), b"x = 1\n```", b"x = 2\n```")
    replace = Path.replace

    def refuse(self, target):
        if target == project / "s/other.py":
            raise OSError(errno.EROFS, "Read-only file system")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refuse)
    assert run(project, "accept", "--yes") == 1
    said = capsys.readouterr()
    assert "s/other.py: cannot write the source: Read-only file system" in said.err
    assert "1 listing taken into the source, 1 refused" in said.out
    assert b"5 % 5" in (project / "s/test_ring.py").read_bytes()
    assert (project / "s/other.py").read_text() == "x = 1\n"
    edit(page(project, "s/other.py"), b"x = 2\n```", b"x = 1\n```")
    assert run(project, "check") == 0


def test_what_a_killed_run_has_left_is_no_source(project):
    """It gets no page, and the next run that writes a source removes it, wherever it lies beside one."""
    (project / "s/deep").mkdir()
    (project / "s/deep/other.py").write_bytes(SOURCE)
    left = [project / folder / ".rankbook-999999999.tmp" for folder in ("s", "s/deep")]
    for each in left:
        each.write_bytes(SOURCE)
    assert run(project, "gen") == 0
    assert run(project, "check") == 0
    assert not list((project / "out").rglob("*999999999*"))
    edit(page(project), b"7 % 7", b"5 % 5")
    assert run(project, "accept", "--yes") == 0
    assert not [each for each in left if each.exists()]


def test_a_page_by_the_name_that_messages_give_it(project, capsys, monkeypatch):
    """From a folder below the root, what `check` says to do can be done."""
    edit(page(project), b"7 % 7", b"5 % 5")
    monkeypatch.chdir(project / "s")
    assert main(["check"]) == 1
    command = re.search(r"`rankbook (accept [^`]*)`", "".join(capsys.readouterr()))[1]
    assert main([*command.split(), "--yes"]) == 0
    assert b"5 % 5" in (project / "s/test_ring.py").read_bytes()


def test_an_edit_made_on_both_sides_is_taken_already(project):
    """The same edit in the source and on the page is no conflict."""
    edit(page(project), b"7 % 7", b"5 % 5")
    (project / "s/test_ring.py").write_bytes(SOURCE.replace(b"7 % 7", b"5 % 5"))
    assert run(project, "accept", "--yes", page(project)) == 0
    assert run(project, "gen") == 0
    assert run(project, "check") == 0


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (b"        assert 7", b"```\n        assert 7", "a line of backticks ends the listing early"),
        (b"        assert 7", b"```\ntext\n```\n        assert 7", "a line of backticks ends the listing early"),
        (b"        assert 7", b"```\n```python\n        assert 7", "a line of backticks ends the listing early"),
        (b" == 0\n```\n", b" == 0\n", "no listing of the source is found on the page"),
        (b'{#source linenums="1"}', b"{#source}", "no listing of the source is found on the page"),
        (b"    def test_token", b"    # \xff\n    def test_token", "its listing is not UTF-8"),
        (b"import unittest\n\n", b"# coding: latin-1\n# \xc3\xa9\nimport unittest\n\n", "the edit changes the encoding"),
        (b"    def test_token", b"    \0\n    def test_token", "could not be shown any more"),
    ],
    ids=["a closing line", "a fence inside", "two fences", "no end", "no opening", "not UTF-8", "a cookie", "a null byte"],
)
def test_an_edit_that_breaks_the_page_is_refused(project, capsys, old, new, sentence):
    """One sentence says why; page and source stay as they are."""
    data = page(project).read_bytes()
    start = data.index(b"{#source") - 12
    page(project).write_bytes(data[:start] + data[start:].replace(old, new, 1))
    edited = page(project).read_bytes()
    assert edited != data
    for named in ((), (page(project),)):
        capsys.readouterr()
        assert run(project, "accept", "--yes", *named) == 1
        said = capsys.readouterr().err
        assert "out/s/test_ring.py_docs.md: " in said
        assert sentence in said
    assert (project / "s/test_ring.py").read_bytes() == SOURCE
    assert run(project, "gen") == 0
    assert page(project).read_bytes() == edited


def test_what_the_encoding_of_the_source_lacks_is_refused(project, capsys):
    """With the line and the character."""
    (project / "s/test_ring.py").write_bytes("# coding: latin-1\n# é\n".encode("latin-1"))
    run(project, "gen")
    edit(page(project), "# é\n```".encode(), "# é\n# €\n```".encode())
    assert run(project, "accept", "--yes") == 1
    assert "line 3 of its listing holds '€', which iso8859-1, the encoding of the source, cannot hold" in capsys.readouterr().err


@pytest.mark.parametrize(
    "source", ["../victim.py", "s/../../victim.py", "/etc/hostname", "link/victim.py", "s/link.py", ".git/hooks/pre-commit", "s/new.py"]
)
def test_a_page_leads_nowhere_but_to_a_source_of_the_book(project, capsys, source):
    """Whatever a page says that its source is: outside of the root, through a link, or no source of the book, nothing is written."""
    inner = project / "inner"
    inner.mkdir()
    for name in ("s", "pyproject.toml"):
        (project / name).rename(inner / name)
    victim = project / "victim.py"
    victim.write_bytes(SOURCE)
    (inner / "link").symlink_to(project)
    (inner / "s/link.py").symlink_to(victim)
    (inner / ".git/hooks").mkdir(parents=True)
    (inner / ".git/hooks/pre-commit").write_bytes(SOURCE)
    made = embed(SOURCE)
    stamp = front_matter.Stamp("file", "x", source, made.embedding.size, made.embedding.sha256, made.embedding)
    body = f"{front_matter.write(stamp)}\n# x\n\n{source_fence(made.text, 'python')}\n".encode()
    place = Path(os.path.normpath(inner / f"out/{source.lstrip('/')}_docs.md"))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes((body + seal_of(body)).replace(b"7 % 7", b"5 % 5"))
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    assert run(inner, "accept", "--yes", place) == (2 if not place.is_relative_to(inner / "out") else 1)
    assert "rankbook: " in capsys.readouterr().err
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before


def test_a_page_at_another_place_is_refused(project, capsys):
    """A copy of a page, and a page that is reached through a link, are no pages of the source."""
    edit(page(project), b"7 % 7", b"5 % 5")
    copy = project / "out/copy.py_docs.md"
    copy.write_bytes(page(project).read_bytes())
    page(project).rename(project / "elsewhere.md")
    page(project).symlink_to(project / "elsewhere.md")
    assert run(project, "accept", "--yes", copy, page(project)) == 1
    said = capsys.readouterr().err
    assert "out/copy.py_docs.md: this is not the page of a source" in said
    assert "out/s/test_ring.py_docs.md: there is no such page; a link is not followed" in said
    assert run(project, "accept", "--yes", project / "elsewhere.md") == 2
    assert (project / "s/test_ring.py").read_bytes() == SOURCE


def test_pages_that_are_not_there_are_no_pages_without_edits(project, capsys):
    """A folder of pages that does not exist is a mistake."""
    assert run(project, "accept", "--out", "nowhere") == 2
    assert "there is no folder of pages; run `rankbook gen` first, or name it with --out" in capsys.readouterr().err


def test_mode_and_owner_stay_and_nothing_is_left_behind(project):
    """The source is replaced at once, with its permissions."""
    source = project / "s/test_ring.py"
    source.chmod(0o750)
    before = source.stat()
    edit(page(project), b"7 % 7", b"5 % 5")
    assert run(project, "accept", "--yes") == 0
    after = source.stat()
    assert (stat.S_IMODE(after.st_mode), after.st_uid, after.st_gid) == (0o750, before.st_uid, before.st_gid)
    assert sorted(path.name for path in (project / "s").iterdir()) == ["other.py", "test_ring.py"]


OLD = b"""\
<!-- rankbook-notes -->
The old version was:

```python {#source linenums="1"}
def test_old():
    pass
```
<!-- /rankbook-notes -->
"""


@pytest.mark.parametrize("place", [b"\n## What is tested", b"\n<!-- rankbook-seal"], ids=["above the listing", "below it"])
@pytest.mark.parametrize("has_cache", [True, False])
def test_a_listing_in_a_note_is_no_listing_of_the_source(project, capsys, monkeypatch, place, has_cache):
    """A copy of the page's fence in a note is neither an edit nor taken into the source, and does not hide the edit of the true one."""
    edit(page(project), place, b"\n" + OLD + place)
    if not has_cache:
        monkeypatch.setenv("RANKBOOK_CACHE_DIR", str(project / "cache"))
    assert run(project, "accept", "--yes", page(project)) == 0
    assert run(project, "gen") == 0
    assert run(project, "check") == 0
    capsys.readouterr()
    assert run(project, "accept", "--yes") == 0
    assert capsys.readouterr().out == "no listing was edited\n"
    assert (project / "s/test_ring.py").read_bytes() == SOURCE
    edit(page(project), b"7 % 7", b"5 % 5")
    assert run(project, "accept", "--yes") == 0
    assert (project / "s/test_ring.py").read_bytes() == SOURCE.replace(b"7 % 7", b"5 % 5")
    assert OLD in page(project).read_bytes()


def test_a_second_listing_outside_of_notes_is_refused(project, capsys):
    """Which of the two is meant cannot be told."""
    for place in (b"## What is tested", b"<!-- rankbook-seal"):
        whole = page(project).read_bytes()
        edit(page(project), place, OLD.split(b"\n", 3)[3].rpartition(b"<!--")[0] + place)
        assert run(project, "accept", "--yes", page(project)) == (1 if place.startswith(b"##") else 0)
        assert run(project, "gen") == 0
        assert b"test_old" in page(project).read_bytes()
        assert (project / "s/test_ring.py").read_bytes() == SOURCE
        page(project).write_bytes(whole)


def test_notes_do_not_hinder(project):
    """A note written together with an edit of the listing stays, and is not taken for an edit of the text."""
    edit(page(project), b"7 % 7", b"5 % 5")
    edit(page(project), b"## What is tested", b"<!-- rankbook-notes -->\n```\nmine\n```\n<!-- /rankbook-notes -->\n## What is tested")
    assert run(project, "accept", "--yes") == 0
    assert b"5 % 5" in (project / "s/test_ring.py").read_bytes()
    assert b"<!-- rankbook-notes -->\n```\nmine\n```\n<!-- /rankbook-notes -->\n" in page(project).read_bytes()
