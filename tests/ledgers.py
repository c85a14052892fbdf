"""Runs for tests of the ledger, and the ledger's command as a user calls it."""

from __future__ import annotations

import contextlib
import io
import re
import sqlite3
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from hypothesis import strategies as st
from msgspec.structs import replace

from rankbook.cli import main
from rankbook.listing import Outcome, RankEnd, Receipt, Run

CPU = "CPU, 2 cores, x86_64"
TWO_GPUS = "2 × NVIDIA H200"


def run(node="docs/p.md::a", outcome=Outcome.PASSED, **values) -> Run:
    """Make a run of a page that shows `a.py`."""
    values = {"page": node.partition("::")[0], "listing": "00", "source": "a.py", "line": 3, "kind": "test", "machine": CPU, **values}
    return Run(node_id=node, outcome=outcome, **values)


def cases(names, node="docs/p.md", **values) -> list[Run]:
    """Make a run of each test of a module."""
    made = [run(f"{node}::{name}", line=3 + place, **values) for place, name in enumerate(names)]
    facts = [{"id": name, "of": len(names), "place": place, "page": len(names)} for place, name in enumerate(names)]
    return [replace(one, case=case) for one, case in zip(made, facts, strict=True)]


class Strict(sqlite3.Connection):
    """Refuses what Python 3.14 refuses, and 3.11 takes: values by their order for a statement that has names or numbers for them."""

    def execute(self, statement, values=(), /):
        if values and not isinstance(values, Mapping) and re.search(r"\?[0-9]|[:@$][A-Za-z_]", statement):
            raise sqlite3.ProgrammingError(f"values without names, for a statement with names: {statement}")
        return super().execute(statement, values)


def rankbook(*words, cwd: Path, status: int = 0, given: str = "") -> str:
    """Call the command in a folder; give what it says on both streams."""
    said = io.StringIO()
    with contextlib.chdir(cwd), redirect_stdout(said), redirect_stderr(said), mock.patch("sys.stdin", io.StringIO(given)):
        try:
            found = main([str(word) for word in words])
        except SystemExit as error:
            found = error.code
    assert found == status, said.getvalue()
    return said.getvalue()


_seconds = st.floats(0, 1e9)
_few = st.text(max_size=6)
_names = st.dictionaries(st.text(min_size=1, max_size=6), st.text(min_size=1, max_size=6), max_size=3)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | _few,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_few, inner, max_size=3),
    max_leaves=6,
)
receipts = st.builds(
    Receipt,
    ranks=st.lists(st.builds(RankEnd, _few, st.none() | st.integers(-64, 255), _seconds, _seconds), max_size=3).map(tuple),
    world_size=st.none() | st.integers(1, 8),
    backend=_few,
    device=_few,
    gpus=st.lists(_few, max_size=2).map(tuple),
    seed=st.none() | st.integers(0, 2**64),
    versions=_names,
    engine=_few,
    note=_few,
    isolation=_few,
)
runs = st.builds(
    run,
    node=st.sampled_from(["docs/p.md::a", "docs/p.md::b", "docs/q.md::a", "docs/ü.md::T::t[a::b]"]),
    outcome=st.sampled_from([outcome for outcome in Outcome if outcome is not Outcome.PROVED]),
    listing=st.sampled_from(["00", "ff", ""]),
    line=st.integers(0, 9),
    reason=_few,
    duration=_seconds,
    ranks=st.integers(0, 8),
    when=st.sampled_from(["2026-11-20T14:05:00+00:00", "2026-11-20T14:06:00+00:00", "2026-11-21T01:00:00.250000+00:00"]),
    machine=st.sampled_from([CPU, TWO_GPUS, ""]),
    engine=_few,
    torch=st.sampled_from(["", "2.13.0"]),
    commit=_few,
    receipt=receipts,
    modules=_names,
    needs=st.lists(st.text(min_size=1, max_size=6), max_size=2).map(tuple),
    case=st.dictionaries(st.text(min_size=1, max_size=6).map("_".__add__), _json, max_size=3),
)
"""Any runs, of few tests, so that some are of the same one, even at the same time."""
