"""The ledger keeps what was recorded, puts together what several machines recorded, and refuses what it cannot read."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ledgers import CPU, TWO_GPUS, cases, rankbook, run, runs
from rankbook.debt import owed
from rankbook.errors import LedgerError
from rankbook.ledger import FORMAT, Ledger, checked, hardware_class, moment, run_of, values_of
from rankbook.ledger.recent import recorded
from rankbook.listing import Outcome, RankEnd, Receipt, Run

FIRST_FORMAT = """
CREATE TABLE runs (id INTEGER PRIMARY KEY, page NOT NULL, node_id NOT NULL, listing NOT NULL, source NOT NULL, line NOT NULL,
 kind NOT NULL, outcome NOT NULL, reason NOT NULL, duration NOT NULL, ranks NOT NULL, at NOT NULL, machine NOT NULL, engine NOT NULL,
 torch NOT NULL, commit_id NOT NULL);
CREATE INDEX runs_by_source ON runs (source, node_id, id);
CREATE INDEX runs_by_page ON runs (page, node_id, id);
PRAGMA user_version = 1;
"""
ROW = ("p.md", "p.md::a", "00", "a.py", 3, "test", "failed", "first", 1.5, 2, "2026-11-20T14:05:00+00:00", CPU, "local", "2.13.0", "abc")
FIELDS = ("page", "node_id", "listing", "source", "line", "kind", "outcome", "reason", "duration", "ranks", "when", "machine", "engine",
          "torch", "commit")  # fmt: skip


def first_format(path: Path, *rows: tuple) -> Path:
    """Write a ledger as the first version did."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(FIRST_FORMAT)
        connection.executemany(f"INSERT INTO runs VALUES (NULL, {', '.join('?' * 15)})", rows)
    return path


def lines(ledger: Ledger) -> list[str]:
    """Give all that a ledger holds, as text."""
    return [json.dumps(values, sort_keys=True) for values in ledger.exported()]


def without_versions(one: Run) -> Run:
    """Take out the version of Python, which recording adds."""
    versions = {name: version for name, version in one.receipt.versions.items() if name != "python"}
    return replace(one, receipt=replace(one.receipt, versions=versions))


# What was recorded


def test_the_last_outcome_counts(tmp_path):
    """Of several runs of one item the last is given, by source and by page."""
    ledger = Ledger(tmp_path / "deep" / "ledger.sqlite")
    ledger.record([run(reason="first"), run("docs/p.md::b")])
    ledger.record([run(outcome=Outcome.FAILED, reason="second", duration=1.5, ranks=2)])
    last = ledger.last("a.py")
    assert [(entry.node_id, entry.outcome, entry.reason) for entry in last] == [
        ("docs/p.md::a", Outcome.FAILED, "second"),
        ("docs/p.md::b", Outcome.PASSED, ""),
    ]
    assert ledger.last_by_page("docs/p.md") == last
    assert ledger.last("other.py") == []
    assert [entry.reason for entry in ledger.history("docs/p.md::a")] == ["first", "second"]


def test_each_class_of_hardware_has_its_last_run(tmp_path):
    """A run on GPUs stands beside one on a CPU; the number of cores makes no other class."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.record([run(machine=TWO_GPUS, reason="gpu"), run(machine="CPU, 64 cores, x86_64", reason="old"), run(machine=CPU, reason="new")])
    assert {(entry.machine, entry.reason) for entry in ledger.last_by_machine(page="docs/p.md")} == {(TWO_GPUS, "gpu"), (CPU, "new")}
    assert ledger.last_by_machine(source="other.py") == []
    assert hardware_class("CPU, 64 cores, x86_64") == hardware_class("CPU, 1 core, x86_64") == "CPU, x86_64"
    assert hardware_class(TWO_GPUS) == TWO_GPUS


def test_a_late_run_of_another_machine_is_no_newer(tmp_path):
    """What comes into the ledger later but ran earlier does not count as the last."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.record([run(reason="new", when="2026-11-20T14:05:00+00:00")])
    ledger.record([run(reason="old", when="2026-11-19T14:05:00+00:00")])
    assert [entry.reason for entry in ledger.last("a.py")] == ["new"]
    assert [entry.reason for entry in ledger.history("docs/p.md::a")] == ["old", "new"]


@settings(max_examples=25, deadline=None)
@given(st.lists(runs, min_size=1, max_size=6))
def test_nothing_is_lost(tmp_path_factory, some):
    """Every field of every run comes back as it was."""
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "ledger.sqlite")
    ledger.record(some)
    for node in {one.node_id for one in some}:
        wanted = sorted((one for one in some if one.node_id == node), key=lambda one: one.when)
        found = ledger.history(node)
        assert list(map(without_versions, found)) == list(map(without_versions, wanted))
        assert all(one.receipt.versions["python"] for one in found)


