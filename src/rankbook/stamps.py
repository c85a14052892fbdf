"""Generated pages as they lie on disk: what each says of itself, and what stands behind that."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from rankbook import front_matter
from rankbook.errors import RankbookError
from rankbook.front_matter import Stamp

_QUICK = re.compile(
    r'---\ntitle: (".*")\nrankbook:\n((?:  [a-z0-9-]+: .*\n)+)(?:  # needs\n((?:  # .*\n)+))?(?:search:\n  exclude: true\n)?---\n'
)
"""Front matter exactly as `front_matter.write` writes it."""
_HEAD = 4096
"""Bytes of a page that hold its front matter, unless it is long."""


Told = tuple[Any, ...]
"""A stamp as it is kept: kind, title, source, size, digest, needs and owners; empty for a page that a person made."""


class Stamps(Mapping[str, Stamp]):
    """What generated pages say of themselves, unpacked when it is asked for.

    Args:
        told: the stamps of the pages as they are kept, by the page's path.
    """

    def __init__(self, told: Mapping[str, Told]) -> None:
        self.told = told
        self._unpacked: dict[str, Stamp] = {}

    def __getitem__(self, path: str) -> Stamp:
        stamp = self._unpacked.get(path)
        if stamp is None:
            page, title, source, size, sha256, needs, owners = self.told[path]
            stamp = self._unpacked[path] = Stamp(page, title, source, size, sha256, needs=needs, owners=owners)
        return stamp

    def __contains__(self, path: object) -> bool:
        return path in self.told

    def __iter__(self) -> Iterator[str]:
        return iter(self.told)

    def __len__(self) -> int:
        return len(self.told)


def told_of(stamp: Stamp | None) -> Told:
    """Give a stamp as it is kept.

    Args:
        stamp: what a page says of itself; None when a person made it.
    """
    return (stamp.page, stamp.title, stamp.source, stamp.size, stamp.sha256, stamp.needs, stamp.owners) if stamp else ()


def stamp_of(path: Path | str) -> Stamp | None:
    """Read what a page says of itself, without what is embedded in it.

    Args:
        path: of the page.

    Returns:
        What it says; None for a page that is not generated.

    Raises:
        RankbookError: the page cannot be read.
    """
    match = _QUICK.match(_read(path, _HEAD))
    if match is None:
        found = front_matter.read(front_matter.split(_read(path))[0])
        return found and replace(found, embedding=None)
    facts = {}
    for line in match[2].splitlines():
        key, _, value = line.strip().partition(": ")
        facts[key] = json.loads(value)
    if facts.get("page") not in front_matter.PAGE_KINDS:
        return None
    needs = "".join(line[4:] for line in (match[3] or "").splitlines(keepends=True))
    return Stamp(
        facts["page"],
        json.loads(match[1]),
        facts["source"],
        facts.get("size"),
        facts.get("sha256"),
        needs=needs,
        owners=tuple(facts.get("owners", ())),
    )


def body_of(path: Path | str) -> str:
    """Read what stands behind the front matter of a page.

    Args:
        path: of the page.

    Raises:
        RankbookError: the page cannot be read.
    """
    text = _read(path)
    match = _QUICK.match(text)
    return text[match.end() if match else front_matter.split(text)[1] :]


def _read(path: Path | str, size: int = -1) -> str:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - this runs for each page
            return (file.read(size) or b"").decode("utf-8", errors="replace")
    except OSError as error:
        raise RankbookError(f"cannot read the page: {error.strerror}", where=path) from error
