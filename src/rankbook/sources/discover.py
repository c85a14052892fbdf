"""Which files belong to the book."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from rankbook import front_matter, git, staged
from rankbook.collecting import rules_of
from rankbook.config import Settings, book_at, real, told_at
from rankbook.errors import SourceError
from rankbook.globs import matcher
from rankbook.languages import by_path
from rankbook.sources.packages import INSTALLED

_MADE = frozenset({"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".rankbook"})
"""Folders that programs fill, this one among them; they hold no sources, whatever Git says."""
_LEFT_OUT = _MADE | {
    ".git", ".hg", ".svn", ".bzr", ".jj", ".tox", ".nox", ".venv", ".ipynb_checkpoints", ".eggs", "node_modules",
}  # fmt: skip
"""Folders that hold no sources, where Git does not say so."""
_OF_EDITORS = re.compile(r"\..*\.(?:sw[a-p]|kate-swp)|\.#.*|#.*#|.*~|.*___jb_(?:tmp|old)___|\.goutputstream-\w+|\.DS_Store", re.DOTALL)
"""What Vim, Emacs and others put beside a file while somebody edits it."""
_MAYBE_GENERATED = (".md", ".svg", "objects.inv")
"""Ends of the names of generated files, in small letters."""
_PAGE = re.compile(r"(?:_docs|_kw|(?:^|/)(?:index|doc|sub|suite-[^/]+))\.md$|\.svg$|objects\.inv$", re.IGNORECASE)
"""How generated files are called."""
_PICTURE = b"<!-- rankbook: generated -->"
"""What a generated picture says."""
_LONGEST = 255 - len("_docs.html")
"""Bytes that the name of a source may have: its pages have longer ones, and file systems end at 255."""
_OF_SITES = frozenset({"text", "markdown", "rst", "html", "svg", "xml", "css", "javascript", "json", "yaml", "configuration"})
"""Languages of what may stand among pages without being a source."""
_HEAD = 2048
"""Bytes of a Markdown file in which a generated page says that it is one."""


class Found(Struct, frozen=True):
    """The files of the book."""

    paths: tuple[str, ...]
    """Below the root, with `/`, sorted."""
    warnings: tuple[str, ...] = ()
    """What was left out against expectation, a sentence each."""
    surroundings: tuple[str, ...] = ()
    """What else decides on the paths: folders, files that say what Git ignores, pages that are no sources; below the root or absolute."""


def discover(settings: Settings) -> Found:
    """Find the files that the settings name as sources.

    Args:
        settings: root, sources, globs and the folder of the generated pages.

    Returns:
        Regular files below the root that Git does not ignore, that the globs take, and that rankbook did not write; with tests among them
        also the `conftest.py` files in the folders above, for their fixtures and hooks decide which tests there are and what those need.

    Raises:
        SourceError: no source is named, or one does not exist or lies outside the root.
    """
    if not settings.sources:
        raise SourceError("no sources are named", where=settings.root, right="name files or folders, or set sources in [tool.rankbook]")
    root = settings.root.resolve()
    out = settings.below_root(settings.out)
    _check_folders(settings, root, out)
    warnings: list[str] = []
    search = _Search(root, warnings, is_staged=settings.staged)
    _check_sources(settings, root)
    candidates = {path for source in settings.sources for path in search.below(_relative(root, source))}
    above = _conftests_above(root, settings.sources) if any(map(rules_of(root).is_test_file, candidates)) else []
    candidates.update(path for path in above if _counts(root, path) for path in search.below(path))
    taken, left = matcher(settings.include), matcher(settings.exclude)
    own = [path for path in sorted(candidates) if not _BEING_WRITTEN.search(path)]
    wanted = [path for path in own if (not settings.include or taken(path)) and not left(path)]
    _check_among(root, out, wanted)
    check = _Check(root, out, warnings)
    paths = tuple(path for path in wanted if check.is_source(path))
    if not paths:
        why = "the patterns of include and exclude leave none" if candidates and not wanted else "no file that is named can be one"
        warnings.append(f"the book has no source: {why}")
    place = told_at(settings, "package_path")
    at = f"{place[0].relative_to(settings.root)}:{place[1]}: " if place else ""
    warnings += [
        f"{at}the setting package-path names '{path}', which is no folder"
        for path in settings.package_path
        if path != INSTALLED and not settings.below_root(path).is_dir()
    ]
    surroundings = _surroundings(root, settings.sources, candidates, out, search)
    ignoring = [path.removesuffix(_CONFTEST) + ".gitignore" for path in above] + list(_git_rules(root) if above else ())
    around = dict.fromkeys((*surroundings, *above, *ignoring, *check.pages))
    return Found(paths, tuple(dict.fromkeys(warnings)), tuple(around))


def _conftests_above(root: Path, sources: Iterable[str]) -> list[str]:
    """Name the files outside of the sources in which pytest looks for fixtures and hooks of the tests, whether or not they are there."""
    named = [_relative(root, source) for source in sources]
    folders = {folder for path in named if path for folder in (*_above(path), "")}
    return sorted({_joined(folder, _CONFTEST) for folder in folders})


def _counts(root: Path, path: str) -> bool:
    """Tell whether a file is there that Git does not ignore."""
    file = root / path
    if not file.is_file():
        return False
    ignored = git.asked(file.parent, "check-ignore", "-q", "--", file.name)
    return ignored is None or ignored.returncode != 0


_CONFTEST = "conftest.py"
_BEING_WRITTEN = re.compile(r"(?:^|/)\.rankbook-[^/]*\.tmp\Z")
"""What a run of ours leaves that is killed while it writes."""


def _check_folders(settings: Settings, root: Path, out: Path) -> None:
    """Make sure that the pages have a folder, and that no source lies in it."""
    right = "name a folder with --out, or in the setting `out`"
    if out.exists() and not out.is_dir():
        raise SourceError("the folder of the pages is a file", where=out, right=right)
    if root != out and root.is_relative_to(out):
        raise SourceError("the folder of the pages would hold the whole project", where=out, right=right)
    if ".git" in out.parts:
        raise SourceError("the folder of the pages would lie in what Git keeps", where=out, right=right)
    named = Path(os.path.normpath(root / settings.out))
    if not named.is_relative_to(root) and not Path(settings.out).is_absolute():
        right = "name a folder below the root, or write the whole path where it is meant to lie elsewhere"
        raise SourceError("the folder of the pages lies outside of the project", where=out, right=right)
    if named.is_relative_to(root) and not out.is_relative_to(root):
        right = f"name that folder itself with --out, or put a folder in the place of {named.relative_to(root).as_posix()}"
        raise SourceError("a link leads from the folder of the pages out of the project", where=out, right=right)
    for source in settings.sources:
        if real(root / source).is_relative_to(out) and not root.is_relative_to(out):
            raise SourceError(f"the source '{source}' lies in the folder of the pages", where=out, right="name another folder with --out")
    _check_owner(root, out)


def _check_owner(root: Path, out: Path) -> None:
    """Make sure that the folder of the pages is no other project's."""
    for folder in out.parents:
        if root.is_relative_to(folder):
            break
        other = book_at(folder)
        if other is not None and other.below_root(other.out) == out:
            right = "name a folder with --out, or in the setting `out`"
            raise SourceError(f"the folder of the pages is that of the project in {folder}", where=out, right=right)


