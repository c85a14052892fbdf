"""The door `rankbook stamp`: puts the generated pages into a site that any engine has built, one that knows no plugin of ours, say."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from rankbook.config import Settings, real
from rankbook.document import survey_tree
from rankbook.errors import ConfigError, RankbookError, bad_yaml
from rankbook.publish import Docs, Ledgered, Published, Site, finish, publish, shell_of
from rankbook.report import others_among, pages_among, plural
from rankbook.site.addresses import Addresses
from rankbook.workers import beside, processes

_PAGE = ".html"
"""End of the name of a page of the site."""
_FILES = ("mkdocs.yml", "mkdocs.yaml", "properdocs.yml", "zensical.toml")
"""Where engines are told what to build, the first that is there counts."""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--root", type=Path, help="folder of the site's settings (default: the project around the current folder)")
    parser.add_argument("--site-dir", type=Path, help="folder of the built site (default: as the engine's settings say)")
    parser.add_argument("--docs-dir", type=Path, help="folder of all pages (default: as the engine's settings say)")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a link of a generated page leads nowhere")


def stamp(chosen: argparse.Namespace, settings: Settings, say: Callable[[str], None], warn: Callable[[str], None]) -> int:
    """Put the generated pages into the site.

    Args:
        chosen: the options.
        settings: of the project.
        say: prints a line.
        warn: prints a warning.

    Raises:
        RankbookError: there is no site, or no page of it whose shell the generated pages could take.
    """
    engine = _engine(settings.root)
    path = real(settings.root / (chosen.site_dir or engine.site_dir))
    folder = real(settings.root / (chosen.docs_dir or engine.docs_dir))
    if not path.is_dir():
        raise RankbookError("there is no built site", where=path, right="build the site first, or name its folder with --site-dir")
    if not folder.is_dir():
        raise RankbookError("there is no folder of pages", where=folder, right="name it with --docs-dir")
    site = Site(settings, folder, path)
    site.unshelter()
    site.unshelter_search()
    docs = Docs(site)
    ledgered = Ledgered(docs, directories=engine.directories)
    shell = shell_of(docs, directories=engine.directories)
    forge = site.forge(engine.repo_url)
    write_search = partial(site.write_search, Addresses(engine.directories), partial(survey_tree, settings))
    with beside(write_search, processes(settings.jobs)):
        published = publish(docs, shell, directories=engine.directories, ledgered=ledgered, forge=forge)
    finish(docs, directories=engine.directories, ledgered=ledgered)
    for problem in published.problems:
        warn(problem)
    say(_summary(published))
    return 1 if chosen.strict and published.problems else 0


def _summary(published: Published) -> str:
    """Say in one line what has become of the site."""
    written, removed = pages_among(published.written, _PAGE), pages_among(published.removed, _PAGE)
    told = [f"{written:,} written", *([f"{removed:,} removed"] if removed else [])]
    others = others_among({"written": published.written, "removed": published.removed}, _PAGE)
    return f"{plural(published.pages, 'generated page')}: {', '.join((*told, *others))}"


class _Engine(Struct, frozen=True):
    """What the settings of the engine say."""

    docs_dir: str
    site_dir: str
    directories: bool
    repo_url: str


def _engine(root: Path) -> _Engine:
    path = next((root / name for name in _FILES if (root / name).is_file()), None)
    told = _table(path) if path else {}
    for key in ("docs_dir", "site_dir"):
        if not isinstance(told.get(key, ""), str):
            raise ConfigError(f"{key} is no text", where=path, right="name a folder")
    return _Engine(
        docs_dir=told.get("docs_dir", "docs"),
        site_dir=told.get("site_dir", "site"),
        directories=bool(told.get("use_directory_urls", True)),
        repo_url=str(told.get("repo_url") or ""),
    )


def _table(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml":
            told: Any = tomllib.loads(text).get("project", {})
        else:
            told = yaml.load(text, _Loader)  # noqa: S506 - it makes nothing but plain values
    except yaml.YAMLError as error:
        raise bad_yaml(error, path) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read the settings of the site: {error}", where=path, right="it must be valid, in UTF-8") from error
    if not isinstance(told, dict):
        what = "its `project`" if path.suffix == ".toml" else "what it holds"
        raise ConfigError(f"{what} is no table of settings", where=path, right="write a key and a value on each line")
    return told


class _Loader(yaml.SafeLoader):
    """Reads settings in which engines allow tags of their own; what stands behind one is passed over."""


_Loader.add_multi_constructor("", lambda *_: None)
