"""Questions about a suite, through the command `rankbook query`."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rankbook.cli import main
from rankbook.query import NOUNS

SUITE = {
    "suite/test_reduce.py": """\
# Owner(s): ["oncall: distributed"]
import pytest
import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiProcessTestCase, requires_nccl, skip_if_lt_x_gpu

pytestmark = pytest.mark.slow


class TestReduce(MultiProcessTestCase):
    @requires_nccl()
    @skip_if_lt_x_gpu(4)
    def test_four(self):
        dist.all_reduce(x)

    @skip_if_lt_x_gpu(2)
    def test_two(self):
        self.helper()

    def helper(self):
        dist.all_to_all_single(x, y)
""",
    "suite/deep/test_plain.py": """\
import pytest
import torch.distributed as dist


@pytest.mark.parametrize("backend", ["gloo", "mpi"])
def test_group(backend):
    dist.init_process_group(backend)


@pytest.mark.nightly
class TestPlain:
    def test_barrier(self):
        dist.barrier()
""",
    "torch/__init__.py": "",
    "torch/distributed.py": "def all_reduce(): ...\ndef all_to_all_single(): ...\ndef gather(): ...\nclass Store: ...\n",
}
HARNESS = "torch.testing._internal.common_distributed"
FOUR, TWO = "suite/test_reduce.py::TestReduce::test_four", "suite/test_reduce.py::TestReduce::test_two"
BARRIER = "suite/deep/test_plain.py::TestPlain::test_barrier"
GROUPS = ["suite/deep/test_plain.py::test_group[gloo]", "suite/deep/test_plain.py::test_group[mpi]"]


@pytest.fixture
def ask(tmp_path, capsys):
    """Ask about the suite; gives the exit status and what was printed."""
    for path, text in SUITE.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["suite", "torch"]\napis = ["torch.distributed"]\n')

    def asked(*words: str) -> tuple[int, str]:
        status = main(["query", *words, "--root", str(tmp_path)])
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    return asked


IMPLIED = """\
import unittest

from torch.testing._internal.common_cuda import PLATFORM_SUPPORTS_FP8, SM80OrLater


@unittest.skipUnless(PLATFORM_SUPPORTS_FP8, "")
def test_halves(): ...


@unittest.skipUnless(SM80OrLater, "")
def test_new(): ...


@unittest.skipIf(SM80OrLater, "")
def test_old(): ...


@unittest.skipUnless(PLATFORM_SUPPORTS_FP8 or hasattr(unittest, "mock"), "")
def test_either(): ...
"""


def test_gpus_that_other_needs_imply(tmp_path, capsys):
    """What only a GPU can do, or is, needs one."""
    (tmp_path / "test_it.py").write_text(IMPLIED)
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["test_it.py"]\n')
    assert main(["query", "tests", "--format", "json", "--root", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["gpus"] for each in found] == [1, 1, 0, 0]


MARKED = {
    "marking.py": "import pytest\n\nhard = pytest.mark.hard\n\n\nclass Far:\n    pytestmark = [pytest.mark.far, pytest.mark.wide]\n",
    "test_marked.py": """\
import unittest

import pytest
from marking import Far, hard
from pytest import mark

pytestmark = [mark.slow, mark.filterwarnings("error")]


@mark.parametrize("n", [1, pytest.param(2, marks=mark.gpu), pytest.param(3, marks=[mark.gpu, mark.skip(reason="no")])])
def test_n(n): ...


@mark.usefixtures("tmp_path")
class TestX:
    pytestmark = [pytest.mark.big]

    @hard
    def test_m(self): ...

    class TestInner:
        def test_i(self): ...


class TestY(TestX):
    def test_n(self): ...


class TestZ(Far, unittest.TestCase):
    @mark.small
    def test_z(self): ...


def test_twice(): ...


