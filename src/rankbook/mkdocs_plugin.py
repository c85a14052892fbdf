"""The door to MkDocs: keeps the generated pages current, puts them into the navigation, and shows how their listings last ended."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mkdocs.config import config_options
from mkdocs.config.base import Config
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin
from mkdocs.structure.files import File, Files, InclusionLevel

from rankbook import front_matter
from rankbook.config import Settings, load
from rankbook.document import document
from rankbook.errors import RankbookError
from rankbook.ledger import Ledger
from rankbook.pages import LAST_RUN_MARKER, LAST_RUN_NOTE, OVERVIEWS
from rankbook.site import expanded, last_runs, listed, script, style

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.livereload import LiveReloadServer
    from mkdocs.structure.nav import Navigation, Section
    from mkdocs.structure.pages import Page

    from rankbook.front_matter import Stamp
    from rankbook.listing import Run

STYLE = "assets/rankbook.css"
"""Where the built site holds the style of outcomes and of long names."""
SCRIPT = "assets/rankbook.js"
"""Where it holds the script that filters long pages."""
_SOURCE = '<h2 id="original-source"'
"""Heading of a source's listing, whose text the search leaves out: with it the index of a large book is slow to load."""
_LAST_RUN = re.compile(rf"(?:<p>{re.escape(LAST_RUN_NOTE)}</p>\s*)?{re.escape(LAST_RUN_MARKER)}")
"""What the table of the last runs replaces: the marker, with the note that stands in for the table elsewhere."""
_LINE_ANCHOR = re.compile(r'\bid="(__codelineno-[^"]+)"')
_log = logging.getLogger("mkdocs.plugins.rankbook")


class PluginOptions(Config):  # type: ignore[no-untyped-call] # MkDocs types it so
    """Options of the plugin in `mkdocs.yml`."""

    gen = config_options.Type(bool, default=True)
    """Whether each build generates the pages of the sources first."""
    nav_files = config_options.Type(int, default=500)
    """Largest number of file pages that the navigation lists; a larger book lists its folders only."""


class RankbookPlugin(BasePlugin[PluginOptions]):  # type: ignore[no-untyped-call] # MkDocs types it so
    """Generate pages before each build, and finish them with what only the site knows."""

    def __init__(self) -> None:
        self._serving = False
        self._settings = Settings()
        self._stamps: dict[str, Stamp] = {}

    def on_startup(self, *, command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:  # noqa: ARG002 - the signature is MkDocs' own
        """Remember whether a mistake ends the command or is shown while it goes on; the hook also keeps this object over rebuilds."""
        self._serving = command == "serve"

    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        """Add the style sheet and the script, before those of the project, which may override them."""
        config.extra_css = [STYLE, *config.extra_css]
        config.extra_javascript = [SCRIPT, *config.extra_javascript]
        return config

    def on_pre_build(self, *, config: MkDocsConfig) -> None:
        """Read the settings and generate the pages of the sources as they are now."""
        try:
            self._settings = load(Path(config.config_file_path or "mkdocs.yml").resolve().parent)
            if self.config.gen and self._settings.sources:
                for warning in document(self._settings).warnings:
                    _log.warning("%s", warning)
        except (RankbookError, OSError) as error:
            if not self._serving:
                raise PluginError(str(error)) from error
            _log.error("%s", error)

    def on_serve(self, server: LiveReloadServer, *, config: MkDocsConfig, builder: Callable[..., None]) -> LiveReloadServer:  # noqa: ARG002
        """Watch what the pages are made from."""
        settings = self._settings
        for path in (*settings.sources, settings.templates, "pyproject.toml"):
            if settings.below_root(path).exists():
                server.watch(str(settings.below_root(path)))
        return server

    def on_files(self, files: Files, *, config: MkDocsConfig) -> Files:
        """Say which generated pages the navigation lists, and write its part for each folder that `nav` names."""
        self._stamps = {file.src_uri: stamp for file, stamp in _stamped(files, config)}
        _warn_of_shared_addresses(files, self._stamps)
        shown = listed(self._stamps, self.config.nav_files, OVERVIEWS)
        for path in self._stamps:
            # Set for all of them: left alone, MkDocs leaves out pages about sources such as `.github/ci.yml`.
            files.src_uris[path].inclusion = InclusionLevel.INCLUDED if path in shown else InclusionLevel.NOT_IN_NAV
        if config.nav is not None:
            config.nav = expanded(config.nav, shown)
        for asset, content in ((STYLE, style()), (SCRIPT, script())):
            files.append(File.generated(config, asset, content=content))
        return files

    def on_nav(self, nav: Navigation, *, config: MkDocsConfig, files: Files) -> Navigation:  # noqa: ARG002
        """Show the navigation of its folder beside a page that the navigation does not list."""
        for path in self._stamps:
            page = files.src_uris[path].page
            if page is not None and page.parent is None:
                page.parent = _section_of(path, files)
        return nav

    def on_page_content(self, content: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG002
        """Put the table of the last runs in the place of its marker; in HTML, because there no listing can hold the marker itself."""
        # MkDocs does not look for anchors inside highlighted listings, and would call each link to a line broken.
        page.present_anchor_ids = (page.present_anchor_ids or set()) | set(_LINE_ANCHOR.findall(content))
        if page.file.src_uri in self._stamps:
            content = content.replace(_SOURCE, f"{_SOURCE} data-search-exclude", 1)
        return _LAST_RUN.sub(lambda _: self._last_runs(page.file), content, count=1)

    def _last_runs(self, file: File) -> str:
        stamp = self._stamps.get(file.src_uri)
        runs = {run.node_id: run for run in self._recorded(file, stamp)}
        return last_runs(runs.values(), stamp)

    def _recorded(self, file: File, stamp: Stamp | None) -> Iterable[Run]:
        ledger = Ledger(self._settings.below_root(self._settings.ledger))
        page = Path(os.path.relpath(file.abs_src_path or file.src_path, self._settings.root)).as_posix()
        try:
            return [*(ledger.last(stamp.source) if stamp and stamp.source else ()), *ledger.last_by_page(page)]
        except RankbookError as error:
            _log.warning("%s", error)
            return ()


def _section_of(path: str, files: Files) -> Section | None:
    """Find the section of the navigation that holds the page of the nearest folder of a page."""
    while path:
        path = path.rpartition("/")[0]
        index = files.src_uris.get(f"{path}/index.md".lstrip("/"))
        if index is not None and index.page is not None and index.page.parent is not None:
            return index.page.parent
    return None


def _warn_of_shared_addresses(files: Files, stamps: Iterable[str]) -> None:
    """Warn of generated pages of which the site can hold only one: with directory addresses `x/doc.md` and `x/doc/index.md` are one."""
    taken: dict[str, str] = {}
    for path in sorted(stamps):
        other = taken.setdefault(files.src_uris[path].dest_uri, path)
        if other != path:
            _log.warning("%s and %s have the same address; set `use_directory_urls: false` in mkdocs.yml", other, path)


def _stamped(files: Files, config: MkDocsConfig) -> Iterator[tuple[File, Stamp]]:
    """Yield the generated pages that the project itself does not exclude, each with what it says of itself."""
    for file in files.documentation_pages(inclusion=InclusionLevel.all):
        stamp = front_matter.read(front_matter.split(file.content_string)[0])
        if stamp is not None and not (config.exclude_docs and config.exclude_docs.match_file(file.src_uri)):
            yield file, stamp
