"""Settings come from `[tool.rankbook]`, flags win, and a wrong one is named."""

from __future__ import annotations

import pytest

from rankbook.config import Settings, find_root, load
from rankbook.errors import ConfigError


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


def test_find_root(tmp_path):
    """The root is the nearest folder upwards with a project file, else the folder itself."""
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    assert find_root(deep) == tmp_path.resolve()
