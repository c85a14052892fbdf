"""Where the notes of a book belong once its sources have changed: on their page, on that of a source that was moved, or nowhere.

A source that is gone is taken to be moved to a new one of the same content; else to the one that Git says; else to the one that shares
most lines with the listing on its old page, if that is at least half of them; else to the only one that has all tests of its notes.
"""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from urllib.parse import quote, unquote

from msgspec import Struct, field
from msgspec.structs import replace

from rankbook import pages
from rankbook.pages import Writer, git
from rankbook.pages.names import FILE_PAGES
from rankbook.pages.notes import Note, block, notes_of, spelt, taken_off
from rankbook.pages.seals import look
from rankbook.stamps import stamp_of

ORPHANS = "orphaned-notes.md"
"""Page below the folder of all pages that keeps the notes that belong nowhere."""
_HEAD = b"""\
---
title: Notes without a place
search:
  exclude: true
---

# Notes without a place

These notes stood on pages of this book whose source, or whose test, is not there any more.
Move each to the page that it belongs to now, or delete it here. A note goes back by itself when its source or test comes back.
"""
_LEFT = "?from="
"""Stands on the page of orphans between the page to which a note goes and the one that it leaves, while that is under way."""
_ALIKE = 0.5
"""Share of lines from which on two files are versions of one, as in Git."""
_MOST_RENAMES = 10
"""Times that a file is followed from one name to the next."""


class Tree(Struct, frozen=True):
    """The sources as they are now."""

    root: Path
    files: frozenset[str]
    folders: Collection[str]
    sha256: Callable[[str], str]
    """Digest of a file."""
    tests: Callable[[str], Collection[str]]
    """Node ids of a file's tests, without the file."""
    changed: Collection[str]
    """Files that are new or have changed since the last run, as far as is known."""


class Homes(Struct):
    """What is to become of the notes."""

    orphans: frozenset[Note] = frozenset()
    """Notes that belonged nowhere before."""
    by_page: dict[str, list[Note]] = field(default_factory=dict)
    """Notes by the page on which they belong; each still says where it was found."""
    homeless: list[Note] = field(default_factory=list)
    left_behind: dict[Note, str] = field(default_factory=dict)
    """Notes that a run that was cut short has put on another page, or was about to: what they are there, or are to be."""

    def take(self, note: Note, page: str | None) -> None:
        """Put a note down for a page, or for none."""
        if page is None:
            self.homeless.append(note)
        else:
            self.by_page.setdefault(page, []).append(note)

    def moving(self) -> list[Note]:
        """Give the notes that go from one page to another, as they are to stand there: the page that they leave may be written first."""
        placed = [(note, page) for page, notes in self.by_page.items() for note in notes]
        return [replace(note, page=page, left=note.page) for note, page in (*placed, *self.left_behind.items()) if note.page != page]

    def under_way(self) -> list[Note]:
        """Give the notes that lie with those that belong nowhere while pages are written: a run may be cut short."""
        back = [note for page, notes in self.by_page.items() for note in notes if note in self.orphans and note.page == page]
        return [*back, *self.homeless, *self.moving()]

    def leaving(self, found: Iterable[Note]) -> frozenset[Note]:
        """Give those of the notes on pages that do not stay where they are, because they have a place elsewhere."""
        stay = {note for page, notes in self.by_page.items() for note in notes if note.page == page}
        return frozenset(found).difference(stay, self.homeless)

    def touched(self) -> set[str]:
        """Name the pages that change because a note comes or goes."""
        came = {(note, page) for page, notes in self.by_page.items() for note in notes if note.page != page or note in self.orphans}
        left = {note.page for note in (*self.homeless, *(note for note, _ in came)) if note not in self.orphans}
        return {page for _, page in came} | left | {note.page for note in self.left_behind}


def settle(found: Sequence[Note], orphans: Sequence[Note], tree: Tree, writer: Writer) -> Homes:
    """Find out where notes belong.

    Args:
        found: the notes on pages.
        orphans: what the last run left among the notes that belong nowhere, as `orphans_of` gives it: those, and where it was cut short
            those that it was moving.
        tree: the sources.
        writer: of the pages, which are as the last run left them.
    """
    moves = _Moves(found, tree, writer)
    begun = _begun(found, orphans, tree, moves)
    homes = Homes(frozenset((*orphans, *(move.note for move in begun if not move.is_found))))
    homes.left_behind = {note: move.to if move.home is None else move.home for move in begun for note in move.behind}
    settled = {move.note: move.home for move in begun if move.is_found}
    standing = [(note, settled[note] if note in settled else _home(note, tree, moves)) for note in found if note not in homes.left_behind]
    waiting = [(note, _home(note, tree, moves)) for note in orphans if not note.left]
    known = {*map(_identity, found), *((page, note.name, note.text) for note, page in standing if page is not None)}
    for note, page in standing:
        homes.take(note, page)
    for note, page in waiting:
        if known.isdisjoint({_identity(note), (page, note.name, note.text)}):
            homes.take(note, page)
    for move in begun:
        if not move.is_found:
            homes.take(move.note, move.home)
    return homes


