"""What the shell is like from which rankbook is called decides nothing: its variables, its streams, its signals, its locale."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ledgers import rankbook
from proving import prove
from rankbook.languages import shell_of
from rankbook.ledger import Ledger
from tiny_site import write_project

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="starts processes as Linux does")


def listing(header: str, text: str) -> str:
    return f"```{header}\n{text}\n```\n\n"


def write(folder: Path, *listings: str) -> None:
    (folder / "docs").mkdir(parents=True, exist_ok=True)
    (folder / "docs/p.md").write_text("# Page\n\n" + "".join(listings), encoding="utf-8")


def outcomes(result) -> dict[str, str]:
    return {name.rpartition("::")[2]: outcome for name, outcome in result.outcomes().items()}


@pytest.mark.parametrize("engine", ["local", "fresh"])
def test_assertions_of_listings_hold(tmp_path, engine):
    """With PYTHONOPTIMIZE the caller's own assertions are compiled away; a listing would be green that has asserted nothing."""
    (tmp_path / "helper.py").write_text("def check(value):\n    assert value\n")
    module = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport helper\n\n\ndef test_helped():\n    helper.check(0)\n"
    write(
        tmp_path,
        listing("python {name=session}", ">>> assert 1 == 2"),
        listing("python {name=script}", "assert 1 == 2"),
        listing("bash {name=shell}", "python -c 'assert 1 == 2'"),
        listing("python {name=module}", module),
    )
    result = prove(tmp_path, "--engine", engine, "docs", env={"PYTHONOPTIMIZE": "2"})
    assert outcomes(result) == dict.fromkeys(("session", "script", "shell", "test_helped"), "failed"), result.output


@LINUX
@pytest.mark.parametrize("engine", ["local", "fresh"])
def test_the_end_of_children_is_heard_of(tmp_path, monkeypatch, engine):
    """A parent that blocks SIGCHLD, or ignores it, hands that down; a listing is no less over for it."""
    write(tmp_path, listing("python {name=one timeout=60}", "print(1)"), listing("bash {name=two timeout=60}", "true"))
    monkeypatch.setenv("PYTEST_ADDOPTS", "")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    former = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        result = prove(tmp_path, "--engine", engine, "docs", timeout=100)
    finally:
        signal.signal(signal.SIGCHLD, former)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert outcomes(result) == {"one": "passed", "two": "passed"}, result.output


def test_a_shell_listing_without_bash(tmp_path):
    """What cannot run here is skipped with the reason, which is no traceback."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(sys.executable)
    write(tmp_path, listing("bash {name=one}", "true"), listing("console {name=two}", "$ true"), listing("python {name=three}", "assert 1"))
    result = prove(tmp_path, "docs", env={"PATH": str(tmp_path / "bin")})
    if "bin/bash" in result.output or (Path(sys.executable).parent / "bash").exists():
        pytest.skip("bash lies beside this interpreter")
    assert outcomes(result) == {"one": "skipped", "two": "skipped", "three": "passed"}, result.output
    assert "Skipped: needs bash, which is not on PATH" in str([report["longrepr"] for report in result.reports])


def test_a_script_is_run_by_the_shell_that_it_names(tmp_path):
    """What is written for another shell than bash is run by that one, and skipped where it is not there."""
    (tmp_path / "bin").mkdir()
    other = tmp_path / "bin/zsh"
    other.write_text('#!/bin/sh\n[ "$1 $2 $3" = "-eu -o pipefail" ] && grep -q setopt "$4"\n')
    text = "#!/bin/zsh\nsetopt null_glob"
    lacking = (
        [listing("ksh {name=one}", "true"), listing("bash {name=two}", "#!/usr/bin/env ksh\ntrue")] if shutil.which("ksh") is None else []
    )
    ours = [listing("zsh {name=word}", "setopt"), listing("bash {name=line}", text), listing("zsh {name=wrong}", "true")]
    write(tmp_path, *ours, *lacking)
    other.chmod(0o755)
    path = os.pathsep.join((str(other.parent), os.environ["PATH"]))
    result = prove(tmp_path, "docs", env={"PATH": path})
    expected = {"word": "passed", "line": "passed", "wrong": "failed"}
    assert outcomes(result) == expected | ({"one": "skipped", "two": "skipped"} if lacking else {}), result.output
    if lacking:
        assert "Skipped: needs ksh, which is not on PATH" in str([report["longrepr"] for report in result.reports])


@pytest.mark.parametrize(
    ("word", "path", "line", "shell"),
    [
        ("bash", "a/z.zsh", "", "zsh"),
        ("bash", "a/.zshrc", "", "zsh"),
        ("bash", "k.ksh", "#!/bin/ksh -e", "ksh"),
        ("bash", "run", "#! /usr/bin/env -S zsh", "zsh"),
        ("bash", "a.sh", "#!/bin/zsh", "zsh"),
        ("bash", "z.zsh", "#!/bin/bash", "bash"),
        ("bash", "a.sh", "#!/bin/dash", "bash"),
        ("zsh", "", "", "zsh"),
        ("sh", "", "true", "bash"),
    ],
)
def test_which_shell_a_script_is_for(word, path, line, shell):
    """Its first line counts before the name of its file, and that before the word of its fence."""
    assert shell_of(word, path, line) == shell


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_a_console_listing_in_a_locale_of_ascii(tmp_path):
    """Commands and what they say are UTF-8, whatever the locale."""
    write(
        tmp_path, listing("console {name=one}", "$ echo \u00fc\n\u00fc"), listing("console {name=two}", "$ printf '\\303\\274\\n'\n\u00fc")
    )
    result = prove(tmp_path, "docs", env=ASCII)
    assert outcomes(result) == {"one": "passed", "two": "passed"}, result.output


@LINUX
def test_a_path_that_is_no_text(tmp_path):
    """The ledger of a project whose path is no UTF-8 is written and read."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("the file system takes UTF-8 alone")
    write(folder, listing("python {name=one}", "assert 1"))
    result = prove(folder, "docs")
    assert outcomes(result) == {"one": "passed"}, result.output
    assert [run.outcome for run in Ledger(folder / ".rankbook/ledger.sqlite").latest()] == ["passed"]


