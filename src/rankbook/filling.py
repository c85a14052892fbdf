"""Generated pages put into the shell that an engine has built, and what their links lead to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rankbook.front_matter import Stamp
from rankbook.site.addresses import Addresses
from rankbook.site.forge import Forge
from rankbook.site.markdown import render
from rankbook.site.proof import Proof
from rankbook.site.shell import Shell
from rankbook.site.stamping import Leaf, Step, stamped, tests
from rankbook.stamps import body_of

Steps = Mapping[str, tuple[Step | None, Step | None]]
"""By page, its neighbours in the order of the sources."""


class Facts(NamedTuple):
    """What others may link to on a page, and what it links to."""

    lines: int
    anchors: tuple[str, ...]
    targets: tuple[tuple[str, int, tuple[str, ...]], ...]
    """Path, last line, other anchors."""


@dataclass(frozen=True)
class Filler:
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
        told = f"{self.steps.get(path)!r}\0{self.proof.digest(path) if self.proof else ''}"
        return hashlib.blake2b(told.encode(errors="surrogatepass"), digest_size=8).hexdigest()

    def page(self, path: str) -> tuple[tuple[int, int], Facts]:
        """Make and write one page."""
        rendered = render(body_of(self.folder / path), path, self.addresses)
        stamp = self.stamps[path]
        before, after = self.steps.get(path, (None, None))
        leaf = Leaf(
            path=path,
            stamp=stamp,
            proof=self.proof.page(path, rendered.fences, tests(rendered)) if self.proof else None,
            before=before,
            after=after,
            actions=self.forge.actions(stamp.source) if self.forge and stamp.page == "file" else "",
        )
        html = stamped(leaf, rendered, self.shell, self.addresses)
        made = self.put(self.addresses.file(path), html.encode(errors="xmlcharrefreplace"))
        targets = tuple((to, target.line, tuple(sorted(target.anchors))) for to, target in rendered.targets.items())
        return made, Facts(rendered.lines, tuple(heading.anchor for heading in rendered.headings), targets)


def steps(stamps: Mapping[str, Stamp]) -> Steps:
    """Give each page of a source its neighbours in the order of the sources.

    Args:
        stamps: what generated pages say of themselves.
    """
    files = sorted((stamp.source, path) for path, stamp in stamps.items() if stamp.page == "file")
    order = [Step(path, stamps[path].title) for _, path in files]
    return {
        step.path: (order[place - 1] if place else None, order[place + 1] if place + 1 < len(order) else None)
        for place, step in enumerate(order)
    }


def has_lost(old: Facts | None, new: Facts) -> bool:
    """Tell whether a link to a page that led somewhere may lead nowhere now.

    Args:
        old: of the page as it was; None for a page that is new.
        new: of the page as it is.
    """
    return old is None or new.lines < old.lines or not set(new.anchors).issuperset(old.anchors)


def dead(facts: Mapping[str, Facts], files: Collection[str], pages: Iterable[str]) -> Iterator[str]:
    """Say which links lead nowhere.

    Args:
        facts: of all generated pages.
        files: all files below the folder of all pages.
        pages: those whose links are followed.
    """
    for path in pages:
        found = facts[path]
        for target, line, others in found.targets:
            to = target or path
            there = facts.get(to)
            if there is None:
                if to not in files:
                    yield f"{path} links to {to}, which is not there"
            elif line > there.lines:
                yield f"{path} links to line {line} of {to}, whose listing has {there.lines} lines"
            elif others and not set(others).issubset(there.anchors):
                yield f"{path} links to {to}#{min(set(others).difference(there.anchors))}, which is not there"