@mark.late
def test_twice(): ...  # noqa: F811
""",
}


def selected(root, mark):
    """Ask pytest which tests a mark selects."""
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:rankbook", "-m", mark]
    listed = subprocess.run(words, cwd=root, check=False, capture_output=True, text=True, timeout=60).stdout
    return sorted(line for line in listed.splitlines() if "::" in line)


def test_marks_are_those_by_which_pytest_selects(tmp_path, capsys):
    """Marks of a base class, of a set of parameters and of another file count, on the page as in answers; `usefixtures` does not."""
    for path, text in MARKED.items():
        (tmp_path / path).write_text(text)
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["test_marked.py", "marking.py"]\n')
    expected = {"big": 5, "far": 1, "gpu": 2, "hard": 2, "late": 1, "skip": 1, "slow": 10, "small": 1, "wide": 1}
    assert main(["gen", "--root", str(tmp_path)]) == 0
    capsys.readouterr()
    for mark, number in expected.items():
        assert main(["query", "tests", "--mark", mark, "--format", "ids", "--root", str(tmp_path)]) == 0
        found = sorted(capsys.readouterr().out.splitlines())
        assert (len(found), found) == (number, selected(tmp_path, mark))
    page = (tmp_path / "docs/suite/suite-marks.md").read_text().partition("## Marks\n")[2].partition("\n## ")[0]
    assert {name: int(number) for name, number in re.findall(r"^\| `(\w+)` \| (\d+) ", page, re.MULTILINE)} == expected
    assert main(["query", "marks", "--root", str(tmp_path)]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:]] == [[name, str(n)] for name, n in expected.items()]


DECORATED = {
    "tests/__init__.py": "",
    "tests/near/__init__.py": """\
import unittest

def near(function): ...


class Base(unittest.TestCase):
    @near
    def test_base(self): ...
""",
    "tests/test_near.py": """\
from .near import Base, near


class TestDerived(Base):
    @near
    def test_derived(self): ...
""",
    "tests/wrapping.py": """\
import functools
import unittest

import pytest

import deciding

hard = pytest.mark.hard
needs_link = unittest.skipIf(deciding.lonely(), "no link")


def twice(function):
    return functools.wraps(function)(lambda *given: (function(*given), function(*given)))


@needs_link
class Linked(unittest.TestCase):
    @twice
    def test_far(self): ...
""",
    "tests/test_decorated.py": """\
import pytest

from . import wrapping
from .wrapping import Linked, hard, twice as again


@deciding.once("a")
class TestNear(Linked):
    @staticmethod
    @hard
    @wrapping.twice
    def test_near(): ...


@pytest.mark.parametrize("n", [1, 2])
@again
@nobody.knows()
@(lambda function: function)
def test_alone(n): ...


