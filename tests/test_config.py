"""Settings come from `[tool.rankbook]`, flags win, and a wrong one is named."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from datetime import time
from pathlib import Path

import pytest

from rankbook import engines
from rankbook.cli import main
from rankbook.config import ENGINES, FORGES, Settings, find_root, load
from rankbook.errors import ConfigError, refused
from rankbook.site import forge


def test_defaults_without_a_file(tmp_path):
    """A folder without pyproject.toml has the defaults."""
    assert load(tmp_path) == Settings(root=tmp_path.resolve())


def test_file_and_flags(tmp_path):
    """The file is read, and a value that is given wins over it; None gives way."""
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["a"]\nout = "book"\nlisting-timeout = 5\njobs = 2\n')
    settings = load(tmp_path, {"out": "other", "pack": None})
    assert (settings.sources, settings.out, settings.pack, settings.listing_timeout, settings.jobs) == (("a",), "other", "rankbook", 5.0, 2)
    assert settings.below_root("x") == tmp_path.resolve() / "x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[tool.rankbook]\nsource = ["a"]\n', "unknown setting 'source'"),
        ('[tool.rankbook]\nsources = "a"\n', "setting 'sources' is not a list of strings"),
        ("[tool.rankbook]\njobs = true\n", "setting 'jobs' is not a whole number"),
        ("[tool.rankbook]\nlisting-timeout = 'x'\n", "setting 'listing-timeout' is not a number"),
        ("[tool]\nrankbook = 3\n", "[tool.rankbook] is not a table"),
        ("[tool.rankbook\n", "cannot read the settings"),
        ("tool = 'x'\n", "[tool.rankbook] is not a table"),
        ("[tool.rankbook]\njobs = -1\n", "setting 'jobs' is -1"),
        ("[tool.rankbook]\ndebt-days = -1\n", "setting 'debt-days' is -1"),
        ("[tool.rankbook]\nlisting-timeout = 0\n", "setting 'listing-timeout' is 0.0"),
        ("[tool.rankbook]\nlisting-timeout = nan\n", "setting 'listing-timeout' is nan"),
        ("[tool.rankbook]\nout = ''\n", "setting 'out' is empty; name a folder other than the root"),
        ("[tool.rankbook]\nsources = ['']\n", "setting 'sources' is empty"),
        ("[tool.rankbook]\npack = '/etc'\n", "setting 'pack' is '/etc'"),
        ('[tool.rankbook]\nout = "a\\u0000"\n', "setting 'out' holds a null character"),
        ('[tool.rankbook]\nsources = ["a\\u0000"]\n', "setting 'sources' holds a null character"),
        ("[tool.rankbook]\nplan = 'yes'\n", "setting 'plan' is not true or false; write plan = true, say"),
        ("[tool.rankbook]\nengine = 'foo'\n", "setting 'engine' is 'foo'; known are local, fresh, ray, slurm"),
        ("[tool.rankbook]\ncanary = '200%'\n", "setting 'canary' is '200%'; write a share from 0% to 100%, such as 2%"),
        ("[tool.rankbook]\ncanary = '٢%'\n", "setting 'canary' is '٢%'"),
        ("[tool.rankbook]\ngpus = 'foo bar'\n", "setting 'gpus': 'foo bar' does not say how many GPUs"),
        ("[tool.rankbook]\nrepo-forge = 'svn'\n", "setting 'repo-forge' is 'svn'; known are github"),
        ("[tool.rankbook]\nrepo-url = 'javascript:alert(1)'\n", "no browser opens the address in the setting 'repo-url'; write"),
        ("[tool.rankbook]\nrepo-url = 'javascript://github.com/a'\n", "no browser opens the address in the setting 'repo-url'; write"),
        ("[tool.rankbook]\nrepo-url = '../here'\n", "no browser opens the address in the setting 'repo-url'; write"),
        ("[tool.rankbook]\ntemplates = 'nope'\n", "the setting 'templates' names 'nope', which is no folder; name"),
        ("[tool.rankbook]\nexclude = ['*.png', '[a-']\n", "setting 'exclude' holds '[a-'; write a glob"),
        ("[tool.rankbook]\ninclude = ['a[b/c]d']\n", "setting 'include' holds 'a[b/c]d'; write a glob"),
        ("[tool.rankbook]\nfindings = ['PT', '; rm -rf']\n", "setting 'findings' holds '; rm -rf'; write the code of a rule of ruff"),
        ("[tool.rankbook]\nfindings = ['--fix']\n", "setting 'findings' holds '--fix'; write the code of a rule of ruff"),
        ("[tool.rankbook]\ninclude = ['']\n", "setting 'include' is empty; write a glob"),
    ],
)
def test_wrong_settings(tmp_path, text, message):
    """A wrong setting is one sentence with the file and what would be right."""
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path.resolve() / "pyproject.toml"))
    assert ";" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[project]\nname = "jobs"\n\n[tool.rankbook]\n# jobs = 1\nx."jobs" = 2\n', ":6: unknown setting 'x'"),
        ('[tool.rankbook]\nout = """\njobs = -3\n"""\njobs = -1\n', ":5: setting 'jobs' is -1"),
        ('[tool.rankbook]\nout = "a\x0cb"\njobs = -1\n'.replace("\x0c", "\u2028"), ":3: setting 'jobs' is -1"),
        ('[tool.rankbook]\r\nsources = [\r\n "a",\r\n 3]\r\n', ":2: setting 'sources' is not a list"),
        ("title = ''\ntool = {rankbook = {jobs = -1}}\n", ":2: setting 'jobs' is -1"),
        ('[tool.rankbook.requirements]\na = {gpus="2"}\nb = {gpuss = 3}\n', ":3: the row 'b'"),
        ("[tool.rankbook.requirements.b]\n\ngpuss = 3\n", ":1: the row 'b'"),
        ('[tool.rankbook]\n"j\\u006fbs" = -1\n', ": setting 'jobs' is -1"),
    ],
)
def test_a_wrong_setting_is_told_with_its_line(tmp_path, text, place):
    """However TOML writes it; a text that only reads like it is another, and a key with escapes is told without a line."""
    path = tmp_path.resolve() / "pyproject.toml"
    path.write_bytes(text.encode())
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert str(caught.value).startswith(f"{path}{place}")


def test_every_setting_of_the_wrong_type_is_one_sentence(tmp_path, monkeypatch, capsys):
    """Whatever the type of a setting and whatever stands there instead, the file, the setting and what would be right are named."""
    monkeypatch.chdir(tmp_path)
    values = {str: '"x"', int: "3", bool: "true", float: "0.5", tuple: '["x"]', list: "[3]", dict: "{ a = 1 }", time: "07:32:00"}
    for field in Settings.__struct_fields__:
        key, right = field.replace("_", "-"), type(getattr(Settings(), field))
        fitting = {right, int} if right is float else {right}
        for kind, value in values.items():
            (tmp_path / "pyproject.toml").write_text(f"[tool.rankbook]\n{key} = {value}\n")
            if field == "root" or kind not in fitting:
                assert main(["gen"]) == 2
                said = capsys.readouterr().err
                where = f"rankbook: error: {tmp_path / 'pyproject.toml'}:2: "
                assert (said.startswith(where), f"'{key}'" in said, said.count("\n"), ";" in said) == (True, True, 1, True), said


def test_what_a_setting_may_be_is_what_there_is(tmp_path):
    """Settings are checked without loading what they choose from, and no value is forgotten."""
    assert set(ENGINES) == set(engines.TAKES)
    assert set(FORGES) == set(forge.KINDS)
    known = {"engine": ENGINES, "repo-forge": FORGES, "canary": ("0%", "2.5 %", "100%"), "gpus": ("8", "2 x H200 141 GiB, 1 x T4")}
    known |= {"repo-url": ("https://host:8443/a/b", "git@github.com:a/b.git", "ssh://git@host.org/a/b", "github.com:a/b")}
    for key, values in known.items():
        for value in values:
            (tmp_path / "pyproject.toml").write_text(f'[tool.rankbook]\n{key} = "{value}"\nexclude = ["[[]a]", "x[!a-c]*/[]]"]\n')
            assert getattr(load(tmp_path), key.replace("-", "_")) == value


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a = 1\n[tool.rankbook\n", ":2: cannot read the settings: Expected ']'"),
        (b"title = '\xff'\n", ": cannot read the settings: it is not UTF-8 (at offset 9); it must be valid TOML in UTF-8"),
        (None, ": cannot read the settings: is a directory; it must be a file that can be read"),
    ],
)
def test_settings_that_cannot_be_read(tmp_path, monkeypatch, capsys, data, said):
    """What is wrong with the file is said in words, with the line where there is one."""
    (tmp_path / ".git").mkdir()
    path = tmp_path / "pyproject.toml"
    path.mkdir() if data is None else path.write_bytes(data)
    monkeypatch.chdir(tmp_path)
    assert main(["gen"]) == 2
    assert f"rankbook: error: {path}{said}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('"" = { gpus = 2 }', "the row '' of [tool.rankbook.requirements] is for no name; write the end of a dotted name"),
        ('"a b" = { gpus = 2 }', "is for no name; write"),
        ("x = { gpu = 2 }", "has the unknown kind 'gpu'; known are gpus, world size, backend"),
        ('x = { "world size" = "odd" }', """gives 'world size' the value 'odd', which says nothing of that kind; write "world size" = 4"""),
        ('x = { capability = "9" }', """the value '9', which says nothing of that kind; write capability = ">= 9.0", say"""),
        ('x = { capability = [">= 9.0", 8] }', "the value '8', which says nothing"),
        ('x = { memory = "40" }', "the value '40', which says nothing"),
        ('x = { package = "numpy>=1.24" }', """which says nothing of that kind; write package = "triton" or "numpy >= 1.24", say"""),
        ('x = { library = "NCCL>=2" }', "which says nothing of that kind; write library ="),
        ('x = { library = ">= 2" }', "which says nothing of that kind; write library ="),
        ('x = { environment = "CI" }', "which says nothing of that kind; write environment ="),
        ('x = { slow = "RUN_SLOW" }', "which says nothing of that kind; write slow ="),
        ('x = { backend = "" }', "the value '', which says nothing"),
        ("x = { gpus = [2, 4] }", "gives 'gpus' a list of values; write gpus ="),
        ("x = { backend = [] }", "gives 'backend' a value that is no string, whole number or list of them; write backend ="),
        ('x = { gpus = 2, otherwise = "skip" }', "has the 'otherwise' 'skip'; known are skipped, absent, runs"),
        ('x = { gpus = 2, when = "x" }', "has a 'when' that is not of the form 'PLACE == VALUE'; write when ="),
    ],
)
def test_a_row_of_requirements_that_means_nothing_is_told(tmp_path, row, said):
    """A name that no name ends in, and a value that no test could need, are refused with what would be right of that kind."""
    (tmp_path / "pyproject.toml").write_text(f"[tool.rankbook.requirements]\n{row}\n")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path.resolve() / 'pyproject.toml'}:2: ")
    assert said in str(caught.value)


def test_the_rows_of_requirements_in_the_guide_mean_something(tmp_path):
    """The values that the page of the settings shows, in its example and in its table of kinds, are values of their kinds."""
    guide = (Path(__file__).parents[1] / "docs" / "guide" / "settings.md").read_text()
    _, _, rest = guide.partition("```toml\n[tool.rankbook.requirements]\n")
    example, _, rest = rest.partition("```")
    table, _, _ = rest.partition("A list of values")
    rows = [
        f'x{place}_{number} = {{ "{kind}" = {value} }}\n'
        for place, (kind, values) in enumerate(re.findall(r"^\| `([a-z ]+)` \| (.+) \|$", table, re.MULTILINE))
        for number, value in enumerate(re.findall(r'`(\d+|"[^`]*")`', values))
    ]
    (tmp_path / "pyproject.toml").write_text(f"[tool.rankbook.requirements]\n{example}{''.join(rows)}")
    assert len(load(tmp_path).requirements) == len(rows) + example.count("\n")
    assert len(rows) > 20


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_settings_that_the_user_may_not_read(tmp_path, monkeypatch, capsys):
    """A file that another user keeps for herself is told of as that, not as wrong TOML."""
    path = tmp_path / "pyproject.toml"
    path.touch(mode=0)
    monkeypatch.chdir(tmp_path)
    assert main(["gen"]) == 2
    said = "cannot read the settings: permission denied; let the user who runs rankbook read it"
    assert f"rankbook: error: {path}: {said}" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--out", ""], ["--pack", "../x"], [""]])
def test_wrong_flags(tmp_path, monkeypatch, capsys, words):
    """A flag is held to what the file is held to: a shell's variable that is empty does not name the root."""
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["."]\nout = "x"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["gen", *words]) == 2
    assert "rankbook: error: setting '" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["pyproject.toml"]