class _Move(Struct):
    """A move of a note that a run has begun, and may have done in part."""

    to: str
    """Page to which it was to go."""
    note: Note
    """The note where it is found: on that page, else on one that it leaves, else only among those that belong nowhere."""
    is_found: bool
    """Whether it stands on a page."""
    behind: Sequence[Note]
    """The same note on other pages that it leaves."""
    home: str | None
    """Page on which it belongs now."""


def _begun(found: Sequence[Note], orphans: Sequence[Note], tree: Tree, moves: _Moves) -> list[_Move]:
    """Find the notes that a run was moving when it was cut short: each is one, wherever it stands by now."""
    standing: dict[tuple[str, str, bytes], list[Note]] = {}
    for note in found:
        standing.setdefault(_identity(note), []).append(note)

    def on(page: str, note: Note) -> list[Note]:
        """Take a note that stands on a page; each is taken once."""
        same = standing.get((page, note.name, note.text), [])
        return [same.pop(0)] if same else []

    told: dict[tuple[str, str, bytes], list[Note]] = {}
    for note in orphans:
        if note.left:
            told.setdefault(_identity(note), []).append(note)
    left = {_identity(replace(note, page=note.left)) for notes in told.values() for note in notes}
    landed = {key: on(key[0], notes[0]) if key not in left or moves.is_current(key[0]) else [] for key, notes in told.items()}
    begun = []
    for key, notes in told.items():
        behind = [same for note in notes for same in on(note.left, note)]
        lost = replace(notes[0], left="")
        note, *others = (*landed[key], *behind, lost)
        is_to_go_on = not landed[key] and _fits(tree, lost.page, lost.name) and not any(moves.is_current(same.page) for same in behind)
        asked = (*landed[key], *behind) or (lost, replace(lost, page=notes[0].left))
        homes = (_home(each, tree, moves) for each in asked)
        home = lost.page if is_to_go_on else next((page for page in homes if page is not None), None)
        begun.append(_Move(lost.page, note, note is not lost, [same for same in others if same is not lost], home))
    return begun


def orphans_of(data: bytes, out: Path | None = None) -> list[Note]:
    """Read the notes that belonged nowhere when the last run ended.

    Args:
        data: the page of orphans.
        out: folder of all pages, for errors.

    Returns:
        Each with its line on the page of orphans, and the page on which it stood before; one that a run was moving with that to which it
        goes.

    Raises:
        PageError: a marker is not as it must be.
    """
    found = []
    for note in notes_of(data, ORPHANS, out and out / ORPHANS):
        page, _, name = note.name.partition("::")
        page, _, left = page.partition(_LEFT)
        found.append(replace(note, page=unquote(page), name=name, left=unquote(left)))
    return found


def with_orphans(data: bytes | None, notes: Sequence[Note]) -> bytes | None:
    """Give the page of orphans with these notes and no others; what else somebody wrote on it stays.

    Args:
        data: the page as it is; None when there is none.
        notes: the notes that belong nowhere.

    Returns:
        The page; None when nothing is left to say.
    """
    wanted = Counter(map(_block, notes))
    lines = (_HEAD if data is None else data).splitlines(keepends=True)
    left = []
    for note in orphans_of(b"".join(lines)):
        is_wanted = wanted[_block(note)] > 0
        wanted[_block(note)] -= is_wanted
        left += [] if is_wanted else [note]
        if spelt(_name(note)) != _name(note):
            lines[note.line - 1] = _block(note).splitlines(keepends=True)[0]
    text = taken_off(b"".join(lines), left)
    for note in notes:
        if wanted[_block(note)] > 0:
            wanted[_block(note)] -= 1
            text = text.rstrip(b"\r\n") + b"\n\n" + _block(note)
    return None if text.split() == _HEAD.split() else text


def describe(note: Note) -> str:
    """Say what a note without a place is about, and why it has none: `the test test_a of s/ring.py, which is gone from the book`."""
    kind, source = pages.owner(note.page)
    if note.name and kind == "folder":
        return f"the test {note.name}, which is not in just one file {f'below {source}' if source else 'of the book'}"
    what = source if kind == "file" else note.page
    return f"the test {note.name} of {what}, which is gone from the book" if note.name else f"{what}, which is gone from the book"


def _identity(note: Note) -> tuple[str, str, bytes]:
    return note.page, note.name, note.text


