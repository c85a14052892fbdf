"""What passes under pytest passes as a listing, also where the project is not installed: its own folders are where pytest has them."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ledgers import rankbook
from rankbook.syntax import called_imports
from whole import in_whole
from workflows import REPOSITORY, machine

SETTINGS = '[tool.rankbook]\nsources = ["tests"]\n'
TEST = "from pk import v\n\n\ndef test_v():\n    assert v() == 1\n"


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, as a user does who has installed nothing of the project."""
    return subprocess.run([Path(sys.executable).parent / command[0], *command[1:]], cwd=folder, capture_output=True, text=True, check=False)


def project(folder: Path, package: str, settings: str = "", test: str = TEST) -> Path:
    """Write a project of a package with data and a test, and generate its book."""
    for name, text in {
        f"{package}/__init__.py": "import json\nimport pathlib\n\nfrom pk import inner\n\n\n"
        'def v():\n    return inner.W + json.loads(pathlib.Path(__file__).with_name("data.json").read_text())\n',
        f"{package}/inner.py": "W = 0\n",
        f"{package}/data.json": "1\n",
        "tests/test_v.py": test,
        "pyproject.toml": SETTINGS + settings,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    rankbook("gen", cwd=folder)
    return folder


def proof(folder: Path, *arguments: str) -> str:
    """Prove the book of a project; gives the last line."""
    done = run(folder, "pytest", "-q", "--doctest-glob=*.md", "docs", "-k", "test_v", *arguments)
    return done.stdout.strip().splitlines()[-1]


PYTHONPATH = '[tool.pytest.ini_options]\npythonpath = ["src"]\n'
FOLDERS = (("a", "pk"), ("b", "qk"))


@pytest.mark.parametrize("engine", ["local", "fresh"])
def test_pythonpath(tmp_path, engine):
    """A package in a folder that the setting `pythonpath` names is imported, whole, with its data."""
    folder = project(tmp_path, "src/pk", PYTHONPATH)
    assert "1 passed" in run(folder, "pytest", "-q", "tests").stdout
    assert proof(folder, f"--engine={engine}").startswith("2 passed")


def test_pythonpath_of_the_nearest_settings(tmp_path):
    """Projects in folders of one book have their modules where their own settings say, before those of the root's settings."""
    files = {
        "pyproject.toml": '[tool.rankbook]\nsources = ["pk"]\nfindings = []\n[tool.pytest.ini_options]\npythonpath = ["common"]\n',
        "common/shared.py": "",
        "common/unit.py": "NAME = 'common'\n",
        "pk/alpha/pytest.ini": "[pytest]\npythonpath = src\n",
        "pk/beta/pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['lib', '../../more']\n",
        "more/further.py": "from unit import NAME\n",
        "pk/gamma/pytest.ini": "[pytest]\npythonpath = 'missing\n",
    }
    for name, folder in (("alpha", "alpha/src/"), ("beta", "beta/lib/"), ("common", "")):
        files |= {f"pk/{folder}unit.py": f"NAME = {name!r}\n"} if folder else {}
        test = (
            f"import shared\nfrom {'further' if name == 'beta' else 'unit'} import NAME\n\n\ndef test_v():\n    assert NAME == {name!r}\n"
        )
        files[f"pk/{name if folder else 'gamma'}/tests/test_{name}.py"] = test
    folder = write(tmp_path, files)
    assert proof(folder).startswith("3 passed")
    (folder / "more/further.py").write_text("NAME = 'another'\n")
    said = proof(folder, "--stale")
    assert said.startswith("1 failed") and "2 proved earlier" in said, said


def test_folder_of_a_conftest_file(tmp_path):
    """A package beside the tests is imported where a conftest file lies beside it, or the tests are a package: as pytest does."""
    files = {"a/conftest.py": "", "a/pk/__init__.py": "V = 1\n", "b/tests/__init__.py": "", "b/qk/__init__.py": "V = 1\n"}
    tests = {f"{folder}/tests/test_v{folder}.py": f"from {name} import V\n\n\ndef test_v():\n    assert V\n" for folder, name in FOLDERS}
    folder = write(tmp_path, {**files, **tests, "pyproject.toml": "[tool.rankbook]\nsources = ['a/tests', 'b/tests']\nfindings = []\n"})
    assert "2 passed" in run(folder, "pytest", "-q", "a", "b").stdout
    assert proof(folder).startswith("4 passed")
    assert "2 errors" in run(folder, "pytest", "-q", "a", "b", "--import-mode=importlib").stdout
    alone = proof(folder, "--import-mode=importlib")
    assert alone.startswith("4 failed"), alone


@pytest.mark.parametrize(("package", "tree"), [("src/pk", "src"), ("pk", ".")])
def test_source_path(tmp_path, package, tree):
    """A package in a tree that `--source-path` names is imported, as the guide says."""
    folder = project(tmp_path, package)
    assert proof(folder, f"--source-path={tree}").startswith("2 passed")


def test_nothing_else_is_imported(tmp_path):
    """What only this process has on its path is not imported, and the message says what would be right."""
    folder = project(tmp_path, "pk")
    done = run(folder, "python", "-m", "pytest", "-q", "--doctest-glob=*.md", "docs")
    assert (
        "No module named 'pk'; no page shows tests/pk.py, and no folder named by pytest's `pythonpath` or by --source-path" in done.stdout
    )
    assert 'install the package that has it, or name its folder in pytest\'s settings: pythonpath = ["src"], say' in done.stdout


def test_a_package_without_the_module_is_not_what_is_missing(tmp_path):
    """The message names what is not there, and not the package around it, which is."""
    modules = ("pk.nowhere", "pk.nowhere.deep")
    folder = project(tmp_path, "src/pk", PYTHONPATH, test="import pk.nowhere\n\n\ndef test_v():\n    pass\n")
    (folder / "docs/guide.md").write_text("# Guide\n" + "".join(f"\n```python\nimport {module}\n```\n" for module in modules))
    done = run(folder, "pytest", "-q", "--doctest-glob=*.md", "docs")
    said = "No module named 'pk.nowhere'; 'pk' is there, and has no 'nowhere': correct the import, or have the 'pk' imported that holds it"
    assert done.stdout.count(said) >= 3, done.stdout
    assert "pythonpath" not in done.stdout


def test_a_page_by_hand(tmp_path):
    """A listing that people wrote imports what the tests import; a command that a shell listing starts does not, as under pytest."""
    folder = project(tmp_path, "src/pk", PYTHONPATH)
    (folder / "docs" / "guide.md").write_text(
        "# Guide\n\n```python\nfrom pk import v\nassert v() == 1\n```\n\n```pycon\n>>> from pk import v\n>>> v()\n1\n```\n"
        "\n```bash\n! python -c 'import pk' 2> /dev/null\n```\n"
    )
    done = run(folder, "pytest", "-q", "--doctest-glob=*.md", "docs/guide.md")
    assert "3 passed" in done.stdout


def stale(folder: Path) -> dict[str, int]:
    """Prove what is stale of the whole site; gives the number of tests and listings by their end."""
    run(folder, "pytest", "-q", "--doctest-glob=*.md", "docs", "--stale", "--listings-report=report.json")
    return json.loads((folder / "report.json").read_text())["endings"]


def test_what_is_imported_is_part_of_the_proof(tmp_path):
    """A proof is stale when a file has changed that its listing imports from such a folder, directly or in turn."""
    folder = project(tmp_path, "src/pk", PYTHONPATH)
    (folder / "docs" / "guide.md").write_text("# Guide\n\n```pycon\n>>> from pk import v\n>>> v()\n1\n```\n")
    assert stale(folder)["passed"] == 3
    (folder / "src" / "pk" / "unused.py").write_text("")
    assert stale(folder)["proved earlier"] == 3
    (folder / "src" / "pk" / "inner.py").write_text("W = 0  # changed\n")
    assert stale(folder)["passed"] == 3


BUILT = '[project]\nname = "pk"\nversion = "1"\n\n[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
MAPPED = '\n[tool.setuptools]\npackages = ["pk"]\npackage-dir = {pk = "lib"}\n'


@pytest.mark.parametrize(("package", "settings"), [*in_whole(("src/pk", "")), ("lib", MAPPED)])
def test_a_package_that_is_installed_for_editing_is_part_of_the_proof(tmp_path, package, settings):
    """What `pip install --editable` leaves in the project is no less its own; what lies in an environment inside the project is not."""
    folder = project(tmp_path / "project", package, BUILT + settings)
    variables = machine(folder / ".venv") | {"PYTHONSAFEPATH": "1"}
    (purelib,) = (folder / ".venv/lib").glob("python*/site-packages")
    (purelib / "rankbook.pth").write_text(f"{REPOSITORY}/src\n")
    (purelib / "other.py").write_text("X = 1\n")

    def here(*command: str) -> str:
        program = [folder / ".venv/bin/python", "-m", *command]
        done = subprocess.run(program, cwd=folder, env=variables, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def last(*arguments: str) -> str:
        return here("pytest", "-q", "--doctest-glob=*.md", "docs", "-k", "test_v", *arguments).strip().splitlines()[-1]

    assert "Successfully installed" in here("pip", "install", "--editable", ".")
    (folder / "tests/test_v.py").write_text("import other\n" + TEST)
    here("rankbook.cli", "gen")
    assert last().startswith("2 passed")
    (purelib / "other.py").write_text("X = 2\n")
    assert last("--stale").startswith("2 proved earlier")
    (folder / package / "inner.py").write_text("W = 1\n")
    assert last("--stale").startswith("2 failed")


CALLING = {
    "src/first.py": "import importlib\n\nFOUND = importlib.import_module('first')",
    "src/called/second.py": "from importlib import import_module\n\nFOUND = import_module('.second', 'called')",
    "tests/third.py": "FOUND = __import__('third')",
    "src/called/below.py": "import pytest\n\nFOUND = pytest.importorskip('called.below')",
    "src/around/inner.py": "import around as FOUND",
}
"""How a test comes to a module that changes; of the last, the package imports it."""


def test_what_is_imported_by_a_call_is_part_of_the_proof(tmp_path):
    """A module that a call imports by a name that stands there makes a proof stale when it changes."""
    test = "\n\n\ndef test_v():\n    assert FOUND\n"
    tests = {f"tests/test_v_{Path(module).stem}.py": f"{text}{test}" for module, text in CALLING.items()}
    around = "from importlib import import_module\nimport_module('.inner', __package__)\n"
    packages = {"src/called/__init__.py": "", "src/around/__init__.py": around, "tests/test_v_none.py": f"FOUND = 1{test}"}
    folder = write(tmp_path, {**packages, **tests, **dict.fromkeys(CALLING, "X = 1\n")}, PYTHONPATH)
    assert proof(folder).startswith("12 passed")
    write(folder, dict.fromkeys(CALLING, "X = 2\n"), PYTHONPATH)
    said = proof(folder, "--stale")
    assert said.startswith("10 passed") and "2 proved earlier" in said, said


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("importlib.import_module('a.b')", [(0, "a.b")]),
        ("import_module(name='..a', package=__package__)", [(2, "a")]),
        ("import_module('..a', 'b.c')", [(0, "b.a")]),
        ("__import__('a', globals())", [(0, "a")]),
        ("pytest.importorskip('a', '1.0')", [(0, "a")]),
        ("import_module('.a', here)", []),
        ("import_module('.')", []),
        ("import_module('a' + b)", []),
        ("import_module(1)", []),
        ("import_module()", []),
        ("other('a')", []),
        ("calls[0]('a')", []),
    ],
)
def test_calls_that_import(call, found):
    """Only a name that stands in the call is known."""
    assert [*called_imports(ast.parse(call, mode="eval").body)] == found


