"""What else of a repository has to do with its site: who builds it, who publishes it, who rewrites its pages, and where CI cannot run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from rankbook.starter import yaml_edits
from rankbook.starter.facts import Facts
from rankbook.starter.yaml_edits import CannotEdit

_PIPELINE = ".gitlab-ci.yml"
_WORKFLOWS = (".github/workflows/*.yml", ".github/workflows/*.yaml", _PIPELINE, ".readthedocs.yml", ".readthedocs.yaml")
_SESSIONS = ("tox.ini", "noxfile.py")
_OURS = "book.yml"
_BUILDS = re.compile(
    r"""\bmkdocs[ \t"',]+(?:-\S+[ \t"',]+)*(?:build|gh-deploy)\b|\bmike["', \t]+deploy\b|\bmkdocs-deploy-gh-pages@|^mkdocs:""", re.MULTILINE
)
_PUBLISHES = re.compile(
    r"""\bmkdocs[ \t"',]+(?:-\S+[ \t"',]+)*gh-deploy\b|\bmike["', \t]+deploy\b|\bmkdocs-deploy-gh-pages@"""
    r"""|\bdeploy-pages@|\bactions-gh-pages@|\bgithub-pages-deploy-action@"""
)
_PUSHES = re.compile(r"\bgit(?:[ \t]+-\S+(?:[ \t]+[^\s-]\S*)?)*[ \t]+push\b")
_BRANCH = re.compile(r"""\bref:[ \t]*["']?(?:refs/heads/)?gh-pages\b|\bgit[ \t].*\bgh-pages\b""")
"""Pages' own branch, where it is checked out, or named to Git."""
_PUBLISHES_ON_GITLAB = re.compile(r"^[ \t]+pages:", re.MULTILINE)
"""A job of any name that says so publishes."""
_RUNS_HOOKS = re.compile(r"""\bpre-commit/action@|\bprek-action@|\b(?:pre-commit|prek)["', \t]+run\b""")
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_LISTED = re.compile(r"[\w./-]+\.(?:txt|in)\b")
"""Files of requirements, as a workflow names them."""
_REQUIRED = re.compile(r"""['"]rankbook(?![\w./-])""")
"""The requirement rankbook, as `pyproject.toml` has it."""
_FORMATTER = re.compile(r"\b(?:mdformat|prettier|markdownlint|pymarkdown|rumdl)")
"""Hooks of pre-commit that format Markdown, or refuse what is not formatted as they like it."""
_TYPES_OF_PAGES = frozenset({"file", "text", "non-executable", "markdown"})
"""What a generated page is to pre-commit."""
_ON_GITHUB = re.compile(r"(?:^|\.)(?:github|ghe)\.com(?::\d+)?$")
"""Hosts of GitHub itself."""


def beside(top: Path, facts: Facts, *, is_site_ours: bool) -> Iterator[str]:
    """Say what a person has to settle besides the files that are written, a sentence each.

    Args:
        top: folder of the repository.
        facts: of the project.
        is_site_ours: whether nobody else has written the site's settings.
    """
    texts = dict(_found(top, _WORKFLOWS))
    lacking = {name: text for name, text in (texts | dict(_found(facts.root, _SESSIONS))).items() if not _has_rankbook(top, facts, name)}
    builds = [name for name, text in lacking.items() if _BUILDS.search(text)]
    if builds and not is_site_ours:
        what = f"{_and(builds)} {'builds' if len(builds) == 1 else 'build'} the site of {facts.config}"
        yield f"{what}, which names the plugin rankbook now: add `{facts.rankbook}` to what is installed there"
    publishes = [name for name, text in texts.items() if "github" in facts.forges and _is_publisher(text)]
    if "gitlab" in facts.forges and _PUBLISHES_ON_GITLAB.search(texts.get(_PIPELINE, "")):
        publishes.append(_PIPELINE)
    if publishes:
        yield f"{_and(publishes)} {'publishes' if len(publishes) == 1 else 'publish'} a site on Pages as well: keep one of the two"
    hooks = {} if facts.is_ignored else _hooks(top / ".pre-commit-config.yaml")
    if _asks_for_rankbook(hooks, facts):
        yield from _told_of_hook(hooks, [name for name, text in lacking.items() if _RUNS_HOOKS.search(text)])
    formatters = [*dict.fromkeys(_formatters(hooks, facts))]
    if formatters:
        what = f"{'the hook' if len(formatters) == 1 else 'the hooks'} {_and(formatters)} of .pre-commit-config.yaml"
        yield f"{what} would rewrite or refuse generated pages: write `exclude: ^{re.escape(facts.at_top(facts.out))}/` there"
    if "github" in facts.forges and facts.remote and facts.remote.forge == "github" and not _ON_GITHUB.search(facts.remote.host):
        yield (
            f"{facts.remote.host} is a GitHub Enterprise Server, where later actions for artifacts do not run: "
            "write upload-artifact@v3, download-artifact@v3 and deploy-pages@v3 into .github/workflows/book.yml"
        )
    if (facts.root / "zensical.toml").is_file() and is_site_ours:
        yield f"zensical.toml is another site: {facts.config} is for MkDocs, and what Zensical builds is finished by `rankbook stamp`"


