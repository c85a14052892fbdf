"""What the project's configuration tells pytest of how tests run: read from the file that pytest would read, without pytest."""

from __future__ import annotations

import json
import os
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

if TYPE_CHECKING:
    import pytest

_PLACES = (
    ("pytest.toml", "pytest"),
    (".pytest.toml", "pytest"),
    ("pytest.ini", "pytest"),
    (".pytest.ini", "pytest"),
    ("pyproject.toml", "tool.pytest.ini_options"),
    ("pyproject.toml", "tool.pytest"),
    ("tox.ini", "pytest"),
    ("setup.cfg", "tool:pytest"),
)
"""Files and sections in the order in which pytest looks for its configuration."""
FILES = tuple(dict.fromkeys(name for name, _ in _PLACES))
"""The names of these files."""


class PytestSettings(Struct, frozen=True):
    """What pytest is told of how tests run."""

    file: str = "pyproject.toml"
    """The file that says it, below the root; where none does, one that may."""
    section: str = "tool.pytest.ini_options"
    """Where a TOML file has it."""
    table: Mapping[str, Any] = field(default_factory=dict)
    """Settings by name, without those that say which tests there are and where modules lie."""
    options: tuple[str, ...] = ()
    """Those of pytest's own options that it is always given on which the end of a test depends."""
    own: tuple[tuple[str, ...], ...] = ()
    """Options of conftest files and plugins that it is always given, each with the words behind it."""
    chosen: tuple[str, ...] = ()
    """Options that it is always given which leave tests or files out."""
    called: str = ""
    """What the command line says beyond that."""
    of_file: str = ""
    """Digest of what the file alone says, where the command line says more."""
    pythonpath: tuple[str, ...] = ()
    """Folders from which modules are imported, below the root or absolute: what comes from there is part of a proof, they are not."""

    def called_with(self, words: Sequence[str], own: Sequence[tuple[str, ...]], drawn: Sequence[tuple[str, ...]] = ()) -> PytestSettings:
        """Give what holds when the command line of pytest says more: its `-m` and `-k` stand in the place of those here.

        Its `-W`, `-o`, `-p no:`, `--strict`, `--strict-markers` and `--runxfail` count, too.

        Args:
            words: of the command line.
            own: those options of it that are the project's own.
            drawn: options of what a plugin has drawn for this run, which is no other one for that.
        """
        apart = [part for word in words for part in _apart(word)]
        again = tuple(name for name in ("-m", "-k") if any(word.startswith(name) for word in apart))
        pairs = zip(self.chosen[::2], self.chosen[1::2], strict=True)
        chosen = tuple(word for name, value in pairs if name not in again for word in (name, value))
        more = tuple(_on_the_line(words))
        called = [*more, *(word for option in own for word in option), *(again if chosen != self.chosen else ())]
        if not called:
            return replace(self, own=(*self.own, *drawn), of_file=self.digest) if drawn else self
        options = (*self.options, *more)
        return replace(self, options=options, own=(*self.own, *own, *drawn), chosen=chosen, called=shlex.join(called), of_file=self.digest)

    @property
    def import_mode(self) -> str:
        """What `--import-mode` says; empty where nothing does."""
        return next((value for name, value in reversed([*pairwise(self.options)]) if name == "--import-mode"), "")

    @property
    def in_tree(self) -> tuple[str, ...]:
        """The options for files in a tree of their own, where `append` would find those of the project before them."""
        pairs = pairwise(("", *self.options))
        return tuple("prepend" if (name, word) == ("--import-mode", "append") else word for name, word in pairs)

    @property
    def digest(self) -> str:
        """SHA-256 of all that the file says, also where nothing is said."""
        if self.of_file:
            return self.of_file
        more = [self.own, self.chosen] if self.own or self.chosen else []
        return sha256(json.dumps([self.section, self.table, self.options, *more], sort_keys=True, default=str).encode()).hexdigest()

    @property
    def toml(self) -> str:
        """All settings, as a TOML file that is no `pytest.toml` has them."""
        rows = (f"{json.dumps(name)} = {json.dumps(value, ensure_ascii=False)}" for name, value in self.table.items())
        return "\n".join((f"[{self.section}]", *rows, ""))


NAMED = " [pytest]"
"""What stands behind the name of a file where its settings of pytest are meant, and not the whole file."""
CALLED = "command line: "
"""What stands before what the command line of pytest said, where that stands among files."""


def settings_in(folder: Path) -> Mapping[str, Any]:
    """Give the settings of a folder, from the first file that has any; one that cannot be read has none.

    Args:
        folder: with `pytest.ini`, `pyproject.toml`, `tox.ini` or `setup.cfg`; it may lack them all.
    """
    return next((found for name, section in _PLACES if (found := _read(folder / name, section)) is not None), {})


def file_in(folder: Path) -> str:
    """Name the file by which a folder has settings of its own; empty where it has none."""
    return next((name for name, section in _PLACES if _read(folder / name, section) is not None), "")


