"""The command `rankbook init`: finds out what a repository is like, and writes what its book needs."""

from __future__ import annotations

import difflib
import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex

from msgspec.structs import replace

from rankbook import starter
from rankbook.config import Settings, load, real
from rankbook.document import survey_tree
from rankbook.errors import ConfigError, RankbookError
from rankbook.model import Project
from rankbook.query import fewest_gpus
from rankbook.starter import Declared, Demands, Draft, Facts, Kind, Sources, Wishes, drafts, find_facts, find_tests

Say = Callable[[str], None]
"""Prints a line."""
_FORGES = ("github", "gitlab")


def options(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="files and folders of the tests, below the root (default: found)")
    parser.add_argument("--root", type=Path, help="folder of the project (default: the project around the current folder)")
    parser.add_argument("--title", default="", help="title of the site (default: the name of the package or the repository)")
    parser.add_argument("--ci", action="append", choices=_FORGES, help="whose CI is written for (default: found; may be repeated)")
    parser.add_argument("--ignore-pages", action="store_true", help="keep the generated pages out of Git, and generate them in CI")
    parser.add_argument("--force", action="append", default=[], metavar="FILE", help="replace this file even if it is there (repeatable)")
    parser.add_argument("--dry-run", action="store_true", help="write nothing; show what would change as a diff")


def start(chosen: Namespace, root: Path, say: Say) -> int:
    """Write the files that a book needs into a repository.

    Args:
        chosen: options of the command line.
        root: folder of the project.
        say: prints a line.

    Returns:
        The exit status: 0 when everything is as it shall be, 1 when a file was left that needs a hand.

    Raises:
        ConfigError: no tests were found and none were named, or a file that is to be replaced is none of ours.
    """
    root = root.resolve()
    tests = _tests(root, tuple(chosen.sources))
    project = survey_tree(_settings(root, tests))
    demands = Demands(most_gpus(project), _imports_torch(project))
    found = find_facts(root, tests, demands, Wishes(chosen.title, tuple(dict.fromkeys(chosen.ci or ())), chosen.ignore_pages))
    top = starter.top(root)
    forced = tuple(_below(top, name) for name in chosen.force)
    made = list(drafts(found.facts, top, forced))
    _check_forced(made, forced)
    for name, value in found.said:
        say(f"{name:9} {value}")
    for sentence in found.guessed:
        say(f"note      {sentence}")
    for draft in made:
        _do(draft, top, say, dry=chosen.dry_run)
    if not chosen.dry_run:
        for line in _next(found.facts, made):
            say(line)
    return int(any(draft.kind is Kind.LEFT for draft in made))


def _tests(root: Path, named: tuple[str, ...]) -> Sources:
    """Take the tests that are named, that the settings name, or that are found; ask where there are none and a person can answer."""
    if named:
        return Sources(tuple(_source(root, name) for name in named), found="named")
    settings = load(root)
    if settings.sources:
        return Sources(settings.sources, settings.include, "[tool.rankbook]")
    tests = find_tests(Declared(root))
    if tests.sources:
        return tests
    if not sys.stdin.isatty():
        raise ConfigError("no test modules were found", where=root, right="name their folder: rankbook init FOLDER")
    return Sources((_source(root, input("No test modules were found. Folder of the tests: ").strip()),), found="named")


def _source(root: Path, name: str) -> str:
    path = real(root / name)
    if not name or not path.is_relative_to(root) or not path.exists():
        raise ConfigError(f"there is no '{name}'", where=root, right="name a file or a folder below the root")
    return path.relative_to(root).as_posix()


def _settings(root: Path, tests: Sources) -> Settings:
    """Give the settings under which the tests are read now; those that the project has, where it has some."""
    return replace(load(root), sources=tests.sources, include=tests.include)


def most_gpus(project: Project) -> int:
    """Count the GPUs that the most demanding test of a suite needs."""
    return max((fewest_gpus(test.requirements) for survey in project.surveys.values() for test in survey.tests), default=0)


def _imports_torch(project: Project) -> bool:
    imports = (each for module in project.modules.values() for each in module.imports)
    return any((each.module or "").partition(".")[0] == "torch" for each in imports)


def _below(top: Path, name: str) -> str:
    """Name a file as the top of the repository has it."""
    path = Path.cwd().joinpath(name).resolve()
    return path.relative_to(top).as_posix() if path.is_relative_to(top) else name


def _check_forced(made: list[Draft], forced: tuple[str, ...]) -> None:
    known = [draft.path for draft in made]
    for name in forced:
        if name not in known:
            raise ConfigError(f"--force names {name}, which is not written here", right=f"written are {', '.join(known)}")


def _do(draft: Draft, top: Path, say: Say, *, dry: bool) -> None:
    if draft.kind in (Kind.NEW, Kind.CHANGED) and not dry:
        _write(top / draft.path, draft.after)
    if dry and draft.before != draft.after:
        for line in _diff(draft):
            say(line)
    else:
        say(f"{draft.kind.value:9} {draft.path}{f': {draft.why}' if draft.why else ''}")


def _diff(draft: Draft) -> Iterator[str]:
    """Yield the lines of a diff that `git apply` takes."""
    before, after = (text.splitlines(keepends=True) for text in (draft.before, draft.after))
    old = f"a/{draft.path}" if draft.kind is Kind.CHANGED else "/dev/null"
    for line in difflib.unified_diff(before, after, fromfile=old, tofile=f"b/{draft.path}"):
        yield line.removesuffix("\n")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _write(path: Path, text: str) -> None:
    """Write a file that takes its place once it is whole, and keeps the mode of the one that was there."""
    part = path.with_name(f".rankbook-{token_hex(8)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("xb") as file:
            file.write(text.encode("utf-8"))
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    except OSError as error:
        raise RankbookError(f"cannot be written ({error.strerror})", where=path) from error
    finally:
        part.unlink(missing_ok=True)


def _next(facts: Facts, made: list[Draft]) -> Iterator[str]:
    """Say what is to be done now."""
    yield "next"
    kept = " ".join([*(draft.path for draft in made if draft.kind in (Kind.NEW, Kind.CHANGED)), *([] if facts.is_ignored else [facts.out])])
    yield "  rankbook gen"
    if kept:
        yield f"  git add {kept} && git commit"
    yield f"  pytest --doctest-glob='*.md' {facts.proved}"
    yield "  mkdocs serve"
    if "github" in facts.forges:
        yield "on GitHub: Settings, Pages, Source: GitHub Actions"
    if facts.gpus:
        yield f"for the proof on GPUs: {' and '.join(_GPU_HINTS[forge].format(facts.gpus) for forge in facts.forges)}"


_GPU_HINTS = {
    "github": "a self-hosted runner with the labels linux and gpu-{}, and the variable RANKBOOK_GPUS=true of the repository's Actions",
    "gitlab": "a runner with the tag gpu-{}, and the variable RANKBOOK_GPUS=true of the project's CI/CD",
}
