"""What a run takes over from the last one: its pages are, byte for byte, those of a run that starts from nothing."""

from __future__ import annotations

import os
import random
import shutil
import time

import pytest

from rankbook import freshness, generating
from rankbook.analyse import draft, survey
from rankbook.config import load
from rankbook.document import document
from rankbook.pages import packs

BASE = """
import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiProcessTestCase

class Base(MultiProcessTestCase):
    world_size = {size}

    def test_base(self):
        dist.all_reduce(None)
"""
TEST = """
{imports}

class Test{name}(Base):
    def test_{name}(self):
        dist.{call}(None)
        dist.barrier()
"""
IMPORTS = ["from base import Base, dist", "from base import *", "import base", "import torch.distributed as dist\nfrom base import Base"]


def settings(root, out="out", **more):
    return load(root, {"sources": ("s",), "out": out, "jobs": 1, **more})


def tree(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def cold(root, number, **more):
    """The pages of a run that knows nothing."""
    out = f"cold{number}"
    document(settings(root, out, **more))
    pages = tree(root / out)
    shutil.rmtree(root / out)
    return pages


def put(root, path, text):
    file = root / "s" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def suite(root):
    put(root, "base.py", BASE.format(size=2))
    put(root, "README.md", "# The suite\n\nIt holds tests.\n")
    for name in ("alpha", "beta", "gamma"):
        put(root, f"{name}/test_{name}.py", TEST.format(imports="from base import Base, dist", name=name, call="all_gather"))
    put(root, "alpha/empty.py", "")


def edits(root, chance):
    """One random change of the tree."""
    names = ["alpha", "beta", "gamma", "delta"]
    name = chance.choice(names)
    file = root / "s" / name / f"test_{name}.py"

    def size():
        put(root, "base.py", BASE.format(size=chance.randint(1, 8)))

    def call():
        put(root, f"{name}/test_{name}.py", TEST.format(
            imports=chance.choice(IMPORTS),
            name=name, call=chance.choice(["all_gather", "reduce_scatter", "send"])))  # fmt: skip

    def shift():
        if file.exists():
            file.write_text(f"# a line\n{file.read_text()}")

    def remove():
        file.unlink(missing_ok=True)

    def empty():
        put(root, "alpha/empty.py", chance.choice(["", "x = 1\n"]))

    def package():
        init = root / "s" / name / "__init__.py"
        if init.exists():
            init.unlink()
        else:
            put(root, f"{name}/__init__.py", '"""What this folder is."""\n')

    def move():
        if file.exists():
            target = root / "s" / name / chance.choice(["inner", "."]) / f"test_{name}_{chance.randint(0, 1)}.py"
            target.parent.mkdir(exist_ok=True)
            file.rename(target)

    def spoil():
        pages = sorted((root / "out").rglob("*.md"))
        page = chance.choice(pages)
        if chance.random() < 0.5:
            page.unlink()
        else:
            page.write_bytes(page.read_bytes() + b" \n\n")  # words would be kept

    def base():
        path = root / "s" / "base.py"
        if path.exists():
            path.unlink()
        else:
            put(root, "base.py", BASE.format(size=3))

    def broken():
        put(root, f"{name}/test_{name}.py", "def f(:\n")

    def read_me():
        put(root, "README.md", f"# The suite\n\nIt holds {chance.randint(1, 9)} tests.\n")

    return chance.choice([size, call, call, shift, remove, empty, package, move, spoil, base, broken, read_me])


@pytest.mark.parametrize("seed", range(4))
def test_pages_are_those_of_a_run_from_nothing(tmp_path, monkeypatch, seed):
    """After any sequence of edits, a run that builds on the last one leaves the same pages as one that knows nothing."""
    suite(tmp_path)
    document(settings(tmp_path))
    chance = random.Random(seed)
    history = []
    for number in range(8):
        for _ in range(chance.randint(1, 3)):
            edit = edits(tmp_path, chance)
            history.append(edit.__name__)
            edit()
        with monkeypatch.context() as patch:
            if seed % 2:  # answers are forgotten after each file, as in a large tree after some
                patch.setattr(draft, "_MOST_ANSWERS", 0)
            document(settings(tmp_path))
        assert tree(tmp_path / "out") == cold(tmp_path, number), history


SHARED = {
    "s/base.py": """
import torch
from torch.testing._internal.common_distributed import MultiProcessTestCase, skip_if_lt_x_gpu

SIZE = 2
many = skip_if_lt_x_gpu(SIZE)

class Base(MultiProcessTestCase):
    world_size = SIZE

    def test_base(self):
        torch.distributed.all_reduce(None)

def helper():
    torch.distributed.barrier()
""",
    "s/conftest.py": """
import pytest
import torch

@pytest.fixture
def pair():
    if torch.cuda.device_count() < 2:
        pytest.skip("small")
    torch.distributed.broadcast(None)
""",
    "lib/pk/__init__.py": """
from pk.needs import four

OTHER = 3
""",
    "lib/pk/needs.py": """
import unittest
import torch

four = unittest.skipIf(torch.cuda.device_count() < 4, "x")

class Away:
    def test_away(self):
        torch.distributed.send(None)
""",
}
USER = """
from base import Base, helper, many
from pk import four
from pk.needs import Away

class Test{name}(Base):
    @many
    def test_{name}(self):
        helper()

class TestAway{name}(Away): ...

@four
def test_plain(pair):
    helper()
"""


def shared(root):
    """Tests that rest on files of the tree and on those of a package; gives the paths of all."""
    files = SHARED | {f"s/{name}/test_{name}.py": USER.format(name=name) for name in ("alpha", "beta")}
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return list(files)


def touched(text, chance):
    """A text with a comment or a blank line more, or with one less, or one in which something counts otherwise."""
    lines = text.splitlines()
    place = chance.randint(0, len(lines) - 1)
    kind = chance.choice(["end", "end", "behind", "behind", "line", "blank", "less", "other"])
    if kind in ("line", "blank"):
        lines.insert(place, "# a line" if kind == "line" else "")
    if kind == "behind":
        lines[place] += "  # behind"
    if kind == "end":
        lines.append("# the end")
    if kind == "less":
        bare = [number for number, line in enumerate(lines) if not line or line.startswith("#")]
        lines.pop(chance.choice(bare or [0])) if bare else None
    if kind == "other":
        return text.replace("2", "5") if "2" in text else text.replace("5", "2")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("seed", range(4))
def test_comments_and_blank_lines_leave_the_pages_of_a_run_from_nothing(tmp_path, seed):
    """Whatever moves in shared files, or stands there beside the code, pages are those of a run that knows nothing; a check tells which."""
    paths = shared(tmp_path)
    chosen = settings(tmp_path, package_path=("lib",))
    document(chosen)
    time.sleep(0.1)  # files as young as that would be read again anyhow
    chance = random.Random(seed)
    for number in range(8):
        for path in chance.sample(paths, chance.randint(1, 2)):
            (tmp_path / path).write_text(touched((tmp_path / path).read_text(), chance))
        time.sleep(0.1)
        told = document(chosen, check=True)
        assert document(chosen).written == told.written
        assert tree(tmp_path / "out") == cold(tmp_path, number, package_path=("lib",))


@pytest.mark.parametrize("path", SHARED)
def test_what_stands_behind_the_code_has_nothing_else_surveyed(tmp_path, monkeypatch, path):
    """A comment at the end of a file that others rest on, or behind code, leaves what they say; one that moves its lines does not."""
    shared(tmp_path)
    chosen = settings(tmp_path, package_path=("lib",))
    time.sleep(0.1)
    document(chosen)
    asked = []
    monkeypatch.setattr(generating, "survey", lambda draft, path: asked.append(path) or survey(draft, path))
    text = (tmp_path / path).read_text()
    for changed, is_moved in ((f"{text}# the end\n", False), (text.replace("torch\n", "torch  # behind\n"), False), (f"#\n{text}", True)):
        asked.clear()
        (tmp_path / path).write_text(changed)
        time.sleep(0.1)
        document(chosen)
        assert bool({*asked} - {path}) == is_moved
        (tmp_path / path).write_text(text)
        time.sleep(0.1)
        document(chosen)


def test_nothing_to_do_is_told_without_reading_anything(tmp_path):
    """A second run over an unchanged tree reports the same, from the manifest alone."""
    suite(tmp_path)
    first = document(settings(tmp_path))
    time.sleep(0.1)
    document(settings(tmp_path))
    changes = freshness.compare(settings(tmp_path))
    assert changes is not None
    assert changes.report is not None
    again = document(settings(tmp_path))
    assert (again.sources, again.pages, again.unchanged, again.changes) == (first.sources, first.pages, first.pages, ())


@pytest.mark.parametrize("path", ["s/base.py", "s/new.py", "s/alpha/.gitignore", "out/index.md", "out/s/base.py_docs.md"])
def test_every_change_is_seen(tmp_path, path):
    """A source, a new file, an ignore file and a page that is not as it was left are all noticed."""
    suite(tmp_path)
    document(settings(tmp_path))
    time.sleep(0.1)
    document(settings(tmp_path))
    (tmp_path / path).write_text("x = 1\n")
    assert freshness.compare(settings(tmp_path)).report is None


def test_files_of_packages_that_go_and_come_are_seen(tmp_path):
    """A helper that a package loses, and one that it gets back, shows on the pages of all who import it."""
    helper = tmp_path / "lib" / "pk" / "needs.py"
    helper.parent.mkdir(parents=True)
    (helper.parent / "__init__.py").write_text("")
    helper.write_text("import unittest, torch\nfour = unittest.skipIf(torch.cuda.device_count() < 4, 'x')\n")
    for name in ("a", "b"):
        put(tmp_path, f"test_{name}.py", "from pk.needs import four\n\n@four\ndef test_it(): ...\n")
    chosen = settings(tmp_path, package_path=("lib",))
    pages = [tmp_path / "out" / "s" / f"test_{name}.py_docs.md" for name in ("a", "b")]
    for is_there in (True, False, True):
        if is_there != helper.exists():
            source, target = (helper.with_suffix(".txt"), helper) if is_there else (helper, helper.with_suffix(".txt"))
            source.rename(target)
        document(chosen)
        assert ["needs 4 GPUs" in page.read_text() for page in pages] == [is_there, is_there]


def test_a_package_in_an_earlier_folder_is_seen(tmp_path):
    """A helper that appears in an earlier folder of `package-path` than the one that had it counts, as for Python, until it goes."""
    for folder, gpus in (("first", 2), ("second", 4)):
        helper = tmp_path / folder / "pk" / "needs.py"
        helper.parent.mkdir(parents=True)
        (helper.parent / "__init__.py").write_text("")
        helper.write_text(f"import unittest, torch\nmany = unittest.skipIf(torch.cuda.device_count() < {gpus}, 'x')\n")
    put(tmp_path, "test_a.py", "from pk.needs import many\n\n@many\ndef test_it(): ...\n")
    chosen, page = settings(tmp_path, package_path=("first", "second")), tmp_path / "out/s/test_a.py_docs.md"
    hidden, seen = tmp_path / "first/pk/needs.txt", tmp_path / "first/pk/needs.py"
    for source, target, gpus in ((seen, hidden, 4), (hidden, seen, 2), (seen, hidden, 4)):
        source.rename(target)
        document(chosen)
        assert f"needs {gpus} GPUs" in page.read_text()


def test_a_file_that_a_package_gets_is_seen_by_all_who_looked_for_it(tmp_path):
    """A helper that a package gets late shows on the page of one who looked for it when others had, and after those have ceased to."""
    (tmp_path / "lib/pk").mkdir(parents=True)
    (tmp_path / "lib/pk/__init__.py").write_text("")
    imports = {"a": "from pk.needs import four", "b": "from pk.needs import four", "c": "from pk.needs import *", "d": "import pk.needs"}
    for name, line in imports.items():
        put(tmp_path, f"test_{name}.py", f"{line}\n\n@{'pk.needs.' if name == 'd' else ''}four\ndef test_it(): ...\n")
    chosen = settings(tmp_path, package_path=("lib",))
    time.sleep(0.1)  # files as young as that are read again
    document(chosen)
    put(tmp_path, "test_a.py", "def test_it(): ...\n")
    document(chosen)
    (tmp_path / "lib/pk/needs.py").write_text("import unittest, torch\nfour = unittest.skipIf(torch.cuda.device_count() < 4, 'x')\n")
    document(chosen)
    pages = tree(tmp_path / "out")
    assert [b"needs 4 GPUs" in pages[f"s/test_{name}.py_docs.md"] for name in imports] == [False, True, True, True]
    assert pages == tree_of(tmp_path, package_path=("lib",))


def test_a_file_of_a_package_that_changes_while_nobody_reads_it_is_read_again(tmp_path):
    """What was known of a helper while a test used it is not told of it when one uses it again."""
    helper = tmp_path / "lib/pk.py"
    helper.parent.mkdir()
    for number, uses in ((2, True), (2, False), (4, False), (4, True)):
        helper.write_text(f"import unittest, torch\nmany = unittest.skipIf(torch.cuda.device_count() < {number}, 'x')\n")
        put(tmp_path, "test_a.py", "from pk import many\n\n@many\ndef test_it(): ...\n" if uses else "def test_it(): ...\n")
        time.sleep(0.1)  # a file as young as that would be read again anyhow
        document(settings(tmp_path, package_path=("lib",)))
        assert (f"needs {number} GPUs" in (tmp_path / "out/s/test_a.py_docs.md").read_text()) == uses


def test_what_comes_beside_packages_costs_no_run(tmp_path):
    """Where the project itself is a folder of `package-path`, what appears in it is no reason to read anything again."""
    (tmp_path / "pk").mkdir()
    (tmp_path / "pk/__init__.py").write_text("SIZE = 2\n")
    put(tmp_path, "test_a.py", "from pk import SIZE\n\ndef test_it():\n    assert SIZE\n")
    chosen = settings(tmp_path, package_path=(".", "later"))
    document(chosen)
    time.sleep(0.1)
    document(chosen)
    (tmp_path / "site").mkdir()
    (tmp_path / "README.txt").write_text("new\n")
    assert freshness.compare(chosen).report is not None
    (tmp_path / "later").mkdir()
    assert freshness.compare(chosen) is None
    document(chosen)
    assert tree(tmp_path / "out") == tree_of(tmp_path, package_path=(".", "later"))


def test_a_change_within_the_tick_of_the_clock_is_seen(tmp_path):
    """A file that is written again right after the run, with the same size and the same time, is read again."""
    suite(tmp_path)
    put(tmp_path, "x.py", "x = 1\n")
    file = tmp_path / "s/x.py"
    later = time.time_ns() + 3600 * 10**9  # however long the run takes
    os.utime(file, ns=(later, later))
    document(settings(tmp_path))
    file.write_text("x = 2\n")
    os.utime(file, ns=(later, later))
    assert "s/x.py_docs.md" in document(settings(tmp_path)).written


@pytest.mark.parametrize("harm", ["manifest", "store", "both", "cut", "blotted", "no folder"])
def test_what_was_kept_may_be_lost_or_broken(tmp_path, harm):
    """A store that is gone, cut short or no store costs time, nothing else."""
    suite(tmp_path)
    document(settings(tmp_path))
    folder = freshness.cache_folder(settings(tmp_path))
    store, manifest = folder / "store.sqlite", folder / "manifest"
    assert store.is_file()
    if harm in ("manifest", "both"):
        manifest.unlink()
    if harm in ("store", "both"):
        store.unlink()
    if harm == "cut":
        store.write_bytes(store.read_bytes()[:5000])
    if harm == "blotted":
        size = store.stat().st_size
        store.write_bytes(store.read_bytes()[:4096] + os.urandom(size - 4096))
    if harm == "no folder":
        shutil.rmtree(folder)
        folder.write_text("in the way")
    put(tmp_path, "base.py", BASE.format(size=7))
    document(settings(tmp_path))
    assert tree(tmp_path / "out") == cold(tmp_path, 0)


def test_other_settings_start_anew(tmp_path):
    """Another title, pack or list of sources is never served from what was kept."""
    suite(tmp_path)
    document(settings(tmp_path))
    document(settings(tmp_path, title="Another"))
    assert b"# Another" in (tmp_path / "out/index.md").read_bytes()
    document(settings(tmp_path, pack="repo-book"))
    assert tree(tmp_path / "out") == tree_of(tmp_path, pack="repo-book")


def tree_of(root, **more):
    document(settings(root, "other", **more))
    return tree(root / "other")


def test_a_template_that_changes_during_the_run_is_seen_by_the_next(tmp_path):
    """Pages belong to the settings and templates with which the run began."""
    suite(tmp_path)
    own = tmp_path / "templates/mine"
    shutil.copytree(packs.pack_folders(settings(tmp_path))[0], own)

    def meddle(step, done, _total):
        if (step, done) == ("sweep", 0):
            with (own / "index.md.jinja").open("a") as template:
                template.write("\nChanged on the way.\n")

    document(settings(tmp_path, pack="mine"), progress=meddle)
    document(settings(tmp_path, pack="mine"))
    assert "Changed on the way." in (tmp_path / "out/index.md").read_text()


@pytest.mark.parametrize("way", ["back", "gone"])
def test_a_page_that_git_brings_back_during_the_run_is_seen_by_the_next(tmp_path, way):
    """What counts is the page as it was written, not what stands there when the run ends."""
    suite(tmp_path)
    document(settings(tmp_path))
    page = tmp_path / "out/s/base.py_docs.md"
    before = page.read_bytes()
    with (tmp_path / "s/base.py").open("a") as source:
        source.write("\n\ndef comes_last(): ...\n")

    def meddle(step, done, _total):
        if (step, done) == ("sweep", 0):
            assert b"comes_last" in page.read_bytes()
            page.unlink()
            if way == "back":
                page.write_bytes(before)

    document(settings(tmp_path), progress=meddle)
    document(settings(tmp_path))
    assert b"comes_last" in page.read_bytes()
    assert tree(tmp_path / "out") == tree_of(tmp_path)


def test_a_run_between_two_others_is_noticed(tmp_path):
    """What one run kept does not count for another that began before it ended."""
    suite(tmp_path)
    document(settings(tmp_path))
    late = freshness.load(settings(tmp_path))
    put(tmp_path, "base.py", BASE.format(size=5))
    document(settings(tmp_path))
    put(tmp_path, "base.py", BASE.format(size=6))
    freshness.save(settings(tmp_path), late)
    document(settings(tmp_path))
    assert tree(tmp_path / "out") == cold(tmp_path, 0)


def test_a_check_keeps_nothing(tmp_path):
    """A check neither writes pages nor keeps anything for later runs."""
    suite(tmp_path)
    report = document(settings(tmp_path), check=True)
    assert report.written
    assert not (tmp_path / "out").exists()
    assert not freshness.cache_folder(settings(tmp_path)).exists()


def test_the_cache_may_be_named_from_the_current_folder(tmp_path, monkeypatch):
    """A relative RANKBOOK_CACHE_DIR is as good as an absolute one, also for what is kept in SQLite."""
    suite(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKBOOK_CACHE_DIR", "cache")
    document(settings(tmp_path))
    put(tmp_path, "base.py", BASE.format(size=5))
    report = document(settings(tmp_path))
    assert "base.py_docs.md" in str(report.written)
    assert not document(settings(tmp_path)).written
    assert (tmp_path / "cache").is_dir()


def test_a_folder_that_comes_to_be_called_like_a_page(tmp_path):
    """A folder is left out for as long as a source beside it has a page of its name; a second run writes what old pages kept out."""
    put(tmp_path, "x.py_docs.md/y.py", "y = 1\n")
    for step, others in enumerate(["b.py", "x.py", "b.py"]):
        put(tmp_path, others, "x = 1\n")
        if step == 2:
            (tmp_path / "s/x.py").unlink()
        said = [warning.partition(";")[0].partition(":")[0] for warning in document(settings(tmp_path)).warnings]
        left = ["s/x.py_docs.md is left out"] if step == 1 else []
        assert said[: len(left)] == left
        assert {one.partition(" ")[2] for one in said[len(left) :]} == (set() if step == 0 else {"is not written yet"})
        assert [warning.partition(":")[0] for warning in document(settings(tmp_path)).warnings] == left
        assert tree(tmp_path / "out") == cold(tmp_path, step)


def test_a_file_in_the_place_of_a_folder_of_pages_costs_what_is_in_it(tmp_path):
    """What a person left where a folder of pages is to be stays there, and is told of; all other pages are made."""
    put(tmp_path, "a/x.py", "x = 1\n")
    put(tmp_path, "b.py", "x = 1\n")
    (tmp_path / "out/s").mkdir(parents=True)
    (tmp_path / "out/s/a").write_text("mine")
    report = document(settings(tmp_path))
    assert "out/s/a/x.py_docs.md is kept: a file stands where its folder is to be, and a page is to stand in its place" in report.warnings
    assert (tmp_path / "out/s/a").read_text() == "mine"
    assert (tmp_path / "out/s/b.py_docs.md").is_file()
    (tmp_path / "out/s/a").unlink()
    assert document(settings(tmp_path)).warnings == ()
    assert tree(tmp_path / "out") == cold(tmp_path, 0)
