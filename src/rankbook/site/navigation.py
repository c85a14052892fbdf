"""The navigation of the site: which of the generated pages it lists, and how."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rankbook.front_matter import Stamp

_IN_NAV = ("file", "index")


def listed(stamps: Mapping[str, Stamp], most_files: int, overviews: Sequence[str] = ()) -> dict[str, Stamp]:
    """Choose the generated pages that the navigation lists, in its order.

    Args:
        stamps: what each page says of itself, by the page's path.
        most_files: largest number of file pages that it lists; with more it holds the pages of folders only.
        overviews: names of the pages about the whole suite that it lists too, in their order.
    """
    places = {name: place for place, name in enumerate(overviews)}
    names = {path: path.rpartition("/")[2] for path, stamp in stamps.items() if not stamp.source}
    shown = {path: stamp for path, stamp in stamps.items() if stamp.page in _IN_NAV or names.get(path) in places}
    if sum(stamp.page == "file" for stamp in shown.values()) > most_files:
        shown = {path: stamp for path, stamp in shown.items() if stamp.page != "file"}
    passed_over = _passed_over(stamps)
    ordered = sorted(shown.keys() - passed_over, key=lambda path: (places.get(names.get(path, ""), len(places)), path))
    return {path: shown[path] for path in ordered}


def _passed_over(stamps: Mapping[str, Stamp]) -> set[str]:
    """Name the pages of folders that hold nothing but one other folder: a reader would only click through them."""
    children: dict[str, list[Stamp]] = defaultdict(list)
    for path, stamp in stamps.items():
        if stamp.page in _IN_NAV and stamp.source:
            folder = path.rpartition("/")[0]
            children[folder if stamp.page == "file" else folder.rpartition("/")[0]].append(stamp)
    lonely = {folder for folder, found in children.items() if [stamp.page for stamp in found] == ["index"]}
    return {path for path, stamp in stamps.items() if stamp.page == "index" and stamp.source and path.rpartition("/")[0] in lonely}


def expanded(nav: list[Any], shown: Mapping[str, Stamp]) -> list[Any]:
    """Write out each entry of `nav` that names a folder (`suite/`, `My tests: suite/`) as the entries of the folder's pages.

    Args:
        nav: a list of entries, at any depth of MkDocs' setting.
        shown: the pages that the navigation lists.
    """
    return [entry for item in nav for entry in _entries(item, shown)]


def _entries(item: Any, shown: Mapping[str, Stamp]) -> list[Any]:
    if isinstance(item, dict):
        return [{title: entry} for title, value in item.items() for entry in _values(value, shown)]
    if _is_folder(item):
        return [_section(item, _by_folder(item, shown), shown, "")] if any(path.startswith(item) for path in shown) else []
    return [item]


def _values(value: Any, shown: Mapping[str, Stamp]) -> list[Any]:
    """Give what stands behind a title: nothing when it is a folder without pages, else one value."""
    if isinstance(value, list):
        return [expanded(value, shown)]
    return [children for entry in _entries(value, shown) for children in entry.values()] if _is_folder(value) else [value]


def _is_folder(item: Any) -> bool:
    return isinstance(item, str) and item.endswith("/") and "://" not in item


def _by_folder(root: str, shown: Mapping[str, Stamp]) -> dict[str, dict[str, None]]:
    """Give the entries of each folder from `root` down, in order: paths of pages, and of folders with their final `/`."""
    entries: dict[str, dict[str, None]] = defaultdict(dict)
    for path in (path for path in shown if path.startswith(root)):
        folder, child = path.rpartition("/")[0] + "/", path
        entries[folder][child] = None
        while folder != root:
            folder, child = folder[:-1].rpartition("/")[0] + "/", folder
            entries[folder][child] = None
    return entries


def _section(folder: str, entries: Mapping[str, Iterable[str]], shown: Mapping[str, Stamp], above: str) -> dict[str, list[Any]]:
    """Make the section of a folder, with its own page first and its subfolders last.

    Args:
        folder: the folder, with its final `/`.
        entries: what each folder holds, in order.
        shown: the pages that the navigation lists.
        above: title of the page of the folder above.
    """
    index = f"{folder}index.md"
    ordered = sorted(entries.get(folder, ()), key=lambda path: (path != index, path.endswith("/")))
    if len(ordered) == 1 and ordered[0].endswith("/"):
        return _section(ordered[0], entries, shown, above)
    title = shown[index].title if index in shown else folder[:-1].rpartition("/")[2]
    children = [_section(path, entries, shown, title) if path.endswith("/") else path for path in ordered]
    return {title.removeprefix(f"{above}/"): children}
