"""Shell listings: `bash`, `sh` and other shells run as one script, `console` as commands with the output that must follow each."""

from __future__ import annotations

import doctest
import os
import re
import secrets
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from rankbook.harness import outputs, script
from rankbook.languages import by_fence, shell_of
from rankbook.listing import Listing, Program, Runtime

LANGUAGES = frozenset({"bash", "console"})
LAUNCHER = re.compile(r"\btorchrun\b|\btorch\.distributed\.(?:run|launch)\b")
"""Programs that say, on the standard error, which rank failed first."""


def accepts(listing: Listing) -> bool:
    """Say whether a listing is for a shell."""
    language = by_fence(listing.language)
    return language is not None and language.name in LANGUAGES


def arguments(listing: Listing) -> Mapping[str, Any]:
    """Say whether the listing shows prompts, and which shell it is for where that is not bash."""
    language = by_fence(listing.language)
    prompts = language is not None and language.name == "console"
    said: dict[str, Any] = {"hidden": listing.lines_above} if listing.hidden else {}
    shown = prompts or listing.text.lstrip().startswith("$ ")
    shell = shell_of(listing.language, listing.about.source if listing.about is not None else "", listing.text.partition("\n")[0])
    said |= {"shell": shell} if shell != "bash" and not shown else {}
    return {"console": shown, **said, **outputs.arguments(listing)}


_PATH = re.compile(r"(?<![\w./-])(cd +)?(?:\./)?([\w-][\w.-]*(?:/[\w.-]+)*)")
"""A word of a command that may be a path down from the working directory."""


def starts_in(text: str, source: str, files: Iterable[str]) -> str:
    """Give the folder in which a listing starts: where the files are that it names, beside its source or at the root of the tree.

    Args:
        text: of the listing.
        source: path of the source that it is, or that its page is about.
        files: paths of the files of its tree.

    Returns:
        The source's folder when the listing names something there by its path from that folder, and nothing from the root; else empty.
    """
    folder = str(PurePosixPath(source).parent)
    known = [frozenset(files), frozenset(path.removeprefix(f"{folder}/") for path in files if path.startswith(f"{folder}/"))]
    from_root, from_folder = (any(_is_named(word, cd, paths) for cd, word in _PATH.findall(text)) for paths in known)
    return folder if from_folder and not from_root and folder != "." else ""


def _is_named(word: str, cd: str, paths: frozenset[str]) -> bool:
    return word in paths or (bool(cd or "/" in word) and any(path.startswith(f"{word.rstrip('/')}/") for path in paths))


class OwnRun(Struct, frozen=True):
    """A shell listing that runs the very source that its page shows."""

    ranks: int
    """Ranks that it asks for; 0 when it names none."""
    by_pytest: bool = False
    """Whether pytest runs it."""


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
        return None if options else OwnRun(0, by_pytest=command[-1] == "pytest")
    if command in (["torchrun"], ["python", "-m", "torch.distributed.run"]):
        counts = [option.partition("=")[2] for option in options if option.replace("_", "-").startswith("--nproc-per-node=")]
        return OwnRun(int(counts[0])) if len(counts) == 1 and counts[0].isdigit() else None
    return None


def run(program: Program, runtime: Runtime) -> int:
    """Run the listing with its shell, in the mirror tree: at its root, or in the folder that `arguments` names."""
    path = Path(program.root) / program.path
    os.chdir(Path(program.root, program.arguments.get("folder", "")))
    os.environ |= environment()
    shell = program.arguments.get("shell", "bash")
    if shutil.which(shell) is None:
        reason = f"needs {shell}, which is not on PATH"
        runtime.emit({"type": "report", "id": "", "when": "call", "outcome": "skipped", "reason": reason})
        return 0
    comparison = outputs.Comparison.of(program.arguments)
    wrong = _console(path, program.arguments.get("hidden", 0)) if program.arguments.get("console") else _script(path, comparison, shell)
    failure = {"outcome": "failed", **wrong} if wrong else None
    report = {"type": "report", "id": "", "when": "call", "outcome": "passed", **comparison.judged(failure)}
    runtime.emit(report)
    return 1 if report["outcome"] == "failed" else 0


