"""The ids of tests, of many ways to parametrise them, are those that pytest itself collects; what is not read is said to be a family."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rankbook.analyse import analyse
from rankbook.analyse.draft import Draft
from rankbook.analyse.tests import collect
from rankbook.collecting import Rules, rules_of
from rankbook.sources.parse import parse_bytes

HEAD = "import functools, math, operator, string\nimport pytest\nfrom typing import Any\n"
PARAMS = "pytest.fixture(params=['a', 'b'])"
TWO = "@pytest.fixture(params=['d1', 'd2'])\ndef dtype(request): ...\n"
ASKED = f"{TWO}@pytest.fixture\ndef x(request, dtype): ...\n"
GROWN = "@pytest.mark.parametrize('n', found)\ndef test_x(n): ...\n"
READ: dict[str, str] = {
    # The order in which fixtures are asked for
    "a fixture's own come first": (
        f"{TWO}@pytest.fixture\ndef data(dtype): ...\n"
        "@pytest.fixture(params=['o1', 'o2'])\ndef op(request): ...\ndef test_x(data, op): ...\n"
    ),
    "three deep": (
        f"{TWO}@pytest.fixture\ndef a(dtype): ...\n@{PARAMS}\ndef b(request, a): ...\n"
        f"@{PARAMS}\ndef c(request): ...\ndef test_x(c, b): ...\n"
    ),
    "a wider scope": f"{TWO}@pytest.fixture(scope='module', params=[1, 2])\ndef wide(request): ...\ndef test_x(dtype, wide): ...\n",
    # Fixtures by other names
    "under another name": f"@{PARAMS}\ndef left(request): ...\nright = left\ndef test_x(left, right): ...\n",
    "with a name of its own": "@pytest.fixture(name='named', params=[1, 2])\ndef make(request): ...\ndef test_x(named): ...\n",
    "a decorator that is kept": f"each = {PARAMS}\n@each\ndef kind(request): ...\ndef test_x(kind): ...\n",
    "made by a call": f"def make(request): ...\nkind = {PARAMS}(make)\ndef test_x(kind): ...\n",
    "of a class": f"class TestX:\n    @{PARAMS}\n    def left(self, request): ...\n    right = left\n    def test_x(self, right): ...\n",
    "over one for which it asks": (
        f"@{PARAMS}\ndef data(request): ...\nclass TestX:\n    @pytest.fixture\n    def data(self, data): ...\n"
        "    def test_x(self, data): ...\n"
    ),
    "over one for which it does not ask": (
        f"@{PARAMS}\ndef data(request): ...\nclass TestX:\n    @pytest.fixture\n    def data(self): ...\n    def test_x(self, data): ...\n"
    ),
    # What is handed to fixtures
    "indirect": f"{ASKED}@pytest.mark.parametrize('x', [1, 2], indirect=True)\ndef test_x(x): ...\n",
    "one indirect of two": (f"{ASKED}@pytest.mark.parametrize('x, y', [(1, 2)], indirect=['x'])\ndef test_x(x, y): ...\n"),
    "direct": f"{ASKED}@pytest.mark.parametrize('x', [1, 2])\ndef test_x(x): ...\n",
    # Names
    "named by repr": "@pytest.mark.parametrize('n', ['1st', 2, None], ids=repr)\ndef test_x(n): ...\n",
    "named by str": "@pytest.mark.parametrize('n', ['1st', 2, None], ids=str)\ndef test_x(n): ...\n",
    "named by type": "@pytest.mark.parametrize('n', ['1st', 2, None, (1,), float], ids=type)\ndef test_x(n): ...\n",
    "functions of Python's library": (
        "@pytest.mark.parametrize('f', [operator.add, math.sin, str.upper, functools.partial])\ndef test_x(f): ...\n"
    ),
    "values of Python's library": "@pytest.mark.parametrize('n', [math.pi, math.inf, *string.digits[:2]])\ndef test_x(n): ...\n",
    "generators": (
        "@pytest.mark.parametrize('c, n', [({1: 2}, 1), ((i for i in range(2)), 2), ([i for i in (1, 2)], 3)])\ndef test_x(c, n): ...\n"
        "@pytest.mark.parametrize('n', [(i for i in 'ab'), 3], ids=lambda v: type(v).__name__)\ndef test_t(n): ...\n"
        "@pytest.mark.parametrize('c', list(i for i in (1, 2)))\ndef test_y(c): ...\n"
        "@pytest.mark.parametrize('c', [(i for i in 'ab'), sorted(i for i in 'ba')])\ndef test_z(c): ...\n"
    ),
    # Arguments by stars
    "a dictionary": "A = {'argnames': 'a, b', 'argvalues': [(1, 2), (3, 4)]}\n@pytest.mark.parametrize(**A)\ndef test_x(a, b): ...\n",
    "a tuple": "@pytest.mark.parametrize(*('n', [1, 2]))\ndef test_x(n): ...\n",
    "by their names": "@pytest.mark.parametrize(argvalues=[1, 2], argnames='n')\ndef test_x(n): ...\n",
    # What has changed since it was set
    "an entry that is set": f"found = {{'a': 1}}\nfound['b'] = 2\n{GROWN}",
    "an entry that is set where it is true": f"found = {{'a': 1}}\nif True:\n    found['b'] = 2\n{GROWN}",
    "an entry that is set below": f"found = {{'a': 1}}\n{GROWN}found['b'] = 2\n",
    "appended": f"found = [1]\nfound.append(2)\n{GROWN}",
    # What goes through a set, whose order no id tells
    "texts of a set": f"found = list(set('abc') - {{'b'}})\n{GROWN}",
    "objects of a set": f"found = [[n] for n in {{'a', 'b'}}]\n{GROWN}",
    "sorted entries of a set": f"found = [f'{{n}}{{place}}' for place, n in enumerate(sorted({{'a', 'b'}}))]\n{GROWN}",
    # Classes with constructors
    "classes of modules of torch": (
        "from typing import Protocol\nimport torch\nfrom torch import nn\nfrom torch.nn import Module\n"
        "from torch.utils.data import Dataset\n"
        "class Base(Module):\n    def __init__(self):\n        super().__init__()\n    def test_step(self): ...\n"
        "class TestModel(Base):\n    x = 1\nclass TestPlain(nn.Module):\n    def test_a(self): ...\n"
        "class TestFunction(torch.autograd.Function):\n    def test_a(self): ...\nclass TestData(Dataset):\n    def test_b(self): ...\n"
        "class Like(Protocol):\n    def test_c(self): ...\nclass TestLike(Like):\n    def test_d(self): ...\n"
        "class TestMade(Dataset):\n    def __init__(self): ...\n    def test_a(self): ...\n"
    ),
    "classes of which only some bases have constructors": (
        "import sys\nimport torch\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from typing import Protocol\nelse:\n    Protocol = object\n"
        "class TestA(Protocol):\n    def test_a(self): ...\n"
        "Plain = object\nif TYPE_CHECKING:\n    Plain = torch.nn.Module\nclass TestB(Plain):\n    def test_b(self): ...\n"
        "try:\n    import no_such_module\n    from torch.nn import Module as Base\nexcept ImportError:\n    Base = object\n"
        "class TestC(Base):\n    def test_c(self): ...\n"
    ),
    # One that stands in for another is not there where that is
    "a class and a function of a try and of its except": (
        "try:\n    import json\n    class TestX:\n        def test_a(self): ...\n        def test_b(self): ...\n    def test_f(): ...\n"
        "except ImportError:\n    class TestX:\n        def test_c(self): ...\n"
        "    @pytest.mark.parametrize('n', [1, 2])\n    def test_f(n): ...\n"
        "class TestY(TestX): ...\n"
    ),
    "methods of a try and of its except": (
        "class TestX:\n    try:\n        import json\n        def test_a(self): ...\n"
        "    except ImportError:\n        @pytest.mark.parametrize('n', [1, 2])\n        def test_a(self, n): ...\n"
    ),
    "a class of an except alone": (
        "try:\n    import no_such_module_anywhere\nexcept ImportError:\n    class TestX:\n        def test_a(self): ...\n"
    ),
    "a class with tests of an if and one without of its else": (
        "if math:\n    class TestX:\n        def test_a(self): ...\nelse:\n    class TestX: ...\n"
    ),
    "a class without tests of an if and one with some of its else": (
        "if not math:\n    class TestX: ...\nelse:\n    class TestX:\n        def test_a(self): ...\n"
    ),
}
NOT_READ: dict[str, str] = {
    "the text of a set": f"found = [str({{1}}), str(set())]\n{GROWN}",
    "places in a set": f"found = [f'{{place}}{{n}}' for place, n in enumerate({{'a', 'b', 'c'}})]\n{GROWN}",
    "places beside what a set holds": f"found = [pytest.param(n, id=f'{{n}}{{p}}') for p, n in enumerate(set('abc'))]\n{GROWN}",
    "appended in a loop": f"found = []\nfor n in (1, 2, 3):\n    found.append(object())\n{GROWN}",
    "added in a loop": f"found = []\nfor _ in (1, 2):\n    found += [1]\n{GROWN}",
    "set in a loop": f"found = {{}}\nfor n in (1, 2):\n    found[n] = 1\n{GROWN}",
    "an entry that is taken": f"found = [1, 2]\ndel found[0]\n{GROWN}",
    "an entry of a list that is set": f"found = [1, 2]\nfound[0] = 7\n{GROWN}",
    "registered": f"found = []\ndef put(f):\n    found.append(f)\n    return f\n@put\ndef one(): ...\n@put\ndef two(): ...\n{GROWN}",
    "filled by a function": f"found = {{'a': 1}}\ndef fill(n):\n    found[n] = 1\nfor n in 'bc':\n    fill(n)\n{GROWN}",
}


def files() -> Iterator[tuple[str, str, str]]:
    """Yield for each case its name, the name of its file and its text."""
    for number, (name, text) in enumerate((READ | NOT_READ).items()):
        yield name, f"test_{number}.py", HEAD + text


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Collect all cases with plain pytest; gives the ids of each file."""
    folder: Path = tmp_path_factory.mktemp("collected")
    for _, file, text in files():
        (folder / file).write_text(text)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:rankbook", "-W", "ignore"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        file, _, id_ = line.partition("::")
        if id_:
            found.setdefault(file, []).append(id_)
    return found


