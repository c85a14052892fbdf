"""The published book, told once: generated pages go into the shell that an engine has built, each when what it shows has changed.

What is there is compared with what the last run has left; what makes pages (`filling.py`) and reads the ledger (`standing.py`) is loaded
only when something has changed.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field

from rankbook import __version__, freshness, searching
from rankbook.config import Settings, real
from rankbook.errors import RankbookError
from rankbook.front_matter import Stamp
from rankbook.garbage import uncollected
from rankbook.markers import LAST_RUN, LAST_RUN_MARKER, ROLLUP
from rankbook.packed import columns_of, rows_of
from rankbook.site import checkout, fences, lean, markdown, sheltering
from rankbook.site.addresses import Addresses
from rankbook.site.assets import script, style
from rankbook.site.forge import FACTS
from rankbook.site.shell import Shell
from rankbook.stamps import Stamps, Told, body_of, stamp_of, told_of
from rankbook.told_engines import MKDOCS
from rankbook.workers import processes, spread

if TYPE_CHECKING:
    from rankbook.dead_links import Facts, Problem
    from rankbook.filling import Filler
    from rankbook.model import Project
    from rankbook.site.proof import Proof
    from rankbook.site.standing import Standing
    from rankbook.standing import Beside

STYLE = "assets/rankbook.css"
"""Where the built site holds the style of outcomes and of long names."""
SCRIPT = "assets/rankbook.js"
"""Where it holds the script that filters long pages."""
_FORMAT = 9
"""Of what is kept."""
_INCLUDES = re.compile(rb"8<|\{!")
"""What a page holds that includes a file."""
_INVENTORY = "objects.inv"
_COPIED = ("imports.svg", _INVENTORY)
"""What is generated beside the pages and stands on the site as it is."""
_FEW = 60
"""Pages up to which starting processes costs more time than it saves."""
_AT_ONCE = 10
"""Pages that a process takes at once."""
_HERE = Path(__file__).parent
_CODE = tuple(_HERE / name for name in ("publish.py", "filling.py", "dead_links.py", "markers.py", "stamps.py"))
"""What makes pages of the site, besides the folder `site`."""
_PLACE = re.compile(rf"<!-- rankbook:({LAST_RUN}|{ROLLUP}) -->(?:.*?<!-- /rankbook:\1 -->)?", re.DOTALL)
"""Where a page that a person made shows what the ledger knows, with what it shows already."""
_LINE_LINK = re.compile(r'(<a [^>]*?href="[^"#]+)#__codelineno-source-(\d+)"')
_OURS = b'<div class="rankbook-page" data-rankbook="'
"""What begins the content of a page that was stamped."""
Seen = tuple[int, int]
"""Time of change in nanoseconds, and bytes."""
_NOTHING: Seen = (-1, -1)


class Row(NamedTuple):
    """What is kept of a page."""

    seen: Seen
    stamp: Told
    context: str = ""
    """Digest of what it shows besides its own text."""
    made: Seen = _NOTHING
    """Its page of the site, as it was written."""


class Published(Struct, frozen=True):
    """What has become of the site."""

    pages: int
    """Generated pages of the site."""
    written: tuple[str, ...]
    """Those that were written, below the folder of the site."""
    removed: tuple[str, ...]
    """Those whose page is gone."""
    problems: tuple[Problem, ...]
    """Links of theirs that lead nowhere."""


class Front(NamedTuple):
    """What the ledger knows at the markers of a page that a person made."""

    hangs_on: str
    """Digest of what it depends on besides the ledger and the pages."""
    last_run: str
    """HTML: of the page's own listings."""
    rollup: str
    """HTML: the charts of the whole book."""


class _Kept(Struct):
    """What the last run has left."""

    rows: dict[str, Row] = field(default_factory=dict)
    setting: str = ""
    """Digest of what all pages depend on."""
    proofs: str = ""
    """State of the ledger."""
    ledger: Seen = _NOTHING
    """Its file, when that was its state."""
    ahead: str = ""
    """The earliest time of a run that was dated ahead then; empty where none was."""
    beside: tuple[tuple[str, int, int], ...] = ()
    """Files on which hangs what runs prove, besides the pages, and how they were seen then."""
    listed: str = ""
    """Of listings on pages that people made; see `Ledgered`."""
    directories: bool = False
    problems: tuple[Problem, ...] = ()
    facts: Seen = _NOTHING
    """File of what pages offer and link to, as the run that found these problems has left it."""
    others: str = ""
    """Digest of the names of all files that are no pages."""
    fronts: dict[str, Front] = field(default_factory=dict)
    """What pages that people made have shown, by their paths."""


