"""Pages through pytest: each case is a page with the outcomes that its listings must have, in both engines."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from proving import Result, prove, read_case
from whole import WHOLE

CASES = Path(__file__).parent / "cases" / "proof"
NAMES = sorted(path.stem for path in CASES.glob("*.md"))
NEED_TORCH = {"ranks", "false_green", "unimported"}
ALL = tuple(f"{name}.md" for name in NAMES)
RUN = {
    "local": ALL,
    "fresh": ALL
    if WHOLE
    else (
        "ranks.md::one-rank-fails",
        "scripts.md",
        "semantics.md",
        "sessions.md",
        "shared.md",
    ),
}
"""Pages and listings by engine: what the others show is the work of the harnesses, whatever process they run in, and where torch is
imported new interpreters take many seconds each. Nodes of a cluster, in the tests of faults, show ranks of torch's harness in them."""
SUITE = "docs/suite"
"""Pages about sources, which the session of the engine `local` runs too."""
of_local = pytest.mark.parametrize("session", ["local"], indirect=True)


def runs(engine: str, node: str) -> bool:
    """Whether an engine runs a page, or a listing or test of it."""
    return any(node == run or node.startswith(f"{run}::") or run.startswith(f"{node}::") for run in RUN[engine])


@pytest.fixture(scope="module", params=RUN)
def session(request, tmp_path_factory) -> tuple[Result, Path]:
    """All case pages, and those about sources, run in one session of each engine, and the folder of it."""
    folder = tmp_path_factory.mktemp(f"proof-{request.param}")
    (folder / "docs").mkdir()
    for name in filter(functools.partial(runs, request.param), ALL):
        (folder / "docs" / name).write_text(read_case(CASES / name)[0], encoding="utf-8")
    if request.param == "local":
        write_suite(folder)
    suite = [SUITE] if request.param == "local" else []
    return prove(folder, f"--engine={request.param}", *(f"docs/{run}" for run in RUN[request.param]), *suite), folder


@pytest.fixture
def proved(session) -> Result:
    """What the session reported."""
    return session[0]


@pytest.fixture
def of_suite(proved) -> dict[str, dict]:
    """How all on the pages about sources ended, by node id below their folder."""
    return {name.removeprefix(f"{SUITE}/"): end for name, end in proved.ends().items() if name.startswith(SUITE)}


@pytest.mark.parametrize("name", NAMES)
def test_case(proved, name, request):
    """The listings of a page end as the case says, no more and no fewer, at the line and for the reason that it says."""
    engine = request.node.callspec.params["session"]
    if not runs(engine, f"{name}.md"):
        pytest.skip("another engine shows it; RANKBOOK_WHOLE_SUITE=1 runs it here too")
    if name in NEED_TORCH:
        pytest.importorskip("torch")
    prefix = f"docs/{name}.md::"
    lines = [line for line in read_case(CASES / f"{name}.md")[1] if runs(engine, f"{name}.md::{line.name}")]
    found = {node.removeprefix(prefix): report for node, report in proved.ends().items() if node.startswith(prefix)}
    assert [(line.outcome, line.name) for line in lines] == [(report["outcome"], node) for node, report in found.items()], proved.output[
        -3000:
    ]
    for line in lines:
        report = found[line.name]
        assert line.reason in (report["wasxfail"] or report["text"]), line
        if line.outcome == "failed":
            assert report["text"].startswith(f"docs/{name}.md:{line.line or ''}"), report["text"]


def test_failure_is_told_from_the_page(proved, request):
    """A failing test shows the page's line first, the rewritten assertion with the page's line, and the command that runs it again."""
    if not runs(request.node.callspec.params["session"], "tests.md"):
        pytest.skip("another engine shows it; RANKBOOK_WHOLE_SUITE=1 runs it here too")
    text = proved.ends()["docs/tests.md::functions::test_does_not_hold"]["text"]
    assert text.splitlines()[0] == "docs/tests.md:19: assert 3 == 4"
    assert "docs/tests.md:19: AssertionError" in text
    assert text.splitlines()[-1] == "run it again: pytest --doctest-glob='*.md' docs/tests.md::functions::test_does_not_hold"


