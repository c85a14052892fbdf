"""Shell listings: `bash` and `sh` run as one script, `console` as commands with the output that must follow each."""

from __future__ import annotations

import doctest
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from rankbook.languages import by_fence
from rankbook.listing import Listing, Program, Runtime

LANGUAGES = frozenset({"bash", "console"})


def accepts(listing: Listing) -> bool:
    """Say whether a listing is for a shell."""
    language = by_fence(listing.language)
    return language is not None and language.name in LANGUAGES


def arguments(listing: Listing) -> Mapping[str, Any]:
    """Say whether the listing shows prompts."""
    language = by_fence(listing.language)
    prompts = language is not None and language.name == "console"
    return {"console": prompts or listing.text.lstrip().startswith("$ ")}


@dataclass(frozen=True, slots=True)
class OwnRun:
    """A shell listing that runs the very source that its page shows."""

    ranks: int
    """Ranks that it asks for; 0 when it names none."""


def own_run(listing: Listing, source: str) -> OwnRun | None:
    """Read a shell listing as the run of a page's own source, None when it is anything else.

    Args:
        listing: a shell listing.
        source: path of the source that the page is about.
    """
    lines = [line for line in listing.text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) != 1 or not source:
        return None
    try:
        words = shlex.split(lines[0].removeprefix("$ "))
    except ValueError:
        return None
    return _own(words, source)


def _own(words: list[str], source: str) -> OwnRun | None:
    if not words or PurePosixPath(words[-1]) != PurePosixPath(source):
        return None
    command, options = words[:-1], list[str]()
    while command and command[-1].startswith("-") and command[-1] != "-m":
        options.insert(0, command.pop())
    if command in (["python"], ["python3"], ["pytest"], ["python", "-m", "pytest"], ["python3", "-m", "pytest"]):
        return None if options else OwnRun(0)
    if command in (["torchrun"], ["python", "-m", "torch.distributed.run"]):
        counts = [option.partition("=")[2] for option in options if option.replace("_", "-").startswith("--nproc-per-node=")]
        return OwnRun(int(counts[0])) if len(counts) == 1 and counts[0].isdigit() else None
    return None


def run(program: Program, runtime: Runtime) -> int:
    """Run the listing with bash, in the mirror tree."""
    path = Path(program.root) / program.path
    report = {"type": "report", "id": "", "when": "call"}
    # `python`, `pytest` and `torchrun` are those of this environment, whether or not it is activated.
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    failure = _console(path.read_text(encoding="utf-8")) if program.arguments.get("console") else _script(path)
    runtime.emit({**report, "outcome": "failed", **failure} if failure else {**report, "outcome": "passed"})
    return 1 if failure else 0


def _script(path: Path) -> dict[str, Any] | None:
    # The trap names the line: bash itself would only give a status.
    prelude = f"trap 'status=$?; echo \"line $LINENO: exit status $status: $BASH_COMMAND\" > {shlex.quote(str(path))}.failed' ERR"
    command = f"{prelude}; set -E; . {shlex.quote(str(path))}"
    done = subprocess.run(["bash", "-eu", "-o", "pipefail", "-c", command], check=False)
    if done.returncode == 0:
        return None
    note = Path(f"{path}.failed")
    where = note.read_text(encoding="utf-8", errors="replace").strip() if note.exists() else ""
    line = where.removeprefix("line ").partition(":")[0]
    reason = f"exit status {done.returncode}" + (f": {where.partition(': ')[2].partition(': ')[2]}" if where else "")
    return {"reason": reason, "text": reason, "line": int(line) if line.isdigit() else None}


@dataclass(frozen=True, slots=True)
class _Step:
    line: int
    command: str
    expected: str


def _steps(text: str) -> Iterator[_Step]:
    """Split a console listing into its commands (`$ `, continued with `> `) and the output below each."""
    start, command, expected = 0, "", ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("$ "):
            if command:
                yield _Step(start, command, expected)
            start, command, expected = number, line[2:], ""
        elif line.startswith("> ") and not expected:
            command += "\n" + line[2:]
        elif command:
            expected += line + "\n"
    if command:
        yield _Step(start, command, expected)


def _console(text: str) -> dict[str, Any] | None:
    steps = list(_steps(text))
    if not steps:
        return {"reason": "no command: a console listing shows each command after '$ '", "text": "", "line": 1}
    checker = doctest.OutputChecker()
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for step in steps:
        done = subprocess.run(
            ["bash", "-u", "-o", "pipefail", "-c", step.command],
            check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
        sys.stdout.write(f"$ {step.command}\n{done.stdout}")
        if done.returncode:
            return {"reason": f"exit status {done.returncode}: {step.command}", "text": done.stdout, "line": step.line}
        if step.expected.strip() and not checker.check_output(step.expected, done.stdout, flags):
            text = f"$ {step.command}\nExpected:\n{step.expected}Got:\n{done.stdout}"
            return {"reason": f"another output than the one shown: {step.command}", "text": text, "line": step.line}
    return None
