"""What of a listing on a page made by people is a test: what plain pytest would run of it runs, and nothing is green that did not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from proving import page, prove

FAILING = {
    "a name without an underscore": "def testfoo():\n    assert 0\n",
    "a name without an underscore, with a fixture": "def testfoo(tmp_path):\n    assert not tmp_path\n",
    "a name that is all": "def test():\n    assert 0\n",
    "a class within a class": "class TestOuter:\n    class TestInner:\n        def test_x(self):\n            assert 0\n",
    "a method under a condition": "class TestA:\n    if True:\n        def test_x(self):\n            assert 0\n",
    "an inherited method": "class Base:\n    def test_x(self):\n        assert 0\n\n\nclass TestChild(Base):\n    pass\n",
    "a lambda": "test_it = lambda: 1 / 0\n",
    "one that calls itself": "def test_x(n=2):\n    if n > 50:\n        return test_x(n - 1)\n    assert not n\n",
    "one that is called where nobody comes": "def test_a(tmp_path):\n    assert not tmp_path\n\n\ndef main():\n    test_a('x')\n",
    "one whose name is a parameter elsewhere": (
        "def test_a():\n    assert 0\n\n\nclass Runner:\n    def go(self, test_a):\n        return test_a(1)\n"
    ),
    "cases beside a call": (
        "import pytest\n\n\n@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n):\n    assert n == 1\n\n\n"
        "if __name__ == '__main__':\n    test_n(1)\n"
    ),
    "a default beside a call": "def test_b(x=1):\n    assert x == 3\n\n\ntest_b(3)\n",
    "what raises": "import pytest\n\n\ndef testfoo():\n    with pytest.raises(ValueError):\n        int('1')\n",
    "beside one that is called": (
        "def test_a():\n    assert 0\n\n\ndef use(call):\n    call(1)\n\n\ndef test_b(x=1):\n    pass\n\n\nuse(test_b)\n"
    ),
}
"""Tests that fail, as pytest finds them in a file."""
VACUOUS = {
    "a function under a condition": "import sys\n\nif sys.maxsize < 0:\n    def test_gpu():\n        assert 0\n",
    "a function that is taken away": "def test_x():\n    assert 0\n\n\ndel test_x\n",
}
"""Of these pytest finds no test."""
PROGRAMS = {
    "a step of a loop": "def test_loop(data, model):\n    assert data != model\n\n\nfor epoch in range(2):\n    test_loop(epoch, 2)\n",
    "a function to be called elsewhere": "def test(model, data):\n    return model(data)\n",
    "a function that is called": "def test():\n    print('done')\n\n\ntest()\n",
    "a step that a function calls": (
        "def test_loop(data, model):\n    assert data != model\n\n\ndef main():\n    test_loop(1, 2)\n\n\n"
        "if __name__ == '__main__':\n    main()\n"
    ),
    "a function without what it works on": "def test():\n    model.eval()\n    return model(data)\n",
    "a function that asserts the shape of what it gets": "def test(model, data):\n    assert data.shape == (1, 2)\n",
    "a lambda that wants something": "test_transform = lambda x: x * 2\n",
    "a lambda that is handed on": "test_it = lambda: 1 / 0\nprint(test_it)\n",
    "what a call makes": "from functools import partial\n\ntest_loader = partial(print, sep='')\n",
    "a fixture": "import pytest\n\n\n@pytest.fixture\ndef test_client():\n    return 1\n",
    "a class that only says what there is": "from typing import Protocol\n\n\nclass TestLike(Protocol):\n    def test(self): ...\n",
    "a class with a constructor": "class TestA:\n    def __init__(self):\n        pass\n\n    def test_all(self):\n        assert 0\n",
    "a class that is made one with a constructor": (
        "from dataclasses import dataclass\n\n\n@dataclass\nclass TestConfig:\n    a: int\n\n    def test_x(self):\n        assert 0\n"
    ),
    "a test case without tests": "import unittest\n\n\nclass Base(unittest.TestCase):\n    def help(self):\n        return 1\n",
    "a class that is used": (
        "class TestRunner:\n    def __init__(self, of):\n        self.of = of\n\n    def test(self):\n        return self.of\n\n\n"
        "assert TestRunner(3).test() == 3\n"
    ),
}
"""Listings that only define and call what has such a name."""


@pytest.fixture(scope="module")
def proved(tmp_path_factory):
    """What becomes of each of these listings, by its name; and the output of the run."""
    folder = tmp_path_factory.mktemp("tests_of_listings")
    found = [*FAILING.items(), *VACUOUS.items(), *PROGRAMS.items()]
    page(folder, "p", *((f"python {{name=l{place}}}", body) for place, (_, body) in enumerate(found)))
    result = prove(folder, "docs")
    by_listing: dict[str, set[str]] = {}
    for item, outcome in result.outcomes().items():
        by_listing.setdefault(item.split("::")[1], set()).add(outcome)
    return {name: by_listing[f"l{place}"] for place, (name, _) in enumerate(found)}, result


@pytest.mark.parametrize("name", FAILING)
def test_what_plain_pytest_runs_is_run(proved, name, tmp_path):
    """A test that fails in a file fails in a listing, whichever way it is written."""
    (tmp_path / "test_it.py").write_text(FAILING[name])
    plain = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=tmp_path, capture_output=True, check=False)
    assert plain.returncode == pytest.ExitCode.TESTS_FAILED
    assert "failed" in proved[0][name], proved[1].output


@pytest.mark.parametrize("name", VACUOUS)
def test_a_listing_whose_tests_pytest_does_not_find_is_vacuous(proved, name):
    """It was imported, and that is all: it is not green."""
    assert proved[0][name] == {"skipped"}
    assert "pytest collects no test from it" in proved[1].output


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_listing_that_calls_such_a_function_is_a_program(proved, name):
    """What a listing itself calls, or only defines for its reader, is no test."""
    assert proved[0][name] == {"passed"}, proved[1].output


RUNS_THEM = """\
import io
import unittest
result = unittest.TextTestRunner(io.StringIO()).run(unittest.defaultTestLoader.loadTestsFromTestCase(TestIt))
assert result.wasSuccessful()"""


def test_tests_in_a_session_are_refused(tmp_path):
    """Nobody would run them there; what another part calls, what wants something, and what the session runs itself is none of them."""
    page(
        tmp_path, "p",
        ("python {session=a name=one}", "x = 1"), ("python {session=a name=two}", "def test_x():\n    assert x == 2"),
        ("python {session=b name=three}", "def test_loop(data):\n    assert data"), ("pycon {session=b name=four}", ">>> test_loop(1)"),
        ("python {session=c name=five}", "import unittest\n\n\nclass TestIt(unittest.TestCase):\n    def test_x(self):\n        pass"),
        ("python {session=c name=six}", RUNS_THEM), ("python {session=c name=seven}", "def test_step(m, x):\n    assert m"),
    )  # fmt: skip
    result = prove(tmp_path, "docs")
    names = ("one", "two", "three", "four", "five", "six", "seven")
    assert result.outcomes() == {f"docs/p.md::{name}": "failed" if name == "two" else "passed" for name in names}, result.output
    assert "option 'session' has no meaning on a listing of tests" in result.output
    assert "call test_x in the session" in result.output
