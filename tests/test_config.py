"""Settings come from `[tool.rankbook]`, flags win, and a wrong one is named."""

from __future__ import annotations

import pytest

from rankbook.cli import main
from rankbook.config import Settings, find_root, load
from rankbook.errors import ConfigError, refused


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
        ("[tool.rankbook]\nout = ''\n", "setting 'out' is empty"),
        ("[tool.rankbook]\nsources = ['']\n", "setting 'sources' is empty"),
        ("[tool.rankbook]\npack = '/etc'\n", "setting 'pack' is '/etc'"),
        ('[tool.rankbook]\nout = "a\\u0000"\n', "setting 'out' holds a null character"),
        ('[tool.rankbook]\nsources = ["a\\u0000"]\n', "setting 'sources' holds a null character"),
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


def test_find_root(tmp_path):
    """The root is the nearest folder upwards with a project file, else the folder itself."""
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    assert find_root(deep) == tmp_path.resolve()