def _check_among(root: Path, out: Path, paths: list[str]) -> None:
    """Make sure that a folder which is to become that of the pages holds nothing that would be a source without them."""
    if root.is_relative_to(out) or not out.is_relative_to(root) or _is_generated(out / "index.md"):
        return
    start = f"{out.relative_to(root).as_posix()}/"
    for path in paths:
        if path.startswith(start) and not path.rpartition("/")[2].startswith(".") and by_path(path).name not in _OF_SITES:
            right = "name another folder with --out, or in the setting `out`"
            raise SourceError(f"the source '{path}' lies in the folder of the pages", where=out, right=right)


def _check_sources(settings: Settings, root: Path) -> None:
    """Make sure that each source is there, below the root."""
    for source in settings.sources:
        path = Path(os.path.normpath(root / source))
        is_below = path.is_relative_to(root) and real(path).is_relative_to(root)
        if not (path.exists() and is_below):
            what = f"the source '{source}' {'lies outside the root' if path.exists() else 'does not exist'}"
            where, line = told_at(settings, "sources") or (root, None)
            raise SourceError(what, where=where, line=line, right="name a file or a folder below the root")


def _relative(root: Path, source: str) -> str:
    """Give the path of a source below the root; empty for the root itself."""
    relative = Path(os.path.normpath(root / source)).relative_to(root).as_posix()
    return "" if relative == "." else relative


