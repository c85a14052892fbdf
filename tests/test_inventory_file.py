"""The inventory by which other sites link into the book, read back as Sphinx reads it."""

import re
import zlib
from collections import Counter

import pytest

from rankbook.analyse import analyse
from rankbook.dotted import module_name
from rankbook.pages.inventory import entries, inventory, lines_of, named, with_directories
from rankbook.sources.parse import parse_bytes

FILES = {
    "suite/__init__.py": "",
    "suite/test_a b.py": "def test_x(): ...\n",
    "suite/test_it.py": (
        "import unittest\nfrom suite.base import Base\n\n\nclass TestIt(Base):\n    def test_own(self):\n        def inner(): ...\n\n\n"
        "def helper(): ...\n\n\nclass Outer:\n    class Inner:\n        def work(self): ...\n"
    ),
    "suite/base.py": "import unittest\n\n\nclass Base(unittest.TestCase):\n    def test_shared(self): ...\n",
    "a/conftest.py": "def one(): ...\n",
    "b/conftest.py": "def two(): ...\n",
    "docs/read me.md": "# The  Guide\n\ntext\n\n# The Guide\n",
    "data.bin": "",
}
LINE = re.compile(r"(.+?)\s+(\S+)\s+(-?\d+)\s+?(\S*)\s+(.*)")
"""A line of an inventory, as the format's own reader takes it apart."""


def read(data: bytes) -> dict[tuple[str, str], tuple[str, str]]:
    """Read an inventory: address and shown text by role and name."""
    *head, body = data.split(b"\n", 4)
    assert head[0] == b"# Sphinx inventory version 2"
    assert (head[1], head[2]) == (b"# Project: The suite", b"# Version: 1.2")
    assert b"zlib" in head[3]
    found = {}
    for line in zlib.decompress(body).decode().splitlines():
        match = LINE.fullmatch(line)
        assert match is not None, line
        name, role, _, address, shown = match.groups()
        assert (role, name) not in found
        found[role, name] = (address.removesuffix("$") + name if address.endswith("$") else address, name if shown == "-" else shown)
    return found


def written(rows, **options) -> bytes:
    """Write the inventory of the suite."""
    made = [entries(row, **options) for row in rows]
    taken = Counter(each.module for each in made)
    return inventory([lines_of([each], taken) for each in made], "The suite", "1.2")


@pytest.fixture(scope="module")
def rows():
    """What each file offers."""
    project = analyse(parse_bytes(path, text.encode()) for path, text in FILES.items())
    names = {path: module_name(path, project.modules.__contains__) if path.endswith(".py") else "" for path in FILES}
    return [named(module, names[path], project.tests.get(path, ())) for path, module in project.modules.items()]


def test_names_lead_to_lines(rows) -> None:
    """Modules, classes, functions, methods and tests, the inherited ones too, each at its line; what is inside a function is left out."""
    found = {name: (role, address) for (role, name), (address, _) in read(written(rows)).items() if role[:3] == "py:"}
    page = "suite/test_it.py_docs.html"
    assert {name: entry for name, entry in found.items() if name.startswith("suite.test_it")} == {
        "suite.test_it": ("py:module", page),
        "suite.test_it.TestIt": ("py:class", f"{page}#__codelineno-source-5"),
        "suite.test_it.TestIt.test_own": ("py:method", f"{page}#__codelineno-source-6"),
        "suite.test_it.TestIt.test_shared": ("py:method", "suite/base.py_docs.html#__codelineno-source-5"),
        "suite.test_it.Base.test_shared": ("py:method", "suite/base.py_docs.html#__codelineno-source-5"),
        "suite.test_it.helper": ("py:function", f"{page}#__codelineno-source-10"),
        "suite.test_it.Outer": ("py:class", f"{page}#__codelineno-source-13"),
        "suite.test_it.Outer.Inner": ("py:class", f"{page}#__codelineno-source-14"),
        "suite.test_it.Outer.Inner.work": ("py:method", f"{page}#__codelineno-source-15"),
    }
    assert found["suite"] == ("py:module", "suite/__init__.py_docs.html")


def test_files_that_share_a_name_go_by_their_paths(rows) -> None:
    """Two files that are imported under one name would hide each other."""
    found = read(written(rows))
    assert {name for role, name in found if role == "py:module"} == {"suite", "suite.base", "suite.test_it", "a.conftest", "b.conftest"}
    assert found["py:function", "b.conftest.two"][0] == "b/conftest.py_docs.html#__codelineno-source-1"


def test_pages_and_headings(rows) -> None:
    """Every file's page by its path, every heading of prose by its text; the second of the same text by its number."""
    found = read(written(rows))
    assert {name for role, name in found if role == "std:doc"} == set(FILES)
    assert found["std:doc", "suite/test_a b.py"] == ("suite/test_a%20b.py_docs.html", "suite/test_a b.py")
    labels = {name: entry for (role, name), entry in found.items() if role == "std:label"}
    assert labels == {
        "docs/read me.md:the guide": ("docs/read%20me.md_docs.html#__codelineno-source-1", "The Guide"),
        "docs/read me.md:the guide:2": ("docs/read%20me.md_docs.html#__codelineno-source-5", "The Guide"),
    }


def test_sites_with_a_folder_for_each_page(rows) -> None:
    """The addresses are those of the site; a page without a listing has no lines."""
    found = read(with_directories(written(rows, unlisted=frozenset({"suite/base.py"}))))
    assert found["py:class", "suite.test_it.TestIt"][0] == "suite/test_it.py_docs/#__codelineno-source-5"
    assert found["py:class", "suite.base.Base"][0] == "suite/base.py_docs/"
    assert found["std:doc", "suite/test_a b.py"][0] == "suite/test_a%20b.py_docs/"
    assert found["std:label", "docs/read me.md:the guide:2"][0] == "docs/read%20me.md_docs/#__codelineno-source-5"
    assert with_directories(b"none") == b"none"


def test_a_title_stays_on_its_line() -> None:
    """Nothing that a title holds ends the head of the file early."""
    assert inventory([], "The\nsuite", "1\r2").split(b"\n")[1:3] == [b"# Project: The suite", b"# Version: 1 2"]
