"""The front matter by which a generated page says what it is; written by the documents wing, read by the proof wing.

A page without the key `rankbook` was made by a person, or by another generator, and is never overwritten or deleted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from rankbook.embedding import Embedding

SUITE_PAGES = ("suite-hardware", "suite-apis", "suite-untested", "suite-words", "suite-marks", "suite-owners", "suite-findings")
"""Kinds of page that are about the whole suite."""
PAGE_KINDS = ("file", "keywords", "index", "folder", "subtree", *SUITE_PAGES)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_NEEDS = "  needs: |"
"""Line behind which the needs of the tests stand, as the last thing in the front matter: they may be long."""
_OPENED = re.compile(r"\A\ufeff?---[ \t]*\r?\n")
_BLOCK = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?\r?\n)?(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Stamp:
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
    lines = [f"title: {_scalar(stamp.title)}", "rankbook:", *(f"  {key}: {_scalar(value)}" for key, value in facts.items())]
    if stamp.needs:
        lines += [_NEEDS, *(f"    {line}" for line in stamp.needs.splitlines())]
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
        values = yaml.load(match[1] or "", _LOADER)  # noqa: S506 - both loaders are safe ones
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
    if "encoding" in facts:
        embedding = Embedding(
            encoding=str(facts["encoding"]),
            bom=bool(facts.get("bom")),
            newline=str(facts.get("newline", "lf")),
            final_newline=bool(facts.get("final-newline", True)),
            size=int(facts.get("size", 0)),
            sha256=str(facts.get("sha256", "")),
        )
    return Stamp(
        page=str(facts["page"]),
        title=str(values.get("title", "")),
        source=str(facts.get("source", "")),
        size=facts.get("size"),
        sha256=facts.get("sha256"),
        embedding=embedding,
        needs=_needs(facts.get("needs")),
    )


def _needs(value: object) -> str:
    return value if isinstance(value, str) else ""


def is_generated(head: bytes, *, is_cut: bool) -> bool:
    """Tell from the top of a page whether rankbook made it.

    Args:
        head: the first bytes of the page.
        is_cut: whether the page may go on behind them.
    """
    text = head.decode(errors="replace")
    if is_cut and _OPENED.match(text) and not _BLOCK.match(text):
        whole_lines = text[: text.rfind("\n")].partition(f"\n{_NEEDS}")[0]
        text = f"{whole_lines}\n---\n"
    return read(split(text)[0]) is not None
