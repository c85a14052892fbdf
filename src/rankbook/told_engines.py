"""What the engine of a site is told in its own file of settings, as far as rankbook needs it without the engine."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from rankbook.errors import ConfigError, bad_yaml

MKDOCS = ("mkdocs.yml", "mkdocs.yaml")
"""Where MkDocs is told what to build."""
FILES = (*MKDOCS, "properdocs.yml", "zensical.toml")
"""Where engines are told what to build, the first that is there counts."""


class Engine(Struct, frozen=True):
    """What the settings of the engine say."""

    path: Path | None
    """Their file; None where there is none."""
    docs_dir: str
    site_dir: str
    directories: bool
    repo_url: str


def told(root: Path, files: Iterable[str] = FILES) -> Engine:
    """Read what the engine of a site is told.

    Args:
        root: folder of its settings.
        files: names that they may have.

    Raises:
        ConfigError: they cannot be read, or name a folder by what is no text.
    """
    path = next((root / name for name in files if (root / name).is_file()), None)
    table = _table(path) if path else {}
    for key in ("docs_dir", "site_dir"):
        if not isinstance(table.get(key, ""), str):
            raise ConfigError(f"{key} is no text", where=path, right="name a folder")
    return Engine(
        path,
        docs_dir=table.get("docs_dir", "docs"),
        site_dir=table.get("site_dir", "site"),
        directories=bool(table.get("use_directory_urls", True)),
        repo_url=str(table.get("repo_url") or ""),
    )


def _table(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml":
            table: Any = tomllib.loads(text).get("project", {})
        else:
            table = yaml.load(text, _Loader)  # noqa: S506 - it makes nothing but plain values
    except yaml.YAMLError as error:
        raise bad_yaml(error, path) from error
    except UnicodeDecodeError as error:
        what = f"it is not UTF-8 (at offset {error.start})"
        raise ConfigError(f"cannot read the settings of the site: {what}", where=path, right="save it as UTF-8") from error
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read the settings of the site: {error}", where=path, right="it must be valid, in UTF-8") from error
    if not isinstance(table, dict):
        what = "its `project`" if path.suffix == ".toml" else "what it holds"
        raise ConfigError(f"{what} is no table of settings", where=path, right="write a key and a value on each line")
    return table


class _Loader(yaml.SafeLoader):
    """Reads settings in which engines allow tags of their own; what stands behind one is passed over."""


_Loader.add_multi_constructor("", lambda *_: None)
