"""What ruff says of the sources, on their pages; and a ruff that is not there, fails, hangs or prints nonsense."""

import os
import re
import sys
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbook import findings
from rankbook.cli import main
from rankbook.config import load
from rankbook.document import document
from rankbook.model import Finding
from rankbook.pages.finding_rows import LINES, MESSAGES, finding_rows

RULES = ("S", "PERF", "PT", "B")
LIBRARY = "import pickle\n\n\ndef load(data, extra=[]):\n    assert data\n    return pickle.loads(data)\n"
needs_ruff = pytest.mark.skipif(not findings.version(), reason="ruff is not installed")


def plant(root, files):
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def found(root, files, rules=RULES):
    """Run ruff over files, and give rule and line of what it says of each."""
    plant(root, files)
    with findings.start(root, files, rules) as run:
        result = run.result()
    assert (result.warning, result.note) == ("", "")
    return {path: [(finding.rule, finding.line) for finding in said] for path, said in result.by_path.items()}


def gen(root, *options, settings=""):
    plant(root, {"pyproject.toml": f"[tool.rankbook]\n{settings}\n"})
    return main(["gen", "src", "--root", str(root), "--out", "out", *options])


def section(root, path, heading="Findings"):
    """Give the section of a page without the addresses of its links; empty when there is none."""
    page = (root / f"out/{path}_docs.md").read_text()
    match = re.search(rf"^#+ {heading}\n(.*?)(?=^#|\Z)", page, re.MULTILINE | re.DOTALL)
    return re.sub(r"\]\([^)]*\)", "]", match[1]).strip() if match else ""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Put programs in the place of ruff."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")

    def make(script):
        (folder / "ruff").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "ruff").chmod(0o755)

    return make


@needs_ruff
def test_findings_stand_on_the_page_by_rule(tmp_path):
    """Each rule has a row with its message and its lines, linked; the rule leads to its explanation."""
    plant(tmp_path, {"src/lib.py": LIBRARY + "".join(f"\n\nassert {number} + 1\n" for number in range(20))})
    assert gen(tmp_path) == 0
    shown = section(tmp_path, "src/lib.py")
    assert shown.startswith("23 findings of [ruff], by rule:")
    rows = {row.split("|")[1].strip(): row for row in shown.splitlines() if row.startswith("| [")}
    assert list(rows) == ["[`B006`]", "[`S101`]", "[`S301`]"]
    assert rows["[`S301`]"].endswith("| [line 6] |")
    assert rows["[`S101`]"].count("[line ") == LINES
    assert rows["[`S101`]"].endswith(" and 9 more |")
    page = (tmp_path / "out/src/lib.py_docs.md").read_text()
    assert "[`S301`](https://docs.astral.sh/ruff/rules/suspicious-pickle-usage)" in page


@needs_ruff
def test_the_seed_layouts_show_findings_where_they_speak_of_performance_and_security(tmp_path):
    """Each rule stands in the section that it is about."""
    slow = "def load(data):\n    made = []\n    for entry in data:\n        made.append(entry + 1)\n    assert made\n    return made, {}\n"
    plant(tmp_path, {"src/lib.py": slow, "src/other.py": "def f(a=[]): ...\n"})
    assert gen(tmp_path, "--pack", "repository") == 0
    assert re.findall(r"`([A-Z]+\d+)`", section(tmp_path, "src/lib.py", "Performance Notes")) == ["PERF401"]
    assert re.findall(r"`([A-Z]+\d+)`", section(tmp_path, "src/lib.py", "Security Considerations")) == ["S101"]
    assert re.findall(r"`([A-Z]+\d+)`", section(tmp_path, "src/other.py", "Common Patterns")) == ["B006"]
    assert section(tmp_path, "src/other.py", "Security Considerations").startswith("No finding of ruff's rules on security (`S`)")
    assert gen(tmp_path, "--pack", "repo-book") == 0
    assert re.findall(r"`([A-Z]+\d+)`", section(tmp_path, "src/lib.py", "Performance & Security Notes")) == ["PERF401", "S101"]


@needs_ruff
@pytest.mark.parametrize("path", ["test_a.py", "deep/a_test.py", "conftest.py", "tests/helper.py", "testing/x.py"])
def test_assertions_in_tests_are_no_findings(tmp_path, path):
    """In files of tests, assertions and random numbers are left out, and in all files the wish for assertions that are no methods."""
    text = "import random\nimport unittest\n\n\nclass TestA(unittest.TestCase):\n    def test_a(self, x={}):\n"
    text += "        assert x\n        self.assertEqual(random.random(), x)\n"
    assert found(tmp_path, {path: text, "lib.py": text}) == {
        path: [("B006", 6), ("PT028", 6)],
        "lib.py": [("B006", 6), ("PT028", 6), ("S101", 7), ("S311", 8)],
    }


