"""How every test and listing stands, gathered from the ledger as plain data for the site."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rankbook.config import Settings
from rankbook.debt import is_proof, smallest_machine
from rankbook.errors import RankbookError
from rankbook.git import asked, deciding
from rankbook.languages import is_run_anywhere
from rankbook.ledger import collected, is_ahead
from rankbook.ledger.recent import Brief, Extent, extent, first_ahead, has_only_grown, recorded, unreadable
from rankbook.ledger.recent import beside as recorded_beside
from rankbook.listed import LISTED, MOST_FILES, Listed
from rankbook.listing import Outcome, RankEnd, Run
from rankbook.page_names import is_page_name
from rankbook.pytest_settings import CALLED, FILES, NAMED, file_in, pytest_settings_of
from rankbook.site.besides import CONFTEST
from rankbook.site.fences import Fence, Unseen, beside, key_of
from rankbook.site.history import Recorded, beat
from rankbook.site.standing import Standing
from rankbook.terminal import STEERING, unsteered

if TYPE_CHECKING:
    from rankbook.jobs import Job


MOST = 20
"""Runs of a test on one class of hardware that its history shows, and versions of it that count as proved there."""


def standing(
    settings: Settings, pages: Iterable[str] = (), before: Standing | None = None, files: Mapping[str, str] | None = None
) -> Standing:
    """Gather what the ledger knows.

    Args:
        settings: say where the ledger is.
        pages: pages made by people, as paths below the root: their listings are read, to tell which runs are of their present text.
        before: what was gathered before; with it only tests are looked at that have been run since.
        files: what `Beside` gives.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    path = settings.below_root(settings.ledger)
    now, ahead = extent(path), first_ahead(path)
    is_right = before is not None and (not before.ahead or is_ahead(before.ahead)) and has_only_grown(path, Extent(*before.extent))
    known = before if before is not None and is_right else Standing()
    items, gone = known.items, known.gone
    if now != known.extent:
        items = {**items, **_items(path, known.extent[0])}
        gone = {**gone, **collected.gone(path, known.extent[0])}
    ran = {found.newest.page for found in items.values() if not found.newest.source}
    fenced = [page for page in pages if page in ran or (items and _may_hold_fences(settings.root / page))]
    read = {page: _jobs(settings.root, page) for page in fenced}
    read = {page: jobs for page, jobs in read.items() if page in ran or any(job.is_code for job in jobs)}
    texts = {page: _fingerprints(jobs) for page, jobs in read.items()}
    fences = {page: _fences(jobs) for page, jobs in read.items()}
    documents = {found.newest.page for found in items.values() if not found.newest.source and _is_inside(found.name)} - texts.keys()
    inside = {page: _fingerprints(_jobs(settings.root, page)) for page in sorted(documents)}
    needs = {found.newest.needs for found in items.values()}
    machines = {wanted: known.machines.get(wanted) or smallest_machine(wanted) for wanted in needs if wanted}
    return Standing(items, texts, fences, inside, files or {}, gone, machines, now, ahead)


def _is_inside(name: str) -> bool:
    """Tell of the name of a listing whether it lies inside a Markdown source."""
    return is_page_name(name.partition("::")[0])


def _items(path: Path, after: int) -> dict[str, Recorded]:
    found = {}
    try:
        for runs in recorded(path, after):
            found[runs[-1][1].node] = _recorded(runs)
    except (ValueError, TypeError) as error:
        raise unreadable(path, error) from error
    return found


def _recorded(runs: Sequence[tuple[str, Brief]]) -> Recorded:
    """Put together what was recorded of one test or listing: a version that was proved stays so, however often it was skipped since."""
    real: dict[tuple[str, str, str], Brief] = {}
    other: Brief | None = None
    last: dict[str, list[tuple[Brief, bool]]] = {}
    proved: Counter[str] = Counter()
    for hardware, run in reversed(runs):
        seen, version = last.setdefault(hardware, []), (hardware, run.listing, run.beside)
        is_shown = len(seen) < MOST
        if not is_shown and (version in real or proved[hardware] >= MOST):
            continue
        is_proof = _is_proof(run.outcome, run.reason, run.machine)
        if is_shown:
            seen.append((run, is_proof))
        if not is_proof:
            other = other or run
        elif version not in real and proved[hardware] < MOST:
            real[version] = run
            proved[hardware] += 1
    real = dict(reversed(real.items()))
    words: dict[str, int] = {}
    beats: dict[str, bytes] = {}
    for hardware, seen in last.items():
        packed = bytearray()
        for run, is_proof in reversed(seen):
            ran, torch = (words.setdefault(word, len(words)) for word in (run.version, run.torch))
            packed += beat(run.outcome, is_proof, ran, torch, run.at, run.duration)
        beats[hardware] = bytes(packed)
    proofs = tuple(_shown(run.run()) for run in real.values())
    without = _shown(other.run()) if other is not None else None
    newest = without if without is not None and other is runs[-1][1] else proofs[-1]
    versions, classes = tuple(run.version for run in real.values()), tuple(hardware for hardware, *_ in real)
    return Recorded(newest, proofs, versions, classes, without, beats, tuple(words))


