"""`rankbook init`: what it finds out, what it writes and what it leaves alone, and that what it has written works."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from itertools import product
from pathlib import Path
from re import findall

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rankbook import __version__
from rankbook.cli import main
from rankbook.config import load
from rankbook.remotes import Remote
from rankbook.starter import Declared, Sources, find_tests, yaml_edits
from rankbook.starter.facts import WRITTEN_BY
from rankbook.starter.installing import install_for_tests, python_for, rankbook_requirement
from rankbook.starter.suites import projects_of
from rankbook.starter.yaml_edits import CannotEdit
from workflows import REPOSITORY, Run, machine

PYPROJECT = """\
# The package of this tiny project.
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build]
dev-mode-dirs = ["."]

[project]
name = "tiny-ring"  # a name with a comment
version = "1.0"
requires-python = ">=3.11,<4"

[project.optional-dependencies]
test = ["pytest"]
"""
RING = "def after(rank, size):\n    return (rank + 1) % size\n"
TEST = """\
import unittest

from tiny_ring import after


class TestRing(unittest.TestCase):
    def test_the_last_is_followed_by_the_first(self):
        self.assertEqual(after(3, 4), 0)
"""
GPU_TEST = """\
import pytest
import torch
from torch.testing._internal.common_distributed import skip_if_lt_x_gpu


class TestGpus:
    @skip_if_lt_x_gpu(4)
    def test_four(self):
        assert torch.cuda.device_count() >= 4
"""


def git(root: Path, *arguments: str) -> str:
    """Run Git as somebody."""
    who = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org"}
    done = subprocess.run(["git", *arguments], cwd=root, env={**os.environ, **who}, check=True, capture_output=True, text=True)
    return done.stdout


def write(root: Path, files: dict[str, str]) -> None:
    """Write files."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())


@pytest.fixture
def project(tmp_path) -> Path:
    """A package with tests, in a repository that is published on GitHub."""
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "remote", "add", "origin", "https://somebody:secret-token@github.com/people/tiny-ring.git")
    write(root, {"pyproject.toml": PYPROJECT, "tiny_ring/__init__.py": RING, "tests/test_ring.py": TEST, ".gitignore": "*.pyc"})
    return root


def init(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder."""
    return rankbook(root, "init", *arguments)


def rankbook(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run any command in a folder, without a process of its own."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.chdir(root), contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = main(words)
    return subprocess.CompletedProcess(["rankbook", *words], status, out.getvalue(), errors.getvalue())


def texts(root: Path) -> dict[str, str]:
    """Read all files but Git's own."""
    files = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.relative_to(root).parts)
    return {path.relative_to(root).as_posix(): path.read_bytes().decode(errors="replace") for path in files}


# What is written


def test_what_a_project_on_github_gets(project):
    """Settings, site, front page, ignored files and workflow are written; what was there stands as it stood."""
    done = init(project)
    assert done.returncode == 0, done.stdout + done.stderr
    after = texts(project)
    assert set(after) == {
        ".github/workflows/book.yml",
        ".gitignore",
        "docs/index.md",
        "mkdocs.yml",
        "pyproject.toml",
        "tests/test_ring.py",
        "tiny_ring/__init__.py",
    }
    assert after["pyproject.toml"].startswith(PYPROJECT)
    settings = load(project)
    assert (settings.sources, settings.out, settings.title) == (("tests",), "docs/suite", "tiny-ring tests")
    assert after[".gitignore"].splitlines()[0] == "*.pyc"
    assert {"/.rankbook/", "/site/"} <= set(after[".gitignore"].splitlines())
    assert after["docs/index.md"].endswith("stands below this line on the published site.\n\n<!-- rankbook:proof -->\n")
    site = yaml.safe_load(after["mkdocs.yml"])
    assert (site["site_name"], site["repo_url"]) == ("tiny-ring", "https://github.com/people/tiny-ring")
    assert site["site_url"] == "https://people.github.io/tiny-ring/"
    assert site["theme"]["font"] is False
    assert (
        'python-version: "3.13"' in after[".github/workflows/book.yml"] or 'python-version: "3.12"' in after[".github/workflows/book.yml"]
    )


def test_no_token_of_a_remote_is_written_or_shown(project):
    """The user and the token of a remote's address appear in no file and in no line."""
    done = init(project)
    assert "secret-token" not in done.stdout + done.stderr
    assert not [path for path, text in texts(project).items() if "secret-token" in text or "somebody" in text]


def test_second_run_changes_nothing(project):
    """A second run finds everything as it shall be."""
    init(project)
    first = texts(project)
    done = init(project)
    assert done.returncode == 0
    assert "written" not in done.stdout
    assert "changed  " not in done.stdout
    assert texts(project) == first


def test_a_run_after_the_pages_are_made_changes_nothing(project):
    """The generated pages do not look like pages of a person."""
    init(project)
    assert rankbook(project, "gen").returncode == 0
    first = texts(project)
    assert init(project).returncode == 0
    assert texts(project) == first


def test_dry_run_writes_nothing_and_shows_all(project):
    """The diff of a dry run, applied by Git, gives what a run writes."""
    before = texts(project)
    done = init(project, "--dry-run")
    assert done.returncode == 0
    assert texts(project) == before
    diff = done.stdout[done.stdout.index("--- ") :]
    subprocess.run(["git", "apply", "--unsafe-paths", "-"], cwd=project, input=diff, text=True, check=True)
    applied = texts(project)
    for path in set(applied) - set(before):
        (project / path).unlink()
    write(project, before)
    init(project)
    assert texts(project) == applied


def test_existing_files_are_left_and_told(project):
    """A workflow of somebody else under the same name is left, with the way to replace it; the exit status says that a hand is needed."""
    write(project, {".github/workflows/book.yml": "name: Mine\n", "docs/guide.md": "# Mine\n"})
    done = init(project)
    assert done.returncode == 1
    assert (
        "left      .github/workflows/book.yml: it is there, and is not replaced without --force .github/workflows/book.yml" in done.stdout
    )
    assert texts(project)[".github/workflows/book.yml"] == "name: Mine\n"
    assert "docs_dir: book" in texts(project)["mkdocs.yml"]
    assert not (project / "docs" / "index.md").exists()


def test_who_reads_two_lines_gets_all_files(project):
    """A reader that has seen enough, as `head` has, ends neither the work nor makes a mistake of it."""
    command = f"exec 2>&1; {sys.executable} -u -m rankbook.cli init | head -n 2; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=project, capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["tests", "GPUs", "0"]
    assert (project / ".github/workflows/book.yml").is_file()


def test_force_replaces_the_named_file_only(project):
    """`--force` works for one file, and refuses one that is not written here."""
    write(project, {".github/workflows/book.yml": "name: Mine\n"})
    init(project)
    (project / "docs" / "index.md").write_text("# Mine <!-- rankbook:proof -->\n")
    done = init(project, "--force", ".github/workflows/book.yml")
    assert "changed   .github/workflows/book.yml: replaced" in done.stdout
    assert texts(project)[".github/workflows/book.yml"].startswith(WRITTEN_BY)
    assert texts(project)["docs/index.md"] == "# Mine <!-- rankbook:proof -->\n"
    refused = init(project, "--force", "README.md")
    assert refused.returncode == 2
    assert "--force names README.md, which is not written here" in refused.stderr


def test_symbolic_links_are_left(project, tmp_path):
    """A file that is a link is not written through: it may lead out of the repository."""
    outside = tmp_path / "outside"
    outside.write_text("site_name: Elsewhere\n")
    (project / "mkdocs.yml").symlink_to(outside)
    done = init(project)
    assert "left      mkdocs.yml: it is a symbolic link" in done.stdout
    assert outside.read_text() == "site_name: Elsewhere\n"


@pytest.mark.parametrize(
    "address",
    [
        """https://evil"onload="alert(9)@github.com/o"><script>alert(10)</script>/p.git""",
        "https://github.com/o%22%3E%3Cscript%3Ealert(10)%3C/script%3E/p.git",
        """git@github.com:o'onload='alert(9)/&lt;script&gt;alert(10)&lt;/script&gt;.git""",
    ],
)
def test_no_address_of_a_remote_becomes_an_element(project, address):
    """Whatever the address of a remote holds, it is no part of a page but within an address; one that is left out is told."""
    pytest.importorskip("material")
    git(project, "remote", "set-url", "origin", address)
    done = init(project)
    assert done.returncode == 0, done.stdout
    is_shown = "'" in address
    assert ("no browser opens the address of the remote origin" in done.stdout) != is_shown
    assert any("alert(" in text or "alert%28" in text for text in texts(project).values()) == is_shown
    if is_shown:
        run(project, "mkdocs", "build", "--strict")
        pages = [path.read_text() for path in (project / "site").rglob("*.html")]
        assert len(pages) > 5
        assert not [page for page in pages if "<script>alert" in page or "onload=" in page]


def test_without_tests_it_asks_for_their_folder(project):
    """Where no test module is found, one sentence says what to do; nothing is written."""
    shutil.rmtree(project / "tests")
    done = init(project)
    assert done.returncode == 2
    assert "no test modules were found; name their folder: rankbook init FOLDER" in done.stderr
    assert not (project / "mkdocs.yml").exists()


