"""The door to MkDocs: keeps the generated pages current, and puts them into the site and its navigation with what the ledger knows.

The engine builds what people wrote and one page more, the index of the book; into the shell of that page the generated pages are
stamped. With the option `stamp: false` the engine builds all of them by itself.
"""

from __future__ import annotations

import logging
import os
import re
from contextlib import ExitStack, suppress
from functools import cached_property, partial
from html import escape, unescape
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

import click
from mkdocs.config import config_options
from mkdocs.config.base import Config
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, CombinedEvent, event_priority, get_plugin_logger
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.toc import get_toc

from rankbook import freshness
from rankbook.config import Settings, find_root, load, real
from rankbook.document import document, survey_tree
from rankbook.engine_files import list_quickly
from rankbook.engine_templates import take_compiled
from rankbook.errors import RankbookError, refused
from rankbook.front_matter import OVERVIEWS
from rankbook.garbage import leave_at_exit, pass_over, uncollected
from rankbook.markers import ENGLISH, LAST_RUN, LAST_RUN_MARKER, LAST_RUN_NOTE, PROOF_MARKER, ROLLUP
from rankbook.publish import SCRIPT, STYLE, Docs, Ledgered, Site, has_copies, named_by, publish, shown_at
from rankbook.publish import beside as beside_pages
from rankbook.report import Report, told_of_unparsed
from rankbook.site import markdown
from rankbook.site.addresses import Addresses
from rankbook.site.assets import script, style
from rankbook.site.fences import BLOCK, Unseen, anchor_of
from rankbook.site.navigation import expanded, listed, without
from rankbook.site.shell import Shell, emptied, own_headings
from rankbook.site.shell import source as shell_source
from rankbook.terminal import harmless
from rankbook.workers import beside, processes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.livereload import LiveReloadServer
    from mkdocs.structure.nav import Navigation, Section
    from mkdocs.structure.pages import Page
    from mkdocs.structure.toc import AnchorLink

    from rankbook.front_matter import Stamp
    from rankbook.serving import Live, Watch

_SOURCE = '<h2 id="original-source"'
"""Heading of a source's listing, whose text the search leaves out: with it the index of a large book is slow to load."""
_LAST_RUN = re.compile(rf"(?:<p>{re.escape(LAST_RUN_NOTE)}</p>\s*)?{re.escape(LAST_RUN_MARKER)}")
"""What the table of the last runs replaces: the marker, with the note that stands in for the table elsewhere."""
_LINE_ANCHOR = re.compile(r'\bid="(__codelineno-[^"]+)"')
_LINE_LINK = re.compile(r'(<a [^>]*?href="[^"#]+)#__codelineno-source-(\d+)"')
_OWN_LINE_LINK = re.compile(r'(<a [^>]*?href="[^"#]*)#L(\d+)"')
"""A link to a line as the stamped pages have it; those that the engine builds have its own anchors."""
_ID = re.compile(r"""<[a-zA-Z][^<>]*?[ \n]id=(?:"([^"]*)"|([^\s"'>]+))""")
_LINE_NAME = re.compile(r"__codelineno-source-(\d+)")
_FOR_EACH_PAGE = {
    "encryptcontent": "The plugin encryptcontent encrypts each page when MkDocs builds it",
    "i18n": "The plugin i18n builds the site once for each language",
}
"""Plugins that must see each page built, and what they do."""
_MOST_PROBLEMS = 50
"""Dead links that are told one by one."""
_MOST_UNSEEN = 5
"""Listings of one page that are named."""
_log = logging.getLogger(get_plugin_logger("rankbook").logger.name)
"""Below the engine's own, by which it counts warnings; ProperDocs calls it by another name."""