def test_each_rank_is_heard(proved):
    """What a rank wrote stands in a section of its own."""
    pytest.importorskip("torch")
    sections = dict(proved.ends()["docs/ranks.md::one-rank-fails"]["sections"])
    for rank in (0, 1):
        lines = sections[f"Captured output of rank {rank}"].splitlines()  # torch may warn that it cannot look up the host's name
        assert f"I am {rank}" in lines
        assert f"I am {1 - rank}" not in lines


@of_local
def test_rewritten_assertion_of_a_rank(proved):
    """An assertion that fails in a rank of torch's harness shows both values."""
    pytest.importorskip("torch")
    report = proved.ends()["docs/false_green.md::harness::TestRuns::test_values_of_a_rank"]
    assert "assert 2.0 == 3" in report["text"]


def test_summary_counts_every_listing(proved, request):
    """The summary's parts add up to the number of listings on the pages."""
    line = next(line for line in proved.output.splitlines() if " listings: " in line)
    words = line.replace(",", "").replace(":", "").split()
    numbers = [int(word) for word in words if word.isdigit()]
    engine = request.node.callspec.params["session"]
    assert numbers[0] == sum(runs(engine, name) for name in ALL) + (len(SOURCES) if engine == "local" else 0)
    assert numbers[1] == sum(numbers[2:])


def command_lines() -> list[str]:
    """Give the command lines of all processes."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip())
    return found


def test_nothing_is_left(proved):
    """No process of any listing outlives the session."""
    assert proved.status == 1
    assert [line for line in command_lines() if line == "sleep 4000"] == []


PAGE = """# Page

## First

```python
def test_one():
    assert True


def test_two():
    assert False
```

## Second

```python
print("second")
```

```text
not code
```
"""


@pytest.fixture
def project(tmp_path):
    """A project with one page."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(PAGE)
    return tmp_path


def test_node_ids(project):
    """A test, a class and a whole listing can each be named alone, with and without the glob."""
    shutil.copy(project / "docs" / "page.md", project / "docs" / "other.md")
    named = prove(project, "docs/page.md::first::test_one", "docs/other.md::first")
    assert named.outcomes() == {
        "docs/page.md::first::test_one": "passed",
        "docs/other.md::first::test_one": "passed",
        "docs/other.md::first::test_two": "failed",
    }
    (project / "pytest.ini").write_text("[pytest]\n")
    plain = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "docs/page.md::second"], cwd=project, capture_output=True, text=True, check=False
    )
    assert "1 passed" in plain.stdout, plain.stdout + plain.stderr