@pytest.fixture
def test_data(): ...
""",
}


def test_decorators_have_their_full_names(tmp_path, capsys):
    """What decorates a test, the class that it is in and those that this derives from count, under the names that imports give them.

    Marks under any name, and what Python and pytest have themselves, are no decorators.
    """
    for path, text in DECORATED.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["tests"]\n')
    assert main(["query", "tests", "--name", "test_*", "--format", "json", "--root", str(tmp_path)]) == 0
    found = {each["id"].partition("::")[2]: each["decorators"] for each in json.loads(capsys.readouterr().out)}
    link, twice = "tests.wrapping.needs_link", "tests.wrapping.twice"
    assert found == {
        "Linked::test_far": [link, twice],
        "Base::test_base": ["tests.near.near"],
        "TestDerived::test_base": ["tests.near.near"],
        "TestDerived::test_derived": ["tests.near.near"],
        "TestNear::test_far": ["deciding.once", link, twice],
        "TestNear::test_near": ["deciding.once", link, twice],
        "test_alone[1]": ["nobody.knows", twice],
        "test_alone[2]": ["nobody.knows", twice],
    }


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], [BARRIER, *GROUPS, FOUR, TWO]),
        (["--gpus", ">=2"], [FOUR, TWO]),
        (["--gpus", "2"], [TWO]),
        (["--gpus", "> 2"], [FOUR]),
        (["--gpus", "0"], [BARRIER, *GROUPS]),
        (["--gpus", "0", "--gpus", "4"], [BARRIER, *GROUPS, FOUR]),
        (["--world-size", "4"], [FOUR, TWO]),
        (["--backend", "nccl"], [FOUR]),
        (["--api", "torch.distributed.all_to_all_single"], [TWO]),
        (["--api", "torch.distributed.all_*"], [FOUR, TWO]),
        (["--api", "torch.distributed", "--path", "suite/deep/**"], [BARRIER, *GROUPS]),
        (["--owner", "oncall: Distributed"], [FOUR, TWO]),
        (["--owner", "*distributed"], [FOUR, TWO]),
        (["--mark", "slow"], [FOUR, TWO]),
        (["--mark", "nightly"], [BARRIER]),
        (["--decorator", "skip_if_lt_x_gpu"], [FOUR, TWO]),
        (["--decorator", "*.common_distributed.requires_nccl"], [FOUR]),
        (["--decorator", "parametrize"], []),
        (["--harness", "multiprocesstestcase"], [FOUR, TWO]),
        (["--path", "test_plain.py"], [BARRIER, *GROUPS]),
        (["--need", "backend nccl"], [FOUR]),
        (["--need", "backend"], [FOUR]),
        (["--need", "2 GPUs", "--need", "4 gpus"], [FOUR, TWO]),
        (["--name", "test_group[gloo]"], GROUPS[:1]),
        (["--name", "*b?rrier"], [BARRIER]),
        (["--name", FOUR], [FOUR]),
        (["--name", GROUPS[0]], GROUPS[:1]),
        (["--gpus", ">=2", "--mark", "nightly"], []),
        (["--here", "runs"], [BARRIER, *GROUPS]),
        (["--device", "mps"], []),
    ],
)
def test_filters(ask, filters: list[str], expected: list[str]) -> None:
    """Each filter takes what one of its values takes; a test is chosen when all filters take it; none found is status 1."""
    status, printed = ask("tests", "--format", "ids", *filters)
    assert sorted(printed.split("\n")[:-1]) == sorted(expected)
    assert status == (0 if expected else 1)


def test_names_are_those_of_the_index(tmp_path, capsys):
    """What `query apis` lists is what the index of APIs lists, names of Python's own library too."""
    imports = "import asyncio\nimport unittest\n\nimport torch.distributed as dist\n\n\n"
    test = "def test_it():\n    dist.barrier()\n    asyncio.sleep(0)\n    raise unittest.SkipTest\n"
    (tmp_path / "test_it.py").write_text(imports + test)
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["test_it.py"]\n')
    assert main(["gen", "--root", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["query", "apis", "--format", "ids", "--root", str(tmp_path)]) == 0
    page = (tmp_path / "docs/suite/suite-apis.md").read_text()
    spaces = re.findall(r"^## `(.+)`\n\n.*\n.*\n\| `(\w+)` ", page, re.MULTILINE)
    assert capsys.readouterr().out.split() == [f"{space}.{name}" for space, name in spaces]
    assert [space for space, _ in spaces] == ["asyncio", "torch.distributed", "unittest"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["files"], ["suite/deep/test_plain.py 3 0", "suite/test_reduce.py 2 4 oncall: distributed"]),
        (["owners"], ["oncall: distributed 2 1"]),
        (["marks"], ["nightly 1 1", "slow 2 1"]),
        (["decorators"], [f"{HARNESS}.requires_nccl 1 1", f"{HARNESS}.skip_if_lt_x_gpu 2 1"]),
        (
            ["apis", "--under", "torch.distributed", "--gpus", ">0"],
            ["torch.distributed.all_reduce 1 1", "torch.distributed.all_to_all_single 1 1"],
        ),
        (["apis", "--under", "torch.distributed.barrier"], ["torch.distributed.barrier 1 1"]),
        (
            ["apis", "--untested"],
            ["torch.distributed.Store class torch/distributed.py:4", "torch.distributed.gather function torch/distributed.py:3"],
        ),
        (["apis", "--untested", "--under", "torch.distributed.gather"], ["torch.distributed.gather function torch/distributed.py:3"]),
        (["apis", "--untested", "--under", "torch.distributed.all_reduce"], []),
        (["needs", "--backend", "nccl"], ["4 GPUs 1 1", "backend nccl 1 1", "slow 1 1", "world size 4 1 1"]),
        (["tests", "--gpus", "4"], [f"{FOUR} MultiProcessTestCase 4 GPUs, world size 4, backend nccl, slow"]),
    ],
)
def test_nouns(ask, words: list[str], expected: list[str]) -> None:
    """Each noun counts the chosen tests, and the files that they stand in, under headings."""
    status, printed = ask(*words)
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert lines[1:] == expected
    assert status == (0 if expected else 1)


def test_a_question_that_restricts_the_sources(ask) -> None:
    """Only what is named is surveyed."""
    assert ask("tests", "suite/deep", "--format", "ids", "--gpus", ">=2") == (1, "")


