"""A module that is not imported for want of hardware is skipped where none of its tests could run; one that is wrong is red anywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rankbook.ledger import Ledger

SETTINGS = "[tool.rankbook]\nsources = ['tests']\ngpus = '0'\n"
TESTS = """

@skip_if_lt_x_gpu(2)
def test_two():
    pass


@skip_if_lt_x_gpu(4)
def test_four():
    pass
"""
HEAD = "import torch\nfrom torch.testing._internal.common_distributed import skip_if_lt_x_gpu\n\n"
LACKING = {
    "package": "import only_where_there_are_gpus",
    "library": "import ctypes\n\nctypes.CDLL('libonly_where_there_are_gpus.so')",
    "promise": "assert torch.cuda.device_count() > 10**6",
    "own": "raise RuntimeError('no CUDA driver')",
}
WRONG = {
    "name": "undefined_name",
    "syntax": "def broken(:",
    "attribute": "torch.cuda.there_is_no_such_function()",
    "import": "from torch.cuda import there_is_no_such_name",
    "sibling": "import tests.there_is_no_such_module",
    "shape": "torch.ones(2) + torch.ones(3)",
    "file": "open('there_is_no_such_file')",
    "driver": "open('driver_of_the_test.yaml')",
    "any": f"{LACKING['package']}\n\n\ndef test_anywhere():\n    pass",
}


def outcomes(folder: Path, *options: str) -> dict[str, tuple[str, str]]:
    """Prove the modules of a project; gives how each test ended, with the reason, and how each module did that has none."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--doctest-glob=*.md",
        "-p",
        "no:cacheprovider",
        *(options if "/" in options[0] else ("docs", *options)),
    ]
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=False)
    runs = Ledger(folder / ".rankbook/ledger.sqlite").latest()
    names = [
        f"{Path(found.source).name}::{found.case['id']}" if "id" in found.case else found.node_id.rpartition("::")[2] for found in runs
    ]
    return {name: (str(found.outcome), found.reason) for name, found in zip(names, runs, strict=True)}


@pytest.fixture
def project(tmp_path):
    """Write a project with a module for each way to fail, and generate its book."""
    for name, line in (LACKING | WRONG).items():
        (tmp_path / "tests").mkdir(exist_ok=True)
        (tmp_path / f"tests/test_{name}.py").write_text(f"{HEAD}{line}\n{TESTS}")
    (tmp_path / "tests/__init__.py").touch()
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    subprocess.run([sys.executable, "-m", "rankbook.cli", "gen"], cwd=tmp_path, stdout=subprocess.DEVNULL, check=True)
    return tmp_path


def test_what_is_lacking_is_told_and_what_is_wrong_is_red(project):
    """A missing package, library or device is skipped with what the tests need and the error; any other error fails the module."""
    found = outcomes(project, "-k", "not how")
    assert {name for name, (outcome, _) in found.items() if outcome == "failed"} == {f"test_{name}.py" for name in WRONG}
    needs = "none of its tests can run here: needs 2 GPUs, and this machine has none; needs 4 GPUs, and this machine has none; "
    assert {name for name in found if "::" in name} == {f"test_{name}.py::{test}" for name in LACKING for test in ("test_two", "test_four")}
    errors = {name: found[f"test_{name}.py::test_two"][1].removeprefix(f"{needs}and its import failed: ") for name in LACKING}
    assert errors["package"] == "ModuleNotFoundError: No module named 'only_where_there_are_gpus'"
    assert errors["library"].startswith("OSError: libonly_where_there_are_gpus.so: ")
    assert errors["promise"].startswith("AssertionError: assert ")
    assert errors["own"] == "RuntimeError: no CUDA driver"


@pytest.mark.parametrize("option", ["--no-plan", "--require=gpu=4"])
def test_what_is_promised_or_tried_is_red(project, option):
    """With `--no-plan`, and where the machine was promised to have what the tests need, the module fails, and the command that runs it."""
    found = outcomes(project, "docs/suite/tests/test_package.py_docs.md", option)
    assert [found[name][0] for name in ("test_package.py", "how-to-run-it")] == ["failed", "failed"]