class Site:
    """The folder of the site, and what the last run has left for the next one.

    Args:
        settings: of the project.
        folder: of all pages.
        path: the folder of the site.
        original: the folder by which pytest names the pages, where the other one has copies of them; None where it is the same.
    """

    def __init__(self, settings: Settings, folder: Path, path: Path, original: Path | None = None) -> None:
        self.settings = settings
        self.folder = folder
        self.original = original
        self.path = path
        self._base = os.fspath(path)
        self.kept_in = freshness.cache_folder(settings) / f"site-{_short([os.fspath(folder), os.fspath(path)])}"
        self.kept = _load(self.kept_in)
        self._search = searching.FOLDER
        """Where the search lies now, below the folder of the site."""
        self._inside: set[str] = set()
        """Folders of the site that were found to lie in it."""

    @cached_property
    def pages(self) -> frozenset[str]:
        """Pages that were generated when the last run looked at them."""
        return frozenset(path for path, row in self.kept.rows.items() if row.stamp)

    def shelter(self) -> None:
        """Take what the last run has made out of the site's folder, which an engine is about to empty."""
        sheltering.shelter(self.path, {file.partition("/")[0] for file in self._files()}, (searching.FOLDER,))
        self._search = f"{sheltering.ASIDE}/{sheltering.WHOLE}/{searching.FOLDER}"
        with suppress(OSError):  # where nothing can be kept
            self.shell_kept_in.unlink(missing_ok=True)

    @property
    def shell_kept_in(self) -> Path:
        """Where the page is kept, as an engine without our plugin has built it, whose shell the others have taken."""
        return self.kept_in.with_name(f"{self.kept_in.name}-shell")

    def unshelter(self, by_hand: Iterable[str] = ()) -> None:
        """Put the pages back beside what the engine has built.

        Args:
            by_hand: pages that people made: what the engine has built of them stays, even where generated ones stood before.
        """
        addresses = Addresses(self.kept.directories)
        sheltering.unshelter(self.path, frozenset(self._files()).difference(addresses.files(by_hand)))

    def unshelter_search(self) -> None:
        """Put back what the search of the book reads.

        Raises:
            RankbookError: a link on the way leads out of the site.
        """
        if (self.path / sheltering.ASIDE / sheltering.WHOLE / searching.FOLDER).exists():
            self.guard(f"{searching.FOLDER}/")
        sheltering.unshelter_folders(self.path)
        self._search = searching.FOLDER

    def drop_sheltered(self) -> None:
        """Take away what was set aside."""
        sheltering.drop(self.path)
        self._search = searching.FOLDER

    def write_search(self, addresses: Addresses, survey: Callable[[], Project] | None) -> None:
        """Bring what the search of the book reads up to date, wherever it is now.

        Args:
            addresses: where the pages stand on the site.
            survey: reads the sources, when no run has kept what they hold; None where none are named.
        """
        out = self.settings.below_root(self.settings.out)
        if out.is_relative_to(self.folder):
            self.guard(f"{self._search}/")
            base, lies = out.relative_to(self.folder).as_posix(), self.path / self._search
            searching.write(self.settings, self.path, base="" if base == "." else base, addresses=addresses, survey=survey, lies=lies)

    def put(self, file: str, data: bytes) -> Seen:
        """Write a file of the site, unless it is there already; tell how it is seen.

        Args:
            file: below the folder of the site.
            data: what it is to hold.

        Raises:
            RankbookError: it cannot be written, or a link on the way to it leads out of the site.
        """
        self.guard(file)
        return _put(f"{self._base}/{file}", data)

    def guard(self, file: str) -> None:
        """Make sure that what is written under a name lies in the site.

        Raises:
            RankbookError: a link on the way leads out of it.
        """
        folder = file.rpartition("/")[0]
        if folder not in self._inside:
            place = self.path / folder
            if not place.resolve().is_relative_to(self.path.resolve()):
                raise RankbookError(
                    "a link leads out of the folder of the site, where nothing is written", where=place, right="take the link away"
                )
            self._inside.add(folder)

    def keep(self, kept: _Kept) -> None:
        """Leave for the next run what it can build on."""
        self.kept = kept
        links = kept.problems, kept.facts, kept.others, {path: tuple(front) for path, front in kept.fronts.items()}
        about = (
            _FORMAT,
            os.fspath(self.path),
            kept.setting,
            kept.proofs,
            kept.ledger,
            kept.ahead,
            kept.beside,
            kept.listed,
            kept.directories,
        )
        _save(self.kept_in, (*about, *links), (tuple(kept.rows), columns_of(tuple(kept.rows.values()))))
        _forget(self.kept_in.parent)

    def remember(self, docs: Docs, *, directories: bool = False) -> None:
        """Know the pages as they are now, without leaving anything for another run: they are put into the site one by one."""
        self.kept = _Kept({path: Row(row.seen, row.stamp) for path, row in docs.rows.items()}, directories=directories)

    def _files(self) -> Iterator[str]:
        addresses = Addresses(self.kept.directories)
        return addresses.files([path for path, row in self.kept.rows.items() if row.made != _NOTHING])

    def forge(self, url: str = "", edit_uri: str = "") -> checkout.Published | None:
        """Find where the sources are looked after.

        Args:
            url: address of the repository, as the engine's settings say.
            edit_uri: what MkDocs knows of editing.
        """
        settings = self.settings
        return checkout.published(
            settings.root,
            url=settings.repo_url or url,
            branch=settings.repo_branch,
            kind=settings.repo_forge,
            edit_uri=edit_uri,
            sources=settings.sources,
        )


