"""The mirror tree: a listing as a real file at its source's own path, beside the files that it imports or names."""

from __future__ import annotations

import ast
import re
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Protocol

from msgspec import Struct

from rankbook.harness.import_path import ImportPath
from rankbook.languages import by_fence
from rankbook.listing import Listing
from rankbook.syntax import called_imports, plugins_of, syntax_tree

SUFFIXES = {"python": ".py", "pycon": ".pycon", "bash": ".sh", "console": ".console", "json": ".json", "toml": ".toml", "yaml": ".yaml"}
"""Suffix of the file of a hand-written listing, by canonical language."""


_PROGRAMS = (b"#!", b"\x7fELF")
LONGEST = 150
"""Bytes of such a file's name without its suffix."""


class Sources(Protocol):
    """Where a listing finds the other files of its tree: on pages, or in a source tree that the user names."""

    def data(self, path: str) -> bytes | None:
        """Give a file's bytes by its path below the root of the sources, None when nobody has it."""

    def names(self, folder: str) -> list[str]:
        """Give the names of the files of a folder that can be had."""

    def data_in(self, folder: str, *, deep: bool, patterns: Sequence[str] = (), few: bool = False) -> list[str]:
        """Give the paths of the files of a folder of the tree, or of all below it, that can be had, fit a pattern and are no Python.

        With `few` none where there are many.
        """

    def gone_through(self) -> Iterable[str]:
        """Give the folders of the project that `data_in` was asked for, as they stand among the files beside a listing."""

    def is_data(self, path: str) -> bool:
        """Say whether a path is that of a file of the tree that can be had and is no Python."""

    def digest(self, path: str) -> str | None:
        """Give the SHA-256 of a file as a page shows it, None where none does."""

    def compiled_in(self, folder: str) -> Iterable[Path]:
        """Give the extension modules that were built into a folder of the project: they are on no page, as compiled packages are not."""

    def place(self, path: str) -> str:
        """Give where a file lies that was had, from the root of the project: at its own path, or below a tree that the user names."""

    @property
    def import_path(self) -> ImportPath:
        """Folders of the project in which imports are looked up too."""


class Placed(Struct, frozen=True):
    """A listing in its tree."""

    root: Path
    """The tree's root: the listing's working directory."""
    path: str
    """The listing's file, below the root."""
    others: Mapping[str, bytes]
    """Each other file of the tree, by path: what the listing imports and names."""
    modules: Mapping[str, str]
    """SHA-256 of each of these, and of each file that is imported from the project's own folders, by its path from the project's root.

    Empty for a file that would be imported in the place of another one if it were there, and for a folder that the listing goes through.
    """
    pages_first: bool = False
    """Whether imports are looked up in the tree before the project's own folders, because they are not the same."""
    package: str = ""
    """Package that is installed and that the listing is a module of, in the place of the one that is there; empty for none."""


class Mirror:
    """Makes one folder for each listing, so that no listing sees what another wrote; several threads may place listings at once.

    Args:
        folder: an empty folder that the caller removes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0
        self._lock = threading.Lock()

    def place(self, listing: Listing, sources: Sources, beside: Listing | None = None) -> Placed:
        """Write a listing and what it needs of its tree.

        Args:
            listing: what will run.
            sources: where the other files of its tree are.
            beside: the listing of the source that the page is about, when `listing` is another one of that page.

        Returns:
            The tree.
        """
        with self._lock:
            self._count += 1
            root = self.folder / str(self._count)
        path = file_of(listing)
        others, modules, pages_first = _settled(listing, sources, beside)
        package = _package_of(path, sources) if listing.about is not None and not pages_first else ()
        is_installed = bool(package) and sources.import_path.is_installed(package[0])
        for other, data in ((path, listing.data()), *others.items()):
            write(root / other, data)
        for folder in {str(PurePosixPath(each).parent) for each in (path, *others)} if listing.about is not None else ():
            for module in sources.compiled_in("" if folder == "." else folder):
                named = root / folder / module.name
                if not named.exists() and not named.with_name(f"{module.name.partition('.')[0]}.py").exists():  # which the page shows
                    named.symlink_to(module)
        return Placed(root, path, others, modules, pages_first, ".".join(package) if is_installed else "")

    def clear(self) -> None:
        """Remove the folders of all listings."""
        shutil.rmtree(self.folder, ignore_errors=True)


def modules_of(listing: Listing, sources: Sources, beside: Listing | None = None) -> Mapping[str, str]:
    """Give what `Mirror.place` would give as the tree's other files, without writing any."""
    return _settled(listing, sources, beside)[1]


