"""The book while somebody works on it: `mkdocs serve` shows what is saved without a build by the engine.

The engine builds what people wrote, once at the start and whenever that changes. A generated page is put into the site when a browser
asks for it. What the pages are made from is watched here: after a change of a source, a template or the ledger the pages on disk are
brought up to date and the browsers told to load theirs again. When something is wrong, all that was right before stays, under a note that
says what it is.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import Any

from rankbook import freshness
from rankbook.config import Settings, load
from rankbook.document import document, survey_tree
from rankbook.errors import RankbookError
from rankbook.pages import INVENTORY, owner
from rankbook.pages.names import FILE_PAGES, FOLDER_PAGES, PICTURE
from rankbook.publish import Docs, Ledgered, finish, stamper
from rankbook.searching import FOLDER as SEARCH
from rankbook.site import checkout
from rankbook.site.addresses import Addresses
from rankbook.site.shell import Shell

QUIET = 0.05
"""Seconds without a further change after which one is looked at."""
PATIENCE = 0.5
"""Seconds after which it is looked at whatever else changes; also the shortest time between two looks at a ledger that keeps growing."""
_NET = 2.0
"""Seconds between looks when nothing was heard of a change: file systems of other machines do not tell."""
_DEAF_NET = 0.5
"""The same where the system tells of no change at all."""
_SHARE = 20
"""Such a look may take this part of the time between two ..."""
_LONGEST = 10.0
"""... which is never longer than this many seconds."""
_LAST = ".rankbook-last"
"""Folder of the site that holds what the engine has built, while it builds anew."""
_CHANGES = frozenset({"created", "modified", "moved", "deleted"})
_OURS = re.compile(
    "|".join(
        [
            *(rf".*{re.escape(end)}" for end in FILE_PAGES.values()),
            *map(re.escape, (*FOLDER_PAGES.values(), PICTURE, INVENTORY)),
            r"suite-.*\.md",
            r"\.rankbook-\d+\.tmp",
        ]
    )
)
"""Names of what `rankbook gen` writes."""
_KEEPER = """<script>
(() => {
  const key = "rankbook-open:" + location.pathname;
  const all = () => [...document.querySelectorAll("details")];
  try {
    const open = JSON.parse(sessionStorage.getItem(key) || "[]");
    sessionStorage.removeItem(key);
    all().forEach((element, number) => { if (open.includes(number)) element.open = true; });
    addEventListener("pagehide", () => {
      const now = all().flatMap((element, number) => (element.open ? [number] : []));
      sessionStorage.setItem(key, JSON.stringify(now));
    });
  } catch (error) {
    console.debug(error);
  }
})();
</script>"""
"""Opens again, when a page is loaded anew, what a reader has opened on it."""
_NOTE = (
    '<div class="rankbook-mistake" role="alert" style="position:fixed;z-index:99;left:0;right:0;bottom:0;max-height:40vh;overflow:auto;'
    "padding:.8em 1em;border-top:4px solid #c62828;background:#fff;color:#7f0000;font:14px/1.4 ui-monospace,monospace;"
    'white-space:pre-wrap;overflow-wrap:anywhere">{}</div>'
)
_StartResponse = Callable[..., Any]
_App = Callable[[dict[str, Any], _StartResponse], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Opened:
    """What a build of the engine has left."""

    settings: Settings
    docs: Docs
    shell: Shell
    ledgered: Ledgered
    directories: bool
    """Whether each page of the site is the index of a folder of its own."""
    forge: checkout.Published | None
    exclude: Callable[[str], bool]
    """Tells which files below the folder of all pages belong to no site."""
    generates: bool
    """Whether the pages are generated from their sources first."""

    @property
    def outline(self) -> dict[str, str]:
        """Titles of the pages that the navigation may list: they are in the shell, which only the engine can build."""
        return {path: stamp.title for path, stamp in self.docs.stamps.items() if not stamp.source}


@dataclass
class _Table:
    """What requests are answered from."""

    opened: Opened
    put: Callable[[str], None]
    """Brings one page of the site up to date."""

    @cached_property
    def by_file(self) -> Mapping[str, str]:
        """Paths of pages by the file that each is on the site."""
        docs, addresses = self.opened.docs, Addresses(self.opened.directories)
        return {**{path: path for path in docs.copied}, **{addresses.file(path): path for path in docs.stamps}}


class Live:
    """A book that is served.

    Args:
        log: takes what is said to who runs the server.
    """

    def __init__(self, log: logging.Logger) -> None:
        self.log = log
        self.lock = threading.RLock()
        """Held while the book is brought up to date; who would show a page waits for it."""
        self.mistakes: dict[str, str] = {}
        """What is wrong now, by what has found it."""
        self.last: Opened | None = None
        """What the last build of the engine has left that made a shell."""
        self._table: _Table | None = None
        self._searching = threading.Lock()
        self._reload: Callable[[], None] = lambda: None
        self._engine: Callable[[], None] = lambda: None
        self._seen: tuple[bytes, ...] = ()
        self._warned: tuple[str, ...] = ()

    def open(self, opened: Opened) -> None:
        """Serve the pages that a build of the engine has made a shell for.

        Args:
            opened: what it has left.
        """
        with self.lock:
            seen = self._state(opened.settings)
            old = self._table
            ledgered: Ledgered | None = opened.ledgered
            try:
                _ = opened.ledgered.proof  # now, before a browser asks
            except RankbookError as error:
                self._tell("ledger", error)
                ledgered = None
            else:
                self.mistakes.pop("ledger", None)
            put = stamper(opened.docs, opened.shell, directories=opened.directories, ledgered=ledgered, forge=opened.forge)
            opened.docs.site.remember(opened.docs, directories=opened.directories)
            self.last, self._table, self._seen = opened, _Table(opened, put), seen
            self._drop(old, self._table)

    def close(self) -> None:
        """Leave all pages to the engine: its build has made no shell."""
        with self.lock:
            self._table = None

    def connect(self, engine: Callable[[], None], reload: Callable[[], None]) -> None:
        """Name who builds what people wrote, and who tells the browsers."""
        self._engine = engine
        self._reload = reload

    # Building

    def refused(self, error: Exception) -> None:
        """Take notice that the pages cannot be generated."""
        self._tell("gen", error)

    def build(self) -> None:
        """Let the engine build; what it has built before stays when it cannot."""
        with self.lock, self._searching, _kept(self.last.docs.site.path if self.last else None) as restore:
            try:
                self._engine()
            except Exception as error:  # noqa: BLE001 - a mistake on any page can be of any kind, and the server lives on
                restore()
                self._tell("build", error)
            else:
                self.mistakes.pop("build", None)

    def look(self) -> None:
        """Bring the book up to date with what has changed."""
        with self.lock:
            try:
                shows = self._looked()
            except Exception as error:  # noqa: BLE001 - as above
                shows = self._tell("gen", error)
            else:
                shows |= self.mistakes.pop("gen", None) is not None
        if shows:
            self.log.info("Reloading browsers")
            self._reload()
            self._write_search()

    def _looked(self) -> bool:
        """Do so; tell whether a page may show it."""
        opened = self.last
        if opened is None:
            return False
        state = self._state(opened.settings)
        if state[0] != self._seen[0] or "gen" in self.mistakes:
            if load(opened.settings.root) != opened.settings:
                self.build()
                return True
            self._seen = (state[0], *self._seen[1:])
        is_new = self._generated(opened) if opened.generates else True
        if self._table is None:
            if is_new:
                self.build()
            return is_new
        return self._opened_anew(opened, state) if is_new or state != self._seen else False

    def _generated(self, opened: Opened) -> bool:
        """Bring the pages up to date; tell whether one has changed, by this or before."""
        changes = freshness.compare(opened.settings)
        if changes is not None and changes.report is not None:
            return False
        report = document(opened.settings, changes=changes)
        self._warn(report.warnings)
        return bool(report.changes or (changes and changes.pages))

    def _opened_anew(self, opened: Opened, state: tuple[bytes, ...]) -> bool:
        site = opened.docs.site
        docs = Docs(site, (path for path in _walked(site.folder) if not opened.exclude(path)))
        fresh = replace(opened, docs=docs, ledgered=Ledgered(docs, opened.ledgered))
        if fresh.outline != opened.outline or docs.shell != opened.docs.shell:
            self.build()
            return True
        if docs.seen == opened.docs.seen and state == self._seen:
            return False
        if state != self._seen:
            with suppress(RankbookError):
                finish(docs, directories=opened.directories, ledgered=fresh.ledgered)
        self.open(fresh)
        return True

    def _state(self, settings: Settings) -> tuple[bytes, ...]:
        """Tell the settings and the ledger from what they become."""
        paths = settings.root / "pyproject.toml", settings.below_root(settings.ledger)
        return tuple(freshness.look(os.fspath(settings.root), [os.fspath(path)]).seen for path in paths)

    def _write_search(self) -> None:
        with self._searching:
            if self._table is not None:
                opened = self._table.opened
                try:
                    opened.docs.site.write_search(Addresses(opened.directories), partial(survey_tree, opened.settings))
                except (RankbookError, OSError) as error:
                    self.log.warning("%s", error)

    def _drop(self, old: _Table | None, new: _Table) -> None:
        """Take away what was made of pages that are gone."""
        if old is not None:
            for file in old.by_file.keys() - new.by_file.keys():
                with suppress(OSError):
                    (new.opened.docs.site.path / file).unlink()

    def _tell(self, who: str, error: Exception) -> bool:
        """Say what is wrong, once; tell whether it is new."""
        what = _said(error)
        if self.mistakes.get(who) == what:
            return False
        self.mistakes[who] = what
        self.log.error("%s", what, exc_info=None if isinstance(error, (RankbookError, SystemExit)) else error)
        return True

    def _warn(self, warnings: tuple[str, ...]) -> None:
        for warning in warnings:
            if warning not in self._warned:
                self.log.warning("%s", warning)
        self._warned = warnings

    # Showing

    def ask(self, file: str) -> None:
        """Bring a file of the site up to date before it is shown.

        Args:
            file: below the folder of the site.
        """
        with self.lock:
            if self._table is None:
                return
            for name in (file, f"{file}/index.html".lstrip("/")):
                path = self._table.by_file.get(name)
                if path is not None:
                    self._bring(name, path, self._table)

    def _bring(self, name: str, path: str, table: _Table) -> None:
        try:
            table.put(path)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a page, the last good one is shown
            self._tell(name, error)
        else:
            self.mistakes.pop(name, None)

    def is_hidden(self, folder: str, name: str) -> bool:
        """Tell whether a file is no concern of the engine, because it is generated.

        Args:
            folder: that holds it.
            name: of the file.
        """
        table = self._table
        if table is None or not _OURS.fullmatch(name):
            return False
        docs, settings = table.opened.docs, table.opened.settings
        out = os.fspath(settings.below_root(settings.out))
        if folder != out and not folder.startswith(out + os.sep):
            return False
        path = os.path.join(folder, name)  # noqa: PTH118 - this runs for each page
        below = os.path.relpath(path, docs.site.folder).replace(os.sep, "/")
        if below in docs.seen:
            return below in docs.stamps or below in docs.copied
        _, source = owner(os.path.relpath(path, out).replace(os.sep, "/"))
        return (settings.root / source).exists()


def _said(error: Exception) -> str:
    """Give the words of an error; of one that only says that a build has ended, those of what has ended it."""
    cause = error.__context__ if isinstance(error, SystemExit) and error.__context__ is not None else error
    return str(cause) or type(cause).__name__


def _walked(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder, followlinks=True):
        folders.sort()
        below = os.path.relpath(place, folder).replace(os.sep, "/")
        yield from names if below == "." else (f"{below}/{name}" for name in names)


@contextmanager
def _kept(site: Path | None) -> Iterator[Callable[[], None]]:
    """Keep what the folder of a site holds while an engine builds it anew; what is yielded puts it back."""
    if site is None:
        yield lambda: None
        return
    last = site / _LAST
    files = [path for path in _walked(site) if not path.startswith((".", f"{SEARCH}/"))]
    for path in files:
        (last / path).parent.mkdir(parents=True, exist_ok=True)
        _linked(site / path, last / path)

    def restore() -> None:
        for path in files:
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):
                (last / path).replace(site / path)

    try:
        yield restore
    finally:
        shutil.rmtree(last, ignore_errors=True)


def _linked(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:
        with suppress(OSError):
            shutil.copy2(source, target)


class Window:
    """What browsers talk to: the server's own application, with each page brought up to date first.

    Args:
        app: the server's.
        live: the book.
        mount: address of the site below that of the server, with a slash at its end.
    """

    def __init__(self, app: _App, live: Live, mount: str) -> None:
        self._app = app
        self._live = live
        self._mount = mount

    def __call__(self, environ: dict[str, Any], start_response: _StartResponse) -> Iterable[bytes]:
        """Answer a request, as WSGI wants it."""
        path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "ignore")
        if path.startswith("/livereload/"):
            return self._app(environ, start_response)
        self._ask(path)
        told: list[tuple[str, list[tuple[str, str]]]] = []
        body = self._app(environ, lambda status, headers, *_: told.append((status, headers)))
        status, headers = told[-1]
        if any(name.lower() == "content-type" and value.startswith("text/html") for name, value in headers):
            data = self._noted(b"".join(body))
            getattr(body, "close", lambda: None)()
            headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
            headers.append(("Content-Length", str(len(data))))
            body = [data]
        start_response(status, headers)
        return body

    def _ask(self, path: str) -> None:
        if path.startswith(self._mount):
            file = path[len(self._mount) :]
            self._live.ask(f"{file}index.html" if path.endswith("/") else file)

    def _noted(self, page: bytes) -> bytes:
        mistakes = list(self._live.mistakes.values())
        note = _NOTE.format("\n\n".join(map(escape, mistakes))) if mistakes else ""
        start, end, rest = page.rpartition(b"</body>")
        return b"".join((start or rest, note.encode(), _KEEPER.encode(), end, rest if start else b""))


class Watch:
    """Looks at the book whenever what it is made from changes.

    Args:
        live: the book.
        paths: files and folders to watch.
        ledger: the file that is written again and again while tests run.
    """

    def __init__(self, live: Live, paths: Iterable[Path], ledger: Path) -> None:
        self._live = live
        self._ledger = os.fspath(ledger)
        self._left = [*paths, ledger]
        """What is not watched yet: it was not there."""
        self._woken = threading.Event()
        self._saved = threading.Event()
        """Something else than the ledger has changed."""
        self._stopped = threading.Event()
        self._observer = self._begun()
        self._thread = threading.Thread(target=self._run, name="rankbook-watch", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stopped.set()
        self._saved.set()
        self._woken.set()
        if self._observer is not None:
            self._observer.stop()

    def dispatch(self, event: Any) -> None:
        """Take an event of watchdog."""
        if event.event_type in _CHANGES:
            if not os.fsdecode(event.src_path).startswith(self._ledger):
                self._saved.set()
            self._woken.set()

    def _begun(self) -> Any:
        """Give an observer of what the system tells; None where it does not."""
        from watchdog.observers import Observer

        observer = Observer()
        try:
            observer.start()
            self._listen(observer)
        except OSError as error:  # there is a limit to how many folders one may watch
            self._live.log.info("The system does not tell of changed files (%s); they are looked at every %s s", error, _DEAF_NET)
            observer.stop()
            return None
        return observer

    def _listen(self, observer: Any) -> None:
        """Watch what is there and was not watched yet; of the rest, the folder in which it will appear."""
        for path in tuple(self._left):
            is_there = path.exists()
            folder = path if path.is_dir() else next(above for above in path.parents if above.is_dir())
            observer.schedule(self, os.fspath(folder), recursive=path.is_dir())
            if is_there:
                self._left.remove(path)

    def _run(self) -> None:
        pause, ended = 0.0, 0.0
        while True:
            if self._woken.wait(pause) and not self._saved.is_set():
                self._saved.wait(max(0.0, ended + PATIENCE - time.monotonic()))
            if self._saved.is_set():
                self._settle()
            if self._stopped.is_set():
                return
            self._woken.clear()
            self._saved.clear()
            started = time.monotonic()
            try:
                if self._observer is not None:
                    self._listen(self._observer)
                self._live.look()
            except Exception:
                self._live.log.exception("rankbook cannot bring the book up to date")
            ended = time.monotonic()
            net = _DEAF_NET if self._observer is None else _NET
            pause = min(max(net, _SHARE * (ended - started)), _LONGEST)

    def _settle(self) -> None:
        """Wait until nothing changes any more, but not for long: an editor writes beside a file and renames, Git writes many files."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and not self._stopped.is_set():
            self._saved.clear()
            if not self._saved.wait(QUIET):
                return


