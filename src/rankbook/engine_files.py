"""The list that MkDocs makes of all files, made quickly: of generated pages it is to hold no more than where they lie.

It stands in for what the engine does by itself, for one list at a time; an engine that makes its list otherwise makes it as ever.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

from mkdocs.structure import files as listing
from mkdocs.structure.files import File, InclusionLevel

from rankbook.site.addresses import Addresses

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
        addresses = Addresses(config.use_directory_urls)

        def file(path: str, src_dir: str | None, dest_dir: str, use_directory_urls: bool) -> File:  # noqa: FBT001 - the engine passes them so
            uri = path.removeprefix("./")
            if uri not in known:
                return File(path, src_dir, dest_dir, use_directory_urls)
            found = File.__new__(File)
            found.__dict__ = {
                "src_uri": uri,
                "src_dir": src_dir,
                "dest_dir": dest_dir,
                "use_directory_urls": use_directory_urls,
                "dest_uri": addresses.file(uri),
                "inclusion": InclusionLevel.INCLUDED,
            }
            return found

        listing.File = file  # type: ignore[assignment, misc] # it is called, and nothing else
        try:
            return make(config)
        finally:
            listing.File = File  # type: ignore[misc]

    _engine.get_files = get_files
