"""The command `rankbook accept`: a listing that somebody has edited on its page is taken back into its source.

The page says from which bytes it was generated. Only where the source still holds these is the edit taken over; where both have changed,
a person has to decide.
"""

from __future__ import annotations

import difflib
import enum
import hashlib
import os
import re
import stat
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from rankbook import freshness, pages
from rankbook.config import Settings, real
from rankbook.document import document
from rankbook.drift import place_of, printable
from rankbook.embedding import Embedded, embed, restore
from rankbook.errors import PageError, SourceError
from rankbook.languages import by_path
from rankbook.pages import Writer
from rankbook.pages.seals import Edited, Seen, look
from rankbook.report import plural
from rankbook.sources import discover
from rankbook.syntax import syntax_tree
from rankbook.terminal import word

Say = Callable[[str], None]
"""Prints a line."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_SUFFIX = pages.page_of_file("file", "")
"""End of the name of a page that shows a source."""


class Edit(Struct, frozen=True):
    """A listing that was edited, and its source."""

    page: str
    """Below the folder of all pages."""
    source: str
    """Below the root."""
    before: bytes
    """The source as it is."""
    after: bytes
    """The source as the page shows it."""

    def diff(self) -> Iterator[str]:
        """Yield the lines of the difference."""
        before, after = (_lines(data) for data in (self.before, self.after))
        return difflib.unified_diff(before, after, f"a/{self.source}", f"b/{self.source}", lineterm="")

    def doubt(self) -> str:
        """Say what is hardly meant: the source would be empty, or would be Python no more; empty when nothing is."""
        if _is_blank(self.after) and not _is_blank(self.before):
            return f"this leaves nothing of {self.source}"
        is_python = by_path(self.source, _text(self.before).partition("\n")[0]).name == "python"
        error = _syntax_error(self.after) if is_python else ""
        return f"{self.source} would not be valid Python any more: {error}" if error and not _syntax_error(self.before) else ""


def options(parser: ArgumentParser) -> None:
    """Add which listings are taken back, and how."""
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", help="pages whose listing was edited (default: all)")
    parser.add_argument("--root", type=Path, help="folder of the project (default: the project around the current folder)")
    parser.add_argument("--out", help="folder of the pages")
    parser.add_argument("--yes", action="store_true", help="take all edits without asking")
    parser.add_argument("--dry-run", action="store_true", help="show the edits, and write nothing")


def accept(chosen: Namespace, settings: Settings, say: Say, warn: Say, ask: Callable[[str], str]) -> int:
    """Take edited listings back into their sources.

    Args:
        chosen: options of the command line.
        settings: of the project.
        say: prints a line.
        warn: prints a sentence about a page that is refused.
        ask: asks a question and gives the answer.

    Returns:
        The exit status: 1 when a page was refused.

    Raises:
        RankbookError: a page that is named is none of this book.
    """
    out = settings.below_root(settings.out)
    if not out.is_dir():
        raise PageError("there is no folder of pages", where=out, right="run `rankbook gen` first, or name it with --out")
    writer = Writer(out)
    book = _Book(settings, writer)
    named = [book.name_of(path) for path in chosen.pages]
    counts = {_Fate.TAKEN: 0, _Fate.LEFT: 0, _Fate.REFUSED: 0, _Fate.NONE: 0}
    for page in dict.fromkeys(named) if named else book.candidates():
        place = place_of(settings, page)
        try:
            edit = book.edit_of(page)
            fate = _Fate.NONE if edit is None else _decided(edit, place, chosen, settings.root, say, warn, ask)
        except (PageError, SourceError) as error:
            warn(f"{place}: {error}" if isinstance(error, PageError) else str(error))
            fate = _Fate.REFUSED
        counts[fate] += 1
        if fate is _Fate.NONE and named:
            say(f"{place}: its listing is as its source")
    taken, refused = counts[_Fate.TAKEN], counts[_Fate.REFUSED]
    if taken:
        book.sweep()
    say(_summary(taken + counts[_Fate.LEFT], taken, refused, is_dry=chosen.dry_run))
    if taken:
        for warning in document(settings).warnings:
            warn(warning)
    return 1 if refused else 0


class _Fate(enum.Enum):
    """What becomes of an edit."""

    TAKEN = enum.auto()
    LEFT = enum.auto()
    """For it was only to be shown, or somebody has said no."""
    REFUSED = enum.auto()
    NONE = enum.auto()
    """There is no edit."""


def _decided(  # noqa: PLR0913, PLR0917 - the ways to talk
    edit: Edit, place: str, chosen: Namespace, root: Path, say: Say, warn: Say, ask: Callable[[str], str]
) -> _Fate:
    """Show an edit, and take it where that is wanted.

    Raises:
        SourceError: the source cannot be written.
    """
    if not _shown(edit, place, say, warn, has_yes=chosen.yes and not chosen.dry_run):
        return _Fate.REFUSED
    if chosen.dry_run or not (chosen.yes or _is_yes(ask, say, edit)):
        return _Fate.LEFT
    _write(root / edit.source, edit)
    return _Fate.TAKEN


def _shown(edit: Edit, place: str, say: Say, warn: Say, *, has_yes: bool) -> bool:
    """Show an edit; tell whether it may be taken, which needs a person where it is hardly meant."""
    for line in edit.diff():
        say(line)
    doubt = edit.doubt()
    if doubt:
        warn(f"{place}: {doubt}; `rankbook accept {word(place)}` asks whether that is meant" if has_yes else f"{place}: {doubt}")
    return not (doubt and has_yes)


def _summary(found: int, taken: int, refused: int, *, is_dry: bool) -> str:
    if not (found or refused):
        return "no listing was edited"
    said = f"{plural(found, 'listing')} to take" if is_dry else f"{plural(taken, 'listing')} taken into the source"
    left = f", {found - taken:,} left" if not is_dry and found > taken else ""
    return f"{said}{left}, {refused:,} refused" if refused else f"{said}{left}"


def _is_yes(ask: Callable[[str], str], say: Say, edit: Edit) -> bool:
    try:
        answer = ask(f"Take this into {edit.source}? [y/N] ")
    except EOFError:
        say("")
        return False
    return answer.strip().lower() in {"y", "yes"}


class _Book:
    """The pages and the sources of a project.

    Args:
        settings: of the project.
        writer: of the pages.
    """

    def __init__(self, settings: Settings, writer: Writer) -> None:
        self._settings = settings
        self._writer = writer
        self._sources: frozenset[str] | None = None

    def name_of(self, path: Path) -> str:
        """Give the name of a page below the folder of all pages."""
        # From a folder below the root a page may also be called as all messages call it.
        places = [real(each.parent) / path.name for each in (path, self._settings.root / path)]
        place = next((each for each in places if each.is_relative_to(self._writer.out)), None)
        if place is None:
            raise PageError("this is no page of the book", where=path, right=f"name one below {self._writer.out}")
        return place.relative_to(self._writer.out).as_posix()

    def candidates(self) -> list[str]:
        """Name the pages that somebody may have edited since they were generated."""
        changes = freshness.compare(self._settings)
        if changes is not None:
            return sorted(
                {page for page in (*changes.manifest.report.kept, *changes.pages) if page.endswith(_SUFFIX) and self._is_edited(page)}
            )
        out = self._writer.out
        found = (path.relative_to(out).as_posix() for path in sorted(out.rglob(f"*{_SUFFIX}")))
        return [page for page in found if self._is_edited(page)]

    def _is_edited(self, page: str) -> bool:
        data = self._writer.read(page) or b""
        conflict = self._writer.conflict_on(page, data)
        if conflict is not None:
            return pages.is_ours(data, conflict)
        seen = look(data)
        return seen is not None and Edited.LISTING in seen.edited

    def edit_of(self, page: str) -> Edit | None:
        """Give what was edited on a page; None when its listing is as its source.

        Raises:
            PageError: the edit cannot be taken.
        """
        data = self._writer.read(page)
        if data is None:
            raise _refused("there is no such page", "a link is not followed")
        if (conflict := self._writer.conflict_on(page, data)) is not None:
            raise _refused(f"it has unresolved conflicts of Git from line {conflict.line} on", "run `rankbook gen` first")
        seen = look(data)
        if seen is None or seen.stamp.page != "file" or pages.page_of_file("file", seen.stamp.source) != page:
            raise _refused("this is not the page of a source", "name a page that rankbook has generated, at the place of its source")
        source = seen.stamp.source
        file = self._file(source)
        if Edited.LISTING not in seen.edited:
            return None
        before = file.read_bytes()
        seen = _with_own_ends(seen, data, before)
        if seen.source == before and Edited.TEXT not in seen.edited:
            return None
        return Edit(page, source, before, _checked(seen, before))

    def _file(self, source: str) -> Path:
        """Give the file of a source; it must be one of the book, below the root, with no link on the way."""
        root = self._settings.root
        file = root / source
        is_below = not Path(source).is_absolute() and file == Path(os.path.normpath(file)) and file.resolve() == file
        if not is_below or not file.is_relative_to(root):
            raise _refused(f"its source '{source}' leads out of the project, or through a link", "only a file below the root is written")
        if not file.is_file() or source not in self._all_sources():
            raise _refused(f"'{source}' is no source of this book", "only sources are written")
        return file

    def sweep(self) -> None:
        """Remove what a process that was killed while it wrote a source has left beside it."""
        for folder in {self._settings.root / source.rpartition("/")[0] for source in self._all_sources()}:
            for other in folder.glob(".rankbook-*.tmp"):
                if pages.is_left_behind(other.as_posix()):
                    with suppress(OSError):
                        other.unlink()

    def _all_sources(self) -> frozenset[str]:
        if self._sources is None:
            self._sources = frozenset(discover(self._settings).paths)
        return self._sources


def _with_own_ends(seen: Seen, page: bytes, before: bytes) -> Seen:
    """Give what a page shows with the line ends of its source, where those are of several kinds and Git has made the page's all alike.

    Args:
        seen: what the page shows.
        page: as it stands on disk.
        before: the source as it is.
    """
    made, embedding = embed(before), seen.stamp.embedding
    if not (isinstance(made, Embedded) and made.embedding == embedding and embedding.newline == "mixed" and seen.source is not None):
        return seen
    has_lf, has_crlf = page.count(b"\n") > page.count(b"\r\n"), b"\r\n" in page
    if has_lf and (has_crlf or "\r\n" not in made.text):
        return seen
    old, new = _LINE.findall(made.text), _LINE.findall(seen.text or "")
    said, says = ([line.rstrip("\r\n") for line in text] for text in (old, new))
    ends = [line[len(words) :] for line, words in zip(old, said, strict=True)]
    shown = ""
    for _, start, end, first, last in difflib.SequenceMatcher(None, said, says, autojunk=False).get_opcodes():
        places = (min(start + at, max(end - 1, 0)) for at in range(last - first))
        shown += "".join(words + ends[place] for words, place in zip(says[first:last], places, strict=True))
    if not embedding.final_newline:
        shown = re.sub(r"(?:\r\n|\r|\n)\Z", "", shown)
    return replace(seen, text=shown, source=restore(shown if embedding.final_newline else f"{shown}\n", embedding))


def _checked(seen: Seen, before: bytes) -> bytes:
    """Give the source that a page's listing stands for.

    Raises:
        PageError: it stands for none, or taking it would lose something.
    """
    source = seen.stamp.source
    if not seen.is_sealed:
        raise _refused("its last line is gone, so it cannot be told where its listing ends", "put the line back")
    if Edited.TEXT in seen.edited or seen.source is None:
        what = seen.problem or "what stands around its listing was edited, too, or a line of backticks ends the listing early"
        raise _refused(what, "undo that")
    if hashlib.sha256(before).hexdigest() != seen.stamp.sha256:
        what = f"its listing was edited, and {source} has changed since the page was generated"
        raise _refused(what, f"bring the edit into {source} by hand, then run `rankbook gen --force`")
    made = embed(seen.source)
    text = seen.text or ""
    if not isinstance(made, Embedded):
        raise _refused(f"{source} could not be shown any more: {made.reason}", "take that out of the listing")
    if made.text not in (text, f"{text}\n"):
        raise _refused(f"the edit changes the encoding that {source} names", "change the encoding in the source itself")
    return seen.source


def _refused(what: str, right: str) -> PageError:
    return PageError(what, right=right)


def _text(data: bytes) -> str:
    made = embed(data)
    return made.text if isinstance(made, Embedded) else data.decode(errors="replace")


def _is_blank(data: bytes) -> bool:
    return not _text(data).strip()


def _syntax_error(data: bytes) -> str:
    """Say what keeps a source from being Python; empty when nothing does."""
    try:
        syntax_tree(data)
    except SyntaxError as error:
        return f"{error.msg} (line {error.lineno})" if error.lineno else error.msg
    except (ValueError, LookupError, RecursionError, MemoryError) as error:
        return str(error) or "it is nested too deeply"
    return ""


def _lines(data: bytes) -> list[str]:
    """Give the lines of a source as a terminal may show them; line ends other than LF are visible."""
    made = embed(data)
    lines = [printable(line.removesuffix("\n")) for line in _LINE.findall(_text(data))]
    if isinstance(made, Embedded) and lines and not made.embedding.final_newline:
        lines.append("\\ No newline at end of file")
    return lines


def _write(file: Path, edit: Edit) -> None:
    """Put new bytes in a source's place at once, unless somebody else has written it meanwhile.

    Raises:
        SourceError: it cannot be written.
    """
    try:
        found = file.lstat()
        temporary = file.with_name(f".rankbook-{os.getpid()}.tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            with open(descriptor, "wb") as stream:  # noqa: PTH123 - a descriptor, not a path
                stream.write(edit.after)
            with suppress(OSError):
                os.chown(temporary, found.st_uid, found.st_gid)
            temporary.chmod(stat.S_IMODE(found.st_mode))
            if not stat.S_ISREG(found.st_mode) or file.read_bytes() != edit.before:
                raise SourceError("somebody else has written it meanwhile, so it was left alone", where=edit.source, right="run again")
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise SourceError(f"cannot write the source: {error.strerror}", where=edit.source) from error
