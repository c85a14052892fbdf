"""Stamped pages set aside while an engine empties the folder of the site, and put back beside what it has built.

Engines leave alone what starts with a dot, so the pages wait in a folder with such a name, in the site's own folder: to move them is
to rename them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

ASIDE = ".rankbook"
"""Folder in which pages wait."""
WHOLE = ".whole"
"""Folder in it in which those wait that are put back with all that they hold."""


def shelter(site: Path, names: Iterable[str], folders: Iterable[str] = ()) -> None:
    """Set entries of the site's folder aside.

    Args:
        site: the folder.
        names: of the entries that hold stamped pages; what is not there is passed over.
        folders: further folders below the site's, with all that they hold.
    """
    aside = _aside(site)
    for folder in folders:
        _unlinked(aside / WHOLE, folder)
        _set_aside(site / folder, aside / WHOLE / folder)
    for name in names:
        _set_aside(site / name, aside / name)


def unshelter(site: Path, pages: Collection[str]) -> None:
    """Put the entries back that were set aside, if there are any; folders with all that they hold still wait.

    Args:
        site: the folder.
        pages: the stamped pages, below the folder; whatever else was set aside with them is dropped.
    """
    aside = _aside(site)
    if not aside.is_dir():
        return
    for entry in sorted(os.listdir(aside)):  # noqa: PTH208 - names are what is needed
        if entry != WHOLE:
            _clean(aside / entry, entry, pages)
            _merge(aside / entry, site / entry, entry, pages)


def unshelter_folders(site: Path) -> None:
    """Put the folders back that were set aside with all that they hold, and let nothing wait any longer.

    Args:
        site: the folder.
    """
    aside = _aside(site)
    if aside.is_dir():
        _restore(aside / WHOLE, site)
        shutil.rmtree(aside, ignore_errors=True)


def drop(site: Path) -> None:
    """Take away what was set aside.

    Args:
        site: the folder.
    """
    aside = _aside(site)
    if aside.exists():
        _drop(aside)


def _aside(site: Path) -> Path:
    """Give the folder in which pages wait; it is no link, through which they would leave the site."""
    _unlinked(site, f"{ASIDE}/{WHOLE}")
    return site / ASIDE


def _unlinked(folder: Path, below: str) -> None:
    """Take away the links on the way from a folder to what is below it."""
    for name in below.split("/"):
        folder = folder / name
        if folder.is_symlink():
            folder.unlink()


def _set_aside(place: Path, aside: Path) -> None:
    if place.exists():
        aside.parent.mkdir(parents=True, exist_ok=True)
        if aside.exists():  # a build was cut short
            _drop(aside)
        place.rename(aside)


def _restore(aside: Path, site: Path) -> None:
    """Put whole folders back to where nothing stands."""
    for entry in sorted(aside.iterdir()) if aside.is_dir() else ():
        if entry.is_symlink():
            entry.unlink()
        elif not (site / entry.name).exists():
            entry.rename(site / entry.name)
        elif entry.is_dir():
            _restore(entry, site / entry.name)
    if aside.is_dir():
        shutil.rmtree(aside)


def _clean(place: Path, path: str, pages: Collection[str]) -> bool:
    """Drop what is no stamped page; tell whether anything is left."""
    if not place.is_dir() or place.is_symlink():
        if path in pages:
            return True
        place.unlink()
        return False
    left = False
    with os.scandir(place) as entries:
        for entry in list(entries):
            below = f"{path}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                left |= _clean(Path(entry.path), below, pages)
            elif below in pages:
                left = True
            else:
                os.unlink(entry.path)  # noqa: PTH108 - as above
    if not left:
        with suppress(OSError):
            place.rmdir()
    return left


def _merge(ours: Path, built: Path, path: str, pages: Collection[str]) -> None:
    """Put what was set aside in its place; of a page that the engine has built too, the stamped one stays."""
    if not ours.exists() or built.is_symlink():
        return
    if not built.exists():
        ours.rename(built)
    elif ours.is_dir() and built.is_dir():
        for name in sorted(os.listdir(built)):  # noqa: PTH208 - as above
            below = f"{path}/{name}"
            if (ours / name).is_dir() and (built / name).is_dir() and not (built / name).is_symlink():
                _merge(ours / name, built / name, below, pages)
                (built / name).rename(ours / name)
            elif not (ours / name).exists():
                (built / name).rename(ours / name)
        _drop(built)
        ours.rename(built)
    elif ours.is_file() and built.is_file():
        ours.replace(built)


def _drop(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink()