def test_without_a_repository_it_says_what_it_takes(tmp_path):
    """What cannot be found is taken from habit, and said."""
    write(tmp_path, {"test/test_ring.py": "def test_one():\n    assert True\n"})
    done = init(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no remote was found" in done.stdout
    assert "no branch was found: main is taken" in done.stdout
    assert "nothing says which CI is used" in done.stdout
    assert load(tmp_path).sources == ("test",)


def test_a_branch_that_nothing_calls_the_default_is_told(project):
    """Where the remote's is not known and none has a usual name, the one that is checked out is taken, and said."""
    note = "note      Git does not say from which branch others start: the site is published from topic, which is checked out"
    git(project, "checkout", "--quiet", "-b", "topic")
    assert note in init(project, "--dry-run").stdout
    git(project, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    said = init(project, "--dry-run").stdout
    assert ("branch    trunk\n" in said, note in said) == (True, False)


def test_scripts_that_would_be_executed_are_told(project):
    """Whoever proves the book runs them: what installs packages, say."""
    assert "would be executed" not in init(project, "--dry-run").stdout
    write(project, {f"tests/{name}": "true\n" for name in ("a.sh", "b.sh", "c/setup.py", "d.sh", "e.py")})
    said = init(project).stdout
    assert "note      4 scripts would be executed with the book: tests/a.sh, tests/b.sh, tests/c/setup.py, …; put what must not" in said


def test_modules_outside_of_the_folder_of_tests_are_told(project):
    """The name of a folder tells where the tests are, but not that they are all: those elsewhere are not left out without a word."""
    assert "elsewhere" not in init(project, "--dry-run").stdout
    write(project, {"tiny_ring/test/fast/test_a.py": TEST})
    one = "1 test module lies elsewhere and is not in the book: tiny_ring/test; to have it there, add that folder to the setting sources"
    assert f"note      {one}" in init(project, "--dry-run").stdout
    write(project, {f"{name}/test_a.py": TEST for name in ("tiny_ring/test/slow", "more/part", "other/test", "z/tests")})
    said = init(project).stdout
    assert (
        "note      5 test modules lie elsewhere and are not in the book: more/part, other/test, tiny_ring/test, …; to have them there"
        in said
    )
    assert "add those folders to the setting sources" in said
    assert "elsewhere" not in init(project).stdout, "the settings say where they are"


def test_a_site_of_another_folder_is_told(project):
    """A site that is not the project's own is left, and how to have the book in it is said; that way works."""
    write(project, {"tests/data/mkdocs.yml": "site_name: One that is tested\n"})
    assert "of a site" not in init(project, "--dry-run").stdout
    write(project, {"website/mkdocs.yml": "site_name: Ring\nplugins: [search, rankbook]\n", "website/docs/index.md": "# Ring\n"})
    said = init(project, "--dry-run").stdout
    told = "note      website/mkdocs.yml holds the settings of a site: the book gets one of its own, mkdocs.yml; to have it in that site, "
    out = 'out = "website/docs/suite"'
    assert f"{told}add rankbook to its plugins, and {out}, below its docs_dir, to [tool.rankbook]\n" in said
    (project / "pyproject.toml").write_text(f'{PYPROJECT}\n[tool.rankbook]\nsources = ["tests"]\n{out}\n')
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--config-file", "website/mkdocs.yml"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (project / "website/site/suite/tests/test_ring.py_docs/index.html").is_file()


def test_a_plugin_that_stays_the_last(project):
    """What has to be listed behind all others is not pushed from its place; a person is told."""
    write(project, {"mkdocs.yml": "site_name: Ring\nplugins:\n  - search\n  - print-site:\n      add_to_navigation: true\n"})
    done = init(project)
    assert "mkdocs.yml: print-site has to stay the last of its plugins; add `rankbook` to its plugins\n" in done.stdout
    assert "rankbook" not in (project / "mkdocs.yml").read_text()
    assert done.returncode == 1


def test_a_repository_that_git_refuses_is_told(project):
    """Where Git does not read what is there, that is said: a remote that it hides is not simply missing."""
    (project / ".git" / "HEAD").write_text("broken")
    done = init(project)
    assert "note      Git does not read the repository: not a git repository" in done.stdout


def test_gpus_become_labels(project):
    """The most demanding test names the runner; torch in the tests asks for its build for the CPU."""
    write(project, {"tests/test_gpus.py": GPU_TEST})
    done = init(project, "--ci", "github", "--ci", "gitlab")
    assert "at most 4 for a test" in done.stdout
    github, gitlab = done.stdout.splitlines()[-1].removeprefix("for the proof on GPUs: ").split(" and a runner ")
    assert github == "a self-hosted runner with the labels linux and gpu-4, and the variable RANKBOOK_GPUS=true of the repository's Actions"
    assert gitlab == "with the tag gpu-4, the variable RANKBOOK_GPUS=true of the project's CI/CD, and a pipeline schedule for each night"
    workflow = yaml.safe_load((project / ".github/workflows/book.yml").read_text())
    assert workflow["jobs"]["gpu"]["runs-on"] == ["self-hosted", "linux", "gpu-4"]
    assert "pull_request" in workflow["jobs"]["gpu"]["if"]
    assert any("--require gpu=4" in step.get("run", "") for step in workflow["jobs"]["gpu"]["steps"])
    assert "PIP_EXTRA_INDEX_URL" in workflow["jobs"]["cpu"]["env"]
    assert "PIP_EXTRA_INDEX_URL" not in workflow["jobs"]["gpu"].get("env", {})
    jobs = yaml.safe_load((project / ".gitlab/book.gitlab-ci.yml").read_text())
    assert jobs["book-gpu"]["tags"] == ["gpu-4"]
    for job in ("cpu", "gpu"):
        assert any('pip install "rankbook[torch]"' in step.get("run", "") for step in workflow["jobs"][job]["steps"])
        assert 'python -m pip install "rankbook[torch]"' in jobs[f"book-{job}"]["script"]
    assert "rankbook[torch]" not in str([workflow["jobs"][job] for job in ("drift", "site")])


@pytest.mark.parametrize(
    ("counts", "asked", "told"),
    [
        ((4, 64), 4, "1 test needs more than the 4 GPUs that CI asks a runner for, and is skipped there: rankbook query tests --gpus '>4'"),
        ((8, 9, 64), 8, "2 tests need more than the 8 GPUs that CI asks a runner for, and are skipped there: rankbook query tests"),
        ((16, 64), 16, "1 test needs more than the 16 GPUs"),
        ((64, 64), 64, ""),
    ],
)
def test_tests_that_need_more_gpus_than_a_machine_has(project, counts, asked, told):
    """The runner is one that can be had, as long as it is of use, and how many tests need another is told."""
    tests = "".join(f"\n    @skip_if_lt_x_gpu({count})\n    def test_{number}(self): ...\n" for number, count in enumerate(counts))
    write(project, {"tests/test_gpus.py": GPU_TEST.partition("    @skip")[0] + tests})
    said = init(project, "--ci", "github", "--ci", "gitlab").stdout
    assert "GPUs      at most 64 for a test\n" in said
    assert (f"note      {told}" in said) if told else ("CI asks a runner" not in said)
    job = yaml.safe_load((project / ".github/workflows/book.yml").read_text())["jobs"]["gpu"]
    assert job["runs-on"] == ["self-hosted", "linux", f"gpu-{asked}"]
    assert f"--require gpu={asked}" in job["steps"][-2]["run"]
    pipeline = yaml.safe_load((project / ".gitlab/book.gitlab-ci.yml").read_text())["book-gpu"]
    assert (pipeline["tags"], f"--require gpu={asked}" in str(pipeline["script"])) == ([f"gpu-{asked}"], True)


def test_nothing_stays_on_a_runner_with_gpus(project):
    """What its job installs goes with the job: the machine is the same one tomorrow, and its Python too."""
    write(project, {"tests/test_gpus.py": GPU_TEST})
    init(project)
    jobs = yaml.safe_load((project / ".github/workflows/book.yml").read_text())["jobs"]
    made = 'python -m venv "$RUNNER_TEMP/venv"\necho "$RUNNER_TEMP/venv/bin" >> "$GITHUB_PATH"\n'
    for name, job in jobs.items():
        steps = [step.get("run", step.get("uses", "")) for step in job["steps"]]
        if name == "gpu":
            assert steps[1:3] == ["actions/setup-python@v6", made]
            assert "pip install" in steps[3]
        else:
            assert made not in steps


def test_no_job_runs_for_ever(project):
    """Each job of the workflow, and of those of this repository, ends by itself: a hang holds no runner for GitHub's six hours."""
    write(project, {"tests/test_gpus.py": GPU_TEST})
    init(project)
    files = [project / ".github/workflows/book.yml", *(REPOSITORY / ".github/workflows").glob("*.yml")]
    jobs = {(file, name): job for file in files for name, job in yaml.safe_load(file.read_text())["jobs"].items()}
    assert not [name for name, job in jobs.items() if not 0 < job.get("timeout-minutes", 0) < 360]
    assert len(jobs) > 7


NEEDS = "import unittest\n\nimport torch\n\nneeds_four = unittest.skipIf(torch.cuda.device_count() < 4, 'four')\n"
USES = "from tiny_ring.needs import needs_four\n\n\n@needs_four\ndef test_four(): ...\n"


@pytest.mark.parametrize("folder", [".", "src"])
def test_what_the_tests_import_of_the_project_is_read(project, capsys, folder):
    """Decorators and base classes that lie in the project's own package count from the first run on, without being installed."""
    (project / folder).mkdir(exist_ok=True)
    if folder != ".":
        (project / "tiny_ring").rename(project / folder / "tiny_ring")
    write(project, {f"{folder}/tiny_ring/needs.py": NEEDS, "tests/test_four.py": USES})
    assert main(["init", "--root", str(project)]) == 0
    said = capsys.readouterr().out
    assert "GPUs      at most 4 for a test" in said
    assert f"package   read in {folder}, for what the tests import of the project itself" in said
    assert load(project).package_path == (folder,)
    assert main(["query", "tests", "--gpus", "4", "--format", "ids", "--root", str(project)]) == 0
    assert capsys.readouterr().out == "tests/test_four.py::test_four\n"
    main(["gen", "--root", str(project)])
    page = (project / "docs/suite/tests/test_four.py_docs.md").read_text()
    assert "needs 4 GPUs" in page
    assert "site-packages" not in page


def test_projects_of_one_repository(tmp_path, capsys):
    """Where one book is made of several projects, each of their packages is found where it lies, around its tests."""
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    for name in ("one", "two"):
        write(tmp_path / name, {f"src/pk_{name}/__init__.py": "", f"tests/test_{name}.py": f"import pk_{name}\n\n\ndef test(): ...\n"})
    write(tmp_path / "python", {"lib_it.py": "", "checks/test_it.py": "import lib_it\n\n\ndef test(): ...\n"})
    assert main(["init", "one/tests", "two/tests", "python/checks", "--root", str(tmp_path)]) == 0
    assert load(tmp_path).package_path == ("one/src", "python", "two/src")
    assert "PYTHONPATH=python:one/src:two/src pytest" in capsys.readouterr().out


PACKAGE = """\
[project]
name = "{name}"
version = "1"
requires-python = ">=3.{minor}"
[project.optional-dependencies]
test = ["pytest"]
[tool.pytest.ini_options]
pythonpath = ["src"]
"""


@pytest.fixture
def packages(tmp_path) -> Path:
    """A repository of two packages, with data that looks like a third one."""
    root = tmp_path / "packages"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "remote", "add", "origin", "https://github.com/people/packages.git")
    for name, minor in (("alpha", 10), ("beta", 11)):
        test = f"from pk_{name} import name\n\n\ndef test_{name}():\n    assert name == {name!r}\n"
        write(
            root / "pk" / name,
            {
                "pyproject.toml": PACKAGE.format(name=name, minor=minor),
                f"src/pk_{name}/__init__.py": f"name = {name!r}\n",
                f"tests/test_{name}.py": test,
            },
        )
    write(root, {"pk/beta/tests/data/setup.py": "", "pk/beta/tests/data/test_data.py": "def test(): ...\n"})
    return root


@pytest.mark.parametrize("sources", [(), ("pk",), ("pk/alpha", "pk/beta"), ("pk/alpha/tests", "pk/beta/tests")])
def test_packages_of_one_repository_are_installed(packages, sources):
    """Where one book is made of several packages, CI installs each with its extra for tests, on a Python that suits them all."""
    said = init(packages, *sources).stdout
    assert "install   pk/alpha/pyproject.toml with the extra test and pk/beta/pyproject.toml with the extra test\n" in said
    assert "Python    3.12 (requires-python is >=3.10,>=3.11)" in said
    assert "PYTHONPATH" not in said
    workflow = (packages / ".github/workflows/book.yml").read_text()
    assert "python -m pip install --editable 'pk/alpha[test]' --editable 'pk/beta[test]'\n" in workflow
    is_read = "package   read in pk/alpha/src and pk/beta/src, for" in said
    assert is_read == (sources in ((), ("pk/alpha/tests", "pk/beta/tests")))


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        (
            {"requirements.txt": "numpy\n", "pk/a/setup.py": "", "pk/a/requirements-dev.txt": "a\n"},
            ["python -m pip install --requirement requirements.txt --editable pk/a --requirement pk/a/requirements-dev.txt"],
        ),
        (
            {"pk/a/pyproject.toml": '[project]\nname = "a"\n[dependency-groups]\ntest = []\n'},
            ['python -m pip install --upgrade "pip>=25.1"', "python -m pip install --editable pk/a --group pk/a/pyproject.toml:test"],
        ),
        ({"uv.lock": "", "pk/a/setup.py": ""}, ["python -m pip install uv", "uv sync --frozen", "uv pip install --editable pk/a"]),
        ({"setup.py": "", "pk/a/setup.py": ""}, ["python -m pip install --editable ."]),
        ({}, []),
    ],
)
def test_how_packages_of_one_repository_are_installed(tmp_path, files, commands):
    """Files of requirements and groups of a package are taken below its folder; where the root is a package, that is what is installed."""
    declared = Declared(tmp_path)
    write(tmp_path, files)
    install = install_for_tests(declared, projects=projects_of(declared, ["pk/a/tests/test_a.py", "test_b.py"]))
    assert install.commands[: len(commands)] == tuple(commands)
    assert len(install.commands) == len(commands) + 1


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_the_jobs_of_another_project_are_named(tmp_path, capsys, forge):
    """The second project of a repository hears whose site is published, and how one book is made of both."""
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    for name in ("one", "two"):
        write(tmp_path / name, {"pyproject.toml": "", f"tests/test_{name}.py": "def test(): ...\n"})
    assert main(["init", "--root", str(tmp_path / "one"), "--ci", forge]) == 0
    assert main(["init", "--root", str(tmp_path / "two"), "--ci", forge]) == 1
    said = capsys.readouterr().out
    assert "it publishes the book in one/, and a repository has one site: at its top, rankbook init FOLDER FOLDER makes one book" in said


def test_what_has_a_page_is_no_package(project):
    """Modules among the sources are read as such, and `package-path` names no folder for them."""
    write(project, {"checks/__init__.py": "", "checks/test_a.py": "from checks import b\n\n\ndef test_a(): ...\n", "checks/b.py": ""})
    assert main(["init", "checks", "--root", str(project)]) == 0
    assert load(project).package_path == ()


def test_without_gpus_there_is_no_job_for_them(project):
    """A suite that needs no GPU gets no job that waits for a runner for ever."""
    init(project, "--ci", "github", "--ci", "gitlab")
    assert "gpu" not in yaml.safe_load((project / ".github/workflows/book.yml").read_text())["jobs"]
    assert "book-gpu" not in yaml.safe_load((project / ".gitlab/book.gitlab-ci.yml").read_text())


def test_pages_that_git_leaves_out_are_generated_in_ci(project):
    """With `--ignore-pages` Git ignores the pages, CI generates them, and there is no drift to look for; a second run knows."""
    init(project, "--ignore-pages")
    assert "/docs/suite/" in (project / ".gitignore").read_text().splitlines()
    text = (project / ".github/workflows/book.yml").read_text()
    assert "rankbook check" not in text
    assert "rankbook gen" in text
    assert "written" not in init(project).stdout