def pytest_settings_of(root: Path, path: str) -> PytestSettings:
    """Read what pytest is told for a file of the project: by the nearest file of settings above it.

    Args:
        root: of the project.
        path: of the file, below the root.
    """
    for folder in (root / path).parents:
        for name, section in _PLACES:
            found = _read(folder / name, section)
            if found is not None:
                return _settings((folder / name).relative_to(root).as_posix(), section, found)
        if folder == root:
            break
    return PytestSettings()


def _settings(file: str, section: str, found: Mapping[str, Any]) -> PytestSettings:
    is_native = file.endswith(".toml") and not section.endswith("ini_options")
    table = {name: value for name, value in sorted(found.items()) if _bears(name) and _is_plain(value)}
    given = list(options_of(given_always(found)))
    options, chosen = (tuple(word for each in given for word in _short(each, known)) for known in (_WITH_VALUE, _CHOOSING))
    own = tuple(each for each in given if _is_own(each[0]))
    pythonpath = tuple(os.path.normpath(Path(file).parent / word) for word in _words(found.get("pythonpath", "")))
    return PytestSettings(
        file, "tool.pytest" if is_native else "tool.pytest.ini_options", table, options, own, chosen, pythonpath=pythonpath
    )


def given_always(found: Mapping[str, Any]) -> list[str]:
    """Give the words of `addopts`.

    Args:
        found: settings of a file, by name.
    """
    return _words(found.get("addopts", ""))


def _words(value: Any) -> list[str]:
    """Give the words of a setting, which is one text or a list; none of a text that has a quote too few."""
    try:
        return [str(word) for word in value] if isinstance(value, list) else shlex.split(str(value))
    except ValueError:
        return []


def called_by(words: Iterable[object]) -> list[str]:
    """Give the words that pytest is called with: those of the variable `PYTEST_ADDOPTS`, and then those of the command line.

    Args:
        words: of the command line.
    """
    return [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *map(str, words)]


def options_of(words: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield the options of a command line, each with the words behind it; short ones in one word, as in `-qm slow`, stand apart."""
    option: list[str] = []
    for word in (part for each in words for part in _apart(each)):
        if not word.startswith("-") or word[1:2].isdigit():
            option.append(word)
            continue
        if option:
            yield tuple(option)
        option = [word]
    if option:
        yield tuple(option)


def _apart(word: str) -> Iterator[str]:
    """Take a word of several short options apart: all but the last take no value."""
    while word[:1] == "-" and word[1:2] in _SHORT_FLAGS and word[2:]:
        yield word[:2]
        word = f"-{word[2:]}"
    yield word


def known(parser: pytest.Parser, option: tuple[str, ...]) -> tuple[str, ...]:
    """Give an option with those of the words behind it that are its own; nothing where the parser does not know it."""
    found, unknown = parser.parse_known_and_unknown_args(list(option))
    return () if option[0] in unknown else tuple(word for word in option if word not in found.file_or_dir)


_ELSEWHERE = frozenset({
    "addopts", "cache_dir", "console_output_style", "minversion", "norecursedirs", "pythonpath", "required_plugins", "reruns",
    "reruns_delay", "strict_config", "testpaths",
})  # fmt: skip
"""Settings of the project's own run of pytest: where tests and modules lie, what is shown and kept. Rankbook itself looks imports up."""
_STARTS_ELSEWHERE = ("junit_", "log_cli", "log_file", "tmp_path_retention_", "truncation_", "verbosity_")
"""How names of others begin."""
_SHORT_FLAGS = frozenset("dfhlqsvxV")
"""Letters of the options of pytest and of xdist that take no value."""
_STRICT = frozenset({"--strict", "--strict-markers", "--runxfail"})
DOCTESTS = "--doctest-modules"
"""Option by which pytest collects the examples of docstrings."""
_FLAGS = _STRICT | {"--noconftest", DOCTESTS, "--doctest-ignore-import-errors", "--doctest-continue-on-failure"}
_WITH_VALUE = {
    "-W": "-W", "--pythonwarnings": "-W", "-p": "-p", "-o": "-o", "--override-ini": "-o", "--import-mode": "--import-mode",
}  # fmt: skip
"""Options of pytest with a value on which the end of a test may depend, with their short names."""
_CHOOSING = {"-m": "-m", "-k": "-k", "--deselect": "--deselect", "--ignore": "--ignore", "--ignore-glob": "--ignore-glob"}
"""Options of pytest that leave tests or files out."""
_SILENT = """
    --assert --basetemp --cache-clear --cache-show --capture --co --code-highlight --collect-in-virtualenv --collect-only --collectonly
    --color --confcutdir --config-file --continue-on-collection-errors --debug --disable-pytest-warnings --disable-warnings --durations
    --durations-min --exitfirst --failed-first --ff --fixtures --fixtures-per-test --force-short-summary --full-trace --fulltrace --funcargs
    --help --junit-prefix --junit-xml --junitprefix --junitxml --keep-duplicates --last-failed --last-failed-no-failures --lf
    --lfnf --markers --maxfail --new-first --nf --no-fold-skipped --no-header --no-showlocals --no-summary --pastebin --pdb
    --pdbcls --pyargs --quiet --rootdir --setup-only --setup-plan --setup-show --show-capture --showlocals --stepwise --stepwise-reset
    --stepwise-skip --strict-config --sw --sw-reset --sw-skip --tb --trace --trace-config --verbose --verbosity --version --xfail-tb
    --boxed --dist --forked --looponfail --max-worker-restart --maxprocesses --maxschedchunk --no-loadscope-reorder --numprocesses --px
    --rsyncdir --rsyncignore --testrunuid --tx --loadscope-reorder
    --alluredir --clean-alluredir --cov --css --group --html --no-cov --no-cov-on-fail --picked --report-log --self-contained-html --splits
    --splitting-algorithm --store-durations --instafail --reruns --reruns-delay --only-rerun --rerun-except --fail-on-flaky
    --canary --engine --fail-on-debt --gpus --listing-jobs --listing-timeout --listings-report --no-plan --ray-address --require
    --source-path --stale --update-output
"""
"""Options that bear on what is run, in which order, by which processes, and on what is shown and measured of it, but not on how a test
ends: of pytest, of plugins that many use, and of rankbook."""
_SILENT_STARTS = (
    "--benchmark-",
    "--cov-",
    "--doctest-",
    "--json-report",
    "--log-cli",
    "--log-file",
    "--random-order",
    "--randomly-",
    "--testmon",
)
"""How others begin."""


def _bears(name: str) -> bool:
    """Say whether a setting may bear on how a test ends."""
    return name not in _ELSEWHERE and not name.startswith(_STARTS_ELSEWHERE)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float) or (isinstance(value, list) and all(isinstance(each, str | int | float) for each in value))


