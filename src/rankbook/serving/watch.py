"""When to look at a book on which somebody works."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from rankbook.codeowners import places
from rankbook.config import Settings
from rankbook.serving.live import Live

QUIET = 0.05
"""Seconds without a further change after which one is looked at."""
PATIENCE = 0.5
"""Seconds after which it is looked at whatever else changes; also the shortest time between two looks at a ledger that keeps growing."""
_NET = 2.0
"""Seconds between looks when nothing was heard of a change: file systems of other machines do not tell."""
DEAF_NET = 0.5
"""The same where the system tells of no change at all."""
_SHARE = 20
"""Such a look may take this part of the time between two ..."""
_LONGEST = 10.0
"""... which is never longer than this many seconds."""
_FAREWELL = 10.0
"""Seconds that the end waits for a look that is under way."""
_CHANGES = frozenset({"created", "modified", "moved", "deleted"})


class Watch:
    """Looks at the book whenever what it is made from changes.

    Args:
        live: the book.
    """

    def __init__(self, live: Live) -> None:
        self._live = live
        self._ledger = ""
        """The file that is written again and again while tests run."""
        self._watched: set[Path] = set()
        """What is watched already; what is not there is not."""
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
        """End; what is being written is written to its end, unless that takes long or somebody interrupts it again."""
        self._stopped.set()
        self._saved.set()
        self._woken.set()
        with suppress(KeyboardInterrupt):
            self._thread.join(_FAREWELL)
        if self._observer is not None and not self._thread.is_alive():  # which may be telling it what to watch
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
            self._live.log.info("The system does not tell of changed files (%s); they are looked at every %s s", error, DEAF_NET)
            observer.stop()
            return None
        return observer

    def _listen(self, observer: Any) -> None:
        """Watch what is there and was not watched yet; of the rest, the folder in which it will appear."""
        opened = self._live.last
        if opened is None:
            return
        self._ledger = os.fspath(opened.settings.below_root(opened.settings.ledger))
        for path in set(_made_from(opened.settings)) - self._watched:
            is_there = path.exists()
            folder = path if path.is_dir() else next(above for above in path.parents if above.is_dir())
            observer.schedule(self, os.fspath(folder), recursive=path.is_dir())
            if is_there:
                self._watched.add(path)

    def _run(self) -> None:
        self._live.get_ready()
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
            net = DEAF_NET if self._observer is None else _NET
            pause = min(max(net, _SHARE * (ended - started)), _LONGEST)

    def _settle(self) -> None:
        """Wait until nothing changes any more, but not for long: an editor writes beside a file and renames, Git writes many files."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and not self._stopped.is_set():
            self._saved.clear()
            if not self._saved.wait(QUIET):
                return


def _made_from(settings: Settings) -> Iterator[Path]:
    """Name the files and folders that pages are made from; of those of packages, the folders of the project that are not all of it."""
    named = (*settings.sources, settings.templates, "pyproject.toml", settings.out, settings.ledger)
    yield from map(settings.below_root, named)
    yield from (path for path in map(settings.below_root, settings.package_path) if settings.root in path.parents)
    yield from places(settings.root)
