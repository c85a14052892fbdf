"""Settings: `[tool.rankbook]` of the project's `pyproject.toml`, overridden by flags."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from rankbook.errors import ConfigError

if TYPE_CHECKING:
    from rankbook.requirements import Rule


class Settings(Struct, frozen=True):
    """All settings; a field `source_path` is the key `source-path` in the file and the flag `--source-path`."""

    root: Path = field(default_factory=Path.cwd)
    """Folder that source paths start from and that holds `pyproject.toml`."""
    sources: tuple[str, ...] = ()
    """Files and folders to document, below the root."""
    out: str = "docs/suite"
    """Folder of the generated pages, below the root or absolute."""
    pack: str = "rankbook"
    """Template pack: a folder in `templates/`."""
    templates: str = "templates"
    """The project's own templates, searched before the packs that come with rankbook."""
    include: tuple[str, ...] = ()
    """Glob patterns of files to take; empty for all."""
    exclude: tuple[str, ...] = ()
    """Glob patterns of files to leave out."""
    jobs: int = 0
    """Processes; 0 for one per core."""
    title: str = ""
    """Title of the book's root page; the root folder's name when empty."""
    findings: tuple[str, ...] = ("S", "PERF", "PT", "B")
    """Rules of ruff whose findings the pages show, by code or by a code's beginning; empty for none."""
    apis: tuple[str, ...] = ()
    """Modules whose public names tests should exercise: `torch.distributed`; `mypkg.*` for all modules below `mypkg`."""
    engine: str = "local"
    """Engine that executes listings: `local`, `fresh`, `ray` or `slurm`."""
    ray_address: str = ""
    """Ray cluster of the engine `ray`; empty for one on this machine."""
    listing_jobs: int = 0
    """Listings that run at the same time; 0 for one per core."""
    gpus: str = ""
    """GPUs that listings may use, declared instead of asked for: `8`, `2 x H200 141 GiB`; empty for those that are there."""
    plan: bool = True
    """Whether a test that cannot run here, as its page says, is skipped without being started."""
    canary: str = "0%"
    """Share of the tests that is run again by new interpreters and compared: `2%`."""
    debt_days: int = 0
    """Days after which a proof counts as skip debt again; 0 for never."""
    listing_timeout: float = 300.0
    """Seconds without a sign of life after which a listing counts as hung."""
    package_path: tuple[str, ...] = ()
    """Folders in which the packages that the sources import are read, below the root or absolute; `installed` for those of this Python."""
    source_path: tuple[str, ...] = ()
    """Source trees in which a listing may find files that have no page."""
    requirements: Mapping[str, Rule] = field(default_factory=dict)
    """What names of decorators, marks and flags mean in this project, beside the names that rankbook knows."""
    ledger: str = ".rankbook/ledger.sqlite"
    """The record of runs, below the root or absolute."""

    repo_url: str = ""
    """Address of the repository on its forge; empty for Git's remote."""
    repo_branch: str = ""
    """Branch at which readers look at sources there, and edit them; empty for the remote's default branch."""
    repo_forge: str = ""
    """Kind of the forge, where its host does not tell it: `github`, `gitlab`, `bitbucket`, `gitea` ..."""

    def below_root(self, path: str) -> Path:
        """Give the absolute form of a path that a setting names."""
        return real(self.root / path)


def real(path: Path) -> Path:
    """Give the absolute form of a path without links; one that goes round in circles is left as it is, for no file is there.

    Args:
        path: of what may be there.
    """
    return Path(os.path.realpath(path))  # `Path.resolve` raises on a circle


