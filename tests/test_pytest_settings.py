"""What a project tells pytest holds for its listings: settings, and conftest files that no page shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ledgers import rankbook
from rankbook.ledger import Ledger
from rankbook.listing import Outcome
from rankbook.pytest_settings import NAMED, PytestSettings, pytest_settings_of

TABLE = "[tool.pytest.ini_options]\n"
SETTINGS = (
    f'{TABLE}xfail_strict = true\nfilterwarnings = ["error"]\nmarkers = ["known: it is known"]\npython_functions = ["test_*", "check_*"]\n'
    'empty_parameter_set_mark = "xfail"\ntestpaths = ["nowhere"]\n'
    'addopts = ["--strict-markers", "-ra", "-W", "ignore:not this one"]\n[tool.rankbook]\nsources = ["tests"]\n'
)
CONFTEST = """
import pytest

@pytest.fixture
def number():
    return 1

@pytest.fixture(autouse=True)
def refused(request):
    assert "refused" not in request.node.name

def pytest_runtest_setup(item):
    if "hooked" in item.name:
        raise RuntimeError("the hook says so")
"""
TESTS = """
import warnings

import pytest


@pytest.mark.xfail
def test_passes_unexpectedly():
    pass


def test_warns():
    warnings.warn("not here")


def test_warns_of_something_else():
    warnings.warn("not this one")


@pytest.mark.known
def check_number(number, pytestconfig):
    assert number == 1
    assert pytestconfig.getini("xfail_strict") is True


def test_refused():
    pass


def test_hooked():
    pass


@pytest.mark.parametrize("size", [])
def test_none(size):
    pass
"""
OUTCOMES = {
    "test_passes_unexpectedly": "failed",
    "test_warns": "failed",
    "test_warns_of_something_else": "passed",
    "check_number": "passed",
    "test_refused": "failed",
    "test_hooked": "failed",
    "test_none[NOTSET]": "skipped",
}
NAMES = """
import os

import pytest


def check_named():
    assert os.environ["NAMED"] == "yes"


class Checked:
    def check_inside(self):
        pass


def test_is_none():
    raise AssertionError