def test_a_project_below_the_top_of_its_repository(tmp_path):
    """The workflow stands at the top, where GitHub looks for it, and works in the project's folder."""
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    write(
        tmp_path,
        {
            "part/pyproject.toml": PYPROJECT,
            "part/tests/test_ring.py": TEST,
            ".pre-commit-config.yaml": "repos:\n- repo: local\n  hooks: []\n",
        },
    )
    done = init(tmp_path / "part", "--ci", "github", "--ci", "gitlab")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "part" / "mkdocs.yml").is_file()
    workflow = yaml.safe_load((tmp_path / ".github/workflows/book.yml").read_text())
    assert workflow["defaults"]["run"]["working-directory"] == "part"
    paths = [step["with"]["path"] for job in workflow["jobs"].values() for step in job["steps"] if "path" in step.get("with", {})]
    assert [path for path in paths if not path.startswith("part/")] == ["${{ runner.temp }}/artifact.tar"]
    assert len(paths) > 4
    assert "entry: rankbook check --staged --root part" in (tmp_path / ".pre-commit-config.yaml").read_text()
    assert "cd part" in (tmp_path / ".gitlab/book.gitlab-ci.yml").read_text()


def test_a_hook_that_cannot_be_added_is_told_as_it_would_be_written(tmp_path):
    """Below the top of its repository a project is found by its folder, by hand as well."""
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    write(tmp_path, {"libs/my ring/pyproject.toml": "", "libs/my ring/tests/test_a.py": TEST, ".pre-commit-config.yaml": "repos: []\n"})
    done = init(tmp_path / "libs/my ring")
    assert done.returncode == 1
    hint = "add a local hook with the entry `rankbook check --staged --root 'libs/my ring'` and `always_run: true`"
    assert f"left      ../../.pre-commit-config.yaml: `repos` is no list with entries; {hint}" in done.stdout


def follow(root: Path, said: str) -> None:
    """Run the commands that `rankbook init` has printed, as a person does; the one that serves the site builds it instead."""
    lines = [line.strip() for line in said[said.index("\nnext\n") :].splitlines() if line.startswith("  ")]
    assert "mkdocs serve" in lines
    script = "\n".join(lines).replace("mkdocs serve", "mkdocs build --strict").replace("git commit", "git commit --quiet --message Book")
    run(root, "git", "config", "user.email", "a@example.org")
    run(root, "git", "config", "user.name", "A")
    run(root, "bash", "-e", "-c", script)


@pytest.mark.parametrize(
    ("place", "where", "options"),
    [
        ("libs/a", "", ("--root", "libs/a")),
        ("libs/a", "libs/a/tests", ()),
        ("a b/\u00fc'$x", "a b/\u00fc'$x", ()),
    ],
)
def test_the_commands_that_come_next_work_where_they_are_printed(tmp_path, place, where, options):
    """At the top of a repository, in a project below it, and in its tests: Git takes the paths, the tests pass, the site is built."""
    pytest.importorskip("material")
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    write(tmp_path / place, {"pyproject.toml": "", "tests/test_one.py": "def test_one():\n    assert 1\n"})
    done = init(tmp_path / where, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    follow(tmp_path / where, done.stdout)
    assert (tmp_path / place / "site/index.html").is_file()
    kept = git(tmp_path, "ls-files", "-z").split("\0")
    assert {".github/workflows/book.yml", f"{place}/docs/suite/index.md".lstrip("/"), f"{place}/mkdocs.yml".lstrip("/")} <= set(kept)


def test_paths_are_those_of_the_folder_where_init_runs(tmp_path):
    """Below the top of a repository, each path that is printed leads to its file, also the one that `--force` is to be given."""
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    write(tmp_path, {"a/pyproject.toml": "", "a/tests/test_one.py": TEST, ".github/workflows/book.yml": "name: Mine\n"})
    done = init(tmp_path / "a")
    assert (
        "left      ../.github/workflows/book.yml: it is there, and is not replaced without --force ../.github/workflows/book.yml"
        in done.stdout
    )
    assert "changed   pyproject.toml: [tool.rankbook] added" in done.stdout
    assert "  git add pyproject.toml mkdocs.yml docs/index.md .gitignore docs/suite && git commit" in done.stdout
    again = init(tmp_path / "a", "--force", "../.github/workflows/book.yml")
    assert "changed   ../.github/workflows/book.yml: replaced" in again.stdout
    assert (
        "  git add pyproject.toml mkdocs.yml docs/index.md .gitignore ../.github/workflows/book.yml docs/suite && git commit"
        in again.stdout
    )


def test_files_that_git_ignores_are_told(project):
    """A front page that never reaches CI is named with what hides it and what to do; the commands name only what Git takes."""
    write(project, {".gitignore": "*.pyc\ndocs/\n", "tests/test_ring.py": "def test_one():\n    assert 1\n"})
    done = init(project)
    assert done.returncode == 1
    assert "note      Git ignores the pages in docs/suite/: CI generates them, and looks for no drift" in done.stdout
    assert "left      docs/index.md: Git ignores it by docs/ (.gitignore:2), and CI needs it; take that line out, or run" in done.stdout
    follow(project, done.stdout)
    run(project, "git", "add", "--force", "docs/index.md")
    assert init(project).returncode == 0


def test_without_a_repository_nothing_is_to_be_committed(tmp_path):
    """Where there is no repository, no command of Git comes next."""
    write(tmp_path, {"test/test_ring.py": "def test_one():\n    assert True\n"})
    assert "git add" not in init(tmp_path).stdout


# Files that are there and are added to

MKDOCS = """\
site_name: Mine  # the name
extra:
  version: !ENV [VERSION, "1.0"]
plugins:
{plugins}
# Emoji need code.
markdown_extensions:
  - pymdownx.emoji:
      emoji_index: !!python/name:material.extensions.emoji.twemoji
nav:
  - Home: index.md
  # The guide
  - Guide:
      - guide/a.md  # first

      - guide/b.md
"""


@pytest.mark.parametrize(
    "plugins",
    [
        "  - search",
        "- search\n- tags  # last\n# below",
        "  - search:\n      lang: en\n\n",
        "  [search, tags]",
        "  [\n    search,  # one\n    tags\n  ]",
        "  search: {}\n  tags:",
        "  search:\n    lang: en\n  tags: {}",
        "  - macros:\n      text: |\n        some\n        text\n",
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_existing_site_gets_the_plugin_and_an_entry(project, plugins, newline):
    """Plugin and navigation are added; all else, comments and custom tags included, stands as it stood; a second run adds nothing."""
    before = MKDOCS.format(plugins=plugins).replace("\n", newline)
    write(project, {"mkdocs.yml": before, "docs/index.md": "# Mine\n"})
    done = init(project)
    assert done.returncode == 0, done.stdout + done.stderr
    after = (project / "mkdocs.yml").read_bytes().decode()
    assert is_grown(before, after)
    assert after.count("\n") == after.count(newline)
    assert after.count("rankbook") == 1
    nodes = yaml.compose(after.replace("!!python/name:", "!x:").replace("\r\n", "\n"))
    top = {key.value: value for key, value in nodes.value}
    assert "rankbook" in {
        (each[0] if isinstance(each, tuple) else each).value for each in top["plugins"].value if not isinstance(each, yaml.MappingNode)
    }
    assert top["nav"].value[-1].value[0][1].value == "suite/index.md"
    init(project)
    assert (project / "mkdocs.yml").read_bytes().decode() == after


def is_grown(before: str, after: str) -> bool:
    """Say whether a text arises from another by inserting only."""
    rest = iter(after)
    return all(char in rest for char in before)


def run(root: Path, *words: str) -> str:
    """Run a command as a person does; give what it prints, and make sure that it succeeds."""
    path = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=root, env=os.environ | path, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("settings", "added"),
    [
        ("site_name: Mine\n", "the plugin and the extensions pymdownx.superfences and pymdownx.highlight added"),
        (
            "site_name: Mine\ntheme: material\nplugins: [search]\nmarkdown_extensions:\n  toc: {}  # ours\n  admonition: {}\n",
            "the plugin and the extension pymdownx.superfences added",
        ),
        ("site_name: Mine\nmarkdown_extensions:\n- pymdownx.superfences\n", "the plugin added"),
    ],
)
def test_what_init_prints_works_for_an_existing_site(project, settings, added):
    """The commands that come next succeed: the site's Markdown tells the listings, and the site is built strictly."""
    pytest.importorskip("material")
    write(project, {"mkdocs.yml": settings, "docs/index.md": "# Mine\n", "tests/test_ring.py": "def test_one():\n    assert 1\n"})
    done = init(project)
    assert (done.returncode, f"changed   mkdocs.yml: {added}" in done.stdout) == (0, True), done.stdout
    assert is_grown(settings, (project / "mkdocs.yml").read_text())
    assert rankbook(project, "gen").returncode == 0
    assert "2 passed, 0 failed" in run(project, "pytest", "--doctest-glob=*.md", "docs/suite/")
    run(project, "mkdocs", "build", "--strict")
    assert "unchanged mkdocs.yml" in init(project).stdout


def test_fences_of_an_existing_site_keep_their_colours(project):
    """A theme that colours listings in the browser finds them as before."""
    write(project, {"mkdocs.yml": "site_name: Mine\n", "docs/index.md": "# Mine\n\n```python\nx = 1\n```\n"})
    init(project)
    run(project, "mkdocs", "build", "--strict")
    assert '<code class="language-python">x = 1' in (project / "site/index.html").read_text()


CLASH = "docs/suite/tests/doc.md and docs/suite/tests/doc/index.md would have the same address; write `use_directory_urls: false` into it"


@pytest.mark.parametrize(
    ("settings", "page", "said", "is_new"),
    [
        ("site_name: Mine\n", "# Mine\n", f"left      mkdocs.yml: {CLASH}", True),
        ("site_name: Mine\nuse_directory_urls: true\n", "", f"left      mkdocs.yml: {CLASH}", False),
        ("site_name: Mine\nuse_directory_urls: false\n", "# Mine\n", "", False),
        ("site_name: Mine\n", "", "", True),
    ],
)
def test_pages_that_would_share_an_address(project, settings, page, said, is_new):
    """Addresses are changed where no page of a person would move, and what remains to be done is told with its line and the status."""
    write(project, {"tests/doc/test_ring.py": TEST, "mkdocs.yml": settings} | ({"docs/index.md": page} if page else {}))
    done = init(project)
    assert (done.returncode, said in done.stdout) == (1 if said else 0, True), done.stdout
    text = (project / "mkdocs.yml").read_text()
    assert ("use_directory_urls: false" in text) != bool(said)
    if said:
        text = text.replace("use_directory_urls: true\n", "")
        (project / "mkdocs.yml").write_text(f"{text}\nuse_directory_urls: false\n")
    if is_new:  # the others have the settings of one of these now
        run(project, "mkdocs", "build", "--strict")


@pytest.mark.parametrize(
    ("settings", "base", "left"),
    [
        ("INHERIT: base.yml\n", "plugins: [search]\n", ["its plugins are inherited from another file; add `rankbook` to its plugins"]),
        ("INHERIT: base.yml\n", "plugins: [search, rankbook]\nmarkdown_extensions: [pymdownx.superfences]\n", []),
        ("INHERIT: base.yml\n", "site_author: me\n", []),
        (
            "INHERIT: base.yml\n",
            "plugins: [rankbook]\nmarkdown_extensions: [toc]\nnav: [index.md]\n",
            [
                "its markdown_extensions are inherited from another file; add `pymdownx.superfences: {preserve_tabs: true}` to its",
                "its nav is inherited from another file; add `Test suite: suite/index.md` to its nav",
            ],
        ),
        ("INHERIT: missing.yml\nplugins: [search]\nnav: [index.md]\n", "", ["its markdown_extensions are inherited from another file"]),
        (
            "plugins: !ENV [X, [search]]\n",
            "",
            ["the tag !ENV makes something else of `plugins` than its entries; add `rankbook` to its plugins"],
        ),
        ("plugins: []\n", "", ["`plugins` is no list with entries; add `rankbook` to its plugins"]),
        ("markdown_extensions: !ENV [X]\n", "", ["add `pymdownx.superfences: {preserve_tabs: true}` to its markdown_extensions"]),
        ("- a list\n", "", ["it is no table of settings; add `rankbook` to its plugins and add `pymdownx.superfences"]),
        (
            "plugins: &a\n  - search\n  - *a\n",
            "",
            ["it is nested too deeply, or without end by its aliases; add `rankbook` to its plugins and add `pymdownx.superfences"],
        ),
        ("extra: " + "[" * 600 + "]" * 600 + "\n", "", ["it is nested too deeply; add `rankbook` to its plugins"]),
        (
            "a0: &a0 [x]\n" + "".join(f"a{n + 1}: &a{n + 1} [*a{n}, *a{n}]\n" for n in range(50)),
            "",
            ["it is too large, with what its aliases repeat; add `rankbook` to its plugins"],
        ),
        ("a: [\n", "", ["it is no valid YAML; add `rankbook` to its plugins and add `pymdownx.superfences"]),
    ],
)
def test_what_cannot_be_added_to_a_site_is_told(project, settings, base, left):
    """Each part that cannot be added is named with what to write, and the status says so; what can be added is."""
    write(project, {"mkdocs.yml": settings, "base.yml": base, "docs/index.md": "# Mine\n"})
    done = init(project)
    told = [line for line in done.stdout.splitlines() if line.startswith("left      mkdocs.yml: ")]
    assert done.returncode == bool(left), done.stdout
    assert all(any(sentence in line for line in told) for sentence in left), done.stdout
    assert bool(told) == bool(left)
    after = (project / "mkdocs.yml").read_text()
    assert is_grown(settings, after)
    assert "!ENV [X, rankbook]" not in after
    init(project)
    assert (project / "mkdocs.yml").read_text() == after


def test_a_file_in_the_place_of_the_folder_of_pages(project):
    """Where `docs` is a file, it belongs to another tool, and the book gets its own folder."""
    write(project, {"docs": "x\n"})
    assert init(project).returncode == 0
    assert yaml.safe_load((project / "mkdocs.yml").read_text())["docs_dir"] == "book"
    assert (project / "docs").read_text() == "x\n"
    assert "1 source, " in rankbook(project, "gen").stdout


@pytest.mark.parametrize(
    ("files", "taken"),
    [
        ({"docs": "", "book": "", "rankbook-docs": ""}, "rankbook-docs"),
        ({"docs": "", "mkdocs.yml": "site_name: a\n"}, "docs"),
    ],
)
def test_without_a_folder_for_pages_nothing_is_written(project, files, taken):
    """A file that leaves no place for them is named before anything is written."""
    write(project, files)
    before = texts(project)
    done = init(project)
    assert (done.returncode, texts(project)) == (2, before)
    assert done.stderr.endswith(f"{project / taken}: the folder of the site's pages is a file; move it\n")


def test_a_file_in_the_place_of_a_folder_for_ci(project):
    """What cannot be written is left, and all else is written."""
    write(project, {".github": "x\n"})
    done = init(project)
    assert "left      .github/workflows/book.yml: a file stands where its folder is to be\n" in done.stdout
    assert (done.returncode, (project / "mkdocs.yml").is_file()) == (1, True)


@pytest.mark.parametrize(
    ("built", "lines"),
    [("public", {"/public/"}), ("out/html/", {"/out/html/"}), ("../elsewhere", set()), ("!ENV [SITE, public]", {"/site/"})],
)
def test_the_site_is_ignored_where_it_is_built(project, built, lines):
    """The folder that the site's settings name stays out of Git; one outside of the project needs no line."""
    write(project, {"mkdocs.yml": f"site_name: Mine\nsite_dir: {built}\n"})
    init(project)
    assert set((project / ".gitignore").read_text().splitlines()[1:]) - {""} == {
        "# rankbook: the record of runs, the built site",
        "/.rankbook/",
        *lines,
    }


@pytest.mark.parametrize(
    ("there", "is_added"), [("", True), ("*.so\n", True), ("__pycache__\n", False), ("*.py[cod]\n", False), ("**/__pycache__/\n", False)]
)
def test_what_python_compiles_stays_out_of_git(project, there, is_added):
    """The proof runs Python in the tests' folders; nothing is added where Git leaves that out already, or where a second run looks."""
    write(project, {".gitignore": there})
    assert (", __pycache__/ added" in init(project).stdout) == is_added
    assert ("__pycache__/" in (project / ".gitignore").read_text().removeprefix(there).splitlines()) == is_added
    assert "unchanged .gitignore" in init(project).stdout
    write(project, {"tests/__pycache__/test_ring.cpython-313-pytest-9.pyc": ""})
    assert "pycache" not in git(project, "status", "--porcelain", "--untracked-files=all")


def test_what_was_found_for_an_existing_site(project):
    """Its own requirements are installed, and only the generated pages are executed: the others were not written as listings."""
    write(
        project, {"mkdocs.yml": "site_name: Mine\ndocs_dir: manual/\n", "manual/index.md": "# Mine\n", "requirements-docs.txt": "mkdocs\n"}
    )
    init(project)
    text = (project / ".github/workflows/book.yml").read_text()
    assert "python -m pip install --requirement requirements-docs.txt" in text
    assert "pytest --doctest-glob='*.md' manual/suite/" in text
    assert load(project).out == "manual/suite"


GROUP_DOCS = '[project]\nname = "a"\nversion = "1"\n[dependency-groups]\ndocs = ["mkdocs"]\n'
FOR_GROUPS = 'python -m pip install --upgrade "pip>=25.1"'
BY_PIP = 'python -m pip install "$RANKBOOK"'
TOLD = (
    "nothing says what the plugins of mkdocs.yml need: CI asks `mkdocs get-deps`, which knows no versions, no hooks, and no plugins outside"
)


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        ({"pyproject.toml": GROUP_DOCS}, [FOR_GROUPS, "python -m pip install . --group docs", BY_PIP]),
        (
            {"pyproject.toml": "[dependency-groups]\ndev = []\nmkdocs = []\n"},
            [FOR_GROUPS, "python -m pip install --group mkdocs", BY_PIP],
        ),
        (
            {"pyproject.toml": GROUP_DOCS, "uv.lock": ""},
            ["python -m pip install uv", "uv sync --frozen --group docs", 'uv pip install "$RANKBOOK"'],
        ),
        (
            {"pyproject.toml": "[tool.poetry]\nname = 'a'\n[tool.poetry.group.docs.dependencies]\nmkdocs = '*'\n", "poetry.lock": ""},
            [
                "python -m pip install poetry",
                "poetry config virtualenvs.in-project true --local",
                "poetry install --no-interaction --with docs",
                'poetry run pip install "$RANKBOOK"',
            ],
        ),
        ({"pyproject.toml": PYPROJECT + "site = []\n"}, ["python -m pip install '.[site]'", BY_PIP]),
        (
            {"pyproject.toml": PYPROJECT + "docs = []\n", "uv.lock": ""},
            ["python -m pip install uv", "uv sync --frozen --extra docs", 'uv pip install "$RANKBOOK"'],
        ),
        (
            {"pyproject.toml": GROUP_DOCS, "docs/requirements.txt": ""},
            ["python -m pip install --requirement docs/requirements.txt", BY_PIP],
        ),
        ({"pyproject.toml": "[tool.poetry.group.docs.dependencies]\n"}, [BY_PIP, "python -m pip install $(mkdocs get-deps)"]),
        ({}, [BY_PIP, "python -m pip install $(mkdocs get-deps)"]),
    ],
)
def test_how_a_site_that_was_there_is_installed(project, files, commands):
    """What lists its requirements is taken: a file, an extra or a group; where nothing does, MkDocs guesses, and that is told."""
    write(project, {"mkdocs.yml": "site_name: a\nplugins: [search, mkdocstrings]\n", "docs/index.md": "# A\n", **files})
    said = init(project, "--ci", "github", "--ci", "gitlab").stdout
    steps = yaml.safe_load((project / ".github/workflows/book.yml").read_text())["jobs"]["site"]["steps"]
    path = ['echo "$PWD/.venv/bin" >> "$GITHUB_PATH"'] if {"uv.lock", "poetry.lock"} & set(files) else []
    assert next(step["run"].splitlines() for step in steps if step.get("name") == "Install") == [*commands, *path]
    script = yaml.safe_load((project / ".gitlab/book.gitlab-ci.yml").read_text())["book-site"]["script"]
    assert script[: len(commands)] == commands
    assert (TOLD in said) == ("get-deps" in commands[-1])


