"""A generated page, from Markdown to HTML: headings get anchors, links the addresses of the site, listings go past Markdown untouched.

Nothing that a page holds becomes an element that Markdown does not make: before the Markdown is read each `<` in it is replaced by a
character that means nothing there, and of what comes out only the few forms in `_FORMS` are turned back into elements; every other
one is shown as text.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from rankbook.anchors import slug, unique
from rankbook.errors import RankbookError
from rankbook.site.addresses import Addresses

try:
    import pyromark
except ImportError:  # there are no wheels of it for this machine: the engine can still build the pages
    VERSION = ""
else:
    VERSION = pyromark.__version__
    _OPTIONS = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH

SOURCE = "{#source"
"""How the options of the fence that holds a page's source begin."""
_LESS = "\ufdd0"
"""Stands for `<` while Markdown is read: a character that no text may hold."""
LISTING = "\ufdd2"
"""Stands on both sides of the number of a listing."""
_FENCE = re.compile(r"(?P<ticks>`{3,}|~{3,})[ \t]*(?P<info>[^`\n\r]*)\r?\n")
_HEADING = re.compile(r"<h([1-6])>(.*?)</h\1>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_ADDRESS = re.compile(
    r"""
    "(?:
        (?<=<a\ href=") (?: ((?!/)[^"\#&:?\\]*)\#__codelineno-source-([0-9]{1,9})(?=") | ([^"]*) )
      | (?<=<img\ src=") ([^"]*)
    )
    """,
    re.VERBOSE,
)
"""Where a link leads: to a line of a listing of the book, as nearly all do, or elsewhere; or the address of a picture."""
_ENTITY = re.compile(r"&(?:#\d+|#x[0-9a-fA-F]+|\w+);")
_FOREIGN = re.compile(r"[a-z]+:|//", re.IGNORECASE)
"""Addresses on another server, from which no page loads a picture."""
_SAFE = re.compile(r"(?:https?|mailto):|[^:/?#]*(?:[/?#]|\Z)", re.IGNORECASE)
"""Addresses that a link may have: of pages and mail, and those that name no scheme."""
_IN_CODE = re.compile(rf"<code>[^<{_LESS}]*{_LESS}[^<]*</code>|<pre><code[^>]*>[^<{_LESS}]*{_LESS}[^<]*</code></pre>")
"""What Markdown has made of backticks that hold the character."""
_PARAGRAPHS = re.compile(
    rf"""
    <p>{_LESS}div\ class=(?:"|&quot;)rankbook-filter(?:"|&quot;)&gt;{_LESS}/div&gt;</p>(?P<filter>)
  | <p>[^<{_LESS}]*</p>\s*<p>{_LESS}!--\ rankbook:(?P<noted>[a-z-]+)\ --&gt;</p>  # the note stands in for the marker elsewhere
  | <p>{_LESS}!--\ rankbook:(?P<marker>[a-z-]+)\ --&gt;</p>
  | <p>{_LESS}!--[^<{_LESS}]*--&gt;</p>(?P<comment>)
    """,
    re.VERBOSE,
)
_ALLOWED = re.compile(
    rf"""
    {_LESS}code&gt;(?P<code>[^<{_LESS}]*){_LESS}/code&gt;
  | {_LESS}!--[^<{_LESS}]*?--&gt;(?P<inner>)
  | {_LESS}br\ ?/?&gt;(?P<break>)
  | {_LESS}(?P<other>)
    """,
    re.VERBOSE,
)
_PLACE = re.compile(rf"<p>{LISTING}(\d+){LISTING}</p>")
"""Stands for a listing."""
_LOST = re.compile(rf"{LISTING}(?<!<p>{LISTING})(\d+){LISTING}|{LISTING}(\d+){LISTING}(?!</p>)")
"""The same in what Markdown takes for a listing of its own, which began farther to the right."""


class Heading(Struct, frozen=True):
    """An entry of a page's table of contents."""

    level: int
    anchor: str
    text: str
    """Without elements, as HTML."""


class Target(Struct):
    """What a page links to on another page, or on itself."""

    line: int = 0
    """The last line of its listing that a link leads to."""
    anchors: set[str] = field(default_factory=set)
    """Its other anchors that links lead to."""