def _shown(run: Run) -> Run:
    """Give a run whose texts a page can show, whatever was printed: without colours, and with all that would steer a reader written out."""
    said = f"{run.reason}{run.machine}{run.engine}{run.torch}{run.commit}"
    if not run.receipt.ranks and STEERING.search(said) is None:  # as nearly all are
        return run
    return replace(
        run,
        reason=unsteered(run.reason),
        machine=unsteered(run.machine),
        engine=unsteered(run.engine),
        torch=unsteered(run.torch),
        commit=unsteered(run.commit),
        receipt=replace(run.receipt, ranks=tuple(map(_of_rank, run.receipt.ranks))),
    )


def _of_rank(rank: RankEnd) -> RankEnd:
    return replace(rank, name=unsteered(rank.name), doing=unsteered(rank.doing), called=unsteered(rank.called))


def _folders_above(paths: Iterable[str]) -> list[str]:
    """Give the folders in which some files lie, and those above, each with a slash at its end; the root's name is empty."""
    folders: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return sorted(f"{folder}/" if folder else "" for folder in folders)


class Beside:
    """Files that tell whether runs prove something, as they are now: beside which runs were, and what is new that counts for a test.

    Args:
        settings: say where the ledger is.
        shown: files that have a page, which says what they hold.

    Raises:
        LedgerError: the ledger cannot be read.
    """

    def __init__(self, settings: Settings, shown: Collection[str] = ()) -> None:
        self._root = settings.root
        self._above = _folders_above(shown)
        recorded = recorded_beside(settings.below_root(settings.ledger))
        self._listed = [Listed.read(name) for name in recorded if name.endswith(LISTED)]
        data = chain.from_iterable(islice(each.files(self._root), MOST_FILES + 1) for each in self._listed)
        files = (path for path in recorded if not path.endswith(LISTED))
        self._wanted = sorted({*files, *self._new(), *data}.difference(shown)) if recorded else []

    def _new(self) -> Iterator[str]:
        """Yield the conftest files and the files of settings of pytest that are there above what has a page."""
        yield from (path for folder in self._above if (self._root / (path := f"{folder}{CONFTEST}")).is_file())
        inside = (folder for folder in self._above if not folder.startswith("../"))
        yield from (f"{folder}{name}{NAMED}" for folder in inside if (name := file_in(self._root / folder)))

    @cached_property
    def hangs_on(self) -> list[str]:
        """The files on which all of this hangs, whether or not they are there, below the root: what is digested, and what may be new."""
        if not self._wanted:
            return []
        files = [_file_of(path) for path in self._wanted if not path.startswith(CALLED)]
        folders = dict.fromkeys(chain.from_iterable(each.folders(self._root) for each in self._listed))
        inside = [folder for folder in _folders_above(files) if not folder.startswith(("../", "/"))]
        new = [f"{folder}{CONFTEST}" for folder in self._above]
        new += [f"{folder}{name}" for folder in dict.fromkeys([*self._above, *inside]) for name in FILES]
        ignoring = [f"{folder}.gitignore" for folder in inside]
        return [*dict.fromkeys([*files, *folders, *new, *ignoring, *deciding(self._root)])]

    @cached_property
    def files(self) -> dict[str, str]:
        """The SHA-256 of each, by path; empty for what is not there.

        They are those beside which runs were, all conftest files, what pytest is told, and what is new in folders that listings go through.
        These folders are among them, each with a slash at its end.

        What Git ignores is left out, because no two machines need to have it alike, and so is what is not there outside of the project:
        another machine may have had it in a tree that this one lacks.
        """
        folders = dict.fromkeys(chain.from_iterable(each.folders(self._root) for each in self._listed), "")
        found = {path: _told(self._root, path) or _digest(self._root / path) for path in self._wanted}
        ignored = _ignored(self._root, map(_file_of, self._wanted))
        return folders | {
            path: digest for path, digest in found.items() if _file_of(path) not in ignored and (digest or not path.startswith(_ELSEWHERE))
        }


def _file_of(path: str) -> str:
    """Give the file that is meant where its settings of pytest are."""
    return path.removesuffix(NAMED)


_ELSEWHERE = ("../", CALLED)
"""How begins what is no file of the project."""


def _told(root: Path, path: str) -> str:
    """Give the digest of what a file tells pytest, where that is meant and not the file; nothing where another one tells it now."""
    file = _file_of(path)
    found = pytest_settings_of(root, file) if file != path else None
    return found.digest if found is not None and found.file == file else ""


