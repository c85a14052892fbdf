"""The bundled suite ends alike through its pages and run directly, and as rankbook says that it will.

A file of each kind is run, each way of starting ranks and of skipping among them; all files with `RANKBOOK_WHOLE_SUITE=1`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from rankbook import model
from rankbook.analyse import analyse
from rankbook.cli import main
from rankbook.machine import facts
from rankbook.sources import parse
from rankbook.sources.packages import INSTALLED, Packages, package_folders
from rankbook.verdict import verdict
from whole import WHOLE

ROOT = Path(__file__).parents[1]
SUITE = "tests/distributed"
KINDS = (
    "all_reduce", "cuda_array_interface", "dtensor", "elastic_launch", "p2p_ipc", "reduction_nccl", "spawn", "threaded_ranks",
)  # fmt: skip
RUN = ["test_*.py"] if WHOLE else [f"test_{kind}.py" for kind in KINDS]
"""Files that are run."""
ALIKE = (
    "test_dtensor.py::DTensorTest::test_product_of_shards",
    "test_elastic_launch.py::test_failed_rank_is_named",
    "test_spawn.py::test_failure_of_one_rank_is_raised",
    "test_spawn.py::test_gloo[MIN",
    "test_spawn.py::test_gloo_with_more_ranks_than_cores_of_a_small_machine",
)
"""Tests that are run through their pages alone: their files have another one that starts ranks as they do, and each rank that is a new
interpreter takes many seconds."""

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def direct(tmp_path_factory) -> dict[str, str]:
    """Outcomes of `pytest tests/distributed/...`."""
    report = tmp_path_factory.mktemp("direct") / "junit.xml"
    left_out = [] if WHOLE else [f"--deselect={SUITE}/{name}" for name in ALIKE]
    return outcomes(report, *(str(path) for name in RUN for path in (ROOT / SUITE).glob(name)), *left_out)


@pytest.fixture(scope="module")
def through_pages(tmp_path_factory) -> dict[str, str]:
    """Outcomes of the same tests through their generated pages."""
    folder = tmp_path_factory.mktemp("pages")
    assert main(["gen", SUITE, "--root", str(ROOT), "--out", str(folder / "docs")]) == 0
    pages = [*(f"{name}_docs.md" for name in RUN), "common_*.py_docs.md", "conftest.py_docs.md", "train_torchrun.py_docs.md", "README.md"]
    assert all(list((folder / "docs").rglob(page)) for page in pages[:-1])
    return outcomes(folder / "junit.xml", "--doctest-glob=*.md", *(str(path) for page in pages for path in (folder / "docs").rglob(page)))


@pytest.fixture(scope="module")
def inventory() -> dict[str, model.Test]:
    """The suite's tests as rankbook reads them."""
    paths = sorted((ROOT / SUITE).rglob("*.py"))
    packages = Packages(package_folders(ROOT, (INSTALLED,)))
    project = analyse([parse(ROOT, path.relative_to(ROOT).as_posix()) for path in paths], packages)
    return {f"{Path(path).stem}::{test.id}": test for path, tests in project.tests.items() for test in tests}


@pytest.fixture(scope="module")
def collected() -> list[str]:
    """What pytest collects of the whole suite, `file::test`."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", SUITE]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    found = re.findall(r"^\S+?(\w+)\.py(::.+)$", done.stdout, re.MULTILINE)
    assert done.returncode == 0, done.stdout
    return ["".join(parts) for parts in found]


def outcomes(report: Path, *arguments: str) -> dict[str, str]:
    """Run pytest and read `file::test` → outcome from its JUnit file."""
    options = ["-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1", f"--junitxml={report}"]
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert report.exists(), done.stdout
    return dict(_outcome(case) for case in ET.parse(report).iter("testcase"))


def _outcome(case: ET.Element) -> tuple[str, str]:
    """Name a test alike on a page and in its file: file, classes, test."""
    match = re.search(r"(?:^|\.)(\w+)(?:\.py_docs\.md)?(?:\.([A-Z]\w+))?$", case.get("classname", ""))
    kinds = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
    parts = [match[1], match[2]] if match else [case.get("classname", "")]
    return "::".join([*filter(None, parts), case.get("name", "")]), kinds[0] if kinds else "passed"


def test_same_outcomes(direct, through_pages):
    """Test by test, the pages give what pytest gives."""
    assert len(direct) >= 17
    missing = {name: outcome for name, outcome in direct.items() if through_pages.get(name) != outcome}
    assert missing == {}


def test_no_page_fails(through_pages):
    """No listing of the suite's pages fails, the ones that are no tests included."""
    assert {name: outcome for name, outcome in through_pages.items() if outcome in ("failure", "error")} == {}


def test_static_inventory(collected, inventory):
    """What rankbook reads is what pytest collects, in number and in name."""
    assert len(collected) >= 60
    assert sorted(inventory) == sorted(collected)
    assert [name for name, test in inventory.items() if test.family] == []


def test_static_verdicts(direct, inventory):
    """What rankbook says of each test on this machine is what becomes of it."""
    said = {name: verdict(test.requirements, facts()).word for name, test in inventory.items() if name in direct}
    really = {name: "skipped" if outcome == "skipped" else "runs" for name, outcome in direct.items()}
    assert said == really
    assert "runs" in said.values()