def load(root: Path, overrides: Mapping[str, Any] | None = None) -> Settings:
    """Read the settings of the project at `root`.

    Args:
        root: folder with the project's `pyproject.toml`; it may lack one.
        overrides: values by field name that win over the file; None values are passed over.

    Raises:
        ConfigError: the file cannot be read, a key is unknown, or a value has the wrong type.
    """
    root = root.resolve()
    path = root / "pyproject.toml"
    table = _table(path) if path.is_file() else {}
    known = {name.replace("_", "-"): name for name in Settings.__struct_fields__ if name != "root"}
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            raise ConfigError(f"unknown setting '{key}' in [tool.rankbook]", where=path, right=f"known are {', '.join(known)}")
        values[known[key]] = _rules(value, path) if key == "requirements" else _checked(known[key], key, value, path)
    told = {key: value for key, value in (overrides or {}).items() if value is not None}
    for name, value in {**values, **told}.items():
        _check_range(name, value, None if name in told else path)
    return replace(Settings(root=root), **{**values, **told})


def find_root(start: Path) -> Path:
    """Find the project's root: the nearest folder upwards with `pyproject.toml` or `.git`, else `start` itself."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / "pyproject.toml").is_file() or (folder / ".git").exists():
            return folder
    return start


def _table(path: Path) -> dict[str, Any]:
    try:
        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read the settings: {error}", where=path, right="it must be valid TOML in UTF-8") from error
    table = tool.get("rankbook", {}) if isinstance(tool, dict) else None
    if not isinstance(table, dict):
        raise ConfigError("[tool.rankbook] is not a table", where=path, right="write it as a TOML table")
    return table


def _rules(rows: object, path: Path) -> dict[str, Rule]:
    """Read `[tool.rankbook.requirements]`."""
    if not isinstance(rows, dict):
        raise ConfigError(
            "setting 'requirements' is not a table", where=path, right="write [tool.rankbook.requirements] with a row per name"
        )
    from rankbook.vocabulary import rule_of  # few projects have such a table

    rules = {}
    for name, row in rows.items():
        try:
            rules[name] = rule_of(row)
        except ValueError as error:
            raise ConfigError(f"the row '{name}' of [tool.rankbook.requirements] {error}", where=path, right=f"write {ROW}, say") from error
    return rules


ROW = 'needs_two_gpus = { gpus = "2" }'
"""A row of `[tool.rankbook.requirements]`, as an example."""


def _checked(name: str, key: str, value: object, path: Path) -> object:
    default = getattr(Settings(), name)
    if isinstance(default, tuple):
        if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
            return tuple(value)
        raise ConfigError(f"setting '{key}' is not a list of strings", where=path, right=f'write {key} = ["..."]')
    if isinstance(default, float) and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if type(value) is not type(default):
        wanted = {str: "a string", int: "a whole number", float: "a number"}[type(default)]
        raise ConfigError(f"setting '{key}' is not {wanted}", where=path, right=f"write {key} = {default!r}, say")
    return value


_RANGES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "sources": (all, "name files or folders below the root, '.' for the root itself"),
    "out": (bool, "name a folder, '.' for the root itself"),
    "ledger": (bool, "name a file"),
    "pack": (lambda value: value == PurePath(value).name != "", "write the name of a pack: a folder in `templates`"),
    "listing_timeout": (lambda value: 0 < value < math.inf, "write a number of seconds above 0"),
    **dict.fromkeys(("jobs", "listing_jobs", "debt_days"), (lambda value: value >= 0, "write a whole number from 0 on")),
}
"""Which values of the right type mean something, and what would be right, by field."""


def _check_range(name: str, value: Any, path: Path | None) -> None:
    if "\0" in (value if isinstance(value, str) else "".join(value) if isinstance(value, tuple) else ""):
        raise ConfigError(f"setting '{name.replace('_', '-')}' holds a null character", where=path, right="take it out")
    holds, right = _RANGES.get(name, (None, ""))
    if holds is not None and not holds(value):
        said = "is empty" if value == "" or isinstance(value, tuple) else f"is {value!r}"
        raise ConfigError(f"setting '{name.replace('_', '-')}' {said}", where=path, right=right)