@pytest.mark.parametrize(("name", "file", "text"), list(files()), ids=[*READ, *NOT_READ])
def test_what_the_book_lists_is_what_pytest_collects(name: str, file: str, text: str, collected: dict[str, list[str]]) -> None:
    """No id is missing, none is there that is not pytest's; where cases are not read, one entry stands for all of them, and says so."""
    tests = analyse([parse_bytes(file, text.encode())]).tests[file]
    if name in READ:
        assert sorted(test.id for test in tests) == sorted(collected[file])
    else:
        (test,) = tests
        assert test.family.startswith("one test for each case of `pytest.mark.parametrize('n', found)`: ")
        assert len(collected[file]) > 1 or "del found" in text
        assert all(each.startswith(f"{test.id}[") for each in collected[file])


@pytest.mark.parametrize(
    ("name", "value"), [("float32", "float32"), ("double", "float64"), ("nan", "nan"), ("inf", "inf"), ("pi", "3.141592653589793")]
)
def test_names_of_numpy(name: str, value: str) -> None:
    """Data types and constants of NumPy are known whether it is installed or not."""
    text = f"import numpy as np, pytest\n@pytest.mark.parametrize('n', [np.{name}])\ndef test_x(n): ...\n"
    (test,) = analyse([parse_bytes("test_it.py", text.encode())]).tests["test_it.py"]
    assert test.id == f"test_x[{value}]"
    if np := sys.modules.get("numpy"):
        assert value in (str(getattr(np, name)), getattr(getattr(np, name), "__name__", ""))


def test_what_numpy_makes_is_not_guessed() -> None:
    """pytest shows the value of some of its numbers, and of others their place."""
    text = "import numpy as np, pytest\n@pytest.mark.parametrize('n', [np.float64(1)])\ndef test_x(n): ...\n"
    (test,) = analyse([parse_bytes("test_it.py", text.encode())]).tests["test_it.py"]
    assert test.family.endswith("what `float64` makes is known when it runs")


@pytest.mark.parametrize(("goes_deep", "first"), [(True, "d1-o1"), (False, "o1-d1")])
def test_pytest_before_9_1_takes_fixtures_in_breadth(goes_deep: bool, first: str, tmp_path: Path) -> None:
    """What each fixture asks for comes behind all that the test asks for itself; which pytest is installed is looked up."""
    facts = {"test_it.py": parse_bytes("test_it.py", (HEAD + READ["a fixture's own come first"]).encode())}
    found = collect(Draft(facts, frozenset(facts), rules=Rules(goes_deep=goes_deep)), "test_it.py")
    assert found[0].test.id == f"test_x[{first}]"
    assert rules_of(tmp_path).goes_deep == (tuple(map(int, pytest.__version__.split(".")[:2])) >= (9, 1))
