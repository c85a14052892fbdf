"""The command `rankbook ledger`: what it shows of the record of runs, and how ledgers of several machines become one."""

from __future__ import annotations

import json
import os
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from secrets import token_hex
from typing import TextIO

from msgspec import Struct
from msgspec.structs import asdict

from rankbook import debt
from rankbook.config import Settings, load, real
from rankbook.errors import LedgerError, RankbookError
from rankbook.ledger import FORMAT, Ledger, Values, checked, hardware_class, is_ahead, moment, values_of
from rankbook.listing import Outcome, Run
from rankbook.report import plural
from rankbook.stamps import stamp_of
from rankbook.standing import Beside, listings_of
from rankbook.terminal import aligned, heard, one_line

Say = Callable[[str], None]
"""Prints a line."""
HEADER = "rankbook ledger"
"""Key of the first line of an export; its value is the format."""
STANDARD = "-"
"""Name of the file that stands for standard input."""


class Deed(Struct, frozen=True):
    """One thing to do with a ledger."""

    help: str
    options: Callable[[ArgumentParser], None]
    """Adds its options."""
    do: Callable[[Ledger, Namespace, Settings, Say], int]
    """Does it, and gives the exit status."""


def options(parser: ArgumentParser) -> None:
    """Add what may be done with a ledger, each with its options."""
    inner = parser.add_subparsers(metavar="WHAT", required=True)
    for name, deed in DEEDS.items():
        one = inner.add_parser(name, help=deed.help, description=deed.help)
        one.add_argument("--root", type=Path, help="folder of the project (default: the project around the current folder)")
        one.add_argument("--ledger", metavar="FILE", help="the ledger (default: the setting `ledger`)")
        deed.options(one)
        one.set_defaults(deed=deed)


def keep(chosen: Namespace, root: Path, say: Say) -> int:
    """Do what a command line asks.

    Args:
        chosen: its options.
        root: folder of the project.
        say: prints a line.

    Returns:
        The exit status.
    """
    settings = load(root)
    path = real(Path(chosen.ledger)) if chosen.ledger else settings.below_root(settings.ledger)
    return int(chosen.deed.do(Ledger(path), chosen, settings, say))


def _since(word: str) -> str:
    """Read `2026-11-01`, `2026-11-01T14:05`, or `7d`: days ago."""
    try:
        if word.endswith("d") and word[:-1].isdecimal():
            return (datetime.now(UTC) - timedelta(days=int(word[:-1]))).isoformat()
        return moment(word)
    except (ValueError, OverflowError) as error:
        raise ArgumentTypeError(f"'{word}' is neither a date (2026-11-01) nor a number of days (7d)") from error


def _since_option(parser: ArgumentParser) -> None:
    parser.add_argument("--since", type=_since, metavar="WHEN", help="only runs since a date (2026-11-01) or days ago (7d)")


# Showing


def _show_options(parser: ArgumentParser) -> None:
    what = "folders, pages, sources and node ids; with nothing named, everything"
    parser.add_argument("names", nargs="*", metavar="NAME", help=what)
    parser.add_argument(
        "--outcome", action="append", choices=[str(outcome) for outcome in Outcome], help="only runs that ended so (repeatable)"
    )
    parser.add_argument("--machine", action="append", metavar="TEXT", help="only runs on hardware whose name holds this (repeatable)")
    parser.add_argument("--history", metavar="NODEID", help="all runs of one test or listing, oldest first, instead of last runs")
    parser.add_argument("--json", action="store_true", help="show whole runs as JSON")
    _since_option(parser)


def _show(ledger: Ledger, chosen: Namespace, settings: Settings, say: Say) -> int:
    if chosen.history:
        runs = _history(ledger, chosen.history, settings)
        unknown = [] if runs else [chosen.history]
    else:
        runs, unknown = _last(ledger, chosen.names, settings)
    found = [run for run in runs if _is_asked_for(run, chosen)]
    for line in _as_json(found) if chosen.json else _columns(found):
        say(line)
    for name in unknown:
        held = _held(ledger, name, settings) if chosen.history else ""
        _warn(held or f"nothing was recorded of {name}; `rankbook ledger show` lists the pages and node ids of which something was")
    if not runs and not unknown:
        _warn(f"{ledger.path}: nothing was recorded yet")
    return 0 if found else 1


def _warn(line: str) -> None:
    with heard(sys.stderr):
        sys.stderr.write(f"rankbook: {one_line(line)}\n")


