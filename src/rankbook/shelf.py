"""What the search of the book keeps from one run to the next, and what a site holds of it."""

from __future__ import annotations

import marshal
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct

from rankbook import freshness
from rankbook.config import Settings
from rankbook.freshness import Manifest
from rankbook.site.addresses import Addresses

_NAME = "search-1.sqlite"
"""Of the file of what is kept; its number is that of the format."""


class Written(Struct, frozen=True):
    """What became of the shards."""

    files: int = 0
    """How many there are now, with the index of them; 0 where nothing is known of the sources."""
    written: int = 0
    removed: int = 0
    size: int = 0
    """Bytes of all."""


class Place(Struct, frozen=True):
    """The folder of the shards of a site."""

    path: Path
    """Where the site has it."""
    lies: Path
    """Where it is now: elsewhere while an engine builds the site."""


class Way(Struct, frozen=True):
    """How a result leads to its page."""

    base: str
    """Folder of all pages below that of the site's pages; empty when they are the same."""
    addresses: Addresses

    def below(self, page: str) -> str:
        """Give the address of a page, below the folder of all pages."""
        return self.addresses.file(page).removesuffix("index.html" if self.addresses.directories else "")


def kept_in(settings: Settings) -> Path:
    """Name the file in which rows and shards are kept from one run to the next.

    Args:
        settings: of the book.
    """
    return freshness.cache_folder(settings) / _NAME


def token_of(manifest: Manifest, way: Way) -> str:
    """Tell the shards that belong to a run of `rankbook gen` and to a way from those of others.

    Args:
        manifest: what the run has left.
        way: from a result to its page.
    """
    return f"{manifest.generation}\n{way}"


def seen(folder: Path) -> dict[str, tuple[int, int]]:
    """Give times and sizes of the files of a folder, by their names."""
    with os.scandir(folder) as entries:
        return {entry.name: (stat.st_mtime_ns, stat.st_size) for entry in entries if (stat := entry.stat())}


def unchanged(settings: Settings, manifest: Manifest, place: Place, way: Way) -> Written | None:
    """Look whether the shards of a site are as the last run has left them.

    Args:
        settings: of the book.
        manifest: what the last run of `rankbook gen` has left.
        place: folder of the shards.
        way: from a result to its page.

    Returns:
        What there is; None where something may have to change.
    """
    try:
        there = seen(place.lies)
        address = f"file:{quote(os.fspath(kept_in(settings)))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            about = dict(connection.execute("SELECT key, value FROM about WHERE key IN ('world', 'token', 'site')"))
        world, token, site = (marshal.loads(about[key]) for key in ("world", "token", "site"))  # noqa: S302 - it lies in the user's own cache
    except (OSError, sqlite3.Error, EOFError, ValueError, TypeError, KeyError):
        return None
    if (world, token) != (manifest.world, token_of(manifest, way)) or site.get(os.fspath(place.path)) != there or not there:
        return None
    return Written(len(there), size=sum(size for _, size in there.values()))
