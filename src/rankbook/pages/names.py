"""Names of the pages, and the links between them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable
from functools import cached_property, lru_cache

from markupsafe import Markup
from msgspec import Struct, field

from rankbook.anchors import slug, unique
from rankbook.model import PACKAGES
from rankbook.pages.contents import page_of_suite
from rankbook.pages.fence import line_anchor
from rankbook.pages.text import code, is_plain, link_title, markdown, text, url

FILE_PAGES = {"file": "_docs.md", "keywords": "_kw.md"}
"""Kind of page of a file: what its name adds to the file's name."""
FOLDER_PAGES = {"index": "index.md", "folder": "doc.md", "subtree": "sub.md"}
"""Kind of page of a folder: its name in the folder."""

_SUITE = re.compile(r"suite-[^/]+\.md|objects\.inv|orphaned-notes\.md")
"""Names of what stands at the root about the whole suite."""
PICTURE = "imports.svg"
"""Name of the picture of a folder's imports, in the folder."""
_OF_FOLDERS = frozenset({*FOLDER_PAGES.values(), PICTURE})


def page_of_file(kind: str, path: str) -> str:
    """Name the page of a file, below the folder of all pages."""
    return path + FILE_PAGES[kind]


def page_of_folder(kind: str, path: str) -> str:
    """Name the page of a folder, below the folder of all pages."""
    return posixpath.join(path, FOLDER_PAGES[kind])


def pages_of_file(path: str) -> list[str]:
    """Name the pages of a file."""
    return [page_of_file(kind, path) for kind in FILE_PAGES]


def pages_of_folder(path: str) -> list[str]:
    """Name what a folder has: its pages, and the picture of its imports."""
    return [posixpath.join(path, name) for name in (*FOLDER_PAGES.values(), PICTURE)]


def owner(page: str) -> tuple[str, str]:
    """Tell what a page is about: `file` or `folder`, and its path."""
    for suffix in FILE_PAGES.values():
        if page.endswith(suffix):
            return "file", page.removesuffix(suffix)
    return "folder", posixpath.dirname(page)


def clashing(files: Iterable[str]) -> list[str]:
    """Name the folders that are called like what has to stand beside them: a page, on disk or in a site, or the picture of imports.

    Args:
        files: the sources.
    """
    known = frozenset(files)
    folders: set[str] = set()
    waiting = {posixpath.dirname(path) for path in known} - {""}
    while waiting:
        folders |= waiting
        waiting = {posixpath.dirname(path) for path in waiting} - folders - {""}
    return sorted(path for path in folders if _is_taken(path, known))


def _is_taken(folder: str, files: Collection[str]) -> bool:
    """Whether a page or a picture has the place of a folder."""
    name = posixpath.basename(folder)
    page = f"{folder.removesuffix('.html')}.md" if name.endswith(".html") else folder
    if posixpath.basename(page) in _OF_FOLDERS or _SUITE.fullmatch(page):
        return True
    return any(page.endswith(suffix) and page.removesuffix(suffix) in files for suffix in FILE_PAGES.values())


def share_address(files: Iterable[str], folders: Iterable[str]) -> tuple[str, ...]:
    """Name two pages that a site with directory addresses gives the same one: `x/doc.md` and `x/doc/index.md`; empty without any."""
    folders = [path for path in folders if path]
    pages = {page for path in files for page in pages_of_file(path)}
    pages |= {page_of_folder(kind, posixpath.dirname(path)) for path in folders for kind in FOLDER_PAGES}
    return next(((f"{path}.md", page_of_folder("index", path)) for path in folders if f"{path}.md" in pages), ())