class Docs:
    """The folder of all pages: which of them were generated, and what those say of themselves.

    Args:
        site: where they are published.
        paths: all files below the folder that are of interest; by default all that there are.
        manifest: what a run that has just ended has left: the pages that it has seen are not looked at again.
        elsewhere: those of the files that do not lie in the folder: another plugin of the engine has made them.
    """

    def __init__(
        self,
        site: Site,
        paths: Iterable[str] | None = None,
        manifest: freshness.Manifest | None = None,
        elsewhere: Collection[str] = (),
    ) -> None:
        self.site = site
        self._manifest = manifest
        self.files = frozenset(_walked(site.folder) if paths is None else paths)
        """All files, below the folder."""
        self.rows: dict[str, Row] = {}
        """Of the pages, and of pictures and inventories: those of the last run, where it has seen them as they are."""
        self._look([path for path in sorted(self.files.difference(elsewhere)) if path.endswith((".md", *_COPIED))])
        self.stamps = Stamps({path: row.stamp for path, row in self.rows.items() if row.stamp})
        """Of the generated pages."""

    def _look(self, paths: Sequence[str]) -> None:
        known, as_made = self.site.kept.rows, self._seen_already()
        unseen = [path for path in paths if path not in as_made]
        seen_now = as_made | dict(zip(unseen, _seen(self.site.folder, unseen), strict=True))
        for path in paths:
            row, seen = known.get(path), seen_now[path]
            if row is None or row.seen != seen:
                row = Row(seen, _told(f"{self.site.folder}/{path}", is_as_made=path in as_made) if path.endswith(".md") else ())
            self.rows[path] = row

    def _seen_already(self) -> dict[str, Seen]:
        out = self.site.settings.below_root(self.site.settings.out)
        if self._manifest is None or not out.is_relative_to(self.site.folder):
            return {}
        below = os.path.relpath(out, self.site.folder).replace(os.sep, "/")
        start = "" if below == "." else f"{below}/"
        stats = self._manifest.pages
        found = dict(zip((f"{start}{path}" for path in stats.paths), _pairs(stats.seen), strict=True))
        for path in self._manifest.report.kept:  # a run may leave them as they are without a look
            found.pop(f"{start}{path}", None)
        return found

    @cached_property
    def seen(self) -> dict[str, Seen]:
        """How all of these are seen."""
        return {path: row.seen for path, row in self.rows.items()}

    @cached_property
    def overviews(self) -> dict[str, Stamp]:
        """Pages about the whole of a book."""
        return {path: self.stamps[path] for path, told in self.stamps.told.items() if not told[2]}

    @cached_property
    def copied(self) -> tuple[str, ...]:
        """What is generated beside the pages: pictures of folders, and the inventory."""
        folders = {path.rpartition("/")[0] for path, told in self.stamps.told.items() if told[0] == "index"}
        return tuple(path for path in self.rows if path.endswith(_COPIED) and _is_copied(path, folders))

    @cached_property
    def by_hand(self) -> tuple[str, ...]:
        """Pages that people made."""
        return tuple(path for path, row in self.rows.items() if not row.stamp and path.endswith(".md"))

    @cached_property
    def shell(self) -> str:
        """The page that an engine builds as the shell: the one of the book's root; empty when there is none."""
        roots = [path for path, stamp in self.overviews.items() if stamp.page == "index"]
        return min(roots, key=lambda path: (path.count("/"), path), default="")


def _told(path: str, *, is_as_made: bool) -> Told:
    """Read what a page says of itself; nobody has edited the listing of one that is as it was made."""
    if is_as_made:
        return told_of(stamp_of(path))
    from rankbook.pages.seals import stamp_as_listed  # what makes pages is of no use where none has changed

    return told_of(stamp_as_listed(Path(path)))


def _is_copied(path: str, folders: Collection[str]) -> bool:
    folder, _, name = path.rpartition("/")
    return name in _COPIED and folder in folders


