"""The front matter by which a generated page says what it is; written by the documents wing, read by the proof wing.

A page without the key `rankbook` was made by a person, or by another generator, and is never overwritten or deleted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml
from msgspec import Struct

from rankbook.embedding import Embedding, known

SUITE_PAGES = ("suite-hardware", "suite-apis", "suite-untested", "suite-words", "suite-marks", "suite-owners", "suite-findings")
"""Kinds of page that are about the whole suite."""
OVERVIEWS = tuple(f"{kind}.md" for kind in SUITE_PAGES)
"""First pages of these kinds, below the folder of all pages; which of them are made depends on what the suite holds."""
PAGE_KINDS = ("file", "keywords", "index", "folder", "subtree", *SUITE_PAGES)
_LARGEST = 1e15
"""Numbers from which on Python may refuse to write one out."""
_MOST_MERGED = 100_000
"""Entries of mappings that merge keys may bring together."""
_MOST_NESTED = 100
"""Lists and mappings within each other."""
_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_NEEDS = "  # needs"
_NEED = "  # "
"""Lines with the needs of the tests, as comments: they may be long, and a forge shows the values of a front matter above the page."""
_NEEDS_BLOCK = re.compile(rf"^{_NEEDS}\r?\n((?:{_NEED}.*\n?)+)", re.MULTILINE)
_OPENED = re.compile(r"\A\ufeff?---[ \t]*\r?\n")
_BLOCK = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?\r?\n)?(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # either of them
    """Reads plain values, and refuses merge keys that double what they name again and again."""

    _merged = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Put the entries of merged mappings into a mapping."""
        super().flatten_mapping(node)
        self._merged += len(node.value)
        if self._merged > _MOST_MERGED:
            raise yaml.constructor.ConstructorError(None, None, "its merge keys bring too many entries together", node.start_mark)


def load(text: str) -> Any:
    """Read the YAML of a front matter, which may be anybody's, and the needs that stand in it as comments.

    Args:
        text: what stands between its marks.

    Raises:
        YAMLError: it is none, or it is nested or merged without end.
        ValueError: a date is none, or half of a surrogate pair stands in it.
        RecursionError: Python cannot read it.
    """
    if sum(map(text.count, "[{-?:")) > _MOST_NESTED and _depth(text) > _MOST_NESTED:
        raise yaml.YAMLError("it is nested too deeply")
    values = yaml.load(text, _Loader)  # noqa: S506 - it makes nothing but plain values
    facts = values.get("rankbook") if isinstance(values, dict) else None
    needs = _NEEDS_BLOCK.search(text)
    if needs is not None and isinstance(facts, dict):
        facts["needs"] = "".join(f"{line.removeprefix(_NEED)}\n" for line in needs[1].splitlines())
    return values


def _depth(text: str) -> int:
    """Tell how deeply the values of a text are nested; the reader in C would overflow its stack."""
    depth = deepest = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > deepest:
            deepest = depth
            if deepest > _MOST_NESTED:
                break
    return deepest


class Stamp(Struct, frozen=True):
    """What a generated page says of itself."""

    page: str
    """One of `PAGE_KINDS`."""
    title: str
    source: str
    """Path of the file or folder that it is about, below the root of the sources; empty for the root folder."""
    size: int | None = None
    sha256: str | None = None
    embedding: Embedding | None = None
    """How the listing gives back the source; None on pages without the source's listing."""
    needs: str = ""
    """What its tests need, a line of JSON for each group of tests that need the same; empty when there are none."""
    owners: tuple[str, ...] = ()
    """Who answers for the source, as it says itself."""


def write(stamp: Stamp) -> str:
    """Give the front matter of a page, with its fences and a final newline."""
    facts: dict[str, Any] = {"page": stamp.page, "source": stamp.source}
    if stamp.size is not None:
        facts["size"] = stamp.size
    if stamp.sha256 is not None:
        facts["sha256"] = stamp.sha256
    if stamp.embedding is not None:
        embedding = stamp.embedding
        facts |= {
            "encoding": embedding.encoding,
            "bom": embedding.bom,
            "newline": embedding.newline,
            "final-newline": embedding.final_newline,
        }
    if stamp.owners:
        facts["owners"] = list(stamp.owners)
    lines = [f"title: {_scalar(stamp.title)}", "rankbook:", *(f"  {key}: {_scalar(value)}" for key, value in facts.items())]
    if stamp.needs:
        lines += [_NEEDS, *(f"{_NEED}{line}" for line in stamp.needs.splitlines())]
    if stamp.page != "file":
        lines += ["search:", "  exclude: true"]
    return "---\n" + "\n".join(lines) + "\n---\n"


def _scalar(value: object) -> str:
    """Write a value as JSON that is YAML too, whatever a file is called: what YAML takes for a line end, or refuses, is escaped."""
    return _NOT_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


def split(text: str) -> tuple[dict[str, Any], int]:
    """Separate a page's front matter.

    Args:
        text: the whole page, with any line ends.

    Returns:
        The mapping (empty when there is none or it is not a mapping) and the offset at which the body starts.
    """
    match = _BLOCK.match(text)
    if match is None:
        return {}, 0
    try:
        values = load(match[1] or "")
    except (yaml.YAMLError, ValueError, RecursionError):  # a date that is none, a lone surrogate
        return {}, 0
    if values is not None and not isinstance(values, dict):
        return {}, 0
    return values or {}, match.end()


def read(values: Mapping[str, Any]) -> Stamp | None:
    """Read the stamp of a page from its front matter; None for a page that rankbook did not make."""
    facts = values.get("rankbook")
    if not isinstance(facts, dict) or facts.get("page") not in PAGE_KINDS:
        return None
    embedding = None
    encoding = _text(facts.get("encoding"))
    if known(encoding):
        embedding = Embedding(
            encoding=encoding,
            bom=bool(facts.get("bom")),
            newline=_text(facts.get("newline", "lf")),
            final_newline=bool(facts.get("final-newline", True)),
            size=_number(facts.get("size")) or 0,
            sha256=_text(facts.get("sha256")),
        )
    return Stamp(
        page=str(facts["page"]),
        title=_text(values.get("title")),
        source=_text(facts.get("source")),
        size=_number(facts.get("size")),
        sha256=_text(facts.get("sha256")) or None,
        embedding=embedding,
        needs=found if isinstance(found := facts.get("needs"), str) else "",
        owners=_owners(facts.get("owners")),
    )


def _owners(value: object) -> tuple[str, ...]:
    return tuple(map(_text, value)) if isinstance(value, list) else ()


def _text(value: object) -> str:
    """Give a value as text; empty for one that is no plain value: a list of lists may be written out for ever."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, (int, float)) and abs(value) < _LARGEST else ""


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def is_generated(head: bytes, *, is_cut: bool) -> bool:
    """Tell from the top of a page whether rankbook made it.

    Args:
        head: the first bytes of the page.
        is_cut: whether the page may go on behind them.
    """
    text = head.decode(errors="replace")
    if is_cut and _OPENED.match(text) and not _BLOCK.match(text):
        whole_lines = text[: text.rfind("\n")]
        text = f"{whole_lines}\n---\n"
    return read(split(text)[0]) is not None