@needs_ruff
def test_a_setting_chooses_the_rules(tmp_path):
    """A rule that is left out by default is shown when it is named in full; an empty list shows nothing."""
    text = "def test_a():\n    assert True\n"
    assert found(tmp_path, {"test_a.py": text}) == {}
    assert found(tmp_path, {"test_a.py": text}, ("S101",)) == {"test_a.py": [("S101", 2)]}
    plant(tmp_path, {"src/lib.py": LIBRARY})
    assert gen(tmp_path, settings='findings = ["B"]') == 0
    assert re.findall(r"\[`(\w+)`\]", section(tmp_path, "src/lib.py")) == ["B006"]
    assert gen(tmp_path, settings="findings = []") == 0
    assert section(tmp_path, "src/lib.py") == ""


@needs_ruff
def test_odd_names(tmp_path):
    """Spaces, signs that mean something to ruff and other alphabets in names change nothing."""
    names = ["a b.py", "-x.py", "@y.py", "ü/ж漢.py", "#z.py", "d'e\"f.py", "nbsp\u00a0.py", "no_suffix", "stub.pyi"]
    assert found(tmp_path, dict.fromkeys(names, "def f(a=[]): ...\n")) == {
        name: [("B006", 1)] for name in sorted(names) if name != "stub.pyi"
    }


@needs_ruff
def test_names_that_no_list_can_hold_cost_themselves_only(tmp_path):
    """A file with a line end in its name, or with bytes that are no text, has no findings; the others have theirs."""
    names = ["line\nend.py", "carriage\rreturn.py", os.fsdecode(b"byte\xff.py")]
    assert found(tmp_path, dict.fromkeys([*names, "a.py"], "def f(a=[]): ...\n")) == {"a.py": [("B006", 1)]}


@needs_ruff
def test_more_names_than_a_command_can_hold(tmp_path):
    """The names of a large tree do not have to fit into one command; files that are gone are passed over."""
    plant(tmp_path, {"a.py": "def f(a=[]): ...\n"})
    gone = [f"{'long/' * 40}{number}.py" for number in range(12_000)]
    with findings.start(tmp_path, [*gone, "a.py"], RULES) as run:
        result = run.result()
    assert ([*result.by_path], result.warning) == (["a.py"], "")


@needs_ruff
def test_what_is_no_finding(tmp_path):
    """A file that cannot be parsed or decoded has none, and neither has a line with `# noqa`."""
    files = {
        "broken.py": "x = = 1\nassert x\n",
        "latin.py": b"# -*- coding: latin-1 -*-\nx = '\xe9'\nassert x\n",
        "quiet.py": "def f(a=[]):  # noqa: B006\n    ...\n",
        "quiet_file.py": "# ruff: noqa\ndef f(a=[]): ...\n",
        "empty.py": "",
        "a.py": "def f(a=[]): ...\n",
    }
    assert found(tmp_path, files) == {"a.py": [("B006", 1)]}


@needs_ruff
def test_settings_of_ruff_change_nothing(tmp_path, monkeypatch):
    """What the project or the environment tells ruff does not count, so that books can be compared."""
    plant(tmp_path, {"ruff.toml": 'exclude = ["*.py"]\n[lint]\nignore = ["B"]\n', ".gitignore": "*.py\n"})
    monkeypatch.setenv("RUFF_OUTPUT_FORMAT", "sarif")
    monkeypatch.setenv("RUFF_CONFIG", str(tmp_path / "ruff.toml"))
    assert found(tmp_path, {"a.py": "def f(a=[]): ...\n"}) == {"a.py": [("B006", 1)]}


@needs_ruff
def test_the_text_alone_decides(tmp_path):
    """What is said of a file does not hang on the others, nor on the order in which they are named."""
    files = {f"m{number}.py": LIBRARY * number for number in range(1, 6)}
    together = found(tmp_path, files)
    assert found(tmp_path, dict(reversed(files.items()))) == together
    assert {path: said for path, text in files.items() for path, said in found(tmp_path, {path: text}).items()} == together


def test_without_ruff_pages_say_nothing(tmp_path, program, capsys):
    """A ruff that is not installed costs the findings, without a warning."""
    del program
    plant(tmp_path, {"src/lib.py": LIBRARY})
    assert findings.version() == ""
    assert findings.start(tmp_path, ["src/lib.py"], RULES).result() == findings.Findings(note=findings.ABSENT)
    assert gen(tmp_path) == 0
    assert section(tmp_path, "src/lib.py") == ""
    assert "warning" not in capsys.readouterr().err.lower()


