"""The command `rankbook`: reads options, calls a story, shows the result."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from msgspec import Struct

from rankbook import __version__, freshness
from rankbook.config import Settings, find_root, load
from rankbook.errors import ConfigError, RankbookError, refused
from rankbook.garbage import leave_at_exit
from rankbook.report import Report, others_among, pages_among, plural, told_of_unparsed
from rankbook.terminal import harmless, heard, is_watched, one_line, word

_DRAWN_EVERY = 0.1
"""Seconds between two looks of a progress bar."""


class Command(Struct, frozen=True):
    """One subcommand."""

    name: str
    help: str
    """What it does, in one line."""
    options: Callable[[argparse.ArgumentParser], None]
    """Adds its options."""
    run: Callable[[argparse.Namespace], int]
    """Does it, and gives the exit status."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: words of the command line; those of this process when None.

    Returns:
        The exit status: 0, 1 for a check that says no, 2 for an error.
    """
    leave_at_exit()
    words = sys.argv[1:] if arguments is None else arguments
    chosen = _parser(words).parse_args(words)
    try:
        return _told(int(chosen.command.run(chosen)))
    except RankbookError as error:
        _say(f"rankbook: error: {error}", sys.stderr)
        return 2
    except OSError as error:
        _say(f"rankbook: error: {refused(error)}", sys.stderr)
        return 2
    except KeyboardInterrupt:
        _say("rankbook: stopped", sys.stderr)
        return 130


def _told(status: int) -> int:
    """Give the exit status once all has been written that there was to say."""
    if sys.stdout is not None:
        with heard(sys.stdout):
            sys.stdout.flush()
    return status


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Make the parser, with the options of the commands that are named: those of others would have to be loaded.

    Where the first word names a command, none of the others is asked for.
    """
    parser = argparse.ArgumentParser(
        prog="rankbook", description="Turn a multi-GPU test suite into a book whose every listing is executed."
    )
    parser.add_argument("--version", action="version", version=f"rankbook {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in [command for command in COMMANDS if command.name in words[:1]] or COMMANDS:
        inner = commands.add_parser(command.name, help=command.help, description=command.help)
        if command.name in words:
            command.options(inner)
        inner.set_defaults(command=command)
    return parser


def _gen_options(parser: argparse.ArgumentParser) -> None:
    _book_of_options(parser)
    parser.add_argument(
        "--force",
        action="store_true",
        help="write pages anew that somebody has edited outside of notes, and remove those of sources that are left out",
    )
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 when a page was written or removed, for hooks")
    parser.add_argument("--staged", action="store_true", help="take only sources that are in Git's index, as the next commit has them")


def _book_of_options(parser: argparse.ArgumentParser) -> None:
    """Add what says which sources are documented, where to and how."""
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="files and folders below the root")
    parser.add_argument("--root", type=Path, help="folder that source paths start from (default: the project around the current folder)")
    parser.add_argument("--out", help="folder of the pages")
    parser.add_argument("--pack", help="template pack: rankbook, repository, repo-book, or one of your own")
    parser.add_argument("--include", action="append", metavar="GLOB", help="take only files that match (may be repeated)")
    parser.add_argument("--exclude", action="append", metavar="GLOB", help="leave out files that match (may be repeated)")
    parser.add_argument(
        "--package-path", action="append", metavar="DIR", help="read imported packages in this folder; 'installed' for those of this Python"
    )
    parser.add_argument("--jobs", type=_jobs, metavar="N", help="processes; 0 for one per core")


def _jobs(word: str) -> int:
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"'{word}' is not a number of processes")
    return int(word)