def environment() -> dict[str, str]:
    """Give what a shell finds: `python`, `pytest` and `torchrun` of this environment, activated or not, and a port for `torchrun` alone.

    `PET_MASTER_PORT` is what torchrun takes when its command names no port.
    """
    folder = str(Path(sys.executable).parent)
    found = {"PATH": os.pathsep.join((folder, os.environ.get("PATH", os.defpath)))}
    if "PET_MASTER_PORT" not in os.environ:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            found["PET_MASTER_PORT"] = str(probe.getsockname()[1])
    return found


def _script(path: Path, comparison: outputs.Comparison, shell: str) -> dict[str, Any] | None:
    errors = Tee(2) if LAUNCHER.search(path.read_text(encoding="utf-8", errors="replace")) else None
    traps = "; ".join(f"trap {shlex.quote(_NOTE + shlex.quote(f'{path}.{signal}'))} {signal}" for signal in ("ERR", "EXIT"))
    command = f"{traps}; set -E; . {shlex.quote(str(path))}"
    words = ["-c", command, path] if shell == "bash" else [path]
    with comparison.capture():
        done = subprocess.run([shell, "-eu", "-o", "pipefail", *words], check=False, stderr=errors.end if errors else None)
    said, status = errors.close() if errors else "", done.returncode
    if status == 0:
        return None
    told, line = _failed(path, status) if shell == "bash" else ("", None)
    reason = "; ".join((f"exit status {status}{told and f': {told}'}", *dead_rank(said)))
    return {"reason": reason, "text": reason, "line": line}


_NOTE = 'printf "%s\\n" "$?" "$LINENO" "$BASH_COMMAND" > '
"""Command of a trap: it notes what failed, of which bash itself would only give the status."""


def _failed(path: Path, status: int) -> tuple[str, int | None]:
    """Tell what ended a script, and its line where it is known.

    Args:
        path: of the script, beside which the traps have left their notes.
        status: that it ended with.

    Returns:
        The command that failed, or what bash does not understand; empty for a script that ended itself.
    """
    notes = [Path(f"{path}.{signal}") for signal in ("ERR", "EXIT")]
    (error, line, failed), (_, _, last) = (
        note.read_text(encoding="utf-8", errors="replace").split("\n", 2) if note.exists() else _NOTHING for note in notes
    )
    if error == str(status):
        return failed.strip(), int(line) if line.isdigit() else None
    checked = subprocess.run(
        ["bash", "-n", path], check=False, capture_output=True, text=True, errors="replace", env={**os.environ, "LC_ALL": "C"}
    )
    if found := re.match(rf"{re.escape(str(path))}: line (\d+): (.*)", checked.stderr):
        return found[2], int(found[1])
    return "" if last.startswith((". ", "exit")) else last.strip(), None


_NOTHING = ("", "", "")


_ROOT_CAUSE = re.compile(r"Root Cause.*?\n\s*rank\s*:\s*(\d+).*?\n\s*exitcode\s*:\s*(-?\d+)", re.DOTALL)
"""Where torchrun says which rank failed first, and how."""


def dead_rank(said: str) -> Iterator[str]:
    """Yield which rank failed first and how, by the words with which torchrun ends."""
    for rank, code in _ROOT_CAUSE.findall(said)[-1:]:
        yield f"rank {rank} {script.death(int(code))}"


