"""The list that MkDocs makes of all files, made quickly.

Of generated pages it is to hold no more than where they lie; and of what comes with the theme the engine asks for each name whether it
takes it, which with Material are 12,000 pictures in a folder of which it takes none. What is here stands in for what the engine does by
itself, for one list at a time; an engine that makes its list otherwise makes it as ever.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from jinja2 import FileSystemLoader
from mkdocs.structure import files as listing
from mkdocs.structure.files import File, Files, InclusionLevel

from rankbook.site.addresses import Addresses

if TYPE_CHECKING:
    from jinja2 import Environment
    from mkdocs.config.defaults import MkDocsConfig

_engine: Any = import_module("mkdocs.commands.build")
_MADE_BY_ENGINE = getattr(_engine, "get_files", None)


def list_quickly(known: Collection[str]) -> None:
    """Let the engine take up the pages that rankbook is known to have made without working out what it needs of pages that it builds.

    Args:
        known: paths of the pages, below the folder of all pages.
    """
    if _MADE_BY_ENGINE is None or _engine.get_files is not _MADE_BY_ENGINE or listing.File is not File:
        return
    make = _MADE_BY_ENGINE

    def get_files(config: Any) -> Any:
        _engine.get_files = make
        named = Addresses(config.use_directory_urls).file
        make_empty, included = File.__new__, InclusionLevel.INCLUDED

        def file(path: str, src_dir: str | None, dest_dir: str, use_directory_urls: bool) -> File:  # noqa: FBT001 - the engine passes them so
            uri = path.removeprefix("./")
            if uri not in known:
                return File(path, src_dir, dest_dir, use_directory_urls)
            found = make_empty(File)
            found.__dict__ = {
                "src_uri": uri,
                "src_dir": src_dir,
                "dest_dir": dest_dir,
                "use_directory_urls": use_directory_urls,
                "dest_uri": named(uri),
                "inclusion": included,
            }
            return found

        listing.File = file  # type: ignore[assignment, misc] # it is called, and nothing else
        try:
            found = make(config)
        finally:
            listing.File = File  # type: ignore[misc]
        found.add_files_from_theme = partial(_add_files_from_theme, found)
        return found

    _engine.get_files = get_files


def _add_files_from_theme(files: Files, env: Environment, config: MkDocsConfig) -> None:
    """Let the engine add what it takes of a theme, without going through the hidden folders of which it takes nothing."""
    if type(env.loader) is FileSystemLoader:
        env.list_templates = partial(_listed, env.loader)  # type: ignore[method-assign]
    try:
        Files.add_files_from_theme(files, env, config)
    finally:
        vars(env).pop("list_templates", None)


def _listed(loader: FileSystemLoader, filter_func: Callable[[str], bool]) -> list[str]:
    """Name the files of a theme that the engine takes, sorted.

    Args:
        loader: knows the theme's folders.
        filter_func: tells whether the engine takes a file, by its path in the theme.
    """
    found: set[str] = set()
    for folder in map(os.fspath, loader.searchpath):
        for place, folders, names in os.walk(folder, followlinks=loader.followlinks):
            inside = place[len(folder) :].strip(os.sep).replace(os.sep, "/")
            if not inside:
                folders[:] = [name for name in folders if name[0] != "." or filter_func(f"{name}/")]
            found.update(f"{inside}/{name}" if inside else name for name in names)
    return sorted(filter(filter_func, found))