"""
UNKNOWN = "import pytest\n\n\n@pytest.mark.unheard_of\ndef test_mark():\n    pass\n"


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def run(folder: Path, *command: str) -> str:
    words = [sys.executable, "-m", *command]
    return subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout


def proved(folder: Path, *arguments: str) -> dict[str, str]:
    """Prove the book of a project; gives the outcome of each test, conftest files left out."""
    rankbook("gen", cwd=folder)
    run(folder, "pytest", "--doctest-glob=*.md", "-p", "no:cacheprovider", "docs", *arguments)
    runs = Ledger(folder / ".rankbook/ledger.sqlite").latest()
    names = {found.node_id.partition("::")[2]: str(found.outcome) for found in runs if not found.node_id.endswith("how-to-run-it")}
    return {name: outcome for name, outcome in names.items() if name != "conftest.py"}


@pytest.mark.parametrize("engine", ["local", "fresh"])
def test_tests_end_as_under_plain_pytest(tmp_path, engine):
    """Strict marks, warnings that are errors, names of tests, and a conftest file beside the book count as they do for plain pytest."""
    files = {"pyproject.toml": SETTINGS, "conftest.py": CONFTEST, "tests/test_a.py": TESTS, "tests/test_mark.py": UNKNOWN}
    folder = write(tmp_path, files)
    plain = run(folder, "pytest", "-p", "no:cacheprovider", "-p", "no:rankbook", "tests/test_a.py")
    told = set(re.findall(r"^(?:FAILED|ERROR) tests/test_a.py::(\w+)", plain, re.MULTILINE))
    assert told == {name for name, outcome in OUTCOMES.items() if outcome == "failed"}, plain
    assert proved(folder, f"--engine={engine}") == {**OUTCOMES, "test_mark.py": "failed"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "setup.cfg",
            "[tool:pytest]\npython_files = check_*.py\npython_functions = check_*\npython_classes = Checked\nusefixtures = named\n",
        ),
        (
            "pyproject.toml",
            (
                '[tool.pytest]\npython_files = ["check_*.py"]\npython_functions = ["check_*"]\npython_classes = ["Checked"]\n'
                'usefixtures = ["named"]\nnobody_knows_this = "x"\n'
            ),
        ),
    ],
)
def test_tests_are_those_of_plain_pytest(tmp_path, name, text):
    """Files, classes and functions are tests by the project's own rules; what it makes all tests use is no matter of a guide's."""
    if "[tool.pytest]" in text and int(pytest.__version__.partition(".")[0]) < 9:
        pytest.skip("pytest before 9 has no such section")
    conftest = "import pytest\n\n@pytest.fixture\ndef named(monkeypatch):\n    monkeypatch.setenv('NAMED', 'yes')\n"
    book = '[tool.rankbook]\nsources = ["tests"]\n'
    guide = "# Guide\n\n```python\ndef test_guide():\n    pass\n```\n"
    files = {"pyproject.toml": book, name: text + book * (name == "pyproject.toml"), "conftest.py": conftest}
    folder = write(tmp_path, files | {"tests/check_names.py": NAMES, "docs/guide.md": guide})
    assert "2 passed" in run(folder, "pytest", "-p", "no:cacheprovider", "-p", "no:rankbook", "tests")
    assert proved(folder) == {"check_named": "passed", "Checked::check_inside": "passed", "guide::test_guide": "passed"}


def test_a_conftest_file_counts_unless_pytest_is_told_otherwise(tmp_path):
    """With `--noconftest` no conftest file is read, whether a page shows it or not."""
    settings = SETTINGS.replace("[tool.rankbook]\n", '[tool.rankbook]\nexclude = ["tests/hidden/conftest.py"]\n')
    files = {f"tests/{name}/conftest.py": CONFTEST for name in ("shown", "hidden")}
    files |= {f"tests/{name}/test_{name}.py": f"def test_refused_{name}():\n    pass\n" for name in ("shown", "hidden")}
    folder = write(tmp_path, {"pyproject.toml": settings, **files})
    assert proved(folder) == {"test_refused_shown": "failed", "test_refused_hidden": "failed"}
    assert proved(folder, "--noconftest") == {"test_refused_shown": "passed", "test_refused_hidden": "passed"}
    pages = [folder / f"docs/suite/tests/{name}/conftest.py_docs.md" for name in ("shown", "hidden")]
    assert [page.is_file() for page in pages] == [True, False]


def test_what_pytest_is_told_is_part_of_the_proof(tmp_path):
    """A changed setting on which the end of a test depends makes its proof stale, one of where tests lie does not."""
    folder = write(tmp_path, {"pyproject.toml": SETTINGS, "tests/test_a.py": "def test_one():\n    pass\n"})

    def endings() -> dict[str, int]:
        rankbook("gen", cwd=folder)
        run(folder, "pytest", "--doctest-glob=*.md", "-p", "no:cacheprovider", "docs", "--stale", "--listings-report=report.json")
        return json.loads((folder / "report.json").read_text())["endings"]

    assert endings()["passed"] == 2
    assert all(f"pyproject.toml{NAMED}" in found.modules for found in Ledger(folder / ".rankbook/ledger.sqlite").latest())
    (folder / "pyproject.toml").write_text(SETTINGS.replace('["nowhere"]', '["tests"]').replace('"-ra", ', ""))
    assert endings()["proved earlier"] == 2
    (folder / "pyproject.toml").write_text(SETTINGS.replace("xfail_strict = true", "xfail_strict = false"))
    assert endings()["passed"] == 2


@pytest.mark.parametrize("strays", [("pytest.ini", "conftest.py"), ("pyproject.toml", "conftest.py")], ids=" ".join)
def test_what_lies_beside_the_tree_of_a_listing_does_not_count(tmp_path, monkeypatch, strays):
    """Where the project tells pytest nothing, neither does a file that somebody has left in the folder for temporary files."""
    texts = {
        "pytest.ini": "[pytest]\npython_functions = check_*\n",
        "pyproject.toml": f'{TABLE}filterwarnings = ["error"]\n',
        "conftest.py": "raise RuntimeError('not for you')\n",
    }
    write(tmp_path / "tmp", {stray: texts[stray] for stray in strays})
    test = "import warnings\n\n\ndef test_it():\n    warnings.warn('old')\n"
    files = {"pyproject.toml": "", "docs/page.md": f"# Page\n\n```python\n{test}```\n"}
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    said = run(write(tmp_path / "book", files), "pytest", "--doctest-glob=*.md", "-p", "no:cacheprovider", "docs")
    assert "1 passed" in said, said


@pytest.mark.parametrize(
    ("name", "text", "file", "table", "options"),
    [
        ("pyproject.toml", f"{TABLE}a = true\naddopts = '-v -W error::W -p plug -pno:other -o x=y --override-ini=z=1 --cov'\n",
         "pyproject.toml", {"a": True}, ("-W", "error::W", "-p", "plug", "-p", "no:other", "-o", "x=y", "-o", "z=1")),
        ("tests/pytest.ini", "[pytest]\na =\n  b\n  c\naddopts = --pythonwarnings=error --runxfail\n", "tests/pytest.ini",
         {"a": "\nb\nc"}, ("-W", "error", "--runxfail")),
        ("setup.cfg", "[tool:pytest]\na = 100%\npythonpath = src\n", "setup.cfg", {"a": "100%"}, ()),
        ("pytest.toml", '[pytest]\na = ["b", 1]\n', "pytest.toml", {"a": ["b", 1]}, ()),
        ("other/pytest.ini", "[pytest]\na = b\n", "pyproject.toml", {}, ()),
        ("pytest.ini", "[pytest]\naddopts = 'open\n", "pytest.ini", {}, ()),
    ],
)  # fmt: skip
def test_settings_are_read_where_pytest_reads_them(tmp_path, name, text, file, table, options):
    """The nearest file of settings above a test counts, with the options on which the end of a test may depend."""
    found = pytest_settings_of(write(tmp_path, {name: text}), "tests/test_a.py")
    assert (found.file, found.table, found.options) == (file, table, options)
    assert (found.digest == PytestSettings().digest) is not bool(table or options)


OWN_OPTIONS = """
import pytest


