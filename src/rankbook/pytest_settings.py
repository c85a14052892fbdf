"""What the project's configuration tells pytest of how tests run: read from the file that pytest would read, without pytest."""

from __future__ import annotations

import configparser
import json
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct, field

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


def settings_in(folder: Path) -> Mapping[str, Any]:
    """Give the settings of a folder, from the first file that has any; one that cannot be read has none.

    Args:
        folder: with `pytest.ini`, `pyproject.toml`, `tox.ini` or `setup.cfg`; it may lack them all.
    """
    return next((found for name, section in _PLACES if (found := _read(folder / name, section)) is not None), {})


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
    table = {name: value for name, value in sorted(found.items()) if _bears(name) and _is_plain(value)}
    added = found.get("addopts", "")
    try:
        words = [str(word) for word in added] if isinstance(added, list) else shlex.split(str(added))
    except ValueError:
        words = []
    return PytestSettings(file, "tool.pytest" if is_native else "tool.pytest.ini_options", table, tuple(_deciding(words)))


_ELSEWHERE = frozenset({
    "addopts", "cache_dir", "console_output_style", "minversion", "norecursedirs", "pythonpath", "required_plugins", "strict_config",
    "testpaths",
})  # fmt: skip
"""Settings of the project's own run of pytest: where tests and modules lie, what is shown and kept. Rankbook itself looks imports up."""
_STARTS_ELSEWHERE = ("doctest_", "junit_", "log_cli", "log_file", "tmp_path_retention_", "truncation_", "verbosity_")
"""How names of others begin."""
_FLAGS = frozenset({"--strict", "--strict-markers", "--runxfail"})
_WITH_VALUE = {"-W": "-W", "--pythonwarnings": "-W", "-p": "-p", "-o": "-o", "--override-ini": "-o"}
"""Options with a value on which the end of a test may depend, with their short names."""


def _bears(name: str) -> bool:
    """Say whether a setting may bear on how a test ends."""
    return name not in _ELSEWHERE and not name.startswith(_STARTS_ELSEWHERE)


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
