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
    "what a call makes": "from functools import partial\n\n\ndef check(a):\n    assert not a\n\n\ntest_it = partial(check, 1)\n",
    "beside one that is called": (
        "def test_a():\n    assert 0\n\n\ndef use(call):\n    call(1)\n\n\ndef test_b(x=1):\n    pass\n\n\nuse(test_b)\n"
    ),
}
"""Tests that fail, as pytest finds them in a file."""
VACUOUS = {
    "a function under a condition": "import sys\n\nif sys.maxsize < 0:\n    def test_gpu():\n        assert 0\n",
    "a class with a constructor": "class TestA:\n    def __init__(self):\n        pass\n\n    def test_x(self):\n        assert 0\n",
    "a class that is made one with a constructor": (
        "from dataclasses import dataclass\n\n\n@dataclass\nclass TestConfig:\n    a: int\n\n    def test_x(self):\n        assert 0\n"
    ),
    "a function that is taken away": "def test_x():\n    assert 0\n\n\ntest = [1]\ndel test, globals()['test_x']\n",
}
"""Of these pytest finds no test."""
PROGRAMS = {
    "a step of a loop": "def test_loop(data, model):\n    assert data != model\n\n\nfor epoch in range(2):\n    test_loop(epoch, 2)\n",
    "a function to be called elsewhere": "def test(model, data):\n    return model(data)\n",
    "a function that is called": "def test():\n    print('done')\n\n\ntest()\n",
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


def test_tests_in_a_session_are_refused(tmp_path):
    """Nobody would run them there; a function of such a name that another part calls is none."""
    page(
        tmp_path, "p",
        ("python {session=a name=one}", "x = 1"), ("python {session=a name=two}", "def test_x():\n    assert x == 2"),
        ("python {session=b name=three}", "def test_loop(data):\n    assert data"), ("pycon {session=b name=four}", ">>> test_loop(1)"),
    )  # fmt: skip
    result = prove(tmp_path, "docs")
    assert result.outcomes() == {f"docs/p.md::{name}": "failed" if name == "two" else "passed" for name in ("one", "two", "three", "four")}
    assert "option 'session' has no meaning on a listing of tests" in result.output
    assert "call test_x in the session" in result.output
