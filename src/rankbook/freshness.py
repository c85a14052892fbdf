"""What has changed since the last run, told by the times and sizes of files before anything else is loaded.

The last run leaves a manifest: every source, folder and page with its time of change and its size. What stands in it as it is on disk
has not changed; a file that changed while the run was under way is noted so that the next run looks at it again.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import pickle
import shutil
import sys
import sysconfig
import threading
import time
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from rankbook.codeowners import state_of
from rankbook.collecting import rules_of
from rankbook.config import Settings
from rankbook.report import Report

_PACKAGE = Path(__file__).resolve().parent
_NOT_OF_PAGES = frozenset(
    {
        *("jobs", "engine", "listing_timeout", "listing_jobs", "source_path", "ledger", "ray_address"),
        *("gpus", "plan", "canary", "debt_days", "repo_url", "repo_branch", "repo_forge"),
    }
)
"""Settings that no page depends on."""
RECENT = 50_000_000
"""Nanoseconds before the start of a run in which a change may have the same time as a later one."""
_MANY = 4000
"""Files from which on they are looked at in several processes."""
_NAME = "manifest"
_Part = tuple[int, str, Sequence[str], bytes]
"""Number of the group, folder, paths below it, and what was seen of them."""


class Stats(Struct, frozen=True):
    """Paths with their times of change and sizes, as they were seen."""

    paths: tuple[str, ...] = ()
    seen: bytes = b""
    """For each path two numbers of 64 bits: nanoseconds and bytes; -1 and -1 for what is not there."""


class Manifest(Struct, frozen=True):
    """What the last run has left."""

    world: str
    """Digest of all that pages depend on besides the sources: with another one, nothing that was kept counts."""
    generation: str
    """Token that the store carries too; another one there means that another run came between."""
    sources: Stats
    """Below the root."""
    surroundings: Stats
    """What decides which files are sources: folders, ignore files, Git's index; below the root or absolute."""
    foreign: Stats
    """Files of packages that were read; absolute."""
    pages: Stats
    """Below the folder of all pages."""
    folders: Stats
    """Those that hold the pages, below the same; the folder of all pages is `.`."""
    report: Report
    """Of a run that finds nothing changed."""


_NOTHING: Mapping[str, tuple[int, int]] = MappingProxyType({})
_NOWHERE = Path(os.devnull, "rankbook")
"""A folder that cannot be made."""


def cache_base() -> Path:
    """Name the folder of all that rankbook keeps: the user's, because what lies in it is trusted."""
    own, shared = os.environ.get("RANKBOOK_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME", "")
    if own:
        return Path(os.path.expanduser(own)).absolute()  # noqa: PTH111 - that of Path raises where there is no home
    if Path(shared).is_absolute():  # as the specification has it
        return Path(shared, "rankbook")
    try:
        return Path.home() / ".cache/rankbook"
    except RuntimeError:  # the user has neither a home nor a name, and nothing is kept
        return _NOWHERE


def cache_folder(settings: Settings) -> Path:
    """Name the folder in which a project's runs keep what they found."""
    words = [os.fspath(settings.root), os.fspath(settings.below_root(settings.out)), *(["staged"] if settings.staged else [])]
    key = hashlib.sha256("\0".join(words).encode(errors="surrogateescape")).hexdigest()
    return cache_base() / key[:24]


def world(settings: Settings) -> str:
    """Take the digest of all that the pages depend on besides the sources: rankbook, what it runs on, settings, the project's templates."""
    code = [*running(), *_dated(_PACKAGE.parents[1] / "templates")]
    values = [f"{name}={getattr(settings, name)!r}" for name in settings.__struct_fields__ if name not in _NOT_OF_PAGES]
    linter = shutil.which("ruff") if settings.findings else None
    packages = [f"{folder}:{settings.below_root(folder).is_dir()}" for folder in settings.package_path]
    told = [
        settings.book_title,
        state_of(settings.root),
        *packages,
        repr(rules_of(settings.root)),
        f"{linter}:{_mtime(linter) if linter else 0}",
    ]
    return _digest([*code, *values, *told, *_dated(settings.below_root(settings.templates) / settings.pack)])


def running() -> list[str]:
    """Name what runs, by times and sizes: Python, rankbook's own files, and the folder of installed packages."""
    site = sysconfig.get_path("purelib")
    return [sys.version, *_code(_PACKAGE), f"{site}:{_mtime(site)}"]


