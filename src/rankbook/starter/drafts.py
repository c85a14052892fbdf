"""The files that `rankbook init` writes or adds to: one row each, from the facts and what is there to what shall be there."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from msgspec import Struct

from rankbook.starter import yaml_edits
from rankbook.starter.facts import WRITTEN_BY, Facts
from rankbook.starter.yaml_edits import CannotEdit
from rankbook.terminal import word

_SPECIAL = re.compile(r"""^[^A-Za-z]|[:#'"\[\]{},&*!|>%@`\\$=]|\s$|^(?:true|false|yes|no|on|off|null|y|n)$""", re.IGNORECASE)
"""What makes a YAML scalar that is written as it stands something else than a text."""
_SUITE = "Test suite"
"""Title of the entry in the navigation."""


class Kind(Enum):
    """What becomes of a file."""

    NEW = "written"
    CHANGED = "changed"
    SAME = "unchanged"
    LEFT = "left"


class Draft(Struct, frozen=True):
    """One file, as it shall be."""

    path: str
    """Below the top of the repository."""
    kind: Kind
    before: str
    """The text that is there; empty for none."""
    after: str
    """The text that shall be there; that before where it is left."""
    why: str = ""
    """What is added, or why it is left; a clause."""


class _Row(Struct, frozen=True):
    """A file and how it comes about."""

    path: Callable[[Facts], str]
    """Its place below the top of the repository; empty when it is not for this project."""
    whole: str = ""
    """Template of the file; empty for one that is only added to."""
    add: Callable[[str, Facts], tuple[str, str]] | None = None
    """Gives an existing file with what is added, and says what that is; None for a file that is left when it is there."""
    advice: str = ""
    """What is to be done by hand when the file is left."""


def drafts(facts: Facts, top: Path, forced: tuple[str, ...] = ()) -> Iterator[Draft]:
    """Draft all files.

    Args:
        facts: what they hang on.
        top: top of the repository.
        forced: paths of files that are replaced even if they are there and differ.
    """
    for row in _ROWS:
        path = row.path(facts)
        if path:
            yield _draft(row, facts, path, top, is_forced=path in forced)


def _draft(row: _Row, facts: Facts, path: str, top: Path, *, is_forced: bool) -> Draft:
    file = top / path
    before, lacking = _read(file, top)
    if lacking:
        return Draft(path, Kind.LEFT, "", "", lacking)
    there = file.exists()
    if row.whole and (not there or is_forced):
        after = _rendered(row.whole, facts)
        kind = Kind.SAME if after == before else Kind.CHANGED if there else Kind.NEW
        return Draft(path, kind, before, after, "replaced" if kind is Kind.CHANGED else "")
    if row.add is None:
        if before == _rendered(row.whole, facts):
            return Draft(path, Kind.SAME, before, before)
        return Draft(path, Kind.LEFT, before, before, f"it is there, and is not replaced without --force {path}{row.advice}")
    try:
        after, why = row.add(before.replace("\r\n", "\n"), facts)
    except CannotEdit as error:
        return Draft(path, Kind.LEFT, before, before, f"{error}{row.advice}")
    after = after.replace("\n", "\r\n") if "\r\n" in before else after
    kind = Kind.SAME if after == before else Kind.CHANGED if there else Kind.NEW
    return Draft(path, kind, before, after, why if kind is Kind.CHANGED else "")


def _read(file: Path, top: Path) -> tuple[str, str]:
    """Read a file; give its text, and why it must be left."""
    if file.is_symlink():
        return "", "it is a symbolic link"
    if not file.parent.resolve().is_relative_to(top.resolve()):
        return "", "it lies outside of the repository"
    try:
        return (file.read_bytes().decode("utf-8"), "") if file.exists() else ("", "")
    except (OSError, UnicodeDecodeError):
        return "", "it cannot be read as UTF-8"


@cache
def _templates() -> jinja2.Environment:
    # Marks of their own: `{{` and `{%` belong to GitHub Actions and to the site's settings.
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("files")),
        block_start_string="[%",
        block_end_string="%]",
        variable_start_string="[=",
        variable_end_string="=]",
        comment_start_string="[#",
        comment_end_string="#]",
        autoescape=False,  # noqa: S701 - YAML and TOML, not HTML; values are quoted by `json`
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "json": lambda value: json.dumps(value, ensure_ascii=False),
        "trimmed": lambda text: text.strip("\n"),
        "yaml": _yaml,
        "shown": lambda text: text.replace("<", "&lt;").replace('"', "&quot;"),  # themes write the site's name into HTML as it stands
        "command": lambda text: text if text.isprintable() and not _NO_COMMAND.search(text) else _yaml(text),
        "actions": lambda text: text.replace("${{", "${{ '${{' }}"),
        "literal": lambda branch: re.sub(r"([][*?+!\\])", r"\\\1", branch),
        "word": word,
        "prose": lambda text: "".join(each if each.isalnum() or each in " .,-_" else f"&#{ord(each)};" for each in " ".join(text.split())),
    }
    return environment


def _yaml(text: str) -> str:
    """Write a text as a YAML scalar: as it stands, where that is the same."""
    if not text.isprintable():
        return json.dumps(text, ensure_ascii=False).translate(_UNSEEN)
    return "'{}'".format(text.replace("'", "''")) if _SPECIAL.search(text) or not text else text


_UNSEEN = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029, *range(0xD800, 0xE000), 0xFEFF, 0xFFFE, 0xFFFF)}
_NO_COMMAND = re.compile(r"^[^A-Za-z]|: |:$| #|\s$")
"""What makes a command that is written as it stands something else than a text."""