@pytest.mark.parametrize(
    "words",
    [
        "gen --out circle",
        "gen circle",
        "check --out circle",
        "accept --out circle",
        "accept circle",
        "stamp --site-dir circle",
        "stamp --docs-dir circle",
        "query tests circle",
        "ledger merge circle",
        "init circle",
        "gen --pack part",
    ],
)
def test_a_link_to_itself_and_what_the_system_refuses(tmp_path, monkeypatch, capsys, words):
    """A path that leads nowhere, or to what cannot be read, is one sentence, and nothing is written."""
    (tmp_path / "pyproject.toml").write_text('[tool.rankbook]\nsources = ["s"]\nfindings = []\n')
    (tmp_path / "s").mkdir()
    (tmp_path / "s/a.py").write_text("x = 1\n")
    (tmp_path / "site").mkdir()
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "templates/part").mkdir(parents=True)
    (tmp_path / "templates/part/file.md.jinja").symlink_to("file.md.jinja")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    said = capsys.readouterr().err
    assert said.startswith("rankbook: error: ")
    assert said.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_what_nothing_else_says_of_the_system_is_said_in_one_sentence():
    """The file comes first, then what the system says."""
    error = PermissionError(13, "Permission denied", "/a/b")
    assert str(refused(error)) == "/a/b: the system says: Permission denied; look who may read and write it"
    assert str(refused(OSError(28, "No space left on device"))) == "the system says: No space left on device"


