"""What a linter says of the sources: one run of ruff over the whole tree, beside the rest of the work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Self

import msgspec
from msgspec import Struct, field

from rankbook.model import Finding

ANYWHERE = {
    "PT009": "a unittest suite asserts by methods",
    "PT027": "a unittest suite asserts by methods",
}
"""Rules that are not shown unless a setting names them in full, with the reason."""
IN_TESTS = {
    "S101": "tests consist of assertions",
    "S311": "random test data is no secret",
}
"""The same, in files of tests."""
OUTSIDE_TESTS = {
    "PT018": "the rule is about the messages of failing tests",
}
"""The same, in all other files."""
TIMEOUT = 300.0
"""Seconds after which ruff counts as hung; it reads some 1,500 files a second."""
ABSENT = "ruff is not installed, so no page has findings; `pip install 'rankbook[findings]'` adds it"
"""What a run says when the tool is not there."""

_OF_TESTS = re.compile(r"(?:.*/)?(?:tests?|testing)/|(?:.*/)?(?:test_[^/]*|[^/]*_test|conftest)\.pyi?\Z")
_CODE = re.compile(r"(?!E9)[A-Z]+[0-9]+")
"""Code of a rule; E902 and E999 say that a file could not be read or parsed, which its page says itself."""
_URL = re.compile(r"https?://[\w./#%-]+")
_LONGEST = 300
"""Characters of a message."""
_VERSION = re.compile(r"ruff \d[\w.+-]*")


class Findings(Struct, frozen=True):
    """What ruff said of a tree."""

    by_path: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)
    """By source path, each by line; a file without any has no entry."""
    warning: str = ""
    """Why there are none though ruff was to run, as a sentence; empty when all went well."""
    note: str = ""
    """That ruff is not there, as a sentence; empty when it is, or when nobody asks for findings."""


class Run:
    """A run of ruff under way; leaving it as a context ends it.

    Args:
        process: ruff; None when it does not run.
        folder: holds what it reads and prints.
        sources: source path by the name under which ruff knows a file.
        rules: the setting.
        otherwise: what there is to say when ruff does not run.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes] | None = None,
        folder: tempfile.TemporaryDirectory[str] | None = None,
        sources: Mapping[str, str] | None = None,
        rules: Sequence[str] = (),
        otherwise: Findings | None = None,
    ) -> None:
        self._process = process
        self._folder = folder
        self._sources = sources or {}
        self._rules = frozenset(rules)
        self._result = otherwise if process is None or folder is None else None

    def result(self, timeout: float = TIMEOUT) -> Findings:
        """Wait for ruff, and give what it said.

        Args:
            timeout: seconds to wait at most.
        """
        if self._result is None:
            try:
                self._result = self._collected(timeout)
            finally:
                self.close()
        return self._result

    def close(self) -> None:
        """End ruff if it still runs, and remove what it was given."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> Self:
        """Give the run itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.close()

    def _collected(self, timeout: float) -> Findings:
        if self._process is None or self._folder is None:
            return Findings()
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return Findings(warning=f"ruff has not ended within {timeout:g} s, so no page has findings")
        try:
            if status:
                return Findings(warning=f"ruff ended with status {status}, so no page has findings: {_complaint(Path(self._folder.name))}")
            with Path(self._folder.name, "out").open("rb") as lines:
                return Findings(self._by_path(lines))
        except (OSError, msgspec.DecodeError, ValueError, TypeError, KeyError, RecursionError) as error:
            return Findings(warning=f"ruff printed what cannot be read, so no page has findings: {str(error)[:_LONGEST]}")

    def _by_path(self, lines: Iterable[bytes]) -> dict[str, tuple[Finding, ...]]:
        found: dict[str, list[Finding]] = {path: [] for path in self._sources.values()}
        for path, finding in self._read(lines):
            found[path].append(finding)
        ordered = ((path, sorted(found[path], key=lambda each: (each.line, each.rule, each.message))) for path in sorted(found))
        return {path: tuple(findings) for path, findings in ordered if findings}

    def _read(self, lines: Iterable[bytes]) -> Iterator[tuple[str, Finding]]:
        same: dict[str, str] = {}
        """Texts that many findings share."""
        left_out = {path: frozenset(IN_TESTS if _OF_TESTS.match(path) else OUTSIDE_TESTS) - self._rules for path in self._sources.values()}
        for line in lines:
            said = msgspec.json.decode(line)
            rule, path = said["code"], self._sources[said["filename"]]
            if not isinstance(rule, str) or not _CODE.fullmatch(rule) or rule in left_out[path]:
                continue
            url = said["url"] if _URL.fullmatch(said["url"] or "") else ""
            texts = (rule, said.get("name") or url.rpartition("/")[2], str(said["message"])[:_LONGEST], url)
            rule, name, message, url = (same.setdefault(text, text) for text in texts)
            yield path, Finding(rule, name, message, int(said["location"]["row"]), url)


