"""What else of a repository has to do with its site: who builds it, who publishes it, who rewrites its pages, and where CI cannot run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from rankbook.starter.facts import Facts

_WORKFLOWS = (".github/workflows/*.yml", ".github/workflows/*.yaml", ".gitlab-ci.yml", ".readthedocs.yml", ".readthedocs.yaml")
_OURS = "book.yml"
_BUILDS = re.compile(r"\bmkdocs\s+(?:build|gh-deploy)\b|\bmike\s+deploy\b|^mkdocs:", re.MULTILINE)
_PUBLISHES = re.compile(r"\bmkdocs\s+gh-deploy\b|\bmike\s+deploy\b|\bdeploy-pages@|\bactions-gh-pages@|\bgithub-pages-deploy-action@")
_FORMATTER = re.compile(r"^[ \t]*-[ \t]+id:[ \t]*['\"]?(mdformat|prettier|markdownlint(?:-cli2)?(?:-fix)?)\b", re.MULTILINE)
"""Hooks of pre-commit that may rewrite Markdown."""
_ON_GITHUB = re.compile(r"(?:^|\.)(?:github\.com|ghe\.com)$")
"""Hosts of GitHub itself."""


def beside(top: Path, facts: Facts, *, is_site_ours: bool) -> Iterator[str]:
    """Say what a person has to settle besides the files that are written, a sentence each.

    Args:
        top: folder of the repository.
        facts: of the project.
        is_site_ours: whether nobody else has written the site's settings.
    """
    files = [path for name in _WORKFLOWS for path in sorted(top.glob(name)) if path.name != _OURS]
    texts = {path.relative_to(top).as_posix(): _text(path) for path in files}
    builds = [name for name, text in texts.items() if _BUILDS.search(text)]
    publishes = [name for name, text in texts.items() if _PUBLISHES.search(text)]
    if builds and not is_site_ours:
        what = f"{' and '.join(builds)} {'builds' if len(builds) == 1 else 'build'} the site of {facts.config}"
        yield f"{what}, which names the plugin rankbook now: add rankbook[site] to what is installed there"
    if publishes and "github" in facts.forges:
        yield f"{' and '.join(publishes)} {'publishes' if len(publishes) == 1 else 'publish'} a site on Pages as well: keep one of the two"
    formatters = dict.fromkeys(_FORMATTER.findall(_text(top / ".pre-commit-config.yaml")))
    if formatters and not facts.is_ignored:
        what = f"the hook {' and '.join(formatters)} of .pre-commit-config.yaml would rewrite generated pages"
        yield f"{what}: give it `exclude: ^{re.escape(facts.at_top(facts.out))}/`"
    if "github" in facts.forges and facts.remote and facts.remote.forge == "github" and not _ON_GITHUB.search(facts.remote.host):
        what = f"{facts.remote.host} is a GitHub Enterprise Server, where upload-artifact and download-artifact run up to version 3 only"
        yield f"{what}: put that into .github/workflows/book.yml"
    if (facts.root / "zensical.toml").is_file() and is_site_ours:
        yield f"zensical.toml is another site: {facts.config} is for MkDocs, and what Zensical builds is finished by `rankbook stamp`"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