def _ignored(root: Path, paths: Iterable[str]) -> frozenset[str]:
    given = "".join(f"{path}\0" for path in paths if not path.startswith("../")).encode(errors="surrogateescape")
    said = asked(root, "check-ignore", "-z", "--stdin", given=given) if given else None
    return frozenset(said.stdout.decode(errors="surrogateescape").split("\0")) if said is not None else frozenset()


def _digest(file: Path) -> str:
    try:
        found = file.stat()
        return _digest_of(file, found.st_mtime_ns, found.st_size)
    except (OSError, ValueError):
        return ""


@lru_cache(maxsize=65536)
def _digest_of(file: Path, _changed: int, _size: int) -> str:
    return sha256(file.read_bytes()).hexdigest()


@lru_cache(maxsize=65536)
def _is_proof(outcome: str, reason: str, machine: str) -> bool:
    return is_proof(replace(_SOME_RUN, outcome=Outcome(outcome), reason=reason, machine=machine))


_SOME_RUN = Run("", "", "", "", 0, "", Outcome.PASSED)


def listed_on(root: Path, pages: Iterable[str]) -> str:
    """Tell the listings of pages made by people from others, with all that these pages include: a digest.

    Args:
        root: of the project.
        pages: paths below it.
    """
    read = {page: _jobs(root, page) for page in pages if _may_hold_fences(root / page)}
    return sha256(repr([(page, _fingerprints(jobs), _fences(jobs)) for page, jobs in read.items() if jobs]).encode()).hexdigest()


def listings_of(root: Path, pages: Iterable[str]) -> dict[str, Mapping[str, str]]:
    """Give the hash of each listing of pages that people made, as it is now, by the part of its node id behind the page.

    Args:
        root: of the project.
        pages: paths below it.
    """
    return {page: _fingerprints(_jobs(root, page)) for page in pages}


def rendering(page: Path) -> str:
    """Tell a site that shows other listings from this one, by all that is known of its Markdown.

    Args:
        page: any of it.
    """
    from rankbook import listings

    try:
        return listings.site_of(page).fingerprint.text
    except RankbookError:
        return ""


def has_listings(root: Path, page: str) -> bool:
    """Tell whether a page holds a listing that is run.

    Args:
        root: of the project.
        page: path below it.
    """
    return _may_hold_fences(root / page) and any(job.is_code for job in _jobs(root, page))


def unseen(root: Path, page: str, content: str) -> list[Unseen]:
    """Give the listings of code that a page of the site shows, and that pytest does not find on it.

    Plugins and hooks of the engine put such listings there, and so does a `mkdocs.yml` that pytest does not read.

    Args:
        root: of the project.
        page: path below it.
        content: HTML of the page.
    """
    found = keys_of(root, [page] if page.endswith(".md") and (root / page).is_file() else [])
    if _EXECUTED.search(_data(root / page)):  # what was run, and what came of it, is marked up alike
        return []
    return [each for each in beside(content, found) if not each.word or is_run_anywhere(each.word)]


_EXECUTED = re.compile(rb"^[ \t>]*(?:```|~~~).*\bexec=", re.MULTILINE)
"""The opening line of a fence that the plugin `markdown-exec` runs, and of which it shows what it likes."""


def keys_of(root: Path, pages: Iterable[str]) -> frozenset[str]:
    """Give the texts that pytest finds on some pages, as `key_of` gives them.

    Args:
        root: of the project.
        pages: paths below it.
    """
    found = [job.listing for page in pages if _may_hold_fences(root / page) for job in _jobs(root, page)]
    texts = chain.from_iterable((listing.text, *(output.text for output in listing.outputs)) for listing in found)
    return frozenset(map(key_of, texts))


def _data(page: Path) -> bytes:
    try:
        return page.read_bytes()
    except OSError:
        return b""


def _may_hold_fences(page: Path) -> bool:
    return _FENCED.search(_data(page)) is not None


_FENCED = re.compile(rb"```|~~~|8<|\{!")
"""Without any of these a page holds no fence, and includes none."""


def _fingerprints(jobs: Iterable[Job]) -> Mapping[str, str]:
    """Give the hash of each listing of a page, by the part of its node id behind the page."""
    return {"::".join(job.names or (job.listing.name,)): job.fingerprint for job in jobs if job.is_code}


def _fences(jobs: Iterable[Job]) -> tuple[Fence, ...]:
    """Give the fences of a page that are shown as such, and are not inside of one."""
    own = [(job, job.listing) for job in jobs if len(job.names) <= 1 and not job.listing.refused]
    return tuple(Fence(one.name if job.is_code and one.about is None else "", key_of(one.text)) for job, one in own)


def _jobs(root: Path, page: str) -> list[Job]:
    """Give what becomes of the listings of a page as it is now; nothing of a page that is gone."""
    from rankbook import listings
    from rankbook.jobs import plan

    try:
        return list(plan(listings.collect(root / page, page)))
    except (RankbookError, OSError):
        return []
