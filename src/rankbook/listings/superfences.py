"""The one place that knows the inside of `pymdownx.superfences`.

What a site shows as a listing is decided by its block preprocessor line by line, and nothing public tells where a fence began, where it
ended, and why one was given up. `Recorder` is that preprocessor with a note taken at each of those points. In place of the highlighted
code it leaves an empty element with the fence's number, so that nothing is highlighted and the final HTML tells what is shown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from markdown.extensions.attr_list import get_attrs_and_remainder
from markdown.preprocessors import Preprocessor
from msgspec import Struct, field
from pymdownx.superfences import RE_OPTIONS, SuperFencesBlockPreprocessor, SuperFencesRawBlockPreprocessor

from rankbook.listings.hidden import Comment, comments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import markdown

_NAME = "fenced_code_block"
_RAW_NAME = "fenced_raw_block"
_OPENING = re.compile(
    r"(?P<prefix>[ \t>]*(?P<item>(?:[-*+]|\d{1,9}[.)])[ \t]+)?)(?P<fence>`{3,}(?=[^`]*\Z)|~{3,})(?P<header>.*)", re.DOTALL
)


class Header(Struct, frozen=True):
    """What the opening line of a fence says."""

    language: str = ""
    """As written."""
    classes: tuple[str, ...] = ()
    """Without the one that is the language."""
    values: Mapping[str, str | None] = field(default_factory=dict)
    """Keys with their values; None for a word without one."""
    ignored: str = ""
    """What follows the language and is passed over, on a site with `relaxed_headers`."""


class Fence(Struct, frozen=True):
    """A fence that superfences took; lines are counted from 0 in the lines that it saw."""

    start: int
    """Its opening line."""
    end: int
    """The line after its closing line."""
    width: int
    """Columns of its indentation and quote marks."""
    header: Header
    custom: bool
    """Whether a formatter of the site's own renders it."""


class Refused(Struct, frozen=True):
    """A line that looks like an opening fence, and that superfences did not take."""

    start: int
    end: int
    """The line after the last one that its author meant to be in it."""
    width: int
    header: str
    """What follows the fence on its line."""
    fence: str
    """Its run of backticks or tildes."""
    closing: str
    """The run that seems to close it; empty when there is none."""
    in_item: bool
    """Whether it stands on the line of a list marker."""

    @property
    def language(self) -> str:
        """Language that its header seems to name; empty when it seems to name none."""
        found = re.match(r"(?:\{[ \t]*\.|\.)?([\w#+-][\w#.+-]*)", self.header)
        return found[1] if found else ""


class Abandoned(Struct, frozen=True):
    """A fence that superfences began and gave up."""

    start: int
    at: int
    """The line that made it give up."""


class Record(Struct, frozen=True):
    """What superfences did with one text."""

    lines: Sequence[str]
    """The lines that it saw."""
    fences: Sequence[Fence]
    refused: Sequence[Refused]
    abandoned: Sequence[Abandoned]
    unclosed: int | None
    """Opening line of the fence that is open at the end of the text."""
    hidden: frozenset[int]
    """Numbers of refused lines that stand in raw HTML."""
    padded: Sequence[int]
    """Opening lines of empty fences to which superfences added an empty line, as it does on a site that preserves tabs."""
    comments: Sequence[Comment] = ()
    """Comments for rankbook outside the fences that were taken."""