@pytest.mark.parametrize("lock", [{}, {"uv.lock": ""}])
def test_a_site_with_its_project_gets_torch_for_the_cpu(project, lock):
    """The machine that builds it has no GPU; which torch a lock file means is the lock file's to say."""
    torch = {"tests/test_sum.py": "import torch\n\n\ndef test_sum(): ...\n", "pyproject.toml": GROUP_DOCS}
    write(project, {"mkdocs.yml": "site_name: a\n", "docs/index.md": "# A\n", **torch, **lock})
    init(project, "--ci", "github", "--ci", "gitlab")
    github = yaml.safe_load((project / ".github/workflows/book.yml").read_text())["jobs"]["site"].get("env", {})
    gitlab = yaml.safe_load((project / ".gitlab/book.gitlab-ci.yml").read_text())["book-site"].get("variables", {})
    assert list(github) == list(gitlab) == ([] if lock else ["PIP_EXTRA_INDEX_URL"])


@pytest.mark.parametrize(
    ("settings", "is_told"),
    [("theme: material\n", False), ("plugins: [search, rankbook]\n", False), ("plugins: [search]\nhooks: [a.py]\n", True)],
)
def test_a_site_without_plugins_of_its_own_needs_no_list(project, settings, is_told):
    """What such a site is built with comes with rankbook, or is known to MkDocs."""
    write(project, {"mkdocs.yml": f"site_name: a\n{settings}", "docs/index.md": "# A\n"})
    assert (TOLD in init(project).stdout) == is_told


@pytest.mark.parametrize("named", [".", "./", "..", "../elsewhere", "/elsewhere"])
def test_pages_that_lie_in_no_folder_of_the_project(project, named):
    """Nothing is written, and nothing beside the project or at the root of the file system is taken for the folder of the pages."""
    write(project, {"mkdocs.yml": f"site_name: Mine\ndocs_dir: {named}\n"})
    before = texts(project)
    done = init(project)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("mkdocs.yml: docs_dir is no folder below the project; give the pages one: docs_dir: docs\n")
    assert texts(project) == before


def test_a_folder_of_pages_may_be_written_in_full(project):
    """An absolute path inside of the project is that folder."""
    write(project, {"mkdocs.yml": f"site_name: Mine\ndocs_dir: {project}/manual\nsite_dir: {project}/public\n", "manual/index.md": "# M\n"})
    assert "pages in manual/, the suite in manual/suite/" in init(project, "--dry-run").stdout


@pytest.mark.parametrize("config", ["{site_name: x, plugins: [search]}\n", "site_name: x\n...\n"])
def test_yaml_in_another_style_is_not_called_broken(project, config):
    """A file that MkDocs takes, and into which nothing can be put, is no invalid YAML."""
    write(project, {"mkdocs.yml": config})
    assert "left      mkdocs.yml: nothing can be added at its end; add" in init(project).stdout
    assert yaml.safe_load((project / "mkdocs.yml").read_text())["site_name"] == "x"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n",
        "[tool.black]\nline-length = 99 # wide",
        "[tool]\nother = {a = 1}\n",
        "x = 1\r\n[tool.ruff]\r\nselect = []\r\n",
    ],
)
def test_settings_are_added_at_the_end(project, text):
    """The table is added, in the file's own newlines; what was there stays."""
    write(project, {"pyproject.toml": text})
    done = init(project)
    assert done.returncode == 0, done.stdout + done.stderr
    after = (project / "pyproject.toml").read_bytes().decode()
    assert after.startswith(text.rstrip())
    assert after.count("\n") == after.count("\r\n") or "\r\n" not in text
    assert load(project).sources == ("tests",)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('[tool.rankbook]\ntitle="a"\n', '[tool.rankbook]\nsources = ["tests"]\ntitle="a"\n'),
        ('[ tool . rankbook ]  # ours\ntitle="a"\n\n[tool.x]', '[ tool . rankbook ]  # ours\nsources = ["tests"]\ntitle="a"\n\n[tool.x]'),
        ("[tool.rankbook]", '[tool.rankbook]\nsources = ["tests"]\n'),
        (
            '[tool.rankbook.requirements]\nx = { gpus = "2" }\n',
            '[tool.rankbook.requirements]\nx = { gpus = "2" }\n\n[tool.rankbook]\nsources = ["tests"]\n',
        ),
        ('[tool.rankbook]\r\ntitle="a"\r\n', '[tool.rankbook]\r\nsources = ["tests"]\r\ntitle="a"\r\n'),
    ],
)
def test_a_table_of_settings_without_sources_gets_them(project, text, after):
    """What the table lacks is added below its heading; the pages are made then."""
    write(project, {"pyproject.toml": text})
    done = init(project)
    assert (done.returncode, "changed   pyproject.toml: `sources` added" in done.stdout) == (0, True), done.stdout
    assert (project / "pyproject.toml").read_bytes().decode() == after
    assert "1 source, " in rankbook(project, "gen").stdout


def test_a_table_of_settings_that_cannot_be_added_to_is_told(project):
    """The line that is to be written is named, and the status says that a hand is needed."""
    write(project, {"pyproject.toml": '[tool]\nrankbook = {title = "a"}\n'})
    done = init(project)
    assert done.returncode == 1
    assert (
        'left      pyproject.toml: its [tool.rankbook] has no `sources`; write into its [tool.rankbook]: sources = ["tests"]' in done.stdout
    )
    assert (project / "pyproject.toml").read_text() == '[tool]\nrankbook = {title = "a"}\n'