def _block(note: Note) -> bytes:
    return block(_name(note), note.text)


def _name(note: Note) -> str:
    left = _LEFT + quote(note.left) if note.left else ""
    return quote(note.page) + left + (f"::{note.name}" if note.name else "")


def _home(note: Note, tree: Tree, moves: _Moves) -> str | None:
    """Give the page on which a note belongs; None when there is none."""
    kind, source = pages.owner(note.page)
    is_there = source in (tree.files if kind == "file" else tree.folders)
    page: str | None = moves.swapped(note.page) if is_there else moves.page(note.page)
    if not note.name:
        return page
    if page is not None and _has_test(tree, page, note.name):
        return page
    elsewhere = moves.tests(note.name) if page is None or kind == "file" else _below(tree, pages.owner(page)[1], note.name)
    return pages.page_of_file("file", elsewhere[0]) if len(elsewhere) == 1 else None


def _fits(tree: Tree, page: str, name: str) -> bool:
    """Tell whether the source of a page is there, and has the test that a note is about, if it is about one."""
    kind, source = pages.owner(page)
    return _has_test(tree, page, name) if name else source in (tree.files if kind == "file" else tree.folders)


def _below(tree: Tree, folder: str, name: str) -> list[str]:
    """Name the files of a folder, and below it, that have a test."""
    start = f"{folder}/" if folder else ""
    return [path for path in sorted(tree.files) if path.startswith(start) and name in _names(tree.tests(path))]


def _has_test(tree: Tree, page: str, name: str) -> bool:
    kind, source = pages.owner(page)
    return kind == "file" and source in tree.files and name in _names(tree.tests(source))


def _names(ids: Iterable[str]) -> set[str]:
    """Give what a note may call tests: by node id, and all variants of a function by its name."""
    found = set(ids)
    return found | {name.partition("[")[0] for name in found}


