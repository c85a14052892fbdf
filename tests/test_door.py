"""What the pytest door does around the listings of a session: plans, runs ahead, grants GPUs, runs again, leaves out, rewrites, ends."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest

from ledgers import rankbook
from proving import REPORTER, Result, page, prove
from rankbook.ledger import Ledger
from whole import in_whole

NEEDS = """\
import os

from torch.testing._internal.common_distributed import MultiProcessTestCase, requires_nccl, skip_if_lt_x_gpu


class TestNeeds(MultiProcessTestCase):
    world_size = 2

    def setUp(self):
        super().setUp()
        with open(os.environ["MARKS"], "a") as stream:
            print(self.id().rpartition(".")[2], os.environ.get("CUDA_VISIBLE_DEVICES", ""), file=stream)
        self._spawn_processes()

    @skip_if_lt_x_gpu(2)
    def test_two_gpus(self):
        pass

    @requires_nccl()
    def test_nccl(self):
        pass

    @requires_nccl()
    @skip_if_lt_x_gpu(4)
    def test_both(self):
        pass

    def test_runs(self):
        pass
"""
CALLS = """\
import torch


def test_comes_to_a_gpu():
    assert torch.ones(2).cuda().sum() == 2


def test_does_without():
    assert torch.ones(2).sum() == 2
"""
PACKAGE = """\
import pytest

nowhere = pytest.importorskip("winreg")


def test_package():
    pass
"""


def gen(folder, **sources):
    """Write source files below `suite`, and their pages below `docs`."""
    (folder / "suite").mkdir(exist_ok=True)
    for name, text in sources.items():
        (folder / "suite" / f"{name}.py").write_text(text)
    (folder / "pyproject.toml").touch()
    rankbook("gen", "suite", "--out", "docs", cwd=folder)


def ends(result):
    """Give the outcomes by the last part of the node id."""
    return {name.rpartition("::")[2]: outcome for name, outcome in result.outcomes().items()}


def said(result):
    """Give what each item that did not pass said, by the last part of its node id."""
    found = result.ends()
    return {name.rpartition("::")[2]: (report["longrepr"] or ["", "", report["text"]])[2] for name, report in found.items()}


def ledger(folder):
    """Give the last run of each item, by the last part of its node id."""
    return {run.node_id.rpartition("::")[2]: run for run in Ledger(folder / ".rankbook" / "ledger.sqlite").latest()}


def summary(result):
    """Give the numbers of the summary, by their words: of pytest's last line, and of the listings."""
    line = next(line for line in result.output.splitlines() if re.match(r"[0-9]+ pages?, [0-9]+ listings?", line))
    parts = [part.strip().split(" ", 1) for part in line.replace(":", ",").split(",")]
    return {words if words.endswith("code") else words.removesuffix("s"): int(number) for number, words in parts}


# Planning


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """A project with tests of torch's harness that need what is not here; gives its folder, and what runs its page."""
    pytest.importorskip("torch.testing._internal.common_distributed")
    if pytest.importorskip("torch").distributed.is_nccl_available():
        pytest.skip("this build of torch has NCCL, which these tests are to do without")
    folder = tmp_path_factory.mktemp("planned")
    gen(folder, test_needs=NEEDS)

    def run(*arguments):
        marks = folder / "marks"
        marks.write_text("")
        result = prove(folder, "docs/suite/test_needs.py_docs.md", *arguments, env={"MARKS": str(marks)})
        return result, marks.read_text().splitlines()

    return folder, run


def test_planned_tests_start_nothing(planned):
    """What cannot run is skipped with its need, and not even set up; the page's own command is the same run."""
    folder, run = planned
    result, marks = run()
    assert result.status == 0, result.output
    assert ends(result) == {
        "how-to-run-it": "passed", "test_two_gpus": "skipped", "test_nccl": "skipped", "test_both": "skipped", "test_runs": "passed",
    }  # fmt: skip
    assert "needs 2 GPUs, and this machine has none" in said(result)["test_two_gpus"]
    assert "needs backend nccl" in said(result)["test_nccl"]
    assert [mark.split()[0] for mark in marks] == ["test_runs"]
    runs = ledger(folder)
    assert runs["test_two_gpus"].needs == ("2 GPUs",)
    assert set(runs["test_both"].needs) == {"backend nccl", "4 GPUs"}  # all that it needs, also what did not decide
    assert (runs["how-to-run-it"].ranks, runs["how-to-run-it"].reason) == (0, "the same run as the tests of this page")
    assert runs["test_runs"].ranks == 2


def test_without_a_plan(planned):
    """With `--no-plan` tests have their own harness' reason."""
    _, run = planned
    result, marks = run("--no-plan")
    assert sorted(mark.split()[0] for mark in marks) == ["test_runs", "test_two_gpus"]  # the decorator of nccl keeps its test from set-up
    assert "Need at least 2" in said(result)["test_two_gpus"]
    assert "NCCL" in said(result)["test_nccl"]


MARKED = """\
import os

import pytest


def setup_function(function):
    with open(os.environ["MARKS"], "a") as stream:
        print(function.__name__, os.environ.get("CUDA_VISIBLE_DEVICES", ""), file=stream)


@pytest.mark.gpu(2)
def test_two_gpus():
    pass


def test_elsewhere():
    pytest.importorskip("winreg")


def test_runs():
    pass
"""


@pytest.fixture
def marked(tmp_path):
    """A project with a test that names its GPUs, one that skips itself, and another; gives its folder and what runs its pages."""
    gen(tmp_path, test_marked=MARKED, test_edited=MARKED, test_package=PACKAGE)
    edited = next(tmp_path.glob("docs/**/test_edited.py_docs.md"))
    edited.write_text(edited.read_text().replace("test_runs", "test_done"))

    def run(*arguments, names=("marked",)):
        marks = tmp_path / "marks"
        marks.write_text("")
        pages = [f"docs/suite/test_{name}.py_docs.md" for name in names]
        result = prove(tmp_path, *pages, "-o", "markers=gpu", *arguments, env={"MARKS": str(marks)})
        return result, sorted(line.strip() for line in marks.read_text().splitlines())

    return tmp_path, run


def test_what_no_plan_is_for(marked):
    """All of an edited listing is started; a module that skips itself has its own reason."""
    _, run = marked
    result, marks = run(names=["edited", "package"])
    assert marks == ["test_done", "test_elsewhere", "test_two_gpus"]
    assert any("could not import 'winreg'" in reason for reason in said(result).values()), result.output


def test_the_pages_own_command_alone(marked):
    """The command of a page that is selected alone runs the page's tests, without those that cannot run."""
    _, run = marked
    result, marks = run("-k", "how-to-run-it")
    assert ends(result) == {"how-to-run-it": "passed"}
    assert marks == ["test_runs"]


def test_promised(marked):
    """What was promised and is not here turns the skip red, and the session too when no test wants it."""
    _, run = marked
    result, marks = run("--require", "gpu=2")
    assert result.status == 1
    assert ends(result)["test_two_gpus"] == "failed"
    assert ends(result)["test_elsewhere"] == "skipped"
    assert "--require gpu=2 promises" in said(result)["test_two_gpus"]
    assert marks == ["test_runs"]
    none, _ = run("--require", "gpu=2", names=["package"])
    assert none.status == 1
    assert "--require gpu=2 promises 2 GPUs, and this machine has none" in none.output
    wrong, _ = run("--require", "nonsense")
    assert wrong.status == 4
    assert "'nonsense' cannot be required" in wrong.output


