"""What rankbook brings along: what is installed, and what is read on a forge."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import rankbook
from ledgers import run
from rankbook.ledger import Ledger
from tiny_site import environment, write_project

ROOT = Path(__file__).parents[1]


def test_public_names():
    """The package gives exactly its errors and its version, sorted."""
    assert rankbook.__all__ == sorted(rankbook.__all__)
    assert all(hasattr(rankbook, name) for name in rankbook.__all__)


def test_pins_can_be_installed_on_each_python_that_is_promised():
    """Each version in `constraints.txt` allows the first release of the oldest Python of `requires-python`, such as that of Debian."""
    oldest = f"{importlib.metadata.metadata('rankbook')['Requires-Python'].removeprefix('>=')}.0"
    pins = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    refused = []
    for name, version in pins:
        try:
            installed = importlib.metadata.metadata(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        wanted = installed.get("Requires-Python") or ""
        if installed["Version"].partition("+")[0] == version and oldest not in SpecifierSet(wanted):
            refused.append(f"{name}=={version} wants Python {wanted}")
    assert pins
    assert not refused


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
        "import rankbook.cli, rankbook.pytest_pages, rankbook.document, rankbook.prove\n"
        "assert not {'torch', 'numpy', 'mkdocs'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)


def loaded(command, root) -> set[str]:
    """Name the modules that a command has imported when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command], cwd=root, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


PROGRAM = """
import atexit, runpy, sys
atexit.register(lambda: print(*sys.modules))
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
HEAVY = ("analyse", "engines", "filling", "generating", "harness", "ledger", "listings", "model", "pages", "serving", "sharding", "sources")
"""What makes pages, reads the ledger or runs listings."""


def heavy(modules) -> set[str]:
    known = {f"rankbook.{name}" for name in (*HEAVY, "site.highlight", "site.proof", "standing")} | {"pytest", "tree_sitter"}
    return modules & known


def test_what_makes_pages_is_loaded_only_when_something_has_changed(tmp_path, monkeypatch):
    """A build that finds all as it was loads nothing of it, with runs in the ledger too; after an edit what is needed is there."""
    monkeypatch.setenv("RANKBOOK_CACHE_DIR", str(tmp_path / "cache"))
    root = write_project(tmp_path / "project")
    build = ["mkdocs", "build", "--quiet"]
    assert {"rankbook.generating", "rankbook.filling", "rankbook.sharding"} <= heavy(loaded(build, root))
    Ledger(root / ".rankbook/ledger.sqlite").record([run("docs/book/suite/test_ring.py_docs.md::TestRing::test_token_comes_back")])
    time.sleep(0.1)  # what has changed this lately counts as changing
    assert "rankbook.standing" in heavy(loaded(build, root))
    loaded(build, root)  # folders settle
    for command in (build, ["rankbook.cli", "gen"]):
        assert not heavy(loaded(command, root)), command
    with (root / "suite/test_ring.py").open("a") as file:
        file.write("\n\ndef test_more():\n    assert TOKEN\n")
    assert {"rankbook.generating", "rankbook.filling", "rankbook.sharding"} <= heavy(loaded(build, root))
    assert "test_more" in (root / "site/book/suite/test_ring.py_docs.html").read_text()


def test_kinds_of_listings_are_told_without_pytest(tmp_path):
    """What a listing is, and what its page says of it, is known before any test framework is loaded."""
    program = "import sys; import rankbook.harness, rankbook.jobs, rankbook.listings; assert 'pytest' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)


def test_the_module_is_the_command(tmp_path):
    """`python -m rankbook` is `rankbook`, with its words and its exit status, as with pytest and MkDocs."""
    (tmp_path / "a.py").write_text("")
    for words, status, said in (
        (["gen", "a.py"], 0, "1 source, "),
        (["check", "a.py"], 0, "all in step"),
        (["chek"], 2, "rankbook: error:"),
    ):
        command = [sys.executable, "-m", "rankbook", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, said in done.stdout + done.stderr) == (status, True), done


TELLS_LOADERS = """import sys


def pytest_sessionfinish():
    ours = [module for name, module in sys.modules.items() if name.split(".")[0] == "rankbook"]
    rewritten = [each.__name__ for each in ours if type(each.__loader__).__name__ != "SourceFileLoader"]
    print("modules", len(ours) > 50, *sorted(rewritten))
"""


def test_pytest_imports_it_as_python_does(tmp_path):
    """Its modules are none whose assertions pytest rewrites: to do that again at each start costs more than all they do."""
    (tmp_path / "conftest.py").write_text(TELLS_LOADERS)
    (tmp_path / "p.md").write_text("```python\nassert 1 + 1 == 2\n```\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-s", "--doctest-glob=*.md", "p.md"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "1 passed" in done.stdout
    before = {"rankbook", "rankbook.errors", "rankbook.pytest_import", "rankbook.pytest_plugin"}
    looks_like_a_test = "rankbook.harness.test_listing"
    (said,) = re.findall(r"modules (.*)", done.stdout)
    are_many, *rewritten = said.split()
    assert are_many == "True"
    assert set(rewritten) - before == {looks_like_a_test}


@pytest.mark.parametrize("page", sorted(path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/guide/*.md"))))
def test_the_tables_of_a_guide_are_whole_on_a_forge(page):
    """GitHub ends a cell at a bar also where it stands in code: each row has as many bars as the one above it."""
    found = re.sub(r"^(`{3,}|~{3,}).*?^\1$", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for table in re.findall(r"(?:^\|.*\n)+", found, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1, table