class PluginOptions(Config):  # type: ignore[no-untyped-call] # MkDocs types it so
    """Options of the plugin in `mkdocs.yml`."""

    gen = config_options.Type(bool, default=True)
    """Whether each build generates the pages of the sources first."""
    stamp = config_options.Type(bool, default=True)
    """Whether the generated pages are put into the site by rankbook, which is quick; else the engine builds them."""
    nav_files = config_options.Type(int, default=500)
    """Largest number of file pages that the navigation lists where the engine builds them; a larger book lists its folders only."""


class Stamped(File):
    """A generated page, or a picture beside it: the engine knows its address, and neither builds nor copies it."""

    def is_documentation_page(self) -> bool:
        """Tell the engine that there is nothing to build."""
        return False

    def copy_file(self, dirty: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature is MkDocs' own
        """Leave the copying to rankbook."""


class RankbookPlugin(BasePlugin[PluginOptions]):  # type: ignore[no-untyped-call] # MkDocs types it so
    """Generate pages before each build, and finish them with what only the site knows."""

    def __init__(self) -> None:
        self._serving = False
        self._is_soon_over = False
        """Whether the process ends with this build."""
        self._settings = Settings()
        self._folder = Path()
        """Of all pages, before another plugin puts copies of them elsewhere."""
        self._manifest: freshness.Manifest | None = None
        """What the run that has just made the pages has left."""
        self._build: _Build | None = None
        self._live: Live | None = None
        self._watch: Watch | None = None

    def on_startup(self, *, command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:  # noqa: ARG002 - the signature is MkDocs' own
        """Remember whether a mistake ends the command or is shown while it goes on; the hook also keeps this object over rebuilds."""
        leave_at_exit()
        self._serving = command == "serve"
        self._is_soon_over = not self._serving
        if self._serving and self.config.stamp and markdown.VERSION and _reloads():
            from rankbook.serving import Live

            self._live = Live(_log)

    @event_priority(100)
    def _take_compiled(self, config: MkDocsConfig) -> MkDocsConfig:
        """Prepare the theme before other plugins use it."""
        take_compiled(config.theme)
        return config

    def _add_assets(self, config: MkDocsConfig) -> MkDocsConfig:
        """Add the style sheet and the script, before those of the project, which may override them.

        Once: the plugin i18n begins each language with what the last one had.
        """
        config.extra_css = [STYLE, *(each for each in config.extra_css if each != STYLE)]
        config.extra_javascript = [SCRIPT, *(each for each in config.extra_javascript if each != SCRIPT)]
        return config

    @event_priority(90)
    @uncollected()
    def _generate(self, config: MkDocsConfig) -> MkDocsConfig:
        """Read the settings, and generate the pages of the sources as they are now, before another plugin takes a copy of all pages."""
        self._manifest = None
        self._folder = _folder_of_pages(config)
        try:
            root = find_root(Path(config.config_file_path or "mkdocs.yml").resolve().parent)
            seen = self._live.look_at_settings(root) if self._live is not None else b""
            self._settings = load(root)
            if self._live is not None:
                self._live.begin(seen, self._settings)
            if self.config.gen and self._settings.sources:
                _tell_of_pages(document(self._settings))
                self._manifest = None if self._serving else freshness.load(self._settings)
        except (RankbookError, OSError) as caught:
            error = refused(caught) if isinstance(caught, OSError) else caught
            if not self._serving:
                raise PluginError(harmless(str(error))) from error
            if self._live is None:
                _log.error("%s", harmless(str(error)))
            else:
                self._live.refused(error)
        return config

    on_config = CombinedEvent(_take_compiled, _generate, _add_assets)

    def on_pre_build(self, *, config: MkDocsConfig) -> None:
        """Set aside the generated pages of the site."""
        site = self._site(config)
        last = self._live.last if self._live else None
        if last is not None:
            site.remember(last.docs, directories=last.directories)
        is_stamped = self.config.stamp and bool(markdown.VERSION)
        if self.config.stamp and not is_stamped:
            _log.info("The package pyromark is not installed: MkDocs builds the generated pages, which takes longer.")
        if is_stamped and (name := next((each for each in _FOR_EACH_PAGE if each in config.plugins), "")):
            is_stamped = False
            _log.info("%s: MkDocs builds the generated pages, which takes longer.", _FOR_EACH_PAGE[name])
        before = last.ledgered if last else None
        self._build = _Build(site, Addresses(config.use_directory_urls), is_stamped=is_stamped, before=before, manifest=self._manifest)
        if is_stamped:
            site.shelter()
            list_quickly(site.pages)
            if self._live is None:
                self._build.start_search(self._settings)
        self._settle()

    def _site(self, config: MkDocsConfig) -> Site:
        """Tell where the pages are, and what pytest calls them: another plugin may have chosen other pages, or made copies of these."""
        named, built = named_by(self._folder, self._settings.root), real(Path(config.docs_dir))
        path = real(Path(config.site_dir))
        if real(named) == built:
            return Site(self._settings, named, path)
        are_elsewhere = not built.is_relative_to(self._settings.root) and has_copies(named, built)
        return Site(self._settings, built, path, named if are_elsewhere else None)

    def on_serve(self, server: LiveReloadServer, *, config: MkDocsConfig, builder: Callable[..., None]) -> LiveReloadServer:  # noqa: ARG002
        """Watch what the pages are made from."""
        from rankbook.serving import Watch, attach

        if self._live is not None and self._live.last is not None and attach(server, self._live, builder):
            self._watch = Watch(self._live)
            self._watch.start()
            return server
        settings = self._settings
        for path in map(settings.below_root, (*settings.sources, settings.templates, "pyproject.toml")):
            if path.exists():
                server.watch(str(path))
        return server

    def on_shutdown(self) -> None:
        """Watch no more, and let nothing go on."""
        if self._build is not None:
            self._build.abandon_search()
        if self._watch is not None:
            self._watch.stop()

    @event_priority(100)
    @uncollected()
    def _write_nav(self, files: Files, *, config: MkDocsConfig) -> Files:
        """Find the generated pages, and write their part of the navigation before another plugin reads it."""
        build = self._here
        self._look(files, config)
        if config.nav is not None:
            config.nav = expanded(config.nav, self._shown, build.out)
        return files

    @event_priority(-90)
    @uncollected()
    def _take(self, files: Files, *, config: MkDocsConfig) -> Files:
        """Take the generated pages from the engine, when the other plugins have added and taken away what they do."""
        build = self._here
        gone = self._look(files, config)
        if gone and config.nav is not None:
            config.nav = without(config.nav, gone)
        build.take(files)
        stamps, shown = build.docs.stamps, self._shown
        _warn_of_shared_addresses(files, stamps)
        for path in stamps:
            # Set for all of them: left alone, MkDocs leaves out pages about sources such as `.github/ci.yml`.
            is_shown = path in shown and not (config.not_in_nav and config.not_in_nav.match_file(path))
            files.src_uris[path].inclusion = InclusionLevel.INCLUDED if is_shown else InclusionLevel.NOT_IN_NAV
        for path in (build.site.pages - stamps.keys()) & files.src_uris.keys():  # they were generated when the site was built last
            files.src_uris[path].inclusion = InclusionLevel.UNDEFINED
        self._settle()
        return files

    on_files = CombinedEvent(_write_nav, _take)

    def _look(self, files: Files, config: MkDocsConfig) -> frozenset[str]:
        try:
            return self._here.look(files, config, drafts=self._serving)
        except RankbookError as error:
            raise PluginError(harmless(str(error))) from error

    @property
    def _shown(self) -> dict[str, Stamp]:
        """The generated pages that the navigation lists."""
        build = self._here
        return (
            listed(build.docs.overviews, 0, OVERVIEWS) if build.is_stamped else listed(build.docs.stamps, self.config.nav_files, OVERVIEWS)
        )

    @event_priority(-50)
    def on_nav(self, nav: Navigation, *, config: MkDocsConfig, files: Files) -> Navigation:  # noqa: ARG002
        """Name the generated pages in the navigation, and show that of its folder beside a page that it does not list."""
        build = self._here
        build.files = files
        for path in build.docs.stamps:
            page = files.src_uris[path].page
            if page is None:
                continue
            if page.title is None:
                page.title = build.docs.stamps[path].title
            if page.parent is None and not build.is_stamped:
                page.parent = _section_of(path, files)
        return nav

    def on_page_read_source(self, *, page: Page, config: MkDocsConfig) -> str | None:  # noqa: ARG002
        """Give the page whose shell the others take a content by which its parts are known."""
        build = self._here
        if not build.is_shell(page):
            return None
        page.previous_page = page.next_page = page.edit_url = None
        return shell_source(build.docs.stamps[build.docs.shell].title)

    @event_priority(100)
    def _keep_title(self, content: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG002
        """Leave the parts by which the shell is known to its table of contents: what others read of the page is its title."""
        build = self._here
        if not build.is_shell(page):
            return content
        build.anchors = {unescape(link.title): link.id for link in _links(page.toc)}
        return emptied(content)

    def _fill_places(self, content: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG002
        """Put what the ledger knows in the place of its markers; in HTML, because there no listing can hold a marker itself."""
        build = self._here
        if build.is_shell(page):
            page.present_anchor_ids = page.links_to_anchors = None  # the page of the site has others, and is looked at when it is made
            return content
        # MkDocs does not look for anchors inside highlighted listings, and would call each link to a line broken.
        page.present_anchor_ids = (page.present_anchor_ids or set()) | set(_LINE_ANCHOR.findall(content))
        if page.file.src_uri in build.docs.stamps:
            content = content.replace(_SOURCE, f"{_SOURCE} data-search-exclude", 1)
        elif build.is_stamped:
            content = _LINE_LINK.sub(r'\1#L\2"', content)
        names: frozenset[str] = frozenset()
        if page.file.src_uri not in build.docs.stamps:
            content, names = self._with_outcomes(content, page.file.src_uri)
            page.present_anchor_ids |= {anchor_of(name) for name in names}
        if LAST_RUN_MARKER in content or PROOF_MARKER in content:
            content = self._with_proof(content, page.file.src_uri, names)
        return f"<div {ENGLISH}>\n{content}\n</div>" if page.file.src_uri in build.docs.stamps else content

    @event_priority(-100)
    def _look_for_unseen(self, content: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG002
        """Look at what other plugins and hooks have put on the page, too."""
        build = self._here
        if not build.is_shell(page) and page.file.src_uri not in build.docs.stamps:
            build.look_for_unseen(content, page.file.src_uri, self._settings)
        return content

    on_page_content = CombinedEvent(_keep_title, _fill_places, _look_for_unseen)

    @event_priority(100)
    def _take_first(self, output: str, *, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG002
        """Take the page of the shell as the theme has made it."""
        build = self._here
        if build.is_shell(page):
            build.page = output
            page.toc = get_toc([])  # others may read it; what it names is on no page
        return output

    @event_priority(-100)
    def _take_shell(self, output: str, *, page: Page, config: MkDocsConfig) -> str:
        """Take the shell with what other plugins have made of it, or that of the theme where they leave no place for a content."""
        build = self._here
        if build.is_shell(page):
            title = build.docs.stamps[build.docs.shell].title
            headings = own_headings(title, build.anchors or None)
            cut = partial(Shell.of, file=page.file.dest_uri, title=title, label=page.title or "", headings=headings)
            try:
                build.shell = cut(output)
            except RankbookError:
                try:
                    build.shell = cut(build.page)
                except RankbookError as error:
                    raise PluginError(harmless(str(error))) from error
                _log.info("What plugins make of a finished page is not on the generated pages: it leaves no place for a content.")
            _leave_out_of_search(config, page)
        return output

    on_post_page = CombinedEvent(_take_first, _take_shell)

    def on_post_template(self, output_content: str, *, template_name: str, config: MkDocsConfig) -> str:
        """Name the stamped pages in the map of the site, and its front page: by that Material knows where another version begins."""
        build = self._here
        if template_name != "sitemap.xml" or not config.site_url:
            return output_content
        site = config.site_url if config.site_url.endswith("/") else f"{config.site_url}/"
        front = [] if f"<loc>{escape(site)}</loc>" in output_content else [""]
        named = [build.addresses.url(path) for path in build.docs.stamps if path != build.docs.shell] if build.is_stamped else []
        entries = "".join(f"    <url>\n         <loc>{escape(site + path)}</loc>\n    </url>\n" for path in (*front, *named))
        return output_content.replace("</urlset>", f"{entries}</urlset>")

    @uncollected()
    def on_post_build(self, *, config: MkDocsConfig) -> None:
        """Put the generated pages into the site."""
        build = self._here
        for said in build.told_of_unseen(self._settings):
            _log.info("%s", harmless(said))
        try:
            for asset, content in ((STYLE, style()), (SCRIPT, script(finds=bool(build.docs.stamps)))):
                build.site.put(asset, content.encode())
            if not build.is_stamped or build.shell is None:
                build.let_go()
                build.put_beside(directories=config.use_directory_urls)
                if build.docs.stamps:
                    build.finish_search(self._settings)
                if self._live is not None:
                    self._live.close()
                return
            build.site.unshelter(build.docs.by_hand)
            forge = partial(build.site.forge, config.repo_url or "", config.edit_uri or "")
            if self._live is not None:
                from rankbook.serving import Opened

                self._live.open(
                    Opened(
                        settings=self._settings,
                        docs=build.docs,
                        shell=build.shell,
                        ledgered=build.ledgered,
                        directories=config.use_directory_urls,
                        forge=forge,
                        exclude=config.exclude_docs.match_file if config.exclude_docs else lambda _: False,
                        generates=bool(self.config.gen and self._settings.sources),
                    )
                )
                self._finish_search(build, self._live)
                return
            published = publish(build.docs, build.shell, directories=config.use_directory_urls, ledgered=build.ledgered, forge=forge())
            build.finish_search(self._settings)
        except RankbookError as error:
            raise PluginError(harmless(str(error))) from error
        levels = config.validation.links
        docs = Path(config.docs_dir)
        _tell((problem for problem, lost in published.problems if lost and not (docs / lost).is_file()), int(levels.not_found))
        # As for MkDocs a page that the site leaves out is no mistake of the pages that link to it.
        _tell((problem for problem, lost in published.problems if lost and (docs / lost).is_file()), logging.INFO)
        _tell((*(problem for problem, lost in published.problems if not lost), *build.lost_anchors()), int(levels.anchors))

    def _finish_search(self, build: _Build, live: Live) -> None:
        """Bring the search up to date; what hinders that is shown, and the server lives on."""
        try:
            build.finish_search(self._settings)
        except RankbookError as error:
            live.refused(error)

    def on_build_error(self, *, error: Exception, **_: object) -> None:  # noqa: ARG002 - the signature is MkDocs' own
        """Put back what was set aside."""
        if self._build is not None:
            self._build.put_back()

    def _settle(self) -> None:
        if self._is_soon_over:
            pass_over()

    @property
    def _here(self) -> _Build:
        if self._build is None:
            raise PluginError("rankbook's plugin was called for a build that has not begun")
        return self._build

    def _with_outcomes(self, content: str, path: str) -> tuple[str, frozenset[str]]:
        try:
            return self._here.ledgered.with_outcomes(content, path, is_tabled=LAST_RUN_MARKER in content)
        except RankbookError as error:
            self._here.warn(error)
            return content, frozenset()

    def _with_proof(self, content: str, path: str, names: Collection[str]) -> str:
        build = self._here
        try:
            if path in build.docs.stamps:
                proof = build.ledgered.proof
                found = proof.page(path, names=names)
                last_run, rollup = (found.last_run, found.rollup) if found else ("", proof.front(path))
            else:
                _, last_run, rollup = build.ledgered.front(path, names)
            if not build.is_stamped:
                last_run, rollup = (_OWN_LINE_LINK.sub(r'\1#__codelineno-source-\2"', each) for each in (last_run, rollup))
            if self._live is not None:  # what is shown is exchanged when tests have run
                last_run, rollup = shown_at(LAST_RUN, last_run), shown_at(ROLLUP, rollup)
            content = _LAST_RUN.sub(lambda _: last_run, content, count=1)
        except RankbookError as error:
            build.warn(error)
            return content
        return content.replace(PROOF_MARKER, rollup)


class _Abandoned(Exception):  # noqa: N818 - no failure: it ends what nobody needs any more
    """Ends what goes on beside the engine's work."""


class _Build:
    """One build of the site.

    Args:
        site: its folder.
        addresses: where its pages stand.
        is_stamped: whether rankbook puts the generated pages into it.
        before: what was known of the ledger at the last build.
        manifest: what the run that has just made the pages has left; None when none has.
    """

    def __init__(
        self,
        site: Site,
        addresses: Addresses,
        *,
        is_stamped: bool,
        before: Ledgered | None = None,
        manifest: freshness.Manifest | None = None,
    ) -> None:
        self.before = before
        self.manifest = manifest
        self.site = site
        self.addresses = addresses
        self.is_stamped = self.is_sheltered = is_stamped
        self.shell: Shell | None = None
        self.page = ""
        """The page of the shell, as the theme has made it."""
        self.anchors: dict[str, str] = {}
        """What the engine calls the headings of that page, by their text."""
        self._unseen: dict[str, list[Unseen]] = {}
        """Listings that pytest does not find on the pages that show them."""
        self._warned: set[str] = set()
        self._beside = ExitStack()
        """What goes on beside the engine's own work."""

    def look_for_unseen(self, content: str, path: str, settings: Settings) -> None:
        """Note the listings of code on a page that is no generated one that pytest does not find there.

        Args:
            content: HTML of the page.
            path: of the page, below the folder of all pages.
            settings: of the project.
        """
        if BLOCK not in content:
            return
        from rankbook.standing import unseen

        if found := unseen(settings.root, self._below_root(path, settings), content):
            self._unseen[path] = found

    def told_of_unseen(self, settings: Settings) -> Iterator[str]:
        """Yield what the site shows and nobody runs, a sentence for each page: a listing that another page gives is run there."""
        if not self._unseen:
            return
        from rankbook.standing import keys_of

        pages = {path for path in self.docs.by_hand if path.endswith(".md")}
        if self.site.original is not None:  # copies may lie anywhere
            pages |= {path.relative_to(self.site.original).as_posix() for path in self.site.original.rglob("*.md")}
        known = keys_of(settings.root, [self._below_root(path, settings) for path in sorted(pages)])
        for path, all_of_it in self._unseen.items():
            if found := [each.first for each in all_of_it if each.key not in known]:
                what, it = ("a listing", "it") if len(found) == 1 else (f"{len(found)} listings", "them")
                named = "; ".join([*found[:_MOST_UNSEEN], *(["..."] if len(found) > _MOST_UNSEEN else [])])
                yield f"{path}: the site shows {what} that pytest does not find in the file, so that nobody runs {it}: {named}"

    def _below_root(self, path: str, settings: Settings) -> str:
        return os.path.relpath((self.site.original or self.site.folder) / path, settings.root).replace(os.sep, "/")

    def start_search(self, settings: Settings) -> None:
        """Bring what the search of the book reads up to date while the engine is at work, where it waits meanwhile."""
        jobs = processes(settings.jobs)
        if jobs > 1:
            self._beside.enter_context(beside(partial(self._write_search, settings), jobs))

    def finish_search(self, settings: Settings) -> None:
        """Put it in its place, and write what is not there: all of it, where nothing could be done meanwhile."""
        with suppress(RankbookError, OSError):
            self._beside.close()
        self.site.unshelter_search()
        self._write_search(settings)

    def abandon_search(self) -> None:
        """End what goes on."""
        with suppress(_Abandoned), self._beside:
            raise _Abandoned

    def let_go(self) -> None:
        """End what goes on, because the engine has built the site without a shell; without generated pages none of the last build stay."""
        self.abandon_search()
        if self.is_sheltered and self.docs.shell:
            self.put_back()
        elif self.is_sheltered:
            self.site.drop_sheltered()

    def put_back(self) -> None:
        """End what goes on, and put back what was set aside."""
        self.abandon_search()
        if self.is_sheltered:
            self.site.unshelter()
            with suppress(RankbookError):
                self.site.unshelter_search()

    def _write_search(self, settings: Settings) -> None:
        self.site.write_search(self.addresses, partial(survey_tree, settings) if settings.sources else None)

    @property
    def out(self) -> str:
        """The folder of all generated pages, below that of all pages, with its final `/`; empty where it is that one, or elsewhere."""
        out = self.site.settings.below_root(self.site.settings.out)
        below = out.relative_to(self.site.folder).as_posix() if out.is_relative_to(self.site.folder) else "."
        return "" if below == "." else f"{below}/"

    def look(self, files: Files, config: MkDocsConfig, *, drafts: bool) -> frozenset[str]:
        """Find the generated pages.

        Args:
            files: of the site.
            config: of the engine.
            drafts: whether those are shown that people do not want to publish yet.

        Returns:
            The generated pages that were there when this was asked before, and are not now.
        """
        self.files = files
        patterns = [config.exclude_docs, *([] if drafts else [getattr(config, "draft_docs", None)])]
        left_out = {path for pattern in patterns if pattern is not None for path in files.src_uris if pattern.match_file(path)}
        paths = files.src_uris.keys() - left_out
        before: Docs | None = self.__dict__.get("docs")
        if before is not None and before.files == paths:
            return frozenset()
        elsewhere = {path for path in paths if files.src_uris[path].src_dir != config.docs_dir}
        self.docs = Docs(self.site, paths, self.manifest, elsewhere)
        return frozenset(before.stamps.keys() - self.docs.stamps.keys()) if before is not None else frozenset()

    def take(self, files: Files) -> None:
        """Take the generated pages from the engine."""
        self.is_stamped = self.is_stamped and bool(self.docs.shell)
        if self.is_stamped:
            for path in (*self.docs.stamps, *self.docs.copied):
                if path != self.docs.shell:
                    files.src_uris[path].__class__ = Stamped  # all of it stays as it is, but for what it is asked to do

    def put_beside(self, *, directories: bool) -> None:
        """Write what the engine has copied, where it is not the same on this site."""
        for path in self.docs.copied if directories else ():
            self.site.put(self.files.src_uris[path].dest_uri, beside_pages(self.site.folder / path, directories=True))

    def lost_anchors(self) -> Iterator[str]:
        """Say which links of the pages that people wrote name no place on a page of ours: MkDocs knows only what it has built."""
        known: dict[str, set[str]] = {}
        for file in self.files.documentation_pages():
            links = (file.page.links_to_anchors if file.page is not None else None) or {}
            for to, anchors in links.items():
                if to.src_uri not in self.docs.stamps:
                    continue
                if to.dest_uri not in known:
                    known[to.dest_uri] = _anchors(self.site.path / to.dest_uri)
                for anchor, link in anchors.items():
                    if not {anchor, unquote(anchor), _LINE_NAME.sub(r"L\1", anchor)} & known[to.dest_uri]:
                        what = f"the doc '{to.src_uri}' does not contain an anchor '#{anchor}'"
                        yield f"Doc file '{file.src_uri}' contains a link '{link}', but {what}."

    @cached_property
    def ledgered(self) -> Ledgered:
        """What the ledger knows of the pages."""
        return Ledgered(self.docs, self.before, directories=self.addresses.directories)

    def warn(self, error: RankbookError) -> None:
        """Say what keeps pages from showing what the ledger knows: once, for it is the same for all."""
        said = harmless(str(error))
        if said not in self._warned:
            self._warned.add(said)
            _log.warning("%s", said)

    def is_shell(self, page: Page) -> bool:
        """Tell whether a page is the one whose shell the others take."""
        return self.is_stamped and page.file.src_uri == self.docs.shell


def _folder_of_pages(config: MkDocsConfig) -> Path:
    """Give the folder of all pages below the real folder of the settings, whatever is a link below that."""
    beside = Path(config.config_file_path or "mkdocs.yml").absolute().parent
    return beside.resolve() / os.path.relpath(config.docs_dir, beside)


def _links(contents: Iterable[AnchorLink]) -> Iterator[AnchorLink]:
    for link in contents:
        yield link
        yield from _links(link.children)


def _reloads() -> bool:
    """Tell whether the server that is being started calls `on_serve`: it does not with `--no-livereload`, of which no hook is told."""
    context = click.get_current_context(silent=True)
    chosen = context.params if context is not None else {}
    return not chosen["no_livereload"] if "no_livereload" in chosen else bool(chosen.get("livereload"))


def _anchors(page: Path) -> set[str]:
    """Give the places of a page of the site that a link may name; none of a page that is not there."""
    try:
        text = page.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    return {unescape(quoted or bare) for quoted, bare in _ID.findall(text)}


def _tell_of_pages(report: Report) -> None:
    for warning in report.warnings:
        _log.warning("%s", harmless(warning))
    for place in told_of_unparsed(report.unparsed):  # no reason to refuse the site, as `--strict` does at a warning
        _log.info("%s", harmless(place))


def _tell(problems: Iterable[str], level: int) -> None:
    told = list(problems)
    for problem in told[:_MOST_PROBLEMS]:
        _log.log(level, "%s", harmless(problem))
    if len(told) > _MOST_PROBLEMS:
        _log.log(level, "and %d more links of generated pages lead nowhere", len(told) - _MOST_PROBLEMS)


def _leave_out_of_search(config: MkDocsConfig, page: Page) -> None:
    """Take the shell out of the index of MkDocs' own search, which knows no other way to leave a page out."""
    for plugin in config.plugins.values():
        index = getattr(plugin, "search_index", None)
        entries = getattr(index, "_entries", None)
        if isinstance(entries, list):
            entries[:] = [entry for entry in entries if str(entry.get("location", "")).partition("#")[0] != page.url]


def _section_of(path: str, files: Files) -> Section | None:
    """Find the section of the navigation that holds the page of the nearest folder of a page."""
    while path:
        path = path.rpartition("/")[0]
        index = files.src_uris.get(f"{path}/index.md".lstrip("/"))
        if index is not None and index.page is not None and index.page.parent is not None:
            return index.page.parent
    return None


def _warn_of_shared_addresses(files: Files, stamps: Mapping[str, Stamp]) -> None:
    """Warn of generated pages of which the site can hold only one: with directory addresses `x/doc.md` and `x/doc/index.md` are one."""
    taken: dict[str, str] = {}
    if not any(files.src_uris[path].use_directory_urls for path in stamps):
        return
    for path in sorted(stamps):
        other = taken.setdefault(files.src_uris[path].dest_uri, path)
        if other != path:
            _log.warning("%s and %s have the same address; set `use_directory_urls: false` in mkdocs.yml", harmless(other), harmless(path))