class Recorder(SuperFencesBlockPreprocessor):  # type: ignore[misc]
    """Superfences' block preprocessor, which also keeps a `Record`."""

    def __init__(self, original: SuperFencesBlockPreprocessor, raw: _RawFences | None) -> None:
        super().__init__(original.md)
        self.config = original.config
        self.extension = original.extension
        self._raw = raw
        self._begin("rankbookfence")

    def convert(self, text: str) -> tuple[str, Record, str]:
        """Render a text.

        Returns:
            The HTML; the record; the word that marks places in that HTML: `<div data-word="3">` for a fence, `word3z` in a text for a
            refused line, `word3c` for a comment.
        """
        word = "rankbookfence"
        while word in text:
            word += "x"
        self._begin(word)
        html = self.md.reset().convert(text)
        padded = self._raw.padded if self._raw else ()
        hidden = frozenset(self._hidden)
        return html, Record(self._lines, self._taken, self._refused, self._abandoned, self._unclosed, hidden, padded, self._comments), word

    @property
    def tab_width(self) -> int:
        """Columns between tab stops."""
        return int(self.tab_len)

    @property
    def default_language(self) -> str:
        """Language of a fence that names none, by the site's settings; empty when there is none."""
        self.get_hl_settings()
        return self.default_lang if isinstance(self.default_lang, str) else ""

    def _begin(self, word: str) -> None:
        self._word = word
        self._lines: Sequence[str] = ()
        self._taken: list[Fence] = []
        self._refused: list[Refused] = []
        self._comments: list[Comment] = []
        self._abandoned: list[Abandoned] = []
        self._unclosed: int | None = None
        self._hidden: set[int] = set()
        self._line = -1
        self._opening = -1
        self._header = Header()
        self.fence: str | None = None

    # Superfences calls exactly one of the next two for each line: the first outside a fence, the second inside one.

    def parse_whitespace(self, line: str) -> str:
        """Count a line outside a fence."""
        self._line += 1
        self._opening = self._line
        return str(super().parse_whitespace(line))

    def parse_fence_line(self, line: str) -> Any:
        """Count a line inside a fence."""
        self._line += 1
        return super().parse_fence_line(line)

    def parse_options(self, m: re.Match[str]) -> bool:
        """Note a header without braces."""
        pairs = RE_OPTIONS.finditer(m["options"] or "")
        self._header = Header(m["lang"] or "", values={pair["key"]: pair["value"] for pair in pairs})
        return bool(super().parse_options(m))

    def handle_attrs(self, m: re.Match[str]) -> bool:
        """Note a header with braces."""
        pairs, _ = get_attrs_and_remainder(m["attrs"])
        classes = [value or "" for key, value in pairs if key == "."]
        language = m["lang"] or (classes.pop(0) if classes else "")
        self._header = Header(language, tuple(classes), {key: value for key, value in pairs if key != "."})
        return bool(super().handle_attrs(m))

    def handle_unrecognized(self, m: re.Match[str]) -> bool:
        """Note a header that only `relaxed_headers` takes."""
        ignored = m["unrecognized"] or m["options"] or m["attrs"] or ""
        self._header = Header(m["lang"] or "", ignored=ignored.strip())
        return bool(super().handle_unrecognized(m))

    def clear(self) -> None:
        """Note a fence that is given up."""
        if self.fence is not None:
            self._abandoned.append(Abandoned(self._opening, self._line))
        super().clear()

    def process_nested_block(self, ws: str, content: str, start: int, end: int) -> None:
        """Note a fence that is taken, and leave its number where its code would be."""
        custom = self.formatter is not self.extension.superfences[0]["formatter"]
        marker = f'<div data-{self._word}="{len(self._taken)}"></div>'
        self._taken.append(Fence(start, end, self.ws_virtual_len, self._header, custom))
        self.last = ws + self.normalize_ws(content)
        self._store(self.normalize_ws("\n".join(self.code)) + "\n", marker, start, end)
        self.fence = None
        self.clear()

    def reassemble(self, lines: list[str]) -> list[str]:
        """Note what was refused, and mark it, before the fences are put in."""
        self._lines = lines
        self._unclosed = self._opening if self.fence is not None else None
        self._refused = refused(lines, self._taken, self.tab_width)
        marked = list(lines)
        for number, line in enumerate(self._refused):
            place = marked[line.start].index(line.fence) + len(line.fence)
            marked[line.start] = f"{marked[line.start][:place]}{self._word}{number}z{marked[line.start][place:]}"
        self._comments = comments(lines, lambda line: not any(fence.start <= line < fence.end for fence in self._taken))
        for number, comment in enumerate(self._comments):
            marked[comment.start] = marked[comment.start].replace("rankbook:", f"rankbook:{self._word}{number}c", 1)
        self.fence = None
        return list(super().reassemble(marked))

    def note_hidden(self) -> None:
        """Note which refused lines the HTML preprocessor has put aside with raw HTML."""
        if self._refused:
            blocks = [block for block in self.md.htmlStash.rawHtmlBlocks if isinstance(block, str) and self._word in block]
            self._hidden.update(int(number) for block in blocks for number in re.findall(rf"{self._word}(\d+)z", block))


class _RawFences(SuperFencesRawBlockPreprocessor):  # type: ignore[misc]
    """Takes the fences out of the way of whitespace normalization on a site that preserves tabs; the recorder gets them back."""

    def __init__(self, original: SuperFencesRawBlockPreprocessor) -> None:
        super().__init__(original.md)
        self.config = original.config
        self.extension = original.extension

        self.padded: list[int] = []

    def run(self, lines: list[str]) -> list[str]:
        """Forget the text before."""
        self.padded = []
        return list(super().run(lines))

    def _store(self, source: str, code: str, start: int, end: int) -> None:
        if end - start == 2:
            self.padded.append(start)
        super()._store(source, code, start, end)


class _AfterHtml(Preprocessor):
    """Comes after all other preprocessors."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder.md)
        self._recorder = recorder

    def run(self, lines: list[str]) -> list[str]:
        self._recorder.note_hidden()
        return lines


def install(md: markdown.Markdown) -> Recorder | None:
    """Put a recorder in superfences' place; None when the Markdown does not use superfences."""
    if _NAME not in md.preprocessors or not isinstance(original := md.preprocessors[_NAME], SuperFencesBlockPreprocessor):
        return None
    raw = _RawFences(md.preprocessors[_RAW_NAME]) if _RAW_NAME in md.preprocessors else None
    if raw:
        md.preprocessors.register(raw, _RAW_NAME, 31.05)
    recorder = Recorder(original, raw)
    md.preprocessors.register(recorder, _NAME, 25)
    md.preprocessors.register(_AfterHtml(recorder), "rankbook_after_html", -1000)
    return recorder


def refused(lines: Sequence[str], taken: Sequence[Fence], tab: int) -> list[Refused]:
    """Find the lines that look like an opening fence and lie in no fence that was taken, each with what it seems to hold."""
    found: list[Refused] = []
    start = 0
    for begin, end in [*((fence.start, fence.end) for fence in taken), (len(lines), len(lines))]:
        found += _refused_between(lines, range(start, begin), tab)
        start = end
    return found


def _refused_between(lines: Sequence[str], between: range, tab: int) -> list[Refused]:
    looks = [(index, match) for index in between if (match := _OPENING.match(lines[index].rstrip("\r")))]
    found: list[Refused] = []
    after = between.start
    for place, (index, match) in enumerate(looks):
        if index < after:
            continue
        close = next((other for other in looks[place + 1 :] if _closes(match, other[1])), None)
        after = close[0] + 1 if close else between.stop
        closing = close[1]["fence"] if close else ""
        width = len(match["prefix"].expandtabs(tab))
        found.append(Refused(index, after, width, match["header"].strip(), match["fence"], closing, in_item=bool(match["item"])))
    return found


def _closes(opening: re.Match[str], other: re.Match[str]) -> bool:
    return other["fence"].startswith(opening["fence"]) and not other["header"].strip() and not other["item"]
