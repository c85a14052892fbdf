"""How a project, and what its tests need, is installed in CI; and rankbook beside it."""

from __future__ import annotations

import json
import shlex
from importlib import metadata
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from rankbook import __version__
from rankbook.starter import repository
from rankbook.starter.declared import Declared
from rankbook.starter.facts import Install

PYTHONS = ("3.14", "3.13", "3.12", "3.11")
"""Versions of Python that rankbook runs on, newest first."""
_USUAL_PYTHON = "3.12"
_TEST_WORDS = ("test", "tests", "testing", "dev", "develop", "development")
"""Usual names of extras and groups for testing; the first one there is taken."""
_TEST_FILES = (
    "requirements-test.txt",
    "requirements-tests.txt",
    "requirements/test.txt",
    "requirements/tests.txt",
    "test-requirements.txt",
    "test_requirements.txt",
    "requirements/requirements-dev.txt",
    "requirements-dev.txt",
    "requirements/dev.txt",
    "dev-requirements.txt",
)
_DOCS_WORDS = ("docs", "doc", "documentation")
_DOCS_FILES = ("requirements-docs.txt", "requirements/docs.txt", "requirements/doc.txt", "docs/requirements.txt", "doc/requirements.txt")
_PIP = "python -m pip install"
_RANKBOOK = '"$RANKBOOK"'
"""What the files for CI call rankbook: a variable that stands once, at their top."""


def python_for(declared: Declared) -> tuple[str, str]:
    """Choose the version of Python for CI: the newest that the project names, or else a usual one that it allows.

    Returns:
        The version, and what says so; the first is empty when the project allows none that rankbook runs on.
    """
    named = {
        classifier.rpartition(" ")[2] for classifier in declared.classifiers if classifier.startswith("Programming Language :: Python ::")
    }
    try:
        allowed = SpecifierSet(declared.requires_python)
    except InvalidSpecifier:
        allowed = SpecifierSet()
    taken = [version for version in PYTHONS if allowed.contains(f"{version}.0") or allowed.contains(f"{version}.99")]
    newest = next((version for version in taken if version in named), "")
    if newest:
        return newest, "the newest that the project names"
    if not taken:
        return "", f"requires-python is {declared.requires_python}"
    said = f"requires-python is {declared.requires_python}" if declared.requires_python else "nothing says otherwise"
    return _USUAL_PYTHON if _USUAL_PYTHON in taken else taken[0], said


def install_for_tests(declared: Declared) -> Install:
    """Say how the project is installed so that its tests run: by its lock file, else by pip."""
    root = declared.root
    extra, group = _first(_TEST_WORDS, declared.extras), _first(_TEST_WORDS, declared.groups)
    if (root / "uv.lock").is_file():
        options = [*(["--extra", extra] if extra else []), *(["--group", group] if group else [])]
        commands = (f"{_PIP} uv", shlex.join(["uv", "sync", "--frozen", *options]), f"uv pip install {_RANKBOOK}")
        return Install(commands, "uv.lock", ".venv/bin")
    if (root / "poetry.lock").is_file():
        options = [*(["--extras", extra] if extra else []), *(["--with", group] if group else [])]
        installed = shlex.join(["poetry", "install", "--no-interaction", *options])
        into = "poetry config virtualenvs.in-project true --local"
        return Install((f"{_PIP} poetry", into, installed, f"poetry run pip install {_RANKBOOK}"), "poetry.lock", ".venv/bin")
    return _by_pip(declared, extra, group)


def _by_pip(declared: Declared, extra: str, group: str) -> Install:
    words, said = [], []
    if declared.is_package:
        written = "pyproject.toml" if (declared.root / "pyproject.toml").is_file() and not _is_setup(declared) else "setup.py"
        words += ["--editable", shlex.quote(f".[{extra}]" if extra else ".")]
        said.append(f"{written} with the extra {extra}" if extra else written)
    if group:
        words += ["--group", group]
        said.append(f"the group {group}")
    listed = _there(declared.root, _TEST_FILES if words else (*_TEST_FILES, "requirements.txt"))
    if listed:
        words += ["--requirement", listed]
        said.append(listed)
    install = (" ".join((_PIP, *words)),) if words else ()
    upgrade = (f'{_PIP} --upgrade "pip>=25.1"',) if group else ()
    return Install((*upgrade, *install, f"{_PIP} {_RANKBOOK}"), " and ".join(said) or "nothing: pip installs rankbook only")


def _is_setup(declared: Declared) -> bool:
    return "project" not in declared.pyproject and (declared.root / "setup.py").is_file()


def install_for_site(declared: Declared, *, is_ours: bool) -> Install:
    """Say what the site's build needs: rankbook, and what a site that was there before needs besides.

    Args:
        declared: the project, in its own words.
        is_ours: whether the site's settings are written by us.
    """
    rankbook = f"{_PIP} {_RANKBOOK}"
    if is_ours:
        return Install((rankbook,), "rankbook[site]")
    listed = _there(declared.root, _DOCS_FILES)
    if listed:
        return Install((f"{_PIP} --requirement {listed}", rankbook), listed)
    extra = _first(_DOCS_WORDS, declared.extras)
    if extra and declared.is_package:
        return Install((f"{_PIP} {shlex.quote(f'.[{extra}]')}", rankbook), f"the extra {extra}")
    return Install((rankbook, f"{_PIP} $(mkdocs get-deps)"), "mkdocs get-deps")


def _there(root: Path, names: tuple[str, ...]) -> str:
    return next((name for name in names if (root / name).is_file()), "")


def _first(wanted: tuple[str, ...], there: tuple[str, ...]) -> str:
    return next((name for name in wanted if name in there), "")


def rankbook_requirement() -> tuple[str, str]:
    """Say how pip gets this version of rankbook elsewhere.

    Returns:
        The requirement, and what is to be done about it; the latter is empty when it can be had as it stands.
    """
    exact = f"rankbook[site]=={__version__}"
    try:
        direct = json.loads(metadata.distribution("rankbook").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        direct = {}
    url, version = direct.get("url", ""), direct.get("vcs_info", {})
    if version.get("vcs") == "git" and "@" not in url:
        return f"rankbook[site] @ git+{url}@{version['commit_id']}", ""
    if not url:
        return exact, ""
    checkout = Path(url.removeprefix("file://"))
    found = repository.remote(checkout) if checkout.is_dir() else None
    commit = repository.git(checkout, "rev-parse", "HEAD") if found else ""
    if found and commit:
        return f"rankbook[site] @ git+{found.url}@{commit}", ""
    return exact, "rankbook was installed from a folder: say in RANKBOOK where CI gets it from"
