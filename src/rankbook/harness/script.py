"""Python listings that run as a program, on one process or on several ranks, and library modules, which must import."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import multiprocessing
import multiprocessing.connection
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rankbook import rewriting
from rankbook.languages import by_fence
from rankbook.listing import Listing, Program, RankRecord, Runtime

GUARD = ("if __name__ == ", "if __name__==", "if '__main__' ==", 'if "__main__" ==')
OUTPUT_SHOWN = 64 * 1024
"""Bytes shown of a rank's output at each end."""
MESSAGE_SHOWN = 7_000
"""Characters of a rank's message, and of its traceback, that travel: both, of four bytes each, are less than a pipe holds, so that a
dying rank never waits for its reader."""


def accepts(listing: Listing) -> bool:
    """Say whether a listing is a program: Python of a hand-written page, or a source with a main guard or that is started on ranks."""
    if not _is_python(listing):
        return False
    return listing.about is None or "ranks" in listing.options or any(line.startswith(GUARD) for line in listing.text.splitlines())


def is_library(listing: Listing) -> bool:
    """Say whether a listing is the source of a library module: Python without tests and without a main guard."""
    return _is_python(listing)


def arguments(listing: Listing) -> Mapping[str, Any]:
    """Give the numbers of ranks: each in turn; none for one plain process."""
    counts = listing.options.get("ranks", "")
    return {"ranks": [int(count) for count in counts.split(",") if count.strip()]}


def library_arguments(listing: Listing) -> Mapping[str, Any]:
    """Say that the listing is imported, not run."""
    return {"ranks": [], "import": listing.about is not None}


def _is_python(listing: Listing) -> bool:
    language = by_fence(listing.language)
    return language is not None and language.name == "python"


def run(program: Program, runtime: Runtime) -> int:
    """Run the listing as `__main__`, or import it, or start it once on each number of ranks."""
    path = Path(program.root) / program.path
    report: dict[str, Any] = {"type": "report", "id": "", "when": "call"}
    counts = program.arguments.get("ranks") or []
    if counts:
        failure, ranks = _on_ranks(path, counts, runtime)
        report |= {"ranks": ranks, "sections": list(sections(runtime.ranks))}
    else:
        failure = _alone(path, importing=bool(program.arguments.get("import")))
    runtime.emit({**report, "outcome": "passed"} | (failure or {}))
    return 1 if failure and failure["outcome"] == "failed" else 0


def _alone(path: Path, *, importing: bool) -> dict[str, Any] | None:
    try:
        import_file(path) if importing else run_as_main(path)
    except SystemExit as error:
        return _left(error, path)
    except BaseException as error:  # noqa: BLE001 - whatever a listing raises is its outcome
        return failure_of(error, path)
    return None


def run_as_main(path: Path) -> None:
    """Execute a file as `python FILE` does, in the existing `__main__` module: torch's harness keeps a reference to it."""
    sys.argv = [str(path)]
    sys.path.insert(0, str(path.parent))
    main = sys.modules["__main__"]
    names = main.__dict__
    names.clear()
    names.update(
        __name__="__main__", __file__=str(path), __builtins__=__builtins__, __spec__=None, __package__=None, __doc__=None,
        __loader__=None, __cached__=None,
    )  # fmt: skip
    exec(rewriting.compiled(path.read_bytes(), str(path)), names)  # noqa: S102 - that is what rankbook does


def import_file(path: Path) -> None:
    """Import a file under the dotted name that its packages give it.

    Where the outermost package is installed, the file stands in for the installed module of that name: its siblings are the installed ones.
    """
    folder, parts = path.parent, [path.stem]
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        parts.insert(0, folder.name)
        folder = folder.parent
    name = ".".join(part for part in parts if part != "__init__") or path.parent.name
    parent = name.rpartition(".")[0]
    if parent and importlib.util.find_spec(parent.partition(".")[0]) is None:
        sys.path.insert(0, str(folder))
        importlib.import_module(name)
        return
    if parent:
        importlib.import_module(parent)
    else:
        sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def _left(error: SystemExit, path: Path) -> dict[str, Any] | None:
    if error.code in (None, 0):
        return None
    reason = f"it left with exit status {error.code}" if isinstance(error.code, int) else str(error.code)
    return {"outcome": "failed", "reason": reason, "text": reason, "line": _line_of(error, path)}


def failure_of(error: BaseException, path: Path) -> dict[str, Any]:
    """Say how an exception that left a listing counts, and where on the listing it arose."""
    outcome = "skipped" if type(error).__name__ in ("SkipTest", "Skipped") else "failed"
    reason = str(error) if outcome == "skipped" else _named(error)
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return {"outcome": outcome, "reason": reason, "text": trimmed(error, path), "line": _line_of(error, path), "missing": missing}


