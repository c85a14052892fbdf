"""The server of MkDocs, and what it keeps to itself that a live book needs: its epochs, and what it looks at."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from rankbook.serving.live import Live
from rankbook.serving.watch import DEAF_NET
from rankbook.serving.window import Window

_NOWHERE = os.stat_result((0,) * 10)
"""What is seen where nothing stands."""


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
    """Keep the server from looking at generated pages twice a second, and from building because one has changed.

    What it looks at may be gone for a while, as when another branch is checked out: the observer would look there no more.
    """
    from watchdog.observers.polling import PollingObserverVFS

    def listed(folder: Any) -> Iterator[os.DirEntry[str]]:
        base = os.fspath(folder)
        with os.scandir(base) as entries:
            return iter([entry for entry in entries if not live.is_hidden(base, entry.name)])

    def seen(place: Any) -> os.stat_result:
        try:
            return os.stat(place)  # noqa: PTH116 - this runs for each file
        except (FileNotFoundError, NotADirectoryError):
            if place not in counts:
                raise
            return _NOWHERE

    counts, refs = dict(server._watched_paths), dict(server._watch_refs)
    for path, count in counts.items():
        for _ in range(count):
            server.unwatch(path)
    server.observer = PollingObserverVFS(seen, listed, polling_interval=DEAF_NET)
    for path, count in counts.items():
        for _ in range(count):
            server.watch(path, recursive=refs[path].is_recursive)