class Changes(Struct, frozen=True):
    """What is not as the last run left it."""

    manifest: Manifest
    sources: tuple[str, ...]
    surroundings: tuple[str, ...]
    foreign: tuple[str, ...]
    pages: tuple[str, ...]
    seconds: float
    """Time that it took to look."""
    kept_by: Settings
    """Those of the run that left the manifest, and what it found in its cache."""

    @property
    def report(self) -> Report | None:
        """The report of a run that finds nothing to do; None when there is something."""
        if self.sources or self.surroundings or self.foreign or self.pages:
            return None
        return replace(self.manifest.report, seconds={"look": self.seconds})


def compare(settings: Settings, *, reads: bool = False) -> Changes | None:
    """Look for what has changed since the last run.

    Args:
        settings: of the run.
        reads: whether the run writes nothing: one of what is staged then begins with what the last run of all files left, if that is later.

    Returns:
        What has changed; None when no run with these settings has left anything to compare with.
    """
    start = time.perf_counter()
    kept_by = _latest(settings) if reads and settings.staged else settings
    manifest = load(kept_by)
    if manifest is None or manifest.world != world(kept_by):
        return None
    root, out = os.fspath(settings.root), os.fspath(settings.below_root(settings.out))
    looked_at = (manifest.sources, manifest.surroundings, manifest.foreign, manifest.pages, manifest.folders)
    found = _changed(list(zip((root, root, root, out, out), looked_at, strict=True)), settings.jobs)
    sources, surroundings, foreign, pages, folders = map(tuple, found)
    if settings.staged:  # a commit may have an index of its own
        surroundings = (*surroundings, ".")
    pages += tuple(sorted(_appeared(out, folders, manifest)))
    return Changes(manifest, sources, surroundings, foreign, pages, time.perf_counter() - start, kept_by)


def folders_of(pages: Iterable[str]) -> list[str]:
    """Name the folders that hold pages, as the manifest has them.

    Args:
        pages: below the folder of all pages.
    """
    found = {"."}
    for folder in {path.rpartition("/")[0] for path in pages}:
        inner = folder
        while inner and inner not in found:
            found.add(inner)
            inner = inner.rpartition("/")[0]
    return sorted(found)


def _appeared(out: str, changed: Iterable[str], manifest: Manifest) -> Iterator[str]:
    """Yield what may be pages in folders that have changed, and that the last run did not know: Git may have brought them back."""
    waiting = list(changed)
    pages, folders = (frozenset(manifest.pages.paths), frozenset(manifest.folders.paths)) if waiting else (frozenset(), frozenset())
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(os.path.join(out, folder)) as found:  # noqa: PTH118 - names are what is needed
                entries = list(found)
        except OSError:
            continue
        for entry in entries:
            path = entry.name if folder == "." else f"{folder}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                waiting += [path] if path not in folders else []
            elif (path.endswith((".md", ".svg")) or path == "objects.inv") and path not in pages:
                yield path


_read: dict[Path, tuple[tuple[int, int, int], Manifest]] = {}
"""What was read or left last, by file and how that was seen: a build asks for it several times."""


def load(settings: Settings) -> Manifest | None:
    """Read the manifest of the last run; None when there is none that can be read."""
    path = cache_folder(settings) / _NAME
    try:
        with path.open("rb") as file:
            seen = _identity(os.fstat(file.fileno()))
            known = _read.get(path)
            if known is not None and known[0] == seen:
                return known[1]
            manifest = pickle.load(file)  # noqa: S301 - it lies in the user's own cache
    except Exception:  # noqa: BLE001 - whatever is wrong with it, a run without it does the same
        return None
    if not isinstance(manifest, Manifest):
        return None
    _read[path] = seen, manifest
    return manifest


def save(settings: Settings, manifest: Manifest) -> None:
    """Leave the manifest for the next run."""
    path = cache_folder(settings) / _NAME
    temporary = path.with_name(f"{_NAME}.{os.getpid()}")
    temporary.write_bytes(pickle.dumps(manifest, pickle.HIGHEST_PROTOCOL))
    seen = _identity(temporary.stat())
    temporary.replace(path)
    _read[path] = seen, manifest


def _identity(found: os.stat_result) -> tuple[int, int, int]:
    """Tell a file that is written anew, beside its place, from the one before."""
    return found.st_ino, found.st_mtime_ns, found.st_size


def _latest(settings: Settings) -> Settings:
    """Give settings for what is staged, or those for all files, by whose run is the later."""

    def left(settings: Settings) -> float:
        try:
            return (cache_folder(settings) / _NAME).stat().st_mtime
        except OSError:
            return 0.0

    return max(settings, replace(settings, staged=False), key=left)


