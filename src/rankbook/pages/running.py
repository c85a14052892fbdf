"""How a file is run from a shell, as what stands in it tells."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from rankbook.model import Module, Test

_STARTS = ("multiprocessing.", "torch.multiprocessing.", "subprocess.")
_TORCHRUN = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE"})


@dataclass(frozen=True, slots=True)
class Run:
    """How to run a file from a shell."""

    why: str
    """What in the file says so, as a sentence."""
    command: str


def how_to_run(module: Module, tests: tuple[Test, ...]) -> Run | None:
    """Tell how to run a file, from what stands in it."""
    if module.source.language != "python":
        return None
    path = shlex.quote(module.source.path)
    if tests:
        return Run("It is a test module.", f"pytest {path}")
    if not module.is_script:
        return None
    variables = () if _starts_processes(module) else sorted(_TORCHRUN & {variable.name for variable in module.environment})
    if variables:
        return Run(
            f"It is a script that is told its place by the environment ({', '.join(variables)}).", f"torchrun --nproc-per-node=2 {path}"
        )
    return Run("It is a script.", f"python {path}")


def _starts_processes(module: Module) -> bool:
    """Whether it starts its ranks itself, and so sets the variables that it names."""
    return any(keyword.kind == "call" and keyword.name.startswith(_STARTS) for keyword in module.keywords)