def pytest_addoption(parser):
    parser.addoption("--run-slow", action="store_true")
    parser.addoption("--world-size", type=int, default=1)


def pytest_collection_modifyitems(config, items):
    slow = [item for item in items if item.get_closest_marker("slow") and not config.getoption("--run-slow")]
    if slow:
        config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in slow and "vanishes" not in item.name]
"""
OPTION_TESTS = """
import pytest


def test_size(pytestconfig):
    assert pytestconfig.getoption("--world-size") == 2


@pytest.mark.slow
def test_slow():
    assert False


def test_vanishes():
    assert False


@pytest.mark.parametrize("rank", [0])
def test_unwanted(rank):
    assert False


@pytest.mark.known
def test_known():
    assert False
"""
CHOICE = "-m 'not known' --deselect tests/test_a.py::test_unwanted"
LEAVES_OUT = "plain pytest leaves it out: "
SAME = "the same run as the tests of this page"
ALONE = "import pytest\n\n\n@pytest.mark.{}\ndef test_alone():\n    assert False\n"


def ended(folder: Path) -> dict[str, str]:
    """Give the outcome of each test and listing, with the reason of one that was skipped, by the end of its node id."""
    runs = Ledger(folder / ".rankbook/ledger.sqlite").latest()
    return {found.node_id.rpartition("/")[2].replace("_docs.md", ""): found.reason or str(found.outcome) for found in runs}


def test_options_of_the_project_hold_and_what_they_leave_out_is_told(tmp_path):
    """An option that a conftest file defines counts in a listing as `addopts` has it; a test that plain pytest leaves out is skipped."""
    marks = "markers =\n  slow: it is\n  known: it is\n"
    folder = write(tmp_path, {
        "pyproject.toml": "[tool.rankbook]\nsources = ['tests']\ninclude = ['*.py']\n",
        "tests/pytest.ini": f"[pytest]\naddopts = --world-size 2 -rA --unheard-of 3 --tb short {CHOICE}\n{marks}",
        "tests/conftest.py": OWN_OPTIONS,
        "tests/test_a.py": OPTION_TESTS,
        "tests/test_slow.py": ALONE.format("slow"),
        "tests/test_known.py": ALONE.format("known"),
    })  # fmt: skip
    proved(folder)
    by_option = f"{LEAVES_OUT}{CHOICE} in addopts of tests/pytest.ini"
    by_hook = f"{LEAVES_OUT}pytest_collection_modifyitems of tests/conftest.py"
    assert ended(folder) == {
        "conftest.py::conftest.py": "passed",
        "test_a.py::test_size": "passed",
        "test_a.py::test_slow": by_hook,
        "test_a.py::test_vanishes": f"{LEAVES_OUT}a hook pytest_collection_modifyitems",
        "test_a.py::test_unwanted[0]": by_option,
        "test_a.py::test_known": by_option,
        "test_a.py::how-to-run-it": "the same run as the tests of this page",
        "test_slow.py::test_alone": by_hook,
        "test_slow.py::how-to-run-it": by_hook,
        "test_known.py::test_alone": by_option,
        "test_known.py::how-to-run-it": by_option,
    }


def test_a_failure_is_recorded_without_colours(tmp_path):
    """A hook that asks pytest for colours has none in what is recorded, nor does what a test says itself; other characters stay."""
    folder = write(tmp_path, {
        "pyproject.toml": "[tool.rankbook]\nsources = ['tests']\ninclude = ['test_*.py']\n",
        "tests/conftest.py": "def pytest_configure(config):\n    config.option.color = 'yes'\n",
        "tests/test_a.py": "def test_hook():\n    assert {'a': 1} == {'a': 2}\n\n\n"
        "def test_own():\n    raise ValueError('\\x1b[1;31mred\\x1b[0m\\x07')\n",
    })  # fmt: skip
    proved(folder)
    found = ended(folder)
    assert found["test_a.py::test_hook"].startswith("AssertionError: assert {'a': 1} == {'a': 2}\n")
    assert "\x1b" not in found["test_a.py::test_hook"]
    assert found["test_a.py::test_own"] == "ValueError: red\x07"


def test_options_of_the_command_line_count_more(tmp_path):
    """What conftest files define may stand on the command line, too, also under xdist; `-m` there takes the place of the project's own."""
    folder = write(tmp_path, {
        "pyproject.toml": f"{TABLE}addopts = \"--world-size 3 -m 'not known' -p no:randomly\"\nmarkers = ['slow: it is', 'known: it is']\n"
        "[tool.rankbook]\nsources = ['tests']\nexclude = ['conftest.py']\n",
        "conftest.py": OWN_OPTIONS,
        "tests/test_a.py": OPTION_TESTS.replace("vanishes", "stays"),
    })  # fmt: skip
    proved(folder, "--world-size", "2", "-n1", "-k", "test_size or test_slow or test_known or how")
    assert ended(folder) == {
        "test_a.py::test_size": "passed",
        "test_a.py::how-to-run-it": "of the 3 tests of docs/suite/tests/test_a.py_docs.md only 1 is run",
    }
    options = ["--world-size=2", "--run-slow", "-m", "known or slow or not slow"]
    proved(folder, *options)
    found = ended(folder)
    assert (found["test_a.py::test_slow"], found["test_a.py::test_known"]) == ("assert False", "assert False")
    proved(folder, "--stale", "--listings-report=report.json", *options)
    assert json.loads((folder / "report.json").read_text())["endings"] == {"failed": 5, "proved earlier": 1}
    proved(folder, "--stale", "--listings-report=report.json", "--world-size=1")
    assert json.loads((folder / "report.json").read_text())["endings"]["failed"] == 4