def test_declared_gpus(marked):
    """Tests that need GPUs are started when there are such GPUs, and see those that they were granted."""
    folder, run = marked
    result, marks = run("--gpus", "2 x H200", "-k", "test_two_gpus")
    assert marks == ["test_two_gpus 0,1"]
    assert ends(result) == {"test_two_gpus": "passed"}
    assert ledger(folder)["test_two_gpus"].receipt.gpus == ("0: H200", "1: H200")


SEES = """\
import os

import pytest

seen = os.environ.get("CUDA_VISIBLE_DEVICES")


{mark}def test_sees():
    assert seen == "{expected}", seen"""


def test_what_tests_of_a_guide_see(tmp_path):
    """Tests that a person has put on a page see all GPUs, as under plain pytest, unless the fence says how many; a script sees none."""
    marked = "@pytest.mark.skipif(not seen, reason='needs CUDA')\n"
    script = "import os\n\nassert os.environ['CUDA_VISIBLE_DEVICES'] == {!r}".format
    page(
        tmp_path,
        "guide",
        ("python {name=all}", SEES.format(mark=marked, expected="0,1")),
        ("python {name=one gpus=1}", SEES.format(mark=marked, expected="0").replace('"0"', '"0" or seen == "1"')),
        ("python {name=script}", script("")),
        ("python {name=with-one gpus=1}", "import os\n\nassert os.environ['CUDA_VISIBLE_DEVICES'] in ('0', '1')"),
    )
    result = prove(tmp_path, "docs", "--gpus", "2 x H200", env={"RANKBOOK_LEASES": str(tmp_path / "leases")})
    found = {name.partition("::")[2]: outcome for name, outcome in result.outcomes().items()}
    assert found == dict.fromkeys(("all::test_sees", "one::test_sees", "script", "with-one"), "passed"), result.output


# Running ahead


MEETING = """\
import os
import time
from pathlib import Path

meet = Path(os.environ["MEET"])


def log(word):
    with open(meet / "log", "a") as file:
        print(word, {name!r}, time.time_ns(), os.environ.get("CUDA_VISIBLE_DEVICES", ""), file=file)


log("begin")
(meet / {name!r}).touch()
for _ in range(int(os.environ["TURNS"])):
    if all((meet / other).exists() for other in {others!r}):
        break
    time.sleep(0.05)
assert all((meet / other).exists() for other in {others!r})
log("end")
"""


def meets(name, *others):
    """Write a listing that waits for others, and says when it began and ended and which GPUs it had."""
    return MEETING.format(name=name, others=others)


def meeting(folder, *arguments, turns=1200, **env):
    """Run pytest with a new folder for the listings to meet in; give the result, and the log."""
    meet = folder / f"meet-{len(list(folder.glob('meet-*')))}"
    meet.mkdir()
    environment = {"MEET": str(meet), "TURNS": str(turns), "RANKBOOK_LEASES": str(folder / "leases"), **env}
    return prove(folder, *arguments, env=environment), [line.split() for line in (meet / "log").read_text().splitlines()]


def spans(log):
    """Give name, begin, end and GPUs of what is in a log."""
    begun = {words[1]: (int(words[2]), words[3].split(",") if len(words) > 3 else []) for words in log if words[0] == "begin"}
    return [(words[1], begun[words[1]][0], int(words[2]), begun[words[1]][1]) for words in log if words[0] == "end"]


def clashes(log):
    """Name the pairs that have used a GPU at the same time."""
    pairs = combinations(spans(log), 2)
    return [(one[0], other[0]) for one, other in pairs if set(one[3]) & set(other[3]) and one[1] < other[2] and other[1] < one[2]]


def test_running_ahead(tmp_path):
    """Listings run at the same time as far as jobs allow, and are reported in the order of the page."""
    page(tmp_path, "p", *((f"python {{name={name}}}", meets(name, *others)) for name, *others in (("a", "b", "c"), ("b", "c"), ("c", "a"))))
    together, _ = meeting(tmp_path, "docs", "--listing-jobs", "3")
    assert list(ends(together).items()) == [("a", "passed"), ("b", "passed"), ("c", "passed")], together.output
    alone, log = meeting(tmp_path, "docs", "--listing-jobs", "1", turns=4)
    assert list(ends(alone).items()) == [("a", "failed"), ("b", "failed"), ("c", "passed")]
    assert [words[1] for words in log if words[0] == "begin"] == ["a", "b", "c"]


def processes(word):
    """Count the processes whose command line holds a word."""
    done = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return sum(word in line for line in done.stdout.splitlines())


SLEEPER = """\
import pathlib, time


def test_first():
    pass


def test_sleeps():
    pathlib.Path({folder!r}, "module").touch()
    time.sleep(4000)
"""


@pytest.mark.parametrize("way", ["-x", "SIGINT", "SIGINT while collecting"])
def test_the_end(tmp_path, way):
    """A failure under `-x`, and Ctrl-C, end all that runs ahead; nothing is left, and what has ended is in the ledger."""
    nap = f"sleep {200_000 + os.getpid()}"
    started = [tmp_path / name for name in ("module", "one", "two")]
    wait = f"import os, sys, time\nwhile not all(map(os.path.exists, {[str(path) for path in started]!r})):\n    time.sleep(0.05)\n"
    module = SLEEPER.format(folder=str(tmp_path))
    if "collecting" in way:
        module = module.partition("def test_first")[0] + f"pathlib.Path({str(tmp_path)!r}, 'module').touch()\ntime.sleep(4000)\n"
    naps = [(f"bash {{name={name}}}", f"touch {tmp_path / name}\n{nap}") for name in ("one", "two")]
    fails = [("python {name=fails}", f"{wait}sys.exit(3)")] if way == "-x" else [("python {name=quick}", "1")]
    page(tmp_path, "p", *fails, ("python {name=tests}", module), *naps)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "pytest", "--doctest-glob=*.md", "-p", "no:cacheprovider", "-x", "-v", "--listing-jobs=8", "docs"]
    heeding = functools.partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    said = tmp_path / "said"
    with said.open("w") as stream:
        options = {"cwd": tmp_path, "env": environment, "stdout": stream, "stderr": subprocess.STDOUT}
        under_way = subprocess.Popen(command, **options, preexec_fn=heeding)  # noqa: PLW1509 - this process has no other thread
    expected = started[:1] if "collecting" in way else started
    end = time.monotonic() + 120
    while not all(path.exists() for path in expected) and time.monotonic() < end:
        time.sleep(0.05)
    assert all(path.exists() for path in expected)
    if way != "-x":
        while said.read_text().count(" PASSED") < (0 if "collecting" in way else 2) and time.monotonic() < end:
            time.sleep(0.05)  # the reports of what is quick come in
        under_way.send_signal(signal.SIGINT)
    under_way.wait(timeout=60)
    output = said.read_text()
    assert under_way.returncode == (1 if way == "-x" else 2), output
    assert "INTERNALERROR" not in output and "Traceback" not in output, output
    assert processes(nap) == 0
    assert list((tmp_path / "tmp").iterdir()) == []
    if "collecting" not in way:
        assert {name: str(run.outcome) for name, run in ledger(tmp_path).items()} == (
            {"fails": "failed", "test_first": "passed"} if way == "-x" else {"quick": "passed", "test_first": "passed"}
        )


AGAIN = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for _ in range(3):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        if not any(report.failed for report in reports):
            break
    return True
"""
FLAKY = """
import pathlib

COUNT = pathlib.Path({folder!r}, "count")


def counted():
    with COUNT.open("a") as stream:
        stream.write("x")
    return len(COUNT.read_text())


def test_flaky():
    assert counted() == 3


def test_fine():
    pass
