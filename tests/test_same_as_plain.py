"""What plain pytest does not call passed is not passed in the book either, and what it runs runs there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
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
HOOKS = {
    "status": ("def pytest_sessionfinish(session):\n    session.exitstatus = 1\n", "its pytest ended with status 1 although none of its"),
    "finish": (
        "def pytest_runtest_logfinish(nodeid):\n    if 'test_b' in nodeid:\n        raise RuntimeError('a leak')\n",
        "it ended the whole pytest session: RuntimeError: a leak",
    ),
}
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


@pytest.mark.parametrize("hook", HOOKS)
def test_a_session_that_a_hook_makes_red_is_red(tmp_path, hook):
    """Where all tests pass and a conftest file makes the session fail all the same, the last of them answers for it."""
    text, reason = HOOKS[hook]
    folder = write(tmp_path, {"tests/conftest.py": text, "tests/test_it.py": TWO})
    assert plain(folder) not in (0, 5)
    found = proved(folder, "-k", "test_it and not how")
    assert found["test_it.py::test_a"] == ("passed", "")
    outcome, said = found["test_it.py::test_b"]
    assert (outcome, said.startswith(reason)) == ("failed", True), said


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


def test_subtests_that_are_skipped(tmp_path):
    """A test all of whose subtests are skipped has not passed; one of which some are says so."""
    found = proved(write(tmp_path, {"tests/test_it.py": SUBTESTS}), "-k", "test_it and not how")
    assert found == {
        "test_it.py::TestIt::test_all": ("skipped", "2 of 2 subtests skipped: subtest (backend='nccl'): nccl is not here"),
        "test_it.py::TestIt::test_some": ("passed", "1 of 2 subtests skipped: subtest (backend='ucc'): ucc is not here"),
    }


def test_a_module_of_which_no_test_is_collected_has_not_passed(tmp_path):
    """Where the page lists tests, and pytest collects none, none has passed; where the machine is why, that is the reason."""
    gpus = "import torch\n\nif torch.cuda.device_count() > 1000:\n\n    def test_many():\n        pass\n"
    helpers = "def helper():\n    pass\n"
    files = {"tests/test_never.py": f"__test__ = False\n\n\n{TWO}", "tests/test_gpus.py": gpus, "tests/test_helpers.py": helpers}
    folder = write(tmp_path, files)
    assert [plain(folder, name) for name in files] == [5, 5, 5]
    never = "vacuous", "the module imports, and pytest collects no test from it; its page lists test_a, test_b"
    few = "skipped", "pytest collects none of its tests here: needs 1001 GPUs, and this machine has none"
    assert proved(folder) == {
        "test_never.py::test_never.py": never,
        "test_never.py::how-to-run-it": never,
        "test_gpus.py::test_many": few,
        "test_gpus.py::how-to-run-it": few,
        "test_helpers.py::test_helpers.py": ("passed", ""),
    }


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


def test_data_that_a_test_goes_through_is_there(tmp_path):
    """A test that lists a folder finds the data in it, which needs no page of its own: it does not pass because there is nothing."""
    data = {"cases/small/one.json": "1", "cases/small/two.json": "2", "beside.txt": "2"}
    settings = SETTINGS + "include = ['*.py']\n"
    beside = {f"tests/{name}": text for name, text in data.items()}
    folder = write(tmp_path, {"pyproject.toml": settings, "tests/test_it.py": LISTS, **beside})
    assert proved(folder, "-k", "test_it and not how") == {
        "test_it.py::test_each[one.json]": ("passed", ""),
        "test_it.py::test_each[two.json]": ("failed", "AssertionError: assert '2' == '1'"),
        "test_it.py::test_all": ("failed", "AssertionError: assert '2' == '1'"),
        "test_it.py::test_beside": ("failed", "AssertionError: assert '2' == '1'"),
        "test_it.py::test_cache": ("passed", ""),
    }
    (folder / "tests/cases/small/two.json").write_text("1")
    (folder / "tests/beside.txt").write_text("1")
    again = proved(folder, "--stale", "-k", "test_it and not how")
    assert {outcome for outcome, _ in again.values()} == {"passed"}


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


def test_data_in_folders_above_is_there(tmp_path):
    """What a test lists or looks for by way of a folder above its own is there, wherever the book lies; nothing outside the project is."""
    settings = f"[tool.pytest.ini_options]\naddopts = '-ra'\n{SETTINGS}include = ['*.py']\n"
    (tmp_path / "outside").mkdir()
    files = {"pyproject.toml": settings, "tests/deep/test_it.py": FURTHER} | dict.fromkeys(FAR, "2")
    folder = write(tmp_path / "project", files)
    ends = {name: outcome for name, (outcome, _) in proved(folder, "-k", "test_it and not how").items()}
    assert ends.pop("test_it.py::test_settings") == ends.pop("test_it.py::test_outside") == "passed"
    assert set(ends.values()) == {"failed"}, ends
    write(folder, dict.fromkeys(FAR, "1"))
    ends = {name: outcome for name, (outcome, _) in proved(folder, "--stale", "-k", "test_it and not how").items()}
    assert set(ends.values()) == {"passed"}, ends
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
    write(tmp_path / "stray", {"tests/__init__.py": "raise RuntimeError('another one')\n"})
    for place in (tmp_path / "stray", folder):
        monkeypatch.setenv("PYTHONPATH", str(place))
        assert plain(folder, "tests") == 0
        ends = proved(folder)
        assert {name: end for name, end in ends.items() if end[0] != "passed"} == {}


def test_what_goes_through_too_much_data_is_skipped(tmp_path):
    """Thousands of files are not put beside a listing that lists their folder: it does not pass without them, it is skipped."""
    test = "import os\n\n\ndef test_it():\n    for place, _, names in os.walk('cases'):\n        assert not names\n"
    many = {f"tests/cases/{number}.txt": "1" for number in range(2001)}
    folder = write(tmp_path, {"tests/test_it.py": test, **many})
    (folder / "pyproject.toml").write_text(SETTINGS + "include = ['*.py']\n")
    reason = "it lists tests/cases, which holds more than 2,000 files: that is not put beside a listing; run its source by pytest itself"
    assert set(proved(folder).values()) == {("skipped", reason)}


def test_words_that_name_large_folders_too(tmp_path):
    """A word that is no part of a path leaves a test alone where a folder is called so, and so does the way from the root to a folder."""
    word = "import os\n\nKIND = 'many'\n\n\ndef test_it(tmp_path):\n    assert not os.listdir(tmp_path)\n"
    way = (
        "from pathlib import Path\n\nROOT = Path(__file__).resolve().parents[1]\n\n\ndef test_it():\n"
        "    assert [path.name for path in (ROOT / 'tests' / 'few').glob('*.txt')] == ['0.txt']\n"
    )
    many = {f"{folder}/{number}.txt": "1" for folder in ("many", "tests/others") for number in range(2001)}
    folder = write(tmp_path, {"tests/test_word.py": word, "tests/test_way.py": way, "tests/few/0.txt": "1", **many})
    (folder / "pyproject.toml").write_text(SETTINGS + "include = ['*.py']\n")
    assert plain(folder) == 0
    assert {outcome for outcome, _ in proved(folder).values()} == {"passed"}


PROGRAM = """
import os
import sys