def _settled(listing: Listing, sources: Sources, beside: Listing | None) -> tuple[Mapping[str, bytes], Mapping[str, str], bool]:
    """Give the tree's other files, the hashes of all that is imported, and whether pages go before the project's own folders."""
    known = sources.import_path
    others = surroundings(listing, sources, beside)
    imported = of_folders = _imported_hashes(listing, others, known)
    if known.has_editable:  # which is where it is whatever the pages say
        of_folders = _imported_hashes(listing, others, known, installed=False)
    own = {file_of(listing): listing.data()} if listing.about is not None else {}
    pages_first = bool(known.folders) and (
        any(known.digest(path) != sha256(data).hexdigest() for path, data in (own | others).items())
        or any(sources.digest(path) not in (None, digest) for path, digest in of_folders.items() if path not in own)
    )
    if pages_first:
        others = surroundings(listing, sources, beside, known.below)
    absent = dict.fromkeys((*known.absent(_imports(listing, others), imported), *sources.gone_through()), "")
    modules = absent | imported | {sources.place(path): sha256(data).hexdigest() for path, data in others.items()}
    return others, dict(sorted((path, digest) for path, digest in modules.items() if path != file_of(listing))), pages_first


def _imported_hashes(listing: Listing, others: Mapping[str, bytes], known: ImportPath, *, installed: bool = True) -> dict[str, str]:
    return known.hashes(_imports(listing, others), installed=installed)


def _imports(listing: Listing, others: Mapping[str, bytes]) -> dict[str, bytes]:
    """Give the files of a listing's tree whose imports count."""
    return {file_of(listing): listing.data()} | {path: data for path, data in others.items() if path.endswith(".py")}


def surroundings(
    listing: Listing, sources: Sources, beside: Listing | None = None, starts: tuple[str, ...] | None = None
) -> dict[str, bytes]:
    """Give the files that stand beside a listing in its tree, by path; see `Mirror.place`.

    Args:
        listing: what will run.
        sources: where the other files of its tree are.
        beside: the listing of the source that the page is about.
        starts: see `needed`.
    """
    own = file_of(listing)
    start = listing if listing.about is not None else beside
    if start is None or start.about is None:
        return {}
    path, data = file_of(start), start.data()
    found = {} if start is listing else {path: data}
    for other in needed(path, data, sources, starts):
        known = sources.data(other)
        if known is not None:
            found.setdefault(other, known)
    found.pop(own, None)
    return found