"""


@pytest.mark.parametrize("more", [(), ("-n", "2")], ids=" ".join)
def test_an_item_that_a_plugin_lets_run_again_is_run_again(tmp_path, more):
    """A failure is not told several times of one run: each is another one, and what the last says of the listing counts."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "again.py").write_text(AGAIN)
    marks = f"import pathlib\nmarks = pathlib.Path({str(tmp_path)!r}, 'script')\n"
    script = f"{marks}marks.open('a').write('x')\nassert len(marks.read_text()) == 2\n"
    parts = [("python {session=s name=one}", "x = 0"), ("python {session=s name=two}", script.replace("'script'", "'session'"))]
    page(tmp_path, "p", ("python {name=script}", script), ("python {name=m}", FLAKY.format(folder=str(tmp_path))), *parts)
    result = prove(tmp_path, "-p", "again", *more, "docs")
    assert (tmp_path / "count").read_text() == "xxx"
    assert {name: (tmp_path / name).read_text() for name in ("script", "session")} == {"script": "xx", "session": "xx"}
    assert "4 listings: 4 passed, 0 failed" in result.output
    exported = rankbook("ledger", "export", "-", cwd=tmp_path).splitlines()
    ends = Counter((run["node_id"].rpartition("::")[2], run["outcome"]) for line in exported if "node_id" in (run := json.loads(line)))
    twice = {("script", "failed"): 1, ("script", "passed"): 1, ("two", "failed"): 1, ("two", "passed"): 1}
    assert ends == {**twice, ("test_flaky", "failed"): 2, ("test_flaky", "passed"): 1, ("test_fine", "passed"): 1, ("one", "passed"): 1}


def test_the_command_of_a_page_ends_as_its_tests_do_at_last(tmp_path):
    """Where a plugin lets it run again, so do the tests that failed, and not the others; in the end all of it has passed."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "again.py").write_text(AGAIN)
    fine = f"    with pathlib.Path({str(tmp_path)!r}, 'fine').open('a') as stream:\n        stream.write('x')\n"
    flaky = FLAKY.format(folder=str(tmp_path)).replace("def test_fine():\n    pass\n", f"def test_fine():\n{fine}")
    (tmp_path / "tests/test_flaky.py").write_text(flaky)
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["tests"]\nout = "docs"\n')
    rankbook("gen", cwd=tmp_path)
    result = prove(tmp_path, "-p", "again", "docs")
    assert (tmp_path / "count").read_text() == "xxx"
    assert (tmp_path / "fine").read_text() == "x"
    assert {name: str(run.outcome) for name, run in ledger(tmp_path).items()} == {
        "how-to-run-it": "passed",
        "test_flaky": "passed",
        "test_fine": "passed",
    }
    assert "2 listings: 2 passed, 0 failed" in result.output


ROOT_CONFTEST = """
import os
import pytest

@pytest.fixture
def one():
    return "root"

@pytest.fixture
def two():
    return "root"

@pytest.fixture(autouse=True)
def always():
    os.environ["ALWAYS"] = "set"
    yield
    del os.environ["ALWAYS"]
"""
DOCS_CONFTEST = """
import pytest

@pytest.fixture
def two(one):
    return f"{one} docs"

def pytest_generate_tests(metafunc):
    if "number" in metafunc.fixturenames:
        metafunc.parametrize("number", [1, 2])

def pytest_addoption(parser):
    parser.addoption("--word", default="none")

@pytest.fixture
def word(pytestconfig):
    return pytestconfig.getoption("--word")
"""
TAKES = """
import os

def test_number(number):
    assert number

def test_nearest(two):
    assert two == "root docs"

def test_always():
    assert os.environ["ALWAYS"] == "set"

def test_word(word):
    assert word == "given"

def test_none(nothing):
    pass
"""


def test_a_module_on_a_page_that_people_wrote_has_the_fixtures_of_its_folders(tmp_path):
    """The conftest files from the root down to the page count, the nearest first, and a run proves nothing once one has changed."""
    page(tmp_path, "p", ("python {name=m}", TAKES))
    (tmp_path / "above.md").write_text("# Above\n\n```python {name=above}\ndef test_above(one): pass\n```\n")
    (tmp_path / "conftest.py").write_text(ROOT_CONFTEST)
    (tmp_path / "docs/conftest.py").write_text(DOCS_CONFTEST)
    result = prove(tmp_path, "--word=given", "docs", "above.md")
    names = {name.rpartition("::")[2]: outcome for name, outcome in result.outcomes().items()}
    fine = ("test_number[1]", "test_number[2]", "test_nearest", "test_always", "test_word")
    assert names == {"test_none": "failed"} | dict.fromkeys((*fine, "test_above"), "passed")
    assert ledger(tmp_path)["test_none"].reason == "fixture 'nothing' not found"
    assert {"conftest.py", "docs/conftest.py"} <= ledger(tmp_path)["test_nearest"].modules.keys()
    (tmp_path / "docs/conftest.py").write_text(f"{DOCS_CONFTEST}\n")
    assert "5 passed, 1 error, 1 proved earlier" in prove(tmp_path, "--word=given", "--stale", "docs", "above.md").output
    assert "fixture 'two' not found" in prove(tmp_path, "--noconftest", "-k", "nearest", "docs").output


DRAWING = """
import pytest

def pytest_addoption(parser):
    parser.addoption("--randomly-seed", type=int, default=None)

@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    if config.option.randomly_seed is None:
        config.option.randomly_seed = 11

@pytest.fixture
def seed(pytestconfig):
    return pytestconfig.option.randomly_seed
"""


@pytest.mark.parametrize(("given", "seed"), [((), "11"), (("--randomly-seed=7",), "7")])
def test_tests_run_in_the_order_that_is_shown_and_with_the_seed_of_the_run(tmp_path, given, seed):
    """Hooks that put items in another order put the tests in it, too; what a plugin has drawn for the run holds for them."""
    log = f"open({str(tmp_path / 'log')!r}, 'a').write"
    tests = "".join(f"def test_{letter}(seed):\n    {log}('{letter}' + str(seed) + ' ')\n\n\n" for letter in "abcd")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_it.py").write_text(tests)
    (tmp_path / "drawing.py").write_text(DRAWING)
    turn = "def pytest_collection_modifyitems(items):\n    items.reverse()\n"
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/conftest.py").write_text(turn)
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["tests"]\nout = "docs/book"\n')
    rankbook("gen", cwd=tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p drawing\npythonpath = .\n")
    command = [sys.executable, "-m", "pytest", "--doctest-glob=*.md", *given, "docs/book/tests/test_it.py_docs.md"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "log").read_text().split() == [f"{letter}{seed}" for letter in "dcba"]


FORKING = """
import os

import pytest

def pytest_addoption(parser):
    parser.addoption("--forked", action="store_true")

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    if item.config.getvalue("forked"):
        open("forked", "a").write(item.name + " ")