def _gen(chosen: argparse.Namespace) -> int:
    settings = _book_of(chosen)
    changes = freshness.compare(settings)
    report = None if changes is None or chosen.force else changes.report
    if report is None:
        # What makes pages is loaded only when there is something to do.
        from rankbook.document import document

        with _progress() as progress:
            report = document(settings, force=chosen.force, progress=progress, changes=changes)
    for warning in (*report.warnings, *told_of_unparsed(report.unparsed)):
        _warn(warning)
    _say(summary(report))
    if report.unstaged:
        _say(f"{plural(len(report.unstaged), 'file')} of the book to stage: git add {word(settings.out)}")
    return 1 if chosen.exit_code and (report.changes or report.unstaged) else 0


def _book_of(chosen: argparse.Namespace) -> Settings:
    """Read the settings, with what the command line says of the sources."""
    overrides = {
        "sources": tuple(chosen.sources) or None,
        "out": chosen.out,
        "pack": chosen.pack,
        "include": chosen.include and tuple(chosen.include),
        "exclude": chosen.exclude and tuple(chosen.exclude),
        "package_path": chosen.package_path and tuple(chosen.package_path),
        "jobs": chosen.jobs,
        "staged": getattr(chosen, "staged", None),
    }
    root = _root(chosen)
    settings = load(root, overrides)
    if not getattr(chosen, "force", False):
        book = load(root)
        if chosen.sources:
            _refuse_a_part(book, settings)
        _refuse_what_holds(book, settings)
    return settings


def _refuse_what_holds(book: Settings, asked: Settings) -> None:
    """Make sure that pages do not lie among the sources, and that those of the book do not go with what else lies in a named folder.

    Args:
        book: settings as the project has them.
        asked: the same with what the command line says.

    Raises:
        ConfigError: the folder of the pages holds that of the book, or is the root.
    """
    out, named = book.below_root(book.out), asked.below_root(asked.out)
    if named == book.root:
        right = "name another folder with --out, or in the setting `out`"
        raise ConfigError("the pages would lie among the sources", where=named, right=right)
    if out != named and out.is_relative_to(named) and (out / "index.md").is_file():
        raise ConfigError(
            f"'{asked.out}' holds the pages of the book, which are in '{book.out}'",
            where=book.root / "pyproject.toml",
            right="name a folder beside that with --out, or change the setting `out` and put its pages there by `git mv`",
        )


def _refuse_a_part(book: Settings, asked: Settings) -> None:
    """Make sure that the pages of sources which the command line leaves out do not go: who names a file seldom means that.

    Args:
        book: settings as the project has them.
        asked: the same with what the command line says.

    Raises:
        ConfigError: the folder of the pages is that of a book of more sources.
    """
    named = [asked.below_root(source) for source in asked.sources]
    left = [source for source in book.sources if not any(book.below_root(source).is_relative_to(path) for path in named)]
    if left and all(path.exists() for path in named) and asked.below_root(asked.out) == book.below_root(book.out):
        raise ConfigError(
            f"the book in '{book.out}' has the sources {', '.join(book.sources)}, and the command line leaves out {', '.join(left)}",
            where=book.root / "pyproject.toml",
            right="name no source, change the setting `sources`, or give what you name a book of its own with --out",
        )


def _check_options(parser: argparse.ArgumentParser) -> None:
    from rankbook import checking

    _book_of_options(parser)
    checking.options(parser)


def _check(chosen: argparse.Namespace) -> int:
    from rankbook import checking

    with _progress() as progress:
        return checking.check(chosen, _book_of(chosen), progress, _say, _warn)


def _accept_options(parser: argparse.ArgumentParser) -> None:
    from rankbook import accepting

    accepting.options(parser)


def _accept(chosen: argparse.Namespace) -> int:
    from rankbook import accepting

    return accepting.accept(chosen, load(_root(chosen), {"out": chosen.out}), _say, _warn, input)


def _root(chosen: argparse.Namespace) -> Path:
    root: Path = chosen.root or find_root(Path.cwd())
    if not root.is_dir():
        raise RankbookError(f"the root '{root}' is not a folder", right="name the folder that source paths start from")
    return root


