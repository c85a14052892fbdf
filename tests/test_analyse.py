"""What the files of a tree say together."""

import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbook import model
from rankbook.analyse import analyse
from rankbook.sources.parse import parse_bytes

CASE = "import unittest\n\n\nclass Base(unittest.TestCase):\n    def test_base(self): ...\n"


def project(**files: str) -> model.Project:
    """Analyse files; `__` in a name stands for `/`, and `.py` is added."""
    return of({name.replace("__", "/") + ".py": text for name, text in files.items()})


def of(files: dict[str, str]) -> model.Project:
    return analyse(parse_bytes(path, text.encode()) for path, text in files.items())


def found_in(result: model.Project, path: str) -> dict[str, model.Test]:
    return {test.id: test for test in result.tests.get(path, ())}


def test_an_empty_tree_has_a_root() -> None:
    """Without any file there is still the root folder."""
    assert list(analyse([]).folders) == [""]


def test_folders() -> None:
    """Each folder knows its direct files and subfolders, those without files too."""
    folders = of({"a.py": "", "x/y/b.py": "", "x/y/a.md": ""}).folders
    assert {path: (folder.folders, folder.files) for path, folder in folders.items()} == {
        "": (("x",), ("a.py",)),
        "x": (("x/y",), ()),
        "x/y": ((), ("x/y/a.md", "x/y/b.py")),
    }


@pytest.mark.parametrize(
    ("path", "text", "name", "target"),
    [
        ("suite/test_a.py", "import common", "common", "suite/common.py"),
        ("suite/test_a.py", "import lib.tools as t", "lib.tools", "lib/tools.py"),
        ("suite/test_a.py", "from lib import tools", "lib.tools", "lib/tools.py"),
        ("suite/test_a.py", "from lib.tools import tool", "lib.tools", "lib/tools.py"),
        ("suite/test_a.py", "from suite.common import x", "suite.common", "suite/common.py"),
        ("suite/deep/test_b.py", "import common", "common", "suite/common.py"),
        ("lib/inner.py", "from . import tools", ".tools", "lib/tools.py"),
        ("lib/inner.py", "from .tools import *", ".tools", "lib/tools.py"),
        ("lib/sub/more.py", "from ..tools import tool", "..tools", "lib/tools.py"),
        ("lib/sub/more.py", "from .. import VERSION", "..", "lib/__init__.py"),
        ("suite/test_a.py", "import types", None, None),
        ("suite/test_a.py", "import elsewhere.common", None, None),
    ],
)
def test_imports_find_their_file(path: str, text: str, name: str | None, target: str | None) -> None:
    """An import leads to its file as pytest would find it; the standard library is not shadowed."""
    files = {"suite/common.py": "", "suite/types.py": "", "lib/__init__.py": "", "lib/tools.py": "", "lib/sub/__init__.py": ""}
    found = of(files | {path: text}).surveys[path].imports
    assert dict(found) == ({name: target} if name else {})


def test_inherited_tests_name_their_file() -> None:
    """A class runs the tests of its bases, through modules, re-exports and aliases; each names the file it stands in."""
    result = project(
        suite__base=CASE,
        suite__reexport="from base import Base as Renamed\nAlias = Renamed\n",
        suite__test_it="import reexport as r\n\n\nclass TestIt(r.Alias):\n    def test_own(self): ...\n",
    )
    found = found_in(result, "suite/test_it.py")
    assert {name: (test.path, test.line, test.inherited_from) for name, test in found.items()} == {
        "TestIt::test_own": ("suite/test_it.py", 5, None),
        "TestIt::test_base": ("suite/base.py", 5, "Base"),
    }
    assert found["TestIt::test_own"].harness == "TestCase"


def test_a_base_that_is_no_test_case_gives_its_tests_to_those_that_are() -> None:
    """A mixin's tests are run by the class that joins it to a harness, and by no other."""
    result = project(
        suite__common="class Common:\n    def test_shared(self): ...\n",
        suite__test_it=(
            "import common\nfrom torch.testing._internal.common_distributed import MultiThreadedTestCase\n"
            "class Abstract(common.Common):\n    def test_abstract(self): ...\n"
            "class TestIt(Abstract, MultiThreadedTestCase): ...\n"
        ),
    )
    assert list(found_in(result, "suite/test_it.py")) == ["TestIt::test_abstract", "TestIt::test_shared"]
    assert found_in(result, "suite/test_it.py")["TestIt::test_shared"].harness == "MultiThreadedTestCase"
    assert "suite/common.py" not in result.tests


