"""What a run of the documents wing has done, or would do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from msgspec import Struct, field

Progress = Callable[[str, int, int], None]
"""Told of each step: its name, how much is done, how much there is."""


class Report(Struct, frozen=True):
    """What a run has done, or would do."""

    sources: int
    pages: int
    """Pages of the book, without the other files of its folder: pictures, and the inventory of names."""
    written: tuple[str, ...] = ()
    """Pages, and other files, that are new or have changed."""
    tidied: tuple[str, ...] = ()
    """Those among them that say the same as before: notes have gone to their places, or blanks and line ends are as they were."""
    unchanged: int = 0
    """Pages."""
    removed: tuple[str, ...] = ()
    """Pages, and other files, whose source is gone."""
    kept: tuple[str, ...] = ()
    """Pages, and other files, not written because a person made what stands in their place."""
    unstaged: tuple[str, ...] = ()
    """Pages, and other files, that are not in Git's index as they stand on disk, of a run that asks for that."""
    warnings: tuple[str, ...] = ()
    """What a user should know, a sentence each."""
    unparsed: tuple[str, ...] = ()
    """Sources that could not be parsed, in the order of their paths: `tests/a.py:3: invalid syntax`."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Time of each step."""

    @property
    def changes(self) -> tuple[str, ...]:
        """Pages written and removed."""
        return tuple(sorted((*self.written, *self.removed)))


def told_of_unparsed(places: Sequence[str]) -> Iterator[str]:
    """Say which sources could not be parsed: of many the first, and how many more there are.

    Args:
        places: as in `Report.unparsed`.
    """
    for place in places[:MOST_TOLD]:
        yield f"{place}; it could not be parsed, so its page tells what its other statements hold"
    more = len(places) - MOST_TOLD
    if more > 0:
        yield f"{plural(more, 'more file')} could not be parsed; the page of each says why"


MOST_TOLD = 5
"""Files that could not be parsed of which a run speaks each by itself."""


def pages_among(paths: Collection[str], suffix: str = ".md") -> int:
    """Count the pages among files: of a book, or with `.html` of a site."""
    return sum(path.endswith(suffix) for path in paths)


def others_among(counts: Mapping[str, Collection[str]], suffix: str = ".md") -> Iterator[str]:
    """Say how many files that are no pages there are: `1 other file written`.

    Args:
        counts: files by what has become of them.
        suffix: end of the names of pages.
    """
    for word, paths in counts.items():
        if others := len(paths) - pages_among(paths, suffix):
            yield f"{plural(others, 'other file')} {word}"


def plural(count: int, one: str, many: str = "") -> str:
    """Say how many there are: `1 file`, `1,234 files`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