class _Search:
    """Finds the files below folders: each repository says which of its own files it ignores.

    Args:
        root: folder that paths start from.
        warnings: takes a sentence for each repository that Git cannot read.
        is_staged: whether only files of Git's index count.
    """

    def __init__(self, root: Path, warnings: list[str], *, is_staged: bool) -> None:
        self.root = root
        self.warnings = warnings
        self.is_staged = is_staged
        self.asked: list[str] = []
        """Folders below which Git was asked for the files, each of another repository or source."""
        self.has_say: dict[str, bool] = {}
        """Of each folder that was searched on its own, whether Git has named its files."""

    def below(self, source: str) -> Iterator[str]:
        """Give the file that a source is, or those in its folder; of what Git tracks also what is not there."""
        if not (self.root / source).is_dir():
            if not self.is_staged or staged.files(self.root, source):
                yield source
            return
        listed = self._git_files(source)
        self.has_say[source] = listed is not None
        if listed is None:
            yield from self._walk(source)
            return
        folders = []
        for path in listed:
            if _is_folder(f"{self.root}/{path}"):
                folders.append(path)
            else:
                yield path
        # Git lists a submodule, or a repository within, as its folder; of a file that has become a folder it lists the files, too.
        around = {folder for path in listed for folder in _above(path)} if folders else set()
        for folder in folders:
            if folder in around:
                continue
            if _is_repository(self.root / folder):
                yield from self.below(folder)
            else:
                self.has_say[folder] = False
                yield from self._walk(folder)

    def _git_files(self, source: str) -> list[str] | None:
        """List what Git tracks or would track; None where Git has no say."""
        folder = self.root / source
        if self.is_staged:
            self.asked.append(source)
            return [*dict.fromkeys(_joined(source, name) for name in staged.files(folder) if not _is_made(name))]
        if not any(map(_is_repository, (folder, *folder.parents))):
            return None
        self.asked.append(source)
        if _repository(folder) is None:  # the top of a repository is not ignored by itself
            ignored = git.asked(folder, "check-ignore", "-q", "--", ".")
            if ignored is not None and ignored.returncode == 0:
                return None
        listing = git.asked(folder, "ls-files", "-co", "--exclude-standard", "-z", "--", ".")
        if listing is None or listing.returncode != 0:
            why = "git is not installed" if listing is None else os.fsdecode(listing.stderr).strip().partition("\n")[0]
            self.warnings.append(f"Git could not list the files of {source or 'the root'} ({why}), so ignored files are not left out")
            return None
        return [*dict.fromkeys(_joined(source, name.rstrip("/")) for name in _names(listing) if not _is_made(name))]

    def _walk(self, source: str) -> Iterator[str]:
        """Give all files below a folder of which Git says nothing, and what the repositories within say of theirs."""
        for place, folders, files in os.walk(self.root / source):
            below = Path(place).relative_to(self.root).as_posix()
            below = "" if below == "." else below
            if below != source and (".git" in folders or ".git" in files):
                folders.clear()
                yield from self.below(below)
                continue
            folders[:] = [name for name in folders if name not in _LEFT_OUT]
            yield from (_joined(below, name) for name in files if name != ".git" and not _is_made(name))


def _is_made(path: str) -> bool:
    """Tell whether a file lies in a folder that a program fills, or is what an editor puts beside the one that it has open."""
    *folders, name = path.split("/")
    return not _MADE.isdisjoint(folders) or _OF_EDITORS.fullmatch(name) is not None


def _is_repository(folder: Path) -> bool:
    """Tell whether a folder is the top of a working tree: of a submodule and a linked one, `.git` is a file."""
    return (folder / ".git").exists()


def _repository(folder: Path) -> Path | None:
    """Find what Git keeps of the working tree that a folder is the top of; None where it is no top, or Git has to be asked."""
    own = folder / ".git"
    if own.is_file():
        try:
            word, _, place = os.fsdecode(own.read_bytes()).partition(": ")
        except OSError:
            return None
        own = folder / place.rstrip("\r\n") if word == "gitdir" else own
    return own if (own / "HEAD").is_file() else None


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _names(listing: subprocess.CompletedProcess[bytes]) -> Iterator[str]:
    return (os.fsdecode(name) for name in listing.stdout.split(b"\0") if name)


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _surroundings(root: Path, sources: tuple[str, ...], files: set[str], out: Path, search: _Search) -> list[str]:
    """Name the folders in which a file may appear, and the files by which Git may ignore it."""
    folders = {folder for path in files for folder in _above(path)} | {_relative(root, source) or "." for source in sources}
    known = folders | search.has_say.keys()
    found: set[str] = set()
    waiting = [folder for folder in folders if (root / folder).is_dir()]
    rules: list[str] = []
    while waiting:
        unknown: set[str] = set()
        while waiting:
            folder = waiting.pop()
            if folder in found:
                continue
            found.add(folder)
            with os.scandir(root / folder) as entries:
                for entry in entries:
                    path = entry.name if folder == "." else f"{folder}/{entry.name}"
                    if entry.name == ".gitignore":
                        rules.append(path)
                    elif entry.is_dir(follow_symlinks=False) and not (entry.name in _LEFT_OUT or root / path == out):
                        (waiting.append if path in known else unknown.add)(path)
        # Git is asked once for all the folders without a source that are seen from those before.
        waiting = [*(unknown - _ignored(root, unknown, search.has_say))]
    told = {path for folder in dict.fromkeys(search.asked) for path in _git_rules(root / folder)}
    return [*sorted(found), *sorted(rules), *sorted(told)]


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _ignored(root: Path, folders: set[str], has_say: dict[str, bool]) -> set[str]:
    """Ask the repository of each folder whether it ignores it."""
    asked: dict[str, list[str]] = {}
    for folder in folders:
        searched = next((each for each in (*_above(folder), "") if each in has_say), None)
        if searched is not None and has_say[searched]:
            asked.setdefault(searched, []).append(folder[len(searched) :].lstrip("/"))
    ignored: set[str] = set()
    for searched, names in asked.items():
        given = b"".join(b"%b\0" % os.fsencode(name) for name in names)
        told = git.asked(root / searched, "check-ignore", "-z", "--stdin", given=given)
        ignored.update(_joined(searched, name) for name in (_names(told) if told is not None else ()))
    return ignored


