"""Python listings that run as a program, and library modules, which must import: what they are, and how one process runs one."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rankbook import rank_notes, rewriting
from rankbook.harness import outputs
from rankbook.languages import by_fence, is_stub
from rankbook.listing import Listing, RankRecord

GUARD = ("if __name__ == ", "if __name__==", "if '__main__' ==", 'if "__main__" ==')
_SKIPS = frozenset({("unittest.case", "SkipTest"), ("builtins", "Skipped")})
"""Exceptions by which a listing skips itself, each with its module, which pytest feigns: a project may have others of these names."""
OUTPUT_SHOWN = 64 * 1024
"""Bytes shown of a rank's output at each end."""


def accepts(listing: Listing) -> bool:
    """Say whether a listing is a program: Python of a hand-written page, or a source with a main guard, on ranks, or that is no module."""
    if not _is_python(listing):
        return False
    if listing.about is None or "ranks" in listing.options or not is_module(listing.about.source):
        return True
    return any(line.startswith(GUARD) for line in listing.text.splitlines())


def is_module(path: str) -> bool:
    """Say whether an import finds a file of Python: it is named `*.py`, without a further dot, which would begin the name of a package."""
    stem, _, suffix = path.rpartition("/")[2].rpartition(".")
    return suffix == "py" and "." not in stem


def is_library(listing: Listing) -> bool:
    """Say whether a listing is the source of a library module: Python without tests and without a main guard."""
    return _is_python(listing)


def arguments(listing: Listing) -> Mapping[str, Any]:
    """Give the numbers of ranks, each in turn, none for one plain process; and what else its options and output fences say."""
    options = listing.options
    counts = [int(count) for count in options.get("ranks", "").split(",") if count.strip()]
    fixtures = [name.strip() for name in options.get("fixtures", "").split(",") if name.strip()]
    said: dict[str, Any] = {name: options[name] for name in ("raises", "backend") if name in options}
    said |= {"init": True} if "init" in options else {}
    said |= {"fixtures": fixtures} if fixtures else {}
    return {"ranks": counts, **said, **outputs.arguments(listing)}


def library_arguments(listing: Listing) -> Mapping[str, Any]:
    """Say that the listing is imported, not run."""
    return {"ranks": [], "import": listing.about is not None}


def _is_python(listing: Listing) -> bool:
    language = by_fence(listing.language)
    is_stub_file = listing.about is not None and is_stub(listing.about.source)
    return language is not None and language.name == "python" and not is_stub_file


def outcome_of(body: Callable[[], None], path: Path, raises: str = "") -> dict[str, Any] | None:
    """Run a listing and say what is wrong with it; None when nothing is.

    Args:
        body: runs it.
        path: its file.
        raises: exception that must leave it, as the option `raises` names it; empty when none may.
    """
    try:
        body()
    except BaseException as error:  # noqa: BLE001 - whatever a listing raises is its outcome
        if raises and is_named(error, raises):
            return None
        failure = _left(error, path) if isinstance(error, SystemExit) else failure_of(error, path)
        if raises and failure and failure["outcome"] == "failed":
            failure["reason"] += f"; {raises} was to leave it"
        if failure or not raises:
            return failure
    if not raises:
        return None
    reason = f"{raises} was to leave it, but nothing did"
    return {"outcome": "failed", "reason": reason, "text": reason}


def is_named(error: BaseException, raises: str) -> bool:
    """Say whether an exception is the one that an option names: by the name of a class of it, and a part of its message.

    Args:
        error: the exception.
        raises: `ValueError`, `json.JSONDecodeError`, `ValueError: too small`.
    """
    name, _, message = raises.partition(": ")
    return any(_has_name(cls, name) for cls in type(error).__mro__) and message in str(error)


def _has_name(cls: type, name: str) -> bool:
    """Say whether a name is that of a class: bare, with the module that defines it, or with one that offers it."""
    module, _, last = name.rpartition(".")
    return name in (cls.__name__, f"{cls.__module__}.{cls.__qualname__}") or getattr(sys.modules.get(module), last, None) is cls


def run_as_main(path: Path, given: Mapping[str, Any] | None = None) -> None:
    """Execute a file as `python FILE` does.

    Args:
        path: the file.
        given: names that it finds.
    """
    names = as_main(path)
    names.update(given or {})
    exec(rewriting.compiled(path.read_bytes(), str(path)), names)  # noqa: S102 - that is what rankbook does


def as_main(path: Path) -> dict[str, Any]:
    """Let a file begin as `python FILE` does, in the existing `__main__` module: torch's harness keeps a reference to it.

    Returns:
        The names of that module.
    """
    sys.argv = [str(path)]
    sys.path.insert(0, str(path.parent))
    names = sys.modules["__main__"].__dict__
    names.clear()
    names.update(
        __name__="__main__", __file__=str(path), __builtins__=__builtins__, __spec__=None, __package__=None, __doc__=None,
        __loader__=None, __cached__=None,
    )  # fmt: skip
    return names


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
    status = exit_status(error)
    if status == 0:
        return None
    said = "" if isinstance(error.code, int) else str(error.code).strip()
    reason = said or f"it left with exit status {status}"
    return {"outcome": "failed", "reason": reason, "text": reason, "line": _line_of(error, path), "status": status}


def exit_status(error: SystemExit) -> int:
    """Give the exit status with which Python ends by an exception: 0 for none and for a whole number 0 alone, not for 0.0."""
    if error.code is None:
        return 0
    return error.code if isinstance(error.code, int) else 1


def failure_of(error: BaseException, path: Path) -> dict[str, Any]:
    """Say how an exception that left a listing counts, and where on the listing it arose."""
    outcome = "skipped" if any((cls.__module__, cls.__name__) in _SKIPS for cls in type(error).__mro__) else "failed"
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
    return "".join(traceback.format_exception(type(error), error, rank_notes.without_notes(frame)))


def sections(ranks: list[RankRecord]) -> Iterator[tuple[str, str]]:
    """Yield what each rank wrote, as titled sections; long output keeps its head and tail."""
    for record in ranks:
        if record.output and Path(record.output).exists():
            text = _both_ends(Path(record.output))
            if text.strip():
                yield f"Captured output of {rank_notes.rank_name(record.name)}", text


def both_ends_of(text: str, shown: int = OUTPUT_SHOWN) -> str:
    """Leave out the middle of a long text, and say so."""
    if len(text) <= 2 * shown:
        return text
    return f"{text[:shown]}\n[... {len(text) - 2 * shown:,} characters left out ...]\n{text[-shown:]}"


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


def death(code: int | None) -> str:
    """Say how a process ended, by its exit status."""
    if code is None or code >= 0:
        return f"left with exit status {code}"
    try:
        return f"died by {signal.Signals(-code).name}"
    except ValueError:
        return f"died by signal {-code}"