class Links(Struct, frozen=True, dict=True):
    """The links of one page to others: addresses relative to it, ready for a template."""

    page: str
    """The page that they stand on."""
    source: str
    """The file or folder that the page is about."""
    unlisted: frozenset[str]
    """Sources whose pages have no listing, so that no line of them can be linked to."""
    _lines: dict[str, Callable[[int], str]] = field(default_factory=dict)

    def file(self, path: str, line: int = 0) -> Markup:
        """Address of a file's page, or of a line of its listing."""
        return markdown(self._file(path, line))

    def keywords(self, path: str) -> Markup:
        """Address of a file's keyword page."""
        return self._to(page_of_file("keywords", path))

    def index(self, path: str) -> Markup:
        """Address of a folder's index."""
        return self._to(page_of_folder("index", path))

    def folder(self, path: str) -> Markup:
        """Address of a folder's documentation."""
        return self._to(page_of_folder("folder", path))

    def subtree(self, path: str) -> Markup:
        """Address of the keyword index of a folder and all below it."""
        return self._to(page_of_folder("subtree", path))

    def suite(self, kind: str) -> Markup:
        """Address of a page about the whole suite."""
        return self._to(page_of_suite(kind))

    def heading(self, anchor: str, title: str = "") -> Markup:
        """Address of a heading of the page itself, below a title that may read like it."""
        return markdown(f"#{unique(anchor, {slug(title)})}")

    def line(self, line: int, path: str = "") -> Markup:
        """Link to a line, labelled by it and, where it is another file's, by that file's name."""
        return markdown(self.to_lines(path)(line))

    def to_lines(self, path: str = "") -> Callable[[int], str]:
        """Give what links to the lines of one file as `line` does, for rows that do so again and again."""
        return self._lines.get(path) or self._lines.setdefault(path, self._to_lines(path))

    def labelled(self, label: Markup, path: str, line: int = 0, title: str = "") -> Markup:
        """Link to a line under a label, with what pointing at it shows; a file of a package has no page, so that the label stands alone."""
        if path.startswith(PACKAGES):
            return label
        return markdown(f"[{label}]({self._file(path, line)}{' ' + link_title(title) if title else ''})")

    def name(self, path: str, line: int = 0) -> Markup:
        """Link to a file's page, or to a line of its listing, labelled by the file's path; a file of a package has no page."""
        if path.startswith(PACKAGES):
            imported = path.removeprefix(PACKAGES)
            return code(f"{imported}:{line}" if line else imported)
        return markdown(f"[{code(path)}]({self._file(path, line)})")

    def trail(self, folder: str, root: str) -> Markup:
        """Link to the folders on the way to a page, the root first, each followed by a slash.

        Args:
            folder: the last folder on the way.
            root: title of the root folder.
        """
        return _trail(folder, root, self._folder)

    @cached_property
    def _folder(self) -> str:
        return posixpath.dirname(self.page)

    def _file(self, path: str, line: int) -> str:
        anchor = f"#{line_anchor(line)}" if line > 0 and path not in self.unlisted else ""
        target = page_of_file("file", path)
        return anchor if anchor and target == self.page else self._to(target) + anchor

    def _to(self, target: str) -> Markup:
        return _address(target, self._folder)

    def _to_lines(self, path: str) -> Callable[[int], str]:
        target = path or self.source
        label = _own_line if target == self.source else _label(target)
        if target in self.unlisted or target.startswith(PACKAGES):
            address = "" if label is _own_line or target.startswith(PACKAGES) else self._file(target, 0)
            return (lambda line: f"[{label(line)}]({address})") if address else label
        page, listing = self._file(target, 0), self._file(target, 1).removesuffix("1")
        if label is _own_line:
            return lambda line: f"[line {line}]({listing}{line})" if line > 0 else f"[line {line}]({page})"
        return lambda line: f"[{label(line)}]({listing}{line})" if line > 0 else f"[{label(line)}]({page})"


def _own_line(line: int) -> str:
    return f"line {line}"


def _label(path: str) -> Callable[[int], str]:
    """Give what names the lines of a file: by the file's name, and one of a package by its path as an import finds it."""
    name = path.removeprefix(PACKAGES) if path.startswith(PACKAGES) else path.rpartition("/")[2]
    return (lambda line: f"`{name}:{line}`") if is_plain(name) else (lambda line: code(f"{name}:{line}"))


@lru_cache(maxsize=1024)
def _trail(folder: str, root: str, here: str) -> Markup:
    steps = folder.split("/") if folder else []
    labels = {"": root} | {"/".join(steps[: count + 1]): step for count, step in enumerate(steps)}
    return markdown("".join(f"[{text(label)}]({_address(page_of_folder('index', path), here)}) / " for path, label in labels.items()))


@lru_cache(maxsize=16384)
def _address(target: str, folder: str) -> Markup:
    """Give the address of a page as seen from a folder; most are asked for again and again."""
    there, here = target.split("/"), folder.split("/") if folder else []
    shared = next((count for count, (one, other) in enumerate(zip(there[:-1], here, strict=False)) if one != other), None)
    shared = min(len(there) - 1, len(here)) if shared is None else shared
    return url("../" * (len(here) - shared) + "/".join(there[shared:]))
