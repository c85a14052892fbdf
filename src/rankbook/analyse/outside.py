"""What names of NumPy and of Python's own library stand for, as far as it bears on the names of tests."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from functools import cache

from rankbook.analyse.things import Thing, Value

_SCALARS: Mapping[str, str] = {
    **{f"{kind}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{name: name for name in ("float16", "float32", "float64", "complex64", "complex128", "datetime64", "timedelta64")},
    "half": "float16",
    "single": "float32",
    "double": "float64",
    "csingle": "complex64",
    "cdouble": "complex128",
    **{name: name for name in ("generic", "number", "integer", "floating", "inexact", "object_", "ndarray")},
}
"""Classes of NumPy with the names that they call themselves, whatever its version and the platform."""
CLASSES = frozenset(_SCALARS.values())
"""Names of these classes: some of what they make is a number, of which pytest shows the value, and some is not."""
VALUES: Mapping[str, Value] = {
    **{f"numpy.{name}": Thing("class", own) for name, own in _SCALARS.items()},
    "numpy.nan": math.nan,
    "numpy.inf": math.inf,
    "numpy.pi": math.pi,
    "numpy.e": math.e,
    "numpy.newaxis": None,
}
"""By full name."""
_MODULES = frozenset({"cmath", "functools", "json", "math", "operator", "string", "textwrap"})
"""Modules of Python that do nothing when they are imported."""
_TYPES: Mapping[str, type] = {each.__name__: each for each in (bool, bytes, dict, float, frozenset, int, list, set, str, tuple)}


@cache
def of_library(full: str) -> Value:
    """Give what a name of Python's own library stands for; None for one that is not read here.

    Args:
        full: its full name: `operator.add`, `math.pi`, `str.upper`.
    """
    owner, _, last = full.partition(".")
    if not last.isidentifier() or last.startswith("_"):
        return None
    holder = importlib.import_module(owner) if owner in _MODULES else _TYPES.get(owner)
    found = getattr(holder, last, None)
    if isinstance(found, (str, int, float)):
        return found
    name = getattr(found, "__name__", None)
    return Thing("class" if isinstance(found, type) else "function", name) if isinstance(name, str) and callable(found) else None