"""


def test_a_plugin_that_forks_each_item_leaves_listings_alone(tmp_path):
    """They run in processes of their own, for which a fork of pytest would wait in vain; other items it forks as ever."""
    page(tmp_path, "p", ("python {name=script}", "assert 1"), ("python {name=tests}", "def test_it():\n    pass\n"))
    (tmp_path / "conftest.py").write_text(FORKING)
    (tmp_path / "docs/test_plain.py").write_text("def test_plain():\n    pass\n")
    assert "3 passed" in prove(tmp_path, "--forked", "docs").output
    assert (tmp_path / "forked").read_text().split() == ["test_plain"]


def test_how_long_an_item_took_is_told_everywhere(tmp_path):
    """The ledger, JUnit and `--durations` have the time of the listing or test itself, not that for which pytest has waited."""
    slow = "import time\ntime.sleep(1)"
    parts = [("python {session=s name=part}", slow), ("python {session=s name=rest}", "x = 1")]
    module = "import time\n\n\ndef test_slow():\n    time.sleep(1)\n\n\ndef test_quick():\n    pass\n"
    page(tmp_path, "p", ("python {name=script}", slow), ("bash {name=shell}", "sleep 1"), *parts, ("python {name=tests}", module))
    prove(tmp_path, "--junitxml=junit.xml", "docs")
    cases = ET.parse(tmp_path / "junit.xml").getroot().iter("testcase")
    told = {case.get("name").rpartition("::")[2]: float(case.get("time")) for case in cases}
    kept = {name: run.duration for name, run in ledger(tmp_path).items()}
    assert told.keys() == kept.keys()
    for name, seconds in told.items():
        assert abs(seconds - kept[name]) < 0.3, name
        assert (seconds > 0.9) == (name in ("script", "shell", "part", "test_slow")), (name, seconds)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 2), *((each, 128 + each) for each in (signal.SIGTERM, signal.SIGHUP))])
def test_what_has_run_ahead_is_recorded(tmp_path, number, status):
    """What ended behind a slow listing is in the ledger when Ctrl-C, or the time limit of a CI job, ends the session, as it ended."""
    nap = f"sleep {300_000 + os.getpid()}"
    touch = "import sys\nopen({!r}, 'w').close()\nsys.exit({})".format
    quick = [(f"python {{name=q{place}}}", touch(str(tmp_path / f"q{place}"), place // 3)) for place in range(4)]
    page(tmp_path, "p", ("bash {name=slow}", nap), *quick, ("python {name=tests}", "def test_one(): pass\ndef test_two(): assert not 1"))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def heeding():
        """Undo what the shell, or `nohup`, that started the tests has passed on."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    command = [sys.executable, "-m", "pytest", "--doctest-glob=*.md", "-p", "no:cacheprovider", "--listing-jobs=4", "docs"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, **streams, preexec_fn=heeding) as under_way:  # noqa: PLW1509 - as above
        end = time.monotonic() + 120
        while not all((tmp_path / f"q{place}").exists() for place in range(4)) and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(2)  # their processes end, and the tests of the module
        under_way.send_signal(number)
        output = under_way.communicate(timeout=60)[0]
    assert under_way.returncode == status, output
    assert "INTERNALERROR" not in output and "Traceback" not in output, output
    assert processes(nap) == 0
    assert {name: str(run.outcome) for name, run in ledger(tmp_path).items()} == {
        **{f"q{place}": "passed" for place in range(3)},
        "q3": "failed",
        "test_one": "passed",
        "test_two": "failed",
    }


def test_what_workers_have_reported_is_recorded_when_the_session_is_told_to_end(tmp_path):
    """Under xdist, too, SIGTERM ends the session in order: what has come to its end is in the ledger, and no process is left."""
    nap = f"sleep {400_000 + os.getpid()}"
    page(tmp_path, "p", ("bash {name=one}", "true"), ("bash {name=slow}", nap))
    page(tmp_path, "q", ("bash {name=two}", "true"), ("bash {name=slower}", nap))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "--doctest-glob=*.md", "-p", "no:cacheprovider", "-v", "-n", "2", "docs"]
    said = tmp_path / "said"
    with said.open("w") as stream:
        under_way = subprocess.Popen(command, cwd=tmp_path, stdout=stream, stderr=subprocess.STDOUT)
    end = time.monotonic() + 120
    while said.read_text().count(" PASSED ") < 2 and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(2)  # the reports of their ends come in
    under_way.terminate()
    assert under_way.wait(timeout=60) == 128 + signal.SIGTERM, said.read_text()
    assert "INTERNALERROR" not in said.read_text() and "Traceback" not in said.read_text()
    end = time.monotonic() + 30
    while processes(nap) and time.monotonic() < end:
        time.sleep(0.1)
    assert processes(nap) == 0
    assert {name: str(run.outcome) for name, run in ledger(tmp_path).items()} == {"one": "passed", "two": "passed"}


PARAMETERS = """
import pytest


@pytest.mark.parametrize("x", [1, 2])
def test_p(x):
    assert x != 2


def test_z():
    assert 0
"""


def test_tests_that_failed_last_are_found_again_with_their_parameters(tmp_path):
    """`--lf`, `--ff`, `--nf` and `--sw` know a test by its parameters, as they do where pytest has collected it by itself."""
    page(tmp_path, "p", ("python", PARAMETERS))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def run(*arguments):
        command = [sys.executable, "-m", "pytest", "--doctest-glob=*.md", "-v", *arguments, "docs"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120).stdout

    assert "1 failed, 1 passed" in run("--sw")
    stepped = run("--sw")
    assert "skipping 1 already passed" in stepped and "test_p[2] FAILED" in stepped and "test_z" not in stepped
    again = run("--lf")
    assert "rerun previous 1 failure" in again
    assert "1 failed, 2 deselected" in again
    first = run("--ff", "--nf")
    assert first.index("test_p[2] FAILED") < first.index("test_p[1] PASSED") < first.index("test_z FAILED")


def test_a_module_that_cannot_be_collected_fails_whatever_is_asked_for(tmp_path):
    """As with pytest's own collection it is an error under `-k` and `-m`, too; who names it in `--deselect` is rid of it."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_r.py").write_text("def test_ranks(): pass\n")
    (tmp_path / "tests/test_broken.py").write_text("import winreg\n\n\ndef test_ranks(): pass\n")
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["tests"]\nout = "docs"\n')
    rankbook("gen", cwd=tmp_path)
    for asked in (("-k", "test_ranks", "-m", "slow"), ("-k", "not test_ranks")):
        result = prove(tmp_path, *asked, "docs")
        assert result.status == 1, result.output
        assert "No module named 'winreg'" in result.output
    left_out = prove(tmp_path, *asked, "--deselect", "docs/tests/test_broken.py_docs.md", "docs")
    assert "winreg" not in left_out.output


def test_what_ranks_print_is_shown_of_a_test_that_passes(tmp_path):
    """With `-rA`, as what the test itself prints is."""
    pytest.importorskip("torch")
    spawns = "import torch.multiprocessing as mp\n\n\ndef work(rank):\n    print('rank', rank, 'speaks')\n\n\n"
    page(tmp_path, "p", ("python {name=spawns}", f"{spawns}def test_ranks():\n    print('parent speaks')\n    mp.spawn(work, nprocs=2)\n"))
    output = prove(tmp_path, "-rA", "docs").output
    assert "1 passed" in output
    assert all(said in output for said in ("parent speaks", "rank 0 speaks", "rank 1 speaks"))


def test_names_with_dots_are_shown_as_they_are(tmp_path):
    """What `-v` prints is a node id that pytest takes, and the head of a failure has the parameters as they were given."""
    listing = "import pytest\n\n\n@pytest.mark.parametrize('q', ['a::b'])\ndef test_q(q): assert 0\n"
    page(tmp_path, "p", ("python {name=run.v2.py}", "x = 1"), ("python {name=tests}", listing))
    output = prove(tmp_path, "-v", "docs").output
    assert "docs/p.md::run.v2.py PASSED" in output
    assert "docs/p.md::tests::test_q[a::b] FAILED" in output
    assert " tests.test_q[a::b] _" in output
    assert prove(tmp_path, "docs/p.md::run.v2.py").output.count("1 passed") >= 1


def test_a_failure_is_shown_with_its_indentation(tmp_path):
    """Its first line stands below the others as it does in pytest's own report."""
    page(tmp_path, "p", ("python", "def test_a():\n    x = 1\n    assert x == 2\n"))
    lines = prove(tmp_path, "docs").output.splitlines()
    place = next(place for place, line in enumerate(lines) if line.endswith("def test_a():"))
    assert lines[place : place + 3] == ["    def test_a():", "        x = 1", ">       assert x == 2"]


