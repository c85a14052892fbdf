"""Files beside which tests were run, as they are now: a run proves nothing of a test beside other files."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from functools import cached_property

from rankbook.listed import LISTED, Listed, is_data
from rankbook.listing import Run
from rankbook.pytest_settings import NAMED

CONFTEST = "conftest.py"


class Besides:
    """What such files hold now.

    Args:
        files: SHA-256 of each that is known, by path; empty for one that is not there.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        self._compared: dict[tuple[int, str, bool], tuple[Mapping[str, str], str]] = {}
        """By the identity of files beside which runs were, and the source of a test: these files, and the one that has changed since."""
        self._listed: dict[str, tuple[str, ...]] = {}
        """By a folder that listings go through: the files that are there."""

    def changed(self, run: Run) -> str:
        """Name a file beside which a run was, and that is another now; empty when there is none, as far as that is known."""
        return self.differing(run.modules, run)

    def differing(self, modules: Mapping[str, str], run: Run) -> str:
        """Name a file that is another now than in an older run of the same test.

        Args:
            modules: files beside which that older run was, by path, with their SHA-256.
            run: says which test it is.
        """
        if not modules:
            return ""
        key = id(modules), run.source, run.kind == "test"
        known = self._compared.get(key)
        if known is None:
            found = (path for path, digest in sorted(modules.items()) if self._files.get(path, digest) != digest)
            folder = posixpath.dirname(run.source) if run.source and run.kind == "test" else None
            new = next(found, "") or self._new_conftest(modules, folder) or self._new_settings(modules, run.source)
            new = new or self._new_listed(modules, run.source)
            known = self._compared[key] = (modules, new)  # with these, so that nothing else gets their identity
        return known[1]

    def _new_listed(self, modules: Mapping[str, str], source: str) -> str:
        """Name a file that was not there when a listing went through its folder; empty if there is none."""
        found = (path for name in modules if name.endswith(LISTED) for path in self._in_folder(name))
        return next((path for path in found if path not in modules and path != source), "")

    def _in_folder(self, name: str) -> tuple[str, ...]:
        if name not in self._listed:
            listed = Listed.read(name)
            self._listed[name] = tuple(path for path in self._data if listed.holds(path))
        return self._listed[name]

    @cached_property
    def _data(self) -> list[str]:
        """Files that are there and are no Python."""
        return sorted(path for path, digest in self._files.items() if digest and is_data(path) and not path.endswith(NAMED))

    def _new_conftest(self, modules: Mapping[str, str], folder: str | None) -> str:
        """Name a conftest file that counts for the tests of a folder now, and was not there when they were run; empty if there is none."""
        for above in _with_those_above(folder) if folder is not None else ():
            path = posixpath.join(above, CONFTEST)
            if self._files.get(path) and path not in modules:
                return path
        return ""

    def _new_settings(self, modules: Mapping[str, str], source: str) -> str:
        """Name the file that tells pytest how tests of a source run, where it was another one when they were run; else empty.

        What Git ignores is not known, and so nothing is said of tests that were told something by such a file.
        """
        told = {path for path in modules if path.endswith(NAMED)}
        if not told or not told <= self._files.keys():
            return ""
        nearest = next((self._settings[folder] for folder in _with_those_above(posixpath.dirname(source)) if folder in self._settings), "")
        return "" if nearest in told else nearest

    @cached_property
    def _settings(self) -> dict[str, str]:
        """What tells pytest how tests run, by folder."""
        return {posixpath.dirname(path): path for path, digest in self._files.items() if digest and path.endswith(NAMED)}


def _with_those_above(folder: str) -> Iterator[str]:
    """Yield a folder and those above it, up to the root, whose name is empty."""
    yield folder
    while folder:
        folder = posixpath.dirname(folder)
        yield folder