class Rendered(Struct, frozen=True):
    """A page as HTML."""

    prose: str
    """All of it besides its listings, for which their numbers stand."""
    listings: tuple[str, ...]
    """As elements."""
    headings: tuple[Heading, ...]
    lines: int
    """Lines of the listing, each with an anchor."""
    targets: Mapping[str, Target]
    """What the page links to, by path below the folder of all pages; the empty path for itself."""
    fences: tuple[str, ...] = ()
    """Digests of its other listings."""
    commands: Mapping[int, str] = field(default_factory=dict)
    """Digests of those that are commands for a shell, without any option, by their places."""

    @property
    def html(self) -> str:
        """The whole of it."""
        return self.whole(self.prose)

    def whole(self, prose: str) -> str:
        """Put the listings in their places.

        Args:
            prose: the page's own, or what has been made of it.
        """
        parts = _PLACE.split(prose)
        parts[1::2] = [self.listings[int(number)] for number in parts[1::2]]
        return "".join(parts)


def render(text: str, path: str, addresses: Addresses) -> Rendered:
    """Turn the Markdown of a page into HTML.

    Args:
        text: the page behind its front matter, with its line ends as they are.
        path: of the page, below the folder of all pages.
        addresses: where the pages stand on the site.

    Raises:
        RankbookError: there is nothing that reads Markdown.
    """
    if not VERSION:
        raise RankbookError("the package pyromark is not installed, which reads Markdown", right="install rankbook[site]")
    listings: list[Listing] = []
    prose = "".join(_prose(text, listings))
    sources = [place for place, listing in enumerate(listings) if listing.is_source]
    for place in sources[:-1]:  # notes, which may show what a source was before, stand above it
        listings[place] = replace(listings[place], is_source=False)
    made = pyromark.html(prose, options=_OPTIONS)
    if listings:
        made = _LOST.sub(lambda match: html.escape(listings[int(match[1] or match[2])].text), made)
    links = _Links(path, addresses)
    made = links.rewritten(made)
    headings = _Headings()
    made = _HEADING.sub(headings, made)
    if _LESS in made:
        if made.count(_LESS) > made.count(f"<p>{_LESS}"):  # else none stands in code: most pages hold nothing but notes and markers
            made = _IN_CODE.sub(_plain, made)
        made = _PARAGRAPHS.sub(_allowed, made)
    if _LESS in made:
        made = _ALLOWED.sub(_allowed, made)
    return Rendered(
        prose=made,
        listings=tuple(listing.html for listing in listings),
        headings=tuple(headings.found),
        lines=max((listing.lines for listing in listings), default=0),
        targets=links.targets,
        fences=tuple(listing.sha256 for listing in listings if not listing.is_source),
        commands={place: listing.sha256 for place, listing in enumerate(listings) if listing.is_command},
    )


class Listing(Struct, frozen=True):
    """A fence of a page."""

    language: str
    text: str
    is_source: bool
    """Whether it is the source that the page is about, whose lines have anchors."""
    is_command: bool = False
    """Whether it is a command for a shell, without any option."""

    @property
    def sha256(self) -> str:
        """Digest of its text."""
        return hashlib.sha256(self.text.encode(errors="surrogatepass")).hexdigest()

    @property
    def lines(self) -> int:
        """Number of its anchors."""
        text = self.text
        return text.count("\n") + text.count("\r") - text.count("\r\n") if self.is_source else 0

    @property
    def html(self) -> str:
        """The listing as an element."""
        from rankbook.site.highlight import highlighted  # its tables are of no use to a page without a listing

        shown = highlighted(self.text, self.language, anchors=self.is_source)
        word = html.escape(self.language)
        name = "highlight rankbook-source" if self.is_source else "highlight"
        return f'<div class="language-{word} {name}"><pre><code class="nohighlight">{shown}</code></pre></div>'


def _prose(text: str, listings: list[Listing]) -> Iterator[str]:
    """Yield the text between the listings, with a paragraph of its own in the place of each."""
    end = 0
    while (match := _opened(text, end)) is not None:
        close = _close(text, match)
        if close is None:
            break
        yield _shown(text[end : match.start()])
        yield f"\n\n{LISTING}{len(listings)}{LISTING}\n\n"
        language, _, options = match["info"].partition(" ")
        is_command = language == "bash" and not options.strip()
        listings.append(Listing(language, text[match.end() : close[0]], options.lstrip().startswith(SOURCE), is_command))
        end = close[1]
    yield _shown(text[end:])


