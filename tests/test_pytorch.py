"""PyTorch's own distributed tests end alike through their pages and run directly; needs a PyTorch 2.6 source tree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from rankbook.cli import main

TREE = Path(os.environ.get("RANKBOOK_PYTORCH", "/nowhere"))
FOLDER = "test/distributed"
FILES = ["test_store", "test_c10d_pypg", "test_c10d_spawn_gloo", "test_fake_pg", "test_multi_threaded_pg", "test_backends"]

pytestmark = pytest.mark.skipif(not TREE.is_dir(), reason="RANKBOOK_PYTORCH names no PyTorch 2.6 source tree")


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Path:
    """The pages of `test/distributed`."""
    folder = tmp_path_factory.mktemp("pytorch")
    (folder / "pyproject.toml").touch()
    assert main(["gen", FOLDER, "--root", str(TREE), "--out", str(folder / "docs")]) == 0
    return folder


@pytest.fixture(scope="module")
def copied(tmp_path_factory) -> Path:
    """The files alone: beside the tree's own `torch` folder and its conftest, which pytest 9 cannot load, none of them runs."""
    folder = tmp_path_factory.mktemp("direct")
    shutil.copytree(TREE / FOLDER, folder / "distributed")
    return folder / "distributed"


def outcomes(folder: Path, *arguments: str) -> dict[tuple[str, str], str]:
    """Run pytest and give by class and test how each ended."""
    report = folder / "junit.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *arguments]
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, check=False)
    return {key_of(case): ending(case) for case in ET.parse(report).iter("testcase") if case.get("name") != "how-to-run-it"}


def key_of(case: ET.Element) -> tuple[str, str]:
    """Name a test by its class and its name."""
    return case.get("classname", "").rpartition(".")[2], case.get("name", "")


def ending(case: ET.Element) -> str:
    """Give how a test ended."""
    kinds = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
    return kinds[0] if kinds else "passed"


@pytest.mark.parametrize("name", FILES)
def test_same_outcomes(book, copied, name):
    """Every test of the file ends through its page as `pytest FILE` ends it."""
    direct = outcomes(copied, "-p", "no:rankbook", "-c", os.devnull, "--rootdir=.", f"{name}.py")
    assert direct
    assert outcomes(book, f"docs/{FOLDER}/{name}.py_docs.md") == direct


def test_every_listing_is_collected(book):
    """Collection of all pages of the folder ends without an error and leaves no listing out."""
    command = [sys.executable, "-m", "pytest", "--doctest-glob=*.md", "--collect-only", "-q", "--listings-report=tally.json", "docs"]
    done = subprocess.run(command, cwd=book, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    listed = sum(line.lstrip("> ").startswith(("```", "~~~")) for page in (book / "docs").rglob("*_docs.md") for line in opening(page))
    tally = json.loads((book / "tally.json").read_text())
    assert tally["listings"] == listed
    assert tally["not_run"] + tally["not_code"] == tally["listings"] + tally["inside"]


def opening(page: Path) -> list[str]:
    """Give the opening fences of a generated page: those of the page itself, none inside its listings."""
    found, fence = [], ""
    for line in page.read_bytes().decode().replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        mark = line[: len(line) - len(line.lstrip("`"))]
        if not fence and len(mark) >= 3:
            found.append(line)
            fence = mark
        elif fence and line.rstrip() == fence:
            fence = ""
    return found
