"""How a project, and what its tests need, is installed in CI; and rankbook beside it."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Collection, Sequence
from importlib import metadata
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from rankbook import __version__
from rankbook.remotes import Remote
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
    "requirements/requirements-test.txt",
    "requirements/requirements-tests.txt",
    "requirements-testing.txt",
    "requirements/testing.txt",
    "test-requirements.txt",
    "test_requirements.txt",
    "requirements/test-requirements.txt",
    "tests/requirements.txt",
    "test/requirements.txt",
    "requirements/requirements-dev.txt",
    "requirements-dev.txt",
    "requirements/dev.txt",
    "dev-requirements.txt",
)
_RUN_FILES = ("requirements.txt", "requirements/requirements.txt", "requirements/base.txt")
"""What a project that is no package needs to run, its tests included."""
_FOLDERS_OF_TESTS = ("test", "tests")
"""What tests import of these, they import of each other."""
_DOCS_WORDS = ("docs", "doc", "documentation", "mkdocs", "site")
"""Usual names of extras and groups for the site; the first one there is taken."""
_DOCS_FILES = ("requirements-docs.txt", "requirements/docs.txt", "requirements/doc.txt", "docs/requirements.txt", "doc/requirements.txt")
GET_DEPS = "mkdocs get-deps"
"""Names the packages of a site's plugins, as far as MkDocs' catalogue has them."""
_PIP = "python -m pip install"
_PIP_FOR_GROUPS = f'{_PIP} --upgrade "pip>=25.1"'
_LOCAL = ".venv/bin"
"""Programs of the environment that is made by a lock file."""
_RANKBOOK = '"$RANKBOOK"'
"""What the files for CI call rankbook: a variable that stands once, at their top."""
_WITH_TORCH = '"rankbook[torch]"'
"""What the rankbook that is installed needs for listings that use torch."""
_FOR_TORCH_TESTING = "expecttest numpy"
"""What `torch.testing._internal` imports and torch does not bring; a numpy that is there stays."""
_PIP_TORCH = ("PIP_EXTRA_INDEX_URL", "https://download.pytorch.org/whl/cpu")
_UV_TORCH = ("UV_TORCH_BACKEND", "cpu")


def python_for(*projects: Declared) -> tuple[str, str]:
    """Choose the version of Python for CI: the newest that the project names, or else a usual one that it allows.

    Args:
        projects: the project, and those in folders of it that are installed with it, in their own words.

    Returns:
        The version, and what says so; the first is empty when the project allows none that rankbook runs on.
    """
    named = {
        classifier.rpartition(" ")[2]
        for declared in projects
        for classifier in declared.classifiers
        if classifier.startswith("Programming Language :: Python ::")
    }
    required = ",".join(dict.fromkeys(declared.requires_python for declared in projects if declared.requires_python))
    try:
        allowed = SpecifierSet(required)
    except InvalidSpecifier:
        allowed = SpecifierSet()
    taken = [version for version in PYTHONS if allowed.contains(f"{version}.0") or allowed.contains(f"{version}.99")]
    newest = next((version for version in taken if version in named), "")
    if newest:
        return newest, "the newest that the project names"
    if not taken:
        return "", f"requires-python is {required}"
    said = f"requires-python is {required}" if required else "nothing says otherwise"
    return _USUAL_PYTHON if _USUAL_PYTHON in taken else taken[0], said


class _Part(Struct, frozen=True):
    """A project that is installed with what it lists: that of the root, or one of its folders."""

    declared: Declared
    folder: str
    """Where it lies, below the root; empty for the root."""
    extra: str
    group: str
    listed: tuple[str, ...]
    """Files of requirements, below its own folder."""

    @classmethod
    def of(cls, declared: Declared, folder: str = "") -> _Part:
        """Find out what is taken of a project: its extra and its group for tests, and what lists requirements."""
        extra, group = _first(_TEST_WORDS, declared.extras), _first(_TEST_WORDS, declared.groups)
        names = (_there(declared.root, () if declared.is_package or group else _RUN_FILES), _there(declared.root, _TEST_FILES))
        return cls(declared, folder, extra, group, tuple(name for name in names if name))

    @property
    def brings_torch(self) -> bool:
        """Whether torch comes with it."""
        return self.declared.brings_torch(self.extra, self.group, self.listed)

    @property
    def words(self) -> list[str]:
        """What pip is told."""
        place = self.folder or "."
        package = ["--editable", f"{place}[{self.extra}]" if self.extra else place] if self.declared.is_package else []
        group = ["--group", self._at(f"pyproject.toml:{self.group}") if self.folder else self.group] if self.group else []
        return [*package, *group, *(word for name in self.listed for word in ("--requirement", self._at(name)))]

    @property
    def said(self) -> list[str]:
        """What says so."""
        found = [f"the group {self.group}"] if self.group else []
        if self.declared.is_package:
            written = next(name for name in ("setup.py", "setup.cfg", "pyproject.toml") if _is_told_by(self.declared, name))
            found.insert(0, self._at(f"{written} with the extra {self.extra}" if self.extra else written))
        return [*found, *map(self._at, self.listed)]

    def _at(self, name: str) -> str:
        return f"{self.folder}/{name}" if self.folder else name


class _Locked(Struct, frozen=True):
    """How a project is installed by its lock file."""

    lock: str
    commands: tuple[str, ...]
    run: str
    """What stands before `pip` where more is installed besides."""


def _locked(root: Path, extra: str, group: str) -> _Locked | None:
    """Say how a project is installed by its lock file, with an extra and a group, which may be empty; None where there is none."""
    if (root / "uv.lock").is_file():
        options = [*(["--extra", extra] if extra else []), *(["--group", group] if group else [])]
        return _Locked("uv.lock", (f"{_PIP} uv", shlex.join(["uv", "sync", "--frozen", *options])), "uv ")
    if (root / "poetry.lock").is_file():
        options = [*(["--extras", extra] if extra else []), *(["--with", group] if group else [])]
        installed = shlex.join(["poetry", "install", "--no-interaction", *options])
        return _Locked("poetry.lock", (f"{_PIP} poetry", "poetry config virtualenvs.in-project true --local", installed), "poetry run ")
    return None


def install_for_tests(
    declared: Declared,
    imports: Collection[str] = (),
    folders: Collection[str] = (".", "src"),
    projects: Collection[str] = (),
    *,
    torch_testing: bool = False,
) -> Install:
    """Say how the project is installed so that its tests run: by its lock file, else by pip.

    Args:
        declared: the project, in its own words.
        imports: first parts of the names that the tests import: torch comes with rankbook where the project does not bring it, and what
            nothing installs is imported from the project's folder where it lies there.
        folders: where modules of the project may lie, below its root.
        projects: folders of it that are projects of their own, whose tests are in the book.
        torch_testing: whether the tests import the modules that torch tests itself by.
    """
    root = declared.root
    own, parts = _Part.of(declared), [_Part.of(Declared(root / name), name) for name in projects]
    run, folder = "python -m ", ""
    locked = _locked(root, own.extra, own.group)
    if locked:
        own = replace(own, listed=())
        commands, said, run, folder = [*locked.commands], [locked.lock], locked.run, _LOCAL
    else:
        commands, said, parts = [], [], [own, *parts]
    commands += _by_pip(f"{run}pip install", parts)
    said += [sentence for part in parts for sentence in part.said]
    commands.append(f"{run}pip install {_RANKBOOK}")
    lacks_torch = "torch" in imports and not any(part.brings_torch for part in (own, *parts))
    if lacks_torch:
        # By a command of its own: beside a requirement that names a commit, pip takes no other one with more extras.
        commands.append(f"{run}pip install {_WITH_TORCH}")
    elif torch_testing:
        commands.append(f"{run}pip install {_FOR_TORCH_TESTING}")
    brought = "rankbook with torch" if lacks_torch else "rankbook"
    found = " and ".join([*said, *([brought] if lacks_torch else [])]) if said else f"nothing: pip installs {brought} only"
    apart = [name for name in folders if not any(PurePosixPath(name).is_relative_to(project) for project in projects)]
    beside = {} if declared.is_package or folder else modules_beside(root, imports, apart)
    if beside:
        found += f"; imported from where it lies: {', '.join(sorted(beside))}"
    torch = _PIP_TORCH if not run.startswith("uv") else _UV_TORCH
    paths, cpu_torch = tuple(dict.fromkeys(beside.values())), torch if lacks_torch or not folder else ("", "")
    return Install(tuple(commands), found, folder, paths, cpu_torch, builds=declared.is_package or bool(folder or projects))


def modules_beside(root: Path, imports: Collection[str], folders: Collection[str]) -> dict[str, str]:
    """Find the modules and packages of the project's own folder that its tests import: each with the folder from which that works."""
    found: dict[str, str] = {}
    for name in sorted(set(imports) - {""} - sys.stdlib_module_names - set(_FOLDERS_OF_TESTS)):
        for folder in folders:
            place = root / folder / name
            if place.with_suffix(".py").is_file() or (place.is_dir() and any(place.glob("*.py"))):
                found.setdefault(name, folder)
    return found