def test_json(ask) -> None:
    """JSON holds all that is known of a row, with the place of each need."""
    status, printed = ask("tests", "--format", "json", "--gpus", "4")
    [found] = json.loads(printed)
    assert status == 0
    assert (found["id"], found["path"], found["line"], found["class"], found["gpus"]) == (FOUR, "suite/test_reduce.py", 12, "TestReduce", 4)
    assert (found["owners"], found["marks"], found["harness"]) == (["oncall: distributed"], ["slow"], "MultiProcessTestCase")
    gpus = next(need for need in found["needs"] if need["kind"] == "gpus")
    assert (gpus["value"], gpus["path"], gpus["line"]) == ("4", "suite/test_reduce.py", 11)
    assert json.loads(ask("marks", "--format", "json")[1])[0] == {"mark": "nightly", "tests": 1, "files": 1}
    assert json.loads(ask("owners", "--mark", "none", "--format", "json")[1]) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["tests", "--gpus", "many"], "--gpus: 'many' is no comparison with a number; write 2, '>=2' or '<4', say"),
        (["tests", "--world-size", ">="], "--world-size: '>=' is no comparison with a number"),
        (["tests", "--here", "maybe"], "'maybe' does not become of a test; write runs, skipped, absent or unknown"),
        (["tests", "nowhere"], "the source 'nowhere' does not exist"),
        (["apis", "--untested", "--gpus", "2"], "--untested asks for names that no test mentions, so tests cannot be chosen"),
        (["apis", "--untested", "--under", "nowhere.pkg"], "no public name of nowhere.pkg is known"),
    ],
)
def test_errors(ask, words: list[str], sentence: str) -> None:
    """What cannot be answered is said in one sentence, with status 2."""
    status, printed = ask(*words)
    assert (status, printed.count("\n")) == (2, 1)
    assert sentence in printed


def test_untested_without_a_module(ask, tmp_path) -> None:
    """Without the setting, and without a namespace, there is nothing to compare with."""
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["suite"]\n')
    assert ask("apis", "--untested")[0] == 2


def test_a_pattern_finds_the_modules_of_packages(tmp_path, capsys) -> None:
    """The modules below a package outside the tree are found in its folder, the private ones left out, and as they are each time."""
    (tmp_path / "pyproject.toml").write_text(
        "[tool.rankbook]\nsources = ['tests']\napis = ['mypkg', 'mypkg.*']\npackage-path = ['lib']\nfindings = []\n"
    )
    files = {
        "tests/test_q.py": "from mypkg.b import used\ndef test_a(): used()\n",
        "lib/mypkg/__init__.py": "",
        "lib/mypkg/b.py": "def ring(): pass\ndef used(): pass\n",
        "lib/mypkg/deep/c.py": "def far(): pass\n",
        "lib/mypkg/_own.py": "def own(): pass\n",
        "lib/mypkg/_inner/d.py": "def own(): pass\n",
        "lib/mypkg/no-module.py": "def own(): pass\n",
        "lib/other/e.py": "def own(): pass\n",
    }

    def found() -> list[str]:
        page = (tmp_path / "docs/suite/suite-untested.md").read_text()
        assert main(["query", "apis", "--untested", "--root", str(tmp_path)]) == 0
        asked = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
        assert re.findall(r"^- `(\w+)`: ", page, re.MULTILINE) == [name.rpartition(".")[2] for name in asked]
        return asked

    def generate() -> None:
        assert main(["gen", "--root", str(tmp_path)]) == 0
        capsys.readouterr()

    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    generate()
    assert found() == ["mypkg.b.ring", "mypkg.deep.c.far"]
    (tmp_path / "lib/mypkg/deep/new.py").write_text("def newer(): pass\n")
    generate()
    assert found() == ["mypkg.b.ring", "mypkg.deep.c.far", "mypkg.deep.new.newer"]
    (tmp_path / "lib/mypkg/deep/c.py").write_text("def further(): pass\n")
    (tmp_path / "lib/mypkg/deep/new.py").unlink()
    generate()
    assert found() == ["mypkg.b.ring", "mypkg.deep.c.further"]


