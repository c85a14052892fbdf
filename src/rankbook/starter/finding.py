"""Finds out all that can be found out about a repository, and says what says so."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import yaml
from msgspec import Struct

from rankbook.errors import ConfigError
from rankbook.starter import repository, yaml_edits
from rankbook.starter.beside import beside
from rankbook.starter.declared import Declared, table
from rankbook.starter.facts import WRITTEN_BY, Demands, Facts, Wishes
from rankbook.starter.installing import GET_DEPS, install_for_site, install_for_tests, modules_beside, python_for, rankbook_requirement
from rankbook.starter.suites import Sources, folders_of_modules, projects_of
from rankbook.starter.yaml_edits import CannotEdit

_CONFIGS = ("mkdocs.yml", "mkdocs.yaml", "properdocs.yml", "properdocs.yaml")
_CI: dict[str, tuple[str, ...]] = {"github": (".github/workflows",), "gitlab": (".gitlab-ci.yml",)}
"""What shows that a repository uses a forge's CI."""


_USUAL_GPUS = 8
"""The most that one machine usually has."""


_ASKS = (
    f"CI asks `{GET_DEPS}`, which knows no versions, no hooks, and no plugins outside of MkDocs' catalogue; "
    "list them in docs/requirements.txt, or in a group of requirements that is called docs"
)


class Docs(Struct, frozen=True):
    """The site of a project."""

    config: str
    """Its settings, below the root."""
    is_config_ours: bool
    """Whether they are still to be written, or were written by `rankbook init`."""
    folder: str
    """Folder of its pages."""
    out: str
    """Folder of the generated pages."""
    built: str
    """Folder of the built site; empty for one outside of the root."""
    is_new: bool
    """Whether nothing stands in the folder that a person made."""


class Found(Struct, frozen=True):
    """Facts, and what says so."""

    facts: Facts
    said: tuple[tuple[str, str], ...]
    """What was found: what it is, and its value with what says so."""
    guessed: tuple[str, ...]
    """What was not found, each as a sentence that says what is taken instead."""


def find_docs(declared: Declared) -> Docs:
    """Find the site's settings and its folders; where there are none, choose them so that they meet nothing that is there.

    Raises:
        ConfigError: the settings that are there have the pages outside of the project, in its own folder, or where a file is.
    """
    root, out = declared.root, _out(declared)
    config = next((name for name in _CONFIGS if (root / name).is_file()), "")
    if config:
        text = _text(root / config)
        folder = _folder_of(text, "docs_dir", "docs", root)
        if not folder:
            raise ConfigError("docs_dir is no folder below the project", where=root / config, right="give the pages one: docs_dir: docs")
        out, built = out or f"{folder}/suite", _folder_of(text, "site_dir", "site", root)
        found = Docs(config, text.startswith(WRITTEN_BY), folder, out, built, _is_ours(root / folder, out))
    else:
        names = [_normal(out).rpartition("/")[0]] if "/" in _normal(out) else ["docs", "book", "rankbook-docs"]
        folder = next(name for name in names if name == names[-1] or _is_ours(root / name, out))
        is_new = _is_ours(root / folder, out)
        found = Docs(_CONFIGS[0], is_config_ours=True, folder=folder, out=out or f"{folder}/suite", built="site", is_new=is_new)
    if (root / folder).is_file():
        raise ConfigError("the folder of the site's pages is a file", where=root / folder, right="move it")
    return found


def _out(declared: Declared) -> str:
    """Give the folder of the generated pages that the settings name; empty for none."""
    named = table(declared.pyproject, "tool", "rankbook").get("out", "")
    return (_normal(named) or named) if isinstance(named, str) else ""


