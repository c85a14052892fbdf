"""What the project tells pytest of its tests holds for their listings: settings, and conftest files that have no page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rankbook.pytest_settings import bearing, settings_in

SITE = "site_name: Tests\nplugins: [rankbook]\nmarkdown_extensions: [pymdownx.superfences]\n"
CONFTEST = """\
import pytest


@pytest.fixture
def marked(monkeypatch):
    monkeypatch.setenv("MARKED", "yes")


@pytest.fixture
def number():
    return 3
"""
TESTS = """\
import os
import warnings

import pytest


def check_number(number):
    assert number == 3


def check_marked():
    assert os.environ["MARKED"] == "yes"


@pytest.mark.xfail(reason="is to fail")
def check_passes_all_the_same():
    pass


def check_warning():
    warnings.warn("of the test", stacklevel=1)


@pytest.mark.nowhere
def check_mark():
    pass


class Checked:
    def check_inside(self):
        pass


def test_is_none():
    raise AssertionError
"""
VALUES = {
    "python_files": ["check_*.py"],
    "python_functions": ["check_*"],
    "python_classes": ["Checked"],
    "usefixtures": ["marked"],
    "filterwarnings": ["error", "ignore::pytest.PytestUnknownMarkWarning"],
    "testpaths": ["nowhere"],
    "addopts": ["-ra", "-W", "ignore::pytest.PytestConfigWarning"],
    "nobody_knows_this": ["a", "b"],
    "xfail_strict": True,
}
EXPECTED = {"check_number": "PASSED", "check_marked": "PASSED", "check_passes_all_the_same": "FAILED", "check_warning": "FAILED"} | {
    "check_mark": "PASSED",
    "check_inside": "PASSED",
}


def as_ini(section: str) -> str:
    rows = (
        f"{key} = {value if isinstance(value, bool) else ''.join(f'{chr(10)}    {each}' for each in value)}"
        for key, value in VALUES.items()
    )
    return f"[{section}]\n" + "\n".join(rows) + "\n"


def as_toml(section: str) -> str:
    rows = (f"{key} = {str(value).lower() if isinstance(value, bool) else value}" for key, value in VALUES.items())
    return f"[{section}]\n" + "\n".join(rows) + "\n"


def run(folder: Path, *command: str) -> str:
    done = subprocess.run([Path(sys.executable).parent / command[0], *command[1:]], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def project(folder: Path, settings: dict[str, str]) -> Path:
    """Write a project whose tests lie in one folder, and its conftest file above it; generate its book."""
    files = {"conftest.py": CONFTEST, "tests/check_it.py": TESTS, "mkdocs.yml": SITE}
    book = '\n[tool.rankbook]\nsources = ["tests"]\n'
    for name, text in (files | settings | {"pyproject.toml": settings.get("pyproject.toml", "") + book}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    assert "1 source" in run(folder, "rankbook", "gen")
    return folder


def outcomes(said: str) -> dict[str, str]:
    """Give how each test ended, by its name."""
    return {name: outcome for outcome, name in re.findall(r"^([A-Z]+) .*::(check_\w+)", said, re.MULTILINE)}


def proof(folder: Path, *arguments: str) -> str:
    return run(folder, "pytest", "-rA", "--doctest-glob=*.md", "docs", *arguments)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("setup.cfg", as_ini("tool:pytest")),
        ("pyproject.toml", as_toml("tool.pytest")),
    ],
)
def test_outcomes_are_those_of_plain_pytest(tmp_path, name, text):
    """The same tests, of the same outcomes: names, strictness, fixtures and warnings are those of the project."""
    if "[tool.pytest]" in text and int(pytest.__version__.partition(".")[0]) < 9:
        pytest.skip("pytest before 9 has no such section")
    folder = project(tmp_path, {name: text})
    assert outcomes(run(folder, "pytest", "-rA", "tests")) == EXPECTED
    assert outcomes(proof(folder)) == EXPECTED


def test_a_file_that_pytest_is_told_to_read(tmp_path):
    """With `-c` the settings are those of that file, and `-o` goes before them."""
    other = as_ini("pytest").replace("xfail_strict = True", "")
    folder = project(tmp_path, {"pytest.ini": "[pytest]\npython_files = check_*.py\n", "ci/other.ini": other})
    said = proof(folder, "-c", "ci/other.ini", "--rootdir=.", "-o", "usefixtures=number")
    assert outcomes(said) == EXPECTED | {"check_passes_all_the_same": "XPASS", "check_marked": "FAILED"}


def test_settings_and_conftest_files_are_part_of_a_proof(tmp_path):
    """A test is stale where a setting that bears on it, or a conftest file without a page, has changed since; not where another has."""
    folder = project(tmp_path, {"pytest.ini": as_ini("pytest")})
    (folder / "tests/check_it.py").write_text(
        TESTS.replace("def check_passes", "def no_check_passes").replace("def check_warn", "def warn")
    )
    run(folder, "rankbook", "gen")
    assert "5 passed" in proof(folder).splitlines()[-1]
    assert "5 proved" in proof(folder, "--stale")
    (folder / "pytest.ini").write_text(as_ini("pytest").replace("nowhere", "docs"))
    assert "5 proved" in proof(folder, "--stale")
    (folder / "pytest.ini").write_text(as_ini("pytest").replace("xfail_strict = True", ""))
    assert "5 passed" in proof(folder, "--stale").splitlines()[-1]
    (folder / "conftest.py").write_text(CONFTEST.replace("3", "4"))
    said = proof(folder, "--stale")
    assert outcomes(said)["check_number"] == "FAILED"
    assert "how-to-run-it" in said


def test_no_conftest_files(tmp_path):
    """With `--noconftest` there are none, as for pytest itself."""
    folder = project(tmp_path, {"pytest.ini": "[pytest]\npython_files = check_*.py\npython_functions = check_number\n"})
    assert outcomes(proof(folder, "--noconftest")) == {"check_number": "ERROR"}


def test_a_guide_has_none_of_them(tmp_path):
    """A test that a guide shows is for its readers: it runs as they would run it, without the project around it."""
    folder = project(tmp_path, {"pytest.ini": as_ini("pytest")})
    (folder / "docs/guide.md").write_text("# Guide\n\n```python\ndef test_guide():\n    assert True\n```\n")
    assert "1 passed" in run(folder, "pytest", "--doctest-glob=*.md", "docs/guide.md").splitlines()[-1]


def test_strict(tmp_path):
    """What `strict` stands for holds, but unknown settings do no harm; settings of a run itself are left out."""
    (tmp_path / "pytest.toml").write_text('[pytest]\nstrict = true\nxfail_strict = false\nlog_file = "x"\nlog_level = "INFO"\n')
    found = list(bearing(settings_in(tmp_path), ["markers=a", "cache_dir=b"]))
    assert found == ["log_level=INFO", "markers=a", "strict_markers=true", "strict_parametrization_ids=true", "xfail_strict=false"]