def git(folder, *words):
    subprocess.run(["git", "-C", folder, "-c", "user.name=n", "-c", "user.email=e@e", *words], check=True, capture_output=True)


def titled(root, text=""):
    """Make a project and its book, and give the book's title."""
    (root / "tests").mkdir(exist_ok=True)
    (root / "tests/test_a.py").write_text("def test_a():\n    pass\n")
    (root / "pyproject.toml").write_text(f'{text}[tool.rankbook]\nsources = ["tests"]\nfindings = []\n')
    assert main(["gen", "--root", str(root)]) == 0
    key, _, title = (root / "docs/suite/index.md").read_text().splitlines()[1].partition(": ")
    assert key == "title"
    return title.strip('"')


def test_clones_have_the_title_of_what_they_are_clones_of(tmp_path):
    """A book without a title is in step in every clone, whatever its folder is called, and in a copy when the project has a name."""
    (tmp_path / "ring").mkdir()
    git(tmp_path / "ring", "init", "-q")
    assert titled(tmp_path / "ring") == "ring"
    git(tmp_path / "ring", "add", "-A")
    git(tmp_path / "ring", "commit", "-qm", "x")
    for number, source in enumerate(("ring", "ring/", "ring/.git")):
        git(tmp_path, "clone", "-q", f"{tmp_path}/{source}", f"clone{number}")
        assert main(["check", "--root", str(tmp_path / f"clone{number}")]) == 0
    clone = tmp_path / "clone0"
    for address, name in {
        "git@github.com:people/token.git": "token",
        "https://u:secret@host/a/bell": "bell",
        "gh:ring.git": "ring",
        "..": "clone0",
    }.items():
        git(clone, "remote", "set-url", "origin", address)
        assert main(["check", "--root", str(clone)]) == 1
        assert titled(clone) == name
    assert titled(clone, '[project]\nname = "my-ring"\n') == "my-ring"
    assert titled(clone, "[project]\nname = 3\n") == "clone0"
    assert titled(clone, '[project]\nname = "my-ring"\n') == "my-ring"
    shutil.copytree(clone, tmp_path / "copy", ignore=shutil.ignore_patterns(".git"))
    assert main(["check", "--root", str(tmp_path / "copy")]) == 0


def test_find_root(tmp_path):
    """The root is the nearest folder upwards with a project file, else the folder itself."""
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    assert find_root(deep) == tmp_path.resolve()