def test_overriding_and_hiding() -> None:
    """The first definition in the line of inheritance counts; `None`, `del` and `__test__` take tests away."""
    result = project(
        test_it=CASE
        + "    def test_hidden(self): ...\n    def test_again(self): ...\n"
        + "class Off(Base):\n    __test__ = False\n"
        + "class Sub(Base):\n    test_hidden = None\n    def test_again(self): ...\n"
        + "class Gone(Base): ...\ndel Gone\n"
    )
    found = found_in(result, "test_it.py")
    assert list(found) == ["Base::test_base", "Base::test_hidden", "Base::test_again", "Sub::test_again", "Sub::test_base"]
    assert found["Sub::test_again"].inherited_from is None


def test_what_is_a_test_by_its_name() -> None:
    """They count in test files only, and in scripts that have them run; fixtures, properties, nested functions and built classes do not."""
    text = (
        "import pytest\nimport unittest\nfrom dataclasses import dataclass\n"
        "def test_a():\n    def test_nested(): ...\n"
        "@pytest.fixture\ndef test_data(): ...\n"
        "async def test_b(): ...\n"
        "if X:\n    def test_c(): ...\n"
        "class TestPlain:\n    def test_m(self): ...\n    @property\n    def test_p(self): ...\n"
        "    class TestInner:\n        def test_i(self): ...\n"
        "class TestBuilt:\n    def __init__(self): ...\n    def test_x(self): ...\n"
        "@dataclass\nclass TestData:\n    def test_x(self): ...\n"
        "class Other:\n    def test_x(self): ...\n"
        "class Case(unittest.TestCase):\n    def test_u(self): ...\n"
        "    class TestWithin(unittest.TestCase):\n        def test_w(self): ...\n"
    )
    result = project(test_it=text, helper=text, script=f"{text}if __name__ == '__main__':\n    unittest.main()\n")
    found = ["test_a", "test_b", "test_c", "TestPlain::test_m", "TestPlain::TestInner::test_i", "Case::test_u"]
    assert list(found_in(result, "test_it.py")) == found
    assert list(found_in(result, "script.py")) == found
    assert list(found_in(result, "helper.py")) == []


def test_the_standard_library_as_a_tree() -> None:
    """In a tree that holds `unittest` itself, its test cases are test cases still."""
    files = {"unittest/__init__.py": "from .case import TestCase\n", "unittest/case.py": "class TestCase: ...\n", "test/test_it.py": CASE}
    assert list(found_in(of(files), "test/test_it.py")) == ["Base::test_base"]


def test_imported_tests_run_again() -> None:
    """A test file runs the tests that it imports by name, as pytest does; those imported within functions stay out."""
    result = project(
        test_one=CASE + "def test_f(): ...\n",
        test_two="from test_one import Base as Renamed, test_f\ndef later():\n    from test_one import Base\n",
    )
    assert [(name, test.path) for name, test in found_in(result, "test_two.py").items()] == [
        ("Renamed::test_base", "test_one.py"),
        ("test_f", "test_one.py"),
    ]


def test_tests_that_are_imported_whole() -> None:
    """`import *` takes what a module itself imports, whole or by name, but nothing that it deletes or that its `__all__` leaves out."""
    result = project(
        base=CASE + "class _Hidden(Base): ...\nclass Gone(Base): ...\n",
        named="import unittest\nclass Named(unittest.TestCase):\n    def test_named(self): ...\n",
        middle="from base import *\nfrom named import Named as Other\nfrom test_whole import *\nclass Left(Base): ...\ndel Left, Gone\n",
        listed=CASE.replace("Base", "Taken") + "class Unlisted(Taken): ...\n__all__ = ['Taken']\n",
        test_whole="from middle import *\nfrom listed import *\n",
    )
    assert sorted(found_in(result, "test_whole.py")) == ["Base::test_base", "Other::test_named", "Taken::test_base"]


