"""The door `rankbook stamp`: puts the generated pages into a site that any engine has built, one that knows no plugin of ours, say."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rankbook.config import Settings, real
from rankbook.document import survey_tree
from rankbook.errors import RankbookError
from rankbook.publish import Docs, Ledgered, Published, Site, finish, named_by, publish, shell_of
from rankbook.report import others_among, pages_among, plural
from rankbook.site.addresses import Addresses
from rankbook.told_engines import told
from rankbook.workers import beside, processes

_PAGE = ".html"
"""End of the name of a page of the site."""


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
    engine = told(settings.root)
    path = real(settings.root / (chosen.site_dir or engine.site_dir))
    folder = named_by(settings.root / engine.docs_dir, settings.root)
    if chosen.docs_dir and real(settings.root / chosen.docs_dir) != real(folder):
        folder = real(settings.root / chosen.docs_dir)
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
    for problem, _ in published.problems:
        warn(problem)
    say(_summary(published))
    return 1 if chosen.strict and published.problems else 0


def _summary(published: Published) -> str:
    """Say in one line what has become of the site."""
    written, removed = pages_among(published.written, _PAGE), pages_among(published.removed, _PAGE)
    told = [f"{written:,} written", *([f"{removed:,} removed"] if removed else [])]
    others = others_among({"written": published.written, "removed": published.removed}, _PAGE)
    return f"{plural(published.pages, 'generated page')}: {', '.join((*told, *others))}"
