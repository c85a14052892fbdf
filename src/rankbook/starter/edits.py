"""What `rankbook init` adds to files of the project: each edit adds text, and leaves every other byte as it is."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from rankbook.config import Settings
from rankbook.starter import yaml_edits
from rankbook.starter.facts import WRITTEN_BY, Facts
from rankbook.starter.templates import SUITE, rendered, yaml_scalar
from rankbook.starter.yaml_edits import CannotEdit
from rankbook.terminal import word

GITLAB_JOBS = ".gitlab/book.gitlab-ci.yml"
_GITLAB_NAMES = frozenset({".book", "book-drift", "book-cpu", "book-gpu", "book-site", "pages"})
"""Jobs of ours; of two jobs of one name GitLab makes one, key by key. What changes ours by a few keys has no script."""
_SUPERFENCES = "pymdownx.superfences"
_EXTENSIONS = "markdown_extensions"
_DIRECTORIES = "use_directory_urls"
_MOST_PARENTS = 8
"""Files that settings may inherit from, one after the other."""


class Edit(Struct, frozen=True):
    """A file after an edit."""

    text: str
    said: str = ""
    """What was added; empty for nothing."""
    left: tuple[str, ...] = ()
    """What could not be added, each with what is to be done by hand."""


def settings(text: str, facts: Facts) -> Edit:
    """Add `[tool.rankbook]` at the end of `pyproject.toml`; to a table that is there, what it lacks."""
    before = _toml(text)
    tool = before.get("tool", {})
    lines = rendered("settings.toml.jinja", facts)
    wanted = _toml(lines)["tool"]["rankbook"]
    if "rankbook" not in tool:
        after = f"{text.rstrip()}\n\n{lines}" if text.strip() else lines
        if not _reads(after, {**before, "tool": {**tool, "rankbook": wanted}}):
            raise CannotEdit("[tool.rankbook] cannot be added at its end")
        return Edit(after, "[tool.rankbook] added")
    there = tool["rankbook"]
    lacking = [key for key in _needed(facts) if key not in there]
    if not lacking:
        return Edit(text)
    entries = "".join(f"{line}\n" for line in lines.splitlines() if line.partition(" ")[0] in lacking)
    headed = _HEADING.sub(lambda match: f"{match[0].rstrip()}\n{entries}", text, count=1)
    for after in (headed, f"{text.rstrip()}\n\n[tool.rankbook]\n{entries}"):
        if _reads(after, {**before, "tool": {**tool, "rankbook": {**there, **{key: wanted[key] for key in lacking}}}}):
            return Edit(after, f"{' and '.join(f'`{key}`' for key in lacking)} added")
    raise CannotEdit(f"its [tool.rankbook] has no {' and no '.join(f'`{key}`' for key in lacking)}")


_HEADING = re.compile(r"^[ \t]*\[[ \t]*tool[ \t]*\.[ \t]*rankbook[ \t]*\][ \t]*(?:#.*)?(?:\n|\Z)", re.MULTILINE)


def of_another(text: str, facts: Facts) -> str:
    """Say that the jobs that are there publish the book of another project of the repository; empty when they do not."""
    if not text.startswith(WRITTEN_BY):
        return ""
    found = _WORKING.search(text)
    folder = found[1].strip("'\"") if found else ""
    if folder == facts.below:
        return ""
    book = f"the book in {folder}/" if folder else "the book at the top"
    return f"it publishes {book}, and a repository has one site: at its top, rankbook init FOLDER FOLDER makes one book of several projects"


_WORKING = re.compile(r"^ +(?:working-directory: |- cd )(.+)$", re.MULTILINE)
"""The folder in which the jobs of GitHub, or of GitLab, work."""


def settings_by_hand(facts: Facts) -> str:
    """Say what is to be written into `pyproject.toml`."""
    lines = rendered("settings.toml.jinja", facts).splitlines()
    return f"write into its [tool.rankbook]: {', '.join(line for line in lines if line.partition(' ')[0] in _needed(facts))}"


def _needed(facts: Facts) -> list[str]:
    """Name the settings without which no pages would be made, or not where the site has them."""
    return ["sources", *(["include"] if facts.include else []), *(["out"] if facts.out != Settings().out else [])]


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CannotEdit("it is no valid TOML with the table [tool.rankbook]") from error


def _reads(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False


_LAST = frozenset({"print-site"})
"""Plugins of MkDocs that must be listed behind all others."""


def site(text: str, facts: Facts) -> Edit:
    """Add to the site's settings what the pages and the proof of their listings need; each part that cannot be added is told."""
    yaml_edits.names(text)
    said, left = [], []
    for add, by_hand in _PARTS:
        try:
            after, added = add(text, facts)
        except CannotEdit as error:
            left.append(f"{error}; {by_hand(facts)}")
        else:
            said += [added] if after != text else []
            text = after
    *most, last = said or [""]
    return Edit(text, f"{', '.join(most)}{' and ' if most else ''}{last} added", tuple(left))