def _short(option: Sequence[str], known: Mapping[str, str]) -> Iterator[str]:
    """Yield an option by its short name, with its value, where it is one of these, or is a flag on which the end of a test may depend."""
    word, behind = option[0], option[1:2]
    long, equals, value = word.partition("=")
    if known is _WITH_VALUE and word in _FLAGS:
        yield word
    elif word in known:
        yield from (known[word], *(behind or ("",)))
    elif long in known and equals and long.startswith("--"):
        yield from (known[long], value)
    elif word[:2] in known and not word.startswith("--"):
        yield from (word[:2], word[2:])


def _on_the_line(words: Sequence[str]) -> Iterator[str]:
    """Yield the options of a command line on which the end of a test depends, and that are not looked up elsewhere."""
    for given in options_of(words):
        name, *value = (*_short(given, _WITH_VALUE), "")
        if name in _STRICT:
            yield name
        elif (
            name == "-W"
            or (name == "-o" and _bears(value[0].partition("=")[0]))
            or (name == "-p" and value[0].startswith("no:") and _is_plugin(value[0].removeprefix("no:")))
        ):
            yield from (name, value[0])


def _is_plugin(name: str) -> bool:
    """Say whether a plugin is none of pytest's own, of which the listing's own pytest has what it needs, of rankbook's or of xdist's."""
    from _pytest.config import builtin_plugins

    return name not in builtin_plugins and name.partition(".")[0] not in ("_pytest", "rankbook", "xdist")


def is_for_tests(word: str) -> bool:
    """Say whether an option of a plugin tells how tests run, whatever runs them: how often, in which mode, by which profile."""
    name = word.partition("=")[0]
    return name in _FOR_TESTS or name.startswith(_FOR_TESTS_STARTS)


_FOR_TESTS = frozenset({"--asyncio-mode", "--asyncio-debug", "--count", "--repeat-scope"})
_FOR_TESTS_STARTS = ("--anyio-", "--hypothesis-")
"""Names of such options, and how others begin."""


def _is_own(word: str) -> bool:
    """Say whether an option is one of a conftest file or a plugin: pytest leaves them the long names, and the capital letters."""
    name = word.partition("=")[0]
    if not name.startswith("--"):
        return name[1:2].isupper() and name[:2] not in _WITH_VALUE
    known = name in _FLAGS or name in _WITH_VALUE or name in _CHOOSING or name in _SILENT.split()
    return not known and name != "--" and not name.startswith(_SILENT_STARTS)


def _read(path: Path, section: str) -> Mapping[str, Any] | None:
    try:
        seen = path.stat()
    except OSError:
        return None
    return _section(path, section, seen.st_mtime_ns, seen.st_size)


@lru_cache(maxsize=256)
def _section(path: Path, section: str, _changed: int, _size: int) -> Mapping[str, Any] | None:
    """Read one section of a file, which holds until the file changes: it is asked for with every page."""
    try:
        text = path.read_text(encoding="utf-8")
        return _of_toml(text, section) if path.suffix == ".toml" else _of_ini(text, section)
    except (OSError, ValueError):
        return None


def _of_toml(text: str, section: str) -> Mapping[str, Any] | None:
    table: Any = tomllib.loads(text)
    for key in section.split("."):
        table = table.get(key) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else None


def _of_ini(text: str, section: str) -> Mapping[str, Any] | None:
    import configparser  # most projects have no such file, and a build of the site is not to wait for it

    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return None
    return dict(parser[section]) if parser.has_section(section) else None