def _is_ours(folder: Path, out: str) -> bool:
    """Say whether a folder is missing or empty, or holds only what `rankbook init` and `rankbook gen` write."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    made = {out.rpartition("/")[2] or "suite"}
    is_made = names <= made or (names <= {*made, "index.md"} and _is_marked(folder / "index.md"))
    return is_made and (folder.is_dir() or not folder.exists())


def _is_marked(page: Path) -> bool:
    return "<!-- rankbook:proof -->" in _text(page)


def _has_plugins(config: Path) -> bool:
    """Say whether a site has hooks, or plugins besides those that come with rankbook."""
    try:
        return "hooks" in yaml_edits.names(_text(config)) or not _BROUGHT.issuperset(yaml_edits.words(_text(config), ("plugins",)))
    except CannotEdit:
        return False


_BROUGHT = frozenset({"rankbook", "search", "material/search"})


def _folder_of(text: str, key: str, usual: str, root: Path) -> str:
    """Read a folder of MkDocs' settings without obeying their tags; empty for one outside of the project."""
    try:
        named = yaml_edits.scalar(text, key) or usual
    except CannotEdit:
        return usual
    return _normal(posixpath.relpath(named, root) if posixpath.isabs(named) else named)


def _normal(folder: str) -> str:
    """Write a folder below the root as others do; empty for one that is not below it."""
    normal = posixpath.normpath(folder) if folder else ""
    return "" if normal in ("", ".", "..") or normal.startswith(("/", "../")) else normal


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def find_facts(root: Path, tests: Sources, demands: Demands, wishes: Wishes) -> Found:
    """Put together all that the written files hang on.

    Args:
        root: folder of the project.
        tests: where its tests lie.
        demands: what they need.
        wishes: what the user asks for.
    """
    declared, remote = Declared(root), repository.remote(root)
    docs = find_docs(declared)
    top = repository.top(root)
    below = root.relative_to(top).as_posix() if root != top and root.is_relative_to(top) else ""
    told = repository.default_branch(root)
    branch = told or repository.checked_out(root)
    rankbook, lacking = rankbook_requirement()
    projects = projects_of(declared, demands.modules)
    each, folders = (declared, *(Declared(root / name) for name in projects)), folders_of_modules(root, tests, projects)
    python, python_said = python_for(*each)
    install = install_for_tests(declared, demands.imports, folders, projects, torch_testing=demands.torch_testing)
    imported = _imported(root, tests, demands, folders)
    read = (*tests.sources, *(posixpath.join(folder, name) for name, folder in imported.items()))
    # What builds the project may read any file of the repository.
    needed = [""] if install.builds else [_normal(posixpath.join(below, path)) for path in read]
    chosen = wishes.forges or tuple(_forges(top, repository.host(root)))
    site = install_for_site(declared, is_ours=docs.is_config_ours)
    facts = Facts(
        root=root,
        below=below,
        title=wishes.title or declared.name or (remote.path.rpartition("/")[2] if remote else root.name),
        sources=tests.sources,
        include=tests.include,
        docs=docs.folder,
        is_docs_new=docs.is_new,
        out=docs.out,
        site_dir=docs.built,
        config=docs.config,
        remote=remote,
        branch=branch or "main",
        python=python or "3.11",
        install=install,
        site=site,
        rankbook=rankbook,
        is_published=not lacking,
        needs_torch=demands.torch or any(project.names_torch for project in each),
        gpus=max((count for count in demands.gpus if count <= _USUAL_GPUS), default=min(demands.gpus, default=0)),
        forges=chosen or ("github",),
        is_ignored=wishes.ignores_pages or repository.is_ignored(root, f"{docs.out}/index.md"),
        is_bytecode_kept=not repository.is_ignored(root, "__pycache__/a.pyc"),
        is_strict=docs.is_config_ours,
        stage=_last_stage(top / ".gitlab-ci.yml"),
        has_submodules=repository.has_submodules(top, needed),
        clash=tuple(f"{docs.out}/{page}" for page in demands.clash),
        packages=tuple(sorted(set(imported.values()))),
    )
    refused, named = repository.refusal(root), repository.remote_name(root)
    sites = () if (root / docs.config).is_file() else repository.tracked(root, _CONFIGS)
    deeper = [name for name in sites if not any(PurePosixPath(name).is_relative_to(source) for source in tests.sources)]
    lacks = {
        f"Git does not read the repository: {refused}": bool(refused),
        "no branch was found: main is taken for the one that the site is published from": not branch,
        f"Git does not say from which branch others start: the site is published from {branch}, which is checked out": bool(
            branch and named and not told
        ),
        f"rankbook runs on Python 3.11 and newer, and {python_said}: 3.11 is taken for CI": not python,
        "no remote was found: the site has no address, and no links to its repository": remote is None and not named,
        f"no browser opens the address of the remote {named}: the site has no links to its repository": remote is None and bool(named),
        "nothing says which CI is used: GitHub Actions is taken; --ci gitlab takes the other": not chosen,
        f"Git ignores the pages in {docs.out}/: CI generates them, and looks for no drift": facts.is_ignored and not wishes.ignores_pages,
        f"nothing says what the plugins of {docs.config} need: {_ASKS}": site.found == GET_DEPS and _has_plugins(root / docs.config),
        _told_of_site(deeper, docs): bool(deeper),
        lacking: bool(lacking),
    }
    guessed = (*(sentence for sentence, is_lacking in lacks.items() if is_lacking), *beside(top, facts, is_site_ours=docs.is_config_ours))
    return Found(facts, tuple(_said(facts, tests, max(demands.gpus, default=0), python_said)), guessed)