COMMAND = str(Path(sys.executable).with_name("rankbook"))
CLOSED = "import os, sys; [os.close(number) for number in map(int, sys.argv[1].split(','))]; os.execv(sys.argv[2], sys.argv[2:])"


@pytest.mark.parametrize("closed", ["2", "1", "0", "0,1,2"])
def test_streams_that_are_closed(tmp_path, closed):
    """A command does what it does, and ends as it does, whoever hears it."""
    (tmp_path / "s").mkdir()
    (tmp_path / "s/test_a.py").write_text("def test_a():\n    pass\n")
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["s"]\nfindings = []\n')
    commands = [(("gen",), 0), (("check", "--diff"), 0), (("ledger", "show"), 1)]
    if "," in closed:
        commands += [(("check",), 0), (("query", "tests"), 0)]
    for words, status in commands:
        command = [sys.executable, "-c", CLOSED, closed, sys.executable, COMMAND, *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (status, False), (words, done)


def test_nobody_to_ask(tmp_path):
    """`rankbook init` that finds no tests and whose input is closed says what to write."""
    command = [sys.executable, "-c", CLOSED, "0", sys.executable, COMMAND, "init"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "no test modules were found; name their folder: rankbook init FOLDER" in done.stderr


@pytest.mark.parametrize(("value", "builds"), [("a file", 2), ("/dev/null/cache", 1)])
def test_a_site_without_a_cache(tmp_path, value, builds):
    """Where nothing can be kept the book is made all the same."""
    pytest.importorskip("mkdocs", reason="the site needs the extra `site`")
    pytest.importorskip("material", reason="the site needs the extra `site`")
    write_project(tmp_path)
    (tmp_path / "a file").touch()
    environment = {**os.environ, "RANKBOOK_CACHE_DIR": str(tmp_path / value), "NO_MKDOCS_2_WARNING": "1"}
    for _ in range(builds):
        command = [sys.executable, "-m", "mkdocs", "build", "--quiet"]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert list((tmp_path / "site").rglob("*_docs*"))


NO_HOME = """
import os, pathlib, runpy, sys
def nobody(self=None):
    raise RuntimeError("Could not determine home directory.")
pathlib.Path.home = nobody
sys.argv[:] = sys.argv[1:]
from rankbook.cli import main
sys.exit(main(sys.argv[:]))
"""


def test_a_user_without_a_home(tmp_path):
    """One of a container that has neither HOME nor a name keeps nothing, and is refused nothing."""
    (tmp_path / "s").mkdir()
    (tmp_path / "s/test_a.py").write_text("def test_a():\n    pass\n")
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["s"]\nfindings = []\n')
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "RANKBOOK_CACHE_DIR", "XDG_CACHE_HOME")}
    for words in (("gen",), ("check",), ("query", "tests")):
        done = subprocess.run(
            [sys.executable, "-c", NO_HOME, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def test_a_home_is_written_as_a_shell_would_read_it(tmp_path):
    """Where no shell reads the variable, as in the file of a CI, `~` is the home all the same."""
    (tmp_path / "s").mkdir()
    (tmp_path / "s/test_a.py").write_text("def test_a():\n    pass\n")
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["s"]\nfindings = []\n')
    environment = {**os.environ, "HOME": str(tmp_path / "home"), "RANKBOOK_CACHE_DIR": "~/kept"}
    subprocess.run([sys.executable, COMMAND, "gen"], cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert (tmp_path / "home/kept").is_dir()
    assert not (tmp_path / "~").exists()


def test_an_export_to_the_standard_output(tmp_path):
    """`-` is the standard output for an export, as it is the standard input for an import."""
    write(tmp_path, listing("python {name=one}", "assert 1"))
    prove(tmp_path, "docs")
    assert rankbook("ledger", "export", "-", cwd=tmp_path) == rankbook("ledger", "export", cwd=tmp_path)
    assert not (tmp_path / "-").exists()