def attach(server: Any, live: Live, builder: Callable[[], None]) -> bool:
    """Let a server of MkDocs show a book as it is at each moment.

    Args:
        server: MkDocs' or ProperDocs' own.
        live: the book.
        builder: builds the site by the engine.

    Returns:
        Whether that can be done: not with a server that is made otherwise.
    """
    needed = ("_epoch_cond", "_wanted_epoch", "_visible_epoch", "_watched_paths", "_watch_refs", "mount_path", "set_app", "builder")
    if not all(hasattr(server, name) for name in needed):
        return False
    live.connect(builder, partial(_reload, server))
    server.builder = live.build
    server.set_app(Window(server.get_app(), live, server.mount_path))
    _hide(server, live)
    return True


def _reload(server: Any) -> None:
    """Tell all browsers to load their page again; a build that is under way will do so at its end."""
    with server._epoch_cond:
        if server._wanted_epoch == server._visible_epoch:
            epoch = max(round(time.monotonic() * 1000), server._visible_epoch + 1)
            server._wanted_epoch = server._visible_epoch = epoch
            server._epoch_cond.notify_all()


def _hide(server: Any, live: Live) -> None:
    """Keep the server from looking at generated pages twice a second, and from building because one has changed."""
    from watchdog.observers.polling import PollingObserverVFS

    def listed(folder: Any) -> Iterator[os.DirEntry[str]]:
        base = os.fspath(folder)
        with os.scandir(base) as entries:
            return iter([entry for entry in entries if not live.is_hidden(base, entry.name)])

    counts, refs = dict(server._watched_paths), dict(server._watch_refs)
    for path, count in counts.items():
        for _ in range(count):
            server.unwatch(path)
    server.observer = PollingObserverVFS(os.stat, listed, polling_interval=_DEAF_NET)
    for path, count in counts.items():
        for _ in range(count):
            server.watch(path, recursive=refs[path].is_recursive)
