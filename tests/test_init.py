"""`rankbook init`: what it finds out, what it writes and what it leaves alone, and that what it has written works."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rankbook.cli import main
from rankbook.config import load
from rankbook.remotes import Remote
from rankbook.starter import Declared, Sources, find_tests, yaml_edits
from rankbook.starter.facts import WRITTEN_BY
from rankbook.starter.installing import install_for_tests, python_for
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
requires-python = ">=3.11,<3.14"

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
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.chdir(root), contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = main(["init", *arguments])
    return subprocess.CompletedProcess(["rankbook", "init"], status, out.getvalue(), errors.getvalue())


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
    assert "<!-- rankbook:proof -->" in after["docs/index.md"]
    site = yaml.safe_load(after["mkdocs.yml"])
    assert (site["site_name"], site["repo_url"]) == ("tiny-ring", "https://github.com/people/tiny-ring")
    assert site["site_url"] == "https://people.github.io/tiny-ring/"
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
    subprocess.run([sys.executable, "-m", "rankbook.cli", "gen"], cwd=project, check=True, capture_output=True)
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
    workflow = yaml.safe_load((project / ".github/workflows/book.yml").read_text())
    assert workflow["jobs"]["gpu"]["runs-on"] == ["self-hosted", "linux", "gpu-4"]
    assert "pull_request" in workflow["jobs"]["gpu"]["if"]
    assert any("--require gpu=4" in step.get("run", "") for step in workflow["jobs"]["gpu"]["steps"])
    assert "PIP_EXTRA_INDEX_URL" in workflow["jobs"]["cpu"]["env"]
    assert "PIP_EXTRA_INDEX_URL" not in workflow["jobs"]["gpu"].get("env", {})
    jobs = yaml.safe_load((project / ".gitlab/book.gitlab-ci.yml").read_text())
    assert jobs["book-gpu"]["tags"] == ["gpu-4"]


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
    assert "entry: rankbook check --root part" in (tmp_path / ".pre-commit-config.yaml").read_text()
    assert "cd part" in (tmp_path / ".gitlab/book.gitlab-ci.yml").read_text()


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


def test_a_site_that_inherits_its_plugins_is_left(project):
    """A list of plugins of its own would take the place of the inherited one."""
    write(project, {"mkdocs.yml": "INHERIT: base.yml\nsite_name: Mine\n", "docs/index.md": "# Mine\n"})
    done = init(project)
    assert done.returncode == 1
    assert "left      mkdocs.yml: its plugins are inherited from another file; add `rankbook` to its plugins" in done.stdout


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
    ],
)
def test_remotes(address, url):
    """A remote's address becomes the one that people open, without user or token."""
    assert Remote.of(address).url == url


@pytest.mark.parametrize("address", ["/srv/git/b.git", "../b", "file:///srv/b.git", "C", "https://github.com/", "javascript://a/b/c"])
def test_remotes_that_no_browser_opens(address):
    """A folder, or something else, is no remote to link to."""
    assert Remote.of(address) is None


@pytest.mark.parametrize(
    ("remote", "url"),
    [
        (Remote("github.com", "People/Ring"), "https://people.github.io/Ring/"),
        (Remote("github.com", "people/people.github.io"), "https://people.github.io/"),
        (Remote("gitlab.com", "group/sub/ring"), "https://group.gitlab.io/sub/ring/"),
        (Remote("git.example.org", "a/b"), ""),
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

extras = {"quality": []}
extras["testing"] = ["torch"]
setup(name="a", extras_require=extras, python_requires=">=3.12")
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
            ["python -m pip install --requirement requirements-test.txt"],
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


@pytest.mark.parametrize("arguments", [(), ("--ignore-pages",)])
@pytest.mark.parametrize("source", [{}, {"tests/test_gpus.py": GPU_TEST}])
def test_files_for_ci_are_valid(project, arguments, source):
    """Workflow and pipeline fulfil the schemas of GitHub and GitLab."""
    pytest.importorskip("check_jsonschema")
    write(project, {**source, ".pre-commit-config.yaml": "repos: [{repo: local, hooks: []}]\n"})
    init(project, "--ci", "github", "--ci", "gitlab", *arguments)
    for schema, path in (
        ("vendor.github-workflows", ".github/workflows/book.yml"),
        ("vendor.gitlab-ci", ".gitlab/book.gitlab-ci.yml"),
        ("vendor.gitlab-ci", ".gitlab-ci.yml"),
    ):
        command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, path]
        done = subprocess.run(command, cwd=project, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", sorted((REPOSITORY / ".github/workflows").glob("*.yml")), ids=lambda path: path.name)
def test_workflows_of_this_repository_are_valid(path):
    """They fulfil GitHub's schema, too."""
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(path)]
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
    subprocess.run([sys.executable, "-m", "rankbook.cli", "gen"], cwd=project, check=True, capture_output=True)
    git(project, "add", ".")
    git(project, "commit", "--quiet", "--message", "A book")
    return project


def first_paragraph_of_badges(site: Path) -> str:
    """Read the page about the tests."""
    return (site / "suite" / "tests" / "test_ring.py_docs.html").read_text()


@pytest.mark.parametrize("arguments", [(), ("--ignore-pages",)])
def test_workflow_of_github_runs(project, tmp_path, environment, arguments):
    """Every step of the CPU path runs in a fresh clone: pages agree, the test is proved, and the site shows that it passed."""
    write(project, {"tests/.settings/.ring.toml": "size = 3\n"})
    run = Run(committed(project, *arguments), tmp_path / "run", environment, {"github.ref": "refs/heads/main", "github.event_name": "push"})
    run.workflow((project / ".github/workflows/book.yml").read_text())
    wanted = {"cpu", "site", "deploy"} | ({"drift"} if not arguments else set())
    assert run.results == dict.fromkeys(wanted, "success"), run.log
    assert ", 0 failed" in run.said["cpu"]
    assert "passed" in first_paragraph_of_badges(run.published)
    assert (run.published / "suite/tests/.settings/.ring.toml_docs.html").is_file()


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
    run = Run(project, tmp_path / "run", environment, {"github.ref": "refs/pull/1/merge", "github.event_name": "pull_request"})
    run.workflow((project / ".github/workflows/book.yml").read_text())
    assert run.results["drift"] == "failure"
    assert "docs/suite/tests/test_ring.py_docs.md" in run.said["drift"]


def test_pipeline_of_gitlab_runs(project, tmp_path, environment):
    """The jobs of GitLab's default branch run in fresh clones, and publish a site that shows the outcome."""
    git(project, "remote", "set-url", "origin", "git@gitlab.com:people/tiny-ring.git")
    run = Run(committed(project), tmp_path / "run", environment)
    run.pipeline((project / ".gitlab/book.gitlab-ci.yml").read_text(), "main")
    assert run.results == {"book-drift": "success", "book-cpu": "success", "pages": "success"}, run.log
    assert "passed" in first_paragraph_of_badges(run.published)
