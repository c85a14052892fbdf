"""Whether this process has initialised CUDA's driver: whoever has, torch, Numba or CuPy, no fork of it can use a GPU any more."""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path

NOT_INITIALISED = 3
"""`CUDA_ERROR_NOT_INITIALIZED`: what all functions of the driver but `cuInit` return before that was called (CUDA Driver API, `cuInit`)."""


def is_initialised() -> bool:
    """Tell whether the driver was initialised in this process, or in one that this was forked from."""
    path = library()
    if path is None:
        return False
    with contextlib.suppress(OSError, AttributeError):
        return int(ctypes.CDLL(path).cuDeviceGetCount(ctypes.byref(ctypes.c_int()))) != NOT_INITIALISED
    return False


def library() -> str | None:
    """Give the file of the driver's library, None where it is not loaded."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    paths = (line.split(maxsplit=5)[-1] for line in lines if "/libcuda.so" in line)
    return next(paths, None)
