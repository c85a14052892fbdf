"""The bundled suite ends alike through its pages and run directly."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from rankbook.cli import main

ROOT = Path(__file__).parents[1]
SUITE = "tests/distributed"

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def direct(tmp_path_factory) -> dict[str, str]:
    """Outcomes of `pytest tests/distributed`."""
    report = tmp_path_factory.mktemp("direct") / "junit.xml"
    return outcomes(report, SUITE)


@pytest.fixture(scope="module")
def through_pages(tmp_path_factory) -> dict[str, str]:
    """Outcomes of the same tests through their generated pages."""
    folder = tmp_path_factory.mktemp("pages")
    assert main(["gen", SUITE, "--root", str(ROOT), "--out", str(folder / "docs")]) == 0
    return outcomes(folder / "junit.xml", "--doctest-glob=*.md", str(folder / "docs"))


def outcomes(report: Path, *arguments: str) -> dict[str, str]:
    """Run pytest and read `file::test` → outcome from its JUnit file."""
    options = ["-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1", f"--junitxml={report}"]
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert report.exists(), done.stdout
    return dict(_outcome(case) for case in ET.parse(report).iter("testcase"))


def _outcome(case: ET.Element) -> tuple[str, str]:
    """Name a test alike on a page and in its file: file, classes, test."""
    match = re.search(r"distributed\.(\w+)(?:\.py_docs\.md)?(?:\.(.+))?$", case.get("classname", ""))
    kinds = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
    parts = [match[1], match[2]] if match else [case.get("classname", "")]
    return "::".join([*filter(None, parts), case.get("name", "")]), kinds[0] if kinds else "passed"


def test_same_outcomes(direct, through_pages):
    """Test by test, the pages give what pytest gives."""
    assert len(direct) >= 24
    missing = {name: outcome for name, outcome in direct.items() if through_pages.get(name) != outcome}
    assert missing == {}


def test_no_page_fails(through_pages):
    """No listing of the suite's pages fails, the ones that are no tests included."""
    assert {name: outcome for name, outcome in through_pages.items() if outcome in ("failure", "error")} == {}
