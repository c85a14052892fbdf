"""From a page to its listings: `collect` reads the file, `_collected` tells the whole way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markdown.extensions.toc import slugify
from msgspec import Struct
from msgspec.structs import replace

from rankbook.embedding import is_exact
from rankbook.errors import PageError
from rankbook.languages import is_run_anywhere
from rankbook.listing import About, Listing
from rankbook.listings import expected, hidden, kept
from rankbook.listings.about import SOURCE_HEADING, about_of, has_size, is_markdown
from rankbook.listings.lines import front_matter, split, without_prefix
from rankbook.listings.mending import true_end, with_longer_fence
from rankbook.listings.naming import named
from rankbook.listings.options import as_name, is_name, is_option, problem_of
from rankbook.listings.origins import origins
from rankbook.listings.refusals import why
from rankbook.listings.rendered import Heading, Shown, shown
from rankbook.listings.site import RENDERING, Site, site_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from rankbook.listings.hidden import Comment
    from rankbook.listings.superfences import Fence, Header, Record, Refused

_BOM = "\ufeff"


def collect(path: Path, page: str, site: Site | None = None) -> tuple[Listing, ...]:
    """Give the listings of a page.

    Args:
        path: the page.
        page: its path as the user names it.
        site: its site's Markdown; found from the page when None.

    Returns:
        In page order, every listing that the site renders, and every line that looks like one and is not rendered, with its problem.

    Raises:
        PageError: the page cannot be read, is not UTF-8, or the site's Markdown fails on it.
        ConfigError: the site's `mkdocs.yml` cannot be read or does not use superfences.
    """
    try:
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise PageError(f"cannot read the page: {error.strerror}", where=page, right="it must be a readable file") from error
    except UnicodeDecodeError as error:
        line = len(split(data[: error.start].decode("utf-8", "replace") + "x"))
        raise PageError("the page is not UTF-8", where=page, line=line, right="save it as UTF-8") from error
    return _known(text, page, site or site_of(path))


def about(path: Path) -> About | None:
    """Tell which source a page is about, also where it shows no listing of it, as of an empty one; None for none, and for no page."""
    try:
        lines = split(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError):
        return None
    values, skipped = front_matter(lines)
    return about_of(values, lines[skipped:])


def _known(text: str, page: str, site: Site) -> tuple[Listing, ...]:
    """Give the listings of a text from the user's cache, where nothing that they depend on has changed."""
    key = kept.key_of(text, page, site.fingerprint)
    if key is None:
        return collect_text(text, page, site)
    cache = kept.of_user()
    found = cache.get(key)
    if found is None:
        found = collect_text(text, page, site)
        cache.put(key, found)
    return found


def collect_text(text: str, page: str, site: Site) -> tuple[Listing, ...]:
    """Render a page's text and give its listings; see `collect`."""
    with RENDERING:
        return named(_collected(_Text(split(text.removeprefix(_BOM)), page, site)))


class _Text(Struct, frozen=True):
    """A whole page, or a page inside a listing."""

    lines: Sequence[str]
    """Its lines with their ends."""
    page: str
    """The page on which it stands."""
    site: Site
    first: int = 1
    """Line of that page on which it starts."""
    mended: bool = False
    """Whether the fence of its source has been made longer."""


class _View(Struct, frozen=True):
    """A text as the site shows it."""

    page: str
    first: int
    """Line of the page on which the text's Markdown starts, below its front matter."""
    body: Sequence[str]
    """Its lines of Markdown, with their ends."""
    record: Record
    shown: Shown
    origins: Sequence[int | None]
    """For each line that superfences saw, the line of `body` that it comes from."""
    tab: int
    default_language: str

    def number(self, line: int) -> int:
        """Give the page's number of a line that superfences saw; of the line that brings it in for one that stands in another file."""
        here = self.origins[line] if line < len(self.origins) else None
        if here is not None:
            return self.first + here
        above = next((origin for origin in reversed(self.origins[:line]) if origin is not None), -1)
        below = next((origin for origin in self.origins[line:] if origin is not None), len(self.body))
        return self.first + max(0, above, min(above + 1, below - 1))

    def numbers(self, start: int, end: int) -> tuple[int, ...]:
        """Give the page's numbers of lines that superfences saw, if not all of them stand on the page, one below the other."""
        here = self.origins[start : min(end, len(self.origins))]
        opening = self.origins[start - 1]
        if self._is_empty(start, end) or (opening is not None and list(here) == list(range(opening + 1, opening + 1 + len(here)))):
            return ()
        return tuple(self.number(start + place) for place in range(len(here)))

    def text(self, start: int, end: int, width: int) -> str:
        """Give the text of lines that superfences saw, as it stands on the page where it stands there."""
        if self._is_empty(start, end):
            return ""
        return "".join(self._line(line, width) for line in range(start, min(end, len(self.origins))))

    def _is_empty(self, start: int, end: int) -> bool:
        """Say whether the fence around lines that superfences saw is an empty one on the page: superfences may have padded it."""
        opening, closing = self.origins[start - 1], self.origins[min(end, len(self.origins) - 1)]
        return opening is not None and closing == opening + 1

    def _line(self, line: int, width: int) -> str:
        origin = self.origins[line]
        written = self.record.lines[line] + "\n" if origin is None else self.body[origin] if origin < len(self.body) else ""
        return without_prefix(written, width, self.tab)