def _last(ledger: Ledger, names: Iterable[str], settings: Settings) -> tuple[list[Run], list[str]]:
    """Give the last run of each test on each class of hardware, of what is named, and the names of which nothing was recorded."""
    known = sorted(ledger.last_by_machine(), key=lambda run: (run.page, run.line, run.node_id, hardware_class(run.machine)))
    wanted = set(names)
    if not wanted:
        return known, []
    about = {page: _about(settings.below_root(page)) for page in {run.page for run in known if not run.source}}
    read = {name: _readings(name, settings.root) for name in wanted}
    called = [(run, {*_called(run, run.page), *_called(run, run.source or about[run.page])}) for run in known]
    found = [(run, {name for name, readings in read.items() if readings & said}) for run, said in called]
    there = set().union(*(of for _, of in found))
    return [run for run, of in found if of], [name for name in names if name not in there]


def _history(ledger: Ledger, name: str, settings: Settings) -> list[Run]:
    """Give all runs of one test or listing, which is named by its page or by its source."""
    readings = _readings(name, settings.root)
    same = {run.node_id for run in ledger.last_by_machine() if not readings.isdisjoint(_own_names(run))}
    return [run for node in sorted(readings | same) for run in ledger.history(node)]


def _held(ledger: Ledger, name: str, settings: Settings) -> str:
    """Say that a name is that of what holds tests and listings, of which one has a history; empty where nothing was recorded of it."""
    found = list(dict.fromkeys(run.node_id for run in _last(ledger, [name], settings)[0]))
    held = plural(len(found), "test or listing", "tests and listings")
    return f"{name} holds {held}, and `--history` wants the node id of one, such as {found[0]}" if found else ""


def _own_names(run: Run) -> Iterator[str]:
    """Yield what names the test or listing of a run, by its page and by its source."""
    for file in dict.fromkeys((run.page, run.source or run.page)):
        yield from _test_and_case(f"{file}{run.node_id.removeprefix(run.page)}")


def _readings(name: str, root: Path) -> set[str]:
    """Give what a name may stand for: seen from the root of the project, and, as for pytest, from the current folder."""
    path, separator, rest = name.partition("::")
    places = {os.path.normpath(path), os.path.relpath(path, root)}
    return {name, *(f"{place}{separator}{rest}" for place in places)}


def _called(run: Run, file: str) -> Iterator[str]:
    """Yield what a run may be named by: a file that it is of, each folder around that, and the node ids in it that hold the run."""
    if not file:
        return
    yield from (file, *map(os.fspath, PurePosixPath(file).parents))
    yield from _nodes(f"{file}{run.node_id.removeprefix(run.page)}")


def _about(page: Path) -> str:
    """Name the source that a page is about of whose listings none is that source itself: Markdown, in which they stand."""
    try:
        stamp = stamp_of(page)
    except RankbookError:
        return ""
    return stamp.source if stamp is not None and stamp.page == "file" else ""


def _nodes(node_id: str) -> Iterator[str]:
    """Yield a node id and those of the nodes that hold it."""
    *_, node_id = cases = list(_test_and_case(node_id))
    yield from cases[:-1]
    while node_id:
        yield node_id
        node_id = node_id.rpartition("::")[0]


def _test_and_case(node_id: str) -> Iterator[str]:
    """Yield a node id, and for a case of a parametrised test that of the test, which stands for all its cases."""
    yield node_id
    if found := _CASE.match(node_id):
        yield found[1]


def _is_asked_for(run: Run, chosen: Namespace) -> bool:
    is_outcome = not chosen.outcome or run.outcome in chosen.outcome
    is_machine = not chosen.machine or any(text.lower() in run.machine.lower() for text in chosen.machine)
    return is_outcome and is_machine and run.when >= (chosen.since or "")


def _as_json(runs: Iterable[Run]) -> Iterator[str]:
    yield json.dumps([values_of(run) for run in runs], indent=2, ensure_ascii=False)


_CASE = re.compile(r"(.*?::\w+)\[.*\]\Z", re.DOTALL)
"""The node id of a case: in its brackets anything may stand."""
_COLUMNS: Mapping[str, Callable[[Run], str]] = {
    "outcome": lambda run: str(run.outcome),
    "test or listing": lambda run: run.node_id,
    "hardware": lambda run: run.machine,
    "when": lambda run: datetime.fromisoformat(run.when).strftime("%Y-%m-%d %H:%M") if run.when else "",
    "commit": lambda run: run.commit,
    "seconds": lambda run: f"{run.duration:.2f}" if run.duration else "",
    "ranks": lambda run: str(run.ranks or ""),
    "reason": lambda run: run.reason.partition("\n")[0],
}
"""The columns of the table; one that would be empty is left out."""


