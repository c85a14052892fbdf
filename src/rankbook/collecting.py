"""What the project's configuration tells pytest: what it takes for tests, and how these run."""

from __future__ import annotations

import configparser
import json
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct, field


class Rules(Struct, frozen=True):
    """Patterns by which pytest collects."""

    files: tuple[str, ...] = ("test_*.py", "*_test.py")
    classes: tuple[str, ...] = ("Test",)
    """Beginnings of names, or patterns."""
    functions: tuple[str, ...] = ("test",)
    """Beginnings of names, or patterns."""

    def is_test_file(self, path: str) -> bool:
        """Tell whether pytest collects plain functions and classes of a file, as it comes."""
        name = path.rpartition("/")[2]
        return any(fnmatchcase(f"/{path}" if "/" in pattern else name, _anchored(pattern)) for pattern in self.files)

    def is_test_class(self, name: str) -> bool:
        """Tell whether pytest takes a plain class for one that holds tests."""
        return _matches(name, self.classes)

    def is_test_function(self, name: str) -> bool:
        """Tell whether pytest takes a function for a test."""
        return _matches(name, self.functions)


def rules_of(root: Path) -> Rules:
    """Read the patterns of the project at `root`, from the file that pytest would read; one that cannot be read has none.

    Args:
        root: folder with `pytest.ini`, `pyproject.toml`, `tox.ini` or `setup.cfg`; it may lack them all.
    """
    for name, section in _PLACES:
        found = _read(root / name, section)
        if found is not None:
            return _rules(found)
    return Rules()


_PLACES = (
    ("pytest.toml", "pytest"),
    (".pytest.toml", "pytest"),
    ("pytest.ini", "pytest"),
    (".pytest.ini", "pytest"),
    ("pyproject.toml", "tool.pytest.ini_options"),
    ("pyproject.toml", "tool.pytest"),
    ("tox.ini", "pytest"),
    ("setup.cfg", "tool:pytest"),
)
"""Files and sections in the order in which pytest looks for its configuration."""


class PytestSettings(Struct, frozen=True):
    """What pytest is told of how tests run."""

    file: str = "pyproject.toml"
    """The file that says it, below the root; where none does, one that may."""
    section: str = "tool.pytest.ini_options"
    """Where a TOML file has it."""
    table: Mapping[str, Any] = field(default_factory=dict)
    """Settings by name, without those that say which tests there are and where modules lie."""
    options: tuple[str, ...] = ()
    """Those of the options that it is always given on which the end of a test depends."""

    @property
    def digest(self) -> str:
        """SHA-256 of all of it, also where nothing is said."""
        return sha256(json.dumps([self.section, self.table, self.options], sort_keys=True, default=str).encode()).hexdigest()

    @property
    def toml(self) -> str:
        """All settings, as a TOML file that is no `pytest.toml` has them."""
        rows = (f"{json.dumps(name)} = {json.dumps(value, ensure_ascii=False)}" for name, value in self.table.items())
        return "\n".join((f"[{self.section}]", *rows, ""))


NAMED = " [pytest]"
"""What stands behind the name of a file where its settings of pytest are meant, and not the whole file."""


def pytest_settings_of(root: Path, path: str) -> PytestSettings:
    """Read what pytest is told for a file of the project: by the nearest file of settings above it.

    Args:
        root: of the project.
        path: of the file, below the root.
    """
    for folder in (root / path).parents:
        for name, section in _PLACES:
            found = _read(folder / name, section)
            if found is not None:
                return _settings((folder / name).relative_to(root).as_posix(), section, found)
        if folder == root:
            break
    return PytestSettings()


def _settings(file: str, section: str, found: Mapping[str, Any]) -> PytestSettings:
    is_native = file.endswith(".toml") and not section.endswith("ini_options")
    table = {name: value for name, value in sorted(found.items()) if name not in _ELSEWHERE and _is_plain(value)}
    added = found.get("addopts", "")
    try:
        words = [str(word) for word in added] if isinstance(added, list) else shlex.split(str(added))
    except ValueError:
        words = []
    return PytestSettings(file, "tool.pytest" if is_native else "tool.pytest.ini_options", table, tuple(_deciding(words)))


_ELSEWHERE = frozenset({"addopts", "pythonpath", "testpaths", "norecursedirs", "cache_dir", "log_file"})
"""Settings of the project's own run of pytest: where tests and modules lie, what is written. Imports are looked up by rankbook itself."""
_FLAGS = frozenset({"--strict", "--strict-markers", "--strict-config", "--runxfail"})
_WITH_VALUE = {"-W": "-W", "--pythonwarnings": "-W", "-p": "-p", "-o": "-o", "--override-ini": "-o"}
"""Options with a value on which the end of a test may depend, with their short names."""


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float) or (isinstance(value, list) and all(isinstance(each, str | int | float) for each in value))


def _deciding(words: Sequence[str]) -> Iterator[str]:
    """Yield the options on which the end of a test may depend."""
    waiting = iter(words)
    for word in waiting:
        long, _, value = word.partition("=")
        if word in _FLAGS:
            yield word
        elif word in _WITH_VALUE:
            yield from (_WITH_VALUE[word], next(waiting, ""))
        elif long in _WITH_VALUE and long.startswith("--"):
            yield from (_WITH_VALUE[long], value)
        elif word[:2] in _WITH_VALUE and not word.startswith("--"):
            yield from (word[:2], word[2:])


def _read(path: Path, section: str) -> Mapping[str, Any] | None:
    try:
        seen = path.stat()
    except OSError:
        return None
    return _section(path, section, seen.st_mtime_ns, seen.st_size)


@lru_cache(maxsize=256)
def _section(path: Path, section: str, _changed: int, _size: int) -> Mapping[str, Any] | None:
    """Read one section of a file, which holds until the file changes: it is asked for with every page."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml":
            table: Any = tomllib.loads(text)
            for key in section.split("."):
                table = table.get(key) if isinstance(table, dict) else None
            return table if isinstance(table, dict) else None
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        parser.read_string(text)
        return dict(parser[section]) if parser.has_section(section) else None
    except (OSError, ValueError, configparser.Error):
        return None


def _rules(table: Mapping[str, Any]) -> Rules:
    known = Rules()
    return Rules(
        files=_words(table.get("python_files")) or known.files,
        classes=_words(table.get("python_classes")) or known.classes,
        functions=_words(table.get("python_functions")) or known.functions,
    )


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.split())
    return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list) else ()


def _anchored(pattern: str) -> str:
    return f"*/{pattern}" if "/" in pattern else pattern


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(name.startswith(pattern) or fnmatchcase(name, pattern) for pattern in patterns)
