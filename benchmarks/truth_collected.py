"""What pytest collects from each file of a tree: one fork per file of a process that has imported torch once.

The processes are forked from here and hand back a JSON file each, so that a file that cannot be imported costs itself only.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, NoReturn

import pytest

from rankbook.engines.local import has_gpus

PRELOAD = (
    "torch",
    "torch.distributed",
    "torch.nn.parallel",
    "torch.testing._internal.common_utils",
    "torch.testing._internal.common_distributed",
    "torch.testing._internal.common_device_type",
    "torch.testing._internal.distributed._tensor.common_dtensor",
    "hypothesis",
)
"""What the files mostly import; what is not installed is left out, and where there are GPUs what is torch's own: it may initialise CUDA."""

OPTIONS = ("-q", "-p", "no:cacheprovider", "-p", "no:rankbook", "-p", "no:warnings")
"""Options of each collection; none of them changes what is collected."""

LIMIT = 180.0
"""Seconds that a file may take."""

ENVIRONMENT: Mapping[str, Mapping[str, str]] = {
    "test_distributed_spawn.py": {"BACKEND": "gloo", "WORLD_SIZE": "3"},
    "test_quantization.py": {"BACKEND": "gloo", "WORLD_SIZE": "3"},
}
"""What a driver of PyTorch's CI sets for a file, by the file's name; `TEMP_DIR` is set for all."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Where and how files are collected and run."""

    root: Path
    """Working directory."""
    folder: Path
    """For reports, and for files that drivers of the suite expect."""
    options: tuple[str, ...] = ()
    """More options for pytest."""
    budget: float = 600.0
    """Seconds after which no further test of a file is begun."""

    def variables(self, path: str) -> dict[str, str]:
        """Give the variables for a file, and make the folders that its driver expects."""
        for name in ("barrier", "test_dir"):
            (self.folder / name).mkdir(exist_ok=True)
        return variables_for(path, str(self.folder))


def variables_for(path: str, folder: str = "/nowhere") -> dict[str, str]:
    """Give the variables that a file's driver sets; it keeps its locks in `folder`."""
    return {"TEMP_DIR": folder, **ENVIRONMENT.get(path.rpartition("/")[2], {})}


_PLACE = re.compile(r" \(/[^)]*\)")
"""Where a module lies on this machine, behind what is wrong with it."""


class Recorder:
    """Plugin that writes down what is collected."""

    def __init__(self) -> None:
        self.items: dict[str, dict[str, Any]] = {}
        self.error = ""

    def pytest_collectreport(self, report: Any) -> None:
        """Note why a file gives no tests."""
        if report.failed or report.skipped:
            text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self.error = self.error or f"{report.outcome}: {last_line(text)}"

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_make_collect_report(self, collector: Any) -> Any:
        """Let a module that leaves while it is imported cost itself only: pytest itself would break down."""
        try:
            return (yield)
        except SystemExit as left:
            return pytest.CollectReport(collector.nodeid, "skipped", (str(collector.path), 0, f"left with status {left.code or 0}"), [])

    def pytest_itemcollected(self, item: Any) -> None:
        """Note a test with where its function stands."""
        self.items[item.nodeid.partition("::")[2]] = described(item)


def described(item: Any) -> dict[str, Any]:
    """Say of a test where its function stands, what it is called there, and whether pytest parametrised it."""
    function = inspect.unwrap(item.function)
    code: CodeType | None = getattr(function, "__code__", None)
    own = Path(getattr(item.module, "__file__", ""))
    return {
        "function": code.co_name if code else item.name,
        "line": code.co_firstlineno if code else 0,
        "elsewhere": code is not None and Path(code.co_filename).resolve() != own.resolve(),
        "parametrised": hasattr(item, "callspec"),
    }


def last_line(text: str) -> str:
    """Give the line of a traceback that says what is wrong."""
    lines = [line.strip().removeprefix("E").strip() for line in text.strip().splitlines()]
    telling = [line for line in lines if any(word in line for word in ("Error", "Skipped", "left with"))]
    return _PLACE.sub("", (telling or lines or [""])[-1])[:300]


def collect(suite: Suite, path: str) -> dict[str, Any]:
    """Collect one file in this process."""
    recorder = Recorder()
    sys.argv = [path]
    # As `python FILE` has it, which is how PyTorch runs them: some of its folders are packages, so that pytest would not add them.
    sys.path[:0] = [str((suite.root / path).parent), str(suite.root)]
    status = int(pytest.main([*OPTIONS, *suite.options, "--collect-only", path], plugins=[recorder]))
    if status not in (0, 5) and not recorder.error:
        recorder.error = f"pytest ended with status {status}"
    return {"ids": list(recorder.items), "error": recorder.error, "items": recorder.items}


def preload() -> None:
    """Import what the files need, and take it out of the collector's sight."""
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    for name in PRELOAD:
        if has_gpus() and name.startswith("torch.testing."):
            continue
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def each(suite: Suite, paths: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Collect files one by one, each in a fork of this process.

    Args:
        suite: where and how.
        paths: files below its root.
    """
    preload()
    report, said = suite.folder / "report.json", suite.folder / "said.txt"
    for path in paths:
        report.unlink(missing_ok=True)
        problem = in_fork(suite, path, report, said)
        if report.exists():
            yield path, json.loads(report.read_text(encoding="utf-8"))
        else:
            yield path, {"ids": [], "error": f"{problem}: {last_line(said.read_text(errors='replace'))}", "items": {}}


def in_fork(suite: Suite, path: str, report: Path, said: Path) -> str:
    """Collect a file in a fork; say how that ended."""
    pid = os.fork()
    if pid == 0:
        _child(suite, path, report, said)
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return f"ended with {os.waitstatus_to_exitcode(status)}"
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return f"hung for {LIMIT:.0f} s"


def _child(suite: Suite, path: str, report: Path, said: Path) -> NoReturn:
    os.setsid()
    status = 1
    try:
        output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(suite.root)
        os.environ.update(suite.variables(path))
        report.write_text(json.dumps(collect(suite, path)), encoding="utf-8")
        status = 0
    finally:
        os._exit(status)
