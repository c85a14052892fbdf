"""What plain pytest does not call passed is not passed in the book either, and what it runs runs there."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rankbook.config import Settings
from rankbook.ledger import Ledger
from rankbook.listing import Outcome, Run
from rankbook.site.proof import Proof
from rankbook.stamps import stamp_of
from rankbook.standing import standing

SETTINGS = "[tool.rankbook]\nsources = ['tests']\ngpus = '0'\n"
TWO = "def test_a():\n    pass\n\n\ndef test_b():\n    pass\n"
FAILING = {
    "status": ("def pytest_sessionfinish(session):\n    session.exitstatus = 1\n", "its pytest ended with status 1 although none of its"),
    "finish": (
        "def pytest_runtest_logfinish(nodeid):\n    if 'test_b' in nodeid:\n        raise RuntimeError('a leak')\n",
        "it ended the whole pytest session: RuntimeError: a leak",
    ),
}
AGAIN = {"twice": "items.extend(list(items))", "thrice": "items[:] = [item for item in items for _ in range(3)]"}
PLUGIN = "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef checked(request):\n    assert 'refused' not in request.node.name\n"


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in ({"pyproject.toml": SETTINGS} | files).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False)


def plain(folder: Path, *arguments: str) -> int:
    """Run plain pytest; gives its exit status."""
    return run(folder, "pytest", "-p", "no:cacheprovider", "-p", "no:rankbook", *arguments).returncode


def proved(folder: Path, *arguments: str) -> dict[str, tuple[str, str]]:
    """Prove the book of a project; gives how each test ended, with the reason."""
    assert run(folder, "rankbook.cli", "gen").returncode == 0
    run(folder, "pytest", "--doctest-glob=*.md", "-p", "no:cacheprovider", "docs", *arguments)
    runs = Ledger(folder / ".rankbook/ledger.sqlite").latest()
    return {re.sub(r".*/|_docs\.md", "", found.node_id): (str(found.outcome), found.reason.partition("\n")[0]) for found in runs}


NO_TORCH = "raise ImportError('not here')\n"


@contextlib.contextmanager
def without_torch(installed: Path) -> Iterator[None]:
    """Put a folder before what is installed, with a torch that cannot be imported: nobody waits for it."""
    (installed / "torch.py").write_text(NO_TORCH)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(installed), prepend=os.pathsep)
        yield


@pytest.fixture(scope="module")
def hooked(tmp_path_factory) -> tuple[Path, dict[str, tuple[str, str]]]:
    """A project of folders with a conftest file each, and how the tests of its book ended."""
    folder = tmp_path_factory.mktemp("hooked")
    files = {}
    for name, (conftest, tests) in HOOKED.items():
        (folder / "ends" / name).mkdir(parents=True)
        files[f"tests/{name}/conftest.py"] = conftest.replace("ENDS", repr(str(folder / "ends" / name)))
        files[f"tests/{name}/test_{name}.py"] = tests
    write(folder, files)
    with without_torch(tmp_path_factory.mktemp("installed")):
        return folder, proved(folder)


@pytest.mark.parametrize("hook", FAILING)
def test_a_session_that_a_hook_makes_red_is_red(hooked, hook):
    """Where all tests pass and a conftest file makes the session fail all the same, the last of them answers for it."""
    folder, found = hooked
    assert plain(folder, f"tests/{hook}") not in (0, 5)
    assert found[f"test_{hook}.py::test_a"] == ("passed", "")
    outcome, said = found[f"test_{hook}.py::test_b"]
    assert (outcome, said.startswith(FAILING[hook][1])) == ("failed", True), said


NO_CUDA = "not torch.cuda.is_available()"
RUNS = {
    "marked": "if sys.platform == 'win32':\n    pytestmark = pytest.mark.skip(reason='no')\n\ndef test_it():\n    assert 0\n",
    "variable": "@pytest.mark.skipif(os.environ.get('SET_BY_CONFTEST') != '1', reason='no')\ndef test_it():\n    assert 0\n",
    "raises": "def test_it():\n    with pytest.raises(pytest.skip.Exception):\n        pytest.skip('no')\n    assert 0\n",
    "caught": "def test_it():\n    try:\n        raise unittest.SkipTest('no')\n    except Exception:\n        pass\n    assert 0\n",
    "subtest": "class TestIt(unittest.TestCase):\n    def test_it(self):\n        with self.subTest():\n            self.skipTest('no')\n"
    "        assert 0\n",
    "mocked": f"@mock.patch('torch.cuda.is_available', lambda: True)\ndef test_it():\n    if {NO_CUDA}:\n        pytest.skip('no')\n"
    "    assert 0\n",
    "patched": f"def test_it(monkeypatch):\n    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)\n    if {NO_CUDA}:\n"
    "        pytest.skip('no')\n    assert 0\n",
    "fixture": "@pytest.fixture(autouse=True)\ndef feigned(monkeypatch):\n    monkeypatch.setattr(torch.Tensor, 'cuda', lambda x: x)\n"
    "\ndef test_it():\n    torch.ones(2).cuda()\n    assert 0\n",
    "teardown": "@pytest.fixture\ndef last():\n    yield\n    pytest.skip('no')\n\ndef test_it(last):\n    assert 0\n",
    "replaced": f"class Base(unittest.TestCase):\n    def setUp(self):\n        if {NO_CUDA}:\n            self.skipTest('no')\n\n"
    "class TestIt(Base):\n    def setUp(self):\n        pass\n\n    def test_it(self):\n        assert 0\n",
}
HEAD = "import os\nimport sys\nimport unittest\nfrom unittest import mock\n\nimport pytest\nimport torch\n\n"


def test_what_plain_pytest_runs_is_not_planned_away(tmp_path):
    """A skip that some condition, a replaced method, something that catches it or what is feigned keeps from a test is none."""
    pytest.importorskip("torch")
    files = {f"tests/test_{name}.py": HEAD + text for name, text in RUNS.items()}
    folder = write(tmp_path, files | {"tests/conftest.py": "import os\n\nos.environ['SET_BY_CONFTEST'] = '1'\n"})
    done = run(folder, "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:rankbook", "-rfE")
    assert {line.split("::")[0] for line in done.stdout.splitlines() if line.startswith("FAILED")} == {f"FAILED {name}" for name in files}
    ends = {
        name.rpartition("::")[0]: outcome for name, (outcome, _) in proved(folder, "-k", "not how").items() if name.endswith("::test_it")
    }
    assert {name.partition("::")[0]: outcome for name, outcome in ends.items()} == {f"test_{name}.py": "failed" for name in RUNS}


SUBTESTS = """\
import unittest