def test_parameters() -> None:
    """Parametrisations of the function and of its class are told as written, with the calls that make one class per device."""
    result = project(
        test_it="import pytest\nfrom u import TestCase, parametrize, instantiate_device_type_tests\n"
        '@pytest.mark.parametrize("c", [1])\nclass TestIt:\n    @pytest.mark.parametrize("n", [1, 2])\n    def test_n(self, c, n): ...\n'
        'class Each(TestCase):\n    @parametrize("x", [True])\n    def test_x(self, x): ...\n'
        "instantiate_device_type_tests(Each, globals())\n"
    )
    found = found_in(result, "test_it.py")
    assert list(found) == ["TestIt::test_n[1-1]", "TestIt::test_n[2-1]", "EachCPU::test_x_x_True_cpu", "EachCUDA::test_x_x_True_cuda"]
    assert found["TestIt::test_n[1-1]"].parameters == ('pytest.mark.parametrize("n", [1, 2])', 'pytest.mark.parametrize("c", [1])')
    assert found["EachCPU::test_x_x_True_cpu"].parameters == ('parametrize("x", [True])', "instantiate_device_type_tests(Each, globals())")


def test_a_hook_that_parametrises_leaves_no_name_certain() -> None:
    """Where `pytest_generate_tests` may give a test what it asks for, one entry stands for its cases; others have their names."""
    auto = "import pytest\n\n@pytest.fixture(autouse=True, params=['A'])\ndef auto(request): ...\n\n"
    tests = "def test_gen(gen): ...\n\ndef test_own(tmp_path): ...\n\ndef test_plain(): ...\n"
    hook = "def pytest_generate_tests(metafunc):\n    if 'gen' in metafunc.fixturenames:\n        metafunc.parametrize('gen', range(3))\n"
    for files in ({"test_it.py": auto + tests, "conftest.py": hook}, {"test_it.py": auto + hook + tests}):
        found = found_in(of(files), "test_it.py")
        assert {name: bool(test.family) for name, test in found.items()} == {"test_gen": True, "test_own[A]": False, "test_plain[A]": False}
    assert set(found_in(of({"test_it.py": auto + tests}), "test_it.py")) == {"test_gen[A]", "test_own[A]", "test_plain[A]"}


HOOKED = """import pytest
@pytest.fixture
def fix(): ...
@pytest.fixture
def of_gen(gen): ...
def test_gen(gen): ...
def test_by_fixture(of_gen): ...
@pytest.mark.usefixtures("of_gen")
def test_by_mark(): ...
@pytest.mark.parametrize("gen", [1])
def test_given(gen): ...
def test_plugin(mocker): ...
def test_fix(fix): ...
def test_own(tmp_path): ...
def test_plain(): ...
class TestC:
    def test_in_class(self, gen): ...
class TestHook:
    def pytest_generate_tests(self, metafunc): metafunc.parametrize("own", [1, 2])
    def test_hook(self, own): ...
"""


@pytest.mark.parametrize(
    ("hook", "several"),
    [
        ("    if 'gen' in metafunc.fixturenames:\n        metafunc.parametrize('gen', range(3))\n", "gen by_fixture by_mark in_class"),
        ("    metafunc.parametrize(('gen', 'x'), load(metafunc.config))\n", "gen by_fixture by_mark in_class"),
        ("    for name in NAMES:\n        metafunc.parametrize(name, [1])\n", "gen by_fixture by_mark in_class plugin"),
        ("    helper(metafunc)\n", "gen by_fixture by_mark in_class plugin"),
        ("    metafunc.parametrize(argnames='fix', argvalues=[1, 2], indirect=True)\n", "fix"),
        ("    print(metafunc.function)\n", ""),
    ],
)
def test_what_a_hook_parametrises(hook: str, several: str) -> None:
    """A test stands for several where a hook parametrises what it asks for, whatever else parametrises it; no other one does."""
    whole = f"def pytest_generate_tests(metafunc):\n{hook}"
    wanted = {*(f"test_{name}" for name in several.split()), "test_hook"}
    for files in ({"conftest.py": whole}, {"hooks.py": whole, "conftest.py": "from hooks import pytest_generate_tests\n"}):
        found = found_in(of({"test_it.py": HOOKED, **files}), "test_it.py")
        assert {test.function for test in found.values() if test.family} == wanted
        assert len(found) == 10
    alone = found_in(of({"test_it.py": HOOKED}), "test_it.py")
    assert {test.function for test in alone.values() if test.family} == {"test_hook"}