class _Moves:
    """Finds out what has become of sources that are gone.

    Args:
        notes: all notes, by whose tests a source may be known again.
        tree: the sources.
        writer: of the pages.
    """

    def __init__(self, notes: Sequence[Note], tree: Tree, writer: Writer) -> None:
        self._notes = notes
        self._tree = tree
        self._writer = writer
        self._known: dict[str, str | None] = {}
        self._new: list[str] | None = None
        self._by_content: dict[str, list[str]] | None = None
        self._tests: dict[str, list[str]] | None = None

    def page(self, page: str) -> str | None:
        """Give the page that takes the place of one whose source is gone."""
        kind, source = pages.owner(page)
        moved = self._once(source, self._file if kind == "file" else self._folder)
        if moved is None:
            return None
        return moved + page.removeprefix(source) if kind == "file" else posixpath.join(moved, posixpath.basename(page))

    def swapped(self, page: str) -> str:
        """Give the page that takes the place of one whose source is there, and holds what was moved to its place; else the page itself."""
        kind, source = pages.owner(page)
        if kind != "file" or source not in self._tree.changed:
            return page
        return (self._once(f"swapped {source}", lambda _: self._away(source)) or source) + page.removeprefix(source)

    def _away(self, source: str) -> str | None:
        """Give the file that holds what a file held when its page was made, where that holds what came from another one."""
        seen = look(self._old_page(source) or b"")
        if seen is None or seen.stamp.sha256 == self._tree.sha256(source):
            return None
        there = self._holding(source, seen.stamp.sha256)
        return there if there is not None and source in self._moved else None

    @cached_property
    def _moved(self) -> frozenset[str]:
        """Sources whose content went elsewhere: they are gone, or hold what another one of them held."""
        files, before = self._tree.files, {}
        for page in self._writer.pages():
            source = pages.owner(page)[1]
            if not page.endswith(FILE_PAGES["file"]) or (source in files and source not in self._tree.changed):
                continue
            stamp = stamp_of(self._writer.out / page)
            if stamp is not None and stamp.sha256 and (source not in files or self._tree.sha256(source) != stamp.sha256):
                before[source] = stamp.sha256
        moved = {source for source, held in before.items() if source not in files or self._holding(source, held) is not None}
        while True:
            gone = {before[source] for source in moved}
            staying = {source for source in moved if source in files and self._tree.sha256(source) not in gone}
            if not staying:
                return frozenset(moved)
            moved -= staying

    def _holding(self, source: str, sha256: str | None) -> str | None:
        """Give the file that now holds what a file held when its page was made, and did not hold it before."""
        if self._by_content is None:
            self._by_content = {}
            for path in self._tree.files.intersection(self._tree.changed):
                self._by_content.setdefault(self._tree.sha256(path), []).append(path)
        found = [path for path in self._by_content.get(sha256 or "", ()) if sha256 and self._is_other(path)]
        name = posixpath.basename(source)
        return max(found, key=lambda path: (not self._has_page(path), posixpath.basename(path) == name, path)) if found else None

    def _is_other(self, source: str) -> bool:
        """Tell whether the page of a file is not as it would be made, or there is none."""
        seen = look(self._old_page(source) or b"")
        return seen is None or seen.stamp.sha256 != self._tree.sha256(source) or bool(seen.edited)

    def _has_page(self, source: str) -> bool:
        return (self._writer.out / pages.page_of_file("file", source)).exists()

    def is_current(self, page: str) -> bool:
        """Tell whether a page says that it was made from what its source holds now."""
        kind, source = pages.owner(page)
        seen = look(self._writer.read(page) or b"") if kind == "file" and source in self._tree.files else None
        return seen is not None and seen.stamp.sha256 == self._tree.sha256(source)

    def tests(self, name: str) -> list[str]:
        """Name the files that have a test of this name, and had none before."""
        if self._tests is None:
            self._tests = {}
            for path in sorted(set(self._tree.changed).intersection(self._tree.files)):
                for known in _names(self._tree.tests(path)):
                    self._tests.setdefault(known, []).append(path)
        word = name.rpartition("::")[2].partition("[")[0].encode()
        return [path for path in self._tests.get(name, ()) if word not in (self._old_page(path) or b"")]

    def _old_page(self, source: str) -> bytes | None:
        return self._writer.read(pages.page_of_file("file", source))

    def _once(self, source: str, find: Callable[[str], str | None]) -> str | None:
        if source not in self._known:
            self._known[source] = find(source)
        return self._known[source]

    def _folder(self, folder: str) -> str | None:
        """Give the folder to which most files of a folder went."""
        place = self._writer.out / folder
        names = sorted(entry.name for entry in place.iterdir()) if place.is_dir() else []
        files = [pages.owner(posixpath.join(folder, name))[1] for name in names if name.endswith(FILE_PAGES["file"])]
        went = Counter(posixpath.dirname(moved) for path in files if (moved := self._once(path, self._file)) is not None)
        return went.most_common(1)[0][0] if went else None

    def _file(self, source: str) -> str | None:
        seen = look(self._old_page(source) or b"")
        if seen is not None and (same := self._holding(source, seen.stamp.sha256)) is not None:
            return same
        new = self._new_files()
        if not new:
            return None
        alike = self._alike(seen.text, new) if seen is not None and seen.text else None
        return self._by_git(source) or alike or self._by_tests(source, new)

    def _new_files(self) -> list[str]:
        """Name the files that have no page yet."""
        if self._new is None:
            self._new = [path for path in self._tree.files if not self._has_page(path)]
        return self._new

    def _by_git(self, source: str) -> str | None:
        for _ in range(_MOST_RENAMES):
            renamed = _renames(self._tree.root, "diff", "HEAD").get(source) or self._committed(source)
            if renamed is None or renamed in self._tree.files:
                return renamed
            source = renamed
        return None

    def _committed(self, source: str) -> str | None:
        words = ("log", "-1", "--format=%H", "--no-renames", "--diff-filter=D", "--", f":(literal){source}")
        commit = git.ask(self._tree.root, *words).strip()
        return _renames(self._tree.root, "show", "--format=", os.fsdecode(commit)).get(source) if commit else None

    def _alike(self, text: str, new: Iterable[str]) -> str | None:
        lines = Counter(text.splitlines())
        found = {path: share for path in new if (share := self._share(lines, path)) >= _ALIKE}
        return max(found, key=lambda path: (found[path], path)) if found else None

    def _share(self, lines: Counter[str], path: str) -> float:
        try:
            other = Counter((self._tree.root / path).read_text(encoding="utf-8", errors="replace").splitlines())
        except OSError:
            return 0.0
        return (lines & other).total() / max(lines.total(), other.total(), 1)

    def _by_tests(self, source: str, new: Iterable[str]) -> str | None:
        names = {note.name for note in self._notes if pages.owner(note.page)[1] == source and note.name}
        found = [path for path in new if names and names <= _names(self._tree.tests(path))]
        return found[0] if len(found) == 1 else None


def _renames(root: Path, *arguments: str) -> Mapping[str, str]:
    """Ask Git for renames: old path below the root -> new one."""
    options = ("--find-renames", "--diff-filter=R", "--name-status", "--relative", "-z")
    words = git.ask(root, arguments[0], *options, *arguments[1:]).split(b"\0")
    texts = [os.fsdecode(word.lstrip(b"\n")) for word in words]
    return {texts[at + 1]: texts[at + 2] for at in range(0, len(texts) - 2, 3) if texts[at].startswith("R")}