def write(path: Path, data: bytes) -> None:
    """Write a file and the folders above it; what begins as a program does can be executed: no page says whether its source can be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if data.startswith(_PROGRAMS):
        path.chmod(0o755)


def file_of(listing: Listing) -> str:
    """Give the path of a listing's file: its source's own, or one made of the page's and the listing's names."""
    if listing.about is not None and is_inside(listing.about.source):
        return listing.about.source
    language = by_fence(listing.language)
    suffix = SUFFIXES.get(language.name if language else "", ".txt")
    name = "_".join(re.sub(r"\W+", "_", part) for part in (PurePosixPath(listing.page).stem, listing.name))
    return _short(name) + suffix


def _short(name: str) -> str:
    """Cut a name to what a file system takes: 255 bytes, of which pytest and Python want some for the names that they make of it."""
    return name.encode()[:LONGEST].decode(errors="ignore")


def is_inside(path: str) -> bool:
    """Say whether a path stays below the folder that it starts from."""
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and "\0" not in path


def needed(path: str, data: bytes, sources: Sources, starts: tuple[str, ...] | None = None) -> Iterator[str]:
    """Yield the files of the tree that a Python file needs: imported modules in turn, packages above, conftest files, files that it names.

    Args:
        path: of the file.
        data: what it holds.
        sources: where the others are.
        starts: further folders of the tree in which imports are looked up; None lets a module of a package that is installed stand in
            that one, so that it needs no more than the files above it and those that it names.
    """
    package = _package_of(path, sources)[:1]
    stands_in = starts is None and bool(package) and sources.import_path.is_installed(package[0])
    packages = [folder for folder in PurePosixPath(path).parents if folder.name and sources.data(f"{folder}/__init__.py") is not None]
    above = tuple(folder.name for folder in packages if folder.parent not in packages)
    seen, waiting = {path}, [(path, data)]
    while waiting:
        current, text = waiting.pop()
        imported = () if stands_in else _imported(current, text, sources.import_path, starts or (), above)
        named = (*imported, *_named(current, text, sources))
        listed = frozenset(_listed(current, text, sources))
        for candidate in (*_above(current), *named, *sorted(listed)):
            if candidate in seen or not is_inside(candidate):
                continue
            found = sources.data(candidate)
            if found is not None:
                seen.add(candidate)
                yield candidate
                if candidate not in listed:  # that is data, of which there may be much
                    waiting.append((candidate, found))


def _package_of(path: str, sources: Sources) -> tuple[str, ...]:
    """Give the names of the packages that a file lies in, the outermost first."""
    folder = PurePosixPath(path).parent
    names: tuple[str, ...] = ()
    while folder.name and sources.data(str(folder / "__init__.py")) is not None:
        folder, names = folder.parent, (folder.name, *names)
    return names


def _above(path: str) -> Iterator[str]:
    for folder in PurePosixPath(path).parents:
        yield str(folder / "conftest.py")
        if str(folder) != ".":
            yield str(folder / "__init__.py")


def _imported(path: str, data: bytes, known: ImportPath, starts: tuple[str, ...], own: tuple[str, ...]) -> Iterator[str]:
    """Yield the files that imports, calls among them, may mean: in the folder, and above it for what is not installed, or is its own."""
    try:
        nodes = list(ast.walk(syntax_tree(data)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    folders = [str(folder) for folder in PurePosixPath(path).parents]
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _modules([*_starts(folders, alias.name, known, own), *starts], alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            places = folders[node.level - 1 : node.level] if node.level else [*_starts(folders, base, known, own), *starts]
            for name in (base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names)):
                yield from _modules(places, name) if name else ()
        else:
            for level, name in (*((0, plugin) for plugin in plugins_of(node)), *called_imports(node)):
                yield from _modules(folders[level - 1 : level] if level else [*_starts(folders, name, known, own), *starts], name)


def _starts(folders: list[str], name: str, known: ImportPath, own: tuple[str, ...]) -> list[str]:
    top = name.partition(".")[0]
    return folders[:1] if top not in own and known.is_installed(top) else folders


def _modules(folders: list[str], name: str) -> Iterator[str]:
    parts = name.split(".")
    for folder in folders:
        for end in range(1, len(parts) + 1):
            stem = PurePosixPath(folder, *parts[:end])
            yield f"{stem}.py"
            yield f"{stem}/__init__.py"


_BELOW = re.compile(rb"(?<![\w./:-])(?:[\w-]+/){1,6}[\w-]+(?:\.[\w-]+)+")
"""A path in quotes or prose that goes down from where it stands: `bin/script.py`, but no part of an address or of a longer path."""


def _named(path: str, data: bytes, sources: Sources) -> Iterator[str]:
    """Yield the files that a file names, in its own folder or by their path from there: scripts that it starts, data that it reads."""
    folder = str(PurePosixPath(path).parent)
    for name in sources.names("" if folder == "." else folder):
        if name.encode() in data:
            yield str(PurePosixPath(folder, name))
    for found in sorted(set(_BELOW.findall(data))):
        yield str(PurePosixPath(folder, found.decode()))


_LISTING = re.compile(rb"\b(?<!ast\.)(?:i?glob|rglob|iterdir|listdir|scandir|walk|fwalk)\(")
"""A call that lists what is in a folder."""
_LOOKING = re.compile(rb"\b(?:exists|lexists|is_file|isfile)\(")
"""A call that looks whether a file is there."""
_PATH = re.compile(rb"""["'/](?:\./)?([\w-][\w.-]*(?:/[\w-][\w.-]*)*)[/"']""")
"""A string, or a part of one, that may name a folder or a file; what stands before it may lead upwards."""
_GLOB = re.compile(rb"""\bi?glob\(\s*r?["']([^"'/]+)["']""")
"""A call that looks for files of one folder by a pattern."""
_UPWARDS = re.compile(
    rb"""\.parents\b|\.parent\s*\.parent\b|dirname\(.*dirname\(|["'/]\.\.|\bpardir\b|cwd\w*\(|\bglob\.i?glob\(|\bPath\((?:["']\.["'])?\)"""
)
"""A way to a folder above the file's own, or to the one where it runs."""
_ON_A_WAY = re.compile(
    rb"""^.*(?:/\s*["']|["']\s*/|\b(?:Path|PurePath|with_name|i?glob|rglob|listdir|scandir|f?walk|join(?:path)?|exists|lexists|is_?file|is_?dir)\().*$""",
    re.MULTILINE,
)
"""A line on which such a name is part of a path, and not just any word."""
_LONGEST_PATH = 255
"""Bytes of such a name."""


def _listed(path: str, data: bytes, sources: Sources) -> Iterator[str]:
    """Yield data that a file finds by listing folders or by looking for files: that of its own folder, and what it names.

    That is all below folders that it names, and files, from its own folder or, as parts of paths, from one above it: there is the root,
    where it runs, and tests go up there by many ways. Of a file that lists no folder that is what few files there are below a folder on a
    path, and of many those that it names. A folder in which it lies itself is only on the way to others; of its files count
    those that fit a pattern of the file, where that goes upwards. Without them a test that goes through what it finds would go through
    nothing, and pass.
    """
    lists = _LISTING.search(data) is not None
    on_ways = _names_in(b"\n".join(_ON_A_WAY.findall(data)))
    if not (lists or on_ways or _LOOKING.search(data)):
        return
    folders = ["" if str(folder) == "." else f"{folder}/" for folder in PurePosixPath(path).parents]
    if lists:
        yield from sources.data_in(folders[0].removesuffix("/"), deep=False)
        patterns = [pattern.decode(errors="replace") for pattern in _GLOB.findall(data)] if _UPWARDS.search(data) else []
        for folder in folders[1:] if patterns else ():
            yield from sources.data_in(folder.removesuffix("/"), deep=False, patterns=patterns)
    names = _names_in(data)
    ends = sorted({name.rpartition("/")[2] for name in names})
    for named in sorted(names):
        for place in (folder + named for folder in (folders if named in on_ways else folders[:1])):
            if f"{place}/" not in folders:
                if lists:
                    yield from sources.data_in(place, deep=True)
                elif named in on_ways:
                    yield from sources.data_in(place, deep=True, few=True) or sources.data_in(place, deep=True, patterns=ends, few=True)
                yield from (f"{place}/{name}" for name in sources.names(place) if name in ends) if named in on_ways else ()
            if sources.is_data(place):
                yield place


def _names_in(data: bytes) -> set[str]:
    return {found.decode() for found in _PATH.findall(data) if len(found) <= _LONGEST_PATH}
