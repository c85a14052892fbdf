"""Huge pages: a process that is forked often gathers its memory in pages of 2 MB, so that a fork copies hundreds of entries, not 60,000.

A fork of a process that has imported torch takes 6 ms of the parent, and its end 8 ms, nearly all of it for tables of small pages; with
huge ones 1.5 and 3 ms. Gathering takes half a second, so it pays where there are many forks, and is done while nobody waits.
"""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

MAPS = Path("/proc/self/maps")
SYSTEM = Path("/sys/kernel/mm/transparent_hugepage")
COLLAPSE = 25
"""Advice `MADV_COLLAPSE`, of Linux 6.1; an older one refuses it, and all stays as it is."""
ROUNDS = 8
"""How often a page is tried that the system says is in use (EAGAIN), as many are while a fork ends."""

PAUSE = 0.05
"""Seconds between such rounds."""


def gather() -> Iterator[float]:
    """Put the contents of this process's own memory into huge pages, one at each step.

    Yields:
        How long to wait before the next step, in seconds. Whether a page could be gathered is the system's business.
    """
    with suppress(OSError, ValueError, AttributeError):
        if "[never]" in (SYSTEM / "enabled").read_text(encoding="ascii"):
            return
        size = int((SYSTEM / "hpage_pmd_size").read_text(encoding="ascii"))
        advise = ctypes.CDLL(None, use_errno=True).madvise
        advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        own = own_memory(MAPS.read_text(encoding="utf-8", errors="replace"))
        pages: Iterable[int] = (page for start, end in own for page in range(-(-start // size) * size, end // size * size, size))
        for _ in range(ROUNDS):
            in_use = []
            for page in pages:
                if advise(page, size, COLLAPSE) and ctypes.get_errno() == errno.EAGAIN:
                    in_use.append(page)
                yield 0
            if not in_use:
                return
            pages = in_use
            yield PAUSE


def own_memory(maps: str) -> Iterator[tuple[int, int]]:
    """Yield where the memory of a process lies that is of no file: start and end.

    Args:
        maps: what the system says of its memory.
    """
    for line in maps.splitlines():
        place, rights, _, _, _, *name = line.split(None, 5)
        if rights == "rw-p" and (not name or name[0] == "[heap]"):
            start, _, end = place.partition("-")
            yield int(start, 16), int(end, 16)
