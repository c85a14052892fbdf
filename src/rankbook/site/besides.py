"""Files beside which tests were run, as they are now: a run proves nothing of a test beside other files."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from rankbook.listing import Run

CONFTEST = "conftest.py"


class Besides:
    """What such files hold now.

    Args:
        files: SHA-256 of each that is known, by path; empty for one that is gone.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        self._compared: dict[tuple[int, str | None], tuple[Mapping[str, str], str]] = {}
        """By the identity of files beside which runs were, and the folder of a test: these files, and the one that has changed since."""

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
        key = id(modules), posixpath.dirname(run.source) if run.source and run.kind == "test" else None
        known = self._compared.get(key)
        if known is None:
            found = (path for path, digest in sorted(modules.items()) if self._files.get(path, digest) != digest)
            # It is kept with its answer, so that nothing else gets its identity.
            known = self._compared[key] = (modules, next(found, "") or self._new_conftest(modules, key[1]))
        return known[1]

    def _new_conftest(self, modules: Mapping[str, str], folder: str | None) -> str:
        """Name a conftest file that counts for the tests of a folder now, and was not there when they were run; empty if there is none."""
        while folder is not None:
            path = posixpath.join(folder, CONFTEST)
            if self._files.get(path) and path not in modules:
                return path
            folder = posixpath.dirname(folder) if folder else None
        return ""