def _rendered(template: str, facts: Facts) -> str:
    return _templates().get_template(template).render(facts=facts, written_by=WRITTEN_BY, suite=_SUITE)


# What is added to files of the project


def _settings(text: str, facts: Facts) -> tuple[str, str]:
    """Add `[tool.rankbook]` at the end of `pyproject.toml`."""
    before = _toml(text)
    tool = before.get("tool", {})
    if "rankbook" in tool:
        return text, ""
    lines = _rendered("settings.toml.jinja", facts)
    after = f"{text.rstrip()}\n\n{lines}" if text.strip() else lines
    wanted = {**before, "tool": {**tool, "rankbook": _toml(lines)["tool"]["rankbook"]}}
    if _toml(after) != wanted:
        raise CannotEdit("[tool.rankbook] cannot be added at its end")
    return after, "[tool.rankbook] added"


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CannotEdit("it is no valid TOML with the table [tool.rankbook]") from error


def _site(text: str, facts: Facts) -> tuple[str, str]:
    """Add the plugin to the site's settings, and the suite to its navigation."""
    keys, said = yaml_edits.names(text), []
    if "INHERIT" in keys and "plugins" not in keys:
        raise CannotEdit("its plugins are inherited from another file")
    if "plugins" not in keys:
        text, said = yaml_edits.appended(text, "plugins:\n  - search\n  - rankbook\n"), ["the plugin"]
    elif not yaml_edits.has(text, ("plugins",), lambda word: word == "rankbook"):
        text, said = yaml_edits.added(text, ("plugins",), "rankbook", key="rankbook"), ["the plugin"]
    folder = f"{facts.out.removeprefix(facts.docs).strip('/')}/"
    if "nav" in keys and not yaml_edits.has(text, ("nav",), lambda word: word.startswith(folder)):
        entry = f"{_SUITE}: {folder}index.md"
        text, said = yaml_edits.added(text, ("nav",), f"{{{entry}}}" if _is_flow(text) else entry), [*said, f"`{_SUITE}` in the navigation"]
    return text, f"{' and '.join(said)} added"


def _is_flow(text: str) -> bool:
    return any(line.startswith("nav:") and "[" in line.partition("#")[0] for line in text.splitlines())


def _ignored(text: str, facts: Facts) -> tuple[str, str]:
    """Add what is made to `.gitignore`."""
    there = {line.strip().strip("/") for line in text.splitlines()}
    wanted = ["/.rankbook/", "/site/", *([f"/{facts.out}/"] if facts.is_ignored else [])]
    lines = [line for line in wanted if line.strip("/") not in there]
    if not lines:
        return text, ""
    head = f"{text.rstrip()}\n\n" if text.strip() else ""
    return head + "\n".join(("# rankbook: the record of runs, the built site", *lines, "")), f"{', '.join(lines)} added"


def _hook(text: str, facts: Facts) -> tuple[str, str]:
    """Add the drift check to the hooks of pre-commit."""
    if yaml_edits.has(text, ("repos",), lambda word: word.startswith("rankbook")):
        return text, ""
    root = f" --root {word(facts.below)}" if facts.below else ""
    entry = (
        "repo: local\nhooks:\n  - id: rankbook-check\n    name: pages agree with their sources\n"
        f"    entry: {_yaml(f'rankbook check{root}')}\n    language: system\n    pass_filenames: false"
    )
    return yaml_edits.added(text, ("repos",), entry), "the hook rankbook-check added"


def _included(text: str, facts: Facts) -> tuple[str, str]:
    """Include our jobs in a GitLab pipeline."""
    path = _GITLAB_JOBS
    if not text.strip():
        return f"{WRITTEN_BY}\ninclude:\n  - local: {path}\n", ""
    if path in text:
        return text, ""
    if "include" not in yaml_edits.names(text):
        return yaml_edits.appended(text, f"include:\n  - local: {path}\n"), "the jobs of the book included"
    del facts
    return yaml_edits.added(text, ("include",), f"local: {path}"), "the jobs of the book included"


_GITLAB_JOBS = ".gitlab/book.gitlab-ci.yml"
_ROWS = (
    _Row(lambda facts: facts.at_top("pyproject.toml"), add=_settings, advice="; write [tool.rankbook] with `sources` into it"),
    _Row(
        lambda facts: facts.at_top(facts.config),
        whole="mkdocs.yml.jinja",
        add=_site,
        advice="; add `rankbook` to its plugins, and the folder of the suite to its nav",
    ),
    _Row(lambda facts: facts.at_top(f"{facts.docs}/index.md") if facts.is_docs_new else "", whole="index.md.jinja"),
    _Row(lambda facts: facts.at_top(".gitignore"), add=_ignored),
    _Row(
        lambda facts: ".pre-commit-config.yaml" if not facts.is_ignored and _has_hooks(facts) else "",
        add=_hook,
        advice="; add a local hook with the entry `rankbook check`",
    ),
    _Row(lambda facts: ".github/workflows/book.yml" if "github" in facts.forges else "", whole="github.yml.jinja"),
    _Row(lambda facts: _GITLAB_JOBS if "gitlab" in facts.forges else "", whole="gitlab.yml.jinja"),
    _Row(
        lambda facts: ".gitlab-ci.yml" if "gitlab" in facts.forges else "",
        add=_included,
        advice=f"; add `local: {_GITLAB_JOBS}` to its include",
    ),
)
"""All files, in the order in which they are told."""


def _has_hooks(facts: Facts) -> bool:
    top = facts.root.parents[len(Path(facts.below).parts) - 1] if facts.below else facts.root
    return (top / ".pre-commit-config.yaml").is_file()