def test_options_of_the_environment_count(tmp_path, monkeypatch):
    """What `PYTEST_ADDOPTS` says counts as if the command line said it, which comes behind it; a program does not see the variable."""
    test = (
        "import os\nimport warnings\n\n\ndef test_warns():\n    warnings.warn('here')\n\n\n"
        "def test_size(pytestconfig):\n    assert 'PYTEST_ADDOPTS' not in os.environ\n"
        "    assert pytestconfig.getoption('--world-size') == '2'\n"
    )
    own = "def pytest_addoption(parser):\n    parser.addoption('--world-size')\n"
    folder = write(tmp_path, {"pyproject.toml": "[tool.rankbook]\nsources = ['tests']\n", "conftest.py": own, "tests/test_a.py": test})
    monkeypatch.setenv("PYTEST_ADDOPTS", f"{os.environ.get('PYTEST_ADDOPTS', '')} -W 'error:here' --world-size 2")
    assert proved(folder) == {"test_warns": "failed", "test_size": "passed"}
    assert proved(folder, "-W", "ignore:here", "--world-size", "3") == {"test_warns": "passed", "test_size": "failed"}


@pytest.mark.parametrize("where", ["command line", "addopts"])
def test_options_of_a_conftest_file_that_pytest_does_not_load_at_its_start(tmp_path, where):
    """An option that `tests/conftest.py` defines is known though only `docs` is named; one that nobody defines is an error as ever."""
    added = 'addopts = "--world-size 2"\n' if where == "addopts" else ""
    folder = write(tmp_path, {
        "pyproject.toml": f"{TABLE}{added}testpaths = ['tests']\nmarkers = ['slow: it is', 'known: it is']\n"
        "[tool.rankbook]\nsources = ['tests']\n",
        "tests/conftest.py": OWN_OPTIONS,
        "tests/test_a.py": OPTION_TESTS,
    })  # fmt: skip
    words = ["--world-size=2"] if where == "command line" else ["-n1"]
    proved(folder, *words, "--run-slow", "-k", "test_size or test_slow")
    found = ended(folder)
    assert (found["test_a.py::test_size"], found["test_a.py::test_slow"]) == ("passed", "assert False")
    said = run(folder, "pytest", "--doctest-glob=*.md", "docs", "--unheard-of")
    assert "unrecognized arguments: --unheard-of" in said