def test_an_item_whose_worker_dies_is_named(tmp_path):
    """It has no run in the ledger, which is said: the count of listings knows nothing of it."""
    kills = (
        "import os, signal\n\n\ndef pytest_runtest_setup(item):\n    if item.name == 'two':\n        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    page(tmp_path, "p", *((f"python {{name={name}}}", "1") for name in ("one", "two", "three")))
    (tmp_path / "docs/conftest.py").write_text(kills)
    result = prove(tmp_path, "-n", "2", "--dist=load", "--max-worker-restart=0", "docs")
    assert result.status == 1, result.output
    assert "docs/p.md::two: the worker that ran it is gone, so that the ledger has no run of it" in result.output
    assert "two" not in ledger(tmp_path)


def test_a_failure_that_the_debugger_ends_is_recorded(tmp_path):
    """With `--pdb` pytest comes to no report of the end of a test when its user quits."""
    page(tmp_path, "p", ("python {name=bad}", "assert 1 == 2"), ("python {name=next}", "assert 1"))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "--doctest-glob=*.md", "-p", "no:cacheprovider", "--pdb", "docs"]
    done = subprocess.run(command, cwd=tmp_path, input="q\n", capture_output=True, text=True, check=False)
    assert "INTERNALERROR" not in done.stdout, done.stdout
    assert str(ledger(tmp_path)["bad"].outcome) == "failed"


FAULTS = """
from rankbook.engines.fresh import FreshEngine
from rankbook.errors import EngineError

start = FreshEngine.start

def broken(self, program, *arguments):
    if program.name.endswith("::engine"):
        raise EngineError("no process could be started")
    if program.name.endswith("::bug"):
        raise ZeroDivisionError("a bug")
    return start(self, program, *arguments)

FreshEngine.start = broken
"""


def test_an_engine_that_cannot_start(tmp_path):
    """What goes wrong at the start of a listing costs that listing."""
    page(tmp_path, "p", *((f"bash {{name={name}}}", "true") for name in ("engine", "bug", "fine")))
    (tmp_path / "conftest.py").write_text(FAULTS)
    result = prove(tmp_path, "docs")
    assert ends(result) == {"engine": "failed", "bug": "failed", "fine": "passed"}
    assert "it cannot be started: no process could be started" in said(result)["engine"]
    assert "a bug" in said(result)["bug"]


# GPUs


def test_grants(tmp_path):
    """GPUs are granted to one listing at a time, unless all that have one share it; what needs more than there are is skipped."""
    page(
        tmp_path, "p",
        ("python {gpus=1 name=a}", meets("a", "b")), ("python {gpus=2 name=both}", meets("both")),
        ("python {gpus=1 name=b}", meets("b", "a")),
        ("python {gpus=1 .share name=c}", meets("c", "d", "e")), ("python {gpus=1 .share name=d}", meets("d", "c", "e")),
        ("python {gpus=1 .share name=e}", meets("e", "d", "c")), ("python {gpus=4 name=four}", meets("four")),
        ("python {name=none}", meets("none")),
    )  # fmt: skip
    result, log = meeting(tmp_path, "docs", "--gpus", "2", "--listing-jobs", "8")
    assert Counter(ends(result).values()) == {"passed": 7, "skipped": 1}, result.output
    assert "needs 4 GPUs, and this machine has 2" in said(result)["four"]
    given = {name: gpus for name, _, _, gpus in spans(log)}
    assert sorted([*given["a"], *given["b"]]) == ["0", "1"]
    assert given["both"] == ["0", "1"]
    assert given["none"] == []
    sharing = {"c", "d", "e"}
    assert [pair for pair in clashes(log) if not set(pair) <= sharing] == []


MEETS = """\
import os
import subprocess
import time

import pytest


def log(word, name):
    with open(f"{os.environ['MEET']}/log", "a") as file:
        print(word, name, time.monotonic_ns(), os.environ.get("CU" + "DA_VISIBLE_DEVICES", "unset"), file=file)


def meet(name, *others):
    log("begin", name)
    open(f"{os.environ['MEET']}/{name}", "w").close()
    end = time.monotonic() + 60
    while not all(os.path.exists(f"{os.environ['MEET']}/{other}") for other in others):
        assert time.monotonic() < end
        time.sleep(0.01)
    log("end", name)

"""


def test_grants_to_tests_that_say_nothing(tmp_path):
    """A test that names neither GPUs nor ranks sees all, as under plain pytest: alone where its file speaks of GPUs, else with its like."""
    gen(
        tmp_path,
        test_mixed=MEETS + "@pytest.mark.gpu\ndef test_one():\n    meet('one')\n\ndef test_says_nothing():\n    meet('mixed')\n",
        test_plain=MEETS + "def test_plain():\n    meet('plain', 'other')\n",
        test_other=MEETS + "def test_other():\n    meet('other', 'plain')\n",
        test_on_cpu=MEETS + "class TestCpu:\n    device_type = 'cpu'\n    def test_cpu(self):\n        meet('cpu')\n",
    )
    result, log = meeting(tmp_path, "docs", "--gpus", "2", "--listing-jobs", "4")
    assert set(ends(result).values()) == {"passed"}, result.output
    given = {name: gpus for name, _, _, gpus in spans(log)}
    assert len(given.pop("one")) == 1
    assert given.pop("cpu") == []
    assert given == {name: ["0", "1"] for name in ("mixed", "plain", "other")}
    assert {frozenset(pair) for pair in clashes(log)} == {frozenset(("plain", "other"))}


def test_grants_between_processes(tmp_path):
    """No GPU is used twice by the workers of xdist, nor by two runs on one machine."""
    pytest.importorskip("xdist")
    for name in ("p", "q"):
        names = [f"{name}{place}" for place in range(3)]
        fences = [f"python {{gpus={gpus} name={one}}}" for one, gpus in zip(names, (1, 2, 1), strict=True)]
        page(tmp_path, name, *((fence, f"{meets(one)}time.sleep(0.1)") for fence, one in zip(fences, names, strict=True)))
    (tmp_path / "proof_reporter.py").write_text(REPORTER)
    (tmp_path / "meet-x").mkdir()
    command = [sys.executable, "-m", "pytest", "--doctest-glob=*.md", "-p", "no:cacheprovider", "docs/q.md", "--gpus=2", "-q"]
    names = {"MEET": str(tmp_path / "meet-x"), "TURNS": "1", "RANKBOOK_LEASES": str(tmp_path / "leases")}
    other = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, **names}, stdout=subprocess.PIPE, text=True)
    result, log = meeting(tmp_path, "docs", "--gpus", "2", "-n", "2")
    output, _ = other.communicate(timeout=200)
    assert set(ends(result).values()) == {"passed"}, result.output
    assert other.returncode == 0, output
    theirs = [line.split() for line in (tmp_path / "meet-x" / "log").read_text().splitlines()]
    both = log + [[words[0], f"other-{words[1]}", *words[2:]] for words in theirs]
    assert len(spans(both)) == 9
    assert clashes(both) == []


