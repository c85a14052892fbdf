"""The files that a search in the browser reads: rows in the order of their keys, in shards of bounded size, and an index of these."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rankbook.site.search_rows import KINDS

LIMIT = 40_000
"""Bytes of a shard."""
INDEX = "index.json"
"""Name of the file that says where each shard begins."""
_NOT_PLAIN = re.compile(r"[^0-9a-z]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
"""What stands for bytes of a path that are no text; a browser puts the same in their place."""
_PLAIN = 24
"""Characters of a shard's name that a reader recognises."""
_PRIME, _BASIS = 0x01000193, 0x811C9DC5


class Shard(NamedTuple):
    """Rows whose keys follow each other."""

    start: str
    """What all its keys reach, and none before them does."""
    text: bytes

    @property
    def file(self) -> str:
        """Name of its file."""
        return file_of(told(self.start))


def told(start: str) -> str:
    """Write where a shard begins for the browser: within the rows of one key, which it looks up by their key alone, not the whole row."""
    key, separator, row = start.partition("\t")
    return f"{key}\t{_digest(row)}" if separator else key


def file_of(start: str) -> str:
    """Name the file of the shard that begins where `told` says; the browser does the same."""
    return f"{_NOT_PLAIN.sub('_', start)[:_PLAIN]}-{_digest(start)}.json"


def shards(postings: Sequence[str], first: str) -> Iterator[Shard]:
    """Cut rows into shards.

    Args:
        postings: as `search_rows.postings` writes them, sorted, each once.
        first: where the first shard begins.
    """
    start, size, found, before = first, 0, dict[str, dict[str, None]](), ""
    for posting in postings:
        place, _, row = posting.partition("\t")[2].rpartition("\t")
        rows = found.get(place)
        if rows is not None and row in rows:
            before = posting
            continue
        # As many bytes as it has in JSON, with the signs around it.
        cost = len(row) + (2 if rows is not None else len(place) + 8) if _is_plain(posting) else len(json.dumps([row, place]))
        if size + cost > LIMIT and found:
            yield Shard(start, _text(found))
            start, size, found, rows = _distinct(before, posting), 0, {}, None
            cost += len(place) + 8
        if rows is None:
            rows = found.setdefault(place, {})
        rows[row] = None
        size += cost
        before = posting
    if found:
        yield Shard(start, _text(found))


def index(starts: Iterable[str], page: str, root: str) -> bytes:
    """Write the file that is read first.

    Args:
        starts: where the shards begin, in order.
        page: address of the page of a source, with `{}` for its path.
        root: address of the folder of all pages, as seen from that of the site.
    """
    return json.dumps({"kinds": KINDS, "page": page, "root": root, "starts": [*map(told, starts)]}, separators=(",", ":")).encode()


def _text(found: dict[str, dict[str, None]]) -> bytes:
    return json.dumps({place: "\n".join(sorted(rows)) for place, rows in sorted(found.items())}, separators=(",", ":")).encode()


def _digest(text: str) -> str:
    """Give the FNV-1a hash of a text, of 32 bits."""
    number = _BASIS
    for byte in _SURROGATE.sub("\ufffd", text).encode():
        number = ((number ^ byte) * _PRIME) & 0xFFFFFFFF
    return f"{number:08x}"


def _is_plain(text: str) -> bool:
    """Tell whether JSON writes a text as it is."""
    return text.isascii() and '"' not in text and "\\" not in text


def _distinct(before: str, after: str) -> str:
    """Give the shortest beginning of a key that the one before does not reach."""
    same = next((place for place, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), len(before))
    return after[: same + 1]