class Tee:
    """Lets others write to a stream of this process through a pipe, and keeps the end of what they write.

    Args:
        stream: descriptor of the stream.
    """

    KEPT = 64 * 1024
    """Bytes."""
    MOMENT = 0.5
    """Seconds that are left, at the end, to a process that outlives the shell and still holds the pipe."""

    def __init__(self, stream: int) -> None:
        self._stream = stream
        self._tail = bytearray()
        source, self.end = os.pipe()
        self._reader = threading.Thread(target=self._read, args=(source,), daemon=True)
        self._reader.start()

    def _read(self, source: int) -> None:
        while data := os.read(source, 65536):
            self._tail += data
            del self._tail[: -self.KEPT]
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._stream, rest) :]

    def close(self) -> str:
        """Stop writing from here; gives the end of what was written."""
        os.close(self.end)
        self._reader.join(self.MOMENT)
        return bytes(self._tail).decode(errors="replace")


class _Step(Struct, frozen=True):
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


def _console(path: Path, hidden: int) -> dict[str, Any] | None:
    """Give all commands to one shell, as a reader does who types them: what one sets is there for the next."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    rest = lines[hidden:]
    if stray := next((number for number, line in enumerate(_above(rest), hidden + 1) if line.strip()), None):
        reason = "it stands above the first command, which a console listing shows after '$ '"
        return {"reason": reason, "text": "", "line": stray}
    steps = list(_steps("\n" * hidden + "".join(rest)))
    if not steps:
        return {"reason": "no command: a console listing shows each command after '$ '", "text": "", "line": 1}
    mark = secrets.token_hex(16)
    typed = Path(f"{path}.typed")
    typed.write_bytes(_typed("".join(lines[:hidden]), steps, mark).encode())
    printed, statuses = [""], []
    with subprocess.Popen(
        ["bash", "-u", "-o", "pipefail", typed], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace"
    ) as shell:
        for line in shell.stdout or ():  # shown as it comes: of one that hangs the reader sees how far it came
            text, found, status = line.partition(f"{mark} ")
            printed[-1] += text
            _show(text)
            if found:
                statuses.append(int(status))
            if found and len(statuses) <= len(steps):
                printed.append("")
                _show(f"$ {steps[len(statuses) - 1].command}\n")
    if not statuses:
        return {"reason": f"exit status {shell.returncode} in the hidden lines", "text": "", "line": 1}
    for place, (step, text) in enumerate(zip(steps, printed[1:], strict=False), 1):
        if wrong := _wrong(step, text, statuses[place] if place < len(statuses) else shell.returncode):
            return wrong
    if len(printed) <= len(steps):
        last = steps[len(printed) - 2]
        return {"reason": f"it left the shell before the commands below it: {last.command}", "text": "", "line": last.line}
    return None


def _above(lines: Iterable[str]) -> Iterator[str]:
    """Give the lines above the first command; none where there is no command."""
    found = list(lines)
    first = next((place for place, line in enumerate(found) if line.startswith("$ ")), 0)
    yield from found[:first]


def _typed(hidden: str, steps: Iterable[_Step], mark: str) -> str:
    """Write the script of a console listing: behind each command a mark with its status; it ends with the first that fails."""
    said = f"printf '{mark} %s\\n'"
    commands = (
        f"{step.command}\n{{ {_STATUS}=$?; {said} ${_STATUS}; [ ${_STATUS} = 0 ] || exit ${_STATUS}; }} 2>/dev/null\n" for step in steps
    )
    return f"set -e\n{hidden}\nset +e\n{said} 0\n{''.join(commands)}"


_STATUS = "__rankbook_status"


def _show(text: str) -> None:
    sys.stdout.buffer.write(text.encode())  # whatever the locale can encode
    sys.stdout.buffer.flush()


def _wrong(step: _Step, printed: str, status: int) -> dict[str, Any] | None:
    """Say what is wrong with a command that has run: its status, or an output that is not the one below it, where any stands there."""
    if status:
        return {"reason": f"exit status {status}: {step.command}", "text": printed, "line": step.line}
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    if step.expected.strip() and not doctest.OutputChecker().check_output(step.expected, printed, flags):
        text = f"$ {step.command}\nExpected:\n{step.expected}Got:\n{printed}"
        return {"reason": f"another output than the one shown: {step.command}", "text": text, "line": step.line}
    return None