TIMER = """
import contextlib
import signal

import pytest


class Hooks:
    @pytest.hookspec(firstresult=True)
    def pytest_timeout_set_timer(self, item, settings):
        pass


def pytest_addhooks(pluginmanager):
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser):
    parser.addini("timeout", "seconds")
    parser.addoption("--timeout")


def pytest_configure(config):
    config.addinivalue_line("markers", "timeout(seconds): it is")


@pytest.hookimpl(trylast=True)
def pytest_timeout_set_timer(item, settings):
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("timeout"))
    signal.setitimer(signal.ITIMER_REAL, settings)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    mark = item.get_closest_marker("timeout")
    seconds = mark.args[0] if mark else item.config.getoption("--timeout") or item.config.getini("timeout")
    item.config.hook.pytest_timeout_set_timer(item=item, settings=float(seconds))
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
"""


def test_a_timeout_of_the_project_is_one_of_its_tests(tmp_path, monkeypatch):
    """What pytest-timeout is told for each test does not count while a listing starts or waits for its turn; a command line does."""
    folder = write(tmp_path, {
        "pyproject.toml": f"{TABLE}timeout = '1'\naddopts = '-p timer'\n[tool.rankbook]\nsources = ['tests']\n",
        "lib/timer.py": TIMER,
        "tests/test_a.py": (
            "import time\n\nimport pytest\n\ntime.sleep(3)\n\n\n@pytest.mark.timeout(0.5)\ndef test_marked():\n    pass\n\n\n"
            "def test_quick():\n    pass\n\n\ndef test_slow():\n    time.sleep(5)\n"
        ),
    })  # fmt: skip
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder / "lib"), os.environ.get("PYTHONPATH", "")]))
    assert proved(folder) == {"test_marked": "passed", "test_quick": "passed", "test_slow": "failed"}
    assert proved(folder, "--timeout=0.1", "-k", "test_marked")["test_marked"] == "failed"