def _collected(text: _Text) -> tuple[Listing, ...]:
    """Collect a text: see what the site shows, then the source that the text is about."""
    values, skipped = front_matter(text.lines)
    view = _view(text, skipped)
    rendered = _rendered(view)
    listings = sorted([*rendered, *_refused(view), *_stray(view)], key=lambda listing: listing.line)
    about = about_of(values, view.body)
    place = None if about is None else _place_of_source(listings, about)
    if about is None or place is None:
        return tuple(listings)
    source = replace(listings[place], about=about, hidden=(), name=as_name(about.source.rsplit("/", 1)[-1]))
    if listings[place] in rendered:
        known = text.mended or has_size(source.text, about)
        closing = None if known else true_end(text.lines, source.line - text.first, about, view.tab)
        if closing is not None:
            return _mended(text, source, closing)
        source = _with_children(source, about, text.site)
    return (*listings[:place], source, *listings[place + 1 :])


def _place_of_source(listings: Sequence[Listing], about: About) -> int | None:
    """Find the listing of the source that a page is about; a note may have a heading like the source's and listings below it."""
    places = [place for place, listing in enumerate(listings) if listing.heading.casefold() == SOURCE_HEADING]
    if len(places) > 1 and about.embedding is not None:
        return next((place for place in places if is_exact(listings[place].text, about.embedding)), places[0])
    return next(iter(places), None)


def _mended(text: _Text, source: Listing, closing: int) -> tuple[Listing, ...]:
    """Collect a text as it would be if the fence of its source were long enough, and say so on that listing."""
    ends = source.first_line + len(split(source.text))
    problem = (
        f"the site ends this listing at line {ends}, {closing + text.first - ends} lines before its source does, "
        "because its fence is no longer than a fence inside it; use a longer fence"
    )
    lines = with_longer_fence(text.lines, source.line - text.first, closing)
    listings = _collected(replace(text, lines=lines, mended=True))
    return tuple(replace(listing, problem=problem) if listing.line == source.line else listing for listing in listings)


def _with_children(source: Listing, about: About, site: Site) -> Listing:
    problem = source.problem if has_size(source.text, about) else source.problem or _wrong_size(source, about)
    children = _collected(_Text(split(source.text), source.page, site, source.first_line)) if is_markdown(about) else ()
    return replace(source, problem=problem, children=children)


def _wrong_size(source: Listing, about: About) -> str:
    size = len(source.text.encode())
    return f"the page says that {about.source} has {about.size:,} bytes, but its listing holds {size:,}; generate the page again"


def _view(text: _Text, skipped: int) -> _View:
    body, first, recorder = text.lines[skipped:], text.first + skipped, text.site.recorder
    plain = [line.rstrip("\r\n") for line in body]
    try:
        with text.site.at_home():
            html, record, word = recorder.convert("\n".join([*plain, ""]))
    except Exception as error:
        what = f"the site's Markdown fails on it: {type(error).__name__}: {error}"
        raise PageError(what, where=text.page, line=first, right="the same error stops the site's build") from error
    seen_from = origins(plain, record)
    return _View(text.page, first, body, record, shown(html, word), seen_from, recorder.tab_width, recorder.default_language)


def _rendered(view: _View) -> list[Listing]:
    fences = [view.record.fences[number] for number in sorted(view.shown.fences)]
    listings = [_of_fence(view, view.record.fences[number], view.shown.fences[number]) for number in sorted(view.shown.fences)]
    return expected.attached(listings, lambda place: place > 0 and _touches(view, fences[place - 1], fences[place]))


def _touches(view: _View, above: Fence, below: Fence) -> bool:
    return above.width == below.width and hidden.is_blank(view.record.lines, above.end, below.start)