class Ledgered:
    """What the ledger knows of the pages of a book.

    Args:
        docs: the pages.
        before: what it knew of them before: only what has been recorded since is read.
        directories: whether each page of the site is the index of a folder of its own.
    """

    def __init__(self, docs: Docs, before: Ledgered | None = None, *, directories: bool = False) -> None:
        self._docs = docs
        self._addresses = Addresses(directories)
        self._settings = docs.site.settings
        self._before = before.__dict__.get("known") if before else None
        self.fronts: dict[str, Front] = {}
        """What pages that people made were told to show."""

    @cached_property
    def state(self) -> str:
        """Changes with what the ledger tells: runs, files without a page beside which they were, and listings on pages that people made."""
        kept = self._docs.site.kept
        if self._is_as_kept:
            return kept.proofs
        if not self._file.exists():
            return ""
        from rankbook.ledger.recent import extent

        try:
            files = _short(f"{path}={sha256}" for path, sha256 in self._files.items())
            return repr((*extent(self._file), self.ahead, files, self.listed))
        except RankbookError as error:
            self.seen = _NOTHING
            return str(error)

    @cached_property
    def _is_as_kept(self) -> bool:
        kept = self._docs.site.kept
        is_same = self.seen == kept.ledger != _NOTHING and self._sources == _sources(row.stamp for row in kept.rows.values())
        is_same = is_same and not _is_of_age(kept.ahead)
        return is_same and self._look([path for path, *_ in kept.beside]) == kept.beside and self.listed == kept.listed

    @cached_property
    def ahead(self) -> str:
        """The earliest time of a run that is dated ahead; empty where none is.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        if self._is_as_kept:
            return self._docs.site.kept.ahead
        from rankbook.ledger.recent import first_ahead

        return first_ahead(self._file)

    @cached_property
    def listed(self) -> str:
        """Changes when a listing on a page that people made may be another one: by what the page includes, by the Markdown of its site."""
        pages = [*map(self._below_root, self._docs.by_hand)]
        folder = self._docs.site.folder
        said = next((found for above in (folder, *folder.parents) for name in MKDOCS if (found := _read(above / name)) is not None), b"")
        if b"INHERIT" not in said and not any(_INCLUDES.search(_read(self._settings.root / page) or b"") for page in pages):
            return hashlib.sha256(said).hexdigest()  # without more reading than that
        from rankbook.standing import listed_on, rendering

        return _short([listed_on(self._settings.root, pages), rendering(folder / "index.md")])

    @cached_property
    def beside(self) -> tuple[tuple[str, int, int], ...]:
        """The files on which hangs what runs prove, besides the pages, and how they were seen before they were read."""
        if self._is_as_kept:
            return self._docs.site.kept.beside
        if not self._file.exists():
            return ()
        try:
            return self._look(self._gathered.hangs_on)
        except RankbookError:
            return ()

    def _look(self, paths: Sequence[str]) -> tuple[tuple[str, int, int], ...]:
        return tuple((path, *seen) for path, seen in zip(paths, _seen(self._settings.root, paths), strict=True))

    @cached_property
    def _gathered(self) -> Beside:
        """The files that tell whether runs prove something.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        from rankbook.standing import Beside

        return Beside(self._settings, self._sources)

    @property
    def _files(self) -> dict[str, str]:
        """The SHA-256 of these files.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        _ = self.beside  # what changes while they are read is seen the next time
        return self._gathered.files

    @cached_property
    def _sources(self) -> frozenset[str]:
        """The files that have a page, which says what they hold."""
        return _sources(self._docs.stamps.told.values())

    @cached_property
    def seen(self) -> Seen:
        """How its file is seen; nothing of one that has changed so lately that it may do so again within the same tick of the clock."""
        (found,) = _seen(self._file.parent, [self._file.name])
        return found if found[0] < time.time_ns() - freshness.RECENT else _NOTHING

    @cached_property
    def proof(self) -> Proof:
        """All of it.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        from rankbook.site.proof import Proof

        return Proof.of(self.known, self._docs.stamps, self._folder, self._addresses)

    @cached_property
    def known(self) -> Standing:
        """How each test and listing stands.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        from rankbook.standing import standing

        _ = self.state  # what is recorded or edited while this is gathered is seen the next time
        by_hand = [self._below_root(path) for path in self._docs.by_hand]
        return standing(self._settings, by_hand, before=self._before, files=self._files)

    def front(self, path: str, names: Collection[str]) -> Front:
        """Give what a page that a person made shows at its markers; of a book that is as it was, what it has shown before.

        Args:
            path: of the page, below the folder of all pages.
            names: its listings that have an anchor on it.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        hangs_on = _digest([_code(), repr(self._addresses), *sorted(names)])
        known = self._docs.site.kept.fronts.get(path)
        if known is None or known.hangs_on != hangs_on or not self._is_as_it_was:
            found = self.proof.page(path, names=names)
            known = Front(hangs_on, found.last_run if found else "", self.proof.front(path))
        self.fronts[path] = known
        return known

    @cached_property
    def _is_as_it_was(self) -> bool:
        """Whether neither the ledger nor any page has changed."""
        kept, rows = self._docs.site.kept, self._docs.rows
        return self.state == kept.proofs and len(rows) == len(kept.rows) and all(kept.rows.get(path) is row for path, row in rows.items())

    def with_outcomes(self, page: str, path: str, *, is_tabled: bool) -> tuple[str, frozenset[str]]:
        """Put into the HTML of a page that a person made how each of its listings ended.

        Args:
            page: the HTML.
            path: of the page, below the folder of all pages.
            is_tabled: whether it has a place for the table of its last runs.

        Returns:
            The HTML, and the names of the listings that have an anchor there.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        if fences.BLOCK not in page or not self._file.exists():
            return page, frozenset()
        from rankbook.standing import has_listings

        if not has_listings(self._settings.root, self._below_root(path)):  # before the ledger is read
            return page, frozenset()
        return fences.with_outcomes(page, self.proof.fences(path), self.proof.listings(path, is_tabled=is_tabled))

    def _below_root(self, path: str) -> str:
        return f"{self._folder}/{path}".removeprefix("./")

    @property
    def _file(self) -> Path:
        return self._settings.below_root(self._settings.ledger)

    @property
    def _folder(self) -> str:
        return os.path.relpath(self._docs.site.original or self._docs.site.folder, self._settings.root).replace(os.sep, "/")


def has_copies(folder: Path, built: Path) -> bool:
    """Tell whether a folder has the pages of another: some are in both, and those are the same.

    Args:
        folder: the one that may have them.
        built: the other.
    """
    both = [path for path in _walked(folder) if path.endswith(".md") and (built / path).is_file()]
    return bool(both) and all(_read(folder / path) == _read(built / path) for path in both)


def named_by(folder: Path, root: Path) -> Path:
    """Give a folder of pages as pytest names it: with the links on the way to it where it lies below the root, without them elsewhere.

    Args:
        folder: as the settings of the engine name it.
        root: of the project.
    """
    named = Path(os.path.normpath(folder))
    return named if named.is_relative_to(root) else real(named)


def _read(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


def _is_of_age(ahead: str) -> bool:
    """Tell of the time of a run that was dated ahead whether it is no more; there may be no such run."""
    if not ahead:
        return False
    from rankbook.ledger import is_ahead

    return not is_ahead(ahead)


def _sources(pages: Iterable[Told]) -> frozenset[str]:
    """Give the files of which some pages say what they hold."""
    return frozenset(told[2] for told in pages if told and told[0] == "file" and told[4])


def publish(
    docs: Docs,
    shell: Shell,
    *,
    directories: bool = False,
    ledgered: Ledgered | None = None,
    forge: checkout.Published | None = None,
) -> Published:
    """Put the generated pages into the site.

    Args:
        docs: the folder of all pages.
        shell: what all pages share.
        directories: whether each page of the site is the index of a folder of its own.
        ledgered: what the ledger knows of them; None to show nothing of it.
        forge: where the sources are looked after.

    Raises:
        RankbookError: a page cannot be read or written.
    """
    with uncollected():
        return _Run(docs, shell, Addresses(directories), ledgered, forge).published()


def stamper(
    docs: Docs,
    shell: Shell,
    *,
    directories: bool = False,
    ledgered: Ledgered | None = None,
    forge: checkout.Published | None = None,
) -> Callable[[str], None]:
    """Put into the site what all generated pages load, and give what brings one of them up to date: pages are made when they are asked for.

    Args:
        docs: the folder of all pages.
        shell: what all pages share.
        directories: whether each page of the site is the index of a folder of its own.
        ledgered: what the ledger knows of them; None to show nothing of it.
        forge: where the sources are looked after.
    """
    run = _Run(docs, shell, Addresses(directories), ledgered, forge)
    run.put_shared()
    return run.put_one


def beside(file: Path, *, directories: bool = False) -> bytes:
    """Give what stands beside the pages as it is on a site: an inventory, and pictures, with their addresses there.

    Args:
        file: as it was generated.
        directories: whether each page of the site is the index of a folder of its own.
    """
    data = file.read_bytes()
    if not directories:
        return data
    if file.name == _INVENTORY:
        from rankbook.pages.inventory import with_directories
    else:
        from rankbook.pages.graph import with_directories
    return with_directories(data)


def shell_of(docs: Docs, *, directories: bool = False) -> Shell:
    """Take the shell from a site that an engine has built by itself, and put the style sheet and the script of all pages beside it.

    Args:
        docs: the folder of all pages.
        directories: whether each page of the site is the index of a folder of its own.

    Raises:
        RankbookError: the site has no page for the root of the book.
    """
    addresses, site = Addresses(directories), docs.site
    if not docs.shell:
        raise RankbookError("no generated page is the index of a book", where=site.folder, right="run `rankbook gen` first")
    file = addresses.file(docs.shell)
    row = site.kept.rows.get(docs.shell)
    keep = site.shell_kept_in
    is_ours = row is not None and _seen(site.path, [file]) == [row.made]
    if is_ours and not keep.is_file():
        raise RankbookError(
            "the generated pages are in the site already: the plugin has put them in when the engine built it",
            where=site.path,
            right="nothing is left to stamp; to bring them up to date, build the site again",
        )
    try:
        page = _with_assets((keep if is_ours else site.path / file).read_text(encoding="utf-8"), file)
    except (OSError, UnicodeDecodeError) as error:
        raise RankbookError(
            "the site has no page for the index of the book", where=site.path / file, right="build the site with its engine, then stamp it"
        ) from error
    for name, content in ((STYLE, style()), (SCRIPT, script())):
        site.put(name, content.encode())
    stamp = docs.stamps[docs.shell]
    headings = markdown.render(body_of(site.folder / docs.shell), docs.shell, addresses).headings
    shell = Shell.of(page, file=file, title=stamp.title, headings=headings)
    if not is_ours:
        with suppress(OSError):
            keep.parent.mkdir(parents=True, exist_ok=True)
            keep.write_text(page, encoding="utf-8")
    return shell


def finish(docs: Docs, *, directories: bool = False, ledgered: Ledgered | None = None) -> None:
    """Put what the ledger knows into the pages that people made, in a site that an engine has built by itself.

    Args:
        docs: the folder of all pages.
        directories: whether each page of the site is the index of a folder of its own.
        ledgered: what the ledger knows; None to show nothing of it.
    """
    addresses = Addresses(directories)
    for path in docs.by_hand:
        target = docs.site.path / addresses.file(path)
        with suppress(OSError, UnicodeDecodeError):
            text = target.read_text(encoding="utf-8")
            made = _LINE_LINK.sub(r'\1#L\2"', text)
            if ledgered is not None:
                made = _finished(made, path, ledgered, addresses)
            if made != text:
                docs.site.put(addresses.file(path), made.encode())


def _finished(page: str, path: str, ledgered: Ledgered, addresses: Addresses) -> str:
    """Put what the ledger knows into a page that a person made, in the place of what it shows of it already."""
    plain = fences.without_outcomes(_PLACE.sub(lambda match: f"<!-- rankbook:{match[1]} -->", page))
    made, names = ledgered.with_outcomes(plain, path, is_tabled=LAST_RUN_MARKER in plain)
    made = _PLACE.sub(lambda match: _known(match, ledgered.front(path, names)), made)
    return _with_assets(made, addresses.file(path)) if made != plain else plain


def shown_at(marker: str, shown: str) -> str:
    """Write what the ledger knows between marks, at which `finish` finds it when it knows more.

    Args:
        marker: name of the marker whose place it takes.
        shown: HTML.
    """
    return f"<!-- rankbook:{marker} -->{shown}<!-- /rankbook:{marker} -->"


def _known(match: re.Match[str], front: Front) -> str:
    return shown_at(match[1], {LAST_RUN: front.last_run, ROLLUP: front.rollup}[match[1]])


def _with_assets(page: str, file: str) -> str:
    """Load the style sheet and the script, where the engine was not told to."""
    up = "../" * file.count("/")
    if STYLE not in page:
        page = page.replace("</head>", f'<link rel="stylesheet" href="{up}{STYLE}">\n</head>', 1)
    if SCRIPT not in page:
        page = page.replace("</body>", f'<script src="{up}{SCRIPT}"></script>\n</body>', 1)
    return page


class _Run:
    """One run, step by step."""

    def __init__(self, docs: Docs, shell: Shell, addresses: Addresses, ledgered: Ledgered | None, forge: checkout.Published | None) -> None:
        self.docs = docs
        self.site = docs.site
        self.shell = shell
        self.addresses = addresses
        self.ledgered = ledgered
        self.forge = forge.forge if forge else None
        self.facts = forge.facts if forge else "{}\n"
        self.kept = docs.site.kept
        self.setting = _digest([_code(), shell.digest, repr(self.forge), repr(addresses)])
        self.state = ledgered.state if ledgered else ""
        self.rows = dict(docs.rows)
        self.facts_file = _facts_file(self.site.kept_in)
        self.are_facts_kept = True
        """Whether the next run can build on what this one knows of links."""

    @cached_property
    def are_links_known(self) -> bool:
        """Whether what is kept of links is of the run that has left the rest: else all pages are made anew, and their links followed."""
        return self.kept.facts == _at_last(self.facts_file) != _NOTHING

    @cached_property
    def others(self) -> str:
        """Digest of the names of all files that are no pages."""
        return _short(sorted(path for path in self.docs.files if path not in self.docs.rows))

    @cached_property
    def proof(self) -> Proof | None:
        """What the ledger knows of the pages."""
        return self.ledgered.proof if self.ledgered else None

    @cached_property
    def filler(self) -> Filler:
        """What makes pages."""
        from rankbook.filling import Filler, Steps

        docs = self.docs
        return Filler(docs.site.folder, docs.stamps, Steps(docs.stamps), self.shell, self.addresses, self.proof, self.forge, docs.site.put)

    def published(self) -> Published:
        """Do all steps."""
        removed = self._removed()
        self._compare()
        todo = [path for path, row in self.rows.items() if row.made == _NOTHING and path in self.docs.stamps]
        jobs = processes(self.site.settings.jobs) if len(todo) > _FEW else 1
        facts = self._stamp(todo, jobs)
        copied = self._copy()
        self.put_shared()
        problems = self._problems(facts, todo, removed)
        if todo or removed or copied or problems != self.kept.problems or self._is_news:
            self._keep(problems)
        written = (*self.addresses.files(todo), *copied)
        return Published(len(self.docs.stamps), written, removed, problems)

    def put_shared(self) -> None:
        """Write what all pages load."""
        for name, content in ((FACTS, self.facts), (lean.FILE, self.shell.script), (lean.STYLE, self.shell.style)):
            self.site.put(name, content.encode())

    def put_one(self, path: str) -> None:
        """Write a page, or what stands beside one, whatever was made of it before."""
        if path in self.docs.stamps:
            self.filler.page(path)
        else:
            self._put_beside(path)

    def _put_beside(self, path: str) -> Seen:
        """Write what stands beside the pages."""
        return self.site.put(path, beside(self.site.folder / path, directories=self.addresses.directories))

    @property
    def _is_news(self) -> bool:
        kept = self.kept
        is_other = (kept.setting, kept.proofs) != (self.setting, self.state) or kept.rows != self.rows
        is_other = is_other or kept.others != self.others or not self.are_links_known
        now = self.ledgered
        return is_other or (now is not None and (now.seen, now.beside, now.fronts) != (kept.ledger, kept.beside, kept.fronts))

    def _compare(self) -> None:
        """Take over what is as it was."""
        is_same = self.kept.setting == self.setting and self.are_links_known
        contexts = self._contexts()
        ours = [*self.docs.stamps, *self.docs.copied]
        outputs = _seen(self.site.path, tuple(self.addresses.files(ours)))
        for path, made in zip(ours, outputs, strict=True):
            row, context = self.rows[path], contexts.get(path, "")
            if not (is_same and row.context == context and row.made == made != _NOTHING):
                self.rows[path] = row._replace(context=context, made=_NOTHING)
        for path in self.rows.keys() - ours:
            self.rows[path] = self.rows[path]._replace(context="", made=_NOTHING)

    def _contexts(self) -> dict[str, str]:
        """Give for each page that the last run knew the digest of what it shows besides its own text."""
        told = self.docs.stamps.told
        if (self.kept.setting, self.kept.proofs) == (self.setting, self.state) and self._has_same_book:
            return {path: self.kept.rows[path].context for path in told}
        return {path: self.filler.context(path) for path in told if path in self.kept.rows}

    @property
    def _has_same_book(self) -> bool:
        """Whether no page shows other neighbours, or other runs when the ledger is the same.

        Without a ledger no page shows a run, whatever stands on the others.
        """
        kept = self.kept.rows
        changed = {path: row for path, row in self.rows.items() if kept.get(path) is not row}
        if not all((old := kept.get(path)) is not None and _at(old) == _at(row) for path, row in changed.items()):
            return False
        is_proof_same = not self.state or all(row.stamp and row.stamp == kept[path].stamp for path, row in changed.items())
        return is_proof_same and len(self.docs.stamps) == sum(bool(row.stamp) for row in kept.values())

    def _removed(self) -> tuple[str, ...]:
        """Take away what was made of pages that are gone."""
        old = Addresses(self.kept.directories)
        is_moved = old != self.addresses
        ours = {*self.docs.stamps, *self.docs.copied}
        lost = [path for path, row in self.kept.rows.items() if row.made != _NOTHING and (is_moved or path not in ours)]
        now = set(self.addresses.files(ours)) if lost else set()
        gone = []
        for path in lost:
            file, row = old.file(path), self.kept.rows[path]
            if file not in now and (_seen(self.site.path, [file]) == [row.made] or _is_stamped(self.site.path / file)):
                gone.append(file)
                self.site.guard(file)
                with suppress(OSError):
                    (self.site.path / file).unlink()
                _prune((self.site.path / file).parent, self.site.path)
        return tuple(gone)

    # Pages

    def _stamp(self, todo: Sequence[str], jobs: int) -> dict[str, Facts]:
        facts: dict[str, Facts] = {}
        if not todo:
            return facts
        if jobs > 1:
            import_module("rankbook.site.highlight")  # here, for else each process would do so
        # Those on top are the largest; the last ones are to be small, for at the end one process waits for the other.
        for _, made in spread(self.filler.fill, sorted(todo, key=lambda path: path.count("/")), jobs, _AT_ONCE):
            for path, seen, context, found in made:
                self.rows[path] = self.rows[path]._replace(made=seen, context=context)
                facts[path] = found
        return facts

    def _copy(self) -> list[str]:
        copied = []
        for path in self.docs.copied:
            if self.rows[path].made == _NOTHING:
                self.rows[path] = self.rows[path]._replace(made=self._put_beside(path))
                copied.append(path)
        return copied

    # Links

    def _problems(self, fresh: Mapping[str, Facts], todo: Sequence[str], removed: Sequence[str]) -> tuple[Problem, ...]:
        """Say which links lead nowhere."""
        rows, kept, docs = self.rows, self.kept, self.docs
        lost = [path for path, row in kept.rows.items() if path not in rows or (row.stamp and not rows[path].stamp)]
        anew = bool(removed or lost or kept.problems or self.others != kept.others or not self.are_links_known)
        if not (todo or anew):
            return ()
        from rankbook.dead_links import found_dead

        problems, self.are_facts_kept = found_dead(self.facts_file, fresh, docs.stamps, docs.files, anew=anew)
        return problems

    def _keep(self, problems: tuple[Problem, ...]) -> None:
        ledger = self.ledgered.seen if self.ledgered else _NOTHING
        beside = self.ledgered.beside if self.ledgered else ()
        facts = _at_last(self.facts_file) if self.are_facts_kept else _NOTHING
        fronts = self.ledgered.fronts if self.ledgered else {}
        ahead, listed = (self.ledgered.ahead, self.ledgered.listed) if self.ledgered and ledger != _NOTHING else ("", "")
        about = (self.setting, self.state, ledger, ahead, beside, listed, self.addresses.directories)
        self.site.keep(_Kept(self.rows, *about, problems, facts, self.others, fronts))


def _at(row: Row) -> Told:
    """Give of a page what its neighbours and its place among them hang on."""
    return row.stamp[:3]


_TEMPORARY = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)


def _is_stamped(file: Path) -> bool:
    """Tell whether a file of the site is a page of ours, whenever it was put there: somebody may have kept the site and brought it back."""
    try:
        return file.suffix == ".html" and _OURS in file.read_bytes()
    except OSError:
        return False


def _put(target: str, data: bytes) -> Seen:
    """Write a file beside its place and move it there, unless it is there already; tell how it is seen."""
    try:
        with suppress(FileNotFoundError):
            found = os.stat(target)  # noqa: PTH116 - this runs for each page
            if found.st_size == len(data) and Path(target).read_bytes() == data:
                return found.st_mtime_ns, found.st_size
        # Of any length that is allowed: a name that grew with the target's could be too long.
        folder = target.rpartition("/")[0]
        temporary = f"{folder}/.rankbook-{os.getpid()}-{get_ident()}.tmp"
        try:
            file = os.open(temporary, _TEMPORARY, 0o666)
        except FileNotFoundError:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - as above
            file = os.open(temporary, _TEMPORARY, 0o666)
        try:
            rest = data
            while rest:
                rest = rest[os.write(file, rest) :]
        finally:
            os.close(file)
        os.replace(temporary, target)  # noqa: PTH105 - as above
        found = os.stat(target)  # noqa: PTH116 - as above
    except OSError as error:
        raise RankbookError(f"cannot write the page of the site: {error.strerror}", where=target) from error
    return found.st_mtime_ns, found.st_size


def _prune(folder: Path, root: Path) -> None:
    with suppress(OSError):
        while folder != root:
            folder.rmdir()
            folder = folder.parent


def _walked(folder: Path) -> Iterator[str]:
    base = os.fspath(folder)
    for place, folders, names in os.walk(folder, followlinks=True):
        folders.sort()
        below = os.path.relpath(place, base).replace(os.sep, "/")
        yield from names if below == "." else (f"{below}/{name}" for name in names)


def _seen(folder: Path, paths: Sequence[str]) -> list[Seen]:
    return list(_pairs(freshness.look(os.fspath(folder), paths).seen))


def _at_last(file: Path) -> Seen:
    """Tell how a file is seen that only this program writes."""
    (found,) = _seen(file.parent, [file.name])
    return found


def _pairs(seen: bytes) -> Iterator[Seen]:
    numbers = memoryview(seen).cast("q")
    return zip(numbers[::2], numbers[1::2], strict=True)


# What is kept


def _load(path: Path) -> _Kept:
    try:
        with path.open("rb") as file:
            about = marshal.load(file)  # noqa: S302 - it lies in the user's own cache
            if about[0] != _FORMAT:
                return _Kept()
            _, _, *others = about
            paths, columns = marshal.loads(file.read())  # noqa: S302 - as above; from a file it would be read bit by bit
        rows = dict(zip(paths, rows_of(Row, columns), strict=True))
        kept = _Kept(rows, *others)
        kept.fronts = {path: Front(*front) for path, front in kept.fronts.items()}
    except Exception:  # noqa: BLE001 - whatever is wrong with it, a run without it does the same
        return _Kept()
    return kept


def _facts_file(path: Path) -> Path:
    return path.with_name(f"{path.name}-facts.sqlite")


def _save(path: Path, *told: Any) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):  # where nothing can be kept, the next run does all anew
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            for each in told:
                marshal.dump(each, file)
        temporary.replace(path)


def _forget(folder: Path) -> None:
    """Take away what is kept of sites that are gone."""
    for path in folder.glob("site-*"):
        if path.name.count("-") > 1 or path.suffix:
            continue
        with suppress(Exception):
            with path.open("rb") as file:
                site = marshal.load(file)[1]  # noqa: S302 - as above
            if not Path(site).exists():
                for each in (path, _facts_file(path), path.with_name(f"{path.name}-shell")):
                    each.unlink(missing_ok=True)


def _code() -> str:
    """Tell what makes pages from another version of it."""
    dates = [
        f"{path}:{seen.st_mtime_ns}:{seen.st_size}" for path in (*_CODE, *sorted((_HERE / "site").rglob("*.py"))) for seen in [path.stat()]
    ]
    return _digest([__version__, markdown.VERSION, _pygments(), *dates])


def _pygments() -> str:
    try:
        return str(import_module("pygments").__version__)
    except ImportError:
        return ""


def _digest(words: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(words).encode(errors="surrogateescape")).hexdigest()


def _short(words: Iterable[str]) -> str:
    return hashlib.blake2b("\0".join(words).encode(errors="surrogatepass"), digest_size=8).hexdigest()
