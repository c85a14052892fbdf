"""What a project says of itself in `pyproject.toml`, `setup.cfg` and `setup.py`; none of them is executed."""

from __future__ import annotations

import ast
import configparser
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct

from rankbook.syntax import syntax_tree

_TORCH = re.compile(r"(?<![\w./-])(?:torch|pytorch)(?![\w/-])")
"""The requirement `torch`, in a list of requirements."""


class Declared(Struct, frozen=True, dict=True):
    """The project at `root`, in its own words."""

    root: Path

    @cached_property
    def pyproject(self) -> Mapping[str, Any]:
        """`pyproject.toml`; empty where it is missing or broken."""
        return toml(self.root / "pyproject.toml")

    @cached_property
    def setup_cfg(self) -> configparser.RawConfigParser:
        """`setup.cfg`."""
        return ini(self.root / "setup.cfg")

    @cached_property
    def _setup(self) -> ast.Module:
        try:
            return syntax_tree((self.root / "setup.py").read_bytes())
        except (OSError, SyntaxError, ValueError):
            return ast.Module([], [])

    @property
    def _project(self) -> Mapping[str, Any]:
        return table(self.pyproject, "project")

    @property
    def _poetry(self) -> Mapping[str, Any]:
        return table(self.pyproject, "tool", "poetry")

    @property
    def is_package(self) -> bool:
        """Whether pip can install it."""
        written = "project" in self.pyproject or "build-system" in self.pyproject
        return written or (self.root / "setup.py").is_file() or self.setup_cfg.has_section("metadata")

    @property
    def name(self) -> str:
        """Name of the package; empty when none is written."""
        names = (self._project.get("name"), self._poetry.get("name"), self.setup_cfg.get("metadata", "name", fallback=""))
        return next((name for name in (*names, self._argument("name")) if isinstance(name, str) and name), "")

    @property
    def requires_python(self) -> str:
        """The versions of Python that it supports, as pip has them; empty when nothing is said."""
        written = self._project.get("requires-python") or self.setup_cfg.get("options", "python_requires", fallback="")
        found = written or self._argument("python_requires")
        return found if isinstance(found, str) else ""

    @property
    def classifiers(self) -> tuple[str, ...]:
        """What it says of itself on a package index."""
        found = self._project.get("classifiers") or self._argument("classifiers")
        return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()

    @property
    def extras(self) -> tuple[str, ...]:
        """Names of its optional requirements."""
        optional = table(self._project, "optional-dependencies")
        listed = table(self.pyproject, "tool", "setuptools", "dynamic", "optional-dependencies")
        configured = self.setup_cfg.options("options.extras_require") if self.setup_cfg.has_section("options.extras_require") else ()
        return tuple(dict.fromkeys((*optional, *listed, *table(self._poetry, "extras"), *configured, *self._extras_of_setup())))

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of its groups of requirements for development; those of Poetry only where its lock file has Poetry install them."""
        of_poetry = table(self._poetry, "group") if (self.root / "poetry.lock").is_file() else ()
        return tuple(dict.fromkeys((*table(self.pyproject, "dependency-groups"), *of_poetry)))

    @property
    def built_with(self) -> tuple[str, ...]:
        """Packages that pip must find when it builds the project, where `setup.py` imports torch and does not say that it does; or none."""
        asked = table(self.pyproject, "build-system").get("requires", ["setuptools", "wheel"])
        asked = [each for each in asked if isinstance(each, str)] if isinstance(asked, list) else []
        imported = {name.partition(".")[0] for node in self._setup.body for name in _imported(node)}
        return () if "torch" not in imported or any(map(_TORCH.match, asked)) else (*asked, "torch")

    @property
    def names_torch(self) -> bool:
        """Whether torch is among its requirements, the optional ones included."""
        return any(_TORCH.search(text) for text in self._requirements())

    def brings_torch(self, extra: str, group: str, listed: Sequence[str]) -> bool:
        """Say whether torch is among what is installed with the project.

        Args:
            extra: name of the optional requirements that are taken; empty for none.
            group: name of the group that is taken; empty for none.
            listed: files of requirements that are taken, below the root.
        """
        return any(_TORCH.search(text) for text in self._installed(extra, group, listed))

    def _installed(self, extra: str, group: str, listed: Sequence[str]) -> Iterator[str]:
        groups = (table(self.pyproject, "dependency-groups").get(group), table(self._poetry, "group", group, "dependencies"))
        optional = (table(self._project, "optional-dependencies").get(extra), table(self._poetry, "extras").get(extra))
        for container in (self._project.get("dependencies"), table(self._poetry, "dependencies"), *optional, *groups):
            yield _unquoted(container)
        yield self.setup_cfg.get("options", "install_requires", fallback="")
        yield self.setup_cfg.get("options.extras_require", extra, fallback="")
        yield from self._written_in_setup()
        for name in listed:
            yield from _listed(self.root / name, set())
        if "dependencies" in self._project.get("dynamic", ()):
            yield from map(_text, requirement_files(self.root))
        for lock in ("uv.lock", "poetry.lock"):
            yield from re.findall(r'^name = "(torch)"$', _text(self.root / lock), re.MULTILINE)

    def _written_in_setup(self) -> Iterator[str]:
        yield " ".join(node.value for node in ast.walk(self._setup) if isinstance(node, ast.Constant) and isinstance(node.value, str))

    def _requirements(self) -> Iterator[str]:
        for container in (self._project.get("dependencies"), table(self._project, "optional-dependencies")):
            yield _unquoted(container)
        yield _unquoted(table(self.pyproject, "dependency-groups"))
        yield " ".join(table(self._poetry, "dependencies"))
        for section in ("options", "options.extras_require"):
            if self.setup_cfg.has_section(section):
                yield " ".join(value for _, value in self.setup_cfg.items(section))
        yield from self._written_in_setup()
        for path in requirement_files(self.root):
            yield _text(path)

    def _argument(self, name: str) -> object:
        """Give what `setup.py` hands to `setup()` under a name, where it is written out."""
        calls = [node for node in ast.walk(self._setup) if isinstance(node, ast.Call)]
        for called in ("setup", "dict"):  # `setup(**arguments)` is often given what a `dict(name=…)` makes
            for keyword in (keyword for call in calls if _last_name(call.func) == called for keyword in call.keywords):
                if keyword.arg == name:
                    return _literal(keyword.value)
        return None

    def _extras_of_setup(self) -> Iterator[str]:
        """Read names of extras from what `setup()` is given, from dictionaries `extras...`, or from their items that are set one by one."""
        for node in ast.walk(self._setup):
            if isinstance(node, ast.keyword) and node.arg == "extras_require":
                yield from self._keys(node.value)
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name) and "extra" in target.id:
                        yield from self._keys(node.value)
                    elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and "extra" in target.value.id:
                        yield from _words([target.slice])

    def _keys(self, node: ast.expr) -> Iterator[str]:
        """Read the keys of a dictionary, or of the one that a function of `setup.py` returns."""
        if isinstance(node, ast.Dict):
            yield from _words(node.keys)
        elif isinstance(node, ast.Call):
            called = (each for each in self._setup.body if isinstance(each, ast.FunctionDef) and each.name == _last_name(node.func))
            for inner in (inner for function in called for inner in ast.walk(function)):
                if isinstance(inner, ast.Return) and isinstance(inner.value, ast.Dict):
                    yield from _words(inner.value.keys)


def requirement_files(root: Path) -> list[Path]:
    """List the files with requirements of pip, at the root and in a folder of their own."""
    return sorted((*root.glob("*requirements*.txt"), *root.glob("requirements/*.txt")))


def toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; empty where it is missing or broken."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def ini(path: Path) -> configparser.RawConfigParser:
    """Read an INI file; empty where it is missing or broken."""
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(_text(path))
    except configparser.Error:
        return configparser.RawConfigParser()
    return parser


def table(values: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Go down to a table; empty where something else stands on the way."""
    for name in names:
        inner = values.get(name)
        values = inner if isinstance(inner, Mapping) else {}
    return values


def _unquoted(container: object) -> str:
    """Write out what a list or a table holds, with spaces around each word."""
    return repr(container).replace("'", " ").replace('"', " ")


def _listed(path: Path, seen: set[Path]) -> Iterator[str]:
    """Yield the text of a file of requirements, and of those that it takes in."""
    if path not in seen:
        seen.add(path)
        text = _text(path)
        yield text
        for name in re.findall(r"^\s*(?:-r|--requirement)[ =]*(\S+)", text, re.MULTILINE):
            yield from _listed(path.parent / name, seen)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _imported(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level:
        yield node.module or ""


def _words(nodes: list[Any]) -> Iterator[str]:
    yield from (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
