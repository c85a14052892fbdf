"""Pass: the folders of the tree."""

from __future__ import annotations

from collections import defaultdict

from rankbook.analyse.draft import Draft
from rankbook.model import Folder


def run(draft: Draft) -> None:
    """Find each folder with its direct files and subfolders."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    folders: defaultdict[str, set[str]] = defaultdict(set)
    for path, module in draft.modules.items():
        files[module.source.folder].append(path)
        inner = module.source.folder
        while inner:
            outer = inner.rpartition("/")[0]
            folders[outer].add(inner)
            inner = outer
    paths = sorted({"", *files, *folders, *(inner for below in folders.values() for inner in below)})
    draft.folders = {path: Folder(path, tuple(sorted(folders.get(path, ()))), tuple(sorted(files.get(path, ())))) for path in paths}