def _told_of_site(deeper: Sequence[str], docs: Docs) -> str:
    """Say that another folder of the project has a site: the book gets one of its own."""
    if not deeper:
        return ""
    config, pages = deeper[0], posixpath.join(posixpath.dirname(deeper[0]), "docs/suite")
    made = f"{config} holds the settings of a site: the book gets one of its own, {docs.config}"
    return f'{made}; to have it in that site, add rankbook to its plugins, and out = "{pages}", below its docs_dir, to [tool.rankbook]'


def _imported(root: Path, tests: Sources, demands: Demands, folders: Sequence[str]) -> dict[str, str]:
    """Find the project's own modules that the tests import, each with its folder; but for those that are sources themselves."""
    sources = () if tests.include else tests.sources
    found = modules_beside(root, demands.imports, folders)
    return {
        name: folder for name, folder in found.items() if not any(PurePosixPath(folder, name).is_relative_to(source) for source in sources)
    }


def _forges(top: Path, host: str) -> Iterator[str]:
    for forge, paths in _CI.items():
        if forge in host or any((top / path).exists() for path in paths):
            yield forge


def _last_stage(config: Path) -> str:
    """Name the last stage of a GitLab pipeline that has stages of its own, all of which take jobs that wait for each other."""
    try:
        node = yaml.compose(config.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return ""
    entries = node.value if isinstance(node, yaml.MappingNode) else ()
    stages = [value.value for key, value in entries if key.value == "stages" and isinstance(value, yaml.SequenceNode)]
    return str(stages[0][-1].value) if stages and stages[0] else ""


def _said(facts: Facts, tests: Sources, most: int, python_said: str) -> Iterator[tuple[str, str]]:
    taken = f", of which only {', '.join(tests.include)}" if tests.include else ""
    yield "tests", f"{', '.join(tests.sources)}{taken}" + (f" ({tests.found})" if tests.found else "")
    yield "GPUs", f"at most {most} for a test" if most else "no test needs one"
    yield "title", facts.title
    if facts.remote is not None:
        yield "remote", facts.remote.url
    yield "branch", facts.branch
    yield "Python", f"{facts.python} ({python_said})"
    torch = "torch for the CPU" if facts.install.cpu_torch[0] else "torch as it says"
    yield "install", f"{facts.install.found}{f'; {torch}' if facts.needs_torch else ''}"
    if facts.packages:
        yield "package", f"read in {' and '.join(facts.packages)}, for what the tests import of the project itself"
    yield "site", f"{facts.config}, pages in {facts.docs}/, the suite in {facts.out}/"
    yield "CI", " and ".join({"github": "GitHub Actions", "gitlab": "GitLab CI"}[forge] for forge in facts.forges)
