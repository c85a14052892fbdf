"""The ledger keeps what was recorded, and refuses what it cannot read."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import pytest

from rankbook.errors import LedgerError
from rankbook.ledger import FORMAT, Ledger
from rankbook.listing import Outcome, Run


def run(node="p.md::a", outcome=Outcome.PASSED, **values) -> Run:
    return Run(page="p.md", node_id=node, listing="00", source="a.py", line=3, kind="test", outcome=outcome, **values)


def test_the_last_outcome_counts(tmp_path):
    """Of several runs of one item the last is given, by source and by page."""
    ledger = Ledger(tmp_path / "deep" / "ledger.sqlite")
    ledger.record([run(reason="first"), run("p.md::b")])
    ledger.record([run(outcome=Outcome.FAILED, reason="second", duration=1.5, ranks=2)])
    last = ledger.last("a.py")
    assert [(entry.node_id, entry.outcome, entry.reason) for entry in last] == [
        ("p.md::a", Outcome.FAILED, "second"),
        ("p.md::b", Outcome.PASSED, ""),
    ]
    assert ledger.last_by_page("p.md") == last
    assert ledger.last("other.py") == []


def test_no_ledger_is_an_empty_one(tmp_path):
    """Before the first run there is nothing, and asking makes no file."""
    assert Ledger(tmp_path / "none.sqlite").last("a.py") == []
    assert not (tmp_path / "none.sqlite").exists()


def test_a_file_that_is_no_ledger(tmp_path):
    """Another file is refused in one sentence and stays as it is."""
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(LedgerError, match=r"ledger\.sqlite: not a ledger"):
        Ledger(path).record([run()])
    assert path.read_bytes() == b"not a database" * 100


def test_a_newer_ledger(tmp_path):
    """A ledger of a newer format is refused, not changed."""
    path = tmp_path / "ledger.sqlite"
    Ledger(path).record([run()])
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    connection.close()
    with pytest.raises(LedgerError, match="newer than this rankbook's"):
        Ledger(path).last("a.py")


def test_concurrent_writers(tmp_path):
    """Several processes write at once and nothing is lost."""
    program = (
        "import sys; from pathlib import Path; from rankbook.ledger import Ledger; from rankbook.listing import Run, Outcome\n"
        "for n in range(20):\n"
        "    Ledger(Path(sys.argv[1])).record([Run('p.md', f'{sys.argv[2]}-{n}', '', 'a.py', 1, 'test', Outcome.PASSED)])\n"
    )
    path = tmp_path / "ledger.sqlite"
    writers = [subprocess.Popen([sys.executable, "-c", program, str(path), str(number)]) for number in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert len(Ledger(path).last("a.py")) == 60
