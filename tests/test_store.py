"""What a run keeps: values come back as they were set, wherever they lie, and forgetting answers changes no page."""

from __future__ import annotations

import os
import pickle
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rankbook.analyse import draft
from rankbook.cli import main
from rankbook.model import Constant, Import, Keyword, Module, Source
from rankbook.pages import render, seals
from rankbook.store import _AT_ONCE, _SMALL, Store, StoreError

_sizes = st.integers(0, 2) | st.integers(_SMALL - 2, _SMALL + 2) | st.integers(0, 70_000)
_NAMES = ("a", "\ud800", "c\udfff", "d")
_changes = st.lists(st.tuples(st.sampled_from(_NAMES), st.none() | _sizes.map(lambda size: pickle.dumps(b"x" * size))), max_size=12)
_words = st.text("ab.", max_size=5)
_lines = st.integers(1, 9)


def test_values_that_are_read_at_once_are_those_that_are_kept(tmp_path):
    """What was prepared is not searched for, is let go of when others are prepared, and hides nothing that was set or deleted."""
    first = Store(tmp_path, "world")
    keys = [f"key {number}" for number in range(2 * _AT_ONCE + 3)]
    for key in keys:
        first.put("rows", key, pickle.dumps(key))
    first.commit("1")
    store = Store(tmp_path, "world")
    store.put("rows", keys[0], None)
    store.prepare("rows", [*keys, "none"])
    store.put("rows", keys[1], pickle.dumps("new"))
    (tmp_path / "store.sqlite").write_bytes(b"spoiled")
    assert [store.get("rows", key) for key in keys] == [None, "new", *keys[2:]]
    store.prepare("rows", [])
    with pytest.raises(StoreError):
        store.get("rows", keys[2])


@given(changes=_changes)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("is_kept", [True, False])
def test_values_come_back_as_they_were_set(tmp_path_factory, is_kept, changes):
    """In the run that sets them, in a process that it forks, and in the next run."""
    folder = tmp_path_factory.mktemp("cache") if is_kept else None
    store, known = Store(folder, "world"), {}
    for key, data in changes:
        store.put("facts", key, data)
        known[key] = data
    values = {key: pickle.loads(data) for key, data in sorted(known.items()) if data is not None}
    assert {key: store.data("facts", key) for key in known} == known
    assert {key: store.get("facts", key) for key in _NAMES} == {**dict.fromkeys(_NAMES), **values}
    assert store.commit("1") == is_kept
    if folder is not None:
        later = Store(folder, "world")
        assert {key: later.get("facts", key) for key in _NAMES} == {**dict.fromkeys(_NAMES), **values}
        assert later.sums("facts").keys() == values.keys()
        later.prepare("facts", _NAMES)
        assert {key: later.get("facts", key) for key in _NAMES} == {**dict.fromkeys(_NAMES), **values}
        later.close()
        assert [each.name for each in folder.iterdir()] == ["store.sqlite"]
    store.close()


@given(
    before=st.dictionaries(st.text("ab\U0010ffff\ud800", max_size=3), st.integers()),
    after=st.dictionaries(st.text("ab\ud800", max_size=3), st.none() | st.integers()),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("start", ["", "a", "ab", "b", "\ud800"])
def test_values_whose_keys_begin_alike(tmp_path_factory, start, before, after):
    """Those of the last run and those that this one has set come at once; what it has deleted is not among them."""
    folder = tmp_path_factory.mktemp("cache")
    first = Store(folder, "world")
    for key, value in before.items():
        first.put("indexes", key, pickle.dumps(value))
    assert first.commit("1")
    first.close()
    store = Store(folder, "world")
    for key, value in after.items():
        store.put("indexes", key, None if value is None else pickle.dumps(value))
    expected = {key: value for key, value in {**before, **after}.items() if value is not None and key.startswith(start)}
    assert store.beginning("indexes", start) == {key.removeprefix(start): value for key, value in expected.items()}
    store.close()


def test_a_forked_process_spoils_no_value(tmp_path):
    store = Store(tmp_path, "world")
    store.put("facts", "a", b"a" * 5000)
    child = os.fork()
    if child == 0:
        store.put("facts", "b", b"b" * 5000)
        os._exit(0 if store.data("facts", "b") == b"b" * 5000 and store.data("facts", "a") == b"a" * 5000 else 1)
    store.put("facts", "c", b"c" * 5000)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [store.data("facts", key) for key in "abc"] == [b"a" * 5000, None, b"c" * 5000]


def test_without_room_on_disk_values_stay_in_memory(tmp_path):
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "cache", "world")
    store.put("facts", "a", b"a" * 5000)
    assert store.data("facts", "a") == b"a" * 5000
    assert not store.commit("1")


_keywords = st.lists(st.builds(Keyword, _words, _words, _lines, _words), max_size=4).map(tuple)


@given(
    keywords=_keywords,
    references=_keywords,
    imports=st.lists(st.builds(Import, _words, st.none() | _words, st.none() | _words, _lines, st.integers(0, 2)), max_size=4).map(tuple),
    constants=st.lists(st.builds(Constant, _words, _words, _lines, st.none() | _words), max_size=4).map(tuple),
)
def test_the_facts_of_a_file_travel(**rows):
    module = Module(Source("a.py", 1, "", "python", "Python source"), docstring="A file.", **rows)
    found = pickle.loads(pickle.dumps(module, pickle.HIGHEST_PROTOCOL))
    assert found == module
    assert all(type(row) is type(other) for name in rows for row, other in zip(getattr(found, name), rows[name], strict=True))


def test_forgetting_answers_changes_no_page(tmp_path, monkeypatch):
    """With so small a memory that each file is read as if it were the first."""
    sources = {
        "tools.py": "import torch.distributed as dist\n\n\ndef reduce(x):\n    return dist.all_reduce(x)\n",
        "base.py": "import unittest\nimport tools\n\nclass Base(unittest.TestCase):\n    def test_one(self):\n        tools.reduce(1)\n",
        "test_a.py": "from base import Base\n\n\nclass TestA(Base):\n    def test_a(self):\n        self.test_one()\n",
        "test_b.py": "from base import Base\nimport tools\n\n\nclass TestB(Base):\n    def test_b(self):\n        tools.reduce(2)\n",
    }
    made = []
    for most in (draft._MOST_ANSWERS, 0):
        root = tmp_path / f"at-most-{most}" / "book"
        (root / "src").mkdir(parents=True)
        for name, text in sources.items():
            (root / "src" / name).write_text(text)
        monkeypatch.setenv("RANKBOOK_CACHE_DIR", str(tmp_path / f"cache-{most}"))
        monkeypatch.setattr(draft, "_MOST_ANSWERS", most)
        assert main(["gen", "src", f"--root={root}", "--out=out", "--jobs=1"]) == 0
        made.append({path.relative_to(root).as_posix(): path.read_bytes() for path in sorted((root / "out").rglob("*.*"))})
    assert any(b"torch.distributed.all_reduce" in data for data in made[0].values())
    assert made[0] == made[1]


@given(st.text("a \t\n", max_size=60))
def test_what_a_template_leaves_is_tidied(text):
    assert render._tidy(text) == re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+\n", "\n", text))


@given(st.lists(st.sampled_from(['{#source linenums="1"}', "```", "`", "python", " ", "\n", "\r", "\r\n", "a"]), max_size=14).map("".join))
def test_the_listing_of_a_page_is_found_where_its_fence_opens(text):
    data = text.encode()
    found, wanted = seals._opening(data), seals._OPENING.search(data)
    assert (found and found.span()) == (wanted and wanted.span())