def start(root: Path, paths: Iterable[str], rules: Sequence[str], jobs: int = 0) -> Run:
    """Start ruff on the Python sources of a tree.

    The project's own settings of ruff are left aside, so that books can be compared; `# noqa` counts. What is said of a file depends on its
    path, its text, the rules and the version of ruff alone.

    Args:
        root: folder that paths start from.
        paths: Python sources below it.
        rules: codes of rules and beginnings of codes; empty for no findings.
        jobs: threads of ruff; 0 for one per core.
    """
    sources = {name: path for path in paths if _is_listable(name := os.path.abspath(root / path))}  # noqa: PTH100 - ruff resolves no link either
    if not rules or not sources:
        return Run(otherwise=Findings())
    program = _find()
    if not program:
        return Run(otherwise=Findings(note=ABSENT))
    folder = tempfile.TemporaryDirectory(prefix="rankbook-findings-")
    try:
        process = _started(program, Path(folder.name), sources, rules, jobs)
    except OSError as error:
        folder.cleanup()
        return Run(otherwise=Findings(warning=f"ruff cannot be started, so no page has findings: {error.strerror}"))
    return Run(process, folder, sources, rules)


def version() -> str:
    """Give the version of ruff, as part of a key under which findings are kept; empty when it is not there."""
    program = _find()
    return _version(program) if program else ""


@lru_cache(maxsize=2)
def _version(program: str) -> str:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, timeout=10, check=False, env=_environment(), text=True)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    match = _VERSION.match(said.stdout)
    return match[0] if match else ""


def _find() -> str:
    """Find ruff, first where the interpreter's own programs are; empty when it is not there."""
    return shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff") or ""


def _is_listable(name: str) -> bool:
    """Whether a list of names, one per line in UTF-8, can hold a name."""
    return not re.search(r"[\r\n\ud800-\udfff]", name)


def _started(program: str, folder: Path, sources: Iterable[str], rules: Sequence[str], jobs: int) -> subprocess.Popen[bytes]:
    (folder / "files").write_bytes("\n".join(sources).encode())
    command = [
        program,
        "check",
        "--isolated",
        "--no-cache",
        "--no-respect-gitignore",
        "--exit-zero",
        "--quiet",
        "--output-format=json-lines",
        f"--select={','.join(rules)}",
        f"--ignore={','.join(sorted(ANYWHERE.keys() - set(rules)))}",
        f"@{folder / 'files'}",
    ]
    environment = _environment() | ({"RAYON_NUM_THREADS": str(jobs)} if jobs else {})
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        # Its own folder as working directory: what lies in the tree is none of its settings.
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder, env=environment)


def _environment() -> dict[str, str]:
    """Give our environment without what would set ruff's options."""
    return {name: value for name, value in os.environ.items() if not name.startswith("RUFF_")} | {"NO_COLOR": "1"}


def _complaint(folder: Path) -> str:
    """Give the first lines of what ruff complained of: that it failed, and why."""
    with (folder / "err").open("rb") as lines:
        said = b" ".join(islice((line[:_LONGEST] for line in lines if line.strip()), 2)) or b"it says nothing"
    return " ".join("".join(character if character.isprintable() else " " for character in said.decode(errors="replace")).split())