def _of_fence(view: _View, fence: Fence, heading: Heading) -> Listing:
    header = replace(fence.header, language=fence.header.language or view.default_language)
    is_custom = fence.custom and not is_run_anywhere(header.language)
    header = _of_ours(header) if fence.custom and not is_custom else header
    options = dict.fromkeys(header.classes, "") | {key: value or "" for key, value in header.values.items()}
    comment = next((comment for comment in _comments(view) if _is_above(view, comment, fence)), None)
    return Listing(
        page=view.page,
        name=_base_name(options, heading),
        language=header.language.lower(),
        options=options,
        text=view.text(fence.start + 1, fence.end - 1, fence.width),
        line=view.number(fence.start),
        first_line=view.number(fence.start) + 1,
        problem=None if is_custom else _flipped(view, fence, header) or _problem(header) or (_ill(view, comment) if comment else None),
        heading=heading.text,
        custom=is_custom,
        hidden=tuple(_hidden_lines(view, comment, fence)) if comment else (),
        lines=view.numbers(fence.start + 1, fence.end - 1),
    )


def _of_ours(header: Header) -> Header:
    """Give the header of a fence that a formatter of the site's own renders with the options alone that are ours: it has others."""
    classes = tuple(each for each in header.classes if is_option(each, header.language))
    values = {key: value for key, value in header.values.items() if is_option(key, header.language)}
    return replace(header, classes=classes, values=values)


def _comments(view: _View) -> list[Comment]:
    """Give the comments for rankbook that the page does not show, as they should be, or that it shows as text."""
    return [comment for number, comment in enumerate(view.record.comments) if number in view.shown.comments or number in view.shown.broken]


def _is_above(view: _View, comment: Comment, fence: Fence) -> bool:
    return comment.end <= fence.start and hidden.is_blank(view.record.lines, comment.end, fence.start)


def _ill(view: _View, comment: Comment) -> str | None:
    return hidden.problem_of(comment, view.number, shown=view.record.comments.index(comment) in view.shown.broken)


def _hidden_lines(view: _View, comment: Comment, fence: Fence) -> Iterator[tuple[int, str]]:
    if _ill(view, comment) is None:
        for line in range(comment.start + 1, comment.end - 1):
            yield view.number(line), view.text(line, line + 1, fence.width)


def _stray(view: _View) -> list[Listing]:
    """Give the comments for rankbook that stand above no listing, each as a listing with its problem."""
    fences = [view.record.fences[number] for number in view.shown.fences]
    return [
        _of_comment(view, comment, (view.shown.comments | view.shown.broken)[view.record.comments.index(comment)])
        for comment in _comments(view)
        if not any(_is_above(view, comment, fence) for fence in fences)
    ]


def _of_comment(view: _View, comment: Comment, heading: Heading) -> Listing:
    return Listing(
        page=view.page,
        name=_base_name({}, heading),
        language="text",
        options={},
        text="",
        line=view.number(comment.start),
        first_line=view.number(comment.start) + 1,
        problem=_ill(view, comment) or "these hidden lines stand above no listing; put the comment directly above the fence of theirs",
        heading=heading.text,
    )


def _problem(header: Header) -> str | None:
    if header.ignored:
        return f"the site passes over '{header.ignored}'; write options in braces: {{ranks=2}}"
    return problem_of(header.classes, header.values, header.language)


def _flipped(view: _View, fence: Fence, header: Header) -> str | None:
    """Tell when a fence without a language begins at what its author meant as a closing line."""
    before = next((refused for refused in view.record.refused if refused.end == fence.start), None)
    if header.language or before is None or before.closing:
        return None
    return (
        f"the site takes this line as an opening fence, because it does not take the one at line {view.number(before.start)}; mend that one"
    )


def _refused(view: _View) -> list[Listing]:
    shown_as_text = {number: heading for number, heading in view.shown.refused.items() if number not in view.record.hidden}
    return [_of_refused(view, view.record.refused[number], heading) for number, heading in shown_as_text.items()]


def _of_refused(view: _View, refused: Refused, heading: Heading) -> Listing:
    end = refused.end - 1 if refused.closing else refused.end
    language = refused.language
    return Listing(
        page=view.page,
        name=_base_name({}, heading),
        language=language.lower(),
        options={},
        text=view.text(refused.start + 1, end, refused.width),
        line=view.number(refused.start),
        first_line=view.number(refused.start) + 1,
        problem=why(refused, view.record, view.number),
        heading=heading.text,
        refused=True,
    )


def _base_name(options: Mapping[str, str], heading: Heading) -> str:
    chosen = options.get("name", "")
    return chosen if is_name(chosen) else as_name(heading.anchor or slugify(heading.text, "-"))