def test_circles_end() -> None:
    """Imports and bases that go in circles are followed once."""
    result = project(
        a="from b import X\nfrom b import *\nclass Y(X): ...\nclass Z(Z): ...\nP = Q\nQ = P\nclass R(P): ...\n",
        b="from a import X, Y\nfrom a import *\nclass W(Y): ...\n",
    )
    assert set(result.modules) == {"a.py", "b.py"}


def test_an_impossible_order_of_bases_is_no_crash() -> None:
    """Where Python itself finds no order, each base still counts once."""
    result = project(test_it="class A: ...\nclass B(A): ...\nclass TestC(A, B):\n    def test_x(self): ...\n")
    assert list(found_in(result, "test_it.py")) == ["TestC::test_x"]


def test_unresolved_bases() -> None:
    """A base that neither the tree, nor a table, nor Python knows is told; the others are not."""
    result = project(
        test_it="import enum, torch.nn as nn, unittest\nclass A(nn.Module, enum.Enum, unittest.TestCase, Exception): ...\nclass B(A): ...\n"
    )
    assert [(base.text, base.line) for base in result.surveys["test_it.py"].unresolved] == [("nn.Module", 2)]


def test_keywords_know_tests() -> None:
    """In the keyword lists, functions that run as tests are tests, in the file that holds them."""
    result = project(base=CASE, test_it="import base\nclass TestIt(base.Base):\n    def helper(self): ...\n")
    kinds = {keyword.name: keyword.kind for path in ("base.py", "test_it.py") for keyword in result.modules[path].keywords}
    assert (kinds["test_base"], kinds["helper"]) == ("test", "method")


def test_relations_say_why() -> None:
    """Related files come nearest first: bases, imports, subclasses, importers, then files that call the same rare names."""
    result = project(
        suite__base=CASE + "import torch.futures as f\nf.wait_all()\nf.collect_all()\n",
        suite__tools="def tool(): ...\n",
        suite__test_a="import tools\nfrom base import Base\nclass TestA(Base): ...\n",
        other="from torch.futures import collect_all, wait_all\nwait_all()\ncollect_all()\n",
        unrelated="import json\njson.loads('1')\n",
    )
    shown = {path: [(relation.path, relation.why, relation.line) for relation in relations] for path, relations in result.relations.items()}
    assert shown["suite/test_a.py"] == [
        ("suite/base.py", "holds Base, a base class of TestA", 3),
        ("suite/tools.py", "is imported here", 1),
    ]
    assert shown["suite/base.py"] == [
        ("suite/test_a.py", "holds TestA, a subclass of Base", 3),
        ("other.py", "calls the same APIs: torch.futures.collect_all, torch.futures.wait_all", 8),
    ]
    assert shown["suite/tools.py"] == [("suite/test_a.py", "imports it, and has tests", 1)]
    assert "unrelated.py" not in shown


def test_relations_are_few() -> None:
    """A file that all others import still has room for other kinds of relation."""
    files = {f"test_{number:02}.py": "import tools\n" for number in range(30)} | {"tools.py": "import deep\n", "deep.py": ""}
    relations = of(files).relations["tools.py"]
    assert len(relations) == 10
    assert relations[0].path == "deep.py"


def test_projects_pickle() -> None:
    """What is found can be cached and sent to other processes."""
    result = project(base=CASE)
    assert pickle.loads(pickle.dumps(result)).tests == result.tests


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["a.py", "test_b.py", "p/__init__.py", "p/test_c.py"]),
        st.lists(
            st.sampled_from(
                [
                    "from a import *",
                    "from .test_c import A",
                    "import p.test_c as q",
                    "class A(B, q.A): ...",
                    "class B(A):\n  def test_1(self): ...",
                    "@skipIf(not (X or A), '')\nclass TestD(A):\n  world_size = B\n  def test_2(self): ...",
                    "B = A",
                    "X = not X",
                    "del A",
                    "pytestmark = X",
                ]
            ),
            max_size=8,
        ),
        max_size=4,
    )
)
def test_no_tree_makes_analyse_raise(files: dict[str, list[str]]) -> None:
    """Whatever names, bases and conditions a tree ties together, the analysis ends with each file in it."""
    assert set(of({path: "\n".join(lines) for path, lines in files.items()}).modules) == set(files)


def test_the_same_tree_gives_the_same_project() -> None:
    """The order in which files are found does not matter."""
    files = {path.name: path.read_text() for path in sorted(Path(__file__).parent.glob("test_[ac]*.py"))}
    assert of(files) == of(dict(reversed(files.items())))