def test_ranks_import_it_too(tmp_path):
    """Processes that a test spawns have the same folders."""
    text = (
        "import multiprocessing\n\n\ndef rank():\n    from pk import v\n\n    assert v() == 1\n\n\n"
        'def test_v():\n    process = multiprocessing.get_context("spawn").Process(target=rank)\n'
        "    process.start()\n    process.join()\n    assert process.exitcode == 0\n"
    )
    folder = project(tmp_path, "src/pk", PYTHONPATH, text)
    assert proof(folder).startswith("2 passed")


def test_brackets_in_a_path(tmp_path):
    """A test file is proved whose path pytest does not take as an argument; tests of it can be chosen."""
    test = "import pytest\n\n\n@pytest.mark.parametrize('n', [1, 2])\ndef test_v(n):\n    assert n == 1\n"
    settings = '[tool.rankbook]\nsources = ["tests", "tests [1]"]\nfindings = []\n'
    folder = write(tmp_path, {"pyproject.toml": settings, "tests/test_[v].py": test, "tests [1]/test_v.py": test})
    done = run(folder, "pytest", "-q", "--doctest-glob=*.md", "docs", "-rA", "-k", "test_v[")
    ends = [line.split(" ", 1) for line in done.stdout.splitlines() if "::test_v[" in line and line[0] in "PF"]
    told = sorted((name.partition(" - ")[0].removeprefix("docs/suite/"), end) for end, name in ends)
    pages = ("tests [1]/test_v.py_docs.md", "tests/test_[v].py_docs.md")
    assert told == [(f"{page}::test_v[{n}]", end) for page in pages for n, end in ((1, "PASSED"), (2, "FAILED"))]
    assert "2 failed, 2 passed" in done.stdout
    assert "2 passed, " in run(folder, "pytest", "-q", "--doctest-glob=*.md", "docs", "-k", "test_v[1]").stdout