STRICTER = """
import warnings

import pytest


def test_warns():
    warnings.warn("it is late", stacklevel=1)


@pytest.mark.xfail(reason="known")
def test_known():
    assert 0


@pytest.mark.xfail(reason="known")
def test_better():
    pass
"""


@pytest.mark.parametrize(
    ("options", "failed"),
    [
        (("-W", "error::UserWarning", "--runxfail"), {"test_warns", "test_known"}),
        (("-o", "xfail_strict=true"), {"test_better"}),
        (("-qWerror::UserWarning", "--override-ini=xfail_strict=true", "-o", "addopts="), {"test_warns", "test_better"}),
    ],
)
def test_options_of_pytest_on_the_command_line_reach_the_tests(tmp_path, options, failed):
    """What makes a test red under plain pytest makes it red in the book."""
    folder = write(tmp_path, {"pyproject.toml": "[tool.rankbook]\nsources = ['tests']\n", "tests/test_a.py": STRICTER})
    proved(folder, *options, "-k", "not how")
    runs = {run.node_id.rpartition("::")[2]: run.outcome for run in Ledger(folder / ".rankbook/ledger.sqlite").latest()}
    assert {name for name, outcome in runs.items() if outcome is Outcome.FAILED} == failed, runs


IGNORING = """
collect_ignore = ["test_named.py"]
collect_ignore_glob = ["*_old.py"]
if True:
    collect_ignore.append("folder")


def pytest_ignore_collect(collection_path):
    return True if "hooked" in collection_path.name else None
"""


def test_a_file_that_plain_pytest_leaves_out_is_skipped(tmp_path):
    """What `collect_ignore`, a hook or `--ignore` keeps from being collected is not imported; a program is none of pytest's."""
    wrong = "raise RuntimeError\n\n\ndef test_a():\n    pass\n"
    folder = write(tmp_path, {
        "pyproject.toml": f"{TABLE}addopts = '--ignore=tests/test_option.py'\n[tool.rankbook]\nsources = ['tests']\n",
        "tests/conftest.py": IGNORING,
        "tests/test_a.py": "def test_a():\n    pass\n",
        "tests/run_old.py": "if __name__ == '__main__':\n    print('runs')\n",
        **{f"tests/{name}.py": wrong for name in ("test_named", "test_x_old", "folder/inner/test_b", "test_hooked", "test_option")},
    })  # fmt: skip
    assert "1 passed" in run(folder, "pytest", "-p", "no:cacheprovider", "-p", "no:rankbook", "tests")
    proved(folder, "-k", "not how")
    assert ended(folder) == {
        "conftest.py::conftest.py": "passed",
        "test_a.py::test_a": "passed",
        "run_old.py::run_old.py": "passed",
        "test_named.py::test_a": f"{LEAVES_OUT}collect_ignore of tests/conftest.py",
        "test_x_old.py::test_a": f"{LEAVES_OUT}collect_ignore_glob of tests/conftest.py",
        "test_b.py::test_a": f"{LEAVES_OUT}collect_ignore of tests/conftest.py",
        "test_hooked.py::test_a": f"{LEAVES_OUT}pytest_ignore_collect of tests/conftest.py",
        "test_option.py::test_a": f"{LEAVES_OUT}--ignore tests/test_option.py in addopts of pyproject.toml",
    }


