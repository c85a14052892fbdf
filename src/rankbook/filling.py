"""Generated pages put into the shell that an engine has built, and what their links lead to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from rankbook.dead_links import Facts
from rankbook.front_matter import Stamp
from rankbook.site.addresses import Addresses
from rankbook.site.forge import Forge
from rankbook.site.markdown import render
from rankbook.site.proof import Proof
from rankbook.site.shell import Shell
from rankbook.site.stamping import Leaf, Step, commands, stamped, tests
from rankbook.stamps import Stamps, body_of


class Filler(Struct, frozen=True):
    """All that pages of the site are made from."""

    folder: Path
    """Of all pages."""
    stamps: Mapping[str, Stamp]
    """Of the generated ones."""
    steps: Steps
    shell: Shell
    addresses: Addresses
    proof: Proof | None
    """What the ledger knows of them; None to show nothing of it."""
    forge: Forge | None
    """Where the sources are looked after."""
    put: Callable[[str, bytes], tuple[int, int]]
    """Writes a file of the site, and tells how it is seen."""

    def fill(self, paths: Sequence[str]) -> list[tuple[str, tuple[int, int], str, Facts]]:
        """Make and write pages; give for each how it is seen, the digest of what it shows besides its text, and what its links lead to."""
        made = [(path, self.context(path), *self.page(path)) for path in paths]
        return [(path, seen, context, facts) for path, context, seen, facts in made]

    def context(self, path: str) -> str:
        """Give the digest of what a page shows besides its own text."""
        told = f"{self.steps.of(path)!r}\0{self.proof.digest(path) if self.proof else ''}"
        return hashlib.blake2b(told.encode(errors="surrogatepass"), digest_size=8).hexdigest()

    def page(self, path: str) -> tuple[tuple[int, int], Facts]:
        """Make and write one page."""
        rendered = render(body_of(f"{self.folder}/{path}"), path, self.addresses)
        stamp = self.stamps[path]
        before, after = self.steps.of(path)
        leaf = Leaf(
            path=path,
            stamp=stamp,
            proof=self.proof.page(path, rendered.fences, tests(rendered), commands(rendered)) if self.proof else None,
            before=before,
            after=after,
            actions=self.forge.actions(stamp.source) if self.forge and stamp.page == "file" else "",
        )
        html = stamped(leaf, rendered, self.shell, self.addresses)
        made = self.put(self.addresses.file(path), html.encode(errors="xmlcharrefreplace"))
        targets = tuple((to, target.line, tuple(sorted(target.anchors))) for to, target in rendered.targets.items())
        return made, Facts(rendered.lines, tuple(heading.anchor for heading in rendered.headings), targets)


class Steps:
    """The neighbours of each page of a source, in the order of the sources.

    Args:
        stamps: what generated pages say of themselves.
    """

    def __init__(self, stamps: Stamps) -> None:
        self._stamps = stamps
        self._order = [path for _, path in sorted((told[2], path) for path, told in stamps.told.items() if told[0] == "file")]
        self._places = {path: place for place, path in enumerate(self._order)}

    def of(self, path: str) -> tuple[Step | None, Step | None]:
        """Give the pages before a page and behind it; none for a page that is not that of a source."""
        place = self._places.get(path)
        return (None, None) if place is None else (self._step(place - 1), self._step(place + 1))

    def _step(self, place: int) -> Step | None:
        if not 0 <= place < len(self._order):
            return None
        path = self._order[place]
        return Step(path, self._stamps.told[path][1])