def _columns(runs: list[Run]) -> Iterator[str]:
    columns = [[name, *cells] for name, cell in _COLUMNS.items() if any(cells := [cell(run) for run in runs])]
    return aligned(list(zip(*columns, strict=True)))


# From one ledger to another


def _export_options(parser: ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="file to write (default: -, the standard output)")
    _since_option(parser)


def _export(ledger: Ledger, chosen: Namespace, settings: Settings, say: Say) -> int:
    del settings
    lines = _lines(ledger, chosen.since or "")
    if chosen.file is None or str(chosen.file) == STANDARD:
        _print(lines)
        return 0
    with _replaced(chosen.file) as stream:
        count = sum(bool(stream.write(f"{line}\n")) for line in lines) - 1
    say(f"{plural(count, 'run')} written to {chosen.file}")
    return 0


def _lines(ledger: Ledger, since: str) -> Iterator[str]:
    """Yield an export: a line that says what follows, then a line for each run, oldest first."""
    runs = ledger.exported(since)
    first = list(islice(runs, 1))  # what cannot be read is told before anything is written
    yield json.dumps({HEADER: FORMAT})
    for values in chain(first, runs):
        yield json.dumps(values, sort_keys=True, separators=(",", ":"))


def _print(lines: Iterable[str]) -> None:
    with heard(sys.stdout):
        for line in lines:
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


@contextmanager
def _replaced(path: Path) -> Iterator[TextIO]:
    """Open a file that takes a path's place once it is whole."""
    part = path.with_name(f".rankbook-{token_hex(8)}.tmp")
    try:
        with part.open("x", encoding="utf-8", newline="\n") as stream:
            yield stream
        part.replace(path)
    except OSError as error:
        raise LedgerError(f"cannot be written ({error.strerror})", where=path) from error
    finally:
        part.unlink(missing_ok=True)


def _import_options(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="exports of other ledgers; `-` for standard input")


def _import(ledger: Ledger, chosen: Namespace, settings: Settings, say: Say) -> int:
    del settings
    return _add(ledger, chain.from_iterable(map(_runs_of, chosen.files)), say)


def _add(ledger: Ledger, runs: Iterable[tuple[str, Values]], say: Say) -> int:
    counted = _Counted(runs)
    new = ledger.add(counted)
    say(f"{plural(new, 'run')} added, {counted.number - new:,} there already")
    if counted.ahead:
        number, (where, when) = len(counted.ahead), counted.ahead[0]
        said = "is dated more than a day ahead, and counts" if number == 1 else "are dated more than a day ahead, and count"
        say(f"warning: {where}: {plural(number, 'run')} {said} as older than all others: {when}; set the clock of that machine right")
    return 0


class _Counted:
    """An iterable that knows how much it has given, and where what is dated ahead of this machine's clock.

    Args:
        runs: what it gives, each with its place.
    """

    def __init__(self, runs: Iterable[tuple[str, Values]]) -> None:
        self.runs = runs
        self.number = 0
        self.ahead: list[tuple[str, str]] = []

    def __iter__(self) -> Iterator[Values]:
        for self.number, (where, values) in enumerate(self.runs, 1):  # noqa: B020 - the count is the object's
            if is_ahead(when := values.get("when", "")):
                self.ahead.append((where, when))
            yield values


def _runs_of(name: str) -> Iterator[tuple[str, Values]]:
    """Yield the runs of an export, each checked, with its place."""
    number = 0
    with _opened(name) as stream:
        for number, line in enumerate(_text_lines(stream, name), 1):
            values = _read_line(name, number, line)
            if values is not None:
                yield f"{name}:{number}", values
    if not number:
        raise LedgerError("not a ledger's export: it is empty", where=name, right=_EXPORT_AGAIN)


def _read_line(name: str, number: int, line: str) -> Values | None:
    """Read a line; None for one that says that runs follow: the first one, and where another export begins."""
    try:
        values = json.loads(line, parse_constant=_refuse)
        if number > 1 and not (isinstance(values, dict) and HEADER in values):
            return checked(values)
        _check_header(values)
    except (ValueError, RecursionError) as error:
        raise LedgerError(f"not a line of a ledger's export: {error}", where=name, line=number, right=_EXPORT_AGAIN) from error
    return None


_EXPORT_AGAIN = "export it again; nothing was imported"


def _text_lines(stream: TextIO, name: str) -> Iterator[str]:
    try:
        yield from stream
    except UnicodeDecodeError as error:
        raise LedgerError("not a ledger's export: it is not in UTF-8", where=name, right="name a file that `export` wrote") from error