if __name__ == "__main__":
    assert not [name for name in os.environ if name.startswith(("PYTEST_CURRENT_TEST", "PYTEST_VERSION", "PYTEST_XDIST"))]
    assert "pytest" not in sys.modules
"""


def test_a_program_does_not_know_that_pytest_runs_it(tmp_path):
    """What a script does under `python` it does in the book: neither variables nor modules tell it that it is under test."""
    folder = write(tmp_path, {"tests/run_it.py": PROGRAM, "tests/run_it.sh": 'test -z "${PYTEST_CURRENT_TEST-}"\n'})
    assert {outcome for outcome, _ in proved(folder).values()} == {"passed"}


AT_THE_END = """
import sys
from pathlib import Path


def pytest_terminal_summary():
    Path({path!r}, "summed").touch()


def pytest_unconfigure():
    Path({path!r}, f"end-{{'hypothesis' in sys.modules}}").touch()
"""
USING_HYPOTHESIS = """
from hypothesis import given, strategies


@given(strategies.integers())
def test_it(number):
    assert number != 3.5
"""


def test_nothing_that_no_test_uses_is_imported_at_the_end(tmp_path):
    """The plugin of Hypothesis imports all of it to sum up: a second for each listing. It stays where a test uses it, and so do hooks."""
    for name, text, used in (("plain", TWO, False), ("using", USING_HYPOTHESIS, True)):
        folder = write(tmp_path / name, {"tests/conftest.py": AT_THE_END.format(path=str(tmp_path / name)), "tests/test_it.py": text})
        outcomes = {outcome for _, (outcome, _) in sorted(proved(folder).items())}
        assert outcomes == {"passed"}
        assert [path.name for path in folder.glob("end-*")] == [f"end-{used}"]
        assert (folder / "summed").exists()


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
    for arguments in ((), ("test_it.py",), ("-n1",)):
        done = run(folder, "pytest", "-p", "no:cacheprovider", *arguments)
        assert (done.returncode, "loaded: []" in done.stdout) == (0, True), done.stdout
    assert "unknown setting 'nonsense'" in run(folder, "pytest", "page.md").stderr
    (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\ntestpaths = ['page.md']\n")
    for arguments in ((), ("page.md",), ("--doctest-glob=*.md", ".")):
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


def runs_of(folder: Path) -> dict[str, Run]:
    """Give the last run of each test of a book of one source, by its id; that of the command under the command's name."""
    return {run.node_id.partition("::")[2]: run for run in Ledger(folder / ".rankbook/ledger.sqlite").latest()}