def _plugin(text: str, facts: Facts) -> tuple[str, str]:
    after = _listed(text, facts, "plugins", "rankbook", "  - search\n")
    last = next((name for name in yaml_edits.words(text, ("plugins",)) if name in _LAST), "") if after != text else ""
    if last:
        raise CannotEdit(f"{last} has to stay the last of its plugins")
    return after, "the plugin"


def _extension(text: str, facts: Facts) -> tuple[str, str]:
    """Add the extension that says which fences the site shows as listings; a theme that colours them in the browser goes on doing so."""
    known = _holder(text, facts, _EXTENSIONS)
    is_coloured = bool(known) and yaml_edits.has(known, (_EXTENSIONS,), lambda name: name in ("pymdownx.highlight", "codehilite"))
    after = _listed(text, facts, _EXTENSIONS, f"{_SUPERFENCES}: {{preserve_tabs: true}}")
    if after != text and not is_coloured and _theme(text, facts) in ("mkdocs", "readthedocs"):
        after = _listed(after, facts, _EXTENSIONS, "pymdownx.highlight: {use_pygments: false}")
        return after, f"the extensions {_SUPERFENCES} and pymdownx.highlight"
    return after, f"the extension {_SUPERFENCES}"


def _entry(text: str, facts: Facts) -> tuple[str, str]:
    """Add the suite to the navigation, where one is written."""
    holder = _holder(text, facts, "nav")
    if not holder or yaml_edits.has(holder, ("nav",), lambda word: word.startswith(f"{facts.shown}/")):
        return text, ""
    if holder is not text:
        raise CannotEdit("its nav is inherited from another file")
    entry = f"{SUITE}: {facts.shown}/index.md"
    return yaml_edits.added(text, ("nav",), f"{{{entry}}}" if _is_flow(text) else entry), f"`{SUITE}` in the navigation"


def _addresses(text: str, facts: Facts) -> tuple[str, str]:
    """Give each page an address of its own, where the site has no pages of people yet, which would move."""
    holder = _holder(text, facts, _DIRECTORIES)
    if not facts.clash or (holder and yaml_edits.has(holder, (_DIRECTORIES,), lambda word: word.lower() in ("false", "no", "off"))):
        return text, ""
    if holder or not facts.is_docs_new:
        raise CannotEdit(f"{' and '.join(facts.clash)} would have the same address")
    return yaml_edits.appended(text, f"{_DIRECTORIES}: false\n"), f"`{_DIRECTORIES}: false`"


_PARTS: tuple[tuple[Callable[[str, Facts], tuple[str, str]], Callable[[Facts], str]], ...] = (
    (_plugin, lambda _: "add `rankbook` to its plugins"),
    (_extension, lambda _: f"add `{_SUPERFENCES}: {{preserve_tabs: true}}` to its {_EXTENSIONS}"),
    (_entry, lambda facts: f"add `{SUITE}: {facts.shown}/index.md` to its nav"),
    (_addresses, lambda _: f"write `{_DIRECTORIES}: false` into it, which gives each page of the site an address that ends in .html"),
)
"""What is added to the site's settings, each with what is to be done by hand where it cannot be."""


def site_by_hand(facts: Facts) -> str:
    """Say what is to be written into the site's settings."""
    return " and ".join(by_hand(facts) for _, by_hand in _PARTS[:3])


def _listed(text: str, facts: Facts, key: str, item: str, first: str = "") -> str:
    """Add an item to a list of the site's settings, unless it is there.

    Args:
        text: the settings.
        facts: where they lie.
        key: of the list.
        item: its name, or its name with its own settings.
        first: lines of items with which the list begins where there is none.
    """
    holder, (name, _, own) = _holder(text, facts, key), item.partition(":")
    if holder and yaml_edits.has(holder, (key,), lambda word: word == name):
        return text
    if not holder:
        return yaml_edits.appended(text, f"{key}:\n{first}  - {item}\n")
    if holder is not text:
        raise CannotEdit(f"its {key} are inherited from another file")
    return yaml_edits.added(text, (key,), item, pair=item if own else f"{item}: {{}}")