@contextmanager
def _opened(name: str) -> Iterator[TextIO]:
    if name == STANDARD:
        yield sys.stdin
        return
    try:
        with Path(name).open(encoding="utf-8") as stream:
            yield stream
    except OSError as error:
        raise LedgerError(f"cannot be read ({error.strerror})", where=name) from error


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def _check_header(values: object) -> None:
    found = values.get(HEADER) if isinstance(values, dict) else None
    if not isinstance(found, int):
        raise ValueError(f'the first line must be {{"{HEADER}": {FORMAT}}}')  # noqa: TRY004 - one kind of error for all that is wrong with a line
    if found > FORMAT:
        raise ValueError(f"format {found} is newer than this rankbook's {FORMAT}")


def _merge_options(parser: ArgumentParser) -> None:
    parser.add_argument("ledgers", nargs="+", type=Path, metavar="LEDGER", help="ledgers of other machines; they stay as they are")


def _merge(ledger: Ledger, chosen: Namespace, settings: Settings, say: Say) -> int:
    del settings
    for path in chosen.ledgers:
        if not path.is_file():
            raise LedgerError("it is no file" if path.exists() else "there is no such file", where=path, right="name a ledger")
        if not path.stat().st_size:
            raise LedgerError("it is empty, and a ledger never is", where=path, right="fetch it again; nothing was merged")
    others = [path for path in chosen.ledgers if path.resolve() != ledger.path.resolve()]
    return _add(ledger, chain.from_iterable(map(_runs_in, others)), say)


def _runs_in(path: Path) -> Iterator[tuple[str, Values]]:
    """Yield the runs of another ledger, each checked, with its place."""
    for values in Ledger(path).exported():
        where = f"{path}: {values.get('node_id', '')}"
        try:
            yield where, checked(values)
        except (ValueError, RecursionError) as error:
            what = f"it holds a run that this rankbook cannot take over, of {values.get('node_id') or 'no test'}: {error}"
            raise LedgerError(what, where=path, right="use the rankbook that wrote it; nothing was merged") from error


# Debt


def _debt_options(parser: ArgumentParser) -> None:
    parser.add_argument("--fail-on-debt", action="store_true", help=f"exit with {debt.STATUS} when there is any")
    parser.add_argument("--days", type=_days, metavar="N", help="count runs that are N days old no more (default: the setting `debt-days`)")
    parser.add_argument("--json", action="store_true", help="show it as JSON")


def _days(word: str) -> int:
    if not word.isdecimal():
        raise ArgumentTypeError(f"'{word}' is not a number of days")
    return int(word)


def _debt(ledger: Ledger, chosen: Namespace, settings: Settings, say: Say) -> int:
    days = settings.debt_days if chosen.days is None else chosen.days
    pages = debt.pages_of(settings)
    recorded = debt.current_runs(ledger, pages)
    if pages and not recorded:
        _warn(f"{ledger.path}: nothing was recorded yet")
    current = _on_pages(recorded, settings)
    by_hand = {run.page for run in current if not run.source and settings.below_root(run.page).is_file()}.difference(pages)
    listings = listings_of(settings.root, by_hand)
    current = debt.are_there(current, pages, listings)
    files = Beside(settings, {page.source for page in pages.values()}).files if current else {}
    found = debt.owed(ledger, current, days, pages=pages, listings=listings, files=files)
    if chosen.json:
        say(json.dumps([asdict(one) for one in found], indent=2, ensure_ascii=False))
    else:
        for line in (*(one.sentence() for one in found), _total(found, len(current) + sum(1 for _ in debt.unrun(current, pages)))):
            say(line)
    return debt.STATUS if chosen.fail_on_debt and (found or not current) else 0


def _on_pages(runs: list[Run], settings: Settings) -> list[Run]:
    """Leave out the tests of pages that are gone; all pages are somewhere else when none is there."""
    there = {page for page in {run.page for run in runs} if settings.below_root(page).is_file()}
    return [run for run in runs if run.page in there] if there else runs


def _total(found: Iterable[debt.Debt], number: int) -> str:
    owing = sum(len(one.node_ids) for one in found)
    if owing:
        return f"skip debt: {owing:,} of {number:,} tests and listings"
    return f"no skip debt: all of {number:,} tests and listings have run" if number else "nothing was recorded yet"


DEEDS: Mapping[str, Deed] = {
    "show": Deed("Show how tests and listings last ended on each class of hardware.", _show_options, _show),
    "export": Deed("Write runs as lines of JSON.", _export_options, _export),
    "import": Deed("Add the runs of exports that are not there yet.", _import_options, _import),
    "merge": Deed("Add the runs of other ledgers that are not there yet.", _merge_options, _merge),
    "debt": Deed("Say what no machine has really run, by what it needs.", _debt_options, _debt),
}
"""All that may be done; a new one is a row."""
