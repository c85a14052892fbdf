"""Links to lines of sources, for pages that hold thousands of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from rankbook.model import PACKAGES
from rankbook.pages.fence import line_anchor
from rankbook.pages.names import Links
from rankbook.pages.text import NOT_IN_SPAN, code, one_line

_SAYS_NOTHING = frozenset({"__init__.py", "conftest.py", "setup.py", "CMakeLists.txt", "README.md"})
"""Names of files that a reader only knows with their folder's."""


class _Target(Struct, frozen=True):
    label: str
    address: str
    """Empty for a file without a page."""
    has_lines: bool


def _apart(labels: Mapping[str, str]) -> dict[str, str]:
    """Lengthen those labels of paths that are the same, folder by folder."""
    found = dict(labels)
    while True:
        taken = Counter(found.values())
        longer = {path: _longer(path, label) for path, label in found.items() if taken[label] > 1}
        if all(found[path] == label for path, label in longer.items()):
            return found
        found |= longer


def _longer(path: str, label: str) -> str:
    return one_line("/".join(path.split("/")[-label.count("/") - 2 :]))


class Places:
    """Makes the links of one page.

    Args:
        links: the links of the page.
    """

    def __init__(self, links: Links) -> None:
        self._links = links
        self._known: dict[str, _Target] = {}

    def among(self, paths: Iterable[str]) -> Places:
        """Give the links of one row of a table: files of one name have as much of their paths in their labels as tells them apart."""
        targets = {path: self._known.get(path) or self._target(path) for path in paths}
        if len({target.label for target in targets.values()}) == len(targets):
            return self
        labels = _apart({path: target.label for path, target in targets.items()})
        near = Places(self._links)
        near._known = {path: replace(target, label=labels[path]) for path, target in targets.items()}
        return near

    def line(self, path: str, line: int) -> str:
        """Link to a line, labelled by its file's name and its number."""
        target = self._known.get(path) or self._target(path)
        if NOT_IN_SPAN.search(target.label):
            return self._linked(target, str(code(f"{target.label}:{line}")), line)
        return self._linked(target, f"`{target.label}:{line}`", line)

    def number(self, path: str, line: int) -> str:
        """Link to a line, labelled by its number alone."""
        return self._linked(self._known.get(path) or self._target(path), str(line), line)

    def labelled(self, label: str, path: str, line: int) -> str:
        """Link to a line under a label of its own."""
        return self._linked(self._known.get(path) or self._target(path), label, line)

    def file(self, path: str) -> str:
        """Link to a file's page, labelled by the file's name."""
        target = self._known.get(path) or self._target(path)
        return self._linked(target, str(code(target.label)), 0)

    def path(self, path: str) -> str:
        """Link to a file's page, labelled by the file's path."""
        return self._linked(self._known.get(path) or self._target(path), str(code(path)), 0)

    def _target(self, path: str) -> _Target:
        folder, _, name = path.rpartition("/")
        label = f"{folder.rpartition('/')[2]}/{name}" if folder and name in _SAYS_NOTHING else name
        address = "" if path.startswith(PACKAGES) else str(self._links.file(path))
        return self._known.setdefault(path, _Target(one_line(label), address, path not in self._links.unlisted))

    @staticmethod
    def _linked(target: _Target, label: str, line: int) -> str:
        if not target.address:
            return label
        return f"[{label}]({target.address}#{line_anchor(line)})" if line and target.has_lines else f"[{label}]({target.address})"
