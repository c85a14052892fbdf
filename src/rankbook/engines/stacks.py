"""What processes are doing, read from the stacks that they write when asked: who waits for whom.

The stacks are those of `faulthandler`, which every process of a program writes at C level, also while a thread holds the interpreter.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from msgspec import Struct

from rankbook.rank_notes import NO_LINE

_THREAD = re.compile(r"(?:Thread|Current thread) 0x[0-9a-f]+.*\(most recent call first\):|Stack \(most recent call first\):")
_FRAME = re.compile(r'\s+File "(?P<file>.*)", line (?P<line>\d+|\?\?\?) in (?P<function>.*)')
_DISTRIBUTED = "torch/distributed/"
_NOT_A_COLLECTIVE = ("torch/distributed/elastic/", "torch/distributed/c10d_logger.py")
_COLLECTIVES = "/distributed_c10d.py"
_ENGINE = "/rankbook/engines/"
_WRAPPERS = frozenset({"wrapper", "inner", "func_wrapper", "decorate_context"})
_THREADS_SHOWN = 8
"""Threads besides the main one that are told of in one process."""


class Doing(enum.Enum):
    """Kinds of what a process does."""

    COLLECTIVE = "in a function of torch.distributed"
    RANKS = "in a test harness, waiting for its ranks"
    TASK = "a rank that its harness has given nothing to do"
    OTHERS = "waiting for a process, a thread or a message"
    SLEEP = "in `time.sleep`"
    NATIVE = "in native code, using no processor time"
    RUNNING = "using processor time"
    STOPPED = "stopped by a signal"
    SILENT = "without stacks"


VAIN = frozenset({Doing.COLLECTIVE, Doing.RANKS})
"""What nobody does for long whose ranks are all there."""
STILL = VAIN | {Doing.TASK, Doing.OTHERS, Doing.NATIVE}
"""What a process may do that waits for others."""


class _Wait(Struct, frozen=True):
    """One function in which processes wait for others."""

    file: str
    """End of its file's path."""
    functions: frozenset[str]
    doing: Doing
    what: str


def _wait(file: str, functions: str, doing: Doing, what: str) -> _Wait:
    return _Wait(file, frozenset(functions.split()), doing, what)


# The first row that fits any frame is taken: what a harness waits in lies above what multiprocessing waits in.
_WAITS = (
    _wait("torch/testing/_internal/common_distributed.py", "_join_processes", Doing.RANKS, "its ranks"),
    _wait("torch/testing/_internal/common_distributed.py", "_join_threads", Doing.OTHERS, "its threads"),
    _wait("torch/testing/_internal/common_distributed.py", "retrieve_result_from_completion_queue", Doing.RANKS, "the result of a rank"),
    _wait("torch/multiprocessing/spawn.py", "join", Doing.RANKS, "its ranks"),
    _wait("rankbook/harness/ranks.py", "_wait end", Doing.RANKS, "its ranks"),
    _wait("multiprocessing/process.py", "join", Doing.OTHERS, "a process"),
    _wait("multiprocessing/queues.py", "get", Doing.OTHERS, "a queue"),
    _wait("multiprocessing/queues.py", "put", Doing.OTHERS, "a queue"),
    _wait("multiprocessing/connection.py", "recv recv_bytes wait poll", Doing.OTHERS, "a message of another process"),
    _wait("subprocess.py", "wait communicate _wait _communicate", Doing.OTHERS, "a subprocess"),
    _wait("threading.py", "join _wait_for_tstate_lock wait acquire _shutdown", Doing.OTHERS, "a thread"),
    _wait("queue.py", "get put join", Doing.OTHERS, "a queue"),
)
_IDLE_RANK = ("torch/testing/_internal/common_distributed.py", "_worker_loop")
"""A rank that is shared by the tests of a class takes its next test here."""


class Frame(Struct, frozen=True):
    """One call on a stack."""

    file: str
    line: int
    """0 when it is not known."""
    function: str


Stack = tuple[Frame, ...]
"""The calls of one thread, innermost first."""


class Sight(Struct, frozen=True):
    """One process as it was seen from outside."""

    name: str
    """`rank 1`, `the main process`."""
    dump: str
    """What it wrote of its stacks."""
    stopped: bool = False
    """Whether a signal has stopped it."""
    busy: bool = False
    """Whether it used processor time."""
    asleep: bool = False
    """Whether the system says that it is in `time.sleep`."""


def read(dump: str) -> list[Stack]:
    """Read the stacks of all threads of a process, the main thread last as `faulthandler` writes it; other lines are passed over."""
    stacks: list[list[Frame]] = []
    for line in dump.splitlines():
        if _THREAD.fullmatch(line):
            stacks.append([])
        elif stacks and (match := _FRAME.fullmatch(line)):
            number = int(match["line"]) if match["line"].isdecimal() else 0
            stacks[-1].append(Frame(match["file"], number, match["function"]))
    return [tuple(stack) for stack in stacks]