LINE = '{"code":"B006","filename":"%s","location":{"row":1},"message":"m","url":null}'


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'no such rule' >&2; exit 2", "ruff ended with status 2, so no page has findings: no such rule"),
        (
            r"printf 'ruff failed\n  Cause: no rule X\n' >&2; exit 2",
            "ruff ended with status 2, so no page has findings: ruff failed Cause: no rule X",
        ),
        ("exit 1", "ruff ended with status 1, so no page has findings: it says nothing"),
        ("kill -9 $$", "ruff ended with status -9"),
        ("echo hello", "ruff printed what cannot be read"),
        ("echo '[]'", "ruff printed what cannot be read"),
        ('echo \'{"code":"B006"}\'', "ruff printed what cannot be read"),
        (f"echo '{LINE % '/elsewhere.py'}'", "ruff printed what cannot be read"),
        ("head -c 100000 /dev/zero", "ruff printed what cannot be read"),
        ("printf '\\377\\376\\n'", "ruff printed what cannot be read"),
        ("yes '[' | head -n 100000 | tr -d '\\n'", "ruff printed what cannot be read"),
    ],
)
def test_a_ruff_that_fails_costs_one_warning(tmp_path, program, script, message):
    """Whatever ruff does, the pages are made, and one sentence says why they have no findings."""
    program(script)
    plant(tmp_path, {"src/lib.py": LIBRARY})
    report = document(load(tmp_path, {"sources": ("src",), "out": "out"}))
    assert len(report.warnings) == 1
    assert report.warnings[0].startswith(message)
    assert len(report.warnings[0]) < 600
    assert section(tmp_path, "src/lib.py") == ""


def test_a_ruff_that_hangs_is_ended(tmp_path, program):
    """After its time, and when nobody waits any more, ruff is ended."""
    program("exec sleep 600")
    plant(tmp_path, {"a.py": ""})
    run = findings.start(tmp_path, ["a.py"], RULES)
    assert run.result(timeout=0.2).warning == "ruff has not ended within 0.2 s, so no page has findings"
    program(f"echo $$ > {tmp_path}/pid; exec sleep 600")
    with findings.start(tmp_path, ["a.py"], RULES):
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            time.sleep(0.01)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_ruff_that_cannot_be_started(tmp_path, program):
    """A program that is none costs the findings."""
    program("")
    (tmp_path / "programs/ruff").write_bytes(b"\x7fELF nonsense")
    plant(tmp_path, {"a.py": ""})
    assert findings.start(tmp_path, ["a.py"], RULES).result().warning.startswith("ruff cannot be started, so no page has findings: ")
    assert findings.version() == ""


def test_an_older_ruff_says_no_names(tmp_path, program):
    """A rule's name is taken from its address where ruff does not say it, and an address that is none is left out."""
    plant(tmp_path, {"a.py": ""})
    url = "https://docs.astral.sh/ruff/rules/mutable-argument-default"
    line = LINE % (tmp_path / "a.py")
    lines = [line.replace("null", f'"{said}"') for said in (url, "javascript:x")]
    program("cat <<'END'\n" + "\n".join([*lines, "END"]))
    (first, second) = findings.start(tmp_path, ["a.py"], RULES).result().by_path["a.py"]
    assert {(first.name, first.url), (second.name, second.url)} == {("mutable-argument-default", url), ("", "")}


@given(
    st.lists(
        st.builds(
            Finding,
            rule=st.sampled_from(["S101", "S11", "PERF401", "B9", "B10", "odd"]),
            name=st.just("a-name"),
            message=st.integers(0, 30).map("says {}".format),
            line=st.integers(1, 400),
            url=st.just(""),
        ),
        max_size=300,
    )
)
def test_rows_count_exactly_and_stay_few(said):
    """However many findings there are, each is counted once, in few rows with few lines."""
    rows = finding_rows(said)
    assert sum(row.count for row in rows) == len(said)
    assert Counter(row.link for row in rows).total() <= 6 * (MESSAGES + 1)
    assert all(len(row.lines) <= LINES and list(row.lines) == sorted(set(row.lines)) for row in rows)
    lines = Counter(
        {link: len({(each.message, each.line) for each in said if f"`{each.rule}`" == link}) for link in {row.link for row in rows}}
    )
    assert all(sum(len(row.lines) + row.more for row in rows if row.link == link) <= count for link, count in lines.items())
    topics = [row.link for topic in ("performance", "security", "other") for row in finding_rows(said, topic)]
    assert sorted(topics) == sorted(row.link for row in rows)