def test_the_folder_of_the_pages_that_the_settings_name(project):
    """The site, the front page and CI take the folder that the settings name."""
    write(project, {"pyproject.toml": '[tool.rankbook]\nsources = ["tests"]\nout = "manual/a b"\n'})
    assert init(project).returncode == 0
    site = yaml.safe_load((project / "mkdocs.yml").read_text())
    assert (site["docs_dir"], site["nav"][1]) == ("manual", {"Test suite": "a b/index.md"})
    run(project, "mkdocs", "build", "--strict")
    assert (project / "site/a b/index.html").is_file()


@pytest.mark.parametrize(("named", "config"), [("pages", {"mkdocs.yml": "site_name: a\n"}), (".", {})])
def test_pages_outside_of_the_site_are_refused(project, named, config):
    """Where the settings keep the pages out of the site, one sentence says so, and nothing is written."""
    write(project, {"pyproject.toml": f'[tool.rankbook]\nsources = ["tests"]\nout = "{named}"\n', **config})
    before = texts(project)
    done = init(project)
    assert (done.returncode, texts(project)) == (2, before)
    assert f"the setting 'out' is '{named}', outside of the site's folder docs/; write out = \"docs/suite\"" in done.stderr
    write(project, {"pyproject.toml": '[tool.rankbook]\nsources = ["tests"]\nout = "../pages"\n'})
    done = init(project)
    assert done.returncode == 2
    assert "the folder of the pages lies outside of the project" in done.stderr


@pytest.mark.parametrize("text", ["tool = {black = {}}\n", "[tool]\nrankbook = 1 1\n"])
def test_settings_that_cannot_be_added_are_told(project, text):
    """A file in which the table cannot stand, or that is broken, is left."""
    write(project, {"pyproject.toml": text})
    done = init(project, "tests")
    assert done.returncode in (1, 2)
    assert (project / "pyproject.toml").read_text() == text


def test_a_pipeline_of_gitlab_gets_an_include(project):
    """The jobs stand in a file of their own; the pipeline includes it, and the jobs take a stage that it has."""
    pipeline = "# Ours\nstages: [build, publish]\ninclude:\n  - local: /other.yml  # theirs\nbuild:\n  script: make\n"
    write(project, {".gitlab-ci.yml": pipeline})
    git(project, "remote", "set-url", "origin", "git@gitlab.com:people/tiny-ring.git")
    done = init(project)
    assert done.returncode == 0, done.stdout
    after = (project / ".gitlab-ci.yml").read_text()
    assert is_grown(pipeline, after)
    assert yaml.safe_load(after)["include"] == [{"local": "/other.yml"}, {"local": ".gitlab/book.gitlab-ci.yml"}]
    assert yaml.safe_load((project / ".gitlab/book.gitlab-ci.yml").read_text())[".book"]["stage"] == "publish"
    assert not (project / ".github").exists()


KEYS = st.sampled_from(["a", "b", "plugins", "x y", '"q"'])
VALUES = st.recursive(
    st.one_of(st.text("ab:#-'\" \n{}[],|&*!\u00e9", max_size=8), st.integers(), st.booleans(), st.none()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(
    document=st.dictionaries(KEYS, VALUES, max_size=3),
    plugins=st.lists(VALUES, min_size=1, max_size=4),
    style=st.sampled_from([None, True, False]),
)
def test_an_item_is_added_to_any_list(document, plugins, style):
    """Whatever else a file holds, an item is added behind the list's last one and nothing else changes; or the edit is refused."""
    document = {**document, "plugins": plugins}
    text = yaml.safe_dump(document, default_flow_style=style, allow_unicode=True)
    try:
        after = yaml_edits.added(text, ("plugins",), "rankbook")
    except CannotEdit:
        assert style is not False
        return
    assert is_grown(text, after)
    assert yaml.safe_load(after) == {**document, "plugins": [*plugins, "rankbook"]}


# What is found out


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("https://github.com/a/b.git", "https://github.com/a/b"),
        ("https://user:token@github.com/a/b", "https://github.com/a/b"),
        ("git@github.com:a/b.git", "https://github.com/a/b"),
        ("ssh://git@git.example.org:2222/group/sub/b.git", "https://git.example.org/group/sub/b"),
        ("https://git.example.org:8443/a/b/", "https://git.example.org:8443/a/b"),
        ("git.example.org:a/b", "https://git.example.org/a/b"),
        ("https://git.sr.ht/~me/ring+c.x", "https://git.sr.ht/~me/ring+c.x"),
        ("https://dev.azure.com/me/My%20Ring/_git/r'&;$(x)", "https://dev.azure.com/me/My%20Ring/_git/r%27%26%3B%24%28x%29"),
        ("https://github.com/\u00e9/b", "https://github.com/%C3%A9/b"),
        ("git@ssh.dev.azure.com:v3/me/My%20Ring/r", "https://dev.azure.com/me/My%20Ring/_git/r"),
        ("ssh://git@ssh.dev.azure.com/v3/me/My%20Ring/r", "https://dev.azure.com/me/My%20Ring/_git/r"),
        ("me@vs-ssh.visualstudio.com:v3/me/rings/r", "https://dev.azure.com/me/rings/_git/r"),
        ("git@192.168.0.7:a/b.git", "https://192.168.0.7/a/b"),
        ("git@git.xn--p1b6ci4b4b3a.xn--11b5bs3a9aj6g:a/b.git", "https://git.xn--p1b6ci4b4b3a.xn--11b5bs3a9aj6g/a/b"),
        ("http://git:8080/a/b", "http://git:8080/a/b"),
    ],
)
def test_remotes(address, url):
    """A remote's address becomes the one that people open, without user or token."""
    assert Remote.of(address).url == url


@pytest.mark.parametrize("address", ["/srv/git/b.git", "../b", "file:///srv/b.git", "C", "https://github.com/", "javascript://a/b/c",
     'https://github.com/o"><script>alert(10)</script>/p', "https://github.com/o%22%3E/p", 'git@github.com:o"onload="x/p', "https://a.org/`x`/p",
     'https://evil"onload="x/o/p', "gh:a/b.git", "git@github.com-work:a/b.git", "ssh://git@work:22/a/b"])  # fmt: skip
def test_remotes_that_no_browser_opens(address):
    """A folder, a name of ssh's settings, or something else, is no remote to link to."""
    assert Remote.of(address) is None


KNOWS_WORK = """\
#!/bin/sh
case "$*" in
  "-G github.com-work" | "-G gh") echo user git; echo hostname ssh.github.com ;;
  "-G azure") echo hostname ssh.dev.azure.com ;;
  "-G six") echo hostname 2001:db8::1 ;;
  "-G "*) echo "hostname $2" ;;
esac
"""


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("git@github.com-work:people/ring.git", "https://github.com/people/ring"),
        ("gh:people/ring.git", "https://github.com/people/ring"),
        ("ssh://git@GH:2222/people/a%20ring", "https://github.com/people/a%20ring"),
        ("azure:v3/people/rings/ring", "https://dev.azure.com/people/rings/_git/ring"),
        ("git@gitlab.com-home:people/ring.git", ""),
        ("git@gitlab:people/ring.git", "https://gitlab/people/ring"),
        ("six:people/ring.git", "https://[2001:db8::1]/people/ring"),
    ],
)
def test_a_remote_with_a_name_of_the_settings_of_ssh(project, tmp_path, monkeypatch, address, url):
    """The host that ssh means by it is the one that people open; where it knows none, nothing leads there, and the forge is still told."""
    write(tmp_path, {"bin/ssh": KNOWS_WORK})
    (tmp_path / "bin/ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    git(project, "remote", "set-url", "origin", address)
    said = init(project).stdout
    assert yaml.safe_load((project / "mkdocs.yml").read_text()).get("repo_url", "") == url
    assert ("no browser opens the address of the remote origin: the site has no links to its repository" in said) == (not url)
    assert (project / (".gitlab-ci.yml" if "gitlab" in address else ".github")).exists()


@pytest.mark.parametrize(
    ("remote", "url"),
    [
        (Remote("github.com", "People/Ring"), "https://people.github.io/Ring/"),
        (Remote("github.com", "people/people.github.io"), "https://people.github.io/"),
        (Remote("gitlab.com", "group/sub/ring"), "https://group.gitlab.io/sub/ring/"),
        (Remote("git.example.org", "a/b"), ""),
        (Remote("github.com", "o'x/b"), ""),
        (Remote("gitlab.com", "group/a b"), "https://group.gitlab.io/a%20b/"),
    ],
)
def test_addresses_of_sites(remote, url):
    """The address of the site is that which the forge gives it."""
    assert remote.pages_url == url


@pytest.mark.parametrize(
    ("files", "sources", "include"),
    [
        ({"tests/test_a.py": ""}, ("tests",), ()),
        ({"test/a_test.py": "", "docs/x.py": ""}, ("test",), ()),
        (
            {"pytest.ini": "[pytest]\ntestpaths = checks docs\n", "checks/test_a.py": "", "docs/a.md": "", "tests/test_b.py": ""},
            ("checks",),
            (),
        ),
        (
            {
                "pyproject.toml": '[tool.pytest.ini_options]\ntestpaths = ["p/*/tests"]\n',
                "p/a/tests/test_a.py": "",
                "p/b/tests/test_b.py": "",
            },
            ("p/a/tests", "p/b/tests"),
            (),
        ),
        ({"pyproject.toml": '[tool.pytest]\ntestpaths = ["c"]\n', "c/test_a.py": ""}, ("c",), ()),
        (
            {"pytest.ini": "[pytest]\ntestpaths = pkg checks\n", "pkg/a.py": "", "pkg/tests/test_a.py": "", "checks/test_b.py": ""},
            ("pkg", "checks"),
            (),
        ),
        ({"pytest.ini": "[pytest]\ntestpaths = pkg\n", "pkg/a.py": "", "pkg/b/tests/test_a.py": ""}, ("pkg",), ("tests",)),
        (
            {"pytest.ini": "[pytest]\ntestpaths = pkg test\n", "pkg/tests/test_a.py": "", "test/test_b.py": ""},
            ("pkg", "test"),
            ("test", "tests"),
        ),
        ({"setup.cfg": "[tool:pytest]\ntestpaths =\n    c\n    ../out\n", "c/test_a.py": ""}, ("c",), ()),
        ({"tox.ini": "[pytest]\ntestpaths = c 'broken\n", "tests/test_a.py": ""}, ("tests",), ()),
        ({"pkg/core/tests/test_a.py": "", "pkg/tests/test_b.py": "", "pkg/core/a.py": ""}, ("pkg",), ("tests",)),
        ({"src/a_test.py": "", "test_b.py": ""}, ("src", "test_b.py"), ()),
        ({"a.py": ""}, (), ()),
    ],
)
def test_where_tests_are_found(tmp_path, files, sources, include):
    """pytest's own settings come first, then folders of the usual names, then wherever test modules are."""
    write(tmp_path, files)
    found = find_tests(Declared(tmp_path))
    assert (found.sources, found.include) == (sources, include)
    assert isinstance(found, Sources)


SETUP = """\
from setuptools import setup

loaded = load(name="another", python_requires=">=3.99")
extras = {"quality": []}
extras["testing"] = ["torch"]
setup(name="a", extras_require=extras, python_requires=">=3.12")
"""

EXTRAS_BY_A_CALL = """\
from setuptools import setup


def optional():
    test = ["pytest"]
    return {"fast": [], "dev": test}


setup(name="a", extras_require=optional())
"""
DYNAMIC = "[project]\nname = 'a'\ndynamic = ['optional-dependencies']\n"
BUILT_WITH_TORCH = """\
from setuptools import setup
from torch.utils.cpp_extension import CppExtension

setup(name="a", extras_require={"test": []}, ext_modules=[CppExtension("a.b", ["b.cpp"])])
"""


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        ({"pyproject.toml": PYPROJECT}, ["python -m pip install --editable '.[test]'"]),
        ({"setup.py": SETUP}, ["python -m pip install --editable '.[testing]'"]),
        ({"setup.cfg": "[metadata]\nname = a\n[options.extras_require]\ndev = pytest\n"}, ["python -m pip install --editable '.[dev]'"]),
        ({"requirements.txt": "numpy\n"}, ["python -m pip install --requirement requirements.txt"]),
        (
            {"pyproject.toml": "[tool.black]\n", "requirements.txt": "a\n", "requirements-test.txt": "b\n"},
            ["python -m pip install --requirement requirements.txt --requirement requirements-test.txt"],
        ),
        (
            {"requirements/requirements.txt": "a\n", "requirements/requirements-dev.txt": "b\n"},
            ["python -m pip install --requirement requirements/requirements.txt --requirement requirements/requirements-dev.txt"],
        ),
        ({"setup.py": "", "tests/requirements.txt": "b\n"}, ["python -m pip install --editable . --requirement tests/requirements.txt"]),
        (
            {"setup.py": "", "requirements.txt": "a\n", "requirements-dev.txt": "b\n"},
            ["python -m pip install --editable . --requirement requirements-dev.txt"],
        ),
        ({"setup.py": EXTRAS_BY_A_CALL}, ["python -m pip install --editable '.[dev]'"]),
        ({"pyproject.toml": DYNAMIC, "setup.py": EXTRAS_BY_A_CALL}, ["python -m pip install --editable '.[dev]'"]),
        (
            {"pyproject.toml": f"{DYNAMIC}[tool.setuptools.dynamic.optional-dependencies]\ntest = {{ file = ['test.txt'] }}\n"},
            ["python -m pip install --editable '.[test]'"],
        ),
        (
            {"setup.py": BUILT_WITH_TORCH},
            ["python -m pip install setuptools wheel torch", "python -m pip install --no-build-isolation --editable '.[test]'"],
        ),
        (
            {"setup.py": BUILT_WITH_TORCH, "pyproject.toml": "[build-system]\nrequires = ['setuptools<79', 'torch>=2']\n"},
            ["python -m pip install --editable '.[test]'"],
        ),
        (
            {"setup.py": BUILT_WITH_TORCH, "pyproject.toml": "[build-system]\nrequires = ['setuptools<79', 'torchvision']\n"},
            ["python -m pip install 'setuptools<79' torchvision torch", "python -m pip install --no-build-isolation --editable '.[test]'"],
        ),
        (
            {"pyproject.toml": '[project]\nname = "a"\nversion = "1"\n[dependency-groups]\ntest = ["pytest"]\n'},
            ['python -m pip install --upgrade "pip>=25.1"', "python -m pip install --editable . --group test"],
        ),
        (
            {"pyproject.toml": '[project]\nname = "a"\n[dependency-groups]\ndev = []\n', "uv.lock": ""},
            ["python -m pip install uv", "uv sync --frozen --group dev"],
        ),
        (
            {"pyproject.toml": "[tool.poetry]\nname = 'a'\n[build-system]\n[tool.poetry.group.test.dependencies]\n"},
            ["python -m pip install --editable ."],
        ),
        (
            {"pyproject.toml": "[tool.poetry]\nname = 'a'\n[tool.poetry.group.test.dependencies]\npytest = '*'\n", "poetry.lock": ""},
            [
                "python -m pip install poetry",
                "poetry config virtualenvs.in-project true --local",
                "poetry install --no-interaction --with test",
            ],
        ),
        ({}, []),
    ],
)
def test_how_projects_are_installed(tmp_path, files, commands):
    """The lock file says, or else extras, groups and lists of requirements; rankbook comes last."""
    write(tmp_path, files)
    *own, last = install_for_tests(Declared(tmp_path)).commands
    assert own == commands
    assert last.endswith('pip install "$RANKBOOK"')


