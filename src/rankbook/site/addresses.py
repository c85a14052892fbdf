"""Where pages stand on the site, and how a link between two of them is written there."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from urllib.parse import quote, unquote

from msgspec import Struct

_LINE = re.compile(r"__codelineno-source-([0-9]{1,9})\Z")
"""Anchor of a line where an engine has made the listing."""
_OWN_LINE = re.compile(r"L([0-9]{1,9})\Z")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:|//|[/?\\]", re.IGNORECASE)


class Place(Struct, frozen=True):
    """Where a link leads to."""

    path: str
    """Below the folder of all pages; empty for the page that the link stands on."""
    href: str
    """The link as it is written on the site."""
    line: int = 0
    """The line of the listing, or 0."""
    anchor: str = ""
    """Any other place on the page."""


class _Files(dict[str, str]):
    """Files of the site by what they hold, named when they are first asked for: a build asks for each several times.

    Args:
        directories: whether each page is the index of a folder of its own.
    """

    def __init__(self, *, directories: bool) -> None:
        super().__init__()
        self._directories = directories

    def __missing__(self, path: str) -> str:
        is_plain = not self._directories and path.endswith(".md") and not path.endswith("README.md")
        name = self[path] = f"{path[:-3]}.html" if is_plain else _file(path, self._directories)
        return name


_FILES = (_Files(directories=False), _Files(directories=True))


class Addresses(Struct, frozen=True):
    """How the engine names what it builds."""

    directories: bool = False
    """Whether each page is the index of a folder of its own, as MkDocs does unless it is told otherwise."""

    def file(self, path: str) -> str:
        """Name the file of the site that holds a page, or anything else below the folder of all pages."""
        return _FILES[self.directories][path]

    def files(self, paths: Iterable[str]) -> Iterator[str]:
        """Name the files of many pages, in the same order."""
        return map(_FILES[self.directories].__getitem__, paths)

    def url(self, path: str) -> str:
        """Give the address of a page below that of the site."""
        name = self.file(path)
        return quote(name.removesuffix("index.html") if self.directories and posixpath.basename(name) == "index.html" else name)

    def resolve(self, page: str, link: str) -> Place | None:
        """Tell where a link on a page leads to; None for one that leads out of the book.

        Args:
            page: path of the page, below the folder of all pages.
            link: as it is written in the Markdown.
        """
        return _placed(_folder(page), self._depth(page), link, self.directories)

    def between(self, page: str, other: str) -> str:
        """Give the address of another page as seen from one."""
        return quote(posixpath.relpath(self.file(other), posixpath.dirname(self.file(page)) or "."))

    def _depth(self, page: str) -> str:
        return posixpath.dirname(self.file(page)) if self.directories else ""


@lru_cache(maxsize=1024)
def _folder(path: str) -> str:
    return posixpath.dirname(path)


@lru_cache(maxsize=8192)
def _placed(folder: str, place: str, link: str, directories: bool) -> Place | None:  # noqa: FBT001 - pages of a folder have most links in common
    if _SCHEME.match(link):
        return None
    address, _, anchor = link.partition("#")
    path, href = _resolved(folder, place, address, directories) if address else ("", "")
    own = (_LINE.match(anchor) or _OWN_LINE.match(anchor)) if anchor else None
    if own:
        return Place(path, f"{href}#L{own[1]}", line=int(own[1]))
    return Place(path, f"{href}#{anchor}" if anchor else href, anchor=unquote(anchor))


@lru_cache(maxsize=65536)
def _file(path: str, directories: bool) -> str:  # noqa: FBT001 - it is the key of what is known
    folder, name = posixpath.split(path)
    stem, suffix = posixpath.splitext(name)
    if suffix != ".md":
        return path
    stem = "index" if stem == "README" else stem
    return posixpath.join(folder, stem, "index.html") if directories and stem != "index" else posixpath.join(folder, f"{stem}.html")


@lru_cache(maxsize=65536)
def _resolved(folder: str, place: str, address: str, directories: bool) -> tuple[str, str]:  # noqa: FBT001 - as above
    """Give the path that an address names, and the address on the site."""
    path = posixpath.normpath(posixpath.join(folder, unquote(address)))
    if not directories and address.endswith(".md") and not address.endswith("README.md"):
        return path, f"{address[:-3]}.html"
    target = _file(path, directories)
    if directories:
        relative = posixpath.relpath(target, place or ".")
        return path, quote(f"{relative.removesuffix('index.html')}" or "./") if posixpath.basename(target) == "index.html" else quote(
            relative
        )
    return path, quote(posixpath.relpath(target, folder or "."))