def without_engine(dump: str) -> str:
    """Leave out, for a reader, the calls by which an engine has started the program, and those that note a call."""
    kept, ours = [], False
    for line in dump.splitlines(keepends=True):
        frame = _FRAME.fullmatch(line.rstrip("\n"))
        ours = frame is not None and (ours or _ENGINE in _posix(frame["file"]))
        if not ours and not (frame is not None and frame["line"] == str(NO_LINE) and _DISTRIBUTED in _posix(frame["file"])):
            kept.append(line)
    return "".join(kept)


def doing(sight: Sight, root: str) -> Doing:
    """Say what kind of thing a process does, of a program in that folder."""
    stacks = read(sight.dump)
    if sight.stopped:
        return Doing.STOPPED
    if not stacks:
        return Doing.SILENT
    stack = stacks[-1]
    if _collective(_inner(stack, root)):
        return Doing.COLLECTIVE
    if wait := _waited_for(stack):
        return wait.doing if wait.doing is Doing.RANKS or not _idles(stack) else Doing.TASK
    if sight.busy:
        return Doing.RUNNING
    return Doing.SLEEP if sight.asleep else Doing.NATIVE


def sentences(sights: Sequence[Sight], root: str) -> Iterator[str]:
    """Say of each process what it does: `rank 0 waits in all_reduce (train.py:12)`.

    Args:
        sights: the processes.
        root: folder of the program; places are given by paths below it.
    """
    for sight in sights:
        yield f"{sight.name} {_phrase(sight, root)}"
        for stack in _own_threads(read(sight.dump)[:-1], root)[:_THREADS_SHOWN]:
            collective = _collective(_inner(stack, root))
            if collective:
                yield f"a thread of {sight.name} waits in {collective}{_place(stack, root)}"


def _phrase(sight: Sight, root: str) -> str:
    stack = (read(sight.dump) or [()])[-1]
    place = _place(stack, root)
    collective = _collective(_inner(stack, root))
    wait = _waited_for(stack)
    match doing(sight, root):
        case Doing.STOPPED:
            phrase = "is stopped by a signal"
        case Doing.SILENT:
            phrase = "does not say what it does"
        case Doing.TASK:
            phrase = "waits for its next test"
        case Doing.RUNNING:
            phrase = "is running" if place else f"is running in {_called(stack)}"
        case Doing.SLEEP:
            phrase = "is in sleep"
        case _ if collective:
            phrase = f"waits in {collective}"
        case _ if wait:
            phrase = f"waits for {wait.what}"
        case _ if stack and _below(stack[0].file, root):
            return f"is in native code called from {_relative(stack[0].file, root)}:{stack[0].line}"
        case _:
            phrase = f"is in {_called(stack)}"
    return phrase + place


def _own_threads(stacks: Sequence[Stack], root: str) -> list[Stack]:
    return [stack for stack in stacks if any(_below(frame.file, root) for frame in stack)]


def _inner(stack: Stack, root: str) -> Stack:
    """Leave out what called the innermost code of the program itself."""
    for number, frame in enumerate(stack):
        if _below(frame.file, root):
            return stack[:number]
    return stack


def _collective(stack: Stack) -> str:
    """Name the innermost public function of torch.distributed, a wait for its work only where there is no other; empty for none."""
    found = ""
    for frame in stack:
        path = _posix(frame.file)
        if _DISTRIBUTED in path and "/testing/" not in path and not any(part in path for part in _NOT_A_COLLECTIVE):
            name = frame.function.rpartition(".")[2]
            if name == "wait" and path.endswith(_COLLECTIVES):
                found = "Work.wait"
            elif not name.startswith(("_", "<")) and name not in _WRAPPERS:
                return name
    return found


def _waited_for(stack: Stack) -> _Wait | None:
    for wait in _WAITS:
        for frame in stack:
            if _posix(frame.file).endswith(wait.file) and frame.function.rpartition(".")[2] in wait.functions:
                return wait
    return None


def _idles(stack: Stack) -> bool:
    """Whether a rank waits for its next test: the harness's loop is what called the queue."""
    file, function = _IDLE_RANK
    callers = [frame for frame in stack if not re.search(r"/multiprocessing/|/selectors\.py$", _posix(frame.file))]
    return bool(callers) and _posix(callers[0].file).endswith(file) and callers[0].function.rpartition(".")[2] == function


def _place(stack: Stack, root: str) -> str:
    for frame in stack:
        if _below(frame.file, root):
            return f" ({_relative(frame.file, root)}:{frame.line})"
    return ""


def _called(stack: Stack) -> str:
    return f"{stack[0].function} of {PurePath(stack[0].file).name}" if stack else "native code"


def _below(file: str, root: str) -> bool:
    return _posix(file).startswith(root.rstrip("/") + "/")


def _relative(file: str, root: str) -> str:
    return _posix(file)[len(root.rstrip("/")) + 1 :]


def _posix(file: str) -> str:
    return file.replace("\\", "/")