LOCKED = {"uv.lock": '[[package]]\nname = "torch"\n', "pyproject.toml": '[project]\nname = "a"\n'}


@pytest.mark.parametrize(
    ("files", "found", "is_added"),
    [
        ({}, "nothing: pip installs rankbook with torch only", True),
        ({"pyproject.toml": PYPROJECT}, "pyproject.toml with the extra test and rankbook with torch", True),
        ({"pyproject.toml": PYPROJECT.replace('["pytest"]', '["torch"]')}, "pyproject.toml with the extra test", False),
        ({"pyproject.toml": PYPROJECT + 'gpu = ["torch"]\n'}, "pyproject.toml with the extra test and rankbook with torch", True),
        ({"pyproject.toml": '[project]\nname = "a"\ndependencies = ["torch>=2"]\n'}, "pyproject.toml", False),
        ({"pyproject.toml": '[project]\nname = "a"\n[dependency-groups]\ndev = ["torch"]\n'}, "pyproject.toml and the group dev", False),
        ({"setup.cfg": "[metadata]\nname = a\n[options]\ninstall_requires = torch\n"}, "setup.cfg", False),
        ({"setup.cfg": "[metadata]\nname = a\n[options.extras_require]\ngpu = torch\n"}, "setup.cfg and rankbook with torch", True),
        ({"setup.py": SETUP}, "setup.py with the extra testing", False),
        ({"requirements.txt": "-r more/base.txt\n", "more/base.txt": "torch\n"}, "requirements.txt", False),
        ({"requirements.txt": "numpy\n", "requirements-docs.txt": "torch\n"}, "requirements.txt and rankbook with torch", True),
        (LOCKED, "uv.lock", False),
        ({**LOCKED, "uv.lock": '[[package]]\nname = "torchvision"\n'}, "uv.lock and rankbook with torch", True),
        ({"pyproject.toml": "[tool.poetry]\nname = 'a'\n", "poetry.lock": ""}, "poetry.lock and rankbook with torch", True),
    ],
)
def test_who_brings_torch(tmp_path, files, found, is_added):
    """Where tests import torch, and nothing of what is installed names it, it comes with rankbook; a version that is named stays."""
    write(tmp_path, files)
    install = install_for_tests(Declared(tmp_path), ["torch"])
    assert (install.found, install.commands[-1].endswith('pip install "rankbook[torch]"')) == (found, is_added)
    assert any(command.endswith('pip install "$RANKBOOK"') for command in install.commands)


POETRY = {"pyproject.toml": "[tool.poetry]\nname = 'a'\n", "poetry.lock": ""}


@pytest.mark.parametrize(
    ("files", "variable"),
    [
        ({"pyproject.toml": PYPROJECT}, "PIP_EXTRA_INDEX_URL"),
        ({"requirements.txt": "torch\n"}, "PIP_EXTRA_INDEX_URL"),
        (LOCKED, ""),
        ({**LOCKED, "uv.lock": ""}, "UV_TORCH_BACKEND"),
        (POETRY, "PIP_EXTRA_INDEX_URL"),
        ({**POETRY, "poetry.lock": '[[package]]\nname = "torch"\n'}, ""),
    ],
)
def test_who_takes_torch_for_the_cpu(tmp_path, files, variable):
    """What installs torch is told to take that for the CPU in its own way; which torch a lock file means is the lock file's to say."""
    write(tmp_path, files)
    assert install_for_tests(Declared(tmp_path), ["torch"]).cpu_torch[0] == variable


@pytest.mark.parametrize(
    ("files", "paths"),
    [
        ({"pk/__init__.py": ""}, (".",)),
        ({"pk.py": ""}, (".",)),
        ({"src/pk/a.py": "", "other.py": ""}, (".", "src")),
        ({"pk/data.txt": "", "json/a.py": "", "tests/a.py": ""}, ()),
        ({"pk/__init__.py": "", "setup.py": SETUP}, ()),
    ],
)
def test_what_tests_import_of_the_folder_itself(tmp_path, files, paths):
    """Packages that lie beside the tests are found where nothing installs them."""
    write(tmp_path, files)
    assert install_for_tests(Declared(tmp_path), ["pk", "other", "json", "tests", "pytest", ""]).paths == paths


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("", "3.12"),
        ('[project]\nrequires-python = ">=3.13"\n', "3.14"),
        ('[project]\nrequires-python = ">=3.9,<3.12"\n', "3.11"),
        ('[project]\nrequires-python = ">=3.12.4"\n', "3.12"),
        ('[project]\nrequires-python = "<3.11"\n', ""),
        ('[project]\nrequires-python = "what"\n', "3.12"),
        ('[project]\nclassifiers = ["Programming Language :: Python :: 3.13", "Programming Language :: Python :: 3.9"]\n', "3.13"),
    ],
)
def test_which_python(tmp_path, text, version):
    """The newest that the project names, or a usual one that it allows."""
    write(tmp_path, {"pyproject.toml": text})
    assert python_for(Declared(tmp_path))[0] == version


@pytest.mark.parametrize(
    ("files", "is_named"),
    [
        ({"setup.py": SETUP}, True),
        ({"pyproject.toml": '[project]\ndependencies = ["torch>=2"]\n'}, True),
        ({"pyproject.toml": '[project]\noptional-dependencies = {test = ["torchaudio", "pytorch-lightning"]}\n'}, False),
        ({"requirements/base.txt": "numpy\ntorch==2.6 ; python_version > '3'\n"}, True),
        ({"requirements.txt": "pytest-torch\n"}, False),
    ],
)
def test_who_needs_torch(tmp_path, files, is_named):
    """torch among the requirements is found in each place where they are written, and not in the names of others."""
    write(tmp_path, files)
    assert Declared(tmp_path).names_torch is is_named


# What was written works