def test_options_are_told_apart(tmp_path):
    """Options of conftest files and plugins hold with their values; those of display, order, coverage and processes do not."""
    added = (
        "--run-slow --size 2 -n 4 --cov=x --cov-report term -rA --tb=short -m slow --ignore=a -k 'b or c' --timeout=3 -x -E prod --lf -vv"
    )
    found = pytest_settings_of(write(tmp_path, {"pytest.ini": f"[pytest]\naddopts = {added}\n"}), "tests/test_a.py")
    assert found.own == (("--run-slow",), ("--size", "2"), ("--timeout=3",), ("-E", "prod"))
    assert found.chosen == ("-m", "slow", "--ignore", "a", "-k", "b or c")
    assert found.digest != pytest_settings_of(write(tmp_path, {"pytest.ini": "[pytest]\naddopts = -n 4\n"}), "tests/test_a.py").digest


@pytest.mark.parametrize(
    ("added", "chosen", "options"),
    [
        ("-qm 'not slow'", ("-m", "not slow"), ()),
        ("-qkone", ("-k", "one"), ()),
        ("-xvvm slow -svW error", ("-m", "slow"), ("-W", "error")),
        ("-vpno:other -rsx -n4", (), ("-p", "no:other")),
        ("-m-1 -k-x", ("-m", "-1", "-k", "-x"), ()),
        ("-vE prod", (), ()),
    ],
)
def test_short_options_in_one_word_are_told_apart(tmp_path, added, chosen, options):
    """A word may hold several short options, of which the last has a value."""
    found = pytest_settings_of(write(tmp_path, {"pytest.ini": f"[pytest]\naddopts = {added}\n"}), "tests/test_a.py")
    assert (found.chosen, found.options) == (chosen, options)
    assert found.own == ((("-E", "prod"),) if "prod" in added else ())
    assert found.called_with(["-qkother"], []).chosen == (() if "-k" in chosen[:1] else chosen[:2])


def test_what_was_left_out_is_asked_again(tmp_path, monkeypatch):
    """What plain pytest left out when it was proved last may be left out no more: with `--stale`, too, it is run then."""
    hook = (
        "import os\n\n\ndef pytest_collection_modifyitems(items):\n"
        "    items[:] = [item for item in items if 'SLOW' in os.environ or 'slow' not in item.name]\n"
    )
    tests = "def test_slow():\n    pass\n\n\ndef test_other():\n    pass\n"
    settings = f"{TABLE}[tool.rankbook]\nsources = ['tests']\n"
    folder = write(tmp_path, {"pyproject.toml": settings, "tests/conftest.py": hook, "tests/test_a.py": tests})
    counts = [{"passed": 1, "skipped": 1}, {"skipped": 1, "proved earlier": 1}, {"passed": 1, "proved earlier": 1}]
    for slow, count in zip((False, False, True), counts, strict=True):
        if slow:
            monkeypatch.setenv("SLOW", "1")
        proved(folder, "--stale", "-k", "test_a and not how", "--listings-report=report.json")
        assert json.loads((folder / "report.json").read_text())["endings"] == count


@pytest.mark.parametrize("choice", ["-m 'not slow'", "-vqkquick"])
def test_what_the_root_leaves_out_is_told(tmp_path, choice):
    """`-m` and `-k` in `addopts` at the root leave tests out of plain pytest; in the book these are skipped, and listings run."""
    tests = "import pytest\n\n\n@pytest.mark.slow\ndef test_slow():\n    pass\n\n\ndef test_quick():\n    pass\n"
    folder = write(tmp_path, {
        "pyproject.toml": f"{TABLE}addopts = \"{choice}\"\nmarkers = ['slow']\n[tool.rankbook]\nsources = ['tests']\n",
        "tests/test_it.py": tests,
        "docs/guide.md": "# Guide\n\n```python {name=shown}\nassert True\n```\n",
    })  # fmt: skip
    assert "1 passed, 1 deselected" in run(folder, "pytest", "-p", "no:cacheprovider", "-p", "no:rankbook", "tests")
    proved(folder)
    found = ended(folder)
    assert found.pop("test_it.py::test_slow").startswith(f"{LEAVES_OUT}-{'k' if 'quick' in choice else 'm'} ")
    assert found == {"test_it.py::test_quick": "passed", "guide.md::shown": "passed", "test_it.py::how-to-run-it": SAME}
    assert "1 passed, 3 deselected" in run(folder, "pytest", "--doctest-glob=*.md", "-p", "no:cacheprovider", "docs", "-k", "shown")


