"""Settings: `[tool.rankbook]` of the project's `pyproject.toml`, overridden by flags."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from rankbook.errors import ConfigError

if TYPE_CHECKING:
    from rankbook.requirements import Rule

ENGINES = ("local", "fresh", "ray", "slurm")
"""Values of the setting `engine`; each is a module of the package `engines`."""
FORGES = ("github", "gitlab", "bitbucket", "bitbucket-server", "gitea", "azure", "forgejo", "codeberg")
"""Values of the setting `repo-forge`; how each writes its addresses, `site` knows."""
_SHARE = re.compile(r"(\d+(?:\.\d+)?) ?%", re.ASCII)
_GLOB = re.compile(r"(?:[^\[]|\[[^/][^\]/]*\])+", re.DOTALL)
_RULE = re.compile(r"[A-Z]+\d*", re.ASCII)
"""A pattern in which each bracket that is opened is closed within its name."""
_LINE = re.compile(r" \(at line (\d+), column \d+\)$")
"""What the reader of TOML says of a place."""


NO_KEYS = ("root", "staged")
"""Settings that no file can hold."""


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
    """Title of the book's root page; when empty the project's name, else the repository's at `origin`, else the root folder's."""
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
    """Seconds that a listing, or one test of it, may take before it counts as hung."""
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

    staged: bool = False
    """Whether only files of Git's index count, as in a hook before a commit; for the command line alone."""

    @property
    def book_title(self) -> str:
        """The title of the book's root page."""
        return self.title or _name_at_origin(self.root) or self.root.name

    def below_root(self, path: str) -> Path:
        """Give the absolute form of a path that a setting names."""
        return real(self.root / path)

    def place_of(self, page: str) -> str:
        """Give the path of a page as a user names it: below the root where it lies there.

        Args:
            page: below the folder of all pages.
        """
        path = self.below_root(self.out) / page
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else os.fspath(path)


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
    document = _document(path)
    table = _table(document, path)
    known = {name.replace("_", "-"): name for name in Settings.__struct_fields__ if name not in NO_KEYS}
    values: dict[str, Any] = {}
    for key, value in table.items():
        with _placed(path, key):
            if key not in known:
                raise ConfigError(f"unknown setting '{key}' in [tool.rankbook]", where=path, right=f"known are {', '.join(known)}")
            values[known[key]] = _rules(value, path) if key == "requirements" else _checked(known[key], key, value, path)
    project = document.get("project")
    if not values.get("title") and isinstance(project, dict) and isinstance(project.get("name"), str):
        values["title"] = project["name"]
    told = {key: value for key, value in (overrides or {}).items() if value is not None}
    settings = replace(Settings(root=root), **{**values, **told})
    for name in {**values, **told}:
        with _placed(path, name.replace("_", "-")):
            _check(settings, name, None if name in told else path)
    return settings


def told_at(settings: Settings, name: str) -> tuple[Path, int] | None:
    """Find where the project's file says a setting; None where the command line does, or nobody.

    Args:
        settings: as they were read.
        name: of the field.
    """
    path, key, value = settings.root / "pyproject.toml", name.replace("_", "-"), getattr(settings, name)
    said = _table(_document(path), path).get(key)
    if said is None or (tuple(said) if isinstance(said, list) else said) != value:
        return None
    line = _line(path, ("tool", "rankbook", key))
    return (path, line) if line else None


def book_at(folder: Path) -> Settings | None:
    """Read the settings of the project in a folder; None where it has none for rankbook, or they cannot be read."""
    path = folder / "pyproject.toml"
    try:
        return load(folder) if path.is_file() and _table(_document(path), path) else None
    except (ConfigError, OSError):
        return None