def _opened(text: str, start: int) -> re.Match[str] | None:
    """Find where the next fence begins: at the start of a line."""
    places = {ticks: text.find(ticks, start) for ticks in ("```", "~~~")}
    while found := [place for place in places.values() if place >= 0]:
        place = min(found)
        if (place == 0 or text[place - 1] in "\n\r") and (match := _FENCE.match(text, place)) is not None:
            return match
        ticks = text[place : place + 3]
        places[ticks] = text.find(ticks, place + 1)
    return None


def _shown(text: str) -> str:
    return text.replace(_LESS, "\ufffd").replace(LISTING, "\ufffd").replace("<", _LESS)


def _close(text: str, fence: re.Match[str]) -> tuple[int, int] | None:
    """Find where the listing of a fence ends, and where the text goes on; None for a fence that nothing closes."""
    ticks = fence["ticks"]
    start = text.find(ticks, fence.end())
    while start >= 0:
        line = re.compile(rf"{re.escape(ticks)}{ticks[0]}*[ \t]*(?:\r?\n|\r|\Z)").match(text, start)
        if line is not None and text[start - 1] in "\n\r":
            return start, line.end()
        start = text.find(ticks, start + 1)
    return None


def _plain(match: re.Match[str]) -> str:
    return match[0].replace(_LESS, "&lt;")


def _allowed(match: re.Match[str]) -> str:
    return _FORMS[match.lastgroup or ""](match)


_FORMS: Mapping[str, Callable[[re.Match[str]], str]] = {
    "code": lambda match: f"<code>{match['code']}</code>",
    "filter": lambda _: '<div class="rankbook-filter"></div>',
    "noted": lambda match: f"<!-- rankbook:{match['noted']} -->",
    "marker": lambda match: f"<!-- rankbook:{match['marker']} -->",
    "comment": lambda _: "",
    "inner": lambda _: "",
    "break": lambda _: "<br>",
    "other": lambda _: "&lt;",
}
"""What becomes of each form."""


class _Links:
    """Gives links their addresses on the site, and remembers what they lead to."""

    def __init__(self, path: str, addresses: Addresses) -> None:
        self.path = path
        self.addresses = addresses
        self.targets: dict[str, Target] = {}

    def rewritten(self, page: str) -> str:
        """Rewrite the links of a page."""
        parts = _ADDRESS.split(page)
        last: dict[str, int] = {}
        for address, line in zip(parts[1::5], parts[2::5], strict=True):
            if line and (number := int(line)) > last.get(address, -1):
                last[address] = number
        to_lines = {address: f'"{self._made(f"{address}#L0", line).removesuffix("0")}' for address, line in last.items()}
        links, pictures = ({each: self._made(html.unescape(each)) for each in set(parts[place::5]) - {None}} for place in (3, 4))
        parts[1::5] = map(to_lines.get, parts[1::5])
        parts[3::5] = map({each: f'"{made}' for each, made in links.items()}.get, parts[3::5])
        parts[4::5] = map({each: '"data:,' if _FOREIGN.match(made) else f'"{made}' for each, made in pictures.items()}.get, parts[4::5])
        return "".join(filter(None, parts))

    def _made(self, written: str, line: int = 0) -> str:
        """Write an address as it is on the site.

        Args:
            written: the address.
            line: the last line of that page which a link leads to, where it is known.
        """
        if not _SAFE.match(written):
            return "#"
        if (place := self.addresses.resolve(self.path, written)) is None:
            return html.escape(written)
        target = self._target(place.path)
        target.line = max(target.line, place.line, line)
        if place.anchor:
            target.anchors.add(place.anchor)
        return html.escape(place.href)

    def _target(self, path: str) -> Target:
        return self.targets.get(path) or self.targets.setdefault(path, Target())


class _Headings:
    """Gives headings the anchors that Python-Markdown gives them."""

    def __init__(self) -> None:
        self.found: list[Heading] = []
        self._taken: set[str] = set()

    def __call__(self, match: re.Match[str]) -> str:
        level, inner = match[1], match[2]
        text = (_TAG.sub("", inner) if "<" in inner else inner).replace(_LESS, "&lt;").strip()
        anchor = unique(slug(_ENTITY.sub(lambda entity: html.unescape(entity[0]), text) if "&" in text else text), self._taken)
        self.found.append(Heading(int(level), anchor, text))
        return f"<h{level} id={anchor}>{inner}<a class=headerlink href=#{anchor}>¶</a></h{level}>"