@given(runs)
def test_a_run_travels_as_json(one):
    """A run is the same after it was JSON, and what it became is a right line of an export."""
    values = json.loads(json.dumps(values_of(one)))
    assert run_of(values) == one
    assert run_of(checked({**values, "id": "0" * 32, "session": "s"})) == one


def test_text_that_no_file_takes(tmp_path):
    """A lone surrogate and a zero character cost nothing but themselves."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.record([run(reason="a\udc80b\0c", receipt=Receipt(note="\udc80"))])
    assert [entry.reason for entry in ledger.last("a.py")] == ["a\\udc80b\0c"]


def test_no_ledger_is_an_empty_one(tmp_path):
    """Before the first run there is nothing, and asking makes no file."""
    ledger = Ledger(tmp_path / "none.sqlite")
    assert ledger.last("a.py") == ledger.history("a") == list(ledger.exported()) == []
    assert ledger.gone() == {}
    assert not ledger.path.exists()


def test_a_path_of_any_kind(tmp_path):
    """The ledger lies where its path says, whatever the path would mean in a URI."""
    ledger = Ledger(tmp_path / "a b?mode=ro#c%20ü" / "ledger.sqlite")
    ledger.record([run()])
    assert ledger.path.is_file()
    assert len(ledger.last("a.py")) == 1


# Files that are something else


def test_a_file_that_is_no_ledger(tmp_path):
    """Another file is refused in one sentence and stays as it is."""
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(LedgerError, match=r"ledger\.sqlite: not a ledger"):
        Ledger(path).record([run()])
    with pytest.raises(LedgerError, match=r"ledger\.sqlite: not a ledger"):
        Ledger(path).last("a.py")
    assert path.read_bytes() == b"not a database" * 100


@pytest.mark.parametrize("version", [0, 1, 2, 9])
def test_a_database_of_another_program(tmp_path, version):
    """A database that is no ledger is refused and stays as it is, whatever version it gives itself."""
    path = tmp_path / "ledger.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE runs (mine)")
        connection.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    for use in (lambda: Ledger(path).record([run()]), lambda: Ledger(path).last("a.py")):
        with pytest.raises(LedgerError, match="not a ledger, but a database of another program"):
            use()
    assert path.read_bytes() == before


def test_a_newer_ledger(tmp_path):
    """A ledger of a newer format is refused, not changed."""
    path = tmp_path / "ledger.sqlite"
    Ledger(path).record([run()])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    before = path.read_bytes()
    for use in (lambda: Ledger(path).record([run()]), lambda: Ledger(path).last("a.py")):
        with pytest.raises(LedgerError, match="newer than this rankbook's"):
            use()
    assert path.read_bytes() == before


def test_a_run_of_a_newer_rankbook(tmp_path):
    """An outcome that only a newer rankbook knows is refused in one sentence where it is shown, and is exported as it is."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.add([{**values_of(run()), "id": "0" * 32, "outcome": "dreamt"}])
    with pytest.raises(LedgerError, match=r"cannot read .*dreamt.*; use the rankbook that wrote it"):
        ledger.last("a.py")
    assert [values["outcome"] for values in ledger.exported()] == ["dreamt"]


def test_a_damaged_ledger(tmp_path):
    """A ledger that lost a part of itself is refused and stays as it is, for whoever can still read it."""
    path = tmp_path / "ledger.sqlite"
    Ledger(path).record(run(f"docs/p.md::{number}", reason=f"{number}" * 50) for number in range(200))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    before = path.read_bytes()
    with pytest.raises(LedgerError, match=r"not a ledger that can be used .*; move it away and run again"):
        Ledger(path).record([run()])
    assert path.read_bytes() == before


DAMAGE = (
    "UPDATE runs SET reason = 9999",
    "UPDATE runs SET modules = 9999",
    "UPDATE runs SET receipt = '{'",
    "UPDATE runs SET receipt = '[1]'",
    "UPDATE runs SET at = 'x'",
    "UPDATE runs SET at = 5",
    "UPDATE runs SET duration = 'zz'",
    "UPDATE texts SET text = x'ff'",
)