def find_root(start: Path) -> Path:
    """Find the project's root: the nearest folder upwards with `pyproject.toml` or `.git`, else `start` itself."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / "pyproject.toml").is_file() or (folder / ".git").exists():
            return folder
    return start


def share(text: str) -> float:
    """Read a share: `2%` is 0.02.

    Raises:
        ValueError: it is none.
    """
    match = _SHARE.fullmatch(text.strip())
    if match is None or float(match[1]) > 100:
        raise ValueError(text)
    return float(match[1]) / 100


def _name_at_origin(root: Path) -> str:
    """Give the name of the repository that a folder is the top of, as all its clones know it; empty where none is told."""
    if not (root / ".git").exists():
        return ""
    from rankbook.remotes import Remote, address  # most projects say how they are called

    url = address(root, "origin")
    remote = Remote.of(url)
    path = remote.path if remote is not None else url.rstrip("/").removesuffix("/.git").removesuffix(".git").replace(":", "/")
    return PurePath(path).name.strip(".")


def _table(document: dict[str, Any], path: Path) -> dict[str, Any]:
    """Give `[tool.rankbook]`; empty where there is none."""
    tool = document.get("tool", {})
    table = tool.get("rankbook", {}) if isinstance(tool, dict) else None
    if not isinstance(table, dict):
        raise ConfigError("[tool.rankbook] is not a table", where=path, right="write it as a TOML table")
    return table


@contextmanager
def _placed(path: Path, *keys: str) -> Iterator[None]:
    """Add the line to what is said of a setting.

    Args:
        path: of the file of settings.
        keys: of the setting, from `[tool.rankbook]` on.
    """
    try:
        yield
    except ConfigError as error:
        if error.where != path or error.line is not None:
            raise
        raise ConfigError(error.what, where=path, line=_line(path, ("tool", "rankbook", *keys)), right=error.right) from error.__cause__


def _line(path: Path, keys: tuple[str, ...]) -> int | None:
    """Find the line that sets a value: the first that the file has it with, and has not without.

    Args:
        path: of a file of TOML.
        keys: of the value, from the outermost table on.

    Returns:
        The line, counted from 1; None where the key is written in a way of its own, as a joined `a.b` or with escapes.
    """
    lines = [f"{line}\n" for line in path.read_text(encoding="utf-8").split("\n")]
    for count, line in enumerate(lines):
        if keys[-1] in line and _sets("".join(lines[:count]), keys) is False:
            grown = (_sets("".join(lines[:end]), keys) for end in range(count + 1, len(lines) + 1))
            if next((known for known in grown if known is not None), False):
                return count + 1
    return None


def _sets(text: str, keys: tuple[str, ...]) -> bool | None:
    """Tell whether a text of TOML sets a value; None when it ends in the middle of another."""
    try:
        found: object = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    for key in keys:
        if not isinstance(found, dict) or key not in found:
            return False
        found = found[key]
    return True


def _document(path: Path) -> dict[str, Any]:
    """Read a file of TOML; empty where there is none."""
    line = None
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except PermissionError:
        what, right = "permission denied", "let the user who runs rankbook read it"
    except OSError as error:
        what, right = (error.strerror or str(error)).lower(), "it must be a file that can be read"
    except UnicodeDecodeError as error:
        what, right = f"it is not UTF-8 (at offset {error.start})", "it must be valid TOML in UTF-8"
    except tomllib.TOMLDecodeError as error:
        found = _LINE.search(str(error))
        line = int(found[1]) if found else None
        what, right = _LINE.sub("", str(error)), "it must be valid TOML in UTF-8"
    raise ConfigError(f"cannot read the settings: {what}", where=path, line=line, right=right)


def _rules(rows: object, path: Path) -> dict[str, Rule]:
    """Read `[tool.rankbook.requirements]`."""
    if not isinstance(rows, dict):
        raise ConfigError(
            "setting 'requirements' is not a table", where=path, right="write [tool.rankbook.requirements] with a row per name"
        )
    from rankbook.vocabulary import rule_of  # few projects have such a table

    rules = {}
    for name, row in rows.items():
        with _placed(path, "requirements", name):
            try:
                rules[name] = rule_of(name, row)
            except ConfigError as error:
                what = f"the row '{name}' of [tool.rankbook.requirements] {error.what}"
                raise ConfigError(what, where=path, right=error.right) from error
    return rules


_TYPES: Mapping[type, tuple[str, str]] = {
    str: ("a string", '"..."'),
    bool: ("true or false", "true"),
    int: ("a whole number", "0"),
    float: ("a number", "300.0"),
}
"""How TOML calls a type, and writes a value of it."""


def _checked(name: str, key: str, value: object, path: Path) -> object:
    default = getattr(Settings(), name)
    if isinstance(default, tuple):
        if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
            return tuple(value)
        raise ConfigError(f"setting '{key}' is not a list of strings", where=path, right=f'write {key} = ["..."]')
    if isinstance(default, float) and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if type(value) is not type(default):
        wanted, example = _TYPES[type(default)]
        raise ConfigError(f"setting '{key}' is not {wanted}", where=path, right=f"write {key} = {example}, say")
    return value


def _is_anything(_value: object) -> bool:
    return True


def _is_share(text: str) -> bool:
    try:
        share(text)
    except ValueError:
        return False
    return True


_RANGES: Mapping[str, tuple[Callable[[Any], object], str]] = {
    "sources": (bool, "name files or folders below the root, '.' for the root itself"),
    "out": (bool, "name a folder other than the root, 'docs' say"),
    "ledger": (bool, "name a file"),
    "pack": (lambda value: value == PurePath(value).name != "", "write the name of a pack: a folder in `templates`"),
    "listing_timeout": (lambda value: 0 < value < math.inf, "write a number of seconds above 0"),
    "engine": (ENGINES.__contains__, f"known are {', '.join(ENGINES)}"),
    "canary": (_is_share, "write a share from 0% to 100%, such as 2%"),
    "findings": (_RULE.fullmatch, "write the code of a rule of ruff, or its beginning: PT011, PT"),
    "repo_forge": (lambda value: not value or value.lower() in FORGES, f"known are {', '.join(FORGES)}"),
    **dict.fromkeys(("include", "exclude"), (_GLOB.fullmatch, "write a glob such as *.png, and [[] for a bracket itself")),
    **dict.fromkeys(("jobs", "listing_jobs", "debt_days"), (lambda value: value >= 0, "write a whole number from 0 on")),
}
"""Which values of the right type mean something, of a list which entries, and what would be right, by field."""


def _check(settings: Settings, name: str, path: Path | None) -> None:
    """Make sure that a setting of the right type means something.

    Args:
        settings: all of them.
        name: of the field.
        path: of the file that says it; None when a flag does.
    """
    key, value = name.replace("_", "-"), getattr(settings, name)
    entries = value if isinstance(value, tuple) else (value,)
    if any("\0" in entry for entry in entries if isinstance(entry, str)):
        raise ConfigError(f"setting '{key}' holds a null character", where=path, right="take it out")
    holds, right = _RANGES.get(name, (_is_anything, ""))
    for entry in entries:
        if not holds(entry):
            said = "is empty" if entry == "" else f"holds {entry!r}" if isinstance(value, tuple) else f"is {entry!r}"
            raise ConfigError(f"setting '{key}' {said}", where=path, right=right)
    if name in _CHECKS:
        _CHECKS[name](settings, path)


def _check_templates(settings: Settings, path: Path | None) -> None:
    if settings.templates != Settings().templates and not settings.below_root(settings.templates).is_dir():
        what = f"the setting 'templates' names '{settings.templates}', which is no folder"
        raise ConfigError(what, where=path, right="name the folder of your template packs, or leave the setting out")


def _check_source_path(settings: Settings, path: Path | None) -> None:
    missing = [tree for tree in settings.source_path if not settings.below_root(tree).is_dir()]
    if missing and path is None:  # what a file names may be on other machines
        raise ConfigError(f"--source-path names '{missing[0]}', which is no folder", right="name the root of a source tree")


def _check_gpus(settings: Settings, path: Path | None) -> None:
    if settings.gpus.strip():
        from rankbook.gpus import declared  # few projects declare GPUs

        try:
            declared(settings.gpus)
        except ConfigError as error:
            raise ConfigError(error.what, where=path, right=error.right) from error


def _check_repo_url(settings: Settings, path: Path | None) -> None:
    if settings.repo_url:
        from rankbook.remotes import Remote  # few projects say what Git says

        scheme, _, rest = settings.repo_url.strip().partition(":")
        is_address = rest.startswith("//") or not {"@", "."}.isdisjoint(scheme)  # `git@host:owner/name`, but not `javascript:...`
        if not is_address or Remote.of(settings.repo_url) is None:
            what = "no browser opens the address in the setting 'repo-url'"
            raise ConfigError(what, where=path, right='write repo-url = "https://host/owner/name"')


_CHECKS: Mapping[str, Callable[[Settings, Path | None], None]] = {
    "templates": _check_templates,
    "source_path": _check_source_path,
    "gpus": _check_gpus,
    "repo_url": _check_repo_url,
}
"""What else is asked of a setting, by field."""