def test_files_of_packages_are_told_by_where_they_lie(tmp_path, capsys) -> None:
    """What the project holds itself goes by its path from the root, what lies elsewhere by its whole path."""
    root = tmp_path / "it"
    files = {
        "pyproject.toml": "[tool.rankbook]\nsources = ['tests']\napis = ['own.core', 'far']\npackage-path = ['src', '../lib']\n",
        "tests/test_x.py": "from own.core import Base\nimport far\nclass TestX(Base): ...\n",
        "src/own/core.py": "class Base:\n    def test_x(self): ...\n\ndef unused(): ...\n",
        "../lib/far.py": "def away(): ...\n",
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    assert main(["query", "apis", "--untested", "--root", str(root)]) == 0
    said = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert said == [
        ["far.away", "function", f"{tmp_path.resolve()}/lib/far.py:1"],
        ["own.core.unused", "function", "src/own/core.py:4"],
    ]
    assert main(["query", "tests", "--format", "json", "--root", str(root)]) == 0
    assert {found["path"] for found in json.loads(capsys.readouterr().out)} == {"src/own/core.py"}


def test_ids_are_what_pytest_takes(ask, tmp_path) -> None:
    """The ids of the plain tests name exactly those tests to pytest."""
    _, printed = ask("tests", "--path", "suite/deep/**", "--format", "ids")
    (tmp_path / "suite/deep/test_plain.py").write_text(SUITE["suite/deep/test_plain.py"].replace("import torch.distributed as dist", ""))
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *printed.split()]
    collected = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert sorted(line for line in collected.splitlines() if "::" in line) == sorted(printed.split())


def test_names_with_brackets_are_no_patterns(ask) -> None:
    """A bracket in a value stands for itself."""
    assert ask("tests", "--name", "test_group[a-z]*")[0] == 1


def test_a_terminal_shows_a_table(ask, monkeypatch) -> None:
    """Where a person watches, the answer is laid out to the width of the terminal, and nothing of it is lost."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    printed = re.sub("\x1b[^m]*m", "", ask("tests", "--gpus", "4")[1])
    assert max(map(len, printed.splitlines())) <= 60
    assert "MultiProcessTestC" in printed
    assert "…" not in printed


def test_columns_are_as_wide_as_what_is_shown(ask, tmp_path) -> None:
    """A name that would steer the terminal is written out before the columns are measured."""
    (tmp_path / "suite/test_\x1b[31m\ta\nb.py").write_text("def test_a():\n    pass\n")
    status, printed = ask("files")
    head, *rows = printed.splitlines()
    assert status == 0
    assert len(rows) == 3
    assert any(row.startswith("suite/test_\\u001b[31m\\ta\\nb.py  1") for row in rows)
    assert {row[head.index("tests") - 2 : head.index("tests")] for row in rows} == {"  "}
    assert all(row[head.index("tests")].isdigit() for row in rows)


def test_the_guides_say_what_can_be_listed() -> None:
    """The page of queries and that of settings have each word that may follow `query`, in the order of the help."""
    guide = Path(__file__).parents[1] / "docs/guide"
    table = (guide / "querying.md").read_text().partition("| Word | What it lists |")[2].partition("\n\n")[0]
    row = re.search(r"^\| (.*) \| What is listed\. \|$", (guide / "settings.md").read_text(), re.MULTILINE)[1]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == re.findall(r"`(\w+)`", row) == list(NOUNS)


def test_ids_go_to_pytest_as_they_are(tmp_path) -> None:
    """The pipe that the guide names runs the tests that were asked for, whatever stands in their names, and none where there is none."""
    plain = "import pytest\n\n\n@pytest.mark.parametrize('x', ['a b', '*', '$HOME', \"it's\", 'a'])\ndef test_p(x):\n    pass\n"
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite/test_p.py").write_text(plain)
    (tmp_path / "suite/test_p[a].py").touch()
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["suite"]\n')
    guide = (Path(__file__).parents[1] / "docs/guide/querying.md").read_text()
    command = re.search(r"^rankbook query tests .* --format ids (\| xargs .*pytest)$", guide, re.MULTILINE)[1]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def run(*words: str) -> str:
        asked = shlex.join([sys.executable, "-m", "rankbook.cli", "query", "tests", *words, "--format", "ids"])
        done = subprocess.run(
            ["bash", "-c", f"{asked} {command} -v"], cwd=tmp_path, capture_output=True, text=True, env=environment, check=False
        )
        return done.stdout + done.stderr

    assert "5 passed" in run()
    assert "4 passed" in run("--name", "test_p[a b]", "--name", "test_p[?]", "--name", "test_p[$HOME]")
    assert run("--name", "nothing") == ""
