"""Where programs run: each engine is a module of this package, found by name and imported when it is asked for."""

from __future__ import annotations

import importlib
from typing import Any, cast

from rankbook.errors import EngineError
from rankbook.listing import Engine

NAMES = ("local", "fresh")
"""Engines that there are, the default first; each module has a function `create`."""


def create(name: str, **options: Any) -> Engine:
    """Make the engine of that name.

    Args:
        name: one of `NAMES`.
        options: what the engine's own `create` takes.

    Raises:
        EngineError: there is no such engine.
    """
    if name not in NAMES:
        raise EngineError(f"there is no engine '{name}'", right=f"known are {', '.join(NAMES)}")
    module = importlib.import_module(f"rankbook.engines.{name}")
    return cast("Engine", module.create(**options))
