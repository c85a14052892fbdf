"""Other folders that hold pages of the same sources: what `out` once named is published, and executed, beside what it names now."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from rankbook import front_matter
from rankbook.config import Settings, load, real
from rankbook.errors import ConfigError
from rankbook.pages.names import page_of_file, page_of_folder


def other_books(settings: Settings, paths: Sequence[str]) -> Iterator[str]:
    """Find the folders, below the root, in which pages of all of the same sources lie, and those of no other project.

    A book of some of the sources is no double of that of all.

    Args:
        settings: root and folder of the generated pages.
        paths: of the sources.
    """
    root, out = settings.root, settings.below_root(settings.out)
    for top in _tops(settings):
        start = real(root / top)
        for place, folders, names in os.walk(start) if start != out else ():
            here = Path(place)
            folders[:] = sorted(name for name in folders if not name.startswith(".") and here / name != out)
            if "index.md" in names and _is_about(here, "", page_of_folder("index", "")):
                folders.clear()
                if paths and all(_is_about(here, path, page_of_file("file", path)) for path in paths):
                    yield (top / here.relative_to(start)).as_posix()


def is_of_the_project(settings: Settings) -> bool:
    """Tell whether the book is the one that the project's settings name: of all of its sources, and in its folder.

    Args:
        settings: of the run, with what the command line says.
    """
    try:
        book = load(settings.root)
    except ConfigError:  # what is wrong there, the command line has said otherwise
        return False
    named = [settings.below_root(source) for source in settings.sources]
    is_whole = all(any(book.below_root(source).is_relative_to(path) for path in named) for source in book.sources)
    is_filtered_alike = (settings.include, settings.exclude) == (book.include, book.exclude)
    return is_whole and is_filtered_alike and settings.below_root(settings.out) == book.below_root(book.out)


def _tops(settings: Settings) -> list[PurePath]:
    """Name the folders that may hold all pages of a site: the one around the generated pages, and the one that they have by default."""
    outs = (PurePath(out) for out in (settings.out, Settings().out))
    found = {out.parts[0] for out in outs if len(out.parts) > 1 and not out.is_absolute() and ".." not in out.parts}
    return sorted(map(PurePath, found))


def _is_about(folder: Path, source: str, page: str) -> bool:
    """Tell whether a page is generated, and is about this file or folder."""
    try:
        text = (folder / page).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    stamp = front_matter.read(front_matter.split(text)[0])
    return stamp is not None and stamp.source == source