def test_files_for_ci_are_valid(project, tmp_path):
    """Workflow and pipeline fulfil the schemas of GitHub and GitLab, with and without GPUs and kept pages; so do this repository's."""
    pytest.importorskip("check_jsonschema")
    write(project, {".pre-commit-config.yaml": "repos: [{repo: local, hooks: []}]\n"})
    github, gitlab = sorted((REPOSITORY / ".github/workflows").glob("*.yml")), []
    for number, (source, arguments) in enumerate(product(({}, {"tests/test_gpus.py": GPU_TEST}), ((), ("--ignore-pages",)))):
        copy = shutil.copytree(project, tmp_path / f"copy{number}")
        write(copy, source)
        init(copy, "--ci", "github", "--ci", "gitlab", *arguments)
        github.append(copy / ".github/workflows/book.yml")
        gitlab += [copy / ".gitlab/book.gitlab-ci.yml", copy / ".gitlab-ci.yml"]
    for schema, paths in (("github-workflows", github), ("gitlab-ci", gitlab)):
        command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *paths]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_jobs_wait_for_jobs_that_are_there(project):
    """Each name in `needs` is a job, and each job of the workflow has a limit to what its token may do."""
    write(project, {"tests/test_gpus.py": GPU_TEST})
    init(project, "--ci", "github", "--ci", "gitlab")
    workflow = yaml.safe_load((project / ".github/workflows/book.yml").read_text())
    jobs = workflow["jobs"]
    needs = {need for job in jobs.values() for need in ([job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", []))}
    assert needs <= set(jobs)
    assert workflow["permissions"] == {"contents": "read"}
    assert [name for name, job in jobs.items() if "permissions" in job] == ["deploy"]
    pipeline = yaml.safe_load((project / ".gitlab/book.gitlab-ci.yml").read_text())
    assert {need["job"] for job in pipeline.values() for need in job.get("needs", ())} <= set(pipeline)


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    """Variables of a machine with nothing but Python, for which rankbook is a wheel of this repository."""
    pytest.importorskip("material", reason="the site needs the extra `site`")
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    return {**machine(tmp_path_factory.mktemp("machine")), "RANKBOOK": str(next(folder.glob("*.whl")))}


def committed(project: Path, *arguments: str) -> Path:
    """Do what `rankbook init` says is to be done next, up to the commit."""
    assert init(project, *arguments).returncode == 0
    assert rankbook(project, "gen").returncode == 0
    git(project, "add", ".")
    git(project, "commit", "--quiet", "--message", "A book")
    return project


def first_paragraph_of_badges(site: Path) -> str:
    """Read the page about the tests."""
    return (site / "suite" / "tests" / "test_ring.py_docs.html").read_text()


WHOLE_FOLDER = {"pyproject.toml": f'{PYPROJECT}\n[tool.rankbook]\nsources = ["."]\nexclude = ["docs", ".git*"]\n'}
PUSHED = {"github.ref": "refs/heads/main", "github.event_name": "push"}


def pages_of(root: Path) -> set[str]:
    """Name the pages about files."""
    return {path.relative_to(root).as_posix() for path in (root / "docs/suite").rglob("*_docs.md")}


def test_workflow_of_github_runs(project, tmp_path, environment):
    """Every step of the CPU path runs in a fresh clone: pages agree, the test is proved, and the site shows that it passed.

    Where the whole folder is the source, the job of the site makes pages of what Git keeps, and of no ledger that it has fetched.
    """
    write(project, {"tests/.settings/.ring.toml": "size = 3\n", **WHOLE_FOLDER})
    run = Run(committed(project), tmp_path / "run", environment, PUSHED)
    run.workflow((project / ".github/workflows/book.yml").read_text())
    assert run.results == dict.fromkeys(("drift", "cpu", "site", "deploy"), "success"), run.log
    assert ", 0 failed" in run.said["cpu"]
    assert "passed" in first_paragraph_of_badges(run.published)
    assert (run.published / "suite/tests/.settings/.ring.toml_docs.html").is_file()
    assert "ledger merge" in run.said["site"]
    assert pages_of(run.folder / "site") == pages_of(project)


def test_workflow_of_github_makes_pages_and_brings_torch(project, tmp_path, environment):
    """Pages that Git leaves out are made by the jobs; a suite that imports torch, which the project does not name, has that of rankbook."""
    write(project, {"tests/test_sum.py": "import torch\n\n\ndef test_sum():\n    assert torch.ones(2).sum() == 2\n"})
    run = Run(committed(project, "--ignore-pages"), tmp_path / "run", environment, PUSHED)
    run.workflow((project / ".github/workflows/book.yml").read_text())
    assert run.results == dict.fromkeys(("cpu", "site", "deploy"), "success"), run.log
    assert ", 0 failed" in run.said["cpu"]
    assert "passed" in first_paragraph_of_badges(run.published)
    assert 'pip install "rankbook[torch]"' in run.said["cpu"]
    assert "does not provide the extra" not in run.said["cpu"]


def test_ci_of_a_package_that_nothing_installs(project, tmp_path, environment):
    """A package beside its tests, in a project that pip cannot install, is imported as it lies there: here, and on GitLab."""
    (project / "pyproject.toml").unlink()
    done = init(project, "--ci", "github", "--ci", "gitlab")
    assert "install   nothing: pip installs rankbook only; imported from where it lies: tiny_ring" in done.stdout
    git(project, "add", ".")
    follow(project, done.stdout)
    pipeline = Run(project, tmp_path / "pipeline", environment, only=("book-cpu",))
    pipeline.pipeline((project / ".gitlab/book.gitlab-ci.yml").read_text(), "main")
    assert pipeline.results["book-cpu"] == "success", pipeline.log


def test_ci_of_packages_of_one_repository(packages, tmp_path, environment):
    """The packages of a repository are installed by its jobs, and their tests pass."""
    run = Run(committed(packages), tmp_path / "run", environment, PUSHED, ("cpu",))
    run.workflow((packages / ".github/workflows/book.yml").read_text())
    assert run.results["cpu"] == "success", run.log


def test_workflow_of_github_shows_a_failure(project, tmp_path, environment):
    """A test that fails fails its job; the site is built all the same, and shows it. Of a branch, nothing is published."""
    committed(project)
    write(project, {"tiny_ring/__init__.py": RING.replace("+ 1", "+ 2")})
    git(project, "commit", "--quiet", "--all", "--message", "A mistake")
    run = Run(project, tmp_path / "run", environment, {"github.ref": "refs/heads/other", "github.event_name": "push"})
    run.workflow((project / ".github/workflows/book.yml").read_text())
    assert run.results == {"drift": "success", "cpu": "failure", "site": "success", "deploy": "skipped"}, run.log
    assert run.published is None
    assert "failed" in first_paragraph_of_badges(tmp_path / "run" / "site" / "site")


def test_workflow_of_github_sees_drift(project, tmp_path, environment):
    """A source that changed without its page fails the first job."""
    committed(project)
    (project / "tests" / "test_ring.py").write_text(TEST.replace("first(self)", "other(self)"))
    git(project, "commit", "--quiet", "--all", "--message", "A change")
    run = Run(project, tmp_path / "run", environment, {"github.ref": "refs/pull/1/merge", "github.event_name": "pull_request"}, ("drift",))
    run.workflow((project / ".github/workflows/book.yml").read_text())
    assert run.results["drift"] == "failure"
    assert "docs/suite/tests/test_ring.py_docs.md" in run.said["drift"]


def test_pipeline_of_gitlab_runs(project, tmp_path, environment):
    """The jobs of GitLab's default branch run in fresh clones, and publish a site that shows the outcome, and no page of a ledger."""
    git(project, "remote", "set-url", "origin", "git@gitlab.com:people/tiny-ring.git")
    write(project, WHOLE_FOLDER)
    run = Run(committed(project), tmp_path / "run", environment)
    run.pipeline((project / ".gitlab/book.gitlab-ci.yml").read_text(), "main")
    assert run.results == {"book-drift": "success", "book-cpu": "success", "book-site": "success", "pages": "success"}, run.log
    assert "passed" in first_paragraph_of_badges(run.published)
    assert "ledger merge" in run.said["book-site"]
    assert pages_of(run.folder / "book-site") == pages_of(project)


def test_pipeline_of_gitlab_builds_the_site_of_a_change(project, tmp_path, environment):
    """On another branch, and for a merge request, the site is built strictly, too, and not published: a page that leads nowhere fails."""
    git(project, "remote", "set-url", "origin", "git@gitlab.com:people/tiny-ring.git")
    committed(project)
    text = (project / ".gitlab/book.gitlab-ci.yml").read_text()
    run = Run(project, tmp_path / "run", environment)
    run.pipeline(text, "other")
    assert run.results == {"book-drift": "success", "book-cpu": "success", "book-site": "success", "pages": "skipped"}, run.log
    of_merge_request = {name for name in run.results if run.is_due(yaml.safe_load(text), name, "")}
    assert of_merge_request == {"book-drift", "book-cpu", "book-site"}
    assert run.published is None
    assert "passed" in first_paragraph_of_badges(tmp_path / "run/book-site/book-site")
    with (project / "docs/index.md").open("a") as file:
        file.write("[A page](missing.md)\n")
    git(project, "commit", "--quiet", "--all", "--message", "A mistake")
    broken = Run(project, tmp_path / "broken", environment, only=("book-site",))
    broken.pipeline(text, "other")
    assert broken.results["book-site"] == "failure", broken.log


def test_jobs_of_gitlab_make_no_pipeline_of_their_own(project):
    """Jobs without rules are part of the pipelines that the project has, be they those of branches or of merge requests."""
    write(project, {"tests/test_gpus.py": GPU_TEST})
    init(project, "--ci", "gitlab")
    jobs = yaml.safe_load((project / ".gitlab/book.gitlab-ci.yml").read_text())
    rules = {name: [rule["if"] for rule in job.get("rules", ())] for name, job in jobs.items() if name != ".book"}
    default = "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH"
    of_default = {"book-gpu": [f'$RANKBOOK_GPUS == "true" && {default}'], "pages": [default]}
    assert rules == {"book-drift": [], "book-cpu": [], "book-site": [], **of_default}


def test_ci_checks_out_submodules_that_hold_sources(project, tmp_path, environment):
    """Sources of a submodule are there in CI, so that their pages are in step; one elsewhere is not fetched where nothing is built.

    What nothing installs is imported on GitHub, too.
    """
    (project / "pyproject.toml").unlink()
    other = tmp_path / "other"
    write(other, {"test_other.py": "def test_other():\n    assert 1\n"})
    git(other, "init", "--quiet")
    git(other, "add", ".")
    git(other, "commit", "--quiet", "--message", "First")
    add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other))
    git(project, *add, "vendored")
    init(project, "--ci", "github", "--ci", "gitlab")
    made = (".github/workflows/book.yml", ".gitlab/book.gitlab-ci.yml")
    assert not [path for path in made if "ubmodule" in (project / path).read_text().replace("SUBM", "ubm")]
    git(project, *add, "tests/other")
    committed(project, "--ci", "github", "--ci", "gitlab", "--force", made[0], "--force", made[1])
    run = Run(project, tmp_path / "run", environment, PUSHED, ("drift", "cpu"))
    run.workflow((project / made[0]).read_text())
    assert run.results["drift"] == run.results["cpu"] == "success", run.log
    assert "tests/other/test_other.py_docs" in run.said["cpu"]
    pipeline = Run(project, tmp_path / "pipeline", environment, only=("book-drift",))
    pipeline.pipeline((project / made[1]).read_text(), "main")
    assert pipeline.results["book-drift"] == "success", pipeline.log


READS_A_SUBMODULE = """\
from pathlib import Path
from setuptools import setup

setup(name="tiny-ring", version=Path("third_party/lib/a.h").read_text().strip(), packages=["tiny_ring"])
"""


def test_ci_checks_out_submodules_that_the_build_needs(project, tmp_path, environment):
    """Where the project is installed, its build finds what it reads in submodules, though no source lies there."""
    library = tmp_path / "library"
    write(library, {"a.h": "1.2\n"})
    git(library, "init", "--quiet")
    git(library, "add", ".")
    git(library, "commit", "--quiet", "--message", "First")
    git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "third_party/lib")
    (project / "pyproject.toml").unlink()
    write(project, {"setup.py": READS_A_SUBMODULE})
    committed(project, "--ci", "github", "--ci", "gitlab")
    run = Run(project, tmp_path / "run", environment, PUSHED, ("cpu",))
    run.workflow((project / ".github/workflows/book.yml").read_text())
    assert run.results["cpu"] == "success", run.log
    jobs = yaml.safe_load((project / ".gitlab/book.gitlab-ci.yml").read_text())
    assert jobs[jobs["book-cpu"]["extends"]]["variables"]["GIT_SUBMODULE_STRATEGY"] == "recursive"


@pytest.mark.parametrize(("place", "is_fetched"), [("lent", True), ("other", False)])
def test_ci_checks_out_submodules_that_tests_import(project, tmp_path, place, is_fetched):
    """Where nothing is installed, a submodule is fetched that is a package which the tests import from where it lies."""
    lent = tmp_path / "lent"
    write(lent, {"__init__.py": ""})
    git(lent, "init", "--quiet")
    git(lent, "add", ".")
    git(lent, "commit", "--quiet", "--message", "First")
    git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(lent), place)
    (project / "pyproject.toml").unlink()
    write(project, {"tests/test_lent.py": "import lent\n\n\ndef test_lent(): ...\n"})
    assert init(project).returncode == 0
    assert ("submodules: recursive" in (project / ".github/workflows/book.yml").read_text()) is is_fetched


# Where rankbook comes from


class Installed:
    """What pip notes down about rankbook."""

    def __init__(self, url: str, noted: dict[str, object]) -> None:
        self.text = json.dumps({"url": url, **noted})

    def read_text(self, _name: str) -> str:
        return self.text


GIT = {"vcs_info": {"vcs": "git", "commit_id": "c0ffee"}}
EXACT = f"rankbook[site]=={__version__}"
FROM_FOLDER = "rankbook was installed from a folder of this machine: say in RANKBOOK where CI gets it from"
BY_KEY = "rankbook was installed with a key or a token: say in RANKBOOK how CI gets it where that is needed"


@pytest.mark.parametrize(
    ("url", "noted", "wanted", "note"),
    [
        ("https://example.org/r.git", GIT, "rankbook[site] @ git+https://example.org/r.git@c0ffee", ""),
        ("ssh://git@example.org/p/r.git", GIT, "rankbook[site] @ git+https://example.org/p/r@c0ffee", BY_KEY),
        ("https://me:secret@example.org/p/r.git", GIT, "rankbook[site] @ git+https://example.org/p/r@c0ffee", BY_KEY),
        ("https://me:secret@example.org/r.whl", {"archive_info": {}}, EXACT, BY_KEY),
        ("https://example.org/r.whl", {"archive_info": {}}, "rankbook[site] @ https://example.org/r.whl", ""),
        ("file://{0}/a%20checkout", GIT, EXACT, FROM_FOLDER),
        ("file://{0}/a%20checkout", {"dir_info": {}}, EXACT, FROM_FOLDER),
        ("file://{0}/a%20clone", GIT, "rankbook[site] @ git+https://example.org/p/r@c0ffee", ""),
        ("file://{0}/r.whl", {"archive_info": {}}, EXACT, FROM_FOLDER.replace("folder", "file")),
    ],
)
def test_where_ci_gets_rankbook_from(project, tmp_path, monkeypatch, url, noted, wanted, note):
    """The commit that is installed here, by an address that works elsewhere and holds no name; what nobody else can reach is told."""
    for name in ("a checkout", "a clone"):
        (tmp_path / name).mkdir()
        git(tmp_path / name, "init", "--quiet")
    git(tmp_path / "a clone", "remote", "add", "origin", "git@example.org:p/r.git")
    monkeypatch.setattr(metadata, "distribution", lambda _name: Installed(url.format(tmp_path), noted))
    said = init(project).stdout
    assert [line for line in said.splitlines() if "rankbook was installed" in line] == ([f"note      {note}"] if note else [])
    assert yaml.safe_load((project / ".github/workflows/book.yml").read_text())["env"]["RANKBOOK"] == wanted


# What stands beside


INCLUDE = "include: [{local: .gitlab/book.gitlab-ci.yml}]\n"
INCLUDES_ANOTHER = "include: [/ci/a.yml, {local: /ci/docs.yml}, {local: /ci/*.yml}]\n"


@pytest.mark.parametrize(
    ("files", "whose"),
    [
        ({".gitlab-ci.yml": "pages:\n  stage: test\n  script: [make docs]\n"}, "its `pages`"),
        ({".gitlab-ci.yml": ".book: {image: a}\nbook-cpu: {script: a}\n"}, "its `.book` and `book-cpu`"),
        ({".gitlab-ci.yml": f"{INCLUDE}pages: {{script: [!reference [.a, b]]}}\n"}, "its `pages`"),
        ({".gitlab-ci.yml": INCLUDES_ANOTHER, "ci/docs.yml": "pages: {script: a}\n"}, "`pages` in ci/docs.yml"),
        ({".gitlab-ci.yml": f"{INCLUDE}book-cpu: {{tags: [large]}}\n"}, ""),
        ({".gitlab-ci.yml": INCLUDES_ANOTHER, "ci/docs.yml": "html: {script: a}\n", "ci/a.yml": "a: [\n"}, ""),
    ],
)
def test_a_job_of_gitlab_that_has_our_name_is_left(project, files, whose):
    """GitLab would make one of the two, key by key: the pipeline stays as it is, and that is told; who changes a few keys means ours."""
    git(project, "remote", "set-url", "origin", "git@gitlab.com:people/tiny-ring.git")
    write(project, files)
    done = init(project)
    told = f"left      .gitlab-ci.yml: GitLab would make one job of {whose} and ours of that name; give it another one; add `local:"
    assert (done.returncode, told in done.stdout) == ((1, True) if whose else (0, False)), done.stdout
    assert ((project / ".gitlab-ci.yml").read_text() == files[".gitlab-ci.yml"]) == (bool(whose) or INCLUDE in files[".gitlab-ci.yml"])


