"""The search of the book: shards in the site, which hold what each source has; what writes them is loaded only when one is to change.

Prose is left to the search of the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rankbook import freshness
from rankbook.config import Settings
from rankbook.shelf import Place, Way, Written, unchanged
from rankbook.site.addresses import Addresses

if TYPE_CHECKING:
    from rankbook.model import Project

FOLDER = "assets/rankbook-search"
"""Where the built site holds the shards."""


def write(  # noqa: PLR0913 - one argument for each thing that the shards depend on
    settings: Settings,
    site_dir: Path,
    *,
    base: str,
    addresses: Addresses | None = None,
    survey: Callable[[], Project] | None = None,
    lies: Path | None = None,
) -> Written:
    """Bring the shards of a site up to date with what the last run of `rankbook gen` has kept.

    Args:
        settings: of the book.
        site_dir: folder of the built site.
        base: folder of all pages below that of the site's pages: `book`; empty when they are the same.
        addresses: how the site names its files.
        survey: gives what is known of the sources when no run has kept it; without it no shard is written then.
        lies: where the folder of the shards is now, when it waits elsewhere for an engine to build the site.

    Returns:
        What became of them.
    """
    manifest = freshness.load(settings)
    if manifest is not None and manifest.world != freshness.world(settings):
        manifest = None
    path = Path(site_dir, FOLDER)
    place, way = Place(path, lies or path), Way(base.strip("/"), addresses or Addresses())
    known = None if manifest is None else unchanged(settings, manifest, place, way)
    if known is not None:
        return known
    from rankbook import sharding

    return sharding.write(settings, manifest, place, way, survey)
