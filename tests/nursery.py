"""Programs that need not import everything again: one interpreter has imported what they need, and each of them is a fork of it."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_BORN = {**os.environ, "PYTHONWARNINGS": "default"}
"""The environment in which modules are imported, whatever a test has changed since."""
IMPORTED = (
    *("mkdocs.commands.build", "mkdocs.config.defaults", "mkdocs.contrib.search", "mkdocs.theme", "markdown.extensions.toc"),
    *("rankbook.mkdocs_plugin", "rankbook.generating", "rankbook.publish", "rankbook.document", "rankbook.stamping"),
    *("rankbook.filling", "rankbook.searching", "rankbook.shelf", "rankbook.homes", "rankbook.sources.other_languages"),
)
"""What builds of a site import, as far as it is installed; no program itself, which `python -m` executes."""
EXTENSIONS = ("admonition", "attr_list", "def_list", "md_in_html", "tables", "toc", "pymdownx.details", "pymdownx.highlight")
EXTENSIONS += ("pymdownx.inlinehilite", "pymdownx.superfences", "pymdownx.tabbed")
"""Of Python-Markdown: they compile their patterns when they are first used."""
PROGRAM = """\
import runpy, sys
sys.path.insert(1, sys.argv[1])
import nursery
sys.path.remove(sys.argv[1])
sys.argv[:] = nursery.serve()
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def serve() -> list[str]:
    """Fork for each line of the standard input and say on the standard output how that ended; in the fork, give the program's words."""
    for name in IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with contextlib.suppress(ImportError):
        markdown = importlib.import_module("markdown")
        markdown.Markdown(extensions=EXTENSIONS).convert("# a\n\n```python\n1\n```\n\n| a |\n| --- |\n| `b` |\n")
    for line in sys.stdin:
        if not (pid := os.fork()):
            return _become(**json.loads(line))
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    os._exit(0)


def _become(words: list[str], folder: str, environment: dict[str, str], out: str, err: str) -> list[str]:
    """Take on folder, environment and streams of a program; give its words."""
    os.chdir(folder)
    sys.path[0] = folder
    os.environ.clear()
    os.environ.update(environment)
    for stream, path, flags in ((0, os.devnull, os.O_RDONLY), (1, out, os.O_WRONLY), (2, err, os.O_WRONLY)):
        opened = os.open(path, flags)
        os.dup2(opened, stream)
        os.close(opened)
    return words


@functools.cache
def _nursery() -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, os.fspath(Path(__file__).parent)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_BORN, cwd="/", start_new_session=True, text=True
    )
    atexit.register(process.communicate)  # its input ends, and with it the process
    return process


def _of_python(environment: dict[str, str]) -> dict[str, str]:
    """Give what an interpreter looks at when it starts, and not later."""
    return {name: value for name, value in environment.items() if name.startswith(("PYTHON", "LC_", "LANG", "TZ"))}


def _answer(nursery: subprocess.Popen[str], asked: dict[str, Any], timeout: float) -> str:
    """Have a program run, and give its exit status."""
    assert nursery.stdin is not None
    assert nursery.stdout is not None
    nursery.stdin.write(f"{json.dumps(asked)}\n")
    nursery.stdin.flush()
    if not select.select([nursery.stdout], [], [], timeout)[0]:
        raise subprocess.TimeoutExpired(asked["words"], timeout, Path(asked["out"]).read_bytes(), Path(asked["err"]).read_bytes())
    status = nursery.stdout.readline()
    assert status, "the interpreter that has imported everything is gone"
    return status


def run_module(root: Path, *words: str, environment: dict[str, str], timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a module as a program, as `python -m` does, in a process of its own.

    Where its environment tells Python something else than that of the tests, it has an interpreter of its own, too.

    Args:
        root: the folder in which it runs.
        words: the module and its arguments.
        environment: of the program.
        timeout: seconds after which it is killed.

    Raises:
        subprocess.TimeoutExpired: it was.
    """
    if _of_python(environment) != _of_python(_BORN):
        command = [sys.executable, "-m", *words]
        return subprocess.run(command, cwd=root, env=environment, check=False, capture_output=True, text=True, timeout=timeout)
    nursery = _nursery()
    with tempfile.TemporaryDirectory(prefix="rankbook-nursery-") as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        out.touch()
        err.touch()
        asked = {"words": words, "folder": os.path.realpath(root), "environment": environment, "out": str(out), "err": str(err)}
        try:
            status = _answer(nursery, asked, timeout)
        except BaseException:  # nobody knows what it says next
            with contextlib.suppress(ProcessLookupError):
                os.killpg(nursery.pid, signal.SIGKILL)
            _nursery.cache_clear()
            raise
        return subprocess.CompletedProcess(words, int(status), out.read_text(), err.read_text())