def test_a_folder_without_the_glob_stays_as_it_is(project):
    """Without `--doctest-glob` and unnamed, a page is no test: pytest's own habit."""
    done = subprocess.run([sys.executable, "-m", "pytest", "docs"], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 5


def test_text_doctests_stay(project):
    """A `.txt` doctest beside the pages is pytest's own, and no page is collected twice; one that is not UTF-8 is a failure, no error."""
    (project / "docs" / "session.txt").write_text(">>> 1 + 1\n2\n")
    (project / "docs" / "session.md").write_text("# S\n\n```pycon\n>>> 1 + 1\n2\n```\n")
    (project / "docs" / "page.md").write_bytes(b"# P\n\xff\n")
    result = prove(project, "--doctest-glob=*.txt", "docs/session.txt", "docs/session.md", "docs/page.md")
    ends = list(result.outcomes().items())
    assert ends[:2] == [("docs/session.txt::session.txt", "passed"), ("docs/session.md::s", "passed")]
    assert [outcome for _, outcome in ends[2:]] == ["failed"]
    assert "page.md" in result.output


def test_selection(project):
    """`-k` and `-m`, by the marks of the inner tests, act on the items as on any test."""
    page = "# M\n\n```python\nimport pytest\n\n\n@pytest.mark.slow\nclass TestSlow:\n    def test_a(self):\n        pass\n\n"
    page += "    def test_b(self):\n        pass\n\n\ndef test_a():\n    pass\n```\n"
    (project / "docs" / "page.md").write_text(page)
    assert prove(project, "-k", "test_a", "-m", "slow", "docs").outcomes() == {"docs/page.md::m::TestSlow::test_a": "passed"}


def test_stop_and_last_failed(project):
    """`-x` ends the run where something fails, JUnit names that with its message, and `--lf` runs it again."""
    options = ["docs", "-p", "cacheprovider"]
    stopped = prove(project, "-x", *options, "--junitxml=out.xml")
    assert stopped.outcomes() == {"docs/page.md::first::test_one": "passed", "docs/page.md::first::test_two": "failed"}
    assert "1 not run" in stopped.output
    text = (project / "out.xml").read_text()
    assert 'name="test_two"' in text
    assert 'message="assert False"' in text
    assert prove(project, *options, "--lf").outcomes() == {"docs/page.md::first::test_two": "failed"}


def test_pages_by_their_names_are_collected_once_each(project):
    """Pages that are named one by one cost what their folder costs: pytest asks for the nodes of the whole folder again at each name."""
    (project / "docs" / "page.md").unlink()
    names, imports = [f"docs/{name}.md" for name in "abc"], project / "imports.txt"
    for name in names:
        module = f"with open({str(imports)!r}, 'a') as file:\n    file.write('{name}\\n')\n\n\ndef test_it():\n    pass\n"
        (project / name).write_text(f"# P\n\n```python\n{module}```\n")
    counted = []
    for arguments in (["docs"], names[::-1], ["--keep-duplicates", *names, *names]):
        imports.write_text("")
        assert prove(project, *arguments).outcomes() == {f"{name}::p::test_it": "passed" for name in names}
        counted.append(sorted(imports.read_text().split()))
    assert counted == [counted[0]] * 3
    assert sorted(set(counted[0])) == names


def test_collect_only(project):
    """`--collect-only` lists the items and runs none."""
    result = prove(project, "docs", "--collect-only", "-q")
    assert "docs/page.md::first::test_two" in result.output
    assert result.reports == []


@pytest.mark.parametrize("options", [["-n", "2"], ["-n", "2", "--dist", "loadgroup"]])
def test_xdist(project, options):
    """Under xdist the same items end alike, and the summary counts each listing once."""
    pytest.importorskip("xdist")
    result = prove(project, "docs", *options)
    expected = {"docs/page.md::first::test_one": "passed", "docs/page.md::first::test_two": "failed", "docs/page.md::second": "passed"}
    assert result.outcomes() == expected
    assert "1 page, 3 listings: 1 passed, 1 failed, 0 skipped, 1 not code" in result.output


def test_settings_are_checked(project):
    """A wrong setting stops pytest with one sentence."""
    (project / "pyproject.toml").write_text("[tool.rankbook]\nengin = 'local'\n")
    result = prove(project, "docs")
    assert result.status == 4
    assert "unknown setting 'engin'" in result.output


GENERATED = """---
title: "test_child.py"
rankbook:
  page: "file"
  source: "suite/{name}"
  size: {size}
  sha256: "{digest}"
  encoding: "utf-8"
  bom: false
  newline: "lf"
  final-newline: true
---
# {name}

## How to run it

```bash
{command}
```

## Original Source

```python {{#source linenums="1"}}
{text}```
"""


def generated(folder: Path, name: str, text: str, command: str = "") -> None:
    """Write a page about a source as a generator would."""
    import hashlib

    page = GENERATED.format(
        name=name,
        size=len(text),
        digest=hashlib.sha256(text.encode()).hexdigest(),
        text=text,
        command=command or f"pytest suite/{name}",
    )
    (folder / "suite").mkdir(exist_ok=True)
    (folder / "suite" / f"{name}_docs.md").write_text(page)


CHILD = "from common_base import Base\n\n\nclass TestChild(Base):\n    value = 2\n"
BASE = "import unittest\n\n\nclass Base(unittest.TestCase):\n    value = 1\n\n    def test_value(self):\n        assert self.value == 2\n"


ESCAPE = "import test_other\n\n\ndef test_escape():\n    assert test_other.DIGIT == '\\d'\n"
OTHER = "DIGIT = '\\d'\n\n\ndef test_digit():\n    assert DIGIT\n"
COUNT = "import pathlib\n\n\ndef test_count():\n    with pathlib.Path({!r}).open('a') as stream:\n        stream.write('x')\n"
TRAIN = 'import os\n\nif __name__ == "__main__":\n    assert os.environ["WORLD_SIZE"] == "2"\n'
SOURCES = {
    "test_child.py": CHILD,
    "common_base.py": BASE,
    "test_lonely.py": CHILD.replace("common_base", "gone_base"),
    "test_base.py": BASE,
    "guarded.py": f"{BASE}\n\nif __name__ == '__main__':\n    unittest.main()\n",
    "test_escape.py": ESCAPE,
    "test_other.py": OTHER,
    "test_count.py": COUNT,
    "train.py": TRAIN,
}
COMMANDS = {
    "test_base.py": "python suite/test_base.py",
    "guarded.py": "python suite/guarded.py",
    "train.py": "torchrun --nproc-per-node=2 suite/train.py",
}


def write_suite(folder: Path) -> None:
    """Write pages about sources."""
    for name, text in SOURCES.items():
        generated(folder / "docs", name, text.format(str(folder / "count")) if text is COUNT else text, COMMANDS.get(name, ""))


@of_local
def test_siblings_come_from_their_pages(of_suite):
    """A listing imports a sibling from that sibling's page, and its tests stand directly below the page."""
    page = "test_child.py_docs.md::"
    assert {name.removeprefix(page): end["outcome"] for name, end in of_suite.items() if name.startswith(page)} == {
        "how-to-run-it": "failed",
        "Base::test_value": "failed",
        "TestChild::test_value": "passed",
    }


@of_local
def test_missing_sibling_is_named(of_suite):
    """An import that no page answers says which page is missing."""
    text = of_suite["test_lonely.py_docs.md::test_lonely.py"]["text"]
    assert "No module named 'gone_base'; no page shows suite/gone_base.py" in text


def test_source_path(project):
    """With --source-path the tree answers an import that no page does, and has a script that a test names by its path from there."""
    text = (
        "import pathlib, runpy\n\n\ndef test_script():\n"
        '    found = runpy.run_path(str(pathlib.Path(__file__).parent / "bin/script.py"))\n    assert found["VALUE"] == 3\n'
    )
    generated(project / "docs", "test_child.py", CHILD)
    generated(project / "docs", "test_runs.py", text)
    (project / "tree" / "suite" / "bin").mkdir(parents=True)
    (project / "tree" / "suite" / "common_base.py").write_text(BASE)
    (project / "tree" / "suite" / "bin" / "script.py").write_text("VALUE = 3\n")
    found = prove(project, "docs/suite", "--source-path=tree", "-k", "TestChild or test_script")
    assert list(found.outcomes().values()) == ["passed"] * 2, found.output


@of_local
def test_what_python_warns_of_in_a_source_is_told_by_who_runs_it(proved, of_suite):
    """A source with a wrong escape is looked at in silence: nothing is told of a file without a name."""
    assert {of_suite[f"test_{name}.py_docs.md::test_{test}"]["outcome"] for name, test in (("escape", "escape"), ("other", "digit"))} == {
        "passed"
    }
    assert "<unknown>" not in proved.output


@of_local
def test_the_pages_own_command_is_no_second_run(session, of_suite):
    """A bash listing that runs the page's source is that run: what the source does happens once."""
    assert [end["outcome"] for name, end in of_suite.items() if name.startswith("test_count.py")] == ["passed"] * 2
    assert (session[1] / "count").read_text() == "x"


@of_local
def test_a_command_that_runs_other_tests_is_a_run_of_its_own(of_suite):
    """Pytest runs the tests of a file whatever its name, `python` those of one that has them run."""
    pages = ("common_base", "test_base", "guarded")
    assert {name: end["outcome"] for name, end in of_suite.items() if name.startswith(pages)} == {
        "common_base.py_docs.md::how-to-run-it": "failed",
        "common_base.py_docs.md::common_base.py": "passed",
        "test_base.py_docs.md::how-to-run-it": "passed",
        "test_base.py_docs.md::Base::test_value": "failed",
        "guarded.py_docs.md::how-to-run-it": "failed",
        "guarded.py_docs.md::Base::test_value": "failed",
    }
    assert "exit status 1: pytest suite/common_base.py" in of_suite["common_base.py_docs.md::how-to-run-it"]["text"]
    assert "the same run as docs/suite/guarded.py_docs.md" in of_suite["guarded.py_docs.md::how-to-run-it"]["text"]


@of_local
def test_torchrun_command_gives_the_ranks(of_suite):
    """A script whose page says `torchrun --nproc-per-node=2` runs on two ranks."""
    pytest.importorskip("torch")
    assert [end["outcome"] for name, end in of_suite.items() if name.startswith("train.py")] == ["passed"] * 2


@of_local
def test_ledger_remembers(session):
    """Every outcome is recorded with its hardware, and the last one of an item is given back."""
    from rankbook.ledger import Ledger

    prove(session[1], f"{SUITE}/test_child.py_docs.md")
    runs = Ledger(session[1] / ".rankbook" / "ledger.sqlite").last("suite/test_child.py")
    assert [(run.node_id.partition("::")[2], str(run.outcome)) for run in runs] == [
        ("Base::test_value", "failed"),
        ("TestChild::test_value", "passed"),
    ]
    assert all(run.machine and run.when and run.engine == "local" for run in runs)


MARKS = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if item.nodeid.endswith("test_one"):
            item.add_marker(pytest.mark.skip(reason="not today"))
        elif item.nodeid.endswith("test_two"):
            item.add_marker(pytest.mark.xfail(reason="known"))
"""


def test_marks_of_a_conftest_file_hold(project):
    """What the user's own conftest file skips or expects to fail ends so everywhere; what is skipped is not run."""
    from rankbook.ledger import Ledger

    page = PAGE.replace("    assert True\n", "    open(r'{}', 'w').close()\n".format(project / "trace"))
    (project / "docs" / "page.md").write_text(page)
    (project / "conftest.py").write_text(MARKS)
    result = prove(project, "docs/page.md::first")
    assert result.status == 0
    assert "1 page, 3 listings: 0 passed, 0 failed, 1 skipped, 1 not code, 1 not run" in result.output
    runs = Ledger(project / ".rankbook" / "ledger.sqlite").last_by_page("docs/page.md")
    assert [(str(run.outcome), run.reason) for run in runs] == [("skipped", "not today"), ("skipped", "expected to fail: known")]
    assert not (project / "trace").exists()


def test_ledger_that_cannot_be_written(project):
    """Outcomes stand, and their status, when the ledger cannot be written; one line says so."""
    (project / ".rankbook").write_text("in the way")
    result = prove(project, "docs/page.md::second")
    assert result.status == 0
    assert "the ledger was not written: " in result.output
    assert "1 passed" in result.output


def test_command_from_a_folder_below(project):
    """The command that runs a failure again holds where pytest was started, not at the root of the project."""
    (project / "docs" / "sub").mkdir()
    (project / "docs" / "sub" / "page.md").write_text(PAGE)
    (project / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "sub/page.md::first::test_two"]
    done = subprocess.run(command, cwd=project / "docs", capture_output=True, text=True, check=False)
    assert "docs/sub/page.md:11: assert False" in done.stdout
    assert "run it again: pytest --doctest-glob='*.md' sub/page.md::first::test_two" in done.stdout


def test_broken_conftest_of_the_tree(project):
    """A module whose own conftest file breaks pytest is a failure, not one without tests; what pytest says last is the reason."""
    from rankbook.ledger import Ledger

    generated(project / "docs", "conftest.py", "import json.nowhere_at_all\n")
    generated(project / "docs", "test_x.py", "def test_one():\n    pass\n")
    result = prove(project, "docs/suite/test_x.py_docs.md")
    assert set(result.outcomes().values()) == {"failed"}
    assert "nowhere_at_all" in result.output
    reasons = {run.reason for run in Ledger(project / ".rankbook/ledger.sqlite").last_by_page("docs/suite/test_x.py_docs.md")}
    said = "its pytest ended with status 4 while it was being collected: ModuleNotFoundError: No module named 'json.nowhere_at_all'"
    assert {reason.removeprefix("the same run as docs/suite/test_x.py_docs.md: ") for reason in reasons} == {said}


def test_a_selection_of_tests_is_not_the_run_of_all(project):
    """The command that runs a whole file has not passed where only some of its tests are selected; one that fails is enough to fail."""
    pages = {name: f"docs/suite/test_{name}.py_docs.md" for name in "xyz"}
    for name in pages:
        generated(project / "docs", f"test_{name}.py", "def test_one():\n    pass\n\n\ndef test_two():\n    assert False\n")
    left_out = [f"{pages['x']}::test_two", f"{pages['y']}::test_one", f"{pages['z']}::test_one", f"{pages['z']}::test_two"]
    result = prove(project, "docs/suite", *(f"--deselect={name}" for name in left_out))
    assert result.outcomes() == {
        f"{pages['x']}::how-to-run-it": "skipped",
        f"{pages['x']}::test_one": "passed",
        f"{pages['y']}::how-to-run-it": "failed",
        f"{pages['y']}::test_two": "failed",
        f"{pages['z']}::how-to-run-it": "failed",
    }
    assert f"of the 2 tests of {pages['x']} only 1 is run" in result.output


AGAIN = """
import pytest
from _pytest.runner import runtestprotocol


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for attempt in range(3):
        item._initrequest()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        failed = next((report for report in reports if report.failed), None)
        if failed is not None and attempt < 2:
            failed.outcome = "rerun"
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        if failed is None:
            break
    return True
"""
ATTEMPTS = """
import pytest

seen = {"call": 0, "setup": 0, "teardown": 0, "then": 0}


@pytest.fixture
def slow_start():
    seen["setup"] += 1
    assert seen["setup"] == 2


@pytest.fixture
def slow_end():
    yield
    seen["teardown"] += 1
    assert seen["teardown"] > 1


def test_never():
    assert False


def test_at_last():
    seen["call"] += 1
    assert seen["call"] == 3


def test_setup(slow_start):
    pass


def test_teardown(slow_end):
    pass


def test_only_before(slow_end):
    seen["then"] += 1
    seen["teardown"] = seen["then"] - 1
    assert seen["then"] < 2
"""


def test_attempts_that_a_plugin_makes_again(project):
    """A test that a plugin runs again ends as its last attempt does, whichever phase an earlier one failed in."""
    from rankbook.ledger import Ledger

    generated(project / "docs", "conftest.py", AGAIN)
    generated(project / "docs", "test_x.py", ATTEMPTS)
    result = prove(project, "docs/suite/test_x.py_docs.md")
    assert "not a valid Outcome" not in result.output
    ends = {run.node_id.rpartition("::")[2]: str(run.outcome) for run in Ledger(project / ".rankbook/ledger.sqlite").latest()}
    expected = {"never": "failed", "at_last": "passed", "setup": "passed", "teardown": "passed", "only_before": "failed"}
    assert {name: ends[f"test_{name}"] for name in expected} == expected, result.output


def test_interrupted(project):
    """Ctrl-C ends what runs at once, and what has ended is in the ledger."""
    from rankbook.ledger import Ledger

    nap = f"sleep {100_000 + os.getpid()}"
    shell = f"touch {project / 'started'}\n{nap}\n"
    (project / "docs" / "page.md").write_text(f"# P\n\n```python\nprint(1)\n```\n\n## Q\n\n```bash\n{shell}```\n")
    command = [sys.executable, "-m", "pytest", "--doctest-glob=*.md", "-p", "no:cacheprovider", "--listing-jobs=1", "docs"]
    (project / "pytest.ini").write_text("[pytest]\n")
    # A shell in the background starts its commands with SIGINT ignored; a terminal does not.
    heeding = functools.partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    options = {"cwd": project, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    under_way = subprocess.Popen(command, **options, preexec_fn=heeding)  # noqa: PLW1509 - this process has no other thread
    end = time.monotonic() + 60
    while not (project / "started").exists() and time.monotonic() < end:
        time.sleep(0.05)
    under_way.send_signal(signal.SIGINT)
    output, _ = under_way.communicate(timeout=60)
    assert under_way.returncode == 2, output
    assert [run.node_id for run in Ledger(project / ".rankbook" / "ledger.sqlite").last_by_page("docs/page.md")] == ["docs/page.md::p"]
    assert [line for line in command_lines() if line == nap] == []


@pytest.fixture(autouse=True)
def _tidy(tmp_path):
    yield
    shutil.rmtree(tmp_path, ignore_errors=True)
