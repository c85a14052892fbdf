"""The command `rankbook query`: its options, and the ways to show an answer."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rankbook import query
from rankbook.config import load
from rankbook.document import survey_tree
from rankbook.sources.packages import told_from
from rankbook.terminal import is_watched, one_line

Say = Callable[[str], None]
"""Prints a line."""


def options(parser: ArgumentParser) -> None:
    """Add what may be asked for, each with its options."""
    nouns = parser.add_subparsers(metavar="WHAT", required=True)
    for name, noun in query.NOUNS.items():
        inner = nouns.add_parser(name, help=noun.help, description=noun.help)
        inner.set_defaults(noun=name, under="", untested=False)
        inner.add_argument("sources", nargs="*", metavar="SOURCE", help="files and folders below the root (default: the setting `sources`)")
        inner.add_argument("--root", type=Path, help="folder that source paths start from (default: the project around the current folder)")
        inner.add_argument("--format", choices=FORMATS, default="table", help="how the answer is shown (default: table)")
        if name == "apis":
            inner.add_argument("--under", default="", metavar="NAME", help="only names in this namespace: torch.distributed")
            inner.add_argument(
                "--untested", action="store_true", help="public names, of the setting `apis` or --under, that no test mentions"
            )
        _filters(inner)


def _filters(parser: ArgumentParser) -> None:
    sentence = "Each may be given several times, and takes a test by any of its values; a test is chosen when all take it."
    group = parser.add_argument_group("which tests", sentence)
    for flag, each in query.FILTERS.items():
        group.add_argument(f"--{flag}", action="append", metavar=each.metavar, help=each.help)


def ask(chosen: Namespace, root: Path, say: Say) -> int:
    """Answer the question of a command line.

    Args:
        chosen: its options.
        root: folder that source paths start from.
        say: prints a line.

    Returns:
        The exit status: 0 when something was found, 1 when nothing was.
    """
    settings = load(root, {"sources": tuple(chosen.sources) or None})
    apis = settings.apis
    if chosen.untested and chosen.under and not any(f"{chosen.under}.".startswith(f"{api}.") for api in apis):
        apis = (chosen.under,)
    given = ((flag, getattr(chosen, flag.replace("-", "_"))) for flag in query.FILTERS)
    filters = tuple((flag, tuple(values)) for flag, values in given if values)
    question = query.Question(chosen.noun, filters, chosen.under, chosen.untested)
    query.check(question, apis)
    found = query.answer(survey_tree(settings, apis), question, told_from(settings.root, settings.package_path))
    for line in FORMATS[chosen.format](found):
        say(line)
    return 0 if found.rows else 1


def _as_table(found: query.Answer) -> Iterator[str]:
    """Write columns; where a person watches, with what does not fit on a line broken within its column."""
    if not is_watched(sys.stdout) or not found.rows:
        yield from query.lines(found)
        return
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    table = Table(*(Column(name, overflow="fold") for name in found.columns), box=None, pad_edge=False)
    for row in found.rows:
        table.add_row(*(Text(one_line(cell)) for cell in (row.id, *row.cells)))
    console = Console(color_system=None)  # what steers a terminal is not passed on, whoever wrote it
    with console.capture() as captured:
        console.print(table)
    yield captured.get().rstrip("\n")


def _as_json(found: query.Answer) -> Iterator[str]:
    yield json.dumps([dict(row.facts) for row in found.rows], indent=2, ensure_ascii=False)


def _as_ids(found: query.Answer) -> Iterator[str]:
    return (one_line(row.id) for row in found.rows)


FORMATS: Mapping[str, Callable[[query.Answer], Iterator[str]]] = {"table": _as_table, "json": _as_json, "ids": _as_ids}
"""Ways to show an answer, line by line."""