def test_pytest_inside_a_listing(tmp_path):
    """A pytest that a listing starts leases the GPUs that the listing was granted, without waiting for the listing."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "inner.md").write_text("# I\n\n```bash {gpus=1}\ntrue\n```\n")
    (tmp_path / "inner" / "pytest.ini").write_text("[pytest]\n")
    text = f"cd {tmp_path / 'inner'}\n{sys.executable} -m pytest -q -p no:cacheprovider --gpus 1 inner.md"
    page(tmp_path, "p", ("bash {gpus=1 name=outer}", text))
    result = prove(tmp_path, "docs", "--gpus", "1", "--listing-timeout=60", env={"RANKBOOK_LEASES": str(tmp_path / "leases")})
    assert ends(result) == {"outer": "passed"}, result.output


# The canary


def test_a_canary_that_agrees(marked):
    """A share that ends alike in new interpreters is silent; what is skipped is tried there, too."""
    _, run = marked
    healthy, marks = run("--canary=100%", "-k", "test_runs or test_elsewhere")
    assert healthy.status == 0, healthy.output
    assert Counter(marks) == {"test_runs": 2, "test_elsewhere": 1}


def test_a_canary_that_differs(tmp_path):
    """What ends otherwise in new interpreters makes the session red, and is named."""
    forked = "import sys\n\nassert 'unittest.mock' in getattr(sys, 'modules')"
    page(tmp_path, "odd", ("python {name=odd}", forked), ("python {name=even}", "print(1)"), ('python {skip="no" name=skipped}', "1 / 0"))
    result = prove(tmp_path, "docs/odd.md", "--canary=100%")
    assert ends(result) == {"odd": "passed", "even": "passed", "skipped": "skipped"}
    assert result.status == 1
    assert "docs/odd.md::odd ended as passed, but as failed" in result.output
    assert "even ended" not in result.output and "skipped ended" not in result.output


LATE = """\
import unittest

import pytest
import torch


def ring(backend):
    assert backend == "nccl"


def need_two_gpus():
    if torch.cuda.device_count() < 2:
        pytest.skip("two GPUs")


def test_called_then_skips():
    ring("gloo")
    pytest.skip("the rest needs 2 GPUs")


def test_asserted_then_asks():
    assert torch.cuda.device_count() == -1
    if torch.cuda.device_count() < 2:
        pytest.skip("two GPUs")


def test_assigned_then_imports():
    found = ring("gloo")
    pytest.importorskip("no_such_package")


def test_raised_then_a_helper():
    with pytest.raises(ValueError):
        int("3")
    need_two_gpus()


def test_only_asks():
    count = torch.cuda.device_count()
    print(f"{count} GPUs")
    if not torch.cuda.is_available():
        need_two_gpus()
    need_two_gpus()
    ring("gloo")


class TestLate(unittest.TestCase):
    def test_equal_then_skips(self):
        self.assertEqual(1, 2)
        self.skipTest("the rest")

    def test_subtest_then_skips(self):
        with self.subTest():
            ring("gloo")
        self.skipTest("the rest")

    def test_fine_then_skips(self):
        self.assertEqual(1, 1)
        self.skipTest("the rest")
"""


SKIPPED = """import unittest

import torch


@unittest.skipIf(torch.__version__ >= "1", "too new")
class TestOld(unittest.TestCase):
    @unittest.skipUnless(torch.cuda.device_count() == 1, "one GPU")
    def test_one(self):
        pass

    @unittest.skipUnless(torch.cuda.device_count() == 2, "two GPUs")
    def test_two(self):
        pass

    @unittest.skipUnless(torch.cuda.device_count() == 2, "two GPUs")
    def test_two_more(self):
        pass
"""


OWN = "docs/suite/test_{}.py_docs.md".format


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """Pages of tests that ask torch for GPUs, run once; gives their folder, and what was reported of one of them."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("known")
    gen(folder, test_calls=CALLS, test_late=LATE, test_skipped=SKIPPED)
    result = prove(folder, "docs")
    return folder, lambda name: Result(result.status, result.output, [one for one in result.reports if one["id"].startswith(OWN(name))])


def test_calls_that_fail_without_a_gpu(known):
    """What a test is sure to fail by is not started; what is tried all the same, is red."""
    folder, of = known
    result = of("calls")
    assert ends(result) == {"how-to-run-it": "passed", "test_comes_to_a_gpu": "skipped", "test_does_without": "passed"}, result.output
    assert "needs 1 GPU, and this machine has none" in said(result)["test_comes_to_a_gpu"]
    assert ledger(folder)["test_comes_to_a_gpu"].needs == ("1 GPU",)
    assert "| 1 GPU | `torch.ones(2).cuda()`, which fails without it |" in (folder / OWN("calls")).read_text()
    tried = prove(folder, OWN("calls"), "--no-plan", "-k", "test_comes_to_a_gpu")
    assert (tried.status, ends(tried)["test_comes_to_a_gpu"]) == (1, "failed"), tried.output


def test_a_test_that_may_fail_before_it_skips_is_started(known):
    """Only what skips before anything is tested is known to be skipped; any other ends as it does under plain pytest."""
    folder, of = known
    result = of("late")
    plain = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-p", "no:rankbook", "suite/test_late.py"],
        cwd=folder,
        text=True,
        capture_output=True,
        check=False,
    )
    failed = set(re.findall(r"^(?:SUB)?FAILED.*::(test_\w+)", plain.stdout, re.MULTILINE))
    assert len(failed) == 6, plain.stdout
    found = {name: outcome for name, outcome in ends(result).items() if name != "how-to-run-it"}
    assert found == {name: "failed" if name in failed else "skipped" for name in found}, result.output
    assert len(found) == 8
    assert said(result)["test_only_asks"].endswith("needs 2 GPUs, and this machine has none")


def test_a_page_whose_tests_are_skipped_for_several_reasons(known):
    """The page's own command says each of them, and needs what all of its tests need, not what the first one does."""
    folder, _ = known
    latest = Ledger(folder / ".rankbook" / "ledger.sqlite").latest()
    run = next(run for run in latest if run.node_id == f"{OWN('skipped')}::how-to-run-it")
    none = "and this machine has none"
    assert run.reason == f"its 3 tests are skipped: needs exactly 2 GPUs, {none} (2); needs exactly 1 GPU, {none} (1)"
    assert run.needs == ("library torch < 1",)


def test_calls_that_the_settings_teach(tmp_path):
    """A row for a function of the project counts where a test calls it, from the next run of `gen` on, which reads the sources again."""
    sources = {
        "boot": "def boot():\n    raise RuntimeError('no GPU')\n",
        "test_boots": "from boot import boot\n\n\ndef test_it():\n    boot()\n",
    }
    gen(tmp_path, **sources)
    own = OWN("boots")
    assert ends(prove(tmp_path, own)) == {"how-to-run-it": "failed", "test_it": "failed"}
    (tmp_path / "pyproject.toml").write_text("[tool.rankbook]\nout = 'docs'\n[tool.rankbook.requirements]\n'boot.boot' = { gpus = 2 }\n")
    gen(tmp_path)
    assert "| 2 GPUs | `boot()`, which fails without it |" in (tmp_path / own).read_text()
    result = prove(tmp_path, own, "--canary=100%")
    assert "needs 2 GPUs, and this machine has none" in said(result)["test_it"], result.output
    assert result.status == 0, "the canary finds that it fails, as was foreseen"
    promised = prove(tmp_path, own, "--require", "gpu=2")
    assert (promised.status, ends(promised)["test_it"]) == (1, "failed"), promised.output


# Only what is stale

COUNTED = """\
import os

from helper import value


def mark(name):
    with open(os.environ["MARKS"], "a") as stream:
        print(name, file=stream)


def test_one():
    mark("one")
    assert value == 1


def test_two():
    mark("two")
"""
LOOKS = """\
import os

with open(os.environ["MARKS"], "a") as stream:
    print("looks", file=stream)


class TestNot:
    def __init__(self):
        pass

    def test(self):
        pass


TestNot().test()
"""
BROKEN = "import pytest\n\npytest.skip('not today', allow_module_level=True)\n"


MARKING = "import os\nopen(os.environ['MARKS'], 'a').write('{}\\n')\n"