def _named(error: BaseException) -> str:
    """Name an error on one line; a syntax error's own text spans several."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}"
    return "".join(traceback.format_exception_only(error)).strip().partition("\n")[0]


def _line_of(error: BaseException, path: Path) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None


def trimmed(error: BaseException, path: Path) -> str:
    """Format a traceback from the listing's first own frame on."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != str(path):
        frame = frame.tb_next
    linecache.checkcache(str(path))
    return "".join(traceback.format_exception(type(error), error, frame))


def sections(ranks: list[RankRecord]) -> Iterator[tuple[str, str]]:
    """Yield what each rank wrote, as titled sections; long output keeps its head and tail."""
    for record in ranks:
        if record.output and Path(record.output).exists():
            text = _both_ends(Path(record.output))
            if text.strip():
                yield f"Captured output of {rank_name(record.name)}", text


def both_ends_of(text: str, shown: int = OUTPUT_SHOWN) -> str:
    """Leave out the middle of a long text, and say so."""
    if len(text) <= 2 * shown:
        return text
    return f"{text[:shown]}\n[... {len(text) - 2 * shown:,} characters left out ...]\n{text[-shown:]}"


def rank_name(process: str) -> str:
    """Turn the name of a rank's process into the name of the rank: `process 1` → `rank 1`."""
    head, _, number = process.rpartition(" ")
    return f"rank {number}" if head in ("process", "rank") and number.isdigit() else process


def _both_ends(path: Path) -> str:
    with path.open("rb") as stream:
        head = stream.read(OUTPUT_SHOWN)
        size = stream.seek(0, os.SEEK_END)
        if size <= 2 * OUTPUT_SHOWN:
            stream.seek(len(head))
            return (head + stream.read()).decode(errors="replace")
        stream.seek(size - OUTPUT_SHOWN)
        left_out = f"\n[... {size - 2 * OUTPUT_SHOWN:,} bytes left out ...]\n"
        return head.decode(errors="replace") + left_out + stream.read().decode(errors="replace")


def _on_ranks(path: Path, counts: list[int], runtime: Runtime) -> tuple[dict[str, Any] | None, int]:
    try:
        import torch.distributed as dist
    except ImportError:
        return {"outcome": "skipped", "reason": "it needs torch, which is not installed here"}, 0
    for count in counts:
        # As under torchrun, the store is up before the ranks are: no two listings can race for a port.
        store = dist.TCPStore("127.0.0.1", 0, count, is_master=True, wait_for_workers=False)
        failure = _one_launch(path, count, store.port, runtime)
        del store
        if failure:
            return failure, count
    return None, max(counts)


def _one_launch(path: Path, count: int, port: int, runtime: Runtime) -> dict[str, Any] | None:
    first = len(runtime.ranks)
    context = multiprocessing.get_context("spawn")
    # The ranks run the listing as their own __main__, so nothing of ours is to be imported as theirs first.
    errors = [context.SimpleQueue() for _ in range(count)]
    processes = [
        context.Process(target=rank_main, name=f"rank {rank}", args=(str(path), rank, count, port, errors[rank])) for rank in range(count)
    ]
    for process in processes:
        process.start()
    runtime.emit({"type": "alive"})
    failed = _wait(processes)
    if failed is None:
        return None
    raised = {} if errors[failed].empty() else errors[failed].get()
    for process in processes:
        process.kill()
        process.join()
    code = runtime.ranks[first + failed].exit_code()
    died = (
        f"rank {failed} of {count} died by signal {-code}"
        if code is not None and code < 0
        else f"rank {failed} of {count} left with {code}"
    )
    if raised.get("outcome") == "skipped":
        return raised
    reason = f"rank {failed} of {count}: {raised['reason']}" if raised else died
    return {"outcome": "failed", "text": reason, **raised, "reason": reason}


def _wait(processes: list[Any]) -> int | None:
    """Wait for all ranks; give the first that ended badly as soon as it did."""
    waiting = dict(enumerate(processes))
    while waiting:
        multiprocessing.connection.wait([process.sentinel for process in waiting.values()])
        for rank, process in list(waiting.items()):
            if process.exitcode is not None:
                del waiting[rank]
                if process.exitcode != 0:
                    return rank
    return None


def rank_main(path: str, rank: int, count: int, port: int, errors: Any) -> None:
    """Run a listing as one rank, with the environment that torchrun gives."""
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count),
        "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", "ROLE_RANK": str(rank), "ROLE_WORLD_SIZE": str(count), "ROLE_NAME": "default",
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RUN_ID": "rankbook", "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0",
    }  # fmt: skip
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        run_as_main(Path(path))
    except SystemExit as error:
        failure = _left(error, Path(path))
        if failure:
            errors.put(failure)
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a rank raises is its outcome
        raised = failure_of(error, Path(path))
        errors.put(raised | {"reason": raised["reason"][:MESSAGE_SHOWN], "text": raised["text"][-MESSAGE_SHOWN:]})
        sys.stderr.write(raised["text"])
        sys.stderr.flush()
        sys.stdout.flush()
        raise SystemExit(1) from None
