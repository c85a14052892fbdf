"""Who answers for a file, by the repository's `CODEOWNERS`: as GitHub reads it, and GitLab with its sections.

Sources: GitHub's "About code owners" and GitLab's "Code Owners syntax and error handling".
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from rankbook.globs import matcher

_NAMES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
"""Where forges look for it, below the top of the repository; the first one counts."""
_LARGEST = 3_000_000
"""Bytes of the largest one that GitHub reads."""
_WORD = re.compile(r"(?:\\.|\S)+")
_SECTION = re.compile(r"\^?\[([^\]]+)\](?:\[\d+\])?[ \t]*(.*)")
_ESCAPED = re.compile(r"\\(.)")


class _Rule(Struct, frozen=True):
    matches: Callable[[str], bool]
    owners: tuple[str, ...]


def owners_of(root: Path, path: str) -> tuple[str, ...]:
    """Give the owners of a file: of each section the last line that matches it; none where no line does.

    Args:
        root: of the project, which may be a folder of its repository.
        path: of the file, below the root.
    """
    found = _place(root)
    if found is None:
        return ()
    file, below = found
    whole = f"{below}/{path}" if below else path
    sections = _rules(file, file.stat().st_mtime_ns).values()
    last = (next((rule.owners for rule in reversed(rules) if rule.matches(whole)), ()) for rules in sections)
    return tuple(dict.fromkeys(owner for owners in last for owner in owners))


def name_of(root: Path) -> str:
    """Give the path of the file that counts, below the top of the repository; nothing where there is none."""
    found = _place(root)
    return found[0].relative_to(_top(root)[0]).as_posix() if found else ""


def state_of(root: Path) -> str:
    """Give what changes whenever another owner may answer for a file of the project."""
    found = _place(root)
    return f"{found[0]}:{found[0].stat().st_mtime_ns}" if found else ""


def places(root: Path) -> list[Path]:
    """Name the files that may say who answers for a file of the project, whether or not they are there."""
    return [_top(root)[0] / name for name in _NAMES]


@lru_cache(maxsize=8)
def _top(root: Path) -> tuple[Path, str]:
    """Give the top of the repository, and the path of the root below it; the root itself outside of any."""
    top = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
    return top, root.relative_to(top).as_posix() if top != root else ""


def _place(root: Path) -> tuple[Path, str] | None:
    top, below = _top(root)
    paths = (f"{top}/{name}" for name in _NAMES)
    return next(((Path(path), below) for path in paths if os.path.isfile(path) and not os.path.islink(path)), None)  # noqa: PTH113, PTH114


@lru_cache(maxsize=8)
def _rules(file: Path, _changed: int) -> Mapping[str, list[_Rule]]:
    """Read the rules by section; nothing of a file that cannot be read."""
    sections: dict[str, list[_Rule]] = {"": []}
    try:
        text = file.read_text(encoding="utf-8") if file.stat().st_size <= _LARGEST else ""
    except (OSError, UnicodeDecodeError):
        return sections
    current: list[_Rule] = sections[""]
    usual: tuple[str, ...] = ()
    for line in map(str.strip, text.splitlines()):
        heading = _SECTION.fullmatch(line)
        if heading:
            current = sections.setdefault(heading[1].casefold(), [])
            usual = tuple(_words(heading[2]))
        elif pattern := next(words := _words(line), ""):
            current.append(_Rule(_matching(_ESCAPED.sub(r"\1", pattern)), tuple(words) or usual))
    return sections


def _words(line: str) -> Iterator[str]:
    """Yield the words of a line, up to a comment."""
    for word in _WORD.findall(line):
        if word.startswith("#"):
            return
        yield word


def _matching(pattern: str) -> Callable[[str], bool]:
    """Say which files a pattern means: as in `.gitignore`, but that a star at its end reaches into no folder."""
    matches = matcher([pattern])
    if pattern.endswith("/*"):
        depth = pattern.strip("/").count("/") if "**" not in pattern else None
        return lambda path: matches(path) and (depth is None or path.count("/") == depth)
    return matches