@pytest.fixture
def stale(tmp_path):
    """A project with tests that import a sibling, and a guide; gives its folder and what runs it under `--stale`."""
    gen(tmp_path, test_counted=COUNTED, helper="value = 1\n", test_broken=BROKEN, test_empty="value = 2\n")
    page(
        tmp_path, "guide",
        ("python {name=plain}", MARKING.format("plain")), ("python {name=prints}", MARKING.format("prints") + "print(1)"),
        ("text {.output}", "1"), ("python {name=first session=s}", "value = 1"),
        ("python {name=second session=s}", "import os\nopen(os.environ['MARKS'], 'a').write('session\\n')\nassert value"),
        ("python {name=looks}", LOOKS),
    )  # fmt: skip

    def run(*arguments):
        marks = tmp_path / "marks"
        marks.write_text("")
        result = prove(tmp_path, "docs", "--stale", *arguments, env={"MARKS": str(marks)})
        return result, sorted(set(marks.read_text().split()))

    return tmp_path, run


def test_only_what_is_stale(stale):
    """Of what is proved nothing runs; what was edited, what imports it, what failed and what was not selected does."""
    folder, run = stale
    partial, ran = run("-k", "test_one or plain")
    assert partial.status == 0, partial.output
    assert ran == ["looks", "one", "plain"]  # what looks like a test module is collected, which runs it
    first, ran = run()
    assert first.status == 0, first.output
    assert {"two", "prints", "session", "looks"} <= set(ran), first.output
    again, ran = run()
    assert ran == []
    assert again.status == 0
    assert set(again.outcomes().values()) == {"skipped"}
    kinds = Counter("proved earlier" if "proved earlier: passed on" in reason else reason for reason in said(again).values())
    assert set(kinds) == {"proved earlier", *(reason for reason in kinds if "not today" in reason)}, kinds
    assert "not today" in "".join(kinds)
    numbers = summary(again)
    assert numbers["passed"] == numbers["failed"] == 0
    assert numbers["proved earlier"] > 0
    assert set(first.outcomes()) == set(again.outcomes())
    # An edited listing, an edited output, an edited part of a session
    guide = folder / "docs" / "guide.md"
    text = guide.read_text()
    changes = {"'plain": "'plain plain", "```text {.output}\n1": "```text {.output}\n2", "value = 1": "value = 0"}
    guide.write_text(functools.reduce(lambda changed, pair: changed.replace(*pair), changes.items(), text))
    edited, ran = run()
    assert ran == ["plain", "prints", "session"]
    assert {name for name, outcome in ends(edited).items() if outcome == "failed"} == {"prints", "second"}
    guide.write_text(text)
    back, ran = run()
    assert {"prints", "session"} <= set(ran) and "one" not in ran and "looks" not in ran
    assert back.status == 0
    # A file that tests import
    helper = next(folder.glob("docs/**/helper.py_docs.md"))
    helper.write_text(helper.read_text().replace("value = 1", "value = 3"))
    imported, ran = run()
    assert "one" in ran and "two" in ran and "plain" not in ran
    assert ends(imported)["test_one"] == "failed"
    failed, ran = run()
    assert ran == ["one"]
    assert ends(failed)["test_two"] == "skipped"


STATE = """\
state = []


def test_first():
    state.append(1)


def test_passes_behind_it():
    assert state == [1]


def test_fails_behind_it():
    assert state == []
"""


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_the_tests_of_a_listing_share_a_process(tmp_path, workers):
    """What a test leaves behind is there for those after it, as under plain pytest, also where xdist deals pages out."""
    pytest.importorskip("xdist")
    page(tmp_path, "p", ("python {name=one}", STATE))
    page(tmp_path, "q", ("python {name=two}", STATE))
    expected = {"test_first": "passed", "test_passes_behind_it": "passed", "test_fails_behind_it": "failed"}
    found = prove(tmp_path, "docs", *workers).outcomes()
    assert found == {f"docs/{place}::{name}": outcome for place in ("p.md::one", "q.md::two") for name, outcome in expected.items()}


def test_stale_under_xdist(stale):
    """The workers of xdist leave out the same."""
    pytest.importorskip("xdist")
    _, run = stale
    _, ran = run("-n", "2")
    assert {"one", "two", "plain"} <= set(ran)
    again, ran = run("-n", "2")
    assert ran == []
    assert "proved earlier" in again.output.splitlines()[-1]


# Debt, expected outputs, counts


def test_debt_makes_a_session_red(marked):
    """`--fail-on-debt` names what has never run, by its need."""
    _, run = marked
    result, _ = run("--fail-on-debt", "-k", "test_two_gpus or test_runs")
    assert result.status == 1
    assert "1 test needs 2 GPUs; last run: never" in result.output, result.output
    paid, _ = run("--fail-on-debt", "-k", "test_runs")
    assert paid.status == 0, paid.output


def test_outputs_are_written_anew(tmp_path):
    """`--update-output` changes the blocks that differ, once, and none of a listing that fails otherwise, be it after its last line."""
    path = page(
        tmp_path, "p",
        ("python {name=right}", "print(1)"), ("text {.output}", "1"), ("python {name=wrong}", "print(2)"), ("text {.output}", "1"),
        ("python {name=fails}", "print(3)\nassert not 3"), ("text {.output}", "1"),
        ("bash {name=leaves}", "echo 4\nsleep 4000 &"), ("text {.output}", "1"),
        ("python {name=dies}", "import atexit, os\n\nprint(5)\natexit.register(os.abort)"), ("text {.output}", "1"),
    )  # fmt: skip
    before = path.read_text()
    others = {"fails": "failed", "leaves": "failed", "dies": "failed"}
    dry = prove(tmp_path, "docs")
    assert ends(dry) == {"right": "passed", "wrong": "failed", **others}
    assert "it left 1 process behind" in dry.output and "-1\n+4" in dry.output
    assert path.read_text() == before
    for workers in ([], ["-n", "2"]):
        path.write_text(before)
        result = prove(tmp_path, "docs", "--update-output", *workers)
        assert ends(result) == {"right": "passed", "wrong": "passed", **others}
        assert "docs/p.md: 1 expected output written" in result.output
        after = path.read_text()
        assert after == before.replace("print(2)\n```\n\n```text {.output}\n1", "print(2)\n```\n\n```text {.output}\n2")
    again = prove(tmp_path, "docs", "--update-output")
    assert path.read_text() == after
    assert "expected output written" not in again.output


def stale_of(folder):
    """Give the numbers of the last line of a run that leaves out what is proved."""
    return prove(folder, "docs", "--stale").output.splitlines()[-1].strip("= ")


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_an_update_is_recorded_for_the_page_as_written(tmp_path, workers):
    """What was written anew proves the new page, for all parts of a session, and nothing of the page before it."""
    path = page(
        tmp_path, "p", ("python {name=one}", "print('a')\nprint('b')"), ("text {.output}", "a"),
        ("python {name=two session=s}", "x = 2"), ("python {name=three session=s}", "print(x)"), ("text {.output}", "1"),
    )  # fmt: skip
    before = path.read_text()
    result = prove(tmp_path, "docs", "--update-output", *workers)
    assert "docs/p.md: 2 expected outputs written" in result.output
    assert {name: (run.outcome, run.line) for name, run in ledger(tmp_path).items()} == {
        "one": ("passed", 3), "two": ("passed", 13), "three": ("passed", 17)
    }  # fmt: skip
    assert stale_of(tmp_path).startswith("3 proved earlier")
    path.write_text(before)
    assert stale_of(tmp_path).startswith("2 failed, 1 passed")