@pytest.mark.parametrize("damage", DAMAGE)
def test_rows_that_cannot_be_read(book, damage):
    """Whoever reads a ledger whose rows are damaged gets one sentence, and it is neither merged nor counted as a proof."""
    with closing(sqlite3.connect(book / ".rankbook/ledger.sqlite")) as connection, connection:
        connection.execute(damage)
    sentence = (
        r"rankbook: error: \S*ledger\.sqlite: (it is damaged: it holds a run that cannot be read \(.*\)|not a ledger that can be used .*); "
    )
    for words in (("show",), ("debt",), ("export",), ("merge", ".rankbook/ledger.sqlite", "--ledger", "other.sqlite")):
        assert re.fullmatch(f"(?s){sentence}move it away and run again\n", rankbook("ledger", *words, cwd=book, status=2)), words
    assert not (book / "other.sqlite").exists() or list(Ledger(book / "other.sqlite").exported()) == []


def test_a_run_of_a_newer_rankbook_is_not_merged(book, tmp_path):
    """What an import refuses, a merge refuses too: one artifact of CI does not spoil the ledger of the book."""
    other = Ledger(tmp_path / "other.sqlite")
    other.add([{**values_of(run()), "id": "0" * 32}, {**values_of(run()), "id": "1" * 32, "outcome": "dreamt"}])
    before = rankbook("ledger", "export", cwd=book)
    assert rankbook("ledger", "merge", other.path, cwd=book, status=2) == (
        f"rankbook: error: {other.path}: it holds a run that this rankbook cannot take over, of docs/p.md::a: its 'outcome' is not "
        "an outcome; use the rankbook that wrote it; nothing was merged\n"
    )
    assert rankbook("ledger", "export", cwd=book) == before


# The first format