def page_of(folder: Path, source: str) -> Path:
    return folder / f"docs/suite/{source}_docs.md"


def write(folder: Path, files: dict[str, str], settings: str = "") -> Path:
    """Write a project whose package and tests have pages both."""
    for name, text in {"pyproject.toml": '[tool.rankbook]\nsources = ["src", "tests"]\nfindings = []\n' + settings, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    rankbook("gen", cwd=folder)
    return folder


PACKAGE = {"src/pkg/__init__.py": '"""P."""\n', "src/pkg/b.py": "VALUE = 1\n"}


def test_a_page_that_shows_another_text_is_what_a_library_imports(tmp_path):
    """A module of a package imports its siblings as their pages show them, not as they lie on disk."""
    folder = write(
        tmp_path, {**PACKAGE, "src/pkg/a.py": "from .b import VALUE\nassert VALUE == 1, f'VALUE is {VALUE}'\n", "tests/t.py": ""}
    )
    proven = "pytest", "-q", "--doctest-glob=*.md", f"{page_of(folder, 'src/pkg/a.py').relative_to(folder)}"
    assert "1 passed" in run(folder, *proven).stdout
    page = page_of(folder, "src/pkg/b.py")
    page.write_text(page.read_text().replace("VALUE = 1", "VALUE = 2"))
    assert "VALUE is 2" in run(folder, *proven).stdout


@pytest.mark.parametrize("settings", [*in_whole(PYTHONPATH), '[tool.pytest.ini_options]\npythonpath = ["src", "."]\n'])
def test_a_page_that_shows_another_text_is_what_a_test_imports(tmp_path, settings):
    """A test imports modules as their pages show them, wherever pytest finds them; with a page that is in step, from disk."""
    test = "from pkg.b import VALUE\n\n\ndef test_v():\n    assert VALUE == 1, f'VALUE is {VALUE}'\n"
    folder = write(tmp_path, {**PACKAGE, "tests/test_v.py": test}, settings)
    assert proof(folder).startswith("2 passed")
    page = page_of(folder, "src/pkg/b.py")
    page.write_text(page.read_text().replace("VALUE = 1", "VALUE = 2"))
    assert "2 failed" in proof(folder, "--stale")


def test_a_source_that_has_changed_since_is_not_what_runs(tmp_path):
    """What the book shows is what is proved, also where the file on disk has changed since its page was made."""
    folder = write(
        tmp_path, {**PACKAGE, "tests/test_v.py": "from pkg.b import VALUE\n\n\ndef test_v():\n    assert VALUE == 1\n"}, PYTHONPATH
    )
    (folder / "src/pkg/b.py").write_text("VALUE = 2\n")
    assert proof(folder).startswith("2 passed")
    rankbook("gen", cwd=folder)
    assert "2 failed" in proof(folder, "--stale")


def test_what_is_recorded_is_what_ran(tmp_path):
    """The digest of a module in the ledger is that of the text that was imported."""
    files = {
        "tests/common.py": "LIMIT = 1\n",
        "tests/test_v.py": "from tests.common import LIMIT\n\n\ndef test_v():\n    assert LIMIT == 1\n",
    }
    folder = write(tmp_path, {**PACKAGE, **files}, '[tool.pytest.ini_options]\npythonpath = ["."]\n')
    page = page_of(folder, "tests/common.py")
    page.write_text(page.read_text().replace("LIMIT = 1", "LIMIT = 2"))
    assert "2 failed" in proof(folder)
    page.write_text(page.read_text().replace("LIMIT = 2", "LIMIT = 1"))
    assert proof(folder).startswith("2 passed")


def test_more_dots_than_folders(tmp_path):
    """A relative import that leads above all folders is no module, and nothing else is lost."""
    odd = f"try:\n    from {60 * '.'} import x\nexcept ImportError:\n    pass\n"
    folder = write(
        tmp_path,
        {"src/odd.py": odd, "tests/test_v.py": "import odd\n\n\ndef test_v():\n    assert odd\n"},
        PYTHONPATH,
    )
    (folder / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["tests"]\nfindings = []\n' + PYTHONPATH)
    rankbook("gen", cwd=folder)
    assert proof(folder).startswith("2 passed")


def test_what_pythonpath_names_in_the_project_is_part_of_the_proof(tmp_path, monkeypatch):
    """A module that is found by the variable `PYTHONPATH` makes a proof stale when it changes."""
    monkeypatch.setenv("PYTHONPATH", ".")
    test = "def test_v():\n    assert X\n"
    tests = {"tests/test_v.py": f"from helper import X\n\n\n{test}", "tests/test_v_w.py": f"X = 1\n\n\n{test}"}
    folder = write(tmp_path, {"src/.keep": "", "helper.py": "X = 1\n", **tests})
    assert proof(folder).startswith("4 passed")
    (folder / "helper.py").write_text("X = 0\n")
    assert proof(folder, "--stale").startswith("2 failed, 2 proved earlier")


INSIDE = {
    "whole/__init__.py": "",
    "whole/value.py": "VALUE = 3\n",
    "whole/reader.py": "from .value import VALUE\n\nREAD = VALUE\n",
    "whole/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef three():\n    return 3\n",
    "whole/tests/__init__.py": "",
    "whole/tests/helper.py": "from ..reader import READ\n",
    "whole/tests/test_v.py": "import multiprocessing\n\nfrom .helper import READ\n\n\ndef rank():\n    assert READ == 3\n\n\n"
    "def test_v(three):\n    assert READ == three\n"
    "    process = multiprocessing.get_context('spawn').Process(target=rank)\n    process.start()\n    process.join()\n"
    "    assert process.exitcode == 0\n",
}


@pytest.mark.parametrize("installed", [True, False])
def test_tests_within_a_package(tmp_path, monkeypatch, installed):
    """A test that is a module of its package has its siblings and fixtures, by relative imports too, and past empty `__init__.py` files."""
    if installed:
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    folder = write(tmp_path, INSIDE | {"pyproject.toml": '[tool.rankbook]\nsources = ["whole"]\nfindings = []\n'})
    assert "1 passed" in run(folder, "pytest", "-q", "whole").stdout
    done = run(folder, "pytest", "-q", "--doctest-glob=*.md", "docs")
    assert "6 passed" in done.stdout, done.stdout
    page = page_of(folder, "whole/value.py")
    page.write_text(page.read_text().replace("VALUE = 3", "VALUE = 4"))
    assert "2 failed" in proof(folder)


def test_what_only_an_installed_package_has(tmp_path, monkeypatch):
    """A test of a package that is installed finds what no page shows: data, and modules that it imports by name."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    test = (
        "import importlib\nfrom pathlib import Path\n\nimport whole\n\n\ndef test_v():\n"
        "    assert importlib.import_module('whole.value').VALUE == 3\n"
        "    assert (Path(whole.__file__).parent / 'data.bin').read_bytes() == b'3'\n"
    )
    book = '[tool.rankbook]\nsources = ["whole"]\ninclude = ["whole/tests", "whole/__init__.py"]\nfindings = []\n'
    folder = write(tmp_path, INSIDE | {"whole/tests/test_v.py": test, "whole/data.bin": "3", "pyproject.toml": book})
    assert proof(folder).startswith("2 passed")


def test_a_source_tree_that_is_not_there_is_told_before_anything_runs(tmp_path):
    """A mistyped `--source-path` is one sentence, and not an import that fails in each listing."""
    done = run(project(tmp_path, "src/pk"), "pytest", "-q", "--doctest-glob=*.md", "docs", "--source-path=scr")
    assert (done.returncode, "passed" in done.stdout) == (4, False), done.stdout + done.stderr
    said = f"--source-path names '{tmp_path / 'scr'}', which is no folder; name the root of a source tree"
    assert said in done.stderr