UNWRITABLE = """\
import errno
import tempfile

mkstemp = tempfile.mkstemp


def refuse(suffix=None, prefix=None, dir=None, text=False):
    if prefix == ".rankbook-":
        raise OSError(errno.EROFS, "Read-only file system")
    return mkstemp(suffix, prefix, dir, text)


tempfile.mkstemp = refuse
"""


def test_what_is_not_updated_fails(tmp_path):
    """An output that a snippet brings in, or one of a page that cannot be written, is a failure that says so, in the ledger too."""
    (tmp_path / "mkdocs.yml").write_text("site_name: S\nmarkdown_extensions: [attr_list, pymdownx.superfences, pymdownx.snippets]\n")
    (tmp_path / "out.txt").write_text("1")
    path = page(tmp_path, "p", ("python {name=one}", "print(2)"), ("text {.output}", '--8<-- "out.txt"'))
    before = path.read_text()
    result = prove(tmp_path, "docs", "--update-output")
    told = "it printed another output than the one at line 7, which was not updated: "
    assert f"docs/p.md:8: {told}it stands in a file that a snippet brings in; write it there\n" in said(result)["one"]
    assert (ends(result), ledger(tmp_path)["one"].outcome, path.read_text()) == ({"one": "failed"}, "failed", before)
    path.write_text(before.replace('--8<-- "out.txt"', "1"))
    (tmp_path / "conftest.py").write_text(UNWRITABLE)
    result = prove(tmp_path, "docs", "--update-output")
    assert f"docs/p.md:8: {told}the page cannot be written: Read-only file system\n" in said(result)["one"]
    assert (ends(result), ledger(tmp_path)["one"].outcome) == ({"one": "failed"}, "failed")


def test_a_page_that_is_written_meanwhile_proves_nothing(tmp_path):
    """What could be updated when it was reported, and no more at the end, is a failure of the session and in the ledger."""
    path = page(tmp_path, "p", ("python {name=one}", "print(2)"), ("text {.output}", "1"))
    (tmp_path / "conftest.py").write_text(
        "import pathlib\n\n\ndef pytest_runtest_logfinish():\n"
        f"    page = pathlib.Path({str(path)!r})\n    page.write_text('Words.\\n' + page.read_text())\n"
    )
    result = prove(tmp_path, "docs", "--update-output", "--listings-report=count.json")
    assert "docs/p.md:7: the page has changed since its listings ran" in result.output
    assert (result.status, ledger(tmp_path)["one"].outcome) == (1, "failed")
    assert json.loads((tmp_path / "count.json").read_text())["endings"] == {"failed": 1}


@pytest.mark.parametrize(("target", "said"), [("gone/x.json", "there is no folder {}/gone"), ("docs", "it is a folder")])
def test_a_report_that_cannot_be_written_is_an_error_of_usage(tmp_path, target, said):
    """The count of listings has no place: nothing runs, and the sentence says what is wrong."""
    page(tmp_path, "p", ("bash {name=one}", f"touch {tmp_path}/ran"))
    result = prove(tmp_path, "docs", f"--listings-report={target}")
    assert result.status == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: --listings-report {target}: {said.format(tmp_path)}; name a file that can be written" in result.output
    assert not (tmp_path / "ran").exists()


def test_a_report_that_is_not_written_makes_a_session_red(tmp_path):
    """Where the folder of the report goes while listings run, the session is not green."""
    (tmp_path / "reports").mkdir()
    page(tmp_path, "p", ("bash {name=one}", f"rmdir {tmp_path}/reports"))
    result = prove(tmp_path, "docs", "--listings-report=reports/x.json")
    assert (result.status, ends(result)) == (1, {"one": "passed"})
    assert "the count of listings was not written: " in result.output


@pytest.mark.parametrize("option", ["--setup-only", "--setup-plan"])
def test_what_is_only_set_up_has_not_run(tmp_path, option):
    """A run of pytest that shows what would be set up starts no listing, and records neither a pass nor a failure."""
    path = page(tmp_path, "p", ("python {name=tests}", "def test_bad():\n    assert False"), ("bash {name=shell}", f"touch {tmp_path}/ran"))
    result = prove(tmp_path, "docs", option)
    assert result.status == 0, result.output
    assert f"docs/{path.name}::tests::test_bad" in result.output
    assert summary(result)["not run"] == 2
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / ".rankbook" / "ledger.sqlite").exists() or not ledger(tmp_path)


def test_counts(tmp_path):
    """Each listing is counted once, what is no code too, and none twice for the output below it; JUnit has every item."""
    path = page(
        tmp_path, "p",
        ("python {name=right}", "print(1)"), ("text {.output}", "1"), ("text", "nothing"), ("bash {name=wrong}", "false"),
        ('bash {skip="why not" name=skipped}', "true"), ("python {name=s1 session=s}", "1 / 0"), ("python {name=s2 session=s}", "pass"),
    )  # fmt: skip
    result = prove(tmp_path, "docs", "--junitxml=out.xml", "--listings-report=count.json")
    numbers = summary(result)
    assert numbers.pop("page") == 1
    assert numbers.pop("listing") == path.read_text().count("\n```\n") - 1 == sum(numbers.values()), result.output
    assert numbers == {"passed": 1, "failed": 2, "skipped": 2, "not code": 1}
    assert "2 failed, 1 passed, 1 skipped, 1 not run" in result.output.splitlines()[-1]
    count = json.loads((tmp_path / "count.json").read_text())
    assert count["endings"] == {"passed": 1, "failed": 2, "skipped": 1, "not run": 1}
    suite = next(ET.parse(tmp_path / "out.xml").getroot().iter("testsuite"))
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5", "failures": "2", "errors": "0", "skipped": "2",
    }  # fmt: skip


# What a test costs

RING = """\
import os
import signal

import torch
import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiProcContinuousTest, MultiProcessTestCase


class TestContinuous(MultiProcContinuousTest):
    world_size = 2

    @classmethod
    def backend_str(cls):
        return "gloo"

    def test_a_fails(self):
        assert self.rank == 5

    def test_b_passes(self):
        assert self.world_size == 2

    def test_c_passes(self):
        assert self.world_size == 2


class TestDeath(MultiProcessTestCase):
    world_size = 2

    def setUp(self):
        super().setUp()
        self._spawn_processes()

    def _group(self):
        store = dist.FileStore(self.file_name, self.world_size)
        dist.init_process_group("gloo", store=store, rank=self.rank, world_size=self.world_size)

    def test_dies(self):
        if self.rank == 1:
            os.kill(os.getpid(), signal.SIGSEGV)
        self._group()

    def test_lives(self):
        self._group()
        dist.all_reduce(torch.ones(1))
        dist.destroy_process_group()
"""


@pytest.mark.parametrize("workers", [*in_whole([]), ["-n", "1"]])
def test_what_a_test_costs(tmp_path, workers):
    """A harness that gives up after a failure, and a rank that dies, cost one test each; the reason and the receipt say how."""
    pytest.importorskip("torch.testing._internal.common_distributed")
    gen(tmp_path, test_ring=RING)
    result = prove(tmp_path, "docs", *workers, "-k", "TestContinuous or TestDeath")
    assert ends(result) == {
        "test_a_fails": "failed", "test_b_passes": "passed", "test_c_passes": "passed", "test_dies": "failed", "test_lives": "passed",
    }, result.output  # fmt: skip
    runs = ledger(tmp_path)
    reason = runs["test_dies"].reason
    assert "rank 1 died by SIGSEGV" in reason and " s after its start" in reason and "rank 0 waits in init_process_group" in reason, reason
    assert str(runs["test_dies"].outcome) == "crashed"
    receipt = runs["test_lives"].receipt
    assert [rank.exit_code for rank in receipt.ranks] == [0, 0]
    assert (receipt.world_size, receipt.backend) == (2, "gloo")
