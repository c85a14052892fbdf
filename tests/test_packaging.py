"""What an installed rankbook brings along."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import rankbook

ROOT = Path(__file__).parents[1]


def test_public_names():
    """The package gives exactly its errors and its version, sorted."""
    assert rankbook.__all__ == sorted(rankbook.__all__)
    assert all(hasattr(rankbook, name) for name in rankbook.__all__)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built from the checkout with the build tool that is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


def test_wheel_holds_the_packs(wheel):
    """A wheel holds every template pack, and works without the checkout."""
    names = zipfile.ZipFile(wheel).namelist()
    packs = {path.relative_to(ROOT).as_posix() for path in (ROOT / "templates").rglob("*.jinja")}
    assert packs
    assert {f"rankbook/{name}" for name in packs} <= set(names)


def test_wheel_generates_pages(wheel, tmp_path):
    """`rankbook gen` of an unpacked wheel makes pages with its own packs."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "unpacked")
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text("x = 1\n")
    command = "from rankbook.cli import main; sys.exit(main(['gen', 'a.py', '--out', 'docs']))"
    program = f"import sys; sys.path.insert(0, {str(tmp_path / 'unpacked')!r}); {command}"
    done = subprocess.run([sys.executable, "-c", program], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (project / "docs" / "a.py_docs.md").is_file()


def test_core_needs_no_torch(tmp_path):
    """Neither generating pages nor collecting them imports torch or MkDocs."""
    program = (
        "import sys\n"
        "import rankbook.cli, rankbook.pytest_plugin, rankbook.document, rankbook.prove\n"
        "assert not {'torch', 'numpy', 'mkdocs'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
