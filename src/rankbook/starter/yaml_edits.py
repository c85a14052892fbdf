"""Adds entries to YAML files of people: text goes in at one place, and every other byte, comments and custom tags included, stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import yaml

Path = Sequence[str]
"""Keys from the top of a file down to a list or a table."""
_MOST_NESTED = 100
"""Lists and tables within each other."""
_MOST_WORDS = 100_000
"""Words of a file, those that aliases repeat included."""


class CannotEdit(Exception):  # noqa: N818 - a refusal, which its caller turns into a sentence
    """The file is not as the edit needs it."""


def added(text: str, path: Path, entry: str, *, pair: str = "") -> str:
    """Add an entry to the list that stands at a path, or to the table there, and make sure that nothing else has changed.

    Args:
        text: the whole file.
        path: keys that lead to the list.
        entry: the item, as it stands behind its dash; with line breaks where it is longer, indented as below `- `.
        pair: the item with its key where a table stands in the place of the list; empty where that cannot be.

    Raises:
        CannotEdit: the file cannot be read, or holds something else there.
    """
    before = _read(text)
    node = _at(before, path)
    table = isinstance(node, yaml.MappingNode)
    if _is_tagged(node):
        raise CannotEdit(f"the tag {node.tag} makes something else of `{'.'.join(path)}` than its entries")
    if not isinstance(node, (yaml.SequenceNode, yaml.MappingNode)) or (table and not pair) or not node.value:
        raise CannotEdit(f"`{'.'.join(path)}` is no list with entries")
    changed = _with(text, node, pair if table else entry)
    alone = _plain(_read(pair if table else f"- {_indented(entry, '  ')}"))[1][0]
    refused = f"nothing can be added to `{'.'.join(path)}` without changing more"
    if _plain(before, node, alone) != _plain(_changed(changed, refused)):
        raise CannotEdit(refused)
    return changed


def appended(text: str, lines: str) -> str:
    """Add a key of its own at the end of a file.

    Raises:
        CannotEdit: the file cannot be read, or something else would change.
    """
    before = _read(text) if text.strip() else yaml.MappingNode("tag:yaml.org,2002:map", [])
    changed = f"{text.rstrip()}\n\n{lines}" if text.strip() else lines
    after = _changed(changed, "nothing can be added at its end")
    count = len(before.value) if isinstance(before, yaml.MappingNode) else -1
    if not isinstance(after, yaml.MappingNode) or _plain(after)[1][:count] != _plain(before)[1]:
        raise CannotEdit("nothing can be added at its end")
    return changed


def has(text: str, path: Path, is_there: Callable[[str], bool]) -> bool:
    """Say whether a word below a path, be it a value or a key, is what is looked for.

    Raises:
        CannotEdit: the file cannot be read.
    """
    return any(map(is_there, words(text, path)))


def words(text: str, path: Path) -> list[str]:
    """List the words below a path, values and keys; none below a tag that makes something else of them.

    Raises:
        CannotEdit: the file cannot be read.
    """
    node = _at(_read(text), path)
    return [] if node is None or _is_tagged(node) else _words(node)


def scalar(text: str, *path: str) -> str:
    """Give the text of a value below a path; empty where none is written out there.

    Raises:
        CannotEdit: the file cannot be read.
    """
    node = _at(_read(text), path)
    return str(node.value) if isinstance(node, yaml.ScalarNode) and not _is_tagged(node) else ""


def names(text: str) -> tuple[str, ...]:
    """Give the keys at the top of a file.

    Raises:
        CannotEdit: the file cannot be read, or has no keys.
    """
    node = _read(text)
    if node is not None and not isinstance(node, yaml.MappingNode):
        raise CannotEdit("it is no table of settings")
    return tuple(str(key.value) for key, _ in node.value) if node is not None else ()


def _read(text: str) -> Any:
    # Composed, not constructed: tags such as `!!python/name:` and `!ENV` are neither obeyed nor refused.
    try:
        top = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise CannotEdit("it is no valid YAML") from error
    except RecursionError as error:
        raise CannotEdit("it is nested too deeply") from error
    _check_ends(top)
    return top


def _changed(text: str, refused: str) -> Any:
    """Read what a file would become: where that is no YAML, nothing is wrong with the file, but it is written in another way."""
    try:
        return _read(text)
    except CannotEdit as error:
        raise CannotEdit(refused) from error


def _check_ends(top: Any) -> None:
    """Make sure that a file can be walked through: its aliases may lead back to where they stand, or double each other."""
    waiting, count = [(top, 0)], 0
    while waiting:
        node, depth = waiting.pop()
        count += 1
        if depth > _MOST_NESTED:
            raise CannotEdit("it is nested too deeply, or without end by its aliases")
        if count > _MOST_WORDS:
            raise CannotEdit("it is too large, with what its aliases repeat")
        if isinstance(node, (yaml.SequenceNode, yaml.MappingNode)):
            waiting += ((part, depth + 1) for part in _parts(node))


def _parts(node: Any) -> list[Any]:
    """List what a list or a table holds; of a table the keys, too."""
    return [part for each in node.value for part in (each if isinstance(each, tuple) else (each,))]


def _at(node: Any, path: Path) -> Any:
    for name in path:
        entries = node.value if isinstance(node, yaml.MappingNode) else ()
        node = next((value for key, value in entries if key.value == name), None)
    return node


def _is_tagged(node: Any) -> bool:
    """Tell whether a tag of its own makes something else of a node: `!ENV`."""
    return node is not None and node.tag.startswith("!")


def _words(node: Any) -> list[str]:
    if isinstance(node, yaml.ScalarNode):
        return [str(node.value)]
    return [word for part in _parts(node) for word in _words(part)]


def _with(text: str, node: Any, entry: str) -> str:
    last = node.value[-1]
    end = _end(last[1] if isinstance(last, tuple) else last)
    if node.flow_style:
        return f"{text[:end]}, {entry}{text[end:]}"
    newline = "\r\n" if "\r\n" in text else "\n"
    indent = " " * node.start_mark.column
    dash = "" if isinstance(node, yaml.MappingNode) else "- "
    lines = f"{indent}{dash}{_indented(entry, indent + '  ')}".replace("\n", newline)
    place = text.find("\n", end - 1 if text[end - 1 : end] == "\n" else end) + 1
    return f"{text[:place]}{lines}{newline}{text[place:]}" if place else f"{text}{newline}{lines}{newline}"


def _indented(entry: str, indent: str) -> str:
    return entry.replace("\n", f"\n{indent}")


def _end(node: Any) -> int:
    """Find where the text of a node ends; that of a block ends with its last entry, not with the comments below it."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


def _plain(node: Any, grown: Any = None, entry: Any = None) -> Any:
    """Copy a node without its marks, so that two can be compared; one of its nodes with an entry more."""
    if isinstance(node, yaml.ScalarNode):
        return node.tag, node.value
    parts = [tuple(_plain(part, grown, entry) for part in (each if isinstance(each, tuple) else (each,))) for each in node.value]
    return node.tag, [*parts, entry] if node is grown else parts
