"""How a file is run from a shell, as what stands in it tells: whole, and a test of it alone."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from msgspec import Struct

from rankbook.model import Module, Test
from rankbook.terminal import word

_STARTS = ("multiprocessing.", "torch.multiprocessing.", "subprocess.")
_TORCHRUN = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE"})
_SAYS_TORCHRUN = re.compile(r"\btorchrun\b|\btorch\.distributed\.(?:run|launch)\b")


class Run(Struct, frozen=True):
    """How to run a file from a shell."""

    why: str
    """What in the file says so, as a sentence."""
    command: str


class OneTest(Struct, frozen=True):
    """A command that runs one test of a file."""

    what: str
    """What it runs, as a clause."""
    command: str


class Selection(NamedTuple):
    """Tests of a file, as pytest is told them."""

    node: str
    """Node id within the file; empty for all that the file holds."""
    words: str = ""
    """Expression of `-k` that chooses among them; empty when it is all of them."""

    def __str__(self) -> str:
        """Give what stands behind the file in a command: `TestRing::test_token`, `TestRing -k test_token`."""
        return " ".join(filter(None, (self.node, self._words)))

    def command(self, path: str, options: str = "") -> str:
        """Write the command by which pytest runs them.

        Args:
            path: the file that holds them.
            options: what pytest is told besides.
        """
        target = word(path, f"::{self.node}" if self.node else "")
        return " ".join(filter(None, ("pytest", options, target, self._words)))

    @property
    def _words(self) -> str:
        return f"-k {shlex.quote(self.words)}" if self.words else ""


def how_to_run(module: Module, tests: tuple[Test, ...]) -> Run | None:
    """Tell how to run a file, from what stands in it."""
    if module.source.language != "python":
        return None
    path = word(module.source.path)
    if tests:
        return Run("It is a test module.", f"pytest {path}")
    if not module.is_script:
        return None
    variables = () if _starts_processes(module) else sorted(_TORCHRUN & {variable.name for variable in module.environment})
    if variables:
        return Run(
            f"It is a script that is told its place by the environment ({', '.join(variables)}).", f"torchrun --nproc-per-node=2 {path}"
        )
    if _joins_a_group(module) and _SAYS_TORCHRUN.search(module.docstring or ""):
        return Run("It is a script that joins a process group, and its docstring names torchrun.", f"torchrun --nproc-per-node=2 {path}")
    return Run("It is a script.", f"python {path}")


def how_to_run_one(module: Module, selection: Selection, page: str) -> tuple[OneTest, ...]:
    """Tell how to run one test of a file.

    Args:
        module: the file.
        selection: the test.
        page: name of the file's page.
    """
    found = [OneTest("from its source", selection.command(module.source.path))]
    if module.runs_its_tests and "::" in selection.node and "[" not in selection.node and not selection.words:
        name = shlex.quote(selection.node.replace("::", "."))
        found.append(OneTest("as a script", f"python {word(module.source.path)} {name}"))
    found.append(
        OneTest("from this page, in its folder, so that the ledger keeps the run", selection.command(page, "--doctest-glob='*.md'"))
    )
    return tuple(found)


def _joins_a_group(module: Module) -> bool:
    """Whether it makes a process group of ranks that somebody else has started."""
    return not _starts_processes(module) and any(
        keyword.kind == "call" and keyword.name == "torch.distributed.init_process_group" for keyword in module.keywords
    )


def _starts_processes(module: Module) -> bool:
    """Whether it starts its ranks itself, and so sets the variables that it names."""
    return any(keyword.kind == "call" and keyword.name.startswith(_STARTS) for keyword in module.keywords)
