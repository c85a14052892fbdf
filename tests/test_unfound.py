"""Tests that stand in a file and that pytest itself does not find: the page and the command name them, with the reason."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from ledgers import rankbook

HELPERS = """\
import functools


def skip_on_error(reason="no network"):
    def wrapper(function):
        @functools.wraps(function)
        def run(*args, **kwargs):
            return function(*args, **kwargs)

        return run

    return wrapper


class Base:
    def __init__(self, world_size):
        self.world_size = world_size

    def test_inherited(self):
        pass
"""
SUITE = """\
import dataclasses
import unittest

import pytest
from helpers import Base, skip_on_error


@skip_on_error("|`odd`|")
class TestDecorated:
    def test_a(self):
        pass

    def test_b(self):
        pass


@skip_on_error()
class CaseDecorated(unittest.TestCase):
    def test_c(self):
        pass


class TestConstructed:
    def test_d(self):
        pass

    def __init__(self):
        pass


class TestInherits(Base):
    def test_e(self):
        pass


@dataclasses.dataclass
class TestData:
    def test_f(self):
        pass


@pytest.mark.slow
def test_again():
    assert 1


def test_again():
    assert 2


class TestMethods:
    def test_twice(self):
        pass

    def helper(self):
        pass

    def test_twice(self):
        pass

    def helper(self):
        pass


class TestTwice:
    def test_g(self):
        pass


class TestTwice:
    def test_h(self):
        pass
"""
FOUND = ["test_again", "TestMethods::test_twice", "TestTwice::test_h"]
UNFOUND = {
    "TestDecorated": (2, '@skip_on_error("|`odd`|") makes the class a function'),
    "CaseDecorated": (1, "@skip_on_error() makes the class a function"),
    "TestConstructed": (1, "the class has a constructor"),
    "TestInherits": (2, "Base has a constructor"),
    "TestData": (1, "the class has a constructor"),
    "test_again": (1, "the name is defined again in line 47"),
    "TestMethods::test_twice": (1, "the name is defined again in line 58"),
    "TestTwice": (1, "the name is defined again in line 70"),
}
CLEAN = """\
import contextlib
import dataclasses
import sys
import unittest
from typing import TYPE_CHECKING

import pytest
from outside import Outside
from parameterized import parameterized

keep = []


@keep.append
def test_kept():
    pass


def test_kept():
    pass


def test_first():
    pass


test_under_another_name = test_first


def test_first():
    pass


if sys.platform == "linux":

    def test_here():
        pass

else:

    def test_here():
        pass


class TestOff:
    __test__ = False

    def __init__(self):
        pass

    def test_a(self):
        pass


class Mixin:
    def __init__(self):
        pass

    def test_a(self):
        pass


class TestCase(unittest.TestCase):
    def __init__(self, *args):
        super().__init__(*args)

    def test_a(self):
        pass


class TestGrows:
    def test_a(self):
        pass


class TestGrows(TestGrows):
    def test_b(self):
        pass


class TestNothing:
    def __init__(self):
        pass

    def helper(self):
        pass

    @property
    def test_value(self):
        return 1

    @test_value.setter
    def test_value(self, value):
        pass


class TestExpands(unittest.TestCase):
    @parameterized.expand([(1,)])
    def test_x(self, n):
        pass

    @parameterized.expand([(1,)], name_func=lambda f, n, p: f.__name__ + "_more")
    def test_x(self, n):
        pass


class TestUnknownBase(Outside):
    def __init__(self, *args):
        super().__init__(*args)

    def test_a(self):
        pass


@dataclasses.dataclass(init=False)
class TestWithoutConstructor:
    def test_a(self):
        pass


class TestTyped:
    if TYPE_CHECKING:

        def __init__(self) -> None: ...

    def test_a(self):
        pass


if sys.version_info >= (3,):

    class TestNew:
        def test_a(self):
            pass

else:

    class TestNew:
        def __init__(self):
            pass

        def test_a(self):
            pass


class Constructed:
    def __init__(self, n):
        pass


class TestReset(Constructed):
    __init__ = object.__init__

    def test_a(self):
        pass


class TestParent:
    def test_a(self):
        pass


class TestChild(TestParent):
    pass


class TestParent:
    def test_b(self):
        pass


try:

    class TestTried:
        def test_a(self):
            pass

except AttributeError:

    class TestTried:
        pass


def test_main():
    pass


if __name__ == "__main__":

    def test_main():
        pass


match sys.byteorder:
    case "little":

        def test_order():
            pass

    case _:

        def test_order():
            pass


def test_loop():
    pass


for _ in range(0):

    def test_loop():
        pass


def test_suppressed():
    pass


with contextlib.suppress(ImportError):
    import nowhere_at_all

    def test_suppressed():
        pass


def test_in_globals():
    pass


globals()["test_under_globals"] = test_in_globals


def test_in_globals():
    pass


def test_in_class():
    pass


class TestHolder:
    test_held = staticmethod(test_in_class)


def test_in_class():
    pass


def plain(cls):
    return type(cls.__name__, (), {"test_a": cls.test_a})


@plain
class TestReplaced:
    def __init__(self):
        pass

    def test_a(self):
        pass


class TestReboundLater:
    def __init__(self):
        pass

    def test_a(self):
        pass


TestReboundLater = plain(TestReboundLater)
"""
"""Of each that pytest finds nothing is said; some of these are not found either, on purpose or for a reason that is not read."""
MORE = """\
import dataclasses as d

import pytest


class Shared:
    def test_shared(self):
        pass


class TestOne(Shared):
    def test_a(self):
        pass


class TestOne(Shared):
    def test_b(self):
        pass


@d.dataclass
class TestCases:
    @pytest.mark.parametrize("n", [1, 2, 3])
    def test_n(self, n):
        pass


