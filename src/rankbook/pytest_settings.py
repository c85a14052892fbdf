"""The project's settings of pytest: in the file that pytest would read, without pytest."""

from __future__ import annotations

import configparser
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

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

_OF_THE_RUN = frozenset({
    "addopts", "cache_dir", "console_output_style", "minversion", "norecursedirs", "pythonpath", "required_plugins", "strict",
    "strict_config", "testpaths",
})  # fmt: skip
"""Settings that say what a run of pytest collects, shows and keeps, not how a test behaves; `pythonpath` is looked at elsewhere."""

_STARTS_OF_THE_RUN = ("doctest_", "junit_", "log_cli", "log_file", "tmp_path_retention_", "truncation_", "verbosity_")
"""How names of others begin."""

_STRICT = ("strict_markers", "strict_parametrization_ids", "xfail_strict")
"""What the setting `strict` stands for, as far as it bears on tests."""


def settings_in(folder: Path) -> Mapping[str, Any]:
    """Give the settings of a folder, from the first file that has any; one that cannot be read has none.

    Args:
        folder: with `pytest.ini`, `pyproject.toml`, `tox.ini` or `setup.cfg`; it may lack them all.
    """
    return next((found for name, section in _PLACES if (found := _read(folder / name, section)) is not None), {})


def settings_of(file: Path) -> Mapping[str, Any]:
    """Give the settings in a file that pytest was told to read, whatever its name."""
    return next((found for _, section in _PLACES if (found := _read(file, section)) is not None), {})


def bearing(table: Mapping[str, Any], overrides: Iterable[str] = ()) -> Iterator[str]:
    """Yield the settings that bear on a test, whoever collects it, each as `NAME=VALUE`, what the option `--override-ini` takes.

    Args:
        table: settings.
        overrides: what that option was given.
    """
    values = {name: _text(value) for name, value in table.items() if not isinstance(value, Mapping)}
    values |= {name: value for name, _, value in (entry.partition("=") for entry in overrides)}
    if values.get("strict", "").lower() in ("true", "1", "yes", "on"):
        values = dict.fromkeys(_STRICT, "true") | values
    for name, value in sorted(values.items()):
        if name not in _OF_THE_RUN and not name.startswith(_STARTS_OF_THE_RUN):
            yield f"{name}={value}"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _read(path: Path, section: str) -> Mapping[str, Any] | None:
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
