"""The folders of the tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from rankbook.model import Folder


def folders_of(paths: Iterable[str]) -> dict[str, Folder]:
    """Find each folder with its direct files and subfolders, by path."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    folders: defaultdict[str, set[str]] = defaultdict(set)
    for path in paths:
        inner = path.rpartition("/")[0]
        files[inner].append(path)
        while inner:
            outer = inner.rpartition("/")[0]
            folders[outer].add(inner)
            inner = outer
    found = sorted({"", *files, *folders, *(inner for below in folders.values() for inner in below)})
    return {path: Folder(path, tuple(sorted(folders.get(path, ()))), tuple(sorted(files.get(path, ())))) for path in found}