def discard(settings: Settings) -> None:
    """Take the manifest away: what comes next changes pages, and may be cut short."""
    with suppress(OSError):  # where it cannot be taken away, it tells that the pages are not as it says
        (cache_folder(settings) / _NAME).unlink(missing_ok=True)


def look(base: str, paths: Iterable[str], started: int | None = None, *, known: Mapping[str, tuple[int, int]] = _NOTHING) -> Stats:
    """Look at files.

    Args:
        base: folder that relative paths start from.
        paths: files and folders.
        started: time at which the run began, in nanoseconds; what changed about then is noted so that it never counts as seen.
        known: what was seen before of some of them, which counts.
    """
    looked = tuple(paths)
    seen = _numbers(base, looked)
    for index, path in enumerate(looked) if known else ():
        if path in known:
            seen[2 * index], seen[2 * index + 1] = known[path]
    if started is not None:
        for index in range(0, len(seen), 2):
            if seen[index] > started - RECENT:
                seen[index] = 0
    return Stats(looked, seen.tobytes())


def merged(old: Stats | None, paths: Sequence[str], fresh: Stats) -> Stats:
    """Put what was just seen of some paths beside what was seen before of the others.

    Args:
        old: seen before; None when nothing was.
        paths: all that there are now, each in one of the two.
        fresh: just seen.
    """
    known = {path: stats.seen[16 * index : 16 * index + 16] for stats in (old or Stats(), fresh) for index, path in enumerate(stats.paths)}
    return Stats(tuple(paths), b"".join([known[path] for path in paths]))


def _numbers(base: str, paths: Sequence[str]) -> array[int]:
    numbers = array("q")
    add = numbers.append
    stat = os.stat
    try:
        folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return array("q", [-1, -1] * len(paths))
    try:
        for path in paths:
            try:
                found = stat(path, dir_fd=folder)
            except (OSError, ValueError):
                add(-1)
                add(-1)
            else:
                add(found.st_mtime_ns)
                add(found.st_size)
    finally:
        os.close(folder)
    return numbers


def _changed(groups: Sequence[tuple[str, Stats]], jobs: int) -> list[list[str]]:
    """Name what is not as it was seen, by group; many files are looked at by several processes."""
    parts = [part for number, (base, stats) in enumerate(groups) for part in _cut(number, base, stats)]
    jobs = 1 if threading.active_count() > 1 else max(1, min(jobs or len(os.sched_getaffinity(0)), len(parts)))
    children = [_aside(parts[worker::jobs]) for worker in range(1, jobs)]
    found = _differing(parts[::jobs])
    for child, out in children:
        with os.fdopen(out, "rb") as stream:
            found += marshal.loads(stream.read())  # noqa: S302 - our own child wrote it
        os.waitpid(child, 0)
    by_group: list[list[str]] = [[] for _ in groups]
    for number, path in sorted(found):
        by_group[number].append(path)
    return by_group


def _cut(number: int, base: str, stats: Stats) -> Iterator[_Part]:
    for start in range(0, len(stats.paths), _MANY):
        paths = stats.paths[start : start + _MANY]
        yield number, base, paths, stats.seen[16 * start : 16 * (start + len(paths))]


def _differing(parts: Iterable[_Part]) -> list[tuple[int, str]]:
    found = []
    for number, base, paths, seen in parts:
        now = _numbers(base, paths).tobytes()
        if now != seen:
            found += [
                (number, path)
                for index, path in enumerate(paths)
                if seen[16 * index : 16 * index + 16] != now[16 * index : 16 * index + 16]
            ]
    return found


def _aside(parts: Sequence[_Part]) -> tuple[int, int]:
    """Look at files in a process of their own; give it and where it writes its answer."""
    out, into = os.pipe()
    child = os.fork()
    if child:
        os.close(into)
        return child, out
    try:
        with os.fdopen(into, "wb") as stream:
            stream.write(marshal.dumps(_differing(parts)))
    finally:
        os._exit(0)


@cache
def _code(folder: Path) -> tuple[str, ...]:
    """Give the files of rankbook itself as they are when it starts: whatever becomes of them later, this process runs what they were."""
    return tuple(_dated(folder))


def _dated(folder: Path) -> list[str]:
    """Give the files of a small folder with their times and sizes."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            seen = os.stat(os.path.join(place, name))  # noqa: PTH116, PTH118 - this runs before each command
            found.append(f"{place}/{name}:{seen.st_mtime_ns}:{seen.st_size}")
    return found


def _mtime(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - as above
    except OSError:
        return 0


def _digest(words: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(words).encode(errors="surrogateescape")).hexdigest()