def _found(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the files of some names that are not ours, with their texts, but for comments."""
    for path in (path for name in names for path in sorted(folder.glob(name)) if path.name != _OURS):
        yield path.relative_to(folder).as_posix(), _COMMENT.sub("", _text(path))


def _is_publisher(text: str) -> bool:
    """Tell whether a workflow publishes on GitHub's Pages: by a tool, by an action, or by pushing their branch itself."""
    return bool(_PUBLISHES.search(text) or (_BRANCH.search(text) and _PUSHES.search(text)))


def _has_rankbook(top: Path, facts: Facts, name: str) -> bool:
    """Tell whether rankbook is among what is installed where the site is built."""
    text = _text((facts.root if name in _SESSIONS else top) / name)
    listed = (folder / each for each in _LISTED.findall(text) for folder in (facts.root, top))
    return any("rankbook" in each for each in (text, *map(_text, listed))) or bool(_REQUIRED.search(_text(facts.root / "pyproject.toml")))


def _hooks(path: Path) -> Mapping[str, Any]:
    """Read the settings of pre-commit; empty where there are none, or broken ones."""
    try:
        return yaml.safe_load(text) if yaml_edits.names(text := _text(path)) else {}
    except (CannotEdit, yaml.YAMLError, ValueError):
        return {}


def _asks_for_rankbook(settings: Mapping[str, Any], facts: Facts) -> bool:
    """Tell whether a hook runs the rankbook that is installed: one that is there, or the one that is to be added."""
    hooks = (hook for repo in _tables(settings, "repos") for hook in _tables(repo, "hooks"))
    languages = [hook.get("language") for hook in hooks if str(hook.get("id")).startswith("rankbook")]
    return "system" in languages if languages else any(_tables(settings, "repos")) and not facts.is_published


def _told_of_hook(settings: Mapping[str, Any], running: list[str]) -> Iterator[str]:
    """Say who needs rankbook for a hook that does not install it.

    Args:
        settings: of pre-commit.
        running: names of files by which the hooks are run on machines that lack it.
    """
    where = f", and so {'does' if len(running) == 1 else 'do'} {_and(running)}" if running else ""
    yield f"the hook rankbook-check runs the rankbook that is installed: everybody who commits needs it{where}"
    if "ci" in settings and "rankbook-check" not in str(settings["ci"]):
        yield "pre-commit.ci has no rankbook: write `skip: [rankbook-check]` below `ci` in .pre-commit-config.yaml"


def _formatters(settings: Mapping[str, Any], facts: Facts) -> Iterator[str]:
    """Name the hooks of pre-commit that format Markdown and are given the generated pages."""
    page = facts.at_top(f"{facts.out}/index.md")
    for repo in _tables(settings, "repos"):
        for hook in _tables(repo, "hooks"):
            if _FORMATTER.search(f"{hook.get('id')} {hook.get('entry')}") and all(_takes(each, page) for each in (settings, hook)):
                yield str(hook.get("id"))


def _tables(values: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = values.get(key) if isinstance(values, Mapping) else None
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def _takes(settings: Mapping[str, Any], page: str) -> bool:
    """Tell whether the settings of a hook, or of all hooks, let it see a page."""
    try:
        types, either = (settings.get(key) or () for key in ("types", "types_or"))
        if not _TYPES_OF_PAGES.issuperset(types) or (either and _TYPES_OF_PAGES.isdisjoint(either)):
            return False
        return bool(re.search(settings.get("files", ""), page)) and not re.search(settings.get("exclude", "^$"), page)
    except (re.error, TypeError):
        return True


def _and(names: list[str]) -> str:
    return " and ".join(names)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
