"""The dotted names of files: `tests.tools` for `tests/tools.py` where `tests` is a package, `tools` where it is not."""

from __future__ import annotations

from collections.abc import Callable

INIT = "__init__.py"
_SUFFIXES = (".py", ".pyi")


def module_name(path: str, exists: Callable[[str], object]) -> str:
    """Name the module that a Python file is when it is imported from the folder that pytest puts on the path.

    Args:
        path: the file.
        exists: tells whether there is a file; it is asked for the `__init__.py` of the folders above.
    """
    folder, _, name = path.rpartition("/")
    parts = [] if name.partition(".")[0] == "__init__" else [_without_suffix(name)]
    while folder and exists(f"{folder}/{INIT}"):
        folder, _, name = folder.rpartition("/")
        parts.append(name)
    return ".".join(reversed(parts))


def is_private(name: str) -> bool:
    """Tell whether some part of a dotted name starts with one underscore."""
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def _without_suffix(name: str) -> str:
    return next((name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)), name)
