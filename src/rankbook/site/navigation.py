"""The navigation of the site: which of the generated pages it lists, and how."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

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


def expanded(nav: list[Any], shown: Mapping[str, Stamp], out: str = "") -> list[Any]:
    """Write out each entry of `nav` that names a folder (`suite/`, `My tests: suite/`) as the entries of the folder's generated pages.

    An entry that names another folder is for others to read: for MkDocs a link, for some plugins a folder of pages that people wrote.

    Args:
        nav: a list of entries, at any depth of MkDocs' setting.
        shown: the pages that the navigation lists.
        out: the folder of all generated pages, with its final `/`: an entry that names it, or a folder in it, where nothing is shown, goes.
            Empty where generated pages stand beside all others.
    """
    return [entry for item in nav for entry in _entries(item, shown, out)]


def without(nav: list[Any], gone: Collection[str]) -> list[Any]:
    """Leave pages out of `nav`.

    Args:
        nav: a list of entries, at any depth.
        gone: the pages.
    """
    return [kept for item in nav if (kept := _without(item, gone)) not in (None, {})]


def _without(item: Any, gone: Collection[str]) -> Any:
    if isinstance(item, dict):
        values = {title: without(value, gone) if isinstance(value, list) else _without(value, gone) for title, value in item.items()}
        return {title: value for title, value in values.items() if value is not None}
    return None if isinstance(item, str) and item in gone else item


def _entries(item: Any, shown: Mapping[str, Stamp], out: str) -> list[Any]:
    if isinstance(item, dict):
        return [{title: entry} for title, value in item.items() for entry in _values(value, shown, out)]
    if _is_shown(item, shown):
        return [_section(item, _by_folder(item, shown), shown, "")]
    return [] if _is_ours(item, out) else [item]


def _values(value: Any, shown: Mapping[str, Stamp], out: str) -> list[Any]:
    """Give what stands behind a title: nothing when it is a folder of ours without pages, else one value."""
    if isinstance(value, list):
        return [expanded(value, shown, out)]
    if _is_shown(value, shown):
        return [children for entry in _entries(value, shown, out) for children in entry.values()]
    return [] if _is_ours(value, out) else [value]


def _is_shown(item: Any, shown: Mapping[str, Stamp]) -> bool:
    return isinstance(item, str) and item.endswith("/") and any(path.startswith(item) for path in shown)


def _is_ours(item: Any, out: str) -> bool:
    return bool(out) and isinstance(item, str) and item.endswith("/") and item.startswith(out)


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