def test_the_first_format_loses_nothing(tmp_path):
    """A ledger of format 1 gives every field back, in its order, and takes new runs."""
    path = first_format(tmp_path / "ledger.sqlite", ROW, (*ROW[:7], "second", *ROW[8:]), ("p.md", "p.md::b", *ROW[2:]))
    ledger = Ledger(path)
    assert [(one.node_id, one.reason) for one in ledger.last("a.py")] == [("p.md::a", "second"), ("p.md::b", "first")]
    first = ledger.history("p.md::a")[0]
    assert tuple(getattr(first, name) for name in FIELDS) == ROW
    assert {name for name in Run.__struct_fields__ if name not in FIELDS} == {"receipt", "modules", "needs", "case"}
    ledger.record([run("p.md::a", reason="third")])
    assert [one.reason for one in ledger.history("p.md::a")] == ["first", "second", "third"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (FORMAT,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_copies_of_the_first_format_are_one(tmp_path):
    """Two copies of a ledger of format 1, one of which went on, make the ledger that went on; none of them is touched."""
    old = first_format(tmp_path / "old.sqlite", ROW, ROW)
    new = first_format(tmp_path / "new.sqlite", ROW, ROW, (*ROW[:7], "more", *ROW[8:]))
    before = old.read_bytes(), new.read_bytes()
    both = Ledger(tmp_path / "both.sqlite")
    assert [both.add(Ledger(path).exported()) for path in (new, old, new)] == [3, 0, 0]
    assert lines(both) == lines(Ledger(new))
    assert (old.read_bytes(), new.read_bytes()) == before


# Several writers, and writers that end


def test_concurrent_writers(tmp_path):
    """Several processes write at once, into a ledger of the first format, and nothing is lost."""
    program = (
        "import sys; from pathlib import Path; from rankbook.ledger import Ledger; from rankbook.listing import Run, Outcome\n"
        "with Ledger(Path(sys.argv[1])).session() as session:\n"
        "    for n in range(20):\n"
        "        session.record(Run('p.md', f'{sys.argv[2]}-{n}', '', 'a.py', 1, 'test', Outcome.PASSED))\n"
        "        session.flush()\n"
    )
    path = first_format(tmp_path / "ledger.sqlite", ROW)
    writers = [subprocess.Popen([sys.executable, "-c", program, str(path), str(number)]) for number in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert len(Ledger(path).last("a.py")) == 61


def test_results_are_written_as_they_come(tmp_path):
    """The first run is there before the session ends, a hundred in a moment are too, and all of them at its end."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    with ledger.session() as session:
        session.record(run("docs/p.md::0"))
        assert len(ledger.last("a.py")) == 1
        for number in range(1, 301):
            session.record(run(f"docs/p.md::{number}"))
        assert len(ledger.last("a.py")) > 200
    assert len(ledger.last("a.py")) == 301
    assert {values["session"] for values in ledger.exported()} == {session.key}


def test_what_was_proved_earlier_is_not_recorded_again(tmp_path):
    """The run that proves a test stays its last one."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    with ledger.session() as session:
        session.record(run(ranks=2))
        session.record(run(outcome=Outcome.PROVED))
    assert [(one.outcome, one.ranks) for one in ledger.history("docs/p.md::a")] == [(Outcome.PASSED, 2)]


def test_what_waits_is_written_when_nothing_else_comes(tmp_path):
    """A run that waits for others is in the ledger after a moment, however long the next one takes."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    with ledger.session() as session:
        for name in ("first", "second", "third"):
            session.record(run(f"docs/p.md::{name}"))
        end = time.monotonic() + 20
        while len(found := Ledger(ledger.path).latest()) < 3 and time.monotonic() < end:
            time.sleep(0.05)
        assert {each.node_id.partition("::")[2] for each in found} == {"first", "second", "third"}
        session.record(run("docs/p.md::fourth"))
    assert len(ledger.latest()) == 4


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_writer(tmp_path):
    """A writer that is killed in the middle of a write leaves a whole ledger with all that was committed."""
    program = (
        "import os, signal, sys; from pathlib import Path; from rankbook.ledger import Ledger, rows\n"
        "from rankbook.listing import Run, Outcome\n"
        "session = Ledger(Path(sys.argv[1])).session()\n"
        "add = rows.add\n"
        "def killed(connection, runs):\n"
        "    if len(runs) > 1:\n"
        "        connection.execute('PRAGMA cache_size = 1')\n"
        "        add(connection, runs)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return add(connection, runs)\n"
        "rows.add = killed\n"
        "make = lambda n: Run('p.md', f'p.md::{n}', '', 'a.py', 1, 'test', Outcome.PASSED, reason=str(n) * 2000)\n"
        "for n in range(5):\n"
        "    session.record(make(n)); session.flush()\n"
        "session._waiting = [session._values(make(n)) for n in range(5, 500)]\n"
        "session.flush()\n"
    )
    path = tmp_path / "ledger.sqlite"
    assert subprocess.run([sys.executable, "-c", program, str(path)], check=False).returncode == -signal.SIGKILL
    assert Path(f"{path}-journal").exists(), "the kill came before SQLite had touched the file"
    assert [one.node_id for one in Ledger(path).last("a.py")] == [f"p.md::{number}" for number in range(5)]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    Ledger(path).record([run()])


def test_no_room(tmp_path):
    """Where no more can be written, what was recorded stands, one sentence says so, and once there is room all of it is written."""
    pytest.importorskip("resource")
    program = (
        "import resource, sys; from pathlib import Path; from rankbook.errors import LedgerError; from rankbook.ledger import Ledger\n"
        "from rankbook.listing import Run, Outcome\n"
        "ledger = Ledger(Path(sys.argv[1]))\n"
        "make = lambda n: Run('p.md', f'p.md::{n:04}', '', 'a.py', 1, 'test', Outcome.PASSED, reason=str(n) * 1000)\n"
        "ledger.record([make(n) for n in range(10)])\n"
        "size = Path(sys.argv[1]).stat().st_size\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))\n"
        "session = ledger.session()\n"
        "for n in range(10, 400): session.record(make(n))\n"
        "try: session.close()\n"
        "except LedgerError as error: print(error)\n"
        "print(len(ledger.last('a.py')))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "session.close()\n"
        "print(len(ledger.last('a.py')))\n"
    )
    path = tmp_path / "ledger.sqlite"
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    sentence, during, after = done.stdout.splitlines()
    assert "what was recorded before stands" in sentence
    assert sentence.startswith(f"{path}: ")
    assert 10 <= int(during) < 300
    assert after == "400"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs POSIX permissions")
def test_a_folder_that_cannot_be_written():
    """A ledger of either format is read where nothing can be written, and one sentence says that it is not written."""
    program = (
        "import os, sys; from pathlib import Path; from rankbook.errors import LedgerError; from rankbook.ledger import Ledger\n"
        "from rankbook.listing import Run, Outcome\n"
        "ledger = Ledger(Path(sys.argv[1]))\n"
        "if os.getuid() == 0: os.setuid(65534)\n"  # to root nothing is read-only
        "print(len(ledger.last('a.py')))\n"
        "try: ledger.record([Run('p.md', 'p.md::z', '', 'a.py', 1, 'test', Outcome.PASSED)])\n"
        "except LedgerError as error: print(error)\n"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        old, new = first_format(folder / "old.sqlite", ROW), folder / "new.sqlite"
        Ledger(new).record([run()])
        for path in (old, new):
            path.chmod(0o444)
        folder.chmod(0o555)
        for path in (old, new):
            before = path.read_bytes()
            done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
            number, sentence = done.stdout.splitlines()
            assert number == "1"
            assert sentence.startswith(f"{path}: it cannot be written")
            assert path.read_bytes() == before
        folder.chmod(0o755)


# Several ledgers


@settings(max_examples=12, deadline=None)
@given(st.lists(st.lists(runs, max_size=4), min_size=3, max_size=3), st.lists(st.integers(0, 2), min_size=1, max_size=6))
def test_ledgers_can_be_put_together_in_any_way(tmp_path_factory, groups, order):
    """Merging is commutative, associative and idempotent: in any order, any number of times, it gives the same ledger and answers."""
    folder = tmp_path_factory.mktemp("ledgers")
    parts = [Ledger(folder / f"part{number}.sqlite") for number in range(3)]
    for part, group in zip(parts, groups, strict=True):
        part.record(group)

    def merged(name: str, *ledgers: Ledger) -> Ledger:
        whole = Ledger(folder / f"{name}.sqlite")
        for ledger in ledgers:
            whole.add(ledger.exported())
        return whole

    a, b, c = parts
    wholes = [
        merged("abc", a, b, c),
        merged("cba", c, b, a),
        merged("left", merged("ab", a, b), c),
        merged("right", a, merged("bc", b, c)),
        merged("again", *(parts[number] for number in order), a, b, c, a),
    ]
    assert all(lines(whole) == lines(wholes[0]) for whole in wholes)
    assert sorted(lines(wholes[0])) == sorted(reduce(lambda x, y: x + y, map(lines, parts)))
    assert all(whole.last("a.py") == wholes[0].last("a.py") for whole in wholes)
    assert all(whole.latest() == wholes[0].latest() for whole in wholes)
    assert all(whole.gone() == wholes[0].gone() for whole in wholes)


@settings(max_examples=15, deadline=None)
@given(st.lists(runs, max_size=5))
def test_an_export_is_the_ledger(tmp_path_factory, some):
    """What is exported and imported again is the same, line by line, and imported twice it changes nothing."""
    folder = tmp_path_factory.mktemp("ledgers")
    first, second = Ledger(folder / "first.sqlite"), Ledger(folder / "second.sqlite")
    first.record(some)
    text = lines(first)
    assert second.add(checked(json.loads(line)) for line in text) == len(some)
    assert second.add(checked(json.loads(line)) for line in text) == 0
    assert lines(second) == text


# The command


@pytest.fixture
def book(tmp_path):
    """A project whose ledger has runs on a CPU and on two GPUs."""
    (tmp_path / "pyproject.toml").touch()
    early, late = "2026-11-19T10:00:00+00:00", "2026-11-20T14:05:00+00:00"
    ledger = Ledger(tmp_path / ".rankbook" / "ledger.sqlite")
    ledger.record(
        [
            *cases(["T::one", "T::two"], when=early, commit="abc"),
            run("docs/q.md::first", Outcome.SKIPPED, reason="needs 2 GPUs\nmore", source="", when=late),
            run("docs/q.md::first", machine=TWO_GPUS, source="", when=early, duration=1.5, ranks=2, receipt=Receipt((RankEnd("rank 0"),))),
        ]
    )
    return tmp_path


def test_show(book):
    """The last run of each test on each class of hardware, in columns; filters and names leave out the others."""
    assert rankbook("ledger", "show", cwd=book).splitlines() == [
        "outcome  test or listing    hardware              when              commit  seconds  ranks  reason",
        "passed   docs/p.md::T::one  CPU, 2 cores, x86_64  2026-11-19 10:00  abc",
        "passed   docs/p.md::T::two  CPU, 2 cores, x86_64  2026-11-19 10:00  abc",
        "passed   docs/q.md::first   2 × NVIDIA H200       2026-11-19 10:00          1.50     2",
        "skipped  docs/q.md::first   CPU, 2 cores, x86_64  2026-11-20 14:05                          needs 2 GPUs",
    ]  # fmt: skip
    asked = {
        ("docs/q.md",): 2,
        ("a.py",): 2,
        ("docs/p.md::T",): 2,
        ("a.py::T",): 2,
        ("a.py::T::two",): 1,
        ("docs",): 4,
        ("./docs/",): 4,
        (".",): 4,
        (str(book / "docs"),): 4,
        ("docs/p.md::T::two", "docs/q.md::first"): 3,
        ("--outcome", "skipped"): 1,
        ("--machine", "h200"): 1,
        ("--since", "2026-11-20"): 1,
        ("--since", "2026-11-20T15:05+01:00"): 1,
        ("--history", "docs/q.md::first"): 2,
        ("--history", "./docs/q.md::first"): 2,
        ("--history", "a.py::T::two"): 1,
    }
    for words, number in asked.items():
        assert len(rankbook("ledger", "show", *words, cwd=book).splitlines()) == number + 1, words
    (book / "docs").mkdir(exist_ok=True)
    for name, number in {"q.md": 2, "q.md::first": 2, "docs/q.md": 2, ".": 4, "../a.py": 2}.items():
        shown = rankbook("ledger", "show", "--root", str(book), name, cwd=book / "docs")
        assert len(shown.splitlines()) == number + 1, name
    found = json.loads(rankbook("ledger", "show", "--json", "--machine", "NVIDIA", cwd=book))
    assert [(one["ranks"], one["receipt"]["ranks"][0]["name"]) for one in found] == [(2, "rank 0")]
    nothing = "rankbook: nothing was recorded of {}; `rankbook ledger show` lists the pages and node ids of which something was\n"
    assert rankbook("ledger", "show", "docs/none.md", cwd=book, status=1) == nothing.format("docs/none.md")
    assert rankbook("ledger", "show", "--history", "docs/none.md", cwd=book, status=1) == nothing.format("docs/none.md")
    held = "rankbook: {} holds {}, and `--history` wants the node id of one, such as {}\n"
    for name, *words in (
        ("docs/q.md", "1 test or listing", "docs/q.md::first"),
        ("a.py", "2 tests and listings", "docs/p.md::T::one"),
        ("docs/p.md::T", "2 tests and listings", "docs/p.md::T::one"),
    ):
        assert rankbook("ledger", "show", "--history", name, cwd=book, status=1) == held.format(name, *words)
    assert rankbook("ledger", "show", "--outcome", "hung", "docs/q.md", cwd=book, status=1) == ""
    assert "'yesterday' is neither a date" in rankbook("ledger", "show", "--since", "yesterday", cwd=book, status=2)


def test_a_test_stands_for_its_cases(book):
    """A node id without what stands in brackets names all cases of a test, as for pytest; other tests and listings it does not name."""
    names = ["T::many[1]", "T::many[a::b]", "T::many[x[0]-]", "T::many_more[1]", "t[1]", "T::all"]
    Ledger(book / ".rankbook" / "ledger.sqlite").record(cases(names, when="2026-11-20T10:00:00+00:00"))
    for node in ("docs/p.md", "a.py"):
        for case, number in {"T::many": 3, "T::many[1]": 1, "T::many[a::b]": 1, "T::many_more": 1, "t": 1, "T": 7}.items():
            assert len(rankbook("ledger", "show", f"{node}::{case}", cwd=book).splitlines()) == number + 1, case
        for case, number in {"T::many": 3, "T::many[1]": 1, "t": 1}.items():
            assert len(rankbook("ledger", "show", "--history", f"{node}::{case}", cwd=book).splitlines()) == number + 1, case
        for case in ("T::man", "T::many[2]", "T::many[a"):
            assert "nothing was recorded" in rankbook("ledger", "show", f"{node}::{case}", cwd=book, status=1), case


def test_an_export_leaves_out_what_is_empty(tmp_path):
    """A listing of a page that people wrote has no source, and an imported run may have no kind and no line; both are taken back."""
    bare = {"page": "p.md", "node_id": "p.md::a", "outcome": "passed", "id": "0" * 32}
    ledger, other = Ledger(tmp_path / "one.sqlite"), Ledger(tmp_path / "other.sqlite")
    ledger.record([run("docs/q.md::first", source="")])
    ledger.add([checked(bare)])
    found = [json.loads(line) for line in lines(ledger)]
    assert not [one for one in found if {"source", "kind", "line"} & {name for name, value in one.items() if not value}]
    assert other.add(map(checked, found)) == 2
    assert lines(other) == lines(ledger)
    assert other.latest() == ledger.latest()


def test_columns_are_as_wide_as_what_is_shown(book):
    """What would steer the terminal is written out before the columns are measured."""
    Ledger(book / ".rankbook" / "ledger.sqlite").record(cases(["T::\x1b]0;zq\x07"], when="2026-11-20T10:00:00+00:00", reason="a\tb"))
    head, *rows = rankbook("ledger", "show", cwd=book).splitlines()
    assert any("docs/p.md::T::\\u001b]0;zq\\u0007  CPU" in row and row.endswith("a\\tb") for row in rows)
    assert {row[head.index("when") - 2 : head.index("when") + 2] for row in rows} == {"  20"}


def test_a_folder_is_no_ledger(tmp_path):
    """What is no file is no empty ledger: one sentence says so, and nothing is written before it."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / ".rankbook/ledger.sqlite").mkdir(parents=True)
    for words in (("show",), ("debt",), ("export",)):
        said = rankbook("ledger", *words, cwd=tmp_path, status=2)
        assert said.startswith(f"rankbook: error: {tmp_path}/.rankbook/ledger.sqlite: it is a folder, and no ledger; name a file"), said


def test_a_ledger_of_nothing_says_so(tmp_path):
    """Whoever has run nothing yet, or has misspelt the name of the ledger, reads which one holds nothing, and it is not made."""
    (tmp_path / "pyproject.toml").touch()
    for path, words in ((".rankbook/ledger.sqlite", ()), ("nightly.sqlite", ("--ledger", "nightly.sqlite"))):
        assert rankbook("ledger", "show", *words, cwd=tmp_path, status=1) == f"rankbook: {tmp_path}/{path}: nothing was recorded yet\n"
    assert [path.name for path in tmp_path.iterdir()] == ["pyproject.toml"]
    (tmp_path / "night").mkdir()
    assert "night: it is no file; name a ledger" in rankbook("ledger", "merge", "night", cwd=tmp_path, status=2)


def test_export_import_and_merge(book, tmp_path):
    """What another machine exported, or its whole ledger, is added once."""
    text = rankbook("ledger", "export", cwd=book)
    assert text.startswith('{"rankbook ledger": 2}\n')
    assert len(text.splitlines()) == 5
    assert rankbook("ledger", "export", "runs.jsonl", cwd=book) == "4 runs written to runs.jsonl\n"
    assert (book / "runs.jsonl").read_text(encoding="utf-8") == text
    assert len(rankbook("ledger", "export", "--since", "2026-11-20", cwd=book).splitlines()) == 2
    there = ("--ledger", "other.sqlite")
    assert rankbook("ledger", "import", "runs.jsonl", *there, cwd=book) == "4 runs added, 0 there already\n"
    assert rankbook("ledger", "import", "-", *there, cwd=book, given=text + text) == "0 runs added, 8 there already\n"
    assert rankbook("ledger", "export", *there, cwd=book) == text
    assert rankbook("ledger", "merge", ".rankbook/ledger.sqlite", "third.sqlite", *there, cwd=book, status=2).startswith(
        "rankbook: error: third.sqlite: there is no such file"
    )
    (book / "cut.sqlite").touch()
    assert rankbook("ledger", "merge", "cut.sqlite", *there, cwd=book, status=2).startswith(
        "rankbook: error: cut.sqlite: it is empty, and a ledger never is; fetch it again"
    )
    merged = ("ledger", "merge", ".rankbook/ledger.sqlite", "other.sqlite", "--ledger", "third.sqlite")
    assert rankbook(*merged, cwd=book) == "4 runs added, 4 there already\n"
    assert rankbook("ledger", "merge", "third.sqlite", "--ledger", "third.sqlite", cwd=book) == "0 runs added, 0 there already\n"
    assert rankbook("ledger", "export", "--ledger", "third.sqlite", cwd=book) == text


def test_a_run_that_is_dated_ahead_hides_no_other(book, tmp_path):
    """A run of a machine whose clock is ahead is kept as it is, counts as older than all others, and is warned of with its line."""
    ahead = (datetime.now(UTC) + timedelta(days=400)).isoformat(timespec="seconds")
    soon = (datetime.now(UTC) + timedelta(hours=3)).isoformat(timespec="seconds")
    (first, now), (later, alone) = (Ledger(tmp_path / name) for name in ("first.sqlite", "now.sqlite")), ("docs/p.md::a", "docs/q.md::b")
    first.record([run(later, when=ahead, reason="ahead"), run(alone, when=ahead, reason="alone")])
    now.record([run(later, outcome=Outcome.FAILED, when="2026-11-20T14:05:00+00:00", reason="old"), run(later, when=soon, reason="now")])
    rankbook("ledger", "export", tmp_path / "first.jsonl", "--ledger", tmp_path / "first.sqlite", cwd=book)
    for command, where in (("import", tmp_path / "first.jsonl"), ("merge", tmp_path / "first.sqlite")):
        there = tmp_path / f"{command}.sqlite"
        rankbook("ledger", "merge", tmp_path / "now.sqlite", "--ledger", there, cwd=book)
        place = f"{where}:2" if command == "import" else f"{where}: {later}"
        assert rankbook("ledger", command, where, "--ledger", there, cwd=book) == (
            f"2 runs added, 0 there already\nwarning: {place}: 2 runs are dated more than a day ahead, and count as older than all others: "
            f"{ahead}; set the clock of that machine right\n"
        )
        merged = Ledger(there)
        assert [found.reason for found in merged.history(later)] == ["ahead", "old", "now"]
        assert [found.reason for found in merged.latest()] == ["alone", "now"]
        assert {runs[-1][1].reason: runs[-1][1].at for runs in recorded(there)} == {"now": soon, "alone": ""}
        assert {page: set(found.nodes) for page, found in merged.gone().items()} == {"docs/p.md": set(), "docs/q.md": set()}
        assert [one.sentence() for one in owed(merged, merged.latest(), days=30)] == [
            "1 test, whose need is not known (skipped: alone); last run: at a time that is not known"
        ]
        assert owed(merged, merged.latest()) == []


BAD = {
    "{": "not a line of a ledger's export: Expecting property name",
    "[1]": "it is no JSON object",
    '{"node_id": "p::a", "page": "p", "outcome": "passed"}': "it has no 'id'",
    '{"id": "0"}': "its 'id' is not 32 digits of base 16",
    '{"id": "%s", "outcome": "fine"}': "its 'outcome' is not an outcome",
    '{"id": "%s", "page": "p", "node_id": "p::a", "outcome": "passed", "line": -1}': "its 'line' is not a whole number",
    '{"id": "%s", "page": "p", "node_id": "p::a", "outcome": "passed", "duration": NaN}': "NaN is no number of JSON",
    '{"id": "%s", "page": "p", "node_id": "p::a", "outcome": "passed", "duration": -5}': "its 'duration' is not a number of seconds",
    '{"id": "%s", "page": "p", "node_id": "p::a", "outcome": "passed", "duration": 1e300}': "its 'duration' is not a number of seconds",
    '{"id": "%s", "page": "p", "node_id": "p::a", "outcome": "passed", "receipt": {"ranks": [{"name": "rank 0", "started": 1e300}]}}': (
        "its 'receipt' is not a receipt"
    ),
    '{"id": "%s", "page": "p", "node_id": "p::a", "outcome": "passed", "when": "soon"}': "its 'when' is not a time in ISO 8601",
    '{"id": "%s", "page": "p", "node_id": "p::a", "outcome": "passed", "receipt": {"ranks": [1]}}': "its 'receipt' is not a receipt",
    '{"id": "%s", "page": "p", "node_id": "p::a", "outcome": "passed", "case": {"of": "x"}}': "its 'case' is not what pytest",
    '{"id": "%s", "page": "p", "node_id": "p::a", "outcome": "passed", "extra": 1}': "it has a field 'extra'",
    '{"rankbook ledger": 99}': "format 99 is newer than this rankbook's",
}


@pytest.mark.parametrize("line", BAD)
def test_a_bad_line(book, line):
    """A line that is no run is named, and nothing of any file is imported."""
    text = rankbook("ledger", "export", cwd=book)
    (book / "good.jsonl").write_text(text, encoding="utf-8")
    (book / "bad.jsonl").write_text(text + line.replace("%s", "0" * 32) + "\n", encoding="utf-8")
    said = rankbook("ledger", "import", "good.jsonl", "bad.jsonl", "--ledger", "other.sqlite", cwd=book, status=2)
    assert said.startswith("rankbook: error: bad.jsonl:6: ")
    assert BAD[line] in said
    assert rankbook("ledger", "export", "--ledger", "other.sqlite", cwd=book) == '{"rankbook ledger": 2}\n'


def test_a_file_that_is_no_export(book):
    """A file without the first line of an export, an empty one and one in another encoding are refused."""
    for data, said in ((b"", "it is empty"), (b"{}\n", "the first line must be"), (b"\xff\xfe", "it is not in UTF-8")):
        (book / "file").write_bytes(data)
        assert said in rankbook("ledger", "import", "file", cwd=book, status=2)
    assert "cannot be read" in rankbook("ledger", "import", "none", cwd=book, status=2)


def test_a_reader_that_has_seen_enough(book):
    """An export into a pipe that is closed early ends quietly."""
    command = f"{sys.executable} -m rankbook.cli ledger export | head -n 1"
    done = subprocess.run(["bash", "-c", command], cwd=book, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ('{"rankbook ledger": 2}\n', "")


def test_times_are_in_utc():
    """A time without an offset is in UTC, one with an offset is brought there."""
    assert moment("2026-11-20") == "2026-11-20T00:00:00+00:00"
    assert moment("2026-11-20T14:05+01:00") == "2026-11-20T13:05:00+00:00"
    with pytest.raises(ValueError, match="soon"):
        moment("soon")


def test_a_ledger_is_copied_as_one_file(tmp_path):
    """Nothing that was committed lies beside the file."""
    Ledger(tmp_path / "ledger.sqlite").record([run()])
    shutil.copy(tmp_path / "ledger.sqlite", tmp_path / "copy.sqlite")
    assert {path.name for path in tmp_path.iterdir()} == {"ledger.sqlite", "copy.sqlite"}
    assert len(Ledger(tmp_path / "copy.sqlite").last("a.py")) == 1