def summary(report: Report) -> str:
    """Say in one line what a run has done."""
    found = {"written": report.written, "removed": report.removed, "kept": report.kept}
    counts = {word: pages_among(paths) for word, paths in found.items()}
    counts = {"written": counts.pop("written"), "unchanged": report.unchanged, **counts}
    told = (f"{count:,} {word}" for word, count in counts.items() if count or word == "unchanged")
    said = ", ".join((*told, *others_among(found)))
    sources, made = plural(report.sources, "source"), plural(report.pages, "page")
    return f"{sources}, {made}: {said} ({sum(report.seconds.values()):.1f} s)"


def _warn(line: str) -> None:
    _say(f"rankbook: warning: {one_line(line)}", sys.stderr)


def _say(line: str, stream: TextIO | None = None) -> None:
    stream = stream or sys.stdout
    with heard(stream):
        print(harmless(line), file=stream)


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar for each step where a person watches."""
    if not is_watched(sys.stderr):
        yield lambda _step, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:>9}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # Without a thread of its own that draws: beside threads, work is not spread over processes.
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bars:
        tasks = {}
        drawn = 0.0

        def progress(step: str, done: int, total: int) -> None:
            nonlocal drawn
            if step not in tasks:
                tasks[step] = bars.add_task(step, total=total)
            bars.update(tasks[step], completed=done, total=total)
            if (now := time.monotonic()) - drawn > _DRAWN_EVERY:
                drawn = now
                bars.refresh()

        yield progress


def _book_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", type=Path, help="folder with the project's mkdocs.yml (default: the project around the current folder)")
    parser.add_argument("--docs", help="folder of all pages, below the root (default: as mkdocs.yml says)")


def _book(chosen: argparse.Namespace) -> int:
    from rankbook import book

    settings = load(_root(chosen))
    with _progress() as progress:
        made = book.make_book(settings, chosen.docs, progress)
    for warning in (*made.generated.warnings, *told_of_unparsed(made.generated.unparsed)):
        _warn(warning)
    for line in book.summary(made):
        _say(line)
    return made.status


def _stamp_options(parser: argparse.ArgumentParser) -> None:
    from rankbook import stamping

    stamping.options(parser)


def _stamp(chosen: argparse.Namespace) -> int:
    from rankbook import stamping

    return stamping.stamp(chosen, load(_root(chosen)), _say, _warn)


def _query_options(parser: argparse.ArgumentParser) -> None:
    from rankbook import asking

    asking.options(parser)


def _query(chosen: argparse.Namespace) -> int:
    from rankbook import asking

    return asking.ask(chosen, _root(chosen), _say)


def _ledger_options(parser: argparse.ArgumentParser) -> None:
    from rankbook import keeping

    keeping.options(parser)


def _ledger(chosen: argparse.Namespace) -> int:
    from rankbook import keeping

    return keeping.keep(chosen, _root(chosen), _say)


def _init_options(parser: argparse.ArgumentParser) -> None:
    from rankbook import starting

    starting.options(parser)


def _init(chosen: argparse.Namespace) -> int:
    from rankbook import starting

    return starting.start(chosen, _root(chosen), _say)


COMMANDS = (
    Command("init", "Write what a repository needs for its book: settings, site, CI.", _init_options, _init),
    Command("gen", "Turn sources into pages, and write what has changed.", _gen_options, _gen),
    Command("check", "Say which pages are not in step with their sources, and write nothing.", _check_options, _check),
    Command("accept", "Take listings that were edited on their pages back into their sources.", _accept_options, _accept),
    Command("stamp", "Put the generated pages into a site that an engine has built.", _stamp_options, _stamp),
    Command("book", "Generate the pages, execute every listing, build the site.", _book_options, _book),
    Command("query", "Ask which tests need or exercise what.", _query_options, _query),
    Command("ledger", "Show what was recorded, put ledgers together, and find what never ran.", _ledger_options, _ledger),
)
"""All subcommands; a new one is a row."""


if __name__ == "__main__":
    sys.exit(main())