def test_the_way_of_importing_counts(tmp_path):
    """With `--import-mode=importlib` in `addopts` a test finds no helper beside it, and with `--noconftest` no fixture: as under pytest."""
    ways = {"before": "prepend", "behind": "append", "alone": "importlib"}
    files = {f"tests/{name}/pytest.ini": f"[pytest]\naddopts = --import-mode={mode}\n" for name, mode in ways.items()}
    files |= {f"tests/{name}/{name}_helper.py": "VALUE = 1\n" for name in ways}
    files |= {
        f"tests/{name}/test_{name}.py": f"import {name}_helper\n\n\ndef test_it():\n    assert {name}_helper.VALUE\n" for name in ways
    }
    quiet = {
        "tests/quiet/pytest.ini": "[pytest]\naddopts = --noconftest\n",
        "tests/quiet/test_quiet.py": "def test_it(number):\n    pass\n",
    }
    folder = write(tmp_path, {"pyproject.toml": SETTINGS, "tests/conftest.py": CONFTEST, **files, **quiet})
    for name, word in (("before", "1 passed"), ("behind", "1 passed"), ("alone", "1 error"), ("quiet", "1 error")):
        assert word in run(folder, "pytest", "-p", "no:cacheprovider", "-p", "no:rankbook", f"tests/{name}")
    proved(folder, "-k", "test_it or test_alone")
    found = {name: said.partition(";")[0] for name, said in ended(folder).items() if name.startswith("test_") and "how" not in name}
    assert found.pop("test_quiet.py::test_it") == "fixture 'number' not found"
    assert found == {
        "test_before.py::test_it": "passed",
        "test_behind.py::test_it": "passed",
        "test_alone.py::test_alone.py": "ModuleNotFoundError: No module named 'alone_helper'",
    }


EXAMPLES = '''"""About `twice`.

>>> print(list(range(20)))
[0, 1, ..., 19]
"""


def twice(number):
    """Double.

    >>> twice(2)
    {}
    """
    return number * 2
'''


def test_examples_of_docstrings_run_where_the_project_says_so(tmp_path):
    """With `--doctest-modules` in `addopts` they are tests of any module; a program stays one, and a prompt is no example."""
    program = f"{EXAMPLES.format(5)}\n\nif __name__ == '__main__':\n    print(twice(1))\n"
    files = {
        "tests/test_a.py": f"{EXAMPLES.format(5)}\n\ndef test_twice():\n    assert twice(1) == 2\n",
        "tests/tools.py": EXAMPLES.format(4),
        "tests/broken.py": EXAMPLES.format("4\n    >>> twice()"),
        "tests/program.py": program,
        "tests/prompt.py": 'PROMPT = ">>> "\n',
    }
    told = f'{TABLE}addopts = "--doctest-modules"\ndoctest_optionflags = "ELLIPSIS"\n'
    folder = write(tmp_path, {"pyproject.toml": f"{told}[tool.rankbook]\nsources = ['tests']\n", **files})
    proved(folder)
    same = "an example gave another output than the one shown"
    found = ended(folder)
    assert found.pop("broken.py::broken.twice").startswith('an example raised TypeError("twice() missing 1 required positional argument')
    assert {name: said for name, said in found.items() if not name.endswith("how-to-run-it")} == {
        "test_a.py::test_a": "passed",
        "test_a.py::test_a.twice": same,
        "test_a.py::test_twice": "passed",
        "tools.py::tools": "passed",
        "tools.py::tools.twice": "passed",
        "broken.py::broken": "passed",
        "program.py::program.py": "passed",
        "prompt.py::prompt.py": "passed",
    }
    (folder / "pyproject.toml").write_text("[tool.rankbook]\nsources = ['tests']\n")
    proved(folder)
    assert ended(folder)["tools.py::tools.py"] == "passed"