def _by_pip(pip: str, parts: Sequence[_Part]) -> list[str]:
    """Give the commands that install projects, and what they say that they need, by one command as far as that goes."""
    # Where `setup.py` imports torch, a project is built beside the torch that its tests get, and not beside none.
    built = [part for part in parts if part.declared.built_with]
    words = [word for part in parts if part not in built for word in part.words]
    commands = [_PIP_FOR_GROUPS] if pip == _PIP and any(part.group for part in parts) else []
    commands += [f"{pip} {shlex.join(words)}"] if words else []
    for part in built:
        commands += [f"{pip} {shlex.join(part.declared.built_with)}", f"{pip} --no-build-isolation {shlex.join(part.words)}"]
    return commands


def _is_told_by(declared: Declared, name: str) -> bool:
    """Say whether a file is the first of those by which pip installs the project."""
    if name == "pyproject.toml" or "project" in declared.pyproject:
        return name == "pyproject.toml"
    return (declared.root / name).is_file() and (name == "setup.py" or declared.setup_cfg.has_section("metadata"))


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
    extra, group = _first(_DOCS_WORDS, declared.extras) if declared.is_package else "", _first(_DOCS_WORDS, declared.groups)
    if not extra and not group:
        return Install((rankbook, f"{_PIP} $({GET_DEPS})"), GET_DEPS)
    found = " and ".join([*([f"the extra {extra}"] if extra else []), *([f"the group {group}"] if group else [])])
    locked = _locked(declared.root, extra, group)
    if locked:
        return Install((*locked.commands, f"{locked.run}pip install {_RANKBOOK}"), f"{locked.lock} and {found}", _LOCAL)
    package = [f".[{extra}]" if extra else "."] if declared.is_package else []
    installed = f"{_PIP} {shlex.join([*package, *(['--group', group] if group else [])])}"
    return Install((*([_PIP_FOR_GROUPS] if group else []), installed, rankbook), found, cpu_torch=_PIP_TORCH)


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
    url, commit = direct.get("url", ""), direct.get("vcs_info", {}).get("commit_id", "")
    if not url:
        return exact, ""
    place = urlsplit(url)
    if place.scheme != "file":
        # What stands before the host, be it a name or a token, is written nowhere.
        published = Remote.of(url) if commit else None
        named = url if "@" not in place.netloc else published.url if published else ""
        pinned = f"rankbook[site] @ {f'git+{named}@{commit}' if commit else named}" if named else exact
        return (
            pinned,
            "" if named == url else "rankbook was installed with a key or a token: say in RANKBOOK how CI gets it where that is needed",
        )
    checkout = Path(unquote(place.path))
    published = repository.remote(checkout) if checkout.is_dir() else None
    commit = commit or (repository.git(checkout, "rev-parse", "HEAD") if published else "")
    if published and commit:
        return f"rankbook[site] @ git+{published.url}@{commit}", ""
    what = "folder" if checkout.is_dir() else "file"
    return exact, f"rankbook was installed from a {what} of this machine: say in RANKBOOK where CI gets it from"
