"""The same sources give the same pages, whatever the interpreter's hash seed and the number of processes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ("src/rankbook/analyse", "src/rankbook/site", "tests/cases", "tests/distributed")
"""More than 200 files: so many are spread over processes."""


def digest(out: Path, seed: str, jobs: str) -> str:
    """Generate pages of this repository's own code and digest them."""
    command = [sys.executable, "-m", "rankbook.cli", "gen", *SOURCES, "--root", str(ROOT), "--out", str(out), "--jobs", jobs]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed})
    pages = sorted(path for path in out.rglob("*") if path.is_file())
    whole = hashlib.sha256()
    for page in pages:
        whole.update(page.relative_to(out).as_posix().encode() + b"\0" + page.read_bytes())
    assert sum(page.name.endswith("_docs.md") for page in pages) > 200
    return whole.hexdigest()


def test_same_pages(tmp_path):
    """Two hash seeds, one process and two: identical bytes."""
    runs = [("1", "1"), ("2", "2")]
    assert len({digest(tmp_path / seed, seed, jobs) for seed, jobs in runs}) == 1


OLDER_AND_NEWER = """\
import sys
gone = {"distutils", "imp", "cgi", "sre_parse", "_sha256"}
sys.stdlib_module_names = (sys.stdlib_module_names | gone) if OLD else (sys.stdlib_module_names - gone | {"annotationlib", "_colorize"})
"""


@pytest.mark.parametrize("name", ["compression", "profiling", "chunk", "imp", "annotationlib"])
def test_a_module_of_the_tree_is_found_whatever_modules_a_python_has(tmp_path, name):
    """A file called as a module that only some Pythons have is the one that a test beside it imports."""
    (tmp_path / "tests").mkdir()
    (tmp_path / f"tests/{name}.py").write_text("class Base:\n    def test_inherited(self): ...\n")
    (tmp_path / "tests/test_it.py").write_text(f"from {name} import Base\n\n\nclass TestIt(Base):\n    def test_own(self): ...\n")
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["tests"]\n')
    command = [sys.executable, "-m", "rankbook.cli", "query", "tests", "--format", "ids", "--root", str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert set(done.stdout.split()) == {"tests/test_it.py::TestIt::test_own", "tests/test_it.py::TestIt::test_inherited"}


def test_same_pages_whatever_modules_a_python_has(tmp_path):
    """Python drops modules of its library and adds others: what imports them has the same page."""
    imports = "import annotationlib\nfrom distutils.version import LooseVersion\nimport _sha256\nimport imp\n"
    source = f"{imports}\n\ndef test_a():\n    imp.reload(imp)\n"
    pages = []
    for name, is_old in (("old", True), ("new", False)):
        project = tmp_path / name / "book"
        (project / "tests").mkdir(parents=True)
        (project / "tests/test_a.py").write_text(source)
        (project / "tests/test_b.py").write_text(source.replace("import annotationlib\n", "").replace("import _sha256\n", ""))
        (project / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["tests"]\n')
        (tmp_path / name / "python").mkdir()
        (tmp_path / name / "python/sitecustomize.py").write_text(OLDER_AND_NEWER.replace("OLD", str(is_old)))
        path = os.pathsep.join([str(tmp_path / name / "python"), str(ROOT / "src")])
        command = [sys.executable, "-m", "rankbook.cli", "gen", "--root", str(project)]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": path})
        out = project / "docs/suite"
        pages.append({file.relative_to(out): file.read_bytes() for file in out.rglob("*") if file.is_file()})
    assert len(pages[0]) > 5
    assert pages[0] == pages[1]
