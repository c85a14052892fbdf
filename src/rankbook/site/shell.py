"""The shell: a page that an engine has built, cut into what all pages share and the places that each page fills."""

from __future__ import annotations

import hashlib
import html
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from rankbook.errors import RankbookError
from rankbook.site import lean, parts
from rankbook.site.markdown import Heading

OPEN = "<!-- rankbook:shell -->"
CLOSE = "<!-- /rankbook:shell -->"
"""Between these two lines of its Markdown the shell page holds what each page replaces."""
_FIRST, _INNER, _LAST = "Rankbook first part", "Rankbook inner part", "Rankbook last part"
_CUT = "\ufdd1"
"""Stands on both sides of a place's name while the shell is cut."""
_PLACES = ("base", "title", "name", "address", "description", "top", "content", "contents")
_BARE = f"{_CUT}(?:base|top|anchor){_CUT}"
"""Places whose values need no quotes around them."""
_BOXED = re.compile(rf"<span class=md-ellipsis>({_CUT}text{_CUT})</span>")
_CONTENT = re.compile(
    rf"{OPEN}.*{CLOSE}"
    r"|(?<=>)\s*<h1\b(?=(?:(?!</article>).)*</article>).*?(?=<aside class=\"md-source-file|<form class=\"md-feedback|</article>)"
    r"|<h1\b.*?(?=</main>)",
    re.DOTALL,
)
"""The content of the shell page: what stands between its marks, or an article from its title on."""
_DROPPED = re.compile(
    r"""
    <link\b(?=[^>]*\ rel="(?:prev|next)")[^>]*>\s*
  | <meta\b(?=[^>]*\ (?:property="og:|name="twitter:))[^>]*>\s*
  | <nav\b(?=[^>]*\ class="md-footer__inner).*?</nav>\s*
  | <a\ [^>]*class="md-content__button.*?</a>\s*
  | <aside\ class="md-source-file".*?</aside>\s*
  | <li\ class="nav-item">\s*<a\ [^>]*?rel="(?:prev|next)".*?</li>\s*
  | <div\ class="rst-footer-buttons".*?</div>\s*
  | <span><a\ [^>]*style="color:\ \#fcfcfc".*?</span>\s*
  | <script>\s*//\ Current\ page\ data.*?</script>\s*
    """,
    re.VERBOSE | re.DOTALL,
)
"""What themes say of one page only: its neighbours, how to edit it, when it was changed, cards of it."""
_TAG = re.compile(
    r"""(?P<kept><!--.*?-->|<(?P<name>script|style|pre|textarea)\b[^>]*>.*?</(?P=name)>)|<[a-zA-Z](?:"[^"]*"|'[^']*'|[^"'<>])*>""",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"""(\s[^\s=>"'/]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_HEADING = re.compile(r"<h1\b.*?</h1>", re.DOTALL)
_SPACE = re.compile(r"(?P<kept><(?P<name>script|style|pre|textarea)\b.*?</(?P=name)>)|\s*\n\s*", re.DOTALL)
_EMPTY = re.compile(r"\n(?=<)(?<=>\n)")
_ADDRESS = re.compile(r'(\s(?:href|src|action|poster)=)"([^"]*)"')
_SCRIPT = re.compile(r"<script\b.*?</script>", re.DOTALL)
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|//|[/#]|\Z", re.IGNORECASE)
_CANONICAL = re.compile(r'(<link\b(?=[^>]* rel="canonical")[^>]*? href=")([^"]*)"')
_DESCRIPTION = re.compile(r'(<meta\b(?=[^>]* name="description")[^>]*? content=")[^"]*"')
_TITLE = re.compile(r"(<title>)(.*?)(</title>)", re.DOTALL)
_NAMES = (
    re.compile(r'(data-md-component="header-topic">\s*<span class="md-ellipsis">)(.*?)(</span>)', re.DOTALL),
    re.compile(r'(<li class="breadcrumb-item active">)(.*?)(</li>)', re.DOTALL),
)
"""Where themes name the page, besides its title."""
_CURRENT = re.compile(r'(<a class="reference internal current" href=")#"')
_SKIP = re.compile(r'(<a\b(?=[^>]* class="md-skip")[^>]*? href="#)[^"]*"')
"""The way to the content, whichever heading that begins with for the engine."""
_LIST_ITEM = re.compile(r"<(/?)li\b")
_LIST = re.compile(r"<(/?)ul\b[^>]*>")


def source(title: str) -> str:
    """Write the Markdown of a shell page whose table of contents shows all that a shell has to know of it.

    Args:
        title: of the page, as it stands in its front matter.
    """
    heading = title.replace("<", "&lt;")
    return (
        f"---\ntitle: {_quoted(title)}\nsearch:\n  exclude: true\n---\n\n{OPEN}\n\n# {heading}\n\n"
        f"## {_FIRST}\n\n### {_INNER}\n\n## {_LAST}\n\n{CLOSE}\n"
    )


def _quoted(title: str) -> str:
    return "'" + title.replace("'", "''") + "'"


class Contents(Struct, frozen=True):
    """How the theme writes an entry of the table of contents."""

    leaf: tuple[str, ...]
    """Pieces with the names of places between them: `anchor` and `text`."""
    parent: tuple[str, ...]
    """The same for an entry that has others below it, with a place `inner`; empty when the theme shows none."""
    inner: tuple[str, ...]

    def tight(self) -> Contents:
        """Write entries in fewer characters: a long one is broken over lines, for which it needs no element inside of its link."""
        return Contents(*(_tight(pieces) for pieces in (self.leaf, self.parent, self.inner)))

    def written(self) -> dict[str, str]:
        """Give each kind of entry as one text, with the names of places between marks."""
        tight = self.tight()
        return {"leaf": _CUT.join(tight.leaf), "parent": _CUT.join(tight.parent or tight.leaf), "inner": _CUT.join(tight.inner)}

    def of(self, headings: Sequence[Heading]) -> str:
        """Write the entries of a page."""
        return "".join(self._entry(heading, below) for heading, below in _nested(headings))

    def _entry(self, heading: Heading, below: Sequence[Heading]) -> str:
        if below and self.parent:
            return _filled(self.parent, {**_entry(heading), "inner": "".join(_filled(self.inner, _entry(each)) for each in below)})
        return _filled(self.leaf, _entry(heading))


_PLAIN = Contents(
    ("<li><a href=#", "anchor", ">", "text", "</a>"),
    ("<li><a href=#", "anchor", ">", "text", "</a><ul>", "inner", "</ul>"),
    ("<li><a href=#", "anchor", ">", "text", "</a>"),
)
"""A list that a script makes the theme's."""
_LINKED = ('<li class="md-nav__item"><a href="#', "anchor", '" class="md-nav__link">', "text")
_MATERIAL = Contents(
    (*_LINKED, "</a></li>"),
    (*_LINKED, '</a><nav class="md-nav"><ul class="md-nav__list">', "inner", "</ul></nav></li>"),
    (*_LINKED, "</a></li>"),
)
"""A list as Material has it, where its entries were changed."""


def _tight(pieces: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_BOXED.sub(r"\1", lean.tight(_CUT.join(pieces), _BARE)).split(_CUT)) if pieces else ()


def _nested(headings: Iterable[Heading]) -> list[tuple[Heading, list[Heading]]]:
    found: list[tuple[Heading, list[Heading]]] = []
    for heading in headings:
        if heading.level == 2:
            found.append((heading, []))
        elif heading.level == 3 and found:
            found[-1][1].append(heading)
    return found


def _entry(heading: Heading) -> dict[str, str]:
    return {"anchor": heading.anchor, "text": heading.text.replace('"', "&quot;")}


_ENGLISH = re.compile(r"<html\b[^>]*\slang=[\"']?en\b", re.IGNORECASE)


class Shell(Struct, frozen=True):
    """A page of the engine, ready to be filled again and again."""

    pieces: tuple[str, ...]
    """Text, name of a place, text, and so on."""
    contents: Contents | None
    """None when the theme shows no table of contents."""
    canonical: str
    """Address of the site; empty when the engine was not told."""
    script: str
    """What the site holds as `lean.FILE`; empty for nothing."""
    style: str
    """What the site holds as `lean.STYLE`; empty for nothing."""
    digest: str
    """Changes whenever a page would look otherwise."""

    @classmethod
    def of(cls, page: str, *, file: str, title: str, label: str = "", headings: Sequence[Heading] = ()) -> Shell:
        """Cut a page that an engine has built.

        Args:
            page: its HTML.
            file: of the page, below the folder of the site.
            title: of the page, as its front matter says.
            label: what the navigation calls the page, where that is something else.
            headings: of the page; by default those of `source`.

        Raises:
            RankbookError: the page does not hold its own content.
        """
        text = _DROPPED.sub("", _with_quotes(page.replace(_CUT, "")))
        found = _CONTENT.search(text)
        if found is None:
            raise RankbookError(
                "the page that the site's engine has built for the book has no content", where=file, right="build the site again"
            )
        known = list(headings) or own_headings(title)
        head, tail = text[: found.start()], text[found.end() :]
        text = f"{head}{_place('content')}{tail}"
        text = _SKIP.sub(lambda match: f'{match[1]}{_place("top")}"', text)
        text, contents = _contents(text, known)
        if any(mark in text for mark in (_FIRST, _INNER, _LAST)):
            text, contents = _contents_by_links(text, known, contents)
        canonical = match[2] if (match := _CANONICAL.search(text)) else ""
        text = _named(text, (title, label or title), known[0] if known and known[0].anchor else None)
        text = _addressed(_SPACE.sub(_spaced, text), file)
        text, script, is_plain = parts.parted(text, _CUT, contents.written() if contents else None)
        text, style = lean.drawn(text, f"{_place('base')}/{lean.STYLE}")
        text = lean.tight(text, _BARE)
        contents = _PLAIN if is_plain else contents and contents.tight()
        pieces = tuple(text.split(_CUT))
        told = repr((pieces, contents, canonical)).encode(errors="surrogatepass")
        return cls(pieces, contents, _site(canonical, file), script, style, hashlib.sha256(told).hexdigest())

    @property
    def is_english(self) -> bool:
        """Whether the site says of itself that it is in English, as its pages are."""
        return _ENGLISH.search(self.pieces[0]) is not None

    def filled(self, depth: int, values: Mapping[str, str]) -> str:
        """Fill a page.

        Args:
            depth: folders of the site that the page's file lies in.
            values: HTML of each place: `title`, `name`, `address`, `description`, `top`, `content`, `contents`.
        """
        return _filled(_rooted(self.pieces, depth), values)


@lru_cache(maxsize=256)
def _rooted(pieces: tuple[str, ...], depth: int) -> tuple[str, ...]:
    """Put the way up to the site's folder into the pieces."""
    base = "/".join([".."] * depth) or "."
    texts, places = [pieces[0]], []
    for name, text in zip(pieces[1::2], pieces[2::2], strict=True):
        if name == "base":
            texts[-1] += base + text
        else:
            places.append(name)
            texts.append(text)
    return tuple(part for pair in zip(texts, (*places, ""), strict=True) for part in pair)[:-1]


def _filled(pieces: Sequence[str], values: Mapping[str, str]) -> str:
    parts = list(pieces)
    parts[1::2] = [values[name] for name in pieces[1::2]]
    return "".join(parts)


def _place(name: str) -> str:
    return f"{_CUT}{name}{_CUT}"


def own_headings(title: str, anchors: Mapping[str, str] | None = None) -> list[Heading]:
    """Give the headings of `source`.

    Args:
        title: of the page.
        anchors: of the headings by their text, as an engine has made them; by default those that it makes unless it is told otherwise.
            What it leaves out of the table of contents has none, and is left out.
    """
    from rankbook.anchors import slug

    texts = ((1, title), (2, _FIRST), (3, _INNER), (2, _LAST))
    if anchors is None:
        return [Heading(level, slug(html.unescape(text)), text) for level, text in texts]
    top = next((anchor for text, anchor in anchors.items() if text not in (_FIRST, _INNER, _LAST)), "")
    found = [Heading(level, anchors.get(text, top if level == 1 else ""), text) for level, text in texts]
    return [heading for heading in found if heading.anchor or heading.level == 1]


def emptied(content: str) -> str:
    """Leave the title alone of the content that an engine has made of `source`: others may read it.

    Args:
        content: its HTML.
    """
    title = _HEADING.search(content)
    return f"{OPEN}\n{title[0] if title else ''}\n{CLOSE}\n"


def _with_quotes(page: str) -> str:
    """Put the values of attributes in double quotes, as engines write them: what makes pages small takes them away."""

    def quoted(match: re.Match[str]) -> str:
        said = next(value for value in match.groups()[1:] if value is not None)
        return match[0] if '"' in said else f'{match[1]}="{said}"'

    return _TAG.sub(lambda tag: _opened(tag, quoted) if tag["kept"] else _ATTRIBUTE.sub(quoted, tag[0]), page)


def _opened(tag: re.Match[str], quoted: Callable[[re.Match[str]], str]) -> str:
    """Do so in the first tag of an element whose content stays as it is."""
    if tag["name"] is None:
        return tag[0]
    head, end, rest = tag[0].partition(">")
    return f"{_ATTRIBUTE.sub(quoted, head)}{end}{rest}"


def _spaced(match: re.Match[str]) -> str:
    return match["kept"] or "\n"


def _named(text: str, names: Sequence[str], top: Heading | None) -> str:
    """Make places of what the page says of itself."""
    name, *others = [html.escape(html.unescape(each), quote=False) for each in names]

    def titled(match: re.Match[str]) -> str:
        said = match[2].strip()
        start = next((each for each in (name, *others) if said.startswith(each)), None)
        rest = f" - {said}" if start is None else said.removeprefix(start)
        return f"{match[1]}{_place('title')}{rest}{match[3]}"

    text = _TITLE.sub(titled, text, count=1)
    for pattern in _NAMES:
        text = pattern.sub(lambda match: f"{match[1]}{_place('name')}{match[3]}", text)
    text = _CANONICAL.sub(lambda match: f'{match[1]}{_place("address")}"', text)
    text = _DESCRIPTION.sub(lambda match: f'{match[1]}{_place("description")}"', text)
    text = _CURRENT.sub(r'\1"', text).replace('aria-current="page"', 'aria-current="true"')
    if top is not None:
        text = re.sub(
            rf'href="#{re.escape(top.anchor)}"([^>]*>)(\s*{re.escape(name)}(?=\s*<))?',
            lambda match: f'href="#{_place("top")}"{match[1]}{_place("name") if match[2] else ""}',
            text,
        )
    return text


def _addressed(text: str, file: str) -> str:
    """Make all addresses relative to the site's folder."""
    folder = posixpath.dirname(file)

    def based(match: re.Match[str]) -> str:
        address = match[2]
        if (_ABSOLUTE.match(address) and address) or _CUT in address:
            return match[0]
        path, mark, rest = re.fullmatch(r"([^?#]*)([?#]?)(.*)", address, re.DOTALL).groups()  # type: ignore[union-attr]
        below = posixpath.normpath(posixpath.join(folder, path)) if path else file
        slash = "/" if path.endswith(("/", "/.", "/..")) or path in (".", "..") else ""
        return f'{match[1]}"{_place("base")}/{"" if below == "." else below}{slash if below != "." else ""}{mark}{rest}"'

    up = "/".join([".."] * (folder.count("/") + 1)) if folder else "."
    start = re.compile(rf"""(["']){re.escape(up)}(?=/|\1)""" if folder else r"""(["'])(?:\.(?=/|\1)|(?=(?:assets|search)/))""")

    def rooted(match: re.Match[str]) -> str:
        slash = "" if match[0].endswith((".", "/")) else "/"
        return f"{match[1]}{_place('base')}{slash}"

    parts, end = [], 0
    for script in _SCRIPT.finditer(text):
        head, opened, body = script[0].partition(">")
        parts += [_ADDRESS.sub(based, text[end : script.start()]), _ADDRESS.sub(based, head), opened, start.sub(rooted, body)]
        end = script.end()
    return "".join([*parts, _ADDRESS.sub(based, text[end:])])


def _site(canonical: str, file: str) -> str:
    for ending in (file, file.removesuffix("index.html")):
        if canonical.endswith(ending):
            return canonical.removesuffix(ending) if ending else canonical
    return ""


def _contents(text: str, headings: Sequence[Heading]) -> tuple[str, Contents | None]:
    """Make a place of each table of contents, and learn from the last one how its entries are written."""
    entries = _nested(headings)
    if not entries:
        return text, None
    first, last = entries[0][0], entries[-1][0]
    deep = next(((heading, below[0]) for heading, below in entries if below), None)
    plain = next((heading for heading, below in reversed(entries) if not below), last)
    made: Contents | None = None
    position = 0
    while (opened := _item(text, first, position)) is not None and (closed := _item(text, last, opened[0])) is not None:
        leaf = _item(text, plain, opened[0])
        if leaf is None:
            break
        made = _learnt(text, opened[0], plain, leaf, deep)
        text = f"{text[: opened[0]]}{_place('contents')}{text[closed[1] :]}"
        position = opened[0]
    return text, made


def _contents_by_links(text: str, headings: Sequence[Heading], learnt: Contents | None) -> tuple[str, Contents | None]:
    """Make a place of the list around the links to our own headings, where the entries of a theme are not each one item of a list.

    What is in no list goes.
    """
    links = [re.compile(rf'<a\b[^>]*href="#{re.escape(each.anchor)}"[^>]*>.*?</a>', re.DOTALL) for each in headings if each.level > 1]
    while found := [match for link in links if (match := link.search(text))]:
        first, last = min(match.start() for match in found), max(match.end() for match in found)
        around = _list_around(text, first, last)
        if around is None:
            for link in links:
                text = link.sub("", text)
            break
        learnt = learnt or (_MATERIAL if "md-nav__link" in found[0][0] else _PLAIN)
        text = f"{text[: around[0]]}{_place('contents')}{text[around[1] :]}"
    return text, learnt


def _list_around(text: str, first: int, last: int) -> tuple[int, int] | None:
    """Find what stands in the innermost list that holds a part of a text whole."""
    opened: list[int] = []
    for tag in _LIST.finditer(text):
        if not tag[1]:
            opened.append(tag.end())
        elif opened:
            start = opened.pop()
            if start <= first and tag.start() >= last:
                return start, tag.start()
    return None


def _learnt(text: str, start: int, plain: Heading, leaf: tuple[int, int], deep: tuple[Heading, Heading] | None) -> Contents:
    single = _cut(text[slice(*leaf)], plain)
    if deep is not None and (outer := _item(text, deep[0], start)) is not None and (inner := _item(text, deep[1], outer[0])) is not None:
        if inner[1] <= outer[1]:
            around = f"{text[outer[0] : inner[0]]}{_place('inner')}{text[inner[1] : outer[1]]}"
            return Contents(single, _cut(around, deep[0]), _cut(text[slice(*inner)], deep[1]))
        return Contents(single, (), ())
    if "md-nav__item" not in text[slice(*leaf)]:
        return Contents(single, (), ())
    end = _CUT.join(single).rindex("</li>")
    nested = f'<nav class="md-nav" aria-label="{_place("text")}"><ul class="md-nav__list">{_place("inner")}</ul></nav>'
    whole = _CUT.join(single)
    return Contents(single, tuple(f"{whole[:end]}{nested}{whole[end:]}".split(_CUT)), single)


def _item(text: str, heading: Heading, start: int) -> tuple[int, int] | None:
    """Find the list item of a heading's entry, with all below it; None where the link stands in none."""
    link = text.find(f'href="#{heading.anchor}"', start)
    opened = text.rfind("<li", start, link) if link >= 0 else -1
    if opened < 0:
        return None
    depth = 0
    for tag in _LIST_ITEM.finditer(text, opened):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return (opened, text.index(">", tag.end()) + 1) if tag.start() > link else None
    return None


def _cut(item: str, heading: Heading) -> tuple[str, ...]:
    name = re.escape(heading.text)
    item = item.replace(f'href="#{heading.anchor}"', f'href="#{_place("anchor")}"')
    item = re.sub(rf"(?<=[>\"\s]){name}(?=[<\"\s])", lambda _: _place("text"), item)
    return tuple(_SPACE.sub("\n", item).split(_CUT))
