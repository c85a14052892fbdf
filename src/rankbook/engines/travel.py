"""What travels between the caller and the nodes of a cluster: programs with their files, ends, and what is known of a node."""

from __future__ import annotations

import base64
import fnmatch
import importlib.metadata
import os
import platform
import re
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from rankbook import __version__
from rankbook.engines.job import callers_environment, program_of
from rankbook.engines.wire import Message
from rankbook.errors import EngineError
from rankbook.listing import Ended, Program, RankEnd

OF_THE_MACHINE = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "SHLVL",
    "PWD",
    "OLDPWD",
    "_",
    "HOSTNAME",
    "TERM*",
    "DISPLAY",
    "TMPDIR",
    "RANKBOOK_LEASES",
    "LD_*",
    "PYTHONHOME",
    "VIRTUAL_ENV*",
    "CONDA_*",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_*",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ROCM_*",
    "RAY_*",
    "SLURM*",
    "SRUN_*",
    "SBATCH_*",
    "PMI_*",
    "PMIX_*",
    "SSH_*",
    "XDG_*",
    "DBUS_*",
    "*_SOCKET_IFNAME",
    "LMOD_*",
    "LOADEDMODULES",
    "MODULEPATH",
)
"""Variables that say something of one machine or of one login; they do not travel."""


class Facts(Struct, frozen=True):
    """What is known of a node."""

    host: str
    python: str
    torch: str
    """Empty when it is not installed."""
    rankbook: str
    slots: int
    """Programs that it runs well at the same time: its cores."""
    gpus: tuple[str, ...] = ()
    """GPUs that it may grant, as `CUDA_VISIBLE_DEVICES` names them."""

    @classmethod
    def here(cls, gpus: Iterable[str] = ()) -> Facts:
        """Tell them of this process.

        Args:
            gpus: what it may grant.
        """
        return cls(socket.gethostname(), platform.python_version(), _torch_version(), __version__, _cores(), tuple(gpus))

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> Facts:
        """Read them from plain data."""
        return cls(**{**message, "gpus": tuple(message["gpus"])})

    def as_json(self) -> Message:
        """Give them as plain data."""
        return asdict(self)

    def difference(self, other: Facts) -> str:
        """Say in which version another node differs from this one; empty when it does not."""
        for name in ("python", "torch", "rankbook"):
            mine, its = getattr(self, name), getattr(other, name)
            if mine != its:
                return f"it has {name} {its or '(none)'}, and the caller has {mine or '(none)'}"
        return ""


def _torch_version() -> str:
    try:
        return importlib.metadata.version("torch").partition("+")[0]  # a build for GPUs and one for CPUs are the same version
    except importlib.metadata.PackageNotFoundError:
        return ""


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment() -> dict[str, str]:
    """Give what travels of this process's environment."""
    return {name: value for name, value in callers_environment().items() if not matches(name, OF_THE_MACHINE)}


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a variable is one of those that patterns name."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def departing(program: Program) -> Message:
    """Give a program as plain data, with the files of its tree and the environment that it finds here.

    Raises:
        EngineError: its root is no folder, or a file cannot be read.
    """
    root = Path(program.root)
    if not root.is_dir():
        raise EngineError(f"{program.name} cannot run in {program.root}", right="its root must be a folder")
    try:
        paths = {str(path.relative_to(root)): path for path in sorted(root.rglob("*")) if path.is_file()}
        files = {name: _packed(path) for name, path in paths.items()}
        executable = [name for name, path in paths.items() if path.stat().st_mode & 0o100]
    except OSError as error:
        raise EngineError(f"a file of {program.name} cannot be read: {error}") from error
    plain = asdict(program)
    plain.update(arguments=dict(program.arguments), environment=dict(program.environment))
    return {"program": plain, "files": files, "executable": executable, "surroundings": environment()}


def _packed(path: Path) -> str:
    return base64.b85encode(path.read_bytes()).decode()


def arrived(message: Message, root: Path) -> Program:
    """Write the files of a program below a folder, and give the program as it runs there.

    Args:
        message: what `departing` gave.
        root: an empty folder.
    """
    for name, packed in message["files"].items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b85decode(packed))
    for name in message["executable"]:
        (root / name).chmod(0o755)
    values = dict(message["program"])
    original = values["root"]
    own = {key: renamed(values[key], original, str(root)) for key in ("arguments", "environment", "imports_first", "imports_last")}
    environment = {**message["surroundings"], **own["environment"]}
    return program_of({**values, **own, "environment": environment, "root": str(root)})


def renamed(value: Any, old: str, new: str) -> Any:
    """Put one folder's path in the place of another's, in all strings of plain data."""
    if isinstance(value, str):
        return re.sub(re.escape(old) + r"(?![\w-])", lambda _: new, value) if old in value else value
    if isinstance(value, Mapping):
        return {renamed(key, old, new): renamed(inner, old, new) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [renamed(inner, old, new) for inner in value]
    return value


def end_as_json(ended: Ended) -> Message:
    """Give the end of a program as plain data."""
    return {**asdict(ended), "ranks": [asdict(rank) for rank in ended.ranks], "death": asdict(ended.death) if ended.death else None}


def end_of(message: Mapping[str, Any]) -> Ended:
    """Read the end of a program from plain data."""
    known = set(Ended.__struct_fields__)
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in message.items() if key in known}
    values["ranks"] = tuple(RankEnd(**rank) for rank in message.get("ranks", ()))
    if values.get("death") is not None:
        values["death"] = RankEnd(**values["death"])
    return Ended(**values)