class TestIt(unittest.TestCase):
    def test_all(self):
        for backend in ("nccl", "ucc"):
            with self.subTest(backend=backend):
                self.skipTest(f"{backend} is not here")

    def test_some(self):
        for backend in ("gloo", "ucc"):
            with self.subTest(backend=backend):
                if backend == "ucc":
                    self.skipTest(f"{backend} is not here")
"""


def test_plugins_that_a_conftest_file_names_are_there(tmp_path):
    """`pytest_plugins` names modules of the project: their fixtures count, and a change of them makes a proof stale."""
    tests = "def test_taken():\n    pass\n\n\ndef test_refused():\n    pass\n"
    conftest = "pytest_plugins = ['tests.fixtures.checks']\n"
    packages = {"tests/__init__.py": "", "tests/fixtures/__init__.py": "", "tests/fixtures/checks.py": PLUGIN}
    folder = write(tmp_path, {"conftest.py": conftest, "tests/test_it.py": tests, **packages})
    assert plain(folder) == 1
    found = proved(folder, "-k", "test_it")
    assert {name: outcome for name, (outcome, _) in found.items()} == {
        "test_it.py::test_taken": "passed",
        "test_it.py::test_refused": "failed",
        "test_it.py::how-to-run-it": "failed",
    }
    modules = Ledger(folder / ".rankbook/ledger.sqlite").latest()[0].modules
    assert "tests/fixtures/checks.py" in modules


LISTS = """
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CASES = sorted((HERE / "cases/small").glob("*.json"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each(case):
    assert case.read_text() == "1"


def test_all():
    for case in HERE.joinpath("cases").rglob("*.json"):
        assert case.read_text() == "1"


def test_beside():
    for file in HERE.glob("*.txt"):
        assert file.read_text() == "1"


def test_cache(cache):
    cache.set("own/key", 1)
    assert cache.get("own/key", 0) == 1
"""


FURTHER = """
import glob
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_named():
    for case in (ROOT / "assets").glob("*.json"):
        assert case.read_text() == "1"


def test_started_from():
    for case in Path("assets/inner").glob("*.json"):
        assert case.read_text() == "1"


def test_words():
    for name in os.listdir(os.path.join(ROOT, "words")):
        assert (ROOT / "words" / name).read_text() == "1"


def test_upwards():
    for case in (Path(__file__).parent / ".." / "cases" / "small").rglob("*.json"):
        assert case.read_text() == "1"


def test_upwards_in_one():
    for case in Path(__file__).parent.joinpath("../cases/large").rglob("*.json"):
        assert case.read_text() == "1"


def test_pattern():
    for case in ROOT.glob("*.json"):
        assert case.read_text() == "1"


def test_pattern_from_where_it_runs():
    for case in glob.glob("*.yaml"):
        assert Path(case).read_text() == "1"


def test_looked_for():
    if (ROOT / "VERSION").exists():
        assert (ROOT / "VERSION").read_text() == "1"


def test_looked_for_beside():
    if Path(__file__).with_name("beside.txt").is_file():
        assert Path(__file__).with_name("beside.txt").read_text() == "1"


def test_settings():
    assert (ROOT / "pyproject.toml").exists()


def test_outside():
    assert not (ROOT / ".." / "outside").exists()
"""
FAR = [
    "assets/one.json", "assets/inner/one.json", "words/a", "tests/cases/small/one.json", "tests/cases/large/one.json", "VERSION",
    "tests/deep/beside.txt", "one.json", "one.yaml",
]  # fmt: skip


def test_data_that_a_test_goes_through_is_there(tmp_path):
    """A test that lists a folder finds the data in it, which needs no page of its own: it does not pass because there is nothing.

    What it lists or looks for by way of a folder above its own is there, wherever the book lies; nothing outside the project is.
    """
    settings = f"[tool.pytest.ini_options]\naddopts = '-ra'\n{SETTINGS}include = ['*.py']\n"
    (tmp_path / "outside").mkdir()
    beside = {"tests/lists/cases/small/one.json": "1", "tests/lists/cases/small/two.json": "2", "tests/lists/beside.txt": "2"}
    files = {"pyproject.toml": settings, "tests/deep/test_it.py": FURTHER, "tests/lists/test_lists.py": LISTS, **beside}
    folder = write(tmp_path / "project", files | dict.fromkeys(FAR, "2"))
    found = proved(folder, "-k", "not how")
    ends = {name: outcome for name, (outcome, _) in found.items() if name.startswith("test_it")}
    assert ends.pop("test_it.py::test_settings") == ends.pop("test_it.py::test_outside") == "passed"
    assert len(ends) == 9
    assert set(ends.values()) == {"failed"}, ends
    assert {name: end for name, end in found.items() if name.startswith("test_lists")} == {
        "test_lists.py::test_each[one.json]": ("passed", ""),
        "test_lists.py::test_each[two.json]": ("failed", "AssertionError: assert '2' == '1'"),
        "test_lists.py::test_all": ("failed", "AssertionError: assert '2' == '1'"),
        "test_lists.py::test_beside": ("failed", "AssertionError: assert '2' == '1'"),
        "test_lists.py::test_cache": ("passed", ""),
    }
    write(folder, dict.fromkeys((*FAR, *beside), "1") | {"pyproject.toml": settings})
    again = {name: outcome for name, (outcome, _) in proved(folder, "--stale", "-k", "not how").items()}
    assert again.keys() == found.keys()
    assert set(again.values()) == {"passed"}, again
    (folder / "VERSION").write_text("2")
    assert proved(folder, "--stale", "-k", "test_it and not how")["test_it.py::test_looked_for"][0] == "failed"


ON_PATHS = """\
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
DATA = HERE / "data"


def test_parts():
    assert (HERE / "data" / "golden.json").read_text() == "1"


def test_inline():
    assert (pathlib.Path(__file__).parent / "data" / "golden.json").read_text() == "1"


def test_join():
    assert open(os.path.join(os.path.dirname(__file__), "data", "golden.json")).read() == "1"


def test_by_a_name():
    assert (DATA / "golden.json").read_text() == "1"


def test_with_name():
    assert pathlib.Path(__file__).with_name("data").joinpath("golden.json").read_text() == "1"


@pytest.mark.parametrize("name", ["small", "large"])
def test_of_its_case(name):
    assert (DATA / f"{name}.txt").read_text() == "1"


def test_deeper():
    assert (DATA / "inner" / "deep.bin").read_bytes() == b"1"


def test_of_a_large_folder():
    assert (HERE / "many" / "named.txt").read_text() == "1"


def test_a_program():
    assert subprocess.check_output([HERE / "bin" / "say.sh"]) == b"1\\n"


def test_a_program_in_python():
    assert subprocess.check_output([sys.executable, HERE / "bin" / "say.py"]) == b"1\\n"
"""


def test_data_and_programs_on_paths_are_there(tmp_path):
    """What a test opens by a path of several parts is there, of a large folder what is named; what is a program can be executed."""
    names = ("golden.json", "small.txt", "large.txt", "inner/deep.bin")
    files = {f"tests/data/{name}": "1" for name in names} | {f"tests/many/{number}.txt": "2" for number in range(201)}
    files |= {"tests/many/named.txt": "1", "tests/bin/say.sh": "#!/bin/sh\necho 1\n", "tests/bin/say.py": "print(1)\n"}
    folder = write(tmp_path, {"tests/test_it.py": ON_PATHS, "pyproject.toml": SETTINGS + "exclude = ['data', 'many']\n"} | files)
    (folder / "tests/bin/say.sh").chmod(0o755)
    assert plain(folder, "tests") == 0
    ends = proved(folder, "docs/suite/tests/test_it.py_docs.md")
    assert len([name for name in ends if "test_it" in name]) == 12
    assert {name: end for name, end in ends.items() if end[0] != "passed"} == {}
    (folder / "tests/data/large.txt").write_text("2")
    assert proved(folder, "--stale")["test_it.py::test_of_its_case[large]"][0] == "failed"


def test_a_package_of_tests_that_is_installed_elsewhere_too(tmp_path, monkeypatch):
    """What pytest puts before it counts, and what a listing names is beside it whatever is installed."""
    files = {
        "tests/__init__.py": "",
        "tests/conftest.py": "",
        "tests/data.json": "1",
        "tests/common.py": "X = 1\n",
        "tests/test_data.py": "import pathlib\n\n\ndef test_it():\n    assert (pathlib.Path(__file__).parent / 'data.json').read_text()\n",
        "tests/inner/test_x.py": "from tests.common import X\n\n\ndef test_x():\n    assert X\n",
    }
    folder = write(tmp_path / "project", files)
    write(tmp_path / "stray", {"tests/__init__.py": "raise RuntimeError('another one')\n", "torch.py": NO_TORCH})
    for place in (tmp_path / "stray", folder):
        monkeypatch.setenv("PYTHONPATH", str(place))
        assert plain(folder, "tests") == 0
        ends = proved(folder)
        assert {name: end for name, end in ends.items() if end[0] != "passed"} == {}


def test_extension_modules_that_were_built_in_place_are_there(tmp_path):
    """A package has them beside its files, out of Git (`maturin develop`, `build_ext --inplace`); a page of Python counts before them."""
    built = Path(importlib.util.find_spec("markupsafe._speedups").origin)
    suffix = built.name.removeprefix("_speedups")
    files = {
        "tests/__init__.py": "from tests._speedups import _escape_inner\n",
        "tests/test_it.py": "import tests\n\n\ndef test_it():\n    assert tests._escape_inner('<') == '&lt;'\n",
        "tests/inner/__init__.py": "",
        "tests/inner/told.py": "IS_SHOWN = True\n",
        "tests/inner/test_x.py": "from tests.inner.told import IS_SHOWN\n\n\ndef test_x():\n    assert IS_SHOWN\n",
    }
    folder = write(tmp_path, {"pyproject.toml": SETTINGS, ".gitignore": "*.so\n*.pyd\n"} | files)
    (folder / f"tests/_speedups{suffix}").write_bytes(built.read_bytes())
    assert plain(folder, "tests") == 0
    (folder / f"tests/inner/told{suffix}").write_bytes(built.read_bytes())
    ends = proved(folder)
    assert len([name for name in ends if "::test_" in name]) == 2
    assert {name: end for name, end in ends.items() if end[0] != "passed"} == {}
    (folder / f"tests/_speedups{suffix}").write_bytes(b"built again, wrongly")
    assert proved(folder, "--stale")["test_it.py::test_it.py"][0] == "failed"


def test_what_goes_through_too_much_data_is_skipped(tmp_path):
    """Thousands of files are not put beside a listing that lists their folder: it does not pass without them, it is skipped.

    A word that is no part of a path leaves a test alone where a folder is called so, and so does the way from the root to a folder.
    """
    test = "import os\n\n\ndef test_it():\n    for place, _, names in os.walk('cases'):\n        assert not names\n"
    word = "import os\n\nKIND = 'many'\n\n\ndef test_it(tmp_path):\n    assert not os.listdir(tmp_path)\n"
    way = (
        "from pathlib import Path\n\nROOT = Path(__file__).resolve().parents[1]\n\n\ndef test_it():\n"
        "    assert [path.name for path in (ROOT / 'tests' / 'few').glob('*.txt')] == ['0.txt']\n"
    )
    many = {f"{folder}/{number}.txt": "1" for folder in ("many", "tests/cases") for number in range(2001)}
    files = {"tests/test_it.py": test, "tests/test_word.py": word, "tests/test_way.py": way, "tests/few/0.txt": "1"}
    folder = write(tmp_path, {"pyproject.toml": SETTINGS + "include = ['*.py']\n"} | files | many)
    assert plain(folder, "tests/test_word.py", "tests/test_way.py") == 0
    reason = "it lists tests/cases, which holds more than 2,000 files: that is not put beside a listing; run its source by pytest itself"
    ends = proved(folder)
    assert {end for name, end in ends.items() if name.startswith("test_it")} == {("skipped", reason)}
    assert {outcome for name, (outcome, _) in ends.items() if name.startswith("test_w")} == {"passed"}


PROGRAM = """
import os
import sys

if __name__ == "__main__":
    assert not [name for name in os.environ if name.startswith(("PYTEST_CURRENT_TEST", "PYTEST_VERSION", "PYTEST_XDIST"))]
    assert "pytest" not in sys.modules
"""


AT_THE_END = """
import sys
from pathlib import Path


def pytest_terminal_summary():
    Path(ENDS, "summed").touch()


def pytest_unconfigure():
    Path(ENDS, f"end-{'hypothesis' in sys.modules}").touch()
"""
USING_HYPOTHESIS = """
from hypothesis import given, strategies


@given(strategies.integers())
def test_it(number):
    assert number != 3.5
"""


@pytest.mark.parametrize(("name", "used"), [("plain", False), ("using", True)])
def test_nothing_that_no_test_uses_is_imported_at_the_end(hooked, name, used):
    """The plugin of Hypothesis imports all of it to sum up: a second for each listing. It stays where a test uses it, and so do hooks."""
    folder, found = hooked
    outcomes = [outcome for test, (outcome, _) in found.items() if test.startswith(f"test_{name}.py")]
    assert set(outcomes) == {"passed"}
    assert [path.name for path in (folder / "ends" / name).glob("end-*")] == [f"end-{used}"]
    assert (folder / "ends" / name / "summed").exists()


def test_nothing_is_imported_at_the_end_of_a_run_over_pages(tmp_path, monkeypatch):
    """The same holds for the run that shows them, as long as it shows nothing else."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    conftest = "import sys\n\n\ndef pytest_unconfigure():\n    print('imported:', 'hypothesis' in sys.modules)\n"
    folder = write(tmp_path, {"conftest.py": conftest, "test_it.py": USING_HYPOTHESIS, "page.md": "```bash\ntrue\n```\n"})
    for arguments, used in ((["page.md"], False), (["page.md", "test_it.py", "--hypothesis-show-statistics"], True)):
        done = run(folder, "pytest", "-p", "no:cacheprovider", *arguments)
        assert (done.returncode, f"imported: {used}" in done.stdout) == (0, True), done.stdout
    assert "test_it.py::test_it:" in done.stdout


LOADED = """
import sys


def pytest_unconfigure():
    print("loaded:", sorted({"rankbook.pytest_pages", "rankbook.prove"}.intersection(sys.modules)))
"""


def test_a_plain_run_loads_nothing(tmp_path):
    """A run that comes across no page does not wait for rankbook, nor fail by its settings; a glob names a page, or a path does."""
    files = {
        "pyproject.toml": "[tool.rankbook]\nnonsense = 1\n",
        "conftest.py": LOADED,
        "test_it.py": TWO,
        "page.md": "```bash\ntrue\n```\n",
    }
    folder = write(tmp_path, files)
    for arguments in ((), ("-n1", "test_it.py")):
        done = run(folder, "pytest", "-p", "no:cacheprovider", *arguments)
        assert (done.returncode, "loaded: []" in done.stdout) == (0, True), done.stdout
    assert "unknown setting 'nonsense'" in run(folder, "pytest", "page.md").stderr
    (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\ntestpaths = ['page.md']\n")
    for arguments in ((), ("--doctest-glob=*.md", ".")):
        done = run(folder, "pytest", "-p", "no:cacheprovider", *arguments)
        assert "1 listing: 1 passed" in done.stdout, done.stdout
    assert "loaded: ['rankbook.prove'" in run(folder, "pytest", "--stale", "test_it.py").stdout


ABSENT = {
    "package": (
        (
            "import pytest\n\nother = pytest.importorskip('not_there')\n\n\nclass TestA:\n"
            "    @pytest.mark.parametrize('n', [1, 2])\n    def test_a(self, n):\n        pass\n\n\n"
            "@pytest.mark.parametrize('n', other.NAMES)\ndef test_b(n):\n    pass\n"
        ),
        ["TestA::test_a[1]", "TestA::test_a[2]", "test_b"],
        "could not import 'not_there': No module named 'not_there'",
        ("package not_there",),
    ),
    "exit": (
        "import sys\nimport torch\n\nif torch.cuda.device_count() < 2:\n    print('too few')\n    sys.exit(0)\n\n\n" + TWO,
        ["test_a", "test_b"],
        "the module left with exit status 0 while it was imported: too few",
        ("2 GPUs",),
    ),
    "uncollected": (
        "import torch\n\nif torch.cuda.is_available():\n\n    def test_a():\n        pass\n",
        ["test_a"],
        "pytest collects none of its tests here: needs 1 GPU, and this machine has none",
        ("1 GPU",),
    ),
    "broken": (
        "import pytest\nimport torch\nimport not_there\n\npytestmark = pytest.mark.skipif(torch.cuda.device_count() < 2, reason='')\n\n\n"
        + TWO,
        ["test_a", "test_b"],
        (
            "none of its tests can run here: needs 2 GPUs, and this machine has none; "
            "and its import failed: ModuleNotFoundError: No module named 'not_there'"
        ),
        ("2 GPUs",),
    ),
}


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Path:
    """A project whose book is proved: modules of which no test is collected, and others that need no conftest file."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    folder = write(tmp_path_factory.mktemp("book"), {f"tests/{name}": text for name, text in BOOK.items()})
    proved(folder)
    return folder


def runs_of(folder: Path, page: str = "") -> dict[str, Run]:
    """Give the last run of each test of a book of one source, or of one of its pages, by its id; that of the command under its name."""
    found = Ledger(folder / ".rankbook/ledger.sqlite").latest()
    return {run.node_id.partition("::")[2]: run for run in found if f"/{page}" in run.node_id}


def ends_of(folder: Path, page: str) -> dict[str, tuple[str, str]]:
    """Give how each test of a page ended, with the reason."""
    return {name: (str(run.outcome), run.reason.partition("\n")[0]) for name, run in runs_of(folder, f"{page}_docs.md").items()}


@pytest.mark.parametrize("way", ABSENT)
def test_the_tests_of_a_module_that_is_skipped_are_skipped_with_it(book, way):
    """Each test that the page lists says why its module is skipped, and owes a run for what it needs."""
    _, names, reason, needs = ABSENT[way]
    found = runs_of(book, f"test_{way}.py")
    assert found.keys() == {*names, "how-to-run-it"}
    assert {(str(run.outcome), run.reason, run.needs) for run in found.values()} == {("skipped", reason, needs)}


def test_the_tests_of_modules_that_are_skipped_owe_a_run(book):
    """What is owed is counted by what it needs, and one of these tests alone is skipped, too."""
    debts = run(book, "rankbook.cli", "ledger", "debt").stdout.splitlines()
    for owing in ("4 tests need 2 GPUs", "3 tests need package not_there", "1 test needs 1 GPU"):
        assert len([line for line in debts if line.startswith(f"{owing}; last run: never")]) == 1, debts
    alone = [f"docs/suite/tests/test_{way}.py_docs.md::{names[0]}" for way, (_, names, _, _) in ABSENT.items()]
    done = run(book, "pytest", "-p", "no:cacheprovider", "-rs", *alone)
    assert (done.returncode, "4 skipped in" in done.stdout) == (0, True), done.stdout


def test_subtests_that_are_skipped(book):
    """A test all of whose subtests are skipped has not passed; one of which some are says so."""
    found = ends_of(book, "test_subtests.py")
    found.pop("how-to-run-it")
    assert found == {
        "TestIt::test_all": ("skipped", "2 of 2 subtests skipped: subtest (backend='nccl'): nccl is not here"),
        "TestIt::test_some": ("passed", "1 of 2 subtests skipped: subtest (backend='ucc'): ucc is not here"),
    }


def test_a_module_of_which_no_test_is_collected_has_not_passed(book):
    """Where the page lists tests, and pytest collects none, none has passed; where the machine is why, that is the reason."""
    assert plain(book, *(f"tests/test_{name}.py" for name in ("never", "gpus", "helpers"))) == 5
    never = "vacuous", "the module imports, and pytest collects no test from it; its page lists test_a, test_b"
    few = "skipped", "pytest collects none of its tests here: needs 1001 GPUs, and this machine has none"
    assert ends_of(book, "test_never.py") == {"test_never.py": never, "how-to-run-it": never}
    assert ends_of(book, "test_gpus.py") == {"test_many": few, "how-to-run-it": few}
    assert ends_of(book, "test_helpers.py") == {"test_helpers.py": ("passed", "")}


def test_a_program_does_not_know_that_pytest_runs_it(book):
    """What a script does under `python` it does in the book: neither variables nor modules tell it that it is under test."""
    for name in ("run_it.py", "run_it.sh"):
        assert {outcome for outcome, _ in ends_of(book, name).values()} == {"passed"}


def test_an_id_that_is_another_one_each_time(book):
    """It costs its own test, which cannot be told from one that is gone, and no other one of its module."""
    found = {name.partition("[")[0]: end for name, end in ends_of(book, "test_changing.py").items() if name != "how-to-run-it"}
    assert {name: outcome for name, (outcome, _) in found.items()} == {
        "test_moment": "failed",
        "test_right": "passed",
        "test_wrong": "failed",
    }
    assert any("has collected it once, and not again" in reason for _, reason in found.values())


@pytest.fixture
def installed(tmp_path_factory) -> Iterator[Path]:
    """A folder of modules that are installed, without torch."""
    folder = tmp_path_factory.mktemp("installed")
    with without_torch(folder):
        yield folder


def test_a_module_that_was_skipped_is_collected_again(tmp_path, installed):
    """What its page lists stands for its tests until they are collected: then those count, and no name that stood for several of them."""
    folder = write(tmp_path, {"tests/test_it.py": ABSENT["package"][0]})
    proved(folder)
    (installed / "not_there.py").write_text("NAMES = ['x', 'y']\n")
    done = run(folder, "pytest", "--doctest-glob=*.md", "-p", "no:cacheprovider", "docs", "--stale")
    assert "5 passed" in done.stdout, done.stdout
    found = runs_of(folder)
    passed = {name for name, run in found.items() if run.outcome is Outcome.PASSED}
    assert passed == {"TestA::test_a[1]", "TestA::test_a[2]", "test_b[x]", "test_b[y]", "how-to-run-it"}
    (installed / "not_there.py").unlink()
    proved(folder)  # by a machine that lacks the package again
    assert str(runs_of(folder)["test_b"].outcome) == "skipped"
    assert "no skip debt" in run(folder, "rankbook.cli", "ledger", "debt").stdout
    stamps = {"tests/test_it.py_docs.md": stamp_of(folder / "docs/suite/tests/test_it.py_docs.md")}
    page = Proof.of(standing(Settings(root=folder)), stamps, "docs/suite").page("tests/test_it.py_docs.md")
    assert "4 passed" in re.sub(r"<[^>]*>", "", page.last_run)
    assert "test_b</" not in page.last_run


def test_what_is_collected_is_run(hooked):
    """A test of which the page says that it is not even collected here, and that is, runs: a conftest file may know better."""
    folder, found = hooked
    assert plain(folder, "tests/stub") == 0
    assert {name: outcome for name, (outcome, _) in found.items() if "test_stub" in name} == dict.fromkeys(
        [f"test_stub.py::{name}" for name in ("TestA::test_a[1]", "TestA::test_a[2]", "how-to-run-it", "test_b[x]")], "passed"
    )


def test_warnings_that_are_errors_make_no_page_crash(tmp_path):
    """With `-W error` in `addopts` a test that warns is red, and one that does not is green, whatever rankbook itself has imported."""
    warns = "import warnings\n\n\ndef test_warns():\n    warnings.warn('old')\n\n\ndef test_silent():\n    pass\n"
    folder = write(tmp_path, {"tests/test_it.py": warns})
    for option in ("-W error", "-Werror"):
        write(folder, {"pyproject.toml": f"[tool.pytest.ini_options]\naddopts = '{option}'\n{SETTINGS}"})
        assert plain(folder, "-k", "silent") == 0
        assert proved(folder, "-k", "test_it and not how") == {
            "test_it.py::test_warns": ("failed", "UserWarning: old"),
            "test_it.py::test_silent": ("passed", ""),
        }
        (folder / ".rankbook/ledger.sqlite").unlink()


OWN_ITEMS = """
import pytest


class Table(pytest.Item):
    def runtest(self):
        assert self.name != "wrong"


def pytest_pycollect_makeitem(collector, name, obj):
    return Table.from_parent(collector, name=name) if name in ("right", "wrong") else None
"""


def test_items_that_a_hook_makes_are_run(hooked):
    """A conftest file may make items that are no functions: each is run, and so are the tests beside them."""
    folder, found = hooked
    assert plain(folder, "tests/items") == 1
    assert {name: found[f"test_items.py::{name}"][0] for name in ("right", "wrong", "test_a")} == {
        "right": "passed",
        "wrong": "failed",
        "test_a": "passed",
    }


CHANGING = """
import time

import pytest


@pytest.mark.parametrize("moment", [time.time_ns()])
def test_moment(moment):
    pass


def test_right():
    pass


def test_wrong():
    assert False
"""


COUNTING = """
import pytest

calls = {"a": 0, "b": 0}


def test_wrong_later():
    calls["a"] += 1
    assert calls["a"] < 2


def test_wrong_first():
    calls["b"] += 1
    assert calls["b"] > 1


def test_right():
    pass


@pytest.fixture
def closing():
    yield
    calls["c"] = calls.get("c", 0) + 1
    assert calls["c"] < 2


def test_wrong_at_its_end(closing):
    pass


def test_skipped_later():
    calls["d"] = calls.get("d", 0) + 1
    if calls["d"] > 1:
        pytest.skip("it has run")
"""


@pytest.mark.parametrize("again", AGAIN)
def test_a_test_that_comes_several_times_ends_as_its_worst(hooked, again):
    """A hook may let each test run again: one that fails any of these times has failed."""
    folder, found = hooked
    assert plain(folder, f"tests/{again}") == 1
    start = f"test_{again}.py::test_"
    assert {name.removeprefix(start): outcome for name, (outcome, _) in found.items() if name.startswith(start)} == {
        "wrong_later": "failed",
        "wrong_first": "failed",
        "right": "passed",
        "wrong_at_its_end": "failed",
        "skipped_later": "skipped",
    }


STUB = "import sys\nimport types\n\nsys.modules['not_there'] = types.ModuleType('not_there')\nsys.modules['not_there'].NAMES = 'x'\n"
HOOKED = {
    **{name: (text, TWO) for name, (text, _) in FAILING.items()},
    **{name: (f"def pytest_collection_modifyitems(items):\n    {again}\n", COUNTING) for name, again in AGAIN.items()},
    "items": (OWN_ITEMS, "right = wrong = 1\n\n\ndef test_a():\n    pass\n"),
    "plain": (AT_THE_END, TWO),
    "using": (AT_THE_END, USING_HYPOTHESIS),
    "stub": (STUB, ABSENT["package"][0]),
}
"""Conftest file and tests of each folder of a project."""
BOOK = {
    **{f"test_{way}.py": text for way, (text, *_) in ABSENT.items()},
    "test_subtests.py": SUBTESTS,
    "test_never.py": f"__test__ = False\n\n\n{TWO}",
    "test_gpus.py": "import torch\n\nif torch.cuda.device_count() > 1000:\n\n    def test_many():\n        pass\n",
    "test_helpers.py": "def helper():\n    pass\n",
    "test_changing.py": CHANGING,
    "run_it.py": PROGRAM,
    "run_it.sh": 'test -z "${PYTEST_CURRENT_TEST-}"\n',
}
"""Sources of a project without a conftest file."""


KILLS_ITS_GROUP = """
import os
import subprocess
import sys
import torch.multiprocessing as mp

WAITS = "import os, sys; sys.stdin.read(); os.killpg(int(sys.argv[1]), 9)"


def test_group():
    # As MPI does: what runs beside the program ends the program's process group once the program has ended.
    group = str(os.getpgrp())
    subprocess.Popen([sys.executable, "-c", WAITS, group], stdin=subprocess.PIPE, start_new_session=True)


def is_in(rank, group):
    assert os.getpgrp() == group


def test_ranks_are_in_it():
    mp.spawn(is_in, (os.getpgrp(),), nprocs=2)


def test_session_of_its_own():
    assert os.getpgrp() != os.getpid()
    os.setsid()
"""


@pytest.mark.parametrize("engine", ["local", "fresh"])
def test_what_ends_its_own_process_group_ends_nobody_else(tmp_path, engine):
    """The process group of a program, which its ranks are in, is none of what watches over it."""
    folder = write(tmp_path, {"pyproject.toml": SETTINGS, "tests/test_it.py": KILLS_ITS_GROUP})
    assert {outcome for outcome, _ in proved(folder, "--engine", engine).values()} == {"passed"}
