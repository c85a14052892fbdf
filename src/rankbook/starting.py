"""The command `rankbook init`: finds out what a repository is like, and writes what its book needs."""

from __future__ import annotations

import difflib
import os
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
from rankbook.pages import share_address
from rankbook.query import fewest_gpus
from rankbook.report import plural
from rankbook.starter import Declared, Demands, Draft, Facts, Kind, Sources, Wishes, drafts, find_facts, find_tests
from rankbook.terminal import is_watched, word

Say = Callable[[str], None]
"""Prints a line."""
_MOST_NAMED = 3
"""Scripts, or folders, that a note names."""
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
        ConfigError: no tests were found and none were named, the pages are to lie outside of the site, or a file that is to be replaced is
            none of ours.
    """
    root = root.resolve()
    tests = _tests(root, tuple(chosen.sources))
    project = survey_tree(_settings(root, tests))
    imports = frozenset(_imports(project))
    demands = Demands(
        gpus=tuple(_gpus(project)),
        torch="torch" in imports,
        torch_testing=_tests_as_torch(project),
        imports=imports,
        modules=tuple(project.tests),
        clash=share_address(project.modules, project.folders),
    )
    found = find_facts(root, tests, demands, Wishes(chosen.title, tuple(dict.fromkeys(chosen.ci or ())), chosen.ignore_pages))
    if not found.facts.shown:
        what = f"the setting 'out' is '{found.facts.out}', outside of the site's folder {found.facts.docs}/"
        raise ConfigError(what, where=root / "pyproject.toml", right=f'write out = "{found.facts.docs}/suite"')
    top = starter.top(root)
    forced = tuple(_below(top, name) for name in chosen.force)
    made = list(drafts(found.facts, top, forced))
    _check_forced(made, forced)
    for name, value in found.said:
        say(f"{name:9} {value}")
    told = (*_told_of_modules(tests), *_told_of_scripts(project), *_told_of_gpus(found.facts.gpus, demands.gpus))
    for sentence in (*found.guessed, *told):
        say(f"note      {sentence}")
    for draft in made:
        _do(draft, top, say, dry=chosen.dry_run)
    kept = [_from(root, top / draft.path) for draft in made if draft.kind is not Kind.LEFT]
    refused = starter.ignored(root, kept)
    for each in refused:
        path = _from(Path.cwd().resolve(), root / each.path)
        say(
            f"{Kind.LEFT.value:9} {path}: Git ignores it by {each.pattern} ({each.place}), and CI needs it; "
            f"take that line out, or run git add --force {word(path)}"
        )
    if not chosen.dry_run:
        hidden = {each.path for each in refused}
        for line in _next(found.facts, starter.changed(root, [path for path in kept if path not in hidden])):
            say(line)
    return int(bool(refused) or any(draft.needs_a_hand for draft in made))


def _told_of_modules(tests: Sources) -> Iterator[str]:
    """Say which test modules are not among the sources that were found."""
    if not tests.left_out:
        return
    folders = starter.folders_of_tests(tests.left_out)
    named = ", ".join([*folders[:_MOST_NAMED], *(["…"] if folders[_MOST_NAMED:] else [])])
    number, lie, are, them = len(tests.left_out), "lie", "are", "them"
    if number == 1:
        lie, are, them = "lies", "is", "it"
    add = "that folder" if len(folders) == 1 else "those folders"
    stand = f"{plural(number, 'test module')} {lie} elsewhere and {are} not in the book: {named}"
    yield f"{stand}; to have {them} there, add {add} to the setting sources"


def _told_of_scripts(project: Project) -> Iterator[str]:
    """Say which sources are executed that may do more than test: scripts of the shell, and what installs packages."""
    bash = {path for path, module in project.modules.items() if module.source.language == "bash"}
    scripts = sorted(bash | {path for path in project.modules if path.rpartition("/")[2] == "setup.py"})
    if scripts:
        named = ", ".join([*scripts[:_MOST_NAMED], *(["…"] if scripts[_MOST_NAMED:] else [])])
        yield f"{plural(len(scripts), 'script')} would be executed with the book: {named}; put what must not be into the setting exclude"


def _told_of_gpus(there: int, wanted: tuple[int, ...]) -> Iterator[str]:
    """Say how many tests need more GPUs than the machine has on which CI executes what needs some."""
    number = sum(count > there for count in wanted)
    if number:
        need, are = ("needs", "is") if number == 1 else ("need", "are")
        named = f"rankbook query tests --gpus '>{there}'"
        yield f"{plural(number, 'test')} {need} more than the {there} GPUs that CI asks a runner for, and {are} skipped there: {named}"


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
    if not is_watched(sys.stdin):
        raise ConfigError("no test modules were found", where=root, right="name their folder: rankbook init FOLDER")
    return Sources((_source(root, input("No test modules were found. Folder of the tests: ").strip()),), found="named")


def _source(root: Path, name: str) -> str:
    path = real(root / name)
    if not name or not path.is_relative_to(root) or not path.exists():
        raise ConfigError(f"there is no '{name}'", where=root, right="name a file or a folder below the root")
    return path.relative_to(root).as_posix()


def _settings(root: Path, tests: Sources) -> Settings:
    """Give the settings under which the tests are read now; those that the project has, where it has some."""
    there = load(root)
    packages = there.package_path or starter.folders_of_modules(root, tests)
    return replace(there, sources=tests.sources, include=tests.include, package_path=packages)


def _gpus(project: Project) -> Iterator[int]:
    """Count the GPUs of each test that needs some."""
    yield from filter(None, (fewest_gpus(test.requirements) for survey in project.surveys.values() for test in survey.tests))


def _imports(project: Project) -> Iterator[str]:
    """Yield the first part of each name that the files import, but for those that they name from where they stand."""
    for module in project.modules.values():
        yield from (each.module.partition(".")[0] for each in module.imports if not each.level)


def _tests_as_torch(project: Project) -> bool:
    """Tell whether a file imports the modules that torch tests itself by."""
    named = (f"{each.module}.{each.name}." for module in project.modules.values() for each in module.imports if not each.level)
    return any(name.startswith("torch.testing._internal.") for name in named)


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
    path = _from(Path.cwd().resolve(), top / draft.path)
    if draft.kind in (Kind.NEW, Kind.CHANGED) and not dry:
        _write(top / draft.path, draft.after)
    if dry and draft.before != draft.after:
        for line in _diff(draft):
            say(line)
    elif draft.kind is not Kind.SAME or not draft.left:
        why = f"{draft.why}, and is not replaced without --force {word(path)}" if draft.is_whole else draft.why
        say(f"{draft.kind.value:9} {path}{f': {why}' if why else ''}")
    for sentence in draft.left:
        say(f"{Kind.LEFT.value:9} {path}: {sentence}")


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


def _from(folder: Path, path: Path) -> str:
    """Name a path as seen from a folder, which it need not lie below."""
    return Path(os.path.relpath(path, folder)).as_posix()


def _next(facts: Facts, changed: list[str]) -> Iterator[str]:
    """Say what is to be done now, by commands that work in the folder where this one was given."""
    yield "next"
    here = Path.cwd().resolve()
    if here != facts.root:
        yield f"  cd {word(_from(here, facts.root))}"
    yield "  rankbook gen"
    kept = [*changed, *([] if facts.is_ignored else [facts.out])]
    if kept and starter.is_there(facts.root):
        yield f"  git add {' '.join(map(word, kept))} && git commit"
    yield f"  {facts.prove()}"
    yield "  mkdocs serve"
    if "github" in facts.forges:
        yield "on GitHub: Settings, Pages, Source: GitHub Actions"
    if facts.gpus:
        yield f"for the proof on GPUs: {' and '.join(_GPU_HINTS[forge].format(facts.gpus) for forge in facts.forges)}"


_GPU_HINTS = {
    "github": "a self-hosted runner with the labels linux and gpu-{}, and the variable RANKBOOK_GPUS=true of the repository's Actions",
    "gitlab": (
        "a runner with the tag gpu-{}, the variable RANKBOOK_GPUS=true of the project's CI/CD, and a pipeline schedule for each night"
    ),
}