class TestOuter:
    def __init__(self):
        pass

    class TestInner:
        def test_a(self):
            pass


class TestGood:
    class TestBuilt:
        def __init__(self):
            pass

        def test_a(self):
            pass

    @pytest.mark.parametrize("n", [1, 2])
    def test_twice(self, n):
        pass

    def test_twice(self):
        pass


@pytest.mark.slow
class TestMarked:
    def test_a(self):
        pass


class TestMarked:
    def test_b(self):
        pass


class TestTakenAway:
    def test_a(self):
        pass

    test_a = None

    def test_b(self):
        pass


def test_taken_away():
    pass


test_taken_away = None
"""
MORE_UNFOUND = {"TestOne": 1, "TestCases": 3, "TestOuter": 1, "TestGood::TestBuilt": 1, "TestGood::test_twice": 2, "TestMarked": 1}


CHANGED = """\
class TestChanged:
    def __init__(self):
        pass

    def test_a(self):
        pass

"""


@pytest.mark.parametrize(
    "change",
    [
        "TestChanged.__init__ = object.__init__",
        "del TestChanged.__init__",
        'setattr(TestChanged, "__init__", object.__init__)',
        "    del __init__",
    ],
)
def test_constructors_that_are_taken_away(change, tmp_path):
    """pytest finds a class whose constructor is gone by the time that the file has been imported: nothing is said of it."""
    (tmp_path / "test_it.py").write_text(f"{CHANGED}{change}\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:rankbook"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "test_it.py::TestChanged::test_a" in done.stdout
    assert rankbook("query", "unfound", "test_it.py", cwd=tmp_path, status=1) == ""


@pytest.fixture
def project(tmp_path):
    suite = tmp_path / "suite"
    suite.mkdir()
    for name, text in {"helpers": HELPERS, "test_lost": SUITE, "test_clean": CLEAN, "test_more": MORE}.items():
        (suite / f"{name}.py").write_text(text)
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["suite"]\n')
    return tmp_path


def page_of(project, name):
    """Give the page of a source."""
    (path,) = project.glob(f"docs/**/{name}.py_docs.md")
    return path.read_text()


def test_it_is_as_pytest_has_it(project):
    """What the command names is not among what pytest collects, and of the same file pytest collects the rest."""
    rows = json.loads(rankbook("query", "unfound", "--format", "json", cwd=project))
    lost, more = ([row for row in rows if row["path"] == f"suite/{name}.py"] for name in ("test_lost", "test_more"))
    assert len(lost) + len(more) == len(rows)
    assert {row["id"].partition("::")[2]: (row["tests"], row["why"]) for row in lost} == UNFOUND
    assert {row["id"].partition("::")[2]: row["tests"] for row in more} == MORE_UNFOUND
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:rankbook", "suite/test_lost.py", "suite/test_more.py"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert re.findall(r"^suite/test_lost.py::(\S+)$", done.stdout, re.MULTILINE) == FOUND
    listed = rankbook("query", "tests", "--format", "ids", "--path", "suite/test_more.py", cwd=project)
    assert sorted(re.findall(r"^suite/test_more.py::\S+$", done.stdout, re.MULTILINE)) == sorted(listed.split())
    written = {line: name for line, name in enumerate(SUITE.splitlines(), 1) if name.lstrip().startswith("def test_")}
    assert len(written) + 1 == len(FOUND) + sum(count for count, _ in UNFOUND.values())  # one is inherited from another file


def test_the_page_names_them(project):
    """A section has a row for each, with lines that lead to the listing; a page without any has none."""
    rankbook("gen", cwd=project)
    page = page_of(project, "test_lost")
    assert "\npytest does not find [10 tests](#tests-that-pytest-does-not-find) of this file.\n" in page
    section = page.partition("## Tests that pytest does not find\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in section.splitlines() if line.startswith("|")][2:]
    assert [row[0] for row in rows] == [
        "`TestDecorated`", "`CaseDecorated`", "`TestConstructed`", "`TestInherits`", "`TestData`", "`test_again`",
        "`TestMethods.test_twice`", "`TestTwice`",
    ]  # fmt: skip
    assert [int(row[2]) for row in rows] == [2, 1, 1, 2, 1, 1, 1, 1]
    assert all(row[1].startswith("[line ") for row in rows)
    assert rows[3][3] == "`Base` has a constructor"
    assert rows[5][3].startswith("the name is defined again ([line 47](")
    assert "does not find" not in page_of(project, "test_clean")


def test_filters_that_do_not_choose_them(project):
    """They are chosen by file, owner or name; of what they would need nothing is known."""
    said = rankbook("query", "unfound", "--name", "TestTwice", cwd=project)
    assert [line.split()[:2] for line in said.splitlines()[1:]] == [["suite/test_lost.py::TestTwice", "1"]]
    said = rankbook("query", "unfound", "--gpus", "2", cwd=project, status=2)
    assert (
        "--gpus: of tests that pytest does not find only the name and the file are known; choose them by --path, --owner or --name" in said
    )
    rankbook("query", "unfound", "--path", "suite/test_clean.py", cwd=project, status=1)


def test_a_file_beside_it_that_changes(project):
    """What a decorator of another file does is read again when that file changes."""
    rankbook("gen", cwd=project)
    helpers = project / "suite/helpers.py"
    helpers.write_text(
        HELPERS.replace("        return run\n", "        return function\n").replace(
            "__init__(self, world_size)", "set_up(self, world_size)"
        )
    )
    rankbook("gen", cwd=project)
    page = page_of(project, "test_lost")
    section = page.partition("## Tests that pytest does not find\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)", section, re.MULTILINE) == ["TestConstructed", "TestData", "test_again", "TestMethods", "TestTwice"]
