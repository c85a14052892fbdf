"""Whether a module may have failed to be imported for want of what another machine has, or is wrong on every machine."""

from __future__ import annotations

import importlib.util
import re
import traceback

KINDS = (ImportError, OSError, RuntimeError, AssertionError)
"""What an import raises for want of a package, a library, a driver or a device; other errors are the module's own."""
WORDS = re.compile(
    r"(?i)(?<![a-z])(cuda|cudart|cudnn|cublas|gpus?|nvidia|nvidia-smi|nvml|nvshmem|nccl|nvrtc|rocm|hip|amdgpu|rccl|xpu|hpu|npu|mlu|musa|tpu|"
    r"accelerators?|infiniband|ibverbs|rdma|ucx)(?![a-z])|\blib[\w-]+\.so\b|DLL load failed"
)
"""What such an error names, or the lines that led to it."""


def may_be_lacking(error: BaseException) -> bool:
    """Say whether an import may succeed where there is more hardware, and the packages that go with it.

    Args:
        error: what the import has raised.
    """
    if not isinstance(error, KINDS):
        return False
    if isinstance(error, ModuleNotFoundError):
        return error.name is not None and not _is_there(error.name.partition(".")[0])
    if str(error).startswith("cannot import name"):
        return False
    lines = (frame.line or "" for frame in traceback.extract_tb(error.__traceback__))
    return any(map(WORDS.search, (str(error), *lines)))


def _is_there(top: str) -> bool:
    try:
        return importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        return True