def _git_rules(folder: Path) -> Iterator[str]:
    """Name the files by which Git ignores files in a folder and below, besides those that lie there."""
    own = _repository(folder)
    if own is not None:
        common = own / "commondir"
        shared = own / os.fsdecode(common.read_bytes()).strip() if common.is_file() else own  # of a linked working tree
        yield from (os.path.normpath(own / "index"), os.path.normpath(shared / "info/exclude"))
        return
    answer = git.asked(
        folder, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-path", "index", "--git-path", "info/exclude"
    )
    if answer is None or answer.returncode != 0:
        return
    top, *files = os.fsdecode(answer.stdout).splitlines()
    yield from files
    above = [parent for parent in folder.parents if parent.is_relative_to(top)]
    yield from (f"{parent}/.gitignore" for parent in above)


class _Check:
    """Tells which files are sources."""

    def __init__(self, root: Path, out: Path, warnings: list[str]) -> None:
        self.root = root
        self.out = out
        self.warnings = warnings
        self.pages: list[str] = []
        """Generated pages, which are no sources for as long as they stay so."""
        self._plain: dict[str, bool] = {}
        self._start = os.path.join(root, "")  # noqa: PTH118 - a text that paths are added to

    def is_source(self, path: str) -> bool:
        try:
            name = path.encode().rpartition(b"/")[2]
        except UnicodeEncodeError:
            self.warnings.append(f"{os.fsencode(path).decode(errors='backslashreplace')} is left out: its name is not UTF-8")
            return False
        if len(name) > _LONGEST:
            self.warnings.append(f"{path} is left out: its name has {len(name)} bytes, and pages can be named after at most {_LONGEST}")
            return False
        try:
            if not self._is_regular(path):
                return False
        except OSError as error:
            self.warnings.append(f"{path} is left out: {error.strerror}")
            return False
        if path.lower().endswith(_MAYBE_GENERATED) and _is_generated(self.root / path):
            self.pages.append(path)
            if not _PAGE.search(path):
                what = "its head says that it is a page of a book, and it is called like none"
                self.warnings.append(f"{path} is left out: {what}; take that out of it, or leave it out by the setting exclude")
            return False
        return True

    def _is_regular(self, path: str) -> bool:
        folder = path.rpartition("/")[0]
        if folder not in self._plain:
            # No link on the way, and not inside the folder of the pages: then what a file is, it says itself.
            place = (self.root / folder).resolve()
            self._plain[folder] = place == self.root / folder and not place.is_relative_to(self.out)
        if self._plain[folder]:
            try:
                kind = os.lstat(f"{self._start}{path}").st_mode
            except FileNotFoundError:  # deleted but still in Git's index
                return False
            if not stat.S_ISLNK(kind):
                return stat.S_ISREG(kind)
        return self._is_regular_behind(path, self.root / path)

    def _is_regular_behind(self, path: str, file: Path) -> bool:
        if not file.exists():  # a dangling link
            return False
        place = file.resolve()
        if not place.is_relative_to(self.root):
            self.warnings.append(f"{path} is left out: it is a link to a file outside the root")
            return False
        inside_out = place.is_relative_to(self.out) and not self.root.is_relative_to(self.out)
        return stat.S_ISREG(place.stat().st_mode) and not inside_out


def _is_generated(file: Path) -> bool:
    if file.name == "objects.inv":  # its format has no room for a mark
        return _is_generated(file.with_name("index.md"))
    try:
        with file.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError:  # its page will say that it cannot be read
        return False
    if b"rankbook:" not in head:
        return False
    if _PICTURE in head:
        return True
    return front_matter.is_generated(head, is_cut=len(head) == _HEAD)