def _holder(text: str, facts: Facts, key: str) -> str:
    """Give the text of the file in which a setting of the site stands: the site's own, or one that it inherits from; empty for none."""
    path = facts.root / facts.config
    for _ in range(_MOST_PARENTS):
        if key in yaml_edits.names(text):
            return text
        parent = yaml_edits.scalar(text, "INHERIT")
        if not parent:
            return ""
        path = path.parent / parent
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise CannotEdit(f"its {key} are inherited from another file") from error
    raise CannotEdit(f"its {key} are inherited from another file")


def _theme(text: str, facts: Facts) -> str:
    holder = _holder(text, facts, "theme")
    return (yaml_edits.scalar(holder, "theme", "name") or yaml_edits.scalar(holder, "theme")) if holder else "mkdocs"


def _is_flow(text: str) -> bool:
    return any(line.startswith("nav:") and "[" in line.partition("#")[0] for line in text.splitlines())


def ignored(text: str, facts: Facts) -> Edit:
    """Add what is made to `.gitignore`."""
    there = {line.strip().strip("/") for line in text.splitlines()}
    made = [".rankbook", *([facts.site_dir] if facts.site_dir else []), *([facts.out] if facts.is_ignored else [])]
    lines = [f"/{folder}/" for folder in made if folder not in there]
    is_compiled = facts.is_bytecode_kept and "__pycache__" not in there
    lines += ["__pycache__/"] if is_compiled else []
    if not lines:
        return Edit(text)
    head = f"{text.rstrip()}\n\n" if text.strip() else ""
    comment = f"# rankbook: the record of runs, the built site{', what Python compiles' if is_compiled else ''}"
    return Edit(head + "\n".join((comment, *lines, "")), f"{', '.join(lines)} added")


def hook(text: str, facts: Facts) -> Edit:
    """Add the drift check to the hooks of pre-commit, which installs rankbook itself where it can be had."""
    if yaml_edits.has(text, ("repos",), lambda word: word.startswith("rankbook")):
        return Edit(text)
    requirement = json.dumps(facts.rankbook.replace("[site]", "", 1))
    language = f"python\n    additional_dependencies: [{requirement}]" if facts.is_published else "system"
    # It is run for commits that only delete files, too.
    entry = (
        "repo: local\nhooks:\n  - id: rankbook-check\n    name: pages agree with their sources\n"
        f"    entry: {yaml_scalar(hook_entry(facts))}\n    language: {language}\n    pass_filenames: false\n    always_run: true"
    )
    return Edit(yaml_edits.added(text, ("repos",), entry), "the hook rankbook-check added")


def hook_entry(facts: Facts) -> str:
    """Give the command of the hook."""
    return f"rankbook check --staged{f' --root {word(facts.below)}' if facts.below else ''}"


def included(text: str, facts: Facts) -> Edit:
    """Include our jobs in a GitLab pipeline."""
    said = "the jobs of the book included"
    if not text.strip():
        return Edit(f"{WRITTEN_BY}\ninclude:\n  - local: {GITLAB_JOBS}\n")
    is_there = GITLAB_JOBS in text
    taken = [name for name in _names_of_ours(text) if not is_there or yaml_edits.words(text, (name, "script"))]
    if taken:
        raise CannotEdit(_fused(f"its {_named(taken)}"))
    if is_there:
        return Edit(text)
    for path in (each.lstrip("/") for each in yaml_edits.words(text, ("include",))):
        try:
            taken = _names_of_ours(_text_of(facts.top / path))
        except CannotEdit:
            continue  # it is GitLab's to refuse
        if taken:
            raise CannotEdit(_fused(f"{_named(taken)} in {path}"))
    if "include" not in yaml_edits.names(text):
        return Edit(yaml_edits.appended(text, f"include:\n  - local: {GITLAB_JOBS}\n"), said)
    return Edit(yaml_edits.added(text, ("include",), f"local: {GITLAB_JOBS}"), said)


def _names_of_ours(text: str) -> list[str]:
    """Name the jobs of a pipeline that are called as ours are."""
    return sorted(_GITLAB_NAMES.intersection(yaml_edits.names(text))) if text.strip() else []


def _fused(theirs: str) -> str:
    return f"GitLab would make one job of {theirs} and ours of that name; give it another one"


def _named(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") if path.suffix in (".yml", ".yaml") else ""
    except (OSError, ValueError):
        return ""