DOCS = ".github/workflows/docs.yml"
MINE = {"mkdocs.yml": "site_name: a\n"}
UNTOLD = f"which names the plugin rankbook now: add `{rankbook_requirement()[0]}` to what is installed there"


def job(*commands: str) -> str:
    """Write a workflow of somebody else."""
    return yaml.safe_dump({"on": "push", "jobs": {"a": {"steps": [{"run": command} for command in commands]}}})


def hooks(*settings: dict[str, object], **more: object) -> str:
    """Write the hooks of somebody else."""
    return yaml.safe_dump({"repos": [{"repo": "https://example.org/m", "rev": "1", "hooks": list(settings)}], **more})


@pytest.mark.parametrize(
    ("files", "notes"),
    [
        ({**MINE, DOCS: job("mkdocs build")}, [f"{DOCS} builds the site of mkdocs.yml, {UNTOLD}"]),
        (
            {**MINE, DOCS: job("pip install mkdocs-material mkdocstrings[python]", "mkdocs gh-deploy --force")},
            [f"{DOCS} builds the site of mkdocs.yml, {UNTOLD}", f"{DOCS} publishes a site on Pages as well: keep one of the two"],
        ),
        (
            {
                **MINE,
                ".readthedocs.yaml": "version: 2\nmkdocs:\n  configuration: mkdocs.yml\n",
                "tox.ini": "[a]\ncommands = mkdocs build\n",
            },
            [f".readthedocs.yaml and tox.ini build the site of mkdocs.yml, {UNTOLD}"],
        ),
        ({**MINE, "noxfile.py": 's.run("mkdocs", "--quiet", "build")\n'}, [f"noxfile.py builds the site of mkdocs.yml, {UNTOLD}"]),
        ({**MINE, DOCS: job("pip install mkdocs rankbook", "mkdocs build")}, []),
        ({**MINE, DOCS: job("pip install -r docs/requirements.txt", "mkdocs build"), "docs/requirements.txt": "rankbook[site]\n"}, []),
        (
            {**MINE, DOCS: job("pip install .[docs]", "mkdocs build"), "pyproject.toml": PYPROJECT + 'docs = ["rankbook[site]"]\n'},
            [],
        ),
        ({**MINE, DOCS: f"# mkdocs build\n{job('pip install mkdocs')}"}, []),
        ({DOCS: job("mkdocs build")}, []),
        (
            {DOCS: "on: push\njobs: {a: {steps: [{uses: actions/deploy-pages@v5}]}}\n"},
            [f"{DOCS} publishes a site on Pages as well: keep one of the two"],
        ),
        *(
            ({DOCS: text}, [f"{DOCS} publishes a site on Pages as well: keep one of the two"])
            for text in (
                "jobs: {a: {steps: [{uses: actions/checkout@v4, with: {ref: gh-pages}}, {run: git push -f}]}}\n",
                "jobs:\n  a:\n    steps:\n      - with:\n          ref: 'gh-pages'\n      - run: |\n          make\n          git push\n",
                job("git worktree add site gh-pages", "make html", "git -C site push"),
                job("make html", "git -c user.name=a push --force origin HEAD:refs/heads/gh-pages"),
            )
        ),
        ({DOCS: "on: {push: {branches-ignore: [\n gh-pages]}}\n" + job("git push origin v1")}, []),
        ({DOCS: job("git fetch origin gh-pages", "make push")}, []),
        ({"zensical.toml": "[project]\nsite_name = 'a'\n"}, ["zensical.toml is another site: mkdocs.yml is for MkDocs, and what Zensical"]),
    ],
)
def test_what_else_has_to_do_with_the_site_is_named(project, files, notes):
    """Who builds or publishes it besides, once; nobody who is settled, and nobody where there is no such thing."""
    write(project, files)
    done = init(project)
    told = [
        line.removeprefix("note      ") for line in done.stdout.splitlines() if DOCS in line or "site of" in line or "another site" in line
    ]
    assert [note for note in notes if not any(line.startswith(note) for line in told)] == []
    assert (len(told), done.returncode) == (len(notes), 0)


def test_another_job_of_gitlab_that_publishes_is_named(project):
    """Since GitLab takes any job for that, it need not be called `pages`."""
    note = "note      .gitlab-ci.yml publishes a site on Pages as well: keep one of the two"
    git(project, "remote", "set-url", "origin", "git@gitlab.com:people/tiny-ring.git")
    write(project, {".gitlab-ci.yml": "docs:\n  script: [make]\n  pages: true\n"})
    assert note in init(project).stdout
    write(project, {".gitlab-ci.yml": "docs:\n  script: [make]\n"})
    assert note not in init(project).stdout


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (hooks({"id": "mdformat"}), "the hook mdformat"),
        (
            hooks({"id": "prettier", "types_or": ["markdown", "yaml"]}, {"id": "markdownlint-fix"}),
            "the hooks prettier and markdownlint-fix",
        ),
        (hooks({"id": "ours", "entry": "mdformat --number", "exclude": "^CHANGES"}), "the hook ours"),
        (hooks({"id": "prettier", "files": r"\.(json|yml)$"}), ""),
        (hooks({"id": "prettier", "types": ["javascript"]}), ""),
        (hooks({"id": "prettier", "types_or": ["css", "yaml"]}), ""),
        (hooks({"id": "mdformat", "exclude": "^docs/suite/"}), ""),
        (hooks({"id": "mdformat"}, exclude="^(docs|build)/"), ""),
        (hooks({"id": "black"}), ""),
        (hooks({"id": "mdformat", "types": [{}], "exclude": "("}), "the hook mdformat"),
        ("repos: [{hooks: {id: mdformat}}, 1]\n", ""),
    ],
)
def test_hooks_that_would_rewrite_pages_are_named(project, settings, named):
    """Each that is given the pages, with the line that keeps them from it; none where Git does not keep them."""
    write(project, {".pre-commit-config.yaml": settings})
    said = init(project, "--dry-run").stdout
    note = "would rewrite or refuse generated pages: write `exclude: ^docs/suite/` there\n"
    assert (f"note      {named} of .pre-commit-config.yaml {note}" in said) == bool(named)
    assert (note in said) == bool(named)
    assert note not in init(project, "--dry-run", "--ignore-pages").stdout


HOOKS = ".pre-commit-config.yaml"
LINT = ".github/workflows/lint.yml"
NEEDED = "note      the hook rankbook-check runs the rankbook that is installed: everybody who commits needs it"


def hook_of(project: Path) -> dict[str, object]:
    """Read the hook that is added."""
    return yaml.safe_load((project / HOOKS).read_text())["repos"][-1]["hooks"][0]


def test_the_hook_installs_what_ci_installs(project, monkeypatch):
    """Where pip gets rankbook on every machine, pre-commit has it by itself; the hook looks at each commit, one that deletes a test too."""
    monkeypatch.setattr(metadata, "distribution", lambda _name: Installed("https://example.org/r.git", GIT))
    write(project, {HOOKS: "repos:\n  - repo: local\n    hooks: []\n", LINT: job("pre-commit run --all-files")})
    done = init(project)
    assert (done.returncode, NEEDED in done.stdout) == (0, False)
    assert hook_of(project) == {
        "id": "rankbook-check",
        "name": "pages agree with their sources",
        "entry": "rankbook check --staged",
        "language": "python",
        "additional_dependencies": ["rankbook @ git+https://example.org/r.git@c0ffee"],
        "pass_filenames": False,
        "always_run": True,
    }
    assert f"unchanged {HOOKS}" in init(project).stdout


@pytest.mark.parametrize(
    ("files", "notes"),
    [
        ({}, [NEEDED]),
        ({LINT: job("pip install pre-commit", "pre-commit run --all-files")}, [f"{NEEDED}, and so does {LINT}"]),
        (
            {LINT: "jobs: {a: {steps: [{uses: pre-commit/action@v3}]}}\n", "tox.ini": "[a]\ncommands = prek run\n"},
            [f"{NEEDED}, and so do {LINT} and tox.ini"],
        ),
        ({LINT: job("pip install pre-commit rankbook", "pre-commit run -a")}, [NEEDED]),
        ({LINT: job("pre-commit autoupdate")}, [NEEDED]),
    ],
)
def test_who_needs_rankbook_for_the_hook_is_told(project, monkeypatch, files, notes):
    """Where others cannot have this rankbook by pip, the hook runs the one that is installed; a workflow that lacks it is named."""
    monkeypatch.setattr(metadata, "distribution", lambda _name: Installed("https://me:secret@example.org/r.whl", {"archive_info": {}}))
    write(project, {HOOKS: "repos:\n  - repo: local\n    hooks: []\n", **files})
    told = [line for line in init(project).stdout.splitlines() if "rankbook-check" in line and line.startswith("note")]
    assert told == notes
    assert (hook_of(project)["language"], hook_of(project)["always_run"]) == ("system", True)
    assert [line for line in init(project).stdout.splitlines() if "rankbook-check" in line] == notes


def test_a_service_that_cannot_run_the_hook_is_told_to_skip_it(project, monkeypatch):
    """What runs hooks for everybody installs nothing besides them."""
    note = "note      pre-commit.ci has no rankbook: write `skip: [rankbook-check]` below `ci` in .pre-commit-config.yaml"
    monkeypatch.setattr(metadata, "distribution", lambda _name: Installed("https://me:secret@example.org/r.whl", {"archive_info": {}}))
    write(project, {HOOKS: "ci: {autofix_prs: false}\nrepos:\n  - repo: local\n    hooks: []\n"})
    assert note in init(project).stdout
    write(project, {HOOKS: (project / HOOKS).read_text().replace("false}", "false, skip: [rankbook-check]}")})
    assert note not in init(project).stdout
    write(project, {HOOKS: "ci: {autofix_prs: false}\nrepos: []\n"})  # where no hook is added, nobody needs anything
    said = init(project).stdout
    assert "`repos` is no list with entries" in said
    assert note not in said
    assert NEEDED not in said


@pytest.mark.parametrize(
    ("host", "is_told"),
    [
        ("github.corp.example", True),
        ("github.com", False),
        ("team.ghe.com", False),
        ("github.com-work", False),
    ],
)
def test_a_server_of_github_is_told_to_be_older(project, host, is_told):
    """Its actions for artifacts are of another version than those of GitHub itself."""
    git(project, "remote", "set-url", "origin", f"git@{host}:people/tiny-ring.git")
    said = init(project, "--ci", "github").stdout
    assert (f"{host} is a GitHub Enterprise Server" in said) == is_told
    assert ("write upload-artifact@v3, download-artifact@v3 and deploy-pages@v3 into .github/workflows/book.yml" in said) == is_told


def test_a_site_that_was_there_is_built_as_it_was(project):
    """A warning ends the build only of a site whose settings are ours."""
    assert init(project).returncode == 0
    assert "run: mkdocs build --strict --site-dir site" in (project / ".github/workflows/book.yml").read_text()
    (project / ".github/workflows/book.yml").unlink()
    write(project, {"mkdocs.yml": "site_name: a\nplugins: [search, rankbook]\n"})
    assert init(project).returncode == 0
    assert "run: mkdocs build --site-dir site" in (project / ".github/workflows/book.yml").read_text()


@pytest.mark.parametrize(
    "module", ["from torch.testing._internal.common_distributed import MultiProcessTestCase\n", "from torch.testing import _internal\n"]
)
def test_tests_that_are_written_as_those_of_torch_get_what_they_import(project, module):
    """Where the project brings torch itself, too, which stays as it is; and a test whose name ends so is no script."""
    tests = {"tests/test_more.py": module, "tests/test_lab_setup.py": "def test_a():\n    pass\n"}
    write(project, {"pyproject.toml": PYPROJECT.replace('["pytest"]', '["pytest", "torch"]'), **tests})
    assert "script" not in init(project).stdout
    text = (project / ".github/workflows/book.yml").read_text()
    assert text.count("pip install expecttest numpy") == 1
    assert "rankbook[torch]" not in text


def test_one_version_of_each_action():
    """What is written for others is what publishes this book."""
    files = [REPOSITORY / "src/rankbook/starter/files/github.yml.jinja", *(REPOSITORY / ".github/workflows").glob("*.yml")]
    used = {use for file in files for use in findall(r"uses: (\S+)", file.read_text())}
    assert len({use.partition("@")[0] for use in used}) == len(used) > 5