@pytest.mark.parametrize("way", ABSENT)
def test_the_tests_of_a_module_that_is_skipped_are_skipped_with_it(tmp_path, way):
    """Each test that the page lists says why its module is skipped, and owes a run for what it needs."""
    text, names, reason, needs = ABSENT[way]
    folder = write(tmp_path, {"tests/test_it.py": text})
    proved(folder)
    found = runs_of(folder)
    assert found.keys() == {*names, "how-to-run-it"}
    assert {(str(run.outcome), run.reason, run.needs) for run in found.values()} == {("skipped", reason, needs)}
    debts = run(folder, "rankbook.cli", "ledger", "debt").stdout
    owing = f"{len(names)} tests need" if len(names) > 1 else "1 test needs"
    assert debts.startswith(f"{owing} {', '.join(needs)}; last run: never"), debts
    alone = run(folder, "pytest", "-p", "no:cacheprovider", "-rs", f"docs/suite/tests/test_it.py_docs.md::{names[0]}")
    assert (alone.returncode, "1 skipped in" in alone.stdout) == (0, True), alone.stdout


def test_a_module_that_was_skipped_is_collected_again(tmp_path, tmp_path_factory, monkeypatch):
    """What its page lists stands for its tests until they are collected: then those count, and no name that stood for several of them."""
    folder = write(tmp_path, {"tests/test_it.py": ABSENT["package"][0]})
    installed = tmp_path_factory.mktemp("installed")
    monkeypatch.setenv("PYTHONPATH", str(installed), prepend=os.pathsep)
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


def test_what_is_collected_is_run(tmp_path):
    """A test of which the page says that it is not even collected here, and that is, runs: a conftest file may know better."""
    stub = "import sys\nimport types\n\nsys.modules['not_there'] = types.ModuleType('not_there')\nsys.modules['not_there'].NAMES = 'x'\n"
    folder = write(tmp_path, {"tests/conftest.py": stub, "tests/test_it.py": ABSENT["package"][0]})
    assert plain(folder) == 0
    found = proved(folder)
    assert {name: outcome for name, (outcome, _) in found.items() if "test_it" in name} == dict.fromkeys(
        [f"test_it.py::{name}" for name in ("TestA::test_a[1]", "TestA::test_a[2]", "how-to-run-it", "test_b[x]")], "passed"
    )


def test_warnings_that_are_errors_make_no_page_crash(tmp_path):
    """With `-W error` in `addopts` a test that warns is red, and one that does not is green, whatever rankbook itself has imported."""
    warns = "import warnings\n\n\ndef test_warns():\n    warnings.warn('old')\n\n\ndef test_silent():\n    pass\n"
    for option in ("-W error", "-Werror"):
        settings = f"[tool.pytest.ini_options]\naddopts = '{option}'\n{SETTINGS}"
        folder = write(tmp_path / option, {"pyproject.toml": settings, "tests/test_it.py": warns})
        assert plain(folder, "-k", "silent") == 0
        assert proved(folder, "-k", "test_it and not how") == {
            "test_it.py::test_warns": ("failed", "UserWarning: old"),
            "test_it.py::test_silent": ("passed", ""),
        }


OWN_ITEMS = """
import pytest


class Table(pytest.Item):
    def runtest(self):
        assert self.name != "wrong"


def pytest_pycollect_makeitem(collector, name, obj):
    return Table.from_parent(collector, name=name) if name in ("right", "wrong") else None
"""


def test_items_that_a_hook_makes_are_run(tmp_path):
    """A conftest file may make items that are no functions: each is run, and so are the tests beside them."""
    tests = "right = wrong = 1\n\n\ndef test_a():\n    pass\n"
    folder = write(tmp_path, {"tests/conftest.py": OWN_ITEMS, "tests/test_it.py": tests})
    assert plain(folder) == 1
    found = proved(folder, "-k", "test_it and not how")
    assert {name: outcome for name, (outcome, _) in found.items()} == {
        "test_it.py::right": "passed",
        "test_it.py::wrong": "failed",
        "test_it.py::test_a": "passed",
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


def test_an_id_that_is_another_one_each_time(tmp_path):
    """It costs its own test, which cannot be told from one that is gone, and no other one of its module."""
    write(tmp_path, {"tests/test_a.py": CHANGING})
    found = {name.partition("[")[0]: end for name, end in proved(tmp_path).items() if "how-to-run-it" not in name}
    outcomes = {name.rpartition("::")[2]: outcome for name, (outcome, _) in found.items()}
    assert outcomes == {"test_moment": "failed", "test_right": "passed", "test_wrong": "failed"}
    assert any("has collected it once, and not again" in reason for _, reason in found.values())


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


@pytest.mark.parametrize("again", ["items.extend(list(items))", "items[:] = [item for item in items for _ in range(3)]"])
def test_a_test_that_comes_several_times_ends_as_its_worst(tmp_path, again):
    """A hook may let each test run again: one that fails any of these times has failed."""
    hook = f"def pytest_collection_modifyitems(items):\n    {again}\n"
    folder = write(tmp_path, {"tests/conftest.py": hook, "tests/test_it.py": COUNTING})
    assert plain(folder) == 1
    found = proved(folder, "-k", "test_it and not how")
    assert {name.partition("::test_")[2]: outcome for name, (outcome, _) in found.items()} == {
        "wrong_later": "failed",
        "wrong_first": "failed",
        "right": "passed",
        "wrong_at_its_end": "failed",
        "skipped_later": "skipped",
    }
